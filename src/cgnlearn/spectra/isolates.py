"""The tables of DRIAMS: a code, species and results of antibiotics for each isolate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cgnlearn.tables.formats import ColumnError

CODE, SPECIES = "code", "species"
OF = " of "  # between the antibiotic and the species in a target
RESISTANT = {"R": "R", "I": "R", "S": "S"}  # intermediate counts as resistant; other marks are no result
_REPLICATE = re.compile(r"_MALDI\d+$")


def is_table_of_isolates(columns: Mapping[str, Any]) -> bool:
    """Whether columns, in lower case, are those of a table of DRIAMS."""
    return CODE in columns and SPECIES in columns and "file" not in columns


def isolate(code: str) -> str:
    """The isolate of a code, without the number of its replicate.

    Examples
    --------
    >>> isolate("0b7c_MALDI2"), isolate("0b7c")
    ('0b7c', '0b7c')
    """
    return _REPLICATE.sub("", code)


def labelled_codes(
    path: Path, columns: Mapping[str, Sequence[str]], names: Sequence[str], target: str, notify: Callable[[str], Any]
) -> dict[str, str | None]:
    """The class of each code, None where the target has no result or the species is another one.

    ``columns`` are by name in lower case, ``names`` as written. ``target`` is ``"species"``, an antibiotic, or
    "antibiotic of species".
    """
    wanted, _, species = target.partition(OF)
    if wanted.lower() not in columns:
        drugs = [name for name in names if name[:1].isupper() and not name.startswith("Unnamed")]
        close = get_close_matches(wanted.casefold(), [name.casefold() for name in drugs], n=3)
        start = wanted.casefold()[:4]
        near = [name for name in drugs if name.casefold() in close or name.casefold().startswith(start)][:3]
        told = (
            f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(drugs[:8])}{' …' * (len(drugs) > 8)}"
        )
        raise ColumnError(f"{path} has no antibiotic {wanted!r}: {told}")
    kinds = [cell.strip() for cell in columns[SPECIES]]
    if species and species.casefold() not in {kind.casefold() for kind in kinds}:
        close = get_close_matches(species, sorted(set(kinds)), n=3)
        told = f": did you mean {' or '.join(close)}?" if close else ": see its column species"
        raise ColumnError(f"{path} has no species {species!r}{told}")
    found: dict[str, str | None] = {}
    n_of_species = 0
    for code, kind, cell in zip(columns[CODE], kinds, columns[wanted.lower()], strict=True):
        if not code:
            continue
        if code in found:
            raise ValueError(f"{path} names the code {code!r} for the second time: remove it")
        is_wanted = not species or kind.casefold() == species.casefold()
        n_of_species += is_wanted
        label = kind or None if wanted.lower() == SPECIES else RESISTANT.get(cell.strip())
        found[code] = label if is_wanted else None
    n_without = n_of_species - sum(label is not None for label in found.values())
    if n_without == n_of_species:
        raise ValueError(f"{path} has no result for {target!r}: choose another antibiotic, species or year")
    if n_without:
        notify(f"{path}: {n_without} of {n_of_species} codes have no result for {target} and are not used")
    return found
