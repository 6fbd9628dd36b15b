"""From raw spectra to a table of features: reading, preprocessing, binning, peaks and simulation."""

from cgnlearn.spectra.binning import Bin, Peaks
from cgnlearn.spectra.driams import Driams, read_driams
from cgnlearn.spectra.presets import preset
from cgnlearn.spectra.readers import read, stream
from cgnlearn.spectra.replicates import OfSamples, by_sample, replicate_correlation, sample_ids
from cgnlearn.spectra.simulation import RawSpectra, make_raw_spectra
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError
from cgnlearn.spectra.steps import Align, Baseline, Normalise, Smooth, SquareRoot, Trim

__all__ = [
    "Align",
    "Baseline",
    "Bin",
    "Driams",
    "Normalise",
    "OfSamples",
    "Peaks",
    "RawSpectra",
    "Smooth",
    "Spectrum",
    "SpectrumError",
    "SquareRoot",
    "Trim",
    "by_sample",
    "make_raw_spectra",
    "preset",
    "read",
    "read_driams",
    "replicate_correlation",
    "sample_ids",
    "stream",
]
