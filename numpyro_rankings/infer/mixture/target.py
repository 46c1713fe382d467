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
    """Parameters that a step proposes for one cluster: the new cluster d for a split, else c.

    ``log_density`` is that with which a split proposes d given c; for a merge, it is evaluated at
    the clusters that are merged.
    """

    parameters: Any
    log_density: Array
    log_jacobian: Array  # log Jacobian of the change of one cluster


class Path(NamedTuple):
    """The position that a Hamiltonian trajectory varies.

    The functions map a position to the parameters of the slots, the probabilities of all rows
    relative to the start, (W, rows), and the log Jacobian of the target's parameters.
    """

    position: Any  # continuous parameters of the slots that it moves, at the start
    moving: Any  # whether each of its entries moves
    parameters: Callable[[Any], Any]
    rows: Callable[[Any], Array]
    log_jacobian: Callable[[Any], Array]
    information: float  # about that of a ranking of a cluster on each entry: an inverse variance


class Clusters(Protocol):
    """Likelihood, prior and proposals of a family, for the W slots that may be in A."""

    def log_row(self, parameters: Any, slot: Array) -> Array:
        """Return the log probability of every row in one cluster, (rows,)."""

    def log_prior(self, parameters: Any) -> Array:
        """Return log β p(η_c) of several clusters, (W,), where β is 1 for a finite mixture."""

    def propose(self, parent: Any, other: Any, kind: "Kind", draw: "StepDraw") -> Proposal:
        """Propose parameters for the cluster c, the parent, or for a new one d, the other."""

    def path(self, parameters: Any, slots: Array, active: Array, start: Array) -> Path:
        """Return the continuous parameters of clusters in some slots, (B,), for a trajectory."""


class LargeClusters(NamedTuple):
    """The set A of large clusters, and the W slots that it uses or may use.

    Shares below the lowest one have density 0, because their clusters would soon be too small and
    the move would be rejected.
    """

    minimum: Array  # m
    is_large: Array  # the clusters of A, (C,) bool
    slots: Array  # (W,)
    active: Array  # slots of A, (W,) bool
    small: Array  # slots of occupied clusters outside A, (W,) bool
    log_shares: Array  # log w, (W,), -inf outside A
    lowest_log_share: Array
    inside: Array  # rankings in A, (N,) bool
    row_counts: Array  # number of rankings in A by row, (rows,) float

    def log_likelihood_ratio(self, density: Array, before: Array) -> Array:
        """Return the change of the log likelihood; densities are up to a common factor per row."""
        # rows outside A may have probability 0 in all of A, and their logarithms no gradient
        inside = self.row_counts > 0
        density, before = jnp.where(inside, density, 1.0), jnp.where(inside, before, 1.0)
        return jnp.sum(self.row_counts * jnp.log(density / before))

    def log_chance(self, log_shares: Array) -> Array:
        """Return about the log probability of at least m rankings in a cluster, 0 outside A."""
        active = log_shares > -jnp.inf
        size = self.row_counts.sum() * jnp.exp(jnp.where(active, log_shares, 0.0))
        # the logistic distribution, with the mean and about the variance of a Poisson number
        z = (size - self.minimum + 0.5) * 1.7 * jax.lax.rsqrt(size + 1e-3)
        return jnp.where(active & (self.minimum > 0), -jax.nn.softplus(-z), 0.0)

    def start(self, log_table: Array) -> tuple[Array, Array]:
        """Return the log density of each row, and its relative probability in each slot.

        :param log_table: log probability of each row in each slot, (W, rows).
        """
        # The density of rows that are impossible in all of A counts as 1.
        weighted = jnp.where(self.active[:, None], log_table + self.log_shares[:, None], -jnp.inf)
        start = jax.nn.logsumexp(weighted, axis=0)
        start = jnp.where(start > -jnp.inf, start, 0.0)
        return start, relative(log_table, start)

    def draw_labels(
        self, key: Array, labels: Array, row_index: Array | None, table: Array, log_shares: Array
    ) -> tuple[Array, Array]:
        """Draw labels of the rankings in A: all, (N,), and whether A would be chosen from them."""
        log_weights = jnp.log(table) + log_shares[:, None]
        new_labels = self.slots[draw_labels(key, log_weights, row_index)]
        new_labels = jnp.where(self.inside, new_labels, labels)
        new_sizes = count_by_label(new_labels, len(self.is_large))
        # clusters outside A stay as they are
        is_kept = (new_sizes >= self.minimum)[self.slots] | (log_shares == -jnp.inf)
        return new_labels.astype(labels.dtype), jnp.all(is_kept)


def relative(log_row: Array, start: Array) -> Array:
    """Return the probabilities of rows over those at the start, within the range of float32."""
    return jnp.exp(jnp.minimum(log_row - start, 80.0))


class Mixture(NamedTuple):
    """The values that the moves change, in the W slots; probabilities are relative to the start."""

    parameters: Any  # parameters of the clusters, leading axis W
    log_priors: Array  # log β p(η_c), (W,)
    log_shares: Array  # log w, (W,), -inf outside A
    table: Array  # probability of each row in each cluster, (W, rows)
    density: Array  # density of each row under the mixture, (rows,)


class Target(NamedTuple):
    """The density that the moves leave invariant."""

    large: LargeClusters
    partition: PartitionPrior
    clusters: Clusters
    start: Array  # log density of each row at the start, (rows,)

    def row(self, parameters: Any, slot: Array) -> Array:
        """Return the probability of every row in one cluster, relative to the start, (rows,)."""
        return relative(self.clusters.log_row(parameters, slot), self.start)

    def log_prior(self, log_priors: Array, log_shares: Array) -> Array:
        """Return the log density without the likelihood."""
        active = log_shares > -jnp.inf
        each = log_priors + (self.partition.kappa - 1.0) * jnp.where(active, log_shares, 0.0)
        each += self.large.log_chance(log_shares)
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
    target: Target, mixture: Mixture, slots: Array, parameters: Any, log_shares: Array
) -> tuple[Change, Array]:
    """Evaluate the mixture with new clusters in some slots, and the log ratio of the target."""
    # the barrier keeps XLA from computing the row once for each slot
    rows = jax.lax.optimization_barrier(jax.vmap(target.row)(parameters, slots))
    shares = jnp.exp(log_shares)
    others = shares.at[slots].set(0.0)
    density = jnp.dot(others, mixture.table, precision="highest")
    density += jnp.dot(shares[slots], rows, precision="highest")
    log_priors = target.clusters.log_prior(parameters)
    log_ratio = target.large.log_likelihood_ratio(density, mixture.density)
    log_ratio += target.log_prior(mixture.log_priors.at[slots].set(log_priors), log_shares)
    log_ratio -= target.log_prior(mixture.log_priors, mixture.log_shares)
    return Change(slots, parameters, log_priors, rows, log_shares, density), log_ratio


def apply_change(mixture: Mixture, change: Change, accepted: Array) -> Mixture:
    """Return the mixture after the change if it is accepted, otherwise unchanged."""

    def put(new: Array, old: Array) -> Array:
        return old.at[change.slots].set(jnp.where(accepted, new, old[change.slots]))

    return Mixture(
        jax.tree.map(put, change.parameters, mixture.parameters),
        put(change.log_priors, mixture.log_priors),
        jnp.where(accepted, change.log_shares, mixture.log_shares),
        put(change.rows, mixture.table),
        jnp.where(accepted, change.density, mixture.density),
    )


class Kind(NamedTuple):
    """Whether a step splits a cluster, merges two or trades their shares; else it changes one."""

    splits: Array
    merges: Array
    trades: Array


class DrawnKind(NamedTuple):
    """Whether a step trades the shares of two clusters, or **resizes** the mixture: it splits a
    cluster if there is no second one, and merges the two otherwise. Else it changes a cluster."""

    resizes: Array
    trades: Array


class StepDraw(NamedTuple):
    """Random numbers of a step."""

    kind: DrawnKind
    takes_second: Array  # whether c is the second of two clusters
    log_odds: Array  # log odds of the shares after a split
    log_uniform: Array  # for the decision
    scale: Array  # standard deviation of changes of parameters and of the log odds of shares
    normals: Array  # the last one is for the log odds of shares
    family: Any  # further random numbers, which the family defines
