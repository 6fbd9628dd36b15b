"""Cross-validation of files that do not fit into memory: one pass counts each fold, a second one scores.

A model is fitted to the sum of the other folds' statistics, so the files are read twice for any number of folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import hashed
from cgnlearn.data.table import Table
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.classifier import CGNClassifier, counting_learner
from cgnlearn.evaluation.metrics import Place, Summary, Tally
from cgnlearn.evaluation.study import BASELINE, fitted, log_proba_of
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.estimation import SampleNotAcceptableError
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.statistics import Statistics, all_but_each, collect
from cgnlearn.streams import SAMPLE_ROWS, Progress, frame_of, uniform, warn_without_class
from cgnlearn.tables.batches import Stream, group_numbers, stream_of
from cgnlearn.tables.read import BATCH_ROWS

Score = Callable[[Table], Floats]  # log probabilities of the classes
Scores = dict[tuple[str, int, int], Score | None]  # by model, repetition and fold; None: the model does not exist


@dataclass(frozen=True)
class StreamedEvaluation:
    """Results of `evaluate_stream`.

    Parameters
    ----------
    summaries : list of Summary
        One for each model, and one for the class frequencies.
    counts : dict of str to int
        Samples of each class.
    sampled : dict of str to int
        Models that cannot be fitted to statistics, with the size of the largest random sample they were fitted to.
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

    A sample's fold is a hash of its number or of its group: folds are similar in size, but not stratified. Levels and
    classes are those of all files. Models that can be fitted to statistics are fitted to all samples outside the fold;
    others (searches, `CGNClassifierCV`, classifiers of other libraries) to a random sample of these. All models are
    scored on all samples.

    Parameters
    ----------
    models : mapping from names to classifiers
    source : path, list of paths or pyarrow.dataset.Dataset
    target : str
        The column of the classes.
    groups : str, optional
        Column of groups: samples of a group are in the same fold. It is not a feature.
    n_folds, n_repeats, seed : int
        Repetition r is split with the random seed ``seed + r``.
    sample_rows : int
        About how many samples are drawn for models that cannot be fitted to statistics.
    columns, categorical_features, drop_missing, batch_rows
        As for `fit_stream`.
    progress : callable, optional
        Called with the number of rows read so far in both passes, and with twice the number of all rows.

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
    tan: 0.97
    class frequencies: 0.28
    """
    kinds = {
        repr(model.categorical_features): model.categorical_features for model in models.values() if _counts(model)
    }
    if len(kinds) > 1:
        raise ValueError("models of one evaluation must have the same categorical_features: evaluate them separately")
    categorical = next(iter(kinds.values()), "from_dtype")
    options: dict[str, Any] = {"groups": groups, "drop_missing": drop_missing, "batch_rows": batch_rows}
    stream = stream_of(source, target, columns, categorical_features, categorical, **options)
    warn_without_class(stream)
    return evaluate_on(stream, models, n_folds, n_repeats, seed, sample_rows, progress)


def evaluate_on(
    stream: Stream,
    models: Mapping[str, Any],
    n_folds: int,
    n_repeats: int,
    seed: int,
    sample_rows: int = SAMPLE_ROWS,
    progress: Progress | None = None,
) -> StreamedEvaluation:
    """Cross-validate classifiers on a stream."""
    if n_folds < 2 or n_repeats < 1:
        raise ValueError(f"cross-validation needs at least 2 folds and 1 repetition, not {n_folds}x{n_repeats}")
    schema, n_read = stream.survey.schema, stream.survey.n_read
    counted = {name: model for name, model in models.items() if _counts(model)}
    sampled = {name: model for name, model in models.items() if name not in counted}
    progress = progress or (lambda n_done, n_all: None)
    with numeric_libraries().limit(limits=1, user_api="blas"):  # products this small are slower in several threads
        families = {name: counting_learner(model, name).families(schema) for name, model in counted.items()}
        statistics: dict[Any, dict[Place, Statistics]] = {key: {} for key in families.values()}
        classes: dict[Place, Floats] = {}
        drawn: list[_Batch] = []
        for batch in _batches(stream, n_folds, n_repeats, seed):
            for place, table in batch.by_place():
                _add(classes, place, np.bincount(np.asarray(table.labels), minlength=schema.n_classes).astype(float))
                for key, by_place in statistics.items():
                    _add(by_place, place, collect(table, key))
            if sampled:
                drawn.append(batch.sample(sample_rows / stream.survey.n_samples))
            progress(batch.n_read, 2 * n_read)
        scores: Scores = {}
        for repeat, fold in sorted(classes):
            others = sum(n for place, n in classes.items() if place[0] == repeat) - classes[repeat, fold]
            if not others.all():
                label = schema.classes[int(others.argmin())]
                raise ValueError(
                    f"fold {fold} has all samples of class {label!s}: use other folds, or more samples or groups"
                )
            scores[BASELINE, repeat, fold] = _constant(np.log(others / others.sum()))
        _fit_to_statistics(scores, counted, families, statistics)
        n_sampled = _fit_to_sample(scores, sampled, drawn) if sampled else 0
        tallies: dict[str, dict[Place, Tally]] = {name: {} for name in (*models, BASELINE)}
        for batch in _batches(stream, n_folds, n_repeats, seed):
            for place, table in batch.by_place():
                for name, tally in tallies.items():
                    score = scores[name, *place]
                    if score is not None:
                        _add(tally, place, Tally.of(score(table), np.asarray(table.labels)))
            progress(n_read + batch.n_read, 2 * n_read)
    return StreamedEvaluation(
        [Summary.of(name, len(classes), tally) for name, tally in tallies.items()],
        {str(label): n for label, n in stream.survey.counts.items()},
        dict.fromkeys(sampled, n_sampled),
    )


def _counts(model: Any) -> bool:
    """Whether a model can be fitted to statistics."""
    try:
        return isinstance(model, CGNClassifier) and counting_learner(model, "evaluate_stream") is not None
    except ValueError:
        return False


def _add(totals: dict[Place, Any], place: Place, more: Any) -> None:
    totals[place] = totals[place] + more if place in totals else more


class _Batch(NamedTuple):
    table: Table
    start: int  # number of the first sample
    folds: NDArray[np.intp]  # (repetitions, samples)
    groups: NDArray[np.uint64] | None
    n_read: int  # rows of the file up to here

    def by_place(self) -> Iterator[tuple[Place, Table]]:
        """The samples of each fold of each repetition."""
        for repeat, folds in enumerate(self.folds):
            for fold in np.unique(folds).tolist():
                yield (repeat, fold), self.table.rows(np.flatnonzero(folds == fold))

    def sample(self, rate: float) -> _Batch:
        """A random sample of the samples."""
        drawn = np.flatnonzero(uniform(self.start, self.table.n_samples) < rate)
        groups = None if self.groups is None else self.groups[drawn]
        return self._replace(table=self.table.rows(drawn), folds=self.folds[:, drawn], groups=groups)


def _batches(stream: Stream, n_folds: int, n_repeats: int, seed: int) -> Iterator[_Batch]:
    start = n_read = 0
    for part in stream.parts():
        n_read += len(part.kept)
        if not part.kept.any():
            continue
        table, groups = stream.table(part), group_numbers(part)
        keys = np.arange(start, start + table.n_samples, dtype=np.uint64) if groups is None else groups
        folds = [hashed(keys, seed + repeat) % np.uint64(n_folds) for repeat in range(n_repeats)]
        yield _Batch(table, start, np.array(folds, np.intp), groups, n_read)
        start += table.n_samples


# ---- scores


def _fit_to_statistics(
    scores: Scores,
    models: Mapping[str, CGNClassifier],
    families: Mapping[str, Any],
    statistics: Mapping[Any, dict[Place, Statistics]],
) -> None:
    """Add the scores of models fitted to the statistics of the other folds."""
    for key, by_place in statistics.items():
        for repeat in sorted({place[0] for place in by_place}):
            places = sorted(place for place in by_place if place[0] == repeat)
            for place, others in zip(places, all_but_each([by_place[place] for place in places]), strict=True):
                for name, model in models.items():
                    if families[name] == key:
                        try:
                            fitted_model = type(model).from_statistics(others, **model.get_params(deep=False))
                        except SampleNotAcceptableError:
                            scores[name, *place] = None
                        else:
                            scores[name, *place] = _of_network(fitted_model)


def _fit_to_sample(scores: Scores, models: Mapping[str, Any], drawn: Sequence[_Batch]) -> int:
    """Add the scores of models fitted to the drawn samples outside the fold; return the largest number of these."""
    X, y = frame_of([batch.table for batch in drawn])
    folds = np.concatenate([batch.folds for batch in drawn], axis=1)
    groups = None if drawn[0].groups is None else np.concatenate([np.asarray(batch.groups) for batch in drawn])
    classes, n_most = np.array(drawn[0].table.schema.classes), 0
    for repeat, fold in [(repeat, fold) for name, repeat, fold in scores if name == BASELINE]:
        rows = np.flatnonzero(folds[repeat] != fold)
        n_most = max(n_most, len(rows))
        absent = np.setdiff1d(classes, y[rows])
        if len(absent):
            raise ValueError(
                f"{', '.join(models)} must be fitted to a random sample, which has no sample of class {absent[0]!s}: "
                "draw a larger one, or name a structure that can be fitted to statistics"
            )
        for name, model in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                try:
                    fitted_model = fitted(model, X, y, rows, groups)
                except SampleNotAcceptableError:
                    scores[name, repeat, fold] = None
                else:
                    scores[name, repeat, fold] = _of_classifier(fitted_model)
    return n_most


def _constant(log_proba: Floats) -> Score:
    return lambda table: np.broadcast_to(log_proba, (table.n_samples, len(log_proba)))


def _of_network(model: CGNClassifier) -> Score:
    return lambda table: normalised(model._log_scores(table))


def _of_classifier(model: Any) -> Score:
    def score(table: Table) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            log_proba = log_proba_of(model, frame_of([table])[0])
        return log_proba

    return score
