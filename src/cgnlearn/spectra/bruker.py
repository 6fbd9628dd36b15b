"""Bruker flex spectra: a file ``fid`` of intensities beside its parameters, ``acqu`` or ``acqus``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

Floats = NDArray[np.floating[Any]]

_PARAMETER = re.compile(r"^##\$?(\.?[\w ]+)= *(.*?) *$", flags=re.MULTILINE)
_HPC = re.compile(
    r"VectorDouble +\d+ +(?P<coefficients>.*?) +c2 .*? minMass +(?P<lightest>\S+) +maxMass +(?P<heaviest>\S+)",
    re.DOTALL,
)
MOST_POINTS = 10_000_000


def parse(fid: bytes, acqu: bytes, name: str) -> Spectrum:
    """The spectrum of a ``fid`` and its parameters.

    The time of flight t, in ns, and m/z are tied by t = ML2 + √(10¹² / ML1) √(m/z) + ML3 (m/z) (Titulaer et al. 2006,
    BMC Bioinformatics 7:403), and point i was measured at DELAY + i DW. Where high precision calibration is in use, a
    polynomial of that m/z is subtracted from it between two limits; beyond them the vendor's own export lets the
    correction fade as exp(-d²), d in Da, and so do we.

    Parameters
    ----------
    fid, acqu : bytes
        The content of the two files.
    name : str
        What to call the spectrum in messages.
    """
    parameters = dict(_PARAMETER.findall(acqu.decode("latin-1").replace("\r\n", "\n")))
    found = {key: _number(parameters, key, name) for key in ("ML1", "ML2", "ML3", "DELAY", "DW", "TD")}
    n_points = int(found["TD"])
    if not 0 < n_points <= MOST_POINTS:
        raise SpectrumError(f"{name}: its parameter TD says {n_points} points: at most {MOST_POINTS} are read")
    if len(fid) < 4 * n_points:
        raise SpectrumError(
            f"{name}: fid has {len(fid)} bytes, not the {4 * n_points} of {n_points} points: copy it anew"
        )
    order = ">" if _number(parameters, "BYTORDA", name) == 1 else "<"
    intensity = np.frombuffer(fid, dtype=f"{order}i4", count=n_points).astype(np.float64)
    mz = _masses(
        found["DELAY"] + found["DW"] * np.arange(n_points, dtype=np.float64),
        found["ML1"],
        found["ML2"],
        found["ML3"],
        name,
    )
    if parameters.get("HPClUse") == "yes":
        mz = _precisely(mz, parameters, name)
    metadata = {
        "spot": _text(parameters, "SPOTNO"),
        "id": _text(parameters, "ID_raw"),
        "date": _text(parameters, "AQ_DATE"),
    }
    return Spectrum(mz, intensity, {"file": name} | {key: value for key, value in metadata.items() if value})


def _masses(time: Floats, ml1: float, ml2: float, ml3: float, name: str) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slope = np.sqrt(1e12 / ml1)
        past = time - ml2
        # The root of the quadratic that stays right where its coefficient, ML3, is small or zero.
        root = 2 * past / (slope + np.sqrt(slope**2 + 4 * ml3 * past))
    if not np.isfinite(root).all():
        raise SpectrumError(f"{name}: its calibration (ML1 {ml1:g}, ML2 {ml2:g}, ML3 {ml3:g}) gives no masses")
    return root * np.abs(root)  # before the ions start m/z is negative, and rises all the same


def _precisely(mz: Floats, parameters: dict[str, str], name: str) -> Floats:
    constants = _HPC.search(parameters.get("HPCStr", ""))
    if constants is None:
        raise SpectrumError(f"{name}: it asks for high precision calibration, but its parameter HPCStr cannot be read")
    try:
        coefficients = [float(word) for word in constants["coefficients"].split()]
        lightest, heaviest = float(constants["lightest"]), float(constants["heaviest"])
    except ValueError:
        raise SpectrumError(f"{name}: its parameter HPCStr holds what is no number: copy acqu anew") from None
    beyond = np.maximum(np.maximum(lightest - mz, mz - heaviest), 0)
    near = beyond < 6  # exp(-36) is below the rounding of any m/z
    corrected = mz.copy()
    corrected[near] -= np.exp(-(beyond[near] ** 2)) * np.polynomial.polynomial.polyval(mz[near], coefficients)
    return corrected


def _number(parameters: dict[str, str], key: str, name: str) -> float:
    if key not in parameters:
        raise SpectrumError(f"{name}: its parameters lack {key}: copy acqu (or acqus) anew")
    try:
        value = float(parameters[key])
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise SpectrumError(f"{name}: its parameter {key} is {parameters[key][:40]!r}, which is no number")
    return value


def _text(parameters: dict[str, str], key: str) -> str:
    return parameters.get(key, "").strip("<> ")
