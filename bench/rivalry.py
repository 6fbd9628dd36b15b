"""The page docs/bench-rivals.md: stronger peers beside ours, from the results of bench/quality.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from collection import NARROW, SIZES
from contenders import PEERS
from measuring import versions
from ranking import HEADINGS, NAMES, NOTHING, US, Figures, NotYet, figures, pairwise, summary, verdict
from rival import AUTOGLUON_SECONDS, N_CONFIGURATIONS, TABPFN_LIMITS
from rivals import RIVALS

AHEAD = 0.02  # nats by which a rival is ahead enough to ask why
# What held-out and test predictions of single candidates and ideas show, as means over three divisions; bench/ablation.py
# stores them.
WHY_AHEAD = {
    "cc18/car": "classes and levels in an order: of 50 samples, ordinal regression alone has 0.528, and on the numbers of the levels, which TabPFN gets too, 0.502, "
    "but held-out samples hardly tell it from the others (0.699; logistic regression 0.751)",
    "cc18/eucalyptus": "mixed columns, some with many levels; no candidate, nor an idea of bench/ideas.py, alone is better than the mixture",
    "uci/vehicle": "strongly correlated columns: of 50 and 100 samples the complete network alone is as good as the mixture, and no candidate or idea is better by more than 0.004",
    "cc18/banknote-authentication": "curved classes of correlated columns, and doubt about the weights: of 50 samples a kernel density alone has 0.032 and the complete network 0.042, but the mixture 0.070",
    "cc18/analcatdata_dmft": "hardly anything can be predicted: of 100 samples no candidate alone is better than the class frequencies (1.789) by more than 0.003, but several are on held-out samples",
    "cc18/steel-plates-fault": "thresholds: gradient boosting is ahead as well; no candidate or idea alone is better than the mixture",
    "mixed/credit-approval": "thresholds and interactions, on which CatBoost is ahead as well; no candidate or idea alone is better than the mixture",
    "uci/page-blocks": "rare classes, and thresholds; no candidate or idea alone is better than the mixture",
    "uci/liver-disorders": "hardly anything can be predicted, and the candidates that seem best on 100 held-out samples are not on others",
    "cc18/pc1": "no candidate, nor an idea, alone is better than the mixture",
}


def able(here: Figures) -> Figures:
    """Without the data sets that a rival was not made for."""
    kept = [i for i, name in enumerate(here.sets) if not any((model, name) in here.notes for model in RIVALS)]
    values = {measure: of_sets[kept] for measure, of_sets in here.values.items()}
    parts = {name: getattr(here, name)[kept] for name in ("seconds", "n_test", "failed")}
    return replace(here, sets=[here.sets[i] for i in kept], values=values, **parts)


def rivals_page(results, n_seeds, rivals) -> str:
    """The text of the page about stronger peers: each set beside ours, on the data sets that both have results of."""
    lines = [
        "# Stronger peers",
        "",
        f"Made by `python bench/quality.py -o FOLDER --seeds {n_seeds} {' '.join(f'--peer {name}=PYTHON' for name in rivals)} --write`. {versions()}",
        "",
        f"{NAMES[US]} with default settings beside classifiers that need an environment of their own, as bench/rivals.py describes: data, splits and",
        f"measures are those of [the comparison with tuned peers](quality.md), at most {n_seeds} split(s) of each data set. A rival is set beside ours on the data",
        "sets and splits that have been computed and that it was made for. It gets missing numbers and codes of categories as they are, with the names of the categorical",
        f"columns where it takes them. EBM has its default settings. TabPFN v1 has an ensemble of {N_CONFIGURATIONS} and takes at most {TABPFN_LIMITS[0]:,} samples,",
        f"{TABPFN_LIMITS[1]} features and {TABPFN_LIMITS[2]} classes; AutoGluon, where it is shown, has {AUTOGLUON_SECONDS} s of the clock for each fit, on one core beside other processes, with LightGBM, XGBoost, CatBoost and the models of",
        "scikit-learn, but without those that need torch. Times are CPU seconds of one thread: ours of the fit, theirs of the fit and of all predictions,",
        "as TabPFN learns while it predicts. The candidates of our mixture and its few constants were chosen on some of these splits, so that the results favour it slightly.",
    ]
    found_any = False
    for size in SIZES:
        lines += all_together(results, size, n_seeds, rivals)
    for rival in rivals:
        pairs = [figures(results, size, [US, rival], n_seeds) for size in SIZES]
        pairs = [able(pair) for pair in pairs if pair is not None and {US, rival} <= set(pair.models)]
        pairs = [pair for pair in pairs if pair.sets]
        found_any = found_any or bool(pairs)
        for here in pairs:
            absent = [name for name in NARROW if name.startswith("cc18/") and name not in here.sets]
            not_yet = f" Of OpenML-CC18, these have no results yet: {', '.join(absent)}." if absent else ""
            heading = f"## {NAMES[rival]}, {HEADINGS[here.size].lower()}"
            lines += ["", heading, "", f"{len(here.sets)} data sets, {here.n_seeds} split(s) of each.{not_yet}", ""]
            lines += [*summary(here), "", *pairwise(here), ""]
            lines += [*every_difference(here, rival), "", *why_ahead(here, rival)]
    if not found_any:
        raise NotYet(f"{results} has no results of {US}, of a rival and of {NOTHING} on the same data sets yet")
    return "\n".join(lines) + "\n"


def all_together(results, size, n_seeds, rivals) -> Iterator[str]:
    """Ours beside the tuned peers and the rivals with results of all tables: those with most splits, then more."""
    tuned = [US, *PEERS]

    def extent(models):
        found = figures(results, size, models, n_seeds)
        if found is None or not set(models) <= set(found.models):
            return 0, 0
        return found.n_seeds, len(set(found.sets) & set(NARROW))

    n_sets = extent(tuned)[1]
    splits = {rival: n for rival in rivals for n, of_sets in [extent([*tuned, rival])] if n and of_sets == n_sets}
    for least in sorted(set(splits.values()), reverse=True):
        among = [rival for rival, n in splits.items() if n >= least]
        here = able(figures(results, size, [*tuned, *among], n_seeds))
        names = ", ".join(NAMES[rival] for rival in among)
        yield from ("", f"## All peers together, {HEADINGS[size].lower()}: with {names}", "")
        yield f"{len(here.sets)} data sets, {here.n_seeds} split(s) of each."
        yield from ("", *summary(here), "", *verdict(here))


def why_ahead(here: Figures, rival: str) -> Iterator[str]:
    """Why the rival is ahead where it is."""
    gap = here.of(US) - here.of(rival)
    lost = [i for i in np.argsort(-gap) if gap[i] > AHEAD]
    yield f"{NAMES[rival]} is ahead by more than {AHEAD} nats on {len(lost)} of {len(gap)} data sets{':' if lost else '.'}"
    if lost:
        yield ""
    for i in lost:
        yield f"- {here.sets[i]}: {WHY_AHEAD.get(here.sets[i], 'not looked into')}."


def every_difference(here: Figures, rival: str) -> Iterator[str]:
    """Log losses and seconds of each data set, those first on which the rival is furthest ahead."""
    yield f"| data set | {NAMES[US]} | {NAMES[rival]} | difference | s | s, {NAMES[rival]} |"
    yield "|---|---:|---:|---:|---:|---:|"
    ours, theirs = here.of(US), here.of(rival)
    seconds = here.seconds[:, [here.models.index(model) for model in (US, rival)]]
    for i in np.argsort(theirs - ours):
        yield (
            f"| {here.sets[i]} | {ours[i]:.3f} | {theirs[i]:.3f} | {theirs[i] - ours[i]:+.3f} "
            f"| {seconds[i, 0]:.1f} | {seconds[i, 1]:.1f} |"
        )
