"""Times of leave-one-out, of averages over structures and of many columns, as ratios to what they replace.

``python bench/averaging.py`` prints the table; ``--write`` also puts it into docs/bench-averaging.md.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import svd
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cgnlearn import Band, BandAverage, CGNClassifier, Prior, SelectiveNaiveBayes, TANAverage
from cgnlearn.datasets import make_waveform
from cgnlearn.logistic.features import features_of
from cgnlearn.logistic.path import N_PENALTIES
from measuring import parser, publish, seconds, versions
from ordered import N_TEST, data, path

K_MAX = 50


def leave_one_out_rows():
    X, y = make_waveform(5000, random_state=0)
    for structure, sharing, most in (("naive_bayes", 0.0, 1.5), ("complete", 0.0, 1.5), ("complete", 1.0, 3.0)):
        model = CGNClassifier(structure, sharing=sharing).fit(X, y)
        times = seconds(lambda m=model: m.leave_one_out_log_proba(X, y), lambda m=model: m.predict_proba(X), repeats=50)
        yield f"leave-one-out of 5,000 × 21, 3 classes, {structure}, sharing {sharing:g}", "predict_proba", *times, most
    X, y = data(216, 4000)
    groups = np.arange(216)  # each sample its own group: folds instead of leave-one-out
    model = CGNClassifier(Band("cv", k_max=110, cv=10), sharing=1.0, likelihood_power="cv")
    times = seconds(lambda: model.fit(X, y), lambda: model.fit(X, y, groups=groups), repeats=2)
    yield 'Band("cv", k_max=110) and likelihood power, 216 × 4,000, sharing 1', "the same with ten folds", *times, 0.5


def selective_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 100_000)
    X = rng.normal(size=(100_000, 50))
    X[:, ::2] += 0.2 * y[:, None]  # every other column is informative
    ours, naive = CGNClassifier(SelectiveNaiveBayes()), CGNClassifier()
    fit = seconds(lambda: ours.fit(X, y), lambda: naive.fit(X, y))
    predict = seconds(lambda: ours.predict_proba(X), lambda: naive.predict_proba(X), repeats=10)
    yield "selective naive Bayes, 100,000 × 50, 3 classes: fit", "naive Bayes", *fit, 2.0
    yield "the same: predict_proba", "naive Bayes", *predict, 2.0


def forest_rows():
    X, y = make_waveform(5000, random_state=0)
    ours, tree = CGNClassifier(TANAverage()), CGNClassifier("tan")
    fit = seconds(lambda: ours.fit(X, y), lambda: tree.fit(X, y))
    predict = seconds(lambda: ours.predict_proba(X), lambda: tree.predict_proba(X), repeats=10)
    yield "TANAverage, 5,000 × 21, 3 classes: fit", "TAN", *fit, 60.0
    yield "the same: predict_proba", "TAN", *predict, 60.0


def band_average_row():
    X, y = data(194 + N_TEST, 11_300)

    def average():
        return CGNClassifier(BandAverage(K_MAX)).fit(X[:-N_TEST], y[:-N_TEST]).predict_joint_log_proba(X[-N_TEST:])

    bands = path(X, y, k_max=K_MAX, structures=("band",))
    average(), bands()  # compile
    times = seconds(average, bands, repeats=9)
    yield (
        f"BandAverage({K_MAX}), 194 + {N_TEST} samples × 11,300: fit and predict",
        "ordered_path of bands",
        *times,
        3.5,
    )


def rotation_rows():
    rng = np.random.default_rng(0)
    y = np.arange(102) % 2
    X = rng.normal(size=(102, 12_600)) + 0.1 * y[:, None]
    model = CGNClassifier("complete", sharing=1.0, prior=Prior(scale=1e3))
    times = seconds(lambda: model.fit(X, y).predict_proba(X), lambda: svd(X, full_matrices=False))
    yield "complete, 102 × 12,600, 2 classes: fit + predict_proba", "one thin SVD", *times, 3.0
    times = seconds(lambda: model.leave_one_out_log_proba(X, y), lambda: model.predict_proba(X))
    yield "the same: leave-one-out of all samples, sharing 1", "predict_proba", *times, 3.0


def discriminative_rows():
    X, y = make_waveform(5000, random_state=0)
    for sharing in (1.0, 0.0):
        ours = CGNClassifier(sharing=sharing, estimation="discriminative").fit(X, y)
        same = StandardScaler().fit_transform(features_of(ours._generative, ours._table(X)).values)
        theirs = LogisticRegressionCV(Cs=N_PENALTIES, cv=5, scoring="neg_log_loss", max_iter=1000)
        # One BLAS thread for both: the peer's threads would wait for each other.
        with threadpool_limits(1, user_api="blas"):
            times = seconds(lambda m=ours: m.fit(X, y), lambda m=theirs, same=same: m.fit(same, y), repeats=2)
        work = f"discriminative naive Bayes, sharing {sharing:g}, 5,000 × 21 ({same.shape[1]} features): fit"
        yield work, f"LogisticRegressionCV, {N_PENALTIES} penalties, 5 folds", *times, 1.0


def report():
    lines = [
        "# Speed of leave-one-out, averages and many columns",
        "",
        "Made by `python bench/averaging.py --write`: best times of one run, measured alternately.",
        versions(),
        "",
        "| work | compared with | ours, ms | theirs, ms | ratio | limit | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for rows in (leave_one_out_rows, selective_rows, forest_rows, band_average_row, rotation_rows, discriminative_rows):
        for work, beside, ours, theirs, most in rows():
            ratio = ours / theirs
            verdict = "met" if ratio <= most else "missed"
            lines.append(
                f"| {work} | {beside} | {1e3 * ours:.1f} | {1e3 * theirs:.1f} | {ratio:.2f} | {most} | {verdict} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-averaging.md").parse_args()
    warnings.simplefilter("ignore", FutureWarning)  # LogisticRegressionCV announces new defaults
    publish(report(), "bench-averaging.md", write=arguments.write)
