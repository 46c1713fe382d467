"""Quantities of the draws that do not depend on the labels, so that R-hat and ESS have a meaning.

To diagnose a further one, return it here, and add its name to ``LABEL_FREE_QUANTITIES`` in
``words``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numpyro_rankings.families.plackett_luce import normalised_entropy
from numpyro_rankings.infer.base import log_joint_of
from numpyro_rankings.posterior import borda_ordering, kendall_distance
from numpyro_rankings.posterior.partitions import partition_entropy
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.words import LABEL_FREE_QUANTITIES

_SIZES_SHOWN = 5  # of the largest clusters
_WEIGHTS_SHOWN = 5


def label_free_quantities(
    samples: Mapping[str, Any], rankings: Rankings | None, num_components: int | None = None
) -> dict[str, np.ndarray]:
    """Return the quantities of each draw, by name.

    :param samples: of a kernel of this package, each (chains, draws, …).
    :param rankings: that were fitted; None for kernels of partitions.
    :param num_components: of the kernel.
    :return: arrays (chains, draws) or (chains, draws, K): those of ``LABEL_FREE_QUANTITIES`` that
        there are, and ``population_weights``, (chains, draws, items), of which :func:`as_shown`
        chooses some.
    """
    found = {
        name: np.asarray(samples[name])
        for name in LABEL_FREE_QUANTITIES
        if name in samples and np.ndim(samples[name]) == 2
    }
    if "log_joint" in samples:
        found["log_joint"] = log_joint_of(samples)
    if "weights" in samples:
        found |= _of_weights(samples)
    elif "center" in samples:
        assert rankings is not None
        sizes, center = np.asarray(samples["cluster_sizes"]), np.asarray(samples["center"])
        found["kendall_to_reference"] = _kendall(sizes, center, rankings)
        if num_components == 1:
            found["population_concentration"] = np.asarray(samples["concentration"])[:, :, 0]
            found.pop("alpha", None)  # has no effect
    if "cluster_sizes" in samples:
        sizes = np.asarray(samples["cluster_sizes"])
        found["largest_sizes"] = _largest_first(sizes)
        found["partition_entropy"] = partition_entropy(sizes)
    elif "assignments" in samples:
        found |= _of_labels(np.asarray(samples["assignments"]))
    return found


def as_shown(
    quantities: Mapping[str, np.ndarray], items: Sequence[str]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Keep the sizes that are ever positive, and the weights that are largest on average.

    :param items: names of all items.
    :return: the quantities with ``top_weights``, (chains, draws, K), instead of
        ``population_weights``, and the names of the items of these.
    """
    quantities, top_items = dict(quantities), []
    if "largest_sizes" in quantities:
        sizes = quantities["largest_sizes"]
        quantities["largest_sizes"] = sizes[..., sizes.any((0, 1))]
    if "population_weights" in quantities:
        population = quantities.pop("population_weights")
        top = np.argsort(-population.mean((0, 1)), kind="stable")[:_WEIGHTS_SHOWN]
        quantities["top_weights"] = population[..., top]
        top_items = [str(items[i]) for i in top]
    return quantities, top_items


def _of_weights(samples: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the quantities of the weights of a Plackett–Luce model, averaged over components."""
    population = np.asarray(samples["weights"])
    if "assignments" in samples:
        sizes = np.asarray(samples["cluster_sizes"])
        shares = sizes / sizes.sum(-1, keepdims=True)
        population = np.einsum("abc,abci->abi", shares, population)
    return {
        "population_weights": population,
        "population_entropy": normalised_entropy(population),
    }


def _of_labels(labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return the quantities of partitions, (chains, draws, N)."""
    largest_first = np.zeros((*labels.shape[:2], _SIZES_SHOWN), np.int64)
    entropy = np.zeros(labels.shape[:2])
    for k in np.ndindex(entropy.shape):  # one draw at a time, without a D × N × C array
        sizes = np.bincount(labels[k])
        largest = _largest_first(sizes)
        largest_first[k][: len(largest)] = largest
        entropy[k] = partition_entropy(sizes)
    return {"largest_sizes": largest_first, "partition_entropy": entropy}


def _largest_first(sizes: np.ndarray) -> np.ndarray:
    """Return the largest few of the sizes of clusters, (…, C)."""
    return -np.sort(-sizes, axis=-1)[..., :_SIZES_SHOWN]


def _kendall(sizes: np.ndarray, center: np.ndarray, rankings: Rankings) -> np.ndarray:
    """Return the mean Kendall distance of the centers of the rankings from the Borda order."""
    occupied = sizes > 0
    distance = np.zeros(sizes.shape)
    distance[occupied] = kendall_distance(center[occupied], borda_ordering(rankings))
    return (distance * sizes).sum(-1) / sizes.sum(-1)
