"""Where parts of the judges, such as blocs, rank the items: mean ranks and shares of places."""

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, stdtrit

from numpyro_rankings.families.base import INTERVAL
from numpyro_rankings.rankings import Comparisons, Orders, PartialOrders, Rankings

TOP = 3  # the places of the second share


class Places(NamedTuple):
    """What the judges of each of K parts say of each of n items.

    Intervals hold about 90%. They are those of a sample of so many judges, with the parts as they
    are, and NaN for the mean of a single judge.
    All numbers are NaN where no judge of the part was offered the item.

    - **mean** - mean rank, (K, n), and **mean_interval**, (K, n, 2). Tied items have the mean of
      their ranks, and those that are not listed the mean of the ranks that are left.
    - **first** - share of the judges who put it first, tied with none, and **first_interval**.
    - **top** - share of those whose rank for it is at most 3, and **top_interval**; None of
      three items or fewer.
    - **overall** - mean rank of all judges, (n,).
    - **items** - names of the items.
    """

    mean: np.ndarray
    mean_interval: np.ndarray
    first: np.ndarray
    first_interval: np.ndarray
    top: np.ndarray | None
    top_interval: np.ndarray | None
    overall: np.ndarray
    items: tuple[str, ...]


def places_of(rankings: Rankings | Orders, amounts: np.ndarray) -> Places | None:
    """Return where parts of the judges rank the items.

    :param amounts: number of judges of each row in each part, (rows, K), which may be expected
        ones, as ``membership`` of blocs times the counts.
    :return: the places; None of comparisons of some pairs, which have no ranks.
    """
    if isinstance(rankings, Comparisons):
        return None
    if isinstance(rankings, PartialOrders) and not np.asarray(rankings.are_buckets).all():
        return None
    ranks, is_listed = _ranks(rankings)
    is_offered = ~np.isnan(ranks)
    known = np.where(is_offered, ranks, 0.0)
    number = amounts.T @ is_offered
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = amounts.T @ known / number
        # the variance of Σ b (r - mean) / number: b says who is in the part and in the sample
        squares = amounts.T @ known**2 - number * mean**2
        free = np.where(number > 1, number - 1, np.nan)
        half = stdtrit(free, INTERVAL[1]) * np.sqrt(np.maximum(squares, 0.0) / free / number)
        overall = amounts.sum(1) @ known / number.sum(0)
    bounds = np.stack([mean - half, mean + half], -1).clip(1, rankings.num_items)
    first, of_first = _shares(amounts.T @ (is_listed & (known == 1)), number)
    top = of_top = None
    if rankings.num_items > TOP:
        top, of_top = _shares(amounts.T @ (is_listed & (known <= TOP)), number)
    items = tuple(map(str, rankings.items))
    return Places(mean, bounds, first, of_first, top, of_top, overall, items)


def _ranks(rankings: Rankings | PartialOrders) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each item in each row, NaN if it was not offered; and who is listed."""
    n, offered = rankings.num_items, rankings.offered()
    number = np.full(rankings.num_rows, n) if offered is None else np.asarray(offered).sum(1)
    if isinstance(rankings, PartialOrders):
        levels = np.asarray(rankings.levels_of_items())
        is_listed, ranks = levels >= 0, np.full(levels.shape, np.nan)
        for row, of_row in enumerate(levels):
            sizes = np.bincount(of_row[of_row >= 0])
            ranks[row] = (np.cumsum(sizes) - (sizes - 1) / 2)[of_row]
    else:
        ranks = rankings.to_ranks()
        is_listed = ~np.isnan(ranks)
    left = (is_listed.sum(1) + 1 + number) / 2
    ranks = np.where(is_listed, ranks, left[:, None])
    return ranks if offered is None else np.where(np.asarray(offered), ranks, np.nan), is_listed


def _shares(those: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return shares of so many judges, and their intervals: those of Jeffreys."""
    share = np.divide(those, number, out=np.full(number.shape, np.nan), where=number > 0)
    a, b = those + 0.5, np.maximum(number - those, 0.0) + 0.5
    low, high = (betaincinv(a, b, p) for p in INTERVAL)
    # where nobody, or everybody, does, the interval ends there
    low, high = np.where(share <= 0, 0.0, low), np.where(share >= 1, 1.0, high)
    bounds = np.stack([low, high], -1)
    return share, np.where(np.isnan(share)[..., None], np.nan, bounds)
