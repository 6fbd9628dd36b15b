"""The prior over the parameters.

For the continuous features of a cell it is a normal inverse Wishart with location m0, strength κ0 and scale
Ψ0 = diag(s²). For one feature with |pc| continuous parents this is the paper's normal inverse gamma with shape
ρ0 = 1.1 + |pc|/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats

LEAST_SCALE = 1e-8  # of Ψ0 in standard units: duplicate columns must not make Ψ' singular

Location = Literal["pooled", "paper", "cell"]


@dataclass(frozen=True, repr=False)
class Prior:
    """Prior distribution of the parameters.

    Parameters
    ----------
    dirichlet : float
        Pseudo-count of every level of every discrete feature, and of every class.
    strength : float
        κ0, the number of samples that the location counts as.
    shape : float
        Shape of the inverse gamma of a feature without continuous parents; each such parent adds a half.
    location : {"pooled", "paper", "cell"} or array of one value per feature
        Prior means. ``"pooled"``: the mean over all training data; the order of the features inside a group then
        does not matter and the evidence is valid. ``"paper"``: the same for the child, but parents are centred at
        their mean in the cell, as in the paper. ``"cell"``: the mean of the cell.
    scale : "variance", number or array of one value per feature
        The diagonal of Ψ0. ``"variance"``: the variance of the feature over all training data. A number: that
        multiple of it; the greater, the more the slopes shrink towards 0. The least multiple is 1e-8, since rounding
        hides smaller ones.

    Examples
    --------
    >>> Prior(strength=5.0)
    Prior(strength=5.0)
    """

    dirichlet: float = 0.01
    strength: float = 1.0
    shape: float = 1.1
    location: Location | Sequence[float] = "pooled"
    scale: Literal["variance"] | float | Sequence[float] = "variance"

    def __post_init__(self) -> None:
        for name in ("dirichlet", "strength", "shape"):
            value = getattr(self, name)
            if not _is_positive_number(value):
                raise ValueError(f"the prior's {name} must be a positive number, not {value!r}")
        for name, options in (("location", '"pooled", "paper", "cell"'), ("scale", '"variance", a number')):
            value = getattr(self, name)
            if isinstance(value, str):
                if f'"{value}"' not in options.split(", "):
                    expected = f"{options} or an array of one value per feature"
                    raise ValueError(f"the prior's {name} must be {expected}, not {value!r}")
                continue
            if name == "scale" and np.ndim(value) == 0:
                if not _is_positive_number(value):
                    raise ValueError(f"the prior's scale must be positive, not {value!r}")
                object.__setattr__(self, name, float(value))
                continue
            numbers = np.asarray(value, dtype=float)
            if numbers.ndim != 1 or not np.isfinite(numbers).all():
                raise ValueError(f"the prior's {name} must be one finite number per feature")
            if name == "scale" and not (numbers > 0).all():
                at = int(np.argmin(numbers > 0))
                raise ValueError(f"the prior's scale must be positive, not {numbers[at]} (feature {at})")
            object.__setattr__(self, name, tuple(numbers.tolist()))

    def __repr__(self) -> str:
        changed = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return f"Prior({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in changed)})"

    def check_features(self, n_features: int) -> None:
        """Raise an error if an array does not have one value per feature."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple) and len(value) != n_features:
                raise ValueError(
                    f"the prior's {field.name} has {len(value)} values, but there are {n_features} features: "
                    "give one value per column"
                )

    @property
    def is_coherent(self) -> bool:
        """Whether the location does not depend on the cells, so that the evidence is valid."""
        return self.location not in ("paper", "cell")

    @property
    def multiple(self) -> float | None:
        """The multiple of the variances that Ψ0 is; None: Ψ0 was given as an array."""
        if isinstance(self.scale, tuple):
            return None
        return 1.0 if isinstance(self.scale, str) else max(float(self.scale), LEAST_SCALE)  # type: ignore[arg-type]

    def standard_scale(self, columns: NDArray[np.intp], unit: Floats) -> Floats:
        """The diagonal of Ψ0 for these columns of X (any shape), in standard units."""
        if self.multiple is not None:
            return np.full(columns.shape, self.multiple)
        # In two steps: the square of the unit may overflow.
        return np.maximum(np.array(self.scale)[columns] / unit / unit, LEAST_SCALE)


def _is_positive_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(value) and value > 0)
    except (TypeError, ValueError):
        return False
