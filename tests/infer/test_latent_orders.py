"""Kernels of partial orders: the orderings behind them, and the posterior of all else."""

import contextlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.chains import sampled, sweeps_of_any
from helpers.densities import log_density_at
from helpers.enumeration import discrepancies, partitions
from helpers.kernel_tests import each_of, run_chains
from helpers.latent_orders import (
    BOTTOM,
    CENTER,
    GAP,
    LONE_PAIR,
    N_SHAPE,
    THETA,
    WEIGHTS,
    extensions,
    indicators_of_orderings,
    lists_of,
    mallows_expectations,
    of_pairs,
    plackett_luce_expectations,
)
from helpers.lists import assert_frequencies, log_prob_twin, mallows_twin, simplex
from helpers.ranking_kernels import NU, R
from scipy.special import gammaln

from numpyro_rankings import PartialOrders, Rankings, Run, StoreError
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    TemperedMixture,
    latent_orders,
)
from numpyro_rankings.infer.base import GibbsState
from numpyro_rankings.infer.latent_orders import (
    MallowsLists,
    Partition,
    PlackettLuceLists,
    _draw_items,
    draw_labels_and_orderings,
    draw_orderings,
    plackett_luce_lists,
)
from numpyro_rankings.infer.mallows import level_items

COPIES = 4000
OTHERS = [0, 1, 2, 3, 4]  # a further judge, beside whom short lists have padding
ORDERS = {
    "tie at the top": [[0, 1], 2, 3, 4],
    "two buckets": [[1, 3], [0, 2, 4]],
    "all tied": [[0, 1, 2, 3, 4]],
    "top with a tie": [3, [0, 4]],
    "strict top": [4, 2],
}


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_orderings_have_their_conditional(family):
    """The linear extensions of each kind of partial order, as often as lists are likely.

    Many judges say the same, and start at the same ordering.
    """
    counts, keys = [COPIES, 1], jax.random.split(jax.random.key(0), 12)
    kinds = [PartialOrders.from_buckets([x, OTHERS], 5, counts=counts) for x in ORDERS.values()]
    pairs = N_SHAPE, [[3, 1], [0, 4]]
    kinds += [of_pairs(x, [[0, 1]], num_items=5, counts=counts) for x in pairs]
    draw = jax.jit(draw_orderings)
    for orders in kinds:
        if family == "mallows" and orders.offered() is not None:
            orders = orders.of_all_items()
        many = orders.expand()
        lists, orderings = lists_of(family, many), many.listed
        for key in keys:
            orderings = draw(key, many, orderings, lists)
        known, width = extensions(orders, 0), orderings.shape[1]
        offered = None if orders.offered() is None else np.asarray(orders.offered()[0])
        log_probs = [
            np.log(mallows_twin(x, CENTER, THETA))
            if family == "mallows"
            else log_prob_twin(x, WEIGHTS, offered=offered)
            for x in known
        ]
        padded = [x + [-1] * (width - len(x)) for x in known]
        assert_frequencies(orderings[:COPIES], padded, log_probs)


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_a_sweep_moves_each_item_once(family):
    """One sweep from a known ordering, by enumeration of the moves of one item after another."""
    orders = PartialOrders.from_buckets([[[1, 3], [0, 2, 4]], OTHERS], 5, counts=[COPIES, 1])
    known, items = extensions(orders, 0), np.asarray(orders.listed[0]).tolist()
    probability = np.array(
        [
            mallows_twin(x, CENTER, THETA)
            if family == "mallows"
            else np.exp(log_prob_twin(x, WEIGHTS))
            for x in known
        ]
    )
    law = np.array([float(x == items) for x in known])
    for item in items:
        rest = [[k for k in x if k != item] for x in known]
        moves = np.array([[one == two for two in rest] for one in rest]) * probability
        law = law @ (moves / moves.sum(1, keepdims=True))
    many = orders.expand()
    found = draw_orderings(jax.random.key(1), many, many.listed, lists_of(family, many))
    possible = law > 0
    assert_frequencies(found[:COPIES], np.array(known)[possible], np.log(law[possible]))


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_proposed_orderings_have_the_told_probability(family):
    """W is the likelihood over the probability of the proposal, of each ordering that agrees."""
    kinds = [PartialOrders.from_buckets([x, OTHERS], 5) for x in ORDERS.values()]
    kinds += [of_pairs(x, [[0, 1]], num_items=5) for x in (N_SHAPE, [[3, 1], [0, 4]])]
    draw = jax.jit(_draw_items)
    for orders in kinds:
        if family == "mallows" and orders.offered() is not None:
            orders = orders.of_all_items()
        known, width = extensions(orders, 0), orders.listed.shape[1]
        offered = None if orders.offered() is None else np.asarray(orders.offered()[0])
        logs = [
            np.log(mallows_twin(x, CENTER, THETA))
            if family == "mallows"
            else log_prob_twin(x, WEIGHTS, offered=offered)
            for x in known
        ]
        # many judges follow each ordering, and others are drawn beside them
        copies = COPIES // len(known) + 1
        size = len(known) * copies
        many = orders._take(np.zeros(size, int), np.ones(size, int))
        padded = np.array([x + [-1] * (width - len(x)) for x in known])
        lists = lists_of(family, many)
        both = jax.tree.map(lambda x: x if x.shape[-1] == 1 else jnp.concatenate([x, x], -1), lists)
        followed = jnp.asarray(np.repeat(padded, copies, axis=0))
        items, log_sums = map(np.asarray, draw(jax.random.key(3), many, followed, both))
        log_probs = np.array(logs) - log_sums[:size:copies]
        assert np.exp(log_probs).sum() == pytest.approx(1.0, abs=1e-5)
        drawn = np.take_along_axis(np.asarray(many.listed), items.T[size:], axis=1)
        assert_frequencies(drawn, padded, log_probs)
        which = [padded.tolist().index(x) for x in drawn.tolist()]
        np.testing.assert_allclose(log_sums[size:], log_sums[:size:copies][which], atol=1e-4)


FOUR = PartialOrders.from_buckets([[[0, 1], 2], [[0, 1, 2]], [2], [1, 0]], 3)
OF_LABELS = {
    "plackett-luce": np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]),
    "mallows": (np.array([[0, 1, 2], [2, 0, 1]]), np.array([[1.2, 0.4], [0.3, 0.8]])),
}


def lists_of_labels(family, labels):
    if family == "plackett-luce":
        return plackett_luce_lists(FOUR, labels, jnp.asarray(OF_LABELS[family]))
    centers, theta = map(jnp.asarray, OF_LABELS[family])
    places = jnp.argsort(centers, axis=1)[labels[:, None], jnp.maximum(FOUR.listed, 0)]
    theta = jnp.pad(theta, ((0, 0), (0, 1)))[labels]
    return MallowsLists(places.T, theta.T, FOUR.lengths, jnp.full(4, 3))


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_labels_and_orderings_keep_their_joint_law(family):
    """All labels and orderings of four judges, before and after one move."""
    kappa, lists = 3.0, [extensions(FOUR, row) for row in range(4)]
    known, law = [], []
    for labels in itertools.product(range(2), repeat=4):
        prior = sum(gammaln(n + kappa) for n in np.bincount(labels, minlength=2) if n)
        for orderings in itertools.product(*lists):
            log_prob = prior
            for c, x in zip(labels, orderings, strict=True):
                log_prob += (
                    log_prob_twin(x, OF_LABELS[family][c])
                    if family == "plackett-luce"
                    else np.log(mallows_twin(x, *(y[c] for y in OF_LABELS[family])))
                )
            known.append([*labels, *(k for x in orderings for k in [*x, -1, -1][:3])])
            law.append(log_prob)
    size = 40000
    rng = np.random.default_rng(0)
    start = rng.choice(len(law), size, p=np.exp(law - np.logaddexp.reduce(law)))
    start = np.array(known, np.int32)[start]

    def move(key, labels, orderings):
        partition = Partition(labels, 2, jnp.asarray(kappa))
        return draw_labels_and_orderings(
            key, FOUR, orderings, partition, lambda x: lists_of_labels(family, x)
        )

    keys = jax.random.split(jax.random.key(0), size)
    labels, orderings = jax.jit(jax.vmap(move))(keys, start[:, :4], start[:, 4:].reshape(-1, 4, 3))
    end = np.concatenate([labels, np.reshape(orderings, (size, 12))], axis=1)
    assert_frequencies(end, known, law)
    assert (end[:, :4] != start[:, :4]).any(1).mean() > 0.03
    assert (end[:, 4:] != start[:, 4:]).any(1).mean() > 0.1


# -- the posterior of labels and parameters ------------------------------------------------------

JUDGES = [[[0, 1], 2], [2], [1, 0], [0, 1, 2]]
OFFERED = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1]], bool)
STRICT = [[0, 1, 2, 3], [2, 0, 1, 3], [3, 2, 1, 0], [1, 0, 3, 2]]
# Both tables have one shape, so that a kernel has one program; the second one says everything.
OF_PAIRS = {
    "no buckets": of_pairs(N_SHAPE, LONE_PAIR, BOTTOM, GAP, num_items=4),
    "strict": of_pairs(*(itertools.pairwise(x) for x in STRICT), num_items=4),
}
BUCKETS = {
    "mallows": PartialOrders.from_buckets(JUDGES, 3),
    "plackett-luce": PartialOrders.from_buckets(JUDGES, 3, choice_sets=OFFERED),
}
CHAINS, DRAWS, DROPPED = 64, 400, 30
# A |z| with 63 degrees of freedom is above it with probability 10^-7, and there are 100 at most.
TOO_FAR = 6.0
SMALL = {"num_marginal_steps": 6}
NONE = {"num_marginal_steps": 0}
ALPHA = 1.3
MALLOWS = {
    "slice": lambda r: SliceGibbs(ALPHA, NU, r, max_clusters=6, **NONE),
    "slice-parallel": lambda r: SliceGibbs(
        ALPHA, NU, r, max_clusters=40, assignment="parallel", **SMALL
    ),
    "slice-finite": lambda r: SliceGibbs(ALPHA, NU, r, num_components=2, **SMALL),
    "slice-one": lambda r: SliceGibbs(ALPHA, NU, r, num_components=1),
    "beta": lambda r: BetaGibbs(ALPHA, NU, r, max_clusters=6, **NONE),
    "beta-one": lambda r: BetaGibbs(ALPHA, NU, r, num_components=1),
}
SHAPE = np.array([0.5, 1.0, 1.5, 2.0])
TWO = {"alpha": ALPHA, "num_components": 2}
PLACKETT_LUCE = {
    "plackett-luce": lambda shape: PlackettLuceGibbs(shape),
    "plackett-luce-mixture": lambda shape: PlackettLuceGibbs(shape, **TWO, **NONE),
    "mixture-marginal": lambda shape: PlackettLuceGibbs(shape, **TWO, **SMALL),
}


def cases(names, quick):
    """Each kernel with the judges of pairs, and a quick one with those of buckets too."""
    slow = [pytest.param(name, "pairs", marks=pytest.mark.slow) for name in names]
    return [pytest.param(quick, "buckets"), *slow]


def tables_of(family, judges):
    return OF_PAIRS if judges == "pairs" else {judges: BUCKETS[family]}


def log_prior_of(num_items):
    """The conjugate prior of the Mallows kernels."""

    def log_prior(theta, left):
        log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
        return -NU * (R[num_items - 1 - left] * theta + log_psi)

    return log_prior


def kernel_of(name, orders):
    """A kernel by name, with priors for that many items."""
    if name in MALLOWS:
        return MALLOWS[name](R[: orders.num_items - 1])
    return PLACKETT_LUCE[name](SHAPE[: orders.num_items])


def run_of(kernel, orders, sweeps):
    """A run with the orderings of all draws."""
    return sampled(
        kernel,
        orders,
        key=jax.random.key(1),
        num_samples=DRAWS,
        num_chains=CHAINS,
        num_warmup=DROPPED,
        sweeps=sweeps,
    )


def discrepancies_of(kernel, mcmc, orders):
    """Largest |z| of partition, parameters and orderings in a run."""
    number, samples = kernel.num_components, mcmc.get_samples(group_by_chain=True)
    orderings = mcmc.get_extra_fields(group_by_chain=True)["orderings"]
    if isinstance(kernel, PlackettLuceGibbs):
        shape = SHAPE[: orders.num_items]
        expected = plackett_luce_expectations(orders, shape, ALPHA, number)
        first = samples["weights"] if number == 1 else samples["weights"][:, :, 0]
        none = np.zeros((*first.shape[:2], len(orders)), int)
        table = np.array(list(partitions(len(orders))))
        found = {
            "partition": (samples.get("assignments", none)[:, :, None] == table).all(-1),
            "weights": np.asarray(first, float),
        }
    else:
        orders = orders if orders.offered() is None else orders.of_all_items()
        log_prior = log_prior_of(orders.num_items)
        twin, expected = mallows_expectations(orders, log_prior, ALPHA, number)
        found = twin.indicators(samples)
    found["orderings"] = indicators_of_orderings(orders, orderings)
    return discrepancies(found, expected)


def program_of(kernel):
    """Compiled sweeps for data of any one shape."""
    sweeps = sweeps_of_any(kernel, num_draws=DROPPED + DRAWS, extra_fields=["orderings"])
    return lambda orders: lambda state: sweeps(state, (orders,))


def assert_posterior(kernel, data):
    """Each table's posterior is that by enumeration; return the runs."""
    program, runs = program_of(kernel), {}
    for kind, orders in data.items():
        runs[kind] = run_of(kernel, orders, program(orders))
        found = discrepancies_of(kernel, runs[kind], orders)
        assert max(found.values()) < TOO_FAR, (kind, found)
    return runs


@pytest.mark.parametrize(("name", "judges"), cases(MALLOWS, "slice-finite"))
def test_mallows_posterior_by_enumeration(name, judges):
    data = tables_of("mallows", judges)
    kind, orders = next(iter(data.items()))
    kernel, n = kernel_of(name, orders), orders.num_items
    states = assert_posterior(kernel, data)[kind].last_state
    whole = orders if orders.offered() is None else orders.of_all_items()
    assert all(whole.agree(x).all() for x in states.orderings[:4])
    density = log_density_at(kernel.model, orders)
    z = {site: np.asarray(value)[0] for site, value in states.z.items()}
    z["rankings"] = states.orderings[0][:, : n - 1]
    assert float(z["log_joint"]) == pytest.approx(float(density(z)), rel=1e-4)
    wrong = np.array(states.orderings[0])
    wrong[-1] = wrong[-1, ::-1]  # who lists all items
    z["rankings"] = wrong[:, : n - 1]
    assert float(density(z)) == -np.inf


@pytest.mark.parametrize(("name", "judges"), cases(PLACKETT_LUCE, "mixture-marginal"))
def test_plackett_luce_posterior_by_quadrature(name, judges):
    data = tables_of("plackett-luce", judges)
    assert_posterior(kernel_of(name, next(iter(data.values()))), data)


# Each fault replaces an attribute of a class or module by one that is made of the right one.
FAULTS = {
    "plackett-luce": {
        "mass without the item itself": (
            (PlackettLuceLists, "log_places"),
            lambda right: lambda lists, others, value: right(lists, others, 0.0 * value),
        ),
        "last place of all left out": (
            (latent_orders, "_draw_place"),
            lambda right: (
                lambda uniform, weights, low, high: right(
                    uniform, weights, low, jnp.maximum(low, high - 1)
                )
            ),
        ),
        "first place of all left out": (
            (latent_orders, "_draw_place"),
            lambda right: (
                lambda uniform, weights, low, high: right(
                    uniform, weights, jnp.minimum(low + 1, high), high
                )
            ),
        ),
    },
    "slice-one": {
        "all places alike": (
            (MallowsLists, "log_places"),
            lambda right: lambda lists, others, value: 0.0 * right(lists, others, value),
        ),
        "concentration of the next stage": (
            (MallowsLists, "log_places"),
            lambda right: (
                lambda lists, others, value: right(
                    lists._replace(concentration=jnp.roll(lists.concentration, -1, axis=0)),
                    others,
                    value,
                )
            ),
        ),
        "neighbours of the center exchanged always": (
            (level_items, "sum_by_label_in_blocks"),
            lambda right: lambda x, *args: right(jnp.where(x < 0, 0, x), *args),
        ),
        "neighbours exchanged in no ordering, as if in all": (
            (level_items, "_may_change_places"),
            lambda right: lambda orders, *_: jnp.ones(len(orders.listed), bool),
        ),
    },
    "plackett-luce-mixture": {
        "labels accepted always": (
            (latent_orders, "_draw_items"),
            lambda right: (
                lambda *args: tuple(
                    x * keep for x, keep in zip(right(*args), (1, 0.0), strict=True)
                )
            ),
        ),
        "orderings drawn with labels of others": (
            (PlackettLuceGibbs, "_lists"),
            lambda right: (
                lambda kernel, z, args, kwargs, orders: right(
                    kernel, z | {"assignments": jnp.roll(z["assignments"], 1)}, args, kwargs, orders
                )
            ),
        ),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_wrong_moves_are_found(name, monkeypatch):
    """The posterior of the same judges, by the same enumeration, with one move spoiled."""
    orders = OF_PAIRS["no buckets"]
    kernel = kernel_of(name, orders)
    for fault, ((owner, attribute), spoil) in FAULTS[name].items():
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, spoil(getattr(owner, attribute)))
            mcmc = run_of(kernel, orders, program_of(kernel)(orders))
        found = discrepancies_of(kernel, mcmc, orders)
        assert max(found.values()) > 1.5 * TOO_FAR, (fault, found)


def test_items_that_all_judges_tie_change_places():
    """Each of the two is first in half of the posterior, however many judges there are."""
    orders = PartialOrders.from_buckets([[0, [1, 2], 3]] * 60, num_items=4)
    mcmc = sampled(
        SliceGibbs(num_components=1),
        orders,
        key=jax.random.key(0),
        num_samples=300,
        num_chains=4,
        num_warmup=30,
    )
    center = np.asarray(mcmc.get_samples(group_by_chain=True)["center"]).reshape(4, -1, 4)
    places = np.argsort(center, axis=-1)
    is_first = places[..., 1] < places[..., 2]
    assert abs(is_first.mean() - 0.5) < 0.15
    assert np.mean(np.diff(is_first.astype(int), axis=1) != 0) > 0.3


def test_tails_of_top_lists_by_quadrature():
    """Top-5 lists with the order of the rest drawn: θ as if the lists had ended there."""
    num_items, length, prior = 7, 5, dist.Gamma(2.0, 4.0)
    center, theta = np.arange(num_items), np.full(num_items - 1, 0.4)
    model = GeneralizedMallows(center, jnp.asarray(theta[:length]))
    lists = np.asarray(model.sample(jax.random.key(5), (8,)))
    places = np.argsort(list(itertools.permutations(range(num_items))), axis=1)
    at = places[:, lists]  # by center, list and stage
    later = np.arange(length)[:, None] < np.arange(length)
    earlier = (at[..., :, None] > at[..., None, :]) & later.T
    sums = (at - earlier.sum(-1)).sum((1, 2))  # of the codes, by center
    points = np.linspace(0.0, 4.0, 4001)[1:]
    limits = num_items - np.arange(length)
    log_psi = sum(np.log(np.exp(-np.outer(points, np.arange(k))).sum(1)) for k in limits)
    values, numbers = np.unique(sums, return_counts=True)
    likely = np.logaddexp.reduce(np.log(numbers) - np.outer(points, values), axis=1)
    log_prob = likely - len(lists) * log_psi + np.asarray(prior.log_prob(points))
    below = np.cumsum(np.exp(log_prob - log_prob.max()))
    below /= below[-1]
    quantiles = points[np.searchsorted(below, [0.1, 0.25, 0.5, 0.75, 0.9])]
    orders = PartialOrders.from_buckets(lists.tolist(), num_items).of_all_items()
    assert int(orders.has_ties.sum()) == len(lists)
    kernel = SliceGibbs(num_components=1, tied=True, concentration_prior=prior)
    mcmc = sampled(
        kernel, orders, key=jax.random.key(6), num_samples=600, num_chains=64, num_warmup=30
    )
    theta = mcmc.get_samples(group_by_chain=True)["shared_concentration"]
    found = discrepancies(
        {"theta": theta <= quantiles}, {"theta": np.interp(quantiles, points, below)}
    )
    assert found["theta"] < 5.0, found


# -- a pool of items, of which two are seen ------------------------------------------------------

POOL = PartialOrders.from_buckets([[[3, 1]], [3], [1, 3]], 6, counts=[2, 3, 1])


@pytest.mark.slow
def test_gamma_process_by_quadrature():
    """On the simplex of (p_1, p_3, p_*), where each list has as many factors p as it has items."""
    chosen, seen = np.array([3.0, 6.0]), POOL.of_listed_items()
    points, masses = simplex(np.array([*chosen, 0.7]))
    lists = [extensions(seen, row) for row in range(3)]
    for k, p in enumerate(points):
        terms = [np.logaddexp.reduce([log_prob_twin(x, p[:2], p[2]) for x in of]) for of in lists]
        masses[k] *= np.exp(np.asarray(POOL.counts) @ terms - chosen @ np.log(p[:2]))
    kernel = GammaProcessPlackettLuceGibbs(0.7)
    mcmc = sampled(
        kernel, POOL, key=jax.random.key(3), num_samples=400, num_chains=64, num_warmup=20
    )
    samples = mcmc.get_samples(group_by_chain=True)
    unseen = np.asarray(samples["unseen_weight"], float)[..., None]
    shares = np.concatenate([np.asarray(samples["weights"], float), unseen], axis=-1)
    found = discrepancies({"mean": shares}, {"mean": masses @ points / masses.sum()})
    assert max(found.values()) < 5.0, found


def test_mixture_of_pools():
    """The likelihood of each judge's list is that of the judge's cluster, and so is the density."""
    kernel = DPPlackettLuceGibbs(max_clusters=6, num_marginal_steps=0)
    mcmc = sampled(kernel, POOL, key=jax.random.key(0), num_samples=5, num_chains=2)
    z = {name: np.asarray(x)[1] for name, x in mcmc.last_state.z.items()}
    orders, labels = kernel._find_orders((POOL,), {}), z["assignments"]
    lists = kernel._lists({name: jnp.asarray(x) for name, x in z.items()}, (), {}, orders)
    listed = np.asarray(orders.listed)
    weights = np.where(listed >= 0, z["weights"][labels[:, None], listed], 0.0)
    np.testing.assert_allclose(lists.values, weights.T, rtol=1e-6)
    total = weights.sum(1) + np.asarray(lists.rest)
    np.testing.assert_allclose(total, 1.0, rtol=1e-5)
    z["rankings"] = mcmc.last_state.orderings[1]
    density = log_density_at(kernel.model, POOL)
    assert float(z["log_joint"]) == pytest.approx(float(density(z)), rel=1e-4)


# -- beside the other ways to run a kernel -------------------------------------------------------

GIVEN = PartialOrders.from_buckets([[[0, 1], 2], [[2, 3]], [3, 0]], 4, counts=[3, 2, 1])


def test_chains_are_the_same_by_every_method():
    """Sequential chains of written-out rows, vectorized ones of counts with traced data."""
    runs = [
        run_chains(
            PlackettLuceGibbs(),
            data,
            seed=4,
            chain_method=method,
            jit_model_args=method == "vectorized",
            num_warmup=2,
            num_samples=5,
            num_chains=2,
        ).get_samples()["weights"]
        for data, method in ((GIVEN.expand(), "sequential"), (GIVEN, "vectorized"))
    ]
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-4)


def test_a_run_is_resumed_to_the_last_bit(tmp_path):
    whole = Run(PlackettLuceGibbs(), GIVEN, key=jax.random.key(0), num_chains=2)
    whole.extend(20)
    with contextlib.closing(
        Run(PlackettLuceGibbs(), GIVEN, key=jax.random.key(0), num_chains=2, store=tmp_path / "a")
    ) as first:
        first.extend(12)
    other = PartialOrders.from_buckets([[[0, 1], 2], [[2, 3]], [0, 3]], 4, counts=[3, 2, 1])
    with pytest.raises(StoreError, match="the data of argument 1 differ"):
        Run.resume(tmp_path / "a", PlackettLuceGibbs(), other)
    with contextlib.closing(Run.resume(tmp_path / "a", PlackettLuceGibbs(), GIVEN)) as second:
        second.extend(8)
        for name, value in whole.get_samples().items():
            np.testing.assert_array_equal(second.get_samples()[name], value)
        data = second.to_inference_data()
    assert data.posterior.sizes["item"] == 4 and data.log_likelihood.sizes["ranking"] == 6
    assert data.posterior.attrs["data"] == "partial orders"


ONE_POPULATION = {
    "plackett-luce": PlackettLuceGibbs,
    "gamma-process": GammaProcessPlackettLuceGibbs,
    "slice": lambda: SliceGibbs(num_components=1),
}


@each_of(ONE_POPULATION, ["plackett-luce"])
def test_rankings_are_drawn_as_they_are(name):
    """Partial orders that say all are the rankings: the draws are those of the rankings."""
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 3], [1]], num_items=4, counts=[2, 1, 2])
    orders, kernel = PartialOrders.from_rankings(rankings), ONE_POPULATION[name]()
    state = kernel.init(jax.random.split(jax.random.key(0), 2), 0, None, (orders,), {})
    fields = {field: getattr(state, field) for field in GibbsState._fields}
    # the other half of each key is for the orderings, which stay
    rng_key, _ = jnp.moveaxis(jax.vmap(jax.random.split)(state.rng_key), 1, 0)
    strict = GibbsState(**fields | {"rng_key": rng_key})
    found = jax.jit(lambda state: kernel.sample(state, (orders,), {}))(state)
    one_by_one = rankings.expand()
    expected = jax.jit(lambda state: kernel.sample(state, (one_by_one,), {}))(strict)
    np.testing.assert_array_equal(found.orderings, np.stack([orders.expand().listed] * 2))
    assert set(found.z) == set(expected.z)
    for site, value in expected.z.items():
        np.testing.assert_allclose(found.z[site], value, rtol=1e-5, atol=1e-6, err_msg=site)
        moved = np.any(np.asarray(value) != np.asarray(strict.z[site]))
        assert moved or site not in ("weights", "concentration")


@pytest.mark.parametrize(
    "kernel",
    [
        TemperedMixture("mallows", 2),
        PlackettLuceGibbs(model=lambda r: None),
    ],
)
def test_kernels_that_take_rankings_alone(kernel):
    with pytest.raises(TypeError, match=r"takes Rankings, and no PartialOrders; SliceGibbs, Beta"):
        kernel.init(jax.random.key(0), 0, None, (GIVEN,), {})
