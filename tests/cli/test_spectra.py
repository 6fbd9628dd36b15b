"""The command that turns a folder of spectra into a table."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cgnlearn.cli.main import main
from cgnlearn.spectra import make_raw_spectra, preset, read


def run(*words):
    return CliRunner().invoke(main, ["spectra", *map(str, words)], prog_name="cgnlearn")


@pytest.fixture
def folder(tmp_path):
    made = make_raw_spectra(4, n_replicates=2, n_points=3000, random_state=0)
    made.write(tmp_path, "txt")
    return tmp_path


def test_a_folder_becomes_a_table(folder):
    for options, steps in ((["--preset", "seldi", "--width", "20"], preset("seldi").set_params(bin__width=20.0)),
                           (["--width", "10"], preset("maldi").set_params(bin__width=10.0))):  # fmt: skip
        said = run(folder / "spectra", "--labels", folder / "labels.csv", *options, "-o", folder / "table.parquet")
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
        (lines[:-1], [], "sample4_2.txt: "),
        ([*lines, "other.txt,other,case"], [], "other.txt has a label but no spectrum"),
        ([*lines, lines[-1]], [], "for the second time"),
        ([*lines, "x.txt,x,"], [], "lacks its label"),
        (["a,b", "1,2"], [], "needs a column file"),
        (["file,species", "1,2"], [], "needs a column label, but it has 'file', 'species'"),
    ]
    for content, options, expected in cases:
        labels.write_text("\n".join(content) + "\n")
        said = run(spectra, "--labels", labels, "-o", out, *options)
        assert said.exit_code == 1
        assert expected in said.stderr
        assert len(said.stderr.strip().splitlines()) == 1
        assert not out.exists()
    labels.write_text("\n".join(lines) + "\n")
    (spectra / "sample1_1.txt").write_text("nothing here")
    assert "sample1_1.txt" in run(spectra, "--labels", labels, "-o", out).stderr
    said = run(spectra, "--labels", labels, "-o", out, "--skip-bad")
    assert said.exit_code == 0
    assert "skipped sample1_1.txt" in said.stderr
    assert "sample1_1.txt has a label but no spectrum" in said.stderr
    assert len(pd.read_csv(out)) == 7
    assert run(spectra, "--labels", labels, "-o", "table.xls").exit_code == 2
