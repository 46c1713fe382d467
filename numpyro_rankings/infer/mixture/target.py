"""The density that the moves of ``label_free.py`` leave invariant, and what a family supplies."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from numpyro_rankings.infer.mixture.labels import draw_labels
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.sums import count_by_label


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

    def propose(self, parameters: Any, pair: "ClusterPair", draw: "StepDraw") -> Proposal:
        """Propose parameters for one cluster of the pair.

        :param parameters: of all slots.
        """

    def path(self, parameters: Any, active: Array, start: Array) -> Path:
        """Return the continuous parameters of the slots, for a trajectory."""


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
        self, key: Array, labels: Array, row_index: Array | None, table: Array, log_shares: Array
    ) -> tuple[Array, Array]:
        """Draw the labels of the rankings in A after a move.

        :return: all labels, (N,), and whether the move is valid: A would be chosen from the new
            state too.
        """
        log_weights = jnp.log(table) + log_shares[:, None]
        new_labels = self.slots[draw_labels(key, log_weights, row_index)]
        new_labels = jnp.where(self.inside, new_labels, labels)
        new_sizes = count_by_label(new_labels, len(self.is_large))
        # the new sizes give the same A, and the reverse move is possible
        found = (new_sizes >= self.minimum)[self.slots] == (log_shares > -jnp.inf)
        valid = jnp.all(found) & (self.is_large.sum() <= len(self.slots))
        valid &= jnp.all(~self.active | (self.log_shares >= self.lowest_log_share))
        return new_labels.astype(labels.dtype), valid


def relative(log_row: Array, start: Array) -> Array:
    """Return the probabilities of rows over those at the start, within the range of float32."""
    return jnp.exp(jnp.minimum(log_row - start, 80.0))


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
    """Return the mixture after the change if it is accepted, otherwise unchanged."""

    def put(new: Array, old: Array) -> Array:
        return old.at[change.slots].set(jnp.where(accepted, new, old[change.slots]))

    return Mixture(
        jax.tree.map(put, change.parameters, now.parameters),
        put(change.log_priors, now.log_priors),
        jnp.where(accepted, change.log_shares, now.log_shares),
        put(change.rows, now.table),
        jnp.where(accepted, change.density, now.density),
    )


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


class ClusterPair(NamedTuple):
    """The clusters c and d of a step, and the shares after it.

    - **kind** - of the step.
    - **c**, **d** - slots; d is a free slot for a split.
    - **possible** - whether there are such slots.
    - **log_shares** - after the step, (W,).
    - **log_split** - log(s / k), with s the share of c and d together, and k the number of clusters
      while c and d are separate. It is the log ratio of the proposals, merge over split, without
      their parameters: a merge chooses c and d out of k clusters, 1 / (k (k - 1)); a split chooses
      c out of k - 1, and new shares uniformly, 1 / ((k - 1) s).
    - **log_jacobian** - of a trade of shares.
    """

    kind: Kind
    c: Array
    d: Array
    possible: Array
    log_shares: Array
    log_split: Array
    log_jacobian: Array
