"""Five real sets of spectra: accuracy and CLL with replicates kept together, and how fast raw spectra become features.

``python bench/spectra.py [--data-dir DIR]`` prints the tables; ``--write`` also puts them into docs/bench-spectra.md.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import Band, CGNClassifier
from cgnlearn.evaluation.splits import cut
from cgnlearn.spectra import Bin, Spectrum, make_raw_spectra, preset, stream
from measuring import parser, peak_megabytes, publish, versions

SEED = 0
K_MAX = 40


def matrix(data):
    return [Spectrum(data["mz"], row) for row in data["X"]]


def fiedler(data):
    return matrix(data), data["y"], data["sample"], maldi(1000.0, 10_000.0)


def maldirppa(data):
    kept = data["X"].any(axis=1)  # one spectrum is zero throughout
    samples = data["isolate"] + "/" + data["biorep"].astype(str)
    # Points are 5.6 m/z apart, so that the usual windows would swallow its peaks.
    steps = maldi(2500.0, 13_000.0).set_params(smooth__half_window=2, baseline__half_window=20)
    return matrix({"mz": data["mz"], "X": data["X"][kept]}), data["isolate"][kept], samples[kept], steps


def maldiamrkit(data):
    cuts = [slice(*pair) for pair in zip(data["offsets"][:-1], data["offsets"][1:], strict=True)]
    spectra = [Spectrum(data["mz"][part], data["intensity"][part]) for part in cuts]
    return spectra, data["y"], data["id"], maldi(2000.0, 20_000.0)


def camassclass(data):
    return matrix(data), data["y"], data["sample"], preset("seldi").set_params(bin__width=10.0)


def species(data):
    grids, index = data["mz_grids"], data["grid_index"]
    spectra = [Spectrum(grids[grid], row) for grid, row in zip(index, data["X"], strict=True)]
    return spectra, data["y"], data["y"] + "/" + data["spot"], maldi(2000.0, 10_000.0)


def maldi(start, stop):
    return preset("maldi").set_params(trim__start=start, trim__stop=stop, bin__width=10.0)


SETS = {
    "fiedler2009subset": fiedler,
    "maldiamrkit_29": maldiamrkit,
    "camassclass_imac": camassclass,
    "species4_bacteria": species,
    "maldirppa_bacteria": maldirppa,
}


def models():
    band = Band("cv", k_max=K_MAX)
    return {
        "band, k and temperature cv, sharing 1": CGNClassifier(band, sharing=1.0, temperature="cv", random_state=SEED),
        "naive Bayes, temperature cv": CGNClassifier(temperature="cv", random_state=SEED),
        "logistic regression": make_pipeline(
            StandardScaler(), LogisticRegressionCV(Cs=5, cv=3, scoring="neg_log_loss", max_iter=300)
        ),
        "shrinkage LDA on PCA scores": make_pipeline(
            StandardScaler(), PCA(0.99), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        ),
    }


def evaluated(name, data, n_folds):
    """What the set is; model → accuracy, CLL and seconds a fold, each spectrum tested once."""
    spectra, y, groups, steps = SETS[name](data)
    y, groups = y.astype(str), groups.astype(str)
    found = {model: ([], [], []) for model in models()}
    n_features = 0
    for split in cut(y, groups=groups, n_folds=n_folds, seed=SEED):
        train, test = ([spectra[row] for row in rows] for rows in (split.train, split.test))
        X, X_test = steps.fit_transform(train), steps.transform(test)
        n_features = X.shape[1]
        for model, classifier in models().items():
            start = time.perf_counter()
            classifier.fit(X, y[split.train])
            proba = classifier.predict_proba(X_test)
            true = np.searchsorted(classifier.classes_, y[split.test])
            right, cll, seconds = found[model]
            right.extend(proba.argmax(axis=1) == true)
            cll.extend(np.log(np.maximum(proba[np.arange(len(true)), true], 1e-15)))
            seconds.append(time.perf_counter() - start)
    shape = f"{len(y)} spectra of {len(set(groups))} samples, {len(set(y))} classes, {n_features} features"
    means = {model: (np.mean(right), np.mean(cll), np.mean(s)) for model, (right, cll, s) in found.items()}
    print(name, {model: [round(float(value), 3) for value in values] for model, values in means.items()}, flush=True)
    return shape, means


def accuracy_tables(data_dir):
    for name in SETS:
        n_folds = 5 if name == "maldirppa_bacteria" else 4
        shape, found = evaluated(name, dict(np.load(data_dir / "ms" / f"{name}.npz", allow_pickle=False)), n_folds)
        yield f"## {name}"
        yield ""
        yield f"{shape}; {n_folds} folds."
        yield ""
        yield "| model | accuracy | CLL | s a fold |"
        yield "|---|---:|---:|---:|"
        for model, (accuracy, cll, seconds) in found.items():
            yield f"| {model} | {accuracy:.3f} | {cll:.3f} | {seconds:.2f} |"
        yield ""


BINNING = """
from cgnlearn.spectra import Bin, stream
def work():
    return Bin(1.0, start=1000.0, stop=12000.0).fit([]).transform(stream({folder!r}))
"""


def reading_table(n_spectra=216, n_points=100_000):
    yield "## From files to features"
    yield ""
    yield f"{n_spectra} simulated spectra of {n_points:,} points on disk, read one after another and binned (1 m/z,"
    yield "11,000 bins) in one process. Memory is what is added beyond the imported libraries; the table itself takes"
    yield f"{n_spectra * 11_000 * 8 / 2**20:.0f} MB, and its rows are held once more while it is put together."
    yield ""
    yield "| format | MB on disk | spectra a second | MB of memory |"
    yield "|---|---:|---:|---:|"
    made = make_raw_spectra(12, n_points=n_points, random_state=SEED)
    for format in ("bruker", "mzML", "csv"):
        with tempfile.TemporaryDirectory() as folder:
            made.write(folder, format)
            sources = sorted((Path(folder) / "spectra").iterdir())
            for number in range(n_spectra - len(sources)):
                copied(sources[number % len(sources)], number)
            place = str(Path(folder) / "spectra")
            size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file()) / 2**20
            start = time.perf_counter()
            X = Bin(1.0, start=1000.0, stop=12_000.0).fit([]).transform(stream(place))
            seconds = time.perf_counter() - start
            assert X.shape == (n_spectra, 11_000)
            memory = peak_megabytes(BINNING.format(folder=place), "work()")
        yield f"| {format} | {size:.0f} | {n_spectra / seconds:.0f} | {memory:.0f} |"
    spectra = list(made.spectra)
    start = time.perf_counter()
    preset("maldi").fit_transform(spectra)
    seconds = (time.perf_counter() - start) / len(spectra)
    yield ""
    yield f'The preset `"maldi"` on such spectra in memory: {1 / seconds:.1f} spectra a second, nearly all of it SNIP.'


def copied(source, number):
    """Another file, or Bruker folder, of the same content, without taking space."""
    target = source.with_name(f"copy{number}_{source.name}")
    if source.is_file():
        os.link(source, target)
        return
    for file in source.rglob("*"):
        if file.is_file():
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, place)


def report(data_dir):
    lines = [
        "# Raw spectra",
        "",
        "Made by `python bench/spectra.py --write`. Stratified cross-validation in which replicates of a sample are",
        "never on both sides; all the way from raw spectra to features is inside the folds. MALDI sets go through the",
        'preset `"maldi"` over their own range of m/z with bins of 10 m/z, the SELDI set (camassclass) through',
        '`"seldi"` with the same bins. CLL is the mean log probability of the true class, a probability of 0 counted',
        "as 1e-15.",
        f"The band tries k up to {K_MAX}. The inner choices of all models cut spectra, not samples.",
        versions(),
        "",
        *reading_table(),
        "",
        *accuracy_tables(data_dir),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-spectra.md")
    options.add_argument("--data-dir", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    arguments = options.parse_args()
    if not (arguments.data_dir / "ms").is_dir():
        options.error(f"there is no {arguments.data_dir / 'ms'}: name the folder that holds ms/species4_bacteria.npz")
    warnings.simplefilter("ignore")  # axes that differ, folds that are few, and scikit-learn's new defaults
    publish(report(arguments.data_dir), "bench-spectra.md", write=arguments.write)
