"""Checks and common views of the draws that the summaries take."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from numpyro_rankings.rankings import Rankings, check_rankings

_CODES_AT_ONCE = 2**24  # entries of the largest array: T² for each list and cluster


def check_draws(samples: Any) -> None:
    """Raise an error unless the samples are a dictionary with at least one draw."""
    if not isinstance(samples, Mapping):
        raise TypeError(
            "samples must be a dictionary as returned by mcmc.get_samples(); got "
            f"{type(samples).__name__}"
        )
    if any(np.size(value) == 0 for value in samples.values()):
        raise ValueError("there are no draws in the samples")


def named_as_by_kernel(
    samples: Mapping[str, Any], sites: Mapping[str, str] | None
) -> Mapping[str, Any]:
    """Return the samples of a block under the names that the kernel itself gives its sites.

    The sizes of the clusters, which a block does not return, are counted.

    :param sites: as for the kernel: names in the model by the kernel's names.
    """
    if sites is None:
        return samples
    check_draws(samples)
    missing = [name for name in sites.values() if name not in samples]
    if missing:
        raise ValueError(f"the samples have no site {missing[0]!r}; they have {', '.join(samples)}")
    named = {name: samples[own] for name, own in sites.items()}
    if "assignments" not in named or not {"center", "weights"} & set(named):
        raise ValueError("sites must name the assignments, and the centers or the weights")
    return with_cluster_sizes(named)


def with_cluster_sizes(named: dict[str, Any]) -> dict[str, Any]:
    """Return the samples of a block, by the kernel's names, with the sizes of the clusters."""
    clusters = next((named[name] for name in ("center", "weights") if name in named), None)
    if clusters is None or "assignments" not in named:
        return named
    labels = np.asarray(named["assignments"])
    slots = np.shape(clusters)[labels.ndim - 1]
    flat = labels.reshape(-1, labels.shape[-1])
    sizes = np.stack([np.bincount(x, minlength=slots) for x in flat]).astype(np.int32)
    return {**named, "cluster_sizes": sizes.reshape(*labels.shape[:-1], slots)}


def check_samples(samples: Mapping[str, Any]) -> None:
    """Raise an error unless the samples are those of a kernel of rankings."""
    check_draws(samples)
    needed = ("assignments", "center", "concentration", "cluster_sizes")
    if {"assignments", "alpha"} <= set(samples) and not {"center", "weights"} & set(samples):
        raise ValueError(
            "the samples are those of a kernel of partitions: for the clusters of rankings pass "
            "the run instead, or family=; for those of other points use partition_profiles"
        )
    if "weights" not in samples and not set(needed) <= set(samples):
        raise ValueError(
            "samples must be those of a Mallows or Plackett–Luce kernel, mcmc.get_samples(): "
            f"these have {', '.join(map(str, samples)) or 'no entries'}"
        )


def check_fitted(num_rankings: int | None, num_items: int, rankings: Any) -> None:
    """Raise an error if the numbers of rankings or of items are not those that were fitted.

    :param num_rankings: None if the draws do not hold it.
    """
    check_rankings(rankings)
    fitted = rankings.num_rankings if num_rankings is None else num_rankings
    if (fitted, num_items) != (rankings.num_rankings, rankings.num_items):
        raise ValueError(
            f"the run was of {fitted} rankings of {num_items} items; these are "
            f"{rankings.num_rankings} of {rankings.num_items}"
        )


def fitted_items(draws: Mapping[str, np.ndarray], rankings: Rankings) -> Rankings:
    """The rankings restricted to the items that the draws describe.

    :raises ValueError: if the numbers of rankings or of items are not those that were fitted.
    """
    check_rankings(rankings)
    if "unseen_weight" in draws:
        rankings = rankings.of_listed_items()
    of_items = draws["weights" if "weights" in draws else "center"].shape[-1]
    size = draws["assignments"].shape[-1] if "assignments" in draws else None
    check_fitted(size, of_items, rankings)
    return rankings


def flatten_chains(samples: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Concatenate the chains, if the samples are grouped by chain; the leading axis is ``D``."""
    samples = {name: np.asarray(value) for name, value in samples.items()}
    if samples["assignments" if "assignments" in samples else "weights"].ndim == 2:
        return samples
    return {name: x.reshape(-1, *x.shape[2:]) for name, x in samples.items()}


def occupied_slots(samples: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of the clusters, without the slots that no draw uses."""
    sizes = np.asarray(samples["cluster_sizes"])
    used = sizes.reshape(-1, sizes.shape[-1]).any(0)
    last = int(np.flatnonzero(used)[-1]) + 1
    names = ("center", "concentration", "cluster_sizes")
    axis = sizes.ndim - 1
    return {name: np.take(samples[name], range(last), axis=axis) for name in names}


def batch_of_rows(center_shape: tuple[int, ...], num_stages: int, num_rows: int) -> int:
    """Number of rows to score at once, so that their stage codes take a few tens of MB."""
    per_row = max(1, center_shape[-2] * num_stages**2)
    return int(np.clip(_CODES_AT_ONCE // per_row, 1, num_rows))
