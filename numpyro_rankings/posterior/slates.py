"""How the judges of each group divide their places among slates of items: cohesion and crossover.

The numbers are those that the generators of VoteKit [1] take. In its slate-Plackett–Luce model
each place of a ballot goes to slate s with probability :math:`h_{bs}`, the *cohesion parameter* of
bloc b for s, as long as all slates have candidates left; the names within a slate follow the
*preference interval* of the bloc. The *cohesion* of a bloc is the parameter for its own slate, and
its *crossover* the rest. For its Cambridge sampler and its name-Plackett–Luce model the parameter
is the share of the first places alone.

The places are counted on the ballots of the members in each draw, up to the one at which a slate is
used up: after it the choice is among other slates. They stop at a moment that the ballot itself
tells, so that the shares of the places are the estimates of greatest likelihood. Their uncertainty
is that of who the members are, over the draws, and that of so many ballots: each ballot has a
random weight (the Bayesian bootstrap [2]), because the places of one ballot are not independent,
and each slate half a place more. For first places this is the Dirichlet posterior of Jeffreys'
prior. All intervals are those of a sample of so many judges, given the fitted model: where it does
not hold, some judges are in the wrong groups, and the intervals do not tell so.

**References**

1. VoteKit, ``BlocSlateConfig`` and ``slate_pl_profile_generator``, Metric Geometry and
   Gerrymandering Group, https://github.com/mggg/VoteKit (version 3.5).
2. *The Bayesian bootstrap*, D. B. Rubin (Annals of Statistics, 1981).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.families._plackett_luce_fit import WeightsFit
from numpyro_rankings.families.base import INTERVAL, interval_of
from numpyro_rankings.posterior.blocs import Blocs
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import evenly, match_clusters
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.rankings import (
    Comparisons,
    Orders,
    PartialOrders,
    Rankings,
    RankingsError,
    check_rows,
    refuse_weights,
)
from numpyro_rankings.words import listed

_DRAWS, _ROUNDS = 500, 60  # draws that intervals are over, and rounds of the fit within a slate
_PRIOR = 0.5  # places that each slate has more


class Slates(NamedTuple):
    """What each of K groups, or blocs, does with S slates of n items. Intervals hold about 90%.

    - **slates** - their names, in the order in which the items have them first.
    - **share** - share of the judges, the mean over all draws, (K,), as in ``clusters.csv`` and
      ``blocs.csv``, and **share_interval**, (K, 2): of all of whom these judges are a sample.
    - **support** - share of the places that go to each slate, (K, S), the cohesion parameters of
      VoteKit, and **support_interval**, (K, S, 2).
    - **first** - share of the first places, (K, S), and **first_interval**.
    - **preference** - how the choices within each slate fall on its items, (K, n); those of one
      slate add up to 1.
    - **items** - their names, and **slate_of_items**, their slates as numbers, (n,).
    - **num_judges** - how many there are.
    """

    slates: tuple[str, ...]
    share: np.ndarray
    share_interval: np.ndarray
    support: np.ndarray
    support_interval: np.ndarray
    first: np.ndarray
    first_interval: np.ndarray
    preference: np.ndarray
    items: tuple[str, ...]
    slate_of_items: np.ndarray
    num_judges: int

    @property
    def own(self) -> np.ndarray:
        """The slate with most of the places of each group, (K,)."""
        return self.support.argmax(1)

    @property
    def cohesion(self) -> np.ndarray:
        """Share of the places of each group that go to its own slate, (K,)."""
        return self.support.max(1)

    @property
    def cohesion_interval(self) -> np.ndarray:
        """Interval of the cohesion, (K, 2)."""
        return self.support_interval[np.arange(len(self.own)), self.own]

    @property
    def crossover(self) -> np.ndarray:
        """Share of the places of each group that go to other slates, (K,)."""
        return 1.0 - self.cohesion

    @property
    def crossover_interval(self) -> np.ndarray:
        """Interval of the crossover, (K, 2)."""
        return 1.0 - self.cohesion_interval[:, ::-1]

    def take(self, groups: Any) -> "Slates":
        """Return that of some of the groups, in some order."""
        of_groups = {
            name: x[groups]
            for name, x in self._asdict().items()
            if isinstance(x, np.ndarray) and name != "slate_of_items"
        }
        return self._replace(**of_groups)

    def to_votekit(self, noun: str = "group") -> dict[str, Any]:
        """Return the arguments of VoteKit's ``BlocSlateConfig``, which can be saved as JSON.

        Blocs have the names of their own slates, as the Cambridge sampler wants it, if each has
        another one, and else are ``group 1``, ``group 2``, …. Their shares are made to add up to 1.
        Candidates have the names of ``names_for_votekit``; those of slates are as they are.

        :param noun: what a group is called.
        """
        own = [self.slates[k] for k in self.own]
        numbered = [f"{noun} {k + 1}" for k in range(len(own))]
        names = own if len(set(own)) == len(own) else numbered
        places = {s: np.flatnonzero(self.slate_of_items == k) for k, s in enumerate(self.slates)}
        items = names_for_votekit(self.items)
        return {
            "n_voters": self.num_judges,
            "bloc_proportions": _by_name(names, self.share),
            "slate_to_candidates": {s: [items[i] for i in x] for s, x in places.items()},
            "preference_mapping": {
                name: {s: _by_name([items[i] for i in x], of_group[x]) for s, x in places.items()}
                for name, of_group in zip(names, self.preference, strict=True)
            },
            "cohesion_mapping": {
                name: _by_name(self.slates, of_group)
                for name, of_group in zip(names, self.support, strict=True)
            },
        }


def names_for_votekit(items: Sequence[str]) -> list[str]:
    """Return names of candidates that VoteKit allows, each another one.

    It allows no ``:`` in a name, and neither ``~`` nor the names of its own columns, ``Ranking_1``
    and so on, and takes off blanks at the ends.
    """
    found: list[str] = []
    for item in items:
        name = item.replace(":", "-").strip()
        name = f"({name})" if re.fullmatch(r"~|Ranking_\d+|", name) else name
        taken = {*found, *items} - {item}
        endings = ["", *(f" ({k})" for k in range(2, len(items) + 2))]
        found.append(next(x for end in endings if (x := f"{name}{end}") not in taken))
    return found


def _by_name(names: Any, values: np.ndarray) -> dict[str, float]:
    return dict(zip(names, (values / values.sum()).tolist(), strict=True))


def check_slates(items: Any, slates: Mapping[str, str], where: str = "slates") -> None:
    """Refuse slates that are not of these items, and a single slate.

    :raises RankingsError: naming the items.
    """
    items = list(map(str, items))
    for which, of_which in (
        ("are no items of the rankings", [x for x in slates if x not in items]),
        ("have no slate", [x for x in items if not slates.get(x)]),
    ):
        if of_which:
            named = listed([repr(x) for x in of_which[:3]] + ["others"] * (len(of_which) > 3))
            which = which if len(of_which) > 1 else which.replace("are no items", "is no item")
            which = which if len(of_which) > 1 else which.replace("have", "has")
            raise RankingsError(f"{where}: {named} {which}; the items are {', '.join(items[:20])}")
    if len(set(slates.values())) < 2:
        raise RankingsError(f"{where}: all items are in one slate, and there must be two or more")


def slates_of(
    draws: Any,
    rankings: Rankings | Orders,
    slates: Mapping[str, str],
    reference: Any = None,
    *,
    blocs: Blocs | None = None,
    seed: int = 0,
) -> Slates:
    """Return the share, cohesion and crossover of each group, or bloc, with intervals.

    :mod:`numpyro_rankings.posterior.slates` says how they are defined, and where VoteKit has them.
    Tied items share their places.

    :param draws: as for :func:`~numpyro_rankings.cluster_profiles`; of one population there is one
        group.
    :param rankings: the rankings that were fitted, or partial orders that are orders with ties.
    :param slates: the slate of each item.
    :param reference: the partition whose clusters are the groups, as for
        :func:`~numpyro_rankings.cluster_profiles`; they are in the order of its labels. The
        clusters of the draws are matched to them.
    :param blocs: those of :func:`~numpyro_rankings.find_blocs`, to have the blocs for groups.
    :param seed: of the random weights.
    :raises ValueError: if an item has no slate, if a slate names another item, if all are in one
        slate, or if the draws are of other rankings.

    .. doctest::

       >>> from numpyro_rankings import Rankings
       >>> rankings = Rankings.from_orderings([[0, 1], [2, 3]], items=list("abcd"), counts=[30, 10])
       >>> draws = {"weights": np.full((1, 4), 0.25), "log_joint": np.zeros(1)}
       >>> found = slates_of(draws, rankings, {"a": "X", "b": "X", "c": "Y", "d": "Y"})
       >>> found.cohesion.round(2).tolist(), found.first_interval[0, 0].round(1).tolist()
       ([0.75], [0.6, 0.8])
    """
    check_rows(rankings, takes_comparisons=True)
    refuse_weights(rankings, "slates_of")
    check_slates(rankings.items, slates)
    levels = levels_of(rankings)
    drawn = Draws.of(draws).with_rankings(rankings)
    items = tuple(map(str, rankings.items))
    names, of_items = _slate_of_items(rankings, slates)
    places, firsts = _places(levels, rankings, of_items == np.arange(len(names))[:, None])
    patterns, of_rows = np.unique(np.hstack([places, firsts]), axis=0, return_inverse=True)
    of_rows, rng = of_rows.ravel(), np.random.default_rng(seed)
    members = members_of(drawn, rankings, reference, blocs, rng)
    amounts: Any = 0.0
    sizes, shares = [], []
    for of_draw in members:
        amounts, number = amounts + of_draw, of_draw.sum(0)
        sizes.append(number)
        counts = np.stack([np.bincount(of_rows, x, len(patterns)) for x in of_draw.T])
        weighted = rng.standard_gamma(counts) @ patterns
        weighted += rng.standard_gamma(_PRIOR, weighted.shape)
        both = weighted.reshape(len(number), 2, len(names))
        both /= both.sum(2, keepdims=True)
        shares.append(np.where(number[:, None, None] > 0, both, np.nan))  # without a match
    of_all = np.stack(shares)
    bounds = np.moveaxis(np.nanquantile(of_all, INTERVAL, axis=0), 0, -1)
    total, mean = rankings.num_rankings, np.nanmean(of_all, axis=0)
    share = np.stack(sizes) / total
    drawn_share = rng.standard_gamma(np.column_stack([share, 1 - share.sum(1)]).clip(0) * total)
    drawn_share /= drawn_share.sum(1, keepdims=True)
    if blocs is not None:
        share = np.array([[x.size for x in blocs.blocs]]) / total
    return Slates(
        names,
        share.mean(0),
        np.array([interval_of(x) for x in drawn_share.T[:-1]]),
        mean[:, 0],
        bounds[:, 0],
        mean[:, 1],
        bounds[:, 1],
        _preference(levels, rankings, of_items, amounts / len(sizes), rng),
        items,
        of_items,
        total,
    )


def _slate_of_items(
    rankings: Rankings | Orders, slates: Mapping[str, str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the slates, in the order of the items, and that of each item, (n,)."""
    names = tuple(dict.fromkeys(slates[str(x)] for x in rankings.items))
    return names, np.array([names.index(slates[str(x)]) for x in rankings.items])


def firsts_of(
    rankings: Rankings | Orders, slates: Mapping[str, str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of S slates, and their shares of the first place of each row, (rows, S).

    They add up to 1, or are all 0 where a row has no choice among slates.
    """
    names, of_items = _slate_of_items(rankings, slates)
    in_slates = of_items == np.arange(len(names))[:, None]
    return names, _places(levels_of(rankings), rankings, in_slates)[1]


def levels_of(rankings: Rankings | Orders) -> np.ndarray:
    """Return the place of each item, from 0 on, which tied items share; -1 if not listed.

    :raises RankingsError: of pairs that were compared.
    """
    if isinstance(rankings, Rankings):
        return np.nan_to_num(rankings.to_ranks()).astype(int) - 1
    if isinstance(rankings, Comparisons) or not np.asarray(rankings.are_buckets).all():
        raise RankingsError("slates need lists of items: pairs that were compared have no places")
    return np.asarray(rankings.levels_of_items()).astype(int)


def _offered(rankings: Rankings | Orders) -> np.ndarray:
    offered, shape = rankings.offered(), (rankings.num_rows, rankings.num_items)
    return np.ones(shape, bool) if offered is None else np.asarray(offered)


def _places(
    levels: np.ndarray, rankings: Rankings | Orders, in_slates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of each row that go to each slate, (rows, S), and its first place.

    :param in_slates: which items a slate has, (S, n).
    """
    left = _offered(rankings).astype(float) @ in_slates.T
    places, first = np.zeros((2, *left.shape))
    for level in range(levels.max() + 1):
        here = (levels == level) @ in_slates.T.astype(float)
        # no choice is left of slates that a level uses up together
        is_choice = (left > 0).all(1) & (((here == left) & (left > 0)).sum(1) < 2)
        if level == 0:
            first = here / np.maximum(here.sum(1, keepdims=True), 1.0)
            first[~is_choice] = 0.0
        places += here * is_choice[:, None]
        left -= here
    return places, first


def members_of(
    draws: Draws,
    rankings: Rankings | Orders,
    reference: Any,
    blocs: Blocs | None,
    rng: np.random.Generator,
    cells: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Yield how many judges of each row, or cell, are in each group in a draw, (cells, K).

    A group that no draw has, which is none that holds, keeps its judges of the reference.

    :param cells: the cell of each judge, (N,), where those of one row are in several.
    """
    rows, labels = np.asarray(rankings.row_index), draws.labels
    counts = np.bincount(rows, minlength=rankings.num_rows) if cells is None else np.bincount(cells)
    cells = rows if cells is None else cells
    if blocs is not None:
        row_of_cell = np.zeros(len(counts), int)
        row_of_cell[cells] = rows
        membership = (blocs.membership / blocs.membership.sum(1, keepdims=True))[row_of_cell]
        for _ in range(_DRAWS):
            yield rng.multinomial(counts, membership)
    elif labels is None:
        for _ in range(_DRAWS):
            yield counts[:, None]
    else:
        flat = labels.reshape(-1, labels.shape[-1])
        chosen = reference_partition(labels, reference).labels
        flat, number = flat[evenly(len(flat), _DRAWS)], int(chosen.max()) + 1
        matched = np.take_along_axis(match_clusters(flat, chosen), flat.astype(int), axis=1)
        is_lone = ~np.isin(chosen, matched)
        for of_draw in matched:
            groups = np.where(is_lone, chosen, of_draw)
            found = cells[groups >= 0] * number + groups[groups >= 0]
            yield np.bincount(found, minlength=len(counts) * number).reshape(-1, number)


def _preference(
    levels: np.ndarray,
    rankings: Rankings | Orders,
    of_items: np.ndarray,
    amounts: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return Plackett–Luce weights of the items within each slate, (K, n).

    Tied items of a slate are in a random order.
    """
    offered, found = _offered(rankings), np.ones((amounts.shape[1], len(of_items)))
    ties = rng.random(levels.shape) if isinstance(rankings, PartialOrders) else 0.0
    keys = np.where(levels >= 0, levels + ties, np.inf)
    for slate in range(of_items.max() + 1):
        items = np.flatnonzero(of_items == slate)
        rows = np.flatnonzero((keys[:, items] < np.inf).any(1))
        if len(items) == 1 or not len(rows):
            found[:, items] = 1 / len(items)
            continue
        within = keys[np.ix_(rows, items)]
        order = np.argsort(within, axis=1)
        lists = np.where(np.take_along_axis(within, order, 1) < np.inf, order, -1)
        fit = WeightsFit(
            Rankings.from_orderings(
                lists, num_items=len(items), choice_sets=offered[np.ix_(rows, items)]
            ),
            False,
        )
        sums = fit.sums(fit.cells.of_cells @ amounts[rows])
        weights = np.full((amounts.shape[1], len(items)), 1 / len(items))
        for _ in range(_ROUNDS):
            weights = fit.fit_sums(weights, *sums)
        found[:, items] = weights
    return found
