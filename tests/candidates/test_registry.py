"""One list of names for both estimators, the command line and the documentation."""

from pathlib import Path

import click
import numpy as np
import pytest

from cgnlearn import CGNClassifier, CGNClassifierCV, Jan
from cgnlearn.candidates.candidate import Candidate, Profile, Skipped
from cgnlearn.candidates.registry import CANDIDATES, MIXTURE, NAMES, NETWORKS, candidate_class, in_words, suited
from cgnlearn.cli.main import main
from cgnlearn.data.table import read_training
from cgnlearn.networks.prior import Prior

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    return rng.normal(size=(40, 4)).cumsum(axis=1) + y[:, None], y


def test_the_names_are_those_of_the_candidates():
    assert [candidate_class(name).name for name in CANDIDATES] == list(CANDIDATES)
    assert len({candidate_class(name).label for name in CANDIDATES}) == len(CANDIDATES)


def test_the_command_line_offers_them():
    of_command = {
        name: next(option for option in command.params if option.name == "structure").type.choices
        for name, command in (
            (name, main.get_command(click.Context(main), name)) for name in ("fit", "evaluate", "merge")
        )
    }
    assert of_command == {"fit": NAMES, "evaluate": NAMES, "merge": NETWORKS}


def test_the_documentation_has_them_all():
    mixture, structures = ((DOCS / name).read_text(encoding="utf-8") for name in ("mixture.md", "structures.md"))
    assert [name for name in CANDIDATES if f"`{name}`" not in mixture] == []
    assert [name for name in NETWORKS if f'`"{name}"`' not in structures] == []
    assert [name for name in CANDIDATES if f'``"{name}"``' not in CGNClassifierCV.__doc__] == []
    assert [name for name in NETWORKS if f'``"{name}"``' not in CGNClassifier.__doc__] == []


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_fitted_by_its_name(name, samples):
    X, y = samples
    model = CGNClassifier(name).fit(X, y)
    assert model.predict_proba(X).shape == (40, 2)
    assert hasattr(model, "k_") == (name in ("band", "box"))


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(NETWORKS)))
def test_what_is_no_network_says_where_to_find_it(name, samples):
    given = "" if name == MIXTURE else rf'candidates=\["{name}"\]'
    with pytest.raises(ValueError, match=rf"{name} is no structure of one network: use CGNClassifierCV\({given}\)"):
        CGNClassifier(name).fit(*samples)


def test_all_suit_a_table_of_ordered_columns(samples):
    """Each candidate's settings name it, have words, and come with a forecast; a learner stands under its own name."""
    table, _ = read_training(samples[0], np.arange(40) % 3)  # two classes are in an order anyway
    profile = Profile(table.schema, 40, ("none", "power"), Prior(), ordered=True)
    found = list(suited(profile, [*CANDIDATES, Jan([[0, 1]])]))
    assert not [each for each in found if isinstance(each, Skipped)]
    candidates = [each for each in found if isinstance(each, Candidate)]
    assert {each.name for each in candidates} == {"frequencies", *CANDIDATES, "Jan"}
    for candidate in candidates:
        assert candidate.seconds(profile) > 0
        for settings in candidate.settings:
            assert settings["candidate"] == candidate.name
            assert in_words(settings).startswith(getattr(candidate, "label", "Jan"))
