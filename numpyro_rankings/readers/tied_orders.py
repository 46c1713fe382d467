"""PrefLib files of orders with ties: as they are, or read by the rules of ballots."""

import os
from collections.abc import Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import OVERVOTE
from numpyro_rankings.readers.elections import Election, padded, survey_of_election
from numpyro_rankings.readers.grids import place_of
from numpyro_rankings.readers.preflib import (
    TYPES,
    item_names,
    parse_preflib,
    read_orders,
    read_preflib,
    read_preflib_lines,
    split_groups,
)
from numpyro_rankings.readers.surveys import Survey, merged_survey_of
from numpyro_rankings.readers.unsupported import MatchingGraph, TiedOrders, read_unsupported
from numpyro_rankings.readers.votes import votes_of_marks

PREFLIB = "a PrefLib file"
TIE_OPTIONS = ("overvote", "write_ins", "max_ranks")


def read_preflib_survey(path: str | os.PathLike, **rules: object) -> Survey:
    """Read a PrefLib file of orders, in which a tie is a rank with several names.

    :param path: the file.
    :param rules: those of ``TIE_OPTIONS``, as in :func:`~numpyro_rankings.read_survey`; without
        any, ties are refused.
    :raises RankingsError: naming the line.
    """
    if all(value is None for value in rules.values()):
        return merged_survey_of(read_preflib_lines(path), PREFLIB)
    parsed = parse_preflib(path)
    if parsed.kind in ("cat", "wmd") or read_unsupported(path) is None:
        read_preflib_lines(path)  # refuses what is no file of orders, or is wrong
    items, orders = read_orders(parsed)
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
