"""Named pipelines from spectra to features, and their parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from cgnlearn.spectra.binning import Bin
from cgnlearn.spectra.spectrum import Spectrum
from cgnlearn.spectra.steps import Align, Baseline, Normalise, Smooth, SpectraTransformer, SquareRoot, Step, Trim

PRESETS = ("seldi", "maldi", "driams")


def preset(name: str, *, align: bool = False) -> Pipeline:
    """Return a pipeline from raw spectra to features.

    ``"seldi"``: bins of 1 m/z only, as in the paper. ``"maldi"``: m/z 2,000 to 20,000, square roots, Savitzky-Golay
    smoothing, SNIP baseline, total ion current and bins of 3 m/z, as is usual for MALDI-TOF (MALDIquant; DRIAMS).
    ``"driams"``: the 6,000 bins of the DRIAMS data as its scripts make them: square roots, smoothing, SNIP with a half
    window of 20 and once more with 100, total ion current (area 1), then m/z 2,000 to 20,000 and sums over 3 m/z.

    Parameters
    ----------
    name : str
        ``"seldi"``, ``"maldi"`` or ``"driams"``.
    align : bool
        Whether ``"maldi"`` also aligns the spectra by common peaks.

    Returns
    -------
    Pipeline
        ``set_params`` changes its steps, such as ``bin__width=1.0``.

    Examples
    --------
    >>> list(preset("maldi", align=True).named_steps)
    ['trim', 'square_root', 'smooth', 'baseline', 'normalise', 'align', 'bin']
    """
    if align and name in ("seldi", "driams"):
        raise ValueError(f"the preset {name!r} cannot align spectra: use 'maldi', or make your own pipeline")
    if name == "seldi":
        return Pipeline([("bin", Bin(width=1.0))])
    if name == "driams":
        return Pipeline(
            [
                ("square_root", SquareRoot()),
                ("smooth", Smooth(half_window=10)),
                ("baseline", Baseline(half_window=20)),
                ("rest", Baseline(half_window=100)),  # the scripts call MALDIquant twice, the second time as it comes
                ("normalise", Normalise("area")),
                ("trim", Trim(2000.0, 20_000.0)),
                ("bin", Bin(width=3.0, start=2000.0, stop=20_000.0, value="sum")),
            ]
        )
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


def flat(model: Any) -> list[tuple[str, Any]]:
    """The steps of a pipeline and of pipelines within it; any other model is one step."""
    if not isinstance(model, Pipeline):
        return [("", model)]
    return [
        (name if not inner else f"{name}-{inner}", step) for name, part in model.steps for inner, step in flat(part)
    ]


def takes_spectra(model: Any) -> bool:
    """Whether a model is a pipeline that starts with spectra."""
    return isinstance(flat(model)[0][1], SpectraTransformer)


def parted(steps: Pipeline) -> tuple[list[Step], Pipeline]:
    """Split a pipeline into the first steps that learn nothing and the others.

    The former can be applied once to all spectra, before a split into folds.
    """
    n_first = next((i for i, (_, step) in enumerate(steps.steps) if not isinstance(step, Step) or step.learns), 0)
    return [step for _, step in steps.steps[:n_first]], steps[n_first:]


def one_by_one(steps: Sequence[Step], spectra: Iterable[Spectrum]) -> Iterator[Spectrum]:
    """Yield processed spectra one at a time, to save memory."""
    for spectrum in spectra:
        for step in steps:
            (spectrum,) = step.transform([spectrum])
        yield spectrum
