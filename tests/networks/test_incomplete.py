"""Tables with missing values through the estimator: marks of missing values, unknown levels, indicators, files."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.utils import get_tags

from cgnlearn import CGNClassifier, SampleNotAcceptableError, SelectiveNaiveBayes, Structure, fit_stream, load, save
from cgnlearn.streams import predict_stream


@pytest.fixture
def incomplete_data():
    """Iris with a categorical column; two columns have missing values, the first one more in the last class."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["site"] = np.where(rng.random(150) < 0.3 + 0.2 * y, "left", "right")
    frame.loc[rng.random(150) < 0.1 + 0.2 * y, "b"] = np.nan
    frame["site"] = pd.Categorical(frame["site"].where(rng.random(150) > 0.2))
    return frame, y


def test_the_tag_says_so():
    assert get_tags(CGNClassifier()).input_tags.allow_nan


def test_every_library_gives_the_same_answer(incomplete_data):
    frame, y = incomplete_data
    expected = CGNClassifier("naive_bayes").fit(frame, y).predict_proba(frame)
    assert np.isfinite(expected).all()
    objects = frame.astype(object).where(frame.notna(), None)
    coded = frame.assign(site=frame["site"].cat.codes.replace(-1, np.nan)).to_numpy(float)
    masked = frame.assign(site=frame["site"].astype("string")).convert_dtypes()
    for X, chosen in (
        (pl.from_pandas(frame), "from_dtype"),
        (pl.from_pandas(frame).to_arrow(), "from_dtype"),
        (frame.convert_dtypes(dtype_backend="pyarrow"), ["site"]),
        (masked, ["site"]),
        (objects, ["site"]),
        (objects.to_numpy(), [4]),
        (coded, [4]),
    ):
        model = CGNClassifier(categorical_features=chosen).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", Structure.from_parents({0: [], 1: [0], 2: [1]})])
def test_a_column_that_is_missing_throughout_says_nothing(structure, incomplete_data):
    frame, y = incomplete_data
    frame = frame[["a", "b", "c"]]
    whole = frame.assign(d=np.nan)
    larger = structure
    if isinstance(structure, Structure):
        larger = Structure.from_parents({**structure.parents, 3: [2]})
    expected = CGNClassifier(structure).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a family keeps few samples
        model = CGNClassifier(larger).fit(whole, y)
    np.testing.assert_allclose(model.predict_proba(whole), expected.predict_proba(frame), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(whole.assign(d=3.0)), expected.predict_proba(frame), rtol=1e-9)


def test_a_categorical_column_without_a_level_says_nothing(incomplete_data):
    frame, y = incomplete_data
    X = frame[["a", "b"]]
    expected = CGNClassifier().fit(X, y).predict_proba(X)
    for empty in ([None] * 150, pd.Categorical([None] * 150), pd.Categorical([None] * 150, categories=["u", "v"])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = CGNClassifier(categorical_features=["e"]).fit(X.assign(e=empty), y)
        np.testing.assert_allclose(model.predict_proba(X.assign(e=empty)), expected, rtol=1e-12)
    with pytest.warns(UserWarning, match="column 'e' is observed in 0% of the samples"):
        model = CGNClassifier(categorical_features=["e"]).fit(X.assign(e=[None] * 150), y)
    with pytest.warns(UserWarning, match="count as missing: 150 in column 'e'"):
        np.testing.assert_allclose(model.predict_proba(X.assign(e="w")), expected, rtol=1e-12)
    drawn, _ = model.sample(3, random_state=0)
    assert drawn["e"].isna().all()


def test_missing_labels_and_weights_are_still_refused(incomplete_data):
    frame, y = incomplete_data
    with pytest.raises(ValueError, match=r"y has missing values \(NaN\), the first in sample 2"):
        CGNClassifier().fit(frame, np.where(np.arange(150) == 2, np.nan, y))
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        CGNClassifier().fit(frame, y, sample_weight=np.where(np.arange(150) == 2, np.nan, 1.0))
    with pytest.raises(ValueError, match="column 'a' holds infinity in sample 0"):
        CGNClassifier().fit(frame.assign(a=-np.inf), y)
    with pytest.raises(ValueError, match="column 'b' holds infinity in sample 149"):
        CGNClassifier().fit(frame, y).predict(frame.assign(b=np.where(np.arange(150) == 149, np.inf, frame["b"])))


def test_more_columns_than_rows_take_whole_rows():
    X = np.random.default_rng(0).normal(size=(8, 301))
    y = np.arange(8) % 2
    incomplete_data = np.where(np.arange(301) == 7, np.nan, X)
    model = CGNClassifier("complete").fit(X, y)
    for work in (
        lambda: CGNClassifier("complete").fit(incomplete_data, y),
        lambda: model.predict(incomplete_data),
        lambda: model.leave_one_out_log_proba(incomplete_data, y),
    ):
        with pytest.raises(ValueError, match=r"column 7 has missing values, and .*: impute them or drop"):
            work()


# ---- unknown levels


def test_handle_unknown_are_missing_with_a_warning_or_refused(incomplete_data):
    frame, y = incomplete_data
    other = frame.assign(site=["above"] * 3 + ["left"] * 146 + [None])
    as_missing = frame.assign(site=pd.Categorical([None] * 3 + ["left"] * 146 + [None]))
    model = CGNClassifier("complete", categorical_features=["site"]).fit(frame, y)
    for method in ("predict", "predict_proba", "score_samples", "contributions", "typicality"):
        with pytest.warns(UserWarning, match="unknown from training count as missing: 3 in column 'site'") as caught:
            found = getattr(model, method)(other)
        assert len(caught) == 1
        np.testing.assert_array_equal(found, getattr(model, method)(as_missing))
    strict = CGNClassifier(categorical_features=["site"], handle_unknown="error").fit(frame, y)
    with pytest.raises(ValueError, match="column 'site' has the level 'above', unknown from training"):
        strict.predict(other)
    strict.set_params(handle_unknown="missing")  # what was fitted stays as it was
    with pytest.raises(ValueError, match="column 'site' has the level 'above', unknown from training"):
        strict.predict(other)
    with pytest.raises(ValueError, match="column 'site' has the level 'above', unknown from training"):
        model.partial_fit(other, y)  # which would be training on what it does not know
    with pytest.raises(ValueError, match=r"handle_unknown must be .* not 'drop'"):
        CGNClassifier(handle_unknown="drop").fit(frame, y)


# ---- indicators


def with_columns(frame):
    """The same, and what the indicators of its columns with missing values would be as columns."""
    incomplete = [name for name in frame if frame[name].isna().any()]
    return frame.assign(**{f"{name} is missing": pd.Categorical(frame[name].isna()) for name in incomplete}), incomplete


def explicit(model, frame):
    """The structure of a model and parentless indicators."""
    _, incomplete = with_columns(frame)
    return Structure.from_parents(model.structure_.parents | {f"{name} is missing": [] for name in incomplete})


@pytest.mark.parametrize("structure", ["naive_bayes", "complete"])
@pytest.mark.parametrize("options", [{}, {"sharing": 1.0}, {"estimation": "ml"}], ids=str)
def test_indicators_are_columns_that_depend_on_the_class_alone(structure, options, incomplete_data):
    frame, y = incomplete_data
    whole, incomplete = with_columns(frame)
    assert incomplete == ["b", "site"]
    model = CGNClassifier(structure, missing_indicator=True, **options).fit(frame, y)
    other = CGNClassifier(explicit(model, frame), **options).fit(whole, y)
    joint = model.predict_joint_log_proba(frame)
    np.testing.assert_allclose(joint, other.predict_joint_log_proba(whole), rtol=1e-10)
    np.testing.assert_allclose(model.score_samples(frame), other.score_samples(whole), rtol=1e-10)
    if options != {"estimation": "ml"} or structure == "naive_bayes":  # else there is no closed form
        np.testing.assert_allclose(
            model.leave_one_out_log_proba(frame, y), other.leave_one_out_log_proba(whole, y), rtol=1e-9, atol=1e-12
        )
    apart = model.contributions(frame)
    assert apart.shape == (150, 5, 3)
    np.testing.assert_allclose(apart.sum(axis=1) + model.class_log_prior_, joint, rtol=1e-10)
    of_other = other.contributions(whole)
    np.testing.assert_allclose(apart[:, 1], of_other[:, 1] + of_other[:, 5], rtol=1e-10)
    assert model.n_parameters_ == other.n_parameters_
    if not options:
        assert model.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-12)
    # A missing value where training had none says nothing.
    one = frame.iloc[:1].assign(c=np.nan)
    np.testing.assert_allclose(
        model.predict_log_proba(one), other.predict_log_proba(whole.iloc[:1].assign(c=np.nan)), rtol=1e-10
    )


def test_the_likelihood_power_is_chosen_with_the_indicators(incomplete_data):
    frame, y = incomplete_data
    whole, _ = with_columns(frame)
    for groups in (None, np.arange(150) // 2):
        options = {"sharing": "cv", "likelihood_power": "cv"}
        model = CGNClassifier(missing_indicator=True, **options).fit(frame, y, groups=groups)
        other = CGNClassifier(**options).fit(whole, y, groups=groups)
        without = CGNClassifier(**options).fit(frame, y, groups=groups)
        for name in ("mean_test_log_loss", "mean_test_accuracy"):
            np.testing.assert_allclose(model.cv_results_[name], other.cv_results_[name], rtol=1e-9)
        losses = (each.cv_results_["mean_test_log_loss"] for each in (model, without))
        assert not np.allclose(*losses, rtol=1e-4)
        assert model.sharing_ == other.sharing_
        assert model.likelihood_power_ == pytest.approx(other.likelihood_power_, rel=1e-6)


def test_indicators_add_up_however_the_rows_come(incomplete_data):
    frame, y = incomplete_data
    # Of a given graph: fit alone can look at all samples, and orders the members of a group by how complete they are.
    graph = Structure.from_parents({"site": [], "a": ["site"], "b": ["a"], "c": ["a", "b"], "d": []})
    whole = CGNClassifier(graph, missing_indicator=True).fit(frame, y)
    expected = whole.predict_proba(frame)
    parts = CGNClassifier(graph, missing_indicator=True)
    for rows in (slice(0, 150, 3), slice(1, 150, 3), slice(2, 150, 3)):
        parts.partial_fit(frame[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.predict_proba(frame), expected, rtol=1e-9)
    # Where missing values lie may differ from part to part.
    complete = frame["b"].notna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one part lacks a column
        pieces = [CGNClassifier(graph).fit(frame[which], y[which]).statistics_ for which in (complete, ~complete)]
    merged = CGNClassifier.from_statistics(sum(pieces), structure=graph, missing_indicator=True)
    np.testing.assert_allclose(merged.predict_proba(frame), expected, rtol=1e-9)
    doubled = CGNClassifier(graph, missing_indicator=True).fit(frame, y, sample_weight=np.full(150, 2.0))
    repeated = CGNClassifier(graph, missing_indicator=True).fit(pd.concat([frame, frame]), np.tile(y, 2))
    np.testing.assert_allclose(doubled.predict_proba(frame), repeated.predict_proba(frame), rtol=1e-9)


def test_indicators_beside_an_average(incomplete_data):
    frame, y = incomplete_data
    model = CGNClassifier(SelectiveNaiveBayes(), missing_indicator=True).fit(frame, y)
    plain = CGNClassifier(SelectiveNaiveBayes()).fit(frame, y)
    np.testing.assert_array_equal(model.inclusion_probability_, plain.inclusion_probability_)
    added = model.predict_joint_log_proba(frame) - plain.predict_joint_log_proba(frame)
    counts = np.bincount(y[frame["b"].isna()])
    b_missing = frame["b"].isna() & frame["site"].notna()
    b_observed = frame["b"].notna() & frame["site"].notna()
    odds = np.log((counts + 0.01) / (50 - counts + 0.01))
    np.testing.assert_allclose(added[b_missing][0] - added[b_observed][0], odds, rtol=1e-10)


def test_rows_are_drawn_with_missing_values_as_often_as_training_had_them(incomplete_data):
    frame, y = incomplete_data
    model = CGNClassifier(missing_indicator=True).fit(frame, y)
    drawn, labels = model.sample(20_000, random_state=0)
    assert not drawn["a"].isna().any()
    for name in ("b", "site"):
        for label in range(3):
            seen, meant = drawn[name][labels == label].isna().mean(), frame[name][y == label].isna().mean()
            assert seen == pytest.approx(meant, abs=0.02)
    assert not CGNClassifier().fit(frame, y).sample(100, random_state=0)[0].isna().any(axis=None)


def test_what_indicators_cannot_do_is_said_in_one_line(incomplete_data):
    frame, y = incomplete_data
    frame = frame.assign(a=frame["a"].where(np.arange(150) > 5))
    for options, kind, message in (
        (
            {"estimation": "ml"},
            SampleNotAcceptableError,
            "needs samples of class 1 in which column 'a' is missing: use",
        ),
        ({"estimation": "discriminative"}, ValueError, "missing_indicator=True needs estimation="),
        ({"missing_indicator": "yes"}, ValueError, "missing_indicator must be True or False, not 'yes'"),
    ):
        with pytest.raises(kind, match=message) as caught:
            CGNClassifier(**{"missing_indicator": True} | options).fit(frame[["a", "b"]], y)
        assert "\n" not in str(caught.value)


def test_statistics_with_few_missing_values_are_not_given_away(incomplete_data, tmp_path):
    frame, y = incomplete_data
    frame = frame[["a", "b"]].assign(b=np.where(np.arange(150) < 3, np.nan, 1.0 + frame["a"]))
    statistics = CGNClassifier().fit(frame, y).statistics_
    save(statistics, tmp_path / "a.stats", minimum_cell=3)
    with pytest.raises(ValueError, match="column 'b' is missing in 3 samples of class 0, fewer than 5"):
        save(statistics, tmp_path / "b.stats", minimum_cell=5)


# ---- files and streams


def test_models_of_tables_with_missing_values_are_saved(incomplete_data, tmp_path):
    frame, y = incomplete_data
    model = CGNClassifier("complete", missing_indicator=True, handle_unknown="error").fit(frame, y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(again.typicality(frame), model.typicality(frame))
    with pytest.raises(ValueError, match="unknown from training"):
        again.predict(frame.assign(site="above"))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_streams_count_observed_values(form, incomplete_data, tmp_path):
    frame, y = incomplete_data
    rows = frame.assign(site=frame["site"].astype(object), nothing=np.nan, target=np.array(list("xyz"))[y])
    path = tmp_path / f"samples.{form}"
    getattr(rows, f"to_{form}")(path, index=False)
    model = CGNClassifier("naive_bayes", missing_indicator=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit_stream(model, path, "target", batch_rows=40)
        whole = model.fit(frame.assign(nothing=np.nan), y)
    expected = whole.predict_proba(frame.assign(nothing=np.nan))
    np.testing.assert_allclose(np.concatenate(list(predict_stream(found, path, batch_rows=64))), expected, rtol=1e-9)
    rows.assign(target=rows["target"].where(rows.index != 7)).to_csv(tmp_path / "no_label.csv", index=False)
    with pytest.warns(UserWarning, match="1 of 150"):  # without a class
        fit_stream(model, tmp_path / "no_label.csv", "target")


def test_dask_counts_what_rows_with_missing_values_have(incomplete_data):
    dd = pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    from cgnlearn import fit_dask, predict_dask

    frame, y = incomplete_data
    model = CGNClassifier("naive_bayes", missing_indicator=True)
    expected = model.fit(frame, y).predict_proba(frame)
    rows = dd.from_pandas(frame.assign(y=y), npartitions=3)
    found = fit_dask(model, rows[list(frame)], rows["y"])
    np.testing.assert_allclose(predict_dask(found, rows[list(frame)]).compute(), expected, rtol=1e-9)
    coded = da.from_array(
        frame.assign(site=frame["site"].cat.codes.replace(-1, np.nan)).to_numpy(float), chunks=(40, 5)
    )
    found = fit_dask(model.set_params(categorical_features=[4]), coded, da.from_array(y, chunks=40))
    np.testing.assert_allclose(predict_dask(found, coded).compute(), expected, rtol=1e-9)
