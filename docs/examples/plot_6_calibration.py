"""
Probabilities that can be trusted
=================================

Few samples and many features: where maximum likelihood is overconfident, and how averaging and a likelihood power correct it.
"""

# %%
# Thirty samples for training, the other 539 for testing.
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import CGNClassifier, CGNClassifierCV

data = load_breast_cancer(as_frame=True)
X, rest, y, y_rest = train_test_split(data.data, data.target, train_size=30, stratify=data.target, random_state=0)
penalties = {"logisticregression__C": np.geomspace(1e-4, 1e4, 10)}
models = {
    "GaussianNB": GaussianNB(),
    "naive Bayes, averaged": CGNClassifier(),
    "with likelihood power": CGNClassifier(likelihood_power="cv"),
    "logistic regression": GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), penalties, scoring="neg_log_loss"
    ),
    "the mixture": CGNClassifierCV(),
}
probabilities = {}
for name, model in models.items():
    probabilities[name] = model.fit(X, y).predict_proba(rest)
    accuracy = (probabilities[name].argmax(axis=1) == y_rest).mean()
    print(f"{name:22} accuracy {accuracy:.3f}   log loss {log_loss(y_rest, probabilities[name]):.3f}")

# %%
# All have about the same accuracy; they differ in calibration.
from cgnlearn.plots import ReliabilityDisplay

ReliabilityDisplay.from_predictions(y_rest, probabilities, classes=[0, 1])
