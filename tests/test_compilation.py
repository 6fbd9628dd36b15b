import os
import shutil
import subprocess
import sys

import pytest

from cgnlearn.model import compilation


def test_threads_keep_the_order_and_pass_errors_on():
    assert compilation.in_threads(lambda i: i * i, range(50)) == [i * i for i in range(50)]
    with pytest.raises(ZeroDivisionError):
        compilation.in_threads(lambda i: 1 // i, [1, 0])


# ---- compiled code on disk

TWICE = """
from cgnlearn.model.compilation import compiled

@compiled
def twice(x):
    return x + x
"""
CALL = """
import warnings
warnings.simplefilter("always")
{before}
from twice import twice
assert twice(21) == 42
print(sum(twice.stats.cache_hits.values()))
"""
FULL_DISK = """
from numba.core.caching import IndexDataCacheFile
def full(*_):
    raise OSError(28, "No space left on device")
IndexDataCacheFile.{method} = full
"""


def hits_and_warnings(folder, cache, before=""):
    """Call a compiled function in a new process: how often the disk served it, and what was said."""
    (folder / "twice.py").write_text(TWICE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", CALL.format(before=before)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder with a compiled function and its cache."""
    folder = tmp_path_factory.mktemp("sound")
    assert hits_and_warnings(folder, folder / "cache") == (0, "")
    return folder


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda kept: kept[:0], lambda kept: kept[:-20], lambda _: b"\x93garbage" * 9])
@pytest.mark.slow
def test_damaged_files_are_made_anew(sound, tmp_path, ending, damage):
    cache = shutil.copytree(sound / "cache", tmp_path / "cache")
    (file,) = cache.rglob(f"*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    assert hits_and_warnings(sound, cache) == (0, "")
    assert hits_and_warnings(sound, cache) == (1, "")


def test_a_change_in_a_file_beside_it_is_a_reason_to_compile_anew(sound, tmp_path):
    """As the compiled code may hold that of a function which stands there."""
    folder = shutil.copytree(sound, tmp_path / "copy")
    hits_and_warnings(folder, folder / "cache")
    assert hits_and_warnings(folder, folder / "cache") == (1, "")
    (folder / "other.py").write_text("# a change")
    assert hits_and_warnings(folder, folder / "cache") == (0, "")


@pytest.mark.parametrize("method", ["_save_index", "_save_data"])
def test_a_full_disk_is_no_more_than_a_warning(tmp_path, method):
    hits, said = hits_and_warnings(tmp_path, tmp_path / "cache", FULL_DISK.format(method=method))
    assert hits == 0
    assert said.count("set NUMBA_CACHE_DIR") == 1
    assert not list((tmp_path / "cache").rglob("*.nbi")), "an index would name a file that is not there"


def test_a_folder_that_became_read_only_is_no_more_than_a_warning(tmp_path):
    before = "from twice import twice\nimport shutil\nshutil.rmtree('cache')\nopen('cache', 'w').close()"
    hits, said = hits_and_warnings(tmp_path, tmp_path / "cache", before)
    assert hits == 0
    assert said.count("set NUMBA_CACHE_DIR") == 1


def test_without_a_place_for_the_cache_a_warning_says_what_to_do(monkeypatch):
    def nowhere(_):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compilation, "_Cache", nowhere)
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR"):
        twice = compilation.compiled(lambda x: x + x)
    assert twice(21) == 42
