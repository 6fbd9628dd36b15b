"""The scikit-learn estimator: what a user fits and predicts with. No formula stands here."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.extmath import softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from cgnlearn.model.layout import Layout
from cgnlearn.model.network import Network
from cgnlearn.model.prior import Prior
from cgnlearn.model.statistics import Floats, collect
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Encoder, Table, as_array, as_frame
from cgnlearn.progress import Watched, reported, watched
from cgnlearn.structures.learner import Learner, structure_of
from cgnlearn.structures.search import GreedyJan, SearchState, learner_of
from cgnlearn.structures.selection import select, wants_selection


def _needs_no_learning(model: CGNClassifier) -> bool:
    learner = learner_of(model.structure)
    if isinstance(learner, Learner) and learner.needs_rows:
        raise AttributeError(
            f"partial_fit cannot learn the structure {model.structure!r}: fit once, then pass on its structure_"
        )
    if model.temperature == "cv":
        raise AttributeError("partial_fit cannot choose the temperature: fit once, then pass on its temperature_")
    return True


class CGNClassifier(Watched, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Conditional Gaussian network classifier, by exact Bayesian averaging or by maximum likelihood.

    Attributes are continuous or discrete; continuous ones follow, in each class, linear regressions on their
    continuous parents, with other parameters for every configuration of their discrete parents.

    Parameters
    ----------
    structure : str, Structure, learner or mapping, default="naive_bayes"
        Which attributes each attribute depends on besides the class: ``"naive_bayes"``, ``"complete"``, ``"tree"``,
        ``"fwgjan"``, ``"bwgjan"``, ``"wcgjan"`` (searched, see `GreedyJan`), a `Structure`, a learner such as
        ``Band(5)``, or a mapping from each attribute to its parents, by column names or indexes; attributes left
        out of a mapping are not in the model.
    parameters : {"bayes", "ml"}, default="bayes"
        ``"bayes"`` averages over all parameters, exactly; ``"ml"`` takes the likeliest.
    sharing : float from 0 to 1, default=0.0
        How much the rows of the other classes count in a class's slopes and variances: 0 not at all, 1 as much as
        its own, which makes them common to the classes.
    prior : Prior, optional
        What is believed beforehand; None means ``Prior()``.
    class_prior : "uniform" or array, optional
        Probabilities of the classes, in the order of ``classes_``; None learns them.
    temperature : positive float or "cv", default=1.0
        p(c | x) ∝ p(c) p(x | c)^temperature: below one the attributes, which never are as independent as a
        structure says, are trusted less. ``"cv"``: the one with the best mean log probability of the true class in
        a stratified cross-validation inside the training data (5 folds, or those in which a `Band` or `Box` chooses
        its k, together with it), in which a structure that is learned is learned anew; among temperatures within
        0.001 of the best, the one nearest to 1.
    categorical_features : "from_dtype" or list of names or indexes, or a mask, default="from_dtype"
        Which columns are discrete; ``"from_dtype"``: those with a categorical dtype.
    random_state : int, RandomState or None
        How a search given by its name cuts its folds (None stands for `GreedyJan`'s default of 0), and how the folds
        are cut in which k and the temperature are chosen.

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
    temperature_ : float
    k_ : int
        Where the structure is a `Band` or `Box` with ``k="cv"``.
    cv_results_ : dict of ndarray
        Where k or the temperature is ``"cv"``: a table, a row for each ``param_k`` and ``param_temperature`` tried,
        with mean and standard deviation over the folds of ``test_cll`` and ``test_accuracy``, and the rank by score.
    log_evidence_ : float
        Log marginal likelihood of the training data, class included; with ``parameters="bayes"``, sharing 0 or 1,
        and a prior location that does not look at the cells.
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
        structure: Any = "naive_bayes",
        *,
        parameters: str = "bayes",
        sharing: float = 0.0,
        prior: Prior | None = None,
        class_prior: Any = None,
        temperature: Any = 1.0,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
    ) -> None:
        self.structure = structure
        self.parameters = parameters
        self.sharing = sharing
        self.prior = prior
        self.class_prior = class_prior
        self.temperature = temperature
        self.categorical_features = categorical_features
        self.random_state = random_state

    # ---- training

    @reported
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the structure, if it is to be learned, and the parameters.

        Parameters
        ----------
        X : array or data frame (rows, attributes)
        y : array (rows,)
        sample_weight : array (rows,), optional
            A weight of 2 counts as the row twice, of 0 as if it were not there.
        """
        self._start(X, y, None)
        table = self._table(X, y, sample_weight)
        self._select(table)
        self._learn_structure(table)
        self.statistics_ = collect(table, self._layout)
        _ = self.network_  # raises here and now if the sample does not allow it
        return self

    @available_if(_needs_no_learning)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows; after any number of calls the model equals one `fit` on all of them.

        The first call needs ``classes``, all that will ever occur; a categorical column's levels are those of its
        dtype, or of the first call's rows. The structure must be one that needs no learning.

        Parameters
        ----------
        X : array or data frame (rows, attributes)
        y : array (rows,)
        classes : array, optional
        sample_weight : array (rows,), optional
        """
        first = not hasattr(self, "statistics_")
        if first:
            if classes is None:
                raise ValueError("the first call of partial_fit needs classes: name all that will occur")
            self._start(X, y, classes)
        elif classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}")
        table = self._table(X, y, sample_weight)
        if first:
            self._learn_structure(table)
        added = collect(table, self._layout)
        self.statistics_ = added if first else self.statistics_ + added
        self.__dict__.pop("network_", None)
        return self

    def _start(self, X: Any, y: Any, classes: Any) -> None:
        """Check the parameters and remember what the columns are."""
        self._check_parameters()
        for name in ("statistics_", "network_", "search_path_", "k_", "temperature_", "cv_results_"):
            self.__dict__.pop(name, None)
        X = _readable(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        y = column_or_1d(y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_: NDArray[Any] = unique_labels(y if classes is None else classes)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()[0]!r}: a classifier needs rows of at least two classes"
            )
        self._class_prior()
        self._encoder = Encoder.learn(X, self.categorical_features)
        self._prior.check_attributes(self.n_features_in_)

    def _select(self, table: Table) -> None:
        """Choose k and the temperature, as far as that is wanted, inside the training data."""
        learner = learner_of(self.structure, self.random_state)
        if not wants_selection(learner, self.temperature):
            return
        chosen = select(
            learner,
            self.temperature,
            table,
            self._encoder,
            self.classes_,
            random_state=self.random_state,
            **self._settings(),
        )
        if chosen.k is not None:
            self.k_ = chosen.k
        self.temperature_ = chosen.temperature
        self.cv_results_ = chosen.results

    def _learn_structure(self, table: Table) -> None:
        encoder, n_classes = self._encoder, len(self.classes_)
        learner = learner_of(self.structure, self.random_state)
        if hasattr(self, "k_"):
            learner = clone(learner).set_params(k=self.k_)
        if isinstance(learner, GreedyJan):
            structure = self._search(learner, table)
        else:
            structure = structure_of(learner, table, encoder, n_classes, self._prior)
        self._layout = Layout.of(structure, encoder, n_classes)
        self._order = list(structure.nodes)
        names = encoder.names
        self.structure_: Structure = (
            structure if names is None else structure.renamed({i: names[i] for i in structure.nodes})
        )
        levels = {
            node: len(encoder.levels[column])
            for node, column in zip(self.structure_.nodes, structure.nodes, strict=True)
            if encoder.levels[column] is not None
        }
        self.n_parameters_ = self.structure_.n_parameters(n_classes, levels, sharing=self.sharing)
        if self.temperature != "cv":
            self.temperature_ = float(self.temperature)

    def _search(self, learner: GreedyJan, table: Table) -> Structure:
        """The structure found; the path to it is kept, with the columns' names."""
        learner = clone(learner)  # what it learns is not the parameter's to keep
        states = learner.states(table, self._encoder, len(self.classes_), self._prior)
        names = dict(enumerate(self._encoder.names or range(self.n_features_in_)))
        self.search_path_: list[SearchState] = [state.renamed(names) for state in watched(self, states)]
        return learner.search_path_[-1].structure

    def _table(self, X: Any, y: Any = None, sample_weight: Any = None) -> Table:
        """X in the model's form, with labels and weights if there is a y."""
        X = _readable(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        table = self._encoder.encode(X)
        if y is None:
            return table
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        labels = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[labels] != y
        if np.any(unknown):
            raise ValueError(
                f"y has the class {y.tolist()[np.argmax(unknown)]!r}, which is not among the classes "
                f"{self.classes_.tolist()}: name it in the first call of partial_fit"
            )
        weights = None
        if sample_weight is not None:
            if not np.asarray(sample_weight).any():
                raise ValueError("all of sample_weight is zero: give some rows a positive weight")
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return Table(table.values, table.codes, labels, weights)

    # ---- parameters

    def _check_parameters(self) -> None:
        if self.parameters not in ("bayes", "ml"):
            raise ValueError(f'parameters must be "bayes" or "ml", not {self.parameters!r}')
        if not _is_number(self.sharing) or not 0 <= self.sharing <= 1:
            raise ValueError(f"sharing must be a number from 0 to 1, not {self.sharing!r}")
        if self.temperature != "cv" and not (_is_number(self.temperature) and 0 < self.temperature < np.inf):
            raise ValueError(f'temperature must be a positive number or "cv", not {self.temperature!r}')
        if not isinstance(self.prior, Prior | None):
            raise TypeError(f"prior must be a Prior or None, not {self.prior!r}")

    @property
    def _prior(self) -> Prior:
        return self.prior or Prior()

    def _class_prior(self) -> Floats | None:
        if self.class_prior is None:
            return None
        n_classes = len(self.classes_)
        if isinstance(self.class_prior, str):
            if self.class_prior != "uniform":
                raise ValueError(f'class_prior must be "uniform", an array or None, not {self.class_prior!r}')
            return np.full(n_classes, 1 / n_classes)
        given = np.asarray(self.class_prior, dtype=float)
        if given.shape != (n_classes,):
            raise ValueError(f"class_prior must have one probability for each of the {n_classes} classes")
        if not (given > 0).all() or not np.isclose(given.sum(), 1.0):
            raise ValueError(f"class_prior must be positive and sum to one, not {given.tolist()}")
        return given / given.sum()

    @cached_property
    def network_(self) -> Network:
        """Structure, statistics and prior put together; made anew after each `partial_fit`."""
        check_is_fitted(self, "statistics_")
        return Network.of(
            self.statistics_,
            self._encoder,
            self.classes_,
            **self._settings(),
        )

    def _settings(self) -> dict[str, Any]:
        """What makes a network of statistics."""
        return {
            "parameters": self.parameters,
            "prior": self._prior,
            "sharing": float(self.sharing),
            "class_prior": self._class_prior(),
        }

    @property
    def class_log_prior_(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a row."""
        return self.network_.class_log_prior

    @property
    def log_evidence_(self) -> float:
        """Log marginal likelihood of the training data, class included."""
        if self.parameters != "bayes" or self.sharing not in (0, 1) or not self._prior.is_coherent:
            raise AttributeError(
                'log_evidence_ is defined for parameters="bayes", sharing 0 or 1, and a prior location that is '
                '"pooled" or an array'
            )
        return self.network_.log_evidence(class_learned=self.class_prior is None)

    # ---- prediction

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log p(class, x): (rows, classes)."""
        check_is_fitted(self, "statistics_")
        likelihood = self.network_.log_likelihood(self._table(X))
        return self.temperature_ * likelihood + self.class_log_prior_

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
        """Log p(x): (rows,). Low where a row is unlike the training data."""
        return np.asarray(logsumexp(self.predict_joint_log_proba(X), axis=1))

    def contributions(self, X: Any) -> Floats:
        """Each attribute's log density under each class: (rows, attributes, classes).

        Summed over attributes, times ``temperature_``, plus ``class_log_prior_``, they are the joint log
        probability. Attributes that are not in the model, or constant in the training data, have 0.
        """
        check_is_fitted(self, "statistics_")
        return self.network_.contributions(self._table(X), self.n_features_in_)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray[Any]]:
        """Draw rows and their classes from the model's predictive distribution (temperature plays no part).

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        X : array or data frame, as the training data was
            Columns that are not in the model are 0, or their first level.
        y : ndarray (n_samples,)
        """
        check_is_fitted(self, "statistics_")
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, not {n_samples!r}")
        rng = check_random_state(random_state)
        labels = rng.choice(len(self.classes_), size=n_samples, p=np.exp(self.class_log_prior_))
        table = self.network_.draw(labels, self._encoder, self._order, rng)
        return self._encoder.decode(table.values, table.codes), self.classes_[labels]

    def __getstate__(self) -> dict[str, Any]:
        # Copies, processes and files carry the statistics; the network is made from them where it is needed.
        return {name: value for name, value in super().__getstate__().items() if name != "network_"}


def _readable(X: Any) -> Any:
    """X itself if it is a data frame, else as a NumPy array."""
    return X if as_frame(X) is not None else as_array(X)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
