"""The paper's three tables: where Bayesian averaging won (w), drew (d) and lost (l) against maximum likelihood.

Each string has one letter per data set, in the order of the paper. The paper numbers the columns of its third table
from 0 instead of 1; they are taken to be the same data sets in the same order.
"""

from __future__ import annotations

from cgnlearn.evaluation.significance import Mark

#: By search, metric and fraction of the training data, with the wins/losses counted by the paper.
TABLES: dict[str, dict[tuple[str, float], tuple[str, str]]] = {
    "backward": {
        ("cll", 1.0): ("wwwlwwlww", "7/2"),
        ("cll", 0.2): ("wwwwwwwww", "9/0"),
        ("accuracy", 1.0): ("llwlwwlwl", "4/5"),
        ("accuracy", 0.2): ("llwwlwlww", "5/4"),
    },
    "condensed": {
        ("cll", 1.0): ("wwwlwwlww", "7/2"),
        ("cll", 0.2): ("wwwwwwwww", "9/0"),
        ("accuracy", 1.0): ("llwwlwlww", "5/4"),
        ("accuracy", 0.2): ("llwwwwlwd", "5/3"),
    },
    "forward": {
        ("cll", 1.0): ("lwwlwwwww", "7/2"),
        ("cll", 0.2): ("wwwwwwwww", "9/0"),
        ("accuracy", 1.0): ("lldlwwlww", "4/4"),
        ("accuracy", 0.2): ("llwwlllww", "4/5"),
    },
}
NAMES = {"backward": "bwGJAN", "condensed": "wcGJAN", "forward": "fwGJAN"}

_MARKS: dict[str, Mark] = {"w": "win", "d": "draw", "l": "loss"}


def mark(search: str, metric: str, fraction: float, position: int) -> Mark:
    """The mark of the paper for one data set, by its position in the list of the paper."""
    return _MARKS[TABLES[search][metric, fraction][0][position]]
