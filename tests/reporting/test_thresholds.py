"""Decisions at every threshold, beside counts by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cgnlearn.data.splits import Split
from cgnlearn.evaluation.decisions import Costs
from cgnlearn.evaluation.run import Unit
from cgnlearn.evaluation.study import FoldResult, Study
from cgnlearn.reporting.thresholds import thresholds


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = np.where(rng.random(200) < p, "case", "control")
    splits = [Split(0, 0, np.empty(0, np.intp), np.arange(200))]
    made = Study("a set", pd.DataFrame({"a": p}), y, {"m": None}, splits, positive="case", are_fitted=True)
    return replace(made, results=[FoldResult(Unit("m", 0, 0), np.arange(200), np.log(np.column_stack([p, 1 - p])))])


def test_every_threshold_has_the_shares_of_its_calls(study):
    found = thresholds(study, ["m"])
    p, case = study.X["a"].to_numpy(), study.y == "case"
    [lists] = found.values["models"]
    for place, at in enumerate(found.values["thresholds"]):
        called = p >= at
        assert lists["sensitivity"][place][0] == pytest.approx(called[case].mean(), abs=5e-5)
        assert lists["specificity"][place][0] == pytest.approx((~called)[~case].mean(), abs=5e-5)
        assert lists["positive_predictive_value"][place][0] == pytest.approx(case[called].mean(), abs=5e-5)
        benefit = (called & case).mean() - (called & ~case).mean() * at / (1 - at)
        assert lists["net_benefit"][place][0] == pytest.approx(benefit, abs=5e-5)
    assert (found.start, found.is_by_costs, found.costs) == (0.5, False, {})
    assert "cost" not in lists


def test_with_costs_it_starts_where_they_are_least(study):
    """A missed case costs 9, a false alarm 1: act from 10% on."""
    costs = Costs(("treat", "wait"), np.array([[0.0, 9.0], [1.0, 0.0]]))
    found = thresholds(replace(study, costs=costs), ["m"])
    assert (found.start, found.is_by_costs) == (0.1, True)
    p, case = study.X["a"].to_numpy(), study.y == "case"
    called = p >= 0.1
    assert found.costs["m"] == pytest.approx((9 * (~called & case) + (called & ~case)).mean())
    [lists] = found.values["models"]
    assert lists["cost"][9][0] == pytest.approx(found.costs["m"], abs=5e-5)
    always = Costs(("treat", "wait"), np.array([[0.0, 9.0], [0.0, 1.0]]))
    assert not thresholds(replace(study, costs=always), ["m"]).is_by_costs


def test_without_both_outcomes_there_is_nothing_to_decide(study):
    assert thresholds(replace(study, y=np.array(["case"] * 200)), ["m"]) is None
