"""Times of default fits of the self-tuning estimator, relative to those of peers.

``python bench/tuning.py [--rows N]`` prints the table; ``--write`` also puts it into docs/bench-tuning.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cgnlearn import CGNClassifierCV, save
from cgnlearn.datasets import make_spectra, make_waveform
from measuring import parser, peak_megabytes, publish, seconds, versions

LOGISTIC = "LogisticRegressionCV(Cs=10, cv=5)"


def logistic():
    settings = {"l1_ratios": (0,), "use_legacy_attributes": False, "scoring": "neg_log_loss"}
    return make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=10, cv=5, max_iter=1000, **settings))


def many(n_samples):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 20))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.square(X[:, 3])
    return X, (score + rng.logistic(size=n_samples) > 0.5).astype(int)


def eleven():
    """100 samples of 11 classes, 8 of 40 features depending on the class."""
    rng = np.random.default_rng(0)
    y = np.arange(100) % 11
    X = rng.normal(size=(100, 40))
    X[:, :8] += 1.5 * rng.normal(size=(11, 8))[y]
    return X, y


def rows(n_samples):
    wine = load_wine(return_X_y=True)
    wave = make_waveform(5000, random_state=0)
    spectra = make_spectra(216, 4000, random_state=0)
    for work, (X, y), options, most, repeats in (
        ("wine, 178 × 13", wine, {}, 2, 3),
        ("waveform, 5,000 × 21, 3 classes", wave, {}, 3, 2),
        ("simulated spectra, 216 × 4,000, ordered=True", (spectra.data, spectra.target), {"ordered": True}, 1, 2),
    ):
        ours, theirs = CGNClassifierCV(**options), logistic()
        fits = [lambda m=model, X=X, y=y: m.fit(X, y) for model in (ours, theirs)]
        ours.fit(X, y)  # compile
        times = seconds(*fits, repeats=repeats)
        with threadpool_limits(1, user_api="blas"):
            on_one = seconds(*fits, repeats=repeats)
        yield work, LOGISTIC, times, on_one, most
    X, y = eleven()
    times = seconds(lambda: CGNClassifierCV().fit(X, y), *catboost(X, y), repeats=2)
    yield "100 × 40, 11 classes", "CatBoostClassifier()", times, None, 1
    X, y = wave
    X_new = make_waveform(10_000, random_state=1)[0]
    ours, theirs = CGNClassifierCV().fit(X, y), RandomForestClassifier(500, random_state=0).fit(X, y)
    works = [lambda m=model: m.predict_proba(X_new) for model in (ours, theirs)]
    yield "waveform: predict_proba of 10,000 × 21", "RandomForestClassifier(500)", seconds(*works), None, 0.2
    if not n_samples:
        return
    X, y = many(n_samples)
    ours, theirs = CGNClassifierCV(), HistGradientBoostingClassifier()
    ours.fit(X[:20_000], y[:20_000])
    times = seconds(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), repeats=1)
    yield f"{n_samples:,} × 20, 2 classes", "HistGradientBoostingClassifier()", times, None, 0.5


def catboost(X, y):
    """The work of the peer, if it is installed."""
    if not find_spec("catboost"):
        return ()
    from catboost import CatBoostClassifier

    return (lambda: CatBoostClassifier(verbose=False, allow_writing_files=False).fit(X, y),)


FIRST = """
import time, warnings
warnings.simplefilter("ignore")
from sklearn.datasets import load_wine
from cgnlearn import CGNClassifierCV
X, y = load_wine(return_X_y=True)
start = time.perf_counter()
CGNClassifierCV().fit(X, y)
print(time.perf_counter() - start)
"""
PEAK = "CGNClassifierCV().fit(X, y)"
SETUP = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from cgnlearn import CGNClassifierCV
rng = np.random.default_rng(0)
y = np.arange({n}) % 2
X = rng.normal(size=({n}, {p}))
X[:, :6] += y[:, None]
"""


def alone(memory):
    """What is compared with nothing: work, figure, limit and unit."""
    X, y = load_wine(return_X_y=True)
    model = CGNClassifierCV().fit(X, y)
    model.predict_proba(X[:1])
    (one,) = seconds(lambda: model.predict_proba(X[:1]), repeats=200)
    yield "one sample through predict_proba, wine model", 1000 * one, 3, "ms"
    with TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        run = subprocess.run([sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True)
        yield "first fit to wine in a fresh cache of compiled code", float(run.stdout), 5, "s"
        save(model, Path(folder) / "wine.skops")
        yield "members of the wine model", len(model.members_), 8, ""
        yield "model file of wine", (Path(folder) / "wine.skops").stat().st_size / 1000, 200, "kB"
    for n, p in ((1000, 500), (200, 20_000)) if memory else ():
        megabytes = peak_megabytes(SETUP.format(n=n, p=p), PEAK)
        yield f"peak memory of a default fit, {n:,} × {p:,}", megabytes / 1000, 1.5, "GB"


def report(n_samples, memory=True):
    lines = [
        "# Cost of tuning",
        "",
        "Made by `python bench/tuning.py --write`: default fits, best times of one run, measured alternately,",
        "with the libraries' default numbers of threads; and the same with one BLAS thread,",
        "as the peer's threads may wait for each other.",
        f"Load of the machine at the beginning, in processes for each core: {os.getloadavg()[0] / os.cpu_count():.1f}.",
        versions(),
        "",
        "| CGNClassifierCV | compared with | ours, s | theirs, s | ratio | limit | | theirs, one thread, s | ratio |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for work, beside, times, on_one, most in rows(n_samples):
        if len(times) == 1:
            lines.append(f"| {work} | {beside}, not installed | {times[0]:.2f} | | | {most} | | | |")
            continue
        ours, theirs = times
        ratio = ours / theirs
        verdict = "met" if ratio <= most else "missed"
        own = "| |" if on_one is None else f"{on_one[1]:.2f} | {on_one[0] / on_one[1]:.2f} |"
        lines.append(f"| {work} | {beside} | {ours:.2f} | {theirs:.2f} | {ratio:.2f} | {most} | {verdict} | {own}")
        print(lines[-1], file=sys.stderr, flush=True)
    lines += ["", "| | measured | limit | |", "|---|---:|---:|---|"]
    for work, figure, most, unit in alone(memory):
        verdict = "met" if figure <= most else "missed"
        lines.append(f"| {work} | {figure:.3g} {unit} | {most} {unit} | {verdict} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-tuning.md")
    options.add_argument("--rows", type=int, default=1_000_000, help="samples of the largest table; 0: without it")
    options.add_argument("--no-memory", action="store_true", help="without peak memory")
    arguments = options.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    text = report(arguments.rows, not arguments.no_memory)
    publish(text, "bench-tuning.md", write=arguments.write)
