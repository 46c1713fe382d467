"""Profiles: posterior summaries of each cluster of a reference partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from numpyro_rankings.components.family import AugmentedFamily, Family, with_auxiliary
from numpyro_rankings.families import Profile, RankingFamily, RankingProfile
from numpyro_rankings.families.base import Arrays, interval_of
from numpyro_rankings.ops.orderings import (
    certain_levels,
    level_items,
    majorities,
    times_above,
    wants_of_members,
)
from numpyro_rankings.posterior.draws import Draws, with_sizes
from numpyro_rankings.posterior.partitions import (
    as_draws,
    as_partition,
    evenly,
    found_again,
    match_clusters,
)
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.rankings import Orders, Rankings, check_rankings
from numpyro_rankings.rankings.weights import worth_of

HOLDS_ABOVE = 0.5  # share of the draws
_LEVEL_DRAWS = 1000  # draws that tell which items are level
_MEMBERS_DRAWS = 50  # draws over which the members of a cluster are counted


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionProfile(Profile):
    """Posterior summary of one cluster of points. Intervals hold 90% of the posterior.

    The first parameters are those of every cluster.

    :param cohesion: mean probability that two of its points share a cluster; for a single point,
        the probability that it is alone.
    """

    family: None = None
    cohesion: float


def holds(profile: Profile) -> bool:
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
    rankings: Rankings | Orders,
    reference: Any = None,
    *,
    sites: Mapping[str, str] | None = None,
    family: Family | None = None,
    key: Array | None = None,
) -> list[RankingProfile]:
    """Describe the clusters of a reference partition over all draws.

    In every draw the clusters are matched to those of the reference by greatest overlap, so that a
    cluster keeps its label although the labels of the draws switch.

    The kernels of partitions integrate out the parameters of the clusters. For their profiles these
    are drawn from the posterior given the members, once for each cluster of each draw.

    :param samples: a :class:`~numpyro_rankings.Run` or :class:`numpyro.infer.MCMC` that has run, or
        ``mcmc.get_samples()``, grouped by chain or not; of a kernel of this package, by itself or
        as a block.
    :param rankings: the rankings, partial orders or comparisons that were fitted. Where judges have
        survey weights, the sizes are N times the shares of the population, and the orders of
        members are weighted.
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
    if family is not None or not isinstance(rankings, Rankings | Orders):
        check_rankings(rankings)
    if family is not None and isinstance(rankings, Rankings):
        drawn = _with_drawn_parameters(drawn, rankings, family, key)
    drawn.check_family()
    drawn = drawn.with_rankings(rankings)
    rankings = drawn.given
    model, draws = drawn.family, drawn.flat()
    assert model is not None  # by the check
    if drawn.labels is None:
        return [_population(model, draws, rankings)]
    clusters = _Clusters(model, draws, rankings, reference)
    return sorted((clusters.profile(k) for k in clusters.labels), key=_by_size)


def _with_drawn_parameters(
    draws: Draws, rankings: Rankings, family: Family, key: Array | None
) -> Draws:
    """Return draws of a kernel of partitions with parameters of the clusters.

    They are drawn from their posterior given the members, and named as by the kernels of rankings.
    Points with unknown values, which come last, are left out.
    """
    samples = draws.samples
    if family.ranking_family is None:
        raise ValueError(
            f"{type(family).__name__} is no family of rankings, whose clusters have profiles: use "
            'partition_profiles(samples["assignments"])'
        )
    needed = ["assignments", *([family.site] if isinstance(family, AugmentedFamily) else [])]
    missing = [name for name in needed if name not in samples]
    if missing:
        raise ValueError(f"the samples have no {missing[0]!r}, which {type(family).__name__} needs")
    family.check(rankings)
    labels, size = samples["assignments"], rankings.num_rankings
    fitted = labels.shape[-1]
    if fitted < size or (fitted > size and draws.partition != "links"):
        raise ValueError(f"the run was of {fitted} rankings; these are {size}")
    labels = labels[..., :size]
    lead, slots = labels.shape[:-1], int(labels.max()) + 1
    by_draw = {"labels": labels.reshape(-1, size).astype(np.int32)}
    for name in needed[1:]:
        x = samples[name]
        if x.shape[:-1] != labels.shape:
            raise ValueError(f"the run was of {x.shape[-2]} rankings; these are {size}")
        by_draw[name] = x.reshape(-1, *x.shape[-2:])
    keys = jax.random.split(jax.random.key(0) if key is None else key, len(by_draw["labels"]))

    @jax.jit
    def each(keys: Array, draws: dict[str, Array], rankings: Rankings) -> dict[str, Array]:
        def one(inputs: tuple[Array, dict[str, Array]]) -> dict[str, Array]:
            key, draw = inputs
            points = family.statistics(with_auxiliary(family, rankings, draw))
            clusters = family.of_clusters(points, draw["labels"], slots)
            return family.draw_ranking_parameters(key, clusters)

        return jax.lax.map(one, (keys, draws))

    drawn = each(keys, {k: jnp.asarray(x) for k, x in by_draw.items()}, rankings)
    parameters = {name: np.asarray(x).reshape(*lead, *x.shape[1:]) for name, x in drawn.items()}
    return Draws.of_kernel(with_sizes({"assignments": labels, **parameters}), None, rankings)


def _by_size(profile: Profile) -> float:
    return -profile.mean_size


def _population(
    model: RankingFamily, draws: dict[str, np.ndarray], rankings: Rankings | Orders
) -> RankingProfile:
    """Describe the only population, to which all rankings belong."""
    parameters = {name: draws[name] for name in model.parameters}
    size, members = np.array([rankings.num_rankings]), np.arange(rankings.num_rankings)
    common = Profile(family=model, **_sizes(0, size, 1, members))
    amounts = worth_of(rankings, np.asarray(rankings.counts, float))
    return _describe(common, parameters, model.entropies(parameters), rankings, amounts)


def _sizes(label: int, sizes: np.ndarray, num_again: int, members: np.ndarray) -> dict[str, Any]:
    """Return the fields of a profile that tell of the size of a cluster.

    :param sizes: in all draws, (D,), 0 in those in which none is matched to it.
    :param num_again: the number of draws in which it is found again.
    """
    known = sizes[sizes > 0]
    return {
        "label": label,
        "presence": num_again / len(sizes),
        "matched": len(known) / len(sizes),
        "size": float(known.mean()) if len(known) else 0.0,
        "size_interval": interval_of(known) if len(known) else (0.0, 0.0),
        "members": members,
        "interval_over_all": interval_of(sizes),
    }


class _Clusters:
    """The clusters of a reference partition, and those of the draws that are matched to them."""

    def __init__(
        self,
        model: RankingFamily,
        draws: dict[str, np.ndarray],
        rankings: Rankings | Orders,
        reference: Any,
    ) -> None:
        self.model, self.draws, self.rankings = model, draws, rankings
        self.reference = reference_partition(draws["assignments"], reference).labels
        self.labels: list[int] = np.unique(self.reference).tolist()
        self.matched = match_clusters(draws["assignments"], self.reference)
        self.again = found_again(draws["assignments"], self.reference, self.matched)
        self.sizes = draws["cluster_sizes"]
        if rankings.weights is not None:  # the judges are not a sample of equal chances
            self.sizes = draws["shares"] * rankings.num_rankings
        self.entropies = self._entropies()

    def _entropies(self) -> tuple[np.ndarray, float] | None:
        """Return the entropy of each cluster that is matched, (D, C), and the largest possible."""
        # all at once: each number of clusters would be another compiled program
        draw, slot = np.nonzero(self.matched >= 0)
        known = self.model.entropies(self._parameters(draw, slot))
        if known is None:
            return None
        entropies = np.full(self.matched.shape, np.nan)
        entropies[draw, slot] = known[0]
        return entropies, known[1]

    def _parameters(self, draw: np.ndarray, slot: np.ndarray) -> Arrays:
        return {name: self.draws[name][draw, slot] for name in self.model.parameters}

    def profile(self, label: int) -> RankingProfile:
        """Describe one cluster over the draws in which one is matched to it."""
        draw, slot = np.nonzero(self.matched == label)
        if not len(draw):
            raise ValueError(
                f"cluster {label} of the reference partition is found in no draw: leave the "
                "reference out, or merge this cluster with another"
            )
        sizes = np.zeros(len(self.matched), self.sizes.dtype)
        sizes[draw] = self.sizes[draw, slot]
        members, num_again = np.flatnonzero(self.reference == label), self.again[draw, slot].sum()
        common = Profile(family=self.model, **_sizes(label, sizes, int(num_again), members))
        entropies = None
        if self.entropies is not None:
            entropies = self.entropies[0][draw, slot], self.entropies[1]
        amounts = _members_by_row(self.draws["assignments"], draw, slot, self.rankings)
        return _describe(common, self._parameters(draw, slot), entropies, self.rankings, amounts)


def _describe(
    common: Profile,
    parameters: Arrays,
    entropies: tuple[np.ndarray, float] | None,
    rankings: Rankings | Orders,
    amounts: np.ndarray,
) -> RankingProfile:
    """Add to a profile what is known of clusters of rankings.

    :param parameters: of the cluster in the draws that have it, as are **entropies**.
    :param amounts: number of members of each row, (rows,).
    """
    model, names = common.family, [str(name) for name in rankings.items]
    assert model is not None
    consensus = model.consensus(parameters)
    above = times_above(rankings, amounts, consensus)
    levels, pairs = wants_of_members(above, consensus).named(names)
    entropy, agreement = float("nan"), majorities(above)
    if entropies is not None:
        entropy = float(entropies[0].mean())
        agreement = 1 - entropy / entropies[1]
    orderings = model.orderings(parameters)
    some = orderings[evenly(len(orderings), _LEVEL_DRAWS)]
    certain, level = certain_levels(orderings, consensus), level_items(some, consensus)
    of_rankings = RankingProfile(
        **vars(common),
        consensus=tuple(names[i] for i in consensus),
        consensus_ordering=consensus,
        entropy=entropy,
        agreement=agreement,
        levels=levels,
        clear_pairs=pairs,
        certain=tuple(tuple(names[i] for i in level) for level in certain),
        level=tuple(tuple(names[i] for i in items) for items in level),
    )
    return model.profile(of_rankings, parameters)


def _members_by_row(
    labels: np.ndarray, draw: np.ndarray, slot: np.ndarray, rankings: Rankings | Orders
) -> np.ndarray:
    """Return how many rankings of each row are in a cluster, the mean over some draws, (rows,).

    :param draw: the draws that have the cluster, and **slot**, its label there.
    """
    rows = np.asarray(rankings.row_index)
    some, amounts = evenly(len(draw), _MEMBERS_DRAWS), np.zeros(rankings.num_rows)
    for k in some:
        amounts += np.bincount(rows[labels[draw[k]] == slot[k]], minlength=len(amounts))
    return worth_of(rankings, amounts / len(some))


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
    num_again = np.bincount(matched[again], minlength=number).tolist()
    sizes_by_draw = np.zeros((len(matched), number), np.int32)  # 0 where none is matched
    for draw, (labels, names) in enumerate(zip(assignments, matched, strict=True)):
        known = np.flatnonzero(names >= 0)
        sizes = np.bincount(labels, minlength=len(names))
        sizes_by_draw[draw, names[known]] = sizes[known]
    probability = membership_probability(assignments, reference)
    profiles = []
    for k, column in enumerate(sizes_by_draw.T):
        members = np.flatnonzero(reference == k)
        cohesion = float(probability[members].mean())
        sizes_of_k = _sizes(k, column, num_again[k], members)
        profiles.append(PartitionProfile(cohesion=cohesion, **sizes_of_k))
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
