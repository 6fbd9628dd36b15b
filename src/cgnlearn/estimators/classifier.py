"""CGNClassifier: the public estimator of one network. It has no formulas of its own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import unique_labels

from cgnlearn.candidates.candidate import Samples, Skipped
from cgnlearn.candidates.comparison import FOLDS, Comparison, Scores, results
from cgnlearn.candidates.knowledge import believed
from cgnlearn.candidates.registry import candidate_of, learner_of
from cgnlearn.data.frames import readable
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import HandleUnknown, Table
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.fitted_network import FittedNetwork
from cgnlearn.estimators.fitting import fitting, samples_to_keep
from cgnlearn.estimators.prediction import COMPUTED
from cgnlearn.logistic.correction import fit_discriminative
from cgnlearn.networks.estimation import SampleNotAcceptableError, estimation_of, is_number
from cgnlearn.networks.indicators import without_indicators
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.typicality import subsample
from cgnlearn.progress import Watched, reported, watched
from cgnlearn.structures.band import Ordered
from cgnlearn.structures.learner import Learner


def counting_learner(model: CGNClassifier, who: str) -> Learner:
    """Return the learner of a classifier that can be fitted from statistics alone; raise ValueError for others."""
    learner = learner_of(model.structure)
    if learner.needs_samples:
        raise ValueError(f"{who} cannot learn the structure {model.structure!r}: fit once, then pass on its structure_")
    if not learner.is_additive:
        raise ValueError(f"{who} cannot add samples to a rotation, which needs all samples at once: call fit")
    if model.estimation == "discriminative" or hasattr(model, "discriminative_"):
        raise ValueError(
            f'{who} cannot have estimation="discriminative", which needs all samples: use fit, or estimation="bayes"'
        )
    for name in ("likelihood_power", "sharing"):
        if _is_cv(getattr(model, name)):
            raise ValueError(f"{who} cannot choose the {name}: fit once, then pass on its {name}_")
    return learner


def _has_partial_fit(model: CGNClassifier) -> bool:
    try:
        counting_learner(model, "partial_fit")
    except ValueError as error:
        raise AttributeError(str(error)) from None
    return True


def _is_cv(value: Any) -> bool:
    return isinstance(value, str) and value == "cv"


class CGNClassifier(FittedNetwork, Watched):
    """Conditional Gaussian network classifier, by exact Bayesian averaging or by maximum likelihood.

    In each class the features follow a Bayesian network. A discrete feature has a table of probabilities for each
    configuration of its discrete parents. A continuous feature has, for each such configuration, a linear regression on
    its continuous parents with normal residuals. Missing values (NaN, None, nulls) need no imputation: a feature is
    estimated from the samples that have it and its parents, and predictions integrate over missing values.

    Parameters
    ----------
    structure : str, Structure, learner or mapping, default="naive_bayes"
        Which features each feature depends on besides the class.

        - ``"naive_bayes"``: none. ``"complete"``: all before it.
        - ``"tan"``: one other feature, the best tree of them (`TAN`).
        - ``"fwgjan"``, ``"bwgjan"``, ``"wcgjan"``: those of its group; groups are searched (`GreedyJan`).
        - ``"band"``, ``"box"``: its neighbours, for ordered features; k is chosen (`Band`, `Box` with ``k="cv"``).
        - ``"selective_naive_bayes"``, ``"tan_average"``, ``"band_average"``: averages over structures
          (`SelectiveNaiveBayes`, `TANAverage`, `BandAverage`).
        - a learner such as ``Band(5)``, a `Structure`, or a mapping from each feature to its parents, by column names
          or indexes. Features that are not in the mapping are excluded.
    estimation : {"bayes", "ml", "discriminative"}, default="bayes"
        ``"bayes"``: predictive densities, averaged exactly over the posterior of all parameters. ``"ml"``: maximum
        likelihood. ``"discriminative"``: the Bayesian log odds with a correction, linear in the features, that
        maximises the penalised conditional likelihood of the classes; its penalty is chosen by leave-one-out.
    sharing : float from 0 to 1 or "cv", default=0.0
        How much the samples of other classes count in the slopes and variances of a class. 0: each class has its own;
        1: all classes have them in common. ``"cv"``: chosen by held-out log loss.
    prior : Prior, optional
        Prior of the parameters; None means ``Prior()``.
    class_prior : "uniform" or array, optional
        Probabilities of the classes, in the order of ``classes_``. None: the frequencies in the training data.
    likelihood_power : positive float or "cv", default=1.0
        The exponent in p(c | x) ∝ p(c) p(x | c)^likelihood_power. Below 1 it tones down probabilities that are too
        extreme, as features are rarely as independent as the structure has them. ``"cv"``: the exponent up to 1 with
        the least log loss of held-out samples, chosen jointly with k and sharing where these are ``"cv"`` too. Samples
        are held out by exact leave-one-out where the structure is not learned from them and there are no groups, else
        in stratified folds.
    categorical_features : "from_dtype", list of names or indexes, or mask, default="from_dtype"
        Which columns are discrete. ``"from_dtype"``: those of categories, text or truths; text with almost as many
        values as samples, such as ids, is refused.
    handle_unknown : {"missing", "error"}, default="missing"
        What to do with a level at prediction that training did not have: treat it as a missing value, with a warning,
        or raise an error.
    missing_indicator : bool, default=False
        Whether being missing is informative: each column with missing values then has an indicator, which depends on
        the class alone.
    random_state : int, RandomState or None, default=0
        Seed of the folds of a search that is given by name, and of those in which ``"cv"`` settings are chosen.
    verbose : int, default=0
        1: show the progress of `fit` on stderr, as a bar of rich or tqdm if one is installed, else in lines.

    Attributes
    ----------
    classes_ : ndarray (classes,)
        Class labels.
    structure_ : Structure
        With column names as nodes where X has names, else column indexes.
    statistics_ : Statistics
        The additive sufficient statistics: all that is kept of the training data.
    class_log_prior_ : ndarray (classes,)
        Log probabilities of the classes.
    n_parameters_ : int
        Number of free parameters, those of the class included.
    likelihood_power_, sharing_ : float
        As given, or as chosen.
    prior_ : Prior
        The prior as given, without reference ranges if they were set aside.
    k_ : int
        The chosen k of a `Band` or `Box` with ``k="cv"``.
    cv_results_ : dict of ndarray
        Only where k, sharing or likelihood power is ``"cv"``: a table with a row for each setting. ``param_*`` are the
        settings (such as ``param_k`` and ``param_sharing``), ``validation`` is ``"leave-one-out"`` or the number of
        folds, ``likelihood_power`` the best one, ``mean_test_log_loss`` and ``mean_test_accuracy`` the scores of
        held-out samples with their ranks ``rank_test_*``, and ``weight`` is 1 for the chosen setting.
    discriminative_ : Correction
        Only with ``estimation="discriminative"``: ``likelihood_power``, ``intercept``, ``slopes`` and ``penalty``, and
        the path of ``penalties`` with their ``held_out_log_loss``.
    log_evidence_ : float
        Log marginal likelihood of the training data, class included. Only with ``estimation="bayes"``, sharing 0 or 1
        and a prior whose location does not depend on the cells.
    search_path_ : list of SearchState
        The structures that a search visited, with their scores; only where the structure was searched.
    inclusion_probability_ : ndarray (columns,)
        Posterior probability that a column depends on the class; of `SelectiveNaiveBayes` and `BandAverage`.
    edge_probability_ : ndarray (columns, columns)
        Posterior probability of each arc, from parent (row) to child (column); of `TANAverage`.
    order_probability_ : ndarray (columns, k_max)
        Posterior probability of each number of neighbours; of `BandAverage`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only where X has string column names.

    See Also
    --------
    CGNClassifierCV : Compare many models and mix them.

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
        verbose: int = 0,
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
        self.verbose = verbose

    # ---- training

    @reported
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, sites: Any = None) -> Self:
        """Learn the structure, unless it is given, and the parameters.

        Parameters
        ----------
        X : array or data frame (samples, features)
        y : array (samples,)
        sample_weight : array (samples,), optional
            A sample of weight 2 counts as two samples; one of weight 0 is ignored. Weights that are no frequencies
            should have mean 1. With ``estimation="discriminative"`` weights count for at most their effective number of
            samples, so that weights which are all equal change nothing.
        groups : array (samples,), optional
            Samples that belong together, such as the spectra of a person: folds never split them. None may be missing.
        sites : array (samples,), optional
            Where each sample was measured, such as a hospital, instrument or batch. Each continuous feature then has a
            shift by site, which is estimated beside the classes and shrunk by its evidence (``site_shift_``), and is
            subtracted. At prediction give the sites of the samples.
        """
        with fitting(self):
            table, groups = self._read_training(X, y, sample_weight, groups, sites)
            self._set_up(table.schema)
            if self.estimation == "discriminative":
                # The correction is chosen on held-out samples, which take all their weight along: that of the network
                # would make its log odds steeper and their errors no smaller.
                table = table.without_excess_weight()
            if self.estimation != "ml":
                self._ask_about_ranges(table, groups)
            learner, counted = learner_of(self.structure, self.random_state), None
            if _is_cv(self.likelihood_power) or _is_cv(self.sharing) or _is_cv(getattr(learner, "k", None)):
                learner, counted = self._choose(learner, table, groups)
            self._learner = learner.resolved(table, self._estimation, groups, partial(watched, self))
            families = self._learner.families(table.schema)
            self.statistics_ = collect(table, families) if counted is None else counted.restricted(families)
            if self.estimation == "discriminative":
                self.discriminative_ = fit_discriminative(
                    self._learner.model(self.statistics_, self._estimation), table
                )
            self._samples = samples_to_keep(table)
            _ = self._model  # raises here if the estimates do not exist
            if self.statistics_.incomplete:
                self._warn_of_few_samples()
            self._reference = subsample(table)
        return self

    def _choose(self, learner: Learner, table: Table, groups: Any) -> tuple[Learner, Statistics | None]:
        """Choose the settings that are ``"cv"``; also return the statistics of all samples if they were needed."""
        chooses_k = isinstance(learner, Ordered) and learner.needs_samples
        candidate = candidate_of(
            learner,
            self._estimation,
            table.schema,
            any_sharing=_is_cv(self.sharing),
            missing_indicator=self._missing_indicator,
        )
        comparison = Comparison(
            Samples.learning(["none"], table, groups),
            [candidate],
            self._estimation.dirichlet,
            cv=None,
            seed=self._seed(),
            n_folds=learner.cv if isinstance(learner, Ordered) else FOLDS,
        )
        (held_out,) = comparison.held_out()
        if isinstance(held_out, Skipped):
            raise ValueError(held_out.reason)
        if np.isnan(held_out.log_likelihood).any(axis=(1, 2)).all():
            raise SampleNotAcceptableError(
                "maximum likelihood exists for no k without some of the samples, as some feature has no variance in "
                'some class: use estimation="bayes", more samples or fewer columns'
            )
        scores = Scores.of([held_out], table, None if _is_cv(self.likelihood_power) else self.likelihood_power_)
        best = scores.best(learner.scoring if isinstance(learner, Ordered) else "log_loss")
        self.cv_results_ = results([held_out], scores, (np.arange(len(scores.power)) == best).astype(float))
        self.likelihood_power_ = float(scores.power[best])
        learner, self._estimation = candidate.choice(best)
        if chooses_k:
            assert isinstance(learner, Ordered)
            self.k_ = int(learner.k)
        return learner, getattr(held_out.fitted, "statistics", None)

    def _ask_about_ranges(self, table: Table, groups: Any) -> None:
        self.prior_ = believed(self.prior or Prior(), table, groups, self._seed())
        self._estimation = replace(self._estimation, prior=self.prior_.resolved(table.schema))

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, decay: float = 1.0
    ) -> Self:
        """Add samples; after any number of calls the model equals one `fit` to all of them.

        The structure must not be learned from samples. A categorical column has the levels of its dtype, or those of
        the first call.

        Parameters
        ----------
        X : array or data frame (samples, features)
        y : array (samples,)
        classes : array, optional
            All classes that will ever occur; needed in the first call.
        sample_weight : array (samples,), optional
        decay : float above 0 and up to 1, default=1.0
            Factor of the weights of all earlier samples. With the same decay in every call, the samples of the call
            before last have weight decay², and so on.
        """
        if not (is_number(decay) and 0 < decay <= 1):
            raise ValueError(f"decay must be a number above 0 and up to 1, not {decay!r}")
        if hasattr(self, "statistics_"):
            if classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}")
            if hasattr(self, "site_shift_"):
                raise ValueError("shifts of sites need all samples at once: call fit with sites")
            if not self._learner.is_additive:
                raise ValueError("more columns than samples are fitted by rotation, all samples at once: call fit")
            more = collect(self._table(X, y, sample_weight), self.statistics_.families)
            # Recentred, as the first call may have had a single sample.
            self.statistics_ = ((self.statistics_ if decay == 1 else decay * self.statistics_) + more).recentred()
            for outdated in (*COMPUTED, "_reference", "_samples"):
                self.__dict__.pop(outdated, None)
            return self
        if classes is None:
            raise ValueError("the first call of partial_fit needs classes: give all that will occur")
        with fitting(self):
            table = self._read_first(readable(X), y, sample_weight, classes)
            self._set_up(table.schema)
            self._learner = learner_of(self.structure)
            self.statistics_ = collect(table, self._learner.families(table.schema))
        return self

    @classmethod
    def from_statistics(cls, statistics: Statistics, **parameters: Any) -> Self:
        """Return a fitted classifier from statistics alone, such as the sum of those of several hospitals.

        Parameters
        ----------
        statistics : Statistics
            ``statistics_`` of one classifier or a sum of several, with at least the families of the structure.
        **parameters
            Of the constructor. Settings that are chosen or learned from samples are refused.

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

    def _warn_of_few_samples(self) -> None:
        """Warn if a feature and its parents are observed in fewer than half of the samples."""
        model = without_indicators(self._generative)
        statistics = model.statistics if isinstance(model, Network) else self.statistics_
        share, columns = statistics.smallest_family()
        if share < 0.5:
            child, *parents = (statistics.schema.name(column) for column in columns)
            together = f" together with its parents ({', '.join(parents[:5])})" if parents else ""
            advice = "a structure with fewer parents uses more" if parents else "drop the column if it is useless"
            warnings.warn(
                f"{child} is observed in {share:.0%} of the samples{together}, and estimated from these: {advice}",
                DataWarning,
                stacklevel=4,
            )

    def _set_up(self, schema: Schema) -> None:
        """Check the parameters and keep them: parameters set after the fit have no effect on it."""
        sharing = 0.0 if _is_cv(self.sharing) else self.sharing
        generative = self.estimation
        if generative == "discriminative":
            if self.likelihood_power != 1:
                raise ValueError(
                    'estimation="discriminative" estimates its own likelihood power: leave likelihood_power at 1'
                )
            generative = "bayes"
        self._estimation = estimation_of(generative, self.prior, sharing, self.class_prior, schema)
        self.prior_ = self.prior or Prior()
        if is_number(self.likelihood_power) and 0 < self.likelihood_power < np.inf:  # type: ignore[operator]
            self.likelihood_power_ = float(self.likelihood_power)
        elif not _is_cv(self.likelihood_power):
            raise ValueError(f'likelihood_power must be a positive number or "cv", not {self.likelihood_power!r}')
        self._take_handle_unknown()
        if self.missing_indicator not in (True, False):
            raise ValueError(f"missing_indicator must be True or False, not {self.missing_indicator!r}")
        if self.missing_indicator and self.estimation == "discriminative":
            raise ValueError('missing_indicator=True needs estimation="bayes" or "ml", not "discriminative"')
        self._missing_indicator = bool(self.missing_indicator)

    def __getstate__(self) -> dict[str, Any]:
        # Copies and files hold the statistics; the model is computed from them where it is needed.
        return super().__getstate__() | ({"_reference": self._typical} if "_reference" in vars(self) else {})
