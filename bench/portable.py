"""Do the readers of exported models predict what Python predicts? Twelve models; sizes, and the time of one sample.

Samples are drawn from the training samples with noise, a fifth of the values missing and one level in fifty unknown.
The page runs in Chromium and the R file in Rscript, which must be installed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

from measuring import parser, publish, versions

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.portable.browser import probed  # noqa: E402
from tests.portable.cases import cells, table  # noqa: E402
from tests.portable.reader import Reader  # noqa: E402
from tests.portable.test_onnx_model import run as run_onnx  # noqa: E402
from tests.portable.test_r_code import predicted as run_r  # noqa: E402

from cgnlearn import Band, Box, CGNClassifier, CGNClassifierCV, Jan  # noqa: E402
from cgnlearn.portable.document import description  # noqa: E402
from cgnlearn.portable.packing import as_json, packed  # noqa: E402
from cgnlearn.portable.page import page, resource  # noqa: E402

MIXED = ROOT.parent / "shared" / "data" / "mixed"
N_SAMPLES = 1000
N_TIMED = 200
IN_R = 250  # samples of one run of R, which has a time limit


def of_file(name):
    """A mixed table of the reference data."""
    kinds = json.loads((MIXED / f"{name}.schema.json").read_text())
    columns = next(iter(kinds.values()))
    discrete = [column["name"] for column in columns if "values" in column]
    frame = pd.read_csv(MIXED / f"{name}.csv", dtype=dict.fromkeys(discrete, str)).astype(
        dict.fromkeys(discrete, "category")
    )
    y = frame.pop(kinds["class"]).astype(str).to_numpy()
    return frame, y


def sets():
    """Five tables for the mixture."""
    for name, load in (("iris", load_iris), ("wine", load_wine)):
        found = load(as_frame=True)
        yield name, (found.data, found.target.to_numpy())
    yield "mixed, simulated", table(150, 0)
    for name in ("heart-statlog", "hepatitis"):
        if MIXED.exists():
            yield name, of_file(name)


def models():
    """Name, model and training samples."""
    simulated = table(150, 0)
    for name, model in {
        "naive Bayes": CGNClassifier(),
        "naive Bayes, maximum likelihood": CGNClassifier(estimation="ml"),
        "TAN": CGNClassifier("tan", sharing=0.3),
        "groups, maximum likelihood": CGNClassifier(Jan([[0, 1, 2, 3], [4], [6]]), estimation="ml"),
        "complete, discriminative": CGNClassifier(Jan([[0, 1, 2, 3], [4, 5], [6]]), estimation="discriminative"),
        "3-BAND": CGNClassifier(Band(3)),
        "2-BOX": CGNClassifier(Box(2), likelihood_power=0.5),
    }.items():
        yield name, model, simulated
    for name, data in sets():
        yield f"mixture, {name}", CGNClassifierCV(), data


def drawn(X, n, *, missing, seed=0):
    """New samples like those of a table."""
    rng = np.random.default_rng(seed)
    new = X.iloc[rng.integers(0, len(X), n)].reset_index(drop=True)
    for name in new:
        if new[name].dtype.kind in "fi":
            new[name] = new[name] + 0.2 * X[name].std() * rng.normal(size=n)
            new[name] = new[name].fillna(X[name].median()) if not missing else new[name]
        elif missing:
            new[name] = new[name].astype(object).where(rng.random(n) > 0.02, "never seen")
        else:
            new[name] = new[name].fillna(X[name].mode()[0])
    return new.mask(rng.random(new.shape) < 0.2) if missing else new


def in_chromium(text, rows, folder):
    """By the page's own functions: log probabilities, intervals, and median and 99th percentile of times in ms.

    The time of a sample is the least of three, each with a new reader: a page is not the only thing that runs.
    """
    given = as_json(rows).replace("<", "\\u003c")
    script = f"""
        const model = JSON.parse(document.getElementById("model").textContent), rows = {given};
        const readers = [0, 1, 2].map(() => cgnReader(model)).map(reader => [reader, cgnIntervals(model, reader)]);
        const predicted = ([reader, intervalOf], row) =>
            [reader.predict(row), intervalOf ? intervalOf(row, model.class_log_prior) : null];
        const times = rows.slice(0, {N_TIMED}).map(row => Math.min(...readers.map(each => {{
            const start = performance.now();
            predicted(each, row);
            return performance.now() - start;
        }}))).sort((a, b) => a - b);
        const found = rows.map(row => predicted(readers[0], row));
        return [found.map(each => each[0]), readers[0][1] ? found.map(each => each[1]) : [],
                times[times.length >> 1], times[Math.floor(0.99 * times.length)]];
    """
    return probed(text, script, folder)


def difference(found, expected):
    return f"{np.abs(np.asarray(found) - expected).max():.0e}"


def line(name, model, data):
    """A line of the table."""
    X, y = data
    model.fit(X, y)
    found = description(model)
    new, complete = drawn(X, N_SAMPLES, missing=True), drawn(X, N_SAMPLES, missing=False)
    expected = model.predict_proba(new)
    document = as_json(packed(found))
    text = page(found)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        of_browser, intervals, median, late = in_chromium(text, cells(new), folder)
        of_r = np.concatenate([run_r(folder, [model], [new[at : at + IN_R]])[0] for at in range(0, N_SAMPLES, IN_R)])
    parts = [
        difference(np.exp(Reader(json.loads(document)).log_proba(cells(new))), expected),
        difference(np.exp(of_browser), expected),
        difference(intervals, model.predict_interval(new)) if intervals else "—",
        difference(of_r, expected),
        difference(run_onnx(model, complete, found)[1], model.predict_proba(complete)),
        f"{len(document) / 1e3:.0f}",
        f"{len(text.encode()) / 1e3:.0f}",
        f"{median:.1f} / {late:.1f}",
    ]
    return f"| {name} | {' | '.join(parts)} |"


def report(done):
    """The page; lines that were computed before are read from a file, if there is one, and new ones added to it."""
    known = json.loads(done.read_text()) if done and done.exists() else {}
    lines = [
        "# Exported models beside Python",
        "",
        "Greatest difference of any probability between Python and each reader, on new samples with a fifth of the "
        "values missing and one level in fifty unknown; for ONNX on complete samples.",
        f"{N_SAMPLES} samples each. Intervals: of their ends, in Chromium. One sample in Chromium, with its interval, "
        f"the least of three times: median / 99th percentile of {N_TIMED}, in milliseconds; "
        f"{os.getloadavg()[1]:.0f} processes on average were running on {os.cpu_count()} cores when it was last "
        "resumed.",
        f"The reader in JavaScript has {len(resource('reader.js')) / 1e3:.0f} kB, that of intervals "
        f"{len(resource('intervals.js')) / 1e3:.0f} kB.",
        "",
        "| model | reference reader | Chromium | intervals | R | onnxruntime | JSON, kB | page, kB | sample, ms |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, model, data in models():
        known[name] = known.get(name) or line(name, model, data)
        lines.append(known[name])
        if done:
            done.write_text(json.dumps(known))
    lines += ["", f"`python bench/portable.py --write`. {versions()}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    options = parser(__doc__, "bench-portable.md")
    options.add_argument("--done", type=Path, help="file of finished lines, with which a run can be resumed")
    arguments = options.parse_args()
    if not shutil.which("Rscript") or not shutil.which("chromium"):
        sys.exit("this bench needs Rscript and chromium")
    warnings.simplefilter("ignore")
    publish(report(arguments.done), "bench-portable.md", write=arguments.write)
