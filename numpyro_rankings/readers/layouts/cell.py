"""One cell for each judge, with all items that the judge ranks, best first."""

import ast
import contextlib
import itertools
import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.readers.answers import (
    RANK_OF,
    cells_are_ranks,
    numbers_in,
    refuse_missing_items,
    text_key,
    without_missing,
)
from numpyro_rankings.readers.ballots import OVERVOTE
from numpyro_rankings.readers.grids import Column, Grid, hint_of_cut_name
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.layouts.base import MARK_WORDS, Lines
from numpyro_rankings.readers.layouts.orders import Orders
from numpyro_rankings.readers.lists import remedy_of_gap
from numpyro_rankings.readers.mixed_lists import (
    ANY,
    mark_in,
    marks_that_differ,
    refuse_beside_lists,
    refuse_numbers_before,
    refuse_other_marks,
    split_at_own,
)
from numpyro_rankings.readers.questions import (
    Question,
    QuestionSpec,
    meaning_of_header,
    options_beside,
)
from numpyro_rankings.readers.tied_names import (
    TIE,
    TiedNames,
    find_ties,
    inside_brackets,
    is_outside,
    options_of_unsure,
    readable_mark,
    split_outside,
)
from numpyro_rankings.readers.votes import sure_words_of_ballots, words_of_ballots
from numpyro_rankings.words import plural, shorten
from numpyro_rankings.words.options import option

_SHOWN, _LENGTH = 3, 60  # items in a message, and letters of a text
_MARKS = ("->", ";", ">", "|", "\n", ",", "→", "≻")
_RARE_MARKS = "-", "/", "_", "=", "."  # between items, and more often within names
_WORST_FIRST = "<-", "<", "≺", "←"  # between items, of which the last may be the best
_ARROW = re.compile(r"\s*(?:->|[>≻→])\s*")
_NUMBER_OF_ITEM = re.compile(r"(?:^|(?<=\s))[(#]?(\d{1,3})[.)]\s+(?=\S)")
_WITH_RANK = re.compile(r".*\S\s*(?:[:=]\s*\d{1,3}|\(\d{1,3}\))", re.DOTALL)
_NUMBERED = re.compile(r"[(#]?(\d{1,3})\s*[.):](?!\d)\s*(.+)", re.DOTALL)  # not 1.5
_SIDE_BY_SIDE = re.compile(r"[\"']\s+[\"']")
# around a whole list, as in [Ann, Bob], {Ann, Bob}, <Ann, Bob> and c(Ann, Bob)
_AROUND = re.compile(r"(?:\[([^\[\]]*)\]|\{([^{}]*)\}|<([^<>]*)>|c?\(([^()]*)\))", re.DOTALL)


class Cell(Orders):
    """One cell for each judge, which is split into places."""

    name = "cell"
    columns_are = "the list"

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """A single column was picked, or is there."""
        is_single = spec.patterns or len(table.grid.columns) == 1
        return "one column" if is_single and len(picked) == 1 else ""

    def check_question(self, grid: Grid, picked: Sequence[int], spec: QuestionSpec) -> None:
        """Refuse several columns."""
        super().check_question(grid, picked, spec)
        if len(picked) != 1:
            refuse_beside_lists(grid, [grid.cells[k] for k in picked], spec)
            names = [repr(shorten(grid.columns[k], _LENGTH)) for k in picked]
            raise RankingsError(
                f"{grid.name}: the layout cell has one column, not {len(names)}; pick it with "
                f"{option('columns')}{_other_layout(grid, picked, spec)}; the columns are "
                f"{names_counted(names, 12)}"
            )

    def read_cells(self, question: Question) -> Question:
        """Split the cells into a column for each place."""
        grid, spec = question.grid, question.spec
        (column,), _ = without_missing(grid, question.columns, spec.missing, None)
        # between lists of JSON, one in each line
        column = column.with_texts(lambda text: re.sub(r"(?<=[\])}]),$", "", text))
        read = _lists_of_cells(grid, column, spec)
        places = _places_of_lists(grid, column, read, spec)
        # a word may be a whole cell, or at a place of a list
        every = [*question.columns, *places]
        (_, *places), missing = without_missing(
            grid, every, spec.missing, None, "place", spec.left_out
        )
        known = {*(spec.items or ()), *sure_words_of_ballots(places), *read.ties.unsure}
        refuse_missing_items(grid, places, known)
        _refuse_unsure(grid, column, read, spec)
        notes = [*read.notes, *_notes_of_ties(column, read)]
        question = question._replace(spec=spec._replace(tie_mark=read.mark))
        return question.with_columns(places, [*missing, *notes])

    def refuse_words_of_ballots(self, question: Question, words: Sequence[str]) -> NoReturn:
        """Refuse words such as undervote: no rules of ballots are applied to lists."""
        is_answer = OVERVOTE not in words_of_ballots(words).values()  # at which a list may end
        missing = option("missing", [*question.spec.missing, *words], is_answer)
        raise RankingsError(
            f"{question.grid.name}: some places in the lists have words such as {words[0]!r}; add "
            f"{missing} if nothing is ranked there, or {option('items')} with all names if these "
            f"are names; with a column for each rank, {option('layout', 'votes', False)} has rules "
            "for ballots"
        )

    def table(self, orderings: np.ndarray, items: tuple[str, ...]) -> Lines:
        """Write the items with a semicolon behind each."""
        if wrong := [item for item in items if ";" in item]:
            raise RankingsError(
                f"the item name {wrong[0]!r} contains a semicolon; use another layout"
            )
        named = np.array([*(f"{item};" for item in items), ""], object)[orderings]
        return np.arange(len(orderings)), {"order": ["".join(row) for row in named.tolist()]}


def _other_layout(grid: Grid, picked: Sequence[int], spec: QuestionSpec) -> str:
    """Return the layout of several columns of which none has lists, for a message."""
    columns = [grid.cells[k] for k in picked]
    places = f", or add {option('layout', 'orders')} if each column is a place"
    if any(mark in text for column in columns for text in column.values for mark in _MARKS):
        return "" if spec.has_header else places
    names = {name.casefold() for name in grid.columns}
    beside = next((x for x in columns if meaning_of_header(x, spec)), None)
    if beside is not None and not ("item" in names and names & {"rank", "position"}):
        return f", or {options_beside(beside, spec)}"
    if "item" in names and names & {"rank", "position"}:
        return f", or add {option('layout', 'long')} if each row is one judge and one item"
    if cells_are_ranks(columns, spec.missing) or 2 * (numbers_in(columns) > 0).mean() > 1:
        return f", or add {option('layout', 'ranks')} if each column is an item with its ranks"
    return places


_Split = Callable[[str], list[str]]


class _Lists(NamedTuple):
    """How cells are read."""

    split: _Split  # the texts at the places of a list, with the mark between those that are tied
    mark: str
    ties: TiedNames
    parts: list[str]  # the distinct texts at places, before ties are found
    notes: list[str]


def _lists_of_cells(grid: Grid, column: Column, spec: QuestionSpec) -> _Lists:
    """Return how cells that hold a whole order are read."""
    texts = [text for text in column.values if text]
    if not texts:
        return _Lists(lambda text: [], TIE, TiedNames({}, {}, []), [], [])
    split, notes = _way_without_brackets(grid, column, texts, spec)
    parts = list(dict.fromkeys(x for text in texts for x in split(text) if x))
    arrows = next((m[0] for text in texts if (m := _ARROW.search(text))), "")
    if any(map(_ARROW.search, parts)):
        arrows = ""
    known = None if spec.items is None else {*spec.items, *spec.aliases}
    # brackets without a name are an empty place
    empty = {x: "" for x in parts if inside_brackets(x) == "" and x not in (known or ())}
    parts = [x for x in parts if x not in empty]
    ties = find_ties([x for x in parts if TIE not in x], known, set(spec.aliases), arrows)
    if half := next((x for x, names in ties.names.items() if not all(names)), None):
        text = next(x for x in texts if half in split(x))
        raise RankingsError(
            f"{grid.at_text(column, text)}: {half[:40]!r} has an empty name beside a mark of ties"
            f"{'; write > or = instead of >=' if '>=' in text else ''}"
        )
    _refuse_list_as_tie(grid, column, texts, split, ties)
    joined = {x: TIE.join(names) for x, names in ties.names.items()}
    every = [joined.get(x, x) for x in parts]
    mark = readable_mark(every)
    new = empty | {x: y.replace(TIE, mark) for x, y in zip(parts, every, strict=True)}

    def with_ties(text: str) -> list[str]:
        return [new.get(x, x) for x in split(text)]

    return _Lists(with_ties, mark, ties, parts, notes)


def _places_of_lists(grid: Grid, column: Column, read: _Lists, spec: QuestionSpec) -> list[Column]:
    """Split cells that hold a whole order into a column for each place.

    Words that mean that nothing is ranked stay, and are no items.
    """
    if not read.parts:
        return [column]
    known = None if spec.items is None else {*spec.items, *spec.aliases}
    index: dict[str, int] = {"": 0}
    lengths = np.zeros(len(column.values), np.int32)
    flat = array("i")
    words = {text_key(word) for word in spec.missing}

    def said_of(parts: list[str]) -> list[str]:
        return _without_end(["" if words and text_key(x) in words else x for x in parts])

    for k, text in enumerate(column.values):
        parts = _without_end(read.split(text))
        said = said_of(parts)
        listed = [name for x in said if x for name in x.split(read.mark)]
        if (
            (len(listed) < len(said) and not spec.closes_gaps)
            or len(set(listed)) < len(listed)
            or (known is not None and not known.issuperset(listed))
        ):
            has_gap = column.mapped(lambda x: "" in said_of(_without_end(read.split(x))), bool)
            fill = f"{option('gaps', 'fill')} puts an item there that is the only one left out"
            hint = f"{remedy_of_gap('', int(has_gap.sum()), spec.is_not_offered)}, and {fill}"
            _refuse_list(grid.at_text(column, text), said, listed, spec, hint)
        lengths[k] = len(parts)
        for part in parts:
            flat.append(index.setdefault(part, len(index)))
    places = np.arange(max(1, lengths.max()))
    codes = np.zeros((len(lengths), len(places)), np.int32)
    codes[places < lengths[:, None]] = flat
    every = np.ones(len(column.codes), bool)
    names = list(index)
    columns = [Column(f"place {k + 1}", names, codes[column.codes, k]) for k in places]
    return [column.keep(every) for column in columns]


def _notes_of_ties(column: Column, read: _Lists) -> list[str]:
    """Return at how many places items are tied, and which texts were read as one name."""
    notes = []
    if any(read.mark in x for text in column.values for x in read.split(text)):
        counts = column.counts()
        tied = [(x, text) for text in counts for x in read.split(text) if read.mark in x]
        number = sum(counts[text] for _, text in tied)
        notes.append(
            f"{plural(number, 'tie')} in the cells, such as {shorten(tied[0][0], _LENGTH)}"
        )
    if joined := read.ties.joined:
        shown = names_shown([repr(shorten(x, _LENGTH)) for x in joined])
        notes.append(f"read as one item, because its parts are at no other place: {shown}")
    return notes


def _refuse_unsure(grid: Grid, column: Column, read: _Lists, spec: QuestionSpec) -> None:
    """Refuse a text that may be one name, or several that are tied."""
    words = {text_key(word) for word in spec.missing}
    unsure = next((x for x in read.ties.unsure if text_key(x) not in words), None)
    if unsure is None:
        return
    text = next(x for x in column.values if unsure in read.split(x))
    parts = [x for x in read.parts if text_key(x) not in words]
    raise RankingsError(
        f"{grid.at_text(column, text)}: is {shorten(unsure, _LENGTH)!r} one name, or several that "
        f"are tied? {options_of_unsure(read.ties, parts, unsure)}"
    )


def _refuse_list_as_tie(
    grid: Grid, column: Column, texts: Sequence[str], split: _Split, ties: TiedNames
) -> None:
    """Refuse brackets around a whole list, where no other list has them around a part."""
    lists = [split(text) for text in texts]
    in_brackets = {x for x in (*ties.names, *ties.unsure) if inside_brackets(x)}
    if any(len(x) > 1 and not in_brackets.isdisjoint(x) for x in lists):
        return
    k = next((k for k, x in enumerate(lists) if len(x) == 1 and x[0] in in_brackets), None)
    if k is not None:
        raise RankingsError(
            f"{grid.at_text(column, texts[k])}: {shorten(texts[k], _LENGTH)!r} is in brackets, and "
            "other lists are not: take the brackets off if it is a list, or write = between the "
            "names if all are tied"
        )


def _without_end(parts: list[str]) -> list[str]:
    """Return a list up to its last text that is not empty."""
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _way_without_brackets(
    grid: Grid, column: Column, texts: Sequence[str], spec: QuestionSpec
) -> tuple[_Split, list[str]]:
    """Return how cells are split; if all have brackets around the list, these are taken off."""
    inside = {text: x for text in texts if (x := _without_brackets(text)) is not None}
    if len(inside) < len(texts) or all(_list_in(text) is not None for text in texts):
        return _way_to_split(grid, column, texts, spec)
    bare = column.with_texts(lambda text: inside.get(text, text))
    lists = [text for text in bare.values if text]
    split, notes = _way_to_split(grid, bare, lists, spec)
    listed = [x for text in lists for x in split(text) if x]
    has_quotes = all(len(x) > 2 and x[0] == x[-1] and x[0] in "\"'" for x in listed)

    def parts(text: str) -> list[str]:
        names = split(inside.get(text, text))
        return [x[1:-1].strip() if has_quotes else x for x in names]

    about = f"column {column.name!r}: the brackets around the lists were taken off"
    return parts, [about, *notes]


def _without_brackets(text: str) -> str | None:
    """Return what is in the brackets around a whole cell, or None if there are none."""
    match = _AROUND.fullmatch(text)
    if match is None:
        return inside_brackets(text)  # which may have others within
    return next(x for x in match.groups() if x is not None).strip()


def _way_to_split(
    grid: Grid, column: Column, texts: Sequence[str], spec: QuestionSpec
) -> tuple[_Split, list[str]]:
    """Return how cells are split into items; the numbers in front of them are taken off."""
    split, note = _way_by_marks(grid, column, texts, spec)
    notes = [f"column {column.name!r}: {note}"]
    listed = [name for x in split(texts[0]) if x for name in x.split(TIE)]
    if spec.items is not None and set(spec.items).issuperset(listed):
        return split, notes
    if all(_NUMBERED.fullmatch(x) for text in texts for x in split(text) if x):
        notes.append("the numbers of the items in the cells were taken off")
        return _without_numbers(grid, column, split), notes
    if spec.items is None:  # else the names that are unknown are told
        _refuse_parts(grid, column, texts, split, spec)
    return split, notes


def _way_by_marks(
    grid: Grid, column: Column, texts: Sequence[str], spec: QuestionSpec
) -> tuple[_Split, str]:
    """Return how cells are split at brackets, numbers or separators."""
    if all(_list_in(text) is not None for text in texts):
        return lambda text: _list_in(text) or [], "the cells are lists in brackets"
    if spec.separator is None and all(map(_is_numbered, texts)):
        return _split_numbered, "the items are separated by their numbers"
    if spec.separator == ANY:
        counts = Counter(own for text in texts if (own := mark_in(text)))
        shown = names_shown([f"{own!r} in {plural(k, 'text')}" for own, k in counts.items()])
        return split_at_own, f"each cell is split at its own mark between the items, {shown}"
    mark = MARK_WORDS.get(spec.separator or "", spec.separator)
    mark = mark or _mark_of(grid, column, texts, spec)
    if not any(is_outside(mark, text) for text in texts):
        raise RankingsError(
            f"{grid.at_text(column, texts[0])}: the separator {mark!r} is in no cell, such as "
            f"{shorten(texts[0], _LENGTH)!r}"
        )
    if spec.items is None:
        refuse_other_marks(grid, column, texts, mark)

    def split(text: str) -> list[str]:
        return split_outside(text, mark)

    return split, f"the items are separated by {mark!r}"


def _refuse_list(
    where: str, parts: Sequence[str], names: Sequence[str], spec: QuestionSpec, hint: str
) -> NoReturn:
    """Say why the parts of a cell are no list of items, and a hint if a place is empty."""
    if "" in parts and not spec.closes_gaps:
        shown = shorten("; ".join(parts), _LENGTH)
        if not any(x and not x.isdecimal() for x in parts):
            hint = (
                "if the numbers are ranks, split the cells into a column for each item, and add "
                f"{option('layout', 'ranks', False)}"
            )
        raise RankingsError(f"{where}: place {parts.index('') + 1} is empty in {shown!r}; {hint}")
    twice = next((x for k, x in enumerate(names) if x in names[:k]), None)
    if twice is not None:
        raise RankingsError(f"{where}: {twice!r} is listed twice{hint_of_cut_name(twice)}")
    known = list(spec.items or ())
    unknown = next(x for x in names if x not in known)
    raise RankingsError(
        f"{where}: there is no item {unknown[:40]!r}; expected {names_shown(known, _SHOWN)}"
    )


def _list_in(text: str) -> list[str] | None:
    """Return the list in a cell such as ``["A","B"]`` or ``['A', 2]``, of JSON or of Python.

    Lists in it, as in ``["A", ["B", "C"]]``, are ties.
    """
    if not text.startswith("["):
        return None
    # Python joins texts without a comma between them, which NumPy writes so
    is_python = _SIDE_BY_SIDE.search(text) is None
    for read in (json.loads, ast.literal_eval)[: 1 + is_python]:
        with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = read(text)
            places = [x if isinstance(x, list | tuple | set) else [x] for x in value]
            if all(type(name) in (str, int) for names in places for name in names):
                return [TIE.join(str(name).strip() for name in names) for names in places]
    return None


def _split_numbered(text: str) -> list[str]:
    """Split ``1. A 2. B`` before the numbers, which stay."""
    starts = [x.start() for x in _NUMBER_OF_ITEM.finditer(text)]
    return [text[k:end].strip() for k, end in itertools.pairwise([*starts, len(text)])]


def _is_numbered(text: str) -> bool:
    """Return whether a cell is ``1. A 2. B``, with no other mark between the items."""
    numbers = [int(x[1]) for x in _NUMBER_OF_ITEM.finditer(text)]
    is_first = _NUMBER_OF_ITEM.match(text) is not None
    is_marked = any(mark in text for mark in _MARKS)
    return is_first and not is_marked and numbers == list(range(1, len(numbers) + 1))


def _refuse_parts(
    grid: Grid, column: Column, texts: Sequence[str], split: _Split, spec: QuestionSpec
) -> None:
    """Refuse parts of cells that are parts of something else than a list of names."""
    parts = [(text, x) for text in texts for x in split(text) if x]
    refuse_numbers_before(grid, column, texts, spec)
    for text, x in parts:
        if any(x.count(one) != x.count(other) for one, other in ("[]", "()", "{}")):
            raise RankingsError(
                f"{grid.at_text(column, text)}: {x[:40]!r} has a bracket without its other half; "
                "write the items with a semicolon between them, or name them all with "
                f"{option('items')}"
            )
    if all(_WITH_RANK.fullmatch(x) or RANK_OF.match(x) for _, x in parts):
        text, x = parts[0]
        raise RankingsError(
            f"{grid.at_text(column, text)}: {x[:40]!r} seems to be an item and its rank; write the "
            f"items in order, without numbers, or name them all with {option('items')}"
        )


def _mark_of(grid: Grid, column: Column, texts: Sequence[str], spec: QuestionSpec) -> str:
    """Return what separates the items in cells; if several marks may, show a cell in both ways."""
    marks = [mark for mark in _MARKS if any(is_outside(mark, text) for text in texts)]
    if "->" in marks and not any(">" in text.replace("->", "") for text in texts):
        marks.remove(">")
    if len(marks) > 1:
        # some tools write it behind each item
        ends = [mark for mark in marks if all(text.endswith(mark) for text in texts)]
        marks = ends if len(ends) == 1 else marks
    if len(marks) > 1 and spec.items is not None:
        known = {*spec.items, ""}
        fits = [m for m in marks if all(x in known for t in texts for x in split_outside(t, m))]
        marks = fits if len(fits) == 1 else marks
    if len(marks) == 1:
        return marks[0]
    if not marks:
        for mark in _WORST_FIRST:
            if text := next((x for x in texts if is_outside(mark, x)), ""):
                raise RankingsError(
                    f"{grid.at_text(column, text)}: is the first or the last item of "
                    f"{shorten(text, _LENGTH)!r} the best? {option('separator', mark, False)} "
                    "reads the first as the best; if it is the last, turn the lists round in the "
                    "file, the best first, with > between the items"
                )
        _refuse_single_names(grid, column, texts, spec.judge)
    text = max(texts, key=lambda text: sum(mark in text for mark in marks))
    words = {mark: word for word, mark in MARK_WORDS.items()}
    ways = [
        f"With {option('separator', words.get(mark, mark))} it is "
        f"{[x for x in split_outside(text, mark) if x]}"
        for mark in marks
        if mark in text
    ]
    if differ := marks_that_differ(texts):
        lists = names_shown([str(split_at_own(x)) for x in differ.values()], _SHOWN)
        own = f"With {option('separator', ANY)}, each cell at its own mark, they are {lists}"
        # tied items have | between them, too
        ways = [*ways, own] if "|" in differ else [own, *ways]
    raise RankingsError(
        f"{grid.at_text(column, text)}: what separates the items? {'; '.join(ways)}"
    )


def _refuse_single_names(
    grid: Grid, column: Column, texts: Sequence[str], judge: str | None
) -> NoReturn:
    """Say which layout a column has whose cells are no lists, as far as they show."""
    where = f"{grid.at_text(column, texts[0])}: {shorten(texts[0], _LENGTH)!r}"
    words = [re.findall(r"[^\s()\[\]{}]+", text) for text in texts]
    often = Counter(x for listed in words for x in set(listed))
    has_blanks = any(len(listed) > 1 for listed in words)
    # a word that comes twice in a cell is no item, such as then in A then B then C
    between = [x for x in often if often[x] == len(texts) and max(y.count(x) for y in words) > 1]
    if len(between) == 1:
        raise RankingsError(
            f"{where}: what separates the items? {between[0]!r} does with "
            f"{option('separator', f' {between[0]} ')}"
        )
    if len(texts) > 1 and has_blanks and min(often.values()) > 1:
        raise RankingsError(
            f"{where}: what separates the items? Blanks do with {option('separator', 'space')}; "
            f"name another text with {option('separator')}"
        )
    one = f"{where} is a single {'number' if texts[0].isdecimal() else 'name'}, as in all cells"
    if has_blanks:
        one = f"{where} has no mark between items, nor has any cell"
    lists = f"; if the cells are lists, name what separates the items with {option('separator')}"
    if judge is not None and max(grid.column(judge).counts().values()) > 1:
        raise RankingsError(
            f"{one}, and judges have several rows: write the items of a judge in one cell, as "
            f"'A > B', or their ranks in a column of their own, and add "
            f"{option('layout', 'long', False)}, without {option('columns')}{lists}"
        )
    if len(grid.cells) == 1 and has_blanks:
        raise RankingsError(
            f"{one}: name what separates the items with {option('separator')}; if each cell is "
            "the only choice of a judge, write the judges in a column beside it"
        )
    for mark in _RARE_MARKS:
        parts = {tuple(sorted(x.strip() for x in text.split(mark))) for text in texts}
        if len(texts) > 1 and len(parts) == 1 and len(min(parts)) > 2 and all(min(parts)):
            raise RankingsError(
                f"{where} has {mark!r} between parts that are in all cells, in other orders: add "
                f"{option('separator', mark)} if these are the items"
            )
    if len({"".join(sorted(text)) for text in texts}) == 1 < len(texts) and len(texts[0]) > 2:
        raise RankingsError(
            f"{one}, and all have the same letters: write a mark between them if each is an item, "
            f"as in {'>'.join(texts[0][:_SHOWN])!r}, or add {option('layout', 'orders', False)} if "
            "these are names"
        )
    raise RankingsError(
        f"{one}: add {option('layout', 'orders')} if it is the only choice of a judge, or a place "
        f"among others that {option('columns')} picks too{lists}"
    )


def _without_numbers(grid: Grid, column: Column, split: _Split) -> _Split:
    """Return a function that takes the numbers off lists such as ``1. A; 2. B``."""

    def without(text: str) -> list[str]:
        matches = [x for part in split(text) if (x := _NUMBERED.fullmatch(part))]
        numbers = [int(x[1]) for x in matches]
        if numbers != list(range(1, len(numbers) + 1)):
            raise RankingsError(
                f"{grid.at_text(column, text)}: the items are numbered "
                f"{', '.join(map(str, numbers[:10]))}, not 1, 2, …: is it the order or the number "
                "that counts? Write the items in order, without numbers"
            )
        return [x[2].strip() for x in matches]

    return without
