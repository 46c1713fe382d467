r"""Moves with the labels integrated out: what all families of clusters share.

Where clusters overlap, the labels of thousands of rankings pin the parameters down far more
tightly than the rankings do, and a chain that moves them only given the labels hardly moves. Here
the labels are summed over. Let A be the clusters of at least m rankings, and η_c their parameters.
Given who belongs to A, and with the shares :math:`w_c` of A added, distributed as
Dirichlet(:math:`N_c + κ`) given the labels,

.. math:: p(A, w, η) ∝ \prod_{c ∈ A} β\, w_c^{κ-1} p(η_c) \prod_i \sum_{c ∈ A} w_c\, p(π_i | η_c),

β = α and κ = 0 for the Dirichlet process; κ = α/K, A of a fixed size, for the finite mixture.
Metropolis-Hastings steps change the parameters of one cluster or the shares of two, split one
cluster in two or merge two; Hamiltonian trajectories move all parameters that are continuous and
all shares at once. The labels are then drawn anew. If some cluster now has fewer than m rankings, A
would not be found from there, and all is taken back. A has at most 32 clusters: where it has more,
nothing moves. A trajectory is reversible, and so are many steps whose kinds are drawn
independently; hence the whole is reversible too, and leaves the posterior invariant.

**References**

1. *On Bayesian analysis of mixtures with an unknown number of components*, S. Richardson, P. J.
   Green (JRSS B, 1997): split and merge steps, there given the labels.
2. *Bayesian analysis of mixture models with an unknown number of components: an alternative to
   reversible jump methods*, M. Stephens (Annals of Statistics, 2000): the same with the labels
   integrated out.
3. *MCMC using Hamiltonian dynamics*, R. M. Neal (Handbook of MCMC, 2011).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.labels import draw_labels
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.sums import count_by_label, sum_by_label

_MOST_CLUSTERS = 32  # where A is larger, nothing moves
_MOST_LEAPFROGS = 64  # long trajectories pay where many rankings make some directions narrow
# Beyond so many rows times slots, the steps cost too much.
_MANY_CELLS = 2**21
_STEP_CELLS, _STEP_ROWS = 40_000_000, 4_000_000  # that the steps of a sweep may touch


def number_of_moves(
    asked: int | None,
    num_rankings: int,
    num_rows: int,
    num_stages: int,
    num_slots: int,
    most_in_glide: int = _MANY_CELLS,
    most_rows: int = _STEP_ROWS,
) -> tuple[int, bool]:
    """How many Metropolis-Hastings steps a sweep has, and whether trajectories with them.

    :param asked: number of steps, or None for what the data allow.
    :param most_in_glide: rows times slots times stages up to which a trajectory pays.
    :param most_rows: that the steps of a sweep may touch.
    """
    cells = num_rows * num_slots
    glides = cells * num_stages <= most_in_glide
    if asked is not None:
        return asked, glides
    most = min(max(num_rankings, 10), 3000)
    most = min(_STEP_CELLS // cells, most_rows // num_rows, most)
    return (0 if cells > _MANY_CELLS else most), glides


class Large(NamedTuple):
    """A, and the W slots that it has or that may join it.

    - **minimum** - m, and **is_large** - the clusters of A, (C,) bool.
    - **slots** - (W,), and **active** - those of A, (W,) bool.
    - **others** - slots held by clusters outside A, (W,) bool.
    - **log_shares** - log w, (W,), -inf outside A.
    - **lowest_log_share** - smaller ones have density 0, for they would be taken back anyway.
    - **inside** - rankings in A, (N,) bool; **row_counts** - so many of each row, (rows,) float.
    """

    minimum: Array
    is_large: Array
    slots: Array
    active: Array
    others: Array
    log_shares: Array
    lowest_log_share: Array
    inside: Array
    row_counts: Array

    def log_gain(self, density: Array, before: Array) -> Array:
        """Change of the log likelihood, densities of the rows given up to a common factor."""
        # rows outside A may be impossible in all of A: their logarithms have no slope
        inside = self.row_counts > 0
        density, before = jnp.where(inside, density, 1.0), jnp.where(inside, before, 1.0)
        return jnp.sum(self.row_counts * (jnp.log(density) - jnp.log(before)))

    def start(self, log_table: Array) -> tuple[Array, Array]:
        """Log density of each row, (rows,), and its probability in each slot over that.

        Of rows that are impossible in all of A the density is taken as 1.

        :param log_table: log probability of each row in each slot, (W, rows).
        """
        weighted = jnp.where(self.active[:, None], log_table + self.log_shares[:, None], -jnp.inf)
        start = jax.nn.logsumexp(weighted, axis=0)
        start = jnp.where(start > -jnp.inf, start, 0.0)
        return start, relative(log_table, start)

    def draw_labels(
        self, key: Array, labels: Array, row_index: Array, table: Array, log_shares: Array
    ) -> tuple[Array, Array]:
        """New labels of the rankings in A after a move, and whether it could be undone."""
        log_weights = jnp.log(table) + log_shares[:, None]
        new_labels = self.slots[draw_labels(key, log_weights, row_index)]
        new_labels = jnp.where(self.inside, new_labels, labels)
        new_sizes = count_by_label(new_labels, len(self.is_large))
        # A is found again, and the start was where the moves can return to
        found = (new_sizes >= self.minimum)[self.slots] == (log_shares > -jnp.inf)
        valid = jnp.all(found) & (self.is_large.sum() <= len(self.slots))
        valid &= jnp.all(~self.active | (self.log_shares >= self.lowest_log_share))
        return new_labels.astype(labels.dtype), valid


def relative(log_row: Array, start: Array) -> Array:
    """Probabilities of rows over those at the start, within what float32 can hold."""
    return jnp.exp(jnp.minimum(log_row - start, 80.0))


def choose_large(
    key_minimum: Array,
    key_shares: Array,
    labels: Array,
    partition: PartitionPrior,
    row_index: Array,
    num_rows: int,
    num_slots: int,
    largest_minimum: int | None,
) -> Large:
    """Choose m and so A, and draw the shares given the labels.

    :param largest_minimum: m is at most this, by default N/200.
    """
    num_rankings = len(labels)
    fixed_number = partition.num_components is not None
    sizes = count_by_label(labels, num_slots)
    # smaller clusters come and go too easily; the empty ones of a finite mixture take part
    if largest_minimum is None:
        largest_minimum = num_rankings // 200
    least = 0 if fixed_number else 1
    low, high = max(math.isqrt(largest_minimum) - 1, least), max(largest_minimum, least)
    log_range = math.log((high + 1.0) / (low + 0.5))
    minimum = jnp.round((low + 0.5) * jnp.exp(random.uniform(key_minimum) * log_range) - 0.5)
    minimum = minimum.astype(jnp.int32)

    # the slots concerned: A, then as many free ones as there are seats at the table
    is_large = sizes >= minimum
    order = jnp.argsort(jnp.where(is_large, 0, jnp.where(sizes == 0, 1, 2)), stable=True)
    slots = order[: min(_MOST_CLUSTERS, num_slots)]
    active, sizes_there = is_large[slots], sizes[slots]
    inside = is_large[labels]
    row_counts = sum_by_label(inside.astype(jnp.int32), row_index, num_rows)
    few = jnp.maximum(minimum - 2.0 * jnp.sqrt(minimum), 0.1 * minimum)
    gammas = random.loggamma(key_shares, jnp.where(active, sizes_there, 1) + partition.kappa)
    gammas = jnp.where(active, gammas, -jnp.inf)
    return Large(
        minimum=minimum,
        is_large=is_large,
        slots=slots,
        active=active,
        others=(sizes_there > 0) & ~active,
        log_shares=gammas - jax.nn.logsumexp(gammas),
        lowest_log_share=jnp.log(few / jnp.maximum(inside.sum(), 1)),
        inside=inside,
        row_counts=row_counts.astype(float),
    )


def log_prior_of_shares(
    large: Large, partition: PartitionPrior, log_each: Array, log_shares: Array
) -> Array:
    """Log of all but the likelihood.

    :param log_each: log of p(η_c), and for the Dirichlet process of α, (W,).
    """
    active = log_shares > -jnp.inf
    each = log_each + (partition.kappa - 1.0) * jnp.where(active, log_shares, 0.0)
    too_small = jnp.any(active & (log_shares < large.lowest_log_share))
    return jnp.where(too_small, -jnp.inf, jnp.sum(jnp.where(active, each, 0.0)))


def nth(mask: Array, n: Array) -> Array:
    """Index of the n-th true entry."""
    return jnp.argmax(jnp.cumsum(mask) > n)


class Pair(NamedTuple):
    """A step's clusters c and d, and their shares before and after.

    - **c**, **d** - slots; d is a free one for a split.
    - **possible** - whether there are such.
    - **log_shares** - after the step, (W,).
    - **log_split** - log of the share that is split or merged over the number of clusters that
      might have been split; of the density of a split what its parameters do not tell.
    - **log_jacobian** - of a trade of shares.
    """

    c: Array
    d: Array
    possible: Array
    log_shares: Array
    log_split: Array
    log_jacobian: Array


def choose_pair(
    large: Large,
    log_shares: Array,
    uniforms: Array,
    log_odds_step: Array,
    splits: Array,
    merges: Array,
    trades: Array,
    any_free: bool = False,
) -> Pair:
    """Two clusters, and what becomes of their shares: other odds, a split of c's, or all for c.

    :param any_free: whether a split takes any free slot, or the first. Where free slots differ, for
        they hold something, it must be any: a merge may free any of them.
    """
    active = log_shares > -jnp.inf
    number = active.sum()
    first = jnp.minimum((uniforms[0] * number).astype(jnp.int32), number - 1)
    second = jnp.minimum((uniforms[1] * (number - 1)).astype(jnp.int32), number - 2)
    c, d = nth(active, first), nth(active, second + (second >= first))
    free = ~active & ~large.others
    which = (uniforms[1] * free.sum()).astype(jnp.int32) if any_free else jnp.array(0)
    d = jnp.where(splits, nth(free, jnp.minimum(which, free.sum() - 1)), d)
    possible = (number >= 1 + (merges | trades)) & (jnp.any(free) | ~splits)
    share_c, share_d = log_shares[c], log_shares[d]
    both = jnp.where(splits, share_c, jnp.logaddexp(share_c, share_d))
    log_odds = share_c - share_d + log_odds_step
    log_odds = jnp.where(splits, jnp.log(uniforms[2] / (1 - uniforms[2])), log_odds)
    new_c = jnp.where(trades | splits, both + jax.nn.log_sigmoid(log_odds), share_c)
    new_d = jnp.where(trades | splits, both + jax.nn.log_sigmoid(-log_odds), share_d)
    new_c, new_d = jnp.where(merges, both, new_c), jnp.where(merges, -jnp.inf, new_d)
    return Pair(
        c,
        d,
        possible,
        log_shares.at[d].set(new_d).at[c].set(new_c),
        # the choice of c for a split, of c and d for a merge
        both - jnp.log(number + splits),
        jnp.where(trades, new_c + new_d - share_c - share_d, 0.0),
    )


def leapfrog_steps(key: Array, large: Large, active: Array) -> tuple[Array, int]:
    """Size of a leapfrog step, and how many of them.

    It is around the posterior standard deviation in a cluster of mean size.
    """
    size = 0.3 * jnp.exp(random.uniform(key, maxval=math.log(6.0)))
    size *= jnp.sqrt(active.sum() / jnp.maximum(large.row_counts.sum(), 1.0))
    return size, min(max(len(large.inside), 8), _MOST_LEAPFROGS)


def trajectory(
    key: Array,
    position: Any,
    momentum: Any,
    moving: Any,
    log_density: Callable[[Any], Array],
    size: Array,
    length: int,
) -> tuple[Any, Array]:
    """A Hamiltonian trajectory [3]: the new position, and whether it is accepted.

    :param moving: which entries move, booleans like the position; the others have no momentum.
    :param size: of a leapfrog step, and **length**, their number.
    """

    def add(x: Any, y: Any, times: Array) -> Any:
        return jax.tree.map(lambda a, b: a + times * b, x, y)

    def gradient(position: Any) -> Any:
        # outside the support of a prior the slope may be no number: any other one will do, for the
        # trajectory is reversible whatever it is, and nothing is accepted there
        slope = jax.grad(log_density)(position)
        return jax.tree.map(lambda m, g: jnp.where(m & jnp.isfinite(g), g, 0.0), moving, slope)

    def leapfrog(carry: tuple, _: None) -> tuple[tuple, None]:
        position, momentum, slope = carry
        momentum = add(momentum, slope, 0.5 * size)
        position = add(position, momentum, size)
        slope = gradient(position)
        return (position, add(momentum, slope, 0.5 * size), slope), None

    def energy(position: Any, momentum: Any) -> Array:
        kinetic = 0.5 * sum(jnp.sum(p**2) for p in jax.tree.leaves(momentum))
        return kinetic - log_density(position)

    begin = (position, momentum, gradient(position))
    (new_position, new_momentum, _), _ = jax.lax.scan(leapfrog, begin, None, length=length)
    log_accept = energy(position, momentum) - energy(new_position, new_momentum)
    return new_position, jnp.log(random.uniform(key)) < log_accept
