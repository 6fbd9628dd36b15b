"""
Probabilities that can be trusted
=================================

Few samples and many columns: where maximum likelihood is sure and wrong, and what averaging and a likelihood power do about it.
"""

# %%
# Thirty samples to learn from, 569 - 30 to look at.
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
    "with a likelihood power": CGNClassifier(likelihood_power="cv"),
    "logistic regression": GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), penalties, scoring="neg_log_loss"
    ),
    "the mixture": CGNClassifierCV(),
}
said = {}
for name, model in models.items():
    said[name] = model.fit(X, y).predict_proba(rest)
    right = (said[name].argmax(axis=1) == y_rest).mean()
    print(f"{name:22} accuracy {right:.3f}   log loss {log_loss(y_rest, said[name]):.3f}")

# %%
# All are right about equally often; they differ in how well they know it.
from cgnlearn.plots import ReliabilityDisplay

ReliabilityDisplay.from_predictions(y_rest, said, classes=[0, 1])
