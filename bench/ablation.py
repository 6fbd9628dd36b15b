"""What each kind of candidate brings to the mixture, and what ideas for more would: each left out, or added.

``python bench/ablation.py -o FOLDER [--data-dir DIR] [--sets ...] [--sizes ...] [--seeds N] [--ideas ...]`` computes
the held-out and the test predictions of all members that are not yet in FOLDER, and prints the tables; ``--write``
also writes docs/bench-ablation.md. Mixing them again without a member, or with another, then takes no fit.
"""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import cgnlearn
import cgnlearn.candidates.power as tempering
import cgnlearn.candidates.weights as weighing
from cgnlearn import CGNClassifierCV, Prior
from cgnlearn.candidates.candidate import Candidate, HeldOut, Samples, frequencies, held_out_frequencies
from cgnlearn.candidates.comparison import Comparison, Scores
from cgnlearn.candidates.merging import as_one, merged
from cgnlearn.candidates.mixture import Part, mixed, raised
from cgnlearn.candidates.registry import suited
from cgnlearn.candidates.weights import Evidence
from cgnlearn.data.table import read, read_training
from cgnlearn.data.transforms import learned
from cgnlearn.networks.densities import true_class_log_proba
from collection import NARROW, SIZES, division, rows
from ideas import IDEAS
from measuring import parser, publish, versions
from quality import LEAST, names
from ranking import HEADINGS

DEFAULT = "default"  # the candidates of the mixture
FREQUENCIES = "frequencies"
LITTLE = 0.0005  # nats
SOURCES = Path(cgnlearn.__file__).parent
KEPT = {"logistic, squares": ", which are tried only where there are too many products, or none"}
CODE = {  # files that only this candidate needs
    "selective_naive_bayes": ["structures/selective_naive_bayes.py"],
    "tan": ["structures/tan.py"],
    "ordinal": ["candidates/ordinal.py", "logistic/ordinal.py"],
    "logistic": ["candidates/logistic.py", "logistic/features.py", "logistic/path.py", "logistic/parts.py"],
}


def stored(results, what, name, size, seed):
    return results / what / f"{name.replace('/', '_')}-{size}-{seed}.npz"


def candidates(what, profile):
    found = suited(profile, None) if what == DEFAULT else IDEAS[what](profile)
    return [each for each in found if isinstance(each, Candidate)]


def members(what, data, train, test):
    """Held-out and test predictions of the members that the candidates become."""
    random_state = np.random.RandomState(0)
    seed = random_state.randint(np.iinfo(np.int32).max)
    table, _ = read_training(data.X[train], data.y[train], None, data.categorical or None)
    profile = CGNClassifierCV()._profile(table, table.n_samples, Prior())
    tried = candidates(what, profile)
    dirichlet = Prior().dirichlet
    samples = Samples(table, learned(dict.fromkeys(each.transform for each in tried), table))
    held_out, seconds = [], {}
    for candidate in tried:
        start = time.process_time()
        (found,) = Comparison(samples, [candidate], dirichlet, cv=None, seed=seed).held_out()
        seconds[candidate.member] = seconds.get(candidate.member, 0.0) + time.process_time() - start
        if isinstance(found, HeldOut):
            held_out.append(found)
    if not held_out:
        return {"names": np.array([], str)}
    scores = Scores.of(held_out, table)
    pieces = merged(held_out, scores, Evidence.of(table.effective_weights, random_state))
    unseen = Samples(read(data.X[test], table.schema, handle_unknown="missing"), samples.transforms)
    of_members = [each[0].held_out.candidate.member for each in pieces]
    return {
        "names": np.array(of_members),
        "held_out": np.stack([as_one(each).log_likelihood[0] for each in pieces]),
        "held_out_prior": np.stack([each[0].held_out.class_log_prior for each in pieces]),
        "test": np.stack([_log_likelihood(each, samples, unseen) for each in pieces]),
        "prior": held_out_frequencies(table, dirichlet),
        "test_prior": frequencies(table, dirichlet),
        "labels": table.labels,
        "truth": data.y[test],
        "seconds": np.array([seconds[name] for name in of_members]),
    }


def _log_likelihood(pieces, samples, unseen):
    """Log likelihood of the test samples under a member: (samples, classes)."""
    found = 0.0
    for piece in pieces:
        if len(piece.kept):
            fitted = piece.held_out.fitted or piece.held_out.candidate.fit(samples)
            likelihoods = fitted.restricted(piece.kept.tolist()).log_likelihood(unseen)
            found = found + np.tensordot(piece.powers[piece.kept], likelihoods, 1)
    return found


class Mixed:
    """The default mixture, whose members can be left out, or joined by others."""

    def __init__(self, *parts):
        first = parts[0]
        self.names = [str(name) for part in parts for name in part["names"]]
        self.prior, self.test_prior, self.truth = first["prior"], first["test_prior"], first["truth"]
        self.samples = SimpleNamespace(labels=first["labels"], effective_weights=np.ones(len(first["labels"])))
        self.held_out = [
            HeldOut(None, None, likelihood[None], prior, [""])
            for part in parts
            if len(part["names"])
            for likelihood, prior in zip(part["held_out"], part["held_out_prior"], strict=True)
        ]
        self.test = [likelihood for part in parts if len(part["names"]) for likelihood in part["test"]]
        self.scores = Scores.of(self.held_out, self.samples)

    def log_loss(self, without=()):
        """Log loss of the test samples of the mixture of all other members, as `CGNClassifierCV` mixes them."""
        used = np.array([i for i, name in enumerate(self.names) if name not in without])
        parts = {part.name: getattr(self.scores, part.name) for part in fields(Scores)}
        scores = Scores(**{name: part[..., used] for name, part in parts.items()})
        random_state = np.random.RandomState(0)
        random_state.randint(np.iinfo(np.int32).max)  # the seed of the folds
        evidence = Evidence.of(self.samples.effective_weights, random_state)
        weights = evidence.mixture_weights(scores, 0, CGNClassifierCV().max_members)
        kept = np.flatnonzero(weights)
        members = [Part((), (), weights[i]) for i in kept]
        powers = scores.power[kept]
        held_out, test = [], []
        for power, i in zip(powers, used[kept], strict=True):
            held_out.append(power * self.held_out[i].log_likelihood[0] + self.held_out[i].class_log_prior)
            test.append(power * self.test[i] + self.test_prior)
        power = 1.0
        if len(kept) > 1:
            of_members = mixed(np.stack(held_out), members)
            power = tempering.mixture_power(of_members, self.prior, self.samples.labels, self.samples.effective_weights)
        log_proba = raised(mixed(np.stack(test), members), self.test_prior, power)
        return float(-np.maximum(true_class_log_proba(log_proba, self.truth), np.log(LEAST)).mean())


@contextmanager
def rule(changes):
    """Constants of the weights, and functions in the place of their mean of two, for a while."""
    known = {(where, name): getattr(where, name) for where, name in changes}
    try:
        for (where, name), value in changes.items():
            setattr(where, name, value)
        yield
    finally:
        for (where, name), value in known.items():
            setattr(where, name, value)


def _pseudo_bma_alone(evidence, truth, second):
    return evidence.pseudo_bma(np.vstack([truth, second]))


def _stacking_alone(evidence, truth, second):
    return weighing.stacking(np.vstack([truth, second]), evidence.counts)


RULES = {
    "trusted share of the samples 0.5 instead of 0.25": {(weighing, "TRUSTED"): 0.5},
    "trusted share of the samples 0.15": {(weighing, "TRUSTED"): 0.15},
    "pseudo-count of stacking 1 instead of 3": {(weighing, "SPREAD"): 1.0},
    "pseudo-count of stacking 10": {(weighing, "SPREAD"): 10.0},
    "lightest members dropped up to a weight of 0.01 instead of 0.02": {(weighing, "MOST_DROPPED"): 0.01},
    "lightest members dropped up to a weight of 0.05": {(weighing, "MOST_DROPPED"): 0.05},
    "pseudo-BMA+ alone": {(Evidence, "weights"): _pseudo_bma_alone},
    "stacking alone": {(Evidence, "weights"): _stacking_alone},
    "no power of the mixture": {(tempering, "MOST_MIXTURE_POWER"): 1.0 + 1e-9},
    "prior of the mixture's power worth 100 instead of 30": {(tempering, "MIXTURE_PRECISION"): 100.0},
    "prior of the mixture's power worth 10": {(tempering, "MIXTURE_PRECISION"): 10.0},
}


def kind_of(member):
    """The candidate that a member is of."""
    return member.partition(",")[0]


def compute(results, data_dir, *, what, sets, sizes, n_seeds):
    """Compute the missing predictions, by seed and size."""
    for seed in range(n_seeds):
        for size in sizes:
            for name in sets:
                parts = division(data := rows(name, data_dir), size, seed)
                for each in what:
                    path = stored(results, each, name, size, seed)
                    if parts is not None and not path.exists():
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            found = members(each, data, *parts)
                        path.parent.mkdir(parents=True, exist_ok=True)
                        np.savez(path.with_suffix(".part.npz"), **found)
                        path.with_suffix(".part.npz").rename(path)
            print(f"seed {seed}, {size} samples: done", flush=True)


class Gains:
    """Gains at one size: the log loss without a candidate less that with it, and likewise of other variants."""

    def __init__(self, results, size, sets, n_seeds, ideas):
        self.size, self.seconds, losses = size, {}, {}
        for name in sets:
            for seed in range(n_seeds):
                default = _read(stored(results, DEFAULT, name, size, seed))
                if default is None:
                    continue
                mixture = Mixed(default)
                kinds = dict.fromkeys(map(kind_of, mixture.names))
                alone = [member for member in mixture.names if member != kind_of(member)]
                whole = mixture.log_loss()
                found = {
                    kind: [m for m in mixture.names if kind_of(m) == kind] for kind in kinds if kind != FREQUENCIES
                }
                found |= {member: [member] for member in alone}
                changes = {"all": whole} | {kind: mixture.log_loss(gone) - whole for kind, gone in found.items()}
                for kind, gone in found.items():
                    took = sum(default["seconds"][mixture.names.index(member)] for member in gone)
                    self.seconds.setdefault(kind, []).append(float(took))
                self.seconds.setdefault("all", []).append(float(default["seconds"].sum()))
                for words, constants in RULES.items():
                    with rule(constants):
                        changes[words] = whole - mixture.log_loss()
                    self.seconds.setdefault(words, []).append(0.0)
                for idea in ideas:
                    more = _read(stored(results, idea, name, size, seed))
                    if more is not None:
                        changes[idea] = whole - Mixed(default, more).log_loss()
                        took = float(more["seconds"].sum()) if len(more["names"]) else 0.0
                        self.seconds.setdefault(idea, []).append(took)
                losses.setdefault(name, []).append(changes)
        n_splits = {len(of_splits) for of_splits in losses.values()}
        self.n_splits = " or ".join(map(str, sorted(n_splits)))
        self.sets = list(losses)
        self.losses = losses

    def of(self, variant):
        """Mean over the splits of each data set; a candidate that is not suited to it changes nothing."""
        absent = np.nan if variant in IDEAS else 0.0  # an idea that has not been computed yet
        of_splits = [[one.get(variant, absent) for one in self.losses[name]] for name in self.sets]
        known = [[value for value in values if not np.isnan(value)] for values in of_splits]
        return np.array([np.mean(values) if values else np.nan for values in known])

    def cell(self, variant):
        if variant not in self.seconds:
            return ""
        gain = self.of(variant)
        gain = gain[~np.isnan(gain)]
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        return f"{gain.mean():+.4f} ± {error:.4f}"

    def time(self, variant):
        return np.mean(self.seconds[variant]) if variant in self.seconds else np.nan


def _read(path):
    if not path.exists():
        return None
    with np.load(path) as found:
        return dict(found)


def lines_of(kind):
    return sum(len((SOURCES / name).read_text(encoding="utf-8").splitlines()) for name in CODE.get(kind, ()))


def table(all_sizes, variants, *, seconds=True, code=False):
    headings = [HEADINGS[here.size] for here in all_sizes]
    headings += ["most on one data set"] + [f"s, {here.size}" for here in all_sizes if seconds]
    headings += ["lines of code"] * code
    yield f"| | {' | '.join(headings)} |"
    yield "|---|" + "---:|" * len(headings)
    for variant in variants:
        cells = [here.cell(variant) for here in all_sizes]
        known = [(here, gain) for here in all_sizes for gain in enumerate(here.of(variant)) if not np.isnan(gain[1])]
        where, (place, most) = max(known, key=lambda each: each[1][1])
        cells.append(f"{most:+.3f}, {where.sets[place]} ({where.size})")
        cells += [f"{here.time(variant):.2f}" for here in all_sizes if seconds]
        cells += [str(lines_of(variant) or "")] * code
        yield f"| {variant} | {' | '.join(cells)} |"


def report(results, sets, sizes, n_seeds, ideas):
    all_sizes = [here for size in sizes if (here := Gains(results, size, sets, n_seeds, ideas)).sets]
    if not all_sizes:
        raise SystemExit(f"{results} has no predictions yet")
    variants = list(dict.fromkeys(variant for here in all_sizes for variant in here.seconds))
    kinds = [variant for variant in variants if variant not in ("all", *RULES, *ideas)]
    useless = [
        kind for kind in kinds if all(here.of(kind).mean() < LITTLE for here in all_sizes if kind in here.seconds)
    ]
    counts = [
        f"- {HEADINGS[here.size]}: {len(here.sets)} of {len(NARROW)} data sets, {here.n_splits} split(s) each; log loss "
        f"{here.of('all').mean():.4f}, {here.time('all'):.1f} s"
        for here in all_sizes
    ]
    lines = [
        "# What each candidate brings",
        "",
        f"Made by `python bench/ablation.py -o FOLDER --seeds {n_seeds} --ideas {','.join(ideas)} --write`. {versions()}",
        "",
        "The mixture of the default candidates on the tables of [the comparison with tuned peers](quality.md), mixed again without each candidate, and without",
        "each set of terms of the logistic regressions: increase of the log loss of the test samples in nats, so that what is positive helps, with",
        "the standard error over data sets (each averaged over its splits). A data set to which a candidate is not suited counts with 0. Seconds are the mean CPU time",
        "of its held-out predictions, one thread; lines of code are those of the files that nothing else needs. The whole mixture:",
        "",
        *counts,
        "",
        "## Without each candidate",
        "",
        *table(all_sizes, kinds, code=True),
        "",
        (
            f"Less than {LITTLE} nats at every size: {'; '.join(kind + KEPT.get(kind, '') for kind in useless)}."
            if useless
            else f"Every candidate brings at least {LITTLE} nats at some size."
        ),
        "",
        "## With one more",
        "",
        "Ideas for more candidates, each added alone: decrease of the log loss. They are in `bench/ideas.py`, not in the package, but for AODE, which is used where it is named:",
        "a kernel density for each class in the metric of the within-class covariance (exact leave-one-out), a mixture of two to four Gaussians for each class by variational Bayes, logistic regression on a radial kernel between the samples, the same in that metric",
        "(learned in folds), logistic regression on additive splines of degree one, and logistic and ordinal regression on the numbers of levels, as if these were in order.",
        "",
        *table(all_sizes, [idea for idea in ideas if idea in variants]),
        "",
        "A kernel density predicts with all training samples, and so do the kernels: a model could not be saved or exported without the values of patients.",
        "",
        "## Weighed otherwise",
        "",
        "The same members with other constants of their weights: decrease of the log loss. Settings within a member keep their shares.",
        "",
        *table(all_sizes, RULES, seconds=False),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-ablation.md")
    shared = Path(__file__).resolve().parents[2] / "shared" / "data"
    options.add_argument("-o", "--results", type=Path, required=True, help="folder of the predictions")
    options.add_argument("--data-dir", type=Path, default=shared, help="laid out as in collection.py")
    options.add_argument("--sets", type=names(NARROW), default=list(NARROW))
    options.add_argument("--sizes", type=names(SIZES), default=list(SIZES), help=", ".join(SIZES))
    options.add_argument("--seeds", type=int, default=3, help="number of random splits")
    options.add_argument("--ideas", type=names(IDEAS), default=[], help=", ".join(IDEAS))
    options.add_argument("--tables", action="store_true", help="compute nothing: print the tables")
    chosen = options.parse_args()
    among = {"sets": chosen.sets, "sizes": chosen.sizes, "n_seeds": chosen.seeds}
    if not chosen.tables:
        compute(chosen.results, chosen.data_dir, what=[DEFAULT, *chosen.ideas], **among)
    publish(report(chosen.results, ideas=chosen.ideas, **among), "bench-ablation.md", write=chosen.write)
