"""Tables, picture and the page docs/quality.md from the results of bench/quality.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cgnlearn.evaluation.metrics import METRICS
from cgnlearn.evaluation.run import read_rows
from cgnlearn.evaluation.significance import ALPHA, holm, mean_ranks, signed_rank
from cgnlearn.plots import RanksDisplay
from cgnlearn.plots.style import new_axes
from collection import FEWEST_TEST, MOST_TEST, MOST_TRAINING, NARROW, SETS, SIZES, WIDE
from contenders import BASELINE, MOST_COLUMNS, NAMES, OURS, OURS_ORDERED, PEERS
from measuring import DOCS, versions
from rivals import RIVALS

PICTURE = "images/quality-ranks.png"
FAR_BEHIND = 0.08  # nats
MEASURES = {name: metric.label for name, metric in METRICS.items()} | {"auc": "AUC"}
OTHERS = {name: label for name, label in MEASURES.items() if name != "log_loss"}
HEADINGS = {"50": "50 training samples", "100": "100 training samples", "half": "Half of the samples"}
US, NOTHING = next(iter(OURS)), next(iter(BASELINE))
NAMES = NAMES | RIVALS
REASONS = {  # likely ones, by the kind of peer that is ahead
    ("forest", "hgb", "catboost"): "thresholds, or interactions of more than two columns",
    ("lrcv", "lrcv-power"): "a linear boundary is right, and the choice among many candidates has a cost",
    ("lda", "qda", "gnb"): "a Gaussian model is right, and the choice among many candidates has a cost",
    ("svc",): "a boundary that no candidate can represent",
    tuple(RIVALS): "below is what is known",
}


class NotYet(ValueError):
    """Results that a table needs are missing."""


@dataclass(frozen=True, eq=False)
class Figures:
    """Results of models on data sets at one size, averaged over the seeds that all of them have."""

    size: str
    models: list[str]
    sets: list[str]
    n_seeds: int
    values: dict[str, np.ndarray]  # by measure: (sets, models)
    seconds: np.ndarray  # (sets, models)
    n_test: np.ndarray  # (sets,): samples predicted
    failed: np.ndarray  # (sets, models): the class frequencies replace such a model
    notes: dict[tuple[str, str], str]  # by model and set

    def of(self, model: str, measure: str = "log_loss") -> np.ndarray:
        return self.values[measure][:, self.models.index(model)]

    @property
    def peers(self) -> list[str]:
        return [model for model in self.models if model in PEERS or model in RIVALS]

    @property
    def best_peer(self) -> np.ndarray:
        """Position of the best peer of each data set, among those that did not fail."""
        positions = np.array([self.models.index(model) for model in self.peers])
        losses_of_fitted = np.where(self.failed, np.inf, self.values["log_loss"])
        return positions[losses_of_fitted[:, positions].argmin(axis=1)]

    @property
    def in_hindsight(self) -> np.ndarray:
        return self.values["log_loss"][np.arange(len(self.sets)), self.best_peer]


def figures(results, size, models, n_seeds) -> Figures | None:
    """Data sets with results of every model, over the seeds that all of them have; None if there are none."""
    found = {
        model: {
            (row["set"], int(row["seed"])): row
            for seed in range(n_seeds)
            if (path := results / model / f"seed-{seed}" / "rows.csv").exists()
            for row in read_rows(path)
            if row["size"] == str(SIZES.index(size))
        }
        for model in {*models, NOTHING}
    }
    models = [model for model in models if found[model]]
    common = set.intersection(*(set(found[model]) for model in (*models, NOTHING)))
    common = {key for key in common if found[NOTHING][key]["note"] == ""}
    if not common:
        return None
    by_set = {name: sorted(seed for other, seed in common if other == name) for name in SETS}
    most = max(len(seeds) for seeds in by_set.values())
    sets = [name for name, seeds in by_set.items() if len(seeds) == most]
    values = {measure: np.empty((len(sets), len(models))) for measure in MEASURES}
    seconds, failed = np.full((len(sets), len(models)), np.nan), np.zeros((len(sets), len(models)), bool)
    notes = {}
    for j, model in enumerate(models):
        for i, name in enumerate(sets):
            rows = [found[model][name, seed] for seed in by_set[name]]
            remarks = [row["note"] for row in rows if row["note"]]
            if remarks:
                notes[model, name], failed[i, j] = remarks[0], True
            stand_in = [
                found[NOTHING][name, seed] if row["note"] else row for row, seed in zip(rows, by_set[name], strict=True)
            ]
            for measure in MEASURES:
                values[measure][i, j] = np.mean([float(row[measure]) for row in stand_in])
            seconds[i, j] = np.mean([float(row["seconds"]) for row in rows])
    n_test = np.array([int(found[NOTHING][name, by_set[name][0]]["n_test"]) for name in sets])
    return Figures(size, models, sets, most, values, seconds, n_test, failed, notes)


def ranked(here: Figures) -> dict[str, float]:
    """Mean rank of ours and of the peers by log loss."""
    models = [model for model in here.models if model in OURS or model in here.peers]
    return dict(zip(models, mean_ranks(-np.column_stack([here.of(model) for model in models])), strict=True))


def summary(here: Figures) -> Iterator[str]:
    headings = ["mean rank", "mean log loss", "median log loss", *OTHERS.values(), "median fit, s", "failed"]
    yield f"| model | {' | '.join(headings)} |"
    yield "|---|" + "---:|" * len(headings)
    ranks = ranked(here)
    order = sorted(ranks, key=ranks.__getitem__)
    order += [model for model in here.models if model in BASELINE]
    for model in order:
        j = here.models.index(model)
        name = f"**{NAMES[model]}**" if model == US else NAMES[model]
        rank = f"{ranks[model]:.2f}" if model in ranks else "–"
        loss = here.of(model)
        others = " | ".join(f"{np.nanmean(here.of(model, measure)):.3f}" for measure in OTHERS)
        n_failed = int(here.failed[:, j].sum()) or ""
        yield (
            f"| {name} | {rank} | {loss.mean():.3f} | {np.median(loss):.3f} | {others} "
            f"| {np.nanmedian(here.seconds[:, j]):.2f} | {n_failed} |"
        )
    if len(here.peers) < 2:
        return
    best = here.in_hindsight
    at = np.arange(len(here.sets)), here.best_peer
    others = " | ".join(f"{np.nanmean(here.values[measure][at]):.3f}" for measure in OTHERS)
    yield f"| *the best peer of each data set, in hindsight* | – | {best.mean():.3f} | {np.median(best):.3f} | {others} | | |"


def pairwise(here: Figures) -> Iterator[str]:
    yield f"| {NAMES[US]} against | ahead | behind | mean difference | median difference | p, corrected | |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    ours = here.of(US)
    tests = [signed_rank(here.of(peer) - ours) for peer in here.peers]
    corrected = holm(np.array([test.p for test in tests]))
    for peer, test, p in zip(here.peers, tests, corrected, strict=True):
        difference = here.of(peer) - ours
        word = "" if p >= ALPHA else "ahead" if test.rank_biserial > 0 else "behind"
        yield (
            f"| {NAMES[peer]} | {(difference > 0).sum()} | {(difference < 0).sum()} | {difference.mean():+.3f} "
            f"| {np.median(difference):+.3f} | {p:.2g} | {word} |"
        )


def verdict(here: Figures) -> Iterator[str]:
    ranks = ranked(here)
    gap = here.in_hindsight - here.of(US)
    far = [i for i in np.argsort(gap) if gap[i] < -FAR_BEHIND]
    rival = min(here.peers, key=ranks.__getitem__)
    first = "first" if ranks[US] < ranks[rival] else "not first"
    yield (
        f"{NAMES[US]} is {first} by mean rank ({ranks[US]:.2f}; the next or best peer, {NAMES[rival]}, {ranks[rival]:.2f}) and on "
        f"average {abs(gap.mean()):.3f} nats {'ahead of' if gap.mean() >= 0 else 'behind'} the best peer of each data set in "
        f"hindsight; it is ahead of that peer on {(gap > 0).sum()} of {len(gap)} data sets."
    )
    few = here.n_test < FEWEST_TEST
    if few.any():
        names = ", ".join(f"{here.sets[i]} ({here.n_test[i]} samples)" for i in np.flatnonzero(few))
        mean = gap[~few].mean()
        yield (
            f"Without data sets of fewer than {FEWEST_TEST} test samples, {names}, it is {abs(mean):.3f} nats "
            f"{'ahead' if mean >= 0 else 'behind'}."
        )
    if far:
        yield f"More than {FAR_BEHIND} nats behind the best peer on {len(far)} of them:"
        yield ""
        for i in far:
            peer = NAMES[here.models[here.best_peer[i]]]
            yield f"- {here.sets[i]}: {-gap[i]:.3f} behind {peer} ({reason(here, i)})"
    else:
        yield f"On no data set is it more than {FAR_BEHIND} nats behind the best peer."


def reason(here: Figures, i: int) -> str:
    """A likely reason why the best peer is ahead on a data set."""
    if here.n_test[i] < FEWEST_TEST:
        return "chance, as there are very few samples"
    peer = here.models[here.best_peer[i]]
    return next(words for peers, words in REASONS.items() if peer in peers)


def together(all_sizes: Sequence[Figures]) -> str:
    gaps = np.concatenate([here.in_hindsight - here.of(US) for here in all_sizes])
    word = "ahead of" if gaps.mean() >= 0 else "behind"
    return (
        f"Over the {len(gaps)} pairs of a data set and a size, {NAMES[US]} is on average {abs(gaps.mean()):.3f} nats {word} the best "
        "peer of each in hindsight."
    )


def limits(all_sizes: Sequence[Figures]) -> Iterator[str]:
    """Data sets on which a peer is ahead."""
    for here in all_sizes:
        gap = here.of(US) - here.in_hindsight
        lost = gap > 0.02
        counts = {}
        for i in np.flatnonzero(lost):
            counts.setdefault(reason(here, i), []).append(here.sets[i])
        yield f"- {HEADINGS[here.size]}: a peer is ahead by more than .02 nats on {lost.sum()} of {len(gap)} data sets."
        for words, sets in sorted(counts.items(), key=lambda each: -len(each[1])):
            yield f"  - {words}: {', '.join(sets)}"


def wide_sets(all_sizes: Sequence[Figures], results, n_seeds) -> Iterator[str]:
    shown = [US, *OURS_ORDERED, "lrcv", "lda", "forest", NOTHING]
    yield "| data set | training samples | " + " | ".join(NAMES[model] for model in shown) + " | best peer |"
    yield "|---|---|" + "---:|" * (len(shown) + 1)
    for here in all_sizes:
        ordered = figures(results, here.size, list(OURS_ORDERED), n_seeds) if here.sets else None
        for i, name in enumerate(here.sets):
            if name in WIDE:
                cells = []
                for model in shown:
                    source = ordered if model in OURS_ORDERED else here
                    known = source is not None and model in source.models and name in source.sets
                    value = source.of(model)[source.sets.index(name)] if known else None
                    cells.append("" if value is None else f"{value:.3f}")
                best = f"{here.in_hindsight[i]:.3f} ({NAMES[here.models[here.best_peer[i]]]})"
                yield f"| {name} | {here.size} | {' | '.join(cells)} | {best} |"


def every_set(here: Figures) -> Iterator[str]:
    models = [model for model in (US, *here.peers) if model in here.models]
    yield f"| data set | {' | '.join(NAMES[model] for model in models)} |"
    yield "|---|" + "---:|" * len(models)
    for i, name in enumerate(here.sets):
        values = here.values["log_loss"][i]
        best = min(values[here.models.index(model)] for model in models)
        cells = []
        for model in models:
            value, failed = values[here.models.index(model)], here.failed[i, here.models.index(model)]
            text = "–" if failed else f"{value:.3f}"
            cells.append(f"**{text}**" if value == best and not failed else text)
        yield f"| {name} | {' | '.join(cells)} |"


def failures(all_sizes: Sequence[Figures]) -> Iterator[str]:
    for model in PEERS:
        by_note: dict[str, set[str]] = {}
        for here in all_sizes:
            for (who, name), note in here.notes.items():
                if who == model:
                    by_note.setdefault(note.split(".")[0][:90], set()).add(name)
        for note, sets in by_note.items():
            yield f"- {NAMES[model]}, {', '.join(sorted(sets))}: {note}"


def picture(all_sizes: Sequence[Figures]) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    axes = new_axes(None, nrows=len(all_sizes), squeeze=False, figsize=(8.4, 2.9 * len(all_sizes)))[:, 0]
    for here, ax in zip(all_sizes, axes, strict=True):
        models = list(ranked(here))
        scores = -np.column_stack([here.of(model) for model in models])
        title = f"{HEADINGS[here.size]}, {len(here.sets)} data sets"
        RanksDisplay.from_values(scores, [NAMES[model] for model in models], marked=NAMES[US], title=title, ax=ax)
    axes[0].figure.savefig(DOCS / PICTURE, dpi=110, metadata={"Software": None})


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def page(results, n_seeds, command) -> tuple[str, list[Figures]]:
    """The text of the page, and the results it shows."""
    models = [model for model in NAMES if model not in OURS_ORDERED and model not in RIVALS]
    all_sizes = [found for size in SIZES if (found := figures(results, size, models, n_seeds)) is not None]
    all_sizes = [here for here in all_sizes if US in here.models and here.peers]
    if not all_sizes:
        raise NotYet(f"{results} has no results of {US}, of peers and of {NOTHING} on the same data sets yet")
    seeds = {here.n_seeds for here in all_sizes}
    lines = [
        "# Quality of the probabilities",
        "",
        f"Made by `{command}`. {versions()}",
        "",
        f"{NAMES[US]} with default settings, compared with nine tuned peers on {len(NARROW)} tables and "
        f"{len(WIDE)} data sets with more columns than samples: the paper's nine UCI data sets, eight with mixed columns, 25 of",
        "OpenML-CC18, four of gene expression with all columns, and four of mass spectra (IMAC and Fiedler split by person).",
        f"With {_listed([HEADINGS[here.size].lower() for here in all_sizes])} (half: at most {MOST_TRAINING:,}; sizes "
        "without results are not shown), by stratified random splits, "
        f"{' or '.join(str(n) for n in sorted(seeds))} time(s); at most {MOST_TEST:,} of the other samples are predicted. A data set counts at 50 and",
        f"100 samples if at least {FEWEST_TEST} are left to predict.",
        "",
        "Log loss is in nats, with probabilities below 1e-15 counted as 1e-15;",
        "the Brier score is the sum over classes; the calibration error is that of the predicted class in ten bins; AUC is the mean over classes",
        "against the rest; times are CPU seconds of one thread. If a model fails, the class frequencies replace it",
        "in the tables; the best peer is one that did not fail.",
        "",
        "Preprocessing of the peers: numbers standardised, missing ones imputed by the training median (not for HistGradientBoosting, CatBoost and ours),",
        "categories one-hot (not for CatBoost and ours), a missing category as a separate level. `LogisticRegressionCV(Cs=10, cv=5,",
        'scoring="neg_log_loss")`, also on Yeo-Johnson columns; LDA and QDA with Ledoit and Wolf\'s shrinkage (on all principal components',
        "from 1,000 columns); a random forest of 500 trees whose smallest leaf is chosen out of bag; HistGradientBoosting with iterations by early",
        "stopping in folds; CatBoost with 400 iterations; an SVC whose C and gamma are chosen in folds, with Platt scaling.",
        "The candidates of the mixture and its few constants (the penalty on the likelihood power, the spread of the weights, the pseudo-counts) are the same for all data sets; they were",
        "chosen on some of these splits, so that the results favour ours slightly.",
        f"Because of their time, {', '.join(NAMES[model] for model in MOST_COLUMNS)} are skipped beyond {max(MOST_COLUMNS.values()):,} columns.",
        "Stronger peers, which need environments of their own, are on [another page](bench-rivals.md); what each candidate of the mixture brings is on [a third](bench-ablation.md).",
        "",
        f"![Mean ranks with their critical differences]({PICTURE})",
        "",
        "Methods under one bar do not differ significantly by Nemenyi's test at the 5% level. The tables below compare ours with each peer by Wilcoxon's",
        "test, which has more power; its p values are corrected for nine comparisons (Holm).",
        "",
        together(all_sizes),
    ]
    for here in all_sizes:
        lines += [
            "",
            f"## {HEADINGS[here.size]}",
            "",
            f"{len(here.sets)} data sets.",
            "",
            *summary(here),
            "",
            *verdict(here),
            "",
            *pairwise(here),
        ]
    heading, rule, *wide = wide_sets(all_sizes, results, n_seeds)
    if wide:
        about = "Log loss; a useful model is better than the class frequencies."
        lines += ["", "## More columns than samples", "", about, "", heading, rule, *wide]
    about = "Data sets on which a peer is ahead, with a likely reason by the kind of peer:"
    lines += ["", "## Limits", "", about, "", *limits(all_sizes)]
    if failed := list(failures(all_sizes)):
        lines += ["", "Peers that failed or were skipped:", "", *failed]
    lines += ["", "## Every data set", "", "Mean log loss, the best value bold; – for a failure."]
    for here in all_sizes:
        lines += ["", f"### {HEADINGS[here.size]}", "", *every_set(here)]
    return "\n".join(lines) + "\n", all_sizes
