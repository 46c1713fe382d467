"""PrefLib files of orders with ties, read by the rules of ballots."""

import os

import numpy as np

from numpyro_rankings.readers.ballots import OVERVOTE
from numpyro_rankings.readers.elections import Election, padded, survey_of_election
from numpyro_rankings.readers.grids import place_of
from numpyro_rankings.readers.preflib import parse_preflib, read_orders, read_preflib_lines
from numpyro_rankings.readers.surveys import Survey, merged_survey_of
from numpyro_rankings.readers.unsupported import read_unsupported
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
