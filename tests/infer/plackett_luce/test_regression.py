"""Plackett–Luce weights that depend on covariates of the items: the posterior by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.chains import sampled
from helpers.compiled import assert_agrees
from helpers.kernel_tests import assert_log_joint_is_the_density
from helpers.refusals import assert_refused
from jax import random
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp, polygamma

import numpyro_rankings.distributions as rd
from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.infer import PlackettLuceGibbs, PlackettLuceRegressionGibbs
from numpyro_rankings.infer.plackett_luce.data import as_data
from numpyro_rankings.infer.plackett_luce.regression import (
    Worths,
    _move_with_weights,
    _update_weights,
)
from numpyro_rankings.self_check import compare_sweeps

LISTS, COUNTS = [[0, 1, 2], [1], [2, 0]], [3, 2, 1]
X = np.array([[1.2], [0.3], [-0.9]])
GAMMA = dist.Gamma(2.0, 0.5)
CHAINS, DRAWS = 200, 150


def table():
    return Rankings.from_orderings(LISTS, num_items=3, counts=COUNTS)


def log_likelihood(weights):
    """Of the table at each of many weights, (points, 3), one choice at a time."""
    total = 0.0
    for one, count in zip(LISTS, COUNTS, strict=True):
        left = [0, 1, 2]
        for item in one:
            total += count * np.log(weights[:, item] / weights[:, left].sum(1))
            left.remove(item)
    return total


def expectations(shapes, log_prior_of_shape, scale=1.0, log_likelihood=log_likelihood):
    """E of what :func:`indicators` returns, by a grid over β, a and the log ratios of weights."""
    axis = np.linspace(-9, 9, 73)
    ratios = np.stack([x.ravel() for x in np.meshgrid(axis, axis)] + [np.zeros(73**2)], 1)
    log_weights = ratios - logsumexp(ratios, axis=1, keepdims=True)
    weights = np.exp(log_weights)
    log_fit = log_likelihood(weights) + log_weights.sum(1)  # with the Jacobian of the log ratios
    total, sums = [], []
    for a, log_prior in zip(shapes, log_prior_of_shape, strict=True):
        for beta in np.linspace(-4 * scale, 4 * scale, 65):
            eta = beta * X[:, 0]
            # the density of normalised gamma variables with scales exp(η)
            log_p = gammaln(3 * a) - 3 * gammaln(a)
            log_p += (log_weights * (a - 1)).sum(1) - a * eta.sum()
            log_p -= 3 * a * logsumexp(log_weights - eta, axis=1)
            mass = np.exp(log_p + log_fit + stats.norm(0, scale).logpdf(beta) + log_prior)
            total.append(mass.sum())
            of_weights = [mass @ weights[:, 0], mass @ weights[:, 1], mass @ log_weights[:, 2]]
            known = [beta, beta**2, np.log(a), np.log(a) ** 2, beta * np.log(a)]
            sums.append([*of_weights, of_weights[0] * beta, *(k * total[-1] for k in known)])
    return np.sum(sums, axis=0) / np.sum(total)


def indicators(samples):
    """Quantities of each draw, (chains, draws, 9)."""
    w, beta = samples["weights"], samples["item_effects"][..., 0]
    log_a = np.log(samples["residual_shape"])
    of_weights = [w[..., 0], w[..., 1], np.log(w[..., 2]), w[..., 0] * beta]
    return np.stack([*of_weights, beta, beta**2, log_a, log_a**2, beta * log_a], -1)


def discrepancies(samples, expected):
    """Of each quantity how many standard errors its mean over independent chains is off."""
    by_chain = indicators(samples).mean(1)
    off = by_chain.mean(0) - expected
    error = by_chain.std(0, ddof=1) / np.sqrt(len(by_chain))
    return np.where(np.abs(off) < 1e-6, 0.0, off / np.maximum(error, 1e-12))


def draws_of(kernel, data, covariates=X, num_warmup=40, chains=CHAINS, draws=DRAWS):
    mcmc = sampled(
        kernel,
        data,
        covariates.astype(np.float32),
        key=random.key(3),
        num_warmup=num_warmup,
        num_samples=draws,
        num_chains=chains,
    )
    return mcmc, {k: np.asarray(x, float) for k, x in mcmc.get_samples(True).items()}


@pytest.mark.slow
def test_with_a_fixed_shape_it_is_the_quadrature():
    _, samples = draws_of(PlackettLuceRegressionGibbs(0.7, 1.5), table())
    assert np.all(samples["residual_shape"] == np.float32(0.7))
    found = discrepancies(samples, expectations([0.7], [0.0], 1.5))
    # 9 quantities with 199 degrees of freedom: P(any |t| > 5) is about 1e-5
    assert np.max(np.abs(found)) < 5.0, found


def grid_of_shapes():
    """Shapes a, evenly spaced on the log scale, and the log density of log a."""
    log_a = np.linspace(-4.5, 3.6, 28)
    return np.exp(log_a), stats.gamma(2.0, scale=2.0).logpdf(np.exp(log_a)) + log_a


@pytest.mark.slow
def test_with_a_learned_shape_it_is_the_quadrature():
    mcmc, samples = draws_of(PlackettLuceRegressionGibbs(GAMMA), table())
    found = discrepancies(samples, expectations(*grid_of_shapes()))
    assert np.max(np.abs(found)) < 5.0, found
    assert_log_joint_is_the_density(mcmc, table(), X)
    accept = mcmc.get_extra_fields()["accept_prob"]
    assert 0.7 < accept.mean() <= 1.0


@pytest.mark.slow
def test_partial_orders_are_the_quadrature():
    """Two judges tie the items that they like best, four name a winner of two."""
    buckets = [[["a", "b"], ["c"]]] * 2 + [[["a"], ["b"], ["c"]], [["c"], ["a", "b"]]]
    orders = PartialOrders.from_buckets(buckets, items=["a", "b", "c"])

    def log_fit(weights):
        a, b, c = weights.T
        last_is_c = a / (a + b + c) * b / (b + c) + b / (a + b + c) * a / (a + c)
        in_order = a / (a + b + c) * b / (b + c)
        return 2 * np.log(last_is_c) + np.log(in_order) + np.log(c / (a + b + c))

    _, samples = draws_of(PlackettLuceRegressionGibbs(1.3), orders)
    found = discrepancies(samples, expectations([1.3], [0.0], log_likelihood=log_fit))
    assert np.max(np.abs(found)) < 5.0, found


@pytest.mark.slow
def test_it_agrees_with_nuts():
    """Eight items, two covariates and choice sets; means and deviations of both samplers."""
    rng = np.random.default_rng(1)
    covariates = rng.normal(size=(8, 2)).astype(np.float32)
    offered = rng.random((12, 8)) < 0.7
    offered[:, :3] = True
    lists = [rng.permutation(np.flatnonzero(row))[:3].tolist() for row in offered]
    rankings = Rankings.from_orderings(lists, num_items=8, choice_sets=offered)
    kernel = PlackettLuceRegressionGibbs(GAMMA)
    _, ours = draws_of(kernel, rankings, covariates, chains=100)
    nuts = MCMC(
        NUTS(kernel.model),
        num_warmup=400,
        num_samples=1000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    nuts.run(random.key(5), rankings, covariates)
    theirs = {k: np.asarray(x) for k, x in nuts.get_samples(True).items()}
    for site in ("weights", "item_effects", "residual_shape"):
        for power in (1, 2):
            x, y = ours[site] ** power, theirs[site] ** power
            error = np.hypot(
                x.std((0, 1)) / np.sqrt(effective_sample_size(x)),
                y.std((0, 1)) / np.sqrt(effective_sample_size(y)),
            )
            off = (x.mean((0, 1)) - y.mean((0, 1))) / error
            assert np.max(np.abs(off)) < 5.0, (site, power, off)


@pytest.mark.slow
def test_a_constant_in_a_covariate_changes_nothing():
    kernel, data = PlackettLuceRegressionGibbs(GAMMA), table()
    states = [
        kernel.init(random.key(0), 0, {"item_effects": np.float32([-0.4])}, (data, x), {})
        for x in (X, X + 3.0)
    ]
    potential = [float(state.potential_energy) for state in states]
    assert potential[0] == pytest.approx(potential[1], abs=1e-4)
    assert float(states[0].z["item_effects"][0]) == pytest.approx(-0.4)


@pytest.mark.slow
def test_compiled_sweeps_are_the_plain_ones():
    kernel, forms = PlackettLuceRegressionGibbs(GAMMA), ("one chain", "vectorized", "data traced")
    data = table(), X.astype(np.float32)
    assert_agrees(compare_sweeps(kernel, data, 3, forms=forms, most_plain=2))


@pytest.mark.slow
def test_small_moves_of_large_samples_keep_their_digits():
    """A million rankings: β has a deviation of about a thousandth, and chains still move."""
    rankings = Rankings.from_orderings(LISTS, num_items=3, counts=[500_000, 300_000, 200_000])
    mcmc, samples = draws_of(PlackettLuceRegressionGibbs(2.0), rankings, chains=20)
    assert mcmc.get_extra_fields()["accept_prob"].mean() > 0.6
    log_weights = np.log(samples["weights"])
    assert np.all((log_weights - log_weights.mean(-1, keepdims=True)).std((0, 1)) < 3e-3)


def test_products_are_not_rounded_by_accelerators():
    kernel, data = PlackettLuceRegressionGibbs(GAMMA), (table(), X.astype(np.float32))
    state = kernel.init(random.key(0), 1, None, data, {})
    _, *products = str(jax.make_jaxpr(lambda s: kernel.sample(s, data, {}))(state)).split(
        "dot_general["
    )
    assert products
    assert all("HIGHEST" in product.split("]\n")[0][:400] for product in products)


def test_small_shapes_give_finite_weights():
    """The scale of the residuals, Gamma(n a, 1), is then far below the least float."""
    worths = Worths(jnp.log(jnp.array([0.5, 0.3, 0.2])), jnp.array([0.4]), jnp.array(1e-3))
    covariates = jnp.asarray(X - X.mean(0), jnp.float32)
    for key in random.split(random.key(0), 5):
        new, choices = _update_weights(key, worths, as_data(table()), covariates)
        assert np.all(np.isfinite(new.log_weights))
        moved, _ = _move_with_weights(key, new, choices, covariates, 1.0)
        assert np.all(np.isfinite(moved.log_weights))


def test_what_it_refuses():
    kernel, data = PlackettLuceRegressionGibbs(), table()

    def start(*args):
        kernel.init(random.key(0), 0, None, args, {})

    assert_refused(
        start,
        (r"must have shape \(3, p\), a row for each item, got \(2, 1\)", data, X[:2]),
        ("got \\(3,\\)", data, X[:, 0]),
        ("must be finite numbers", data, X * np.nan),
    )
    takes = r"mcmc.run\(key, rankings, item_covariates\)"
    assert_refused(start, (takes, data), (takes, data, X, X), error=TypeError)
    with pytest.raises(TypeError, match="of the items go to PlackettLuceRegressionGibbs"):
        PlackettLuceGibbs(num_components=2).init(random.key(0), 0, None, (data, X), {})
    assert_refused(
        lambda settings: PlackettLuceRegressionGibbs(**settings),
        ("shape must be a positive number or a distribution", {"shape": 0.0}),
        ("effect_scale must be a number", {"effect_scale": GAMMA}),
        ("effect_scale must be a positive number", {"effect_scale": -1.0}),
    )


def test_the_prior_of_the_weights_is_that_of_normalised_gamma_variables():
    a, eta = jnp.array([0.7, 1.2, 2.0]), jnp.array([0.5, -1.0, 0.1])
    prior = rd.ScaledDirichlet(a, eta)
    p = np.array([0.2, 0.5, 0.3])
    expected = gammaln(a.sum()) - gammaln(a).sum() + np.sum((a - 1) * np.log(p) - a * eta)
    expected -= a.sum() * np.log(np.sum(p * np.exp(-eta)))
    assert float(prior.log_prob(p)) == pytest.approx(float(expected), abs=1e-5)
    equal = rd.ScaledDirichlet(a, 0.3)
    assert float(equal.log_prob(p)) == pytest.approx(float(dist.Dirichlet(a).log_prob(p)), abs=1e-5)
    draws = np.log(np.asarray(prior.sample(random.key(0), (20_000,))))
    ratio = draws[:, 0] - draws[:, 1]
    mean = digamma(0.7) - digamma(1.2) + 1.5
    error = np.sqrt((polygamma(1, 0.7) + polygamma(1, 1.2)) / len(ratio))
    assert abs(ratio.mean() - mean) < 5 * error
