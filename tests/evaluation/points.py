"""A run that is killed at every point where it touches a file, and one of two workers; then called again.

Prints, for each point, whether the process was killed there and whether the end was the same. A process of its own,
without threads, so that it can fork what it kills.
"""

import json
import os
import signal
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

from cgnlearn.evaluation.run import Run
from tests.evaluation.test_run import UNITS, WORK, rows_of


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(point, folder):
    """Let this process be killed when it opens or renames a file there for the n-th time."""
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        if event in ("open", "os.rename") and str(arguments[0]).startswith(str(folder)):
            seen += 1
            if seen == point:
                die()

    sys.addaudithook(hook)


def deadly(unit, fatal, marker):
    """A unit's samples; the first process that comes to the fatal unit is killed."""
    if unit == fatal and not marker.exists():
        marker.touch()
        die()
    return rows_of(unit)


def end_of(work, folder, jobs, before=lambda: None):
    """How a forked run ends: True if it was killed."""
    child = os.fork()
    if child == 0:
        before()
        try:
            list(Run(work, folder).go_on(jobs))
        except BaseException as error:  # what joblib raises of a worker that is gone
            print(type(error).__name__, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return True if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def resumed(folder):
    list(Run(WORK, folder).go_on())
    settings = json.loads((folder / "manifest.json").read_text())["settings"]
    return [(folder / "rows.csv").read_text(), settings]


def main(folder: Path) -> None:
    clean = resumed(folder / "clean")
    told = {"parent": [], "pair": [], "worker": []}
    for point in count(1):
        place = folder / f"parent{point}"
        ended = end_of(WORK, place, 1, lambda: die_at(point, place))  # noqa: B023
        told["parent"].append([ended, resumed(place) == clean])
        if ended is not True:
            break
    n_points = len(told["parent"]) - 1
    place = folder / "pair"  # beside two workers, which must not go on alone
    ended = end_of(WORK, place, 2, lambda: die_at(n_points // 2, place))
    told["pair"].append([ended, resumed(place) == clean])
    place, fatal, marker = folder / "worker", UNITS[1], folder / "marker"
    work = replace(WORK, compute=deadly, arguments=lambda unit: (unit, fatal, marker))
    told["worker"].append([end_of(work, place, 2), resumed(place) == clean])
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
