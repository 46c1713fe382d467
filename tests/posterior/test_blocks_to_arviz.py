"""Conversion of models of which a kernel is a block, with the labels summed out for LOO."""

import math
from functools import partial
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.lists import mallows_twin
from numpyro.infer import MCMC, NUTS, Gibbs

import numpyro_rankings.distributions as rd
from numpyro_rankings import (
    Rankings,
    Run,
    cluster_profiles,
    diagnostics_table,
    log_predictive_density,
    to_inference_data,
)
from numpyro_rankings.components import GaussianMean
from numpyro_rankings.infer import (
    CollapsedGibbs,
    DDCRPGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    exponential_decay,
)
from numpyro_rankings.models import conjugate_mixture, ddcrp_mixture, dp_plackett_luce
from numpyro_rankings.models import gamma_process_plackett_luce as pool_model
from numpyro_rankings.posterior.diagnostics import as_dataset
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.likelihood import pointwise_log_likelihood
from numpyro_rankings.run.kernels import KernelTraits

LISTS = [[0, 1], [0, 2], [2, 1], [1, 2]]
RANKINGS = Rankings.from_orderings(LISTS, items=["a", "b", "c"], num_items=3, counts=[2, 1, 1, 1])
SIZE, SLOTS, CHAINS, DRAWS = 5, 4, 2, 3
OUTCOME = np.array([0.9, -1.1, 0.6, 0.2, -0.4], np.float32)
SITES = {"assignments": "z", "center": "sigma", "concentration": "theta"}


def mallows_model(rankings, num_components=None, outcome=None):
    alpha = numpyro.sample("mass", dist.Gamma(3.0, 2.0))
    kwargs = {"validate_args": outcome is None}
    partition = rd.ChineseRestaurantProcess(2.0 * alpha, SIZE, max_clusters=SLOTS, **kwargs)
    if num_components is not None:
        partition = rd.FiniteDirichletPartition(2.0 * alpha, num_components, SIZE, **kwargs)
    labels = numpyro.sample("z", partition)
    with numpyro.plate("cluster", SLOTS):
        center = numpyro.sample("sigma", rd.RandomPermutation(3))
        theta = numpyro.sample("theta", dist.Exponential(1.0).expand((2,)).to_event(1))
        level = 0.0 if outcome is None else numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("judge", SIZE):
        lists = rankings.orderings[rankings.row_index]
        numpyro.sample("list", rd.GeneralizedMallows(center[labels], theta[labels]), obs=lists)
        if outcome is not None:
            numpyro.sample("y", dist.Normal(level[labels], 0.7), obs=outcome)


def as_run(blocks, z, *args):
    """An ``MCMC`` of a composed model with these sites, (chains, draws, …), as if it had run."""
    mcmc = MCMC(Gibbs(blocks), num_warmup=0, num_samples=DRAWS, num_chains=CHAINS)
    mcmc._states = {"z": {name: jnp.asarray(x) for name, x in z.items()}}
    mcmc._args, mcmc._kwargs = args, {}
    return mcmc


def of_run(mcmc, **options):
    """What ``Run`` makes of these draws; to start chains of blocks takes long to compile."""
    run = Run.__new__(Run)
    run.as_mcmc, run._changes = lambda max_draws: mcmc, []
    run._loop = SimpleNamespace(traits=KernelTraits(mcmc.sampler))
    return run.to_inference_data(**options)


def mallows_sites(rng, labels):
    lead = (CHAINS, DRAWS)
    return {
        "z": np.broadcast_to(labels, (*lead, SIZE)).astype(np.int8),
        "sigma": np.argsort(rng.random((*lead, SLOTS, 3))).astype(np.int32),
        "theta": rng.gamma(2.0, 0.5, (*lead, SLOTS, 2)).astype(np.float32),
        "mass": rng.gamma(2.0, 0.5, lead).astype(np.float32),
    }


def mallows_run(num_components, outcome=None, labels=(0, 0, 1, 2, 1)):
    rng = np.random.default_rng(0)
    model = partial(mallows_model, num_components=num_components, outcome=outcome)
    settings = {} if num_components is None else {"num_components": num_components}
    if num_components is None:
        settings = {"max_clusters": SLOTS}
    z = mallows_sites(rng, labels)
    if outcome is not None:
        settings |= {"assignment": "parallel", "judge_sites": ["y"]}
        z["level"] = rng.normal(size=(CHAINS, DRAWS, SLOTS)).astype(np.float32)
    block = SliceGibbs(model=model, sites=SITES, **settings)
    return as_run([(block, list(SITES.values())), (NUTS(model), None)], z, RANKINGS), z


@pytest.mark.parametrize("num_components", [None, SLOTS])
def test_a_block_with_renamed_sites_is_converted(num_components):
    mcmc, z = mallows_run(num_components)
    data = to_inference_data(mcmc, RANKINGS)
    posterior = data["posterior"]
    assert posterior["z"].dims == ("chain", "draw", "ranking")
    assert posterior["sigma"].dims == ("chain", "draw", "cluster", "place")
    assert posterior["theta"].dims == ("chain", "draw", "cluster", "stage")
    sizes = (z["z"][..., None] == np.arange(SLOTS)).sum(2)
    np.testing.assert_array_equal(posterior["cluster_sizes"], sizes)
    np.testing.assert_array_equal(posterior["largest_sizes"][..., 0], sizes.max(-1))
    rank = posterior["rank"].sel(item="c").values
    center = np.argmax(z["sigma"] == 2, axis=-1) + 1
    np.testing.assert_array_equal(rank, np.where(sizes > 0, center, 0))
    assert posterior.attrs["kernel"] == "SliceGibbs"
    assert {"num_clusters", "partition_entropy"} <= set(diagnostics_table(data).index)
    assert "list" in data["observed_data"]
    # the model scales the mass by 2
    named = {name: z[site] for name, site in SITES.items()}
    named |= {"cluster_sizes": sizes.astype(np.int32), "alpha": 2.0 * z["mass"]}
    expected = pointwise_log_likelihood(Draws.of(named, RANKINGS, num_components))
    group = data["log_likelihood"]
    np.testing.assert_allclose(group["rankings"], expected, rtol=1e-5)
    assert "summed out" in group.attrs["labels"] and group.attrs["of"] == "rankings"
    with pytest.raises(ValueError, match="by itself, not of a block of Gibbs"):
        log_predictive_density(data, RANKINGS)
    without = to_inference_data(mcmc, RANKINGS, log_likelihood=False, include_assignments=False)
    assert "z" not in without["posterior"] and "log_likelihood" not in list(without)


@pytest.mark.parametrize("num_components", [None, SLOTS])
def test_a_run_gives_what_its_draws_give(num_components):
    mcmc, _ = mallows_run(num_components)
    expected = to_inference_data(mcmc, RANKINGS)
    assert {"rank", "cluster_sizes"} <= set(expected["posterior"]) and "log_likelihood" in expected
    found = of_run(mcmc)
    for group in ("posterior", "log_likelihood", "observed_data"):
        assert as_dataset(found[group]).equals(as_dataset(expected[group])), group
    assert found["posterior"].attrs["sites"] == expected["posterior"].attrs["sites"]
    without = of_run(mcmc, include_assignments=False, log_likelihood=False)
    assert "z" not in without["posterior"] and "log_likelihood" not in list(without)


def test_a_run_of_several_blocks_or_of_names_with_a_slash_gives_the_sites_alone():
    mcmc, z = mallows_run(None)
    block = mcmc.sampler.blocks[0][0]
    mcmc.sampler = Gibbs([(block, list(SITES.values())), (block, ["other"])])
    assert "rank" not in of_run(mcmc, log_likelihood=False)["posterior"]
    mcmc, z = mallows_run(None)
    mcmc._states["z"] = {**z, "a/b": z["mass"]}
    with pytest.warns(UserWarning, match="a/b as a%2Fb"):
        assert "rank" not in of_run(mcmc, log_likelihood=False)["posterior"]


def test_profiles_of_a_run_know_the_names_of_its_sites():
    mcmc, z = mallows_run(None)
    found, expected = (
        cluster_profiles(mcmc, RANKINGS),
        cluster_profiles(z, RANKINGS, sites=SITES),
    )
    assert len(found) == 3
    for one, two in zip(found, expected, strict=True):
        assert vars(one).keys() == vars(two).keys()
        for name, x in vars(one).items():
            np.testing.assert_array_equal(x, vars(two)[name], name)
    with pytest.raises(ValueError, match="a run knows the names of its sites"):
        cluster_profiles(mcmc, RANKINGS, sites=SITES)


@pytest.mark.parametrize("num_components", [None, SLOTS])
def test_loo_leaves_out_the_label_and_the_outcome_of_a_judge(num_components):
    """The fourth judge is alone in slot 2; slot 1 is empty."""
    mcmc, z = mallows_run(num_components, OUTCOME, labels=(0, 0, 3, 2, 3))
    data = to_inference_data(mcmc, RANKINGS, log_likelihood=True)
    group = data["log_likelihood"]
    assert group.attrs["of"] == "rankings, y"
    rows = np.asarray(RANKINGS.row_index)
    for chain, draw, i in np.ndindex(CHAINS, DRAWS, SIZE):
        here = {name: x[chain, draw] for name, x in z.items()}
        others = np.bincount(np.delete(here["z"], i), minlength=SLOTS)
        alpha, total = 2.0 * here["mass"], 0.0
        for c in range(SLOTS):
            alone = math.factorial(1) / math.factorial(3)
            p = mallows_twin(LISTS[rows[i]], here["sigma"][c], here["theta"][c])
            weight = others[c] + alpha / SLOTS
            if num_components is None:
                weight = others[c] or alpha / np.sum(others == 0)
            residual = (OUTCOME[i] - here["level"][c]) / 0.7
            of_outcome = np.exp(-(residual**2) / 2) / (0.7 * np.sqrt(2 * np.pi))
            total += weight * (p if others[c] else alone) * of_outcome
        expected = np.log(total / (SIZE - 1 + alpha))
        assert float(group["rankings"][chain, draw, i]) == pytest.approx(expected, rel=1e-4)


def weights_sites(rng, slots, shares=3):
    return rng.dirichlet(np.ones(shares), (CHAINS, DRAWS, slots)).astype(np.float32)


def converted(block, model, own, z, named):
    """Data of a block beside NUTS, whose likelihood is that of draws with the kernel's names."""
    data = to_inference_data(as_run([(block, own), (NUTS(model), None)], z, RANKINGS), RANKINGS)
    expected = pointwise_log_likelihood(Draws.of(named, RANKINGS))
    np.testing.assert_allclose(data["log_likelihood"]["rankings"], expected, rtol=1e-5)
    return data


def test_blocks_of_plackett_luce():
    rng = np.random.default_rng(1)

    def model(rankings):
        alpha = numpyro.sample("mass", dist.Gamma(3.0, 2.0))
        labels = numpyro.sample("z", rd.FiniteDirichletPartition(alpha, 2, SIZE))
        with numpyro.plate("cluster", 2):
            weights = numpyro.sample("w", dist.Dirichlet(jnp.ones(3)))
        with numpyro.plate("judge", SIZE):
            numpyro.sample(
                "list",
                rd.TopTPlackettLuce(jnp.log(weights[labels]), 2),
                obs=rankings.orderings[rankings.row_index],
            )

    sites = {"weights": "w", "assignments": "z"}
    block = PlackettLuceGibbs(num_components=2, model=model, sites=sites)
    labels = np.broadcast_to([0, 0, 1, 0, 1], (CHAINS, DRAWS, SIZE)).astype(np.int8)
    mass = rng.gamma(2.0, 1.0, (CHAINS, DRAWS)).astype(np.float32)
    z = {"w": weights_sites(rng, 2), "z": labels, "mass": mass}
    named = {"weights": z["w"], "assignments": labels, "alpha": mass, "log_joint": mass}
    named["cluster_sizes"] = (labels[..., None] == np.arange(2)).sum(2).astype(np.int32)
    data = converted(block, model, ["w", "z"], z, named)
    assert data["posterior"]["w"].dims == ("chain", "draw", "cluster", "item")
    assert "top_weights" in data["posterior"]


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_a_block_without_labels(sigma):
    rng = np.random.default_rng(2)

    def model(rankings):
        pool_model(rankings, alpha=numpyro.sample("alpha", dist.Gamma(1.0, 1.0)), sigma=sigma)

    shares = weights_sites(rng, 1, 4)[:, :, 0]
    positive = rng.gamma(2.0, 1.0, (CHAINS, DRAWS)).astype(np.float32)
    z = {"weights": shares[..., :3], "unseen_weight": shares[..., 3], "alpha": positive}
    if sigma:
        z["total_weight"] = positive
    block = GammaProcessPlackettLuceGibbs(sigma=sigma, model=model)
    own = [name for name in z if name != "alpha"]
    converted(block, model, own, z, {**z, "log_joint": positive})


def test_a_block_of_the_process_of_processes():
    rng = np.random.default_rng(3)

    def model(rankings):
        phi = numpyro.sample("similarity", dist.Gamma(2.0, 1.0))
        dp_plackett_luce(rankings, alpha=1.5, phi=3.0 * phi, gamma=0.8, max_clusters=SLOTS)

    shares = weights_sites(rng, SLOTS, 4)
    labels = np.broadcast_to([0, 0, 1, 0, 2], (CHAINS, DRAWS, SIZE)).astype(np.int8)
    lead = (CHAINS, DRAWS)
    z = {
        "assignments": labels,
        "weights": shares[..., :3],
        "unseen_weight": shares[..., 3],
        "total_weight": rng.gamma(3.0, 1.0, (*lead, SLOTS)).astype(np.float32),
        "root_weights": rng.gamma(2.0, 1.0, (*lead, 3)).astype(np.float32),
        "root_unseen_weight": rng.gamma(2.0, 1.0, lead).astype(np.float32),
    }
    block = DPPlackettLuceGibbs(max_clusters=SLOTS, model=model)
    similarity = rng.gamma(2.0, 1.0, lead).astype(np.float32)
    scales = {"alpha": np.full(lead, 1.5), "gamma": np.full(lead, 0.8), "phi": 3.0 * similarity}
    named = z | {name: np.float32(x) for name, x in scales.items()} | {"log_joint": similarity}
    named["cluster_sizes"] = (labels[..., None] == np.arange(SLOTS)).sum(2).astype(np.int32)
    converted(block, model, list(z), {**z, "similarity": similarity}, named)


def test_blocks_of_partitions_are_converted():
    points = np.array([[0.1], [0.2], [3.0]], np.float32)
    family = GaussianMean(2.0, 0.5)

    def model(data):
        alpha = numpyro.sample("mass", dist.Gamma(2.0, 1.0))
        conjugate_mixture(data, family=family, alpha=alpha, max_clusters=4)

    mass = np.ones((CHAINS, DRAWS), np.float32)
    labels = np.broadcast_to([0, 0, 1], (CHAINS, DRAWS, 3)).astype(np.int8)
    block = CollapsedGibbs(family, max_clusters=4, model=model)
    z = {"assignments": labels, "mass": mass}
    mcmc = as_run([(block, ["assignments"]), (NUTS(model), None)], z, points)
    data = to_inference_data(mcmc, points=["p", "q", "r"])
    assert list(data["posterior"]["point"].values) == ["p", "q", "r"]
    assert (data["posterior"]["num_clusters"] == 2).all()
    with pytest.raises(ValueError, match="no log likelihood for CollapsedGibbs"):
        to_inference_data(mcmc, log_likelihood=True)

    def linked(data, distances):
        alpha = numpyro.sample("mass", dist.Gamma(2.0, 1.0))
        ddcrp_mixture(data, distances, family=family, alpha=alpha, decay=exponential_decay(1.0))

    distances = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    links = np.broadcast_to([0, 0, 2], (CHAINS, DRAWS, 3)).astype(np.int32)
    blocks = [(DDCRPGibbs(family, model=linked), ["links"]), (NUTS(linked), None)]
    mcmc = as_run(blocks, {"links": links, "mass": mass}, points, distances)
    data = to_inference_data(mcmc)
    assert (data["posterior"]["num_clusters"] == 2).all()
    assert data["posterior"]["links"].dims == ("chain", "draw", "point")
    assert as_dataset(of_run(mcmc)["posterior"]).equals(as_dataset(data["posterior"]))


def test_models_that_cannot_be_converted():
    def plain():
        numpyro.sample("x", dist.Normal(0.0, 1.0))

    mcmc = MCMC(NUTS(plain), num_warmup=1, num_samples=2, progress_bar=False)
    with pytest.raises(TypeError, match=r"not NUTS: use arviz\.from_numpyro"):
        to_inference_data(mcmc)
    model = partial(mallows_model, num_components=None)
    block = SliceGibbs(max_clusters=SLOTS, model=model, sites=SITES)
    other = SliceGibbs(max_clusters=SLOTS, model=model)
    twice = as_run([(block, list(SITES.values())), (other, ["assignments"])], {}, RANKINGS)
    with pytest.raises(ValueError, match="several blocks of this package, SliceGibbs and SliceG"):
        to_inference_data(twice, RANKINGS)
    mcmc, _ = mallows_run(None)
    with pytest.raises(TypeError, match="the rankings are needed for SliceGibbs"):
        to_inference_data(mcmc)
    fewer = Rankings.from_orderings(LISTS, num_items=3)
    with pytest.raises(ValueError, match="was of 5 rankings of 3 items; these are 4 of 3"):
        to_inference_data(mcmc, fewer)
