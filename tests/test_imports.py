"""Imports point one way, and the light ones stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import cgnlearn

PACKAGE = Path(cgnlearn.__file__).parent
ORDER = [
    "kernels", "model.densities", "data.splits", "data.warning", "model.families", "model.schema", "model.structure",
    "files", "type_names", "model.frames", "model.labels", "model.table", "model.layout",
    "model.picking", "model.moments", "data.transforms",
    "model.statistics", "model.prior", "model.estimation", "model.forgetting",
    "model.model", "model.indicators", "model.solver", "model.factors", "model.regressions",
    "model.elimination", "model.implied", "model.components", "model.integration", "model.blocks",
    "model.rotation",
    "ordered.lattice", "model.network", "model.rotated",
    "model.sampling", "model.surprise", "structures.learner",
    "structures.rotated", "structures.fixed", "structures.single", "structures.selective",
    "structures.pairs", "structures.tree", "structures.arborescence", "structures.ratios",
    "structures.forests", "structures.odds", "structures.left_out", "structures.moves", "structures.search",
    "ordered.band", "ordered.average", "logistic", "progress", "candidates", "estimators",
    "ordered.path", "persistence", "tables", "streams", "distributed", "datasets", "spectra", "evaluation.run",
    "evaluation.metrics", "evaluation.estimates", "evaluation.summaries", "evaluation.significance",
    "evaluation.grouped", "evaluation.evidence", "evaluation.features", "evaluation.study", "evaluation.chosen",
    "evaluation.streamed", "evaluation.decisions", "evaluation.verdict", "plots", "report", "experiments", "cli",
    "__main__",
]  # fmt: skip


WHOLE = {name for name in ORDER if (PACKAGE / name).is_dir()}  # rooms whose files may import each other freely


def module_name(path):
    """The entry of ORDER that a file belongs to."""
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    room = name.split(".")[0]
    return room if room in WHOLE else name


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "cgnlearn":
            for found in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                file = PACKAGE.joinpath(*found.split(".")[1:])
                if file.with_suffix(".py").is_file():
                    yield module_name(file.with_suffix(".py"))


def test_imports_point_one_way():
    paths = {path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    assert {module_name(path) for path in paths} == set(ORDER), "list a new module where its imports allow"
    for path in paths:
        name = module_name(path)
        for other in set(imported_modules(path)) - ({name} & WHOLE):
            assert ORDER.index(other) < ORDER.index(name), f"{path} imports {other}, which stands after it"


def test_importing_the_package_leaves_heavy_ones_alone():
    heavy = ["numba", "polars", "matplotlib", "networkx", "rich", "click", "jinja2", "dask"]
    code = f"import cgnlearn, sys; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_dir_shows_the_public_names_once_and_the_rooms():
    shown = dir(cgnlearn)
    assert len(shown) == len(set(shown))
    assert {*cgnlearn.__all__, "model", "structures", "ordered", "evaluation", "plots"} <= set(shown)
    assert not {"Any", "TYPE_CHECKING", "import_module"} & set(shown)
