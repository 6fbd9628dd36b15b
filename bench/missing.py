"""Missing values: cross-validation of incomplete tables, and complete ones with cells removed at prediction.

``python bench/missing.py --data-dir ../shared/data`` prints the tables; ``--write`` also puts them and the picture
into docs/missing.md.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cgnlearn import CGNClassifier, Structure
from cgnlearn.datasets import load
from cgnlearn.evaluation.metrics import ACCURACY, LOG_LOSS
from measuring import DOCS, parser, seconds, versions, without_limits

SETS = (
    *(("mixed", name) for name in ("heart-hungarian", "hepatitis", "hypothyroid")),
    *(("cc18", name) for name in ("eucalyptus", "cylinder-bands", "MiceProtein", "dresses-sales")),
)
FEWEST = 10  # samples of a class, so that every fold has one
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
N_SEEDS = 10
LIMITS = {"naive Bayes": 20, "complete": 20}
HEADING = "## Measured"


def table(folder, name, data_dir):
    """A data set as a data frame with categorical columns, and its classes."""
    if folder == "cc18":
        stored = np.load(Path(data_dir, folder, f"{name}.npz"), allow_pickle=False)
        X, y = pd.DataFrame(stored["X"].astype(float)), stored["y"]
        X.columns = [f"x{i}" for i in range(X.shape[1])]
        for i in stored["cat"].tolist():
            X[f"x{i}"] = X[f"x{i}"].map("{:.0f}".format, na_action="ignore").astype(object).astype("category")
    else:
        frame = pd.read_csv(Path(data_dir, folder, f"{name}.csv"))
        described = json.loads(Path(data_dir, folder, f"{name}.schema.json").read_text())
        y = frame.pop("class").to_numpy()
        X = frame
        for column in described["features"][:-1]:
            if column["type"] == "discrete":
                X[column["name"]] = pd.Categorical(X[column["name"]], categories=column["values"])
    found, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, found[counts >= FEWEST])
    return X[kept].dropna(axis=1, how="all").reset_index(drop=True), y[kept]


def joined(X):
    """Complete over the continuous columns; discrete ones depend on the class only."""
    continuous = X.select_dtypes("number").columns.tolist()
    return Structure.jan([*([continuous] if continuous else []), *([c] for c in X.columns if c not in continuous)])


def logistic(imputer=None):
    """Logistic regression on imputed, scaled and dummy columns."""
    numbers = make_pipeline(imputer or SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True), OneHotEncoder(handle_unknown="ignore")
    )
    prepared = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (levels, make_column_selector(dtype_include="category")),
    )
    model = LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000, l1_ratios=(0,))
    return make_pipeline(prepared, model)


def contestants(X):
    ours = {"naive Bayes": "naive_bayes", "TAN": "tan", "joint": joined(X)}
    found = {
        f"{name}{', indicator' if indicator else ''}": CGNClassifier(
            structure, likelihood_power="cv", missing_indicator=indicator
        )
        for name, structure in ours.items()
        for indicator in (False, True)
    }
    found["HistGradientBoosting"] = HistGradientBoostingClassifier(random_state=0)
    found["logistic regression, imputed"] = logistic()
    return found


def cross_validated(model, X, y):
    """Log loss and accuracy over five folds."""
    log_proba, true = [], []
    classes = np.unique(y)
    for inside, outside in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model.fit(X.iloc[inside], y[inside])
        log_proba.append(np.log(model.predict_proba(X.iloc[outside])))
        true.append(np.searchsorted(classes, y[outside]))
    return tuple(score(np.concatenate(log_proba), np.concatenate(true)) for score in (LOG_LOSS, ACCURACY))


def comparison(data_dir):
    lines, names = [], None
    for folder, name in SETS:
        X, y = table(folder, name, data_dir)
        found = {who: cross_validated(model, X, y) for who, model in contestants(X).items()}
        if names is None:
            names = list(found)
            lines += [
                f"| data set | samples × columns, missing | {' | '.join(names)} |",
                "|---|---|" + "---:|" * len(names),
            ]
        best = [round(best([score[i] for score in found.values()]), 3) for i, best in enumerate((min, max))]
        cells = []
        for who in names:
            texts = [f"{found[who][0]:.3f}", f"{100 * found[who][1]:.1f} %"]
            texts = [f"**{text}**" if round(found[who][i], 3) == best[i] else text for i, text in enumerate(texts)]
            cells.append(" / ".join(texts))
        about = f"{X.shape[0]} × {X.shape[1]}, {100 * X.isna().to_numpy().mean():.1f} %"
        lines.append(f"| {name} | {about} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def curve(name, data_dir):
    """Mean log loss over seeds of each method at every share of removed cells, and the standard errors of the paired
    differences from the first method.
    """
    loaded = load(name, data_dir=data_dir)
    X, y = np.asarray(loaded.data), np.asarray(loaded.target)
    found = np.empty((len(METHODS), len(SHARES), N_SEEDS))
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
        true = np.searchsorted(np.unique(y_train), y_test)
        order = rng.random(X_test.shape)  # cells removed at one share are removed at the larger ones too
        predictors = [fit(X_train, y_train) for fit in METHODS.values()]
        for j, share in enumerate(SHARES):
            incomplete = np.where(order < share, np.nan, X_test)
            for i, predict in enumerate(predictors):
                found[i, j, seed] = LOG_LOSS(predict(incomplete), true)
    return found.mean(axis=2), (found - found[0]).std(axis=2, ddof=1) / np.sqrt(N_SEEDS)


def integrated(structure):
    return lambda X, y: CGNClassifier(structure, sharing="cv", likelihood_power="cv").fit(X, y).predict_log_proba


def imputed(structure):
    def fit(X, y):
        model, imputer = CGNClassifier(structure, sharing="cv", likelihood_power="cv").fit(X, y), SimpleImputer().fit(X)
        return lambda incomplete: model.predict_log_proba(imputer.transform(incomplete))

    return fit


def logistic_imputed(imputer):
    def fit(X, y):
        model = LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000, l1_ratios=(0,))
        return make_pipeline(imputer, StandardScaler(), model).fit(X, y).predict_log_proba

    return fit


METHODS = {
    "complete, integrated out": integrated("complete"),
    "complete, means imputed": imputed("complete"),
    "naive Bayes, integrated out": integrated("naive_bayes"),
    "naive Bayes, means imputed": imputed("naive_bayes"),
    "logistic regression, means imputed": logistic_imputed(SimpleImputer()),
    "logistic regression, regressions imputed": logistic_imputed(IterativeImputer(random_state=0)),
}


def draw(curves, path):
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    from cgnlearn.plots.style import LINES, MARKERS

    figure, axes = plt.subplots(1, len(curves), figsize=(10, 4.2), layout="constrained")
    for ax, (name, (mean, _)) in zip(axes, curves.items(), strict=True):
        for i, method in enumerate(METHODS):
            style = {"color": LINES[i // 2], "marker": MARKERS[i], "linestyle": "--" if i % 2 else "-"}
            ax.plot(np.array(SHARES) * 100, mean[i], label=method, markersize=5, linewidth=1.4, **style)
        ax.set_title(name)
        ax.set_xlabel("cells removed at prediction, %")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("log loss")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def removal_table(curves):
    lines = []
    for name, (mean, error) in curves.items():
        lines += [f"| {name}: log loss | {' | '.join(f'{100 * share:.0f} %' for share in SHARES)} |"]
        lines += ["|---|" + "---:|" * len(SHARES)]
        for i, method in enumerate(METHODS):
            cells = [f"{mean[i, j]:.3f}" + (f" ± {error[i, j]:.3f}" if i else "") for j in range(len(SHARES))]
            best = mean[i] - mean.min(axis=0) < 5e-4
            cells = [f"**{cell}**" if best[j] else cell for j, cell in enumerate(cells)]
            lines.append(f"| {method} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def patterns():
    """Prediction times of samples with many patterns of missing values, relative to complete samples."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = rng.normal(size=(1000, 20)) + 0.3 * y[:, None]
    incomplete = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    n_patterns = len(np.unique(np.isnan(incomplete), axis=0))
    lines = [
        f"`predict_proba` of 1,000 samples × 20 columns with {n_patterns} patterns of missing values, compared with "
        "the same samples complete; the best of 8.",
        "",
        "| structure | complete, ms | incomplete, ms | ratio | limit |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, structure in {"naive Bayes": "naive_bayes", "complete": "complete", "TAN": "tan"}.items():
        model = CGNClassifier(structure).fit(X, y)
        whole, some = seconds(
            lambda model=model: model.predict_proba(X), lambda model=model: model.predict_proba(incomplete), repeats=8
        )
        lines.append(f"| {name} | {1e3 * whole:.1f} | {1e3 * some:.1f} | {some / whole:.1f} | {LIMITS.get(name, '')} |")
    return lines


def report(data_dir, curves):
    return "\n".join(
        [
            HEADING,
            "",
            "Made by `python bench/missing.py --data-dir ../shared/data --write`. " + versions(),
            "",
            "### Tables with missing values",
            "",
            "Log loss (lower is better) / accuracy, stratified five-fold cross-validation with the same folds for all.",
            'Ours have `likelihood_power="cv"`; *joint* is complete over the continuous columns, with the discrete '
            "ones as "
            "naive Bayes nodes; *indicator*: `missing_indicator=True`.",
            "HistGradientBoosting handles NaN itself, with its defaults; logistic regression is `LogisticRegressionCV` "
            "by log loss after median and most frequent imputation, scaling and dummies.",
            f"Classes of fewer than {FEWEST} samples, and hypothyroid's column TBG, which has no values and "
            "which HistGradientBoosting cannot read, are excluded. The best values are bold.",
            "",
            *comparison(data_dir),
            "",
            "### Cells removed at prediction",
            "",
            "Trained on two thirds of the samples, complete; a share of the cells of the others is removed at random. "
            f"Means over {N_SEEDS} splits, with standard errors of the paired differences from the first line. "
            'Ours have `sharing="cv"` and `likelihood_power="cv"`; the best values are bold.',
            "",
            "![Log loss against the share of cells removed](images/missing-curve.png)",
            "",
            *removal_table(curves),
            "### Many patterns",
            "",
            *patterns(),
        ]
    )


if __name__ == "__main__":
    options = parser(__doc__, "missing.md")
    options.add_argument("--data-dir", required=True, help="folder with mixed/, cc18/ and uci/")
    arguments = options.parse_args()
    warnings.simplefilter("ignore")  # of peers, and ours about families with few samples
    curves = {name: curve(name, arguments.data_dir) for name in ("wine", "pima-diabetes")}
    text = report(arguments.data_dir, curves).rstrip() + "\n"
    print(text)
    if arguments.write:
        draw(curves, DOCS / "images" / "missing-curve.png")
        page = DOCS / "missing.md"
        page.write_text(page.read_text(encoding="utf-8").split(HEADING)[0] + without_limits(text), encoding="utf-8")
