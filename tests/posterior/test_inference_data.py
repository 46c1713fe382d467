"""Conversion to ArviZ, old and new: contents, diagnostics, netCDF, and a log likelihood twin."""

import copy
import itertools
import math
import warnings

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.exact_partitions import log_marginals
from helpers.fabricated import (
    as_run,
    fabricated_links_mcmc,
    fabricated_mcmc,
    fabricated_partition_mcmc,
    fabricated_pool_mcmc,
    fabricated_weights_mcmc,
)
from helpers.lists import log_prob_twin, mallows_twin
from helpers.no_warnings import no_warnings
from numpyro.infer import MCMC

import numpyro_rankings
from numpyro_rankings.components import GaussianMean
from numpyro_rankings.distributions import MallowsConcentrationPrior, TopTPlackettLuce
from numpyro_rankings.families import ITEM_POOL, PLACKETT_LUCE
from numpyro_rankings.infer import (
    CollapsedGibbs,
    Cycle,
    DDCRPGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    SplitMerge,
    exponential_decay,
)
from numpyro_rankings.posterior import borda_ordering, kendall_distance
from numpyro_rankings.posterior.diagnostics import diagnostics_table, verdict
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.inference_data import save_inference_data, to_inference_data
from numpyro_rankings.posterior.likelihood import pointwise_log_likelihood
from numpyro_rankings.rankings import PartialOrders, Rankings

NAMES = ["Ann", "Bob", "Cid", "Dee"]
LISTS = [[0, 1, 2, 3], [0, 1], [3, 2, 1], [3], [1, 0, 2]]
CHAINS, DRAWS = 2, 30
GAMMA = dist.Gamma(1.0, 1.0)


@pytest.fixture(scope="module")
def rankings():
    return Rankings.from_orderings(LISTS, num_items=4, items=NAMES, counts=[6, 4, 5, 2, 1])


REAL = pytest.param(True, marks=pytest.mark.slow)  # runs that take long to compile


@pytest.fixture(scope="module", params=[False, REAL])
def fitted(rankings, request):
    if not request.param:
        return fabricated_mcmc(rankings, num_slots=12, chains=CHAINS, draws=DRAWS)
    kernel = SliceGibbs(alpha=GAMMA, max_clusters=12, num_marginal_steps=0)
    return _run(kernel, rankings, num_samples=2 * DRAWS, thinning=2)


def _run(kernel, *args, **settings):
    settings = {"num_samples": DRAWS, "chain_method": "vectorized", **settings}
    mcmc = MCMC(kernel, num_warmup=10, num_chains=CHAINS, progress_bar=False, **settings)
    mcmc.run(jax.random.key(0), *args)
    return mcmc


@pytest.fixture(scope="module")
def data(fitted, rankings):
    return to_inference_data(fitted, rankings)


def test_posterior_has_names_ranks_and_no_empty_slots(data, fitted, rankings):
    posterior, samples = data["posterior"], fitted.get_samples(group_by_chain=True)
    assert list(posterior["item"].values) == NAMES
    assert list(posterior["stage"].values) == [1, 2, 3]
    assert posterior["assignments"].dims == ("chain", "draw", "ranking")
    assert posterior["assignments"].shape == (CHAINS, DRAWS, len(rankings))
    most = int(np.max(samples["num_clusters"]))
    assert posterior.sizes["cluster"] == most < 12
    occupied = np.asarray(samples["cluster_sizes"])[:, :, :most] > 0
    center, rank = np.asarray(posterior["center"]), np.asarray(posterior["rank"])
    np.testing.assert_array_equal(
        center[occupied], np.asarray(samples["center"])[:, :, :most][occupied]
    )
    np.testing.assert_array_equal(rank[occupied], np.argsort(center[occupied], -1) + 1)
    assert (center[~occupied] == -1).all() and (rank[~occupied] == 0).all()
    theta = np.asarray(posterior["concentration"])
    np.testing.assert_array_equal(np.isnan(theta).any(-1), ~occupied)
    best = posterior["rank"].sel(item="Cid").values
    np.testing.assert_array_equal(best[occupied], np.argmax(center[occupied] == 2, -1) + 1)


def test_label_free_quantities(data, fitted, rankings):
    posterior, samples = data["posterior"], fitted.get_samples(group_by_chain=True)
    sizes = np.asarray(samples["cluster_sizes"])
    np.testing.assert_array_equal(np.asarray(posterior["largest_sizes"])[..., 0], sizes.max(-1))
    chain, draw = 1, 7
    labels = np.asarray(samples["assignments"])[chain, draw]
    centers = np.asarray(samples["center"])[chain, draw][labels]
    expected = kendall_distance(centers, borda_ordering(rankings)).mean()
    assert float(posterior["kendall_to_reference"][chain, draw]) == pytest.approx(expected)
    share = np.bincount(labels) / len(labels)
    entropy = -(share[share > 0] * np.log(share[share > 0])).sum()
    assert float(posterior["partition_entropy"][chain, draw]) == pytest.approx(entropy)
    stats = data["sample_stats"]
    np.testing.assert_allclose(stats["lp"], posterior["log_joint"], rtol=1e-4, atol=1e-3)
    assert {"acceptance_rate", "overflow"} <= set(stats.data_vars)
    assert data.attrs["kernel"] == "SliceGibbs"
    assert data.attrs["numpyro_rankings_version"] == numpyro_rankings.__version__


@pytest.mark.parametrize("num_components", [None, 3])
def test_pointwise_log_likelihood_against_a_numpy_twin(num_components):
    rng = np.random.default_rng(1)
    rankings = Rankings.from_orderings(LISTS, num_items=4, counts=[2, 1, 1, 2, 1])
    labels = np.array([[0, 0, 0, 1, 2, 2, 1], [0, 1, 1, 1, 1, 1, 1]])
    slots = num_components or 4
    sizes = np.stack([np.bincount(x, minlength=slots) for x in labels]).astype(np.int32)
    samples = {
        "assignments": labels[None].astype(np.int8),
        "center": np.argsort(rng.random((1, 2, slots, 4))).astype(np.int32),
        "concentration": rng.gamma(1.0, 1.0, (1, 2, slots, 3)).astype(np.float32),
        "cluster_sizes": sizes[None],
        "alpha": np.array([[0.7, 2.0]], np.float32),
    }
    draws = Draws.of(samples, rankings, num_components)
    got = pointwise_log_likelihood(draws)
    assert got.shape == (1, 2, 7)
    which = np.array([2, 3, 6])  # of some rankings, without the others
    some = pointwise_log_likelihood(draws, which)
    np.testing.assert_allclose(some, got[..., which], rtol=1e-6)
    rows = np.repeat(np.arange(5), [2, 1, 1, 2, 1])
    for d, i in itertools.product(range(2), range(7)):
        ordering, alpha, total = LISTS[rows[i]], samples["alpha"][0, d], 0.0
        others = np.bincount(np.delete(labels[d], i), minlength=slots)
        alone = math.factorial(4 - len(ordering)) / math.factorial(4)
        for c in range(slots):
            weight = others[c] + (0 if num_components is None else alpha / slots)
            center, theta = samples["center"][0, d, c], samples["concentration"][0, d, c]
            total += weight * (mallows_twin(ordering, center, theta) if others[c] else alone)
        total += alpha * alone if num_components is None else 0
        assert got[0, d, i] == pytest.approx(np.log(total / (6 + alpha)), abs=1e-5)


def test_pointwise_log_likelihood_of_the_gamma_process_mixture():
    """Each list in the clusters of the others, or in a new one, by Monte Carlo over the prior.

    The first ranking is alone in its cluster, whose weights are then not used.
    """
    rng = np.random.default_rng(2)
    lists = [[0, 1], [1], [2, 0]]
    rankings = Rankings.from_orderings(lists, num_items=3)
    labels, sizes = np.array([0, 1, 1]), np.array([1, 2, 0])
    w = rng.dirichlet(np.ones(4), 3)
    root = np.array([0.4, 0.2, 0.3, 0.1])
    alpha, phi, gamma = 1.5, 4.0, 0.8
    samples = {
        "assignments": labels.astype(np.int8),
        "cluster_sizes": sizes.astype(np.int32),
        "weights": w[:, :3].astype(np.float32),
        "unseen_weight": w[:, 3].astype(np.float32),
        "root_weights": root[:3].astype(np.float32),
        "root_unseen_weight": np.float32(root[3]),
        "alpha": np.float32(alpha),
        "phi": np.float32(phi),
        "gamma": np.float32(gamma),
        "log_joint": np.float32(0.0),
    }
    samples = {name: np.asarray(x)[None, None] for name, x in samples.items()}
    new, size = 20_000, 200_000
    draws = Draws.of(samples, rankings)
    got = pointwise_log_likelihood(draws, num_new_clusters=new)
    some = pointwise_log_likelihood(draws, np.array([1, 2]), new)
    np.testing.assert_allclose(some, got[..., 1:], rtol=1e-6)
    shapes = rng.poisson(phi * root, (size, 4)) + np.array([0, 0, 0, alpha])
    of_new = rng.gamma(shapes)
    for i, ordering in enumerate(lists):

        def probability(weights, ordering=ordering):
            p, left = 1.0, weights.sum(-1)
            for item in ordering:
                p, left = p * weights[..., item] / left, left - weights[..., item]
            return p

        others = np.bincount(np.delete(labels, i), minlength=3)
        p_new = probability(of_new)
        known = others @ probability(w)
        expected = np.log((known + gamma * p_new.mean()) / (2 + gamma))
        error = gamma * p_new.std() * np.sqrt(1 / new + 1 / size) / (known + gamma * p_new.mean())
        assert abs(got[0, 0, i] - expected) < 4.5 * error + 1e-5


@pytest.mark.parametrize("has_pool", (False, True))
@pytest.mark.parametrize("is_subset", (False, True))
def test_likelihoods_of_draws_are_those_of_the_distribution(has_pool, is_subset):
    rng = np.random.default_rng(5)
    offered = np.array([[True, True, True, True], [True, False, True, True]])
    offered = offered if is_subset else None
    orderings = np.array([[2, 0, -1], [3, 0, 2]], np.int32)
    weights = rng.dirichlet(np.ones(5), 3).astype(np.float32)
    if not has_pool:
        weights[:, :4] /= weights[:, :4].sum(1, keepdims=True)
    family = ITEM_POOL if has_pool else PLACKETT_LUCE
    draw = {"weights": weights[:, :4]} | ({"unseen_weight": weights[:, 4]} if has_pool else {})

    @jax.vmap
    def log_prob(w):
        unseen = jnp.log(w[4]) if has_pool else None
        model = TopTPlackettLuce(jnp.log(w[:4]), 3, unseen, offered, validate_args=False)
        return model.log_prob(orderings)

    found, expected = jax.jit(
        lambda draw, w: (family.log_rows(draw, orderings, offered), log_prob(w))
    )(draw, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_new_clusters_know_what_was_offered():
    """One item of two was offered: it comes first, whatever the weights."""
    draw = {
        "root_weights": jnp.array([0.5, 0.4]),
        "root_unseen_weight": jnp.array(0.0),
        "alpha": jnp.array(1e-20),  # next to no unseen items
        "phi": jnp.array(200.0),
    }
    offered = jnp.array([[True, False], [True, True]])
    orderings = jnp.array([[0], [0]])
    in_new = jax.jit(ITEM_POOL.log_new_cluster, static_argnums=4)
    first, other = np.asarray(in_new(jax.random.key(0), draw, orderings, offered, 100))
    assert abs(first) < 1e-5 and other < -0.3


def _elpd(loo):
    return loo.elpd if hasattr(loo, "elpd") else loo.elpd_loo  # ArviZ 1.x or before


def test_log_likelihood_serves_loo_and_can_be_left_out(data, fitted, rankings, monkeypatch):
    assert data["log_likelihood"]["rankings"].shape == (CHAINS, DRAWS, len(rankings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loo = az.loo(data, var_name="rankings", reff=0.5)
    assert np.isfinite(_elpd(loo))
    without = to_inference_data(fitted, rankings, log_likelihood=False, include_assignments=False)
    assert "assignments" not in without["posterior"]
    assert not _has_group(without, "log_likelihood")
    monkeypatch.setattr("numpyro_rankings.posterior.inference_data._AUTO_LOG_LIKELIHOOD", 10)
    with pytest.warns(UserWarning, match="pass log_likelihood=True"):
        short = to_inference_data(fitted, rankings)
    assert not _has_group(short, "log_likelihood")


def test_other_rankings_are_refused(fitted):
    other = Rankings.from_orderings([[0, 1]], num_items=4)
    with pytest.raises(ValueError, match="these are 1 of 4"):
        to_inference_data(fitted, other)


def test_likelihood_of_the_process_of_processes(monkeypatch):
    """It is computed for small runs; new clusters make it cost more than others."""
    rng, lead = np.random.default_rng(6), (2, 4)
    rankings = Rankings.from_orderings([[0, 1], [1], [2, 0]], num_items=3)
    labels = np.broadcast_to([0, 1, 1], (*lead, 3))
    shares = rng.dirichlet(np.ones(4), (*lead, 5))
    z = {
        "assignments": labels.astype(np.int8),
        "cluster_sizes": (labels[..., None] == np.arange(5)).sum(2).astype(np.int32),
        "num_clusters": np.full(lead, 2),
        "weights": shares[..., :3],
        "unseen_weight": shares[..., 3],
        "total_weight": rng.gamma(3.0, 1.0, (*lead, 5)),
        "root_weights": rng.gamma(2.0, 1.0, (*lead, 3)),
        "root_unseen_weight": rng.gamma(2.0, 1.0, lead),
        **{name: rng.gamma(2.0, 1.0, lead) for name in ("alpha", "phi", "gamma")},
        "log_joint": rng.normal(size=lead),
    }
    mcmc = as_run(
        DPPlackettLuceGibbs(max_clusters=5), z, rankings, np.ones(lead), np.zeros(lead, bool)
    )
    found = to_inference_data(mcmc, rankings)["log_likelihood"]
    expected = pointwise_log_likelihood(Draws.of(mcmc))
    np.testing.assert_allclose(found["rankings"], expected, rtol=1e-5)
    assert "summed out" in found.attrs["labels"]
    monkeypatch.setattr(
        "numpyro_rankings.posterior.inference_data._AUTO_LOG_LIKELIHOOD", 2 * 4 * 3 * 19
    )
    with pytest.warns(UserWarning, match="takes long, because new clusters are drawn"):
        assert not _has_group(to_inference_data(mcmc, rankings), "log_likelihood")


def _has_group(data, name):
    return name in (data.children if hasattr(data, "children") else data.groups())


def test_netcdf_round_trip(data, tmp_path):
    save_inference_data(data, tmp_path / "posterior.nc")
    again = az.from_netcdf(tmp_path / "posterior.nc")
    for name in ("assignments", "rank", "concentration", "num_clusters"):
        np.testing.assert_array_equal(again["posterior"][name], data["posterior"][name])
    assert list(again["posterior"]["item"].values) == NAMES
    assert diagnostics_table(again).equals(diagnostics_table(data))
    assert again["posterior"]["assignments"].encoding["complevel"] == 1
    assert again.attrs["kernel"] == data.attrs["kernel"]
    for name in ("sample_stats", "observed_data"):
        assert set(again[name].data_vars) == set(data[name].data_vars)


def test_diagnostics_of_a_moving_and_of_a_constant_quantity(data):
    table = diagnostics_table(data)
    assert list(table.columns) == ["mean", "sd", "ess_bulk", "ess_tail", "r_hat", "note"]
    assert table.loc["log_joint", "note"] == ""
    log_joint = np.asarray(data["posterior"]["log_joint"], float)
    assert table.loc["log_joint", "mean"] == pytest.approx(log_joint.mean())
    assert table.loc["log_joint", "r_hat"] == pytest.approx(float(az.rhat(log_joint)), rel=1e-6)
    assert 1 < table.loc["log_joint", "ess_bulk"] < 10 * CHAINS * DRAWS


def test_nothing_is_drawn_from_the_prior(rankings, monkeypatch):
    """ArviZ runs the model; to compile draws from the prior would take seconds."""

    def refuse(*args, **kwargs):
        raise AssertionError("drawn from the prior")

    monkeypatch.setattr(MallowsConcentrationPrior, "sample", refuse)
    with no_warnings():
        data = to_inference_data(fabricated_mcmc(rankings, num_components=3), rankings)
    observed = np.asarray(data["observed_data"]["rankings"])
    np.testing.assert_array_equal(observed, np.asarray(rankings.expand().orderings)[:, :3])


def test_the_model_is_compiled_as_a_whole(fitted, rankings):
    """One operation after the other would be some thirty programs."""
    mcmc, kernel = copy.copy(fitted), copy.copy(fitted.sampler)
    model, traced = kernel.model, []

    def spy(data):
        traced.append(isinstance(data.orderings, jax.core.Tracer))
        return model(data)

    kernel._model, mcmc.sampler = spy, kernel
    data = to_inference_data(mcmc, rankings)
    assert traced and all(traced)
    assert list(data["observed_data"].data_vars) == ["rankings"]


def test_single_population(rankings):
    data = to_inference_data(fabricated_mcmc(rankings, num_components=1), rankings)
    table = diagnostics_table(data)
    assert table.loc["num_clusters", "note"] == "constant"
    assert np.isnan(table.loc["num_clusters", "r_hat"])
    assert table.loc["population_concentration[3]", "mean"] > 0
    assert "alpha" not in data["posterior"]
    np.testing.assert_array_equal(
        data["posterior"]["population_concentration"], data["posterior"]["concentration"][:, :, 0]
    )


def test_chains_stuck_apart_and_single_chains_are_named(data, rankings):
    stuck = copy.deepcopy(data["posterior"])
    stuck["num_clusters"][:] = np.arange(CHAINS)[:, None]
    table = diagnostics_table({"posterior": stuck})
    assert table.loc["num_clusters", "note"] == "stuck"
    assert table.loc["num_clusters", "r_hat"] == np.inf
    judged = verdict({"posterior": stuck, "sample_stats": data["sample_stats"]}, table)
    assert judged.level == "bad"
    assert any("number of groups" in reason for reason in judged.reasons)

    broken = diagnostics_table(data)
    broken.loc["log_joint", ["mean", "r_hat", "ess_bulk", "ess_tail"]] = np.nan
    judged = verdict(data, broken)
    assert judged.level == "bad" and "NaN" in judged.reasons[0]
    assert "log joint" in judged.reasons[0]
    broken[["r_hat", "ess_bulk", "ess_tail"]] = np.nan
    assert verdict(data, broken).level == "bad"
    many = to_inference_data(fabricated_mcmc(rankings, draws=1000), rankings)
    table = diagnostics_table(many)
    assert verdict(many, table).level == "good", verdict(many, table)
    for column, value, level in (
        ("r_hat", 1.02, "care"),
        ("r_hat", 1.2, "bad"),
        ("ess_bulk", 300, "care"),
        ("ess_tail", 20, "bad"),
    ):
        worse = table.copy()
        worse.loc["log_joint", column] = value
        assert verdict(many, worse).level == level, (column, value)

    alone = to_inference_data(fabricated_mcmc(rankings, chains=1), rankings)
    assert diagnostics_table(alone).loc["log_joint", "note"] == "one chain"
    assert verdict(alone).level != "good"


@pytest.mark.parametrize("of_points", [False, True])
def test_overflow_warns_and_names_the_argument(rankings, of_points):
    mcmc, given = fabricated_mcmc(rankings, overflow=0.2), [rankings]
    if of_points:
        mcmc, given = fabricated_partition_mcmc([0, 0, 0, 1, 1, 1], overflow=0.2), []
    with pytest.warns(UserWarning, match="raise max_clusters"):
        data = to_inference_data(mcmc, *given)
    judged = verdict(data)
    assert judged.level == "bad"
    assert any("max_clusters" in reason for reason in judged.reasons)
    if of_points:
        assert data["posterior"]["point"].values.tolist() == list(range(6))


def test_importing_the_package_loads_neither_arviz_nor_matplotlib_nor_jinja():
    import subprocess
    import sys

    code = (
        "import sys, numpyro_rankings, numpyro_rankings.posterior;"
        "import numpyro_rankings.posterior.inference_data;"
        "print([m for m in ('arviz', 'matplotlib', 'jinja2') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


IMPORTS = [
    "import arviz; from numpyro.infer import MCMC; import numpyro_rankings.posterior",
    "import arviz; import numpyro.distributions; import numpyro_rankings",
    "import arviz; from numpyro_rankings.distributions import GeneralizedMallows",
    "import numpyro_rankings, arviz; from numpyro_rankings.infer import SliceGibbs",
]
# each as in a new process: what does not import NumPyro is loaded once
AFRESH = """
import sys, warnings
import jax

warnings.simplefilter("ignore")  # of what registers itself again
for imports in sys.argv[1:]:
    for name in list(sys.modules):
        if name.startswith(("arviz", "numpyro")):
            del sys.modules[name]
    exec(imports)
    import numpyro
    assert "numpyro.infer" in sys.modules, imports
    numpyro.infer.initialization, numpyro.distributions.distribution
    print(imports)
"""


def test_numpyro_is_whole_whatever_was_imported_first():
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", AFRESH, *IMPORTS], capture_output=True, text=True)
    assert done.stdout.splitlines() == IMPORTS, done.stderr[-2000:]


# -- Plackett–Luce -------------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[
        "fabricated",
        "fabricated pool",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gamma-process", "mixture")),
    ],
)
def weighted(request):
    items = ["Ann", "Bob", "Cid", "Dee", "Eve"]
    rankings = Rankings.from_orderings(
        [[0, 1, 3], [3, 1], [4]], num_items=5, items=items, counts=[6, 4, 5]
    )
    if request.param == "fabricated":
        mcmc = fabricated_weights_mcmc(rankings, num_components=4, chains=CHAINS, draws=DRAWS)
    elif request.param == "fabricated pool":
        mcmc = fabricated_pool_mcmc(rankings, chains=CHAINS, draws=DRAWS)
    elif request.param == "gamma-process":
        mcmc = _run(GammaProcessPlackettLuceGibbs(GAMMA), rankings)
    else:
        kernel = PlackettLuceGibbs(num_components=4, alpha=GAMMA, num_marginal_steps=0)
        mcmc = _run(kernel, rankings)
    return mcmc, rankings, to_inference_data(mcmc, rankings)


def test_weights_by_name_and_free_of_labels(weighted, tmp_path):
    mcmc, rankings, data = weighted
    samples = mcmc.get_samples(group_by_chain=True)
    posterior, weights = data["posterior"], np.asarray(samples["weights"])
    table = diagnostics_table(data)
    if "assignments" in samples:
        sizes = np.asarray(samples["cluster_sizes"])
        assert (sizes == 0).any()
        found = posterior["weights"].values
        np.testing.assert_array_equal(np.isnan(found).all(-1), sizes == 0)
        np.testing.assert_array_equal(found[sizes > 0], weights[sizes > 0])
        assert posterior["item"].values.tolist() == list(rankings.items)
        population = (sizes[..., None] / 15 * weights).sum(2)
        assert "num_clusters" in table.index and "largest_sizes[1]" in table.index
    else:
        assert posterior["item"].values.tolist() == ["Ann", "Bob", "Dee", "Eve"]  # nobody has Cid
        population = weights
        assert "unseen_weight" in table.index
    np.testing.assert_allclose(posterior["population_weights"], population, rtol=1e-5)
    shares = population / population.sum(-1, keepdims=True)
    entropy = -(shares * np.log(shares)).sum(-1) / np.log(shares.shape[-1])
    np.testing.assert_allclose(posterior["population_entropy"], entropy, rtol=1e-5)
    means = dict(zip(posterior["item"].values, population.mean((0, 1)), strict=True))
    assert posterior["top_item"].values[0] == max(means, key=means.get)
    assert f"top_weights[{max(means, key=means.get)}]" in table.index
    assert {"log_joint", "alpha", "population_entropy"} <= set(table.index)
    save_inference_data(data, tmp_path / "posterior.nc")
    again = az.from_netcdf(tmp_path / "posterior.nc")
    np.testing.assert_array_equal(again["posterior"]["weights"], posterior["weights"])
    with pytest.raises(ValueError, match="the run was of"):
        to_inference_data(mcmc, Rankings.from_orderings([[0, 1]], num_items=2))
    lists = [[int(k) for k in row if k >= 0] for row in np.asarray(rankings.orderings)]
    once = Rankings.from_orderings(lists, items=rankings.items)
    assert once.num_rankings < rankings.num_rankings
    with pytest.raises(ValueError, match=f"the run was of {rankings.num_rankings} rankings"):
        to_inference_data(mcmc, once)


def test_log_likelihood_of_weights(weighted):
    mcmc, rankings, data = weighted
    samples = mcmc.get_samples(group_by_chain=True)
    found = np.asarray(data["log_likelihood"]["rankings"])
    listed = rankings if "assignments" in samples else rankings.of_listed_items()
    lists = np.asarray(listed.orderings)[np.asarray(listed.row_index)]
    for chain, draw, i in ((0, 3, 0), (1, 20, 8), (0, 29, 14)):
        z = {name: np.asarray(value[chain, draw], float) for name, value in samples.items()}
        if "assignments" in samples:
            label, sizes = int(z["assignments"][i]), z["cluster_sizes"].copy()
            sizes[label] -= 1
            shares = (sizes + z["alpha"] / 4) / (14 + z["alpha"])
            terms = [np.exp(log_prob_twin(lists[i], w)) for w in z["weights"]]
            expected = np.log(shares @ terms)
        else:
            expected = log_prob_twin(lists[i], z["weights"], z["unseen_weight"])
        assert float(found[chain, draw, i]) == pytest.approx(expected, rel=1e-4)


# -- partitions ----------------------------------------------------------------------------------

POINTS = np.array([[-2.0], [-2.2], [-1.8], [2.0], [2.1], [1.9]])
APART = np.abs(np.arange(6.0)[:, None] - np.arange(6.0))
GAUSS = GaussianMean(2.0, 0.5)


@pytest.fixture(
    scope="module",
    params=[
        "fabricated",
        "fabricated links",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("links", "cycle")),
    ],
)
def partitioned(request):
    if request.param == "fabricated":
        return fabricated_partition_mcmc([0, 0, 0, 1, 1, 1], chains=CHAINS, draws=DRAWS)
    if request.param == "fabricated links":
        return fabricated_links_mcmc(POINTS, APART, chains=CHAINS, draws=DRAWS)
    if request.param == "links":
        return _run(DDCRPGibbs(GAUSS, GAMMA, exponential_decay(GAMMA)), POINTS, APART)
    parts = [kernel(GAUSS, GAMMA, max_clusters=6) for kernel in (CollapsedGibbs, SplitMerge)]
    return _run(Cycle(parts), POINTS)


def test_fabricated_draws_have_the_sites_of_the_kernels():
    lists = Rankings.from_orderings([[0, 1, 3], [3, 1], [4]], num_items=5)
    for mcmc in (fabricated_links_mcmc(POINTS, APART), fabricated_pool_mcmc(lists)):
        kernel = mcmc.sampler
        args, kwargs = kernel._prepare(mcmc._args, {})
        init = lambda key, k=kernel, a=args, kw=kwargs: k._init(key, None, a, kw)  # noqa: E731
        sites = jax.eval_shape(init, jax.random.key(0)).z
        made = mcmc.get_samples(group_by_chain=True)
        assert set(made) == set(sites) - {"log_joint_rest"}
        for name, x in made.items():
            assert (x.shape[2:], x.dtype) == (sites[name].shape, sites[name].dtype), name


def test_partitions_by_point_and_free_of_labels(partitioned, tmp_path):
    samples = partitioned.get_samples(group_by_chain=True)
    data = to_inference_data(partitioned, points=list("abcdef"))
    posterior = data["posterior"]
    for name in {"assignments", "links"} & set(samples):
        assert posterior[name].dims == ("chain", "draw", "point")
        np.testing.assert_array_equal(posterior[name], samples[name])
    assert posterior["point"].values.tolist() == list("abcdef")
    for chain, draw in ((0, 0), (1, 13)):
        labels = np.asarray(samples["assignments"])[chain, draw]
        sizes = np.unique(labels, return_counts=True)[1]
        shown = np.sort(np.append(sizes, np.zeros(5, int)))[::-1][:5]
        found = np.asarray(posterior["largest_sizes"])[chain, draw]
        np.testing.assert_array_equal(found, shown[: len(found)])
        assert (shown[len(found) :] == 0).all()
        entropy = -(sizes / 6 * np.log(sizes / 6)).sum()
        assert float(posterior["partition_entropy"][chain, draw]) == pytest.approx(entropy)
        assert int(posterior["num_clusters"][chain, draw]) == len(sizes)
    np.testing.assert_array_equal(data["sample_stats"]["lp"], posterior["log_joint"])
    assert data.attrs["kernel"] == type(partitioned.sampler).__name__
    assert not _has_group(data, "log_likelihood")

    table = diagnostics_table(data)
    watched = {"num_clusters", "log_joint", "alpha", "partition_entropy", "largest_sizes[1]"}
    assert watched | ({"decay_scale"} & set(samples)) <= set(table.index)
    assert ("decay_scale" in table.index) == ("links" in samples)
    assert verdict(data, table).level in ("care", "bad")  # so few draws

    save_inference_data(data, tmp_path / "posterior.nc")
    again = az.from_netcdf(tmp_path / "posterior.nc")
    np.testing.assert_array_equal(again["posterior"]["assignments"], samples["assignments"])
    assert again["posterior"]["point"].values.tolist() == list("abcdef")
    assert diagnostics_table(again).equals(table)

    short = to_inference_data(partitioned, include_assignments=False)["posterior"]
    assert not {"assignments", "links"} & set(short.data_vars)
    assert short["largest_sizes"].equals(posterior["largest_sizes"])


def test_what_partitions_do_not_have_is_refused(partitioned, fitted, rankings):
    name = type(partitioned.sampler).__name__
    if name == "DDCRPGibbs":
        with pytest.raises(ValueError, match=f"no log likelihood for {name}, because its points"):
            to_inference_data(partitioned, log_likelihood=True)
    with pytest.raises(ValueError, match=f"the draws of {name} are labels alone"):
        to_inference_data(partitioned, rankings)
    with pytest.raises(ValueError, match="of 6 points, but points has 2 names"):
        to_inference_data(partitioned, points=["a", "b"])
    with pytest.raises(TypeError, match="the rankings are needed for SliceGibbs"):
        to_inference_data(fitted)
    with pytest.raises(ValueError, match="not for SliceGibbs"):
        to_inference_data(fitted, rankings, points=["a"])
    with pytest.raises(TypeError, match=r"must be a numpyro\.infer\.MCMC, got"):
        to_inference_data(rankings, fitted)
    with pytest.raises(TypeError, match="must be a Rankings, got list"):
        to_inference_data(fitted, [[0, 1]])
    with pytest.raises(TypeError, match=r"to_inference_data\(mcmc, …\) returns, got MCMC"):
        diagnostics_table(fitted)


@pytest.mark.parametrize("discount", [0.0, 0.25])
def test_log_likelihood_of_points_given_the_labels_of_the_others(discount):
    """By log marginals: the mean over its label of each point given the others; and for loo."""
    mcmc = fabricated_partition_mcmc([0, 0, 1, 1, 1, 0], chains=2, draws=20, seed=3)
    family = GaussianMean(2.0, 0.5)
    points = np.random.default_rng(0).normal(size=(6, 1)).astype(np.float32)
    mcmc.sampler, mcmc._args = CollapsedGibbs(family, GAMMA, discount=discount), (points,)
    data = to_inference_data(mcmc, points=list("abcdef"), log_likelihood=True)
    values = data["log_likelihood"]["points"]
    assert values.dims == ("chain", "draw", "point") and values["point"].values[2] == "c"
    samples = mcmc.get_samples(group_by_chain=True)
    of_set = log_marginals(family, points) | {(): 0.0}
    for chain, draw in ((0, 0), (1, 5)):
        labels = np.asarray(samples["assignments"])[chain, draw]
        alpha = float(samples["alpha"][chain, draw])
        for i in range(6):
            others = [np.flatnonzero(labels == k) for k in range(labels.max() + 1)]
            others = [tuple(x[x != i].tolist()) for x in others]
            others = [x for x in others if x] + [()]
            weights = [len(x) - discount for x in others[:-1]]
            weights.append(alpha + discount * len(weights))
            given = [of_set[tuple(sorted((*x, i)))] - of_set[x] for x in others]
            expected = np.log(np.dot(weights, np.exp(given)) / (5 + alpha))
            assert float(values[chain, draw, i]) == pytest.approx(expected, abs=1e-4)
    loo = az.loo(data, var_name="points", reff=1.0)
    assert loo.n_data_points == 6 and np.isfinite(_elpd(loo))


@pytest.mark.parametrize("kind", ["full", "tops", "ties"])
def test_replications_for_plots(kind):
    """Mean ranks and first places, as observed, and near them from draws that made the rankings."""
    orderings = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [0, 1, 2]]
    rankings = Rankings.from_orderings(orderings, num_items=3, counts=[30, 10, 10, 10])
    ranks, first = np.array([70, 120, 170]) / 60, np.array([50, 10, 0]) / 60
    if kind == "tops":
        tops = [x[:1] for x in orderings]
        rankings = Rankings.from_orderings(tops, num_items=3, counts=[30, 10, 10, 10])
        # nobody has 2 above another; who puts 0 first does not order the others
        ranks = 1 + np.array([10 / 60, 50 / 60, 2])
    elif kind == "ties":
        rankings = PartialOrders.from_buckets([[[0, 1], 2], [0, [1, 2]]], 3, counts=[30, 30])
        ranks, first = np.array([1, 2, 3]), np.array([0.5, 0, 0])
    mcmc = fabricated_mcmc(rankings, num_components=1, chains=2, draws=30)
    data = to_inference_data(mcmc, rankings, log_likelihood=False, posterior_predictive=10)
    observed, made = data["observed_data"], data["posterior_predictive"]
    np.testing.assert_allclose(observed["first"], first, atol=1e-6)
    np.testing.assert_allclose(observed["mean_rank"], ranks, atol=1e-6)
    assert made["first"].dims == ("chain", "draw", "item")
    assert dict(made.sizes) == {"chain": 2, "draw": 5, "item": 3}
    assert set(made["draw"].values) <= set(data["posterior"]["draw"].values)
    assert made["item"].values.tolist() == list(rankings.items)
    if kind == "full":
        np.testing.assert_allclose(made["mean_rank"].sum("item"), 6, atol=1e-5)
        np.testing.assert_allclose(made["first"].sum("item"), 1, atol=1e-6)
    names = ["first", "mean_rank"]
    if hasattr(az, "plot_ppc"):
        axes = az.plot_ppc(data, var_names=names, num_pp_samples=5, random_seed=0)
        assert np.size(axes) == 2
    else:  # ArviZ 1.x
        plot = az.plot_ppc_dist(data, var_names=names, num_samples=5)
        assert set(names) <= set(plot.viz["predictive_dist"].data_vars)


def test_replications_are_refused_where_there_are_none(partitioned):
    with pytest.raises(ValueError, match="posterior_predictive is an argument for rankings"):
        to_inference_data(partitioned, posterior_predictive=5)
