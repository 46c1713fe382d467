"""What is on ballots: names, write-ins and overvotes, of which rules make lists.

Readers of ballots return the :class:`Votes` of each row; the rules are in ``ballots.py``.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE, Rules, apply_rules
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.questions import QuestionSpec, read_counts
from numpyro_rankings.words import plural

# letters of words in cells, as counting software and vendors' exports write them
_UNSURE = {  # that are also words of surveys, or may be items
    *("skipped", "skip", "blank", "blankvote", "blankballot", "leftblank", "novote", "novotes"),
    *("notvoted", "noselection", "multiple"),
}
OVERVOTE_WORDS = {
    *("over", "overvote", "overvotes", "overvoted", "overranked", "survote", "survotes"),
    *("doublevote", "multiplevotes", "multiplemarks", "multiple"),
}
BLANK_WORDS = {
    *("under", "undervote", "undervotes", "undervoted", "underranked", "skippedrank"),
    *("exhausted", "exhaust", "exhaustedballot", "sousvote", "sousvotes"),
    *_UNSURE - OVERVOTE_WORDS,
}
_CODES = {"o": OVERVOTE, "ov": OVERVOTE, "u": BLANK, "uv": BLANK}
_WRITE_IN = re.compile(
    r"(?:(?:un)?(?:declared|qualified|resolved|registered|certified|official)\s+)?"
    r"write[\s_-]*ins?\b.*|uwi",
    re.IGNORECASE | re.DOTALL,
)


class Votes(NamedTuple):
    """What is on the ballots of a table."""

    items: tuple[str, ...]  # their names
    marks: np.ndarray  # (rows, ranks) the item at each rank, or BLANK or OVERVOTE
    is_write_in: np.ndarray  # (items,) bool
    notes: list[str]  # how the texts were read


def votes_of_marks(items: Sequence[str], marks: np.ndarray, notes: Sequence[str] = ()) -> Votes:
    """Return votes among items, whose names say which are write-ins."""
    written = np.array([is_write_in(name) for name in items], bool)
    return Votes(tuple(items), marks, written, list(notes))


def is_write_in(name: str) -> bool:
    """Return whether a name says that it was written in, such as ``Write-in`` or ``UWI``."""
    return _WRITE_IN.fullmatch(name.strip()) is not None


def words_of_ballots(texts: Iterable[str], items: Sequence[str] = ()) -> dict[str, int]:
    """Return the texts that say that a rank is blank or has several names, and the mark of each.

    Codes such as O and U do so among names that are longer, or among numbers.
    """
    words = {text: letters(text) for text in texts if text}
    marks = dict.fromkeys(BLANK_WORDS, BLANK) | dict.fromkeys(OVERVOTE_WORDS, OVERVOTE)
    others = {word for word in words.values() if word not in marks and word not in _CODES}
    others |= set(map(letters, items))
    if others:
        shortest = min((len(word) for word in others if not word.isdecimal()), default=99)
        marks |= {word: mark for word, mark in _CODES.items() if len(word) < shortest}
    return {x: marks[word] for x, word in words.items() if word in marks and x not in items}


def sure_words_of_ballots(columns: Sequence[Column]) -> set[str]:
    """Return the texts that only ballots have for a rank that is blank or has several names."""
    words = words_of_ballots({text for column in columns for text in column.values})
    return {text for text in words if letters(text) not in _UNSURE}


def letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(c for c in text.casefold() if c.isalnum())


def _join_aliases(votes: Votes, aliases: Mapping[str, str]) -> Votes:
    """Join items under the names that aliases give them."""
    if not aliases:
        return votes
    index: dict[str, int] = {}
    new = [index.setdefault(aliases.get(name, name), len(index)) for name in votes.items]
    codes = np.array([*new, OVERVOTE, BLANK], np.int32)  # the codes count from the end
    written = np.zeros(len(index), bool)
    np.logical_or.at(written, new, votes.is_write_in)
    notes = [*votes.notes, *notes_of_aliases(aliases, votes.items)]
    return Votes(tuple(index), codes[votes.marks], written, notes)


def notes_of_aliases(aliases: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return what names were read as others."""
    if not aliases:
        return []
    known = set(names)
    used = {alias: item for alias, item in aliases.items() if alias in known}
    shown = names_counted([f"{alias!r} as {item!r}" for alias, item in used.items()])
    unused = next((alias for alias in aliases if alias not in known), None)
    notes = [f"names are read as others: {shown}"] if used else []
    if unused is not None:
        number = len(aliases) - len(used)
        verb = "is" if number == 1 else "are"
        notes.append(
            f"{number:,} of {plural(len(aliases), 'name')} in aliases {verb} not in the file, such "
            f"as {unused!r}"
        )
    return notes


def votes_of_ranks(items: tuple[str, ...], ranks: np.ndarray) -> Votes:
    """Return the votes of ranks (rows, items), of which several may be the same; 0 is none."""
    marks = np.full((len(ranks), max(1, int(ranks.max(initial=1)))), BLANK, np.int32)
    rows, places = np.nonzero(ranks)
    at = rows, ranks[rows, places] - 1
    marks[at] = places
    number = np.zeros_like(marks)
    np.add.at(number, at, 1)
    marks[number > 1] = OVERVOTE
    return votes_of_marks(items, marks)


def lists_of_ballots(grid: Grid, spec: QuestionSpec, votes: Votes) -> Lists:
    """Apply the rules to the votes of each row."""
    rows = np.arange(len(grid.numbers))
    rules = spec.rules or Rules()
    votes = _join_aliases(votes, spec.aliases)
    counts = read_counts(grid, spec.counts, rows)
    lists, touched = apply_rules(votes.marks, counts, rules, votes.is_write_in)
    notes, items = list(votes.notes), votes.items
    if written := [name for name, x in zip(items, votes.is_write_in, strict=True) if x]:
        notes.append(f"write-ins are {names_counted([repr(name) for name in written])}")
        if rules.write_ins == "skip":
            items, lists = without_items(written, items, lists)
    notes += touched.notes(rules)
    return Lists(items, lists, rows, grid.where, 0, touched, tuple(notes))


def without_items(
    dropped: Container[str], items: Sequence[str], marks: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray]:
    """Drop some of the items; a rank with one of them is blank in the marks."""
    kept = [k for k, name in enumerate(items) if name not in dropped]
    index = np.full(len(items) + 2, BLANK, np.int32)
    index[kept] = np.arange(len(kept))
    index[OVERVOTE] = OVERVOTE
    return tuple(items[k] for k in kept), index[marks]
