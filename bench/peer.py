"""One classifier on one data set: ``python bench/peer.py NAME SET.npz`` prints its results as JSON.

The environment needs NumPy, pandas, scikit-learn and the library that is measured.
"""

from __future__ import annotations

import importlib
import json
import sys
import time

import numpy as np
import pandas as pd

LEAST = 1e-15  # smaller probabilities count as this
LONG = 10.0  # seconds; longer measurements are not repeated
LEVELS = 5  # quantiles of a number for libraries without continuous features


class Cannot(Exception):
    """A task that a library cannot do."""


def of_sklearn(name):
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    kinds = {
        "GaussianNB": GaussianNB,
        "LDA": LinearDiscriminantAnalysis,
        "QDA": QuadraticDiscriminantAnalysis,
        "LogisticRegression": lambda: LogisticRegression(max_iter=1000),
    }

    def made(categorical):
        from sklearn.compose import make_column_transformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        return make_pipeline(make_column_transformer((one_hot, categorical), remainder=StandardScaler()), kinds[name]())

    return made


def of_ours(structure):
    def made(categorical):
        from cgnlearn import CGNClassifier, CGNClassifierCV

        if structure == "mixture":
            return CGNClassifierCV(categorical_features=categorical or None)
        return CGNClassifier(structure, categorical_features=categorical or None)

    return made


class PyBNesian:
    """Naive Bayes as a conditional linear Gaussian network."""

    def __init__(self, categorical):
        self.categorical = categorical

    def fit(self, X, y):
        import pybnesian

        self.n_classes = int(y.max()) + 1
        self.levels = {i: [str(level) for level in range(int(X[:, i].max()) + 1)] for i in self.categorical}
        names = [f"x{i}" for i in range(X.shape[1])]
        self.network = pybnesian.CLGNetwork([*names, "y"], [("y", name) for name in names])
        self.network.fit(self._frame(X, y))
        return self

    def predict_proba(self, X):
        joint = [self.network.logl(self._frame(X, np.full(len(X), label))) for label in range(self.n_classes)]
        joint = np.nan_to_num(np.column_stack(joint), nan=-1e300, neginf=-1e300)
        proba = np.exp(joint - joint.max(axis=1, keepdims=True))
        return proba / proba.sum(axis=1, keepdims=True)

    def _frame(self, X, y):
        import pyarrow as pa

        def coded(codes, levels):
            return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(levels))

        columns = [
            coded(X[:, i], self.levels[i]) if i in self.levels else pa.array(X[:, i].copy()) for i in range(X.shape[1])
        ]
        classes = coded(y, [str(label) for label in range(self.n_classes)])
        names = [*(f"x{i}" for i in range(X.shape[1])), "y"]
        return pa.RecordBatch.from_arrays([*columns, classes], names=names)


class Pgmpy:
    """Naive Bayes of quantiles: pgmpy has no networks of discrete and continuous columns."""

    def __init__(self, categorical):
        self.categorical = categorical

    def fit(self, X, y):
        from pgmpy.models import NaiveBayes

        if X.shape[1] > 1000:
            raise Cannot("elimination over more than 1,000 features")
        continuous = [i for i in range(X.shape[1]) if i not in self.categorical]
        inner = np.linspace(0, 1, LEVELS + 1)[1:-1]
        self.cuts = {i: np.unique(np.quantile(X[:, i], inner)) for i in continuous}
        table = self._levels(X)
        self.model = NaiveBayes(feature_vars=list(table.columns), dependent_var="y")
        self.model.fit(table.assign(y=y))
        return self

    def predict_proba(self, X):
        # Its own inference takes seconds per sample: the learned tables are multiplied here.
        tables = {table.variable: table for table in self.model.get_cpds()}
        prior = tables["y"].get_values().ravel()
        joint = np.tile(np.log(prior), (len(X), 1))
        for name, codes in self._levels(X).items():
            values = tables[name].get_values()
            place = {level: i for i, level in enumerate(tables[name].state_names[name])}
            rows = np.array([place.get(code, -1) for code in codes])
            joint += np.where(rows[:, None] < 0, 0.0, np.log(np.maximum(values[rows], 1e-300)))
        proba = np.exp(joint - joint.max(axis=1, keepdims=True))
        return proba / proba.sum(axis=1, keepdims=True)

    def _levels(self, X):
        return pd.DataFrame(
            {
                f"x{i}": np.searchsorted(self.cuts[i], X[:, i]) if i in self.cuts else X[:, i].astype(int)
                for i in range(X.shape[1])
            }
        )


class PyAgrum:
    """pyAgrum's classifier of discretised columns, as naive Bayes or TAN."""

    def __init__(self, method):
        self.method = method

    def __call__(self, categorical):
        import pyagrum.skbn as skbn
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor

        return skbn.BNClassifier(type_processor=DiscreteTypeProcessor(), learningMethod=self.method)


class Mixed:
    """Naive Bayes of discrete and continuous columns."""

    def __init__(self, categorical):
        self.categorical = categorical

    def fit(self, X, y):
        from mixed_naive_bayes import MixedNB

        # Without the numbers of levels it takes those of the training samples only.
        levels = [int(X[:, i].max()) + 1 for i in self.categorical]
        self.model = MixedNB(categorical_features=self.categorical or None, max_categories=levels or None).fit(X, y)
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(X)


MODELS = {
    "cgnlearn naive Bayes": (None, of_ours("naive_bayes")),
    "cgnlearn complete": (None, of_ours("complete")),
    "cgnlearn TAN": (None, of_ours("tan")),
    "cgnlearn mixture": (None, of_ours("mixture")),
    "GaussianNB": (None, of_sklearn("GaussianNB")),
    "LDA": (None, of_sklearn("LDA")),
    "QDA": (None, of_sklearn("QDA")),
    "LogisticRegression": (None, of_sklearn("LogisticRegression")),
    "PyBNesian naive Bayes": ("pybnesian", PyBNesian),
    "pgmpy naive Bayes of quantiles": ("pgmpy", Pgmpy),
    "pyAgrum naive Bayes": ("pyagrum", PyAgrum("NaiveBayes")),
    "pyAgrum TAN": ("pyagrum", PyAgrum("TAN")),
    "mixed-naive-bayes": ("mixed-naive-bayes", Mixed),
}


def peak_memory():
    """Peak memory in MB of this process; getrusage includes the process that started it."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM"))


def measured(name, path):
    package, make = MODELS[name]
    with np.load(path) as data:
        X, y, train, test, categorical = (data[part] for part in ("X", "y", "train", "test", "categorical"))
    categorical = categorical.tolist()
    if package is not None:
        importlib.import_module(package.replace("-", "_"))
    fits, predictions = [], []
    for _ in range(4):
        start = time.perf_counter()
        model = make(categorical).fit(X[train], y[train])
        fits.append(time.perf_counter() - start)
        start = time.perf_counter()
        proba = np.asarray(model.predict_proba(X[test]))
        predictions.append(time.perf_counter() - start)
        if fits[-1] + predictions[-1] > LONG:
            break
    if len(fits) > 1:
        del fits[0], predictions[0]  # includes imports and compilation
    proba = np.maximum(np.nan_to_num(proba), LEAST)
    return {
        "fit": min(fits),
        "predict": min(predictions),
        "memory": peak_memory(),
        "accuracy": float((proba.argmax(axis=1) == y[test]).mean()),
        "log_loss": float(-np.log(proba[np.arange(len(test)), y[test]]).mean()),
    }


if __name__ == "__main__":
    try:
        print(json.dumps(measured(*sys.argv[1:])))
    except Exception as error:  # of any type: it is the reason for skipping
        print(json.dumps({"skipped": f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"}))
