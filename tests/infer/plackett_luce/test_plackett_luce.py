"""Plackett–Luce: the distribution, the sums over stages, the maximum, and the Gibbs kernel."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from helpers.enumeration import (
    OUTCOME_NOISE,
    OUTCOME_SPREAD,
    discrepancies,
    log_partition,
    outcome_of,
    partitions,
)
from helpers.lists import assert_frequencies, log_prob_twin, simplex, top_lists
from helpers.refusals import assert_refused
from jax import random
from numpyro.infer import MCMC, NUTS, SVI, Gibbs, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from scipy import stats
from scipy.optimize import minimize

import numpyro_rankings.distributions as rd
from numpyro_rankings import Rankings, RankingsError, load_dataset, plackett_luce_map
from numpyro_rankings.datasets import simulate_plackett_luce_mixture
from numpyro_rankings.infer import PlackettLuceGibbs
from numpyro_rankings.infer.plackett_luce import start as starts
from numpyro_rankings.infer.plackett_luce.data import as_data, log_likelihood_of
from numpyro_rankings.infer.plackett_luce.waiting_times import sum_times_in_play
from numpyro_rankings.ops import choices as ops
from numpyro_rankings.posterior.partitions import canonical_labels

WEIGHTS = np.array([0.35, 0.3, 0.2, 0.1, 0.05])


# -- twins ---------------------------------------------------------------------------------------


def stages_twin(rankings, pool):
    """(row, items in play, item chosen) of every stage that had something to choose from."""
    for row, ranking in enumerate(np.asarray(rankings.orderings)):
        offered = rankings.choice_sets
        left = [k for k in range(rankings.num_items) if offered is None or offered[row, k]]
        for item in ranking[ranking >= 0]:
            if len(left) > 1 or pool:
                yield row, list(left), item
            left.remove(item)


# -- the distribution ----------------------------------------------------------------------------


def test_sums_to_one_at_every_length():
    d = rd.TopTPlackettLuce(np.log(WEIGHTS[:4]) + 3.0, 4)
    every = [top_lists(4, length, 4) for length in range(1, 5)]
    together = np.asarray(d.log_prob(np.concatenate(every)))
    of_length = np.split(together, np.cumsum([len(lists) for lists in every])[:-1])
    for lists, log_probs in zip(every, of_length, strict=True):
        twin = [log_prob_twin(x, WEIGHTS[:4]) for x in lists]
        np.testing.assert_allclose(log_probs, twin, rtol=1e-5, atol=1e-5)
        assert abs(np.exp(log_probs).sum() - 1) < 1e-5
    shorter = rd.TopTPlackettLuce(np.log(WEIGHTS[:4]), 2).log_prob(top_lists(4, 2))
    np.testing.assert_allclose(shorter, of_length[1], rtol=1e-5)


def draws_of(d, seed):
    """20,000 of them, in one program."""
    return jax.jit(lambda key: d.sample(key, (20_000,)))(random.key(seed))


def lists_with_pool(num_items, length):
    every = itertools.product(range(num_items + 1), repeat=length)
    known = [
        [x for x in ranking if x < num_items]
        for ranking in itertools.product(range(num_items + 1), repeat=length)
    ]
    return np.array([x for x, k in zip(every, known, strict=True) if len(set(k)) == len(k)])


def test_unseen_items():
    lists = lists_with_pool(3, 3)
    d = rd.TopTPlackettLuce(np.log(WEIGHTS[:3]), 3, np.log(0.4))
    twin = [log_prob_twin(x, WEIGHTS[:3], 0.4) for x in lists]
    np.testing.assert_allclose(d.log_prob(lists), twin, rtol=1e-5)
    assert abs(np.exp(twin).sum() - 1) < 1e-12
    impossible = np.array([[3, 4, 3], [1, 3, 1]])
    possible = jax.jit(lambda x: d.support(x))(np.concatenate([lists, impossible]))
    np.testing.assert_array_equal(possible, [*[True] * len(lists), False, False])
    assert_frequencies(draws_of(d, 0), lists, twin)
    # lists may then be longer than there are items
    d = rd.TopTPlackettLuce(np.log(WEIGHTS[:1]), 3, np.log(0.4))
    assert float(d.log_prob(np.array([1, 0, 1]))) == pytest.approx(
        log_prob_twin([1, 0, 1], WEIGHTS[:1], 0.4), rel=1e-5
    )


def test_choice_sets():
    offered = np.array([1, 0, 1, 1], bool)
    d = rd.TopTPlackettLuce(np.log(WEIGHTS[:4]), 4, choice_set=offered)
    lists = np.array([x for x in top_lists(4, 3, 4) if 1 not in x])
    log_probs = d.log_prob(lists)
    twin = [log_prob_twin(x, WEIGHTS[:4], offered=offered) for x in lists]
    np.testing.assert_allclose(log_probs, twin, rtol=1e-5)
    assert d.log_prob(np.array([0, 1, 2, -1])) == -np.inf
    samples = np.asarray(draws_of(d, 0))
    assert np.all(samples[:, 3] == -1)  # three items were offered
    assert_frequencies(samples, lists, log_probs)
    # one list, a batch of choice sets and of pools
    batch = rd.TopTPlackettLuce(
        np.log(WEIGHTS[:4]), 2, np.log([0.1, 0.5]), np.array([[[1, 1, 1, 1]], [[1, 0, 0, 1]]], bool)
    )
    assert (batch.batch_shape, batch.event_shape) == ((2, 2), (2,))
    found = np.asarray(batch.log_prob(np.array([3, 0])))
    for i, j in itertools.product(range(2), range(2)):
        expected = log_prob_twin([3, 0], WEIGHTS[:4], [0.1, 0.5][j], batch.choice_set[i, 0])
        assert float(found[i, j]) == pytest.approx(expected, rel=1e-5)


def test_samples():
    for length in (1, 3):
        d = rd.TopTPlackettLuce(np.log(WEIGHTS[:4]), length)
        lists = top_lists(4, length)
        samples = draws_of(d, length)
        assert samples.dtype == jnp.int32
        assert_frequencies(samples, lists, d.log_prob(lists))


def test_all_but_a_billionth_listed():
    """Float32 would lose what is left in the difference of two sums."""
    weights = np.array([0.6, 0.4, 1e-9, 2e-10, 5e-10])
    lists = np.array([[0, 1, 2, -1], [1, 0, 3, 4], [0, 1, 4, 2]])
    twin = [log_prob_twin(x, weights) for x in lists]
    d = rd.TopTPlackettLuce(np.log(weights), 4)
    np.testing.assert_allclose(d.log_prob(lists), twin, rtol=1e-5)
    rankings = Rankings.from_orderings(lists, num_items=5)

    @jax.jit
    def table_and_masses(weights):
        choices, rows = as_data(rankings).choices, jnp.arange(3)
        table = ops.log_choice_likelihoods(choices, weights, None, jnp.array(1))[0]
        return table, ops.stage_masses(choices, rows, 0 * rows, weights, None)

    table, masses = table_and_masses(weights[None].astype(np.float32))
    np.testing.assert_allclose(table, twin, rtol=1e-5)
    np.testing.assert_allclose(masses[2], [1.7e-9, 1.7e-9, 1.7e-9], rtol=1e-4)


def test_gradient():
    """Finite differences of the twin, also where all items are listed or not all offered."""
    logits = np.log(WEIGHTS[:4])
    cases = [([2, 0, 1, 3], None), ([2, 0, -1, -1], None), ([0, 3, -1, -1], [1, 1, 0, 1])]

    def log_probs(x):
        for ranking, offered in cases:
            chosen = None if offered is None else np.array(offered, bool)
            d = rd.TopTPlackettLuce(x, 4, choice_set=chosen, validate_args=False)
            yield d.log_prob(np.array(ranking))

    slopes = jax.jit(jax.jacobian(lambda x: jnp.stack(list(log_probs(x)))))(logits)
    for (ranking, offered), found in zip(cases, np.asarray(slopes), strict=True):
        for k in range(4):
            step = 1e-5 * np.eye(4)[k]
            up, down = (
                log_prob_twin(ranking, np.exp(logits + s), 0.0, offered) for s in (step, -step)
            )
            assert float(found[k]) == pytest.approx((up - down) / 2e-5, abs=1e-4)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.zeros(3), 4), "3 items cannot have length 4"),
        ((np.zeros(3), 0), "length must be a positive whole number"),
        ((np.zeros(3), 1.5), "length must be a positive whole number, got 1.5"),
        ((np.float32(0.0), 1), "one for each item"),
        ((np.array([0.0, np.nan]), 1), "log_weights"),
        ((np.zeros(3), 2, np.inf), "log_unseen_weight"),
        ((np.zeros(3), 2, None, np.ones(4, bool)), r"shape \(…, 3\)"),
        ((np.zeros(3), 2, None, np.array([0, 1, 2])), "choice_set"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        rd.TopTPlackettLuce(*arguments)


@pytest.mark.slow
def test_covariates_under_nuts_and_svi():
    """The maximum of the likelihood in β is where both look for it."""
    features = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [-1.0, 0.5]])
    beta = np.array([0.8, -0.5])
    lists = rd.TopTPlackettLuce(features @ beta, 3).sample(random.key(0), (400,))

    def model(lists):
        beta = numpyro.sample("beta", dist.Normal(0, 10).expand((2,)).to_event(1))
        with numpyro.plate("judge", len(lists)):
            numpyro.sample("lists", rd.TopTPlackettLuce(features @ beta, 3), obs=lists)

    def cost(beta):
        return -sum(log_prob_twin(x, np.exp(features @ beta)) for x in np.asarray(lists))

    best = minimize(cost, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4})

    def log_likelihood(beta):
        return rd.TopTPlackettLuce(features @ beta, 3).log_prob(lists).sum()

    curvature = -jax.hessian(log_likelihood)(jnp.asarray(best.x))
    sd = np.sqrt(np.diag(np.linalg.inv(curvature)))
    mcmc = MCMC(NUTS(model), num_warmup=200, num_samples=500, progress_bar=False)
    mcmc.run(random.key(1), lists)
    found = mcmc.get_samples()["beta"]
    assert np.all(np.abs(found.mean(0) - best.x) < 0.3 * sd)
    np.testing.assert_allclose(found.std(0), sd, rtol=0.25)
    svi = SVI(model, guide := AutoNormal(model), optax.adam(0.03), Trace_ELBO(num_particles=8))
    result = svi.run(random.key(2), 600, lists, progress_bar=False)
    assert np.all(np.abs(guide.median(result.params)["beta"] - best.x) < 1.0 * sd)


# -- sums over stages ----------------------------------------------------------------------------

LISTS = [[0, 2, 1, 3], [1], [3, 0, 2], [2, 1], [0, 2], [1]]
COUNTS = [3, 1, 2, 5, 1, 4]
OFFERED = np.array(
    [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 1], [1, 0, 1, 0], [0, 1, 0, 0]], bool
)


@pytest.mark.parametrize("tabled", [False, True])
@pytest.mark.parametrize("subsets", [False, True])
@pytest.mark.parametrize("pool", [None, [0.3, 0.1]])
def test_sums_over_stages(tabled, subsets, pool, monkeypatch):
    monkeypatch.setattr(ops, "_MOST_TABLED", 12 if tabled else 0)
    rankings = Rankings.from_orderings(
        LISTS, num_items=4, counts=COUNTS, choice_sets=OFFERED if subsets else None
    )
    weights = np.array([[0.3, 0.2, 0.1, 0.1], [0.05, 0.05, 0.6, 0.2]])
    outside = np.zeros(2) if pool is None else np.array(pool)
    labels = np.arange(rankings.num_rankings) % 2

    @jax.jit
    def sums(labels, weights, outside):
        data = as_data(rankings, pool is not None)
        arguments = data, data.membership(labels, 2), weights, None if pool is None else outside
        found = ops.times_chosen(data.choices, *arguments[1], 2, 4)
        table = ops.log_choice_likelihoods(data.choices, *arguments[2:], jnp.array(2))
        total = log_likelihood_of(*arguments)[0]
        return *sum_times_in_play(None, *arguments), found, table, total

    in_play, totals, found, table, found_total = sums(labels, weights, outside)

    chosen, expected, all_times = np.zeros((2, 4)), np.zeros((2, 4)), np.zeros(2)
    copies = np.zeros((6, 2))
    np.add.at(copies, (np.asarray(rankings.row_index), labels), 1)
    log_likelihood = np.zeros((2, 6))
    for row, left, item in stages_twin(rankings, pool is not None):
        for c in range(2):
            mass = weights[c, left].sum() + outside[c]
            chosen[c, item] += copies[row, c]
            expected[c, left] += copies[row, c] / mass
            all_times[c] += copies[row, c] / mass
            log_likelihood[c, row] += np.log(weights[c, item] / mass)
    np.testing.assert_allclose(in_play, expected, rtol=2e-5)
    np.testing.assert_allclose(totals, all_times, rtol=2e-5)
    np.testing.assert_array_equal(found, chosen)
    np.testing.assert_allclose(table, log_likelihood, rtol=2e-5, atol=1e-6)
    total = (copies.T * log_likelihood).sum()
    assert float(found_total) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("form", ["tabled", "by row", "by ranking"])
def test_drawn_times_are_exponential(form, monkeypatch):
    """Each has mean 1/mass and variance 1/mass²; an item's add up while it is in play."""
    monkeypatch.setattr(ops, "_MOST_TABLED", 12 if form == "tabled" else 0)
    counts = None if form == "by ranking" else COUNTS
    rankings = Rankings.from_orderings(LISTS, num_items=4, counts=counts)
    size = 4000
    weights = np.array([[0.4, 0.3, 0.2, 0.1], [0.05, 0.05, 0.7, 0.2]], np.float32)
    labels = np.arange(rankings.num_rankings) % 2

    @jax.jit
    def draw(keys, labels, weights):
        data = as_data(rankings)
        who = data.membership(labels, 2)
        assert (len(who.clusters) == rankings.num_rankings) == (form == "by ranking")
        return jax.vmap(lambda key: sum_times_in_play(key, data, who, weights, None))(keys)

    in_play, totals = draw(random.split(random.key(0), size), labels, weights)
    times = np.concatenate([in_play, totals[..., None]], axis=-1).astype(np.float64)

    copies = np.zeros((len(LISTS), 2))
    np.add.at(copies, (np.asarray(rankings.row_index), labels), 1)
    mean, variance = np.zeros((2, 5)), np.zeros((2, 5))
    for row, left, _ in stages_twin(rankings, False):
        for c in range(2):
            mass = weights[c, left].sum()
            mean[c, [*left, 4]] += copies[row, c] / mass
            variance[c, [*left, 4]] += copies[row, c] / mass**2
    z = (times.mean(0) - mean) / np.sqrt(variance / size)
    assert np.all(np.abs(z) < 5.5), z
    np.testing.assert_allclose(times.var(0), variance, rtol=0.25)


def test_times_in_play_of_many():
    """50,000 lists led by items that hold nearly everything: float32 against float64."""
    n, stages, size = 40, 6, 50_000
    weights = np.geomspace(1.0, 1e-5, n)
    weights /= weights.sum()
    # those that arrive first in a race
    times = np.random.default_rng(0).exponential(1.0 / weights, (size, n))
    lists = np.argsort(times, axis=1)[:, :stages]
    rankings = Rankings.from_orderings(lists, num_items=n)

    @jax.jit
    def run(rankings, weights):
        data = as_data(rankings)
        who = data.membership(jnp.zeros(size, jnp.int32), 1)
        return sum_times_in_play(None, data, who, weights, None)

    in_play, totals = run(rankings, weights[None].astype(np.float32))
    listed = weights[lists]
    times = 1.0 / (1.0 - np.cumsum(listed, axis=1) + listed)
    expected = np.full(n, times.sum())
    np.subtract.at(expected, lists, times.sum(1, keepdims=True) - times.cumsum(1))
    np.testing.assert_allclose(in_play[0], expected, rtol=1e-4)
    np.testing.assert_allclose(totals, times.sum(), rtol=1e-4)


# -- the maximum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["top", "subsets", "many items"])
def test_maximum(case, monkeypatch):
    rng = np.random.default_rng(0)
    n = 5
    offered = rng.random((60, n)) < 0.8 if case == "subsets" else np.ones((60, n), bool)
    offered[:, :2] = True
    lists = []
    for row in offered:
        order = np.flatnonzero(row)[np.argsort(-rng.gumbel(size=row.sum()) - np.log(WEIGHTS[row]))]
        lists.append(order[: rng.integers(1, len(order) + 1)].tolist())
    rankings = Rankings.from_orderings(
        lists, num_items=n, choice_sets=offered if case == "subsets" else None
    )
    if case == "many items":
        monkeypatch.setattr("numpyro_rankings.infer.plackett_luce_map._BITS", 0)
    for shape in (1.0, 2.5):

        def cost(x, shape=shape):
            w = np.exp(x - x.max())
            w /= w.sum()
            log_prior = (shape - 1.0) * np.log(w).sum()
            return -log_prior - sum(
                log_prob_twin(r, w, 0.0, o) for r, o in zip(lists, offered, strict=True)
            )

        best = minimize(cost, np.zeros(n), method="BFGS", options={"gtol": 1e-7})
        expected = np.exp(best.x) / np.exp(best.x).sum()
        fit = plackett_luce_map(rankings, shape)
        np.testing.assert_allclose(fit.weights, expected, rtol=1e-4)
        penalty = (shape - 1.0) * np.log(fit.weights).sum()
        assert -fit.log_likelihood - penalty == pytest.approx(best.fun, abs=1e-6)
        doubled = Rankings.from_orderings(
            lists, num_items=n, counts=[2] * 60, choice_sets=rankings.choice_sets
        )
        again = plackett_luce_map(doubled.expand(), 2 * shape - 1.0)
        np.testing.assert_allclose(again.weights, fit.weights, rtol=1e-6)


def test_maximum_of_real_ballots():
    fit = plackett_luce_map(load_dataset("apa1980"))
    assert fit.log_likelihood == pytest.approx(-51598.30636, abs=1e-4)


def test_no_maximum():
    def message(lists, n, offered=None):
        rankings = Rankings.from_orderings(lists, items=list("abcdef"[:n]), choice_sets=offered)
        with pytest.raises(RankingsError, match="no maximum") as error:
            plackett_luce_map(rankings)
        # a prior holds them
        assert np.isfinite(plackett_luce_map(rankings, shape=1.5).weights).all()
        return str(error.value)

    found = message([[0, 1, 2], [0, 2, 1]], 4)
    assert "item 'a' is always ahead of, item 'd' is never ahead of the other items" in found
    offered = np.array([[1, 1, 0, 0, 1], [1, 1, 0, 0, 1], [1, 1, 0, 0, 1], [0, 0, 1, 1, 0]], bool)
    found = message([[0, 1, 4], [1, 4, 0], [4, 0, 1], [2, 3]], 5, offered)
    assert "items 'c', 'd' are not compared with the other items" in found
    for bad in ({"shape": 0.5}, {"shape": np.nan}, {"rate": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            plackett_luce_map(load_dataset(), **bad)
    with pytest.raises(TypeError, match="must be a Rankings, got list"):
        plackett_luce_map([[0, 1]])


# -- the kernel ----------------------------------------------------------------------------------


def block_twin(lists, shape, offered=None):
    """Marginal likelihood of lists of one cluster, and posterior mean of its weights."""
    points, weights = simplex(shape)
    offered = [None] * len(lists) if offered is None else offered
    log_likelihood = [
        sum(log_prob_twin(r, p, 0.0, o) for r, o in zip(lists, offered, strict=True))
        for p in points
    ]
    joint = weights * np.exp(log_likelihood)
    return joint.sum(), joint @ points / joint.sum(), joint @ points**2 / joint.sum()


# without choice sets ``test_xla.py`` has the same quickly
@pytest.mark.parametrize("subsets", [pytest.param(False, marks=pytest.mark.slow), True])
def test_one_population_by_quadrature(subsets):
    shape = np.array([0.7, 1.5, 2.0])
    lists, counts = [[0, 1, 2], [1], [2, 0]], [2, 3, 1]
    offered = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1]], bool) if subsets else None
    rankings = Rankings.from_orderings(lists, num_items=3, counts=counts, choice_sets=offered)
    repeated = np.repeat(np.arange(3), counts)
    _, mean, square = block_twin(
        [lists[i] for i in repeated], shape, None if offered is None else offered[repeated]
    )
    mcmc = MCMC(
        PlackettLuceGibbs(shape, rate=3.0),
        num_warmup=20,
        num_samples=500,
        num_chains=100,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(0), rankings)
    draws = np.asarray(mcmc.get_samples(group_by_chain=True)["weights"], float)
    found = {"mean": draws, "square": draws**2}
    z = discrepancies(found, {"mean": mean, "square": square})
    assert max(z.values()) < 6.0, z  # 6 quantities, 99 degrees of freedom: about 2e-7


MIXED = [[0], [1, 0], [2, 1, 0], [0, 2]]


OUTCOME = np.array([0.9, -1.1, 0.6, 1.2])  # of each judge


def mixture_expectations(num_components, shape, alpha, log_prior_alpha, with_outcome=False):
    table = list(partitions(len(MIXED)))
    blocks = {}
    for size in range(1, 5):
        for block in itertools.combinations(range(4), size):
            blocks[block] = block_twin([MIXED[i] for i in block], shape)
    joint, means, of_outcome = [], [], []
    for labels in table:
        parts = [tuple(np.flatnonzero(np.equal(labels, c))) for c in range(max(labels) + 1)]
        log_p = log_partition(list(np.bincount(labels)), alpha, num_components)
        prior = np.exp(log_p + log_prior_alpha)
        joint.append(prior * np.prod([blocks[part][0] for part in parts]))
        means.append(blocks[parts[0]][1])
        if with_outcome:
            outcomes = [outcome_of(OUTCOME[list(part)]) for part in parts]
            joint[-1] = joint[-1] * np.exp(sum(log_marginal for log_marginal, _ in outcomes))
            of_outcome.append(outcomes[0][1])
    joint = np.array(joint)
    weight = joint.sum(1) / joint.sum()
    return {
        "partition": weight,
        "weights": weight @ np.array(means),
        "alpha": np.array([joint.sum(0) @ alpha / joint.sum()]),
        **({"mean": np.array([weight @ of_outcome])} if with_outcome else {}),
    }


def mixture_indicators(samples):
    labels = np.asarray(samples["assignments"], int)
    code = canonical_labels(labels) @ 4 ** np.arange(4)

    def of_first(values):
        """What the component of the first judge has."""
        first = labels[:, :, :1].reshape(*labels.shape[:2], *[1] * (np.ndim(values) - 2))
        return np.take_along_axis(np.asarray(values), first, axis=2)[:, :, 0]

    found = {
        "partition": code[..., None] == np.array(list(partitions(4))) @ 4 ** np.arange(4),
        "weights": of_first(samples["weights"]),
        "alpha": np.asarray(samples["alpha"])[..., None],
    }
    return found | ({"mean": of_first(samples["mean"])[..., None]} if "mean" in samples else {})


@pytest.mark.slow
def test_mixture_by_quadrature():
    shape, alpha = np.array([0.8, 1.0, 1.4]), np.exp(np.linspace(-9, 4, 1500))
    log_prior = 2.0 * np.log(alpha) - 1.5 * alpha  # Gamma(2, 1.5), in log α
    kernel = PlackettLuceGibbs(shape, num_components=3, alpha=dist.Gamma(2.0, 1.5))
    mcmc = MCMC(
        kernel,
        num_warmup=50,
        num_samples=150,
        num_chains=100,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(0), Rankings.from_orderings(MIXED, num_items=3))
    found = mixture_indicators(mcmc.get_samples(group_by_chain=True))
    z = discrepancies(found, mixture_expectations(3, shape, alpha, log_prior))
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
@pytest.mark.parametrize("with_outcome", [False, True])
def test_block_of_gibbs_by_quadrature(with_outcome):
    """α, and the means of an outcome, from NUTS, the labels and weights from the kernel."""
    alpha = np.exp(np.linspace(-9, 4, 1500))
    shape = np.array([0.8, 1.0, 1.4])

    def model(rankings):
        mass = numpyro.sample("alpha", dist.Gamma(2.0, 1.5))
        partition = rd.FiniteDirichletPartition(mass, 3, 4, validate_args=not with_outcome)
        labels = numpyro.sample("assignments", partition)
        with numpyro.plate("cluster", 3):
            weights = numpyro.sample("w", dist.Dirichlet(jnp.asarray(shape)))
            if with_outcome:
                mean = numpyro.sample("mean", dist.Normal(0.0, OUTCOME_SPREAD))
        with numpyro.plate("ranking", 4):
            d = rd.TopTPlackettLuce(jnp.log(weights[labels]), rankings.orderings.shape[1])
            numpyro.sample("rankings", d, obs=rankings.orderings)
            if with_outcome:
                numpyro.sample("y", dist.Normal(mean[labels], OUTCOME_NOISE), obs=OUTCOME)

    settings = {"judge_sites": ["y"]} if with_outcome else {}
    block = PlackettLuceGibbs(num_components=3, model=model, sites={"weights": "w"}, **settings)
    kernel = Gibbs([(block, ["assignments", "w"]), (NUTS(model), None)])
    rankings = Rankings.from_orderings(MIXED, num_items=3)
    mcmc = MCMC(
        kernel,
        num_warmup=100,
        num_samples=300,
        num_chains=24,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(0), rankings)
    samples = mcmc.get_samples(group_by_chain=True)
    found = mixture_indicators({**samples, "weights": samples["w"]})
    log_prior = 2.0 * np.log(alpha) - 1.5 * alpha
    expected = mixture_expectations(3, shape, alpha, log_prior, with_outcome)
    z = discrepancies(found, expected)
    assert max(z.values()) < 6.0, z


# smaller tables have the same quickly, and drawn times are exact on tables of any form
@pytest.mark.slow
def test_real_ballots():
    """APA 1980, Gamma(1, 1) weights: means computed independently, by NUTS."""
    kernel = PlackettLuceGibbs()
    mcmc = MCMC(kernel, num_warmup=100, num_samples=4000, progress_bar=False)
    mcmc.run(random.key(0), load_dataset("apa1980"))
    draws = np.asarray(mcmc.get_samples()["weights"], float)
    known = [0.23166, 0.17586, 0.20706, 0.18765, 0.19777]
    # the figures are given to 5e-6; 4,000 draws, of which more than 1,000 are effective
    error = draws.std(0) / np.sqrt(1000) + 5e-6
    assert np.all(np.abs(draws.mean(0) - known) < 4.5 * error)
    np.testing.assert_allclose(draws.std(0), 0.0021, rtol=0.15)
    assert stats.skew(draws[:, 0]) < 0.5


def test_lists_of_many_items_have_a_start():
    """No weight of the seeds is 0 in float32, above all not that of the last of a choice set."""
    orderings = np.argsort(np.random.default_rng(0).random((3, 130)), axis=1)[:, :120]
    rankings = Rankings.from_orderings(orderings, num_items=130, unranked="not-offered")
    state = PlackettLuceGibbs().init(jax.random.key(0), 0, None, (rankings,), {})
    weights = np.asarray(state.z["weights"])
    assert (weights > 0).all() and weights.sum() == pytest.approx(1.0, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("some", (1000, 10**6), ids=("samples", "all rankings"))
def test_chains_of_a_mixture_start_at_the_same_mode(some, monkeypatch):
    """Six starts on four overlapping groups, none worse than the truth."""
    monkeypatch.setattr(starts, "_SOME", some)
    weights = np.exp(np.random.default_rng(3).normal(size=(4, 7)))
    truth = simulate_plackett_luce_mixture(random.key(0), 4000, weights, 5)
    data = as_data(truth.rankings.unique())

    @jax.jit
    def log_likelihood(weights):
        """At the shares that suit these weights."""
        table = ops.log_choice_likelihoods(data.choices, weights, None, jnp.array(4))

        def step(log_shares, _):
            chances = jax.nn.softmax(table + log_shares[:, None], axis=0) * data.counts
            return jnp.log(chances.sum(1) / data.num_rankings), None

        log_shares, _ = jax.lax.scan(step, jnp.full(4, -np.log(4.0)), None, length=200)
        return jnp.sum(data.counts * jax.nn.logsumexp(table + log_shares[:, None], axis=0))

    start = jax.jit(lambda key: starts.start_mixture(key, data, 4, 7)[1])
    found = [float(log_likelihood(start(random.key(i)))) for i in range(6)]
    assert np.ptp(found) < 3.0
    assert min(found) > float(log_likelihood(jnp.asarray(truth.weights)))


BAD = {
    "shape": ({"shape": 0.0}, "shape must be a positive number"),
    "shape of a matrix": ({"shape": np.ones((2, 2))}, "shape must be a number or have shape"),
    "rate": ({"rate": -1.0}, "rate must be a positive number"),
    "rate a prior": ({"rate": dist.Gamma(1.0, 1.0)}, "rate must be a number"),
    "alpha": ({"alpha": 0.0, "num_components": 2}, "alpha must be a positive number"),
    "alpha of one": ({"alpha": dist.Gamma(1.0, 1.0)}, "there is no alpha to learn"),
    "components": ({"num_components": None}, "num_components must be a positive whole number"),
    "sites": ({"sites": {"assignments": "z"}}, "sites can name"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings(case):
    settings, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        PlackettLuceGibbs(**settings)


def test_bad_data():
    def run(kernel, *args):
        kernel.init(random.key(0), 0, None, args, {})

    rankings = Rankings.from_orderings(MIXED, num_items=3)
    assert_refused(
        run,
        ("each of the 3 items", PlackettLuceGibbs(shape=[1.0, 2.0]), rankings),
        ("is a block of", PlackettLuceGibbs(model=lambda rankings: None), rankings),
    )
    with pytest.raises(ValueError, match="at least 2 items"):
        run(PlackettLuceGibbs(), Rankings.from_orderings([[0]], num_items=1))
    with pytest.raises(TypeError, match="must be a Rankings, got ndarray"):
        run(PlackettLuceGibbs(), np.zeros((3, 4), np.int32))

    for params, message in (
        ({"weights": np.array([np.nan, 1.0, 1.0])}, "must be non-negative, finite numbers"),
        ({"weights": np.array([-1.0, 1.0, 1.0])}, "must be non-negative, finite numbers"),
        ({"wieghts": np.ones(3)}, r"has \['wieghts'\], the sites are"),
    ):
        with pytest.raises(ValueError, match=message):
            PlackettLuceGibbs().init(random.key(0), 0, params, (rankings,), {})

    def gamma_weights(rankings):
        numpyro.sample("weights", dist.Gamma(1.0, 1.0).expand((3,)).to_event(1))

    kernel = Gibbs([(PlackettLuceGibbs(model=gamma_weights), ["weights"])])
    with pytest.raises(ValueError, match="must have a Dirichlet prior"):
        kernel.init(random.key(0), 0, None, (rankings,), {})


def test_components_of_a_block_have_one_prior():
    """Labels are put in order of first use, which needs priors that do not tell them apart."""

    def model(rankings, **_):
        numpyro.sample("assignments", rd.FiniteDirichletPartition(1.0, 2, 2))
        with numpyro.plate("component", 2):
            numpyro.sample("weights", dist.Dirichlet(jnp.array([[1.0, 2.0], [2.0, 1.0]])))

    rankings = Rankings.from_orderings([[0], [1]], num_items=2)
    block = PlackettLuceGibbs(num_components=2, model=model).wrap_model(lambda model: model)
    with pytest.raises(ValueError, match="same prior in all components"):
        block.init(random.key(0), 0, None, (rankings,), {})
