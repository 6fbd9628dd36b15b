"""Cholesky factors of scales, and whitening by them."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from cgnlearn.data.arrays import Floats

FEW_MEMBERS = 8  # of a block, which are whitened one after another for all blocks; more are block by block


def whiten(factor: Floats, residual: Floats) -> Floats:
    """L⁻¹ times residuals (members, samples), which are overwritten."""
    # Transposed, arrays in C's order are in Fortran's order: no copies are made.
    white: Floats = dtrsm(1.0, factor.T, residual.T, side=1, overwrite_b=1).T
    return white


def whitened(factor: Floats, residual: Floats) -> Floats:
    """L⁻¹ times residuals (…, members, samples), which are overwritten."""
    size = residual.shape[-2]
    if size > FEW_MEMBERS:
        for at in np.ndindex(residual.shape[:-2]):
            residual[at] = whiten(factor[at], residual[at])
        return residual
    for member in range(size):
        own = residual[..., member, :]
        if member:
            own -= np.einsum("...m,...ms->...s", factor[..., member, :member], residual[..., :member, :])
        own /= factor[..., member, member, None]
    return residual


def factorised(scale: Floats, *, always: bool) -> Floats:
    """Lower Cholesky factors of stacked matrices.

    If rounding has made a matrix singular, a small multiple of its diagonal is added to it if ``always``; otherwise
    the factor has zeros from the member on at which factorisation failed.
    """
    if scale.shape[-1] == 1:
        return np.sqrt(np.maximum(scale, 0.0))
    try:
        return np.linalg.cholesky(scale).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        pass
    factor = np.empty_like(scale)
    for at in np.ndindex(scale.shape[:-2]):
        factor[at], failed = dpotrf(scale[at], lower=1, clean=1)
        multiple = np.finfo(float).eps
        while failed and always:
            multiple *= 8
            factor[at], failed = dpotrf(scale[at] + multiple * np.diag(np.diagonal(scale[at])), lower=1, clean=1)
        if failed:
            factor[at][:, failed - 1 :] = 0.0
    return factor


def sums_before(terms: Floats, axis: int = -1) -> Floats:
    """Sums over the members before each one."""
    # Not by subtracting each term from the running sum: a huge term would cancel the small ones before it.
    terms = np.moveaxis(terms, axis, 0)
    sums = np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=sums[1:])
    return np.moveaxis(sums, 0, axis)
