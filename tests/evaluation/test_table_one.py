"""Table 1, beside pandas."""

import numpy as np
import pandas as pd

from cgnlearn.evaluation.table_one import table_one


def test_medians_counts_and_missing_values_are_those_of_pandas(rng):
    n = 80
    true = rng.integers(2, size=n)
    X = pd.DataFrame({"a": rng.normal(1e6, 1e5, n), "level": pd.Categorical(rng.choice(["x", "y"], n)), "b": 0.5})
    X.loc[::9, "a"] = np.nan
    X.loc[:3, "level"] = None
    rows = table_one(X, true, 2)
    assert [(row.name, row.what) for row in rows][::3] == [("a", "median (quartiles)"), ("b", "median (quartiles)")]
    of_a = [X["a"][true == code] for code in (0, 1)]
    assert rows[0].n_missing == X["a"].isna().sum()
    np.testing.assert_allclose(rows[0].missing_by_class, [own.isna().mean() for own in of_a])
    for own, cell in zip(of_a, rows[0].by_class, strict=True):
        assert float(cell.split(" ")[0].replace(",", "")) == float(f"{own.median():.4g}")
    for row in rows[1:3]:
        counts = [(X["level"][true == code] == row.what).sum() for code in (0, 1)]
        assert [int(cell.split(" ")[0]) for cell in row.by_class] == counts
    assert rows[1].n_missing == 4
    assert rows[2].n_missing == 0
    assert rows[3].overall == "0.5 (0.5 to 0.5)"


def test_of_many_levels_the_rare_are_one_line_and_empty_columns_are_named():
    X = pd.DataFrame({"many": [f"l{i}" for i in range(12)] + ["l0"] * 8, "none": pd.Categorical([None] * 20)})
    rows = table_one(X, np.zeros(20, int), 1)
    assert [row.what for row in rows] == ["l0", "l1", "l10", "l11", "l2", "l3", "6 others", "no values"]
    assert rows[6].overall == "6 (30%)"
    assert rows[7].n_missing == 20
    assert [row.name for row in table_one(X, np.zeros(20, int), 1, columns=[1])] == ["none"]
