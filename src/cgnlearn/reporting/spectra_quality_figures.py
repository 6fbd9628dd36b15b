"""The figures of the page about the quality of a folder of raw spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from cgnlearn.plots.style import GREY, INK, LINES, without_frame, wrapped
from cgnlearn.reporting.album import PHONE, WHOLE, Album
from cgnlearn.reporting.figures import class_colour
from cgnlearn.reporting.spectra_figures import thinned
from cgnlearn.spectra.inspection import Inspection, lowest_usual
from cgnlearn.spectra.quality import MEASURES, WORDS, companions, figures, limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALBUM = Album("quality")
MOST_PANELS = 12  # of spectra to look at, and of samples with replicates
MOST_CLASSES = 8  # drawn
MOST_REPLICATES = 6  # drawn of a sample
POINTS = 150  # pieces of a line in a small panel
RASTERISED_FROM = 500  # points of a figure
WRONG = LINES[1]


def correlations(found: Inspection) -> dict[str, Any]:
    """Correlations of every spectrum, by the words for them."""
    return {
        "correlation with the others": np.array([of.correlation for of in found.spectra]),
        "correlation with its replicates": np.array([of.with_replicates for of in found.spectra]),
    }


def _both(name: str, description: str, draw: Any, height: Any) -> dict[str, Markup]:
    """A figure in two widths; ``height`` gives the number of rows and the height for a number of columns."""
    figures_of = {}
    for key, width, columns in (("wide", WHOLE, 4), ("narrow", PHONE, 2)):
        n_rows, high = height(columns)
        layout = {"nrows": n_rows, "ncols": columns, "squeeze": False}
        size = width, high
        figures_of[key] = ALBUM.add(f"{name}-{key}", description, draw, size, is_saved=key == "wide", **layout)[0]
    return figures_of


def strips_figure(found: Inspection, classes: Sequence[str]) -> dict[str, Markup] | None:
    """A panel for each figure, a strip for each class: where the spectra lie, and the limits."""
    if len(found.spectra) < 2:
        return None
    measures = [of.quality for of in found.spectra]
    panels: dict[str, Any] = {WORDS[name]: figures(measures, name) for name in MEASURES}
    panels |= {name: values for name, values in correlations(found).items() if np.isfinite(values).sum() > 1}
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

    return _both("strips", "Figures of the spectra", draw, height)


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


def mean_figure(found: Inspection, classes: Sequence[str]) -> dict[str, Any] | None:
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


def panels_figure(found: Inspection) -> dict[str, Any] | None:
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

    return {**_both("panels", "Spectra to look at", draw, _grid(len(chosen), 1.45)), "n": len(chosen)}


def replicates_figure(found: Inspection) -> dict[str, Any] | None:
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

    return {**_both("replicates", "Replicates of a sample", draw, _grid(len(chosen), 1.6)), "n": len(chosen)}


def _grid(n: int, height: float) -> Any:
    def rows(columns: int) -> tuple[int, float]:
        n_rows = -(-n // columns)
        return n_rows, height * n_rows

    return rows


def _label_panel(ax: Axes, title: str, below: str) -> None:
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
