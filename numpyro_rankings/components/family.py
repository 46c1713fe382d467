"""What a component family has to say of a cluster.

A conjugate family knows a cluster by its sufficient statistics, which points join and leave, and
scores it with the parameters integrated out. The samplers of partitions need nothing else, so they
work for any family.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array

from numpyro_rankings.ops.sums import sum_by_label
from numpyro_rankings.rankings import Rankings, check_rankings


class Family(ABC):
    r"""
    Base of the conjugate families.

    A family of one's own gives :meth:`statistics` and :meth:`log_marginal`; :meth:`log_predictive`
    is worth giving too, for as a difference of two marginals it loses digits in large clusters.
    Statistics are trees of arrays of one leading axis per point or cluster, whose sums say all that
    there is to know of a cluster, 0 if it is empty; a family whose statistics are better kept in
    another way gives :meth:`add`, :meth:`subtract` and :meth:`of_clusters` as well. Everything has
    to work under ``jit`` and ``vmap``.

    .. doctest::

       >>> import jax.numpy as jnp
       >>> from jax.scipy.special import gammaln
       >>> from numpyro_rankings.components import Family
       >>> class PoissonGamma(Family):
       ...     "Counts, Poisson(rate), rate ~ Gamma(a, b)."
       ...
       ...     def __init__(self, a, b):
       ...         self.a, self.b = a, b
       ...
       ...     def statistics(self, data):
       ...         data = jnp.asarray(data, float)
       ...         return {"size": jnp.ones(len(data)), "sum": data, "base": gammaln(data + 1.0)}
       ...
       ...     def log_marginal(self, cluster):
       ...         a, b = self.a + cluster["sum"], self.b + cluster["size"]
       ...         ratio = gammaln(a) - gammaln(self.a)
       ...         return ratio + self.a * jnp.log(self.b) - a * jnp.log(b) - cluster["base"]
       >>> family = PoissonGamma(2.0, 1.0)
       >>> points = family.statistics([3, 4, 11])
       >>> clusters = family.of_clusters(points, jnp.array([0, 0, 1]), 2)
       >>> [round(float(x), 3) for x in family.log_marginal(clusters)]
       [-4.253, -6.526]
    """

    @abstractmethod
    def statistics(self, data: Any) -> Any:
        """Statistics of each point by itself, as one that is alone in a cluster: (N, …)."""

    @abstractmethod
    def log_marginal(self, cluster: Any) -> Array:
        """Log probability of all points of a cluster, parameters integrated out.

        :param cluster: statistics of any leading axes, those of the result; 0 for an empty one.
        """

    def log_predictive(self, cluster: Any, point: Any) -> Array:
        """Log probability of a further point, given those of a cluster.

        The leading axes of the two broadcast.
        """
        together = self.log_marginal(self.add(cluster, point))
        # of what cannot be together neither may be possible alone
        return jnp.where(together > -jnp.inf, together - self.log_marginal(cluster), -jnp.inf)

    def for_union(self, other: Any) -> Any:
        """A cluster as :meth:`log_union` reads the other one, made once for many unions."""
        return other

    def log_union(self, cluster: Any, other: Any) -> Array:
        """Log of p(both together) / p(cluster) p(other); leading axes broadcast.

        Worth giving too, for what the marginals have in common loses digits.

        :param other: of :meth:`for_union`.
        """
        together = self.log_marginal(self.add(cluster, other))
        change = together - self.log_marginal(cluster) - self.log_marginal(other)
        return jnp.where(together > -jnp.inf, change, -jnp.inf)

    def log_predictive_of_member(self, cluster: Any, point: Any) -> Array:
        """The same of a point that is in the cluster, given the others there."""
        return self.log_predictive(self.subtract(cluster, point), point)

    def add(self, cluster: Any, other: Any) -> Any:
        """Statistics of the two together."""
        return jax.tree.map(jnp.add, cluster, other)

    def subtract(self, cluster: Any, other: Any) -> Any:
        """Statistics of a cluster without some of its points."""
        return jax.tree.map(jnp.subtract, cluster, other)

    def of_clusters(self, points: Any, labels: Array, num_clusters: int) -> Any:
        """Statistics of all clusters, afresh from those of the points.

        :param points: of :meth:`statistics`, (N, …).
        :param labels: cluster of each point, (N,).
        """
        return jax.tree.map(lambda x: sum_by_label(x, labels, num_clusters), points)

    def project(self, key: Array, points: Any) -> Array:
        """Random projection of the points to a line, (N,), for the orderings that need one.

        :param key: of the direction.
        """
        raise ValueError(f"{type(self).__name__} has no vectors that could be projected")

    def size(self, data: Any) -> int:
        """N, the number of points."""
        return num_points(self.statistics(data))

    def check(self, data: Any) -> None:  # noqa: B027 - a family may take any data
        """Raise ValueError if the family cannot score such data; called before they are traced."""


class Augmented(NamedTuple):
    """The **data** of an :class:`AugmentedFamily`, and its **auxiliary** variables, (N, …)."""

    data: Any
    auxiliary: Array


class AugmentedFamily(Family):
    """
    Base of the families that are conjugate given auxiliary variables of the points.

    A kernel draws these as well: after the labels, all at once, by :meth:`refresh`.
    :meth:`~Family.statistics` reads an :class:`Augmented`, and the marginal of a cluster is that of
    its points and of their auxiliary variables.
    """

    site: str  # name of the auxiliary variables among the samples

    @abstractmethod
    def size(self, data: Any) -> int:
        """N, the number of points."""

    @abstractmethod
    def auxiliary_prior(self, data: Any) -> dist.Distribution:
        """Any distribution with the support of the auxiliary variables and of their shape.

        The model samples them from it, and takes its density out again.
        """

    @abstractmethod
    def start(self, key: Array, data: Any) -> Array:
        """Auxiliary variables to begin with."""

    @abstractmethod
    def refresh(self, key: Array, data: Augmented, labels: Array, num_clusters: int) -> Array:
        """New auxiliary variables, by an update that leaves their conditional as it is."""

    def log_base(self, data: Augmented) -> Array:
        """Log density of auxiliary variables that no cluster scores."""
        return jnp.zeros(())


def with_auxiliary(family: Family, data: Any, values: Any) -> Any:
    """The data as :meth:`Family.statistics` reads them.

    :param values: of the sites of a model or a state.
    """
    return Augmented(data, values[family.site]) if isinstance(family, AugmentedFamily) else data


def log_base(family: Family, data: Any) -> Array:
    """Of :meth:`AugmentedFamily.log_base`; 0 of other families."""
    return family.log_base(data) if isinstance(family, AugmentedFamily) else jnp.zeros(())


def with_awaited(points: Any, number: int) -> Any:
    """The statistics with those of points whose values are not known, 0, up to so many."""

    def pad(x: Array) -> Array:
        return jnp.concatenate([x, jnp.zeros((number - len(x), *x.shape[1:]), x.dtype)])

    return jax.tree.map(pad, points)


def num_points(points: Any) -> int:
    """N."""
    return jax.tree.leaves(points)[0].shape[0]


def take(points: Any, index: Any) -> Any:
    """Statistics of some of the points, or of some of the clusters."""
    return jax.tree.map(lambda x: x[index], points)


def put(clusters: Any, slots: Array, new: Any) -> Any:
    """Statistics of clusters with those of some, (k, …), replaced.

    As one scatter, which XLA does in place.
    """
    return jax.tree.map(lambda x, y: x.at[slots].set(y), clusters, new)


def as_rankings(data: Any) -> Rankings:
    """Refuse what is no :class:`Rankings`, or of one item."""
    check_rankings(data)
    if data.num_items < 2:
        raise ValueError("a ranking needs at least 2 items")
    return data


def check_points(data: Any, dimension: int | None = None) -> np.ndarray:
    """Points as an array (N, d) of finite numbers.

    :raises ValueError: naming the first row that has others.
    """
    points = np.asarray(data)
    if points.ndim != 2 or points.dtype.kind not in "fiu":
        raise ValueError(
            f"points must be numbers in an array (N, d), got shape {points.shape} of "
            f"{points.dtype}; one number each is (N, 1)"
        )
    if points.shape[1] == 0:
        raise ValueError(f"points must have coordinates, got shape {points.shape}")
    if dimension is not None and points.shape[1] != dimension:
        raise ValueError(
            f"the family is of {dimension} dimensions, the points of {points.shape[1]}"
        )
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"row {row} of the points has an entry that is not finite: {points[row]}")
    return points
