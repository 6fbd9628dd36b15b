"""Networks together say how certain they are as each says alone."""

import numpy as np
import pytest

from cgnlearn.data.table import read_training
from cgnlearn.networks.estimation import Bayes
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.stacked import grouped
from cgnlearn.networks.statistics import collect
from cgnlearn.networks.structure import Structure

PARENTS = {
    "naive Bayes": {0: (), 1: (), 2: (), 3: ()},
    "TAN": {3: (), 0: (), 1: (0, 3), 2: (1,)},
    "complete": {3: (), 0: (3,), 1: (3, 0), 2: (3, 0, 1)},
}


def samples(with_missing, rng):
    X = rng.normal(size=(40, 4))
    X[:, 3] = X[:, 3] > 0
    X[:, :3] += X[:, 3:]
    if with_missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, np.arange(40) % 3


def networks_of(table, parents, sharings=(0.0, 0.4, 1.0)):
    structure = Structure.from_parents(parents)
    statistics = collect(table, structure.as_families(table.schema))
    prior = Prior().resolved(table.schema)
    return [Network.of(structure, statistics, Bayes(prior, sharing=sharing)) for sharing in sharings]


@pytest.mark.parametrize("with_missing", [False, True])
@pytest.mark.parametrize("parents", PARENTS.values(), ids=PARENTS)
def test_networks_together_are_as_certain_as_each_alone(rng, parents, with_missing):
    X, y = samples(with_missing, rng)
    table, _ = read_training(X, y, None, [3])
    networks = networks_of(table, parents)
    (together,) = grouped(networks)
    known = np.stack([network.log_likelihood(table) for network in networks])
    for found, network in zip(together.log_densities(table, known), networks, strict=True):
        alone = network.log_densities(table)
        for part in ("mean", "covariance", "third"):
            np.testing.assert_allclose(getattr(found, part), getattr(alone, part), rtol=1e-9, atol=1e-12)


def test_chances_of_inclusion_are_those_of_each_network(rng):
    X, y = samples(True, rng)
    table, _ = read_training(X, y, None, [3])
    networks, chances = networks_of(table, PARENTS["naive Bayes"]), rng.random((3, 4))
    (together,) = grouped(networks, chances)
    for i, found in enumerate(together.log_densities(table)):
        (alone,) = grouped(networks[i : i + 1], chances[i : i + 1])
        expected = alone.log_densities(table)[0]
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9)
        np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-9, atol=1e-12)


def test_networks_of_other_structures_or_many_numbers_stay_alone(rng, monkeypatch):
    X, y = samples(False, rng)
    table, _ = read_training(X, y, None, [3])
    naive, tan = (networks_of(table, PARENTS[name], (0.0,))[0] for name in ("naive Bayes", "TAN"))
    assert len(grouped([naive, tan])) == 2
    assert len(grouped(networks_of(table, PARENTS["TAN"]))) == 1
    monkeypatch.setattr("cgnlearn.networks.stacked.MOST_STACKED", 3)
    assert len(grouped(networks_of(table, PARENTS["TAN"]))) == 3
