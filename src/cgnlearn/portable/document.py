"""The portable description of a classifier: all that predictions need, as plain values (``docs/portable.md``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cgnlearn import __version__
from cgnlearn.candidates.aode import FittedAODE
from cgnlearn.candidates.bands import FittedBands
from cgnlearn.candidates.candidate import Fitted, Training
from cgnlearn.candidates.logistic import FittedLogistic
from cgnlearn.candidates.mixture import Mixture
from cgnlearn.candidates.networks import FittedNetworks
from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import NO_LEVELS, identity
from cgnlearn.data.schema import Schema
from cgnlearn.data.transforms import Bins, Power, Transform
from cgnlearn.estimators.prediction import Predictions
from cgnlearn.estimators.update import LEAST_WEIGHT
from cgnlearn.estimators.updated import UpdatedClassifier
from cgnlearn.logistic.correction import Discriminative
from cgnlearn.logistic.recalibration import SMALLEST
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.typicality import QUANTILES
from cgnlearn.persistence import classifier_of, training_checksum
from cgnlearn.portable.intervals import interval, with_interval, without_interval
from cgnlearn.portable.networks import Description, described
from cgnlearn.portable.regressions import aode, regression, terms_of_expansion, terms_of_network

FORMAT = "cgnlearn-portable"
VERSION = 1  # increased when readers of the last version would predict something else
DIGITS = 12  # significant ones in files: standard units leave none of the others a meaning
ALL_DIGITS = 17  # of covariances without a prior, which may be near singular
# In the columns' own units, which may be far from 0; and what moves ends of intervals by less than 1e-7.
DIGITS_OF = dict.fromkeys(("origin", "edges", "factors", "quantiles", "fill"), ALL_DIGITS)
DIGITS_OF |= dict.fromkeys(("directions", "member_weights"), 8)
N_TYPICAL = 101  # log densities at which the typicality is tabulated
UNIT = re.compile(r"^(.*\S)\s*[(\[]([^()\[\]]{1,20})[)\]]$")  # as in "glucose [mg/dl]"


def description(
    model: Any, *, title: str | None = None, about: str | None = None, intervals: bool = True
) -> Description:
    """Describe a fitted classifier in plain values: numbers, text, truths, None, lists and dictionaries with text keys.

    Parameters
    ----------
    model : CGNClassifier, CGNClassifierCV or UpdatedClassifier
    title, about : str, optional
        What the model is, and what it is for, in words.
    intervals : bool
        Whether to describe how certain the probabilities are, where that is possible.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = description(CGNClassifier("tan").fit(X, y))
    >>> found["classes"], [each["kind"] for each in found["models"]]
    ([0, 1, 2], ['network'])
    """
    if classifier_of(model) is not model:
        raise TypeError("a Pipeline has steps that other languages do not know: export its last step")
    if isinstance(model, UpdatedClassifier):
        return _updated(model, title or "", about or "")
    schema, statistics = model.statistics_.schema, model.statistics_
    parts = _Parts(schema, statistics.without_values, getattr(model, "_training", None) if intervals else None)
    is_mixture = hasattr(model, "_mixture")
    found = parts.of_mixture(model) if is_mixture else parts.of_network(model)
    certain = interval(model, parts.models, found["members"]) if intervals else None
    models = parts.models if certain else [without_interval(each) for each in parts.models]
    exact = any(each.get("estimation") == "ml" for each in parts.models)
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "title": title or "",
        "about": about or "",
        "classes": [_plain(label) for label in schema.classes],
        "class_log_prior": model.class_log_prior_,
        "handle_unknown": model._handle_unknown,
        "columns": _columns(model, is_mixture),
        "transforms": parts.transforms,
        "models": models,
        **found,
        "typicality": _typicality(model, is_mixture),
        "interval": certain,
        "provenance": {
            "cgnlearn": __version__,
            "classifier": type(model).__name__,
            "training_samples": float(statistics.classes.sum()),
            "training_samples_by_class": statistics.classes,
            "training_sha256": training_checksum(model),
        },
    }
    plain: Description = _as_plain(whole, ALL_DIGITS if exact else DIGITS)
    return plain


def _updated(model: UpdatedClassifier, title: str, about: str) -> Description:
    """The models of an update, each described as a whole, and their recalibrations."""
    models = [description(each, intervals=False) for each in model.models_]
    parts = [vars(part) for part in model.parts_]
    members = [{"name": rung.name, "weight": rung.weight} for rung in model.ladder_ if rung.weight > LEAST_WEIGHT]
    own = {
        "title": title,
        "about": about,
        "class_log_prior": model.class_log_prior_,
        "members": members,
        "updated": {"models": models, "parts": parts, "least": SMALLEST},
        "interval": None,
        "provenance": models[0]["provenance"] | {"classifier": type(model).__name__},
    }
    kept = ("format", "version", "classes", "handle_unknown", "columns")
    found: Description = _as_plain({name: models[0][name] for name in kept} | own, ALL_DIGITS)
    return found


class _Parts:
    """The models of a classifier, each described once, and the transforms that they need."""

    def __init__(self, schema: Schema, without_values: Sequence[int], training: Training | None) -> None:
        # As the candidates of a mixture see it: columns without values are constants.
        levels = (NO_LEVELS if own and i in without_values else own for i, own in enumerate(schema.levels))
        self.schema = replace(schema, levels=tuple(levels))
        self.training = training
        self.models: list[Description] = []
        self.transforms: dict[str, Description] = {"none": {}}
        self._found: dict[int, list[tuple[list[int], list[int]]]] = {}

    def add(self, models: Sequence[Description]) -> list[int]:
        """The numbers of models."""
        self.models += models
        return list(range(len(self.models) - len(models), len(self.models)))

    def of_network(self, model: Any) -> Description:
        """A network, perhaps with a correction, as the only member."""
        ((own, _),) = described([model._generative], "none")
        own = [with_interval(each, model._model) for each in own]
        numbers, power = self.add(own), model.likelihood_power_
        likelihoods = [{"models": numbers, "powers": [power]}]
        if isinstance(model._model, Discriminative):
            correction = model._model.correction
            likelihoods[0]["powers"] = [correction.likelihood_power]
            terms = regression(terms_of_network(model._model), correction) | {"transform": "none"}
            likelihoods.append({"models": self.add([terms]), "powers": [1.0]})
        members = [{"name": str(model.structure), "weight": 1.0, "likelihoods": likelihoods}]
        return {"members": members, "power": 1.0, "density": [{"models": numbers, "weights": [1.0]}]}

    def of_mixture(self, model: Any) -> Description:
        """Every member, and the density."""
        mixture: Mixture = model._mixture
        names = {member.weight: str(member) for member in model.members_}
        self.transforms |= {name: _transform(each) for name, each in mixture.transforms.items()}
        members = []
        for part in mixture.parts:
            likelihoods = [
                {"models": numbers, "powers": powers[which]}
                for fitted, powers in zip(part.fits, part.powers, strict=True)
                for numbers, which in self._of_fitted(fitted)
            ]
            members.append({"name": names[part.weight], "weight": part.weight, "likelihoods": likelihoods})
        density = [
            {"models": numbers, "weights": part.weights[which]}
            for part in mixture.density
            for numbers, which in self._of_fitted(part.fitted)
        ]
        return {"members": members, "power": mixture.power, "density": density}

    def _of_fitted(self, fitted: Fitted) -> list[tuple[list[int], list[int]]]:
        """The numbers of the models of some settings, and which settings these are."""
        if id(fitted) not in self._found:
            self._found[id(fitted)] = [(self.add(models), which) for models, which in self._described(fitted)]
        return self._found[id(fitted)]

    def _described(self, fitted: Fitted) -> Iterator[tuple[list[Description], list[int]]]:
        if isinstance(fitted, FittedNetworks):
            for models, which in described(fitted.models, fitted.transform):
                yield [with_interval(each, fitted.models[which[0]]) for each in models], which
        elif isinstance(fitted, FittedBands):
            networks = [fitted.network(i) for i in range(len(fitted.ks))]
            for models, which in described(networks, fitted.transform):
                certain = (with_interval(each, networks[which[0]]) for each in models)
                yield [each | {"needs_complete": True} for each in certain], which
        elif isinstance(fitted, FittedLogistic):
            terms = terms_of_expansion(fitted.expansion, self.schema)
            posteriors = None if self.training is None else fitted.posteriors(self.training)
            for setting in range(len(fitted.odds.intercept)):
                found = regression(terms, fitted.odds, setting, None if posteriors is None else posteriors[setting])
                yield [found | {"transform": fitted.transform}], [setting]
        elif isinstance(fitted, FittedAODE):
            yield [aode(fitted.models) | {"transform": fitted.transform}], list(range(len(fitted.models)))
        else:
            raise TypeError(f"{type(fitted).__name__} has no portable description")


def _transform(transform: Transform) -> Description:
    if isinstance(transform, Power):
        return {"origin": transform.origin, "unit": transform.unit, "power": transform.powers}
    return {"edges": list(transform.edges)} if isinstance(transform, Bins) else {}


def _columns(model: Any, is_mixture: bool) -> list[Description]:
    statistics: Statistics = model.statistics_
    schema = statistics.schema
    without_values = statistics.without_values
    found = []
    for column, levels in enumerate(schema.levels):
        fixed = is_mixture and column in without_values
        name = f"column {column}" if schema.names is None else schema.names[column]
        parts = UNIT.match(name)
        each: Description = {"name": name, "label": parts[1] if parts else name, "unit": parts[2] if parts else ""}
        if levels is None:
            each |= {"kind": "continuous", "quantiles": _quantiles(model, schema.position[column])}
        else:
            known = () if fixed or levels == NO_LEVELS else levels
            each |= {"kind": "discrete", "levels": [_plain(level) for level in known]}
            each["typical"] = _most_frequent(statistics, column)
        if fixed:
            each["fixed"] = True  # it had no value in training: whatever it is changes nothing
        found.append(each)
    return found


def _quantiles(model: Any, position: int) -> list[float] | None:
    """Of the training samples, at `QUANTILES`; None where only statistics were fitted."""
    reference = getattr(model, "_reference", None)
    if reference is None:
        return None
    quantiles: Floats | None = model._typical.quantiles
    if quantiles is None or not np.isfinite(quantiles[position]).all():
        return None
    assert len(QUANTILES) == len(quantiles[position])
    return [float(quantile) for quantile in quantiles[position]]


def _most_frequent(statistics: Statistics, column: int) -> int | None:
    for family, counts in zip(statistics.layout.discrete, statistics.counts, strict=True):
        if family.column == column:
            return int(counts.sum(axis=(0, 1)).argmax())
    return None


def _typicality(model: Predictions, is_mixture: bool) -> Description | None:
    """Typicality of complete samples by their log density; between these it is interpolated."""
    complete = np.ones(model.statistics_.schema.n_columns, bool)
    if not is_mixture:
        complete[model.statistics_.without_values] = False
    try:
        reference = model._typical.log_density(model._given_class_prior)
        at = np.unique(np.quantile(reference[np.isfinite(reference)], np.linspace(0, 1, N_TYPICAL)))
        return {"log_density": at, "typicality": model._ranking.of_log_density(at, complete)}
    except (NotExactError, ValueError, NotImplementedError):
        return None


def _plain(level: Any) -> Any:
    """A level or a class as JSON has them."""
    return level if isinstance(level, bool | int | float | str) else str(identity(level))


def _as_plain(value: Any, digits: int) -> Any:
    """Arrays as lists of numbers with so many digits; infinite ones and NaN as None."""
    if isinstance(value, dict):
        return {key: _as_plain(part, DIGITS_OF.get(key, digits)) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_plain(part, digits) for part in value]
    if isinstance(value, np.ndarray):
        return _as_plain(value.tolist(), digits)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not np.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.{digits}g}")
    return value
