"""Folders of DRIAMS: tables of isolates, stages, and the preset of its 6,000 bins."""

import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.signal import savgol_filter

from cgnlearn.cli.main import main
from cgnlearn.spectra import Spectrum, SpectrumError, make_raw_spectra, preset, read, read_driams
from cgnlearn.tables.formats import ColumnError

HEAD = ',code,species,laboratory_species,Ciprofloxacin,"Amoxicillin-Clavulanic acid"'


@pytest.fixture
def site(tmp_path):
    """Two years; in the first, two replicates of one isolate, a code without a file and a file without a code."""
    place = tmp_path / "DRIAMS-B"
    made = make_raw_spectra(8, n_points=3000, mass_range=(1900.0, 20_100.0), random_state=0)
    codes = {"2017": ["a_MALDI1", "a_MALDI2", "b", "c", "d", "stray"], "2018": ["e", "f"]}
    spectra = iter(made.spectra)
    for year, names in codes.items():
        for stage in ("raw", "id"):
            (place / stage / year).mkdir(parents=True)
        for code in names:
            spectrum = next(spectra)
            lines = [f"# {code}", '"mass.spectra." "intensity.spectra."']
            lines += [f"{mz!r} {y!r}" for mz, y in zip(spectrum.mz.tolist(), spectrum.intensity.tolist(), strict=True)]
            (place / "raw" / year / f"{code}.txt").write_text("\n".join(lines) + "\n")
    ecoli, aureus = "Escherichia coli", "Staphylococcus aureus"
    rows = [f"0,a_MALDI1,{ecoli},x,R,S", f"1,a_MALDI2,{ecoli},x,R,S", f"2,b,{ecoli},x,I,-", f"3,c,{ecoli},x,S,"]
    rows += [f'4,d,{aureus},x,"R(1), S(1)",S', f"5,gone,{aureus},x,S,S"]
    (place / "id/2017/2017_clean.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    (place / "id/2018/2018_clean.csv").write_text("\n".join([HEAD, f"0,e,{ecoli},x,S,R", f"1,f,{aureus},x,-,R"]) + "\n")
    return place


def test_resistances_of_a_year_with_replicates(site):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = read_driams(site, 2017, "Ciprofloxacin")
    assert found.target.tolist() == ["R", "R", "R", "S"]
    assert found.groups.tolist() == ["a", "a", "b", "c"]
    assert [spectrum.metadata["sample"] for spectrum in found.spectra] == ["a_MALDI1", "a_MALDI2", "b", "c"]
    messages = " | ".join(str(one.message) for one in told)
    assert "1 of 6 codes have no result for Ciprofloxacin and are not used" in messages
    assert "stray.txt skipped" in messages
    assert "gone has a label but no spectrum" in messages


def test_species_are_the_default_and_years_are_joined(site):
    (site / "raw/2017/stray.txt").unlink()
    with pytest.warns(UserWarning, match="gone has a label"):
        found = read_driams(site)
    assert found.target.tolist() == [*["Escherichia coli"] * 4, "Staphylococcus aureus", *found.target[-2:]]
    assert found.target[-2:].tolist() == ["Escherichia coli", "Staphylococcus aureus"]
    assert read_driams(site, "2018", "amoxicillin-clavulanic acid", species="escherichia coli").target.tolist() == ["R"]


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"year": 2019}, SpectrumError, "no year 2019: choose one of 2017, 2018"),
        ({"year": 2018, "stage": "preprocessed"}, SpectrumError, "2018: there is no such file or folder"),
        ({"year": 2018, "target": "Ciprofloxacine"}, ColumnError, "did you mean Ciprofloxacin?"),
        ({"year": 2018, "target": "zzz"}, ColumnError, "it has Ciprofloxacin, Amoxicillin-Clavulanic acid"),
        (
            {"year": 2018, "target": "Ciprofloxacin", "species": "Escherichia colli"},
            ColumnError,
            "no species 'Escherichia colli': did you mean Escherichia coli",
        ),
        (
            {"year": 2018, "target": "Ciprofloxacin", "species": "Staphylococcus aureus"},
            ValueError,
            "has no result for",
        ),
    ],
)
def test_wrong_calls_are_told_in_a_sentence(site, options, error, told):
    with pytest.raises(error) as raised:
        read_driams(site, **options)
    assert told in str(raised.value)


def test_other_folders_and_whole_sites_are_refused(site, tmp_path):
    with pytest.raises(SpectrumError, match="it has no tables id/YEAR"):
        read_driams(tmp_path)
    with pytest.raises(SpectrumError, match="a site of DRIAMS: name the spectra of a year"):
        read(site)
    (site / "raw/2018/e.txt").write_text("nothing")
    with pytest.raises(SpectrumError, match=r"e\.txt: no two columns"):
        read_driams(site, 2018)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert len(read_driams(site, 2018, skip_bad=True).spectra) == 1
    assert any("skipped e.txt: no two columns" in str(one.message) for one in told)


def test_binned_files_have_masses_and_are_what_the_preset_makes(site):
    (site / "binned_6000/2018").mkdir(parents=True)
    steps, raw = preset("driams"), read_driams(site, 2018).spectra
    X = steps.fit_transform(raw)
    assert X.shape == (2, 6000)
    for code, values in zip("ef", X, strict=True):
        lines = ["bin_index binned_intensity", *(f"{i} {value!r}" for i, value in enumerate(values.tolist()))]
        (site / f"binned_6000/2018/{code}.txt").write_text("\n".join(lines) + "\n")
    binned = read_driams(site, 2018, stage="binned_6000").spectra
    np.testing.assert_allclose(binned[0].mz, 2001.5 + 3 * np.arange(6000))
    np.testing.assert_allclose(steps[-1:].transform(binned), X)
    (site / "binned_6000/2018/e.txt").write_text("bin_index binned_intensity\n3 1\n4 1\n")
    with pytest.raises(SpectrumError, match=r"e\.txt: its bins are not numbered from 0 on"):
        read_driams(site, 2018, stage="binned_6000")


def snip(y, iterations):
    """MALDIquant's baseline, written out: windows from wide to narrow, points near the ends unchanged."""
    y = y.copy()
    for i in range(iterations, 0, -1):
        y[i:-i] = np.minimum(y[i:-i], (y[: -2 * i] + y[2 * i :]) / 2)
    return y


def test_the_preset_is_the_script_of_driams():
    spectrum = make_raw_spectra(2, n_points=9000, mass_range=(1900.0, 20_100.0), random_state=1).spectra[0]
    y = np.maximum(savgol_filter(np.sqrt(spectrum.intensity), 21, 3), 0)
    y = y - snip(y, 20)
    y = y - snip(y, 100)
    y = y / np.trapezoid(y, spectrum.mz)
    expected = np.histogram(spectrum.mz, np.linspace(2000, 20_000, 6001), weights=y)[0]
    found = preset("driams").fit_transform([spectrum])[0]
    inner = slice(200, -200)
    np.testing.assert_allclose(found[inner], expected[inner], atol=2e-3 * expected.max())
    assert np.corrcoef(found, expected)[0, 1] > 0.999
    with pytest.raises(ValueError, match="the preset 'driams' cannot align"):
        preset("driams", align=True)


def test_sums_of_bins_are_histograms():
    from cgnlearn.spectra import Bin

    spectrum = Spectrum([1.0, 1.4, 2.2, 4.1], [2.0, 4.0, 5.0, 9.0])
    found = Bin(width=1.0, start=1.0, stop=5.0, value="sum").fit([]).transform([spectrum])
    assert found.tolist() == [[6.0, 5.0, 0.0, 9.0]]
    with pytest.raises(ValueError, match="value must be 'mean' or 'sum'"):
        Bin(value="max").fit([spectrum])


def test_the_command_line_takes_the_table_of_a_year(site):
    table = site / "id/2017/2017_clean.csv"
    words = ["spectra", str(site / "raw/2017"), "--labels", str(table), "-o", str(site / "x.csv"), "--preset", "driams"]
    said = CliRunner().invoke(main, [*words, "--target", "Ciprofloxacin of Escherichia coli"], prog_name="cgnlearn")
    assert said.exit_code == 0, said.output
    assert "4 spectra of 3 samples, 6000 bins" in said.stderr
    said = CliRunner().invoke(main, [*words, "--target", "Cipro of Escherichia coli"], prog_name="cgnlearn")
    assert said.exit_code == 2
    assert "has no antibiotic 'Cipro': did you mean Ciprofloxacin?" in said.stderr
    said = CliRunner().invoke(main, [*words, "--target", "Ciprofloxacin"], prog_name="cgnlearn")
    assert said.exit_code == 1
    assert "gone has a label but no spectrum" in said.stderr
    assert CliRunner().invoke(main, [*words, "--skip-bad"], prog_name="cgnlearn").exit_code == 0
