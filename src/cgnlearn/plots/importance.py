"""The importance of features for the predictions of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cgnlearn.data.arrays import Floats
from cgnlearn.data.labels import labels_of, target
from cgnlearn.data.table import Table
from cgnlearn.networks.densities import normalised, true_class_log_proba
from cgnlearn.plots.features import MOST_BARS
from cgnlearn.plots.style import BLUE, GREY, INK, ORANGE, Display, needs, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ImportanceDisplay(Display):
    """Importance of each feature: how much the log loss rises if its values are permuted among the samples.

    Features that carry the same evidence stand in for each other, and each seems unimportant.

    Parameters
    ----------
    increase : array (features, repeats)
        Increase of the log loss.
    names : sequence of str
    """

    def __init__(self, increase: ArrayLike, names: Sequence[str]) -> None:
        self.increase, self.names = np.asarray(increase, dtype=float), list(names)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_repeats: int = 5, random_state: Any = 0, ax: Axes | None = None
    ) -> Self:
        """Draw the importance of the features for a fitted classifier, of any structure and of any mixture.

        Parameters
        ----------
        estimator : CGNClassifier or CGNClassifierCV
        X : array or data frame
            Samples that were not trained on tell what matters for new ones.
        y : array (samples,)
        n_repeats : int
            Permutations of each feature; each costs one prediction of all samples.
        random_state : int, Generator or None
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> display = ImportanceDisplay.from_estimator(CGNClassifier("tan").fit(X, y), X, y)
        >>> display.names[display.increase.mean(axis=1).argmax()]
        'petal length (cm)'
        """
        needs(estimator, "contributions", "what its importance display reads")
        table, rng = estimator._table(X), np.random.default_rng(random_state)
        labels = labels_of(target(y), estimator.classes_)
        if len(labels) != table.n_samples:
            raise ValueError(f"X has {table.n_samples} samples, y {len(labels)}: give the class of each")

        def log_loss(some: Table) -> float:
            return -float(true_class_log_proba(normalised(estimator._log_scores(some)), labels).mean())

        before, schema = log_loss(table), table.schema
        increase = np.empty((schema.n_columns, n_repeats))
        for column in range(schema.n_columns):
            for repeat in range(n_repeats):
                increase[column, repeat] = log_loss(_permuted(table, column, rng)) - before
        names = [str(name) for name in getattr(estimator, "feature_names_in_", range(schema.n_columns))]
        return cls(increase, names).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.2 + 0.26 * min(len(self.names), MOST_BARS + 1)

    def _draw(self, ax: Axes) -> None:
        mean, deviation = self.increase.mean(axis=1), self.increase.std(axis=1)
        order = np.argsort(-mean, kind="stable")
        shown, rest = order[:MOST_BARS], order[MOST_BARS:]
        names, values = [self.names[i] for i in shown], mean[shown].tolist()
        spread: Floats = deviation[shown]
        if len(rest):
            names.append(f"mean of {len(rest)} others")
            values.append(float(mean[rest].mean()))
            spread = np.append(spread, 0.0)
        colours = [BLUE if value >= 0 else ORANGE for value in values]
        look: dict[str, Any] = {"ecolor": INK, "error_kw": {"linewidth": 0.8}}
        ax.barh(range(len(names)), values, xerr=spread, color=colours, height=0.72, **look)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_xlabel("increase of the log loss if permuted (mean ± SD)")
        without_frame(ax)


def _permuted(table: Table, column: int, rng: np.random.Generator) -> Table:
    """The samples with the values of one column in another order."""
    part = "values" if table.schema.levels[column] is None else "codes"
    cells = getattr(table, part).copy()
    position = table.schema.position[column]
    cells[:, position] = rng.permutation(cells[:, position])
    return replace(table, **{part: cells})
