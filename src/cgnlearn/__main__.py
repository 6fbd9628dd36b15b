"""``python -m cgnlearn``."""

from cgnlearn.cli.entry import run

run()
