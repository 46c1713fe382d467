"""Likelihood, prior and proposals of Plackett–Luce clusters, for ``mixture/label_free.py``."""

import math
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln

from numpyro_rankings.infer.mixture.target import Kind, Path, Proposal, StepDraw, relative
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
    """Prior of the weights of a cluster, the atoms of a measure, which are not normalised."""

    @property
    def has_zeros(self) -> bool:
        """Whether a cluster may lack some of the items."""

    @property
    def rate(self) -> Array | float:
        """Rate of the gamma prior of an atom with one count."""
        # New atoms are from Exponential(rate); ``fit`` takes rate and shape for all weights.

    @property
    def shape(self) -> Array:
        """Prior mean of the weights times the rate, (K,)."""

    def log_density(self, log_weights: Array) -> Array:
        """Return the log density of log weights, (W, K), -inf where there is no atom: (W,)."""


class GammaWeights(NamedTuple):
    """Prior in a finite mixture: Gamma(**shape**, 1), shape (n,)."""

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
    """Prior of a leaf given the **root** (K,), φ and τ, eq. (19) of Caron, Teh & Murphy (2014)."""

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


class WeightsDraw(NamedTuple):
    """Random numbers of a step besides those of every family.

    The flip chance is that an atom of a cluster is no atom of its offspring, or the reverse.
    """

    moves: Array  # whether a step changes each weight, (K,)
    flip_chance: Array
    flips: Array  # (K,) bool
    log_atoms: Array  # log weights of atoms that appear, (K,)


class WeightsClusters(NamedTuple):
    """Likelihood, prior and proposals of Plackett–Luce clusters.

    The parameters are log weights, (W, K), not normalised, -inf where there is no atom. The weights
    of the unseen items do not change. Empty slots hold prior draws of them.
    """

    unseen: Array  # weight of all unlisted items in each slot, (W,)
    prior: WeightsPrior  # of the weights
    log_beta: Array | float  # log β, ()
    choices: Choices
    cells: Array | None  # a table of the choices, or None, as is the design
    design: Array | None

    def log_row(self, parameters: Array, slot: Array) -> Array:
        return self.log_row_of(parameters, self.unseen[slot])

    def log_row_of(self, log_weights: Array, unseen: Array) -> Array:
        """Return the log probability of every row in a cluster with these weights, (rows,)."""
        weights, rest = _relative_weights(log_weights, unseen)
        if self.design is not None:
            return log_designed_likelihoods(self.design, weights, rest)
        return log_choice_row_likelihoods(self.choices, weights, rest, self.cells)

    def log_prior(self, parameters: Array) -> Array:
        return self.prior.log_density(parameters) + self.log_beta

    def propose(self, parent: Array, other: Array, kind: Kind, draw: StepDraw) -> Proposal:
        """Propose weights around those of c; in a merge, evaluate those of d around c."""
        splits, merges, trades = kind
        of_family: WeightsDraw = draw.family
        is_atom = parent > -jnp.inf
        change = draw.scale * draw.normals[:-1]
        offspring = jnp.where(is_atom, parent + change, of_family.log_atoms)
        offspring = jnp.where(is_atom ^ of_family.flips, offspring, -jnp.inf)
        changed = jnp.where(of_family.moves, parent + change, parent)
        log_weights = jnp.where(splits, offspring, jnp.where(trades | merges, parent, changed))
        of_pair = jnp.where(merges, other, offspring)
        chance = of_family.flip_chance
        log_density = log_offspring(of_pair, parent, draw.scale, chance, self.prior.rate)
        # the target is a density of log weights, in which the steps are normal: no Jacobian
        return Proposal(log_weights, log_density, jnp.zeros(()))

    def path(self, parameters: Array, slots: Array, active: Array, start: Array) -> Path:
        """Vary all log weights."""
        is_atom, unseen = parameters > -jnp.inf, self.unseen[slots]

        def log_weights(position: Array) -> Array:
            return jnp.where(is_atom, position, -jnp.inf)

        def row(log_weights: Array, unseen: Array) -> Array:
            return relative(self.log_row_of(log_weights, unseen), start)

        return Path(
            position=jnp.where(is_atom, parameters, 0.0),
            moving=active[:, None] & is_atom,
            parameters=log_weights,
            rows=lambda position: jax.vmap(row)(log_weights(position), unseen),
            log_jacobian=lambda position: jnp.zeros(()),
            information=self.choices.orderings.shape[1] / len(parameters[0]),
        )

    def slope(self, log_weights: Array, unseen: Array, amounts: Array) -> tuple[Array, Array]:
        """Return how often items were chosen, and the gradient of the log likelihood, (K,) each."""
        # The gradient is n_k - w_k Σ 1/mass, over the stages with k in play.
        num_items = len(log_weights)
        if self.design is not None:
            counts = jnp.dot(amounts, self.design, precision="highest")
            chosen, sets = counts[:num_items], -counts[num_items:]
        elif self.cells is not None:
            chosen, sets = counts_of_cells(self.cells, amounts, num_items)
        else:
            rows = jnp.arange(len(amounts))
            chosen = times_chosen(self.choices, rows, 0 * rows, amounts, 1, num_items)[0]
            _, pull_back = jax.vjp(lambda x: self.log_row_of(x, unseen), log_weights)
            return chosen, pull_back(amounts)[0]
        weights, rest = _relative_weights(log_weights, unseen)
        times = sets / set_masses(weights[None], rest[None])[0]
        in_play = jnp.dot(times, in_sets(num_items, times.dtype), precision="highest")
        return chosen, chosen - weights * in_play

    def thinned(self, every: int) -> "WeightsClusters":
        """Return the clusters with every k-th row only, k being ``every``."""
        return self._replace(
            choices=jax.tree.map(lambda x: x[::every], self.choices),
            cells=None if self.cells is None else self.cells[:, ::every],
            design=None if self.design is None else self.design[::every],
        )


def _relative_weights(log_weights: Array, unseen: Array) -> tuple[Array, Array]:
    """Return the weights and that of the unseen items, normalised to a sum of 1."""
    largest = jax.lax.stop_gradient(jnp.max(log_weights))
    largest = jnp.where(largest > -jnp.inf, largest, 0.0)
    weights = jnp.exp(log_weights - largest)
    rest = unseen * jnp.exp(-largest)
    total = weights.sum() + rest
    return weights / total, rest / total


def log_offspring(
    log_weights: Array, parent: Array, scale: Array, flip_chance: Array, rate: Array | float
) -> Array:
    """Return the log density of the log weights of a cluster around its parent's, both (K,)."""
    # ``draw_steps`` in ``label_free.py`` draws from it: an atom of the parent moves by a normal
    # step or disappears, and the weight of an item that is no atom appears as Exponential(rate).
    is_atom, of_parent = log_weights > -jnp.inf, parent > -jnp.inf
    log_same, log_flip = jnp.log1p(-flip_chance), jnp.log(jnp.maximum(flip_chance, 1e-30))
    log_density = jnp.where(is_atom == of_parent, log_same, log_flip)
    value, center = jnp.where(is_atom, log_weights, 0.0), jnp.where(of_parent, parent, 0.0)
    moved = -0.5 * ((value - center) / scale) ** 2 - jnp.log(scale * math.sqrt(2 * math.pi))
    appeared = jnp.log(rate) + value - rate * jnp.exp(value)
    log_density += jnp.where(is_atom, jnp.where(of_parent, moved, appeared), 0.0)
    return log_density.sum()
