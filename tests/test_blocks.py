"""Mallows kernels as blocks of ``numpyro.infer.Gibbs``."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from enumeration import MallowsPosterior, discrepancies, log_partition, partitions
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs

import numpyro_rankings.distributions as rd
from numpyro_rankings import Rankings
from numpyro_rankings.infer import SliceGibbs

BLOCK_LISTS = [[0, 1], [0, 2], [2, 1]]


def block_model(rankings, num_components=None):
    """α and the rate of θ for NUTS, the rest for the kernel."""
    alpha = numpyro.sample("mass", dist.Gamma(3.0, 2.0))
    rate = numpyro.sample("rate", dist.LogNormal(0.0, 0.6))
    size, n = len(rankings), rankings.num_items
    partition = rd.ChineseRestaurantProcess(alpha, size, max_clusters=4)
    if num_components is not None:
        partition = rd.FiniteDirichletPartition(alpha, num_components, size)
    labels = numpyro.sample("z", partition)
    with numpyro.plate("cluster", 4, dim=-1):
        center = numpyro.sample("sigma", rd.RandomPermutation(n))
        theta = numpyro.sample("theta", dist.Exponential(rate).expand((2,)).to_event(1))
    lists = jnp.asarray(rankings.orderings)
    with numpyro.plate("ranking", size, dim=-1):
        numpyro.sample("pi", rd.GeneralizedMallows(center[labels], theta[labels]), obs=lists)


SITES = {"assignments": "z", "center": "sigma", "concentration": "theta"}


def block_expectations(num_components):
    """By enumeration, and quadrature over α and log rate."""
    table = list(partitions(3))
    alpha = np.exp(np.linspace(-9, 4, 1500))
    prior_alpha = alpha**3 * np.exp(-2 * alpha)
    by_partition = np.array(
        [log_partition(list(np.bincount(labels)), alpha, num_components) for labels in table]
    )
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(15)
    joint, theta = np.zeros((15, len(table))), np.zeros((15, len(table), 2))
    for k, rate in enumerate(np.exp(0.6 * nodes)):
        twin = MallowsPosterior(BLOCK_LISTS, 3, lambda x, left, rate=rate: -rate * x)
        for p, labels in enumerate(table):
            blocks = [tuple(np.flatnonzero(np.equal(labels, c))) for c in range(max(labels) + 1)]
            joint[k, p] = sum(twin.clusters[block][0] for block in blocks)
            theta[k, p] = twin.clusters[blocks[0]][2]
    weight = node_weights[:, None] * np.exp(joint - joint.max())
    weight = weight * (np.exp(by_partition) @ prior_alpha)
    weight /= weight.sum()
    mean_alpha = (np.exp(by_partition) * prior_alpha) @ alpha / (np.exp(by_partition) @ prior_alpha)
    return {
        "partition": weight.sum(0),
        "theta": np.einsum("kp,kpj->j", weight, theta),
        "mass": np.array([weight.sum(0) @ mean_alpha]),
        "rate": np.array([weight.sum(1) @ np.exp(0.6 * nodes)]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("num_components", [None, 4])
def test_block_of_gibbs_by_enumeration(num_components):
    model = partial(block_model, num_components=num_components)
    settings = {"max_clusters": 4, "init": "given"}
    if num_components is not None:
        settings = {"num_components": num_components, "init": "nearest"}
    block = SliceGibbs(model=model, sites=SITES, **settings)
    kernel = Gibbs([(block, ["z", "sigma", "theta"]), (NUTS(model), ["mass", "rate"])])
    data = Rankings.from_orderings(BLOCK_LISTS, num_items=3)
    mcmc = MCMC(
        kernel,
        num_warmup=100,
        num_samples=500,
        num_chains=24,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(10), data)
    samples = {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}
    code = samples["z"] @ 3 ** np.arange(3)
    found = {
        "partition": code[..., None] == np.array(list(partitions(3))) @ 3 ** np.arange(3),
        "theta": samples["theta"][:, :, 0],
        "mass": samples["mass"][..., None],
        "rate": samples["rate"][..., None],
    }
    z = discrepancies(found, block_expectations(num_components))
    assert max(z.values()) < 6.0, z  # 9 quantities, 23 degrees of freedom: about 4e-5


def test_blocks_refuse_what_they_cannot_own():
    def other_partition(rankings):
        numpyro.sample("assignments", dist.Categorical(jnp.ones(3) / 3).expand((len(rankings),)))
        with numpyro.plate("cluster", 4):
            numpyro.sample("center", rd.RandomPermutation(rankings.num_items))
            numpyro.sample("concentration", dist.Exponential(1.0).expand((2,)).to_event(1))

    def run(model, others, **settings):
        blocks = [(SliceGibbs(model=model, **settings), settings.get("sites", sites).values())]
        kernel = Gibbs([*((k, list(names)) for k, names in blocks), *others])
        kernel.init(random.key(0), 0, None, (small,), {})

    small = Rankings.from_orderings(BLOCK_LISTS, num_items=3)
    sites = {name: name for name in SITES}
    with pytest.raises(ValueError, match="is a block of"):
        MCMC(SliceGibbs(model=block_model), num_warmup=1, num_samples=1).run(random.key(0), small)
    with pytest.raises(ValueError, match="ChineseRestaurantProcess"):
        run(other_partition, [], max_clusters=4)
    others = [(NUTS(block_model), ["mass", "rate"])]
    with pytest.raises(ValueError, match="9 cluster slots"):
        run(block_model, others, max_clusters=9, sites=SITES)
