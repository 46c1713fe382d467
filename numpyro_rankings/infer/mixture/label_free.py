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
2. a reversible move on shares and parameters, with this density as its target:
   Metropolis-Hastings steps (:func:`metropolis_step`) that change one cluster, trade the shares of
   two, split one or merge two; or a Hamiltonian trajectory of all continuous parameters and all
   shares (:func:`move_along_trajectory`);
3. :meth:`LargeClusters.draw_labels`: draw the labels of the rankings of A again.

If some cluster then has fewer than m rankings, A would not be chosen from the new state, and the
whole move is rejected. A has at most 32 clusters; if there are more, nothing moves. A trajectory is
reversible, and so is a sequence of steps whose kinds are drawn independently; hence the whole move
is reversible and leaves the posterior invariant.

A family of clusters supplies its likelihood, its prior and its proposals (:class:`Clusters`).

**References**

1. *On Bayesian analysis of mixtures with an unknown number of components*, S. Richardson, P. J.
   Green (JRSS B, 1997): split and merge steps, there given the labels.
2. *Bayesian analysis of mixture models with an unknown number of components: an alternative to
   reversible jump methods*, M. Stephens (Annals of Statistics, 2000): the same with the labels
   integrated out.
3. *MCMC using Hamiltonian dynamics*, R. M. Neal (Handbook of MCMC, 2011).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.labels import draw_labels
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.ops.sums import count_by_label, sum_by_label

_MOST_CLUSTERS = 32  # where A is larger, nothing moves
_MOST_LEAPFROGS = 64  # long trajectories pay where many rankings make some directions narrow
_MANY_CELLS = 2**21  # rows times slots beyond which the steps cost too much
_STEP_CELLS, _STEP_ROWS = 40_000_000, 4_000_000  # what the steps of one sweep may evaluate


# -- what a family of clusters supplies ------------------------------------------------------------


class Proposal(NamedTuple):
    """Parameters that a step proposes for one cluster.

    - **parameters** - of the cluster: of the new cluster d for a split, of c otherwise.
    - **log_density** - log density with which a split proposes the parameters of d given those of
      c; for a merge, evaluated at the clusters that are merged.
    - **log_jacobian** - log Jacobian of the change of one cluster.
    """

    parameters: Any
    log_density: Array
    log_jacobian: Array


class Path(NamedTuple):
    """What a Hamiltonian trajectory varies.

    - **position** - continuous parameters of all slots, where the trajectory starts.
    - **moving** - which of its entries move.
    - **parameters** - maps a position to the parameters of all slots.
    - **rows** - maps a position to the probabilities of all rows in all slots, (W, rows), relative
      to the start.
    - **log_jacobian** - maps a position to the log Jacobian of the target's parameters.
    """

    position: Any
    moving: Any
    parameters: Callable[[Any], Any]
    rows: Callable[[Any], Array]
    log_jacobian: Callable[[Any], Array]


class Clusters(Protocol):
    """Likelihood, prior and proposals of a family, for the W slots that may be in A."""

    @property
    def free_slots_hold_parameters(self) -> bool:
        """Whether free slots hold variables of the model, so that a split may take any of them."""

    def log_row(self, parameters: Any, slot: Array) -> Array:
        """Return the log probability of every row in one cluster, (rows,)."""

    def log_prior(self, parameters: Any) -> Array:
        """Return log β p(η_c) of several clusters, (W,), where β is 1 for a finite mixture."""

    def propose(self, parameters: Any, pair: "Pair", draw: "StepDraw") -> Proposal:
        """Propose parameters for one cluster of the pair.

        :param parameters: of all slots.
        """

    def path(self, parameters: Any, active: Array, start: Array) -> Path:
        """Return the continuous parameters of the slots, for a trajectory."""


# -- the clusters of A -----------------------------------------------------------------------------


class LargeClusters(NamedTuple):
    """The set A of large clusters, and the W slots that it uses or may use.

    - **minimum** - m, and **is_large** - the clusters of A, (C,) bool.
    - **slots** - (W,), and **active** - those of A, (W,) bool.
    - **small** - slots of occupied clusters outside A, (W,) bool.
    - **log_shares** - log w, (W,), -inf outside A.
    - **lowest_log_share** - smaller shares have density 0, because their clusters would soon be too
      small and the move would be rejected.
    - **inside** - rankings in A, (N,) bool; **row_counts** - number of them by row, (rows,) float.
    """

    minimum: Array
    is_large: Array
    slots: Array
    active: Array
    small: Array
    log_shares: Array
    lowest_log_share: Array
    inside: Array
    row_counts: Array

    def log_likelihood_ratio(self, density: Array, before: Array) -> Array:
        """Return the change of the log likelihood; densities are up to a common factor per row."""
        # rows outside A may have probability 0 in all of A, and their logarithms no gradient
        inside = self.row_counts > 0
        density, before = jnp.where(inside, density, 1.0), jnp.where(inside, before, 1.0)
        return jnp.sum(self.row_counts * (jnp.log(density) - jnp.log(before)))

    def start(self, log_table: Array) -> tuple[Array, Array]:
        """Return the log density of each row, (rows,), and its relative probability in each slot.

        The density of rows that are impossible in all of A counts as 1.

        :param log_table: log probability of each row in each slot, (W, rows).
        """
        weighted = jnp.where(self.active[:, None], log_table + self.log_shares[:, None], -jnp.inf)
        start = jax.nn.logsumexp(weighted, axis=0)
        start = jnp.where(start > -jnp.inf, start, 0.0)
        return start, relative(log_table, start)

    def draw_labels(
        self, key: Array, labels: Array, row_index: Array, table: Array, log_shares: Array
    ) -> tuple[Array, Array]:
        """Draw the labels of the rankings in A after a move.

        :return: all labels, (N,), and whether the move is valid: A would be chosen from the new
            state too.
        """
        log_weights = jnp.log(table) + log_shares[:, None]
        new_labels = self.slots[draw_labels(key, log_weights, row_index)]
        new_labels = jnp.where(self.inside, new_labels, labels)
        new_sizes = count_by_label(new_labels, len(self.is_large))
        # A is found again, and the start was a state that a move can return to
        found = (new_sizes >= self.minimum)[self.slots] == (log_shares > -jnp.inf)
        valid = jnp.all(found) & (self.is_large.sum() <= len(self.slots))
        valid &= jnp.all(~self.active | (self.log_shares >= self.lowest_log_share))
        return new_labels.astype(labels.dtype), valid


def choose_large_clusters(
    keys: tuple[Array, Array],
    labels: Array,
    partition: PartitionPrior,
    row_index: Array,
    num_rows: int,
    num_slots: int,
    largest_minimum: int | None,
) -> LargeClusters:
    """Draw m, which determines A, and draw the shares of A given the labels.

    :param keys: for m and for the shares.
    :param largest_minimum: m is at most this, by default N/200.
    """
    key_minimum, key_shares = keys
    sizes = count_by_label(labels, num_slots)
    # smaller clusters come and go too easily; the empty ones of a finite mixture take part
    if largest_minimum is None:
        largest_minimum = len(labels) // 200
    least = 1 if partition.num_components is None else 0
    low, high = max(math.isqrt(largest_minimum) - 1, least), max(largest_minimum, least)
    log_range = math.log((high + 1.0) / (low + 0.5))
    minimum = jnp.round((low + 0.5) * jnp.exp(random.uniform(key_minimum) * log_range) - 0.5)
    minimum = minimum.astype(jnp.int32)

    # the slots of A come first, then the free ones
    is_large = sizes >= minimum
    order = jnp.argsort(jnp.where(is_large, 0, jnp.where(sizes == 0, 1, 2)), stable=True)
    slots = order[: min(_MOST_CLUSTERS, num_slots)]
    active, sizes_there = is_large[slots], sizes[slots]
    inside = is_large[labels]
    row_counts = sum_by_label(inside.astype(jnp.int32), row_index, num_rows)
    few = jnp.maximum(minimum - 2.0 * jnp.sqrt(minimum), 0.1 * minimum)
    gammas = sample_log_gamma(key_shares, jnp.where(active, sizes_there, 1) + partition.kappa)
    gammas = jnp.where(active, gammas, -jnp.inf)
    return LargeClusters(
        minimum=minimum,
        is_large=is_large,
        slots=slots,
        active=active,
        small=(sizes_there > 0) & ~active,
        log_shares=gammas - jax.nn.logsumexp(gammas),
        lowest_log_share=jnp.log(few / jnp.maximum(inside.sum(), 1)),
        inside=inside,
        row_counts=row_counts.astype(float),
    )


def relative(log_row: Array, start: Array) -> Array:
    """Return the probabilities of rows over those at the start, within the range of float32."""
    return jnp.exp(jnp.minimum(log_row - start, 80.0))


# -- the target of the moves -----------------------------------------------------------------------


class Mixture(NamedTuple):
    """What the moves change, in the W slots.

    - **parameters** - of the clusters, leading axis W.
    - **log_priors** - log β p(η_c), (W,).
    - **log_shares** - log w, (W,), -inf outside A.
    - **table** - probability of each row in each cluster, relative to the start, (W, rows).
    - **density** - of each row under the mixture, relative to the start, (rows,).
    """

    parameters: Any
    log_priors: Array
    log_shares: Array
    table: Array
    density: Array


class Target(NamedTuple):
    """The density that the moves leave invariant.

    - **large** - A and the slots that it may use.
    - **partition** - prior of the labels.
    - **clusters** - the family.
    - **start** - log density of each row at the start, (rows,).
    """

    large: LargeClusters
    partition: PartitionPrior
    clusters: Clusters
    start: Array

    def row(self, parameters: Any, slot: Array) -> Array:
        """Return the probability of every row in one cluster, relative to the start, (rows,)."""
        return relative(self.clusters.log_row(parameters, slot), self.start)

    def log_prior(self, log_priors: Array, log_shares: Array) -> Array:
        """Return the log density without the likelihood."""
        active = log_shares > -jnp.inf
        each = log_priors + (self.partition.kappa - 1.0) * jnp.where(active, log_shares, 0.0)
        too_small = jnp.any(active & (log_shares < self.large.lowest_log_share))
        return jnp.where(too_small, -jnp.inf, jnp.sum(jnp.where(active, each, 0.0)))


class Change(NamedTuple):
    """New clusters in a few slots: ``slots`` (k,), and their entries of a :class:`Mixture`."""

    slots: Array
    parameters: Any
    log_priors: Array
    rows: Array
    log_shares: Array
    density: Array


def propose_change(
    target: Target, now: Mixture, slots: Array, parameters: Any, log_shares: Array
) -> tuple[Change, Array]:
    """Evaluate the mixture with new clusters in some slots.

    :param slots: (k,), **parameters**, of the new clusters, and **log_shares**, of all, (W,).
    :return: the change, and the log ratio of the target.
    """
    # the barrier keeps XLA from computing the row once for each slot
    rows = jax.lax.optimization_barrier(jax.vmap(target.row)(parameters, slots))
    shares = jnp.exp(log_shares)
    others = shares.at[slots].set(0.0)
    density = jnp.dot(others, now.table, precision="highest")
    density += jnp.dot(shares[slots], rows, precision="highest")
    log_priors = target.clusters.log_prior(parameters)
    log_ratio = target.large.log_likelihood_ratio(density, now.density)
    log_ratio += target.log_prior(now.log_priors.at[slots].set(log_priors), log_shares)
    log_ratio -= target.log_prior(now.log_priors, now.log_shares)
    return Change(slots, parameters, log_priors, rows, log_shares, density), log_ratio


def apply_change(now: Mixture, change: Change, accepted: Array) -> Mixture:
    """Return the mixture after the change if it is accepted, else as it is."""

    def put(new: Array, old: Array) -> Array:
        return old.at[change.slots].set(jnp.where(accepted, new, old[change.slots]))

    return Mixture(
        jax.tree.map(put, change.parameters, now.parameters),
        put(change.log_priors, now.log_priors),
        jnp.where(accepted, change.log_shares, now.log_shares),
        put(change.rows, now.table),
        jnp.where(accepted, change.density, now.density),
    )


# -- Metropolis-Hastings steps ---------------------------------------------------------------------


class Kind(NamedTuple):
    """Whether a step splits a cluster, merges two or trades their shares; else it changes one."""

    splits: Array
    merges: Array
    trades: Array


class StepDraw(NamedTuple):
    """Random numbers of a step.

    - **kind** - of the step.
    - **uniforms** - for the first and the second cluster, the share of a split, and the decision.
    - **scale** - standard deviation of changes of parameters and of the log odds of shares.
    - **normals** - the last one is for the log odds of shares.
    - **family** - further random numbers, which the family defines.
    """

    kind: Kind
    uniforms: Array
    scale: Array
    normals: Array
    family: Any


def choose_kinds(uniforms: Array, kinds: Sequence[int]) -> Array:
    """Choose one of the kinds for each uniform number."""
    table = jnp.asarray(kinds)
    return table[jnp.minimum((uniforms * len(kinds)).astype(jnp.int32), len(kinds) - 1)]


def log_uniform(uniforms: Array, low: Array | float, high: Array | float) -> Array:
    """Map uniform numbers to numbers whose logarithms are uniform between low and high."""
    return low * jnp.exp(uniforms * jnp.log(high / low))


class Pair(NamedTuple):
    """The clusters c and d of a step, and the shares after it.

    - **kind** - of the step.
    - **c**, **d** - slots; d is a free slot for a split.
    - **possible** - whether there are such slots.
    - **log_shares** - after the step, (W,).
    - **log_split** - log of the share that is split or merged over the number of clusters that
      could have been split: the density of a split but for that of its parameters.
    - **log_jacobian** - of a trade of shares.
    """

    kind: Kind
    c: Array
    d: Array
    possible: Array
    log_shares: Array
    log_split: Array
    log_jacobian: Array


def nth(mask: Array, n: Array) -> Array:
    """Return the index of the n-th true entry."""
    return jnp.argmax(jnp.cumsum(mask) > n)


def choose_slots(
    target: Target, log_shares: Array, kind: Kind, uniforms: Array
) -> tuple[Array, Array, Array]:
    """Choose clusters c and d of A; for a split, d is a free slot.

    :return: c, d, and whether there are such slots.
    """
    active = log_shares > -jnp.inf
    number = active.sum()
    first = jnp.minimum((uniforms[0] * number).astype(jnp.int32), number - 1)
    second = jnp.minimum((uniforms[1] * (number - 1)).astype(jnp.int32), number - 2)
    c, d = nth(active, first), nth(active, second + (second >= first))
    free = ~active & ~target.large.small
    # a merge may free any slot, so where free slots differ a split must be able to take any
    any_free = target.clusters.free_slots_hold_parameters
    which = (uniforms[1] * free.sum()).astype(jnp.int32) if any_free else jnp.array(0)
    d = jnp.where(kind.splits, nth(free, jnp.minimum(which, free.sum() - 1)), d)
    possible = (number >= 1 + (kind.merges | kind.trades)) & (jnp.any(free) | ~kind.splits)
    return c, d, possible


def pair_of(
    slots: tuple[Array, Array, Array], log_shares: Array, kind: Kind, log_odds: Array
) -> Pair:
    """Return the pair with its new shares: those of the log odds, or all for c in a merge.

    :param slots: c, d, and whether there are such slots.
    :param log_odds: of the new shares of c and d, for a split or a trade.
    """
    c, d, possible = slots
    splits, merges, trades = kind
    share_c, share_d = log_shares[c], log_shares[d]
    both = jnp.where(splits, share_c, jnp.logaddexp(share_c, share_d))
    new_c = jnp.where(trades | splits, both + jax.nn.log_sigmoid(log_odds), share_c)
    new_d = jnp.where(trades | splits, both + jax.nn.log_sigmoid(-log_odds), share_d)
    new_c, new_d = jnp.where(merges, both, new_c), jnp.where(merges, -jnp.inf, new_d)
    return Pair(
        kind,
        c,
        d,
        possible,
        log_shares.at[d].set(new_d).at[c].set(new_c),
        # the choice of c for a split, of c and d for a merge
        both - jnp.log(jnp.sum(log_shares > -jnp.inf) + splits),
        jnp.where(trades, new_c + new_d - share_c - share_d, 0.0),
    )


def choose_pair(
    target: Target, log_shares: Array, kind: Kind, uniforms: Array, log_odds_step: Array
) -> Pair:
    """Choose two clusters and their new shares: other odds, a split of c's share, or all for c.

    :param log_odds_step: change of the log odds in a trade; a split is uniform.
    """
    slots = c, d, _ = choose_slots(target, log_shares, kind, uniforms)
    log_odds = log_shares[c] - log_shares[d] + log_odds_step
    log_odds = jnp.where(kind.splits, jnp.log(uniforms[2] / (1 - uniforms[2])), log_odds)
    return pair_of(slots, log_shares, kind, log_odds)


def metropolis_step(target: Target, now: Mixture, draw: StepDraw) -> Mixture:
    """Make one Metropolis-Hastings step on a cluster c, or on two clusters c and d [1, 2]."""
    log_odds_step = draw.scale * draw.normals[-1]
    pair = choose_pair(target, now.log_shares, draw.kind, draw.uniforms, log_odds_step)
    splits, merges, _ = pair.kind
    proposal = target.clusters.propose(now.parameters, pair, draw)
    slots = jnp.where(splits, pair.d, pair.c)[None]
    parameters = jax.tree.map(lambda x: x[None], proposal.parameters)
    change, log_accept = propose_change(target, now, slots, parameters, pair.log_shares)
    log_split = pair.log_split - proposal.log_density
    log_accept += jnp.where(splits, log_split, jnp.where(merges, -log_split, 0.0))
    log_accept += proposal.log_jacobian + pair.log_jacobian
    accepted = pair.possible & (jnp.log(draw.uniforms[3]) < log_accept)
    return apply_change(now, change, accepted)


def metropolis_steps(target: Target, now: Mixture, draws: StepDraw) -> Mixture:
    """Make steps one after another.

    :param draws: with a leading axis of steps.
    """
    return jax.lax.scan(lambda m, draw: (metropolis_step(target, m, draw), None), now, draws)[0]


# -- Hamiltonian trajectories ----------------------------------------------------------------------


def move_along_trajectory(key: Array, target: Target, now: Mixture) -> Mixture:
    """Move all continuous parameters and all shares by Hamiltonian Monte Carlo [3].

    The shares are those of positive masses whose log total is standard normal.
    """
    key_total, key_parameters, key_shares, key_size, key_accept = random.split(key, 5)
    active = now.log_shares > -jnp.inf
    path = target.clusters.path(now.parameters, active, target.start)

    def mixture(position: tuple[Any, Array]) -> Mixture:
        of_clusters, log_masses = position
        log_shares = jax.nn.log_softmax(jnp.where(active, log_masses, -jnp.inf))
        log_shares = jnp.where(active, log_shares, -jnp.inf)
        table = path.rows(of_clusters)
        density = jnp.dot(jnp.exp(log_shares), table, precision="highest")
        parameters = path.parameters(of_clusters)
        log_priors = target.clusters.log_prior(parameters)
        return Mixture(parameters, log_priors, log_shares, table, density)

    def log_density(position: tuple[Any, Array]) -> tuple[Array, Mixture]:
        proposal = mixture(position)
        log_total = jax.nn.logsumexp(jnp.where(active, position[1], -jnp.inf))
        jacobian = path.log_jacobian(position[0])
        jacobian += jnp.sum(jnp.where(active, proposal.log_shares, 0.0)) - 0.5 * log_total**2
        gain = target.large.log_likelihood_ratio(proposal.density, now.density)
        log_prior = target.log_prior(proposal.log_priors, proposal.log_shares)
        return gain + log_prior + jacobian, proposal

    log_masses = jnp.where(active, now.log_shares, 0.0) + random.normal(key_total)
    momentum = (
        jnp.where(path.moving, random.normal(key_parameters, path.moving.shape), 0.0),
        jnp.where(active, random.normal(key_shares, active.shape), 0.0),
    )
    leapfrog = leapfrog_steps(key_size, target.large, active)
    proposal, accepted = trajectory(
        key_accept,
        (path.position, log_masses),
        momentum,
        (path.moving, active),
        log_density,
        leapfrog,
    )
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, now)


class Leapfrog(NamedTuple):
    """**size** of the steps of a trajectory, and their **number**."""

    size: Array
    number: int


def leapfrog_steps(key: Array, large: LargeClusters, active: Array) -> Leapfrog:
    """Draw a step size around the posterior standard deviation in a cluster of mean size."""
    size = 0.3 * jnp.exp(random.uniform(key, maxval=math.log(6.0)))
    size *= jnp.sqrt(active.sum() / jnp.maximum(large.row_counts.sum(), 1.0))
    return Leapfrog(size, min(max(len(large.inside), 8), _MOST_LEAPFROGS))


def trajectory(
    key: Array,
    position: Any,
    momentum: Any,
    moving: Any,
    log_density: Callable[[Any], tuple[Array, Any]],
    steps: Leapfrog,
) -> tuple[Any, Array]:
    """Follow a Hamiltonian trajectory [3].

    :param moving: which entries of the position move; the others have no momentum.
    :param log_density: maps a position to its log density, and to what else is wanted of it.
    :return: what is wanted of the new position, and whether it is accepted.
    """

    def add(x: Any, y: Any, times: Array) -> Any:
        return jax.tree.map(lambda a, b: a + times * b, x, y)

    def kinetic(momentum: Any) -> Array:
        return 0.5 * sum((jnp.sum(p**2) for p in jax.tree.leaves(momentum)), jnp.zeros(()))

    def leapfrog(carry: tuple, sizes: tuple[Array, Array]) -> tuple[tuple, Array]:
        position, momentum, _ = carry
        drift, kick = sizes
        position = add(position, momentum, drift)
        (value, wanted), slope = jax.value_and_grad(log_density, has_aux=True)(position)
        # outside the support of a prior the gradient may be NaN. Any value will do there: the
        # trajectory stays reversible, and nothing is accepted
        slope = jax.tree.map(lambda m, g: jnp.where(m & jnp.isfinite(g), g, 0.0), moving, slope)
        return (position, add(momentum, slope, kick), wanted), value

    # the first step only evaluates the start, so that the density is compiled once
    drifts = jnp.where(jnp.arange(steps.number + 1) == 0, 0.0, steps.size)
    is_end = (jnp.arange(steps.number + 1) % steps.number) == 0
    kicks = jnp.where(is_end, 0.5 * steps.size, steps.size)
    wanted = jax.eval_shape(lambda x: log_density(x)[1], position)
    wanted = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), wanted)
    begin = (position, momentum, wanted)
    (_, new_momentum, wanted), values = jax.lax.scan(leapfrog, begin, (drifts, kicks))
    log_accept = values[-1] - kinetic(new_momentum) - (values[0] - kinetic(momentum))
    return wanted, jnp.log(random.uniform(key)) < log_accept


# -- the whole move --------------------------------------------------------------------------------


class RankingData(Protocol):
    """What the moves need to know about the rankings."""

    @property
    def row_index(self) -> Array:
        """Row of each ranking, (N,)."""

    @property
    def counts(self) -> Array:
        """Number of rankings of each row, (rows,)."""


Move = Callable[[Array, Target, Mixture], Mixture]


def move_without_labels(
    key: Array,
    now: tuple[Array, Any],
    moves: Sequence[Move],
    clusters_of: Callable[[Array], Clusters],
    partition: PartitionPrior,
    data: RankingData,
    largest_minimum: int | None = None,
) -> tuple[Array, Any]:
    """Make each of the moves in turn, each with its own A.

    Clusters without rankings that belong to the model must hold draws from the prior.

    :param now: labels (N,), and the parameters of all clusters, leading axis C.
    :param moves: reversible moves of a mixture.
    :param clusters_of: maps slots, (W,), to the family of the clusters there.
    :param largest_minimum: m is at most this, by default N/200.
    :return: labels and parameters. Slots that have become empty hold leftovers.
    """
    row_index, num_rows = data.row_index, len(data.counts)

    def one(now: tuple[Array, Any], of_move: tuple[Array, Array]) -> tuple[tuple, None]:
        key, which = of_move
        labels, parameters = now
        num_slots = len(jax.tree.leaves(parameters)[0])
        key_minimum, key_shares, key_move, key_labels = random.split(key, 4)
        large = choose_large_clusters(
            (key_minimum, key_shares),
            labels,
            partition,
            row_index,
            num_rows,
            num_slots,
            largest_minimum,
        )
        clusters = clusters_of(large.slots)
        target, mixture = _mixture_of(large, partition, clusters, parameters, num_rows)
        mixture = jax.lax.switch(which, moves, key_move, target, mixture)
        new_labels, valid = large.draw_labels(
            key_labels, labels, row_index, mixture.table, mixture.log_shares
        )
        changed = (
            new_labels,
            jax.tree.map(lambda x, y: x.at[large.slots].set(y), parameters, mixture.parameters),
        )
        return jax.tree.map(lambda a, b: jnp.where(valid, a, b), changed, now), None

    each = random.split(key, len(moves)), jnp.arange(len(moves))
    return jax.lax.scan(one, now, each)[0]


def _mixture_of(
    large: LargeClusters,
    partition: PartitionPrior,
    clusters: Clusters,
    parameters: Any,
    num_rows: int,
) -> tuple[Target, Mixture]:
    """Return the target and the mixture at the start of a move."""
    parameters = jax.tree.map(lambda x: x[large.slots], parameters)

    def one_slot(w: Array, log_table: Array) -> Array:
        of_slot = jax.tree.map(lambda x: x[w], parameters)
        return log_table.at[w].set(clusters.log_row(of_slot, w))

    # the slots of A come first, and the entries of the others are not read
    log_table = jnp.zeros((len(large.slots), num_rows))
    log_table = jax.lax.fori_loop(0, shared_bound(large.active.sum()), one_slot, log_table)
    start, table = large.start(log_table)
    log_priors = clusters.log_prior(parameters)
    mixture = Mixture(parameters, log_priors, large.log_shares, table, jnp.ones_like(start))
    return Target(large, partition, clusters, start), mixture


class Effort(NamedTuple):
    """Number of Metropolis-Hastings steps in a sweep, and whether trajectories follow them."""

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
    """Choose how many moves without labels a sweep makes.

    :param requested: number of steps, or None for what the size of the data allows.
    :param rows_shape: number of distinct rankings, and stages of each.
    :param most_in_trajectory: rows times slots times stages up to which a trajectory pays.
    :param most_rows: rows that the steps of a sweep may evaluate.
    """
    num_rows, num_stages = rows_shape
    cells = num_rows * num_slots
    has_trajectories = cells * num_stages <= most_in_trajectory
    if requested is not None:
        return Effort(requested, has_trajectories)
    most = min(max(num_rankings, 10), 3000)
    most = min(_STEP_CELLS // cells, most_rows // num_rows, most)
    return Effort(0 if cells > _MANY_CELLS else most, has_trajectories)
