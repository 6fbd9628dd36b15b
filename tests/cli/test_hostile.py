"""Damaged files and random tables through the commands: one line of an error, or a right answer."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.damage import COMMANDS, KINDS, Trial


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "kind", [kind if kind == "npz" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
def test_200_damaged_files_give_one_line_or_a_right_answer(kind, tmp_path):
    trial = Trial(kind, tmp_path)
    codes = [trial.go(number) for number in range(200)]
    n_answered = {command: sum(found[command] == 0 for found in codes) for command in COMMANDS}
    assert all(0 < n < 60 for n in n_answered.values()), n_answered
    assert trial.n_compared >= 40
    if kind == "csv.gz":  # which has a checksum
        assert max(n_answered.values()) < 5


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_random_tables_give_a_report_without_impossible_numbers(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "bench")
    import hostile

    rng = np.random.default_rng(0)
    n_done = 0
    for name, frame in hostile.simulated_sets(rng, 10):
        table = hostile.part_of(rng, frame)
        if table["class"].nunique() > 1:
            words = hostile.options_for(rng, table, tmp_path)
            wrong, found = hostile.violations(table, words, tmp_path)
            assert not wrong, (name, words)
            n_done += found.exit_code == 0
    assert n_done >= 7


def test_impossible_numbers_are_found(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "bench")
    import hostile

    cell = '<td data-label="Accuracy difference, percentage points (95% CI)"><span>{}</span></td>'
    good = '+30.0 <span class="soft">(−5.0 to +60.1)</span>'
    assert not list(hostile.wrong_in_page(cell.format(good)))
    for bad in (
        '+45.0 <span class="soft">(−42.5 to +133.6)</span>',
        '+45.0 <span class="soft">(+46.0 to +50.0)</span>',
        "nan",
    ):
        assert list(hostile.wrong_in_page(cell.format(bad)))
    accuracy = {"mean": 0.9, "sd": None}
    estimate = {"value": 0.9, "low": 0.95, "high": 1.0}
    assert not list(hostile.wrong_numbers({"models": [{"model": "m", "accuracy": accuracy}]}))
    assert list(hostile.wrong_numbers({"models": [{"model": "m", "accuracy": accuracy | {"mean": 1.1}}]}))
    assert list(hostile.wrong_numbers({"models": [{"model": "m", "decisions": {"auc": estimate}}]}))
