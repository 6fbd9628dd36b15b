"""
More samples than memory
========================

A model keeps only sums of the training data, so a model of many files is a sum over the files, and equals the model of all samples at once.
"""

# %%
# Four files, one for each day.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from cgnlearn import CGNClassifier, fit_stream, predict_stream
from cgnlearn.datasets import make_waveform

folder = Path(tempfile.mkdtemp())
X, y = make_waveform(20_000, random_state=0)
columns = [f"t{i}" for i in range(X.shape[1])]
for day, samples in enumerate(np.array_split(np.arange(len(X)), 4)):
    frame = pd.DataFrame(X[samples], columns=columns).assign(wave=y[samples])
    frame.to_parquet(folder / f"day{day}.parquet")

# %%
# Files are read in batches; only one batch is in memory.
model = fit_stream(CGNClassifier("tan"), folder, "wave")
whole = CGNClassifier("tan").fit(pd.DataFrame(X, columns=columns), y)
streamed = np.concatenate([np.asarray(part) for part in predict_stream(model, folder)])
print(
    "greatest difference from the fit to all samples:",
    f"{abs(streamed - whole.predict_proba(pd.DataFrame(X, columns=columns))).max():.0e}",
)

# %%
# Updating with new batches, with decay: at every batch the weight of all earlier samples is multiplied by 0.9.
from sklearn.metrics import log_loss

later = CGNClassifier("naive_bayes")
losses = []
for samples in np.array_split(np.arange(len(X)), 40):
    if losses or hasattr(later, "classes_"):
        losses.append(log_loss(y[samples], later.predict_proba(X[samples])))
    later.partial_fit(X[samples], y[samples], classes=[0, 1, 2], decay=0.9)

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(losses)
axes.set(xlabel="batch", ylabel="log loss of the next batch")
