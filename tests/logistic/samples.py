"""Regressions to test on."""

import numpy as np

from cgnlearn import CGNClassifier
from cgnlearn.logistic.correction import design_of
from cgnlearn.logistic.optimiser import Samples


def discriminative(structure="naive_bayes", **settings):
    return CGNClassifier(structure, estimation="discriminative", **settings)


def samples_of(X, y, sample_weight=None, **settings):
    """The regression of which a discriminative classifier's correction is the solution."""
    model = CGNClassifier(**settings).fit(X, y, sample_weight=sample_weight)
    return design_of(model._model, model._table(X, y, sample_weight)).samples


def random_samples(rng, n=40, n_classes=3, n_features=4, *, offset=True):
    return Samples.of(
        rng.normal(size=(n, n_features)),
        np.arange(n) % n_classes,
        rng.uniform(0.5, 2.0, n),
        rng.normal(size=n_classes),
        rng.normal(size=(n, n_classes)) if offset else None,
    )


def log_proba(samples, point):
    return samples.log_proba(samples.contrasts(point))
