"""Plans: Riley's criteria against their formulas, extrapolation against known curves, contracts of the plan."""

from math import ceil, exp, log

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from cgnlearn import CGNClassifier, plan
from cgnlearn.cli.main import main
from cgnlearn.evaluation.plan import extrapolated, minimum_sizes, riley
from cgnlearn.plots import LearningCurveDisplay


@pytest.fixture(scope="module")
def found():
    X, y = make_classification(80, 4, n_informative=3, n_redundant=0, weights=[0.7], flip_y=0.1, random_state=0)
    return plan(CGNClassifier(sharing=1.0), X, y, n_repeats=2)


@pytest.mark.parametrize("given", [(0.288, 24, 0.174), (0.1, 7, 0.4), (0.55, 30, 0.5)])
def test_criteria_of_riley(given):
    r_squared, parameters, prevalence = given
    found = riley(r_squared, parameters, prevalence)
    most = 1 - (prevalence**prevalence * (1 - prevalence) ** (1 - prevalence)) ** 2
    small = r_squared / (r_squared + 0.05 * most)
    assert found.shrinkage == ceil(parameters / ((0.9 - 1) * log(1 - r_squared / 0.9)))
    assert found.optimism == ceil(parameters / ((small - 1) * log(1 - r_squared / small)))
    assert found.prevalence == ceil((1.96 / 0.05) ** 2 * prevalence * (1 - prevalence))
    assert found.n == max(found.shrinkage, found.optimism, found.prevalence)


def test_criteria_as_published():
    # The example of pmsampsize's documentation.
    assert riley(0.288, 24, 0.174)[3:] == (623, 662, 221)


def test_r_squared_is_that_of_the_likelihood_ratio():
    true = np.array([0, 0, 0, 1, 1, 1, 1, 0])
    p = np.array([0.2, 0.3, 0.1, 0.8, 0.6, 0.9, 0.7, 0.4])
    (found,) = minimum_sizes(np.log(np.column_stack([1 - p, p])), true, np.array(["a", "b"]), 3)
    ratio = 2 * (np.log(np.where(true == 1, p, 1 - p)).sum() - 8 * log(0.5))
    assert found.label == "b"
    assert found.r_squared == pytest.approx(1 - exp(-ratio / 8))
    assert minimum_sizes(np.log(np.column_stack([p, 1 - p])), true, np.array(["a", "b"]), 3) == []


@pytest.mark.parametrize("exponent", [0.5, 0.75, 1.0])
def test_a_known_curve_is_continued(exponent):
    x, wanted = np.array([10.0, 20.0, 40.0, 80.0]), np.array([80.0, 160.0, 640.0])
    value, low, high = extrapolated(x, 0.2 + 3 * x**-exponent, np.full(4, 0.001), 0.0, wanted)
    truth = 0.2 + 3 * wanted**-exponent
    np.testing.assert_allclose(value, truth, rtol=0.12)
    assert (low <= truth * 1.02).all()
    assert (truth <= high * 1.02).all()


def test_bands_widen_with_the_noise_and_a_flat_curve_stays_flat():
    x, wanted = np.array([10.0, 20.0, 40.0, 80.0]), np.array([160.0, 640.0])
    narrow, wide = (extrapolated(x, 0.3 + 2 / x, np.full(4, error), 0.0, wanted) for error in (0.001, 0.05))
    assert (wide[2] - wide[1] > narrow[2] - narrow[1]).all()
    level = extrapolated(x, 0.3 + 2 / x, np.full(4, 0.001), 0.2, wanted)
    assert (level[2] - level[1] > narrow[2] - narrow[1]).all()
    flat = extrapolated(x, np.full(4, 0.5), np.full(4, 0.001), 0.0, wanted)
    np.testing.assert_allclose(flat[0], 0.5, atol=0.02)


def test_a_plan_of_more_samples(found):
    assert [each.n for each in found.expected] == [80, 160, 320, 640]
    assert [each.n for each in found.measured] == sorted(each.n for each in found.measured)
    losses = [each.log_loss for each in found.expected]
    assert losses == sorted(losses, reverse=True)
    for each in found.expected:
        assert 0 < each.log_loss_low < each.log_loss < each.log_loss_high
        assert 0.5 < each.auc < 1
        assert 0.5 < each.calibration_slope < 2
    assert set(found.cost_of_halving) == {0, 1}
    assert found.most_wanted in (0, 1)
    assert "With 80 samples" in found.sentence
    assert found.minimum[0].n_parameters == 4


def test_unknown_class_frequencies_cost_what_they_cost():
    # The expected log loss of class frequencies, over all data sets of 40 samples, against that of 16 and 32 samples.
    n, prevalence, sizes = 40, 0.4, [16, 32]
    positives = np.arange(7, 26)
    plans = [
        plan(DummyClassifier(strategy="prior"), np.zeros((n, 1)), np.arange(n) < k, sizes=sizes, n_repeats=1)
        for k in positives
    ]
    chance = binom.pmf(positives, n, prevalence)
    assert chance.sum() > 0.995
    for i, size in enumerate(sizes):
        counts = np.arange(1, size)  # a class without any sample has no finite log loss
        of_counts = binom.pmf(counts, size, prevalence)
        loss = -prevalence * np.log(counts / size) - (1 - prevalence) * np.log(1 - counts / size)
        measured = chance @ [each.measured[i].log_loss for each in plans] / chance.sum()
        assert measured == pytest.approx(of_counts @ loss / of_counts.sum(), abs=0.004)  # of 0.044 and 0.028


def test_a_plan_of_any_classifier_with_given_sizes():
    X, y = load_iris(return_X_y=True)
    found = plan(LogisticRegression(), X[::3], np.array(list("abc"))[y[::3]], sizes=[12, 30], n_repeats=1)
    assert [each.n for each in found.measured] == [12, 30]
    assert {each.label for each in found.minimum} <= set("abc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": [40]}, "two or more numbers from 6 to"),
        ({"sizes": [2, 40]}, "two or more numbers from 6 to"),
        ({"sizes": [20, 4000]}, "two or more numbers from 6 to"),
        ({"n_repeats": 0}, "n_repeats must be"),
    ],
)
def test_what_cannot_be_planned(arguments, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        plan(CGNClassifier(), X, y, **arguments)


def test_a_class_with_few_samples_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="has 2 samples: a plan needs at least 4"):
        plan(CGNClassifier(), X[:102], y[:102])


def test_the_display_shows_measured_and_expected(found):
    display = LearningCurveDisplay.from_plan(found)
    expected, measured = display.ax_.lines
    np.testing.assert_allclose(expected.get_xdata(), [80, 160, 320, 640])
    assert len(measured.get_xdata()) == len(found.measured)


def test_the_command(tmp_path):
    data = load_iris(as_frame=True).frame[::2]
    data.to_csv(tmp_path / "iris.csv", index=False)
    arguments = ["plan", str(tmp_path / "iris.csv"), "-t", "target", "-s", "naive_bayes", "--repeats", "1"]
    told = CliRunner().invoke(main, [*arguments, "--graph", str(tmp_path / "curve.svg")])
    assert told.exit_code == 0
    assert "expected      600 samples: log loss" in told.stdout
    assert told.stdout.splitlines()[-1].startswith("With 75 samples the log loss is about")
    assert (tmp_path / "curve.svg").stat().st_size > 1000
    assert CliRunner().invoke(main, [*arguments, "--sizes", "many"]).exit_code == 2
