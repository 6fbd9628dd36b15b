"""The figures about spectra: mean spectra of all classes with the contributions of peaks, and preprocessing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from cgnlearn.evaluation.chosen import Chosen
from cgnlearn.evaluation.evidence import mean_spectrum
from cgnlearn.plots.spectrum import label_peaks
from cgnlearn.plots.style import GREY, INK, MOST_POINTS, without_frame
from cgnlearn.reporting.album import PHONE, WHOLE, Album
from cgnlearn.reporting.figures import class_colour
from cgnlearn.spectra.quality import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_FILLED = 8  # classes; the areas of more would make a large page
LETTERS = 14  # of a class at the side
STEPS = {
    "raw": "as measured",
    "Trim": "trimmed to a range of m/z",
    "SquareRoot": "square roots (equal variance of noise)",
    "Smooth": "smoothed (Savitzky-Golay)",
    "Baseline": "baseline subtracted (SNIP)",
    "Normalise": "divided by the total intensity",
    "Align": "aligned by common peaks",
}


class Along(NamedTuple):
    """The figure of spectra in two widths, with the data for pointing at peaks."""

    wide: Markup
    narrow: Markup
    ends: tuple[float, float]  # of the horizontal axis, as shares of the width
    peaks: list[tuple[str, float, list[float], float]]  # name, position, mean intensity in the classes, log odds


def along_figure(chosen: Chosen, album: Album) -> Along:
    """Mean spectra of all classes above the mean contributions of the peaks."""
    study, evidence = chosen.study, chosen.evidence
    assert evidence is not None
    assert study.positions is not None
    values, positions, features = study.X.to_numpy(dtype=float), study.positions, study.features
    n = len(study.classes)
    means = [np.nan_to_num(mean_spectrum(values[study.true == code])) for code in range(n)]
    tops = np.array([top for top in features.shown if top is not None], dtype=np.intp)
    odds = features.sums(evidence.for_truth)[: len(tops)]
    highest, lowest = max(float(mean.max()) for mean in means), min(0.0, *(float(mean.min()) for mean in means))

    def draw(axes: Any) -> None:
        as_pixels = len(positions) > MOST_POINTS
        for code, (ax, mean) in enumerate(zip(axes, means, strict=False)):
            colour, name = class_colour(code), study.classes[code]
            if n <= MOST_FILLED:
                ax.fill_between(positions, mean, color=colour, alpha=0.3, linewidth=0, rasterized=as_pixels)
            ax.plot(positions, mean, color=colour, linewidth=0.8, rasterized=as_pixels)
            ax.set_ylim(lowest, highest or 1.0)
            ax.set_yticks([])
            short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
            ax.set_ylabel(short, rotation=0, ha="right", va="center", fontsize=8.5 if n <= 8 else 7.5)
            without_frame(ax)
            ax.spines["left"].set_visible(False)
        _draw_contributions(axes[-1], positions, tops, odds, study.marks)
        axes[-1].set_xlabel(study.axis)

    row = 0.8 if n <= 4 else 0.5 if n <= 8 else 0.28
    layout: dict[str, Any] = {"nrows": n + 1, "sharex": True, "height_ratios": [row] * n + [1.5]}
    description = "Mean spectra of the classes, and the contributions of the peaks"
    height = row * n + 2.2
    wide, axes = album.add("spectra", description, draw, (WHOLE, height), **layout)
    narrow, _ = album.add("spectra-narrow", description, draw, (PHONE, height), is_saved=False, **layout)
    ends = axes[0].transData.transform([(positions[0], 0), (positions[-1], 0)])[:, 0]
    left, right = ends / axes[0].figure.bbox.width
    peaks = [
        (features.names[i], float(positions[top]), [float(f"{mean[top]:.3g}") for mean in means], float(odds[i]))
        for i, top in enumerate(tops.tolist())
    ]
    return Along(wide, narrow, (float(left), float(right)), peaks)


def _draw_contributions(ax: Axes, positions: Any, tops: Any, odds: Any, marks: Any) -> None:
    """Bars up for the true class, down for the rival; the strongest are named."""
    width = (positions[-1] - positions[0]) / 250  # keeps the bars of sharp peaks visible
    ax.bar(positions[tops], odds, width, color=INK, linewidth=0)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.margins(y=0.2)
    ax.set_ylabel("log odds", fontsize=8.5)
    label_peaks(ax, positions[tops], odds, positions[-1] - positions[0])
    if marks is not None:
        look: dict[str, Any] = {"color": INK, "markersize": 5, "clip_on": False, "transform": ax.get_xaxis_transform()}
        ax.plot(marks, np.full(len(marks), 1.02), "v", **look)
    without_frame(ax)


def steps_figure(survey: Survey, album: Album) -> Markup | None:
    """One spectrum, raw and after each step; None if no step precedes the bins."""
    if len(survey.example) < 2:
        return None

    def draw(axes: Any) -> None:
        for ax, (name, spectrum) in zip(axes.ravel(), survey.example, strict=False):
            mz, intensity = thinned(spectrum.mz, spectrum.intensity)
            ax.plot(mz, intensity, color=INK, linewidth=0.6)
            ax.set_title(STEPS.get(name, name), fontsize=8.5, loc="left", color=INK)
            ax.tick_params(labelsize=7)
            ax.locator_params(nbins=4)
            without_frame(ax)
        for ax in axes.ravel()[len(survey.example) :]:
            ax.set_axis_off()

    n_rows = -(-len(survey.example) // 3)
    return album.add("preprocessing", "A spectrum after each step", draw, (WHOLE, 1.6 * n_rows), nrows=n_rows, ncols=3)[
        0
    ]


def thinned(mz: Any, intensity: Any, n: int = 400) -> tuple[Any, Any]:
    """The lowest and the highest point of each piece of a spectrum: as drawn, with fewer points."""
    if len(mz) <= 2 * n:
        return mz, intensity
    starts = np.linspace(0, len(mz), n + 1).astype(np.intp)[:-1]
    low, high = np.minimum.reduceat(intensity, starts), np.maximum.reduceat(intensity, starts)
    return np.repeat(mz[starts], 2), np.column_stack([low, high]).ravel()
