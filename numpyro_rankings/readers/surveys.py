"""The last stage of a file: surveys, which are rankings with the judges who gave them.

A table passes through four stages: a :class:`~.grids.Grid` of cells, a
:class:`~.questions.Question` whose columns a layout reads, :class:`~.lists.Lists` of items, and a
:class:`Survey`.
"""

import re
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings import Orders, Rankings, RankingsError, build_rankings
from numpyro_rankings.rankings.comparisons import build_comparisons
from numpyro_rankings.rankings.counts import mistakes_in_words
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.rankings.orderings import listed_items
from numpyro_rankings.rankings.partial_orders import build_partial_orders
from numpyro_rankings.rankings.preferences import above_of_levels
from numpyro_rankings.rankings.weights import WeightedRankings
from numpyro_rankings.readers.added_columns import without_added_columns
from numpyro_rankings.readers.answers import stands_for_rest
from numpyro_rankings.readers.ballots import BallotCounts
from numpyro_rankings.readers.beside import refuse_column_beside
from numpyro_rankings.readers.first_rows import refuse_ballot_as_header, refuse_number_of_ballot
from numpyro_rankings.readers.grids import (
    Grid,
    notes_of_cut_names,
    read_grid,
    refuse_ranks_in_brackets,
)
from numpyro_rankings.readers.headers import (
    below_title,
    below_title_alone,
    choose,
    fold_header,
    without_names_again,
)
from numpyro_rankings.readers.layouts import LAYOUTS, layout_of_table, refuse_pairs
from numpyro_rankings.readers.layouts.long import has_ranks
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.mixed_lists import numbers_apart
from numpyro_rankings.readers.other_questions import columns_of_pairs, refuse_best_and_worst
from numpyro_rankings.readers.preflib import PREFLIB
from numpyro_rankings.readers.questions import (
    QuestionSpec,
    TableOptions,
    read_aliases,
    read_counts,
    read_judges,
    read_offers,
    read_weights,
    refuse_judges_left_out,
    with_names_of_columns,
)
from numpyro_rankings.readers.ratings import refuse_words_of_ratings, with_numbers_of_stars
from numpyro_rankings.readers.ties import settle_ties
from numpyro_rankings.readers.tournaments import refuse_tournaments
from numpyro_rankings.readers.turned import refuse_judges_in_columns, turn
from numpyro_rankings.readers.votes import is_write_in, words_of_ballots
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_MOST_ITEMS_NAMED = 30  # in a message that has an option with all of them
# where a remark behind a name may begin; numbers in brackets, as in Ann (5931), are codes
_REMARK = re.compile(r"\s+#|\s*\((?=.*[^\W\d])", re.DOTALL)
_RARE = 0.05  # probability that no judge ranks the own item, if each could


class Survey(NamedTuple):
    """Rankings, and the judges who gave them.

    - **rankings** - one row for each distinct ranking; N rankings in all. Partial orders if some
      judges tie items, or compare pairs; comparisons if these may be mistakes.
    - **label_index** - (N,) int, the place of each ranking of the file, in its order, among the N
      labels of a kernel that was run on ``rankings``: ``labels[survey.label_index]`` are in the
      file's order.
    - **judges** - (N,) names of the judges, or None if the file has none.
    - **about** - (N,) texts by column: what else the file says about each judge.
    - **layout** - how the file was read.
    - **notes** - what a reader of the file should know, a sentence each.
    - **rows** - (N,) int, the line or row of the file that each ranking is in, or None if that is
      not known.
    - **ballots** - how many ballots each rule touched, or None if the file has no ballots.
    - **weights** - (N,) survey weight of each judge, as the file has them, or None if none were
      asked for.
    - **items_about** - texts by what they say, such as a party, one for each item; None if the file
      says nothing about them.
    """

    rankings: Rankings | Orders
    label_index: np.ndarray
    judges: list[str] | None
    about: dict[str, list[str]]
    layout: str
    notes: list[str]
    rows: np.ndarray | None = None
    ballots: BallotCounts | None = None
    items_about: dict[str, list[str]] | None = None
    weights: np.ndarray | None = None

    @property
    def place(self) -> np.ndarray:
        """The former name of **label_index**, for one version more."""
        warnings.warn("Survey.place is now label_index", DeprecationWarning, stacklevel=2)
        return self.label_index


def survey_of(rankings: Rankings | Orders, layout: str) -> Survey:
    """Return the survey of rankings whose judges are not known."""
    return Survey(rankings, np.arange(rankings.num_rankings), None, {}, layout, [])


def with_top(survey: Survey, top: int) -> Survey:
    """Return a survey with the first items of each list only; what was offered stays."""
    if not isinstance(top, int | np.integer) or isinstance(top, bool) or top < 1:
        raise RankingsError(f"top is a whole number from 1, not {top!r}")
    whole = survey.rankings
    if not isinstance(whole, Rankings):
        raise RankingsError(
            f"{option('top', top)} goes with lists in which no items are tied: add "
            f"{_ways_of_ties(survey.layout)}; it does not go with pairs"
        )
    lengths, counts = np.asarray(whole.lengths), np.asarray(whole.counts)
    number = int(counts[lengths > top].sum())
    note = f"{option('top', top)}: {plural(number, 'list')} of {counts.sum():,} had more items"
    if not number:
        return survey._replace(notes=[*survey.notes, note])
    orderings = np.asarray(whole.orderings)[:, :top]
    cut = build_rankings(orderings, whole.items, counts, whole.choice_sets)
    if isinstance(whole, WeightedRankings):
        cut = whole.with_lists(cut)
    merged, rows = cut.merged()
    label_index = _places(rows[np.asarray(whole.row_index)[survey.label_index]])
    return survey._replace(rankings=merged, label_index=label_index, notes=[*survey.notes, note])


def _may_stop(layout: str) -> bool:
    """Return whether the rules of ballots may end lists of a file before their ties."""
    return layout == PREFLIB or (layout in LAYOUTS and LAYOUTS[layout].takes_rules)


def _ways_of_ties(layout: str) -> str:
    """Return the options that leave no ties, for a message."""
    drop, order = (option("ties", x, False) for x in ("drop", "order"))
    stop = f", or {option('overvote', 'stop', False)}" if _may_stop(layout) else ""
    return f"{drop}, or {order}{stop}"


def merged_survey_of(rankings: Rankings | Orders, layout: str) -> Survey:
    """Return the survey of rankings as they follow each other in a file, with equal rows merged."""
    return Survey(*_merged(rankings), None, {}, layout, [])


def _merged(
    by_row: Rankings | Orders,
) -> tuple[Rankings | Orders, np.ndarray]:
    """Merge equal rows; return the place of each ranking among labels in the order of the new ones.

    The places are in the order of the rows before.
    """
    merged, rows = by_row.merged()
    return merged, _places(np.repeat(rows, np.asarray(by_row.counts)))


def with_sample(survey: Survey, number: int) -> Survey:
    """Return a survey of so many of its judges, drawn at random, the same at every run."""
    whole = survey.rankings
    if number >= (total := whole.num_rankings):
        return survey
    kept = judges_drawn(total, number)
    row_of_judge = np.asarray(whole.row_index)[survey.label_index][kept]
    counts = np.bincount(row_of_judge, minlength=whole.num_rows)
    rows = np.flatnonzero(counts)
    note = f"{number:,} of {plural(total, 'judge')} drawn at random"
    new_row, taken, weights = np.searchsorted(rows, row_of_judge), whole, survey.weights
    if isinstance(whole, WeightedRankings) and weights is not None:
        note = f"{note}, and the judges keep their weights"
        weights = weights[kept]
        if not weights.any():
            raise RankingsError("all judges of the sample have weight 0: draw more")
        taken = whole.unweighted()
    taken = taken._take(rows, counts[rows])
    if weights is not None and isinstance(taken, Rankings):
        taken = WeightedRankings.of_judges(taken, new_row, weights)
    return survey._replace(
        rankings=taken,
        weights=weights,
        label_index=_places(new_row),
        judges=None if survey.judges is None else [survey.judges[k] for k in kept],
        about={name: [texts[k] for k in kept] for name, texts in survey.about.items()},
        rows=None if survey.rows is None else np.asarray(survey.rows)[kept],
        notes=[*survey.notes, note],
    )


def judges_drawn(total: int, number: int) -> np.ndarray:
    """Return which of all judges are drawn, in their order, (number,)."""
    return np.sort(np.random.default_rng(0).choice(total, number, replace=False))


def _places(rows: np.ndarray) -> np.ndarray:
    """Return the place of each ranking among labels in the order of the rows, given its row."""
    return np.argsort(np.argsort(rows, kind="stable"))


def read_layout(source: Any, layout: str | None = None, **options: Any) -> Survey:
    """Read a table of rankings; see :func:`~numpyro_rankings.read_survey`."""
    if layout is not None and layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    given = TableOptions(**options)
    given.check()
    spec = given.spec()
    source, notes = _with_index(source, spec.named)
    settings = given.encoding, layout, spec.has_header, given.max_rows
    grid = read_grid(source, spec.items or (), *settings)
    if spec.has_header and given.header_rows is None:
        grid = without_names_again(below_title(grid))
    elif not spec.has_header:
        grid = below_title_alone(grid)
    grid, about_added = without_added_columns(
        grid, (*spec.named, *spec.patterns, *(spec.items or ()))
    )
    are_pairs = columns_of_pairs(grid, [x for x in grid.columns if spec.may_pick(x)])
    if spec.has_header and given.header_rows is None and not are_pairs:
        refuse_ballot_as_header(grid, spec, source)
    table = fold_header(grid, given.header_rows if spec.has_header else 1)
    spec = with_names_of_columns(spec, table)
    table, spec, about_numbers = numbers_apart(table, spec)
    layout = "cell" if layout is None and about_numbers else layout
    picked, about_columns = choose(table, spec.patterns, spec.special)
    stars = with_numbers_of_stars(table.grid, picked, spec, layout)
    table = table._replace(grid=stars)
    refuse_number_of_ballot(table.grid, picked, spec)
    if spec.is_turned:
        table, picked, spec, note = turn(table, picked, spec)
        about_columns = [*about_columns, note]
    else:
        if layout is None:
            refuse_tournaments(table.grid, picked, spec, are_pairs is not None)
        if layout in (None, "ranks", "long"):
            names = [table.grid.columns[k] for k in picked]
            refuse_best_and_worst(
                table.grid, names, spec, layout, partial(has_ranks, table.grid, spec)
            )
        if not refuse_pairs(table, picked, spec, layout):
            refuse_words_of_ratings(table.grid, picked, spec, layout)
            refuse_judges_in_columns(table.grid, picked, spec, layout)
            refuse_column_beside(table, picked, spec, layout)
    if layout is None:
        chosen, about_layout = layout_of_table(table, picked, spec)
    else:
        chosen, about_layout = LAYOUTS[layout], []
    chosen.check_options(given)
    spec = spec._replace(aliases=read_aliases(given.aliases))
    columns, spec, about_others = chosen.find_columns(table, picked, spec)
    notes += [*about_added, *about_numbers, *about_columns, *about_layout, *about_others]
    question = chosen.read(table, columns, spec, [*table.grid.notes, *table.notes, *notes])
    lists = chosen.lists(question)
    if spec.items is None:
        if chosen.has_names_in_cells:
            refuse_ranks_in_brackets(lists.where(0), lists.items)
        _refuse_words_of_ballots(grid.name, lists.items, chosen.name, spec.missing)
        if chosen.has_names_in_cells:
            _refuse_rest(lists, spec.missing)
            _refuse_remarks(lists)
    cut = notes_of_cut_names(lists.items)
    return survey_of_lists(question.grid, question.spec, lists, chosen.name, question.notes + cut)


def _with_index(source: Any, named: list[str]) -> tuple[Any, list[str]]:
    """Return a data frame with the columns of its index that are named, and notes."""
    if not (hasattr(source, "columns") and hasattr(source, "iloc")):
        return source, []
    names = [x for x in source.index.names if x is not None and x not in source.columns]
    wanted = [x for x in names if str(x) in set(map(str, named))]
    if wanted:
        return source.reset_index(level=wanted), []
    if names:
        return source, [f"the index is left out: judge={names[0]!r} takes it as the judges"]
    if any(isinstance(x, str) for x in source.index):
        return source, ["the index, which has no name, is left out: is it the judges?"]
    return source, []


def _refuse_words_of_ballots(
    name: str, items: Sequence[str], layout: str, missing: Sequence[str]
) -> None:
    """Refuse items that say something of a ballot, as columns or rows of a table may."""
    words = [*words_of_ballots(items)]
    if not words:
        return
    ways = {
        "long": f"{option('missing', [*missing, *words])} leaves such lines out, and what is "
        "ranked behind them counts",
        "orders": f"{option('layout', 'votes')} reads ballots",
        "ranks": f"{option('about', words, False)} leaves such columns out",
    }
    way = ways.get(layout, "remove such rows")
    shown = names_shown(list(map(repr, words)))
    asked, says, is_item = f"is {shown} an item", "it says", "it is an item"
    if len(words) > 1:
        asked, says, is_item = f"are {shown} items", "they say", "these are items"
    is_short = len(items) <= _MOST_ITEMS_NAMED
    names = option("items", items) if is_short else f"{option('items')} with all names"
    raise RankingsError(
        f"{name}: {asked}? If {says} something of the ballots, {way}; if {is_item}, add {names}"
    )


def _refuse_rest(lists: Lists, missing: Sequence[str]) -> None:
    """Refuse an item such as ``others`` that is only at the end of lists that leave items out."""
    if lists.are_pairs:
        return
    lengths = (lists.orderings >= 0).sum(1)
    for k, name in enumerate(lists.items):
        if not stands_for_rest(name):
            continue
        rows, places = np.nonzero(lists.orderings == k)
        is_last = len(rows) and (places == lengths[rows] - 1).all()
        if is_last and (lengths[rows] < len(lists.items)).any():
            is_short = len(lists.items) <= _MOST_ITEMS_NAMED
            names = option("items", lists.items, False) if is_short else option("items")
            raise RankingsError(
                f"{lists.where(int(rows[0]))}: is {name!r} an item? It is the last of "
                f"{plural(len(rows), 'list')}, and stands nowhere else. If it means the items that "
                f"a list does not name, add {option('missing', [*missing, name])}; if it is an "
                f"item, name all with {names}"
            )


def _refuse_remarks(lists: Lists) -> None:
    """Refuse an item such as ``Dee # late`` that is there once, and without Dee, an item, too."""
    index = {name: k for k, name in enumerate(lists.items)}
    for name in (x for x in lists.items if "#" in x or "(" in x):
        stem = next((x for m in _REMARK.finditer(name) if (x := name[: m.start()]) in index), "")
        if not stem or is_write_in(name):
            continue
        has_item, has_stem = ((lists.orderings == index[x]).any(1) for x in (name, stem))
        row = int(np.argmax(has_item))
        if has_item.sum() != 1 or has_stem.sum() < 2 or has_stem[row]:
            continue
        is_short = len(lists.items) <= _MOST_ITEMS_NAMED
        names = option("items", lists.items, False) if is_short else option("items")
        raise RankingsError(
            f"{lists.where(row)}: is {name!r} an item, or {stem!r} with a remark? It is there "
            f"once. If it is a remark, write {stem!r} there, or join the two names by "
            f"{option('aliases')}; if it is an item, name all with {names}"
        )


def survey_of_lists(
    grid: Grid, spec: QuestionSpec, lists: Lists, layout: str, notes: list[str]
) -> Survey:
    """Put lists together with what the grid says about their judges."""
    if len(lists.items) < 2:
        raise RankingsError(
            f"{grid.name}: a ranking needs at least 2 items, got {len(lists.items)}"
        )
    kept = np.flatnonzero((lists.orderings >= 0).any(1))
    if not len(kept):
        raise RankingsError(f"{grid.name}: no row ranks any item")
    if not lists.are_pairs:
        refuse_judges_left_out(grid, spec, lists.rows[kept])
    notes = [*notes, *_notes_of_lists(lists, kept)]
    lists = lists.take(kept)
    counts = read_counts(grid, spec.counts, lists.rows)
    judges = None
    if spec.judge is not None:
        are_of_two = len(lists.items) > 2 and bool(((lists.orderings >= 0).sum(1) == 2).all())
        judges = read_judges(grid, spec.judge, lists.rows, spec.is_not_offered, are_of_two)
    weights = None if spec.weights is None else read_weights(grid, spec.weights, lists.rows)
    _refuse_no_own_item(grid, spec, lists)
    lists, about_offers = _with_offers(grid, spec, lists)
    may_stop = _may_stop(layout) and lists.offered is None and not spec.is_not_offered
    lists, places, counts, about_ties = settle_ties(lists, counts, spec.ties, may_stop)
    by_row, about_others = _by_row(spec, lists, counts)
    if weights is not None:
        weights = weights[places]
        by_row = _weighted(grid.name, by_row, weights, layout)
    about = {
        name: np.repeat(grid.column(name).mapped(str, object)[lists.rows], counts).tolist()
        for name in spec.about
    }
    merged, label_index = _merged(by_row)
    return Survey(
        merged,
        label_index,
        None if judges is None else np.repeat(judges[places], counts).tolist(),
        about,
        layout,
        [*notes, *about_ties, *about_offers, *about_others],
        np.repeat(grid.numbers[lists.rows], counts),
        lists.ballots,
        weights=weights,
    )


def _refuse_no_own_item(grid: Grid, spec: QuestionSpec, lists: Lists) -> None:
    """Refuse judges with the names of the items, of whom none ranks the item of the own name."""
    is_said = spec.says_unranked or spec.offers is not None or lists.offered is not None
    if spec.judge is None or is_said or lists.are_pairs:
        return
    index = {name: k for k, name in enumerate(lists.items)}
    column = grid.column(spec.judge)
    own = column.mapped(lambda text: index.get(text, -1))[lists.rows]
    rows = np.flatnonzero(own >= 0)
    if 2 * len(rows) < len(own) or (lists.orderings == own[:, None])[rows].any():
        return
    lengths = (lists.orderings >= 0).sum(1)
    if np.prod(1 - lengths[rows] / len(lists.items)) > _RARE:
        return
    are_whole = bool((lengths >= len(lists.items) - (own >= 0)).all())  # the others, too
    how = option("unranked", "not-offered", are_whole)
    if not are_whole:
        how = f"{option('offered')} with a column that lists what was offered to each"
    raise RankingsError(
        f"{lists.where(int(rows[0]))}: {plural(len(rows), 'judge')} in {spec.judge!r} have the "
        f"name of an item, and none of them ranks it: add {how} if nobody was offered it; "
        f"{option('unranked', 'below', False)} ranks it below the others"
    )


def _weighted(name: str, by_row: Rankings | Orders, weights: np.ndarray, layout: str) -> Rankings:
    """Return a row for each judge, with weights."""
    if not isinstance(by_row, Rankings):
        raise RankingsError(
            f"{name}: {option('weight')} is for lists without ties, and not for pairs: add "
            f"{_ways_of_ties(layout)} if items are tied, or leave out {option('weight')}"
        )
    return WeightedRankings.of(by_row, weights)


def _by_row(
    spec: QuestionSpec, lists: Lists, counts: np.ndarray
) -> tuple[Rankings | Orders, list[str]]:
    """Return a row for each of the lists, and how items were read that a judge does not rank."""
    items, lengths = lists.items, (lists.orderings >= 0).sum(1)
    orderings = lists.orderings[:, : lengths.max()]
    # a list of all items but one says the same as the full one, if all were offered
    is_full = lengths >= len(items) - (not spec.is_not_offered)
    if lists.wins is not None:
        wins = lists.wins[:, : lengths.max(), : lengths.max()]
        compared = build_comparisons(orderings, wins, items, counts)
        return compared, [mistakes_in_words(compared)]
    notes = _notes_of_others(
        lists, spec, is_full.all(), int(counts[lengths == len(items) - 1].sum())
    )
    choice_sets = None
    if lists.offered is not None:
        offered = lists.offered | listed_items(orderings, len(items))
        choice_sets = None if offered.all() else offered
    if lists.levels is not None:
        orderings, above = above_of_levels(orderings, lists.levels)
    elif lists.above is not None:
        above = lists.above[:, : lengths.max(), : lengths.max()]
    else:
        if lists.offered is None and spec.is_not_offered and not is_full.all():
            choice_sets = listed_items(orderings, len(items))
        return build_rankings(orderings, items, counts, choice_sets, lists.where), notes
    is_below = lists.offered is not None or not (spec.is_not_offered or lists.above is not None)
    given = counts, choice_sets, "below" if is_below else "not-offered"
    return build_partial_orders(orderings, above, items, given, lists.where), notes


def _with_offers(grid: Grid, spec: QuestionSpec, lists: Lists) -> tuple[Lists, list[str]]:
    """Return the lists with what a column says that was offered, and notes."""
    if spec.offers is None:
        return lists, []
    if lists.are_pairs:
        raise RankingsError(
            f"{grid.name}: {option('offered', spec.offers, False)} does not go with pairs: items "
            "that a judge did not compare are open, offered or not"
        )
    items, offered, is_blank = read_offers(grid, spec, lists.rows, lists.items)
    is_listed = listed_items(lists.orderings, len(items))
    is_other = is_listed & ~offered & ~is_blank[:, None]
    for k in np.flatnonzero(is_other.any(1))[:1].tolist():
        ranked = names_counted([repr(items[x]) for x in np.flatnonzero(is_other[k]).tolist()])
        verb = "are" if is_other[k].sum() > 1 else "is"
        raise RankingsError(
            f"{lists.where(k)}: {ranked} {verb} ranked, but {verb} not among the items that the "
            f"column {spec.offers!r} says were offered"
            f"{grid.also(lists.rows[np.flatnonzero(is_other.any(1))])}; write all that was offered "
            f"into that column, or leave out {option('offered', spec.offers, False)}, so that all "
            "items count as offered"
        )
    offered[is_blank] = is_listed[is_blank] | (not spec.is_not_offered)
    notes = []
    if rest := items[len(lists.items) :]:
        notes.append(f"offered, but ranked by nobody: {names_counted(rest)}")
    if number := int(is_blank.sum()):
        meaning = "only what is ranked" if spec.is_not_offered else "all items"
        notes.append(
            f"the column {spec.offers!r} is empty in {plural(number, 'row')}, where {meaning} was "
            "offered"
        )
    return lists._replace(items=items, offered=offered), notes


def _notes_of_lists(lists: Lists, kept: np.ndarray) -> list[str]:
    """Return how the lists were read, and which are left out."""
    notes = list(lists.notes)
    is_kept = np.zeros(len(lists.orderings), bool)
    is_kept[kept] = True
    empty = np.flatnonzero(~is_kept).tolist()
    if lists.ballots is None and empty:
        shown = names_shown([lists.where(k) for k in empty[:6]])
        verb = "ranks nothing and is" if len(empty) == 1 else "rank nothing and are"
        notes.append(f"{plural(len(empty), 'judge')} {verb} left out: {shown}")
    if lists.num_closed:
        notes.append(f"gaps were closed in {plural(lists.num_closed, 'list')}")
    return notes


def _notes_of_others(lists: Lists, spec: QuestionSpec, are_full: bool, num_short: int) -> list[str]:
    """Return how items were read that a judge does not rank.

    :param are_full: whether no list leaves out more than what must be the last item, and
        **num_short** is the number of lists of all items but one.
    """
    is_ballot = lists.ballots is not None and not spec.is_not_offered
    if (
        (are_full and not num_short)
        or is_ballot
        or spec.offers is not None
        or lists.above is not None
    ):
        return []
    if lists.is_unsaid is not None and not lists.is_unsaid.any():
        return []
    if spec.is_not_offered:
        meaning, other, why = "not offered", "below", "they rank below the others"
    else:
        meaning, other, why = "ranked below the others", "not-offered", "they were not offered"
    is_said = lists.is_unsaid is not None
    if are_full and not is_said:
        return [
            f"{plural(num_short, 'list')} without one of the {len(lists.items)} items: it is read "
            f"as the last; use {option('unranked', other)} if it was not offered"
        ]
    which = ", and of which no text says whether they were offered," if is_said else ""
    return [
        f"items that a judge does not rank{which} are read as {meaning}: use "
        f"{option('unranked', other)} if {why}"
    ]
