"""By how much winners have won: a column beside those of the winner and the loser."""

import re
from collections.abc import Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import NUMBER
from numpyro_rankings.readers.grids import Grid
from numpyro_rankings.readers.outcomes import number_of
from numpyro_rankings.readers.votes import letters
from numpyro_rankings.words.options import option

# letters of names of such columns
_OF_MARGINS = re.compile(
    r"(?:winning|goal|point|score)?(?:margin|difference|diff|spread)s?|(?:won)?by|"
    r"(?:final|game|match)?(?:goals?|scores?|points?|pts|results?)|strength"
)
_OF_SCORES = re.compile(r"(.+?)(?:goals?|scores?|points?|pts)")
_POINTS = re.compile(r"(\d+(?:[.,]\d+)?)\s*[-–:]\s*(\d+(?:[.,]\d+)?)")  # such as 3-1


def columns_of_margins(
    grid: Grid, winner: str, loser: str, others: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """Return the columns that say by how much winners have won, and the numbers.

    That is one column of margins, or of scores such as 2-1, or two with what each has scored. The
    numbers, (rows,), are NaN where nothing is said.
    """
    for name in others:
        texts = {*grid.column(name).values} - {""}
        is_named = texts and _OF_MARGINS.fullmatch(letters(name))
        if is_named and all(NUMBER.fullmatch(x) or _POINTS.fullmatch(x) for x in texts):
            return [name], grid.column(name).mapped(_margin, float)
    of_side = {m[1]: x for x in others if (m := _OF_SCORES.fullmatch(letters(x)))}
    for one, two in ((letters(winner), letters(loser)), (letters(winner)[:1], letters(loser)[:1])):
        if one in of_side and two in of_side and one != two:
            both = [of_side[one], of_side[two]]
            scored = [grid.column(x).mapped(number_of, float) for x in both]
            return both, scored[0] - scored[1]
    return [], np.full(len(grid.numbers), np.nan)


def _margin(text: str) -> float:
    """Return a margin, or that of a score such as 3-1, in which either may come first."""
    if (match := _POINTS.fullmatch(text)) is not None:
        return abs(number_of(match[1]) - number_of(match[2]))
    return float(text.replace(",", ".")) if text else np.nan


def refuse_margins(grid: Grid, columns: tuple[str, str], others: Sequence[str]) -> list[str]:
    """Refuse margins below 0, and return the columns of the margins.

    :param columns: those of the winner and the loser, and **others** those beside them.
    """
    margins, numbers = columns_of_margins(grid, *columns, others)
    leave = option("columns", [*columns], False)
    shown = " and ".join(map(repr, margins))
    if len(wrong := np.flatnonzero(numbers < 0)):
        raise RankingsError(
            f"{grid.where(wrong[0])}: by {shown} the item in {columns[1]!r} has won"
            f"{grid.also(wrong)}: exchange the names, or correct the number; {leave} leaves "
            f"{shown} out"
        )
    return margins


def refuse_draws(grid: Grid, columns: tuple[str, str], others: Sequence[str]) -> None:
    """Refuse margins of 0, which may be ties."""
    margins, numbers = columns_of_margins(grid, *columns, others)
    if len(ties := np.flatnonzero(numbers == 0)):
        shown = " and ".join(map(repr, margins))
        read = option("columns", [*columns, *margins])
        leave = option("columns", [*columns], False)
        raise RankingsError(
            f"{grid.where(ties[0])}: by {shown} nobody has won{grid.also(ties)}: {read} reads ties "
            f"there, and {leave} leaves {shown} out"
        )
