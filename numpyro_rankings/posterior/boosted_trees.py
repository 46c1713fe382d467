"""Gradient-boosted trees that tell which class a point is of."""

import numpy as np

_BINS = 32  # into which the values of a feature are cut
_ROUNDS, _DEPTH, _RATE = 50, 3, 0.1
_LEAST = 10  # points of a leaf
_SHARE = 0.5  # of the points, of which each round takes another half
_MOST_FEATURES = 40  # of a round


def class_probabilities(
    x: np.ndarray, labels: np.ndarray, new: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Learn the classes of points by stochastic gradient boosting, and predict those of new ones.

    50 rounds of trees of depth 3, with the shrinkage 0.1 and at least 10 points in a leaf.

    **References:** Friedman, "Greedy function approximation: a gradient boosting machine", Annals
    of Statistics (2001), Algorithm 6; "Stochastic gradient boosting", Computational Statistics &
    Data Analysis (2002).

    :param x: (points, features).
    :param labels: of the points, from 0.
    :param new: (new points, features).
    :return: (new points, classes).
    """
    size, num_classes = len(x), labels.max() + 1
    edges = np.quantile(x, np.arange(1, _BINS) / _BINS, axis=0, method="lower")
    points = np.concatenate([x, new])
    bins = np.stack([np.searchsorted(e, v) for e, v in zip(edges.T, points.T, strict=True)], 1)
    scores = np.zeros((len(points), num_classes))
    is_of = np.eye(num_classes)[labels]
    for _ in range(_ROUNDS):
        residuals = is_of - _probabilities(scores[:size])
        rows = rng.choice(size, max(1, int(_SHARE * size)), replace=False)
        num_features = min(_MOST_FEATURES, x.shape[1])
        some = bins[:, rng.choice(x.shape[1], num_features, replace=False)]
        for k, residual in enumerate(residuals[rows].T):
            leaf, value = _tree(some, rows, residual)
            scores[:, k] += _RATE * (num_classes - 1) / num_classes * value[leaf]
    return _probabilities(scores[size:])


def _probabilities(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _tree(
    bins: np.ndarray, rows: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Grow a tree on some rows, and return the leaf of every row and the values of the leaves."""
    curvature = np.abs(residual) * (1 - np.abs(residual))
    features = np.arange(bins.shape[1])
    mine, node = bins[rows], np.zeros(len(bins), np.int64)
    for level in range(_DEPTH):
        shape = 2**level, len(features), _BINS
        place = np.ravel_multi_index((node[rows, None], features, mine), shape)
        below = [
            np.bincount(place.ravel(), np.repeat(w, len(features)), np.prod(shape))
            .reshape(shape)
            .cumsum(2)
            for w in (np.ones(len(rows)), residual)
        ]
        (n, g), (all_n, all_g) = below, (x[..., -1:] for x in below)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = g**2 / n + (all_g - g) ** 2 / (all_n - n)
        gain[(n < _LEAST) | (all_n - n < _LEAST)] = -1
        best = gain.reshape(len(gain), -1).argmax(1)
        feature, last = np.divmod(best, _BINS)
        last[gain.max((1, 2)) < 0] = _BINS  # no split
        node = 2 * node + (bins[np.arange(len(bins)), feature[node]] > last[node])
    sums = [np.bincount(node[rows], w, 2**_DEPTH) for w in (residual, curvature)]
    return node, sums[0] / np.maximum(sums[1], 1e-12)
