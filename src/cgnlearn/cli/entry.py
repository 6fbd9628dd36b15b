"""Where the command starts: it says what is missing if the extra ``cli`` is not installed."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command ``cgnlearn``."""
    try:
        from cgnlearn.cli.main import main
    except ModuleNotFoundError as error:
        absent = (error.name or "cgnlearn").split(".")[0]
        if absent == "cgnlearn":
            raise
        sys.exit(f"cgnlearn: error: the command line needs {absent}: pip install 'cgnlearn[cli]'")
    except KeyboardInterrupt:
        sys.exit("cgnlearn: interrupted")
    main(prog_name="cgnlearn")
