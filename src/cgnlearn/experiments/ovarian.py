"""The second experiment of the paper: k-BAND and k-BOX for every k on mass spectra of ovarian cancer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from cgnlearn import Band, CGNClassifier, Prior, SampleNotAcceptableError, Structure, ordered_path
from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import repeated_splits
from cgnlearn.datasets import make_spectra
from cgnlearn.evaluation.run import Row, Unit, Work
from cgnlearn.experiments.uci import description, fold_scores, folds_work
from cgnlearn.networks.densities import normalised
from cgnlearn.spectra import Bin, read

FAMILIES: tuple[Literal["band", "box"], ...] = ("band", "box")
MODELS: dict[str, dict[str, Any]] = {
    "ml": {"estimation": "ml"},
    "bayes paper": {"prior": Prior(location="paper")},
    "bayes pooled": {},
    "shared": {"sharing": 1.0},
}
TEMPERED, CHOSEN, AVERAGED = "shared tempered", "shared tempered chosen", "shared tempered averaged"
COLUMNS = (
    *("dataset", "repetition", "fold", "structure", "k", "parameters", "n_test", "correct", "accuracy", "cll", "zeros"),
    *("class_alone", "temperature"),  # the likelihood power, as in the published result files
)


def simulated(*, quick: bool) -> Bunch:
    """Simulated spectra, as many and as long as the processed real ones."""
    n_samples, n_bins = (60, 120) if quick else (216, 4000)
    made = make_spectra(n_samples, n_bins, n_peaks=n_bins // 10, n_markers=max(5, n_bins // 200), random_state=0)
    return Bunch(data=made.data, target=made.target, name="simulated", source="generator", generated=True)


def read_raw(folder: Path) -> Bunch:
    """Raw spectra in one folder for each class, as the 11,300 features of the paper.

    These are means of bins of 1 m/z from 700 to 12,000. A bin without a reading is interpolated.
    """
    low, high = 700.0, 12_000.0
    classes = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    spectra = [(spectrum, one.name) for one in classes for spectrum in read(one)]
    if len(classes) < 2 or not spectra:
        raise ValueError(f"{folder} must hold one folder for each class, with files of spectra in it")
    for spectrum, label in spectra:
        if not ((spectrum.mz >= low) & (spectrum.mz < high)).any():
            raise ValueError(f"{label}/{spectrum.name} has no reading between m/z {low:g} and {high:g}")
    X = Bin(width=1.0, start=low, stop=high).fit_transform([spectrum for spectrum, _ in spectra])
    y = np.array([label for _, label in spectra])
    return Bunch(data=X, target=y, name="ovarian-raw", source="raw spectra", generated=False)


def experiment(data: Bunch, *, k_max: int, n_folds: int, n_repetitions: int, seed: int) -> Work[list[Row]]:
    """All models at every k."""
    settings = {
        **{"experiment": "ovarian", "k_max": k_max, "folds": n_folds, "repetitions": n_repetitions, "seed": seed},
        "spectra": description(data),
    }
    n_rows = k_max * (len(MODELS) * len(FAMILIES) + 1) + 2
    return folds_work([data], COLUMNS, n_rows, fold_rows, settings, k_max, n_folds, seed)


def fold_rows(X: Floats, y: NDArray[np.str_], unit: Unit, k_max: int, n_folds: int, seed: int) -> list[Row]:
    """The rows of one fold: every model at every k of both families, and those that choose or average k."""
    *_, train, test = repeated_splits(y, n_folds=n_folds, seed=seed + unit.repeat)[unit.fold]
    true = np.searchsorted(np.unique(y), y[test])
    rows: list[Row] = []
    for model, options in MODELS.items():
        for path in _paths(X[train], y[train], X[test], k_max, options):
            for k, joint in enumerate(path.log_joint, start=1):
                rows.append(_row(path.family, k, model, joint, true, alone=k > path.n_exist))
            if model == "shared" and path.family == "band":
                rows += _tempered_rows(X[train], y[train], X[test], path, true, seed)
    return rows


class _Path(NamedTuple):
    """Log joint probabilities of one family at every k."""

    family: str
    log_joint: Floats  # (k, samples, classes)
    class_log_prior: Floats
    n_exist: int  # largest k at which maximum likelihood exists; beyond it the class frequencies replace it


def _paths(X: Floats, y: NDArray[np.str_], X_test: Floats, k_max: int, options: Mapping[str, Any]) -> list[_Path]:
    """The path of each family."""
    weight = 0.0 if options.get("estimation") == "ml" else Prior().dirichlet
    counts = np.unique(y, return_counts=True)[1] + weight
    log_prior = np.log(counts / counts.sum())
    compute = partial(ordered_path, X, y, X_test, **options)
    try:
        both = compute(k_max=k_max, structures=FAMILIES)
        return [_Path(family, log_joint, log_prior, k_max) for family, log_joint in zip(FAMILIES, both, strict=True)]
    except SampleNotAcceptableError:
        return [_existing_path(compute, family, k_max, log_prior, len(X_test)) for family in FAMILIES]


def _existing_path(
    compute: Callable[..., Floats], family: str, k_max: int, class_log_prior: Floats, n_samples: int
) -> _Path:
    """The path up to the last k at which maximum likelihood exists, found by bisection."""
    log_joint = np.broadcast_to(class_log_prior, (k_max, n_samples, len(class_log_prior))).copy()
    exist, too_many = 0, k_max + 1
    while exist + 1 < too_many:
        k = (exist + too_many) // 2
        try:
            log_joint[:k] = compute(k_max=k, structures=(family,))[0]
            exist = k
        except SampleNotAcceptableError:
            too_many = k
    return _Path(family, log_joint, class_log_prior, exist)


def _row(
    family: str, k: int, model: str, joint: Floats, true: NDArray[np.intp], *, alone: bool = False, power: float = 1.0
) -> Row:
    n, (correct, cll, zeros) = len(true), fold_scores(joint, true)
    return family, k, model, n, correct, correct / n, cll, zeros, int(alone), power


def _tempered_rows(
    X: Floats, y: NDArray[np.str_], X_test: Floats, path: _Path, true: NDArray[np.intp], seed: int
) -> Iterator[Row]:
    """Likelihood power of each k, then k and likelihood power together, chosen by leave-one-out CLL.

    Last an average over k, weighted by exp(n × that CLL).
    """
    k_max = len(path.log_joint)
    model = CGNClassifier(Band("cv", k_max=k_max), likelihood_power="cv", random_state=seed, **MODELS["shared"])
    chosen = model.fit(X, y)
    powers = chosen.cv_results_["likelihood_power"]  # one for each k
    joints = path.class_log_prior + powers[:, None, None] * (path.log_joint - path.class_log_prior)
    for k, joint in enumerate(joints, start=1):
        yield _row(path.family, k, TEMPERED, joint, true, power=float(powers[k - 1]))
    joint = chosen.predict_joint_log_proba(X_test)
    yield _row(path.family, chosen.k_, CHOSEN, joint, true, power=chosen.likelihood_power_)
    log_weight = -len(y) * chosen.cv_results_["mean_test_log_loss"]
    log_weight -= np.logaddexp.reduce(log_weight)
    averaged = np.logaddexp.reduce(log_weight[:, None, None] + normalised(joints), axis=0)
    yield _row(path.family, 0, AVERAGED, averaged, true, power=float("nan"))


# ---- points of the figures


class Point(NamedTuple):
    """A model's mean over all folds."""

    structure: str
    k: int  # 0 if chosen or averaged
    parameters: str
    n_parameters: int
    accuracy: float
    accuracy_sd: float  # between repetitions
    cll: float  # per spectrum
    cll_sd: float
    zeros: int
    class_alone: int  # folds


def points(rows: Sequence[Mapping[str, str]], *, n_features: int, n_classes: int) -> list[Point]:
    """The points of the paper's two figures, from the rows of a finished run."""
    groups: dict[tuple[str, int, str], list[Mapping[str, str]]] = {}
    for row in rows:
        k = 0 if row["parameters"] in (CHOSEN, AVERAGED) else int(row["k"])
        groups.setdefault((row["structure"], k, row["parameters"]), []).append(row)
    shapes = {"band": Structure.band, "box": Structure.box}
    found = []
    for (family, k, parameters), members in groups.items():
        sharing = 1.0 if parameters.startswith("shared") else 0.0
        n_parameters = shapes[family](n_features, k).n_parameters(n_classes, sharing=sharing) if k else 0
        _, repetition = np.unique([row["repetition"] for row in members], return_inverse=True)
        totals = {
            name: np.bincount(repetition, [float(row[name]) for row in members])
            for name in ("n_test", "correct", "cll", "zeros", "class_alone")
        }
        accuracy, cll = (_mean_and_sd(totals[name] / totals["n_test"]) for name in ("correct", "cll"))
        zeros, class_alone = (int(totals[name].sum()) for name in ("zeros", "class_alone"))
        found.append(Point(family, k, parameters, n_parameters, *accuracy, *cll, zeros, class_alone))
    return found


def _mean_and_sd(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=min(1, len(values) - 1)))
