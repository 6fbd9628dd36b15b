"""Every k of the ordered structures at once: equal to each k by itself, whatever the data."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import multigammaln

from cgnlearn import Band, Box, CGNClassifier, Prior, SampleNotAcceptableError, kernels, ordered_path
from cgnlearn.data.table import read, schema_of
from cgnlearn.kernels.lattice import log_dets, regressions
from cgnlearn.networks import network as networks
from cgnlearn.networks import prior
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.estimation import Bayes, MaximumLikelihood
from cgnlearn.networks.lattice import Lattice
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import collect
from cgnlearn.structures.band import every_family
from tests.oracles import paper
from tests.solvers import joint, network

FAMILIES = {"band": Band, "box": Box}


def walks(seed=0, n=60, p=24, classes=3):
    """Samples whose neighbouring columns hang together, as those of a spectrum do."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 20, p)).cumsum(axis=1)
    y = np.arange(n) % classes
    X[:n] += 0.3 * y[:, None]
    return X[:n], y, X[n:]


def hostile(seed=0):
    """The same with columns constant, repeated, nearly repeated and of scales sixteen decades apart."""
    X, y, test = walks(seed)
    both = np.concatenate([X, test])
    rng = np.random.default_rng(seed)
    both[:, 0] = 5.0
    both[:, 7] = both[:, 6]
    both[:, 9:11] = -3.0
    both[:, 14] = both[:, 11]
    both[:, 17] = both[:, 16] + 1e-7 * rng.normal(size=len(both))
    both[:, 20] *= 1e8
    both[:, 21] *= 1e-8
    return both[: len(X)], y, both[len(X) :]


def loop(X, y, test, k_max, structures=("band", "box"), **parameters):
    return np.array(
        [
            [
                joint(CGNClassifier(FAMILIES[family](k), **parameters).fit(X, y), test, Blocks.of)
                for k in range(1, k_max + 1)
            ]
            for family in structures
        ]
    )


def assert_same(found, expected, tolerance=1e-8):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


# ---- every k


@pytest.mark.parametrize("data", [walks, hostile])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "location", ["pooled", "paper", "cell", tuple(np.linspace(-2, 2, 24))], ids=lambda v: str(v)[:6]
)
def test_path_is_a_loop_over_k(data, sharing, location):
    X, y, test = data()
    parameters = {"sharing": sharing, "prior": Prior(location=location, strength=1.5, shape=1.3)}
    found = ordered_path(X, y, test, k_max=27, **parameters)
    assert found.shape == (2, 27, 20, 3)
    assert_same(found, loop(X, y, test, 27, **parameters))


@pytest.mark.parametrize("location", ["pooled", "paper", "cell"])
@pytest.mark.parametrize("sharing", [0.0, 0.4])
def test_path_is_the_paper_to_the_letter(location, sharing):
    X, y, test = walks(n=30, p=6)
    found = ordered_path(X, y, test, k_max=4, sharing=sharing, prior=Prior(location=location))
    for k in (1, 3, 4):
        for family, parents in (
            (0, {v: list(range(max(0, v - k + 1), v)) for v in range(6)}),
            (1, {v: list(range(v - v % k, v)) for v in range(6)}),
        ):
            expected = paper.log_joint(X, y, test, parents, location=location, sharing=sharing)
            np.testing.assert_allclose(found[family, k - 1], expected, rtol=1e-9)


def test_families_in_any_order_and_k_beyond_the_columns():
    X, y, test = walks(p=5)
    found = ordered_path(X, y, test, k_max=9, structures=["box", "band"])
    assert_same(found, loop(X, y, test, 9, ["box", "band"]))
    assert_same(found[:, 4:], np.broadcast_to(found[0, 4], (2, 5, 20, 3)))  # all complete
    assert ordered_path(X, y, test, k_max=2, structures=["box"]).shape == (1, 2, 20, 3)


def test_rows_far_out_do_not_overflow():
    X, y, test = walks()
    test *= np.geomspace(1, 1e200, len(test))[:, None]
    found = ordered_path(X, y, test, k_max=12)
    assert np.isfinite(found).all()
    assert_same(found, loop(X, y, test, 12))


@pytest.mark.parametrize("data", [walks, hostile])
def test_many_columns_fall_into_several_blocks(monkeypatch, data):
    monkeypatch.setattr("cgnlearn.networks.lattice.STRETCH", 5)
    monkeypatch.setattr("cgnlearn.networks.lattice.BATCH", 200)
    X, y, test = data()
    assert_same(ordered_path(X, y, test, k_max=9), loop(X, y, test, 9))


def test_long_products_are_turned_into_logarithms_in_time():
    X, y, test = walks(p=3000, n=12, classes=2)
    test = test[:3] * 1e3  # leverages in the millions: a product of a few dozen would overflow
    found = ordered_path(X, y, test, k_max=3)
    assert_same(found, loop(X, y, test, 3))


def test_discrete_columns_depend_on_the_class_alone(mixed):
    import pandas as pd

    def frame(X):
        columns = pd.DataFrame(X, columns=list("abcde"))
        for name, levels in (("a", 2), ("b", 3)):
            columns[name] = pd.Categorical(columns[name].astype(int), categories=range(levels))
        return columns[["c", "a", "d", "b", "e"]]

    X, y, test = mixed
    assert_same(ordered_path(frame(X), y, frame(test), k_max=4), loop(frame(X), y, frame(test), 4))
    assert_same(
        ordered_path(frame(X)[["a"]], y, frame(test)[["a"]], k_max=2), loop(frame(X)[["a"]], y, frame(test)[["a"]], 2)
    )


def test_threads_may_meet():
    X, y, test = walks(p=300)
    alone = ordered_path(X, y, test, k_max=20)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: ordered_path(X, y, test, k_max=20), range(8)):
            np.testing.assert_array_equal(found, alone)


@pytest.mark.shared
@pytest.mark.parametrize("parameters", [{}, {"sharing": 1.0}, {"prior": Prior(location="paper")}], ids=str)
def test_path_on_ovarian_spectra(shared, parameters):
    data = np.load(shared / "data" / "ms" / "ovarian_216x4000.npz", allow_pickle=False)
    order = np.random.default_rng(0).permutation(216)
    X, y = data["X"][order], data["y"][order]
    if "prior" in parameters:  # for which window by window takes a minute
        X = X[:, 1000:1400]
    found = ordered_path(X[:180], y[:180], X[180:], k_max=30, **parameters)
    for k in (1, 2, 9, 30):
        for family, structure in enumerate((Band, Box)):
            model = CGNClassifier(structure(k), **parameters).fit(X[:180], y[:180])
            assert_same(found[family, k - 1], model.predict_joint_log_proba(X[180:]))


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 40), st.sampled_from([0.0, 0.5, 1.0]))
def test_one_is_naive_bayes_and_all_is_complete(seed, p, n_test, sharing):
    X, y, _ = walks(seed, n=15, p=p)
    test = np.random.default_rng(seed).normal(size=(n_test, p))
    found = ordered_path(X, y, test, k_max=p + 1, sharing=sharing)
    naive = CGNClassifier("naive_bayes", sharing=sharing).fit(X, y).predict_joint_log_proba(test)
    complete = CGNClassifier("complete", sharing=sharing).fit(X, y).predict_joint_log_proba(test)
    for family in found:
        assert_same(family[0], naive)
        assert_same(family[p - 1], complete)
        assert_same(family[p], complete)


# ---- maximum likelihood


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_maximum_likelihood_up_to_the_last_k_that_exists(sharing):
    X, y, test = walks(n=36, p=20)  # 12 samples a class: 11 degrees of freedom
    found = ordered_path(X, y, test, k_max=11, estimation="ml", sharing=sharing)
    assert_same(found, loop(X, y, test, 11, estimation="ml", sharing=sharing), 1e-7)
    if sharing == 0.0:
        with pytest.raises(SampleNotAcceptableError, match=r"k = 12, .* use k_max=11"):
            ordered_path(X, y, test, k_max=15, estimation="ml")


@pytest.mark.parametrize("noise", [1e-1, 1e-2, 1e-3])
def test_nearly_repeated_columns_by_maximum_likelihood(noise):
    X, y, test = walks(n=60, p=20)
    rng = np.random.default_rng(1)
    X[:, 1::2] = X[:, ::2] + noise * rng.normal(size=(60, 10))
    test[:, 1::2] = test[:, ::2] + noise * rng.normal(size=(20, 10))
    found = ordered_path(X, y, test, k_max=8, estimation="ml")
    # Rounding of the moments alone is worth as many digits as the columns share.
    assert_same(found, loop(X, y, test, 8, estimation="ml"), 1e-11 / noise**2)


@pytest.mark.parametrize("break_it", ["repeated", "constant", "constant in a class"])
def test_maximum_likelihood_that_does_not_exist(break_it):
    X, y, test = walks()
    if break_it == "repeated":
        X[:, 9] = X[:, 6]
    elif break_it == "constant":
        X[:, 9] = 1.0
    else:
        X[y == 1, 9] = 1.0
    last = 3 if break_it == "repeated" else 0
    with pytest.raises(SampleNotAcceptableError, match=f"k = {last + 1}, "):
        ordered_path(X, y, test, k_max=6, estimation="ml")
    if last:
        assert np.isfinite(ordered_path(X, y, test, k_max=last, estimation="ml")).all()


# ---- the recursion itself


def banded(matrix, orders):
    return np.array([[matrix[v, v - d] if v >= d else 0.0 for d in range(orders)] for v in range(len(matrix))])


@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-6])
def test_spreads_and_determinants_against_long_double(ridge):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, 40)).cumsum(axis=1)
    rows[:, 20:24] = rows[:, [19]]
    matrix = rows.T @ rows + ridge * np.eye(40)
    orders = 12
    stretch = regressions(banded(matrix, orders), 0, 40)
    log_det = np.zeros((40, orders))
    log_dets(stretch, log_det)
    spread = stretch.spread
    assert (stretch.existing == orders).all()
    for v in range(orders, 40):
        factor = long_double_cholesky(matrix[v - orders + 1 : v + 1, v - orders + 1 : v + 1])
        condition = matrix[v, v] / ridge
        np.testing.assert_allclose(spread[v, -1], float(factor[-1, -1] ** 2), rtol=1e-14 * condition)
        expected = float(2 * np.log(np.diagonal(factor)[:-1]).sum())
        np.testing.assert_allclose(log_det[v, -1], expected, rtol=1e-14 * condition)


def long_double_cholesky(matrix):
    matrix = matrix.astype(np.longdouble)
    factor = np.zeros_like(matrix)
    for i in range(len(matrix)):
        for j in range(i + 1):
            rest = matrix[i, j] - factor[i, :j] @ factor[j, :j]
            factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
    return factor


@pytest.mark.parametrize("scale", [1e-6, 1e-13, 1e-30])
def test_repeated_columns_under_a_tiny_prior_scale(scale):
    """Below the floor of the scale nothing changes any more, and both ways of computing still agree."""
    X, y, test = (np.repeat(part, 3, axis=-1) if part.ndim == 2 else part for part in walks(p=8))
    tiny = Prior(scale=[scale] * X.shape[1])
    found = ordered_path(X, y, test, k_max=8, prior=tiny)
    np.testing.assert_allclose(found, loop(X, y, test, 8, prior=tiny), rtol=1e-6)


def test_a_prior_too_small_for_the_digits_is_mended_as_elsewhere(monkeypatch):
    """As millions of samples would make it even at the floor of the scale."""
    monkeypatch.setattr(prior, "LEAST_SCALE", 0.0)
    X, y, test = hostile()
    tiny = Prior(scale=np.full(24, 1e-30))
    assert np.isfinite(ordered_path(X, y, test, k_max=6, prior=tiny)).all()


@pytest.mark.parametrize("shared_regressions", [False, True])
def test_evidence_of_every_order_is_a_ratio_of_whole_windows(shared_regressions):
    X, y, _ = walks(n=40, p=12, classes=2)
    prior = Prior(strength=2.0, shape=1.4)
    schema = schema_of(X, np.array([0, 1]), "from_dtype")
    statistics = collect(read(X, schema, y), every_family(schema, 5))
    (partition,), (moments,) = statistics.layout.partitions, statistics.moments
    estimation = Bayes(prior, float(shared_regressions))
    found = Lattice(partition, estimation.posterior(moments, partition, schema), estimation).every_log_evidence()
    assert found.shape == (12, 5)
    for v in range(12):
        for order in range(5):
            first = max(0, v - order)
            whole = window_evidence(X, y, list(range(first, v + 1)), prior, shared_regressions)
            parents = window_evidence(X, y, list(range(first, v)), prior, shared_regressions)
            np.testing.assert_allclose(found[v, order], whole - parents, rtol=1e-9)


def window_evidence(X, y, columns, prior, shared):
    """Marginal likelihood of a normal inverse Wishart (Murphy 2007, eq. 266), of all classes' samples."""
    d = len(columns)
    if not d:
        return 0.0
    X, freedom = X[:, columns], 2 * prior.shape + d - 1
    centre, before = X.mean(axis=0), np.diag(X.var(axis=0))
    parts = [X[y == c] for c in (0, 1)]
    added, strengths = [], []
    for rows in parts:
        n, away = len(rows), rows.mean(axis=0) - centre
        added.append((rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)))
        added[-1] += prior.strength * n / (prior.strength + n) * np.outer(away, away)
        strengths.append(d / 2 * np.log(prior.strength / (prior.strength + n)))

    def regression(n, scatter, strength):
        after = freedom + n
        return (
            multigammaln(after / 2, d)
            - multigammaln(freedom / 2, d)
            + freedom / 2 * np.linalg.slogdet(before)[1]
            - after / 2 * np.linalg.slogdet(before + scatter)[1]
            + strength
            - n * d / 2 * np.log(np.pi)
        )

    if shared:
        return regression(len(X), sum(added), sum(strengths))
    return sum(regression(len(rows), *both) for rows, *both in zip(parts, added, strengths, strict=True))


# ---- bands inside the classifier


@pytest.mark.parametrize("data", [walks, hostile])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("location", ["pooled", "paper", "cell"])
def test_band_through_the_lattice(data, sharing, location):
    X, y, test = data()
    weights = np.random.default_rng(1).integers(0, 3, len(y)) + 0.5
    model = CGNClassifier(Band(6), sharing=sharing, prior=Prior(location=location)).fit(X, y, weights)
    ours, theirs = network(model, Lattice), network(model, Blocks.of)
    rows = model._table(test)
    assert_same(ours.log_likelihood(rows), theirs.log_likelihood(rows))
    assert_same(ours.contributions(rows), theirs.contributions(rows))
    if location == "pooled" and sharing != 0.3:
        np.testing.assert_allclose(ours.log_evidence, theirs.log_evidence, rtol=1e-10)
        own = dict(zip(*ours.log_evidences(), strict=True))  # the lattice names absent features too
        for child, evidence in zip(*theirs.log_evidences(), strict=True):
            np.testing.assert_allclose(own[child], evidence, rtol=1e-9, atol=1e-9)


def test_a_band_is_solved_by_its_lattice_where_that_is_worth_it():
    X, y, _ = walks(p=400)
    assert isinstance(CGNClassifier(Band(20)).fit(X, y)._model.solvers[0], Lattice)
    assert isinstance(CGNClassifier(Band(3)).fit(X, y)._model.solvers[0], Blocks)
    assert isinstance(CGNClassifier(Box(20)).fit(X, y)._model.solvers[0], Blocks)


def test_coefficients_are_computed_once(monkeypatch):
    X, y, test = walks(p=400)
    model = CGNClassifier(Band(20)).fit(X, y)
    expected = model.predict_log_proba(test)
    monkeypatch.setattr(kernels.lattice, "regressions", None)
    np.testing.assert_array_equal(model.predict_log_proba(test), expected)


def test_band_by_maximum_likelihood_through_the_lattice():
    X, y, test = walks()
    model = CGNClassifier(Band(6), estimation="ml").fit(X, y)
    assert_same(joint(model, test, Lattice), joint(model, test, Blocks.of))
    X[:, 9] = X[:, 6]
    statistics = CGNClassifier(Band(6)).fit(X, y).statistics_
    for solver in (Lattice, Blocks.of):
        with pytest.raises(
            SampleNotAcceptableError, match=r"for column 9 in the cell class 0: 20 samples, 5 continuous"
        ):
            Network.of(model._model.structure, statistics, MaximumLikelihood(), solver)


def test_band_learned_in_parts():
    X, y, test = walks()
    whole = CGNClassifier(Band(6)).fit(X, y)
    parts = CGNClassifier(Band(6))
    for rows in (slice(0, 7), slice(7, 40), slice(40, None)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert_same(joint(parts, test, Lattice), joint(whole, test, Lattice))


def test_band_whose_scale_is_singular_is_factorised(monkeypatch):
    monkeypatch.setattr(networks, "WORTH_A_LATTICE", 0)
    monkeypatch.setattr(prior, "LEAST_SCALE", 0.0)
    X, y, test = hostile()
    model = CGNClassifier(Band(6), prior=Prior(scale=np.full(24, 1e-30))).fit(X, y)
    assert isinstance(model._model.solvers[0], Blocks)
    assert np.isfinite(model.predict_joint_log_proba(test)).all()


# ---- what the user gets wrong


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k_max": 0}, "k_max must be a whole number of at least 1, not 0"),
        ({"k_max": 2.5}, "k_max must be a whole number"),
        ({"structures": ()}, 'structures must hold "band", "box" or both'),
        ({"structures": ("band", "tree")}, 'structures must hold "band", "box" or both'),
        ({"sharing": 2}, "sharing must be a number from 0 to 1"),
        ({"estimation": "map"}, 'estimation must be "bayes" or "ml"'),
    ],
)
def test_wrong_calls_say_what_to_do(wrong, message):
    X, y, test = walks(n=12, p=3)
    with pytest.raises(ValueError, match=message):
        ordered_path(X, y, test, **wrong)
