"""A row for each comparison of two items: the one that was preferred, and the other one."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.rankings.preferences import closed, table_of_pairs
from numpyro_rankings.readers.answers import refuse_missing_items
from numpyro_rankings.readers.grids import (
    Column,
    Grid,
    first_places,
    table_of,
    whole_number,
)
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.layouts.base import Layout
from numpyro_rankings.readers.layouts.long import refuse_several_texts
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.margins import columns_of_margins, refuse_draws, refuse_margins
from numpyro_rankings.readers.other_questions import (
    columns_of_games,
    columns_of_pairs,
    columns_without_outcome,
    have_winners,
    refuse_pairs_on_a_scale,
)
from numpyro_rankings.readers.outcomes import (
    FIRST,
    SECOND,
    TIE,
    are_0_and_1,
    number_of,
    of_numbers,
    read_outcomes,
    refuse_pairs_of_one,
)
from numpyro_rankings.readers.questions import (
    OF_PEOPLE,
    Question,
    QuestionSpec,
    is_called_as_counts,
    is_one_number,
    is_repeated,
    meaning_of_header,
    read_counts,
    refuse_no_judge,
)
from numpyro_rankings.readers.votes import letters
from numpyro_rankings.readers.wins import by_wins
from numpyro_rankings.words import by_number, plural
from numpyro_rankings.words.options import option

_OF_DRAWS = {"draw", "drawn", "tie", "tied", "isdraw", "istie"}
_OF_OUTCOMES = _OF_DRAWS | {"result", "outcome"}
_FLAGS = dict.fromkeys("0 no false".split(), FIRST) | dict.fromkeys("1 yes true".split(), TIE)
_OF_COUNTS = re.compile(r"(?:num(?:ber)?(?:of)?)?(?:games|matches|times|comparisons)|number")
_MOST_WRONG = 3  # one cell of so many, of a column of counts
_EACH_LINE = ", without which each line is a judge of its own"
_OF_ONE = re.compile(r"(?:goals?|scores?|points?)$")


class Pairs(Layout):
    """A row for each comparison; the question is two items, and which of them is preferred."""

    name = "pairs"
    has_pairs = True
    takes_highest_first = True

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Columns are named winner and loser, or the like; or a third has one of two names."""
        names = [table.grid.columns[k] for k in picked]
        if columns_of_pairs(table.grid, names):
            return "names of the columns"
        return "texts of the cells" if have_winners(table.grid, names) else ""

    def find_columns(
        self, table: Table, picked: Sequence[int], spec: QuestionSpec
    ) -> tuple[Sequence[int], QuestionSpec, list[str]]:
        """Find the columns of the items, and of the outcome if there is one."""
        super().find_columns(table, picked, spec)
        grid = table.grid
        names = [grid.columns[k] for k in picked]
        found = columns_of_pairs(grid, names)
        if found is not None:
            columns = found.all
            if spec.patterns and not found.outcome:  # which the option names beside the two
                columns += [x for x in names if letters(x) in _OF_OUTCOMES][:1]
            if len(columns) == 2:
                margins = refuse_margins(grid, found.items, names)
                if spec.patterns:
                    columns += margins
                else:
                    refuse_draws(grid, found.items, names)
        elif (
            len(names) == 2 or (len(names) in (3, 4) and spec.patterns) or have_winners(grid, names)
        ):
            columns = (len(names) == 4 and columns_of_games(grid, names)) or names
        else:
            refuse_pairs_on_a_scale(grid, names)
            games = columns_of_games(grid, names)
            if not games and (sides := columns_without_outcome(grid, names)):
                rest = [x for x in names if x not in sides and are_0_and_1(grid.column(x))]
                games = [*sides, *rest] if len(rest) == 1 else []
            likely = f", such as {option('columns', games)}" if games else ""
            raise RankingsError(
                f"{grid.header_place}: which columns are the pairs? Name that of the preferred "
                f"item and that of the other one with {option('columns')}, or those of the two "
                f"items and of the outcome, or of what the two scored{likely}; the columns are "
                f"{names_shown(list(map(repr, names)))}"
            )
        others = [name for name in names if name not in columns]
        _check_others(grid, columns, others)
        if not spec.patterns:
            _ask_judges(grid, columns, others, spec)
            _refuse_counts(grid, columns, others, spec)
        notes = [f"the pairs are in the columns {names_shown(list(map(repr, columns)))}"]
        if len(columns) == 4 and not (found is not None and found.are_wins):
            one, two = map(repr, columns[2:])
            notes[0] += f"; the item with more in {one} or {two} is preferred, as many are a tie, "
            notes[0] += "and each line is one game, whatever the numbers"
        if others:
            notes.append(f"columns left out: {names_counted(list(map(repr, others)))}")
        named = (grid.column(x) for x in others)
        judge = next((x.name for x in named if meaning_of_header(x, spec) == "judge"), "")
        if judge and is_repeated(grid.column(judge).codes).any():
            notes.append(
                "each line is read as a judge of its own: use "
                f"{option('judge', judge)} if {judge!r} names the judges"
            )
        return [grid.columns.index(name) for name in columns], spec, notes

    def read(
        self, table: Table, picked: Sequence[int], spec: QuestionSpec, notes: Sequence[str]
    ) -> Question:
        """Read the numbers of wins as so many comparisons, if there are such."""
        found = columns_of_pairs(table.grid, [table.grid.columns[k] for k in picked])
        if found is not None and found.are_wins:
            table, picked, spec, note = by_wins(table, picked, spec)
            notes = [*notes, note]
        return super().read(table, picked, spec, notes)

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
        never = _never_made(grid, spec) & is_whole
        lines = np.flatnonzero(is_whole & ~never)
        if not len(lines):
            raise RankingsError(f"{grid.name}: there are no comparisons")
        items, pairs = _items(grid, question.columns[:2], lines, spec)
        notes = []
        for is_out, which in ((~is_whole, "with an empty cell"), (never, f"with 0 {spec.counts}")):
            if is_out.any():
                left_out = [grid.where(row) for row in np.flatnonzero(is_out)[:6].tolist()]
                number = plural(int(is_out.sum()), "line")
                notes.append(f"{number} {which} left out: {names_shown(left_out)}")
        is_one = pairs[:, 0] == pairs[:, 1]
        if is_one.any():
            remedy = "" if is_one.all() else f", as {option('cycles', 'drop')} does"
            if spec.cycles == "refuse" or is_one.all():
                refuse_pairs_of_one(grid.keep(lines), pairs, items, remedy)
            left_out = [grid.where(row) for row in lines[is_one][:6].tolist()]
            which = f"{plural(int(is_one.sum()), 'line')} with an item against itself"
            notes.append(f"{which} left out: {names_shown(left_out)}")
            lines, pairs = lines[~is_one], pairs[~is_one]
        said, about_outcome = _outcomes(question, lines, items, pairs)
        is_kept, about_ties = _settle_ties(question, lines, said == TIE)
        lines, said = lines[is_kept], said[is_kept]
        pairs = np.where((said == SECOND)[:, None], pairs[is_kept][:, ::-1], pairs[is_kept])
        rows, first, where = _judges(question, lines)
        counts = read_counts(grid, spec.counts, first)
        if spec.cycles == "mistakes":
            _check_judge(spec)
            table, wins = table_of_pairs(rows, pairs, said != TIE, len(items), np.int32)
            notes += [_number_made(rows, counts), *about_outcome, *about_ties]
            return Lists(items, table, first, where, 0, None, tuple(notes), wins=wins)
        table, direct = table_of_pairs(rows, pairs, said != TIE, len(items))
        above, is_left, about_cycles = _without_cycles(direct, table, items, where, spec)
        if spec.judge is not None:
            notes.append(_number_made(rows, counts * is_left))
        notes += about_outcome
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
    if len(rest) == 1 and _OF_ONE.search(rest[0]) and rest[0].startswith((first, second)):
        found = columns_of_pairs(grid, grid.columns)
        both = ""
        if found is not None and len(found.all) == 4:
            both = f"name both, such as by {option('columns', found.all)}, or "
        raise RankingsError(
            f"{grid.header_place}: {columns[2]!r} is what one of the two scored; {both}write the "
            "winner into a column, by its name, or tie"
        )
    for name in [] if rest else others:
        if letters(name) in _OF_OUTCOMES:
            is_answer = letters(name) in _OF_DRAWS
            raise RankingsError(
                f"{grid.header_place}: does the column {name!r} say which comparisons are ties? "
                f"{option('columns', [*columns, name], is_answer)} reads tie, the preferred item, "
                f"or, if it is called draw, 1 or yes for a tie; {option('columns', columns)} "
                f"leaves {name!r} out"
            )


def _ask_judges(
    grid: Grid, columns: Sequence[str], others: Sequence[str], spec: QuestionSpec
) -> None:
    """Refuse to leave out a column that is called as one of judges, if some have several lines."""
    for column in map(grid.column, others):
        is_again = is_repeated(column.codes) & ~column.is_blank()
        if spec.judge is None and OF_PEOPLE.fullmatch(column.name) and is_again.any():
            raise RankingsError(
                f"{grid.header_place}: does the column {column.name!r} name the judges? If so, add "
                f"{option('judge', column.name)}, which takes together what a judge said in "
                f"several lines; {option('columns', columns, False)} reads each line as a judge of "
                "its own"
            )


def _refuse_counts(
    grid: Grid, columns: Sequence[str], others: Sequence[str], spec: QuestionSpec
) -> None:
    """Refuse to leave out a column that may say how often each comparison was made."""
    judges = np.zeros(len(grid.numbers), int)
    if spec.judge is not None:
        judges = grid.column(spec.judge).codes
    for column in map(grid.column, others if spec.counts is None else ()):
        numbers = column.mapped(lambda text: -1 if (x := whole_number(text)) is None else x, int)
        is_named = is_called_as_counts(column.name) or meaning_of_header(column, spec) == "count"
        is_named |= _OF_COUNTS.fullmatch(letters(column.name)) is not None
        wrong = np.flatnonzero(numbers < 0)
        are_numbers = _MOST_WRONG * len(wrong) <= len(numbers)
        if not (is_named and are_numbers) or (numbers == 1).all() or _are_running(numbers, judges):
            continue
        leaves = option("columns", columns, spec.judge is not None)
        often = "seems to say how often each comparison was made"
        if len(wrong) or numbers.max() < 1:
            rows = np.flatnonzero(numbers < 1)
            raise RankingsError(
                f"{grid.at(rows[0], column)}: the column {often}, but has "
                f"{repr(column.text(rows[0])[:40]) if column.text(rows[0]) else 'an empty cell'}"
                f"{grid.also(rows)}: write whole numbers from 0, and add "
                f"{option('count', column.name, False)}; {leaves} leaves the column out, so that "
                "each line counts once"
            )
        if spec.judge is not None:
            raise RankingsError(
                f"{grid.header_place}: the column {column.name!r} {often}: with {option('judge')} "
                f"each line counts once, and {leaves} leaves the column out; "
                f"{option('count', column.name, False)} takes it as the number of judges who say "
                "the same"
            )
        is_sure = not is_one_number(column)
        raise RankingsError(
            f"{grid.header_place}: does the column {column.name!r} say how often each "
            f"comparison was made? If so, add {option('count', column.name, is_sure)}; "
            f"{option('columns', columns, is_sure)} leaves it out"
        )


def _are_running(numbers: np.ndarray, judges: np.ndarray) -> bool:
    """Return whether the lines of each judge are numbered 1, 2, 3, …"""
    order = np.argsort(judges, kind="stable")
    sorted_judges = judges[order]
    places = np.arange(len(order)) - np.searchsorted(sorted_judges, sorted_judges)
    return bool((numbers[order] == places + 1).all())


def _never_made(grid: Grid, spec: QuestionSpec) -> np.ndarray:
    """Return which lines are of a comparison that was made 0 times, (rows,) bool."""
    if spec.counts is None or spec.judge is not None:
        return np.zeros(len(grid.numbers), bool)
    return grid.column(spec.counts).mapped(lambda text: whole_number(text) == 0, bool)


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
        refuse_no_judge(grid, judge, lines[blank], _EACH_LINE)
    kept = question._replace(grid=grid.keep(lines))
    refuse_several_texts(kept, judge, judge.first_rows(), _EACH_LINE)
    return (
        judge.codes.astype(np.int64),
        lines[judge.first_rows()],
        lambda k: f"{grid.name}: judge {judge.values[k]!r}",
    )


def _settle_ties(
    question: Question, lines: np.ndarray, is_tie: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return which comparisons are kept, (lines,), and what is said of ties."""
    every = np.ones(len(is_tie), bool)
    if not is_tie.any():
        return every, []
    grid, spec = question.grid, question.spec
    counts, drop = read_counts(grid, spec.counts, lines), option("ties", "drop")
    number, total = int(counts[is_tie].sum()), plural(int(counts.sum()), "comparison")
    said = f"{number:,} of {total} {by_number(number, 'is a tie', 'are ties')}"
    them, are = by_number(number, "it", "them"), by_number(number, "is", "are")
    if spec.ties == "order":
        raise RankingsError(
            f"{grid.name}: {option('ties', 'order', False)} does not go with pairs, of which "
            f"{said}; {drop} leaves {them} out"
        )
    if spec.ties == "drop":
        if is_tie.all():
            raise RankingsError(f"{grid.name}: all comparisons are ties: {drop} leaves none")
        left_out = f"and {are} left out"
        if spec.judge is not None:  # who has nothing but ties is gone with them
            codes = grid.column(spec.judge).codes[lines]
            judges, first = np.unique(codes, return_index=True)
            gone = int(counts[first[~np.isin(judges, codes[~is_tie])]].sum())
            if gone:
                who = f"{plural(gone, 'judge')} who {by_number(gone, 'has', 'have')} no others"
                left_out += f", with {who}"
        return ~is_tie, [f"{said}, {left_out}"]
    return every, [f"{said}, which {are} read as no opinion: use {drop} to leave {them} out"]


def _number_made(rows: np.ndarray, counts: np.ndarray) -> str:
    """Say how many comparisons there are, given the judge of each and how many each stands for."""
    return f"comparisons: {int(counts[rows].sum()):,} by {plural(int(counts.sum()), 'judge')}"


def _check_judge(spec: QuestionSpec) -> None:
    """Refuse to learn of mistakes where nobody can contradict himself."""
    if spec.judge is None:
        raise RankingsError(
            f"{option('cycles', 'mistakes', False)} needs the judges, by {option('judge')}: "
            "without it each line is a judge of its own, in whom nothing contradicts"
        )


def _without_cycles(
    direct: np.ndarray,
    table: np.ndarray,
    items: tuple[str, ...],
    where: Callable[[int], str],
    spec: QuestionSpec,
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return what follows from the pairs of judges, whose pairs have no cycle, and notes."""
    above, has_cycle, said = closed(direct, table, items, where)
    are_all = bool(has_cycle.all())
    if said and (spec.cycles == "refuse" or are_all):
        left = "leaves none" if are_all else "leaves such judges out"
        raise RankingsError(
            f"{said}; {option('cycles', 'drop', not are_all)} {left}, and "
            f"{option('cycles', 'mistakes', are_all)} learns how probable a mistake is"
        )
    left_out = f", and {by_number(int(has_cycle.sum()), 'is', 'are')} left out"
    return above, ~has_cycle, [f"{said.partition(': ')[2]}{left_out}"] if said else []


def _outcomes(
    question: Question, lines: np.ndarray, items: tuple[str, ...], pairs: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return which of the two items of each line is preferred, 2 for a tie, (lines,), and notes."""
    grid, (first, second, *columns) = question.grid, question.columns

    def missing(texts: list[str], is_likely: bool) -> str:
        leaves = option("missing", [*question.spec.missing, *texts], is_likely)
        return f"{leaves} leaves {by_number(len(texts), 'such a line', 'these lines')} out"

    highest_first = question.spec.highest_first
    if highest_first is not None and len(columns) != 1:
        raise RankingsError(
            f"{grid.header_place}: {option('highest_first', highest_first)} goes with a column of "
            "1 and 0, which say which of two items is preferred"
        )
    if not columns:
        return np.zeros(len(lines), int), []
    if len(columns) == 1:
        outcome, sides = columns[0].keep(lines), (first.name, second.name)
        flags = {text.casefold() for text in outcome.values}
        is_sure = columns_of_pairs(grid, sides) is not None  # which of the two is preferred
        margins, by = columns_of_margins(grid, *sides, [outcome.name])
        if is_sure and margins and highest_first is None:
            return np.where(by[lines] == 0, TIE, FIRST), [f"0 in {outcome.name!r} is a tie"]
        is_sure &= highest_first is None
        if letters(outcome.name) in _OF_DRAWS and flags <= _FLAGS.keys() and is_sure:
            note = f"in the column {outcome.name!r} 1, yes and true are a tie"
            return outcome.mapped(lambda text: _FLAGS[text.casefold()]), [note]
        said, shown = read_outcomes(
            grid.keep(lines), outcome, sides, pairs, items, missing, highest_first
        )
        notes = [f"in the column {outcome.name!r} {names_shown(shown)}"] if shown else []
        return said, notes
    numbers = [column.mapped(number_of, float)[lines] for column in columns]
    said = of_numbers(*numbers)
    if len(wrong := np.flatnonzero(said < 0)):
        column = columns[int(np.isnan(numbers[1][wrong[0]]))]
        texts = [x.text(row) for row in lines[wrong].tolist() for x in columns]
        unknown = list(dict.fromkeys(x for x in texts if np.isnan(number_of(x))))
        raise RankingsError(
            f"{grid.at(lines[wrong[0]], column)}: {unknown[0][:40]!r} is no number of goals or "
            f"points{grid.also(lines[wrong])}; "
            f"{missing(unknown, 2 * len(wrong) <= len(lines))}"
        )
    return said, []
