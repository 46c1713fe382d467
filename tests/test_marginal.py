"""The steps with the labels integrated out, by themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from enumeration import MallowsPosterior, discrepancies
from scipy import stats

from numpyro_rankings import Rankings
from numpyro_rankings.infer import SliceGibbs
from numpyro_rankings.infer.assignments import PartitionPrior, canonical_order
from numpyro_rankings.infer.concentrations import Conjugate, PerStage, Tied
from numpyro_rankings.infer.marginal import draw_proposals, update_marginally
from numpyro_rankings.ops.codes import max_codes

RANKINGS = [[0, 1, 2], [0], [3, 1], [3, 2, 0, 1]]
GAMMA = dist.Gamma(2.0, 1.5)
CHAINS, DRAWS = 100, 300


def conjugate(theta, left):
    log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
    return -0.8 * (0.9 * theta + log_psi)


def gamma_prior(theta, left):
    return stats.gamma(2.0, scale=1 / 1.5).logpdf(theta)


CASES = {
    "process": (Conjugate(jnp.full(3, 0.8), jnp.full(3, 0.9)), conjugate, 1.3, None, False),
    "process, tied": (Tied(GAMMA), gamma_prior, 0.7, None, True),
    "finite": (PerStage(GAMMA), gamma_prior, 1.5, 3, False),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "process" else pytest.mark.slow) for n in CASES]
)
def test_posterior_by_enumeration(name):
    """No other update: splits, merges, shares and parameters alone, m = 1 or 2."""
    prior, log_prior, alpha, num_components, tied = CASES[name]
    rankings = Rankings.from_orderings(RANKINGS, num_items=4)
    data, limits = SliceGibbs()._data(rankings), max_codes(4, 3)
    slots = num_components or 9
    partition = PartitionPrior(jnp.float32(alpha), num_components)

    def draw(now, key):
        now = update_marginally(key, now, partition, prior, data, limits, 20, largest_minimum=2)
        labels, order = canonical_order(now["assignments"], slots)
        one = {n: now[n][order] for n in ("center", "concentration")} | {"assignments": labels}
        return now, {**one, "alpha": partition.alpha}

    def chain(key):
        key_start, key = jax.random.split(key)
        now = {
            "assignments": jnp.arange(4, dtype=jnp.int32) % min(slots, 4),
            "center": jnp.argsort(jax.random.uniform(key, (slots, 4))).astype(jnp.int32),
            "concentration": prior.draw(key_start, slots, limits),
        }
        now, _ = jax.lax.scan(draw, now, jax.random.split(key, 100))
        return jax.lax.scan(draw, now, jax.random.split(key_start, DRAWS))[1]

    samples = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), CHAINS))
    twin = MallowsPosterior(RANKINGS, 4, log_prior, tied)
    found = discrepancies(twin.indicators(samples), twin.expectations(alpha, num_components))
    # fewer than 50 quantities with 99 degrees of freedom: P(any |t| > 6) is about 2e-6
    assert max(found.values()) < 6.0, found


@pytest.mark.slow
def test_more_clusters_than_seats(monkeypatch):
    """The labels' own update leads to three and four clusters, where these moves end."""
    monkeypatch.setattr("numpyro_rankings.infer.marginal._MOST_CLUSTERS", 2)
    rankings = Rankings.from_orderings(RANKINGS, num_items=4)
    kernel = SliceGibbs(1.3, 0.8, 0.9, max_clusters=9, num_marginal_steps=20)

    def sweep(state, _):
        state = kernel.sample(state, (rankings,), {})
        return state, state.z

    @jax.vmap
    def chain(state):
        state, _ = jax.lax.scan(sweep, state, None, 50)
        return jax.lax.scan(sweep, state, None, 2 * DRAWS)[1]

    start = kernel.init(jax.random.split(jax.random.key(1), CHAINS), 0, None, (rankings,), {})
    samples = jax.jit(chain)(start)
    twin = MallowsPosterior(RANKINGS, 4, conjugate, False)
    found = discrepancies(twin.indicators(samples), twin.expectations(1.3, None))
    assert max(found.values()) < 6.0, found


def test_rearrangements_have_the_density_that_is_used():
    draws = draw_proposals(jax.random.key(0), 20_000, 3, 1, np.array([0]), False)
    orders = np.asarray(draws.rearrangement)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(3), (20_000, 1)))
    every = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    inversions = np.array([0, 1, 1, 2, 2, 3])
    dispersal = np.asarray(draws.dispersal, np.float64)[:, None]
    probs = np.exp(-dispersal * inversions - np.asarray(draws.log_constant)[:, None])
    np.testing.assert_allclose(probs.sum(1), 1.0, rtol=1e-5)
    found = (orders[:, None] == every).all(-1).mean(0)
    error = np.sqrt((probs * (1 - probs)).mean(0) / len(orders))
    assert np.all(np.abs(found - probs.mean(0)) < 5 * error)
