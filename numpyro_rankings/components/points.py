"""The points to cluster, in the form that the samplers of partitions use."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from numpyro_rankings.components.family import (
    Augmented,
    AugmentedFamily,
    Family,
    log_base,
    num_points,
    with_awaited,
)


class DataPoints(NamedTuple):
    """The points to cluster."""

    statistics: Any  # of each point, (N, …)
    log_alone: Array  # log marginal probability of each point by itself, (N,)
    empty: Any  # statistics of a cluster without points
    log_base: Array  # log density of auxiliary variables that no cluster scores

    @property
    def size(self) -> int:
        """N, the number of points."""
        return self.log_alone.shape[0]


def as_points(family: Family, data: Any, number: int | None = None) -> DataPoints:
    """Statistics of the data; with a number, points of unknown values are added at the end."""
    points = family.statistics(data)
    if number is not None:
        points = with_awaited(points, number)
    one = jax.eval_shape(lambda x: family.of_clusters(x, jnp.zeros(num_points(x), int), 1), points)
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), one)
    return DataPoints(points, family.log_predictive(empty, points), empty, log_base(family, data))


def repeat(cluster: Any, number: int) -> Any:
    """Copies of the statistics of one cluster, (number, …)."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (number, *x.shape)), cluster)


def start_auxiliary(key: Array, family: Family, data: Any, given: dict) -> dict[str, Array]:
    """Initial auxiliary variables of the family by site, ``{}`` if it has none."""
    if not isinstance(family, AugmentedFamily):
        return {}
    start = family.start(key, data)
    if family.site in given:
        value = jnp.asarray(given[family.site], float)
        if value.shape != start.shape:
            raise ValueError(
                f"init_params[{family.site!r}] must have shape {start.shape}, got {value.shape}"
            )
        return {family.site: value}
    return {family.site: start}


def read_auxiliary(family: Family, values: Mapping[str, Array]) -> dict[str, Array]:
    """Auxiliary variables of the family among the sites of a state, ``{}`` if it has none."""
    return {family.site: values[family.site]} if isinstance(family, AugmentedFamily) else {}


def update_auxiliary(
    key: Array, family: Family, data: Any, values: Mapping[str, Array], labels: Array, slots: int
) -> dict[str, Array]:
    """Draw the auxiliary variables of the family given the labels, ``{}`` if it has none."""
    if not isinstance(family, AugmentedFamily):
        return {}
    known = Augmented(data, values[family.site])
    labels = labels[: family.size(data)]  # points with unknown values have none
    return {family.site: family.refresh(key, known, labels, slots)}
