"""A check of component families, for the tests of those who write one."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.components.family import AugmentedFamily, Family, num_points, take

_MOST_POINTS = 8  # that are used
_DRAWS = 20_000  # of the parameters
_ERRORS = 6.0  # standard errors that their mean may be off


def check_family(
    family: Family, data: Any, support: Any = None, weights: Any = None, tolerance: float = 1e-3
) -> None:
    """Check that a family of components keeps the promises on which all kernels rely.

    Use it in the tests of a family of your own. It checks the shapes; that an empty cluster has
    marginal 1; that the marginal of a cluster is the product of its predictive probabilities in any
    order (exchangeability); that points that join and leave change nothing else; unions; that all
    methods work under ``jit`` and ``vmap``; that the mean likelihood over drawn parameters is the
    predictive probability, if the family draws them; and, given the support, that predictive
    probabilities sum to 1.

    :param family: the family. Families with auxiliary variables are refused.
    :param data: a few points, of which the first eight are used; some should be alike.
    :param support: all values that a point can have, as ``data``; or a fine grid of them.
    :param weights: for a grid, the weight of each value in the integral, (values,).
    :param tolerance: largest difference of two log probabilities that should be equal.
    :raises ValueError: that says which promise is broken.
    """
    if not isinstance(family, Family):
        raise TypeError(f"a Family is checked, not {type(family).__name__}")
    if isinstance(family, AugmentedFamily):
        raise ValueError("families with auxiliary variables cannot be checked in this way")
    family.check(data)
    points = family.statistics(data)
    _check_points(points, family.size(data))
    number = min(num_points(points), _MOST_POINTS)
    if number < 4:
        raise ValueError(f"give at least 4 points, got {number}")
    points = take(points, np.arange(number))
    equal = _Equality(tolerance)
    labels = jnp.arange(number, dtype=jnp.int32) % 2
    clusters = family.of_clusters(points, labels, 3)
    _check_clusters(family, clusters, equal)
    _check_order(family, points, labels, clusters, equal)
    _check_members(family, points, labels, clusters, equal)
    _check_unions(family, clusters, equal)
    _check_compiled(family, points, labels, equal)
    if family.has_parameters:
        _check_parameters(family, points, clusters)
    if support is not None:
        _check_support(family, clusters, family.statistics(support), weights, equal)


class _Equality:
    """Compares log probabilities that should be equal."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance

    def __call__(self, found: Any, expected: Any, promise: str) -> None:
        one, two = np.asarray(found, float), np.asarray(expected, float)
        if one.shape != two.shape:
            raise ValueError(f"{promise}: the shapes are {one.shape} and {two.shape}")
        # both may be impossible
        same = (one == two) | (np.abs(one - two) <= self._tolerance * np.maximum(1.0, abs(two)))
        if not same.all():
            k = int(np.argmin(same.ravel()))
            raise ValueError(f"{promise}: {one.ravel()[k]:.6g} is not {two.ravel()[k]:.6g}")


def _check_points(points: Any, size: int) -> None:
    leaves = jax.tree.leaves(points)
    if not leaves:
        raise ValueError("statistics() returns no arrays")
    for leaf in leaves:
        if np.ndim(leaf) == 0 or np.shape(leaf)[0] != size:
            raise ValueError(
                f"statistics() must have an axis of the {size} points first: got an array of shape "
                f"{np.shape(leaf)}"
            )


def _check_clusters(family: Family, clusters: Any, equal: _Equality) -> None:
    for leaf in jax.tree.leaves(clusters):
        if np.shape(leaf)[:1] != (3,):
            raise ValueError(
                f"of_clusters(…, 3) must have an axis of 3 clusters first: got {np.shape(leaf)}"
            )
    marginal = family.log_marginal(clusters)
    if np.shape(marginal) != (3,):
        raise ValueError(f"log_marginal of 3 clusters must be (3,): got {np.shape(marginal)}")
    equal(marginal[2], 0.0, "the log marginal of an empty cluster is 0")
    two = jax.tree.map(lambda x: jnp.stack([x, x]), clusters)
    promise = "log_marginal takes any leading axes"
    equal(family.log_marginal(two), jnp.stack([marginal, marginal]), promise)


def _check_order(
    family: Family, points: Any, labels: Array, clusters: Any, equal: _Equality
) -> None:
    """The marginal is the product of predictive probabilities, first to last and last to first."""
    number = len(labels)
    for c in (0, 1):
        members = [i for i in range(number) if int(labels[i]) == c]
        expected = family.log_marginal(take(clusters, c))
        for order in (members, members[::-1]):
            cluster, total = take(clusters, 2), jnp.zeros(())  # begins empty
            for i in order:
                total += family.log_predictive(cluster, take(points, i))
                cluster = family.add(cluster, take(points, i))
            equal(total, expected, "the marginal is the product of predictives in any order")
            equal(family.log_marginal(cluster), expected, "add() gives what of_clusters() gives")


def _check_members(
    family: Family, points: Any, labels: Array, clusters: Any, equal: _Equality
) -> None:
    own = take(clusters, labels)
    rest = family.subtract(own, points)
    expected = family.log_predictive(rest, points)
    found = family.log_predictive_of_member(own, points)
    equal(found, expected, "log_predictive_of_member is log_predictive without the member")
    change = family.log_marginal(own) - family.log_marginal(rest)
    equal(expected, change, "log_predictive is the change of log_marginal")
    back = family.add(rest, points)
    equal(family.log_marginal(back), family.log_marginal(own), "add() undoes subtract()")
    # all pairs of clusters and points by broadcasting
    by_cluster = jax.tree.map(lambda x: x[:, None], clusters)
    table = family.log_predictive(by_cluster, jax.tree.map(lambda x: x[None], points))
    if np.shape(table) != (3, len(labels)):
        raise ValueError(
            f"the leading axes of log_predictive broadcast: (3, 1) and (1, {len(labels)}) gave "
            f"{np.shape(table)}"
        )


def _check_unions(family: Family, clusters: Any, equal: _Equality) -> None:
    one, two = take(clusters, 0), take(clusters, 1)
    marginal = family.log_marginal
    expected = marginal(family.add(one, two)) - marginal(one) - marginal(two)
    found = family.log_union(one, family.for_union(two))
    equal(found, expected, "log_union is the change of the log marginals")


def _check_compiled(family: Family, points: Any, labels: Array, equal: _Equality) -> None:
    def marginals(labels: Array) -> Array:
        return family.log_marginal(family.of_clusters(points, labels, 3))

    both = jnp.stack([labels, 1 - labels])
    expected = jnp.stack([marginals(x) for x in both])
    equal(jax.jit(jax.vmap(marginals))(both), expected, "jit and vmap change nothing")


def _check_parameters(family: Family, points: Any, clusters: Any) -> None:
    """The mean likelihood over draws from the posterior is the predictive probability."""
    keys = jax.random.split(jax.random.key(0), _DRAWS)
    draw: Callable = jax.vmap(lambda key: family.draw_parameters(key, clusters))
    parameters = draw(keys)
    for leaf in jax.tree.leaves(parameters):
        if np.shape(leaf)[:2] != (_DRAWS, 3):
            raise ValueError(
                f"draw_parameters() of 3 clusters must have an axis of 3 first: got "
                f"{np.shape(leaf)[1:]}"
            )
    point = take(points, 0)
    likelihood = jax.vmap(lambda p: family.log_likelihood(p, point))(parameters)
    if np.shape(likelihood) != (_DRAWS, 3):
        raise ValueError(
            f"log_likelihood of 3 clusters and a point must be (3,): got {np.shape(likelihood)[1:]}"
        )
    values = np.exp(np.asarray(likelihood, float))
    expected = np.exp(np.asarray(family.log_predictive(clusters, point), float))
    error = values.std(0) / np.sqrt(_DRAWS) + 1e-6 * expected
    if (np.abs(values.mean(0) - expected) > _ERRORS * error).any():
        raise ValueError(
            f"the mean likelihood over drawn parameters is {values.mean(0)}, but the predictive "
            f"probability {expected}, in a cluster, another one and an empty one"
        )


def _check_support(
    family: Family, clusters: Any, values: Any, weights: Any, equal: _Equality
) -> None:
    size = num_points(values)
    measure = np.ones(size) if weights is None else np.asarray(weights, float)
    if measure.shape != (size,):
        raise ValueError(f"weights must be ({size},), one for each value of the support")
    for c in range(3):
        log_p = np.asarray(family.log_predictive(take(clusters, c), values), float)
        total = float(np.sum(np.exp(log_p) * measure))
        equal(np.log(max(total, 1e-300)), 0.0, "predictive probabilities sum to 1; their log sum")
