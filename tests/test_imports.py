"""Imports point one way, and the light ones stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import cgnlearn

PACKAGE = Path(cgnlearn.__file__).parent
ORDER = [
    "kernels", "networks.densities", "data.splits", "data.warning", "networks.families", "data.schema", "networks.structure",
    "files", "type_names", "data.frames", "data.labels", "data.table", "networks.layout",
    "data.picking", "networks.moments", "data.transforms",
    "networks.statistics", "networks.prior", "networks.estimation", "networks.leave_one_out",
    "networks.model", "networks.indicators", "networks.solver", "networks.factors", "networks.regressions",
    "networks.elimination", "networks.implied", "networks.components", "networks.integration", "networks.blocks",
    "networks.rotation",
    "networks.lattice", "networks.network", "networks.rotated",
    "networks.sampling", "networks.typicality", "structures.learner",
    "structures.rotated", "structures.fixed", "structures.single", "structures.selective_naive_bayes",
    "structures.pairs", "structures.tan", "structures.arborescence", "structures.ratios",
    "structures.tan_average", "structures.fold_scores", "structures.leave_one_out_scores", "structures.moves", "structures.search",
    "structures.band", "structures.band_average", "logistic", "progress", "candidates", "estimators",
    "structures.ordered_path", "persistence", "tables", "streams", "distributed", "datasets", "spectra", "evaluation.run",
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
