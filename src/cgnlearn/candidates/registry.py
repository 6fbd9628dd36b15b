"""The names of all candidates: the one list for both estimators and for the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cgnlearn.candidates.candidate import Candidate, Profile, Settings, Skipped
    from cgnlearn.candidates.networks import NetworkCandidate
    from cgnlearn.data.schema import Schema
    from cgnlearn.networks.estimation import Estimation
    from cgnlearn.structures.learner import Learner

# The class of each name, imported on first use: `cgnlearn --help` must not wait for scikit-learn.
_HOMES = {
    "naive_bayes": "networks.NaiveBayesCandidate",
    "selective_naive_bayes": "networks.SelectiveNaiveBayesCandidate",
    "complete": "networks.CompleteCandidate",
    "tan": "networks.TANCandidate",
    "tan_average": "networks.TANAverageCandidate",
    "fwgjan": "networks.ForwardCandidate",
    "bwgjan": "networks.BackwardCandidate",
    "wcgjan": "networks.CondensedCandidate",
    "band": "bands.BandCandidate",
    "box": "bands.BoxCandidate",
    "band_average": "bands.BandAverageCandidate",
    "aode": "aode.AODECandidate",
    "logistic": "logistic.LogisticCandidate",
    "ordinal": "ordinal.OrdinalCandidate",
}
MOST_MEGABYTES = 4000  # of one candidate
MIXTURE = "mixture"  # of the candidates
NAMES = (*_HOMES, MIXTURE)
NETWORKS = tuple(name for name, home in _HOMES.items() if home.startswith(("networks.", "bands.")))
CANDIDATES = tuple(_HOMES)


def candidate_class(name: str) -> type[Candidate]:
    """Return the class of a candidate.

    Examples
    --------
    >>> candidate_class("tan").label
    'each feature with the one most related to it (TAN)'
    """
    module, _, class_name = _HOMES[name].partition(".")
    found: type[Candidate] = getattr(import_module(f"cgnlearn.candidates.{module}"), class_name)
    return found


def in_words(settings: Settings) -> str:
    """Describe how a member of a mixture models the features."""
    from cgnlearn.candidates.networks import FrequenciesCandidate, LearnerCandidate

    name = settings["candidate"]
    if name == FrequenciesCandidate.name:
        return FrequenciesCandidate.label
    return (candidate_class(name) if name in _HOMES else LearnerCandidate).in_words(settings)


def suited(profile: Profile, wanted: Collection[str | Learner] | None) -> Iterator[Candidate | Skipped]:
    """The default candidates, or those that are wanted: suited to the table, or skipped with a reason."""
    from cgnlearn.candidates.candidate import Skipped

    for each in _suited(profile, wanted):
        if not isinstance(each, Skipped) and (megabytes := each.megabytes(profile)) > MOST_MEGABYTES:
            reason = f"about {megabytes / 1000:.0f} GB of memory: use fewer columns, classes or levels"
            yield Skipped(each.name, each.transform, reason)
        else:
            yield each


def _suited(profile: Profile, wanted: Collection[str | Learner] | None) -> Iterator[Candidate | Skipped]:
    from cgnlearn.candidates.networks import FrequenciesCandidate
    from cgnlearn.networks.estimation import Bayes
    from cgnlearn.structures.learner import Learner

    yield from FrequenciesCandidate.suited(profile)
    for name in _HOMES:
        candidate = candidate_class(name)
        if candidate.by_default if wanted is None else name in wanted:
            yield from candidate.suited(profile)
    for learner in (each for each in wanted or () if isinstance(each, Learner)):
        for transform in profile.transforms if not profile.prior.in_own_units else ("none",):
            yield candidate_of(learner, Bayes(profile.prior), profile.schema, transform)


def candidate_of(
    learner: Learner,
    estimation: Estimation,
    schema: Schema,
    transform: str = "none",
    *,
    any_sharing: bool = False,
    missing_indicator: bool = False,
) -> NetworkCandidate:
    """A learner as a candidate: with every k if its k is "cv", and with every sharing if wanted."""
    from cgnlearn.candidates.networks import SHARINGS, LearnerCandidate, NetworkCandidate
    from cgnlearn.structures.band import Ordered

    kinds = [kind for kind in map(candidate_class, NETWORKS) if issubclass(kind, NetworkCandidate)]
    kind = next((kind for kind in kinds if kind.is_of(learner)), None)
    sharings = kind.sharings if kind else SHARINGS
    estimations = tuple(replace(estimation, sharing=sharing) for sharing in sharings) if any_sharing else (estimation,)
    settings = transform, estimations, ("sharing",) if any_sharing else (), missing_indicator
    if kind and isinstance(learner, Ordered) and learner.needs_samples:
        learner.check()
        return kind(type(learner)("cv", k_max=learner.greatest_k(schema)), *settings)
    return LearnerCandidate(learner, *settings, kind.name if kind else type(learner).__name__)


def learner_of(structure: Any, random_state: Any = 0) -> Learner:
    """Return the learner that ``structure=`` stands for; ``random_state`` is for searches given by name."""
    from cgnlearn.candidates.networks import NetworkCandidate
    from cgnlearn.networks.structure import Structure
    from cgnlearn.structures.fixed import Given
    from cgnlearn.structures.learner import Learner

    if isinstance(structure, Learner):
        return structure
    if isinstance(structure, Structure):
        return Given(structure)
    if isinstance(structure, str):
        if structure in NETWORKS:
            kind = candidate_class(structure)
            assert issubclass(kind, NetworkCandidate)
            return kind.named_learner(random_state)
        if structure in NAMES:
            given = "" if structure == MIXTURE else f'candidates=["{structure}"]'
            raise ValueError(f"{structure} is no structure of one network: use CGNClassifierCV({given})")
        names = ", ".join(f'"{name}"' for name in NETWORKS)
        raise ValueError(f"structure must be one of {names}, a Structure, a learner or a mapping, not {structure!r}")
    try:
        return Given(Structure.from_parents(dict(structure)))
    except TypeError:
        raise TypeError(
            f"structure must be a name, a Structure, a learner or a mapping child -> parents, not {structure!r}"
        ) from None
