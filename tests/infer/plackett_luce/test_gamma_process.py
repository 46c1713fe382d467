"""The gamma process and its generalisation: density, draws, kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.densities import log_density_at
from helpers.enumeration import discrepancies
from helpers.kernel_tests import run_chains
from helpers.lists import log_prob_twin, simplex
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs
from scipy import integrate, stats
from scipy.special import gammaln

import numpyro_rankings.distributions as rd
from numpyro_rankings import Rankings, predict_items
from numpyro_rankings.infer import GammaProcessPlackettLuceGibbs
from numpyro_rankings.models import gamma_process_plackett_luce
from numpyro_rankings.ops.random_measures import log_gamma_process
from numpyro_rankings.ops.stable import log_stable_density, sample_tilted_stable

# -- stable variables ----------------------------------------------------------------------------

stable_density = jax.jit(log_stable_density)


def test_stable_density():
    """Levy's closed form for 1/2, and the Laplace transform of any."""
    log_x = np.linspace(-4, 8, 25, dtype=np.float32)
    levy = -np.log(2 * np.sqrt(np.pi)) - 1.5 * log_x - 0.25 * np.exp(-log_x)
    np.testing.assert_allclose(stable_density(log_x, 0.5), levy, atol=2e-5)
    for sigma in (0.2, 0.7, 0.95):
        log_x = np.linspace(-12, 60 / sigma, 5000, dtype=np.float32)
        density = np.exp(np.asarray(stable_density(log_x, sigma), float) + log_x)
        step = (log_x[-1] - log_x[0]) / (len(log_x) - 1)
        for s in (0.0, 0.1, 1.0, 5.0):
            tilt = np.exp(-s * np.exp(np.minimum(log_x.astype(float), 700.0)))
            assert np.nansum(density * tilt) * step == pytest.approx(np.exp(-(s**sigma)), abs=2e-4)


@jax.jit
def tilted_draws(key, sigma, log_tilt):
    one = lambda key: sample_tilted_stable(key, sigma, log_tilt)  # noqa: E731
    return jax.vmap(one)(random.split(key, 20_000))


# with and without many attempts at each draw
FEW = [(0.1, 0.01), (0.3, 0.01), (0.5, 0.5), (0.5, 50.0), (0.9, 1e3), (0.5, 1e5)]
MANY = [(0.1, 3.0), (0.7, 3.0)]


@pytest.mark.parametrize(
    "cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_tilted_stable_draws(cases):
    """Against the cumulated density; λ^σ is the mean of λx divided by σ."""
    for i, (sigma, power) in enumerate(cases):
        log_tilt = np.log(power) / sigma
        found = np.asarray(tilted_draws(random.key(i), sigma, log_tilt), float)
        margin = 6 * found.std()
        grid = np.linspace(found.min() - margin, found.max() + margin, 5000)
        height = np.asarray(stable_density(grid.astype(np.float32), sigma), float) + grid
        height -= np.exp(np.minimum(log_tilt + grid, 60.0))
        density = np.exp(np.where(np.isnan(height), -np.inf, height) - np.nanmax(height))
        mass = integrate.cumulative_trapezoid(density, initial=0.0)
        p_value = stats.kstest(found, lambda x: np.interp(x, grid, mass / mass[-1])).pvalue  # noqa: B023
        assert p_value > 1e-5, (sigma, power)


def test_density_of_the_process():
    """With σ = 0 by a Dirichlet density; with σ = 1/2 the unseen mass is inverse Gaussian."""
    weights, unseen, total, alpha, tau = np.array([0.2, 0.0, 0.5], np.float32), 0.3, 1.7, 1.4, 0.8

    @jax.jit
    def densities(weights, unseen, total, alpha):
        return (
            log_gamma_process(weights, unseen, None, alpha, tau, 0.0),
            log_gamma_process(weights, unseen, total, alpha, tau, 0.5),
        )

    of_gamma, of_half = densities(weights, *np.array([unseen, total, alpha], np.float32))
    # an item of weight 0 has no atom; times the powers 3 and 1 it is Dirichlet(3, 1, α)
    atoms, powers = np.array([0.2, 0.5]), np.array([3.0, 1.0])
    shape = np.append(powers, alpha)
    dirichlet = stats.dirichlet(shape).logpdf([*atoms, unseen])
    dirichlet += gammaln(shape).sum() - gammaln(shape.sum())
    expected = 2 * np.log(alpha) + dirichlet - powers @ np.log(atoms)
    assert of_gamma == pytest.approx(expected, abs=1e-5)  # float32

    w, mean, scale = atoms * total, alpha / np.sqrt(tau), 2 * alpha**2
    levy = np.log(alpha) - gammaln(0.5) - 1.5 * np.log(w) - tau * w
    rest = stats.invgauss(mean / scale, scale=scale).logpdf(unseen * total)
    # the Jacobian of three masses in two shares and the total; the stable density is to 2e-5
    expected = levy.sum() + rest + 2 * np.log(total)
    assert of_half == pytest.approx(expected, abs=1e-4)


# -- the kernel ----------------------------------------------------------------------------------

LISTS, COUNTS = [[3, 1], [3], [1, 3]], [2, 3, 1]  # of six items, of which these two are seen


def table():
    return Rankings.from_orderings(LISTS, num_items=6, counts=COUNTS)


def run(kernel, rankings, draws=300, seed=0):
    mcmc = MCMC(
        kernel,
        num_warmup=30,
        num_samples=draws,
        num_chains=100,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(seed), rankings)
    return mcmc


def indicators(samples):
    weights, unseen = np.asarray(samples["weights"], float), np.asarray(samples["unseen_weight"])
    shares = np.concatenate([weights, unseen[..., None]], axis=-1)
    return {"mean": shares, "square": shares**2, "alpha": np.asarray(samples["alpha"])[..., None]}


def gamma_process_expectations(alphas, prior):
    """By quadrature on the simplex of (p_1, p_3, p_*), for every α."""
    lists = [[0 if item == 1 else 1 for item in ranking] for ranking in LISTS]
    chosen = np.array([3.0, 6.0])
    joint, mean, square = [], [], []
    for alpha in alphas:
        shape = np.array([*chosen, alpha])
        points, weights = simplex(shape)
        log_likelihood = [
            sum(c * log_prob_twin(r, p[:2], p[2]) for r, c in zip(lists, COUNTS, strict=True))
            - chosen @ np.log(p[:2])
            for p in points
        ]
        here = weights * np.exp(log_likelihood)
        constant = gammaln(shape).sum() - gammaln(shape.sum()) + 2 * np.log(alpha)
        joint.append(here.sum() * np.exp(constant))
        mean.append(here @ points / here.sum())
        square.append(here @ points**2 / here.sum())
    weight = np.array(joint) * prior
    weight /= weight.sum()
    return {
        "mean": weight @ np.array(mean),
        "square": weight @ np.array(square),
        "alpha": np.array([weight @ alphas]),
    }


@pytest.mark.slow
def test_gamma_process_by_quadrature():
    alphas = np.exp(np.linspace(-6, 3, 60))
    prior = alphas**2 * np.exp(-1.5 * alphas)  # Gamma(2, 1.5), in log α
    mcmc = run(GammaProcessPlackettLuceGibbs(dist.Gamma(2.0, 1.5), tau=3.0), table())
    samples = mcmc.get_samples(group_by_chain=True)
    expected = gamma_process_expectations(alphas, prior)
    z = discrepancies(indicators(samples), expected)
    assert max(z.values()) < 6.0, z
    fixed = run(GammaProcessPlackettLuceGibbs(0.7), table())
    z = discrepancies(
        indicators(fixed.get_samples(group_by_chain=True)),
        gamma_process_expectations(np.array([0.7]), np.ones(1)),
    )
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
def test_generalised_gamma_process_by_quadrature():
    """Lists of two places, the inverse Gaussian process: an integral over (w_1, w_2, w_*)."""
    alpha, tau, sigma = 1.3, 0.8, 0.5
    lists, counts = [[0, 1], [1], [1, 0]], [1, 2, 1]
    log_w = np.linspace(-28.0, 5.0, 100)
    w = np.exp(log_w)
    one, two, rest = np.meshgrid(w, w, w, indexing="ij")
    # w_* is inverse Gaussian with mean α τ^-1/2 and shape 2 α²
    mean, shape = alpha / np.sqrt(tau), 2 * alpha**2
    joint = np.sqrt(shape / (2 * np.pi * rest**3)) * rest
    joint *= np.exp(-shape * (rest - mean) ** 2 / (2 * mean**2 * rest))
    for atom in (one, two):
        joint *= atom ** (-sigma) * np.exp(-tau * atom)  # λ(w), in log w
    total = one + two + rest
    for ranking, count in zip(lists, counts, strict=True):
        left = total.copy()
        for item in ranking:
            chosen = (one, two)[item]
            joint *= (chosen / left) ** count
            left -= chosen
    joint /= joint.sum()
    shares = np.stack([one, two, rest], axis=-1) / total[..., None]
    expected = {
        "mean": np.einsum("ijk,ijkm->m", joint, shares),
        "square": np.einsum("ijk,ijkm->m", joint, shares**2),
    }
    rankings = Rankings.from_orderings(lists, num_items=2, counts=counts)
    mcmc = run(GammaProcessPlackettLuceGibbs(alpha, tau, sigma), rankings)
    z = discrepancies(indicators(mcmc.get_samples(group_by_chain=True)), expected)
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.001, 0.02, 0.2, 0.75])
def test_lists_of_length_one(sigma):
    """The marginal of Theorem 1', an integral over the sum U of the waiting times, and α."""
    counts, tau, size = np.array([4.0, 1.0, 1.0]), 1.0, 6.0
    alphas = np.exp(np.linspace(-7, 3.5, 400))[:, None]
    u = np.exp(np.linspace(-14, min(16 / sigma, 600), 4000))[None]
    log_joint = 2.0 * np.log(alphas) - 1.5 * alphas + len(counts) * np.log(alphas)
    log_joint = log_joint - alphas / sigma * ((tau + u) ** sigma - tau**sigma)
    log_joint = log_joint + size * np.log(u) - (size - len(counts) * sigma) * np.log(tau + u)
    joint = np.exp(log_joint - log_joint.max())
    joint /= joint.sum()
    # the chance of each item in another list
    seen = [(joint * u * (n - sigma) / (tau + u)).sum() / size for n in counts]
    unseen = (joint * u * alphas * (tau + u) ** (sigma - 1.0)).sum() / size
    assert sum(seen) + unseen == pytest.approx(1.0, abs=1e-4)
    rankings = Rankings.from_orderings([[0], [1], [2]], num_items=3, counts=[4, 1, 1])
    kernel = GammaProcessPlackettLuceGibbs(dist.Gamma(2.0, 1.5), tau, sigma)
    mcmc = run(kernel, rankings, 800)
    found = indicators(mcmc.get_samples(group_by_chain=True))
    expected = {"mean": np.array([*seen, unseen]), "alpha": np.array([(joint * alphas).sum()])}
    # of two more lists: that the first is of a new item, and that there are two new ones
    both = joint * (u / (tau + u)) ** 2 / (size * (size + 1.0))
    two = (both * alphas**2 * (tau + u) ** (2.0 * sigma)).sum()
    few = {name: np.asarray(value)[:, ::20] for name, value in mcmc.get_samples(True).items()}
    new = predict_items(random.key(1), few, 2, 1, tau=tau, sigma=sigma).new.reshape(100, -1, 2)
    found["new"] = np.stack([new[..., 0] == 1, new[..., 1] == 2], axis=-1).astype(float)
    expected["new"] = np.array([unseen, two])
    z = discrepancies(found, expected)
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
def test_other_priors_of_alpha():
    """A Gamma prior that the kernel does not know for one, hence drawn by slice sampling."""
    alphas = np.exp(np.linspace(-6, 3, 60))
    prior = alphas**2 * np.exp(-1.5 * alphas)
    hidden = dist.TransformedDistribution(
        dist.Gamma(2.0, 1.5),
        dist.transforms.AffineTransform(0.0, 1.0, domain=dist.constraints.positive),
    )
    mcmc = run(GammaProcessPlackettLuceGibbs(hidden), table())
    z = discrepancies(
        indicators(mcmc.get_samples(group_by_chain=True)), gamma_process_expectations(alphas, prior)
    )
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
def test_block_of_gibbs_by_quadrature():
    """α from NUTS."""

    def model(rankings):
        alpha = numpyro.sample("alpha", dist.Gamma(2.0, 1.5))
        gamma_process_plackett_luce(rankings, alpha=alpha)

    sites = ["weights", "unseen_weight"]
    kernel = Gibbs([(GammaProcessPlackettLuceGibbs(model=model), sites), (NUTS(model), ["alpha"])])
    mcmc = MCMC(
        kernel,
        num_warmup=100,
        num_samples=500,
        num_chains=24,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(0), table())
    alphas = np.exp(np.linspace(-6, 3, 60))
    expected = gamma_process_expectations(alphas, alphas**2 * np.exp(-1.5 * alphas))
    z = discrepancies(indicators(mcmc.get_samples(group_by_chain=True)), expected)
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_items_that_are_not_listed(sigma):
    """They have no weight of their own; under jit the user has to say so."""
    kernel = GammaProcessPlackettLuceGibbs(dist.Gamma(2.0, 1.5), sigma=sigma)
    settings = {"num_warmup": 2, "num_samples": 6, "progress_bar": False}
    mcmc = MCMC(kernel, **settings)
    mcmc.run(random.key(0), table())
    samples = mcmc.get_samples()
    assert samples["weights"].shape == (6, 2)
    total = samples["weights"].sum(1) + samples["unseen_weight"]
    np.testing.assert_allclose(total, 1.0, atol=1e-6)
    log_density = log_density_at(kernel.model, table())
    for draw in range(6):
        z = {site: value[draw] for site, value in samples.items()}
        expected = log_density(z)
        assert float(z["log_joint"]) == pytest.approx(float(expected), rel=1e-4)
    jitted = MCMC(kernel, jit_model_args=True, **settings)
    with pytest.raises(ValueError, match="of_listed_items"):
        jitted.run(random.key(0), table())
    jitted.run(random.key(0), table().of_listed_items())
    for site, value in jitted.get_samples().items():
        np.testing.assert_allclose(value, samples[site], rtol=1e-3, err_msg=site)


def test_bad_input():
    for settings, message in (
        ({"alpha": -1.0}, "alpha must be a positive number"),
        ({"tau": 0.0}, "tau must be a positive number"),
        ({"tau": dist.Gamma(1.0, 1.0)}, "tau must be a number"),
        ({"sigma": 1.0}, "sigma must be at least 0 and less than 1"),
        ({"sigma": "half"}, "sigma must be"),
        ({"sigma": 1e-5}, "sigma must be 0, or at least 0.001"),
    ):
        with pytest.raises(ValueError, match=message):
            GammaProcessPlackettLuceGibbs(**settings)
    subsets = Rankings.from_orderings([[0], [1]], num_items=2, choice_sets=np.ones((2, 2), bool))
    with pytest.raises(ValueError, match="choice sets"):
        GammaProcessPlackettLuceGibbs().init(random.key(0), 0, None, (subsets,), {})


def test_rankings_of_listed_items():
    rankings = table()
    listed = rankings.of_listed_items()
    assert listed.items == ("item 2", "item 4")
    assert listed.orderings.tolist() == [[1, 0], [1, -1], [0, 1]]
    assert (len(listed), listed.counts.tolist()) == (6, COUNTS)
    assert listed.of_listed_items() is listed
    assert jax.jit(lambda r: r.of_listed_items())(rankings).num_items == 6
    offered = jnp.ones((3, 6), bool).at[1, 1].set(False)
    subsets = Rankings.from_orderings(LISTS, num_items=6, choice_sets=offered)
    assert subsets.of_listed_items().choice_sets.tolist() == [[1, 1], [0, 1], [1, 1]]


@pytest.mark.slow
def test_flat_prior():
    """p(α) ∝ 1/α is the limit of Gamma(ε, ε): its draws, its density, its start."""
    flat = rd.FlatLog()
    np.testing.assert_allclose(flat.log_prob(jnp.array([0.5, 2.0])), np.log([2.0, 0.5]), rtol=1e-6)
    rankings = Rankings.from_orderings([[0, 1], [2], [1, 0]], num_items=3, counts=[3, 2, 1])
    means = []
    for prior in (flat, dist.Gamma(1e-4, 1e-4)):
        kernel = GammaProcessPlackettLuceGibbs(prior)
        mcmc = run_chains(kernel, rankings, seed=0, num_warmup=100, num_samples=400, num_chains=50)
        samples = mcmc.get_samples(group_by_chain=True)
        means.append(np.log(np.asarray(samples["alpha"])).mean(1))
    error = np.hypot(*(x.std() / 50**0.5 for x in means))
    assert abs(means[0].mean() - means[1].mean()) < 5 * error
    z = {name: value[0, -1] for name, value in samples.items()}
    kernel = GammaProcessPlackettLuceGibbs(flat)
    log_joint = log_density_at(kernel.model, rankings)(z)
    state = kernel.init(random.key(0), 0, z, (rankings,), {})
    assert float(state.z["log_joint"]) == pytest.approx(float(log_joint), rel=1e-4)
