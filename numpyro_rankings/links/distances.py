"""Distances between points, for the distance dependent Chinese restaurant process."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from scipy.spatial import cKDTree

from numpyro_rankings.ops.checks import check_whole, refuse_masked
from numpyro_rankings.ops.links import check_neighbors

__all__ = [
    "SparseDistances",
    "graph_distances",
    "nearest_distances",
    "sequential_distances",
]

_MOST_NEIGHBORS = 100_000_000  # entries of the distances of a graph


class SparseDistances(NamedTuple):
    """Distances to some points only; all others are out of reach, so no N by N array is made.

    - **neighbors** - (N, L), padded with -1, no point twice in the same row.
    - **distances** - (N, L).
    """

    neighbors: Any
    distances: Any


def sequential_distances(
    times: ArrayLike, num_neighbors: int | None = None
) -> "np.ndarray | SparseDistances":
    """Distances in time from each point to the earlier ones, so that links only go back in time.

    Points at the same time are in the order of the array.

    :param times: (N,), numbers; or dates (``datetime64``), whose distances are in days.
    :param num_neighbors: number of points just before it to which each point may link. If None,
        each may link to all earlier points, and the result is an array (N, N) with inf for later
        points.

    .. doctest::

       >>> sequential_distances([0.0, 1.0, 3.0])
       array([[inf, inf, inf],
              [ 1., inf, inf],
              [ 3.,  2., inf]], dtype=float32)
    """
    refuse_masked("times", times)
    times = np.asarray(times)
    if times.dtype.kind == "M":
        times = (times - times[:1]) / np.timedelta64(1, "D")
    if times.ndim != 1 or times.dtype.kind not in "iuf" or not np.isfinite(times).all():
        raise ValueError("times must be finite numbers in an array (N,)")
    size, order = len(times), np.argsort(times, kind="stable")
    place = np.argsort(order)
    if num_neighbors is None:
        earlier = place[None, :] < place[:, None]
        return np.where(earlier, times[:, None] - times[None, :], np.inf).astype(np.float32)
    check_whole("num_neighbors", num_neighbors)
    places = place[:, None] - np.arange(1, min(num_neighbors, max(size - 1, 1)) + 1)
    neighbors = np.where(places >= 0, order[places], -1).astype(np.int32)
    back = np.where(places >= 0, times[:, None] - times[neighbors], 0.0)
    return SparseDistances(neighbors, back.astype(np.float32))


def nearest_distances(points: ArrayLike, num_neighbors: int) -> SparseDistances:
    """Euclidean distances from each point to its nearest ones; the relation need not be mutual.

    :param points: (N, d).
    :param num_neighbors: number L of neighbors; at most N - 1 are used.
    """
    refuse_masked("points", points)
    points = np.asarray(points)
    if points.ndim != 2 or points.dtype.kind not in "iuf" or not np.isfinite(points).all():
        raise ValueError("points must be finite numbers in an array (N, d)")
    check_whole("num_neighbors", num_neighbors)
    size, number = len(points), min(num_neighbors, len(points) - 1)
    if number < 1:
        raise ValueError(f"{size} points have no neighbors")
    distances, neighbors = cKDTree(points).query(points, number + 1)
    # among points at the same place the point itself may come anywhere, or be missing
    itself = neighbors == np.arange(size)[:, None]
    itself[~itself.any(axis=1), -1] = True
    kept = (size, number)
    return SparseDistances(
        neighbors[~itself].reshape(kept).astype(np.int32),
        distances[~itself].reshape(kept).astype(np.float32),
    )


def graph_distances(
    edges: Iterable[tuple[int, int]], num_points: int, num_hops: int = 1
) -> SparseDistances:
    """Numbers of hops along the edges of an undirected graph.

    :param edges: pairs of points, numbered from 0.
    :param num_points: N.
    :param num_hops: largest distance; points farther away are out of reach.

    .. doctest::

       >>> graph_distances([(0, 1), (1, 2)], num_points=3, num_hops=2).distances
       array([[1., 2.],
              [1., 1.],
              [1., 2.]], dtype=float32)
    """
    check_whole("num_points", num_points)
    check_whole("num_hops", num_hops)
    refuse_masked("edges", edges)
    adjacent: list[set[int]] = [set() for _ in range(num_points)]
    for edge in edges:
        ends = [int(end) for end in edge if float(end).is_integer() and 0 <= end < num_points]
        if len(ends) != 2 or len(list(edge)) != 2:
            raise ValueError(f"an edge must be two points from 0 to {num_points - 1}, got {edge!r}")
        one, other = ends
        if one != other:
            adjacent[one].add(other)
            adjacent[other].add(one)
    reached = [_within(adjacent, i, num_hops) for i in range(num_points)]
    longest = max(1, max(map(len, reached)))
    if longest * num_points > _MOST_NEIGHBORS:
        raise ValueError(
            f"one point reaches {longest:,} others within {num_hops} hops, too many for "
            f"{num_points:,} points"
        )
    neighbors = np.full((num_points, longest), -1, np.int32)
    hops = np.zeros((num_points, longest), np.float32)
    for i, hops_by_neighbor in enumerate(reached):
        neighbors[i, : len(hops_by_neighbor)] = list(hops_by_neighbor)
        hops[i, : len(hops_by_neighbor)] = list(hops_by_neighbor.values())
    return SparseDistances(neighbors, hops)


def _within(adjacent: Sequence[set[int]], start: int, num_hops: int) -> dict[int, int]:
    """Hops to each point within ``num_hops`` of the start, without the start itself."""
    hops, frontier = {start: 0}, [start]
    for k in range(1, num_hops + 1):
        frontier = [j for i in frontier for j in sorted(adjacent[i])]
        frontier = [j for j in dict.fromkeys(frontier) if j not in hops]
        if not frontier:
            break
        hops |= dict.fromkeys(frontier, k)
    del hops[start]
    return hops


def as_neighbors(distances: Any) -> tuple[Array | None, Array]:
    """The points of the columns (None for all points) and the distances."""
    if isinstance(distances, SparseDistances):
        return jnp.asarray(distances.neighbors, jnp.int32), jnp.asarray(distances.distances, float)
    return None, jnp.asarray(distances, float)


def num_distances(distances: Any) -> int:
    """Number of points that have a row of distances."""
    return len(distances.distances if isinstance(distances, SparseDistances) else distances)


def check_distances(
    distances: Any, size: int, others: int | None = None, awaits: bool = False
) -> None:
    """Raise ValueError unless these are distances between ``size`` points."""
    # There may be ``others`` as columns, and if it ``awaits`` more rows, of points without data.
    sparse = isinstance(distances, SparseDistances)
    if sparse:
        refuse_masked("neighbors", distances.neighbors)
    refuse_masked("distances", distances.distances if sparse else distances)
    values = np.asarray(distances.distances if sparse else distances)
    rows = len(values) if awaits and values.ndim and len(values) > size else size
    columns = rows if others is None else others
    size_of_row = "L" if sparse else columns
    if (
        values.dtype.kind not in "iuf"
        or values.ndim != 2
        or len(values) != rows
        or values.shape[1] == 0
        or (not sparse and values.shape[1] != columns)
    ):
        raise ValueError(
            f"there are {size} points: distances must be numbers in an array "
            f"({rows}, {size_of_row}), got shape {values.shape} of {values.dtype}"
        )
    bad = ~(values >= 0)
    if sparse:
        neighbors = np.asarray(distances.neighbors)
        if neighbors.shape != values.shape:
            raise ValueError(
                f"neighbors must have the shape of the distances, {values.shape}, got "
                f"{neighbors.shape}"
            )
        check_neighbors(neighbors, columns)
        bad &= neighbors >= 0
    if bad.any():
        row = int(np.argmax(bad.any(axis=1)))
        raise ValueError(f"row {row} has a distance that is negative or NaN")
