"""The generalized Mallows model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln
from jax.typing import ArrayLike

from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.distributions.mallows import log_prob_of_places
from numpyro_rankings.families._mallows_fit import MallowsFit, fit_lists, largest_entropy
from numpyro_rankings.families.base import (
    INTERVAL,
    Arrays,
    CenterProfile,
    OrdersT,
    RankingFamily,
    RankingProfile,
    SiteAxes,
    check_not_negative,
    columns_with_interval,
    num_sets,
    register_family,
)
from numpyro_rankings.families.scored import ScoredOrders
from numpyro_rankings.families.weighted_fit import WeightedFit
from numpyro_rankings.ops.codes import (
    inverse_ordering,
    max_codes,
    ordering_from_codes,
    stage_codes,
)
from numpyro_rankings.ops.orderings import borda_ordering, kendall_distance
from numpyro_rankings.ops.sampling import sample_truncated_geometric
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.rankings import Rankings, num_stages
from numpyro_rankings.rankings.rows import Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterProfile(CenterProfile):
    """Posterior summary of one cluster of rankings under a Mallows model.

    Intervals hold 90% of the posterior. The first parameters are those of every cluster of
    rankings, and of every one with orderings, which are the centers: **consensus** is the CP
    consensus, and **entropy** the mean entropy of a list of ``T`` places from the cluster, in
    nats. **agreement** is 1 minus the ratio of that entropy to that of uniform lists.

    :param concentration: mean θ of each stage, shape ``(T,)``.
    :param concentration_interval: shape ``(T, 2)``.
    """

    concentration: np.ndarray
    concentration_interval: np.ndarray

    def columns(self) -> dict[str, str]:
        columns = super().columns()
        by_stage = zip(self.concentration, self.concentration_interval, strict=True)
        for stage, (mean, interval) in enumerate(by_stage, 1):
            columns |= columns_with_interval(f"theta_{stage}", mean, interval)
        return columns

    def strength(self) -> str:
        low, high = self.concentration_interval[0]
        mean = self.concentration[0]
        return f"θ of stage 1 is {mean:.2f}, 90% interval {low:.2f}–{high:.2f}"


_CODES_AT_ONCE = 2**24  # entries of the largest array: T² for each list and cluster


class Mallows(RankingFamily):
    """Generalized Mallows models: a center, and a concentration for each stage."""

    name = "mallows"
    parameters = ("center", "concentration")
    title = "Mallows"
    sections = ("concentrations", "orders")

    # -- likelihood ----------------------------------------------------------------------------

    axes: ClassVar[SiteAxes] = {"center": ("place",), "concentration": ("stage",)}
    has_marginal = True
    scores_orders = True
    continues_lists = True
    leaves_out_unused = True
    needs_reference = True
    block_variables = ("rank",)

    def log_rows(self, draw: Mapping[str, Array], orderings: Array, offered: Array | None) -> Array:
        """Return the log probability of lists in every cluster of one draw, (C, rows)."""
        num_rows, (slots, num_stages) = len(orderings), draw["concentration"].shape
        at_once = _CODES_AT_ONCE // max(1, slots * num_stages**2)
        lists = stage_orderings(orderings, num_stages)
        table = log_cluster_likelihood(
            lists, draw["center"], draw["concentration"], int(np.clip(at_once, 1, num_rows))
        )
        return table.T

    def prepared(self, orders: OrdersT) -> OrdersT:
        """List all items in each row, unless all were offered: the others may be anywhere."""
        return orders if orders.offered() is None else orders.of_all_items()

    def log_orders(self, draw: Mapping[str, Array], orders: ScoredOrders) -> Array:
        """Return the log probability of partial orders in every cluster of one draw, (C, rows)."""
        num_items, num_listed = draw["center"].shape[-1], orders.listed.shape[1]
        theta = draw["concentration"][:, :num_listed]
        # the order after the stages is uniform
        theta = jnp.pad(theta, [(0, 0), (0, num_listed - theta.shape[-1])])
        log_norms = log_psi(theta, max_codes(num_items, num_listed))
        is_listed, items = orders.listed >= 0, jnp.maximum(orders.listed, 0)

        def score(places: Array, theta: Array, log_norms: Array) -> Array:
            places = jnp.where(is_listed, places[items], num_items)
            return log_prob_of_places(orders.blocks, places, theta, log_norms)

        return orders.by_cluster(score, inverse_ordering(draw["center"]), theta, log_norms)

    def replicate(
        self,
        key: Array,
        draw: Mapping[str, Array],
        labels: Array,
        offered: Array | None,
        length: int,
    ) -> Array:
        """Draw a list for each label, of as many places as there are stages."""
        center, theta = draw["center"][labels], draw["concentration"][labels]
        return GeneralizedMallows(center, theta, validate_args=False).sample(key)

    def continued(
        self,
        key: Array,
        draw: Mapping[str, Array],
        labels: Array,
        lists: Array,
        offered: Array | None,
    ) -> Array:
        """Draw the codes that follow, with θ = 0 after the stages and in a new cluster.

        What follows a list in a new cluster is uniform, for every prior of θ, since its center is.
        """
        center = jnp.concatenate([draw["center"], draw["center"][:1]])[labels]
        num_items, num_stages = center.shape[-1], center.shape[-1] - 1
        missing = num_stages - draw["concentration"].shape[-1]
        theta = jnp.pad(draw["concentration"], [(0, 1), (0, missing)])[labels]
        lists = stage_orderings(lists, num_items)
        given = stage_codes(lists[:, :num_stages], inverse_ordering(center))
        drawn = sample_truncated_geometric(key, theta, max_codes(num_items, num_stages))
        codes = jnp.where(lists[:, :num_stages] >= 0, given, drawn.astype(jnp.int32))
        whole = ordering_from_codes(codes, center)
        # the last item is certain
        last = num_items * (num_items - 1) // 2 - jnp.sum(whole, axis=1, keepdims=True)
        whole = jnp.concatenate([whole, last.astype(jnp.int32)], axis=1)
        is_later = lists < 0
        if offered is not None:
            is_later &= jnp.take_along_axis(offered, whole, axis=1)
        order = jnp.argsort(~is_later, axis=1, stable=True)
        return jnp.take_along_axis(jnp.where(is_later, whole, -1), order, axis=1)

    def log_new_cluster(
        self,
        key: Array,
        draw: Mapping[str, Array],
        orderings: Array,
        offered: Array | None,
        num_new_clusters: int,
    ) -> Array:
        """Return ``log (n-t)!/n!`` for lists of length t, which holds for every prior of θ."""
        num_items = draw["center"].shape[-1]
        left = num_items - jnp.sum(orderings >= 0, axis=-1)
        return gammaln(left + 1.0) - gammaln(num_items + 1.0)

    def log_new_cluster_of_orders(
        self, key: Array, draw: Mapping[str, Array], orders: ScoredOrders, num_new_clusters: int
    ) -> Array:
        """Return the log of the share of all orderings that agree, for every prior of θ."""
        # Centers are uniform, so that the ordering of one judge is, too, as with θ = 0.
        one = {name: draw[name][:1] for name in self.parameters}
        return self.log_orders(
            {**one, "concentration": jnp.zeros_like(one["concentration"])}, orders
        )[0]

    def most_listed(self, samples: Arrays) -> int:
        """Return the number of stages; a list of n - 1 items says the same as one of n."""
        num_items, num_stages = self.num_items(samples), samples["concentration"].shape[-1]
        return num_items if num_stages >= num_items - 1 else num_stages

    def quantities(
        self, samples: Arrays, sizes: np.ndarray | None, rankings: Rankings
    ) -> dict[str, np.ndarray]:
        """Return the mean Kendall distance of the centers of the rankings from the Borda order."""
        center, reference = samples["center"], borda_ordering(rankings)
        if sizes is None:
            distance = kendall_distance(center[:, :, 0], reference).astype(float)
            theta = samples["concentration"][:, :, 0]
            return {"kendall_to_reference": distance, "population_concentration": theta}
        occupied, distance = sizes > 0, np.zeros(sizes.shape)
        distance[occupied] = kendall_distance(center[occupied], reference)
        return {"kendall_to_reference": (distance * sizes).sum(-1) / sizes.sum(-1)}

    def variables(
        self, samples: Arrays, sizes: np.ndarray | None
    ) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Return the parameters and the rank of each item, 0 in empty clusters."""
        assert sizes is not None
        rank = (np.argsort(samples["center"], axis=-1) + 1).astype(np.int32)
        marked = super().variables(samples, sizes)
        rank = np.where(sizes[..., None] > 0, rank, 0)
        return {"center": marked["center"], "rank": (("item",), rank), **marked}

    def fill_empty(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return samples with any center, and with θ = 0, in empty clusters."""
        center = samples["center"]
        some = np.arange(center.shape[-1], dtype=center.dtype)
        return {
            **samples,
            "center": np.where(center < 0, some, center),
            "concentration": np.nan_to_num(samples["concentration"], nan=0.0),
        }

    # -- fit -----------------------------------------------------------------------------------

    has_fit = True

    def fitter(self, rankings: Rankings) -> WeightedFit:
        return MallowsFit(rankings)

    def fit_bytes(self, rankings: Rows, num_components: int) -> float:
        # what choices are left with, and how often components make them
        items, places = rankings.num_items, float(rankings.table.size)
        return 8.0 * min(places, items * num_sets(items)) * (items + 3 * num_components)

    def check_parameters(self, sites: Arrays, rankings: Rows) -> None:
        center, items = sites["center"], np.arange(rankings.num_items)
        bad = (np.sort(center, axis=-1) != items).any(-1)
        if bad.any():
            raise ValueError(f"center must be an order of all items, got {center[bad][0].tolist()}")
        fitted, stages = sites["concentration"].shape[-1], num_stages(rankings)
        if fitted != stages:
            raise ValueError(f"the run was of {fitted} stages; these rankings have {stages}")
        check_not_negative(sites, "concentration")

    fit_lists = staticmethod(fit_lists)  # in JAX

    # -- profiles and tables -------------------------------------------------------------------

    def entropies(self, parameters: Arrays) -> tuple[np.ndarray, float]:
        center, theta = parameters["center"], parameters["concentration"]
        largest = largest_entropy(center.shape[-1], theta.shape[-1])
        return np.asarray(_entropy(center, theta), np.float64), largest

    def profile(self, common: RankingProfile, parameters: Arrays) -> ClusterProfile:
        theta = parameters["concentration"]
        return ClusterProfile(
            **vars(super().profile(common, parameters)),
            concentration=theta.mean(0, dtype=np.float64),
            concentration_interval=np.quantile(theta, INTERVAL, axis=0).T,
        )

    def columns_of_bloc(
        self, parameters: Mapping[str, Any], items: Sequence[str]
    ) -> dict[str, str]:
        return {f"theta_{j}": f"{x:.6g}" for j, x in enumerate(parameters["concentration"], 1)}


def log_cluster_likelihood(
    orderings: Array, center: Array, theta: Array, batch: int | None = None
) -> Array:
    """Log likelihood of lists under the clusters of one draw.

    :param orderings: padded lists, shape ``(rows, T)``.
    :param center: shape ``(C, n)``.
    :param theta: shape ``(C, T)``.
    :param batch: number of lists to score at once, so that their codes take little memory.
    :return: shape ``(rows, C)``.
    """
    num_items, num_stages = center.shape[-1], theta.shape[-1]
    log_normalizer = log_psi(theta, max_codes(num_items, num_stages))  # once for each cluster
    places = inverse_ordering(center)

    def score(ordering: Array) -> Array:
        by_stage = -theta * stage_codes(ordering, places) - log_normalizer
        return jnp.sum(jnp.where(ordering >= 0, by_stage, 0.0), axis=-1)

    return jax.lax.map(score, orderings, batch_size=batch or len(orderings))


@partial(jax.jit, static_argnames="num_stages")
def stage_orderings(orderings: ArrayLike, num_stages: int) -> Array:
    """Truncate or pad lists to ``num_stages`` places.

    :param orderings: padded lists, shape ``(rows, T)``.
    :return: int32, shape ``(rows, num_stages)``.
    """
    orderings = jnp.asarray(orderings, jnp.int32)[:, :num_stages]
    missing = num_stages - orderings.shape[1]
    return jnp.pad(orderings, ((0, 0), (0, missing)), constant_values=-1)


MALLOWS = Mallows()
register_family(MALLOWS)


@jax.jit
def _entropy(center: Array, theta: Array) -> Array:
    return GeneralizedMallows(center, theta, validate_args=False).entropy()
