"""A column for each item, with its rank in each row; 1 is best."""

from collections.abc import Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.answers import cells_are_ranks, numbers_of_ranks, ranks_in
from numpyro_rankings.readers.beside import refuse_races
from numpyro_rankings.readers.grids import Grid
from numpyro_rankings.readers.headers import Table, renamed
from numpyro_rankings.readers.layouts.base import Layout, Lines
from numpyro_rankings.readers.lists import Lists, are_ranks_with_ties, lists_of_ranks
from numpyro_rankings.readers.questions import Question, QuestionSpec
from numpyro_rankings.readers.rank_cells import read_ranks, refuse_rank
from numpyro_rankings.readers.votes import lists_of_ballots, notes_of_aliases, votes_of_ranks
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_FEWEST_REMARKS = 3  # different texts in a column that is no item


class Ranks(Layout):
    """A column for each item."""

    name = "ranks"
    columns_are = "the items"
    takes_rules = True
    takes_highest_first = True
    takes_offered = True
    has_names_in_cells = False
    has_item_columns = True

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Ranks in words are ranks."""
        cells = [table.grid.cells[k] for k in picked]
        are_ranks = spec.patterns and cells_are_ranks(cells, spec.missing)
        return "texts of the cells" if are_ranks else ""

    def columns_with_totals(self, grid: Grid, picked: Sequence[int]) -> Sequence[int]:
        """No cell has a name of an item."""
        return range(len(grid.cells))

    def answers(self, grid: Grid, picked: Sequence[int]) -> set[str]:
        """Return the ranks 1, 2, …, n."""
        return {str(k) for k in range(1, len(picked) + 1)}

    def name_columns(self, question: Question) -> Question:
        """Call the items by their numbers, or the names of all, if there is no header."""
        if question.spec.has_header:
            headers, columns = (question.names, question.labels), question.columns
            refuse_races(question.grid, headers, lambda: numbers_of_ranks(columns), question.spec)
            return super().name_columns(question)
        numbers = [str(k) for k in range(1, len(question.columns) + 1)]
        names = question.spec.items or numbers
        if len(names) != len(numbers):
            raise RankingsError(
                f"{question.grid.header_place}: {plural(len(names), 'name')} in "
                f"{option('items')}, but {plural(len(numbers), 'column')} of ranks"
            )
        of = names_counted(
            [f"{x} is column {y}" for x, y in zip(names, question.names, strict=True)]
        )
        is_new = list(names) != question.names
        columns = renamed(question.columns, names)
        return question.with_columns(columns, [f"the items: {of}"] if is_new else [])

    def names_of_export(self, question: Question, short: Sequence[str]) -> dict[int, str]:
        """Take the names of items from the headers, unless they are numbers or known."""
        names, items = question.names, question.spec.items
        is_known = items is not None and set(items) <= set(names)
        keeps = is_known or all(x.isdecimal() for x in short)
        return dict(enumerate(names if keeps else short))

    def read_cells(self, question: Question) -> Question:
        """Read ranks in numbers and words."""
        spec, number = question.spec, len(question.columns)
        most = None if spec.may_rank_others else number
        rows = np.arange(len(question.grid.numbers))
        return read_ranks(question, rows, number, most, is_one_question=spec.rules is None)

    def use_aliases(self, question: Question) -> Question:
        """Call the columns by the names that aliases give their items."""
        aliases = question.spec.aliases
        if not aliases:
            return question
        names: dict[str, str] = {}
        for name in question.names:
            item = aliases.get(name, name)
            if item in names.values():
                other = next(x for x, y in names.items() if y == item)
                raise RankingsError(
                    f"{question.grid.header_place}: the columns {other!r} and {name!r} are both "
                    f"the item {item!r}; a table of ranks has one column for each item"
                )
            names[name] = item
        columns = renamed(question.columns, list(names.values()))
        return question.with_columns(columns, notes_of_aliases(aliases, names))

    def lists(self, question: Question) -> Lists:
        """Sort the items by their ranks."""
        grid, spec = question.grid, question.spec
        names = _items(question)
        ranks = _ranks(question, names)
        _refuse_own_items(question, names, ranks)
        if spec.rules is not None:
            spec = spec._replace(aliases={})  # the columns have the names of the items
            return lists_of_ballots(grid, spec, votes_of_ranks(names, ranks))
        rows, items = np.nonzero(ranks)
        entries = rows, items, ranks[rows, items]
        every, means = np.arange(len(ranks)), question.have_means
        lists = lists_of_ranks(names, entries, every, grid.where, spec, means)
        if question.offered is None:
            return lists
        said = question.offered[:, [question.names.index(name) for name in names]]
        return lists.with_offered(said, not spec.is_not_offered)

    def table(self, orderings: np.ndarray, items: tuple[str, ...]) -> Lines:
        """Write whole numbers, masked where an item is not ranked."""
        ranks = np.zeros((len(items), len(orderings)), np.int64)
        rows, places = np.nonzero(orderings >= 0)
        ranks[orderings[rows, places], rows] = places + 1
        columns = {item: np.ma.array(x, mask=x == 0) for item, x in zip(items, ranks, strict=True)}
        return np.arange(len(orderings)), columns


def _items(question: Question) -> tuple[str, ...]:
    """Return the names of the items, each of which has a column, and no other column is there."""
    grid, others = question.grid, question.names
    items = question.spec.items
    if items is None:
        return tuple(others)
    for name in items:
        if name not in others:
            raise RankingsError(f"{grid.name}: there is no column for the item {name!r}")
    if rest := [name for name in others if name not in items]:
        raise RankingsError(
            f"{grid.name}: the column {rest[0]!r} is no item; if it is about the judges, add it to "
            f"{option('about')}"
        )
    return items


def _ranks(question: Question, names: Sequence[str]) -> np.ndarray:
    """Return the ranks of the items, (rows, items) int32; 0 if there is none."""
    grid, spec = question.grid, question.spec
    column_of = dict(zip(question.names, question.columns, strict=True))
    most = None if spec.may_rank_others and spec.rules is None else len(names)
    ranks = np.stack([ranks_in(column_of[name], most) for name in names], axis=1)
    if (ranks < 0).any():
        row, k = np.argwhere(ranks < 0)[0]
        column = column_of[names[k]]
        if row == 0 and (ranks[0] < 0).all() and len(ranks) > 1 and (ranks[1] >= 0).all():
            raise RankingsError(
                f"{grid.at(0, column)}: expected a rank, a whole number from 1, "
                f"or nothing, got {column.text(0)[:40]!r}, and texts in all other columns; if this "
                "row says more about the columns, such as units, remove it or add "
                f"{option('header_rows', 2)}"
            )
        has_ranks = np.asarray((ranks > 0).any(0))
        # a few of many remarks begin with a number, as ranks may
        of_column = ranks[:, k]
        texts = (column.values[x] for x in np.unique(column.codes[of_column < 0]))
        num_texts = sum(any(map(str.isalpha, x)) for x in texts)
        has_ranks[k] &= num_texts < _FEWEST_REMARKS or (of_column > 0).sum() > (of_column < 0).sum()
        is_item = bool(has_ranks[k] or 2 * has_ranks.sum() <= len(names))
        columns = list(column_of.values())
        refuse_rank(grid, int(row), column, most, spec, is_item, columns)
    return ranks


def _refuse_own_items(question: Question, names: Sequence[str], ranks: np.ndarray) -> None:
    """Refuse judges with the names of the items, of whom none ranks the item of the own name.

    Numbers that are neither ranks nor said to be ratings, or to have gaps, may be those of wins.
    """
    grid, spec = question.grid, question.spec
    is_said = spec.says_unranked or spec.offered or spec.not_offered
    if spec.judge is None or is_said or all(map(str.isdecimal, names)):
        return
    index = {name: k for k, name in enumerate(names)}
    column = grid.column(spec.judge)
    own = np.array([index.get(text, -1) for text in column.values])[column.codes]
    rows = np.flatnonzero(own >= 0)
    if len(rows) < 3 or 2 * len(rows) < len(own) or ranks[rows, own[rows]].any():
        return
    ordered = np.sort(ranks[rows], axis=1)
    lengths = (ordered > 0).sum(1, keepdims=True)
    are_lists = (ordered == np.maximum(np.arange(len(names)) + 1 + lengths - len(names), 0)).all()
    is_said_how = spec.may_have_gaps or spec.ties is not None or spec.highest_first is not None
    if not (are_lists or is_said_how or are_ranks_with_ties(ranks[rows])):
        what = (
            "numbers of wins are read from a table with a line for each two, the number of wins of "
            f"the first in a column of counts, by {option('layout', 'pairs', False)}"
        )
    elif are_lists and (lengths == len(names) - 1).all():
        what = f"add {option('unranked', 'not-offered')} if nobody was offered it"
    else:
        what = (
            "if nobody was offered it, write a word such as 'own' into these cells and add "
            f"{option('not_offered', 'own', False)}"
        )
    raise RankingsError(
        f"{grid.where(rows[0])}: {plural(len(rows), 'row')} have the name of an item in "
        f"{spec.judge!r}, and nothing in its column: {what}; {option('unranked', 'below', False)} "
        "ranks it below the others"
    )
