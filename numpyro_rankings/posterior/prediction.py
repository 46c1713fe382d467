"""Predictive probability of new points under the partition models."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.components.family import AugmentedFamily, Family, num_points, with_auxiliary
from numpyro_rankings.components.points import DataPoints, as_points
from numpyro_rankings.infer.ddcrp.mixture import DDCRPGibbs
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import PartitionKernel
from numpyro_rankings.links.decays import Decay
from numpyro_rankings.links.distances import as_neighbors, check_distances
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.sums import count_by_label, scatter_add, sum_by_label

__all__ = ["log_predictive_of_points"]


def log_predictive_of_points(
    kernel: PartitionKernel | DDCRPGibbs,
    samples: Mapping[str, Any],
    data: Any,
    new_data: Any,
    distances: Any = None,
    *,
    key: Array | None = None,
    num_parameters: int = 100,
) -> Array:
    r"""
    Log predictive probability of each new point by itself, ``(M,)``, averaged over the draws.

    Under a Chinese restaurant or Pitman–Yor process, with K clusters in a draw,

    .. math:: p(x_{new} \mid x, c) = \frac{\sum_k (n_k - d)\, p(x_{new} \mid x_k)
        + (α + d K)\, p(x_{new})}{α + N}.

    Under a distance dependent process new points come after the fitted ones, none of which can link
    to them. The draws are then the same with and without the new points, and [1, eq. 8]

    .. math:: p(x_{new} \mid x, c) = \frac{\sum_j f(d_{new,j})\, p(x_{new} \mid x_{z(j)})
        + α\, p(x_{new})}{α + \sum_j f(d_{new,j})}.

    If the other points could link to new ones, the positions of the new points change the clusters.
    Then fit with their distances: call ``mcmc.run(key, data, distances)`` with more distances than
    data, where the last points have unknown values. Without ``distances`` this function predicts
    these points, each from the others of its cluster.

    :param kernel: the kernel that was run.
    :param samples: ``mcmc.get_samples()``.
    :param data: the fitted data of N points.
    :param new_data: data of M points, in the same form.
    :param distances: for a distance dependent process, (M, N), from each new point to the fitted
        ones, or :class:`~numpyro_rankings.links.distances.SparseDistances` to some of them.
    :param key: a JAX random key for families with auxiliary variables, by default always the same.
    :param num_parameters: for such families, like
        :class:`~numpyro_rankings.components.PlackettLuceWeights`, the probability of a point in a
        cluster has no closed form: it is the mean over this number of draws of the parameters of
        the cluster, in each draw of the run.
    :raises ValueError: if the data do not match the kernel or the draws.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.

    .. doctest::

       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings.components import GaussianMean
       >>> from numpyro_rankings.infer import CollapsedGibbs
       >>> x = jnp.array([[-1.5], [-1.4], [-1.2], [2.1], [2.5], [2.8]])
       >>> kernel = CollapsedGibbs(GaussianMean(prior_scale=3.0, noise_scale=0.3), max_clusters=6)
       >>> mcmc = MCMC(kernel, num_warmup=100, num_samples=500, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), x)
       >>> new = log_predictive_of_points(kernel, mcmc.get_samples(), x, [[-1.3], [0.5]])
       >>> bool(new[0] > new[1] + 2)
       True
    """
    check_whole("num_parameters", num_parameters)
    key = jax.random.key(0) if key is None else key
    by_draw = _by_draw(kernel, samples, data, new_data, distances, key, num_parameters)
    return _mean_in_logs(by_draw)


@jax.jit
def _mean_in_logs(by_draw: Array) -> Array:
    return jax.nn.logsumexp(by_draw, axis=0) - jnp.log(len(by_draw))


def _by_draw(
    kernel: PartitionKernel | DDCRPGibbs,
    samples: Mapping[str, Any],
    data: Any,
    new_data: Any,
    distances: Any,
    key: Array | None = None,
    num_parameters: int = 1,
) -> Array:
    """Log predictive probabilities for each draw, (D, M)."""
    _check_kernel(kernel)
    family = kernel.family
    site = [family.site] if isinstance(family, AugmentedFamily) else []
    _check_samples(samples, isinstance(kernel, DDCRPGibbs), site)
    for part in (data, new_data):
        family.check(part)
    labels = np.asarray(samples["assignments"])
    labels = labels.reshape(-1, labels.shape[-1])
    slots = int(labels.max()) + 1
    draws = {
        "labels": labels.astype(np.int32),
        "alpha": jnp.asarray(samples["alpha"], float).reshape(-1),
    }
    if distances is not None and "decay_scale" in samples:
        draws["scale"] = jnp.asarray(samples["decay_scale"], float).reshape(-1)
    for name in site:
        x = np.asarray(samples[name])
        _check_size(x.shape[-2], family.size(data))
        draws[name] = jnp.asarray(x.reshape(-1, *x.shape[-2:]), float)
        draws["key"] = jax.random.split(jax.random.key(0) if key is None else key, len(labels))

    @jax.jit
    def each(draws: dict, data: Any, new_data: Any) -> Array:
        points = as_points(family, with_auxiliary(family, data, {k: draws[k][0] for k in site}))
        if isinstance(family, AugmentedFamily):
            size = family.size(new_data)
            log_given = _given_auxiliary(family, data, new_data, slots, points.size, num_parameters)
        else:
            size, log_given = _given_statistics(family, points, new_data, slots)
        sizes = _Sizes(labels.shape[-1], points.size, size)
        of_draw = _density_under(kernel, sizes, distances, slots)
        return jax.lax.map(lambda d: of_draw(d, *log_given(d)), draws)

    return each(draws, _as_arrays(data), _as_arrays(new_data))


# Log probability of each point in one draw, given each cluster, (M, C), and given none, (M,).
_LogGiven = Callable[[dict], tuple[Array, Array]]


def _given_statistics(
    family: Family, points: DataPoints, new_data: Any, slots: int
) -> tuple[int, _LogGiven]:
    """Return the number of new points, and their log probabilities under sums of statistics."""
    new = family.statistics(new_data)
    for part in (points.statistics, new):
        _check_form(points.empty, part)

    def log_given(draw: dict) -> tuple[Array, Array]:
        known = draw["labels"][: points.size]
        clusters = family.of_clusters(points.statistics, known, slots)
        by_cluster = family.log_predictive(
            jax.tree.map(lambda x: x[None], clusters), jax.tree.map(lambda x: x[:, None], new)
        )
        return by_cluster, family.log_predictive(points.empty, new)

    return num_points(new), log_given


def _given_auxiliary(
    family: AugmentedFamily, data: Any, new_data: Any, slots: int, size: int, num_parameters: int
) -> _LogGiven:
    """Return the log probabilities of new points under a family with auxiliary variables."""

    def log_given(draw: dict) -> tuple[Array, Array]:
        of_points = family.statistics(with_auxiliary(family, data, draw))
        # the last cluster is empty
        clusters = family.of_clusters(of_points, draw["labels"][:size], slots + 1)
        table = family.log_predictive_of_values(draw["key"], clusters, new_data, num_parameters)
        return table[:, :-1], table[:, -1]

    return log_given


def _as_arrays(data: Any) -> Any:
    """Data as a tree of arrays, where a plain list would be one of numbers."""
    return jax.tree.map(np.asarray, data, is_leaf=lambda x: type(x) in (list, tuple))


class _Sizes(NamedTuple):
    """Numbers of points: **labelled** in the draws, **fitted** with known values, and **new**."""

    labelled: int
    fitted: int
    new: int


def _density_under(
    kernel: PartitionKernel | DDCRPGibbs, sizes: _Sizes, distances: Any, slots: int
) -> Callable[[dict, Array, Array], Array]:
    """Return the predictive density as a function of a draw and what ``_LogGiven`` returns."""
    if not isinstance(kernel, DDCRPGibbs):
        if distances is not None:
            raise ValueError("distances are for DDCRPGibbs only")
        _check_size(sizes.labelled, sizes.fitted)
        return partial(_of_restaurant, discount=kernel.discount, slots=slots)
    if distances is None:
        if sizes.labelled == sizes.fitted:
            raise ValueError(
                "the distances from new points to the fitted ones are needed: distances=, (M, N)"
            )
        _check_size(sizes.labelled, sizes.fitted + sizes.new)
        return _of_awaited
    _check_size(sizes.labelled, sizes.fitted)
    assert kernel.decay is not None
    check_distances(distances, sizes.new, sizes.fitted)
    return partial(_of_links, distances=distances, decay=kernel.decay, slots=slots)


def _check_kernel(kernel: Any) -> None:
    if not isinstance(kernel, PartitionKernel | DDCRPGibbs):
        raise ValueError(f"kernel must be a kernel of partitions or DDCRPGibbs, got {kernel!r}")
    if kernel.is_block:
        raise ValueError("the kernel is a block of a user's model, which is unknown here")


def _check_samples(samples: Mapping[str, Any], linked: bool, further: list[str]) -> None:
    needed = ["assignments", "alpha", *(["links"] if linked else []), *further]
    if not isinstance(samples, Mapping) or not set(needed) <= set(samples):
        raise ValueError(f"samples must be those of the kernel, with {', '.join(needed)}")
    if not linked and "links" in samples:
        raise ValueError("samples with links are those of DDCRPGibbs")
    labels, alpha = np.asarray(samples["assignments"]), np.asarray(samples["alpha"])
    if labels.dtype.kind not in "iu" or labels.shape[:-1] != alpha.shape or labels.min() < 0:
        raise ValueError(
            f"assignments must be labels from 0, (…, N), and alpha (…), got {labels.shape} of "
            f"{labels.dtype} and {alpha.shape}"
        )
    if not np.all((alpha > 0) & (alpha < np.inf)):
        raise ValueError("alpha must be positive in all draws")


def _check_form(cluster: Any, points: Any) -> None:
    """Raise an error for points of another dimension, which would be broadcast silently."""
    if isinstance(points, type(cluster)):  # documents as lists of words differ in type
        shapes = [
            (np.shape(x), np.shape(y)[1:])
            for x, y in zip(jax.tree.leaves(cluster), jax.tree.leaves(points), strict=True)
        ]
        if any(x != y for x, y in shapes):
            raise ValueError(f"the data and the new points differ in their dimension: {shapes}")


def _check_size(fitted: int, given: int) -> None:
    if fitted != given:
        raise ValueError(f"the draws are of {fitted} points, and {given} are given")


def _of_restaurant(
    draw: dict, log_given: Array, log_alone: Array, discount: float, slots: int
) -> Array:
    prior = PartitionPrior(draw["alpha"], discount=jnp.asarray(discount))
    sizes = count_by_label(draw["labels"], slots)
    log_seats = jnp.append(prior.log_join(sizes), prior.log_open(jnp.sum(sizes > 0)))
    log_densities = jnp.concatenate([log_given, log_alone[:, None]], axis=1)
    # a cluster without members has weight 0, whatever its density
    terms = jnp.where(log_seats > -jnp.inf, log_densities + log_seats, -jnp.inf)
    return jax.nn.logsumexp(terms, axis=1) - jnp.log(draw["alpha"] + draw["labels"].shape[0])


def _of_awaited(draw: dict, log_given: Array, log_alone: Array) -> Array:
    """Densities of the last points of a draw, given the other points of their clusters."""
    labels = draw["labels"][-len(log_alone) :]
    return jnp.take_along_axis(log_given, labels[:, None], axis=1)[:, 0]


def _of_links(
    draw: dict, log_given: Array, log_alone: Array, distances: Any, decay: Decay, slots: int
) -> Array:
    """Densities of new points, summed over their links to other points, eq. (8)."""
    neighbors, values = as_neighbors(distances)
    weights, labels = decay(values, draw.get("scale")), draw["labels"]
    if neighbors is None:
        joins = sum_by_label(weights.T, labels, slots).T
    else:
        weights = jnp.where(neighbors >= 0, weights, 0.0)
        row = jnp.arange(len(weights))[:, None]
        joins = scatter_add(jnp.zeros((len(weights), slots)), (row, labels[neighbors]), weights)
    some = joins > 0
    log_joins = jnp.where(some, jnp.log(jnp.where(some, joins, 1.0)) + log_given, -jnp.inf)
    log_opens = (jnp.log(draw["alpha"]) + log_alone)[:, None]
    log_sum = jax.nn.logsumexp(jnp.concatenate([log_joins, log_opens], axis=1), axis=1)
    return log_sum - jnp.log(draw["alpha"] + weights.sum(1))
