import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax

from cgnlearn.datasets import load
from cgnlearn.experiments.protocol import Experiment, Progress, run, split, worth
from cgnlearn.experiments.rowfile import Unit
from tests.experiments.kills import N_KILLS, small_experiment


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_ten_times_and_resumed_equals_a_clean_run(tmp_path):
    """And the clean run, made here by two processes, equals the one made there by one."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    script = Path(__file__).with_name("kills.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path], env=environment, capture_output=True, text=True, check=True
    )
    left = json.loads(done.stdout)
    assert len(left) == N_KILLS
    killed = [lines for was_killed, lines in left if was_killed]
    assert len(killed) >= 5, "too few processes were alive when they were killed"
    assert len(set(killed)) >= 3, "the kills came all at the same moment"
    clean, resumed = ((tmp_path / name / "rows.csv").read_bytes() for name in ("clean", "killed"))
    assert resumed == clean
    list(run(small_experiment(), tmp_path / "two", 2))
    assert (tmp_path / "two" / "rows.csv").read_bytes() == clean
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("clean", "killed")]
    sessions = [manifest.pop("sessions") for manifest in manifests]
    assert manifests[0] == manifests[1]
    assert len(sessions[0]) == 1
    assert len(sessions[1]) > len(killed) - 3  # some are killed before they can write a word
    assert sessions[1][-1]["seconds"] >= 0
    assert sessions[0][0]["units"] == len(small_experiment().sizes)


def test_a_finished_run_computes_nothing(tmp_path):
    def counting(unit, calls):
        calls.append(unit)
        return [(unit.fold,)]

    calls = []
    units = [Unit("a", 0, fold) for fold in range(3)]
    experiment = Experiment(("x",), dict.fromkeys(units, 1), counting, lambda unit: (unit, calls), {"seed": 0})
    assert list(run(experiment, tmp_path, 1)) == [Progress(i, 3) for i in range(4)]
    assert list(run(experiment, tmp_path, 1)) == [Progress(3, 3)]
    assert calls == units


def test_results_of_other_settings_or_software_are_refused(tmp_path):
    units = {Unit("a", 0, 0): 1}

    def of_seed(seed):
        return Experiment(("x",), units, lambda: [(1,)], lambda unit: (), {"seed": seed})

    list(run(of_seed(0), tmp_path, 1))
    before = (tmp_path / "rows.csv").read_bytes()
    with pytest.raises(ValueError, match=r"another seed \(0, now 1\): choose another folder"):
        list(run(of_seed(1), tmp_path, 1))
    manifest = tmp_path / "manifest.json"
    content = json.loads(manifest.read_text())
    content["software"]["numpy"] = "1.0"
    manifest.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="another numpy"):
        list(run(of_seed(0), tmp_path, 1))
    manifest.write_text("{}")
    with pytest.raises(ValueError, match="no manifest of ours"):
        list(run(of_seed(0), tmp_path, 1))
    manifest.unlink()
    with pytest.raises(ValueError, match=r"no manifest.json beside it"):
        list(run(of_seed(0), tmp_path, 1))
    assert (tmp_path / "rows.csv").read_bytes() == before


def test_splits_partition_each_repetition_and_keep_the_classes_shares():
    y = load("wine").target
    for repetition in range(2):
        pairs = [split(y, Unit("wine", repetition, fold), n_folds=10, seed=3) for fold in range(10)]
        assert sorted(np.concatenate([test for _, test in pairs])) == list(range(len(y)))
        for train, test in pairs:
            assert not set(train) & set(test)
            assert len(train) + len(test) == len(y)
            assert {(y[test] == label).sum() for label in "13"} <= {4, 5, 6}
    first, second = (split(y, Unit("wine", r, 0), n_folds=10, seed=3)[1] for r in range(2))
    assert not np.array_equal(first, second)


def test_worth_counts_a_probability_of_zero_at_the_smallest_double():
    log_joint = np.array([[-1.0, -2.0], [-800.0, -3.0], [0.0, -744.0], [-5.0, -4.0]])
    true = np.array([0, 0, 1, 1])
    found = worth(log_joint, true)
    p = np.exp(log_softmax(log_joint, axis=1))[np.arange(4), true]
    assert (p == 0).tolist() == [False, True, False, False]
    assert found.zeros == 1
    assert found.correct == 2
    p[1] = 5e-324
    assert found.cll == pytest.approx(log_softmax(log_joint, axis=1)[[0, 2, 3], [0, 1, 1]].sum() + np.log(p[1]))
