"""CGNClassifier: one conditional Gaussian network. No formula stands here."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_consistent_length, validate_data

from cgnlearn.candidates.candidate import Samples, Skipped
from cgnlearn.candidates.comparison import FOLDS, Comparison, Scores
from cgnlearn.candidates.registry import candidate_of, learner_of
from cgnlearn.candidates.results import results
from cgnlearn.data.frames import readable
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import HandleUnknown, Table, read_training
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.fitted_network import FittedNetwork
from cgnlearn.logistic.correction import fit_discriminative
from cgnlearn.networks.estimation import SampleNotAcceptableError, estimation_of, is_number
from cgnlearn.networks.indicators import without_indicators
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.typicality import scored, subsample
from cgnlearn.progress import Watched, reported, watched
from cgnlearn.structures.band import Ordered
from cgnlearn.structures.learner import Learner


def counting_learner(model: CGNClassifier, who: str) -> Learner:
    """The learner of a classifier that can be made of statistics alone; else a ValueError that says what to do."""
    learner = learner_of(model.structure)
    if learner.needs_samples:
        raise ValueError(f"{who} cannot learn the structure {model.structure!r}: fit once, then pass on its structure_")
    if not learner.is_additive:
        raise ValueError(f"{who} cannot add to what was fitted by rotation, all samples at once: call fit")
    if model.estimation == "discriminative" or hasattr(model, "discriminative_"):
        raise ValueError(
            f'{who} cannot have estimation="discriminative", which need all samples: use fit, or estimation="bayes"'
        )
    for name in ("likelihood_power", "sharing"):
        if _is_open(getattr(model, name)):
            raise ValueError(f"{who} cannot choose the {name}: fit once, then pass on its {name}_")
    return learner


def _needs_no_rows(model: CGNClassifier) -> bool:
    try:
        counting_learner(model, "partial_fit")
    except ValueError as error:
        raise AttributeError(str(error)) from None
    return True


@contextmanager
def fitting(model: Any) -> Iterator[None]:
    """Forget what an estimator has been fitted to; and, if this fails, what was fitted until then."""
    _forget(model)
    try:
        yield
    except BaseException:
        _forget(model)
        raise


def _forget(model: Any) -> None:
    parameters = model.get_params(deep=False)
    for name in list(vars(model)):
        if name not in parameters and not name.startswith(("_skl_", "_parent_callback", "_callback")):
            delattr(model, name)


def _is_open(value: Any) -> bool:
    return isinstance(value, str) and value == "cv"


class CGNClassifier(FittedNetwork, Watched):
    """Conditional Gaussian network classifier, by exact Bayesian averaging or by maximum likelihood.

    Features are continuous or discrete; continuous ones follow, in each class, linear regressions on their
    continuous parents, with other parameters for every configuration of their discrete parents. Missing values (NaN,
    None, nulls) are left out: a feature counts the samples that have it and its parents, and predictions integrate.

    Parameters
    ----------
    structure : str, Structure, learner or mapping, default="naive_bayes"
        Which features each feature depends on besides the class: ``"naive_bayes"``, ``"complete"``, ``"tan"`` (see
        `TAN`), ``"fwgjan"``, ``"bwgjan"``, ``"wcgjan"`` (searched, see `GreedyJan`), ``"band"`` and ``"box"`` (with
        ``k="cv"``, see `Band`), an average (``"selective_naive_bayes"``, ``"tan_average"``, ``"band_average"``), a
        `Structure`, a learner such as ``Band(5)``, or a mapping from each feature to its parents, by column names or
        indexes; features left out of a mapping are not in the model.
    estimation : {"bayes", "ml", "discriminative"}, default="bayes"
        ``"bayes"`` averages over all parameters, exactly; ``"ml"`` takes the likeliest; ``"discriminative"`` corrects
        the Bayesian log odds to predict the class best, by penalised conditional likelihood, with a likelihood power of
        its own and a penalty from leave-one-out.
    sharing : float from 0 to 1 or "cv", default=0.0
        How much the samples of the other classes count in a class's slopes and variances: 0 not at all, 1 as much as
        its own, which makes them common to the classes. ``"cv"``: chosen as the likelihood power is.
    prior : Prior, optional
        What is believed beforehand; None means ``Prior()``.
    class_prior : "uniform" or array, optional
        Probabilities of the classes, in the order of ``classes_``; None learns them.
    likelihood_power : positive float or "cv", default=1.0
        p(c | x) ∝ p(c) p(x | c)^likelihood power: below one the features, which never are as independent as a
        structure says, are trusted less. ``"cv"``: the one up to 1 with the least log loss of held-out samples;
        together with k and sharing, if these are ``"cv"`` too. Samples are held out by exact leave-one-out where the
        structure does not have to be learned and no groups are given, else by stratified folds, and the classes have
        the training data's own frequencies.
    categorical_features : "from_dtype" or list of names or indexes, or a mask, default="from_dtype"
        Which columns are discrete; ``"from_dtype"``: those with a categorical dtype.
    handle_unknown : {"missing", "error"}, default="missing"
        What a level that training never showed is at prediction: as if it had not been observed, with one warning
        that counts such levels; or an error.
    missing_indicator : bool, default=False
        Whether, for each column with missing values, its being missing is a feature too, which depends on the class
        alone.
    random_state : int, RandomState or None, default=0
        How a search given by its name cuts its folds, and how the folds are cut in which k and the likelihood power are
        chosen: the same every time, unless it is None.

    Attributes
    ----------
    classes_ : ndarray (classes,)
    structure_ : Structure
        With column names as nodes where X has names, else column indexes.
    search_path_ : list of SearchState
        The structures that a search visited, with their scores; only where the structure was searched.
    statistics_ : Statistics
        All that is kept of the training data; additive.
    class_log_prior_ : ndarray (classes,)
    n_parameters_ : int
    likelihood_power_ : float
    k_ : int
        Where the structure is a `Band` or `Box` with ``k="cv"``.
    cv_results_ : dict of ndarray
        Where k, the sharing or the likelihood power is ``"cv"``: a table, a row for each ``param_k`` and
        ``param_sharing`` tried, with its ``likelihood_power``, ``mean_test_log_loss`` and ``mean_test_accuracy`` of
        held-out samples and their ranks, how samples were held out (``by``), and ``weight`` 1 for the choice.
    discriminative_ : Correction
        With ``estimation="discriminative"``: ``likelihood_power``, ``intercept``, ``slopes``, ``penalty``, and the path
        of ``penalties`` with their ``held_out_log_loss``.
    log_evidence_ : float
        Log marginal likelihood of the training data, class included; with ``estimation="bayes"``, sharing 0 or 1,
        and a prior location that does not look at the cells.
    inclusion_probability_ : ndarray (columns,)
        Where the structure is `SelectiveNaiveBayes`: how probable it is that each column depends on the class.
    edge_probability_ : ndarray (columns, columns)
        Where the structure is `TANAverage`: how probable each arc is, from parent (row) to child (column).
    order_probability_ : ndarray (columns, k_max)
        Where the structure is a `BandAverage`: the probability of every order, the kinds of regression summed.
    inclusion_probability_ : ndarray (columns,)
        Where it is one: the probability that the column depends on the class at all.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CGNClassifier("complete").fit(X, y)
    >>> model.predict_proba(X[:1]).round(4)
    array([[1., 0., 0.]])
    """

    def __init__(
        self,
        structure: str | Structure | Learner | Mapping[Any, Any] = "naive_bayes",
        *,
        estimation: Literal["bayes", "ml", "discriminative"] = "bayes",
        sharing: float | Literal["cv"] = 0.0,
        prior: Prior | None = None,
        class_prior: Literal["uniform"] | ArrayLike | None = None,
        likelihood_power: float | Literal["cv"] = 1.0,
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        handle_unknown: HandleUnknown = "missing",
        missing_indicator: bool = False,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.structure = structure
        self.estimation = estimation
        self.sharing = sharing
        self.prior = prior
        self.class_prior = class_prior
        self.likelihood_power = likelihood_power
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.missing_indicator = missing_indicator
        self.random_state = random_state

    # ---- training

    @reported
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the structure, if it is to be learned, and the parameters.

        Parameters
        ----------
        X : array or data frame (samples, features)
        y : array (samples,)
        sample_weight : array (samples,), optional
            A weight of 2 counts as the sample twice, of 0 as if it were not there.
        groups : array (samples,), optional
            Samples that belong together, such as a person's spectra: what is chosen by ``"cv"`` is then chosen in folds
            that never part them.
        """
        with fitting(self):
            X, y, sample_weight, groups = without_weightless(readable(X), y, sample_weight, groups)
            table = self._first_table(X, y, sample_weight)
            if groups is not None:
                check_consistent_length(table.codes, groups)
                groups = np.asarray(groups)
            learner, counted = learner_of(self.structure, self.random_state), None
            if _is_open(self.likelihood_power) or _is_open(self.sharing) or _is_open(getattr(learner, "k", None)):
                learner, counted = self._chosen(learner, table, groups)
            self._learner = learner.resolved(table, self._estimation, groups, partial(watched, self))
            families = self._learner.families(table.schema)
            self.statistics_ = collect(table, families) if counted is None else counted.restricted(families)
            if self.estimation == "discriminative":
                self.discriminative_ = fit_discriminative(
                    self._learner.model(self.statistics_, self._estimation), table
                )
            _ = self._model  # raises here and now if the sample does not allow it
            if self.statistics_.incomplete:
                self._warn_of_few_rows()
            self._reference = subsample(table)
        return self

    def _chosen(self, learner: Learner, table: Table, groups: Any) -> tuple[Learner, Statistics | None]:
        """Choose what is ``"cv"`` by held-out samples; the statistics if all samples were counted for it."""
        open_k = isinstance(learner, Ordered) and learner.needs_samples
        candidate = candidate_of(
            learner,
            self._estimation,
            table.schema,
            any_sharing=_is_open(self.sharing),
            missing_indicator=self._missing_indicator,
        )
        comparison = Comparison(
            Samples.learning(["none"], table, groups),
            [candidate],
            self._estimation.dirichlet,
            cv=None,
            seed=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
            n_folds=learner.cv if isinstance(learner, Ordered) else FOLDS,
        )
        (found,) = comparison.held_out()
        if isinstance(found, Skipped):
            raise ValueError(found.reason)
        if np.isnan(found.log_likelihood).any(axis=(1, 2)).all():
            raise SampleNotAcceptableError(
                "maximum likelihood exists for no k without some of the samples, as some feature has no variance in "
                'some class: use estimation="bayes", more samples or fewer columns'
            )
        scores = Scores.of([found], table, None if _is_open(self.likelihood_power) else self.likelihood_power_)
        best = scores.best(learner.scoring if isinstance(learner, Ordered) else "log_loss")
        self.cv_results_ = results([found], scores, (np.arange(len(scores.power)) == best).astype(float))
        self.likelihood_power_ = float(scores.power[best])
        learner, self._estimation = candidate.choice(best)
        if open_k:
            assert isinstance(learner, Ordered)
            self.k_ = int(learner.k)
        return learner, getattr(found.fitted, "statistics", None)

    @available_if(_needs_no_rows)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, decay: float = 1.0
    ) -> Self:
        """Add samples; after any number of calls the model equals one `fit` on all of them.

        The first call needs ``classes``, all that will ever occur; a categorical column's levels are those of its
        dtype, or of the first call's samples. The structure must be one that needs no learning.

        Parameters
        ----------
        X : array or data frame (samples, features)
        y : array (samples,)
        classes : array, optional
        sample_weight : array (samples,), optional
        decay : float above 0 and up to 1, default=1.0
            Below one the samples of all calls before count that much less from now on: after calls with the same decay
            the model equals one `fit` in which the samples of the call before last weigh decay², and so on.
        """
        if not (is_number(decay) and 0 < decay <= 1):
            raise ValueError(f"decay must be a number above 0 and up to 1, not {decay!r}")
        if hasattr(self, "statistics_"):
            if classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}")
            if not self._learner.is_additive:
                raise ValueError("more columns than samples are fitted by rotation, all samples at once: call fit")
            more = collect(self._table(X, y, sample_weight), self.statistics_.families)
            # Measured from their own mean, as the first call may have brought a single sample.
            self.statistics_ = ((self.statistics_ if decay == 1 else decay * self.statistics_) + more).recentred()
            for outdated in ("_model", "_reference"):
                self.__dict__.pop(outdated, None)
            return self
        if classes is None:
            raise ValueError("the first call of partial_fit needs classes: name all that will occur")
        with fitting(self):
            table = self._first_table(readable(X), y, sample_weight, classes)
            self._learner = learner_of(self.structure)
            self.statistics_ = collect(table, self._learner.families(table.schema))
        return self

    @classmethod
    def from_statistics(cls, statistics: Statistics, **parameters: Any) -> Self:
        """A fitted classifier from statistics alone, such as the sum of several hospitals'.

        Parameters
        ----------
        statistics : Statistics
            Of at least the structure's families: ``fit`` keeps them as ``statistics_``.
        **parameters
            As for the constructor. Nothing can be chosen that needs samples.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> parts = [CGNClassifier("tan").fit(X[i::2], y[i::2]).statistics_ for i in (0, 1)]
        >>> CGNClassifier.from_statistics(sum(parts), structure="tan").predict(X[:2])
        array([0, 0])
        """
        model = cls(**parameters)
        model._learner = counting_learner(model, "from_statistics")
        schema = statistics.schema
        model.classes_ = np.array(schema.classes)
        model.n_features_in_ = schema.n_columns
        if schema.names is not None:
            model.feature_names_in_ = np.array(schema.names, dtype=object)
        model._set_up(schema)
        model.statistics_ = statistics.restricted(model._learner.families(schema))
        _ = model._model
        return model

    def _warn_of_few_rows(self) -> None:
        """Where so much is missing that a family has not half the samples."""
        model = without_indicators(self._generative)
        statistics = model.statistics if isinstance(model, Network) else self.statistics_
        share, columns = statistics.smallest_family()
        if share < 0.5:
            child, *parents = (statistics.schema.name(column) for column in columns)
            together = f" together with its parents ({', '.join(parents[:5])})" if parents else ""
            warnings.warn(
                f"{child} is observed in {share:.0%} of the samples{together}, and known from these alone: "
                "a structure with fewer parents would use more samples",
                DataWarning,
                stacklevel=4,
            )

    def _first_table(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Table:
        """The samples from which columns and classes are learned."""
        validate_data(self, X, reset=True, skip_check_array=True)
        table, self.classes_ = read_training(X, y, sample_weight, self.categorical_features, classes)
        self._set_up(table.schema)
        return table

    def _set_up(self, schema: Schema) -> None:
        """Take the parameters as they are now: what is set later changes nothing fitted."""
        sharing = 0.0 if _is_open(self.sharing) else self.sharing
        generative = self.estimation
        if generative == "discriminative":
            if self.likelihood_power != 1:
                raise ValueError(
                    'estimation="discriminative" find a likelihood power of their own: leave likelihood power at 1'
                )
            generative = "bayes"
        self._estimation = estimation_of(generative, self.prior, sharing, self.class_prior, schema)
        if is_number(self.likelihood_power) and 0 < self.likelihood_power < np.inf:  # type: ignore[operator]
            self.likelihood_power_ = float(self.likelihood_power)
        elif not _is_open(self.likelihood_power):
            raise ValueError(f'likelihood_power must be a positive number or "cv", not {self.likelihood_power!r}')
        self._take_handle_unknown()
        if self.missing_indicator not in (True, False):
            raise ValueError(f"missing_indicator must be True or False, not {self.missing_indicator!r}")
        if self.missing_indicator and self.estimation == "discriminative":
            raise ValueError('missing_indicator=True has no discriminative parameters: use estimation="bayes"')
        self._missing_indicator = bool(self.missing_indicator)

    def __getstate__(self) -> dict[str, Any]:
        # Copies, processes and files carry the statistics, and no samples; the model is made from them where it is
        # needed.
        state = {name: value for name, value in super().__getstate__().items() if name != "_model"}
        return state | ({"_reference": scored(self._reference, self._generative)} if "_reference" in state else {})


def without_weightless(X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Any, Any, Any, Any]:
    """The samples that count: one of weight 0 must change nothing, neither levels nor folds."""
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is None or weights.ndim != 1 or weights.all() or not weights.any() or len(weights) != len(y):
        return X, y, sample_weight, groups
    kept = np.flatnonzero(weights)
    X, y, groups = (None if part is None else _safe_indexing(part, kept) for part in (X, y, groups))
    return X, y, weights[kept], groups
