import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import root
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import CGNClassifier, validate
from cgnlearn.evaluation.decisions import Costs
from cgnlearn.evaluation.subgroups import levels_of
from cgnlearn.plots import DecisionCurveDisplay, ReliabilityDisplay, SubgroupsDisplay


def place(rng, n, shift=0.0):
    y = rng.random(n) < 0.4
    X = pd.DataFrame(rng.normal(size=(n, 3)) + y[:, None] + shift, columns=list("abc"))
    X["d"] = pd.Categorical(np.where(rng.random(n) < 0.3 + 0.3 * y, "u", "v"))
    return X, np.where(y, "yes", "no")


@pytest.fixture
def model(rng):
    return CGNClassifier("naive_bayes").fit(*place(rng, 3000))


def test_figures_are_those_of_scikit_learn(rng, model):
    X, y = place(rng, 200)
    found = validate(model, X, y, thresholds=(0.3, 0.5))
    proba = model.predict_proba(X)[:, 1]
    assert found.positive == "yes"  # the rarer one in training
    assert found.counts == {"no": (y == "no").sum(), "yes": (y == "yes").sum()}
    assert found.log_loss.value == pytest.approx(log_loss(y, proba))
    assert found.brier.value == pytest.approx(2 * brier_score_loss(y == "yes", proba))
    share = (y == "yes").mean()
    assert found.scaled_brier.value == pytest.approx(1 - found.brier.value / (2 * share * (1 - share)))
    assert found.gain.value == pytest.approx(log_loss(y, np.full(200, share)) - found.log_loss.value)
    assert found.auc.value == pytest.approx(roc_auc_score(y == "yes", proba))
    called = proba >= 0.3
    assert found.decisions[0.3].sensitivity.value == pytest.approx(called[y == "yes"].mean())
    assert found.calibration.observed_expected.value == pytest.approx((y == "yes").sum() / proba.sum())
    row = found.to_frame().set_index("measure").loc["net benefit at 0.3"]
    true, false = (called & (y == "yes")).mean(), (called & (y == "no")).mean()
    assert row.value == pytest.approx(true - false * 0.3 / 0.7)
    assert row.low < row.value < row.high
    assert json.loads(json.dumps(found.as_dict()))["n"] == 200
    assert "advice: " in str(found)
    assert found.unusual.n == (model.typicality(X) < 0.01).sum()


def test_advice(rng, model):
    X, y = place(rng, 300)
    assert validate(model, X, y).advice.startswith("usable as it is: no sign of miscalibration")
    shared = CGNClassifier("naive_bayes", sharing=1.0).fit(*place(rng, 3000))
    turned = validate(shared, X.assign(a=X.a + 6, b=X.b - 6), y)  # unusual samples with about the same log odds
    assert turned.unusual.are_many
    assert turned.advice.startswith("these samples are unlike the training data: ")
    assert validate(model, X, rng.permutation(y)).advice.startswith("do not use it as it is: its predictions (log loss")
    labels = np.array(["yes"] * 4 + ["no"] * 6)
    good = place(rng, 3000)
    few = pd.concat([good[0][good[1] == "yes"][:4], good[0][good[1] == "no"][:6]])
    assert validate(model, few, labels).advice.startswith("undecided: too few samples to tell: 4 of the rarer")


def test_groups_and_prevalence(rng, model):
    X, y = place(rng, 60)
    twice = pd.concat([X, X, X])
    alone, grouped = validate(model, X, y), validate(model, twice, np.tile(y, 3), groups=np.tile(np.arange(60), 3))
    for name in ("log_loss", "auc", "gain"):
        one, three = getattr(alone, name), getattr(grouped, name)
        assert one.value == pytest.approx(three.value)
        assert 0.8 < (three.high - three.low) / (one.high - one.low) < 1.3
    rare = validate(model, X, y, prevalence=0.01)
    assert rare.decisions[0.5].positive_predictive_value.value < 0.3
    assert rare.net_benefit.value[49] < alone.net_benefit.value[49]


def test_net_benefit_is_at_the_threshold_itself(rng, model):
    X, y = place(rng, 200)
    proba, t = model.predict_proba(X)[:, 1], 0.2345  # not on the grid of the curve
    row = validate(model, X, y, thresholds=(t,)).to_frame().set_index("measure").loc["net benefit at 0.2345"]
    expected = ((proba >= t) & (y == "yes")).mean() - ((proba >= t) & (y == "no")).mean() * t / (1 - t)
    assert row.value == pytest.approx(expected, abs=1e-12)


def test_the_figures_of_val_prob(rng):
    # Those of R's rms::val.prob, by their raw formulas: a logistic regression of the outcome on the log odds.
    x = rng.normal(-0.3, 1.4, 250)
    y = rng.random(250) < expit(0.7 * x + 0.4)

    class Fixed:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X):
            return np.column_stack([expit(-X[:, 0]), expit(X[:, 0])])

    found = validate(Fixed(), x[:, None], np.where(y, "yes", "no"), positive="yes")

    def score(parameters, free):
        residual = y - expit(parameters[0] + parameters[1] * x)
        return np.array([residual.sum(), (residual * x).sum()])[:free]

    both = root(lambda of: score(of, 2), [0.0, 1.0], tol=1e-14).x
    alone = root(lambda of: score([of[0], 1.0], 1), [0.0], tol=1e-14).x
    assert found.calibration.slope.value == pytest.approx(both[1], abs=1e-8)
    assert found.calibration.intercept.value == pytest.approx(alone[0], abs=1e-8)
    p = expit(x)
    assert found.brier.value / 2 == pytest.approx(((p - y) ** 2).mean())  # val.prob's is of one class
    pairs = p[y][:, None] - p[~y]
    assert found.auc.value == pytest.approx(((pairs > 0) + (pairs == 0) / 2).mean())  # C (ROC)
    assert found.calibration.observed_expected.value == pytest.approx(y.mean() / p.mean())


def test_costs(rng, model):
    X, y = place(rng, 120)
    costs = Costs(("treat", "wait"), np.array([[1.0, 0.0], [0.0, 8.0]]))
    found = validate(model, X, y, costs=costs)
    treated = model.predict_proba(X)[:, 1] * 8 > model.predict_proba(X)[:, 0]
    paid = np.where(y == "yes", 8.0 * ~treated, 1.0 * treated)
    assert found.cost.value == pytest.approx(paid.mean())
    assert found.cost.low < paid.mean() < found.cost.high
    rows = dict(found.rows)
    assert rows["mean cost of treat for all samples"].value == pytest.approx((y == "no").mean())
    assert "mean cost per sample" in str(found)
    with pytest.raises(ValueError, match="costs have 3 classes, the model 2: give a row for each"):
        validate(model, X, y, costs=Costs(("a",), np.zeros((3, 1))))


def test_missing_values_and_unknown_levels_are_counted(rng, model):
    X, y = place(rng, 80)
    X.loc[:4, "a"] = np.nan
    X["d"] = X.d.astype(object)
    X.loc[[7, 9], "d"] = "w"
    X.loc[11, "d"] = None
    found = validate(model, X, y)
    assert found.missing == {"a": 5, "d": 1}
    assert found.unknown == {"d": 2}


def test_subgroups_need_not_be_features(rng, model):
    X, y = place(rng, 240)
    site = np.where(np.arange(240) < 236, "A", "B")
    site[:100] = "C"
    age = rng.normal(50, 10, 240)
    age[0] = np.nan
    found = validate(model, X, y, by={"site": site, "age": age})
    table = found.subgroups_frame()
    assert table.level.tolist()[:3] == ["A", "B", "C"]
    assert table.n.sum() == 480
    assert table[table.column == "age"].level.str.startswith("below").tolist() == [True, False, False, False, False]
    assert table.level.iloc[-1] == "missing"
    small = next(of for of in found.subgroups if of.level == "B")
    assert small.is_small
    assert small.n == 4
    part = validate(model, X[:100], y[:100])
    of_c = next(of for of in found.subgroups if of.level == "C")
    assert of_c.auc == part.auc
    assert of_c.log_loss == part.log_loss
    assert of_c.calibration == part.calibration
    assert [of.level for of in validate(model, X, y, by="d").subgroups] == ["u", "v"]
    assert validate(model, X, y, by=pd.DataFrame({"s": site})).subgroups[0].column == "s"
    display = SubgroupsDisplay.from_validation(found)
    assert "site = B (4" in display.ax_.get_yticklabels()[2].get_text()
    with pytest.raises(ValueError, match="measure must be one of"):
        SubgroupsDisplay.from_validation(found, "size")
    with pytest.raises(ValueError, match="no subgroups: validate with by=COLUMNS"):
        SubgroupsDisplay.from_validation(part)


def test_levels_of_columns():
    assert levels_of([1, 2, None]).tolist() == ["1", "2", "missing"]
    many = levels_of([f"s{i // 3}" for i in range(60)])
    assert len(set(many)) == 12
    assert "9 others" in many
    quarters = levels_of(np.arange(100))
    assert sorted(np.unique(quarters, return_counts=True)[1].tolist()) == [25, 25, 25, 25]


def test_several_classes(rng):
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 2)) + y[:, None]
    found = validate(CGNClassifier().fit(X[:150], y[:150]), X[150:], y[150:])
    assert found.positive is None
    assert found.auc is None
    assert found.net_benefit is None
    assert {"calibration slope, all classes", "calibration slope, 2 against the others"} < set(found.to_frame().measure)
    assert list(ReliabilityDisplay.from_validation(found).lines) == ["0", "1", "2"]
    one = validate(CGNClassifier().fit(X[:150], y[:150]), X[150:], y[150:], positive=2)
    assert one.positive == "2"
    assert one.auc is not None
    with pytest.raises(ValueError, match="needs a positive class"):
        DecisionCurveDisplay.from_validation(found)
    absent = validate(CGNClassifier().fit(X[:150], y[:150]), X[150:][y[150:] < 2], y[150:][y[150:] < 2])
    assert absent.counts["2"] == 0
    assert absent.calibration.by_class["2"].intercept.value == -np.inf


def test_any_classifier_and_displays(rng):
    X, y = place(rng, 200)
    X = X[list("abc")]
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:100], y[:100])
    found = validate(other, X[100:], y[100:])
    assert found.unusual is None
    assert found.log_loss.value == pytest.approx(log_loss(y[100:], other.predict_proba(X[100:])))
    assert ReliabilityDisplay.from_validation(found).ax_.get_xlabel() == f"Probability of {found.positive}"
    assert DecisionCurveDisplay.from_validation(found).curves["model"].thresholds[0] == 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.char.capitalize(y)), "y has 'No' in .* samples, where the model says 'no': spell them"),
        (lambda X, y: (X, np.where(y == "no", "maybe", y)), "the class 'maybe', which the model does not know"),
        (lambda X, y: (X, np.full(len(y), "no")), "all 40 samples are of class 'no'"),
        (lambda X, y: (X[["a", "b", "c"]], y), "feature names"),
        (lambda X, y: (X[:5], y), "different numbers of samples"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(rng, model, change, message):
    X, y = change(*place(rng, 40))
    with pytest.raises(ValueError, match=message):
        validate(model, X, y)


def test_bad_options_are_refused(rng, model):
    X, y = place(rng, 40)
    for options, message in (
        ({"thresholds": (0.0,)}, "thresholds must be"),
        ({"prevalence": 1.0}, "prevalence must be"),
        ({"positive": "ill"}, "positive 'ill' is not a class of the model: these are no, yes"),
        ({"sample_weight": np.ones(40)}, "validate takes no sample_weight, .*: repeat samples and give groups"),
        ({"by": "site"}, "by 'site' is not a column of X"),
        ({"by": {"site": [1, 2]}}, "by 'site' has 2 values for 40 samples"),
    ):
        with pytest.raises(ValueError, match=message):
            validate(model, X, y, **options)


def test_a_model_too_sure_is_to_be_recalibrated(rng):
    X, y = place(rng, 400)

    class Extreme:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X):
            p = expit(2 * (X["a"] + X["b"] + X["c"] - 1.5) - 0.4)
            return np.column_stack([1 - p, p])

    assert validate(Extreme(), X, y).advice.startswith("recalibrate: probabilities are too extreme, slope 0.")
