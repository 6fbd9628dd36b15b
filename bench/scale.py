"""Fits to files that do not fit into memory: time against reading alone, memory, two workers against one.

    python bench/scale.py [--rows 20000000] [--columns 30] [--folder DIR] [--runs 2]

Each measurement runs in a process of its own, so that its peak of memory is its own. At the end stand the pieces of
which the time of a cluster is made: seconds to count a partition, bytes that move, seconds to merge.
"""

from __future__ import annotations

import argparse
import json
import pickle
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


def two_workers() -> tuple[float, float]:
    """Seconds of a compute-bound fit, of rows that the workers hold, on one worker process and on two."""
    import dask.array as da
    import distributed

    from cgnlearn import CGNClassifier, fit_dask

    found = []
    for n_workers in (1, 2):
        with (
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            random = da.random.default_rng(0)
            X = client.persist(random.normal(size=(480_000, 200), chunks=(30_000, 200)))
            y = client.persist(random.integers(0, CLASSES, size=480_000, chunks=30_000))
            distributed.wait([X, y])
            times = []
            for _ in range(3):  # the first compiles
                started = perf_counter()
                fit_dask(CGNClassifier("complete"), X, y)
                times.append(perf_counter() - started)
            found.append(min(times))
    return found[0], found[1]


def pieces(folder: Path, what: str) -> dict[str, float]:
    """Of a partition of 2¹⁷ rows: seconds to count it, and bytes and seconds to merge it with another."""
    import pyarrow.dataset as ds

    from cgnlearn import CGNClassifier

    head = ds.dataset(sorted(folder.iterdir())[:1]).head(GROUP_ROWS)
    X = np.column_stack([column.to_numpy() for column in head.drop_columns(["class"]).columns])
    y = head["class"].to_pandas().to_numpy().astype(str)

    def best(work) -> float:
        times = []
        for _ in range(5):
            started = perf_counter()
            work()
            times.append(perf_counter() - started)
        return min(times)

    seconds = best(lambda: CGNClassifier(what).partial_fit(X, y, classes=y))
    part = CGNClassifier(what).partial_fit(X, y, classes=y).statistics_
    return {"seconds": seconds, "bytes": len(pickle.dumps(part)), "merge": best(lambda: part + part)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="keeps the generated files, or has them")
    parser.add_argument("--runs", type=int, default=2, help="of which the best counts")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.folder, given.measure)))
        return
    import pyarrow.dataset as ds

    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("*.parquet")):
            generate(folder, given.rows, given.columns)
        size = sum(path.stat().st_size for path in folder.glob("*.parquet")) / 2**30
        n_rows = ds.dataset(folder).count_rows()
        print(f"{n_rows:,} × {given.columns} rows, {CLASSES} classes, {size:.2f} GB of Parquet")
        found = {}
        for what in ("scan", "naive_bayes", "complete"):
            words = [sys.executable, __file__, "--folder", str(folder), "--measure", what]
            # Once more to bring the files into the system's cache.
            runs = [json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
                    for _ in range(given.runs + (what == "scan"))]  # fmt: skip
            found[what] = min(runs, key=lambda run: run["seconds"])
        print("| what | seconds | × reading | GB of memory |\n|---|---|---|---|")
        for what, run in found.items():
            times = run["seconds"] / found["scan"]["seconds"]
            print(f"| {what} | {run['seconds']:.2f} | {times:.2f} | {run['memory']:.2f} |")
        print("\n| a partition of 131,072 rows | ms to count | kB that move | ms to merge two |\n|---|---|---|---|")
        for what in ("naive_bayes", "complete"):
            of = pieces(folder, what)
            print(f"| {what} | {1e3 * of['seconds']:.1f} | {of['bytes'] / 1e3:.1f} | {1e3 * of['merge']:.2f} |")
    one, two = two_workers()
    print(f"\ncomplete, 480,000 × 200 held by dask workers: {one:.2f} s on one, {two:.2f} s on two: {one / two:.2f} ×")


if __name__ == "__main__":
    main()
