"""Relabel draws so that a cluster has the same number in all of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.families import sites_of_clusters
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import as_draws, canonical_labels, match_clusters
from numpyro_rankings.posterior.point_estimates import reference_partition

__all__ = ["RelabeledSamples", "relabel_samples"]


class RelabeledSamples(NamedTuple):
    """Draws in which the clusters of a reference partition come first, in its order.

    :param samples: all samples given, with the cluster axes permuted and ``K + U`` slots long: the
        ``K`` clusters of the reference partition, then the other clusters of the draw in order of
        first use. ``U`` is the largest number of other clusters in a draw. If a draw has no such
        cluster, the entry is NaN, or -1 in ``center`` and 0 in ``cluster_sizes``.
    :param found: whether a draw has the cluster, shape ``(D, K + U)``, or
        ``(chains, draws, K + U)`` for samples by chain.
    :param num_clusters: ``K``.
    """

    samples: dict[str, np.ndarray]
    found: np.ndarray
    num_clusters: int


def relabel_samples(samples: Mapping[str, Any], reference: Any = None) -> RelabeledSamples:
    """Number the clusters of every draw after those of one partition.

    Labels switch between draws and chains, so the mean of ``concentration[k]`` as drawn is
    meaningless. After relabeling, cluster ``k`` of each draw is the one that
    :func:`~numpyro_rankings.posterior.partitions.match_clusters` pairs with cluster ``k`` of the
    reference partition: by greatest overlap, over all clusters at once. The means over the draws
    that have the cluster, ``found``, equal those of the cluster profiles. ArviZ does not skip
    NaN, so use only the draws where the cluster is found, or a cluster that all draws have.
    If two clusters overlap so much that draws confuse them, they keep separate numbers without
    being distinct: look at the ``presence`` of the profiles, which says how often the members
    are the same, before interpreting them.

    :param samples: ``mcmc.get_samples()`` of a kernel of this package with ``assignments``, grouped
        by chain or not.
    :param reference: labels ``0..K-1``, shape ``(N,)``, or a result of
        :func:`~numpyro_rankings.reference_partition`; by default the reference partition of all
        draws.
    :raises ValueError: if there are no ``assignments``, or ``reference`` is of other points.

    .. doctest::

       >>> draws = {"assignments": [[0, 0, 1], [0, 1, 1]], "cluster_sizes": [[2, 1], [1, 2]]}
       >>> found = relabel_samples(draws, reference=[1, 1, 0])
       >>> found.samples["assignments"].tolist(), found.samples["cluster_sizes"].tolist()
       ([[1, 1, 0], [1, 0, 0]], [[1, 2], [2, 1]])
    """
    draws = Draws.of(samples)
    if draws.labels is None:
        raise ValueError("the samples have no assignments: one population needs no relabeling")
    given = samples if isinstance(samples, Mapping) else draws.samples
    arrays = {name: np.asarray(value) for name, value in given.items()}
    lead = arrays["assignments"].shape[:-1]
    labels = as_draws(arrays["assignments"])
    canonical = canonical_labels(labels)  # so that ties are broken the same way for any labels
    chosen = reference_partition(canonical, reference).labels
    num_clusters = int(chosen.max()) + 1
    new_slot, old_slot = _slots(labels, canonical, chosen, num_clusters)
    moving = sites_of_clusters() & set(arrays)
    of_shares = {"shares", "share_effects"} & set(arrays) if draws.shares is not None else set()
    for name in moving | of_shares:
        by_draw = arrays[name].reshape(len(labels), *arrays[name].shape[len(lead) :])
        moved = _permute(by_draw, old_slot, 0 if name == "cluster_sizes" else -1)
        arrays[name] = moved.reshape(*lead, *moved.shape[1:])
    relabeled = np.take_along_axis(new_slot, canonical, axis=1)
    arrays["assignments"] = relabeled.reshape(*lead, -1).astype(np.int32)
    return RelabeledSamples(arrays, (old_slot >= 0).reshape(*lead, -1), num_clusters)


def _slots(
    labels: np.ndarray, canonical: np.ndarray, reference: np.ndarray, num_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """New slot of each cluster in order of first use, (D, C), and old one of each new, (D, K + U).

    They are -1 where a draw has no such cluster.
    """
    matched = match_clusters(canonical, reference)
    is_cluster = np.arange(matched.shape[1]) <= canonical.max(axis=1, keepdims=True)
    is_other = is_cluster & (matched < 0)
    new_slot = np.where(is_other, num_clusters + np.cumsum(is_other, axis=1) - 1, matched)
    old_slot = np.full((len(labels), max(int(new_slot.max()) + 1, num_clusters)), -1)
    draw = np.arange(len(labels))[:, None]
    old_slot[draw, np.take_along_axis(new_slot, canonical, axis=1)] = labels
    return new_slot, old_slot


def _permute(values: np.ndarray, old_slot: np.ndarray, missing: int) -> np.ndarray:
    """Permute the cluster axis, which is the second."""
    index = old_slot.reshape(*old_slot.shape, *[1] * (values.ndim - 2))
    moved = np.take_along_axis(values, np.maximum(index, 0), axis=1)
    return np.where(index >= 0, moved, np.nan if values.dtype.kind == "f" else missing).astype(
        values.dtype
    )
