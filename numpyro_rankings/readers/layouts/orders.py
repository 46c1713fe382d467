"""A column for each place, the best first, with the name of the item there."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.readers.answers import (
    cells_are_ranks,
    is_called_last,
    place_called_last,
    rank_in_words,
    rank_of_header,
    refuse_missing_items,
    with_places_in_words,
    without_missing,
)
from numpyro_rankings.readers.beside import pattern_of
from numpyro_rankings.readers.grids import Column, Grid, are_merged, first_places, hint_of_cut_name
from numpyro_rankings.readers.headers import Table, name_columns
from numpyro_rankings.readers.layouts.base import MARK_WORDS, Layout, Lines, have_races
from numpyro_rankings.readers.lists import Lists, notes_of_holes, remedy_of_gap
from numpyro_rankings.readers.mixed_lists import refuse_lists_at_places
from numpyro_rankings.readers.other_questions import refuse_ticks
from numpyro_rankings.readers.questions import Question, QuestionSpec, options_beside
from numpyro_rankings.readers.tied_names import JOINING, PARTLY, segments
from numpyro_rankings.readers.votes import sure_words_of_ballots
from numpyro_rankings.words import by_number, shorten
from numpyro_rankings.words.options import option

_LENGTH = 60  # letters of a name in a message
_MOST_NAMES = 30  # in an option of a message
_NO_PLACE = re.compile(r"\s*(?:#|no|nr|number|\d+\W*$)", re.IGNORECASE)  # may be items, as #1
_WITH_NUMBER = re.compile(r"((?:.*\D)?)(\d{1,4})(\D*)", re.DOTALL)  # the last one
_MARKS = ("|", ";", "=", "~", "\n", "//", "/", ",")  # between several names at a place
_WORST = re.compile(r"\b(?:worst|least|last|bottom)\b", re.IGNORECASE)
_BEST = re.compile(r"\b(?:best|most|first|top|favou?rite)\b", re.IGNORECASE)


class Orders(Layout):
    """A column for each place."""

    name = "orders"
    columns_are = "the places"
    takes_separator = True

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Columns are named 1st, 2nd, …; or their cells are names."""
        names, cells = list[str](), [table.grid.cells[k] for k in picked]
        labels = [table.labels[k] for k in picked]
        if spec.patterns or have_races(labels):
            names = name_columns(labels, (), ())
        if _places_by_names(names or [x.name for x in cells]):
            return "names of the columns"
        are_names = spec.patterns and cells_are_ranks(cells, spec.missing) is False
        return "texts of the cells" if are_names else ""

    def answers(self, grid: Grid, picked: Sequence[int]) -> set[str]:
        """Return all names in the cells."""
        return {x for k in picked for x in grid.cells[k].values if x}

    def name_columns(self, question: Question) -> Question:
        """Put the places in the order of their numbers."""
        _refuse_ends_with_numbers(question.grid, question.names)
        _refuse_same_places(question)
        if question.is_export or have_races(question.labels):
            named = super().name_columns(question)
        else:
            named = _in_order_of_numbers(question)
        _refuse_worst_first(named.grid, named.names, question.spec.is_not_offered)
        return named

    def names_of_export(self, question: Question, short: Sequence[str]) -> dict[int, str]:
        """Put places in the order of the ranks that their headers say; their names stay."""
        order = _order_of_ranks(short) or order_of_numbers(short) or range(len(short))
        _refuse_unknown_last(question, short)
        return {k: question.names[k] for k in order}

    def read_cells(self, question: Question) -> Question:
        """Read the names of the items."""
        grid, spec = question.grid, question.spec
        if spec.items is None:
            refuse_lists_at_places(grid, question.columns)
        _places(question)  # refuses a column of other things before its texts are taken for items
        columns, notes = without_missing(grid, question.columns, spec.missing, None)
        if not (spec.closes_gaps or _places_by_names(question.names)):
            refuse_ticks(grid, columns)
        refuse_missing_items(grid, columns, {*(spec.items or ()), *sure_words_of_ballots(columns)})
        mark = MARK_WORDS.get((spec.separator or "").lower(), spec.separator)
        question = question._replace(spec=spec._replace(tie_mark=mark))
        return question.with_columns(columns, notes)

    def lists(self, question: Question) -> Lists:
        """Read the items from place to place."""
        grid, spec = question.grid, question.spec
        places = _places(question)
        if spec.items is None and sure_words_of_ballots(places):
            self.refuse_words_of_ballots(question, sorted(sure_words_of_ballots(places)))
        names_in = self._names_at_places(grid, places, spec)
        index = _items_of_places(grid, places, names_in, spec.items)
        orderings, place_of = _items_at_places(places, names_in, index)
        _refuse_twice(grid, places, names_in, orderings, spec)
        starts = np.searchsorted(place_of, np.arange(len(places)))
        at_places = orderings[:, starts]
        is_tied = (orderings >= 0).sum(1) > (at_places >= 0).sum(1)
        ends_gap = (at_places[:, :-1] < 0) & (at_places[:, 1:] >= 0)
        has_gap, notes = ends_gap.any(1), tuple[str, ...]()
        items = tuple(index)
        if has_gap.any():
            has_hole, left_out = _items_left_out(at_places, len(items))
            has_hole &= ~is_tied
            if spec.gaps == "refuse":
                row = int(np.argmax(has_gap))
                alone = items[left_out[row]] if has_hole[row] else ""
                remedy = remedy_of_gap(alone, int(has_gap.sum()), spec.is_not_offered)
                _refuse_gap(grid, places, row, int(np.argmax(ends_gap[row])) + 1, remedy)
            notes = notes_of_holes(int(has_hole.sum()), spec)
            if spec.gaps == "fill":
                gap = starts[np.argmin(at_places[has_hole], axis=1)]
                orderings[has_hole, gap] = left_out[has_hole]
                has_gap &= ~has_hole
        levels = np.where(orderings >= 0, place_of, -1)
        closed = np.argsort(orderings < 0, axis=1, kind="stable")
        orderings, levels = (np.take_along_axis(x, closed, axis=1) for x in (orderings, levels))
        rows, buckets = np.arange(len(orderings)), levels if is_tied.any() else None
        return Lists(items, orderings, rows, grid.where, int(has_gap.sum()), None, notes, buckets)

    def _names_at_places(
        self, grid: Grid, places: Sequence[Column], spec: QuestionSpec
    ) -> dict[str, list[str]]:
        """Return the names in each text, of which there are several where items are tied."""
        where = {
            text: grid.at(row, places[k])
            for text, (row, k) in sorted(first_places(places).items(), key=lambda x: x[1])
            if text
        }
        names_in = names_in_cells(where, spec, spec.tie_mark)
        return {text: [spec.aliases.get(x, x) for x in names] for text, names in names_in.items()}

    def refuse_words_of_ballots(self, question: Question, words: Sequence[str]) -> NoReturn:
        """Refuse words such as undervote, and name the layout that reads them."""
        raise RankingsError(
            f"{question.grid.name}: some cells have words such as undervote or overvote; "
            f"{option('layout', 'votes')} reads ballots, and {option('items')} names the items if "
            "these are names"
        )

    def table(self, orderings: np.ndarray, items: tuple[str, ...]) -> Lines:
        """Write a column for each place, in which None is the end of a list."""
        named = np.array([*items, None], object)[orderings]  # the padding, -1, is None
        columns = {f"rank {k}": place for k, place in enumerate(named.T, 1)}
        return np.arange(len(orderings)), columns


# ---------------------------------------------------------------------------------------------
# The order of the columns
# ---------------------------------------------------------------------------------------------


def _places_by_names(columns: Sequence[str]) -> list[str]:
    """Return the columns that are places by their names, such as 1st choice, the best first."""
    # a column "1" may also be an item or a judge, so that numbers alone do not suffice
    said = {x: rank for x in columns if (rank := rank_in_words(x)) and not _NO_PLACE.match(x)}
    named = {name: rank for name, (rank, _) in said.items()}
    if named and not any(_WORST.search(x) for x in columns if not is_called_last(x)):
        named = with_places_in_words(named, columns)
    if len(named) < 2 or sorted(named.values()) != list(range(1, len(named) + 1)):
        return []
    return sorted(named, key=lambda name: named[name])


def _refuse_same_places(question: Question) -> None:
    """Refuse columns of which several are the same place, as of two questions."""
    ranks = [rank_of_header(name) for name in question.names]
    if None in ranks:
        _refuse_several_stems(question)
    if None in ranks or len(set(ranks)) == len(ranks):
        return
    k = next(k for k, rank in enumerate(ranks) if rank in ranks[:k])
    names, columns = question.names[:k], question.grid.columns
    is_first = len(names) > 1 and ranks[:k] == list(range(1, k + 1))
    first = (pattern_of(names, columns) or names) if is_first else None
    raise RankingsError(
        f"{question.grid.header_place}: several columns are place {ranks[k]}, such as "
        f"{question.names[k]!r}; pick those of one question with {option('columns', first)}"
    )


def _refuse_several_stems(question: Question) -> None:
    """Refuse columns such as Q1_1, Q1_2, Q2_1 and Q2_2: places of two questions."""
    parts = [x for x in map(_WITH_NUMBER.fullmatch, question.names) if x is not None]
    numbers: dict[str, list[int]] = {}
    for part in parts:
        numbers.setdefault(part[1], []).append(int(part[2]))
    are_all = len(parts) == len(question.names) and len(numbers) > 1
    if are_all and all(sorted(x) == [*range(1, len(x) + 1)] != [1] for x in numbers.values()):
        first, second = [*numbers][:2]
        raise RankingsError(
            f"{question.grid.header_place}: '{first}1' and '{second}1' are both a first place; "
            f"pick the columns of one question with {option('columns', f'{first}*')}"
        )


def _in_order_of_numbers(question: Question) -> Question:
    """Put columns in the order of the ranks or numbers that their names say."""
    names = question.names
    order = _order_of_ranks(names) or order_of_numbers(names)
    if order is None and _are_points(names):
        note = f"the numbers of the places fall, as points do: the first place is {names[0]!r}"
        return question.with_columns(question.columns, [note])
    if order is None or order == sorted(order):
        return question
    columns = [question.columns[k] for k in order]
    shown = names_counted([shorten(x.name, _LENGTH) for x in columns])
    return question.with_columns(
        columns, [f"the places are in the order of their numbers: {shown}"]
    )


def _order_of_ranks(names: Sequence[str]) -> list[int] | None:
    """Return the order of columns that are called 1st, 2nd, …; None if they are not."""
    ranks = {name: rank[0] for name in names if (rank := rank_in_words(name)) is not None}
    if all(map(str.isdecimal, names)) and _are_points(names):
        return None
    ranks = with_places_in_words(ranks, names) if ranks else {}
    if last := place_called_last(ranks, names):
        ranks[last] = max(ranks.values()) + 1
    return _sorted_order([ranks[name] for name in names if name in ranks], len(names))


def order_of_numbers(names: Sequence[str]) -> list[int] | None:
    """Return the order of columns that differ in a number only, as Q1_2 and Q1_10; or None."""
    numbers = _numbers_of(names)
    return None if _are_points(names) else _sorted_order(numbers, len(names))


def _numbers_of(names: Sequence[str]) -> list[int]:
    """Return the numbers in names that differ in them only; none if there is another difference."""
    parts = [x for x in map(_WITH_NUMBER.fullmatch, names) if x is not None]
    return [int(x[2]) for x in parts] if len({(x[1], x[3]) for x in parts}) == 1 else []


def _are_points(names: Sequence[str]) -> bool:
    """Return whether numbers fall, as points do, and are not those of places, n, …, 2, 1 or 0."""
    numbers = _numbers_of(names)
    if not len(names) == len(numbers) > 2:
        return False
    are_falling = all(x > y for x, y in itertools.pairwise(numbers))
    return are_falling and max(numbers) >= len(numbers) + (min(numbers) > 0)


def _sorted_order(numbers: Sequence[int], size: int) -> list[int] | None:
    """Return the order of columns by their numbers; None if some have none, or the same."""
    if len(set(numbers)) < size:
        return None
    return sorted(range(size), key=numbers.__getitem__)


def _refuse_worst_first(grid: Grid, names: Sequence[str], are_all: bool) -> None:
    """Refuse columns of places that begin with the worst, or are the best and the worst only.

    If they are all that were offered, none is between the best and the worst.
    """
    worst = [name for name in names if _WORST.search(name.replace("_", " "))]
    best = [name for name in names if _BEST.search(name.replace("_", " "))]
    if len(worst) != 1 or len(best) != 1 or _order_of_ranks(names) is not None:
        return
    if place_called_last(_places_by_names(names), names):  # beside a column that is no place
        return
    if len(names) == 2 and not are_all:
        raise RankingsError(
            f"{grid.name}: the columns {best[0]!r} and {worst[0]!r} say the best and the worst, "
            "and nothing of what is between; to read the first choices only, add "
            f"{option('columns', best[0])}"
        )
    if names.index(worst[0]) < names.index(best[0]):
        raise RankingsError(
            f"{grid.name}: the column {worst[0]!r} comes before {best[0]!r}; the layout orders has "
            "the best first: turn the order of the columns round in the file, or name them in "
            f"{option('columns')} in that order"
        )


def _refuse_ends_with_numbers(grid: Grid, names: Sequence[str]) -> None:
    """Refuse columns top1, top2, bottom1, unless the items of all rows are at these places."""
    of_end = [x for name in names for x in (_WITH_NUMBER.fullmatch(name),) if x is not None]
    stems = [x[1].rstrip("_ .-").replace("_", " ") for x in of_end]
    best = [name for name, stem in zip(names, stems, strict=False) if _BEST.search(stem)]
    worst = [name for name, stem in zip(names, stems, strict=False) if _WORST.search(stem)]
    if len(of_end) < len(names) or not (best and worst) or len(best) + len(worst) < len(names):
        return
    items = {x for name in names for x in grid.column(name).values if x}
    if len(worst) == 1 and len(items) == len(names) and names[-1] == worst[0]:
        return
    said = by_number(len(worst), "column {} says", "columns {} say")
    raise RankingsError(
        f"{grid.name}: the {said.format(names_shown(list(map(repr, worst))))} the worst, and none "
        f"says what is between that and {best[-1]!r}; to read the best only, add "
        f"{option('columns', pattern_of(best, grid.columns) or best)}"
    )


def _refuse_unknown_last(question: Question, names: Sequence[str]) -> None:
    """Refuse a last place if items are between it and the others; **names** are as places are.

    It has a number if there are as many items as places, or if items that a row does not rank were
    not offered.
    """
    spec, ranks = question.spec, [name for name in names if rank_in_words(name)]
    last = place_called_last(ranks, names)
    items = {x for column in question.columns for x in column.values} - {"", *spec.missing}
    number = len(spec.items or items)
    if not last or spec.is_not_offered or number <= len(names):
        return
    column = question.columns[names.index(last)]
    raise RankingsError(
        f"{question.grid.name}: the column {column.name!r} is no place whose number is known: "
        f"there are {len(names)} places and {number} items. If it is the last of all, "
        f"{option('unranked', 'not-offered', False)} reads it behind the others, and nothing of "
        f"the items between; if it is no place, {options_beside(column, spec, False)}"
    )


def _places(question: Question) -> list[Column]:
    """Return the columns of the places, the best first."""
    column_of = dict(zip(question.names, question.columns, strict=True))
    names = _places_by_names(question.names) or question.names
    if all(name.isdecimal() for name in names) and not _are_points(names):
        names = sorted(names, key=int)
    rest = [name for name in question.names if name not in names]
    if last := place_called_last(names, rest):
        rest.remove(last)
        if not rest:
            _refuse_unknown_last(question, question.names)
        names = [*names, last]
    is_first = len(rest) == 1 and all(name.startswith(rest[0]) for name in names)
    if is_first and question.spec.patterns:  # choice, choice.1, choice.2, by an option
        names, rest = [*rest, *names], []
    if rest:
        column = column_of[rest[0]]
        items = {text for name in names for text in column_of[name].values}
        is_sure = items.isdisjoint({*column.values} - {""})  # else it may be the last place
        raise RankingsError(
            f"{question.grid.name}: the column {rest[0]!r} is no place; "
            f"{options_beside(column, question.spec, is_sure)}"
        )
    return [column_of[name] for name in names]


# ---------------------------------------------------------------------------------------------
# The lists
# ---------------------------------------------------------------------------------------------


def names_in_cells(
    places: Mapping[str, str], spec: QuestionSpec, mark: str | None
) -> dict[str, list[str]]:
    """Return the names in texts: several in those of a tie, or of an overvote.

    :param places: where each text is first.
    :param mark: what is between the names; without it, what is between names that other cells have.
    """
    items = set(spec.items or ())
    alone = {*items, *spec.aliases, *places}
    names_in = {text: [text] for text in places}
    for text in places:
        if mark is None and text not in items:
            names_in[text] = _split_at_any(places, text, alone, bool(items))
        elif mark is not None and mark in text and text not in items:
            names_in[text] = segments(text, mark, items) or [x.strip() for x in text.split(mark)]
            if not all(names_in[text]):
                raise RankingsError(
                    f"{places[text]}: {text[:60]!r} has an empty name between the separators "
                    f"{mark!r}"
                )
    return names_in


def _split_at_any(
    places: Mapping[str, str], text: str, alone: set[str], are_known: bool
) -> list[str]:
    """Return the names in a cell, which are several if all of them are names.

    A text such as A & B is one name, or several, also if A and B are names.

    :param places: where each text is first.
    :param are_known: whether the names of all items are given.
    """
    where = places[text]
    for mark in (*_MARKS, *JOINING):
        parts = [x.strip() for x in text.split(mark)]
        if len(parts) < 2 or (mark in JOINING and not alone.intersection(parts)):
            continue
        said = mark if mark.strip().isalpha() else mark.strip()
        if mark in JOINING and not (are_known and alone.issuperset(parts)):
            _refuse_two_marks(places, text, parts, alone)
            raise RankingsError(
                f"{where}: is {text[:60]!r} one name, or several? Add "
                f"{option('separator', said)} if it is "
                f"{names_shown(list(map(repr, parts)))}, or {option('items')} with all names, "
                f"{text[:60]!r} among them, if it is one"
            )
        if names := segments(text, mark, alone):
            return names
        if mark in PARTLY and any(x in alone for x in parts):
            other = next(x for x in parts if x not in alone)
            raise RankingsError(
                f"{where}: {text[:60]!r} seems to have several names, but no other cell has "
                f"{other[:40]!r}; add {option('separator', mark)}, or {option('items')} with all "
                "names"
            )
    return [text]


def _refuse_two_marks(
    places: Mapping[str, str], text: str, parts: Sequence[str], alone: set[str]
) -> None:
    """Refuse a text such as A & B beside A/B: the names of the items say what both are."""
    several = {
        x
        for x in places
        for mark in (*_MARKS, *JOINING)
        if mark in x and alone.issuperset(y.strip() for y in x.split(mark))
    }
    names = [x for x in places if x not in several]
    other = next((x for x in places if x in several and x != text), None)
    if other is None or not set(names).issuperset(parts) or len(names) > _MOST_NAMES:
        return
    raise RankingsError(
        f"{places[text]}: is {text[:60]!r} one name, or several, as {other[:60]!r} is? Add "
        f"{option('items', names)} if it is {names_shown(list(map(repr, parts)))}, or "
        f"{option('items', [*names, text])} if it is one"
    )


def _items_of_places(
    grid: Grid,
    places: Sequence[Column],
    names_in: Mapping[str, Sequence[str]],
    items: tuple[str, ...] | None,
) -> dict[str, int]:
    """Return the index of each item.

    Without **items**, they are the names in the cells, in order of first appearance.
    """
    names = dict.fromkeys(name for listed in names_in.values() for name in listed)
    known = names if items is None else items
    if unknown := next((x for x in names if x not in set(known)), None):
        text = next(x for x, listed in names_in.items() if unknown in listed)
        row, k = first_places(places)[text]
        raise RankingsError(
            f"{grid.at(row, places[k])}: there is no item {unknown[:40]!r}; "
            f"expected {names_shown(list(known))}"
        )
    return {name: k for k, name in enumerate(known)}


def _items_at_places(
    places: Sequence[Column], names_in: Mapping[str, Sequence[str]], index: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the items in the order of the places, and the place of each column.

    :return: (rows, T) int32, -1 where there is none; and (T,).
    """
    tables, widths = [], []
    for place in places:
        lists = [[index[x] for x in names_in.get(text, ())] for text in place.values]
        width = max(1, *map(len, lists))
        padded = np.array([[*x, *[-1] * (width - len(x))] for x in lists], np.int32)
        tables.append(padded[place.codes])
        widths.append(width)
    return np.concatenate(tables, axis=1), np.repeat(np.arange(len(places)), widths)


def _refuse_gap(
    grid: Grid, places: Sequence[Column], row: int, after: int, remedy: str
) -> NoReturn:
    """Say that a place of a row is empty, and one after it is not."""
    gap = next(place for place in places if not place.text(row))
    raise RankingsError(
        f"{grid.at(row, gap)} is empty, but {places[after].name!r} is "
        f"{places[after].text(row)!r}; {remedy}"
    )


def _items_left_out(orderings: np.ndarray, num_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows leave out one item and one place, not the last, and the item of these."""
    is_listed = orderings >= 0
    last = orderings.shape[1] - np.argmax(is_listed[:, ::-1], axis=1)
    has_hole = (is_listed.sum(1) == num_items - 1) & (last == num_items)
    return has_hole, num_items * (num_items - 1) // 2 - np.where(is_listed, orderings, 0).sum(1)


def _refuse_twice(
    grid: Grid,
    places: Sequence[Column],
    names_in: Mapping[str, Sequence[str]],
    orderings: np.ndarray,
    spec: QuestionSpec,
) -> None:
    """Refuse lists with an item for the second time."""
    ordered = np.sort(orderings, axis=1)
    is_twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(1)
    if not is_twice.any():
        return
    row = int(np.argmax(is_twice))
    listed = [(name, k) for k, x in enumerate(places) for name in names_in.get(x.text(row), ())]
    earlier = [name for name, _ in listed]
    name, k = next(x for n, x in enumerate(listed) if x[0] in earlier[:n])
    hint = f"; if it means that nothing is ranked, add {option('missing', name)}"
    others = {x for place in places for x in place.values if x} - {name}
    are_short = all(x.isupper() and len(x) < 5 for x in others)  # as a name of theirs may be, too
    is_code = name.isupper() and len(name) < 5 and not are_short
    is_code = name == "0" if all(map(str.isdecimal, {*others, name})) else is_code
    if not is_code:
        # where most rows are so, they are no lists
        are_few = 2 * is_twice.sum() <= len(is_twice) and not (spec.closes_gaps or spec.ties)
        # a name that ends with dots is cut off, and one of two names would be lost
        votes = option("layout", "votes", bool(are_few) and not name.endswith(("...", "…")))
        are_ranks = all(rank_of_header(x.name) for x in places)
        hint = hint_of_cut_name(name) + (f"; {votes} reads a name once" if are_ranks else "")
    rows = grid.also(np.flatnonzero(is_twice))
    if are_merged(grid):
        hint = (
            ", and cells are merged across columns: split them in the file, each with its own name"
        )
    raise RankingsError(f"{grid.at(row, places[k])}: {name!r} is listed twice{rows}{hint}")
