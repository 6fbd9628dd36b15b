import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgnlearn import Structure
from cgnlearn.model import statistics
from cgnlearn.model.layout import Layout
from cgnlearn.model.statistics import collect
from cgnlearn.model.table import Encoder, Table

LEVELS = ((0, 1), None, None, None, None)  # one discrete column, four continuous ones


def layout_of(structure, n_classes=2, levels=LEVELS):
    return Layout.of(structure, Encoder(None, levels), n_classes)


def random_table(rng, n, *, weights=False, offset=0.0):
    return Table(
        rng.normal(size=(n, 4)) + offset,
        rng.integers(0, 2, (n, 1)).astype(np.int32),
        rng.integers(0, 2, n),
        rng.integers(0, 3, n).astype(float) if weights else None,
    )


def assert_same(a, b, rtol=1e-12):
    np.testing.assert_allclose(a.classes, b.classes)
    for x, y in zip(a.counts, b.counts, strict=True):
        np.testing.assert_allclose(x, y)
    for x, y in zip(a.moments, b.moments, strict=True):
        np.testing.assert_allclose(x.n, y.n)
        np.testing.assert_allclose(
            np.where(x.n[..., None] > 0, x.mean, 0), np.where(y.n[..., None] > 0, y.mean, 0), rtol
        )
        np.testing.assert_allclose(x.scatter, y.scatter, rtol=rtol, atol=1e-9)


STRUCTURES = [
    Structure.naive_bayes(5),
    Structure.from_parents({0: [], 1: [0], 2: [0, 1], 3: [1, 2], 4: [3]}),
    Structure.jan([[0, 1, 2, 3, 4]]),
    Structure.jan([[1, 4], [2, 3]]),
]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("weights", [False, True])
def test_moments_by_hand(rng, structure, weights):
    table = random_table(rng, 40, weights=weights)
    layout = layout_of(structure)
    found = collect(table, layout)
    w = np.ones(40) if table.weights is None else table.weights
    for partition, moments in zip(layout.partitions, found.moments, strict=True):
        configuration = partition.cells.index(table)
        for g in range(partition.cells.n):
            for c in range(2):
                rows = (configuration == g) & (table.labels == c)
                Y = table.values[rows][:, partition.values]
                n = w[rows].sum()
                mean = w[rows] @ Y / n
                S = (w[rows, None] * (Y - mean)).T @ (Y - mean)
                assert moments.n[g, c] == pytest.approx(n)
                np.testing.assert_allclose(moments.origin + moments.mean[g, c], mean)
                np.testing.assert_allclose(
                    moments.scatter[g, c], S[partition.pairs[:, 0], partition.pairs[:, 1]], atol=1e-12
                )


@given(st.integers(0, 10**6), st.sampled_from(STRUCTURES), st.integers(1, 39), st.booleans())
def test_parts_add_up_to_the_whole(seed, structure, cut, weights):
    table = random_table(np.random.default_rng(seed), 40, weights=weights, offset=1e3)
    layout = layout_of(structure)
    whole = collect(table, layout)
    parts = [collect(table.rows(np.arange(cut)), layout), collect(table.rows(np.arange(cut, 40)), layout)]
    assert_same(sum(parts), whole, rtol=1e-9)


@given(st.integers(0, 10**6), st.sampled_from(STRUCTURES))
def test_weight_two_is_the_row_twice(seed, structure):
    rng = np.random.default_rng(seed)
    table = random_table(rng, 30, weights=True)
    layout = layout_of(structure)
    repeated = table.rows(np.repeat(np.arange(30), table.weights.astype(int)))
    assert_same(
        collect(table, layout), collect(Table(repeated.values, repeated.codes, repeated.labels), layout), rtol=1e-9
    )


def test_adding_nothing_and_zero_changes_nothing(rng):
    table = random_table(rng, 20)
    layout = layout_of(STRUCTURES[2])
    whole, empty = collect(table, layout), collect(table.rows(np.zeros(0, np.intp)), layout)
    assert_same(whole + empty, whole)
    assert_same(empty + whole, whole)
    assert sum([whole]) is whole
    with pytest.raises(TypeError):
        whole + 3


def test_only_needed_pairs_are_kept():
    n, k = 1000, 5
    partition = layout_of(Structure.band(n, k), levels=(None,) * n).partitions[0]
    assert len(partition.pairs) == sum(min(v, k - 1) + 1 for v in range(n))


def test_no_digits_are_lost_at_a_large_mean(rng):
    table = random_table(rng, 1000)
    far = Table(table.values + 1e8, table.codes, table.labels)
    layout = layout_of(Structure.jan([[1, 2, 3, 4]]))
    near_scatter, far_scatter = (collect(t, layout).moments[0].scatter for t in (table, far))
    # 1e8 + x keeps eight digits of x, and no more are lost on the way
    np.testing.assert_allclose(far_scatter, near_scatter, atol=1e-4)


def test_constant_columns_have_exactly_no_scatter(rng):
    values = np.column_stack([np.full(500, 0.1), np.full(500, 1e8 / 3), rng.normal(size=(500, 2))])
    table = Table(values, np.zeros((500, 1), np.int32), rng.integers(0, 2, 500))
    moments = collect(table, layout_of(Structure.jan([[1, 2, 3, 4]]))).moments[0]
    assert (moments.scatter[..., :2] == 0).all()
    assert moments.constant().tolist() == [True, True, False, False]


@pytest.mark.parametrize("weights", [False, True])
def test_the_compiled_pass_gives_the_same_moments(rng, monkeypatch, weights):
    table = random_table(rng, 2000, weights=weights, offset=1e3)
    structure = Structure.from_parents({0: [], 1: [0], 2: [0], 3: [], 4: []})
    layout = layout_of(structure)
    plain = collect(table, layout)
    monkeypatch.setattr(statistics, "COMPILED_PAYS", 0)
    monkeypatch.setattr(statistics, "rows_by_cell", None)  # which the compiled pass has no need of
    assert_same(collect(table, layout), plain)
