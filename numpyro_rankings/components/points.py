"""Data in the form that the samplers of partitions use: points and auxiliary variables."""

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


class Points(NamedTuple):
    """The points to be clustered.

    - **statistics** - of each point, (N, …).
    - **log_alone** - log marginal of each point as a cluster of its own, (N,).
    - **empty** - statistics of a cluster without points.
    - **log_base** - log density of the auxiliary variables that no cluster scores.
    """

    statistics: Any
    log_alone: Array
    empty: Any
    log_base: Array

    @property
    def size(self) -> int:
        """Number N of points."""
        return self.log_alone.shape[0]


def as_points(family: Family, data: Any, number: int | None = None) -> Points:
    """Convert the data to points.

    :param number: number of points including those at the end whose values are unknown.
    """
    points = family.statistics(data)
    if number is not None:
        points = with_awaited(points, number)
    one = jax.eval_shape(lambda x: family.of_clusters(x, jnp.zeros(num_points(x), int), 1), points)
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), one)
    return Points(points, family.log_predictive(empty, points), empty, log_base(family, data))


def repeat(cluster: Any, number: int) -> Any:
    """Repeat the statistics of a cluster, (number, …)."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (number, *x.shape)), cluster)


def start_auxiliary(key: Array, family: Family, data: Any, given: dict) -> dict[str, Array]:
    """Auxiliary variables of the family before the first sweep, if it has any.

    :param given: ``init_params``, which may set them.
    """
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


def update_auxiliary(
    key: Array, family: Family, data: Any, z: dict, labels: Array, num_clusters: int
) -> dict[str, Array]:
    """Auxiliary variables of the family redrawn given the labels, if it has any."""
    if not isinstance(family, AugmentedFamily):
        return {}
    known = Augmented(data, z[family.site])
    labels = labels[: family.size(data)]  # leave out points whose values are unknown
    return {family.site: family.refresh(key, known, labels, num_clusters)}
