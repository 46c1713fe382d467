"""Quantities of the draws that do not depend on the labels, so that R-hat and ESS have a meaning.

To diagnose a further one, return it here, and add its name to ``LABEL_FREE_QUANTITIES`` in
``words``.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from numpyro_rankings.infer.base import log_joint_of
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import partition_entropy
from numpyro_rankings.words import LABEL_FREE_QUANTITIES

_SIZES_SHOWN = 5  # of the largest clusters
_WEIGHTS_SHOWN = 5


def label_free_quantities(draws: Draws) -> dict[str, np.ndarray]:
    """Return the quantities of each draw, (chains, draws) or (chains, draws, K), by name.

    They are those of ``LABEL_FREE_QUANTITIES`` that there are, and those of the family, such as
    ``population_weights``, (chains, draws, items), of which :func:`as_shown` chooses some.
    """
    samples, sizes = draws.samples, draws.sizes
    quantities = {
        name: samples[name]
        for name in LABEL_FREE_QUANTITIES
        if name in samples and (samples[name].ndim == 2 or name == "item_effects")
    }
    if "log_joint" in samples:
        quantities["log_joint"] = log_joint_of(samples)
    if draws.family is not None:
        of_clusters = sizes if draws.is_mixture else None
        quantities |= draws.family.quantities(samples, of_clusters, draws.stand_in)
        if draws.labels is not None and not draws.is_mixture:
            quantities.pop("alpha", None)  # has no effect
    if sizes is not None:
        quantities["largest_sizes"] = _largest_first(sizes)
        quantities["partition_entropy"] = partition_entropy(sizes)
    elif draws.labels is not None:
        quantities |= quantities_of_labels(draws.labels)
    return quantities


def as_shown(
    quantities: Mapping[str, np.ndarray], items: Sequence[str]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Keep the sizes that are ever positive, and the weights that are largest on average.

    These are ``top_weights``, (chains, draws, K), and the names of their items are returned too.
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


def quantities_of_labels(labels: np.ndarray) -> dict[str, np.ndarray]:
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
