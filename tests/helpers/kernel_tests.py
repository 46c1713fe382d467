"""What the tests of several kernels ask in the same way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from numpyro import handlers
from numpyro.infer import MCMC

from helpers.densities import log_density_at


def each_of(names, quick):
    """Parametrize a test by ``name``; all but the quick ones are marked slow."""
    marks = {name: [] if name in quick else [pytest.mark.slow] for name in names}
    return pytest.mark.parametrize("name", [pytest.param(n, marks=m) for n, m in marks.items()])


def run_chains(kernel, *data, seed, chain_method="vectorized", **settings):
    """An ``MCMC`` after its run."""
    mcmc = MCMC(kernel, chain_method=chain_method, progress_bar=False, **settings)
    mcmc.run(random.key(seed), *data)
    return mcmc


def assert_log_joint_is_the_density(mcmc, *data, rel=1e-5, abs=1e-4):
    """Of every draw the negative potential; of four, from first to last, that of the model."""
    samples = mcmc.get_samples()
    potential = mcmc.get_extra_fields()["potential_energy"]
    np.testing.assert_allclose(samples["log_joint"], -potential, rtol=1e-6)
    expected = log_density_at(mcmc.sampler.model, *data)
    for draw in np.linspace(0, len(potential) - 1, 4, dtype=int):
        z = {site: value[draw] for site, value in samples.items()}
        assert float(z["log_joint"]) == pytest.approx(float(expected(z)), rel=rel, abs=abs)


def assert_chain_methods_agree(make_kernel, *data, methods, num_same, **settings):
    """Draws up to rounding, which in the end makes another chain: so many are compared."""
    runs = [
        run_chains(
            make_kernel(),
            *data,
            seed=5,
            chain_method=method,
            num_chains=2,
            jit_model_args=method == "vectorized",
            **settings,
        ).get_samples()
        for method in methods
    ]
    for run in runs[1:]:
        for site, value in runs[0].items():
            np.testing.assert_allclose(run[site][:num_same], value[:num_same], rtol=1e-4)


def assert_resumed_run_is_the_long_one(mcmc, make_kernel, *data, num_samples, **settings):
    """Go on where a run from the seed 6 has ended: both together are one run, bit for bit."""
    first = mcmc.get_samples()
    mcmc.post_warmup_state = mcmc.last_state
    mcmc.run(mcmc.post_warmup_state.rng_key, *data)
    long = MCMC(make_kernel(), num_samples=2 * num_samples, progress_bar=False, **settings)
    long.run(random.key(6), *data)
    for site, value in long.get_samples().items():
        joined = np.concatenate([first[site], mcmc.get_samples()[site]])
        np.testing.assert_array_equal(joined, value, err_msg=site)


def rank_of(key, truth, draws):
    """How many draws are below the truth; one that equals it is below it or above it by lot."""
    below, equal = (draws < truth).sum(0), (draws == truth).sum(0)
    uniform = random.uniform(key, equal.shape)
    return below + jnp.floor(uniform * (equal + 1)).astype(int)


def simulate(kernel, template, key):
    """One draw of everything from the prior, with as many rankings as the template has."""
    leaves, structure = jax.tree.flatten(template)
    model = handlers.uncondition(kernel.model)
    with handlers.block(), handlers.trace() as trace, handlers.seed(rng_seed=key):
        model(template)
    truth = {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "sample" and name != "rankings"
    }
    lists = trace["rankings"]["value"].astype(jnp.int32)
    return truth, jax.tree.unflatten(structure, [lists, *leaves[1:]])
