"""Quality of the probabilities: ours and tuned peers on fifty data sets with three numbers of training samples.

``python bench/quality.py -o FOLDER [--data-dir DIR] [--models ...] [--sets ...] [--sizes ...] [--seeds N]`` computes
what is not yet in FOLDER and prints the tables; ``--write`` also writes docs/quality.md and its picture. To compute a
model again, remove its folder in FOLDER. ``--peer NAME=PYTHON`` sets a stronger peer of rivals.py beside ours, and
``--write`` then writes docs/bench-rivals.md.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from cgnlearn.evaluation.metrics import METRICS
from cgnlearn.evaluation.run import Run, Unit, Work
from collection import NARROW, ORDERED, SETS, SIZES, WIDE, checksum, division, rows
from contenders import NAMES, OURS_ORDERED, fitted
from measuring import parser, publish
from ranking import NotYet, page, picture
from rivalry import rivals_page
from rivals import RIVALS, answer, with_python

ORDER_OF_SIZES = ("100", "half", "50")
RIVALS_PAGE = "bench-rivals.md"
LEAST = 1e-15  # smaller probabilities count as this


def auc(log_proba, true):
    """Area under the ROC curve of each class against the rest, averaged over the classes that occur."""
    classes = np.unique(true)
    if len(classes) < 2:
        return float("nan")
    return np.mean([roc_auc_score(true == label, log_proba[:, label]) for label in classes])


MEASURES = METRICS | {"auc": auc}
COLUMNS = ("set", "seed", "size", "n_train", "n_test", "n_columns", "n_classes", *MEASURES, "seconds", "note")


def predicted(model_name, python, data, train, test):
    """Class probabilities of the test samples, and CPU seconds: of the fit, and of a rival's prediction too."""
    X, y = data.X[train], data.y[train]
    if model_name in RIVALS:
        return answer(model_name, python, X, y, data.X[test], data.categorical)
    groups = None if data.groups is None else data.groups[train]
    start = time.process_time()
    model = fitted(model_name, X, y, data.categorical, groups)
    took = time.process_time() - start
    return model.predict_proba(data.X[test]), took


def measured(model_name, set_name, size, seed, data_dir, python=None, *, load=rows):
    """The results of one model on one split of one data set; a failed model has a note instead."""
    data = load(set_name, data_dir)
    parts = division(data, size, seed)
    n_classes = len(np.unique(data.y))
    nothing = [float("nan")] * (len(MEASURES) + 1)
    if parts is None:
        return [(0, 0, data.X.shape[1], n_classes, *nothing, "too few samples")]
    train, test = parts
    sizes = (len(train), len(test), data.X.shape[1], n_classes)
    with warnings.catch_warnings():
        for kind in (UserWarning, ConvergenceWarning, RuntimeWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        try:
            proba, took = predicted(model_name, python, data, train, test)
        except (ValueError, np.linalg.LinAlgError) as error:
            return [(*sizes, *nothing, f"{type(error).__name__}: {error}".splitlines()[0][:120])]
    proba = np.where(np.isfinite(proba), proba, 0.0)
    log_proba = np.log(np.maximum(proba, LEAST))
    figures = [float(measure(log_proba, data.y[test])) for measure in MEASURES.values()]
    return [(*sizes, *figures, took, "")]


def work(model, seed, data_dir, checksums, python=None):
    """All data sets and sizes for one model and seed."""
    sets = ORDERED if model in OURS_ORDERED else SETS
    units = [Unit(name, seed, SIZES.index(size)) for size in ORDER_OF_SIZES for name in sets]
    settings = {"experiment": "quality", "model": model, "seed": seed, "sizes": SIZES, "data": checksums}

    def arguments(unit):
        return model, unit.name, SIZES[unit.fold], seed, data_dir, python

    return Work(COLUMNS, dict.fromkeys(units, 1), measured, arguments, settings)


def folder(results, model, seed):
    return results / model / f"seed-{seed}"


def compute(results, data_dir, *, models, pythons, sets, sizes, n_seeds, jobs):
    """Compute the missing results: by seed, wide data sets last, then by size and model."""
    checksums = {name: checksum(name, data_dir) for name in SETS}
    for seed in range(n_seeds):
        for part in (NARROW, WIDE):
            for size in (size for size in ORDER_OF_SIZES if size in sizes):
                among = {Unit(name, seed, SIZES.index(size)) for name in part if name in sets}
                for model in (*models, *pythons):
                    units = work(model, seed, data_dir, checksums, pythons.get(model))
                    run = Run(units, folder(results, model, seed))
                    if among.intersection(run.missing):
                        start = time.perf_counter()
                        done = len(list(run.go_on(jobs, among)))
                        took = time.perf_counter() - start
                        print(f"seed {seed}, {size} samples, {model}: {done} data sets in {took:.0f} s", flush=True)


def names(known):
    """A comma-separated choice among known names."""

    def parsed(text):
        chosen = text.split(",")
        if unknown := set(chosen) - set(known):
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        return chosen

    return parsed


if __name__ == "__main__":
    options = parser(__doc__, "quality.md")
    shared = Path(__file__).resolve().parents[2] / "shared" / "data"
    options.add_argument("-o", "--results", type=Path, required=True, help="folder of the results")
    options.add_argument("--data-dir", type=Path, default=shared, help="laid out as in collection.py")
    options.add_argument("--models", type=names(NAMES), default=list(NAMES), help=", ".join(NAMES))
    options.add_argument("--peer", type=with_python, action="append", default=[], metavar="NAME=PYTHON")
    options.add_argument("--sets", type=names(SETS), default=list(SETS))
    options.add_argument("--sizes", type=names(SIZES), default=list(SIZES), help=", ".join(SIZES))
    options.add_argument("--seeds", type=int, default=3, help="number of random splits")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument(
        "--tables", action="store_true", help="compute nothing: print the tables of the stored results"
    )
    chosen = options.parse_args()
    if not chosen.tables:
        among = {"models": chosen.models, "pythons": dict(chosen.peer), "sets": chosen.sets, "sizes": chosen.sizes}
        compute(chosen.results, chosen.data_dir, n_seeds=chosen.seeds, jobs=chosen.jobs, **among)
    try:
        if chosen.peer:
            publish(rivals_page(chosen.results, chosen.seeds, list(dict(chosen.peer))), RIVALS_PAGE, write=chosen.write)
        else:
            command = f"python bench/quality.py -o FOLDER --seeds {chosen.seeds} --write"
            text, found = page(chosen.results, chosen.seeds, command)
            publish(text, "quality.md", write=chosen.write)
            if chosen.write:
                picture(found)
    except NotYet as error:
        raise SystemExit(str(error)) from None
