"""Tables that are no rankings: ticks, pairs, rows of sums, and rows that slid to a side."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.answers import NUMBER, numbers_in, numbers_of_ranks, rank_in_words
from numpyro_rankings.readers.beside import are_lists
from numpyro_rankings.readers.grids import Column, Grid, table_of, whole_number
from numpyro_rankings.readers.headers import is_called_sum
from numpyro_rankings.readers.outcomes import (
    TIES,
    are_0_and_1,
    are_margins,
    number_of,
    refuse_scale,
)
from numpyro_rankings.readers.questions import OF_JUDGES, QuestionSpec, meaning_of_header
from numpyro_rankings.readers.votes import letters
from numpyro_rankings.words.options import option

_FEWEST_PAIRS = 3  # rows, by which pairs are known
_RARE = 0.01  # share of the rows that may have slid
TICKS = set(
    "x|✓|✔|yes|true|checked|ticked|selected|y|on|no|false|unchecked|not selected".split("|")
)
# letters of the names of columns of pairs: of the one above, and of the other
_ABOVE = set(
    "winner winning won wins victor preferred chosen better selected accepted topitem".split()
)
_BELOW = set("loser losing lost losses defeated rejected worse other unchosen bottomitem".split())
_BEST_OR_WORST = set("best worst most least mostimportant leastimportant".split())
_ENDS = ("top", "bottom"), ("win", "lose")  # which may be items with numbers, too
_OUTCOMES = _ABOVE | set(
    "preference choice outcome result response label pref pick vote win".split()
)
_MARGINS = set("score margin difference diff spread".split())
_OUTCOMES |= _MARGINS
_AMOUNTS = set("rating strength scale degree intensity slider answer points".split())
_KINDS = "item|team|player|model|option|answer|response|candidate|stimulus"
_KIND = re.compile(rf"(?:{_KINDS})?(.+?)(?:{_KINDS}|name|id|code)*")  # around a word
_SIDES = {"", *"012abhdwl", "left", "right", "home", "away", "white", "black", "tie", "draw"}
_SIDES |= set("win loss 10 01 05 1212 0505 ½½ ½ x".split()) | TIES
# letters of 1-0, 0.5-0.5 and 1/2-1/2 are among these
_SCORES = re.compile(r"\d{2,4}")  # letters of 3-1 and 0.5-0.5
_SCORE = re.compile(r"\d{1,3}\s*[-–:]\s*\d{1,3}")  # what both items scored, in one cell
_HOME = ("home", "away"), ("home", "visitor"), ("home", "guest"), ("h", "a"), ("h", "v")
_OF_PAIRS = (
    ("a", "b"),
    ("1", "2"),
    ("left", "right"),
    ("i", "j"),
    ("x", "y"),
    ("white", "black"),
    *_HOME,
)
_RESULTS = ("h", "d", "a"), ("home", "draw", "away"), ("1", "x", "2")
_FORECAST = re.compile(r"^ht|half|tip|predict|forecast|odds|guess", re.I)  # no final result
# letters of what a column with the result of the whole game is called, such as FTR
_OF_RESULTS = re.compile(
    r"(?:ft|fulltime|match|game|final)?(?:r|res|results?|outcome|score|winner|1x2)"
)
_OF_RANKS = re.compile(r"(?:choice|rank|place|pref|preference|position|pos)$")
# letters around the word for a side in the name of a column with what it scored, as in FTHG
_SCORED = "goals?|scores?|scored|points?|pts|runs|sets|frames|legs|g"
_OF_POINTS = re.compile(rf"(?:ft|fulltime)?(?:(?:{_SCORED})(?:for)?(.+?)|(.+?)(?:{_SCORED}))")
# the same around the number of comparisons that a side has won
_WON = "wins?|won|victories|times(?:chosen|preferred|won)"
_OF_WINS = re.compile(rf"(?:num(?:ber)?(?:of)?)?(?:(?:{_WON})(?:for|of)?(.+?)|(.+?)(?:{_WON}))")


class ColumnsOfPairs(NamedTuple):
    """The columns of a table of which each row compares two items."""

    items: tuple[str, str]  # of the two items, of which the first is preferred without an outcome
    # the column that says which is preferred, or the two with what each scored; or none
    outcome: tuple[str, ...] = ()
    # whether these two say how many comparisons each has won
    are_wins: bool = False

    @property
    def all(self) -> list[str]:
        """All of these columns."""
        return [*self.items, *self.outcome]


def columns_of_pairs(grid: Grid, picked: Sequence[str]) -> ColumnsOfPairs | None:
    """Return the columns which say, by their names, that each row compares two items.

    :param picked: the columns that may be of the pairs.
    """
    side_of = {name: side for name in picked if (side := _side_scored(grid, name))}
    name_of = {letters(name): name for name in picked if name not in side_of}
    name_of = {m[1]: name_of[x] for x in name_of if (m := _KIND.fullmatch(x))} | name_of
    above = next((x for x in name_of if x in _ABOVE), None)
    below = next((x for x in name_of if x in _BELOW), None)
    if above and below:
        return ColumnsOfPairs((name_of[above], name_of[below]))
    for words in _ENDS:
        ends = [name_of[x] for x in words if x in name_of]
        is_alone = not any(map(rank_in_words, picked))  # else they may be two of the places
        if len(ends) == 2 and is_alone and not any(_is_of_numbers(grid.column(x)) for x in ends):
            return ColumnsOfPairs((ends[0], ends[1]))
    if (found := _names_of_pair(name_of)) is None:
        return None
    two, sides = found
    outcome = next((x for x in name_of if x in _OUTCOMES), None)
    if outcome is not None and (
        outcome in _ABOVE or _says_which(grid.column(name_of[outcome]), map(grid.column, two))
    ):
        return ColumnsOfPairs(two, (name_of[outcome],))
    for ways in (_HOME,) if sides in _HOME else ((sides,),):
        scored = [
            [x for x in side_of if side_of[x] in of_side] for of_side in zip(*ways, strict=True)
        ]
        if all(scored):
            return ColumnsOfPairs(two, (scored[0][0], scored[1][0]))
    won = {side: x for x in picked if x not in two and (side := _side_scored(grid, x, _OF_WINS))}
    if all(side in won for side in sides):
        return ColumnsOfPairs(two, (won[sides[0]], won[sides[1]]), are_wins=True)
    others = [name for name in picked if name not in two and not _FORECAST.search(name)]
    called = [x for x in others if _OF_RESULTS.fullmatch(letters(x))]
    of_results = [x for x in called or others if _has_results(grid.column(x), sides, bool(called))]
    return ColumnsOfPairs(two, (of_results[0],)) if len(of_results) == 1 else None


def _has_results(column: Column, sides: tuple[str, str], is_called: bool) -> bool:
    """Return whether all texts are results of games such as H, D and A, or 1, X and 2.

    All three are there unless the column is called as one of results: A and D may be groups.
    """
    said = {text.casefold() for text in column.values if text}
    marks = _RESULTS if sides in _HOME else _RESULTS[-1:]
    least = 2 if is_called else 3
    found = (x for x in marks if len(said) >= least and said <= set(x))
    return any(x[0] != "1" or "x" in said for x in found)


def columns_of_games(grid: Grid, picked: Sequence[str]) -> list[str]:
    """Return two columns of the same names, and what says the score, if the table has such.

    That are the only two columns of numbers, or else the only one of scores such as 2-1.
    """
    picked = [x for x in picked if x]
    of_numbers = [x for x in picked if _is_of_numbers(grid.column(x))]
    numbers = [x for x in of_numbers if not OF_JUDGES.fullmatch(x)]
    scores = [x for x in picked if all(map(_SCORE.fullmatch, {*grid.column(x).values} - {""}))]
    if len(numbers) != 2:
        numbers = [x for x in scores if any(grid.column(x).values)]
    if len(numbers) not in (1, 2) or len(numbers) == len(scores) == 2:
        return []
    others = [grid.column(x) for x in picked if x not in (*numbers, *of_numbers)]
    # ranks with codes among them are no names
    texts = [x for x in others if 2 * sum(map(str.isdigit, x.values)) < len(x.values)]
    for one, two in itertools.combinations(texts, 2):
        known = [{*x.values} - {""} for x in (one, two)]
        if 2 * len(known[0] & known[1]) >= min(map(len, known)) > 1:
            return [one.name, two.name, *numbers]
    return []


def columns_without_outcome(grid: Grid, picked: Sequence[str]) -> tuple[str, str] | None:
    """Return two columns that are called as those of two items, and share names.

    Beside them are one or two others.
    """
    found = _names_of_pair({letters(name): name for name in picked})
    two = [grid.column(x) for x in found[0]] if found is not None else []
    has_flags = any(are_0_and_1(grid.column(x)) for x in picked)  # which are no ranks
    if (
        len(picked) not in (3, 4)
        or found is None
        or (any(_is_of_numbers(x) for x in two) and (not has_flags or any(map(are_0_and_1, two))))
    ):
        return None
    names, others = ({*x.values} - {""} for x in two)
    return found[0] if names & others else None


def refuse_pairs_on_a_scale(grid: Grid, picked: Sequence[str]) -> None:
    """Refuse two items beside a number on a scale, which says how much one of them is preferred."""
    two = columns_without_outcome(grid, picked)
    for name in picked if two is not None else ():
        word = letters(name)
        if two is not None and name not in two and (word in _OUTCOMES or word in _AMOUNTS):
            refuse_scale(grid, grid.column(name), two)


def have_winners(grid: Grid, picked: Sequence[str]) -> bool:
    """Return whether the third of three columns has one of the two names beside it in all rows."""
    if len({*picked}) != 3 or len(picked) != 3 or len(grid.numbers) < _FEWEST_PAIRS:
        return False
    columns = [grid.column(name) for name in picked]
    if any(map(_is_of_numbers, sorted(columns, key=lambda x: len(x.values)))):
        return False
    codes = {text: k for k, text in enumerate({y for x in columns for y in x.values}, 1)}
    codes[""] = 0
    said = table_of(columns, codes.__getitem__)
    one, two, winner = said[said.all(1)].T
    is_whole = 2 * len(winner) > len(said)
    return is_whole and bool(((one != two) & ((winner == one) | (winner == two))).all())


def _is_of_numbers(column: Column) -> bool:
    """Return whether all texts of a column are numbers, and there are some."""
    return any(column.values) and all(number_of(x) >= 0 for x in column.values if x)


def _side_scored(grid: Grid, name: str, pattern: re.Pattern = _OF_POINTS) -> str:
    """Return the side of which a column of numbers has the goals or points; "" if it has none."""
    match = pattern.fullmatch(letters(name))
    word = _KIND.fullmatch(match[1] or match[2]) if match is not None else None
    if word is None or not any(word[1] in two for two in _OF_PAIRS):
        return ""
    texts = grid.column(name).counts()
    number = sum(k for x, k in texts.items() if number_of(x) >= 0)
    return word[1] if 2 * number >= sum(k for x, k in texts.items() if x) else ""


def _says_which(outcome: Column, items: Iterable[Column]) -> bool:
    """Return whether half of the texts of a column, or all numbers, say which is preferred."""
    if letters(outcome.name) in _MARGINS and _is_of_numbers(outcome):
        return {number_of(x) for x in outcome.values if x} <= {0, 0.5, 1}
    if are_margins(outcome.name, outcome.values):
        return True
    said = {letters(x) for column in items for x in (column.name, *column.values)} | _SIDES
    of_rows = [(letters(x), k) for x, k in outcome.counts().items() if x]
    known = sum(k for x, k in of_rows if x in said or _SCORES.fullmatch(x))
    total = sum(k for _, k in of_rows)
    return known == total if _is_of_numbers(outcome) else 2 * known >= total


def _names_of_pair(name_of: Mapping[str, str]) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Return two columns such as model_a and model_b, of which there is no third, and no rank.

    Also the words for their sides.
    """
    for word, other in _OF_PAIRS:
        for x, name in name_of.items():
            stem = x.removesuffix(word)
            third = {stem + end for end in ("c", "3", "k")}
            is_pair = x.endswith(word) and stem + other in name_of
            if is_pair and not _OF_RANKS.search(stem) and not third & name_of.keys():
                return (name, name_of[stem + other]), (word, other)
    return None


def refuse_best_and_worst(
    grid: Grid,
    picked: Sequence[str],
    spec: QuestionSpec,
    layout: str | None,
    has_ranks: Callable[[], bool],
) -> None:
    """Refuse rows that say the best and the worst of the items in the other columns.

    :param has_ranks: whether each row has the rank of an item; then such columns are left out.
    """
    of_ends = [
        [x for x in picked if re.fullmatch(word, letters(x))]
        for word in ("(?:best|most).*", "(?:worst|least).*")
    ]
    texts = {x: {*grid.column(x).values} - {"", *spec.missing} for x in picked}
    _refuse_marks_of_ends(grid, texts, spec, layout, has_ranks)
    if any(len(x) != 1 for x in of_ends) or has_ranks():
        return
    ends = [x[0] for x in of_ends]
    if layout != "ranks" and all(texts[x] in ({"0", "1"}, {"1"}) for x in ends):
        raise RankingsError(
            f"{grid.header_place}: {ends[0]!r} and {ends[1]!r} seem to mark the best and the worst "
            f"of rows that belong together: {_as_one_list('these')}; "
            f"{option('about', [*spec.about, *ends], False)} if they are about the judges"
        )
    said = texts[ends[0]] | texts[ends[1]]
    others = [x for x in picked if x not in ends and texts[x] & said]
    known = set().union(*(texts[x] for x in others))
    shown = [grid.column(x).mapped(str, object) for x in others]
    best = grid.column(ends[0]).mapped(str, object)
    # columns of places have the best in one of them only
    are_places = not any(x in row for x, *row in zip(best, *shown, strict=True))
    if len(others) > 1 and said <= known and not are_places:
        raise RankingsError(
            f"{grid.header_place}: {ends[0]!r} and {ends[1]!r} seem to say the best and the worst "
            f"of the items in {names_shown(list(map(repr, others)))}: {_as_one_list()} and "
            f"{option('items')} with all names"
        )
    stems = {re.sub("^(?:best|worst|most|least)", "", letters(x)) for x in ends}
    # comments beside ranks may have such names, too
    is_like = len(stems) == 1 and layout != "ranks" and not _have_ranks(grid, picked, spec)
    is_sure = is_like or texts[ends[0]] & texts[ends[1]]
    if others or not is_sure or any(map(rank_in_words, said)):
        return
    columns = option("columns", ends)
    asked = spec._replace(judge=None)
    of_judges = [x.name for x in grid.cells if meaning_of_header(x, asked) == "judge"]
    judge = f"{option('judge', of_judges[0])}, " if of_judges else ""
    raise RankingsError(
        f"{grid.header_place}: {ends[0]!r} and {ends[1]!r} seem to say the best and the worst of "
        f"some items: {judge}{columns} and {option('layout', 'pairs')} read that the one is "
        "preferred to the other, and nothing of the others that were shown"
    )


def _have_ranks(grid: Grid, picked: Sequence[str], spec: QuestionSpec) -> bool:
    """Return whether some of the columns have the ranks 1, 2, … once each in most rows."""
    columns = [x for x in map(grid.column, picked) if not meaning_of_header(x, spec)]
    columns = [x for x in columns if (numbers_of_ranks([x]) >= 0).all()]
    return len(columns) > 1 and bool(
        2 * are_lists(numbers_of_ranks(columns)).sum() > len(grid.numbers)
    )


def _as_one_list(what: str = "each row") -> str:
    """Say how the best and the worst of some items are written so that they are read."""
    return (
        f"write {what} as one list with the others tied in the middle, such as 'A; B & C; D', and "
        f"add {option('layout', 'cell', False)} and {option('unranked', 'not-offered', False)}"
    )


def _refuse_marks_of_ends(
    grid: Grid,
    texts: Mapping[str, set[str]],
    spec: QuestionSpec,
    layout: str | None,
    has_ranks: Callable[[], bool],
) -> None:
    """Refuse columns of items whose only texts are ``best`` and ``worst``."""
    few = {x: texts[x] for x in texts if 0 < len(texts[x]) <= len(_BEST_OR_WORST)}
    marked = [x for x in few if {*map(letters, few[x])} <= _BEST_OR_WORST]
    said = {letters(text) for x in marked for text in texts[x]}
    in_signs = [x for x in few if few[x] <= {"1", "-1", "0"}]
    rest = [x for x in texts if x not in (*marked, *in_signs)]
    rest = [x for x in rest if not any(map(NUMBER.fullmatch, texts[x]))]
    signs = [x for x in in_signs if {"1", "-1"} <= few[x]]
    in_rows = marked if len(marked) == 1 and len(said) == 2 else signs
    have_items = len(texts) > 2 and any(_may_be_item(grid.column(x)) for x in rest)
    if len(in_rows) == 1 and have_items and layout != "ranks" and not has_ranks():
        are_ranks = _have_ranks(grid, [x for x in texts if x not in in_rows], spec)
        raise RankingsError(
            f"{grid.header_place}: {in_rows[0]!r} seems to mark the best and the worst of rows "
            f"that belong together: {_as_one_list('these')}; "
            f"{option('about', [*spec.about, in_rows[0]], are_ranks)} if it is about the judges"
        )
    if len(marked) > 2 and len(said) == 2 and not has_ranks():
        raise RankingsError(
            f"{grid.header_place}: the columns {names_shown(list(map(repr, marked)))} mark the "
            f"best and the worst item of each row: {_as_one_list()}"
        )


def _may_be_item(column: Column) -> bool:
    """Return whether a column may name the item of each row: some are there several times."""
    return 1 < len({*column.values} - {""}) < len(column.codes)


def refuse_other_questions(grid: Grid, columns: Sequence[Column], spec: QuestionSpec) -> None:
    """Refuse columns of ticks, and of sums below the ranks."""
    texts = [{x for x in column.values if x} for column in columns]
    names = [column.name for column in columns]
    ticked = all(map(_is_of_ticks, texts, names)) and any(texts)
    numbers = numbers_in(columns)
    listed = (numbers > 0).sum(1)
    if ticked or (numbers.max() == 1 and numbers.min() >= 0 and (listed > 1).any()):
        is_ticked = np.stack([~column.is_blank() for column in columns], axis=1)
        _refuse_ticks(grid, columns, is_ticked.sum(1) > 1 if ticked else listed > 1)
    _refuse_ranks_from_0(grid, columns, numbers)
    _refuse_column_of_sums(grid, columns, numbers, spec)
    _refuse_ends(grid, columns)
    _refuse_sums(grid, columns, numbers)


def _refuse_ends(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse 1 for the best and -1 for the worst of the items of a row."""
    signs = {"1": 1, "-1": -1, "0": 0, "": 0}
    columns = [x for x in columns if signs.keys() >= {*x.values}]
    if len(columns) < 3:
        return
    said = table_of(columns, signs.__getitem__)
    if (((said > 0).sum(1) == 1) & ((said < 0).sum(1) == 1)).all():
        one, two = (columns[int(np.argmax(said[0] == sign))].name for sign in (1, -1))
        raise RankingsError(
            f"{grid.where(0)}: {one!r} has 1 and {two!r} has -1, as the best and the worst in each "
            f"row: {_as_one_list()}"
        )


def _refuse_column_of_sums(
    grid: Grid, columns: Sequence[Column], numbers: np.ndarray, spec: QuestionSpec
) -> None:
    """Refuse a column that is called as one of totals, and has the sums of the others."""
    if spec.patterns or spec.items is not None:
        return
    for k, column in enumerate(columns):
        if not is_called_sum(column.name):
            continue
        said = numbers[numbers[:, k] > 0]
        others = np.delete(np.maximum(said, 0), k, axis=1)
        # in few rows, only sums that are no ranks
        is_sum = 2 * len(said) >= len(numbers) or said[:, k].max(initial=0) > len(columns)
        if is_sum and (others.sum(1) == said[:, k]).all():
            whole = option("columns", [x.name for x in columns], False)
            raise RankingsError(
                f"{grid.header_place}: {column.name!r} has the sums of the other columns: add "
                f"{option('about', [*spec.about, column.name])}, so that it is no item; {whole} if "
                "it is one"
            )


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
            f"{option('missing', '0', False)} if 0 means that the item is not ranked"
        )


def refuse_ticks(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse columns of places of which each has one item only, with holes between them."""
    texts = [[x for x in column.values if x] for column in columns]
    is_blank = np.stack([column.is_blank() for column in columns], axis=1)
    has_hole = (is_blank[:, :-1] & ~is_blank[:, 1:]).any(1)
    words = {x.casefold() for of in texts for x in of}
    if len(words) == 1 and words <= TICKS and len(columns) > 1:
        _refuse_ticks(grid, columns, (~is_blank).sum(1) > 0)
    if all(len(x) == 1 for x in texts) and len({x[0] for x in texts}) > 1 and has_hole.any():
        _refuse_ticks(grid, columns, has_hole)


def _refuse_ticks(grid: Grid, columns: Sequence[Column], rows: np.ndarray) -> NoReturn:
    row = int(np.argmax(rows))
    said = [f"{x.name!r} is {x.text(row) or 'empty'!r}" for x in columns[:3]]
    raise RankingsError(
        f"{grid.where(row)}: {', '.join(said)}: the columns say which items were chosen, not in "
        f"which order; pick the columns of a ranking with {option('columns')}, or write one column "
        "for each item, with its rank"
    )


def _is_of_ticks(texts: set[str], name: str) -> bool:
    """Return whether a column says in each row that its item was chosen, or that it was not."""
    words = {x.casefold() for x in texts}
    is_name = words == {name.casefold()} and not name.isdecimal()
    return words <= TICKS or is_name or (words <= {"0", "1"} and "0" in words)


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


def refuse_slid_rows(grid: Grid, picked: Sequence[int], answers: set[str], are_ranks: bool) -> None:
    """Refuse a row whose answers are one column to the left or right of those of the question.

    Such a row has an answer in a column beside the question that has other texts in most rows, and
    its answers are a ranking if they are read from there.
    """
    first, last, cells = picked[0], picked[-1], grid.cells
    if not answers or list(picked) != list(range(first, last + 1)):
        return
    for way, k, end_at in (("left", first - 1, last), ("right", last + 1, first)):
        if not 0 <= k < len(cells):
            continue
        beside, end = cells[k], cells[end_at]
        shifted = [x for x in range(min(k, first), max(k, last) + 1) if x != end_at]
        for row in _rows_with_answers(beside, end, answers, are_ranks):
            listed = [x for j in shifted if (x := _plain_rank(cells[j].text(row)))]
            here = [_plain_rank(cells[j].text(row)) for j in picked]
            is_whole = not end.text(row) or len(listed) == len(here)
            is_list = len(set(listed)) == len(listed) > 1 and answers.issuperset(listed)
            if are_ranks:
                expected = sorted(str(rank) for rank in range(1, len(listed) + 1))
                is_list &= sorted(listed) == expected != sorted(here)
            if is_whole and is_list:
                raise RankingsError(
                    f"{grid.where(row)}: the cells seem to have slid one column to the {way}: "
                    f"{beside.name!r} is {beside.text(row)!r}, and {end.name!r} is "
                    f"{end.text(row) or 'empty'!r}; move them back in the file"
                )


def _rows_with_answers(
    beside: Column, end: Column, answers: set[str], are_ranks: bool
) -> Sequence[int]:
    """Return the rows with an answer in the column beside a question, if it has few of them.

    With names, the column at the other end of the question may not be blank more often. A column of
    other numbers beside ranks is none of other texts.
    """

    def is_answer(text: str) -> bool:
        return _plain_rank(text) in answers

    def is_number(text: str) -> bool:
        return text.isdecimal() or _plain_rank(text).isdecimal()

    is_like = beside.mapped(is_number if are_ranks else is_answer, bool)
    num_others = (~is_like & ~beside.is_blank()).sum()
    if is_like.sum() > max(3, _RARE * len(is_like)) or 2 * num_others <= len(is_like):
        return []
    has_answer = beside.mapped(is_answer, bool) if are_ranks else is_like
    if are_ranks or end.is_blank().sum() <= has_answer.sum():
        return np.flatnonzero(has_answer).tolist()
    return []


def _plain_rank(text: str) -> str:
    """Return a rank in digits, and other texts as they are."""
    number = whole_number(text)
    if number is None and (rank := rank_in_words(text)) is not None:
        number = rank[0]
    return text if number is None else str(number)
