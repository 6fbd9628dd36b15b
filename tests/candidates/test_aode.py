"""Averaged one-dependence estimators against explicit loops, and leave-one-out against refits."""

import itertools

import numpy as np
import pytest
from scipy.special import polygamma

from cgnlearn.candidates import aode
from cgnlearn.candidates.aode import AODE, AODECandidate, PairCounts
from cgnlearn.candidates.candidate import Samples, held_out_frequencies
from cgnlearn.data.arrays import contrasts_of

LEVELS = (2, 3, 4, 1)


def oracle(codes, labels, weights, row, label, backoff, dirichlet):
    """p(levels | class) of one sample, from sums over samples written out."""

    def count(**wanted):
        return sum(
            weight
            for other, own, weight in zip(codes, labels, weights, strict=True)
            if own == label and all(other[int(v[1:])] == b if b is not None else other[int(v[1:])] >= 0
                                    for v, b in wanted.items())
        )  # fmt: skip

    def level(v, b):
        return (count(**{f"v{v}": b}) + dirichlet) / (count(**{f"v{v}": None}) + dirichlet * LEVELS[v])

    there = [v for v, b in enumerate(row) if b >= 0]
    if not there:
        return 1.0
    total = 0.0
    for j in there:
        product = level(j, row[j])
        for v in there:
            if v != j:
                met = count(**{f"v{j}": row[j], f"v{v}": row[v]})
                both = count(**{f"v{j}": row[j], f"v{v}": None})
                product *= (met + backoff * level(v, row[v])) / (both + backoff)
        total += product
    return total / len(there)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 40
    labels = rng.integers(0, 3, n)
    codes = np.column_stack([(labels + rng.integers(0, n_levels, n)) % n_levels for n_levels in LEVELS])
    codes[rng.random(codes.shape) < 0.15] = -1
    codes[5] = -1
    return codes, labels, rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("backoff", [1.0, 5.0])
@pytest.mark.parametrize("weighted", [True, False])
def test_likelihood_equals_explicit_loops(rows, backoff, weighted, monkeypatch):
    codes, labels, weights = rows
    weights = weights if weighted else np.ones(len(codes))
    pairs = PairCounts.of(codes, labels, weights if weighted else None, LEVELS, 3)
    model = AODE(pairs, backoff, 0.3)
    found = np.exp(model.log_likelihood(codes))
    expected = [[oracle(codes, labels, weights, row, label, backoff, 0.3) for label in range(3)] for row in codes]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    one_by_one = np.concatenate([model.log_likelihood(row[None]) for row in codes])
    np.testing.assert_allclose(np.exp(one_by_one), expected, rtol=1e-12)
    monkeypatch.setattr(aode, "COMPILED", 0)
    monkeypatch.setattr(aode, "CHUNK", 160)  # ten samples at a time
    np.testing.assert_allclose(np.exp(model.log_likelihood(codes)), expected, rtol=1e-12)


def test_more_classes_than_a_loop_takes_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(-1, 3, (60, 5)), np.arange(60) % 6
    model = AODE(PairCounts.of(codes, labels, None, (3,) * 5, 6), 1.0, 0.5)
    expected = model.log_likelihood(codes)
    monkeypatch.setattr(aode, "COMPILED", 0)
    np.testing.assert_allclose(model.log_likelihood(codes), expected, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_leave_one_out_equals_refits(rows, compiled, monkeypatch):
    codes, labels, weights = rows
    monkeypatch.setattr(aode, "COMPILED", 0 if compiled else 1 << 30)
    found = AODE(PairCounts.of(codes, labels, weights, LEVELS, 3), 1.0, 0.3).leave_one_out(codes, labels, weights)
    for i in range(len(codes)):
        rest = np.arange(len(codes)) != i
        refit = AODE(PairCounts.of(codes[rest], labels[rest], weights[rest], LEVELS, 3), 1.0, 0.3)
        np.testing.assert_allclose(found[i], refit.log_likelihood(codes[[i]])[0], rtol=1e-10, atol=1e-10)


def test_leave_one_out_of_the_only_sample_of_a_class():
    codes, labels = np.array([[0, 0], [1, 1], [1, 0]]), np.array([0, 1, 1])
    model = AODE(PairCounts.of(codes, labels, None, (2, 2), 2), 1.0, 0.5)
    assert np.exp(model.leave_one_out(codes, labels)[0, 0]) == pytest.approx(0.25)  # nothing is known of that class


def test_probabilities_of_all_samples_sum_to_one(rows):
    codes, labels, weights = rows
    model = AODE(PairCounts.of(codes, labels, weights, LEVELS, 3), 2.0, 0.1)
    every = np.array(list(itertools.product(*map(range, LEVELS))))
    np.testing.assert_allclose(np.exp(model.log_likelihood(every)).sum(axis=0), 1.0, rtol=1e-12)


def test_the_chunk_does_not_matter(rows, monkeypatch):
    codes, labels, weights = rows
    whole = PairCounts.of(codes, labels, weights, LEVELS, 3)
    before = AODE(whole, 1.0, 0.3).leave_one_out(codes, labels, weights)
    monkeypatch.setattr(aode, "CHUNK", 30)  # three samples at a time
    again = AODE(PairCounts.of(codes, labels, weights, LEVELS, 3), 1.0, 0.3).leave_one_out(codes, labels, weights)
    np.testing.assert_allclose(again, before, atol=1e-12)


def test_the_candidate_finds_an_interaction_that_naive_bayes_cannot():
    from cgnlearn.data.table import read_training

    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    table, _ = read_training(X, y)
    samples = Samples.learning(["bins4"], table)
    candidate = AODECandidate("bins4")
    held_out = candidate.leave_one_out(samples, held_out_frequencies(table, 0.5))
    assert [settings["backoff"] for settings in candidate.settings] == [1.0, 5.0]
    for likelihood in held_out.log_likelihood:
        right = likelihood.argmax(axis=1) == table.labels
        assert right.mean() > 0.8
    fitted = held_out.fitted
    np.testing.assert_array_equal(fitted.restricted([1]).log_likelihood(samples)[0], fitted.log_likelihood(samples)[1])


@pytest.mark.parametrize("most_kept", [0, 1 << 17])
@pytest.mark.parametrize("compiled", [0, 1 << 40])
def test_cumulants_of_few_samples_are_those_of_many(rows, most_kept, compiled, monkeypatch):
    monkeypatch.setattr("cgnlearn.candidates.aode.MOST_KEPT", most_kept)
    codes, labels, weights = rows
    model = AODE(PairCounts.of(codes, labels, weights, LEVELS, 3), 1.0, 0.3)
    log_likelihood = model.log_likelihood(codes)
    monkeypatch.setattr("cgnlearn.candidates.aode.COMPILED_CUMULANTS", compiled)
    many = model.log_densities(codes, log_likelihood)
    monkeypatch.setattr("cgnlearn.candidates.aode.COMPILED_CUMULANTS", 1 << 40)
    for i in range(8):
        few = model.log_densities(codes[[i]], log_likelihood[[i]])
        np.testing.assert_allclose(few.covariance[0], many.covariance[i], rtol=1e-10)
        np.testing.assert_allclose(few.third[0], many.third[i], rtol=1e-9, atol=1e-12)


def test_certainty_is_that_of_the_parents_by_their_shares(rows):
    codes, labels, weights = rows
    backoff, counted = 2.0, PairCounts.of(codes, labels, weights, LEVELS, 3)
    model = AODE(counted, backoff, 0.1)
    sample, start = codes[0], np.cumsum([0, *LEVELS])
    observed = [v for v, code in enumerate(sample) if code >= 0]
    at = {v: start[v] + sample[v] for v in observed}
    expected = []
    for counts in counted.counts:
        logs, variances = [], []
        for u in observed:
            of_class = [counts[i, i] for i in range(start[u], start[u + 1])]
            log_proba = np.log((counts[at[u], at[u]] + 0.1) / (sum(of_class) + 0.1 * LEVELS[u]))
            variance = polygamma(1, counts[at[u], at[u]] + 0.5) - polygamma(1, sum(of_class) + 0.5 * LEVELS[u])
            for v in set(observed) - {u}:
                alone = [counts[i, i] for i in range(start[v], start[v + 1])]
                share = backoff * (counts[at[v], at[v]] + 0.1) / (sum(alone) + 0.1 * LEVELS[v])
                mass, total = counts[at[u], at[v]] + share, counts[at[u], start[v] : start[v + 1]].sum() + backoff
                log_proba += np.log(mass / total)
                variance += polygamma(1, mass + 0.5) - polygamma(1, total + 0.5 * LEVELS[v])
            logs.append(log_proba)
            variances.append(variance)
        expected.append(np.average(variances, weights=np.exp(logs)))
    found = model.log_densities(codes[[0]], model.log_likelihood(codes[[0]])).covariance[0]
    across = contrasts_of(3)
    np.testing.assert_allclose(found, across @ np.diag(expected) @ across.T, rtol=1e-10)
