import json
import re

import numpy as np
import pandas as pd
import pytest

from cgnlearn import CGNClassifier, CGNClassifierCV, export, update
from cgnlearn.portable.document import description
from cgnlearn.portable.packing import as_json, packed
from cgnlearn.portable.page import page, resource
from tests.portable.browser import probed
from tests.portable.cases import CASES, QUICK, cells, described, fitted, samples, table

HOSTILE = "</script><script>alert(1)</script> \"quoted\" 'it' & %MODEL% 😀, <!--"


def embedded(text):
    return json.loads(re.search(r'id="model">(.*?)</script>', text, re.DOTALL)[1])


@pytest.mark.filterwarnings("ignore:.*unknown from training", "ignore:.*is observed in")
@pytest.mark.browser
@pytest.mark.parametrize("names", [QUICK, pytest.param([*CASES], marks=pytest.mark.slow)], ids=["quick", "every"])
def test_the_browser_predicts_the_same(names, tmp_path):
    given = [{"model": packed(described(name)), "rows": cells(samples(name, 30))} for name in names]
    text = as_json(given).replace("<", "\\u003c")
    whole = (
        f"<!doctype html><title></title><body><script>{resource('reader.js')}\nconst given = {text};</script></body>"
    )
    found = probed(
        whole,
        """return given.map(({ model, rows }) => {
            const reader = cgnReader(model);
            return rows.map(row => reader.predict(row));
        });""",
        tmp_path,
    )
    for name, log_proba in zip(names, found, strict=True):
        expected = fitted(name).predict_proba(samples(name, 30))
        np.testing.assert_allclose(np.exp(log_proba), expected, atol=1e-9, rtol=0, err_msg=name)


@pytest.mark.browser
def test_the_browser_predicts_as_a_model_that_was_updated(tmp_path):
    X, y = table(60, 0)
    there, labels = table(40, 1)
    once = update(CGNClassifier().fit(X, y), there, labels)
    models = [once, update(CGNClassifierCV(candidates=["naive_bayes", "logistic"]).fit(X, y), there, labels)]
    models += [update(once, *table(30, 2)), once.with_class_prior("uniform")]
    assert any(part.slope != 1 for model in models for part in model.parts_)
    new = table(20, 3)[0]
    given = as_json([{"model": packed(description(model)), "rows": cells(new)} for model in models]).replace(
        "<", "\\u003c"
    )
    whole = (
        f"<!doctype html><title></title><body><script>{resource('reader.js')}\nconst given = {given};</script></body>"
    )
    script = """return given.map(({ model, rows }) => {
        const reader = cgnReader(model), even = model.classes.map(() => -Math.log(model.classes.length));
        return [rows.map(row => reader.predict(row)), rows.map(row => reader.predict(row, even)),
                rows.map(row => reader.typicality(row))];
    });"""
    for model, found in zip(models, probed(whole, script, tmp_path), strict=True):
        for log_proba, expected in zip(found[:2], (model, model.with_class_prior("uniform")), strict=True):
            np.testing.assert_allclose(np.exp(log_proba), expected.predict_proba(new), atol=1e-9, rtol=0)
        assert all(value is None or 0 <= value <= 1 for value in found[2])
    export(once, tmp_path / "calculator.html", title="Updated")
    shown = probed((tmp_path / "calculator.html").read_text("utf-8"), "return document.body.textContent", tmp_path)
    assert "new samples alone" in shown or "old samples" in shown
    with pytest.raises(ValueError, match=r"updated is exported as \.json or \.html, not '\.R'"):
        export(once, tmp_path / "model.R")


def certain():
    """Networks and mixtures of two and three classes, whose files hold what intervals need."""
    X, y = table(90, 0)
    for name in ("naive Bayes", "TAN", "complete, paper", "any structure, separately", "band"):
        yield name, fitted(name), samples(name, 12)
    model = CGNClassifier("tan", sharing=1.0, likelihood_power=0.6).fit(X, y == "other")
    yield "two classes", model, samples("TAN", 12)
    yield "another prevalence", model.with_class_prior([0.9, 0.1]), samples("TAN", 12)
    for name in ("mixture", "mixture, incomplete"):  # all kinds of members but averages and bands
        yield name, fitted(name), samples(name, 12)
    mixture = CGNClassifierCV(candidates=["selective_naive_bayes", "logistic"]).fit(X, y == "other")
    yield "mixture of two classes", mixture, samples("mixture", 12)
    yield "mixture, another prevalence", mixture.with_class_prior([0.9, 0.1]), samples("mixture", 12)


@pytest.mark.filterwarnings("ignore:.*unknown from training", "ignore:.*is observed in")
@pytest.mark.browser
def test_intervals_are_those_of_python(tmp_path):
    models = list(certain())
    given = [{"model": packed(description(model)), "rows": cells(rows)} for _, model, rows in models]
    text = as_json(given).replace("<", "\\u003c")
    scripts = "\n".join(resource(name) for name in ("reader.js", "intervals.js"))
    found = probed(
        f"<!doctype html><title></title><body><script>{scripts}\nconst given = {text};</script></body>",
        """return given.map(({ model, rows }) => {
            const intervalOf = cgnIntervals(model, cgnReader(model));
            return rows.map(row => intervalOf(row, model.class_log_prior));
        });""",
        tmp_path,
    )
    for (name, model, rows), intervals in zip(models, found, strict=True):
        np.testing.assert_allclose(intervals, model.predict_interval(rows), atol=1e-6, rtol=0, err_msg=name)


@pytest.mark.parametrize("name", ["naive Bayes, ml", "box, discriminative", "TAN average"])
def test_a_page_without_intervals_says_so(name):
    found = described(name)
    assert found["interval"] is None
    assert "cgnlearn predict --interval tells it" in page(found)


def test_nothing_in_a_name_ends_its_element():
    X, y = table(60, 0, numeric=True)
    model = CGNClassifier().fit(X.rename(columns={"d": HOSTILE}), np.where(y == "other", HOSTILE, y))
    found = description(model, title=HOSTILE, about=HOSTILE)
    text = page(found)
    assert embedded(text) == packed(found)
    assert text.count("<script") == 4
    assert "https://" not in text
    assert "<title>&lt;/script&gt;" in text


@pytest.mark.browser
@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.slow), 1200])
def test_a_person_gets_a_number(tmp_path, width):
    X, y = table(150, 0)
    X = X.rename(columns={"d": HOSTILE})
    model = CGNClassifier("tan").fit(X, y)
    text = page(description(model, title=HOSTILE, about=f"First.\n\n{HOSTILE}"))
    found = probed(
        text,
        """
        const shown = () => [...document.querySelectorAll(".probability .number")].map(each => each.textContent);
        const steps = () => [...document.querySelectorAll(".step .number")].map(each => each.textContent);
        const set = (i, value) => {
            const field = document.getElementById("field-" + i);
            field.value = value;
            field.dispatchEvent(new Event("input"));
        };
        const empty = shown();
        set(0, "61,5"); set(3, "2.5"); set(5, "2"); set(1, "much"); set(2, "1e9");
        const invalid = document.getElementById("field-1").getAttribute("aria-invalid");
        const far = shown(), warned = document.getElementById("warnings").textContent;
        set(2, "");
        const filled = shown(), explained = steps();
        const slider = document.getElementById("slider");
        document.getElementById("class").selectedIndex = 1;
        document.getElementById("class").dispatchEvent(new Event("change"));
        slider.value = "2.2";
        slider.dispatchEvent(new Event("input"));
        const other = shown();
        const labelled = [...document.querySelectorAll("#fields input, #fields select, #slider, #class")]
            .every(field => field.labels.length === 1);
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        const title = document.getElementById("title").textContent;
        const label = document.querySelector("label[for=field-3]").textContent;
        return { empty, invalid, warned, filled, explained, other, labelled, wide, title, label };
        """,
        tmp_path,
        width,
    )

    def expected(of, *values):
        row = pd.DataFrame([values], columns=X.columns).astype({name: X[name].dtype for name in X})
        return pytest.approx((100 * of.predict_proba(row)[0]).tolist(), abs=0.0501)

    def percents(texts):
        return [float(re.sub(r"[^0-9.]", "", text)) for text in texts]

    given = (61.5, None, None, 2.5, None, "III", None)
    assert percents(found["empty"]) == expected(model, *[None] * 7)
    assert percents(found["filled"]) == expected(model, *given)
    assert percents(found["explained"][-1:])[0] == max(percents(found["filled"]))
    share = np.exp(model.class_log_prior_)
    most = 1 / (1 + np.exp(-2.2))
    share = np.where(np.arange(3) == 1, most, (1 - most) * share / (1 - share[1]))
    assert percents(found["other"]) == expected(model.with_class_prior(share), *given)
    assert found["invalid"] == "true"
    assert "Outside the training data: it's 5'" in found["warned"]
    assert found["labelled"]
    assert found["wide"] <= 0
    assert (found["title"], found["label"]) == (HOSTILE, HOSTILE)


@pytest.mark.browser
def test_rows_of_a_wide_table_are_pasted(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 70)), columns=[f"m/z {i}" for i in range(70)])
    y = (X["m/z 3"] + rng.normal(size=80) > 0).to_numpy()
    model = CGNClassifier(likelihood_power=0.3).fit(X, y)
    pasted = X[:3].iloc[:, ::-1].to_csv(index=False, sep=";").replace(";", ";", 1)
    found = probed(
        page(description(model)),
        f"""
        const area = document.getElementById("pasted");
        area.value = {json.dumps(pasted)};
        area.dispatchEvent(new Event("input"));
        const rows = [...document.getElementById("which").options].map(each => each.textContent);
        area.value = "1;2;3";
        area.dispatchEvent(new Event("input"));
        return {{ rows, warned: document.getElementById("warnings").textContent }};
        """,
        tmp_path,
    )
    best = model.predict_proba(X[:3])
    for text, proba in zip(found["rows"], best, strict=True):
        assert f"{str(proba.argmax() == 1).lower()} {100 * proba.max():.1f}" in text
    assert "a row has 3 cells, but the model has 70 columns" in found["warned"]


@pytest.mark.browser
def test_a_model_that_needs_every_value_says_so(tmp_path):
    found = probed(
        page(description(fitted("TAN average"))),
        """
        const before = document.getElementById("probabilities").textContent;
        document.getElementById("typical").click();
        return [before, document.querySelectorAll(".probability").length];
        """,
        tmp_path,
    )
    assert found == ["This model needs a value for every feature.", 3]
