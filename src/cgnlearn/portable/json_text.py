"""JSON as files hold it."""

from __future__ import annotations

import json
from typing import Any


def as_json(value: Any) -> str:
    """JSON without spaces, in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
