"""Draws of a mixture as the search for blocs reads them."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from numpyro_rankings.families import RankingFamily, family_of
from numpyro_rankings.families.weighted_fit import Parameters
from numpyro_rankings.posterior.bloc_search import BlocComponents, BlocFit, BlocSearch, normalised
from numpyro_rankings.posterior.diagnostics import posterior_of
from numpyro_rankings.posterior.partitions import partition_entropy
from numpyro_rankings.posterior.samples import check_draws, check_samples, fitted_items
from numpyro_rankings.rankings import Rankings

_MIXTURE = "assignments", "cluster_sizes"


def family_of_draws(sites: Collection[str]) -> RankingFamily:
    """Return the likelihood of draws of rankings."""
    family = family_of(sites)
    assert family is not None, "the draws are checked before"
    return family


def samples_by_chain(draws: Any) -> dict[str, np.ndarray]:
    """Return the sites of a mixture, (chains, draws, …)."""
    if hasattr(draws, "__contains__") and "posterior" in draws:
        posterior = posterior_of(draws)
        draws = {name: posterior[name].values for name in _needed(posterior)}
        if "cluster_sizes" in draws and "assignments" not in draws:
            raise ValueError("the data have no assignments: use include_assignments=True")
    check_draws(draws)
    check_samples(draws)
    if "assignments" not in draws:
        raise ValueError("the draws are of one population, which has no blocs")
    samples = {name: np.asarray(draws[name]) for name in _needed(draws)}
    if samples["assignments"].ndim == 2:
        samples = {name: x[None] for name, x in samples.items()}
    _check_shapes(samples)
    return samples


def _needed(sites: Collection[str]) -> list[str]:
    family = family_of(sites)
    names = _MIXTURE if family is None else (*_MIXTURE, *family.parameters)
    return [name for name in names if name in sites]


def _check_shapes(samples: Mapping[str, np.ndarray]) -> None:
    """Refuse sites whose numbers of chains, draws or clusters differ."""
    if "cluster_sizes" not in samples:
        raise ValueError("the draws have no cluster_sizes")
    family = family_of_draws(samples)
    each, slots = samples["assignments"].shape[:2], samples[family.parameters[0]].shape[2:3]
    for name, x in samples.items():
        expected = each if name == "assignments" else (*each, *slots)
        ndim = 3 if name in (*_MIXTURE, *family.scalars) else 4
        if x.ndim != ndim or x.shape[: len(expected)] != expected:
            raise ValueError(
                f"{name} must be of as many chains, draws and clusters as the other sites, "
                f"{(*each, *slots)}; its shape is {x.shape}"
            )


def _check_values(flat: Mapping[str, np.ndarray], rankings: Rankings) -> None:
    """Refuse values that no kernel draws, of clusters in use; empty slots may hold anything.

    :param flat: the sites, (draws, …).
    :param rankings: of the items that were fitted.
    """
    labels, slots = flat["assignments"], flat["cluster_sizes"].shape[-1]
    used = np.zeros((len(labels), slots), bool)
    for of_draw, in_use in zip(labels, used, strict=True):  # all at once would take much memory
        bad = (of_draw < 0) | (of_draw >= slots)
        if labels.dtype.kind == "f":
            bad |= of_draw != np.floor(of_draw)  # NaN too
        if bad.any():
            raise ValueError(f"assignments must be from 0 to {slots - 1}, got {of_draw[bad][0]}")
        in_use[of_draw.astype(np.intp)] = True
    family = family_of_draws(flat)
    family.check_parameters({name: flat[name][used] for name in family.parameters}, rankings)


class DrawnSizes(NamedTuple):
    """What draws say: **log_density** of the rankings, (draws,), and sizes of blocs.

    - **sizes** - of the blocs of all levels, one after the other, (draws, blocs).
    """

    log_density: np.ndarray
    sizes: np.ndarray


class BlocData:
    """Draws, and the rankings that they describe.

    :param samples: see ``samples_by_chain``.
    :param rankings: of the items that were fitted.
    """

    def __init__(self, samples: Mapping[str, np.ndarray], rankings: Rankings) -> None:
        self.samples, self.rankings = samples, rankings
        self._family = family_of_draws(samples)
        # the distinct row of each given row, and of each ranking
        distinct, self.row_of_given = rankings.merged()
        self.row_index = self.row_of_given[np.asarray(rankings.row_index)]
        self.search = BlocSearch(distinct, self._family)
        self.counts = self.search.counts

    @property
    def num_chains(self) -> int:
        """The number of chains."""
        return len(self.samples["assignments"])

    def choose(self, number: int) -> list[tuple[int, int]]:
        """Return chains and draws, about so many and at least one of each chain, evenly spaced."""
        chains, draws = self.samples["assignments"].shape[:2]
        each = min(-(-number // chains), draws)
        places = ((np.arange(each) + 0.5) * draws / each).astype(int)
        return [(chain, int(place)) for chain in range(chains) for place in places]

    def _groups(self, chain: int, draw: int) -> tuple[csr_array, Parameters]:
        """Return the rankings of each row in each group, (rows, C), and the groups' parameters."""
        labels = self.samples["assignments"][chain, draw].astype(np.int64)
        used, labels = np.unique(labels, return_inverse=True)
        entries = np.ones(len(labels)), (self.row_index, labels)
        table = csr_array(entries, shape=(len(self.counts), len(used)))
        names = self._family.parameters
        sites = {name: self.samples[name][chain, draw][used] for name in names}
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


def read_draws(draws: Any, rankings: Rankings) -> tuple[dict[str, np.ndarray], Rankings]:
    """Return the sites of a mixture by chain, and the rankings of the items that were fitted."""
    samples = samples_by_chain(draws)
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in samples.items()}
    fitted = fitted_items(flat, rankings)
    _check_values(flat, fitted)
    return samples, fitted
