"""Fits to files larger than memory: time relative to reading alone, memory, and two workers relative to one.

    python bench/scale.py [--rows 20000000] [--columns 30] [--folder DIR] [--runs 2]

Each measurement runs in a separate process, which has its own peak of memory; they alternate, so that other load
affects all of them. The parts of the time of a cluster follow, on one thread: reading a partition, counting it, bytes
sent, merging two; and an estimate for 64 workers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

CLASSES = 3
WORKERS = 64  # of the cluster of the estimate
ROWS_OF_ESTIMATE = 10**9
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
SCANS = {  # reading alone: pyarrow's default, and the options of our fits
    "scan": {},
    "buffered_scan": {"use_buffered_stream": True, "buffer_size": 1 << 16, "pre_buffer": False},
}
FILE_ROWS = 1_000_000
HELD = 720_000  # samples in the memory of the workers
GROUP_ROWS = 1 << 17


def generate(folder: Path, n_samples: int, n_columns: int) -> None:
    """Write correlated columns whose means differ between the classes, in files of a million samples."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(n_columns, n_columns)) / np.sqrt(n_columns)
    shift = rng.normal(size=(CLASSES, n_columns)) / 4
    for number, start in enumerate(range(0, n_samples, FILE_ROWS)):
        n = min(FILE_ROWS, n_samples - start)
        label = rng.integers(0, CLASSES, n)
        X = rng.normal(size=(n, n_columns)) @ mixing + shift[label]
        columns = {f"x{i}": X[:, i] for i in range(n_columns)} | {"class": np.array(["a", "b", "c"])[label]}
        pq.write_table(pa.table(columns), folder / f"part{number:04}.parquet", row_group_size=GROUP_ROWS)


def measured(folder: Path, what: str) -> dict[str, float]:
    """Seconds, CPU seconds and peak memory of one fit or scan, in this process."""
    import pyarrow.dataset as ds

    from cgnlearn import CGNClassifier, fit_stream

    if what in SCANS:
        options = ds.ParquetFragmentScanOptions(**SCANS[what])
        started, busy = perf_counter(), process_time()
        dataset = ds.dataset(folder, format=ds.ParquetFileFormat(default_fragment_scan_options=options))
        for batch in dataset.to_batches(batch_size=1 << 17):
            assert batch.num_rows
    else:
        small = sorted(folder.iterdir())[:1]
        first = ds.dataset(small).head(20_000)
        X, y = first.drop_columns(["class"]), first["class"].to_numpy(zero_copy_only=False)
        CGNClassifier(what).fit(X, y)  # compiles
        started, busy = perf_counter(), process_time()
        fit_stream(CGNClassifier(what), folder, "class")
    seconds, busy = perf_counter() - started, process_time() - busy
    return {"seconds": seconds, "busy": busy, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def two_workers() -> list[tuple[float, float]]:
    """Seconds of a compute-bound fit to samples in the memory of one worker and of two, and the CPU seconds of the
    busiest worker, which do not depend on other load."""
    import dask.array as da
    import distributed

    from cgnlearn import CGNClassifier, fit_dask

    os.environ.update(ONE_THREAD)  # for the workers
    found = []
    for n_workers in (1, 2):
        with (
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.wait_for_workers(n_workers)  # otherwise the first one gets all samples
            random = da.random.default_rng(0)
            X = client.persist(random.normal(size=(HELD, 400), chunks=(10_000, 400)))
            y = client.persist(random.integers(0, CLASSES, size=HELD, chunks=10_000))
            distributed.wait([X, y])
            times = []
            for _ in range(2):
                before, started = client.run(process_time), perf_counter()
                fit_dask(CGNClassifier("complete"), X, y)
                seconds, after = perf_counter() - started, client.run(process_time)
                times.append((seconds, max(after[worker] - before[worker] for worker in before)))
            found.append(tuple(map(min, zip(*times, strict=True))))
    return found


def pieces(folder: Path, what: str) -> dict[str, float]:
    """For a partition of 2¹⁷ samples: seconds to read it and to count it, and bytes and seconds of merging two."""
    import pyarrow.parquet as pq

    from cgnlearn import CGNClassifier

    file = pq.ParquetFile(min(folder.glob("*.parquet")), read_dictionary=["class"])
    head = file.read_row_group(0)
    X = np.column_stack([column.to_numpy() for column in head.drop_columns(["class"]).columns])
    y = head["class"].to_pandas().to_numpy().astype(str)

    def best(work) -> float:  # CPU seconds, which do not depend on other load
        times = []
        for _ in range(7):
            started = process_time()
            work()
            times.append(process_time() - started)
        return min(times)

    part = CGNClassifier(what).partial_fit(X, y, classes=y).statistics_
    return {
        "read": best(lambda: file.read_row_group(0, use_threads=False)),
        "count": best(lambda: CGNClassifier(what).partial_fit(X, y, classes=y)),
        "bytes": len(pickle.dumps(part)),
        "merge": best(lambda: part + part),
    }


def cluster_estimate(what: str, of: dict[str, float]) -> str:
    """The estimated time of a fit on a cluster, from its parts."""
    share = math.ceil(math.ceil(ROWS_OF_ESTIMATE / GROUP_ROWS) / WORKERS)
    rounds = math.ceil(math.log2(WORKERS))
    counting, merging = share * (of["read"] + of["count"] + of["merge"]), rounds * of["merge"]
    return (
        f"{what}: {ROWS_OF_ESTIMATE:,} samples on {WORKERS} workers are {share} partitions each: {counting:.1f} s to "
        f"read, count and add them, then {rounds} rounds of merging in {1e3 * merging:.1f} ms and "
        f"{(WORKERS - 1) * of['bytes'] / 1e6:.1f} MB sent"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="folder of the generated files, written if empty")
    parser.add_argument("--runs", type=int, default=2, help="number of runs, of which the best counts")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        kind, what = given.measure.split()
        print(json.dumps({"whole": measured, "pieces": pieces}[kind](given.folder, what)))
        return
    import pyarrow.dataset as ds

    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("*.parquet")):
            generate(folder, given.rows, given.columns)
        size = sum(path.stat().st_size for path in folder.glob("*.parquet")) / 2**30
        n_samples = ds.dataset(folder).count_rows()
        print(f"{n_samples:,} × {given.columns} samples, {CLASSES} classes, {size:.2f} GB of Parquet")
        structures = ("naive_bayes", "complete")
        whats = (*SCANS, *structures)

        def alone(measure: str) -> dict[str, float]:
            words = [sys.executable, __file__, "--folder", str(folder), "--measure", measure]
            one = ONE_THREAD if measure.startswith("pieces") else {}
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | one)
            return json.loads(done.stdout)

        alone("whole scan")  # fills the file cache
        runs = [{what: alone(f"whole {what}") for what in whats} for _ in range(given.runs)]
        print("| what | seconds | × scan | × buffered | CPU seconds | × scan | × buffered | GB of memory |")
        print("|---|---|---|---|---|---|---|---|")
        best = {(what, key): min(run[what][key] for run in runs) for what in whats for key in ("seconds", "busy")}
        for what in whats:
            cells = " | ".join(
                f"{best[what, key]:.2f} | " + " | ".join(f"{best[what, key] / best[scan, key]:.2f}" for scan in SCANS)
                for key in ("seconds", "busy")
            )
            print(f"| {what} | {cells} | {max(run[what]['memory'] for run in runs):.2f} |")
        parts = {what: alone(f"pieces {what}") for what in structures}
        print(f"\n| a partition of {GROUP_ROWS:,} samples | ms to read | ms to count | kB sent | ms to merge two |")
        print("|---|---|---|---|---|")
        for what, of in parts.items():
            read, count, merge = (1e3 * of[key] for key in ("read", "count", "merge"))
            print(f"| {what} | {read:.1f} | {count:.1f} | {of['bytes'] / 1e3:.1f} | {merge:.2f} |")
        print()
        for what, of in parts.items():
            print(cluster_estimate(what, of))
    (one, one_busy), (two, two_busy) = two_workers()
    print(f"\ncomplete, {HELD:,} × 400 in the memory of dask workers:")
    print(f"time: {one:.2f} s on one worker, {two:.2f} s on two: {one / two:.2f} ×")
    print(
        f"CPU time of the busiest worker: {one_busy:.2f} s of one, {two_busy:.2f} s of two: {one_busy / two_busy:.2f} ×"
    )


if __name__ == "__main__":
    main()
