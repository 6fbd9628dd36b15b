"""How often fresh samples of the same source have a low typicality, by structure, samples, missing values and unit.

``python bench/typicality.py`` prints the tables; ``--write`` also puts them into docs/bench-typicality.md.
``--structures`` restricts them; ``--seconds`` is the processor time after which a cell has no further fit.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from cgnlearn import Band, Box, CGNClassifier, CGNClassifierCV
from measuring import parser, publish, versions

COLUMNS = 6
FRESH = 500  # samples for each fit
UNITS = (0.001, 1.0, 1000.0)
MOST = {10: 2, 20: 200, 50: 100, 200: 40, 1000: 12}  # fits, by training samples; of ten, no typicality is below 5 %
FEWEST = {10: 2, 20: 8, 50: 6, 200: 3, 1000: 2}
SOURCES = ("normal", "skewed", "heavy-tailed")
GRAPH = {0: [], 1: [0], 2: [0, 1], 3: [2], 4: [2, 3], 5: []}
STRUCTURES = {
    "naive_bayes": lambda: CGNClassifier(),
    "selective_naive_bayes": lambda: CGNClassifier("selective_naive_bayes"),
    "complete": lambda: CGNClassifier("complete"),
    "tan": lambda: CGNClassifier("tan"),
    "tan_average": lambda: CGNClassifier("tan_average"),
    "band": lambda: CGNClassifier(Band(3)),
    "box": lambda: CGNClassifier(Box(3)),
    "band_average": lambda: CGNClassifier("band_average"),
    "fwgjan": lambda: CGNClassifier("fwgjan"),
    "bwgjan": lambda: CGNClassifier("bwgjan"),
    "a given graph": lambda: CGNClassifier(GRAPH),
    "mixture": lambda: CGNClassifierCV(),
}
COMPLETE_ONLY = {"tan_average", "band_average"}  # these predict complete samples only
MISSING = {  # share of missing values in training, and in fresh samples
    "none": (0.0, 0.0),
    "fresh": (0.0, 0.2),
    "training": (0.3, 0.0),
    "both": (0.3, 0.3),
}
MOST_WIDE = 30  # fits
WIDE = (("naive_bayes", 40, 100), ("complete", 40, 100), ("tan", 40, 100), ("complete", 100, 200), ("tan", 100, 100))


def drawn(source, n, columns, rng):
    """Two classes with correlated features: by a random walk, and shifted in every third."""
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, columns))
    for j in range(1, columns):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    if source == "skewed":
        X = np.exp(0.7 * X)
    if source == "heavy-tailed":
        X *= np.sqrt(4 / rng.chisquare(4, X.shape))
    return X + y[:, None] * (np.arange(columns) % 3 == 0), y


def incomplete(X, share, rng):
    return np.where(rng.random(X.shape) < share, np.nan, X) if share else X


def shares(make, source, n, most, missing, seconds, unit=1.0, columns=COLUMNS):
    """Shares of fresh samples below 1 % and 5 %, of outliers by six standard deviations below 1 %, and the fits."""
    found, start = [], time.process_time()
    for seed in range(most):
        if seed >= FEWEST.get(n, 2) and time.process_time() - start > seconds:
            break
        rng = np.random.default_rng(seed)
        X, y = drawn(source, n, columns, rng)
        fresh, _ = drawn(source, FRESH, columns, rng)
        X, seen = incomplete(X, missing[0], rng), incomplete(fresh, missing[1], rng)
        outliers = fresh[:100].copy()
        outliers[np.arange(100), np.arange(100) % columns] += 6 * np.nanstd(X)
        if missing[1]:
            outliers[np.arange(100), (np.arange(100) + 2) % columns] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(unit * X, y)
            typicality, of_outliers = (model.typicality(unit * part) for part in (seen, outliers))
        found.append([(typicality < 0.01).mean(), (typicality < 0.05).mean(), (of_outliers < 0.01).mean()])
    one, five, of_outliers = 100 * np.array(found).T
    error = five.std(ddof=1) / np.sqrt(len(found))
    return f"{one.mean():.1f}", f"{five.mean():.1f} ± {error:.1f}", f"{of_outliers.mean():.0f}", len(found)


def patterns_of(structure):
    return ["none"] if structure in COMPLETE_ONLY else list(MISSING)


def report(structures, seconds):
    lines = [
        "# Typicality of fresh samples",
        "",
        f"Of {FRESH} fresh samples of the source of the training samples, the share in percent with a typicality below "
        f"1% and below 5%: it should be 1 and 5. Two classes, {COLUMNS} correlated features.",
        "Means over fits to different training samples, with the standard error of the second share, and the number of "
        f"fits in brackets, to which a cell adds none after {seconds:g} seconds. With n training samples typicality is "
        "at least",
        "1 / (n + 1): with fewer than 100 none is below 1%, with fewer than 20 none below 5%.",
        "",
        f"Made by `python bench/typicality.py --write`. {versions()}",
        "",
        "Missing values: none; 20% of those of fresh samples; 30% of those of training samples; 30% of both.",
        "",
        "| structure | missing |" + "".join(f" n = {n} |" for n in MOST),
        "|---|---|" + "---:|" * len(MOST),
    ]
    for structure in structures:
        for missing in patterns_of(structure):
            row = f"| {structure} | {missing} |"
            for n, most in MOST.items():
                one, five, _, n_fits = shares(STRUCTURES[structure], "normal", n, most, MISSING[missing], seconds)
                row += f" {one}, {five} ({n_fits}) |"
            lines.append(row)
            print(row, flush=True)
    lines += [
        "",
        "## Other sources and units, and outliers",
        "",
        "200 training samples; outliers are samples of which one value lies six standard "
        "deviations too high; where values of fresh samples are missing, another value of these is missing too.",
        "",
        "| structure | source | missing | unit | below 1% | below 5% | outliers below 1% | fits |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    cases = [("normal", unit) for unit in UNITS] + [(source, 1.0) for source in SOURCES[1:]]
    for structure in structures:
        missing = patterns_of(structure)[:2][-1]
        for source, unit in cases:
            found = shares(STRUCTURES[structure], source, 200, MOST[200], MISSING[missing], seconds, unit)
            lines.append(f"| {structure} | {source} | {missing} | {unit:g} | {' | '.join(map(str, found))} |")
            print(lines[-1], flush=True)
    lines += [
        "",
        "## More features than samples allow to learn",
        "",
        "| structure | samples | features | below 1% | below 5% | fits |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for structure, n, columns in WIDE:
        if structure in structures:
            one, five, _, n_fits = shares(
                STRUCTURES[structure], "normal", n, MOST_WIDE, MISSING["none"], 5 * seconds, columns=columns
            )
            lines.append(f"| {structure} | {n} | {columns} | {one} | {five} | {n_fits} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-typicality.md")
    options.add_argument("--structures", nargs="+", default=list(STRUCTURES), choices=list(STRUCTURES))
    options.add_argument("--seconds", type=float, default=30.0)
    arguments = options.parse_args()
    publish(report(arguments.structures, arguments.seconds), "bench-typicality.md", write=arguments.write)
