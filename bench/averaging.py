"""Averages over structures, beside one structure or one path of them.

``python bench/averaging.py`` prints the tables; ``--write`` also puts them into docs/bench-averaging.md.
"""

from __future__ import annotations

from cgnlearn import BandAverage, CGNClassifier
from measuring import parser, publish, seconds, versions
from ordered import N_TEST, data, path

K_MAX = 50


def lines_of_band_average():
    X, y = data(194 + N_TEST, 11_300)

    def average():
        return CGNClassifier(BandAverage(K_MAX)).fit(X[:-N_TEST], y[:-N_TEST]).predict_joint_log_proba(X[-N_TEST:])

    bands = path(X, y, k_max=K_MAX, structures=("band",))
    average(), bands()  # compile
    ours, theirs = seconds(average, bands, repeats=9)
    ratio, limit = ours / theirs, 3.5
    verdict = "met" if ratio <= limit else "missed"
    yield "| fit and predict | ms | beside it | ms | ratio | at most | |"
    yield "|---|---:|---|---:|---:|---:|---|"
    yield (
        f"| `BandAverage({K_MAX})`, 194 + {N_TEST} rows × 11,300, 2 classes | {1e3 * ours:.0f} "
        f"| `ordered_path` of bands, k up to {K_MAX} | {1e3 * theirs:.0f} | {ratio:.2f} | {limit} | {verdict} |"
    )


def report():
    lines = [
        "# Averages over structures",
        "",
        "Made by `python bench/averaging.py --write`: best times in one run, both sides taking turns.",
        versions(),
        "",
        *lines_of_band_average(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = parser(__doc__, "bench-averaging.md").parse_args()
    publish(report(), "bench-averaging.md", write=arguments.write)
