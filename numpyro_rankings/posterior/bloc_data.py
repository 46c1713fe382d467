"""Draws of a mixture as the search for blocs reads them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.weighted_fit import Parameters
from numpyro_rankings.posterior.bloc_search import BlocComponents, BlocFit, BlocSearch, normalised
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import partition_entropy
from numpyro_rankings.rankings import Rankings


def read_draws(source: Any, rankings: Rankings) -> Draws:
    """Return draws of a mixture, with the rankings of the items that were fitted.

    :raises ValueError: if they are not of a mixture of these rankings, or no kernel draws them.
    """
    draws = Draws.of(source)
    if draws.labels is None and draws.sizes is not None:
        raise ValueError("the data have no assignments: use include_assignments=True")
    family = draws.check_family()
    if draws.labels is None:
        raise ValueError("the draws are of one population, which has no blocs")
    if draws.sizes is None:
        raise ValueError("the draws have no cluster_sizes")
    _check_shapes(draws, family)
    draws = draws.with_rankings(rankings)
    _check_values(draws, family)
    return draws


def _check_shapes(draws: Draws, family: RankingFamily) -> None:
    """Refuse sites whose numbers of chains, draws or clusters differ."""
    each, slots = draws.samples["assignments"].shape[:2], (draws.num_slots,)
    for name in ("assignments", "cluster_sizes", *family.parameters):
        shape = draws.samples[name].shape
        expected = each if name == "assignments" else (*each, *slots)
        ndim = 4 if name in family.axes else 3
        if len(shape) != ndim or shape[: len(expected)] != expected:
            raise ValueError(
                f"{name} must be of as many chains, draws and clusters as the other sites, "
                f"{(*each, *slots)}; its shape is {shape}"
            )


def _check_values(draws: Draws, family: RankingFamily) -> None:
    """Refuse values that no kernel draws, of clusters in use; empty slots may hold anything."""
    flat, slots = draws.flat(), draws.num_slots or 0
    labels = flat["assignments"]
    used = np.zeros((len(labels), slots), bool)
    for of_draw, in_use in zip(labels, used, strict=True):  # all at once would take much memory
        bad = (of_draw < 0) | (of_draw >= slots)
        if labels.dtype.kind == "f":
            bad |= of_draw != np.floor(of_draw)  # NaN too
        if bad.any():
            raise ValueError(f"assignments must be from 0 to {slots - 1}, got {of_draw[bad][0]}")
        in_use[of_draw.astype(np.intp)] = True
    assert draws.rankings is not None
    family.check_parameters({name: flat[name][used] for name in family.parameters}, draws.rankings)


class DrawnSizes(NamedTuple):
    """What draws say: **log_density** of the rankings, (draws,), and sizes of blocs.

    - **sizes** - of the blocs of all levels, one after the other, (draws, blocs).
    """

    log_density: np.ndarray
    sizes: np.ndarray


class BlocData:
    """Draws, and the rankings that they describe, see ``read_draws``."""

    def __init__(self, draws: Draws) -> None:
        rankings, family = draws.rankings, draws.check_family()
        assert rankings is not None
        self.draws, self.rankings, self._family = draws, rankings, family
        # the distinct row of each given row, and of each ranking
        distinct, self.row_of_given = rankings.merged()
        self.row_index = self.row_of_given[np.asarray(rankings.row_index)]
        self.search = BlocSearch(distinct, family)
        self.counts = self.search.counts

    def choose(self, number: int) -> list[tuple[int, int]]:
        """Return chains and draws, about so many and at least one of each chain, evenly spaced."""
        chains, draws = self.draws.num_chains, self.draws.num_draws
        each = min(-(-number // chains), draws)
        places = ((np.arange(each) + 0.5) * draws / each).astype(int)
        return [(chain, int(place)) for chain in range(chains) for place in places]

    def _groups(self, chain: int, draw: int) -> tuple[csr_array, Parameters]:
        """Return the rankings of each row in each group, (rows, C), and the groups' parameters."""
        labels = self.draws.samples["assignments"][chain, draw].astype(np.int64)
        used, labels = np.unique(labels, return_inverse=True)
        entries = np.ones(len(labels)), (self.row_index, labels)
        table = csr_array(entries, shape=(len(self.counts), len(used)))
        names = self._family.parameters
        sites = {name: self.draws.samples[name][chain, draw][used] for name in names}
        return table, self.search.model.parameters_of(sites)

    def merge(self, chain: int, draw: int, most: int) -> dict[int, BlocComponents]:
        """Merge the groups of a draw."""
        table, parameters = self._groups(chain, draw)
        amounts = (self.search.model.cells.of_cells @ table).toarray()
        return self.search.merge(parameters, amounts, table.sum(0), most)

    def best_of_one(self, merged: list[dict[int, BlocComponents]]) -> BlocFit:
        """Return the one population that describes the rankings best."""
        fits = (self.search.climb(x[1]) for x in merged)
        return self.search.settle(max(fits, key=lambda fit: fit.objective))

    def belongings(self, chain: int, draw: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the log density of the rankings under a draw, and who is in its groups.

        :return: the log density, the sizes of the groups, (C,), and the expected number of rankings
            of each row in each group, given the parameters of the draw, (rows, C).
        """
        table, parameters = self._groups(chain, draw)
        sizes = table.sum(0)
        log_shares = np.log(sizes / sizes.sum())
        log_table = self.search.log_table(BlocComponents(log_shares, parameters))
        log_density, belonging = normalised(log_table)
        belonging *= self.counts[:, None]
        return float(np.sum(self.counts * log_density)), sizes, belonging

    def sizes(self, draws: list[tuple[int, int]], fits: list[BlocFit]) -> DrawnSizes:
        """Return what draws say about blocs.

        The share of a bloc under a draw is the mean probability of the bloc over rankings from the
        mixture of the draw: of those of each group, the mean over the rankings that were fitted.
        """
        memberships = np.concatenate([fit.membership for fit in fits], axis=1)
        log_density, of_blocs = [], []
        for draw in draws:
            value, sizes, belonging = self.belongings(*draw)
            expected = np.maximum(belonging.sum(0), np.finfo(float).tiny)
            log_density.append(value)
            of_blocs.append((sizes / expected) @ np.einsum("rc,rk->ck", belonging, memberships))
        return DrawnSizes(np.array(log_density), np.array(of_blocs))

    def distance(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the variation of information of the rankings, given labels of their rows."""
        number = int(max(a.max(), b.max())) + 1
        table = np.bincount(a * number + b, self.counts, number**2).reshape(number, number)
        parts = table.sum(1), table.sum(0)
        difference = 2 * partition_entropy(table.ravel()) - sum(map(partition_entropy, parts))
        return max(0.0, float(difference))
