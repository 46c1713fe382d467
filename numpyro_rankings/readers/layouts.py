"""The lists of a table, in each of the layouts that tables have.

To add a layout, write a reader such as :func:`_of_orders` and add it to :data:`READERS`.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import with_values
from numpyro_rankings.readers.ballots import BallotCounts, Rules, apply_rules
from numpyro_rankings.readers.columns import Columns, counts_of, is_repeated, ranks_of
from numpyro_rankings.readers.grids import Column, Grid, whole_number
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
from numpyro_rankings.words.options import option

_SHOWN = 5  # rows or items in a message
_ORDINAL = re.compile(r"(?:rank|choice|place|pref(?:erence)?)?[ _]?(\d+)(?:st|nd|rd|th)?", re.I)


class Lists(NamedTuple):
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


def places_by_names(columns: Sequence[str]) -> list[str]:
    """Return the columns that are places by their names, such as 1st and 2nd, the best first."""
    found = {name: int(m[1]) for name in columns if (m := _ORDINAL.fullmatch(name))}
    # a column "1" may also be an item or a judge, so that numbers alone do not suffice
    named = {name: k for name, k in found.items() if not name.isdecimal()}
    if len(named) < 2 or sorted(named.values()) != list(range(1, len(named) + 1)):
        return []
    return sorted(named, key=lambda name: named[name])


def with_aliases(grid: Grid, columns: Columns, layout: str) -> tuple[Grid, list[str]]:
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


# ---------------------------------------------------------------------------------------------
# Ranks
# ---------------------------------------------------------------------------------------------


def _of_ranks(grid: Grid, columns: Columns) -> Lists:
    """A column for each item, with its rank in each row; 1 is best."""
    others = [name for name in grid.columns if name not in columns.special]
    names = columns.items or tuple(others)
    for name in names:
        if name not in others:
            raise RankingsError(f"{grid.name}: there is no column for the item {name!r}")
    if columns.items is not None and (rest := [name for name in others if name not in names]):
        raise RankingsError(
            f"{grid.name}: the column {rest[0]!r} is no item; if it is about the judges, add it to "
            f"{option('about')}"
        )
    are_some = columns.is_picked and columns.closes_gaps and columns.rules is None
    most = None if are_some else len(names)
    ranks = np.stack([ranks_of(grid.column(name), most) for name in names], axis=1)
    if (ranks < 0).any():
        row, k = np.argwhere(ranks < 0)[0]
        column = grid.column(names[k])
        if row == 0 and (ranks[0] < 0).all() and len(ranks) > 1 and (ranks[1] >= 0).all():
            raise RankingsError(
                f"{grid.where(0)}: column {column.name!r}: expected a rank, a whole number from 1, "
                f"or nothing, got {column.text(0)[:40]!r}, and texts in all other columns; if this "
                "row says more about the columns, such as units, remove it or add "
                f"{option('header_rows', 2)}"
            )
        _rank(f"{grid.where(row)}: column {column.name!r}", column.text(row), most)
    if columns.rules is not None:
        columns = columns._replace(aliases={})  # the columns have the names of the items
        return lists_of_ballots(grid, columns, votes_of_ranks(names, ranks))
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
    return Lists(names, orderings, np.arange(len(orderings)), grid.where, int(has_gap.sum()))


def _rank(where: str, text: str, num_items: int | None) -> int:
    number = whole_number(text)
    if number is None or number < 1:
        hint = ""
        if number is None and re.search(r"\d", text):
            hint = "; if it is a rank, write the number alone"
        if num_items is not None and number is None:
            hint += f"; {_about_judges()}"
        raise RankingsError(
            f"{where}: expected a rank, a whole number from 1, or nothing, got {text[:40]!r}{hint}"
        )
    if num_items is not None and number > num_items:
        raise RankingsError(
            f"{where}: rank {number}, but there are {plural(num_items, 'item')}; "
            f"{_about_judges()}; if other items had ranks too, name the columns of these with "
            f"{option('columns')}, and add {option('gaps', 'close')}"
        )
    return number


def _about_judges() -> str:
    return (
        f"if the column is about the judges, add it to {option('about')}, or to {option('judge')} "
        "if it names them"
    )


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
        f"{where}: {name!r} has rank {rank}, but no item has rank {place}; "
        f"{option('gaps', 'close')} keeps the order of the items that are ranked"
    )


# ---------------------------------------------------------------------------------------------
# Orders
# ---------------------------------------------------------------------------------------------


def _of_orders(grid: Grid, columns: Columns) -> Lists:
    """A column for each place, the best first, with the name of the item there."""
    others = [name for name in grid.columns if name not in columns.special]
    names = places_by_names(others) or others
    if all(name.isdecimal() for name in names):
        names = sorted(names, key=int)
    if rest := [name for name in others if name not in names]:
        raise RankingsError(
            f"{grid.name}: the column {rest[0]!r} is no place; if it is about the judges, add it "
            f"to {option('about')}, or to {option('judge')} if it names them, or to "
            f"{option('count')}"
        )
    places = [grid.column(name) for name in names]
    if columns.items is None and has_words_of_ballots(places):
        raise RankingsError(
            f"{grid.name}: some cells have words such as undervote or overvote; "
            f"{option('layout', 'votes')} reads ballots, and {option('items')} names the items if "
            "these are names"
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
                f"{places[k + 1].text(row)!r}; {option('gaps', 'close')} keeps the order of the "
                "items that are listed"
            )
        closed = np.argsort(orderings < 0, axis=1, kind="stable")
        orderings = np.take_along_axis(orderings, closed, axis=1)
    items = tuple(text for text in index if text)
    return Lists(items, orderings, np.arange(len(orderings)), grid.where, int(has_gap.sum()))


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
        raise RankingsError(
            f"{grid.where(row)}: column {places[k].name!r}: there is no item {unknown[0][:40]!r}; "
            f"expected {_some(known)}"
        )
    return {"": -1} | {text: k for k, text in enumerate(known)}


# ---------------------------------------------------------------------------------------------
# A row for each judge and item
# ---------------------------------------------------------------------------------------------


def _of_long(grid: Grid, columns: Columns) -> Lists:
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
        raise RankingsError(
            f"{grid.where(row)}: there is no item {item.text(row)[:40]!r}; expected {_some(names)}"
        )
    if (again := is_repeated(judge.codes * np.int64(len(names)) + items)).any():
        row = int(np.argmax(again))
        raise RankingsError(
            f"{grid.where(row)}: judge {judge.text(row)!r} ranks {item.text(row)!r} twice"
        )
    ranks = ranks_of(rank, None)
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
    return Lists(names, orderings, first, where, int(has_gap.sum()))


# ---------------------------------------------------------------------------------------------
# Ballots
# ---------------------------------------------------------------------------------------------


def _of_votes(grid: Grid, columns: Columns) -> Lists:
    """A column for each rank of a ballot, with names, words, or several names."""
    others = [name for name in grid.columns if name not in columns.special]
    ranks = columns_of_ranks(grid, others, columns.is_picked)
    votes = votes_of_names(
        grid, [grid.column(x) for x in ranks], columns.items, columns.separator, columns.aliases
    )
    votes.notes.insert(0, f"the ranks are {_shown(ranks)}")
    return lists_of_ballots(grid, columns, votes)


def _of_marks(grid: Grid, columns: Columns) -> Lists:
    """A column of marks for each item and rank."""
    cells = [column for column in grid.cells if column.name not in columns.special]
    return lists_of_ballots(
        grid, columns, votes_of_marks(grid, cells, columns.items, columns.aliases)
    )


def lists_of_ballots(grid: Grid, columns: Columns, votes: Votes) -> Lists:
    """Apply the rules to the votes of each row."""
    rows = np.arange(len(grid.numbers))
    rules = columns.rules or Rules()
    votes = join_aliases(votes, columns.aliases)
    counts = counts_of(grid, columns.counts, rows)
    lists, touched = apply_rules(votes.marks, counts, rules, votes.is_write_in)
    notes, items = list(votes.notes), votes.items
    if written := [name for name, x in zip(items, votes.is_write_in, strict=True) if x]:
        notes.append(f"write-ins are {_shown([repr(name) for name in written])}")
        if rules.write_ins == "skip":
            items, lists = _without_items(items, lists, set(written))
    notes += touched.notes(rules)
    return Lists(items, lists, rows, grid.where, 0, touched, tuple(notes))


def _without_items(
    items: tuple[str, ...], lists: np.ndarray, dropped: set[str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Drop items that no list has."""
    kept = [k for k, name in enumerate(items) if name not in dropped]
    index = np.full(len(items) + 1, -1, np.int32)  # the last one is the padding, -1
    index[kept] = np.arange(len(kept))
    return tuple(items[k] for k in kept), index[lists]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def _shown(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


# ---------------------------------------------------------------------------------------------
# All layouts
# ---------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[Grid, Columns], Lists]] = {
    "ranks": _of_ranks,
    "orders": _of_orders,
    "long": _of_long,
    "cell": _of_orders,
    "votes": _of_votes,
    "marks": _of_marks,
}
LAYOUTS = tuple(READERS)
BALLOTS = ("votes", "marks")
