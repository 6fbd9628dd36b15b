"""
From raw spectra to a diagnosis
===============================

Simulated raw time-of-flight spectra of serum with known differences go through the usual preprocessing into a classifier of ordered features.
"""

# %%
# A hundred samples, one spectrum each, with peaks on a baseline, noise and an individual calibration error. Some peaks differ between the classes.
from sklearn.pipeline import make_pipeline

from cgnlearn import Band, CGNClassifier
from cgnlearn.spectra import make_raw_spectra, preset

simulated = make_raw_spectra(100, mass_range=(2000, 12_000), random_state=0)
spectra, labels = simulated.spectra, simulated.target
differ = simulated.effects != 0
print(f"{len(spectra)} spectra of {len(spectra[0].mz)} points; {differ.sum()} peaks differ")

# %%
# One pipeline: trim, square root, smooth, baseline, normalise, bin; then a band whose k and likelihood power are chosen by leave-one-out. Bins are ten m/z wide,
# so that a peak stays in its bin despite the calibration errors.
band = CGNClassifier(Band("cv", k_max=20), sharing=1.0, likelihood_power="cv")
model = make_pipeline(preset("maldi").set_params(bin__width=10.0), band)
model.fit(spectra[:60], labels[:60])
print(f"accuracy on the other forty: {model.score(spectra[60:], labels[60:]):.2f}")

# %%
# Where in the spectrum the evidence is: mean spectra of the classes above and below the axis, contributions beneath.
import numpy as np

from cgnlearn.plots import SpectrumDisplay

steps, classifier = model[:-1], model[-1]
bins = steps.transform(spectra[60:])
mz = np.array([float(name) for name in steps.get_feature_names_out()])
SpectrumDisplay.from_estimator(classifier, bins, labels[60:], mz=mz)

# %%
# The simulated differences:
print("planted peaks at m/z", simulated.peaks[differ].round(0).astype(int).tolist())
