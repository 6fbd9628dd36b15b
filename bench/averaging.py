"""Averages and discriminative parameters beside their peers, in one run: ratios of times.

``python bench/averaging.py`` prints the table; ``--write`` also puts it into docs/bench-averaging.md.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from cgnlearn import CGNClassifier
from cgnlearn.datasets import make_waveform
from cgnlearn.model.features import features
from cgnlearn.model.logistic import N_PENALTIES
from measuring import parser, publish, seconds, versions


def discriminative_rows():
    X, y = make_waveform(5000, random_state=0)
    for structure, sharing in (("naive_bayes", 1.0), ("naive_bayes", 0.0)):
        ours = CGNClassifier(structure, sharing=sharing, parameters="discriminative").fit(X, y)
        same = np.concatenate([part for _, part in features(ours._generative, ours._table(X))], axis=1)
        same = StandardScaler().fit_transform(same)
        theirs = LogisticRegressionCV(Cs=N_PENALTIES, cv=5, scoring="neg_log_loss", max_iter=1000)
        times = seconds(
            lambda ours=ours: ours.fit(X, y), lambda theirs=theirs, same=same: theirs.fit(same, y), repeats=2
        )
        work = f"discriminative, {structure}, sharing {sharing:g}, 5,000 × 21 ({same.shape[1]} features): fit"
        yield work, f"LogisticRegressionCV, {N_PENALTIES} penalties, 5 folds", *times, 1.0


def report():
    lines = [
        "# Averages and discriminative parameters beside their peers",
        "",
        "Made by `python bench/averaging.py --write`: best times in one run, ours and theirs taking turns.",
        versions(),
        "",
        "| work | peer | ours, ms | theirs, ms | ratio | at most | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for rows in (discriminative_rows,):
        for work, peer, ours, theirs, most in rows():
            ratio = ours / theirs
            verdict = "met" if ratio <= most else "missed"
            lines.append(
                f"| {work} | {peer} | {1e3 * ours:.1f} | {1e3 * theirs:.1f} | {ratio:.2f} | {most} | {verdict} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-averaging.md").parse_args()
    publish(report(), "bench-averaging.md", write=arguments.write)
