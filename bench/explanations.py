"""Shapley values: exactness, and speed beside shap; next_measurement against Monte Carlo, and as a choice of tests.

``python bench/explanations.py`` prints the tables; ``--write`` also puts them into docs/bench-explanations.md.
``--shap`` is the Python of an environment with shap; without it that table is omitted. Heart disease and hepatitis are
read from ``--data``, the ovarian spectra from ``ms`` beside it, and omitted without it. Times are processor time of one thread.
"""

from __future__ import annotations

import json
import subprocess
import time
import warnings
from math import factorial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold

from cgnlearn import Band, Box, CGNClassifier, Jan
from cgnlearn.networks.moments import numeric_libraries
from measuring import parser, publish, versions

STRUCTURES = {
    "naive Bayes": "naive_bayes",
    "selective naive Bayes": "selective_naive_bayes",
    "TAN": "tan",
    "groups": Jan([[0, 1, 2], [3, 4], [5, 6, 7, 8], [9]]),
    "3-BAND": Band(3),
    "4-BOX": Box(4),
    "complete": "complete",
}
N_SPEED = 1000
# KernelExplainer asks for v(S) of every coalition: here it looks up values that were computed before, so that its
# time has no model in it; the time of those values, by predictions with missing values, is added.
KERNEL = """
import json, sys, time
import numpy as np, shap
given = json.load(sys.stdin)
worth, p = np.array(given["worth"]), given["p"]
bits = 1 << np.arange(p)
start = time.process_time()
explainer = shap.KernelExplainer(lambda Z: worth[(Z > 0.5).astype(int) @ bits], np.zeros((1, p)))
found = explainer.shap_values(np.ones((1, p)), nsamples=2**p, silent=True, l1_reg=False)
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "values": np.asarray(found)[0].tolist(), "version": shap.__version__}))
"""


def hidden(row):
    """The sample with every set of features, all others missing."""
    p = len(row)
    shown = (np.arange(1 << p)[:, None] >> np.arange(p) & 1).astype(bool)
    return np.where(shown, row, np.nan)


def by_definition(model, row):
    return of_worth(model.predict_log_proba(hidden(row)))


def of_worth(worth):
    """Shapley values, by definition, from the worth of all sets."""
    p = len(worth).bit_length() - 1
    values = np.zeros((p, worth.shape[1]))
    for number in range(1 << p):
        size = number.bit_count()
        for i in range(p):
            if not number >> i & 1:
                weight = factorial(size) * factorial(p - size - 1) / factorial(p)
                values[i] += weight * (worth[number | 1 << i] - worth[number])
    return values


def exactness():
    X, y = load_wine(return_X_y=True)
    X = X[:, :10]
    lines = ["| structure | efficiency | all subsets |", "|---|---|---|"]
    for name, structure in STRUCTURES.items():
        model = CGNClassifier(structure).fit(X, y)
        efficiency = np.abs(model.shapley(X).sum(axis=1) - model.predict_log_proba(X) + model.class_log_prior_).max()
        rows = [0, 90, 170]
        brute = max(
            np.abs(found - by_definition(model, X[row])).max()
            for row, found in zip(rows, model.shapley(X[rows]), strict=True)
        )
        lines.append(f"| {name} | {efficiency:.0e} | {brute:.0e} |")
    orders = [np.random.default_rng(seed).permutation(5).tolist() for seed in range(6)]
    found = [
        CGNClassifier({column: order[:i] for i, column in enumerate(order)}).fit(X[:, :5], y).shapley(X[:, :5])
        for order in orders
    ]
    spread = max(np.abs(each - found[0]).max() for each in found)
    return [*lines, "", f"Chains of five features in {len(orders)} orders differ by at most {spread:.0e}."]


def processor_seconds(work, repeats=5):
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def speed():
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    Z = X[rng.integers(0, len(X), N_SPEED)] + 0.1 * rng.normal(size=(N_SPEED, X.shape[1])) * X.std(axis=0)
    lines = ["| structure | seconds |", "|---|---|"]
    for name, structure in STRUCTURES.items():
        if name == "groups":
            structure = Jan([[0, 1, 2], [3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
        model = CGNClassifier(structure).fit(X, y)
        model.shapley(X[:2])
        lines.append(f"| {name} | {processor_seconds(lambda: model.shapley(Z)):.2f} |")  # noqa: B023
    return lines


def beside_shap(python):
    X, y = load_wine(return_X_y=True)
    X = X[:, :12]
    lines, version = (
        ["| structure | shapley, ms | KernelExplainer, ms | of these its own | ratio | greatest difference |"],
        "",
    )
    lines.append("|---|---|---|---|---|---|")
    for name in ("naive Bayes", "TAN", "complete"):
        model = CGNClassifier(STRUCTURES[name]).fit(X, y)
        many = np.tile(X[:100], (2, 1))
        model.shapley(many[:2])
        own = processor_seconds(lambda: model.shapley(many)) / len(many)  # noqa: B023
        sets = hidden(X[70])
        evaluation = processor_seconds(lambda: model.predict_log_proba(sets))  # noqa: B023
        given = json.dumps({"worth": model.predict_log_proba(sets).tolist(), "p": 12})
        done = subprocess.run([python, "-c", KERNEL], input=given, capture_output=True, text=True, check=True)
        kernel = json.loads(done.stdout)
        version = kernel["version"]
        difference = np.abs(np.array(kernel["values"]) - model.shapley(X[[70]])[0]).max()
        total = kernel["seconds"] + evaluation
        lines.append(
            f"| {name} | {1000 * own:.2f} | {1000 * total:.0f} | {1000 * kernel['seconds']:.0f} | {total / own:.0f} | {difference:.0e} |"
        )
    return [
        f"shap {version}, wine, 12 features, with v(S) of all 4,096 sets; ours for one sample of a batch of 200, KernelExplainer's for one alone:",
        "",
        *lines,
    ]


def of_spectra(data, n_groups=20, k=20):
    """Groups of neighbouring bins of the ovarian spectra under a band."""
    stored = np.load(data)
    X, y = stored["X"].astype(float), stored["y"]
    groups = np.array_split(np.arange(X.shape[1]), n_groups)
    model = CGNClassifier(Band(k), sharing=1.0, likelihood_power="cv").fit(X, y)
    model.shapley(X[:2], groups=groups[:2])
    start = time.process_time()
    values, errors = model.shapley(X, groups=groups, return_se=True)
    seconds = time.process_time() - start
    assert not errors.any()
    efficiency = np.abs(values.sum(axis=1) - model.predict_log_proba(X) + model.class_log_prior_).max()
    few = [*groups[:4], np.concatenate(groups[4:])]
    found = model.shapley(X[:1], groups=few)[0]
    shown = np.zeros((1 << len(few), X.shape[1]), bool)
    for i, columns in enumerate(few):
        shown[:, columns] = (np.arange(1 << len(few)) >> i & 1).astype(bool)[:, None]
    brute = np.abs(found - of_worth(model.predict_log_proba(np.where(shown, X[0], np.nan)))).max()
    return [
        f"Ovarian spectra, {len(X)} × {X.shape[1]:,} bins, a {k}-BAND, {n_groups} groups of neighbouring bins, all {1 << n_groups:,} sets of them: "
        f"{seconds:.0f} s, {1000 * seconds / len(X):.0f} ms for each spectrum. The greatest error of the sum over groups is {efficiency:.0e};",
        f"with {len(few)} groups, the greatest difference from predictions for all {1 << len(few)} sets is {brute:.0e}.",
    ]


# ---- the next measurement


def entropy(proba):
    return -(proba * np.log(np.maximum(proba, 1e-300))).sum(axis=1)


def monte_carlo(n_draws=50_000):
    """Expected entropy after a measurement, with nothing else measured, by quadrature and by drawing."""
    X, y = load_wine(return_X_y=True)
    errors = []
    for structure in ("naive_bayes", "tan", "complete"):
        model = CGNClassifier(structure).fit(X, y)
        drawn, _ = model.sample(n_draws, random_state=0)
        found = model.next_measurement(np.full((1, 13), np.nan))
        for column in (0, 6, 12):
            Z = np.full((n_draws, 13), np.nan)
            Z[:, column] = drawn[:, column]
            after = entropy(model.predict_proba(Z))
            error = after.std() / np.sqrt(n_draws)
            errors.append((found.risk[0] - found.fall[0, column] - after.mean()) / error)
    worst = np.abs(errors).max()
    return (
        f"Wine, three structures, three features each: quadrature and {n_draws:,} drawn samples differ by "
        f"{np.sqrt(np.mean(np.square(errors))):.1f} standard errors of the drawing in root mean square, at most {worst:.1f}."
    )


def table_of(data, name):
    frame = pd.read_csv(data / f"{name}.csv")
    schema = json.loads((data / f"{name}.schema.json").read_text())
    columns = next(iter(schema.values()))
    y = frame.pop("class").astype(str).to_numpy()
    for column in columns:
        if column["name"] in frame and column["type"] == "discrete":
            levels = frame[column["name"]].map(
                lambda cell: None if pd.isna(cell) else f"{cell:g}" if not isinstance(cell, str) else cell
            )
            frame[column["name"]] = levels.astype("category")
    if name.startswith("heart"):
        y = np.where(y == "0", "healthy", "ill")
    return frame, y


def masked(X, shown):
    return X.where(shown)


def log_loss(model, X, y):
    at = np.searchsorted(model.classes_, y)
    return -model.predict_log_proba(X)[np.arange(len(y)), at]


def tests_in_order(data, name, folds):
    """Mean log loss of test samples after each number of tests, by the rule that picks them."""
    X, y = table_of(data, name)
    p = X.shape[1]
    n_tests = -(-p // 2)
    losses = {rule: np.zeros((len(y), n_tests + 1)) for rule in ("next_measurement", "by importance", "random")}
    full = np.zeros(len(y))
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = CGNClassifier(likelihood_power="cv").fit(X.iloc[train], y[train])
            importance = model.feature_importance(X.iloc[train], y[train]).increase
        Z, labels = X.iloc[test].reset_index(drop=True), y[test]
        known = Z.notna().to_numpy()
        full[test] = log_loss(model, Z, labels)
        rng = np.random.default_rng(0)
        fixed = np.tile(-importance, (len(Z), 1))
        for rule, rank in (("by importance", fixed), ("random", rng.random(known.shape)), ("next_measurement", None)):
            shown = np.zeros(known.shape, bool)
            losses[rule][test, 0] = log_loss(model, masked(Z, shown), labels)
            for step in range(1, n_tests + 1):
                left = known & ~shown
                if rank is None:
                    fall = model.next_measurement(masked(Z, shown)).fall
                    best = np.where(left, np.nan_to_num(fall, nan=-np.inf), -np.inf).argmax(axis=1)
                else:
                    best = np.where(left, rank, np.inf).argmin(axis=1)
                rows = np.flatnonzero(left.any(axis=1))
                shown[rows, best[rows]] = True
                losses[rule][test, step] = log_loss(model, masked(Z, shown), labels)
    steps = sorted({1, 2, 3, n_tests // 2, n_tests} - {0})
    lines = [
        f"{name}: {len(y)} samples, {p} features, naive Bayes with a likelihood power, {folds}-fold. All features: {full.mean():.3f}.",
        "",
        "| tests | " + " | ".join(map(str, steps)) + " | half of the features, less all (standard error) |",
        "|---" * (len(steps) + 2) + "|",
    ]
    for rule, found in losses.items():
        gap = found[:, n_tests] - full
        cells = " | ".join(f"{found[:, step].mean():.3f}" for step in steps)
        lines.append(f"| {rule} | {cells} | {gap.mean():+.3f} ({gap.std() / np.sqrt(len(gap)):.3f}) |")
    return lines


def main():
    options = parser(__doc__, "bench-explanations.md")
    options.add_argument("--shap", help="Python of an environment with shap")
    options.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data" / "mixed")
    given = options.parse_args()
    with numeric_libraries().limit(limits=1, user_api="blas"):
        made = "Made by `python bench/explanations.py --shap PYTHON --data DIR --write`; processor time of one thread."
        text = ["# Explanations", "", made, "", versions(), ""]
        text += [
            "## Exactness",
            "",
            "Wine, 10 features: the greatest error of the sum over features, over 178 samples, and the",
            "greatest difference from predictions for all 1,024 sets of features, over three.",
            "",
        ]
        text += [
            *exactness(),
            "",
            "## Speed",
            "",
            f"Wine, 13 features, {N_SPEED:,} samples, three classes.",
            "",
            *speed(),
            "",
        ]
        if (spectra := given.data.parent / "ms" / "ovarian_216x4000.npz").exists():
            text += [*of_spectra(spectra), ""]
        if given.shap:
            text += [*beside_shap(given.shap), ""]
        text += ["## The next measurement", "", monte_carlo(), ""]
        text += [
            "Mean log loss of test samples when tests are done one after the other, as each rule picks them: `next_measurement`",
            "for each sample by what is known of it, or in one order for all.",
            "",
        ]
        for name in ("heart-cleveland", "hepatitis"):
            if (given.data / f"{name}.csv").exists():
                text += [*tests_in_order(given.data, name, 5), ""]
    publish("\n".join(text), "bench-explanations.md", write=given.write)


if __name__ == "__main__":
    main()
