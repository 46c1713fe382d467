"""Compare and summarise partitions: distances, co-clustering, medoid draw, matching of clusters.

All functions work on NumPy arrays of labels: shape ``(N,)`` for one partition of ``N`` rankings and
``(D, N)`` for draws. Draws by chain, ``(chains, draws, N)``, are concatenated. Labels of draws are
whole numbers from 0. Only equality of labels matters, unless stated otherwise.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from numpyro_rankings.ops.checks import check_whole, refuse_masked

__all__ = [
    "MedoidPartition",
    "adjusted_rand_index",
    "canonical_labels",
    "coclustering",
    "coclustering_blocks",
    "contingency_table",
    "found_again",
    "match_clusters",
    "medoid_partition",
    "partition_entropy",
    "variation_of_information",
]

MAX_COCLUSTERED = 5000  # rows of the largest co-clustering matrix that is returned whole
_COUNTED_IN_BYTES = 255  # draws whose counts fit in a byte, which is added faster than an integer
_SHARED = 3  # a cluster is found again if it shares more than one in so many of its members


def as_draws(assignments: ArrayLike) -> np.ndarray:
    """Check the labels of draws, (D, N) or (chains, draws, N), and return them as (D, N)."""
    refuse_masked("assignments", assignments)
    draws = np.asarray(assignments)
    are_labels = draws.ndim in (2, 3) and draws.size > 0 and draws.dtype.kind in "iu"
    if not are_labels or draws.min() < 0:
        raise ValueError(
            "assignments must be whole numbers from 0, (D, N), or (chains, draws, N); got shape "
            f"{draws.shape} of {draws.dtype}"
        )
    _check_largest(draws)
    return draws.reshape(-1, draws.shape[-1])


def _check_largest(labels: np.ndarray) -> None:
    """Raise an error for labels too large to be used as indices of clusters."""
    if labels.max() >= max(4 * labels.shape[-1], 2**16):
        raise ValueError(f"labels must number the clusters, 0, 1, …; one is {labels.max()}")


def as_partition(labels: ArrayLike, size: int | None = None) -> np.ndarray:
    """Check the labels of one partition of N points, N being **size** if it is known, (N,)."""
    refuse_masked("labels", labels)
    partition = np.asarray(labels)
    are_labels = partition.ndim == 1 and partition.size > 0 and partition.dtype.kind in "iu"
    if not are_labels or partition.min() < 0 or size not in (None, partition.size):
        points = "the points" if size is None else f"the same {size} points"
        raise ValueError(
            f"a partition of {points} is needed, whole numbers from 0; got shape "
            f"{partition.shape} of {partition.dtype}"
        )
    _check_largest(partition)
    return partition


def canonical_labels(labels: ArrayLike) -> np.ndarray:
    """Number the clusters of each partition ``0, 1, …`` in order of first use.

    :param labels: any labels, shape ``(…, N)``.
    :return: int32, the same shape.
    :raises ValueError: if there are no labels.
    """
    refuse_masked("labels", labels)
    labels = np.asarray(labels)
    if labels.size == 0:
        raise ValueError(f"labels are needed, got shape {labels.shape}")
    flat = labels.reshape(-1, labels.shape[-1])
    canonical = np.empty(flat.shape, np.int32)
    for row, new_row in zip(flat, canonical, strict=True):
        new_row[:] = row if _is_canonical(row) else _in_order_of_use(row)
    return canonical.reshape(labels.shape)


def canonical_draws(draws: np.ndarray) -> np.ndarray:
    """Return labels of draws, (D, N), made canonical; the same array if they are, as usual."""
    return draws if all(map(_is_canonical, draws)) else canonical_labels(draws)


def _is_canonical(labels: np.ndarray) -> bool:
    """Whether labels of one byte are canonical, which is quickly seen; False of all others."""
    if labels.dtype.kind not in "iu" or labels.itemsize > 1 or labels.min() < 0:
        return False
    text, place = labels.tobytes(), -1
    for label in range(int(labels.max()) + 1):
        before, place = place, text.find(label)
        if place <= before:  # also if the label is missing
            return False
    return True


def _in_order_of_use(labels: np.ndarray) -> np.ndarray:
    codes = labels
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 4 * len(labels):
        codes = np.unique(labels, return_inverse=True)[1].ravel()
    size = len(codes)
    first = np.full(int(codes.max()) + 1, size)
    first[codes[::-1]] = np.arange(size)[::-1]  # for equal indices the last value is kept
    return np.argsort(np.argsort(first, kind="stable")).astype(np.int32)[codes]


def evenly(number: int, most: int) -> np.ndarray:
    """Return at most so many of the indices 0, …, ``number`` - 1, evenly spaced."""
    return np.linspace(0, number - 1, min(most, number)).astype(int)


def contingency_table(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Number of rankings in each pair of clusters of two partitions.

    :param a: labels ``0..A-1``, shape ``(N,)``.
    :param b: labels ``0..B-1``, shape ``(N,)``.
    :return: counts, int64, shape ``(A, B)``.
    :raises ValueError: if the two do not label the same number of rankings.
    """
    a, b = as_partition(a).astype(np.int64), as_partition(b).astype(np.int64)
    if a.shape != b.shape:
        raise ValueError(
            f"partitions of the same rankings are needed, got labels of shape {a.shape} "
            f"and {b.shape}"
        )
    num_a, num_b = int(a.max()) + 1, int(b.max()) + 1
    return np.bincount(a * num_b + b, minlength=num_a * num_b).reshape(num_a, num_b)


def _table(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Contingency table of any labels, which need not be numbers."""
    codes = []
    for given in (a, b):
        refuse_masked("labels", given)
        labels = np.asarray(given)
        if labels.ndim != 1 or (labels != labels).any():
            raise ValueError(
                f"labels of one partition are needed, none missing; got shape {labels.shape} of "
                f"{labels.dtype}"
            )
        codes.append(np.unique(labels, return_inverse=True)[1].ravel())
    return contingency_table(*codes)


def partition_entropy(sizes: ArrayLike) -> np.ndarray:
    r"""Entropy :math:`-\sum_c \frac{n_c}{N} \ln \frac{n_c}{N}` of partitions, in nats.

    :param sizes: cluster sizes, shape ``(…, C)``; empty clusters contribute 0.
    :return: shape ``(…)``.
    """
    refuse_masked("sizes", sizes)
    sizes = np.asarray(sizes, np.float64)
    total = sizes.sum(-1, keepdims=True)
    share = np.where(sizes > 0, sizes / total, 1.0)
    return -(share * np.log(share)).sum(-1)


def variation_of_information(a: ArrayLike, b: ArrayLike) -> float:
    r"""Variation of information between two partitions, in nats [1].

    It is :math:`H(A \mid B) + H(B \mid A)`, a metric: 0 for equal partitions and at most
    :math:`\ln N`.

    :param a: labels of any kind, including names, shape ``(N,)``.
    :param b: labels, shape ``(N,)``.
    :raises ValueError: if the two do not label the same number of rankings, or labels are missing.

    **References:**

    1. Meilă, M. (2007), *Comparing clusterings: an information based distance*, J. Multivariate
       Analysis.

    .. doctest::

       >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0])
       0.0
       >>> round(variation_of_information([0, 0, 1, 1], [0, 0, 0, 0]), 4)
       0.6931
    """
    return variation_of_table(_table(a, b))


def variation_of_table(table: np.ndarray) -> float:
    """Variation of information, from the number of members in each pair of clusters, (A, B)."""
    return _vi(*map(partition_entropy, (table.sum(1), table.sum(0), table.ravel())))


def _vi(of_a: Any, of_b: Any, of_both: Any) -> float:
    """Variation of information, from the entropies of two partitions and of their intersections."""
    return max(0.0, float(2 * of_both - (of_a + of_b)))  # rounding may leave -1e-16


def _joint_sizes(a: np.ndarray, b: np.ndarray, num_a: int, num_b: int) -> np.ndarray:
    """Sizes of the intersections; for many small clusters, without a table of mostly zeros."""
    codes = a * num_b + b
    if num_a * num_b <= 4 * len(a):
        return np.bincount(codes, minlength=num_a * num_b)
    return np.unique(codes, return_counts=True)[1]


def _pairs(counts: np.ndarray) -> float:
    counts = np.asarray(counts, np.float64)
    return float((counts * (counts - 1) / 2).sum())


def adjusted_rand_index(a: ArrayLike, b: ArrayLike) -> float:
    """Adjusted Rand index of two partitions: 1 if equal, 0 on average if unrelated [1].

    :param a: labels of any kind, including names, shape ``(N,)``.
    :param b: labels, shape ``(N,)``.
    :raises ValueError: if the two do not label the same number of rankings, or labels are missing.

    **References:**

    1. Hubert, L. and Arabie, P. (1985), *Comparing partitions*, J. Classification.
    """
    table = _table(a, b)
    rows, columns, both = _pairs(table.sum(1)), _pairs(table.sum(0)), _pairs(table)
    by_chance = rows * columns / max(_pairs(table.sum()), 1)
    most = (rows + columns) / 2
    # both partitions have one block, or both only singletons: they are equal
    return 1.0 if most == by_chance else float((both - by_chance) / (most - by_chance))


def coclustering(
    assignments: ArrayLike,
    judges: Sequence[int] | np.ndarray | None = None,
    others: Sequence[int] | np.ndarray | None = None,
) -> np.ndarray:
    """Posterior probability that two rankings share a cluster.

    For many rankings the full matrix does not fit in memory: give the ``judges`` to compare, or
    iterate over its rows with :func:`coclustering_blocks`.

    :param assignments: labels, shape ``(D, N)``.
    :param judges: indices of ``J`` rankings, the rows; all ``N`` by default.
    :param others: indices of ``K`` rankings, the columns; by default the ``judges``.
    :return: shape ``(J, K)``.
    :raises ValueError: if the matrix would have more than 5000² entries, if the labels are invalid,
        or if a judge is not from 0 to N-1.

    .. doctest::

       >>> coclustering([[0, 0, 1], [0, 1, 1]], judges=[0], others=[1, 2]).tolist()
       [[0.5, 0.0]]
    """
    draws = as_draws(assignments)
    rows = draws if judges is None else draws[:, _places(judges, draws.shape[1])]
    columns = rows if others is None else draws[:, _places(others, draws.shape[1])]
    if rows.shape[1] * columns.shape[1] > MAX_COCLUSTERED**2:
        raise ValueError(
            f"coclustering needs a matrix of {rows.shape[1]} × {columns.shape[1]}: name at most "
            f"{MAX_COCLUSTERED} judges, or use coclustering_blocks"
        )
    return _share_of_draws_together(rows, columns)


def _places(judges: ArrayLike, size: int) -> np.ndarray:
    refuse_masked("judges", judges)
    places = np.asarray(judges)
    are_whole = places.ndim == 1 and places.size > 0 and places.dtype.kind in "iu"
    if not are_whole or places.min() < 0 or places.max() >= size:
        raise ValueError(f"judges must be whole numbers from 0 to {size - 1}, got {judges!r}")
    return places


def _share_of_draws_together(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    together = np.zeros((rows.shape[1], columns.shape[1]), np.int32)
    for start in range(0, len(rows), _COUNTED_IN_BYTES):
        few = np.zeros(together.shape, np.uint8)
        part = slice(start, start + _COUNTED_IN_BYTES)
        for row, column in zip(rows[part], columns[part], strict=True):  # not all draws at once
            few += (row[:, None] == column).view(np.uint8)
        together += few
    return together / len(rows)


def coclustering_of_groups(assignments: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Mean probability that a member of one group shares a cluster with one of another, (K, K).

    Within a group the mean is over pairs of different members; it is NaN if there is one only.
    """
    assignments = as_draws(assignments)
    reference = as_partition(reference, assignments.shape[1]).astype(np.int64)
    sizes = np.bincount(reference).astype(np.float64)
    together = np.zeros((len(sizes), len(sizes)))
    for labels in assignments:  # one draw at a time, without an N × N array
        clusters = int(labels.max()) + 1
        table = np.bincount(reference * clusters + labels, minlength=len(sizes) * clusters)
        table = table.reshape(len(sizes), clusters).astype(np.float64)
        together += table @ table.T
    with np.errstate(invalid="ignore"):
        return (together / len(assignments) - np.diag(sizes)) / (
            np.outer(sizes, sizes) - np.diag(sizes)
        )


def coclustering_blocks(
    assignments: ArrayLike, block_size: int = 256
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Iterate over blocks of rows of the :func:`coclustering` matrix, for any number of rankings.

    The memory is that of one block, about ``12 · block_size · N`` bytes. The time of all blocks
    grows with ``D · N²``. Rankings that share a cluster in all draws are compared only once.

    :param assignments: labels, shape ``(D, N)``.
    :param block_size: number of rows of each block; the last may have fewer.
    :return: an iterator over pairs: indices of the rows, shape ``(B,)``, and their probabilities
        against all rankings, shape ``(B, N)``.
    :raises ValueError: if ``block_size`` is not a positive number or the labels have another shape.

    .. doctest::

       >>> for rows, block in coclustering_blocks([[0, 0, 1], [0, 1, 1]], block_size=2):
       ...     print(rows.tolist(), block.tolist())
       [0, 1] [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5]]
       [2] [[0.0, 0.5, 1.0]]
    """
    check_whole("block_size", block_size)
    return _blocks(as_draws(assignments), block_size)


def _blocks(assignments: np.ndarray, block_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    different, kind = np.unique(assignments, axis=1, return_inverse=True)
    kind = kind.ravel()
    for start in range(0, assignments.shape[1], block_size):
        rows = np.arange(start, min(start + block_size, assignments.shape[1]))
        own, place = np.unique(kind[rows], return_inverse=True)
        block = _share_of_draws_together(different[:, own], different)
        yield rows, block[place.ravel()][:, kind]


class MedoidPartition(NamedTuple):
    """The medoid: the draw with the least expected loss against the others.

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
    :param max_draws: at most this many draws, evenly spaced, are compared, each with each.
    :param loss: ``"vi"``, the variation of information, or ``"binder"``, the share of the pairs
        of rankings that one partition joins and the other separates.
    :raises ValueError: if the labels are invalid or an argument is out of range.

    **References:**

    1. Wade, S. and Ghahramani, Z. (2018), *Bayesian cluster analysis: point estimation and
       credible balls*, Bayesian Analysis.
    """
    measures: dict[str, Callable[[np.ndarray], Any]] = {"vi": partition_entropy, "binder": _pairs}
    if loss not in measures:
        raise ValueError(f"loss must be one of {', '.join(measures)}, got {loss!r}")
    check_whole("max_draws", max_draws)
    draws, measure = as_draws(assignments), measures[loss]
    kept = evenly(len(draws), max_draws)
    labels = draws[kept].astype(np.int64)
    numbers = (labels.max(axis=1) + 1).tolist()
    of_each = [measure(np.bincount(x)) for x in labels]
    most = max(_pairs(np.array(labels.shape[1])), 1)
    pairwise = np.zeros((len(kept), len(kept)))
    for i, j in zip(*np.triu_indices(len(kept), 1), strict=True):
        of_both = measure(_joint_sizes(labels[i], labels[j], numbers[i], numbers[j]))
        if loss == "vi":
            pairwise[i, j] = _vi(of_each[i], of_each[j], of_both)
        else:  # the share of the pairs that one partition joins and the other separates
            pairwise[i, j] = (of_each[i] + of_each[j] - 2 * of_both) / most
    pairwise += pairwise.T
    expected = pairwise.mean(1)
    best = int(expected.argmin())
    return MedoidPartition(canonical_labels(labels[best]), int(kept[best]), float(expected[best]))


def match_clusters(assignments: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Match the clusters of every draw to those of a reference partition.

    The clusters of each draw are paired one to one with those of the reference, so that as many
    rankings as possible are in both clusters of a pair (the Hungarian method).

    :param assignments: labels ``0..C-1``, shape ``(D, N)``.
    :param reference: labels ``0..K-1``, shape ``(N,)``.
    :return: reference label of each cluster of each draw, -1 for a cluster without one, int32,
        shape ``(D, C)`` with ``C`` the largest number of clusters.
    :raises ValueError: if the labels are invalid, or of other rankings than the reference.
    """
    draws = as_draws(assignments)
    reference = as_partition(reference, draws.shape[1])
    reference, num_names = reference.astype(np.int64), int(reference.max()) + 1
    num_clusters = int(draws.max()) + 1
    matched = np.full((len(draws), num_clusters), -1, np.int32)
    for draw, labels in enumerate(draws):
        rows, columns, overlap = _overlaps(labels, reference, num_clusters, num_names)
        # two clusters that overlap with no others are a pair, which leaves a smaller table
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


def _overlaps(
    labels: np.ndarray, reference: np.ndarray, num_clusters: int, num_names: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of clusters that have members in common, and how many these are."""
    both = labels.astype(np.int64) * num_names + reference
    if num_clusters * num_names <= 4 * len(both):
        table = np.bincount(both)
        pairs = np.flatnonzero(table)
        overlap = table[pairs]
    else:  # with many small clusters the full table would be large
        pairs, overlap = np.unique(both, return_counts=True)
    return *np.divmod(pairs, num_names), overlap


def found_again(assignments: ArrayLike, reference: ArrayLike, matched: np.ndarray) -> np.ndarray:
    """Say which clusters of the draws are those of a reference partition that they are matched to.

    A cluster of the reference is found again in a draw if it and the cluster that is matched to it
    have more members in common than either has with any other, or as many, and these are more than
    a third of the members of either. A match alone says little: it is what is left after all others
    are matched, and may have few members in common.

    A pair that shares more than half of its union is found again, and no other pair of the two can
    be. To ask for that would be too much where clusters overlap: a ranking that two of them explain
    as well is in either in half of the draws, however certain the two are.

    :param assignments: labels ``0..C-1``, shape ``(D, N)``.
    :param reference: labels ``0..K-1``, shape ``(N,)``.
    :param matched: the result of :func:`match_clusters`, (D, C).
    :return: shape ``(D, C)``.

    .. doctest::

       >>> draws, reference = [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], [0, 0, 0, 1, 1]
       >>> found_again(draws, reference, match_clusters(draws, reference)).tolist()
       [[True, True], [True, True]]
       >>> draws = [[0, 1, 1, 1, 1]]  # the matched cluster has 1 of 3
       >>> found_again(draws, [0, 0, 0, 1, 1], match_clusters(draws, [0, 0, 0, 1, 1])).tolist()
       [[False, True]]
    """
    draws = as_draws(assignments)
    reference = as_partition(reference, draws.shape[1]).astype(np.int64)
    num_names, num_clusters = int(reference.max()) + 1, matched.shape[1]
    of_names = np.bincount(reference)
    is_found = np.zeros(matched.shape, bool)
    for draw, labels in enumerate(draws):
        rows, columns, overlap = _overlaps(labels, reference, num_clusters, num_names)
        of_rows = np.bincount(rows, overlap, num_clusters)
        most_of_row, most_of_column = np.zeros(num_clusters), np.zeros(num_names)
        np.maximum.at(most_of_row, rows, overlap)
        np.maximum.at(most_of_column, columns, overlap)
        is_match = matched[draw, rows] == columns
        is_most = (overlap == most_of_row[rows]) & (overlap == most_of_column[columns])
        are_many = _SHARED * overlap > np.maximum(of_rows[rows], of_names[columns])
        is_found[draw, rows[is_match & is_most & are_many]] = True
    return is_found
