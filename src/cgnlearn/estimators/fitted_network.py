"""The properties and predictions of a fitted network. It has no formulas of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table, concatenated, to_training_type
from cgnlearn.estimators.class_prior import HeldOutRatios
from cgnlearn.estimators.prediction import Predictions
from cgnlearn.logistic.correction import Discriminative
from cgnlearn.networks.coalitions import Players, coalitions_of
from cgnlearn.networks.components import Mask
from cgnlearn.networks.conformal import full_p_values, held_out
from cgnlearn.networks.densities import categorical
from cgnlearn.networks.estimation import Estimation
from cgnlearn.networks.indicators import Indicated, Indicators, without_indicators
from cgnlearn.networks.intervals import Intervals, intervals_of
from cgnlearn.networks.model import Model, NotExactError
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.network import Network
from cgnlearn.networks.sampling import draw, drawable
from cgnlearn.networks.shapley import Member
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.typicality import Reference, n_draws, spread_labels
from cgnlearn.networks.uncertainty import NoSamplesError, class_frequencies
from cgnlearn.structures.learner import Learner
from cgnlearn.structures.search import SearchState


class FittedNetwork(Predictions):
    """The fitted half of `CGNClassifier`."""

    likelihood_power_: float
    _estimation: Estimation  # as the parameters were at the fit
    _learner: Learner  # needs no more samples
    _missing_indicator: bool
    _reference: Table | Reference  # for the typicality

    @cached_property
    def _model(self) -> Model:
        """Computed from the statistics; again after each `partial_fit`."""
        check_is_fitted(self, "statistics_")
        model = self._generative_of(self._learner, self.statistics_)
        if not hasattr(self, "discriminative_"):
            return model
        assert isinstance(model, Network)
        return Discriminative(model, self.discriminative_, getattr(self, "_samples", None))

    def _generative_of(self, learner: Learner, statistics: Statistics) -> Model:
        model = learner.model(statistics, self._estimation)
        if not self._missing_indicator:
            return model
        return Indicated(model, Indicators.of(statistics, self._estimation))

    @property
    def _generative(self) -> Model:
        """The model of the features, without a discriminative correction."""
        return self._model.network if isinstance(self._model, Discriminative) else self._model

    @property
    def structure_(self) -> Structure:
        """The structure, with column names as nodes where X has names, else column indexes."""
        return self._model.structure.named(self.statistics_.schema)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, those of the class included."""
        return self._model.n_parameters

    @property
    def sharing_(self) -> float:
        """Sharing, given or chosen."""
        return self._estimation.sharing

    @property
    def class_log_prior_(self) -> Floats:
        """Log probabilities of the classes."""
        return self._model.class_log_prior

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood of the training data, class included."""
        return self._model.log_evidence

    @property
    def inclusion_probability_(self) -> Floats:
        """Posterior probability that each column depends on the class, of an average over that."""
        return self._of_average("inclusion_probability")

    @property
    def edge_probability_(self) -> Floats:
        """Posterior probability of each arc from parent (row) to child (column), of an average over arcs."""
        return self._of_average("edge_probability")

    @property
    def order_probability_(self) -> Floats:
        """Posterior probability of each order of each column: (columns, k_max)."""
        return self._of_average("order_probability")

    def _of_average(self, name: str) -> Any:
        average = without_indicators(self._model)
        if not hasattr(average, name):
            raise AttributeError(f"{name}_ exists only for an average over such structures")
        return getattr(average, name)

    @property
    def search_path_(self) -> list[SearchState]:
        """The structures that a search visited, with their scores, the chosen one last."""
        if not hasattr(self._learner, "path"):
            raise AttributeError("search_path_ exists only where the structure was searched")
        path: list[SearchState] = self._learner.path
        return path

    # ---- prediction

    def _log_scores(self, table: Table) -> Floats:
        return self._scores_of(self._model.log_likelihood(table))

    def _scores_of(self, log_likelihood: Floats) -> Floats:
        """ln p(class | x) up to a constant of each sample, in place of the log likelihoods."""
        log_likelihood *= self.likelihood_power_
        log_likelihood += self.class_log_prior_
        return log_likelihood

    def _check_integrates(self, what: str) -> None:
        check_is_fitted(self, "statistics_")
        if not self._learner.accepts_missing:
            raise ValueError(
                f"{what} integrates features out, which {self._learner!r} cannot: use a single structure, such as "
                "that of structure_"
            )

    def _members(self, table: Table, players: Players) -> list[Member]:
        return [Member(1.0, coalitions_of(self._model, table, players) * self.likelihood_power_)]

    def _known(self, table: Table) -> Mask:
        known = super()._known(table)
        return np.ones_like(known) if self._missing_indicator else known

    def _intervals(self, table: Table, level: float) -> Intervals:
        log_likelihood = self._model.log_likelihood(table)
        scores = self._model.log_densities(table, log_likelihood).times(self.likelihood_power_)
        if self._given_class_prior is None:
            scores += class_frequencies(self.statistics_.classes + self._estimation.dirichlet)
        else:
            scores = replace(scores, mean=scores.mean + self.class_log_prior_)
        return intervals_of(scores, softmax(self._scores_of(log_likelihood)), level)

    def _p_values(self, table: Table, per_class: bool) -> Floats:
        if not hasattr(self, "_samples"):
            raise NoSamplesError(
                "prediction sets need the training samples, which this model does not hold: it was saved without "
                "them, or fitted from statistics or in parts; fit it to samples with fit"
            )
        is_all = self._samples.n_samples >= self.statistics_.classes.sum()
        if is_all and not isinstance(self._model, Discriminative):
            return full_p_values(self._samples, table, self._model_with, self.likelihood_power_, per_class)
        return super()._p_values(table, per_class)

    @property
    def _held_out(self) -> HeldOutRatios | None:
        training = getattr(self, "_samples", None)
        if training is None:
            return None
        assert training.labels is not None
        if isinstance(self._model, Discriminative):  # whose intercept follows the frequencies of training
            class_log_prior = categorical(self.statistics_.classes, self._estimation.dirichlet)
            return HeldOutRatios(self._model.held_out_log_proba - class_log_prior, training.labels)
        log_proba = held_out(self._model, training, self.likelihood_power_)
        return HeldOutRatios(log_proba - self.class_log_prior_, training.labels)

    def _model_with(self, more: Table) -> Model:
        """The model of the training samples and some more."""
        if self._learner.is_additive:
            added = collect(more, self.statistics_.families)
            return self._generative_of(self._learner, (self.statistics_ + added).recentred())
        every = concatenated([self._samples, more])
        assert self._samples.labels is not None
        assert more.labels is not None
        every = replace(every, labels=np.concatenate([self._samples.labels, more.labels]))
        learner = self._learner.resolved(every, self._estimation)
        return self._generative_of(learner, collect(every, learner.families(every.schema)))

    def _log_density(self, table: Table) -> Floats:
        return self._generative.log_likelihood(table)

    def _leave_one_out(self, table: Table) -> Floats:
        joint, class_log_prior = self._model.leave_one_out(table)
        joint *= self.likelihood_power_
        joint += class_log_prior
        return joint

    @property
    def _typical(self) -> Reference:
        check_is_fitted(self, "statistics_")
        if not hasattr(self, "_reference"):
            raise NotExactError("typicality needs held-out densities of training samples: only fit computes them")
        if isinstance(self._reference, Table):
            with numeric_libraries().limit(limits=1, user_api="blas"):  # many small products
                self._reference = Reference.of(self._generative, self._reference, self._without, self._leaks)
        return self._reference

    @property
    def _leaks(self) -> bool:
        """Whether leave-one-out with a structure and a prior that are learned from all samples is optimistic."""
        if not self._learner.has_leave_one_out or not self._learner.is_additive:
            return True
        # Of few samples for its many features, each determines a direction, in which there is the prior alone.
        model = without_indicators(self._generative)
        statistics = model.statistics if isinstance(model, Network) else self.statistics_
        largest = max((1 + len(parents) for _, parents in model.structure.families), default=0)
        return 2 * largest > float(statistics.classes.sum()) * statistics.smallest_family()[0]

    def _without(self, rows: NDArray[np.intp]) -> Model:
        """The model without some of the training samples."""
        assert isinstance(self._reference, Table)
        others = self._reference.rows(np.setdiff1d(np.arange(self._reference.n_samples), rows))
        learner = self._learner.resolved(others, self._estimation)
        statistics = collect(others, learner.families(others.schema), self.statistics_.incomplete)
        return self._generative_of(learner, statistics)

    def _drawn(self) -> Table:
        labels = spread_labels(self.class_log_prior_, n_draws(self.statistics_.schema.n_columns))
        return draw(drawable(self._generative), labels, np.random.default_rng(0))

    @property
    def _given_class_prior(self) -> tuple[float, ...] | None:
        return self._estimation.class_prior

    def _take_class_prior(self, class_prior: tuple[float, ...]) -> None:
        self._estimation = replace(self._estimation, class_prior=class_prior)

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log p(class) + likelihood_power · log p(x | class): (samples, classes)."""
        return self._log_scores(self._table(X))

    def contributions(self, X: Any, sites: Any = None) -> Floats:
        """Log density of each feature under each class: (samples, features, classes).

        Their sum over features, times ``likelihood_power_``, plus ``class_log_prior_``, is `predict_joint_log_proba`.
        Features that are missing, excluded from the model or constant in training have 0. With
        ``missing_indicator=True`` the log probability of being missing, or not, is included. With ``sites``, as in
        `predict_log_proba`, samples are without the shifts of these.
        """
        return self._model.contributions(self._placed(X, sites).table)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray[Any]]:
        """Draw samples and their classes from the predictive distribution, with likelihood power 1.

        With ``estimation="discriminative"`` from that of ``"bayes"``.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        X : array or data frame, as in training
            Columns that are excluded from the model are 0, or their first level. Values are missing only with
            ``missing_indicator=True``, as often as in the training samples of the class.
        y : ndarray (n_samples,)
        """
        check_is_fitted(self, "statistics_")
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, not {n_samples!r}")
        rng = check_random_state(random_state)
        labels = rng.choice(len(self.classes_), size=n_samples, p=np.exp(self.class_log_prior_))
        network = without_indicators(self._generative)
        if not isinstance(network, Network):
            raise ValueError("samples can only be drawn from a single structure, neither averaged nor rotated")
        table = draw(network, labels, rng)
        if isinstance(self._model, Indicated):
            table = self._model.indicators.with_missing_values(table, rng)
        return to_training_type(table), self.classes_[labels]
