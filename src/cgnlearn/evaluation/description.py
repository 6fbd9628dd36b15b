"""Descriptions of models that are the same in every process, by which results in a folder are recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def description(value: Any) -> str:
    """A model as text: all parameters by name, functions by their qualified names, arrays by their checksums.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> description(DummyClassifier(strategy="prior"))
    "DummyClassifier(constant=None, random_state=None, strategy='prior')"
    >>> description([np.log1p, len, np.zeros(2)])
    '[numpy.log1p, builtins.len, ndarray((2,), float64, 374708fff7719dd5)]'
    """
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes()
        return f"ndarray({value.shape}, {value.dtype}, {hashlib.sha256(content).hexdigest()[:16]})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{description(key)}: {description(of)}' for key, of in value.items())}}}"
    if isinstance(value, list):
        return f"[{_listed(value)}]"
    if isinstance(value, tuple):
        return f"({_listed(value)})"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(description, value)))}}}"
    if isinstance(value, partial):
        return f"partial({description(value.func)}, {description(value.args)}, {description(value.keywords)})"
    if isinstance(value, np.ufunc):
        return f"numpy.{value.__name__}"
    if hasattr(value, "__qualname__"):  # a function or a class
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__qualname__}({_parameters(value)})"


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(map(description, values))


def _parameters(value: Any) -> str:
    """What an object is made of: its parameters, its fields, or its state."""
    if hasattr(value, "get_params"):
        own = value.get_params(deep=False)
    elif is_dataclass(value):
        own = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    else:
        state = value.__getstate__()
        if not isinstance(state, Mapping):
            return description(state)
        own = state
    return ", ".join(f"{name}={description(of)}" for name, of in own.items())
