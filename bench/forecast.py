"""Times of default fits of the self-tuning estimator beside their forecasts, and their peak memory.

``python bench/forecast.py`` prints the table; ``--write`` also puts it into docs/bench-forecast.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from measuring import parser, publish, versions

# Name: samples, columns, classes, categorical columns, their levels, share of missing values, ordered.
TABLES = {
    "1,000 × 500": (1000, 500, 2, 0, 0, 0.0, False),
    "5,000 × 200": (5000, 200, 2, 0, 0, 0.0, False),
    "20,000 × 50": (20_000, 50, 2, 0, 0, 0.0, False),
    "200 × 20,000": (200, 20_000, 2, 0, 0, 0.0, False),
    "500 × 2,000, ordered": (500, 2000, 2, 0, 0, 0.0, True),
    "100 × 5,000, ordered": (100, 5000, 2, 0, 0, 0.0, True),
    "300 × 100, 30 % missing": (300, 100, 2, 0, 0, 0.3, False),
    "1,000 × 30, 10 % missing": (1000, 30, 2, 0, 0, 0.1, False),
    "5,000 × 30, 10 % missing": (5000, 30, 2, 0, 0, 0.1, False),
    "500 × 30 categorical, 20 levels": (500, 30, 2, 30, 20, 0.0, False),
    "2,000 × (15 + 15 categorical)": (2000, 30, 2, 15, 4, 0.0, False),
    "the same, 10 % missing": (2000, 30, 2, 15, 4, 0.1, False),
    "100 × 10, 20 classes": (100, 10, 20, 0, 0, 0.0, False),
    "2,000 × 20, 50 classes": (2000, 20, 50, 0, 0, 0.0, False),
    "10,000 × 5, 100 classes": (10_000, 5, 100, 0, 0, 0.0, False),
    "10,000 × 5, 200 classes": (10_000, 5, 200, 0, 0, 0.0, False),
}
MEASURED = """
import json, resource, sys, time, warnings
sys.path.insert(0, {here!r})
warnings.simplefilter("ignore")
from forecast import data
from cgnlearn import CGNClassifierCV
from cgnlearn.estimators.mixture_classifier import expected_seconds
X, y, categorical, ordered = data(*{table!r})
few = CGNClassifierCV(categorical_features=categorical, ordered=ordered)
few.fit(X[:60, :40], y[:60])  # compile
model = CGNClassifierCV(categorical_features=categorical, ordered=ordered)
forecast = expected_seconds(model, X, y)
start = time.perf_counter()
model.fit(X, y)
print(json.dumps([forecast, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""


def data(n, p, n_classes, n_categorical, n_levels, missing, ordered):
    """Simulated samples: the first columns depend on the class, categorical ones come last."""
    import numpy as np

    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, p))
    related = min(p, 6)
    X[:, :related] += rng.normal(size=(n_classes, related))[y]
    categorical = list(range(p - n_categorical, p))
    for column in categorical:
        X[:, column] = np.where(rng.random(n) < 0.2, y % n_levels, rng.integers(0, n_levels, n))
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, categorical or None, ordered


def measured(table):
    """Forecast and time in seconds, and peak memory in GB, in a process of its own."""
    code = MEASURED.format(here=str(Path(__file__).parent), table=table)
    return json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def report():
    lines = [
        "# Forecasts of time and memory",
        "",
        "Made by `python bench/forecast.py --write`: default fits of `CGNClassifierCV` to simulated tables, one each.",
        versions(),
        "",
        "| table | forecast, s | fit, s | forecast / fit | peak memory, GB |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, table in TABLES.items():
        forecast, took, peak = measured(table)
        lines.append(f"| {name} | {forecast:.1f} | {took:.1f} | {forecast / took:.2f} | {peak:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-forecast.md").parse_args()
    publish(report(), "bench-forecast.md", write=arguments.write)
