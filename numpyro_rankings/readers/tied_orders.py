"""PrefLib files of orders with ties: as they are, or read by the rules of ballots."""

import os
from collections.abc import Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.ballots import OVERVOTE
from numpyro_rankings.readers.elections import Election, padded, survey_of_election
from numpyro_rankings.readers.grids import Grid, column_of_texts, place_of
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.preflib import (
    PREFLIB,
    TYPES,
    Order,
    Parsed,
    item_names,
    parse_preflib,
    read_orders,
    read_preflib,
    read_preflib_lines,
    split_groups,
)
from numpyro_rankings.readers.questions import QuestionSpec, TableOptions
from numpyro_rankings.readers.surveys import Survey, merged_survey_of, survey_of_lists
from numpyro_rankings.readers.unsupported import (
    Categories,
    MatchingGraph,
    TiedOrders,
    read_unsupported,
    tied_orders,
)
from numpyro_rankings.readers.votes import votes_of_marks

PREFLIB_OPTIONS = ("overvote", "write_ins", "max_ranks", "ties", "unranked")


def read_preflib_survey(
    path: str | os.PathLike, ties: str | None = None, unranked: str = "below", **rules: object
) -> Survey:
    """Read a PrefLib file of orders, or of categories, the first the best.

    :param path: the file.
    :param ties: what becomes of ties, as in :func:`~numpyro_rankings.read_survey`. With this or
        **rules**, a ``.soc`` or ``.soi`` file may have some, too.
    :param unranked: what it means that an item is not listed, or is in no category.
    :param rules: those of ballots, by which a tie is a rank with several names; they take the place
        of **ties**.
    :raises RankingsError: naming the line.
    """
    given = TableOptions(ties=ties, unranked=unranked, **rules)  # type: ignore[arg-type]
    given.check()
    parsed = parse_preflib(path)
    if parsed.kind == "wmd":
        read_preflib_lines(path)  # refuses it
    if parsed.kind in ("soc", "soi") and (ties is not None or given.rules):
        parsed = parsed._replace(takes_ties=True)
    read = tied_orders(parsed) if parsed.takes_ties else read_unsupported(path)
    if read is None and not given.rules and unranked == "below":
        survey = merged_survey_of(read_preflib_lines(path), PREFLIB)
        if parsed.kind.startswith("to"):
            note = f"no order of the .{parsed.kind} file has a tie: it is read as strict orders"
            survey.notes.append(note)
        return survey
    if parsed.kind != "cat" and read is None:
        read_preflib_lines(path)  # refuses what is wrong
    notes = []
    if isinstance(read, Categories):
        items, orders = item_names(parsed), _orders_of_categories(parsed)
        notes = [f"categories are read as ties, the best first: {names_shown(read.categories)}"]
    else:
        items, orders = read_orders(parsed)
    if given.rules:
        return _survey_by_rules(parsed, items, orders, given.rules)
    return _survey_of_orders(parsed, items, orders, given.spec(), notes)


def _survey_of_orders(
    parsed: Parsed,
    items: tuple[str, ...],
    orders: Sequence[Order],
    spec: QuestionSpec,
    notes: list[str],
) -> Survey:
    """Return the survey of orders, some of which have ties."""
    counts = [str(order.voters) for order in orders]
    grid = Grid(
        parsed.name,
        [column_of_texts("count", counts)],
        np.array([order.line for order in orders]),
        place_of(parsed.name, ":{}"),
        parsed.name,
    )
    groups = [order.groups or [[item] for item in order.row] for order in orders]
    lists = Lists(
        items,
        padded([order.row for order in orders]),
        np.arange(len(orders)),
        grid.where,
        0,
        levels=padded([[k for k, group in enumerate(x) for _ in group] for x in groups]),
    )
    return survey_of_lists(grid, spec._replace(counts="count"), lists, PREFLIB, notes)


def _orders_of_categories(parsed: Parsed) -> list[Order]:
    """Return the categories of each line as buckets, without those that are empty."""
    orders = []
    for number, line in parsed.data:
        count, groups = split_groups(f"{parsed.name}:{number}", line, allows_empty=True)
        filled = [group for group in groups if group]
        row = [item for group in filled for item in group]
        orders.append(Order(number, count, row, filled))
    return orders


def _survey_by_rules(
    parsed: Parsed, items: tuple[str, ...], orders: Sequence[Order], rules: dict[str, object]
) -> Survey:
    """Return the survey of orders in which a tie is a rank with several names."""
    marks = [
        [group[0] if len(group) == 1 else OVERVOTE for group in order.groups or zip(order.row)]
        for order in orders
    ]
    election = Election(
        parsed.name,
        votes_of_marks(items, padded(marks)),
        np.array([order.voters for order in orders]),
        np.array([order.line for order in orders]),
        place_of(parsed.name, ":{}"),
    )
    return survey_of_election(election, PREFLIB, **rules)  # type: ignore[arg-type]


def read_preflib_buckets(
    path: str | os.PathLike,
) -> tuple[Sequence[Sequence[Sequence[int]]], tuple[str, ...], np.ndarray]:
    """Read a PrefLib file of orders or categories.

    :param path: the file.
    :return: the buckets of 0-based items of each distinct order, best first; the names of the
        items; and how many judges gave each order.
    :raises RankingsError: naming the line.
    """
    parsed, read = parse_preflib(path), read_unsupported(path)
    if read is None:
        rankings = read_preflib(path)
        lists = zip(rankings.orderings.tolist(), rankings.lengths.tolist(), strict=True)
        orders: Sequence = [[[item] for item in row[:length]] for row, length in lists]
        return orders, rankings.items, np.asarray(rankings.counts)
    if isinstance(read, TiedOrders):
        return read.orders, read.items, read.counts
    if isinstance(read, MatchingGraph):
        raise RankingsError(f"{parsed.name}: a .wmd file holds {TYPES['wmd']}")
    for number, line in parsed.data:
        where = f"{parsed.name}:{number}"
        if not any(split_groups(where, line, allows_empty=True)[1]):
            raise RankingsError(f"{where}: a judge who puts no item into any category")
    buckets = [
        [np.flatnonzero(row == k).tolist() for k in np.unique(row[row >= 0])] for row in read.table
    ]
    return buckets, item_names(parsed), read.counts
