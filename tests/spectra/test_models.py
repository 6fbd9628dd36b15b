"""Pipelines from spectra to classes: saved and loaded, and the true markers recovered."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from cgnlearn import Band, CGNClassifier, load, save
from cgnlearn.data.splits import repeated_splits
from cgnlearn.evaluation.evidence import evidence_of
from cgnlearn.persistence import read_header
from cgnlearn.spectra import Peaks, make_raw_spectra, preset
from cgnlearn.spectra.peaks import region_ranks
from cgnlearn.spectra.presets import takes_spectra


@pytest.mark.parametrize(
    "steps",
    [
        preset("seldi").set_params(bin__width=20.0),
        preset("maldi", align=True).set_params(bin__width=20.0).set_output(transform="pandas"),
        preset("maldi").set_params(bin__width=20.0, normalise__method="pqn"),
        Peaks(),
    ],
)
def test_a_pipeline_is_saved_and_loaded(steps, tmp_path):
    made = make_raw_spectra(12, n_points=3000, random_state=0)
    spectra = list(made.spectra)
    model = make_pipeline(steps, CGNClassifier(Band(3), sharing=1.0)).fit(spectra, made.target)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_log_proba(spectra), model.predict_log_proba(spectra))
    assert takes_spectra(loaded)
    assert not takes_spectra(loaded[-1])
    header = read_header(tmp_path / "model.skops")
    assert header["n_features"] == model[-1].n_features_in_
    named = hasattr(model[-1], "feature_names_in_")
    assert header["feature_names"] == (list(model[:-1].get_feature_names_out()) if named else None)


def test_true_markers_are_among_the_regions_with_most_evidence():
    made = make_raw_spectra(100, n_points=8000, mass_range=(2000.0, 12_000.0), random_state=11)
    steps = preset("maldi").set_params(bin__width=10.0)
    X, y = steps.fit_transform(list(made.spectra)), made.target
    evidence = np.zeros(X.shape[1])
    model = CGNClassifier(Band("cv", k_max=10), sharing=1.0, likelihood_power="cv")
    for split in repeated_splits(y, n_folds=3):
        model.fit(X[split.train], y[split.train])
        true = np.searchsorted(model.classes_, y[split.test])
        evidence += evidence_of(model, X[split.test], model.predict_log_proba(X[split.test]), true).for_truth
    mz, mean = steps[-1].mz_, X.mean(axis=0)
    markers, others = made.peaks[made.effects != 0], made.peaks[made.effects == 0]
    ranks = region_ranks(mz, mean, evidence, markers)
    assert (ranks <= 2 * len(markers)).mean() >= 0.8
    assert np.median(region_ranks(mz, mean, evidence, others)) > 2 * len(markers)
