"""Damaged files through the commands: one line of an error, or a right answer."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cgnlearn.cli.main import main

COLUMNS = ("-t", "diagnosis", "--categorical", "stage", "--id", "subject", "-s", "naive_bayes", "-p", "bayes")


def run(*words):
    found = CliRunner().invoke(main, [str(word) for word in words], prog_name="cgnlearn")
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.stdout, found.stderr


def table(n=40):
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
    frame, buffer = table(), io.BytesIO()
    if kind == "npz":
        names = ["stage", "marker", "ratio"]
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


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "npz"])
def test_200_damaged_files_give_one_line_or_an_answer(kind, tmp_path):
    model, fitted, broken = tmp_path / "model.skops", tmp_path / "fitted.skops", tmp_path / f"broken.{kind}"
    whole = content(kind)
    broken.write_bytes(whole)
    assert run("fit", broken, *COLUMNS, "-o", model)[0] == 0
    rng = np.random.default_rng(0)
    codes = {"evaluate": [], "fit": [], "predict": []}
    for number in range(200):
        broken.write_bytes(damaged(whole, number % 6, rng))
        calls = {
            "evaluate": ("evaluate", broken, *COLUMNS, "--cv", "2", "--json"),
            "fit": ("fit", broken, *COLUMNS, "-o", fitted, "--json"),
            "predict": ("predict", model, broken, "--json"),
        }
        first = list(calls)[number % 3]
        for command, words in [(first, calls[first]), *((name, own) for name, own in calls.items() if name != first)]:
            code, out, err = run(*words)
            codes[command].append(code)
            assert "Traceback" not in err
            lines = err.splitlines()
            assert all(line.startswith("cgnlearn: ") for line in lines), err
            assert sum(line.startswith("cgnlearn: error: ") for line in lines) == (code != 0), err
            assert code in (0, 1, 2)
            if code == 0:
                answer = json.loads(out)
                if command == "predict":
                    for row in answer["predictions"]:
                        assert sum(row["probabilities"].values()) == pytest.approx(1)
                elif command == "evaluate":
                    assert all(np.isfinite(entry["cll"]["mean"]) for entry in answer["models"])
                if number % 4:
                    break  # what one command can read the others mostly can, and answers take their time
            else:
                assert out == ""
                assert lines[-1].startswith("cgnlearn: error: ")
    for found in codes.values():
        assert set(found) - {0}, "nothing was refused"
    if kind == "csv":  # where most damage is another value
        assert 0 in codes["evaluate"]
    elif kind == "csv.gz":  # which has a checksum
        assert codes["fit"].count(0) < 20
