"""Runs made without a sampler: what the kernels return, without the time to compile them."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.infer import MCMC

from helpers.exact_partitions import components
from numpyro_rankings.components import GaussianMean
from numpyro_rankings.infer import (
    CollapsedGibbs,
    DDCRPGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    exponential_decay,
)
from numpyro_rankings.posterior.partitions import canonical_labels


def as_run(kernel, z, data, accept_prob, overflow):
    """An ``MCMC`` with these states, (chains, draws, …), as if it had run on the data."""
    chains, draws = z["log_joint"].shape
    mcmc = MCMC(
        kernel, num_warmup=0, num_samples=draws, num_chains=chains, chain_method="vectorized"
    )
    mcmc._states = {
        # as JAX has them: in single precision, by NumPy, for JAX would compile each conversion
        "z": {name: jnp.asarray(_single(np.asarray(x))) for name, x in z.items()},
        "potential_energy": jnp.asarray(_single(-z["log_joint"])),
        "accept_prob": jnp.asarray(_single(accept_prob)),
        "overflow": jnp.asarray(overflow),
    }
    mcmc._args, mcmc._kwargs = data if isinstance(data, tuple) else (data,), {}
    return mcmc


def _single(x):
    return x.astype({"f": np.float32, "i": np.int32}[x.dtype.kind]) if x.itemsize == 8 else x


def labels_by_first_item(rng, rankings, slots, shape, merge_every=None):
    """Labels of three groups by the first item, a tenth of them random; and sizes of slots.

    :param merge_every: in every so many draws, the last group is in the first one.
    """
    groups, num_rankings = min(3, slots), rankings.num_rankings
    first = np.asarray(rankings.table)[np.asarray(rankings.row_index), 0] % groups
    noise = rng.integers(0, groups, (*shape, num_rankings))
    labels = np.where(rng.random((*shape, num_rankings)) < 0.1, noise, first)
    if merge_every is not None:
        labels[:, ::merge_every] %= groups - 1
    labels = canonical_labels(labels)
    return labels, (labels[..., None] == np.arange(slots)).sum(2).astype(np.int32)


def fabricated_mcmc(
    rankings,
    num_components=None,
    num_slots=8,
    chains=2,
    draws=30,
    seed=0,
    overflow=0.0,
    merge_every=None,
):
    """A run of ``SliceGibbs``: random states around three groups by first item."""
    rng, n = np.random.default_rng(seed), rankings.num_items
    num_stages = min(rankings.table.shape[1], n - 1)
    slots, shape = num_components or num_slots, (chains, draws)
    labels, sizes = labels_by_first_item(rng, rankings, slots, shape, merge_every)
    jitter = rng.normal(size=(*shape, slots, n)) + np.arange(n)
    log_joint = rng.normal(-100, 1, shape)
    z = {
        "assignments": labels.astype(np.int8),
        "center": np.argsort(jitter).astype(np.int32),
        "concentration": rng.gamma(4.0, 0.25, (*shape, slots, num_stages)).astype(np.float32),
        "cluster_sizes": sizes,
        "num_clusters": (sizes > 0).sum(-1),
        "alpha": rng.gamma(2.0, 1.0, shape).astype(np.float32),
        "log_joint": log_joint,
    }
    kernel = SliceGibbs(num_components=num_components, max_clusters=num_slots)
    return as_run(kernel, z, rankings, rng.random(shape), rng.random(shape) < overflow)


def fabricated_weights_mcmc(rankings, num_components, chains=2, draws=30, seed=0):
    """A run of ``PlackettLuceGibbs`` with several components, the last one empty."""
    rng, shape = np.random.default_rng(seed), (chains, draws)
    labels, sizes = labels_by_first_item(rng, rankings, num_components, shape)
    concentration = 1.0 + np.arange(rankings.num_items)
    z = {
        "assignments": labels.astype(np.int8),
        "weights": rng.dirichlet(concentration, (*shape, num_components)).astype(np.float32),
        "cluster_sizes": sizes,
        "num_clusters": (sizes > 0).sum(-1),
        "alpha": rng.gamma(2.0, 1.0, shape).astype(np.float32),
        "log_joint": rng.normal(-100, 1, shape),
    }
    kernel = PlackettLuceGibbs(num_components=num_components, alpha=dist.Gamma(1.0, 1.0))
    return as_run(kernel, z, rankings, np.ones(shape), np.zeros(shape, bool))


def fabricated_partition_mcmc(groups, chains=2, draws=30, seed=0, overflow=0.0):
    """A run of ``CollapsedGibbs`` on points: labels around the groups, a tenth of them random."""
    rng, groups = np.random.default_rng(seed), np.asarray(groups)
    shape = (chains, draws, len(groups))
    strays = rng.random(shape) < 0.1
    labels = canonical_labels(np.where(strays, rng.integers(0, groups.max() + 1, shape), groups))
    log_joint = rng.normal(-100, 1, shape[:2])
    z = {
        "assignments": labels.astype(np.int8),
        "num_clusters": labels.max(-1) + 1,
        "alpha": rng.gamma(2.0, 1.0, shape[:2]).astype(np.float32),
        "log_joint": log_joint,
    }
    kernel, points = CollapsedGibbs(GaussianMean(1.0, 1.0)), np.zeros((len(groups), 1))
    return as_run(kernel, z, points, np.ones(shape[:2]), rng.random(shape[:2]) < overflow)


def fabricated_links_mcmc(points, distances, chains=2, draws=30, seed=0):
    """A run of ``DDCRPGibbs`` that learns the decay: links among the points up to two away."""
    rng, (size, shape) = np.random.default_rng(seed), (len(points), (chains, draws))
    links = np.arange(size) + rng.integers(-2, 3, (*shape, size))
    links = np.clip(links, 0, size - 1).astype(np.int32)
    labels = np.array([components(row) for row in links.reshape(-1, size).tolist()])
    labels = labels.reshape(links.shape)
    z = {
        "links": links,
        "assignments": labels.astype(np.int8),
        "num_clusters": labels.max(-1) + 1,
        "alpha": rng.gamma(2.0, 1.0, shape).astype(np.float32),
        "decay_scale": rng.gamma(2.0, 1.0, shape).astype(np.float32),
        "log_joint": rng.normal(-100, 1, shape),
    }
    gamma = dist.Gamma(1.0, 1.0)
    kernel = DDCRPGibbs(GaussianMean(2.0, 0.5), gamma, exponential_decay(gamma))
    return as_run(kernel, z, (points, distances), np.ones(shape), np.zeros(shape, bool))


def fabricated_pool_mcmc(rankings, chains=2, draws=30, seed=0):
    """A run of ``GammaProcessPlackettLuceGibbs``."""
    rng, shape = np.random.default_rng(seed), (chains, draws)
    items = rankings.of_listed_items().num_items
    weights = rng.dirichlet(1.0 + np.arange(items + 1), shape).astype(np.float32)
    z = {
        "weights": weights[..., :items],
        "unseen_weight": weights[..., items],
        "unseen_rate": rng.gamma(2.0, 1.0, shape).astype(np.float32),
        "alpha": rng.gamma(2.0, 1.0, shape).astype(np.float32),
        "log_joint": rng.normal(-100, 1, shape),
    }
    kernel = GammaProcessPlackettLuceGibbs(dist.Gamma(1.0, 1.0))
    return as_run(kernel, z, rankings, np.ones(shape), np.zeros(shape, bool))


def apart(mcmc):
    """The run with chains that disagree: their log joints are far apart."""
    log_joint = np.array(mcmc._states["z"]["log_joint"])
    log_joint[1] -= 50
    mcmc._states["z"] |= {"log_joint": log_joint}
    return mcmc


def with_groups(mcmc, data):
    """The run of ``fabricated_mcmc`` with the simulated groups in each draw; its chains agree."""
    z = {name: np.array(x) for name, x in mcmc._states["z"].items()}
    chains, draws = z["assignments"].shape[:2]
    labels, number = np.asarray(data.assignments), len(data.centers)
    shape, n = (chains, draws, max(number, 2)), data.centers.shape[1]
    z["assignments"] = np.broadcast_to(labels, (chains, draws, len(labels))).astype(np.int8)
    z["center"] = np.broadcast_to(np.arange(n), (*shape, n)).astype(np.int32).copy()
    z["center"][:, :, :number] = data.centers
    z["concentration"] = np.full((*shape, n - 1), 1.0, np.float32)
    z["concentration"][:, :, :number] = data.concentrations[:, : n - 1]
    sizes = np.bincount(labels, minlength=shape[-1])
    z["cluster_sizes"] = np.broadcast_to(sizes, shape).astype(np.int32)
    z["num_clusters"] = np.full((chains, draws), len(np.unique(labels)), np.int32)
    for name in ("log_joint", "alpha"):  # the same in all chains, which so agree
        z[name] = np.broadcast_to(1 + np.arange(draws) % 3, (chains, draws)).astype(np.float32)
    mcmc._states["z"] = z
    return mcmc
