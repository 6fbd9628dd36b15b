"""The tests' oracles enumerate: every assignment of signs, every pair of folds."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from cgnlearn.evaluation.significance import compare, critical_difference, holm, mark, mean_ranks, signed_rank
from cgnlearn.experiments import published


def test_the_signed_rank_test_is_that_of_all_sign_patterns(rng):
    for shift in (0.0, 0.7, -1.5):
        first, second = rng.normal(shift, 1, 9), rng.normal(0, 1, 9)
        difference = first - second
        ranks = np.argsort(np.argsort(np.abs(difference))) + 1
        statistic = abs((np.sign(difference) * ranks).sum())
        patterns = np.array(list(product((-1, 1), repeat=9)))
        found = compare(first, second, n_folds=3)
        assert found.wilcoxon_p == pytest.approx(np.mean(np.abs(patterns @ ranks) >= statistic))
        assert found.rank_biserial == pytest.approx((np.sign(difference) * ranks).sum() / ranks.sum())
        wins = np.sign(first[:, None] - second).mean() / 2 + 0.5
        assert found.superiority == pytest.approx(wins)
        assert found.mean_difference == pytest.approx(difference.mean())


def test_the_corrected_t_test_widens_the_plain_one(rng):
    difference = rng.normal(0.3, 1, 100)
    found = compare(difference, np.zeros(100), n_folds=10)
    plain = stats.ttest_1samp(difference, 0)
    t = plain.statistic * np.sqrt((1 / 100) / (1 / 100 + 1 / 9))
    assert found.corrected_t_p == pytest.approx(2 * stats.t.sf(abs(t), 99))
    assert found.corrected_t_p > plain.pvalue


def test_sides_change_signs(rng):
    first, second = rng.normal(1, 1, 30), rng.normal(0, 1, 30)
    there, back = compare(first, second, n_folds=10), compare(second, first, n_folds=10)
    assert (there.mark, back.mark) == ("win", "loss")
    assert there.rank_biserial == pytest.approx(-back.rank_biserial)
    assert there.superiority == pytest.approx(1 - back.superiority)
    assert there.wilcoxon_p == pytest.approx(back.wilcoxon_p)


def test_equal_folds_are_a_draw():
    same = np.linspace(0, 1, 20)
    found = compare(same, same, n_folds=10)
    assert (found.mark, found.unpaired_mark, found.wilcoxon_p, found.rank_biserial) == ("draw", "draw", 1.0, 0.0)
    constant = compare(same + 1, same, n_folds=10)
    assert constant.mark == "win"
    assert np.isfinite(constant).all()


def test_marks_need_significance():
    assert [mark(0.049, 0.1), mark(0.049, -0.1), mark(0.051, 0.9), mark(0.01, 0.0)] == ["win", "loss", "draw", "draw"]


def test_the_paper_s_tables_add_up_to_its_totals():
    assert set(published.TABLES) == {"forward", "backward", "condensed"}
    for lines in published.TABLES.values():
        assert len(lines) == 4
        for word, total in lines.values():
            assert len(word) == 9
            assert f"{word.count('w')}/{word.count('l')}" == total
    # Three cells by hand: bwGJAN loses CLL on iris, wcGJAN ties ACC on wine, fwGJAN on the third set.
    assert published.mark("backward", "cll", 1.0, 3) == "loss"
    assert published.mark("condensed", "accuracy", 0.2, 8) == "draw"
    assert published.mark("forward", "accuracy", 1.0, 2) == "draw"


def test_holm_is_the_greatest_over_all_smaller_p_values(rng):
    p = rng.uniform(0, 0.2, 7)
    n = len(p)
    expected = [min(1.0, max((n - np.sum(p < other)) * other for other in p if other <= own)) for own in p]
    np.testing.assert_allclose(holm(p), expected)


def test_mean_ranks_count_who_is_better_on_each_set(rng):
    values = rng.normal(size=(20, 5)).round(1)
    better = (values[:, None] > values[:, :, None]).sum(axis=2)
    equal = (values[:, None] == values[:, :, None]).sum(axis=2)
    np.testing.assert_allclose(mean_ranks(values), (better + (equal + 1) / 2).mean(axis=0))


def test_critical_differences_are_demsar_s():
    # Table 5 of Demsar (2006): q = 1.960, 2.343, 2.569, 2.728, 2.850, ..., 3.164 for 2, 3, 4, 5, 6 and 10 methods.
    for n, q in ((2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (10, 3.164)):
        assert critical_difference(n, 30) == pytest.approx(q * np.sqrt(n * (n + 1) / 180), rel=5e-4)


def test_no_differences_are_no_finding():
    assert signed_rank(np.zeros(5)) == (1.0, 0.0)


def test_small_examples():
    assert compare(np.arange(20) + 0.5, np.arange(20.0), n_folds=10).mark == "win"
    assert signed_rank(np.arange(1.0, 7.0)).p == 0.03125
    assert holm(np.array([0.03, 0.01, 0.04])).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert mean_ranks(np.array([[0.9, 0.8, 0.7], [0.5, 0.6, 0.5]])).tolist() == [1.75, 1.5, 2.75]
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
