"""The classifiers of the commands: those of the options, the defaults, and the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import click

from cgnlearn.candidates.registry import MIXTURE, NETWORKS

ESTIMATIONS = ("bayes", "ml", "discriminative")


def compared(
    structures: Sequence[str], estimation: Sequence[str], *, seed: int, ordered: bool, **options: Any
) -> dict[str, Any]:
    """The models of an evaluation by name: those of the options, or the default and its competitors."""
    from sklearn.dummy import DummyClassifier

    from cgnlearn.evaluation.study import BASELINE, LOGISTIC

    if not any(structure in NETWORKS for structure in structures):
        _refuse_options_of_networks(estimation=estimation, **options)
    if ordered and structures and MIXTURE not in structures:
        raise _not_ordered()
    models: dict[str, Any] = {}
    for structure in dict.fromkeys(structures or (MIXTURE, "naive_bayes")):
        if structure in NETWORKS:
            for name in dict.fromkeys(estimation or ("ml", "bayes")):
                models[label(structure, name, **options)] = classifier(structure, name, seed=seed, **options)
        else:
            models[structure] = tuned(structure, seed, ordered)
    if not structures:
        models[LOGISTIC] = logistic_regression(seed)
    return models | {BASELINE: DummyClassifier(strategy="prior")}


def chosen(structure: str | None, estimation: str | None, *, seed: int, ordered: bool, **options: Any) -> Any:
    """The classifier of the options."""
    if structure in NETWORKS:
        if ordered:
            raise _not_ordered()
        return classifier(structure, estimation or "bayes", seed=seed, **options)
    _refuse_options_of_networks(estimation=estimation, **options)
    return tuned(structure or MIXTURE, seed, ordered)


def tuned(name: str, seed: int, ordered: bool) -> Any:
    """The mixture of all candidates, or of one."""
    from cgnlearn import CGNClassifierCV

    return CGNClassifierCV(candidates=None if name == MIXTURE else [name], ordered=ordered, random_state=seed)


def _not_ordered() -> click.UsageError:
    return click.UsageError(f"--ordered is for the {MIXTURE}: omit --structure, or name band or box without --ordered")


def _refuse_options_of_networks(**options: Any) -> None:
    given = [name for name, value in options.items() if value not in (None, ())]
    if given:
        option = "--" + given[0].replace("_", "-")
        raise click.UsageError(f"{option} is for networks: name one with --structure, or omit {option}")


def classifier(
    structure: str,
    estimation: Any,
    *,
    seed: int,
    k: Any = None,
    k_max: int | None = None,
    sharing: float | None = None,
    prior_location: Any = None,
    likelihood_power: Any = None,
) -> Any:
    """The network classifier of the options."""
    from cgnlearn import Band, BandAverage, Box, CGNClassifier, Prior

    shape: Any = structure
    if structure in ("band", "box"):
        shape = (Band if structure == "band" else Box)(k or "cv", k_max=k_max or 20)
    elif structure == "band_average":
        shape = BandAverage(k_max=k_max or 20)
    return CGNClassifier(
        shape,
        estimation=estimation,
        prior=Prior(location=prior_location or "pooled"),
        random_state=seed,
        sharing=0.0 if sharing is None else sharing,
        likelihood_power=1.0 if likelihood_power is None else likelihood_power,
    )


def label(
    structure: str, estimation: str, *, k: Any = None, sharing: Any = None, likelihood_power: Any = None, **_: Any
) -> str:
    """The name of a classifier in tables."""
    order = f" {k or 'cv'}" if structure in ("band", "box") else ""
    more = "".join(
        f", {name} {value if value == 'cv' else f'{value:g}'}"
        for name, value, usual in (("sharing", sharing, 0), ("likelihood power", likelihood_power, 1))
        if value not in (None, usual)
    )
    return f"{structure}{order} {estimation}{more}"


def logistic_regression(seed: int) -> Any:
    """Logistic regression with a ridge penalty by cross-validated log loss, one-hot, imputed and scaled."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    # From 1.8 on scikit-learn warns unless these are given.
    newer = "use_legacy_attributes" in signature(LogisticRegressionCV).parameters
    more = {"use_legacy_attributes": False, "l1_ratios": (0.0,)} if newer else {}
    numbers = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True), OneHotEncoder(handle_unknown="ignore")
    )
    return make_pipeline(
        make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")),
            (levels, make_column_selector(dtype_include="category")),
        ),
        LogisticRegressionCV(cv=_Folds(seed), scoring=_neg_log_loss, max_iter=1000, **more),
    )


@dataclass(frozen=True)
class _Folds:
    """A scikit-learn splitter with fewer folds for classes of few samples."""

    seed: int

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        from cgnlearn.data.splits import allowed

        return allowed(y, 5)

    def split(self, X: Any, y: Any, groups: Any = None) -> Any:
        from cgnlearn.data.splits import stratified

        return iter(stratified(y, 5, self.seed).pairs)


def _neg_log_loss(model: Any, X: Any, y: Any) -> float:
    """Negative log loss, also where the classes of the test samples differ from those of the training samples."""
    import numpy as np

    proba = model.predict_proba(X)
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    of_true = [proba[row, place[label]] if label in place else 0.0 for row, label in enumerate(np.asarray(y).tolist())]
    return float(np.log(np.maximum(of_true, np.finfo(float).tiny)).mean())
