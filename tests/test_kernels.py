import threading

import numpy as np
import pytest

from cgnlearn.model import kernels


def leverages(rng, *, size, n_given, n_rows, n_classes=2, n_blocks=3, logs=True, values=None):
    """Arguments of the kernel, and what it should add up."""
    p = size * n_blocks
    values = rng.normal(size=(n_rows, p)) if values is None else values
    columns = np.arange(p).reshape(n_blocks, size)
    origin, per_unit = rng.normal(size=columns.shape), rng.gamma(2.0, size=columns.shape)
    centre = rng.normal(size=(n_classes, n_blocks, size))
    A = rng.normal(size=(n_classes, n_blocks, size, size))
    factor = np.linalg.cholesky(A @ A.swapaxes(-1, -2) + np.eye(size))
    least = rng.uniform(1, 2, n_classes)
    rows = rng.permutation(n_rows)
    given, whole = np.zeros((2, n_classes, n_rows))
    kernels.gathered_leverages(
        values, rows, columns, origin, per_unit, 1e140, centre, factor, least, n_given, logs, given, whole
    )
    expected = np.zeros((2, n_classes, n_rows))
    for c in range(n_classes):
        for b in range(n_blocks):
            standard = (values[rows][:, columns[b]] - origin[b]) * per_unit[b] - centre[c, b]
            white = np.linalg.solve(factor[c, b], standard.T)
            for place, stop in enumerate((n_given, size)):
                h = least[c] + (white[:stop] ** 2).sum(axis=0)
                expected[place, c] += np.log(h) if logs else h
    return given, whole, expected


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize(("size", "n_given"), [(1, 0), (4, 0), (4, 3), (5, 2)])
def test_leverages_against_dense_solves(rng, size, n_given, logs):
    given, whole, expected = leverages(rng, size=size, n_given=n_given, n_rows=300, logs=logs)
    np.testing.assert_allclose(whole, expected[1], rtol=1e-10)
    if n_given:
        np.testing.assert_allclose(given, expected[0], rtol=1e-10)


def test_products_do_not_overflow(rng):
    """A thousand factors of about 1e60 each: far beyond what a product can hold."""
    values = rng.normal(size=(5, 1000)) * 1e30
    _, whole, expected = leverages(rng, size=1, n_given=0, n_rows=5, n_blocks=1000, values=values)
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(whole, expected[1], rtol=1e-10)


def test_threads_keep_the_order_and_pass_errors_on():
    assert kernels.in_threads(lambda i: i * i, range(50)) == [i * i for i in range(50)]
    with pytest.raises(ZeroDivisionError):
        kernels.in_threads(lambda i: 1 // i, [1, 0])


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


def test_without_a_place_for_the_cache_a_warning_says_what_to_do(monkeypatch):
    def njit(cache=False, **_):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(kernels.numba, "njit", njit)
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR"):
        assert kernels.compiled(len)([1, 2]) == 2
