"""UpdatedClassifier: a model after samples of another place, as `update` returns it. It has no formulas of its own."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin

from cgnlearn.data.arrays import Floats
from cgnlearn.estimators.class_prior import ClassPrior, estimated, refuse_other_change
from cgnlearn.logistic.recalibration import bounded
from cgnlearn.networks.estimation import class_prior_of
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.statistics import Statistics


@dataclass(frozen=True)
class Rung:
    """A step of the ladder with its held-out log loss on the new samples."""

    name: str
    log_loss: float
    error: float  # standard error of the difference to the best step
    weight: float  # in the updated model

    def __str__(self) -> str:
        return f"{self.name}: log loss {self.log_loss:.3f}, weight {self.weight:.2f}"


@dataclass(frozen=True)
class Recalibrated:
    """One of the models with intercepts and slope on its log probabilities."""

    model: int  # its position
    intercept: tuple[float, ...]
    slope: float
    weight: float


class UpdatedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier after an `update`: a mixture of recalibrated models; it is made by `update`, not fitted.

    Attributes
    ----------
    classes_ : ndarray (classes,)
    ladder_ : list of Rung
        The steps that were compared, the simplest first.
    history_ : list of dict
        What happened to the model: the steps taken, when, and with how many samples.
    models_ : list of classifiers
    parts_ : list of Recalibrated
        The parts of the mixture.
    class_log_prior_ : ndarray (classes,)
        Log frequencies of the classes in the new samples, or as given.
    """

    classes_: NDArray[Any]
    models_: list[Any]
    parts_: list[Recalibrated]
    ladder_: list[Rung]
    history_: list[dict[str, Any]]
    class_log_prior_: Floats

    @property
    def statistics_(self) -> Statistics:
        """Statistics of the first model, which tell columns and classes."""
        found: Statistics = self.models_[0].statistics_
        return found

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        return int(self.models_[0].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Only where X has string column names."""
        found: NDArray[Any] = self.models_[0].feature_names_in_
        return found

    @property
    def handle_unknown(self) -> str:
        """As in the first model."""
        return str(self.models_[0].handle_unknown)

    def fit(self, X: Any, y: Any) -> Self:
        """Raise: an updated model is made by `update`."""
        raise TypeError("an updated model cannot be fitted: use update, or fit a CGNClassifier")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parts_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict_log_proba(self, X: Any) -> Floats:
        """Log p(class | x): (samples, classes)."""
        of_models = {part.model: bounded(self.models_[part.model].predict_log_proba(X)) for part in self.parts_}
        parts = [
            np.log(part.weight) + log_softmax(np.array(part.intercept) + part.slope * of_models[part.model], axis=1)
            for part in self.parts_
        ]
        return np.asarray(logsumexp(parts, axis=0))

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class: (samples, classes)."""
        found: Floats = np.exp(self.predict_log_proba(X))
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every sample."""
        found: NDArray[Any] = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return found

    @property
    def _weights(self) -> dict[int, float]:
        found: dict[int, float] = {}
        for part in self.parts_:
            found[part.model] = found.get(part.model, 0.0) + part.weight
        return found

    def score_samples(self, X: Any) -> Floats:
        """Log density ln p(x) of the mixture of the models: (samples,)."""
        weights = self._weights
        return np.asarray(
            logsumexp([np.log(w) + self.models_[at].score_samples(X) for at, w in weights.items()], axis=0)
        )

    def typicality(self, X: Any) -> Floats:
        """How typical samples are of the old or the new place, whichever is more: (samples,)."""
        found = []
        for model in self.models_:
            try:
                found.append(model.typicality(X))
            except NotExactError as error:
                reason = str(error)
        if not found:
            raise NotExactError(reason)
        return np.max(found, axis=0)

    def estimate_class_prior(self, X: Any, *, level: float = 0.95) -> ClassPrior:
        """Frequencies of the classes from samples without labels, as `CGNClassifier.estimate_class_prior`.

        Intervals are those of the profile likelihood: they do not know of the error of the model itself.
        """
        found = estimated(bounded(self.predict_log_proba(X)) - self.class_log_prior_, self.classes_, level)
        with suppress(NotExactError):  # there is nothing to compare with
            refuse_other_change(self.typicality(X))
        return found

    @property
    def _n_samples_kept(self) -> int:
        """Number of training samples that the models hold."""
        return sum(model._n_samples_kept for model in self.models_)

    def _drop_samples(self) -> None:
        """Forget the training samples of the models."""
        self.models_ = [copy(model) for model in self.models_]
        for model in self.models_:
            model._drop_samples()

    def with_class_prior(self, class_prior: Any | ArrayLike) -> Self:
        """Return a copy for another prevalence of the classes, given as in `CGNClassifier.with_class_prior`."""
        given = class_prior_of(class_prior, len(self.classes_))
        if given is None:
            raise ValueError('class_prior must be "uniform" or an array in the order of classes_, not None')
        shift = np.log(given) - self.class_log_prior_
        other = type(self)()
        other.__dict__.update(vars(self))
        other.class_log_prior_ = np.log(given)
        other.parts_ = [
            Recalibrated(part.model, tuple((np.array(part.intercept) + shift).tolist()), part.slope, part.weight)
            for part in self.parts_
        ]
        return other
