"""Maximum likelihood and maximum a posteriori weights of the Plackett–Luce model."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from numpyro_rankings.rankings import Rankings, RankingsError, check_rankings

_MOST_ITERATIONS = 100_000
_TOLERANCE = 1e-9  # change of a log weight in one iteration
_NAMED = 10  # items of a group that an error message names
_BITS = 62  # items whose sets can be encoded in one integer


class PlackettLuceFit(NamedTuple):
    """Maximum likelihood or maximum a posteriori weights.

    - **weights** - normalised, float64 (n,).
    - **log_likelihood** - of all rankings at these weights, without the prior.
    - **num_iterations** - number of iterations used.
    """

    weights: np.ndarray
    log_likelihood: float
    num_iterations: int


def plackett_luce_map(rankings: Rankings, shape: float = 1.0, rate: float = 0.0) -> PlackettLuceFit:
    r"""
    Weights of highest posterior density, by default of highest likelihood.

    They are found by Hunter's MM algorithm [1], which is the EM algorithm of [2]: the next weight
    of an item is :math:`(a - 1 + n_k) / (b + \sum 1/W)`, where the sum is over the stages at which
    the item was in play and W is the mass of all items in play.

    :param rankings: top-t rankings of all items, or of choice sets.
    :param shape: a >= 1 of the prior Gamma(a, b) of each weight. With 1 the result is the maximum
        of the likelihood. With 2 it is as if each item had been chosen once more, from all
        items.
    :param rate: b >= 0. The likelihood depends on ratios of weights only, so the normalised weights
        of highest density are the same for every rate.
    :return: normalised weights, the log likelihood, and the number of iterations.
    :raises RankingsError: with ``shape=1``, if the likelihood has no maximum, because it increases
        as the weights of some items go to 0 or infinity: these items are always chosen before the
        others, never, or not compared with them. The message names them.

    **References:**

    1. Hunter, D. R. (2004), "MM algorithms for generalized Bradley–Terry models".
    2. Caron, F., Doucet, A. (2012), "Efficient Bayesian inference for generalized Bradley–Terry
       models".

    .. doctest::

       >>> from numpyro_rankings import Rankings, plackett_luce_map
       >>> rankings = Rankings.from_orderings([[0], [1]], num_items=2, counts=[3, 1])
       >>> plackett_luce_map(rankings).weights.round(3).tolist()
       [0.75, 0.25]
    """
    check_rankings(rankings)
    for name, value in (("shape", shape), ("rate", rate)):
        if np.ndim(value) > 0 or np.asarray(value).dtype.kind not in "iuf":
            raise ValueError(f"{name} must be a number, got {value!r}")
    if not (np.isfinite(shape) and shape >= 1.0):
        raise ValueError(f"shape must be at least 1, or there is no maximum; got {shape!r}")
    if not (np.isfinite(rate) and rate >= 0.0):
        raise ValueError(f"rate must be a number, 0 or more; got {rate!r}")
    if rankings.num_items < 2:
        raise ValueError("a ranking needs at least 2 items")
    stages = _Stages(rankings)
    if shape == 1.0:
        _check_that_there_is_a_maximum(rankings, stages)
    n = rankings.num_items
    # over all scales the density is highest at Σ w = n (a - 1) / b, which is 1 with this b
    prior = n * (shape - 1.0)
    weights = np.full(n, 1.0 / n)
    iteration, change = 0, np.inf
    while change > _TOLERANCE and iteration < _MOST_ITERATIONS:
        new = (shape - 1.0 + stages.times_chosen) / (stages.times_in_play(weights) + prior)
        new /= new.sum()
        change = np.max(np.abs(np.log(new / weights)))
        weights, iteration = new, iteration + 1
    if change > _TOLERANCE:
        warnings.warn(
            f"the weights still change by {change:.1e} after {iteration} iterations: some items "
            "are hardly compared with the others",
            UserWarning,
            stacklevel=2,
        )
    return PlackettLuceFit(weights, stages.log_likelihood(weights), iteration)


class _Stages:
    """The stages of all rankings in float64, where stages with the same items in play are merged.

    Stages with one item in play are not informative and are left out.
    """

    def __init__(self, rankings: Rankings) -> None:
        n = rankings.num_items
        self.num_items, self.orderings = n, np.asarray(rankings.orderings)
        listed = self.orderings >= 0
        offered = rankings.choice_sets
        self.offered = None if offered is None else np.asarray(offered)
        num_offered = n if self.offered is None else self.offered.sum(1, keepdims=True)
        self.informative = listed & (num_offered - np.arange(listed.shape[1]) > 1)
        counts = np.asarray(rankings.counts, float)[:, None] * self.informative
        # padding has a column of its own
        self.columns = np.where(listed, self.orderings, n)
        self.times_chosen = np.bincount(self.columns.ravel(), counts.ravel(), n + 1)[:n]
        self.counts, self.in_play = counts, None
        if self.offered is not None:
            row, place = np.nonzero(listed)
            items = self.orderings[row, place]
            self.listed = csr_array((np.ones(len(row)), (row, items)), (len(listed), n))
            unlisted = self.offered.copy()
            unlisted[row, items] = False
            self.unlisted = csr_array(unlisted, dtype=float)
        if n <= _BITS:
            bits = np.where(listed, 1 << np.maximum(self.orderings.astype(np.int64), 0), 0)
            powers = 1 << np.arange(n, dtype=np.int64)
            all_offered = powers.sum() if self.offered is None else (self.offered * powers).sum(1)
            codes = np.reshape(all_offered, (-1, 1)) - np.cumsum(bits, axis=1) + bits
            sets, which = np.unique(codes[self.informative], return_inverse=True)
            self.in_play = ((sets[:, None] & powers) > 0).astype(float)
            self.counts = np.bincount(which.ravel(), counts[self.informative], len(sets))

    def _masses(self, weights: np.ndarray) -> np.ndarray:
        """Mass in play at each stage, (rows, T), 1 if it is not informative; or for each set."""
        if self.in_play is not None:
            return self.in_play @ weights
        chosen = np.append(weights, 0.0)[self.columns]
        # in float64 the difference keeps enough digits
        rest = 1.0 - chosen.sum(1) if self.offered is None else self.unlisted @ weights
        masses = np.maximum(rest, 0.0)[:, None] + np.cumsum(chosen[:, ::-1], axis=1)[:, ::-1]
        return np.where(self.informative, masses, 1.0)

    def times_in_play(self, weights: np.ndarray) -> np.ndarray:
        """Σ 1/W over the stages where each item is in play, the expected waiting times, (n,)."""
        times = self.counts / self._masses(weights)
        if self.in_play is not None:
            return times @ self.in_play
        upto, n = np.cumsum(times, axis=1), self.num_items
        total = upto[:, -1]
        if self.offered is not None:
            listed = np.bincount(self.columns.ravel(), upto.ravel(), n + 1)[:n]
            return listed + self.unlisted.T @ total
        after = total[:, None] - upto
        return total.sum() - np.bincount(self.columns.ravel(), after.ravel(), n + 1)[:n]

    def log_likelihood(self, weights: np.ndarray) -> float:
        """Log likelihood of all rankings; the weights of items never chosen may be 0."""
        chosen = self.times_chosen > 0
        total = np.sum(self.times_chosen[chosen] * np.log(weights[chosen]))
        return float(total - np.sum(self.counts * np.log(self._masses(weights))))


def _check_that_there_is_a_maximum(rankings: Rankings, stages: _Stages) -> None:
    """Check that every item beats every other, directly or through others [1, assumption 1]."""
    n, columns = rankings.num_items, stages.columns
    # before[j, i]: rankings that list j before i
    before = np.zeros((n + 1) * (n + 1))
    for later in range(1, columns.shape[1]):
        for earlier in range(later):
            pairs = columns[:, earlier] * (n + 1) + columns[:, later]
            before += np.bincount(pairs, minlength=before.size)
    before = before.reshape(n + 1, n + 1)[:n, :n]
    if stages.offered is None:
        # some list has item i, and not j before it
        listed = np.bincount(columns.ravel(), minlength=n + 1)[:n]
        beats = listed[:, None] > before.T
    else:
        beats = (before > 0) | ((stages.listed.T @ stages.unlisted).toarray() > 0)
    np.fill_diagonal(beats, False)
    number, group = connected_components(beats, directed=True, connection="strong")
    if number == 1:
        return
    main = np.argmax(np.bincount(group))
    reach, reached = _reach(beats, group == main), _reach(beats.T, group == main)
    outside = group != main
    kinds = {
        "always ahead of": outside & reached & ~reach,
        "never ahead of": outside & reach & ~reached,
        "not compared with": outside & ~reach & ~reached,
    }
    phrases = [f"{_name(rankings, which)} {how}" for how, which in kinds.items() if which.any()]
    raise RankingsError(
        f"the likelihood has no maximum: {', '.join(phrases)} the other items. Leave them out, or "
        "give the weights a prior with shape > 1"
    )


def _reach(beats: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Items that those of ``start`` beat, directly or through others."""
    found = start
    while True:
        more = found | beats[found].any(0)
        if np.array_equal(more, found):
            return found
        found = more


def _name(rankings: Rankings, which: np.ndarray) -> str:
    names = [repr(rankings.items[item]) for item in np.flatnonzero(which)]
    shown = ", ".join(names[:_NAMED])
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"items {shown}{rest} are" if len(names) > 1 else f"item {shown} is"
