"""Base class of the kernels with an endless pool of items."""

from typing import Any

import jax.numpy as jnp

from numpyro_rankings.families import ITEM_POOL, RankingFamily
from numpyro_rankings.infer.base import find_rankings
from numpyro_rankings.infer.latent_orders import PlackettLuceLists, plackett_luce_lists
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData, as_data
from numpyro_rankings.infer.ranking_kernel import RankingKernel
from numpyro_rankings.rankings import Comparisons, Orders, PartialOrders, Rankings

SITES_OF_DATA = ("process", "rankings")  # factors of the models with a pool of items


class PoolKernel(RankingKernel):
    """Base of the kernels with an endless pool of items; they see the listed items only."""

    @property
    def ranking_family(self) -> RankingFamily:
        """Plackett–Luce models of an endless pool of items."""
        return ITEM_POOL

    def _check(self, args: tuple, kwargs: dict) -> None:
        if self._checked_rankings(args, kwargs).choice_sets is not None:
            raise ValueError(
                "these are subset rankings (they have choice sets); the model is for rankings of "
                "all items of an endless pool"
            )

    @staticmethod
    def _prepare_orders(orders: Orders) -> PartialOrders:
        if isinstance(orders, Comparisons):
            raise TypeError(f"a pool of items takes no Comparisons; {orders.taken_by}")
        if orders.offered() is not None:
            raise ValueError(
                "items were not offered to some judges; the model is for preferences among all "
                "items of an endless pool"
            )
        return orders.of_listed_items()

    def _lists(self, z: dict, args: tuple, kwargs: dict, orders: Orders) -> PlackettLuceLists:
        labels = z.get("assignments", jnp.zeros(orders.num_rankings, jnp.int32))
        weights = jnp.atleast_2d(z["weights"])
        pool = jnp.atleast_1d(z["unseen_weight"])
        return plackett_luce_lists(orders, labels.astype(jnp.int32), weights, pool)

    def _prepare(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        def listed(value: Any) -> Any:
            return value.of_listed_items() if isinstance(value, Rankings | PartialOrders) else value

        return tuple(map(listed, args)), {name: listed(value) for name, value in kwargs.items()}

    def _data(
        self, args: tuple, kwargs: dict, z: dict | None = None
    ) -> tuple[Rankings, PlackettLuceData]:
        """Return the rankings of the listed items, those of the state, and their choices."""
        rankings = find_rankings(args, kwargs).of_listed_items()
        if z is not None and z["weights"].shape[-1] != rankings.num_items:
            raise ValueError(
                f"there are weights of {z['weights'].shape[-1]} items and rankings of "
                f"{rankings.num_items}: under jit, pass rankings.of_listed_items()"
            )
        return rankings, as_data(rankings, pool=True)
