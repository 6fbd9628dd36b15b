"""Cross-validation, its summaries, and the folder it goes on from."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_score

from cgnlearn import CGNClassifier
from cgnlearn.data.splits import repeated_splits
from cgnlearn.evaluation.evidence import evidence_of, peaks
from cgnlearn.evaluation.metrics import summary_text
from cgnlearn.evaluation.run import OtherResultsError, Run, Unit
from cgnlearn.evaluation.study import Study, summarise

X, Y = load_iris(return_X_y=True)
LABELS = np.array(["a", "b", "c"])[Y]
MODELS = {"bayes": CGNClassifier(), "ml": CGNClassifier(estimation="ml"), "none": DummyClassifier()}
WIDE = np.column_stack([X, np.random.default_rng(0).normal(size=(150, 60))])


def study_of(models=MODELS, X=X, **folds):
    return Study("iris", X, LABELS, models, repeated_splits(LABELS, **folds), lines=np.arange(150) + 2)


def results_of(study, jobs=1):
    run = Run(study.work())
    for _ in run.go_on(jobs):
        pass
    return run.results


def test_evaluation_equals_scikit_learns():
    study = study_of(n_folds=4, n_repeats=2)
    pairs = [(s.train, s.test) for s in study.splits]
    for found in replace(study, results=results_of(study)).summaries:
        model = MODELS[found.model]
        for name, scoring, sign in (("accuracy", "accuracy", 1), ("log_loss", "neg_log_loss", -1)):
            theirs = cross_val_score(model, X, LABELS, cv=pairs, scoring=scoring)
            over_samples = np.average(theirs, weights=[len(test) for _, test in pairs])
            assert found.metrics[name].mean == pytest.approx(sign * over_samples, abs=1e-12)
            assert found.metrics[name].sd == pytest.approx(theirs.std(ddof=1), abs=1e-12)
        assert (found.n_folds, found.n_without) == (8, 0)


def test_folds_without_maximum_likelihood_are_counted_not_hidden():
    models = {"ml": CGNClassifier("complete", estimation="ml"), "bayes": CGNClassifier("complete")}
    ml, bayes = summarise(results_of(study_of(models, WIDE, n_folds=3)), Y)
    assert (ml.n_without, ml.metrics) == (3, {})
    assert bayes.n_without == 0
    assert summary_text([ml]).splitlines()[1] == "ml,3,3,,,,,,,,"


def test_jobs_do_not_change_results():
    one, two = (results_of(study_of(n_folds=3), jobs) for jobs in (1, 2))
    assert [r.unit for r in one] == [r.unit for r in two]
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours.log_proba, theirs.log_proba)


# ---- the folder


def opened(folder, **settings):
    return Run(study_of(n_folds=3).work({"seed": 0, **settings}), folder)


def run(folder, stop_after=None):
    """A run that may be interrupted, and the results it ends with."""
    started = opened(folder)
    for _ in started.go_on():
        if len(started.results) == stop_after:
            break
    return started.results


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
        assert summary_text(summarise(results, Y)) == summary_text(summarise(clean, Y))
        for ours, theirs in zip(results, clean, strict=True):
            assert ours.unit == theirs.unit
            np.testing.assert_array_equal(ours.log_proba, theirs.log_proba)


def test_damaged_numbers_are_computed_again(tmp_path):
    run(tmp_path)
    whole = (tmp_path / "rows.csv").read_text()
    for was, now in (("bayes,0,0,1,", "bayes,0,0,2,"), (",a,-", ",b,-"), (",a,-", ",a,x-"), (",a,-", ",a,-0")):
        damaged = whole.replace(was, now, 1)
        assert damaged != whole
        (tmp_path / "rows.csv").write_text(damaged)
        assert len(opened(tmp_path).missing) == 1
        run(tmp_path)
        assert (tmp_path / "rows.csv").read_text() == whole


def test_what_is_done_is_not_done_again(tmp_path):
    run(tmp_path, stop_after=4)
    expected = [Unit(model, 0, fold) for fold in range(3) for model in MODELS]
    again = opened(tmp_path)
    assert [result.unit for result in again.results] == expected[:4]
    assert list(again.go_on()) == expected[4:]


def test_results_of_other_settings_are_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(OtherResultsError, match=r"another seed \(0, not 1\): choose another folder"):
        opened(tmp_path, seed=1)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(OtherResultsError, match="is not a manifest"):
        opened(tmp_path)


def test_missing_answers_survive_the_folder(tmp_path):
    work = study_of({"ml": CGNClassifier("complete", estimation="ml")}, WIDE, n_folds=3).work()
    for _ in Run(work, tmp_path).go_on():
        pass
    again = Run(work, tmp_path)
    assert again.missing == []
    assert [result.log_proba for result in again.results] == [None] * 3


def test_contributions_of_a_mixture_are_told_on_its_own_scale():
    """Its members are surer than it is: what they add up to is brought down to what it says."""

    class Mixture:
        n_features_in_, class_log_prior_ = 2, np.log([0.5, 0.5])
        contributions_remainder = None

        def contributions(self, X):
            return np.stack([np.zeros_like(X), 10 * X], axis=2)  # (samples, features, classes)

    X = np.array([[1.0, 2.0], [-1.0, -3.0], [2.0, -1.0]])
    odds = X.sum(axis=1)  # a tenth of what the members say
    log_proba = -np.logaddexp(0, np.column_stack([odds, -odds]))
    found = evidence_of(Mixture(), X, log_proba, np.array([1, 0, 1]))
    np.testing.assert_allclose(found.for_truth, [(1 + 1 + 2) / 3, (2 + 3 - 1) / 3])
    assert dict(found.reasons[0]) == pytest.approx({0: 1.0, 1: 2.0})


def test_bins_between_peaks_are_one_feature():
    X = np.array([[0.0, 1.0, 9.0, 1.0, 0.0, 0.0, 7.0, 0.0]])
    assert peaks(X, np.arange(100.0, 108.0), "m/z").names == ["m/z 102", "m/z 106", "between the peaks"]
