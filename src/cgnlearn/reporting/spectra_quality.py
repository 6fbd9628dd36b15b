"""The page about the quality of a folder of raw spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cgnlearn.files import write_whole
from cgnlearn.reporting.page import environment, heading
from cgnlearn.reporting.spectra_quality_figures import (
    MOST_CLASSES,
    correlations,
    mean_figure,
    panels_figure,
    replicates_figure,
    strips_figure,
)
from cgnlearn.spectra.inspection import APART, COVERED, LOWEST, NEAREST, WIDTH, Inspection, lowest_usual
from cgnlearn.spectra.quality import (
    FACTOR,
    FAR,
    FEWEST,
    MEASURES,
    PEAK_LIST,
    WORDS,
    Remark,
    figures,
    limit,
    limits,
    shown,
)

MOST_ROWS = 2000  # of the table
MOST_NAMED = 6  # spectra of a fault


def write_spectra_report(
    path: str | Path, found: Inspection, title: str, settings: Mapping[str, str] | None = None
) -> None:
    """Write the page, one self-contained file.

    Parameters
    ----------
    path : str or Path
    found : Inspection
    title : str
    settings : mapping, optional
        Facts to list, such as the name of the folder.
    """
    n = len(found.spectra)
    measures = [of.quality for of in found.spectra]
    labels = [label for label in found.labels if label is not None]
    classes = {label: labels.count(label) for label in sorted(set(labels))}
    text = (
        environment()
        .get_template("spectra.html")
        .render(
            n=n,
            n_samples=len({of.sample for of in found.spectra}),
            unusual=found.unusual,
            headline=_headline(found),
            faults=[_fault(found, remark, own) for remark, own in found.faults().items()],
            refused=[str(error) for error in found.refused],
            warnings=[*found.warnings, *_warnings(found)],
            formats=found.formats,
            classes=classes,
            by_class=_by_class(found, list(classes)),
            n_unlabelled=n - len(labels),
            ranges=_ranges([f"{of.start:,.0f} to {of.stop:,.0f}" for of in measures]),
            points=_span([of.n_points for of in measures]),
            strips=strips_figure(found, list(classes)[:MOST_CLASSES]),
            mean=mean_figure(found, list(classes)),
            panels=panels_figure(found),
            replicates=replicates_figure(found),
            n_replicated=len(found.replicates),
            rows=_rows(found),
            limits=_limits(found),
            far=FAR,
            limit=limit(n),
            factor=FACTOR,
            fewest=FEWEST,
            apart=APART,
            covered=COVERED,
            nearest=NEAREST,
            width=WIDTH,
            lowest=LOWEST,
            settings=dict(settings or {}),
            **heading(title),
        )
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def _headline(found: Inspection) -> str:
    n, odd, bad = len(found.spectra), len(found.unusual), len(found.refused)
    files = f"{bad} file{'s' * (bad != 1)} cannot be read"
    if n == 1:
        told = "One spectrum: its figures are below, and there is none to compare it with"
    elif odd:
        told = f"{odd} of {n:,} spectra need{'s' * (odd == 1)} a look"
    else:
        told = f"None of {n:,} spectra stands out"
    return f"{told}; {files}." if bad else f"{told}."


def _warnings(found: Inspection) -> list[str]:
    told = []
    n = len(found.spectra)
    if 1 < n < FEWEST:
        told.append(f"{n} spectra are too few to say what is usual: only faults of single spectra are found.")
    lists = sum(of.quality.n_points < PEAK_LIST for of in found.spectra)
    if lists:
        told.append(
            f"{lists} of {n} spectra have fewer than {PEAK_LIST} points and are taken for lists of peaks: noise and "
            "baseline of these cannot be measured."
        )
    return told


def _fault(found: Inspection, remark: Remark, own: Sequence[int]) -> dict[str, Any]:
    """A fault, its spectra with their figures, and what to do."""
    named = []
    for i in own[:MOST_NAMED]:
        why = next(of.why for of in found.spectra[i].remarks if of.what == remark.what)
        named.append((found.spectra[i].file, why))
    return {"what": remark.what, "advice": remark.advice, "named": named, "n": len(own)}


def _ranges(texts: Sequence[str]) -> list[tuple[str, int]]:
    """The most frequent ranges with their counts."""
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    return sorted(counts.items(), key=lambda item: -item[1])[:3]


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}, median {np.median(values):,.0f}"


def _by_class(found: Inspection, classes: Sequence[str]) -> list[tuple[str, int, list[str], str]]:
    """Medians of each class, and how many of its spectra stand out."""
    rows = []
    for label in classes:
        own = [of for of in found.spectra if of.label == label]
        values = []
        for name in MEASURES:
            known = figures([of.quality for of in own], name)
            known = known[np.isfinite(known)]
            values.append(shown(name, float(np.median(known))) if len(known) else "—")
        rows.append((label, len(own), values, f"{sum(bool(of.remarks) for of in own)}"))
    return rows


def _limits(found: Inspection) -> list[tuple[str, str, str, str]]:
    """Median and limits of each figure over all spectra."""
    rows = []
    measures = [of.quality for of in found.spectra]
    for name, sides in MEASURES.items():
        of = limits(figures(measures, name), name)
        if of is not None:
            low, high = (shown(name, max(value, 0)) for value in (of.low, of.high))
            rows.append((WORDS[name], shown(name, of.median), low if -1 in sides else "", high if 1 in sides else ""))
    for name, values in correlations(found).items():
        least = lowest_usual(values)
        if least is not None:
            rows.append((name, f"{np.nanmedian(values):.2f}", f"{least:.2f}", ""))
    return rows


def _rows(found: Inspection) -> list[dict[str, Any]]:
    """The table, spectra with remarks first."""
    first = set(found.unusual)
    order = [*found.unusual, *(i for i in range(len(found.spectra)) if i not in first)]
    rows = []
    for i in order[:MOST_ROWS]:
        of = found.spectra[i]
        values = {name: getattr(of.quality, name) for name in MEASURES}
        cells = [(name, _key(value), shown(name, value)) for name, value in values.items()]
        for name, r in (("correlation", of.correlation), ("replicates", of.with_replicates)):
            cells.append((name, _key(r), f"{r:.2f}".replace("-", "−") if np.isfinite(r) else "—"))
        told = ", ".join(remark.what for remark in of.remarks)
        rows.append({"file": of.file, "label": of.label, "cells": cells, "told": told})
    return rows


def _key(value: float) -> float:
    """What a table sorts by: unknown values come first."""
    return float(value) if np.isfinite(value) else -2.0
