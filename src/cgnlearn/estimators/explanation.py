"""Why a model predicts what it does: attributions and importance of features, and the next one to measure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from cgnlearn.data.arrays import Floats
from cgnlearn.data.labels import labels_of, target
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.estimators.sites import Placed
from cgnlearn.networks.coalitions import MOST_PLAYERS, MOST_TABULATED, Players, hiding
from cgnlearn.networks.components import Mask
from cgnlearn.networks.densities import normalised, true_class_log_proba
from cgnlearn.networks.integration import observed_cells
from cgnlearn.networks.measurement import Measurement, Risk, entropy
from cgnlearn.networks.shapley import Attributions, Member, active_players, exact, sampled
from cgnlearn.progress import followed

CHUNK = 1 << 23  # log probabilities of coalitions in memory at once


class Importance(NamedTuple):
    """Increase of the log loss if features are integrated out, with its 95% confidence interval."""

    increase: Floats
    low: Floats
    high: Floats


class NextMeasurement(NamedTuple):
    """The feature to measure next, and what each missing one would be expected to tell."""

    feature: NDArray[np.intp]  # -1: stop
    fall: Floats  # of the entropy or expected cost, NaN of what is observed: (samples, features)
    risk: Floats  # present entropy or expected cost: (samples,)


Groups = Mapping[str, Sequence[Any]] | Iterable[Sequence[Any]]


class Explanations:
    """Explanations of predictions, for estimators that supply log probabilities of samples with missing values."""

    classes_: NDArray[Any]

    @abstractmethod
    def _placed(self, X: Any, sites: Any) -> Placed:
        """Read samples, without the shifts of their sites if these are given."""

    @property
    @abstractmethod
    def class_log_prior_(self) -> Floats:
        """Log prior probabilities of the classes: (classes,)."""

    @abstractmethod
    def _log_scores(self, table: Table) -> Floats:
        """ln p(class | x) up to a constant of each sample: (samples, classes)."""

    @property
    def _power(self) -> float:
        """Power of the likelihood ratios of a mixture."""
        return 1.0

    @abstractmethod
    def _members(self, table: Table, players: Players) -> list[Member]:
        """The log likelihoods of coalitions under the model, or under each member of a mixture."""

    def _check_integrates(self, what: str) -> None:
        """Raise an error if the model does not accept missing values."""

    @abstractmethod
    def _log_density(self, table: Table) -> Floats:
        """ln p(x | class): (samples, classes)."""

    @abstractmethod
    def _drawn(self) -> Table:
        """Complete samples drawn from the density, always the same."""

    def _known(self, table: Table) -> Mask:
        """Whether anything is known of each feature: (samples, columns of X)."""
        return observed_cells(table)

    @overload
    def shapley(
        self,
        X: Any,
        groups: Groups | None = None,
        *,
        n_permutations: int = 100,
        max_exact: int | None = None,
        random_state: Any = 0,
        return_se: Literal[False] = False,
    ) -> Floats: ...

    @overload
    def shapley(
        self,
        X: Any,
        groups: Groups | None = None,
        *,
        n_permutations: int = 100,
        max_exact: int | None = None,
        random_state: Any = 0,
        return_se: Literal[True],
    ) -> tuple[Floats, Floats]: ...

    def shapley(
        self,
        X: Any,
        groups: Groups | None = None,
        *,
        n_permutations: int = 100,
        max_exact: int | None = None,
        random_state: Any = 0,
        return_se: bool = False,
        sites: Any = None,
    ) -> Floats | tuple[Floats, Floats]:
        """Shapley values of the features: (samples, features or groups, classes).

        They divide ln p(c | x) - ln p(c) among the features. The value of a set of features is ln p(c | x_S), with all
        others integrated out as missing ones are: no background samples are needed and none are invented. A feature
        has the mean, over all orders of the features, of what it adds when it comes in. So no order matters, features
        that say the same share what they say, and those that are missing, constant or not in the model have 0.

        Values are exact for up to 14 features, or up to 20 groups if each part of the structure connects at most 14 of
        them or is a band, in which groups are long runs of neighbours. With more, orders are sampled, each with its
        reverse; the differences between classes, which are log odds, are still exact for naive Bayes, and for
        structures whose connected parts have at most 14 features. Sampling shows its progress with ``verbose=1``.

        Of a mixture they are those of the mixture itself: a set of features has the log probability that the mixture
        predicts from them, by the members that accept missing values, and no features have the class prior.

        Parameters
        ----------
        X : array or data frame (samples, features)
        groups : mapping or sequence of lists of columns, optional
            Features that are taken as one, such as the bins of a peak or the tests of a panel: names or indexes.
            Features that no group names are one more, the last.
        n_permutations : int
            Orders that are sampled where they are.
        max_exact : int, optional
            Number of features or groups, at most 20, up to which all sets of them are evaluated: less is faster. None:
            14, or 20 if there are groups.
        random_state : int, Generator or None
            Seed of the orders.
        return_se : bool
            Whether to return the standard errors too, 0 where values are exact.
        sites : array (samples,), optional
            Where the model was fitted with sites: samples are without the shifts of these. The class prior is that of
            training at sites that training did not have, too.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CGNClassifier("tan").fit(X, y)
        >>> values = model.shapley(X[:1])
        >>> values[0, :, 0].round(2)
        array([0.25, 0.21, 0.32, 0.32])
        >>> float((values[0, :, 0].sum() - (model.predict_log_proba(X[:1]) - model.class_log_prior_)[0, 0]).round(9))
        0.0
        """
        self._check_integrates("shapley")
        table = self._placed(X, sites).table
        players = players_of(groups, table.schema)
        if n_permutations < 4:
            raise ValueError(f"n_permutations must be at least 4, not {n_permutations!r}")
        if max_exact is None:
            max_exact = MOST_TABULATED if groups is None else MOST_PLAYERS
        if not 0 <= max_exact <= MOST_PLAYERS:
            raise ValueError(f"max_exact must be from 0 to {MOST_PLAYERS}, not {max_exact!r}")
        n, n_classes = table.n_samples, table.schema.n_classes
        found = np.empty((2, n, len(players), n_classes))
        most = max(1 << min(len(players), max_exact, MOST_TABULATED), 1 + len(players))
        size = max(1, CHUNK // (n_classes * most))
        complete = observed_cells(table).all(axis=1)
        for alike in (np.flatnonzero(complete), np.flatnonzero(~complete)):  # complete samples alone are faster
            for start in range(0, len(alike), size):
                rows = alike[start : start + size]
                part = self._shapley_of(table.rows(rows), players, n_permutations, max_exact, random_state)
                found[:, rows] = np.array(part).transpose(0, 3, 1, 2)
        return (found[0], found[1]) if return_se else found[0]

    def _shapley_of(
        self, table: Table, players: Players, n_permutations: int, max_exact: int, random_state: Any
    ) -> Attributions:
        before, after = self.class_log_prior_, normalised(self._log_scores(table))
        by_column = self._known(table)
        known = np.stack([by_column[:, list(columns)].any(axis=1) for columns in players], axis=1)
        members = self._members(table, players)
        countable = all(member.likelihoods.is_countable for member in members)
        if countable and len(active_players(members)) <= max_exact:
            values = exact(members, known, before, after, self._power)
            return Attributions(values, np.zeros_like(values))
        rng, n_pairs = np.random.default_rng(random_state), (n_permutations + 1) // 2
        orders = (rng.permutation(len(players)) for _ in range(n_pairs))
        return sampled(members, known, before, after, followed(self, orders, n_pairs), self._power)

    def feature_importance(self, X: Any, y: Any, groups: Groups | None = None, *, sites: Any = None) -> Importance:
        """How much the log loss of samples rises if a feature, or group of features, is integrated out.

        Features that carry the same evidence stand in for each other, and each seems unimportant: name them as a group.

        Parameters
        ----------
        X, y
            Samples that were not trained on tell what matters for new ones.
        groups, sites
            As in `shapley`.

        Returns
        -------
        Importance
            ``increase`` of the mean log loss and its 95% confidence interval ``low`` to ``high``, which holds for
            independent samples: (features or groups,).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> CGNClassifier("tan").fit(X[::2], y[::2]).feature_importance(X[1::2], y[1::2]).increase.round(2)
        array([0.  , 0.01, 0.04, 0.08])
        """
        self._check_integrates("feature_importance")
        table, labels = self._placed(X, sites).table, labels_of(target(y), self.classes_)
        if len(labels) != table.n_samples:
            raise ValueError(f"X has {table.n_samples} samples, y {len(labels)}: give the class of each")
        players, n = players_of(groups, table.schema), len(labels)
        before = true_class_log_proba(normalised(self._log_scores(table)), labels)
        lost = np.zeros((len(players), n))
        for number, columns in enumerate(players):
            shown = np.ones((1, table.schema.n_columns), bool)
            shown[:, list(columns)] = False
            hidden = hiding(table, np.broadcast_to(shown, (n, table.schema.n_columns)))
            lost[number] = before - true_class_log_proba(normalised(self._log_scores(hidden)), labels)
        mean = lost.mean(axis=1)
        half = np.full(len(mean), np.nan)
        if n > 1:
            half = stdtrit(n - 1, 0.975) * lost.std(axis=1, ddof=1) / np.sqrt(n)
        return Importance(mean, mean - half, mean + half)

    def next_measurement(
        self, X: Any, costs: Any = None, *, decision_costs: Any = None, least: float = 0.01, sites: Any = None
    ) -> NextMeasurement:
        """Which missing feature of each sample to measure next, and what each would be expected to tell.

        The fall of a feature is the present entropy of the classes (or the least expected cost of a decision) less its
        mean after the measurement, over the values that the feature may have given what is observed. Without
        ``decision_costs`` the feature with the greatest fall per cost is next, and to stop is best if no fall exceeds
        ``least``; with them the one whose fall exceeds its own cost by most, if any does.

        Parameters
        ----------
        X : array or data frame (samples, features)
            Samples with missing values.
        costs : mapping from columns to costs, or array (features,), optional
            Positive costs of the measurements; None: 1 each, or 0 with ``decision_costs``. Features that a mapping does
            not name cannot be measured.
        decision_costs : array (decisions, classes), optional
            Cost of each decision for a sample of each class, in the units of ``costs``.
        least : float
            Fall of the entropy, in nats, below which nothing more is measured.
        sites
            As in `shapley`.

        Returns
        -------
        NextMeasurement
            ``feature``: index of the feature to measure next, -1 to stop: (samples,); ``fall``: (samples, features),
            NaN for features that are observed or cannot be measured; ``risk``: the present entropy or expected cost.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CGNClassifier("tan").fit(X, y)
        >>> found = model.next_measurement([[5.8, np.nan, np.nan, np.nan]])
        >>> found.feature, found.fall.round(2)
        (array([3]), array([[ nan, 0.32, 0.58, 0.67]]))
        """
        self._check_integrates("next_measurement")
        table = self._placed(X, sites).table
        risk = entropy if decision_costs is None else self._least_cost(decision_costs)
        price = self._prices(costs, 1.0 if decision_costs is None else 0.0, table.schema)
        present = risk(normalised(self._log_scores(table)))
        fall = np.full((table.n_samples, table.schema.n_columns), np.nan)
        observed, drawn = observed_cells(table), None
        for column in np.flatnonzero(np.isfinite(price) & ~observed.all(axis=0)).tolist():
            rows = np.flatnonzero(~observed[:, column])
            typical = np.zeros(1)
            if table.schema.levels[column] is None:
                drawn = self._drawn() if drawn is None else drawn
                typical = drawn.values[:, table.schema.position[column]]
            measurement = Measurement(table.rows(rows), column, self._log_density, self._log_scores, typical)
            fall[rows, column] = present[rows] - measurement.expected_risk(risk)
        worth = fall / price if decision_costs is None else fall - price
        worth = np.where(np.isnan(fall), -np.inf, worth)
        best = worth.argmax(axis=1)
        at_best = np.arange(len(best)), best
        goes_on = fall[at_best] > least if decision_costs is None else worth[at_best] > 0
        return NextMeasurement(np.where(goes_on, best, -1), fall, present)

    def _prices(self, costs: Any, default: float, schema: Schema) -> Floats:
        """Cost of each measurement, NaN where it cannot be measured: (columns,)."""
        if costs is None:
            return np.full(schema.n_columns, default)
        price = np.full(schema.n_columns, np.nan)
        if isinstance(costs, Mapping):
            for node, cost in costs.items():
                price[column_of(node, schema)] = cost
        else:
            given = np.asarray(costs, dtype=float)
            if given.shape != price.shape:
                raise ValueError(f"costs must have one number for each of the {len(price)} columns, or be a mapping")
            price[:] = given
        if not (price[~np.isnan(price)] > 0).all() or np.isinf(price).any():
            raise ValueError("costs must be positive numbers: omit features that cannot be measured")
        return price

    def _least_cost(self, decision_costs: Any) -> Risk:
        cost = np.asarray(decision_costs, dtype=float)
        if cost.ndim != 2 or cost.shape[1] != len(self.classes_) or not np.isfinite(cost).all():
            raise ValueError(
                f"decision_costs must have a row for each decision and {len(self.classes_)} columns, one for each class"
            )
        return lambda log_proba: np.asarray((np.exp(log_proba) @ cost.T).min(axis=-1))


def players_of(groups: Groups | None, schema: Schema) -> list[tuple[int, ...]]:
    """The columns of each feature or group; those in no group are the last one."""
    if groups is None:
        return [(column,) for column in range(schema.n_columns)]
    listed = list(groups.values()) if isinstance(groups, Mapping) else list(groups)
    found, seen = [], set[int]()
    for number, group in enumerate(listed):
        if isinstance(group, str) or not np.iterable(group):
            raise ValueError(f"group {number} is {group!r}, not a list of columns: give one for each group")
        columns = tuple(column_of(node, schema) for node in group)
        if not columns:
            raise ValueError(f"group {number} has no columns: omit it")
        twice = next((column for i, column in enumerate(columns) if column in seen or column in columns[:i]), None)
        if twice is not None:
            raise ValueError(f"{schema.name(twice)} is in two groups, or twice in one: name it once")
        seen.update(columns)
        found.append(columns)
    others = tuple(column for column in range(schema.n_columns) if column not in seen)
    return [*found, others] if others else found


def column_of(node: Any, schema: Schema) -> int:
    """The column that a name or an index stands for."""
    if schema.names is not None and node in schema.names:
        return schema.names.index(node)
    if isinstance(node, int | np.integer) and not isinstance(node, bool) and 0 <= node < schema.n_columns:
        return int(node)
    known = f"{schema.n_columns} columns without names" if schema.names is None else ", ".join(schema.names[:8])
    raise ValueError(f"{node!r} is no column of X, which has {known}{', …' if len(schema.names or ()) > 8 else ''}")
