"""
A calculator for people without Python
======================================

A model becomes one HTML page, which predicts in a browser: on a ward, from a mail attachment, on a phone, without a network.
"""

# %%
# A few measurements of cell nuclei, with their units in the names of the columns, and the mixture.
import tempfile
from base64 import b64encode
from html import escape
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from cgnlearn import CGNClassifierCV, export

data = load_breast_cancer(as_frame=True)
X = data.data[["mean radius", "mean texture", "mean smoothness", "worst area", "worst concavity"]]
X = X.rename(columns={"mean radius": "mean radius (µm)", "worst area": "worst area (µm²)"})
y = data.target.map({0: "malignant", 1: "benign"})
model = CGNClassifierCV(candidates=["naive_bayes", "complete", "logistic"]).fit(X, y)

# %%
# What it is for, and how well it predicts, stands at the top of the page.
log_loss = model.best_.log_loss
about = f"""Malignant or benign, from nuclei of a fine needle aspirate. Learned from {len(X)} women in Wisconsin.

Held-out log loss {log_loss:.2f}. A demonstration: not for use with patients."""
folder = Path(tempfile.mkdtemp())
export(model, folder / "calculator.html", title="Breast mass", about=about)

# %%
# The page itself. Fields may stay empty, the slider is for another prevalence, and values outside of the training samples are marked.


class Shown:
    """A page in a frame, and a link to save it: the file is the whole calculator."""

    def __init__(self, path):
        self.page = path.read_bytes()

    def _repr_html_(self):
        saved = f"data:text/html;base64,{b64encode(self.page).decode()}"
        frame = f'<iframe srcdoc="{escape(self.page.decode())}" title="Calculator" style="width: 100%; height: 50rem; border: 1px solid #ccc"></iframe>'
        return f'<p><a download="calculator.html" href="{saved}">Save this calculator</a></p>{frame}'


Shown(folder / "calculator.html")

# %%
# The same model goes to R and to ONNX runtimes, and any other program can read the JSON.
for name in ("model.json", "model.R"):
    export(model, folder / name)
    print(name, round((folder / name).stat().st_size / 1e3), "kB")
