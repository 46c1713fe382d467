"""Draws of tempered mixtures in all summaries, as those of the other finite mixtures."""

from functools import cache

import jax
import numpy as np
import pytest
from helpers.fabricated import as_run
from helpers.refusals import assert_refused
from jax import random
from scipy.special import logsumexp

from numpyro_rankings import (
    Draws,
    Rankings,
    cluster_profiles,
    diagnostics_table,
    find_blocs,
    log_predictive_density,
    posterior_predictive_checks,
    relabel_samples,
    stack_chains,
    to_inference_data,
)
from numpyro_rankings.infer import TemperedMixture
from numpyro_rankings.report import write_report

RANKINGS = Rankings.from_orderings(
    [[0, 1, 2, 3], [1, 0, 2], [3, 2], [3, 2, 1], [0]],
    items=["kiwi", "plum", "pear", "fig"],
    counts=[9, 4, 8, 3, 2],
)
NEW = Rankings.from_orderings([[0, 1], [3, 2, 1]], items=RANKINGS.items)
CASES = [("mallows", 3), ("plackett-luce", 1), ("mallows", 1), ("mallows", 2)]
CASES += [("plackett-luce", 2), ("plackett-luce", 3)]
QUICK = CASES[:2]
each_case = pytest.mark.parametrize(
    ("family", "number"),
    [pytest.param(*x, marks=[] if x in QUICK else [pytest.mark.slow]) for x in CASES],
)


@cache
def fitted(family, number):
    """Ladders that start at plausible values in place of draws, which take long to compile."""
    rng = np.random.default_rng(0)
    orders = [[0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2]][:number]
    start = {"shares": rng.dirichlet(20 * np.ones(number), 60)}
    if family == "mallows":
        start["center"] = np.tile(orders, (60, 1, 1))
        start["concentration"] = rng.gamma(9.0, 0.2, (60, number, 3))
    else:
        weights = rng.dirichlet([27.0, 9.0, 3.0, 1.0], (60, number))
        weights = np.take_along_axis(weights, np.argsort(orders)[None], axis=2)
        start["weights"] = weights if number > 1 else weights[:, 0]
    kernel = TemperedMixture(family, number, power=0.5, num_temperatures=2, num_steps=8)
    states = kernel.init(random.split(random.key(3), 60), 0, start, (RANKINGS,), {})
    for name, x in start.items():  # in the order in which the labels use them
        np.testing.assert_allclose(np.sort(states.z[name], 1), np.sort(x, 1), rtol=1e-5)
    z, accept, overflow = jax.tree.map(
        lambda x: x.reshape(2, 30, *x.shape[1:]), (states.z, states.accept_prob, states.overflow)
    )
    return as_run(kernel, z, RANKINGS, accept, overflow)


def log_mixture(draws, lists):
    """Log probability of lists, (chains, draws, rows), from the formula."""
    table = np.asarray(
        jax.vmap(jax.vmap(lambda z: draws.family.log_rows(z, lists, None)))(
            {name: draws.samples[name] for name in draws.family.parameters}
        )
    )
    return logsumexp(table + np.log(draws.samples["shares"])[..., None], axis=2)


@each_case
def test_summaries(family, number, tmp_path):
    mcmc = fitted(family, number)
    draws = Draws.of(mcmc)
    assert draws.num_components == number and draws.family.name == family
    assert Draws.of(mcmc.get_samples(group_by_chain=True)).num_components == number
    data = to_inference_data(mcmc, RANKINGS)
    table = diagnostics_table(data)
    assert {"log_joint"} <= set(table.index) and np.isfinite(table["mean"]).all()
    if number > 1 or family == "mallows":
        assert data["posterior"]["shares"].dims == ("chain", "draw", "cluster")
        profiles = cluster_profiles(draws, RANKINGS)
        assert 0 < sum(x.size for x in profiles) <= len(RANKINGS) + 1e-3
        check_relabeled(mcmc.get_samples())
    else:
        assert data["posterior"]["weights"].dims == ("chain", "draw", "item")
    if number > 1:
        blocs = find_blocs(draws, RANKINGS)
        assert len(blocs.levels)
    checks = posterior_predictive_checks(random.key(0), draws, RANKINGS)
    assert checks.items == RANKINGS.items
    stack_chains(data)
    write_report(tmp_path / "page.html", data, RANKINGS)


def check_relabeled(samples):
    """The shares move with the parameters of their components."""
    found = relabel_samples(samples)
    for draw in range(0, 60, 7):
        moved, has = found.samples["shares"][draw], found.found[draw]
        sizes = found.samples["cluster_sizes"][draw]
        old = zip(
            samples["shares"][draw].tolist(), samples["cluster_sizes"][draw].tolist(), strict=True
        )
        assert set(zip(moved[has].tolist(), sizes[has].tolist(), strict=True)) <= set(old)
        assert np.isnan(moved[~has]).all()


@each_case
def test_densities_mix_by_the_shares(family, number):
    mcmc = fitted(family, number)
    draws, lists = Draws.of(mcmc), np.asarray(NEW.orderings)
    expected = logsumexp(log_mixture(draws, lists), axis=(0, 1)) - np.log(60)
    found = log_predictive_density(mcmc, NEW)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(log_predictive_density(mcmc.get_samples(), NEW), expected, rtol=1e-4)
    values = to_inference_data(mcmc, RANKINGS)["log_likelihood"]["rankings"]
    rows = np.asarray(RANKINGS.row_index)
    expected = log_mixture(draws, np.asarray(RANKINGS.orderings))[..., rows]
    np.testing.assert_allclose(values, expected, rtol=1e-4)


def test_densities_need_empty_components():
    mcmc = fitted("mallows", 3)
    assert not Draws.of(mcmc).sizes.all()
    cases = [("empty in a draw", to_inference_data(mcmc, RANKINGS), NEW)]
    assert_refused(log_predictive_density, *cases)
