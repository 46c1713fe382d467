"""The Dirichlet process mixture of nonparametric Plackett–Luce models."""

import itertools
import math
from collections import Counter
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.chains import sampled, sweeps_of_any
from helpers.enumeration import (
    OUTCOME_NOISE,
    OUTCOME_SPREAD,
    discrepancies,
    lah,
    log_partition,
    outcome_of,
    partitions,
)
from helpers.latent_orders import blocks_of, extensions, indicators_of_orderings
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs
from scipy import special, stats

from numpyro_rankings import (
    PartialOrders,
    Rankings,
    RankingsError,
    diagnostics_table,
    log_predictive_density,
    predict_items,
    to_inference_data,
)
from numpyro_rankings.datasets import simulate_dp_plackett_luce
from numpyro_rankings.datasets.pools import draw_dp_lists
from numpyro_rankings.infer import DPPlackettLuceGibbs
from numpyro_rankings.infer.plackett_luce.measures import (
    ClusterTimes,
    Measures,
    Scales,
    draw_clusters,
    update_measures,
)
from numpyro_rankings.models import dp_plackett_luce
from numpyro_rankings.ops.item_pool import seat_tokens
from numpyro_rankings.ops.sampling import sample_atom_counts
from numpyro_rankings.ops.special import log_bessel_ie
from numpyro_rankings.posterior.partitions import canonical_labels


def test_lah_numbers_are_the_sum_over_counts():
    """Σ_u x^u/u! Γ(u+n)/Γ(u) = e^x Σ_k L(n, k) x^k, by which u_jk is summed over below."""
    x, u = 1.7, np.arange(1, 80)
    for n in (1, 2, 5):
        terms = u * np.log(x) - special.gammaln(u + 1) + special.gammaln(u + n) - special.gammaln(u)
        expected = np.exp(x) * sum(lah(n, k) * x**k for k in range(1, n + 1))
        assert np.exp(terms).sum() == pytest.approx(expected)


def test_atom_counts():
    cases = [(0.01, 0), (1.0, 0), (7.3, 0), (400.0, 0), (0.01, 1), (1.0, 1), (3.0, 5)]
    cases += [(1e-3, 1000), (50.0, 20_000), (300.0, 50_000), (20.0, 2)]
    x, n = np.array(cases, np.float32).T[..., None]

    @jax.jit
    def draw(keys):
        batches = jax.lax.map(lambda key: sample_atom_counts(key, jnp.tile(x, (1, 100)), n), keys)
        return jnp.concatenate(batches, axis=1)

    draws = draw(random.split(random.key(0), 200))
    u = np.arange(40_000)
    for (rate, number), found in zip(cases, np.asarray(draws, int), strict=True):
        log_p = u * np.log(rate) - special.gammaln(u + 1.0)
        if number > 0:
            more = special.gammaln(u + number) - special.gammaln(np.maximum(u, 1))
            log_p = np.where(u >= 1, log_p + more, -np.inf)
        expected = 20_000 * special.softmax(log_p)
        seen = np.bincount(found, minlength=len(u))
        often = expected >= 5
        seen = np.append(seen[often], seen[~often].sum())
        expected = np.append(expected[often], expected[~often].sum() + 1e-9)
        expected *= seen.sum() / expected.sum()
        assert stats.chisquare(seen, expected).pvalue > 1e-5, (rate, number)


def test_bessel():
    import mpmath

    nu, x = np.meshgrid([-0.99, 0.0, 0.3, 1.0, 5.0, 30.0, 200.0], np.geomspace(1e-3, 3e4, 25))
    known = [
        float(mpmath.log(mpmath.besseli(a, b)) - b)
        for a, b in zip(nu.ravel(), x.ravel(), strict=True)
    ]
    found = jax.jit(log_bessel_ie)(nu.astype(np.float32), x.astype(np.float32))
    np.testing.assert_allclose(np.ravel(found), known, rtol=1e-5, atol=1e-5)


# -- lists of length one: all but one integral for each cluster in closed form ---------------------

LISTS = [[0], [0], [1]]
OUTCOME = np.array([0.9, -1.1, 0.6])  # of each judge
TAU = 0.8


def log_marginal(blocks, alpha, phi, nodes, lists=LISTS, ends=(-16.0, 12.0)):
    """log p(lists | partition), and the chance that one more list of the first cluster is of a new
    item, by quadrature over sums of the waiting times of each cluster, one sum for each set of
    items that are chosen before.

    Given these everything else integrates out: with S_jk the sum of the times that item k is in
    play, ρ_jk = (τ+φ)/(τ+φ+S_jk) and x_k = φ Σ_j (1 - ρ_jk), what is unseen, always in play, leaves
    (τ/(τ+x))^α Π ρ_j^α, and each item the integral over w_0 of a polynomial.
    """
    log_s = np.linspace(*ends, nodes)
    stages = [
        Counter(frozenset(lists[i][:k]) for i in block for k in range(len(lists[i])))
        for block in blocks
    ]
    num_sums = sum(map(len, stages))
    grids = iter(np.meshgrid(*[np.exp(log_s)] * num_sums, indexing="ij", sparse=True))
    times = [{chosen: next(grids) for chosen in one} for one in stages]
    rate = TAU + phi

    def in_play(item):
        sums = [sum(s for chosen, s in one.items() if item not in chosen) for one in times]
        rho = [rate / (rate + s) for s in sums]
        return sums, rho, phi * sum(1 - r for r in rho)

    waits, rho, x0 = in_play(None)
    value = (TAU / (TAU + x0)) ** alpha
    for one, numbers, r in zip(times, stages, rho, strict=True):
        value = value * r**alpha
        for chosen, n in numbers.items():
            value = value * one[chosen] ** n / math.factorial(n - 1)
    for item in set(itertools.chain(*lists)):
        sums, rho, x = in_play(item)
        numbers = [sum(item in lists[i] for i in block) for block in blocks]
        of_item = 0.0
        for ks in itertools.product(*(range(1, n + 1) if n else (0,) for n in numbers)):
            term = alpha * special.gamma(sum(ks)) / (TAU + x) ** sum(ks)
            for n, k, r, s in zip(numbers, ks, rho, sums, strict=True):
                term = term * lah(n, k) * (phi * r) ** k / (rate + s) ** n
            of_item = of_item + term
        value = value * of_item
    # one more list: its time goes into the sum of first choices, and E[w_* e^{-S w_*}] for
    # E[e^{-S w_*}] in what is unseen
    first, none = rate + waits[0], frozenset()
    more = alpha * (phi * rate / first**2 / (TAU + x0) + 1.0 / first)
    new = (value * times[0][none] / stages[0][none] * more).sum() / value.sum()
    return np.log(value.sum()) + num_sums * np.log(log_s[1] - log_s[0]), new


def expectations(alphas, phis, gammas, weights_of_scales, nodes=60, with_outcome=False):
    """Partition, and mean of each scale, over grids of these with their prior weights."""
    table = list(partitions(len(LISTS)))
    of_outcome = np.zeros(len(table))
    joint = np.zeros((len(table), len(alphas), len(phis), len(gammas)))
    new = np.zeros((len(table), len(alphas), len(phis), 1))
    for p, labels in enumerate(table):
        blocks = [np.flatnonzero(np.equal(labels, c)) for c in range(max(labels) + 1)]
        log_p = log_partition(list(np.bincount(labels)), np.asarray(gammas), None)
        if with_outcome:
            outcomes = [outcome_of(OUTCOME[block]) for block in blocks]
            log_p = log_p + sum(log_marginal for log_marginal, _ in outcomes)
            of_outcome[p] = outcomes[0][1]
        for a, alpha in enumerate(alphas):
            for f, phi in enumerate(phis):
                log_likelihood, new[p, a, f] = log_marginal(blocks, alpha, phi, nodes)
                joint[p, a, f] = np.exp(log_p + log_likelihood)
    joint *= weights_of_scales
    joint /= joint.sum()
    return {
        "partition": joint.sum((1, 2, 3)),
        "unseen": np.array([(joint * new).sum()]),
        "alpha": np.array([joint.sum((0, 2, 3)) @ alphas]),
        "phi": np.array([joint.sum((0, 1, 3)) @ phis]),
        "gamma": np.array([joint.sum((0, 1, 2)) @ gammas]),
        **({"mean": np.array([joint.sum((1, 2, 3)) @ of_outcome])} if with_outcome else {}),
    }


def run(kernel, draws=300):
    mcmc = MCMC(
        kernel,
        num_warmup=60,
        num_samples=draws,
        num_chains=50,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(0), Rankings.from_orderings(LISTS, num_items=2))
    assert not np.any(mcmc.get_extra_fields()["overflow"])
    samples = mcmc.get_samples(group_by_chain=True)
    return summary(samples), samples


def summary(samples):
    code = np.asarray(samples["assignments"], int) @ 3 ** np.arange(3)
    found = {name: np.asarray(samples[name])[..., None] for name in ("alpha", "phi", "gamma")}
    table = np.array(list(partitions(3))) @ 3 ** np.arange(3)
    found["unseen"] = np.asarray(samples["unseen_weight"])[..., :1]
    return {"partition": code[..., None] == table} | found


@pytest.mark.slow
def test_partition_with_fixed_scales():
    found, samples = run(DPPlackettLuceGibbs(1.3, 2.0, 1.5, TAU, max_clusters=40), 180)
    expected = expectations([1.3], [2.0], [1.5], 1.0)
    z = discrepancies(found, expected)
    assert max(z.values()) < 6.0, (z, found["partition"].mean((0, 1)), expected["partition"])

    # one more list of an item that is listed, and what is left for a new one
    def log_evidence(lists):
        log_joint = []
        for labels in partitions(len(lists)):
            blocks = [np.flatnonzero(np.equal(labels, c)) for c in range(max(labels) + 1)]
            log_p = log_partition([len(block) for block in blocks], 1.5, None)
            log_joint.append(log_p + log_marginal(blocks, 1.3, 2.0, 40, lists)[0])
        return special.logsumexp(log_joint)

    known = [np.exp(log_evidence([*LISTS, [k]]) - log_evidence(LISTS)) for k in (0, 1)]
    next_lists = Rankings.from_orderings([[0], [1]], num_items=2)
    chances, new = [], []
    for c, (key, key_new) in enumerate(random.split(random.key(1), (50, 2))):
        chain = {name: np.asarray(value)[c] for name, value in samples.items()}
        chances.append(log_predictive_density(chain, next_lists, num_new_clusters=20, key=key))
        thinned = {name: value[::5] for name, value in chain.items()}
        new.append(predict_items(key_new, thinned, 1, 1, tau=TAU).new)
    found = {"chance": np.exp(chances)[:, None], "new": np.reshape(new, (50, -1, 1))}
    z = discrepancies(found, {"chance": np.array(known), "new": np.array([1.0 - sum(known)])})
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
def test_partition_of_partial_orders():
    """A judge of three items, who only says that 0 is above 1, or all; others list one item."""
    said = PartialOrders.from_buckets([[0, 1, 2], [2], [0]], 3)
    above = np.array(said.above)
    above[0] = np.arange(9).reshape(3, 3) == 1
    leaves, static = said.tree_flatten()
    gap = PartialOrders.tree_unflatten(static, (leaves[0], jnp.asarray(above), *leaves[2:]))
    kernel = DPPlackettLuceGibbs(1.3, 2.0, 1.5, TAU, max_clusters=30, num_marginal_steps=2)
    sweeps = sweeps_of_any(kernel, num_draws=340, extra_fields=["orderings"])
    for orders in (gap, said):
        mcmc = sampled(
            kernel,
            orders,
            key=random.key(0),
            num_samples=300,
            num_chains=64,
            num_warmup=40,
            sweeps=lambda state, orders=orders: sweeps(state, (orders,)),
        )
        assert not np.any(mcmc.get_extra_fields()["overflow"])
        orderings = mcmc.get_extra_fields(group_by_chain=True)["orderings"]
        found = summary(mcmc.get_samples(group_by_chain=True))
        found = {name: found[name] for name in ("partition", "unseen")}
        found["orderings"] = indicators_of_orderings(orders, orderings)
        z = discrepancies(found, expectations_of_orders(orders, 1.3, 2.0, 1.5))
        assert max(z.values()) < 6.0, z


def expectations_of_orders(orders, alpha, phi, gamma):
    """The same over all orderings: partition, what is unseen, and the judges' orderings."""
    lists = [extensions(orders, row) for row in range(len(orders))]
    every = list(itertools.product(*(range(len(x)) for x in lists)))
    table = list(partitions(len(orders)))
    logs, new = np.zeros((2, len(every), len(table)))
    for e, choice in enumerate(every):
        chosen = [x[k] for x, k in zip(lists, choice, strict=True)]
        for p, labels in enumerate(table):
            log_p = log_partition(list(np.bincount(labels)), np.array([gamma]), None)[0]
            blocks, nodes = blocks_of(labels), 24 if max(labels) == 2 else 36
            logs[e, p], new[e, p] = log_marginal(blocks, alpha, phi, nodes, chosen, (-10.0, 10.0))
            logs[e, p] += log_p
    weights = np.exp(logs - special.logsumexp(logs))
    of_lists = weights.sum(1)
    return {
        "partition": weights.sum(0),
        "unseen": np.array([(weights * new).sum()]),
        "orderings": np.concatenate([np.bincount(k, of_lists) for k in np.transpose(every)]),
    }


@pytest.mark.slow
def test_partition_with_priors_of_the_scales():
    alphas, phis = np.exp(np.linspace(-4, 2.6, 24)), np.exp(np.linspace(-4, 3.2, 24))
    gammas = np.exp(np.linspace(-6, 3, 200))

    def prior(x, shape, rate):
        return x**shape * np.exp(-rate * x)  # in log x

    weights = (
        prior(alphas, 3.0, 2.0)[:, None, None]
        * prior(phis, 2.0, 1.0)[:, None]
        * prior(gammas, 6.0, 6.0)
    )
    kernel = DPPlackettLuceGibbs(
        dist.Gamma(3.0, 2.0), dist.Gamma(2.0, 1.0), dist.Gamma(6.0, 6.0), TAU, max_clusters=60
    )
    found, _ = run(kernel, 200)
    z = discrepancies(found, expectations(alphas, phis, gammas, weights, 40))
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
def test_partition_with_bounded_priors_of_the_scales():
    """Which NumPyro does not validate, so that their densities are the same everywhere."""
    bounds = {"alpha": (0.6, 2.4), "phi": (0.5, 4.0), "gamma": (0.3, 2.0)}
    priors = {name: dist.Uniform(*ends, validate_args=False) for name, ends in bounds.items()}
    points = (np.arange(10) + 0.5) / 10
    grids = [low + (high - low) * points for low, high in bounds.values()]
    kernel = DPPlackettLuceGibbs(**priors, tau=TAU, max_clusters=60, num_marginal_steps=0)
    found, samples = run(kernel, 150)
    for name, (low, high) in bounds.items():
        assert low <= samples[name].min() and samples[name].max() <= high
    z = discrepancies(found, expectations(*grids, 1.0, 40))
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
@pytest.mark.parametrize("with_outcome", [False, True])
def test_block_of_gibbs(with_outcome):
    """α, and the means of an outcome, from NUTS, the rest from the kernel."""
    alphas = np.exp(np.linspace(-4, 2.6, 30))
    prior = (alphas**3 * np.exp(-2 * alphas))[:, None, None]
    block = DPPlackettLuceGibbs(
        tau=TAU,
        max_clusters=40,
        model=partial(block_model, with_outcome=with_outcome),
        judge_sites=["y"] if with_outcome else (),
    )
    kernel = Gibbs([(block, SITES), (NUTS(block.model), None)])
    mcmc = MCMC(
        kernel,
        num_warmup=60,
        num_samples=300 if with_outcome else 150,
        num_chains=24,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(0), Rankings.from_orderings(LISTS, num_items=2))
    samples = {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}
    labels = samples["assignments"].astype(int)
    code = canonical_labels(labels) @ 3 ** np.arange(3)
    table = np.array(list(partitions(3))) @ 3 ** np.arange(3)
    found = {"partition": code[..., None] == table, "alpha": samples["alpha"][..., None]}
    if with_outcome:
        found["mean"] = np.take_along_axis(samples["mean"], labels[..., :1], axis=2)
    expected = expectations(alphas, [2.0], [1.5], prior, with_outcome=with_outcome)
    z = discrepancies(found, {name: expected[name] for name in found})
    assert max(z.values()) < 6.0, z


SITES = ["assignments", "weights", "unseen_weight", "total_weight", "root_weights"]
SITES.append("root_unseen_weight")


def block_model(rankings, with_outcome=False):
    alpha = numpyro.sample("alpha", dist.Gamma(3.0, 2.0))
    settings = {"phi": 2.0, "gamma": 1.5, "tau": TAU, "max_clusters": 40}
    validate = not with_outcome  # else labels are names of slots
    labels = dp_plackett_luce(rankings, alpha=alpha, validate_args=validate, **settings)
    if with_outcome:
        with numpyro.plate("slot", 40):
            mean = numpyro.sample("mean", dist.Normal(0.0, OUTCOME_SPREAD))
        with numpyro.plate("judge", len(OUTCOME)):
            numpyro.sample("y", dist.Normal(mean[labels], OUTCOME_NOISE), obs=OUTCOME)


@pytest.mark.slow
def test_hardly_anything_unseen():
    """A tiny α: the weight of what is unseen is beyond float32."""
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1], [1]], num_items=3, counts=[30, 20, 5])
    kernel = DPPlackettLuceGibbs(
        0.01, dist.Gamma(2.0, 1.0), dist.Gamma(2.0, 1.0), max_clusters=60, num_marginal_steps=0
    )
    mcmc = MCMC(kernel, num_warmup=0, num_samples=40, progress_bar=False)
    mcmc.run(random.key(0), rankings)
    samples = mcmc.get_samples()
    for name, value in samples.items():
        assert np.isfinite(value).all(), name
    assert np.min(samples["unseen_weight"]) < 1e-20
    data = to_inference_data(mcmc, rankings)
    assert np.isfinite(data["posterior"]["population_entropy"]).all()
    assert np.isfinite(data["log_likelihood"]["rankings"]).all()
    quantities = set(diagnostics_table(data).index)
    assert {"phi", "gamma", "num_clusters"} <= quantities
    assert not any(name.startswith("unseen_weight") for name in quantities)
    assert np.isfinite(log_predictive_density(samples, rankings)).all()
    assert np.all(predict_items(random.key(0), samples, 5, 2).new[:, -1] <= 10)


def test_bad_input():
    for settings, message in (
        ({"alpha": 0.0}, "alpha must be a positive number"),
        ({"phi": -1.0}, "phi must be a positive number"),
        ({"gamma": dist.Normal(0.0, 1.0)}, "gamma must give no mass to negative"),
        ({"tau": dist.Gamma(1.0, 1.0)}, "tau must be a number"),
        ({"max_clusters": 0}, "max_clusters must be a positive whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            DPPlackettLuceGibbs(**settings)
    subsets = Rankings.from_orderings([[0], [1]], num_items=2, choice_sets=np.ones((2, 2), bool))
    with pytest.raises(ValueError, match="choice sets"):
        DPPlackettLuceGibbs().init(random.key(0), 0, None, (subsets,), {})


@pytest.mark.slow
def test_prior_of_the_measures_is_left_as_it_is():
    """No rankings, two clusters, α = φ = 2, τ = 1: moments of G_0(X) and of G_1(X).

    The mean of G_1(X) is (α + E U_1(X))/(τ + φ), and so 2 says that E U_1(X) = 4.
    """
    scales = Scales(jnp.array(2.0), jnp.array(2.0), jnp.array(1.0))
    chains, none = 20_000, jnp.zeros((2, 0))

    @jax.jit
    @jax.vmap
    def chain(key):
        key_root, key_clusters, *keys = random.split(key, 8)
        root_unseen = random.gamma(key_root, 2.0)
        atoms, unseen = draw_clusters(key_clusters, jnp.zeros(0), root_unseen, scales, 1.0, 2)
        measures = Measures(jnp.zeros(0), root_unseen, atoms, unseen)
        for key in keys:
            times = ClusterTimes(jnp.ones(2, bool), none, none, jnp.zeros(2))
            measures, _ = update_measures(key, measures, scales, times, None, 1.0)
        return measures.root_unseen, measures.unseen

    root, leaves = (np.asarray(x, float) for x in chain(random.split(random.key(0), chains)))
    # G_1 given G_0: Gamma(α + U, τ + φ), U ~ Poisson(φ G_0)
    for x, mean, variance in (
        (root, 2.0, 2.0),
        (leaves[:, 0], 2.0, 2.0),
        (leaves[:, 0] * root, 16 / 3, None),
        (leaves[:, 0] * leaves[:, 1], 4 + 4 / 9 * 2, None),
    ):
        assert abs(x.mean() - mean) < 4.5 * x.std() / np.sqrt(chains)
        if variance is not None:
            assert abs(x.var() - variance) < 4.5 * ((x - mean) ** 2).std() / np.sqrt(chains)


@pytest.mark.slow
def test_further_lists_are_those_of_the_simulator():
    """New items after a list of two atoms of the root: against simulated data that begin so."""
    alpha, phi, gamma, number = 2.5, 4.0, 1.2, 12_000
    rng = np.random.default_rng(5)
    counts = []
    while len(counts) < number:
        _, (first, *others) = draw_dp_lists(rng, 4, 2, alpha, phi, gamma, TAU)
        if all(cluster < 0 for cluster, _ in first):
            seen = set(first)
            counts.append([len(seen.union(*others[:k]) - seen) for k in (1, 2, 3)])
    known = np.array(counts)

    kernel = DPPlackettLuceGibbs(alpha, phi, gamma, TAU, max_clusters=40)
    mcmc = MCMC(
        kernel,
        num_warmup=50,
        num_samples=60,
        num_chains=200,
        chain_method="vectorized",
        thinning=3,
        progress_bar=False,
    )
    mcmc.run(random.key(0), Rankings.from_orderings([[0, 1]], num_items=2))
    samples = mcmc.get_samples(group_by_chain=True)
    found = predict_items(random.key(1), samples, 3, 2, tau=TAU)
    assert np.all(found.distinct >= found.new)
    new = found.new.reshape(200, -1, 3)
    for k in range(3):
        for least in (1, 2, 3):
            hits = new[..., k] >= least
            chance = np.mean(known[:, k] >= least)
            error = np.hypot(hits.mean(1).std() / 200**0.5, (chance / number) ** 0.5)
            assert abs(hits.mean() - chance) < 5 * error + 1e-9, (k, least)


def test_tokens_are_seated_as_in_a_restaurant():
    rng, alpha, number = np.random.default_rng(0), 0.7, 20_000
    found = {}
    for _ in range(number):
        tables = [2, 1]
        one = seat_tokens(rng, tables, 2, alpha)
        assert tables == [2 + one[0], 1 + one[1], *one[2:]]
        found[tuple(one)] = found.get(tuple(one), 0) + 1
    known = {
        (2, 0): 2 * 3,
        (1, 1): 2 * 2 * 1,
        (0, 2): 1 * 2,
        (1, 0, 1): 2 * 2 * alpha,
        (0, 1, 1): 2 * 1 * alpha,
        (0, 0, 2): alpha * 1,
        (0, 0, 1, 1): alpha * alpha,
    }
    assert set(found) == set(known)
    expected = np.array(list(known.values())) / ((3 + alpha) * (4 + alpha)) * number
    assert stats.chisquare([found[one] for one in known], expected).pvalue > 1e-5


def test_simulator():
    sample = simulate_dp_plackett_luce(random.key(0), 60, 3, 4.0, 20.0, 1.0)
    assert sample.rankings.num_rankings == 60 and sample.rankings.orderings.shape[1] == 3
    assert sample.in_root.shape == (sample.rankings.num_items,) and sample.in_root.any()
    first = [int(np.flatnonzero(sample.assignments == c)[0]) for c in set(sample.assignments)]
    assert first == sorted(first)
    # two lists: together by chance 1/(1 + γ), and then alike more often
    rng = np.random.default_rng(1)
    draws = [draw_dp_lists(rng, 2, 1, 2.0, 3.0, 1.5, 1.0) for _ in range(8000)]
    together = np.array([labels[0] == labels[1] for labels, _ in draws])
    same = np.array([one == two for _, (one, two) in draws])
    assert abs(together.mean() - 0.4) < 5 * (0.24 / 8000) ** 0.5
    # each G_j is a gamma process of concentration α: two draws from it coincide by 1/(1 + α)
    alike = same[together]
    assert abs(alike.mean() - 1 / 3) < 5 * (2 / 9 / len(alike)) ** 0.5
    assert same[~together].mean() < alike.mean() - 0.02
    for settings in ({"phi": 0.0}, {"gamma": -1.0}, {"length": 0}):
        with pytest.raises(RankingsError, match="must be"):
            keywords = {"length": 2, "alpha": 1.0, "phi": 1.0, "gamma": 1.0, **settings}
            simulate_dp_plackett_luce(random.key(0), 3, **keywords)
