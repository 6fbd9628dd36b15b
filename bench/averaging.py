"""Averages, leave-one-out and many columns beside what they stand in for, in one run: ratios of times.

``python bench/averaging.py`` prints the table; ``--write`` also puts it into docs/bench-averaging.md.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import svd

from cgnlearn import CGNClassifier, Prior
from measuring import parser, publish, seconds, versions


def rotation_rows():
    rng = np.random.default_rng(0)
    y = np.arange(102) % 2
    X = rng.normal(size=(102, 12_600)) + 0.1 * y[:, None]
    model = CGNClassifier("complete", sharing=1.0, prior=Prior(scale=1e3))
    times = seconds(lambda: model.fit(X, y).predict_proba(X), lambda: svd(X, full_matrices=False))
    yield "complete, 102 × 12,600, 2 classes: fit + predict_proba", "one thin SVD", *times, 3.0
    times = seconds(lambda: model.leave_one_out_log_proba(X, y), lambda: model.predict_proba(X))
    yield "the same: leave-one-out of all rows, sharing 1", "predict_proba", *times, 3.0


def report():
    lines = [
        "# Averages, leave-one-out and many columns",
        "",
        "Made by `python bench/averaging.py --write`: best times in one run, both taking turns.",
        versions(),
        "",
        "| work | beside | ours, ms | theirs, ms | ratio | at most | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for work, peer, ours, theirs, most in rotation_rows():
        verdict = "met" if ours / theirs <= most else "missed"
        figures = f"{1e3 * ours:.1f} | {1e3 * theirs:.1f} | {ours / theirs:.2f}"
        lines.append(f"| {work} | {peer} | {figures} | {most} | {verdict} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-averaging.md").parse_args()
    publish(report(), "bench-averaging.md", write=arguments.write)
