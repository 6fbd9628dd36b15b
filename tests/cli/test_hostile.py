"""Damaged files through the commands: one line of an error, or a right answer."""

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
