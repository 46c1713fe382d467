"""Kernels of partitions: the posterior by enumeration, one registry through common tests."""

import pickle
from functools import lru_cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers.chains import sampled
from helpers.densities import log_density_at
from helpers.enumeration import discrepancies, partitions
from helpers.exact_partitions import log_marginals, log_restaurant
from helpers.kernel_tests import (
    assert_chain_methods_agree,
    assert_log_joint_is_the_density,
    assert_resumed_run_is_the_long_one,
    each_of,
    run_chains,
)
from helpers.partition_kernels import (
    ATOM,
    GAMMA,
    GAUSS,
    KERNELS,
    LINE,
    LISTS,
    TEXT,
    WEIGHTS,
    WISHART,
)
from helpers.refusals import assert_refused
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs
from scipy.special import gammaln
from scipy.stats import binom, multivariate_normal, multivariate_t

import numpyro_rankings.distributions as rd
from numpyro_rankings import log_predictive_of_points
from numpyro_rankings.components import Family, GaussianMean, NormalInverseWishart
from numpyro_rankings.components.points import as_points
from numpyro_rankings.infer import CollapsedGibbs, Cycle, PermutationGibbs, SplitMerge
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import Given
from numpyro_rankings.infer.partition.batches import random_batches
from numpyro_rankings.infer.partition.collapsed import update_labels_in_turn
from numpyro_rankings.infer.partition.permutation import log_number
from numpyro_rankings.infer.partition.segments import (
    Ordering,
    as_sequence,
    draw_by_slope,
    draw_exactly,
)

each_kernel = each_of(KERNELS, quick=("collapsed",))
# the start of the quick one is tested in test_starts, and takes as long to compile as a sweep
STARTS = {"collapsed": [0, 0, 0, 1, 2]}


@lru_cache
def fitted(name):
    kernel, data = KERNELS[name]
    settings = {"num_warmup": 50, "num_samples": 250, "num_chains": 100}
    if name in STARTS:
        settings["init_params"] = {"assignments": np.tile(STARTS[name], (100, 1))}
    return sampled(kernel(), data, key=random.key(1), **settings)


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


@each_kernel
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


@each_kernel
def test_log_joint_is_the_density_of_the_model(name):
    mcmc, data = fitted(name), KERNELS[name][1]
    assert_log_joint_is_the_density(mcmc, data)
    samples = mcmc.get_samples()
    labels = np.asarray(samples["assignments"], int)
    assert bool(rd.constraints.canonical_labels(labels[::100]).all())
    np.testing.assert_array_equal(samples["num_clusters"], labels.max(1) + 1)
    accept = np.asarray(mcmc.get_extra_fields()["accept_prob"])
    assert np.all((accept >= 0) & (accept <= 1 + 1e-6))
    again = pickle.loads(pickle.dumps(mcmc))
    np.testing.assert_array_equal(again.get_samples()["alpha"], samples["alpha"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["batches-full", "split-merge-full", "slope-uniform", "slope-markov", "beam-markov"]
)
def test_detailed_balance(name):
    """From each partition, one sweep 20,000 times over: flows balance between any two of them."""
    kernel, data = KERNELS[name][0](), KERNELS[name][1]
    table = [labels for labels in partitions(5) if max(labels) < kernel.num_slots]
    starts = jnp.array(table)
    number = 20_000
    state = kernel.init(random.key(0), 0, {"alpha": 1.1}, (data,), {})
    probs = posterior_given_alpha(name, float(state.z["alpha"]))  # a fixed one stays

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
    assert (flows > 0).sum() > 2 * len(table)
    # given how often a pair was crossed at all, the share of one direction is known
    crossed = flows + flows.T
    expected = probs / (probs[:, None] + probs)
    tails = binom.cdf(flows, crossed, expected)  # of both sides: [i, j] and [j, i]
    assert tails.min() > 1e-8, tails.min()  # of some 2,000


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


# -- Neal's nine points ---------------------------------------------------------------------------

NEAL = np.array([-1.48, -1.40, -1.16, -1.08, -1.02, 0.14, 0.51, 0.53, 0.78])[:, None]


@pytest.mark.slow
def test_nine_points_by_all_partitions():
    """Neal (2000): the number of clusters, and which points share one, over 21,147 partitions."""
    family = GaussianMean(prior_scale=1.0, noise_scale=0.1)
    scores = log_marginals(family, NEAL)
    log_total, number, together = -np.inf, 0.0, np.zeros((9, 9))
    logs, tables = [], []
    for labels in partitions(9):
        labels = np.array(labels)
        sizes = np.bincount(labels)
        blocks = [tuple(np.flatnonzero(labels == c)) for c in range(len(sizes))]
        log_prior = gammaln(sizes).sum() - gammaln(10.0)  # alpha = 1
        logs.append(log_prior + sum(scores[b] for b in blocks))
        tables.append(labels)
    assert len(logs) == 21147
    log_total = np.logaddexp.reduce(logs)
    probs = np.exp(np.array(logs) - log_total)
    tables = np.array(tables)
    number = probs @ (tables.max(1) + 1.0)
    together = np.einsum(
        "p,pi,pij->ij", probs, np.ones(tables.shape), tables[:, :, None] == tables[:, None]
    )
    kernel = Cycle([CollapsedGibbs(family), SplitMerge(family), PermutationGibbs(family)])
    mcmc = MCMC(
        kernel,
        num_warmup=50,
        num_samples=250,
        num_chains=100,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(2), NEAL)
    samples = mcmc.get_samples(group_by_chain=True)
    labels = np.asarray(samples["assignments"], int)
    pairs = np.triu_indices(9, 1)
    found = {
        "number": np.asarray(samples["num_clusters"])[..., None],
        "together": labels[..., pairs[0]] == labels[..., pairs[1]],
    }
    gaps = discrepancies(found, {"number": np.array([number]), "together": together[pairs]})
    assert max(gaps.values()) < 6.0, gaps
    # the evidence: log p(x) = log p(x, C) - log p(C | x), of the most frequent partition
    best = int(np.argmax(probs))
    share = (labels == tables[best]).all(-1).mean(1)
    z = {"assignments": jnp.array(tables[best])}
    log_joint = log_density_at(kernel.model, NEAL)(z)
    error = share.std(ddof=1) / 10 / share.mean()
    assert abs(float(log_joint) - np.log(share.mean()) - log_total) < 6 * error


# -- blocks, chains, starts -----------------------------------------------------------------------


def block_model(data, family, slots=6, finite=False):
    alpha = numpyro.sample("mass", GAMMA)
    points = family.statistics(data)
    prior = rd.ChineseRestaurantProcess(alpha, len(data), max_clusters=slots)
    if finite:
        prior = rd.FiniteDirichletPartition(alpha, 3, len(data))
    labels = numpyro.sample("z", prior)
    clusters = family.of_clusters(points, labels, slots)
    numpyro.factor("likelihood", family.log_marginal(clusters).sum())


@pytest.mark.slow
def test_block_of_gibbs():
    """α by NUTS, the partition by the kernels: the posterior of the kernel by itself."""

    def model(data):
        block_model(data, GAUSS)

    settings = {"max_clusters": 6, "model": model, "sites": {"assignments": "z"}}
    kernels = [CollapsedGibbs(GAUSS, **settings), PermutationGibbs(GAUSS, **settings)]
    kernel = Gibbs([(Cycle(kernels), ["z"]), (NUTS(model), None)])
    mcmc = MCMC(
        kernel,
        num_warmup=100,
        num_samples=250,
        num_chains=60,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(3), LINE)
    samples = mcmc.get_samples(group_by_chain=True)
    assert set(samples) == {"mass", "z"}
    table = np.array([codes(labels) for labels in partitions(5)])
    found = {
        "partition": codes(samples["z"])[..., None] == table,
        "alpha": np.asarray(samples["mass"])[..., None],
    }
    gaps = discrepancies(found, posterior("collapsed"))
    assert max(gaps.values()) < 6.0, gaps


def test_times_of_choices_belong_to_the_kernel():
    with pytest.raises(ValueError, match="PlackettLuceWeights has auxiliary variables"):
        CollapsedGibbs(WEIGHTS, model=block_model)
    samples = {"assignments": np.zeros((1, 5), int), "alpha": np.ones(1)}
    with pytest.raises(ValueError, match="with assignments, alpha, times"):
        log_predictive_of_points(CollapsedGibbs(WEIGHTS), samples, LISTS, LISTS)
    state = CollapsedGibbs(WEIGHTS, init="one").init(
        random.key(0), 0, {"times": np.full((5, 2), 0.5, np.float32)}, (LISTS,), {}
    )
    np.testing.assert_array_equal(state.z["times"], np.full((5, 2), 0.5))
    with pytest.raises(ValueError, match=r"init_params\['times'\] must have shape \(5, 2\)"):
        CollapsedGibbs(WEIGHTS).init(random.key(0), 0, {"times": np.ones((5, 3))}, (LISTS,), {})


def test_bad_blocks():
    def run(sites, slots=6, finite=False):
        def model(data):
            block_model(data, GAUSS, finite=finite)

        kernel = CollapsedGibbs(GAUSS, model=model, sites=sites, max_clusters=slots)
        whole = Gibbs([(kernel, list(sites.values())), (NUTS(model), None)])
        # a trace: the model is refused for what it is
        jax.eval_shape(lambda key: whole.init(key, 0, None, (LINE,), {}), random.key(0))

    def model(data):
        block_model(data, GAUSS)

    kernel = CollapsedGibbs(GAUSS, model=model, sites={"assignments": "z"}, max_clusters=6)
    with pytest.raises(ValueError, match=r"block of numpyro\.infer\.Gibbs"):
        kernel.init(random.key(0), 0, None, (LINE,), {})
    with pytest.raises(ValueError, match="max_clusters=6, the kernel 64"):
        run({"assignments": "z"}, 64)
    with pytest.raises(ValueError, match="must have a ChineseRestaurantProcess"):
        run({"assignments": "z"}, finite=True)
    with pytest.raises(ValueError, match="sites can name"):
        run({"labels": "z"})
    Cycle(
        [
            CollapsedGibbs(WISHART, GAMMA),
            SplitMerge(NormalInverseWishart([0.0, 0.0], 0.5, 4.0, np.eye(2)), dist.Gamma(3.0, 2.0)),
        ]
    )
    for alpha in (dist.Gamma(3.0, 2.1), dist.LogNormal(0.0, 0.5), 1.0):
        with pytest.raises(ValueError, match="must have the same alpha"):
            Cycle([CollapsedGibbs(GAUSS, GAMMA), SplitMerge(GAUSS, alpha)])
    with pytest.raises(ValueError, match="must have the same family"):
        Cycle([CollapsedGibbs(GAUSS), SplitMerge(GaussianMean(1.5, 0.7))])
    other = CollapsedGibbs(GAUSS, max_clusters=6)
    with pytest.raises(ValueError, match="must have the same"):
        Cycle([kernel, other])


def test_blocks_of_draws_are_one_at_a_time(monkeypatch):
    """Collapsed Gibbs draws many points at once: the draws are those of a sweep one by one."""
    from numpyro_rankings.infer.partition import collapsed

    data = np.random.default_rng(0).normal(size=(100, 1)) * 2
    draws = []
    for blocks in ((1, 1), (2, 8)):
        monkeypatch.setattr(collapsed, "_BLOCKS", blocks)
        kernel = CollapsedGibbs(GAUSS, 2.0, max_clusters=20, init="one")
        # three draws, for later a rounding may tell
        mcmc = sampled(kernel, data, key=random.key(4), num_samples=3, num_chains=1)
        draws.append(np.asarray(mcmc.get_samples()["assignments"], int))
    assert len(np.unique(draws[0], axis=0)) == 3
    np.testing.assert_array_equal(*draws)


def test_sweep_is_that_of_a_plain_loop():
    """One sweep in the plane, compiled, and a loop over the points in float64: the same labels."""
    size, slots, alpha = 80, 20, 3.0
    rng = np.random.default_rng(2)
    x = (
        3.0 * rng.normal(size=(5, 2))[rng.integers(5, size=size)] + rng.normal(size=(size, 2))
    ) * 0.7
    start, key = rng.integers(8, size=size), random.key(5)

    @jax.jit
    def sweep(labels):
        points, prior = as_points(WISHART, x), PartitionPrior(jnp.asarray(alpha))
        return update_labels_in_turn(key, labels, Given(points, prior, WISHART, slots))

    def density(others, new):
        n = len(others)
        number, v = 0.5 + n, 4.0 + n - 1.0
        mean = others.mean(0) if n else np.zeros(2)
        matrix = np.eye(2) + (others - mean).T @ (others - mean)
        matrix += 0.5 * n / number * np.outer(mean, mean)
        scale = matrix * (number + 1.0) / (number * v)
        return multivariate_t(n / number * mean, scale, df=v).pdf(new)

    labels, uniforms = start.copy(), np.asarray(random.uniform(key, (2, size)), float)
    for i in range(size):
        old, labels[i] = labels[i], -1
        sizes = np.bincount(labels[labels >= 0], minlength=slots)
        weights = [n * density(x[labels == c], x[i]) if n else 0.0 for c, n in enumerate(sizes)]
        sums = np.cumsum([*weights, alpha * density(x[:0], x[i])])
        seat = np.searchsorted(sums, (1.0 - uniforms[0, i]) * sums[-1])
        free = old if sizes[old] == 0 else np.argmin(sizes > 0)
        labels[i] = free if seat == slots else seat
    move = sweep(jnp.asarray(start, jnp.int32))
    assert (labels != start).sum() > 20
    np.testing.assert_array_equal(move.labels, labels)
    assert not move.overflow


@pytest.mark.slow
def test_chain_methods_and_resume():
    """Cycle with adaptation: warm-up, run and resume are one stream, however chains are run."""

    def kernel():
        return Cycle([PermutationGibbs(GAUSS, GAMMA, beam=2), SplitMerge(GAUSS, GAMMA)])

    methods, sizes = ("sequential", "vectorized"), {"num_warmup": 5, "num_samples": 10}
    assert_chain_methods_agree(kernel, LINE, methods=methods, num_same=5, **sizes)
    sizes = {"num_warmup": 5, "num_samples": 5}
    mcmc = MCMC(kernel(), progress_bar=False, **sizes)
    mcmc.warmup(random.key(6), LINE)
    mcmc.run(mcmc.post_warmup_state.rng_key, LINE)
    assert int(mcmc.last_state.warmup_left) == 0 and int(mcmc.last_state.warmup_done) == 5
    assert_resumed_run_is_the_long_one(mcmc, kernel, LINE, **sizes)


KEYS = random.split(random.key(0), 20)


@pytest.mark.parametrize("size", [1, 2, 5, 17, 24])
def test_batches_are_of_different_points(size):
    seen = set()
    draw = jax.jit(jax.vmap(lambda key: random_batches(key, size, 8)))
    for batches in np.asarray(draw(KEYS)).tolist():
        assert len(batches[0]) == min(8, max(size // 2, 1))
        assert all(len(set(batch)) == len(batch) for batch in batches)
        assert {point for batch in batches for point in batch} == set(range(size))
        seen |= {frozenset(batch) for batch in batches}
    assert size < 5 or len(seen) > 4


def test_starts():
    def start(init, **given):
        kernel = CollapsedGibbs(GAUSS, 1.0, max_clusters=5, init=init)
        state = kernel.init(random.key(7), 0, given or None, (LINE,), {})
        return np.asarray(state.z["assignments"], int).tolist(), kernel.get_diagnostics_str(state)

    assert start("one")[0] == [0] * 5
    labels, line = start("singletons")
    assert labels == [0, 1, 2, 3, 4] and line.startswith("5 clusters, log joint -")
    assert start("one", assignments=jnp.array([3, 3, 1, 1, 3]))[0] == [0, 0, 1, 1, 0]
    sequential = start("sequential")[0]
    assert max(sequential) > 0 and sequential[0] == 0


@pytest.mark.slow  # quick: of partitions, in test_inference_data.py; by ArviZ, in test_kernels.py
def test_to_arviz():
    import arviz as az

    idata = az.from_numpyro(fitted("collapsed"), log_likelihood=False)
    assert idata.posterior["assignments"].shape == (100, 250, 5)
    np.testing.assert_allclose(idata.sample_stats["lp"], idata.posterior["log_joint"], rtol=1e-6)


def test_search_leaves_a_bad_start():
    """From one cluster of 300 points in eight far groups, projections find them in warm-up."""
    rng = np.random.default_rng(1)
    truth = rng.integers(8, size=300)
    data = (rng.normal(size=(8, 5)) * 10)[truth] + rng.normal(size=(300, 5))
    family = GaussianMean(prior_scale=10.0, noise_scale=1.0)
    kernel = PermutationGibbs(family, 1.0, ordering="projection", beam=10, init="one")
    settings = {"num_warmup": 40, "num_samples": 10, "num_chains": 1}
    mcmc = sampled(kernel, data, key=random.key(8), **settings)
    labels = np.asarray(mcmc.get_samples()["assignments"], int)
    again = [len(np.unique(truth * 100 + row)) for row in labels]
    assert again == [8] * 10 and set(labels.max(1)) == {7}


# -- pieces ---------------------------------------------------------------------------------------


def test_probability_of_chains():
    """Of the order within each segment, one step after the other, and its draws."""
    from numpyro_rankings.infer.partition.permutation import order_by_chains
    from numpyro_rankings.infer.partition.segments import log_chain_table

    pairs = np.random.default_rng(2).normal(size=(5, 5))
    chain_table = jax.jit(log_chain_table)
    table = np.asarray(chain_table(pairs))
    for s in range(5):
        for e in range(s, 5):
            expected = sum(
                pairs[i - 1, i] - np.logaddexp.reduce(pairs[i - 1, i : e + 1])
                for i in range(s + 1, e + 1)
            )
            assert table[e, s] == pytest.approx(expected, abs=1e-4)
    labels = jnp.array([2, 0, 2, 2, 0])
    draw = jax.jit(jax.vmap(lambda key: order_by_chains(key, labels, jnp.array(pairs), 3)))
    orders = np.asarray(draw(random.split(random.key(9), 20_000)))
    seen, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(seen) == 2 * 6 * 2
    for order, count in zip(seen, counts, strict=True):
        log_prob = -np.log(2 * 3 * 2)
        of_order = np.asarray(chain_table(pairs[order][:, order]))
        bounds = [0, 2, 5] if labels[order[0]] == 0 else [0, 3, 5]
        log_prob += sum(of_order[e - 1, s] for s, e in pairwise(bounds))
        prob = np.exp(log_prob)
        assert abs(count / 20_000 - prob) < 5.5 * np.sqrt(prob * (1 - prob) / 20_000) + 1e-4


def test_segments_of_an_ordering_have_their_probabilities():
    """Exactly, eq. (4), and with a factor for each segment, eq. (5); in the search too."""
    alpha, discount, factor = 1.7, 0.3, 1.4
    order, labels, size = np.array([2, 0, 3, 1]), np.array([0, 1, 1, 0]), 10_000

    @jax.jit
    def draw(keys, searches, line, alpha, discount):
        given = Given(as_points(GAUSS, line), PartitionPrior(alpha, discount=discount), GAUSS, 4)

        def once(key, searches):
            ordering = Ordering(jnp.asarray(order), None, searches)
            sequence = as_sequence(ordering, jnp.asarray(labels), given)
            log_counts = log_number(given.prior, 4, searches)
            return (
                draw_exactly(key, sequence, log_counts, 4, GAUSS)[0],
                draw_by_slope(key, sequence, jnp.log(factor), 4, GAUSS)[0],
            )

        return jax.vmap(once)(keys, searches)

    keys, searches = random.split(random.key(5), 2 * size), np.arange(2 * size) >= size
    drawn = draw(keys, searches, LINE[:4], *np.array([alpha, discount], np.float32))
    noise, spread = GAUSS.noise_scale**2, GAUSS.prior_scale**2
    log_probs = np.zeros((2, 2, 8))  # exactly or by a factor, search or not, where segments start
    for code in range(8):
        bounds = [0, *(i for i in (1, 2, 3) if code >> (3 - i) & 1), 4]
        sizes = np.diff(bounds)
        for s, e in pairwise(bounds):
            normal = multivariate_normal(cov=noise * np.eye(e - s) + spread)
            log_probs[:, :, code] += normal.logpdf(LINE[order[s:e], 0])
        log_probs[0, :, code] += log_restaurant(sizes, alpha, discount)
        log_probs[0, 0, code] -= gammaln(len(sizes) + 1)  # 1/K!
        log_probs[1, :, code] += len(sizes) * np.log(factor)
        log_probs[1, :, code] += np.sum(gammaln(sizes - discount) - gammaln(1 - discount))
        log_probs[:, 0, code] -= gammaln(sizes + 1).sum()  # 1/n! of the order of each
    starts = np.stack(drawn)
    assert np.all(starts[:, :, 0])
    codes = (starts[:, :, 1:] @ [4, 2, 1]).reshape(2, 2, size)
    found = (codes[..., None] == np.arange(8)).mean(2)
    p = np.exp(log_probs - np.logaddexp.reduce(log_probs, axis=2, keepdims=True))
    # of 32 frequencies one is off by 5.5 standard errors with probability 1e-6
    assert np.all(np.abs(found - p) < 5.5 * np.sqrt(p * (1 - p) / size)), (found, p)


def test_prior_of_partitions():
    prior = PartitionPrior(jnp.array(1.7), discount=jnp.array(0.3))
    sizes = np.array([np.bincount(labels, minlength=7) for labels in partitions(5)])
    expected = [log_restaurant(row[row > 0], 1.7, 0.3) for row in sizes]
    np.testing.assert_allclose(jax.jit(jax.vmap(prior.log_prob))(sizes), expected, atol=1e-5)
    assert np.logaddexp.reduce(expected) == pytest.approx(0.0, abs=1e-9)


# -- bad input ------------------------------------------------------------------------------------

BAD = {
    "family": (lambda: CollapsedGibbs("gaussian"), "must be a component family"),
    "alpha": (lambda: CollapsedGibbs(GAUSS, 0.0), "alpha must be a positive number"),
    "alpha prior": (lambda: SplitMerge(GAUSS, dist.Normal(0.0, 1.0)), "negative numbers"),
    "discount": (lambda: CollapsedGibbs(GAUSS, discount=1.0), "discount must be"),
    "discount in words": (lambda: CollapsedGibbs(GAUSS, discount="some"), "discount must be"),
    "slots": (lambda: SplitMerge(GAUSS, max_clusters=0), "max_clusters must be"),
    "start": (lambda: CollapsedGibbs(GAUSS, init="best"), "init is one of"),
    "batch": (lambda: CollapsedGibbs(GAUSS, batch_size=0), "batch_size must be"),
    "moves": (lambda: SplitMerge(GAUSS, num_moves=0), "num_moves must be"),
    "ordering": (lambda: PermutationGibbs(GAUSS, ordering="random"), "ordering is one of"),
    "beam": (lambda: PermutationGibbs(GAUSS, beam=0), "beam must be"),
    "exact beam": (lambda: PermutationGibbs(GAUSS, beam=2, exact=True), "has no beam"),
    "no kernels": (lambda: Cycle([]), "takes a list of kernels"),
    "another family": (
        lambda: Cycle([CollapsedGibbs(GAUSS), SplitMerge(WISHART)]),
        "must have the same family",
    ),
    "another alpha": (
        lambda: Cycle([CollapsedGibbs(GAUSS, 1.0), SplitMerge(GAUSS, 2.0)]),
        "must have the same alpha",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings(case):
    construct, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        construct()


class Parity(Family):
    """Numbers that only even ones, or only odd ones, can share a cluster: a family of one's own."""

    def statistics(self, data):
        return {"size": jnp.ones(len(data)), "odd": jnp.asarray(data, float) % 2}

    def log_marginal(self, cluster):
        alike = (cluster["odd"] == 0) | (cluster["odd"] == cluster["size"])
        return jnp.where(alike, -cluster["size"] * jnp.log(2.0), -jnp.inf)


@pytest.mark.slow
def test_what_is_impossible():
    """A family of whose marginals some are 0: draws are possible; such a start is refused."""
    kernel = Cycle([CollapsedGibbs(Parity()), SplitMerge(Parity()), PermutationGibbs(Parity())])
    mcmc = run_chains(kernel, np.arange(5), seed=0, num_warmup=10, num_samples=200)
    samples = mcmc.get_samples()
    assert np.isfinite(samples["log_joint"]).all()
    assert len(np.unique(samples["num_clusters"])) > 1
    for kernel in (CollapsedGibbs(Parity(), init="one"), SplitMerge(ATOM, init="one")):
        with pytest.raises(ValueError, match="start has probability 0"):
            kernel.init(random.key(0), 0, None, (np.arange(2),), {})


def test_scales_that_are_fixed_stay_so():
    """Also where a whole draw of another run is given as a start."""
    for alpha, started in ((1.5, 1.5), (GAMMA, 7.0)):
        kernel = CollapsedGibbs(GAUSS, alpha, init="one")
        state = kernel.init(random.key(0), 0, {"alpha": 7.0}, (LINE,), {})
        assert float(state.z["alpha"]) == started


def test_vague_prior_of_alpha():
    """Draws that are too small for single precision: not 0."""
    kernel = CollapsedGibbs(GAUSS, dist.Gamma(0.001, 0.001), init="one")
    state = kernel.init(random.key(0), 0, {"alpha": 1e-37}, (LINE[:2] * 0.01,), {})
    assert np.isfinite(state.potential_energy)

    def update(alpha, key):
        prior = kernel._update_alpha(key, PartitionPrior(alpha, None), jnp.array([2, 0]))
        return prior.alpha, prior.alpha

    keys = random.split(random.key(0), 300)
    alpha = np.asarray(jax.jit(lambda a: jax.lax.scan(update, a, keys)[1])(np.float32(1.0)))
    assert np.min(alpha) > 0 and np.min(alpha) < 1e-30


def test_bad_data():
    def run(kernel, *args, num_warmup=0, given=None):
        kernel.init(random.key(0), num_warmup, given, args, {})

    alone = CollapsedGibbs(GAUSS)
    few = CollapsedGibbs(GAUSS, max_clusters=3)
    assert_refused(
        run,
        ("points must be numbers in an array", alone, LINE[:, 0]),
        ("row 2 of the points", SplitMerge(GAUSS), np.where(np.eye(5)[2][:, None], np.nan, LINE)),
        ("there are no points", alone, LINE[:0]),
        ("must have coordinates", alone, np.zeros((3, 0))),
        ("at least one word", CollapsedGibbs(TEXT), np.zeros((3, 0))),
        ("max_clusters=5, not 3", CollapsedGibbs(GAUSS, max_clusters=3, init="singletons"), LINE),
        ("num_warmup must not be 0", PermutationGibbs(GAUSS, ordering="projection"), LINE),
    )
    assert_refused(
        run,
        ("needs the data", alone),
        ("the data and nothing else", alone, LINE, np.zeros((5, 5))),
        (r"not a DataFrame: pass frame.to_numpy\(\) of points", alone, pd.DataFrame(LINE)),
        error=TypeError,
    )
    assert_refused(
        lambda kernel, given: run(kernel, LINE, given=given),
        ("labels below max_clusters = 3", few, {"assignments": jnp.array([0, 1, 2, 3, 3])}),
        ("one label for each of the 5 points", alone, {"assignments": jnp.zeros(4, int)}),
        (r"of shape \(5,\), got \(2, 5\)", alone, {"assignments": jnp.zeros((2, 5), int)}),
        ("a dictionary by site", alone, jnp.zeros(5, int)),
    )
