"""The scripts in bench/ can be imported, and those that no other test runs do what they say on a small table."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
SCRIPTS = sorted(path.stem for path in BENCH.glob("*.py"))


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield
    for name in SCRIPTS:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_can_be_imported_without_their_peers(name):
    assert import_module(name).__doc__


def test_members_mixed_again_predict_as_the_mixture_does():
    from sklearn.datasets import load_iris
    from sklearn.metrics import log_loss

    from cgnlearn import CGNClassifierCV

    ablation, collection = import_module("ablation"), import_module("collection")
    X, y = load_iris(return_X_y=True)
    train, test = np.arange(0, 150, 3), np.arange(1, 150, 3)
    found = ablation.members(ablation.DEFAULT, collection.Rows(X, y, [], None), train, test)
    model = CGNClassifierCV().fit(X[train], y[train])
    expected = log_loss(y[test], model.predict_proba(X[test]))
    assert ablation.Mixed(found).log_loss() == pytest.approx(expected, rel=0.02)


def stored_results(folder, losses, n_seeds=1):
    """Results of models at 100 samples, the same for all divisions, as bench/quality.py stores them."""
    quality, collection = import_module("quality"), import_module("collection")
    size = collection.SIZES.index("100")
    for model, by_set in losses.items():
        for seed in range(1 if model == "autogluon" else n_seeds):
            path = quality.folder(folder, model, seed) / "rows.csv"
            path.parent.mkdir(parents=True)
            lines = [",".join(quality.COLUMNS)]
            for name, loss in by_set.items():
                figures = [loss if measure == "log_loss" else 0.5 for measure in quality.MEASURES]
                lines.append(",".join(map(str, [name, seed, size, 100, 50, 4, 2, *figures, 1.0, ""])))
            path.write_text("\n".join(lines) + "\n")


def test_stronger_peers_are_set_beside_the_tuned_ones(tmp_path):
    rivalry, contenders = import_module("rivalry"), import_module("contenders")
    sets = ("uci/iris", "uci/wine")
    losses = {name: dict.fromkeys(sets, 0.5) for name in ("frequencies", *contenders.PEERS)}
    losses |= {"ours": dict.fromkeys(sets, 0.3), "tabpfn1": {"uci/iris": 0.25, "uci/wine": 0.4}, "ebm": {sets[0]: 0.2}}
    losses["autogluon"] = dict.fromkeys(sets, 0.2)  # of one division
    stored_results(tmp_path, losses, n_seeds=2)
    text = rivalry.rivals_page(tmp_path, 2, ["tabpfn1", "ebm", "autogluon"])
    together, both, *_ = text.split("## All peers together, 100 training samples: with TabPFN v1")[1:]
    assert together.startswith("\n\n2 data sets, 2 split(s) of each.")  # EBM lacks one, and AutoGluon a division
    assert "0.025 nats ahead of the best peer" in together  # -0.05 and +0.1, halved
    assert both.startswith(", AutoGluon, best quality, 60 s\n\n2 data sets, 1 split(s) of each.")
    assert "0.100 nats behind the best peer" in both
    assert "uci/iris | 0.300 | 0.250 | -0.050" in text.split("## TabPFN v1,")[1]
    assert "## EBM, 100 training samples" in text
