"""What both estimators have in common. It has no formulas of its own."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.extmath import softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import headings, readable
from cgnlearn.data.labels import group_numbers
from cgnlearn.data.sites import SiteShift
from cgnlearn.data.table import HandleUnknown, Table, read, read_training
from cgnlearn.estimators.class_prior import ClassPrior, HeldOutRatios, estimated, refuse_other_change
from cgnlearn.estimators.explanation import Explanations
from cgnlearn.estimators.fitting import warn_of_weights, without_weightless
from cgnlearn.estimators.sites import Placed, learned, placed
from cgnlearn.logistic.recalibration import bounded
from cgnlearn.networks.agreement import Agreement, agreements
from cgnlearn.networks.conformal import held_out_p_values
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.estimation import class_prior_of, is_number
from cgnlearn.networks.intervals import Intervals
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.typicality import Ranking, Reference
from cgnlearn.networks.unusual import UNUSUAL

COMPUTED = ("_model", "_ranking", "_training")  # from what else is fitted, when it is needed: neither copied nor stored


def probability(value: Any, name: str) -> float:
    """A number between 0 and 1, after checks."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number between 0 and 1, such as 0.9, not {value!r}")
    return float(value)


class Predictions(Explanations, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Reading of samples and predictions, for estimators that supply log probabilities and densities of a table."""

    categorical_features: Any
    prior: Prior | None
    classes_: NDArray[Any]
    statistics_: Statistics
    site_shift_: SiteShift
    handle_unknown: HandleUnknown
    _handle_unknown: HandleUnknown  # as it was at the fit
    _is_weighted: bool = False  # whether training samples had weights
    _samples: Table  # training samples; models from statistics alone, and saved without samples, have none

    @property
    @abstractmethod
    def class_log_prior_(self) -> Floats:
        """Log prior probabilities of the classes: (classes,)."""

    @abstractmethod
    def _log_scores(self, table: Table) -> Floats:
        """ln p(class | x) up to a constant of each sample: (samples, classes)."""

    @abstractmethod
    def _log_density(self, table: Table) -> Floats:
        """ln p(x | class): (samples, classes)."""

    @abstractmethod
    def _intervals(self, table: Table, level: float) -> Intervals:
        """Intervals of the class probabilities."""

    @property
    @abstractmethod
    def _held_out(self) -> HeldOutRatios | None:
        """What the model says of its training samples, each held out, if it knows."""

    def _p_values(self, table: Table, per_class: bool) -> Floats:
        """Conformal p-values of the classes: (samples, classes); approximate, as the model is that of all samples."""
        held_out = self._held_out
        assert held_out is not None
        log_proba = normalised(held_out.log_ratio + self.class_log_prior_)
        return held_out_p_values(log_proba, held_out.labels, normalised(self._log_scores(table)), per_class)

    @abstractmethod
    def _leave_one_out(self, table: Table) -> Floats:
        """Leave-one-out `_log_scores` of training samples."""

    @property
    @abstractmethod
    def _typical(self) -> Reference:
        """Log densities of held-out training samples, with which those of others are compared."""

    @abstractmethod
    def _drawn(self) -> Table:
        """Complete samples drawn from the density, always the same."""

    @property
    @abstractmethod
    def _given_class_prior(self) -> tuple[float, ...] | None:
        """None where the class frequencies are learned."""

    @abstractmethod
    def _take_class_prior(self, class_prior: tuple[float, ...]) -> None:
        """Predict for another prevalence."""

    def _table(self, X: Any, y: Any = None, sample_weight: Any = None) -> Table:
        """Read samples for a fitted model; with a y training samples, which must not have unknown levels."""
        check_is_fitted(self, "statistics_")
        X = readable(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        self._refuse_other_order(headings(X))
        return read(X, self.statistics_.schema, y, sample_weight, self._handle_unknown if y is None else "error")

    def _refuse_other_order(self, found: list[str] | None) -> None:
        """Refuse a frame with the headings of training in another order; names are scikit-learn's to check."""
        trained = getattr(self, "_headings", None)
        if found is not None and trained is not None and found != trained and sorted(found) == sorted(trained):
            raise ValueError(
                f"the columns of X must be in the same order as they were in fit, {', '.join(trained[:8])}"
                f"{', …' if len(trained) > 8 else ''}: put them in that order"
            )

    def _read_first(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Table:
        """Read the samples from which columns and classes are learned."""
        validate_data(self, X, reset=True, skip_check_array=True)
        if (found := headings(X)) is not None:
            self._headings = found
        table, self.classes_ = read_training(X, y, sample_weight, self.categorical_features, classes)
        return table

    def _read_training(self, X: Any, y: Any, sample_weight: Any, groups: Any, sites: Any) -> tuple[Table, Any]:
        """Read the samples of a fit, without the shifts of their sites, and their groups."""
        X, y, sample_weight, groups, sites = without_weightless(readable(X), y, sample_weight, groups, sites)
        table = self._read_first(X, y, sample_weight)
        self._is_weighted = table.weights is not None
        if table.weights is not None:
            warn_of_weights(table)
        if sites is not None:
            table, self.site_shift_ = learned(table, sites)
        return table, None if groups is None else group_numbers(groups, table.n_samples)

    def _take_handle_unknown(self) -> None:
        if self.handle_unknown not in ("missing", "error"):
            raise ValueError(f'handle_unknown must be "missing" or "error", not {self.handle_unknown!r}')
        self._handle_unknown = self.handle_unknown

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _placed(self, X: Any, sites: Any) -> Placed:
        """Read samples, without the shifts of their sites if these are given."""
        table = self._table(X)
        return Placed(table, None) if sites is None else placed(self, getattr(self, "site_shift_", None), table, sites)

    def _scores_at(self, X: Any, sites: Any) -> Floats:
        table, log_odds = self._placed(X, sites)
        scores = self._log_scores(table)
        return scores if log_odds is None else scores + log_odds

    def predict_log_proba(self, X: Any, sites: Any = None) -> Floats:
        """Log p(class | x): (samples, classes).

        ``sites`` are those of the samples, where the model was fitted with sites. A site that training did not have
        gets its shift and its class frequencies from all these samples together; without sites there is no shift.
        """
        return normalised(self._scores_at(X, sites))

    def predict_proba(self, X: Any, sites: Any = None) -> Floats:
        """Probability of every class: (samples, classes); ``sites`` as in `predict_log_proba`."""
        return softmax(self._scores_at(X, sites), copy=False)

    def predict(self, X: Any, sites: Any = None) -> NDArray[Any]:
        """The most probable class of every sample; ``sites`` as in `predict_log_proba`."""
        best = np.argmax(self._scores_at(X, sites), axis=1)
        return self.classes_[best]

    def predict_interval(self, X: Any, level: float = 0.9, *, return_std: bool = False, sites: Any = None) -> Any:
        """Credible interval of the probability of every class: (samples, classes, 2).

        It says how far the probability could be off because the training samples are few: the probability that the
        model would have with all the data there could ever be lies inside with chance ``level``, as far as the model
        is right. It says nothing about how often the predicted class is wrong: that is the probability itself.

        Parameters
        ----------
        X : array or data frame (samples, features)
        level : float between 0 and 1
        return_std : bool
            Whether to return also the standard deviation of the log odds of each class: (samples, classes).
        sites : array (samples,), optional
            As in `predict_log_proba`. The shifts of the sites count as known.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CGNClassifier(sharing=1.0).fit(X[::5], y[::5])
        >>> model.predict_proba(X[[70]]).round(2)
        array([[0.  , 0.73, 0.27]])
        >>> model.predict_interval(X[[70]])[0, 1].round(2)
        array([0.31, 0.96])
        """
        table, log_odds = self._placed(X, sites)
        found = self._intervals(table, probability(level, "level"))
        interval = np.stack([found.low, found.high], axis=-1)
        if log_odds is not None:
            scores = self._log_scores(table)
            moved = logit(softmax(scores + log_odds)) - logit(softmax(scores))
            interval = expit(logit(interval) + np.nan_to_num(moved)[:, :, None])
        return (interval, found.log_odds_std) if return_std else interval

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, per_class: bool = True, sites: Any = None
    ) -> NDArray[np.bool_]:
        """Set of classes that contains the true one with chance ``coverage`` at least: (samples, classes).

        A class is in the set if its p-value of `conformal_p_values` is above 1 - coverage. Several classes mean that
        the features cannot tell them apart; none means that the sample is unlike the training samples of every class.

        Parameters
        ----------
        X : array or data frame (samples, features)
        coverage : float between 0 and 1
        per_class : bool
            Whether the guarantee holds for the samples of each class, or only for all of them together.
        sites : array (samples,), optional
            As in `conformal_p_values`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CGNClassifier("complete").fit(X[::2], y[::2])
        >>> model.predict_set(X[[1, 133]], coverage=0.95)
        array([[ True, False, False],
               [False,  True,  True]])
        """
        least = round(1 - probability(coverage, "coverage"), 12)  # a p-value of 0.2 is not above 1 - 0.8
        return np.asarray(self.conformal_p_values(X, per_class=per_class, sites=sites) > least)

    def conformal_p_values(self, X: Any, *, per_class: bool = True, sites: Any = None) -> Floats:
        """Share of the training samples that fit their class no better than each sample fits it: (samples, classes).

        With the true class, p-values are at most α with a chance of at most α, whatever the model, if the samples are
        exchangeable with the training samples (full conformal prediction): no samples are set aside for it. With
        ``per_class`` samples are compared with those of the class alone, and n of them give at least 1 / (n + 1).

        A `CGNClassifier` tries each sample with each class and holds out the sample and all training samples in turn,
        exactly, which takes a fit for each. What it has chosen from the training samples (a search, ``"cv"``) stays.
        The p-values are approximate for `CGNClassifierCV`, ``estimation="discriminative"`` and more than 10,000
        training samples, where held-out training samples are compared with predictions of the model of all of them.
        With ``sites`` as in `predict_log_proba` samples are without the shifts of their sites; at a site that training
        did not have, nothing is guaranteed.
        """
        table = self._placed(X, sites).table
        if self._is_weighted:
            raise ValueError(
                "samples with weights are not exchangeable, so prediction sets have no guarantee: fit without "
                "sample_weight"
            )
        return self._p_values(table, per_class)

    def score_samples(self, X: Any, sites: Any = None) -> Floats:
        """Log density ln p(x), with likelihood power 1: (samples,). Low where a sample is unlike the training data.

        With ``estimation="discriminative"`` that of ``"bayes"``. Of a mixture that of the members that are densities
        or, if none is, of the best candidate that is.
        """
        return self._log_marginal(self._placed(X, sites).table)

    def _log_marginal(self, table: Table) -> Floats:
        return np.asarray(logsumexp(self._log_density(table) + self.class_log_prior_, axis=1))

    def typicality(self, X: Any, sites: Any = None) -> Floats:
        """Share of the training samples, and of itself, that are no more typical than each sample: (samples,).

        1 is as typical as any, near 0 is unlike the training data; with n training samples it is at least 1 / (n + 1).
        Samples are ranked by their densities, which are those of `score_samples`; the training samples (at most 1,000,
        at random within each class) are held out. Where other values are observed than in the training samples, a
        density stands for the share of samples drawn from the model that have a lower one with the same values
        observed: neither missing values nor units change how often samples of the same source are below a threshold.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> CGNClassifier("complete").fit(X, y).typicality([X[0], X[0] + 5]).round(2)
        array([1.  , 0.01])
        """
        return self._ranking.typicality_of(self._placed(X, sites).table)

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking(self._typical, self._given_class_prior, self._log_marginal, self._drawn)

    @property
    def prior_agreement_(self) -> list[Agreement]:
        """What the prior knows of each feature and class beside the samples; where they conflict most first.

        One entry for each feature and class with a prior location and scale of its own, such as a reference range:
        ``expected`` and ``mean`` (after the data), their standard deviations, how far it ``moved``, the
        ``log_bayes_factor`` against the default prior, and in ``words`` whether the two agree.

        Examples
        --------
        >>> from cgnlearn import CGNClassifier, Prior
        >>> prior = Prior.from_ranges({"ill": {0: (5.5, 7.1)}})
        >>> model = CGNClassifier(prior=prior).fit([[4.1], [4.5], [4.0], [4.2], [4.6], [4.1]], ["ill", "well"] * 3)
        >>> [agreement] = model.prior_agreement_
        >>> print(f"{agreement.expected:.2f}, now {agreement.mean:.2f}: prior and data {agreement.words}")
        6.30, now 6.03: prior and data conflict strongly
        """
        check_is_fitted(self, "statistics_")
        if self.prior is None:
            return []
        return agreements(self.statistics_, self.prior)

    def leave_one_out_log_proba(self, X: Any, y: Any, sample_weight: Any = None, sites: Any = None) -> Floats:
        """Leave-one-out log p(class | x) of the training samples: (samples, classes).

        Exact, at about the cost of one prediction. Held fixed are the prior (whose location and scale may depend on all
        samples), the shifts of sites, a structure learned from the samples, and the weights, likelihood powers and
        transforms of a mixture.
        A mixture needs members that all have a closed form; ``oof_log_proba_`` is there for every mixture.

        Parameters
        ----------
        X, y, sample_weight, sites
            Training samples, all or some, with their weights and sites in `fit`.
        """
        table = self._table(X, y, sample_weight)
        if sites is not None:
            table = placed(self, getattr(self, "site_shift_", None), table, sites, known=True).table
        return normalised(self._leave_one_out(table))

    def with_class_prior(self, class_prior: Literal["uniform"] | ArrayLike) -> Self:
        """Return a fitted copy for another prevalence of the classes, given as in the constructor.

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
        fitted = {
            name: value for name, value in vars(self).items() if name not in COMPUTED and not hasattr(other, name)
        }
        other.__dict__.update(fitted)
        other._take_class_prior(given)
        return other

    def estimate_class_prior(self, X: Any, *, level: float = 0.95) -> ClassPrior:
        """Frequencies of the classes where samples without labels come from, with intervals.

        Only the class frequencies may differ from training: raises ValueError where the typicality of the samples shows
        that more has changed. Probabilities must be calibrated; `update` is the better choice if some samples have
        labels. The frequencies maximise the likelihood with one sample added to each class, so that none is ever 0:
        they are a little closer to each other than those of plain EM.

        Parameters
        ----------
        X : array or data frame (samples, features)
            At least twenty samples.
        level : float
            Of the intervals: those of the profile likelihood, widened by what the held-out training samples tell of the
            model's own error, if the model holds them.

        Examples
        --------
        >>> from cgnlearn import CGNClassifier
        >>> rng = np.random.default_rng(0)
        >>> def place(n, prevalence):
        ...     y = (rng.random(n) < prevalence).astype(int)
        ...     return rng.normal(size=(n, 2)) + 2 * y[:, None], y
        >>> model = CGNClassifier().fit(*place(300, 0.5))
        >>> print(model.estimate_class_prior(place(200, 0.1)[0]))
        0 0.846 (0.778–0.902), 1 0.154 (0.098–0.222)
        """
        log_ratio = bounded(self.predict_log_proba(X)) - self.class_log_prior_
        found = estimated(log_ratio, self.classes_, level, self._held_out)
        with suppress(NotExactError):  # there is nothing to compare with
            refuse_other_change(self.typicality(X), self._ranking.expected_share(UNUSUAL, found.value))
        return found

    @property
    def _n_samples_kept(self) -> int:
        """Number of training samples that the model holds, for prediction sets and some intervals."""
        return self._samples.n_samples if hasattr(self, "_samples") else 0

    def _drop_samples(self) -> None:
        """Forget the training samples, without which `predict_set` and some intervals raise an error."""
        for name in (*COMPUTED, "_samples"):
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in COMPUTED}
