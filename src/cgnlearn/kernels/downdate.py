"""The downdate of exact leave-one-out: leverages of a sample in the posterior without it.

Removing a sample of class k and weight u changes a conjugate posterior by rank one. With e the sample less the centre
of its own class, a = κ'/(κ' - u) and s = 1 for the own class, the sharing for others, the scale of class c becomes
Ψ' - s u a e eᵀ; ``loss`` is s u a. All else follows from three products in the metric of Ψ': q_kk = eᵀΨ'⁻¹e,
q_ck = e_cᵀΨ'⁻¹e and q_cc = e_cᵀΨ'⁻¹e_c, with e_c the sample less the centre of class c.

The functions take arrays; the kernels compile the same source for numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.limits import LEAST_LEFT


def left_of_determinant(loss: Any, q_kk: Any) -> Any:
    """g: the share of |Ψ'| that is left."""
    return np.maximum(1.0 - loss * q_kk, LEAST_LEFT)


def own_leverage(before: Any, growth: Any, q_kk: Any, g: Any) -> Any:
    """h g after a block in the own class, from h before it; the centre moves away by a factor a = ``growth``."""
    return before * g + growth * growth * q_kk


def other_leverage(before: Any, loss: Any, q_cc: Any, q_ck: Any, g: Any) -> Any:
    """h g after a block in another class."""
    return (before + q_cc) * g + loss * (q_ck * q_ck)
