"""Models of every kind and samples to predict, for the readers of each format."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from cgnlearn import Band, BandAverage, Box, CGNClassifier, CGNClassifierCV, Jan, Prior
from cgnlearn.portable.document import description

MEMBERS = ["naive_bayes", "selective_naive_bayes", "complete", "tan", "aode", "logistic", "ordinal"]
LEVELS = {"sex": ["f", "m"], "stage": ["I", "II", "III"], "site": ["a, b", '"c"', "<script>alert(1)</script>", "😀"]}
RANGES = Prior.from_ranges({"benign": {"d": (-2, 2, 30)}, "other": {"age (years)": (30, 90), "d": (-3, 2)}})


def table(n, seed, *, missing=0.0, unknown=False, numeric=False):
    """Mixed features of three classes, some of them missing, and some levels that training does not have."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    base = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "age (years)": 50 + 10 * (base + 0.5 * y),
            "crp [mg/l]": np.exp(base + 0.4 * y + rng.normal(size=n)),
            "it's 5'": 1e4 + 3 * base + rng.normal(size=n) * (1 + y),
            "d": rng.normal(size=n) - 0.3 * y * base,
        }
    )
    if not numeric:
        for i, (name, levels) in enumerate(LEVELS.items()):
            score = base * (i + 1) + y * 0.7 + rng.normal(size=n)
            codes = np.clip(np.digitize(score, np.linspace(-1, 2, len(levels) - 1)), 0, len(levels) - 1)
            X[name] = pd.Categorical(np.array(levels, object)[codes], categories=levels)
    if missing:
        X = X.mask(rng.random(X.shape) < missing)
    if unknown:
        X["stage"] = X["stage"].astype(object)
        X.loc[X.index[::7], "stage"] = "IV"
    return X, np.array(["benign", "malignant <b>", "other"])[y]


# Name: the model, whether training samples have missing values, whether it predicts such samples.
CASES = {
    "naive Bayes": (lambda: CGNClassifier("naive_bayes", likelihood_power=0.7), False, True),
    "naive Bayes, indicators": (lambda: CGNClassifier("naive_bayes", missing_indicator=True), True, True),
    "naive Bayes, ml": (lambda: CGNClassifier("naive_bayes", estimation="ml", sharing=0.3), False, True),
    "TAN": (lambda: CGNClassifier("tan", sharing=0.4), False, True),
    "TAN, counted separately": (lambda: CGNClassifier("tan"), True, True),
    "TAN, discriminative": (lambda: CGNClassifier("tan", estimation="discriminative"), False, True),
    "complete, continuous only": (lambda: CGNClassifier(Jan([[0, 1, 2, 3], [4, 5], [6]]), sharing=1.0), False, True),
    "complete, ml": (lambda: CGNClassifier(Jan([[0, 1, 2, 3], [4], [6]]), estimation="ml"), False, True),
    "complete, paper": (lambda: CGNClassifier(Jan([[4, 0, 1, 2, 3]]), prior=Prior(location="paper")), False, True),
    "groups with cells": (lambda: CGNClassifier(Jan([[4, 5, 0, 1], [6, 2, 3]])), True, True),
    "any structure": (
        lambda: CGNClassifier({0: [], 1: [0, 4], 2: [0], 3: [1, 2], 4: [], 5: [4], 6: [4, 5]}),
        False,
        True,
    ),
    "any structure, separately": (
        lambda: CGNClassifier({0: [], 1: [0, 4], 2: [0], 3: [1, 2], 4: [], 5: [4], 6: [4, 5]}, sharing=0.2),
        True,
        True,
    ),
    "any structure, ml": (
        lambda: CGNClassifier({0: [], 1: [0, 4], 2: [0, 1], 3: [1, 2], 4: [], 5: []}, estimation="ml"),
        False,
        True,
    ),
    "TAN, ranges": (lambda: CGNClassifier("tan", sharing=0.4, prior=RANGES), False, True),
    "naive Bayes, ranges": (lambda: CGNClassifier(sharing=0.4, prior=RANGES), False, True),
    "selective naive Bayes, ranges": (lambda: CGNClassifier("selective_naive_bayes", prior=RANGES), False, True),
    "a chain with levels": (
        lambda: CGNClassifier({4: [], 5: [4], 0: [5], 1: [5], 6: [5], 2: [0], 3: [2]}),
        True,
        True,
    ),
    "band": (lambda: CGNClassifier(Band(3)), False, True),
    "box, discriminative": (lambda: CGNClassifier(Box(2), estimation="discriminative"), False, True),
    "forward search": (lambda: CGNClassifier("fwgjan"), False, True),
    "selective naive Bayes": (lambda: CGNClassifier("selective_naive_bayes", sharing=1.0), True, True),
    "TAN average": (lambda: CGNClassifier("tan_average"), False, False),
    "band average": (lambda: CGNClassifier(BandAverage(3)), False, False),
    "mixture": (lambda: CGNClassifierCV(candidates=MEMBERS, max_members=None), False, True),
    "mixture, incomplete": (lambda: CGNClassifierCV(candidates=MEMBERS, max_members=None), True, True),
    "mixture, some need complete samples": (
        lambda: CGNClassifierCV(candidates=["tan_average", "naive_bayes", "tan"], class_prior=[0.2, 0.3, 0.5]),
        False,
        True,
    ),
    "mixture, ordered": (
        lambda: CGNClassifierCV(candidates=["band", "box", "band_average"], ordered=True),
        False,
        False,
    ),
}

QUICK = [
    "naive Bayes, indicators",
    "TAN, counted separately",
    "complete, paper",
    "box, discriminative",
    "any structure, ml",
]
QUICK += ["a chain with levels", "selective naive Bayes", "TAN average", "band average", "mixture"]
EVERY_CASE = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


@cache
def fitted(name):
    make, incomplete, _ = CASES[name]
    n = 60 if name == "mixture, incomplete" else 150  # it fits every candidate by folds, which is slow
    X, y = table(n, 0, missing=0.15 if incomplete else 0.0)
    return make().fit(X, y)


@cache
def described(name):
    """The portable description, which for a mixture takes as long as a fit."""
    return description(fitted(name))


def samples(name, n=40):
    """New samples, as far from the training data as they come, with missing values where the model allows them."""
    X, _ = table(n, 1, missing=0.3 if CASES[name][2] else 0.0, unknown=CASES[name][2])
    X.loc[X.index[-1], "d"] = 1e6
    return X


def cells(X):
    """Lists of plain values, None where one is missing."""
    return [[None if pd.isna(cell) else cell for cell in row] for row in X.astype(object).to_numpy().tolist()]
