"""CGNClassifierCV: the estimator that tunes itself."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from cgnlearn.candidates.assembly import assembled
from cgnlearn.candidates.candidate import Candidate, HeldOut, Profile, Samples, Skipped, held_out_frequencies
from cgnlearn.candidates.comparison import Comparison, Scores
from cgnlearn.candidates.mixture import Mixture
from cgnlearn.candidates.registry import CANDIDATES, suited
from cgnlearn.candidates.results import members, results
from cgnlearn.candidates.weights import mixture_weights
from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import readable
from cgnlearn.data.splits import stratified_part
from cgnlearn.data.table import HandleUnknown, Table, read_training
from cgnlearn.data.transforms import learned
from cgnlearn.estimators.chart import bars
from cgnlearn.estimators.classifier import fitting, without_weightless
from cgnlearn.estimators.prediction import Predictions
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.estimation import class_prior_of
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.typicality import Reference
from cgnlearn.progress import Watched, reported, watched
from cgnlearn.structures.learner import Learner

MOST_SAMPLES = 10_000  # in which candidates are compared
LONG = 5.0  # minutes of which a user is told before
TRANSFORMS = ("none", "power")


class CGNClassifierCV(Predictions, Watched):
    """The classifier that tunes itself: a mixture of networks and logistic regressions, weighted by samples left out.

    Candidates are structures × sharing × transforms of the columns × parameters × likelihood power, and the class
    frequencies, as far as they suit the table. Each says of every training sample, without having seen it, how probable
    its class is: by exact leave-one-out where there is a closed form, else out of folds. Weights come of these, half
    by pseudo-BMA+ and half by stacking, and the mixture predicts.

    Parameters
    ----------
    candidates : collection of str and learners, optional
        What is tried; None: ``"naive_bayes"``, ``"selective_naive_bayes"``, ``"complete"``, ``"tan"``, ``"aode"`` and
        ``"logistic"``, and with ``ordered=True`` ``"band"`` and ``"band_average"``, as far as they suit the table.
        Other names are ``"tan_average"``, ``"fwgjan"``, ``"bwgjan"``, ``"wcgjan"`` and ``"box"``. The class frequencies
        always are tried.
    transforms : sequence of {"none", "power"}, default=("none", "power")
        Of continuous columns. ``"power"``: Yeo and Johnson's, learned from the training samples.
    ordered : bool, default=False
        Whether the order of the columns means something, as in spectra: bands are then tried.
    combine : {"mixture", "best"}, default="mixture"
        ``"best"``: the one candidate with the best score.
    cv : int, optional
        Folds for all candidates. None: leave-one-out where it is exact and no groups are given, else 5 folds.
    prior : Prior, optional
        What is believed beforehand; None means ``Prior()``.
    class_prior : "uniform" or array, optional
        Probabilities of the classes in predictions, in the order of ``classes_``; None learns them. Candidates are
        compared with the training data's own.
    categorical_features : "from_dtype" or list of names or indexes, or a mask, default="from_dtype"
        Which columns are discrete; ``"from_dtype"``: those with a categorical dtype.
    handle_unknown : {"missing", "error"}, default="missing"
        What a level that training never showed is at prediction: as if it had not been observed, with one warning
        that counts such levels; or an error.
    n_jobs : int, optional
        Candidates that are compared side by side, in threads. The numbers are the same whatever it is.
    random_state : int, RandomState or None, default=0
        How folds are cut and samples bootstrapped: the same every time, unless it is None.

    Attributes
    ----------
    classes_ : ndarray (classes,)
    members_ : list of Member
        The candidates in the mixture, the heaviest first, each with its ``settings``, ``likelihood_power``,
        ``weight`` and ``log_loss``.
    weights_ : ndarray (members,)
    best_ : Member
        The candidate with the best score.
    cv_results_ : dict of ndarray
        A table with a row for each of the settings: ``param_candidate`` and other parameters (NaN where it has none),
        ``likelihood_power``, ``mean_test_log_loss`` and ``mean_test_accuracy`` of held-out samples with their ranks,
        how samples were held out (``by``), ``weight``; and a row for each candidate that was skipped, with the
        ``reason``.
    oof_log_proba_ : ndarray (samples compared in, classes)
        What the members say of the training samples without them, mixed.
    tuning_indices_ : ndarray of int
        The samples of X in which candidates were compared: all, or of a large table some.
    class_log_prior_ : ndarray (classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has string column names.

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
        cv: int | None = None,
        prior: Prior | None = None,
        class_prior: Literal["uniform"] | ArrayLike | None = None,
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        handle_unknown: HandleUnknown = "missing",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.candidates = candidates
        self.transforms = transforms
        self.ordered = ordered
        self.combine = combine
        self.cv = cv
        self.prior = prior
        self.class_prior = class_prior
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.n_jobs = n_jobs
        self.random_state = random_state

    # ---- training

    @reported
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Compare the candidates and keep those that have weight.

        Parameters
        ----------
        X : array or data frame (samples, features)
        y : array (samples,)
        sample_weight : array (samples,), optional
        groups : array (samples,), optional
            Samples that belong together, such as a person's spectra: candidates are then compared in folds that never
            part them.
        """
        with fitting(self):
            self._check()
            X, y, sample_weight, groups = without_weightless(readable(X), y, sample_weight, groups)
            validate_data(self, X, reset=True, skip_check_array=True)
            table, self.classes_ = read_training(X, y, sample_weight, self.categorical_features)
            if groups is not None:
                check_consistent_length(table.codes, groups)
                groups = np.asarray(groups)
            prior = self.prior or Prior()
            prior.check_features(table.schema.n_columns)
            self._dirichlet = prior.dirichlet
            self._class_prior = class_prior_of(self.class_prior, table.schema.n_classes)
            # Matrices this small only lose by being cut up for several threads, and sums must not depend on n_jobs.
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
        if self.combine not in ("mixture", "best"):
            raise ValueError(f'combine must be "mixture" or "best", not {self.combine!r}')
        self._take_handle_unknown()
        if self.cv is not None and not (isinstance(self.cv, int | np.integer) and self.cv >= 2):
            raise ValueError(f"cv must be None or a number of folds of at least 2, not {self.cv!r}")

    def _profile(self, table: Table, n_samples: int) -> Profile:
        """What decides which candidates suit the table."""
        prior = self.prior or Prior()
        return Profile(
            table.schema, n_samples, tuple(self.transforms), prior, bool(self.ordered), bool(table.incomplete)
        )

    def _fit(self, table: Table, groups: Any, random_state: np.random.RandomState) -> None:
        seed = random_state.randint(np.iinfo(np.int32).max)
        self.tuning_indices_ = _some(table, groups, seed)
        whole = len(self.tuning_indices_) == table.n_samples
        compared = table if whole else table.rows(self.tuning_indices_)
        groups = groups if groups is None or whole else groups[self.tuning_indices_]
        profile = self._profile(table, compared.n_samples)
        suiting = list(suited(profile, self.candidates))
        candidates = [each for each in suiting if isinstance(each, Candidate)]
        expected = [each.seconds(profile) for each in candidates]
        if (minutes := sum(expected) / 60) > LONG:
            warnings.warn(
                f"comparing these candidates may take {minutes:.0f} minutes: name fewer in candidates, or give n_jobs",
                UserWarning,
                stacklevel=5,
            )
        transforms = learned(dict.fromkeys(each.transform for each in candidates), table)
        samples = Samples(compared, transforms, groups)
        comparison = Comparison(samples, candidates, self._dirichlet, cv=self.cv, seed=seed)
        outcomes = list(watched(self, comparison.held_out(self.n_jobs), expected))
        held_out = [each for each in outcomes if isinstance(each, HeldOut)]
        skipped = [each for each in (*suiting, *outcomes) if isinstance(each, Skipped)]
        scores = Scores.of(held_out, compared)
        if self.combine == "best":
            weight = (np.arange(len(scores.power)) == scores.best()).astype(float)
        else:
            weights = np.ones(compared.n_samples) if compared.weights is None else compared.weights
            weight = mixture_weights(scores, weights, 0, random_state)  # the first are the class frequencies
        found = members(held_out, scores, weight)
        self.cv_results_ = results(held_out, scores, weight, skipped)
        self.best_ = found[scores.best()]
        self.members_ = sorted((each for each in found if each.weight > 0), key=lambda each: -each.weight)
        self.weights_ = np.array([each.weight for each in self.members_])
        all_samples = samples if whole else Samples(table, transforms)
        self._mixture, self.oof_log_proba_, self._reference = assembled(
            held_out, scores, weight, samples, all_samples, self._dirichlet
        )
        self.statistics_ = collect(table, Structure.naive_bayes(table.schema.n_columns).as_families(table.schema))

    # ---- prediction

    @property
    def class_log_prior_(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a sample."""
        check_is_fitted(self, "statistics_")
        return self._mixture.class_log_prior

    def _log_scores(self, table: Table) -> Floats:
        return self._mixture.log_proba(table)

    def _log_density(self, table: Table) -> Floats:
        return self._mixture.log_density(table)

    def _leave_one_out(self, table: Table) -> Floats:
        if self._class_prior is not None:
            return self._mixture.leave_one_out(table, self.class_log_prior_)
        return self._mixture.leave_one_out(table, held_out_frequencies(table, self._dirichlet))

    @property
    def _typical(self) -> Reference:
        return self._reference

    @property
    def _given_class_prior(self) -> tuple[float, ...] | None:
        return self._class_prior

    def _take_class_prior(self, class_prior: tuple[float, ...]) -> None:
        self._class_prior = class_prior
        self._mixture = self._mixture.with_class_log_prior(np.log(class_prior))

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log p(class | x) + log p(x), the latter as in `score_samples`: (samples, classes)."""
        table = self._table(X)
        return self._log_scores(table) + self._log_marginal(table)[:, None]

    def contributions(self, X: Any) -> Floats:
        """The members' contributions, times their likelihood powers, averaged with their weights.

        Returns
        -------
        ndarray (samples, features, classes)
            Summed over features, plus ``class_log_prior_``, about the log probabilities of the classes up to a
            constant of the sample: `contributions_remainder` says how far from it.
        """
        table = self._table(X)
        return self._mixture.contributions(table)

    def contributions_remainder(self, X: Any) -> Floats:
        """What the sum of the `contributions` leaves unsaid of the log probabilities: (samples, classes).

        Mixing probabilities is no mixing of their logarithms, and some members are no sums over features. Both sides
        are centred: logarithms of probabilities count up to a constant of the sample.
        """
        told = self.contributions(X).sum(axis=1) + self.class_log_prior_
        left = self.predict_log_proba(X) - normalised(told)
        return np.asarray(left - left.mean(axis=1, keepdims=True))

    def _html_repr(self) -> str:
        page: str = estimator_html_repr(self)
        if not hasattr(self, "members_"):
            return page
        before, end, after = page.rpartition("</div>")
        return before + bars([str(member) for member in self.members_], self.weights_.tolist()) + end + after

    _repr_html_inner = _html_repr


def _some(table: Table, groups: Any, seed: int) -> NDArray[np.intp]:
    """All samples, or of many some, the classes in their proportions and groups whole."""
    if table.n_samples <= MOST_SAMPLES:
        return np.arange(table.n_samples)
    assert table.labels is not None
    n_parts = -(-table.n_samples // MOST_SAMPLES)
    return stratified_part(table.labels, n_parts, seed, groups)


def expected_seconds(model: CGNClassifierCV, X: Any, y: Any) -> float:
    """About how long a fit takes."""
    X, y, _, _ = without_weightless(readable(X), y, None, None)
    table, _ = read_training(X, y, None, model.categorical_features)
    profile = model._profile(table, min(table.n_samples, MOST_SAMPLES))
    return sum(each.seconds(profile) for each in suited(profile, model.candidates) if isinstance(each, Candidate))
