"""More columns than samples: gene expression and mass spectra, ours beside tuned peers at two numbers of samples.

``python bench/wide.py -o FOLDER [--data-dir DIR] [--models ...] [--seeds N]`` computes what is not yet in FOLDER, the
quick data sets first, and prints the table; ``--write`` also writes docs/bench-wide.md. Data sets, splits, peers and
measures are those of quality.py, and two sets of MALDI-TOF spectra of bacteria, in bins. ``--ovarian N`` adds N
ten-fold cross-validations of the ovarian spectra.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

import collection
import quality
import spectra
from cgnlearn.evaluation.run import Run, Unit, Work, read_rows
from contenders import NAMES, OURS_ORDERED, fitted
from measuring import parser, publish, versions

DOCUMENT = "bench-wide.md"
SIZES = ("50", "half")
MOST_SEEDS = 100  # of the cross-validation
BACTERIA = {"ms/species4": "species4_bacteria", "ms/maldirppa": "maldirppa_bacteria"}
# Quick ones first. Bacteria have replicates, so that 50 spectra are half of them, or too few of 20 classes.
SETS = {
    "micro/colon": ("half",),
    "micro/srbct": SIZES,
    "ms/ovarian": SIZES,
    "micro/leukemia": SIZES,
    "ms/species4": ("half",),
    "ms/arcene": SIZES,
    "micro/prostate": SIZES,
    "ms/imac": ("half",),
    "ms/maldirppa": ("half",),
}
WITH_ORDER = ("ms/ovarian", "ms/imac", *BACTERIA)
MODELS = ("frequencies", "ours", "lrcv", "lda", "ours-ordered", "forest", "catboost")


@lru_cache(maxsize=2)
def rows(name, data_dir):
    """A data set of this page, as `collection.rows`; spectra of bacteria in bins, by steps that learn nothing."""
    if name not in BACTERIA:
        return collection.rows(name, data_dir)
    with np.load(Path(data_dir) / "ms" / f"{BACTERIA[name]}.npz", allow_pickle=False) as data:
        found, y, samples, steps = spectra.SETS[BACTERIA[name]](dict(data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = steps.fit_transform(found)
    codes = (np.unique(of, return_inverse=True)[1] for of in (y, samples))
    return collection.Rows(X, next(codes), [], next(codes))


def measured(model, name, size, seed, data_dir):
    return quality.measured(model, name, size, seed, data_dir, load=rows)


def work(model, seed, data_dir):
    sets = WITH_ORDER if model in OURS_ORDERED else SETS
    units = [Unit(name, seed, SIZES.index(size)) for name in sets for size in SETS[name]]
    settings = {"experiment": "wide", "model": model, "seed": seed}

    def arguments(unit):
        return model, unit.name, SIZES[unit.fold], seed, data_dir

    return Work(quality.COLUMNS, dict.fromkeys(units, 1), measured, arguments, settings)


def compute(results, data_dir, models, n_seeds):
    """Compute the missing results: the quick data sets with all seeds and models first."""
    for name in SETS:
        for seed in range(n_seeds):
            for model in models:
                run = Run(work(model, seed, data_dir), results / model / f"seed-{seed}")
                among = {Unit(name, seed, SIZES.index(size)) for size in SETS[name]}
                if among.intersection(run.missing):
                    done = len(list(run.go_on(1, among)))
                    print(f"{name}, seed {seed}, {model}: {done} done", flush=True)


def stored(results, n_seeds):
    """(set, size) → model → its results over the seeds."""
    found = {}
    for model in MODELS:
        for seed in range(n_seeds):
            path = results / model / f"seed-{seed}" / "rows.csv"
            for row in read_rows(path) if path.exists() else ():
                if not row["note"]:
                    found.setdefault((row["set"], SIZES[int(row["size"])]), {}).setdefault(model, []).append(row)
    return found


def of_fold(seed, fold, data_dir):
    """Log losses of one fold of the ovarian spectra."""
    data = rows("ms/ovarian", data_dir)
    splits = StratifiedKFold(10, shuffle=True, random_state=seed).split(data.X, data.y)
    train, test = list(splits)[fold]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted("ours-ordered", data.X[train], data.y[train], [], None)
    log_proba = model.predict_log_proba(data.X[test])
    loss = -log_proba[np.arange(len(test)), data.y[test]]
    return [(len(test), float(loss.sum()), float(loss.max()), int((log_proba.argmax(axis=1) == data.y[test]).sum()))]


def ovarian(results, data_dir, n_seeds, *, is_computed):
    """Lines about ten-fold cross-validations of the ovarian spectra, of the seeds that are complete."""
    units = {Unit("ovarian", seed, fold): 1 for seed in range(MOST_SEEDS) for fold in range(10)}
    columns = ("name", "seed", "fold", "n", "loss", "worst", "right")
    settings = {"experiment": "wide, ovarian"}
    work = Work(columns, units, of_fold, lambda unit: (unit.repeat, unit.fold, data_dir), settings)
    if is_computed:
        run = Run(work, results / "ovarian")
        for _ in run.go_on(1, {unit for unit in run.missing if unit.repeat < n_seeds}):
            pass
    path = results / "ovarian" / "rows.csv"
    by_seed = {}
    for row in read_rows(path) if path.exists() else ():
        by_seed.setdefault(int(row["seed"]), []).append(row)
    whole = {seed: of for seed, of in by_seed.items() if len(of) == 10}
    if not whole:
        return
    n = sum(int(row["n"]) for row in next(iter(whole.values())))
    losses = {seed: sum(float(row["loss"]) for row in of) / n for seed, of in sorted(whole.items())}
    worst = max(float(row["worst"]) for of in whole.values() for row in of)
    right = np.mean([sum(int(row["right"]) for row in of) / n for of in whole.values()])
    yield ""
    yield "## Ovarian cancer spectra"
    yield ""
    yield f"`CGNClassifierCV(ordered=True)`, ten-fold cross-validation with {len(whole)} seed(s): log loss"
    yield f"{np.mean(list(losses.values())):.4f} ({', '.join(f'{loss:.3f}' for loss in losses.values())}), accuracy"
    yield f"{right:.3f}; the least log probability of a true class is {-worst:.1f}. [More models](bench-ovarian.md)"


def page(results, n_seeds, command):
    """The table, of the pairs of a data set and a size that have results of ours."""
    found = stored(results, n_seeds)
    models = [model for model in MODELS if model != "frequencies" and any(model in of for of in found.values())]
    yield "# More columns than samples"
    yield ""
    yield f"Made by `{command}`. {versions()}"
    yield ""
    yield "Gene expression, SELDI spectra and MALDI-TOF spectra of bacteria (species4 and maldirppa, in bins of 10 Da;"
    yield "spectra of one sample stay together), all columns, with default settings. Training samples as stated, the"
    yield "others predicted, by stratified random splits; peers are tuned as on [the page of quality](quality.md). Mean"
    yield "log loss (nats) over the splits; CPU seconds of a fit in brackets. Bold: the lowest. A dash: not computed."
    yield ""
    heads = ["data set", "training samples", "columns", "splits", *(NAMES[model] for model in models)]
    yield f"| {' | '.join(heads)} | class frequencies |"
    yield "|---|---:|---:|---:|" + "---:|" * (len(models) + 1)
    gaps, behind = {}, []
    for name, sizes in SETS.items():
        for size in sizes:
            of = found.get((name, size), {})
            if "ours" not in of:
                continue
            n = len(of["ours"])
            losses = {m: np.mean([float(row["log_loss"]) for row in of[m]]) for m in of if len(of[m]) == n}
            best = min(losses, key=losses.get)
            cells = []
            for model in models:
                took = np.mean([float(row["seconds"]) for row in of.get(model, ())]) if model in losses else 0
                text = f"{losses[model]:.3f} ({took:.1f})" if model in losses else "–"
                cells.append(f"**{text}**" if model == best else text)
            first = of["ours"][0]
            cells.append(f"{losses['frequencies']:.3f}")
            yield f"| {name} | {first['n_train']} | {int(first['n_columns']):,} | {n} | " + " | ".join(cells) + " |"
            rivals = {m: loss for m, loss in losses.items() if m not in ("ours", "ours-ordered", "frequencies")}
            for model, loss in rivals.items():
                gaps.setdefault(model, []).append(loss - losses["ours"])
            gap = min(rivals.values()) - losses["ours"]
            gaps.setdefault("the best of these in hindsight", []).append(gap)
            if gap < 0:
                behind.append(f"{name} at {first['n_train']} ({-gap:.3f} behind {NAMES[min(rivals, key=rivals.get)]})")
    yield ""
    yield "| CGNClassifierCV against | mean difference in log loss | ahead on | of |"
    yield "|---|---:|---:|---:|"
    for model, values in gaps.items():
        ahead = sum(value > 0 for value in values)
        yield f"| {NAMES.get(model, model)} | {np.mean(values):+.3f} | {ahead} | {len(values)} |"
    yield ""
    yield f"It is behind on {'; '.join(behind)}." if behind else "It is behind on none."


if __name__ == "__main__":
    options = parser(__doc__, DOCUMENT)
    shared = Path(__file__).resolve().parents[2] / "shared" / "data"
    options.add_argument("-o", "--results", type=Path, required=True, help="folder of the results")
    options.add_argument("--data-dir", type=Path, default=shared)
    options.add_argument("--models", type=quality.names(MODELS), default=list(MODELS), help=", ".join(MODELS))
    options.add_argument("--seeds", type=int, default=3, help="number of random splits")
    options.add_argument("--ovarian", type=int, default=0, metavar="N", help="cross-validations of the ovarian spectra")
    options.add_argument("--tables", action="store_true", help="compute nothing: print the table of stored results")
    chosen = options.parse_args()
    if not chosen.tables:
        compute(chosen.results, chosen.data_dir, chosen.models, chosen.seeds)
    more = ovarian(
        chosen.results, chosen.data_dir, chosen.ovarian, is_computed=not chosen.tables and chosen.ovarian > 0
    )
    added = list(more)
    asked = f"--models {','.join(chosen.models)} --seeds {chosen.seeds} --ovarian {chosen.ovarian}"
    command = f"python bench/wide.py -o FOLDER {asked} --write"
    publish("\n".join([*page(chosen.results, chosen.seeds, command), *added]) + "\n", DOCUMENT, write=chosen.write)
