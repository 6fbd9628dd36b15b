import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from cgnlearn import Band, Box, CGNClassifier, Prior, SampleNotAcceptableError
from cgnlearn.evaluation.run import Unit
from cgnlearn.experiments import figures, ovarian, tables

K_MAX = 6


@pytest.fixture(scope="module")
def fold():
    data = ovarian.simulated(quick=True)
    found = ovarian.fold_rows(data.data, data.target, Unit("simulated", 0, 1), K_MAX, 5, 3)
    rows = [dict(zip(ovarian.COLUMNS[3:], row, strict=True)) for row in found]
    train, test = list(StratifiedKFold(5, shuffle=True, random_state=3).split(data.data, data.target))[1]
    return data, rows, train, test


def cll_of(model, data, train, test):
    X, y = data.data, data.target
    log_proba = model.fit(X[train], y[train]).predict_log_proba(X[test])
    return log_proba[np.arange(len(test)), np.searchsorted(model.classes_, y[test])].sum()


def test_every_row_is_worth_what_one_fit_after_the_other_gives(fold):
    data, rows, train, test = fold
    hows = {
        "ml": {"estimation": "ml"},
        "bayes paper": {"prior": Prior(location="paper")},
        "bayes pooled": {"prior": Prior(location="pooled")},
        "shared": {"sharing": 1.0},
    }
    assert len(rows) == K_MAX * 9 + 2
    for row in rows:
        if row["parameters"] in hows:
            shape = {"band": Band, "box": Box}[row["structure"]](row["k"])
            model = CGNClassifier(shape, **hows[row["parameters"]])
        elif row["parameters"] in (ovarian.TEMPERED, ovarian.CHOSEN):
            model = CGNClassifier(Band(row["k"]), sharing=1.0, likelihood_power=row["temperature"])
        else:
            continue
        assert row["cll"] == pytest.approx(cll_of(model, data, train, test), rel=1e-6)


def test_the_likelihood_power_is_the_one_with_the_best_inner_likelihood(fold):
    data, rows, train, _ = fold
    X, y = data.data[train], data.target[train]
    tempered = {row["k"]: row["temperature"] for row in rows if row["parameters"] == ovarian.TEMPERED}

    def score(k, likelihood_power):
        model = CGNClassifier(Band(k), sharing=1.0, likelihood_power=likelihood_power).fit(X, y)
        return model.leave_one_out_log_proba(X, y)[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()

    for k in (1, K_MAX):
        found = score(k, tempered[k])
        # The grid has twenty likelihood powers to the decade; the likelihood has one peak.
        for factor in (10**0.05, 10**-0.05, 2, 0.5):
            if factor * tempered[k] <= 1:
                assert score(k, factor * tempered[k]) <= found + 1e-9
    (chosen,) = (row for row in rows if row["parameters"] == ovarian.CHOSEN)
    best = {k: score(k, likelihood_power) for k, likelihood_power in tempered.items()}
    assert chosen["k"] == max(best, key=best.get)


def test_the_average_lies_between_its_members(fold):
    _, rows, *_ = fold
    of_k = [row["cll"] for row in rows if row["parameters"] == ovarian.TEMPERED]
    (averaged,) = (row["cll"] for row in rows if row["parameters"] == ovarian.AVERAGED)
    # Every row's log of an average exceeds the least of the members'; their sum is below the sum of the largest.
    assert min(of_k) - 1e-9 <= averaged
    assert averaged <= 0


def test_where_maximum_likelihood_does_not_exist_the_class_alone_answers(rng):
    y = np.repeat(["a", "b"], [12, 6])
    X = rng.normal(size=(18, 9)) + (y == "a")[:, None]
    shapes = {"band": Band, "box": Box}
    for path in ovarian._paths(X, y, X[:4], 9, {"estimation": "ml"}):
        existing = []
        for k in range(1, 10):
            try:
                model = CGNClassifier(shapes[path.family](k), estimation="ml").fit(X, y)
                expected = model.predict_joint_log_proba(X[:4])
                existing.append(k)
            except SampleNotAcceptableError:
                expected = np.log([[12 / 18, 6 / 18]] * 4)
            np.testing.assert_allclose(path.log_joint[k - 1], expected, rtol=1e-7)
        assert existing == list(range(1, path.n_exist + 1))
        assert 1 < path.n_exist < 9


def test_raw_spectra_become_the_means_of_bins_of_one_mz(tmp_path):
    for label, height in (("Cancer", 5.0), ("Normal", 1.0)):
        (tmp_path / label).mkdir()
        for i in range(2):
            mz = np.arange(700.25, 12_000, 0.5)
            mz = mz[(mz < 800) | (mz >= 802)]  # two bins without a reading
            intensity = height + i + np.where(mz % 1 < 0.5, 0.25, -0.25)
            lines = [f"{a:.2f},{b:.3f}" if i else f"{a:.2f}\t{b:.3f}" for a, b in zip(mz, intensity, strict=True)]
            header = ["M/Z,Intensity"] if i else []
            lines = [*header, *lines] if i else ["100.0 99.0", *lines]
            (tmp_path / label / f"s{i}.txt").write_text("\n".join(lines) + "\n")
    with pytest.warns(UserWarning, match="different m/z axes"):
        found = ovarian.read_raw(tmp_path)
    assert found.data.shape == (4, 11_300)
    expected = np.repeat([[5.0], [6.0], [1.0], [2.0]], 11_300, axis=1)
    expected[:, 100:102] += np.interp([800.5, 801.5], [799.75, 802.25], [-0.25, 0.25])
    np.testing.assert_allclose(found.data, expected)
    assert found.target.tolist() == ["Cancer", "Cancer", "Normal", "Normal"]


def test_folders_that_hold_no_spectra_are_refused(tmp_path):
    with pytest.raises(ValueError, match="one folder for each class"):
        ovarian.read_raw(tmp_path)
    for label in "ab":
        (tmp_path / label).mkdir()
        (tmp_path / label / "s.txt").write_text("1 2\n3 x\n")
    with pytest.raises(ValueError, match="instead of a number"):
        ovarian.read_raw(tmp_path)
    for label in "ab":
        (tmp_path / label / "s.txt").write_text("1 2\n3 4\n")
    with pytest.raises(ValueError, match="no reading between"):
        ovarian.read_raw(tmp_path)


def test_points_are_means_over_all_spectra(fold, tmp_path):
    _, rows, *_ = fold
    texts = [{name: str(value) for name, value in row.items()} | {"repetition": "0"} for row in rows]
    doubled = texts + [text | {"repetition": "1", "cll": str(2 * float(text["cll"]))} for text in texts]
    points = ovarian.points(doubled, n_features=120, n_classes=2)
    for point in points:
        (row,) = (
            r
            for r in rows
            if (r["structure"], r["parameters"]) == (point.structure, point.parameters)
            and (not point.k or r["k"] == point.k)
        )
        assert point.accuracy == pytest.approx(row["accuracy"])
        assert point.cll == pytest.approx(1.5 * row["cll"] / row["n_test"])
        assert point.cll_sd == pytest.approx(abs(row["cll"]) / row["n_test"] / np.sqrt(2))
    model = CGNClassifier(Band(3)).fit(np.random.default_rng(0).normal(size=(9, 120)), [0, 0, 0, 0, 1, 1, 1, 1, 1])
    assert {p.n_parameters for p in points if (p.structure, p.k, p.parameters) == ("band", 3, "ml")} == {
        model.n_parameters_
    }
    written = figures.draw(points, tmp_path)
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in figures.draw(points, tmp_path)] == before
    assert "BAND ml" in tables.ovarian_page(points, "Spectra")
