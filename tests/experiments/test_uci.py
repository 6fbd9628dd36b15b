"""Rows and tables of the UCI experiment, against densities that share no code with the library."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax
from sklearn.model_selection import StratifiedKFold, train_test_split

from cgnlearn import Structure
from cgnlearn.datasets import UCI, load
from cgnlearn.evaluation.run import Unit
from cgnlearn.experiments import published, tables, uci

UNIT = Unit("wine", 1, 2)


@pytest.fixture(scope="module")
def wine_rows():
    wine = load("wine")
    found = uci.fold_rows(wine.data, wine.target, UNIT, 5, 7)
    return wine, [dict(zip(uci.COLUMNS[3:], row, strict=True)) for row in found]


def groups_of(row):
    return [[int(column) for column in group.split()] for group in row["groups"].split("|") if group]


def likeliest_joint(X, y, X_test, groups):
    joint = np.empty((len(X_test), 3))
    for i, label in enumerate(np.unique(y)):
        own = X[y == label]
        joint[:, i] = np.log(len(own) / len(X))
        for group in groups:
            covariance = np.cov(own[:, group].T, bias=True)
            joint[:, i] += stats.multivariate_normal(own[:, group].mean(axis=0), covariance).logpdf(X_test[:, group])
    return joint


def pooled_joint(X, y, X_test, groups):
    """Student t of each group: normal-inverse-Wishart with the prior's mean and scale taken from all rows."""
    joint = np.empty((len(X_test), 3))
    for i, label in enumerate(np.unique(y)):
        own = X[y == label]
        n = len(own)
        joint[:, i] = np.log((n + 0.01) / (len(X) + 0.03))
        for group in groups:
            m0, psi0 = X[:, group].mean(axis=0), np.diag(X[:, group].var(axis=0))
            mean = own[:, group].mean(axis=0)
            gap = mean - m0
            scatter = (own[:, group] - mean).T @ (own[:, group] - mean)
            psi = psi0 + scatter + n / (n + 1) * np.outer(gap, gap)
            # The last of p members in a group has the shape 1.1 + (p - 1) / 2, so that the wishart has 2.2 + p - 1.
            df = 2.2 + n
            scale = psi * (1 + 1 / (n + 1)) / df
            joint[:, i] += stats.multivariate_t((m0 + n * mean) / (n + 1), scale, df).logpdf(X_test[:, group])
    return joint


def test_every_row_is_worth_what_plain_densities_say(wine_rows):
    wine, rows = wine_rows
    X, y = wine.data, wine.target
    train, test = list(StratifiedKFold(5, shuffle=True, random_state=7 + 1).split(X, y))[2]
    fifth, _ = train_test_split(train, train_size=0.2, stratify=y[train], random_state=7 + 1 * 5 + 2)
    true = np.searchsorted(np.unique(y), y[test])
    checked = 0
    for row in rows:
        part = train if row["fraction"] == 1 else fifth
        joint = {"ml": likeliest_joint, "bayes pooled": pooled_joint}.get(row["parameters"])
        assert (row["n_train"], row["n_test"]) == (len(part), len(test))
        if joint is not None and not row["class_alone"]:
            log_proba = log_softmax(joint(X[part], y[part], X[test], groups_of(row)), axis=1)
            assert row["cll"] == pytest.approx(log_proba[np.arange(len(test)), true].sum(), rel=1e-8)
            assert row["correct"] == (log_proba.argmax(axis=1) == true).sum()
            assert row["accuracy"] == row["correct"] / len(test)
            checked += 1
    assert checked == 12


def test_rows_are_one_for_each_fraction_search_and_way_to_the_parameters(wine_rows):
    _, rows = wine_rows
    keys = [(row["fraction"], row["search"], row["parameters"]) for row in rows]
    assert len(set(keys)) == len(keys) == 2 * 3 * 4
    for fraction in uci.FRACTIONS:
        for search in uci.SEARCHES:
            own = [row for row in rows if (row["fraction"], row["search"]) == (fraction, search)]
            # One search serves all: its structure does not depend on how the parameters are learned.
            assert len({row["groups"] for row in own}) == len({row["n_parameters"] for row in own}) == 1
            n_parameters = Structure.jan(groups_of(own[0])).n_parameters(3)
            assert own[0]["n_parameters"] == n_parameters


def test_without_maximum_likelihood_the_class_alone_answers(rng):
    """One class has as many training rows as features are in the structure: too few."""
    X = rng.normal(size=(30, 4))
    y = np.repeat(["a", "b"], [26, 4])
    model, class_alone = uci._maximum_likelihood(Structure.complete(4), X, y)
    assert class_alone
    np.testing.assert_allclose(model.predict_proba(X[:2]), [[26 / 30, 4 / 30]] * 2)
    assert not uci._maximum_likelihood(Structure.naive_bayes(4), X, y)[1]


def synthetic_rows(gain):
    """Rows in which Bayes gains ``gain`` CLL on every set and loses a little accuracy on the first."""
    rng = np.random.default_rng(0)
    for dataset in UCI:
        for fold in range(20):
            for fraction in ("1", "0.2"):
                for search in uci.SEARCHES:
                    base = rng.normal()
                    for parameters in ("ml", *(f"bayes {location}" for location in uci.LOCATIONS)):
                        bayes = parameters != "ml"
                        yield {
                            "dataset": dataset, "repetition": "0", "fold": str(fold), "fraction": fraction,
                            "search": search, "parameters": parameters,
                            "cll": str(base + bayes * (gain + 0.01 * rng.normal())),
                            "accuracy": str(0.8 - 0.1 * (bayes and dataset == UCI[0])),
                            "zeros": str(int(not bayes and dataset == "vehicle")), "class_alone": "0",
                            "groups": "" if dataset == "haberman" else "0 1",
                        }  # fmt: skip


def test_tables_say_what_the_rows_say():
    cells = uci.cells(list(synthetic_rows(0.5)), n_folds=10)
    assert len(cells) == 3 * 2 * 2 * 3 * 9
    for cell in cells:
        expected = "win" if cell.metric == "cll" else "loss" if cell.dataset == UCI[0] else "draw"
        assert cell.comparison.mark == expected
        assert (cell.zeros_ml, cell.zeros_bayes) == ((20, 0) if cell.dataset == "vehicle" else (0, 0))
        assert cell.no_features == (20 if cell.dataset == "haberman" else 0)
        assert len(uci.cell_row(cell)) == len(uci.CELL_COLUMNS)
    lines = tables.win_table(cells, "condensed").splitlines()
    assert lines[2].endswith("| ✓ | ✓ | ✓ | ✗ | ✓ | ✓ | ✗ | ✓ | ✓ | 7/2 |")  # the paper's
    assert lines[3].endswith("| ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | 9/0 |")
    assert lines[-1].endswith("| ✗ | = | = | = | = | = | = | = | = | 0/1 |")
    assert tables.exceptions(cells, "paper") == []
    agreeing = sum(
        word.count("w") for table in published.TABLES.values() for (m, _), (word, _) in table.items() if m == "cll"
    )
    by_test = tables.agreement_table(cells).splitlines()[2]
    shares = [part.strip() for part in by_test.split("|")[2:4]]
    assert sum(int(share.split("/")[0]) for share in shares) == agreeing
    assert tables.uci_page(cells).count("\n| bwGJAN | 1 ") == 1


def test_exceptions_are_named_with_their_p_values():
    cells = uci.cells(list(synthetic_rows(0.0)), n_folds=10)
    assert 20 < len(tables.exceptions(cells, "cell")) <= 27
    text = tables.exception_lines(cells)
    assert "p = " in text
    assert "iris with fwGJAN (draw" in text


def test_a_probability_of_zero_counts_as_the_smallest_double():
    log_joint = np.array([[-1.0, -2.0], [-800.0, -3.0], [0.0, -744.0], [-5.0, -4.0]])
    true = np.array([0, 0, 1, 1])
    found = uci.fold_scores(log_joint, true)
    p = np.exp(log_softmax(log_joint, axis=1))[np.arange(4), true]
    assert (p == 0).tolist() == [False, True, False, False]
    assert found.zeros == 1
    assert found.correct == 2
    p[1] = 5e-324
    assert found.cll == pytest.approx(log_softmax(log_joint, axis=1)[[0, 2, 3], [0, 1, 1]].sum() + np.log(p[1]))
