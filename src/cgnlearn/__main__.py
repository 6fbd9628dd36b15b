"""``python -m cgnlearn``."""

from cgnlearn.cli.main import main

main(prog_name="cgnlearn")
