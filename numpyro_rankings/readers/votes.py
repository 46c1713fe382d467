"""Tables of ballots: names in columns of ranks, and scanned sheets of marks.

The readers return the :class:`Votes` of each row, of which the rules in ``ballots.py`` make lists.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import rank_in_words
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_SHOWN = 5  # names in a message
# letters of words in cells, as counting software and vendors' exports write them
BLANK_WORDS = {
    *("undervote", "undervotes", "undervoted", "skipped", "skippedrank", "skip", "blank"),
    *("blankvote", "novote", "novotes", "notvoted", "exhausted", "noselection"),
}
OVERVOTE_WORDS = {"overvote", "overvotes", "overvoted", "overranked"}
_WRITE_IN = re.compile(
    r"(?:(?:un)?(?:declared|qualified|resolved|registered|certified|official)\s+)?"
    r"write[\s_-]*ins?\b.*|uwi",
    re.IGNORECASE | re.DOTALL,
)
_MARKS = ("|", ";", "=", "\n", "//", "/", ",")  # between the names of an overvote
_SURE_MARKS = ("|", ";", "=", "\n")  # names rarely have these
_MARK_WORDS = {"newline": "\n", "space": " ", "tab": "\t", "comma": ",", "semicolon": ";"}
_RANK_IN_HEADER = re.compile(
    r"\b(?:choice|rank(?:ing)?|place|pref(?:erence)?|vote)[ _#:.-]*(\d+)\b|"
    r"\b(\d+)(?:st|nd|rd|th)\b|"
    r"\b(first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b",
    re.IGNORECASE,
)
_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_WORD = r"(?:(?<![A-Za-z])(?:rank|choice|place|pref(?:erence)?))?"
_RANK = rf"{_WORD}[\s_#.]*(?P<rank>\d+)(?:st|nd|rd|th)?\s*{_WORD}"
_ITEM = r"(?P<item>.*?\w.*?)"
# "Ann 1", "Ann [1st choice]"; and "1_Ann", "Rank 1: Ann"
_MARK_AT_END = re.compile(rf"{_ITEM}[\s_:\-\[(.,|]*{_RANK}\s*[\])]*", re.IGNORECASE | re.DOTALL)
_MARK_AT_START = re.compile(
    rf"[\[(]*\s*{_RANK}[\s_:\-\])\[(.,|]+{_ITEM}\s*[\])]*", re.IGNORECASE | re.DOTALL
)
_MARKED = {"1", "x", "true", "yes", "y", "✓", "✔"}
_NOT_MARKED = {"", "0", "false", "no", "n"}


class Votes(NamedTuple):
    """What is on the ballots of a table.

    - **items** - their names.
    - **marks** - (rows, ranks) the item at each rank, or BLANK or OVERVOTE.
    - **is_write_in** - (items,) bool.
    - **notes** - how the texts were read.
    """

    items: tuple[str, ...]
    marks: np.ndarray
    is_write_in: np.ndarray
    notes: list[str]


def is_write_in(name: str) -> bool:
    """Return whether a name says that it was written in, such as ``Write-in`` or ``UWI``."""
    return _WRITE_IN.fullmatch(name.strip()) is not None


def has_words_of_ballots(columns: Sequence[Column]) -> bool:
    """Return whether a cell says that a rank is blank or has several names."""
    words = {letters(text) for column in columns for text in column.values}
    return bool(words & ({"undervote", "skippedrank", "exhausted"} | OVERVOTE_WORDS))


def letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(c for c in text.casefold() if c.isalnum())


def join_aliases(votes: Votes, aliases: Mapping[str, str]) -> Votes:
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
    shown = [f"{alias!r} as {item!r}" for alias, item in list(used.items())[:_SHOWN]]
    rest = f" and {len(used) - _SHOWN:,} more" if len(used) > _SHOWN else ""
    unused = next((alias for alias in aliases if alias not in known), None)
    notes = [f"names are read as others: {', '.join(shown)}{rest}"] if used else []
    if unused is not None:
        number = len(aliases) - len(used)
        verb = "is" if number == 1 else "are"
        notes.append(
            f"{number:,} of {plural(len(aliases), 'name')} in aliases {verb} not in the file, such "
            f"as {unused!r}"
        )
    return notes


# ---------------------------------------------------------------------------------------------
# Names in columns of ranks
# ---------------------------------------------------------------------------------------------


def columns_of_ranks(grid: Grid, names: Sequence[str], is_picked: bool) -> list[str]:
    """Return the columns that are ranks, the first one first.

    :param is_picked: whether the columns were picked; their names need not say the rank then, but
        may not say that they are of two contests, or that there is a column beside the ranks.
    """
    ranks = {name: rank for name in names if (rank := _rank_of_header(name)) is not None}
    if len(set(ranks.values())) == len(names):
        return sorted(names, key=ranks.__getitem__)
    if is_picked and (not ranks or (len(ranks) < len(names) and 1 not in ranks.values())):
        return list(names)
    shown = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
    if not ranks:
        raise RankingsError(
            f"{grid.header_place}: which columns are the ranks of the ballots? Pick them with "
            f"{option('columns')}, such as '*hoice*'; the columns are {shown}"
        )
    other = next((x for x in names if x not in ranks), None)
    if other is None:
        twice = next(x for k, x in enumerate(names) if ranks[x] in [ranks[y] for y in names[:k]])
        raise RankingsError(
            f"{grid.header_place}: several columns are rank {ranks[twice]}, such as {twice!r}; "
            f"pick those of one contest with {option('columns')}"
        )
    raise RankingsError(
        f"{grid.header_place}: the column {other!r} is no rank; pick the ranks with "
        f"{option('columns')}, or add it to {option('about')} if it is about the ballots, to "
        f"{option('judge')} if it names them, or to {option('count')}"
    )


def _rank_of_header(name: str) -> int | None:
    if name.isdecimal():
        return int(name)
    if (said := rank_in_words(name)) is not None:
        return said[0]
    found = _RANK_IN_HEADER.search(name)
    if found is None:
        return None
    number = found[1] or found[2]
    return int(number) if number else _WORDS.index(found[3].lower()) + 1


def votes_of_names(
    grid: Grid,
    ranks: Sequence[Column],
    items: tuple[str, ...] | None,
    separator: str | None,
    aliases: Mapping[str, str],
) -> Votes:
    """Read a column for each rank, with names, words such as ``undervote``, or several names.

    :param items: names of all items; by default those that appear, in order of first appearance.
    :param separator: what is between several names at a rank; by default what is between names
        that other cells have alone.
    :param aliases: further names by which items are called.
    """
    first: dict[str, tuple[int, int]] = {}
    cells: dict[str, int] = {}
    for k, column in enumerate(ranks):
        numbers = np.bincount(column.codes, minlength=len(column.values)).tolist()
        rows = column.first_rows().tolist()
        for text, row, number in zip(column.values, rows, numbers, strict=True):
            first[text] = min(first.get(text, (row, k)), (row, k))
            cells[text] = cells.get(text, 0) + number
    said: dict[int, dict[str, int]] = {BLANK: {}, OVERVOTE: {}}
    codes: dict[str, int] = {"": BLANK}
    names = set(items or ())
    mark = None if separator is None else _MARK_WORDS.get(separator.lower(), separator)
    if mark == "":
        raise RankingsError("separator is empty")
    texts = sorted((text for text in first if text), key=first.__getitem__)
    for text in texts:
        if text in names:
            continue
        word = letters(text)
        for code, words in ((BLANK, BLANK_WORDS), (OVERVOTE, OVERVOTE_WORDS)):
            if word in words:
                codes[text] = code
                said[code][text] = cells[text]
    alone = {*names, *aliases, *(x for x in texts if x not in codes)}
    parts_of: dict[str, list[str]] = {}
    for text in texts:
        if text not in codes and text not in names:
            parts = _parts(text, mark, alone, partial(_place, grid, ranks, first[text]))
            if len(parts) > 1:
                parts_of[text] = parts
    several = {
        text for text, parts in parts_of.items() if len({aliases.get(x, x) for x in parts}) > 1
    }
    single = {text: parts[0] for text, parts in parts_of.items() if text not in several}
    order: dict[str, None] = {}
    for text in texts:
        for name in parts_of.get(text, [text]) if text not in codes else ():
            if items is not None and aliases.get(name, name) not in names and name not in names:
                shown = ", ".join(items[:_SHOWN]) + (", …" if len(items) > _SHOWN else "")
                raise RankingsError(
                    f"{_place(grid, ranks, first[text])}: there is no item {name[:40]!r}; expected "
                    f"{shown}, or a word such as undervote or overvote; add {option('missing')} if "
                    "it means a blank rank"
                )
            order.setdefault(name)
    found = tuple(dict.fromkeys((*(items or ()), *order)))
    index = {name: k for k, name in enumerate(found)}
    for text in texts:
        if text in several:
            codes[text] = OVERVOTE
        elif text not in codes:
            codes[text] = index[single.get(text, text)]
    marks = np.stack(
        [np.array([codes[x] for x in column.values], np.int32)[column.codes] for column in ranks],
        axis=1,
    )
    notes = _notes_of_words(said)
    if several:
        number = sum(cells[text] for text in several)
        example = next(text for text in texts if text in several)
        notes.append(f"several names are in {plural(number, 'cell')}, such as {example[:60]!r}")
    return Votes(found, marks, np.array([is_write_in(x) for x in found], bool), notes)


def _notes_of_words(said: Mapping[int, Mapping[str, int]]) -> list[str]:
    notes = []
    for code, what in ((BLANK, "a blank rank"), (OVERVOTE, "a rank with several names")):
        if said[code]:
            shown = ", ".join(f"{x!r} in {plural(k, 'cell')}" for x, k in said[code].items())
            notes.append(f"read as {what}: {shown}")
    return notes


def _place(grid: Grid, columns: Sequence[Column], where: tuple[int, int]) -> str:
    return f"{grid.where(where[0])}: column {columns[where[1]].name!r}"


def _parts(text: str, mark: str | None, alone: set[str], where: Callable[[], str]) -> list[str]:
    """Return the names in a cell, which are several if all of them are names."""
    if mark is not None:
        parts = [x.strip() for x in text.split(mark)]
        if len(parts) > 1 and not all(parts):
            raise RankingsError(
                f"{where()}: {text[:60]!r} has an empty name between the separators {mark!r}"
            )
        return parts
    for one in _MARKS:
        parts = [x.strip() for x in text.split(one)]
        if len(parts) < 2:
            continue
        if all(x in alone for x in parts):
            return parts
        if one in _SURE_MARKS and any(x in alone for x in parts):
            other = next(x for x in parts if x not in alone)
            raise RankingsError(
                f"{where()}: {text[:60]!r} seems to have several names, but no other cell has "
                f"{other[:40]!r}; add {option('separator', one)}, or {option('items')} with all "
                "names"
            )
    return [text]


def votes_of_ranks(items: tuple[str, ...], ranks: np.ndarray) -> Votes:
    """Return the votes of a table of ranks, in which several items may have one.

    :param ranks: (rows, items) from 1; 0 if there is none.
    """
    marks = np.full((len(ranks), max(1, int(ranks.max(initial=1)))), BLANK, np.int32)
    rows, places = np.nonzero(ranks)
    at = rows, ranks[rows, places] - 1
    marks[at] = places
    number = np.zeros_like(marks)
    np.add.at(number, at, 1)
    marks[number > 1] = OVERVOTE
    return Votes(items, marks, np.array([is_write_in(x) for x in items], bool), [])


# ---------------------------------------------------------------------------------------------
# Scanned sheets
# ---------------------------------------------------------------------------------------------


def votes_of_marks(
    grid: Grid,
    cells: Sequence[Column],
    items: tuple[str, ...] | None,
    aliases: Mapping[str, str],
) -> Votes:
    """Read a column of 0 and 1 for each item and rank, whose names say both.

    :param items: names of all items; by default those of the columns, in their order.
    :param aliases: further names by which items are called.
    """
    known = {*(items or ()), *(aliases if items else ())}
    named = _items_and_ranks(grid, [column.name for column in cells], known)
    found = tuple(dict.fromkeys((*(items or ()), *(name for name, _ in named))))
    index = {name: k for k, name in enumerate(found)}
    width = max(rank for _, rank in named)
    number = np.zeros((len(grid.numbers), width), np.int32)
    marks = np.full((len(grid.numbers), width), BLANK, np.int32)
    for column, (name, rank) in zip(cells, named, strict=True):
        texts = [text.casefold() for text in column.values]
        wrong = [k for k, x in enumerate(texts) if x not in _MARKED and x not in _NOT_MARKED]
        if wrong:
            row = int(column.first_rows()[wrong].min())
            raise RankingsError(
                f"{grid.where(row)}: column {column.name!r}: expected 1 for a mark and 0 or "
                f"nothing for none, got {column.text(row)[:40]!r}"
            )
        is_marked = np.array([x in _MARKED for x in texts], bool)[column.codes]
        number[:, rank - 1] += is_marked
        marks[is_marked, rank - 1] = index[name]
    marks[number > 1] = OVERVOTE
    return Votes(found, marks, np.array([is_write_in(x) for x in found], bool), [])


def _items_and_ranks(grid: Grid, names: Sequence[str], known: set[str]) -> list[tuple[str, int]]:
    """Return the item and the rank that each name of a column says."""
    tried = []
    for pattern in (_MARK_AT_END, _MARK_AT_START):
        matches = [pattern.fullmatch(name) for name in names]
        if all(matches):
            tried.append([(m["item"].strip(), int(m["rank"])) for m in matches if m])
    fitting = [x for x in tried if _is_sheet(x, known)]
    if fitting:
        return fitting[0]
    _refuse_sheet(grid, names, tried, known)


def _is_sheet(named: Sequence[tuple[str, int]], known: set[str]) -> bool:
    """Return whether each item has the ranks 1 to k, once each."""
    items = {name for name, _ in named}
    width = len(named) / max(1, len(items))
    ranks = {rank for _, rank in named}
    is_whole = len(set(named)) == len(named) and len(named) == len(items) * len(ranks)
    is_numbered = ranks == set(range(1, len(ranks) + 1)) and width == len(ranks)
    return is_whole and is_numbered and (not known or items <= known)


def _refuse_sheet(
    grid: Grid,
    names: Sequence[str],
    tried: Sequence[Sequence[tuple[str, int]]],
    known: set[str],
) -> NoReturn:
    if not tried:
        parses = [_MARK_AT_END.fullmatch(x) or _MARK_AT_START.fullmatch(x) for x in names]
        other = next((x for x, m in zip(names, parses, strict=True) if not m), names[0])
        raise RankingsError(
            f"{grid.header_place}: the column {other!r} does not say an item and a rank, such as "
            f"'Ann 1'; pick the marks with {option('columns')}"
        )
    named = tried[0]
    if known and (others := [name for name, _ in named if name not in known]):
        raise RankingsError(
            f"{grid.header_place}: there is no item {others[0]!r}; name all with {option('items')}"
        )
    items = dict.fromkeys(name for name, _ in named)
    width = max(rank for _, rank in named)
    for name in items:
        for rank in range(1, min(width, len(named)) + 1):
            number = list(named).count((name, rank))
            if number != 1:
                has = "no column" if not number else f"{number} columns"
                raise RankingsError(
                    f"{grid.header_place}: {name!r} has {has} for rank {rank}, where others have "
                    f"one; pick the marks with {option('columns')}"
                )
    raise RankingsError(f"{grid.header_place}: the columns are no sheet of items and ranks")
