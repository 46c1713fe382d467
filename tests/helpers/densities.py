"""Log densities of NumPyro models as compiled functions."""

from functools import partial

import jax
from numpyro.infer.util import log_density


@jax.jit
def log_prob(distribution, value):
    """Log probabilities by one program, which distributions of the same shape share."""
    return distribution.log_prob(value)


@partial(jax.jit, static_argnums=2)
def draw(distribution, key, shape=()):
    """A sample by one program, too."""
    return distribution.sample(key, shape)


def log_density_at(model, *data):
    """log p(z, data) as a function of z, compiled once instead of op by op for each z."""
    return jax.jit(lambda z: log_density(model, data, {}, z)[0])
