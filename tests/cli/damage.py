"""Damaged files through the commands: `python -m tests.cli.damage` puts 200 of each kind through each of them.

Every call must end in one line of an error or in a right answer: rows that are still what they were before the damage
must be predicted as before.
"""

import gzip
import io
import json
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from tests.cli.running import outcome

KINDS = ("csv", "csv.gz", "parquet", "npz")
COMMANDS = ("evaluate", "fit", "predict")
COLUMNS = ("-t", "diagnosis", "--categorical", "stage", "--id", "subject")
QUICK = ("-s", "naive_bayes", "-p", "bayes")
FEATURES = ("stage", "sex", "marker", "ratio")  # npz files lack the column of words


def table(n=40):
    """A small table of everything there is."""
    rng = np.random.default_rng(0)
    ill = np.arange(n) % 2
    return pd.DataFrame(
        {
            "subject": np.arange(n) // 4,
            "stage": rng.integers(1, 4, n),
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "marker": 2 * ill + rng.normal(size=n).round(3),
            "ratio": rng.normal(size=n).round(3),
            "diagnosis": np.where(ill, "ill", "healthy"),
        }
    )


def content(kind):
    """The bytes of an undamaged file."""
    frame, buffer = table(), io.BytesIO()
    if kind == "npz":
        names = [name for name in FEATURES if name != "sex"]
        np.savez_compressed(
            buffer, X=frame[names], feature_names=names, diagnosis=frame["diagnosis"].to_numpy(str),
            subject=frame["subject"],
        )  # fmt: skip
        return buffer.getvalue()
    if kind == "parquet":
        frame.to_parquet(buffer)
        return buffer.getvalue()
    text = frame.to_csv(index=False).encode()
    return gzip.compress(text, mtime=0) if kind == "csv.gz" else text


def damaged(whole, way, rng):
    """The bytes after one of six kinds of damage."""
    content = bytearray(whole)
    if way == 0:  # a flipped bit
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    elif way == 1:  # some bytes overwritten
        for place in rng.integers(len(content), size=5):
            content[place] = rng.integers(256)
    elif way == 2:  # cut
        del content[rng.integers(len(content)) :]
    elif way == 3:  # a piece taken out
        start = rng.integers(len(content) - 20)
        del content[start : start + rng.integers(1, 20)]
    elif way == 4:  # a sign of the format put in
        content.insert(rng.integers(len(content)), int(rng.choice(list(b'",\n\r;\0 -e'))))
    else:  # a piece doubled
        start = rng.integers(len(content) - 60)
        content[start:start] = content[start : start + rng.integers(1, 60)]
    return bytes(content)


def rows_of(found, kind):
    """The features of each row as another reader finds them; None where it finds none."""
    try:
        if kind == "npz":
            with np.load(io.BytesIO(found), allow_pickle=False) as arrays:
                frame = pd.DataFrame(arrays["X"], columns=arrays["feature_names"].tolist())
        elif kind == "parquet":
            frame = pd.read_parquet(io.BytesIO(found))
        else:
            frame = pd.read_csv(io.BytesIO(gzip.decompress(found) if kind == "csv.gz" else found))
        return [tuple(map(str, row)) for row in frame[[n for n in FEATURES if n in frame]].to_numpy().tolist()]
    except Exception:  # whatever a foreign reader stumbles over
        return None


class Trial:
    """The commands on damaged files of one kind."""

    def __init__(self, kind, folder, model=QUICK):
        self.kind, self.folder, self.model = kind, folder, model
        self.whole, self.broken = content(kind), folder / f"broken.{kind}"
        self.broken.write_bytes(self.whole)
        code, _, err = outcome("fit", self.broken, *COLUMNS, *model, "-o", folder / "model.skops")
        assert code == 0, err
        said = json.loads(self.checked("predict")[1])["predictions"]
        self.known = dict(zip(rows_of(self.whole, kind), [row["probabilities"] for row in said], strict=True))
        self.n_compared = 0

    def words(self, command):
        """How a command is called."""
        if command == "predict":
            return command, self.folder / "model.skops", self.broken, "--json"
        more = ("--cv", "2") if command == "evaluate" else ("-o", self.folder / "fitted.skops")
        return command, self.broken, *COLUMNS, *self.model, *more, "--json"

    def checked(self, command):
        """Exit code and output of a command that must end well or in one line."""
        code, out, err = outcome(*self.words(command))
        lines = err.splitlines()
        assert code in (0, 1, 2)
        assert all(line.startswith("cgnlearn: ") for line in lines), err
        assert [line.startswith("cgnlearn: error: ") for line in lines].count(True) == (code != 0), err
        if code:
            assert out == ""
            assert lines[-1].startswith("cgnlearn: error: ")
        return code, out

    def go(self, number, commands=COMMANDS):
        """Exit codes of commands on the damaged file of a number."""
        found = damaged(self.whole, number % 6, np.random.default_rng(number))
        self.broken.write_bytes(found)
        codes = {}
        for command in commands:
            codes[command], out = self.checked(command)
            if not codes[command]:
                self._check(command, json.loads(out), found)
        return codes

    def _check(self, command, answer, found):
        if command == "evaluate":
            assert all(np.isfinite(entry["log_loss"]["mean"]) for entry in answer["models"])
        elif command == "fit":
            assert answer["rows"] > 0
        else:
            said = [row["probabilities"] for row in answer["predictions"]]
            assert all(abs(sum(row.values()) - 1) < 1e-9 for row in said)
            rows = rows_of(found, self.kind)
            if rows is not None and len(rows) == len(said):
                for row, own in zip(rows, said, strict=True):
                    if row in self.known:
                        self.n_compared += 1
                        assert all(abs(own[label] - p) < 1e-9 for label, p in self.known[row].items()), row


def whole_trial(n=200, model=QUICK, commands=COMMANDS):
    """All kinds and commands; prints how many calls were refused and answered."""
    for kind in KINDS:
        with TemporaryDirectory() as folder:
            trial = Trial(kind, Path(folder), model)
            codes = [trial.go(number, commands) for number in range(n)]
        for command in commands:
            counts = Counter(found[command] for found in codes)
            print(f"{kind:8} {command:9} {n} files: {counts[0]} answered, {n - counts[0]} refused", flush=True)
        print(f"{kind:8} {trial.n_compared} rows predicted as before the damage", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:  # as many files, by the mixture
        whole_trial(int(sys.argv[1]), model=())
    else:
        whole_trial()
