"""A fitted model on labelled samples of another place: `validate`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import as_cells, as_frame, readable
from cgnlearn.data.labels import group_numbers
from cgnlearn.data.warning import DataWarning
from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.calibration import (
    UNCERTAIN,
    Calibration,
    MulticlassCalibration,
    calibration,
    log_odds_of,
    multiclass_calibration,
    with_interval,
)
from cgnlearn.evaluation.decisions import THRESHOLD, THRESHOLDS, Costs, Decisions, Grouping, Part, decisions
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.grouped import last_step, steps_before
from cgnlearn.evaluation.labelled import gaps_by_column, positive_position, subgroup_columns, true_positions
from cgnlearn.evaluation.metrics import BRIER, LOG_LOSS
from cgnlearn.evaluation.net_benefit import Band, net_benefit
from cgnlearn.evaluation.subgroups import Subgroup, subgroups
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.unusual import UNUSUAL, Unusual


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
    costs: Costs | None = None  # of the decisions

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
        if self.part is None:
            return None
        thresholds = np.union1d(THRESHOLDS, self.thresholds)
        return net_benefit([self.part], self.prevalence, thresholds, self.groups)

    @property
    def cost(self) -> Estimate | None:
        """The mean cost per sample of the decisions with the lowest expected cost."""
        if self.costs is None:
            return None
        return self.costs.mean([(self.log_proba, self.true)], Grouping(self.groups, 1))

    @property
    def advice(self) -> str:
        """What to do with the model, in one sentence."""
        frequencies = "the class frequencies of these samples"
        if self.gain.sign < 0:
            told = with_interval("log loss", self.log_loss)
            return f"do not use it as it is: its predictions ({told}) are worse than {frequencies}; {REMEDY}"
        if self.unusual is not None and self.unusual.are_many:
            share = f"{100 * self.unusual.n / self.unusual.n_all:.0f}%"
            told = f"these samples are unlike the training data: {share} have a typicality below 1%"
            return f"{told}; find out what differs, such as units, assays or inclusion, then {REMEDY}"
        if self.calibration.is_flagged:
            return f"recalibrate: {self.calibration.words}; {REMEDY}"
        if "too few" in self.calibration.words:
            return f"undecided: {self.calibration.words}"
        if self.calibration.is_open:
            return self.calibration.words
        if self.gain.sign == 0:
            return f"of little use: its predictions are not clearly better than {frequencies}"
        is_certain = not self.calibration.words.startswith(UNCERTAIN)
        return f"usable as it is{': ' if is_certain else ', but calibration is '}{self.calibration.words}"

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
                place = int(np.searchsorted(self.net_benefit.thresholds, threshold))
                value, low, high = (float(line[place]) for line in self.net_benefit[1:])
                found.append((f"net benefit{at}", Estimate(value, low, high)))
        if self.costs is not None:
            always = self.costs.matrix[self.true].mean(axis=0)
            decision = self.costs.decisions[int(always.argmin())]
            found.append(("mean cost per sample", self.cost))
            found.append((f"mean cost of {decision} for all samples", Estimate(float(always.min()))))
        if self.unusual is not None:
            found.append(("share of unusual samples", estimates.share(self.unusual.n, self.unusual.n_all)))
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
            "unusual": None if self.unusual is None else self.unusual._asdict(),
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
    costs: Costs | None = None,
    sample_weight: None = None,
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
    costs : cgnlearn.evaluation.decisions.Costs, optional
        Of each decision in each class of the model: the mean cost of the best decisions is then told as well.
    sample_weight : None
        Refused, as intervals are those of samples that count one each.

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
    if sample_weight is not None:
        raise ValueError(
            "validate takes no sample_weight, as its intervals are those of samples that count one each: repeat "
            "samples and give groups, or state the prevalence"
        )
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
    if costs is not None and len(costs.matrix) != len(names):
        raise ValueError(f"costs have {len(costs.matrix)} classes, the model {len(names)}: give a row for each")
    position = positive_position(last, names, counts, positive)
    of_groups = None if groups is None else group_numbers(groups, n)
    part: Any = X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # unknown levels are in the result
        for step in steps_before(model):
            part = step.transform(part)
        log_proba = _log_proba(last, part)
        unusual = _unusual(last, part, counts / n)
    missing, unknown = gaps_by_column(X if part is X else part, last)
    return validation_of(
        log_proba,
        true,
        names,
        position,
        groups=of_groups,
        columns=subgroup_columns(X, by),
        prevalence=prevalence,
        thresholds=tuple(thresholds),
        unusual=unusual,
        missing=missing,
        unknown=unknown,
        costs=costs,
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
    costs: Costs | None = None,
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
        costs=costs,
    )


def _mean(value: float, influence: Floats, groups: NDArray[np.intp] | None) -> Estimate:
    half = estimates.half_width(influence, 1, groups)
    return Estimate(value) if half is None else Estimate(value, value - half, value + half)


def _log_proba(model: Any, X: Any) -> Floats:
    found = model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else np.log(model.predict_proba(X))
    return np.asarray(found, dtype=float)


def _unusual(model: Any, X: Any, frequencies: Floats) -> Unusual | None:
    if not hasattr(model, "typicality"):
        return None
    try:
        typicality = model.typicality(X)
    except NotExactError:
        return None
    ranking = getattr(model, "_ranking", None)  # without one, as of an updated model, the classes are not compared
    return Unusual.of(typicality, UNUSUAL if ranking is None else ranking.expected_share(UNUSUAL, frequencies))
