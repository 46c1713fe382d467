"""The third stage of a file: the lists of the items, which ranks, places or ballots say."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import BallotCounts, about_ties
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option


class Lists(NamedTuple):
    """The lists of a table."""

    items: tuple[str, ...]  # names of all items
    orderings: np.ndarray  # (lists, T), padded with -1; all -1 if a judge ranks none
    rows: np.ndarray  # (lists,) the row of the grid that has its id, count and further columns
    where: Callable[[int], str]  # the name of each in messages
    num_closed: int  # lists of which gaps were closed
    ballots: BallotCounts | None = None  # how many ballots each rule touched, or None
    notes: tuple[str, ...] = ()  # how the cells were read


def lists_of_ranks(
    items: tuple[str, ...],
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows: np.ndarray,
    where: Callable[[int], str],
    closes_gaps: bool,
    weights: np.ndarray | None = None,
    takes_rules: bool = False,
) -> Lists:
    """Put the items of each list in the order of their ranks, which are 1, 2, … or have gaps.

    **entries** are the list, the item and the rank of each that is ranked, in any order. Each list
    is that of **weights** judges, (lists,), and **takes_rules** if those of ballots read ties.
    """
    order = np.lexsort((entries[1], entries[2], entries[0]))
    of_list, sorted_items, ranks = (x[order] for x in entries)
    lengths = np.bincount(of_list, minlength=len(rows))
    place = np.arange(len(of_list)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_tied, has_gap = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    is_tied[of_list[1:][(of_list[1:] == of_list[:-1]) & (ranks[1:] == ranks[:-1])]] = True
    has_gap[of_list[ranks != place + 1]] = True
    wrong = is_tied | (has_gap & (not closes_gaps))
    if wrong.any():
        k = int(np.argmax(wrong))
        own = np.flatnonzero(of_list == k)
        weights = np.ones(len(rows), int) if weights is None else weights
        ties = f"{weights[is_tied].sum():,} of {plural(int(weights.sum()), 'judge')} have ties"
        _refuse_ranks(
            where(k),
            [(int(ranks[j]), items[sorted_items[j]]) for j in own],
            f"{ties}: {about_ties()}"
            if takes_rules
            else f"{ties}, which are not supported; of "
            f"{option('layout', 'ranks')} and {option('layout', 'votes')} {option('overvote')} "
            "reads them",
        )
    orderings = np.full((len(rows), max(1, lengths.max(initial=0))), -1)
    orderings[of_list, place] = sorted_items
    return Lists(items, orderings, rows, where, int(has_gap.sum()))


def _refuse_ranks(where: str, listed: Sequence[tuple[int, str]], ties: str) -> NoReturn:
    """Say why the ranks of a list, which are sorted, are not 1, 2, …, t."""
    for (rank, name), (next_rank, other) in itertools.pairwise(listed):
        if rank == next_rank:
            raise RankingsError(f"{where}: {name!r} and {other!r} both have rank {rank}; {ties}")
    place, (rank, name) = next((n, x) for n, x in enumerate(listed, 1) if x[0] != n)
    raise RankingsError(
        f"{where}: {name!r} has rank {rank}, but no item has rank {place}; "
        f"{option('gaps', 'close')} keeps the order of the items that are ranked"
    )
