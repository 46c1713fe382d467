"""Exports of survey tools: the columns of one question, from a table as a tool writes it.

A stage between the grids of ``grids.py`` and the layouts of ``layouts.py``: it reads the rows above
the answers, picks the columns of a question, and names its items. What the cells say is the subject
of ``answers.py``.

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

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import (
    best_first,
    places_of_cells,
    rank_in_words,
    refuse_missing_items,
    refuse_missing_ranks,
    refuse_other_questions,
    refuse_ticks,
    with_numbers,
    without_missing,
)
from numpyro_rankings.readers.grids import Column, Grid, check_cells, whole_number
from numpyro_rankings.words import shorten
from numpyro_rankings.words.options import option

_SHOWN, _LENGTH = 5, 60  # names in a message, and letters of each
_MOST_HEADER_ROWS = 3
_RARE = 0.01  # share of the rows that may have slid
_WITH_NUMBER = re.compile(r"(\D*)(\d{1,4})(\D*)")
_WORST = re.compile(r"\b(?:worst|least|last|bottom)\b", re.IGNORECASE)
_BEST = re.compile(r"\b(?:best|most|first|top|favou?rite)\b", re.IGNORECASE)
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
_BEFORE_ITEM = re.compile(r"(?:\[|\(choice=|->|: *|\s[-–—|/>]\s*|\n+|\?\s+|\.\s+|___)$")
_AFTER_ITEM = re.compile(r"^(?:\]|\)|: *\S|\s[-–—|/>]\s|\s*[\[(]|\n)")
_TOTALS = re.compile(
    r"(?:grand |sub-?)?(?:totals?|sums?|averages?|means?|median|count|summe|gesamt|mittelwert|"
    r"durchschnitt|moyenne|total général)\W*",
    re.IGNORECASE,
)


class Table(NamedTuple):
    """A table without the rows above its answers.

    - **grid** - the answers; its columns have names that may be empty, or the same.
    - **labels** - what each column is called in words, from which items are named.
    - **texts** - all that the rows above say of each column.
    - **notes** - how they were read.
    """

    grid: Grid
    labels: list[str]
    texts: list[tuple[str, ...]]
    notes: list[str]

    def name_of(self, name: object) -> str:
        """Return the name of the column that is called so in any of the rows above.

        :raises RankingsError: if there are several.
        """
        text, columns = str(name), self.grid.columns
        found = [k for k, column in enumerate(columns) if column == text]
        found = found or [k for k, texts in enumerate(self.texts) if text in texts]
        if len(found) > 1:
            raise RankingsError(
                f"{self.grid.header_place}: {len(found)} columns have the name {text!r}; name one "
                "of them by the whole text above it"
            )
        return columns[found[0]] if found else text


class Reading(NamedTuple):
    """How the columns of a question are to be read.

    - **layout** - ranks, orders, cell, or long.
    - **patterns** - which columns are of the question; all but the special ones if there are none.
    - **special** - names of the columns with another meaning.
    - **separator** - between the items in a cell, or None.
    - **missing** - texts that mean that nothing is ranked.
    - **highest_first** - whether the highest number is the first choice, or None if it is not said.
    - **items** - names of the items, or None.
    - **closes_gaps** - whether ranks may be left out.
    - **are_ballots** - whether ranks may also be given twice.
    - **item** - of a long table, the column with the items.
    """

    layout: str
    patterns: tuple[str, ...]
    special: frozenset[str]
    separator: str | None
    missing: tuple[str, ...]
    highest_first: bool | None
    items: tuple[str, ...] | None
    closes_gaps: bool
    are_ballots: bool = False
    item: str | None = None


def read_question(
    table: Table, question: Sequence[int], reading: Reading
) -> tuple[Grid, list[str]]:
    """Return the columns of a question, as the layouts read them, with the special ones; and notes.

    Layout ``cell`` becomes one of orders. The columns of ballots keep their names.

    :param question: the columns, as indices.
    """
    layout, items, missing = reading.layout, reading.items, reading.missing
    _check(table.grid, question, reading)
    grid, notes = drop_totals(table.grid, question, layout)
    special = [column for column in grid.cells if column.name in reading.special]
    columns = [grid.cells[k] for k in question]
    used = {*question, *(k for k, x in enumerate(grid.cells) if x.name in reading.special)}
    check_cells(grid._replace(cells=[grid.cells[k] for k in sorted(used)]))
    if layout not in ("long", "votes", "marks"):
        refuse_slid_rows(grid, question, layout)
    is_export = bool(reading.patterns or table.notes)
    names = [column.name for column in columns]
    labels = [table.labels[k] for k in question]
    if layout in ("votes", "marks"):
        columns, said = without_missing(grid, columns, missing, None)
        return grid._replace(cells=[*special, *columns]), notes + said
    if is_export and layout != "long":
        short = name_columns(labels, reading.patterns, reading.special)
        if len(set(short)) < len(short):  # such as a second row with units
            short = names
        if layout == "ranks" and not (items and set(items) <= set(names)):
            names = names if all(x.isdecimal() for x in short) else short
        elif layout == "orders" and (order := in_order_of_ranks(short)) is not None:
            columns, names = [columns[k] for k in order], [names[k] for k in order]
        left_out = len(grid.cells) - len(special) - len(columns)
        notes.append(say_which([x.name for x in columns], names, left_out, layout))
    elif layout == "orders":
        order = in_order_of_ranks(names) or in_order_of_numbers(names)
        if order is not None and order != sorted(order):
            columns, names = [columns[k] for k in order], [names[k] for k in order]
            shown = _list([shorten(x, _LENGTH) for x in names])
            notes.append(f"the places are in the order of their numbers: {shown}")
    if layout == "orders":
        _refuse_worst_first(grid, names)
    columns = renamed(columns, names)
    num_items = len(columns) if layout == "ranks" else None
    num_ranks = num_items  # at most
    if reading.item is not None:
        num_ranks = len(items or set(filter(None, grid.column(reading.item).values)))
    columns, said = without_missing(grid, columns, missing, num_ranks)
    notes += said
    if layout in ("ranks", "long"):
        columns, comments, said = with_numbers(columns)
        notes += said
        if layout == "ranks" and not reading.are_ballots:
            refuse_other_questions(grid, columns)
        refuse_missing_ranks(grid, columns, num_ranks, missing)
        text, first = common_text(labels), reading.highest_first
        if reading.are_ballots:  # rank 1 of a ballot is the first choice
            first = bool(first)
        # of some of the items, ranks may be larger than their number
        most = None if reading.patterns and reading.closes_gaps else num_items
        columns, said = best_first(grid, columns, text, comments, first, reading.closes_gaps, most)
        notes += said
    elif layout == "orders":
        refuse_ticks(grid, columns)
        refuse_missing_items(grid, columns, items)
    else:
        columns, said = places_of_cells(
            grid, columns[0], reading.separator, missing, items, reading.closes_gaps
        )
        notes += said
        refuse_missing_items(grid, columns, items)
    if layout == "long":
        cells = [columns[0] if x.name == columns[0].name else x for x in special]
        return grid._replace(cells=cells), notes
    return grid._replace(cells=[*special, *columns]), notes


def _check(grid: Grid, question: Sequence[int], reading: Reading) -> None:
    """Refuse options that the layout does not have."""
    layout = reading.layout
    if not question:
        raise RankingsError(f"{grid.name}: no column is left for the rankings")
    if reading.patterns and layout == "long":
        raise RankingsError("columns picks those of a question; the layout long names them by rank")
    if reading.separator is not None and layout not in ("cell", "votes"):
        raise RankingsError(f"separator goes with the layout cell or votes, not with {layout}")
    if reading.separator == "":
        raise RankingsError("separator is empty")
    if reading.highest_first is not None and layout not in ("ranks", "long"):
        raise RankingsError(f"highest_first goes with ranks, not with the layout {layout}")
    if not all(reading.missing):
        raise RankingsError("missing has an empty text; empty cells mean it in any case")
    if layout == "cell" and len(question) != 1:
        names = [repr(shorten(grid.columns[k], _LENGTH)) for k in question]
        raise RankingsError(
            f"{grid.name}: the layout cell has one column, not {len(names)}; pick it with "
            f"{option('columns')}; the columns are {_list(names, 12)}"
        )


# ---------------------------------------------------------------------------------------------
# The rows above and below the answers
# ---------------------------------------------------------------------------------------------


def fold_header(grid: Grid, header_rows: int | None) -> Table:
    """Take further rows with the names of the columns off a table.

    :param header_rows: how many rows are above the answers; by default those of Qualtrics and
        SurveyMonkey are recognised.
    """
    if header_rows is not None and header_rows not in range(1, _MOST_HEADER_ROWS + 1):
        raise RankingsError(
            f"{option('header_rows', header_rows)}: expected 1, 2 or 3; remove titles and other "
            "rows above the names of the columns"
        )
    _refuse_dominion(grid)
    names = [_UNNAMED.sub("", name) for name in grid.columns]
    more = _further_header_rows(grid, names) if header_rows is None else header_rows - 1
    if header_rows is None and not more and len(names) > 2 and names[0] and not any(names[1:]):
        raise RankingsError(
            f"{grid.header_place}: only the first column has a name, {names[0][:_LENGTH]!r}; if it "
            "is a title, remove what is above the names of the columns"
        )
    if not more:
        words = [column.label or column.name for column in grid.cells]
        pairs = zip(grid.columns, words, strict=True)
        return Table(grid, words, [(x,) if x == y else (x, y) for x, y in pairs], [])
    if more >= len(grid.numbers):
        raise RankingsError(f"{grid.where(len(grid.numbers) - 1)}: there are no rows below this")
    below = [[column.text(row) for column in grid.cells] for row in range(more)]
    said = [texts for texts in below if not any(map(_IMPORT_ID.match, texts))]
    is_id = all(names) and len(set(names)) == len(names)
    labels, texts = [], []
    if is_id:  # the first row has ids, and the last one words
        for name, *words in zip(names, *said, strict=True):
            labels.append(next((x for x in reversed(words) if x), name))
            texts.append((name, *words))
    else:  # the first row has questions, each above the first of its columns
        question, full = "", []
        for name, *words in zip(names, *said, strict=True):
            question = name or question
            item = " - ".join(x for x in words if x not in _NO_ITEM)
            full.append(f"{question} - {item}" if item else name)
            texts.append((full[-1], question if item else name, item))
        labels, cells = full, grid.cells
        grid = grid._replace(cells=[x._replace(name=y) for x, y in zip(cells, full, strict=True)])
    rows = np.arange(len(grid.numbers)) >= more
    kind = "ids and questions" if is_id else "questions and items"
    note = f"{more + 1} rows name the columns, with {kind}"
    return Table(grid.keep(rows), labels, texts, [note])


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
    if any(_QUALTRICS.get(name) == text for name, text in zip(names, first, strict=True)):
        return 1
    unnamed = [
        text
        for k, (name, text) in enumerate(zip(names, first, strict=True))
        if not name or name in names[:k]
    ]
    if not unnamed or not all(unnamed) or all(map(rank_in_words, unnamed)):
        return 0
    # nothing is below the column of the ids, nor a number anywhere
    return int(first[0] in _NO_ITEM or not any(whole_number(text) is not None for text in first))


def drop_totals(grid: Grid, question: Sequence[int], layout: str) -> tuple[Grid, list[str]]:
    """Take rows of totals off the end of a table, which the first of their cells says they are."""
    others = [k for k in range(len(grid.cells)) if k not in question]
    looked_at = range(len(grid.cells)) if layout == "ranks" else others
    end, notes = len(grid.numbers), []
    while end > 1:
        first = next((x for k in looked_at if (x := grid.cells[k].text(end - 1))), "")
        if not _TOTALS.fullmatch(first):
            break
        end -= 1
    if end < len(grid.numbers):
        places = ", ".join(grid.where(row) for row in range(end, len(grid.numbers)))
        word = grid.cells[0].text(end) or "total"
        notes.append(f"left out, because {word!r} is in its first cell: {places}")
        grid = grid.keep(np.arange(len(grid.numbers)) < end)
    _refuse_totals(grid, looked_at)
    return grid, notes


def _refuse_totals(grid: Grid, looked_at: Iterable[int]) -> None:
    """Refuse a row of totals that has answers below it."""
    is_open = np.ones(len(grid.numbers), bool)  # whether all cells so far are blank
    for k in looked_at:
        column = grid.cells[k]
        is_total = [
            not text[:1].isdecimal() and _TOTALS.fullmatch(text) is not None
            for text in column.values
        ]
        if (found := is_open & np.array(is_total, bool)[column.codes]).any():
            row = int(np.argmax(found))
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
    """Return the columns that names or patterns pick, and notes.

    :param patterns: in which ``*`` stands for any text, and ``?`` for one character; if there are
        none, all columns are picked that are not special.
    :param special: names of columns that have another meaning.
    """
    grid, taken = table.grid, set(special)
    columns = grid.columns
    if not patterns:
        return [k for k, name in enumerate(columns) if name not in taken], []
    chosen: list[int] = []
    notes = []
    for pattern in patterns:
        found = [k for k, name in enumerate(columns) if name == pattern]
        if found and pattern in taken:
            raise RankingsError(f"{grid.name}: the column {pattern!r} is named twice")
        if not found:
            glob = _glob(pattern)
            free = [k for k, name in enumerate(columns) if name and name not in taken]
            found = [k for k in free if any(map(glob.fullmatch, table.texts[k]))]
            beside = [k for k in found if _NO_ANSWER.fullmatch(columns[k])]
            if beside and len(beside) < len(found):
                found = [k for k in found if k not in beside]
                notes.append(
                    f"left out: {_list([columns[k] for k in beside])}, which a survey tool writes "
                    "beside the answers"
                )
            _refuse_two_questions(grid, pattern, [columns[k] for k in found])
        if not found:
            hint = "; put a name that contains a comma into quotes" if len(patterns) > 1 else ""
            raise RankingsError(
                f"{grid.name}: no column is called {pattern!r}; the columns are "
                f"{_list([repr(shorten(name, _LENGTH)) for name in columns], 12)}{hint}"
            )
        chosen += [k for k in found if k not in chosen]
    return chosen, notes


def _refuse_two_questions(grid: Grid, pattern: str, found: Sequence[str]) -> None:
    """Refuse a pattern such as ``Q1*`` that takes ``Q1_1`` and ``Q10_1``."""
    start = pattern.partition("*")[0]
    if not start[-1:].isdecimal():
        return
    here = [name for name in found if name.startswith(start)]
    longer = [name for name in here if name[len(start) :][:1].isdecimal()]
    others = [name for name in here if name not in longer]
    if longer and others:
        raise RankingsError(
            f"{grid.name}: {pattern!r} takes {others[0]!r} and {longer[0]!r}, which seem to be of "
            f"two questions; write a longer beginning, such as '{others[0][: len(start) + 1]}*'"
        )


def _glob(pattern: str) -> re.Pattern:
    """Return a pattern of the shell, in which brackets stand for themselves."""
    parts = (".*" if x == "*" else "." if x == "?" else re.escape(x) for x in pattern)
    return re.compile("".join(parts), re.DOTALL)


def name_columns(labels: Sequence[str], patterns: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Return what is left of headers without their common beginning and end.

    They are cut where an item may begin and end, or where a pattern has a ``*``.

    :param taken: names that no column may get.
    """
    if len(labels) < 2:
        return list(labels)
    starts, others = {len(x.partition("*")[0]) for x in patterns if "*" in x}, set(taken)
    first, same = min(labels), _num_common(labels)
    cuts = [k for k in range(same, 0, -1) if k in starts or _BEFORE_ITEM.search(first[:k])]
    for cut in [*cuts, 0]:
        rest = [label[cut:] for label in labels]
        turned = [x[::-1] for x in rest]
        end = turned[0][: _num_common(turned)][::-1]
        for k in range(len(end) + 1):
            if k < len(end) and not _AFTER_ITEM.match(end[k:]):
                continue
            names = [x[: len(x) - (len(end) - k)].strip() for x in rest]
            if cut:
                names = [x.lstrip("_:. ") for x in names]
            if (
                all(names)
                and len(set(names)) == len(names)
                and not others & set(names)
                and all(map(_has_pairs, names))
            ):
                return names
    return list(labels)


def common_text(labels: Sequence[str]) -> str:
    """Return what all headers begin and end with."""
    turned = [x[::-1] for x in labels]
    begin, end = _num_common(labels), _num_common(turned)
    return f"{labels[0][:begin]} {labels[0][len(labels[0]) - end :]}"


def _num_common(texts: Sequence[str]) -> int:
    """Return how many letters at their beginning all texts have in common."""
    low, high = min(texts), max(texts)
    differs = (k for k, (x, y) in enumerate(zip(low, high, strict=False)) if x != y)
    return next(differs, len(low))


def _has_pairs(text: str) -> bool:
    """Return whether each bracket of a text is closed."""
    return all(text.count(x) == text.count(y) for x, y in ("[]", "()"))


def in_order_of_ranks(names: Sequence[str]) -> list[int] | None:
    """Return the order of columns that are called 1st, 2nd, …; None if they are not."""
    ranks = [rank_in_words(name) for name in names]
    numbers = [rank[0] for rank in ranks if rank is not None]
    if len(set(numbers)) < len(names):
        return None
    return sorted(range(len(names)), key=numbers.__getitem__)


def in_order_of_numbers(names: Sequence[str]) -> list[int] | None:
    """Return the order of columns that differ in a number only, such as top3 and top2, or None."""
    found = [_WITH_NUMBER.fullmatch(name) for name in names]
    texts = {(x[1], x[3]) for x in found if x is not None}
    numbers = [int(x[2]) for x in found if x is not None]
    if len(texts) != 1 or len(set(numbers)) < len(names):
        return None
    return sorted(range(len(names)), key=numbers.__getitem__)


def _refuse_worst_first(grid: Grid, names: Sequence[str]) -> None:
    """Refuse columns of places that begin with the worst, or are the best and the worst only."""
    worst = [name for name in names if _WORST.search(name.replace("_", " "))]
    best = [name for name in names if _BEST.search(name.replace("_", " "))]
    if len(worst) != 1 or len(best) != 1 or in_order_of_ranks(names) is not None:
        return
    if len(names) == 2:
        raise RankingsError(
            f"{grid.name}: the columns {best[0]!r} and {worst[0]!r} say the best and the worst, "
            "and nothing of what is between; to read the first choices only, add "
            f"{option('columns', best[0])}"
        )
    if names.index(worst[0]) < names.index(best[0]):
        raise RankingsError(
            f"{grid.name}: the column {worst[0]!r} comes before {best[0]!r}; the layout orders has "
            "the best first: turn the order of the columns round in the file"
        )


def say_which(columns: Sequence[str], names: Sequence[str], left_out: int, layout: str) -> str:
    """Return the note that says which columns were taken, and for what."""
    what = {"ranks": "the items", "orders": "the places", "cell": "the list"}[layout]
    shown = _list([shorten(x, _LENGTH) for x in columns], 3)
    is_new = layout != "cell" and list(names) != list(columns)
    told = f" {_list([shorten(x, _LENGTH) for x in names], 12)}" if is_new else ""
    rest = f"; {left_out} other column{'s are' if left_out > 1 else ' is'} left out"
    verb = "are" if len(columns) > 1 else "has"
    return f"{shown} {verb} {what}{told}{rest if left_out else ''}"


def _list(names: Sequence[str], most: int = _SHOWN) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


# ---------------------------------------------------------------------------------------------
# Rows whose cells have slid to a side
# ---------------------------------------------------------------------------------------------


def refuse_slid_rows(grid: Grid, question: Sequence[int], layout: str) -> None:
    """Refuse a row whose answers are one column to the left or right of those of the question.

    Such a row has an answer in a column beside the question that has other texts in most rows, and
    its answers are a ranking if they are read from there.
    """
    if list(question) != list(range(question[0], question[0] + len(question))):
        return
    last = question[-1]
    for beside, at_end, way in ((question[0] - 1, last, "left"), (last + 1, question[0], "right")):
        if not 0 <= beside < len(grid.cells):
            continue
        column, end = grid.cells[beside], grid.cells[at_end]
        shifted = [beside, *question[:-1]] if way == "left" else [*question[1:], beside]
        answers = {x for k in question for x in grid.cells[k].values if x}
        if layout == "ranks":
            answers = {str(k) for k in range(1, len(question) + 1)}
        has_answer = np.array([_plain(x) in answers for x in column.values])[column.codes]
        is_like = has_answer
        if layout == "ranks":
            is_like = np.array([_plain(x).isdecimal() for x in column.values])[column.codes]
        num_others = (~is_like & ~column.is_blank()).sum()
        # the column beside is one of other texts, in which an answer is rare
        if 2 * num_others <= len(is_like) or is_like.sum() > max(3, _RARE * len(is_like)):
            continue
        if layout != "ranks" and end.is_blank().sum() > has_answer.sum():
            continue
        for row in np.flatnonzero(has_answer).tolist():
            texts = [_plain(grid.cells[k].text(row)) for k in shifted]
            listed = [x for x in texts if x]
            here = [_plain(grid.cells[k].text(row)) for k in question]
            if layout == "ranks":
                expected = sorted(str(k) for k in range(1, len(listed) + 1))
                is_ranking = sorted(listed) == expected and sorted(here) != expected
            else:
                is_ranking = len(set(listed)) == len(listed) and answers.issuperset(listed)
            if is_ranking and len(listed) > 1 and (not end.text(row) or len(listed) == len(here)):
                raise RankingsError(
                    f"{grid.where(row)}: the cells seem to have slid one column to the {way}: "
                    f"{column.name!r} is {column.text(row)!r}, and {end.name!r} is "
                    f"{end.text(row) or 'empty'!r}; move them back in the file"
                )


def _plain(text: str) -> str:
    """Return a rank in digits, and other texts as they are."""
    number = whole_number(text)
    if number is None and (rank := rank_in_words(text)) is not None:
        number = rank[0]
    return text if number is None else str(number)


def renamed(cells: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """Return columns under other names."""
    return [cell._replace(name=name) for cell, name in zip(cells, names, strict=True)]
