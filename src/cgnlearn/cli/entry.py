"""Where the command starts: it says what is missing if the extra ``cli`` is not installed, and bears Ctrl-C at once."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn


def run() -> None:
    """Run the command ``cgnlearn``."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        _command()()  # whoever started us wants Ctrl-C to be ignored, as nohup does
        return
    # An exception in the middle of an import may be lost, or come out as one of the import.
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
    except KeyboardInterrupt:  # before or after what the command itself catches
        _leave_with_a_line()
    except SystemExit as left:
        signal.signal(signal.SIGINT, lambda *_: os._exit(1))  # all is said
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
    """Leave with this code: Python itself would leave by the signal if it came during an ``eval``."""
    import atexit

    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def _leave_with_a_line(*_: Any) -> NoReturn:
    os.write(2, b"cgnlearn: interrupted\n")  # print may be in the middle of another line
    os._exit(1)
