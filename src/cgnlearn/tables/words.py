"""What the words of a column look like: dates, and numbers that are not written as such."""

from __future__ import annotations

import re
from collections import Counter

DATES = "dates or times"
UNIT = "numbers with a unit"
MIXED = "words among numbers"
ROW_NAMES = "names of rows"
ROW_NUMBERS = "numbers of rows"
UNCLEAR = "numbers whose marks may be decimal or stand between thousands"
MONTH = r"(jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]*\.?"
NUMBER = r"[-+−]?\d+([.,]\d+)?"
FORMS = {
    DATES: re.compile(
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}\S*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( \d{1,2}:\d{2}\S*)?"
        rf"|\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?|\d{{4}}[-/]\d{{1,2}}|(?i:\d{{1,2}}\.?[- /]?{MONTH}[-, /]*\d{{2,4}})"
        rf"|(?i:{MONTH}[- ]\d{{1,2}},? \d{{4}}|{MONTH}[- ]\d{{4}})"
    ),
    "numbers with signs between the digits": re.compile(r"[-+−]?[$€£¥]?\s?\d{1,3}([,.'’\s]\d{2,3})+([.,]\d+)?"),
    "percentages": re.compile(rf"{NUMBER}\s?%"),
    "values beyond a limit": re.compile(rf"[<>≤≥~]=?\s?{NUMBER}"),
    "two numbers in a cell": re.compile(rf"{NUMBER}\s?/\s?{NUMBER}"),
}
WITH_UNIT = re.compile(rf"([$€£¥])\s?{NUMBER}|{NUMBER}\s?([$€£¥]|°?[^\W\d_][\w/²³·^*-]*)")
ADVICE = {  # what to do about columns that are excluded, with an option for a cell or a column
    DATES: "convert them to numbers, such as days since the first",
    "numbers with signs between the digits": "write them as plain numbers",
    "percentages": "write them without the sign",
    "values beyond a limit": "replace them by numbers, or declare them missing with {na}",
    "two numbers in a cell": "put them into two columns",
    UNIT: "write them without the unit",
    MIXED: "correct them, or declare them missing with {na}",
    ROW_NAMES: "name one with {id}",
    ROW_NUMBERS: "name one with {id}; if it measures something, rename it or order the rows otherwise",
    UNCLEAR: "write them without marks between the thousands",
}


class Words:
    """The forms of the words of a column."""

    def __init__(self) -> None:
        self.forms: Counter[str] = Counter()
        self.units: Counter[str] = Counter()

    def add(self, word: str, n: int) -> None:
        """Take a word that occurs n times into account."""
        self.forms.update({what: n for what, form in FORMS.items() if form.fullmatch(word)})
        if found := WITH_UNIT.fullmatch(word):
            self.units[found[1] or found[4]] += n

    def form_of(self, n: float) -> str | None:
        """The form, and one unit, of at least n cells."""
        for what in FORMS:
            if self.forms[what] >= n:
                return what
        return UNIT if max(self.units.values(), default=0) >= n else None
