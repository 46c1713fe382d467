"""Comparisons of two items: which of them is preferred, as a column of outcomes says it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.readers.answers import CODES
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.readers.headers import common_end, common_start
from numpyro_rankings.readers.votes import letters
from numpyro_rankings.words.options import option

FIRST, SECOND, TIE = 0, 1, 2
# letters of words for a tie
TIES = set(
    "tie tied draw drawn both equal equallygood bothequal bothgood bothbad same thesame neither "
    "tiebothbad nopreference nodifference indifferent".split()
)
_GAMES = {"1/2-1/2": TIE, "½-½": TIE, "1/2": TIE}
_SCORE = {"1": FIRST, "0": SECOND, "0.5": TIE, "0,5": TIE, "½": TIE, "1/2": TIE}
_NUMBERS = {"1": FIRST, "2": SECOND, "0": TIE, "x": TIE}
_HOME = {"h": FIRST, "home": FIRST, "a": SECOND, "away": SECOND, "d": TIE}
_LETTERS = {"a": FIRST, "b": SECOND}
_OF_HOME = re.compile(r"home|away|host|visit|guest")
_WORDS = {
    **dict.fromkeys(("w", "win", "won"), FIRST),
    **dict.fromkeys(("l", "loss", "lost", "lose"), SECOND),
    **dict.fromkeys(("d", "t"), TIE),
}
_POINTS = re.compile(r"(\d+(?:[.,]\d+)?)[-–:](\d+(?:[.,]\d+)?)")  # such as 3-1
_SIGNED = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
# what a spreadsheet makes of a score such as 2-1
_DATE = re.compile(
    r"\d{1,2}[-./ ]+[^\W\d_]{3,4}\.?|[^\W\d_]{3,4}\.?[-./ ]+\d{1,2}|\d{4}-\d\d-\d\d.*"
)
_OF_MARGINS = re.compile(r"score|result|outcome|margin|diff|spread")
_OF_AMOUNTS = re.compile(
    r"score|margin|diff|spread|points?|rating|strength|scale|degree|intensity|slider"
)
_OF_SCORES = re.compile(r"result|score|win(?!ner|ning)|won|point|outcome")


def refuse_pairs_of_one(
    grid: Grid, pairs: np.ndarray, items: Sequence[str], remedy: str = ""
) -> None:
    """Refuse rows that compare an item with itself; **pairs** are those of the rows, (rows, 2)."""
    if len(rows := np.flatnonzero(pairs[:, 0] == pairs[:, 1])):
        raise RankingsError(
            f"{grid.where(rows[0])}: compares item {items[pairs[rows[0], 0]]!r} with itself"
            f"{grid.also(rows)}; correct the names, or leave such lines out{remedy}"
        )


def read_outcomes(
    grid: Grid,
    outcome: Column,
    sides: tuple[str, str],
    pairs: np.ndarray,
    items: Sequence[str],
    remedy: Callable[[list[str], bool], str],
    highest_first: bool | None = None,
) -> tuple[np.ndarray, list[str]]:
    """Return which of two items is preferred, 0 or 1, or 2 for a tie, (rows,), and what texts mean.

    An outcome is the name of an item, or a word or number that means the same in all rows.

    :param grid: the rows, for messages.
    :param sides: the names of the columns of the two items.
    :param pairs: (rows, 2) the items.
    :param remedy: what to do about rows with texts that mean nothing, and whether this is likely.
    :param highest_first: of numbers 1 and 0, whether 1 means that the first item is preferred.
    """
    if highest_first is not None:
        return _said_by_numbers(grid, outcome, sides, highest_first)
    index = {name: k for k, name in enumerate(items)}
    if "0" not in index and are_0_and_1(outcome):  # then 1 is no item
        index = {}
    for text in outcome.values:
        if text in index and (text in sides or letters(text) in TIES):
            raise RankingsError(
                f"{text!r} in the column {outcome.name!r} can be an item or not: rename the item"
            )
    named = outcome.mapped(lambda text: index.get(text, -1))
    said = np.select([named == pairs[:, 0], named == pairs[:, 1]], [FIRST, SECOND], -1)
    is_open = said < 0
    if not is_open.any():
        return said, []
    first, second = sides
    for k in np.flatnonzero(is_open & (named >= 0))[:1]:
        one, two = (items[x] for x in pairs[k])
        if are_0_and_1(outcome):
            _ask_what_0_means(grid, outcome, sides)
        raise RankingsError(
            f"{grid.at(k, outcome)}: {outcome.text(k)[:40]!r} is an item, but not one of the two, "
            f"{one!r} and {two!r}; if it is a word for the outcome, write {first!r}, {second!r} or "
            "tie instead"
        )
    if is_open.all():
        refuse_scale(grid, outcome, sides)
    counts = outcome.keep(is_open).counts()
    meaning = _meanings(grid, outcome, sides, counts, {x.casefold() for x in items})
    said = np.where(is_open, outcome.mapped(lambda text: meaning.get(text, -1)), said)
    words = {FIRST: repr(first), SECOND: repr(second), TIE: "a tie"}
    shown = [f"{text!r} is {words[x]}" for text, x in meaning.items() if text not in sides]
    if len(rows := np.flatnonzero(said < 0)):
        k, unknown = int(rows[0]), [text for text in counts if text not in meaning]
        one, two = (items[x] for x in pairs[k])
        known = f" ({names_shown(shown)})" if shown else ""
        are_few, are_dates = 2 * len(rows) <= len(said), any(map(_DATE.fullmatch, unknown))
        dates = "; a spreadsheet makes dates of scores such as 2-1: write them as 2:1" * are_dates
        others = f" (also {names_counted([repr(x[:40]) for x in unknown[1:]])})" * bool(unknown[1:])
        raise RankingsError(
            f"{grid.at(k, outcome)}: {outcome.text(k)[:40]!r} does not say which of {one!r} and "
            f"{two!r} is preferred{grid.also(rows)}{others}; expected one of these, {first!r}, "
            f"{second!r} or tie{known}; {remedy(unknown, are_few and not are_dates)}{dates}"
        )
    return said, shown


def _meanings(
    grid: Grid,
    outcome: Column,
    sides: tuple[str, str],
    counts: Mapping[str, int],
    items: set[str],
) -> dict[str, int]:
    """Return what texts mean, in the first way in which most rows have a meaning.

    Words for home and away, and numbers, mean nothing where **items** are called so.
    """
    keys = {text: re.sub(r"\s", "", text.casefold()) for text in counts}
    ties = {text for text in counts if letters(text) in TIES or keys[text] == "="}
    score = {key for text, key in keys.items() if text not in ties}
    if score <= {"0", "1"} and "0" in score and not _OF_SCORES.search(letters(outcome.name)):
        _ask_what_0_means(grid, outcome, sides)
    if are_margins(outcome.name, score):
        margins = {x: float(keys[x].replace(",", ".")) for x in counts if x not in ties}
        return dict.fromkeys(ties, TIE) | {x: int(of_numbers(y, 0)) for x, y in margins.items()}
    home = _HOME
    if letters(sides[1]).startswith("home"):
        home = _HOME | {"h": SECOND, "home": SECOND, "a": FIRST, "away": FIRST}
    # A is the away team beside H or D, or of columns called so; elsewhere it is the first item
    is_away = not score.isdisjoint({"h", "home", "away"}) or ("b" not in score and "d" in score)
    if not is_away and not any(_OF_HOME.search(letters(x)) for x in sides):
        home = _LETTERS
    best: dict[str, int] = {}
    of_items = [known for known in (_NUMBERS, home) if not items & known.keys()]
    for known in (_sides(*sides), _GAMES, _SCORE, *of_items, _WORDS):
        codes = {
            text: TIE if text in ties else known.get(key, _of_points(key))
            for text, key in keys.items()
        }
        # beside names of items, x and 0 alone are no ties
        has_winner = bool({FIRST, SECOND} & {*codes.values()})
        codes = {
            text: code
            for text, code in codes.items()
            if code >= 0 and (has_winner or text in ties or keys[text] == "d")
        }
        if sum(counts[x] for x in codes) > sum(counts[x] for x in best):
            best = codes
    return best


def are_0_and_1(outcome: Column) -> bool:
    """Return whether a column has the numbers 0 and 1, and nothing else."""
    return {*outcome.values} - {""} == {"0", "1"}


def ways_of_numbers(side: str) -> str:
    """Say what settles which of two items 1 and 0 mean; **side** is the column of the first."""
    return (
        f"{option('highest_first', True, False)} if 1 means that {side!r} is preferred, or "
        f"{option('highest_first', False, False)} if 0 does"
    )


def _ask_what_0_means(grid: Grid, outcome: Column, sides: tuple[str, str]) -> NoReturn:
    text = next(x for x in outcome.values if re.sub(r"\s", "", x) == "0")
    raise RankingsError(
        f"{grid.at_text(outcome, text)}: does 0 in {outcome.name!r} mean that {sides[0]!r} is "
        f"preferred, or {sides[1]!r}? Add {ways_of_numbers(sides[0])}, or write the name of the "
        "column, or of the item, instead"
    )


def _said_by_numbers(
    grid: Grid, outcome: Column, sides: tuple[str, str], highest_first: bool
) -> tuple[np.ndarray, list[str]]:
    """Return which item is preferred by numbers 1 and 0, or a tie by 0.5, and what they mean."""
    if odd := [x for x in outcome.values if x not in _SCORE]:
        raise RankingsError(
            f"{grid.at_text(outcome, odd[0])}: {option('highest_first', highest_first)} says which "
            f"item is preferred by 1 and 0, got {odd[0][:40]!r}"
        )
    swapped = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}
    meaning = {x: k if highest_first else swapped[k] for x, k in _SCORE.items()}
    words = {FIRST: repr(sides[0]), SECOND: repr(sides[1]), TIE: "a tie"}
    shown = [f"{text!r} is {words[meaning[text]]}" for text in outcome.values]
    return outcome.mapped(meaning.__getitem__), shown


def refuse_scale(grid: Grid, outcome: Column, sides: tuple[str, str]) -> None:
    """Refuse numbers that say how much one of two items is preferred, such as 1 to 5.

    Nothing says which of the items the high ones prefer, nor where the middle is.
    """
    numbers = {number_of(text) for text in outcome.values if text}
    is_amount = _OF_AMOUNTS.search(letters(outcome.name)) is not None
    if not numbers or any(np.isnan(x) for x in numbers) or numbers <= {0, 0.5, 1}:
        return
    if not is_amount and numbers - CODES <= {0, 1, 2}:
        return
    high = max(numbers)
    text = next(x for x in outcome.values if x and number_of(x) == high)
    raise RankingsError(
        f"{grid.at_text(outcome, text)}: the numbers in {outcome.name!r}, from {min(numbers):g} to "
        f"{high:g}, seem to say how much one of two items is preferred, and not which: write "
        f"{sides[0]!r}, {sides[1]!r} or tie instead, or into a column called score numbers above "
        f"0 where {sides[0]!r} is preferred, below 0 where {sides[1]!r} is, and 0 for a tie"
    )


def are_margins(name: str, texts: Iterable[str]) -> bool:
    """Return whether a column is called as that of a margin, and has numbers of both signs."""
    said = [x for x in texts if x]
    has_sign = any(x.startswith("-") for x in said) and _OF_MARGINS.search(letters(name))
    return bool(has_sign) and all(map(_SIGNED.fullmatch, said))


def _sides(first: str, second: str) -> dict[str, int]:
    """Return the words for the columns: their names, what differs in these, and its letter."""
    names = [re.sub(r"\s", "", name.casefold()) for name in (first, second)]
    first, second = letters(first), letters(second)
    start = len(common_start([first, second]))
    end = len(common_end([first[start:], second[start:]]))
    shorts = [x[start : len(x) - end] for x in (first, second)]
    sides: dict[str, int] = {}
    for words in (names, (first, second), shorts, [x[:1] for x in shorts]):
        if all(words) and words[0] != words[1]:
            sides |= {word: k for k, word in enumerate(words) if word not in sides}
    return {"d": TIE, **sides}


def _of_points(text: str) -> int:
    """Return who has more of the points in a text such as 3-1; -1 if it is none."""
    match = _POINTS.fullmatch(text)
    return -1 if match is None else int(of_numbers(*map(number_of, match.groups())))


def of_numbers(one: float | np.ndarray, two: float | np.ndarray) -> np.ndarray:
    """Return who has the higher number: 0 or 1, or 2 for a tie; -1 where one is missing."""
    return np.select([one > two, one < two, one == two], [FIRST, SECOND, TIE], -1)


def number_of(text: str) -> float:
    """Return the number that a text is, with a point or a comma; NaN if it is none."""
    is_number = re.fullmatch(r"\d{1,9}(?:[.,]\d{1,6})?", text)
    return float(text.replace(",", ".")) if is_number else np.nan
