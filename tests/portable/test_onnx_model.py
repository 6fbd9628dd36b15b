import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import CGNClassifier, CGNClassifierCV
from cgnlearn.portable.document import description
from cgnlearn.portable.onnx_graph import OPSET
from tests.portable.cases import CASES, QUICK, cells, described, fitted, table

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
AVERAGES = ("TAN average", "band average", "mixture, some need complete samples", "mixture, ordered")
ABLE = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in AVERAGES]


def run(model, X, found=None):
    from cgnlearn.portable.onnx_model import onnx_content

    content = onnx_content(found or description(model))
    assert onnx.load_from_string(content).opset_import[0].version == OPSET
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    if names == ["X"]:
        feeds = {"X": np.asarray(X, float)}
    else:
        columns = zip(*cells(X), strict=True)
        feeds = {
            name: np.array(column, object if isinstance(column[0], str) else float)[:, None]
            for name, column in zip(names, columns, strict=True)
        }
    return session.run(["label", "probabilities", "log_probabilities"], feeds)


@pytest.mark.filterwarnings("ignore:.*is observed in")
@pytest.mark.parametrize("name", ABLE)
def test_the_runtime_predicts_the_same(name):
    model, (X, _) = fitted(name), table(30, 1)
    label, proba, log_proba = run(model, X, described(name))
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-9, rtol=0)
    np.testing.assert_allclose(log_proba, model.predict_log_proba(X), atol=1e-6)
    np.testing.assert_array_equal(label, model.predict(X))


def test_more_columns_than_samples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 310)), np.arange(30) % 2
    model = CGNClassifier("complete").fit(X[:24], y[:24])
    np.testing.assert_allclose(run(model, X[24:])[1], model.predict_proba(X[24:]), atol=1e-9)


def test_numbers_that_happen_to_be_whole():
    X, y = load_iris(return_X_y=True)
    model = CGNClassifier("selective_naive_bayes").fit(X, y)  # every feature depends on the class: its log odds are 0
    np.testing.assert_allclose(run(model, X)[1], model.predict_proba(X), atol=1e-9)


def test_numeric_levels_and_missing_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1, 4, 90), rng.normal(size=90)])
    model = CGNClassifier("tan", categorical_features=[0]).fit(X, (X[:, 0] + X[:, 1] > 2).astype(int))
    new = np.vstack([X[:4], [[7.0, 0.0], [1.0, np.nan]]])
    label, proba, _ = run(model, new)
    np.testing.assert_allclose(proba[:4], model.predict_proba(X[:4]), atol=1e-9)
    assert label.dtype == np.int64
    assert np.isnan(proba[4:]).all()  # nothing is guessed for an unknown level or a missing value


@pytest.mark.parametrize("name", AVERAGES[:2])
def test_averages_are_refused_in_one_sentence(name):
    with pytest.raises(ValueError, match=r"^an average over \w+ \(\w+_average\) has no ONNX graph: export the model"):
        run(fitted(name), table(3, 1)[0])


@pytest.mark.parametrize("last", [CGNClassifier("complete"), CGNClassifierCV(candidates=["naive_bayes", "logistic"])])
def test_pipelines_convert(last):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    from cgnlearn.portable.sklearn_onnx import register_converters

    register_converters()
    X, y = load_wine(return_X_y=True)
    for labels in (y, np.array(["a", "b", "c <d>"])[y]):
        model = make_pipeline(StandardScaler(), last).fit(X, labels)
        found = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False}, target_opset=OPSET)
        session = onnxruntime.InferenceSession(found.SerializeToString(), providers=["CPUExecutionProvider"])
        label, proba = session.run(None, {session.get_inputs()[0].name: X})
        np.testing.assert_array_equal(label, model.predict(X))
        np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-9)
