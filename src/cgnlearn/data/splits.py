"""Folds of cross-validation, with one rule for rare classes and for groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.warning import DataWarning

Rows = NDArray[np.intp]


class Folds(NamedTuple):
    """Folds of a cross-validation; each sample is tested in one of them."""

    pairs: list[tuple[Rows, Rows]]  # training and test samples
    fewer: str | None  # why there are fewer folds than requested, if so


class Split(NamedTuple):
    """Training and test samples of one fold of a repeated cross-validation."""

    repeat: int
    fold: int
    train: Rows
    test: Rows


def stratified(labels: NDArray[Any], n_folds: int, seed: Any, groups: NDArray[Any] | None = None) -> Folds:
    """Stratified folds, as many as the rarest class has samples (or groups) if these are fewer, and at least two.

    Samples of one group, such as the spectra of one person, are never on both sides of a split; where no class has two
    groups, as when one of two hospitals is left, samples are divided instead, with a warning.

    Examples
    --------
    >>> folds = stratified(np.repeat(["a", "b"], [9, 3]), 5, seed=0)
    >>> len(folds.pairs), folds.fewer
    (3, 'the smallest class has 3 samples, so that 3 folds are used instead of 5')
    """
    pairs = [(train.astype(np.intp), test.astype(np.intp)) for train, test in _divided(labels, n_folds, seed, groups)]
    return Folds(pairs, fewer(labels, n_folds, groups))


def stratified_part(labels: NDArray[Any], n_parts: int, seed: Any, groups: NDArray[Any] | None = None) -> Rows:
    """A stratified part, 1 / ``n_parts`` of the samples, in ascending order; groups are not split."""
    _, part = next(_divided(labels, n_parts, seed, groups))
    return np.sort(part.astype(np.intp))


def stratified_sample(labels: NDArray[Any], most: int, seed: int = 0) -> Rows:
    """At most ``most`` samples, at random within each class, in ascending order.

    Examples
    --------
    >>> labels = np.arange(2000) % 2  # every second sample would be of one class
    >>> np.bincount(labels[stratified_sample(labels, 1000)]).tolist()
    [500, 500]
    """
    if len(labels) <= most:
        return np.arange(len(labels))
    random = np.random.default_rng(seed).random(len(labels))
    codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    # The first of each class by their share of it, those of larger classes first; few more than a class's share.
    n_tried = np.minimum(sizes, most * sizes // len(labels) + len(sizes) + 1)
    of_class = np.repeat(np.arange(len(sizes)), n_tried)
    rank = np.arange(len(of_class)) - np.repeat(np.cumsum(n_tried) - n_tried, n_tried)
    first = np.lexsort((-sizes[of_class], (rank + 0.5) / sizes[of_class]))[:most]
    n_chosen = np.bincount(of_class[first], minlength=len(sizes))
    chosen = []
    for rows, n in zip(
        np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1]), n_chosen.tolist(), strict=True
    ):
        chosen.append(rows[np.argpartition(random[rows], n - 1)[:n]] if n else rows[:0])
    return np.sort(np.concatenate(chosen))


def _divided(
    labels: NDArray[Any], n_folds: int, seed: Any, groups: NDArray[Any] | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    # The import of the splitters takes a quarter of a second, and most users do not need them.
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    codes = np.unique(labels, return_inverse=True)[1]
    if _sizes(labels, None).max(initial=0) < 2:
        raise ValueError("the samples cannot be divided into folds, because no class has two: give more samples")
    if not are_divisible(labels, groups):
        warnings.warn("no class has two groups: folds divide samples, not groups", DataWarning, stacklevel=3)
        groups = None
    n_used = allowed(labels, n_folds, groups)
    splitter = (StratifiedKFold if groups is None else StratifiedGroupKFold)(n_used, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # a class of one sample will do
        yield from splitter.split(codes, codes, groups)


def are_divisible(labels: NDArray[Any], groups: NDArray[Any] | None) -> bool:
    """Whether folds can keep groups together: some class has two of them, or there are none."""
    return groups is None or int(_sizes(labels, groups).max(initial=0)) > 1


def allowed(labels: NDArray[Any], n_folds: int, groups: NDArray[Any] | None = None) -> int:
    """Number of folds if ``n_folds`` are requested."""
    groups = groups if are_divisible(labels, groups) else None
    return min(n_folds, max(2, int(_sizes(labels, groups).min(initial=n_folds))))


def fewer(labels: NDArray[Any], n_folds: int, groups: NDArray[Any] | None = None) -> str | None:
    """Why there are fewer folds than requested, if so."""
    groups = groups if are_divisible(labels, groups) else None
    n_used, rarest = allowed(labels, n_folds, groups), int(_sizes(labels, groups).min())
    if n_used == n_folds:
        return None
    has = f"{rarest} {'sample' if groups is None else 'group'}{'s' if rarest > 1 else ''}"
    return f"the smallest class has {has}, so that {n_used} folds are used instead of {n_folds}"


def _sizes(labels: NDArray[Any], groups: NDArray[Any] | None) -> Rows:
    """Number of samples, or of groups, of each class."""
    codes = np.unique(labels, return_inverse=True)[1]
    if groups is not None:
        codes = np.unique(np.column_stack([codes, np.unique(groups, return_inverse=True)[1]]), axis=0)[:, 0]
    return np.bincount(codes)


def repeated_splits(
    y: NDArray[Any], *, groups: NDArray[Any] | None = None, n_folds: int = 10, n_repeats: int = 1, seed: int = 0
) -> list[Split]:
    """Folds of a repeated cross-validation, as many as `stratified` makes; every class must be trained on in each.

    The random seed of repetition r is ``seed + r``; groups are as in `stratified`.

    Examples
    --------
    >>> splits = repeated_splits(np.repeat(["a", "b"], 10), n_folds=5, n_repeats=2)
    >>> len(splits), splits[0].test.size
    (10, 4)
    """
    what = "samples" if groups is None else "groups"
    labels, codes = np.unique(y, return_inverse=True)
    if len(labels) < 2:
        raise ValueError(f"there is one class only, {labels[0]!s}: a classifier needs samples of at least two")
    sizes = _sizes(codes, groups)
    if sizes.min() < 2:
        raise ValueError(
            f"class {labels.tolist()[sizes.argmin()]!r} has 1 of the {what}, but must be in training and test "
            f"samples: add {what} of it or remove it"
        )
    if n_folds < 2 or n_repeats < 1:
        raise ValueError(f"cross-validation needs at least 2 folds and 1 repetition, not {n_folds}x{n_repeats}")
    splits = [
        Split(repeat, fold, train, test)
        for repeat in range(n_repeats)
        for fold, (train, test) in enumerate(stratified(codes, n_folds, seed + repeat, groups).pairs)
    ]
    for split in splits:
        absent = np.setdiff1d(codes, codes[split.train])
        if len(absent):
            raise ValueError(
                f"a fold has no training samples of class {labels[absent[0]]!s}: use other folds or more {what}"
            )
    return splits


def site_splits(y: NDArray[Any], sites: NDArray[Any]) -> list[Split]:
    """One fold for each site, in the order of their names; raise ValueError if the others lack a class.

    Examples
    --------
    >>> splits = site_splits(np.array(list("ababab")), np.array([1, 1, 2, 2, 3, 3]))
    >>> [split.test.tolist() for split in splits]
    [[0, 1], [2, 3], [4, 5]]
    """
    names = np.unique(sites)
    if len(names) < 2:
        raise ValueError(f"there is one site only, {names[0]!s}: whole sites are held out, so at least two are needed")
    splits = [
        Split(0, fold, np.flatnonzero(sites != name), np.flatnonzero(sites == name)) for fold, name in enumerate(names)
    ]
    for name, split in zip(names.tolist(), splits, strict=True):
        absent = np.setdiff1d(y, y[split.train])
        if len(absent):
            raise ValueError(
                f"without site {name!s} there is no sample of class {absent[0]!s}: add samples of it elsewhere"
            )
    return splits


def subsampled(split: Split, y: NDArray[Any], fraction: float, seed: int) -> Split:
    """The fold with a stratified part of its training samples.

    Examples
    --------
    >>> y = np.repeat(["a", "b"], 50)
    >>> few = subsampled(repeated_splits(y, n_folds=2)[0], y, 0.2, seed=0)
    >>> len(few.train), len(few.test)
    (10, 50)
    """
    from sklearn.model_selection import train_test_split

    part, _ = train_test_split(split.train, train_size=fraction, stratify=y[split.train], random_state=seed)
    return split._replace(train=part)


def hashed(numbers: NDArray[np.integer[Any]], seed: int) -> NDArray[np.uint64]:
    """Numbers hashed to 64 bits, differently with another seed (SplitMix64).

    Examples
    --------
    >>> (hashed(np.arange(6), seed=0) % np.uint64(3)).tolist()
    [1, 2, 1, 0, 1, 2]
    """
    with np.errstate(over="ignore"):
        found = numbers.astype(np.uint64) + np.uint64(1 + seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
        return found ^ (found >> np.uint64(31))
