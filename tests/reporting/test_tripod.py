import json
import re

import numpy as np
import pandas as pd
import pytest

from cgnlearn.evaluation.table_one import table_one
from cgnlearn.reporting.tripod import SECTIONS, escaped, tripod_text
from tests.cli.running import works

NUMBERS = [item.number for items in SECTIONS.values() for item in items]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a column of names that Markdown could take for its own, and a model."""
    folder = tmp_path_factory.mktemp("tripod")
    rng = np.random.default_rng(3)
    for name, n in (("here", 150), ("there", 120)):
        ill = rng.random(n) < 0.4
        frame = pd.DataFrame({"site": np.where(np.arange(n) % 3, "A", "B|*x*")})
        frame["stage"] = np.where(rng.random(n) < 0.3 + 0.4 * ill, "late", "early")
        frame["<b>|marker"], frame["ratio"] = rng.normal(size=n) + 1.5 * ill, rng.normal(size=n) + 0.5 * ill
        frame["diagnosis"] = np.where(ill, "ill", "healthy")
        frame.loc[[3, 5], "diagnosis"] = None
        frame.loc[7:9, "ratio"] = None
        frame.to_csv(folder / f"{name}.csv", index=False)
    words = ["-t", "diagnosis", "--ignore", "site", "-s", "naive_bayes"]
    works("fit", folder / "here.csv", *words, "-o", folder / "model.skops")
    return folder


def parts(text):
    """The text of each item."""
    found = re.split(r"^### (\S+) .*$", re.sub(r"^## .*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def rows(text):
    """The cells of all lines of tables."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines() if "|" in line]


def decimals(value):
    """All numbers of a result as the page shows them."""
    if isinstance(value, dict | list):
        return {text for part in (value.values() if isinstance(value, dict) else value) for text in decimals(part)}
    return {f"{abs(value):.3f}"} if isinstance(value, int | float) and not isinstance(value, bool) else set()


def test_every_item_is_answered_or_asked():
    text = tripod_text("nothing known", {})
    assert list(parts(text)) == NUMBERS
    assert all("**To the author:** " in part for part in parts(text).values())
    assert len(set(NUMBERS)) == len(NUMBERS) == 52
    with pytest.raises(ValueError, match="'99' is no item"):
        tripod_text("x", {"99": ["?"]})


def test_numbers_of_a_validation_are_those_of_the_result(folder, tmp_path):
    page = tmp_path / "new" / "page.md"
    words = ["validate", folder / "model.skops", folder / "there.csv", "--by", "site", "--positive", "ill"]
    result = json.loads(works(*words, "--threshold", 0.3, "--threshold", 0.45, "--json", "--tripod", page))
    items = parts(page.read_text(encoding="utf-8"))
    shown = {row[0]: row[1:] for row in rows(items["23a"])}
    for name, of in result["measures"].items():
        span = "" if of["low"] is None else f"{of['low']:.3f} to {of['high']:.3f}"
        assert shown[name] == [f"{of['value']:.3f}", span]
    assert set(re.findall(r"\d+\.\d{3}", items["23a"])) <= decimals(result)
    assert result["calibration"]["words"] in items["23a"]
    assert result["advice"] in items["23a"]
    assert [row[0] for row in rows(items["23a"])[-2:]] == ["site = A", r"site = B\|\*x\*"]
    n = result["n"]
    flow = {row[0]: row[1] for row in rows(items["20a"])}
    assert flow["rows read"] == "120"
    assert flow["excluded: without a class"] == str(result["data"]["rows_without_class"]) == "2"
    assert flow["used"] == str(n)
    assert {flow[f"of these {label}"] for label in ("healthy", "ill")} == {str(m) for m in result["classes"].values()}
    frame = pd.read_csv(folder / "there.csv").dropna(subset="diagnosis")
    columns = ["stage", "<b>|marker", "ratio"]
    table = table_one(frame[columns], (frame.diagnosis == "ill").to_numpy().astype(int), 2)
    assert [row[2:5] for row in rows(items["20b"])[2:]] == [[row.overall, *row.by_class] for row in table]
    assert r"\<b\>\|marker (number)" in items["9b"]
    assert f"ratio {result['missing']['ratio']}" in items["11"]
    assert f"{result['unusual']['n']} of {n} samples" in items["20c"]
    assert "150 training samples" not in items["12c"]  # two have no class
    assert "148 training samples" in items["12c"]
    assert result["data"]["sha256"] in items["5a"]
    assert "probability of 0.3, 0.45 on" in items["15"]


def test_numbers_of_an_evaluation_are_those_of_the_result(folder, tmp_path):
    page = tmp_path / "page.md"
    words = ["evaluate", folder / "here.csv", "-t", "diagnosis", "--ignore", "site", "-s", "naive_bayes", "-p", "bayes"]
    words += ["--cv", "3", "--positive", "ill", "--by", "site", "--drop-missing", "--tripod", page]
    result = json.loads(works(*words, "--json"))
    items = parts(page.read_text(encoding="utf-8"))
    chosen = result["models"][0]
    shown = {row[0]: row[1:] for row in rows(items["23a"])}
    for name, of in {
        "AUC": chosen["auc"],
        "calibration slope": chosen["calibration"]["slope"],
        "calibration intercept": chosen["calibration"]["intercept"],
        "observed/expected": chosen["calibration"]["observed_expected"],
        "sensitivity at 0.5": chosen["decisions"]["sensitivity"],
        "negative predictive value at 0.5": chosen["decisions"]["negative_predictive_value"],
    }.items():
        assert shown[name] == [f"{of['value']:.3f}", f"{of['low']:.3f} to {of['high']:.3f}"]
    assert shown["site = A"][0] == str(result["subgroups"]["levels"][0]["n"])
    flow = {row[0]: row[1] for row in rows(items["20a"])}
    assert flow["excluded: without a class"] == "2"
    assert flow["excluded: with missing values"] == "3"
    assert int(flow["used"]) == result["data"]["rows"] == 145
    assert "stratified 3-fold cross-validation, seed 0" in items["12a"]
    assert shown[chosen["model"]][0].startswith(shown["log loss"][0])
    assert "class frequencies" in shown


def test_names_are_shown_as_they_are():
    assert escaped("a|b\n<i>*x*`") == r"a\|b \<i\>\*x\*\`"
