"""The page for users of MaldiAMRKit, run as it stands."""

import doctest
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "from-maldiamrkit.md"


@pytest.mark.slow
def test_the_examples_of_the_page_hold():
    for package in ("maldiamrkit", "maldibatchkit"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install maldiamrkit maldibatchkit")
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # theirs are not ours to turn into errors
        failed, attempted = doctest.testfile(str(PAGE), module_relative=False)
    assert attempted > 20
    assert failed == 0
