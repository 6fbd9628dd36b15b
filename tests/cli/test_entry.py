"""Ctrl-C is one line and the exit code 1 from the first import on."""

import signal
import subprocess
import sys

import pytest

# Sends itself the signal when a module is imported, as it is or during an eval, after which Python would leave by it.
PROGRAM = """
import builtins, os, sys
from cgnlearn.cli.entry import run

real, (module, within, number, path) = builtins.__import__, sys.argv[1:]

def hooked(name, *args, **kwargs):
    if name == module:
        builtins.__import__ = real
        sent = f"os.kill(os.getpid(), {number})"
        exec(sent) if within == "exec" else eval(sent)
    return real(name, *args, **kwargs)

builtins.__import__ = hooked
sys.argv[1:] = ["evaluate", path, "--target", "class"]
run()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent to whole consoles there")
@pytest.mark.parametrize(
    ("module", "within"), [("click", "exec"), ("sklearn.dummy", "exec"), ("sklearn.dummy", "eval")]
)
def test_ctrl_c_is_one_line(module, within, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,class\n1,x\n2,y\n3,x\n4,y\n")
    words = [sys.executable, "-c", PROGRAM, module, within, str(int(signal.SIGINT)), str(path)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=100, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what runs in the background ignores it
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "cgnlearn: interrupted\n")


def test_what_is_ignored_stays_ignored(tmp_path):
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + PROGRAM
    words = [sys.executable, "-c", ignoring, "click", "exec", str(int(signal.SIGINT)), str(tmp_path / "none.csv")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2  # the file is not there
