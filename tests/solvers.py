"""Solvers to choose from, where a test wants both ways or one of them."""

from functools import partial

from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.lattice import Lattice
from cgnlearn.networks.network import Network

PLAIN = partial(Blocks.of, compiled_from=float("inf"))
COMPILED = partial(Blocks.of, compiled_from=0)


def lattice_where_it_can(partition, posterior, estimation):
    """The lattice for every chain, however short."""
    if partition.k is None or partition.k < 2:
        return PLAIN(partition, posterior, estimation)
    return Lattice(partition, posterior, estimation)


SOLVERS = {"plain": PLAIN, "compiled": COMPILED, "lattice": lattice_where_it_can}


def network(model, solver):
    """The network of a fitted classifier, by a solver of one's own choosing."""
    return Network.of(model._model.structure, model.statistics_, model._estimation, solver)


def joint(model, X, solver):
    """Its `predict_joint_log_proba`."""
    found = network(model, solver)
    return model.likelihood_power_ * found.log_likelihood(model._table(X)) + found.class_log_prior
