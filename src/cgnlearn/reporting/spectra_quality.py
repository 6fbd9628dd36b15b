"""The page about the quality of a folder of raw spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from cgnlearn.files import write_whole
from cgnlearn.plots.style import GREY, INK, LINES, without_frame
from cgnlearn.reporting.album import PHONE, WHOLE, Album
from cgnlearn.reporting.figures import class_colour
from cgnlearn.reporting.page import environment, heading
from cgnlearn.reporting.spectra_figures import thinned
from cgnlearn.spectra.inspection import APART, COVERED, LOWEST, NEAREST, WIDTH, Inspection, lowest_usual
from cgnlearn.spectra.quality import (
    FACTOR,
    FAR,
    FEWEST,
    MEASURES,
    PEAK_LIST,
    WORDS,
    Remark,
    companions,
    figures,
    limit,
    limits,
    shown,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALBUM = Album("quality")
MOST_ROWS = 2000  # of the table
MOST_PANELS = 12  # of spectra to look at, and of samples with replicates
MOST_CLASSES = 8  # drawn
MOST_REPLICATES = 6  # drawn of a sample
MOST_NAMED = 6  # spectra of a fault
POINTS = 150  # pieces of a line in a small panel
RASTERISED_FROM = 500  # points of a figure
WRONG = LINES[1]


def write_spectra_report(
    path: str | Path, found: Inspection, title: str, settings: Mapping[str, str] | None = None
) -> None:
    """Write the page, one self-contained file.

    Parameters
    ----------
    path : str or Path
    found : Inspection
    title : str
    settings : mapping, optional
        Facts to list, such as the name of the folder.
    """
    n = len(found.spectra)
    measures = [of.quality for of in found.spectra]
    labels = [label for label in found.labels if label is not None]
    classes = {label: labels.count(label) for label in sorted(set(labels))}
    text = (
        environment()
        .get_template("spectra.html")
        .render(
            n=n,
            n_samples=len({of.sample for of in found.spectra}),
            unusual=found.unusual,
            headline=_headline(found),
            faults=[_fault(found, remark, own) for remark, own in found.faults().items()],
            refused=[str(error) for error in found.refused],
            warnings=[*found.warnings, *_warnings(found)],
            formats=found.formats,
            classes=classes,
            by_class=_by_class(found, list(classes)),
            n_unlabelled=n - len(labels),
            ranges=_ranges([f"{of.start:,.0f} to {of.stop:,.0f}" for of in measures]),
            points=_span([of.n_points for of in measures]),
            strips=_both("strips", "Figures of the spectra", _strips(found, list(classes)[:MOST_CLASSES])),
            mean=_mean_figure(found, list(classes)),
            panels=_panels(found),
            replicates=_replicates(found),
            n_replicated=len(found.replicates),
            rows=_rows(found),
            limits=_limits(found),
            far=FAR,
            limit=limit(n),
            factor=FACTOR,
            fewest=FEWEST,
            apart=APART,
            covered=COVERED,
            nearest=NEAREST,
            width=WIDTH,
            lowest=LOWEST,
            settings=dict(settings or {}),
            **heading(title),
        )
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def _headline(found: Inspection) -> str:
    n, odd, bad = len(found.spectra), len(found.unusual), len(found.refused)
    files = f"{bad} file{'s' * (bad != 1)} cannot be read"
    if n == 1:
        told = "One spectrum: its figures are below, and there is none to compare it with"
    elif odd:
        told = f"{odd} of {n:,} spectra need{'s' * (odd == 1)} a look"
    else:
        told = f"None of {n:,} spectra stands out"
    return f"{told}; {files}." if bad else f"{told}."


def _warnings(found: Inspection) -> list[str]:
    told = []
    n = len(found.spectra)
    if 1 < n < FEWEST:
        told.append(f"{n} spectra are too few to say what is usual: only faults of single spectra are found.")
    lists = sum(of.quality.n_points < PEAK_LIST for of in found.spectra)
    if lists:
        told.append(
            f"{lists} of {n} spectra have fewer than {PEAK_LIST} points and are taken for lists of peaks: noise and "
            "baseline of these cannot be measured."
        )
    return told


def _fault(found: Inspection, remark: Remark, own: Sequence[int]) -> dict[str, Any]:
    """A fault, its spectra with their figures, and what to do."""
    named = []
    for i in own[:MOST_NAMED]:
        why = next(of.why for of in found.spectra[i].remarks if of.what == remark.what)
        named.append((found.spectra[i].file, why))
    return {"what": remark.what, "advice": remark.advice, "named": named, "n": len(own)}


def _ranges(texts: Sequence[str]) -> list[tuple[str, int]]:
    """The most frequent ranges with their counts."""
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    return sorted(counts.items(), key=lambda item: -item[1])[:3]


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}, median {np.median(values):,.0f}"


def _by_class(found: Inspection, classes: Sequence[str]) -> list[tuple[str, int, list[str], str]]:
    """Medians of each class, and how many of its spectra stand out."""
    rows = []
    for label in classes:
        own = [of for of in found.spectra if of.label == label]
        values = []
        for name in MEASURES:
            known = figures([of.quality for of in own], name)
            known = known[np.isfinite(known)]
            values.append(shown(name, float(np.median(known))) if len(known) else "—")
        rows.append((label, len(own), values, f"{sum(bool(of.remarks) for of in own)}"))
    return rows


def _limits(found: Inspection) -> list[tuple[str, str, str, str]]:
    """Median and limits of each figure over all spectra."""
    rows = []
    measures = [of.quality for of in found.spectra]
    for name, sides in MEASURES.items():
        of = limits(figures(measures, name), name)
        if of is not None:
            low, high = (shown(name, max(value, 0)) for value in (of.low, of.high))
            rows.append((WORDS[name], shown(name, of.median), low if -1 in sides else "", high if 1 in sides else ""))
    for name, values in _correlations(found).items():
        least = lowest_usual(values)
        if least is not None:
            rows.append((name, f"{np.nanmedian(values):.2f}", f"{least:.2f}", ""))
    return rows


def _correlations(found: Inspection) -> dict[str, Any]:
    return {
        "correlation with the others": np.array([of.correlation for of in found.spectra]),
        "correlation with its replicates": np.array([of.with_replicates for of in found.spectra]),
    }


def _rows(found: Inspection) -> list[dict[str, Any]]:
    """The table, spectra with remarks first."""
    first = set(found.unusual)
    order = [*found.unusual, *(i for i in range(len(found.spectra)) if i not in first)]
    rows = []
    for i in order[:MOST_ROWS]:
        of = found.spectra[i]
        values = {name: getattr(of.quality, name) for name in MEASURES}
        cells = [(name, _key(value), shown(name, value)) for name, value in values.items()]
        for name, r in (("correlation", of.correlation), ("replicates", of.with_replicates)):
            cells.append((name, _key(r), f"{r:.2f}".replace("-", "−") if np.isfinite(r) else "—"))
        told = ", ".join(remark.what for remark in of.remarks)
        rows.append({"file": of.file, "label": of.label, "cells": cells, "told": told})
    return rows


def _key(value: float) -> float:
    """What a table sorts by: unknown values come first."""
    return float(value) if np.isfinite(value) else -2.0


def _both(name: str, description: str, drawn: tuple[Any, Any] | None) -> dict[str, Markup] | None:
    """A figure in two widths; ``drawn`` makes it for a number of columns and returns the number of rows."""
    if drawn is None:
        return None
    draw, height = drawn
    figures_of = {}
    for key, width, columns in (("wide", WHOLE, 4), ("narrow", PHONE, 2)):
        n_rows, high = height(columns)
        layout = {"nrows": n_rows, "ncols": columns, "squeeze": False}
        size = width, high
        figures_of[key] = ALBUM.add(f"{name}-{key}", description, draw, size, is_saved=key == "wide", **layout)[0]
    return figures_of


def _strips(found: Inspection, classes: Sequence[str]) -> tuple[Any, Any] | None:
    """A panel for each figure, a strip for each class: where the spectra lie, and the limits."""
    if len(found.spectra) < 2:
        return None
    measures = [of.quality for of in found.spectra]
    panels: dict[str, Any] = {WORDS[name]: figures(measures, name) for name in MEASURES}
    panels |= {name: values for name, values in _correlations(found).items() if np.isfinite(values).sum() > 1}
    panels = {name: values for name, values in panels.items() if np.isfinite(values).any()}
    keys = {word: name for name, word in WORDS.items()}
    codes = np.array([classes.index(label) if label in classes else len(classes) for label in found.labels])
    strips = sorted(set(codes.tolist()))
    odd = np.array([bool(of.remarks) for of in found.spectra])
    spread = (np.arange(len(odd)) * 0.618034) % 1 - 0.5  # evenly, and the same each time

    def draw(axes: Any) -> None:
        every = axes.ravel()
        for ax, (title, values) in zip(every, panels.items(), strict=False):
            logarithmic = title in keys and keys[title] != "baseline"
            known = np.isfinite(values) & ((values > 0) | (not logarithmic))
            for is_odd, colour, size in ((False, GREY, 5), (True, WRONG, 11)):
                at = known & (odd == is_odd)
                height = codes[at] + 0.7 * spread[at]
                raster = len(odd) > RASTERISED_FROM
                ax.scatter(values[at], height, size, color=colour, alpha=0.9, linewidth=0, rasterized=raster)
            for label, own in companions(found.labels, len(odd)):
                for code in sorted(set(codes[own].tolist())):
                    _draw_limits(ax, keys.get(title), values if label is None else values[own], code)
            if logarithmic and title != WORDS["n_peaks"]:
                _set_log_axis(ax)
            ax.set_ylim(len(classes) - 0.5 + (len(classes) in strips), -0.5)
            names = [classes[code] if code < len(classes) else ("other" if classes else "") for code in strips]
            ax.set_yticks(strips, [name if len(name) <= 14 else f"{name[:13]}…" for name in names])
            ax.tick_params(axis="y", length=0, labelsize=8)
            ax.tick_params(axis="x", labelsize=7.5)
            ax.set_title(title, fontsize=9, loc="left")
            without_frame(ax)
            ax.spines["left"].set_visible(False)
        for ax in every[len(panels) :]:
            ax.set_axis_off()

    def height(columns: int) -> tuple[int, float]:
        n_rows = -(-len(panels) // columns)
        return n_rows, n_rows * (0.75 + 0.32 * len(strips))

    return draw, height


def _set_log_axis(ax: Axes) -> None:
    """A logarithmic axis with at most four short numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    def short(value: float, _: object) -> str:
        for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= unit:
                return f"{value / unit:g}{sign}"
        return f"{value:g}"

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    subs = (1.0,) if high > 300 * low else (1.0, 3.0) if high > 20 * low else (1.0, 2.0, 5.0)
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=5))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(short))


def _draw_limits(ax: Axes, name: str | None, values: Any, code: int) -> None:
    """Short lines at the limits within the strip of a class."""
    if name is None:
        least = lowest_usual(values)
        ends = [] if least is None else [least]
    else:
        of = limits(values, name)
        ends = [] if of is None else [{-1: of.low, 1: of.high}[side] for side in MEASURES[name]]
    for end in ends:
        if end > 0 or name in (None, "n_peaks"):
            ax.plot([end, end], [code - 0.42, code + 0.42], color=INK, linewidth=0.9, linestyle=(0, (3, 2)))


def _mean_figure(found: Inspection, classes: Sequence[str]) -> dict[str, Any] | None:
    """Mean and standard deviation of the spectra that do not stand out, by class."""
    fine = np.array([not of.remarks for of in found.spectra])
    if not fine.any():
        fine[:] = True
    groups: dict[str, Any] = {}
    for label in classes[:MOST_CLASSES] or [""]:
        own = fine & np.array([not classes or of == label for of in found.labels])
        if own.any():
            groups[label] = found.profiles[own]
    if not groups or found.profiles.shape[1] < 3:
        return None
    means = {label: np.nanmean(of, axis=0) for label, of in groups.items()}
    spreads = {label: np.nanstd(of, axis=0) for label, of in groups.items()}
    top = max(float(np.nanmax(means[label] + spreads[label])) for label in groups)

    def draw(axes: Any) -> None:
        for code, (ax, label) in enumerate(zip(axes, groups, strict=True)):
            colour = class_colour(list(classes).index(label)) if classes else class_colour(0)
            mean, spread = means[label], spreads[label]
            mz, low = thinned(found.mz, np.maximum(mean - spread, 0), 500)
            _, high = thinned(found.mz, mean + spread, 500)
            ax.fill_between(mz, low, high, color=colour, alpha=0.3, linewidth=0)
            ax.plot(*thinned(found.mz, mean, 500), color=colour, linewidth=0.8)
            ax.set_ylim(0, top or 1.0)
            ax.set_yticks([])
            short = label if len(label) <= 14 else f"{label[:13]}…"
            ax.set_ylabel(short, rotation=0, ha="right", va="center", fontsize=8.5)
            without_frame(ax)
            ax.spines["left"].set_visible(False)
            if code == len(groups) - 1:
                ax.set_xlabel("m/z")

    layout: dict[str, Any] = {"nrows": len(groups), "sharex": True, "squeeze": False}
    height = (1.0 if len(groups) <= 4 else 0.7) * len(groups) + (1.4 if len(groups) == 1 else 0.7)
    made = {}
    for key, width in (("wide", WHOLE), ("narrow", PHONE)):
        text = "Mean spectra with one standard deviation on either side"
        made[key], _ = ALBUM.add(
            f"mean-{key}", text, lambda axes: draw(axes.ravel()), (width, height), is_saved=key == "wide", **layout
        )
    return {**made, "n": int(fine.sum()), "n_classes": len(classes)}


def _panels(found: Inspection) -> dict[str, Any] | None:
    """The spectra with most remarks, each over the median of those it is compared with."""
    chosen = [i for i in found.unusual if np.isfinite(found.profiles[i]).any()][:MOST_PANELS]
    if not chosen or found.profiles.shape[1] < 3:
        return None
    typical: dict[int, Any] = {}
    for label, own in companions(found.labels, len(found.spectra)):
        among = found.profiles if label is None else found.profiles[own]
        typical |= dict.fromkeys(own.tolist(), np.nanmedian(among, axis=0))

    def draw(axes: Any) -> None:
        for ax, i in zip(axes.ravel(), chosen, strict=False):
            ax.plot(*thinned(found.mz, np.nan_to_num(typical[i]), POINTS), color=GREY, linewidth=0.7)
            ax.plot(*thinned(found.mz, found.profiles[i], POINTS), color=WRONG, linewidth=0.7)
            of = found.spectra[i]
            _label_panel(ax, _tail(of.file), ", ".join(remark.what for remark in of.remarks))
        for ax in axes.ravel()[len(chosen) :]:
            ax.set_axis_off()

    drawn = _both("panels", "Spectra to look at", (draw, _grid(len(chosen), 1.45)))
    return drawn and {**drawn, "n": len(chosen)}


def _replicates(found: Inspection) -> dict[str, Any] | None:
    """Replicates of a sample above each other, the least alike first."""
    chosen = list(found.replicates)[:MOST_PANELS]
    if not chosen or found.profiles.shape[1] < 3:
        return None

    def draw(axes: Any) -> None:
        for ax, sample in zip(axes.ravel(), chosen, strict=False):
            own = found.replicates[sample][:MOST_REPLICATES]
            step = float(np.nanmax(np.nan_to_num(found.profiles[own]))) or 1.0
            for place, i in enumerate(own):
                mz, height = thinned(found.mz, found.profiles[i], POINTS)
                colour = WRONG if found.spectra[i].remarks else INK
                ax.plot(mz, height + 0.6 * step * (len(own) - 1 - place), color=colour, linewidth=0.7)
            known = [found.spectra[i].with_replicates for i in found.replicates[sample]]
            known = [r for r in known if np.isfinite(r)]
            span = f"correlation {min(known):.2f}" if known else "not comparable"
            if known and f"{max(known):.2f}" != f"{min(known):.2f}":
                span += f" to {max(known):.2f}"
            _label_panel(ax, _tail(sample), span.replace("-", "−"))
        for ax in axes.ravel()[len(chosen) :]:
            ax.set_axis_off()

    drawn = _both("replicates", "Replicates of a sample", (draw, _grid(len(chosen), 1.6)))
    return drawn and {**drawn, "n": len(chosen)}


def _grid(n: int, height: float) -> Any:
    def rows(columns: int) -> tuple[int, float]:
        n_rows = -(-n // columns)
        return n_rows, height * n_rows

    return rows


def _label_panel(ax: Axes, title: str, below: str) -> None:
    from cgnlearn.plots.style import wrapped

    lines = wrapped(below, 34).split("\n")
    told = lines[0] if len(lines) == 1 else f"{lines[0].rstrip(',')} …"
    ax.set_title(f"{title}\n{told}", fontsize=7.5, loc="left", color=INK)
    ax.set_yticks([])
    ax.tick_params(labelsize=7)
    ax.locator_params(axis="x", nbins=5)
    without_frame(ax)
    ax.spines["left"].set_visible(False)


def _tail(name: str, most: int = 30) -> str:
    """The end of a long path, which tells more than its start."""
    return name if len(name) <= most else f"…{name[1 - most :]}"
