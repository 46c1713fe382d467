"""What a layout of tables says about itself, with what most of them have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.answers import text_key, without_missing
from numpyro_rankings.readers.grids import Grid, check_cells
from numpyro_rankings.readers.headers import (
    Table,
    drop_totals,
    ends_with_sum,
    name_columns,
    renamed,
)
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.mixed_lists import ANY
from numpyro_rankings.readers.other_questions import refuse_slid_rows
from numpyro_rankings.readers.questions import (
    Question,
    QuestionSpec,
    TableOptions,
    one_answer_each,
)
from numpyro_rankings.readers.votes import notes_of_aliases
from numpyro_rankings.words import shorten
from numpyro_rankings.words.options import option

# names of separators that are hard to type
MARK_WORDS = {"newline": "\n", "space": " ", "tab": "\t", "comma": ",", "semicolon": ";"}
Lines = tuple[np.ndarray, dict[str, Any]]  # the list of each line of a table, and the columns
_LENGTH = 60  # letters of a name in a message


class Layout(ABC):
    """The ways in which a layout of tables differs from the others."""

    name = ""  # its name as an option
    columns_are = ""  # what its columns are, in notes
    is_of_ballots = False  # whether the columns are those of ballots, which rules make lists of
    takes_rules = False  # whether the rules of ballots may be given
    takes_patterns = True  # whether this and the next two options may be given
    takes_separator = False
    takes_highest_first = False
    has_names_in_cells = True  # whether names of items are in cells, not in headers
    has_item_columns = False  # whether each item has a column, in an order that judges see
    has_lines_of_items = False  # whether a list has a line for each of its items
    has_pairs = False  # whether a row says which of two items is preferred
    takes_offered = False  # whether cells may say that an item was offered and is not ranked

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Return what of a table says that it has this layout; "" if nothing does."""
        return ""

    def check_options(self, given: TableOptions) -> None:
        """Refuse options of other layouts that can be refused before the table is read."""
        if given.rules and not self.takes_rules:
            raise RankingsError(
                f"{next(iter(given.rules))} is a rule of ballots, which the layouts votes, marks "
                f"and ranks have, not {self.name}"
            )
        if given.ties is not None and self.is_of_ballots:
            raise RankingsError(
                f"ties does not go with the layout {self.name}; {option('overvote')} is the rule "
                "for several names at a rank"
            )
        if given.cycles != "refuse" and not self.has_pairs:
            raise RankingsError(f"cycles goes with the layout pairs, not with {self.name}")

    def find_columns(
        self, table: Table, picked: Sequence[int], spec: QuestionSpec
    ) -> tuple[Sequence[int], QuestionSpec, list[str]]:
        """Return the columns of the question, those with other meanings, and notes."""
        if spec.item is not None or spec.rank is not None:
            raise RankingsError(
                f"item and rank name columns of the layout long, not of {self.name}"
            )
        return picked, spec, []

    def read(
        self, table: Table, picked: Sequence[int], spec: QuestionSpec, notes: Sequence[str]
    ) -> Question:
        """Read the columns of a question, whose places in the table are picked."""
        self.check_question(table.grid, picked, spec)
        looked_at = self.columns_with_totals(table.grid, picked)
        if spec.counts is not None and ends_with_sum(table.grid.column(spec.counts)):
            looked_at = range(len(table.grid.cells))  # a sum of counts belongs to no list
        grid, about_totals = drop_totals(table.grid, looked_at)
        grid, about_judges = self.one_answer_each(grid, picked, spec)
        if spec.missing and len(grid.numbers) < len(table.grid.numbers):
            texts = {text_key(x) for k in picked for x in table.grid.cells[k].values}
            words = [x for x in spec.missing if text_key(x) in texts]
            spec = spec._replace(left_out=(*spec.left_out, *words))
        special = [k for k, x in enumerate(grid.cells) if x.name in spec.special]
        check_cells(grid._replace(cells=[grid.cells[k] for k in sorted({*picked, *special})]))
        refuse_slid_rows(grid, picked, self.answers(grid, picked), self.has_item_columns)
        question = Question(
            grid,
            [grid.cells[k] for k in picked],
            spec,
            [*notes, *about_totals, *about_judges],
            [table.labels[k] for k in picked],
            bool(spec.patterns or table.notes),
        )
        return self.use_aliases(self.read_cells(self.name_columns(question)))

    def check_question(self, grid: Grid, picked: Sequence[int], spec: QuestionSpec) -> None:
        """Refuse options that the layout does not have."""
        if not picked:
            raise RankingsError(f"{grid.name}: no column is left for the rankings")
        if spec.patterns and not self.takes_patterns:
            raise RankingsError(
                "columns picks those of a question; the layout long names them by rank"
            )
        if spec.separator is not None and not self.takes_separator:
            raise RankingsError(
                f"separator goes with the layout cell, orders or votes, not with {self.name}"
            )
        if spec.separator == ANY and self.name != "cell":
            raise RankingsError(f"{option('separator', ANY)} goes with the layout cell")
        words = spec.offered or spec.not_offered
        if words and spec.rules is not None:
            raise RankingsError(
                f"{grid.name}: offered and not_offered do not go with the rules of ballots"
            )
        if words and not self.takes_offered:
            name = "offered" if spec.offered else "not_offered"
            raise RankingsError(
                f"{grid.name}: {option(name, words, False)} says what cells mean in the layouts "
                f"ranks and long; in the layout {self.name} {option('offered')} names a column "
                "with the items offered to each judge"
            )
        if spec.separator == "":
            raise RankingsError("separator is empty")
        if spec.highest_first is not None and not self.takes_highest_first:
            raise RankingsError(f"highest_first goes with ranks, not with the layout {self.name}")
        if not all(spec.missing):
            raise RankingsError("missing has an empty text; empty cells mean it in any case")

    def one_answer_each(
        self, grid: Grid, picked: Sequence[int], spec: QuestionSpec
    ) -> tuple[Grid, list[str]]:
        """Return the table without further answers of a judge: a row with a cell is an answer."""
        is_answer = ~np.logical_and.reduce([grid.cells[k].is_blank() for k in picked])
        return one_answer_each(grid, spec, is_answer)

    def columns_with_totals(self, grid: Grid, picked: Sequence[int]) -> Sequence[int]:
        """Return the columns that may say that a row has totals: none in which it may be a name."""
        return [k for k in range(len(grid.cells)) if k not in picked]

    def answers(self, grid: Grid, picked: Sequence[int]) -> set[str]:
        """Return the texts that are answers, if rows that slid to a side can be told by them."""
        return set()

    def name_columns(self, question: Question) -> Question:
        """Give the columns the names of items, or put the places in order, and say so."""
        has_races = have_races(question.labels)
        if not (question.is_export or has_races):
            return question
        spec, names = question.spec, question.names
        if has_races:
            _refuse_several_races(question)
        short = name_columns(question.labels, spec.patterns, spec.special)
        if len(set(short)) < len(short):  # such as a second row with units
            short = names
        names_by_place = self.names_of_export(question, short)
        new, columns = list(names_by_place.values()), [question.columns[k] for k in names_by_place]
        is_special = [x.name in spec.special for x in question.grid.cells]
        left_out = len(is_special) - sum(is_special) - len(columns)
        note = self._say_which([x.name for x in columns], new, left_out)
        return question.with_columns(renamed(columns, new), [note])

    def names_of_export(self, question: Question, short: Sequence[str]) -> dict[int, str]:
        """Return the names of the columns of an export by their places, in their order."""
        return dict(enumerate(question.names))

    def _say_which(self, columns: Sequence[str], names: Sequence[str], left_out: int) -> str:
        """Return the note that says which columns were taken, and for what."""
        shown = names_counted([shorten(x, _LENGTH) for x in columns], 3)
        is_new = list(names) != list(columns)
        told = f" {names_counted([shorten(x, _LENGTH) for x in names], 12)}" if is_new else ""
        rest = f"; {left_out} other column{'s are' if left_out > 1 else ' is'} left out"
        verb = "are" if len(columns) > 1 else "has"
        return f"{shown} {verb} {self.columns_are}{told}{rest if left_out else ''}"

    def read_cells(self, question: Question) -> Question:
        """Read what the cells say."""
        spec = question.spec
        columns, notes = without_missing(
            question.grid, question.columns, spec.missing, None, elsewhere=spec.left_out
        )
        return question.with_columns(columns, notes)

    def use_aliases(self, question: Question) -> Question:
        """Call items by the names that aliases give them, and tell which."""
        aliases = question.spec.aliases
        if not aliases:
            return question
        names = dict.fromkeys(text for column in question.columns for text in column.values)
        columns = [x.with_texts(lambda text: aliases.get(text, text)) for x in question.columns]
        return question.with_columns(columns, notes_of_aliases(aliases, names))

    @abstractmethod
    def lists(self, question: Question) -> Lists:
        """Return the lists of the items."""

    def table(self, orderings: np.ndarray, items: tuple[str, ...]) -> Lines:
        """Write orderings (lists, T), padded with -1, or refuse to write this layout."""
        raise RankingsError(f"tables are not written in the layout {self.name}")


def have_races(labels: Sequence[str]) -> bool:
    """Return whether columns are called such as ``Race!!Ann``."""
    return len(labels) > 1 and all("!!" in label for label in labels)


def _refuse_several_races(question: Question) -> None:
    """Refuse columns such as ``Race!!Ann`` of several races."""
    races = list(dict.fromkeys(label.partition("!!")[0] for label in question.labels))
    if len(races) > 1:
        raise RankingsError(
            f"{question.grid.header_place}: the columns are of {len(races)} races, such as "
            f"{shorten(races[0], _LENGTH)!r} and {shorten(races[1], _LENGTH)!r}; pick those of one "
            f"with {option('columns', f'{races[0]}*')}"
        )


class BallotLayout(Layout):
    """A layout whose columns are those of ballots, which keep their names."""

    is_of_ballots = True
    takes_rules = True

    def check_options(self, given: TableOptions) -> None:
        """Refuse to close gaps: blank ranks have a rule."""
        super().check_options(given)
        if given.gaps != "refuse":
            raise RankingsError(
                f"gaps does not go with the layout {self.name}; {option('skipped')} is the rule "
                "for blank ranks"
            )

    def name_columns(self, question: Question) -> Question:
        """Keep the names, which say the ranks, but for that of the race."""
        if not have_races(question.labels):
            return question
        _refuse_several_races(question)
        names = [label.partition("!!")[2] for label in question.labels]
        return question.with_columns(renamed(question.columns, names))

    def use_aliases(self, question: Question) -> Question:
        """Leave the names: those of an overvote are told apart first."""
        return question
