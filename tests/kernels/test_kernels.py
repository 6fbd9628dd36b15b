import threading

import numba
import numpy as np
import pytest

from cgnlearn.kernels.arguments import Members, Scales
from cgnlearn.kernels.elementary import exponentials, logarithms
from cgnlearn.kernels.leverages import gathered_leverages
from cgnlearn.kernels.moments import diagonal_moments
from cgnlearn.kernels.tiles import WIDTH


def leverages(rng, *, size, n_given, n_samples, n_classes=2, n_blocks=3, logs=True, values=None):
    """Arguments of the kernel, and what it should add up."""
    p = size * n_blocks
    values = rng.normal(size=(n_samples, p)) if values is None else values
    columns = np.arange(p).reshape(n_blocks, size)
    origin, per_unit = rng.normal(size=columns.shape), rng.gamma(2.0, size=columns.shape)
    centre = rng.normal(size=(n_classes, n_blocks, size))
    A = rng.normal(size=(n_classes, n_blocks, size, size))
    factor = np.linalg.cholesky(A @ A.swapaxes(-1, -2) + np.eye(size))
    least = rng.uniform(1, 2, n_classes)
    rows = rng.permutation(n_samples)
    sums = np.zeros((2, n_classes, n_samples))
    members, scales = Members(columns, origin, per_unit), Scales(centre, factor)
    gathered_leverages(values, rows, members, scales, least, n_given, logs, sums)
    expected = np.zeros((2, n_classes, n_samples))
    for c in range(n_classes):
        for b in range(n_blocks):
            standard = (values[rows][:, columns[b]] - origin[b]) * per_unit[b] - centre[c, b]
            white = np.linalg.solve(factor[c, b], standard.T)
            for place, stop in enumerate((n_given, size)):
                h = least[c] + (white[:stop] ** 2).sum(axis=0)
                expected[place, c] += np.log(h) if logs else h
    return *sums, expected


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize(("size", "n_given"), [(1, 0), (4, 0), (4, 3), (5, 2), (14, 6)])
def test_leverages_against_dense_solves(rng, size, n_given, logs):
    given, whole, expected = leverages(rng, size=size, n_given=n_given, n_samples=300, logs=logs)
    np.testing.assert_allclose(whole, expected[1], rtol=1e-10)
    if n_given:
        np.testing.assert_allclose(given, expected[0], rtol=1e-10)


@pytest.mark.parametrize("size", [1, 2])
def test_products_do_not_overflow(rng, size):
    """A thousand factors of about 1e60 each: far beyond what a product can hold."""
    values = rng.normal(size=(5, 1000 * size)) * 1e30
    values[3:] /= 1e30  # in between rows whose product is small
    _, whole, expected = leverages(rng, size=size, n_given=0, n_samples=5, n_blocks=1000, values=values)
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(whole, expected[1], rtol=1e-10)


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize("values", [np.asfortranarray, lambda values: values.astype(np.float32)])
def test_single_members_however_the_values_are_stored(rng, logs, values):
    stored = values(rng.normal(size=(300, 200)))
    _, whole, expected = leverages(rng, size=1, n_given=0, n_samples=300, n_blocks=200, logs=logs, values=stored)
    np.testing.assert_allclose(whole, expected[1], rtol=1e-10)


def test_many_threads_may_predict_at_once(rng):
    from cgnlearn import CGNClassifier
    from tests.solvers import COMPILED, joint

    X, y = rng.normal(size=(5000, 4)), rng.integers(0, 2, 5000)
    model = CGNClassifier().fit(X, y)
    expected = joint(model, X, COMPILED)
    found = []
    threads = [threading.Thread(target=lambda: found.append(joint(model, X, COMPILED))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for proba in found:
        np.testing.assert_array_equal(proba, expected)


# ---- moments


def moments_by_hand(values, columns, cell, weights, n_cells, origin):
    """Two passes over each cell, with more digits than the kernel has."""
    n = np.zeros(n_cells)
    mean, scatter = np.zeros((2, n_cells, len(columns)))
    for c in range(n_cells):
        mine = (cell == c) if weights is None else (cell == c) & (weights > 0)
        w = np.ones(mine.sum(), np.longdouble) if weights is None else weights[mine].astype(np.longdouble)
        if mine.any():
            n[c] = w.sum()
            own = values[mine][:, columns].astype(np.longdouble)
            away = own - own[0]
            centre = w @ away / w.sum()
            mean[c] = own[0] - origin + centre
            scatter[c] = w @ (away - centre) ** 2
    return n, mean, scatter


def assert_moments(values, cell, *, columns=None, weights=None, n_cells=3, rtol=1e-12):
    columns = np.arange(values.shape[1]) if columns is None else np.asarray(columns)
    origin = values[0, columns].astype(float)
    expected = moments_by_hand(values, columns, cell, weights, n_cells, origin)
    for stored in (np.asfortranarray(values), values):  # along columns, and along rows
        found = diagonal_moments(stored, columns, cell, weights, n_cells, origin)
        np.testing.assert_allclose(found[0], expected[0], rtol)
        np.testing.assert_allclose(found[1], expected[1], rtol, atol=1e-12 * np.abs(expected[1]).max())
        np.testing.assert_allclose(found[2], expected[2], rtol)
    return found


STORED = {
    "rows": lambda values: values,
    "columns": np.asfortranarray,
    "strided": lambda values: np.repeat(np.repeat(values, 2, axis=1), 2, axis=0)[::2, ::2],
    "backwards": lambda values: values[::-1, ::-1].copy()[::-1, ::-1],
    "single precision": lambda values: values.astype(np.float32),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [None, [1, 2, 3], [5, 0, 3]])
def test_moments_however_the_values_are_stored(rng, stored, weighted, columns):
    values = STORED[stored](rng.normal(size=(1000, 7)))
    weights = rng.integers(0, 3, 1000) / 2 if weighted else None
    assert_moments(values, rng.integers(0, 3, 1000), columns=columns, weights=weights)


def test_moments_of_more_columns_than_fit_a_tile(rng):
    assert_moments(rng.normal(size=(300, 3 * WIDTH + 5)), rng.integers(0, 3, 300))


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_keep_their_digits_at_a_large_mean(rng, weighted):
    values = 1e8 + rng.normal(size=(20_000, 4)) * [1, 1e-3, 1e3, 1]
    assert_moments(values, rng.integers(0, 3, 20_000), weights=rng.random(20_000) if weighted else None, rtol=1e-11)


def test_an_outlier_in_the_first_sample_costs_the_other_cells_no_digits(rng):
    values, cell = rng.normal(size=(20_000, 4)), rng.integers(0, 3, 20_000)
    values[0] = 1e12
    assert_moments(values, cell)


def test_classes_far_apart_keep_their_digits(rng):
    cell = rng.integers(0, 3, 20_000)
    assert_moments(rng.normal(size=(20_000, 4)) + 1e9 * cell[:, None], cell, rtol=1e-10)


def test_cells_without_samples_and_samples_without_weight(rng):
    values, cell = rng.normal(size=(5000, 3)), rng.choice([1, 4, 5], 5000)
    weights = rng.integers(0, 2, 5000).astype(float)
    weights[cell == 4] = 0.0
    values[weights == 0] = 1e300  # of no account, not even as the point from which the others are measured
    values[0], weights[0] = 0.0, 1.0
    n, mean, scatter = assert_moments(values, cell, weights=weights, n_cells=7)
    assert (n[[0, 2, 3, 4, 6]] == 0).all()
    assert (mean[[0, 2, 3, 4, 6]] == 0).all()
    assert (scatter[[0, 2, 3, 4, 6]] == 0).all()


def test_moments_of_almost_as_many_cells_as_rows(rng):
    assert_moments(rng.normal(size=(2000, 3)), rng.integers(0, 1500, 2000), n_cells=1500)


@pytest.mark.parametrize("weighted", [False, True])
def test_constant_columns_have_exactly_no_scatter(rng, weighted):
    cell = rng.integers(0, 3, 30_000)
    of_cell = np.array([0.1, 1e8 / 3, -1e-7])
    values = np.column_stack([np.full(30_000, 0.1), np.full(30_000, 1e8 / 3), of_cell[cell]])
    weights = rng.random(30_000) if weighted else None
    for stored in (values, np.asfortranarray(values)):
        _, mean, scatter = diagonal_moments(stored, np.arange(3), cell, weights, 3, values[0])
        assert (scatter == 0).all()
        assert (mean[:, :2] == 0).all()
        np.testing.assert_array_equal(mean[:, 2], of_cell - values[0, 2])


def test_moments_do_not_depend_on_the_number_of_threads(rng, monkeypatch):
    values, cell = rng.normal(size=(50_000, 5)), rng.integers(0, 3, 50_000)
    found = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", n_threads)
        found.append(diagonal_moments(values, np.arange(5), cell, None, 3, values[0]))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_weight_two_is_the_sample_twice(rng):
    values, cell, weights = rng.normal(size=(9000, 5)), rng.integers(0, 3, 9000), rng.integers(0, 3, 9000)
    once = diagonal_moments(values, np.arange(5), cell, weights.astype(float), 3, values[0])
    again = np.repeat(np.arange(9000), weights)
    twice = diagonal_moments(values[again], np.arange(5), cell[again], None, 3, values[0])
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_exponentials_and_logarithms_of_many_numbers(rng):
    numbers = np.exp(np.concatenate([rng.uniform(-700, 700, 5000), rng.uniform(-1e-6, 1e-6, 500), [0.0, 1e-9, 709.0]]))
    found = numbers.copy()
    logarithms(found, np.empty_like(found))
    np.testing.assert_allclose(found, np.log(numbers), rtol=2e-15)
    powers = np.concatenate([rng.uniform(-700, 700, 5000), [0.0, 1e-300, -1e-300, 0.5, -0.5]])
    found = powers.copy()
    exponentials(found, np.empty_like(found))
    np.testing.assert_allclose(found, np.exp(powers), rtol=2e-13)
    least = np.array([-1e9, -np.inf])
    exponentials(least, np.empty(2))
    assert (least < 1e-300).all()
