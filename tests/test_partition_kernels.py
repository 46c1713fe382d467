"""Kernels of partitions: the posterior by enumeration, one registry through common tests."""

import pickle
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from enumeration import discrepancies, partitions
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs
from numpyro.infer.util import log_density
from scipy.special import gammaln

import numpyro_rankings.distributions as rd
from numpyro_rankings.components import (
    DirichletMultinomial,
    GaussianMean,
    NormalInverseWishart,
    SparseCounts,
)
from numpyro_rankings.infer import CollapsedGibbs, Cycle, PermutationGibbs, SplitMerge

GAMMA = dist.Gamma(3.0, 2.0)
LOG_NORMAL = dist.LogNormal(0.0, 0.5)
LINE = np.array([[-1.0], [-0.7], [0.2], [0.9], [1.1]])
PLANE = np.array([[-1.0, 0.3], [-0.7, 0.1], [0.2, -1.0], [0.9, 0.8], [1.1, 1.2]])
COUNTS = np.array([[2, 0, 1], [3, 1, 0], [0, 2, 2], [0, 3, 1], [1, 1, 1]])
WORDS = SparseCounts(
    np.array([[0, 2, -1], [0, 1, -1], [1, 2, -1], [1, 2, -1], [0, 1, 2]]),
    np.array([[2, 1, 0], [3, 1, 0], [2, 2, 0], [3, 1, 0], [1, 1, 1]]),
)
GAUSS = GaussianMean(prior_scale=1.5, noise_scale=0.6)
WISHART = NormalInverseWishart([0.0, 0.0], 0.5, 4.0, np.eye(2))
TEXT = DirichletMultinomial(0.7)
SPARSE_TEXT = DirichletMultinomial(0.7, vocabulary_size=3)

# name: constructor, data
KERNELS = {
    "collapsed": (lambda: CollapsedGibbs(GAUSS, GAMMA), LINE),
    "collapsed-discount": (lambda: CollapsedGibbs(WISHART, GAMMA, discount=0.4), PLANE),
    "collapsed-full": (lambda: CollapsedGibbs(TEXT, LOG_NORMAL, max_clusters=2), COUNTS),
    "collapsed-sparse": (
        lambda: CollapsedGibbs(SPARSE_TEXT, 1.3, max_clusters=6, init="singletons"),
        WORDS,
    ),
    "split-merge": (lambda: SplitMerge(GAUSS, GAMMA, num_moves=4, init="one"), LINE),
    "split-merge-full": (
        lambda: SplitMerge(TEXT, 0.9, num_moves=4, discount=0.3, max_clusters=3),
        COUNTS,
    ),
    "exact-uniform": (lambda: PermutationGibbs(GAUSS, GAMMA), LINE),
    "exact-markov": (
        lambda: PermutationGibbs(SPARSE_TEXT, 0.8, ordering="markov", discount=0.2, max_clusters=3),
        WORDS,
    ),
    "exact-projection": (lambda: PermutationGibbs(WISHART, 1.0, ordering="projection"), PLANE),
    "slope-uniform": (lambda: PermutationGibbs(GAUSS, GAMMA, exact=False, discount=0.2), LINE),
    "slope-markov": (
        lambda: PermutationGibbs(GAUSS, 1.2, ordering="markov", exact=False, max_clusters=3),
        LINE,
    ),
    "slope-projection": (
        lambda: PermutationGibbs(TEXT, 1.0, ordering="projection", exact=False),
        COUNTS,
    ),
    "beam-uniform": (lambda: PermutationGibbs(GAUSS, GAMMA, beam=2), LINE),
    "beam-markov": (lambda: PermutationGibbs(GAUSS, 1.0, ordering="markov", beam=1), LINE),
    "beam-projection": (lambda: PermutationGibbs(TEXT, 0.8, ordering="projection", beam=2), COUNTS),
    "cycle": (
        lambda: Cycle(
            [
                CollapsedGibbs(GAUSS, GAMMA),
                SplitMerge(GAUSS, GAMMA),
                PermutationGibbs(GAUSS, GAMMA, beam=2),
            ]
        ),
        LINE,
    ),
}
QUICK = ("collapsed", "split-merge", "beam-uniform")


def each_kernel(names=None):
    marks = {name: [] if name in QUICK else [pytest.mark.slow] for name in names or KERNELS}
    return pytest.mark.parametrize("name", [pytest.param(n, marks=m) for n, m in marks.items()])


@lru_cache
def fitted(name):
    kernel, data = KERNELS[name]
    mcmc = MCMC(
        kernel(),
        num_warmup=50,
        num_samples=250,
        num_chains=100,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(1), data)
    return mcmc


def log_restaurant(sizes, alpha, discount):
    """Log probability of a partition, one seat after the other, for each alpha."""
    total, log_prob = 0, 0.0
    for number, size in enumerate(sizes):
        for k in range(size):
            weight = alpha + number * discount if k == 0 else k - discount
            log_prob = log_prob + np.log(weight / (alpha + total))
            total += 1
    return log_prob


def log_marginals(family, data):
    """Of each set of points, by the family itself, whose tests are elsewhere."""
    points = family.statistics(data)
    size = len(jax.tree.leaves(points)[0])
    subsets = [[i for i in range(size) if code >> i & 1] for code in range(2**size)]
    found = {}
    for subset in subsets[1:]:
        labels = jnp.array([0 if i in subset else 1 for i in range(size)])
        cluster = family.of_clusters(points, labels, 2)
        found[tuple(subset)] = float(family.log_marginal(cluster)[0])
    return found


@lru_cache
def posterior(name):
    """Probability of each partition, and the mean of alpha: by enumeration and quadrature."""
    kernel, data = KERNELS[name]
    kernel = kernel()
    scores = log_marginals(kernel.family, data)
    grid, log_weight = np.array([1.0]), np.zeros(1)
    if isinstance(kernel._alpha, dist.Distribution):
        grid = np.exp(np.linspace(-12, 5, 2001))
        log_weight = np.asarray(kernel._alpha.log_prob(grid), float) + np.log(grid)
        log_weight -= np.logaddexp.reduce(log_weight)
    else:
        grid = np.array([kernel._alpha])
    table, logs, alphas = list(partitions(5)), [], []
    for labels in table:
        blocks = [tuple(np.flatnonzero(np.equal(labels, c))) for c in range(max(labels) + 1)]
        prior = log_restaurant([len(b) for b in blocks], grid, kernel._discount) + log_weight
        log_prior = np.logaddexp.reduce(prior)
        alphas.append(np.sum(np.exp(prior - log_prior) * grid))
        log_prob = log_prior + sum(scores[b] for b in blocks)
        logs.append(log_prob if len(blocks) <= kernel.num_slots else -np.inf)
    probs = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    return {"partition": probs, "alpha": np.array([probs @ np.array(alphas)])}


def codes(labels):
    return np.asarray(labels, int) @ (5 ** np.arange(5))


@each_kernel()
def test_posterior_by_enumeration(name):
    samples = fitted(name).get_samples(group_by_chain=True)
    table = np.array([codes(labels) for labels in partitions(5)])
    found = {
        "partition": codes(samples["assignments"])[..., None] == table,
        "alpha": np.asarray(samples["alpha"])[..., None],
    }
    gaps = discrepancies(found, posterior(name))
    # some 30 quantities with 99 degrees of freedom: P(any |t| > 6) is about 1e-6
    assert max(gaps.values()) < 6.0, gaps
    overflow = fitted(name).get_extra_fields()["overflow"]
    assert np.any(overflow) == (fitted(name).sampler.num_slots < 5)


@each_kernel()
def test_log_joint_is_the_density_of_the_model(name):
    mcmc, data = fitted(name), KERNELS[name][1]
    samples = mcmc.get_samples()
    potential = mcmc.get_extra_fields()["potential_energy"]
    np.testing.assert_allclose(samples["log_joint"], -potential, rtol=1e-6)
    labels = np.asarray(samples["assignments"], int)
    assert bool(rd.constraints.canonical_labels(labels[::100]).all())
    np.testing.assert_array_equal(samples["num_clusters"], labels.max(1) + 1)
    accept = np.asarray(mcmc.get_extra_fields()["accept_prob"])
    assert np.all((accept >= 0) & (accept <= 1 + 1e-6))
    for draw in np.linspace(0, len(potential) - 1, 4, dtype=int):
        z = {site: value[draw] for site, value in samples.items()}
        expected, _ = log_density(mcmc.sampler.model, (data,), {}, z)
        assert float(z["log_joint"]) == pytest.approx(float(expected), rel=1e-5, abs=1e-4)
    again = pickle.loads(pickle.dumps(mcmc))
    np.testing.assert_array_equal(again.get_samples()["alpha"], samples["alpha"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["split-merge-full", "slope-uniform", "slope-markov", "beam-markov"])
def test_detailed_balance(name):
    """From each partition, one sweep 20,000 times over: flows balance between any two of them."""
    kernel, data = KERNELS[name][0](), KERNELS[name][1]
    table = [labels for labels in partitions(5) if max(labels) < kernel.num_slots]
    probs = posterior_given_alpha(name, 1.1)
    starts = jnp.array(table)
    number = 20_000
    state = kernel.init(random.key(0), 0, {"alpha": 1.1}, (data,), {})

    @jax.jit
    def step(labels, key):
        start = state._replace(z=state.z | {"assignments": labels}, rng_key=key)
        return kernel.sample(start, (data,), {}).z["assignments"]

    keys = random.split(random.key(1), number)
    ends = jax.lax.map(lambda labels: jax.vmap(lambda key: step(labels, key))(keys), starts)
    index = {code: i for i, code in enumerate(codes(table))}
    flows = np.zeros((len(table), len(table)))
    for i, row in enumerate(codes(ends)):
        seen, counts = np.unique(row, return_counts=True)
        flows[i, [index[code] for code in seen]] = counts
    shares = flows / number
    flow = probs[:, None] * shares
    error = np.sqrt(probs[:, None] ** 2 * (shares + 1 / number) / number)
    error = np.hypot(error, error.T)
    z = np.abs(flow - flow.T) / error
    assert (shares > 0).sum() > 2 * len(table)
    assert z.max() < 6.0, z.max()


def posterior_given_alpha(name, alpha):
    kernel, data = KERNELS[name][0](), KERNELS[name][1]
    scores = log_marginals(kernel.family, data)
    logs = []
    for labels in partitions(5):
        if max(labels) < kernel.num_slots:
            blocks = [tuple(np.flatnonzero(np.equal(labels, c))) for c in range(max(labels) + 1)]
            log_prior = log_restaurant([len(b) for b in blocks], alpha, kernel._discount)
            logs.append(log_prior + sum(scores[b] for b in blocks))
    return np.exp(np.array(logs) - np.logaddexp.reduce(logs))
