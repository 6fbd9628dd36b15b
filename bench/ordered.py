"""Time of all orders k of ordered structures, compared with GaussianNB and PyBNesian.

``python bench/ordered.py`` prints the tables; ``--write`` also puts them into docs/bench-ordered.md.
"""

from __future__ import annotations

import numpy as np
from sklearn.naive_bayes import GaussianNB

from cgnlearn import Band, CGNClassifier, Prior, ordered_path
from measuring import parser, peak_megabytes, publish, seconds, versions

N_TEST = 22

SETUP = """
from ordered import N_TEST, data
from cgnlearn import ordered_path
X, y = data(194 + N_TEST, 11_300)
ordered_path(X[:20, :60], y[:20], X[-2:, :60])  # compile
"""


def data(n, p):
    """Samples of two classes with correlated neighbouring columns, as in spectra."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    for column in range(1, p):
        X[:, column] += 0.9 * X[:, column - 1]
    return X + 0.1 * y[:, None], y


def path(X, y, **parameters):
    return lambda: ordered_path(X[:-N_TEST], y[:-N_TEST], X[-N_TEST:], **parameters)


def naive(X, y):
    return lambda: GaussianNB().fit(X[:-N_TEST], y[:-N_TEST]).predict_proba(X[-N_TEST:])


def lines_beside_naive_bayes():
    X, y = data(194 + N_TEST, 11_300)
    settings = {
        "Bayes": {},
        "maximum likelihood": {"estimation": "ml"},
        "Bayes, sharing=1": {"sharing": 1.0},
        'Bayes, location="paper"': {"prior": Prior(location="paper")},
    }
    works = [path(X, y, **parameters) for parameters in settings.values()]
    for work in works:
        work()  # compile
    *ours, theirs = seconds(*works, naive(X, y), repeats=7)
    yield "| all k = 1..50 of k-BAND and k-BOX | ours, ms | GaussianNB, ms | ratio | limit | |"
    yield "|---|---:|---:|---:|---:|---|"
    for name, took in zip(settings, ours, strict=True):
        ratio, limit = took / theirs, 8
        verdict = "met" if ratio <= limit else "missed"
        yield f"| {name} | {1e3 * took:.0f} | {1e3 * theirs:.1f} | {ratio:.1f} | {limit} | {verdict} |"
    peak = peak_megabytes(SETUP, "ordered_path(X[:-N_TEST], y[:-N_TEST], X[-N_TEST:])")
    verdict = "met" if peak < 1024 else "missed"
    yield f"| peak memory above the data (Bayes), MB | {peak:.0f} | | | 1024 | {verdict} |"


def lines_of_growth():
    yield "| varied | columns | largest k | training samples | s | µs per column and k |"
    yield "|---|---:|---:|---:|---:|---:|"
    settings = [
        *(("columns", p, 50, 200) for p in (10_000, 30_000, 100_000)),
        *(("k", 10_000, k, 200) for k in (10, 50, 100)),
        *(("samples", 10_000, 50, n) for n in (200, 2_000)),
    ]
    for grows, p, k, n in settings:
        X, y = data(n + N_TEST, p)
        (took,) = seconds(path(X, y, k_max=k), repeats=3)
        yield f"| {grows} | {p:,} | {k} | {n:,} | {took:.2f} | {1e6 * took / (p * k):.2f} |"


def lines_beside_pybnesian():
    import pyarrow as pa
    import pybnesian

    yield "| 5-BAND, ML, 194 samples, fit and log likelihood of 22 | ours, ms | PyBNesian, ms | theirs / ours |"
    yield "|---|---:|---:|---:|"
    for p in (250, 500, 1_000):
        X, y = data(194 + N_TEST, p)
        names = [f"x{i}" for i in range(p)]

        def batch(rows, labels, names=names):
            coded = pa.DictionaryArray.from_arrays(pa.array(labels.astype(np.int8)), pa.array(["0", "1"]))
            return pa.RecordBatch.from_arrays([pa.array(column) for column in rows.T] + [coded], names=[*names, "y"])

        training = batch(X[:-N_TEST], y[:-N_TEST])
        tests = [batch(X[-N_TEST:], np.full(N_TEST, label)) for label in (0, 1)]
        arcs = [("y", name) for name in names]
        arcs += [(names[i], names[j]) for j in range(p) for i in range(max(0, j - 4), j)]

        def theirs(names=names, arcs=arcs, training=training, tests=tests):
            network = pybnesian.CLGNetwork([*names, "y"], arcs)
            network.fit(training)
            return np.column_stack([network.logl(rows) for rows in tests])

        def ours(X=X, y=y):
            model = CGNClassifier(Band(5), estimation="ml").fit(X[:-N_TEST], y[:-N_TEST])
            return model.predict_joint_log_proba(X[-N_TEST:])

        took = seconds(ours, theirs, repeats=2)
        yield f"| {p:,} columns | {1e3 * took[0]:.1f} | {1e3 * took[1]:.0f} | {took[1] / took[0]:.0f} |"


def report():
    lines = [
        "# Ordered structures: every k in one pass",
        "",
        "Made by `python bench/ordered.py --write`: best times of one run, measured alternately.",
        versions(),
        "",
        f"`ordered_path` on 194 training and {N_TEST} test samples × 11,300 columns, 2 classes, against one "
        "`GaussianNB().fit(...).predict_proba(...)` on the same arrays:",
        "",
        *lines_beside_naive_bayes(),
        "",
        f"Growth of the time (both shapes, Bayes, {N_TEST} test samples, 2 classes):",
        "",
        *lines_of_growth(),
        "",
        "Compared with PyBNesian's `CLGNetwork` with the same arcs; its time grows quadratically with the columns, and",
        "11,300 columns would take too long:",
        "",
        *lines_beside_pybnesian(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-ordered.md").parse_args()
    publish(report(), "bench-ordered.md", write=arguments.write)
