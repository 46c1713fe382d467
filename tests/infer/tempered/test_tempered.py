"""Tempered mixtures against sums over all labels, and each of their moves alone."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.kernel_tests import run_chains
from helpers.tempered_twin import (
    MallowsMarginal,
    Multiplicities,
    PlackettLuceMarginal,
    log_together,
)
from jax import random
from numpyro.infer import MCMC
from scipy.special import logsumexp

from numpyro_rankings import Draws, Rankings, WeightedRankings
from numpyro_rankings.infer import MallowsComponents, PlackettLuceComponents, TemperedMixture
from numpyro_rankings.infer.tempered.kernel import Replica
from numpyro_rankings.infer.tempered.ladder import (
    Path,
    adapt,
    choose_number,
    exchange,
    first_rungs,
    is_adapted,
    mean_rejection,
)
from numpyro_rankings.infer.tempered.steps import Target, metropolis_steps, read_components
from numpyro_rankings.models import default_share_concentration
from numpyro_rankings.posterior import log_evidence
from numpyro_rankings.run.rounding import round_rows

NU, R = 0.8, np.array([0.5, 1.0, 1.5])
SHAPE = [0.7, 1.0, 1.6]


def _log_prior(theta, left):
    """The conjugate prior of θ at a stage of four items, eq. (7), unnormalised."""
    log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
    return -NU * (R[3 - left] * theta + log_psi)


MALLOWS = [[0, 1, 2, 3], [0, 1], [1, 0, 2, 3], [3, 2], [3, 2, 1, 0]]
PLACKETT_LUCE = [[0, 1, 2], [0], [1, 0, 2], [2], [2, 1, 0]]
FAMILIES = {
    "mallows": (
        MALLOWS,
        4,
        lambda: MallowsComponents(NU, list(R)),
        lambda: MallowsMarginal(MALLOWS, 4, _log_prior),
    ),
    "plackett-luce": (
        PLACKETT_LUCE,
        3,
        lambda: PlackettLuceComponents(SHAPE),
        lambda: PlackettLuceMarginal(PLACKETT_LUCE, SHAPE),
    ),
}
KAPPA = 1.3
NUM_LADDERS = 16


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("number, copies", [(2, 3), (3, 1), (3, 3), (1, 3)])
@pytest.mark.slow
def test_draws_and_evidence_are_those_of_a_sum_over_all_labels(family, number, copies):
    lists, num_items, components, marginal = FAMILIES[family]
    log_marginal = marginal()
    count = 1 if copies == 1 else 10  # ten rankings at the power 0.3 count as three
    rankings = Rankings.from_orderings(lists, num_items=num_items, counts=[count] * len(lists))
    kernel = TemperedMixture(
        components(), number, KAPPA, copies / count, num_temperatures=8, num_steps=24
    )
    mcmc = run_chains(
        kernel, rankings, seed=3, num_warmup=300, num_samples=6000, num_chains=NUM_LADDERS
    )
    ways = Multiplicities(len(lists), copies, number, KAPPA)
    expected = ways.log_evidence(log_marginal)
    evidence = log_evidence(mcmc)
    assert evidence.standard_error < 0.015
    assert abs(evidence.value - expected) < 5 * max(evidence.standard_error, 1e-3)
    if number == 1 and family == "plackett-luce":
        return
    # on the way the shares have the concentration of the ladder
    kappa = default_share_concentration(num_items, rankings.num_rankings)
    ways = Multiplicities(len(lists), 1, number, kappa)
    on_the_way = log_evidence(mcmc, len(lists))
    assert on_the_way.standard_error < 0.015
    gap = on_the_way.value - ways.log_evidence(log_marginal)
    assert abs(gap) < 5 * max(on_the_way.standard_error, 1e-3)
    labels = mcmc.get_samples(group_by_chain=True)["assignments"]
    first = np.arange(len(lists)) * count  # one ranking of each row
    for pair in [(0, 1), (0, 4), (2, 3), (1, 2)]:
        exact = log_together(len(lists), copies, number, KAPPA, log_marginal, pair)
        together = labels[..., first[pair[0]]] == labels[..., first[pair[1]]]
        means = np.asarray(together).mean(1)
        error = means.std(ddof=1) / np.sqrt(NUM_LADDERS)
        assert abs(means.mean() - np.exp(exact - expected)) < 5 * max(error, 1e-4), pair


# -- each move alone -----------------------------------------------------------------------------

_FULL = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
_NUM_JOINT = 40_000


def _joint_draws(kernel, rows, path):
    """Draw shares and parameters from the prior, and six rankings given these."""

    def one(key):
        key_prior, key_rows = random.split(key)
        replica = kernel._draw_prior(key_prior, rows, path)
        log_density = kernel._read_one(replica, rows).log_density
        drawn = random.categorical(key_rows, log_density, shape=(6,))
        return replica, jnp.sum(drawn[:, None] == jnp.arange(6), axis=0).astype(float)

    return jax.vmap(one)(random.split(random.key(0), _NUM_JOINT))


def _statistics(replica, counts, log_density):
    """Functions of state and data that a wrong move changes."""
    log_likelihood = jnp.sum(counts * log_density)
    leaves = [jnp.tanh(x.reshape(-1)) for x in jax.tree.leaves(replica.parameters)]
    # the components are alike, so that only how uneven the shares are shows a wrong power of them
    unevenness = jnp.sum(jnp.exp(2.0 * replica.log_shares))
    values = jnp.concatenate([jnp.exp(replica.log_shares), unevenness[None], *leaves])
    return jnp.concatenate([values, values * log_likelihood, log_likelihood[None]])


_COMPONENTS = {
    "mallows": MallowsComponents(),
    "plackett-luce": PlackettLuceComponents([0.5, 1.0, 2.0]),
    "tied": MallowsComponents(concentration_prior=dist.LogNormal(0.0, 0.7), tied=True),
    "by stage": MallowsComponents(concentration_prior=dist.Gamma(jnp.array([2.0, 3.0]), 1.5)),
}


@pytest.mark.parametrize(
    "family, moves",
    [
        ("mallows", "shares"),
        ("mallows", "parameters"),
        ("plackett-luce", "parameters"),
        *((name, "all") for name in _COMPONENTS),
    ],
)
@pytest.mark.parametrize("width", [3, 5])
def test_a_move_keeps_the_joint_distribution_of_state_and_data(family, moves, width):
    kernel = TemperedMixture(_COMPONENTS[family], width, num_steps=16)
    rows = kernel._components.read(Rankings.from_orderings(_FULL, num_items=3))
    if width > 3:  # the others are not in use
        rows = rows._replace(num_used=jnp.array(3))
    path = Path(jnp.ones(()), jnp.array(6.0), (KAPPA, KAPPA))
    replicas, counts = _joint_draws(kernel, rows, path)

    def move(key, replica, counts):
        one = jax.tree.map(lambda x: x[None], replica)
        if moves == "all":  # as the kernel makes them, at the only rung
            own = rows._replace(data=rows.data._replace(counts=counts))
            rungs = first_rungs(path, 2)
            rungs = rungs._replace(positions=jnp.ones(1), replica=jnp.zeros(1, jnp.int32))
            end, _ = kernel._steps(key, one, rungs, path, own)
            return jax.tree.map(lambda x: x[0], end)
        key_draws, key_steps = random.split(key)
        draws = kernel._draw_steps(key_draws, jnp.full(1, 6.0), rows)
        if moves == "shares":  # no step of the parameters is accepted, or the shares stay
            draws = draws._replace(log_uniform=jnp.full_like(draws.log_uniform, jnp.inf))
        else:
            draws = draws._replace(normals=draws.normals.at[..., -1].set(0.0))
        log_rows = kernel._log_rows(rows)
        one_rung = jnp.ones(1), jnp.full(1, KAPPA)
        target = Target(rows.clusters, log_rows, counts, *one_rung, num_used=rows.num_used)
        end, _ = metropolis_steps(key_steps, target, read_components(log_rows, *one), draws)
        return Replica(*jax.tree.map(lambda x: x[0], (end.parameters, end.log_shares)))

    def statistics_of(replica, counts):
        log_density = kernel._read_one(replica, rows).log_density
        return _statistics(jax.tree.map(lambda x: x[:3], replica), counts, log_density)

    keys = random.split(random.key(1), _NUM_JOINT)
    moved = jax.jit(jax.vmap(move))(keys, replicas, counts)
    statistics = jax.jit(jax.vmap(statistics_of))
    change = np.asarray(statistics(moved, counts) - statistics(replicas, counts), float)
    has_moved = np.any(np.abs(change) > 1e-4, axis=0)
    shares, parameters = has_moved[:4].all(), has_moved[4 : (len(has_moved) - 1) // 2].all()
    assert (shares, parameters) == (moves != "parameters", moves != "shares")
    error = change.std(0, ddof=1) / np.sqrt(_NUM_JOINT)
    assert np.all(np.abs(change.mean(0)) <= 5 * error)


def _padded_chains(kernel, rankings, number, **settings):
    mcmc = MCMC(kernel, chain_method="vectorized", progress_bar=False, **settings)
    mcmc.run(random.key(3), rankings, num_used=jnp.array(number, jnp.int32))
    return mcmc


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.slow
def test_one_program_has_the_draws_and_evidence_of_fewer_components(family):
    lists, num_items, components, marginal = FAMILIES[family]
    rankings = Rankings.from_orderings(lists, num_items=num_items, counts=[10] * len(lists))
    settings = {"power": 0.3, "num_temperatures": 8, "num_steps": 24}
    kernel = TemperedMixture(components(), 3, KAPPA, **settings).padded(3)
    # the draws are those of the kernel with that number, up to rounding
    short = {"num_warmup": 0, "num_samples": 3, "num_chains": NUM_LADDERS}
    full = _padded_chains(kernel, rankings, 3, **short).get_samples()
    plain = TemperedMixture(components(), 3, KAPPA, **settings)
    for name, values in run_chains(plain, rankings, seed=3, **short).get_samples().items():
        np.testing.assert_allclose(values, full[name], rtol=1e-4, atol=1e-4, err_msg=name)
    # two of the three slots in use
    length = {"num_warmup": 200, "num_samples": 2500, "num_chains": NUM_LADDERS}
    mcmc = _padded_chains(kernel, rankings, 2, **length)
    samples = mcmc.get_samples()
    assert not np.any(samples["shares"][:, 2]) and np.max(samples["assignments"]) == 1
    np.testing.assert_allclose(samples["alpha"], 2 * KAPPA, rtol=1e-6)
    evidence = log_evidence(replace(Draws.of(mcmc), num_components=2))
    assert evidence.standard_error < 0.025
    gap = evidence.value - Multiplicities(len(lists), 3, 2, KAPPA).log_evidence(marginal())
    assert abs(gap) < 5 * max(evidence.standard_error, 1e-3)


def test_exchanges_bring_each_rung_its_own_distribution():
    # five states with known log likelihoods; only the prior draws them, exchanges do the rest
    log_likelihoods = jnp.array([-9.0, -6.0, -4.0, -3.0, -2.5])
    prior = jnp.array([0.4, 0.3, 0.15, 0.1, 0.05])
    log_shares = jnp.array([-3.0, -5.0, -2.0, -4.0, -2.5])
    path = Path(jnp.ones(()), jnp.array(3.0), (2.0, 1.0))

    def step(carry, key):
        states, rungs = carry
        key_prior, key_exchange = random.split(key)
        fresh = random.choice(key_prior, 5, p=at_prior)
        states = states.at[rungs.replica[0]].set(fresh)
        own = states[rungs.replica]
        rungs = exchange(key_exchange, rungs, path, log_likelihoods[own], log_shares[own])
        return (states, rungs), states[rungs.replica]

    rungs = first_rungs(path, 5)
    powers, kappas = path.powers(rungs.positions), path.concentrations(rungs.positions)
    assert float(powers[0]) == 0 and float(powers[-1]) == pytest.approx(1)
    assert float(kappas[0]) == 2 and float(kappas[-1]) == pytest.approx(1)
    expected = np.log(prior) + powers[:, None] * log_likelihoods + kappas[:, None] * log_shares
    expected = np.exp(expected - logsumexp(np.asarray(expected), axis=1, keepdims=True))
    at_prior = jnp.asarray(expected[0])

    def chain(key):
        start = jnp.zeros(5, jnp.int32), rungs
        (_, end), drawn = jax.lax.scan(step, start, random.split(key, 3000))
        shares = jnp.mean(drawn[200:, :, None] == jnp.arange(5), axis=0)
        return shares, end.round_trips

    shares, round_trips = jax.jit(jax.vmap(chain))(random.split(random.key(2), 200))
    error = shares.std(0, ddof=1) / np.sqrt(len(shares))
    assert np.all(np.abs(shares.mean(0) - expected) <= 5 * np.maximum(error, 1e-4))
    assert np.all(round_trips > 50)


def test_rungs_are_placed_so_that_exchanges_cost_the_same():
    kappa = jnp.array(3.0)
    path = Path(jnp.ones(()), jnp.array(100.0), (kappa, kappa))
    rungs = first_rungs(path, 5)
    rungs = rungs._replace(
        acceptance=jnp.array([9.0, 9.0, 9.0, 1.0]), num_exchanges=jnp.array(10), round_trips=4
    )
    placed = adapt(rungs)
    positions = np.asarray(placed.positions)
    assert positions[0] == 0 and positions[-1] == 1 and np.all(np.diff(positions) > 0)
    # the last pair, where one of ten was accepted, gets most of the rungs
    assert np.sum(positions > 0.75) == 4
    assert int(placed.round_trips) == int(placed.num_exchanges) == 0
    np.testing.assert_array_equal(placed.replica, rungs.replica)


def test_the_first_rung_is_the_prior():
    rankings = Rankings.from_orderings(PLACKETT_LUCE, num_items=3)
    kernel = TemperedMixture("plackett-luce", 2, num_temperatures=4, num_steps=8)
    mcmc = run_chains(kernel, rankings, seed=1, num_warmup=20, num_samples=500, num_chains=8)
    fields = mcmc.get_extra_fields(group_by_chain=True)
    assert np.all(np.asarray(fields["rung_power"])[..., 0] == 0)
    assert np.all(np.diff(np.asarray(fields["rung_power"])) > 0)
    # the mean of log w is -1 for each of two shares that are uniform
    log_shares = np.asarray(fields["rung_log_shares"])[..., 0].mean(1)
    error = log_shares.std(ddof=1) / np.sqrt(8)
    assert abs(log_shares.mean() + 2.0) < 6 * error


@pytest.mark.parametrize("number", [7, 1000, 42_134, 1_000_000])
def test_the_last_rung_is_the_model_to_the_last_bit(number):
    path = Path(jnp.array(0.37), jnp.array(float(number)), (4.0, 1.0))
    powers = path.powers(jnp.array([0.0, 0.5, 1.0, 1.25]))
    assert float(powers[0]) == 0 and 0 < float(powers[1]) < float(powers[2])
    assert float(powers[2]) == float(powers[3]) == np.float32(0.37)


@pytest.mark.parametrize("weights", [None, 3.0])
def test_a_run_has_the_prior_of_its_rankings(weights):
    """Shapes are rounded in a run, N of the prior is not."""
    rankings = Rankings.from_orderings(np.tile(np.arange(10), (99, 1)), num_items=10).unique()
    if weights is not None:
        rankings = WeightedRankings.of(rankings, [weights], scale=False)
    kernel, rounded = TemperedMixture("mallows", 2), round_rows(rankings)
    assert rounded.num_rankings > 99
    path = kernel._path(*kernel._read((rounded,), {}))
    expected = 99 / 20 if weights is None else math.lgamma(11) / 2
    assert path.share_concentrations[1] == pytest.approx(expected)
    assert default_share_concentration(10, rankings.effective_number) == pytest.approx(expected)


def test_the_default_number_of_temperatures():
    # of the bundled ballots: four stages, and 15,449 rankings
    assert [choose_number(5 * k - 1, 15_449) for k in (1, 3, 4)] == [16, 32, 40]
    assert (choose_number(1, 2), choose_number(10_000, 1e6)) == (8, 64)


def test_rungs_move_in_the_warm_up_only():
    sweeps = jnp.arange(201)
    placed = np.asarray(jax.vmap(lambda x: is_adapted(x, jnp.array(200)))(sweeps))
    assert np.flatnonzero(placed).tolist() == [6, 12, 20, 34, 56, 90, 140]
    assert not np.any(jax.vmap(lambda x: is_adapted(x, jnp.array(0)))(sweeps))
    path = Path(jnp.ones(()), jnp.array(9.0), (1.0, 1.0))
    assert np.all(np.asarray(mean_rejection(first_rungs(path, 4))) == 0)


def test_shares_stay_normalised_and_impossible_rankings_stop_nothing():
    # the weights of half of the items underflow, so that components give rankings probability 0
    lists = [list(range(30)), list(range(29, -1, -1))]
    rankings = Rankings.from_orderings(lists, num_items=30, counts=[30, 20])
    kernel = TemperedMixture(PlackettLuceComponents(0.05), 3, num_temperatures=12, num_steps=16)
    mcmc = run_chains(kernel, rankings, seed=0, num_warmup=30, num_samples=60, num_chains=4)
    samples, fields = mcmc.get_samples(), mcmc.get_extra_fields(group_by_chain=True)
    assert np.all(np.isfinite(fields["rung_log_likelihood"]))
    assert np.all(np.isfinite(samples["log_joint"])) and len(np.unique(samples["log_joint"])) > 60
    np.testing.assert_allclose(samples["shares"].sum(1), 1, atol=1e-5)
    assert np.all(np.isfinite(log_evidence(mcmc)))
