"""Simulation-based calibration: ranks of the truth among the draws are uniform."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers.kernel_tests import rank_of, simulate
from jax import random
from scipy import stats

import numpyro_rankings.distributions as rd
from numpyro_rankings import Comparisons, PartialOrders, Rankings
from numpyro_rankings.datasets import simulate_dp_plackett_luce
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
)

pytestmark = pytest.mark.slow

SIZE, NUM_ITEMS, STAGES = 12, 5, 3
REPLICATES, DROPPED, KEPT, THIN = 80, 8, 9, 8
ALPHA = dist.Gamma(2.0, 1.0)
KERNELS = {
    "beta-exact": BetaGibbs(ALPHA, max_clusters=SIZE),
    # sticks that hold nobody need slots too
    "slice-parallel": SliceGibbs(dist.Gamma(6.0, 6.0), assignment="parallel", max_clusters=80),
}


def quantities(z):
    """What is ranked, free of labels."""
    theta = z["concentration"][..., 0, 0]  # the first ranking is in cluster 0
    clusters = jnp.asarray(z["num_clusters"], jnp.float32)
    return jnp.stack([z["alpha"], clusters, theta, z["log_joint"]], axis=-1)


def ranks(kernel):
    """Ranks of the truth among the kept draws of a chain started elsewhere."""
    lists = np.tile(np.arange(STAGES), (SIZE, 1))
    template = Rankings.from_orderings(lists, num_items=NUM_ITEMS)

    @jax.jit
    @jax.vmap
    def replicate(key):
        key_truth, key_start, key_chain, key_ties = random.split(key, 4)
        truth, data = simulate(kernel, template, key_truth)
        elsewhere, _ = simulate(kernel, template, key_start)

        def init(params):
            return kernel.init(key_chain, 0, params, (data,), {})

        both = jax.vmap(init)(jax.tree.map(lambda *x: jnp.stack(x), truth, elsewhere))
        truth, state = quantities(both.z)[0], jax.tree.map(lambda x: x[1], both)

        def sweep(state, _):
            state = kernel.sample(state, (data,), {})
            return state, state.overflow

        def keep(state, _):
            state, overflow = jax.lax.scan(sweep, state, None, length=THIN)
            return state, (quantities(state.z), overflow)

        _, (draws, overflow) = jax.lax.scan(keep, state, None, length=DROPPED + KEPT)
        draws = draws[DROPPED:]
        return rank_of(key_ties, truth, draws), overflow.any()

    found, overflow = replicate(random.split(random.key(1), REPLICATES))
    assert not np.any(overflow)
    return np.asarray(found)


@pytest.mark.parametrize("name", KERNELS)
def test_ranks_are_uniform(name):
    found = ranks(KERNELS[name])
    assert found.min() >= 0 and found.max() <= KEPT
    for k, quantity in enumerate(("alpha", "num_clusters", "theta", "log_joint")):
        counts = np.bincount(found[:, k], minlength=KEPT + 1)
        result = stats.chisquare(counts)
        assert result.pvalue > 1e-5, (quantity, counts)


LISTS, LENGTH, LISTED = 8, 2, 4
PRIORS = {
    "alpha": dist.Gamma(6.0, 6.0),
    "phi": dist.Gamma(4.0, 0.25),
    "gamma": dist.Gamma(6.0, 6.0),
}


@cache
def data_of_the_kernels_model(number):
    """Of the prior's data sets, those with 4 items that all are atoms of the root, and the truth.

    The kernel's posterior is that of the model in which each listed item is an atom of the root.
    """
    rng, key = np.random.default_rng(0), random.key(0)
    truths, data = [], []
    while len(data) < number:
        rates = {name: (float(p.concentration), float(p.rate)) for name, p in PRIORS.items()}
        scales = {name: rng.gamma(shape) / rate for name, (shape, rate) in rates.items()}
        key, one = random.split(key)
        sample = simulate_dp_plackett_luce(one, LISTS, LENGTH, **scales)
        if sample.in_root.all() and len(sample.in_root) == LISTED:
            truths.append([*scales.values(), sample.assignments.max() + 1])
            data.append(np.asarray(sample.rankings.orderings))
    return np.array(truths), np.array(data)


def every_other_tied(lists):
    """The same judges, of whom every other one ties the two items of the list."""
    buckets = [[x] if k % 2 else x for k, x in enumerate(lists.tolist())]
    return PartialOrders.from_buckets(buckets, LISTED)


OF_LISTS = {
    "rankings": lambda lists: Rankings.from_orderings(lists, num_items=LISTED),
    "ties": every_other_tied,
}


@pytest.mark.parametrize("kind", OF_LISTS)
def test_ranks_of_the_mixture_of_weights(kind):
    truths, lists = data_of_the_kernels_model(80)
    kernel = DPPlackettLuceGibbs(**PRIORS, max_clusters=80)
    data = jax.tree.map(lambda *x: jnp.stack(x), *map(OF_LISTS[kind], lists))

    @jax.jit
    @jax.vmap
    def replicate(key, truth, data):
        key_chain, key_ties = random.split(key)
        state = kernel.init(key_chain, 0, None, (data,), {})

        def sweep(state, _):
            state = kernel.sample(state, (data,), {})
            return state, state.overflow

        def keep(state, _):
            state, overflow = jax.lax.scan(sweep, state, None, length=THIN)
            return state, (jnp.stack([state.z[name] for name in names], -1), overflow)

        names = [*PRIORS, "num_clusters"]
        _, (draws, overflow) = jax.lax.scan(keep, state, None, length=DROPPED + KEPT)
        draws = draws[DROPPED:]
        return rank_of(key_ties, truth, draws), overflow.any()

    found, overflow = replicate(random.split(random.key(1), len(truths)), truths, data)
    assert not np.any(overflow)
    for k, quantity in enumerate([*PRIORS, "num_clusters"]):
        counts = np.bincount(np.asarray(found)[:, k], minlength=KEPT + 1)
        result = stats.chisquare(counts)
        assert result.pvalue > 1e-5, (quantity, counts)


# -- partial orders ------------------------------------------------------------------------------

SURVEYS, JUDGES, OFFERED, SHARE_TIED, PAIRS = 800, 30, 6, 0.2, 3
WARMUP, DRAWS, STEP = 60, 199, 4
THETA = dist.Gamma(2.0, 2.0)
ONE_POPULATION = {
    "plackett-luce": PlackettLuceGibbs(),
    "mallows": SliceGibbs(num_components=1, tied=True, concentration_prior=THETA),
}
PARAMETER = {"plackett-luce": "weights", "mallows": "shared_concentration"}


def surveys(family, key):
    """Parameters drawn from the prior, (surveys, k), and orderings of all items."""
    keys, shape = random.split(key, 3), (SURVEYS, JUDGES)
    if family == "plackett-luce":
        weights = dist.Dirichlet(jnp.ones(OFFERED)).sample(keys[0], (SURVEYS,))
        lists = rd.TopTPlackettLuce(jnp.log(weights), OFFERED).sample(keys[1], (JUDGES,))
        return weights, np.asarray(lists).swapaxes(0, 1)
    theta = THETA.sample(keys[0], (SURVEYS, 1))
    centers = rd.RandomPermutation(OFFERED).sample(keys[2], (SURVEYS,))
    stages = jnp.broadcast_to(theta, (SURVEYS, OFFERED - 1))
    lists = rd.GeneralizedMallows(centers, stages).sample(keys[1], (JUDGES,))
    missing = np.arange(OFFERED).sum() - np.asarray(lists).sum(-1, keepdims=True)
    whole = np.concatenate([lists, missing], -1) if lists.shape[-1] < OFFERED else lists
    assert whole.shape[:2] == shape[::-1]
    return theta, np.asarray(whole).swapaxes(0, 1)


def with_ties(orderings, rng):
    """Each item is tied with the next one by lot."""
    steps = rng.random(orderings.shape) >= SHARE_TIED
    ranks = np.empty_like(orderings)
    np.put_along_axis(ranks, orderings, steps.cumsum(-1).astype(orderings.dtype), -1)
    return PartialOrders.from_ranks(ranks.reshape(-1, OFFERED), ties="any")


def with_pairs(orderings, rng):
    """Each judge compares some pairs, drawn by lot."""
    lists = orderings.reshape(-1, OFFERED)
    places = np.sort(
        rng.permuted(np.tile(np.arange(OFFERED), (len(lists), PAIRS, 1)), axis=-1)[..., :2], -1
    )
    items = np.take_along_axis(lists[:, None], places, -1).reshape(-1, 2)
    table = pd.DataFrame(items, columns=["winner", "loser"])
    table["judge"] = np.repeat(np.arange(len(lists)), PAIRS)
    return PartialOrders.from_pairs(table, "judge", items=range(OFFERED))


def with_mistakes(orderings, mistakes, rng):
    """Each judge compares some pairs, drawn by lot, and is mistaken in some of them."""
    lists = orderings.reshape(-1, OFFERED)
    shape = len(lists), 2 * PAIRS
    places = np.sort(rng.permuted(np.tile(np.arange(OFFERED), (*shape, 1)), axis=-1)[..., :2], -1)
    items = np.take_along_axis(lists[:, None], places, -1)
    is_wrong = rng.random(shape) < np.repeat(mistakes, JUDGES)[:, None]
    items = np.where(is_wrong[..., None], items[..., ::-1], items).reshape(-1, 2)
    table = pd.DataFrame(items, columns=["winner", "loser"])
    table["judge"] = np.repeat(np.arange(len(lists)), 2 * PAIRS)
    return Comparisons.from_pairs(table, "judge", items=range(OFFERED)).of_all_items()


@cache
def ranks_in_surveys(family):
    """A compiled function of partial orders and parameters of many surveys."""
    kernel, parameter = ONE_POPULATION[family], PARAMETER[family]

    @jax.jit
    @jax.vmap
    def ranks(key, orders, truth):
        key_chain, key_ties = random.split(key)
        state = kernel.init(key_chain, 0, None, (orders,), {})

        def sweep(_, state):
            return kernel.sample(state, (orders,), {})

        def keep(state, _):
            state = jax.lax.fori_loop(0, STEP, sweep, state)
            z = state.z
            return state, jnp.append(z[parameter], z.get("mistake_probability", jnp.zeros(0)))

        state = jax.lax.fori_loop(0, WARMUP, sweep, state)
        _, draws = jax.lax.scan(keep, state, None, length=DRAWS)
        return rank_of(key_ties, truth, draws)

    return ranks


@pytest.mark.parametrize("table", [with_ties, with_pairs])
@pytest.mark.parametrize("family", ONE_POPULATION)
def test_intervals_of_partial_orders(family, table):
    """90% intervals hold the truth in 90% of the surveys."""
    truth, orderings = surveys(family, random.key(2))
    orders = table(orderings, np.random.default_rng(3))
    if family == "mallows":
        orders = orders.of_all_items()
    leaves, _ = jax.tree.flatten(orders)
    structure = jax.tree.structure(PartialOrders.from_buckets([[0]] * JUDGES, OFFERED))
    if orders.unlisted == "not-offered":
        structure = jax.tree.structure(
            PartialOrders.from_buckets([[0]] * JUDGES, OFFERED, unranked="not-offered")
        )
    leaves = [np.asarray(x).reshape(SURVEYS, JUDGES, *x.shape[1:]) for x in leaves]
    data = jax.tree.unflatten(structure, leaves)
    check_intervals(ranks_in_surveys(family)(random.split(random.key(4), SURVEYS), data, truth))


def check_intervals(found):
    """Of 200 ranks that are equally likely, those from 10 to 189 are 90%.

    The shares of 800 surveys have a standard deviation of 1.1%: 84% and 96% are 5.6 of them off.
    """
    held = (found >= 10) & (found < 190)
    few, shares = held[:200].mean(0), held.mean(0)
    print(f"intervals of 90% hold the truth in {few} of 200 surveys, and in {shares} of {SURVEYS}")
    assert np.all((shares >= 0.84) & (shares <= 0.96)), shares


@pytest.mark.parametrize("family", ONE_POPULATION)
def test_intervals_of_comparisons(family):
    """The same of comparisons with mistakes, also for the probability of a mistake."""
    truth, orderings = surveys(family, random.key(5))
    rng, prior = np.random.default_rng(6), stats.beta(1.0, 3.0)
    mistakes = prior.ppf(prior.cdf(0.5) * rng.random(SURVEYS))
    given = with_mistakes(orderings, mistakes, rng)
    few = pd.DataFrame({"judge": np.arange(JUDGES), "winner": 0, "loser": 1})
    few = Comparisons.from_pairs(few, "judge", items=range(OFFERED)).of_all_items()
    leaves = [np.asarray(x).reshape(SURVEYS, JUDGES, *x.shape[1:]) for x in jax.tree.leaves(given)]
    data = jax.tree.unflatten(jax.tree.structure(few), leaves)
    truth = jnp.concatenate([truth, jnp.asarray(mistakes, float)[:, None]], axis=1)
    check_intervals(ranks_in_surveys(family)(random.split(random.key(7), SURVEYS), data, truth))
