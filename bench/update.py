"""The ladder of `update` on heart disease: a model of one place at another one, and at a third after an update.

``python bench/update.py`` prints the table; ``--write`` also writes docs/bench-update.md.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import log_loss

import heart
from cgnlearn import CGNClassifier, CGNClassifierCV, update
from cgnlearn.estimators.update import _weights, assembled, ladder_of
from measuring import parser, publish, versions

SIZES = 20, 50, 100
MODELS = {
    "naive Bayes": lambda: CGNClassifier("naive_bayes"),
    "naive Bayes, power by leave-one-out": lambda: CGNClassifier("naive_bayes", likelihood_power="cv"),
    "TAN": lambda: CGNClassifier("tan"),
    "mixture": CGNClassifierCV,
}
# All 270 patients of Statlog are among the 303 of Cleveland: straight from there, the model knows the test samples.
PLACES = {
    "Cleveland → Hungary": ("cleveland", "hungarian"),
    "Hungary → Statlog": ("hungarian", "statlog"),
    "Cleveland → Hungary → Statlog": ("cleveland", "hungarian", "statlog"),
}


def scores(model_name: str, pair: str, n: int, division: int, folder: Path) -> dict[str, float]:
    """Log losses on the samples that are not used: of both updates, and of every step of the ladder alone."""
    warnings.simplefilter("ignore")
    old, *between, (X, y) = (heart.place(name, folder) for name in PLACES[pair])
    rng = np.random.default_rng([n, division])
    order = rng.permutation(len(y))
    used, rest = order[:n], order[n:]
    model = MODELS[model_name]().fit(*old)
    for X_between, y_between in between:
        rows = rng.permutation(len(y_between))[:n]
        model = update(model, X_between.iloc[rows], y_between.iloc[rows])
    ladder = ladder_of(model, X.iloc[used], y.iloc[used])
    n_steps = len(ladder.steps)
    updated = {how: assembled(ladder, _weights(ladder, how, 0)) for how in ("mix", "pick")}
    updated |= {step.name: assembled(ladder, np.eye(n_steps)[i]) for i, step in enumerate(ladder.steps)}
    return {
        name: log_loss(y.iloc[rest], of.predict_proba(X.iloc[rest]), labels=of.classes_) for name, of in updated.items()
    }


def table(n_divisions: int, jobs: int, folder: Path) -> str:
    cells = [(model, pair, n) for model in MODELS for pair in PLACES for n in SIZES]
    run = Parallel(n_jobs=jobs)(delayed(scores)(*cell, i, folder) for cell in cells for i in range(n_divisions))
    means = [pd.DataFrame(run[i * n_divisions : (i + 1) * n_divisions]).mean() for i in range(len(cells))]
    rows, behind = [], []
    for (model, pair, n), of in zip(cells, means, strict=True):
        steps = of.drop(["mix", "pick"])
        best = steps.idxmin()
        behind.append((of["mix"] - steps.min(), of["pick"] - steps.min()))
        named = ("as it is", "class prior", "intercepts and slope", "new samples alone")
        shown = [*(f"{of[name]:.3f}" if name in of else "—" for name in named), f"{steps.min():.3f}"]
        cells_of = [*shown, best, f"{of['mix']:.3f}", f"{of['pick']:.3f}"]
        rows.append(f"| {model} | {pair} | {n} | {' | '.join(cells_of)} |")
    mix, pick = np.array(behind).T
    of_size = mix.reshape(len(MODELS), len(PLACES), len(SIZES)).mean(axis=1)
    lines = [
        "# Updates: heart disease at another place",
        "",
        f"Made by `python bench/update.py --write`: {n_divisions} random divisions a row. A model of one place is "
        "updated with 20, 50 or 100 samples of another one (ten common columns, outcome yes or no) and scored on the "
        "others: mean log loss. In the chain of three places it is updated with as many samples of the second before "
        "it comes to the third; the 270 patients of Statlog are among those of Cleveland, so that there the model as "
        f"it is has an advantage that no new place would give. {versions()}",
        "",
        f"`update` is {mix.mean():+.3f} nats from the best step of the ladder in hindsight on average over the rows, "
        f"and at most {of_size.max():+.3f} on average over the places, for each model and number of samples (wanted: "
        f"at most +0.010); {mix.max():+.3f} in the worst row. Picking one step is {pick.mean():+.3f} on average and "
        f"{pick.max():+.3f} in the worst row. The best step is that with the lowest mean over the divisions.",
        "",
        "| model | places | new samples | as it is | class prior | intercepts and slope | new samples alone | "
        'best step | which | `update` | `combine="pick"` |',
        f"|---|---|---:|{'---:|' * 5}---|---:|---:|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def main():
    options = parser(__doc__, "bench-update.md")
    options.add_argument("--divisions", type=int, default=10)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--data", type=Path, default=heart.SHARED, help="folder of the three files")
    chosen = options.parse_args()
    publish(table(chosen.divisions, chosen.jobs, chosen.data), "bench-update.md", write=chosen.write)


if __name__ == "__main__":
    main()
