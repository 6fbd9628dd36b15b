"""Log odds of terms that are not written out, against the matrix of all terms."""

import numpy as np
import pandas as pd
import pytest

from cgnlearn.data.table import read, read_training
from cgnlearn.data.transforms import Bins
from cgnlearn.logistic.design import LinearOdds
from cgnlearn.logistic.features import Expansion


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("terms", ["linear", "squares", "products", "pairs", "steps"])
def test_log_odds_without_writing_the_terms_out(terms, has_missing, rng):
    n = 700
    frame = pd.DataFrame(rng.gamma(1.0, size=(n, 4)) + 3, columns=list("abcd"))
    frame["e"] = pd.Categorical(rng.choice(list("xyz"), n))
    frame["f"] = pd.Categorical(rng.choice(list("uv"), n))
    frame["d"] = 5.0  # a constant
    if has_missing:
        frame.loc[::7, "b"] = np.nan
        frame.loc[::11, "e"] = np.nan
    y = np.arange(n) % 3
    half = read_training(frame[:350], y[:350])[0]
    table = read(frame, half.schema)  # half of it outside of the ranges of the training samples
    edges = Bins.of(half, 8).edges if terms == "steps" else None
    expansion = Expansion.of(half, terms, edges)
    values = expansion(half).values
    slopes = rng.normal(size=(2, values.shape[1], 3))
    odds = LinearOdds(np.nanmean(values, axis=0), slopes, rng.normal(size=(2, 3)))
    expected = odds.log_odds(expansion, table)
    np.testing.assert_allclose(expansion.log_odds(odds, table), expected, atol=1e-10)
    one = table.rows(np.array([3]))
    np.testing.assert_allclose(expansion.log_odds(odds, one)[:, 0], expected[:, 3], atol=1e-10)


def test_discrete_columns_alone(rng):
    frame = pd.DataFrame({"a": pd.Categorical(list("xyxyx")), "b": pd.Categorical(list("uvvuu"))})
    table = read_training(frame, [0, 1, 0, 1, 0])[0]
    for terms, n_terms in (("linear", 4), ("pairs", 8)):
        expansion = Expansion.of(table, terms)
        odds = LinearOdds(rng.normal(size=n_terms), rng.normal(size=(1, n_terms, 2)), rng.normal(size=(1, 2)))
        np.testing.assert_allclose(expansion.log_odds(odds, table), odds.log_odds(expansion, table), atol=1e-12)
