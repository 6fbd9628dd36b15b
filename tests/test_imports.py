"""Imports point one way, and the light ones stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import cgnlearn

PACKAGE = Path(cgnlearn.__file__).parent
ORDER = [
    "structure", "table", "layout", "statistics", "prior", "densities", "kernels", "recursion", "regressions",
    "lattice", "network", "ordered", "learners", "folds", "search", "progress", "selection", "classifier", "path",
    "persistence", "datasets", "evaluation", "results", "datafile", "prediction", "plots", "report", "options",
    "terminal", "experiments", "cli", "__main__",
]  # fmt: skip


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cgnlearn"):
            names = [alias.name for alias in node.names] if node.module == "cgnlearn" else [node.module.split(".")[1]]
            yield from (name for name in names if (PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir())


def test_imports_point_one_way():
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert modules | packages == set(ORDER), "list a new module where its imports allow"
    for name in ORDER:
        for path in (PACKAGE / name).glob("*.py") if name in packages else [PACKAGE / f"{name}.py"]:
            for other in set(imported_modules(path)) - ({name} & packages):
                assert ORDER.index(other) < ORDER.index(name), f"{path} imports {other}, which stands after it"


def test_importing_the_package_leaves_heavy_ones_alone():
    heavy = ["numba", "polars", "matplotlib", "networkx", "rich", "click", "jinja2", "dask"]
    code = f"import cgnlearn, sys; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
