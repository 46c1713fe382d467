"""Surveys: rankings with the judges who gave them, read from a table.

A table passes through ``grids.py`` (its cells), ``exports.py`` (the columns of a question),
``columns.py`` (the judges and counts) and ``layouts.py`` (the lists), and becomes a survey here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError, build_rankings
from numpyro_rankings.rankings.names import item_names
from numpyro_rankings.readers.aliases import Aliases, read_aliases
from numpyro_rankings.readers.answers import layout_of_cells
from numpyro_rankings.readers.ballots import BallotCounts, Rules, given_rules
from numpyro_rankings.readers.columns import (
    Columns,
    check_columns,
    columns_of_long,
    counts_of,
    judges_of,
    with_index,
)
from numpyro_rankings.readers.exports import (
    Reading,
    Table,
    choose,
    fold_header,
    name_columns,
    read_question,
)
from numpyro_rankings.readers.grids import Grid, read_grid, refuse_ranks_in_brackets
from numpyro_rankings.readers.layouts import (
    BALLOTS,
    LAYOUTS,
    READERS,
    Lists,
    lists_of_ballots,
    places_by_names,
    with_aliases,
)
from numpyro_rankings.readers.votes import Votes, has_words_of_ballots
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_SHOWN = 5  # rows or items in a message
_NAMES_IN_CELLS = ("orders", "long", "cell", "votes")
_UNRANKED, _GAPS = ("below", "not-offered"), ("refuse", "close")


class Survey(NamedTuple):
    """Rankings, and the judges who gave them.

    - **rankings** - one row for each distinct ranking; N rankings in all.
    - **place** - (N,) int, the place of each ranking of the file, in its order, among the N labels
      of a kernel that was run on ``rankings``: ``labels[survey.place]`` are in the file's order.
    - **judges** - (N,) names of the judges, or None if the file has none.
    - **about** - (N,) texts by column: what else the file says about each judge.
    - **layout** - how the file was read.
    - **notes** - what a reader of the file should know, a sentence each.
    - **rows** - (N,) int, the line or row of the file that each ranking is in, or None if that is
      not known.
    - **ballots** - how many ballots each rule touched, or None if the file has no ballots.
    - **items_about** - texts by what they say, such as a party, one for each item; None if the file
      says nothing about them.
    """

    rankings: Rankings
    place: np.ndarray
    judges: list[str] | None
    about: dict[str, list[str]]
    layout: str
    notes: list[str]
    rows: np.ndarray | None = None
    ballots: BallotCounts | None = None
    items_about: dict[str, list[str]] | None = None


def survey_of(rankings: Rankings, layout: str) -> Survey:
    """Return the survey of rankings whose judges are not known."""
    return Survey(rankings, np.arange(rankings.num_rankings), None, {}, layout, [])


def read_layout(
    source: Any,
    layout: str | None = None,
    *,
    judge: str | None = None,
    about: Sequence[str] = (),
    items: Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    count: str | None = None,
    unranked: str = "below",
    gaps: str = "refuse",
    columns: str | Sequence[str] = (),
    header_rows: int | None = None,
    separator: str | None = None,
    missing: str | Sequence[Any] = (),
    highest_first: bool | None = None,
    overvote: str | None = None,
    skipped: int | None = None,
    repeated: str | None = None,
    write_ins: str | None = None,
    max_ranks: int | None = None,
    aliases: Aliases = None,
    contest: str | None = None,
    encoding: str | None = None,
) -> Survey:
    """Read a table of rankings; see :func:`~numpyro_rankings.read_survey`."""
    if layout is not None and layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    for name, value, known in (("unranked", unranked, _UNRANKED), ("gaps", gaps, _GAPS)):
        if value not in known:
            raise RankingsError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
    if contest is not None:
        raise RankingsError(
            "contest goes with cast vote records (.json); of a table, columns picks those of a "
            "contest"
        )
    given = {
        "overvote": overvote,
        "skipped": skipped,
        "repeated": repeated,
        "write_ins": write_ins,
        "max_ranks": max_ranks,
    }
    rules = given_rules(**given)
    names = None if items is None else item_names(items)
    about = (about,) if isinstance(about, str) else about
    source, notes = with_index(source, (judge, item, rank, count, *about))
    table = fold_header(read_grid(source, names or (), encoding), header_rows)
    judge, item, rank, count = (
        None if x is None else table.name_of(x) for x in (judge, item, rank, count)
    )
    patterns = (columns,) if isinstance(columns, str) else tuple(map(str, columns))
    about = tuple(map(table.name_of, about))
    closes_gaps = gaps == "close"
    named = Columns(judge, item, rank, count, about, names, closes_gaps, bool(patterns))
    check_columns(table.grid, named)
    said = missing.split(",") if isinstance(missing, str) else missing
    words = tuple(str(word).strip() for word in said)
    question, more = choose(table, patterns, named.special)
    notes += more
    if layout is None:
        layout, why = _layout_by_names(table, question, bool(patterns), words)
        notes.append(f"read as {option('layout', layout)}, because of the {why}")
    if layout in BALLOTS and gaps != "refuse":
        raise RankingsError(
            f"gaps does not go with the layout {layout}; {option('skipped')} is the rule for blank "
            "ranks"
        )
    if rules is not None and layout not in (*BALLOTS, "ranks"):
        name = next(x for x, value in given.items() if value is not None)
        raise RankingsError(
            f"{name} is a rule of ballots, which the layouts votes, marks and ranks have, not "
            f"{layout}"
        )
    joined = read_aliases(aliases)
    named = named._replace(rules=rules, separator=separator, aliases=joined)
    if layout == "long":
        judge, item, rank = columns_of_long(table.grid, judge, item, rank)
        named = named._replace(judge=judge, item=item, rank=rank)
        check_columns(table.grid, named)
        question = [table.grid.columns.index(rank)]
        if others := [repr(x) for x in table.grid.columns if x and x not in named.special]:
            verb = "column is" if len(others) == 1 else "columns are"
            shown = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
            notes.append(f"{len(others)} other {verb} left out: {shown}")
    elif item is not None or rank is not None:
        raise RankingsError(f"item and rank name columns of the layout long, not of {layout}")
    reading = Reading(
        layout,
        patterns,
        frozenset(named.special),
        separator,
        words,
        highest_first,
        names,
        named.closes_gaps or rules is not None,
        rules is not None,
        item,
    )
    grid, more = read_question(table, question, reading)
    if joined and layout not in BALLOTS:
        grid, of_aliases = with_aliases(grid, named, layout)
        more += of_aliases
    found = READERS[layout](grid, named)
    notes = [*table.grid.notes, *table.notes, *notes, *more]
    return _survey(grid, named, found, layout, unranked == "not-offered", notes)


def _layout_by_names(
    table: Table, question: Sequence[int], is_picked: bool, missing: Sequence[str]
) -> tuple[str, str]:
    """Return the layout that the columns say, and what says it.

    :param question: the columns that have no other meaning.
    :param is_picked: whether they were picked, so that their cells are answers.
    :param missing: texts that mean that nothing is ranked.
    :raises RankingsError: if they do not, showing the first row read in both ways.
    """
    grid = table.grid
    names = {name.lower() for name in grid.columns}
    if not is_picked and {"judge", "item"} <= names and names & {"rank", "position"}:
        return "long", "names of the columns"
    if is_picked and len(question) == 1:
        return "cell", "one column"
    columns = name_columns([table.labels[k] for k in question], (), ()) if is_picked else []
    if has_words_of_ballots([grid.cells[k] for k in question]):
        return "votes", "words such as undervote in its cells"
    if places_by_names(columns or [grid.columns[k] for k in question]):
        return "orders", "names of the columns"
    found = layout_of_cells([grid.cells[k] for k in question], missing) if is_picked else None
    if found is not None:
        return found, "texts of the cells"
    cells = [(grid.cells[k].name, grid.cells[k].text(0)) for k in question[:_SHOWN]]
    more = ", …" if len(question) > _SHOWN else ""
    ranks = ", ".join(f"{name!r} has rank {cell or 'none'}" for name, cell in cells)
    orders = ", ".join(f"{cell or 'nothing'!r} is at place {name!r}" for name, cell in cells)
    raise RankingsError(
        f"{grid.where(0)}: the layout is needed. As ranks (one column for each item), this row "
        f"says: {ranks}{more}. As orders (one column for each place): {orders}{more}. Add "
        f"{option('layout', 'ranks')} or {option('layout', 'orders')}, or "
        f"{option('layout', 'long')} if each row is one judge and one item, or "
        f"{option('layout', 'cell')} if one cell has the whole order"
    )


def survey_of_votes(
    grid: Grid,
    votes: Votes,
    rules: Rules | None,
    aliases: Mapping[str, str],
    *,
    judge: str | None,
    count: str | None,
    about: tuple[str, ...],
    layout: str,
    notes: list[str],
) -> Survey:
    """Return the survey of the votes of a file that is no table of a layout.

    :param grid: columns with the ids, counts and what else is known of each row.
    """
    columns = Columns(judge, None, None, count, about, None, False, False, rules, None, aliases)
    found = lists_of_ballots(grid, columns, votes)
    return _survey(grid, columns, found, layout, False, notes)


def _survey(
    grid: Grid, columns: Columns, found: Lists, layout: str, not_offered: bool, notes: list[str]
) -> Survey:
    """Put the lists together with what the table says about their judges."""
    if len(found.items) < 2:
        raise RankingsError(
            f"{grid.name}: a ranking needs at least 2 items, got {len(found.items)}"
        )
    if layout in _NAMES_IN_CELLS and columns.items is None:
        refuse_ranks_in_brackets(found.where(0), found.items)
    is_listed = found.orderings >= 0
    is_kept = is_listed.any(1)
    kept = np.flatnonzero(is_kept)
    if not len(kept):
        raise RankingsError(f"{grid.name}: no row ranks any item")
    notes += found.notes
    if found.ballots is None and (empty := np.flatnonzero(~is_kept).tolist()):
        shown = ", ".join(map(found.where, empty[:_SHOWN])) + (", …" if len(empty) > _SHOWN else "")
        verb = "ranks nothing and is" if len(empty) == 1 else "rank nothing and are"
        notes.append(f"{plural(len(empty), 'judge')} {verb} left out: {shown}")
    if found.num_closed:
        notes.append(f"gaps were closed in {plural(found.num_closed, 'list')}")
    rows, num_items = found.rows[kept], len(found.items)
    lengths = is_listed[kept].sum(1)
    orderings = found.orderings[kept, : lengths.max()]
    counts = counts_of(grid, columns.counts, rows)
    # a list of all items but one says the same as the full one, if all were offered
    is_partial = (lengths < (num_items if not_offered else num_items - 1)).any()
    if is_partial and (found.ballots is None or not_offered):
        meaning, other = "ranked below the others", "not-offered"
        if not_offered:
            meaning, other = "not offered", "below"
        why = "they rank below the others" if not_offered else "they were not offered"
        notes.append(
            f"items that a judge does not rank are read as {meaning}: use "
            f"{option('unranked', other)} if {why}"
        )
    choice_sets = None
    if not_offered and is_partial:
        choice_sets = np.zeros((len(orderings), num_items), bool)
        of, place = np.nonzero(orderings >= 0)
        choice_sets[of, orderings[of, place]] = True
    of_each = build_rankings(
        orderings, found.items, counts, choice_sets, where=lambda k: found.where(int(kept[k]))
    )
    judges = None
    if columns.judge is not None:
        judges = np.repeat(judges_of(grid, columns.judge, rows), counts).tolist()
    about = {}
    for name in columns.about:
        column = grid.column(name)
        texts = np.array(column.values, object)[column.codes[rows]]
        about[name] = np.repeat(texts, counts).tolist()
    merged, row_of_each = of_each.merged()
    place = np.empty(of_each.num_rankings, int)
    place[np.argsort(np.repeat(row_of_each, counts), kind="stable")] = np.arange(len(place))
    numbers = np.repeat(grid.numbers[rows], counts)
    return Survey(merged, place, judges, about, layout, notes, numbers, found.ballots)
