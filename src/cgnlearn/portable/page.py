"""The calculator: one HTML page that predicts in a browser, without Python and without a network."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from cgnlearn.portable.networks import Description
from cgnlearn.portable.packing import as_json, packed


def resource(name: str) -> str:
    """The text of a file of this package."""
    return files("cgnlearn.portable").joinpath("readers", name).read_text("utf-8")


def page(description: Description) -> str:
    """The page with the portable description inside."""
    parts = {
        "%TITLE%": escape(description["title"] or "Calculator"),
        "%STYLE%": resource("calculator.css"),
        # Nothing in the description may end the element in which it stands.
        "%MODEL%": as_json(packed(description)).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        "%READER%": resource("reader.js"),
        "%INTERVALS%": resource("intervals.js"),
        "%CALCULATOR%": resource("calculator.js"),
    }
    text, rest = "", resource("calculator.html")
    for mark, part in parts.items():  # in their order: a part may hold the mark of another
        before, _, rest = rest.partition(mark)
        text += before + part
    return text + rest
