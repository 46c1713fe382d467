"""A row for each judge and item, with its rank."""

import itertools
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.answers import (
    CODES,
    numbers_in,
    numbers_of_ranks,
    rank_number,
    ranks_in,
    refuse_missing_items,
    said_of_offer,
    says_no_rank,
    stands_for_rest,
    text_key,
)
from numpyro_rankings.readers.grids import Column, Grid, whole_number
from numpyro_rankings.readers.headers import Table, is_called_total
from numpyro_rankings.readers.layouts.base import Layout, Lines
from numpyro_rankings.readers.lists import Lists, lists_of_ranks
from numpyro_rankings.readers.questions import (
    DUPLICATES,
    OF_ITEMS,
    OF_PEOPLE,
    Question,
    QuestionSpec,
    are_other_ranks,
    are_times,
    check_columns,
    have_other_items,
    is_repeated,
    meaning_of_header,
    one_answer_each,
)
from numpyro_rankings.readers.rank_cells import read_ranks, refuse_rank
from numpyro_rankings.readers.votes import notes_of_aliases, words_of_ballots
from numpyro_rankings.words import by_number, plural
from numpyro_rankings.words.options import option

_RANKS = {"rank", "position"}
_MEANINGS = {"judge": {"judge"}, "item": {"item"}, "rank": _RANKS}
_OF_RANKS = re.compile(
    r"(?:.*[\W_])?(?:rank(?:ing)?|pos(?:ition)?|place|rang|platz|puesto|posici[oó]n|posizione)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+$€£]?\d+(?:[.,]\d+)?[%$€£]?")
_OF_WEIGHTS = re.compile(r"(?:.*[\W_])?(?:weights?|wt)", re.IGNORECASE)
_CODES = CODES | {7}  # no end of a scale above the number of items
_MOST_COLUMNS = 6  # of which three are tried in each way


class Long(Layout):
    """A row for each judge and item; the question is the column of the ranks."""

    name = "long"
    takes_patterns = False
    takes_highest_first = True
    takes_offered = True
    has_lines_of_items = True

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Columns are named judge, item and rank, or options name those that are not."""
        named = _named(table.grid, spec)
        is_long = not spec.patterns and None not in (named.judge, named.item, named.rank)
        return "names of the columns" if is_long else ""

    def find_columns(
        self, table: Table, picked: Sequence[int], spec: QuestionSpec
    ) -> tuple[Sequence[int], QuestionSpec, list[str]]:
        """Find the columns of the judges, items and ranks; the others are left out."""
        grid = table.grid
        _ask_columns(grid, spec)
        spec = spec._replace(judge=_find_column(grid, spec, "judge", {"judge"}))
        spec = spec._replace(item=_find_column(grid, spec, "item", {"item"}))
        rank = _find_column(grid, spec, "rank", _RANKS)
        spec = spec._replace(rank=rank, left_out=_words_of_lines(grid.column(str(spec.item)), spec))
        check_columns(grid, spec)
        notes = []
        if others := [x for x in grid.cells if x.name and x.name not in spec.special]:
            _ask_counts(grid, others, spec)
            verb = by_number(len(others), "column is", "columns are")
            shown = names_shown([repr(x.name) for x in others])
            notes.append(f"{len(others)} other {verb} left out: {shown}")
        return [grid.columns.index(rank)], spec, notes

    def name_columns(self, question: Question) -> Question:
        """Keep the name: the items are in rows."""
        return question

    def read_cells(self, question: Question) -> Question:
        """Read ranks in numbers and words."""
        spec = question.spec
        names = spec.items or set(filter(None, question.special_column(spec.item).values))
        judges = question.special_column(spec.judge).codes
        return read_ranks(question, judges, len(names), None, is_one_question=False)

    def use_aliases(self, question: Question) -> Question:
        """Call items in their column by the names that aliases give them."""
        spec, grid = question.spec, question.grid
        if not spec.aliases:
            return question
        item = question.special_column(spec.item)
        renamed = item.with_texts(lambda text: spec.aliases.get(text, text))
        cells = [renamed if x.name == item.name else x for x in grid.cells]
        notes = notes_of_aliases(spec.aliases, item.values)
        question = question._replace(grid=grid._replace(cells=cells))
        return question.with_columns(question.columns, notes)

    def one_answer_each(
        self, grid: Grid, picked: Sequence[int], spec: QuestionSpec
    ) -> tuple[Grid, list[str]]:
        """Return the table without lines of a judge about an item that another line is about.

        Nor has it lines of blank ranks, or of all other items, if their word is a missing one.
        """
        assert spec.item is not None
        item, about_words = grid.column(spec.item), list[str]()
        if words := {*map(text_key, spec.left_out)}:
            is_word = item.mapped(lambda text: text_key(text) in words, bool)
            lines = item.keep(is_word).counts().items()
            said = names_shown([f"{text!r} in {plural(k, 'line')}" for text, k in lines])
            about_words = [f"left out, because nothing is ranked there: {said}"]
            grid = grid.keep(~is_word)
        every = np.ones(len(grid.numbers), bool)
        columns = grid.column(spec.item), grid.cells[picked[0]]
        grid, notes = one_answer_each(grid, spec, every, columns)
        return grid, [*about_words, *notes]

    def lists(self, question: Question) -> Lists:
        """Sort the items of each judge by their ranks."""
        grid, spec, rank = question.grid, question.spec, question.columns[0]
        judge = question.special_column(spec.judge)
        names, items = _items(question, judge)
        ranks = ranks_in(rank, None)
        if (wrong := ranks < 0).any():
            row = int(np.argmax(wrong))
            refuse_rank(grid, row, rank, None, spec)
        _refuse_codes(question, ranks, len(names))
        _refuse_several_lists(question, judge, ranks)
        first = judge.first_rows()
        refuse_several_texts(question, judge, first)

        def where(k: int) -> str:
            return f"{grid.name}: judge {judge.values[k]!r}"

        ranked = ranks > 0
        entries = judge.codes[ranked], items[ranked], ranks[ranked]
        lists = lists_of_ranks(names, entries, first, where, spec, question.have_means)
        if question.offered is None:
            return lists
        said = np.full((len(first), len(names)), -1)
        said[judge.codes, items] = question.offered[:, 0]
        return lists.with_offered(said, not spec.is_not_offered)

    def table(self, orderings: np.ndarray, items: tuple[str, ...]) -> Lines:
        """Write a line for each item that is ranked."""
        rows, places = np.nonzero(orderings >= 0)
        named = np.array(items, object)[orderings[rows, places]]
        return rows, {"item": named, "rank": places + 1}


def _words_of_lines(item: Column, spec: QuestionSpec) -> tuple[str, ...]:
    """Return the missing texts that lines have instead of an item.

    They say that nothing is ranked, or that all other items are ranked there; a number or a letter
    may be a code among the ranks, and the name of an item, too.
    """
    missing = {*map(text_key, spec.missing)}
    texts = [x for x in item.values if missing and text_key(x) in missing]
    if not texts:
        return ()
    words = words_of_ballots(item.values)
    said = [x for x in texts if x in words or stands_for_rest(x) or says_no_rank(x)]
    found = {text_key(x) for x in said if x not in (spec.items or ())}
    return tuple(x for x in spec.missing if text_key(x) in found)


def _named(grid: Grid, spec: QuestionSpec) -> QuestionSpec:
    """Return the columns that are called judge, item and rank beside those that are given."""
    found: dict[str, Any] = {}
    for meaning, names in _MEANINGS.items():
        called = [name for name in grid.columns if name.lower() in names]
        if getattr(spec, meaning) is None and len(called) == 1:
            found[meaning] = called[0]
    return spec._replace(**found)


def has_ranks(grid: Grid, spec: QuestionSpec) -> bool:
    """Return whether a column has the ranks of items in rows, by names or what is given."""
    named = _named(grid, spec)
    if named.rank is not None and (named.item is not None or spec.judge is not None):
        return True
    likely = likely_columns(grid, spec)
    return likely is not None and _OF_RANKS.fullmatch(likely[2]) is not None


def likely_columns(grid: Grid, spec: QuestionSpec) -> tuple[str, str, str] | None:
    """Return the only columns of judges, items and ranks in which each judge has 1, 2, … once."""
    free = [x for x in grid.cells if x.name and x.name not in spec.special]
    if len(free) > _MOST_COLUMNS:
        return None
    named = _named(grid, spec)
    given = (named.judge, named.item, named.rank)
    ways = itertools.product(*([grid.column(x)] if x is not None else free for x in given))
    found = [
        three
        for three in ways
        if len({x.name for x in three}) == len(three)
        and not OF_PEOPLE.fullmatch(three[2].name)
        and (named.item is not None or not _OF_RANKS.fullmatch(three[1].name))
        and _are_lists(*three)
    ]
    # beside the place at which an item was shown, and what else is known of each
    for is_likely in (
        lambda three: len(three[1].values) < len(three[1].codes),
        lambda three: _OF_RANKS.fullmatch(three[2].name) is not None,
        lambda three: not any(map(_NUMBER.fullmatch, three[1].values)),
        lambda three: meaning_of_header(three[0], spec) == "judge",
    ):
        if len(found) > 1:
            found = [three for three in found if is_likely(three)] or found
    if len({(judge.name, rank.name) for judge, _, rank in found}) != 1:
        return _called_so(grid, named, free)
    judge, item, rank = (x.name for x in found[0])
    return judge, item, rank


def _called_so(
    grid: Grid, named: QuestionSpec, free: Sequence[Column]
) -> tuple[str, str, str] | None:
    """Return the columns that are called as items and ranks, which may be tied, and the judges.

    These are in the only other column, or in one that is called so. Judges and items come again.
    """
    items = [x for x in free if OF_ITEMS.fullmatch(x.name)]
    ranks = [x for x in free if _OF_RANKS.fullmatch(x.name)]
    items = items if named.item is None else [grid.column(named.item)]
    ranks = ranks if named.rank is None else [grid.column(named.rank)]
    taken = {x.name for x in (*items, *ranks)}
    rest = [x for x in free if x.name not in taken]
    judges = [x for x in rest if meaning_of_header(x, named) == "judge"] or rest
    judges = judges if named.judge is None else [grid.column(named.judge)]
    if not len(items) == len(ranks) == len(judges) == 1:
        return None
    judge, item, rank = judges[0], items[0], ranks[0]
    are_ranks = 2 * (numbers_of_ranks([rank]) > 0).sum() > len(rank.codes)
    come_again = all(len(x.values) < len(x.codes) for x in (judge, item))
    is_long = come_again and not all(map(_NUMBER.fullmatch, item.values))
    return (judge.name, item.name, rank.name) if are_ranks and is_long else None


def _are_lists(judge: Column, item: Column, rank: Column) -> bool:
    """Return whether each judge has the ranks 1, 2, … once each, and no item twice.

    Lines with a word that means no rank are passed over, and with any word where the column is
    called so.
    """
    called = _OF_RANKS.fullmatch(rank.name) is not None
    has_none = rank.mapped(
        lambda text: (
            not text
            or said_of_offer(text) is not None
            or (called and not any(map(str.isdecimal, text)) and rank_number(text) < 1)
        ),
        bool,
    )
    if 3 * has_none.sum() < len(rank.codes):
        judge, item, rank = (x.keep(~has_none) for x in (judge, item, rank))
    size = np.bincount(judge.codes)
    are_ids = len(item.values) == len(item.codes) and not called
    if len(judge.codes) < 2 * len(size) or are_ids:
        return False
    most, number = len(rank.codes), whole_number
    if called:  # in words, too
        number = rank_number
    ranks = rank.mapped(lambda text: min(number(text) or 0, most + 1), np.int64)
    if (ranks < 1).any() or (ranks > size[judge.codes]).any():
        return False
    keys = [judge.codes * np.int64(most + 1) + x for x in (ranks, item.codes)]
    return not any(is_repeated(x).any() for x in keys)


def _ask_columns(grid: Grid, spec: QuestionSpec) -> None:
    """Ask for all columns at once, if two or more have no name that says it."""
    named = _named(grid, spec)
    called = _named(grid, spec._replace(judge=None, item=None, rank=None))
    asked = [x for x in _MEANINGS if getattr(called, x) is None]
    is_open = any(getattr(named, x) is None for x in asked)
    if len(asked) < 2 or not is_open or (likely := likely_columns(grid, named)) is None:
        return
    ways = zip(_MEANINGS, likely, strict=True)
    options = names_shown([option(x, name) for x, name in ways if x in asked])
    raise RankingsError(
        f"{grid.name}: which columns have the {', the '.join(asked)}? Name them with "
        f"{options}; the columns are {', '.join(map(repr, grid.columns))}"
    )


def _find_column(grid: Grid, spec: QuestionSpec, meaning: str, names: Collection[str]) -> str:
    """Return the column with a meaning; by default the one that is called so."""
    if (given := getattr(spec, meaning)) is not None:
        return given
    called = [name for name in grid.columns if name.lower() in names]
    if len(called) != 1:
        known = ", ".join(map(repr, grid.columns))
        others = [x for x in grid.cells if x.name not in spec.special]
        others = [x for x in others if _may_be(x, meaning, spec)]
        if meaning == "item" and spec.judge is not None:  # of which no judge ranks any twice
            judges = grid.column(spec.judge).codes
            others.sort(key=lambda x: _num_twice(judges, x))
        likely = others[0].name if others else None
        if likely is None and (three := likely_columns(grid, spec)) is not None:
            likely = dict(zip(_MEANINGS, three, strict=True))[meaning]
        raise RankingsError(
            f"{grid.name}: which column has the {meaning}? Name it with "
            f"{option(meaning, likely)}; the columns are {known}"
        )
    return called[0]


def _num_twice(judges: np.ndarray, column: Column) -> int:
    return int(is_repeated(judges * np.int64(len(column.values)) + column.codes).sum())


def _may_be(column: Column, meaning: str, spec: QuestionSpec) -> bool:
    """Return whether a column may be that of the judges, items or ranks, for an answer."""
    if meaning == "judge":
        return meaning_of_header(column, spec) == "judge"
    if are_times(column):
        return False
    are_ranks = 2 * (numbers_in([column]) > 0).sum() > len(column.codes)
    return bool(are_ranks) == (meaning == "rank")


def _ask_counts(grid: Grid, others: Sequence[Column], spec: QuestionSpec) -> None:
    """Refuse to leave out a column that may say how many judges a list stands for, or weights."""
    judge = grid.column(str(spec.judge))
    first = judge.first_rows()[judge.codes]
    for column in others:
        if (column.codes != column.codes[first]).any() or set(column.values) == {"1"}:
            continue
        says = ""
        if spec.counts is None and meaning_of_header(column, spec) == "count":
            says, way = "how many judges each list stands for", option("count", column.name)
        elif spec.weights is None and _OF_WEIGHTS.fullmatch(column.name):
            says, way = "the survey weight of each judge", option("weight", column.name)
        if says:
            raise RankingsError(
                f"{grid.header_place}: does the column {column.name!r} say {says}? If so, add "
                f"{way}; if it says something else of the judges, "
                f"{option('about', [*spec.about, column.name])}"
            )


def _refuse_several_lists(question: Question, judge: Column, ranks: np.ndarray) -> None:
    """Refuse lists of judges of whom each has several, by a column that is left out."""
    grid, spec = question.grid, question.spec
    others = [x for x in grid.cells if x.name and x.name not in spec.special]
    most = int(ranks.max(initial=0))
    ranked = np.flatnonzero(ranks > 0)
    if not 0 < len(others) <= _MOST_COLUMNS or spec.ties is not None or not len(ranked):
        return
    judges, ranks = judge.codes[ranked], ranks[ranked]
    if not is_repeated(judges * np.int64(most + 1) + ranks).any():
        return
    for column in others:
        keys = judges * np.int64(len(column.values)) + column.codes[ranked]
        lists = np.unique(keys, return_inverse=True)[1]
        size = np.bincount(lists)
        is_one_each = not is_repeated(lists * np.int64(most + 1) + ranks).any()
        if is_one_each and (ranks <= size[lists]).all() and 2 * len(size) <= len(lists):
            raise RankingsError(
                f"{grid.header_place}: judges have several lists, one for each text in "
                f"{column.name!r}, in each of which the ranks 1, 2, … are there once: leave the "
                "rows of one list for each judge in the file, or write who and which list into one "
                f"column for {option('judge')}; {option('ties', 'exact', False)} reads the same "
                "rank as a tie"
            )


def _refuse_codes(question: Question, ranks: np.ndarray, num_items: int) -> None:
    """Refuse a number above that of all items that several lines have, and others have not."""
    grid, spec, rank = question.grid, question.spec, question.columns[0]
    values, counts = np.unique(ranks[ranks > num_items], return_counts=True)
    if len(values) != 1 or counts[0] < 2 or spec.closes_gaps or values[0] == num_items + 1:
        return
    if values[0] in _CODES or values[0] >= 2 * num_items:
        rows = np.flatnonzero(ranks == values[0])
        code = option("missing", [*spec.missing, str(values[0])])
        raise RankingsError(
            f"{grid.at(rows[0], rank)}: rank {values[0]}, but there are {num_items} items"
            f"{grid.also(rows)}; if it means that the item is not ranked, add {code}; if it is a "
            f"rank, {option('gaps', 'close')} keeps the order of the items that are ranked"
        )


def _items(question: Question, judge: Column) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of all items, and the item of each row, which no judge ranks twice."""
    grid, item = question.grid, question.special_column(question.spec.item)
    for column in (judge, item):
        if (blank := column.is_blank()).any():
            rows = np.flatnonzero(blank)
            raise RankingsError(
                f"{grid.at(rows[0], column)} is empty{grid.also(rows)}; write the name in each "
                "row, also where it is that of the row above, or remove such rows"
            )
    names = question.spec.items or tuple(item.values)
    if question.spec.items is None:
        how, words = "remove its rows", words_of_ballots(item.values)
        # a word is left out if it is a missing one
        refuse_missing_items(grid, [item], {*words, *(x for x in names if not says_no_rank(x))})
        refuse_missing_items(grid, [item], words, how)
        total = next((x for x in item.values if is_called_total(x)), None)
        if total is not None and len(item.values) > 2:
            raise RankingsError(
                f"{grid.at_text(item, total)}: is {total!r} an item? If it is a total, {how}; if "
                f"not, name all items with {option('items')}"
            )
    index = {name: k for k, name in enumerate(names)}
    items = item.mapped(lambda name: index.get(name, -1), np.int64)
    if (unknown := items < 0).any():
        row = int(np.argmax(unknown))
        raise RankingsError(
            f"{grid.where(row)}: there is no item {item.text(row)[:40]!r}; expected "
            f"{names_shown(names)}"
        )
    keys = judge.codes * np.int64(len(names)) + items
    if (again := is_repeated(keys)).any():
        row, twice = int(np.argmax(again)), np.unique(judge.codes[again])
        earlier = int(np.argmax(keys == keys[row]))
        others = f", as {len(twice):,} judges do" if len(twice) > 1 else ""
        first, last, drop = (option("duplicates", x) for x in DUPLICATES)
        none = f", {drop} none" if len(twice) < len(judge.values) else ""
        how = f"if these are two answers, {first} or {last} reads one of them{none}"
        wrong = twice[have_other_items(judge.codes, keys)[twice]]
        differ = are_other_ranks(keys, question.columns[0])
        if not np.isin(judge.codes[differ], wrong).any() and len(wrong):
            how = f"the lines say the same: {first} reads one of them{none}"
        elif len(wrong):
            how = "these are not two whole answers: remove the line that is wrong"
            if len(twice) < len(judge.values):
                how += f", or {drop} reads no answer of judges with an item twice"
        raise RankingsError(
            f"{grid.where(row)}: judge {judge.text(row)!r} ranks {item.text(row)!r} twice, also in "
            f"{grid.where(earlier)}{others}{grid.also(np.flatnonzero(again))}; {how}"
        )
    return names, items


def refuse_several_texts(
    question: Question, judge: Column, first: np.ndarray, without_judge: str = ""
) -> None:
    """Refuse a judge of whom the rows say different things.

    :param without_judge: what it is to leave out the option of the judge, if that may be.
    """
    grid, spec = question.grid, question.spec
    for meaning, name in (
        *(("about", name) for name in spec.about),
        ("count", spec.counts),
        ("weight", spec.weights),
        ("offered", spec.offers),
    ):
        if name is None:
            continue
        column = question.special_column(name)
        earlier = first[judge.codes]
        if (differs := column.codes != column.codes[earlier]).any():
            rows = np.flatnonzero(differs)
            row = int(rows[0])
            way = f", or {option('judge')}{without_judge}" if without_judge else ""
            raise RankingsError(
                f"{grid.at(row, column)} is {column.text(row)!r}, but "
                f"{column.text(earlier[row])!r} in an earlier row of judge {judge.text(row)!r}"
                f"{grid.also(rows)}; write the same in all rows of a judge, or leave out "
                f"{option(meaning, name, False)}{way}"
            )
