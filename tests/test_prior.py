import numpy as np
import pytest

from cgnlearn import CGNClassifier, Prior


@pytest.mark.parametrize("name", ["dirichlet", "strength", "shape"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "much", None])
def test_numbers_must_be_positive(name, value):
    with pytest.raises(ValueError, match=f"prior's {name} must be a positive number"):
        Prior(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"location": "median"}, 'location must be "pooled", "paper", "cell" or an array'),
        ({"scale": "mad"}, 'scale must be "variance" or an array'),
        ({"scale": [1.0, 0.0]}, r"scale must be positive, not 0.0 \(attribute 1\)"),
        ({"location": [[1.0]]}, "one finite number per attribute"),
        ({"location": [np.nan]}, "one finite number per attribute"),
    ],
)
def test_arrays_and_words_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Prior(**arguments)


def test_arrays_must_fit_the_columns():
    with pytest.raises(ValueError, match="location has 2 values, but there are 3 attributes"):
        CGNClassifier(prior=Prior(location=[0.0, 1.0])).fit(np.eye(3), [0, 1, 1])


def test_priors_compare_and_hash():
    assert Prior(location=np.array([1, 2])) == Prior(location=[1.0, 2.0])
    assert hash(Prior()) == hash(Prior())
    assert Prior() != Prior(shape=2.0)
