"""Effect curves on the cards of features: log odds against the value of one feature, as small drawings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.chosen import Chosen
from cgnlearn.evaluation.grouped import steps_before
from cgnlearn.plots import EffectDisplay
from cgnlearn.plots.effects import MOST_BANDS, share_view
from cgnlearn.plots.style import LINES
from cgnlearn.reporting.album import WHOLE, Album

if TYPE_CHECKING:
    from cgnlearn.reporting.cards import Histogram

N_POINTS = 41  # of a curve
MOST_RUG = 60  # values that are marked
MOST_LOG_ODDS = 8.0  # in view
SECONDS = 10.0  # of a processor, after which no further curve is computed
WIDTH, HEIGHT = 100.0, 40.0  # of a drawing, which is stretched
SHIFT = 3.0  # between the points of classes at one level


def effects_of(chosen: Chosen, ends: Mapping[int, tuple[float, float] | None]) -> dict[int, EffectDisplay]:
    """The effects of some columns, between the ends of their histograms (None: of levels).

    Empty for spectra, pipelines and models that cannot integrate features out.
    """
    study, model = chosen.study, chosen.final
    assert study.chosen is not None
    if not hasattr(model, "shapley") or study.positions is not None or list(steps_before(study.models[study.chosen])):
        return {}
    of = study.positive_class if len(study.classes) == 2 else None
    labels = {str(label): label for label in model.classes_.tolist()}
    found: dict[int, EffectDisplay] = {}
    started = process_time()
    try:
        table = model._table(study.X if study.raw is None else study.raw)
        for column, between in ends.items():
            grid = None if between is None else np.linspace(*between, N_POINTS)
            found[column] = EffectDisplay._of(model, table, column, None if of is None else labels[of], grid=grid)
            if process_time() - started > SECONDS:
                break
    except ValueError:  # no member accepts missing values
        return {}
    return found


def common_view(effects: Sequence[EffectDisplay]) -> tuple[float, float]:
    """Whole numbers that enclose the log odds of all curves, as far as these are not extreme."""
    every = np.concatenate([np.ravel(part) for each in effects for part in (each.log_odds, each.prior_log_odds)])
    low, high = np.clip([every.min(), every.max()], -MOST_LOG_ODDS, MOST_LOG_ODDS)
    return min(float(np.floor(low)), -1.0), max(float(np.ceil(high)), 1.0)


def drawing(
    effect: EffectDisplay, histogram: Histogram, view: tuple[float, float], curves: Sequence[tuple[int, int]]
) -> Markup:
    """Curves over the bars of the histogram: the code of the class of each, and its number in the effect.

    ``view`` are the log odds at the bottom and top.
    """
    low, high = view

    def height(log_odds: Floats) -> Floats:
        return HEIGHT * (1 - (np.clip(log_odds, low, high) - low) / (high - low))

    place, points = _places(effect, histogram)
    parts = [f'<path class="zero" d="M0 {height(np.zeros(1))[0]:.1f}H{WIDTH:g}"/>']
    for number, (code, curve) in enumerate(curves):
        colour, shift = f"c{code % len(LINES)}", SHIFT * (number - (len(curves) - 1) / 2)
        odds = height(effect.log_odds[points, curve])
        if effect.interval is not None and len(curves) <= MOST_BANDS:
            bottom, top = height(effect.interval[points, curve]).T
            if effect.is_discrete:
                band = "".join(f"M{x + shift:.1f} {a:.1f}V{b:.1f}" for x, a, b in zip(place, bottom, top, strict=True))
                parts.append(f'<path class="bars {colour}" d="{band}"/>')
            else:
                band = _line(place, bottom) + _line(place[::-1], top[::-1]).replace("M", "L") + "Z"
                parts.append(f'<path class="band {colour}" d="{band}"/>')
        if effect.is_discrete:
            dots = "".join(f"M{x + shift:.1f} {y:.1f}h0" for x, y in zip(place, odds, strict=True))
            parts.append(f'<path class="points {colour}" d="{dots}"/>')
        else:
            parts.append(f'<path class="curve {colour}" d="{_line(place, odds)}"/>')
        if len(curves) == 1:
            prior = height(effect.prior_log_odds)[curve]
            parts.append(f'<path class="without {colour}" d="M0 {prior:.1f}H{WIDTH:g}"/>')
    parts.append(_rug(effect, histogram))
    label = escape(f"Log odds given {effect.name} alone, from {low:.1f} to {high:.1f}")
    return Markup(
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _places(effect: EffectDisplay, histogram: Histogram) -> tuple[Floats, list[int]]:
    """Where points are drawn, and which: those of the levels that have bars of their own."""
    n = len(effect.values)
    if not effect.is_discrete:
        return np.linspace(0, WIDTH, n), list(range(n))
    known = {str(value): point for point, value in enumerate(effect.values)}
    bars = [(bar, known[label]) for bar, label in enumerate(histogram.labels) if label in known]
    return np.array([(bar + 0.5) * WIDTH / len(histogram.labels) for bar, _ in bars]), [point for _, point in bars]


def _rug(effect: EffectDisplay, histogram: Histogram) -> str:
    """Ticks at observed values, of which the outermost are beyond the ends."""
    if effect.is_discrete or effect.rug is None or histogram.ends is None:
        return ""
    low, high = histogram.ends
    at = effect.rug[np.linspace(0, len(effect.rug) - 1, min(MOST_RUG, len(effect.rug))).astype(int)]
    at = WIDTH * np.clip((at - low) / (high - low), 0, 1)
    ticks = "".join(f"M{x:.1f} {HEIGHT:g}v-3" for x in np.unique(at.round(1)))
    return f'<path class="rug" d="{ticks}"/>'


def _line(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.4g} {b:.1f}" for a, b in zip(x, y, strict=True))


def save_effects(effects: Sequence[EffectDisplay], album: Album) -> None:
    """The effects as files for a paper, if the album has a folder."""
    if album.folder is None or not effects:
        return
    n_columns = min(3, len(effects))
    n_rows = -(-len(effects) // n_columns)

    def draw(axes: Any) -> None:
        flat = np.ravel(axes)
        for effect, ax in zip(effects, flat, strict=False):
            effect.plot(ax)
        share_view(effects, flat, n_columns)

    layout: dict[str, Any] = {"nrows": n_rows, "ncols": n_columns, "sharey": True, "squeeze": False}
    album.add("effects", "Effects of features", draw, (WHOLE, 2.4 * n_rows), **layout)
