"""Times of structure searches and TAN, relative to quadratic discriminant analysis of scikit-learn.

``python bench/search.py`` prints the tables; ``--write`` also puts them into docs/bench-search.md; ``--quick`` omits
the long samples of the growth tables.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, cross_val_score
from threadpoolctl import threadpool_limits

from cgnlearn import TAN, CGNClassifier, GreedyJan, Jan
from cgnlearn.datasets import make_waveform
from measuring import parser, publish, seconds, versions

FOLDS = StratifiedKFold(10, shuffle=True, random_state=0)
SCORES = ("evidence", "mutual_information")
SEARCHES = {"bwGJAN": "backward", "fwGJAN": "forward", "wcGJAN": "condensed"}


TITLE = "# Speed of searches and TAN"
ABOUT = """Waveforms (Breiman), 4,500 × 21, 3 classes; best of several runs, all in one process with one BLAS thread.
Made by `python bench/search.py --write`; absolute times depend on the machine, ratios less so.
The cost of refitting each structure is extrapolated from cross-validations of some visited ones."""
GROWTH = "Growth of the time with the numbers of features (columns beyond 21 are noise) and of samples:"


def waveform(n, p, seed=0):
    """The first p features of waveforms, or all and noise up to p."""
    X, y = make_waveform(n, random_state=seed)
    noise = np.random.default_rng(seed).normal(size=(n, max(p - 21, 0)))
    return np.column_stack([X[:, :p], noise]), y


def refit_seconds(X, y, path):
    """Mean time of a cross-validation by refitting, over structures of the path."""
    some = [path[i] for i in np.unique(np.linspace(0, len(path) - 1, 6).astype(int))]
    models = [CGNClassifier(Jan(state.groups), estimation="ml") for state in some]
    cross_val_score(models[0], X, y, cv=FOLDS)  # compile
    times = [seconds(lambda model=model: cross_val_score(model, X, y, cv=FOLDS), repeats=1) for model in models]
    return float(np.mean(times))


def table(header, rows):
    """Lines of a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]


def ratios():
    """Times of searches relative to a cross-validation of QDA, and of trees relative to its fit."""
    X, y = waveform(4500, 21)
    qda = QuadraticDiscriminantAnalysis()
    works = {
        "CV": lambda: cross_val_score(qda, X, y, cv=FOLDS),
        "fit": lambda: [qda.fit(X, y) for _ in range(5)],
        **{name: lambda s=s: CGNClassifier(GreedyJan(s), estimation="ml").fit(X, y) for name, s in SEARCHES.items()},
        **{f"TAN, {s}": lambda s=s: [CGNClassifier(TAN(s)).fit(X, y) for _ in range(5)] for s in SCORES},
    }
    took = dict(zip(works, seconds(*works.values(), repeats=8), strict=True))
    rows = []
    for name, search in SEARCHES.items():
        path = CGNClassifier(GreedyJan(search)).fit(X, y).search_path_
        n_scored = path[-1].n_scored
        plain = refit_seconds(X, y, path) * n_scored
        rows.append(
            [
                name,
                f"{took[name] * 1e3:.0f} ms",
                f"10-fold CV of QDA, {took['CV'] * 1e3:.0f} ms",
                f"{took[name] / took['CV']:.1f}",
                "4.5" if name == "bwGJAN" else "",
                n_scored,
                f"{plain:.0f} s",
                f"{plain / took[name]:.0f}",
            ]
        )
    for name in (f"TAN, {score}" for score in SCORES):
        peer = f"QDA's fit, {took['fit'] / 5 * 1e3:.1f} ms"
        ratio = f"{took[name] / took['fit']:.1f}"
        rows.append([name, f"{took[name] / 5 * 1e3:.1f} ms", peer, ratio, "8", "", "", ""])
    header = ["", "time", "peer", "ratio", "limit", "structures scored", "time with refitting", "factor"]
    return table(header, rows)


def growth(sizes):
    """Seconds of each search and of a tree for each (n, p)."""
    rows = []
    for n, p in sizes:
        X, y = waveform(n, p)
        searches = [lambda s=s, X=X, y=y: CGNClassifier(GreedyJan(s)).fit(X, y) for s in SEARCHES.values()]
        took = seconds(*searches, lambda X=X, y=y: CGNClassifier(TAN()).fit(X, y), repeats=1)
        rows.append([f"{n:,}", p, *(f"{one:.3g} s" for one in took)])
    return table(["samples", "features", *SEARCHES, "TAN"], rows)


def report(*, quick):
    by_p = [(4500, p) for p in (10, 20, 40, 80)][: 3 if quick else 4]
    by_n = [(n, 21) for n in (1000, 10_000, 100_000)][: 2 if quick else 3]
    with threadpool_limits(1, user_api="blas"):  # for all, as the peers' matrices are small too
        tables = [*ratios(), "", GROWTH, "", *growth(by_p), "", *growth(by_n)]
    return "\n".join([TITLE, "", ABOUT, versions(), "", *tables]) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-search.md")
    options.add_argument("--quick", action="store_true", help="omit the long samples of the growth tables")
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    publish(report(quick=arguments.quick), "bench-search.md", write=arguments.write)
