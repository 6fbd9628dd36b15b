"""Risk-coverage curves and prediction sets against counts by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from cgnlearn.data.splits import Split
from cgnlearn.evaluation.abstention import prediction_sets, risk_coverage
from cgnlearn.evaluation.run import Unit
from cgnlearn.evaluation.study import FoldResult, Study

N, N_FOLDS = 300, 5


@pytest.fixture
def study():
    rng = np.random.default_rng(0)
    true = rng.choice(3, N, p=[0.5, 0.3, 0.2])
    log_proba = log_softmax(1.2 * np.eye(3)[true] + rng.normal(size=(N, 3)), axis=1)
    fold = np.arange(N) % N_FOLDS
    splits = [Split(0, k, np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(N_FOLDS)]
    made = Study("a set", pd.DataFrame({"a": np.zeros(N)}), np.array(list("abc"))[true], {"m": None}, splits)
    results = [FoldResult(Unit("m", 0, split.fold), split.test, log_proba[split.test]) for split in splits]
    return replace(made, results=results)


def predictions(study):
    log_proba = np.empty((N, 3))
    for result in study.results:
        log_proba[result.rows] = result.log_proba
    return log_proba


def test_the_curve_counts_errors_among_the_most_certain(study):
    log_proba = predictions(study)
    found = risk_coverage(log_proba, study.true)
    order = np.argsort(-log_proba.max(axis=1))
    wrong = (log_proba.argmax(axis=1) != study.true)[order]
    np.testing.assert_allclose(found.coverage, np.arange(1, N + 1) / N)
    np.testing.assert_allclose(found.risk, [wrong[:n].mean() for n in range(1, N + 1)])
    assert found.at(1) == wrong.mean()
    assert found.at(0.5) == wrong[: N // 2].mean()


def test_equally_certain_samples_are_decided_together():
    found = risk_coverage(np.log(np.full((6, 2), 0.5)), np.array([0, 1, 0, 0, 1, 1]))
    np.testing.assert_array_equal(found, [[1.0], [0.5]])


def test_sets_hold_the_classes_that_the_other_folds_do_not_exclude(study):
    log_proba, found = predictions(study), prediction_sets(study, "m", 0.8)
    fold, sets = np.arange(N) % N_FOLDS, np.zeros((N, 3), bool)
    for row in range(N):
        for code in range(3):
            others = log_proba[(fold != fold[row]) & (study.true == code), code]
            sets[row, code] = (1 + (others <= log_proba[row, code]).sum()) / (1 + len(others)) > 1 - 0.8
    hit, size = sets[np.arange(N), study.true], sets.sum(axis=1)
    assert found.covered.value == pytest.approx(hit.mean())
    assert found.by_class["c"].value == pytest.approx(hit[study.true == 2].mean())
    assert (found.single, found.several, found.empty) == pytest.approx(
        [(size == 1).mean(), (size > 1).mean(), (size == 0).mean()]
    )
    assert found.correct == pytest.approx(hit[size == 1].mean())
    assert found.abstains == pytest.approx(1 - found.single)
    assert found.size == pytest.approx(size.mean())
    assert found.covered.low < 0.8 < found.covered.high


def test_a_test_set_and_a_class_of_one_fold_have_no_sets(study):
    assert prediction_sets(replace(study, results=study.results[:1]), "m") is None
    alone = np.where(np.arange(N) % N_FOLDS == 0, "c", np.where(np.arange(N) % 2, "a", "b"))
    assert prediction_sets(replace(study, y=alone), "m") is None
