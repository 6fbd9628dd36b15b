"""Results of each class, beside scikit-learn's."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score

from cgnlearn.data.splits import repeated_splits
from cgnlearn.evaluation.by_class import confused_pairs, of_classes
from cgnlearn.evaluation.decisions import auc_by_model, macro_auc, predictions_by_model
from cgnlearn.evaluation.run import Run
from cgnlearn.evaluation.study import Study, in_order, pooled


def study_of(n_classes, **more):
    rng = np.random.default_rng(0)
    y = np.arange(120) % n_classes + 8  # 8, 9, 10, ...
    X = pd.DataFrame(y[:, None] - 9 + 1.2 * rng.normal(size=(120, 2)), columns=["a", "b"])
    models = {"logistic": LogisticRegression(max_iter=1000), "none": DummyClassifier(strategy="prior")}
    study = Study("numbers", X, y.astype(str), models, repeated_splits(y, n_folds=4), **more)
    run = Run(study.work())
    list(run.go_on())
    return replace(study, results=run.results)


@pytest.fixture(scope="module")
def study():
    return study_of(4)


def test_numeric_labels_are_in_numeric_order_and_predictions_follow(study):
    assert study.classes == ["8", "9", "10", "11"]  # the model's own order is 10, 11, 8, 9
    found = next(summary for summary in study.summaries if summary.model == "logistic")
    assert found.metrics["accuracy"].mean > 0.4  # 0.25 in another order
    assert study.counts == {"8": 30, "9": 30, "10": 30, "11": 30}
    assert in_order(["b", "a", "nan"]) == ["a", "b", "nan"]
    assert in_order(["1e1", "2", "nan"]) == ["1e1", "2", "nan"]


def test_recall_and_auc_equal_scikit_learns(study):
    log_proba, true = pooled([r for r in study.results if r.unit.name == "logistic"], study.true)
    proba = np.exp(log_proba)
    recall = recall_score(true, proba.argmax(axis=1), average=None)
    for code, found in enumerate(of_classes(study, "logistic")):
        assert (found.label, found.n) == (study.classes[code], 30)
        assert found.recall.value == pytest.approx(recall[code])
        assert found.auc.value == pytest.approx(roc_auc_score(true == code, proba[:, code]))
        assert found.auc.low < found.auc.value < found.auc.high
    macro = auc_by_model(study)["logistic"]
    assert macro.value == pytest.approx(roc_auc_score(true, proba, multi_class="ovr"))


def test_the_macro_interval_is_as_wide_as_that_of_the_bootstrap(study):
    predictions = predictions_by_model(study)["logistic"]
    log_proba, true = predictions[0]
    rng = np.random.default_rng(0)
    drawn = (rng.integers(len(true), size=len(true)) for _ in range(400))
    values = [roc_auc_score(true[rows], np.exp(log_proba[rows]), multi_class="ovr") for rows in drawn]
    low, high = np.quantile(values, [0.025, 0.975])
    found = macro_auc(predictions)
    assert found.high - found.low == pytest.approx(high - low, rel=0.2)  # Monte Carlo error about 7%


def test_for_two_classes_it_is_the_auc_of_the_positive_one():
    study = study_of(2, positive="9")
    log_proba, true = pooled([r for r in study.results if r.unit.name == "logistic"], study.true)
    assert auc_by_model(study)["logistic"].value == pytest.approx(roc_auc_score(true, log_proba[:, 1]))


def test_confused_pairs_are_the_most_frequent_errors():
    confusion = np.array([[5, 3, 0], [1, 4, 5], [0, 0, 9]])
    found = confused_pairs(["a", "b", "c"], confusion)
    assert [pair[:3] for pair in found] == [("b", "c", 5), ("a", "b", 3), ("b", "a", 1)]
    assert found[0].share == 0.5
    assert len(confused_pairs(["a", "b", "c"], confusion, most=1)) == 1
