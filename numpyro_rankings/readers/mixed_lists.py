"""Lists in cells: several marks between items in a column, numbers in front, columns beside."""

import itertools
import re
from collections.abc import Sequence

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.grids import Column, Grid, whole_number
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.questions import QuestionSpec, options_beside
from numpyro_rankings.readers.tied_names import inside_brackets, is_outside, split_outside
from numpyro_rankings.words import shorten
from numpyro_rankings.words.options import option

ARROWS = ("->", "→", "≻", ">")
ANY = "any"  # the separator with which each cell is split at its own mark
MARKS = (*ARROWS, ";", "\n", "|", ",")  # where a cell has several, the first one
_LENGTH = 60  # letters of a text
# before a list, as in 12: Ann > Bob and 12 x Ann > Bob
_NUMBER = re.compile(r"(\d+)\s*(?:[:*×]|x\s)\s*(?=\S)", re.IGNORECASE)
_MEAN = re.compile(r"\d+(?:,50?)?")  # of ranks, with a decimal comma
_NUMBER_AND_BLANK = re.compile(r"(\d+)\s+(?=\S)")


def mark_in(text: str) -> str:
    """Return the mark between the items of a cell; "" if it has none."""
    return next((mark for mark in MARKS if is_outside(mark, text)), "")


def split_at_own(text: str) -> list[str]:
    """Split a cell at its own mark."""
    mark = mark_in(text)
    return split_outside(text, mark) if mark else [text.strip()]


def marks_that_differ(texts: Sequence[str]) -> dict[str, str]:
    """Return a cell with each mark, if not all have the same and lists of all share items."""
    first: dict[str, str] = {}
    names: dict[str, set[str]] = {}
    for text in texts:
        if mark := mark_in(text):
            first.setdefault(mark, text)
            names.setdefault(mark, set()).update(split_outside(text, mark))
    is_shared = len(names) > 1 and all(
        any(names[mark] & names[other] for other in names if other != mark) for mark in names
    )
    return first if is_shared else {}


def refuse_other_marks(grid: Grid, column: Column, texts: Sequence[str], mark: str) -> None:
    """Refuse a cell that would be one item, and is a list of known items with another mark.

    Items that are all known may also be tied, unless there are arrows between them.
    """
    names = {x for text in texts if is_outside(mark, text) for x in split_outside(text, mark)}
    for text in texts:
        other = mark_in(text)
        if not other or text in names or is_outside(mark, text):
            continue
        parts = {*split_outside(text, other)} - {""}
        if parts & names and not (parts <= names and other in (";", "\n", "|", ",")):
            raise RankingsError(
                f"{grid.at_text(column, text)}: {shorten(text, _LENGTH)!r} has {other!r} between "
                f"its items, and other cells have {mark!r}: {option('separator', ANY)} splits "
                f"each cell at its own mark; if it is one name, add {option('items')} with all"
            )


def numbers_before(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the number before each of the lists, and the list; nothing if they have none.

    With a blank alone behind it, the number may be part of a name: then no list has the first name
    of another one without it.
    """
    for pattern in (_NUMBER, _NUMBER_AND_BLANK):
        if len(texts) < 2 or pattern.match(texts[0]) is None:  # others may be many
            continue
        matches = [match for text in texts if (match := pattern.match(text))]
        if len(matches) < len(texts):
            continue
        found = [(x[1], text[x.end() :]) for x, text in zip(matches, texts, strict=True)]
        lists = [split_at_own(rest) for _, rest in found]
        later = {name for names in lists for name in names[1:]}
        if pattern is _NUMBER or not later.isdisjoint(names[0] for names in lists):
            return found
    return []


def refuse_numbers_before(
    grid: Grid, column: Column, texts: Sequence[str], spec: QuestionSpec
) -> None:
    """Refuse lists with numbers in front, which count judges or name them."""
    if not (found := numbers_before(texts)):
        return
    ways = _ways_of_numbers(column.name, [int(number) for number, _ in found], spec)
    how = f"add {ways}" if ways else "write the numbers into a column of their own"
    raise RankingsError(
        f"{grid.at_text(column, texts[0])}: {shorten(texts[0], _LENGTH)!r} seems to be a number "
        f"and a list: {how}, or name all items with {option('items')} if it is part of a name"
    )


def _are_rising(numbers: Sequence[int]) -> bool:
    return all(x < y for x, y in itertools.pairwise(numbers))


def _ways_of_numbers(name: str, numbers: Sequence[int], spec: QuestionSpec) -> str:
    """Return what takes numbers beside lists: rising ones name the judges, others count them."""
    ways = {"count": "counts them", "judge": "numbers the judges"}
    given = {"count": spec.counts, "judge": spec.judge}
    first = ("judge", "count") if _are_rising(numbers) else ("count", "judge")
    free = [x for x in first if given[x] is None]
    return " or ".join(f"{option(x, name, x == free[0])} if it {ways[x]}" for x in free)


def numbers_apart(table: Table, spec: QuestionSpec) -> tuple[Table, QuestionSpec, list[str]]:
    """Put the numbers before lists into a column of their own, if an option names their column."""
    for name in {spec.counts, spec.judge} - {None}:
        column = table.grid.column(str(name))
        found = numbers_before(texts := [x for x in column.values if x])
        if not found or not any(mark_in(rest) for _, rest in found):
            continue
        number = {text: pair[0] for text, pair in zip(texts, found, strict=True)}
        rest = {text: pair[1] for text, pair in zip(texts, found, strict=True)}
        lists = f"list in {name}"
        k = table.grid.columns.index(column.name)
        cells = list(table.grid.cells)
        cells[k] = column.with_texts(lambda text: number.get(text, ""))  # noqa: B023
        named = column._replace(name=lists, label="")
        cells.append(named.with_texts(lambda text: rest.get(text, "")))  # noqa: B023
        patterns = tuple(lists if x == name else x for x in spec.patterns) or (lists,)
        table = table._replace(
            grid=table.grid._replace(cells=cells),
            labels=[*table.labels, lists],
            texts=[*table.texts, (lists,)],
        )
        note = f"column {name!r}: the numbers before the lists were put apart"
        return table, spec._replace(patterns=patterns), [note]
    return table, spec, []


def has_lists(column: Column) -> bool:
    """Return whether most texts of a column are lists with a mark between the items."""
    texts = [text for text in column.values if text]
    if all(map(_MEAN.fullmatch, texts)):
        return False
    return 2 * sum(mark_in(inside_brackets(x) or x) != "" for x in texts) > len(texts)


def refuse_beside_lists(grid: Grid, columns: Sequence[Column], spec: QuestionSpec) -> None:
    """Ask what the first column is beside the only one that has lists."""
    lists = [column for column in columns if has_lists(column)]
    if len(lists) != 1 or len(columns) < 2:
        return
    beside = next(column for column in columns if column is not lists[0])
    only = f"{option('columns', lists[0].name, False)} reads the lists alone"
    numbers = [whole_number(beside.text(row)) for row in range(len(beside.codes))]
    whole = [x for x in numbers if x is not None]
    # below a name such as age, only rising numbers are taken for names
    if len(whole) == len(numbers) and (not spec.has_header or _are_rising(whole)):
        if ways := _ways_of_numbers(beside.name, whole, spec):
            raise RankingsError(
                f"{grid.where(0)}: the column {beside.name!r} has a number beside each list: add "
                f"{ways}; {only}"
            )
    raise RankingsError(
        f"{grid.header_place}: what is {beside.name!r} beside the lists in {lists[0].name!r}? "
        f"If it is no list, {options_beside(beside, spec)}; {only}"
    )


def refuse_lists_at_places(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse columns that all have whole lists with arrows, instead of an item at a place."""
    if any(mark_in(x) not in ARROWS for column in columns for x in column.values if x):
        return
    column = columns[0]
    text = next((x for x in column.values if x), "")
    several = "" if len(columns) == 1 else f", one column of lists by {option('columns')},"
    raise RankingsError(
        f"{grid.at_text(column, text)}: {shorten(text, _LENGTH)!r} seems to be a list, not the "
        f"item at a place: add {option('layout', 'cell', len(columns) == 1)}{several} if it is, or "
        f"{option('items')} with all names if it is one; {option('transpose', True, False)} takes "
        "columns as judges"
    )
