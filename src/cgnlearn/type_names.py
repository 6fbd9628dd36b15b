"""The names by which model files call our types.

A file is read after a class, a module or a field was renamed, so it holds none of these names but those of this table.
A name on the left is never changed and never given to another type; what is renamed or moved changes on the right. A
field that is renamed gets a line in `RENAMED`. Where that is not enough, `persistence.FORMAT` is raised.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

OURS = "cgnlearn"  # stands in files in place of a module

TYPES = {
    "align": "cgnlearn.spectra.steps.Align",
    "aode": "cgnlearn.candidates.aode.AODE",
    "aode-counts": "cgnlearn.candidates.aode.PairCounts",
    "aode-fitted": "cgnlearn.candidates.aode.FittedAODE",
    "band": "cgnlearn.structures.band.Band",
    "band-average": "cgnlearn.structures.band_average.BandAverage",
    "bands-fitted": "cgnlearn.candidates.bands.FittedBands",
    "baseline": "cgnlearn.spectra.steps.Baseline",
    "bayes": "cgnlearn.networks.estimation.Bayes",
    "bin": "cgnlearn.spectra.binning.Bin",
    "bins": "cgnlearn.data.transforms.Bins",
    "box": "cgnlearn.structures.band.Box",
    "classifier": "cgnlearn.estimators.classifier.CGNClassifier",
    "classifier-cv": "cgnlearn.estimators.mixture_classifier.CGNClassifierCV",
    "complete": "cgnlearn.structures.fixed.Complete",
    "correction": "cgnlearn.logistic.correction.Correction",
    "families": "cgnlearn.networks.families.Families",
    "given": "cgnlearn.structures.fixed.Given",
    "greedy-jan": "cgnlearn.structures.search.GreedyJan",
    "jan": "cgnlearn.structures.fixed.Jan",
    "logistic-expansion": "cgnlearn.logistic.features.Expansion",
    "logistic-fitted": "cgnlearn.candidates.logistic.FittedLogistic",
    "logistic-odds": "cgnlearn.logistic.design.LinearOdds",
    "maximum-likelihood": "cgnlearn.networks.estimation.MaximumLikelihood",
    "member": "cgnlearn.candidates.merging.Member",
    "mixture": "cgnlearn.candidates.mixture.Mixture",
    "mixture-density": "cgnlearn.candidates.mixture.Density",
    "mixture-part": "cgnlearn.candidates.mixture.Part",
    "naive-bayes": "cgnlearn.structures.fixed.NaiveBayes",
    "network-fitted": "cgnlearn.candidates.networks.FittedNetworks",
    "normalise": "cgnlearn.spectra.steps.Normalise",
    "ordinal-fitted": "cgnlearn.candidates.ordinal.FittedOrdinal",
    "peaks": "cgnlearn.spectra.binning.Peaks",
    "power": "cgnlearn.data.transforms.Power",
    "prior": "cgnlearn.networks.prior.Prior",
    "rotated-complete": "cgnlearn.structures.fixed.RotatedComplete",
    "rotation": "cgnlearn.networks.rotation.Rotation",
    "schema": "cgnlearn.data.schema.Schema",
    "search-state": "cgnlearn.structures.search.SearchState",
    "searched-jan": "cgnlearn.structures.search.SearchedJan",
    "selective-naive-bayes": "cgnlearn.structures.selective_naive_bayes.SelectiveNaiveBayes",
    "site-shift": "cgnlearn.data.sites.SiteShift",
    "smooth": "cgnlearn.spectra.steps.Smooth",
    "spectrum": "cgnlearn.spectra.spectrum.Spectrum",
    "square-root": "cgnlearn.spectra.steps.SquareRoot",
    "statistics": "cgnlearn.networks.statistics.Statistics",
    "update-part": "cgnlearn.estimators.updated.Recalibrated",
    "update-rung": "cgnlearn.estimators.updated.Rung",
    "updated-classifier": "cgnlearn.estimators.updated.UpdatedClassifier",
    "structure": "cgnlearn.networks.structure.Structure",
    "table": "cgnlearn.data.table.Table",
    "tan": "cgnlearn.structures.tan.TAN",
    "tan-average": "cgnlearn.structures.tan_average.TANAverage",
    "trim": "cgnlearn.spectra.steps.Trim",
    "typicality": "cgnlearn.networks.typicality.Reference",
    "unchanged": "cgnlearn.data.transforms.Unchanged",
}

#: Fields by name of type: as they stand in files written earlier, and as they are now.
RENAMED: dict[str, dict[str, str]] = {}


def named(schema: bytes) -> bytes:
    """A skops schema with our types by their names in files; a type without one is left as it is."""
    tree = json.loads(schema)
    names = {place: name for name, place in TYPES.items()}
    for node in nodes(tree):
        name = names.get(f"{node.get('__module__')}.{node.get('__class__')}")
        if name is not None:
            node |= {"__module__": OURS, "__class__": name}
    return json.dumps(tree).encode()


def placed(schema: bytes) -> bytes:
    """A schema from a file with our types and fields as they are called now; an unknown one is left as it is."""
    tree = json.loads(schema)
    for node in nodes(tree):
        name = node.get("__class__")
        if node.get("__module__") != OURS or name not in TYPES:
            continue
        node["__module__"], _, node["__class__"] = TYPES[name].rpartition(".")
        if name in RENAMED:
            fields = node["content"]["content"]
            node["content"]["content"] = {RENAMED[name].get(field, field): fields[field] for field in fields}
    return json.dumps(tree).encode()


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object of a schema."""
    open_parts = [schema]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, dict):
            yield part
            open_parts += part.values()
        elif isinstance(part, list):
            open_parts += part
