"""The distributions inside NumPyro models, under NumPyro's own inference."""

import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from helpers.densities import draw, log_density_at, log_prob
from jax import random
from numpyro.infer import (
    MCMC,
    NUTS,
    SVI,
    Predictive,
    Trace_ELBO,
    TraceEnum_ELBO,
    init_to_value,
    log_likelihood,
)
from numpyro.infer.autoguide import AutoDelta, AutoNormal
from numpyro.infer.util import log_density
from scipy import integrate
from scipy.special import logsumexp

import numpyro_rankings.distributions as rd

CENTER = np.array([1, 3, 0, 2, 4], np.int32)
THETA = np.array([1.5, 0.4], np.float32)


@pytest.fixture(scope="module")
def rankings():
    lists = np.asarray(draw(rd.GeneralizedMallows(CENTER, THETA), random.key(0), (60,)))
    return np.where(np.arange(60)[:, None] < 20, lists * [1, 0] - [0, 1], lists)


def model(rankings=None, size=60, batch=None):
    """θ of two stages, conjugate prior; a third of the rankings lists one item only."""
    prior = rd.MallowsConcentrationPrior(2.0, 1.0, num_items=5, num_stages=2)
    theta = numpyro.sample("theta", prior)
    with numpyro.plate("voters", size, subsample_size=batch) as index:
        seen = rankings if rankings is None or batch is None else jnp.asarray(rankings)[index]
        numpyro.sample("ranking", rd.GeneralizedMallows(CENTER, theta), obs=seen)


def posterior_moments(rankings):
    """Mean and standard deviation of each θ_j by quadrature, from the counts alone."""
    left = [CENTER.tolist() for _ in rankings]
    moments = []
    for stage in (0, 1):
        listed = [(i, x[stage]) for i, x in enumerate(rankings.tolist()) if x[stage] >= 0]
        total = sum(left[i].index(item) for i, item in listed)
        for i, item in listed:
            left[i].remove(item)
        codes = np.arange(5 - stage)

        def log_density(t, total=total, listed=listed, codes=codes):
            log_psi = math.log(np.exp(-codes * t).sum())
            return -t * (2.0 + total) - (2.0 + len(listed)) * log_psi

        grid = np.linspace(0, 8, 4001)
        log_p = np.array([log_density(t) for t in grid])
        p = np.exp(log_p - log_p.max())
        p /= integrate.simpson(p, x=grid)
        mean = integrate.simpson(p * grid, x=grid)
        moments.append((mean, math.sqrt(integrate.simpson(p * (grid - mean) ** 2, x=grid))))
    return np.array(moments).T


@pytest.fixture(scope="module")
def posterior(rankings):
    mcmc = MCMC(NUTS(model), num_warmup=300, num_samples=1000, progress_bar=False)
    mcmc.run(random.key(1), rankings)
    return mcmc.get_samples()


def test_nuts_agrees_with_quadrature(rankings, posterior):
    mean, sd = posterior_moments(rankings)
    theta = np.asarray(posterior["theta"])
    np.testing.assert_allclose(theta.mean(0), mean, atol=5 * sd.max() / 300**0.5)
    np.testing.assert_allclose(theta.std(0), sd, rtol=0.2)


def test_predictive_and_log_likelihood(rankings, posterior):
    prior = Predictive(model, num_samples=50)(random.key(2))
    assert prior["theta"].shape == (50, 2)
    assert prior["ranking"].shape == (50, 60, 2)
    replicated = Predictive(model, posterior)(random.key(3))["ranking"]
    assert replicated.shape == (1000, 60, 2)
    observed = (rankings[:, 0] == CENTER[0]).mean()
    assert abs((np.asarray(replicated)[..., 0] == CENTER[0]).mean() - observed) < 0.1
    pointwise = log_likelihood(model, posterior, rankings)["ranking"]
    assert pointwise.shape == (1000, 60)
    theta = np.asarray(posterior["theta"])[7]
    expected = log_prob(rd.GeneralizedMallows(CENTER, theta), rankings)
    np.testing.assert_allclose(np.asarray(pointwise)[7], expected, rtol=1e-4)


@pytest.mark.parametrize(
    "guide",
    [AutoNormal, pytest.param(AutoDelta, marks=pytest.mark.slow)],  # below, there is another one
)
def test_svi_with_optax(rankings, guide):
    start = init_to_value(values={"theta": jnp.ones(2)})
    guide = guide(model, init_loc_fn=start)
    svi = SVI(model, guide, optax.adam(0.05), Trace_ELBO())
    result = svi.run(random.key(4), 400, rankings, progress_bar=False)
    mean, sd = posterior_moments(rankings)
    estimate = guide.median(result.params)["theta"]
    assert (np.abs(estimate - mean) < 1.5 * sd).all()
    losses = np.asarray(result.losses)
    assert losses[-20:].mean() < losses[:20].mean()


def test_subsampling_is_unbiased(rankings):
    values = {"theta": jnp.asarray(THETA)}
    full = float(log_density_at(model, rankings)(values))

    def minibatch(key):
        seeded = numpyro.handlers.seed(model, key)
        return log_density(seeded, (rankings,), {"batch": 20}, values)[0]

    keys = random.split(random.key(5), 400)
    estimates = np.asarray(jax.jit(jax.vmap(minibatch))(keys), float)
    assert abs(estimates.mean() - full) < 5 * estimates.std() / 20


def test_masked_voters_do_not_count(rankings):
    def masked(mask):
        with numpyro.plate("voters", 60), numpyro.handlers.mask(mask=mask):
            numpyro.sample("ranking", rd.GeneralizedMallows(CENTER, THETA), obs=rankings)

    mask = np.arange(60) < 13
    total = log_density_at(masked, mask)({})
    expected = np.sum(log_prob(rd.GeneralizedMallows(CENTER, THETA), rankings)[:13])
    assert float(total) == pytest.approx(float(expected), rel=1e-5)


def enumerated_density(model, *args, values):
    """Log density with the discrete sites summed out."""
    from numpyro.contrib.funsor import config_enumerate, enum, log_density

    # one dimension is that of the voters, those to its left are for what is summed out
    seeded = enum(numpyro.handlers.seed(config_enumerate(model), random.key(0)), -2)
    return jax.jit(lambda values: log_density(seeded, args, {}, values)[0])(values)


CENTERS = np.stack([CENTER, CENTER[::-1]])


def mixture_model(rankings):
    """Labels summed out by NumPyro's enumeration."""
    weight = numpyro.sample("weight", dist.Beta(1.0, 1.0))
    theta = numpyro.sample("theta", dist.Exponential(1.0).expand((2,)).to_event(1))
    with numpyro.plate("voters", len(rankings)):
        c = numpyro.sample("c", dist.Bernoulli(weight), infer={"enumerate": "parallel"})
        models = rd.GeneralizedMallows.kendall(jnp.asarray(CENTERS)[c], theta[c], length=3)
        numpyro.sample("ranking", models, obs=rankings)


@lru_cache
def draw_mixture():
    parts = rd.GeneralizedMallows.kendall(CENTERS, np.array([1.5, 0.8], np.float32), length=3)
    lists = np.asarray(draw(parts, random.key(0), (60,)))
    return np.concatenate([lists[:, 0], lists[:40, 1]])


def test_enumerated_labels_are_the_marginal_mixture():
    rankings = draw_mixture()
    values = {"weight": jnp.float32(0.3), "theta": jnp.array([1.2, 0.7])}
    enumerated = enumerated_density(mixture_model, rankings, values=values)
    mixture = dist.MixtureSameFamily(
        dist.Categorical(probs=jnp.array([0.7, 0.3])),
        rd.GeneralizedMallows.kendall(CENTERS, values["theta"], length=3),
    )
    expected = np.sum(log_prob(mixture, rankings)) - 1.9
    assert float(enumerated) == pytest.approx(float(expected), rel=1e-5)


def test_svi_sums_out_the_labels():
    rankings = draw_mixture()
    hidden = numpyro.handlers.block(mixture_model, hide=["c"])
    start = init_to_value(values={"theta": jnp.ones(2), "weight": 0.5})
    guide = AutoDelta(hidden, init_loc_fn=start)
    svi = SVI(mixture_model, guide, optax.adam(0.05), TraceEnum_ELBO())
    result = svi.run(random.key(6), 300, rankings, progress_bar=False)
    estimate = guide.median(result.params)
    assert abs(float(estimate["weight"]) - 0.4) < 0.15
    np.testing.assert_allclose(estimate["theta"], [1.5, 0.8], atol=0.4)


@pytest.mark.slow
def test_nuts_sums_out_the_labels():
    rankings = draw_mixture()
    mcmc = MCMC(NUTS(mixture_model), num_warmup=300, num_samples=500, progress_bar=False)
    mcmc.run(random.key(7), rankings)
    samples = mcmc.get_samples()
    assert set(samples) == {"weight", "theta"}
    assert abs(float(samples["weight"].mean()) - 0.4) < 0.15
    np.testing.assert_allclose(samples["theta"].mean(0), [1.5, 0.8], atol=0.4)


def test_partition_prior_in_a_model():
    """Labels index what the clusters know, and Predictive draws them."""

    def clusters(size, values=None):
        concentration = numpyro.sample("concentration", dist.Gamma(2.0, 2.0))
        labels = numpyro.sample("labels", rd.ChineseRestaurantProcess(concentration, size))
        with numpyro.plate("cluster", size):
            mean = numpyro.sample("mean", dist.Normal(0.0, 3.0))
        with numpyro.plate("data", size):
            numpyro.sample("value", dist.Normal(mean[labels], 1.0), obs=values)

    drawn = Predictive(clusters, num_samples=20)(random.key(8), 7)
    assert drawn["labels"].shape == (20, 7)
    assert bool(rd.constraints.canonical_labels(drawn["labels"]).all())
    site = {name: value[0] for name, value in drawn.items() if name != "value"}
    assert np.isfinite(log_density_at(clusters, 7, drawn["value"][0])(site))


def test_permutation_by_enumerating_its_index():
    """The documented way to sum over orderings: a Categorical site indexes their list."""
    orderings = rd.all_permutations(3)
    lists = np.array([[2, 0], [2, 1], [0, 2]], np.int32)

    def over_centers(lists):
        index = numpyro.sample("index", dist.Categorical(probs=jnp.full(6, 1 / 6)))
        models = rd.GeneralizedMallows(orderings[index], THETA)
        with numpyro.plate("voters", len(lists)):
            numpyro.sample("ranking", models, obs=lists)

    total = enumerated_density(over_centers, lists, values={})
    models = rd.GeneralizedMallows(np.asarray(orderings)[:, None], THETA)
    each = np.asarray(log_prob(models, lists), float).sum(axis=1)
    expected = logsumexp(each) - math.log(6)
    assert float(total) == pytest.approx(float(expected), rel=1e-5)
