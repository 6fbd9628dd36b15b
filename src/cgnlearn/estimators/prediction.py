"""What both fitted estimators do alike. No formula stands here."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import readable
from cgnlearn.data.table import HandleUnknown, Table, read
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.estimation import class_prior_of
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.typicality import NoReference, Reference


class Predictions(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The predicting half of an estimator, which supplies log probabilities and densities of a table."""

    classes_: NDArray[Any]
    statistics_: Statistics
    handle_unknown: HandleUnknown
    _handle_unknown: HandleUnknown  # as it was at the fit

    @property
    @abstractmethod
    def class_log_prior_(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a sample: (classes,)."""

    @abstractmethod
    def _log_scores(self, table: Table) -> Floats:
        """ln p(class | x) up to a constant of each sample: (samples, classes)."""

    @abstractmethod
    def _log_density(self, table: Table) -> Floats:
        """ln p(x | class): (samples, classes)."""

    @abstractmethod
    def _leave_one_out(self, table: Table) -> Floats:
        """As `_log_scores`, of training samples, each without itself."""

    @property
    @abstractmethod
    def _typical(self) -> Reference | NoReference:
        """Training samples as models without them see them."""

    @property
    @abstractmethod
    def _given_class_prior(self) -> tuple[float, ...] | None:
        """None where it is learned."""

    @abstractmethod
    def _take_class_prior(self, class_prior: tuple[float, ...]) -> None:
        """Predict for another prevalence."""

    def _table(self, X: Any, y: Any = None, sample_weight: Any = None) -> Table:
        """Samples in the model's form; with a y training samples, in which no level may be new."""
        check_is_fitted(self, "statistics_")
        X = readable(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return read(X, self.statistics_.schema, y, sample_weight, self._handle_unknown if y is None else "error")

    def _take_handle_unknown(self) -> None:
        if self.handle_unknown not in ("missing", "error"):
            raise ValueError(f'handle_unknown must be "missing" or "error", not {self.handle_unknown!r}')
        self._handle_unknown = self.handle_unknown

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict_log_proba(self, X: Any) -> Floats:
        """Log p(class | x): (samples, classes)."""
        return normalised(self._log_scores(self._table(X)))

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class: (samples, classes)."""
        return softmax(self._log_scores(self._table(X)), copy=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every sample."""
        best = np.argmax(self._log_scores(self._table(X)), axis=1)
        return self.classes_[best]

    def score_samples(self, X: Any) -> Floats:
        """Log p(x), whatever the likelihood power: (samples,). Low where a sample is unlike the training data.

        With ``estimation="discriminative"`` that of ``"bayes"``; of a mixture that of the members that are densities,
        or, where none is, of the best candidate that is.
        """
        return self._log_marginal(self._table(X))

    def _log_marginal(self, table: Table) -> Floats:
        return np.asarray(logsumexp(self._log_density(table) + self.class_log_prior_, axis=1))

    def typicality(self, X: Any) -> Floats:
        """The share of the training samples that are less likely than each sample: (samples,). Near 0: unlike anything
        seen.

        Likely in the sense of `score_samples`, and each training sample, of at most 1,000 spread evenly, as the model
        without it sees it.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> CGNClassifier("complete").fit(X, y).typicality([X[0], X[0] + 5]).round(2)
        array([1., 0.])
        """
        return self._typical.typicality_of(self.score_samples(X), self._given_class_prior)

    def leave_one_out_log_proba(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Log p(class | x) of the training samples, each by the model without it: (samples, classes).

        Exact, at about the price of one prediction; the prior stays as it is (its location and scale may come from
        all samples), and so do a structure that was learned from the samples, and a mixture's weights, likelihood
        powers and transforms. Of a mixture only where every member has a closed form; ``oof_log_proba_`` is there for
        all.

        Parameters
        ----------
        X, y, sample_weight
            The training samples again, or some of them, with the weights that they had in `fit`.
        """
        return normalised(self._leave_one_out(self._table(X, y, sample_weight)))

    def with_class_prior(self, class_prior: Literal["uniform"] | ArrayLike) -> Self:
        """A fitted copy for another prevalence of the classes (as the constructor takes it); this one stays as it is.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> CGNClassifier().fit(X, y).with_class_prior([0.8, 0.1, 0.1]).class_log_prior_.round(2)
        array([-0.22, -2.3 , -2.3 ])
        """
        check_is_fitted(self, "statistics_")
        given = class_prior_of(class_prior, len(self.classes_))
        if given is None:
            raise ValueError('class_prior must be "uniform" or an array in the order of classes_, not None')
        other: Self = clone(self).set_params(class_prior=class_prior)
        fitted = {name: value for name, value in vars(self).items() if name != "_model" and not hasattr(other, name)}
        other.__dict__.update(fitted)
        other._take_class_prior(given)
        return other
