"""The density that the moves of Plackett–Luce clusters leave invariant."""

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln

from numpyro_rankings.infer.mixture.label_free import Large, log_prior_of_shares, relative
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.choices import (
    Choices,
    counts_of_cells,
    in_sets,
    log_choice_row_likelihoods,
    log_designed_likelihoods,
    set_masses,
    times_chosen,
)
from numpyro_rankings.ops.random_measures import log_atoms


class WeightsPrior(Protocol):
    """Prior of the weights of a cluster, the atoms of a measure, not normalised."""

    @property
    def has_zeros(self) -> bool:
        """Whether a cluster may lack some of the items."""

    @property
    def rate(self) -> Array | float:
        """Inverse scale of an atom that comes up by itself."""

    @property
    def shape(self) -> Array:
        """Mean weights times that rate, (K,)."""

    def log_density(self, log_weights: Array) -> Array:
        """Of the logarithms of the weights, (W, K), -inf where there is no atom: (W,)."""


class GammaWeights(NamedTuple):
    """Of a finite mixture: Gamma(**shape**, 1), shape (n,)."""

    shape: Array

    @property
    def has_zeros(self) -> bool:
        return False

    @property
    def rate(self) -> Array | float:
        return 1.0

    def log_density(self, log_weights: Array) -> Array:
        each = self.shape * log_weights - jnp.exp(log_weights) - gammaln(self.shape)
        return each.sum(1)


class PittWalkerWeights(NamedTuple):
    """Of a leaf given the **root** (K,), φ and τ, eq. (19)."""

    root: Array
    phi: Array
    tau: Array | float

    @property
    def has_zeros(self) -> bool:
        return True

    @property
    def rate(self) -> Array | float:
        return self.tau + self.phi

    @property
    def shape(self) -> Array:
        return self.phi * self.root

    def log_density(self, log_weights: Array) -> Array:
        is_atom = log_weights > -jnp.inf
        weights = jnp.where(is_atom, jnp.exp(jnp.where(is_atom, log_weights, 0.0)), 0.0)
        jacobian = jnp.sum(jnp.where(is_atom, log_weights, 0.0), axis=1)
        return log_atoms(weights, self.root, self.phi, self.tau).sum(1) + jacobian


class Mixture(NamedTuple):
    """What the moves change, in the W slots of A and of the clusters that may join it.

    - **log_weights** - of the items, not normalised, (W, K), -inf where there is no atom.
    - **log_priors** - log density of the weights of each cluster, (W,).
    - **log_shares**, **table**, **density** - as in ``marginal_mallows``.
    """

    log_weights: Array
    log_priors: Array
    log_shares: Array
    table: Array
    density: Array


class Target(NamedTuple):
    """The density that the moves leave invariant, of log weights and shares.

    The weights of the unseen do not change. Slots that hold nobody have some too, draws from their
    prior, which wait there for a cluster.

    - **large** - A, and the slots that may join it.
    - **unseen** - weight of all unlisted items in each slot, (W,).
    - **start** - log density of each row at the start, (rows,).
    - **partition**, **prior**, **choices** - as in a sweep; **cells**, **design** - of the
      choices.
    """

    large: Large
    unseen: Array
    start: Array
    partition: PartitionPrior
    prior: WeightsPrior
    choices: Choices
    cells: Array | None
    design: Array | None

    def log_row(self, log_weights: Array, unseen: Array) -> Array:
        """Log probability of every row in one cluster, (rows,)."""
        weights, rest = _relative_weights(log_weights, unseen)
        if self.design is not None:
            return log_designed_likelihoods(self.design, weights, rest)
        return log_choice_row_likelihoods(self.choices, weights, rest, self.cells)

    def slope(self, log_weights: Array, unseen: Array, amounts: Array) -> tuple[Array, Array]:
        """How often each item was chosen, (K,), and the slope of the log likelihood, (K,).

        That is n_k - w_k Σ 1/mass, over the stages with k in play.

        :param amounts: how much each row counts, (rows,).
        """
        num_items = len(log_weights)
        if self.design is not None:
            counts = jnp.dot(amounts, self.design, precision="highest")
            chosen, sets = counts[:num_items], -counts[num_items:]
        elif self.cells is not None:
            chosen, sets = counts_of_cells(self.cells, amounts, num_items)
        else:
            rows = jnp.arange(len(amounts))
            chosen = times_chosen(self.choices, rows, 0 * rows, amounts, 1, num_items)[0]
            _, pull_back = jax.vjp(lambda x: self.log_row(x, unseen), log_weights)
            return chosen, pull_back(amounts)[0]
        weights, rest = _relative_weights(log_weights, unseen)
        times = sets / set_masses(weights[None], rest[None])[0]
        in_play = jnp.dot(times, in_sets(num_items, times.dtype), precision="highest")
        return chosen, chosen - weights * in_play

    def row(self, log_weights: Array, unseen: Array) -> Array:
        """The same over the density at the start, no logarithm."""
        return relative(self.log_row(log_weights, unseen), self.start)

    def thinned(self, every: int) -> "Target":
        """The same of every so many rows."""
        return self._replace(
            start=self.start[::every],
            choices=jax.tree.map(lambda x: x[::every], self.choices),
            cells=None if self.cells is None else self.cells[:, ::every],
            design=None if self.design is None else self.design[::every],
        )

    def log_prior(self, log_priors: Array, log_shares: Array) -> Array:
        """Log of all but the likelihood."""
        if self.partition.num_components is None:
            log_priors = log_priors + jnp.log(self.partition.alpha)
        return log_prior_of_shares(self.large, self.partition, log_priors, log_shares)


def _relative_weights(log_weights: Array, unseen: Array) -> tuple[Array, Array]:
    """Weights and that of the unseen, which add up to 1."""
    largest = jax.lax.stop_gradient(jnp.max(log_weights))
    largest = jnp.where(largest > -jnp.inf, largest, 0.0)
    weights = jnp.exp(log_weights - largest)
    rest = unseen * jnp.exp(-largest)
    total = weights.sum() + rest
    return weights / total, rest / total
