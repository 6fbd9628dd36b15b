"""Stronger peers, each in an environment of its own that has to be made beforehand; bench/rival.py runs inside it.

EBM: ``pip install interpret-core``. TabPFN v1: ``pip install torch tabpfn==0.1.10``, and the weights from the source
archive of 0.1 as ``tabpfn/models_diff/prior_diff_real_checkpoint_n_0_epoch_100.cpkt``. AutoGluon: ``pip install
autogluon.tabular``, with the libraries of the models that it shall try. TabICL: ``pip install torch tabicl``, and its
weights where the library looks for them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

WORKER = Path(__file__).with_name("rival.py")
RIVALS = {"ebm": "EBM", "tabpfn1": "TabPFN v1", "autogluon": "AutoGluon, best quality, 60 s", "tabicl": "TabICL"}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class NoAnswer(ValueError):
    """A rival that gives no probabilities; the message says why."""


def with_python(text):
    """A rival and the Python of its environment, from NAME=PYTHON."""
    name, _, python = text.partition("=")
    if name not in RIVALS or not Path(python).is_file():
        raise ValueError(f"NAME=PYTHON with a name of {', '.join(RIVALS)} and the Python of its environment")
    return name, python


@lru_cache
def _worker(name, python):
    """A running environment, as imports and weights take longer than a small task."""
    words = [python, "-W", "ignore", WORKER, name]
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | ONE_THREAD
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environ)


def answer(name, python, X, y, X_test, categorical):
    """Class probabilities of the test samples, and CPU seconds of the fit and the prediction."""
    worker = _worker(name, python)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "task.npz")
        np.savez(path, X_train=X, y_train=y, X_test=X_test, categorical=np.array(categorical, int))
        worker.stdin.write(f"{path}\n")
        worker.stdin.flush()
        # A library may print lines of its own.
        while (line := worker.stdout.readline()) != "done\n":
            if not line:
                _worker.cache_clear()
                raise NoAnswer(f"its process ended with {worker.wait()}")
        with np.load(path.with_suffix(".answer.npz")) as found:
            if "reason" in found:
                raise NoAnswer(str(found["reason"]))
            return found["proba"], float(found["seconds"])
