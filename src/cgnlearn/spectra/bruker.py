"""Bruker flex spectra: the file ``fid`` of intensities and its parameters, ``acqu`` or ``acqus``."""

from __future__ import annotations

import re

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

_PARAMETER = re.compile(r"^##\$?(\.?[\w ]+)= *(.*?) *$", flags=re.MULTILINE)
_HPC = re.compile(
    r"VectorDouble +\d+ +(?P<coefficients>.*?) +c2 .*? minMass +(?P<lightest>\S+) +maxMass +(?P<heaviest>\S+)",
    re.DOTALL,
)
MAX_POINTS = 10_000_000


def parse(fid: bytes, acqu: bytes, name: str) -> Spectrum:
    """Parse the content of ``fid`` and its parameters; ``name`` is the spectrum's name in messages.

    The flight time t in ns of an ion is t = ML2 + √(10¹² / ML1) √(m/z) + ML3 (m/z) (Titulaer et al. 2006, BMC
    Bioinformatics 7:403), and that of point i is DELAY + i DW. High precision calibration subtracts a polynomial of
    m/z between two limits; beyond them the correction fades as exp(-d²), d in Da, as in the vendor's export.
    """
    parameters = dict(_PARAMETER.findall(acqu.decode("latin-1").replace("\r\n", "\n")))
    ml1, ml2, ml3 = (_number(parameters, key, name) for key in ("ML1", "ML2", "ML3"))
    delay, dwell = (_number(parameters, key, name) for key in ("DELAY", "DW"))
    n_points = int(_number(parameters, "TD", name))
    if not 0 < n_points <= MAX_POINTS:
        raise SpectrumError(f"{name}: its parameter TD is {n_points} points: the limit is {MAX_POINTS}")
    if len(fid) < 4 * n_points:
        raise SpectrumError(f"{name}: fid has {len(fid)} bytes, too few for {n_points} points: copy it again")
    order = ">" if _number(parameters, "BYTORDA", name) == 1 else "<"
    intensity = np.frombuffer(fid, dtype=f"{order}i4", count=n_points).astype(np.float64)
    elapsed = delay + dwell * np.arange(n_points, dtype=np.float64) - ml2
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slope = np.sqrt(1e12 / ml1)
        # This form of the quadratic's root is stable where ML3 is small or zero.
        root = 2 * elapsed / (slope + np.sqrt(slope**2 + 4 * ml3 * elapsed))
    if not np.isfinite(root).all():
        constants = f"ML1 {ml1:g}, ML2 {ml2:g}, ML3 {ml3:g}"
        raise SpectrumError(f"{name}: its calibration ({constants}) is invalid: copy it again")
    mz = root * np.abs(root)  # negative before time ML2, which keeps the axis in ascending order
    if parameters.get("HPClUse") == "yes":
        mz = _with_high_precision(mz, parameters, name)
    metadata = {"file": name}
    for key, parameter in (("spot", "SPOTNO"), ("id", "ID_raw"), ("date", "AQ_DATE")):
        if value := parameters.get(parameter, "").strip("<> "):
            metadata[key] = value
    return Spectrum(mz, intensity, metadata)


def _with_high_precision(mz: Floats, parameters: dict[str, str], name: str) -> Floats:
    constants = _HPC.search(parameters.get("HPCStr", ""))
    if constants is None:
        raise SpectrumError(f"{name}: its high precision calibration, parameter HPCStr, is invalid: copy acqu again")
    try:
        coefficients = [float(word) for word in constants["coefficients"].split()]
        lightest, heaviest = float(constants["lightest"]), float(constants["heaviest"])
    except ValueError:
        raise SpectrumError(f"{name}: its parameter HPCStr has an invalid number: copy acqu again") from None
    distance = np.maximum(np.maximum(lightest - mz, mz - heaviest), 0)
    near = distance < 6  # exp(-36) is below the rounding error of any m/z
    corrected = mz.copy()
    corrected[near] -= np.exp(-(distance[near] ** 2)) * np.polynomial.polynomial.polyval(mz[near], coefficients)
    return corrected


def _number(parameters: dict[str, str], key: str, name: str) -> float:
    if key not in parameters:
        raise SpectrumError(f"{name}: its parameters lack {key}: copy acqu (or acqus) again")
    try:
        value = float(parameters[key])
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise SpectrumError(f"{name}: its parameter {key} is {parameters[key][:40]!r}, not a number: copy acqu again")
    return value
