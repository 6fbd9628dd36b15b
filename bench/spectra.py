"""Five real data sets of spectra, recovery of true markers, and the speed from raw spectra to features.

``python bench/spectra.py [--data-dir DIR]`` prints the tables; ``--write`` also puts them into docs/bench-spectra.md.
``--maldiamrkit PYTHON`` names the interpreter of an environment in which MaldiAMRKit is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
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

from cgnlearn import Band, CGNClassifier, CGNClassifierCV
from cgnlearn.data.splits import repeated_splits
from cgnlearn.evaluation.evidence import evidence_of
from cgnlearn.evaluation.grouped import fit_options
from cgnlearn.spectra import Bin, Spectrum, by_sample, make_raw_spectra, preset, stream
from cgnlearn.spectra.peaks import region_ranks
from measuring import parser, peak_megabytes, publish, versions

SEED = 0
K_MAX = 40


def matrix(data):
    return [Spectrum(data["mz"], row) for row in data["X"]]


def fiedler(data):
    return matrix(data), data["y"], data["sample"], maldi(1000.0, 10_000.0)


def maldirppa(data):
    kept = data["X"].any(axis=1)  # one spectrum is all zeros
    samples = data["isolate"] + "/" + data["biorep"].astype(str)
    # Points are 5.6 m/z apart: the default windows are too wide for its peaks.
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
        "mixture, ordered": CGNClassifierCV(ordered=True, random_state=SEED),
        "band, k and likelihood power cv, sharing 1": CGNClassifier(
            band, sharing=1.0, likelihood_power="cv", random_state=SEED
        ),
        "naive Bayes, likelihood power cv": CGNClassifier(likelihood_power="cv", random_state=SEED),
        "logistic regression": make_pipeline(
            StandardScaler(), LogisticRegressionCV(Cs=5, cv=3, scoring="neg_log_loss", max_iter=300)
        ),
        "shrinkage LDA on PCA scores": make_pipeline(
            StandardScaler(), PCA(0.99), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        ),
    }


def evaluated(name, data, n_folds):
    """Description of the data set; model → accuracy and log loss by spectrum and by sample, and CPU s per fold."""
    spectra, y, groups, steps = SETS[name](data)
    y, groups = y.astype(str), groups.astype(str)
    found = {model: ([], [], [], [], []) for model in models()}
    n_features = 0
    for split in repeated_splits(y, groups=groups, n_folds=n_folds, seed=SEED):
        train, test = ([spectra[row] for row in rows] for rows in (split.train, split.test))
        X, X_test = steps.fit_transform(train), steps.transform(test)
        n_features = X.shape[1]
        for model, classifier in models().items():
            start = time.process_time()
            classifier.fit(X, y[split.train], **fit_options(classifier, y[split.train], groups[split.train]))
            proba = classifier.predict_proba(X_test)
            seconds = time.process_time() - start
            true = np.searchsorted(classifier.classes_, y[split.test])
            log_proba = np.log(np.maximum(proba, 1e-15))
            of_samples = by_sample(log_proba, groups[split.test])
            first = [np.flatnonzero(groups[split.test] == sample)[0] for sample in of_samples.samples]
            for into, values in zip(
                found[model],
                (*scores(log_proba, true), *scores(of_samples.log_proba, true[first]), [seconds]),
                strict=True,
            ):
                into.extend(values)
    shape = f"{len(y)} spectra of {len(set(groups))} samples, {len(set(y))} classes, {n_features} features"
    means = {model: [np.mean(part) for part in parts] for model, parts in found.items()}
    print(name, {model: [round(float(value), 3) for value in values] for model, values in means.items()}, flush=True)
    return shape, means


def scores(log_proba, true):
    return log_proba.argmax(axis=1) == true, -log_proba[np.arange(len(true)), true]


def accuracy_tables(data_dir):
    for name in SETS:
        n_folds = 5 if name == "maldirppa_bacteria" else 4
        shape, found = evaluated(name, dict(np.load(data_dir / "ms" / f"{name}.npz", allow_pickle=False)), n_folds)
        yield f"## {name}"
        yield ""
        yield f"{shape}; {n_folds} folds."
        yield ""
        yield "| model | accuracy | log loss | by sample: accuracy | log loss | CPU s per fold |"
        yield "|---|---:|---:|---:|---:|---:|"
        for model, (accuracy, loss, accuracy_sample, loss_sample, seconds) in found.items():
            yield (
                f"| {model} | {accuracy:.3f} | {loss:.3f} | {accuracy_sample:.3f} | {loss_sample:.3f} | {seconds:.1f} |"
            )
        yield ""


BINNING = """
from cgnlearn.spectra import Bin, stream
def work():
    return Bin(1.0, start=1000.0, stop=12000.0).fit([]).transform(stream({folder!r}))
"""


def reading_table(n_spectra=216, n_points=100_000):
    yield "## From files to features"
    yield ""
    yield f"{n_spectra} simulated spectra of {n_points:,} points on disk, read one at a time and binned (1 m/z,"
    yield "11,000 bins) in one process: the best of three runs, and CPU time, which does not depend on other"
    yield "processes. Memory is the increase beyond the imported libraries; the table itself takes"
    yield f"{n_spectra * 11_000 * 8 / 2**20:.0f} MB, and a second copy of it exists for a moment."
    yield ""
    yield "| format | MB on disk | spectra per second | spectra per CPU second | MB of memory |"
    yield "|---|---:|---:|---:|---:|"
    made = make_raw_spectra(12, n_points=n_points, random_state=SEED)
    for format in ("bruker", "mzML", "csv"):
        with tempfile.TemporaryDirectory() as folder:
            made.write(folder, format)
            sources = sorted((Path(folder) / "spectra").iterdir())
            for number in range(n_spectra - len(sources)):
                copied(sources[number % len(sources)], number)
            place = str(Path(folder) / "spectra")
            size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file()) / 2**20
            wall = cpu = np.inf
            for _ in range(3):
                start, start_cpu = time.perf_counter(), time.process_time()
                X = Bin(1.0, start=1000.0, stop=12_000.0).fit([]).transform(stream(place))
                wall = min(wall, time.perf_counter() - start)
                cpu = min(cpu, time.process_time() - start_cpu)
                assert X.shape == (n_spectra, 11_000)
            memory = peak_megabytes(BINNING.format(folder=place), "work()")
        yield f"| {format} | {size:.0f} | {n_spectra / wall:.0f} | {n_spectra / cpu:.0f} | {memory:.0f} |"


PEER = """
import json, sys, time
import numpy as np, pandas as pd
try:
    import maldiamrkit
    from maldiamrkit.preprocessing import SNIPBaseline, SavitzkyGolaySmooth, bin_spectrum, preprocess
    from maldiamrkit.preprocessing import PreprocessingPipeline as Pipeline
except ImportError as error:
    sys.exit(f"skipped: {error}")
spectra = np.load(sys.argv[1])
frames = [pd.DataFrame({"mass": spectra["mz"], "intensity": sample}) for sample in spectra["X"]]
chain = Pipeline.default()
for step in dict(chain.steps).values():
    if isinstance(step, SNIPBaseline):
        step.half_window = 100
    if isinstance(step, SavitzkyGolaySmooth):
        step.polyorder = 3
best = np.inf
for _ in range(3):
    start = time.process_time()
    samples = [bin_spectrum(preprocess(frame, chain), bin_width=3) for frame in frames]
    best = min(best, time.process_time() - start)
table = np.array([np.asarray((sample[0] if isinstance(sample, tuple) else sample)["intensity"], float) for sample in
samples]) np.save(sys.argv[2], table) print(json.dumps({"seconds": best, "version": maldiamrkit.__version__}))
"""


def peer_lines(python, n_spectra=12, n_points=20_000):
    """CPU time of the preset "maldi" and of MaldiAMRKit's pipeline with the same windows, on the same spectra."""
    yield '## The preset "maldi" compared with MaldiAMRKit'
    yield ""
    made = make_raw_spectra(n_spectra, n_points=n_points, mass_range=(2000.0, 20_000.0), random_state=SEED)
    spectra, best = list(made.spectra), np.inf
    for _ in range(3):
        start = time.process_time()
        X = preset("maldi").fit_transform(spectra)
        best = min(best, time.process_time() - start)
    yield f"{n_spectra} simulated spectra of {n_points:,} points in memory: {n_spectra / best:.0f} per CPU second."
    with tempfile.TemporaryDirectory() as folder:
        given, taken = Path(folder) / "spectra.npz", Path(folder) / "table.npy"
        np.savez(given, mz=spectra[0].mz, X=np.array([spectrum.intensity for spectrum in spectra]))
        done = subprocess.run([python, "-c", PEER, given, taken], capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"MaldiAMRKit {done.stderr.strip().splitlines()[-1]} (name its interpreter with --maldiamrkit)."
            return
        peer, other = json.loads(done.stdout.splitlines()[-1]), np.load(taken)
    n = min(X.shape[1], other.shape[1])
    alike = np.median([np.corrcoef(a[:n], b[:n])[0, 1] for a, b in zip(X, other, strict=True)])
    yield (
        f"MaldiAMRKit {peer['version']} with the same windows and bins: {n_spectra / peer['seconds']:.0f}; ours takes "
        f"{best / peer['seconds']:.2f} of its time. The median correlation of the two tables is {alike:.4f} over the "
        "spectra (it sums the points of a bin, of which there are fewer at high m/z; ours averages them)."
    )


def truth_ranks(seed, n_samples=100):
    """Ranks of the regions of the true markers by held-out evidence, for two models."""
    made = make_raw_spectra(n_samples, n_points=12_000, mass_range=(2000.0, 12_000.0), random_state=seed)
    steps = preset("maldi").set_params(bin__width=10.0)
    X, marks = steps.fit_transform(list(made.spectra)), made.peaks[made.effects != 0]
    found = {}
    for name, model in (
        ("mixture", CGNClassifierCV(ordered=True, random_state=SEED)),
        ("band", CGNClassifier(Band("cv", k_max=20), sharing=1.0, likelihood_power="cv")),
    ):
        evidence = np.zeros(X.shape[1])
        for split in repeated_splits(made.target, n_folds=3, seed=SEED):
            model.fit(X[split.train], made.target[split.train])
            log_proba = model.predict_log_proba(X[split.test])
            true = np.searchsorted(model.classes_, made.target[split.test])
            evidence += evidence_of(model, X[split.test], log_proba, true).for_truth
        found[name] = region_ranks(steps[-1].mz_, X.mean(axis=0), evidence, marks)
    return found


def truth_table(n_seeds):
    yield "## Recovery of true markers"
    yield ""
    yield "100 simulated spectra with 60 peaks, 8 of which differ between the classes by two standard deviations: the"
    yield "share of these 8 among the 8, and among the 16, regions with most evidence in three-fold cross-validation."
    yield ""
    yield "| seed | mixture: top 8 | top 16 | band: top 8 | top 16 |"
    yield "|---:|---:|---:|---:|---:|"
    shares = []
    for seed in range(SEED + 100, SEED + 100 + n_seeds):
        ranks = truth_ranks(seed).values()
        shares.append([np.mean(of_model <= n) for of_model in ranks for n in (8, 16)])
        print("truth", seed, shares[-1], flush=True)
        yield f"| {seed} | " + " | ".join(f"{share:.0%}" for share in shares[-1]) + " |"
    yield "| mean | " + " | ".join(f"{share:.0%}" for share in np.mean(shares, axis=0)) + " |"


def copied(source, number):
    """Link a file or Bruker folder under another name."""
    target = source.with_name(f"copy{number}_{source.name}")
    if source.is_file():
        os.link(source, target)
        return
    for file in source.rglob("*"):
        if file.is_file():
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, place)


def report(data_dir, python, n_seeds):
    lines = [
        "# Raw spectra",
        "",
        "Made by `python bench/spectra.py --write`. Stratified cross-validation in which replicates of a sample are",
        "in one fold; preprocessing is fitted inside the folds. MALDI data sets use the",
        'preset `"maldi"` over their own range of m/z with bins of 10 m/z, the SELDI data set (camassclass)',
        '`"seldi"` with the same bins. Probabilities below 1e-15 count as 1e-15.',
        f"The band tries k up to {K_MAX}. Models are tuned inside the folds by splits of samples, not",
        "spectra. By sample: mean of the log odds of its spectra.",
        versions(),
        "",
        *reading_table(),
        "",
        *peer_lines(python),
        "",
        *truth_table(n_seeds),
        "",
        *accuracy_tables(data_dir),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-spectra.md")
    options.add_argument("--data-dir", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    options.add_argument("--maldiamrkit", metavar="PYTHON", default=sys.executable)
    options.add_argument(
        "--seeds", type=int, default=5, help="number of simulated data sets for the recovery of markers"
    )
    arguments = options.parse_args()
    if not (arguments.data_dir / "ms").is_dir():
        options.error(f"there is no {arguments.data_dir / 'ms'}: name the folder with ms/species4_bacteria.npz")
    warnings.simplefilter("ignore")  # different axes, few folds, and scikit-learn's new defaults
    publish(
        report(arguments.data_dir, arguments.maldiamrkit, arguments.seeds), "bench-spectra.md", write=arguments.write
    )
