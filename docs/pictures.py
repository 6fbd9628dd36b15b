"""Pictures of the guide's pages: `python docs/pictures.py [NAME ...]` writes docs/images.

Pages that are looked at in a browser (report, calculator) need chromium, and are skipped without it.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine

from cgnlearn import Band, CGNClassifier, CGNClassifierCV, export, plan, report, validate
from cgnlearn.plots import (
    ContributionsDisplay,
    DecisionCurveDisplay,
    EffectDisplay,
    LearningCurveDisplay,
    PathDisplay,
    ReliabilityDisplay,
    StructureDisplay,
    SubgroupsDisplay,
)
from cgnlearn.reporting.spectra_quality import write_spectra_report
from cgnlearn.spectra import make_raw_spectra
from cgnlearn.spectra.folders import Folder
from cgnlearn.spectra.inspection import inspected

IMAGES = Path(__file__).parent / "images"
NAMES = ["mean radius", "mean texture", "mean smoothness", "worst area", "worst concavity", "worst symmetry"]


def tumours():
    """57 women to learn from, and the others: six measurements and the diagnosis."""
    data = load_breast_cancer(as_frame=True)
    X, y = data.data[NAMES], pd.Series(data.target_names[data.target])
    train = np.arange(len(X)) % 10 == 0
    return X[train], y[train], X[~train], y[~train]


def model_of_tumours():
    """A model of them, with its new samples."""
    X, y, new, truth = tumours()
    return CGNClassifier("complete", sharing=1.0).fit(X, y), new, truth


def axes(width=7.0, height=3.6):
    """An empty figure."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def certainty():
    """The probabilities of some women, with 90% intervals."""
    model, new, _ = model_of_tumours()
    some = new.iloc[:400:16]
    proba, interval = model.predict_proba(some)[:, 1], model.predict_interval(some)[:, 1]
    order = np.argsort(proba)
    ax = axes()
    ax.vlines(range(len(order)), *interval[order].T, color="0.7", lw=4)
    ax.plot(proba[order], "o", color="C0", ms=5)
    ax.set(xlabel="25 women, sorted", ylabel="probability of a malignant tumour", xticks=[], ylim=(-0.02, 1.02))


def shapley():
    """Why this probability, as a waterfall."""
    model, new, _ = model_of_tumours()
    ContributionsDisplay.from_estimator(model, new.iloc[[37]], method="shapley", ax=axes())


def effects():
    """The effect of each feature."""
    model, new, truth = model_of_tumours()
    EffectDisplay.panel(model, new[::4], truth[::4])


def decisions():
    """Net benefit against the threshold."""
    model, new, truth = model_of_tumours()
    DecisionCurveDisplay.from_predictions(
        truth, model.predict_proba(new)[:, 1], pos_label="malignant", name="model", ax=axes()
    )


def validation():
    """Calibration elsewhere, and subgroups."""
    model, new, truth = model_of_tumours()
    texture = pd.cut(new["mean texture"], [0, 17, 21, 99], labels=["fine", "medium", "coarse"])
    found = validate(model, new, truth, by={"texture": texture}, positive="malignant")
    _, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
    ReliabilityDisplay.from_validation(found, ax=left)
    SubgroupsDisplay.from_validation(found, ax=right)


def planning():
    """The learning curve ahead of the data."""
    X, y, _, _ = tumours()
    found = plan(CGNClassifier("complete", sharing=1.0), X, y, n_repeats=5)
    LearningCurveDisplay.from_plan(found, ax=axes())


def structure():
    """A TAN of wines."""
    wine = load_wine(as_frame=True)
    StructureDisplay.from_estimator(CGNClassifier("tan").fit(wine.data, wine.target), ax=axes(8, 4.6))


def path():
    """Log loss and accuracy of all k at once."""
    random = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = random.normal(size=(120, 60))
    for j in range(3, 60):
        X[:, j] += 0.5 * X[:, j - 1] - 0.4 * X[:, j - 3]
    X[:, 20:24] += 0.8 * y[:, None]
    PathDisplay.from_estimator(CGNClassifier(Band("cv", k_max=12), sharing=1.0, likelihood_power="cv").fit(X, y))


def mixture():
    """The members of a mixture and their weights."""
    X, y, _, _ = tumours()
    model = CGNClassifierCV().fit(X, y)
    words = [str(member) for member in model.members_][::-1]
    ax = axes(7, 3)
    ax.barh(words, model.weights_[::-1], color="C0")
    ax.set(xlabel="weight", xlim=(0, None))


def seen(page, target, width, height):
    """A page as a browser shows it."""
    program = shutil.which("chromium")
    if program is None:
        return print(f"{target.name}: skipped, no chromium", file=sys.stderr)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
    subprocess.run([program, *options, f"--screenshot={target}", page.as_uri()], check=True, capture_output=True)


def report_page():
    """The first screen of a report."""
    X, y, new, truth = tumours()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "breast cancer.html"
        report(
            CGNClassifierCV(candidates=["naive_bayes", "complete", "logistic"]),
            pd.concat([X, new])[::3],
            pd.concat([y, truth])[::3],
            path=page,
        )
        seen(page, IMAGES / "report.png", 1280, 900)


def calculator():
    """A calculator page, with the values of one woman."""
    model, new, _ = model_of_tumours()
    values = [float(f"{value:.4g}") for value in new.iloc[38]]
    typed = f"""{values}.forEach((value, i) => {{
        const field = document.getElementById(`field-${{i}}`);
        field.value = value;
        field.dispatchEvent(new Event("input", {{bubbles: true}}));
    }});"""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "calculator.html"
        export(model, page, title="Breast mass", about="Malignant or benign, from nuclei of a fine needle aspirate.")
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("</body>", f"<script>{typed}</script></body>"), encoding="utf-8")
        seen(page, IMAGES / "calculator.png", 900, 1000)


def spectra_quality():
    """The first screens of the quality page of spectra, with planted faults."""
    made = make_raw_spectra(30, n_replicates=3, n_points=12_000, random_state=3)
    with tempfile.TemporaryDirectory() as folder:
        made.write(folder, "txt")
        for number, sample in enumerate((4, 11, 18, 25)):
            path = Path(folder) / "spectra" / f"sample{sample}_2.txt"
            mz, intensity = np.loadtxt(path).T
            middle = np.median(intensity)
            noise = np.random.default_rng(number).normal(0, 4, len(mz))
            changed = [
                np.maximum(middle + 0.04 * (intensity - middle) + noise, 0),
                np.minimum(intensity, np.quantile(intensity, 0.98)),
                intensity,
                np.zeros(len(mz)),
            ]
            np.savetxt(path, np.column_stack([mz * (1.006 if number == 2 else 1.0), changed[number]]))
        labels = Path(folder) / "labels.csv"
        page = Path(folder) / "quality.html"
        found = inspected(Folder(Path(folder) / "spectra", labels, needed=False))
        write_spectra_report(page, found, "Quality of spectra: serum")
        seen(page, IMAGES / "spectra-quality.png", 1280, 1500)


DRAWN = [certainty, shapley, effects, decisions, validation, planning, structure, path, mixture]
PAGES = {"report": report_page, "calculator": calculator, "spectra-quality": spectra_quality}


def main(names):
    """Write the pictures of these names, or all."""
    for draw in DRAWN:
        if not names or draw.__name__ in names:
            draw()
            plt.savefig(IMAGES / f"{draw.__name__}.png", dpi=110)
            plt.close("all")
    for name, make in PAGES.items():
        if not names or name in names:
            make()


if __name__ == "__main__":
    main(sys.argv[1:])
