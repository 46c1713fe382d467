"""Centers of generalized Mallows clusters, given their concentrations and labels.

With the labels and θ fixed, the centers are independent and

.. math:: P(σ_c | θ_c, π) ∝ \\exp(-L_{σ_c}(R_c)), \\qquad R_c = \\sum_j θ_{cj} R_j(π_{i ∈ c}),

where :math:`L_σ(R)` adds up :math:`R_{ii'}` over the pairs in which i' stands before i (Meilă &
Chen 2010, Section 2.2). Four moves leave it invariant: the paper's Sample-σ-Stagewise as a
Metropolis-Hastings proposal (alone it is not exact: the normaliser of a stage depends on the
items placed before), swaps of neighbors, the reinsertion of one item at a place drawn from its
conditional, and a shuffle of the items that no ranking of the cluster lists.

:math:`R_c` is summed over up to 10^5 rankings, where float32 would drift. It is kept in integer
multiples of a unit δ_c, that is for :math:`\\tilde θ = δ · \\mathrm{round}(θ/δ)`, and the moves
target the center's conditional at :math:`\\tilde θ`. Their sequence reads the same backwards, so it
is reversible, and one final Metropolis-Hastings step with the exact integer code sums turns the
whole into a move for θ itself (accepted nearly always).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.infer.mallows.data import MallowsData, Occupancy, code_sums
from numpyro_rankings.infer.mixture.membership import Membership
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.ops.sampling import draw_together
from numpyro_rankings.ops.sums import scatter_add

_BATCH_ITEMS = 8192  # items of the centers that are moved together
# Pair costs of a chain that are held for all slots. Larger ones are summed up for a batch of slots
# at a time, of the items that the rankings list.
_MOST_BYTES = 2**28
# Beyond so many items the stagewise draw is never accepted: of 500 lists of 10 items 82% with 20
# items, 2% with 50, 1e-9 with 100. Neighbors are swapped instead, which also orders a poor start.
_MOST_STAGEWISE, _ROUNDS_OF_SWAPS = 64, 10
_LOW_BITS = 15  # integer costs are accumulated as a high and a low part, so that no sum overflows


class PairCosts(NamedTuple):
    """The matrix R of each cluster in units of ``unit``: ``R[i, k] = listed[i] - beaten[i, k]``.

    Items that no ranking lists have rows of 0 and equal columns. With many items they share one
    index, m, and the n items above are m + 1 indices.
    """

    present: Array  # whether any ranking of the cluster lists the item, (C, n)
    listed: Array  # Σ θ̃ over the times item i is listed, (C, n) int32
    beaten: Array  # the same sum over the rankings that list k before i, (C, n, n) int32
    unit: Array  # δ, (C,)
    concentration: Array  # θ̃, the multiples of δ nearest to θ, (C, T)
    indices: Array | None = None  # index of each item, (n,) int32, or None if they are the items

    def index_of(self, items: Array) -> Array:
        """Return the indices of items."""
        return items if self.indices is None else self.indices[items]

    def by_item(self, by_index: Array) -> Array:
        """Convert numbers by index to numbers by item, in the last axis."""
        return by_index if self.indices is None else by_index[..., self.indices]


def _stage_costs(concentration: Array, sizes: Array) -> tuple[Array, Array]:
    """Round θ to multiples of a unit: return δ, (C,), and the multiples, (C, T) int32."""
    # the largest entry of R is at most sizes * max(θ): keep it below 2^30
    unit = jnp.maximum(sizes, 1) * jnp.max(concentration, axis=1) / 2.0**30
    unit = jnp.maximum(unit, 1e-12)
    return unit, jnp.round(concentration / unit[:, None]).astype(jnp.int32)


def pair_costs(
    membership: Membership, data: MallowsData, concentration: Array, sizes: Array, num_items: int
) -> PairCosts:
    """Accumulate R in integers (eq. 5 and 6 of Meilă & Chen, weighted by θ)."""
    unit, multiples = _stage_costs(concentration, sizes)
    orderings = at_rows(data.orderings, membership.rows)
    weights = multiples[membership.clusters] * membership.weights[:, None]
    # an item of -1 (padding) is sent out of range, where "drop" ignores it
    items = jnp.where(orderings >= 0, orderings, num_items)
    present = _is_present(membership, items, len(unit), num_items)
    listed, beaten = _sum_pairs(membership.clusters, items, weights, len(unit), num_items)
    return PairCosts(present, listed, beaten, unit, multiples * unit[:, None])


def _is_present(membership: Membership, items: Array, num_slots: int, num_items: int) -> Array:
    """Return whether any ranking of a cluster lists the item, (C, n)."""
    zeros = jnp.zeros((num_slots, num_items), jnp.int32)
    indices = membership.clusters[:, None], items
    return scatter_add(zeros, indices, membership.weights[:, None]) > 0


def _sum_pairs(
    clusters: Array, indices: Array, weights: Array, num_slots: int, num_indices: int
) -> tuple[Array, Array]:
    """Sum up ``listed`` and ``beaten``, given the **indices** of items by stage, (entries, T)."""
    # Clusters and indices that are out of range are dropped.
    clusters = clusters[:, None]
    zeros = jnp.zeros((num_slots, num_indices), jnp.int32)
    listed = scatter_add(zeros, (clusters, indices), weights)
    later, earlier = np.tril_indices(indices.shape[1], -1)
    beaten = jnp.zeros((num_slots, num_indices, num_indices), jnp.int32)
    pairs = clusters, indices[:, later], indices[:, earlier]
    return listed, scatter_add(beaten, pairs, weights[:, later])


def most_listed(places: int, num_items: int) -> int:
    """Return how many indices the items need if those that nobody lists share one."""
    return min(places + 1, num_items) if num_items > _MOST_STAGEWISE else num_items


def _listed_index(data: MallowsData, num_items: int) -> Array | None:
    """Number the items that any ranking lists, (n,), or return None if there may be n."""
    num_indices = most_listed(data.orderings.size, num_items)
    if num_indices == num_items:
        return None
    items = jnp.where(data.listed, data.orderings, num_items)
    is_listed = scatter_add(jnp.zeros(num_items, jnp.int32), items, 1) > 0
    return jnp.where(is_listed, jnp.cumsum(is_listed) - 1, num_indices - 1).astype(jnp.int32)


class CostsInParts(NamedTuple):
    """Pair costs that are summed up for some slots at a time, by ``for_slots``."""

    # Costs of slots out of range mean nothing. The other values are those of all slots.

    for_slots: Callable[[Array], PairCosts]
    present: Array
    concentration: Array


def pair_costs_in_parts(
    membership: Membership, data: MallowsData, concentration: Array, sizes: Array, num_items: int
) -> CostsInParts:
    """Prepare sums of the pair costs, of the items that the rankings list."""
    unit, multiples = _stage_costs(concentration, sizes)
    num_slots, rounded = len(unit), multiples * unit[:, None]
    orderings = at_rows(data.orderings, membership.rows)
    weights = multiples[membership.clusters] * membership.weights[:, None]
    items = jnp.where(orderings >= 0, orderings, num_items)
    present = _is_present(membership, items, num_slots, num_items)
    index = _listed_index(data, num_items)
    num_indices = most_listed(data.orderings.size, num_items)
    # padding is out of range among the indices, as it is among the items
    indices = items if index is None else jnp.append(index, num_indices)[items]

    def for_slots(slots: Array) -> PairCosts:
        number = len(slots)
        part = jnp.full(num_slots, number).at[slots].set(jnp.arange(number), mode="drop")
        clusters = part[membership.clusters]
        listed, beaten = _sum_pairs(clusters, indices, weights, number, num_indices)
        return PairCosts(present[slots], listed, beaten, unit[slots], rounded[slots], index)

    return CostsInParts(for_slots, present, rounded)


def sample_center_stagewise(
    key: Array, center: Array, costs: PairCosts, corrected: bool = True
) -> tuple[Array, Array]:
    """Sample-σ-Stagewise (Figure 2) as an independence proposal, which the paper always accepts."""
    # σ(1), σ(2), … are drawn with probability ∝ exp(-column sum of the rows still there).
    num_slots, num_items = center.shape
    slots = jnp.arange(num_slots)
    rows = costs.by_item(costs.listed).astype(float)
    beaten = costs.by_item(costs.beaten.astype(float).sum(1))
    columns = rows.sum(1, keepdims=True) - rows - beaten

    def choose_item(carry: tuple, stage: tuple) -> tuple:
        (new_columns, new_free, old_columns, old_free), (uniform, old_item) = carry, stage

        def probabilities(columns: Array, free: Array) -> Array:
            cost = jnp.where(free, columns, jnp.inf)
            return jnp.exp(-costs.unit[:, None] * (cost - cost.min(1, keepdims=True)))

        def strike_out(columns: Array, free: Array, item: Array) -> tuple[Array, Array]:
            beaten = costs.by_item(costs.beaten[slots, costs.index_of(item)]).astype(float)
            row = rows[slots, item][:, None] - beaten
            return columns - row, free & (jnp.arange(num_items) != item[:, None])

        new_p, old_p = probabilities(new_columns, new_free), probabilities(old_columns, old_free)
        new_total, old_total = new_p.sum(1), old_p.sum(1)
        new_item = _inverse_cdf(new_p, uniform)
        # log q(σ) / q(σ') gains the old item's and loses the new item's probability
        old_cost = old_columns[slots, old_item] - jnp.where(old_free, old_columns, jnp.inf).min(1)
        new_cost = new_columns[slots, new_item] - jnp.where(new_free, new_columns, jnp.inf).min(1)
        log_ratio = -costs.unit * (old_cost - new_cost) - jnp.log(old_total) + jnp.log(new_total)
        carry = (
            *strike_out(new_columns, new_free, new_item),
            *strike_out(old_columns, old_free, old_item),
        )
        return carry, (new_item, log_ratio)

    free = jnp.ones((num_slots, num_items), bool)
    uniforms, uniform = draw_together(random.uniform, key, (num_items, num_slots), (num_slots,))
    drawn: tuple[Array, Array]
    _, drawn = jax.lax.scan(choose_item, (columns, free, columns, free), (uniforms, center.T))
    proposal, log_q_ratio = drawn[0].T.astype(center.dtype), drawn[1]
    if not corrected:
        return proposal, jnp.ones(num_slots)
    log_accept = log_q_ratio.sum(0) - costs.unit * _cost_difference(center, proposal, costs)
    accept_prob = jnp.exp(jnp.minimum(log_accept, 0.0))
    accepted = (uniform < accept_prob)[:, None]
    return jnp.where(accepted, proposal, center), accept_prob


def _inverse_cdf(weights: Array, uniform: Array) -> Array:
    """Draw an index with probability ∝ weights along the last axis, never one of weight 0."""
    before = jnp.cumsum(weights, axis=-1) - weights
    reached = (before <= uniform[..., None] * weights.sum(-1, keepdims=True)) & (weights > 0)
    last = weights.shape[-1] - 1
    return last - jnp.argmax(jnp.flip(reached, -1), axis=-1)


def _cost_difference(center: Array, proposal: Array, costs: PairCosts) -> Array:
    """Return L(proposal) - L(center) in units, (C,), from the pairs whose order differs."""
    old, new = inverse_ordering(center), inverse_ordering(proposal)
    # R[i, k] is a cost if k precedes i
    cost_old = old[:, None, :] < old[:, :, None]
    cost_new = new[:, None, :] < new[:, :, None]
    entries = costs.listed[:, :, None] - costs.beaten
    change = cost_new.astype(jnp.int32) - cost_old.astype(jnp.int32)
    return jnp.sum((entries * change).astype(float), axis=(1, 2))


def reinsert_items(key: Array, center: Array, costs: PairCosts, num_moves: int) -> Array:
    """Take a random item out of each center, (C, n), and put it back, ``num_moves`` times."""
    # The place is drawn from its exact conditional ∝ exp(-cost): moving item x behind item y costs
    # R[x, y] - R[y, x], so all n costs are one cumulative sum.
    num_slots, num_items = center.shape
    slots = jnp.arange(num_slots)
    gaps = jnp.arange(num_items + 1)
    behind = _costs_behind(costs)

    def reinsert(center: Array, move: tuple) -> tuple[Array, None]:
        item, uniform = move
        place = jnp.argmax(center == item[:, None], axis=1)[:, None]
        row = behind[slots, costs.index_of(item)]
        step = jnp.take_along_axis(row, costs.index_of(center), axis=1)
        # cost of the gap before each place, relative to where the item stands, exact in integers
        cost = _relative_sums(step, place)
        same_gap = gaps == place + 1  # the gaps on both sides of the item are one
        cost = jnp.where(same_gap, jnp.inf, cost - cost.min(1, keepdims=True))
        gap = _inverse_cdf(jnp.exp(-costs.unit[:, None] * cost), uniform)[:, None]
        new_place = jnp.where(gap > place, gap - 1, gap)
        here = jnp.arange(num_items)
        source = (
            here + ((here >= place) & (here < new_place)) - ((here > new_place) & (here <= place))
        )
        source = jnp.where(here == new_place, place, source)
        return jnp.take_along_axis(center, source, axis=1), None

    shape = num_moves, num_slots
    for_items, uniforms = draw_together(random.uniform, key, shape, shape)
    items = jnp.floor(for_items * num_items).astype(jnp.int32)
    center, _ = jax.lax.scan(reinsert, center, (items, uniforms))
    return center


def _costs_behind(costs: PairCosts) -> Array:
    """Return R[x, y] - R[y, x], the cost of x behind y, (C, n, n) int32; x are rows in memory."""
    entries = costs.listed[:, :, None] - costs.beaten
    return entries - jnp.swapaxes(entries, 1, 2)


def swap_neighbors(key: Array, center: Array, costs: PairCosts, num_rounds: int) -> Array:
    """Swap neighbors in each center, all at places 1 and 2, 3 and 4, … at once, then the others."""
    # Each pair is put into either order by its exact conditional, on which no other pair of the
    # same half of a round has an effect. The halves read the same backwards: 1, 2, 1, 2, …, 1.
    num_slots, num_items = center.shape
    slots, behind = jnp.arange(num_slots)[:, None], _costs_behind(costs)

    def half(center: Array, first: int, uniform: Array) -> Array:
        places = np.arange(first, num_items - 1, 2)
        one, other = center[:, places], center[:, places + 1]
        pairs = slots, costs.index_of(one), costs.index_of(other)
        cost = costs.unit[:, None] * behind[pairs].astype(float)
        swaps = uniform[:, : len(places)] < jax.nn.sigmoid(-cost)
        center = center.at[:, places].set(jnp.where(swaps, other, one))
        return center.at[:, places + 1].set(jnp.where(swaps, one, other))

    def two_halves(center: Array, uniforms: tuple[Array, ...]) -> tuple[Array, None]:
        return half(half(center, 1, uniforms[0]), 0, uniforms[1]), None

    shape = num_slots, num_items // 2
    first, *rest = draw_together(
        random.uniform, key, shape, (num_rounds - 1, *shape), (num_rounds - 1, *shape)
    )
    center = half(center, 0, first)
    return jax.lax.scan(two_halves, center, tuple(rest))[0]


def _relative_sums(steps: Array, origin: Array) -> Array:
    """Sum int32 steps before each gap, less that at gap ``origin``: float32, (C, n + 1)."""

    def sums(part: Array) -> Array:
        total = jnp.pad(jnp.cumsum(part, axis=1), ((0, 0), (1, 0)))
        return (total - jnp.take_along_axis(total, origin, axis=1)).astype(float)

    high, low = steps >> _LOW_BITS, steps & (2**_LOW_BITS - 1)
    return sums(high) * 2.0**_LOW_BITS + sums(low)


def shuffle_unlisted(key: Array, center: Array, present: Array) -> Array:
    """Shuffle the items that no ranking of a cluster lists among the places they hold, (C, n)."""
    # They are exchangeable: the draw is exact, and an empty cluster gets a new uniform center.
    (uniforms,) = draw_together(random.uniform, key, center.shape)
    sort_key = jnp.where(present, 2.0, uniforms)
    shuffled = jnp.argsort(sort_key, axis=1).astype(center.dtype)
    unlisted_place = ~jnp.take_along_axis(present, center, axis=1)
    nth = jnp.maximum(jnp.cumsum(unlisted_place, axis=1) - 1, 0)
    return jnp.where(unlisted_place, jnp.take_along_axis(shuffled, nth, axis=1), center)


def propose_rearrangement(key: Array, center: Array) -> Array:
    """Shuffle the items of a random window of 2 to n places; a symmetric proposal."""
    num_slots, num_items = center.shape
    column = num_slots, 1
    for_length, for_start, deal = draw_together(random.uniform, key, column, column, center.shape)
    length = 2 + jnp.floor(for_length * (num_items - 1)).astype(jnp.int32)
    start = jnp.floor(for_start * (num_items - length + 1)).astype(jnp.int32)
    here = jnp.arange(num_items)
    inside = (here >= start) & (here < start + length)
    # sorting by these keys moves nothing outside the window
    sort_key = jnp.where(inside, start + length * deal, here)
    return jnp.take_along_axis(center, jnp.argsort(sort_key, axis=1), axis=1)


def _move_occupied(
    key: Array, move: Callable, center: Array, costs: PairCosts | CostsInParts, sizes: Array
) -> tuple[Array, Array]:
    """Apply a move to the centers of the occupied clusters, a batch of slots at a time."""
    # It returns centers (C, n) and acceptance probabilities (C,), which are 1 in empty clusters.
    num_slots, num_items = center.shape
    batch = center_batch(num_slots, num_items)
    accept_prob = jnp.ones(num_slots)
    if batch == num_slots:
        if isinstance(costs, CostsInParts):
            costs = costs.for_slots(jnp.arange(num_slots))
        return move(key, center, costs)
    order = jnp.argsort(sizes == 0, stable=True)
    # the last batch may reach beyond the slots, where "drop" ignores it
    order = jnp.pad(order, (0, batch), constant_values=num_slots)

    def move_batch(b: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        center, accept_prob = carry
        slots = jax.lax.dynamic_slice_in_dim(order, b * batch, batch)
        if isinstance(costs, PairCosts):
            part = jax.tree.map(lambda x: x[slots], costs)
        else:
            part = costs.for_slots(slots)
        moved, accepted = move(random.fold_in(key, b), center[slots], part)
        center = center.at[slots].set(moved, mode="drop")
        return center, accept_prob.at[slots].set(accepted, mode="drop")

    num_batches = shared_bound((jnp.sum(sizes > 0) + batch - 1) // batch)
    return jax.lax.fori_loop(0, num_batches, move_batch, (center, accept_prob))


def center_batch(num_slots: int, num_items: int) -> int:
    """Return the number of slots whose centers are moved together."""
    return min(max(_BATCH_ITEMS // num_items, 1), num_slots)


def center_bytes(num_slots: int, num_items: int, places: int) -> int:
    """Return about how much memory the centers of one chain need, with so many places of data."""
    batch, all_bytes = center_batch(num_slots, num_items), 4 * num_slots * num_items**2
    # costs of a batch, those of having one item behind another, and their transpose
    if all_bytes <= _MOST_BYTES:
        return all_bytes + 3 * 4 * batch * num_items**2
    return 3 * 4 * batch * most_listed(places, num_items) ** 2


class CenterSums(NamedTuple):
    """Centers, (C, n), and their code sums **sums**, (C, T)."""

    center: Array
    sums: Array


def update_centers(
    key: Array,
    current: CenterSums,
    concentration: Array,
    occupancy: Occupancy,
    data: MallowsData,
    num_moves: int,
    exact: bool = True,
) -> tuple[CenterSums, Array]:
    """Make one exact update of σ given θ and the labels, for all clusters at once."""
    # There are ``num_moves`` reinsertions before and again after the stagewise draw of Figure 2, or
    # with many items swaps instead. It returns also how likely the draw was accepted, (C,), 1 if
    # none.
    center, sums = current
    membership, sizes = occupancy.membership, occupancy.sizes
    num_items = center.shape[1]
    key_move, key_shuffle, key_accept = random.split(key, 3)
    all_bytes = membership, data, concentration, sizes, num_items
    is_small = 4 * center.size * num_items <= _MOST_BYTES
    costs = pair_costs(*all_bytes) if is_small else pair_costs_in_parts(*all_bytes)

    def move(key: Array, center: Array, costs: PairCosts) -> tuple[Array, Array]:
        key_before, key_stagewise, key_after = random.split(key, 3)
        if not exact:
            return sample_center_stagewise(key_stagewise, center, costs, False)
        center = reinsert_items(key_before, center, costs, num_moves)
        accept_prob = jnp.ones(len(center))
        if num_items > _MOST_STAGEWISE:
            center = swap_neighbors(key_stagewise, center, costs, _ROUNDS_OF_SWAPS)
        else:
            center, accept_prob = sample_center_stagewise(key_stagewise, center, costs)
        return reinsert_items(key_after, center, costs, num_moves), accept_prob

    proposal, accept_prob = _move_occupied(key_move, move, center, costs, sizes)
    if not exact:
        center = shuffle_unlisted(key_shuffle, proposal, costs.present)
        return CenterSums(
            center, code_sums(membership, data, inverse_ordering(center))
        ), accept_prob
    proposal_sums = code_sums(membership, data, inverse_ordering(proposal))
    # correct the target from θ̃ to θ, by the difference of the two at the two centers
    change = (proposal_sums - sums).astype(float)
    log_accept = -jnp.sum((concentration - costs.concentration) * change, axis=1)
    accepted = random.uniform(key_accept, sizes.shape) < jnp.exp(jnp.minimum(log_accept, 0.0))
    center = jnp.where(accepted[:, None], proposal, center)
    sums = jnp.where(accepted[:, None], proposal_sums, sums)
    return CenterSums(shuffle_unlisted(key_shuffle, center, costs.present), sums), accept_prob
