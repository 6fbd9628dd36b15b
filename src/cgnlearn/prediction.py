"""What a fitted classifier says: of rows, and of itself. No formula stands here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted

from cgnlearn.logistic.correction import Discriminative
from cgnlearn.model.densities import Floats, normalised
from cgnlearn.model.estimation import Estimation
from cgnlearn.model.indicators import Indicated, Indicators, without_indicators
from cgnlearn.model.model import Model
from cgnlearn.model.network import Network
from cgnlearn.model.sampling import draw
from cgnlearn.model.statistics import Statistics
from cgnlearn.model.structure import Structure
from cgnlearn.model.surprise import scored
from cgnlearn.model.table import Table, to_training_type
from cgnlearn.structures.learner import Learner


class Predictions:
    """The predicting half of an estimator that has a model, an estimation, statistics and a temperature."""

    classes_: NDArray[Any]
    statistics_: Statistics
    temperature_: float
    _how: Estimation
    _learner: Learner
    _missing_indicator: bool
    _reference: Any  # training rows whose density others are compared with, or their scores
    _table: Callable[..., Table]

    @cached_property
    def _model(self) -> Model:
        """Made of the statistics; anew after each `partial_fit`."""
        check_is_fitted(self, "statistics_")
        model = self._learner.model(self.statistics_, self._how)
        if self._missing_indicator:
            return Indicated(model, Indicators.of(self.statistics_, self._how))
        if not hasattr(self, "discriminative_"):
            return model
        assert isinstance(model, Network)
        return Discriminative(model, self.discriminative_)

    @property
    def _generative(self) -> Model:
        """The model of the attributes, which a discriminative one starts from."""
        return self._model.network if isinstance(self._model, Discriminative) else self._model

    @property
    def structure_(self) -> Structure:
        """The structure, with column names as nodes where X has names, else column indexes."""
        return self._model.structure.named(self.statistics_.schema)

    @property
    def n_parameters_(self) -> int:
        """Free parameters, the class's own included."""
        return self._model.n_parameters

    @property
    def sharing_(self) -> float:
        """How much the classes share, given or chosen."""
        return self._how.sharing

    @property
    def class_log_prior_(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a row."""
        return self._model.class_log_prior

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood of the training data, class included."""
        return self._model.log_evidence

    @property
    def inclusion_probability_(self) -> Floats:
        """How probable it is that each column depends on the class, where that is averaged over."""
        return self._of_average("inclusion_probability")

    @property
    def edge_probability_(self) -> Floats:
        """How probable each column is to be the parent (row) of each other (column), where that is averaged over."""
        return self._of_average("edge_probability")

    @property
    def order_probability_(self) -> Floats:
        """Probability of every order of each column: (columns, k_max)."""
        return self._of_average("order_probability")

    @property
    def relevance_(self) -> Floats:
        """Probability that a column depends on the class at all: (columns,)."""
        return self._of_average("relevance")

    def _of_average(self, name: str) -> Any:
        average = without_indicators(self._model)
        if not hasattr(average, name):
            raise AttributeError(f"{name}_ belongs to an average over structures that this is not")
        return getattr(average, name)

    # ---- prediction

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log p(class, x), the attributes' part tempered: (rows, classes)."""
        return self.joint_of_table(self._table(X))

    def joint_of_table(self, table: Table) -> Floats:
        """The same of rows in the model's form."""
        joint = self._model.log_likelihood(table)
        joint *= self.temperature_
        joint += self.class_log_prior_
        return joint

    def predict_log_proba(self, X: Any) -> Floats:
        """Log p(class | x): (rows, classes)."""
        joint = self.predict_joint_log_proba(X)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class: (rows, classes)."""
        return softmax(self.predict_joint_log_proba(X), copy=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        best = np.argmax(self.predict_joint_log_proba(X), axis=1)
        return self.classes_[best]

    def score_samples(self, X: Any) -> Floats:
        """Log p(x), whatever the temperature: (rows,). Low where a row is unlike the training data.

        With ``parameters="discriminative"`` that of ``"bayes"``.
        """
        likelihood = self._generative.log_likelihood(self._table(X))
        return np.asarray(logsumexp(likelihood + self.class_log_prior_, axis=1))

    def surprise(self, X: Any) -> Floats:
        """The share of the training rows that are less likely than each row: (rows,). Near 0: unlike anything seen.

        Likely in the sense of `score_samples`, and each training row, of at most 1,000 spread evenly, as the model
        without it sees it. `fit` keeps a copy of these until this method, or a file, first needs them scored.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> CGNClassifier("complete").fit(X, y).surprise([X[0], X[0] + 5]).round(2)
        array([1., 0.])
        """
        log_density = self.score_samples(X)
        self._reference = scored(getattr(self, "_reference", None), self._generative)
        return self._reference.share_below(log_density, self._how.class_prior)

    def leave_one_out_log_proba(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Log p(class | x) of the training rows, each by the model without it: (rows, classes).

        Exact, at about the price of one prediction; the prior stays as it is (its location and scale may come from
        all rows). A structure that was learned from the rows is not learned anew.

        Parameters
        ----------
        X, y, sample_weight
            The training rows again, or some of them, with the weights that they had in `fit`.
        """
        joint, class_log_prior = self._model.leave_one_out(self._table(X, y, sample_weight))
        joint *= self.temperature_
        joint += class_log_prior
        return normalised(joint)

    def contributions(self, X: Any) -> Floats:
        """Each attribute's log density under each class: (rows, attributes, classes).

        Summed over attributes, times ``temperature_``, plus ``class_log_prior_``, they are the joint log
        probability. Attributes that are missing, not in the model, or constant in the training data, have 0; with
        ``missing_indicator=True`` the log probability of being missing, or not, is added to an attribute's own.
        """
        return self._model.contributions(self._table(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray[Any]]:
        """Draw rows and their classes from the model's predictive distribution (temperature plays no part).

        With ``parameters="discriminative"`` from that of ``"bayes"``.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        X : array or data frame, as the training data was
            Columns that are not in the model are 0, or their first level. There are holes only with
            ``missing_indicator=True``, as often as training had them in the class.
        y : ndarray (n_samples,)
        """
        check_is_fitted(self, "statistics_")
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, not {n_samples!r}")
        rng = check_random_state(random_state)
        labels = rng.choice(len(self.classes_), size=n_samples, p=np.exp(self.class_log_prior_))
        network = without_indicators(self._generative)
        if not isinstance(network, Network):
            raise ValueError("rows can be drawn from one structure, neither averaged nor rotated: fit another and draw")
        table = draw(network, labels, rng)
        if isinstance(self._model, Indicated):
            table = self._model.indicators.with_missing_values(table, rng)
        return to_training_type(table), self.classes_[labels]
