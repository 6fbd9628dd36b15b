"""The documentation: its examples run, its names exist, and every public name is in the reference."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import cgnlearn
import cgnlearn.datasets
import cgnlearn.plots
import cgnlearn.spectra

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
MODULES = (cgnlearn, cgnlearn.spectra, cgnlearn.plots, cgnlearn.datasets)
PUBLIC = [(module, name) for module in MODULES for name in module.__all__]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.slow
def test_examples_run(path, monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="examples draw")
    for other in ("mapie", "shap", "skore", "skrub") if path.stem.endswith("works_with") else ():
        pytest.importorskip(other, reason="comes with the group docs: `make docs` runs this example")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    runpy.run_path(str(path), run_name="__main__")
    pyplot.close("all")
    assert capsys.readouterr().out


def test_the_places_where_formulas_are_computed_exist():
    table = (DOCS / "model.md").read_text(encoding="utf-8").split("## Where it is computed")[1]
    places = re.findall(r"`(cgnlearn\.[\w.]+)`", table)
    assert len(places) > 20
    for place in places:
        module, _, name = place.rpartition(".")
        try:
            found = import_module(module)
        except ModuleNotFoundError:  # a method
            module, _, owner = module.rpartition(".")
            found = getattr(import_module(module), owner)
        assert hasattr(found, name), place


@pytest.mark.parametrize("page", ["model", "ordered"])
def test_formulas_stand_beside_the_lines_that_compute_them(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        has_formula = re.search(r"\n\n    \S", section)
        assert not has_formula or "```{literalinclude}" in section, section.partition("\n")[0]
    blocks = re.findall(r"^```\{literalinclude\} (\S+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for path, options in blocks:
        source = (DOCS / path).read_text(encoding="utf-8")
        bounds = re.findall(r"^:(?:start|end)-at: [\"'](.*)[\"']$", options, flags=re.MULTILINE)
        for bound in bounds or [f"def {re.search(r':pyobject: (.*)', options)[1]}("]:
            assert bound in source, f"{path} has no {bound!r}"
            source = source[source.index(bound) :]


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda part: getattr(part, "__name__", part))
def test_public_names_are_in_the_reference_with_an_example(module, name):
    reference = (DOCS / "api.md").read_text(encoding="utf-8")
    assert re.search(rf"^   {name}$", reference, flags=re.MULTILINE), f"{name} is not in docs/api.md"
    found = getattr(module, name)
    told = [found.__doc__ or "", *(getattr(part, "__doc__", None) or "" for part in vars(found).values())]
    assert any(">>>" in text for text in told), f"{name} has no example"


def test_pages_are_in_the_site():
    listed = set()
    for page in DOCS.glob("*.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            listed |= {line for line in tree.splitlines() if line and not line.startswith(":")}
    assert {page.stem for page in DOCS.glob("*.md")} <= listed | {"index"}
