"""How often fresh samples of the same source have a low typicality, by structure, samples, missing values and unit.

``python bench/typicality.py`` prints the tables; ``--write`` also puts them into docs/bench-typicality.md.
``--structures`` restricts them.
"""

from __future__ import annotations

import warnings

import numpy as np

from cgnlearn import Band, Box, CGNClassifier, CGNClassifierCV
from measuring import parser, publish, versions

COLUMNS = 6
FRESH = 500  # samples for each fit
UNITS = (0.001, 1.0, 1000.0)
REPEATS = {10: 20, 20: 100, 50: 60, 200: 30, 1000: 6}  # fits, by training samples
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
CHEAP = {"naive_bayes", "selective_naive_bayes"}  # also where values are missing
FEWER = 5  # times fewer fits of others, and of the mixture anyway
MISSING = {  # share of missing values in training, and in fresh samples
    "none": (0.0, 0.0),
    "fresh": (0.0, 0.2),
    "training": (0.3, 0.0),
    "both": (0.3, 0.3),
}
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


def shares(make, source, n, repeats, missing, unit=1.0, columns=COLUMNS):
    """Shares of fresh samples below 1 % and 5 %, and of outliers by six standard deviations below 1 %, in percent."""
    found = []
    for seed in range(repeats):
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
    return 100 * np.mean(found, axis=0)


def repeats(structure, missing, n):
    expensive = structure == "mixture" or (structure not in CHEAP and missing != "none")
    return max(3, REPEATS[n] // FEWER) if expensive else REPEATS[n]


def patterns_of(structure):
    return ["none"] if structure in COMPLETE_ONLY else list(MISSING)


def report(structures):
    lines = [
        "# Typicality of fresh samples",
        "",
        f"Made by `python bench/typicality.py --write`. Samples of two classes with {COLUMNS} correlated features; of "
        f"{FRESH} fresh samples of the same source, the share in percent with a typicality below 1% and below 5%, "
        "which should be 1 and 5. Means over fits to different training samples. With n training samples typicality is "
        "at least 1 / (n + 1): with fewer than 100 none is below 1%, with fewer than 20 none below 5%.",
        versions(),
        "",
        "Missing values: none; 20% of those of fresh samples; 30% of those of training samples; 30% of both.",
        "",
        "| structure | missing |" + "".join(f" n = {n} |" for n in REPEATS),
        "|---|---|" + "---:|" * len(REPEATS),
    ]
    for structure in structures:
        for missing in patterns_of(structure):
            row = f"| {structure} | {missing} |"
            for n in REPEATS:
                n_fits = repeats(structure, missing, n)
                one, five, _ = shares(STRUCTURES[structure], "normal", n, n_fits, MISSING[missing])
                row += f" {one:.1f}, {five:.1f} |"
            lines.append(row)
            print(row, flush=True)
    lines += [
        "",
        "## Other sources and units, and outliers",
        "",
        "200 training samples; in the last column the share below 1% of samples of which one value lies six standard "
        "deviations too high; where values of fresh samples are missing, another value of these is missing too.",
        "",
        "| structure | source | missing | unit | below 1% | below 5% | outliers below 1% |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    cases = [("normal", unit) for unit in UNITS] + [(source, 1.0) for source in SOURCES[1:]]
    for structure in structures:
        missing = patterns_of(structure)[:2][-1]
        for source, unit in cases:
            n_fits = repeats(structure, missing, 200)
            one, five, outliers = shares(STRUCTURES[structure], source, 200, n_fits, MISSING[missing], unit)
            row = f"| {structure} | {source} | {missing} | {unit:g} | {one:.1f} | {five:.1f} | {outliers:.0f} |"
            lines.append(row)
            print(row, flush=True)
    lines += [
        "",
        "## More features than samples allow to learn",
        "",
        "| structure | samples | features | below 1% | below 5% |",
        "|---|---:|---:|---:|---:|",
    ]
    for structure, n, columns in WIDE:
        if structure in structures:
            one, five, _ = shares(STRUCTURES[structure], "normal", n, 20, MISSING["none"], columns=columns)
            lines.append(f"| {structure} | {n} | {columns} | {one:.1f} | {five:.1f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-typicality.md")
    options.add_argument("--structures", nargs="+", default=list(STRUCTURES), choices=list(STRUCTURES))
    arguments = options.parse_args()
    publish(report(arguments.structures), "bench-typicality.md", write=arguments.write)
