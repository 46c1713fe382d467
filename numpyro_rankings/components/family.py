"""The interface of component families.

A conjugate family describes a cluster by its sufficient statistics, which change when points join
or leave, and gives its log marginal with the parameters integrated out. The samplers of partitions
need nothing else, so they work for any family.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.ops.checks import refuse_masked
from numpyro_rankings.ops.sums import sum_by_label
from numpyro_rankings.rankings import Rankings, check_rankings


class Family(ABC):
    r"""
    Base of the conjugate families.

    A family must define :meth:`statistics` and :meth:`log_marginal`. It should also define
    :meth:`log_predictive`, which as a difference of two marginals loses digits in large clusters.
    Statistics are trees of arrays with one leading axis over points or clusters. Their sums are the
    statistics of a cluster, 0 if it is empty. A family whose statistics do not add up in this way
    also defines :meth:`add`, :meth:`subtract` and :meth:`of_clusters`. Some kernels also draw the
    parameters of clusters; for them a family defines :meth:`draw_parameters` and
    :meth:`log_likelihood`. All methods must work under ``jit`` and ``vmap``.

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

    ranking_family: RankingFamily | None = None  # the likelihood of rankings, None of other data

    @abstractmethod
    def statistics(self, data: Any) -> Any:
        """Statistics of each point as a cluster of its own, (N, …)."""

    @abstractmethod
    def log_marginal(self, cluster: Any) -> Array:
        """Log probability of all points of a cluster, with the parameters integrated out.

        :param cluster: statistics with any leading axes.
        :return: an array with these axes; 0 for an empty cluster.
        """

    def log_predictive(self, cluster: Any, point: Any) -> Array:
        """Log probability of a further point, given the points of a cluster.

        The leading axes of the two arguments broadcast.
        """
        together = self.log_marginal(self.add(cluster, point))
        # an impossible union may have an impossible part, whose difference would be NaN
        return jnp.where(together > -jnp.inf, together - self.log_marginal(cluster), -jnp.inf)

    def for_union(self, other: Any) -> Any:
        """Convert a cluster to the form of ``other`` in :meth:`log_union`, once for many unions."""
        return other

    def log_union(self, cluster: Any, other: Any) -> Array:
        """Log of p(both together) / p(cluster) p(other); leading axes broadcast.

        A family should define it too: a difference of large marginals loses digits.

        :param other: from :meth:`for_union`.
        """
        together = self.log_marginal(self.add(cluster, other))
        change = together - self.log_marginal(cluster) - self.log_marginal(other)
        return jnp.where(together > -jnp.inf, change, -jnp.inf)

    def log_predictive_of_member(self, cluster: Any, point: Any) -> Array:
        """Log probability of a member of the cluster, given the other members."""
        return self.log_predictive(self.subtract(cluster, point), point)

    def add(self, cluster: Any, other: Any) -> Any:
        """Statistics of the union."""
        return jax.tree.map(jnp.add, cluster, other)

    def subtract(self, cluster: Any, other: Any) -> Any:
        """Statistics of a cluster without some of its points."""
        return jax.tree.map(jnp.subtract, cluster, other)

    def of_clusters(self, points: Any, labels: Array, num_clusters: int) -> Any:
        """Statistics of all clusters, computed from those of the points.

        :param points: from :meth:`statistics`, (N, …).
        :param labels: cluster of each point, (N,).
        """
        return jax.tree.map(lambda x: sum_by_label(x, labels, num_clusters), points)

    @property
    def has_parameters(self) -> bool:
        """Whether the family draws its parameters: see :meth:`draw_parameters`."""
        mine = type(self)
        return (
            mine.draw_parameters is not Family.draw_parameters
            and mine.log_likelihood is not Family.log_likelihood
        )

    def draw_parameters(self, key: Array, cluster: Any) -> Any:
        """Draw the parameters of clusters from their posterior, that of empty ones from the prior.

        Kernels that draw parameters, such as :class:`~numpyro_rankings.infer.SubclusterGibbs`, need
        this method and :meth:`log_likelihood`.

        :param cluster: statistics with any leading axes.
        :return: a tree of arrays with these leading axes.
        """
        raise ValueError(f"{type(self).__name__} has no draws of its parameters")

    def log_likelihood(self, parameters: Any, point: Any) -> Array:
        """Log probability of a point given parameters, the integrand of :meth:`log_marginal`.

        The leading axes of the two arguments broadcast.

        :param parameters: from :meth:`draw_parameters`.
        :param point: from :meth:`statistics`.
        """
        raise ValueError(f"{type(self).__name__} has no likelihood given its parameters")

    def draw_ranking_parameters(self, key: Array, cluster: Any) -> dict[str, Array]:
        """Draw the parameters of ``ranking_family`` in clusters, by the names that it gives them.

        A family with a ``ranking_family`` defines this method.

        :param cluster: statistics with any leading axes.
        """
        raise ValueError(f"{type(self).__name__} is no family of rankings")

    def project(self, key: Array, points: Any) -> Array:
        """Project the points to a random line, (N,), for the orderings that need this.

        :param key: PRNG key of the direction.
        """
        raise ValueError(f"{type(self).__name__} has no vectors that could be projected")

    def size(self, data: Any) -> int:
        """Number N of points."""
        return num_points(self.statistics(data))

    def check(self, data: Any) -> None:  # noqa: B027 - a family may take any data
        """Raise ValueError if the family cannot score the data; called before they are traced."""


class Augmented(NamedTuple):
    """The **data** of an :class:`AugmentedFamily`, and its **auxiliary** variables, (N, …)."""

    data: Any
    auxiliary: Array


class AugmentedFamily(Family):
    """
    Base of the families that are conjugate given auxiliary variables of the points.

    A kernel also draws these variables: after the labels, all at once, by :meth:`refresh`.
    :meth:`~Family.statistics` takes an :class:`Augmented`, and the marginal of a cluster is that of
    its points and of their auxiliary variables.
    """

    site: str  # name of the auxiliary variables among the samples

    @abstractmethod
    def size(self, data: Any) -> int:
        """Number N of points."""

    @abstractmethod
    def auxiliary_prior(self, data: Any) -> dist.Distribution:
        """Any distribution with the support and the shape of the auxiliary variables.

        The model samples them from it and divides by its density.
        """

    @abstractmethod
    def start(self, key: Array, data: Any) -> Array:
        """Initial auxiliary variables."""

    @abstractmethod
    def refresh(self, key: Array, data: Augmented, labels: Array, num_clusters: int) -> Array:
        """New auxiliary variables, by an update that leaves their conditional invariant."""

    def log_predictive_of_values(
        self, key: Array, cluster: Any, data: Any, num_draws: int
    ) -> Array:
        """Log probabilities of new points, whose auxiliary variables are unknown, in clusters.

        They are means over draws of the clusters' parameters given the auxiliary variables of their
        points, which is unbiased.

        :param cluster: statistics of C clusters, (C, …).
        :param data: M new points, in the form that the family takes.
        :param num_draws: number of draws of the parameters.
        :return: (M, C).
        """
        raise ValueError(
            f"{type(self).__name__} scores points only with their auxiliary variables: define its "
            "method log_predictive_of_values"
        )

    def log_base(self, data: Augmented) -> Array:
        """Log density of auxiliary variables that no cluster scores."""
        return jnp.zeros(())


def with_auxiliary(family: Family, data: Any, values: Any) -> Any:
    """Convert the data to the argument of :meth:`Family.statistics`, with the sites of a state."""
    return Augmented(data, values[family.site]) if isinstance(family, AugmentedFamily) else data


def log_base(family: Family, data: Any) -> Array:
    """:meth:`AugmentedFamily.log_base`, or 0 for other families."""
    return family.log_base(data) if isinstance(family, AugmentedFamily) else jnp.zeros(())


def with_awaited(points: Any, number: int) -> Any:
    """Pad the statistics with 0 up to ``number`` points, for points with unknown values."""

    def pad(x: Array) -> Array:
        return jnp.concatenate([x, jnp.zeros((number - len(x), *x.shape[1:]), x.dtype)])

    return jax.tree.map(pad, points)


def num_points(points: Any) -> int:
    """Number N of points."""
    return jax.tree.leaves(points)[0].shape[0]


def take(points: Any, index: Any) -> Any:
    """Statistics of some of the points, or of some of the clusters."""
    return jax.tree.map(lambda x: x[index], points)


def put(clusters: Any, slots: Array, new: Any) -> Any:
    """Replace the statistics of some clusters by ``new``, (k, …), by one scatter, in place."""
    return jax.tree.map(lambda x, y: x.at[slots].set(y), clusters, new)


def as_rankings(data: Any) -> Rankings:
    """Return the data, after checking that they are :class:`Rankings` of at least 2 items."""
    check_rankings(data)
    if data.num_items < 2:
        raise ValueError("a ranking needs at least 2 items")
    return data


def check_points(data: Any, dimension: int | None = None) -> np.ndarray:
    """Convert points to an array (N, d) of finite numbers, or raise ValueError."""
    refuse_masked("points", data)
    points = np.asarray(data)
    if points.ndim != 2 or points.dtype.kind not in "fiu":
        raise ValueError(
            f"points must be numbers in an array (N, d), got shape {points.shape} of "
            f"{points.dtype}; for one number per point the shape is (N, 1)"
        )
    if points.shape[1] == 0:
        raise ValueError(f"points must have coordinates, got shape {points.shape}")
    if dimension is not None and points.shape[1] != dimension:
        raise ValueError(
            f"the family has {dimension} dimensions, the points have {points.shape[1]}"
        )
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"row {row} of the points has an entry that is not finite: {points[row]}")
    return points
