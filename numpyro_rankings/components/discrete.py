"""Component families for counts and for single symbols."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.components.family import Family
from numpyro_rankings.ops.checks import as_array, is_real, is_traced, refuse_masked
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.ops.special import log_gamma_ratio
from numpyro_rankings.ops.sums import scatter_add, sum_by_label

_CHUNK = 128  # words processed at once
_MOST_COUNT = 2**24  # beyond this single precision has no odd numbers


class SparseCounts(NamedTuple):
    """Documents as lists of their words, for a large vocabulary.

    - **words** - (N, L), padded with -1, no word twice in the same row.
    - **counts** - how often each word occurs, (N, L), 0 at padding.
    """

    words: Any
    counts: Any


class WordCounts(NamedTuple):
    """Statistics of a cluster: **counts** of each word, (…, V), and their **total**, (…)."""

    counts: Array
    total: Array


class SparsePoint(NamedTuple):
    """Statistics of a document: **words** and **counts**, (…, L), and their **total**, (…)."""

    words: Array
    counts: Array
    total: Array


class ListedCounts(NamedTuple):
    """Statistics of a cluster as a list of its words."""

    words: Array  # the words that occur, then padding with V
    counts: Array
    number: Array  # number of words that occur
    total: Array  # sum of the counts


class DirichletMultinomial(Family):
    r"""
    Sequences of words, of which only the counts matter.

    .. math:: p \sim \mathrm{Dirichlet}(a), \quad \Pr(\text{words} \mid p) = \prod_v p_v^{x_v}.

    The probability is that of the words in their order. It leaves out the multinomial coefficient,
    on which no clustering depends. The data are counts, (N, V), or for a large vocabulary
    :class:`SparseCounts`; a cluster keeps V numbers in either case.

    :param concentration: a, a number or (V,).
    :param vocabulary_size: V, required for sparse counts.

    .. doctest::

       >>> from numpyro_rankings.components import DirichletMultinomial
       >>> family = DirichletMultinomial(1.0)
       >>> document = family.statistics([[2, 0, 1]])
       >>> round(float(jnp.exp(family.log_marginal(document)[0])), 5)  # 2/60
       0.03333
    """

    def __init__(self, concentration: Any, vocabulary_size: int | None = None) -> None:
        refuse_masked("concentration", concentration)
        numbers = as_array(concentration)
        is_numbers = numbers.ndim <= 1 and is_real(numbers)
        if not is_numbers or not (
            is_traced(numbers) or np.all((numbers > 0) & np.isfinite(numbers))
        ):
            raise ValueError(f"concentration must be positive numbers, got {concentration!r}")
        self.concentration = numbers.astype(float)
        if self.concentration.ndim == 1:
            if vocabulary_size not in (None, len(self.concentration)):
                raise ValueError(
                    f"concentration has {len(self.concentration)} entries, the vocabulary "
                    f"{vocabulary_size}"
                )
            vocabulary_size = len(self.concentration)
        self.vocabulary_size = vocabulary_size

    def _size(self, num_words: int) -> int:
        return num_words if self.vocabulary_size is None else self.vocabulary_size

    def statistics(self, data: Any) -> WordCounts | SparsePoint:
        _refuse_masked_counts(data)
        if isinstance(data, SparseCounts):
            words, counts = jnp.asarray(data.words, jnp.int32), jnp.asarray(data.counts, float)
            counts = jnp.where(words >= 0, counts, 0.0)
            if words.shape[-1] > _CHUNK:
                more = [(0, 0)] * (words.ndim - 1) + [(0, -words.shape[-1] % _CHUNK)]
                words = jnp.pad(words, more, constant_values=-1)
                counts = jnp.pad(counts, more)
            return SparsePoint(words, counts, counts.sum(-1))
        counts = jnp.asarray(data, float)
        return WordCounts(counts, counts.sum(-1))

    def of_clusters(
        self, points: WordCounts | SparsePoint, labels: Array, num_clusters: int
    ) -> WordCounts:
        total = sum_by_label(points.total, labels, num_clusters)
        if isinstance(points, WordCounts):
            return WordCounts(sum_by_label(points.counts, labels, num_clusters), total)
        size = self._vocabulary()
        columns = jnp.where(points.words >= 0, points.words, size)
        zeros = jnp.zeros((num_clusters, size), points.counts.dtype)
        return WordCounts(scatter_add(zeros, (labels[:, None], columns), points.counts), total)

    def add(self, cluster: WordCounts, other: WordCounts | SparsePoint) -> WordCounts:
        return self._change(cluster, other, 1.0)

    def subtract(self, cluster: WordCounts, other: WordCounts | SparsePoint) -> WordCounts:
        return self._change(cluster, other, -1.0)

    def _change(
        self, cluster: WordCounts, other: WordCounts | SparsePoint, sign: float
    ) -> WordCounts:
        total = cluster.total + sign * other.total
        if isinstance(other, WordCounts):
            return WordCounts(cluster.counts + sign * other.counts, total)
        size = cluster.counts.shape[-1]
        columns = jnp.where(other.words >= 0, other.words, size)
        add = jnp.vectorize(
            lambda row, columns, counts: row.at[columns].add(sign * counts, mode="drop"),
            signature="(v),(l),(l)->(v)",
        )
        return WordCounts(add(cluster.counts, columns, other.counts), total)

    def _vocabulary(self) -> int:
        if self.vocabulary_size is None:
            raise ValueError("sparse counts need vocabulary_size=")
        return self.vocabulary_size

    def _total_concentration(self, size: int) -> Any:
        if is_traced(self.concentration):
            return jnp.broadcast_to(self.concentration, (size,)).sum()
        return float(np.broadcast_to(self.concentration, (size,)).sum())

    def log_marginal(self, cluster: WordCounts) -> Array:
        size = cluster.counts.shape[-1]
        a = jnp.asarray(self.concentration, float)
        rising = jnp.where(cluster.counts > 0, log_gamma_ratio(a, cluster.counts), 0.0)
        return rising.sum(-1) - log_gamma_ratio(self._total_concentration(size), cluster.total)

    def log_predictive(self, cluster: WordCounts, point: WordCounts | SparsePoint) -> Array:
        size = cluster.counts.shape[-1]
        if isinstance(point, SparsePoint):
            rising = self._rising(cluster, point, 0.0)
        else:
            a = jnp.asarray(self.concentration, float)
            ratio = log_gamma_ratio(a + cluster.counts, point.counts)
            rising = jnp.where(point.counts > 0, ratio, 0.0).sum(-1)
        total = self._total_concentration(size) + cluster.total
        return rising - log_gamma_ratio(total, point.total)

    def _rising(self, cluster: WordCounts, point: SparsePoint, taken_out: float) -> Array:
        """Σ over the words of a document of log (a + n)(a + n + 1)…, n the count in the cluster."""
        # A multiple of the document's own counts is first taken out of n.
        a = jnp.asarray(self.concentration, float)
        pick = jnp.vectorize(lambda row, words: row[words], signature="(v),(l)->(l)")

        def sum_over(words: Array, counts: Array) -> Array:
            words = jnp.maximum(words, 0)
            had = pick(cluster.counts, words) - taken_out * counts
            ratio = log_gamma_ratio((a[words] if a.ndim else a) + had, counts)
            return jnp.where(counts > 0, ratio, 0.0).sum(-1)

        length = point.words.shape[-1]
        if length <= _CHUNK:
            return sum_over(point.words, point.counts)

        def chunk(k: Array, so_far: Array) -> Array:
            parts = (
                jax.lax.dynamic_slice_in_dim(x, k * _CHUNK, _CHUNK, axis=-1)
                for x in (point.words, point.counts)
            )
            return so_far + sum_over(*parts)

        # documents are padded to the length of the longest one, so stop after the last chunk used
        last = jnp.max(jnp.where(point.counts > 0, jnp.arange(length) // _CHUNK + 1, 0))
        shape = np.broadcast_shapes(cluster.total.shape, point.total.shape)
        return jax.lax.fori_loop(0, shared_bound(last), chunk, jnp.zeros(shape))

    def for_union(self, other: WordCounts) -> ListedCounts:
        size = other.counts.shape[-1]

        def listed(counts: Array) -> tuple[Array, Array]:
            some = counts > 0
            place = jnp.where(some, jnp.cumsum(some) - 1, size + _CHUNK)
            padding = jnp.full(size + _CHUNK, size)
            words = padding.at[place].set(jnp.arange(size), mode="drop")
            return words, counts.at[words].get(mode="fill", fill_value=0.0)

        words, counts = jnp.vectorize(listed, signature="(v)->(w),(w)")(other.counts)
        return ListedCounts(words, counts, jnp.sum(other.counts > 0, axis=-1), other.total)

    def log_union(self, cluster: WordCounts, other: ListedCounts) -> Array:
        # p(other | cluster) / p(other): words that the other cluster lacks cancel
        size = cluster.counts.shape[-1]
        a = jnp.broadcast_to(jnp.asarray(self.concentration, float), (size,))

        def rising(row: Array, words: Array, counts: Array, number: Array) -> Array:
            def chunk(k: Array, so_far: Array) -> Array:
                at, more = (
                    jax.lax.dynamic_slice(x, (k * _CHUNK,), (_CHUNK,)) for x in (words, counts)
                )
                had, prior = row[at], a[at]
                ratio = log_gamma_ratio(prior + had, more) - log_gamma_ratio(prior, more)
                return so_far + jnp.where((more > 0) & (had > 0), ratio, 0.0).sum()

            bound = shared_bound((number + _CHUNK - 1) // _CHUNK)
            return jax.lax.fori_loop(0, bound, chunk, jnp.zeros((), row.dtype))

        rises = jnp.vectorize(rising, signature="(v),(w),(w),()->()")
        total = self._total_concentration(size)
        return (
            rises(cluster.counts, other.words, other.counts, other.number)
            - log_gamma_ratio(total + cluster.total, other.total)
            + log_gamma_ratio(total, other.total)
        )

    def log_predictive_of_member(
        self, cluster: WordCounts, point: WordCounts | SparsePoint
    ) -> Array:
        if isinstance(point, WordCounts):
            return super().log_predictive_of_member(cluster, point)
        # like log_predictive, but the counts of the document are subtracted as they are read
        total = self._total_concentration(cluster.counts.shape[-1]) + cluster.total - point.total
        return self._rising(cluster, point, 1.0) - log_gamma_ratio(total, point.total)

    def draw_parameters(self, key: Array, cluster: WordCounts) -> Array:
        """Draw the log probabilities of the words, (…, V)."""
        a = jnp.asarray(self.concentration, float)
        log_gammas = sample_log_gamma(key, cluster.counts + a)
        return log_gammas - jax.nn.logsumexp(log_gammas, axis=-1, keepdims=True)

    def log_likelihood(self, parameters: Array, point: WordCounts | SparsePoint) -> Array:
        if isinstance(point, WordCounts):
            return jnp.sum(point.counts * parameters, axis=-1)
        pick = jnp.vectorize(lambda row, words: row[words], signature="(v),(l)->(l)")
        return jnp.sum(point.counts * pick(parameters, jnp.maximum(point.words, 0)), axis=-1)

    def project(self, key: Array, points: WordCounts | SparsePoint) -> Array:
        if isinstance(points, WordCounts):
            direction = random.normal(key, points.counts.shape[-1:])
            return jnp.dot(points.counts, direction, precision="highest")
        direction = random.normal(key, (self._vocabulary(),))
        return jnp.sum(points.counts * direction[jnp.maximum(points.words, 0)], axis=-1)

    def check(self, data: Any) -> None:
        _refuse_masked_counts(data)
        if isinstance(data, SparseCounts):
            self._check_sparse(np.asarray(data.words), np.asarray(data.counts))
            return
        counts = np.asarray(data)
        if counts.ndim != 2 or counts.dtype.kind not in "iuf":
            raise ValueError(f"counts must be an array (N, V), got shape {counts.shape}")
        if counts.shape[1] == 0:
            raise ValueError(f"counts must have at least one word, got shape {counts.shape}")
        if counts.shape[1] != self._size(counts.shape[1]):
            raise ValueError(
                f"the vocabulary has {self.vocabulary_size} words, the counts {counts.shape[1]}"
            )
        _check_counts(counts)

    def _check_sparse(self, words: np.ndarray, counts: np.ndarray) -> None:
        size = self._vocabulary()
        if words.ndim != 2 or words.shape != counts.shape or words.dtype.kind not in "iu":
            raise ValueError(
                f"words and counts must be arrays (N, L), words of integers: got {words.shape} of "
                f"{words.dtype} and {counts.shape}"
            )
        _check_counts(counts)
        bad = ((words < -1) | (words >= size)).any(axis=1)
        if bad.any():
            raise ValueError(f"row {np.argmax(bad)} has a word that is not from 0 to {size - 1}")
        bad = ((words < 0) & (counts > 0)).any(axis=1)
        if bad.any():
            raise ValueError(f"row {np.argmax(bad)} has a count where there is no word")
        ordered = np.sort(words, axis=1)
        twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
        if twice.any():
            raise ValueError(f"row {np.argmax(twice)} has a word twice: add up its counts")


class SameSymbol(NamedTuple):
    """Statistics of a cluster whose points are all one symbol: **size** and **symbol**, (…)."""

    size: Array
    symbol: Array


class Atom(Family):
    r"""
    Symbols, with one symbol for each cluster: the fully observed language model.

    A cluster has one symbol, drawn from :math:`G_0`; a point with another symbol has probability 0
    (Section 4.1 of [1]).

    :param probs: :math:`G_0`, (V,).

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.
    """

    def __init__(self, probs: Any) -> None:
        refuse_masked("probs", probs)
        self.probs: Any = as_array(probs).astype(float)
        is_known = not is_traced(self.probs)
        if self.probs.ndim != 1 or (is_known and not np.all(self.probs >= 0)):
            raise ValueError("probs must be an array (V,) of probabilities")
        if is_known and not np.isclose(self.probs.sum(), 1.0, atol=1e-4):
            raise ValueError(f"probs must add up to 1, not to {self.probs.sum():g}")

    def _log_base(self, symbol: Array) -> Array:
        if is_traced(self.probs):
            return jnp.log(self.probs)[symbol]
        with np.errstate(divide="ignore"):
            log_probs = np.log(self.probs)
        return jnp.asarray(log_probs, float)[symbol]

    def statistics(self, data: Any) -> SameSymbol:
        refuse_masked("symbols", data)
        symbols = jnp.asarray(data, jnp.int32)
        return SameSymbol(jnp.ones(symbols.shape), symbols)

    def of_clusters(self, points: SameSymbol, labels: Array, num_clusters: int) -> SameSymbol:
        size = sum_by_label(points.size, labels, num_clusters)
        known = points.size > 0
        last = len(self.probs)
        low, high = jnp.where(known, points.symbol, last), jnp.where(known, points.symbol, -1)
        lowest = jnp.full(num_clusters, last).at[labels].min(low)
        highest = jnp.full(num_clusters, -1).at[labels].max(high)
        # -1 marks a cluster with different symbols, which has probability 0
        symbol = jnp.where(size > 0, jnp.where(lowest == highest, lowest, -1), 0)
        return SameSymbol(size, symbol)

    def add(self, cluster: SameSymbol, other: SameSymbol) -> SameSymbol:
        differ = (cluster.size > 0) & (other.size > 0) & (cluster.symbol != other.symbol)
        symbol = jnp.where(cluster.size > 0, cluster.symbol, other.symbol)
        return SameSymbol(cluster.size + other.size, jnp.where(differ, -1, symbol))

    def subtract(self, cluster: SameSymbol, other: SameSymbol) -> SameSymbol:
        size = cluster.size - other.size
        return SameSymbol(size, jnp.where(size > 0, cluster.symbol, 0))

    def log_marginal(self, cluster: SameSymbol) -> Array:
        log_base = jnp.where(cluster.symbol >= 0, self._log_base(cluster.symbol), -jnp.inf)
        return jnp.where(cluster.size > 0, log_base, 0.0)

    def log_predictive(self, cluster: SameSymbol, point: SameSymbol) -> Array:
        same = jnp.where(cluster.symbol == point.symbol, 0.0, -jnp.inf)
        return jnp.where(cluster.size > 0, same, self._log_base(point.symbol))

    def check(self, data: Any) -> None:
        refuse_masked("symbols", data)
        symbols = np.asarray(data)
        if symbols.ndim != 1 or symbols.dtype.kind not in "iu":
            raise ValueError(f"symbols must be integers (N,), got {symbols.shape} {symbols.dtype}")
        bad = (symbols < 0) | (symbols >= len(self.probs))
        if not is_traced(self.probs):
            bad |= self.probs[np.where(bad, 0, symbols)] == 0
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"row {row} has the symbol {symbols[row]}, which has probability 0")


def _refuse_masked_counts(data: Any) -> None:
    if isinstance(data, SparseCounts):
        refuse_masked("words", data.words)
    refuse_masked("counts", data.counts if isinstance(data, SparseCounts) else data)


def _check_counts(counts: np.ndarray) -> None:
    bad = ~((counts >= 0) & np.isfinite(counts) & (counts == np.floor(counts))).all(axis=1)
    if bad.any():
        raise ValueError(f"row {np.argmax(bad)} has an entry that is not a count")
    if counts.size and counts.max() > _MOST_COUNT:
        row = int(np.argmax(counts.max(axis=1)))
        raise ValueError(f"row {row} has a count above {_MOST_COUNT:,}, too many for float32")
