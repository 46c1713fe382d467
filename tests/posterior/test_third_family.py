"""A likelihood that the package does not have, in one file: fit, tables, page and comparison.

It is a Mallows model with Spearman's distance, for full lists of a few items.
"""

import csv
import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.fabricated import as_run

from numpyro_rankings import Draws, Rankings, cluster_profiles, to_inference_data
from numpyro_rankings.cli.models import MODELS, FitModel, mixture_in_words
from numpyro_rankings.cli.program import main
from numpyro_rankings.cli.tables import columns_of_rankings, write_clusters
from numpyro_rankings.distributions import FiniteDirichletPartition, GeneralizedMallows
from numpyro_rankings.families import CenterProfile, RankingFamily, base, register_family
from numpyro_rankings.families.base import columns_with_interval, interval_of
from numpyro_rankings.infer.base import GibbsKernel, GibbsState, find_rankings
from numpyro_rankings.infer.mixture.labels import canonical_order
from numpyro_rankings.posterior.predictive_checks import posterior_predictive_checks
from numpyro_rankings.posterior.stacking import stack_fitted_chains
from numpyro_rankings.report import comparison, findings_of, write_report
from numpyro_rankings.report.comparison import default_models

ITEMS = ("Ann", "Bob", "Cid", "Dee")
ALL_LISTS = np.array(list(itertools.permutations(range(4))))
NUM_COMPONENTS = 3
ALPHA = 1.0


class Spearman(RankingFamily):
    """The probability of a list falls with its squared distance in ranks from the center."""

    name = "spearman"
    parameters = ("center", "precision")
    title = "Spearman"
    axes: ClassVar = {"center": ("place",)}
    partitions: ClassVar = ("components",)

    def log_rows(self, draw, orderings, offered):
        center, precision = draw["center"], draw["precision"]
        scores = -precision[:, None] * distances(center, orderings)
        of_all = -precision[:, None] * distances(center, ALL_LISTS)
        return scores - jax.nn.logsumexp(of_all, axis=1, keepdims=True)

    def replicate(self, key, draw, labels, offered, length):
        logits = -draw["precision"][:, None] * distances(draw["center"], ALL_LISTS)
        return jnp.asarray(ALL_LISTS)[jax.random.categorical(key, logits[labels])]

    def quantities(self, samples, sizes, rankings):
        shares = 1.0 if sizes is None else sizes / sizes.sum(-1, keepdims=True)
        return {"population_precision": (shares * samples["precision"]).sum(-1)}


def distances(center, lists):
    """Squared distances of the ranks, (C, lists)."""
    apart = jnp.argsort(center)[..., None, :] - jnp.argsort(jnp.asarray(lists))
    return jnp.sum(apart**2, axis=-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionProfile(CenterProfile):
    precision: float
    precision_interval: tuple[float, float]

    def columns(self):
        more = columns_with_interval("precision", self.precision, self.precision_interval)
        return super().columns() | more


class TalkativeSpearman(Spearman):
    """The same with more to say about a cluster."""

    def profile(self, common, parameters):
        precision = parameters["precision"]
        return PrecisionProfile(
            **vars(super().profile(common, parameters)),
            precision=float(precision.mean()),
            precision_interval=interval_of(precision),
        )


class SpearmanGibbs(GibbsKernel):
    """Labels given shares, shares, centers among all lists, precisions by Metropolis steps.

    The prior of a center is uniform, and that of a precision exponential.
    """

    _is_block = False

    def __init__(self, num_components=NUM_COMPONENTS):
        super().__init__(functools.partial(model, num_components=num_components))
        self._num_components = num_components

    @property
    def ranking_family(self):
        return next(one for one in base._families if one.name == "spearman")

    @property
    def num_components(self):
        return self._num_components

    @property
    def sites(self):
        return {name: name for name in ("assignments", "center", "precision")}

    def read_prior(self, z, args, kwargs):
        return {"alpha": z["alpha"], "num_components": self._num_components}, None

    def _init(self, rng_key, init_params, args, kwargs):
        number, rankings = self._num_components, find_rankings(args, kwargs)
        key_labels, rng_key = jax.random.split(rng_key)
        labels = jax.random.randint(key_labels, rankings.row_index.shape, 0, number)
        center = jnp.tile(jnp.arange(4), (number, 1))
        return self._state(rankings, labels, center, jnp.full(number, 0.1), rng_key)

    def _sweep(self, state, args, kwargs):
        rankings, z = find_rankings(args, kwargs), state.z
        rng_key, *keys = jax.random.split(state.rng_key, 6)
        number, precision = self._num_components, z["precision"]
        shares = jax.random.dirichlet(keys[0], z["cluster_sizes"] + ALPHA / number)
        lists = jnp.asarray(rankings.orderings)[rankings.row_index]
        log_p = self.ranking_family.log_rows(z, lists, None) + jnp.log(shares)[:, None]
        labels = jax.random.categorical(keys[1], log_p, axis=0)
        members = jax.nn.one_hot(labels, number)
        of_centers = distances(ALL_LISTS, lists) @ members  # (24, K)
        place = jax.random.categorical(keys[2], -precision * of_centers, axis=0)
        center = jnp.asarray(ALL_LISTS)[place]
        proposal = precision * jnp.exp(0.5 * jax.random.normal(keys[3], (number,)))
        old, new = (self._log_posterior(lists, members, center, x) for x in (precision, proposal))
        accepted = jnp.log(jax.random.uniform(keys[4], (number,))) < new - old
        precision = jnp.where(accepted, proposal, precision)
        return self._state(rankings, labels, center, precision, rng_key)

    def _log_posterior(self, lists, members, center, precision):
        """Of the logarithms of the precisions, (K,)."""
        draw = {"center": center, "precision": precision}
        log_likelihood = (self.ranking_family.log_rows(draw, lists, None) * members.T).sum(1)
        return log_likelihood - precision + jnp.log(precision)

    def _state(self, rankings, labels, center, precision, rng_key):
        number = self._num_components
        labels, order = canonical_order(labels, number)
        center, precision = center[order].astype(jnp.int32), precision[order]
        lists = jnp.asarray(rankings.orderings)[rankings.row_index]
        members = jax.nn.one_hot(labels, number)
        sizes = members.sum(0).astype(jnp.int32)
        log_joint = jnp.sum(self._log_posterior(lists, members, center, precision))
        log_joint += FiniteDirichletPartition(ALPHA, number, len(lists)).log_prob(labels)
        z = {
            "assignments": labels.astype(jnp.int8),
            "center": center,
            "precision": precision,
            "cluster_sizes": sizes,
            "num_clusters": jnp.sum(sizes > 0),
            "alpha": jnp.array(ALPHA),
            "log_joint": log_joint,
        }
        return GibbsState(z, -log_joint, jnp.ones(()), jnp.array(False), rng_key)

    def _potential(self, state, args, kwargs):
        return -state.z["log_joint"]


class SpearmanModel(FitModel):
    """The model of the command."""

    name = "spearman"
    about = "consensus orders (squared distances of ranks)"
    defaults: ClassVar = {"components": 2}

    @property
    def family(self):
        return SpearmanGibbs().ranking_family

    def kernel(self, options):
        return SpearmanGibbs(options.components)

    def in_words(self, options):
        return f"Mallows model of squared distances, {mixture_in_words(options)}"


def model(rankings, num_components):
    """The priors, and some density of the rankings, which the kernel does not ask for."""
    number = rankings.row_index.shape[0]
    numpyro.sample("assignments", FiniteDirichletPartition(ALPHA, num_components, number))
    with numpyro.plate("component", num_components):
        numpyro.sample("center", GeneralizedMallows(jnp.arange(4), jnp.zeros(3)))
        numpyro.sample("precision", dist.Exponential(1.0))
    lists = rankings.orderings[rankings.row_index]
    anything = dist.ImproperUniform(dist.constraints.real, (), lists.shape)
    numpyro.sample("rankings", anything, obs=lists)


@pytest.fixture(params=[Spearman, TalkativeSpearman])
def family(request, monkeypatch):
    monkeypatch.setattr(base, "_families", list(base._families))
    one = request.param()
    register_family(one)
    return one


@pytest.fixture(scope="module")
def rankings():
    lists = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 1, 0]]
    lists += [[0, 1, 2, 3]] * 11 + [[0, 2, 1, 3]] * 4 + [[1, 0, 3, 2]] * 8 + [[2, 3, 1, 0]] * 6
    return Rankings.from_orderings(lists, num_items=4, items=ITEMS)


@pytest.fixture
def mcmc(rankings, family):
    """A run whose three clusters are those of the first item, with the centers of most lists."""
    rng, shape = np.random.default_rng(0), (2, 30)
    first = np.asarray(rankings.orderings)[np.asarray(rankings.row_index), 0]
    noise = rng.integers(0, NUM_COMPONENTS, (*shape, len(first)))
    labels = np.where(rng.random(noise.shape) < 0.1, noise, first)
    labels[..., :NUM_COMPONENTS] = range(NUM_COMPONENTS)  # in the order of first use
    sizes = (labels[..., None] == np.arange(NUM_COMPONENTS)).sum(2).astype(np.int32)
    centers = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 1, 0]], np.int32)
    z = {
        "assignments": labels.astype(np.int8),
        "center": np.broadcast_to(centers, (*shape, *centers.shape)),
        "precision": rng.gamma(20.0, 0.02, (*shape, NUM_COMPONENTS)).astype(np.float32),
        "cluster_sizes": sizes,
        "num_clusters": (sizes > 0).sum(-1),
        "alpha": rng.gamma(2.0, 1.0, shape).astype(np.float32),
        "log_joint": rng.normal(-100, 1, shape),
    }
    return as_run(SpearmanGibbs(), z, rankings, np.ones(shape), np.zeros(shape, bool))


def test_profiles(mcmc, rankings, family):
    profiles = cluster_profiles(mcmc, rankings)
    assert profiles[0].consensus == ITEMS and len(profiles) == 3
    for p in profiles:
        assert p.family is family and p.noun == "ranking" and p.items == ITEMS
        assert p.consensus == p.map_consensus and p.map_probability == 1.0
        assert 0.5 < p.agreement <= 1.0 and np.isnan(p.entropy)
        assert tuple(item for level in p.certain for item in level) == p.consensus


def test_predictive_checks(mcmc, rankings):
    checks = posterior_predictive_checks(jax.random.key(0), mcmc.get_samples(), rankings, 20)
    assert np.abs(checks.top.observed - checks.top.mean).max() < 0.2


def test_clusters_csv(mcmc, rankings, family, tmp_path):
    findings = findings_of(mcmc, rankings, checks=None, blocs=None)
    columns = functools.partial(columns_of_rankings, rankings=rankings)
    write_clusters(tmp_path / "clusters.csv", findings, columns)
    with open(tmp_path / "clusters.csv", encoding="utf-8") as stream:
        first, *_ = csv.DictReader(stream)
    assert first["consensus"] == first["most_frequent_center"] == "Ann > Bob > Cid > Dee"
    assert first["wants"].startswith("Ann") and float(first["agreement"]) > 0.5
    has_more = isinstance(family, TalkativeSpearman)
    assert ("precision" in first) == has_more
    if has_more:
        low, mean, high = (float(first[f"precision{x}"]) for x in ("_low", "", "_high"))
        assert low < mean < high


def test_page(mcmc, rankings, tmp_path):
    """It has the groups, and the mean rank of each item; θ and weights are not spoken of."""
    write_report(tmp_path / "report.html", mcmc, rankings)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<h3>Group") == 3 and "Who is in the groups" in page
    assert "How certain each order is" in page and "Do the chains agree" in page
    assert "How sharp each choice is" not in page and "What each item weighs" not in page
    assert "nan" not in re.sub('<style>.*?</style>|data:[^"]*', "", page, flags=re.S).lower()


def test_empty_clusters(mcmc, rankings, family):
    """The parameters that ArviZ data do not keep are those of a cluster in use."""
    z = dict(mcmc._states["z"])
    z["cluster_sizes"] = jnp.pad(z["cluster_sizes"], ((0, 0), (0, 0), (0, 1)))
    for name in ("center", "precision"):
        z[name] = jnp.concatenate([z[name], z[name][:, :, -1:]], axis=2)
    mcmc._states["z"] = z
    data = to_inference_data(mcmc, rankings)
    assert np.isnan(data["posterior"]["precision"].values[..., -1]).all()
    draws = Draws.of(data, rankings)
    for name in ("center", "precision"):
        np.testing.assert_array_equal(draws.samples[name][:, :, -1], z[name][:, :, 0])
        np.testing.assert_array_equal(draws.samples[name][:, :, :-1], z[name][:, :, :-1])
    assert np.isfinite(stack_fitted_chains(draws).weights).all()


def test_names_are_those_of_one_family(family):
    class Other(Spearman):
        name = "other"

    for other, said in ((Spearman(), "a family 'spearman' already"), (Other(), "by the names")):
        with pytest.raises(ValueError, match=said):
            register_family(other)


def simulated(rng, number):
    """Lists of two groups, of opposite orders, (number, 4), and the group of each."""
    spearman = Spearman()
    draw = {"center": jnp.array([[0, 1, 2, 3], [3, 2, 1, 0]]), "precision": jnp.array([0.4, 0.2])}
    labels = jnp.arange(number) % 2
    lists = spearman.replicate(jax.random.key(rng), draw, labels, None, 4)
    return np.asarray(lists), np.asarray(labels)


def write_lists(lists):
    lines = [",".join(ITEMS[i] for i in row) for row in lists]
    Path("lists.csv").write_text("1,2,3,4\n" + "\n".join(lines) + "\n")


@pytest.fixture
def known(monkeypatch):
    """The family, registered for the command and for comparisons too."""
    monkeypatch.setattr(base, "_families", list(base._families))
    family = Spearman()
    register_family(family)
    monkeypatch.setitem(MODELS, "spearman", SpearmanModel())
    monkeypatch.setattr(comparison, "_compared", dict(comparison._compared))
    comparison.compare_by_default(family, SpearmanGibbs)
    return family


def test_fit(known, tmp_path, monkeypatch, capsys):
    """The command fits it, and finds the groups that were simulated."""
    monkeypatch.chdir(tmp_path)
    lists, groups = simulated(0, 200)
    write_lists(lists)
    length = ["--warmup", "50", "--draws", "100", "--chains", "2", "--no-progress"]
    table = ["lists.csv", "--layout", "orders"]
    assert main(["fit", *table, "--model", "spearman", *length, "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "2 groups" in printed and "Ann" in printed
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "Mallows model of squared distances, 2-component mixture" in page
    with open("out/assignments.csv", encoding="utf-8") as stream:
        assigned = np.array([int(row["cluster"]) for row in csv.DictReader(stream)]) - 1
    agreement = np.mean(assigned == groups)
    assert max(agreement, 1 - agreement) > 0.85
    with open("out/clusters.csv", encoding="utf-8") as stream:
        orders = {row["consensus"] for row in csv.DictReader(stream)}
    assert orders == {"Ann > Bob > Cid > Dee", "Dee > Cid > Bob > Ann"}
    refused = {
        "--nu 2": "--nu goes with",
        "--alpha 2": "--alpha goes with",
        "--components dp": "goes with mallows\n",
        "--blocs 2": "--blocs cannot be used with --model spearman",
    }
    for wrong, said in refused.items():
        assert main(["fit", *table, "--model", "spearman", *wrong.split(), "--out", "new"]) == 2
        assert said in capsys.readouterr().err


def test_compare(known, tmp_path, monkeypatch, capsys):
    """The command compares it with the others, and two groups predict better than one."""
    monkeypatch.chdir(tmp_path)
    lists, _ = simulated(1, 120)
    rankings = Rankings.from_orderings(lists, num_items=4, items=ITEMS)
    assert len(default_models(rankings, [1, 2])) == 7
    write_lists(lists)
    quick = functools.partial(comparison.compare, rhat=1.1, ess=50)
    monkeypatch.setattr(comparison, "compare", quick)
    monkeypatch.setattr("numpyro_rankings.cli.compare.use_compilation_cache", lambda: None)
    command = ["compare", "lists.csv", "--layout", "orders", "--components", "1-2", "--chains", "2"]
    assert main([*command, "--models", "Spearman", "--minutes", "5", "--out", "out"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 groups or more: fewer predict clearly worse" in printed
    with open("out/comparison.csv", encoding="utf-8") as stream:
        best, other = csv.DictReader(stream)
    assert best["model"] == "Spearman (2 groups)" and other["model"] == "Spearman (1 group)"
    assert float(other["elpd_diff"]) < -10 and float(best["pairs_outside"]) < 0.5
    comparison._compared.pop(known)
    assert main([*command, "--models", "spearman", "--out", "new"]) == 2
    assert "no model of spearman can be compared" in capsys.readouterr().err
