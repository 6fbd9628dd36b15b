"""The report: one page, self-contained, escaped, and seen by a real browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from cgnlearn import Band, CGNClassifier
from cgnlearn.evaluation.run import Run
from cgnlearn.evaluation.splits import cut
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.plots import ContributionsDisplay
from cgnlearn.report import write_report

HOSTILE = "<script>alert('x')</script>&\"' $\\nonsense{$"


def study_of(X, y, models, **options):
    y = np.asarray(y, dtype=str)
    models = models | {BASELINE: DummyClassifier(strategy="prior")}
    return done(Study("a set", X, y, models, cut(y, n_folds=4, n_repeats=2), **options))


def done(study, folder=None, stop_after=None, explained=True):
    run = Run(study.work(explained=explained), folder)
    for number, _ in enumerate(run.go_on(), start=1):
        if number == stop_after:
            break
    return replace(study, results=run.results)


def unseen(study, row):
    """The chosen model as it was when the first repetition predicted this row."""
    split = next(split for split in study.splits if row in split.test)
    return clone(study.models[study.chosen]).fit(study.X.iloc[split.train], study.y[split.train])


@pytest.fixture(scope="module")
def mixed_study():
    rng = np.random.default_rng(0)
    n = 90
    y = np.arange(n) % 3
    X = pd.DataFrame({"a": y + rng.normal(size=n), "b": rng.normal(size=n), HOSTILE: 2 * y + rng.normal(size=n)})
    X["level"] = pd.Categorical(np.where(rng.random(n) < 0.3 + 0.3 * (y == 1), "low", HOSTILE))
    labels = np.array(["x", "y", HOSTILE])[y]
    models = {"tree bayes": CGNClassifier("tree"), "naive ml": CGNClassifier(parameters="ml")}
    return study_of(X, labels, models, settings={"File": HOSTILE})


@pytest.fixture(scope="module")
def spectra_study():
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 80)).cumsum(axis=1) + 3 * y[:, None] * (np.arange(80) == 40)
    mz = np.linspace(1000, 2000, 80)
    frame = pd.DataFrame(X, columns=[f"{m:.1f}" for m in mz])
    models = {"band 2 bayes": CGNClassifier(Band(2)), "band 2 ml": CGNClassifier(Band(2), parameters="ml")}
    return study_of(frame, np.array(["control", "case"])[y], models, positions=mz, marks=mz[[40]])


@pytest.fixture(scope="module")
def page(tmp_path_factory, mixed_study, spectra_study):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, [mixed_study, spectra_study], title=f"Title {HOSTILE}")
    return path


def test_the_study_says_what_the_model_says(mixed_study):
    study = mixed_study
    assert (
        study.chosen
        == max((s for s in study.summaries if s.model != BASELINE), key=lambda s: s.metrics["cll"].mean).model
    )
    first = [r for r in study.results if r.unit.repeat == 0 and r.unit.name == study.chosen]
    log_proba = np.full((90, 3), np.nan)
    for result in first:
        log_proba[result.rows] = result.log_proba
    assert sorted(row.index for row in study.rows) == list(range(90))
    for row in study.rows:
        assert row.predicted == study.classes[log_proba[row.index].argmax()]
        assert row.true == study.y[row.index]
        assert row.probability_true == pytest.approx(np.exp(log_proba[row.index, study.true[row.index]]))
    margins = [row.log_odds for row in study.rows]
    assert margins == sorted(margins)
    assert study.confusion.sum() == 90
    assert np.trace(study.confusion) == sum(row.true == row.predicted for row in study.rows)


def test_reasons_are_contributions_of_the_fold_s_own_model(mixed_study):
    study = mixed_study
    for row in study.rows[::17]:
        model = unseen(study, row.index)
        one = study.X.iloc[[row.index]]
        parts, joint = model.contributions(one)[0], model.predict_joint_log_proba(one)[0]
        second, first = np.argsort(joint)[-2:]
        odds = parts[:, first] - parts[:, second]
        assert row.log_odds == pytest.approx(joint[first] - joint[second])
        order = np.argsort(-np.abs(odds))[:3]
        assert [attribute for attribute, _ in row.reasons] == [study.names[i] for i in order]
        np.testing.assert_allclose([log_odds for _, log_odds in row.reasons], odds[order])


def test_evidence_adds_up_to_the_mean_log_odds_of_the_truth(mixed_study):
    study = mixed_study
    log_proba, true = study.log_proba, study.true
    rivals = log_proba.copy()
    rivals[np.arange(90), true] = -np.inf
    margin = log_proba[np.arange(90), true] - rivals.max(axis=1)
    prior = np.zeros(90)
    for split in study.splits[:4]:
        own = CGNClassifier(**study.models[study.chosen].get_params()).fit(
            study.X.iloc[split.train], study.y[split.train]
        )
        own_prior = own.class_log_prior_
        prior[split.test] = own_prior[true[split.test]] - own_prior[rivals[split.test].argmax(axis=1)]
    assert study.evidence.for_truth.sum() == pytest.approx((margin - prior).mean())


def test_closeups_are_the_contributions_of_remarkable_rows(mixed_study):
    study = mixed_study
    wrong = [row for row in study.rows if row.true != row.predicted]
    assert [(words, row) for words, row, _ in study.closeups] == [
        ("The least certain row", study.rows[0]),
        ("The most confident error", wrong[-1]),
        ("The most certain row", study.rows[-1]),
    ]
    for _, row, closeup in study.closeups:
        shown = ContributionsDisplay.from_estimator(unseen(study, row.index), study.X, row.index)
        assert (shown.of, shown.against) == (row.predicted, study.classes[closeup.against])
        np.testing.assert_allclose(closeup.log_odds, shown.log_odds)
        assert closeup.prior_log_odds == pytest.approx(shown.prior_log_odds)


def test_of_many_rows_the_least_and_the_most_certain_are_told(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(900) % 2
    X = pd.DataFrame({"a": y + rng.normal(size=900), "b": rng.normal(size=900)})
    study = study_of(X, y, {"naive bayes": CGNClassifier()})
    margins = np.abs(np.diff(study.log_proba, axis=1)[:, 0])
    least, most = np.sort(margins)[[199, -200]]
    assert len(study.rows) == 400
    assert {row.index for row in study.rows} == set(np.flatnonzero((margins <= least) | (margins >= most)).tolist())
    assert all(len(row.reasons) == 2 for row in study.rows)
    assert study.confusion.sum() == 900
    write_report(tmp_path / "report.html", [study])
    assert "the 200 least and the 200 most certain of 900" in (tmp_path / "report.html").read_text()


class Counted(CGNClassifier):
    """Writes down how many rows it is fitted on."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.fits.append(len(y))
        return super().fit(X, y)


def text_of(path):
    return re.sub(r"Written by [^<]*", "", path.read_text())


def test_a_report_fits_the_final_model_and_no_fold_again(mixed_study, tmp_path):
    models = {"tree bayes": Counted("tree"), BASELINE: DummyClassifier(strategy="prior")}
    fresh = replace(mixed_study, models=models, results=[])
    Counted.fits.clear()
    study = done(fresh)
    assert Counted.fits == [len(split.train) for split in study.splits]
    Counted.fits.clear()
    write_report(tmp_path / "report.html", [study])
    assert Counted.fits == [90]
    # Of an interrupted run gone on with: only what the earlier call had fitted, and the same page.
    done(fresh, tmp_path / "kept", stop_after=5)
    resumed = done(fresh, tmp_path / "kept")
    Counted.fits.clear()
    write_report(tmp_path / "resumed.html", [resumed])
    assert sorted(Counted.fits) == sorted([len(split.train) for split in study.splits[:3]] + [90])
    assert text_of(tmp_path / "resumed.html") == text_of(tmp_path / "report.html")


@pytest.mark.parametrize("stop_after", [1, 2, 4, 13])
def test_an_interrupted_evaluation_has_a_report(mixed_study, tmp_path, stop_after):
    study = done(replace(mixed_study, results=[]), stop_after=stop_after)
    write_report(tmp_path / "report.html", [study])
    assert "The evaluation was interrupted" in (tmp_path / "report.html").read_text()
    n_first = sum(len(r.rows) for r in study.results if r.unit.name == study.chosen and r.unit.repeat == 0)
    assert len(study.rows) == study.confusion.sum() == n_first > 0


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_the_page_is_self_contained_and_escaped(page):
    text = page.read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(text)
    assert sum(tag == "script" for tag, _ in tags.found) == 1  # our own; none of the data's
    for tag, attributes in tags.found:
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                assert value.startswith(("#", "data:")), (tag, name, value)
    assert not re.search(r"@import|url\((?!#|'?data:)", text)
    ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', text))
    assert references <= set(ids)
    assert "&lt;script&gt;alert" in text


def test_the_page_says_what_must_be_said(page):
    text = page.read_text(encoding="utf-8")
    for words in ("Data and settings", "How well the models did", "Reliability", "Confusion matrix", "Structure",
                  "What each attribute contributes", "The least certain row", "The most certain row", "Limits of use",
                  "Triangles mark the peaks"):  # fmt: skip
        assert words in text
    assert text.count("<svg") == text.count("</svg>") >= 11
    assert len(page.read_bytes()) < 1_500_000


def test_without_any_answer_the_page_says_so(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(24, 20)))
    X.columns = X.columns.astype(str)
    study = study_of(X, np.arange(24) % 2, {"complete ml": CGNClassifier("complete", parameters="ml")})
    assert study.chosen is None
    write_report(tmp_path / "report.html", [study])
    text = (tmp_path / "report.html").read_text()
    assert "does not exist" in text
    assert "No model answered in every fold" in text
    assert "complete ml has no answer in 8 of 8 folds" in text


PROBE = """
<script>
addEventListener("load", () => {
  const errors = window.probeErrors;
  const boxes = [...document.querySelectorAll("figure svg")].map(svg => {
    const box = svg.getBoundingClientRect();
    const inked = svg.querySelectorAll("path, text, use, image").length;
    return [Math.round(box.width), Math.round(box.height), inked];
  });
  const table = document.querySelector("table.sortable"), body = table.tBodies[0];
  const shown = () => [...body.rows].filter(row => row.offsetParent !== null || row.getClientRects().length);
  const total = shown().length;
  const numbers = () => shown().map(row => Number(row.cells[0].dataset.value));
  const heads = [...table.tHead.rows[0].cells];
  heads[0].querySelector("button").click();
  const up = numbers();
  heads[0].querySelector("button").click();
  const down = numbers();
  const check = document.querySelector("[data-wrong]");
  check.checked = true;
  check.dispatchEvent(new Event("change"));
  const wrong = shown().length, marked = body.querySelectorAll("tr.wrong").length;
  const search = document.querySelector("[data-filter]");
  search.value = "no such row";
  search.dispatchEvent(new Event("input"));
  const none = shown().length;
  const overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const requests = performance.getEntriesByType("resource").map(entry => entry.name);
  parent.postMessage({errors, boxes, total, up, down, wrong, marked, none, overflow, requests}, "*");
});
</script>
"""
# In a frame, as windows are at least 500 pixels wide.
FRAME = """<!doctype html><body><script>
addEventListener("message", event => { document.body.dataset.probe = JSON.stringify(event.data); });
</script><iframe src="probed.html" style="width: WIDTHpx; height: 900px"></iframe></body>"""
CATCH = """<script>window.probeErrors = [];
addEventListener("error", event => window.probeErrors.push(String(event.message)));
addEventListener("securitypolicyviolation", event => window.probeErrors.push(event.violatedDirective));</script>"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it_without_error_or_request(page, tmp_path, width):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium to look at the report with")
    text = page.read_text(encoding="utf-8")
    probed = tmp_path / "probed.html"
    probed.write_text(text.replace("<title>", CATCH + "<title>", 1).replace("</body>", PROBE + "</body>"))
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)))
    found = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1400,1000", "--virtual-time-budget=5000", "--enable-logging=stderr", "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in found.stderr
    told = re.search(r'data-probe="([^"]*)"', found.stdout)
    assert told, found.stderr[-2000:]
    seen = json.loads(told.group(1).replace("&quot;", '"'))
    assert seen["errors"] == []
    assert len(seen["boxes"]) >= 11
    assert all(w > 200 and h > 80 and inked > 5 for w, h, inked in seen["boxes"])
    assert seen["up"] == sorted(seen["up"]) == seen["down"][::-1]
    assert len(seen["up"]) == seen["total"] == 90
    assert seen["wrong"] == seen["marked"] > 0
    assert seen["none"] == 0
    assert seen["overflow"] <= 0
    assert seen["requests"] == []
