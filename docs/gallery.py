"""Make the pictures of gallery.md: python docs/gallery.py."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from cgnlearn import Band, BandAverage, CGNClassifier, Structure, ordered_path
from cgnlearn.datasets import make_spectra
from cgnlearn.plots import (
    ContributionsDisplay,
    PathDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
    SpectrumDisplay,
    StructureDisplay,
)  # fmt: skip

mpl.use("agg")
IMAGES = Path(__file__).parent / "images"


def save(display, name):
    """Write one picture."""
    display.figure_.savefig(IMAGES / f"{name}.png", dpi=110, metadata={"Software": None})


def main():
    """All of them."""
    wine = load_wine(as_frame=True)
    X, y = wine.data, wine.target_names[wine.target]
    save(StructureDisplay.from_estimator(CGNClassifier("tree").fit(X, y)), "structure-tree")
    save(StructureDisplay.from_structure(Structure.box(200, 12)), "structure-box")
    few, rest, y_few, _ = train_test_split(X, y, train_size=30, stratify=y, random_state=0)
    models = {name: CGNClassifier(parameters=name).fit(few, y_few) for name in ("ml", "bayes")}
    save(ContributionsDisplay.from_estimator(models["bayes"], rest, row=3), "contributions-bars")

    spectra = make_spectra(900, 600, random_state=1)
    train, test, y_train, y_test = train_test_split(spectra.data, spectra.target, train_size=100, random_state=0)
    tuned = CGNClassifier(Band(k="cv", k_max=20), temperature="cv", random_state=0).fit(train, y_train)
    save(ContributionsDisplay.from_estimator(tuned, test, row=0, positions=spectra.mz), "contributions-spectrum")
    plain = CGNClassifier(Band(10)).fit(train, y_train)
    said = {"k = 10, temperature 1": plain.predict_proba(test), "k and temperature by cv": tuned.predict_proba(test)}
    save(ReliabilityDisplay.from_predictions(y_test, said, classes=plain.classes_), "reliability")

    averaged = CGNClassifier(BandAverage(k_max=20)).fit(train, y_train)
    save(RelevanceDisplay.from_estimator(averaged, positions=spectra.mz), "relevance")
    whole = SpectrumDisplay.from_estimator(tuned, test, y_test, mz=spectra.mz)
    save(whole, "spectrum")

    k_max, n = 40, train.shape[1]
    joint = ordered_path(train, y_train, test, k_max=k_max)
    shapes = (Structure.band, Structure.box)
    sizes = np.array([[shape(n, k).n_parameters(2) for k in range(1, k_max + 1)] for shape in shapes])
    save(PathDisplay.from_predictions(y_test, joint, sizes, names=("band", "box")), "path")


if __name__ == "__main__":
    main()
