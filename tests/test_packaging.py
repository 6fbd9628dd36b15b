"""What is built for others to install: it is whole, and the README's three commands work with it."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from sklearn.datasets import load_wine

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")


def run(*command, **options):
    found = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout + found.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("build", reason="needs build")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    return folder


def test_files_pass_twine(built):
    pytest.importorskip("twine", reason="needs twine")
    assert run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built.iterdir())).count("PASSED") == 2


def test_the_readme_has_no_links_that_break_elsewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", text))


def test_versions_agree():
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/cgnlearn/__init__.py").read_text(encoding="utf-8"))[1]
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_three_commands_on_a_file_of_ones_own(built, tmp_path):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    wine = load_wine(as_frame=True).frame.iloc[::4]
    wine.to_csv(tmp_path / "data.csv", index=False)
    wine.drop(columns="target").to_csv(tmp_path / "new.csv", index=False)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    def cgnlearn(*arguments):
        run(sys.executable, "-m", "cgnlearn", *arguments, cwd=tmp_path, env=environment)

    where = run(sys.executable, "-c", "import cgnlearn; print(cgnlearn.__file__)", cwd=tmp_path, env=environment)
    assert Path(where.strip()).is_relative_to(tmp_path / "site")
    quick = ("--structure", "tree")  # the mixture has tests of its own
    cgnlearn("evaluate", "data.csv", "--target", "target", *quick, "--cv", "2x1", "--report", "report.html")
    cgnlearn("fit", "data.csv", "--target", "target", *quick, "-o", "model.skops")
    cgnlearn("predict", "model.skops", "new.csv", "-o", "predictions.csv")
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len((tmp_path / "predictions.csv").read_text(encoding="utf-8").splitlines()) == len(wine) + 1
