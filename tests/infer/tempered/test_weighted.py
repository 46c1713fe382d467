"""Survey weights: the pseudo-posterior against a slow twin, and what it is for."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers.enumeration import codes_of
from helpers.kernel_tests import run_chains
from jax import random
from numpyro.infer import MCMC
from numpyro.infer.util import log_density
from scipy.special import gammaln, logsumexp

from numpyro_rankings import (
    Rankings,
    RankingsError,
    Run,
    WeightedRankings,
    group_path,
    survey_weights,
)
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs, TemperedMixture
from numpyro_rankings.report.findings import _with_weights
from numpyro_rankings.run.rounding import round_rows

ROWS = [[0, 1, 2], [0], [1, 0, 2], [2], [2, 1, 0]]
WEIGHTS = [0.3, 2.5, 1.0, 0.0, 4.2]
COUNTS = [2, 1, 3, 1, 1]
KAPPA = 1.3
SETTINGS = {"seed": 2, "num_warmup": 200, "num_samples": 1500, "num_chains": 4}


def weighted(weights=WEIGHTS, counts=COUNTS, scale=True):
    rankings = Rankings.from_orderings(ROWS, num_items=3, counts=counts)
    return WeightedRankings.of(rankings, weights, scale)


def amounts():
    """The scaled weights of all judges of each row, by the formula."""
    each = np.repeat(WEIGHTS, COUNTS)
    effective = each.sum() ** 2 / (each**2).sum()
    return np.array(COUNTS) * WEIGHTS * effective / each.sum(), effective


def log_plackett_luce(weights):
    """The log probabilities of the rows, (..., rows)."""
    rows = []
    for ranking in ROWS:
        left, log_row = weights.sum(-1), 0.0
        for item in ranking[:2]:  # the last one is certain
            log_row = log_row + np.log(weights[..., item] / left)
            left = left - weights[..., item]
        rows.append(log_row)
    return np.stack(rows, -1)


def log_mallows(center, theta):
    rows = []
    for ranking in ROWS:
        log_row = 0.0
        for j, code in enumerate(codes_of(ranking[:2], center)):
            log_psi = np.log(np.exp(-np.arange(3 - j) * theta[..., j, None]).sum(-1))
            log_row = log_row - code * theta[..., j] - log_psi
        rows.append(log_row)
    return np.stack(rows, -1)


def log_dirichlet(shares, kappa):
    number = shares.shape[-1]
    constant = gammaln(number * kappa) - number * gammaln(kappa)
    return constant + ((kappa - 1) * np.log(shares)).sum(-1)


def test_scaled_weights_are_those_of_kish():
    scaled, effective, design_effect = survey_weights(np.repeat(WEIGHTS, COUNTS))
    each = np.repeat(WEIGHTS, COUNTS)
    assert effective == pytest.approx(each.sum() ** 2 / (each**2).sum())
    np.testing.assert_allclose(scaled, each * effective / each.sum())
    assert scaled.sum() == pytest.approx(effective)
    assert design_effect == pytest.approx(1 + (each.std() / each.mean()) ** 2)
    for scale in (1e-200, 1e200):  # whose squares are no floats
        assert survey_weights(each * scale).effective_number == pytest.approx(effective)
    assert survey_weights([3, 3, 3])[1:] == (pytest.approx(3), pytest.approx(1))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -0.5, 1, 1, 1], "row 2: weight -0.5"),
        ([1, 1, np.nan, 1, 1], "row 3: weight nan"),
        ([1, 1, 1, None, np.inf], r"row 4: weight nan .*\(also 1 more\)"),
        ([0, 0, 0, 0, 0], "all weights are 0"),
        ([1, 1], "5 rows, got 2"),
        (["a", 1, 1, 1, 1], "must be numbers"),
        ([[1.0]], "shape"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(RankingsError, match=message):
        weighted(weights)


def test_equal_rankings_have_the_mean_of_their_weights():
    rankings = Rankings.from_orderings([[0, 1], [1, 0], [0, 1]], num_items=2, counts=[2, 1, 1])
    made = WeightedRankings.of(rankings, [1.0, 3.0, 5.0])
    merged = made.unique()
    assert merged.effective_number == made.effective_number == pytest.approx(100 / 36)
    sums = np.array([7.0, 3.0]) * made.effective_number / 10
    np.testing.assert_allclose(merged.weights * merged.counts, sums, rtol=1e-6)
    assert merged.unweighted() == rankings.unique()
    np.testing.assert_allclose(merged.expand().weights.sum(), made.effective_number, rtol=1e-6)
    leaves, structure = jax.tree.flatten(merged)
    assert jax.tree.unflatten(structure, leaves) == merged
    assert merged.of_listed_items() == merged
    one, two = made.split(random.key(0), 0.5)
    for part in (one, two):
        np.testing.assert_allclose((part.weights * part.counts).sum(), part.effective_number, 1e-5)


@pytest.mark.parametrize("family", ["mallows", "plackett-luce"])
def test_the_log_joint_is_that_of_the_twin_and_of_the_model(family):
    kernel = TemperedMixture(family, 2, KAPPA, num_temperatures=3, num_steps=8)
    rankings = weighted()
    own, effective = amounts()
    assert kernel.num_temperatures(rankings) == 3
    state = kernel.init(random.key(1), 5, None, (rankings,), {})
    for _ in range(2):
        z = {name: np.asarray(x, float) for name, x in state.z.items()}
        if family == "mallows":
            rows = np.stack(
                [
                    log_mallows(np.asarray(c, int), t)
                    for c, t in zip(z["center"], z["concentration"], strict=True)
                ]
            )
        else:
            rows = log_plackett_luce(z["weights"])
        likelihood = logsumexp(rows + np.log(z["shares"])[:, None], axis=0) @ own
        joint = float(log_density(kernel.model, (rankings,), {}, dict(state.z))[0])
        flat = float(log_density(kernel.model, (rankings.unweighted(),), {}, dict(state.z))[0])
        plain = logsumexp(rows + np.log(z["shares"])[:, None], axis=0) @ COUNTS
        assert float(state.z["log_joint"]) == pytest.approx(joint, rel=1e-5)
        assert float(-kernel.refresh(state, (rankings,), {}).potential_energy) == pytest.approx(
            joint, rel=1e-5
        )
        assert joint - likelihood == pytest.approx(flat - plain, rel=1e-4)  # the prior
        state = kernel.sample(state, (rankings,), {})
    np.testing.assert_allclose(state.rung_effective_size[-1], effective, rtol=1e-6)


@pytest.mark.parametrize("family", ["mallows", "plackett-luce"])
def test_whole_weights_are_counts(family):
    kernel = TemperedMixture(family, 2, num_temperatures=3, num_steps=8)
    counts = Rankings.from_orderings(ROWS, num_items=3, counts=[4, 1, 3, 2, 5])
    weights = weighted([4, 1, 3, 2, 5], [1] * 5, scale=False)
    assert weights.effective_number == counts.num_rankings
    assert kernel.num_temperatures(weights) == kernel.num_temperatures(counts)
    states = [kernel.init(random.key(1), 5, None, (x,), {}) for x in (counts, weights)]
    states = [kernel.sample(s, (x,), {}) for s, x in zip(states, (counts, weights), strict=True)]
    for name in ("shares", "log_joint"):
        one, two = (s.z[name] for s in states)
        assert np.array_equal(one, two)
    assert len(states[1].z["assignments"]) == 5  # labels are of judges


def test_draws_of_one_mallows_model_have_the_means_of_quadrature():
    own, _ = amounts()
    x, dx = np.linspace(1e-4, 3.0, 150, retstep=True)
    theta, log_width = x**3, np.log(3 * x**2 * dx)
    grid = np.stack(np.meshgrid(theta, theta, indexing="ij"), -1)
    left = [np.log(np.exp(-np.outer(range(n), theta)).sum(0)) for n in (3, 2)]
    log_prior = [-(theta + log_psi) + log_width for log_psi in left]  # nu = r = 1
    log_prior = log_prior[0][:, None] + log_prior[1]
    tables = {
        center: log_mallows(center, grid) @ own + log_prior
        for center in itertools.permutations(range(3))
    }
    total = logsumexp(list(tables.values()))
    kernel = TemperedMixture("mallows", 1, num_temperatures=8)
    mcmc = run_chains(kernel, weighted(), **SETTINGS)
    samples = mcmc.get_samples()
    for center, table in tables.items():
        share = np.exp(logsumexp(table) - total)
        found = np.mean(np.all(np.asarray(samples["center"])[:, 0] == center, -1))
        assert abs(found - share) < 0.03, (center, found, share)


def test_draws_of_two_plackett_luce_models_have_the_means_of_quadrature():
    own, _ = amounts()
    nodes, widths = np.polynomial.legendre.leggauss(14)
    nodes, widths = (nodes + 1) / 2, widths / 2
    a, b = (x.ravel() for x in np.meshgrid(nodes, nodes, indexing="ij"))
    log_rows = log_plackett_luce(np.stack([a, (1 - a) * b, (1 - a) * (1 - b)], 1))
    log_width = np.log(np.outer(widths, widths).ravel() * (1 - a))
    densities, logs, spread = np.exp(log_rows), [], []
    for share, width in zip(nodes, widths, strict=True):
        mixture = share * densities[:, None] + (1 - share) * densities
        log_joint = np.log(mixture) @ own + log_width[:, None] + log_width
        logs.append(log_joint + math.log(width) + log_dirichlet(np.array([share, 1 - share]), 1.3))
        spread.append(share**2 + (1 - share) ** 2)
    logs = np.array(logs)
    chance = np.exp(logsumexp(logs, axis=(1, 2)) - logsumexp(logs))
    expected = chance @ spread
    kernel = TemperedMixture("plackett-luce", 2, KAPPA, num_temperatures=8)
    mcmc = run_chains(kernel, weighted(), **SETTINGS)
    found = np.square(np.asarray(mcmc.get_samples()["shares"])).sum(-1).mean()
    assert found == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("kernel", [SliceGibbs(), PlackettLuceGibbs()])
def test_other_kernels_refuse_weights(kernel):
    with pytest.raises(TypeError, match=r"takes no survey weights.*TemperedMixture"):
        MCMC(kernel, num_warmup=1, num_samples=1).run(random.key(0), weighted())


def test_runs_take_weights_and_know_them_again(tmp_path):
    kernel = TemperedMixture("plackett-luce", 2, num_temperatures=3, num_steps=8)
    rankings = weighted()
    settings = {"key": random.key(3), "num_chains": 2, "num_warmup": 10}
    run = Run(kernel, rankings, store=tmp_path / "run", **settings)
    run.extend(6)
    draws = run.get_samples()["log_joint"]
    mcmc = MCMC(
        kernel,
        num_warmup=10,
        num_samples=6,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
        jit_model_args=True,
    )
    mcmc.run(random.key(3), rankings)
    assert np.all(np.isfinite(draws)) and np.all(np.isfinite(mcmc.get_samples()["log_joint"]))
    assert run.get_samples()["assignments"].shape[-1] == rankings.num_rankings
    z = {name: jnp.asarray(x[0, -1]) for name, x in run.get_samples(group_by_chain=True).items()}
    joint = log_density(kernel.model, (rankings,), {}, z)[0]
    assert float(z["log_joint"]) == pytest.approx(float(joint), rel=1e-5)  # rows are padded
    sizes = run.as_mcmc().get_extra_fields()["rung_effective_size"]
    np.testing.assert_allclose(sizes[:, -1], rankings.effective_number, rtol=1e-6)
    run.close()
    other = weighted([0.3, 2.5, 1.0, 0.1, 4.2])
    with pytest.raises(Exception, match="differ"):
        Run.resume(tmp_path / "run", kernel, other)
    assert Run.resume(tmp_path / "run", kernel, rankings).num_draws == 6


def test_other_weights_are_no_other_program():
    rng, number = np.random.default_rng(0), 200
    rankings = Rankings.from_orderings([rng.permutation(4) for _ in range(number)], num_items=4)
    one, other = (WeightedRankings.of(rankings, 10 + rng.random(number)) for _ in range(2))
    assert one.effective_number != other.effective_number
    assert jax.tree.structure(round_rows(one)) == jax.tree.structure(round_rows(other))
    few = WeightedRankings.of(rankings, np.arange(number) < 3)
    assert round_rows(few).effective_number == 16


def test_chains_that_disagree_have_no_weights_by_what_they_predict_of_the_sample():
    posterior = xr.Dataset({"x": (("chain", "draw"), np.zeros((2, 5)))})
    data = {"posterior": posterior, "sample_stats": posterior}
    assert _with_weights(data, weighted(), pd.DataFrame({"r_hat": [2.0]})) is data


def test_the_path_to_the_number_of_groups_ends_at_the_effective_number():
    rankings = weighted(counts=[20, 10, 30, 10, 10])
    path = group_path(rankings, "plackett-luce", 1, num_warmup=20, num_samples=20)
    assert float(path["effective_size"][-1]) == pytest.approx(rankings.effective_number)
    assert path.sizes["ranking"] == 80
    with pytest.raises(ValueError, match="at most the"):
        group_path(rankings, effective_sizes=[2, rankings.effective_number + 1])


# judges of each of two strata, their shares of the population, and the share of one group in each
STRATA = (60, 0.8, 0.8), (90, 0.2, 0.2)
TRUTH = sum(share * of_group for _, share, of_group in STRATA)


def stratified_sample(rng):
    """Lists of five items of two opposite groups, in the order of the strata, and the weights."""
    lists, weights = [], []
    for number, share, of_group in STRATA:
        for is_first in rng.random(number) < of_group:
            left, order = list(range(5)), []
            while left:
                chance = np.exp(-1.5 * np.arange(len(left)))
                order.append(left.pop(rng.choice(len(left), p=chance / chance.sum())))
            lists.append(order if is_first else [4 - item for item in order])
        weights += [share / number] * number
    return Rankings.from_orderings(lists, num_items=5), np.array(weights)


@pytest.mark.slow
def test_intervals_of_a_stratified_sample_hold_the_share_in_the_population():
    kernel = TemperedMixture("mallows", 2, 1.0, num_temperatures=4, num_steps=8)
    start = {
        "center": np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]], np.int32),
        "concentration": np.full((2, 4), 1.5),
        "shares": np.array([0.5, 0.5]),
    }

    @jax.jit  # MCMC would make its program anew for each sample
    def draw(state, rankings):
        def sweep(state, _):
            state = kernel.sample(state, (rankings,), {})
            return state, (state.z["shares"], state.z["center"])

        return jax.lax.scan(sweep, state, length=170)[1]

    def holds(rankings, replicate):
        state = kernel.init(random.key(replicate), 20, start, (rankings,), {})
        shares, centers = (np.asarray(x)[20:] for x in draw(state, rankings))
        is_first = np.argmax(centers == 0, -1) < np.argmax(centers == 4, -1)
        low, high = np.quantile((shares * is_first).sum(-1), (0.05, 0.95))
        return low <= TRUTH <= high

    with_weights, without = [], []
    for replicate in range(60):
        rankings, weights = stratified_sample(np.random.default_rng(replicate))
        weighted_rankings = WeightedRankings.of(rankings, weights)
        # Σ W² / n of the strata is the same in all replicates
        assert weighted_rankings.effective_number == pytest.approx(90.0)
        with_weights.append(holds(weighted_rankings, replicate))
        if replicate < 10:
            without.append(holds(WeightedRankings.of(rankings, np.ones(150)), replicate))
    print(f"coverage with weights {np.mean(with_weights):.2f}, without {np.mean(without):.2f}")
    assert np.mean(with_weights) >= 0.85
    assert np.mean(without) <= 0.1
