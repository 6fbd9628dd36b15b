"""CGNClassifierCV: the public estimator that compares candidates and mixes them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from time import monotonic
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from cgnlearn.candidates.budget import affordable, too_long
from cgnlearn.candidates.candidate import (
    Candidate,
    HeldOut,
    Profile,
    Samples,
    Skipped,
    Training,
    held_out_frequencies,
)
from cgnlearn.candidates.comparison import Comparison, Scores, results
from cgnlearn.candidates.knowledge import believed
from cgnlearn.candidates.merging import as_one, members, merged
from cgnlearn.candidates.mixture import NO_DENSITY, Mixture, assembled
from cgnlearn.candidates.registry import CANDIDATES, suited
from cgnlearn.candidates.uncertainty import mixture_intervals
from cgnlearn.candidates.weights import Evidence
from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import readable
from cgnlearn.data.levels import NO_LEVELS
from cgnlearn.data.splits import stratified_part
from cgnlearn.data.table import HandleUnknown, Table, read_training
from cgnlearn.data.transforms import learned
from cgnlearn.estimators.class_prior import HeldOutRatios
from cgnlearn.estimators.fitting import fitting, samples_to_keep, without_weightless
from cgnlearn.estimators.prediction import Predictions
from cgnlearn.networks.coalitions import Players
from cgnlearn.networks.densities import categorical, normalised
from cgnlearn.networks.estimation import class_prior_of, is_number
from cgnlearn.networks.intervals import N_DRAWS, Intervals
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.shapley import Member
from cgnlearn.networks.statistics import collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.typicality import Reference
from cgnlearn.progress import Watched, reported, watched
from cgnlearn.structures.learner import Learner

MOST_SAMPLES = 10_000  # on which candidates are compared
MOST_PREDICTIONS = 400_000  # samples × classes of that comparison, of which every setting keeps its own
LONG = 5.0  # minutes from which on a warning is given
MOST_BARS = 12  # members in the HTML representation
TRANSFORMS = ("none", "power")


class CGNClassifierCV(Predictions, Watched):
    """Classifier that tunes itself: a mixture of networks and logistic regressions, weighted by held-out predictions.

    Candidates differ in structure, sharing, transform of the columns, penalty and so on; those that do not suit the
    table are skipped. Each predicts held-out training samples: by exact leave-one-out where it has a closed form, else
    in folds. Each setting has the likelihood power with the least held-out log loss; the settings of a candidate are
    merged into one member. The weights of the mixture are the mean of pseudo-BMA+ and stacking weights, and it predicts
    with the weighted mean of its members' probabilities.

    Parameters
    ----------
    candidates : collection of str and learners, optional
        What is tried. None: ``"naive_bayes"``, ``"selective_naive_bayes"``, ``"complete"``, ``"tan"``, ``"logistic"``
        and, from three classes on, ``"ordinal"``; with ``ordered=True`` also ``"band"``. Other names are ``"aode"``,
        ``"tan_average"``, ``"band_average"``, ``"fwgjan"``, ``"bwgjan"``, ``"wcgjan"`` and ``"box"``. The class
        frequencies are always tried.
    transforms : sequence of {"none", "power"}, default=("none", "power")
        Transforms of the continuous columns that are tried. ``"power"``: Yeo-Johnson, learned from the training
        samples.
    ordered : bool, default=False
        Whether the order of the columns is meaningful, as in spectra.
    combine : {"mixture", "best"}, default="mixture"
        ``"best"``: predict with one candidate: of those whose held-out log loss is within a standard error of the
        least, the least confident.
    max_members : int, optional, default=8
        Most candidates in the mixture, the heaviest. None: all.
    time_limit : float, optional
        Seconds for the comparison of candidates. By their expected times, those are chosen that gain most for their
        time, the same on every machine; the others are skipped with a reason in ``cv_results_``. What has not begun
        when the time is over is skipped too.
    cv : int, optional
        Number of folds for all candidates. None: leave-one-out where it is exact and there are no groups, else 5 folds.
    prior : Prior, optional
        Prior of the parameters of networks; None means ``Prior()``.
    class_prior : "uniform" or array, optional
        Probabilities of the classes in predictions, in the order of ``classes_``. None: the frequencies in the training
        data, with which candidates are compared in any case.
    categorical_features : "from_dtype", list of names or indexes, or mask, default="from_dtype"
        Which columns are discrete. ``"from_dtype"``: those of categories, text or truths; text with almost as many
        values as samples, such as ids, is refused.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do with a level at prediction that training did not have: treat it as a missing value, with a warning,
        or raise an error.
    n_jobs : int, optional
        Number of threads that compare candidates. The results do not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of folds and bootstraps.
    verbose : int, default=0
        1: show the progress of `fit` on stderr, as a bar of rich or tqdm if one is installed, else in lines.

    Attributes
    ----------
    classes_ : ndarray (classes,)
        Class labels.
    members_ : list of Member
        The candidates in the mixture, the heaviest first, each with its settings merged into one model by a weighted
        mean of their log odds. A member has ``settings`` (a mapping: ``"candidate"``, ``"terms"`` of a regression),
        ``shares`` (the merged settings, such as transforms, penalties and sharings, each with its share),
        ``likelihood_power``, ``weight`` and ``log_loss`` of held-out samples.
    weights_ : ndarray (members,)
        Weights of the members; they sum to 1.
    best_ : Member
        The member that ``combine="best"`` would take.
    cv_results_ : dict of ndarray
        A table with a row for each setting. ``param_candidate``, ``param_transform`` and other ``param_*`` are its
        settings (NaN or empty where they do not apply), ``validation`` is ``"leave-one-out"`` or the number of folds,
        ``likelihood_power`` the best one, ``mean_test_log_loss`` and ``mean_test_accuracy`` are the scores of held-out
        samples with their ranks ``rank_test_*``, and ``weight`` is that of its member times its share there.
        A skipped candidate has a row with the ``reason``.
    prior_ : Prior
        The prior as given, without reference ranges if they were set aside.
    oof_log_proba_ : ndarray (tuning samples, classes)
        Log probabilities of the held-out training samples by the mixture.
    tuning_indices_ : ndarray of int
        The samples of X on which candidates were compared: all, or a stratified part of more than
        10,000, or of more than 400,000 divided by the number of classes.
    class_log_prior_ : ndarray (classes,)
        Log probabilities of the classes.
    mixture_power_ : float
        Power of the mixture's likelihood ratios, from 1 to 1.5: the mean of its members alone is too unsure.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only where X has string column names.

    See Also
    --------
    CGNClassifier : One network, with given settings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CGNClassifierCV(candidates=["naive_bayes", "complete"]).fit(X, y)
    >>> model.best_.settings["candidate"]
    'complete'
    >>> model.predict_proba(X[:1]).round(2)
    array([[1., 0., 0.]])
    """

    _mixture: Mixture

    def __init__(
        self,
        *,
        candidates: Collection[str | Learner] | None = None,
        transforms: Sequence[Literal["none", "power"]] = TRANSFORMS,  # type: ignore[assignment]
        ordered: bool = False,
        combine: Literal["mixture", "best"] = "mixture",
        max_members: int | None = 8,
        time_limit: float | None = None,
        cv: int | None = None,
        prior: Prior | None = None,
        class_prior: Literal["uniform"] | ArrayLike | None = None,
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        handle_unknown: HandleUnknown = "missing",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.transforms = transforms
        self.ordered = ordered
        self.combine = combine
        self.max_members = max_members
        self.time_limit = time_limit
        self.cv = cv
        self.prior = prior
        self.class_prior = class_prior
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- training

    @reported
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, sites: Any = None) -> Self:
        """Compare the candidates and fit the mixture.

        Parameters
        ----------
        X : array or data frame (samples, features)
        y : array (samples,)
        sample_weight : array (samples,), optional
        groups : array (samples,), optional
            Samples that belong together, such as the spectra of a person: candidates are then compared in folds that
            never split them. None may be missing.
        sites : array (samples,), optional
            Where each sample was measured, such as a hospital, instrument or batch. Each continuous feature then has a
            shift by site, which is estimated beside the classes and shrunk by its evidence (``site_shift_``), and is
            subtracted. At prediction give the sites of the samples.
        """
        with fitting(self):
            self._check()
            table, groups = self._read_training(X, y, sample_weight, groups, sites)
            self.prior_ = self.prior or Prior()
            self._dirichlet = self.prior_.dirichlet
            self._class_prior = class_prior_of(self.class_prior, table.schema.n_classes)
            naive = Structure.naive_bayes(table.schema.n_columns)
            self.statistics_ = collect(table, naive.as_families(table.schema))
            table = _as_constants(table, self.statistics_.without_values)
            # Matrices this small are slower in several threads, and sums must not depend on n_jobs.
            with numeric_libraries().limit(limits=1, user_api="blas"):
                self._fit(table, groups, check_random_state(self.random_state))
            if self._class_prior is not None:
                self._take_class_prior(self._class_prior)
        return self

    def _check(self) -> None:
        for each in self.candidates if self.candidates is not None else ():
            if not isinstance(each, Learner) and each not in CANDIDATES:
                raise ValueError(f"candidates must be learners or among {', '.join(CANDIDATES)}, not {each!r}")
        if unknown := [name for name in self.transforms if name not in TRANSFORMS]:
            raise ValueError(f'transforms must be "none" or "power", not {unknown[0]!r}')
        if self.max_members is not None and not (
            isinstance(self.max_members, int | np.integer) and self.max_members >= 1
        ):
            raise ValueError(f"max_members must be None or a number of at least 1, not {self.max_members!r}")
        if self.time_limit is not None and not (is_number(self.time_limit) and self.time_limit > 0):
            raise ValueError(f"time_limit must be None or a positive number of seconds, not {self.time_limit!r}")
        if self.combine not in ("mixture", "best"):
            raise ValueError(f'combine must be "mixture" or "best", not {self.combine!r}')
        self._take_handle_unknown()
        if self.cv is not None and not (isinstance(self.cv, int | np.integer) and self.cv >= 2):
            raise ValueError(f"cv must be None or a number of folds of at least 2, not {self.cv!r}")

    def _profile(self, table: Table, n_samples: int, prior: Prior) -> Profile:
        known, transforms = prior.resolved(table.schema), tuple(self.transforms)
        return Profile(table.schema, n_samples, transforms, known, bool(self.ordered), bool(table.incomplete))

    def _affordable(
        self, suiting: list[Candidate | Skipped], profile: Profile
    ) -> tuple[list[Candidate], list[float], list[int]]:
        """Candidates in the order in which they are tried, their expected times, and their order otherwise.

        What does not fit in the time limit is added to those that suit, as skipped.
        """
        candidates = [each for each in suiting if isinstance(each, Candidate)]
        expected = [each.seconds(profile) for each in candidates]
        if self.time_limit is None:
            return candidates, expected, list(range(len(candidates)))
        order = affordable(candidates, expected, self.time_limit)
        others = sorted(set(range(len(candidates))).difference(order))
        suiting += [too_long(candidates[i], expected[i], self.time_limit) for i in others]
        return [candidates[i] for i in order], [expected[i] for i in order], order

    def _fit(self, table: Table, groups: Any, random_state: np.random.RandomState) -> None:
        started, seed = monotonic(), random_state.randint(np.iinfo(np.int32).max)
        self.tuning_indices_ = _tuning_indices(table, groups, seed)
        is_all = len(self.tuning_indices_) == table.n_samples
        compared = table if is_all else table.rows(self.tuning_indices_)
        groups = groups if groups is None or is_all else groups[self.tuning_indices_]
        self.prior_ = believed(self.prior_, compared, groups, seed)
        profile = self._profile(table, compared.n_samples, self.prior_)
        suiting = list(suited(profile, self.candidates))
        candidates, expected, order = self._affordable(suiting, profile)
        if (minutes := sum(expected) / 60) > LONG:
            warnings.warn(
                f"comparing these candidates may take {minutes:.0f} minutes: set time_limit or n_jobs, or name fewer",
                UserWarning,
                stacklevel=5,
            )
        transforms = learned(dict.fromkeys(each.transform for each in candidates), table)
        samples = Samples(compared, transforms, groups)
        deadline = np.inf if self.time_limit is None else started + self.time_limit
        comparison = Comparison(samples, candidates, self._dirichlet, cv=self.cv, seed=seed, deadline=deadline)
        # Outcomes come first, so that the last one is reported too; a callback may stop them.
        tried = zip(watched(self, comparison.held_out(self.n_jobs), expected), order, strict=False)
        outcomes = [outcome for outcome, _ in sorted(tried, key=lambda pair: pair[1])]
        held_out = [each for each in outcomes if isinstance(each, HeldOut)]
        skipped = [each for each in (*suiting, *outcomes) if isinstance(each, Skipped)]
        if skipped and len(held_out) == 1:  # the class frequencies
            raise ValueError(f"no candidate can be fitted; {skipped[0].name}: {skipped[0].reason}")
        scores = Scores.of(held_out, compared)
        evidence = Evidence.of(compared.effective_weights, random_state)
        of_candidates = merged(held_out, scores, evidence)
        merged_scores = Scores.of([as_one(each) for each in of_candidates], compared)
        best = merged_scores.cautious_best(compared)
        if self.combine == "best":
            weights = (np.arange(len(of_candidates)) == best).astype(float)
        else:
            weights = evidence.mixture_weights(merged_scores, 0, self.max_members)  # 0 are the class frequencies
        weight_draws = evidence.weight_draws(merged_scores, weights, N_DRAWS)
        every_member = members(of_candidates, merged_scores, weights)
        places = {id(each): i for i, each in enumerate(held_out)}
        of_settings = [np.zeros(len(each.log_likelihood)) for each in held_out]
        for weight, pieces in zip(weights, of_candidates, strict=True):
            for piece in pieces:
                of_settings[places[id(piece.held_out)]] = weight * piece.shares
        self.cv_results_ = results(held_out, scores, np.concatenate(of_settings), skipped)
        self.best_ = every_member[best]
        self.members_ = sorted((each for each in every_member if each.weight > 0), key=lambda each: -each.weight)
        self.weights_ = np.array([each.weight for each in self.members_])
        assert compared.labels is not None
        self._samples, self._tuning_labels = samples_to_keep(table), compared.labels
        all_samples = samples if is_all else Samples(table, transforms)
        self._mixture, self.oof_log_proba_, self._reference = assembled(
            of_candidates, merged_scores, weights, samples, all_samples, self._dirichlet, weight_draws
        )

    # ---- prediction

    def _table(self, X: Any, y: Any = None, sample_weight: Any = None) -> Table:
        return _as_constants(super()._table(X, y, sample_weight), self.statistics_.without_values)

    @property
    def class_log_prior_(self) -> Floats:
        """Log probabilities of the classes."""
        check_is_fitted(self, "statistics_")
        return self._mixture.class_log_prior

    @property
    def mixture_power_(self) -> float:
        """Power of the mixture's likelihood ratios."""
        check_is_fitted(self, "statistics_")
        return self._mixture.power

    def _log_scores(self, table: Table) -> Floats:
        return self._mixture.log_proba(table)

    def _check_integrates(self, what: str) -> None:
        check_is_fitted(self, "statistics_")
        if not any(part.accepts_missing for part in self._mixture.parts):
            raise ValueError(f"{what} integrates features out, which no member can: add naive_bayes to candidates")

    @property
    def _power(self) -> float:
        return self._mixture.power

    def _members(self, table: Table, players: Players) -> list[Member]:
        return self._mixture.coalitions(table, players)

    def _intervals(self, table: Table, level: float) -> Intervals:
        mass = self.statistics_.classes + self._dirichlet if self._class_prior is None else None
        return mixture_intervals(self._mixture, table, level, self._training, mass)

    @property
    def _held_out(self) -> HeldOutRatios:
        class_log_prior = categorical(self.statistics_.classes, self._dirichlet)  # another is taken after the fit
        return HeldOutRatios(self.oof_log_proba_ - class_log_prior, self._tuning_labels)

    @cached_property
    def _training(self) -> Training | None:
        """The training samples, if the model holds them."""
        if not hasattr(self, "_samples"):
            return None
        kept = replace(self._samples, labels=None)
        is_all = len(self.oof_log_proba_) == kept.n_samples  # more would not have been compared
        log_proba = self.oof_log_proba_ if is_all else self._mixture.log_proba(kept)
        times = len(self.tuning_indices_) / self._samples.n_samples
        return Training(Samples(self._samples, self._mixture.transforms), np.exp(log_proba), max(1.0, times))

    def _log_density(self, table: Table) -> Floats:
        return self._mixture.log_density(table)

    def _leave_one_out(self, table: Table) -> Floats:
        if self._class_prior is not None:
            return self._mixture.leave_one_out(table, self.class_log_prior_)
        return self._mixture.leave_one_out(table, held_out_frequencies(table, self._dirichlet))

    @property
    def _typical(self) -> Reference:
        check_is_fitted(self, "statistics_")
        if self._reference is None:
            raise NotExactError(NO_DENSITY)
        return self._reference

    def _drawn(self) -> Table:
        return self._mixture.drawn(self.statistics_.schema.n_columns)

    @property
    def _given_class_prior(self) -> tuple[float, ...] | None:
        return self._class_prior

    def _take_class_prior(self, class_prior: tuple[float, ...]) -> None:
        self._class_prior = class_prior
        self._mixture = self._mixture.with_class_log_prior(np.log(class_prior))

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log p(class | x) + log p(x), with p(x) of `score_samples`: (samples, classes)."""
        table = self._table(X)
        return self._log_scores(table) + self._log_marginal(table)[:, None]

    def contributions(self, X: Any, sites: Any = None) -> Floats:
        """Weighted mean of the members' contributions times all likelihood powers: (samples, features, classes).

        Their sum over features plus ``class_log_prior_`` approximates the log probabilities of the classes, up to a
        constant of the sample; `contributions_remainder` is the difference. With ``sites``, as in `predict_log_proba`,
        samples are without the shifts of these.
        """
        return self._mixture.contributions(self._placed(X, sites).table)

    def contributions_remainder(self, X: Any, sites: Any = None) -> Floats:
        """Log probabilities less the sum of the `contributions`, centred in each sample: (samples, classes).

        It is not 0, as a mean of probabilities is not one of their logarithms, and some members are no sums over
        features.
        """
        table = self._placed(X, sites).table
        approximation = normalised(self._mixture.contributions(table).sum(axis=1) + self.class_log_prior_)
        remainder = normalised(self._log_scores(table)) - approximation
        return np.asarray(remainder - remainder.mean(axis=1, keepdims=True))

    def _html_repr(self) -> str:
        page: str = estimator_html_repr(self)
        if not hasattr(self, "members_"):
            return page
        before, end, after = page.rpartition("</div>")
        return before + _bars([(str(member), member.weight) for member in self.members_]) + end + after

    _repr_html_inner = _html_repr


def _bars(weights: list[tuple[str, float]]) -> str:
    """Members and their weights as an HTML table with bars, the last line for all that do not fit."""
    if len(weights) > MOST_BARS:
        rest = sum(weight for _, weight in weights[MOST_BARS:])
        weights = [*weights[:MOST_BARS], (f"{len(weights) - MOST_BARS} more", rest)]
    longest = max(weight for _, weight in weights)
    cell = '<td style="padding: 0 .5em; text-align: left; font-size: .9em">'
    rows = "".join(
        f"<tr>{cell}{escape(name)}</td>{cell}{weight:.3f}</td>{cell}"
        f'<div style="height: .7em; width: {160 * weight / longest:.0f}px; background: #4477aa"></div>'
        "</td></tr>"
        for name, weight in weights
    )
    return f'<table style="border-collapse: collapse; margin: .5em 0"><tbody>{rows}</tbody></table>'


def _as_constants(table: Table, columns: Sequence[int]) -> Table:
    """The table with columns that have no value in training as constants, so that they do not make it incomplete."""
    if not columns:
        return table
    schema, values, codes = table.schema, table.values.copy(), table.codes.copy()
    values[:, [schema.position[column] for column in columns if schema.levels[column] is None]] = 0.0
    codes[:, [schema.position[column] for column in columns if schema.levels[column] is not None]] = 0
    levels = (NO_LEVELS if own and i in columns else own for i, own in enumerate(schema.levels))
    return replace(table, schema=replace(schema, levels=tuple(levels)), values=values, codes=codes)


def _tuning_indices(table: Table, groups: Any, seed: int) -> NDArray[np.intp]:
    """All samples, or a stratified part of many, which does not split groups."""
    most = _most_samples(table)
    if table.n_samples <= most:
        return np.arange(table.n_samples)
    assert table.labels is not None
    n_parts = -(-table.n_samples // most)
    return stratified_part(table.labels, n_parts, seed, groups)


def _most_samples(table: Table) -> int:
    """Number of samples on which candidates are compared: fewer where classes are many."""
    return min(MOST_SAMPLES, MOST_PREDICTIONS // table.schema.n_classes)


def expected_seconds(model: CGNClassifierCV, X: Any, y: Any) -> float:
    """Expected time of a fit."""
    X, y, _, _ = without_weightless(readable(X), y, None, None)
    table, _ = read_training(X, y, None, model.categorical_features)
    table = _as_constants(table, [column for column in table.incomplete if table.missing(column).all()])
    profile = model._profile(table, min(table.n_samples, _most_samples(table)), model.prior or Prior())
    return sum(model._affordable(list(suited(profile, model.candidates)), profile)[1])
