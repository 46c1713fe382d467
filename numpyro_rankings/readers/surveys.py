"""Surveys: rankings with the judges who gave them, in the layouts in which people have them.

To add a layout, write a reader such as :func:`_of_orders` and add it to :data:`_READERS`.
"""

import csv
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError, _item_names, build_rankings
from numpyro_rankings.readers.aliases import Aliases, read_aliases
from numpyro_rankings.readers.answers import layout_of_cells, with_values
from numpyro_rankings.readers.ballots import (
    RULES,
    BallotCounts,
    Rules,
    apply_rules,
    given_rules,
)
from numpyro_rankings.readers.exports import (
    Reading,
    Table,
    choose,
    fold_header,
    name_columns,
    read_question,
)
from numpyro_rankings.readers.grids import (
    EXCEL_SUFFIXES,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    Column,
    Grid,
    read_grid,
    whole_number,
)
from numpyro_rankings.readers.text import check_writable_texts, weight_hint
from numpyro_rankings.readers.votes import (
    Votes,
    columns_of_ranks,
    has_words_of_ballots,
    join_aliases,
    notes_of_aliases,
    votes_of_marks,
    votes_of_names,
    votes_of_ranks,
)
from numpyro_rankings.words import plural

_UNRANKED, _GAPS = ("below", "not-offered"), ("refuse", "close")
_ORDINAL = re.compile(r"(?:rank|choice|place|pref(?:erence)?)?[ _]?(\d+)(?:st|nd|rd|th)?", re.I)
_SHOWN = 5  # rows or items in a message
_MOST_RANKINGS = 100_000_000


class Survey(NamedTuple):
    """Rankings, and the judges who gave them.

    - **rankings** - one row for each distinct ranking; N rankings in all.
    - **place** - (N,) int, the place of each ranking of the file, in its order, among the N labels
      of a kernel that was run on ``rankings``: ``labels[survey.place]`` are in the file's order.
    - **judges** - (N,) names of the judges, or None if the file has none.
    - **about** - (N,) texts by column: what else the file says about each judge.
    - **layout** - how the file was read.
    - **notes** - what a reader of the file should know, a sentence each.
    - **rows** - (N,) int, the line or row of the file that each ranking is in, or None if that is
      not known.
    - **ballots** - how many ballots each rule touched, or None if the file has no ballots.
    - **items_about** - texts by what they say, such as a party, one for each item; None if the file
      says nothing about them.
    """

    rankings: Rankings
    place: np.ndarray
    judges: list[str] | None
    about: dict[str, list[str]]
    layout: str
    notes: list[str]
    rows: np.ndarray | None = None
    ballots: BallotCounts | None = None
    items_about: dict[str, list[str]] | None = None


class _Columns(NamedTuple):
    """The columns of a table by their meaning, and how to read them; None if there is none."""

    judge: str | None
    item: str | None
    rank: str | None
    counts: str | None
    about: tuple[str, ...]
    items: tuple[str, ...] | None
    closes_gaps: bool
    is_picked: bool  # the items, perhaps some of a question
    rules: Rules | None = None
    separator: str | None = None
    aliases: Mapping[str, str] = MappingProxyType({})

    @property
    def special(self) -> set[str]:
        """Columns that are neither items nor places."""
        named = {self.judge, self.item, self.rank, self.counts, *self.about}
        return {name for name in named if name is not None}


class _Lists(NamedTuple):
    """The lists of a table.

    - **items** - names of all items.
    - **orderings** - (lists, T) items, best first, padded with -1; all -1 if a judge ranks none.
    - **rows** - (lists,) a row of the grid that each is in, for its id, count and further columns.
    - **where** - what messages call each.
    - **num_closed** - lists of which gaps were closed.
    - **ballots** - how many ballots each rule touched, or None.
    - **notes** - how the cells were read.
    """

    items: tuple[str, ...]
    orderings: np.ndarray
    rows: np.ndarray
    where: Callable[[int], str]
    num_closed: int
    ballots: BallotCounts | None = None
    notes: tuple[str, ...] = ()


def survey_of(rankings: Rankings, layout: str) -> Survey:
    """Return the survey of rankings whose judges are not known."""
    return Survey(rankings, np.arange(rankings.num_rankings), None, {}, layout, [])


def read_layout(
    source: Any,
    layout: str | None = None,
    *,
    judge: str | None = None,
    about: Sequence[str] = (),
    items: Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    count: str | None = None,
    unranked: str = "below",
    gaps: str = "refuse",
    columns: str | Sequence[str] = (),
    header_rows: int | None = None,
    separator: str | None = None,
    missing: str | Sequence[Any] = (),
    highest_first: bool | None = None,
    overvote: str | None = None,
    skipped: int | None = None,
    repeated: str | None = None,
    write_ins: str | None = None,
    max_ranks: int | None = None,
    aliases: Aliases = None,
    contest: str | None = None,
    encoding: str | None = None,
) -> Survey:
    """Read a table of rankings; see :func:`~numpyro_rankings.read_survey`."""
    if layout is not None and layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    for name, value, known in (("unranked", unranked, _UNRANKED), ("gaps", gaps, _GAPS)):
        if value not in known:
            raise RankingsError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
    if contest is not None:
        raise RankingsError(
            "contest goes with cast vote records (.json); of a table, columns picks those of a "
            "contest"
        )
    rules = given_rules(
        overvote=overvote,
        skipped=skipped,
        repeated=repeated,
        write_ins=write_ins,
        max_ranks=max_ranks,
    )
    names = None if items is None else _item_names(items)
    about = (about,) if isinstance(about, str) else about
    source, notes = _with_index(source, (judge, item, rank, count, *about))
    table = fold_header(read_grid(source, names or (), encoding), header_rows)
    judge, item, rank, count = (
        None if x is None else table.name_of(x) for x in (judge, item, rank, count)
    )
    patterns = (columns,) if isinstance(columns, str) else tuple(map(str, columns))
    about = tuple(map(table.name_of, about))
    closes_gaps = gaps == "close"
    named = _Columns(judge, item, rank, count, about, names, closes_gaps, bool(patterns))
    _check_columns(table.grid, named)
    said = missing.split(",") if isinstance(missing, str) else missing
    words = tuple(str(word).strip() for word in said)
    question, more = choose(table, patterns, named.special)
    notes += more
    if layout is None:
        layout, why = _layout_by_names(table, question, bool(patterns), words)
        notes.append(f"read as --layout {layout}, because of the {why}")
    if layout in _BALLOTS and gaps != "refuse":
        raise RankingsError(f"gaps does not go with the layout {layout}, whose rule is skipped")
    if rules is not None and layout not in (*_BALLOTS, "ranks"):
        name = next(x for x in RULES if getattr(rules, x) != getattr(Rules(), x))
        raise RankingsError(
            f"{name} is a rule of ballots, which the layouts votes, marks and ranks have, not "
            f"{layout}"
        )
    joined = read_aliases(aliases)
    named = named._replace(rules=rules, separator=separator, aliases=joined)
    if layout == "long":
        judge, item, rank = _columns_of_long(table.grid, judge, item, rank)
        named = named._replace(judge=judge, item=item, rank=rank)
        _check_columns(table.grid, named)
        question = [table.grid.columns.index(rank)]
        if others := [repr(x) for x in table.grid.columns if x and x not in named.special]:
            verb = "column is" if len(others) == 1 else "columns are"
            shown = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
            notes.append(f"{len(others)} other {verb} left out: {shown}")
    elif item is not None or rank is not None:
        raise RankingsError(f"item and rank name columns of the layout long, not of {layout}")
    reading = Reading(
        layout,
        patterns,
        frozenset(named.special),
        separator,
        words,
        highest_first,
        names,
        named.closes_gaps or rules is not None,
        rules is not None,
    )
    grid, more = read_question(table, question, reading)
    if joined and layout not in _BALLOTS:
        grid, of_aliases = _with_aliases(grid, named, layout)
        more += of_aliases
    found = _READERS[layout](grid, named)
    notes = [*table.grid.notes, *table.notes, *notes, *more]
    return _survey(grid, named, found, layout, unranked == "not-offered", notes)


# ---------------------------------------------------------------------------------------------
# Which layout
# ---------------------------------------------------------------------------------------------


def _with_index(source: Any, named: Sequence[str | None]) -> tuple[Any, list[str]]:
    """Return a data frame with the columns of its index that are named, and notes."""
    if not (hasattr(source, "columns") and hasattr(source, "iloc")):
        return source, []
    names = [x for x in source.index.names if x is not None and x not in source.columns]
    wanted = [x for x in names if str(x) in set(map(str, named))]
    if wanted:
        return source.reset_index(level=wanted), []
    if names:
        return source, [f"the index is left out: judge={names[0]!r} takes it as the judges"]
    if any(isinstance(x, str) for x in source.index):
        return source, ["the index, which has no name, is left out: is it the judges?"]
    return source, []


def _layout_by_names(
    table: Table, question: Sequence[int], is_picked: bool, missing: Sequence[str]
) -> tuple[str, str]:
    """Return the layout that the columns say, and what says it.

    :param question: the columns that have no other meaning.
    :param is_picked: whether they were picked, so that their cells are answers.
    :param missing: texts that mean that nothing is ranked.
    :raises RankingsError: if they do not, showing the first row read in both ways.
    """
    grid = table.grid
    names = {name.lower() for name in grid.columns}
    if not is_picked and {"judge", "item"} <= names and names & {"rank", "position"}:
        return "long", "names of the columns"
    if is_picked and len(question) == 1:
        return "cell", "one column"
    columns = name_columns([table.labels[k] for k in question], (), ()) if is_picked else []
    if has_words_of_ballots([grid.cells[k] for k in question]):
        return "votes", "words such as undervote in its cells"
    if _places_by_names(columns or [grid.columns[k] for k in question]):
        return "orders", "names of the columns"
    found = layout_of_cells([grid.cells[k] for k in question], missing) if is_picked else None
    if found is not None:
        return found, "texts of the cells"
    cells = [(grid.cells[k].name, grid.cells[k].text(0)) for k in question[:_SHOWN]]
    more = ", …" if len(question) > _SHOWN else ""
    ranks = ", ".join(f"{name!r} has rank {cell or 'none'}" for name, cell in cells)
    orders = ", ".join(f"{cell or 'nothing'!r} is at place {name!r}" for name, cell in cells)
    raise RankingsError(
        f"{grid.where(0)}: the layout is needed. As ranks (one column for each item), this row "
        f"says: {ranks}{more}. As orders (one column for each place): {orders}{more}. Add --layout "
        "ranks or --layout orders, or --layout long if each row is one judge and one item, or "
        "--layout cell if one cell has the whole order"
    )


def _places_by_names(columns: Sequence[str]) -> list[str]:
    """Return the columns that are places by their names, such as 1st and 2nd, the best first."""
    found = {name: int(m[1]) for name in columns if (m := _ORDINAL.fullmatch(name))}
    # a column "1" may also be an item or a judge, so that numbers alone do not suffice
    named = {name: k for name, k in found.items() if not name.isdecimal()}
    if len(named) < 2 or sorted(named.values()) != list(range(1, len(named) + 1)):
        return []
    return sorted(named, key=lambda name: named[name])


def _columns_of_long(
    grid: Grid, judge: str | None, item: str | None, rank: str | None
) -> tuple[str, str, str]:
    """Return the columns with the judge, the item and the rank; by default those of that name."""

    def find(given: str | None, option: str, *names: str) -> str:
        if given is not None:
            return given
        found = [name for name in grid.columns if name.lower() in names]
        if len(found) != 1:
            known = ", ".join(map(repr, grid.columns))
            raise RankingsError(
                f"{grid.name}: which column has the {option}? Name it with --{option}; the columns "
                f"are {known}"
            )
        return found[0]

    return (
        find(judge, "judge", "judge"),
        find(item, "item", "item"),
        find(rank, "rank", "rank", "position"),
    )


def _check_columns(grid: Grid, columns: _Columns) -> None:
    named = [columns.judge, columns.item, columns.rank, columns.counts, *columns.about]
    given = [name for name in named if name is not None]
    for k, name in enumerate(given):
        if name not in grid.columns:
            known = ", ".join(map(repr, grid.columns))
            raise RankingsError(
                f"{grid.name}: there is no column {name!r}; the columns are {known}"
            )
        if name in given[:k]:
            raise RankingsError(f"{grid.name}: the column {name!r} is named twice")


# ---------------------------------------------------------------------------------------------
# Layouts
# ---------------------------------------------------------------------------------------------


def _with_aliases(grid: Grid, columns: _Columns, layout: str) -> tuple[Grid, list[str]]:
    """Call items by the names that aliases give them, and tell which."""
    aliases = columns.aliases
    cells: list[Column] = []
    names: dict[str, str] = {}
    for column in grid.cells:
        if layout == "long":
            is_named = column.name == columns.item
        else:
            is_named = column.name not in columns.special
        if is_named and layout == "ranks":
            item = aliases.get(column.name, column.name)
            if item in names.values():
                other = next(x for x, y in names.items() if y == item)
                raise RankingsError(
                    f"{grid.header_place}: the columns {other!r} and {column.name!r} are both the "
                    f"item {item!r}; a table of ranks has one column for each item"
                )
            names[column.name] = item
            column = column._replace(name=item)
        elif is_named:
            names.update(dict.fromkeys(column.values, ""))
            column = with_values(column, [aliases.get(x, x) for x in column.values])
        cells.append(column)
    return grid._replace(cells=cells), notes_of_aliases(aliases, names)


def _of_ranks(grid: Grid, columns: _Columns) -> _Lists:
    """A column for each item, with its rank in each row; 1 is best."""
    others = [name for name in grid.columns if name not in columns.special]
    names = columns.items or tuple(others)
    for name in names:
        if name not in others:
            raise RankingsError(f"{grid.name}: there is no column for the item {name!r}")
    if columns.items is not None and (rest := [name for name in others if name not in names]):
        raise RankingsError(
            f"{grid.name}: the column {rest[0]!r} is no item; if it is about the judges, add it to "
            "--about"
        )
    are_some = columns.is_picked and columns.closes_gaps and columns.rules is None
    most = None if are_some else len(names)
    ranks = np.stack([_ranks_of(grid.column(name), most) for name in names], axis=1)
    if (ranks < 0).any():
        row, k = np.argwhere(ranks < 0)[0]
        column = grid.column(names[k])
        if row == 0 and (ranks[0] < 0).all() and len(ranks) > 1 and (ranks[1] >= 0).all():
            raise RankingsError(
                f"{grid.where(0)}: column {column.name!r}: expected a rank, a whole number from 1, "
                f"or nothing, got {column.text(0)[:40]!r}, and texts in all other columns; if this "
                "row says more about the columns, such as units, remove it or add --header-rows 2"
            )
        _rank(f"{grid.where(row)}: column {column.name!r}", column.text(row), most)
    if columns.rules is not None:
        columns = columns._replace(aliases={})  # the columns have the names of the items
        return _of_ballots(grid, columns, votes_of_ranks(names, ranks))
    last = np.iinfo(np.int32).max
    order = np.argsort(np.where(ranks > 0, ranks, last), axis=1, kind="stable")
    ranks = np.take_along_axis(ranks, order, axis=1)
    is_listed = ranks > 0
    is_tied = is_listed[:, 1:] & (ranks[:, 1:] == ranks[:, :-1])
    has_gap = (is_listed & (ranks != np.arange(1, len(names) + 1))).any(1)
    wrong = is_tied.any(1) | (has_gap & (not columns.closes_gaps))
    if wrong.any():
        row = int(np.argmax(wrong))
        listed = [(int(ranks[row, k]), names[order[row, k]]) for k in range(is_listed[row].sum())]
        _refuse_ranks(grid.where(row), listed)
    orderings = np.where(is_listed, order, -1)
    return _Lists(names, orderings, np.arange(len(orderings)), grid.where, int(has_gap.sum()))


def _ranks_of(column: Column, num_items: int | None) -> np.ndarray:
    """Return the ranks of a column, (rows,) int32: 0 if there is none, and -1 if it is no rank."""
    most = np.iinfo(np.int32).max if num_items is None else num_items

    def rank(text: str) -> int:
        if not text:
            return 0
        number = whole_number(text)
        return -1 if number is None or not 1 <= number <= most else number

    return np.array([rank(text) for text in column.values], np.int32)[column.codes]


def _rank(where: str, text: str, num_items: int | None) -> int:
    number = whole_number(text)
    if number is None or number < 1:
        hint = ""
        if number is None and re.search(r"\d", text):
            hint = "; if it is a rank, write the number alone"
        if num_items is not None and number is None:
            hint += "; if the column is about the judges, add it to --about, or to --judge if it "
            hint += "names them"
        raise RankingsError(
            f"{where}: expected a rank, a whole number from 1, or nothing, got {text[:40]!r}{hint}"
        )
    if num_items is not None and number > num_items:
        raise RankingsError(
            f"{where}: rank {number}, but there are {plural(num_items, 'item')}; if the column is "
            "about the judges, add it to --about, or to --judge if it names them; if other items "
            "had ranks too, name the columns of these with --columns, and add --gaps close"
        )
    return number


def _refuse_ranks(where: str, listed: Sequence[tuple[int, str]]) -> NoReturn:
    """Say why the ranks of a list are not 1, 2, …, t.

    :param listed: the ranks and their items, by rank.
    """
    for (rank, name), (next_rank, other) in itertools.pairwise(listed):
        if rank == next_rank:
            raise RankingsError(
                f"{where}: {name!r} and {other!r} both have rank {rank}; ties are not supported"
            )
    place, (rank, name) = next((n, x) for n, x in enumerate(listed, 1) if x[0] != n)
    raise RankingsError(
        f"{where}: {name!r} has rank {rank}, but no item has rank {place}; --gaps close keeps the "
        "order of the items that are ranked"
    )


def _of_orders(grid: Grid, columns: _Columns) -> _Lists:
    """A column for each place, the best first, with the name of the item there."""
    others = [name for name in grid.columns if name not in columns.special]
    names = _places_by_names(others) or others
    if all(name.isdecimal() for name in names):
        names = sorted(names, key=int)
    if rest := [name for name in others if name not in names]:
        raise RankingsError(
            f"{grid.name}: the column {rest[0]!r} is no place; if it is about the judges, add it "
            "to --about, or to --judge if it names them, or to --count"
        )
    places = [grid.column(name) for name in names]
    if columns.items is None and has_words_of_ballots(places):
        raise RankingsError(
            f"{grid.name}: some cells have words such as undervote or overvote; --layout votes "
            "reads ballots, and --items names the items if these are names"
        )
    index = _items_of_places(grid, places, columns.items)
    orderings = np.stack(
        [np.array([index[x] for x in column.values], np.int32)[column.codes] for column in places],
        axis=1,
    )
    ordered = np.sort(orderings, axis=1)
    is_twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(1)
    if is_twice.any():
        row = int(np.argmax(is_twice))
        listed = [(column.name, text) for column in places if (text := column.text(row))]
        name, text = next(x for k, x in enumerate(listed) if x[1] in [y for _, y in listed[:k]])
        raise RankingsError(f"{grid.where(row)}: column {name!r}: {text!r} is listed twice")
    is_hole = (orderings[:, :-1] < 0) & (orderings[:, 1:] >= 0)
    has_gap = is_hole.any(1)
    if has_gap.any():
        row = int(np.argmax(has_gap))
        k = int(np.argmax(is_hole[row]))
        gap = names[int(np.argmax(orderings[row] < 0))]
        if not columns.closes_gaps:
            raise RankingsError(
                f"{grid.where(row)}: column {gap!r} is empty, but {names[k + 1]!r} is "
                f"{places[k + 1].text(row)!r}; --gaps close keeps the order of the items that are "
                "listed"
            )
        closed = np.argsort(orderings < 0, axis=1, kind="stable")
        orderings = np.take_along_axis(orderings, closed, axis=1)
    items = tuple(text for text in index if text)
    return _Lists(items, orderings, np.arange(len(orderings)), grid.where, int(has_gap.sum()))


def _of_votes(grid: Grid, columns: _Columns) -> _Lists:
    """A column for each rank of a ballot, with names, words, or several names."""
    others = [name for name in grid.columns if name not in columns.special]
    ranks = columns_of_ranks(grid, others, columns.is_picked)
    votes = votes_of_names(
        grid, [grid.column(x) for x in ranks], columns.items, columns.separator, columns.aliases
    )
    votes.notes.insert(0, f"the ranks are {_shown(ranks)}")
    return _of_ballots(grid, columns, votes)


def _of_marks(grid: Grid, columns: _Columns) -> _Lists:
    """A column of marks for each item and rank."""
    cells = [column for column in grid.cells if column.name not in columns.special]
    return _of_ballots(grid, columns, votes_of_marks(grid, cells, columns.items, columns.aliases))


def _of_ballots(grid: Grid, columns: _Columns, votes: Votes) -> _Lists:
    """Apply the rules to the votes of each row."""
    rows = np.arange(len(grid.numbers))
    rules = columns.rules or Rules()
    votes = join_aliases(votes, columns.aliases)
    counts = _counts(grid, columns.counts, rows)
    lists, touched = apply_rules(votes.marks, counts, rules, votes.is_write_in)
    notes, items = list(votes.notes), votes.items
    if written := [name for name, x in zip(items, votes.is_write_in, strict=True) if x]:
        notes.append(f"write-ins are {_shown([repr(name) for name in written])}")
        if rules.write_ins == "skip":
            items, lists = _without_items(items, lists, set(written))
    notes += touched.notes(rules)
    return _Lists(items, lists, rows, grid.where, 0, touched, tuple(notes))


def survey_of_votes(
    grid: Grid,
    votes: Votes,
    rules: Rules | None,
    aliases: Mapping[str, str],
    *,
    judge: str | None,
    count: str | None,
    about: tuple[str, ...],
    layout: str,
    notes: list[str],
) -> Survey:
    """Return the survey of the votes of a file that is no table of a layout.

    :param grid: columns with the ids, counts and what else is known of each row.
    """
    columns = _Columns(judge, None, None, count, about, None, False, False, rules, None, aliases)
    found = _of_ballots(grid, columns, votes)
    return _survey(grid, columns, found, layout, False, notes)


def _without_items(
    items: tuple[str, ...], lists: np.ndarray, dropped: set[str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Drop items that no list has."""
    kept = [k for k, name in enumerate(items) if name not in dropped]
    index = np.full(len(items) + 1, -1, np.int32)  # the last one is the padding, -1
    index[kept] = np.arange(len(kept))
    return tuple(items[k] for k in kept), index[lists]


def _shown(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def _items_of_places(
    grid: Grid, places: Sequence[Column], items: tuple[str, ...] | None
) -> dict[str, int]:
    """Return the index of each item; the text of an empty cell has -1.

    Without **items**, they are the texts of the cells, in order of first appearance.
    """
    first: dict[str, tuple[int, int]] = {}
    for k, column in enumerate(places):
        for text, row in zip(column.values, column.first_rows().tolist(), strict=True):
            first[text] = min(first.get(text, (row, k)), (row, k))
    first.pop("", None)
    found = sorted(first, key=lambda text: first[text])
    known = found if items is None else items
    if unknown := [text for text in found if text not in set(known)]:
        row, k = first[unknown[0]]
        shown = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
        raise RankingsError(
            f"{grid.where(row)}: column {places[k].name!r}: there is no item {unknown[0][:40]!r}; "
            f"expected {shown}"
        )
    return {"": -1} | {text: k for k, text in enumerate(known)}


def _of_long(grid: Grid, columns: _Columns) -> _Lists:
    """A row for each judge and item, with its rank."""
    assert columns.judge and columns.item and columns.rank
    judge, item, rank = (grid.column(x) for x in (columns.judge, columns.item, columns.rank))
    for column in (judge, item):
        if (blank := column.is_blank()).any():
            raise RankingsError(
                f"{grid.where(int(np.argmax(blank)))}: column {column.name!r} is empty; write the "
                "name in each row, also where it is that of the row above"
            )
    names = columns.items or tuple(item.values)
    index = {name: k for k, name in enumerate(names)}
    items = np.array([index.get(name, -1) for name in item.values], np.int64)[item.codes]
    if (unknown := items < 0).any():
        row = int(np.argmax(unknown))
        raise RankingsError(f"{grid.where(row)}: there is no item {item.text(row)!r} in --items")
    if (again := _is_repeated(judge.codes * np.int64(len(names)) + items)).any():
        row = int(np.argmax(again))
        raise RankingsError(
            f"{grid.where(row)}: judge {judge.text(row)!r} ranks {item.text(row)!r} twice"
        )
    ranks = _ranks_of(rank, None)
    if (wrong := ranks < 0).any():
        row = int(np.argmax(wrong))
        _rank(f"{grid.where(row)}: column {rank.name!r}", rank.text(row), None)
    first = judge.first_rows()
    for name in (*columns.about, columns.counts):
        if name is None:
            continue
        column = grid.column(name)
        if (differs := column.codes != column.codes[first[judge.codes]]).any():
            row = int(np.argmax(differs))
            raise RankingsError(
                f"{grid.where(row)}: column {name!r} is {column.text(row)!r}, but "
                f"{column.text(first[judge.codes[row]])!r} in an earlier row of judge "
                f"{judge.text(row)!r}"
            )

    def where(k: int) -> str:
        return f"{grid.name}: judge {judge.values[k]!r}"

    order = np.lexsort((items, ranks, judge.codes))
    order = order[ranks[order] > 0]
    of, sorted_ranks, num_lists = judge.codes[order], ranks[order], len(judge.values)
    lengths = np.bincount(of, minlength=num_lists)
    place = np.arange(len(of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_tied = np.zeros(num_lists, bool)
    is_tied[of[1:][(of[1:] == of[:-1]) & (sorted_ranks[1:] == sorted_ranks[:-1])]] = True
    has_gap = np.zeros(num_lists, bool)
    has_gap[of[sorted_ranks != place + 1]] = True
    if (wrong := is_tied | (has_gap & (not columns.closes_gaps))).any():
        k = int(np.argmax(wrong))
        rows = order[of == k].tolist()
        _refuse_ranks(where(k), [(int(ranks[row]), item.text(row)) for row in rows])
    orderings = np.full((num_lists, max(1, lengths.max())), -1)
    orderings[of, place] = items[order]
    return _Lists(names, orderings, first, where, int(has_gap.sum()))


def _is_repeated(keys: np.ndarray) -> np.ndarray:
    """Return which of the keys is equal to an earlier one."""
    order = np.argsort(keys, kind="stable")
    found = np.zeros(len(keys), bool)
    found[order[1:][keys[order[1:]] == keys[order[:-1]]]] = True
    return found


_READERS: dict[str, Callable[[Grid, _Columns], _Lists]] = {
    "ranks": _of_ranks,
    "orders": _of_orders,
    "long": _of_long,
    "cell": _of_orders,
    "votes": _of_votes,
    "marks": _of_marks,
}
LAYOUTS = tuple(_READERS)
_BALLOTS = ("votes", "marks")


# ---------------------------------------------------------------------------------------------
# The survey
# ---------------------------------------------------------------------------------------------


def _survey(
    grid: Grid, columns: _Columns, found: _Lists, layout: str, not_offered: bool, notes: list[str]
) -> Survey:
    """Put the lists together with what the table says about their judges."""
    if len(found.items) < 2:
        raise RankingsError(
            f"{grid.name}: a ranking needs at least 2 items, got {len(found.items)}"
        )
    is_listed = found.orderings >= 0
    is_kept = is_listed.any(1)
    kept = np.flatnonzero(is_kept)
    if not len(kept):
        raise RankingsError(f"{grid.name}: no row ranks any item")
    notes += found.notes
    if found.ballots is None and (empty := np.flatnonzero(~is_kept).tolist()):
        shown = ", ".join(map(found.where, empty[:_SHOWN])) + (", …" if len(empty) > _SHOWN else "")
        verb = "ranks nothing and is" if len(empty) == 1 else "rank nothing and are"
        notes.append(f"{plural(len(empty), 'judge')} {verb} left out: {shown}")
    if found.num_closed:
        notes.append(f"gaps were closed in {plural(found.num_closed, 'list')}")
    rows, num_items = found.rows[kept], len(found.items)
    lengths = is_listed[kept].sum(1)
    orderings = found.orderings[kept, : lengths.max()]
    counts = _counts(grid, columns.counts, rows)
    # a list of all items but one says the same as the full one, if all were offered
    is_partial = (lengths < (num_items if not_offered else num_items - 1)).any()
    if is_partial and (found.ballots is None or not_offered):
        meaning, other = "ranked below the others", "not-offered if they were not offered"
        if not_offered:
            meaning, other = "not offered", "below if they rank below the others"
        notes.append(
            f"items that a judge does not rank are read as {meaning}: use --unranked {other}"
        )
    choice_sets = None
    if not_offered and is_partial:
        choice_sets = np.zeros((len(orderings), num_items), bool)
        of, place = np.nonzero(orderings >= 0)
        choice_sets[of, orderings[of, place]] = True
    of_each = build_rankings(
        orderings, found.items, counts, choice_sets, where=lambda k: found.where(int(kept[k]))
    )
    judges = None
    if columns.judge is not None:
        judges = np.repeat(_judges(grid, columns.judge, rows), counts).tolist()
    about = {}
    for name in columns.about:
        column = grid.column(name)
        texts = np.array(column.values, object)[column.codes[rows]]
        about[name] = np.repeat(texts, counts).tolist()
    merged, row_of_each = of_each.merged()
    place = np.empty(of_each.num_rankings, int)
    place[np.argsort(np.repeat(row_of_each, counts), kind="stable")] = np.arange(len(place))
    numbers = np.repeat(grid.numbers[rows], counts)
    return Survey(merged, place, judges, about, layout, notes, numbers, found.ballots)


def _counts(grid: Grid, name: str | None, rows: np.ndarray) -> np.ndarray:
    """Return the number of rankings that each of the rows stands for."""
    if name is None:
        return np.ones(len(rows), int)
    column = grid.column(name)
    numbers = _ranks_of(column, None)[rows].astype(int)
    if (numbers < 1).any():
        row = rows[int(np.argmax(numbers < 1))]
        text = column.text(row)
        if hint := weight_hint(text):
            hint += ": leave out --count, or name the column in --about instead"
        raise RankingsError(
            f"{grid.where(row)}: column {name!r}: expected a positive whole number, got "
            f"{text[:40]!r}{hint}"
        )
    if numbers.sum() > _MOST_RANKINGS:
        raise RankingsError(
            f"{grid.where(rows[int(np.argmax(numbers))])}: column {name!r}: with count "
            f"{numbers.max():,} there are {numbers.sum():,} rankings; at most {_MOST_RANKINGS:,} "
            "can be read"
        )
    return numbers


def _judges(grid: Grid, name: str, rows: np.ndarray) -> np.ndarray:
    """Return the names of the judges in these rows: each has one, and no two have the same."""
    column = grid.column(name)
    if (blank := column.is_blank()[rows]).any():
        raise RankingsError(
            f"{grid.where(rows[int(np.argmax(blank))])}: column {name!r} is empty: who is it?"
        )
    if (again := _is_repeated(column.codes[rows])).any():
        row = rows[int(np.argmax(again))]
        first = rows[int(np.argmax(column.codes[rows] == column.codes[row]))]
        raise RankingsError(
            f"{grid.where(row)}: judge {column.text(row)!r} has a row already, "
            f"{grid.where(first)}; remove one of them, or leave out --judge if both count"
        )
    return np.array(column.values, object)[column.codes[rows]]


# ---------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------


def write_survey(survey: Survey | Rankings, path: str | os.PathLike, layout: str = "ranks") -> None:
    """Write a table that :func:`~numpyro_rankings.read_survey` reads.

    The columns of judges and what is known about them come first. A layout of orders or a long one
    does not name the items that nobody lists: give ``items`` when it is read.

    :param survey: the survey, or rankings, whose judges are then numbered from 1.
    :param path: the file to write: ``.csv``, ``.tsv``, ``.xlsx`` or ``.parquet``.
    :param layout: ``"ranks"``, ``"orders"``, ``"long"`` or ``"cell"``, with semicolons between the
        items.
    :raises RankingsError: if there are choice sets that the table cannot represent.
    """
    if isinstance(survey, Rankings):
        survey = survey_of(survey, "")
    name, suffix = os.fspath(path), Path(path).suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, *EXCEL_SUFFIXES, *PARQUET_SUFFIXES):
        raise RankingsError(f"{name}: the extension {suffix!r} is not known")
    if layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    rankings = survey.rankings
    orderings = np.asarray(rankings.orderings)
    if rankings.choice_sets is not None:
        listed = (np.asarray(rankings.to_ranks()) > 0).astype(bool)
        if not np.array_equal(listed, np.asarray(rankings.choice_sets)):
            raise RankingsError(
                f"{name}: a table says which items were ranked, not which were offered, and some "
                "judges did not rank all items of their choice sets"
            )
    rows = orderings[np.asarray(rankings.row_index)[survey.place]]
    if "judge" in survey.about:
        raise RankingsError(f"{name}: two columns would have the same name")
    if survey.judges is not None and len(set(survey.judges)) < len(survey.judges):
        raise RankingsError(f"{name}: a judge has several rankings, of which a table has only one")
    judges = survey.judges or [str(k) for k in range(1, len(rows) + 1)]
    before = {"judge": judges, **survey.about}
    columns, cells = _CELLS[layout](rows, rankings.items)
    header = [*before, *columns]
    if len(set(header)) < len(header):
        raise RankingsError(f"{name}: two columns would have the same name")
    table = [
        [*about, *row]
        for about, of_judge in zip(zip(*before.values(), strict=True), cells, strict=True)
        for row in of_judge
    ]
    check_writable_texts(name, (cell for row in [header, *table] for cell in row))
    if suffix in EXCEL_SUFFIXES and any(
        isinstance(cell, str) and cell.startswith("=") for row in [header, *table] for cell in row
    ):
        raise RankingsError(f"{name}: spreadsheets take a text that begins with = for a formula")
    try:
        if suffix in TEXT_SUFFIXES:
            with open(name, "w", newline="", encoding="utf-8") as stream:
                writer = csv.writer(stream, delimiter="," if suffix == ".csv" else "\t")
                writer.writerows([header, *table])
            return
        import pandas as pd

        frame = pd.DataFrame(table, columns=header)
        if suffix in EXCEL_SUFFIXES:
            frame.to_excel(name, index=False)
        else:
            frame.to_parquet(name, index=False)
    except OSError as error:
        raise RankingsError(f"{name}: cannot be written: {error.strerror or error}") from None
    except ImportError as error:
        raise RankingsError(f"{name}: pip install 'numpyro-rankings[tables]' ({error})") from None


_Cells = tuple[list[str], list[list[list[Any]]]]  # columns, and the rows of each judge


def _cells_of_ranks(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    cells = []
    for row in rows:
        ranks = {item: place for place, item in enumerate(row[row >= 0], 1)}
        cells.append([[ranks.get(k) for k in range(len(items))]])
    return list(items), cells


def _cells_of_orders(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    columns = [f"rank {k}" for k in range(1, rows.shape[1] + 1)]
    return columns, [[[items[k] if k >= 0 else None for k in row]] for row in rows]


def _cells_of_long(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    cells = [[[items[k], place] for place, k in enumerate(row[row >= 0], 1)] for row in rows]
    return ["item", "rank"], cells


def _cells_of_cell(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    if wrong := [item for item in items if ";" in item]:
        raise RankingsError(f"the item name {wrong[0]!r} contains a semicolon; use another layout")
    return ["order"], [[["".join(f"{items[k]};" for k in row[row >= 0])]] for row in rows]


_CELLS: dict[str, Callable[[np.ndarray, Sequence[str]], _Cells]] = {
    "ranks": _cells_of_ranks,
    "orders": _cells_of_orders,
    "long": _cells_of_long,
    "cell": _cells_of_cell,
}
