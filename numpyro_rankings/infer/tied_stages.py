"""The stages of orders with ties under the Davidson–Luce model, in float64."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from numpyro_rankings.rankings import PartialOrders, RankingsError
from numpyro_rankings.rankings.orderings import row_keys
from numpyro_rankings.rankings.partial_orders import check_buckets


class TiedStages:
    """The sets in play at all stages, where equal ones are merged, and what was chosen from them.

    A stage is a choice of a set C of tied items from the set A of the items in play. Stages with
    one item in play are not informative and are left out. **tie_sizes** are the numbers of items of
    the ties that occur, **ties** their strengths δ, which :meth:`update_ties` changes.
    """

    def __init__(self, orders: PartialOrders) -> None:
        check_buckets(orders)
        n = self.num_items = orders.num_items
        items, levels = _lines(orders)
        counts = np.asarray(orders.counts, float)
        self.times_chosen = np.zeros(n)  # a tie of d items is 1/d of a choice of each
        self._beats = np.zeros((n, n), bool)
        sets, sizes, amounts = [], [], []
        for level in range(levels.max(where=levels <= n, initial=0) + 1):
            chosen, in_play = levels == level, levels >= level
            rows = np.flatnonzero(chosen.any(1) & (in_play.sum(1) > 1))
            if not len(rows):
                continue
            chosen, in_play = chosen[rows], in_play[rows]
            size = chosen.sum(1)
            share = np.broadcast_to((counts[rows] / size)[:, None], chosen.shape)
            self.times_chosen += np.bincount(items[rows][chosen], share[chosen], n)
            later = _entries(items[rows], in_play & ~chosen, n)
            self._beats |= (_entries(items[rows], chosen, n).T @ later).toarray() > 0
            sets.append(np.sort(np.where(in_play, items[rows], n), axis=1))
            sizes.append(size)
            amounts.append(counts[rows])
        self._merge(np.concatenate(sets), np.concatenate(sizes), np.concatenate(amounts))

    def _merge(self, sets: np.ndarray, sizes: np.ndarray, counts: np.ndarray) -> None:
        """Keep each set once, and count the ties; the end of a short set is padded with n."""
        in_play = (sets < self.num_items).sum(1)
        self.times_of_size = np.bincount(sizes, counts)
        self.tie_sizes = np.flatnonzero(self.times_of_size[2:]) + 2
        self.ties = np.ones(len(self.tie_sizes))
        self._weights: np.ndarray | None = None
        self._kept: list[tuple] = []
        _check_tie_sizes(sizes, in_play, [1, *self.tie_sizes])
        _, first, which = np.unique(row_keys(sets), return_index=True, return_inverse=True)
        self.sets = sets[first][:, : in_play.max()]
        self.counts = np.bincount(which, counts)

    # For w_i = α_i^(1/d) the sum of (∏ α_i)^(1/d) over the sets of d items is e_d(w), and those
    # with item i have w_i e_{d-1}(w without w_i) of it.

    def _parts(self, weights: np.ndarray) -> list[tuple]:
        """Return for each size w, e_d and e_{d-1} without each item; they are kept."""
        if weights is self._weights:  # of the step before, in which ties changed
            return self._kept
        base, parts = np.append(weights, 0.0), []
        for d in (1, *self.tie_sizes):
            w = (base ** (1 / d))[self.sets]
            without = _symmetric_without(w, d - 1)
            # each set of d items is counted once for each of them
            parts.append((w, (w * without).sum(1) / d, without))
        self._weights, self._kept = weights, parts
        return parts

    def _shares(self, weights: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return what each item contributes to each size's share of f, and the sums of f."""
        parts, strengths = self._parts(weights), (1.0, *self.ties)
        total = np.sum([tie * e for tie, (_, e, _) in zip(strengths, parts, strict=True)], axis=0)
        sizes = (1, *self.tie_sizes)
        shares = [
            w * without * (tie / d / total)[:, None]
            for d, tie, (w, _, without) in zip(sizes, strengths, parts, strict=True)
        ]
        if not np.isfinite(total).all():
            raise RankingsError(
                f"ties of {max(sizes)} items are too large to be computed: if a last bucket only "
                "has the rest of the items, leave it out"
            )
        return shares, total

    def times_in_play(self, weights: np.ndarray) -> np.ndarray:
        """Return how often each item is expected to be chosen, over its weight, (n,)."""
        share = np.sum(self._shares(weights)[0], axis=0) * self.counts[:, None]
        return self._by_item(share) / weights

    def update_ties(self, weights: np.ndarray) -> float:
        """Set the strengths to their next values; return the largest change of a logarithm."""
        shares, _ = self._shares(weights)
        expected = np.array([self.counts @ share.sum(1) for share in shares[1:]])
        factors = self.times_of_size[self.tie_sizes] / expected
        self.ties = self.ties * factors
        return float(np.abs(np.log(factors)).max())

    def log_likelihood(self, weights: np.ndarray) -> float:
        """Log likelihood of all orders; the weights of items never chosen may be 0."""
        _, total = self._shares(weights)
        chosen = self.times_chosen > 0
        found = self.times_chosen[chosen] @ np.log(weights[chosen])
        found += self.times_of_size[self.tie_sizes] @ np.log(self.ties)
        return float(found - self.counts @ np.log(total))

    def information(self, weights: np.ndarray) -> np.ndarray:
        """Observed information of log weights and log tie strengths, (n + ties, n + ties)."""
        # Of a stage it is the covariance of (1[i in S] / |S|, 1[|S| = d]) for a set S ~ f.
        n, (shares, total) = self.num_items, self._shares(weights)
        of_items, of_ties = np.sum(shares, axis=0), [share.sum(1) for share in shares[1:]]
        found = np.zeros((n + len(of_ties), n + len(of_ties)))
        of_size = zip((1, *self.tie_sizes), (1.0, *self.ties), self._parts(weights), strict=True)
        for share, (d, tie, (w, _, _)) in zip(shares, of_size, strict=True):
            found[:n, :n] += np.diag(self._by_item(share / d * self.counts[:, None]))
            if d > 1:
                found[:n, :n] += self._together(w, d, tie / d**2 * self.counts / total)
        means = self._table(of_items * self.counts[:, None]).T
        found[:n, :n] -= (means @ self._table(of_items)).toarray()
        for k, own in enumerate(of_ties):
            mixed = self._by_item((shares[k + 1] - of_items * own[:, None]) * self.counts[:, None])
            found[:n, n + k] = found[n + k, :n] = mixed
            found[n + k, n:] = [-(self.counts @ (own * other)) for other in of_ties]
            found[n + k, n + k] += self.counts @ own
        return found

    def _together(self, w: np.ndarray, size: int, amounts: np.ndarray) -> np.ndarray:
        """Return the sums over sets of w_i w_j e_{d-2}(w without these), times amounts, (n, n)."""
        n = self.num_items
        found = np.zeros((n + 1) * (n + 1))
        for place, item in enumerate(self.sets.T):
            rows = np.flatnonzero(item < n)
            others = w[rows]
            own = others[:, place] * amounts[rows]
            others[:, place] = 0.0  # no set with it is left
            values = own[:, None] * others * _symmetric_without(others, size - 2)
            cells = item[rows, None] * (n + 1) + self.sets[rows]
            found += np.bincount(cells.ravel(), values.ravel(), len(found))
        return found.reshape(n + 1, n + 1)[:n, :n]

    def beats(self) -> np.ndarray:
        """Whether the item of the row was chosen while that of the column stayed, (n, n)."""
        return self._beats

    def _by_item(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.sets.ravel(), values.ravel(), self.num_items + 1)[:-1]

    def _table(self, values: np.ndarray) -> csr_array:
        """Numbers of the items of each set as a table, (sets, n)."""
        row, place = np.nonzero(self.sets < self.num_items)
        entries = values[row, place], (row, self.sets[row, place])
        return csr_array(entries, shape=(len(self.sets), self.num_items))


def _symmetric_without(w: np.ndarray, degree: int) -> np.ndarray:
    """Elementary symmetric polynomials e_d of each row of numbers without each, (rows, T).

    Those of the numbers before and of those after are combined. All terms are positive: a
    difference such as e_d - w e_{d-1} would lose its digits where many numbers are.
    """
    if degree == 0:
        return np.ones_like(w)
    before = [np.zeros((degree + 1, len(w)))]
    before[0][0] = 1.0
    for column in w.T[:-1]:
        before.append(_with_number(before[-1], column))
    found, after = np.empty_like(w), before[0]
    for place in range(w.shape[1] - 1, -1, -1):
        found[:, place] = (before.pop() * after[::-1]).sum(0)
        after = _with_number(after, w[:, place])
    return found


def _with_number(sums: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the polynomials e_0, …, e_d, (d + 1, rows), with one more number in each row."""
    more = sums.copy()
    more[1:] += numbers * sums[:-1]
    return more


def _lines(orders: PartialOrders) -> tuple[np.ndarray, np.ndarray]:
    """Return the items offered in each row, padded with n, and their levels, padded with -1.

    Items that are below all listed ones have a level beyond all others.
    """
    n, listed = orders.num_items, np.asarray(orders.listed)
    items = np.where(listed >= 0, listed, n)
    levels, offered = np.asarray(orders.levels), orders.offered()
    below = np.ones((len(listed), n + 1), bool)
    if offered is not None:
        below[:, :n] = np.asarray(offered)
    np.put_along_axis(below, items, False, axis=1)
    below = below[:, :n]
    width = int(below.sum(1).max())
    order = np.argsort(~below, axis=1, kind="stable")[:, :width]
    is_below = np.take_along_axis(below, order, axis=1)
    items = np.concatenate([items, np.where(is_below, order, n)], axis=1)
    return items, np.concatenate([levels, np.where(is_below, n + 1, -1)], axis=1)


def _entries(items: np.ndarray, which: np.ndarray, num_items: int) -> csr_array:
    row, place = np.nonzero(which)
    entries = np.ones(len(row)), (row, items[row, place])
    return csr_array(entries, shape=(len(items), num_items))


def _check_tie_sizes(sizes: np.ndarray, in_play: np.ndarray, kinds: list) -> None:
    """Refuse ties that occur wherever they can, so that their strength is infinite."""
    # One more of a log strength is no loss unless another size was chosen where this one could be.
    # If each size is passed over for each other one, directly or through others, no direction is
    # left in which the likelihood increases.
    passed = [
        [bool(np.any((sizes == own) & (in_play >= other))) for other in kinds] for own in kinds
    ]
    number, group = connected_components(np.array(passed), directed=True, connection="strong")
    if number > 1:
        always = [str(d) for d, k in zip(kinds, group, strict=True) if k != group[0]]
        raise RankingsError(
            f"the likelihood has no maximum: ties of {', '.join(always)} items occur wherever so "
            "many are left"
        )
