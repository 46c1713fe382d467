"""A likelihood that the package does not have, in one file: its profiles, tables and page.

It is a Mallows model with Spearman's distance, for full lists of a few items.
"""

import csv
import functools
import itertools
import re
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.fabricated import as_run

from numpyro_rankings import Rankings, cluster_profiles
from numpyro_rankings.cli.tables import columns_of_rankings, write_clusters
from numpyro_rankings.families import CenterProfile, RankingFamily, base, register_family
from numpyro_rankings.families.base import columns_with_interval, interval_of
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.posterior.predictive_checks import posterior_predictive_checks
from numpyro_rankings.report import findings_of, write_report

ITEMS = ("Ann", "Bob", "Cid", "Dee")
ALL_LISTS = np.array(list(itertools.permutations(range(4))))
NUM_COMPONENTS = 3


class Spearman(RankingFamily):
    """The probability of a list falls with its squared distance in ranks from the center."""

    name = "spearman"
    parameters = ("center", "precision")
    title = "Spearman"
    axes: ClassVar = {"center": ("place",)}

    def log_rows(self, draw, orderings, offered):
        center, precision = draw["center"], draw["precision"]
        scores = -precision[:, None] * distances(center, orderings)
        of_all = -precision[:, None] * distances(center, ALL_LISTS)
        return scores - jax.nn.logsumexp(of_all, axis=1, keepdims=True)

    def replicate(self, key, draw, labels, offered, length):
        logits = -draw["precision"][:, None] * distances(draw["center"], ALL_LISTS)
        return jnp.asarray(ALL_LISTS)[jax.random.categorical(key, logits[labels])]


def distances(center, lists):
    """Squared distances of the ranks, (C, lists)."""
    apart = jnp.argsort(center)[:, None] - jnp.argsort(jnp.asarray(lists))
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
    """A kernel whose draws are made below."""

    num_components = NUM_COMPONENTS

    def __init__(self):
        super().__init__(model)

    def _init(self, rng_key, init_params, args, kwargs):
        raise NotImplementedError

    def _sweep(self, state, args, kwargs):
        raise NotImplementedError

    def _potential(self, state, args, kwargs):
        raise NotImplementedError


def model(rankings):
    anything = dist.ImproperUniform(dist.constraints.real, (), rankings.orderings.shape)
    numpyro.sample("rankings", anything, obs=rankings.orderings)


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
