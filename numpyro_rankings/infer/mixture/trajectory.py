"""Hamiltonian trajectories of clusters with the labels integrated out.

References are numbered as in ``label_free.py``.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.target import Mixture, Target
from numpyro_rankings.ops.sampling import draw_together

_NUM_TRAJECTORIES = 8  # in a move, because the choice of A and the labels take time too
_MOST_LEAPFROGS = 32
_LEAST_SIZE, _RANGE_OF_SIZES = 0.25, 3.0  # of a step, in posterior standard deviations
_SPREAD_OF_SIZES = 1.0  # standard deviation of the log of a nominal size
_MARGIN = 2.5  # in log shares, between the lowest share and those that vary


def move_along_trajectories(key: Array, target: Target, now: Mixture) -> Mixture:
    """Make several moves along trajectories."""

    def move(now: Mixture, key: Array) -> tuple[Mixture, None]:
        return move_along_trajectory(key, target, now), None

    return jax.lax.scan(move, now, random.split(key, _NUM_TRAJECTORIES))[0]


def move_along_trajectory(key: Array, target: Target, now: Mixture) -> Mixture:
    """Move all continuous parameters and all shares by Hamiltonian Monte Carlo [3].

    Shares are masses divided by their total. The log of the total is an auxiliary standard normal
    variable. Large clusters allow smaller steps than small ones. What sets the lengths of the steps
    must not change along a trajectory, so these are auxiliary variables too: nominal shares of the
    clusters, whose logarithms are normal around those of the shares.
    """
    key_normals, key_uniforms = random.split(key)
    active = now.log_shares > -jnp.inf
    path = target.clusters.path(now.parameters, active, target.start)
    for_total, noise, for_parameters, for_shares = draw_together(
        random.normal, key_normals, (), active.shape, path.moving.shape, active.shape
    )
    for_size, uniform = random.uniform(key_uniforms, (2,))
    log_nominal = jnp.where(active, now.log_shares, 0.0) + _SPREAD_OF_SIZES * noise
    # smaller shares would soon leave the support
    varies = active & (log_nominal > target.large.lowest_log_share + _MARGIN)

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
        log_shares = jnp.where(active, proposal.log_shares, 0.0)
        log_total = jax.nn.logsumexp(jnp.where(active, position[1], -jnp.inf))
        auxiliary = -0.5 * log_total**2
        off = jnp.where(active, log_shares - log_nominal, 0.0) / _SPREAD_OF_SIZES
        auxiliary -= 0.5 * jnp.sum(off**2)
        jacobian = path.log_jacobian(position[0]) + jnp.sum(log_shares)
        gain = target.large.log_likelihood_ratio(proposal.density, now.density)
        log_prior = target.log_prior(proposal.log_priors, proposal.log_shares)
        return gain + log_prior + auxiliary + jacobian, proposal

    log_masses = jnp.where(active, now.log_shares, 0.0) + for_total
    momentum = (
        jnp.where(path.moving, for_parameters, 0.0),
        jnp.where(varies, for_shares, 0.0),
    )
    # the prior is as informative as a ranking
    sizes = target.large.row_counts.sum() * jnp.exp(log_nominal)
    scales = (
        jax.lax.rsqrt(1.0 + path.information * sizes)[:, None],
        jax.lax.rsqrt(1.0 + sizes),
    )
    proposal, accepted = trajectory(
        uniform,
        (path.position, log_masses),
        momentum,
        (path.moving, varies),
        log_density,
        leapfrog_steps(for_size, len(target.large.inside), scales),
    )
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, now)


class Leapfrog(NamedTuple):
    """**sizes** of the steps of a trajectory, as the position, and their **number**."""

    sizes: Any
    number: int


def leapfrog_steps(uniform: Array, num_rankings: int, scales: Any) -> Leapfrog:
    """Draw step sizes around the posterior standard deviations in clusters that do not overlap."""
    size = _LEAST_SIZE * jnp.exp(uniform * math.log(_RANGE_OF_SIZES))
    sizes = jax.tree.map(lambda x: size * x, scales)
    return Leapfrog(sizes, min(max(num_rankings, 8), _MOST_LEAPFROGS))


def trajectory(
    uniform: Array,
    position: Any,
    momentum: Any,
    moving: Any,
    log_density: Callable[[Any], tuple[Array, Any]],
    steps: Leapfrog,
) -> tuple[Any, Array]:
    """Follow a Hamiltonian trajectory [3].

    :param uniform: a draw that decides on acceptance.
    :param moving: which entries of the position move; the others have no momentum.
    :param log_density: maps a position to its log density and an auxiliary output.
    :return: the auxiliary output at the new position, and whether that is accepted.
    """

    def add(x: Any, y: Any, times: Array) -> Any:
        return jax.tree.map(lambda a, b, size: a + times * size * b, x, y, steps.sizes)

    def kinetic(momentum: Any) -> Array:
        return 0.5 * sum((jnp.sum(p**2) for p in jax.tree.leaves(momentum)), jnp.zeros(()))

    def leapfrog(carry: tuple, parts: tuple[Array, Array]) -> tuple[tuple, Array]:
        position, momentum, _ = carry
        drift, kick = parts
        position = add(position, momentum, drift)
        (value, aux), slope = jax.value_and_grad(log_density, has_aux=True)(position)
        # outside the support of a prior the gradient may be NaN. Any value will do there: the
        # trajectory stays reversible, and nothing is accepted
        slope = jax.tree.map(lambda m, g: jnp.where(m & jnp.isfinite(g), g, 0.0), moving, slope)
        return (position, add(momentum, slope, kick), aux), value

    # the first step only evaluates the start, so that the density is compiled once
    drifts = jnp.where(jnp.arange(steps.number + 1) == 0, 0.0, 1.0)
    is_end = (jnp.arange(steps.number + 1) % steps.number) == 0
    kicks = jnp.where(is_end, 0.5, 1.0)
    aux = jax.eval_shape(lambda x: log_density(x)[1], position)
    aux = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), aux)
    begin = (position, momentum, aux)
    (_, new_momentum, aux), values = jax.lax.scan(leapfrog, begin, (drifts, kicks))
    log_accept = values[-1] - kinetic(new_momentum) - (values[0] - kinetic(momentum))
    return aux, jnp.log(uniform) < log_accept
