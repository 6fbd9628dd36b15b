"""Random tables of the worst kind, through every structure and the mixture: an answer, or one sentence why not."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from cgnlearn import TAN, Band, Box, CGNClassifier, CGNClassifierCV, GreedyJan, Structure, load, save
from cgnlearn.networks.estimation import SampleNotAcceptableError
from cgnlearn.networks.model import NotExactError

QUICK = ["naive_bayes", "complete", "tan"]
SENTENCES = (ValueError, SampleNotAcceptableError, NotExactError)
MANY = 2000  # five minutes of a processor
MIXED, SAVED = 80, 13  # one table in so many is also fitted by the mixture, and has its model saved
OPTIONS = [
    {},
    {"sharing": 0.3},
    {"sharing": 1.0},
    {"estimation": "ml"},
    {"estimation": "discriminative"},
    {"missing_indicator": True},
    {"likelihood_power": "cv", "sharing": "cv"},
]


def hostile_table(rng):
    """A table with some of: few samples, missing values, constants, any scale, rare levels, equal columns, weights."""
    n, n_classes = int(np.exp(rng.uniform(np.log(4), np.log(51)))), int(rng.integers(2, 5))
    y = rng.integers(0, n_classes, n)
    y[:2] = 0, 1
    if rng.random() < 0.3:
        y[2:] = np.where(y[2:] == 1, 0, y[2:])  # a class of one sample
    columns = {}
    for i in range(rng.integers(0, 6)):
        values = rng.normal(size=n) + rng.integers(0, 3) * y
        kind = rng.random()
        if kind < 0.15:
            values = np.full(n, rng.choice([0.0, 1.0, -3.7, 0.1]))
        elif kind < 0.25:
            values = np.round(values)
        elif kind < 0.3:
            values = np.where(np.arange(n) == 1, 1.0, 0.0)
        elif kind < 0.4:
            values = values + 10 ** rng.uniform(0, 9)
        columns[f"x{i}"] = values * 10 ** rng.uniform(-8, 9)
        if rng.random() < 0.15:
            columns[f"x{i} again"] = columns[f"x{i}"] * rng.choice([1.0, -2.0])
    for i in range(rng.integers(0 if columns else 1, 4)):
        levels = rng.choice(["a", "b", "c", "d"], n, p=rng.dirichlet(np.full(4, 0.3)))
        declared = ["a", "b", "c", "d", "e"] if rng.random() < 0.3 else None
        columns[f"c{i}"] = pd.Categorical(levels, categories=declared)
    X = pd.DataFrame(columns)
    X = X[rng.permutation(X.columns)]
    for name in X:
        share = rng.choice([0.0, 0.0, 0.1, 0.5, 0.9, 1.0], p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05])
        X[name] = X[name].where(rng.random(n) >= share)
    weights = None
    if rng.random() < 0.3:
        weights = np.where(rng.random(n) < 0.2, 0.0, rng.choice([0.3, 1.0, 2.0, 7.5], n))
        weights[:2] = 1.0
    return X, y, weights


def random_graph(rng, X):
    """A graph in which no discrete feature has a continuous parent."""
    names = sorted(X, key=lambda name: (X[name].dtype != "category", rng.random()))
    return Structure.from_parents(
        {
            name: [other for other in names[:i] if rng.random() < 0.4 and not (name[0] == "c" and other[0] == "x")]
            for i, name in enumerate(names)
        }
    )


def structures(rng, X):
    """Every structure, under one of the options."""
    search = {"cv": 3, "estimation": str(rng.choice(["ml", "bayes"]))}
    return [
        *QUICK,
        "selective_naive_bayes",
        "tan_average",
        "band_average",
        "band",
        TAN("mutual_information"),
        Band(int(rng.integers(2, 4))),
        Box(2),
        random_graph(rng, X),
        GreedyJan(str(rng.choice(["forward", "backward", "condensed"])), **search),
    ]


def refused(task, *args):
    """What a task returns, or None if it is refused in one sentence."""
    try:
        return task(*args)
    except ValueError as error:
        if type(error) in SENTENCES and re.fullmatch(r".{20,400}", str(error)):
            return None
        raise


def assert_probabilities(found, n):
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    assert len(found) == n


def check(model, X, y, weights, other, ranked, path=None):
    """Fit; what was fitted must predict these samples and others, rank them, and be saved."""
    if refused(model.fit, X, y, weights) is None:
        return False
    if weights is not None:
        X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]  # what the model has seen
    assert_probabilities(model.predict_proba(X), len(X))
    if refused(model.predict_proba, other) is None:
        other = X  # averages refuse missing values where training had none
    assert_probabilities(model.predict_proba(other), len(other))
    assert not np.isnan(model.score_samples(other)).any()
    held_out = refused(model.leave_one_out_log_proba, X, y, weights)
    assert held_out is None or not np.isnan(held_out).any()
    if ranked:
        typicality = refused(model.typicality, other)
        assert typicality is None or ((typicality > 0) & (typicality <= 1)).all()
    if path is not None:
        save(model, path)
        np.testing.assert_allclose(load(path).predict_proba(other), model.predict_proba(other), rtol=1e-9, atol=1e-12)
    return True


def check_tables(seeds, path, candidates):
    """One structure for each table, all in turn, and now and then the mixture and a model file."""
    n_fitted = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, y, weights = hostile_table(rng)
        other = X.where(rng.random(X.shape) >= 0.3)[:4]  # each has its own pattern of missing values
        every = structures(rng, X)
        models = [CGNClassifier(every[seed % len(every)], **OPTIONS[rng.integers(len(OPTIONS))])]
        if seed % MIXED == 0:
            models.append(CGNClassifierCV(candidates=candidates))
        for model in models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of weights, few samples and folds; others are errors
                try:
                    saved = path if seed % SAVED == 0 else None
                    n_fitted += check(model, X, y, weights, other, seed % 5 < 2, saved)  # ranks take the most time
                except Exception as error:
                    raise AssertionError(f"{model!r} on the table of seed {seed}") from error
    assert n_fitted > len(seeds) / 4  # most tables can be fitted


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Typicality from few draws and refits: what can fail does not depend on their number."""
    for name, number in (("MOST_DRAWS", 50), ("LEAST_DRAWS", 50), ("MOST_REFITS", 6), ("LEAST_REFITS", 4)):
        monkeypatch.setattr(f"cgnlearn.networks.typicality.{name}", number)


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_hostile_tables_have_an_answer_or_one_sentence(start, tmp_path):
    check_tables(range(start, start + 20), tmp_path / "model", [*QUICK, "logistic"])


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, MANY, 100))
def test_many_hostile_tables_have_an_answer_or_one_sentence(start, tmp_path):
    check_tables(range(start, start + 100), tmp_path / "model", None)
