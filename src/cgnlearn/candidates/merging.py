"""The settings of one candidate, on all its transforms, as one member: a weighted sum of their log likelihoods.

Such a sum is a model of the same kind: a path of penalties becomes one regression with averaged coefficients, and
networks add up their contributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cgnlearn.candidates.candidate import HeldOut, Settings
from cgnlearn.candidates.comparison import Scores
from cgnlearn.candidates.weights import Evidence, worth_keeping
from cgnlearn.data.arrays import Columns, Floats

MOST_DROPPED = 0.2  # total share of the lightest settings, which are dropped: each costs as much as the heaviest


class Piece(NamedTuple):
    """The settings of a member on one transform."""

    held_out: HeldOut
    shares: Floats  # 0 for settings that are dropped: (settings,)
    powers: Floats  # of the likelihoods: share × likelihood power

    @property
    def kept(self) -> Columns:
        """Indexes of the settings that have a share."""
        return np.flatnonzero(self.shares)

    @property
    def log_likelihood(self) -> Floats:
        """Sum over the settings, of held-out samples: (samples, classes)."""
        found: Floats = np.tensordot(self.powers[self.kept], self.held_out.log_likelihood[self.kept], 1)
        return found


Merged = list[Piece]  # shares sum to one over all of them


def merged(held_out: Sequence[HeldOut], scores: Scores, evidence: Evidence) -> list[Merged]:
    """Merge the settings of each candidate; ``scores`` are those of all settings."""
    ends = np.cumsum([len(each.log_likelihood) for each in held_out])
    members: dict[str, list[int]] = {}
    for i, each in enumerate(held_out):
        members.setdefault(each.candidate.member, []).append(i)
    found = []
    for places in members.values():
        of_settings = np.concatenate([np.arange(ends[i] - len(held_out[i].log_likelihood), ends[i]) for i in places])
        shares, powers = _shares(scores, of_settings, evidence), scores.power[of_settings]
        cuts = np.cumsum([len(held_out[i].log_likelihood) for i in places])[:-1]
        parts = zip(places, np.split(shares, cuts), np.split(shares * powers, cuts), strict=True)
        found.append([Piece(held_out[i], *part) for i, *part in parts])
    return found


def _shares(scores: Scores, which: Columns, evidence: Evidence) -> Floats:
    """Shares of the settings of one member; if none of them exists, the first stands for all."""
    shares = np.zeros(len(which))
    exists = np.isfinite(scores.log_loss[which])
    if not exists.any():
        shares[0] = 1.0
        return shares
    shares[exists] = evidence.weights(scores.truth[:, which[exists]], scores.second[which[exists]])
    shares[~worth_keeping(shares, MOST_DROPPED)] = 0.0
    return shares / shares.sum()


def as_one(merged: Merged) -> HeldOut:
    """The held-out samples of a member, with one log likelihood."""
    total = np.sum([piece.log_likelihood for piece in merged if len(piece.kept)], axis=0)
    return merged[0].held_out._replace(log_likelihood=total[None])


class Member(NamedTuple):
    """A candidate with its weight in the mixture; its settings are merged."""

    settings: Settings  # that all merged settings have in common: the candidate, and terms of a regression
    shares: tuple[tuple[Settings, float], ...]  # the other settings, such as the transform, with their shares
    likelihood_power: float  # of the merged likelihood
    weight: float
    log_loss: float  # of held-out samples

    def __str__(self) -> str:
        words = [str(value) for value in self.settings.values()]
        for name in dict.fromkeys(name for settings, _ in self.shares for name in settings):
            values = sorted({settings[name] for settings, _ in self.shares if name in settings})
            if isinstance(values[0], str):
                words += [] if values == ["none"] else [f"{name} {' and '.join(values)}"]
            else:
                words.append(f"{name} {values[0]:.3g}" + (f" to {values[-1]:.3g}" if len(values) > 1 else ""))
        return ", ".join(words)


def members(merged: Sequence[Merged], scores: Scores, weights: Floats) -> list[Member]:
    """All candidates, those without weight included; ``scores`` are those of the merged candidates."""
    found = []
    for i, pieces in enumerate(merged):
        settings, shares = [], []
        for piece in pieces:
            settings += [piece.held_out.candidate.settings[j] for j in piece.kept]
            shares += piece.shares[piece.kept].tolist()
        common = {name: settings[0][name] for name in ("candidate", "terms") if name in settings[0]}
        varying = [{name: value for name, value in one.items() if name not in common} for one in settings]
        of_settings = tuple(zip(varying, shares, strict=True))
        found.append(Member(common, of_settings, float(scores.power[i]), float(weights[i]), float(scores.log_loss[i])))
    return found
