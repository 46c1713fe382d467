"""Rows whose cells have slid to a side."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import rank_in_words
from numpyro_rankings.readers.grids import Column, Grid, whole_number

_RARE = 0.01  # share of the rows that may have slid


class Answers:
    """What the cells of a question say: names of items, unless a layout has others.

    :param known: all texts that are answers.
    """

    def __init__(self, known: set[str]) -> None:
        self.known = known

    def is_like_one(self, text: str) -> bool:
        """Return whether a text of another column looks like an answer."""
        return plain_rank(text) in self.known

    def is_list(self, texts: Sequence[str], here: Sequence[str]) -> bool:
        """Return whether texts are a ranking if they are read from one column to a side."""
        return len(set(texts)) == len(texts) and self.known.issuperset(texts)

    def may_end(self, end: Column, num_beside: int) -> bool:
        """Return whether so many rows may have slid, given the last column on the other side."""
        return bool(end.is_blank().sum() <= num_beside)


class _Side(NamedTuple):
    """The column beside a question, the column at the other end of it, and those in between."""

    way: str
    beside: Column
    end: Column
    shifted: list[int]


def _sides(grid: Grid, picked: Sequence[int]) -> Iterator[_Side]:
    if list(picked) != list(range(picked[0], picked[0] + len(picked))):
        return
    first, last, cells = picked[0], picked[-1], grid.cells
    if first > 0:
        yield _Side("left", cells[first - 1], cells[last], [first - 1, *picked[:-1]])
    if last + 1 < len(cells):
        yield _Side("right", cells[last + 1], cells[first], [*picked[1:], last + 1])


def refuse_slid_rows(grid: Grid, picked: Sequence[int], answers: Answers) -> None:
    """Refuse a row whose answers are one column to the left or right of those of the question.

    Such a row has an answer in a column beside the question that has other texts in most rows, and
    its answers are a ranking if they are read from there.
    """
    for side in _sides(grid, picked):
        column, end = side.beside, side.end
        has_answer = np.array([plain_rank(x) in answers.known for x in column.values])[column.codes]
        is_like = np.array([answers.is_like_one(x) for x in column.values])[column.codes]
        num_others = (~is_like & ~column.is_blank()).sum()
        # the column beside is one of other texts, in which an answer is rare
        if 2 * num_others <= len(is_like) or is_like.sum() > max(3, _RARE * len(is_like)):
            continue
        if not answers.may_end(end, has_answer.sum()):
            continue
        for row in np.flatnonzero(has_answer).tolist():
            listed = [x for k in side.shifted if (x := plain_rank(grid.cells[k].text(row)))]
            here = [plain_rank(grid.cells[k].text(row)) for k in picked]
            is_whole = not end.text(row) or len(listed) == len(here)
            if len(listed) > 1 and is_whole and answers.is_list(listed, here):
                raise RankingsError(
                    f"{grid.where(row)}: the cells seem to have slid one column to the {side.way}: "
                    f"{column.name!r} is {column.text(row)!r}, and {end.name!r} is "
                    f"{end.text(row) or 'empty'!r}; move them back in the file"
                )


def plain_rank(text: str) -> str:
    """Return a rank in digits, and other texts as they are."""
    number = whole_number(text)
    if number is None and (rank := rank_in_words(text)) is not None:
        number = rank[0]
    return text if number is None else str(number)
