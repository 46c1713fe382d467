"""Points of a family as the samplers of partitions read them."""

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
    """What there is to be clustered.

    - **statistics** - of the points, (N, …); **log_alone** - log probability of each, (N,).
    - **empty** - statistics of a cluster without points.
    - **log_base** - log density of what no cluster scores.
    """

    statistics: Any
    log_alone: Array
    empty: Any
    log_base: Array

    @property
    def size(self) -> int:
        """N."""
        return self.log_alone.shape[0]


def as_points(family: Family, data: Any, number: int | None = None) -> Points:
    """The data as the moves read them.

    :param number: of points with those at the end whose values are not known.
    """
    points = family.statistics(data)
    if number is not None:
        points = with_awaited(points, number)
    one = jax.eval_shape(lambda x: family.of_clusters(x, jnp.zeros(num_points(x), int), 1), points)
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), one)
    return Points(points, family.log_predictive(empty, points), empty, log_base(family, data))


def repeat(cluster: Any, number: int) -> Any:
    """So many of the same statistics, (number, …)."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (number, *x.shape)), cluster)


def start_auxiliary(key: Array, family: Family, data: Any, given: dict) -> dict[str, Array]:
    """Auxiliary variables of the family before the first sweep, if it has any."""
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
    """Auxiliary variables of the family given the labels, if it has any."""
    if not isinstance(family, AugmentedFamily):
        return {}
    known = Augmented(data, z[family.site])
    labels = labels[: family.size(data)]  # not those of points whose values are not known
    return {family.site: family.refresh(key, known, labels, num_clusters)}
