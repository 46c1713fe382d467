"""Ties in lists: taken as they are, left out with their judges, or broken at random."""

from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.words import by_number, plural
from numpyro_rankings.words.options import option


class Settled(NamedTuple):
    """Lists of which it is settled what becomes of ties."""

    lists: Lists  # without levels if none of them has ties
    places: np.ndarray  # (lists,) the place of each among the lists before
    counts: np.ndarray  # (lists,) the number of judges of each
    notes: list[str]


def settle_ties(
    lists: Lists, counts: np.ndarray, ties: str | None, may_stop: bool = False
) -> Settled:
    """Settle what becomes of ties, and say so.

    :param counts: (lists,) the number of judges of each list.
    :param ties: ``"exact"`` or None, ``"drop"`` or ``"order"``.
    :param may_stop: whether the rules of ballots may end these lists before a tie instead.
    """
    places = np.arange(len(counts))
    levels = lists.levels
    is_tied = np.zeros(len(counts), bool)
    if levels is not None:
        is_tied = ((levels[:, 1:] == levels[:, :-1]) & (levels[:, 1:] >= 0)).any(1)
    if not is_tied.any():
        return Settled(lists._replace(levels=None), places, counts, [])
    number = int(counts[is_tied].sum())
    tie = by_number(number, "ties", "tie")
    said = f"{number:,} of {plural(int(counts.sum()), 'judge')} {tie} items"
    drop, order = option("ties", "drop"), option("ties", "order")
    if ties == "drop":
        if is_tied.all():
            raise RankingsError(f"{lists.where(0)}: all judges tie items: {drop} leaves none")
        left = places[~is_tied]
        notes = [f"{said}, and {by_number(number, 'is', 'are')} left out"]
        return Settled(lists._replace(levels=None).take(left), left, counts[left], notes)
    if ties == "order":
        # each judge of a row puts them in an own order
        places = np.repeat(places, np.where(is_tied, counts, 1))
        counts = np.where(is_tied, 1, counts)[places]
        notes = [f"{said}, which are put in a random order"]
        return Settled(_in_random_order(lists.take(places)), places, counts, notes)
    stop = ""
    if may_stop:
        stop = f", or {option('overvote', 'stop')} to end a list before its first tie"
    notes = [
        f"{said}, which is read as no opinion between these: use {drop} to leave out "
        f"{by_number(number, 'this judge', 'the judges')}, or {order} to put tied items in a "
        f"random order{stop}"
    ]
    return Settled(lists, places, counts, notes)


def _in_random_order(lists: Lists) -> Lists:
    """Return lists with tied items in an order that is the same at every run."""
    assert lists.levels is not None
    levels = np.where(lists.orderings >= 0, lists.levels, lists.orderings.shape[1])
    order = np.lexsort((np.random.default_rng(0).random(levels.shape), levels), axis=1)
    orderings = np.take_along_axis(lists.orderings, order, axis=1)
    return lists._replace(orderings=orderings, levels=None)
