"""A fitted model on labelled samples of another place: `validate`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import as_cells, as_frame, is_missing, readable
from cgnlearn.data.labels import group_numbers, target
from cgnlearn.data.levels import identity
from cgnlearn.data.warning import DataWarning
from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.calibration import (
    Calibration,
    MulticlassCalibration,
    calibration,
    log_odds_of,
    multiclass_calibration,
    with_interval,
)
from cgnlearn.evaluation.decisions import THRESHOLD, Decisions, Grouping, Part, decisions
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.grouped import last_step, steps_before
from cgnlearn.evaluation.metrics import BRIER, LOG_LOSS
from cgnlearn.evaluation.net_benefit import Band, net_benefit
from cgnlearn.evaluation.subgroups import Subgroup, subgroups
from cgnlearn.networks.model import NotExactError

UNUSUAL = 0.01  # typicality below which a sample is unlike the training data
MANY_UNUSUAL = 0.05  # share of such samples from which on a model should not be used as it is
CLEARLY = 0.001  # level of the test that more samples are unusual than by chance


class Unusual(NamedTuple):
    """Samples that are unlike the training data."""

    n: int  # with a typicality below 1%
    share: Estimate
    p_value: float  # that it is 1%, as of samples from the training data

    @property
    def are_many(self) -> bool:
        """Whether the samples as a whole are unlike the training data."""
        return self.share.value >= MANY_UNUSUAL and self.p_value < CLEARLY


@dataclass(frozen=True, eq=False)
class Validation:
    """The performance of a model on samples that it was not trained on, with 95% confidence intervals."""

    classes: tuple[str, ...]
    positive: str | None  # the class that is told from the others; None with several classes unless given
    log_proba: Floats  # (samples, classes)
    true: NDArray[np.intp]  # positions of the true classes
    groups: NDArray[np.intp] | None  # samples that belong together
    prevalence: float | None  # of the positive class where decisions will be made; None: that of the samples
    thresholds: tuple[float, ...]
    log_loss: Estimate
    brier: Estimate
    scaled_brier: Estimate  # 1 - Brier score / that of the class frequencies of these samples
    gain: Estimate  # log loss of the class frequencies of these samples minus that of the model
    calibration: Calibration | MulticlassCalibration
    auc: Estimate | None
    decisions: dict[float, Decisions]  # by threshold
    unusual: Unusual | None  # None where typicality is not defined
    missing: dict[str, int]  # number of missing values by column
    unknown: dict[str, int]  # number of levels unknown from training by column
    subgroups: list[Subgroup]

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.true)

    @property
    def counts(self) -> dict[str, int]:
        """Number of samples of each class."""
        n = np.bincount(self.true, minlength=len(self.classes)).tolist()
        return dict(zip(self.classes, n, strict=True))

    @property
    def part(self) -> Part | None:
        """Probabilities of the positive class, and whether samples belong to it."""
        if self.positive is None:
            return None
        position = self.classes.index(self.positive)
        return np.exp(self.log_proba[:, position]), self.true == position

    @cached_property
    def net_benefit(self) -> Band | None:
        """The decision curve of the positive class, with a band."""
        return None if self.part is None else net_benefit([self.part], self.prevalence, groups=self.groups)

    @property
    def advice(self) -> str:
        """What to do with the model, in one sentence."""
        frequencies = "the class frequencies of these samples"
        if self.gain.sign < 0:
            told = with_interval("log loss", self.log_loss)
            return f"do not use it as it is: its predictions ({told}) are worse than {frequencies}; {REMEDY}"
        if self.unusual is not None and self.unusual.are_many:
            share = f"{100 * self.unusual.share.value:.0f}%"
            told = f"these samples are unlike the training data: {share} have a typicality below 1%"
            return f"{told}; find out what differs, such as units, assays or inclusion, then {REMEDY}"
        if self.calibration.is_flagged:
            return f"recalibrate: {self.calibration.words}; {REMEDY}"
        if "too few" in self.calibration.words:
            return f"undecided: {self.calibration.words}"
        if self.gain.sign == 0:
            return f"of little use: its predictions are not clearly better than {frequencies}"
        return f"usable as it is: {self.calibration.words}"

    @property
    def rows(self) -> list[tuple[str, Estimate | None]]:
        """The table: each measure with its interval."""
        found: list[tuple[str, Estimate | None]] = [
            ("log loss", self.log_loss),
            ("log loss of the class frequencies here", Estimate(self.log_loss.value + self.gain.value)),
            ("gain in log loss over these", self.gain),
            ("Brier score", self.brier),
            ("scaled Brier score", self.scaled_brier),
        ]
        if isinstance(self.calibration, Calibration):
            found += _rows_of(self.calibration)
        else:
            found.append(("calibration slope, all classes", self.calibration.slope))
            for label, of in self.calibration.by_class.items():
                found += [(f"{measure}, {label} against the others", value) for measure, value in _rows_of(of)]
        if self.auc is not None:
            found.append(("AUC", self.auc))
        for threshold, at_threshold in self.decisions.items():
            at = f" at {threshold:g}"
            found.append((f"sensitivity{at}", at_threshold.sensitivity))
            found.append((f"specificity{at}", at_threshold.specificity))
            found.append((f"positive predictive value{at}", at_threshold.positive_predictive_value))
            found.append((f"negative predictive value{at}", at_threshold.negative_predictive_value))
            if self.net_benefit is not None:
                place = int(np.abs(self.net_benefit.thresholds - threshold).argmin())
                value, low, high = (float(line[place]) for line in self.net_benefit[1:])
                found.append((f"net benefit{at}", Estimate(value, low, high)))
        if self.unusual is not None:
            found.append(("share of unusual samples", self.unusual.share))
        return found

    def to_frame(self) -> Any:
        """The table as a pandas data frame: measure, value, low, high."""
        import pandas as pd

        rows = [(name, *(of or (None, None, None))) for name, of in self.rows]
        return pd.DataFrame(rows, columns=["measure", "value", "low", "high"])

    def subgroups_frame(self) -> Any:
        """The subgroups as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame([of.as_dict() for of in self.subgroups])

    def as_dict(self) -> dict[str, Any]:
        """All figures in plain values; the keys are part of the interface."""
        return {
            "n": self.n,
            "classes": self.counts,
            "positive": self.positive,
            "prevalence": self.prevalence,
            "measures": {name: None if of is None else of._asdict() for name, of in self.rows},
            "calibration": self.calibration.as_dict(),
            "unusual": None
            if self.unusual is None
            else self.unusual._asdict() | {"share": self.unusual.share._asdict()},
            "missing": self.missing,
            "unknown": self.unknown,
            "subgroups": [of.as_dict() for of in self.subgroups],
            "advice": self.advice,
        }

    def __str__(self) -> str:
        lines = [f"{self.n} samples: " + ", ".join(f"{n} {label}" for label, n in self.counts.items())]
        width = max(len(name) for name, _ in self.rows)
        for name, of in self.rows:
            lines.append(f"{name:<{width}}  {'—' if of is None else with_interval('', of, '{:.3f}').strip()}")
        return "\n".join([*lines, f"advice: {self.advice}"])


REMEDY = "update it"


def _rows_of(of: Calibration) -> list[tuple[str, Estimate | None]]:
    return [
        ("observed/expected", of.observed_expected),
        ("calibration intercept", of.intercept),
        ("calibration slope", of.slope),
    ]


def validate(
    model: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    by: Any = None,
    positive: Any = None,
    prevalence: float | None = None,
    thresholds: Sequence[float] = (THRESHOLD,),
) -> Validation:
    """Score a fitted model on labelled samples of another place.

    Parameters
    ----------
    model : CGNClassifier, CGNClassifierCV, or a Pipeline that ends in one
        Any fitted classifier of scikit-learn will do; typicality is then not available.
    X : array or data frame (samples, features)
    y : array (samples,)
    groups : array (samples,), optional
        Samples that belong together, such as those of one person: intervals are then those of independent groups.
    by : name, list of names, mapping or data frame, optional
        Columns whose levels are subgroups: names of columns of X, or the columns themselves, which need not be
        features.
    positive : label, optional
        The class that is told from the others. None: of two classes the rarer one in training.
    prevalence : float, optional
        Of the positive class where decisions will be made, for predictive values and net benefit. None: as in y.
    thresholds : sequence of float, default=(0.5,)
        Probabilities of the positive class from which on a sample is called positive.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cgnlearn import CGNClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CGNClassifier("naive_bayes").fit(X[:300], y[:300])
    >>> found = validate(model, X[300:], y[300:])
    >>> found.calibration.words
    'probabilities are too extreme, slope 0.18 (0.12–0.28), and too high, observed/expected 0.96 (0.94–0.99)'
    >>> found.to_frame().round(3).iloc[[0, 8]]
        measure  value    low   high
    0  log loss  0.200  0.090  0.445
    8       AUC  0.996  0.989  0.999
    """
    if not all(0 < threshold < 1 for threshold in thresholds):
        raise ValueError(f"thresholds must be probabilities between 0 and 1, not {list(thresholds)}")
    if prevalence is not None and not 0 < prevalence < 1:
        raise ValueError(f"prevalence must be between 0 and 1, not {prevalence}")
    X = readable(X)
    last = last_step(model)
    classes = np.asarray(last.classes_)
    true = true_positions(y, classes)
    n = len(true)
    if len(as_cells(X) if as_frame(X) is None else as_frame(X)) != n:  # type: ignore[arg-type]
        raise ValueError(f"X and y have different numbers of samples: y has {n}")
    counts = np.bincount(true, minlength=len(classes))
    if (counts > 0).sum() == 1:
        raise ValueError(
            f"all {n} samples are of class {classes.tolist()[true[0]]!r}: a validation needs samples of at least two "
            "classes"
        )
    names = tuple(str(label) for label in classes.tolist())
    position = _positive(last, names, counts, positive)
    of_groups = None if groups is None else group_numbers(groups, n)
    part: Any = X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # unknown levels are in the result
        for step in steps_before(model):
            part = step.transform(part)
        log_proba = _log_proba(last, part)
        unusual = _unusual(last, part)
    missing, unknown = _gaps(X if part is X else part, last)
    return validation_of(
        log_proba,
        true,
        names,
        position,
        groups=of_groups,
        columns=_columns(X, by, n),
        prevalence=prevalence,
        thresholds=tuple(thresholds),
        unusual=unusual,
        missing=missing,
        unknown=unknown,
    )


def validation_of(
    log_proba: Floats,
    true: NDArray[np.intp],
    classes: tuple[str, ...],
    position: int | None,
    *,
    groups: NDArray[np.intp] | None,
    columns: Mapping[str, Any],
    prevalence: float | None,
    thresholds: tuple[float, ...],
    unusual: Unusual | None,
    missing: dict[str, int],
    unknown: dict[str, int],
) -> Validation:
    """The validation of predictions."""
    frequencies = np.log(np.maximum(np.bincount(true, minlength=len(classes)) / len(true), 1e-300))
    baseline = np.tile(frequencies, (len(true), 1))
    losses, brier = LOG_LOSS.of_samples(log_proba, true), BRIER.of_samples(log_proba, true)
    losses_before, brier_before = LOG_LOSS.of_samples(baseline, true), BRIER.of_samples(baseline, true)
    calibrated: Calibration | MulticlassCalibration
    auc, decided = None, {}
    if position is None:
        calibrated = multiclass_calibration(log_proba, true, classes, groups)
    else:
        calibrated = calibration(log_odds_of(log_proba, position), true == position, groups)
    if position is not None and 0 < (true == position).sum() < len(true):
        grouping = None if groups is None else Grouping(groups, 1)
        part = np.exp(log_proba[:, position]), true == position
        decided = {at: decisions([part], prevalence, grouping, at) for at in thresholds}
        auc = decisions([part], None, grouping).auc
    ratio = float(brier.mean() / brier_before.mean())
    return Validation(
        classes=classes,
        positive=None if position is None else classes[position],
        log_proba=log_proba,
        true=true,
        groups=groups,
        prevalence=prevalence,
        thresholds=thresholds,
        log_loss=estimates.loss(losses, 1, groups),
        brier=estimates.loss(brier, 1, groups),
        scaled_brier=_mean(1 - ratio, (ratio * brier_before - brier) / brier_before.mean(), groups),
        gain=_mean(float((losses_before - losses).mean()), losses_before - losses, groups),
        calibration=calibrated,
        auc=auc,
        decisions=decided,
        unusual=unusual,
        missing=missing,
        unknown=unknown,
        subgroups=subgroups(log_proba, true, columns, position, groups=groups, threshold=thresholds[0]),
    )


def _mean(value: float, influence: Floats, groups: NDArray[np.intp] | None) -> Estimate:
    half = estimates.half_width(influence, 1, groups)
    return Estimate(value) if half is None else Estimate(value, value - half, value + half)


def true_positions(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the labels among the classes of a model; labels that are none raise an error that helps."""
    labels = target(y)
    known = {identity(label): i for i, label in enumerate(classes.tolist())}
    distinct, number = np.unique(labels, return_inverse=True)
    found = np.array([known.get(identity(label), -1) for label in distinct.tolist()], np.intp)
    for label in distinct[found < 0].tolist():
        listed = ", ".join(repr(one) for one in classes.tolist())
        alike = [one for one in classes.tolist() if _plain(one) == _plain(label)]
        if alike:
            n = int((labels == label).sum())
            raise ValueError(f"y has {label!r} in {n} samples, where the model says {alike[0]!r}: spell them alike")
        raise ValueError(
            f"y has the class {label!r}, which the model does not know (its classes are {listed}): drop these samples, "
            "or fit a model that knows them"
        )
    return found[number]


def _plain(label: Any) -> str:
    return str(label).strip().casefold()


def _positive(model: Any, classes: tuple[str, ...], counts: NDArray[np.intp], positive: Any) -> int | None:
    if positive is not None:
        if str(positive) not in classes:
            raise ValueError(f"positive {positive!r} is not a class of the model: these are {', '.join(classes)}")
        return classes.index(str(positive))
    if len(classes) != 2:
        return None
    trained = model.statistics_.classes if hasattr(model, "statistics_") else counts
    return int(trained[0] < trained[1]) ^ 1


def _log_proba(model: Any, X: Any) -> Floats:
    found = model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else np.log(model.predict_proba(X))
    return np.asarray(found, dtype=float)


def _unusual(model: Any, X: Any) -> Unusual | None:
    if not hasattr(model, "typicality"):
        return None
    try:
        typicality = model.typicality(X)
    except NotExactError:
        return None
    n, n_all = int((typicality < UNUSUAL).sum()), len(typicality)
    found = stats.binomtest(n, n_all, UNUSUAL, "greater").pvalue
    return Unusual(n, estimates.share(n, n_all), float(found))


def _gaps(X: Any, model: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Number of missing values and of unknown levels by column."""
    frame = as_frame(X)
    cells: Any = as_cells(X) if frame is None else frame
    schema = model.statistics_.schema if hasattr(model, "statistics_") else None
    missing: dict[str, int] = {}
    unknown: dict[str, int] = {}
    for number in range(cells.shape[1]):
        column = as_cells(cells[:, number]) if frame is None else cells[:, number].to_numpy()
        name = str(number) if frame is None else str(frame.columns[number])
        if column.dtype.kind in "fiub":
            gaps = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
        else:
            gaps = np.array([is_missing(cell) for cell in column], bool)
        if gaps.any():
            missing[name] = int(gaps.sum())
        if schema is not None and schema.levels[number] is not None:
            known = {identity(level) for level in schema.levels_of(number)}
            distinct, n = np.unique(column[~gaps].astype(object), return_counts=True)
            n_unknown = sum(int(m) for level, m in zip(distinct, n, strict=True) if identity(level) not in known)
            if n_unknown:
                unknown[name] = n_unknown
    return missing, unknown


def _columns(X: Any, by: Any, n: int) -> dict[str, Any]:
    """The columns of subgroups by name."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        return dict(by)
    frame = as_frame(by) if not isinstance(by, str | list | tuple) else None
    if frame is not None:
        return {str(name): frame[name].to_numpy() for name in frame.columns}
    own = as_frame(X)
    found = {}
    for name in [by] if isinstance(by, str) else list(by):
        if own is None or name not in own.columns:
            raise ValueError(f"by {name!r} is not a column of X: give the column itself, as {{{name!r}: values}}")
        found[str(name)] = own[name].to_numpy()
    return found
