"""Hamiltonian trajectories of clusters with the labels integrated out.

References are numbered as in ``label_free.py``.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.target import Mixture, Path, Target
from numpyro_rankings.ops.sampling import draw_together

# Where clusters overlap, the directions in which they trade shares are up to 20 times as wide as a
# step: one long trajectory gets further than as many steps in short ones.
_NUM_TRAJECTORIES, _MOST_LEAPFROGS = 2, 64
_LEAST_SIZE, _RANGE_OF_SIZES = 0.25, 3.0  # step sizes, in posterior standard deviations
_SPREAD_OF_SIZES = 1.0  # standard deviation of the log of a nominal size
_MARGIN = 2.5  # log of the ratio between the shares that vary and the lowest one
_MOST_MOVING = 16  # clusters that a trajectory moves, by default


def move_along_trajectories(
    key: Array, target: Target, mixture: Mixture, most_moving: int = _MOST_MOVING
) -> Mixture:
    """Make moves along trajectories, one after the other, each of at most so many clusters."""

    def move(mixture: Mixture, key: Array) -> tuple[Mixture, None]:
        return move_along_trajectory(key, target, mixture, most_moving), None

    return jax.lax.scan(move, mixture, random.split(key, _NUM_TRAJECTORIES))[0]


class Moving(NamedTuple):
    """The clusters that a trajectory moves, in a few slots; all others stay."""

    slots: Array  # (B,)
    active: Array  # slots of A, (B,) bool
    log_shares: Array  # (B,), -inf outside A
    log_total: Array  # log of the sum of these shares, which stays, ()
    others: Array  # density of the rows under all other clusters, relative to the start, (rows,)


def choose_moving(uniforms: Array, mixture: Mixture, most: int = _MOST_MOVING) -> Moving:
    """Choose clusters of A at random, or take all if few: the cost is that of the slots."""
    active = mixture.log_shares > -jnp.inf
    slots = jnp.argsort(jnp.where(active, uniforms, 2.0))[:most]
    log_shares = mixture.log_shares[slots]
    shares = jnp.exp(mixture.log_shares).at[slots].set(0.0)
    others = jnp.dot(shares, mixture.table, precision="highest")
    return Moving(slots, active[slots], log_shares, jax.nn.logsumexp(log_shares), others)


def move_along_trajectory(
    key: Array, target: Target, mixture: Mixture, most_moving: int = _MOST_MOVING
) -> Mixture:
    """Move continuous parameters and shares by Hamiltonian Monte Carlo [3]."""
    # Shares are masses over their total, times the sum of the shares that move; the log of the
    # total is an auxiliary standard normal variable. Large clusters allow smaller steps than small
    # ones. What sets these must not change along a trajectory, so it is auxiliary too: nominal
    # shares, whose logarithms are normal around those of the shares.
    key_normals, key_uniforms = random.split(key)
    number = len(mixture.log_shares)
    for_slots, (for_size, uniform) = draw_together(random.uniform, key_uniforms, (number,), (2,))
    moving = choose_moving(for_slots, mixture, most_moving)
    slots, active = moving.slots, moving.active
    old_parameters = jax.tree.map(lambda x: x[slots], mixture.parameters)
    path = target.clusters.path(old_parameters, slots, active, target.start)
    for_total, noise, for_parameters, for_shares = draw_together(
        random.normal, key_normals, (), active.shape, path.moving.shape, active.shape
    )
    log_nominal = jnp.where(active, moving.log_shares, 0.0) + _SPREAD_OF_SIZES * noise
    # smaller shares would soon leave the support
    varies = active & (log_nominal > target.large.lowest_log_share + _MARGIN)

    def log_density(position: tuple[Any, Array]) -> tuple[Array, Mixture]:
        proposal = _mixture_on_path(target, path, moving, position)
        log_shares = jnp.where(active, proposal.log_shares, 0.0)
        log_total = jax.nn.logsumexp(jnp.where(active, position[1], -jnp.inf))
        auxiliary = -0.5 * log_total**2
        off = jnp.where(active, log_shares - log_nominal, 0.0) / _SPREAD_OF_SIZES
        auxiliary -= 0.5 * jnp.sum(off**2)
        jacobian = path.log_jacobian(position[0]) + jnp.sum(log_shares)
        gain = target.large.log_likelihood_ratio(proposal.density, mixture.density)
        log_prior = target.log_prior(proposal.log_priors, proposal.log_shares)
        return gain + log_prior + auxiliary + jacobian, proposal

    log_masses = jnp.where(active, moving.log_shares - moving.log_total, 0.0) + for_total
    momentum = (jnp.where(path.moving, for_parameters, 0.0), jnp.where(varies, for_shares, 0.0))
    # the prior is as informative as a ranking
    sizes = target.large.row_counts.sum() * jnp.exp(log_nominal)
    scales = (jax.lax.rsqrt(1.0 + path.information * sizes)[:, None], jax.lax.rsqrt(1.0 + sizes))
    proposal, accepted = trajectory(
        uniform,
        (path.position, log_masses),
        momentum,
        (path.moving, varies),
        log_density,
        leapfrog_steps(for_size, len(target.large.inside), scales),
    )

    def put(old: Array, new: Array) -> Array:
        return old.at[slots].set(jnp.where(accepted, new, old[slots]))

    density = jnp.where(accepted, proposal.density, mixture.density)
    parameters, log_priors, log_shares, table = jax.tree.map(put, mixture[:-1], proposal[:-1])
    return Mixture(parameters, log_priors, log_shares, table, density)


def _mixture_on_path(
    target: Target, path: Path, moving: Moving, position: tuple[Any, Array]
) -> Mixture:
    """Return the clusters that move, and the density of the whole mixture, at a position."""
    for_clusters, log_masses = position
    log_shares = jax.nn.log_softmax(jnp.where(moving.active, log_masses, -jnp.inf))
    log_shares = jnp.where(moving.active, moving.log_total + log_shares, -jnp.inf)
    table = path.rows(for_clusters)
    density = moving.others + jnp.dot(jnp.exp(log_shares), table, precision="highest")
    parameters = path.parameters(for_clusters)
    log_priors = target.clusters.log_prior(parameters)
    return Mixture(parameters, log_priors, log_shares, table, density)


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
    """Follow a Hamiltonian trajectory [3]: the auxiliary output, and whether it is accepted."""
    # Where the position is not ``moving`` it has no momentum. The function ``log_density`` has an
    # auxiliary output.

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
