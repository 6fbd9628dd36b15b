"""Accuracy of integrating out missing inner features of bands and TANs, compared with Monte Carlo over the posterior.

For a group, and by maximum likelihood for any structure, missing values are integrated out exactly. A Bayesian band or
tree with missing inner nodes has no closed form: here parameters are drawn from the posterior, and the exact densities
of the observed values are averaged over the draws. ``python bench/missing_integration.py`` prints the table;
``--write`` also puts it into docs/bench-missing-integration.md.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import train_test_split

from cgnlearn import Band, CGNClassifier
from measuring import parser, publish, versions

DRAWS = 4000
SAMPLES = 40  # whose densities are compared
COLUMNS = 13  # at most, as every draw has a covariance matrix


def drawn_gaussians(network, label, rng):
    """Means (draws, columns) and covariances of networks of a class with parameters drawn from the posterior."""
    nodes = [network.integration.nodes[column] for column in network.structure.nodes]
    m = len(nodes)
    place = {node.column: i for i, node in enumerate(nodes)}
    mean, covariance = np.zeros((DRAWS, m)), np.zeros((DRAWS, m, m))
    for i, node in enumerate(nodes):
        posterior, n_parents = node.posterior, len(node.given)
        members = np.array([*node.given, node.own])
        scale = posterior.scale[0, label][posterior.pairs.place(members[:, None], members)]
        centre, own = posterior.centre[0, label][members], scale[-1, -1]
        slopes, before = np.zeros(0), [place[column] for column in node.parents]
        if n_parents:
            slopes = np.linalg.solve(scale[:-1, :-1], scale[:-1, -1])
            own = own - slopes @ scale[:-1, -1]
        variance = own / 2 / rng.gamma(posterior.shape[0, label] + n_parents / 2, size=DRAWS)
        at_centre = centre[-1] + np.sqrt(variance / posterior.strength[0, label]) * rng.normal(size=DRAWS)
        noise = np.linalg.solve(np.linalg.cholesky(scale[:-1, :-1]).T, rng.normal(size=(n_parents, DRAWS))).T
        slopes = slopes + np.sqrt(variance)[:, None] * noise
        mean[:, i] = at_centre + (slopes * (mean[:, before] - centre[:-1])).sum(axis=1)
        across = np.einsum("dp,dpa->da", slopes, covariance[:, before])
        covariance[:, i], covariance[:, :, i] = across, across
        covariance[:, i, i] = variance + (across[:, before] * slopes).sum(axis=1)
    columns = [node.column for node in nodes]
    units = np.array([node.units for node in nodes])
    return mean, covariance, columns, units


def by_monte_carlo(network, H, rng):
    """ln p(observed values | class) and its standard error: (samples, classes)."""
    n_classes = network.statistics.schema.n_classes
    found, error = np.zeros((2, len(H), n_classes))
    for label in range(n_classes):
        mean, covariance, columns, units = drawn_gaussians(network, label, rng)
        for row, x in enumerate(H[:, columns]):
            seen = np.flatnonzero(~np.isnan(x))
            factor = np.linalg.cholesky(covariance[:, seen[:, None], seen])
            away = (x[seen] - units[seen, 0]) / units[seen, 1] - mean[:, seen]
            white = np.linalg.solve(factor, away[..., None])[..., 0]
            log_det = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1) + np.log(units[seen, 1]).sum()
            logs = -0.5 * np.square(white).sum(axis=1) - log_det - len(seen) / 2 * np.log(2 * np.pi)
            found[row, label] = logsumexp(logs) - np.log(DRAWS)
            error[row, label] = np.std(np.exp(logs - found[row, label])) / np.sqrt(DRAWS)
    return found, error


def rows_of_table():
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        X = X[:, :COLUMNS]
        for n in (40, len(y) // 2):
            train, test, of_train, of_test = train_test_split(X, y, train_size=n, stratify=y, random_state=0)
            test, of_test = test[:SAMPLES], of_test[:SAMPLES]
            for name, structure in (("TAN", "tan"), ("2-BAND", Band(2)), ("4-BAND", Band(4))):
                model = CGNClassifier(structure).fit(train, of_train)
                for share in (0.1, 0.3):
                    rng = np.random.default_rng(0)
                    H = np.where(rng.random(test.shape) < share, np.nan, test)
                    ours = model._model.log_likelihood(model._table(H))
                    theirs, error = by_monte_carlo(model._model, H, rng)
                    losses = []
                    for joint in (ours, theirs):
                        log_proba = joint + model.class_log_prior_
                        log_proba = log_proba - logsumexp(log_proba, axis=1, keepdims=True)
                        losses.append(-log_proba[np.arange(len(H)), of_test].mean())
                    own = np.arange(len(H)), of_test
                    gap = np.median(np.abs(ours - theirs)[own])
                    yield load.__name__[5:], n, name, share, gap, np.median(error[own]), *losses


def report():
    lines = [
        "# Missing inner features of bands and TANs, compared with Monte Carlo over the posterior",
        "",
        f"Made by `python bench/missing_integration.py --write`: {DRAWS} draws, {SAMPLES} test samples, at most "
        f"{COLUMNS} columns, cells removed at random. Distance: the median distance between the log densities of "
        "samples in their own class, in nats; standard error: the median one of Monte Carlo; then both log losses.",
        versions(),
        "",
        "| data set | samples | structure | missing | distance | standard error | log loss | by Monte Carlo |",
        "|---|---:|---|---:|---:|---:|---:|---:|",
    ]
    for name, n, structure, share, gap, error, ours, theirs in rows_of_table():
        lines.append(
            f"| {name} | {n} | {structure} | {share:.0%} | {gap:.4f} | {error:.4f} | {ours:.4f} | {theirs:.4f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-missing-integration.md").parse_args()
    publish(report(), "bench-missing-integration.md", write=arguments.write)
