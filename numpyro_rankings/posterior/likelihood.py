"""Log likelihoods of rankings given draws, for a likelihood of any family."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from numpyro.infer import MCMC
from numpyro.infer.gibbs import GIBBS_SITES_KWARG

from numpyro_rankings.components.family import AugmentedFamily
from numpyro_rankings.components.points import as_points
from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.scored import Scored, ScoredLists, scored
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import Given
from numpyro_rankings.infer.partition.collapsed import log_given_others
from numpyro_rankings.ops.mistakes import MISTAKE
from numpyro_rankings.posterior.draws import Draws

_TERMS_OF_LIST = 20  # of a sum over orders, which take as long as a list
NUM_NEW_CLUSTERS = 50  # drawn for each draw, where a new cluster has no closed form


def pointwise_log_likelihood(
    draws: Draws, which: np.ndarray | None = None, num_new_clusters: int = NUM_NEW_CLUSTERS
) -> np.ndarray:
    """Log probability of each ranking given the labels of all others, summed over its own label.

    Of partial orders it is that of any of the orderings that agree with what the judge said, and of
    comparisons that may be mistakes that of what was said, whatever the ordering behind it.

    Under the Dirichlet process of Mallows models it is the log of
    ``Σ_c N_c P(π | σ_c, θ_c) + α (n-t)!/n!`` over ``N - 1 + α``, where ``N_c`` does not count the
    ranking itself. Draws with the shares of the components determine ``Σ_c w_c P(π | σ_c, θ_c)``
    without labels. Of ``DPPlackettLuceGibbs`` the term of a new cluster is a mean over some drawn
    from the prior: the fewer, the more the values of rankings that fit no other cluster scatter.

    :param which: indices of some rankings, (M,); by default all.
    :return: float32, shape ``(chains, draws, N)``, or ``(chains, draws, M)``.
    :raises ValueError: of partial orders with too many items that are tied or not compared.
    """
    family, labels = draws.check_family(), draws.labels
    # equal rows are scored once
    distinct, row_of_given = draws.given.merged()
    row_index = row_of_given[np.asarray(draws.given.row_index)]
    if which is not None:
        rows, row_index = np.unique(row_index[which], return_inverse=True)
        distinct = distinct._take(rows, np.ones(len(rows), int))
        labels = None if labels is None else labels[..., which]
    by_draw = parameters_of(draws)
    cells = None
    if "share_effects" in draws.samples:
        by_draw["log_shares"], cells = _log_shares_of_cells(draws)
        cells = cells if which is None else cells[which]
    if labels is not None:
        by_draw["assignments"] = labels.reshape(-1, labels.shape[-1])
    values = _pointwise(
        by_draw,
        scored(family, distinct),
        row_index.astype(np.int32),
        family,
        draws.num_components,
        num_new_clusters,
        cells,
    )
    return np.asarray(values).reshape(draws.num_chains, draws.num_draws, -1)


def _log_shares_of_cells(draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Return the log shares in each cell of covariates, (D, C, G), and the judges' cells, (N,)."""
    if draws.covariates is None:
        raise ValueError(
            "the shares depend on covariates, which the draws do not know: pass the run, or the "
            "MCMC that has run"
        )
    flat, design = draws.flat(), jnp.asarray(draws.covariates.design)
    linear = jnp.dot(flat["share_effects"], design.T, precision="highest")
    linear += jnp.log(flat["shares"])[..., None]
    log_shares = np.asarray(linear - logsumexp(linear, axis=1, keepdims=True))
    return log_shares, np.asarray(draws.covariates.cells)


def _shares_of_all(draws: Draws, shares: np.ndarray) -> np.ndarray:
    """Return the shares (D, C) of one who is drawn from all judges, whatever their covariates."""
    is_known = "share_effects" in draws.samples and draws.covariates is not None
    if not is_known or shares.sum(1).min() < 1.0 - 1e-3:  # without components that are empty
        return shares
    log_shares, cells = _log_shares_of_cells(draws)
    by_cell = np.bincount(cells, minlength=log_shares.shape[-1]) / len(cells)
    return (np.exp(log_shares) @ by_cell).astype(shares.dtype)


def cost_of_value(draws: Draws) -> float:
    """Return the time that a value of the log likelihood takes, in that of a plain list.

    :raises ValueError: of partial orders whose likelihood has too many terms.
    """
    family = draws.check_family()
    of_new = family.cost_of_new_cluster if draws.is_mixture else 1
    if draws.orders is None:
        return of_new
    rows = scored(family, draws.given.unique())
    assert not isinstance(rows, ScoredLists)
    return of_new * max(1.0, rows.num_terms / (_TERMS_OF_LIST * draws.given.num_rankings))


def parameters_of(draws: Draws) -> dict[str, np.ndarray]:
    """Return what the likelihood of rankings depends on, each (D, …).

    Slots that no draw uses are left out, unless their parameters matter. ``prior_scale``
    is the concentration of the prior of the labels; draws with ``shares`` do without it.
    """
    family, flat = draws.check_family(), draws.flat()
    names = {*family.parameters, *family.new_cluster_sites, "alpha", MISTAKE} & set(flat)
    parameters = {name: flat[name] for name in names}
    if draws.sizes is None and draws.labels is not None:
        raise ValueError("the samples have no cluster_sizes")
    if draws.sizes is None:
        return parameters
    if draws.shares is not None:
        if draws.lacks_empty:
            raise ValueError(
                "the posterior has no parameters for components that are empty in a draw: pass "
                "the run, or mcmc.get_samples()"
            )
        shares = _shares_of_all(draws, flat["shares"])
        return parameters | {"shares": shares, "cluster_sizes": flat["cluster_sizes"]}
    if draws.partition in ("components", "process") and family.scale not in flat:
        raise ValueError(f"the samples have no {family.scale}")
    # in a single population it has no effect
    sizes = flat["cluster_sizes"]
    ones = np.ones(len(sizes), flat[family.parameters[-1]].dtype)
    parameters |= {"prior_scale": flat.get(family.scale, ones), "cluster_sizes": sizes}
    if family.has_marginal:
        num_used = int(np.flatnonzero(sizes.any(0))[-1]) + 1
        for name in ("cluster_sizes", *family.parameters):
            parameters[name] = parameters[name][:, :num_used]
    return parameters


@partial(jax.jit, static_argnames=("family", "num_components", "num_new_clusters"))
def _pointwise(
    draws: dict[str, Array],
    rows: Scored,
    row_index: Array,
    family: RankingFamily,
    num_components: int | None,
    num_new_clusters: int,
    cells: Array | None = None,
) -> Array:
    def one_draw(inputs: tuple[Array, dict[str, Array]]) -> Array:
        key, draw = inputs
        table = rows.log_rows(family, draw)
        if "assignments" not in draw:
            return table[0, row_index]
        if cells is not None:
            return logsumexp(draw["log_shares"][:, cells] + table[:, row_index], axis=0)
        if "shares" in draw:
            return log_of_shares(table, draw["shares"])[row_index]
        log_new = None
        if family.has_marginal:
            log_new = rows.log_new_cluster(family, key, draw, num_new_clusters)
        given = draw["cluster_sizes"], PartitionPrior(draw["prior_scale"], num_components)
        labels, (slots, num_rows) = draw["assignments"].astype(jnp.int32), table.shape
        if len(labels) <= slots * num_rows:
            return _log_given_others(table, log_new, row_index, labels, *given)
        # fewer sums: one for each row and each cluster that a ranking of the row may be in
        row, slot = jnp.repeat(jnp.arange(num_rows), slots), jnp.tile(jnp.arange(slots), num_rows)
        return _log_given_others(table, log_new, row, slot, *given)[row_index * slots + labels]

    num_draws = len(draws[family.parameters[0]])
    return jax.lax.map(one_draw, (jax.random.split(jax.random.key(0), num_draws), draws))


def _log_given_others(
    table: Array,
    log_new: Array | None,
    rows: Array,
    labels: Array,
    sizes: Array,
    prior: PartitionPrior,
    log_judges: Array | None = None,
) -> Array:
    """Log probability of rankings given the labels of all others in one draw, (M,).

    :param table: log probability of each row in each slot, (C, rows).
    :param log_new: that in a new cluster, (rows,); None if empty slots are draws from the prior.
    :param rows: of the rankings, (M,), and **labels** too.
    :param log_judges: log probabilities of the judges' sites in each slot, (C, M).
    """
    is_own = jnp.arange(len(sizes))[:, None] == labels
    others = jnp.maximum(sizes[:, None] - is_own, 0)
    by_cluster = table[:, rows] if log_judges is None else table[:, rows] + log_judges
    log_new = None if log_new is None else log_new[rows]
    if log_new is None or log_judges is None:
        return log_of_mixture(by_cluster, log_new, others, sizes.sum() - 1, prior)
    empty, log_shares = others == 0, prior.log_join(others)
    # the sites of the judges have values in empty slots, too: a new cluster takes any of them
    log_rest = prior.log_open((~empty).sum(0)) + log_new
    of_empty = log_rest - jnp.log(jnp.maximum(empty.sum(0), 1)) + log_judges
    terms = jnp.where(empty, of_empty, log_shares + by_cluster)
    return logsumexp(terms, axis=0) - jnp.log(sizes.sum() - 1 + prior.alpha)


def log_of_mixture(
    by_cluster: Array, log_new: Array | None, sizes: Array, number: Array, prior: PartitionPrior
) -> Array:
    """Log probability of M rankings in clusters that have others, or in a new one, (M,).

    :param by_cluster: log probability of each in each slot, (C, M).
    :param log_new: that in a new cluster, (M,); None if empty slots are draws from the prior.
    :param sizes: of the clusters, (C, M) or (C, 1), which have so many rankings in all.
    """
    return logsumexp(_terms_of_mixture(by_cluster, log_new, sizes, number, prior), axis=0)


def _terms_of_mixture(
    by_cluster: Array, log_new: Array | None, sizes: Array, number: Array, prior: PartitionPrior
) -> Array:
    """Log probability that a ranking is in a slot, or in a new cluster, and is what it is.

    :return: (C + 1, M), the new cluster last; (C, M) if empty slots are draws from the prior.
    """
    total = jnp.log(number + prior.alpha)
    if log_new is None:
        return jnp.log(sizes + prior.kappa) + by_cluster - total
    log_rest = prior.log_open((sizes > 0).sum(0)) + log_new
    return jnp.concatenate([prior.log_join(sizes) + by_cluster, log_rest[None]]) - total


def log_terms(
    draw: Mapping[str, Array], table: Array, log_new: Array | None, num_components: int | None
) -> Array:
    """Log probability that a new ranking is in a cluster of one draw, and is what it is.

    :param draw: what :func:`parameters_of` returns, of one draw.
    :param table: log probability of each row in each slot, (C, rows).
    :param log_new: that in a new cluster, (rows,); None if empty slots have parameters.
    :return: (C, rows), or (C + 1, rows) with a new cluster last; (1, rows) of one population.
    """
    if "cluster_sizes" not in draw:
        return table[:1]
    if "shares" in draw:
        return jnp.log(draw["shares"])[:, None] + table
    sizes, prior = draw["cluster_sizes"], PartitionPrior(draw["prior_scale"], num_components)
    return _terms_of_mixture(table, log_new, sizes[:, None], sizes.sum(), prior)


def log_of_shares(table: Array, shares: Array) -> Array:
    """Log probability of each row, (rows,), given that in each component, and their shares."""
    return logsumexp(jnp.log(shares)[:, None] + table, axis=0)


def pointwise_of_block(mcmc: MCMC, block: GibbsKernel, draws: Draws) -> np.ndarray:
    """Return :func:`pointwise_log_likelihood` of a block of :class:`numpyro.infer.Gibbs`.

    It is that of the ranking and of the entries of ``judge_sites`` of its judge. The prior of the
    labels is that of the user's model at the values of the other sites.
    """
    family, rankings, sites = draws.check_family(), draws.fitted, block.sites
    rows, lists = rankings.row_index, (jnp.asarray(rankings.orderings), rankings.choice_sets)
    args, kwargs = mcmc._args, dict(mcmc._kwargs)

    def one_draw(inputs: tuple[Array, dict[str, Array]]) -> Array:
        key, draw = inputs
        own = {site: draw[site] for site in sites.values()}
        others = {name: x for name, x in draw.items() if name not in own}
        given = {**kwargs.get(GIBBS_SITES_KWARG, {}), **others}
        scales, log_judges = block.read_prior(own, args, {**kwargs, GIBBS_SITES_KWARG: given})
        named = {name: draw[site] for name, site in sites.items()}
        table = family.log_rows(named, *lists)
        if "assignments" not in named:
            return table[0, rows]
        log_new = None
        if family.has_marginal:
            log_new = family.log_new_cluster(key, {**named, **scales}, *lists, NUM_NEW_CLUSTERS)
        labels = named["assignments"].astype(jnp.int32)
        sizes = (jnp.arange(len(table))[:, None] == labels).sum(1)
        prior = PartitionPrior(scales[family.scale], draws.num_components)
        return _log_given_others(table, log_new, rows, labels, sizes, prior, log_judges)

    samples = mcmc.get_samples(group_by_chain=True)
    flat = {name: np.reshape(x, (-1, *np.shape(x)[2:])) for name, x in samples.items()}
    keys = jax.random.split(jax.random.key(0), draws.num_chains * draws.num_draws)
    values = jax.jit(lambda inputs: jax.lax.map(one_draw, inputs))((keys, flat))
    return np.asarray(values).reshape(draws.num_chains, draws.num_draws, -1)


def why_not_of_points(kernel: Any, draws: Draws) -> str:
    """Say why there is no log likelihood of the points of a partition; nothing if there is one."""
    if draws.partition == "links":
        return "its points depend on one another through their links"
    if draws.sites is not None:
        return "the prior of the labels is that of the other sites of the model"
    if isinstance(kernel.family, AugmentedFamily):
        return "its family scores points only together with their auxiliary variables"
    return ""


def pointwise_of_partition(mcmc: MCMC, draws: Draws) -> np.ndarray:
    """Log probability of each point given all others and their labels, summed over its own label.

    :return: float32, shape ``(chains, draws, N)``.
    """
    kernel: Any = mcmc.sampler
    flat = draws.flat()
    labels = flat["assignments"].astype(np.int32)
    slots = int(labels.max()) + 1

    @jax.jit
    def values(labels: Array, alpha: Array, data: Any) -> Array:
        points = as_points(kernel.family, data)

        def one_draw(draw: tuple[Array, Array]) -> Array:
            prior = PartitionPrior(draw[1], discount=kernel.discount)
            return log_given_others(draw[0], Given(points, prior, kernel.family, slots))

        return jax.lax.map(one_draw, (labels, alpha))

    alpha = jnp.asarray(flat["alpha"], float)
    data = jax.tree.map(np.asarray, mcmc._args[0], is_leaf=lambda x: type(x) in (list, tuple))
    found = np.asarray(values(labels, alpha, data))
    return found.reshape(draws.num_chains, draws.num_draws, -1)
