"""Runs made without a sampler: what the kernels return, without the time to compile them."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.infer import MCMC

from numpyro_rankings.components import GaussianMean
from numpyro_rankings.infer import CollapsedGibbs, PlackettLuceGibbs, SliceGibbs
from numpyro_rankings.partitions import canonical_labels


def as_run(kernel, z, data, accept_prob, overflow):
    """An ``MCMC`` with these states, (chains, draws, …), as if it had run on the data."""
    chains, draws = z["log_joint"].shape
    mcmc = MCMC(
        kernel, num_warmup=0, num_samples=draws, num_chains=chains, chain_method="vectorized"
    )
    mcmc._states = {
        "z": {name: jnp.asarray(x) for name, x in z.items()},
        "potential_energy": jnp.asarray(-z["log_joint"]),
        "accept_prob": jnp.asarray(accept_prob),
        "overflow": jnp.asarray(overflow),
    }
    mcmc._args, mcmc._kwargs = (data,), {}
    return mcmc


def labels_by_first_item(rng, rankings, slots, shape):
    """Labels of three groups by the first item, a tenth of them random; and sizes of slots."""
    groups, num_rankings = min(3, slots), rankings.num_rankings
    first = np.asarray(rankings.orderings)[np.asarray(rankings.row_index), 0] % groups
    noise = rng.integers(0, groups, (*shape, num_rankings))
    labels = np.where(rng.random((*shape, num_rankings)) < 0.1, noise, first)
    labels = canonical_labels(labels)
    return labels, (labels[..., None] == np.arange(slots)).sum(2).astype(np.int32)


def fabricated_mcmc(
    rankings, num_components=None, num_slots=8, chains=2, draws=30, seed=0, overflow=0.0
):
    """A run of ``SliceGibbs``: random states around three groups by first item."""
    rng, n = np.random.default_rng(seed), rankings.num_items
    num_stages = min(rankings.orderings.shape[1], n - 1)
    slots, shape = num_components or num_slots, (chains, draws)
    labels, sizes = labels_by_first_item(rng, rankings, slots, shape)
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
