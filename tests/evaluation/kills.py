"""A run that is killed at random moments and called again. Prints how many units each killed process had left behind.

A process of its own, without threads, so that it can fork what it kills.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from random import Random

from cgnlearn.datasets import load
from cgnlearn.evaluation.run import Run
from cgnlearn.experiments import uci

N_KILLS = 10


def small_experiment():
    return uci.experiment([load("iris")], n_folds=5, n_repetitions=3, seed=0)


def main(folder: Path) -> None:
    random = Random(0)
    started = time.perf_counter()
    list(Run(small_experiment(), folder / "clean").go_on())
    per_unit = (time.perf_counter() - started) / len(small_experiment().sizes)
    left = []
    for _ in range(N_KILLS):
        child = os.fork()
        if child == 0:
            list(Run(small_experiment(), folder / "killed").go_on())
            os._exit(0)
        # Two or so units a time, so that even the tenth finds some work to interrupt.
        time.sleep(random.uniform(0, 4 * per_unit))
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        rows = folder / "killed" / "rows.csv"
        left.append((os.WIFSIGNALED(status), rows.read_bytes().count(b"\n") if rows.exists() else 0))
    list(Run(small_experiment(), folder / "killed").go_on())
    print(json.dumps(left))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
