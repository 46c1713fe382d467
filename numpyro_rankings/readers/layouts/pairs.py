"""A row for each comparison of two items: the one that was preferred, and the other one."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.rankings.preferences import closure, cycle_in_words, table_of_pairs
from numpyro_rankings.readers.answers import refuse_missing_items
from numpyro_rankings.readers.grids import Column, Grid, first_places, table_of
from numpyro_rankings.readers.headers import Table, common_end, common_start
from numpyro_rankings.readers.layouts.base import Layout
from numpyro_rankings.readers.layouts.long import refuse_several_texts
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.other_questions import columns_of_pairs
from numpyro_rankings.readers.questions import Question, QuestionSpec, meaning_of_header
from numpyro_rankings.readers.votes import letters
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_FIRST, _SECOND, _TIE = 0, 1, 2
_TIES = dict.fromkeys(
    "tie draw drawn both equal same neither tie(bothbad) bothbad nopreference =".split(), _TIE
)
_GAMES = {"1/2-1/2": _TIE, "½-½": _TIE, "1/2": _TIE}
_SCORE = {"1": _FIRST, "0": _SECOND, "0.5": _TIE, "0,5": _TIE, "½": _TIE, "1/2": _TIE}
_NUMBERS = {"1": _FIRST, "2": _SECOND, "0": _TIE, "x": _TIE}
_WORDS = {
    **dict.fromkeys(("w", "win", "won"), _FIRST),
    **dict.fromkeys(("l", "loss", "lost", "lose"), _SECOND),
    **dict.fromkeys(("d", "t"), _TIE),
}
_POINTS = re.compile(r"(\d+(?:[.,]\d+)?)[-–:](\d+(?:[.,]\d+)?)")  # such as 3-1
_OF_OUTCOMES = {"draw", "drawn", "tie", "tied", "isdraw", "istie", "result", "outcome"}
_OF_ONE = re.compile(r"(?:goals?|scores?|points?)$")
_OF_SCORES = re.compile(r"result|score|win(?!ner|ning)|won|point|outcome")


class Pairs(Layout):
    """A row for each comparison; the question is two items, and which of them is preferred."""

    name = "pairs"
    has_pairs = True

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Columns are named winner and loser, or the like."""
        names = [table.grid.columns[k] for k in picked]
        return "names of the columns" if columns_of_pairs(table.grid, names) else ""

    def find_columns(
        self, table: Table, picked: Sequence[int], spec: QuestionSpec
    ) -> tuple[Sequence[int], QuestionSpec, list[str]]:
        """Find the columns of the items, and of the outcome if there is one."""
        super().find_columns(table, picked, spec)
        grid = table.grid
        names = [grid.columns[k] for k in picked]
        found = columns_of_pairs(grid, names)
        if found is not None:
            columns = [*found.items, *([] if found.outcome is None else [found.outcome])]
        elif len(names) == 2 or (len(names) == 3 and spec.patterns):
            columns = names
        else:
            raise RankingsError(
                f"{grid.header_place}: which columns are the pairs? Name that of the preferred "
                f"item and that of the other one with {option('columns')}, or those of the two "
                f"items and of the outcome; the columns are {names_shown(list(map(repr, names)))}"
            )
        others = [name for name in names if name not in columns]
        _check_others(grid, columns, others)
        notes = [f"the pairs are in the columns {names_shown(list(map(repr, columns)))}"]
        if others:
            notes.append(f"columns left out: {names_counted(list(map(repr, others)))}")
        judge = next((x for x in others if meaning_of_header(grid.column(x), spec) == "judge"), "")
        if judge:
            notes.append(
                "each line is read as a judge of its own: use "
                f"{option('judge', judge)} if {judge!r} names the judges"
            )
        return [grid.columns.index(name) for name in columns], spec, notes

    def one_answer_each(
        self, grid: Grid, picked: Sequence[int], spec: QuestionSpec
    ) -> tuple[Grid, list[str]]:
        """Keep all rows: a judge has one for each comparison."""
        if spec.duplicates is not None:
            raise RankingsError("duplicates does not go with pairs, of which a judge has several")
        return grid, []

    def name_columns(self, question: Question) -> Question:
        """Keep the names: the items are in rows."""
        return question

    def read_cells(self, question: Question) -> Question:
        """Read the names of the items."""
        question = super().read_cells(question)
        refuse_missing_items(question.grid, question.columns[:2], set(question.spec.items or ()))
        return question

    def lists(self, question: Question) -> Lists:
        """Put the pairs of each judge together, with all that follows from them."""
        grid, spec = question.grid, question.spec
        is_whole = ~np.logical_or.reduce([x.is_blank() for x in question.columns])
        lines = np.flatnonzero(is_whole)
        if not len(lines):
            raise RankingsError(f"{grid.name}: there are no comparisons")
        items, pairs = _items(grid, question.columns[:2], lines, spec)
        said, notes = np.zeros(len(lines), int), []
        if len(lines) < len(is_whole):
            left_out = [grid.where(row) for row in np.flatnonzero(~is_whole)[:6].tolist()]
            number = plural(len(is_whole) - len(lines), "line")
            notes.append(f"{number} with an empty cell left out: {names_shown(left_out)}")
        if len(question.columns) == 3:
            said, about_outcome = _outcomes(question, lines, items, pairs)
            notes += about_outcome
        is_kept, about_ties = _settle_ties(grid, said == _TIE, spec)
        lines, said = lines[is_kept], said[is_kept]
        pairs = np.where((said == _SECOND)[:, None], pairs[is_kept][:, ::-1], pairs[is_kept])
        rows, first, where = _judges(question, lines)
        if spec.judge is not None:
            notes.append(f"comparisons: {len(lines):,} by {plural(len(first), 'judge')}")
        table, direct = table_of_pairs(rows, pairs, said != _TIE, len(items))
        above, is_left, about_cycles = _closed(direct, table, items, where, spec)
        lists = Lists(
            items,
            table,
            first,
            where,
            0,
            notes=(*notes, *about_ties, *about_cycles),
            above=above,
        )
        return lists if is_left.all() else lists.take(np.flatnonzero(is_left))


def _check_others(grid: Grid, columns: Sequence[str], others: Sequence[str]) -> None:
    """Refuse pairs whose outcome is in another column, or is what one of the two scored."""
    first, second, *rest = map(letters, columns)
    if rest and _OF_ONE.search(rest[0]) and rest[0].startswith((first, second)):
        raise RankingsError(
            f"{grid.header_place}: {columns[2]!r} is what one of the two scored; write the winner "
            "into a column, by its name, or tie"
        )
    for name in [] if rest else others:
        if letters(name) in _OF_OUTCOMES:
            three = ",".join((*columns, name))
            raise RankingsError(
                f"{grid.header_place}: does the column {name!r} say which comparisons are ties? "
                f"Write tie, or the preferred item, into it, and use {option('columns', three)}; "
                f"{option('columns', ','.join(columns))} leaves {name!r} out"
            )


def _items(
    grid: Grid, columns: Sequence[Column], lines: np.ndarray, spec: QuestionSpec
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the items, and the two of each line, (lines, 2)."""
    first = first_places([x.keep(lines) for x in columns])
    found = sorted((text for text in first if text), key=first.__getitem__)
    items = tuple(found) if spec.items is None else spec.items
    index = {name: k for k, name in enumerate(items)}
    pairs = table_of(columns, lambda text: index.get(text, -1))[lines]
    for k, side in np.argwhere(pairs < 0)[:1].tolist():
        raise RankingsError(
            f"{grid.at(lines[k], columns[side])}: there is no item "
            f"{columns[side].text(lines[k])[:40]!r}; expected {names_shown(list(items))}"
        )
    for k in np.flatnonzero(pairs[:, 0] == pairs[:, 1])[:1]:
        raise RankingsError(f"{grid.where(lines[k])}: compares {items[pairs[k, 0]]!r} with itself")
    return items, pairs


def _judges(
    question: Question, lines: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Callable[[int], str]]:
    """Return the judge of each line, the row with what is known of each judge, and their names."""
    grid, spec = question.grid, question.spec
    if spec.judge is None:
        return np.arange(len(lines)), lines, lambda k: grid.where(int(lines[k]))
    judge = grid.column(spec.judge).keep(lines)
    if (blank := judge.is_blank()).any():
        row = int(lines[np.argmax(blank)])
        raise RankingsError(f"{grid.at(row, judge)} is empty: who is it?")
    refuse_several_texts(question._replace(grid=grid.keep(lines)), judge, judge.first_rows())
    return (
        judge.codes.astype(np.int64),
        lines[judge.first_rows()],
        lambda k: f"{grid.name}: judge {judge.values[k]!r}",
    )


def _settle_ties(
    grid: Grid, is_tie: np.ndarray, spec: QuestionSpec
) -> tuple[np.ndarray, list[str]]:
    """Return which comparisons are kept, (lines,), and what is said of ties."""
    every = np.ones(len(is_tie), bool)
    if not is_tie.any():
        return every, []
    drop = option("ties", "drop")
    said = f"{int(is_tie.sum()):,} of {plural(len(is_tie), 'comparison')} are ties"
    if spec.ties == "order":
        raise RankingsError(
            f"{grid.name}: {option('ties', 'order', False)} does not go with pairs, of which "
            f"{said}; {drop} leaves them out"
        )
    if spec.ties == "drop":
        if is_tie.all():
            raise RankingsError(f"{grid.name}: all comparisons are ties: {drop} leaves none")
        return ~is_tie, [f"{said}, and are left out"]
    return every, [f"{said}, which are read as no opinion: use {drop} to leave them out"]


def _closed(
    direct: np.ndarray,
    table: np.ndarray,
    items: tuple[str, ...],
    where: Callable[[int], str],
    spec: QuestionSpec,
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return what follows from the pairs of judges, which have no cycle, and notes."""
    above = closure(direct)
    has_cycle = np.einsum("rii->ri", above).any(1)
    if not has_cycle.any():
        return above, ~has_cycle, []
    k, number = int(np.argmax(has_cycle)), int(has_cycle.sum())
    cycle = cycle_in_words(direct[k], above[k], table[k], items)
    judges = f"{number:,} of {plural(len(has_cycle), 'judge')}"
    verb = "contradicts" if number == 1 else "contradict"
    drop = option("cycles", "drop")
    if spec.cycles == "refuse":
        raise RankingsError(
            f"{where(k)}: the preferences contradict one another: {cycle}; {judges} {verb} "
            f"themselves, whom {drop} leaves out"
        )
    if has_cycle.all():
        raise RankingsError(f"{where(k)}: all judges contradict themselves: {cycle}")
    who = where(k).rpartition(": ")[2]
    left_out = "is left out" if number == 1 else "are left out"
    return above, ~has_cycle, [f"{judges} {verb} themselves, and {left_out}: {who}: {cycle}"]


# ---------------------------------------------------------------------------------------------
# The outcome
# ---------------------------------------------------------------------------------------------


def _outcomes(
    question: Question, lines: np.ndarray, items: tuple[str, ...], pairs: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return which of two items is preferred, 0 or 1, or 2 for a tie, (lines,), and notes.

    The outcome is the name of an item, or a word or number for all lines.
    """
    grid, outcome = question.grid, question.columns[2]
    index = {name: k for k, name in enumerate(items)}
    named = outcome.mapped(lambda text: index.get(text, -1))[lines]
    said = np.select([named == pairs[:, 0], named == pairs[:, 1]], [_FIRST, _SECOND], -1)
    rest = dict.fromkeys(outcome.text(row) for row in lines[said < 0].tolist())
    if not rest:
        return said, []
    first, second = question.names[:2]
    meaning = _meanings(grid, outcome, first, second, list(rest))
    for k in np.flatnonzero(said < 0):
        if named[k] >= 0:
            one, two = (items[x] for x in pairs[k])
            raise RankingsError(
                f"{grid.at(lines[k], outcome)}: {outcome.text(lines[k])[:40]!r} is an item, but "
                f"not one of the two, {one!r} and {two!r}; if it is a word for the outcome, write "
                f"{first!r}, {second!r} or tie instead"
            )
        if outcome.text(lines[k]) not in meaning:
            one, two = (items[x] for x in pairs[k])
            raise RankingsError(
                f"{grid.at(lines[k], outcome)}: {outcome.text(lines[k])[:40]!r} says of {one!r} "
                f"and {two!r} which is preferred? Expected one of these, {first!r}, {second!r} or "
                f"tie; {option('missing')} leaves a line out"
            )
    said = np.where(said < 0, outcome.mapped(lambda text: meaning.get(text, -1))[lines], said)
    words = {_FIRST: repr(first), _SECOND: repr(second), _TIE: "a tie"}
    shown = [f"{text!r} is {words[x]}" for text, x in meaning.items()]
    return said, [f"in the column {outcome.name!r} {names_shown(shown)}"]


def _meanings(
    grid: Grid, outcome: Column, first: str, second: str, texts: Sequence[str]
) -> Mapping[str, int]:
    """Return what texts mean: those of the first way in which all have a meaning, or of none."""
    keys = {text: re.sub(r"\s", "", text.casefold()) for text in texts}
    score = set(keys.values()) - _TIES.keys()
    if score <= {"0", "1"} and "0" in score and not _OF_SCORES.search(letters(outcome.name)):
        raise RankingsError(
            f"{grid.at_text(outcome, next(x for x in texts if keys[x] == '0'))}: does 0 in "
            f"{outcome.name!r} mean that {first!r} is preferred, or {second!r}? Write the name of "
            "the column, or of the item, instead"
        )
    sides = _sides(first, second)
    for known in (sides, _GAMES, _SCORE, _NUMBERS, _WORDS):
        codes = {text: {**_TIES, **known}.get(key, _of_points(key)) for text, key in keys.items()}
        if -1 not in codes.values():
            return codes
    return {text: _TIES[key] for text, key in keys.items() if key in _TIES}


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
    return {"d": _TIE, **sides}


def _of_points(text: str) -> int:
    """Return who has more of the points in a text such as 3-1; -1 if it is none."""
    match = _POINTS.fullmatch(text)
    if match is None:
        return -1
    one, two = (float(x.replace(",", ".")) for x in match.groups())
    return _TIE if one == two else _FIRST if one > two else _SECOND
