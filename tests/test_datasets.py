import numpy as np
import pytest

from cgnlearn.datasets import make_balance_scale, make_waveform


def test_waveform_has_the_recipe_s_moments():
    X, y = make_waveform(60_000, random_state=0)
    np.testing.assert_allclose(np.bincount(y) / len(y), 1 / 3, atol=0.01)
    points = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - np.abs(points - middle), 0) for middle in (11, 15, 7))
    for label, (a, b) in enumerate([(h1, h2), (h1, h3), (h2, h3)]):
        np.testing.assert_allclose(X[y == label].mean(axis=0), (a + b) / 2, atol=0.06)
        np.testing.assert_allclose(X[y == label].var(axis=0), 1 + (a - b) ** 2 / 12, atol=0.15)
    np.testing.assert_array_equal(make_waveform(5, 3)[0], make_waveform(5, 3)[0])
    with pytest.raises(ValueError, match="n_samples"):
        make_waveform(0)


def test_balance_scale_is_all_rows_once():
    X, y = make_balance_scale()
    assert len(np.unique(X, axis=0)) == len(X) == 625
    assert set(X.ravel()) == {1, 2, 3, 4, 5}
    assert ((X[:, 0] * X[:, 1] > X[:, 2] * X[:, 3]) == (y == "L")).all()


@pytest.mark.shared
def test_balance_scale_is_the_uci_set(shared):
    lines = (shared / "data" / "uci" / "balance-scale.csv").read_text().splitlines()[1:]
    theirs = sorted(tuple(line.replace('"', "").split(",")) for line in lines)
    X, y = make_balance_scale()
    ours = sorted((*(f"{int(v)}" for v in row), str(label)) for row, label in zip(X, y, strict=True))
    assert [tuple(f"{float(v):g}" for v in row[:-1]) + row[-1:] for row in theirs] == ours
