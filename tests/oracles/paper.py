"""The paper's propositions as they are printed (slips mended): raw sums, explicit inverses, one node at a time.

Slow, and unsafe far from the origin: an oracle for well-scaled data that shares no code with the package.
"""

from itertools import product

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t


def log_joint(
    X,
    y,
    X_test,
    parents,
    discrete=(),
    levels=None,
    *,
    estimation="bayes",
    location="pooled",
    sharing=0.0,
    weights=None,
    dirichlet=0.01,
    strength=1.0,
    shape=1.1,
    scale=None,
):
    """Log p(class, x) of every test row; classes are 0, 1, …; ``location`` may be an array, as may ``scale``."""
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    classes = range(int(max(y)) + 1)
    alpha = dirichlet if estimation == "bayes" else 0.0
    n_class = np.array([weights[y == c].sum() for c in classes])
    joint = np.tile(np.log((n_class + alpha) / (n_class.sum() + alpha * len(n_class))), (len(X_test), 1))
    for child, listed in parents.items():
        pd = [p for p in listed if p in discrete]
        pc = [p for p in listed if p not in discrete]
        for cell in product(*(range(levels[p]) for p in pd)):
            inside = np.all(X[:, pd] == cell, axis=1) if pd else np.ones(len(X), bool)
            rows = np.flatnonzero(np.all(X_test[:, pd] == cell, axis=1)) if pd else np.arange(len(X_test))
            for c in classes:
                for row in rows:
                    if child in discrete:
                        counts = np.array(
                            [weights[inside & (y == c) & (X[:, child] == v)].sum() for v in range(levels[child])]
                        )
                        share = (counts + alpha) / (counts.sum() + alpha * levels[child])
                        joint[row, c] += np.log(share[int(X_test[row, child])])
                    elif estimation == "ml":
                        joint[row, c] += _ml(X, y, weights, inside, c, classes, child, pc, sharing, X_test[row])
                    else:
                        joint[row, c] += _bayes(
                            X, y, weights, inside, c, classes, child, pc, sharing, X_test[row],
                            location, strength, shape, scale,
                        )  # fmt: skip
    return joint


def _moments(X, weights, chosen, columns):
    """n, mean and ssd of the chosen rows, from raw sums as in the paper's notation table."""
    w, Y = weights[chosen], X[np.ix_(chosen, columns)]
    n, s, ss = w.sum(), w @ Y, (w[:, None] * Y).T @ Y
    return n, s / n, ss - np.outer(s, s) / n


def _ml(X, y, weights, inside, c, classes, child, pc, sharing, x):
    """Proposition 1, with the other classes' sums of squares counted ``sharing`` times."""
    columns = [*pc, child]
    n, M = 0.0, np.zeros((len(columns),) * 2)
    for k in classes:
        n_k, _, ssd = _moments(X, weights, np.flatnonzero(inside & (y == k)), columns)
        factor = 1.0 if k == c else sharing
        n, M = n + factor * n_k, M + factor * ssd
    M /= n
    _, mean, _ = _moments(X, weights, np.flatnonzero(inside & (y == c)), columns)
    r = M[-1, :-1] @ np.linalg.inv(M[:-1, :-1])
    beta = np.concatenate([[mean[-1] - r @ mean[:-1]], r])
    variance = M[-1, -1] - r @ M[:-1, -1]
    return norm.logpdf(x[child], beta @ np.concatenate([[1.0], x[pc]]), np.sqrt(variance))


def _bayes(X, y, weights, inside, c, classes, child, pc, sharing, x, location, strength, shape, scale):
    """Propositions 2 and 3: the normal inverse gamma of one node in one cell.

    With sharing the other classes' rows enter with weight ``sharing`` as deviations from their own expectation,
    which is how model.md section 7 defines it; that is done in the centred form, so only w = 0 is the paper's letter.
    """
    columns = [*pc, child]
    _, mean_all, ssd_all = _moments(X, weights, np.arange(len(X)), columns)
    variance_all = np.diag(ssd_all) / weights.sum() if scale is None else np.asarray(scale)[columns]
    own = np.flatnonzero(inside & (y == c) & (weights > 0))
    mean_cell = _moments(X, weights, own, columns)[1] if len(own) else mean_all
    if location == "pooled":
        m_pc, m_child = mean_all[:-1], mean_all[-1]
    elif location == "paper":
        m_pc, m_child = mean_cell[:-1], mean_all[-1]
    elif location == "cell":
        m_pc, m_child = mean_cell[:-1], mean_cell[-1]
    else:
        m_pc, m_child = np.asarray(location)[pc], np.asarray(location)[child]
    K_inv = np.diag(1 / variance_all[:-1])
    V = np.block([[np.array([[1 / strength + m_pc @ K_inv @ m_pc]]), -(m_pc @ K_inv)[None]],
                  [-(K_inv @ m_pc)[:, None], K_inv]])  # fmt: skip
    mu = np.concatenate([[m_child], np.zeros(len(pc))])
    rho, phi = shape + len(pc) / 2, variance_all[-1] / 2
    Z = np.column_stack([np.ones(len(own)), X[np.ix_(own, pc)]])
    w, target = weights[own], X[own, child]
    V_inv = np.linalg.inv(V)
    V_new = np.linalg.inv(V_inv + (w[:, None] * Z).T @ Z)
    mu_new = V_new @ (V_inv @ mu + Z.T @ (w * target))
    rho_new = rho + w.sum() / 2
    phi_new = phi + (mu @ V_inv @ mu + w @ target**2 - mu_new @ np.linalg.inv(V_new) @ mu_new) / 2
    z = np.concatenate([[1.0], x[pc]])
    if sharing == 0:
        scale2 = phi_new / rho_new * (1 + z @ V_new @ z)
        return student_t.logpdf(x[child], 2 * rho_new, z @ mu_new, np.sqrt(scale2))
    return _shared_bayes(
        X, y, weights, inside, c, classes, child, pc, sharing, x, location, strength, rho, variance_all, mean_all
    )


def _shared_bayes(
    X, y, weights, inside, c, classes, child, pc, sharing, x, location, strength, rho, variance_all, mean_all
):
    """Section 7 of the model, with inverses: what each class adds to the scale, summed as far as it is shared."""
    columns = [*pc, child]
    scale = np.diag(variance_all)
    own_extra, n_total = 0.0, 0.0
    for k in classes:
        rows = np.flatnonzero(inside & (y == k) & (weights > 0))
        if not len(rows):
            continue
        n, mean, ssd = _moments(X, weights, rows, columns)
        factor = 1.0 if k == c else sharing
        off = mean - (mean_all if isinstance(location, str) else np.asarray(location)[columns])
        e = strength * n / (strength + n) * np.outer(off, off)
        scale = scale + factor * (ssd + (e if location not in ("paper", "cell") else 0.0))
        if location == "paper":
            own_extra += factor * e[-1, -1]
        n_total += factor * n
        if k == c:
            n_own, mean_own = n, mean
    centre = mean_own
    if location not in ("paper", "cell"):
        m0 = mean_all if isinstance(location, str) else np.asarray(location)[columns]
        centre = (strength * m0 + n_own * mean_own) / (strength + n_own)
    m_child = centre[-1]
    if location == "paper":
        m_child = (strength * mean_all[-1] + n_own * mean_own[-1]) / (strength + n_own)
    P_inv = np.linalg.inv(scale[:-1, :-1])
    slope = scale[-1, :-1] @ P_inv
    F = scale[-1, -1] - slope @ scale[:-1, -1] + own_extra
    d = x[pc] - centre[:-1]
    h = 1 + 1 / (strength + n_own) + d @ P_inv @ d
    rho_new = rho + n_total / 2
    return student_t.logpdf(x[child], 2 * rho_new, m_child + slope @ d, np.sqrt(F * h / (2 * rho_new)))
