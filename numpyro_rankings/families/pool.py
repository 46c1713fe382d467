"""Plackett–Luce models of an unlimited pool of items."""

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.families._plackett_luce_fit import WeightsFit
from numpyro_rankings.families.base import (
    Arrays,
    OrdersT,
    PartitionPriors,
    RankingProfile,
    RowsT,
    SiteAxes,
    interval_of,
    register_family,
)
from numpyro_rankings.families.plackett_luce import PLACKETT_LUCE, PlackettLuce, WeightsProfile
from numpyro_rankings.families.scored import ScoredOrders
from numpyro_rankings.rankings import Comparisons, Rankings, RankingsError


class ItemPool(PlackettLuce):
    """Weights of the items that occur, and one of all others together."""

    name = "gamma-process"
    parameters = ("weights", "unseen_weight")

    # -- likelihood ----------------------------------------------------------------------------

    of_clusters = ("total_weight",)
    axes: ClassVar[SiteAxes] = {"weights": ("item",), "root_weights": ("item",)}
    partitions: ClassVar[PartitionPriors] = ("process",)
    scale = "gamma"
    has_marginal = True
    has_pool = True
    continues_lists = False  # which items of the pool follow is not known
    takes_choice_sets = False
    new_cluster_sites = ("phi", "gamma", "root_weights", "root_unseen_weight")
    cost_of_new_cluster = 20

    @property
    def with_components(self) -> str:
        return PLACKETT_LUCE.name

    def unseen(self, draw: Mapping[str, Array]) -> Array | None:
        """Return the weight of all unlisted items together in each cluster, (C,)."""
        return jnp.atleast_1d(draw["unseen_weight"])

    def described(self, rankings: RowsT) -> RowsT:
        """Return the rankings, or partial orders, of the items that occur."""
        if isinstance(rankings, Comparisons):
            return rankings  # which the kernels of a pool refuse
        return rankings.of_listed_items()

    def prepared(self, orders: OrdersT) -> OrdersT:
        if orders.offered() is not None:
            raise RankingsError(
                "items were not offered to some judges; the model is for preferences among all "
                "items of an endless pool"
            )
        return orders

    def log_new_cluster(
        self,
        key: Array,
        draw: Mapping[str, Array],
        orderings: Array,
        offered: Array | None,
        num_new_clusters: int,
    ) -> Array:
        """Return the log probability of each list in a new cluster of ``DPPlackettLuceGibbs``.

        It has no closed form, so it is the mean over clusters drawn from the prior given the root,
        eq. (19) of Caron, Teh & Murphy (2014).
        """
        new = self._new_clusters(key, draw, num_new_clusters)
        return _mean_over_clusters(self.log_rows(new, orderings, offered))

    def log_new_cluster_of_orders(
        self, key: Array, draw: Mapping[str, Array], orders: ScoredOrders, num_new_clusters: int
    ) -> Array:
        return _mean_over_clusters(
            self.log_orders(self._new_clusters(key, draw, num_new_clusters), orders)
        )

    @staticmethod
    def _new_clusters(key: Array, draw: Mapping[str, Array], number: int) -> dict[str, Array]:
        """Draw the weights of new clusters from the prior given the root, (number, …)."""
        key_counts, key_weights = jax.random.split(key)
        mean = draw["phi"] * jnp.append(draw["root_weights"], draw["root_unseen_weight"])
        shape = number, len(mean)
        counts = jax.random.poisson(key_counts, mean, shape).astype(mean.dtype)
        shapes = counts.at[:, -1].add(draw["alpha"])
        log_weights = jax.random.loggamma(key_weights, jnp.maximum(shapes, 1e-30))
        log_weights = jnp.where(shapes > 0, log_weights, -jnp.inf)
        weights = jax.nn.softmax(log_weights, axis=-1)  # the rate is the same for all
        return {"weights": weights[:, :-1], "unseen_weight": weights[:, -1]}

    def most_listed(self, samples: Arrays) -> int:
        """Return the largest number: lists may have any number of items of the pool."""
        return sys.maxsize

    def takes_new_items(self, sites: Collection[str]) -> bool:
        """Whether the draws are of a gamma process by itself, with σ = 0."""
        return not {"assignments", "cluster_sizes", "total_weight"} & set(sites)

    def log_rows_with_new_items(
        self, key: Array, draw: Mapping[str, Array], orderings: Array
    ) -> Array:
        """Return the log probability of lists in which n stands for an item that is new, (rows,).

        A new item is a size-biased draw from the unseen items, and takes a Beta(1, α) share of
        their weight.
        """
        (num_rows, _), number = orderings.shape, draw["weights"].shape[-1]
        known, new = (orderings >= 0) & (orderings < number), orderings == number
        columns = jnp.where(known, orderings, number)
        rows = jnp.arange(num_rows)[:, None]
        unlisted = jnp.ones((num_rows, number)).at[rows, columns].set(0.0, mode="drop")
        log_left = jnp.log1p(-jax.random.uniform(key, orderings.shape)) / draw["alpha"]
        log_left = jnp.where(new, log_left, 0.0)
        unseen = draw["unseen_weight"] * jnp.exp(jnp.cumsum(log_left, axis=1) - log_left)
        weights = jnp.append(draw["weights"], 0.0)[columns]
        in_play = jnp.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        mass = (unlisted @ draw["weights"])[:, None] + in_play + unseen
        log_stages = jnp.log(jnp.where(new, unseen, weights) / mass)
        return jnp.sum(jnp.where(orderings >= 0, log_stages, 0.0), axis=1)

    # -- fit -----------------------------------------------------------------------------------

    def fitter(self, rankings: Rankings) -> WeightsFit:
        return WeightsFit(rankings, has_pool=True)

    # -- profiles and tables -------------------------------------------------------------------

    def profile(self, common: RankingProfile, parameters: Arrays) -> WeightsProfile:
        unseen = parameters["unseen_weight"]
        profile = super().profile(common, parameters)
        return profile._replace(
            unseen_weight=float(unseen.mean(dtype=np.float64)),
            unseen_interval=interval_of(unseen),
        )

    def columns_of_bloc(
        self, parameters: Mapping[str, Any], items: Sequence[str]
    ) -> dict[str, str]:
        unseen = {"unseen_weight": f"{parameters['unseen_weight']:.6g}"}
        return unseen | super().columns_of_bloc(parameters, items)


def _mean_over_clusters(log_p: Array) -> Array:
    """Log of the mean probability of each row over clusters, (rows,), from (C, rows)."""
    return jax.nn.logsumexp(log_p, axis=0) - jnp.log(len(log_p))


ITEM_POOL = ItemPool()
register_family(ITEM_POOL)
