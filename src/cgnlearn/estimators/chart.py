"""Members and their weights as a small bar chart in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MOST_BARS = 12
WIDTH = 160  # pixels of the heaviest


def bars(names: Sequence[str], weights: Sequence[float]) -> str:
    """A table with a bar for each member, the heaviest first, and one line for all that follow.

    Examples
    --------
    >>> bars(["tan"], [1.0]).count("<tr>")
    1
    """
    shown = list(zip(names, weights, strict=True))
    if len(shown) > MOST_BARS:
        rest = sum(weights[MOST_BARS:])
        shown = [*shown[:MOST_BARS], (f"{len(names) - MOST_BARS} more", rest)]
    longest = max(weights, default=1.0)
    cell = "padding: 0 .5em; text-align: left; font-size: .9em"
    rows = "".join(
        f'<tr><td style="{cell}">{escape(name)}</td><td style="{cell}">{weight:.3f}</td><td style="{cell}">'
        f'<div style="height: .7em; width: {WIDTH * min(weight / longest, 1.0):.0f}px; background: #4477aa"></div>'
        "</td></tr>"
        for name, weight in shown
    )
    return f'<table style="border-collapse: collapse; margin: .5em 0"><tbody>{rows}</tbody></table>'
