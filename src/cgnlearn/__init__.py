"""Conditional Gaussian network classifiers with exact Bayesian averaging."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cgnlearn.distributed import fit_dask as fit_dask
    from cgnlearn.distributed import predict_dask as predict_dask
    from cgnlearn.estimators.classifier import CGNClassifier as CGNClassifier
    from cgnlearn.estimators.mixture_classifier import CGNClassifierCV as CGNClassifierCV
    from cgnlearn.estimators.update import update as update
    from cgnlearn.evaluation.plan import plan as plan
    from cgnlearn.evaluation.streamed import evaluate_stream as evaluate_stream
    from cgnlearn.evaluation.validation import validate as validate
    from cgnlearn.networks.estimation import SampleNotAcceptableError as SampleNotAcceptableError
    from cgnlearn.networks.prior import Prior as Prior
    from cgnlearn.networks.statistics import Statistics as Statistics
    from cgnlearn.networks.structure import Structure as Structure
    from cgnlearn.persistence import load as load
    from cgnlearn.persistence import save as save
    from cgnlearn.portable.export import export as export
    from cgnlearn.reporting.report import report as report
    from cgnlearn.streams import fit_stream as fit_stream
    from cgnlearn.streams import predict_stream as predict_stream
    from cgnlearn.structures.band import Band as Band
    from cgnlearn.structures.band import Box as Box
    from cgnlearn.structures.band import ordered_path as ordered_path
    from cgnlearn.structures.band_average import BandAverage as BandAverage
    from cgnlearn.structures.fixed import Complete as Complete
    from cgnlearn.structures.fixed import Jan as Jan
    from cgnlearn.structures.fixed import NaiveBayes as NaiveBayes
    from cgnlearn.structures.search import GreedyJan as GreedyJan
    from cgnlearn.structures.selective_naive_bayes import SelectiveNaiveBayes as SelectiveNaiveBayes
    from cgnlearn.structures.tan import TAN as TAN
    from cgnlearn.structures.tan_average import TANAverage as TANAverage

__version__ = "0.1.0"

# Where each public name stands. They are fetched on first use: scikit-learn takes two seconds to import, and
# `cgnlearn --help` must not wait for it.
_HOMES = {
    "Band": "structures.band",
    "BandAverage": "structures.band_average",
    "Box": "structures.band",
    "CGNClassifier": "estimators.classifier",
    "CGNClassifierCV": "estimators.mixture_classifier",
    "Complete": "structures.fixed",
    "GreedyJan": "structures.search",
    "Jan": "structures.fixed",
    "NaiveBayes": "structures.fixed",
    "Prior": "networks.prior",
    "SampleNotAcceptableError": "networks.estimation",
    "SelectiveNaiveBayes": "structures.selective_naive_bayes",
    "Statistics": "networks.statistics",
    "Structure": "networks.structure",
    "TAN": "structures.tan",
    "TANAverage": "structures.tan_average",
    "evaluate_stream": "evaluation.streamed",
    "export": "portable.export",
    "fit_dask": "distributed",
    "fit_stream": "streams",
    "load": "persistence",
    "ordered_path": "structures.band",
    "plan": "evaluation.plan",
    "predict_dask": "distributed",
    "predict_stream": "streams",
    "report": "reporting.report",
    "save": "persistence",
    "update": "estimators.update",
    "validate": "evaluation.validation",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cgnlearn' has no feature {name!r}")
    found = getattr(import_module(f"cgnlearn.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from pkgutil import iter_modules  # here, as Ctrl-C cannot be caught before the command is imported

    rooms = (module.name for module in iter_modules(__path__) if module.name != "__main__")
    return sorted({*_HOMES, *rooms, "__version__", "__doc__", "__all__", "__name__", "__file__", "__path__"})
