import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cgnlearn import CGNClassifier, CGNClassifierCV, progress

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.arange(30) % 2


class Screen:
    """A terminal of which all that was written is kept."""

    encoding = "utf-8"

    def __init__(self):
        self.written = ""

    def write(self, text):
        self.written += text

    def flush(self): ...
    def isatty(self):
        return True

    def fileno(self):
        raise OSError


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return Screen()


def mixture(**options):
    return CGNClassifierCV(candidates=["naive_bayes", "tan", "aode"], **options)


@pytest.mark.parametrize("model", [mixture(), CGNClassifier("fwgjan")], ids=["mixture", "search"])
def test_fits_are_silent_unless_asked(model, capfd):
    model.fit(X, Y)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_lines_count_every_candidate_once_where_there_is_no_terminal(n_jobs, capfd, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    model = mixture(verbose=1, n_jobs=n_jobs).fit(X, Y)
    out, err = capfd.readouterr()
    first, *steps, last = err.splitlines()
    assert out == ""
    assert first == "CGNClassifierCV: fitting"
    n = len(steps)
    assert n >= 4
    assert [line.split(" steps")[0] for line in steps] == [f"CGNClassifierCV: {i + 1} of {n}" for i in range(n)]
    assert steps[-1].endswith("about 0 s left")
    assert last.startswith("CGNClassifierCV: fitted in ")
    np.testing.assert_array_equal(model.predict_proba(X), mixture().fit(X, Y).predict_proba(X))


def test_a_search_counts_its_steps(capfd, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    model = CGNClassifier("fwgjan", verbose=1).fit(X, Y)
    steps = capfd.readouterr().err.splitlines()[1:-1]
    assert steps == [f"CGNClassifier: {i + 1} steps" for i in range(len(model.search_path_))]


def test_lines_are_at_most_one_a_second(capfd):
    mixture(verbose=1).fit(X[:, :1], Y)
    assert len(capfd.readouterr().err.splitlines()) < 5


def test_a_terminal_has_a_bar_of_rich(screen, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen)  # here, as pytest sets it again before each call
    mixture(verbose=1).fit(X, Y)
    assert "CGNClassifierCV" in screen.written
    assert screen.written.removesuffix("\x1b[?25h").endswith("\n")  # the next line of the terminal is free
    assert screen.written.rindex("\x1b[?25h") > screen.written.rindex("\x1b[?25l")  # the cursor is back


def test_an_interrupt_leaves_the_terminal_clean(screen, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("cgnlearn.candidates.comparison.Comparison._held_out", interrupt)
    with pytest.raises(KeyboardInterrupt):
        mixture(verbose=1).fit(X, Y)
    assert screen.written.rindex("\x1b[?25h") > screen.written.rindex("\x1b[?25l")
    assert progress._SHOWN.get() is None


def test_a_terminal_without_rich_has_a_bar_of_tqdm(screen, monkeypatch):
    shares = []

    class Bar:
        def __init__(self, total, desc, bar_format):
            self.n, self.desc = 0.0, desc

        def __enter__(self):
            return self

        def __exit__(self, *_):
            shares.append("closed")

        def set_postfix_str(self, words, refresh): ...
        def refresh(self): ...
        def update(self, more):
            self.n += more
            shares.append(round(self.n, 6))

    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "find_spec", lambda name: name != "rich")
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=Bar))
    mixture(verbose=1).fit(X, Y)
    assert shares[-1] == "closed"
    assert shares[-2] == 1.0
    assert shares[:-1] == sorted(shares[:-1])
