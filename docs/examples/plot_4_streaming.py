"""
More samples than memory
=====================

All that is kept of the training data are sums, so a model over many files is a sum over them, and equals the model of all samples at once.
"""

# %%
# Four files, as four days would leave them.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from cgnlearn import CGNClassifier, fit_stream, predict_stream
from cgnlearn.datasets import make_waveform

folder = Path(tempfile.mkdtemp())
X, y = make_waveform(20_000, random_state=0)
columns = [f"t{i}" for i in range(X.shape[1])]
for day, rows in enumerate(np.array_split(np.arange(len(X)), 4)):
    frame = pd.DataFrame(X[rows], columns=columns).assign(wave=y[rows])
    frame.to_parquet(folder / f"day{day}.parquet")

# %%
# Read batch by batch; only one is in memory.
model = fit_stream(CGNClassifier("tan"), folder, "wave")
whole = CGNClassifier("tan").fit(pd.DataFrame(X, columns=columns), y)
streamed = np.concatenate([np.asarray(part) for part in predict_stream(model, folder)])
print(
    "greatest difference from the fit to all samples:",
    f"{abs(streamed - whole.predict_proba(pd.DataFrame(X, columns=columns))).max():.0e}",
)

# %%
# And on, day after day, with the past fading: samples of the day before count 0.9 times as much.
from sklearn.metrics import log_loss

later = CGNClassifier("naive_bayes")
losses = []
for rows in np.array_split(np.arange(len(X)), 40):
    if losses or hasattr(later, "classes_"):
        losses.append(log_loss(y[rows], later.predict_proba(X[rows])))
    later.partial_fit(X[rows], y[rows], classes=[0, 1, 2], decay=0.9)

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(losses)
axes.set(xlabel="batch", ylabel="log loss of the next batch")
