"""Log densities of NumPyro models as compiled functions."""

import jax
from numpyro.infer.util import log_density


def log_density_at(model, *data):
    """log p(z, data) as a function of z, compiled once instead of op by op for each z."""
    return jax.jit(lambda z: log_density(model, data, {}, z)[0])
