"""Tables of results and of counts: crosstables, rounds, leagues, and how often each was first."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.answers import numbers_in, rank_in_words, rank_of_header
from numpyro_rankings.readers.beside import are_lists
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.readers.headers import is_called_total
from numpyro_rankings.readers.outcomes import number_of
from numpyro_rankings.readers.questions import OF_ITEMS, QuestionSpec, meaning_of_header
from numpyro_rankings.readers.votes import letters
from numpyro_rankings.words.options import option

_LOOKED_AT = 1000  # rows, or texts of a column
_FEWEST = 3  # items of a crosstable, and games of a table of rounds
_POINTS = {"0", "1", "½", "0.5", "0,5", "1/2", "0.0", "1.0", "w", "l", "d", "win", "loss", "draw"}
_OWN = re.compile(r"\W*|x+|nan|0", re.IGNORECASE)  # cells of an item and itself
_SCORE = re.compile(r"\d{1,3}\s*[-–:]\s*\d{1,3}")
_MEDALS = {"gold", "silver", "bronze"}
_MAY_BE_JUDGES = re.compile(r"(?:team|player)s?", re.I)
# the opponent by number, the color and the result of a game, as 2w1, 3b½, 12W+ and +W2
_ROUND = re.compile(
    r"\d{1,3}\s*[wbs]\s*(?:[01½+=-]|0[.,]5)|[-+=01½]\s*[wbs]\s*\d{1,3}", re.IGNORECASE
)
# the result and the opponent, as W12, which may be a name if not all three letters come
_LETTERS = re.compile(r"([WLD])\s*\d{1,3}", re.IGNORECASE)
_MARKS = re.compile(r"\s*[|;,\t]\s*")
# what columns of a league are called
_PLAYED = "p pl pld mp gp g played matches games sp spiele".split()
_WON, _DRAWN, _LOST = (
    "w won wins s".split(),
    "d draw drawn draws t u".split(),
    "l lost losses n".split(),
)
_TOTAL = "pts points pt pkt punkte".split()
_PLACE = "pos position rank place rk platz".split()


def refuse_tournaments(
    grid: Grid, picked: Sequence[int], spec: QuestionSpec, are_pairs: bool
) -> None:
    """Refuse a crosstable, the rounds of a tournament, a league, and counts of places.

    An explicit layout is an answer: the caller asks nothing then.

    :param are_pairs: whether columns are called as those of pairs, which won and lost may be, too.
    """
    columns = [grid.cells[k] for k in picked]
    _refuse_lists_as_names(grid, columns)
    _refuse_league(grid, columns, spec)
    if are_pairs:
        return
    _refuse_rounds(grid, columns)
    names = grid.column(spec.judge) if spec.judge in grid.columns else grid.cells[0]
    others = [x for x in columns if x is not names and x.name]
    _refuse_crosstable(grid, names, others, spec.judge is not None)
    _refuse_counts_of_places(grid, names, others, spec)


def _refuse_lists_as_names(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse columns that are called as lists of the same items, above the numbers of judges."""
    lists = [x.name for x in columns if ">" in x.name and all(number_of(y) >= 0 for y in x.values)]
    items = {tuple(sorted(map(str.strip, name.split(">")))) for name in lists}
    if len(lists) > 1 and len(items) == 1:
        raise RankingsError(
            f"{grid.header_place}: the names of the columns are lists, such as {lists[0][:60]!r}: "
            "write a row for each, in columns called order and count, and add "
            f"{option('columns', 'order', False)} and {option('count', 'count', False)}"
        )


def _write_games(example: str) -> str:
    return (
        f"write a line for each game, with columns such as {example}, and add "
        f"{option('layout', 'pairs', False)}"
    )


def _or_ranks() -> str:
    return f"{option('layout', 'ranks', False)} if they are ranks"


def _refuse_rounds(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse cells such as ``2w1``: the opponent, the color and the result of a round."""
    texts = [
        x
        for column in columns
        for text in column.values[:_LOOKED_AT]
        for x in _MARKS.split(text)
        if x
    ]
    said = {match[1].upper() for x in texts if (match := _LETTERS.fullmatch(x))}
    pattern = _LETTERS if len(said) == 3 else _ROUND
    rounds = [x for x in texts if pattern.fullmatch(x)]
    is_split = len(columns) == 1 and 2 * len(rounds) >= len(texts)
    of_rounds = [x.name for x in columns if _is_of_rounds(x, pattern)]
    if all(rank_of_header(x) and not x.isdecimal() for x in of_rounds):  # places, or none
        of_rounds = []
    if (is_split or len(of_rounds) > 1) and len(rounds) >= _FEWEST:
        shown = names_counted([repr(x) for x in rounds], 3)
        raise RankingsError(
            f"{grid.header_place}: cells such as {shown} seem to be the opponent and the result of "
            f"each round of a tournament, and no ranks: {_write_games('item1,item2,result')}"
            f"; {option('layout', 'orders' if len(columns) > 1 else 'cell', False)} if they are "
            "names of items"
        )


def _is_of_rounds(column: Column, pattern: re.Pattern) -> bool:
    texts = [x for x in column.values[:_LOOKED_AT] if x]
    return 2 * sum(pattern.fullmatch(x) is not None for x in texts) > len(texts)


def _refuse_crosstable(
    grid: Grid, names: Column, others: Sequence[Column], have_judges: bool
) -> None:
    """Refuse results between items that are both the rows and the columns.

    :param have_judges: whether it is said that the rows are judges, who may rate one another.
    """
    index = {x.name: x for x in others}
    rows = [
        (row, index[x])
        for row in range(min(len(grid.numbers), _LOOKED_AT))
        if (x := names.text(row)) in index
    ]
    items = {column.name for _, column in rows}
    if len(rows) < _FEWEST or len(items) < len(rows) or 2 * len(rows) < len(grid.numbers):
        return
    if any(not _OWN.fullmatch(column.text(row)) for row, column in rows):
        return
    said = {
        x.casefold()
        for row, own in rows
        for column in others
        if column.name in items and column is not own and (x := column.text(row))
    }
    in_points = said <= _POINTS and bool(said & {"0", "0.0", "½", "0.5", "0,5", "1/2"})
    are_letters = {"w", "l"} <= {x[0] for x in said} and said <= _POINTS  # or words
    are_results = are_letters or all(_SCORE.fullmatch(x) for x in said if x)
    shown = names_counted([repr(x) for x in sorted(said - {""})], 3)
    if said - {""} and (are_results or ("1" in said and in_points)):
        raise RankingsError(
            f"{grid.header_place}: the rows and the columns have the same names, and the cells are "
            f"{shown}, as the results of games between them, and no ranks: "
            f"{_write_games('item1,item2,result')}; {_or_ranks()}"
        )
    columns = [x for x in others if x.name in items]
    numbers = numbers_in(columns)
    are_counts = (numbers >= 0).all() and all(own.text(row) == "0" for row, own in rows)
    if are_counts and not have_judges:
        if not are_lists(numbers).any():
            raise RankingsError(
                f"{grid.header_place}: the rows and the columns have the same names, and the cells "
                f"are numbers such as {shown}: if they count how often the item of the row was "
                "preferred to that of the column, write a line for each two items and add "
                f"{option('layout', 'pairs', False)}, with columns such as "
                f"item1,item2,wins1,wins2; {_or_ranks()} or points"
            )


def _refuse_counts_of_places(
    grid: Grid, names: Column, others: Sequence[Column], spec: QuestionSpec
) -> None:
    """Refuse counts of how often each item, a row, stood at each place, a column, or turned round.

    The numbers of all rows or of all columns have the same sum, where numbers of items do not, but
    for lists of the same items.
    """
    medals = [x for x in others if x.name.casefold() in _MEDALS]
    places = [x for x in others if rank_of_header(x.name)]
    columns = medals if len(medals) == len(_MEDALS) else places
    said = [rank_in_words(x) for x in names.values]
    in_rows = len(said) == len(names.codes) and [x and x[0] for x in said] == [
        *range(1, len(said) + 1)
    ]
    columns = [x for x in others if not is_called_total(x.name)] if in_rows else columns
    called = names.values if in_rows else [x.name for x in columns]
    rest = [x for x in others if x not in columns]
    if (
        len(columns) < 2
        or len(names.codes) > _LOOKED_AT
        or not (in_rows or _names_teams(names))
        or not all(is_called_total(x.name) for x in rest)
    ):
        return
    numbers = np.stack(
        [x.mapped(lambda y: number_of(y.rstrip(" %")) if y else 0, float) for x in columns], axis=1
    )
    if np.isnan(numbers).any():
        return
    # shares are rounded
    within = 0.02 * numbers.sum() / min(numbers.shape) if _have_shares(columns) else 0
    is_same = [len(x) > 1 and np.ptp(x) <= within for x in map(numbers.sum, (0, 1))]
    are_items = not in_rows and OF_ITEMS.fullmatch(names.name) is not None
    are_same_items = len({tuple(sorted(row)) for row in numbers.tolist()}) == 1 and not are_items
    is_of_judges = meaning_of_header(names, spec._replace(judge=None)) == "judge"
    # a team may rank numbers of items, of which none comes twice
    lists = numbers.T if in_rows else numbers
    may_be_items = all(len({*x} - {0.0}) == np.count_nonzero(x) for x in lists.tolist())
    may_be_judges = may_be_items and _MAY_BE_JUDGES.fullmatch(names.name) is not None
    is_sure = any(is_same) or bool(medals) or bool(rest) or (are_items and not may_be_judges)
    if all(map(str.isdecimal, called)):  # which may be judges who share out points
        is_sure = all(is_same) and numbers.max() > max(numbers.shape)
    if spec.judge == names.name and may_be_items and not (all(is_same) or rest or medals):
        return
    may_be_items &= not (rest or medals) and bool(numbers.max() <= 2 * len(np.unique(numbers)))
    if not is_sure or are_same_items or is_of_judges or (in_rows and may_be_items):
        return
    if not in_rows and any(x is not None for x in said):
        return
    if_items = f"; {option('layout', 'orders', False)} if these are numbers of items"
    which = "row stood at that place" if not in_rows else "column stood at the place of the row"
    raise RankingsError(
        f"{grid.header_place}: the columns {names_counted([repr(x.name) for x in columns], 3)} "
        f"seem to count how often each {which}: such a table is a summary and has no ballots, from "
        "which a model is fitted, and what each judge ranked cannot be recovered from it: get the "
        f"table in which each row is a ballot{if_items if may_be_items else ''}"
    )


def _have_shares(columns: Sequence[Column]) -> bool:
    """Return whether numbers are percentages, or are not whole."""
    return any(re.search(r"[%.,]", x) for column in columns for x in column.values)


def _names_teams(column: Column) -> bool:
    """Return whether all texts of a column differ, and none is a number."""
    are_texts = all(x and not number_of(x) >= 0 for x in column.values)
    return are_texts and len(column.values) == len(column.codes)


def _refuse_league(grid: Grid, columns: Sequence[Column], spec: QuestionSpec) -> None:
    """Refuse games won and lost, and points, of the teams of a league."""
    if len(columns) == 1 and letters(columns[0].name) in _PLACE:
        columns = grid.cells  # a part of the answer
    by_word: Mapping[str, Column] = {letters(x.name): x for x in columns}

    def of(words: Sequence[str]) -> Column | None:
        return next((by_word[x] for x in words if x in by_word), None)

    won, lost, drawn, played, points = map(of, (_WON, _LOST, _DRAWN, _PLAYED, _TOTAL))
    if (
        spec.is_turned is not None
        or won is None
        or lost is None
        or (played is None and points is None)
    ):
        return
    parts = [x for x in (won, drawn, lost) if x is not None]
    if played is not None and any(
        sum(number_of(x.text(row)) for x in parts) != number_of(played.text(row))
        for row in range(min(len(grid.numbers), _LOOKED_AT))
    ):
        return
    have_numbers = all(number_of(x) >= 0 for column in parts for x in column.values if x)
    teams = next((x for x in grid.cells if _names_teams(x)), None)
    if teams is None or not have_numbers:
        return
    how = _write_games("winner,loser")
    place = of(_PLACE)
    if place is not None and len(place.values) == len(place.codes):
        how += (
            f"; the order of the teams, as one ranking, is read by {option('judge', teams.name)}, "
            f"{option('columns', place.name)}, {option('transpose', True)} and "
            f"{option('layout', 'ranks')}"
        )
    raise RankingsError(
        f"{grid.header_place}: {won.name!r} and {lost.name!r} seem to be games that the teams of a "
        f"league have won and lost, and no ranks: {how}; {_or_ranks()}"
    )
