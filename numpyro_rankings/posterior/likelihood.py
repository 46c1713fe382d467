"""Log likelihoods of rankings given draws: of Mallows mixtures, then of Plackett–Luce ones."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln
from numpy.typing import ArrayLike

from numpyro_rankings.ops.choices import as_choices, log_choice_likelihoods
from numpyro_rankings.ops.codes import inverse_ordering, max_codes, stage_codes
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.posterior.samples import batch_of_rows, occupied_slots
from numpyro_rankings.rankings import Rankings

# the sites that the prior of a new cluster depends on, besides alpha
NEW_CLUSTERS = ("phi", "gamma", "root_weights", "root_unseen_weight")

COST_OF_NEW = 20  # of a value of DPPlackettLuceGibbs, for which new clusters are drawn


def pointwise_log_likelihood(
    samples: dict[str, Any],
    rankings: Rankings,
    num_components: int | None = None,
    which: np.ndarray | None = None,
) -> np.ndarray:
    """Log probability of each ranking given the labels of all others, summed over its own label.

    Under the Dirichlet process it is the log of ``Σ_c N_c P(π | σ_c, θ_c) + α (n-t)!/n!`` over
    ``N - 1 + α``, where ``N_c`` does not count the ranking itself.

    :param samples: ``mcmc.get_samples(group_by_chain=True)``.
    :param rankings: the rankings that were fitted.
    :param num_components: ``None`` for the Dirichlet process.
    :param which: indices of some rankings, (M,); by default all.
    :return: float32, shape ``(chains, draws, N)``, or ``(chains, draws, M)``.
    """
    rows, row_index, labels = _some(samples["assignments"], rankings, which)
    clusters = occupied_slots(samples)
    num_stages = clusters["concentration"].shape[-1]
    chains, draws = np.shape(samples["assignments"])[:2]
    batch = batch_of_rows(clusters["center"].shape, num_stages, len(rows))
    orderings = stage_orderings(np.asarray(rankings.orderings)[rows], num_stages)
    log_one = log_one_ranking(np.asarray(rankings.lengths)[rows], rankings.num_items)
    alpha = samples.get(
        "alpha", np.ones((chains, draws), jnp.result_type(float))
    )  # has no effect in a single population
    by_draw = {**clusters, "alpha": alpha, "assignments": labels}
    flat = {
        name: np.reshape(np.asarray(x), (chains * draws, *np.shape(x)[2:]))
        for name, x in by_draw.items()
    }
    pointwise = _pointwise if which is None else _pointwise_of_some
    values = pointwise(flat, orderings, log_one, row_index, num_components, batch)
    return np.asarray(values).reshape(chains, draws, -1)


def _some(
    assignments: Any, rankings: Rankings, which: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the rows of some rankings, the place of each ranking among them, and the labels.

    :param assignments: (…, N), None if there are none.
    """
    row_index = np.asarray(rankings.row_index)
    if which is None:
        return np.arange(rankings.num_rows), row_index, assignments
    rows, places = np.unique(row_index[which], return_inverse=True)
    labels = None if assignments is None else np.asarray(assignments)[..., which]
    return rows, places.astype(np.int32), labels


@partial(jax.jit, static_argnames=("num_components", "batch"))
def _pointwise(
    draws: dict[str, Array],
    orderings: Array,
    log_one: Array,
    row_index: Array,
    num_components: int | None,
    batch: int,
) -> Array:
    def one_draw(draw: dict[str, Array]) -> Array:
        sizes, alpha = draw["cluster_sizes"], draw["alpha"]
        num_slots = sizes.shape[0]
        log_weight, _ = log_cluster_weights(sizes, alpha, num_components)
        # row c: the weights after a member has left cluster c
        left = sizes - jnp.eye(num_slots, dtype=sizes.dtype)
        log_left, log_empty_left = jax.vmap(
            lambda s: log_cluster_weights(s, alpha, num_components)
        )(jnp.maximum(left, 0))
        log_own = jnp.diagonal(log_left)

        def one_row(row: tuple[Array, Array]) -> Array:
            ordering, log_one = row
            by_cluster = log_cluster_likelihood(
                ordering[None], draw["center"], draw["concentration"]
            )[0]
            others = _all_but_one(log_weight + by_cluster)
            clusters = jnp.logaddexp(others, log_own + by_cluster)
            return jnp.logaddexp(clusters, log_empty_left + log_one)

        by_row = jax.lax.map(one_row, (orderings, log_one), batch_size=batch)
        total = jnp.log(sizes.sum() - 1 + alpha)
        return by_row[row_index, draw["assignments"].astype(jnp.int32)] - total

    return jax.lax.map(one_draw, draws)


@partial(jax.jit, static_argnames=("num_components", "batch"))
def _pointwise_of_some(
    draws: dict[str, Array],
    orderings: Array,
    log_one: Array,
    row_index: Array,
    num_components: int | None,
    batch: int,
) -> Array:
    """The same for rankings that are not many more than their rows.

    There is one sum for each of them, not one for each row and each cluster that it may be in.
    """

    def one_draw(draw: dict[str, Array]) -> Array:
        sizes, alpha = draw["cluster_sizes"], draw["alpha"]
        labels = draw["assignments"].astype(jnp.int32)
        # row c: the weights after a member has left cluster c
        left = jnp.maximum(sizes - jnp.eye(sizes.shape[0], dtype=sizes.dtype), 0)
        log_left, log_empty_left = jax.vmap(
            lambda s: log_cluster_weights(s, alpha, num_components)
        )(left)

        def one_row(ordering: Array) -> Array:
            return log_cluster_likelihood(ordering[None], draw["center"], draw["concentration"])[0]

        by_row = jax.lax.map(one_row, orderings, batch_size=batch)
        of_old = jax.nn.logsumexp(log_left[labels] + by_row[row_index], axis=-1)
        of_new = log_empty_left[labels] + log_one[row_index]
        return jnp.logaddexp(of_old, of_new) - jnp.log(sizes.sum() - 1 + alpha)

    return jax.lax.map(one_draw, draws)


def log_cluster_weights(
    sizes: Array, alpha: Array, num_components: int | None
) -> tuple[Array, Array]:
    """Unnormalised log weights of the occupied clusters, and of all empty ones together.

    :param sizes: cluster sizes of one draw, shape ``(C,)``.
    :return: shapes ``(C,)``, -inf for an empty slot, and ``()``.
    """
    occupied = sizes > 0
    if num_components is None:
        weight, log_empty = sizes.astype(alpha.dtype), jnp.log(alpha)
    else:
        share = alpha / num_components
        weight = sizes + share
        log_empty = jnp.log(share * (num_components - occupied.sum()))
    return jnp.where(occupied, jnp.log(jnp.where(occupied, weight, 1)), -jnp.inf), log_empty


def log_cluster_likelihood(orderings: Array, center: Array, theta: Array) -> Array:
    """Log likelihood of lists under the clusters of one draw.

    :param orderings: padded lists, shape ``(rows, T)``.
    :param center: shape ``(C, n)``.
    :param theta: shape ``(C, T)``.
    :return: shape ``(rows, C)``.
    """
    num_items, num_stages = center.shape[-1], theta.shape[-1]
    log_normalizer = log_psi(theta, max_codes(num_items, num_stages))  # once for each cluster
    codes = stage_codes(orderings[:, None, :], inverse_ordering(center))
    by_stage = -theta * codes - log_normalizer
    return jnp.sum(jnp.where(orderings[:, None, :] >= 0, by_stage, 0.0), axis=-1)


@partial(jax.jit, static_argnames="num_stages")
def stage_orderings(orderings: ArrayLike, num_stages: int) -> Array:
    """Truncate or pad lists to ``num_stages`` places.

    :param orderings: padded lists, shape ``(rows, T)``.
    :return: int32, shape ``(rows, num_stages)``.
    """
    orderings = jnp.asarray(orderings, jnp.int32)[:, :num_stages]
    missing = num_stages - orderings.shape[1]
    return jnp.pad(orderings, ((0, 0), (0, missing)), constant_values=-1)


@partial(jax.jit, static_argnames="num_items")
def log_one_ranking(lengths: ArrayLike, num_items: int) -> Array:
    """Log marginal of one list under an empty cluster: ``log (n-t)!/n!`` for every prior of θ."""
    left = num_items - jnp.asarray(lengths)
    return gammaln(left + 1.0) - gammaln(num_items + 1.0)


def _all_but_one(x: Array) -> Array:
    """For each entry, the log sum of exponentials of all others, computed without subtraction."""
    nothing = jnp.full(1, -jnp.inf, x.dtype)
    before = jax.lax.cumlogsumexp(x)
    after = jax.lax.cumlogsumexp(x, reverse=True)
    return jnp.logaddexp(
        jnp.concatenate([nothing, before[:-1]]), jnp.concatenate([after[1:], nothing])
    )


def pointwise_plackett_luce(
    samples: dict[str, Any],
    rankings: Rankings,
    num_new_clusters: int = 50,
    which: np.ndarray | None = None,
) -> np.ndarray:
    """:func:`pointwise_log_likelihood` for the kernels whose samples are weights.

    :param num_new_clusters: the number of new clusters, drawn from the prior, from which the
        probability of a list in one of them is estimated for each draw of ``DPPlackettLuceGibbs``.
        The smaller, the more the values of rankings that fit no other cluster scatter.
    :param which: as for :func:`pointwise_log_likelihood`.
    """
    if "unseen_weight" in samples:
        rankings = rankings.of_listed_items()
    names = ("weights", "unseen_weight", "cluster_sizes", "assignments", "alpha", *NEW_CLUSTERS)
    chains, draws = np.shape(samples["log_joint"])
    rows, row_index, labels = _some(samples.get("assignments"), rankings, which)
    if labels is not None:
        samples = {**samples, "assignments": labels}
    flat = {
        name: np.reshape(np.asarray(samples[name]), (chains * draws, *np.shape(samples[name])[2:]))
        for name in names
        if name in samples
    }
    orderings, offered = np.asarray(rankings.orderings)[rows], rankings.choice_sets
    offered = None if offered is None else np.asarray(offered)[rows]
    key = jax.random.key(0)
    values = _pointwise_weights(key, flat, orderings, offered, row_index, num_new_clusters)
    return np.asarray(values).reshape(chains, draws, -1)


@partial(jax.jit, static_argnames="num_new_clusters")
def _pointwise_weights(
    key: Array,
    draws: dict[str, Array],
    orderings: Array,
    offered: Array | None,
    rows: Array,
    num_new_clusters: int,
) -> Array:
    def one_draw(inputs: tuple[Array, dict[str, Array]]) -> Array:
        key, draw = inputs
        table = log_plackett_luce_likelihood(draw, orderings, offered)
        if "assignments" not in draw:
            return table[0, rows]
        by_cluster = table[:, rows]
        labels, sizes = draw["assignments"].astype(jnp.int32), draw["cluster_sizes"]
        own = jnp.arange(sizes.shape[0])[:, None] == labels
        others = sizes[:, None] - own
        if "phi" in draw:
            of_row = log_in_new_cluster(key, draw, orderings, offered, num_new_clusters)
            log_new = of_row[rows]
            log_shares = jnp.where(others > 0, jnp.log(jnp.maximum(others, 1)), -jnp.inf)
            old = jax.nn.logsumexp(log_shares + by_cluster, axis=0)
            total = jnp.logaddexp(old, jnp.log(draw["gamma"]) + log_new)
            return total - jnp.log(sizes.sum() - 1 + draw["gamma"])
        log_shares = jnp.log(others + draw["alpha"] / sizes.shape[0])
        total = jax.nn.logsumexp(log_shares + by_cluster, axis=0)
        return total - jnp.log(sizes.sum() - 1 + draw["alpha"])

    keys = jax.random.split(key, len(draws["weights"]))
    return jax.lax.map(one_draw, (keys, draws))


def log_in_new_cluster(
    key: Array, draw: Mapping[str, Array], orderings: Array, offered: Array | None, size: int
) -> Array:
    """Log probability of lists in a new cluster of ``DPPlackettLuceGibbs``, shape ``(rows,)``.

    It has no closed form, so it is the mean over ``size`` clusters drawn from the prior given the
    root, eq. (19) of Caron, Teh & Murphy (2014).

    :param draw: one draw, with the sites ``NEW_CLUSTERS``.
    """
    key_counts, key_weights = jax.random.split(key)
    mean = draw["phi"] * jnp.append(draw["root_weights"], draw["root_unseen_weight"])
    counts = jax.random.poisson(key_counts, mean, (size, len(mean))).astype(mean.dtype)
    shapes = counts.at[:, -1].add(draw["alpha"])
    log_weights = jax.random.loggamma(key_weights, jnp.maximum(shapes, 1e-30))
    log_weights = jnp.where(shapes > 0, log_weights, -jnp.inf)
    weights = jax.nn.softmax(log_weights, axis=-1)  # the rate is the same for all
    new = {"weights": weights[:, :-1], "unseen_weight": weights[:, -1]}
    log_p = log_plackett_luce_likelihood(new, orderings, offered)
    return jax.nn.logsumexp(log_p, axis=0) - jnp.log(size)


def log_plackett_luce_likelihood(
    draw: Mapping[str, Array], orderings: Array, offered: Array | None
) -> Array:
    """Log probability of every row in every component of one draw, shape ``(C, rows)``.

    :param draw: with ``weights``, and ``unseen_weight`` if there is one, which sum to 1.
    """
    weights = jnp.atleast_2d(draw["weights"])
    pool = jnp.atleast_1d(draw["unseen_weight"]) if "unseen_weight" in draw else None
    offered = None if offered is None else jnp.asarray(offered)
    choices = as_choices(jnp.asarray(orderings), offered, weights.shape[1], pool is not None)
    return log_choice_likelihoods(choices, weights, pool, jnp.array(len(weights)))
