"""Hamiltonian trajectories of clusters with the labels integrated out.

References are numbered as in ``label_free.py``.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.target import LargeClusters, Mixture, Target

_MOST_LEAPFROGS = 64  # long trajectories pay where many rankings make some directions narrow


def move_along_trajectory(key: Array, target: Target, now: Mixture) -> Mixture:
    """Move all continuous parameters and all shares by Hamiltonian Monte Carlo [3].

    Shares are masses divided by their total. The log of the total is an auxiliary standard normal
    variable.
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
    :param log_density: maps a position to its log density and an auxiliary output.
    :return: the auxiliary output at the new position, and whether that is accepted.
    """

    def add(x: Any, y: Any, times: Array) -> Any:
        return jax.tree.map(lambda a, b: a + times * b, x, y)

    def kinetic(momentum: Any) -> Array:
        return 0.5 * sum((jnp.sum(p**2) for p in jax.tree.leaves(momentum)), jnp.zeros(()))

    def leapfrog(carry: tuple, sizes: tuple[Array, Array]) -> tuple[tuple, Array]:
        position, momentum, _ = carry
        drift, kick = sizes
        position = add(position, momentum, drift)
        (value, aux), slope = jax.value_and_grad(log_density, has_aux=True)(position)
        # outside the support of a prior the gradient may be NaN. Any value will do there: the
        # trajectory stays reversible, and nothing is accepted
        slope = jax.tree.map(lambda m, g: jnp.where(m & jnp.isfinite(g), g, 0.0), moving, slope)
        return (position, add(momentum, slope, kick), aux), value

    # the first step only evaluates the start, so that the density is compiled once
    drifts = jnp.where(jnp.arange(steps.number + 1) == 0, 0.0, steps.size)
    is_end = (jnp.arange(steps.number + 1) % steps.number) == 0
    kicks = jnp.where(is_end, 0.5 * steps.size, steps.size)
    aux = jax.eval_shape(lambda x: log_density(x)[1], position)
    aux = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), aux)
    begin = (position, momentum, aux)
    (_, new_momentum, aux), values = jax.lax.scan(leapfrog, begin, (drifts, kicks))
    log_accept = values[-1] - kinetic(new_momentum) - (values[0] - kinetic(momentum))
    return aux, jnp.log(random.uniform(key)) < log_accept
