"""Intervals of probabilities and prediction sets: how often they contain what they should.

``python bench/uncertainty.py -o FOLDER [--data-dir DIR] [--networks N] [--only-ready]`` computes what is not yet in
FOLDER and prints the tables; ``--write`` also writes docs/bench-uncertainty.md. It needs MAPIE and interpret-core.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, spearmanr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import CGNClassifier, CGNClassifierCV, Prior, Structure, plan
from collection import CC18, rows
from measuring import parser, publish, versions

LEVEL = 0.9
LEAST = 0.01  # difference of probabilities that counts: those of many samples are within 1e-6 of 0 and 1
STRUCTURES = ("naive Bayes", "TAN", "complete")
PER_CLASS = (8, 20, 60)
N_FEATURES, N_NEW = 5, 40
TOO_LONG = {"mfeat-fourier", "mfeat-karhunen", "mfeat-zernike", "MiceProtein", "steel-plates-fault"}
SETS = [name for name in CC18.split() if name not in TOO_LONG]
MOST_SAMPLES = 600  # of a table
SIZES, SET_SIZES = (50, 100), (30, 50, 100)
WAYS = ("ours, for each class", "ours, all classes together", "MAPIE, split", "MAPIE, cross")
PLANNED = (2, 100, 101, 102, 103)  # seeds of the samples from which is planned
N_TRUTHS = 8  # training sets whose mean log loss is the truth of a plan
N_BOOTSTRAPS, MOST_TEST, MOST_IN_SETS = 200, 300, 60
N_TIMED = 5  # calls of which the fastest counts


def parents_of(structure):
    """The parents of each feature."""
    if structure == "naive Bayes":
        return dict.fromkeys(range(N_FEATURES), ())
    if structure == "TAN":
        return {i: () if i == 0 else ((i - 1) // 2,) for i in range(N_FEATURES)}
    return {i: tuple(range(i)) for i in range(N_FEATURES)}


def drawn_network(parents, n_classes, rng):
    """Variance, intercept and slopes of every feature in every class, from the prior."""
    network = []
    for _ in range(n_classes):
        variances = [1 / rng.gamma(1.1 + len(above) / 2, 2.0) for above in parents.values()]
        network.append(
            [
                (variance, rng.normal() * np.sqrt(variance), rng.normal(size=len(above)) * np.sqrt(variance))
                for variance, above in zip(variances, parents.values(), strict=True)
            ]
        )
    return network


def drawn_samples(parents, network, labels, rng):
    X = np.zeros((len(labels), len(parents)))
    for i, label in enumerate(labels):
        for v, (variance, intercept, slopes) in enumerate(network[label]):
            X[i, v] = intercept + X[i, list(parents[v])] @ slopes + np.sqrt(variance) * rng.normal()
    return X


def true_proba(parents, network, X):
    scores = np.zeros((len(X), len(network)))
    for label, nodes in enumerate(network):
        for v, (variance, intercept, slopes) in enumerate(nodes):
            residual = X[:, v] - intercept - X[:, list(parents[v])] @ slopes
            scores[:, label] -= (np.log(variance) + residual**2 / variance) / 2
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def simulated(structure, n, n_classes, n_networks):
    """Share of intervals that contain the true probability, below and above, of classes that are not the likeliest."""
    rng, parents = np.random.default_rng(n), parents_of(structure)
    inside, too_high, too_low = [], [], []
    prior = Prior(location=[0.0] * N_FEATURES, scale=[1.0] * N_FEATURES)
    for _ in range(n_networks):
        network = drawn_network(parents, n_classes, rng)
        labels = np.repeat(np.arange(n_classes), n)
        X = drawn_samples(parents, network, labels, rng)
        model = CGNClassifier(Structure.from_parents(parents), prior=prior, class_prior="uniform").fit(X, labels)
        new = drawn_samples(parents, network, np.arange(N_NEW) % n_classes, rng)
        truth = true_proba(parents, network, new)
        low, high = np.moveaxis(model.predict_interval(new, LEVEL), -1, 0)
        other = truth < truth.max(axis=1, keepdims=True)  # of the likeliest, 1 - p rounds to 0
        inside += ((low <= truth) & (truth <= high))[other].tolist()
        too_high += (truth < low)[other].tolist()
        too_low += (truth > high)[other].tolist()
    return [float(np.mean(part)) for part in (inside, too_high, too_low)]


def divided(data, n, seed=0):
    """Training and test samples, at least two of each class."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    first = np.concatenate([order[data.y[order] == label][:2] for label in np.unique(data.y)])
    rest = order[~np.isin(order, first)]
    return np.concatenate([first, rest])[:n], np.concatenate([first, rest])[n : n + MOST_TEST]


def some_rows(name, data_dir):
    """At most so many samples of a table, all of which the reference learns."""
    data = rows(f"cc18/{name}", data_dir)
    order = np.random.default_rng(5).permutation(len(data.y))[:MOST_SAMPLES]
    return data._replace(X=data.X[order], y=np.unique(data.y[order], return_inverse=True)[1])


def on_set(name, data_dir):
    """Intervals of models of few samples against held-out predictions of the mixture of all; prediction sets."""
    data, found = some_rows(name, data_dir), {}
    categorical = data.categorical or None
    reference = np.exp(CGNClassifierCV(categorical_features=categorical).fit(data.X, data.y).oof_log_proba_)
    for n in SIZES:
        train, test = divided(data, n)
        model = CGNClassifierCV(categorical_features=categorical).fit(data.X[train], data.y[train])
        model.predict_interval(data.X[test[:2]])
        ways = {
            "ours": lambda: (model.predict_proba(data.X[test]), model.predict_interval(data.X[test], LEVEL)),  # noqa: B023
            "bootstrap": lambda: bootstrapped(data, train, test, categorical),  # noqa: B023
            "EBM": lambda: bagged(data, train, test, categorical),  # noqa: B023
        }
        for way, predict in ways.items():
            start = time.process_time()
            predicted = predict()
            took = time.process_time() - start
            found[f"{way} {n}"] = [*_against(reference[test], *predicted), took]
    for n in SET_SIZES:
        train, test = divided(data, n, 1)
        test = test[:MOST_IN_SETS]
        model = CGNClassifier(sharing=1.0, categorical_features=categorical)
        for way, sets in zip(WAYS, prediction_sets(model, data, train, test), strict=True):
            found[f"{way} {n}"] = sets if sets is None else _of_sets(sets, data, train, test)
    return found


def cost(name, data_dir):
    """Seconds of the prediction of up to 300 samples and of its intervals, by a mixture of 100, and missing values."""
    data = some_rows(name, data_dir)
    train, test = divided(data, SIZES[-1])
    model = CGNClassifierCV(categorical_features=data.categorical or None).fit(data.X[train], data.y[train])
    model.predict_interval(data.X[test])
    seconds = [_fastest(method, data.X[test]) for method in (model.predict_proba, model.predict_interval)]
    return [*seconds, bool(np.isnan(data.X).any())]


def _fastest(method, X):
    found = []
    for _ in range(N_TIMED):
        start = time.perf_counter()
        method(X)
        found.append(time.perf_counter() - start)
    return min(found)


def prediction_sets(kind, data, train, test):
    """Those of `WAYS`; None where MAPIE refuses, as with a class that its parts lack."""
    from mapie.classification import CrossConformalClassifier, SplitConformalClassifier

    X, y, new = data.X[train], data.y[train], data.X[test]
    own = clone(kind).fit(X, y)
    yield own.predict_set(new, LEVEL)
    yield own.predict_set(new, LEVEL, per_class=False)
    kept = {"estimator": clone(kind), "confidence_level": LEVEL, "conformity_score": "lac"}
    half = np.random.default_rng(0).permutation(len(y))
    first, second = half[: len(y) // 2], half[len(y) // 2 :]
    try:
        split = (
            SplitConformalClassifier(**kept, prefit=False).fit(X[first], y[first]).conformalize(X[second], y[second])
        )
        yield split.predict_set(new)[1][..., 0]
    except ValueError:
        yield None
    try:
        yield CrossConformalClassifier(**kept, cv=5, random_state=0).fit_conformalize(X, y).predict_set(new)[1][..., 0]
    except ValueError:
        yield None


def _of_sets(sets, data, train, test):
    """How many sets have the true class, of how many; their mean size; the same in classes with 15 training samples."""
    true = data.y[test]
    covered = sets[np.arange(len(test)), true]
    enough = [label for label in np.unique(true) if (data.y[train] == label).sum() >= 15]
    by_class = [[int(covered[true == label].sum()), int((true == label).sum())] for label in enough]
    return [int(covered.sum()), len(test), float(sets.sum(axis=1).mean()), by_class]


def standard_error(measured):
    """Of a mean held-out log loss, from its 80% band."""
    return (measured.log_loss_high - measured.log_loss_low) / 2 / 1.282


def planned(name, data_dir):
    """Expected log loss, its band, the measured one with 50, 100 and 200 samples, and the error of 50 samples' own.

    Of plans from 50 samples: (plans, sizes, 5).
    """
    data = some_rows(name, data_dir)
    kind = CGNClassifier(sharing=1.0, likelihood_power="cv", categorical_features=data.categorical or None)
    given = [divided(data, 50, seed)[0] for seed in PLANNED]
    given = [train for train in given if np.bincount(data.y[train])[np.unique(data.y)].min() >= 4]
    plans, truths = [plan(kind, data.X[train], data.y[train], n_repeats=3) for train in given], []
    for n in (50, 100, 200) if plans else ():
        losses = []
        for seed in range(N_TRUTHS):
            own, test = divided(data, n, 10 + seed)
            proba = clone(kind).fit(data.X[own], data.y[own]).predict_proba(data.X[test])
            losses.append(-np.log(np.maximum(proba[np.arange(len(test)), data.y[test]], 1e-6)).mean())
        truths.append(float(np.mean(losses)))
    return [
        [
            [each.log_loss, each.log_loss_low, each.log_loss_high, truth, standard_error(found.measured[-1])]
            for each, truth in zip(found.expected, truths, strict=False)
        ]
        for found in plans
    ]


def _against(truth, proba, interval):
    """Coverage, mean width, and rank correlation of the width with the error."""
    inside = (interval[..., 0] - LEAST <= truth) & (truth <= interval[..., 1] + LEAST)
    width, error = np.ptp(interval, axis=2).max(axis=1), np.abs(proba - truth).max(axis=1)
    return [float(inside.mean()), float(np.ptp(interval, axis=2).mean()), float(spearmanr(width, error)[0])]


def encoded(data, train, categorical):
    """Means for missing numbers, and a column for each level."""
    X = np.where(np.isnan(data.X), np.nanmean(data.X[train], axis=0), data.X)
    if categorical:
        levels = [X[:, [i]] == np.unique(X[:, i]) for i in categorical]
        X = np.column_stack([np.delete(X, categorical, axis=1), *levels]).astype(float)
    return X


def bootstrapped(data, train, test, categorical):
    """Probabilities of a logistic regression, and intervals from bootstraps of its training samples."""
    X = encoded(data, train, categorical)
    rng, draws = np.random.default_rng(0), []
    n_classes = data.y.max() + 1

    def proba(which):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(X[which], data.y[which])
        found = np.zeros((len(test), n_classes))
        found[:, model.classes_] = model.predict_proba(X[test])
        return found

    while len(draws) < N_BOOTSTRAPS:
        which = rng.choice(train, len(train))
        if len(np.unique(data.y[which])) > 1:
            draws.append(proba(which))
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return proba(train), np.stack([low, high], axis=-1)


def bagged(data, train, test, categorical):
    """Probabilities of explainable boosting, and intervals from its outer bags: normal in the log odds."""
    from interpret.glassbox import ExplainableBoostingClassifier

    types = ["nominal" if i in (categorical or []) else "continuous" for i in range(data.X.shape[1])]
    model = ExplainableBoostingClassifier(feature_types=types, interactions=0, n_jobs=1, random_state=0)
    model.fit(data.X[train], data.y[train])
    proba, bags = model.predict_proba(data.X[test]), []
    for bag in range(len(model.bagged_intercept_)):
        model.term_scores_ = [scores[bag] for scores in model.bagged_scores_]
        model.intercept_ = np.atleast_1d(model.bagged_intercept_[bag])
        bags.append(logit(np.clip(model.predict_proba(data.X[test]), 1e-12, 1 - 1e-12)))
    spread = norm.ppf((1 + LEVEL) / 2) * np.std(bags, axis=0, ddof=1)
    centre = logit(np.clip(proba, 1e-12, 1 - 1e-12))
    return proba, np.stack([expit(centre - spread), expit(centre + spread)], axis=-1)


def kept(path, compute):
    """The result of a file, which is computed if there is none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(compute()))
    return json.loads(path.read_text())


def page(folder, data_dir, n_networks, only_ready):
    lines = [
        "# Intervals of probabilities and prediction sets",
        "",
        "Made by `python bench/uncertainty.py -o FOLDER --data-dir DIR --only-ready --write`: tables that were not yet "
        f"computed are not in it. {versions()}",
        "",
        "## Networks drawn from the prior",
        "",
        f"Share of nominal {LEVEL:.0%} intervals that contain the true p(c | x, θ), in percent, and of those that are "
        f"too high and too low: {n_networks} networks of {N_FEATURES} features a cell, {N_NEW} new samples each, "
        "classes that are not the likeliest.",
        "",
        "| structure | classes | " + " | ".join(f"{n} a class" for n in PER_CLASS) + " |",
        "|---|---:|" + "---:|" * len(PER_CLASS),
    ]
    for structure in STRUCTURES:
        for n_classes in (2, 3):
            cells = []
            for n in PER_CLASS:
                path = folder / f"simulated-{structure}-{n_classes}-{n}-{n_networks}.json"
                inside, high, low = kept(path, lambda: simulated(structure, n, n_classes, n_networks))  # noqa: B023
                cells.append(f"{100 * inside:.1f} ({100 * high:.1f}, {100 * low:.1f})")
            lines.append(f"| {structure} | {n_classes} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    found = {}
    for name in [name for name in SETS if data_dir and (not only_ready or (folder / f"set-{name}.json").exists())]:
        found[name] = kept(folder / f"set-{name}.json", lambda: on_set(name, data_dir))  # noqa: B023
        print(name, found[name], flush=True)
    costs, plans = {}, []
    for name in found:
        costs[name] = kept(folder / f"cost-{name}.json", lambda: cost(name, data_dir))  # noqa: B023
    for name in [name for name in SETS if data_dir and (not only_ready or (folder / f"plan-{name}.json").exists())]:
        plans.append(kept(folder / f"plan-{name}.json", lambda: planned(name, data_dir)))  # noqa: B023
    return "\n".join([*lines, *(of_sets(found) + of_costs(costs) + of_plans(plans) if found else [])]) + "\n"


def of_plans(plans):
    usable = [np.array(each) for each in plans if each]  # of each table: (plans, sizes, 5)
    errors = [each[:, :, 0] - each[:, :, 3] for each in usable]
    inside = [(each[:, :, 1] <= each[:, :, 3]) & (each[:, :, 3] <= each[:, :, 2]) for each in usable]
    alone = np.mean([each[:, 0, 4].mean() for each in usable])
    lines = [
        "",
        "## Plans",
        "",
        f"`plan` from 50 samples on {len(usable)} of the tables, {sum(map(len, usable))} plans of up to {len(PLANNED)} "
        "splits each (the others have fewer than four samples of a class in all of them): "
        f"the expected log loss of a naive Bayes with sharing 1, against the mean of {N_TRUTHS} models of so many "
        "samples. Means over the tables; the mean error has the standard error over the tables. The held-out log loss "
        f"of 50 samples has itself a standard error of {alone:.3f} on average, with which the mean absolute error of "
        f"anything that is measured on them is {np.sqrt(2 / np.pi) * alone:.3f}.",
        "",
        "| samples | mean absolute error | mean error | in the 80% band |",
        "|---:|---:|---:|---:|",
    ]
    for i, n in enumerate((50, 100, 200)):
        of_tables = [each[:, i].mean() for each in errors]
        absolute, share = (np.mean([each[:, i].mean() for each in part]) for part in (map(np.abs, errors), inside))
        error = f"{np.mean(of_tables):+.3f} ± {np.std(of_tables, ddof=1) / np.sqrt(len(usable)):.3f}"
        lines.append(f"| {n} | {absolute:.3f} | {error} | {100 * share:.0f}% |")
    return lines


def of_costs(costs):
    lines = [
        "",
        "## Time",
        "",
        f"Intervals of up to {MOST_TEST} samples by a mixture of {SIZES[-1]}, in times of their prediction, the "
        f"fastest of {N_TIMED} calls each: median, and range over the tables.",
        "",
        "| tables | intervals / prediction | milliseconds of a prediction |",
        "|---|---:|---:|",
    ]
    for words, missing in (("without missing values", False), ("with missing values", True)):
        some = np.array([[each[1] / each[0], 1000 * each[0]] for each in costs.values() if each[2] == missing])
        if len(some):
            ratio, of_prediction = (f"{np.median(part):.1f} ({part.min():.1f} to {part.max():.1f})" for part in some.T)
            lines.append(f"| {len(some)} {words} | {ratio} | {of_prediction} |")
    return lines


def of_sets(found):
    lines = [
        "",
        "## Real tables",
        "",
        f"Means over {len(found)} tables of OpenML-CC18 ({', '.join(found)}), at most {MOST_SAMPLES:,} samples "
        "of each, "
        "one split each. Models of 50 and 100 samples against the held-out predictions of `CGNClassifierCV` of all "
        f"samples: `CGNClassifierCV`, {N_BOOTSTRAPS} bootstraps of a ridge logistic regression, explainable boosting "
        "without pairs of features, with the spread of its outer bags. "
        f"Coverage of {LEVEL:.0%} intervals (a difference of {LEAST:g} does not "
        "count), mean width, rank correlation of the greatest width with the greatest error of a sample, and median "
        "seconds of the processor: ours for predictions of up to 300 samples, the others' with their fits. Results are "
        "kept by table and may be of different times, with other processes beside them; the first table of a "
        "process also loads compiled code.",
        "",
        "| samples | intervals | coverage | width | correlation | seconds |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for n in SIZES:
        for way in ("ours", "bootstrap", "EBM"):
            of_tables = np.array([each[f"{way} {n}"] for each in found.values()])
            (a, b, c, _), took = np.nanmean(of_tables, axis=0), of_tables[:, 3]
            seconds = f"{np.median(took):.2f} (up to {took.max():.1f})"
            lines.append(f"| {n} | {way} | {100 * a:.1f} | {b:.3f} | {c:.2f} | {seconds} |")
    for n in SIZES:
        ours, others = (np.array([each[f"{way} {n}"][2] for each in found.values()]) for way in ("ours", "bootstrap"))
        higher, lower = (
            ", ".join(f"{name} ({a:.2f}, {b:.2f})" for name, a, b in zip(found, ours, others, strict=True) if own(a, b))
            for own in (lambda a, b: a >= b + 0.1, lambda a, b: a <= b - 0.1)
        )
        lines += [
            "",
            f"With {n} samples the correlation is at least that of the bootstraps on {(ours >= others).sum()} of "
            f"{len(found)} tables. Higher by 0.1 or more (ours, bootstrap): {higher or 'none'}. "
            f"Lower by as much: {lower or 'none'}.",
        ]
    lines += [
        "",
        f"Prediction sets of a naive Bayes with sharing 1 at {LEVEL:.0%}, on up to {MOST_IN_SETS} new samples of each "
        "table: full conformal, and those that MAPIE makes of the same model (its `lac` score) on the tables that it "
        "takes. Of a class with 15 training samples, sets for each class can only promise 15/16, not 90%.",
        "",
        "| samples | sets | tables | coverage | in classes with 15 samples | mean size | "
        "mean size of ours, all classes together, there |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    for n in SET_SIZES:
        for way in WAYS:
            cells = {name: each[f"{way} {n}"] for name, each in found.items() if each[f"{way} {n}"] is not None}
            inside, total = np.sum([cell[:2] for cell in cells.values()], axis=0)
            pairs = np.array([pair for cell in cells.values() for pair in cell[3]]).reshape(-1, 2)
            by_class = f"{100 * pairs[:, 0].sum() / pairs[:, 1].sum():.1f}" if len(pairs) else "—"
            size = np.mean([cell[2] for cell in cells.values()])
            beside = np.mean([found[name][f"{WAYS[1]} {n}"][2] for name in cells])
            share = f"{100 * inside / total:.1f}"
            lines.append(f"| {n} | {way} | {len(cells)} | {share} | {by_class} | {size:.2f} | {beside:.2f} |")
    return lines


def main():
    options = parser(__doc__, "bench-uncertainty.md")
    options.add_argument("-o", "--output", type=Path, required=True, help="folder of results")
    options.add_argument("--data-dir", help="folder with cc18/")
    options.add_argument("--networks", type=int, default=100)
    options.add_argument("--only-ready", action="store_true", help="take the tables of FOLDER and compute no more")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    text = page(chosen.output, chosen.data_dir, chosen.networks, chosen.only_ready)
    publish(text, "bench-uncertainty.md", write=chosen.write)


if __name__ == "__main__":
    main()
