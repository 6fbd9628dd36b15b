"""The first experiment of the paper: searched structures on nine UCI data sets, by ML and Bayesian averaging."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from cgnlearn import CGNClassifier, GreedyJan, Prior, SampleNotAcceptableError, Structure
from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import allowed, repeated_splits, subsampled
from cgnlearn.datasets import UCI, load, make_waveform
from cgnlearn.evaluation.run import Row, Unit, Work, fingerprint
from cgnlearn.evaluation.significance import Comparison, compare
from cgnlearn.experiments import published
from cgnlearn.networks.densities import is_correct, normalised, true_class_log_proba

SEARCHES = ("forward", "backward", "condensed")
FRACTIONS = (1.0, 0.2)
LOCATIONS = ("paper", "pooled", "cell")
METRICS = ("cll", "accuracy")
LEAST = float(np.log(np.nextafter(0.0, 1.0)))  # log of the smallest positive double
Compute = Callable[..., list[Row]]
Settings = Mapping[str, Any]
# Fraction of the training samples of the fold; CLL summed over the test samples; zeros: true classes with probability
# zero; class_alone: 1 if maximum likelihood does not exist for the structure and the class frequencies replace it;
# groups: columns, in groups separated by |.
COLUMNS = (
    *("dataset", "repetition", "fold", "fraction", "search", "parameters", "n_train", "n_test", "correct", "accuracy"),
    *("cll", "zeros", "class_alone", "n_parameters", "inner_accuracy", "groups"),
)


def quick_sets() -> list[Bunch]:
    """Four data sets that need no file, with few waveforms."""
    X, y = make_waveform(300, random_state=0)
    waveform = Bunch(data=X, target=y.astype(str), name="waveform", source="generator (300 new draws)", generated=True)
    return [load("balance-scale"), load("iris"), waveform, load("wine")]


def experiment(sets: Sequence[Bunch], *, n_folds: int, n_repetitions: int, seed: int) -> Work[list[Row]]:
    """All searches on these data sets, with all training samples and with a fifth of them."""
    described = {data.name: description(data) for data in sets}
    settings = {"experiment": "uci", "folds": n_folds, "repetitions": n_repetitions, "seed": seed, "sets": described}
    n_rows = len(FRACTIONS) * len(SEARCHES) * (1 + len(LOCATIONS))
    return folds_work(sets, COLUMNS, n_rows, fold_rows, settings, n_folds, seed)


def folds_work(
    sets: Sequence[Bunch],
    columns: tuple[str, ...],
    n_rows: int,
    compute: Compute,
    settings: Settings,
    *arguments: Any,
) -> Work[list[Row]]:
    """The folds of a repeated cross-validation of data sets; ``arguments`` follow the data and the unit."""
    by_name = {data.name: data for data in sets}
    # The data sets alternate, so that the time left can be estimated.
    units = [
        Unit(name, repeat, fold)
        for repeat, fold in product(range(settings["repetitions"]), range(settings["folds"]))
        for name, data in by_name.items()
        if fold < allowed(data.target, settings["folds"])
    ]

    def of_unit(unit: Unit) -> tuple[Any, ...]:
        return by_name[unit.name].data, by_name[unit.name].target, unit, *arguments

    return Work(columns, dict.fromkeys(units, n_rows), compute, of_unit, settings)


def description(data: Bunch) -> dict[str, Any]:
    """The entry of a data set in the settings."""
    return {"source": data.source, "generated": data.generated, **fingerprint(data.data, data.target)}


def fold_rows(X: Floats, y: NDArray[np.str_], unit: Unit, n_folds: int, seed: int) -> list[Row]:
    """The rows of one fold: every fraction, search and estimation."""
    full = repeated_splits(y, n_folds=n_folds, seed=seed + unit.repeat)[unit.fold]
    own_seed = seed + unit.repeat * n_folds + unit.fold
    return [
        (fraction, search, *row)
        for fraction in FRACTIONS
        for split in [full if fraction == 1 else subsampled(full, y, fraction, own_seed)]
        for search in SEARCHES
        for row in _search_rows(X, y, split.train, split.test, search, own_seed)
    ]


class Scores(NamedTuple):
    """Sums over the test samples of a fold."""

    correct: int
    cll: float  # summed log probability of the true classes
    zeros: int  # true classes with a probability below the smallest positive double, counted as that


def fold_scores(log_joint: Floats, true: NDArray[np.intp]) -> Scores:
    """Scores of log joint or log conditional probabilities (samples, classes)."""
    log_proba = normalised(log_joint)
    truth = true_class_log_proba(log_proba, true)
    n_right, n_zeros = is_correct(log_proba, true).sum(), (truth < LEAST).sum()
    return Scores(int(n_right), float(np.maximum(truth, LEAST).sum()), int(n_zeros))


def _search_rows(
    X: Floats, y: NDArray[np.str_], train: NDArray[np.intp], test: NDArray[np.intp], search: Any, seed: int
) -> Iterator[Row]:
    """The structure found by a search, estimated by maximum likelihood and by Bayesian averaging."""
    with warnings.catch_warnings():
        # With small classes the search uses fewer folds, or scores no structure, and warns.
        warnings.simplefilter("ignore", UserWarning)
        learner = GreedyJan(search, random_state=seed)
        searched = CGNClassifier(learner, prior=Prior(location=LOCATIONS[0])).fit(X[train], y[train])  # type: ignore[arg-type]
    state = searched.search_path_[-1]
    true = np.searchsorted(searched.classes_, y[test])
    models: dict[str, tuple[CGNClassifier, bool]] = {"ml": _maximum_likelihood(searched.structure_, X[train], y[train])}
    models[f"bayes {LOCATIONS[0]}"] = (searched, False)
    for location in LOCATIONS[1:]:
        prior = Prior(location=location)  # type: ignore[arg-type]
        models[f"bayes {location}"] = (CGNClassifier(searched.structure_, prior=prior).fit(X[train], y[train]), False)
    groups = "|".join(" ".join(map(str, group)) for group in state.groups)
    for parameters, (model, class_alone) in models.items():
        found = fold_scores(model.predict_joint_log_proba(X[test]), true)
        result = found.correct, found.correct / len(test), found.cll, found.zeros, int(class_alone)
        yield parameters, len(train), len(test), *result, model.n_parameters_, float(state.score), groups


def _maximum_likelihood(structure: Structure, X: Floats, y: NDArray[np.str_]) -> tuple[CGNClassifier, bool]:
    """The maximum likelihood model; that of the class alone, and True, if it does not exist for the structure."""
    try:
        return CGNClassifier(structure, estimation="ml").fit(X, y), False
    except SampleNotAcceptableError:
        return CGNClassifier(Structure.jan([]), estimation="ml").fit(X, y), True


# ---- cells of the tables


class Cell(NamedTuple):
    """One cell of a table: Bayesian averaging compared with maximum likelihood on one data set."""

    dataset: str
    search: str
    location: str
    metric: str
    fraction: float
    ml: float  # mean over the folds
    bayes: float
    zeros_ml: int
    zeros_bayes: int
    class_alone: int  # folds in which maximum likelihood does not exist for the structure
    no_features: int  # folds in which the search ended with the class alone
    comparison: Comparison
    published: str  # the paper's mark


_MARKS = "mark", "unpaired_mark", "published"
CELL_COLUMNS = (*Cell._fields[:10], "no_attributes", *Comparison._fields, *_MARKS)  # as in the published files


def cells(rows: Sequence[Mapping[str, str]], *, n_folds: int) -> list[Cell]:
    """Every cell of the tables, from the rows of a finished run."""
    columns: dict[tuple[str, str, str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        columns.setdefault((row["dataset"], row["search"], row["fraction"], row["parameters"]), []).append(row)

    def values(found: Sequence[Mapping[str, str]], name: str) -> Floats:
        return np.array([float(row[name]) for row in found])

    datasets = sorted({row["dataset"] for row in rows}, key=UCI.index)
    result = []
    for search, metric, fraction, location, dataset in product(SEARCHES, METRICS, FRACTIONS, LOCATIONS, datasets):
        key = dataset, search, f"{fraction:.10g}"
        ml, bayes = columns[*key, "ml"], columns[*key, f"bayes {location}"]
        found = Cell(
            *(dataset, search, location, metric, fraction),
            ml=float(values(ml, metric).mean()),
            bayes=float(values(bayes, metric).mean()),
            zeros_ml=int(values(ml, "zeros").sum()),
            zeros_bayes=int(values(bayes, "zeros").sum()),
            class_alone=int(values(ml, "class_alone").sum()),
            no_features=sum(not row["groups"] for row in ml),
            comparison=compare(values(bayes, metric), values(ml, metric), n_folds=n_folds),
            published=published.mark(search, metric, fraction, UCI.index(dataset)),
        )
        result.append(found)
    return result


def cell_row(cell: Cell) -> Row:
    """A cell as a row of a file, by `CELL_COLUMNS`."""
    comparison = cell.comparison
    return (*cell[:11], *comparison, comparison.mark, comparison.unpaired_mark, cell.published)
