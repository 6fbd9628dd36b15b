"""How many samples are needed: a learning curve of subsamples, extrapolated with a band, and Riley's criteria."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, exp, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils import _safe_indexing

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import readable
from cgnlearn.data.labels import group_numbers
from cgnlearn.data.schema import Schema
from cgnlearn.data.splits import allowed, stratified
from cgnlearn.data.table import read_training
from cgnlearn.logistic.recalibration import recalibrate
from cgnlearn.networks.densities import true_class_log_proba

Rows = NDArray[np.intp]

TIMES = (1, 2, 4, 8)  # as many samples, for which results are expected
SHARES = (0.25, 0.4, 0.63, 1.0)  # of the samples that are not held out
N_FOLDS = 5
BAND = 0.8  # of the expected log loss and AUC
N_DRAWS = 4000
EXPONENTS = np.linspace(0.25, 1.5, 26)  # of the inverse power law
USUAL_EXPONENT, SPREAD = 0.75, 0.35  # prior of its logarithm: normal around ln 0.75
LEAST_LOG_PROBA = log(1e-6)  # of a true class: one sample must not decide
LEAST_OF_CLASS = 4  # samples
SHRINKAGE, MARGIN, QUANTILE = 0.9, 0.05, 1.96  # of Riley's criteria


class Expected(NamedTuple):
    """Results with a number of training samples; ends of an 80% band where they are expected, not measured."""

    n: int
    log_loss: float
    log_loss_low: float
    log_loss_high: float
    auc: float
    calibration_slope: float


class Minimum(NamedTuple):
    """Minimum sample sizes for one class against the others, by the criteria of Riley et al. (2020)."""

    label: Any
    r_squared: float  # Cox and Snell's, of held-out predictions
    n_parameters: int
    shrinkage: int  # samples for a shrinkage of at least 0.9
    optimism: int  # for an optimism of at most 0.05 in Nagelkerke's R²
    prevalence: int  # for an overall risk within 0.05

    @property
    def n(self) -> int:
        """The greatest of the three."""
        return max(self.shrinkage, self.optimism, self.prevalence)


@dataclass(frozen=True, eq=False)
class Plan:
    """What more samples are worth."""

    n_samples: int
    measured: list[Expected]  # with subsamples
    expected: list[Expected]  # with as many samples as there are, and more
    cost_of_halving: dict[Any, float]  # increase of the log loss without half of the samples of a class
    minimum: list[Minimum]  # of each class; of two classes one entry; classes without any signal have none

    @property
    def most_wanted(self) -> Any:
        """The class of which more samples would help most."""
        return max(self.cost_of_halving, key=lambda label: self.cost_of_halving[label])

    @property
    def sentence(self) -> str:
        """The result in words."""
        now, twice = self.expected[0], self.expected[1]
        gain = now.log_loss - twice.log_loss
        band = f"{twice.log_loss_low:.2f} to {twice.log_loss_high:.2f}"
        found = (
            f"With {self.n_samples} samples the log loss is about {now.log_loss:.2f}; with {twice.n} it is expected to "
            f"be {twice.log_loss:.2f} ({band}), {gain:.2f} less."
        )
        found += f" More samples of class {self.most_wanted} would help most."
        if self.minimum:
            found += f" Riley's criteria ask for {max(each.n for each in self.minimum)} samples."
        return found


def plan(
    model: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sizes: Sequence[int] | None = None,
    n_repeats: int = 5,
    random_state: int = 0,
) -> Plan:
    """Measure the learning curve of a classifier and extrapolate it to 2, 4 and 8 times the samples.

    Subsamples of several sizes are fitted, and a fifth of the samples, held out in turn, is predicted. The mean log
    loss is a + b n^-c, averaged over the values of a, b and c that the measurements allow. What it costs not to know
    the class frequencies is added to it, as held-out samples and subsamples have those of all samples.

    Parameters
    ----------
    model : classifier
        Any of scikit-learn's kind, with ``predict_proba``.
    X : array or data frame (samples, features)
    y : array (samples,)
    groups : array (samples,), optional
        Samples that belong together, such as those of a person, are held out together.
    sizes : sequence of int, optional
        Numbers of training samples, at most four fifths of the samples; None: four sizes.
    n_repeats : int
        Number of times that all samples are held out once; at least 1.
    random_state : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, plan
    >>> X, y = load_iris(return_X_y=True)
    >>> found = plan(CGNClassifier("complete", sharing=1.0), X[::2], y[::2], n_repeats=2)
    >>> [each.n for each in found.expected]
    [75, 150, 300, 600]
    """
    X = readable(X)
    table, classes = read_training(X, y, None, getattr(model, "categorical_features", "from_dtype"))
    labels = table.labels
    assert labels is not None
    counts = np.bincount(labels)
    if counts.min() < LEAST_OF_CLASS:
        raise ValueError(
            f"class {classes[counts.argmin()]!r} has {counts.min()} samples: a plan needs at least {LEAST_OF_CLASS} of "
            "each class"
        )
    if not (isinstance(n_repeats, int | np.integer) and n_repeats >= 1):
        raise ValueError(f"n_repeats must be a number of at least 1, not {n_repeats!r}")
    of_group = None if groups is None else group_numbers(groups, len(labels))
    n_folds = allowed(labels, min(N_FOLDS, int(counts.min())), of_group)
    pool = int(len(labels) * (1 - 1 / n_folds))
    given = _checked_sizes(sizes, pool, len(classes))
    splits = [
        (repeat * len(labels), *pair)
        for repeat in range(n_repeats)
        for pair in stratified(labels, n_folds, random_state + repeat, of_group).pairs
    ]
    given = [size for size in given if size <= min(len(train) for _, train, _ in splits)]
    curve = _Curve.of(model, X, labels, classes, given, splits, n_repeats, random_state)
    costs = [curve.halved(label) for label in range(len(classes))]
    return Plan(
        len(labels),
        [curve.measured(i) for i in range(len(given))],
        curve.expected(len(labels)),
        dict(zip(classes.tolist(), costs, strict=True)),
        minimum_sizes(curve.log_proba[-1], curve.true, classes, n_parameters(table.schema)),
    )


def _checked_sizes(sizes: Sequence[int] | None, pool: int, n_classes: int) -> list[int]:
    if sizes is None:
        return sorted({max(2 * n_classes, round(share * pool)) for share in SHARES})
    given = sorted({int(size) for size in sizes})
    if len(given) < 2 or given[0] < 2 * n_classes or given[-1] > pool:
        raise ValueError(f"sizes must be two or more numbers from {2 * n_classes} to {pool}, not {list(sizes)}")
    return given


@dataclass(frozen=True, eq=False)
class _Curve:
    """Held-out predictions of models of several sizes."""

    predicted: Callable[[Callable[[Rows], Rows]], Floats]  # by models of some of the training samples, in their order
    labels: Rows
    sizes: list[int]
    true: Rows  # of all repetitions
    log_proba: list[Floats]  # of each size: (repetitions × samples, classes)

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        labels: Rows,
        classes: Any,
        sizes: list[int],
        splits: list[
            tuple[int, Rows, Rows]
        ],  # place of the first prediction of a repetition, training and test samples
        n_repeats: int,
        seed: int,
    ) -> _Curve:
        """Fit and predict."""
        rng = np.random.default_rng(seed)
        parts = [(start + test, _mixed_order(train, labels, rng), test) for start, train, test in splits]

        def predicted(part_of: Callable[[Rows], Rows]) -> Floats:
            found = np.empty((n_repeats * len(labels), len(classes)))
            for places, order, test in parts:
                rows = part_of(order)
                fitted = clone(model).fit(_safe_indexing(X, rows), classes[labels[rows]])
                # For the class frequencies of all training samples.
                shares = np.bincount(labels[rows], minlength=len(classes)) / np.bincount(labels[order])
                proba = fitted.predict_proba(_safe_indexing(X, test)) / shares
                proba /= proba.sum(axis=1, keepdims=True)
                found[places] = np.log(np.maximum(proba, exp(LEAST_LOG_PROBA)))
            return found

        log_proba = [predicted(partial(_first, n=size)) for size in sizes]
        return cls(predicted, labels, sizes, np.tile(labels, n_repeats), log_proba)

    @property
    def n_repeats(self) -> int:
        return len(self.true) // len(self.labels)

    def losses(self, i: int) -> Floats:
        """Log losses with one size, of every sample and repetition: (repetitions, samples)."""
        return -true_class_log_proba(self.log_proba[i], self.true).reshape(self.n_repeats, -1)

    def cost_of_frequencies(self, i: int) -> float:
        """Increase of the log loss with one size where the class frequencies are not those of the samples at hand.

        Frequencies of n samples have logarithms with variances 1 / (n p(c)), which cost half of E p (1 - p) times as
        much: once as the model learns them, and once as all samples together have others than new ones.
        """
        n = len(self.labels)
        proba = np.exp(self.log_proba[i])
        cost = (proba * (1 - proba)).mean(axis=0) @ (n / np.bincount(self.labels)) / 2
        return float(cost * (1 / self.sizes[i] + 1 / n))

    def mean_loss(self, i: int) -> float:
        """Log loss with one size."""
        return float(self.losses(i).mean() + self.cost_of_frequencies(i))

    def halved(self, label: int) -> float:
        """Increase of the log loss with the largest size without half of the samples of a class."""

        def without(order: Rows) -> Rows:
            chosen = order[: self.sizes[-1]]
            own = np.flatnonzero(self.labels[chosen] == label)
            return np.delete(chosen, own[max(1, len(own) // 2) :])

        loss = -true_class_log_proba(self.predicted(without), self.true).mean()
        return float(loss - self.losses(len(self.sizes) - 1).mean())

    def measured(self, i: int) -> Expected:
        half, mean = 1.282 * _error(self.losses(i)), self.mean_loss(i)
        return Expected(self.sizes[i], mean, mean - half, mean + half, self._auc(i), self._slope(i))

    def _auc(self, i: int) -> float:
        """Area under the ROC curve, averaged over repetitions and classes against the others."""
        n = len(self.labels)
        parts = [slice(start, start + n) for start in range(0, len(self.true), n)]
        n_classes = self.log_proba[i].shape[1]
        return float(
            np.mean(
                [
                    roc_auc_score(self.true[part] == label, self.log_proba[i][part, label])
                    for part in parts
                    for label in (range(n_classes) if n_classes > 2 else (1,))
                ]
            )
        )

    def _slope(self, i: int) -> float:
        slope = float(recalibrate(self.log_proba[i], self.true).slope)
        return slope if np.isfinite(slope) else float("nan")

    def expected(self, n: int) -> list[Expected]:
        """Results with as many samples as there are, and more."""
        x = np.array(self.sizes, float)
        losses = np.array([self.mean_loss(i) for i in range(len(x))])
        every = [self.losses(i) for i in range(len(x))]
        # Samples are the same at all sizes: the noise of the shape is that of differences between sizes.
        apart = np.array([_error(loss - np.mean(every, axis=0)) for loss in every])
        level = _error(every[-1]) / max(losses[-1], 1e-6)
        wanted = np.array([times * n for times in TIMES], float)
        loss, low, high = extrapolated(x, losses, apart, level, wanted)
        auc = np.array([self._auc(i) for i in range(len(x))])
        missed = extrapolated(x, 1 - auc, np.full(len(x), 0.01), 0.0, wanted)[0]
        slopes = np.array([self._slope(i) for i in range(len(x))])
        usable = np.isfinite(slopes) & (slopes > 0)
        # Overconfidence vanishes as 1/n.
        rate = (np.log(slopes[usable]) / x[usable]).sum() / np.square(1 / x[usable]).sum() if usable.any() else np.nan
        return [
            Expected(int(m), float(loss[i]), float(low[i]), float(high[i]), float(1 - missed[i]), exp(rate / m))
            for i, m in enumerate(wanted)
        ]


def _first(order: Rows, n: int) -> Rows:
    return order[:n]


def _mixed_order(rows: Rows, labels: Rows, rng: Any) -> Rows:
    """The samples in an order of which every beginning has about the same class frequencies, and two of each class."""
    rows = rng.permutation(rows)
    place = np.empty(len(rows))
    for label in np.unique(labels[rows]):
        own = np.flatnonzero(labels[rows] == label)
        place[own] = (np.arange(len(own)) + rng.random()) / len(own)
        place[own[:2]] -= 2.0  # first of all
    return rows[np.argsort(place, kind="stable")]


def _error(losses: Floats) -> float:
    """Standard error of the mean over samples, of which all repetitions hold out the same: (repetitions, samples)."""
    of_samples = losses.mean(axis=0)
    return float(of_samples.std(ddof=1) / np.sqrt(len(of_samples)))


def extrapolated(
    x: Floats, values: Floats, errors: Floats, level: float, wanted: Floats
) -> tuple[Floats, Floats, Floats]:
    """Mean and 80% band of a + b x^-c at other x, with a and b not negative.

    ``errors`` are those of the shape, ``level`` is the relative error that all values have in common. c has a
    log-normal prior around 0.75, and a is equally likely from 0 to the least value.
    """
    least = max(float(values.min()), 1e-9)
    floor, exponent = np.meshgrid(np.linspace(0, 0.999 * least, 40), EXPONENTS, indexing="ij")
    powers = x[:, None, None] ** -exponent
    weights = 1 / np.maximum(np.square(errors), 1e-8)[:, None, None]
    rest = values[:, None, None] - floor
    slope = np.maximum((weights * powers * rest).sum(axis=0) / (weights * powers**2).sum(axis=0), 0.0)
    distance = (weights * np.square(rest - slope * powers)).sum(axis=0)
    log_weight = -distance / 2 - np.square(np.log(exponent / USUAL_EXPONENT) / SPREAD) / 2
    chance = np.exp(log_weight - log_weight.max()).ravel()
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(chance), N_DRAWS, p=chance / chance.sum())
    curves = floor.ravel()[chosen] + slope.ravel()[chosen] * wanted[:, None] ** -exponent.ravel()[chosen]
    drawn = curves * np.exp(level * rng.normal(size=N_DRAWS))
    low, high = np.quantile(drawn, [(1 - BAND) / 2, (1 + BAND) / 2], axis=1)
    return curves.mean(axis=1), low, high


def n_parameters(schema: Schema) -> int:
    """Number of coefficients of a regression on all columns."""
    return sum(1 if levels is None else max(1, len(levels) - 1) for levels in schema.levels)


def minimum_sizes(log_proba: Floats, true: Rows, classes: NDArray[Any], parameters: int) -> list[Minimum]:
    """Riley's minimum sample sizes for each class against the others, with R² from held-out predictions."""
    found = []
    for label in range(len(classes)) if len(classes) > 2 else [1]:
        is_own = true == label
        p = np.clip(np.exp(log_proba[:, label]), 1e-6, 1 - 1e-6)
        prevalence = float(is_own.mean())
        gain = float(np.where(is_own, np.log(p / prevalence), np.log((1 - p) / (1 - prevalence))).mean())
        r_squared = 1 - exp(-2 * gain)
        if r_squared > 0:
            found.append(riley(r_squared, parameters, prevalence)._replace(label=classes[label]))
    return found


def riley(r_squared: float, parameters: int, prevalence: float) -> Minimum:
    """Minimum sample sizes for a binary outcome (Riley et al. 2020, BMJ 368:m441).

    Parameters
    ----------
    r_squared : float
        Cox and Snell's R² that is expected.
    parameters : int
        Number of coefficients.
    prevalence : float

    Examples
    --------
    >>> found = riley(0.288, 24, 0.174)
    >>> found.shrinkage, found.optimism, found.prevalence, found.n
    (623, 662, 221, 662)
    """
    most = 1 - exp(2 * (prevalence * log(prevalence) + (1 - prevalence) * log(1 - prevalence)))
    r_squared = min(r_squared, 0.999 * most)
    small = r_squared / (r_squared + MARGIN * most)

    def needed(shrinkage: float) -> int:
        return ceil(parameters / ((shrinkage - 1) * log(1 - min(r_squared / shrinkage, 1 - 1e-12))))

    overall = ceil((QUANTILE / MARGIN) ** 2 * prevalence * (1 - prevalence))
    return Minimum(None, r_squared, parameters, needed(SHRINKAGE), needed(small), overall)
