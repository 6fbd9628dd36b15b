"""The command that turns a folder of spectra into a table."""

import numpy as np
import pandas as pd
import pytest

from cgnlearn.spectra import Peaks, make_raw_spectra, preset, read
from tests.cli.running import run


@pytest.fixture
def folder(tmp_path):
    made = make_raw_spectra(4, n_replicates=2, n_points=3000, random_state=0)
    made.write(tmp_path, "txt")
    return tmp_path


def test_a_folder_becomes_a_table(folder):
    for options, steps in ((["--preset", "seldi", "--width", "20"], preset("seldi").set_params(bin__width=20.0)),
                           (["--width", "10"], preset("maldi").set_params(bin__width=10.0))):  # fmt: skip
        said = run(
            "spectra", folder / "spectra", "--labels", folder / "labels.csv", *options, "-o", folder / "table.parquet"
        )
        assert said.exit_code == 0, said.output
        assert "8 spectra of 4 samples" in said.stderr
        assert "--groups sample" in said.stderr
        table = pd.read_parquet(folder / "table.parquet")
        np.testing.assert_allclose(table.iloc[:, 3:], steps.fit_transform(read(folder / "spectra")), rtol=1e-12)
        assert list(table.columns[3:]) == list(steps[-1].get_feature_names_out())
        labels = pd.read_csv(folder / "labels.csv")
        assert table[["file", "sample", "label"]].astype(str).equals(labels.astype(str))


def test_what_does_not_fit_together_is_named_in_one_line(folder):
    labels, spectra, out = folder / "labels.csv", folder / "spectra", folder / "table.csv"
    lines = labels.read_text().splitlines()
    cases = [
        (["file,sample,label", "a.txt,a,case"], [], "names none of the 8 spectra"),
        ([*lines, "other.txt,other,case"], [], "other.txt has a label but no spectrum"),
        ([*lines, lines[-1]], [], "for the second time"),
        ([*lines, "x.txt,x,"], [], "lacks its label"),
        (["a,b", "1,2"], [], "needs a column file"),
        (["file,species", "1,2"], [], "needs a column label, but it has 'file', 'species'"),
    ]
    for content, options, expected in cases:
        labels.write_text("\n".join(content) + "\n")
        said = run("spectra", spectra, "--labels", labels, "-o", out, *options)
        assert said.exit_code == 1
        assert expected in said.stderr
        assert len(said.stderr.strip().splitlines()) == 1
        assert not out.exists()
    labels.write_text("\n".join(lines) + "\n")
    (spectra / "sample1_1.txt").write_text("nothing here")
    assert "sample1_1.txt" in run("spectra", spectra, "--labels", labels, "-o", out).stderr
    said = run("spectra", spectra, "--labels", labels, "-o", out, "--skip-bad")
    assert said.exit_code == 0
    assert "skipped sample1_1.txt" in said.stderr
    assert "sample1_1.txt has a label but no spectrum" in said.stderr
    assert len(pd.read_csv(out)) == 7
    assert run("spectra", spectra, "--labels", labels, "-o", "table.xls").exit_code == 2


def test_a_table_of_labels_may_cover_a_part_of_the_spectra(folder):
    labels, out = folder / "labels.csv", folder / "table.csv"
    labels.write_text("\n".join(labels.read_text().splitlines()[:-2]) + "\n")
    said = run("spectra", folder / "spectra", "--labels", labels, "-o", out)
    assert said.exit_code == 0, said.stderr
    assert "sample4_1.txt and 1 more skipped" in said.stderr
    assert "has no line for it" in said.stderr
    assert sorted(set(pd.read_csv(out)["sample"])) == ["sample1", "sample2", "sample3"]


def test_peaks_are_heights_at_common_peaks(folder):
    out = folder / "peaks.csv"
    said = run("spectra", folder / "spectra", "--labels", folder / "labels.csv", "--peaks", "-o", out)
    assert said.exit_code == 0, said.stderr
    table, steps = pd.read_csv(out), preset("maldi")
    steps.steps[-1] = ("peaks", Peaks())
    np.testing.assert_allclose(table.iloc[:, 3:], steps.fit_transform(read(folder / "spectra")), rtol=1e-12)
    assert f"{table.shape[1] - 3} peaks: wrote" in said.stderr
    assert (
        run(
            "spectra", folder / "spectra", "--labels", folder / "labels.csv", "--peaks", "--width", 3, "-o", out
        ).exit_code
        == 2
    )


def test_folders_name_the_classes(folder):
    labels = pd.read_csv(folder / "labels.csv")
    for file, label in zip(labels["file"], labels["label"], strict=True):
        (folder / "by class" / str(label)).mkdir(parents=True, exist_ok=True)
        (folder / "spectra" / file).rename(folder / "by class" / str(label) / file)
    said = run("spectra", folder / "by class", "--labels", "folders", "-o", folder / "table.csv")
    assert said.exit_code == 0, said.stderr
    table = pd.read_csv(folder / "table.csv")
    known = dict(zip(labels["file"], labels["label"], strict=True))
    assert [known[file.split("/")[1]] for file in table["file"]] == table["label"].tolist()
    (folder / "by class" / "loose.txt").write_bytes(next((folder / "by class").rglob("*_1.txt")).read_bytes())
    assert (
        "loose.txt is in no folder that names its class"
        in run("spectra", folder / "by class", "--labels", "folders", "-o", folder / "table.csv").stderr
    )


def test_a_report_on_quality_needs_no_labels(folder):
    page = folder / "pages" / "quality.html"
    (folder / "spectra" / "broken.txt").write_text("nothing")
    lines = (folder / "spectra" / "sample1_1.txt").read_text().splitlines()
    empty = "\n".join(f"{line.split()[0]} 0" for line in lines)
    (folder / "spectra" / "sample1_1.txt").write_text(empty + "\n")
    said = run("spectra", folder / "spectra", "--report", page)
    assert said.exit_code == 0, said.stderr
    assert "1 of 8 spectra stand out" in said.stdout
    assert "skipped broken.txt: no two columns" in said.stderr
    text = page.read_text(encoding="utf-8")
    assert "1 of 8 spectra needs a look; 1 file cannot be read." in text
    assert 'sample1_1.txt <span class="soft">(all intensities are equal)</span>' in text
    assert "Classes are not given" in text
    assert "nan" not in text.replace("banana", "")
    assert len(text) < 1_000_000


def test_a_report_shows_classes_and_replicates(folder):
    page = folder / "quality.html"
    said = run("spectra", folder / "spectra", "--labels", folder / "labels.csv", "--report", page)
    assert said.exit_code == 0, said.stderr
    text = page.read_text(encoding="utf-8")
    assert "8 of 4 samples" in text
    assert 'id="replicates"' in text
    assert "case: 4, control: 4" in text


def test_a_report_of_one_spectrum_and_of_none(tmp_path):
    made = make_raw_spectra(2, n_points=500, random_state=0)
    made.write(tmp_path, "txt")
    (tmp_path / "spectra" / "sample2_1.txt").unlink()
    page = tmp_path / "page.html"
    said = run("spectra", tmp_path / "spectra", "--report", page)
    assert said.exit_code == 0, said.stderr
    assert "none to compare it with" in said.stdout
    assert "nan " not in page.read_text(encoding="utf-8")
    (tmp_path / "nothing").mkdir()
    said = run("spectra", tmp_path / "nothing", "--report", page)
    assert said.exit_code == 1
    assert "it has no files" in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "a table with -o FILE, or a page on the quality with --report FILE"),
        (["--report", "a.html", "--width", "3"], "--width is for the table"),
        (["--report", "a.html", "--peaks"], "--peaks is for the table"),
    ],
)
def test_wrong_calls_name_the_option(folder, options, told):
    said = run("spectra", folder / "spectra", *options)
    assert said.exit_code == 2
    assert told in said.stderr
