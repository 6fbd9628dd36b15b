"""Comparison with similar libraries, each in a separate environment: time, memory, accuracy and log loss.

    python bench/peers.py [--cache FOLDER] [--data-dir DIR] [--write]

``--cache`` keeps the environments made by pip; ``--data-dir``, laid out as in collection.py, adds a clinical table and
mass spectra.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import cgnlearn
from cgnlearn.datasets import make_spectra, make_waveform
from collection import rows
from measuring import parser, publish, versions
from peer import LEVELS, LONG, MODELS

WORKER = Path(__file__).with_name("peer.py")
MOST_SECONDS = 60.0


def sets(data_dir):
    """Name, complete samples, classes and categorical columns of each data set."""
    yield "waveform, 5,000 × 21", *make_waveform(5000, random_state=0), []
    wine = load_wine()
    yield "wine, 178 × 13", wine.data, wine.target, []
    yield "generated, mixed, 2,000 × 10", *mixed(), [0, 1, 2, 3]
    spectra = make_spectra(216, 11_300, random_state=0)
    yield "simulated spectra, 216 × 11,300", np.asarray(spectra.data), np.asarray(spectra.target), []
    if data_dir is None:
        return
    for name, title in (("mixed/heart-cleveland", "heart, mixed"), ("ms/ovarian", "ovarian spectra")):
        found = rows(name, data_dir)
        X = np.where(np.isnan(found.X), np.nanmedian(found.X, axis=0), found.X)
        yield f"{title}, {X.shape[0]:,} × {X.shape[1]:,}", X, found.y, found.categorical


def mixed():
    """Four columns of three levels and six correlated continuous ones; all depend on the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    levels = (rng.random((2000, 4, 3)) + 0.3 * np.eye(3)[y][:, None]).argmax(axis=2)
    numbers = rng.normal(size=(2000, 12)) @ rng.normal(size=(12, 6)) + y[:, None] + levels[:, :1]
    return np.column_stack([levels, numbers]), y


def environment(package, cache):
    """The Python of an environment with a package, or None and the reason."""
    if package is None:
        return sys.executable, None
    folder = cache / package
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", folder], capture_output=True, text=True)
        words = [python, "-m", "pip", "install", "--quiet", package, "pandas", "scikit-learn"]
        made = made if made.returncode else subprocess.run(words, capture_output=True, text=True)
        if made.returncode:
            return None, "cannot be installed: " + (made.stderr.strip().splitlines() or ["no reason given"])[-1][:100]
        (folder / "complete").touch()
    return python, None


def version_of(package, python):
    words = [python, "-c", f"import importlib.metadata as m; print(m.version({package!r}))"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def measured(name, python, path):
    """The results of one classifier, or the reason for skipping it."""
    # One thread each; only cgnlearn itself needs our sources.
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    ours = {"PYTHONPATH": str(Path(cgnlearn.__file__).parents[1])} if python == sys.executable else {}
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        words = [python, "-W", "ignore", WORKER, name, path]
        environ = plain | one_thread | ours
        done = subprocess.run(words, capture_output=True, text=True, timeout=MOST_SECONDS, env=environ)
    except subprocess.TimeoutExpired:
        return {"skipped": f"more than {MOST_SECONDS:.0f} s"}
    if done.returncode:
        return {"skipped": f"ended with {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def report(data_dir, cache):
    pythons = {package: environment(package, cache) for package in dict.fromkeys(of[0] for of in MODELS.values())}
    theirs = [f"{name} {version_of(name, python)}" for name, (python, _) in pythons.items() if name and python]
    lines = [
        "# Comparison of libraries",
        "",
        "Made by `python bench/peers.py --data-dir DIR --write`, in one run: 70% of the samples for training, 30% for testing, stratified; the best of three fits and",
        f"predictions of the test samples after a first one (or that one, if it takes more than {LONG:.0f} s), one thread each; memory is the peak of the",
        "whole process, libraries included. Probabilities below 1e-15 count as 1e-15. The classifiers have default settings: scikit-learn's get numbers",
        f"standardised and levels one-hot; pgmpy gets {LEVELS} quantiles of each number, pyAgrum discretises them itself.",
        "",
        versions() + (" " + ", ".join(theirs) + "." if theirs else ""),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "set.npz")
        for title, X, y, categorical in sets(data_dir):
            codes = np.unique(y, return_inverse=True)[1]
            train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=codes, random_state=0)
            np.savez(path, X=X, y=codes, train=train, test=test, categorical=np.array(categorical, int))
            lines += ["", f"## {title}", "", "| | fit, ms | predict, ms | memory, MB | accuracy | log loss |"]
            lines += ["|---|---:|---:|---:|---:|---:|"]
            for name, (package, _) in MODELS.items():
                python, reason = pythons[package]
                found = {"skipped": reason} if python is None else measured(name, python, path)
                print(title, name, found, file=sys.stderr, flush=True)
                if "skipped" in found:
                    lines.append(f"| {name} | skipped: {found['skipped']} | | | | |")
                    continue
                lines.append(
                    f"| {name} | {1e3 * found['fit']:.1f} | {1e3 * found['predict']:.1f} | {found['memory']:.0f} | "
                    f"{found['accuracy']:.3f} | {found['log_loss']:.3f} |"
                )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-peers.md")
    options.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "cgnlearn-peers")
    options.add_argument("--data-dir", type=Path)
    chosen = options.parse_args()
    publish(report(chosen.data_dir, chosen.cache), "bench-peers.md", write=chosen.write)
