"""The third stage of a file: the lists of the items, which ranks, places or ballots say."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import BallotCounts, about_ties
from numpyro_rankings.readers.questions import QuestionSpec
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


_Entries = tuple[np.ndarray, np.ndarray, np.ndarray]  # lists, items and ranks


def lists_of_ranks(
    items: tuple[str, ...],
    entries: _Entries,
    rows: np.ndarray,
    where: Callable[[int], str],
    spec: QuestionSpec,
    weights: np.ndarray | None = None,
    takes_rules: bool = False,
) -> Lists:
    """Put the items of each list in the order of their ranks, which are 1, 2, … or have gaps.

    **entries** are the list, the item and the rank of each that is ranked, in any order. Each list
    is that of **weights** judges, (lists,), and **takes_rules** if those of ballots read ties.
    """
    n = len(items)
    order = np.lexsort((entries[1], entries[2], entries[0]))
    of_list, sorted_items, ranks = (x[order] for x in entries)
    lengths = np.bincount(of_list, minlength=len(rows))
    place = np.arange(len(of_list)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_tied, has_gap = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    is_tied[of_list[1:][(of_list[1:] == of_list[:-1]) & (ranks[1:] == ranks[:-1])]] = True
    has_gap[of_list[ranks != place + 1]] = True
    # n - 1 different ranks, of which the last is n
    has_hole = has_gap & ~is_tied & (lengths == n - 1)
    if has_hole.any():
        has_hole &= ranks[np.cumsum(lengths) - 1] == n
    wrong = is_tied | (has_gap & (not spec.closes_gaps))
    if wrong.any():
        k = int(np.argmax(wrong))
        own = np.flatnonzero(of_list == k)
        left_out = items[n * (n - 1) // 2 - int(sorted_items[own].sum())] if has_hole[k] else ""
        number = int((has_gap & ~is_tied).sum())
        remedy = remedy_of_gap(left_out, number, spec.is_not_offered)
        listed = [(int(ranks[j]), items[sorted_items[j]]) for j in own]
        _refuse_ranks(where(k), listed, _count_ties(is_tied, weights, takes_rules), remedy)
    notes = notes_of_holes(int(has_hole.sum()), spec)
    if notes and spec.gaps == "fill":
        filled = _filled(n, (of_list, sorted_items, ranks), np.flatnonzero(has_hole))
        return lists_of_ranks(items, filled, rows, where, spec)._replace(notes=notes)
    orderings = np.full((len(rows), max(1, lengths.max(initial=0))), -1)
    orderings[of_list, place] = sorted_items
    return Lists(items, orderings, rows, where, int(has_gap.sum()), notes=notes)


def _filled(n: int, entries: _Entries, lists: np.ndarray) -> _Entries:
    """Return entries with the one of n items that these lists leave out at the rank left out."""
    of_list, items, ranks = entries
    item = n * (n - 1) // 2 - np.bincount(of_list, items)[lists].astype(int)
    rank = n * (n + 1) // 2 - np.bincount(of_list, ranks)[lists].astype(int)
    return np.append(of_list, lists), np.append(items, item), np.append(ranks, rank)


def notes_of_holes(number: int, spec: QuestionSpec) -> tuple[str, ...]:
    """Return what was done with lists in which one item and one rank, not the last, are left out.

    The item has that rank, is below the others, or was not offered: nothing in the list says which.
    """
    if not number:
        return ()
    if spec.gaps == "fill":
        of = plural(number, "list")
        return (f"the one item that is left out was put at the one gap of {of}",)
    return (
        f"in {plural(number, 'list')} with a gap one item is left out, which is read as "
        f"{_meaning(spec.is_not_offered)}: {option('gaps', 'fill')} puts it at the gap instead",
    )


def _meaning(is_not_offered: bool) -> str:
    return "not offered" if is_not_offered else "below the others"


def remedy_of_gap(left_out: str, number: int, is_not_offered: bool) -> str:
    """Return what to do about a gap, and about the only item that the list leaves out, if any.

    **number** lists have gaps.
    """
    others = f"{number:,} lists have gaps; " if number > 1 else ""
    close = f"{others}{option('gaps', 'close')} keeps the order of the items that are ranked"
    if not left_out:
        return close
    return (
        f"{close}, and reads {left_out!r}, the only one left out, as {_meaning(is_not_offered)}; "
        f"{option('gaps', 'fill')} puts it at the gap"
    )


def _count_ties(is_tied: np.ndarray, weights: np.ndarray | None, takes_rules: bool) -> str:
    """Return how many judges have ties, and what reads them."""
    judges = np.ones(len(is_tied), int) if weights is None else weights
    number = f"{judges[is_tied].sum():,} of {plural(int(judges.sum()), 'judge')} have ties"
    if takes_rules:
        return f"{number}: {about_ties()}"
    return (
        f"{number}, which are not supported; write a column for each item or each rank, for "
        f"which {option('layout', 'ranks', False)} and {option('layout', 'votes', False)} take "
        f"{option('overvote')}"
    )


def _refuse_ranks(
    where: str, listed: Sequence[tuple[int, str]], ties: str, remedy: str
) -> NoReturn:
    """Say why the ranks of a list, which are sorted, are not 1, 2, …, t."""
    for (rank, name), (next_rank, other) in itertools.pairwise(listed):
        if rank == next_rank:
            raise RankingsError(f"{where}: {name!r} and {other!r} both have rank {rank}; {ties}")
    place, (rank, name) = next((n, x) for n, x in enumerate(listed, 1) if x[0] != n)
    raise RankingsError(
        f"{where}: {name!r} has rank {rank}, but no item has rank {place}; {remedy}"
    )
