"""The studies of `cgnlearn demo`, on data that need no file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from sklearn.datasets import load_iris, load_wine
from sklearn.dummy import DummyClassifier

from cgnlearn import CGNClassifier
from cgnlearn.data.splits import repeated_splits, subsampled
from cgnlearn.datasets import make_balance_scale, make_waveform
from cgnlearn.evaluation.chosen import explained
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.plots.style import GREY, INK, without_frame
from cgnlearn.reporting.album import WHOLE, Album
from cgnlearn.spectra import RawSpectra, make_raw_spectra
from cgnlearn.spectra.peaks import region_ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Comparison(NamedTuple):
    """Maximum likelihood and Bayesian averaging of one structure on one data set."""

    structure: str
    study: Study

    @property
    def n_train(self) -> int:
        return len(self.study.splits[0].train)


def comparisons() -> Iterator[Comparison]:
    """Four data sets of the paper, with all training samples and with a fifth of them, still without results."""
    sets = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "balance scale": make_balance_scale(),
        "waveform": make_waveform(2000, random_state=0),
    }
    for name, (X, y) in sets.items():
        full = repeated_splits(y)
        few = [subsampled(split, y, 0.2, seed=number) for number, split in enumerate(full)]
        for structure in ("naive_bayes", "complete"):
            models = {"ml": CGNClassifier(structure, estimation="ml"), "bayes": CGNClassifier(structure)}
            for splits in (full, few):
                yield Comparison(structure, Study(name, X, y.astype(str), models, splits))


def _study(name: str, X: Any, y: NDArray[np.str_], models: dict[str, Any], n_folds: int, **more: Any) -> Study:
    settings = {"Cross-validation": f"stratified, {n_folds} folds, seed 0"} | more.pop("settings")
    splits = repeated_splits(y, n_folds=n_folds, groups=more.get("groups"))
    return Study(name, X, y, models, splits, settings=settings, **more)


def wine_study() -> Study:
    """The study of three cultivars of wine, still without results."""
    wine = load_wine(as_frame=True)
    names = np.array([str(name).replace("class_", "cultivar ") for name in wine.target_names])
    models = {
        f"{structure} {estimation}": CGNClassifier(structure, estimation=estimation)
        for structure in ("naive_bayes", "tan", "complete")
        for estimation in ("ml", "bayes")
    }
    models[BASELINE] = DummyClassifier(strategy="prior")
    settings = {"Data": "178 wines of three cultivars, 13 measurements (UCI, as in scikit-learn)"}
    return _study("wine", wine.data, names[wine.target.to_numpy()], models, 10, settings=settings)


def raw_spectra() -> RawSpectra:
    """Simulated spectra, two for each sample."""
    return make_raw_spectra(60, n_replicates=2, n_points=12_000, mass_range=(2_000.0, 12_000.0), random_state=0)


def spectra_study(X: Any, y: NDArray[np.str_], models: dict[str, Any], truth: RawSpectra, **more: Any) -> Study:
    """The study of the simulated spectra, read from files, still without results."""
    n_markers = int((truth.effects != 0).sum())
    data = f"simulated raw spectra, {len(truth.peaks)} peaks of which {n_markers} differ between the classes"
    settings = {"Data": data, "Features": "read from files, preset maldi, bins of 10 m/z"}
    along = {"positions": X.columns.to_numpy(float), "marks": truth.peaks[truth.effects != 0]}
    return _study("simulated spectra", X, y, models, 5, positive="case", settings=settings, **along, **more)


def planted_truth(study: Study) -> str:
    """Number of true markers among the regions with the largest evidence."""
    evidence = explained(study)
    assert evidence is not None
    assert study.positions is not None
    assert study.marks is not None
    rank = region_ranks(study.positions, study.X.to_numpy().mean(axis=0), evidence.for_truth, study.marks)
    n = len(rank)
    return (
        f"of {n} planted markers {int((rank <= n).sum())} are among the {n} regions with the largest evidence, "
        f"{int((rank <= 2 * n).sum())} among {2 * n}"
    )


# ---- the picture of the comparisons


def comparison_figure(compared: Sequence[Comparison], album: Album) -> Markup:
    """Log losses of maximum likelihood and of Bayesian averaging, a line for each set, structure and size."""
    losses = []
    for part in compared:
        by_model = {summary.model: summary for summary in part.study.summaries}
        losses.append(
            [None if of.n_without else of.metrics["log_loss"].mean for of in (by_model["ml"], by_model["bayes"])]
        )
    known = [value for pair in losses for value in pair if value is not None and np.isfinite(value)]
    low, high = max(min(known, default=0.01) / 1.5, 1e-4), max(known, default=1.0) * 4

    def draw(ax: Axes) -> None:
        for row, (ml, bayes) in enumerate(losses):
            if ml is not None and bayes is not None:
                ax.plot([ml, bayes], [row, row], color=GREY, linewidth=1, zorder=1)
            if ml is None:
                ax.text(high, row, "ML does not exist", ha="right", va="center", fontsize=8, color=GREY)
        for column, (name, look) in enumerate(
            (("maximum likelihood", {"facecolors": "none", "edgecolors": GREY}), ("Bayesian averaging", {"color": INK}))
        ):
            rows = [row for row, pair in enumerate(losses) if pair[column] is not None]
            ax.scatter([losses[row][column] for row in rows], rows, 26, zorder=2, label=name, **look)  # type: ignore[arg-type]
        names = [f"{part.study.name}, {part.structure}, {part.n_train:,}" for part in compared]
        ax.set_yticks(range(len(names)), names, fontsize=8.5)
        ax.invert_yaxis()
        ax.set(xscale="log", xlim=(low, high), xlabel="log loss of held-out samples (lower is better)")
        ax.xaxis.set_major_formatter("{x:g}")  # formulas are not parsed
        ax.xaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0)
        without_frame(ax)

    return album.add("ml-and-bayes", "Log losses of ML and Bayes", draw, (WHOLE, 0.8 + 0.24 * len(losses)))[0]
