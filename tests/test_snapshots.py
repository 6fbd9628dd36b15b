"""What is public and what model files hold changes on purpose only."""

import pytest

from tests.snapshots import SNAPSHOTS


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_nothing_has_changed_by_accident(path):
    """After a change on purpose: ``python -m tests.snapshots``.

    A field that was renamed gets a line in `cgnlearn.type_names.RENAMED`, or `cgnlearn.persistence.FORMAT` is raised:
    files written before are read, or refused in one line.
    """
    assert list(SNAPSHOTS[path]()) == path.read_text().splitlines()
