"""Root and cluster measures and their scales, given the waiting times.

**References**

1. *Bayesian nonparametric Plackett–Luce models for the analysis of preferences for college degree
   programmes*, F. Caron, Y. W. Teh, T. B. Murphy (Annals of Applied Statistics, 2014), Appendix D.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.priors import keep_possible, log_prior, log_prior_ratio
from numpyro_rankings.ops.random_measures import log_atoms, log_unseen
from numpyro_rankings.ops.sampling import sample_atom_counts, sample_log_gamma, slice_sample

# With a small α the unseen weight may underflow. It is at least this, so that float32 can hold its
# logarithm and products.
_LEAST_UNSEEN = 1e-30


class Measures(NamedTuple):
    """The root :math:`G_0` and the measures :math:`G_j` of the clusters, not normalised."""

    root: Array  # :math:`w_{0k}`, (K,)
    root_unseen: Array  # :math:`w_{0*}`, ()
    atoms: Array  # :math:`w_{jk}`, (C, K)
    unseen: Array  # :math:`w_{j*}`, (C,)

    @property
    def totals(self) -> Array:
        """Total weight of each cluster, (C,)."""
        return self.atoms.sum(1) + self.unseen


class Scales(NamedTuple):
    """Current values of **alpha**, **phi** and **gamma**."""

    alpha: Array
    phi: Array
    gamma: Array


def draw_clusters(
    key: Array, root: Array, root_unseen: Array, scales: Scales, tau: float, num_slots: int
) -> tuple[Array, Array]:
    """Draw :math:`G_j` given :math:`G_0`, eq. (19): atoms (C, K) and unseen weights (C,)."""
    key_counts, key_weights = random.split(key)
    mean = scales.phi * jnp.append(root, root_unseen)
    counts = sample_atom_counts(key_counts, jnp.tile(mean, (num_slots, 1)), 0.0)
    # the shape of the unseen items is increased by α
    shape = counts.at[:, -1].add(scales.alpha)
    weights = _gamma_or_zero(key_weights, shape, tau + scales.phi)
    return weights[:, :-1], jnp.maximum(weights[:, -1], _LEAST_UNSEEN)


def _gamma_or_zero(key: Array, shape: Array, rate: Array) -> Array:
    """Draw from Gamma(shape, rate), 0 where the shape is 0."""
    positive = shape > 0
    log_draws = sample_log_gamma(key, jnp.where(positive, shape, 1.0))
    return jnp.where(positive, jnp.exp(log_draws) / rate, 0.0)


class ClusterTimes(NamedTuple):
    """Sums over the rankings and their waiting times for the clusters."""

    occupied: Array  # (C,) bool
    chosen: Array  # n_jk, how often each item was chosen, (C, K)
    in_play: Array  # Z̃_jk, total time for which each item was in play, (C, K)
    total: Array  # Z̃_j, (C,)


def update_measures(
    key: Array,
    measures: Measures,
    scales: Scales,
    times: ClusterTimes,
    alpha_prior: dist.Distribution | None,
    tau: float,
) -> tuple[Measures, Scales]:
    """Draw α and all measures given the waiting times: steps 2, 1b, 5, 1 and 3 of Appendix D."""
    keys = random.split(key, 6)
    phi, rate = scales.phi, tau + scales.phi
    number = times.chosen.shape[1]
    # 2a-c: α with all unseen weights integrated out, then the root's unseen weight
    left = rate / (rate + times.total)
    x0 = jnp.sum(jnp.where(times.occupied, phi * (1.0 - left), 0.0))
    y0 = jnp.sum(jnp.where(times.occupied, jnp.log1p(times.total / rate), 0.0))
    alpha = scales.alpha
    if alpha_prior is not None:
        exponent = y0 + jnp.log1p(x0 / tau)
        alpha = update_concentration(keys[0], alpha, alpha_prior, number, exponent)
    root_unseen = jnp.exp(sample_log_gamma(keys[1], alpha)) / (tau + x0)
    # from here on the last column is for the unseen items: never chosen, and shape increased by α
    in_play = jnp.append(times.in_play, times.total[:, None], axis=1)
    chosen = jnp.pad(times.chosen, ((0, 0), (0, 1)))
    more = jnp.append(jnp.zeros(number), alpha)
    # 2c and 1b: u_j*, and u_jk with w_jk integrated out
    x = phi * jnp.append(measures.root, root_unseen) * rate / (rate + in_play)
    counts = sample_atom_counts(keys[2], x, chosen)
    # 2d and 5: w_jk and w_j*
    weights = _gamma_or_zero(keys[3], chosen + counts + more, rate + in_play)
    weights = weights.at[:, -1].max(_LEAST_UNSEEN)
    # 1: the total weight of each cluster, on which the likelihood does not depend
    total = jnp.exp(sample_log_gamma(keys[4], alpha + counts.sum(1))) / rate
    weights *= (total / weights.sum(1))[:, None]
    weights = weights.at[:, -1].max(_LEAST_UNSEEN)
    # 3: the root
    sums = jnp.sum(jnp.where(times.occupied[:, None], counts, 0.0), axis=0)
    sums = sums.at[:-1].max(1.0) + more  # at least 1: each listed item is in some cluster
    root = jnp.exp(sample_log_gamma(keys[5], sums)) / (tau + times.occupied.sum() * phi)
    root = root.at[-1].max(_LEAST_UNSEEN)
    measures = Measures(root[:-1], root[-1], weights[:, :-1], weights[:, -1])
    return measures, scales._replace(alpha=alpha)


def update_phi(
    key: Array,
    measures: Measures,
    scales: Scales,
    prior: dist.Distribution,
    occupied: Array,
    tau: float,
) -> Array:
    """Draw φ by slice sampling of its logarithm, with eq. (25) and (26): step 8 of Appendix D."""

    def difference(log_phi: Array, step: Array) -> Array:
        old, new = jnp.exp(log_phi), jnp.exp(log_phi + step)

        def terms(phi: Array) -> tuple[Array, Array]:
            log_weights_of_atoms = log_atoms(measures.atoms, measures.root, phi, tau)
            rest = log_unseen(measures.unseen, measures.root_unseen, scales.alpha, phi, tau)
            return log_weights_of_atoms, rest

        (atoms_new, rest_new), (atoms_old, rest_old) = terms(new), terms(old)
        each = (atoms_new - atoms_old).sum(1) + rest_new - rest_old
        change = jnp.sum(jnp.where(occupied, each, 0.0))
        return change + log_prior_ratio(prior, new, scales.phi) + step

    log_phi = slice_sample(key, jnp.log(scales.phi), difference, 0.5, lower=-jnp.inf)
    return keep_possible(prior, jnp.exp(log_phi), scales.phi)


def update_common_scale(
    key: Array,
    measures: Measures,
    scales: Scales,
    prior: dist.Distribution,
    occupied: Array,
    tau: float,
) -> tuple[Measures, Scales]:
    """Multiply φ and divide all measures by one factor, by slice sampling of its logarithm."""

    # This keeps the likelihood, and φ G_0, the resemblance of clusters to the root. The scale of
    # the root and φ move far only together.
    def scaled(step: Array) -> tuple[Measures, Array]:
        factor = jnp.exp(-step)
        return jax.tree.map(lambda x: x * factor, measures), scales.phi / factor

    def log_density(step: Array) -> Array:
        # density of the logarithms, hence no Jacobian
        (root, root_unseen, atoms, unseen), phi = scaled(step)
        log_density = scales.alpha * jnp.log(root_unseen) - tau * (root.sum() + root_unseen)
        each = log_atoms(atoms, root, phi, tau).sum(1) - step * jnp.sum(atoms > 0, axis=1)
        each += log_unseen(unseen, root_unseen, scales.alpha, phi, tau) - step
        return log_density + jnp.sum(jnp.where(occupied, each, 0.0)) + step

    def difference(start: Array, step: Array) -> Array:
        change = log_density(start + step) - log_density(start)
        return change + log_prior_ratio(prior, scaled(start + step)[1], scales.phi)

    step = slice_sample(key, jnp.zeros(()), difference, 0.5, lower=-jnp.inf)
    step = jnp.where(log_prior(prior, scaled(step)[1]) > -jnp.inf, step, 0.0)
    measures, phi = scaled(step)
    measures = measures._replace(
        root_unseen=jnp.maximum(measures.root_unseen, _LEAST_UNSEEN),
        unseen=jnp.maximum(measures.unseen, _LEAST_UNSEEN),
    )
    return measures, scales._replace(phi=phi)


def update_concentration(
    key: Array, alpha: Array, prior: dist.Distribution, number: Array | int, exponent: Array
) -> Array:
    """Draw α from its density ∝ prior · α^K e^{-α c}; exactly under a Gamma prior."""
    if isinstance(prior, dist.Gamma):
        log_draw = sample_log_gamma(key, prior.concentration + number)
        return jnp.exp(log_draw) / (prior.rate + exponent)

    def difference(log_alpha: Array, delta: Array) -> Array:
        begin = jnp.exp(log_alpha)
        step = begin * jnp.expm1(delta)
        change = log_prior_ratio(prior, begin + step, alpha)
        return change + (number + 1.0) * delta - step * exponent  # 1 is the Jacobian of log α

    log_alpha = slice_sample(key, jnp.log(alpha), difference, 1.0, lower=-jnp.inf)
    return keep_possible(prior, jnp.exp(log_alpha), alpha)
