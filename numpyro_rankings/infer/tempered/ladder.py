r"""The ladder of a tempered mixture: powers z of the likelihood, and exchanges of its rungs.

The first rung is the prior, z = 0, where each state is drawn afresh. Along the first leg z grows to
that of the model, while the concentration κ of the shares is large: at a small z all components
then lie on one another and grow apart by degrees, where with a small κ they would appear by jumps,
each at the cost of a whole center. If the model has another κ, it is approached along a second leg.

**References**

1. *Non-reversible parallel tempering: a scalable highly parallel MCMC scheme*, S. Syed, A.
   Bouchard-Côté, G. Deligiannidis, A. Doucet (JRSS B, 2022): exchanges of even and odd pairs in
   turn, and rungs between which all exchanges are rejected equally often.
2. *Robust Bayesian inference via coarsening*, J. W. Miller, D. B. Dunson (JASA, 2019): posteriors
   of a power of the likelihood.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, random

_FIRST = 0.1  # rankings' worth from which on the power grows geometrically
_SECOND_LEG = 0.25  # its length, that of the first leg being 1
# An exchange counts as accepted at least so often, or a jump would attract all rungs.
_LEAST_ACCEPTANCE, _MOST_ACCEPTANCE = 0.02, 0.9999
_ADAPTED = np.array([0.03, 0.06, 0.1, 0.17, 0.28, 0.45, 0.7])  # shares of the warm-up
_LEAST_RUNGS, _MOST_RUNGS = 8, 64


class Path(NamedTuple):
    """The way from the prior to the model, by a position from 0 to its length."""

    power: Array  # z of the model
    num_rankings: Array  # N, as float
    share_concentrations: tuple[Array, Array]  # κ on the first leg, and that of the model

    @property
    def length(self) -> float:
        """1, or more if the model has a κ of its own."""
        first, last = self.share_concentrations
        return 1.0 if first is last else 1.0 + _SECOND_LEG

    def powers(self, positions: Array) -> Array:
        """Return the powers at some positions."""
        most = self.power * self.num_rankings / _FIRST
        grown = jnp.expm1(jnp.minimum(positions, 1.0) * jnp.log1p(most)) / most
        # rounding must not change the model
        return self.power * jnp.where(positions < 1.0, grown, 1.0)

    def concentrations(self, positions: Array) -> Array:
        """Return the concentrations κ of the shares at some positions."""
        first, last = self.share_concentrations
        return first * (last / first) ** jnp.clip((positions - 1.0) / _SECOND_LEG, 0.0, 1.0)


class Rungs(NamedTuple):
    """The rungs of a ladder, by number from the prior to the model, and what has happened."""

    positions: Array  # on the path, (R,)
    replica: Array  # the replica at each rung, (R,) int32
    is_rising: Array  # whether a replica was at the prior more recently than at the model, (R,)
    round_trips: Array  # number of times that a replica came from the prior to the model
    acceptance: Array  # sum of the probabilities of exchange of neighbours, (R - 1,)
    num_exchanges: Array  # number of terms of these sums


def first_rungs(path: Path, number: int) -> Rungs:
    """Return the rungs at the start."""
    return Rungs(
        positions=jnp.linspace(0.0, path.length, number),
        replica=jnp.arange(number, dtype=jnp.int32),
        is_rising=jnp.zeros(number, bool),
        round_trips=jnp.zeros((), jnp.int32),
        acceptance=jnp.zeros(number - 1),
        num_exchanges=jnp.zeros((), jnp.int32),
    )


def exchange(
    key: Array, rungs: Rungs, path: Path, log_likelihoods: Array, log_shares: Array
) -> Rungs:
    """Exchange the replicas of even pairs of neighbours, or of odd ones, in turn [1].

    :param log_likelihoods: of the replicas, by rung, (R,).
    :param log_shares: sums of the logarithms of their shares, by rung, (R,).
    """
    powers, concentrations = path.powers(rungs.positions), path.concentrations(rungs.positions)
    log_ratio = -jnp.diff(powers) * jnp.diff(log_likelihoods)
    log_ratio -= jnp.diff(concentrations) * jnp.diff(log_shares)
    # where a replica gives the data probability 0
    log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
    pairs = jnp.arange(len(log_ratio))
    takes_part = pairs % 2 == rungs.num_exchanges % 2
    accepted = takes_part & (jnp.log(random.uniform(key, log_ratio.shape)) < log_ratio)
    shift = jnp.zeros(len(powers), jnp.int32)
    shift = shift.at[:-1].add(accepted.astype(jnp.int32)).at[1:].add(-accepted.astype(jnp.int32))
    replica = rungs.replica[jnp.arange(len(powers)) + shift]
    is_rising = rungs.is_rising.at[replica[0]].set(True)
    return Rungs(
        rungs.positions,
        replica,
        is_rising.at[replica[-1]].set(False),
        rungs.round_trips + is_rising[replica[-1]],
        rungs.acceptance + jnp.exp(jnp.minimum(log_ratio, 0.0)),
        rungs.num_exchanges + 1,
    )


def mean_rejection(rungs: Rungs) -> Array:
    """Return how often each exchange of neighbours is rejected on average, (R - 1,)."""
    number = rungs.num_exchanges
    return jnp.where(number > 0, 1.0 - rungs.acceptance / jnp.maximum(number, 1), 0.0)


def adapt(rungs: Rungs) -> Rungs:
    """Place the rungs anew so that exchanges cost the same, and forget what has happened."""
    acceptance = rungs.acceptance / jnp.maximum(rungs.num_exchanges, 1)
    costs = -jnp.log(jnp.clip(acceptance, _LEAST_ACCEPTANCE, _MOST_ACCEPTANCE))
    way = jnp.append(0.0, jnp.cumsum(costs))
    even = jnp.linspace(0.0, 1.0, len(way)) * way[-1]
    positions = jnp.interp(even, way, rungs.positions)
    # rounding must not move the ends
    positions = positions.at[0].set(0.0).at[-1].set(rungs.positions[-1])
    zero = jnp.zeros_like
    return Rungs(
        positions,
        rungs.replica,
        zero(rungs.is_rising),
        zero(rungs.round_trips),
        zero(rungs.acceptance),
        zero(rungs.num_exchanges),
    )


def is_adapted(sweep: Array, num_warmup: Array) -> Array:
    """Return whether the rungs are placed anew after a sweep, whose number begins with 1."""
    return jnp.any(sweep == jnp.ceil(_ADAPTED * num_warmup).astype(jnp.int32)) & (sweep > 0)


def choose_number(num_parameters: int, num_rankings: float) -> int:
    """Return twice the barrier Λ of a normal posterior: half of the exchanges are rejected [1]."""
    # The log likelihood of a normal posterior of d parameters has variance d / (2 z²) at power z.
    # The rate of rejection along log z is then √(d / 2π); from the prior on about one ranking's
    # worth is added.
    barrier = math.sqrt(num_parameters / (2 * math.pi)) * math.log1p(num_rankings)
    number = 8 * math.ceil(2 * barrier / 8)
    return min(max(number, _LEAST_RUNGS), _MOST_RUNGS)
