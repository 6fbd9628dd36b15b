"""Why a model predicts what it does: attributions and importance of features, and the next one to measure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.coalitions import MOST_TABULATED, Players
from cgnlearn.networks.components import Mask
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.integration import observed_cells
from cgnlearn.networks.shapley import Attributions, Member, active_players, exact, sampled
from cgnlearn.progress import followed

CHUNK = 1 << 22  # log probabilities of coalitions in memory at once

Groups = Mapping[str, Sequence[Any]] | Iterable[Sequence[Any]]


class Explanations:
    """Explanations of predictions, for estimators that supply log probabilities of samples with missing values."""

    @abstractmethod
    def _table(self, X: Any, y: Any = None, sample_weight: Any = None) -> Table:
        """Read samples."""

    @property
    @abstractmethod
    def class_log_prior_(self) -> Floats:
        """Log prior probabilities of the classes: (classes,)."""

    @abstractmethod
    def _log_scores(self, table: Table) -> Floats:
        """ln p(class | x) up to a constant of each sample: (samples, classes)."""

    @abstractmethod
    def _members(self, table: Table, players: Players) -> list[Member]:
        """The log likelihoods of coalitions under the model, or under each member of a mixture."""

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
        random_state: Any = 0,
        return_se: Literal[True],
    ) -> tuple[Floats, Floats]: ...

    def shapley(
        self,
        X: Any,
        groups: Groups | None = None,
        *,
        n_permutations: int = 100,
        random_state: Any = 0,
        return_se: bool = False,
    ) -> Floats | tuple[Floats, Floats]:
        """Shapley values of the features: (samples, features or groups, classes).

        They divide ln p(c | x) - ln p(c) among the features. The value of a set of features is ln p(c | x_S), with all
        others integrated out as missing ones are: no background samples are needed and none are invented. A feature
        has the mean, over all orders of the features, of what it adds when it comes in. So no order matters, features
        that say the same share what they say, and those that are missing, constant or not in the model have 0.

        Values are exact for up to 14 features or groups. With more, orders are sampled, each with its reverse; the
        differences between classes, which are log odds, are still exact for naive Bayes, and for structures whose
        connected parts have at most 14 features. Sampling shows its progress with ``verbose=1``.

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
        random_state : int, Generator or None
            Seed of the orders.
        return_se : bool
            Whether to return the standard errors too, 0 where values are exact.

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
        table = self._table(X)
        players = players_of(groups, table.schema)
        if n_permutations < 4:
            raise ValueError(f"n_permutations must be at least 4, not {n_permutations!r}")
        n, n_classes = table.n_samples, table.schema.n_classes
        found = np.empty((2, n, len(players), n_classes))
        most = max(1 << min(len(players), MOST_TABULATED), 1 + len(players))
        size = max(1, CHUNK // (n_classes * most))
        for start in range(0, n, size):
            rows = np.arange(start, min(start + size, n))
            part = self._shapley_of(table.rows(rows), players, n_permutations, random_state)
            found[:, rows] = np.array(part).transpose(0, 3, 1, 2)
        return (found[0], found[1]) if return_se else found[0]

    def _shapley_of(self, table: Table, players: Players, n_permutations: int, random_state: Any) -> Attributions:
        before, after = self.class_log_prior_, normalised(self._log_scores(table))
        by_column = self._known(table)
        known = np.stack([by_column[:, list(columns)].any(axis=1) for columns in players], axis=1)
        members = self._members(table, players)
        if len(active_players(members)) <= MOST_TABULATED:
            values = exact(members, known, before, after)
            return Attributions(values, np.zeros_like(values))
        rng, n_pairs = np.random.default_rng(random_state), (n_permutations + 1) // 2
        orders = (rng.permutation(len(players)) for _ in range(n_pairs))
        return sampled(members, known, before, after, followed(self, orders, n_pairs))


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
