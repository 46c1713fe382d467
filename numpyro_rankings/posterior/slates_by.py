"""Groups, and first choices of slates, by what is known of the judges, such as their precinct.

A precinct of twelve voters says little of itself, and its shares by themselves would be noise. They
are partially pooled: the judges of precinct p are in the groups with probabilities :math:`\\pi_p`,
and these are alike as far as the precincts together say so,

.. math::

   n_p \\sim \\mathrm{Multinomial}(\\pi_p), \\qquad \\pi_p \\sim \\mathrm{Dirichlet}(m s), \\qquad
   s \\sim \\mathrm{Dirichlet}(1/2, …, 1/2), \\qquad p(m) = (1 + m)^{-2}.

Here s are the shares of a usual precinct, and m tells how alike the precincts are: :math:`1/(1+m)`,
the correlation of two judges of one precinct, is uniform beforehand. A precinct with n judges has
its own shares with weight n / (n + m), and s with the rest.

It is an analysis in two stages, a *cut* [1], made approximately: m and s go on from draw to draw,
with two cycles of steps in each. In each draw of the fit the judges of each group are
counted; given these counts, m is drawn by a slice step from the Dirichlet-multinomial likelihood,
in which the :math:`\\pi_p` are integrated out, s given the tables of the Chinese restaurant process
that stands for it [2], and then :math:`\\pi_p \\sim \\mathrm{Dirichlet}(n_p + m s)`. The groups are
those of the fit: what the precincts say of their judges does not change who is in them. First
choices are counted as they are, and tied ones drawn.

**References**

1. *Bayesian inference of the cut*, M. Plummer (Statistics and Computing, 2015).
2. *Hierarchical Dirichlet processes*, Y. W. Teh et al. (JASA, 2006), Section 5.1.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from numpyro_rankings.families.base import INTERVAL
from numpyro_rankings.ops.sampling import draw_log_gamma
from numpyro_rankings.posterior.blocs import Blocs
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.slates import check_slates, firsts_of, members_of
from numpyro_rankings.rankings import Orders, Rankings, check_rows, refuse_weights

_PRIOR = 0.5  # judges that a usual precinct has more in each group
_FEWEST, _MOST = 100, 10**8  # draws, if there are more, and judges in all of them
_MOST_LOG_M = 600.0  # which is beyond all that the prior allows, and no overflow
_CYCLES, _FIRST_CYCLES = 2, 30  # of the steps for m and s: in each draw, and before the first one


class SlatesBy(NamedTuple):
    """Shares of K groups, or blocs, and of S slates, by V values. Intervals hold 90%.

    - **values** - names of the precincts, or whatever the judges are told apart by, sorted.
    - **judges** - how many there are of each, int (V,).
    - **share** - the share of each group, partially pooled, (V, K), and **share_interval**,
      (V, K, 2): of all of whom the judges of the precinct are a sample. Judges in none of the
      groups are the rest.
    - **slates** - their names.
    - **first** - the share of the first choices of each slate, (V, S), and **first_interval**.
    """

    values: tuple[str, ...]
    judges: np.ndarray
    share: np.ndarray
    share_interval: np.ndarray
    slates: tuple[str, ...]
    first: np.ndarray
    first_interval: np.ndarray

    def take(self, groups: Any) -> "SlatesBy":
        """Return that of some of the groups, in some order; the other judges are in none."""
        share, bounds = self.share[:, groups], self.share_interval[:, groups]
        return self._replace(share=share, share_interval=bounds)


def slates_by(
    draws: Any,
    rankings: Rankings | Orders,
    slates: Mapping[str, str],
    values: Sequence[str],
    reference: Any = None,
    *,
    blocs: Blocs | None = None,
    seed: int = 0,
) -> SlatesBy:
    """Return the share of each group, or bloc, and of the first choices of each slate, by value.

    :mod:`numpyro_rankings.posterior.slates_by` says how they are pooled. The arguments that are
    not here are those of :func:`~numpyro_rankings.posterior.slates.slates_of`.

    :param values: what is known of each judge, such as the precinct, (N,) texts in the order of
        ``rankings.expand()``. Judges with an empty one are left out.
    :raises ValueError: as :func:`~numpyro_rankings.posterior.slates.slates_of`, if there are not N
        values, or if all are empty.

    .. doctest::

       >>> from numpyro_rankings import Rankings
       >>> rankings = Rankings.from_orderings([[0, 1], [2, 3]], items=list("abcd"), counts=[32, 8])
       >>> draws = {"weights": np.full((400, 4), 0.25), "log_joint": np.zeros(400)}
       >>> slates = {"a": "X", "b": "X", "c": "Y", "d": "Y"}
       >>> found = slates_by(draws, rankings, slates, ["Hill"] * 36 + ["Dale"] * 4)
       >>> found.values, found.judges.tolist()  # all four of Dale are for Y, and 32 of 36 for X
       (('Dale', 'Hill'), [4, 36])
       >>> bool(0.5 < found.first[0, 1] < 0.95), bool(0.8 < found.first[1, 0] < 0.9)
       (True, True)
    """
    check_rows(rankings, takes_comparisons=True)
    refuse_weights(rankings, "slates_by")
    check_slates(rankings.items, slates)
    if len(values) != rankings.num_rankings:
        raise ValueError(f"values: must be {rankings.num_rankings:,}, not {len(values):,}")
    names = sorted({*values} - {""})
    if not names:
        raise ValueError("values: all are empty")
    drawn, rng = Draws.of(draws).with_rankings(rankings), np.random.default_rng(seed)
    place = {name: k for k, name in enumerate([*names, ""])}
    known, number = np.array([place[x] for x in values]), len(place)
    # the judges of a cell have said the same, and have the same value, of which "" is the last
    row_and_value = np.asarray(rankings.row_index) * number + known
    pairs, cells = np.unique(row_and_value, return_inverse=True)
    rows, of_cells = pairs // number, pairs % number
    judges = np.bincount(known, minlength=number)[:-1]

    def by_value(table: np.ndarray) -> np.ndarray:
        sums = [np.bincount(of_cells, column, number)[:-1] for column in table.T]
        return np.stack(sums, axis=1).astype(int)

    members = map(by_value, members_of(drawn, rankings, reference, blocs, rng, cells))
    tables = [np.column_stack([x, judges - x.sum(1)]) for x in members]  # the last is of no group
    tables = [tables[k] for k in evenly(len(tables), max(_FEWEST, _MOST // len(values)))]
    num_groups, has_rest = tables[0].shape[1] - 1, any(x[:, -1].any() for x in tables)
    share = pooled_shares((x if has_rest else x[:, :-1] for x in tables), rng)

    of_slates, firsts = firsts_of(rankings, slates)
    has_first = firsts.sum(1) > 0
    sizes = np.bincount(cells) * has_first[rows]
    firsts[~has_first] = 1 / len(of_slates)  # of nobody
    first = pooled_shares((by_value(rng.multinomial(sizes, firsts[rows])) for _ in tables), rng)
    means, bounds = [], []
    for drawn_shares in (share[..., :num_groups], first):
        means.append(drawn_shares.mean(0))
        bounds.append(np.moveaxis(np.quantile(drawn_shares, INTERVAL, axis=0), 0, -1))
    return SlatesBy(tuple(names), judges, means[0], bounds[0], of_slates, means[1], bounds[1])


def pooled_shares(tables: Iterable[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Return draws of the shares of each row of tables of counts, partially pooled, (D, V, K).

    :param tables: D draws of what was counted, int (V, K). The chain of m and s goes on from one
        to the next.
    """
    found: list[np.ndarray] = []
    log_m, usual = 0.0, np.zeros(0)
    for counts in tables:
        if not found:
            usual = (counts.sum(0) + _PRIOR) / (counts.sum(0) + _PRIOR).sum()
        for _ in range(_CYCLES if found else _FIRST_CYCLES):
            log_m = _draw_log_m(log_m, counts, usual, rng)
            usual = _dirichlet(_num_tables(counts, np.exp(log_m) * usual, rng) + _PRIOR, rng)
        found.append(_dirichlet(counts + np.exp(log_m) * usual, rng))
    return np.stack(found)


def _dirichlet(amounts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw shares in the last axis."""
    logs = draw_log_gamma(rng, amounts)
    parts = np.exp(logs - logs.max(-1, keepdims=True))
    return parts / parts.sum(-1, keepdims=True)


def _draw_log_m(
    log_m: float, counts: np.ndarray, usual: np.ndarray, rng: np.random.Generator
) -> float:
    """Draw log m given s by a slice step, with stepping out.

    :param usual: s, (K,).
    """
    # equal counts of a group, and equal sums, have one term
    cells, times = np.unique(counts * len(usual) + np.arange(len(usual)), return_counts=True)
    number, group = np.divmod(cells, len(usual))
    totals, of_totals = np.unique(counts.sum(1), return_counts=True)

    def log_density(x: float) -> float:
        if abs(x) > _MOST_LOG_M:
            return -np.inf
        m = np.exp(x)
        terms = times @ _log_rising(number, m * usual[group])
        return terms - of_totals @ _log_rising(totals, m) + x - 2 * np.logaddexp(0, x)

    height = log_density(log_m) - rng.standard_exponential()
    low = log_m - rng.random()
    high = low + 1.0
    while log_density(low) > height:
        low -= 1.0
    while log_density(high) > height:
        high += 1.0
    while True:
        drawn = rng.uniform(low, high)
        if log_density(drawn) > height:
            return drawn
        low, high = (drawn, high) if drawn < log_m else (low, drawn)


def _log_rising(number: np.ndarray, start: Any) -> np.ndarray:
    """Return log Γ(n + a) - log Γ(a), which keeps its digits where a is large."""
    least = np.maximum(number, 1)
    return np.where(number > 0, gammaln(least) - betaln(least, start), 0.0)


def _num_tables(counts: np.ndarray, amounts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw at how many tables of the restaurants the judges of each group sit, (K,).

    :param amounts: m s, (K,).
    """
    flat = counts.ravel()
    of_judges = np.repeat(np.arange(len(flat)), flat)
    before = np.arange(len(of_judges)) - np.repeat(np.cumsum(flat) - flat, flat)
    group = of_judges % len(amounts)
    opens = rng.random(len(group)) * (amounts[group] + before) <= amounts[group]
    return np.bincount(group, opens, len(amounts))
