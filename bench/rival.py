"""A classifier in an environment of its own: ``python bench/rival.py NAME`` reads paths of tasks, one on each line.

A task is an .npz with X_train, y_train, X_test and the categorical columns; the answer beside it (``.answer.npz``) has
the probabilities and the CPU seconds, or the reason why there are none. The environment needs NumPy and the library.
"""

from __future__ import annotations

import sys
import time

import numpy as np

TABPFN_LIMITS = 1000, 100, 10  # samples, features, classes, for which TabPFN v1 was made
N_CONFIGURATIONS = 8  # of TabPFN's ensemble; its default is 3
AUTOGLUON_SECONDS = 60  # time limit of a fit


class Beyond(ValueError):
    """A task that a library says it was not made for."""


def ebm(X, y, X_test, categorical):
    """Explainable boosting as it comes."""
    from interpret.glassbox import ExplainableBoostingClassifier

    types = ["nominal" if i in categorical else "continuous" for i in range(X.shape[1])]
    model = ExplainableBoostingClassifier(feature_types=types, n_jobs=1, random_state=0).fit(X, y)
    return model.classes_, model.predict_proba(X_test)


def tabpfn1(X, y, X_test, categorical):
    """TabPFN v1: the code of 0.1.10, with the weights that are in the source archive of 0.1."""
    for size, most, what in zip((*X.shape, len(np.unique(y))), TABPFN_LIMITS, ("samples", "features", "classes")):  # noqa: B905
        if size > most:
            raise Beyond(f"beyond its limits: more than {most:,} {what}")
    model = _tabpfn1()(device="cpu", N_ensemble_configurations=N_CONFIGURATIONS).fit(X, y)
    return model.classes_, model.predict_proba(X_test)


def _tabpfn1():
    """Its class, with what current versions of its dependencies no longer have."""
    import functools
    import typing

    import sklearn.utils.validation as validation
    import torch
    import torch.nn.modules.transformer as transformer

    torch.set_num_threads(1)
    transformer.Optional = typing.Optional
    if not hasattr(torch.load, "func"):
        torch.load = functools.partial(torch.load, weights_only=False)
    for name in ("check_X_y", "check_array"):
        check = getattr(validation, name)
        if not hasattr(check, "is_renamed"):

            def renamed(*args, check=check, **kwargs):
                if "force_all_finite" in kwargs:
                    kwargs["ensure_all_finite"] = kwargs.pop("force_all_finite")
                return check(*args, **kwargs)

            renamed.is_renamed = True
            setattr(validation, name, renamed)
    from tabpfn import TabPFNClassifier

    return TabPFNClassifier


def tabicl(X, y, X_test, categorical):
    """TabICL as it comes, with the weights that its library finds, or downloads where it can."""
    import torch
    from tabicl import TabICLClassifier

    torch.set_num_threads(1)
    model = TabICLClassifier(device="cpu", n_jobs=1).fit(X, y)
    return model.classes_, model.predict_proba(X_test)


def autogluon(X, y, X_test, categorical):
    """AutoGluon's best quality within a time limit."""
    import tempfile

    import pandas as pd
    from autogluon.tabular import TabularPredictor

    def frame(values):
        columns = pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])
        return columns.astype({f"x{i}": "category" for i in categorical})

    with tempfile.TemporaryDirectory() as folder:
        predictor = TabularPredictor("y", eval_metric="log_loss", path=folder, verbosity=0)
        settings = {"presets": "best_quality", "time_limit": AUTOGLUON_SECONDS, "num_cpus": 1}
        predictor.fit(frame(X).assign(y=y), **settings)
        found = predictor.predict_proba(frame(X_test))
    return found.columns.to_numpy(), found.to_numpy()


MODELS = {"ebm": ebm, "tabpfn1": tabpfn1, "autogluon": autogluon, "tabicl": tabicl}


def answer(model, path):
    """Probabilities and seconds of a task."""
    with np.load(path) as task:
        X, y, X_test, categorical = (task[part] for part in ("X_train", "y_train", "X_test", "categorical"))
    start = time.process_time()
    try:
        classes, proba = model(X, y, X_test, categorical.tolist())
    except Exception as error:  # of any type: it is the reason why there is no answer
        return {"reason": f"{error}" if isinstance(error, Beyond) else f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - start
    every = np.zeros((len(X_test), int(y.max()) + 1))
    every[:, np.asarray(classes, int)] = proba
    return {"proba": every, "seconds": seconds}


if __name__ == "__main__":
    chosen = MODELS[sys.argv[1]]
    for line in sys.stdin:
        where = line.rstrip("\n")
        np.savez(where.removesuffix(".npz") + ".answer.npz", **answer(chosen, where))
        print("done", flush=True)
