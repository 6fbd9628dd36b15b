"""Compile the kernels ahead, for images and continuous integration: ``python -m cgnlearn.warm``, or ``make warm``.

Most are compiled by a fit or a prediction that is just large enough to need it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from time import perf_counter
from typing import Any

import numpy as np

from cgnlearn import Band, BandAverage, Box, CGNClassifier, CGNClassifierCV, TANAverage

NETWORKS = ("naive_bayes", "selective_naive_bayes", "complete")


def main() -> None:
    """Compile and say how long it took."""
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for X, y in _tables():
            _use(X, y)
    n_compiled = sum(len(kernel.signatures) for kernel in kernels())
    print(f"{n_compiled} signatures of {len(kernels())} kernels compiled in {perf_counter() - started:.0f} s")


def kernels() -> list[Any]:
    """All compiled functions."""
    names = [each.name for each in iter_modules([str(Path(__file__).parent / "kernels")])]
    modules = [import_module(f"cgnlearn.kernels.{name}") for name in names]
    found = {id(each): each for module in modules for each in vars(module).values() if hasattr(each, "signatures")}
    return list(found.values())


def _tables() -> Iterator[tuple[Any, Any]]:
    """Samples whose rows, and samples whose columns, are stored side by side."""
    rng = np.random.default_rng(0)
    y = np.arange(6000) % 2
    X = rng.normal(size=(6000, 30)).cumsum(axis=1) + y[:, None]
    yield X, y
    yield np.asfortranarray(X), y


def _use(X: Any, y: Any) -> None:
    mixture = CGNClassifierCV(candidates=[*NETWORKS, "aode"], transforms=["none"]).fit(X, y)
    mixture.predict_proba(X)
    mixture.predict_interval(X[:500])
    weights = np.linspace(0.5, 1.5, len(y))
    CGNClassifierCV(candidates=NETWORKS[:1], transforms=["none"]).fit(X, y, sample_weight=weights)
    CGNClassifierCV(candidates=["band"], ordered=True).fit(X[:800], y[:800]).predict_proba(X)
    few, of_few = X[:800, :20], y[:800]
    for structure in (Band(12), Box(4), BandAverage(k_max=6), TANAverage()):
        CGNClassifier(structure).fit(few, of_few).predict_proba(few)


if __name__ == "__main__":
    main()
