"""Runs of a kernel with two compiled programs, its start and its sweeps, and no others."""

import jax
import numpy as np
from jax import random
from numpyro.infer import MCMC


def as_arrays(tree):
    """NumPy arrays, of which slices are not compiled; keys stay keys."""
    return jax.tree.map(
        lambda x: x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x), tree
    )


def sweeps_of(kernel, *data, num_draws, extra_fields=()):
    """A compiled function of a state: the state after so many sweeps, and each that was."""
    sweeps = _sweeps(kernel, num_draws, extra_fields)
    return jax.jit(lambda state: sweeps(state, data))


def sweeps_of_any(kernel, *, num_draws, extra_fields=()):
    """The same as a function of a state and of data, for data of the same shapes."""
    return jax.jit(_sweeps(kernel, num_draws, extra_fields))


def _sweeps(kernel, num_draws, extra_fields):
    fields = *kernel.default_fields, *extra_fields

    def sweeps(state, data):
        def sweep(state, _):
            state = kernel.sample(state, data, {})
            return state, {name: getattr(state, name) for name in fields}

        return jax.lax.scan(sweep, state, length=num_draws)

    return sweeps


def sampled(
    kernel,
    *data,
    key,
    num_samples,
    num_chains,
    num_warmup=0,
    init_params=None,
    sweeps=None,
    extra_fields=(),
):
    """An ``MCMC`` as its run with vectorized chains leaves it, the draws in NumPy arrays.

    The draws are the same. A run of ``MCMC`` compiles some forty small programs besides: to make
    chains of draws of draws of chains, to join them, to cut them.

    :param sweeps: of :func:`sweeps_of` for all draws, if the test needs it again.
    :param extra_fields: further fields of the state that are kept of each draw.
    """
    keys = random.split(key, num_chains)
    state = kernel.init(keys, num_warmup, init_params, data, {})
    if sweeps is None:
        num_draws = num_warmup + num_samples
        sweeps = sweeps_of(kernel, *data, num_draws=num_draws, extra_fields=extra_fields)
    state, draws = sweeps(state)
    mcmc = MCMC(
        kernel,
        num_warmup=num_warmup,
        num_samples=num_samples,
        num_chains=num_chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    by_chain = jax.tree.map(lambda x: np.swapaxes(np.asarray(x)[num_warmup:], 0, 1), draws)
    mcmc._states = by_chain
    mcmc._states_flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), by_chain)
    mcmc._last_state = as_arrays(state)
    mcmc._args, mcmc._kwargs = data, {}
    return mcmc
