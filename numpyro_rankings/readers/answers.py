"""What the cells of a question say: ranks in words, codes for no rank, a whole order in one cell.

The functions take the columns of a question and return columns as the layouts of ``layouts.py``
read them, and refuse what looks like a ranking and is none.
"""

import ast
import contextlib
import itertools
import json
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.grids import Column, Grid, whole_number
from numpyro_rankings.words import plural, shorten
from numpyro_rankings.words.options import option

_SHOWN, _LENGTH = 3, 60
_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_BEFORE = (
    r"(?:rank(?:ing|ed)?|choice|place|position|pos\.?|pref(?:erence|\.)?|priority|number|no\.?|"
    r"nr\.?|platz|rang|choix|#)"
)
_AFTER = r"(?:rank|choice|place|pref(?:erence)?|priority|pick|wahl|rang|platz|choix)"
_RANK = re.compile(
    rf"(?:{_BEFORE}[ _:.-]*)?(?:(?P<number>\d{{1,4}})(?:[.,]0+)?"
    rf"(?:\s*(?:st|nd|rd|th|ère|ème|er|re|e|[.)º°]))?|(?P<word>{'|'.join(_WORDS)}))"
    rf"(?:[ _-]*{_AFTER})?\s*(?:[(\[](?P<inside>\D*)[)\]]|\s[-–—=:]\s*(?P<after>\D+)|"
    r"=\s*(?P<equal>\D+)|\s+(?P<bare>(?:best|worst|(?:most|least)(?: \w+)?|highest|lowest)))?",
    re.IGNORECASE,
)
_GOOD = r"(?:best|most|highest|top|favou?rite|greatest|first choice)"
_BAD = r"(?:worst|least|lowest|bottom|last)"
_MORE = r"(?:[2-9]|\d\d+)"
_END_OF_SCALE = re.compile(rf"\b(?:{_GOOD}|{_BAD})\b", re.IGNORECASE)
_IS = r"\s*(?:=|:|\(|[-–—]|is|being|as|means)\s*(?:the |your )*"


def _says(one: str, more: str) -> re.Pattern:
    """Return a pattern of texts such as "1 = best" and "best (1)"."""
    ways = [
        rf"(?<!\d){number}{_IS}{word}|{word}[^\d,;]{{0,20}}?{_IS}{number}(?!\d)"
        for number, word in (("1", one), (_MORE, more))
    ]
    return re.compile("|".join(ways), re.IGNORECASE)


_ONE_IS_BEST, _MORE_IS_BEST = _says(_GOOD, _BAD), _says(_BAD, _GOOD)
_POINTS = re.compile(
    r"\b(?:scores?|stars?|points?|pts|rat(?:e|ed|ings?)|highest(?! (?:priority|to))|punkte|"
    r"bewertung)\b",
    re.IGNORECASE,
)
# texts that mean no rank, unless the user says that they are items
_NO_RANK = set(
    "n/a|n.a.|n / a|not applicable|not ranked|unranked|no rank|none|no answer|no opinion|dk|"
    "don't know|do not know|no preference|refused|skipped|not selected|null|nil|-|–|—|--|.|?"
    "".split("|")
)
_NO_RANK_CODES = {0, -1, -9, -99, -999, 88, 98, 99, 888, 999, 9999}
_TICKS = set(
    "x|✓|✔|yes|true|checked|ticked|selected|y|on|no|false|unchecked|not selected".split("|")
)
_MARKS = ("->", ";", ">", "|", "\n", ",", "→", "≻")
_MARK_WORDS = {"newline": "\n", "space": " ", "tab": "\t", "comma": ",", "semicolon": ";"}
_NUMBER_OF_ITEM = re.compile(r"(?:^|(?<=\s))[(#]?(\d{1,3})[.)]\s+(?=\S)")
_RANK_OF = re.compile(r"[(\[]?\d{1,3} ?(?:/|of|out of) ?\d{1,3}\b", re.IGNORECASE)  # 1/3
_DECIMAL = re.compile(r"\d{1,4}[.,]\d{1,6}")
_WITH_RANK = re.compile(r".*\S\s*[:=]\s*\d{1,3}", re.DOTALL)
_NUMBERED = re.compile(r"[(#]?(\d{1,3})\s*[.):](?!\d)\s*(.+)", re.DOTALL)  # not 1.5


class Ranks(NamedTuple):
    """Columns of ranks.

    - **columns** - whose texts are numbers where they could be read.
    - **comments** - what is written beside a number, as in "5 (best)".
    - **notes** - of texts that were read.
    """

    columns: list[Column]
    comments: list[tuple[int, str]]
    notes: list[str]


# ---------------------------------------------------------------------------------------------
# Texts of cells
# ---------------------------------------------------------------------------------------------


def rank_in_words(text: str) -> tuple[int, str] | None:
    """Return the rank that a text says, and what else it says; None if it says none.

    Such texts are ``1``, ``1st``, ``2. Choice``, ``Rank 3``, ``third choice`` and ``5 (worst)``.
    """
    found = _RANK.fullmatch(text)
    if found is None:
        return None
    number = int(found["number"]) if found["number"] else _WORDS.index(found["word"].lower()) + 1
    comment = next((x for x in (found[y] for y in ("inside", "after", "equal", "bare")) if x), "")
    return number, comment.strip()


def with_values(column: Column, texts: Sequence[str]) -> Column:
    """Return a column with other texts, which may be the same for several values."""
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(text, len(index)) for text in texts], np.int32)
    return Column(column.name, list(index), codes[column.codes])


def without_missing(
    grid: Grid, columns: Sequence[Column], missing: Sequence[str], num_items: int | None
) -> tuple[list[Column], list[str]]:
    """Make cells empty that say that nothing is ranked, and tell how many there were.

    :param num_items: the number of items if the cells are ranks, which no text of these can be.
    """
    if not missing:
        return list(columns), []
    for word in missing:
        number = whole_number(word)
        if num_items is not None and number is not None and 1 <= number <= num_items:
            raise RankingsError(
                f"{grid.name}: {word!r} cannot mean that an item is not ranked: it is a rank of "
                f"{num_items} items"
            )
    keys = {_key(word): word for word in reversed(missing)}
    counts = dict.fromkeys(missing, 0)
    found = []
    for column in columns:
        of_value = np.bincount(column.codes, minlength=len(column.values)).tolist()
        texts = list(column.values)
        for k, text in enumerate(texts):
            key = _key(text)
            if text and key in keys:
                counts[keys[key]] += of_value[k]
                texts[k] = ""
        found.append(with_values(column, texts))
    shown = ", ".join(f"{word!r} in {plural(k, 'cell')}" for word, k in counts.items())
    return found, [f"read as not ranked: {shown}"]


def _key(text: str) -> str:
    number = whole_number(text)
    return text.casefold() if number is None else str(number)


def with_numbers(columns: Sequence[Column]) -> Ranks:
    """Turn ranks in words into numbers; texts that are no ranks are kept."""
    found: list[Column] = []
    comments: list[tuple[int, str]] = []
    said: dict[str, int] = {}
    for column in columns:
        texts = []
        for text in column.values:
            rank = rank_in_words(text) if whole_number(text) is None else None
            if rank is not None:
                said.setdefault(text, rank[0])
                comments.append(rank)
            texts.append(text if rank is None else str(rank[0]))
        found.append(with_values(column, texts))
    notes = []
    if said:
        some = sorted(said.items(), key=lambda x: x[1])[:_SHOWN]
        more = ", …" if len(said) > _SHOWN else ""
        shown = ", ".join(f"{shorten(text, _LENGTH)!r} is {k}" for text, k in some)
        notes.append(f"ranks in words: {shown}{more}")
    return Ranks(found, comments, notes)


def refuse_missing_ranks(
    grid: Grid, columns: Sequence[Column], num_items: int | None, missing: Sequence[str]
) -> None:
    """Refuse texts that may mean that an item is not ranked, and say how to say so.

    :param num_items: the number of items, or None if it is not known.
    :param missing: texts that are said to mean it.
    """
    for column in columns:
        for text in column.values:
            number = whole_number(text)
            if number is None:
                is_meant = text.casefold() in _NO_RANK
            else:
                is_meant = number in _NO_RANK_CODES and (
                    number < 1 or (num_items is not None and number > num_items)
                )
            if text and is_meant:
                _refuse_missing_rank(grid, column, text, missing)


def _refuse_missing_rank(grid: Grid, column: Column, text: str, missing: Sequence[str]) -> NoReturn:
    raise RankingsError(
        f"{_where(grid, column, text)}: expected a rank, a whole number from 1, or nothing, got "
        f"{text!r}; if it means that the item is not ranked, add "
        f"{option('missing', ','.join([*missing, text]))}"
    )


def refuse_missing_items(
    grid: Grid, columns: Iterable[Column], items: Sequence[str] | None
) -> None:
    """Refuse names of items that may mean that nothing is ranked, unless they are said to be."""
    for column in columns:
        for text in column.values:
            if text.casefold() in _NO_RANK and text not in (items or ()):
                raise RankingsError(
                    f"{_where(grid, column, text)}: is {text!r} an item? If it means that nothing "
                    f"is ranked, add {option('missing', text)}; if it is one, name all items with "
                    f"{option('items')}"
                )


def layout_of_cells(columns: Sequence[Column], missing: Sequence[str]) -> str | None:
    """Return the layout that cells can only have: texts are items, and ranks in words are ranks.

    None if all of them are numbers, which may be ranks or codes of items, or if they are mixed.
    So may texts such as ``1 - Tea``, unless some say which end is best. Texts such as ``1/3`` and
    ``1.5`` are no names: they are taken for ranks, and refused as such.
    """
    keys = {_key(word) for word in missing}
    texts = {x for column in columns for x in column.values if x and _key(x) not in keys}
    texts = {x for x in texts if x.casefold() not in _NO_RANK}
    are_ranks = {rank_in_words(x) is not None for x in texts}
    if are_ranks == {False}:
        are_numbers = all(_RANK_OF.fullmatch(x) or _DECIMAL.fullmatch(x) for x in texts)
        return "ranks" if are_numbers else "orders"
    if are_ranks != {True} or all(whole_number(x) is not None for x in texts):
        return None
    comments = [rank[1] for x in texts if (rank := rank_in_words(x)) is not None]
    if all(comments) and not any(map(_END_OF_SCALE.search, comments)):
        return None
    return "ranks"


def numbers_of(columns: Sequence[Column]) -> np.ndarray:
    """Return the numbers in columns, (rows, columns) int32: 0 if there is none, -1 for a text."""

    def number(text: str) -> int:
        value = whole_number(text) if text else 0
        return value if value is not None and 0 <= value < 2**31 else -1

    return np.stack(
        [
            np.array([number(x) for x in column.values], np.int32)[column.codes]
            for column in columns
        ],
        axis=1,
    )


# ---------------------------------------------------------------------------------------------
# Which end is the first choice
# ---------------------------------------------------------------------------------------------


def best_first(
    grid: Grid,
    columns: Sequence[Column],
    question: str,
    comments: Sequence[tuple[int, str]],
    highest_first: bool | None,
    closes_gaps: bool,
    num_items: int | None,
) -> tuple[list[Column], list[str]]:
    """Return columns of ranks in which 1 is the first choice.

    Ranks 1, 2, …, n can always be read from either end. They are read with 1 as the first choice,
    unless ``highest_first`` says otherwise; where something points at the other end it is asked.

    :param question: what the headers of all columns say.
    :param comments: numbers, and what cells say beside them.
    :param num_items: the number of columns, or None if the items are in rows.
    """
    numbers = numbers_of(columns)
    most = int(numbers.max(initial=0))
    if num_items is not None and most > num_items:
        return list(columns), []  # no ranks, which the layout refuses
    if highest_first:
        turned = []
        for column in columns:
            texts = []
            for text in column.values:
                rank = whole_number(text) or 0
                texts.append(text if rank < 1 else str(most + 1 - rank))
            turned.append(with_values(column, texts))
        return turned, [f"the highest number, {most}, is read as the first choice"]
    if highest_first is None:
        _refuse_either_end(grid, columns, numbers, _pointer(question, comments), closes_gaps)
    return list(columns), []


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


def _pointer(question: str, comments: Sequence[tuple[int, str]]) -> str:
    """Return what says that the highest number may be the first choice."""
    question = question.replace("_", " ")
    said = [f"{number} ({comment})" for number, comment in comments if comment]
    high = next((m[0] for x in (question, *said) if (m := _MORE_IS_BEST.search(x))), "")
    low = next((m[0] for x in (question, *said) if (m := _ONE_IS_BEST.search(x))), "")
    if high or low:
        return high if not low else ""
    points = _POINTS.search(question)
    return points[0] if points else ""


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


# ---------------------------------------------------------------------------------------------
# Questions that are no rankings
# ---------------------------------------------------------------------------------------------


def refuse_other_questions(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse columns of ticks, of ratings, and of sums below the ranks."""
    texts = [{x for x in column.values if x} for column in columns]
    names = [column.name for column in columns]
    ticked = all(map(_is_of_ticks, texts, names)) and any(texts)
    numbers = numbers_of(columns)
    listed = (numbers > 0).sum(1)
    if ticked or (numbers.max() == 1 and numbers.min() >= 0 and (listed > 1).any()):
        is_ticked = np.stack([~column.is_blank() for column in columns], axis=1)
        _refuse_ticks(grid, columns, is_ticked.sum(1) > 1 if ticked else listed > 1)
    _refuse_ranks_from_0(grid, columns, numbers)
    ordered = np.sort(numbers, axis=1)
    is_tied = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any(1)
    if is_tied.sum() > 1 and 2 * is_tied.sum() >= (listed > 1).sum():
        row = int(np.argmax(is_tied))
        of_row = numbers[row].tolist()
        k, i = next(
            (k, i)
            for k, i in itertools.combinations(range(len(names)), 2)
            if of_row[k] == of_row[i] > 0
        )
        raise RankingsError(
            f"{grid.where(row)}: {names[k]!r} and {names[i]!r} both have {of_row[k]}, and in "
            f"{int(is_tied.sum()):,} of {plural(int((listed > 1).sum()), 'row')} a number comes "
            "twice, as in ratings; ranks are needed: ties are not supported"
        )
    _refuse_sums(grid, columns, numbers)


def _refuse_ranks_from_0(grid: Grid, columns: Sequence[Column], numbers: np.ndarray) -> None:
    """Refuse ranks 0, 1, …, where 0 may mean the first choice, or that an item is not ranked."""
    is_zero = (numbers == 0) & ~np.stack([column.is_blank() for column in columns], axis=1)
    is_listed = (numbers > 0).any(1) | is_zero.any(1)
    if is_listed.any() and (is_zero.sum(1) == is_listed).all():
        row = int(np.argmax(is_listed))
        name = columns[int(np.argmax(is_zero[row]))].name
        raise RankingsError(
            f"{grid.where(row)}: column {name!r}: expected a rank, a whole number from 1, or "
            "nothing, got '0', as once in every row: add 1 to the ranks if they start at 0; add "
            f"{option('missing', '0')} if 0 means that the item is not ranked"
        )


def refuse_ticks(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse columns of places of which each has one item only, with holes between them."""
    texts = [[x for x in column.values if x] for column in columns]
    is_blank = np.stack([column.is_blank() for column in columns], axis=1)
    has_hole = (is_blank[:, :-1] & ~is_blank[:, 1:]).any(1)
    if all(len(x) == 1 for x in texts) and len({x[0] for x in texts}) > 1 and has_hole.any():
        _refuse_ticks(grid, columns, has_hole)


def _refuse_ticks(grid: Grid, columns: Sequence[Column], rows: np.ndarray) -> NoReturn:
    row = int(np.argmax(rows))
    said = [f"{x.name!r} is {x.text(row) or 'empty'!r}" for x in columns[:_SHOWN]]
    raise RankingsError(
        f"{grid.where(row)}: {', '.join(said)}: the columns say which items were chosen, not in "
        f"which order; pick the columns of a ranking with {option('columns')}, or write one column "
        "for each item, with its rank"
    )


def _is_of_ticks(texts: set[str], name: str) -> bool:
    """Return whether a column says in each row that its item was chosen, or that it was not."""
    words = {x.casefold() for x in texts}
    return words <= _TICKS or words == {name.casefold()} or (words <= {"0", "1"} and "0" in words)


def _refuse_sums(grid: Grid, columns: Sequence[Column], numbers: np.ndarray) -> None:
    """Refuse a last row with the sums or the means of the others."""
    last = len(numbers) - 1
    if last < 2:
        return
    above = np.maximum(numbers[:-1], 0)
    try:
        row = np.array([float(column.text(last).replace(",", ".") or 0) for column in columns])
    except ValueError:
        return
    sums, counts = above.sum(0), np.maximum((above > 0).sum(0), 1)
    for name, totals in (("sums", sums), ("means", sums / counts)):
        if np.allclose(row, totals, atol=0.006) and (row.max() > len(columns) or (row % 1).any()):
            raise RankingsError(
                f"{grid.where(last)}: this row has the {name} of the columns; remove it"
            )


# ---------------------------------------------------------------------------------------------
# The whole order in one cell
# ---------------------------------------------------------------------------------------------


def places_of_cells(
    grid: Grid,
    column: Column,
    separator: str | None,
    missing: Sequence[str],
    items: Sequence[str] | None,
    closes_gaps: bool,
) -> tuple[list[Column], list[str]]:
    """Split cells that hold a whole order into a column for each place.

    :param separator: what is between the items; by default the one that the cells show.
    :param items: names of the items, if they are known.
    """
    texts = [text for text in column.values if text]
    if not texts:
        return [column], []
    where = f"column {column.name!r}"
    split: Callable[[str], list[str]] = _split_list
    if all(_list_in(text) is not None for text in texts):
        notes = [f"{where}: the cells are lists in brackets"]
    elif separator is None and all(map(_is_numbered, texts)):
        split = _split_numbered
        notes = [f"{where}: the items are separated by their numbers"]
    else:
        mark = _MARK_WORDS.get(separator or "", separator)
        mark = mark or _mark_of(grid, column, texts, items)
        split = _split_at(mark)
        if not any(mark in text for text in texts):
            raise RankingsError(
                f"{_where(grid, column, texts[0])}: the separator {mark!r} is in no cell, such as "
                f"{shorten(texts[0], _LENGTH)!r}"
            )
        notes = [f"{where}: the items are separated by {mark!r}"]
        if mark in (">", "≻", "->", "→"):
            _refuse_ties(grid, column, texts, split)
    known = None if items is None else set(items)
    is_known = known is not None and known.issuperset(x for x in split(texts[0]) if x)
    if not is_known and all(_NUMBERED.fullmatch(x) for t in texts for x in split(t) if x):
        split = _without_numbers(grid, column, split)
        notes.append("the numbers of the items in the cells were taken off")
    elif not is_known:
        _refuse_parts(grid, column, texts, split)
    words = {_key(word) for word in missing}
    index: dict[str, int] = {"": 0}
    lengths = np.zeros(len(column.values), np.int32)
    flat = array("i")
    for k, text in enumerate(column.values):
        parts = split(text)
        if words:
            parts = ["" if _key(x) in words else x for x in parts]
        while parts and not parts[-1]:
            parts.pop()
        listed = [x for x in parts if x] if "" in parts else parts
        if (
            (len(listed) < len(parts) and not closes_gaps)
            or len(set(listed)) < len(listed)
            or (known is not None and not known.issuperset(listed))
        ):
            _refuse_list(_where(grid, column, text), parts, items, closes_gaps)
        lengths[k] = len(parts)
        for part in parts:
            flat.append(index.setdefault(part, len(index)))
    places = np.arange(max(1, lengths.max()))
    codes = np.zeros((len(lengths), len(places)), np.int32)
    codes[places < lengths[:, None]] = flat
    every = np.ones(len(column.codes), bool)
    columns = [
        Column(f"place {k + 1}", list(index), codes[column.codes, k]).keep(every) for k in places
    ]
    return columns, notes


def _refuse_list(
    where: str, parts: Sequence[str], items: Sequence[str] | None, closes_gaps: bool
) -> NoReturn:
    """Say why the parts of a cell are no list of items."""
    if "" in parts and not closes_gaps:
        shown = shorten("; ".join(parts), _LENGTH)
        hint = f"{option('gaps', 'close')} keeps the order of the items that are listed"
        if not any(x and not x.isdecimal() for x in parts):
            hint = (
                "if the numbers are ranks, split the cells into a column for each item, and add "
                f"{option('layout', 'ranks')}"
            )
        raise RankingsError(f"{where}: place {parts.index('') + 1} is empty in {shown!r}; {hint}")
    twice = next((x for k, x in enumerate(parts) if x and x in parts[:k]), None)
    if twice is not None:
        cut = twice.endswith(("...", "…"))
        hint = "; the names seem to have been cut off" if cut else ""
        raise RankingsError(f"{where}: {twice!r} is listed twice{hint}")
    known = list(items or ())
    unknown = next(x for x in parts if x and x not in known)
    shown = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
    raise RankingsError(f"{where}: there is no item {unknown[:40]!r}; expected {shown}")


def _list_in(text: str) -> list[str] | None:
    """Return the list in a cell such as ``["A","B"]`` or ``['A', 2]``, of JSON or of Python."""
    if not text.startswith("["):
        return None
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            found = read(text)
            if isinstance(found, list) and all(type(x) in (str, int) for x in found):
                return [str(x).strip() for x in found]
    return None


def _split_list(text: str) -> list[str]:
    return _list_in(text) or []


def _split_numbered(text: str) -> list[str]:
    """Split ``1. A 2. B`` before the numbers, which stay."""
    starts = [x.start() for x in _NUMBER_OF_ITEM.finditer(text)]
    return [text[k:end].strip() for k, end in itertools.pairwise([*starts, len(text)])]


def _is_numbered(text: str) -> bool:
    """Return whether a cell is ``1. A 2. B``, with no other mark between the items."""
    numbers = [int(x[1]) for x in _NUMBER_OF_ITEM.finditer(text)]
    is_first = _NUMBER_OF_ITEM.match(text) is not None
    is_marked = any(mark in text for mark in _MARKS)
    return is_first and not is_marked and numbers == list(range(1, len(numbers) + 1))


def _refuse_parts(
    grid: Grid, column: Column, texts: Sequence[str], split: Callable[[str], list[str]]
) -> None:
    """Refuse parts of cells that are parts of something else than a list of names."""
    parts = [(text, x) for text in texts for x in split(text) if x]
    for text, x in parts:
        if any(x.count(one) != x.count(other) for one, other in ("[]", "()", "{}")):
            raise RankingsError(
                f"{_where(grid, column, text)}: {x[:40]!r} has a bracket without its other half; "
                "write the items with a semicolon between them, or name them all with "
                f"{option('items')}"
            )
    if all(_WITH_RANK.fullmatch(x) or _RANK_OF.match(x) for _, x in parts):
        text, x = parts[0]
        raise RankingsError(
            f"{_where(grid, column, text)}: {x[:40]!r} seems to be an item and its rank; write the "
            f"items in order, without numbers, or name them all with {option('items')}"
        )


def _split_at(mark: str) -> Callable[[str], list[str]]:
    return lambda text: [x.strip() for x in text.split(mark)]


def _mark_of(grid: Grid, column: Column, texts: Sequence[str], items: Sequence[str] | None) -> str:
    """Return what separates the items in cells.

    :raises RankingsError: if nothing does, or several marks may, showing a cell in both ways.
    """
    found = [mark for mark in _MARKS if any(mark in text for text in texts)]
    if "->" in found and not any(">" in text.replace("->", "") for text in texts):
        found.remove(">")
    if len(found) > 1:
        # some tools write it behind each item
        ends = [mark for mark in found if all(text.endswith(mark) for text in texts)]
        found = ends if len(ends) == 1 else found
    if len(found) > 1 and items is not None:
        known = {*items, ""}
        fits = [m for m in found if all(x.strip() in known for t in texts for x in t.split(m))]
        found = fits if len(fits) == 1 else found
    if len(found) == 1:
        return found[0]
    if not found:
        raise RankingsError(
            f"{_where(grid, column, texts[0])}: what separates the items in "
            f"{shorten(texts[0], _LENGTH)!r}? Name it with {option('separator')}"
        )
    text = max(texts, key=lambda text: sum(mark in text for mark in found))
    words = {mark: word for word, mark in _MARK_WORDS.items()}
    ways = [
        f"With {option('separator', words.get(mark, mark))} it is "
        f"{[x.strip() for x in text.split(mark) if x.strip()]}"
        for mark in found
        if mark in text
    ]
    raise RankingsError(
        f"{_where(grid, column, text)}: what separates the items? {'; '.join(ways)}"
    )


def _where(grid: Grid, column: Column, text: str) -> str:
    """Return the first row in which a column has a text, and the column, for messages."""
    row = int(np.argmax(column.codes == column.values.index(text)))
    return f"{grid.where(row)}: column {column.name!r}"


def _refuse_ties(
    grid: Grid, column: Column, texts: Sequence[str], split: Callable[[str], list[str]]
) -> None:
    for text in texts:
        if "=" in text or "~" in text:
            tied = next(x for x in split(text) if "=" in x or "~" in x)
            here = _where(grid, column, text)
            raise RankingsError(f"{here}: ties are not supported, got {tied!r}")


def _without_numbers(
    grid: Grid, column: Column, split: Callable[[str], list[str]]
) -> Callable[[str], list[str]]:
    """Return a function that takes the numbers off lists such as ``1. A; 2. B``."""

    def without(text: str) -> list[str]:
        found = [x for part in split(text) if (x := _NUMBERED.fullmatch(part))]
        numbers = [int(x[1]) for x in found]
        if numbers != list(range(1, len(numbers) + 1)):
            raise RankingsError(
                f"{_where(grid, column, text)}: the items are numbered "
                f"{', '.join(map(str, numbers[:10]))}, not 1, 2, …: is it the order or the number "
                "that counts? Write the items in order, without numbers"
            )
        return [x[2].strip() for x in found]

    return without
