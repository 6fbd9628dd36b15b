"""How often calibration figures hold: level and power of the test, coverage of intervals and of the band.

``python bench/calibration.py`` prints the table; ``--write`` also writes docs/bench-calibration.md.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit

from cgnlearn.evaluation.calibration import calibration
from cgnlearn.evaluation.calibration_curve import calibration_curve
from measuring import parser, publish, versions

SIZES = 40, 100, 400
MODELS = {"half of the samples": (0.0, 1.5), "one in five": (-2.0, 1.5), "half, almost separated": (0.0, 3.0)}
SLOPE = 0.5


def counted(n: int, centre: float, spread: float, seeds: range) -> np.ndarray:
    """Numbers of simulations in which each statement holds."""
    found = np.zeros(7)
    for seed in seeds:
        rng = np.random.default_rng([n, int(10 * spread), int(-10 * centre), seed])
        x = rng.normal(centre, spread, n)
        happened = rng.random(n) < expit(x)
        right = calibration(x, happened)
        found[0] += right.is_flagged
        found[1] += right.slope is not None and right.slope.low <= 1 <= right.slope.high
        found[2] += right.intercept.low <= 0 <= right.intercept.high
        found[3] += right.observed_expected.low <= 1 <= right.observed_expected.high
        found[4] += not calibration_curve(expit(x), happened).outside.any()
        extreme = calibration(x, rng.random(n) < expit(SLOPE * x))
        found[5] += extreme.is_flagged
        found[6] += extreme.slope is not None and extreme.slope.low <= SLOPE <= extreme.slope.high
    return found


def table(n_repetitions: int, jobs: int) -> str:
    cells = [(n, name) for n in SIZES for name in MODELS]
    parts = [range(start, min(start + 50, n_repetitions)) for start in range(0, n_repetitions, 50)]
    run = Parallel(n_jobs=jobs)(delayed(counted)(n, *MODELS[name], part) for n, name in cells for part in parts)
    shares = 100 * np.array(run).reshape(len(cells), len(parts), 7).sum(axis=1) / n_repetitions
    rows = [
        f"| {n} | {name} | {' | '.join(f'{s:.1f}' for s in own)} |"
        for (n, name), own in zip(cells, shares, strict=True)
    ]
    error = 100 * np.sqrt(0.05 * 0.95 / n_repetitions)
    lines = [
        "# Calibration: level, power and coverage",
        "",
        f"Made by `python bench/calibration.py --write`: {n_repetitions} simulations a row, of samples with normal log "
        f"odds whose outcomes are drawn from them, and from log odds times {SLOPE}. Per cent of the simulations; the "
        f"standard error of 5 or 95 is {error:.1f}. {versions()}",
        "",
        f"A calibrated model is flagged in {shares[:, 0].min():.1f} to {shares[:, 0].max():.1f}% (wanted: 3 to 7). A "
        f"slope of {SLOPE} is found in {shares[3:6, 5].min():.0f} to {shares[3:6, 5].max():.0f}% with 100 samples "
        f"(wanted: 60). Intervals of the slope cover {shares[:, [1, 6]].min():.1f} to {shares[:, [1, 6]].max():.1f}%, "
        f"those of the intercept {shares[:, 2].min():.1f} to {shares[:, 2].max():.1f}% (wanted: 93 to 97).",
        "",
        "| samples | the class has | flagged, calibrated | slope 1 covered | intercept covered | "
        f"observed/expected covered | curve within the band | flagged, slope {SLOPE} | slope {SLOPE} covered |",
        f"|---:|---|{'---:|' * 7}",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def main():
    options = parser(__doc__, "bench-calibration.md")
    options.add_argument("--repetitions", type=int, default=1500)
    options.add_argument("--jobs", type=int, default=1)
    chosen = options.parse_args()
    publish(table(chosen.repetitions, chosen.jobs), "bench-calibration.md", write=chosen.write)


if __name__ == "__main__":
    main()
