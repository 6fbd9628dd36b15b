"""A study of spectra, seen by sample: the log odds of the spectra of a sample are averaged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cgnlearn.evaluation.study import FoldResult, Study, pooled
from cgnlearn.spectra.replicates import by_sample, replicate_correlation


def of_samples(study: Study) -> Study | None:
    """The study with a row for each group, if groups are samples: a class each, and several spectra."""
    if not study.has_replicates:
        return None
    samples, first, number = np.unique(np.asarray(study.groups), return_index=True, return_inverse=True)
    if len(set(zip(number.tolist(), study.true.tolist(), strict=True))) > len(samples):
        return None
    results = []
    for result in study.results:
        log_proba, rows = result.log_proba, np.unique(number[result.rows])
        if log_proba is not None:
            log_proba = by_sample(log_proba, number[result.rows]).log_proba
        results.append(FoldResult(result.unit, rows, log_proba, seconds=result.seconds))
    X = study.X.iloc[first] if hasattr(study.X, "iloc") else study.X[first]
    return replace(study, X=X, y=study.y[first], results=results, lines=None, ids=samples, groups=None, raw=None)


def correlation_of_replicates(study: Study) -> float | None:
    """Correlation of the chosen model's log odds of one sample's spectra; None without predictions."""
    best = [result for result in study.results if result.unit.name == study.chosen and not result.unit.repeat]
    if not best or study.groups is None:
        return None
    rows = np.concatenate([result.rows for result in best])
    return replicate_correlation(*pooled(best, study.true), np.asarray(study.groups)[rows])
