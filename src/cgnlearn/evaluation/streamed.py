"""Cross-validation of files that do not fit into memory: a pass that counts each fold, and one that scores.

A model of statistics is fitted to the other folds' statistics, added; so the number of folds costs no reading.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.splits import hashed
from cgnlearn.data.table import Table
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.classifier import CGNClassifier, counting_learner
from cgnlearn.evaluation.metrics import Place, Summary, Tally
from cgnlearn.evaluation.study import BASELINE, fitted
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.estimation import SampleNotAcceptableError
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.statistics import Statistics, all_but_each, collect
from cgnlearn.streams import SAMPLE_ROWS, Progress, agreed_on, chance, frame_of
from cgnlearn.tables.batches import Agreed, Stream, stream_of
from cgnlearn.tables.read import BATCH_ROWS

Score = Callable[[Table], Floats]  # log probabilities of the classes


@dataclass(frozen=True)
class StreamedEvaluation:
    """What models are worth on files of any size.

    Parameters
    ----------
    summaries : list of Summary
        Of each model, and of the class frequencies.
    counts : dict of str to int
        Samples of each class.
    sampled : dict of str to int
        The models that could not be fitted to statistics, with the most samples that one of their fits has seen.
    """

    summaries: list[Summary]
    counts: dict[str, int]
    sampled: dict[str, int]


def evaluate_stream(
    models: Mapping[str, Any],
    source: Any,
    target: str,
    *,
    groups: str | None = None,
    n_folds: int = 10,
    n_repeats: int = 1,
    seed: int = 0,
    sample_rows: int = SAMPLE_ROWS,
    columns: Sequence[str] | None = None,
    categorical_features: Collection[str] = (),
    drop_missing: bool = False,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> StreamedEvaluation:
    """Cross-validate classifiers on files of any size.

    A sample's fold is a hash of its number, or of its group: folds are alike in size, but not stratified. Levels and
    classes are agreed over all files first. What statistics alone tell is fitted to all samples outside the fold;
    anything else (searches, `CGNClassifierCV`, other libraries' classifiers) to a random sample of them. All models
    are scored on all samples.

    Parameters
    ----------
    models : mapping from names to classifiers
    source : path, list of paths or pyarrow.dataset.Dataset
    target : str
        The column of the classes.
    groups : str, optional
        A column: samples with the same value there are in the same fold. It is no feature.
    n_folds, n_repeats, seed : int
        Repetition r is cut with ``seed + r``.
    sample_rows : int
        About how many samples are drawn for models that need samples.
    columns, categorical_features, drop_missing, batch_rows
        As for `fit_stream`.
    progress : callable, optional
        Called with the number of samples read in both passes, and of all that will be.

    Returns
    -------
    StreamedEvaluation

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, evaluate_stream
    >>> path = Path(tempfile.mkdtemp(), "iris.parquet")
    >>> load_iris(as_frame=True).frame.to_parquet(path)
    >>> found = evaluate_stream({"tan": CGNClassifier("tan")}, path, "target", n_folds=5)
    >>> for summary in found.summaries:
    ...     print(f"{summary.model}: {summary.metrics['accuracy'].mean:.2f}")
    tan: 0.96
    class frequencies: 0.28
    """
    counted = [model for model in models.values() if _is_counted(model)]
    kinds = {repr(model.categorical_features): model.categorical_features for model in counted}
    if len(kinds) > 1:
        raise ValueError("models of one evaluation must have the same categorical_features: evaluate them apart")
    stream = stream_of(
        source,
        target,
        columns,
        categorical_features,
        next(iter(kinds.values()), "from_dtype"),
        groups=groups,
        drop_missing=drop_missing,
        batch_rows=batch_rows,
    )
    agreed = agreed_on(stream)
    return evaluated(
        models,
        stream,
        agreed,
        n_folds=n_folds,
        n_repeats=n_repeats,
        seed=seed,
        sample_rows=sample_rows,
        progress=progress,
    )


def evaluated(
    models: Mapping[str, Any],
    stream: Stream,
    agreed: Agreed,
    *,
    n_folds: int,
    n_repeats: int,
    seed: int,
    sample_rows: int = SAMPLE_ROWS,
    progress: Progress | None = None,
) -> StreamedEvaluation:
    """Cross-validate on a stream whose levels and classes have been agreed on."""
    if n_folds < 2 or n_repeats < 1:
        raise ValueError(f"cross-validation needs at least 2 folds and 1 repetition, not {n_folds}x{n_repeats}")
    schema, n_read = agreed.schema, agreed.n_read
    counted = {name: model for name, model in models.items() if _is_counted(model)}
    cut = _Cut(stream, schema, n_folds, n_repeats, seed)
    sampled = {name: model for name, model in models.items() if name not in counted}
    told = progress or (lambda n_done, n_all: None)
    with numeric_libraries().limit(limits=1, user_api="blas"):  # products this small lose by being cut up
        families = {name: counting_learner(model, name).families(schema) for name, model in counted.items()}
        rate = sample_rows / agreed.n_samples if sampled else 0.0
        first = _Counts(schema, list(dict.fromkeys(families.values())), cut.places, rate)
        for part in cut.batches():
            first.add(part)
            told(part.n_done, 2 * n_read)
        classes = first.checked_classes()
        scores = _counted_scores(counted, families, first.statistics)
        of_samples, seen = _sampled_scores(sampled, first.sample(), cut.places)
        scores |= of_samples
        for (repeat, fold), own in classes.items():
            others = sum(found for place, found in classes.items() if place[0] == repeat) - own
            scores[BASELINE, repeat, fold] = _frequencies(others / others.sum())
        tallies: dict[str, dict[Place, Tally]] = {name: {} for name in (*models, BASELINE)}
        for part in cut.batches():
            for place, rows in part.by_place():
                table = part.table.rows(rows)
                assert table.labels is not None
                for name, of_model in tallies.items():
                    score = scores[name, *place]
                    if score is not None:
                        found = Tally.of(score(table), table.labels)
                        of_model[place] = of_model[place] + found if place in of_model else found
            told(n_read + part.n_done, 2 * n_read)
    return StreamedEvaluation(
        [Summary.of(name, len(classes), of_model) for name, of_model in tallies.items()],
        {str(label): n for label, n in agreed.counts.items()},
        {name: max(seen) for name in sampled},
    )


def _is_counted(model: Any) -> bool:
    """Whether statistics are enough to fit it."""
    if not isinstance(model, CGNClassifier):
        return False
    try:
        counting_learner(model, "evaluate_stream")
    except ValueError:
        return False
    return True


# ---- folds


class _Part(NamedTuple):
    """A batch, the number of its first row, and the fold of each sample in every repetition."""

    table: Table
    start: int
    folds: NDArray[np.intp]  # (repetitions, samples)
    groups: NDArray[np.uint64] | None
    n_done: int

    def by_place(self) -> Iterator[tuple[Place, NDArray[np.intp]]]:
        """The samples of each fold of each repetition that has some here."""
        for repeat, folds in enumerate(self.folds):
            for fold in np.unique(folds).tolist():
                yield (repeat, fold), np.flatnonzero(folds == fold)


@dataclass(frozen=True)
class _Cut:
    """Files, cut into folds."""

    stream: Stream
    schema: Schema
    n_folds: int
    n_repeats: int
    seed: int

    @property
    def places(self) -> list[Place]:
        """All folds."""
        return [(repeat, fold) for repeat in range(self.n_repeats) for fold in range(self.n_folds)]

    def batches(self) -> Iterator[_Part]:
        """All samples."""
        start = n_done = 0
        for part in self.stream.parts():
            n_done += len(part.kept)
            if not part.kept.any():
                continue
            table = self.stream.table(part, self.schema)
            groups = None if part.groups is None else self.stream.group_numbers(part)
            numbers = np.arange(start, start + table.n_samples, dtype=np.uint64) if groups is None else groups
            folds = [hashed(numbers, self.seed + repeat) % np.uint64(self.n_folds) for repeat in range(self.n_repeats)]
            yield _Part(table, start, np.array(folds, np.intp), groups, n_done)
            start += table.n_samples


# ---- counting


class _Counts:
    """What the first pass finds: the statistics of each fold, and a sample of samples."""

    def __init__(self, schema: Schema, families: Sequence[Any], places: Sequence[Place], rate: float) -> None:
        self.schema, self.rate = schema, rate
        self.statistics: dict[Any, dict[Place, Statistics]] = {wanted: {} for wanted in families}
        self.classes: dict[Place, Floats] = {place: np.zeros(schema.n_classes) for place in places}
        self._drawn: list[tuple[Table, NDArray[np.intp], NDArray[np.uint64] | None]] = []

    def add(self, part: _Part) -> None:
        """Count a batch."""
        for place, rows in part.by_place():
            table = part.table.rows(rows)
            assert table.labels is not None
            self.classes[place] += np.bincount(table.labels, minlength=self.schema.n_classes)
            for wanted, found in self.statistics.items():
                more = collect(table, wanted)
                found[place] = found[place] + more if place in found else more
        if self.rate:
            drawn = np.flatnonzero(chance(part.start, part.table.n_samples) < self.rate)
            groups = None if part.groups is None else part.groups[drawn]
            self._drawn.append((part.table.rows(drawn), part.folds[:, drawn], groups))

    def checked_classes(self) -> dict[Place, Floats]:
        """Samples of each class in each non-empty fold, if every class remains for training without the fold."""
        occupied = {place: n for place, n in self.classes.items() if n.any()}
        for (repeat, fold), own in occupied.items():
            others = sum((n for place, n in occupied.items() if place[0] == repeat), -own)
            gone = np.flatnonzero(others == 0)
            if len(gone):
                label = self.schema.classes[gone[0]]
                raise ValueError(
                    f"fold {fold} leaves no training samples of class {label!s}: use other folds, or more samples or "
                    "groups"
                )
        return occupied

    def sample(self) -> _Sample | None:
        """The samples that were drawn, as a data frame."""
        if not self._drawn:
            return None
        import pandas as pd

        classes = np.array(self.schema.classes)
        tables, folds, groups = zip(*self._drawn, strict=True)
        return _Sample(
            pd.concat([frame_of(table) for table in tables], ignore_index=True),
            classes[np.concatenate([table.labels for table in tables])],
            np.concatenate(folds, axis=1),
            None if groups[0] is None else np.concatenate(groups),
            classes,
        )


class _Sample(NamedTuple):
    X: Any
    y: NDArray[Any]
    folds: NDArray[np.intp]
    groups: NDArray[np.uint64] | None
    classes: NDArray[Any]


# ---- scoring


def _counted_scores(
    models: Mapping[str, CGNClassifier], families: Mapping[str, Any], statistics: Mapping[Any, dict[Place, Statistics]]
) -> dict[tuple[str, int, int], Score | None]:
    """How each model, fitted to the other folds, scores a fold; None where maximum likelihood does not exist."""
    scores: dict[tuple[str, int, int], Score | None] = {}
    for wanted, by_place in statistics.items():
        for repeat in sorted({place[0] for place in by_place}):
            places = sorted(place for place in by_place if place[0] == repeat)
            for place, others in zip(places, all_but_each([by_place[place] for place in places]), strict=True):
                for name in (name for name, own in families.items() if own == wanted):
                    model = models[name]
                    try:
                        made = type(model).from_statistics(others, **model.get_params(deep=False))
                    except SampleNotAcceptableError:
                        scores[name, *place] = None
                    else:
                        scores[name, *place] = _of_counted(made)
    return scores


def _of_counted(model: CGNClassifier) -> Score:
    return lambda table: normalised(model._log_scores(table))


def _frequencies(shares: Floats) -> Score:
    return lambda table: np.broadcast_to(np.log(shares), (table.n_samples, len(shares)))


def _sampled_scores(
    models: Mapping[str, Any], sample: _Sample | None, places: Sequence[Place]
) -> tuple[dict[tuple[str, int, int], Score | None], list[int]]:
    """The same of models that need samples, and how many samples each fold's fit has."""
    scores: dict[tuple[str, int, int], Score | None] = {}
    n_seen = [0]
    for repeat, fold in places if sample is not None else ():
        assert sample is not None
        rows = np.flatnonzero(sample.folds[repeat] != fold)
        n_seen.append(len(rows))
        absent = np.setdiff1d(sample.classes, sample.y[rows])
        if len(absent):
            raise ValueError(
                f"{', '.join(models)} must be fitted to a sample, which has no sample of class {absent[0]!s}: "
                "draw a larger one, or name a structure that statistics tell"
            )
        for name, model in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                try:
                    made = fitted(model, sample.X, sample.y, rows, sample.groups)
                except SampleNotAcceptableError:
                    scores[name, repeat, fold] = None
                else:
                    scores[name, repeat, fold] = _of_sampled(made)
    return scores, n_seen


def _of_sampled(model: Any) -> Score:
    def score(table: Table) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            found: Floats = model.predict_log_proba(frame_of(table))
        return found

    return score
