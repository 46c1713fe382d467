"""The layouts of tables.

To add one, write a file with a class like :class:`~.marks.Marks`, and add it to :data:`_KNOWN`; if
tables can say that they have it, also to :data:`_ASKED`.
"""

import re
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.answers import (
    END_OF_SCALE,
    cells_are_ranks,
    codes_above,
    joint_ranks,
    numbers_in,
    numbers_of_ranks,
    rank_in_words,
    rank_of_header,
    with_places_in_words,
)
from numpyro_rankings.readers.beside import are_lists
from numpyro_rankings.readers.grids import Column, Grid, check_cells
from numpyro_rankings.readers.headers import Table, common_end, common_start
from numpyro_rankings.readers.layouts.base import Layout
from numpyro_rankings.readers.layouts.cell import Cell
from numpyro_rankings.readers.layouts.long import Long, likely_columns
from numpyro_rankings.readers.layouts.marks import Marks
from numpyro_rankings.readers.layouts.orders import Orders
from numpyro_rankings.readers.layouts.pairs import Pairs
from numpyro_rankings.readers.layouts.ranks import Ranks
from numpyro_rankings.readers.layouts.votes import BallotVotes
from numpyro_rankings.readers.mixed_lists import refuse_beside_lists
from numpyro_rankings.readers.other_questions import (
    columns_of_games,
    columns_without_outcome,
    refuse_pairs_on_a_scale,
)
from numpyro_rankings.readers.outcomes import are_0_and_1, ways_of_numbers
from numpyro_rankings.readers.questions import (
    QuestionSpec,
    are_times,
    meaning_of_header,
    options_beside,
)
from numpyro_rankings.words.options import option

_KNOWN = (Ranks, Orders, Long, Cell, BallotVotes, Marks, Pairs)
_ASKED = (
    Pairs,
    Long,
    Cell,
    BallotVotes,
    Orders,
    Ranks,
)  # the first that a table has a sign of is taken
_RATING = re.compile(r"\d{1,3} ?/ ?\d{1,3}|\d{1,3}(?:[.,]\d+)? ?%|\++")
_WORDS_OF_RANKS = (
    {"gold", "silver", "bronze"},
    {"high", "medium", "low"},
    {"best", "middle", "worst"},
    {"most", "middle", "least"},
    {"top", "middle", "bottom"},
)
_ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()
LAYOUTS: dict[str, Layout] = {layout.name: layout() for layout in _KNOWN}


def layout_of_table(
    table: Table, picked: Sequence[int], spec: QuestionSpec
) -> tuple[Layout, list[str]]:
    """Return the layout that a table says it has, and why; or show it in both ways, and ask."""
    for one in _ASKED:
        layout = LAYOUTS[one.name]
        if why := layout.sign(table, picked, spec):
            return layout, [f"read as {option('layout', layout.name)}, because of the {why}"]
    _refuse_other_signs(table.grid, picked)
    _ask_layout(table.grid, picked, spec)


def refuse_pairs(
    table: Table, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> bool:
    """Return whether columns are of pairs; refuse to read them in another layout.

    Orders of two items each, of which the others were not offered, say the same without ties.
    """
    if layout == Pairs.name:
        return True
    if not (sign := LAYOUTS[Pairs.name].sign(table, picked, spec)):
        return False
    if layout is None or (layout == Orders.name and spec.is_not_offered):
        return True
    said = "columns are called as" if "names" in sign else f"{sign} are"
    raise RankingsError(
        f"{table.grid.header_place}: the {said} those of paired comparisons, of "
        f"which each row says one, and nothing of the items that were not compared: add "
        f"{option('layout', Pairs.name)}, or pick other columns with {option('columns')}"
    )


def _refuse_other_signs(grid: Grid, picked: Sequence[int]) -> None:
    """Refuse ranks that would be taken for names: in quotation marks, Roman numerals and words.

    Also ratings such as ``4/5``, ``50%`` and ``++``.
    """
    texts = {text for k in picked for text in grid.cells[k].values if text}
    plain = {text.strip("'’‘`\"“”") for text in texts}
    numbers = {str(k) for k in range(1, len(texts) + 1)}
    are_ranks = texts == {*_ROMAN[: len(texts)]} or (plain != texts and plain == numbers)
    if len(texts) < 3:
        return
    are_ranks |= len(texts) == 3 and {x.casefold() for x in texts} in _WORDS_OF_RANKS
    text = grid.cells[picked[-1]].text(0)
    if are_ranks:
        raise RankingsError(
            f"{grid.where(0)}: {text!r} seems to be a rank: write ranks as 1, 2, 3, or add "
            f"{option('layout', 'orders', False)} if these are names of items"
        )
    if all(map(_RATING.fullmatch, texts)):
        raise RankingsError(
            f"{grid.where(0)}: {text!r} seems to be a rating: write the numbers alone, and add "
            f"{option('layout', 'ranks', False)} and {option('highest_first', True, False)} if the "
            f"highest is the best; {option('layout', 'orders', False)} if these are names of items"
        )


def _have_one_code(columns: Sequence[Column]) -> bool:
    """Return whether rows have the ranks 1, 2, … once each, and one text where there is none."""
    texts = {x for column in columns for x in column.values if x and not rank_in_words(x)}
    numbers = np.maximum(numbers_of_ranks(columns), 0)
    return len(texts) == 1 and bool((numbers > 0).any()) and bool(are_lists(numbers).all())


def _are_mostly_ranks(columns: Sequence[Column]) -> bool:
    """Return whether most cells are ranks, among which the ends of a scale are ranks, too."""
    counts = [item for column in columns for item in column.counts().items() if item[0]]
    joint = joint_ranks([x for x, _ in counts])
    num_ranks = sum(k for x, k in counts if rank_in_words(x) or x in joint)
    num_ends = sum(k for x, k in counts if END_OF_SCALE.fullmatch(x)) if num_ranks else 0
    return 2 * (num_ranks + num_ends) > sum(k for _, k in counts)


def _called_first(names: Sequence[str]) -> set[str]:
    """Return the names of columns that are places in words, as a winner or last beside 2 and 3."""
    by_number = {x: rank for x in names if (rank := rank_of_header(x))}
    places = with_places_in_words(by_number, names) if by_number else {}
    return {*places} - {*by_number}


def _ask_two_numbers(grid: Grid, columns: Sequence[Column]) -> None:
    """Ask what two numbers of each row are, if they may be items or ratings: 1 and 2 are ranks.

    So are they beside a code such as 9, which is asked about later.
    """
    numbers = numbers_in(columns)
    if len(columns) != 2 or numbers.min() < 0 or numbers.max() < 3:
        return
    known = {*np.unique(numbers[numbers > 0]).tolist()}
    if known.difference(codes_above(known)) == {1, 2}:
        return
    is_blank = (numbers == 0).any()
    if (numbers[:, 0] == numbers[:, 1]).any():
        return
    ways = [
        f"{option('layout', 'orders', False)} if they are the items at the first two places",
        f"{option('layout', 'ranks', False)} with {option('highest_first')}, "
        f"{option('gaps', 'close', False)} and {option('ties', 'exact', False)} if they are points "
        "of the two columns",
    ]
    if not is_blank:
        pairs = option("layout", "pairs", False)
        ways.insert(0, f"{pairs} if each row compares two items, the preferred one first")
    raise RankingsError(
        f"{grid.where(0)}: what are the two numbers of a row, such as {columns[0].text(0)} and "
        f"{columns[1].text(0)}? Add {', or '.join(ways)}"
    )


def _ask_layout(grid: Grid, picked: Sequence[int], spec: QuestionSpec) -> NoReturn:
    """Show the first row in two ways; an answer is what may be read, and is not read wrongly."""
    columns = [grid.cells[k] for k in picked]
    used = {*picked, *map(grid.columns.index, spec.special)}
    check_cells(grid._replace(cells=[grid.cells[k] for k in sorted(used)]))
    if games := columns_of_games(grid, [x.name for x in columns]):
        shown = names_shown(list(map(repr, games)))
        # what two sides scored has names such as home_goals and away_goals
        are_alike = len(games) < 4 or any(x(games[2:]) for x in (common_start, common_end))
        are_alike |= not spec.has_header
        raise RankingsError(
            f"{grid.header_place}: does each row compare two items, with what each scored, as the "
            f"columns {shown} may say? If so, add {option('layout', Pairs.name, are_alike)} and "
            f"{option('columns', games, are_alike)}; if not, the layout is needed: add "
            f"{option('layout')}"
        )
    refuse_pairs_on_a_scale(grid, [x.name for x in columns])
    if two := columns_without_outcome(grid, [x.name for x in columns]):
        rest = [x for x in columns if x.name not in two and meaning_of_header(x, spec) != "judge"]
        named = f"{option('columns')} with these two and a column"
        are_flags = len(rest) == 1 and are_0_and_1(rest[0])
        if len(rest) == 1:
            three = option("columns", [*two, rest[0].name], are_flags)
            named = f"{three} if {rest[0].name!r} is a column"
        by_name = "by its name, as 1 or 0, or as 2-1"
        how = f"with {ways_of_numbers(two[0])}" if are_flags else by_name
        raise RankingsError(
            f"{grid.header_place}: does each row compare the two items in {two[0]!r} and "
            f"{two[1]!r}? If so, add {option('layout', Pairs.name, are_flags)} and {named} that "
            f"says which is preferred, {how}; if not, the layout is needed: add {option('layout')}"
        )
    if not spec.has_header:
        refuse_beside_lists(grid, columns, spec)
        _ask_two_numbers(grid, columns)
    texts = [{*column.values} - {""} for column in columns]
    best = _called_first([x.name for x in columns])
    # places have items in common, and what names the judges has nothing in common with them
    others = [
        column
        for column, x in zip(columns, texts, strict=True)
        if len(x) > 1 and not any(x & y for y in texts if y is not x)
        if column.name not in best
    ]
    likely = likely_columns(grid, spec)
    asked = (*others, *columns) if likely is None else (grid.column(likely[0]),)
    beside = next((x for x in asked if meaning_of_header(x, spec)), None)
    is_first = others[:1] == columns[:1] and 2 * len(others) < len(columns)
    if beside is None and is_first and likely is None:
        beside = columns[0]
    if beside is None:
        refuse_beside_lists(grid, columns, spec)
    if beside is not None and len(columns) > 1:
        raise RankingsError(
            f"{grid.header_place}: is {beside.name!r} part of the question? If not, "
            f"{options_beside(beside, spec)}; if it is, the layout is needed: add "
            f"{option('layout')}"
        )
    are_ranks = _are_mostly_ranks(columns) or _have_one_code(columns)
    are_ranks |= cells_are_ranks(columns, spec.missing) is True
    is_one = len(columns) == 1
    is_three = likely is not None
    is_across = others or are_ranks or is_three
    is_two = sum(not are_times(column) for column in columns) == 2
    is_long = is_three or spec.item is not None or (is_two and spec.judge is not None)
    cells = [(column.name, column.text(0)) for column in columns]
    may_be_pairs = len(columns) == 2 and not are_ranks and bool(texts[0] & texts[1])
    are_pairs = may_be_pairs and not spec.has_header and not any("" in x.values for x in columns)
    pairs = ""
    if may_be_pairs:
        said = option("layout", Pairs.name, are_pairs)
        pairs = f", or {said} if each row compares two items, the preferred one first"
    ranks = names_shown([f"{name!r} has rank {cell or 'none'}" for name, cell in cells])
    orders = names_shown([f"{cell or 'nothing'!r} is at place {name!r}" for name, cell in cells])
    raise RankingsError(
        f"{grid.where(0)}: the layout is needed. As ranks (one column for each item), this row "
        f"says: {ranks}. As orders (one column for each place): {orders}. Add "
        f"{option('layout', 'ranks', are_ranks and not is_one and not is_three)} or "
        f"{option('layout', 'orders', not (is_across or are_pairs))}{pairs}, or "
        f"{option('layout', 'long', is_long)} if each row is one judge and one item, or "
        f"{option('layout', 'cell', is_one)} if one cell has the whole order"
    )
