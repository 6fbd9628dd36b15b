"""Shorter files: long lists of numbers as text, in fixed point and base 64, and what occurs twice held once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
FEWEST = 200  # numbers that are packed; fewer stay legible
# Base-64 digits of numbers that move the ends of intervals only; whole numbers have as many as they need.
DIGITS_OF = {"directions": 4, "member_weights": 4, "draws": 5, "counts": 0}
SHORTEST = 80  # signs of what is held once


def as_json(value: Any) -> str:
    """JSON without spaces, in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def packed(description: dict[str, Any]) -> dict[str, Any]:
    """A description as files hold it; readers undo it first."""
    short = _packed(description)
    counts: Counter[str] = Counter()
    _count(short, counts)
    shared: dict[str, Any] = {}
    found: dict[str, Any] = {key: _shared(part, counts, shared) for key, part in short.items()}
    return found | {"shared": list(shared.values())}


def _packed(value: Any) -> Any:
    if isinstance(value, dict):
        of_key = ((key, part, DIGITS_OF.get(key)) for key, part in value.items())
        return {key: _packed(part) if digits is None else _as_text(part, digits) for key, part, digits in of_key}
    return [_packed(part) for part in value] if isinstance(value, list) else value


def _as_text(value: Any, digits: int) -> Any:
    """A list of numbers as text, if it is long enough and they are of the kind."""
    numbers = np.array(value)
    if numbers.size < FEWEST or numbers.dtype.kind not in ("iuf" if digits else "iu"):
        return value
    least, step = 0.0, 1.0
    if digits:
        least = float(numbers.min())
        step = float(np.ptp(numbers)) / (64**digits - 1) or 1.0
    whole = np.rint((numbers.ravel() - least) / step).astype(np.int64)
    while not digits or whole.max() >= 64**digits:
        digits += 1
    signs = np.array(list(ALPHABET))
    text = "".join(signs[whole[:, None] // 64 ** np.arange(digits - 1, -1, -1) % 64].ravel())
    return {"packed": text, "digits": digits, "least": least, "step": step, "shape": list(numbers.shape)}


def _count(value: Any, counts: Counter[str]) -> None:
    """Count the parts that are equal; those of a part that was there are not counted again."""
    if isinstance(value, dict | list):
        text = as_json(value)
        if len(text) < SHORTEST:
            return
        counts[text] += 1
        if counts[text] == 1:
            for part in value.values() if isinstance(value, dict) else value:
                _count(part, counts)


def _shared(value: Any, counts: Counter[str], shared: dict[str, Any]) -> Any:
    if not isinstance(value, dict | list):
        return value
    text = as_json(value)
    inner: Any
    if text in shared:
        return {"shared": list(shared).index(text)}
    if isinstance(value, dict):
        inner = {key: _shared(part, counts, shared) for key, part in value.items()}
    else:
        inner = [_shared(part, counts, shared) for part in value]
    if counts[text] < 2:
        return inner
    shared[text] = inner
    return {"shared": len(shared) - 1}
