import numpy as np
import pytest

from cgnlearn import CGNClassifier, Prior
from tests.oracles import paper


@pytest.mark.parametrize("name", ["dirichlet", "strength", "shape"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "much", None])
def test_numbers_must_be_positive(name, value):
    with pytest.raises(ValueError, match=f"prior's {name} must be a positive number"):
        Prior(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"location": "median"}, 'location must be "pooled", "paper", "cell" or an array'),
        ({"scale": "mad"}, 'scale must be "variance", a number or an array'),
        ({"scale": 0}, "scale must be positive, not 0"),
        ({"scale": np.inf}, "scale must be positive, not inf"),
        ({"scale": None}, "scale must be positive, not None"),
        ({"scale": [1.0, 0.0]}, r"scale must be positive, not 0.0 \(feature 1\)"),
        ({"location": [[[1.0]]]}, "one finite number per feature"),
        ({"location": [np.nan]}, "one finite number per feature"),
        ({"location": [[1.0, 2.0], [3.0]]}, "one finite number per feature"),
        ({"strength": [[1.0, np.nan]]}, "one finite number per feature"),
        ({"scale": [[1.0, 2.0], [-1.0, 2.0]]}, r"scale must be positive, not -1.0 \(class 1, feature 0\)"),
        ({"shape": [1.0, 0.0]}, r"shape must be positive, not 0.0 \(feature 1\)"),
        ({"ranges": [("ill", "K", 3.0, 5.0, 20)], "location": "cell"}, 'ranges need a prior with location "pooled"'),
        ({"ranges": [("ill", "K", 3.0, 5.0, 20)], "scale": 3}, 'ranges need a prior with location "pooled"'),
    ],
)
def test_arrays_and_words_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Prior(**arguments)


def test_arrays_must_fit_the_columns():
    with pytest.raises(ValueError, match="location has 2 values, but there are 3 features"):
        CGNClassifier(prior=Prior(location=[0.0, 1.0])).fit(np.eye(3), [0, 1, 1])


def test_rows_must_fit_the_classes():
    with pytest.raises(ValueError, match="scale has 3 rows, but there are 2 classes"):
        CGNClassifier(prior=Prior(scale=np.ones((3, 3)))).fit(np.eye(3), [0, 1, 1])


@pytest.mark.parametrize("sharing", [0.0, 0.3])
def test_a_number_for_scale_is_that_multiple_of_the_variance(mixed, sharing):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    model = CGNClassifier("complete", sharing=sharing, prior=Prior(scale=30)).fit(X, y)
    parents = {0: [], 1: [0], 2: [0, 1]}
    expected = paper.log_joint(X, y, rows, parents, sharing=sharing, scale=30 * X.var(axis=0))
    np.testing.assert_allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-10)


def test_a_number_for_scale_has_bounds_and_a_name():
    assert repr(Prior(scale=np.float32(2))) == "Prior(scale=2.0)"
    assert Prior(scale=1e-20).standard_scale(np.arange(2), np.ones(2)).tolist() == [1e-8, 1e-8]


def test_priors_compare_and_hash():
    assert Prior(location=np.array([1, 2])) == Prior(location=[1.0, 2.0])
    assert hash(Prior()) == hash(Prior())
    assert Prior() != Prior(shape=2.0)
