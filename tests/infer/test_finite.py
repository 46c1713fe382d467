"""A chain whose log joint or site is not finite stops for good, and every edge says so."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.chains import sampled, sweeps_of
from jax import random
from numpyro.infer import HMC, Gibbs

from numpyro_rankings import Rankings, to_inference_data
from numpyro_rankings.components import Family, GaussianMean
from numpyro_rankings.infer import (
    CollapsedGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
)
from numpyro_rankings.infer.not_finite import NotFiniteError
from numpyro_rankings.models import plackett_luce

RANKINGS = Rankings.from_orderings([[0, 1, 2], [1, 0], [2]], num_items=3, counts=[3, 2, 1])


def breaks(state):
    """One sweep in ten."""
    return random.bernoulli(random.fold_in(state.rng_key, 7), 0.1)


class Breaks(PlackettLuceGibbs):
    """Some sweeps have an infinite weight, a log joint of NaN, or one of minus infinity."""

    def __init__(self, how, **settings):
        super().__init__(**settings)
        self.how = how

    def _sweep(self, state, args, kwargs):
        state = super()._sweep(state, args, kwargs)
        if self.how == "weights":
            weights = state.z["weights"]
            first = jnp.where(breaks(state), jnp.inf, weights[0])
            return state._replace(z={**state.z, "weights": weights.at[0].set(first)})
        value = {"nan": jnp.nan, "impossible": jnp.inf}[self.how]
        potential = jnp.where(breaks(state), value, state.potential_energy)
        return state._replace(potential_energy=potential)


NUM_DRAWS = 60


def run(kernel, data=RANKINGS, chains=1, seed=1, **settings):
    settings |= {"num_samples": NUM_DRAWS, "num_chains": chains}
    return sampled(kernel, data, key=random.key(seed), **settings)


@lru_cache
def draws_without_a_fault():
    return run(PlackettLuceGibbs(), chains=3).get_samples(group_by_chain=True)


@pytest.mark.parametrize(
    "how", ["weights", "nan", pytest.param("impossible", marks=pytest.mark.slow)]
)
def test_a_chain_that_breaks_stays_so(how):
    """Each chain by itself; before the fault, its draws are those of a kernel without faults."""
    kernel = Breaks(how)
    sweeps = sweeps_of(kernel, RANKINGS, num_draws=NUM_DRAWS)
    mcmc = run(kernel, chains=3, sweeps=sweeps)
    whole = draws_without_a_fault()
    z = mcmc.get_samples(group_by_chain=True)
    stopped = np.isnan(z["log_joint"])
    np.testing.assert_array_equal(stopped, np.isnan(mcmc._states["potential_energy"]))
    first = stopped.argmax(1)
    assert stopped[:, -1].all() and (first > 0).any() and len(set(first)) == 3
    np.testing.assert_array_equal(stopped, np.arange(NUM_DRAWS) >= first[:, None])
    # two programs, which may round differently
    np.testing.assert_allclose(z["weights"][~stopped], whole["weights"][~stopped], rtol=1e-3)
    mark = np.isposinf if how == "weights" else np.isnan
    assert mark(z["weights"][stopped]).all()

    what = r"site 'weights'" if how == "weights" else "the log joint"
    message = f"Breaks has stopped: {what} is not finite"
    with pytest.raises(NotFiniteError, match=message + r", in [\d.]+% of the draws"):
        to_inference_data(mcmc, RANKINGS)
    last = jax.tree.map(lambda x: x[0], mcmc.last_state)
    with pytest.raises(NotFiniteError, match=message + r"\."):
        mcmc.sampler.get_diagnostics_str(last)
    # to go on from there is no way out of it
    z = sweeps(mcmc.last_state)[1]["z"]
    assert np.isnan(z["log_joint"]).all() and mark(z["weights"]).all()


@pytest.mark.parametrize(
    ("kernel", "site"),
    [
        (PlackettLuceGibbs(), "weights"),
        (PlackettLuceGibbs(num_components=2), "weights"),
        (GammaProcessPlackettLuceGibbs(alpha=1.0, sigma=0.5), "total_weight"),
        (GammaProcessPlackettLuceGibbs(alpha=1.0), "unseen_weight"),
    ],
)
def test_a_start_value_of_0(kernel, site):
    """It is named, rather than the precision or the data."""
    start = np.array(kernel.init(random.key(0), 0, None, (RANKINGS,), {}).z[site])
    start[(..., 1) if start.ndim else ()] = 0.0
    place = ", first at .*1]" if start.ndim else ""
    message = rf"cannot start: .* is not finite, and init_params\['{site}'\] is 0{place}\. Give pos"
    with pytest.raises(NotFiniteError, match=message) as error:
        kernel.init(random.key(0), 0, {site: start}, (RANKINGS,), {})
    assert "precision" not in str(error.value)


class BreaksOfPoints(CollapsedGibbs):
    def _sweep(self, state, args, kwargs):
        state = super()._sweep(state, args, kwargs)
        potential = jnp.where(breaks(state), jnp.nan, state.potential_energy)
        return state._replace(potential_energy=potential)


def test_labels_are_marked_too():
    """Whole numbers are -1."""
    z = run(BreaksOfPoints(GaussianMean(1.0, 1.0), 1.0), np.arange(3.0)[:, None], seed=2)
    z = z.get_samples()
    stopped = np.isnan(z["log_joint"])
    assert stopped[-1] and not stopped[0]
    for name in ("assignments", "num_clusters"):
        assert (z[name][stopped] == -1).all() and (z[name][~stopped] >= 0).all()


@pytest.mark.slow
def test_a_prior_that_makes_concentrations_infinite():
    kernel = SliceGibbs(
        concentration_prior=dist.LogNormal(0.0, 60.0), max_clusters=4, num_marginal_steps=0
    )
    mcmc = run(kernel)
    z = mcmc.get_samples()
    stopped = np.isnan(z["log_joint"])
    assert stopped[-1]
    for name in ("assignments", "center", "cluster_sizes", "num_clusters"):
        assert (z[name][stopped] == -1).all() and (z[name][~stopped] >= 0).all()
    assert np.isposinf(z["concentration"][stopped]).all()
    with pytest.raises(NotFiniteError, match="SliceGibbs has stopped: site 'concentration'"):
        to_inference_data(mcmc, RANKINGS)


class NoNumbers(Family):
    """A family whose marginal is NaN for clusters of five, more than are tried at the start."""

    def statistics(self, data):
        return jnp.ones(len(data))

    def of_clusters(self, points, labels, num_clusters):
        return jnp.zeros(num_clusters).at[labels].add(points)

    def log_marginal(self, cluster):
        return jnp.where(cluster > 4, jnp.nan, 0.0)

    def check(self, data):
        pass


def test_a_start_that_is_no_number_is_refused():
    kernel = CollapsedGibbs(NoNumbers(), init="one")
    with pytest.raises(NotFiniteError, match="CollapsedGibbs has stopped: the log joint is not"):
        kernel.init(random.key(0), 0, None, (np.arange(5),), {})
    kernel.init(random.key(0), 0, None, (np.arange(2),), {})
    # traced, nothing can be raised: the state is marked
    init = jax.jit(lambda x: kernel.init(random.key(0), 0, None, (x,), {}))
    state = init(jnp.arange(5))
    assert np.isnan(state.potential_energy) and (state.z["assignments"] == -1).all()


def test_as_a_block():
    """All blocks of a chain go on, but this one has no more draws."""

    def model(rankings):
        numpyro.sample("other", dist.Normal(0.0, 1.0))
        plackett_luce(rankings)

    other = HMC(model, num_steps=1, adapt_step_size=False, adapt_mass_matrix=False)
    kernel = Gibbs([(Breaks("weights", model=model), ["weights"]), (other, None)])

    @jax.jit
    def chain(key):
        state = kernel.init(key, 0, None, (RANKINGS,), {})

        def sweep(state, _):
            state = kernel.sample(state, (RANKINGS,), {})
            return state, state.z["weights"]

        return jax.lax.scan(sweep, state, length=60)

    last, weights = chain(random.key(1))
    weights = np.asarray(weights)
    stopped = ~np.isfinite(weights[:, 0])
    assert stopped[-1] and not stopped[0] and (np.diff(stopped.astype(int)) >= 0).all()
    assert np.isposinf(weights[stopped]).all()
    assert np.isnan(last.block_states[0].potential_energy)
