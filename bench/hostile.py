"""Random tables through ``cgnlearn evaluate --report``: no exception, and no impossible number.

``python bench/hostile.py --data-dir ../shared/data --tables 500`` draws random rows, columns and groups of the
development sets; without ``--data-dir`` the tables are simulated. It lists what is wrong, and ends with code 1 if
something is.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

from cgnlearn.cli.main import main as command

MODELS = (
    ("-s", "naive_bayes", "-p", "bayes"),
    ("-s", "naive_bayes", "-p", "ml", "-p", "bayes"),
    ("-s", "tan", "-p", "bayes", "-s", "naive_bayes"),
    ("-s", "complete", "-p", "bayes"),
    ("-s", "naive_bayes", "-p", "bayes", "--likelihood-power", "cv"),
)
MOST_ROWS, FEWEST_ROWS, MOST_COLUMNS = 2000, 20, 30
MOST_CONFIGURATIONS = 10_000  # of categorical features: with more, a complete structure is not quick


def development_sets(folder):
    """Every set of the folders uci, mixed and cc18 as a data frame with a column ``class``."""
    for path in sorted([*Path(folder, "uci").glob("*.csv"), *Path(folder, "mixed").glob("*.csv")]):
        frame = pd.read_csv(path)
        yield path.stem, frame.rename(columns={frame.columns[-1]: "class"})
    for path in sorted(Path(folder, "cc18").glob("*.npz")):
        stored = np.load(path, allow_pickle=False)
        frame = pd.DataFrame(stored["X"]).rename(columns="x{}".format)
        for i in stored["cat"].tolist():
            frame[f"x{i}"] = frame[f"x{i}"].map("level {:.0f}".format, na_action="ignore")
        yield path.stem, frame.assign(**{"class": [f"c{label}" for label in stored["y"]]})


def simulated_sets(rng, n_sets=10):
    """Mixed tables with missing values, rare classes, constants and extreme scales."""
    for number in range(n_sets):
        n, n_classes = int(rng.integers(60, 900)), int(rng.integers(2, 7))
        y = rng.choice(n_classes, size=n, p=rng.dirichlet(np.ones(n_classes)))
        X = rng.normal(size=(n, 6)) * 10.0 ** rng.integers(-6, 7, size=6) * (1 + rng.random(6) * y[:, None])
        X[rng.random(X.shape) < 0.05] = np.nan
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(6)]).assign(constant=7.0)
        frame["level"] = np.array(["a", "b", "c"])[(y + rng.integers(0, 3, size=n)) % 3]
        yield f"simulated {number}", frame.assign(**{"class": [f"c{label}" for label in y]})


def part_of(rng, frame):
    """Random rows, columns and groups of a table; every class has at least two rows."""
    n = int(np.exp(rng.uniform(np.log(FEWEST_ROWS), np.log(MOST_ROWS))))
    columns = [name for name in frame.columns if name != "class"]
    chosen = rng.choice(columns, size=rng.integers(1, min(len(columns), MOST_COLUMNS) + 1), replace=False)
    table = frame.iloc[rng.permutation(len(frame))[:n]][[*chosen, "class"]]
    sizes = table["class"].value_counts()
    table = table[table["class"].isin(sizes.index[sizes > 1])].reset_index(drop=True)
    if rng.random() < 0.4:
        n_groups = int(rng.choice([2, 3, 4, 5, 10, 40]))
        table["group"] = [f"g{group}" for group in rng.integers(n_groups, size=len(table))]
    return table


def options_for(rng, table, folder):
    """Random options of the command."""
    models = MODELS[rng.integers(len(MODELS))]
    if "complete" in models and table.select_dtypes(exclude="number").nunique().prod() > MOST_CONFIGURATIONS:
        models = MODELS[0]
    words = [*models, "--cv", str(rng.choice([2, 3, 5, 10]))]
    if "group" in table:
        words += ["--groups", "group"]
    labels = sorted(table["class"].astype(str).unique())
    if rng.random() < 0.3:
        words += ["--positive", labels[0]] + (["--prevalence", "0.05"] if rng.random() < 0.5 else [])
    if rng.random() < 0.2:
        rows = [f"{label},{rng.integers(9)},{rng.integers(9)},{rng.integers(9)}" for label in labels]
        path = Path(folder, "cost.csv")
        path.write_text("\n".join(["class,first,second,third", *rows]) + "\n", encoding="utf-8")
        words += ["--cost", str(path)]
    return words


def estimates_in(value, name=""):
    """Every estimate with an interval in the JSON of an evaluation, with its name."""
    if isinstance(value, dict) and {"value", "low", "high"} <= value.keys():
        yield name, value["value"], value["low"], value["high"]
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from estimates_in(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from estimates_in(part, name)


UNBOUNDED = {"cost", "observed_expected", "slope", "intercept"}


def wrong_numbers(told):
    """What is impossible in the JSON of an evaluation."""
    for model in told["models"]:
        for metric, most in (("accuracy", 1), ("brier", 2), ("calibration_error", 1), ("log_loss", np.inf)):
            if metric in model and not 0 <= model[metric]["mean"] <= most:
                yield f"{model['model']}: {metric} {model[metric]['mean']}"
        for name, value, low, high in estimates_in(model):
            most = 1 if name not in UNBOUNDED else np.inf
            least = -np.inf if name in ("slope", "intercept") else 0
            # JSON has no infinity: a class that is told apart without error has an infinite slope.
            value, high = (np.inf if each is None else each for each in (value, high))
            if not least <= value <= most or (
                low is not None and not (least <= low <= value + 1e-12 and value <= high + 1e-12 and high <= most)
            ):
                yield f"{model['model']}: {name} {value} ({low} to {high})"


NUMBER = r"([+−-]?[\d.]+|[+−]?∞)"
INTERVAL = re.compile(rf"{NUMBER}\s*<span class=\"soft\">\({NUMBER} to {NUMBER}\)</span>")


def wrong_in_page(text):
    """What is impossible in a report: numbers that are none, differences, intervals and probabilities."""
    if re.search(r">\s*[+−-]?(nan|NaN|None|inf)\s*[<%(]", text):
        yield "a number that is none"
    for found in INTERVAL.finditer(text):
        value, low, high = (float(part.replace("−", "-").replace("∞", "inf")) for part in found.groups())
        if not low - 0.06 <= value <= high + 0.06:  # as rounded
            yield f"{found[0]}: the interval excludes its estimate"
    for cell in re.findall(r'percentage points \(95% CI\)"><span>(.*?)</td>', text):
        if any(abs(float(number.replace("−", "-"))) > 100 for number in re.findall(r"[+−-]\d+(?:\.\d+)?", cell)):
            yield f"accuracy difference {cell}"
    for share in re.findall(r"with probability ([\d.]+)%", text):
        if not 0 <= float(share) <= 100:
            yield f"probability {share}%"
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        samples = json.loads(unescape(data)).get("samples", [])
        if not all(0 <= sample["probability"] <= 1 + 1e-12 for sample in samples):
            yield "a probability of a sample outside of 0 and 1"


def violations(table, words, folder):
    """What is wrong with the evaluation of one table; a refusal in one sentence is not."""
    path, report = Path(folder, "table.csv"), Path(folder, "report.html")
    table.to_csv(path, index=False)
    report.unlink(missing_ok=True)
    arguments = ["evaluate", str(path), "-t", "class", *words, "--report", str(report), "--json"]
    done = CliRunner().invoke(command, arguments, prog_name="cgnlearn")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return [f"exception {done.exception!r}"], done
    if "a fault of cgnlearn" in done.stderr or "Traceback" in done.stderr:
        return [done.stderr.strip().splitlines()[-1]], done
    if done.exit_code:
        is_refused = done.stderr.strip().splitlines()[-1].startswith("cgnlearn: error: ")
        return [] if is_refused else [f"exit code {done.exit_code}: {done.stderr}"], done
    return [*wrong_numbers(json.loads(done.stdout)), *wrong_in_page(report.read_text(encoding="utf-8"))], done


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data-dir", type=Path, help="folder with uci, mixed and cc18")
    options.add_argument("--tables", type=int, default=500)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--seconds", type=float, default=np.inf, help="no further table after this time")
    chosen = options.parse_args()
    rng, start = np.random.default_rng(chosen.seed), time.monotonic()
    sets = list(simulated_sets(rng) if chosen.data_dir is None else development_sets(chosen.data_dir))
    n_done = n_refused = n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        while n_done < chosen.tables and time.monotonic() - start < chosen.seconds:
            name, frame = sets[rng.integers(len(sets))]
            table = part_of(rng, frame)
            if table["class"].nunique() < 2:
                continue
            words = options_for(rng, table, folder)
            wrong, done = violations(table, words, folder)
            n_done, n_refused, n_wrong = n_done + 1, n_refused + (done.exit_code != 0), n_wrong + bool(wrong)
            about = f"{n_done}. {name}, {len(table)} × {table.shape[1] - 1}, {' '.join(words)}"
            for line in wrong:
                print(f"{about}: {line}", flush=True)
            if done.exit_code and not wrong:
                print(f"{about}: refused: {done.stderr.strip().splitlines()[-1]}", flush=True)
            if n_done % 50 == 0:
                print(f"{n_done} tables after {time.monotonic() - start:.0f} s", flush=True)
    print(f"{n_done} tables, {n_refused} refused, {n_wrong} with something wrong")
    raise SystemExit(n_wrong > 0)


if __name__ == "__main__":
    main()
