r"""Moves of the clusters with the labels integrated out, for any family of clusters.

Where clusters overlap, the labels of thousands of rankings determine the parameters far more
tightly than the rankings do, and a chain that moves the parameters only given the labels hardly
moves. Here the labels are summed over. Let A be the set of large clusters, those of at least m
rankings, and η_c their parameters. Add the shares :math:`w_c` of the clusters in A, distributed as
Dirichlet(:math:`N_c + κ`) given the labels. Given which rankings belong to A,

.. math:: p(A, w, η) ∝ \prod_{c ∈ A} β\, w_c^{κ-1} p(η_c) \prod_i \sum_{c ∈ A} w_c\, p(π_i | η_c),

with β = α and κ = 0 for the Dirichlet process, and κ = α/K and a fixed size of A for the finite
mixture. One move without labels is

1. :func:`choose_large_clusters`: draw m, which determines A, and draw the shares of A;
2. a reversible move on shares and parameters, with this density times h(w) as its target:
   Metropolis-Hastings steps (``steps.py``) that change one cluster, trade the shares of two, split
   one or merge two, in blocks in which all other clusters stay; or Hamiltonian trajectories of all
   continuous parameters and the larger shares (``trajectory.py``);
3. :meth:`LargeClusters.draw_labels`: draw the labels of the rankings of A again, M times.

Labels are valid if each cluster of A has at least m of them; from others, A would not be chosen.
Given shares and parameters they are valid with a probability Z, which :meth:`log_chance
<LargeClusters.log_chance>` approximates by h. The number V of valid results among M estimates M Z
without bias, so that the move is one of a pseudo-marginal sampler [4]: the current labels and M - 1
further draws at the start count V' valid results, and the move is accepted with probability
min(1, V h' / (V' h)), h' at the start. One of the valid results, chosen at random, gives the new
labels. A has at most 32 clusters; if there are more, nothing moves. A trajectory is reversible, and
so is a sequence of trajectories, or of steps or blocks whose kinds are drawn independently, and so
are trajectories, steps and trajectories again (:func:`between`); hence the whole move is reversible
and leaves the posterior invariant.

A family of clusters supplies its likelihood, its prior and its proposals (``target.py``,
``Clusters``).

**References**

1. *On Bayesian analysis of mixtures with an unknown number of components*, S. Richardson, P. J.
   Green (JRSS B, 1997): split and merge steps, there given the labels.
2. *Bayesian analysis of mixture models with an unknown number of components: an alternative to
   reversible jump methods*, M. Stephens (Annals of Statistics, 2000): the same with the labels
   integrated out.
3. *MCMC using Hamiltonian dynamics*, R. M. Neal (Handbook of MCMC, 2011).
4. *The pseudo-marginal approach for efficient Monte Carlo computations*, C. Andrieu, G. O. Roberts
   (Annals of Statistics, 2009).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.mixture.target import Clusters, LargeClusters, Mixture, Target
from numpyro_rankings.ops.loops import keys_of_loop, shared_bound
from numpyro_rankings.ops.sampling import draw_together, sample_log_gamma
from numpyro_rankings.ops.sums import count_by_label, sum_by_label

_MOST_CLUSTERS = 32  # largest size of A; with more clusters the move is skipped
_MANY_CELLS = 2**21  # rows times slots; with more there are no steps by default
# Limits of the work of the steps of one sweep: cells (rows times slots), and rows.
_STEP_CELLS, _STEP_ROWS = 40_000_000, 4_000_000

# Labels that a move draws at most, and how often it draws all of them.
_TRIED_LABELS, _MOST_TRIES = 2**16, 32


def choose_large_clusters(
    uniform: Array,
    key: Array,
    labels: Array,
    partition: PartitionPrior,
    row_index: Array | None,
    num_rows: int,
    num_slots: int,
    largest_minimum: int | None,
) -> LargeClusters:
    """Draw m, from **uniform** and at most **largest_minimum**, for A; and the shares of A."""
    sizes = count_by_label(labels, num_slots)
    # m grows with N, because small clusters appear and disappear often. In a finite mixture m may
    # be 0, so that empty components belong to A
    largest = len(labels) // 200 if largest_minimum is None else largest_minimum
    least = 1 if partition.num_components is None else 0
    minimum = _draw_minimum(uniform, max(math.isqrt(largest) - 1, least), max(largest, least))
    is_large = partition.among_used(sizes >= minimum, False)
    slots = _slots_for(is_large, sizes)
    active, sizes_there = is_large[slots], sizes[slots]
    inside = is_large.at[labels].get(mode="fill", fill_value=False)
    row_counts = inside.astype(jnp.int32)
    if row_index is not None:
        row_counts = sum_by_label(row_counts, row_index, num_rows)
    # about two standard deviations below m: a smaller share would rarely get m rankings again
    smallest_size = jnp.maximum(minimum - 2.0 * jnp.sqrt(minimum), 0.1 * minimum)
    gammas = sample_log_gamma(key, jnp.where(active, sizes_there, 1) + partition.kappa)
    gammas = jnp.where(active, gammas, -jnp.inf)
    return LargeClusters(
        minimum=minimum,
        is_large=is_large,
        slots=slots,
        active=active,
        small=(sizes_there > 0) & ~active,
        log_shares=gammas - jax.nn.logsumexp(gammas),
        lowest_log_share=jnp.log(smallest_size / jnp.maximum(inside.sum(), 1)),
        inside=inside,
        row_counts=row_counts.astype(float),
    )


def _draw_minimum(uniform: Array, low: int, high: int) -> Array:
    """Draw m from low to high, about uniformly in its logarithm."""
    log_range = math.log((high + 1.0) / (low + 0.5))
    minimum = jnp.round((low + 0.5) * jnp.exp(uniform * log_range) - 0.5)
    return minimum.astype(jnp.int32)


def _slots_for(is_large: Array, sizes: Array) -> Array:
    """Return the slots of A, then those that it may use: the free ones first, (W,)."""
    order = jnp.argsort(jnp.where(is_large, 0, jnp.where(sizes == 0, 1, 2)), stable=True)
    return order[: min(_MOST_CLUSTERS, len(sizes))]


class RankingData(Protocol):
    """The numbers of the rankings that the moves need."""

    @property
    def row_index(self) -> Array | None:
        """Row of each ranking, (N,), or None if ranking i is row i."""

    @property
    def counts(self) -> Array:
        """Number of rankings of each row, (rows,)."""


Move = Callable[[Array, Target, Mixture], Mixture]


def move_without_labels(
    key: Array,
    current: tuple[Array, Any],
    moves: Sequence[Move],
    clusters_of: Callable[[Array], Clusters],
    partition: PartitionPrior,
    data: RankingData,
    largest_minimum: int | None = None,
) -> tuple[Array, Any]:
    """Make each of the moves in turn, each with its own A, on labels (N,) and parameters."""
    # Empty slots that are variables of the model must hold draws from the prior. Slots that become
    # empty are left with arbitrary values, which the caller must replace.
    row_index, num_rows = data.row_index, len(data.counts)
    num_tries = min(max(_TRIED_LABELS // len(current[0]), 1), _MOST_TRIES)

    def one(current: tuple[Array, Any], key_and_move: tuple[Array, Array]) -> tuple[tuple, None]:
        key, which = key_and_move
        labels, parameters = current
        num_slots = len(jax.tree.leaves(parameters)[0])
        key_own, key_shares, key_move, key_labels = random.split(key, 4)
        for_minimum, for_accept, for_choice = draw_together(
            random.uniform, key_own, (), (), (num_tries,)
        )
        large = choose_large_clusters(
            for_minimum,
            key_shares,
            labels,
            partition,
            row_index,
            num_rows,
            num_slots,
            largest_minimum,
        )
        clusters = clusters_of(large.slots)
        target, mixture = _start_of_move(large, partition, clusters, parameters, num_rows)
        start, mixture = mixture, jax.lax.switch(which, moves, key_move, target, mixture)
        new_labels, log_ratio = _draw_valid_labels(
            key_labels, for_choice, large, (labels, row_index), start, mixture
        )
        possible = large.is_large.sum() <= len(large.slots)
        possible &= jnp.all(~large.active | (large.log_shares >= large.lowest_log_share))
        accepted = possible & (jnp.log(for_accept) < log_ratio)
        changed = (
            new_labels,
            jax.tree.map(lambda x, y: x.at[large.slots].set(y), parameters, mixture.parameters),
        )
        return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), changed, current), None

    each = keys_of_loop(key, len(moves)), jnp.arange(len(moves))
    return jax.lax.scan(one, current, each)[0]


def between(outer: Move, inner: Move) -> Move:
    """Return a move that makes one move, another, and the first again: reversible if both are."""

    def move(key: Array, target: Target, mixture: Mixture) -> Mixture:
        def one(mixture: Mixture, part: tuple[Array, Array]) -> tuple[Mixture, None]:
            key, is_inner = part
            return jax.lax.cond(is_inner, inner, outer, key, target, mixture), None

        parts = random.split(key, 3), jnp.array([False, True, False])
        return jax.lax.scan(one, mixture, parts)[0]

    return move


def _draw_valid_labels(
    key: Array,
    for_choice: Array,
    large: LargeClusters,
    old_labels: tuple[Array, Array | None],
    start: Mixture,
    end: Mixture,
) -> tuple[Array, Array]:
    """Draw the labels M times at the end of a move, and M - 1 times at its start."""
    # It returns valid labels, one of them chosen at random, if any, and log V h' / (V' h).
    num_tries = len(for_choice)
    ends = [end] if num_tries == 1 else [end, start]
    tables = jnp.stack([mixture.table for mixture in ends])
    log_shares = jnp.stack([mixture.log_shares for mixture in ends])
    draw_at_end = jax.vmap(
        lambda key, table, shares: large.draw_labels(key, *old_labels, table, shares),
        (0, None, None),
    )
    keys = random.split(key, (len(ends), num_tries))
    labels, valid = jax.vmap(draw_at_end)(keys, tables, log_shares)
    # the labels before the move are one of the results at the start
    before = 1 + valid[1, 1:].sum() if num_tries > 1 else 1
    chosen = jnp.argmax(jnp.where(valid[0], for_choice, -1.0))
    log_ratio = jnp.log(valid[0].sum() / before)
    log_ratio += large.log_chance(start.log_shares).sum() - large.log_chance(end.log_shares).sum()
    return labels[0, chosen], log_ratio


def _start_of_move(
    large: LargeClusters,
    partition: PartitionPrior,
    clusters: Clusters,
    parameters: Any,
    num_rows: int,
) -> tuple[Target, Mixture]:
    """Return the target and the mixture at the start of a move."""
    parameters = jax.tree.map(lambda x: x[large.slots], parameters)

    def one_slot(w: Array, log_table: Array) -> Array:
        own = jax.tree.map(lambda x: x[w], parameters)
        return log_table.at[w].set(clusters.log_row(own, w))

    # the slots of A come first, and the entries of the others are not read
    log_table = jnp.zeros((len(large.slots), num_rows))
    log_table = jax.lax.fori_loop(0, shared_bound(large.active.sum()), one_slot, log_table)
    start, table = large.start(log_table)
    log_priors = clusters.log_prior(parameters)
    mixture = Mixture(parameters, log_priors, large.log_shares, table, jnp.ones_like(start))
    return Target(large, partition, clusters, start), mixture


class Effort(NamedTuple):
    """Number of Metropolis-Hastings steps in a sweep, and whether there are trajectories too."""

    num_steps: int
    has_trajectories: bool


def choose_effort(
    requested: int | None,
    num_rankings: int,
    num_slots: int,
    rows_shape: tuple[int, ...],
    most_in_trajectory: int = _MANY_CELLS,
    most_rows: int = _STEP_ROWS,
) -> Effort:
    """Choose how many moves without labels a sweep makes: ``requested``, or what the data allow."""
    # Rows have the shape (distinct rankings, stages). There are limits of rows times slots times
    # stages of a trajectory, and of the rows that the steps of a sweep may evaluate.
    num_rows, num_stages = rows_shape
    cells = num_rows * num_slots
    has_trajectories = cells * num_stages <= most_in_trajectory
    if requested is not None:
        return Effort(requested, has_trajectories)
    most = min(max(4 * num_rankings, 10), 2000)
    most = min(_STEP_CELLS // cells, most_rows // num_rows, most)
    return Effort(0 if cells > _MANY_CELLS else most, has_trajectories)
