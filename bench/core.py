"""Times of fits and predictions as ratios to those of peers, and the peak memory of a large fit.

``python bench/core.py`` prints the table; ``--write`` also puts it into docs/bench-core.md.
"""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from cgnlearn import Band, CGNClassifier
from measuring import parser, peak_megabytes, publish, seconds, versions

SETUP = """
from core import data
from cgnlearn import CGNClassifier
X, y = data(1_000_000, 50, 3)
CGNClassifier().fit(X[:1000], y[:1000])
"""


def data(n, p, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, p)) + 0.2 * y[:, None], y


def fit_and_predict(model, X, y):
    return lambda: model.fit(X, y).predict_proba(X)


def naive_rows():
    X, y = data(1_000_000, 50, 3)
    ours, theirs = CGNClassifier(), GaussianNB()
    fit = seconds(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), repeats=3)
    predict = seconds(lambda: ours.predict_proba(X), lambda: theirs.predict_proba(X), repeats=3)
    yield "naive Bayes, 1,000,000 × 50, 3 classes: fit", "GaussianNB", *fit, 0.2
    yield "the same: predict_proba", "GaussianNB", *predict, 0.2


def complete_row():
    X, y = data(5000, 21, 3)
    times = seconds(
        fit_and_predict(CGNClassifier("complete"), X, y),
        fit_and_predict(QuadraticDiscriminantAnalysis(), X, y),
        repeats=20,
    )
    yield "complete, 5,000 × 21, 3 classes: fit + predict_proba", "QDA", *times, 0.8


def band_row():
    X, y = data(216, 11_300, 2)
    times = seconds(fit_and_predict(CGNClassifier(Band(5)), X, y), fit_and_predict(GaussianNB(), X, y))
    yield "5-BAND, 216 × 11,300, 2 classes: fit + predict_proba", "GaussianNB", *times, 2.5


def pybnesian_rows():
    import pyarrow as pa
    import pybnesian

    X, y = data(5000, 21, 3)
    names = [f"x{i}" for i in range(21)]

    def batch(labels):
        coded = pa.DictionaryArray.from_arrays(pa.array(labels.astype(np.int8)), pa.array(["0", "1", "2"]))
        return pa.RecordBatch.from_arrays([pa.array(column) for column in X.T] + [coded], names=[*names, "y"])

    training = batch(y)
    every_class = [batch(np.full(len(y), label)) for label in range(3)]
    from_class = [("y", name) for name in names]
    among = [(a, b) for j, b in enumerate(names) for a in names[:j]]
    for structure, arcs in (("naive_bayes", from_class), ("complete", from_class + among)):

        def theirs(arcs=arcs):
            network = pybnesian.CLGNetwork([*names, "y"], arcs)
            network.fit(training)
            return np.column_stack([network.logl(rows) for rows in every_class])

        for estimation in ("ml", "bayes"):
            times = seconds(fit_and_predict(CGNClassifier(structure, estimation=estimation), X, y), theirs, repeats=10)
            yield f"{structure}, {estimation}, 5,000 × 21: fit + predict", "PyBNesian CLGNetwork (ML)", *times, 0.4


def memory_ratio():
    """Peak memory of the large fit above the data, as a multiple of the size of the data."""
    return peak_megabytes(SETUP, "CGNClassifier().fit(X, y)") / (1_000_000 * 50 * 8 / 2**20)


def report():
    lines = [
        "# Speed of single networks",
        "",
        "Made by `python bench/core.py --write`: best times of one run, measured alternately.",
        versions(),
        "",
        "| work | compared with | ours, ms | theirs, ms | ratio | limit | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for rows in (naive_rows, complete_row, band_row, pybnesian_rows):
        for work, peer, ours, theirs, most in rows():
            ratio = ours / theirs
            verdict = "met" if ratio <= most else "missed"
            lines.append(
                f"| {work} | {peer} | {1e3 * ours:.1f} | {1e3 * theirs:.1f} | {ratio:.2f} | {most} | {verdict} |"
            )
    peak = memory_ratio()
    verdict = "met" if peak <= 1.5 else "missed"
    lines.append(
        f"| peak memory of the fit to 1,000,000 samples above the data | the data | | | {peak:.2f} | 1.5 | {verdict} |"
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-core.md").parse_args()
    publish(report(), "bench-core.md", write=arguments.write)
