"""Reference values from an independent implementation."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from cgnlearn import CGNClassifier, Prior, Structure
from tests.solvers import SOLVERS, joint, network


@pytest.mark.shared
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_golden_case(shared, solver):
    golden = json.loads((shared / "golden" / "cases.json").read_text())
    sets = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "mixed": (np.array(golden["mixed"]["X"]), np.array(golden["mixed"]["y"])),
    }
    assert len(golden["cases"]) == 126
    n_chains = 0
    for case in golden["cases"]:
        X, y = sets[case["data"]]
        structure = Structure.from_parents({int(child): parents for child, parents in case["parents"].items()})
        bands = [Structure.band(X.shape[1], k) for k in range(2, X.shape[1])]
        structure = next((band for band in bands if band == structure), structure)  # which then is known as a chain
        n_chains += structure.k is not None
        model = CGNClassifier(
            structure,
            estimation=case["parameters"],
            sharing=case["sharing"],
            prior=Prior(location=case["location"]),
            categorical_features=case["discrete"],
        ).fit(X[::2], y[::2])
        test = X[1::2][:5]
        np.testing.assert_allclose(joint(model, test, SOLVERS[solver]), case["joint"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(model.predict_joint_log_proba(test), case["joint"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(model.predict_log_proba(test), case["log_proba"], rtol=0, atol=1e-9)
        if "log_evidence" in case:
            found = network(model, SOLVERS[solver]).log_evidence
            assert found == pytest.approx(case["log_evidence"], abs=1e-9)
            assert model.log_evidence_ == pytest.approx(found, abs=1e-9)
    assert n_chains == 24


def test_a_few_of_them():
    """So that something is checked against the reference everywhere: iris, trained on even samples."""
    X, y = load_iris(return_X_y=True)
    joints = {
        ("bayes", 0.0): [-2.103241449352628, -20.762154256744562, -25.930690871438006],
        ("bayes", 1.0): [-2.312167466216402, -22.678829208764576, -43.663843268820216],
        ("ml", 0.0): [0.1945281324162813, -40.418202686012776, -58.71146831227138],
        ("ml", 0.25): [-1.0652588173967281, -41.5985460371135, -73.08065720817433],
    }
    evidence = {0.0: -276.2080707525108, 1.0: -265.76078339928875}
    for (estimation, sharing), expected in joints.items():
        model = CGNClassifier(estimation=estimation, sharing=sharing).fit(X[::2], y[::2])
        np.testing.assert_allclose(model.predict_joint_log_proba(X[1:2])[0], expected, rtol=0, atol=1e-9)
        if estimation == "bayes":
            assert model.log_evidence_ == pytest.approx(evidence[sharing], abs=1e-9)
