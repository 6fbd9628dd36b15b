"""Figures as SVG inside a page, in its light or dark colours, and as files for a paper."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from cgnlearn.plots.style import GREY, INK, LINES, TINT

HALF, WHOLE, PHONE = 4.3, 8.9, 4.0  # widths in inches
VARIABLES = {colour: f"--line{i}" for i, colour in enumerate(LINES)} | {GREY: "--grey", INK: "--ink", TINT: "--tint"}
ENDINGS = ("svg", "pdf")  # of the files

_LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays searchable
    "pdf.fonttype": 42,  # and can be edited
    "text.parse_math": False,  # a column may be called $x$
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.edgecolor": GREY,
    **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color", "text.color"), INK),
}


class Album:
    """The figures of one part of a page; ``folder``, if any, gets a file of each."""

    def __init__(self, anchor: str, folder: Path | None = None) -> None:
        self.anchor, self.folder = anchor, folder

    def add(
        self,
        name: str,
        description: str,
        draw: Callable[[Any], object],
        size: tuple[float, float],
        *,
        is_saved: bool = True,
        **layout: Any,
    ) -> tuple[Markup, Any]:
        """Draw on new axes; return the SVG element, its ids unique by ``name``, and the axes."""
        import matplotlib as mpl
        from matplotlib.figure import Figure

        unique = f"{self.anchor}-{name}"
        with mpl.rc_context({**_LOOK, "svg.hashsalt": unique}):
            figure = Figure(figsize=size, layout="constrained")
            axes = figure.subplots(**layout)
            draw(axes)
            buffer = io.StringIO()
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(buffer, format="svg", transparent=True, dpi=200, metadata=nothing)
            if self.folder is not None and is_saved:
                self.folder.mkdir(parents=True, exist_ok=True)
                for ending in ENDINGS:
                    none = {"Date": None} if ending == "svg" else {"CreationDate": None}
                    figure.savefig(self.folder / f"{name}.{ending}", dpi=300, metadata=none)
        return _in_page(buffer.getvalue(), unique, description), axes


def _in_page(text: str, name: str, description: str) -> Markup:
    """An SVG file as an element whose colours are those of the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#{name}-", text)
    opening, _, content = text.partition(">")
    content = re.sub(
        r'(?<=[:"] )#[0-9a-f]{6}|(?<=:)#[0-9a-f]{6}',
        lambda found: f"var({VARIABLES[found[0]]})" if found[0] in VARIABLES else found[0],
        content,
    )
    content = re.sub(r'(?<=\bd=")[^"]+', lambda found: _short(found[0]), content)
    view = re.findall(r'viewBox="[^"]+"', opening)[0]
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {view} '
        f'role="img" aria-label="{escape(description)}">{content}'
    )


def _short(path: str) -> str:
    """A path with two decimals, a hundredth of a point, and no more spaces than it needs."""
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", re.sub(r"(\.\d\d)\d+", r"\1", path)).strip()
