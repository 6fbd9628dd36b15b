"""Inner choices of every kind of model part no group."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import Band, CGNClassifier
from cgnlearn.evaluation.grouped import fit_options, last_step, steps_before


@pytest.fixture
def rows(rng):
    groups = np.repeat(np.arange(20), 3)
    y = groups % 2
    return np.repeat(rng.normal(size=(20, 6)), 3, axis=0) + 0.1 * rng.normal(size=(60, 6)), y, groups


def test_groups_reach_the_last_step_of_pipelines_within_pipelines(rows):
    X, y, groups = rows
    classifier = CGNClassifier(Band("cv", k_max=4), likelihood_power="cv")
    model = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), classifier))
    model.fit(X, y, **fit_options(model, y, groups))
    scaled = X
    for step in steps_before(model):
        scaled = step.transform(scaled)
    grouped = CGNClassifier(Band("cv", k_max=4), likelihood_power="cv").fit(scaled, y, groups=groups)
    ungrouped = CGNClassifier(Band("cv", k_max=4), likelihood_power="cv").fit(scaled, y)
    assert last_step(model).likelihood_power_ == grouped.likelihood_power_ != ungrouped.likelihood_power_
    assert fit_options(model, y, None) == {}


@pytest.mark.parametrize("cv", [None, 4, StratifiedKFold(4)])
def test_others_that_cross_validate_get_folds(rows, cv):
    _, y, groups = rows
    model = make_pipeline(StandardScaler(), LogisticRegressionCV(cv=cv))
    assert fit_options(model, y, groups) == {}
    folds = last_step(model).cv
    assert len(folds) == (5 if cv is None else 4)
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(60))


def test_the_last_step_of_a_pipeline_gets_the_groups():
    model = make_pipeline(StandardScaler(), CGNClassifier(likelihood_power="cv"))
    assert list(fit_options(model, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))) == ["cgnclassifier__groups"]
