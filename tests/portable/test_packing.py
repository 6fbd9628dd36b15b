import json

import numpy as np

from cgnlearn.portable.export import content
from cgnlearn.portable.packing import as_json, packed
from tests.portable.cases import described, fitted
from tests.portable.reader import whole


def undone(found):
    read = json.loads(as_json(found))
    return whole({key: part for key, part in read.items() if key != "shared"}, read["shared"])


def test_whole_numbers_are_exact_and_others_close():
    rng = np.random.default_rng(0)
    given = {
        "counts": rng.integers(0, 5000, (3, 40, 2)).tolist(),
        "directions": rng.normal(size=(20, 2, 9)).tolist(),
        "draws": np.full((30, 10), 2.5).tolist(),
        "slopes": rng.normal(size=(50, 9)).tolist(),
    }
    found = packed(given)
    assert [isinstance(found[key], dict) for key in given] == [True, True, True, False]
    back = undone(found)
    assert back["counts"] == given["counts"]
    assert back["slopes"] == given["slopes"]
    assert back["draws"] == given["draws"]
    np.testing.assert_allclose(back["directions"], given["directions"], atol=1e-6 * np.ptp(given["directions"]), rtol=0)
    assert len(as_json(found["directions"])) < 0.3 * len(as_json(given["directions"]))


def test_short_lists_and_weighted_counts_stay_legible():
    given = {"counts": [[1, 2], [3, 4]], "draws": None, "deep": [{"counts": [0.5] * 300}]}
    assert packed(given) == given | {"shared": []}


def test_equal_parts_are_held_once_and_come_back():
    part = {"origin": [i / 7 for i in range(30)], "unit": [1.0] * 40}
    given = {"a": [part, {"inner": part, "origin": part["origin"]}], "b": part}
    found = packed(given)
    assert len(as_json(found)) < 0.5 * len(as_json(given))
    assert undone(found) == given


def test_the_file_of_a_mixture_has_its_intervals():
    found = json.loads(content(fitted("mixture"), ".json"))
    assert found["interval"]["level"] == 0.9
    back = undone(found)
    np.testing.assert_allclose(back["interval"]["draws"], described("mixture")["interval"]["draws"], atol=1e-7)
    kept = [{key: part for key, part in each.items() if key != "interval"} for each in back["models"]]
    assert kept == [
        {key: part for key, part in each.items() if key != "interval"} for each in described("mixture")["models"]
    ]
