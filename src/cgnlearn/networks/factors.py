"""Triangular factors of scales, and what they make of samples."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from cgnlearn.data.arrays import Floats


def whiten(factor: Floats, residual: Floats) -> Floats:
    """L⁻¹ times (members, samples), which is overwritten."""
    # Seen in Fortran's order, C's (members, samples) is (samples, members) and L is its transpose: no copies are made.
    white: Floats = dtrsm(1.0, factor.T, residual.T, side=1, overwrite_b=1).T
    return white


def factorised(scale: Floats, *, always: bool) -> Floats:
    """Lower Cholesky factors of stacked matrices.

    A matrix that rounding has made singular gets a little more of its diagonal if ``always``; else its factor ends
    in zeros from the member on at which it broke down.
    """
    if scale.shape[-1] == 1:
        return np.sqrt(np.maximum(scale, 0.0))
    try:
        return np.linalg.cholesky(scale).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        pass
    factor = np.empty_like(scale)
    for at in np.ndindex(scale.shape[:-2]):
        found, broken = dpotrf(scale[at], lower=1, clean=1)
        more = np.finfo(float).eps
        while broken and always:
            more *= 8
            found, broken = dpotrf(scale[at] + more * np.diag(np.diagonal(scale[at])), lower=1, clean=1)
        if broken:
            found[:, broken - 1 :] = 0.0
        factor[at] = found
    return factor


def sums_before(terms: Floats, axis: int = -1) -> Floats:
    """Sums over the members before each one."""
    # Not the sums with each one less itself: a huge term would swallow the small ones before it.
    terms = np.moveaxis(terms, axis, 0)
    sums = np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=sums[1:])
    return np.moveaxis(sums, 0, axis)
