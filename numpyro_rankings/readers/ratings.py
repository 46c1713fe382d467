"""Ratings, of which a judge gives several items the same: recognised, and asked about."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.answers import numbers_in, rank_in_words, rank_of_header
from numpyro_rankings.readers.grids import Column, Grid, table_of, whole_number
from numpyro_rankings.readers.lists import are_ranks_of_lists
from numpyro_rankings.readers.other_questions import TICKS
from numpyro_rankings.readers.questions import Question, QuestionSpec, is_repeated
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_FEWEST_COLUMNS, _FEWEST_ROWS = 3, 3  # with ratings in words
_MOST_WORDS = 11  # of a scale
STARS, _MOST_STARS = "stars", 100  # distinct texts of a column
# stars without a filling are not given; there may be an end, as in *** / 5 and 3 stars
_STARS = re.compile(
    r"(?P<signs>(?:[*★⭐✭✮✯✰🌟⋆]\ufe0f?\s?)+)[☆✩]*\s*(?:(?:/|of|out of) ?\d{1,2})?(?:\s*stars?)?|"
    r"(?P<number>\d{1,2})\s*(?:[★⭐]\ufe0f?|stars?)",
    re.I,
)


def with_numbers_of_stars(
    grid: Grid, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> Grid:
    """Return a table in which cells of stars are their number, such as ``3 (stars)``, and a note.

    They are in columns of ranks that have nothing else, and some cell has several: one asterisk
    alone may be a mark.
    """
    columns = _may_have_stars(grid, picked, spec, layout)
    known = {"", *spec.missing, *spec.offered, *spec.not_offered, *(spec.items or ())}
    texts = {k: {*grid.cells[k].values} - known for k in columns}
    numbers = {x: _num_stars(x) for of in texts.values() if len(of) <= _MOST_STARS for x in of}
    stars = {k for k, of in texts.items() if of and all(map(numbers.get, of))}
    if len(stars) < min(len(columns), 2) or all(numbers[x] < 2 for k in stars for x in texts[k]):
        return grid
    others = [grid.cells[k] for k in columns[spec.judge is None and not spec.patterns :]]
    others = [x for x in others if x.name not in {grid.columns[k] for k in stars}]
    is_said = layout is not None or spec.patterns
    if is_said and any(rank_in_words(x) for column in others for x in column.values):
        return grid  # ranks in numbers, beside which stars may be marks
    cells = list(grid.cells)
    for k in stars:
        shown = {text: text for text in cells[k].values}
        shown |= {text: f"{numbers[text]} ({STARS})" for text in texts[k]}
        cells[k] = cells[k].with_texts(shown.__getitem__)
    text = max(sorted(x for k in stars for x in texts[k]), key=numbers.__getitem__)
    note = f"stars are read as their number, such as {text[:40]!r} as {numbers[text]}"
    return grid._replace(cells=cells, notes=(*grid.notes, note))


def _may_have_stars(
    grid: Grid, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> Sequence[int]:
    """Return the columns of ranks, as far as these are known: never those of names of items."""
    if layout not in (None, "ranks", "long"):
        return []
    of_ranks = {spec.rank} if spec.rank else {"rank", "position"}
    ranks = [
        k for k, x in enumerate(grid.columns) if (x if spec.rank else x.casefold()) in of_ranks
    ]
    if layout == "long" or (layout is None and ranks and not spec.is_turned):
        return ranks[:1]
    if layout is None:
        picked = [
            k
            for k in picked
            if grid.columns[k].isdecimal() or rank_of_header(grid.columns[k]) is None
        ]
    return picked[bool(spec.is_turned) and spec.judge is None and not spec.patterns :]


def _num_stars(text: str) -> int:
    """Return the number of stars that a text has, or says; 0 if it is another text."""
    match = _STARS.fullmatch(text)
    if match is None:
        return 0
    signs = re.sub(r"[\s\ufe0f]", "", match["signs"] or "")
    return len(signs) or int(match["number"])


def refuse_ratings(
    question: Question,
    columns: Sequence[Column],
    lists: np.ndarray,
    num_ranks: int | None,
    pointer: str,
) -> None:
    """Refuse numbers of which many lists have one twice, and which are no ranks with ties.

    :param columns: those of the question, and **lists** has the list of each row.
    :param num_ranks: the number of items. Lists with a number above it are none of ranks, either.
    :param pointer: what says that the highest number is the first choice, or nothing.
    """
    grid, spec = question.grid, question.spec
    numbers = numbers_in(columns)
    is_across = numbers.shape[1] > 1  # each row is a list
    if pointer == STARS and is_across:
        _refuse_stars(grid, columns, numbers, spec)
    is_again = np.zeros(int(lists.max(initial=-1)) + 1, bool)
    if is_across:
        ordered = np.sort(numbers, axis=1)
        is_again[lists] = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any(1)
    else:
        keys = lists * np.int64(numbers.max(initial=0) + 1) + np.maximum(numbers[:, 0], 0)
        again = is_repeated(keys) & (numbers[:, 0] > 0)
        if again.any() and spec.item is not None:  # a judge may have several answers
            items = question.special_column(spec.item).codes
            again &= ~is_repeated(lists * np.int64(items.max() + 1) + items)
        is_again[lists[again]] = True
    if is_again.sum() < 2:
        return
    tied = _numbers_twice(numbers, lists, is_again)
    if num_ranks is not None and len(tied) == 1 and tied[0] > num_ranks:
        return  # a code for items that are not ranked
    is_number = numbers > 0
    of_list, in_list = lists[np.nonzero(is_number)[0]], numbers[is_number]
    most, size = int(in_list.max(initial=0)), np.bincount(lists, is_number.sum(1))
    is_above = _lists_above(numbers, of_list, in_list, num_ranks, len(size))
    is_odd = is_again if is_above is None else is_again | is_above
    ranks = most + 1 - in_list if spec.highest_first else in_list
    if 2 * is_odd.sum() < (size > 1).sum() or are_ranks_of_lists(of_list, ranks):
        return
    is_said = spec.ties is not None
    if is_above is not None:
        is_said = is_said and spec.closes_gaps and spec.highest_first is not None
    if not is_said:
        first = int(np.argmax(is_again))
        some = np.flatnonzero(lists == first)
        above = "" if is_above is None else f" or is above {num_ranks}"
        number, total = int(is_odd.sum()), int((size > 1).sum())
        unit = "row" if is_across else "list"
        how = f"in {number:,} of {plural(total, unit)} a number comes twice{above}, as in ratings"
        two, are_sure = _two_alike(question, columns, some), is_above is not None
        _ask(grid, two, how, most, pointer, are_sure, is_across)


def _refuse_stars(
    grid: Grid, columns: Sequence[Column], numbers: np.ndarray, spec: QuestionSpec
) -> None:
    """Refuse stars that are not the numbers 1, 2, …, once each, in all rows."""
    is_other = (np.sort(numbers, axis=1) != np.arange(len(columns)) + 1).any(1)
    is_said = spec.ties is not None and spec.closes_gaps and spec.highest_first is not None
    if is_said or not is_other.any():
        return
    row = int(np.argmax(is_other))
    shown = names_counted([f"{x.name!r} {x.text(row).split()[0]}" for x in columns], 3)
    raise RankingsError(
        f"{grid.where(row)}: the stars are {shown}, as of ratings: {option('highest_first', True)} "
        f"reads the most as the best, with {option('gaps', 'close')} and {option('ties', 'exact')}"
    )


def _numbers_twice(numbers: np.ndarray, lists: np.ndarray, is_again: np.ndarray) -> np.ndarray:
    """Return the numbers that come twice in some of the lists, where **is_again** says so."""
    rows, columns = np.nonzero((numbers > 0) & is_again[lists][:, None])
    in_list = np.stack([lists[rows], numbers[rows, columns]])
    keys, counts = np.unique(in_list, axis=1, return_counts=True)
    return np.unique(keys[1, counts > 1])


def _lists_above(
    numbers: np.ndarray,
    of_list: np.ndarray,
    in_list: np.ndarray,
    num_ranks: int | None,
    num_lists: int,
) -> np.ndarray | None:
    """Return which lists have a number above that of the items, if those are no codes; or None."""
    if num_ranks is None or not (is_above := in_list > num_ranks).any():
        return None
    is_code = 2 * len(np.unique(in_list)) < in_list.max()
    if is_code or (numbers.shape[1] > 1 and (numbers > num_ranks).any(0).sum() < 2):
        return None
    return np.bincount(of_list[is_above], minlength=num_lists) > 0


def _two_alike(question: Question, columns: Sequence[Column], rows: np.ndarray) -> str:
    """Say which two items of a list have the same number, and where."""
    names = [column.name for column in columns]
    numbers = numbers_in(columns)[rows].ravel().tolist()
    if question.spec.item is not None:
        names = [question.special_column(question.spec.item).text(row) for row in rows.tolist()]
    of_number: dict[int, str] = {}
    for name, number in zip(names, numbers, strict=True):
        if number > 0 and number in of_number:
            return (
                f"{question.grid.where(int(rows[0]))}: {of_number[number]!r} and {name!r} both "
                f"have {number}"
            )
        of_number[number] = name
    raise AssertionError("no number comes twice")


def _ask(
    grid: Grid, two: str, how: str, most: int, pointer: str, are_sure: bool, may_stop: bool
) -> NoReturn:
    """Ask which end of the ratings is best; an answer only if something says it."""
    is_said = bool(pointer)
    highest, lowest = option("highest_first", True, is_said), option("highest_first", False, False)
    ties, gaps = option("ties", "exact", is_said), option("gaps", "close", is_said)
    says = f", as {pointer!r} says" if pointer else ""
    text = (
        f"{two}, and {how}; of ratings, {highest} reads {most} as the best{says}, or {lowest} "
        f"reads 1 as it, with {gaps} and {ties} in both cases"
    )
    if not are_sure:
        stop = f", and {option('overvote', 'stop', False)} ends a list before its first tie"
        text += (
            f"; if these are ranks with ties, {option('ties', 'exact', False)} reads them"
            f"{stop if may_stop else ''}"
        )
    raise RankingsError(text)


def refuse_words_of_ratings(
    grid: Grid, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> None:
    """Refuse columns that have words of a scale, such as ``Good``, of which rows have one twice."""
    is_other = layout not in (None, "orders", "ranks") or spec.is_turned or spec.rules is not None
    if is_other or len(picked) < _FEWEST_COLUMNS or len(grid.numbers) < _FEWEST_ROWS:
        return
    texts = [{*grid.cells[k].values} - {"", *spec.missing} for k in picked]
    in_columns = Counter(text for of_column in texts for text in of_column)
    scale = {text for text, number in in_columns.items() if number > 1}
    if not 1 < len(scale) <= _MOST_WORDS or any(
        rank_in_words(x) is not None or whole_number(x) is not None for x in scale
    ):
        return
    columns = [grid.cells[k] for k, x in zip(picked, texts, strict=True) if x and x <= scale]
    if (
        len(columns) < max(_FEWEST_COLUMNS, len(picked) / 2)
        or {x.casefold() for x in scale} <= TICKS
    ):
        return
    have_twice = sum(max(x.keep(~x.is_blank()).counts().values()) > 1 for x in columns)
    words = sorted(scale)
    said = table_of(columns, lambda text: words.index(text) if text in scale else -1)
    twice = np.stack([(said == k).sum(1) > 1 for k in range(len(words))], 1)  # (rows, words)
    one, two = (x.mapped(str, object) for x in columns[:2])  # texts for blank cells may differ
    if len(columns) == _FEWEST_COLUMNS and (one != two).all():
        return  # the third may say which of two items has won
    have_word, answers = twice.any(1), (said >= 0).sum(1)
    is_like = 2 * have_word.sum() >= (answers > 1).sum()
    if not is_like or 2 * have_twice < len(columns) or 2 * twice.any(0).sum() < len(scale):
        return
    row = int(np.argmax(have_word))
    text = next(words[k] for k in said[row] if k >= 0 and twice[row, k])
    raise RankingsError(
        f"{grid.where(row)}: {text[:40]!r} comes twice, and so does a text in "
        f"{have_word.sum():,} of {plural(len(said), 'row')} of the columns "
        f"{names_counted([repr(x.name) for x in columns], 3)}, as in ratings, which are neither "
        "ranks nor names of items: write the numbers 1, 2, … instead of the texts, and add "
        f"{option('layout', 'ranks', False)}, {option('ties', 'exact', False)}, "
        f"{option('gaps', 'close', False)}, and {option('highest_first', True, False)} if the "
        f"highest is the best, or pick other columns with {option('columns')}"
    )
