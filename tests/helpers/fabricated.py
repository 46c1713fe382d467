"""Runs that no sampler made: what the kernels return, without the time to compile them."""

import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC

from numpyro_rankings.components import GaussianMean
from numpyro_rankings.infer import CollapsedGibbs, SliceGibbs
from numpyro_rankings.partitions import canonical_labels


def fabricated_mcmc(
    rankings, num_components=None, num_slots=8, chains=2, draws=30, seed=0, overflow=0.0
):
    """An ``MCMC`` that seems to have been run: random states around three groups by first item."""
    rng = np.random.default_rng(seed)
    num_rankings, n = rankings.num_rankings, rankings.num_items
    num_stages = min(rankings.orderings.shape[1], n - 1)
    slots, shape = num_components or num_slots, (chains, draws)
    groups = min(3, slots)
    first = np.asarray(rankings.orderings)[np.asarray(rankings.row_index), 0] % groups
    noise = rng.integers(0, groups, (*shape, num_rankings))
    labels = np.where(rng.random((*shape, num_rankings)) < 0.1, noise, first)
    labels = canonical_labels(labels)
    sizes = (labels[..., None] == np.arange(slots)).sum(2).astype(np.int32)
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
    mcmc = MCMC(
        kernel, num_warmup=0, num_samples=draws, num_chains=chains, chain_method="vectorized"
    )
    mcmc._states = {
        "z": {name: jnp.asarray(x) for name, x in z.items()},
        "potential_energy": jnp.asarray(-log_joint),
        "accept_prob": jnp.asarray(rng.random(shape)),
        "overflow": jnp.asarray(rng.random(shape) < overflow),
    }
    mcmc._args, mcmc._kwargs = (rankings,), {}
    return mcmc


def fabricated_partition_mcmc(groups, chains=2, draws=30, seed=0):
    """The same of points: labels around those ``groups``, of which a tenth stray."""
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
    mcmc = MCMC(
        CollapsedGibbs(GaussianMean(1.0, 1.0)),
        num_warmup=0,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
    )
    mcmc._states = {
        "z": {name: jnp.asarray(x) for name, x in z.items()},
        "potential_energy": jnp.asarray(-log_joint),
        "accept_prob": jnp.ones(shape[:2]),
        "overflow": jnp.zeros(shape[:2], bool),
    }
    mcmc._args, mcmc._kwargs = (np.zeros((len(groups), 1)),), {}
    return mcmc
