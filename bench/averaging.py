"""Averages over structures beside one structure of their kind, in one run: ratios of times.

``python bench/averaging.py`` prints the table; ``--write`` also puts it into docs/bench-averaging.md.
"""

from __future__ import annotations

import numpy as np

from cgnlearn import CGNClassifier, SelectiveNaiveBayes, TreeAverage
from cgnlearn.datasets import make_waveform
from measuring import parser, publish, seconds, versions


def selective_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 100_000)
    X = rng.normal(size=(100_000, 50))
    X[:, ::2] += 0.2 * y[:, None]  # every other column says something
    ours, naive = CGNClassifier(SelectiveNaiveBayes()), CGNClassifier()
    fit = seconds(lambda: ours.fit(X, y), lambda: naive.fit(X, y))
    predict = seconds(lambda: ours.predict_proba(X), lambda: naive.predict_proba(X), repeats=10)
    yield "selective naive Bayes, 100,000 × 50, 3 classes: fit", "naive Bayes", *fit, 2.0
    yield "the same: predict_proba", "naive Bayes", *predict, 2.0


def forest_rows():
    X, y = make_waveform(5000, random_state=0)
    ours, tree = CGNClassifier(TreeAverage()), CGNClassifier("tree")
    fit = seconds(lambda: ours.fit(X, y), lambda: tree.fit(X, y))
    predict = seconds(lambda: ours.predict_proba(X), lambda: tree.predict_proba(X), repeats=10)
    yield "average over forests, 5,000 × 21, 3 classes: fit", "tree", *fit, 60.0
    yield "the same: predict_proba", "tree", *predict, 60.0


def report():
    lines = [
        "# Averages over structures: measured",
        "",
        "Made by `python bench/averaging.py --write`: best times in one run, ours and theirs taking turns.",
        versions(),
        "",
        "| work | beside | ours, ms | theirs, ms | ratio | at most | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for rows in (selective_rows, forest_rows):
        for work, beside, ours, theirs, most in rows():
            ratio = ours / theirs
            verdict = "met" if ratio <= most else "missed"
            lines.append(
                f"| {work} | {beside} | {1e3 * ours:.1f} | {1e3 * theirs:.1f} | {ratio:.2f} | {most} | {verdict} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-averaging.md").parse_args()
    publish(report(), "bench-averaging.md", write=arguments.write)
