"""From raw spectra to a table of features: reading, the usual steps, binning and peaks, and a simulator."""

from cgnlearn.spectra.readers import read, stream
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

__all__ = ["Spectrum", "SpectrumError", "read", "stream"]
