"""Shares that depend on covariates: against sums over a grid, and their steps alone."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpy.testing as npt
import numpyro.distributions as dist
import pytest
from helpers.kernel_tests import run_chains
from helpers.ranking_kernels import table
from helpers.refusals import assert_refused
from helpers.tempered_twin import PlackettLuceMarginal
from jax import random
from numpyro.infer.util import log_density
from scipy.special import expit, logsumexp

from numpyro_rankings import (
    Draws,
    Rankings,
    Run,
    WeightedRankings,
    judge_covariates,
    to_inference_data,
)
from numpyro_rankings.infer import MallowsComponents, PlackettLuceComponents, TemperedMixture
from numpyro_rankings.infer.tempered.ladder import Path, first_rungs
from numpyro_rankings.posterior import log_evidence

FEW = {"num_temperatures": 2, "num_steps": 1}
KAPPA, SCALE = 1.3, 1.5
LISTS = [[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0], [2, 1, 0], [2, 0, 1], [0, 1, 2]]
REGION = ["n", "n", "n", "s", "s", "s", "s", "s"]
SHAPE = [1.0, 1.5, 2.0]
PRIOR = dist.LogNormal(0.0, 0.7)


def made(number=8):
    rankings = Rankings.from_orderings(LISTS[:number], num_items=3)
    return judge_covariates(rankings, {"region": REGION[:number]}, "region")


def mallows_nodes():
    """Log prior masses and log probabilities of each list, for centers and θ."""
    x, width = np.polynomial.legendre.leggauss(24)
    theta = np.exp(x * 4.0)  # the prior is in it
    log_prior = -0.5 * (np.log(theta) / 0.7) ** 2 + np.log(width)
    centers = list(itertools.permutations(range(3)))
    distance = np.array(
        [
            [sum(c.index(a) > c.index(b) for a, b in itertools.combinations(x, 2)) for x in LISTS]
            for c in centers
        ]
    )
    log_psi = np.log1p(np.exp(-theta)) + np.log1p(np.exp(-theta) + np.exp(-2 * theta))
    log_rows = -theta[:, None, None] * distance - log_psi[:, None, None]
    return np.repeat(log_prior, len(centers)), log_rows.reshape(-1, len(LISTS))


def plackett_luce_nodes():
    twin = PlackettLuceMarginal(LISTS, SHAPE, num_nodes=12)
    return twin.log_measure, np.array(twin.log_rows).T


FAMILIES = {
    "mallows": (MallowsComponents(concentration_prior=PRIOR, tied=True), mallows_nodes),
    "plackett-luce": (PlackettLuceComponents(SHAPE), plackett_luce_nodes),
}


def quantities(shares, difference, first):
    """What is compared, the components in the order of their probability of the first list.

    :param shares: of one of two components in both cells, (…, 2).
    :param difference: of the effect on it from that on the other one.
    :param first: whether it gives the first list the greater probability.
    """
    shares = np.where(first[..., None], shares, 1.0 - shares)
    difference = np.where(first, difference, -difference)
    return np.stack([shares[..., 0], shares[..., 1], difference, difference**2], axis=-1)


def means_on_a_grid(log_prior, log_rows, x):
    """Posterior means of the quantities and log evidence, of two components, summed over a grid.

    :param x: design of each judge, and of the two cells.
    """
    of_judges, of_cells = x
    odds, width = np.polynomial.legendre.leggauss(32)
    log_odds, width = 8.0 * odds, 8.0 * width
    log_w = KAPPA * (np.log(expit(log_odds)) + np.log(expit(-log_odds))) + np.log(width)
    nodes, widths = np.polynomial.legendre.leggauss(32)
    delta = 6.5 * SCALE * nodes  # the standard deviation of a difference is √2 SCALE
    log_delta = -0.25 * (delta / SCALE) ** 2 + np.log(widths)
    log_w, log_delta, log_prior = (x - logsumexp(x) for x in (log_w, log_delta, log_prior))
    odds_and_weights = list(zip(log_odds, log_w, strict=True))
    effects_and_weights = list(zip(delta, log_delta, strict=True))
    total, sums = 0.0, 0.0
    rows, peak = np.exp(log_rows), None
    for (a, lw), (d, ld) in itertools.product(odds_and_weights, effects_and_weights):
        share = expit(a + d * of_judges)
        mixed = share * rows[:, None] + (1 - share) * rows
        log_weight = np.log(mixed).sum(-1) + log_prior[:, None] + log_prior + lw + ld
        peak = log_weight.max() if peak is None else peak
        weight = np.exp(log_weight - peak)
        cells = np.broadcast_to(expit(a + d * of_cells), (*weight.shape, 2))
        first = rows[:, None, 0] > rows[:, 0]
        # nodes that tie count half each way
        tied = (rows[:, None, 0] == rows[:, 0])[..., None]
        one, other = (quantities(cells, np.full(weight.shape, d), x) for x in (first, ~first))
        values = np.where(tied, (one + other) / 2, one)
        total += weight.sum()
        sums += (weight[..., None] * values).sum((0, 1))
    return sums / total, np.log(total) + peak


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.slow
def test_effects_and_shares_are_those_on_a_grid(family):
    components, nodes = FAMILIES[family]
    given = made()
    kernel = TemperedMixture(
        components, 2, KAPPA, num_temperatures=8, num_steps=16, effect_scale=SCALE
    )
    mcmc = run_chains(
        kernel, given.rankings, given.covariates, seed=4, num_warmup=200, num_samples=1500,
        num_chains=16, jit_model_args=family == "mallows",
    )  # fmt: skip
    draws = {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}
    design = np.asarray(given.covariates.design)
    linear = np.log(draws["shares"])[..., None] + draws["share_effects"] @ design.T
    shares = np.exp(linear - logsumexp(linear, axis=2, keepdims=True))[:, :, 0]
    difference = draws["share_effects"][:, :, 0, 0] - draws["share_effects"][:, :, 1, 0]
    if family == "mallows":  # the probability of the first list
        place = np.argsort(draws["center"], axis=-1)
        wrong = sum((place[..., a] > place[..., b]) for a, b in itertools.combinations(LISTS[0], 2))
        theta = draws["concentration"][..., 0]
        log_first = -theta * wrong - np.log1p(np.exp(-theta))
        log_first -= np.log1p(np.exp(-theta) + np.exp(-2 * theta))
    else:
        w = draws["weights"]
        log_first = np.log(w[..., 0] * w[..., 1] / (1 - w[..., 0]))
    first = log_first[..., 0] > log_first[..., 1]
    means = quantities(shares, difference, first).mean(1)
    in_order = made().covariates
    of_judges = np.array([design[c] for c in np.asarray(in_order.cells)])[:, 0][given.judges]
    expected, log_total = means_on_a_grid(*nodes(), (of_judges, design[:, 0]))
    error = means.std(0, ddof=1) / 4  # of 16 ladders
    assert np.all(error < [0.01, 0.01, 0.04, 0.12]), error
    assert np.all(np.abs(means.mean(0) - expected) < 6 * error), (means.mean(0), expected, error)
    evidence = log_evidence(mcmc)
    assert evidence.standard_error < 0.02
    assert abs(evidence.value - log_total) < 5 * max(evidence.standard_error, 1e-3)


@pytest.mark.slow
def test_the_steps_keep_the_joint_distribution_of_state_and_data():
    full = [list(x) for x in itertools.permutations(range(3))]
    given = judge_covariates(
        Rankings.from_orderings(4 * full, num_items=3),
        {"region": ["n"] * 12 + ["s"] * 12, "age": 2 * (6 * [1.0] + 6 * [2.0])},
        "region + age",
    )
    kernel = TemperedMixture("plackett-luce", 3, num_steps=16, effect_scale=SCALE)
    _, rows = kernel._read((given.rankings, given.covariates), {})
    path = Path(jnp.ones(()), jnp.array(12.0), (KAPPA, KAPPA))
    number, num_rows = 12_000, given.rankings.num_rows
    cells = np.asarray(rows.covariates.cells)

    def draw(key):
        key_prior, key_rows = random.split(key)
        replica = kernel._draw_prior(key_prior, rows, path)
        log_density = kernel._read_one(replica, rows).log_density
        counts = jnp.zeros(num_rows)
        for cell, key in enumerate(random.split(key_rows, int(cells.max()) + 1)):
            # of each cell all lists are there, and three judges
            own = jnp.where(cells == cell, log_density, -jnp.inf)
            drawn = random.categorical(key, own, shape=(3,))
            counts += jnp.sum(drawn[:, None] == jnp.arange(num_rows), axis=0)
        return replica, counts

    def log_normalised(replica, counts):
        log_density = kernel._read_one(replica, rows).log_density
        log_likelihood = jnp.sum(counts * log_density)
        effects = replica.effects
        values = jnp.concatenate(
            [jnp.exp(replica.log_shares), jnp.tanh(effects.ravel()), (effects**2).ravel()]
        )
        values = jnp.append(values, jnp.sum(jnp.exp(2.0 * replica.log_shares)))
        return jnp.concatenate([values, values * log_likelihood, log_likelihood[None]])

    def move(key, replica, counts):
        own = rows._replace(data=rows.data._replace(counts=counts))
        rungs = first_rungs(path, 2)
        rungs = rungs._replace(positions=jnp.ones(1), replica=jnp.zeros(1, jnp.int32))
        end, _ = kernel._steps(key, jax.tree.map(lambda x: x[None], replica), rungs, path, own)
        return jax.tree.map(lambda x: x[0], end)

    replicas, counts = jax.jit(jax.vmap(draw))(random.split(random.key(0), number))
    moved = jax.jit(jax.vmap(move))(random.split(random.key(1), number), replicas, counts)
    statistics = jax.jit(jax.vmap(log_normalised))
    change = np.asarray(statistics(moved, counts) - statistics(replicas, counts), float)
    assert np.any(np.abs(change) > 1e-4, axis=0).all()
    error = change.std(0, ddof=1) / np.sqrt(number)
    assert np.all(np.abs(change.mean(0)) <= 5 * error)


def start(kernel, given, params=None, key=None):
    key = random.split(random.key(0), 3) if key is None else key
    return kernel.init(key, 0, params, (given.rankings, given.covariates), {})


@pytest.mark.parametrize(
    ("family", "number"), [("plackett-luce", 2), pytest.param("mallows", 3, marks=pytest.mark.slow)]
)
def test_log_joint_is_the_density_of_the_model(family, number):
    given = judge_covariates(
        table(), {"region": list("nsnsw"), "age": [20, 30, 30, 41, 20]}, "region + age"
    )
    kernel = TemperedMixture(family, number, 1.4, 0.7, effect_scale=SCALE, **FEW)
    state = start(kernel, given)
    assert state.z["share_effects"].shape == (3, number, 3)
    data = given.rankings, given.covariates
    density = jax.jit(jax.vmap(lambda z: log_density(kernel.model, data, {}, z)[0]))
    npt.assert_allclose(state.z["log_joint"], density(state.z), rtol=1e-4, atol=1e-4)
    one = jax.tree.map(lambda x: x[0], state)
    again = kernel.refresh(one._replace(potential_energy=jnp.nan), data, {})
    npt.assert_allclose(-again.potential_energy, one.z["log_joint"], rtol=1e-5, atol=1e-5)
    # a whole draw is a start
    drawn = start(kernel, given, one.z, random.key(1)).z
    spread = np.asarray(one.z["share_effects"] - one.z["share_effects"].mean(0))
    found = np.asarray(drawn["share_effects"] - drawn["share_effects"].mean(0))
    npt.assert_allclose(np.sort(found, 0), np.sort(spread, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_run_pads_rows_and_its_likelihood_is_by_judge():
    """A run rounds up the rows, or gives each ranking one: the cells stay those of the judges."""
    given = made()
    kernel = TemperedMixture("plackett-luce", 2, **FEW)
    run = Run(kernel, given.rankings, given.covariates, key=random.key(0), num_chains=2)
    run.extend(4)
    mcmc = run.as_mcmc()
    data = given.rankings, given.covariates
    flat = mcmc.get_samples()
    density = jax.vmap(lambda z: log_density(kernel.model, data, {}, z)[0])
    npt.assert_allclose(flat["log_joint"], density(flat), rtol=1e-4, atol=1e-4)
    found = to_inference_data(mcmc, given.rankings)
    assert list(found["posterior"]["share_effects"].coords["covariate"].values) == ["region: n"]
    again = Draws.of(found).covariates
    assert again.terms == given.covariates.terms
    npt.assert_allclose(again.design, given.covariates.design)
    npt.assert_array_equal(again.cells, given.covariates.cells)
    values = found["log_likelihood"]["rankings"].values.reshape(len(flat["shares"]), -1)
    linear = (
        np.log(flat["shares"])[..., None]
        + flat["share_effects"] @ np.asarray(given.covariates.design).T
    )
    shares = np.exp(linear - logsumexp(linear, axis=1, keepdims=True))
    w, lists = np.asarray(flat["weights"]), np.asarray(given.rankings.expand().orderings)
    first, second, third = (w[:, :, lists[:, k]] for k in range(3))
    of_lists = first * second / (second + third)
    expected = np.log((shares[:, :, np.asarray(given.covariates.cells)] * of_lists).sum(1))
    npt.assert_allclose(values, expected, rtol=1e-4, atol=1e-4)


def test_what_is_refused():
    given, other = made(), made(7)
    kernel, rows = TemperedMixture("plackett-luce", 2, **FEW), given.rankings.num_rows
    assert_refused(
        start,
        ("one component: take num_components from 2 on", TemperedMixture("mallows", 1), given),
        ("8 judges in another order than the 7 rankings", kernel,
         given._replace(rankings=other.rankings)),
        ("go without survey weights: leave the covariates out", kernel,
         given._replace(rankings=WeightedRankings.of(given.rankings, range(1, rows + 1)))),
        ("'share_effects'. must have shape .3, 2, 1.", kernel, given,
         {"share_effects": np.zeros((2, 1))}),
        ("'share_effects'. must be finite", kernel, given,
         {"share_effects": np.full((3, 2, 1), np.nan)}),
    )  # fmt: skip
    assert_refused(
        lambda x: TemperedMixture("mallows", 2, effect_scale=x), ("effect_scale must be", 0.0)
    )
    with pytest.raises(TypeError, match="nothing else"):
        kernel.init(random.key(0), 0, None, (given.rankings, jnp.zeros(3)), {})
