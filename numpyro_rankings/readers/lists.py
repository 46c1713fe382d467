"""The third stage of a file: the lists of the items, which ranks, places or ballots say."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import BallotCounts
from numpyro_rankings.readers.questions import QuestionSpec
from numpyro_rankings.words import plural, shorten
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
    # (lists, T) the bucket of each item, 0 = best, -1 = padding; None if no list has ties
    levels: np.ndarray | None = None
    # (lists, T, T) instead of an order, whether the first of two items is preferred
    above: np.ndarray | None = None
    # (lists, T, T) instead of preferences, how often the first was preferred, perhaps by mistake
    wins: np.ndarray | None = None
    # (lists, n) the items that were offered, those that are ranked included; None if not known
    offered: np.ndarray | None = None
    # (lists,) whether texts say of other items whether they were offered, but not of all; or None
    is_unsaid: np.ndarray | None = None

    @property
    def are_pairs(self) -> bool:
        """Whether the judges compared pairs, so that the order of the items says nothing."""
        return self.above is not None or self.wins is not None

    def take(self, places: np.ndarray) -> "Lists":
        """Return some of the lists, which may be there several times."""
        where, levels, above, offered = self.where, self.levels, self.above, self.offered
        wins, is_unsaid = self.wins, self.is_unsaid
        return self._replace(
            orderings=self.orderings[places],
            rows=self.rows[places],
            where=lambda k: where(int(places[k])),
            levels=None if levels is None else levels[places],
            above=None if above is None else above[places],
            wins=None if wins is None else wins[places],
            offered=None if offered is None else offered[places],
            is_unsaid=None if is_unsaid is None else is_unsaid[places],
        )

    def with_offered(self, said: np.ndarray, is_offered: bool) -> "Lists":
        """Return the lists with what texts say was offered, 1 or 0, or -1 where none does."""
        offered = np.where(said < 0, is_offered, said > 0)
        return self._replace(offered=offered, is_unsaid=np.any(said < 0, axis=1))


_LENGTH = 60  # letters of ranks in a message
_Entries = tuple[np.ndarray, np.ndarray, np.ndarray]  # lists, items and ranks


def lists_of_ranks(
    items: tuple[str, ...],
    entries: _Entries,
    rows: np.ndarray,
    where: Callable[[int], str],
    spec: QuestionSpec,
    have_means: np.ndarray | None = None,
) -> Lists:
    """Put the items of each list in the order of their ranks, which are 1, 2, … or have gaps.

    **entries** are the list, the item and the rank of each that is ranked, in any order. Tied items
    have the same rank, and the next one may count them all, the first one, or none of the others.

    :param have_means: (lists,) bool, lists with gaps that had means of ranks, as 1, 3.5, 3.5: tied
        items have the lowest of theirs.
    """
    n = len(items)
    have_means = np.zeros(len(rows), bool) if have_means is None else have_means
    order = np.lexsort((entries[1], entries[2], entries[0]))
    of_list, sorted_items, ranks = (x[order] for x in entries)
    lengths = np.bincount(of_list, minlength=len(rows))
    starts = np.cumsum(lengths) - lengths
    place = np.arange(len(of_list)) - np.repeat(starts, lengths)
    level, has_gap, is_tied, first = _levels(of_list, ranks, place, len(rows))
    has_gap |= have_means
    own = ranks + place - first  # of each item, also where some are tied
    # n - 1 different ranks, of which the last is n
    has_hole = has_gap & (~is_tied | have_means) & (lengths == n - 1)
    if has_hole.any():
        has_hole &= own[np.cumsum(lengths) - 1] == n
    if has_gap.any() and not spec.closes_gaps:
        k = int(np.argmax(has_gap))
        some = slice(starts[k], starts[k] + lengths[k])
        left_out = items[n * (n - 1) // 2 - int(sorted_items[some].sum())] if has_hole[k] else ""
        remedy = remedy_of_gap(left_out, int(has_gap.sum()), spec.is_not_offered)
        if have_means[k]:
            _refuse_means(where(k), ranks[some], own[some], remedy)
        listed = [(int(ranks[j]), items[sorted_items[j]]) for j in range(some.start, some.stop)]
        if is_tied[k] and spec.item is None and not spec.is_not_offered:  # no long table
            stop = option("overvote", "stop", False)
            remedy = f"{remedy}; {stop} ends a list before its first tie"
        _refuse_ranks(where(k), listed, remedy)
    notes = notes_of_holes(int(has_hole.sum()), spec)
    if notes and spec.gaps == "fill":
        filled = _filled(n, (of_list, sorted_items, ranks), own, np.flatnonzero(has_hole))
        others = have_means & ~has_hole
        return lists_of_ranks(items, filled, rows, where, spec, others)._replace(notes=notes)
    orderings = np.full((len(rows), max(1, lengths.max(initial=0))), -1)
    levels = orderings.copy()
    orderings[of_list, place], levels[of_list, place] = sorted_items, level
    buckets = levels if is_tied.any() else None
    return Lists(items, orderings, rows, where, int(has_gap.sum()), None, notes, buckets)


def _levels(
    of_list: np.ndarray, ranks: np.ndarray, place: np.ndarray, num_lists: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the bucket of each entry, which lists have gaps in their ranks, and ties.

    The last array is the place of the first entry of each bucket.

    Entries are sorted by list and rank, and **place** is that of each in its list.
    """
    is_new, is_last = np.ones(len(ranks), bool), np.ones(len(ranks), bool)
    is_new[1:] = (of_list[1:] != of_list[:-1]) | (ranks[1:] != ranks[:-1])
    is_last[:-1] = is_new[1:]
    bucket = np.cumsum(is_new) - 1  # in the whole table
    first, last = place[is_new][bucket], place[is_last][bucket]
    level = bucket - bucket[np.arange(len(ranks)) - place] if len(ranks) else bucket
    has_gap = np.ones(num_lists, bool)
    # 1, 2, 2, 4; 1, 2, 2, 3; 1, 3, 3, 4; and 1, 3, 3, 3, 5, the mean of 2, 3 and 4
    for number in (first, level, last, (first + last) / 2):
        is_wrong = np.zeros(num_lists, bool)
        is_wrong[of_list[ranks != number + 1]] = True
        has_gap &= is_wrong
    is_tied = np.zeros(num_lists, bool)
    is_tied[of_list[~is_new]] = True
    return level, has_gap, is_tied, first


def are_ranks_with_ties(numbers: np.ndarray) -> bool:
    """Return whether the numbers of each row, (rows, items), are ranks; 0 is none."""
    return are_ranks_of_lists(np.nonzero(numbers > 0)[0], numbers[numbers > 0])


def are_ranks_of_lists(of_list: np.ndarray, ranks: np.ndarray) -> bool:
    """Return whether the numbers of each list are ranks, perhaps with ties, both (entries,)."""
    order, lengths = np.lexsort((ranks, of_list)), np.bincount(of_list)
    place = np.arange(len(of_list)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return not _levels(of_list[order], ranks[order], place, len(lengths))[1].any()


def ranks_of_means(
    of_list: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ranks of which tied items have the lowest of theirs, instead of the mean.

    :param of_list: (entries,) the list of each number, in any order.
    :return: (entries,) the ranks; which of them are in lists with a half, of which all numbers may
        be means; and which are in those of these that leave ranks out.
    """
    order = np.lexsort((numbers, of_list))
    of_list, numbers = of_list[order], numbers[order]
    is_first = np.ones(len(numbers), bool)
    is_first[1:] = of_list[1:] != of_list[:-1]
    is_new = is_first.copy()
    is_new[1:] |= numbers[1:] != numbers[:-1]
    bucket = np.cumsum(is_new) - 1
    size = np.bincount(bucket)[bucket]
    start = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    lists = np.cumsum(is_first) - 1
    lowest, highest = numbers - (size - 1) / 2, numbers + (size - 1) / 2
    before = np.where(is_first, 0, np.append(0, highest[:-1]))
    is_wrong = (lowest % 1 > 0) | (is_new & (lowest <= before))
    is_wrong = np.bincount(lists, is_wrong) > 0
    has_gap = np.bincount(lists, lowest != np.flatnonzero(is_new)[bucket] - start + 1) > 0
    is_right = (np.bincount(lists, numbers % 1) > 0) & ~is_wrong
    ranks, is_mean = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), bool)
    leaves_out = np.zeros(len(numbers), bool)
    ranks[order], is_mean[order] = lowest, is_right[lists]
    leaves_out[order] = (is_right & has_gap)[lists]
    return ranks, is_mean, leaves_out


def _filled(n: int, entries: _Entries, own: np.ndarray, lists: np.ndarray) -> _Entries:
    """Return entries with the one of n items that these lists leave out at the rank left out.

    :param own: (entries,) the rank of each, of which no two in a list are the same.
    """
    of_list, items, ranks = entries
    item = n * (n - 1) // 2 - np.bincount(of_list, items)[lists].astype(int)
    rank = n * (n + 1) // 2 - np.bincount(of_list, own)[lists].astype(int)
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


def _refuse_means(where: str, lowest: np.ndarray, own: np.ndarray, remedy: str) -> NoReturn:
    """Say which rank a list leaves out whose tied items have the mean of theirs."""
    _, bucket, sizes = np.unique(lowest, return_inverse=True, return_counts=True)
    shown = shorten(", ".join(f"{x:g}" for x in lowest + (sizes[bucket] - 1) / 2), _LENGTH)
    rank = next(k for k in range(1, len(own) + 1) if k not in own)
    raise RankingsError(
        f"{where}: the ranks are {shown}, where tied items have the mean of theirs, but no item "
        f"has rank {rank}; {remedy}"
    )


def _refuse_ranks(where: str, listed: Sequence[tuple[int, str]], remedy: str) -> NoReturn:
    """Say why the ranks of a list, which are sorted, are not 1, 2, …, t."""
    ranks = [rank for rank, _ in listed]
    if len(set(ranks)) < len(ranks):
        tied = next(two for (one, _), two in itertools.pairwise(listed) if one == two[0])
        shown = shorten(", ".join(map(str, ranks)), _LENGTH)
        raise RankingsError(
            f"{where}: the ranks are {shown}, with {tied[1]!r} tied at {tied[0]}; ranks with ties "
            f"are numbered as 1, 2, 2, 4, as 1, 2, 2, 3 or as 1, 2.5, 2.5, 4; {remedy}"
        )
    place, (rank, name) = next((n, x) for n, x in enumerate(listed, 1) if x[0] != n)
    raise RankingsError(
        f"{where}: {name!r} has rank {rank}, but no item has rank {place}; {remedy}"
    )
