"""Partitions into segments of an ordering, by dynamic programming (Liang, Jordan & Taskar 2007)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random
from jax.scipy.special import gammaln

from numpyro_rankings.components.family import Family, take
from numpyro_rankings.components.points import Points, repeat
from numpyro_rankings.infer.mixture.prior import RestaurantPrior
from numpyro_rankings.ops.special import log_gamma_ratio

_LEAST = -1e30  # log weight, where all are -inf


# -- weights -------------------------------------------------------------------------------------


class Sequence(NamedTuple):
    """The points in the order π, with the parts of log B of a segment.

    - **statistics**, **log_alone** - of the points, the latter relative to **reference**: their
      log probability in the clusters of now, (N,).
    - **log_sizes** - by the number of points, (N + 1,).
    - **log_chains** - of the order within each segment from s to e, (e, s), or None.
    - **old_start** - where the segment of now that ends here starts, or -1 if none does.
    - **empty** - statistics of a cluster without points.
    """

    statistics: Any
    log_alone: Array
    reference: Array
    log_sizes: Array
    log_chains: Array | None
    old_start: Array
    empty: Any


def as_sequence(
    order: Array,
    labels: Array,
    sizes: Array,
    prior: RestaurantPrior,
    points: Points,
    pairs: Array | None,
    searches: Array,
    family: Family,
    num_slots: int,
) -> Sequence:
    """What the dynamic programs read."""
    clusters = family.of_clusters(points.statistics, labels, num_slots)
    reference = family.log_predictive(take(clusters, labels), points.statistics)
    reference = jnp.where(jnp.isfinite(reference), reference, 0.0)[order]
    index = jnp.arange(points.size)
    ordered = labels[order]
    differs = ordered[1:] != ordered[:-1]
    starts = jnp.concatenate([jnp.ones(1, bool), differs])
    ends = jnp.concatenate([differs, jnp.ones(1, bool)])
    old_start = jnp.where(ends, jax.lax.cummax(jnp.where(starts, index, 0)), -1)
    number = jnp.maximum(jnp.arange(points.size + 1), 1).astype(float)
    log_prior = log_gamma_ratio(1.0 - prior.discount, number - 1.0)  # Γ(n - d)/Γ(1 - d)
    log_chains = None
    if pairs is None:
        # with 1/n! of the order, eq. (3)
        log_sizes = log_gamma_ratio(number + 1.0, -1.0 - prior.discount)
        log_sizes = log_sizes - gammaln(1.0 - prior.discount)
        log_sizes = jnp.where(searches, log_prior, log_sizes)
    else:
        log_sizes = log_prior - jnp.log(number)  # the first point of a segment is uniform
        log_chains = log_chain_table(pairs[order][:, order])
    return Sequence(
        take(points.statistics, order),
        points.log_alone[order] - reference,
        reference,
        log_sizes,
        log_chains,
        old_start,
        points.empty,
    )


def log_chain_table(pairs: Array) -> Array:
    """Log probability of the order of the points from s to e after the first, as (e, s).

    Step i is drawn among those from i to e, so its normaliser is a cumulative sum of row i - 1.
    """
    index = jnp.arange(len(pairs))
    after = jnp.where(index[None, :] > index[:, None], pairs, -jnp.inf)
    log_totals = jax.lax.cumlogsumexp(after, axis=1)[:-1]  # [i - 1, e]: over i, …, e
    step = jnp.diagonal(pairs, 1)[:, None]
    # where nobody that is left can be next, the total is 0 too
    steps = jnp.where(step > -jnp.inf, step - log_totals, -jnp.inf)
    steps = jnp.where(index[None, :] > index[:-1, None], steps, 0.0)
    # the sum over i from s + 1 to e
    sums = jnp.cumsum(steps[::-1], axis=0)[::-1]
    return jnp.concatenate([sums, jnp.zeros((1, len(pairs)))]).T


# -- dynamic programs ----------------------------------------------------------------------------


class _Segments(NamedTuple):
    """Segments that end at a point: **start** (W,), -1 if there is none, their **statistics**, the
    **log_marginal** relative to the reference, and **log_before**, log g up to the start."""

    start: Array
    statistics: Any
    log_marginal: Array
    log_before: Array


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
    """All segments with point e, one more that starts at it, and their log B."""
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
    """An index of the first axis with probability ∝ exp(log weight), one for each of the others."""
    weights = jnp.exp(log_weights - jnp.maximum(log_weights.max(0), _LEAST))
    sums = jnp.cumsum(weights, axis=0)
    reached = (sums >= (1.0 - uniform) * sums[-1]) & (weights > 0)
    # of rounding none may be
    return jnp.where(reached.any(0), jnp.argmax(reached, axis=0), jnp.argmax(weights, axis=0))


def draw_by_slope(
    key: Array, sequence: Sequence, slope: Array, width: int, family: Family
) -> tuple[Array, Array]:
    """Draw segments with probability ∝ Π B(c) exp(slope), eq. (5), keeping the best beginnings.

    :param width: how many, one of them at the point itself.
    :return: where segments start, (N,) bool, and whether the partition of now could be drawn.
    """
    size = sequence.reference.shape[0]

    def visit(carry: Any, inputs: tuple) -> Any:
        segments, log_total, scores = carry
        e, uniform, noise = inputs
        # where there is room, and then in place of the least
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
    # so that any partition can come up, however small the beam
    noise = random.gumbel(key_noise, (size, 1 if width == size else width))
    inputs = jnp.arange(size), random.uniform(key_draw, (size,)), noise
    _, (drawn, possible) = jax.lax.scan(visit, start, inputs)

    def back(carry: Any) -> Any:
        end, starts = carry
        start = drawn[jnp.maximum(end, 1) - 1]
        return start, starts.at[start].set(True)

    _, starts = jax.lax.while_loop(
        lambda carry: carry[0] > 0, back, (jnp.array(size), jnp.zeros(size, bool))
    )
    return starts, possible.all()


def draw_exactly(
    key: Array, sequence: Sequence, log_counts: Array, most: int, family: Family
) -> tuple[Array, Array]:
    """Draw segments with probability ∝ A(K) Π B(c), eq. (4), at most so many.

    :return: where segments start, (N,) bool, and whether more of them would have been drawn.
    """
    size = sequence.reference.shape[0]
    key_segments, key_number, key_again = random.split(key, 3)

    def visit(carry: Any, inputs: tuple) -> Any:
        segments, log_totals = carry  # g(e, K), K = 0, …, N
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

    def back(carry: Any) -> Any:
        end, left, starts = carry
        start = drawn[jnp.maximum(end, 1) - 1, left]
        return start, left - 1, starts.at[start].set(True)

    _, _, starts = jax.lax.while_loop(
        lambda carry: carry[0] > 0, back, (jnp.array(size), number, jnp.zeros(size, bool))
    )
    return starts, overflow


def labels_of(order: Array, starts: Array) -> Array:
    """Labels of the points, (N,), given where the segments of their order start."""
    segment = jnp.cumsum(starts) - 1
    return jnp.zeros(order.shape[0], jnp.int32).at[order].set(segment.astype(jnp.int32))
