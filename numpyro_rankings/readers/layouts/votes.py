"""A column for each rank of a ballot, with names, words such as ``undervote``, or several names."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NoReturn

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.readers.answers import (
    cells_are_ranks,
    is_called_last,
    rank_of_header,
    refuse_missing_items,
    with_places_in_words,
)
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE
from numpyro_rankings.readers.grids import Column, Grid, first_places, table_of
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.layouts.base import MARK_WORDS, BallotLayout
from numpyro_rankings.readers.layouts.orders import names_in_cells, order_of_numbers
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.questions import (
    Question,
    QuestionSpec,
    meaning_of_header,
    options_beside,
)
from numpyro_rankings.readers.votes import (
    Votes,
    is_write_in,
    lists_of_ballots,
    sure_words_of_ballots,
    votes_of_marks,
    words_of_ballots,
)
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_FEWEST_IDS, _FEWEST_ROWS = 3, 10  # rows with an id each, and with any other text
_NEARLY_ALL = 0.8  # share of rows whose texts differ, as ids do


class BallotVotes(BallotLayout):
    """A column for each rank of a ballot."""

    name = "votes"
    takes_separator = True

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Cells have words such as undervote."""
        has_words = sure_words_of_ballots([table.grid.cells[k] for k in picked])
        return "words such as undervote in its cells" if has_words else ""

    def lists(self, question: Question) -> Lists:
        """Read names, and apply the rules."""
        grid, spec = question.grid, question.spec
        names = _ranks_in_order(grid, question.columns, spec)
        column_of = dict(zip(question.names, question.columns, strict=True))
        votes = _read_votes(grid, [column_of[name] for name in names], spec)
        votes.notes.insert(0, f"the ranks are {names_counted(names)}")
        return lists_of_ballots(grid, spec, votes)


# ---------------------------------------------------------------------------------------------
# The ranks, in the headers
# ---------------------------------------------------------------------------------------------


def _ranks_in_order(grid: Grid, columns: Sequence[Column], spec: QuestionSpec) -> list[str]:
    """Return the columns that are ranks, the first one first.

    The names of picked columns need not say the rank, but may not say that they are of two
    contests, or that there is a column beside the ranks.
    """
    names = [column.name for column in columns]
    if not spec.patterns and (not spec.has_header or names == [str(k) for k in range(len(names))]):
        _refuse_column_beside(grid, columns, spec)
    ranks = {name: rank for name in names if (rank := rank_of_header(name)) is not None}
    ranks = with_places_in_words(ranks, names, False) if ranks else {}
    if len(set(ranks.values())) == len(names):
        return sorted(names, key=ranks.__getitem__)
    if spec.patterns and (not ranks or (len(ranks) < len(names) and 1 not in ranks.values())):
        return [names[k] for k in order_of_numbers(names) or range(len(names))]
    if not ranks:
        _refuse_no_ranks(grid, columns, spec)
    other = next((x for x in names if x not in ranks), None)
    if other is None:
        twice = next(x for k, x in enumerate(names) if ranks[x] in [ranks[y] for y in names[:k]])
        raise RankingsError(
            f"{grid.header_place}: several columns are rank {ranks[twice]}, such as {twice!r}; "
            f"pick those of one contest with {option('columns')}"
        )
    ways = options_beside(grid.column(other), spec, not is_called_last(other))
    raise RankingsError(
        f"{grid.header_place}: the column {other!r} is no rank; pick the ranks with "
        f"{option('columns')}, or {ways}"
    )


def _refuse_no_ranks(grid: Grid, columns: Sequence[Column], spec: QuestionSpec) -> NoReturn:
    """Ask for the ranks: they are the columns that have names in common, if they have names."""
    which = f"{grid.header_place}: which columns are the ranks of the ballots?"
    others = [x.name for x in columns if meaning_of_header(x, spec)]
    if not others and (beside := _column_beside(columns)) is not None:
        others = [beside.name]
    rest = [column for column in columns if column.name not in others]
    numbered = [x.name for x, y in zip(rest, _are_shared(rest), strict=True) if y]
    if order_of_numbers(numbered):  # a column called otherwise, such as a ward beside c1 and c2
        rest = [x for x in rest if order_of_numbers([*dict.fromkeys((*numbered, x.name))])]
    names = [column.name for column in rest]
    are_names = len(rest) > 1 and cells_are_ranks(rest, spec.missing) is False
    in_cells = {x for column in rest for x in column.values}  # a ballot may be in the header
    is_sure = are_names and all(_are_shared(rest)) and in_cells.isdisjoint(names)
    beside = next((x for x in columns if x.name not in names), None)
    if beside is not None and is_sure:
        raise RankingsError(
            f"{which} If they are {names_shown(names)}, add {option('columns', names, False)}, and "
            f"{options_beside(beside, spec)}; pick others with {option('columns')}"
        )
    whole = f"Add {option('columns', names)} if all are, or pick them" if is_sure else "Pick them"
    raise RankingsError(
        f"{which} {whole} with {option('columns')}, such as '*hoice*', or add "
        f"{option('layout', 'ranks', not are_names)} if each is an item with its ranks, or "
        f"{option('layout', 'long', not are_names)} if each row is one judge and one "
        f"item; the columns are {names_shown([repr(column.name) for column in columns])}"
    )


def _refuse_column_beside(grid: Grid, columns: Sequence[Column], spec: QuestionSpec) -> None:
    """Refuse a column of other things than names, where no header says what it is."""
    if (beside := _column_beside(columns)) is None:
        return
    every = option("columns", [column.name for column in columns], False)
    raise RankingsError(
        f"{grid.where(0)}: is column {beside.name!r}, with {beside.text(0)[:40]!r}, a rank of the "
        f"ballots? Its texts are in no other column. If not, {options_beside(beside, spec)}; "
        f"{every} if it is"
    )


def _column_beside(columns: Sequence[Column]) -> Column | None:
    """Return a column none of whose texts is in another, where other columns have some in common.

    They are ids, of which nearly all differ, or there are many rows. No cell is blank.
    """
    are_shared = _are_shared(columns)
    for column, is_shared in zip(columns, are_shared, strict=True):
        number, rows = len(column.values), len(column.codes)
        are_ids = rows >= _FEWEST_IDS and number >= _NEARLY_ALL * rows
        is_other = not is_shared and "" not in column.values
        if is_other and sum(are_shared) > 1 and (are_ids or (number > 1 and rows >= _FEWEST_ROWS)):
            return column
    return None


def _are_shared(columns: Sequence[Column]) -> list[bool]:
    """Return which columns have a text that another one has, too."""
    number = Counter(itertools.chain(*(column.values for column in columns)))
    return [any(number[x] > 1 for x in column.values if x) for column in columns]


# ---------------------------------------------------------------------------------------------
# The names, in the cells
# ---------------------------------------------------------------------------------------------


def _read_votes(grid: Grid, ranks: Sequence[Column], spec: QuestionSpec) -> Votes:
    """Read the names in columns of ranks.

    Without names of items, they are those that appear, in order of first appearance. Without a
    separator, it is what is between names that other cells have alone.
    """
    places = {
        text: grid.at(row, ranks[k])
        for text, (row, k) in sorted(first_places(ranks).items(), key=lambda x: x[1])
        if text
    }
    cells: Counter[str] = Counter()
    for column in ranks:
        cells.update(column.counts())
    words = words_of_ballots(places, spec.items or ())
    separator = MARK_WORDS.get((spec.separator or "").lower(), spec.separator)
    names_in = names_in_cells({x: y for x, y in places.items() if x not in words}, spec, separator)
    in_several = {x for text, names in names_in.items() if len(names) > 1 for x in (text, *names)}
    known = {*(spec.items or ()), *spec.aliases, *words, *in_several}
    known.update(filter(is_write_in, places))
    refuse_missing_items(grid, ranks, known, are_ballots=True)
    items = _items(places, names_in, spec)
    index = {name: k for k, name in enumerate(items)}
    aliases = spec.aliases
    several = [x for x, names in names_in.items() if len({aliases.get(y, y) for y in names}) > 1]
    codes = {"": BLANK, **words, **{text: index[names[0]] for text, names in names_in.items()}}
    codes |= dict.fromkeys(several, OVERVOTE)
    notes = []
    for mark, what in ((BLANK, "a blank rank"), (OVERVOTE, "a rank with several names")):
        said = [f"{x!r} in {plural(cells[x], 'cell')}" for x, y in words.items() if y == mark]
        if said:
            notes.append(f"read as {what}: {', '.join(said)}")
    if several:
        number = sum(cells[text] for text in several)
        notes.append(f"several names are in {plural(number, 'cell')}, such as {several[0][:60]!r}")
    return votes_of_marks(items, table_of(ranks, codes.__getitem__), notes)


def _items(
    places: Mapping[str, str], names_in: Mapping[str, Sequence[str]], spec: QuestionSpec
) -> tuple[str, ...]:
    """Return all names in cells, after those that are known; if some are, all must be."""
    known = spec.items or ()
    for text, names in names_in.items():
        for name in names:
            if known and name not in known and spec.aliases.get(name, name) not in known:
                raise RankingsError(
                    f"{places[text]}: there is no item {name[:40]!r}; expected "
                    f"{names_shown(known)}, or a word such as undervote or overvote; add "
                    f"{option('missing')} if it means a blank rank"
                )
    return tuple(dict.fromkeys((*known, *(name for names in names_in.values() for name in names))))
