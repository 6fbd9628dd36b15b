"""cgnlearn.report: any classifiers, cross-validated or on a test set."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cgnlearn
from cgnlearn import CGNClassifier


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = pd.DataFrame({"a": 2 * y + rng.normal(size=80), "b": rng.normal(size=80)})
    X["sex"] = np.where(rng.random(80) < 0.5, "f", "m")
    return X, np.array(["no", "yes"])[y]


def test_several_models_are_cross_validated_and_figures_saved(samples, tmp_path):
    X, y = samples
    models = {"naive Bayes": CGNClassifier(), "beside": make_pipeline(StandardScaler(), LogisticRegression())}
    page = cgnlearn.report(models, X[["a", "b"]], y, cv=3, path=tmp_path / "r.html", figures=tmp_path / "figures")
    text = page.read_text(encoding="utf-8")
    assert "naive Bayes tells yes from no" in text
    assert '<th scope="row">beside</th>' in text
    assert '<th scope="row">class frequencies</th>' in text
    saved = {path.name for path in (tmp_path / "figures").iterdir()}
    names = ("calibration", "roc", "decision-curve")
    assert {f"{name}.{ending}" for name in names for ending in ("svg", "pdf")} <= saved
    assert (tmp_path / "figures" / "roc.pdf").read_bytes().startswith(b"%PDF")
    assert len(page.read_bytes()) < 400_000


def test_a_fitted_model_is_scored_on_a_test_set(samples, tmp_path):
    X, y = samples
    model = CGNClassifier().fit(X.iloc[:50], y[:50])
    page = cgnlearn.report(model, X.iloc[50:], y[50:], path=tmp_path / "r.html", positive="no")
    text = page.read_text(encoding="utf-8")
    accuracy = (model.predict(X.iloc[50:]) == y[50:]).mean()
    assert f"{100 * accuracy:.1f}%" in text
    assert "CGNClassifier tells no from yes" in text
    assert "the samples of this test set" in text
    assert "Cross-validation separates samples" not in text
    of_array = LogisticRegression().fit(X[["a", "b"]].to_numpy()[:50], np.arange(50) % 2)
    page = cgnlearn.report(of_array, X[["a", "b"]].to_numpy()[50:], np.arange(50, 80) % 2, path=tmp_path / "array.html")
    assert "LogisticRegression does not compute contributions" in page.read_text(encoding="utf-8")


def test_groups_stay_together(samples, tmp_path):
    X, y = samples
    groups = np.repeat(np.arange(40), 2)
    page = cgnlearn.report({"m": CGNClassifier()}, X, y, groups=groups, cv=3, path=tmp_path / "r.html")
    assert "80 samples in 40 groups" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"estimator": {}}, "there are no models"),
        ({"estimator": "tan"}, "is no classifier"),
        ({"y": ["no", "yes"]}, "X has 80 samples, y 2"),
        ({"groups": [1, 2]}, "groups 2"),
        ({"positive": "maybe"}, "the classes are no, yes"),
        ({"X": [1.0, 2.0]}, "two dimensions"),
    ],
)
def test_wrong_calls_are_told_in_a_sentence(samples, tmp_path, change, told):
    X, y = samples
    words = {"estimator": CGNClassifier(), "X": X, "y": y, "path": tmp_path / "r.html"} | change
    with pytest.raises((ValueError, TypeError), match=told):
        cgnlearn.report(words.pop("estimator"), words.pop("X"), words.pop("y"), **words)


def test_fitted_and_unfitted_models_do_not_mix(samples, tmp_path):
    X, y = samples
    models = {"one": CGNClassifier().fit(X, y), "two": CGNClassifier()}
    with pytest.raises(ValueError, match="some models are fitted, such as 'one'"):
        cgnlearn.report(models, X, y, path=tmp_path / "r.html")
