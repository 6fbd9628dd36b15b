"""The results of the experiments, and those of the paper, as Markdown tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from operator import attrgetter

from cgnlearn.datasets import UCI
from cgnlearn.evaluation.significance import mark
from cgnlearn.experiments import published
from cgnlearn.experiments.ovarian import FAMILIES, Point
from cgnlearn.experiments.uci import FRACTIONS, LOCATIONS, METRICS, SEARCHES, Cell

SIGNS = {"win": "✓", "draw": "=", "loss": "✗"}
METRIC_NAMES = {"cll": "CLL", "accuracy": "ACC"}

Choice = Callable[[Cell], str]  # a cell's mark


#: Rules for the mark of Bayesian averaging against maximum likelihood.
JUDGES: dict[str, Choice] = {
    "signed-rank test": lambda cell: cell.comparison.mark,
    "Mann-Whitney test": lambda cell: cell.comparison.unpaired_mark,
    "corrected t test": lambda cell: mark(cell.comparison.corrected_t_p, cell.comparison.mean_difference),
    "sign of the ranks": lambda cell: mark(0.0, cell.comparison.rank_biserial),
    "sign of the mean": lambda cell: mark(0.0, cell.comparison.mean_difference),
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column to the left, the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def select(cells: Iterable[Cell], **wanted: object) -> list[Cell]:
    """The cells whose fields have these values."""
    return [cell for cell in cells if all(getattr(cell, name) == value for name, value in wanted.items())]


def win_table(cells: Sequence[Cell], search: str) -> str:
    """The table of one search: each row of the paper, followed by ours for every location of the prior."""
    names = list(dict.fromkeys(cell.dataset for cell in cells))
    rows = []
    for metric, fraction, location in product(METRICS, FRACTIONS, LOCATIONS):
        title = f"{METRIC_NAMES[metric]} {fraction:.0%}"
        own = select(cells, search=search, metric=metric, fraction=fraction, location=location)
        if location == LOCATIONS[0]:
            rows.append(_line(f"**{title}** paper", [cell.published for cell in own]))
        rows.append(_line(f"{title} ours, {location}", [cell.comparison.mark for cell in own]))
    header = [published.NAMES[search], *(f"{UCI.index(name) + 1} {name}" for name in names), "won/lost"]
    return table(header, rows)


def _line(title: str, marks: Sequence[str]) -> list[str]:
    counts = Counter(marks)
    return [title, *(SIGNS[mark] for mark in marks), f"{counts['win']}/{counts['loss']}"]


def effect_table(cells: Sequence[Cell], search: str, metric: str, location: str) -> str:
    """Means, effect size and p-values behind one search's marks."""
    header = ["set"]
    by_set: dict[str, list[str]] = {}
    for fraction in FRACTIONS:
        header += [f"{fraction:.0%}: ML", "BA", "effect", "p"]
        for cell in select(cells, search=search, metric=metric, location=location, fraction=fraction):
            means = [f"{mean:.{1 if metric == 'cll' else 4}f}" for mean in (cell.ml, cell.bayes)]
            test = [f"{cell.comparison.rank_biserial:+.2f}", f"{cell.comparison.wilcoxon_p:.1g}"]
            by_set.setdefault(cell.dataset, [cell.dataset]).extend(means + test)
    return table(header, by_set.values())


def agreement_table(cells: Sequence[Cell]) -> str:
    """Number of cells in which each rule agrees with the paper."""
    columns: dict[str, dict[str, object]] = {
        f"{METRIC_NAMES[metric]} {fraction:.0%}": {"metric": metric, "fraction": fraction}
        for metric, fraction in product(METRICS, FRACTIONS)
    } | {"all": {}}
    rows = []
    for (judge, choose), location in product(JUDGES.items(), LOCATIONS):
        parts = [select(cells, location=location, **wanted) for wanted in columns.values()]
        shares = [f"{sum(choose(cell) == cell.published for cell in own)}/{len(own)}" for own in parts]
        rows.append([f"{judge}, {location}", *shares])
    return table(["marks by", *columns], rows)


def zeros_table(cells: Sequence[Cell]) -> str:
    """Numbers of zero probabilities, of folds without maximum likelihood, and of folds without features."""
    rows = []
    for search, fraction in product(SEARCHES, FRACTIONS):
        own = [select(cells, search=search, fraction=fraction, metric="cll", location=place) for place in LOCATIONS]
        counts = [sum(cell.zeros_ml for cell in own[0]), *(sum(cell.zeros_bayes for cell in part) for part in own)]
        counts += [sum(cell.class_alone for cell in own[0]), sum(cell.no_features for cell in own[0])]
        rows.append([f"{published.NAMES[search]} {fraction:.0%}", *map(str, counts)])
    header = ["", "zeros ML", *(f"zeros BA, {location}" for location in LOCATIONS)]
    return table([*header, "folds without ML", "folds without features"], rows)


def exceptions(cells: Sequence[Cell], location: str) -> list[Cell]:
    """Cells in which Bayesian averaging does not win on CLL with a fifth of the data."""
    own = select(cells, metric="cll", fraction=0.2, location=location)
    return [cell for cell in own if cell.comparison.mark != "win"]


def exception_lines(cells: Sequence[Cell]) -> str:
    """The exceptions as a list, for every location of the prior."""
    lines = []
    for location in LOCATIONS:
        n = len(select(cells, metric="cll", fraction=0.2, location=location))
        found = exceptions(cells, location)
        named = [
            f"{cell.dataset} with {published.NAMES[cell.search]} ({cell.comparison.mark}, "
            f"effect {cell.comparison.rank_biserial:+.2f}, p = {cell.comparison.wilcoxon_p:.2g})"
            for cell in found
        ]
        but = f"; not {'; '.join(named)}" if named else ""
        lines.append(f"- {location}: {n - len(found)} of {n} won{but}.\n")
    return "".join(lines)


def uci_page(cells: Sequence[Cell]) -> str:
    """All tables of the UCI experiment."""
    parts = [
        f"# UCI sets: Bayesian averaging (BA) beside maximum likelihood (ML)\n\n{LEGEND}\n",
        *(win_table(cells, search) for search in published.TABLES),
        f"## Cells that agree with the paper's\n\n{agreement_table(cells)}",
        f"## CLL with a fifth of the data: where BA wins\n\n{exception_lines(cells)}",
        f"## Probabilities of zero\n\n{zeros_table(cells)}",
    ]
    for search, metric in product(published.TABLES, METRICS):
        title = f"## {published.NAMES[search]}, {METRIC_NAMES[metric]}: means over folds, prior location paper"
        parts.append(f"{title}\n\n{effect_table(cells, search, metric, 'paper')}")
    return "\n".join(parts)


LEGEND = (
    "✓ BA wins, ✗ it loses (Wilcoxon signed-rank test over the folds at the 5% level), = neither. The lines *ours* "
    "differ in the location of the prior. CLL is summed over the test samples of a fold; the effect is the "
    "rank-biserial correlation."
)


def best_table(points: Sequence[Point]) -> str:
    """The best k of every model by accuracy and by CLL, and the last k."""
    rows = []
    models = dict.fromkeys((point.structure, point.parameters) for point in points)
    for structure, parameters in sorted(models, key=lambda model: FAMILIES.index(model[0])):
        own = [point for point in points if (point.structure, point.parameters) == (structure, parameters)]
        best = []
        for metric in ("accuracy", "cll"):
            point = max(own, key=attrgetter(metric))
            value = f"{getattr(point, metric):.3f} ± {getattr(point, f'{metric}_sd'):.3f}"
            best.append(f"{value} (k = {point.k})" if point.k else value)
        last = max(own, key=attrgetter("k"))
        counts = [str(sum(getattr(point, name) for point in own)) for name in ("zeros", "class_alone")]
        rows.append([f"{structure.upper()} {parameters}", *best, f"{last.accuracy:.3f}", f"{last.cll:.3f}", *counts])
    largest = max(point.k for point in points)
    header = ["model", "best accuracy", "best CLL per spectrum", f"accuracy at k = {largest}", f"CLL at k = {largest}"]
    return table([*header, "zeros", "folds without ML"], rows)


def ovarian_page(points: Sequence[Point], title: str) -> str:
    """The table of the ovarian experiment."""
    return f"# {title}\n\n{best_table(points)}"
