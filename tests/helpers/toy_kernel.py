"""A kernel that compiles at once: an autoregressive chain whose posterior is known."""

import json
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import random
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings import Run
from numpyro_rankings.run.metadata import with_checksum

DATA = jnp.array([0.3, -1.0, 2.0])


class ToyState(NamedTuple):
    z: dict
    energy: jax.Array
    rng_key: jax.Array


class Autoregressive(MCMCKernel):
    """Draws the mean of a normal sample with variance 1, whose prior is standard normal.

    :param persistence: autocorrelation of successive draws.
    """

    sample_field = "z"
    default_fields = ("z", "energy")

    def __init__(self, persistence=0.5):
        self.persistence = persistence

    @property
    def model(self):
        return None

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        rng_key, key = random.split(rng_key)
        mean, sd = posterior(model_args[0])
        mu = mean + 3 * sd * random.normal(key)
        return ToyState({"mu": mu, "pair": jnp.stack([mu, -mu])}, mu**2, rng_key)

    def sample(self, state, model_args, model_kwargs):
        rng_key, key = random.split(state.rng_key)
        mean, sd = posterior(model_args[0])
        rho = self.persistence
        noise = jnp.sqrt(1 - rho**2) * sd * random.normal(key)
        mu = mean + rho * (state.z["mu"] - mean) + noise
        return ToyState({"mu": mu, "pair": jnp.stack([mu, -mu])}, mu**2, rng_key)


def posterior(data):
    """Mean and standard deviation of the posterior."""
    precision = 1 + data.shape[0]
    return data.sum() / precision, 1 / jnp.sqrt(precision)


class Wide(Autoregressive):
    """Has a further site of a given number of numbers."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def _widened(self, state):
        wide = state.z["mu"] + jnp.arange(float(self.width))
        return state._replace(z=state.z | {"wide": wide})

    def init(self, *args, **kwargs):
        return self._widened(super().init(*args, **kwargs))

    def sample(self, state, model_args, model_kwargs):
        return self._widened(super().sample(state, model_args, model_kwargs))


def toy_run(kernel=None, **settings):
    """Begin a run that keeps all draws, of a kernel that does not adapt."""
    settings = {"key": random.key(1), "num_warmup": 0, "burn_in": 0.0, **settings}
    return Run(kernel or Autoregressive(), DATA, **settings)


def change_root(store, change):
    """Change the metadata of the root of a store, as if they had been written so."""
    path = store / "zarr.json"
    root = json.loads(path.read_text())
    change(root)
    path.write_text(json.dumps(with_checksum(root)))
