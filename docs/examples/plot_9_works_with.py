"""
Works with scikit-learn, skrub, skore, MAPIE and shap
=====================================================

A classifier of cgnlearn is a scikit-learn classifier, so tools that are made for those take it as it is.
"""

# %%
# Some patients, for all of what follows, and one network: tools that refit often are faster with it than with the mixture.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from cgnlearn import CGNClassifier

data = load_breast_cancer(as_frame=True)
X = data.data[["mean radius", "mean texture", "mean smoothness", "worst concavity", "worst symmetry"]]
y = np.where(data.target == 0, "malignant", "benign")
train, test, y_train, y_test = train_test_split(X, y, train_size=150, stratify=y, random_state=0)
model = CGNClassifier("complete", sharing=1.0).fit(train, y_train)

# %%
# scikit-learn: calibration
# -------------------------
# ``cgnlearn.plots.ReliabilityDisplay`` has a band and needs no bins; scikit-learn's display works too.
from sklearn.calibration import CalibrationDisplay

CalibrationDisplay.from_estimator(model, test, y_test, n_bins=8, strategy="quantile", pos_label="malignant")

# %%
# scikit-learn: a threshold by cost
# ---------------------------------
# ``TunedThresholdClassifierCV`` searches a threshold. Where probabilities are right it is known beforehand, 1 / (1 + 9) here, and chance in the search costs nothing.
from sklearn.metrics import confusion_matrix, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV


def gain(truth, said):
    """A missed tumour costs nine, a needless biopsy one."""
    counts = confusion_matrix(truth, said, labels=["benign", "malignant"])
    return -(9 * counts[1, 0] + counts[0, 1])


tuned = TunedThresholdClassifierCV(model, scoring=make_scorer(gain), cv=5, random_state=0).fit(train, y_train)
by_cost = np.where(model.predict_proba(test)[:, 1] >= 0.1, "malignant", "benign")
print(f"threshold {tuned.best_threshold_:.2f}: gain {gain(y_test, tuned.predict(test))}; 0.1: {gain(y_test, by_cost)}")

# %%
# scikit-learn: learning curve and permutation importance
# -------------------------------------------------------
# ``cgnlearn.plan`` extrapolates the curve, and ``feature_importance`` integrates a feature out instead of shuffling it.
from sklearn.inspection import permutation_importance
from sklearn.model_selection import LearningCurveDisplay

LearningCurveDisplay.from_estimator(
    model,
    X,
    y,
    train_sizes=[30, 60, 120, 240],
    cv=5,
    shuffle=True,
    random_state=0,
    scoring="neg_log_loss",
    negate_score=True,
    score_name="log loss",
)
plt.xscale("log")

# %%
shuffled = permutation_importance(model, test, y_test, scoring="neg_log_loss", n_repeats=5, random_state=0)
exact = model.feature_importance(test, y_test)
print(pd.DataFrame({"shuffled": shuffled.importances_mean, "integrated out": exact.increase}, X.columns).round(3))

# %%
# skrub: tables as they come
# --------------------------
# cgnlearn takes categories and missing values itself; ``TableVectorizer`` helps with dates and free text, which it does not take.
from sklearn.pipeline import make_pipeline
from skrub import TableVectorizer

visits = train.assign(visit=pd.date_range("2024-01-01", periods=len(train), freq="D").astype(str))
pipeline = make_pipeline(TableVectorizer(), CGNClassifier("naive_bayes")).fit(visits, y_train)
print(pipeline[-1].n_features_in_, "features")

# %%
# skore: an evaluation with its checks
# ------------------------------------
import skore

found = skore.EstimatorReport(model, X_test=test, y_test=y_test, pos_label="malignant")
print(f"log loss {found.metrics.log_loss():.3f}")

# %%
# MAPIE: split-conformal sets
# ---------------------------
# ``predict_set`` needs no samples set aside, as leave-one-out is exact. MAPIE takes arrays; its sets, with 75 of the 150 samples set aside:
from mapie.classification import SplitConformalClassifier

half, rest, y_half, y_rest = train_test_split(train, y_train, train_size=75, stratify=y_train, random_state=0)
fitted = CGNClassifier("complete", sharing=1.0).fit(half.to_numpy(), y_half)
conformal = SplitConformalClassifier(fitted, confidence_level=0.9, prefit=True).conformalize(rest.to_numpy(), y_rest)
split = conformal.predict_set(test.to_numpy())[1][:, :, 0]
full = model.predict_set(test, coverage=0.9, per_class=False)
for name, sets in {"MAPIE, 75 samples set aside": split, "predict_set, all samples": full}.items():
    right = sets[np.arange(len(test)), np.searchsorted(model.classes_, y_test)].mean()
    print(f"{name}: coverage {right:.2f}, mean size {sets.sum(axis=1).mean():.2f}")

# %%
# shap: sampled Shapley values
# ----------------------------
# ``model.shapley`` is exact and integrates hidden features out. shap's explainers replace them by background samples, which is another question and another answer.
import shap

explainer = shap.KernelExplainer(
    lambda values: model.predict_log_proba(pd.DataFrame(values, columns=X.columns))[:, 1], shap.kmeans(train, 10)
)
sampled = explainer.shap_values(test.iloc[[3]], silent=True)[0]
print(pd.DataFrame({"shap": sampled, "shapley": model.shapley(test.iloc[[3]])[0, :, 1]}, X.columns).round(2))
