import numpy as np
import pytest

from cgnlearn import Structure
from cgnlearn.data.schema import Schema
from cgnlearn.networks.layout import Layout, Pairs


def layout_of(structure, n=6, discrete=()):
    levels = tuple((0, 1, 2) if i in discrete else None for i in range(n))
    schema = Schema(None, levels, ("a", "b"))
    return Layout.of(structure.as_families(schema), schema)


def shapes(layout):
    """Blocks × members, and how many of them are given, of every stack."""
    return [(*stack.members.shape, stack.n_given) for p in layout.partitions for stack in p.stacks]


def test_families_that_nest_share_a_block():
    assert shapes(layout_of(Structure.naive_bayes(6))) == [(6, 1, 0)]
    assert shapes(layout_of(Structure.complete(6))) == [(1, 6, 0)]
    assert shapes(layout_of(Structure.box(6, 2))) == [(3, 2, 0)]
    assert shapes(layout_of(Structure.box(6, 4))) == [(1, 4, 0), (1, 2, 0)]
    assert shapes(layout_of(Structure.band(6, 3))) == [(1, 3, 0), (3, 3, 2)]
    assert shapes(layout_of(Structure.tree([None, 0, 0, 1, 1, None]))) == [(1, 2, 0), (3, 2, 1), (1, 1, 0)]


def test_every_family_is_counted_once(rng):
    """Whatever the graph: the own members of all blocks are its nodes, each after exactly its parents."""
    for _ in range(50):
        order = rng.permutation(6).tolist()
        parents = {v: [u for u in order[:i] if rng.random() < 0.4] for i, v in enumerate(order)}
        found = {}
        for partition in layout_of(Structure.from_parents(parents)).partitions:
            for stack in partition.stacks:
                for block in partition.columns[stack.members].tolist():
                    for j in range(stack.n_given, stack.size):
                        assert block[j] not in found
                        found[block[j]] = set(block[:j])
        assert found == {v: set(ps) for v, ps in parents.items()}


def test_partitions_are_cut_by_discrete_parents():
    structure = Structure.from_parents({0: [], 1: [0], 2: [0], 3: [2, 0], 4: [3], 5: [0, 1]})
    layout = layout_of(structure, discrete=(0, 1))
    assert [(family.column, family.cells.columns) for family in layout.discrete] == [(0, ()), (1, (0,))]
    cut = {partition.cells.columns: partition for partition in layout.partitions}
    assert set(cut) == {(0,), (), (0, 1)}
    assert cut[(0,)].columns.tolist() == [2, 3]
    assert cut[()].columns.tolist() == [3, 4]  # 3 as the parent of 4, in cells of the class alone
    assert cut[(0, 1)].cells.n == 9


def test_pair_index_finds_every_entry():
    partition = layout_of(Structure.from_parents({0: [], 3: [], 5: [0, 3], 1: [5]})).partitions[0]
    for stack in partition.stacks:
        index = partition.pairs.place(stack.members[:, :, None], stack.members[:, None, :])
        for b, block in enumerate(stack.members.tolist()):
            for i, first in enumerate(block):
                for j, second in enumerate(block):
                    place = index[b, i, j]
                    assert [partition.pairs.first[place], partition.pairs.second[place]] == sorted([first, second])


def test_stacks_without_some_features():
    partition = layout_of(Structure.band(6, 3)).partitions[0]
    absent = np.array([False, False, True, False, False, False])
    kept = [stack for whole in partition.stacks for stack in whole.without(absent)]
    blocks = {tuple(block): stack.n_given for stack in kept for block in stack.members.tolist()}
    assert blocks == {(0, 1): 0, (1, 3): 1, (3, 4): 1, (3, 4, 5): 2}
    everything = [stack for whole in partition.stacks for stack in whole.without(np.ones(6, bool))]
    assert everything == []


def test_refusals_name_the_columns():
    with pytest.raises(
        ValueError, match="column 3 is continuous and cannot be a parent of column 0, which is discrete"
    ):
        layout_of(Structure.from_parents({3: [], 0: [3]}), discrete=(0,))
    with pytest.raises(ValueError, match="discrete parents of column 16 have 43046721 configurations"):
        layout_of(Structure.from_parents({i: [] for i in range(16)} | {16: range(16)}), 17, tuple(range(16)))


@pytest.mark.parametrize(("n", "reach"), [(1, 0), (5, 0), (5, 1), (6, 3), (6, 5)])
def test_banded_entries_stand_by_feature_and_distance(rng, n, reach):
    pairs = Pairs.within(n, reach)
    entries = rng.normal(size=(2, len(pairs)))
    found = pairs.banded(entries)
    assert found.shape == (2, n, reach + 1)
    for v in range(n):
        for d in range(reach + 1):
            expected = entries[:, pairs.place(np.array(v), np.array(v - d))] if d <= v else 0.0
            np.testing.assert_array_equal(found[:, v, d], expected)
