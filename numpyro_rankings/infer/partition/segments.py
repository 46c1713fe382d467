"""Partitions into segments of an ordering, by dynamic programming (Liang, Jordan & Taskar 2007)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random
from jax.scipy.special import gammaln

from numpyro_rankings.components.family import Family, take
from numpyro_rankings.components.points import repeat
from numpyro_rankings.infer.partition.base import Given
from numpyro_rankings.ops.special import log_gamma_ratio

_LEAST = -1e30  # stands for the largest log weight where all are -inf


# -- weights -------------------------------------------------------------------------------------


class Ordering(NamedTuple):
    """An ordering of the points in which each cluster is a segment.

    The order within a cluster is a Markov chain (Section 4.1) if there are ``pairs``, the log
    predictive probability of point j given i alone; else it is uniform, eq. (3). A sweep that
    **searches** is a step of the stochastic search of Section 4.2, a draw from p(C, x) restricted
    to segments; else from p(C, π, x).
    """

    order: Array  # π: numbers of the points in their order, (N,)
    pairs: Array | None  # (N, N)
    searches: Array


class Sequence(NamedTuple):
    """The points in the order π, with the parts of log B of a segment."""

    statistics: Any  # of the points, (N, …)
    log_alone: Array  # log probability of each point by itself, relative to the reference, (N,)
    reference: Array  # log probability of each point in its current cluster, (N,)
    log_sizes: Array  # part of log B that depends on the number of points, (N + 1,)
    log_chains: Array | None  # log p of the order within each segment from s to e, (e, s)
    old_start: Array  # start of the current segment that ends at a point, -1 if none ends there
    empty: Any  # statistics of a cluster without points


def as_sequence(ordering: Ordering, labels: Array, given: Given) -> Sequence:
    """The points in their order, as the dynamic programs use them."""
    points, (order, pairs, _) = given.points, ordering
    reference = given.family.log_predictive(
        take(given.clusters_of(labels), labels), points.statistics
    )
    reference = jnp.where(jnp.isfinite(reference), reference, 0.0)[order]
    old_start = _current_starts(labels[order])
    log_sizes = _log_sizes(ordering, given)
    return Sequence(
        statistics=take(points.statistics, order),
        log_alone=points.log_alone[order] - reference,
        reference=reference,
        log_sizes=log_sizes,
        log_chains=None if pairs is None else log_chain_table(pairs[order][:, order]),
        old_start=old_start,
        empty=points.empty,
    )


def _current_starts(ordered: Array) -> Array:
    """Start of the segment that ends at each point, -1 if none ends there, (N,)."""
    differs = ordered[1:] != ordered[:-1]
    starts = jnp.concatenate([jnp.ones(1, bool), differs])
    ends = jnp.concatenate([differs, jnp.ones(1, bool)])
    index = jnp.arange(ordered.shape[0])
    return jnp.where(ends, jax.lax.cummax(jnp.where(starts, index, 0)), -1)


def _log_sizes(ordering: Ordering, given: Given) -> Array:
    """Log of Γ(n - d)/Γ(1 - d) and of the uniform part of the order, by n = 0, …, N."""
    discount = given.prior.discount
    number = jnp.maximum(jnp.arange(given.points.size + 1), 1).astype(float)
    log_prior = log_gamma_ratio(1.0 - discount, number - 1.0)  # Γ(n - d)/Γ(1 - d)
    if ordering.pairs is not None:
        return log_prior - jnp.log(number)  # the first point of a segment is uniform, Section 4.1
    # with 1/n! of the order, eq. (3)
    log_sizes = log_gamma_ratio(number + 1.0, -1.0 - discount) - gammaln(1.0 - discount)
    return jnp.where(ordering.searches, log_prior, log_sizes)


def log_chain_table(pairs: Array) -> Array:
    """Log probability of the order of the points from s + 1 to e after point s, as (e, s)."""
    # Point i is drawn among those from i to e: its normaliser is a cumulative sum of row i - 1.
    index = jnp.arange(len(pairs))
    after = jnp.where(index[None, :] > index[:, None], pairs, -jnp.inf)
    log_totals = jax.lax.cumlogsumexp(after, axis=1)[:-1]  # [i - 1, e]: over i, …, e
    step = jnp.diagonal(pairs, 1)[:, None]
    # the total is also 0 if none of the points left can be next
    steps = jnp.where(step > -jnp.inf, step - log_totals, -jnp.inf)
    steps = jnp.where(index[None, :] > index[:-1, None], steps, 0.0)
    # the sum over i from s + 1 to e
    sums = jnp.cumsum(steps[::-1], axis=0)[::-1]
    return jnp.concatenate([sums, jnp.zeros((1, len(pairs)))]).T


# -- dynamic programs ----------------------------------------------------------------------------


class _Segments(NamedTuple):
    """Segments that end at the current point, W of them."""

    start: Array  # first point of each, (W,), -1 where there is no segment
    statistics: Any  # (W, …)
    log_marginal: Array  # relative to the reference, (W,)
    log_before: Array  # log g of the points before the start, (W,) or (W, N + 1)


def _no_segments(sequence: Sequence, width: int, log_before: Array) -> _Segments:
    return _Segments(
        jnp.full(width, -1), repeat(sequence.empty, width), jnp.zeros(width), log_before
    )


def _extend(
    segments: _Segments,
    slot: Array,
    log_before: Array,
    e: Array,
    sequence: Sequence,
    family: Family,
) -> tuple[_Segments, Array]:
    """Add point e to all segments, start one with it in a slot, and give their log B, (W,)."""
    point = take(sequence.statistics, e)
    log_predictive = family.log_predictive(segments.statistics, point) - sequence.reference[e]
    width = segments.start.shape[0]
    longer = family.add(segments.statistics, repeat(point, width))
    first = family.add(sequence.empty, point)
    segments = _Segments(
        segments.start.at[slot].set(e),
        jax.tree.map(lambda x, y: x.at[slot].set(y), longer, first),
        (segments.log_marginal + log_predictive).at[slot].set(sequence.log_alone[e]),
        segments.log_before.at[slot].set(log_before),
    )
    log_weights = segments.log_marginal + sequence.log_sizes[e - segments.start + 1]
    if sequence.log_chains is not None:
        log_weights += sequence.log_chains[e, segments.start]
    return segments, jnp.where(segments.start >= 0, log_weights, -jnp.inf)


def _draw(uniform: Array, log_weights: Array) -> Array:
    """Draw an index of the first axis, with probability ∝ exp(log weight), for each column."""
    weights = jnp.exp(log_weights - jnp.maximum(log_weights.max(0), _LEAST))
    sums = jnp.cumsum(weights, axis=0)
    reached = (sums >= (1.0 - uniform) * sums[-1]) & (weights > 0)
    # rounding may leave none reached
    return jnp.where(reached.any(0), jnp.argmax(reached, axis=0), jnp.argmax(weights, axis=0))


def draw_by_slope(
    key: Array, sequence: Sequence, slope: Array, width: int, family: Family
) -> tuple[Array, Array]:
    """Draw segments with probability ∝ Π B(c) exp(slope), eq. (5) and (6); a beam is optional."""
    # The slope stands for A(K); ``width`` segments are kept at each point, N for all.
    # It returns where segments start, (N,), and whether the current partition could be drawn.
    size = sequence.reference.shape[0]

    def visit(carry: Any, inputs: tuple) -> Any:
        segments, log_total, scores = carry
        e, uniform, noise = inputs
        # the beam: the new segment takes the slot of the worst one, Section 3.3
        slot = e if width == size else jnp.argmin(scores + noise)
        segments, log_weights = _extend(segments, slot, log_total, e, sequence, family)
        scores = segments.log_before + log_weights + slope
        drawn = segments.start[_draw(uniform, scores)]
        possible = jnp.any(segments.start == sequence.old_start[e]) | (sequence.old_start[e] < 0)
        return (segments, jax.nn.logsumexp(scores), scores), (drawn, possible)

    start = (
        _no_segments(sequence, width, jnp.zeros(width)),
        jnp.zeros(()),
        jnp.full(width, -jnp.inf),
    )
    key_draw, key_noise = random.split(key)
    # noise lets any partition come up, however small the beam
    noise = random.gumbel(key_noise, (size, 1 if width == size else width))
    inputs = jnp.arange(size), random.uniform(key_draw, (size,)), noise
    _, (drawn, possible) = jax.lax.scan(visit, start, inputs)
    return _trace_back(drawn), possible.all()


def _trace_back(drawn: Array) -> Array:
    """Mark the starts of segments, (N,) bool, given the start of that which ends at each point."""
    size = drawn.shape[0]

    def back(carry: Any) -> Any:
        end, starts = carry
        start = drawn[jnp.maximum(end, 1) - 1]
        return start, starts.at[start].set(True)

    _, starts = jax.lax.while_loop(
        lambda carry: carry[0] > 0, back, (jnp.array(size), jnp.zeros(size, bool))
    )
    return starts


def draw_exactly(
    key: Array, sequence: Sequence, log_counts: Array, most: int, family: Family
) -> tuple[Array, Array]:
    """Draw at most ``most`` segments with probability ∝ A(K) Π B(c), eq. (4)."""
    # It returns where segments start, (N,), and whether more of them would have been drawn.
    size = sequence.reference.shape[0]
    key_segments, key_number, key_again = random.split(key, 3)

    def visit(carry: Any, inputs: tuple) -> Any:
        segments, log_totals = carry  # log g(e, K), K = 0, …, N
        e, uniform = inputs
        segments, log_weights = _extend(segments, e, log_totals, e, sequence, family)
        # one segment more than before it
        scores = segments.log_before[:, :-1] + log_weights[:, None]
        totals = jnp.concatenate([jnp.full(1, -jnp.inf), jax.nn.logsumexp(scores, axis=0)])
        drawn = segments.start[_draw(uniform, scores)]
        return (segments, totals), jnp.concatenate([jnp.zeros(1, drawn.dtype), drawn])

    nothing = jnp.full(size + 1, -jnp.inf).at[0].set(0.0)
    before = jnp.full((size, size + 1), -jnp.inf)
    inputs = jnp.arange(size), random.uniform(key_segments, (size, size))
    (_, totals), drawn = jax.lax.scan(
        visit, (_no_segments(sequence, size, before), nothing), inputs
    )
    log_numbers = log_counts + totals
    number = random.categorical(key_number, log_numbers)
    overflow = number > most
    allowed = jnp.where(jnp.arange(size + 1) <= most, log_numbers, -jnp.inf)
    number = jnp.where(overflow, random.categorical(key_again, allowed), number)
    return _trace_back_by_number(drawn, number), overflow


def _trace_back_by_number(drawn: Array, number: Array) -> Array:
    """The same of so many segments, given the start of the last of K segments, (N, K = 0, …, N)."""
    size = drawn.shape[0]

    def back(carry: Any) -> Any:
        end, left, starts = carry
        start = drawn[jnp.maximum(end, 1) - 1, left]
        return start, left - 1, starts.at[start].set(True)

    _, _, starts = jax.lax.while_loop(
        lambda carry: carry[0] > 0, back, (jnp.array(size), number, jnp.zeros(size, bool))
    )
    return starts


def labels_of(order: Array, starts: Array) -> Array:
    """Labels of the points, (N,), given where the segments of their order start."""
    segment = jnp.cumsum(starts) - 1
    return jnp.zeros(order.shape[0], jnp.int32).at[order].set(segment.astype(jnp.int32))
