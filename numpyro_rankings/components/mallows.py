"""Generalized Mallows components of few items, with the center summed out."""

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.components.family import Family, as_rankings
from numpyro_rankings.families import MALLOWS
from numpyro_rankings.ops.checks import as_array, is_real, is_traced, refuse_masked
from numpyro_rankings.ops.codes import max_codes, stage_codes
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.rankings import Rankings, num_stages

MOST_ITEMS = 7  # every one of their 5040 centers is evaluated


class CenterCodes(NamedTuple):
    """Sums of codes to each center, and number of lists by stage; whole, exact up to 2^24."""

    codes: Array  # (…, n!, T)
    counts: Array  # (…, T)


class MallowsCenter(Family):
    r"""
    Complete or top-t rankings of up to 7 items, with given concentrations and an unknown center.

    .. math:: σ \sim \mathrm{Uniform}, \quad θ \sim \text{some given values}, \quad
        π_i \mid σ, θ \sim \mathrm{GM}(σ, θ).

    The marginal of a cluster sums over all n! centers and over the given concentrations, so the
    sums of the codes are sufficient. For more items, or for unknown concentrations,
    :class:`~numpyro_rankings.infer.SliceGibbs` clusters rankings under the Chinese restaurant
    process.

    Data: :class:`~numpyro_rankings.Rankings`; each of its N rankings is a point, in the order of
    :meth:`~numpyro_rankings.Rankings.expand`.

    :param concentration: θ, a number; or the G values that a cluster may have, (G, T), or (G, 1) or
        (G,) if each is the same at all stages. A single value that differs by stage is (1, T). As
        many numbers as there are stages, without **probs**, can be read in both ways, and are
        refused.
    :param probs: prior probabilities of the G values, equal by default.

    .. doctest::

       >>> from numpyro_rankings import Rankings
       >>> from numpyro_rankings.components import MallowsCenter
       >>> family = MallowsCenter(1.0)
       >>> lists = Rankings.from_orderings([[0, 1, 2], [0, 1, 2], [2, 1, 0]], num_items=3)
       >>> points = family.statistics(lists)
       >>> pairs = family.of_clusters(points, jnp.array([0, 0, 1]), 2)
       >>> both = family.log_predictive(pairs, jax.tree.map(lambda x: x[0], points))
       >>> bool(both[0] > both[1])  # two equal rankings, against one opposite ranking
       True
    """

    ranking_family = MALLOWS

    def __init__(self, concentration: Any, probs: Any = None) -> None:
        refuse_masked("concentration", concentration)
        refuse_masked("probs", probs)
        theta = as_array(concentration)
        if not is_real(theta):
            raise ValueError(f"concentration must be numbers, got {concentration!r}")
        theta = theta.astype(float)
        self._may_be_stages = theta.ndim == 1 and len(theta) > 1 and probs is None
        theta = theta[None] if theta.ndim == 0 else theta
        is_allowed = is_traced(theta) or np.all((theta >= 0) & np.isfinite(theta))
        if theta.ndim > 2 or theta.size == 0 or not is_allowed:
            raise ValueError(
                "concentration must be non-negative numbers, of shape (), (G,) or (G, T), got "
                f"{concentration!r}"
            )
        self.concentration = theta if theta.ndim == 2 else theta[:, None]
        number = len(self.concentration)
        weights = as_array(np.full(number, 1.0 / number) if probs is None else probs).astype(float)
        is_allowed = is_traced(weights) or (np.all(weights > 0) and abs(weights.sum() - 1) <= 1e-5)
        if weights.shape != (number,) or not is_allowed:
            raise ValueError(
                f"probs must be {number} positive numbers that add up to 1, got {probs!r}"
            )
        self.probs = weights

    def statistics(self, data: Rankings) -> CenterCodes:
        n, stages = data.num_items, num_stages(data)
        orderings = jnp.asarray(data.orderings)[:, :stages]
        # permutations are the inverses of permutations
        places = jnp.asarray(list(itertools.permutations(range(n))), jnp.int32)
        codes = stage_codes(orderings[:, None], places).astype(float)
        rows = jnp.asarray(data.row_index, jnp.int32)
        return CenterCodes(codes[rows], (orderings >= 0).astype(float)[rows])

    def _theta(self, stages: int) -> Array:
        if self._may_be_stages and len(self.concentration) == stages:
            raise ValueError(
                f"concentration has {stages} numbers, as many as there are stages: give "
                "[[a, b, ...]] for one at each stage, or [[a], [b], ...] for values that a cluster "
                "may have, each the same at all stages"
            )
        if self.concentration.shape[1] not in (1, stages):
            raise ValueError(
                f"concentration has {self.concentration.shape[1]} stages, the rankings have "
                f"{stages}"
            )
        theta = jnp.asarray(self.concentration, float)
        return jnp.broadcast_to(theta, (len(theta), stages))

    def _log_likelihoods(self, cluster: CenterCodes) -> tuple[Array, Array]:
        """Log likelihoods relative to the first center, (…, n!, G), and at that center, (…, G)."""
        stages = cluster.counts.shape[-1]
        theta = self._theta(stages)
        num_items = _items_of(cluster.codes.shape[-2])
        limits = max_codes(num_items, stages)
        first = cluster.codes[..., :1, :]
        # differences of whole numbers are exact
        relative = -_times(cluster.codes - first, theta)
        here = -_times(first[..., 0, :], theta) - _times(cluster.counts, log_psi(theta, limits))
        return relative, here

    def log_marginal(self, cluster: CenterCodes) -> Array:
        relative, here = self._log_likelihoods(cluster)
        log_sums = jax.nn.logsumexp(relative, axis=-2) - math.lgamma(
            _items_of(relative.shape[-2]) + 1
        )
        return jax.nn.logsumexp(jnp.log(self.probs) + here + log_sums, axis=-1)

    def log_predictive(self, cluster: CenterCodes, point: CenterCodes) -> Array:
        return self.log_union(cluster, point) + self.log_marginal(point)

    def log_union(self, cluster: CenterCodes, other: CenterCodes) -> Array:
        of_cluster, of_other = self._weights(cluster), self._weights(other)
        # p(both) / p(one) p(other) = Σ p(center, θ | one) p(center, θ | other) / p(center, θ)
        log_prior = jnp.log(self.probs) - math.lgamma(_items_of(of_cluster.shape[-2]) + 1)
        return jax.nn.logsumexp(of_cluster + of_other - log_prior, axis=(-2, -1))

    def _weights(self, cluster: CenterCodes) -> Array:
        """log p(center, θ | cluster), (…, n!, G)."""
        relative, here = self._log_likelihoods(cluster)
        log_weights = relative + (here - here.max(-1, keepdims=True))[..., None, :]
        log_weights = log_weights + jnp.log(self.probs)
        return log_weights - jax.nn.logsumexp(log_weights, axis=(-2, -1), keepdims=True)

    def draw_ranking_parameters(self, key: Array, cluster: CenterCodes) -> dict[str, Array]:
        """Draw the centers and concentrations of clusters from their posterior.

        :param cluster: statistics with any leading axes.
        :return: ``center`` (…, n), an ordering, and ``concentration`` (…, T).
        """
        log_weights = self._weights(cluster)
        number, stages = log_weights.shape[-2], cluster.counts.shape[-1]
        flat = log_weights.reshape(*log_weights.shape[:-2], -1)
        drawn = jax.random.categorical(key, flat)
        theta = self._theta(stages)
        every = list(itertools.permutations(range(_items_of(number))))
        # the statistics are by the places of the items, whose inverses are the orderings
        orderings = jnp.asarray(np.argsort(every, axis=-1), jnp.int32)
        return {
            "center": orderings[drawn // len(theta)],
            "concentration": theta[drawn % len(theta)],
        }

    def check(self, data: Any) -> None:
        rankings = as_rankings(data)
        if rankings.choice_sets is not None:
            raise ValueError("a Mallows model is one of rankings of all items, not of choice sets")
        if rankings.num_items > MOST_ITEMS:
            raise ValueError(
                f"MallowsCenter sums over all orderings of at most {MOST_ITEMS} items, but these "
                f"rankings have {rankings.num_items}: use PlackettLuceWeights or SliceGibbs"
            )
        most = 2 ** (jnp.finfo(jnp.zeros(()).dtype).nmant + 1)
        if rankings.num_rankings * (rankings.num_items - 1) > most:
            raise ValueError(
                f"{rankings.num_rankings} rankings of {rankings.num_items} items are too many: "
                f"sums of codes are exact only up to {most}. Use a random part of them, or double "
                "precision (jax_enable_x64)"
            )
        self._theta(num_stages(rankings))


def _times(x: Array, theta: Array) -> Array:
    """Σ_j x_j θ_gj in full precision, from (…, T) and (G, T) to (…, G)."""
    return jnp.einsum("...t,gt->...g", x, theta, precision="highest")


def _items_of(num_centers: int) -> int:
    """Number n of items, from n!."""
    number = 1
    while math.factorial(number) < num_centers:
        number += 1
    return number
