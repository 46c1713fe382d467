"""Profiles: posterior summaries of each cluster of a reference partition."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from numpyro_rankings.components.family import Family
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.families.plackett_luce import normalised_entropy
from numpyro_rankings.ops.orderings import (
    certain_levels,
    cp_consensus,
    map_consensus,
    times_above,
    wants_of_members,
)
from numpyro_rankings.posterior.components import with_drawn_parameters
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import (
    as_draws,
    as_partition,
    found_again,
    match_clusters,
)
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.rankings import Rankings, check_rankings

_INTERVAL = (0.05, 0.95)  # quantiles of the intervals
HOLDS_ABOVE = 0.5  # share of the draws
_MEMBERS_DRAWS = 50  # draws over which the members of a cluster are counted


class ClusterProfile(NamedTuple):
    """Posterior summary of one cluster of rankings under a Mallows model.

    Intervals hold 90% of the posterior.

    :param label: label of the cluster in the reference partition.
    :param presence: share of the draws in which the cluster is found again
        (:func:`~numpyro_rankings.posterior.partitions.found_again`).
    :param matched: share of the draws in which a cluster is matched to it
        (:func:`~numpyro_rankings.posterior.partitions.match_clusters`), of which all further
        numbers are.
    :param size: mean number of rankings over the draws in which one is matched.
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
    :param agreement: 1 minus the ratio of that entropy to that of uniform lists: 0 for uniform
        lists, 1 for unanimous ones.
    :param members: indices of its rankings in the reference partition.
    :param interval_over_all: the interval of the size over all draws, 0 in those in which none is
        matched.
    :param levels: the items by what the members want, best first: of those who order an item of one
        level and one of a later level, whichever these are, at least 60% put the former first. Each
        ranking counts as a member as often as it is in the cluster over the draws. Within a level
        the items are in the order of the consensus.
    :param clear_pairs: names of two items of one level of which at least 60% of the members who
        order the two put the first one first, the clearest pair of each level first.
    :param certain: the consensus, cut where at least 95% of the draws agree on it
        (:func:`~numpyro_rankings.posterior.certain_levels`).
    """

    label: int
    presence: float
    matched: float
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
    members: np.ndarray
    interval_over_all: tuple[float, float]
    levels: tuple[tuple[str, ...], ...]
    clear_pairs: tuple[tuple[str, str], ...] = ()
    certain: tuple[tuple[str, ...], ...] = ()

    @property
    def mean_size(self) -> float:
        """Mean size over all draws, 0 in those in which none is matched."""
        return self.matched * self.size


class WeightsProfile(NamedTuple):
    """Posterior summary of one cluster of Plackett–Luce weights, or of the only population.

    Intervals hold 90% of the posterior.

    :param label: label of the cluster in the reference partition.
    :param presence: share of the draws in which the cluster is found again
        (:func:`~numpyro_rankings.posterior.partitions.found_again`).
    :param matched: share of the draws in which a cluster is matched to it
        (:func:`~numpyro_rankings.posterior.partitions.match_clusters`), of which all further
        numbers are.
    :param size: mean number of rankings over the draws in which one is matched.
    :param size_interval: ``(low, high)``.
    :param consensus: names of the items by their mean weight, largest first.
    :param consensus_ordering: the same as item indices, shape ``(K,)``.
    :param weights: mean weight of each item, in item order, shape ``(K,)``: the probability that it
        comes first.
    :param weights_interval: shape ``(K, 2)``.
    :param unseen_weight: mean weight of all items that no ranking lists, None if there are none.
    :param unseen_interval: ``(low, high)``.
    :param entropy: mean ratio of the entropy of the weights to that of equal weights.
    :param agreement: 1 minus that ratio: 0 for equal weights, 1 if one item always comes first.
    :param members: indices of its rankings in the reference partition.
    :param interval_over_all: the interval of the size over all draws, 0 in those in which none is
        matched.
    :param levels: the items by what the members want, best first: of those who order an item of one
        level and one of a later level, whichever these are, at least 60% put the former first. Each
        ranking counts as a member as often as it is in the cluster over the draws. Within a level
        the items are in the order of the consensus.
    :param clear_pairs: names of two items of one level of which at least 60% of the members who
        order the two put the first one first, the clearest pair of each level first.
    :param certain: the consensus, cut where at least 95% of the draws agree on it
        (:func:`~numpyro_rankings.posterior.certain_levels`).
    """

    label: int
    presence: float
    matched: float
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
    members: np.ndarray
    interval_over_all: tuple[float, float]
    levels: tuple[tuple[str, ...], ...]
    clear_pairs: tuple[tuple[str, str], ...] = ()
    certain: tuple[tuple[str, ...], ...] = ()

    @property
    def mean_size(self) -> float:
        """Mean size over all draws, 0 in those in which none is matched."""
        return self.matched * self.size


class PartitionProfile(NamedTuple):
    """Posterior summary of one cluster of points. Intervals hold 90% of the posterior.

    :param label: label of the cluster in the reference partition.
    :param presence: share of the draws in which the cluster is found again
        (:func:`~numpyro_rankings.posterior.partitions.found_again`).
    :param matched: share of the draws in which a cluster is matched to it
        (:func:`~numpyro_rankings.posterior.partitions.match_clusters`), of which all further
        numbers are.
    :param size: mean number of points over the draws in which one is matched.
    :param size_interval: ``(low, high)``.
    :param members: indices of its points in the reference partition.
    :param cohesion: mean probability that two of its points share a cluster; for a single point,
        the probability that it is alone.
    :param interval_over_all: the interval of the size over all draws, 0 in those in which none is
        matched.
    """

    label: int
    presence: float
    matched: float
    size: float
    size_interval: tuple[float, float]
    members: np.ndarray
    cohesion: float
    interval_over_all: tuple[float, float]

    @property
    def mean_size(self) -> float:
        """Mean size over all draws, 0 in those in which none is matched."""
        return self.matched * self.size


def holds(profile: Any) -> bool:
    """Return whether a cluster holds: whether it is found again in more than half of the draws.

    It is found again in a draw (:func:`~numpyro_rankings.posterior.partitions.found_again`) if
    it and a cluster of the draw have more members in common than with any other, and more than a
    third of either. A reader can rely on the clusters that hold. The others come and go from draw
    to draw: a draw may have a cluster in their place, but of other members.
    Where a cluster is in half of the chains only, it does not hold.

    :param profile: of a cluster, as the functions of this module return it.
    """
    return profile.presence > HOLDS_ABOVE


def cluster_profiles(
    samples: Any,
    rankings: Rankings,
    reference: Any = None,
    *,
    sites: Mapping[str, str] | None = None,
    family: Family | None = None,
    key: Array | None = None,
) -> list[Any]:
    """Describe the clusters of a reference partition over all draws.

    In every draw the clusters are matched to those of the reference by greatest overlap, so that a
    cluster keeps its label although the labels of the draws switch.

    The kernels of partitions integrate out the parameters of the clusters. For their profiles these
    are drawn from the posterior given the members, once for each cluster of each draw.

    :param samples: a :class:`~numpyro_rankings.Run` or :class:`numpyro.infer.MCMC` that has run, or
        ``mcmc.get_samples()``, grouped by chain or not; of a kernel of this package, by itself or
        as a block.
    :param rankings: the rankings that were fitted.
    :param reference: labels ``0..K-1``, shape ``(N,)``, or a result of
        :func:`~numpyro_rankings.reference_partition`; by default the reference partition of the
        draws, which is the partition of least expected variation of information or, for very many
        rankings, the medoid draw.
    :param sites: for ``mcmc.get_samples()`` of a model in which the kernel is a block: its
        ``sites``, such as ``{"assignments": "z", "center": "sigma", "concentration": "theta"}``.
    :param family: for ``mcmc.get_samples()`` of a kernel of partitions: its family of rankings,
        such as :class:`~numpyro_rankings.components.PlackettLuceWeights`.
    :param key: a JAX random key for the parameters that are drawn; by default always the same one.
    :return: one :class:`~numpyro_rankings.posterior.ClusterProfile` for each cluster, the largest
        (on average) first; for the Plackett–Luce kernels a
        :class:`~numpyro_rankings.posterior.WeightsProfile`, and only one if they fit one
        population.
    :raises ValueError: if a cluster of ``reference`` is found in no draw, or if the draws are of
        other rankings or of another kernel.
    """
    drawn = Draws.of(samples, sites=sites)
    if drawn.kernel and family is not None:
        raise ValueError("a run knows the names of its sites and its family: leave them out")
    family = family or drawn.component_family
    check_rankings(rankings)
    if family is not None:
        drawn = with_drawn_parameters(drawn, rankings, family, key)
    drawn.check_family()
    drawn = drawn.with_rankings(rankings)
    rankings, draws = drawn.rankings or rankings, drawn.flat()
    weighted = "weights" in draws
    if "assignments" not in draws:
        everyone = np.arange(rankings.num_rankings)
        return [_weights_profile(0, draws, None, None, rankings, everyone)]
    labels = reference_partition(draws["assignments"], reference).labels
    matched = match_clusters(draws["assignments"], labels)
    found = found_again(draws["assignments"], labels, matched)
    if not weighted:
        draws = {**draws, "entropy": _entropies(draws, matched)}
    describe = _weights_profile if weighted else _profile
    profiles = []
    for k in np.unique(labels).tolist():
        if not np.any(matched == k):
            raise ValueError(
                f"cluster {k} of the reference partition is found in no draw: leave the reference "
                "out, or merge this cluster with another"
            )
        members = np.flatnonzero(labels == k)
        profiles.append(describe(k, draws, matched, found, rankings, members))
    return sorted(profiles, key=_by_size)


def _by_size(profile: Any) -> float:
    return -profile.mean_size


def _profile(
    label: int,
    draws: dict[str, np.ndarray],
    matched: np.ndarray,
    found: np.ndarray,
    rankings: Rankings,
    members: np.ndarray,
) -> ClusterProfile:
    draw, slot = np.nonzero(matched == label)
    names = ("cluster_sizes", "center", "concentration", "entropy")
    sizes, center, theta, entropies = (draws[name][draw, slot] for name in names)
    ranks = np.argsort(center, axis=-1) + 1
    ordering, (likeliest, probability) = cp_consensus(center), map_consensus(center)
    items, entropy = [str(name) for name in rankings.items], entropies.mean()
    amounts = _members_by_row(draws["assignments"], draw, slot, rankings)
    levels, pairs = _wants(rankings, amounts, ordering)
    uniform = np.log(np.arange(rankings.num_items, 0, -1)[: theta.shape[-1]]).sum()
    return ClusterProfile(
        label=label,
        presence=float(found[draw, slot].sum() / len(matched)),
        matched=len(draw) / len(matched),
        size=float(sizes.mean()),
        size_interval=_interval(sizes),
        consensus=tuple(items[i] for i in ordering),
        consensus_ordering=ordering,
        map_consensus=tuple(items[i] for i in likeliest),
        map_probability=probability,
        rank_mean=ranks.mean(0),
        rank_interval=np.quantile(ranks, _INTERVAL, axis=0, method="nearest").T,
        concentration=theta.mean(0, dtype=np.float64),
        concentration_interval=np.quantile(theta, _INTERVAL, axis=0).T,
        entropy=float(entropy),
        agreement=float(1 - entropy / uniform),
        members=members,
        interval_over_all=_interval_over_all(sizes, len(matched)),
        levels=levels,
        clear_pairs=pairs,
        certain=_named(certain_levels(center, ordering), items),
    )


def _weights_profile(
    label: int,
    draws: dict[str, np.ndarray],
    matched: np.ndarray | None,
    found: np.ndarray | None,
    rankings: Rankings,
    members: np.ndarray,
) -> WeightsProfile:
    """Profile of a cluster of weights; ``matched`` is None for a single population."""
    unseen, presence, share, num_draws = draws.get("unseen_weight"), 1.0, 1.0, 1
    if matched is None or found is None:
        sizes, weights = np.array([float(rankings.num_rankings)]), draws["weights"]
        amounts = np.asarray(rankings.counts, float)
    else:
        draw, slot = np.nonzero(matched == label)
        num_draws = len(matched)
        presence, share = float(found[draw, slot].sum() / num_draws), len(draw) / num_draws
        sizes, weights = draws["cluster_sizes"][draw, slot], draws["weights"][draw, slot]
        unseen = None if unseen is None else unseen[draw, slot]
        amounts = _members_by_row(draws["assignments"], draw, slot, rankings)
    weights = weights.astype(np.float64)
    mean, names = weights.mean(0), [str(name) for name in rankings.items]
    ordering = np.argsort(-mean, kind="stable").astype(np.int32)
    entropy = float(normalised_entropy(weights).mean())
    levels, pairs = _wants(rankings, amounts, ordering)
    certain = certain_levels(np.argsort(-weights, axis=-1, kind="stable"), ordering)
    return WeightsProfile(
        label=label,
        presence=presence,
        matched=share,
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
        members=members,
        interval_over_all=_interval_over_all(sizes, num_draws),
        levels=levels,
        clear_pairs=pairs,
        certain=_named(certain, names),
    )


def _members_by_row(
    labels: np.ndarray, draw: np.ndarray, slot: np.ndarray, rankings: Rankings
) -> np.ndarray:
    """Return how many rankings of each row are in a cluster, the mean over some draws, (rows,).

    :param labels: (D, N).
    :param draw: the draws that have the cluster, and **slot**, its label there.
    """
    rows = np.asarray(rankings.row_index)
    some = np.linspace(0, len(draw) - 1, min(len(draw), _MEMBERS_DRAWS)).astype(int)
    amounts = np.zeros(rankings.num_rows)
    for k in some:
        amounts += np.bincount(rows[labels[draw[k]] == slot[k]], minlength=len(amounts))
    return amounts / len(some)


def _wants(rankings: Rankings, amounts: np.ndarray, consensus: np.ndarray) -> Any:
    """Return the levels and the clear pairs of members, by the names of the items.

    :param amounts: number of members of each row, (rows,).
    """
    found = wants_of_members(times_above(rankings, amounts, consensus), consensus)
    return found.named([str(name) for name in rankings.items])


def _named(levels: Sequence[np.ndarray], names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(names[i] for i in level) for level in levels)


def partition_profiles(assignments: ArrayLike, reference: Any = None) -> list[PartitionProfile]:
    """Describe the clusters of a reference partition over all draws, for points of any kind.

    Clusters of the draws are matched as in :func:`~numpyro_rankings.cluster_profiles`.

    :param assignments: labels ``0..C-1``, shape ``(D, N)``.
    :param reference: as in :func:`~numpyro_rankings.cluster_profiles`, with the same default.
    :return: one profile for each cluster, the largest (on average) first; a cluster that is found
        in no draw has size 0.
    """
    assignments = as_draws(assignments)
    reference = reference_partition(assignments, reference).labels
    matched = match_clusters(assignments, reference)
    number = int(reference.max()) + 1
    again = found_again(assignments, reference, matched)
    presence = np.bincount(matched[again], minlength=number) / len(matched)
    sizes_by_draw = np.zeros((len(matched), number), np.int32)  # 0 where none is matched
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
                presence=float(presence[k]),
                matched=len(found) / len(column),
                size=float(found.mean()) if len(found) else 0.0,
                size_interval=_interval(found) if len(found) else (0.0, 0.0),
                members=members,
                cohesion=float(probability[members].mean()),
                interval_over_all=_interval(column),
            )
        )
    return sorted(profiles, key=_by_size)


def membership_probability(assignments: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Probability that each point shares a cluster with the others of its reference cluster.

    It is the mean over the draws and over these other points; for a point that is alone in the
    reference partition, it is the share of the draws in which it is alone.

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
    number, with_others = int(reference.max()) + 1, np.maximum(others, 1)
    together, alone = np.zeros(assignments.shape[1]), np.flatnonzero(others == 0)
    for labels in assignments:  # one draw at a time, without an N × N array
        pairs = labels.astype(np.int64) * number + reference
        if pairs.max() > 4 * len(pairs):  # with many small clusters the table would be large
            pairs = np.unique(pairs, return_inverse=True)[1].ravel()
        together += (np.bincount(pairs)[pairs] - 1) / with_others
        together[alone] += np.bincount(labels)[labels[alone]] == 1
    return together / len(assignments)


def _interval(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, _INTERVAL)
    return float(low), float(high)


def _interval_over_all(sizes: np.ndarray, num_draws: int) -> tuple[float, float]:
    """Interval of a size that is 0 in the draws without the cluster.

    :param sizes: in the draws that have it.
    :param num_draws: number of all draws.
    """
    return _interval(np.concatenate([sizes, np.zeros(num_draws - len(sizes))]))


def _entropies(draws: Mapping[str, np.ndarray], matched: np.ndarray) -> np.ndarray:
    """Entropy of a list from each cluster of each draw that is matched, (D, C); else NaN."""
    draw, slot = np.nonzero(matched >= 0)
    found = np.full(matched.shape, np.nan)
    found[draw, slot] = _entropy(draws["center"][draw, slot], draws["concentration"][draw, slot])
    return found


@jax.jit
def _entropy(center: Array, theta: Array) -> Array:
    return GeneralizedMallows(center, theta, validate_args=False).entropy()
