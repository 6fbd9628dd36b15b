"""Missing values: integrated out at prediction, each family by the samples in which it is observed at training."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from cgnlearn import (
    Band,
    BandAverage,
    Box,
    CGNClassifier,
    GreedyJan,
    Jan,
    Prior,
    SelectiveNaiveBayes,
    Structure,
    TANAverage,
)
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks import components, implied
from cgnlearn.networks.estimation import Bayes, MaximumLikelihood
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import collect
from cgnlearn.structures.pairs import pair_families, pair_scores
from tests.networks.test_leave_one_out import HELD, STRUCTURES, assert_same, joint, refitted
from tests.networks.test_leave_one_out import data as discrete_and_continuous
from tests.oracles import paper

EVERY_WAY = pytest.mark.parametrize("compiled_from", [0, np.inf])


def continuous(seed=0, n=60, m=5, n_classes=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) + 0.7 * y[:, None] + 3.0, y


def with_missing(X, share=0.3, seed=1, columns=slice(None)):
    incomplete_data = X.copy()
    incomplete_data[:, columns][np.random.default_rng(seed).random(incomplete_data[:, columns].shape) < share] = np.nan
    return incomplete_data


def table_of(X, y=None, discrete=(), levels=(), weights=None, n_classes=2):
    """Columns of X as a table; discrete ones hold codes, NaN where there is none."""
    by_column = tuple(tuple(range(levels[discrete.index(c)])) if c in discrete else None for c in range(np.shape(X)[1]))
    schema = Schema(None, by_column, tuple(range(n_classes)))
    codes = np.where(np.isnan(X[:, schema.discrete]), -1, X[:, schema.discrete]).astype(np.int32)
    return Table(schema, X[:, schema.continuous], codes, y, weights)


def network_of(structure, table, estimation):
    return Network.of(structure, collect(table, structure.as_families(table.schema)), estimation)


# ---- prediction, after complete training


def gaussian(X, structure):
    """Mean and covariance that maximum likelihood gives a network, one least-squares fit after the other."""
    m = X.shape[1]
    mean, covariance, done = np.zeros(m), np.zeros((m, m)), []
    for child, listed in structure.families:
        parents = list(listed)
        design = np.column_stack([np.ones(len(X)), X[:, parents]])
        slopes = np.linalg.lstsq(design, X[:, child], rcond=None)[0]
        mean[child] = slopes[0] + slopes[1:] @ mean[parents]
        for other in done:
            covariance[child, other] = covariance[other, child] = slopes[1:] @ covariance[parents, other]
        between = covariance[np.ix_(parents, parents)]
        covariance[child, child] = np.mean((X[:, child] - design @ slopes) ** 2) + slopes[1:] @ between @ slopes[1:]
        done.append(child)
    return mean, covariance


@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_maximum_likelihood_of_any_graph_is_the_dense_gaussians_marginal(seed, density):
    rng = np.random.default_rng(seed)
    X, y = continuous(seed, m=6)
    order = rng.permutation(6).tolist()
    structure = Structure.from_parents(
        {child: [p for p in order[:i] if rng.random() < density] for i, child in enumerate(order)}
    )
    H = with_missing(X, 0.4, seed)
    network = network_of(structure, table_of(X, y), MaximumLikelihood())
    found = network.log_likelihood(table_of(H))
    for label in (0, 1):
        mean, covariance = gaussian(X[y == label], structure)
        for row, seen in enumerate(~np.isnan(H)):
            normal = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]) if seen.any() else None
            expected = normal.logpdf(H[row, seen]) if normal else 0.0
            np.testing.assert_allclose(found[row, label], expected, rtol=1e-7, atol=1e-7)


def test_a_long_band_is_integrated_in_windows(monkeypatch):
    X, y = continuous(3, n=60, m=30)
    H = with_missing(X, 0.1, 3)
    structure = Structure.band(30, 3)
    network = network_of(structure, table_of(X, y), MaximumLikelihood())
    monkeypatch.setattr(components, "FEW_NODES", 5)
    found = network.log_likelihood(table_of(H))
    mean, covariance = gaussian(X[y == 0], structure)
    for row, seen in enumerate(~np.isnan(H)):
        expected = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(H[row, seen])
        np.testing.assert_allclose(found[row, 0], expected, rtol=1e-7)
    monkeypatch.setattr(components, "MOST_NODES", 3)
    with pytest.raises(ValueError, match="have to be integrated together, more than 3"):
        network.log_likelihood(table_of(H))


def student(everything, own, location):
    """The predictive of a group in a class: SciPy's, from the formulas of the normal inverse Wishart."""
    n = len(own)
    at = own.mean(axis=0) if location == "cell" else everything.mean(axis=0)
    mean = (at + n * own.mean(axis=0)) / (n + 1)
    apart = own.mean(axis=0) - at
    scale = np.diag(everything.var(axis=0)) + n * np.cov(own.T, bias=True) + n / (n + 1) * np.outer(apart, apart)
    freedom = 2 * (1.1 + n / 2)
    return mean, scale * (1 + 1 / (n + 1)) / freedom, freedom


@EVERY_WAY
@pytest.mark.parametrize("location", ["pooled", "cell"])
def test_groups_are_sub_blocks_of_a_multivariate_student(location, compiled_from, monkeypatch):
    monkeypatch.setattr(implied, "COMPILED_PAYS", compiled_from)
    X, y = continuous(n=400, m=6)
    H = with_missing(X, 0.4)[:80]
    groups = [[4, 0, 2, 5], [3, 1]]
    model = CGNClassifier(Jan(groups), prior=Prior(location=location)).fit(X, y)
    found = model._model.log_likelihood(model._table(H))
    for label in (0, 1):
        mean, scale, freedom = student(X, X[y == label], location)
        for row, seen in enumerate(~np.isnan(H)):
            expected = 0.0
            for group in groups:
                kept = [c for c in group if seen[c]]
                if kept:
                    law = multivariate_t(mean[kept], scale[np.ix_(kept, kept)], freedom)
                    expected += law.logpdf(H[row, kept])
            np.testing.assert_allclose(found[row, label], expected, rtol=1e-9, atol=1e-9)


def test_naive_bayes_leaves_out_what_is_missing():
    X, y = continuous()
    H = with_missing(X)
    model = CGNClassifier().fit(X, y)
    whole, found = model.contributions(X), model.contributions(H)
    np.testing.assert_allclose(found, np.where(np.isnan(H)[..., None], 0.0, whole), rtol=1e-12)


@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
def test_integration_on_a_grid(sharing):
    X, y = continuous(m=3, n=30)
    model = CGNClassifier("complete", sharing=sharing).fit(X, y)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    far = 8 * nodes / (1 - nodes**2)  # from (-1, 1) to the line
    weights = weights * 8 * (1 + nodes**2) / (1 - nodes**2) ** 2
    one, two = X[7].copy(), X[7].copy()
    one[1], two[:2] = np.nan, np.nan
    found = np.exp(model.predict_joint_log_proba([one, two]))
    line = np.tile(X[7], (400, 1))
    line[:, 1] = X[:, 1].mean() + far
    np.testing.assert_allclose(found[0], weights @ np.exp(model.predict_joint_log_proba(line)), rtol=1e-6)
    plane = np.tile(X[7], (400 * 400, 1))
    plane[:, 0], plane[:, 1] = X[:, 0].mean() + np.repeat(far, 400), X[:, 1].mean() + np.tile(far, 400)
    both = np.outer(weights, weights).ravel()
    np.testing.assert_allclose(found[1], both @ np.exp(model.predict_joint_log_proba(plane)), rtol=1e-4)


MIXED = Structure.from_parents({3: [], 4: [3], 5: [4, 3], 0: [5], 1: [4, 0], 2: []})
LEVELS = {"discrete": (3, 4, 5), "levels": (2, 3, 2)}


def mixed(seed=0, n=80):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    codes = np.column_stack([rng.integers(0, k, n) for k in (2, 3, 2)])
    return np.column_stack([rng.normal(size=(n, 3)) + codes, codes]).astype(float), y


@pytest.mark.parametrize(
    "estimation", [Bayes(), Bayes(sharing=1.0), Bayes(Prior(location="paper")), MaximumLikelihood()]
)
def test_missing_discrete_parents_are_summed_over(estimation):
    X, y = mixed()
    H = with_missing(X, 0.4, columns=slice(3, 6))
    network = network_of(MIXED, table_of(X, y, **LEVELS), estimation)
    found = network.log_likelihood(table_of(H, **LEVELS))
    for row in range(len(H)):
        every = list(
            product(*([code] if code == code else range(k) for code, k in zip(H[row, 3:], (2, 3, 2), strict=True)))
        )
        filled = np.column_stack([np.repeat(H[row : row + 1, :3], len(every), axis=0), np.array(every, float)])
        expected = logsumexp(network.log_likelihood(table_of(filled, **LEVELS)), axis=0)
        np.testing.assert_allclose(found[row], expected, rtol=1e-9, atol=1e-9)


FOREST = Structure.from_parents({3: [], 4: [3], 5: [4], 0: [5], 1: [0], 2: [4]})


@pytest.mark.parametrize("estimation", [Bayes(), Bayes(sharing=1.0), MaximumLikelihood()])
def test_a_forest_is_summed_from_its_leaves(estimation, monkeypatch):
    X, y = mixed()
    H = table_of(with_missing(X, 0.4, columns=slice(0, 6)), **LEVELS)
    network = network_of(FOREST, table_of(X, y, **LEVELS), estimation)
    along, total = network.contributions(H), network.log_likelihood(H)
    monkeypatch.setattr(components.Component, "is_forest", False)
    np.testing.assert_allclose(along, network.contributions(H), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(along.sum(axis=1), total, rtol=1e-9, atol=1e-9)


def test_a_forest_sums_over_any_number_of_combinations():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (200, 10)).astype(float)
    y = np.arange(200) % 2
    levels = {"discrete": tuple(range(10)), "levels": (5,) * 10}
    chain = Structure.from_parents({0: [], **{i: [i - 1] for i in range(1, 10)}})
    network = network_of(chain, table_of(codes, y, **levels), Bayes())
    hidden = np.full((5, 10), np.nan)
    hidden[:, 9] = range(5)  # eight links between it and the first, 5⁹ combinations
    log_proba = network.log_likelihood(table_of(hidden, **levels))
    np.testing.assert_allclose(logsumexp(log_proba, axis=0), 0.0, atol=1e-9)
    tables = []
    for i in range(10):
        pairs = np.zeros((5, 10))
        pairs[:, i] = range(5)
        first = pairs if i == 0 else np.repeat(pairs, 5, axis=0)
        if i:
            first[:, i - 1] = np.tile(range(5), 5)
        tables.append(np.exp(network.contributions(table_of(first, **levels))[:, i]))
    expected = tables[0]
    for found in tables[1:]:
        expected = np.einsum("lpc,pc->lc", found.reshape(5, 5, 2), expected)
    np.testing.assert_allclose(np.exp(log_proba), expected, rtol=1e-9)


def test_too_many_combinations_are_refused(monkeypatch):
    X, y = mixed()
    network = network_of(MIXED, table_of(X, y, **LEVELS), Bayes())
    H = X[:1].copy()
    H[0, 3:5] = np.nan
    monkeypatch.setattr(components, "MOST_COMBINATIONS", 5)
    with pytest.raises(ValueError, match="6 combinations of levels, more than 5"):
        network.log_likelihood(table_of(H, **LEVELS))


# ---- training


@pytest.mark.parametrize("estimation", ["bayes", "ml"])
@pytest.mark.parametrize("location", ["pooled", "paper", "cell"])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_each_family_is_counted_by_the_rows_in_which_it_is_observed(estimation, location, sharing):
    X, y = mixed(n=200)
    H = with_missing(X, 0.2)
    parents = {3: [], 4: [3], 0: [3], 1: [0, 3], 2: [0, 1]}
    model = CGNClassifier(
        parents, estimation=estimation, sharing=sharing, prior=Prior(location=location), categorical_features=[3, 4, 5]
    ).fit(H, y)
    found = model.contributions(X)
    for child, listed in parents.items():
        seen = ~np.isnan(H[:, [child, *listed]]).any(axis=1)
        of_family, of_class = (
            paper.log_joint(
                H[seen], y[seen], X, families, discrete=(3, 4), levels={3: 2, 4: 3},
                estimation=estimation, location=location, sharing=sharing,
            )
            for families in ({child: listed}, {})
        )  # fmt: skip
        np.testing.assert_allclose(found[:, child], of_family - of_class, rtol=1e-8, atol=1e-8)


def bags(schema):
    return [
        Structure.naive_bayes(6).as_families(schema),
        Structure.jan([[4, 3, 1, 0], [5, 2]]).as_families(schema),
        MIXED.as_families(schema),
        Structure.ending_in_band((3, 4, 5), (0, 1, 2), 2).as_families(schema),
        pair_families(schema),
    ]


def assert_equal(a, b):
    np.testing.assert_allclose(a.classes, b.classes)
    assert a.incomplete == b.incomplete
    for mine, theirs in zip(a.counts, b.counts, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    for mine, theirs in zip(a.moments, b.moments, strict=True):
        np.testing.assert_allclose(mine.n, theirs.n, atol=1e-12)
        np.testing.assert_allclose(mine.scatter, theirs.scatter, atol=1e-9)
        some = np.broadcast_to(mine.by_feature(mine.n) > 0, mine.mean.shape)
        np.testing.assert_allclose(
            (mine.mean + mine.origin)[some], (theirs.mean + theirs.origin)[some], rtol=1e-12, atol=1e-14
        )


@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(1, 39))
def test_statistics_add(seed, which, cut):
    X, y = mixed(seed, n=40)
    rng = np.random.default_rng(seed)
    H = with_missing(X, rng.random() / 2, seed, columns=rng.integers(0, 6, 3))
    weights = rng.uniform(0.5, 2.0, 40)
    table = table_of(H, y, weights=weights, **LEVELS)
    families = bags(table.schema)[which]
    whole = collect(table, families)
    first, second = (collect(table.rows(part), families) for part in np.split(np.arange(40), [cut]))
    assert_equal(first + second, whole)
    assert_equal(second + first, whole)
    twice = collect(table.rows(np.repeat(np.arange(40), 2)), families)
    assert_equal(2 * whole, twice)


def test_statistics_without_missing_values_and_prepared_for_some_say_the_same():
    X, y = mixed()
    table = table_of(X, y, **LEVELS)
    for structure in (MIXED, Structure.naive_bayes(6), Structure.ending_in_band((3, 4, 5), (0, 1, 2), 2)):
        plain = collect(table, structure.as_families(table.schema))
        widened = plain.with_incomplete((0, 4))
        assert_equal(widened, collect(table, plain.families, (0, 4)))
        expected, found = (Network.of(structure, part, Bayes()).log_likelihood(table) for part in (plain, widened))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        assert Network.of(structure, widened, Bayes()).log_evidence == pytest.approx(
            Network.of(structure, plain, Bayes()).log_evidence
        )


def test_a_group_is_ordered_so_that_nested_patterns_lose_nothing():
    X, y = continuous(m=4)
    H = X.copy()
    H[:30, 0], H[:10, 2] = np.nan, np.nan
    model = CGNClassifier("complete").fit(H, y)
    assert model.structure_.nodes == (1, 3, 2, 0)
    apart = [m for m in model.statistics_.moments if m.separate]
    assert [m.n.sum(axis=(0, 1))[0] for m in apart] == [50, 30]


def test_pairs_are_judged_by_the_rows_that_have_both():
    X, y = mixed(n=120)
    H = with_missing(X, 0.3, columns=[0, 3])
    table = table_of(H, y, **LEVELS)
    for estimation in (Bayes(), None):
        alone, joined = pair_scores(collect(table, pair_families(table.schema)), estimation)
        for parent, child in ((0, 1), (0, 2), (1, 2), (3, 4), (3, 1), (4, 0)):
            both = np.flatnonzero(~np.isnan(H[:, [parent, child]]).any(axis=1))
            expected = pair_scores(collect(table.rows(both), pair_families(table.schema), (0,)), estimation)
            gain = expected.joined[parent, child] - expected.alone[child]
            np.testing.assert_allclose(joined[parent, child] - alone[child], gain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("sharing", [0.0, 0.3])
def test_leave_one_out_equals_refits(structure, sharing):
    X, y, weights = discrete_and_continuous(0, n=30)
    H = with_missing(X, 0.2)
    model = CGNClassifier(STRUCTURES[structure], sharing=sharing, prior=HELD, categorical_features=[0, 1])
    model.partial_fit(H, y, classes=[0, 1, 2], sample_weight=weights)
    assert_same(joint(model, H, y, weights), refitted(model, H, y, weights))


def test_a_family_with_few_rows_is_warned_of():
    X, y = continuous(m=3)
    H = X.copy()
    H[:25, 0], H[-20:, 1] = np.nan, np.nan
    with pytest.warns(UserWarning, match="column 0 is observed in 25% of the samples together with its parents"):
        CGNClassifier("complete").fit(H, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CGNClassifier().fit(H, y)


# ---- all together

WAYS = {
    "naive Bayes": {},
    "complete": {"structure": "complete"},
    "tan": {"structure": "tan"},
    "band": {"structure": Band(2)},
    "box": {"structure": Box(2)},
    "maximum likelihood": {"structure": "tan", "estimation": "ml"},
    "discriminative": {"structure": Jan([[0, 1], [2, 3]]), "estimation": "discriminative"},
    "selective": {"structure": SelectiveNaiveBayes()},
    "search": {"structure": GreedyJan("forward", cv=3)},
    "likelihood_power": {"structure": Jan([[0, 1, 2], [3, 4]]), "likelihood_power": "cv"},
}


@pytest.mark.filterwarnings("ignore:.*is observed in")
@pytest.mark.parametrize("way", WAYS)
def test_fit_and_predict_with_missing_values(way):
    X, y = mixed(n=150)
    H = with_missing(X, 0.2)
    model = CGNClassifier(**WAYS[way], categorical_features=[3, 4, 5]).fit(H, y)
    log_joint = model.predict_joint_log_proba(H)
    assert np.isfinite(log_joint).all()
    # Neither the other samples nor their order matter.
    order = np.random.default_rng(0).permutation(len(H))
    np.testing.assert_allclose(model.predict_joint_log_proba(H[order]), log_joint[order], rtol=1e-9)
    np.testing.assert_allclose(model.predict_joint_log_proba(H[:1]), log_joint[:1], rtol=1e-9)
    parts = model.contributions(H)
    np.testing.assert_allclose(
        model.likelihood_power_ * parts.sum(axis=1) + model.class_log_prior_, log_joint, rtol=1e-8, atol=1e-8
    )
    if way != "discriminative":
        assert (parts[np.isnan(H)] == 0).all()
        nothing = np.full((1, 6), np.nan)
        np.testing.assert_allclose(model.predict_log_proba(nothing)[0], model.class_log_prior_, atol=1e-12)
        np.testing.assert_allclose(model.score_samples(nothing), 0.0, atol=1e-12)
    assert np.mean(model.predict(H) == y) >= 0.45


def test_more_rows_may_bring_the_first_missing_values(tmp_path):
    from cgnlearn import load, save

    X, y = mixed(n=120)
    H = X.copy()
    H[60:] = with_missing(X[60:], 0.3)
    whole = CGNClassifier("tan", categorical_features=[3, 4, 5]).fit(H, y)
    parts = CGNClassifier("tan", categorical_features=[3, 4, 5])
    for rows in (slice(0, 60), slice(60, 120)):
        parts.partial_fit(H[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(parts.predict_joint_log_proba(H), whole.predict_joint_log_proba(H), rtol=1e-9)
    save(whole, tmp_path / "model.cgn")
    again = load(tmp_path / "model.cgn")
    assert (again.predict_joint_log_proba(H) == whole.predict_joint_log_proba(H)).all()
    drawn, _ = whole.sample(50, random_state=0)
    assert np.isfinite(drawn).all()


@pytest.mark.parametrize(
    ("structure", "words"),
    [
        (Band("cv"), "give k a number"),
        (BandAverage(3), "give k a number"),
        (TANAverage(), "use TAN"),
        (GreedyJan("forward", cv="loo"), "use folds"),
    ],
)
def test_what_needs_complete_columns_says_so(structure, words):
    X, y = continuous()
    with pytest.raises(ValueError, match=words):
        CGNClassifier(structure).fit(with_missing(X), y)


@pytest.mark.parametrize("structure", [BandAverage(3), TANAverage()])
def test_averages_refuse_missing_values_at_prediction(structure):
    X, y = continuous()
    model = CGNClassifier(structure).fit(X, y)
    with pytest.raises(ValueError, match="missing values"):
        model.predict(with_missing(X))


def test_more_columns_than_rows_refuse_missing_values():
    X, y = continuous(n=10, m=301)
    with pytest.raises(ValueError, match="complete samples"):
        CGNClassifier("complete").fit(with_missing(X, 0.01), y)
    model = CGNClassifier("complete").fit(X, y)
    with pytest.raises(ValueError, match="complete samples"):
        model.predict(with_missing(X, 0.01))


def test_a_column_that_is_never_observed_says_nothing():
    X, y = continuous()
    H = X.copy()
    H[:, 2] = np.nan
    with pytest.warns(UserWarning, match="column 2 is observed in 0% of the samples"):
        model = CGNClassifier().fit(H, y)
    without = CGNClassifier().fit(np.delete(X, 2, axis=1), y)
    np.testing.assert_allclose(
        model.predict_joint_log_proba(H), without.predict_joint_log_proba(np.delete(X, 2, axis=1))
    )


def test_a_sum_over_a_discrete_feature_is_the_same_whatever_else_is_missing_in_the_batch():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    a = (rng.random(80) < 0.3 + 0.4 * y).astype(float)
    b = (rng.random(80) < 0.2 + 0.6 * a).astype(float)
    X = np.column_stack([a, b, rng.normal(size=80) + b, rng.normal(size=80)])
    structure = Structure.from_parents({0: (), 1: (0,), 2: (1,), 3: (2,)})
    network = network_of(structure, table_of(X, y, (0, 1), (2, 2)), Bayes(Prior()))
    H = np.repeat(X[:1], 4, axis=0)
    H[0, 0] = H[1, [0, 1]] = H[2, [0, 2]] = H[3, [0, 3]] = np.nan
    together = network.log_likelihood(table_of(H, None, (0, 1), (2, 2)))
    alone = [network.log_likelihood(table_of(one[None], None, (0, 1), (2, 2)))[0] for one in H]
    np.testing.assert_allclose(together, alone, atol=1e-12)
