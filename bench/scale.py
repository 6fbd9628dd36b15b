"""Fits to files that do not fit into memory: time against reading alone, and memory.

    python bench/scale.py [--rows 20000000] [--columns 30] [--folder DIR]

Each measurement runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

CLASSES = 3
FILE_ROWS = 1_000_000
GROUP_ROWS = 1 << 17


def generate(folder: Path, n_rows: int, n_columns: int) -> None:
    """Correlated columns whose means differ between the classes, in files of a million rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(n_columns, n_columns)) / np.sqrt(n_columns)
    shift = rng.normal(size=(CLASSES, n_columns)) / 4
    for number, start in enumerate(range(0, n_rows, FILE_ROWS)):
        n = min(FILE_ROWS, n_rows - start)
        label = rng.integers(0, CLASSES, n)
        X = rng.normal(size=(n, n_columns)) @ mixing + shift[label]
        columns = {f"x{i}": X[:, i] for i in range(n_columns)} | {"class": np.array(["a", "b", "c"])[label]}
        pq.write_table(pa.table(columns), folder / f"part{number:04}.parquet", row_group_size=GROUP_ROWS)


def measured(folder: Path, what: str) -> dict[str, float]:
    """Seconds and peak of memory of one piece of work, in this process."""
    import pyarrow.dataset as ds

    from cgnlearn import CGNClassifier, fit_stream

    if what == "scan":
        started = perf_counter()
        dataset = ds.dataset(folder)
        for batch in dataset.scanner(batch_size=1 << 17, batch_readahead=2, fragment_readahead=1).to_batches():
            assert batch.num_rows
    else:
        small = sorted(folder.iterdir())[:1]
        first = ds.dataset(small).head(20_000)
        X, y = first.drop_columns(["class"]), first["class"].to_numpy(zero_copy_only=False)
        CGNClassifier(what).fit(X, y)  # compiles
        started = perf_counter()
        fit_stream(CGNClassifier(what), folder, "class")
    seconds = perf_counter() - started
    return {"seconds": seconds, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="keeps the generated files, or has them")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.folder, given.measure)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("*.parquet")):
            generate(folder, given.rows, given.columns)
        size = sum(path.stat().st_size for path in folder.glob("*.parquet")) / 2**30
        print(f"{given.rows:,} × {given.columns} rows, {CLASSES} classes, {size:.2f} GB of Parquet")
        found = {}
        for what in ("scan", "naive_bayes", "complete"):
            words = [sys.executable, __file__, "--folder", str(folder), "--measure", what]
            # Once to bring the files into the system's cache, the better of two afterwards.
            runs = [json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
                    for _ in range(3 if what == "scan" else 2)]  # fmt: skip
            found[what] = min(runs, key=lambda run: run["seconds"])
        print("| what | seconds | × reading | GB of memory |\n|---|---|---|---|")
        for what, run in found.items():
            times = run["seconds"] / found["scan"]["seconds"]
            print(f"| {what} | {run['seconds']:.2f} | {times:.2f} | {run['memory']:.2f} |")


if __name__ == "__main__":
    main()
