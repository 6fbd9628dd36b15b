"""Shared by all benchmarks: alternating measurements of time, peak memory, versions and output."""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import sklearn

import cgnlearn

DOCS = Path(__file__).resolve().parents[1] / "docs"


def seconds(*works, repeats=5):
    """The best time of each function; they alternate, so that other load affects all of them."""
    best = np.full(len(works), np.inf)
    for _ in range(repeats):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


PEAK = """
import sys, threading, time
sys.path.insert(0, {here!r})
{setup}

def megabytes():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * 4096 / 2**20

def sample():
    global peak
    while True:
        peak = max(peak, megabytes())
        time.sleep(0.001)

before = peak = megabytes()
threading.Thread(target=sample, daemon=True).start()
{work}
print(peak - before)
"""


def peak_megabytes(setup, work):
    """Increase of memory while ``work`` runs after ``setup``, in a separate process, sampled each millisecond."""
    code = PEAK.format(here=str(Path(__file__).parent), setup=setup, work=work)
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def versions():
    """The versions of the software."""
    return (
        f"cgnlearn {cgnlearn.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"numba {numba.__version__} ({numba.config.NUMBA_NUM_THREADS} threads, compiled code in the cache), "
        f"Python {platform.python_version()}, {platform.machine()}."
    )


def parser(about, document):
    """The command line common to all benchmarks."""
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--write", action="store_true", help=f"write docs/{document}")
    return options


def publish(text, document, *, write):
    """Print the tables and, if asked, write them into the documentation, without the limits we set ourselves."""
    print(text)
    if write:
        (DOCS / document).write_text(without_limits(text), encoding="utf-8")


def without_limits(text):
    """The same Markdown without our aims: columns called limit with the verdicts beside them, which have no heading,
    lines that end in a verdict, and what is wanted, in brackets."""
    lines, dropped = [], []
    for line in re.sub(r" \(wanted: [^)]*\)|^- .*, (met|missed)\n", "", text, flags=re.MULTILINE).split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            dropped = []
        elif "limit" in cells:
            at = cells.index("limit")
            dropped = [at, at + 1] if cells[at + 1] == "" and at + 2 < len(cells) else [at]
        lines.append("|".join(c for i, c in enumerate(line.split("|")) if i not in dropped) if dropped else line)
    return "\n".join(lines)
