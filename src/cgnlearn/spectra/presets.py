"""Chains of steps that go by a name."""

from __future__ import annotations

from sklearn.pipeline import Pipeline

from cgnlearn.spectra.binning import Bin
from cgnlearn.spectra.steps import Align, Baseline, Normalise, Smooth, SquareRoot, Trim

PRESETS = ("seldi", "maldi")


def preset(name: str, *, align: bool = False) -> Pipeline:
    """The steps from raw spectra to features.

    ``"seldi"``: bins of 1 m/z, as in the paper, and nothing else. ``"maldi"``: m/z 2,000 to 20,000, square roots,
    Savitzky-Golay, SNIP, total ion current, bins of 3 m/z, as is usual for MALDI-TOF (MALDIquant; DRIAMS).

    Parameters
    ----------
    name : str
        ``"seldi"`` or ``"maldi"``.
    align : bool
        Whether ``"maldi"`` also aligns the spectra by peaks that they have in common.

    Returns
    -------
    Pipeline
        Of lists of spectra; ``set_params`` changes a step, such as ``bin__width=1.0``.

    Examples
    --------
    >>> list(preset("maldi", align=True).named_steps)
    ['trim', 'square_root', 'smooth', 'baseline', 'normalise', 'align', 'bin']
    """
    if name == "seldi":
        if align:
            raise ValueError("the preset 'seldi' has no peaks to align by: use 'maldi', or make your own pipeline")
        return Pipeline([("bin", Bin(width=1.0))])
    if name != "maldi":
        raise ValueError(f"there is no preset {name!r}: choose one of {', '.join(PRESETS)}")
    return Pipeline(
        [
            ("trim", Trim(2000.0, 20_000.0)),
            ("square_root", SquareRoot()),
            ("smooth", Smooth()),
            ("baseline", Baseline()),
            ("normalise", Normalise("tic")),
            *([("align", Align())] if align else []),
            ("bin", Bin(width=3.0)),
        ]
    )
