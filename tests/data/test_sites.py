import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cgnlearn.data import sites
from cgnlearn.data.sites import RATIOS, SiteCells, SiteShift, site_numbers
from cgnlearn.data.table import read_training


def samples(seed=0, shift=1.0, n_sites=4, n=12, m=3):
    rng = np.random.default_rng(seed)
    of_site = np.repeat(np.arange(n_sites), n)
    y = rng.integers(0, 2, len(of_site))
    y[::n], y[1::n] = 0, 1
    moved = shift * rng.normal(size=(n_sites, m))
    return rng.normal(size=(len(y), m)) + 2 * y[:, None] + moved[of_site] + 100, y, of_site, moved


def cells_of(X, y, of_site, weights=None):
    table, _ = read_training(X, y, weights, "from_dtype")
    numbers, names = site_numbers(of_site, len(y))
    counts = np.zeros((len(names), 2))
    np.add.at(counts, (numbers, y), 1.0)
    return SiteCells.of(table, numbers, names), counts


@pytest.mark.parametrize("ratio", [0.03, 1.0, 10.0])
def test_shifts_given_their_variance_are_those_of_generalised_least_squares(ratio):
    X, y, of_site, _ = samples()
    X = X - 100
    cells, _ = cells_of(X, y, of_site)
    _, shifts, means, variance = sites._given_ratio(cells.n, cells.mean, cells.scatter.sum(axis=(0, 1)), ratio)
    B, C = np.eye(4)[of_site], np.eye(2)[y]
    covariance = np.eye(len(y)) + ratio * B @ B.T
    inverse = np.linalg.inv(covariance)
    expected = np.linalg.solve(C.T @ inverse @ C, C.T @ inverse @ X)
    residual = X - C @ expected
    np.testing.assert_allclose(means, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(shifts, ratio * B.T @ inverse @ residual, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        variance, np.einsum("nm,nk,km->m", residual, inverse, residual) / (len(y) - 2), rtol=1e-6
    )


def test_marginal_likelihoods_equal_integrals_over_class_means_and_variance():
    X, y, of_site, _ = samples(n=5, n_sites=3, m=1)
    X = X - 100
    cells, _ = cells_of(X, y, of_site)
    within = cells.scatter.sum(axis=(0, 1))
    found = [float(sites._given_ratio(cells.n, cells.mean, within, float(ratio))[0][0]) for ratio in RATIOS[:6]]
    # Flat class means as very wide normals, and ln σ on a grid.
    B, C = np.eye(3)[of_site], np.eye(2)[y]
    log_sigma = np.linspace(-3, 4, 1401)
    expected = []
    for ratio in RATIOS[:6]:
        base = np.eye(len(y)) + ratio * B @ B.T
        log_density = [multivariate_normal.logpdf(X[:, 0], cov=np.exp(2 * s) * base + 1e6 * C @ C.T) for s in log_sigma]
        expected.append(np.logaddexp.reduce(log_density))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=2e-3)


def test_cells_add_and_give_the_same_shifts():
    X, y, of_site, _ = samples(n_sites=5)
    whole, counts = cells_of(X, y, of_site)
    first = np.arange(len(y)) % 3 == 0
    parts = [cells_of(X[rows], y[rows], of_site[rows])[0] for rows in (first, ~first)]
    total = parts[0] + parts[1]
    assert total.names == whole.names
    for name in ("n", "mean", "scatter"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(SiteShift.of(total, counts).shifts, SiteShift.of(whole, counts).shifts, atol=1e-8)


def test_sites_that_only_one_part_has_are_joined():
    X, y, of_site, _ = samples(n_sites=4)
    parts = [cells_of(X[rows], y[rows], of_site[rows])[0] for rows in (of_site < 2, of_site >= 2)]
    total, whole = parts[0] + parts[1], cells_of(X, y, of_site)[0]
    np.testing.assert_allclose(total.mean, whole.mean)
    with pytest.raises(ValueError, match="other columns or classes"):
        parts[0] + cells_of(X[:, :2], y, of_site)[0]


def test_true_shifts_are_found_and_absent_ones_are_not_invented():
    X, y, of_site, moved = samples(shift=1.5, n_sites=8, n=60, m=6)
    shift = SiteShift.of(*cells_of(X, y, of_site))
    np.testing.assert_allclose(shift.shifts - shift.shifts.mean(axis=0), moved - moved.mean(axis=0), atol=0.5)
    assert (shift.variance_share > 0.4).all()
    X, y, of_site, _ = samples(shift=0.0, n_sites=8, n=60, m=6)
    none = SiteShift.of(*cells_of(X, y, of_site))
    assert np.abs(none.shifts).max() < 0.05
    assert (none.variance_share < 0.05).all()


def test_units_and_origin_do_not_matter():
    X, y, of_site, _ = samples()
    shift, moved = (SiteShift.of(*cells_of(part, y, of_site)) for part in (X, 1e6 + 1e3 * X))
    np.testing.assert_allclose(moved.shifts, 1e3 * shift.shifts, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(moved.weights, shift.weights, atol=1e-6)


def test_missing_values_and_weights_count_by_column():
    X, y, of_site, _ = samples(n=20)
    weights = np.random.default_rng(1).integers(1, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    weighted = SiteShift.of(*cells_of(X, y, of_site, weights))
    np.testing.assert_allclose(
        weighted.shifts, SiteShift.of(*cells_of(X[repeated], y[repeated], of_site[repeated])).shifts, atol=1e-9
    )
    gone = X.copy()
    gone[::4, 0] = np.nan
    kept = np.arange(len(y)) % 4 > 0
    one, other = (cells_of(part, y[rows], of_site[rows])[0] for part, rows in ((gone, slice(None)), (X[kept], kept)))
    np.testing.assert_allclose(one.mean[..., 0], other.mean[..., 0])
    np.testing.assert_allclose(one.scatter[..., 0], other.scatter[..., 0])


def test_a_constant_column_has_no_shift():
    X, y, of_site, _ = samples()
    shift = SiteShift.of(*cells_of(np.column_stack([X, np.full(len(y), 7.0)]), y, of_site))
    assert (shift.shifts[:, -1] == 0).all()
    assert np.isfinite(shift.shifts).all()


def test_confounding_is_the_share_of_a_class_that_sites_tell():
    for counts, expected in (
        ([[10, 10], [20, 20]], 0.0),
        ([[10, 0], [0, 10]], 1.0),
        ([[15, 5], [5, 15]], 0.25),
    ):
        found = SiteShift(("a", "b"), *(np.zeros(1),) * 6, np.array(counts, float)).confounding
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [(["a", None, "b"], "the site of sample 1 is missing"), (["a", "b"], "one entry for each of the 3 samples")],
)
def test_sites_are_checked(given, message):
    with pytest.raises(ValueError, match=message):
        site_numbers(given, 3)
