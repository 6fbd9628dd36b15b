"""Chains of steps that go by a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from cgnlearn.spectra.binning import Bin
from cgnlearn.spectra.spectrum import Spectrum
from cgnlearn.spectra.steps import Align, Baseline, Normalise, Smooth, SpectraTransformer, SquareRoot, Step, Trim

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


def flat(model: Any) -> list[tuple[str, Any]]:
    """The steps of a pipeline, those of pipelines within it among them; a model that is none is one step."""
    if not isinstance(model, Pipeline):
        return [("", model)]
    return [
        (name if not inner else f"{name}-{inner}", step) for name, part in model.steps for inner, step in flat(part)
    ]


def takes_spectra(model: Any) -> bool:
    """Whether a model is a pipeline from spectra on."""
    return isinstance(flat(model)[0][1], SpectraTransformer)


def parted(steps: Pipeline) -> tuple[list[Step], Pipeline]:
    """The first steps, as long as they learn nothing, and the others.

    What learns nothing may be done once for all spectra before they are cut into folds.

    Examples
    --------
    >>> first, others = parted(preset("maldi"))
    >>> len(first), list(others.named_steps)
    (5, ['bin'])
    """
    n_first = next((i for i, (_, step) in enumerate(steps.steps) if not isinstance(step, Step) or step.learns), 0)
    return [step for _, step in steps.steps[:n_first]], steps[n_first:]


def one_by_one(steps: Sequence[Step], spectra: Iterable[Spectrum]) -> Iterator[Spectrum]:
    """Spectra after some steps, one after another, so that few of them are in memory at once."""
    for spectrum in spectra:
        for step in steps:
            (spectrum,) = step.transform([spectrum])
        yield spectrum
