"""Tables without a header, whose first row is a ballot: recognised, and asked about."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.grids import Column, Grid, whole_number
from numpyro_rankings.readers.questions import OF_JUDGES, QuestionSpec
from numpyro_rankings.words.options import option

_LOOKED_AT = 1000  # texts of a column
_MARKS = re.compile(r"\s*(?:->|[;>|,\n→≻])\s*")  # between the items of a list in a cell


def refuse_ballot_as_header(grid: Grid, spec: QuestionSpec, source: Any) -> None:
    """Refuse a first row that looks like the rows below, unless options call columns by its names.

    It does if it has numbers where they have numbers and texts where they have texts, and most of
    its cells are also there below. Numbers 1, 2, … may be a ballot, too; in a data frame, and after
    a cell of another form than those below, they are names.
    """
    names = grid.columns
    if any(x in names and whole_number(x) is None for x in (*spec.named, *spec.patterns)):
        return
    is_numbered = any("numbers the rows" in note for note in grid.notes)
    if is_numbered or (spec.items and set(spec.items) == set(names)):
        return
    texts = [[x for x in column.values[:_LOOKED_AT] if x] for column in grid.cells]
    if not all(map(_is_like, names, texts)) or (not names[0] and not _has_numbers(texts[0])):
        return
    every = {x for of_column in texts for x in of_column}
    across = {*names[1:]}  # in a crosstable these name the rows, too, and are nowhere else
    rest = {x for of_column in texts[1:] for x in of_column}
    if len(across) > 2 and across <= {*texts[0]} and across.isdisjoint(rest):
        return
    again = [
        k
        for k, name in enumerate(names)
        if name in every and {x.casefold() for x in texts[k]} != {name.casefold()}
    ]
    has_list = any(map(_is_list_of, names, texts))
    if not has_list and len(again) < max(min(2, len(names)), sum(map(bool, names)) / 2):
        return
    numbers = [whole_number(names[k]) for k in again]
    is_frame = hasattr(source, "iloc")
    if numbers and None not in numbers and numbers == sorted(numbers, key=lambda x: x or 0):
        others = [k for k, name in enumerate(names) if name and k not in again]
        cells = [(names[k], grid.cells[k]) for k in others]
        if is_frame or not all(
            _has_form(*x) or (not spec.patterns and _may_name_judge(*x)) for x in cells
        ):
            return
    shown = names_shown([repr(x[:40]) for x in names if x], 6)
    # what two numbers are is asked next, and with names it would not be
    are_two = len(names) < 4 and sum(whole_number(x) is not None for x in names) == 2
    name = str(source).lower()
    how = f"add {option('header', 'none')} if it is a ballot"
    if is_frame:
        how = "read the file with header=None if it is a ballot"
    elif not name.endswith((".csv", ".tsv", ".txt", ".xlsx")):
        how = "write the file with names of the columns if it is a ballot"
    raise RankingsError(
        f"{grid.header_place}: the first row must name the columns, got {shown}, as in the rows "
        f"below: {how}, or {option('header_rows', 1, not are_two)} if these are "
        "names"
    )


def refuse_number_of_ballot(grid: Grid, picked: Sequence[int], spec: QuestionSpec) -> None:
    """Refuse a first column that numbers the ballots of a table without a header.

    Its numbers all differ, and do not go with those beside them, which have fewer ties alone.
    """
    of_columns = spec.judge, spec.counts, spec.weights, spec.item
    is_settled = any(of_columns) or spec.patterns or spec.ties
    if is_settled or spec.has_header or spec.is_turned or len(picked) < 3:
        return
    first, *others = (grid.cells[k] for k in picked)
    texts = [x for column in others for x in column.values if x]
    rows = len(grid.numbers)
    if len(first.values) < max(rows, 2) or not all(map(_has_numbers, ([*first.values], texts))):
        return
    cells = [[column.text(row) for column in others] for row in range(min(rows, _LOOKED_AT))]
    again = [row for row, x in enumerate(cells) if first.text(row) in x]
    tied = sum(len({*x} - {""}) < len(x) - x.count("") for x in cells)
    is_counting = [first.text(row) for row in range(len(cells))] == [
        str(row + 1) for row in range(len(cells))
    ]
    if not set(first.values).isdisjoint(texts) and not (
        again and (is_counting or len(again) > tied)
    ):
        return
    name, numbers = first.name, [whole_number(x) or 0 for x in first.values]
    are_falling = all(x > y for x, y in itertools.pairwise(numbers)) and min(numbers) > 0
    are_counts = are_falling and numbers[0] - numbers[-1] >= rows  # as the most frequent first
    raise RankingsError(
        f"{grid.where(again[0] if again else 0)}: the numbers in the first column all differ, and "
        f"do not go with those beside them: add {option('judge', name, not are_counts)} if they "
        f"number the judges, {option('count', name)} if they count them, or "
        f"{option('columns', [grid.columns[k] for k in picked])} if they are part of a ballot"
    )


def _has_numbers(texts: list[str]) -> bool:
    """Return whether most of the texts are numbers."""
    return 2 * sum(whole_number(x) is not None for x in texts) > len(texts)


def _is_like(name: str, texts: list[str]) -> bool:
    """Return whether a cell is a number if those below are, or a text if those are texts."""
    return not name or not texts or (whole_number(name) is not None) == _has_numbers(texts)


def _is_list_of(name: str, texts: list[str]) -> bool:
    """Return whether a cell is a list of what cells below are lists of, such as Ann;Bob."""
    if texts and any(x in name and all(x in text for text in texts) for x in "><≻≺"):
        return True  # names of columns rarely have it, but counts may be before each list
    parts, *below = (
        {part.strip("[](){}\"' ") for part in _MARKS.split(text)} for text in (name, *texts)
    )
    return len(parts - {""}) > 1 and parts <= {"", *itertools.chain(*below)}


def _has_form(name: str, column: Column) -> bool:
    """Return whether a cell is a number, or like one below but for its digits, as r1 and r2."""
    form = re.sub(r"\d+", "0", name)
    return "0" in form and form in {re.sub(r"\d+", "0", x) for x in column.values[:_LOOKED_AT]}


def _may_name_judge(name: str, column: Column) -> bool:
    """Return whether a text is no word for judges, and those below all differ, as names do."""
    texts = column.counts()
    return len(texts) > 1 and set(texts.values()) == {1} and OF_JUDGES.fullmatch(name) is None
