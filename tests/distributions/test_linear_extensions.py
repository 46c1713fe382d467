"""Partial orders scored by distributions: against all orderings of a few items."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers.densities import log_prob
from helpers.lists import mallows_twin
from jax import random
from numpyro.infer import MCMC, NUTS, log_likelihood
from numpyro.infer.util import log_density
from scipy import integrate
from scipy.special import logsumexp

import numpyro_rankings.distributions as rd
from numpyro_rankings import PartialOrders, Rankings, RankingsError

N = 5
LOG_WEIGHTS = np.array([0.3, -1.0, 2.0, 0.5, -0.2])
CENTER = np.array([2, 0, 4, 1, 3])
THETA = np.array([1.3, 0.2, 0.0, 2.5])
OFFERED = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 1], [1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], bool)


def some_pairs():
    said = {
        "N": ["ac", "bc", "bd"],
        "chain": ["ab", "bc", "de"],
        "tree": ["ae", "be", "ce", "ed"],
        "diamond": ["ab", "ac", "bd", "cd", "ae"],
    }
    lines = [(judge, *pair) for judge, pairs in said.items() for pair in pairs]
    df = pd.DataFrame(lines, columns=["judge", "winner", "loser"])
    names = {"judge": "judge", "winner": "winner", "loser": "loser"}
    return PartialOrders.from_pairs(df, **names, items=list("abcde"))


ORDERS = {
    "below": PartialOrders.from_buckets(
        [
            [[0, 1], 2, [3, 4]],
            [3, [0, 1, 2, 4]],
            [[0, 1, 2], [3, 4]],
            [4, 3, 2, 1, 0],
            [[0, 1, 2, 3, 4]],
            [2, 0],
            [[1, 3], 0],
            [[0, 1, 2, 3], 4],
        ],
        num_items=N,
    ),
    "offered": PartialOrders.from_buckets(
        [[[0, 1], 2], [[0, 4], [1, 2]], [[0, 1]], [[1, 2], [3, 4, 0]]],
        num_items=N,
        choice_sets=OFFERED,
    ),
    "not-offered": PartialOrders.from_buckets(
        [[[0, 1], 2], [[0, 4], [1, 2]], [[0, 1]]], num_items=N, unranked="not-offered"
    ),
    "pairs": some_pairs(),
    "all items": some_pairs().of_all_items(),
}


ALL = list(itertools.permutations(range(N)))


def log_probabilities(name, parameter):
    """Of all orderings, in float64."""
    if name == "mallows":
        return np.log([mallows_twin(x, CENTER.tolist(), parameter) for x in ALL])
    in_order = parameter[np.array(ALL)]
    left = np.logaddexp.accumulate(in_order[:, ::-1], axis=1)
    return (in_order - left[:, ::-1]).sum(1)


def log_sums(orders, name, parameter):
    """Over the orderings that agree, (rows,)."""
    each = log_probabilities(name, parameter)
    return np.array([logsumexp(each[allowed]) for allowed in agrees(orders)])


def agrees(orders):
    """Whether each ordering is one of those that a row leaves open, (rows, n!)."""
    place = np.argsort(ALL, axis=1)
    offered = orders.offered()
    offered = np.ones((orders.num_rows, N), bool) if offered is None else np.asarray(offered)
    found = np.ones((orders.num_rows, len(ALL)), bool)
    for row, (items, above) in enumerate(zip(np.asarray(orders.listed), orders.above, strict=True)):
        items = items[items >= 0]
        pairs = [(items[a], items[b]) for a, b in np.argwhere(above)]
        pairs += [(a, b) for a in items for b in np.flatnonzero(offered[row]) if b not in items]
        for a, b in pairs:
            found[row] &= place[:, a] < place[:, b]
    return found


PARAMETERS = {"plackett-luce": LOG_WEIGHTS, "mallows": THETA}


def distribution(name, parameter, **keywords):
    if name == "plackett-luce":
        return rd.TopTPlackettLuce(parameter, N, **keywords)
    return rd.GeneralizedMallows(CENTER, parameter, **keywords)


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("name", PARAMETERS)
def test_sum_over_all_orderings(name, kind):
    orders, parameter = ORDERS[kind], PARAMETERS[name].astype(np.float32)
    d = distribution(name, parameter, validate_args=True)
    expected = log_sums(orders, name, PARAMETERS[name])
    found = d.log_prob(orders)
    assert found.shape == (orders.num_rows,)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.asarray(d.support(orders)).all()


@pytest.mark.parametrize("name", PARAMETERS)
def test_traced_and_closed_over(name):
    """Where the orders are arguments of a compiled function, each row is one block."""
    d = distribution(name, PARAMETERS[name].astype(np.float32))
    for orders in (ORDERS["below"], ORDERS["all items"]):
        expected = d.log_prob(orders)
        np.testing.assert_allclose(log_prob(d, orders), expected, atol=1e-6)
    orders = ORDERS["not-offered"]
    closed_over = jax.jit(lambda d: d.log_prob(orders))(d)
    np.testing.assert_allclose(closed_over, d.log_prob(orders), atol=1e-6)


@pytest.mark.parametrize("name", PARAMETERS)
def test_gradient(name):
    orders, parameter = ORDERS["pairs"], PARAMETERS[name] + 0.1
    found = jax.jacobian(lambda x: distribution(name, x).log_prob(orders))(
        parameter.astype(np.float32)
    )
    for k, step in enumerate(1e-5 * np.eye(len(parameter))):
        up, down = (log_sums(orders, name, parameter + x) for x in (step, -step))
        np.testing.assert_allclose(found[:, k], (up - down) / 2e-5, atol=2e-5)


@pytest.mark.parametrize("shape", [(2, 2, 1), (1, 3)])
@pytest.mark.parametrize("name", PARAMETERS)
def test_orders_of_buckets_of_given_sizes_sum_to_one(name, shape):
    cuts = np.cumsum(shape)
    rows = {tuple(frozenset(x[a:b]) for a, b in zip([0, *cuts], cuts, strict=False)) for x in ALL}
    orders = PartialOrders.from_buckets(list(rows), num_items=N)
    d = distribution(name, PARAMETERS[name].astype(np.float32))
    assert float(jnp.exp(d.log_prob(orders)).sum()) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", PARAMETERS)
def test_rankings_are_scored_as_ever_and_silence_with_certainty(name):
    d = distribution(name, PARAMETERS[name].astype(np.float32))
    rankings = Rankings.from_orderings([[2, 0, 1, 4, 3], [1, 4], [3]], num_items=N)
    lists = np.pad(rankings.orderings, ((0, 0), (0, d.event_shape[0])), constant_values=-1)
    expected = d.log_prob(lists[:, : d.event_shape[0]])
    np.testing.assert_allclose(
        d.log_prob(PartialOrders.from_rankings(rankings)), expected, atol=1e-6
    )
    nothing = PartialOrders.from_buckets([[[0, 1, 2, 3, 4]]], num_items=N)
    assert d.log_prob(nothing).tolist() == [0.0]


def test_choice_set_and_pool_of_the_distribution():
    log_weights = LOG_WEIGHTS.astype(np.float32)
    orders = PartialOrders.from_buckets([[[0, 1], 2], [[0, 4]]], num_items=N)
    extensions = np.array([[[0, 1, 2], [1, 0, 2]], [[0, 4, -1], [4, 0, -1]]])
    offered = np.array([True, True, True, False, True])
    for keywords in ({"log_unseen_weight": 0.4}, {"choice_set": offered}):
        d = rd.TopTPlackettLuce(log_weights, 3, **keywords)
        expected = np.logaddexp(*np.moveaxis(np.asarray(d.log_prob(extensions)), 1, 0))
        np.testing.assert_allclose(d.log_prob(orders), expected, atol=1e-6)
    absent = rd.TopTPlackettLuce(log_weights, 3, choice_set=~offered)
    assert absent.log_prob(orders).tolist() == [-np.inf, -np.inf]


def test_weights_and_concentrations_of_any_size():
    """Sums are of logs: weights may be e^300 times another one."""
    log_weights = np.array([0.0, 300.0, -300.0, 120.0, 119.0])
    orders = PartialOrders.from_buckets([[[0, 1, 2], 3], [[2, 0], [4, 1]]], num_items=N)
    found, gradient = jax.jit(
        jax.value_and_grad(lambda x: rd.TopTPlackettLuce(x, N).log_prob(orders).sum())
    )(log_weights.astype(np.float32))
    expected = log_sums(orders, "plackett-luce", log_weights).sum()
    assert float(found) == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(gradient).all()
    kendall = rd.GeneralizedMallows(CENTER, jnp.float32(200.0))
    assert np.isfinite(kendall.log_prob(orders)).all()


@pytest.mark.parametrize("name", PARAMETERS)
def test_batches_and_chains(name):
    orders, rng = ORDERS["below"], np.random.default_rng(0)
    rows = orders.num_rows
    many = np.abs(rng.normal(size=(3, rows, len(PARAMETERS[name])))).astype(np.float32)
    each = jax.jit(jax.vmap(lambda x: distribution(name, x).log_prob(orders)))
    of_rows = distribution(name, many[0]).log_prob(orders)
    expected = np.diagonal(each(many[0]))
    np.testing.assert_allclose(of_rows, expected, atol=1e-6)
    chains = distribution(name, many[:, :1]).log_prob(orders)
    np.testing.assert_allclose(chains, each(many[:, 0]), atol=1e-6)
    assert distribution(name, many).log_prob(orders).shape == (3, rows)
    one_row = PartialOrders.from_buckets([[[0, 1], 2]], num_items=N)
    assert distribution(name, many[:, 0]).log_prob(one_row).shape == (3,)


def test_many_items_tied_last_say_nothing():
    orders = PartialOrders.from_buckets([[[0, 3], list(set(range(40)) - {0, 3})]], num_items=40)
    top = PartialOrders.from_buckets([[[0, 3]]], num_items=40)
    for d in (rd.TopTPlackettLuce(jnp.arange(40) / 20, 40), rd.GeneralizedMallows(range(40), 0.3)):
        np.testing.assert_allclose(d.log_prob(orders), d.log_prob(top), atol=1e-6)


def test_refusals():
    weights, center = jnp.zeros(20), np.arange(20)
    tied = PartialOrders.from_buckets([[0], [[*range(17)], 18]], num_items=20)
    with pytest.raises(
        RankingsError, match=r"row 2: .* at most 16 items .* there are 17; the kern"
    ):
        rd.TopTPlackettLuce(weights, 20).log_prob(tied)
    many = PartialOrders.from_buckets([[[*range(16)], 18]] * 200, num_items=20)
    with pytest.raises(RankingsError, match="row 1 and others: log_prob would sum 1e\\+08 terms"):
        rd.GeneralizedMallows(center, 1.0).log_prob(many)
    with pytest.raises(RankingsError, match="at most 12 listed items through jit or vmap, not 18"):
        log_prob(rd.TopTPlackettLuce(weights, 20), tied)
    with pytest.raises(RankingsError, match="are of 5 items, and the distribution of 20"):
        rd.TopTPlackettLuce(weights, 20).log_prob(ORDERS["below"])
    with pytest.raises(RankingsError, match="list 5 items, and there are concentrations of 3"):
        rd.GeneralizedMallows(CENTER, THETA[:3]).log_prob(ORDERS["below"])
    with pytest.raises(RankingsError, match="neither choice_set nor log_unseen_weight"):
        rd.TopTPlackettLuce(LOG_WEIGHTS, N, log_unseen_weight=0.0).log_prob(ORDERS["pairs"])
    with pytest.raises(RankingsError, match=r"pass orders.of_all_items\(\)"):
        log_prob(rd.GeneralizedMallows(CENTER, THETA), ORDERS["pairs"])


# -- in a NumPyro model ----------------------------------------------------------------------------

JUDGES = PartialOrders.from_buckets(
    [[[0, 1], 2], [1, [0, 2]], [2], [[0, 2], 1]], num_items=4, counts=[4, 2, 1, 3]
)


def of_parameter(name, x):
    if name == "plackett-luce":
        return rd.TopTPlackettLuce(x * jnp.array([1.0, 0.5, -0.2, -1.0]), 4, validate_args=True)
    return rd.GeneralizedMallows(np.arange(4), x, validate_args=True)


def model(name, orders):
    x = numpyro.sample("x", dist.Exponential(1.0))
    scale = numpyro.handlers.scale(scale=orders.counts)
    with numpyro.plate("rows", orders.num_rows), scale:
        numpyro.factor("orders", of_parameter(name, x).log_prob(orders))


@pytest.mark.parametrize("name", PARAMETERS)
def test_factor_of_each_row(name):
    x = jnp.float32(0.7)
    of_rows = of_parameter(name, x).log_prob(JUDGES)
    found, _ = log_density(model, (name, JUDGES), {}, {"x": x})
    assert float(found) == pytest.approx(float(-x + (JUDGES.counts * of_rows).sum()), rel=1e-5)
    pointwise = log_likelihood(model, {"x": x[None]}, name, JUDGES)["orders"]
    np.testing.assert_allclose(pointwise[0], of_rows, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARAMETERS)
def test_nuts_agrees_with_quadrature(name):
    mcmc = MCMC(NUTS(model), num_warmup=300, num_samples=2000, progress_bar=False)
    mcmc.run(random.key(0), name, JUDGES)
    grid = jnp.linspace(1e-3, 12.0, 2001)
    each = jax.vmap(lambda x: of_parameter(name, x).log_prob(JUDGES))(grid)
    log_p = np.asarray(each @ JUDGES.counts - grid, float)
    p = np.exp(log_p - log_p.max())
    p /= integrate.simpson(p, x=grid)
    mean = integrate.simpson(p * grid, x=grid)
    sd = math.sqrt(integrate.simpson(p * (grid - mean) ** 2, x=grid))
    x = np.asarray(mcmc.get_samples()["x"])
    assert abs(x.mean() - mean) < 4.5 * sd / 400**0.5
    assert x.std() == pytest.approx(sd, rel=0.2)
