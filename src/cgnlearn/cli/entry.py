"""Entry point of the command: reports a missing extra ``cli``, and handles Ctrl-C from the start."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn


def run() -> None:
    """Run the command ``cgnlearn``."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        _command()()  # the caller ignores Ctrl-C, as nohup does
        return
    # An exception during an import may be lost or turned into an ImportError.
    signal.signal(signal.SIGINT, _leave_with_a_line)
    command = _command()
    interrupted = False

    def interrupt(*_: Any) -> NoReturn:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        command()
    except KeyboardInterrupt:  # outside the command
        _leave_with_a_line()
    except SystemExit as left:
        signal.signal(signal.SIGINT, lambda *_: os._exit(1))  # all output is written
        if interrupted:
            _leave(left.code)
        raise


def _command() -> Any:
    try:
        from cgnlearn.cli.main import main
    except ModuleNotFoundError as error:
        absent = (error.name or "cgnlearn").split(".")[0]
        if absent == "cgnlearn":
            raise
        sys.exit(f"cgnlearn: error: the command line needs {absent}: pip install 'cgnlearn[cli]'")
    return lambda: main(prog_name="cgnlearn")


def _leave(code: Any) -> NoReturn:
    """Exit with this code: Python itself would exit by the signal if it came during an ``eval``."""
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def _leave_with_a_line(*_: Any) -> NoReturn:
    os.write(2, b"cgnlearn: interrupted\n")  # print may be in the middle of another line
    os._exit(1)
