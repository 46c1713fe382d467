"""Exports of survey tools: the columns of one question, from a table as a tool writes it.

Between the grid and the question: the rows above the answers are read, the columns of a question
are picked, and its items are named. What the cells say is the subject of ``answers.py`` and of the
layouts.

What the tools write:

- Qualtrics: a column for each item with its rank; ids of the columns (``Q5_1``), the question with
  the item, and import ids in JSON, in three rows.
- SurveyMonkey: a column for each item with its rank; the question in the first row, above the first
  of its columns only, and the items in the second.
- Google Forms: a column for each row of a grid, ``Question [row]``, with the text of the column.
- Microsoft Forms, and quizzes of Moodle: one cell with the order, ``A;B;C;`` or ``A; B; C``.
- LimeSurvey: a column for each rank, ``Q5[1]`` or ``Question [Rank 1]``, with codes or texts.
- REDCap: a column for each item with a code or text of the rank, or for each item and rank.
- Questionnaires of Moodle: a column for each item, ``Q5_Question->item``, with its rank.
"""

import fnmatch
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.readers.added_columns import added_columns
from numpyro_rankings.readers.answers import (
    BAD,
    GOOD,
    NUMBER,
    means_no_rank,
    places_in_order,
    rank_in_words,
)
from numpyro_rankings.readers.grids import (
    EXCEL_SUFFIXES,
    TEXT_SUFFIXES,
    Column,
    Grid,
    is_title,
    whole_number,
)
from numpyro_rankings.words import by_number, shorten
from numpyro_rankings.words.options import option

_LENGTH = 60  # letters of a name in a message
_MOST_HEADER_ROWS, _MOST_TITLES, _LOOKED_AT = 3, 3, 200
_FEWEST_BELOW = 3  # rows below one that says more of the columns, with it
_WITHOUT_NAMES = (*TEXT_SUFFIXES, *EXCEL_SUFFIXES)  # files whose columns may have no names
_IMPORT_ID = re.compile(r'\{\s*"ImportId"')
# columns of Qualtrics, and what the second row calls them
_QUALTRICS = {
    "StartDate": "Start Date",
    "EndDate": "End Date",
    "RecordedDate": "Recorded Date",
    "ResponseId": "Response ID",
    "ResponseID": "ResponseID",
    "IPAddress": "IP Address",
    "V1": "ResponseID",
}
_UNNAMED = re.compile(r"Unnamed: \d+")  # as pandas calls columns without a name
_NO_ITEM = {"", "Response", "Open-Ended Response"}  # as SurveyMonkey writes below a question
# in which order Qualtrics showed the items, and what was typed into them
_NO_ANSWER = re.compile(r".*(?:_DO(?:_\w+)?|_TEXT)")
# where the common beginning of headers may end, and the common end begin
_BEFORE_ITEM = re.compile(
    r"(?:\[|\(choice=|->|=>|!!|::|//|\||[»›→]|: *|\s[-–—|/>]\s*|\n+|\?\s+|\.\s+|___)$"
)
_AFTER_ITEM = re.compile(r"^(?:\]|\)|: *\S|\s[-–—|/>]\s|\s*[\[(]|\n)")
_TOTALS = re.compile(
    r"(?:(?:grand |sub-?)?(?:totals?|sums?|averages?|means?|median|count|summe|gesamt|mittelwert|"
    r"durchschnitt|moyenne|total général)|(?:average|mean|overall|final|total) (?:ranks?|rankings?|"
    r"places?)|overall|consensus|borda(?: count| score)?|Σ)\W*",
    re.IGNORECASE,
)
_SUMS = re.compile(r"(?:(?:grand |sub-?)?(?:totals?|sums?)|summe|gesamt|total général|Σ)\W*", re.I)

# the ends of a scale or of places
_GOOD, _BAD = (re.compile(rf"\b{x}\b", re.IGNORECASE) for x in (GOOD, BAD))

# rows below those of totals, which could be names of judges elsewhere
_BESIDE_TOTALS = re.compile(
    r"(?:n|s\.?d\.?|std\.?(?:[ _]?dev\.?)?|stdev|standard deviation|var(?:iance)?|range|"
    r"min(?:imum)?|max(?:imum)?)\W*",
    re.IGNORECASE,
)


class Table(NamedTuple):
    """A table without the rows above its answers."""

    grid: Grid  # the answers; its columns have names that may be empty, or the same
    labels: list[str]  # the name of each column in words, from which items are named
    texts: list[tuple[str, ...]]  # all that the rows above say of each column
    notes: list[str]  # how they were read

    def name_of(self, name: object) -> str:
        """Return the name of the column that is called so in any of the rows above."""
        text, columns = str(name), self.grid.columns
        if text in columns:
            places = [k for k, column in enumerate(columns) if column == text]
        else:
            places = [k for k, texts in enumerate(self.texts) if text in texts]
        if len(places) > 1:
            raise RankingsError(
                f"{self.grid.header_place}: {len(places)} columns have the name {text!r}; name one "
                "of them by the whole text above it"
            )
        return columns[places[0]] if places else text


# ---------------------------------------------------------------------------------------------
# The rows above and below the answers
# ---------------------------------------------------------------------------------------------


def below_title(grid: Grid) -> Grid:
    """Take titles off the top of a table: rows with a text in the first cell, and in no other.

    The row below names all columns, with texts that are no numbers and do not come again.
    """
    titles: list[str] = []
    names = grid.columns
    while len(titles) < _MOST_TITLES and len(names) > 1 and names[0] and not any(names[1:]):
        titles.append(names[0])
        row = len(titles) - 1
        if row + 1 >= len(grid.numbers):
            return grid
        names = [column.text(row) for column in grid.cells]
    if not titles or not all(names) or any(whole_number(name) is not None for name in names):
        return grid
    below = np.arange(len(grid.numbers)) >= len(titles)
    cells = [column.keep(below) for column in grid.cells]
    added = {k for columns, _ in added_columns(names) for k in columns}  # may have names of items
    texts = {text for k, x in enumerate(cells) if k not in added for text in x.values}
    if len(set(names)) < len(names) or not texts.isdisjoint(names):
        return grid
    words = " ".join(titles)  # which may say what the numbers mean
    shown = ", ".join(repr(title[:_LENGTH]) for title in titles)
    return grid._replace(
        cells=[
            cell._replace(name=name, label=f"{words} - {name}")
            for cell, name in zip(cells, names, strict=True)
        ],
        numbers=grid.numbers[below],
        header_place=grid.where(len(titles) - 1),
        notes=(*grid.notes, f"left out above the names of the columns: {shown}"),
    )


def below_title_alone(grid: Grid) -> Grid:
    """Take titles off the top of a table without names of columns."""
    number, most = 0, min(_MOST_TITLES, len(grid.numbers) - 1)
    first, *others = grid.cells
    while number < most and first.text(number) and not any(x.text(number) for x in others):
        number += 1
    for end in range(number if others else 0, 0, -1):
        below = grid.keep(np.arange(len(grid.numbers)) >= end)
        titles = [first.text(row) for row in range(end)]
        if all(is_title(x, _texts(below)) for x in titles):
            shown = ", ".join(repr(title[:_LENGTH]) for title in titles)
            note = f"left out above the first ballot: {shown}"
            return below._replace(header_place=below.where(0), notes=(*grid.notes, note))
    return grid


def _texts(grid: Grid) -> set[str]:
    return {text for column in grid.cells for text in column.values}


def without_names_again(grid: Grid) -> Grid:
    """Take rows that repeat the names of the columns off a table, which was put together of parts.

    No other row has any of the names: else the first row may be a ballot that comes again.
    """
    names = grid.columns
    if len(names) < 2 or any(column.name not in column.values for column in grid.cells):
        return grid
    is_again = np.logical_and.reduce([x.codes == x.values.index(x.name) for x in grid.cells])
    cells = [column.keep(~is_again) for column in grid.cells]
    texts = {text for column in cells for text in column.values if text}
    if is_again.all() or not is_again.any() or not texts.isdisjoint(names):
        return grid
    shown = names_counted([grid.where(row) for row in np.flatnonzero(is_again).tolist()], 3)
    note = f"left out, because they repeat the names of the columns: {shown}"
    notes = (*grid.notes, note)
    return grid._replace(cells=cells, numbers=grid.numbers[~is_again], notes=notes)


def fold_header(grid: Grid, header_rows: int | None) -> Table:
    """Take further rows with the names of the columns off a table.

    Without their number, those of Qualtrics and SurveyMonkey are recognised.
    """
    if header_rows is not None and header_rows not in range(1, _MOST_HEADER_ROWS + 1):
        raise RankingsError(
            f"{option('header_rows', header_rows)}: expected 1, 2 or 3; remove titles and other "
            f"rows above the names of the columns; {option('header', 'none')} if there are none"
        )
    _refuse_dominion(grid)
    names, notes = [_UNNAMED.sub("", name) for name in grid.columns], list[str]()
    more = _further_header_rows(grid, names) if header_rows is None else header_rows - 1
    if not more and _are_answers_below(grid, names):
        numbered = _numbered(names)
        new = [x for x, y in zip(numbered, names, strict=True) if x != y]
        if len({*numbered}) == len(numbered) and all(numbered):
            grid = grid._replace(cells=renamed(grid.cells, numbered))
            called = " to ".join(dict.fromkeys(repr(x) for x in (new[0], new[-1])))
            names, notes = numbered, [f"columns without a name of their own are called {called}"]
    if header_rows is None and not more and len(names) > 1 and names[0] and not any(names[1:]):
        none = ""
        may_be_title = is_title(names[0], _texts(below_title_alone(grid)))
        if may_be_title and grid.name.lower().endswith(_WITHOUT_NAMES):
            none = f"; add {option('header', 'none')} if there are none"
        if none or len(names) > 2:
            raise RankingsError(
                f"{grid.header_place}: only the first column has a name, {names[0][:_LENGTH]!r}; "
                f"if it is a title, remove what is above the names of the columns{none}"
            )
    if not more:
        words = [column.label or column.name for column in grid.cells]
        pairs = zip(grid.columns, words, strict=True)
        return Table(grid, words, [(x,) if x == y else (x, y) for x, y in pairs], notes)
    if more >= len(grid.numbers):
        raise RankingsError(f"{grid.where(len(grid.numbers) - 1)}: there are no rows below this")
    below = [[column.text(row) for column in grid.cells] for row in range(more)]
    said = [texts for texts in below if not any(map(_IMPORT_ID.match, texts))]
    rows = np.arange(len(grid.numbers)) >= more
    if all(names) and len(set(names)) == len(names):
        kind = "ids and questions"
        texts = list(zip(names, *said, strict=True))
        labels = [next(filter(None, reversed(words)), words[0]) for words in texts]
    else:
        kind = "questions and items"
        labels, texts = _labels_of_questions(names, said)
        grid = grid._replace(cells=renamed(grid.cells, labels))
    return Table(grid.keep(rows), labels, texts, [f"{more + 1} rows name the columns, with {kind}"])


def _are_answers_below(grid: Grid, names: Sequence[str]) -> bool:
    """Return whether columns without a name of their own have names of items in the first row.

    These come again in the rows below, where names of columns do not, but as ticks. Without numbers
    below columns without any name, the others have names of items in the first row, too.
    """
    rows = range(1, min(len(grid.numbers), _LOOKED_AT))
    later = [x for k, x in enumerate(grid.cells) if not names[k] or names[k] in names[:k]]
    texts = [{*map(x.text, rows)} - {""} for x in later]
    below = set().union(*(y for x, y in zip(later, texts, strict=True) if y != {x.text(0)}))
    are_names = not (all(names) or any(whole_number(x) is not None for x in below))
    first = {x.text(0) for x in (grid.cells if are_names else later) if rows}
    return any(whole_number(x) is None for x in first & below)


def _are_ends(names: Sequence[str]) -> bool:
    """Return whether some names say the best, and others the worst."""
    good, bad = ({x for x in names if end.search(x)} for end in (_GOOD, _BAD))
    return bool(good - bad and bad - good)


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names of columns, with numbers behind those that come again; empty ones do, too.

    Between the best and the worst, these have a number alone.
    """
    full, are_ends = list[str](), _are_ends(names)
    for k, name in enumerate(names, 1):
        full.append(name or (f"column {k}" if are_ends else full[-1] if full else ""))
    number, next_of = Counter(full), {x: itertools.count(1) for x in full}
    return [f"{x} {next(next_of[x])}" if number[x] > 1 else x for x in full]


def _labels_of_questions(
    names: Sequence[str], below: Sequence[Sequence[str]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return what the columns are called if questions are above the first of their columns."""
    question, labels = "", list[str]()
    texts: list[tuple[str, ...]] = []
    for name, *words in zip(names, *below, strict=True):
        question = name or question
        item = " - ".join(x for x in words if x not in _NO_ITEM and x != name)
        labels.append(f"{question} - {item}" if item and question else item or name)
        texts.append((labels[-1], question if item else name, item))
    return labels, texts


def renamed(cells: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """Return columns under other names."""
    return [cell._replace(name=name) for cell, name in zip(cells, names, strict=True)]


def _refuse_dominion(grid: Grid) -> None:
    """Refuse an export of Dominion's, whose contests and candidates are in rows of their own."""
    for column in grid.cells:
        for row in range(min(3, len(grid.numbers))):
            if column.text(row) == "CvrNumber":
                raise RankingsError(
                    f"{grid.where(row)}: this seems to be an export of Dominion, in which several "
                    "rows name the columns: write one row instead, with names such as 'Ann 1' for "
                    "a candidate and a rank, and add --layout marks; or read the .json to which "
                    "RCTab converts the export"
                )


def _further_header_rows(grid: Grid, names: Sequence[str]) -> int:
    """Return how many rows name the columns, as Qualtrics and SurveyMonkey write them, less one."""
    rows = [[column.text(row) for column in grid.cells] for row in range(min(2, len(grid.numbers)))]
    for row, texts in enumerate(rows):
        if any(map(_IMPORT_ID.match, texts)):
            return row + 1
    first = rows[0]
    if _says_more_of_columns(grid, names):
        return 1
    if any(_QUALTRICS.get(name) == text for name, text in zip(names, first, strict=True)):
        return 1
    unnamed = [
        text
        for k, (name, text) in enumerate(zip(names, first, strict=True))
        if not name or name in names[:k]
    ]
    if _are_answers_below(grid, names):
        return 0
    have_counts = all(whole_number(name) is not None for name in names if name)
    # ranks in words, of which none comes twice, may be answers
    are_ranks = all(map(rank_in_words, unnamed)) and len({*first}) == len(first)
    is_crosstable = unnamed == first[:1] and first[0] in names  # the rows are the columns
    are_places = not names[0] and all(names[1:]) and places_in_order(grid.cells[0].values)
    if not unnamed or not all(unnamed) or are_ranks or have_counts or is_crosstable or are_places:
        return 0
    if first[0] in _NO_ITEM:  # nothing is below the column of the ids
        return 1
    # there is no number, nor an answer that comes again among others in its column
    come_again = any(x.text(0) and (x.codes[1:] == x.codes[0]).any() for x in _of_texts(grid.cells))
    return int(not (come_again or any(whole_number(text) is not None for text in first)))


def _of_texts(cells: Sequence[Column]) -> list[Column]:
    """Return the columns with several texts, which are no ticks."""
    return [x for x in cells if len({*x.values} - {""}) > 1]


def _says_more_of_columns(grid: Grid, names: Sequence[str]) -> bool:
    """Return whether the first row says more of columns of numbers, such as a scale: in words.

    Two columns and more are of numbers below it; a cell is blank where nothing is said.
    """
    if not all(names) or len({*names}) < len(names) or len(grid.numbers) < _FEWEST_BELOW:
        return False
    said = [x.values[0] for x in grid.cells if len(x.values) > 1 and _is_number(x.values[1])]
    texts = [x for x in said if x]
    if 2 * len(texts) <= len(names) or len(texts) < 2 or any(map(_is_number, texts)):
        return False
    if any(rank_in_words(x) is not None or means_no_rank(x, None) for x in texts):
        return False
    of_numbers = [x for x in grid.cells if all(_is_number(y) for y in x.values[1:] if y)]
    return len(of_numbers) >= len(said) and not any((x.codes[1:] == 0).any() for x in of_numbers)


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None


def is_called_total(text: str) -> bool:
    """Return whether a row is called as one of totals or means."""
    return _TOTALS.fullmatch(text) is not None


def is_called_sum(text: str) -> bool:
    """Return whether a column is called as one of sums."""
    return _SUMS.fullmatch(text) is not None


def drop_totals(grid: Grid, looked_at: Sequence[int]) -> tuple[Grid, list[str]]:
    """Take rows of totals off the end of a table, as the first of the cells looked at says.

    Rows of a text alone below them are notes; a judge who ranks nothing is none.
    """
    end, notes = len(grid.numbers), []
    last, alone = end, list[int]()
    while last > 1:
        texts = [x for column in grid.cells if (x := column.text(last - 1))]
        first = next((x for k in looked_at if (x := grid.cells[k].text(last - 1))), "")
        numbers = sorted(filter(NUMBER.fullmatch, texts))
        are_ranks = numbers == [str(k) for k in range(1, len(numbers) + 1)]  # of a judge
        is_beside = _BESIDE_TOTALS.fullmatch(first) is not None and not are_ranks
        if _TOTALS.fullmatch(first):
            end = last - 1
        elif not is_beside:
            if texts != [first]:
                break
            alone.append(last - 1)
        last -= 1
    below = [row for row in alone if row > end]
    if end < len(grid.numbers) and all(_is_note(grid, row, end) for row in below):
        totals = [row for row in range(end, len(grid.numbers)) if row not in below]
        words = [*dict.fromkeys(repr(grid.cells[0].text(row) or "total") for row in totals)]
        is_in = by_number(len(words), "is in its first cell", "are in their first cells")
        why = f"because {names_shown(words)} {is_in}"
        ways = [(why, totals), ("as notes below", below[::-1])]
        for why, rows in ways:
            if rows:
                notes.append(f"left out, {why}: {', '.join(map(grid.where, rows))}")
        grid = grid.keep(np.arange(len(grid.numbers)) < end)
    _refuse_totals(grid, looked_at)
    return grid, notes


def ends_with_sum(counts: Column) -> bool:
    """Return whether the last number of a column is the sum of two or more above it."""
    numbers = counts.mapped(lambda text: float(whole_number(text) or 0), np.float64)
    found = numbers[numbers > 0]
    return len(found) > 2 and found[-1] == found[:-1].sum()


def _is_note(grid: Grid, row: int, end: int) -> bool:
    """Return whether the only text of a row is a note, and not the name of a judge or a rank.

    It has more words than any text above it, before row **end**, or numbers only are above it.
    """
    column = next(x for x in grid.cells if x.text(row))
    text, above = column.text(row), {*column.keep(np.arange(len(grid.numbers)) < end).values}
    if NUMBER.fullmatch(text):
        return False
    return len(text.split()) > max((len(x.split()) for x in above), default=0) or all(
        NUMBER.fullmatch(x) for x in above if x
    )


def _refuse_totals(grid: Grid, looked_at: Iterable[int]) -> None:
    """Refuse a row of totals that has answers below it."""
    is_open = np.ones(len(grid.numbers), bool)  # whether all cells so far are blank
    for k in looked_at:
        column = grid.cells[k]
        is_total = is_open & column.mapped(
            lambda text: not text[:1].isdecimal() and _TOTALS.fullmatch(text) is not None, bool
        )
        if is_total.any():
            row = int(np.argmax(is_total))
            raise RankingsError(
                f"{grid.where(row)}: this row seems to have totals, because {column.text(row)!r} "
                "is in its first cell; remove it, or write the name of the judge in another way"
            )
        is_open &= column.is_blank()
        if not is_open.any():
            return


# ---------------------------------------------------------------------------------------------
# The columns of a question
# ---------------------------------------------------------------------------------------------


def choose(
    table: Table, patterns: Sequence[str], special: Iterable[str]
) -> tuple[list[int], list[str]]:
    """Return the columns that names or patterns pick, and notes; else all that are not special."""
    grid, columns, taken = table.grid, table.grid.columns, set(special)
    if not patterns:
        return [k for k, name in enumerate(columns) if name not in taken], []
    chosen: list[int] = []
    notes = []
    for pattern in patterns:
        picked = [k for k, name in enumerate(columns) if name == pattern]
        if picked and pattern in taken:
            raise RankingsError(f"{grid.name}: the column {pattern!r} is named twice")
        if not picked:
            # brackets stand for themselves
            glob = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
            free = [k for k, name in enumerate(columns) if name and name not in taken]
            picked = [k for k in free if any(map(glob.fullmatch, table.texts[k]))]
            beside = [k for k in picked if _NO_ANSWER.fullmatch(columns[k])]
            if beside and len(beside) < len(picked):
                picked = [k for k in picked if k not in beside]
                shown = names_counted([columns[k] for k in beside])
                notes.append(f"left out: {shown}, which a survey tool writes beside the answers")
            _refuse_two_questions(grid, pattern, [columns[k] for k in picked])
        if not picked:
            hint = "; put a name that contains a comma into quotes" if len(patterns) > 1 else ""
            raise RankingsError(
                f"{grid.name}: no column is called {pattern!r}; the columns are "
                f"{names_counted([repr(shorten(name, _LENGTH)) for name in columns], 12)}{hint}"
            )
        chosen += [k for k in picked if k not in chosen]
    return chosen, notes


def _refuse_two_questions(grid: Grid, pattern: str, picked: Sequence[str]) -> None:
    """Refuse a pattern such as ``Q1*`` that takes ``Q1_1`` and ``Q10_1``."""
    start = pattern.partition("*")[0]
    if not start[-1:].isdecimal():
        return
    here = [name for name in picked if name.startswith(start)]
    longer = [name for name in here if name[len(start) :][:1].isdecimal()]
    others = [name for name in here if name not in longer]
    if longer and others:
        raise RankingsError(
            f"{grid.name}: {pattern!r} takes {others[0]!r} and {longer[0]!r}, which seem to be of "
            f"two questions; write a longer beginning, such as '{others[0][: len(start) + 1]}*'"
        )


def name_columns(labels: Sequence[str], patterns: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Return what is left of headers without their common beginning and end.

    They are cut where an item may begin and end, or where a pattern has a ``*``. No name is one of
    those that are taken.
    """
    if len(labels) < 2:
        return list(labels)
    starts, others = {len(x.partition("*")[0]) for x in patterns if "*" in x}, set(taken)
    same = common_start(labels)
    cuts = [k for k in range(len(same), 0, -1) if k in starts or _BEFORE_ITEM.search(same[:k])]
    for cut in [*cuts, 0]:
        rest = [label[cut:] for label in labels]
        end = common_end(rest)
        for k in range(len(end) + 1):
            if k < len(end) and not _AFTER_ITEM.match(end[k:]):
                continue
            names = [x[: len(x) - (len(end) - k)].strip() for x in rest]
            if cut:
                names = [x.lstrip("_:. ") for x in names]
            distinct = set(names) - {""} - others
            if len(distinct) == len(names) and all(map(_has_pairs, names)):
                return names
    return list(labels)


def common_text(labels: Sequence[str]) -> str:
    """Return what all headers begin and end with."""
    return f"{common_start(labels)} {common_end(labels)}"


def common_start(texts: Sequence[str]) -> str:
    """Return what all texts begin with."""
    low, high = min(texts), max(texts)
    differs = (k for k, (x, y) in enumerate(zip(low, high, strict=False)) if x != y)
    return low[: next(differs, len(low))]


def common_end(texts: Sequence[str]) -> str:
    """Return what all texts end with."""
    return common_start([text[::-1] for text in texts])[::-1]


def _has_pairs(text: str) -> bool:
    """Return whether each bracket of a text is closed."""
    return all(text.count(x) == text.count(y) for x, y in ("[]", "()"))
