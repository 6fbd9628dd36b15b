"""Imports point one way, and the light ones stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import cgnlearn

PACKAGE = Path(cgnlearn.__file__).parent
# One line a room: it imports itself and what stands above it.
ROOMS = [
    "files",
    "type_names",
    "progress",
    "kernels",
    "data",
    "networks",
    "structures",
    "logistic",
    "candidates",
    "estimators",
    "persistence",
    "portable",
    "tables",
    "streams",
    "distributed",
    "datasets",
    "spectra",
    "evaluation",
    "plots",
    "reporting",
    "experiments",
    "cli",
    "warm",
    "__main__",
]


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cgnlearn."):
            yield node.module.split(".")[1]


def test_no_room_imports_upwards():
    paths = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
    assert {room_of(path) for path in paths} == set(ROOMS)
    for path in paths:
        for other in imported_rooms(path):
            assert ROOMS.index(other) <= ROOMS.index(room_of(path)), f"{path} imports {other}, which stands below it"


def test_importing_the_package_leaves_heavy_ones_alone():
    heavy = ["numba", "polars", "matplotlib", "networkx", "rich", "click", "jinja2", "dask"]
    code = f"import cgnlearn, sys; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_dir_shows_the_public_names_once_and_the_rooms():
    shown = dir(cgnlearn)
    assert len(shown) == len(set(shown))
    assert {*cgnlearn.__all__, "networks", "structures", "evaluation", "plots"} <= set(shown)
    assert not {"Any", "TYPE_CHECKING", "import_module"} & set(shown)
