"""The tests' oracles enumerate: every assignment of signs, every pair of folds."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from cgnlearn.evaluation.significance import compare, mark
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
