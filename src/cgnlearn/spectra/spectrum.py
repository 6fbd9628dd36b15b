"""A mass spectrum as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SpectrumError(ValueError):
    """What cannot be read, or worked on, as a spectrum; one line that names it.

    Examples
    --------
    >>> try:
    ...     Spectrum([1000.0, 999.0], [3.0, 8.0])
    ... except SpectrumError as error:
    ...     print(error)
    a spectrum: m/z falls at point 2 (1000, then 999): sort the points by m/z
    """


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Intensities along a mass-to-charge axis.

    Parameters
    ----------
    mz : array (points,)
        Finite and not falling.
    intensity : array (points,)
        Finite.
    metadata : mapping
        What is known besides, such as ``file``, ``scan`` and ``sample``.

    Examples
    --------
    >>> spectrum = Spectrum([1000.0, 1000.5, 1001.0], [3.0, 8.0, 2.0], {"sample": "A1"})
    >>> len(spectrum), spectrum.name
    (3, 'A1')
    """

    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __init__(self, mz: ArrayLike, intensity: ArrayLike, metadata: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "metadata", MappingProxyType(dict(metadata or {})))
        for name, values in (("mz", mz), ("intensity", intensity)):
            object.__setattr__(self, name, _read_only(values))
        fault = _fault(self.mz, self.intensity)
        if fault:
            raise SpectrumError(f"{self.name}: {fault}")

    @property
    def name(self) -> str:
        """What to call it in a message: its file and scan, or its sample."""
        file, scan = self.metadata.get("file"), self.metadata.get("scan")
        if file is None:
            return str(self.metadata.get("sample", "a spectrum"))
        return f"{file}" if scan is None else f"{file}, scan {scan}"

    def with_intensity(self, intensity: ArrayLike) -> Spectrum:
        """Other intensities on the same axis."""
        return Spectrum(self.mz, intensity, self.metadata)

    def __len__(self) -> int:
        return len(self.mz)

    def __repr__(self) -> str:
        return f"Spectrum({self.name}: {len(self)} points, m/z {self.mz[0]:.6g} to {self.mz[-1]:.6g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Spectrum, (self.mz, self.intensity, dict(self.metadata))


def _read_only(values: ArrayLike) -> NDArray[np.float64]:
    shared = isinstance(values, np.ndarray) and values.flags.writeable  # its owner may change it yet
    array = np.array(values, dtype=np.float64) if shared else np.asarray(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def _fault(mz: NDArray[np.float64], intensity: NDArray[np.float64]) -> str | None:
    """What is wrong with the points, and what to do."""
    if mz.ndim != 1 or mz.shape != intensity.shape:
        return f"m/z has the shape {mz.shape} and the intensities {intensity.shape}: give two equally long columns"
    if not len(mz):
        return "it has no points: leave it out"
    for what, values in (("m/z", mz), ("intensity", intensity)):
        bad = ~np.isfinite(values)
        if bad.any():
            return f"the {what} of point {int(np.argmax(bad)) + 1} is not a finite number: correct it"
    falls = np.diff(mz) < 0
    if falls.any():
        at = int(np.argmax(falls)) + 2
        return f"m/z falls at point {at} ({mz[at - 2]:.8g}, then {mz[at - 1]:.8g}): sort the points by m/z"
    return None
