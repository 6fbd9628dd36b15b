"""Coverage of the intervals of an evaluation: how often they contain the truth, by simulated cross-validations.

``python bench/intervals.py`` prints the table; ``--write`` also writes docs/bench-intervals.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import rankdata

from cgnlearn.data.splits import Split
from cgnlearn.evaluation.decisions import auc, grouping, one_class, predictions_by_model
from cgnlearn.evaluation.run import Unit
from cgnlearn.evaluation.study import BASELINE, FoldResult, Study
from cgnlearn.evaluation.verdict import improvement, value
from measuring import parser, publish, versions

MODEL, OTHER = "model", "other"
QUANTITIES = (
    "accuracy",
    "log loss",
    "accuracy − class frequencies",
    "log loss − class frequencies",
    "log loss − other model",
    "AUC",
)
N_FEATURES, N_INFORMATIVE, N_FOLDS = 5, 2, 10
N_FRESH = 500  # samples, of new groups, on which the true values are computed
WANTED = 0.92, 0.98
EFFECTS = 0.6, 1.6, 3.2  # difference of the classes in standard deviations: accuracies of about .6 to .99


class Scenario(NamedTuple):
    """One kind of data."""

    n_samples: int
    n_groups: int | None
    icc: float  # share of the variance of a feature that lies between groups
    effect: float


UNGROUPED = [Scenario(n, None, 0.0, effect) for n in (30, 100, 1000) for effect in EFFECTS]
GROUPED = [
    Scenario(n, n_groups, icc, effect)
    for n, n_groups in ((120, 3), (150, 5), (150, 10), (320, 40))
    for icc in (0.0, 0.2, 0.5)
    for effect in EFFECTS
]


def drawn(rng, scenario, n_samples, n_groups):
    """Features, classes and groups of unequal sizes, each with both classes."""
    if scenario.n_groups is None:
        groups = np.arange(n_samples)
    else:
        shares = rng.gamma(2.0, size=n_groups) + 0.3
        sizes = np.maximum(4, np.round(shares / shares.sum() * n_samples)).astype(int)
        groups = np.repeat(np.arange(n_groups), sizes)
    n = len(groups)
    y = (rng.random(n) < 0.4).astype(int)
    first = np.unique(groups, return_index=True)[1] if scenario.n_groups else np.arange(0, 8, 2)
    y[first], y[first + 1] = 0, 1
    effects = np.where(np.arange(N_FEATURES) < N_INFORMATIVE, scenario.effect, 0.0)
    X = rng.normal(size=(n, N_FEATURES)) * np.sqrt(1 - scenario.icc) + effects * y[:, None]
    if scenario.n_groups:
        X += np.sqrt(scenario.icc) * rng.normal(size=(n_groups, N_FEATURES))[groups]
    return X, y, groups


def folds_of(rng, y, groups, is_grouped):
    """The fold of each sample: stratified, or whole groups."""
    if is_grouped:
        n_groups = groups[-1] + 1
        return rng.permutation(np.arange(n_groups) % min(N_FOLDS, n_groups))[groups]
    folds = np.empty(len(y), int)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        folds[rows] = (np.arange(len(rows)) + rng.integers(N_FOLDS)) % N_FOLDS
    return folds


def fitted(X, y):
    """A Gaussian naive Bayes with variances shrunk to the common one: prior, means, variances."""
    n = np.bincount(y, minlength=2).astype(float)
    means = np.array([X[y == label].mean(axis=0) for label in (0, 1)])
    squares = np.array([((X[y == label] - means[label]) ** 2).sum(axis=0) for label in (0, 1)])
    variances = (squares + 2 * squares.sum(axis=0) / (len(y) - 2)) / (n[:, None] + 1)
    return np.log((n + 1) / (n.sum() + 2)), means, variances


def log_proba(model, X):
    prior, means, variances = model
    joint = prior - 0.5 * ((X[:, None] - means) ** 2 / variances + np.log(variances)).sum(axis=2)
    return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def truth(predicted, y):
    """The quantities of the fresh samples; those of the model, the class frequencies and the other model."""
    accuracy, loss = (
        {name: measure(found) for name, found in predicted.items()}
        for measure in (
            lambda found: (found.argmax(axis=1) == y).mean(),
            lambda found: -found[np.arange(len(y)), y].mean(),
        )
    )
    ranks = rankdata(predicted[MODEL][:, 1])
    n_of = y.sum()
    area = (ranks[y == 1].sum() - n_of * (n_of + 1) / 2) / (n_of * (len(y) - n_of))
    gains = [loss[other] - loss[MODEL] for other in (BASELINE, OTHER)]
    return np.array([accuracy[MODEL], loss[MODEL], accuracy[MODEL] - accuracy[BASELINE], *gains, area])


def repetition(scenario, seed):
    """The estimates of one simulated study, and the true values of the models fitted in it."""
    rng = np.random.default_rng(seed)
    X, y, groups = drawn(rng, scenario, scenario.n_samples, scenario.n_groups)
    fresh, y_fresh, _ = drawn(rng, scenario, N_FRESH, 50)
    folds = folds_of(rng, y, groups, scenario.n_groups is not None)
    results, splits, true = [], [], np.zeros(len(QUANTITIES))
    for fold in np.unique(folds).tolist():
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        frequencies = np.log(np.bincount(y[train]) / len(train))
        own, other = fitted(X[train], y[train]), fitted(X[train][:, 1:], y[train])
        found = {
            name: {
                MODEL: log_proba(own, part),
                OTHER: log_proba(other, part[:, 1:]),
                BASELINE: np.tile(frequencies, (len(part), 1)),
            }
            for name, part in (("test", X[test]), ("fresh", fresh))
        }
        results += [FoldResult(Unit(name, 0, fold), test, of) for name, of in found["test"].items()]
        splits.append(Split(0, fold, train, test))
        true += truth(found["fresh"], y_fresh) * len(test) / len(y)
    models = dict.fromkeys((MODEL, OTHER, BASELINE))
    study = Study("simulated", pd.DataFrame({"x": X[:, 0]}), y.astype(str), models, splits)
    study = replace(study, results=results, groups=None if scenario.n_groups is None else groups)
    area = auc(one_class(predictions_by_model(study)[MODEL], 1), grouping(study, MODEL))
    estimates = [
        *(value(study, MODEL, metric) for metric in ("accuracy", "log_loss")),
        *(improvement(study, MODEL, BASELINE, metric) for metric in ("accuracy", "log_loss")),
        improvement(study, MODEL, OTHER, "log_loss"),
        area,
    ]
    return np.array(estimates, dtype=float), true


def coverage(scenario, n_repetitions, n_jobs=1):
    """The true values, and the share of intervals that contain them."""
    found = Parallel(n_jobs)(delayed(repetition)(scenario, seed) for seed in range(n_repetitions))
    estimates, true = (np.array(part) for part in zip(*found, strict=True))
    true = true.mean(axis=0)
    return true, ((estimates[:, :, 1] <= true) & (true <= estimates[:, :, 2])).mean(axis=0)


def listed(values):
    """Distinct values as text."""
    return ", ".join(map(str, sorted(set(values)))) or "no"


def table(n_repetitions, n_jobs):
    """The page."""
    rows, cells, below = [], [], []
    for scenario in (*UNGROUPED, *GROUPED):
        true, found = coverage(scenario, n_repetitions // (1 if scenario.n_groups is None else 2), n_jobs)
        cells += found.tolist()
        below += [scenario] * int((found < WANTED[0]).sum())
        of_groups = ("—", "—") if scenario.n_groups is None else (scenario.n_groups, f"{scenario.icc:g}")
        texts = [f"{100 * share:.1f}" for share in found]
        rows.append(f"| {scenario.n_samples} | {of_groups[0]} | {of_groups[1]} | {true[0]:.2f} | {' | '.join(texts)} |")
        print(rows[-1], flush=True)
    low, high = (100 * np.mean(side) for side in (np.array(cells) < WANTED[0], np.array(cells) > WANTED[1]))
    lines = [
        "# Coverage of confidence intervals",
        "",
        "In how many of 100 simulated cross-validations the 95% interval contains the truth: the mean over training "
        "sets of the same size, on fresh samples of new groups.",
        f"{n_repetitions} cross-validations a row, with groups {n_repetitions // 2}, of a Gaussian naive Bayes with "
        f"{N_FEATURES} features. Groups have unequal sizes and both classes; ICC is the share of the variance of each "
        "feature that lies between groups. The other model lacks one of the "
        f"{N_INFORMATIVE} informative features.",
        "",
        f"Made by `python bench/intervals.py --write`. {versions()}",
        "",
        f"Of {len(cells)} cells {100 - low - high:.0f}% lie between {100 * WANTED[0]:.0f} and {100 * WANTED[1]:.0f}, "
        f"{low:.0f}% below and {high:.0f}% above; the lowest has {100 * min(cells):.1f}, the highest "
        f"{100 * max(cells):.1f}. Of those below, {sum(of.n_groups is None for of in below)} are without groups and "
        f"{sum(of.n_groups is not None for of in below)} with {listed(of.n_groups for of in below if of.n_groups)} "
        f"groups at an ICC of {listed(of.icc for of in below if of.n_groups)}.",
        "",
        "Known to be off:",
        "",
        "- With three to ten groups intervals are too wide where groups do not differ: so few cannot tell how much "
        "they do. Without their greater least width 5 instead of 2 of 90 cells with 3 and 5 groups would lie below, "
        "the lowest with 86.0 instead of 88.4 (250 other seeds).",
        "- All are widened, as folds share training samples. By how much, and the shape of the intervals, were chosen "
        "on simulations of the same kind, for the AUC (DeLong's interval on the logit scale) on the same seeds: other "
        "data may have other coverage.",
        "- On 500 other seeds 2 of 180 cells with groups lie below, the AUC apart: those of the log loss with 5 groups "
        "at an ICC of 0.5, the lowest with 88.8. On 400 other seeds (200 with 1,000 samples) the AUC without groups "
        "has 91.0 to 99.0.",
        "",
        f"| samples | groups | ICC | true accuracy | {' | '.join(QUANTITIES)} |",
        f"|---:|---:|---:|---:|{'---:|' * len(QUANTITIES)}",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def main():
    options = parser(__doc__, "bench-intervals.md")
    options.add_argument("--repetitions", type=int, default=400)
    options.add_argument("--jobs", type=int, default=2)
    chosen = options.parse_args()
    publish(table(chosen.repetitions, chosen.jobs), "bench-intervals.md", write=chosen.write)


if __name__ == "__main__":
    main()
