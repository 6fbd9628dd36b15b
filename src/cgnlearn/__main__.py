"""``python -m cgnlearn``."""

from cgnlearn.cli import main

main(prog_name="cgnlearn")
