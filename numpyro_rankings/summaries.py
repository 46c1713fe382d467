"""Draws turned into answers: consensus orders, profiles of the clusters, predictions."""

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln, logsumexp
from numpy.typing import ArrayLike
from scipy.special import entr
from scipy.special import gammaln as gammaln_np
from scipy.special import logsumexp as logsumexp_np

from numpyro_rankings.datasets import Pool, seat_tokens
from numpyro_rankings.distributions import GeneralizedMallows, TopTPlackettLuce
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.codes import inverse_ordering, max_codes, stage_codes
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.partitions import as_draws, as_partition, match_clusters
from numpyro_rankings.point_estimates import reference_partition
from numpyro_rankings.rankings import Rankings, check_rankings

__all__ = [
    "ClusterProfile",
    "PartitionProfile",
    "PredictedItems",
    "WeightsProfile",
    "borda_ordering",
    "cluster_profiles",
    "cp_consensus",
    "kendall_distance",
    "log_predictive_density",
    "map_consensus",
    "membership_probability",
    "partition_profiles",
    "predict_items",
    "rank_probabilities",
]

_CODES_AT_ONCE = 2**24  # entries of the largest array made at once, where T² code tables count
_INTERVAL = (0.05, 0.95)


def as_orderings(orderings: ArrayLike) -> np.ndarray:
    """Draws of a full ordering, checked, (D, n).

    :param orderings: permutations of 0..n-1, shape ``(D, n)`` or ``(chains, draws, n)``.
    :raises ValueError: if they are anything else, or there are none.
    """
    found = np.asarray(orderings)
    if found.ndim not in (2, 3) or found.size == 0 or found.dtype.kind not in "iu":
        wrong = f"shape {found.shape} of {found.dtype}"
    else:
        found = found.reshape(-1, found.shape[-1])
        is_ordering = (np.sort(found, axis=1) == np.arange(found.shape[1])).all(1)
        if is_ordering.all():
            return found
        wrong = str(found[int(is_ordering.argmin())].tolist())
    raise ValueError(
        "orderings must be draws of a full ordering, (D, n), each a permutation of 0..n-1 (of a "
        f"cluster that they all have); got {wrong}"
    )


def kendall_distance(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Kendall distance: number of pairs of items that two orderings put the other way round.

    :param a: full orderings, shape ``(…, n)``.
    :param b: full orderings, shape ``(…, n)``; leading axes broadcast.
    :return: int64, shape ``(…)``.
    :raises ValueError: if they are not of the same items, each once.

    .. doctest::

       >>> int(kendall_distance([0, 1, 2], [2, 1, 0]))
       3
    """
    a, b = np.asarray(a), np.asarray(b)
    n = a.shape[-1] if a.ndim else 0
    if any(x.shape[-1:] != (n,) or (np.sort(x) != np.arange(n)).any() for x in (a, b)):
        raise ValueError(
            f"full orderings of the same items are needed, got shape {a.shape} and {b.shape}"
        )
    a, places = np.broadcast_arrays(a, np.argsort(b, axis=-1))
    places = np.take_along_axis(places, a, axis=-1)
    # One item at a time: no n × n array for each of many draws.
    inverted = [(places[..., i + 1 :] < places[..., i, None]).sum(-1) for i in range(a.shape[-1])]
    return np.sum(inverted, axis=0)


def borda_ordering(rankings: Rankings) -> np.ndarray:
    """Items by mean rank, an unlisted item counting as the mean of the places left over.

    :return: an ordering, int32, shape ``(n,)``; ties go to the item of lower index.
    """
    orderings, counts = np.asarray(rankings.orderings), np.asarray(rankings.counts, np.float64)
    n, listed = rankings.num_items, orderings >= 0
    lengths = listed.sum(1)
    unlisted_place = (lengths + n - 1) / 2
    places = np.arange(orderings.shape[1]) - unlisted_place[:, None]
    total = np.zeros(n)
    np.add.at(total, orderings[listed], (places * counts[:, None])[listed])
    return np.argsort(total, kind="stable").astype(np.int32)


def rank_probabilities(orderings: ArrayLike) -> np.ndarray:
    """Probability of each place for each item.

    :param orderings: draws of a full ordering, shape ``(D, n)`` or ``(chains, draws, n)``.
    :return: row ``i`` is item ``i``, column ``r`` is rank ``r + 1``; shape ``(n, n)``.
    :raises ValueError: if an ordering is none, such as that of a slot that is empty in a draw.
    """
    orderings = as_orderings(orderings)
    num_draws, n = orderings.shape
    cells = orderings.astype(np.int64) * n + np.arange(n)
    return np.bincount(cells.ravel(), minlength=n * n).reshape(n, n) / num_draws


def cp_consensus(orderings: ArrayLike) -> np.ndarray:
    """Cumulative-probability consensus, as in BayesMallows [1].

    First comes the item that is most often first, then, of the others, the one most often among
    the first two, and so on. Ties go to the better mean rank, then to the lower index.

    :param orderings: draws of a full ordering, shape ``(D, n)`` or ``(chains, draws, n)``.
    :return: an ordering, int32, shape ``(n,)``.
    :raises ValueError: as :func:`~numpyro_rankings.summaries.rank_probabilities`.

    **References:**

    1. Vitelli, V. et al. (2018), *Probabilistic preference learning with the Mallows rank
       model*, JMLR.

    .. doctest::

       >>> cp_consensus([[0, 1, 2], [0, 2, 1], [1, 2, 0]]).tolist()
       [0, 1, 2]
    """
    probabilities = rank_probabilities(orderings)
    within = np.cumsum(probabilities, axis=1)
    mean_rank = probabilities @ np.arange(len(probabilities))
    left = list(range(len(probabilities)))
    consensus = []
    for place in range(len(probabilities)):
        item = max(left, key=lambda i: (round(within[i, place], 12), -mean_rank[i], -i))
        left.remove(item)
        consensus.append(item)
    return np.array(consensus, np.int32)


def map_consensus(orderings: ArrayLike) -> tuple[np.ndarray, float]:
    """The ordering drawn most often, and how often.

    :param orderings: draws of a full ordering, shape ``(D, n)`` or ``(chains, draws, n)``.
    :return: an ordering, int32, shape ``(n,)``, and its share of the draws.
    :raises ValueError: as :func:`~numpyro_rankings.summaries.rank_probabilities`.
    """
    distinct, times = np.unique(as_orderings(orderings), axis=0, return_counts=True)
    best = int(times.argmax())
    return distinct[best].astype(np.int32), float(times[best] / times.sum())


class ClusterProfile(NamedTuple):
    """What the draws say about one cluster. Intervals hold 90% of the posterior.

    :param label: label of the cluster in the reference partition.
    :param presence: share of the draws in which the cluster is found.
    :param size: mean number of rankings.
    :param size_interval: ``(low, high)``.
    :param consensus: names of the items in the order of the CP consensus, best first.
    :param consensus_ordering: the same as item indices, shape ``(n,)``.
    :param map_consensus: names of the items in the center drawn most often.
    :param map_probability: share of the draws with that center.
    :param rank_mean: mean rank of each item, 1 = best, in item order, shape ``(n,)``.
    :param rank_interval: shape ``(n, 2)``.
    :param concentration: mean θ of each stage, shape ``(T,)``.
    :param concentration_interval: shape ``(T, 2)``.
    :param entropy: mean entropy of a list of ``T`` places from the cluster, in nats.
    :param agreement: 1 minus that entropy over the uniform's: 0 is chance, 1 is unanimous.
    """

    label: int
    presence: float
    size: float
    size_interval: tuple[float, float]
    consensus: tuple[str, ...]
    consensus_ordering: np.ndarray
    map_consensus: tuple[str, ...]
    map_probability: float
    rank_mean: np.ndarray
    rank_interval: np.ndarray
    concentration: np.ndarray
    concentration_interval: np.ndarray
    entropy: float
    agreement: float


class WeightsProfile(NamedTuple):
    """What the draws say about one cluster of Plackett–Luce weights, or the only population.

    Intervals hold 90% of the posterior.

    :param label: label of the cluster in the reference partition.
    :param presence: share of the draws in which the cluster is found.
    :param size: mean number of rankings.
    :param size_interval: ``(low, high)``.
    :param consensus: names of the items by their mean weight, largest first.
    :param consensus_ordering: the same as item indices, shape ``(K,)``.
    :param weights: mean weight of each item, in item order, shape ``(K,)``: the probability that it
        comes first.
    :param weights_interval: shape ``(K, 2)``.
    :param unseen_weight: mean weight of all items that no ranking lists, None if there are none.
    :param unseen_interval: ``(low, high)``.
    :param entropy: mean entropy of the weights over that of equal ones.
    :param agreement: 1 minus it: 0 if all items are alike, 1 if one always comes first.
    """

    label: int
    presence: float
    size: float
    size_interval: tuple[float, float]
    consensus: tuple[str, ...]
    consensus_ordering: np.ndarray
    weights: np.ndarray
    weights_interval: np.ndarray
    unseen_weight: float | None
    unseen_interval: tuple[float, float] | None
    entropy: float
    agreement: float


def flatten_chains(samples: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Samples with the chains, if there are any, laid end to end: leading axis ``D``."""
    samples = {name: np.asarray(value) for name, value in samples.items()}
    if samples["assignments" if "assignments" in samples else "weights"].ndim == 2:
        return samples
    return {name: x.reshape(-1, *x.shape[2:]) for name, x in samples.items()}


def check_draws(samples: Any) -> None:
    """Refuse what is no dictionary of draws, or of none."""
    if not isinstance(samples, Mapping):
        raise TypeError(
            "samples must be a dictionary, what mcmc.get_samples() returns; got "
            f"{type(samples).__name__}"
        )
    if any(np.size(value) == 0 for value in samples.values()):
        raise ValueError("there are no draws in the samples")


def check_samples(samples: Mapping[str, Any]) -> None:
    """Refuse what is not of a kernel of rankings."""
    check_draws(samples)
    needed = ("assignments", "center", "concentration", "cluster_sizes")
    if "weights" not in samples and not set(needed) <= set(samples):
        raise ValueError(
            "samples must be those of a Mallows or Plackett–Luce kernel, mcmc.get_samples(): "
            f"these have {', '.join(map(str, samples)) or 'nothing'}"
        )


def check_fitted(num_rankings: int | None, num_items: int, rankings: Any) -> None:
    """Refuse other rankings than were fitted, as far as their numbers tell.

    :param num_rankings: None if the draws do not tell.
    """
    check_rankings(rankings)
    fitted = rankings.num_rankings if num_rankings is None else num_rankings
    if (fitted, num_items) != (rankings.num_rankings, rankings.num_items):
        raise ValueError(
            f"the run was of {fitted} rankings of {num_items} items; these are "
            f"{rankings.num_rankings} of {rankings.num_items}"
        )


def fitted_items(draws: Mapping[str, np.ndarray], rankings: Rankings) -> Rankings:
    """The rankings with the items that the draws are of.

    :raises ValueError: if they are others than were fitted, as far as their numbers tell.
    """
    check_rankings(rankings)
    if "unseen_weight" in draws:
        rankings = rankings.of_listed_items()
    of_items = draws["weights" if "weights" in draws else "center"].shape[-1]
    size = draws["assignments"].shape[-1] if "assignments" in draws else None
    check_fitted(size, of_items, rankings)
    return rankings


def cluster_profiles(
    samples: Mapping[str, Any], rankings: Rankings, reference: Any = None
) -> list[Any]:
    """Describe the clusters of a reference partition over all draws.

    In every draw each cluster is found by greatest overlap with the reference, so that a cluster
    keeps its name although the labels of the draws switch.

    :param samples: ``mcmc.get_samples()`` of a kernel of this package, grouped by chain or not.
    :param rankings: what was fitted.
    :param reference: labels ``0..K-1``, shape ``(N,)``, or what
        :func:`~numpyro_rankings.reference_partition` has returned; by default that,
        the partition of least expected variation of information or, of very many rankings, the
        medoid draw.
    :return: one :class:`~numpyro_rankings.summaries.ClusterProfile` for each cluster, the largest
        (on average) first; of the Plackett–Luce kernels a
        :class:`~numpyro_rankings.summaries.WeightsProfile`, and only one if they fit one
        population.
    :raises ValueError: if a cluster of ``reference`` is found in no draw, or the draws are of
        other rankings or of another kernel.
    """
    check_samples(samples)
    draws = flatten_chains(samples)
    weighted = "weights" in draws
    rankings = fitted_items(draws, rankings)
    if "assignments" not in draws:
        return [_weights_profile(0, draws, None, rankings)]
    labels = reference_partition(draws["assignments"], reference).labels
    matched = match_clusters(draws["assignments"], labels)
    describe = _weights_profile if weighted else _profile
    profiles = []
    for k in np.unique(labels).tolist():
        if not np.any(matched == k):
            raise ValueError(
                f"cluster {k} of the reference partition is found in no draw: leave the reference "
                "out, or merge this cluster with another"
            )
        profiles.append(describe(k, draws, matched, rankings))
    return sorted(profiles, key=lambda profile: -profile.size)


class PartitionProfile(NamedTuple):
    """What the draws say about one cluster of points. Intervals hold 90% of the posterior.

    :param label: label of the cluster in the reference partition.
    :param presence: share of the draws in which the cluster is found.
    :param size: mean number of points.
    :param size_interval: ``(low, high)``.
    :param members: the points that it has in the reference partition.
    :param cohesion: mean probability that two of these share a cluster; of a single one, that it
        is alone.
    """

    label: int
    presence: float
    size: float
    size_interval: tuple[float, float]
    members: np.ndarray
    cohesion: float


def partition_profiles(assignments: ArrayLike, reference: Any = None) -> list[PartitionProfile]:
    """Describe the clusters of a reference partition over all draws, whatever was clustered.

    Clusters of the draws are found as in :func:`~numpyro_rankings.cluster_profiles`.

    :param assignments: labels ``0..C-1``, shape ``(D, N)``.
    :param reference: as there, and by default the same.
    :return: one for each cluster, the largest (on average) first; one that is found in no draw has
        size 0.
    """
    assignments = as_draws(assignments)
    reference = reference_partition(assignments, reference).labels
    matched = match_clusters(assignments, reference)
    number = int(reference.max()) + 1
    sizes_by_draw = np.zeros((len(matched), number), np.int32)  # 0 where it is not found
    for draw, (labels, names) in enumerate(zip(assignments, matched, strict=True)):
        known = np.flatnonzero(names >= 0)
        sizes = np.bincount(labels, minlength=len(names))
        sizes_by_draw[draw, names[known]] = sizes[known]
    probability = membership_probability(assignments, reference)
    profiles = []
    for k, column in enumerate(sizes_by_draw.T):
        members, found = np.flatnonzero(reference == k), column[column > 0]
        profiles.append(
            PartitionProfile(
                label=k,
                presence=len(found) / len(column),
                size=float(found.mean()) if len(found) else 0.0,
                size_interval=_interval(found) if len(found) else (0.0, 0.0),
                members=members,
                cohesion=float(probability[members].mean()),
            )
        )
    return sorted(profiles, key=lambda profile: -profile.size)


def membership_probability(assignments: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """How surely each point belongs with the others of its cluster in a reference partition.

    The mean, over the draws and over these others, of sharing a cluster with them; of a point that
    has no others there, the share of the draws in which it is alone.

    :param assignments: labels ``0..C-1``, shape ``(D, N)``.
    :param reference: labels ``0..K-1``, shape ``(N,)``.
    :return: shape ``(N,)``.

    .. doctest::

       >>> membership_probability([[0, 0, 1], [0, 1, 1]], [0, 0, 1]).tolist()
       [0.5, 0.5, 0.5]
    """
    assignments = as_draws(assignments)
    reference = as_partition(reference, assignments.shape[1]).astype(np.int64)
    others = np.bincount(reference)[reference] - 1
    together = np.zeros(assignments.shape[1])
    for labels in assignments:  # one draw at a time: no N × N array
        pairs = labels.astype(np.int64) * (int(reference.max()) + 1) + reference
        _, where, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        alone = np.bincount(labels)[labels] == 1
        together += np.where(others > 0, (counts[where] - 1) / np.maximum(others, 1), alone)
    return together / len(assignments)


def _profile(
    label: int, draws: dict[str, np.ndarray], matched: np.ndarray, rankings: Rankings
) -> ClusterProfile:
    draw, slot = np.nonzero(matched == label)
    sizes, center, theta = (
        draws[name][draw, slot] for name in ("cluster_sizes", "center", "concentration")
    )
    ranks = np.argsort(center, axis=-1) + 1
    ordering, (likeliest, probability) = cp_consensus(center), map_consensus(center)
    names = [str(name) for name in rankings.items]
    entropy = np.asarray(_entropy(jnp.asarray(center), jnp.asarray(theta)), np.float64).mean()
    uniform = np.log(np.arange(rankings.num_items, 0, -1)[: theta.shape[-1]]).sum()
    return ClusterProfile(
        label=label,
        presence=len(draw) / len(matched),
        size=float(sizes.mean()),
        size_interval=_interval(sizes),
        consensus=tuple(names[i] for i in ordering),
        consensus_ordering=ordering,
        map_consensus=tuple(names[i] for i in likeliest),
        map_probability=probability,
        rank_mean=ranks.mean(0),
        rank_interval=np.quantile(ranks, _INTERVAL, axis=0, method="nearest").T,
        concentration=theta.mean(0, dtype=np.float64),
        concentration_interval=np.quantile(theta, _INTERVAL, axis=0).T,
        entropy=float(entropy),
        agreement=float(1 - entropy / uniform),
    )


def _weights_profile(
    label: int, draws: dict[str, np.ndarray], matched: np.ndarray | None, rankings: Rankings
) -> WeightsProfile:
    """The same of weights; ``matched`` is None for one population."""
    unseen, presence = draws.get("unseen_weight"), 1.0
    if matched is None:
        sizes, weights = np.array([float(rankings.num_rankings)]), draws["weights"]
    else:
        draw, slot = np.nonzero(matched == label)
        presence = len(draw) / len(matched)
        sizes, weights = draws["cluster_sizes"][draw, slot], draws["weights"][draw, slot]
        unseen = None if unseen is None else unseen[draw, slot]
    weights = weights.astype(np.float64)
    mean, names = weights.mean(0), [str(name) for name in rankings.items]
    ordering = np.argsort(-mean, kind="stable").astype(np.int32)
    entropy = float(normalised_entropy(weights).mean())
    return WeightsProfile(
        label=label,
        presence=presence,
        size=float(sizes.mean()),
        size_interval=_interval(sizes),
        consensus=tuple(names[i] for i in ordering),
        consensus_ordering=ordering,
        weights=mean,
        weights_interval=np.quantile(weights, _INTERVAL, axis=0).T,
        unseen_weight=None if unseen is None else float(unseen.mean(dtype=np.float64)),
        unseen_interval=None if unseen is None else _interval(unseen),
        entropy=entropy,
        agreement=1.0 - entropy,
    )


def _interval(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, _INTERVAL)
    return float(low), float(high)


def normalised_entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy of weights, shape ``(…, K)``, over its largest value: 1 if they are equal."""
    shares = weights / weights.sum(-1, keepdims=True)
    if shares.shape[-1] == 1:
        return np.ones(shares.shape[:-1])
    return np.sum(entr(shares), axis=-1) / np.log(shares.shape[-1])


@jax.jit
def _entropy(center: Array, theta: Array) -> Array:
    return GeneralizedMallows(center, theta, validate_args=False).entropy()


def stage_orderings(orderings: ArrayLike, num_stages: int) -> Array:
    """Lists cut or padded to ``num_stages`` places.

    :param orderings: padded lists, shape ``(rows, T)``.
    :return: int32, shape ``(rows, num_stages)``.
    """
    orderings = jnp.asarray(orderings, jnp.int32)[:, :num_stages]
    missing = num_stages - orderings.shape[1]
    return jnp.pad(orderings, ((0, 0), (0, missing)), constant_values=-1)


def log_one_ranking(lengths: ArrayLike, num_items: int) -> Array:
    """Log marginal of one list under an empty cluster: ``log (n-t)!/n!``, whatever the prior."""
    left = num_items - jnp.asarray(lengths)
    return gammaln(left + 1.0) - gammaln(num_items + 1.0)


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


def log_weights(sizes: Array, alpha: Array, num_components: int | None) -> tuple[Array, Array]:
    """Log weights, not normalised, of the clusters and of all empty ones together.

    :param sizes: cluster sizes of one draw, shape ``(C,)``.
    :return: shapes ``(C,)`` and ``()``; an empty slot weighs nothing by itself.
    """
    occupied = sizes > 0
    if num_components is None:
        weight, log_empty = sizes.astype(alpha.dtype), jnp.log(alpha)
    else:
        share = alpha / num_components
        weight = sizes + share
        log_empty = jnp.log(share * (num_components - occupied.sum()))
    return jnp.where(occupied, jnp.log(jnp.where(occupied, weight, 1)), -jnp.inf), log_empty


@partial(jax.jit, static_argnames=("num_components", "batch"))
def _mean_log_predictive(
    draws: dict[str, Array],
    orderings: Array,
    log_one: Array,
    num_components: int | None,
    batch: int,
) -> Array:
    num_draws = len(draws["alpha"])

    def add_draw(total: Array, draw: dict[str, Array]) -> tuple[Array, None]:
        log_weight, log_empty = log_weights(draw["cluster_sizes"], draw["alpha"], num_components)
        normalizer = jnp.log(draw["cluster_sizes"].sum() + draw["alpha"])

        def one(row: tuple[Array, Array]) -> Array:
            ordering, log_one = row
            by_cluster = log_cluster_likelihood(
                ordering[None], draw["center"], draw["concentration"]
            )[0]
            return jnp.logaddexp(logsumexp(log_weight + by_cluster), log_empty + log_one)

        rows = jax.lax.map(one, (orderings, log_one), batch_size=batch)
        return jnp.logaddexp(total, rows - normalizer), None

    start = jnp.full(orderings.shape[0], -jnp.inf, draws["alpha"].dtype)
    return jax.lax.scan(add_draw, start, draws)[0] - jnp.log(num_draws)


def occupied_slots(samples: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of the clusters, without the slots that no draw uses."""
    sizes = np.asarray(samples["cluster_sizes"])
    used = sizes.reshape(-1, sizes.shape[-1]).any(0)
    last = int(np.flatnonzero(used)[-1]) + 1
    names = ("center", "concentration", "cluster_sizes")
    axis = sizes.ndim - 1
    return {name: np.take(samples[name], range(last), axis=axis) for name in names}


def batch_of_rows(center_shape: tuple[int, ...], num_stages: int, num_rows: int) -> int:
    """How many rows to score at once so that their stage codes fit in a few tens of MB."""
    per_row = max(1, center_shape[-2] * num_stages**2)
    return int(np.clip(_CODES_AT_ONCE // per_row, 1, num_rows))


class PredictedItems(NamedTuple):
    """What further lists will show, one row for each draw.

    - **distinct** - items in the first 1, 2, …, L of them, int (D, L).
    - **new** - how many of these were in no list before, int (D, L).
    """

    distinct: np.ndarray
    new: np.ndarray


def predict_items(
    key: Array,
    samples: Mapping[str, Any],
    num_lists: int,
    length: int,
    sigma: float = 0.0,
    tau: float = 1.0,
) -> PredictedItems:
    """Draw further lists from a fitted pool of items, and count the items in them.

    The means over the draws are the expected numbers. For the processes before any data see
    :func:`~numpyro_rankings.datasets.simulate_gamma_process` and
    :func:`~numpyro_rankings.datasets.simulate_dp_plackett_luce`. (The probability of each item, or
    of a new one, to come next is the mean of ``weights`` and of ``unseen_weight``; in a mixture,
    of a list of the cluster.)

    :param key: a JAX random key.
    :param samples: of :class:`~numpyro_rankings.infer.GammaProcessPlackettLuceGibbs` or
        :class:`~numpyro_rankings.infer.DPPlackettLuceGibbs`; each draw takes some 30 µs for each
        list, in a mixture 0.1 ms and more, so thin them.
    :param num_lists: L.
    :param length: m, items in each list.
    :param sigma: what ``GammaProcessPlackettLuceGibbs`` was given; the samples do not tell.
    :param tau: what ``DPPlackettLuceGibbs`` was given; the samples do not tell.
    """
    check_draws(samples)
    check_whole("num_lists", num_lists)
    check_whole("length", length)
    if not (np.isfinite(tau) and tau > 0):
        raise ValueError(f"tau must be a positive number, got {tau!r}")
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    number = np.shape(samples["weights"])[-1] if "weights" in samples else 0
    if "log_joint" not in samples:
        raise ValueError("the samples must be those of a kernel by itself, not of a block of Gibbs")
    if "phi" in samples and sigma != 0.0:
        raise ValueError("sigma is for GammaProcessPlackettLuceGibbs; these samples are others")
    if "phi" not in samples and tau != 1.0:
        raise ValueError("tau is for DPPlackettLuceGibbs; these samples are others")
    if "phi" in samples:
        further: Iterator[Any] = _further_lists_of_mixture(rng, samples, num_lists, length, tau)
    elif "unseen_rate" not in samples:
        raise ValueError(
            "the samples must be those of GammaProcessPlackettLuceGibbs or DPPlackettLuceGibbs"
        )
    elif ("total_weight" in samples) != (sigma > 0):
        raise ValueError("sigma must be what the kernel was given")
    else:
        further = _further_lists_of_pool(rng, samples, num_lists, length, sigma)
    every = list(further)
    distinct = [_growth(lists, 0) for lists in every]
    return PredictedItems(np.array(distinct), np.array([_growth(one, number) for one in every]))


def _growth(lists: list[list[int]], first: int) -> list[int]:
    """How many items there are in the first 1, 2, … lists, of those with index ``first`` on."""
    seen: set[int] = set()
    numbers = []
    for one in lists:
        seen.update(item for item in one if item >= first)
        numbers.append(len(seen))
    return numbers


def _further_lists_of_pool(
    rng: np.random.Generator,
    samples: Mapping[str, Any],
    num_lists: int,
    length: int,
    sigma: float,
) -> Iterator[list[list[int]]]:
    """Lists of each draw; new items have the indices from K on."""
    draws = {name: np.asarray(value, float) for name, value in samples.items()}
    weights = draws["weights"].reshape(-1, draws["weights"].shape[-1])
    alpha, rate = draws["alpha"].ravel(), draws["unseen_rate"].ravel()
    if sigma > 0:
        # in units of the normalised weights
        alpha = alpha * draws["total_weight"].ravel() ** -sigma
    for d in range(len(weights)):
        pool = Pool(np.log(weights[d]), alpha[d], np.log(rate[d]), sigma)
        yield [pool.draw_list(rng, length) for _ in range(num_lists)]


def _further_lists_of_mixture(
    rng: np.random.Generator,
    samples: Mapping[str, Any],
    num_lists: int,
    length: int,
    tau: float,
) -> Iterator[list[list[int]]]:
    """The same of a mixture; lists join clusters or open new ones.

    Given the weights of what is unseen, in the root and in the clusters, who its items are does
    not depend on the data: the normalised unseen root is a Dirichlet process of concentration α,
    on whose atoms the tokens :math:`u_{j*}` of the clusters sit.
    """
    lead = np.ndim(samples["log_joint"])
    draws = {
        name: np.reshape(np.asarray(value, float), (-1, *np.shape(value)[lead:]))
        for name, value in samples.items()
    }
    for d in range(len(draws["log_joint"])):
        one = {name: value[d] for name, value in draws.items()}
        alpha, phi, rate = one["alpha"], one["phi"], tau + one["phi"]
        tables: list[int] = []
        own = itertools.count(1, 2)
        sizes = [n for n in one["cluster_sizes"].astype(int) if n > 0]
        clusters: dict[int, _UnseenPool] = {}
        lists = []
        for _ in range(num_lists):
            bounds = np.cumsum([*sizes, one["gamma"]])
            j = int(np.searchsorted(bounds, rng.uniform() * bounds[-1], side="right"))
            if j == len(sizes):
                # a new cluster, eq. (19)
                counts = rng.poisson(phi * one["root_weights"])
                atoms = np.where(counts > 0, rng.gamma(np.maximum(counts, 1)), 0.0) / rate
                tokens = rng.poisson(phi * one["root_unseen_weight"])
                unseen = rng.gamma(alpha + tokens) / rate
                clusters[j] = _UnseenPool(rng, atoms, unseen, tokens, alpha, tables, own)
                sizes.append(0)
            elif j not in clusters:
                total, share = one["total_weight"][j], one["unseen_weight"][j]
                mean = phi * one["root_unseen_weight"] * rate * total * share
                tokens = _draw_tokens(rng, mean, alpha)
                atoms, unseen = total * one["weights"][j], total * share
                clusters[j] = _UnseenPool(rng, atoms, unseen, tokens, alpha, tables, own)
            sizes[j] += 1
            lists.append(clusters[j].draw_list(rng, length))
        yield lists


def _draw_tokens(rng: np.random.Generator, x: float, alpha: float) -> int:
    """u with probability ∝ x^u / (u! Γ(α + u))."""
    # nothing of note is further than this from the mode, some √x
    u = np.arange(int(np.sqrt(x) + 12.0 * x**0.25 + 40.0))
    log_p = u * np.log(max(x, 1e-300)) - gammaln_np(u + 1.0) - gammaln_np(u + alpha)
    return int(np.searchsorted(np.cumsum(np.exp(log_p - logsumexp_np(log_p))), rng.uniform()))


class _UnseenPool:
    """A cluster: the listed items, the atoms of the unseen root that it has, and items of its own.

    The latter come up in size-biased order, each taking a Beta(1, α) share of what is left.

    :param tables: tokens on each atom of the unseen root, of all clusters.
    :param own: odd numbers not used yet, for items of one cluster; the atoms of the root are even.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        atoms: np.ndarray,
        unseen: float,
        tokens: int,
        alpha: float,
        tables: list[int],
        own: Iterator[int],
    ) -> None:
        counts = seat_tokens(rng, tables, tokens, alpha)
        there = np.flatnonzero(counts)
        shares = rng.gamma(np.append(counts[there], alpha).astype(float))
        shares *= unseen / max(shares.sum(), 1e-300)
        self.items = [*range(len(atoms)), *(len(atoms) + 2 * int(k) for k in there)]
        self.weights = [*atoms, *shares[:-1]]
        self.rest, self.alpha = float(shares[-1]), float(alpha)
        self.number, self.own = len(atoms), own

    def draw_list(self, rng: np.random.Generator, length: int) -> list[int]:
        """One choice after the other, each in proportion to the weights still in play."""
        in_play = np.array(self.weights)
        chosen: list[int] = []
        while len(chosen) < length:
            bounds = np.cumsum(np.append(in_play, self.rest))
            k = int(np.searchsorted(bounds, rng.uniform() * bounds[-1], side="right"))
            if k >= len(in_play):
                k = len(in_play)
                weight = self.rest * rng.beta(1.0, self.alpha)
                self.rest -= weight
                self.items.append(self.number + next(self.own))
                self.weights.append(weight)
                in_play = np.append(in_play, 0.0)
            else:
                in_play[k] = 0.0
            chosen.append(self.items[k])
        return chosen


def log_plackett_luce_likelihood(
    draw: Mapping[str, Array], orderings: Array, offered: Array | None
) -> Array:
    """Log probability of every row in every component of one draw, shape ``(C, rows)``."""
    weights = jnp.atleast_2d(draw["weights"])
    log_weights = jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1.0)), -1e30)
    unseen = jnp.log(jnp.atleast_1d(draw["unseen_weight"])) if "unseen_weight" in draw else None

    def log_prob(one: tuple[Array, Array | None]) -> Array:
        log_weights, unseen = one
        model = TopTPlackettLuce(
            log_weights, orderings.shape[1], unseen, offered, validate_args=False
        )
        return model.log_prob(orderings)

    return jax.lax.map(log_prob, (log_weights, unseen))


@jax.jit
def _mean_log_plackett_luce(draws: dict[str, Array], orderings: Array, offered: Any) -> Array:
    def add_draw(total: Array, draw: dict[str, Array]) -> tuple[Array, None]:
        by_cluster = log_plackett_luce_likelihood(draw, orderings, offered)
        if "cluster_sizes" not in draw:
            return jnp.logaddexp(total, by_cluster[0]), None
        if "new_weights" in draw:
            new = {"weights": draw["new_weights"], "unseen_weight": draw["new_unseen_weight"]}
            of_new = log_plackett_luce_likelihood(new, orderings, offered)
            number = jnp.log(len(of_new))
            sizes = draw["cluster_sizes"]
            log_sizes = jnp.where(sizes > 0, jnp.log(jnp.maximum(sizes, 1)), -jnp.inf)
            log_new = jnp.log(draw["gamma"]) - number
            old = logsumexp(log_sizes[:, None] + by_cluster, axis=0)
            both = jnp.logaddexp(old, logsumexp(log_new + of_new, axis=0))
            return jnp.logaddexp(total, both - jnp.log(sizes.sum() + draw["gamma"])), None
        # an empty component's weights are a draw from the prior
        shares = draw["cluster_sizes"] + draw["alpha"] / draw["weights"].shape[0]
        log_shares = jnp.log(shares / shares.sum())
        return jnp.logaddexp(total, logsumexp(log_shares[:, None] + by_cluster, axis=0)), None

    start = jnp.full(orderings.shape[0], -jnp.inf, draws["weights"].dtype)
    return jax.lax.scan(add_draw, start, draws)[0] - jnp.log(len(draws["weights"]))


def _draw_new_clusters(
    key: Array, samples: Mapping[str, Any], lead: int, number: int
) -> dict[str, Array]:
    """Weights of clusters that hold nobody, so many for each draw, eq. (19)."""
    root, root_unseen, alpha, phi = (
        jnp.reshape(samples[name], (-1, *np.shape(samples[name])[lead:]))
        for name in ("root_weights", "root_unseen_weight", "alpha", "phi")
    )
    key_counts, key_weights = jax.random.split(key)
    mean = phi[:, None] * jnp.append(root, root_unseen[:, None], axis=1)
    shape = (mean.shape[0], number, mean.shape[1])
    counts = jax.random.poisson(key_counts, mean[:, None], shape).astype(mean.dtype)
    shapes = counts.at[..., -1].add(alpha[:, None])
    log_weights = jax.random.loggamma(key_weights, jnp.maximum(shapes, 1e-30))
    log_weights = jnp.where(shapes > 0, log_weights, -jnp.inf)
    weights = jax.nn.softmax(log_weights, axis=-1)  # the rate is the same for all
    return {"new_weights": weights[..., :-1], "new_unseen_weight": weights[..., -1]}


def _by_name(new_rankings: Rankings, fitted: Rankings) -> tuple[np.ndarray, np.ndarray | None]:
    """Orderings and choice sets in the items that were fitted; an item that is new has number K."""
    number = fitted.num_items
    numbers = {name: k for k, name in enumerate(fitted.items)}
    columns = np.array([numbers.get(name, number) for name in new_rankings.items])
    orderings = np.asarray(new_rankings.orderings)
    codes = np.where(orderings >= 0, columns[np.maximum(orderings, 0)], -1)
    if new_rankings.choice_sets is None:
        return codes, None
    offered = np.zeros((len(codes), number + 1), bool)
    offered[:, columns] = np.asarray(new_rankings.choice_sets)
    return codes, offered[:, :number]


@jax.jit
def _mean_log_pool(key: Array, draws: dict[str, Array], codes: Array) -> Array:
    """Under a gamma process, of lists some of whose items, with the number K, are new.

    A new item is a size-biased pick of the unseen ones, and takes a Beta(1, α) share of them.
    """
    (num_rows, _), number = codes.shape, draws["weights"].shape[-1]
    known, new = (codes >= 0) & (codes < number), codes == number
    columns = jnp.where(known, codes, number)
    rows = jnp.arange(num_rows)[:, None]
    unlisted = jnp.ones((num_rows, number)).at[rows, columns].set(0.0, mode="drop")

    def add_draw(total: Array, inputs: tuple[Array, dict[str, Array]]) -> tuple[Array, None]:
        key, draw = inputs
        log_left = jnp.log1p(-jax.random.uniform(key, codes.shape)) / draw["alpha"]
        log_left = jnp.where(new, log_left, 0.0)
        unseen = draw["unseen_weight"] * jnp.exp(jnp.cumsum(log_left, axis=1) - log_left)
        weights = jnp.append(draw["weights"], 0.0)[columns]
        in_play = jnp.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        mass = (unlisted @ draw["weights"])[:, None] + in_play + unseen
        log_stages = jnp.log(jnp.where(new, unseen, weights) / mass)
        log_p = jnp.sum(jnp.where(codes >= 0, log_stages, 0.0), axis=1)
        return jnp.logaddexp(total, log_p), None

    num_draws = len(draws["weights"])
    inputs = jax.random.split(key, num_draws), draws
    start = jnp.full(num_rows, -jnp.inf, draws["weights"].dtype)
    return jax.lax.scan(add_draw, start, inputs)[0] - jnp.log(num_draws)


def _log_plackett_luce(
    samples: Mapping[str, Any],
    new_rankings: Rankings,
    key: Array | None,
    num_new_clusters: int,
    fitted: Rankings | None,
) -> np.ndarray:
    check_whole("num_new_clusters", num_new_clusters)
    num_items = np.shape(samples["weights"])[-1]
    orderings: Any = new_rankings.orderings
    offered: Any = new_rankings.choice_sets
    if fitted is not None:
        if "unseen_weight" in samples:
            fitted = fitted.of_listed_items()
        if fitted.num_items != num_items:
            raise ValueError(
                f"the samples are of {num_items} items, the fitted rankings of {fitted.num_items}"
            )
        orderings, offered = _by_name(new_rankings, fitted)
    elif new_rankings.num_items != num_items:
        hint = ""
        if "unseen_weight" in samples:
            hint = "; pass fitted= to match items by name"
        raise ValueError(
            f"the new rankings are of {new_rankings.num_items} items, the fitted ones of "
            f"{num_items}{hint}"
        )
    if "log_joint" not in samples:
        raise ValueError("the samples must be those of a kernel by itself, not of a block of Gibbs")
    names = ("weights", "unseen_weight", "cluster_sizes", "alpha", "gamma")
    lead = np.ndim(samples["log_joint"])
    draws = {
        name: jnp.reshape(samples[name], (-1, *np.shape(samples[name])[lead:]))
        for name in names
        if name in samples
    }
    if "phi" in samples:
        key = jax.random.key(0) if key is None else key
        draws |= _draw_new_clusters(key, samples, lead, num_new_clusters)
    new = np.asarray(orderings) == num_items
    if new.any():
        if "phi" in samples or "total_weight" in samples or "unseen_weight" not in samples:
            row, stage = (int(k[0]) for k in np.nonzero(new))
            name = new_rankings.items[int(new_rankings.orderings[row, stage])]
            raise ValueError(
                f"row {row + 1} lists {name!r}, which no fitted ranking lists: such lists can be "
                "scored under the gamma process (sigma = 0) only"
            )
        key = jax.random.key(0) if key is None else key
        kept = {name: draws[name] for name in ("weights", "unseen_weight", "alpha")}
        return np.asarray(_mean_log_pool(key, kept, jnp.asarray(orderings)))
    return np.asarray(_mean_log_plackett_luce(draws, jnp.asarray(orderings), offered))


def log_predictive_density(
    samples: Mapping[str, Any],
    new_rankings: Rankings,
    num_components: int | None = None,
    *,
    num_new_clusters: int = 100,
    key: Array | None = None,
    fitted: Rankings | None = None,
) -> np.ndarray:
    r"""Log predictive density of new rankings under a fitted mixture.

    Averaged over the draws, with :math:`N` fitted rankings, :math:`N_c` of them in cluster
    :math:`c`, a new list of length :math:`t` has under the Dirichlet process

    .. math::
        p(\pi) = \sum_c \frac{N_c}{N + \alpha} P(\pi \mid \sigma_c, \theta_c)
        + \frac{\alpha}{N + \alpha} \frac{(n - t)!}{n!}.

    A new cluster counts exactly: whatever the prior of its concentrations, one ranking in it has
    the last factor as its marginal (Lemma 1 of Meilă & Chen 2010). In a finite mixture the
    weights are :math:`N_c + \alpha/K`, the empty components sharing what is left. Of draws of a
    Plackett–Luce kernel it is the mean of its probabilities, mixed in the same way. A new cluster
    of ``DPPlackettLuceGibbs`` has no closed form: for each draw it is the mean over some clusters
    that are drawn from the prior given the root, without bias.

    :param samples: ``mcmc.get_samples()``, grouped by chain or not.
    :param new_rankings: lists of the same items, no longer than those fitted, or one item short
        of all.
    :param num_components: what a Mallows kernel was given, ``None`` for the Dirichlet process;
        its samples do not tell.
    :param num_new_clusters: of ``DPPlackettLuceGibbs``, new clusters for each draw.
    :param key: a JAX random key for these and for new items; the same one every time by default.
    :param fitted: of a Plackett–Luce kernel, the rankings that were fitted, so that items are
        matched by their names. Under the gamma process (σ = 0) new rankings can then list items
        that the fitted ones do not: their probability is that of some new item there.
    :return: one value for each row, in nats, float32, shape ``(rows,)``; the mean for one
        ranking is ``np.average(log_density, weights=new_rankings.counts)``.
    :raises ValueError: if the items do not match, a list is longer than the fitted stages, or
        ``num_components`` is given with draws of a Plackett–Luce kernel.
    """
    check_draws(samples)
    for given in (new_rankings, *(() if fitted is None else (fitted,))):
        check_rankings(given)
    if "weights" in samples:
        if num_components is not None:
            raise ValueError("num_components is for draws of a Mallows kernel; these tell theirs")
        return _log_plackett_luce(samples, new_rankings, key, num_new_clusters, fitted)
    if fitted is not None:
        raise ValueError("fitted is for draws of a Plackett–Luce kernel")
    check_samples(samples)
    draws = flatten_chains(samples)
    clusters = occupied_slots(draws)
    num_items, num_stages = clusters["center"].shape[-1], clusters["concentration"].shape[-1]
    if new_rankings.num_items != num_items:
        raise ValueError(
            f"the new rankings are of {new_rankings.num_items} items, the fitted ones of "
            f"{num_items}"
        )
    lengths = np.asarray(new_rankings.lengths)
    if lengths.max() > num_stages and num_stages < num_items - 1:
        raise ValueError(
            f"row {lengths.argmax() + 1} lists {lengths.max()} items, but the fitted lists "
            f"had at most {num_stages}, so nothing is known of the stages after: shorten it"
        )
    kept = {name: jnp.asarray(value) for name, value in clusters.items()}
    kept["alpha"] = jnp.broadcast_to(
        jnp.asarray(draws["alpha"], kept["concentration"].dtype), (len(kept["center"]),)
    )
    batch = batch_of_rows(kept["center"].shape, num_stages, new_rankings.num_rows)
    orderings = stage_orderings(new_rankings.orderings, num_stages)
    log_one = log_one_ranking(lengths, num_items)
    return np.asarray(_mean_log_predictive(kept, orderings, log_one, num_components, batch))
