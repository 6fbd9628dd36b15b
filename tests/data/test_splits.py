"""One rule for cutting folds."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split

from cgnlearn.data.splits import allowed, repeated_splits, stratified, stratified_sample, subsampled
from cgnlearn.data.warning import DataWarning
from cgnlearn.datasets import load

Y = load_iris().target
LABELS = np.array(["a", "b", "c"])[Y]


def test_folds_are_scikit_learn_s():
    for pair, theirs in zip(stratified(LABELS, 5, 7).pairs, folds_of(StratifiedKFold, 5, 7), strict=True):
        np.testing.assert_array_equal(pair[0], theirs[0])
        np.testing.assert_array_equal(pair[1], theirs[1])
    groups = np.repeat(np.arange(30), 5).astype(str)
    ours = stratified(LABELS, 5, 7, groups)
    assert ours.fewer is None
    for pair, theirs in zip(ours.pairs, folds_of(StratifiedGroupKFold, 5, 7, groups), strict=True):
        np.testing.assert_array_equal(pair[1], theirs[1])


def folds_of(kind, n_folds, seed, groups=None):
    return list(kind(n_folds, shuffle=True, random_state=seed).split(LABELS, LABELS, groups))


@pytest.mark.parametrize(
    ("y", "groups", "n_folds", "said"),
    [
        ("aaaaaabbbb", None, 4, None),
        ("aaaaaabbbb", None, 6, "the smallest class has 4 samples, so that 4 folds are used instead of 6"),
        ("aaaaaab", None, 6, "the smallest class has 1 sample, so that 2 folds are used instead of 6"),
        (
            "aaaaaaaaabbbbb",
            "01234567889991",
            5,
            "the smallest class has 3 groups, so that 3 folds are used instead of 5",
        ),
    ],
)
def test_a_rare_class_lowers_the_number_of_folds(y, groups, n_folds, said):
    labels = np.array(list(y))
    units = None if groups is None else np.array(list(groups))
    folds = stratified(labels, n_folds, 0, units)
    assert folds.fewer == said
    assert len(folds.pairs) == allowed(labels, n_folds, units)
    assert sorted(np.concatenate([test for _, test in folds.pairs])) == list(range(len(labels)))
    for train, test in folds.pairs:
        assert not set(train) & set(test)
        assert units is None or not set(units[train]) & set(units[test])


def test_without_two_samples_of_any_class_there_are_no_folds():
    with pytest.raises(ValueError, match="no class has two: give more samples"):
        stratified(np.array(["a", "b", "c"]), 3, 0)


def test_one_group_of_each_class_is_divided_by_samples():
    labels, groups = np.array(list("aaaabb")), np.array([1, 1, 1, 1, 2, 2])
    with pytest.warns(DataWarning, match="folds divide samples, not groups"):
        folds = stratified(labels, 3, 0, groups)
    assert folds.fewer == "the smallest class has 2 samples, so that 2 folds are used instead of 3"
    for (train, test), (own, held_out) in zip(folds.pairs, stratified(labels, 3, 0).pairs, strict=True):
        assert (train.tolist(), test.tolist()) == (own.tolist(), held_out.tolist())


def test_the_splitters_wait_until_they_are_needed():
    code = "import sys, cgnlearn.data.splits, cgnlearn.evaluation.metrics; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_a_part_of_the_training_samples_is_stratified():
    split = repeated_splits(LABELS, n_folds=5)[2]
    few = subsampled(split, LABELS, 0.2, seed=3)
    part, _ = train_test_split(split.train, train_size=0.2, stratify=LABELS[split.train], random_state=3)
    np.testing.assert_array_equal(few.train, part)
    np.testing.assert_array_equal(few.test, split.test)
    assert np.bincount(Y[few.train]).tolist() == [8, 8, 8]


@pytest.mark.parametrize("seed", range(20))
def test_a_sample_takes_every_class_by_its_share(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 200, rng.integers(1, 12))
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    most = int(rng.integers(1, len(labels)))
    chosen = stratified_sample(labels, most)
    assert len(np.unique(chosen)) == most
    assert (np.diff(chosen) > 0).all()
    # Of all samples, ranked within their classes, the first by their rank's share of the class.
    shares = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes])
    taken = np.bincount(labels[chosen], minlength=len(sizes))
    least_left = min(((n + 0.5) / size for n, size in zip(taken, sizes, strict=True) if n < size), default=1.0)
    most_taken = max((n - 0.5) / size for n, size in zip(taken, sizes, strict=True) if n)
    assert most_taken <= least_left
    assert most_taken == pytest.approx(np.sort(shares)[most - 1])


def test_splits_are_stratified_repeated_and_seeded():
    splits = repeated_splits(LABELS, n_folds=5, n_repeats=3, seed=4)
    assert [(s.repeat, s.fold) for s in splits] == [(r, f) for r in range(3) for f in range(5)]
    for repeat in range(3):
        tests = [s.test for s in splits if s.repeat == repeat]
        np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(150))
        assert all(np.bincount(Y[test]).tolist() == [10, 10, 10] for test in tests)
    assert not np.array_equal(splits[0].test, splits[5].test)
    again = repeated_splits(LABELS, n_folds=5, n_repeats=1, seed=5)
    np.testing.assert_array_equal(again[0].test, splits[5].test)


def test_groups_stay_together():
    groups = np.repeat(np.arange(30), 5)
    for split in repeated_splits(LABELS, groups=groups, n_folds=5, n_repeats=2):
        assert not set(groups[split.train]) & set(groups[split.test])


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (["a"] * 9, {}, "one class only"),
        (["a"] * 9 + ["b"], {}, "class 'b' has 1 of the samples"),
        (["a"] * 9 + ["b"] * 2, {"groups": np.arange(11)}, None),
        (
            ["a"] * 9 + ["b"] * 2,
            {"groups": np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])},
            "class 'b' has 1 of the groups",
        ),
        (["a"] * 9 + ["b"] * 2, {"n_folds": 12}, None),
        (["a"] * 5 + ["b"] * 5, {"n_folds": 10}, None),
        (["a"] * 9 + ["b"] * 2, {"n_folds": 1}, "at least 2 folds"),
    ],
)
def test_impossible_splits_are_refused(y, options, message):
    options = {"n_folds": 2, **options}
    if message is None:
        assert repeated_splits(np.array(y), **options)
    else:
        with pytest.raises(ValueError, match=message):
            repeated_splits(np.array(y), **options)


def test_a_class_with_fewer_samples_than_folds_is_still_trained_on():
    y = np.array(["a"] * 20 + ["b"] * 3)
    assert all((y[split.train] == "b").sum() >= 2 for split in repeated_splits(y, n_folds=10))


def test_splits_partition_each_repetition_and_keep_the_classes_shares():
    y = load("wine").target
    for repetition in range(2):
        pairs = [(split.train, split.test) for split in repeated_splits(y, n_folds=10, seed=3 + repetition)]
        assert sorted(np.concatenate([test for _, test in pairs])) == list(range(len(y)))
        for train, test in pairs:
            assert not set(train) & set(test)
            assert len(train) + len(test) == len(y)
            assert {(y[test] == label).sum() for label in "13"} <= {4, 5, 6}
    first, second = (repeated_splits(y, n_folds=10, seed=3 + r)[0].test for r in range(2))
    assert not np.array_equal(first, second)
