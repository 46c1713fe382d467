"""What is known of draws, from every kind of source that holds them."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.fabricated import fabricated_mcmc
from numpyro.infer import MCMC, NUTS, Gibbs

from numpyro_rankings import (
    Draws,
    Rankings,
    Run,
    log_predictive_density,
    open_run,
    to_inference_data,
)
from numpyro_rankings.components import GaussianMean, PlackettLuceWeights
from numpyro_rankings.families import ITEM_POOL, MALLOWS, PLACKETT_LUCE
from numpyro_rankings.infer import CollapsedGibbs, PlackettLuceGibbs, SliceGibbs
from numpyro_rankings.models import mallows_mixture

LISTS = [[0, 1, 2, 3], [0, 1], [3, 2, 1], [3], [1, 0, 2]]
NAMES = ["Ann", "Bob", "Cid", "Dee"]
RANKINGS = Rankings.from_orderings(LISTS, num_items=4, items=NAMES, counts=[6, 4, 5, 2, 1])


def facts(draws):
    """All that draws know but their values."""
    return {
        "family": draws.family,
        "partition": draws.partition,
        "num_components": draws.num_components,
        "sizes": (draws.num_chains, draws.num_draws, draws.num_items, draws.num_points),
    }


@pytest.mark.parametrize(
    "num_components, partition", [(None, "process"), (3, "components"), (1, "population")]
)
def test_a_run_and_its_arviz_data_know_the_same(num_components, partition):
    mcmc = fabricated_mcmc(RANKINGS, num_components)
    draws = Draws.of(mcmc)
    assert (draws.family, draws.partition) == (MALLOWS, partition)
    assert draws.num_components == num_components
    assert draws.is_mixture == (num_components != 1)
    assert draws.rankings is RANKINGS and draws.items == tuple(NAMES)
    assert draws.kernel == "SliceGibbs" and draws.sites is None and draws.is_by_itself
    converted = Draws.of(to_inference_data(mcmc, RANKINGS, log_likelihood=False))
    assert converted.items == draws.items and converted.kernel == draws.kernel
    assert facts(converted) == facts(draws)
    np.testing.assert_array_equal(converted.labels, draws.labels)
    used = draws.sizes > 0
    np.testing.assert_array_equal(
        converted.samples["center"][used[:, :, : converted.num_slots]],
        draws.samples["center"][used],
    )
    assert not np.isnan(converted.samples["concentration"]).any()


def test_samples_by_chain_or_not():
    mcmc = fabricated_mcmc(RANKINGS, 3)
    by_chain = Draws.of(mcmc.get_samples(group_by_chain=True), RANKINGS)
    flat = Draws.of(mcmc.get_samples(), RANKINGS)
    assert (flat.num_chains, by_chain.num_chains) == (1, mcmc.num_chains)
    assert by_chain.flat()["center"].shape == flat.samples["center"].shape[1:]
    # samples do not tell a mixture from a process
    assert flat.partition == "unknown" and flat.num_components is None
    assert Draws.of(mcmc.get_samples(), num_components=3).partition == "components"
    assert Draws.of(mcmc.get_samples(), num_components=None).partition == "process"
    some = by_chain.take([0, 2])
    assert some.num_draws == 2 and some.rankings is by_chain.rankings
    assert Draws.of(some) is some


def test_weights_tell_their_prior():
    weights = np.full((5, 2, 3), 1 / 3)
    labels = np.zeros((5, 4), int)
    mixture = Draws.of({"weights": weights, "assignments": labels})
    assert facts(mixture) == {
        "family": PLACKETT_LUCE,
        "partition": "components",
        "num_components": 2,
        "sizes": (1, 5, 3, 4),
    }
    population = Draws.of({"weights": weights[:, 0]})
    assert population.partition == "population" and population.labels is None
    assert population.num_points is None and population.num_slots == 1
    unseen = {"unseen_weight": np.zeros((5, 2))}
    process = Draws.of({"weights": weights, "assignments": labels, **unseen})
    assert (process.family, process.partition) == (ITEM_POOL, "process")


def test_a_pool_describes_the_items_that_occur():
    rankings = Rankings.from_orderings([[0, 3]], num_items=4, items=NAMES)
    draws = Draws.of({"weights": np.full((5, 2), 0.4), "unseen_weight": np.full(5, 0.2)}, rankings)
    assert draws.items == ("Ann", "Dee") and draws.fitted.num_items == 2


def test_a_stored_run_knows_as_much(tmp_path):
    kernel = PlackettLuceGibbs(num_components=2)
    run = Run(kernel, RANKINGS, key=jax.random.key(0), num_chains=2, store=tmp_path / "run")
    run.extend(8)
    expected = Draws.of(run)
    run.close()
    draws = Draws.of(open_run(tmp_path / "run"))
    assert facts(draws) == facts(expected)
    assert draws.items == tuple(NAMES) and draws.kernel == "PlackettLuceGibbs"
    assert draws.num_components == 2


def test_a_block_has_the_names_of_its_kernel():
    def model(rankings):
        alpha = numpyro.sample("mass", dist.Gamma(1.0, 1.0))
        mallows_mixture(rankings, alpha=alpha, max_clusters=4)

    own = fabricated_mcmc(RANKINGS, num_slots=4).get_samples(group_by_chain=True)
    names = ("assignments", "center", "concentration")
    z = {name: np.asarray(own[name]) for name in names} | {"mass": np.asarray(own["alpha"])}
    block = SliceGibbs(max_clusters=4, model=model)
    kernel = Gibbs([(block, list(names)), (NUTS(model), None)])
    mcmc = MCMC(kernel, num_warmup=0, num_samples=30, num_chains=2)
    mcmc._states = {"z": {name: jnp.asarray(x) for name, x in z.items()}}
    mcmc._args, mcmc._kwargs = (RANKINGS,), {}
    draws = Draws.of(mcmc)
    assert set(draws.samples) == {*names, "cluster_sizes"}
    np.testing.assert_array_equal(draws.sizes, own["cluster_sizes"])
    assert draws.sites == {name: name for name in names} and not draws.is_by_itself
    by_name = Draws.of(mcmc.get_samples(), sites=draws.sites)
    np.testing.assert_array_equal(by_name.flat()["cluster_sizes"], draws.flat()["cluster_sizes"])


@pytest.mark.parametrize(
    "family, points",
    [(GaussianMean(2.0, 0.5), np.zeros((3, 1))), (PlackettLuceWeights(), RANKINGS)],
)
def test_partitions_know_the_family_of_their_components(family, points):
    kernel = CollapsedGibbs(family, max_clusters=4)
    mcmc = MCMC(kernel, num_warmup=0, num_samples=3, progress_bar=False)
    mcmc.run(jax.random.key(0), points)
    draws = Draws.of(mcmc)
    assert draws.component_family is family and draws.family is None
    assert draws.partition == "process" and draws.num_items is None and draws.num_slots is None
    with pytest.raises(ValueError, match="those of a kernel of partitions"):
        draws.check_family()


def test_bad_input():
    mcmc = fabricated_mcmc(RANKINGS, 3)
    samples = mcmc.get_samples()
    for wrong in ([1.0], None, 3):
        with pytest.raises(TypeError, match="samples must be a dictionary"):
            Draws.of(wrong)
    with pytest.raises(ValueError, match="there are no draws"):
        Draws.of({"weights": np.zeros((0, 3))})
    other = Rankings.from_orderings([[0, 1]], num_items=4)
    for source in (mcmc, samples):
        with pytest.raises(ValueError, match="the run was of 18 rankings of 4 items"):
            Draws.of(source, other)
    with pytest.raises(TypeError, match="rankings"):
        Draws.of(samples, LISTS)
    with pytest.raises(ValueError, match="num_components=2 was not fitted, but num_components=3"):
        Draws.of(mcmc, num_components=2)
    with pytest.raises(ValueError, match="the draws are of 3 components, not of 2"):
        Draws.of(samples, num_components=2)
    with pytest.raises(ValueError, match="a run knows the names of its sites"):
        Draws.of(mcmc, sites={"assignments": "z"})
    with pytest.raises(ValueError, match="the samples have no site 'z'"):
        Draws.of(samples, sites={"assignments": "z"})
    with pytest.raises(ValueError, match="samples must be those of a Mallows or Plackett–Luce"):
        Draws.of({"x": np.zeros(3)}).check_family()
    with pytest.raises(TypeError, match="the draws have no rankings"):
        _ = Draws.of(samples).fitted


@pytest.mark.parametrize("is_process", [False, True])
def test_the_density_of_a_mixture_needs_no_labels(is_process):
    """ArviZ data may have been made without the labels, which are the largest array."""
    rng, lead = np.random.default_rng(0), (2, 3)
    weights = rng.dirichlet(np.ones(4), (*lead, 2)).astype(np.float32)
    samples = {
        "log_joint": rng.normal(size=lead).astype(np.float32),
        "cluster_sizes": np.broadcast_to(np.array([5, 3], np.int32), (*lead, 2)),
        "alpha": rng.gamma(2.0, 1.0, lead).astype(np.float32),
        "weights": weights,
    }
    if is_process:
        root = rng.dirichlet(np.ones(4), lead).astype(np.float32)
        samples |= {"weights": weights[..., :3], "unseen_weight": weights[..., 3]}
        samples |= {"root_weights": root[..., :3], "root_unseen_weight": root[..., 3]}
        samples |= {name: rng.gamma(2.0, 1.0, lead).astype(np.float32) for name in ("phi", "gamma")}
    labels = np.broadcast_to([0, 0, 0, 0, 0, 1, 1, 1], (*lead, 8))
    new = Rankings.from_orderings([[0, 1], [2]], num_items=3 if is_process else 4)
    expected = log_predictive_density({**samples, "assignments": labels}, new)
    flat = {name: x.reshape(6, *x.shape[2:]) for name, x in samples.items()}
    for given in (samples, flat):
        assert Draws.of(given).num_slots == 2 and Draws.of(given).is_mixture
        np.testing.assert_array_equal(log_predictive_density(given, new), expected)
    sizes = np.array([5.0, 3.0])
    if not is_process:  # the mean over the draws of the mixtures
        shares = (sizes + samples["alpha"][..., None] / 2) / (8 + samples["alpha"][..., None])
        first = np.einsum("abc,abc->ab", shares, weights[..., 2]).mean()
        assert expected[1] == pytest.approx(np.log(first), rel=1e-5)
    without = {name: x for name, x in samples.items() if name != "cluster_sizes"}
    with pytest.raises(ValueError, match="no cluster_sizes"):
        log_predictive_density({**without, "assignments": labels}, new)
