"""The page for a paper: the items of TRIPOD+AI in order, with what a run knows; the rest are questions to the author.

The items are those of Collins et al. (BMJ 2024;385:e078378), named here in our words: the statement explains them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cgnlearn import __version__
from cgnlearn.files import write_whole


class Item(NamedTuple):
    """An item of the statement."""

    number: str
    title: str
    question: str  # to the author; empty where a run knows all of it


SECTIONS: dict[str, tuple[Item, ...]] = {
    "Title and abstract": (
        Item("1", "Title", "Which people and which outcome does the model serve? Name both in the title."),
        Item("2", "Abstract", "Does the abstract follow TRIPOD+AI for abstracts?"),
    ),
    "Introduction": (
        Item("3a", "Context", "What is the clinical question, and which models exist for it?"),
        Item("3b", "Intended use", "For whom is the model, at which point of care, and who will use it?"),
        Item("3c", "Inequalities", "Which inequalities in health are known between groups of these people?"),
        Item("4", "Aims", "State the aims of the study."),
    ),
    "Methods": (
        Item("5a", "Source of the data", "From which study or records are the data, and do they represent use?"),
        Item("5b", "Dates", "When were the samples collected, and when did follow-up end?"),
        Item("6a", "Setting", "Where, in how many centres and at which level of care were the samples collected?"),
        Item("6b", "Eligibility", "Who was included, and who was not?"),
        Item("6c", "Treatment", "Which treatments did people receive, and how were they handled?"),
        Item("7", "Preparation of the data", "What was done to the data before this run, alike for all groups?"),
        Item("8a", "Outcome", "How and when was the outcome determined, over which horizon, and why this one?"),
        Item("8b", "Assessors", "If the outcome needs judgement: who assessed it, with what training?"),
        Item("8c", "Blinding of the outcome", "Was the outcome assessed without knowledge of the predictors?"),
        Item("9a", "Choice of predictors", "How were the candidate predictors chosen?"),
        Item("9b", "Predictors", "How and when was each measured, in which units, and by whom, blind to the outcome?"),
        Item("9c", "Judgement in predictors", "If a predictor needs judgement: who assessed it, with what training?"),
        Item("10", "Sample size", "How was the size of the study arrived at, and is it enough?"),
        Item("11", "Missing values", "Why are values missing, and could that depend on the outcome?"),
        Item("12a", "Use of the data", "Were any of these samples used before, for this or another model?"),
        Item("12b", "Form of the predictors", ""),
        Item("12c", "Model", "Why this kind of model?"),
        Item("12d", "Differences between places", "Do places or groups of samples differ, and how was that handled?"),
        Item("12e", "Measures of performance", ""),
        Item("12f", "Updating", "Was the model changed after it was evaluated, for all or for some groups?"),
        Item("12g", "How predictions are computed", ""),
        Item("13", "Class imbalance", ""),
        Item("14", "Fairness", "What was done about fairness, and why?"),
        Item("15", "Output of the model", "Why these thresholds?"),
        Item("16", "Training and evaluation data", "How do setting, eligibility and outcome differ between them?"),
        Item("17", "Ethics", "Which committee approved the study, and how was consent handled?"),
    ),
    "Open science": (
        Item("18a", "Funding", "Who paid, and what was their role?"),
        Item("18b", "Conflicts of interest", "Declare those of all authors."),
        Item("18c", "Protocol", "Where is the protocol, or was there none?"),
        Item("18d", "Registration", "Where is the study registered, or is it not?"),
        Item("18e", "Data sharing", "Where can the data be had?"),
        Item("18f", "Code and software", "Where can the code of the analysis be had?"),
        Item("19", "Patients and public", "How were they involved, or were they not?"),
    ),
    "Results": (
        Item("20a", "Flow of participants", "How many were not included before this file, and how long was follow-up?"),
        Item("20b", "Characteristics (Table 1)", "Add dates, treatments and groups that are no predictors."),
        Item("20c", "Comparison with the training data", "How do predictors and outcome differ from it?"),
        Item("21", "Samples and events in each analysis", ""),
        Item("22", "The full model", "Where can others get the model, and on what terms?"),
        Item("23a", "Performance", ""),
        Item("23b", "Differences in performance", "How does performance differ between places?"),
        Item("24", "Results of updating", "If the model was updated, report it and its performance."),
    ),
    "Discussion": (
        Item("25", "Interpretation", "What do the results mean beside the aims, earlier studies and fairness?"),
        Item("26", "Limitations", "Which limits do the data and the analysis have?"),
        Item("27a", "Poor or absent input", "How should values of poor quality be handled in use?"),
        Item("27b", "Interaction", "What do users have to do, and what do they have to know?"),
        Item("27c", "Next steps", "What is needed before use, and for whom may the model not hold?"),
    ),
}

Answers = Mapping[str, Sequence[str]]  # paragraphs and tables in Markdown, by the number of the item


def tripod_text(title: str, answers: Answers) -> str:
    """The page in Markdown.

    Examples
    --------
    >>> page = tripod_text("a study", {"10": ["200 samples."]})
    >>> print(page[page.index("### 10") : page.index("### 11")])
    ### 10 Sample size
    <BLANKLINE>
    200 samples.
    <BLANKLINE>
    **To the author:** How was the size of the study arrived at, and is it enough?
    <BLANKLINE>
    <BLANKLINE>
    """
    known = {item.number for items in SECTIONS.values() for item in items}
    unknown = [number for number in answers if number not in known]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no item: the first are {', '.join(sorted(known)[:3])}")
    written = f"Written by cgnlearn {__version__} on {datetime.now(UTC):%Y-%m-%d}."
    about = "What the run knows is filled in below its item; lines that begin with **To the author:** are yours."
    blocks = [f"# TRIPOD+AI: {escaped(title)}", f"{written} {about}"]
    for section, items in SECTIONS.items():
        blocks.append(f"## {section}")
        for item in items:
            own = list(answers.get(item.number, ()))
            question = item.question or ("" if own else f"Describe: {item.title.lower()}.")
            blocks += [f"### {item.number} {item.title}", *own]
            if question:
                blocks.append(f"**To the author:** {question}")
    return "\n\n".join(blocks) + "\n"


def write_tripod(path: str | Path, title: str, answers: Answers) -> None:
    """Write the page; answers are those of `tripod_answers`."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, tripod_text(title, answers))


def escaped(text: object) -> str:
    """Text that Markdown shows as it is."""
    plain = " ".join(str(text).split())
    for sign in "\\`*[]<>|#":
        plain = plain.replace(sign, f"\\{sign}")
    return plain


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; the cells of the first column are left-aligned, others are right-aligned."""
    lines = [
        f"| {' | '.join(escaped(name) for name in headings)} |",
        f"|---|{'---:|' * (len(headings) - 1)}",
        *(f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows),
    ]
    return "\n".join(lines)
