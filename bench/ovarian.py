"""Ovarian cancer spectra: bands with k and temperature chosen inside the fold, beside what users would try first.

``python bench/ovarian.py [--data-dir DIR]`` prints the table; ``--write`` also puts it into docs/bench-ovarian.md.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import Band, CGNClassifier, Prior, ordered_path
from measuring import parser, publish, versions

SEEDS = (0, 1, 2)
K_MAX = 110
BAND = "k-BAND, k and temperature chosen inside the fold, sharing=1"
LOGISTIC = "LogisticRegressionCV"
PAPER = "the paper's k-BAND of each class"


def models(seed):
    return {
        BAND: CGNClassifier(Band("cv", k_max=K_MAX, cv=10), sharing=1.0, temperature="cv", random_state=seed),
        LOGISTIC: make_pipeline(StandardScaler(), LogisticRegressionCV(**LOGISTIC_SETTINGS)),
        "shrinkage LDA on PCA scores": make_pipeline(
            StandardScaler(), PCA(0.99), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        ),
        "GaussianNB": GaussianNB(),
        "random forest, 500 trees": RandomForestClassifier(500, random_state=seed, n_jobs=-1),
    }


LOGISTIC_SETTINGS = {"Cs": 10, "cv": 5, "scoring": "neg_log_loss", "max_iter": 1000, "n_jobs": -1}


def scores(log_proba, classes, y):
    true = np.searchsorted(classes, y)
    # A probability of exactly zero would cost infinitely much: 1e-15, as scikit-learn's log_loss has it.
    cll = np.maximum(log_proba[np.arange(len(y)), true], np.log(1e-15))
    return np.argmax(log_proba, axis=1) == true, cll


def evaluated(X, y):
    """Model → (accuracy, CLL, seconds), each (seeds, rows or folds); and the k and temperature chosen."""
    found = {}
    chosen = []
    for seed in SEEDS:
        for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y):
            for name, model in models(seed).items():
                start = time.perf_counter()
                model.fit(X[train], y[train])
                with np.errstate(divide="ignore"):
                    log_proba = np.log(model.predict_proba(X[test]))
                took = time.perf_counter() - start
                if name == BAND:
                    log_proba = model.predict_log_proba(X[test])
                    chosen.append((model.k_, model.temperature_))
                right, cll = scores(log_proba, model.classes_, y[test])
                found.setdefault(name, {seed: [] for seed in SEEDS})[seed].append((right, cll, took))
            start = time.perf_counter()
            joint = ordered_path(
                X[train], y[train], X[test], k_max=50, structures=["band"], prior=Prior(location="paper")
            )[0]
            took = time.perf_counter() - start
            log_proba = joint - np.logaddexp.reduce(joint, axis=2, keepdims=True)
            of_k = [scores(of_k, np.unique(y), y[test]) for of_k in log_proba]
            right, cll = (np.array(part) for part in zip(*of_k, strict=True))
            found.setdefault(PAPER, {seed: [] for seed in SEEDS})[seed].append((right, cll, took))
    return found, chosen


def table(found):
    yield "| model | accuracy | by seed | CLL | by seed | s a fold |"
    yield "|---|---:|---|---:|---|---:|"
    summary = {}
    for name, of_seeds in found.items():
        right, cll = (
            np.array([np.concatenate([fold[part] for fold in folds], axis=-1) for folds in of_seeds.values()])
            for part in (0, 1)
        )  # (seeds, [k,] rows)
        if name == PAPER:
            best = int(np.argmax(right.mean(axis=(0, 2))))
            right, cll = right[:, best], cll[:, best]
            name = f"{name}, at its best k = {best + 1} (found on the test rows)"
        took = np.mean([fold[2] for folds in of_seeds.values() for fold in folds])
        summary[name] = right.mean(), cll.mean()
        by_seed = [", ".join(f"{value:.3f}" for value in part.mean(axis=1)) for part in (right, cll)]
        yield (f"| {name} | {right.mean():.3f} | {by_seed[0]} | {cll.mean():.3f} | {by_seed[1]} | {took:.2f} |")
    accuracy, cll = summary[BAND]
    yield ""
    verdict = "met" if accuracy >= 0.98 else "missed"
    yield f"- accuracy of the band at least 0.98: {accuracy:.4f}, {verdict}"
    verdict = "met" if cll > summary[LOGISTIC][1] else "missed"
    yield f"- CLL of the band better than {LOGISTIC}'s: {cll:.4f} against {summary[LOGISTIC][1]:.4f}, {verdict}"


def report(data_dir):
    data = np.load(data_dir / "ms" / "ovarian_216x4000.npz", allow_pickle=False)
    X, y = data["X"].astype(float), data["y"]
    found, chosen = evaluated(X, y)
    k, temperature = np.array(chosen).T
    logistic = ", ".join(f"{key}={value!r}" for key, value in LOGISTIC_SETTINGS.items())
    lines = [
        "# Ovarian cancer spectra",
        "",
        "Made by `python bench/ovarian.py --write`. 216 spectra × 4,000 bins, 121 cancer and 95 normal;",
        f"stratified 10-fold cross-validation, shuffled with seeds {', '.join(map(str, SEEDS))}. CLL is the mean log",
        "probability of the true class, a probability of 0 counted as 1e-15.",
        versions(),
        "",
        *table(found),
        "",
        f"Chosen inside the folds: k from {k.min():.0f} to {k.max():.0f} (median {np.median(k):.0f}), temperature from "
        f"{temperature.min():.2f} to {temperature.max():.2f} (median {np.median(temperature):.2f}).",
        "",
        f'The band is `CGNClassifier(Band("cv", k_max={K_MAX}, cv=10), sharing=1.0, temperature="cv")`,',
        f"the logistic regression `LogisticRegressionCV({logistic})`",
        "on standardised columns.",
        "These spectra are known to differ between the classes by more than biology (Baggerly, Morris and Coombes",
        "2004): the table compares classifiers, it does not promise a diagnosis.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-ovarian.md")
    options.add_argument("--data-dir", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    arguments = options.parse_args()
    if not (arguments.data_dir / "ms").is_dir():
        options.error(f"there is no {arguments.data_dir / 'ms'}: name the folder that holds ms/ovarian_216x4000.npz")
    warnings.simplefilter("ignore", FutureWarning)  # LogisticRegressionCV announces new defaults
    publish(report(arguments.data_dir), "bench-ovarian.md", write=arguments.write)
