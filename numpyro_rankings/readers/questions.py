"""The second stage of a file: the columns of one question, and how they are to be read."""

import fnmatch
import math
import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import item_names, names_shown
from numpyro_rankings.readers.answers import rank_number, ranks_in
from numpyro_rankings.readers.ballots import RULES, Rules, given_rules
from numpyro_rankings.readers.grids import Column, Grid, read_grid, whole_number
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.text import weight_hint
from numpyro_rankings.words import by_number, plural
from numpyro_rankings.words.options import option

Aliases = Mapping[str, str] | str | os.PathLike | None
DUPLICATES = ("first", "last", "drop")  # answers of a judge with several: one, or none
TIES = ("exact", "drop", "order")  # what becomes of ties
_MOST_RANKINGS = 100_000_000
# what columns are called that name the judges, or count them
OF_JUDGES = re.compile(
    r"(?:.*[\W_])?(?i:id|judge|voter|respondent|participant|rater|user|ballot|name)s?"
    r"(?:[\W_]?(?i:id|no|nr|name))?|.*[a-z]I[Dd]|(?i:cast[\W_]?vote[\W_]?records?|cvr)"
    r"(?:[\W_]?(?i:id|no|nr|number))?|(?:(?i:lfd\.? ?)?(?i:no|nr)\.?|#)"
)
OF_PEOPLE = re.compile(
    r"(?:.*[\W_])?(?:judge|voter|respondent|participant|rater|user|annotator|assessor|evaluator|"
    r"reviewer|subject|worker|juror|person|panell?ist|labell?er)s?(?:[\W_]?(?:id|no|nr|name))?|id",
    re.I,
)
OF_ITEMS = re.compile(r"(?:item|candidate|option|alternative|product|team|player)s?", re.I)
# such as # of voters and n_judges, which do not name them
_OF_NUMBERS = re.compile(
    r"(?:#|n|no\.?|nr\.?|nb\.?|nombre|num(?:ber)?|anzahl)[\W_]*(?:of[\W_]+|der |de[\W_]+)?"
    r"(?:voters|votes|judges|ballots|people|persons|respondents|participants|counts?|votants|juges|"
    r"bulletins|stimmen|wähler|personen)",
    re.I,
)
_OF_COUNTS = re.compile(
    r"n|(?:num(?:ber)?[\W_]?(?:of[\W_])?)?(?:counts?|votes|voters|judges|ballots|people|persons|"
    r"respondents|participants)|freq(?:uency)?|anzahl|nombre",
    re.I,
)
_OF_ONE_JUDGE = re.compile("people|persons|participants", re.I)  # such as those of a household

# dates and times of the day
_WHEN = re.compile(
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[T ,].*)?|\d{1,2}:\d\d(?::\d\d.*)?(?: ?[AP]M)?", re.I
)
# what a column with the items that were offered is called
_BETWEEN_OFFERS = r"[;|,\n]"
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_OF_OFFERS = re.compile(r"(?:.*[\W_])?(?:offer(?:ed|s)|available|shown)(?:[\W_].*)?", re.I)


class QuestionSpec(NamedTuple):
    """How a question is to be read; None stands for what is not given."""

    judge: str | None = None  # this and the next five are columns
    item: str | None = None
    rank: str | None = None
    counts: str | None = None
    weights: str | None = None  # survey weights
    about: tuple[str, ...] = ()
    items: tuple[str, ...] | None = None  # names of all items
    # the columns of the question; all that have no meaning if it is empty
    patterns: tuple[str, ...] = ()
    gaps: str = "refuse"  # what becomes of lists in which ranks or places are left out
    is_not_offered: bool = False  # whether the items that a judge does not rank were not offered
    says_unranked: bool = False  # whether an option says so, or that they were
    separator: str | None = None  # the text between the items in a cell
    missing: tuple[str, ...] = ()  # texts that mean that nothing is ranked
    left_out: tuple[str, ...] = ()  # those which are in rows that are left out
    # texts that mean that an item was offered and is not ranked, and that it was not offered
    offered: tuple[str, ...] = ()
    not_offered: tuple[str, ...] = ()
    offers: str | None = None  # the column that lists the items that were offered
    ties: str | None = None  # what becomes of ties, exact by default
    tie_mark: str | None = None  # the text between tied items in a cell
    cycles: str = "refuse"  # what becomes of judges whose pairs make a cycle
    highest_first: bool | None = None  # whether the highest number is the first choice
    duplicates: str | None = None  # which answers of a judge with several are read
    rules: Rules | None = None  # those of ballots
    aliases: Mapping[str, str] = MappingProxyType({})  # the items that further names mean
    has_header: bool = True  # whether the first row names the columns
    header_counts: bool | None = None  # whether its numbers count the judges of each column
    is_turned: bool | None = None  # whether the judges are the columns

    @property
    def named(self) -> list[str]:
        """The columns that options name."""
        own = (self.judge, self.item, self.rank, self.counts, self.weights, self.offers)
        return [name for name in (*own, *self.about) if name is not None]

    @property
    def special(self) -> set[str]:
        """Columns that are neither items nor places."""
        return set(self.named)

    def may_pick(self, name: str) -> bool:
        """Return whether a column may be of the question, by the patterns."""
        is_like = any(name == x or fnmatch.fnmatchcase(name, x) for x in self.patterns)
        return is_like if self.patterns else name not in self.special

    @property
    def closes_gaps(self) -> bool:
        """Whether ranks and places may be left out."""
        return self.gaps != "refuse"

    @property
    def may_have_gaps(self) -> bool:
        """Whether ranks may be left out, as on ballots."""
        return self.closes_gaps or self.rules is not None

    @property
    def may_rank_others(self) -> bool:
        """Whether ranks may exceed the number of columns: if these are some of the items only.

        Ratings may, too, which are read as ranks if it is said what becomes of ties.
        """
        return (bool(self.patterns) or self.ties is not None) and self.may_have_gaps


class TableOptions(NamedTuple):
    """The options of a table as they are given; see :func:`~numpyro_rankings.read_survey`."""

    judge: str | None = None
    about: str | Sequence[str] = ()
    items: Sequence[str] | None = None
    item: str | None = None
    rank: str | None = None
    count: str | None = None  # type: ignore[assignment]  # hides a method of tuples
    weight: str | None = None
    unranked: str | None = None  # below by default
    gaps: str = "refuse"
    columns: str | Sequence[str] = ()
    header: str | None = None
    header_rows: int | None = None
    transpose: bool | None = None
    separator: str | None = None
    missing: str | Sequence[Any] = ()
    offered: str | Sequence[Any] = ()
    not_offered: str | Sequence[Any] = ()
    ties: str | None = None
    cycles: str = "refuse"
    highest_first: bool | None = None
    duplicates: str | None = None
    overvote: str | None = None
    skipped: int | None = None
    repeated: str | None = None
    write_ins: str | None = None
    max_ranks: int | None = None
    aliases: Aliases = None
    contest: str | None = None
    encoding: str | None = None
    max_rows: int | None = None

    def check(self) -> None:
        """Refuse values that an option does not have."""
        for name, known in (
            ("unranked", (None, "below", "not-offered")),
            ("gaps", ("refuse", "close", "fill")),
            ("duplicates", (None, *DUPLICATES)),
            ("ties", (None, *TIES)),
            ("cycles", ("refuse", "drop", "mistakes")),
        ):
            value = getattr(self, name)
            if value not in known:
                expected = " or ".join(repr(x) for x in known if x is not None)
                raise RankingsError(f"{name} is {expected}, not {value!r}")
        if self.count is not None and self.weight is not None:
            raise RankingsError(
                f"{option('weight')} goes without {option('count')}: each row is a judge with a "
                "weight, or so many of weight 1"
            )
        missing = set(_words(self.missing))
        if both := [x for x in _words(self.offered) + _words(self.not_offered) if x in missing]:
            raise RankingsError(
                f"{both[0]!r} is in missing, which says nothing of what was offered, and in "
                "offered or not_offered; leave it out of one"
            )
        most = self.max_rows
        if most is not None and (not isinstance(most, int | np.integer) or most < 1):
            raise RankingsError(f"max_rows is a whole number from 1, not {most!r}")
        if self.header not in (None, "none", "counts"):
            raise RankingsError(
                "header is 'none', if there is none, or 'counts', if it has numbers of judges, not "
                f"{self.header!r}"
            )
        if self.header is not None and self.header_rows is not None:
            raise RankingsError(f"header_rows does not go with {option('header', self.header)}")
        if self.header == "counts" and not self.transpose:
            raise RankingsError(
                f"{option('header', 'counts')} goes with {option('transpose', True)}: each column "
                "is an order, and its name is the number of judges who gave it"
            )
        if self.contest is not None:
            raise RankingsError(
                "contest goes with cast vote records (.json); of a table, columns picks those of a "
                "contest"
            )

    @property
    def rules(self) -> dict[str, object]:
        """The rules of ballots that are given."""
        values = {name: getattr(self, name) for name in RULES}
        return {name: value for name, value in values.items() if value is not None}

    def spec(self) -> QuestionSpec:
        """Return how the question is to be read, with columns as the caller calls them."""
        return QuestionSpec(
            rules=given_rules(**self.rules),
            items=None if self.items is None else item_names(self.items),
            judge=self.judge,
            item=self.item,
            rank=self.rank,
            counts=self.count,
            weights=self.weight,
            about=(self.about,) if isinstance(self.about, str) else tuple(self.about),
            patterns=(
                (self.columns,) if isinstance(self.columns, str) else tuple(map(str, self.columns))
            ),
            gaps=self.gaps,
            is_not_offered=self.unranked == "not-offered",
            says_unranked=self.unranked is not None,
            separator=self.separator,
            missing=_words(self.missing),
            offered=_words(self.offered),
            not_offered=_words(self.not_offered),
            ties=self.ties,
            cycles=self.cycles,
            highest_first=self.highest_first,
            duplicates=self.duplicates,
            has_header=self.header != "none",
            header_counts=self.header == "counts" or (None if self.header_rows is None else False),
            is_turned=self.transpose,
        )


def _words(said: str | Sequence[Any]) -> tuple[str, ...]:
    """Return texts that are given as a sequence, or with commas between them."""
    words = said.split(",") if isinstance(said, str) else said
    return tuple(str(word).strip() for word in words)


def with_names_of_columns(spec: QuestionSpec, table: Table) -> QuestionSpec:
    """Call columns by the names that the table has for them.

    A column may be what **offered** says, instead of texts.
    """
    if len(spec.offered) == 1 and (column := table.name_of(spec.offered[0])) in table.grid.columns:
        spec = spec._replace(offered=(), offers=column)

    def name(given: str | None) -> str | None:
        return None if given is None else table.name_of(given)

    spec = spec._replace(
        judge=name(spec.judge),
        item=name(spec.item),
        rank=name(spec.rank),
        counts=name(spec.counts),
        weights=name(spec.weights),
        about=tuple(map(table.name_of, spec.about)),
    )
    check_columns(table.grid, spec)
    return spec


def check_columns(grid: Grid, spec: QuestionSpec) -> None:
    """Refuse columns that the table does not have, or that are named twice."""
    for k, name in enumerate(spec.named):
        if name not in grid.columns:
            known = ", ".join(map(repr, grid.columns))
            raise RankingsError(
                f"{grid.name}: there is no column {name!r}; the columns are {known}"
            )
        if name in spec.named[:k]:
            raise RankingsError(f"{grid.name}: the column {name!r} is named twice")


class Question(NamedTuple):
    """The columns of a question."""

    grid: Grid  # the rows with the answers, and the columns with another meaning
    columns: list[Column]  # the layout names them like items or places
    spec: QuestionSpec  # how they are read
    notes: list[str]  # how they were read, a sentence each
    labels: list[str]  # the header of each column in words
    is_export: bool = False  # whether the columns were picked, or several rows name them
    # (rows, columns) whether cells say that the item was offered, -1 if a cell does not; or None
    offered: np.ndarray | None = None
    # (lists,) which lists have means of ranks, and leave out ranks; None if there are no means
    have_means: np.ndarray | None = None

    def with_columns(self, columns: Sequence[Column], notes: Sequence[str] = ()) -> "Question":
        """Return the question with other columns, and further notes."""
        return self._replace(columns=list(columns), notes=[*self.notes, *notes])

    def special_column(self, name: str | None) -> Column:
        """Return a column with another meaning, which the table has."""
        assert name is not None
        return self.grid.column(name)

    @property
    def names(self) -> list[str]:
        """The names of the columns of the question."""
        return [column.name for column in self.columns]


def read_counts(grid: Grid, name: str | None, rows: np.ndarray) -> np.ndarray:
    """Return the number of rankings that each of the rows stands for."""
    if name is None:
        return np.ones(len(rows), int)
    column = grid.column(name)
    numbers = ranks_in(column, None)[rows].astype(int)
    if (numbers < 1).any():
        row = rows[int(np.argmax(numbers < 1))]
        text = column.text(row)
        hint = weight_hint(text, f"name the column in {option('weight')} instead")
        raise RankingsError(
            f"{grid.at(row, column)}: expected a positive whole number, got {text[:40]!r}{hint}"
        )
    if numbers.sum() > _MOST_RANKINGS:
        raise RankingsError(
            f"{grid.where(rows[int(np.argmax(numbers))])}: column {name!r}: with count "
            f"{numbers.max():,} there are {numbers.sum():,} rankings; at most {_MOST_RANKINGS:,} "
            "can be read"
        )
    return numbers


def read_weights(grid: Grid, name: str, rows: np.ndarray) -> np.ndarray:
    """Return the survey weights of the judges in these rows, floats from 0 on."""
    column = grid.column(name)
    with_comma = [text for text in column.values if "," in text]
    if with_comma and all(map(_THOUSANDS.fullmatch, with_comma)):  # else commas are decimal
        raise RankingsError(
            f"{grid.at_text(column, with_comma[0])}: {with_comma[0]!r} may be a thousand and more: "
            "write thousands without marks between the digits, and decimals with a point"
        )
    weights = column.mapped(_weight_in, float)[rows]
    if (broken := np.isnan(weights)).any():
        odd = rows[broken]
        text = column.text(int(odd[0]))
        raise RankingsError(
            f"{grid.at(int(odd[0]), column)}: expected a weight, a number from 0 on, got "
            f"{repr(text[:40]) if text else 'an empty cell'}{grid.also(odd)}; write 0 to leave a "
            "judge out"
        )
    if not weights.any():
        raise RankingsError(
            f"{grid.name}: all weights in the column {name!r} are 0: leave out {option('weight')}"
        )
    return weights


def _weight_in(text: str) -> float:
    """Return the weight that a text says, NaN if it says none."""
    if not re.fullmatch(r"\+?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?", text.strip()):
        return math.nan
    number = float(text.strip().replace(",", "."))
    return number if math.isfinite(number) else math.nan


def read_offers(
    grid: Grid, spec: QuestionSpec, rows: np.ndarray, items: tuple[str, ...]
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return what a column says that was offered in some of the rows.

    :return: the items, with those that nobody ranks; (rows, items) booleans; and the rows in which
        the column says nothing, (rows,) booleans.
    """
    column = grid.column(str(spec.offers))
    index = {item: k for k, item in enumerate(items)}
    lists = []
    for text in column.values:
        parts = [text] if text in index else map(str.strip, re.split(_BETWEEN_OFFERS, text))
        names = [spec.aliases.get(x, x) for x in parts if x]
        if spec.items is not None and (other := next((x for x in names if x not in index), "")):
            raise RankingsError(
                f"{grid.at_text(column, text)}: there is no item {other[:40]!r}; expected "
                f"{names_shown(list(spec.items))}"
            )
        lists.append([index.setdefault(x, len(index)) for x in names])
    table = np.zeros((len(lists), len(index)), bool)
    for row, listed in zip(table, lists, strict=True):
        row[listed] = True
    return tuple(index), table[column.codes[rows]], column.is_blank()[rows]


def read_judges(
    grid: Grid, name: str, rows: np.ndarray, are_tasks: bool = False, are_of_two: bool = False
) -> np.ndarray:
    """Return the names of the judges in these rows: each has one, and no two have the same.

    :param are_tasks: whether a judge may have chosen several times, each time among other items.
    :param are_of_two: whether each row has two items, as comparisons have.
    """
    column = grid.column(name)
    if (blank := column.is_blank()[rows]).any():
        refuse_no_judge(grid, column, rows[blank], ", without which no names are needed")
    if (again := is_repeated(column.codes[rows])).any():
        number, judges = (
            len(np.unique(column.codes[rows][again])),
            len(np.unique(column.codes[rows])),
        )
        are_of_two &= 2 * judges <= len(rows)
        others = f"{number:,} judges have several; " if number > 1 else ""
        read_first, read_last, read_none = (
            option("duplicates", x, not are_tasks and not are_of_two) for x in DUPLICATES
        )
        pairs = (
            "if each row compares two items, write these in two columns and add "
            f"{option('layout', 'pairs', False)}, which takes together what a judge said; "
        )
        none = f", and {read_none} none" if number < judges else ""
        row = rows[int(np.argmax(again))]
        first = rows[int(np.argmax(column.codes[rows] == column.codes[row]))]
        raise RankingsError(
            f"{grid.where(row)}: judge {column.text(row)!r} has a row already, "
            f"{grid.where(first)}; {others}{pairs if are_of_two else ''}{read_first} or "
            f"{read_last} reads one of them{none}; leave out {option('judge')} if both count"
        )
    return column.mapped(str, object)[rows]


def refuse_judges_left_out(grid: Grid, spec: QuestionSpec, rows: np.ndarray) -> None:
    """Refuse to leave out a column, such as one of e-mail addresses, that names a judge twice."""
    if spec.judge is not None or spec.counts is not None or not spec.patterns:
        return
    for column in grid.cells:
        if column.name in spec.special or spec.may_pick(column.name):
            continue
        texts = column.keep(rows)
        texts = texts.keep(~texts.is_blank())
        are_mails = 2 * sum("@" in text for text in texts.values) > len(texts.values)
        number = len(texts.codes) - len(texts.values)
        if (are_mails or OF_PEOPLE.fullmatch(column.name)) and 0 < 3 * number <= len(texts.codes):
            codes = column.codes[rows]
            again = is_repeated(codes) & ~column.is_blank()[rows]
            row = rows[int(np.argmax(again))]
            first = rows[int(np.argmax(codes == column.codes[row]))]
            raise RankingsError(
                f"{grid.where(row)}: {column.name!r} is {column.text(row)!r}, as in "
                f"{grid.where(first)}{grid.also(rows[again])}: if it names the judges, add "
                f"{option('judge', column.name)} and {option('duplicates')}, and otherwise "
                f"{option('about', [*spec.about, column.name], False)}"
            )


def refuse_no_judge(grid: Grid, column: Column, rows: np.ndarray, without: str) -> NoReturn:
    """Refuse rows without a judge; **without** says what it is to leave out the option."""
    raise RankingsError(
        f"{grid.at(rows[0], column)} is empty{grid.also(rows)}: who is it? Write the name in each "
        f"row, also where it is that of the row above, or leave out {option('judge')}{without}"
    )


def meaning_of_header(column: Column, spec: QuestionSpec) -> str:
    """Return the option that takes a column by what it is called, or nothing.

    A column # numbers the judges, or counts them if its numbers are not in order. Counts have no
    empty cells.
    """
    is_whole = _has_numbers(column) and "" not in column.values
    numbers = [whole_number(text) or 0 for text in column.values] if column.name == "#" else []
    counts = is_whole and numbers != sorted(numbers)
    is_number = is_whole and _OF_NUMBERS.fullmatch(column.name) is not None
    is_count = is_number or (is_whole and _OF_COUNTS.fullmatch(column.name) is not None)
    # numbers in a row, such as 101, 102, 103, are of the judges
    said = [whole_number(text) or 0 for text in column.values] if is_count else []
    is_repeated_count = is_count and (
        len(column.values) < len(column.codes) or not are_in_row(np.array(said))
    )
    counts_rows = len(said) > 1 and column.name.casefold() == "n" and not is_repeated_count
    is_of_judges = (counts_rows or OF_JUDGES.fullmatch(column.name)) and not (
        counts or is_repeated_count or is_number
    )
    if spec.judge is None and is_of_judges:
        return "judge"
    if spec.counts is None and (counts or is_count) and not is_one_number(column):
        is_of_one = counts_rows or _OF_ONE_JUDGE.fullmatch(column.name) is not None
        is_of_one &= spec.judge is not None
        return "about" if is_of_one else "count"
    texts = [text for text in column.values if text]
    num_lists = sum(re.search(_BETWEEN_OFFERS, text) is not None for text in texts)
    if spec.offers is None and _OF_OFFERS.fullmatch(column.name) and 2 * num_lists > len(texts):
        return "offered"
    return ""


def are_in_row(numbers: np.ndarray) -> bool:
    """Return whether numbers, (rows,), count on by one from row to row."""
    return bool((np.diff(numbers) == 1).all())


def is_called_as_counts(name: str) -> bool:
    """Return whether a column is called as one of counts, whatever it has."""
    return _OF_COUNTS.fullmatch(name) is not None


def is_one_number(column: Column) -> bool:
    """Return whether a column has one number above 1 in all rows, and is not called count.

    It may be the number of all items or judges.
    """
    numbers = {whole_number(text) or 0 for text in column.values}
    is_named = re.fullmatch(r"counts?|freq(?:uency)?", column.name, re.IGNORECASE)
    return len(numbers) == 1 < len(column.codes) and max(numbers) > 1 and not is_named


def are_times(column: Column) -> bool:
    """Return whether all texts of a column are dates, or times of the day."""
    texts = [text for text in column.values if text]
    return bool(texts) and all(map(_WHEN.fullmatch, texts))


def _has_numbers(column: Column) -> bool:
    return all(whole_number(text) is not None for text in column.values if text)


def _has_weights(column: Column) -> bool:
    """Whether a column has numbers from 0 on, not all of them whole."""
    numbers = [_weight_in(text) for text in column.values if text]
    return bool(numbers) and not (any(map(math.isnan, numbers)) or _has_numbers(column))


def options_beside(column: Column, spec: QuestionSpec, is_sure: bool = True) -> str:
    """Return which options take a column that is no part of the question.

    Texts of which more than two thirds differ are read as the names of the judges, unless they are
    dates or times.

    :param is_sure: whether it is no part of the question, if its name does not say so.
    """
    have_numbers, are_weights = _has_numbers(column), _has_weights(column)
    texts = {*column.values} - {""}
    are_names = not (have_numbers or are_weights) and 3 * len(texts) > 2 * len(column.codes)
    are_names &= not are_times(column)
    if have_numbers and "" not in column.values and 2 < len(column.values) == len(column.codes):
        are_names = are_in_row(column.mapped(lambda text: whole_number(text) or 0))
    by_texts = "judge" if spec.judge is None and are_names else "about"
    if not spec.has_header and have_numbers and "" not in column.values:
        by_texts = _meaning_of_numbers(column, spec)
    # counts in another form, such as 1,200, are no names of judges
    is_count = spec.counts is None and _OF_COUNTS.fullmatch(column.name) is not None
    meaning = meaning_of_header(column, spec) or (by_texts if is_sure and not is_count else "")
    about = option("about", [*spec.about, column.name], meaning == "about")
    judge = option("judge", column.name, meaning == "judge")
    ways = f"add {about} if it is about the judges, or {judge} if it names them"
    if have_numbers or is_count:
        ways += f", or {option('count', column.name, meaning == 'count')} if it counts them"
    if is_count and not have_numbers:
        ways += ", once thousands are written without marks, as 1234"
    if are_weights and not is_count and spec.weights is None:
        ways += f", or {option('weight', column.name, False)} if it has survey weights"
    if meaning == "offered":
        offered = option("offered", column.name)
        ways = ways.replace("add ", f"add {offered} if it lists what was offered to each, or ", 1)
    return ways


def _meaning_of_numbers(column: Column, spec: QuestionSpec) -> str:
    """Return the likely option for numbers without a header: counts fall, or come often.

    Counts in any order are in the first column; behind it are ages and ratings, too.
    """
    numbers = column.mapped(lambda text: whole_number(text) or 0)
    differ = len(column.values) == len(column.codes)
    are_falling = len(numbers) > 1 and bool((np.diff(numbers) <= 0).all())
    if spec.judge is not None:
        return "about"
    is_first, come_often = column.name == "1", 2 * len(column.values) <= len(column.codes)
    if are_falling or (is_first and come_often):
        return "count" if spec.counts is None and not is_one_number(column) else "about"
    return "judge" if differ else "about"


def one_answer_each(
    grid: Grid,
    spec: QuestionSpec,
    is_answer: np.ndarray,
    columns: tuple[Column, Column] | None = None,
) -> tuple[Grid, list[str]]:
    """Return the table without further answers of the same judge, and notes.

    :param is_answer: (rows,) bool; where it is False nothing is ranked.
    :param columns: the item of each row, and its rank, of a long table.
    """
    if spec.duplicates is None:
        return grid, []
    if spec.judge is None:
        raise RankingsError(f"duplicates goes with {option('judge')}: who gave each answer?")
    judge = grid.column(spec.judge)
    rows = np.flatnonzero(is_answer & ~judge.is_blank())
    judges = keys = judge.codes[rows]
    if columns is not None:
        item = columns[0]
        keys = judges * np.int64(len(item.values)) + item.codes[rows]
    is_again, is_before = is_repeated(keys), is_repeated(keys[::-1])[::-1]
    several = np.unique(judges[is_again])
    if not len(several):
        return grid, [f"no judge has several answers: {option('duplicates')} changes nothing"]
    if spec.duplicates == "drop":
        is_left_out = np.isin(judges, several)
    else:
        is_left_out = is_again if spec.duplicates == "first" else is_before
        if columns is not None:
            differ = are_other_ranks(keys, columns[1].keep(rows))
            _check_same_items(grid, judge, judges, keys, np.unique(judges[differ]))
    left_out = rows[is_left_out]
    if is_left_out.all():
        raise RankingsError(
            f"{grid.name}: all judges have several answers: {option('duplicates', 'drop')} leaves "
            "none of them"
        )
    keep = np.ones(len(grid.numbers), bool)
    keep[left_out] = False
    verb = by_number(len(several), "has", "have")
    read = "none" if spec.duplicates == "drop" else f"the {spec.duplicates}"
    shown = names_shown([grid.where(row) for row in left_out[:6].tolist()], 5)
    return grid.keep(keep), [
        f"{plural(len(several), 'judge')} {verb} several answers, of which {read} is read; "
        f"{plural(len(left_out), 'row')} left out: {shown}"
    ]


def _check_same_items(
    grid: Grid, judge: Column, judges: np.ndarray, keys: np.ndarray, several: np.ndarray
) -> None:
    """Refuse answers in a long table that rank different items: they cannot be told apart."""
    differs = several[have_other_items(judges, keys)[several]]
    if len(differs):
        raise RankingsError(
            f"{grid.name}: judge {judge.values[int(differs[0])]!r} has several answers with "
            f"different items, which cannot be told apart; {option('duplicates', 'drop')} reads "
            "none of them"
        )


def have_other_items(judges: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return which judges, by their codes, rank an item more often than another, (judges,) bool.

    :param judges: (rows,) the judge of each row, and **keys** judge and item.
    """
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    number = int(judges.max(initial=-1)) + 1
    least, most = np.full(number, len(keys)), np.zeros(number, int)
    np.minimum.at(least, judges[first], counts)
    np.maximum.at(most, judges[first], counts)
    return least < most


def are_other_ranks(keys: np.ndarray, rank: Column) -> np.ndarray:
    """Return which lines have another rank than the first one of the same key, (lines,) bool.

    :param keys: (lines,) judge and item.
    """
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    said = rank.mapped(lambda text: str(x if (x := rank_number(text)) > 0 else text), object)
    return said != said[first[inverse]]


def is_repeated(keys: np.ndarray) -> np.ndarray:
    """Return which of the keys is equal to an earlier one."""
    order = np.argsort(keys, kind="stable")
    is_again = np.zeros(len(keys), bool)
    is_again[order[1:][keys[order[1:]] == keys[order[:-1]]]] = True
    return is_again


def read_aliases(aliases: Aliases) -> dict[str, str]:
    """Return the item that each further name means, from a dict or a table ``alias,item``."""
    if aliases is None:
        return {}
    if isinstance(aliases, Mapping):
        pairs = [("aliases", str(x).strip(), str(y).strip()) for x, y in aliases.items()]
    else:
        grid = read_grid(aliases)
        if [name.lower() for name in grid.columns] != ["alias", "item"]:
            raise RankingsError(
                f"{grid.header_place}: a file of aliases has two columns, and its first row is "
                f"alias,item; got {','.join(grid.columns)[:40]!r}"
            )
        texts = [x.mapped(str, object) for x in grid.cells]
        pairs = [(grid.where(row), *x) for row, x in enumerate(zip(*texts, strict=True))]
    item_of: dict[str, str] = {}
    for where, alias, item in pairs:
        if not alias or not item:
            raise RankingsError(f"{where}: an alias and the name of its item are needed")
        if item_of.get(alias, item) != item:
            raise RankingsError(
                f"{where}: {alias!r} cannot mean both {item_of[alias]!r} and {item!r}"
            )
        item_of[alias] = item
    for where, alias, item in pairs:
        if alias != item and item_of.get(item, item) != item:
            raise RankingsError(
                f"{where}: {alias!r} means {item!r}, which means {item_of[item]!r}; give it the "
                "last"
            )
    return {alias: item for alias, item in item_of.items() if alias != item}
