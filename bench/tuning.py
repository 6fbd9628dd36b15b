"""Times of default fits of the self-tuning estimator, relative to those of peers.

``python bench/tuning.py [--rows N]`` prints the table; ``--write`` also puts it into docs/bench-tuning.md.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cgnlearn import CGNClassifierCV
from cgnlearn.datasets import make_spectra, make_waveform
from measuring import parser, publish, seconds, versions

LOGISTIC = "LogisticRegressionCV(Cs=10, cv=5)"


def logistic():
    settings = {"l1_ratios": (0,), "use_legacy_attributes": False, "scoring": "neg_log_loss"}
    return make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=10, cv=5, max_iter=1000, **settings))


def many(n_samples):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 20))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.square(X[:, 3])
    return X, (score + rng.logistic(size=n_samples) > 0.5).astype(int)


def rows(n_samples):
    wine = load_wine(return_X_y=True)
    wave = make_waveform(5000, random_state=0)
    spectra = make_spectra(216, 4000, random_state=0)
    for work, (X, y), options, most, repeats in (
        ("wine, 178 × 13", wine, {}, 10, 3),
        ("waveform, 5,000 × 21, 3 classes", wave, {}, 8, 2),
        ("simulated spectra, 216 × 4,000, ordered=True", (spectra.data, spectra.target), {"ordered": True}, 3, 2),
    ):
        ours, theirs = CGNClassifierCV(**options), logistic()
        fits = [lambda m=model, X=X, y=y: m.fit(X, y) for model in (ours, theirs)]
        ours.fit(X, y)  # compile
        times = seconds(*fits, repeats=repeats)
        with threadpool_limits(1, user_api="blas"):
            on_one = seconds(*fits, repeats=repeats)
        yield work, LOGISTIC, times, on_one, most
    X, y = many(n_samples)
    ours, theirs = CGNClassifierCV(), HistGradientBoostingClassifier()
    ours.fit(X[:20_000], y[:20_000])
    times = seconds(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), repeats=1)
    yield f"{n_samples:,} × 20, 2 classes", "HistGradientBoostingClassifier()", times, None, 1


def report(n_samples):
    lines = [
        "# Cost of tuning",
        "",
        "Made by `python bench/tuning.py --write`: default fits, best times of one run, measured alternately,",
        "with the libraries' default numbers of threads; and the same with one BLAS thread,",
        "as the peer's threads may wait for each other.",
        versions(),
        "",
        "| CGNClassifierCV | compared with | ours, s | theirs, s | ratio | limit | | theirs, one thread, s | ratio |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for work, beside, (ours, theirs), on_one, most in rows(n_samples):
        ratio = ours / theirs
        verdict = "met" if ratio <= most else "missed"
        alone = "| |" if on_one is None else f"{on_one[1]:.2f} | {on_one[0] / on_one[1]:.2f} |"
        lines.append(f"| {work} | {beside} | {ours:.2f} | {theirs:.2f} | {ratio:.2f} | {most} | {verdict} | {alone}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-tuning.md")
    options.add_argument("--rows", type=int, default=1_000_000, help="samples of the largest table")
    arguments = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    publish(report(arguments.rows), "bench-tuning.md", write=arguments.write)
