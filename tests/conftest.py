from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("all", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", parent=settings.get_profile("all"), max_examples=8)

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_configure(config):
    settings.load_profile("quick" if config.option.markexpr == "not slow" else "all")


def pytest_collection_modifyitems(items):
    """A file goes to one process, so that what its tests share is made once; likewise the models of the readers."""
    for item in items:
        place = item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group("portable" if place.startswith("tests/portable/") else place))


@pytest.fixture(scope="session")
def shared():
    """The folder of reference values and data beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("the reference data (../shared) are not beside this checkout")
    return SHARED


@pytest.fixture(autouse=True)
def no_lines_about_time(monkeypatch):
    """What commands say must not depend on how busy the machine is."""
    monkeypatch.setattr("cgnlearn.cli.terminal.SECONDS_BETWEEN_LINES", 1e6)
    monkeypatch.setattr("cgnlearn.cli.terminal.MINUTES_FROM", 1e6)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def mixed(rng):
    """Two discrete columns (2 and 3 levels) and three continuous ones, 90 rows, 3 classes; 9 rows to predict."""
    n = 99
    y = np.arange(n) % 3
    first = rng.integers(0, 2, n)
    second = (first + rng.integers(0, 3, n)) % 3
    a = y + first + rng.normal(size=n)
    b = 0.7 * a - second + rng.normal(size=n)
    c = 100 + 10 * (a - b) + 5 * rng.normal(size=n)
    X = np.column_stack([first, second, a, b, c]).astype(float)
    return X[9:], y[9:], X[:9]
