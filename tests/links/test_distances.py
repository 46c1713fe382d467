"""Distances in time, in space and on graphs."""

import itertools

import numpy as np
import pytest

from numpyro_rankings.links.distances import (
    graph_distances,
    nearest_distances,
    sequential_distances,
)


def as_matrix(sparse):
    size = len(sparse.neighbors)
    matrix = np.full((size, size), np.inf)
    for i, (row, values) in enumerate(zip(sparse.neighbors, sparse.distances, strict=True)):
        for j, value in zip(row[row >= 0], values[row >= 0], strict=True):
            assert np.isinf(matrix[i, j])
            matrix[i, j] = value
    return matrix


def test_in_time():
    times = [3.0, 1.0, 3.0, 0.5]
    expected = np.full((4, 4), np.inf)
    for i, j in itertools.permutations(range(4), 2):
        if (times[j], j) < (times[i], i):
            expected[i, j] = times[i] - times[j]
    np.testing.assert_array_equal(sequential_distances(times), expected)
    np.testing.assert_array_equal(as_matrix(sequential_distances(times, 9)), expected)
    two = expected.copy()
    two[2, 3] = np.inf  # the order of time is 3, 1, 0, 2
    np.testing.assert_array_equal(as_matrix(sequential_distances(times, 2)), two)
    assert as_matrix(sequential_distances([1.0], 3)).shape == (1, 1)


def test_in_space():
    points = np.random.default_rng(0).normal(size=(30, 2))
    points[20:] = points[0]  # in one place
    full = np.linalg.norm(points[:, None] - points, axis=-1)
    found = nearest_distances(points, 4)
    matrix = as_matrix(found)
    assert np.all(np.isinf(np.diagonal(matrix)))
    assert found.distances.dtype == np.float32
    kept = np.isfinite(matrix)
    np.testing.assert_allclose(matrix[kept], full[kept], atol=1e-6)
    np.fill_diagonal(full, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(full, axis=1)[:, :4], atol=1e-6)
    assert nearest_distances(points[:3], 20).neighbors.shape == (3, 2)


def test_on_a_graph():
    rng = np.random.default_rng(1)
    edges = [(int(i), int(j)) for i, j in rng.integers(12, size=(14, 2))]  # loops, and some twice
    hops = np.where(np.eye(12), 0.0, np.inf)
    for i, j in edges:
        if i != j:
            hops[i, j] = hops[j, i] = 1.0
    for k in range(12):  # Floyd and Warshall
        hops = np.minimum(hops, hops[:, k, None] + hops[k])
    np.fill_diagonal(hops, np.inf)
    for most in (1, 2, 20):
        expected = np.where(hops <= most, hops, np.inf)
        np.testing.assert_array_equal(as_matrix(graph_distances(edges, 12, most)), expected)
    assert np.all(graph_distances([], 3).neighbors == -1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: sequential_distances([[1.0]]), "times must be finite numbers"),
        (lambda: sequential_distances([1.0, np.nan]), "times must be finite numbers"),
        (lambda: sequential_distances([1.0, 2.0], 0), "num_neighbors must be a positive"),
        (lambda: nearest_distances([1.0, 2.0], 1), "points must be finite numbers"),
        (lambda: nearest_distances([[1.0]], 1), "1 points have no neighbors"),
        (lambda: graph_distances([(0, 3)], 3), "two points from 0 to 2, got"),
        (lambda: graph_distances([(0, 1, 2)], 3), "an edge must be two points"),
        (lambda: graph_distances([(0, 0.5)], 3), "an edge must be two points"),
        (lambda: graph_distances([(0, 1)], 3, num_hops=0), "num_hops must be a positive"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
