"""Several networks at once, against one after another."""

from dataclasses import replace

import numpy as np
import pytest

from cgnlearn.data.table import read_training
from cgnlearn.networks import together
from cgnlearn.networks.estimation import Bayes, MaximumLikelihood
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.together import Together

ESTIMATIONS = [Bayes(Prior(), 0.0), Bayes(Prior(dirichlet=0.5), 0.3), Bayes(Prior(scale=10.0), 1.0)]
STRUCTURES = {
    "naive Bayes": dict.fromkeys(range(12), ()),
    "complete": {i: tuple(range(2, i)) if i > 2 else () for i in range(12)},
    "tree with discrete parents": {0: (), 1: (0,), 2: (0,), 3: (2,), 4: (2, 1), 5: (4,), 6: ()},
}


@pytest.fixture
def table(rng):
    X = rng.normal(size=(60, 12)) * 10.0 ** np.arange(-6, 6)
    X[:, :2] = rng.integers(0, 3, (60, 2))
    return read_training(X, np.arange(60) % 3, None, [0, 1])[0]


def networks(table, parents, estimations):
    structure = Structure.from_parents(parents)
    statistics = collect(table, structure.as_families(table.schema))
    return [Network.of(structure, statistics, estimation) for estimation in estimations]


@pytest.mark.parametrize("n_samples", [1, 7])
@pytest.mark.parametrize("parents", STRUCTURES.values(), ids=STRUCTURES)
def test_networks_together_say_what_each_says_alone(table, parents, n_samples):
    models = networks(table, parents, ESTIMATIONS)
    few = table.rows(np.arange(n_samples))
    found = Together.of(models)
    assert found.suits(few)
    alone = np.stack([model.log_likelihood(few) for model in models])
    np.testing.assert_allclose(found.log_likelihood(few), alone, rtol=1e-12, atol=1e-11)


def test_what_differs_in_more_than_the_estimation_is_not_together(table):
    naive = networks(table, STRUCTURES["naive Bayes"], ESTIMATIONS[:1])
    tree = networks(table, STRUCTURES["tree with discrete parents"], ESTIMATIONS[:1])
    assert Together.of([*naive, *tree]) is None
    assert Together.of(networks(table, STRUCTURES["naive Bayes"], [Bayes(Prior(location="paper"))])) is None
    assert Together.of(networks(table, {2: ()}, [MaximumLikelihood(Prior())])) is None


def test_many_samples_and_missing_values_are_left_to_each(table, monkeypatch):
    found = Together.of(networks(table, STRUCTURES["naive Bayes"], ESTIMATIONS))
    assert not found.suits(table.rows(np.zeros(20_000, int)))
    values = table.values.copy()
    values[0, 0] = np.nan
    assert not found.suits(replace(table, values=values))
    monkeypatch.setattr(together, "MOST_NUMBERS", 10)
    assert Together.of(networks(table, STRUCTURES["naive Bayes"], ESTIMATIONS)) is None
