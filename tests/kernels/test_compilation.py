import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cgnlearn
from cgnlearn.kernels import compilation


def test_threads_keep_the_order_and_pass_errors_on():
    assert compilation.in_threads(lambda i: i * i, range(50)) == [i * i for i in range(50)]
    with pytest.raises(ZeroDivisionError):
        compilation.in_threads(lambda i: 1 // i, [1, 0])


# ---- compiled code on disk

FILES = {
    "cgnlearn/__init__.py": "",
    "cgnlearn/other.py": "",
    "cgnlearn/kernels/__init__.py": "",
    "cgnlearn/kernels/compilation.py": Path(compilation.__file__).read_text(),
    "cgnlearn/kernels/callee.py": """
from cgnlearn.kernels.compilation import compiled

@compiled
def plus(x, y):
    return x + y
""",
    "cgnlearn/kernels/caller.py": """
from cgnlearn.kernels.callee import plus
from cgnlearn.kernels.compilation import compiled

@compiled
def twice(x):
    return plus(x, x)
""",
}
CALL = """
import warnings
warnings.simplefilter("default")
{before}
from cgnlearn.kernels.caller import twice
print(twice(21), sum(twice.stats.cache_hits.values()))
"""
FULL_DISK = """
from numba.core.caching import IndexDataCacheFile
def full(*_):
    raise OSError(28, "No space left on device")
IndexDataCacheFile.{method} = full
"""


def package(folder):
    """A room of kernels: one that calls another."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def call(folder, cache, before=""):
    """Call the caller in a new process: what it returns, how often the disk served it, and the warnings."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", CALL.format(before=before)]
    environment["NUMBA_CACHE_DIR"] = str(cache)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result, hits = done.stdout.split()
    return int(result), int(hits), done.stderr


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A room of kernels and its cache."""
    folder = package(tmp_path_factory.mktemp("sound"))
    assert call(folder, folder / "cache") == (42, 0, "")
    return folder


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda kept: kept[:0], lambda kept: kept[:-20], lambda _: b"\x93garbage" * 9])
@pytest.mark.slow
def test_damaged_files_are_compiled_again(sound, tmp_path, ending, damage):
    cache = shutil.copytree(sound / "cache", tmp_path / "cache")
    (file,) = cache.rglob(f"*twice*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    assert call(sound, cache) == (42, 0, "")
    assert call(sound, cache) == (42, 1, "")


@pytest.mark.slow
def test_an_edit_of_a_callee_compiles_the_caller_again_and_one_outside_the_folder_nothing(tmp_path):
    folder = package(tmp_path)
    cache = folder / "cache"
    assert call(folder, cache) == (42, 0, "")
    assert call(folder, cache) == (42, 1, "")
    (folder / "cgnlearn" / "other.py").write_text("# an edit")
    assert call(folder, cache) == (42, 1, "")
    callee = folder / "cgnlearn" / "kernels" / "callee.py"
    callee.write_text(callee.read_text().replace("x + y", "x + y + 1"))
    assert call(folder, cache) == (43, 0, "")
    assert call(folder, cache) == (43, 1, "")


def test_the_room_imports_nothing_else_of_the_package():
    """Or what is compiled would depend on files that are not looked at."""
    for file in Path(compilation.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cgnlearn"):
                assert node.module.startswith("cgnlearn.kernels"), file
    for file in Path(cgnlearn.__file__).parent.rglob("*.py"):
        if file.parent.name != "kernels":
            assert not re.search(r"njit|@compiled|import compiled", file.read_text()), file


@pytest.mark.parametrize("method", ["_save_index", "_save_data"])
def test_a_full_disk_is_no_more_than_a_warning(tmp_path, method):
    _, hits, said = call(package(tmp_path), tmp_path / "cache", FULL_DISK.format(method=method))
    assert hits == 0
    assert said.count("set NUMBA_CACHE_DIR") == 1
    assert not list((tmp_path / "cache").rglob("*.nbi")), "an index would name a file that is not there"


def test_a_folder_that_became_read_only_is_no_more_than_a_warning(tmp_path):
    before = "from cgnlearn.kernels import caller\nimport shutil\nshutil.rmtree('cache')\nopen('cache', 'w').close()"
    _, hits, said = call(package(tmp_path), tmp_path / "cache", before)
    assert hits == 0
    assert said.count("set NUMBA_CACHE_DIR") == 1


def test_without_a_place_for_the_cache_a_warning_says_what_to_do(monkeypatch):
    def nowhere(_):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compilation, "_Cache", nowhere)
    compilation._warn_of_the_disk.cache_clear()
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR"):
        twice = compilation.compiled(lambda x: x + x)
    assert twice(21) == 42
