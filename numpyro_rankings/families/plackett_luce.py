"""The Plackett–Luce model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.distributions import TopTPlackettLuce
from numpyro_rankings.distributions.plackett_luce import log_prob_of_weights
from numpyro_rankings.families._plackett_luce_fit import (
    WeightsFit,
    normalised_entropy,
    times_with_prior,
)
from numpyro_rankings.families.base import (
    INTERVAL,
    Arrays,
    PartitionPriors,
    RankingFamily,
    RankingProfile,
    SiteAxes,
    check_not_negative,
    columns_with_interval,
    num_sets,
    register_family,
)
from numpyro_rankings.families.scored import ScoredOrders
from numpyro_rankings.ops.choices import as_choices, log_choice_likelihoods
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.rankings.rows import Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsProfile(RankingProfile):
    """Posterior summary of one cluster of Plackett–Luce weights, or of the only population.

    Intervals hold 90% of the posterior. The first parameters are those of every cluster of
    rankings: **consensus** has the items by their mean weight, largest first, and **entropy** is
    the mean ratio of the entropy of the weights to that of equal weights. **agreement** is 1 minus
    that ratio: 0 for equal weights, 1 if one item always comes first.

    :param weights: mean weight of each item, in item order, shape ``(K,)``: the probability that it
        comes first.
    :param weights_interval: shape ``(K, 2)``.
    :param unseen_weight: mean weight of all items that no ranking lists, None if there are none.
    :param unseen_interval: ``(low, high)``.
    """

    weights: np.ndarray
    weights_interval: np.ndarray
    unseen_weight: float | None = None
    unseen_interval: tuple[float, float] | None = None

    def columns(self) -> dict[str, str]:
        columns: dict[str, str] = {}
        if self.unseen_weight is not None and self.unseen_interval is not None:
            columns |= columns_with_interval(
                "unseen_weight", self.unseen_weight, self.unseen_interval
            )
        weights = zip(self.items, self.weights, self.weights_interval, strict=True)
        for name, mean, interval in weights:
            columns |= columns_with_interval(f"weight of {name}", mean, interval)
        return columns

    def strength(self) -> str:
        low, high = self.weights_interval[:, 0].min(), self.weights_interval[:, 1].max()
        return f"the weights of all items are within {low:.2g}–{high:.2g}, their 90% intervals"


class PlackettLuce(RankingFamily):
    """Plackett–Luce models: a weight for each item."""

    name = "plackett-luce"
    parameters: tuple[str, ...] = ("weights",)
    title = "Plackett–Luce"
    sections = ("weights",)

    # -- likelihood ----------------------------------------------------------------------------

    axes: ClassVar[SiteAxes] = {"weights": ("item",)}
    partitions: ClassVar[PartitionPriors] = ("components",)
    scores_orders = True
    continues_lists = True
    takes_choice_sets = True
    matches_items = True
    has_labels = False

    def unseen(self, draw: Mapping[str, Array]) -> Array | None:
        """Return the weight of all other items together in each cluster, None if there are none."""
        return None

    def log_rows(self, draw: Mapping[str, Array], orderings: Array, offered: Array | None) -> Array:
        """Return the log probability of lists in every cluster of one draw, (C, rows)."""
        weights, unseen = jnp.atleast_2d(draw["weights"]), self.unseen(draw)
        offered = None if offered is None else jnp.asarray(offered)
        has_pool = unseen is not None
        choices = as_choices(jnp.asarray(orderings), offered, weights.shape[1], has_pool)
        return log_choice_likelihoods(choices, weights, unseen, jnp.array(len(weights)))

    def log_orders(self, draw: Mapping[str, Array], orders: ScoredOrders) -> Array:
        """Return the log probability of partial orders in every cluster of one draw, (C, rows)."""
        weights, unseen = jnp.atleast_2d(draw["weights"]), self.unseen(draw)
        log_weights = _finite_log(weights)
        log_pool = _finite_log(jnp.zeros_like(weights[:, 0]) if unseen is None else unseen)
        num_rows = len(orders.listed)

        def score(log_weights: Array, log_pool: Array) -> Array:
            of_rows = (jnp.broadcast_to(x, (num_rows, x.size)) for x in (log_weights, log_pool))
            return log_prob_of_weights(orders.blocks, orders.listed, orders.below, *of_rows)

        return orders.by_cluster(score, log_weights, log_pool)

    def replicate(
        self,
        key: Array,
        draw: Mapping[str, Array],
        labels: Array,
        offered: Array | None,
        length: int,
    ) -> Array:
        """Draw a list for each label; items of the pool have the number n and may be repeated."""
        weights, unseen = jnp.atleast_2d(draw["weights"])[labels], self.unseen(draw)
        model = TopTPlackettLuce(
            _finite_log(weights),
            length,
            None if unseen is None else jnp.log(unseen[labels]),
            offered,
            validate_args=False,
        )
        return model.sample(key)

    def continued(
        self,
        key: Array,
        draw: Mapping[str, Array],
        labels: Array,
        lists: Array,
        offered: Array | None,
    ) -> Array:
        """Draw a list of the items that are left: the others do not matter."""
        num_items = draw["weights"].shape[-1]
        left = jnp.ones((len(lists), num_items), bool) if offered is None else offered
        columns = jnp.where(lists >= 0, lists, num_items)
        left = left.at[jnp.arange(len(lists))[:, None], columns].set(False, mode="drop")
        return self.replicate(key, draw, labels, left, num_items)

    def quantities(
        self, samples: Arrays, sizes: np.ndarray | None, rankings: Rankings
    ) -> dict[str, np.ndarray]:
        """Return the weights, averaged over the components by their sizes, and their entropy."""
        population = samples["weights"]
        if sizes is not None:
            shares = sizes / sizes.sum(-1, keepdims=True)
            population = np.einsum("abc,abci->abi", shares, population)
        return {
            "population_weights": population,
            "population_entropy": normalised_entropy(population),
        }

    def variables(
        self, samples: Arrays, sizes: np.ndarray | None
    ) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Return the weights, NaN in empty components, and their entropy."""
        weights, found = samples["weights"], {}
        if sizes is not None:
            weights = np.where(sizes[..., None] > 0, weights, np.nan)
            found = {"weights": (("item",), weights)}
        return {**found, "entropy": ((), normalised_entropy(weights))}

    def fill_empty(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return samples with equal weights in empty components."""
        weights = samples["weights"]
        return {**samples, "weights": np.nan_to_num(weights, nan=1 / weights.shape[-1])}

    # -- fit -----------------------------------------------------------------------------------

    has_fit = True
    fit_cost = 2.5

    def fitter(self, rankings: Rankings) -> WeightsFit:
        return WeightsFit(rankings, has_pool=False)

    def fit_bytes(self, rankings: Rows, num_components: int) -> float:
        items = rankings.num_items
        return 8.0 * min(float(rankings.table.size), num_sets(items)) * items

    def check_parameters(self, sites: Arrays, rankings: Rows) -> None:
        check_not_negative(sites, *self.parameters)
        if not sites["weights"].any(-1).all():
            raise ValueError("weights must not all be 0 in a cluster")

    times_with_prior = staticmethod(times_with_prior)  # in NumPy or in JAX

    # -- profiles and tables -------------------------------------------------------------------

    def orderings(self, parameters: Arrays) -> np.ndarray:
        return np.argsort(-parameters["weights"], axis=-1, kind="stable")

    def consensus(self, parameters: Arrays) -> np.ndarray:
        mean = parameters["weights"].astype(np.float64).mean(0)
        return np.argsort(-mean, kind="stable").astype(np.int32)

    def entropies(self, parameters: Arrays) -> tuple[np.ndarray, float]:
        return normalised_entropy(parameters["weights"].astype(np.float64)), 1.0

    def profile(self, common: RankingProfile, parameters: Arrays) -> WeightsProfile:
        weights = parameters["weights"].astype(np.float64)
        return WeightsProfile(
            **vars(common),
            weights=weights.mean(0),
            weights_interval=np.quantile(weights, INTERVAL, axis=0).T,
        )

    def columns_of_bloc(
        self, parameters: Mapping[str, Any], items: Sequence[str]
    ) -> dict[str, str]:
        weights = zip(items, parameters["weights"], strict=True)
        return {f"weight of {name}": f"{x:.6g}" for name, x in weights}


def _finite_log(weights: Array) -> Array:
    """Return log weights, of 0 a very small number."""
    return jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1.0)), -1e30)


PLACKETT_LUCE = PlackettLuce()
register_family(PLACKETT_LUCE)
