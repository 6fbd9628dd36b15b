"""Cross-validation, its metrics, and the folder it goes on from."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import cross_val_score

from cgnlearn import CGNClassifier
from cgnlearn.evaluation import (
    Task,
    accuracy,
    brier,
    calibration_error,
    cll,
    cut,
    evaluate,
    reliability,
    summarise,
)
from cgnlearn.results import OtherResults, Results, summary_text

X, Y = load_iris(return_X_y=True)
LABELS = np.array(["a", "b", "c"])[Y]
MODELS = {"bayes": CGNClassifier(), "ml": CGNClassifier(parameters="ml"), "none": DummyClassifier()}


def test_splits_are_stratified_repeated_and_seeded():
    splits = cut(LABELS, n_folds=5, n_repeats=3, seed=4)
    assert [(s.repeat, s.fold) for s in splits] == [(r, f) for r in range(3) for f in range(5)]
    for repeat in range(3):
        tests = [s.test for s in splits if s.repeat == repeat]
        np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(150))
        assert all(np.bincount(Y[test]).tolist() == [10, 10, 10] for test in tests)
    assert not np.array_equal(splits[0].test, splits[5].test)
    again = cut(LABELS, n_folds=5, n_repeats=1, seed=5)
    np.testing.assert_array_equal(again[0].test, splits[5].test)


def test_groups_stay_together():
    groups = np.repeat(np.arange(30), 5)
    for split in cut(LABELS, groups=groups, n_folds=5, n_repeats=2):
        assert not set(groups[split.train]) & set(groups[split.test])


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (["a"] * 9, {}, "one class only"),
        (["a"] * 9 + ["b"], {}, "class 'b' has 1 of the rows"),
        (["a"] * 9 + ["b"] * 2, {"groups": np.repeat(np.arange(6), 2)[:11]}, None),
        (
            ["a"] * 9 + ["b"] * 2,
            {"groups": np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])},
            "class 'b' has 1 of the groups",
        ),
        (["a"] * 9 + ["b"] * 2, {"n_folds": 12}, "12 folds are more than the 9 rows"),
        (["a"] * 9 + ["b"] * 2, {"n_folds": 1}, "at least 2 folds"),
    ],
)
def test_impossible_splits_are_refused(y, options, message):
    options = {"n_folds": 2, **options}
    if message is None:
        assert cut(np.array(y), **options)
    else:
        with pytest.raises(ValueError, match=message):
            cut(np.array(y), **options)


def test_a_class_with_fewer_rows_than_folds_is_still_trained_on():
    y = np.array(["a"] * 20 + ["b"] * 3)
    assert all((y[split.train] == "b").sum() >= 2 for split in cut(y, n_folds=10))


def test_evaluation_equals_scikit_learns():
    splits = cut(LABELS, n_folds=4, n_repeats=2)
    pairs = [(s.train, s.test) for s in splits]
    for found in summarise(evaluate(MODELS, X, LABELS, splits), Y):
        model = MODELS[found.model]
        for name, scoring in (("accuracy", "accuracy"), ("cll", "neg_log_loss")):
            theirs = cross_val_score(model, X, LABELS, cv=pairs, scoring=scoring)
            assert found.metrics[name].mean == pytest.approx(theirs.mean(), abs=1e-12)
            assert found.metrics[name].sd == pytest.approx(theirs.std(ddof=1), abs=1e-12)
        assert (found.n_folds, found.n_without) == (8, 0)


def test_metrics_by_hand():
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.35, 0.65]])
    true = np.array([0, 1, 1, 1])
    logs = np.log(proba)
    assert accuracy(logs, true) == accuracy_score(true, proba.argmax(axis=1)) == 0.75
    assert cll(logs, true) == pytest.approx(-log_loss(true, proba))
    assert brier(logs, true) == pytest.approx(2 * np.mean([0.1**2, 0.8**2, 0.3**2, 0.35**2]))
    # bins 0.9: one right; 0.8: one wrong; 0.7: one right; 0.6: one right
    assert calibration_error(logs, true) == pytest.approx(np.mean([0.1, 0.8, 0.3, 0.35]))
    bins = reliability(np.array([0.05, 0.01, 1.0]), np.array([True, False, True]))
    assert (bins.n.tolist(), bins.observed.tolist()) == ([2, 1], [0.5, 1.0])
    np.testing.assert_allclose(bins.predicted, [0.03, 1.0])


def test_folds_without_maximum_likelihood_are_counted_not_hidden():
    wide = np.column_stack([X, np.random.default_rng(0).normal(size=(150, 60))])
    models = {"ml": CGNClassifier("complete", parameters="ml"), "bayes": CGNClassifier("complete")}
    ml, bayes = summarise(evaluate(models, wide, LABELS, cut(LABELS, n_folds=3)), Y)
    assert (ml.n_without, ml.metrics) == (3, {})
    assert bayes.n_without == 0
    assert summary_text([ml]).splitlines()[1] == "ml,3,3,,,,,,,,"


def test_jobs_do_not_change_results():
    splits = cut(LABELS, n_folds=3)
    one, two = (list(evaluate(MODELS, X, LABELS, splits, n_jobs=jobs)) for jobs in (1, 2))
    assert [r.task for r in one] == [r.task for r in two]
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours.log_proba, theirs.log_proba)


# ---- the folder


def store_in(folder, **manifest):
    return Results(folder, {"seed": 0, **manifest}, np.arange(150) + 2, LABELS, ["a", "b", "c"])


def run(folder, stop_after=None):
    """A run that may be interrupted, and the results it ends with."""
    store, splits = store_in(folder), cut(LABELS, n_folds=3)
    results = store.open(splits)
    done = {result.task for result in results}
    for result in evaluate(MODELS, X, LABELS, splits, done=done):
        if len(results) == stop_after:
            return results
        store.append(result)
        results.append(result)
    store.write_summary(summarise(results, Y))
    return results


def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path):
    clean = run(tmp_path / "clean")
    whole = (tmp_path / "clean" / "rows.csv").read_bytes()
    rng = np.random.default_rng(0)
    folder = tmp_path / "broken"
    for place in [0, len(whole) - 1, *rng.integers(1, len(whole), 25).tolist()]:
        run(folder, stop_after=1)
        (folder / "rows.csv").write_bytes(whole[:place])  # as if killed while writing
        results = run(folder)
        assert (folder / "rows.csv").read_bytes() == whole
        assert (folder / "summary.csv").read_bytes() == (tmp_path / "clean" / "summary.csv").read_bytes()
        for ours, theirs in zip(results, clean, strict=True):
            assert ours.task == theirs.task
            np.testing.assert_array_equal(ours.log_proba, theirs.log_proba)


def test_what_is_done_is_not_done_again(tmp_path):
    run(tmp_path, stop_after=4)
    splits = cut(LABELS, n_folds=3)
    results = store_in(tmp_path).open(splits)
    todo = evaluate(MODELS, X, LABELS, splits, done={result.task for result in results})
    expected = [Task(model, 0, fold) for fold in range(3) for model in MODELS]
    assert [result.task for result in results] == expected[:4]
    assert [result.task for result in todo] == expected[4:]


def test_results_of_other_settings_are_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(OtherResults, match=r"another seed \(0, not 1\): choose another folder"):
        store_in(tmp_path, seed=1).open([])
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(OtherResults, match="cannot be read"):
        store_in(tmp_path).open([])


def test_missing_answers_survive_the_folder(tmp_path):
    wide = np.column_stack([X, np.random.default_rng(0).normal(size=(150, 60))])
    models = {"ml": CGNClassifier("complete", parameters="ml")}
    splits = cut(LABELS, n_folds=3)
    store = store_in(tmp_path)
    store.open(splits)
    for result in evaluate(models, wide, LABELS, splits):
        store.append(result)
    assert [r.log_proba for r in store_in(tmp_path).open(splits)] == [None] * 3
