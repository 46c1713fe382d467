"""Cells of ranks: numbers and words, from either end, which become the numbers 1, 2, …"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.answers import (
    BAD,
    CODES,
    GOOD,
    NO_CODE,
    codes_above,
    in_cells,
    joint_ranks,
    means_no_rank,
    numbers_in,
    rank_in_words,
    ranks_in,
    read_offered,
    said_of_offer,
    without_missing,
)
from numpyro_rankings.readers.grids import Column, Grid, column_of_texts, whole_number
from numpyro_rankings.readers.headers import common_text
from numpyro_rankings.readers.lists import ranks_of_means
from numpyro_rankings.readers.other_questions import refuse_other_questions
from numpyro_rankings.readers.questions import Question, QuestionSpec, options_beside
from numpyro_rankings.readers.ratings import refuse_ratings
from numpyro_rankings.words import plural, shorten
from numpyro_rankings.words.options import option

_LENGTH = 60  # letters of a text in a message
_FEWEST_OF_SCALE, _MOST_OF_SCALE = 3, 11
_FIRST, _LAST = (re.compile(rf"(?:the )?{x}", re.IGNORECASE) for x in (GOOD, BAD))
_HALF = re.compile(r"\d{1,6}[.,]50*")  # the mean of an even number of ranks
_MORE = r"(?:[2-9]|\d\d+)"
_IS = r"\s*(?:=|:|\(|[-–—]|is|being|as|means)\s*(?:the |your )*"


def _says(one: str, more: str) -> re.Pattern:
    """Return a pattern of texts such as "1 = best" and "best (1)"."""
    ways = [
        rf"(?<!\d){number}{_IS}{word}|{word}[^\d,;]{{0,20}}?{_IS}{number}(?!\d)"
        for number, word in (("1", one), (_MORE, more))
    ]
    return re.compile("|".join(ways), re.IGNORECASE)


_ONE_IS_BEST, _MORE_IS_BEST = _says(GOOD, BAD), _says(BAD, GOOD)
_POINTS = re.compile(
    r"\b(?:scores?|stars?|points?|pts|rat(?:e|ed|ings?)|highest(?! (?:priority|to))|punkte|"
    r"bewertung)\b",
    re.IGNORECASE,
)


def refuse_rank(
    grid: Grid,
    row: int,
    column: Column,
    num_items: int | None,
    spec: QuestionSpec,
    is_item: bool = True,
    columns: Sequence[Column] = (),
) -> NoReturn:
    """Say why a text is no rank; without ``num_items``, other items may have ranks too.

    Beside ranks it may mean that an item is not ranked.

    :param is_item: False if the column has no ranks, and others have.
    :param columns: all columns of ranks, if there are others.
    """
    where, text = grid.at(row, column), column.text(row)
    number, columns = whole_number(text), columns or [column]
    is_first, is_last = (x.fullmatch(text) is not None for x in (_FIRST, _LAST))
    if (is_first or is_last) and (is_item or len({*column.values} - {""}) == 1):
        is_sure = not (is_first or spec.is_not_offered) and _are_others_ranked(columns, text)
        missing = option("missing", [*spec.missing, text], is_sure)
        ways = "; if it is the first rank, write 1"
        if not is_first:
            ways = f"; if it is the last rank, write its number, or add {missing}"
            ways += ", which reads the item as below those with ranks"
        raise RankingsError(
            f"{where}: expected a rank, a whole number from 1, or nothing, got {text!r}"
            f"{in_cells(columns, text)}{ways}"
        )
    # numbers a little too large may be ratings
    is_near = number is not None and num_items is not None and number <= 2 * num_items
    about = options_beside(column, spec, not (is_item or is_near))
    about_judges = f"; if the column has no ranks, {about}"
    hint = ""
    if number is None and _HALF.fullmatch(text):
        hint = (
            "; tied items may have the mean of their ranks, such as 2.5 for the second and the "
            "third, if all of a list fit; write ratings without decimals, such as 75 for 7.5"
        )
    elif number is None and re.search(r"\d", text):
        hint = "; if it is a rank, write the number alone"
    elif _is_beside_ranks(column, text, num_items):
        # such a number may be the rank of another item, too
        is_code = not is_near or (number is not None and number < 1)
        code = option("missing", [*spec.missing, text], is_code and is_item)
        hint = f"{in_cells(columns, text)}; if it means that the item is not ranked, add {code}"
        if number is None:
            was, was_not = (option(x, text, False) for x in ("offered", "not_offered"))
            hint += f", or {was} or {was_not} if it says whether the item was offered"
    if number is None or number < 1 or num_items is None:
        if (num_items is not None or len(columns) > 1) and number is None:
            hint += about_judges
        raise RankingsError(
            f"{where}: expected a rank, a whole number from 1, or nothing, got {text[:40]!r}{hint}"
        )
    if _are_numbers_of_items(columns):
        names = [x.name for x in columns]
        orders = option("layout", "orders", _are_numbered(names))
        raise RankingsError(
            f"{where}: rank {number}, but there are {plural(num_items, 'item')}"
            f"{in_cells(columns, text)}, and no row has a number twice: if they are numbers of "
            f"items, and the columns are places, add {orders}; if they are ranks, and other items "
            f"had ranks too, add {option('columns', names, False)} and "
            f"{option('gaps', 'close', False)}"
        )
    raise RankingsError(
        f"{where}: rank {number}, but there are {plural(num_items, 'item')}{hint}"
        f"{about_judges}; if other items had ranks too, name the columns of these with "
        f"{option('columns')}, and add {option('gaps', 'close')}"
    )


def _are_numbers_of_items(columns: Sequence[Column]) -> bool:
    """Return whether columns have the numbers 1 to n, more than there are columns.

    No row has one twice, and few have 1, 2, … as ranks would be.
    """
    numbers = numbers_in(columns)
    ordered = np.sort(numbers, axis=1)
    is_again = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)
    values = np.unique(numbers[numbers > 0])
    is_whole = len(values) == values.max(initial=0) > len(columns) > 1 and len(numbers) > 2
    is_list = ordered[:, -1] == (ordered > 0).sum(1)
    return bool(is_whole and (numbers >= 0).all() and not is_again.any() and 2 * is_list.mean() < 1)


def _are_numbered(names: Sequence[str]) -> bool:
    """Return whether names differ in the numbers 1, 2, … only, as those of places do."""
    parts = [re.fullmatch(r"(.*?)(\d+)(\D*)", name) for name in names]
    found = [x for x in parts if x is not None]
    is_one = len({(x[1], x[3]) for x in found}) == 1
    return is_one and [int(x[2]) for x in found] == list(range(1, len(names) + 1))


def _are_others_ranked(columns: Sequence[Column], text: str) -> bool:
    """Return whether all items have ranks where one has a text."""
    is_text = np.stack([x.mapped(lambda y: y == text, bool) for x in columns], axis=1)
    are_ranks = np.stack([ranks_in(x, None) > 0 for x in columns], axis=1)
    return bool((is_text | are_ranks)[is_text.any(1)].all())


def _refuse_missing_ranks(
    grid: Grid,
    columns: Sequence[Column],
    num_items: int | None,
    spec: QuestionSpec,
    has_codes: bool,
) -> None:
    """Refuse texts that may mean that an item is not ranked, and say how to say so."""
    said = {whole_number(text) or 0 for column in columns for text in column.values}
    most = max(said - CODES, default=0)  # a code among ratings up to 100 may be one of them
    for column in columns:
        for text in column.values:
            number = whole_number(text) or 0
            if text and means_no_rank(text, num_items) and (has_codes or number <= 0):
                ways = _if_not_ranked(text, spec, number < 2 * most if number > 0 else False)
                raise RankingsError(
                    f"{grid.at_text(column, text)}: expected a rank, a whole number from 1, or "
                    f"nothing, got {text!r}{in_cells(columns, text)}; {ways}"
                )


def _refuse_codes_above(
    grid: Grid,
    columns: Sequence[Column],
    lists: np.ndarray,
    num_ranks: int | None,
    spec: QuestionSpec,
) -> None:
    """Refuse a number such as 9, far above the numbers 1 to 5 of all others, if it is no point.

    Codes such as 99 are refused later.
    """
    numbers = numbers_in(columns)
    values = np.unique(numbers[numbers > 0])
    if len(values) <= _FEWEST_OF_SCALE:
        return
    codes = codes_above(values.tolist())
    low = values[: len(values) - len(codes)]
    is_scale = _FEWEST_OF_SCALE <= len(low) and low[-1] <= _MOST_OF_SCALE
    if not codes or not is_scale or np.diff(low).max() >= codes[0] - low[-1]:
        return
    if all(means_no_rank(str(x), num_ranks) for x in codes):
        return
    is_code = np.isin(numbers, codes)
    is_once = (np.bincount(lists, is_code.sum(1)) == 1).all()
    is_said = spec.highest_first is not None
    if (is_once and is_said) or _may_be_points(numbers, lists, is_code, False):
        return
    row, place = np.argwhere(is_code)[0].tolist()
    text, points = columns[place].text(row), ""
    if _may_be_points(numbers, lists, is_code, True):
        points = f", and {option('highest_first', True, False)} if it is the most points"
    raise RankingsError(
        f"{grid.at(row, columns[place])}: {text} is far above the other numbers, {low[0]} to "
        f"{low[-1]}{in_cells(columns, text)}; {_if_not_ranked(text, spec, False)}, or "
        f"{option('missing', [*spec.missing, NO_CODE], False)} if it is a rank or rating, too"
        f"{points}"
    )


def _may_be_points(
    numbers: np.ndarray, lists: np.ndarray, is_high: np.ndarray, are_points: bool
) -> bool:
    """Return whether a high number may be the most points, and no code.

    All lists have it once, or most do and have the same numbers below it. These are not 1, …, t,
    as of the ranks of all other items, unless it is said that they **are_points**.
    """
    low = np.where(is_high, 0, np.maximum(numbers, 0)).astype(float)
    t, sums, squares = (np.bincount(lists, x.sum(1)) for x in (low > 0, low, low**2))
    number = np.bincount(lists, is_high.sum(1))
    has_one = number == 1
    are_ranks = (2 * sums == t * (t + 1)) & (6 * squares == t * (t + 1) * (2 * t + 1))
    if (number > 1).any() or (are_ranks[has_one].all() and not are_points):
        return False
    is_listed = number + t > 0
    said = np.stack([t, sums, squares])[:, has_one]
    are_like = 2 * has_one.sum() > is_listed.sum() and (said == said[:, :1]).all()
    return bool(has_one[is_listed].all() or are_like)


def _are_all_ranks(columns: Sequence[Column], spec: QuestionSpec) -> bool:
    """Return whether it is said that no number is a code, beside a text of that name in cells."""
    said = sum(text.casefold() == NO_CODE for text in spec.missing)
    is_text = any(text.casefold() == NO_CODE for column in columns for text in column.values)
    return said > is_text


def _if_not_ranked(text: str, spec: QuestionSpec, may_be_rating: bool) -> str:
    """Return the options for a text that says that an item is not ranked, the likely one first."""
    said = None if spec.rules is not None else said_of_offer(text)
    missing = option("missing", [*spec.missing, text], said is None and not may_be_rating)
    was = option("offered", [*spec.offered, text], said is True)
    was_not = option("not_offered", [*spec.not_offered, text], said is False)
    if said is True:
        return (
            f"if the item was offered, and is below those with ranks, add {was}; {was_not} if it "
            f"was not offered, and {missing} if the text does not say it"
        )
    if said is False:
        return (
            f"if the item was not offered, add {was_not}; {was} if it was, and is below those with "
            f"ranks, and {missing} if the text does not say it"
        )
    ways = f"if it means that the item is not ranked, add {missing}"
    if spec.rules is None:
        ways += f", or {was} or {was_not} if it says whether the item was offered"
    if may_be_rating:
        ways += f", or {option('missing', [*spec.missing, NO_CODE], False)} if it is a rating"
    return ways


def _is_beside_ranks(column: Column, text: str, num_items: int | None) -> bool:
    """Return whether a text may say that an item is not ranked: half of the others are ranks."""
    is_other = ~column.is_blank() & (column.codes != column.values.index(text))
    are_ranks = ranks_in(column, num_items) > 0
    return 2 * (are_ranks & is_other).sum() >= is_other.sum()


def _ranks_in_words(columns: Sequence[Column]) -> dict[str, tuple[int, str]]:
    """Return the texts that are ranks but no numbers: the rank, and the comment of "5 (best)"."""
    texts = dict.fromkeys(text for column in columns for text in column.values)
    ranks = {text: rank_in_words(text) for text in texts if whole_number(text) is None}
    joint = {text: (rank, "") for text, rank in joint_ranks(texts).items()}
    return {text: rank for text, rank in ranks.items() if rank is not None} | joint


# ---------------------------------------------------------------------------------------------
# Which end is the first choice
# ---------------------------------------------------------------------------------------------


def _best_first(
    question: Question, columns: list[Column], pointer: str, num_items: int | None
) -> tuple[list[Column], list[str]]:
    """Return columns of ranks in which 1 is the first choice, and notes.

    Ranks 1, 2, …, n can always be read from either end. They are read with 1 as the first choice,
    unless ``highest_first`` says otherwise; where something points at the other end it is asked.
    """
    spec, numbers = question.spec, numbers_in(columns)
    most = int(numbers.max(initial=0))
    if num_items is not None and most > num_items:
        return columns, []  # no ranks, which the layout refuses
    if spec.highest_first is None and spec.rules is None:
        _refuse_either_end(question.grid, columns, numbers, pointer, spec.may_have_gaps)
    if not spec.highest_first:
        return columns, []

    def turned(text: str) -> str:
        rank = whole_number(text) or 0
        return text if rank < 1 else str(most + 1 - rank)

    note = f"the highest number, {most}, is read as the first choice"
    return [column.with_texts(turned) for column in columns], [note]


def _refuse_either_end(
    grid: Grid, columns: Sequence[Column], numbers: np.ndarray, pointer: str, closes_gaps: bool
) -> None:
    """Show ranks in both ways if something points at the highest number as the first choice."""
    names = [column.name for column in columns]
    highest, lowest = option("highest_first", True), option("highest_first", False)
    if pointer and len(names) == 1:
        raise RankingsError(
            f"{grid.where(0)}: column {names[0]!r}: is 1 the first choice, or the highest number? "
            f"It has {pointer!r}. Add {highest}, or {lowest} if 1 is first"
        )
    is_list = (numbers > 0).sum(1) > 1
    if pointer and is_list.any():
        row = int(np.argmax(is_list))
        up, down = _both_ways(names, numbers[row])
        raise RankingsError(
            f"{grid.where(row)}: is 1 the first choice, or the highest number? The question has "
            f"{pointer!r}. With the highest number first, this row is {down}: add {highest}. "
            f"With 1 first, it is {up}: add {lowest}"
        )
    partial = _first_from_the_end(numbers)
    if partial is not None:
        up, down = _both_ways(names, numbers[partial])
        how = lowest if closes_gaps else option("gaps", "close")
        raise RankingsError(
            f"{grid.where(partial)}: the ranks end with {numbers.shape[1]}, as many as there are "
            "items, and do not begin with 1. If the highest number is the first choice, this row "
            f"is {down}: add {highest}. If 1 is, it is {up}, with gaps: add {how}"
        )


def _pointer(question: str, comments: Iterable[tuple[int, str]]) -> str:
    """Return what says that the highest number may be the first choice."""
    question = question.replace("_", " ")
    said = [f"{number} ({comment})" for number, comment in comments if comment]
    high = next((m[0] for x in (question, *said) if (m := _MORE_IS_BEST.search(x))), "")
    low = next((m[0] for x in (question, *said) if (m := _ONE_IS_BEST.search(x))), "")
    if high or low:
        return high if not low else ""
    return next((m[0] for x in (question, *said) if (m := _POINTS.search(x))), "")


def _both_ways(names: Sequence[str], numbers: np.ndarray) -> tuple[str, str]:
    """Return the order of the items with the lowest number first, and with the highest."""
    listed = sorted((number, names[k]) for k, number in enumerate(numbers.tolist()) if number > 0)
    up = [name for _, name in listed]
    return shorten(" > ".join(up), _LENGTH), shorten(" > ".join(up[::-1]), _LENGTH)


def _first_from_the_end(numbers: np.ndarray) -> int | None:
    """Return the first row with the ranks n−t+1, …, n, if no incomplete row has 1, …, t."""
    n = numbers.shape[1]
    listed = (numbers > 0).sum(1)
    is_partial = (listed > 0) & (listed < n) & (numbers >= 0).all(1)
    least = np.where(numbers > 0, numbers, n + 1).min(1, initial=n + 1)
    most = numbers.max(1, initial=0)
    if (is_partial & (least == 1)).any():
        return None
    from_end = is_partial & (most == n) & (least == n - listed + 1) & (listed > 1)
    return int(np.argmax(from_end)) if from_end.any() else None


def _rows_of_points(
    columns: Sequence[Column],
    lists: np.ndarray,
    num_ranks: int | None,
    spec: QuestionSpec,
    has_codes: bool,
) -> np.ndarray | None:
    """Return the rows of the first list if the numbers seem to be points, such as 12, 10, 8, 7, …

    At least half of the lists have no ranks 1, 2, …, t. In several columns there are numbers above
    the number of items, far above or of the same sum in each list; or such lists all have the same
    numbers, as 5, 3, 1, and not only one is left out.
    """
    numbers = numbers_in(columns)
    is_number = numbers > 0
    size = np.bincount(lists, is_number.sum(1))
    most = np.zeros(len(size), int)
    np.maximum.at(most, lists, numbers.max(1, initial=0))
    is_wide = (size > 1) & (most > size)
    is_rare = not is_wide.any() or 2 * is_wide.sum() < (size > 1).sum()
    if is_rare or num_ranks is None or spec.rules is not None:
        return None
    first = np.flatnonzero(lists == np.argmax(is_wide))
    if len(columns) == 1 and (spec.highest_first is not None or spec.closes_gaps):
        return None  # the ranks of a long table may have gaps
    if (is_high := numbers > num_ranks).any():
        values = np.unique(numbers[is_high])
        is_code = len(values) == 1 and values[0] > 2 * num_ranks
        is_code = is_code and not _may_be_points(numbers, lists, is_high, not has_codes)
        is_mixed = is_high.any(0) & (is_number & ~is_high).any(0)
        is_of_all = bool(is_high.any(0).all()) or is_mixed.sum() > 1
        # ranks of items of which some have no column differ from list to list
        sums = np.bincount(lists, np.where(is_number, numbers, 0).sum(1))[is_wide]
        is_like = len(set(sums.tolist())) == 1 or values[-1] > 2 * num_ranks
        is_like &= len(columns) > 1 or len(sums) > 1
        return None if is_code or not (is_of_all and is_like) or spec.may_rank_others else first
    if spec.closes_gaps or spec.highest_first is not None:
        return None
    of_list, in_list = np.broadcast_to(lists[:, None], numbers.shape)[is_number], numbers[is_number]
    is_of_wide = is_wide[of_list]
    order = np.lexsort((in_list, of_list))
    ordered = in_list[order][is_of_wide[order]]
    t = int(size[np.argmax(is_wide)])
    if t < 3 or is_wide.sum() < 2 or (size[is_wide] != t).any():
        return None
    one, *others = ordered.reshape(-1, t)
    is_hole = one[-1] - one[0] == t - 1 or (t == num_ranks - 1 and one[-1] == num_ranks)
    return None if is_hole or (np.array(others) != one).any() else first


def _refuse_points(question: Question, columns: Sequence[Column], rows: np.ndarray) -> NoReturn:
    """Show numbers that seem to be points in both ways; **rows** are those of a list."""
    grid, item = question.grid, question.spec.item
    numbers = numbers_in(columns)[rows]
    names = [column.name for column in columns]
    if item is not None:
        names = [question.special_column(item).text(row) for row in rows.tolist()]
    listed = numbers.ravel()
    up, down = _both_ways(names, listed)
    shown = names_shown([str(x) for x in sorted(listed[listed > 0].tolist(), reverse=True)])
    raise RankingsError(
        f"{grid.where(int(rows[0]))}: is the lowest number the first choice, or the highest? The "
        f"numbers are {shown}, as of points, and not 1, 2, 3, …. With the highest first, the list "
        f"is {down}: add {option('highest_first', True)}. With the lowest first, it is {up}: add "
        f"{option('highest_first', False)}"
    )


def _by_points(columns: Sequence[Column], highest_first: bool) -> tuple[list[Column], list[str]]:
    """Return the ranks of points, of which several may be the same, and notes."""
    numbers = numbers_in(columns)
    texts = np.stack([x.mapped(str, object) for x in columns], axis=1)
    keys = np.where(numbers > 0, -numbers if highest_first else numbers, np.iinfo(np.int32).max)
    order, places = np.argsort(keys, axis=1, kind="stable"), np.arange(keys.shape[1])
    ordered = np.take_along_axis(keys, order, axis=1)
    is_new = np.ones(keys.shape, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ranks = np.zeros(keys.shape, int)
    first = np.maximum.accumulate(np.where(is_new, places, 0), axis=1)
    np.put_along_axis(ranks, order, first + 1, axis=1)
    texts = np.where(numbers > 0, ranks.astype(str).astype(object), texts)
    end = "highest" if highest_first else "lowest"
    note = f"the numbers, up to {numbers.max()}, are read as points, the {end} first"
    new = [column_of_texts(x.name, texts[:, k].tolist()) for k, x in enumerate(columns)]
    return new, [note]


def read_ranks(
    question: Question,
    lists: np.ndarray,
    num_ranks: int | None,
    num_items: int | None,
    is_one_question: bool,
) -> Question:
    """Read cells of ranks as numbers, in which 1 is the first choice.

    **lists** has the list of each row. ``num_ranks`` items may have ranks, and ``num_items`` is the
    number of columns; None if these are not known.
    """
    grid, spec = question.grid, question.spec
    columns, missing = without_missing(
        grid, question.columns, spec.missing, num_ranks, elsewhere=spec.left_out
    )
    words = {True: spec.offered, False: spec.not_offered}
    columns, offered, about_offers = read_offered(grid, columns, words)
    columns, have_means, about_halves = _without_halves(columns, lists)
    said, notes = _ranks_in_words(columns), [*missing, *about_offers, *about_halves]
    columns = [x.with_texts(lambda y: str(said[y][0]) if y in said else y) for x in columns]
    if said:
        by_rank = sorted(said.items(), key=lambda x: x[1][0])
        shown = [f"{shorten(text, _LENGTH)!r} is {rank}" for text, (rank, _) in by_rank]
        notes.append(f"ranks in words: {names_shown(shown, 3)}")
    if is_one_question:
        refuse_other_questions(grid, columns, spec)
    pointer = _pointer(common_text(question.labels), said.values())
    has_codes = not _are_all_ranks(question.columns, spec)
    if has_codes and not (spec.closes_gaps and spec.highest_first is None):
        _refuse_codes_above(grid, columns, lists, num_ranks, spec)
    if spec.rules is None:
        refuse_ratings(question, columns, lists, num_ranks, pointer)
    _refuse_missing_ranks(grid, columns, num_ranks, spec, has_codes)
    if (points := _rows_of_points(columns, lists, num_ranks, spec, has_codes)) is None:
        columns, order = _best_first(question, columns, pointer, num_items)
    elif spec.highest_first is None:
        _refuse_points(question, columns, points)
    else:
        columns, order = _by_points(columns, spec.highest_first)
    question = question.with_columns(columns, [*notes, *order])
    return question._replace(offered=offered, have_means=have_means)


def _without_halves(
    columns: Sequence[Column], lists: np.ndarray
) -> tuple[list[Column], np.ndarray | None, list[str]]:
    """Return ranks in which tied items have the lowest of theirs, if some have the mean, as 2.5.

    Lists with numbers that are the mean of no ranks stay, and are refused later. The array says
    which lists have means and leave out ranks, (lists,) bool.
    """
    if not any(_HALF.fullmatch(text) for column in columns for text in column.values):
        return list(columns), None, []
    numbers = np.stack([x.mapped(_number, float) for x in columns], axis=1)
    texts = np.stack([x.mapped(str, object) for x in columns], axis=1)
    is_number = numbers > 0
    of_list = np.broadcast_to(lists[:, None], numbers.shape)[is_number]
    ranks, is_mean, leaves_out = ranks_of_means(of_list, numbers[is_number])
    have_means = np.bincount(of_list, leaves_out, int(lists.max(initial=-1)) + 1) > 0
    texts[is_number] = np.where(is_mean, ranks.astype(str).astype(object), texts[is_number])
    new = [column_of_texts(x.name, texts[:, k].tolist()) for k, x in enumerate(columns)]
    return new, have_means, ["tied items have the mean of their ranks, such as 2.5"]


def _number(text: str) -> float:
    """Return the number of a rank, which may be a half; NaN if there is none."""
    if _HALF.fullmatch(text):
        return float(text.replace(",", "."))
    number = whole_number(text)
    return math.nan if number is None else number
