"""What `cgnlearn demo` shows: sets that need no file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_iris, load_wine
from sklearn.dummy import DummyClassifier

from cgnlearn import Band, CGNClassifier
from cgnlearn.datasets import make_balance_scale, make_spectra, make_waveform
from cgnlearn.evaluation.splits import cut, scarce
from cgnlearn.evaluation.study import BASELINE, Study


class Comparison(NamedTuple):
    """One structure on one set, with much or little training data: maximum likelihood beside Bayesian averaging."""

    structure: str
    study: Study

    @property
    def n_train(self) -> int:
        """Rows to learn from in each fold."""
        return len(self.study.splits[0].train)


def comparisons() -> Iterator[Comparison]:
    """Four sets of the paper, with all training rows and with a fifth of them; results still to come."""
    sets = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "balance scale": make_balance_scale(),
        "waveform": make_waveform(2000, random_state=0),
    }
    for name, (X, y) in sets.items():
        whole = cut(y)
        few = [scarce(split, y, 0.2, seed=number) for number, split in enumerate(whole)]
        for structure in ("naive_bayes", "complete"):
            models = {way: CGNClassifier(structure, parameters=way) for way in ("ml", "bayes")}
            for splits in (whole, few):
                yield Comparison(structure, Study(name, X, y.astype(str), models, splits))


def studies() -> Iterator[Study]:
    """The studies, their results still to come."""
    yield _wine()
    yield _spectra()


def _study(name: str, X: Any, y: NDArray[np.str_], models: dict[str, Any], n_folds: int, **more: Any) -> Study:
    models = models | {BASELINE: DummyClassifier(strategy="prior")}
    settings = {"Cross-validation": f"stratified, {n_folds} folds, seed 0"} | more.pop("settings")
    return Study(name, X, y, models, cut(y, n_folds=n_folds), settings=settings, **more)


def _wine() -> Study:
    wine = load_wine(as_frame=True)
    names = np.array([str(name).replace("class_", "cultivar ") for name in wine.target_names])
    models = {
        f"{structure} {parameters}": CGNClassifier(structure, parameters=parameters)
        for structure in ("naive_bayes", "tree", "complete")
        for parameters in ("ml", "bayes")
    }
    settings = {"Data": "178 wines of three cultivars, 13 measurements (UCI, as in scikit-learn)"}
    return _study("wine", wine.data, names[wine.target.to_numpy()], models, 10, settings=settings)


def _spectra() -> Study:
    spectra = make_spectra(n_samples=120, n_bins=600, random_state=0)
    X = pd.DataFrame(spectra.data, columns=[f"{mz:.1f}" for mz in spectra.mz])
    tuned = Band(k="cv", k_max=20)
    models = {
        "naive_bayes ml": CGNClassifier(parameters="ml"),
        "naive_bayes bayes": CGNClassifier(),
        "band 10 ml": CGNClassifier(Band(10), parameters="ml"),
        "band 10 bayes": CGNClassifier(Band(10)),
        "band cv bayes, temperature cv": CGNClassifier(tuned, temperature="cv", random_state=0),
        "band cv bayes, sharing 1, temperature cv": CGNClassifier(tuned, sharing=1.0, temperature="cv", random_state=0),
    }
    return _study(
        "simulated spectra", X, spectra.target, models, 5,
        positions=spectra.mz, marks=spectra.peaks[spectra.effects != 0], positive="case",
        settings={"Data": "simulated time-of-flight spectra, 600 bins, 60 peaks of which 8 differ between the classes"},
    )  # fmt: skip
