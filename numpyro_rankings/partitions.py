"""Comparing and summarising partitions: distances, co-clustering, a point estimate, matching.

Everything here is NumPy on label vectors: integers, shape ``(N,)`` for one partition of ``N``
rankings and ``(D, N)`` for draws. Only which labels are equal matters, unless said otherwise.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

__all__ = [
    "MedoidPartition",
    "adjusted_rand_index",
    "canonical_labels",
    "coclustering",
    "coclustering_blocks",
    "contingency_table",
    "match_clusters",
    "medoid_partition",
    "partition_entropy",
    "variation_of_information",
]


def canonical_labels(labels: ArrayLike) -> np.ndarray:
    """Number the clusters of each partition ``0, 1, …`` in order of first use.

    :param labels: any labels, shape ``(…, N)``.
    :return: int32, the same shape.
    """
    labels = np.asarray(labels)
    flat = labels.reshape(-1, labels.shape[-1])
    return np.stack([_in_order_of_use(row) for row in flat]).reshape(labels.shape)


def _in_order_of_use(labels: np.ndarray) -> np.ndarray:
    codes = labels
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 4 * len(labels):
        codes = np.unique(labels, return_inverse=True)[1].ravel()
    size = len(codes)
    first = np.full(int(codes.max()) + 1, size)
    first[codes[::-1]] = np.arange(size)[::-1]  # of equal indices the last value stays
    return np.argsort(np.argsort(first, kind="stable")).astype(np.int32)[codes]


def contingency_table(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Number of rankings in each pair of clusters of two partitions.

    :param a: labels ``0..A-1``, shape ``(N,)``.
    :param b: labels ``0..B-1``, shape ``(N,)``.
    :return: counts, int64, shape ``(A, B)``.
    :raises ValueError: if the two do not label the same number of rankings.
    """
    a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise ValueError(
            f"partitions of the same rankings are needed, got labels of shape {a.shape} "
            f"and {b.shape}"
        )
    num_a, num_b = int(a.max()) + 1, int(b.max()) + 1
    return np.bincount(a * num_b + b, minlength=num_a * num_b).reshape(num_a, num_b)


def _table(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Contingency table of labels that need not be small or start at 0."""
    return contingency_table(*(np.unique(x, return_inverse=True)[1].ravel() for x in (a, b)))


def partition_entropy(sizes: ArrayLike) -> np.ndarray:
    r"""Entropy :math:`-\sum_c \frac{n_c}{N} \ln \frac{n_c}{N}` of partitions, in nats.

    :param sizes: cluster sizes, shape ``(…, C)``; empty clusters count for nothing.
    :return: shape ``(…)``.
    """
    sizes = np.asarray(sizes, np.float64)
    total = sizes.sum(-1, keepdims=True)
    share = np.where(sizes > 0, sizes / total, 1.0)
    return -(share * np.log(share)).sum(-1)


def variation_of_information(a: ArrayLike, b: ArrayLike) -> float:
    r"""Variation of information between two partitions, in nats [1].

    :math:`H(A \mid B) + H(B \mid A)`: a metric, 0 for equal partitions and at most
    :math:`\ln N`.

    :param a: labels, shape ``(N,)``.
    :param b: labels, shape ``(N,)``.

    **References:**

    1. Meilă, M. (2007), *Comparing clusterings: an information based distance*, J. Multivariate
       Analysis.

    .. doctest::

       >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0])
       0.0
       >>> round(variation_of_information([0, 0, 1, 1], [0, 0, 0, 0]), 4)
       0.6931
    """
    table = _table(a, b)
    return _vi(table.sum(1), table.sum(0), table.ravel())


def _vi(sizes_a: np.ndarray, sizes_b: np.ndarray, joint: np.ndarray) -> float:
    """Of the sizes of the clusters and of their intersections."""
    apart = partition_entropy(sizes_a) + partition_entropy(sizes_b)
    return max(0.0, float(2 * partition_entropy(joint) - apart))  # rounding may leave -1e-16


def _binder(sizes_a: np.ndarray, sizes_b: np.ndarray, joint: np.ndarray) -> float:
    """Share of the pairs that one partition joins and the other parts."""
    together = [_pairs(x) for x in (sizes_a, sizes_b, joint)]
    return float((together[0] + together[1] - 2 * together[2]) / max(_pairs(sizes_a.sum()), 1))


def _joint_sizes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sizes of the intersections: of many small clusters without the table, mostly zeros."""
    if (int(a.max()) + 1) * (int(b.max()) + 1) <= 4 * len(a):
        return contingency_table(a, b).ravel()
    return np.unique(a * (int(b.max()) + 1) + b, return_counts=True)[1]


def _pairs(counts: np.ndarray) -> float:
    counts = np.asarray(counts, np.float64)
    return float((counts * (counts - 1) / 2).sum())


def adjusted_rand_index(a: ArrayLike, b: ArrayLike) -> float:
    """Adjusted Rand index of two partitions: 1 if equal, 0 on average if unrelated [1].

    :param a: labels, shape ``(N,)``.
    :param b: labels, shape ``(N,)``.

    **References:**

    1. Hubert, L. and Arabie, P. (1985), *Comparing partitions*, J. Classification.
    """
    table = _table(a, b)
    rows, columns, both = _pairs(table.sum(1)), _pairs(table.sum(0)), _pairs(table)
    by_chance = rows * columns / max(_pairs(table.sum()), 1)
    most = (rows + columns) / 2
    # Two partitions with one block, or with only singletons, agree wholly.
    return 1.0 if most == by_chance else float((both - by_chance) / (most - by_chance))


def coclustering(
    assignments: ArrayLike,
    judges: Sequence[int] | np.ndarray | None = None,
    others: Sequence[int] | np.ndarray | None = None,
) -> np.ndarray:
    """Posterior probability that two rankings share a cluster.

    The full matrix of many rankings does not fit in memory: name the ``judges`` to compare, or go
    through its rows with :func:`coclustering_blocks`.

    :param assignments: labels, shape ``(D, N)``.
    :param judges: indices of ``J`` rankings, the rows; all ``N`` by default.
    :param others: indices of ``K`` rankings, the columns; by default the ``judges``.
    :return: shape ``(J, K)``.
    :raises ValueError: if the matrix would have more than 5000² entries.

    .. doctest::

       >>> coclustering([[0, 0, 1], [0, 1, 1]], judges=[0], others=[1, 2]).tolist()
       [[0.5, 0.0]]
    """
    assignments = np.asarray(assignments)
    rows = assignments if judges is None else assignments[:, np.asarray(judges)]
    columns = rows if others is None else assignments[:, np.asarray(others)]
    if rows.shape[1] * columns.shape[1] > MAX_COCLUSTERED**2:
        raise ValueError(
            f"coclustering needs a matrix of {rows.shape[1]} × {columns.shape[1]}: name at most "
            f"{MAX_COCLUSTERED} judges, or go through coclustering_blocks"
        )
    return _share_of_draws_together(rows, columns)


def _share_of_draws_together(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    together = np.zeros((rows.shape[1], columns.shape[1]), np.int32)
    for row, column in zip(rows, columns, strict=True):  # no array of draws × rows × columns
        together += row[:, None] == column
    return together / len(rows)


def coclustering_blocks(
    assignments: ArrayLike, block_size: int = 256
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The matrix of :func:`coclustering`, some rows at a time, of any number of rankings.

    Memory is that of one block, some ``12 · block_size · N`` bytes; the time of all blocks grows
    with ``D · N²``. Rankings that share a cluster with each other in all draws, as those of one
    sharp cluster may, are compared once.

    :param assignments: labels, shape ``(D, N)``.
    :param block_size: rows of a block, but of the last.
    :return: an iterator over pairs: indices of the rows, shape ``(B,)``, and their probabilities
        against all rankings, shape ``(B, N)``.
    :raises ValueError: if ``block_size`` is no positive number or the labels have another shape.

    .. doctest::

       >>> for rows, block in coclustering_blocks([[0, 0, 1], [0, 1, 1]], block_size=2):
       ...     print(rows.tolist(), block.tolist())
       [0, 1] [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5]]
       [2] [[0.0, 0.5, 1.0]]
    """
    assignments = np.asarray(assignments)
    if assignments.ndim != 2 or assignments.size == 0:
        raise ValueError(f"assignments must be (D, N), got shape {assignments.shape}")
    if block_size < 1:
        raise ValueError(f"block_size must be a positive whole number, got {block_size!r}")
    return _blocks(assignments, block_size)


def _blocks(assignments: np.ndarray, block_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    different, kind = np.unique(assignments, axis=1, return_inverse=True)
    kind = kind.ravel()
    for start in range(0, assignments.shape[1], block_size):
        rows = np.arange(start, min(start + block_size, assignments.shape[1]))
        own, place = np.unique(kind[rows], return_inverse=True)
        block = _share_of_draws_together(different[:, own], different)
        yield rows, block[place.ravel()][:, kind]


MAX_COCLUSTERED = 5000


class MedoidPartition(NamedTuple):
    """A draw that stands for all of them.

    :param labels: its labels, canonical, int32, shape ``(N,)``.
    :param draw: its index among the draws.
    :param expected_loss: its mean loss against the draws compared.
    """

    labels: np.ndarray
    draw: int
    expected_loss: float


def medoid_partition(
    assignments: ArrayLike,
    max_draws: int = 100,
    loss: Literal["vi", "binder"] = "vi",
) -> MedoidPartition:
    """The draw with the least expected loss against the others [1].

    :param assignments: labels ``0..C-1``, shape ``(D, N)``.
    :param max_draws: at most so many draws, evenly spaced, are compared, each with each.
    :param loss: ``"vi"``, the variation of information, or ``"binder"``, the share of the pairs
        of rankings that one partition joins and the other parts.

    **References:**

    1. Wade, S. and Ghahramani, Z. (2018), *Bayesian cluster analysis: point estimation and
       credible balls*, Bayesian Analysis.
    """
    losses = {"vi": _vi, "binder": _binder}
    if loss not in losses:
        raise ValueError(f"loss must be one of {', '.join(losses)}, got {loss!r}")
    assignments = np.asarray(assignments)
    num_draws = len(assignments)
    kept = np.unique(np.linspace(0, num_draws - 1, min(max_draws, num_draws)).astype(int))
    labels = assignments[kept].astype(np.int64)
    sizes = [np.bincount(x) for x in labels]
    pairwise = np.zeros((len(kept), len(kept)))
    for i, j in zip(*np.triu_indices(len(kept), 1), strict=True):
        joint = _joint_sizes(labels[i], labels[j])
        pairwise[i, j] = pairwise[j, i] = losses[loss](sizes[i], sizes[j], joint)
    expected = pairwise.mean(1)
    best = int(expected.argmin())
    return MedoidPartition(canonical_labels(labels[best]), int(kept[best]), float(expected[best]))


def match_clusters(assignments: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Name the clusters of every draw after those of a reference partition.

    Each draw's clusters are paired with the reference's, one to one, so that as many rankings as
    possible stay in a pair (the Hungarian method).

    :param assignments: labels ``0..C-1``, shape ``(D, N)``.
    :param reference: labels ``0..K-1``, shape ``(N,)``.
    :return: reference label of each cluster of each draw, -1 where it has none, int32, shape
        ``(D, C)`` with ``C`` the largest number of clusters.
    """
    assignments, reference = np.asarray(assignments), np.asarray(reference)
    if assignments.shape[1:] != reference.shape:
        raise ValueError(
            f"partitions of the same rankings are needed, got labels of shape {assignments.shape} "
            f"and {reference.shape}"
        )
    reference, num_names = reference.astype(np.int64), int(reference.max()) + 1
    num_clusters = int(assignments.max()) + 1
    matched = np.full((len(assignments), num_clusters), -1, np.int32)
    for draw, labels in enumerate(assignments):
        # overlaps that are not 0: many small clusters would make a large table
        both = labels.astype(np.int64) * num_names + reference
        if num_clusters * num_names <= 4 * len(both):
            counts = np.bincount(both)
            pairs = np.flatnonzero(counts)
            overlap = counts[pairs]
        else:
            pairs, overlap = np.unique(both, return_counts=True)
        rows, columns = np.divmod(pairs, num_names)
        # two that overlap with nobody else are a pair, and leave a small table to the rest
        alone = (np.bincount(rows)[rows] == 1) & (np.bincount(columns)[columns] == 1)
        matched[draw, rows[alone]] = columns[alone]
        some_rows, at_row = np.unique(rows[~alone], return_inverse=True)
        some_columns, at_column = np.unique(columns[~alone], return_inverse=True)
        table = np.zeros((len(some_rows), len(some_columns)), np.int64)
        table[at_row, at_column] = overlap[~alone]
        rows, columns = linear_sum_assignment(table, maximize=True)
        shared = table[rows, columns] > 0
        matched[draw, some_rows[rows[shared]]] = some_columns[columns[shared]]
    return matched
