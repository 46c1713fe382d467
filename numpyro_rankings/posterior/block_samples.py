"""Draws of models of which a kernel of this package is a block."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from numpyro.infer import MCMC
from numpyro.infer.gibbs import GIBBS_SITES_KWARG

from numpyro_rankings.infer.base import GibbsKernel, find_rankings
from numpyro_rankings.infer.ddcrp.base import LinkGibbs
from numpyro_rankings.infer.partition.base import PartitionKernel
from numpyro_rankings.posterior.likelihood import (
    log_cluster_likelihood,
    log_in_new_cluster,
    log_one_ranking,
    log_plackett_luce_likelihood,
    stage_orderings,
)
from numpyro_rankings.posterior.samples import with_cluster_sizes
from numpyro_rankings.rankings import Rankings


def find_block(kernel: Any) -> GibbsKernel | None:
    """Return the block of :class:`numpyro.infer.Gibbs` that is a kernel of this package, if any.

    :raises ValueError: if there are several.
    """
    found = list(blocks_of(kernel))
    if len(found) > 1:
        names = " and ".join(type(block).__name__ for block in found)
        raise ValueError(
            f"the model has several blocks of this package, {names}: use "
            "arviz.from_numpyro(mcmc), and cluster_profiles(mcmc.get_samples(), rankings, sites=…) "
            "for the clusters of each"
        )
    return found[0] if found else None


def blocks_of(kernel: Any) -> Iterator[GibbsKernel]:
    """Yield the blocks of :class:`numpyro.infer.Gibbs` that are kernels of this package."""
    for block, _ in getattr(kernel, "blocks", ()):
        if isinstance(block, GibbsKernel):
            yield block
        else:
            yield from blocks_of(block)


class BlockFacts(NamedTuple):
    """What its draws do not say of a block, in types of JSON.

    - **kernel** - the name of its class.
    - **sites** - the names of its sites in the model, by its own names for them.
    - **judge_sites** - as the argument of the kernels of rankings.
    - **num_components** - of a finite mixture, otherwise None.
    """

    kernel: str
    sites: dict[str, str]
    judge_sites: tuple[str, ...]
    num_components: int | None

    @classmethod
    def of(cls, block: GibbsKernel) -> "BlockFacts":
        """Return those of a kernel of this package."""
        number = getattr(block, "num_components", None)
        judge_sites = tuple(getattr(block, "judge_sites", ()))
        return cls(
            type(block).__name__, block.sites, judge_sites, None if number is None else int(number)
        )


def fitted_rankings(kernel: GibbsKernel, args: tuple, kwargs: dict) -> Rankings | None:
    """Return the rankings that a kernel fits, None of a kernel of partitions, which needs none.

    :param args: arguments of its model, and **kwargs** keyword arguments.
    """
    if isinstance(kernel, PartitionKernel | LinkGibbs):
        return None
    return find_rankings(args, kwargs)


def as_of_kernel(samples: Mapping[str, Any], block: GibbsKernel | BlockFacts) -> dict[str, Any]:
    """Return the samples of a block under the kernel's own names, with the sizes of the clusters.

    Those of other blocks are left out.
    """
    return with_cluster_sizes({name: samples[site] for name, site in block.sites.items()})


def pointwise_of_block(mcmc: MCMC, block: GibbsKernel, num_new_clusters: int = 50) -> np.ndarray:
    """Log probability of each ranking given the labels of all others, summed over its own label.

    It is that of the ranking and of the entries of ``judge_sites`` of its judge. The prior of the
    labels is that of the user's model at the values of the other sites.

    :param mcmc: of :class:`numpyro.infer.Gibbs`, with **block** among its blocks.
    :param num_new_clusters: for ``DPPlackettLuceGibbs``, as in :func:`pointwise_plackett_luce`.
    :return: float32, shape ``(chains, draws, N)``.
    """
    samples = mcmc.get_samples(group_by_chain=True)
    args, kwargs = mcmc._args, dict(mcmc._kwargs)
    rankings = find_rankings(args, kwargs)
    lead = np.shape(next(iter(samples.values())))[:2]
    names = block.sites

    def one_draw(inputs: tuple[Array, dict[str, Array]]) -> Array:
        key, draw = inputs
        own = {name: draw[site] for name, site in names.items()}
        others = {name: x for name, x in draw.items() if name not in names.values()}
        given = {**kwargs.get(GIBBS_SITES_KWARG, {}), **others}
        z = {site: draw[site] for site in names.values()}
        scales, log_judges = block.read_prior(z, args, {**kwargs, GIBBS_SITES_KWARG: given})
        return _log_marginal(key, own, scales, log_judges, rankings, num_new_clusters)

    flat = {name: np.reshape(x, (-1, *np.shape(x)[2:])) for name, x in samples.items()}
    keys = jax.random.split(jax.random.key(0), int(np.prod(lead)))
    values = jax.jit(lambda inputs: jax.lax.map(one_draw, inputs))((keys, flat))
    return np.asarray(values).reshape(*lead, -1)


def _log_marginal(
    key: Array,
    own: dict[str, Array],
    scales: dict[str, Array],
    log_judges: Array | None,
    rankings: Rankings,
    num_new_clusters: int,
) -> Array:
    """Log probabilities of the rankings in one draw, (N,).

    :param own: the values of the block's sites, by the kernel's names.
    :param scales: those on which the prior of the labels depends.
    :param log_judges: log probabilities of the judges' sites in each slot, (C, N).
    """
    rows = rankings.row_index
    if "unseen_weight" in own:
        rankings = rankings.of_listed_items()
    if "center" in own:
        orderings = stage_orderings(rankings.orderings, own["concentration"].shape[-1])
        table = log_cluster_likelihood(orderings, own["center"], own["concentration"]).T
        log_alone = log_one_ranking(rankings.lengths, rankings.num_items)
    else:
        lists, offered = jnp.asarray(rankings.orderings), rankings.choice_sets
        table = log_plackett_luce_likelihood(own, lists, offered)
        if "phi" in scales:
            log_alone = log_in_new_cluster(key, {**own, **scales}, lists, offered, num_new_clusters)
    if "assignments" not in own:
        return table[0, rows]
    labels, (slots, _) = own["assignments"].astype(jnp.int32), table.shape
    is_own = jnp.arange(slots)[:, None] == labels
    others = is_own.sum(1)[:, None] - is_own  # sizes without the ranking itself, (C, N)
    occupied, by_cluster = others > 0, table[:, rows]
    is_process = "num_components" not in scales
    alpha = scales["gamma"] if "gamma" in scales else scales["alpha"]
    if is_process or "center" in own:
        by_cluster = jnp.where(occupied, by_cluster, log_alone[rows])
    if is_process:
        # a new cluster takes any empty slot: the sites of the judges have values there
        empty = slots - occupied.sum(0)
        log_new = jnp.log(alpha) - jnp.log(jnp.maximum(empty, 1))
        log_shares = jnp.where(occupied, jnp.log(jnp.maximum(others, 1)), log_new)
    else:
        log_shares = jnp.log(others + alpha / slots)
    if log_judges is not None:
        by_cluster = by_cluster + log_judges
    total = logsumexp(log_shares + by_cluster, axis=0)
    if is_process and log_judges is None:
        in_further = jnp.where(empty > 0, -jnp.inf, jnp.log(alpha) + log_alone[rows])
        total = jnp.logaddexp(total, in_further)
    return total - jnp.log(len(labels) - 1 + alpha)
