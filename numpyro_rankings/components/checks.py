"""A check of component families, for the tests of those who write one."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.components.family import AugmentedFamily, Family, num_points, take

_MOST_POINTS = 8  # that are used
_DRAWS = 20_000  # of the parameters
_ERRORS = 6.0  # standard errors that their mean may be off
# a kernel tries fewer points, and tolerates the rounding errors of sums that lose digits
_POINTS_OF_A_KERNEL, _TOLERANCE_OF_A_KERNEL = 4, 0.05


def check_family(
    family: Family, data: Any, support: Any = None, weights: Any = None, tolerance: float = 1e-3
) -> None:
    """Check that a family of components keeps the promises on which all kernels rely.

    Use it in the tests of a family of your own. It checks the shapes; that an empty cluster has
    marginal 1; that no log marginal is NaN or infinite; that the marginal of a cluster is the
    product of its predictive probabilities in any order (exchangeability); that points that join
    and leave change nothing else; unions; that all methods work under ``jit`` and ``vmap``; that
    the mean likelihood over drawn parameters is the predictive probability, if the family draws
    them; and, given the support, that predictive probabilities sum to 1. Without the support a
    score that is no probability can pass, such as one of the size of the cluster alone.

    The kernels make a part of these checks when they start, with the first four points, if the
    family is not one of this package. They need about a second.

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
    # by NumPy: each of JAX's operations outside of a program is compiled by itself
    points = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[:number]), points)
    labels = np.arange(number, dtype=np.int32) % 2
    make = jax.jit(partial(_make_clusters, family))
    clusters = _check_clusters(family, points, labels, make, tolerance)
    both = np.stack([labels, 1 - labels])
    expected = np.stack([make(points, x)[1] for x in both])
    found = jax.jit(jax.vmap(lambda x: make(points, x)[1]))(both)
    _compare([("vmap changes nothing", found, expected)], tolerance)
    if family.has_parameters:
        _check_parameters(family, points, clusters)
    if support is not None:
        values = family.statistics(support)
        _compare(_claims_about_support(family, clusters, values, weights), tolerance)


def check_family_in_kernel(family: Family, data: Any) -> None:
    """Refuse a family of a user's own that a kernel cannot use, by the quick checks."""
    of_package = type(family).__module__.startswith(__package__ + ".")
    is_traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(data))
    if of_package or is_traced or isinstance(family, AugmentedFamily):
        return
    points = jax.jit(family.statistics)(data)
    try:
        number = min(_check_points(points, None), _POINTS_OF_A_KERNEL)
        if number < 2:
            return
        points = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[:number]), points)
        labels = np.arange(number, dtype=np.int32) % 2
        make = jax.jit(partial(_make_clusters, family))
        _check_clusters(family, points, labels, make, _TOLERANCE_OF_A_KERNEL)
    except ValueError as error:
        name = type(family).__name__
        raise ValueError(
            f"{name} is no family of components: {error}. Try check_family({name}(…), points)"
        ) from None


def _check_clusters(
    family: Family, points: Any, labels: np.ndarray, make: Callable, tolerance: float
) -> Any:
    """Check two clusters and an empty one, and return them."""
    clusters, marginal = make(points, labels)
    found = np.asarray(marginal)
    for c in (0, 1):
        if np.isnan(found[c]) or found[c] == np.inf:
            members = np.sum(labels == c)
            raise ValueError(f"log_marginal of a cluster of {members} points is {found[c]}")
    _compare([("the log marginal of an empty cluster is 0", found[2], 0.0)], tolerance)
    claims = partial(_claims_about_points, family, labels)
    _compare(_compiled(claims, points, clusters, marginal), tolerance)
    return clusters


# what has to be equal: the promise, what is found and what is expected
_Claims = list[tuple[str, Any, Any]]


def _compiled(claims: Callable[..., _Claims], *arguments: Any) -> _Claims:
    """Claims of a function of arrays, computed by one program instead of op by op."""
    promises: list[str] = []

    def numbers(*arguments: Any) -> list[tuple[Any, Any]]:
        made = claims(*arguments)
        promises.extend(promise for promise, *_ in made)
        return [(found, expected) for _, found, expected in made]

    pairs = jax.jit(numbers)(*arguments)
    return [(promise, *pair) for promise, pair in zip(promises, pairs, strict=True)]


def _compare(claims: _Claims, tolerance: float) -> None:
    """Raise ValueError for the first claim that does not hold."""
    for promise, found, expected in claims:
        one, two = np.asarray(found, float), np.asarray(expected, float)
        if one.shape != two.shape:
            raise ValueError(f"{promise}: the shapes are {one.shape} and {two.shape}")
        # both may be impossible
        same = (one == two) | (np.abs(one - two) <= tolerance * np.maximum(1.0, abs(two)))
        if not same.all():
            k = int(np.argmin(same.ravel()))
            raise ValueError(f"{promise}: {one.ravel()[k]:.6g} is not {two.ravel()[k]:.6g}")


def _check_points(points: Any, size: int | None) -> int:
    """Check the shapes of the statistics, and return the number of points."""
    leaves = jax.tree.leaves(points)
    if not leaves:
        raise ValueError("statistics() returns no arrays")
    if size is None:
        size = next((np.shape(x)[0] for x in leaves if np.ndim(x) > 0), 0)
    for leaf in leaves:
        if np.ndim(leaf) == 0 or np.shape(leaf)[0] != size:
            raise ValueError(
                f"statistics() must have an axis of the {size} points first: got an array of shape "
                f"{np.shape(leaf)}"
            )
    return size


def _make_clusters(family: Family, points: Any, labels: Array) -> tuple[Any, Array]:
    """Clusters and their log marginals, after a look at the shapes."""
    clusters = family.of_clusters(points, labels, 3)
    for leaf in jax.tree.leaves(clusters):
        if np.shape(leaf)[:1] != (3,):
            raise ValueError(
                f"of_clusters(…, 3) must have an axis of 3 clusters first: got {np.shape(leaf)}"
            )
    marginal = family.log_marginal(clusters)
    if np.shape(marginal) != (3,):
        raise ValueError(f"log_marginal of 3 clusters must be (3,): got {np.shape(marginal)}")
    return clusters, marginal


def _claims_about_points(
    family: Family, labels: np.ndarray, points: Any, clusters: Any, marginal: Array
) -> _Claims:
    """What can be computed at once: each method is evaluated on stacked clusters."""
    number = len(labels)
    # a cluster and the point that joins it, from the first member to the last and back
    steps: list[tuple[Any, Any]] = []
    totals, built = [], []
    for c, way in itertools.product((0, 1), (1, -1)):
        cluster, members = take(clusters, 2), np.flatnonzero(labels == c)[::way]  # begins empty
        totals.append(slice(len(steps), len(steps) + len(members)))
        for i in members:
            steps.append((cluster, take(points, i)))
            cluster = family.add(cluster, take(points, i))
        built.append(cluster)
    own = take(clusters, labels)
    rest = family.subtract(own, points)
    one, two = take(clusters, 0), take(clusters, 1)

    marginals = _on_all(
        family.log_marginal,
        clusters,
        _stacked(built),
        own,
        rest,
        family.add(rest, points),
        _stacked([family.add(one, two)]),
    )
    first, of_built, of_own, of_rest, of_back, union = (x[0] for x in marginals)
    cluster, point = (_joined([x, y]) for x, y in zip(_stacked(steps), (rest, points), strict=True))
    predictive = family.log_predictive(cluster, point)
    if np.shape(predictive) != (3 * number,):
        raise ValueError(
            f"log_predictive of {3 * number} clusters and points must be ({3 * number},): got "
            f"{np.shape(predictive)}"
        )
    total = jnp.stack([predictive[part].sum() for part in totals])
    joins = predictive[2 * number :]
    # all pairs of clusters and points by broadcasting
    by_cluster = jax.tree.map(lambda x: x[:, None], clusters)
    by_point = jax.tree.map(lambda x: x[None], points)
    table = jax.eval_shape(family.log_predictive, by_cluster, by_point)
    if table.shape != (3, number):
        raise ValueError(
            f"the leading axes of log_predictive broadcast: (3, 1) and (1, {number}) gave "
            f"{table.shape}"
        )
    expected = marginal[np.array([0, 0, 1, 1])]
    without = family.log_predictive_of_member(own, points)
    gain = family.log_union(one, family.for_union(two))
    return [
        ("log_marginal takes any leading axes", marginals[0], jnp.stack([marginal, marginal])),
        ("the marginal is the product of predictives in any order", total, expected),
        ("add() gives what of_clusters() gives", of_built, expected),
        ("log_predictive_of_member is log_predictive without the member", without, joins),
        ("log_predictive is the change of log_marginal", joins, of_own - of_rest),
        ("add() undoes subtract()", of_back, of_own),
        ("log_union is the change of the log marginals", gain, union[0] - first[0] - first[1]),
    ]


def _on_all(function: Callable, *parts: Any) -> list[Array]:
    """A function of clusters on several arrays of them; twice, with a second leading axis."""
    every = _joined(list(parts))
    values = function(jax.tree.map(lambda x: jnp.stack([x, x]), every))
    size = num_points(every)
    if np.shape(values) != (2, size):
        raise ValueError(
            f"log_marginal takes any leading axes: of clusters (2, {size}) it is {np.shape(values)}"
        )
    ends = np.cumsum([num_points(part) for part in parts])
    return jnp.split(values, ends[:-1], axis=1)


def _check_parameters(family: Family, points: Any, clusters: Any) -> None:
    """The mean likelihood over draws from the posterior is the predictive probability."""

    @jax.jit
    def likelihood_and_predictive(keys: Array, points: Any, clusters: Any) -> tuple[Array, Array]:
        parameters = jax.vmap(lambda key: family.draw_parameters(key, clusters))(keys)
        for leaf in jax.tree.leaves(parameters):
            if np.shape(leaf)[:2] != (_DRAWS, 3):
                raise ValueError(
                    f"draw_parameters() of 3 clusters must have an axis of 3 first: got "
                    f"{np.shape(leaf)[1:]}"
                )
        point = take(points, 0)
        likelihood = jax.vmap(lambda p: family.log_likelihood(p, point))(parameters)
        return likelihood, family.log_predictive(clusters, point)

    keys = jax.random.split(jax.random.key(0), _DRAWS)
    likelihood, predictive = likelihood_and_predictive(keys, points, clusters)
    if np.shape(likelihood) != (_DRAWS, 3):
        raise ValueError(
            f"log_likelihood of 3 clusters and a point must be (3,): got {np.shape(likelihood)[1:]}"
        )
    values = np.exp(np.asarray(likelihood, float))
    expected = np.exp(np.asarray(predictive, float))
    error = values.std(0) / np.sqrt(_DRAWS) + 1e-6 * expected
    if (np.abs(values.mean(0) - expected) > _ERRORS * error).any():
        raise ValueError(
            f"the mean likelihood over drawn parameters is {values.mean(0)}, but the predictive "
            f"probability {expected}, in a cluster, another one and an empty one"
        )


def _claims_about_support(family: Family, clusters: Any, values: Any, weights: Any) -> _Claims:
    size = num_points(values)
    measure = np.ones(size) if weights is None else np.asarray(weights, float)
    if measure.shape != (size,):
        raise ValueError(f"weights must be ({size},), one for each value of the support")
    predictive = jax.jit(lambda x, y, c: family.log_predictive(take(x, c), y))
    claims = []
    for c in range(3):
        log_p = np.asarray(predictive(clusters, values, c), float)
        total = float(np.sum(np.exp(log_p) * measure))
        promise = "predictive probabilities sum to 1; their log sum"
        claims.append((promise, np.log(max(total, 1e-300)), 0.0))
    return claims


def _stacked(trees: list) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _joined(trees: list) -> Any:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)
