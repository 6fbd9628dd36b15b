"""Compiled loops over the terms of log densities, of which cumulants are sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.compilation import compiled


@compiled
def add_regressions(
    residual: Any, extra: Any, shape: Any, scale: Any, chance: Any, sharing: Any, found: Any, covariance: Any
) -> None:
    """Add the cumulants of regressions over features to ``found`` (networks, 3, classes, samples).

    ``residual`` and ``extra``, the leverage less 1, are (networks, classes, features, samples); ``shape`` (networks,
    classes, features); ``scale`` the cumulants of the scale (3, networks, classes, features); ``chance`` those of
    features to depend on the class (networks, features), whose share is added to the lower triangle of ``covariance``
    (networks, classes, classes, samples); ``sharing`` (networks,), which third cumulants are reduced by.
    """
    n_networks, n_classes, n_features, n = residual.shape
    means = np.empty((n_classes, n))
    middle = np.empty(n)
    for network in range(n_networks):
        for feature in range(n_features):
            share = chance[network, feature]
            third_share = share * (1.0 - sharing[network])
            for c in range(n_classes):
                rho = shape[network, c, feature]
                of_mean, of_variance, of_third = (
                    scale[0, network, c, feature],
                    scale[1, network, c, feature],
                    scale[2, network, c, feature],
                )
                own, more = residual[network, c, feature], extra[network, c, feature]
                sums = found[network, :, c]
                for s in range(n):
                    excess, beyond = own[s] * own[s], more[s]
                    both, square, weighted = beyond + excess, beyond * beyond, rho * excess
                    mean = of_mean - beyond / 2 - weighted
                    variance = of_variance + square / 2 - excess + weighted * (both + beyond)
                    third = of_third - beyond * square + excess * 1.5 * (both + beyond)
                    third -= weighted * (6 * beyond * both + 2 * excess * excess)
                    means[c, s] = mean
                    sums[0, s] += share * mean
                    sums[1, s] += share * variance
                    sums[2, s] += third_share * third
            if share * (1.0 - share) == 0.0:
                continue
            middle[:] = 0.0
            for c in range(n_classes):
                for s in range(n):
                    middle[s] += means[c, s] / n_classes
            for c in range(n_classes):
                for d in range(c + 1):
                    for s in range(n):
                        apart = (means[c, s] - middle[s]) * (means[d, s] - middle[s])
                        covariance[network, c, d, s] += share * (1.0 - share) * apart


@compiled
def add_shared_covariance(
    residual: Any,
    extra: Any,
    least: Any,
    deviation: Any,
    shape: Any,
    apart: Any,
    correlation: Any,
    chance: Any,
    covariance: Any,
) -> None:
    """Add the covariance of regressions that two classes share, over features, to the lower triangle of ``covariance``.

    ``least`` is ``extra`` at the centre of the class, and ``deviation`` that of the scale's log (networks, classes,
    features); ``apart`` the squared distances between centres (networks, classes, features, classes), and
    ``correlation`` that of two classes (networks, classes, classes); the others are as for `add_regressions`.
    """
    n_networks, n_classes, n_features, n = residual.shape
    for network in range(n_networks):
        for c in range(1, n_classes):
            for d in range(c):
                correlated = correlation[network, c, d]
                if correlated == 0.0:
                    continue
                found = covariance[network, c, d]
                for feature in range(n_features):
                    rho = np.sqrt(shape[network, c, feature] * shape[network, d, feature])
                    scales = deviation[network, c, feature] * deviation[network, d, feature]
                    between = apart[network, c, feature, d]
                    share = chance[network, feature] * correlated
                    one, other = residual[network, c, feature], residual[network, d, feature]
                    of_one, of_other = extra[network, c, feature], extra[network, d, feature]
                    least_of_one, least_of_other = least[network, c, feature], least[network, d, feature]
                    for s in range(n):
                        first, second = one[s] * one[s], other[s] * other[s]
                        total = scales - (first + second) / 2 + rho * first * second
                        # Squared lengths of the parents' distances to their centres.
                        length = max(of_one[s] - least_of_one, 0.0)
                        length_of_other = max(of_other[s] - least_of_other, 0.0)
                        most = np.sqrt(length * length_of_other)
                        product = min(max((length + length_of_other - between) / 2, -most), most)
                        total += product * (2 * rho * one[s] * other[s] + correlated * product / 2)
                        found[s] += share * total
