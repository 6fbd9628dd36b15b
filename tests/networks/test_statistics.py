import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgnlearn import Structure
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.layout import Layout
from cgnlearn.networks.statistics import collect

LEVELS = ((0, 1), None, None, None, None)  # one discrete column, four continuous ones


SCHEMA = Schema(None, LEVELS, ("a", "b"))


def families_of(structure):
    return structure.as_families(SCHEMA)


def random_table(rng, n, *, weights=False, offset=0.0):
    return Table(
        SCHEMA,
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
            np.where(x.n[..., None] > 0, x.origin + x.mean, 0), np.where(y.n[..., None] > 0, y.origin + y.mean, 0), rtol
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
    found = collect(table, families_of(structure))
    layout = found.layout
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
                    moments.scatter[g, c], S[partition.pairs.first, partition.pairs.second], atol=1e-12
                )


@given(st.integers(0, 10**6), st.sampled_from(STRUCTURES), st.integers(1, 39), st.booleans())
def test_parts_add_up_to_the_whole(seed, structure, cut, weights):
    table = random_table(np.random.default_rng(seed), 40, weights=weights, offset=1e3)
    families = families_of(structure)
    whole = collect(table, families)
    parts = [collect(table.rows(np.arange(cut)), families), collect(table.rows(np.arange(cut, 40)), families)]
    assert_same(sum(parts), whole, rtol=1e-9)


@given(st.integers(0, 10**6), st.sampled_from(STRUCTURES))
def test_weight_two_is_the_row_twice(seed, structure):
    rng = np.random.default_rng(seed)
    table = random_table(rng, 30, weights=True)
    families = families_of(structure)
    repeated = table.rows(np.repeat(np.arange(30), table.weights.astype(int)))
    assert_same(
        collect(table, families),
        collect(Table(SCHEMA, repeated.values, repeated.codes, repeated.labels), families),
        rtol=1e-9,
    )


def test_adding_nothing_and_zero_changes_nothing(rng):
    table = random_table(rng, 20)
    families = families_of(STRUCTURES[2])
    whole, empty = collect(table, families), collect(table.rows(np.zeros(0, np.intp)), families)
    assert_same(whole + empty, whole)
    assert_same(empty + whole, whole)
    assert sum([whole]) is whole
    with pytest.raises(TypeError):
        whole + 3


def test_only_needed_pairs_are_kept():
    n, k = 1000, 5
    schema = Schema(None, (None,) * n, ("a", "b"))
    (partition,) = Layout.of(Structure.band(n, k).as_families(schema), schema).partitions
    assert len(partition.pairs) == sum(min(v, k - 1) + 1 for v in range(n))


def test_no_digits_are_lost_at_a_large_mean(rng):
    table = random_table(rng, 1000)
    far = Table(SCHEMA, table.values + 1e8, table.codes, table.labels)
    families = families_of(Structure.jan([[1, 2, 3, 4]]))
    near_scatter, far_scatter = (collect(t, families).moments[0].scatter for t in (table, far))
    # 1e8 + x keeps eight digits of x, and no more are lost on the way
    np.testing.assert_allclose(far_scatter, near_scatter, atol=1e-4)


def test_constant_columns_have_exactly_no_scatter(rng):
    values = np.column_stack([np.full(500, 0.1), np.full(500, 1e8 / 3), rng.normal(size=(500, 2))])
    table = Table(SCHEMA, values, np.zeros((500, 1), np.int32), rng.integers(0, 2, 500))
    moments = collect(table, families_of(Structure.jan([[1, 2, 3, 4]]))).moments[0]
    assert (moments.scatter[..., :2] == 0).all()
    assert moments.constant().tolist() == [True, True, False, False]


@pytest.mark.parametrize("weights", [False, True])
def test_the_compiled_pass_gives_the_same_moments(rng, monkeypatch, weights):
    table = random_table(rng, 2000, weights=weights, offset=1e3)
    families = families_of(Structure.from_parents({0: [], 1: [0], 2: [0], 3: [], 4: []}))
    plain = collect(table, families)
    monkeypatch.setattr("cgnlearn.networks.moments.COMPILED_PAYS", 0)
    monkeypatch.setattr("cgnlearn.networks.moments.rows_by_cell", None)  # which the compiled pass has no need of
    assert_same(collect(table, families), plain)


# ---- what does not match, and parts of what was counted


MIXED = Schema(None, ((0, 1), ("u", "v", "w"), None, None, None), ("a", "b", "c"))


def mixed_table(rng, n=60):
    codes = np.column_stack([rng.integers(0, 2, n), rng.integers(0, 3, n)]).astype(np.int32)
    return Table(MIXED, rng.normal(size=(n, 3)) + 50.0, codes, rng.integers(0, 3, n), rng.uniform(0.5, 2, n))


def test_other_columns_classes_or_structures_are_not_added(rng):
    table = mixed_table(rng)
    naive, complete = (
        collect(table, s.as_families(MIXED)) for s in (Structure.naive_bayes(5), Structure.jan([range(5)]))
    )
    with pytest.raises(ValueError, match="of different structures and cannot be added"):
        naive + complete
    other = replace(MIXED, classes=("a", "b", "d"))
    renamed = collect(replace(table, schema=other), naive.families)
    with pytest.raises(ValueError, match=r"classes differ \(a, b, c, not a, b, d\)"):
        naive + renamed


def test_the_same_families_in_another_order_are_added(rng):
    table = mixed_table(rng)
    one, other = (
        collect(table, Structure.from_parents(parents).as_families(MIXED))
        for parents in ({0: [], 2: [0], 3: [0], 4: [2, 3]}, {3: [0], 0: [], 4: [3, 2], 2: [0]})
    )
    assert_same(one + other, 2 * one)


@pytest.mark.parametrize(
    ("counted", "wanted"),
    [
        (Structure.jan([range(5)]), Structure.naive_bayes(5)),
        (Structure.jan([range(5)]), Structure.from_parents({1: [], 4: [1], 2: [4, 1]})),
        (Structure.jan([range(5)]), Structure.from_parents({1: [], 0: [1], 3: [0], 2: [3]})),
        (Structure.jan([[0, 2, 3], [1, 4]]), Structure.jan([[0, 3], [4]])),
    ],
)
def test_restricted_is_what_counting_anew_gives(rng, counted, wanted):
    table = mixed_table(rng)
    whole, expected = (collect(table, structure.as_families(MIXED)) for structure in (counted, wanted))
    found = whole.restricted(expected.families)
    assert found.families == expected.families
    assert_same(found, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="were not counted together"):
        expected.restricted(Structure.jan([range(5)]).as_families(MIXED))


def test_a_smaller_window_out_of_a_greater_one(rng):
    schema = Schema(None, (None,) * 12, ("a", "b"))
    table = Table(schema, rng.normal(size=(30, 12)), np.empty((30, 0), np.int32), np.arange(30) % 2)
    seven, whole = (collect(table, Structure.band(12, k).as_families(schema)) for k in (7, 11))
    for structure in (Structure.band(12, 3), Structure.box(12, 5), Structure.naive_bayes(12)):
        expected = collect(table, structure.as_families(schema))
        assert_same(seven.restricted(expected.families), expected)
        assert_same(whole.restricted(expected.families), expected)


def test_class_free_is_all_rows_as_one_class(rng):
    table = mixed_table(rng)
    structure = Structure.from_parents({0: [], 1: [0], 2: [1], 3: [2, 1], 4: [3]})
    found = collect(table, structure.as_families(MIXED)).class_free()
    one = replace(table, schema=replace(MIXED, classes=("any",)), labels=np.zeros(table.n_samples, np.intp))
    assert_same(found, collect(one, structure.as_families(MIXED)), rtol=1e-9)
    assert found.schema.classes == ("any",)


def test_a_weight_counts_all_rows_as_often(rng):
    table = mixed_table(rng)
    families = Structure.jan([range(5)]).as_families(MIXED)
    heavier = replace(table, weights=2.5 * table.weights)
    assert_same(2.5 * collect(table, families), collect(heavier, families), rtol=1e-9)


def test_copies_and_pickles_leave_the_derived_behind(rng):
    found = collect(mixed_table(rng), Structure.jan([range(5)]).as_families(MIXED))
    state = found.__getstate__()
    assert "layout" not in state
    assert all(isinstance(part, np.ndarray) for arrays in state["moments"] for part in arrays)
    assert_same(pickle.loads(pickle.dumps(found)) + found, 2 * found)
