"""Class frequencies from 200 samples without labels: error beside EMQ, and coverage of the intervals.

``python bench/prevalence.py --peer PYTHON`` prints the table; ``--write`` also writes docs/bench-prevalence.md. PYTHON
is that of an environment with quapy; without it EMQ is the plain EM written here.
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

from cgnlearn import CGNClassifierCV
from cgnlearn.estimators.class_prior import estimated, refuse_other_change
from cgnlearn.logistic.recalibration import bounded
from cgnlearn.networks.unusual import UNUSUAL
from measuring import parser, publish, versions

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = {"waveform": ("uci/waveform.csv", {"0"}), "page blocks": ("uci/page-blocks.csv", {"2", "3", "4", "5"})}
SETS["credit approval"] = ("mixed/credit-approval.csv", {"+"})
PREVALENCES = 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95
N, N_DRAWS, LEVEL, TRAINED = 200, 10, 0.9, 1 / 3
QUAPY = """
import sys
import numpy as np
from quapy.method.aggregative import EMQ
with np.load(sys.argv[1]) as given:
    found = [EMQ.EM(prior, proba)[0][1] for prior, proba in zip(given["prior"], given["proba"])]
np.save(sys.argv[2], found)
"""


def drawn(name: str, division: int, folder: Path) -> list[dict]:
    """Samples of another prevalence: what is estimated, whether it is refused, and what EMQ is given."""
    warnings.simplefilter("ignore")
    file, positive = SETS[name]
    table = pd.read_csv(folder / file, dtype={"class": str})
    X = table.drop(columns="class")
    words = [column for column in X if not pd.api.types.is_numeric_dtype(X[column])]
    X = X.astype(dict.fromkeys(words, "category"))
    y = table["class"].isin(positive).astype(int).to_numpy()
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=TRAINED, stratify=y, random_state=division)
    model = CGNClassifierCV().fit(X_train, y_train)
    log_proba, typicality = model.predict_log_proba(X_test), model.typicality(X_test)
    rng, found = np.random.default_rng([division, len(name)]), []
    for prevalence in PREVALENCES:
        for _ in range(N_DRAWS):
            happened = rng.random(N) < prevalence
            of_classes = [rng.choice(np.flatnonzero(y_test == c), (happened == c).sum(), replace=False) for c in (0, 1)]
            rows = np.concatenate(of_classes)
            log_ratio = bounded(log_proba[rows]) - model.class_log_prior_
            of = estimated(log_ratio, model.classes_, LEVEL, model._held_out)
            try:
                refuse_other_change(typicality[rows], model._ranking.expected_share(UNUSUAL, of.value))
                refused = False
            except ValueError:
                refused = True
            covered = of.low[1] <= prevalence <= of.high[1]
            one = {"set": name, "prevalence": prevalence, "value": of.value[1], "covered": covered, "refused": refused}
            found.append(one | {"prior": np.exp(model.class_log_prior_), "proba": np.exp(log_proba[rows])})
    return found


def em(prior: np.ndarray, proba: np.ndarray) -> float:
    """Saerens, Latinne and Decaestecker (2002), without a pseudo-count."""
    now = prior
    for _ in range(1000):
        weighted = proba * (now / prior)
        before, now = now, (weighted / weighted.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(now - before).max() < 1e-8:
            break
    return float(now[1])


def of_quapy(python: Path, rows: list[dict]) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(given, prior=[row["prior"] for row in rows], proba=[row["proba"] for row in rows])
        subprocess.run([str(python), "-c", QUAPY, str(given), str(found)], check=True)
        return np.load(found)


def table(n_divisions: int, jobs: int, folder: Path, python: Path | None) -> str:
    cells = [(name, i) for name in SETS for i in range(n_divisions)]
    parts = Parallel(n_jobs=jobs)(delayed(drawn)(*cell, folder) for cell in cells)
    rows = [row for part in parts for row in part]
    frame = pd.DataFrame(rows)
    frame["peer"] = [em(row["prior"], row["proba"]) for row in rows]
    peer = "the plain EM of the bench"
    if python is not None:
        own, frame["peer"] = frame["peer"], of_quapy(python, rows)
        peer = (
            f"quapy's, from which the plain EM of the bench differs by {np.abs(own - frame['peer']).max():.0e} at most"
        )
    frame["error"], frame["of_peer"] = abs(frame.value - frame.prevalence), abs(frame.peer - frame.prevalence)

    def line(of, *names):
        means = of[["error", "of_peer"]].mean()
        shares = 100 * of[["covered", "refused"]].mean()
        cells = f"{means.error:.4f} | {means.of_peer:.4f} | {shares.covered:.0f} | {shares.refused:.0f}"
        return f"| {' | '.join(names)} | {cells} |"

    lines = [line(of, name, f"{100 * at:.0f}%") for (name, at), of in frame.groupby(["set", "prevalence"], sort=False)]
    whole = [line(of, f"**{name}**", "all") for name, of in frame.groupby("set", sort=False)]
    shares = 100 * frame.groupby("set").covered.mean()
    made = "python bench/prevalence.py --peer PYTHON --write" if python else "python bench/prevalence.py --write"
    return "\n".join(
        [
            "# Class frequencies without labels",
            "",
            f"Made by `{made}`: {N} samples from a place of a given prevalence, {N_DRAWS} times from each of "
            f"{n_divisions} divisions of three sets, of which a third is for training of the mixture: "
            f"{n_divisions * N_DRAWS} estimates a row. EMQ is {peer}, on the same probabilities. {versions()}",
            "",
            f"The mean absolute error is {frame.error.mean():.4f}, that of EMQ {frame.of_peer.mean():.4f}. 90% "
            f"intervals cover {100 * frame.covered.mean():.0f}%, by set {shares.min():.0f} to {shares.max():.0f}% "
            "(wanted: 85 to 95). "
            "Estimates that `estimate_class_prior` refuses, as too many samples are unusual, are counted in all "
            "columns but shown in the last.",
            "",
            "The number of positive samples is drawn as well. Intervals know of the draw of samples and, from held-out "
            "training samples, that the model itself was learned from few.",
            "",
            "| set | true prevalence | mean absolute error | of EMQ | covered by 90% intervals, % | refused, % |",
            "|---|---:|---:|---:|---:|---:|",
            *whole,
            *lines,
            "",
        ]
    )


def main():
    options = parser(__doc__, "bench-prevalence.md")
    options.add_argument("--divisions", type=int, default=10)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--data-dir", type=Path, default=SHARED)
    options.add_argument("--peer", type=Path, help="Python of an environment with quapy")
    chosen = options.parse_args()
    text = table(chosen.divisions, chosen.jobs, chosen.data_dir, chosen.peer)
    publish(text, "bench-prevalence.md", write=chosen.write)


if __name__ == "__main__":
    main()
