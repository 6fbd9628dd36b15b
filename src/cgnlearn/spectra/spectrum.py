"""A mass spectrum, immutable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SpectrumError(ValueError):
    """A spectrum that cannot be read or processed; the message is one line that names it.

    Examples
    --------
    >>> try:
    ...     Spectrum([1000.0, 999.0], [3.0, 8.0])
    ... except SpectrumError as error:
    ...     print(error)
    a spectrum: m/z decreases at point 2 (1000, then 999): sort the points by m/z
    """


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Intensities along a mass-to-charge axis.

    Parameters
    ----------
    mz : array (points,)
        Finite, in ascending order.
    intensity : array (points,)
        Finite.
    metadata : mapping
        Further information, such as ``file``, ``scan`` and ``sample``.

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
            is_shared = isinstance(values, np.ndarray) and values.flags.writeable  # its owner may still change it
            array = np.array(values, dtype=np.float64) if is_shared else np.asarray(values, dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        fault = _fault(self.mz, self.intensity)
        if fault:
            raise SpectrumError(f"{self.name}: {fault}")

    @property
    def name(self) -> str:
        """Its file and scan, or its sample, as used in messages."""
        file, scan = self.metadata.get("file"), self.metadata.get("scan")
        if file is None:
            return str(self.metadata.get("sample", "a spectrum"))
        return f"{file}" if scan is None else f"{file}, scan {scan}"

    def with_intensity(self, intensity: ArrayLike) -> Spectrum:
        """Return a spectrum with other intensities on the same axis."""
        return Spectrum(self.mz, intensity, self.metadata)

    def __len__(self) -> int:
        return len(self.mz)

    def __repr__(self) -> str:
        return f"Spectrum({self.name}: {len(self)} points, m/z {self.mz[0]:.6g} to {self.mz[-1]:.6g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Spectrum, (self.mz, self.intensity, dict(self.metadata))


def extra(module: str) -> Any:
    """Import a module of the packages that ``cgnlearn[spectra]`` installs."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module} ({error}): pip install 'cgnlearn[spectra]'") from error


def first_and_count(names: Sequence[str]) -> str:
    """The first name and the number of others, for a warning about several spectra."""
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _fault(mz: NDArray[np.float64], intensity: NDArray[np.float64]) -> str | None:
    """Why the points are no spectrum and what to do, or None."""
    if mz.ndim != 1 or mz.shape != intensity.shape:
        return f"m/z has shape {mz.shape} and intensity {intensity.shape}: give two columns of equal length"
    if not len(mz):
        return "it has no points: remove it"
    for what, values in (("m/z", mz), ("intensity", intensity)):
        bad = ~np.isfinite(values)
        if bad.any():
            return f"the {what} of point {int(np.argmax(bad)) + 1} is not a finite number: correct it"
    decreases = np.diff(mz) < 0
    if decreases.any():
        at = int(np.argmax(decreases)) + 2
        return f"m/z decreases at point {at} ({mz[at - 2]:.8g}, then {mz[at - 1]:.8g}): sort the points by m/z"
    return None
