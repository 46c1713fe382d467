r"""The orders of the items behind partial orders, drawn given the parameters.

A judge who ties items, or compares some of them only, has an ordering of which is known that it
agrees with what was said. A sweep draws these orderings, and then all else given them, as of
rankings. So the posterior of all else is that of the partial orders, without approximation.

Items move one after the other. Taken out of its list and put back at the place p among the others,
an item has :math:`p(\text{list with it at } p)` as its conditional, over the places that agree with
what was said. All places together cost as much as one: the stages before and after p are those of
the list without the item, and differ between places by what the item adds to each.

Where comparisons may be mistakes [1], each is made with probability 1 - e as in the ordering, and
with probability e against it. The item may then be anywhere, with the conditional
:math:`p(\text{list with it at } p)\, e^m (1-e)^{k-m}`, where m of the k comparisons are against it.

In a mixture some judges first get a new label and a new ordering together, since the ordering that
was drawn with the old label would keep it. The ordering is drawn item by item, each time among the
items that may come next. The product over the stages of the probability that one of these is next
estimates the probability of what was said without bias, for any preferences, and the step accepts
by its ratio [2]. So no sum over all orderings that agree is needed.

Arrays have their rows last, (T, rows), so that compilers vectorize over judges.

**References**

1. *A Bayesian Mallows approach to nontransitive pair comparison data: How human are sounds?*,
   M. Crispino, E. Arjas, V. Vitelli, N. Barrett, A. Frigessi (Annals of Applied Statistics, 2019).
2. *The pseudo-marginal approach for efficient Monte Carlo computations*, C. Andrieu, G. O. Roberts
   (The Annals of Statistics 37(2), 2009).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings._system import memory as _memory
from numpyro_rankings.ops.codes import codes_from_places
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.ops.sums import count_by_label
from numpyro_rankings.rankings import Comparisons, Orders, PartialOrders
from numpyro_rankings.words import plural

_WORTH_A_LOOK = 2**28  # bytes; less is never refused
_BYTES_OF_PLACE = 40  # of all arrays (T, rows) of a chain
_UNROLLED = 16  # up to this many, sums over stages are added one by one, which XLA fuses


class LatentOrderState(NamedTuple):
    """State of one chain of partial orders: that of rankings, and the judges' orderings."""

    z: dict[str, Array]
    potential_energy: Array
    accept_prob: Array
    overflow: Array
    rng_key: Array
    orderings: Array  # drawn orderings of the listed items, (N, T)


class Others(NamedTuple):
    """A list without one item, by place, (T, rows); the last place is empty."""

    values: Array
    kept: Any


class Lists(Protocol):
    """The likelihood of lists in which one item moves."""

    @property
    def values(self) -> Array:
        """What matters of each item, in the order of ``PartialOrders.listed``, (T, rows)."""

    def start(self, values: Array) -> Any:
        """Return what is kept for each place, given the values by place."""

    def without(self, kept: Any, values: Array, place: Array, value: Array) -> Others:
        """Take out the item at a place, (rows,), whose value is given."""

    def log_places(self, others: Others, value: Array) -> Array:
        """Return the log probability of the list with the item at each place, (T, rows)."""

    def put_back(self, others: Others, place: Array, value: Array) -> tuple[Array, Any]:
        """Put the item back at a place: the values by place, and what is kept."""

    def log_next(self, is_left: Array, stage: Array) -> Array:
        """Return the log probability to be next of each item that is left, (T, rows)."""


class PlackettLuceLists(NamedTuple):
    r"""Lists with the probability :math:`\prod_j w_j / W_j`, W the mass that is left."""

    values: Array  # weights, (T, rows)
    rest: Array  # mass of the items below all that are listed, (rows,)
    lengths: Array

    def start(self, values: Array) -> None:
        return None

    def without(self, kept: None, values: Array, place: Array, value: Array) -> Others:
        return Others(_without(values, place), None)

    def log_places(self, others: Others, value: Array) -> Array:
        masses = _sums_after(others.values) + self.rest  # left at each stage without the item
        masses = jnp.maximum(masses, jnp.finfo(masses.dtype).tiny)
        is_stage = _places(masses) < self.lengths - 1
        later = jnp.where(is_stage, jnp.log(jnp.where(is_stage, masses, 1.0)), 0.0)
        earlier = jnp.log(masses + value)  # while the item is there, and when it is chosen
        return -_sums_before(earlier, inclusive=True) - _sums_after(later)

    def put_back(self, others: Others, place: Array, value: Array) -> tuple[Array, None]:
        return _put_back(others.values, place, value), None

    def log_next(self, is_left: Array, stage: Array) -> Array:
        mass = jnp.sum(jnp.where(is_left, self.values, 0.0), axis=0) + self.rest
        tiny = jnp.finfo(mass.dtype).tiny
        return jnp.log(jnp.maximum(self.values, tiny)) - jnp.log(jnp.maximum(mass, tiny))


def plackett_luce_lists(
    orders: Orders, labels: Array, weights: Array, pool: Array | None = None
) -> PlackettLuceLists:
    """Return the likelihood of the lists of judges with a label each.

    :param weights: of the items in each cluster, (C, n).
    :param pool: weight of the items that no ranking lists, which are below all others, (C,).
    """
    of_judges, items = weights[labels], jnp.maximum(orders.listed, 0)
    values = jnp.take_along_axis(of_judges, items, axis=1)
    values = jnp.where(orders.listed >= 0, values, 0.0)
    rest = jnp.sum(jnp.where(orders.rest(), of_judges, 0.0), axis=1)
    rest = rest if pool is None else rest + pool[labels]
    return PlackettLuceLists(values.T, rest, orders.lengths)


class MallowsLists(NamedTuple):
    r"""Lists with the probability :math:`\exp(-\sum_j θ_j s_j)` up to a constant.

    What is kept are the codes s_j.
    """

    values: Array  # places in the center, (T, rows)
    concentration: Array  # θ, (T, rows) or (T, 1), 0 at a stage that has no code
    lengths: Array
    num_items: Array  # n, (rows,)

    def start(self, values: Array) -> Array:
        listed = _places(values) < self.lengths
        return codes_from_places(values.T, listed.T).T

    def without(self, kept: Array, values: Array, place: Array, value: Array) -> Others:
        is_before = _places(values) < place
        # the codes of those listed before the item no longer count it
        fewer = jnp.where(is_before & (value < values), kept - 1, kept)
        return Others(_without(values, place), _without(fewer, place))

    def log_places(self, others: Others, value: Array) -> Array:
        values, codes = others
        theta, is_ahead = self.concentration, value < values
        is_stage = _places(values) < self.lengths - 1
        before = jnp.where(is_stage, theta * (codes + is_ahead), 0.0)
        after = jnp.where(is_stage, jnp.roll(theta, -1, axis=0) * codes, 0.0)
        own = theta * self._codes_of_item(values, is_stage, value)
        return -(_sums_before(before) + own + _sums_after(after))

    def _codes_of_item(self, values: Array, is_stage: Array, value: Array) -> Array:
        """The code of the item at each place: how many of those ahead of it are left."""
        return value - _sums_before(((values < value) & is_stage).astype(value.dtype))

    def put_back(self, others: Others, place: Array, value: Array) -> tuple[Array, Array]:
        values, codes = others
        is_stage = _places(values) < self.lengths - 1
        own = jnp.sum(
            jnp.where(_places(values) == place, self._codes_of_item(values, is_stage, value), 0),
            axis=0,
            dtype=codes.dtype,
        )
        more = jnp.where((_places(values) < place) & (value < values), codes + 1, codes)
        return _put_back(values, place, value), _put_back(more, place, own)

    def log_next(self, is_left: Array, stage: Array) -> Array:
        theta = self.concentration[stage]
        # items ahead in the center count unless they have been placed before
        is_placed = ~is_left & (_places(is_left) < self.lengths)
        placed = jnp.where(is_placed, self.values, self.num_items)
        codes = self.values - jnp.sum(placed[:, None] < self.values[None], axis=0)
        return -theta * codes - log_psi(theta, jnp.maximum(self.num_items - 1 - stage, 0))


def find_orders(args: tuple, kwargs: dict) -> Orders | None:
    """Return the partial orders, or the comparisons, among the arguments, or None."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Orders):
            return value
    return None


def check_memory(orders: Orders, num_chains: int) -> None:
    """Refuse orders if there is too little memory for the preferences of all judges."""
    # A bit for each pair of items of each judge takes a byte. There are these of the judges, and
    # four copies; of comparisons there are numbers, and margins of each chain. Items that were not
    # offered may have to be listed, too.
    size = orders.num_rankings
    width = orders.num_items if orders.offered() is not None else orders.table.shape[1]
    of_pair = 4 + 8 * num_chains if isinstance(orders, Comparisons) else 5
    needed = size * width * (of_pair * width + _BYTES_OF_PLACE * num_chains)
    free = None if needed < _WORTH_A_LOOK else _memory.device_memory()
    if free is None or needed <= _memory.USABLE * free:
        return
    raise _memory.TooLittleMemoryError(
        f"the preferences between {width:,} items of {size:,} judges in "
        f"{plural(num_chains, 'chain')} need about {needed / 1e9:.1f} GB of memory, but only "
        f"{free / 1e9:.1f} GB is free: leave out items that few judges compare, take a sample of "
        "the judges, or run fewer chains at a time"
    )


def with_orderings(
    args: tuple, kwargs: dict, orders: Orders, orderings: Array | None = None
) -> tuple[tuple, dict]:
    """Return the arguments with rankings in place of the partial orders, or of the comparisons."""
    rankings = orders.with_orderings(orders.listed if orderings is None else orderings)

    def replaced(value: Any) -> Any:
        return rankings if isinstance(value, Orders) else value

    return tuple(map(replaced, args)), {name: replaced(x) for name, x in kwargs.items()}


def draw_orderings(
    key: Array,
    orders: PartialOrders,
    orderings: Array,
    likelihood: Lists,
    margins: Array | None = None,
) -> Array:
    """Move each listed item of each row once, given the places of the others.

    :param orders: with one judge in each row.
    :param orderings: current orderings of the listed items, (rows, T).
    :param margins: by how much it raises the log probability that the first of two listed items is
        above the second, instead of below it, (rows, T, T); None if there is nothing but bounds.
    :return: new orderings, (rows, T).
    """
    listed, above = orders.listed.T, jnp.transpose(orders.above, (1, 2, 0))
    num_places, num_rows = listed.shape
    if num_places == 1:
        return orderings
    is_there = orderings.T[None] == listed[:, None]  # item by place
    place = jnp.sum(jnp.where(is_there, _places(listed)[None], 0), axis=1, dtype=jnp.int32)
    # padding keeps its places at the end
    place = jnp.where(listed >= 0, place, _places(listed))
    values = _by_place(likelihood.values, place)

    def move(carry: tuple, item: tuple) -> tuple[tuple, None]:
        place, values, kept, order = carry
        index, value, is_above, is_below, uniform, margin = item
        own = place[index]
        others = likelihood.without(kept, values, own, value)
        among = place - (place > own)
        low = jnp.max(jnp.where(is_above, among + 1, 0), axis=0)
        high = jnp.min(jnp.where(is_below, among, orders.lengths - 1), axis=0)
        weights = likelihood.log_places(others, value)
        if margin is not None:  # each item that is passed on the way down takes its margin away
            order = _without(order, own)
            passed = jnp.take_along_axis(margin, order, axis=0, mode="clip")
            weights -= _sums_before(passed)
        new = _draw_place(uniform, weights, low, high)
        new = jnp.where(index < orders.lengths, new, own)
        values, kept = likelihood.put_back(others, new, value)
        place = (among + (among >= new)).at[index].set(new)
        order = None if margin is None else _put_back(order, new, index)
        return (place, values, kept, order), None

    uniforms = random.uniform(key, (num_places, num_rows))
    items = (
        jnp.arange(num_places, dtype=jnp.int32),
        likelihood.values,
        jnp.swapaxes(above, 0, 1),
        above,
        uniforms,
        None if margins is None else jnp.transpose(margins, (1, 2, 0)),
    )
    indices = jnp.broadcast_to(_places(listed), listed.shape)
    order = None if margins is None else _by_place(indices, place)
    carry: tuple = place, values, likelihood.start(values), order
    (place, *_), _ = jax.lax.scan(move, carry, items)
    return _by_place(listed, place).T


def draw_orderings_of_comparisons(
    key: Array, comparisons: Comparisons, orderings: Array, likelihood: Lists, mistake: Array
) -> Array:
    """Move each item as :func:`draw_orderings`, where comparisons may be mistakes.

    :param mistake: the probability of a mistake.
    """
    # where k comparisons prefer one item and m the other, k agree if the one is above, and m if it
    # is below
    wins = comparisons.wins
    log_odds = jnp.log1p(-mistake) - jnp.log(mistake)
    margins = log_odds * (wins - jnp.swapaxes(wins, 1, 2))
    return draw_orderings(key, comparisons.orders, orderings, likelihood, margins)


class Partition(NamedTuple):
    """The labels of the judges, (rows,), of which a cluster of m has the weight m + κ."""

    labels: Array
    num_labels: int
    kappa: Array


def draw_labels_and_orderings(
    key: Array,
    orders: PartialOrders,
    orderings: Array,
    partition: Partition,
    likelihood: Callable[[Array], Lists],
) -> tuple[Array, Array]:
    r"""Move labels and orderings of judges together, given all else, by Metropolis–Hastings.

    Half of the judges, drawn by coins, stay. The others who have a label of one of these may move
    to any such label c, so that no cluster is emptied or opened. Given the partition the shares v
    of these labels are Dirichlet(m + κ). The proposal is a label with probability :math:`v_c`, and
    an ordering R with :math:`q_c(R) = f_c(R) / W_c(R)`, where W is the product over the stages of
    the probability that one of the items that may be next is next. Of
    :math:`v_c f_c(R) / (v_c q_c(R))` the ratio of the W remains.

    :param orders: with one judge in each row.
    :param orderings: current orderings of the listed items, (rows, T).
    :param likelihood: returns that of the lists of judges with given labels.
    :return: new labels and orderings.
    """
    key_stay, key_shares, key_labels, key_items, key_accept = random.split(key, 5)
    labels, num_labels, kappa = partition
    stays = random.bernoulli(key_stay, shape=labels.shape)
    is_open = count_by_label(jnp.where(stays, labels, num_labels), num_labels) > 0
    sizes = count_by_label(labels, num_labels)
    shares = sample_log_gamma(key_shares, jnp.where(is_open, sizes + kappa, 1.0))
    shares = jnp.where(is_open, shares, -jnp.inf)
    proposed = random.categorical(key_labels, shares, shape=labels.shape)
    lists = jax.tree.map(_beside, likelihood(labels), likelihood(proposed))
    items, log_sums = _draw_items(key_items, orders, orderings, lists)
    log_now, log_new = log_sums.reshape(2, -1)
    accepts = jnp.log(random.uniform(key_accept, labels.shape)) < log_new - log_now
    moves = accepts & ~stays & is_open[labels]
    drawn = jnp.take_along_axis(orders.listed, items.reshape(-1, 2, len(labels))[:, 1].T, axis=1)
    return jnp.where(moves, proposed, labels), jnp.where(moves[:, None], drawn, orderings)


def _beside(one: Array, two: Array) -> Array:
    return jnp.concatenate([one, two], axis=-1)


def _draw_items(
    key: Array, orders: PartialOrders, orderings: Array, lists: Lists
) -> tuple[Array, Array]:
    """Follow the orderings, and draw others item by item, among those that may be next.

    :param lists: the likelihood of the former lists, and then of the latter, 2 rows in all.
    :return: the index of each item drawn or followed, (T, 2 rows), and log W, (2 rows,).
    """
    num_rows, num_places = orders.listed.shape
    index = jnp.arange(num_places)[:, None]
    above = jnp.concatenate([orders.above] * 2)
    lengths = jnp.concatenate([orders.lengths] * 2)
    followed = jnp.argmax(orderings[:, :, None] == orders.listed[:, None], axis=2)

    def choose(carry: tuple, stage: tuple) -> tuple[tuple, Array]:
        is_left, waits, log_sum = carry
        place, uniform, follow = stage
        may_be_next = is_left & (waits == 0)
        log_next = jnp.where(may_be_next, lists.log_next(is_left, place), -jnp.inf)
        largest = jnp.max(log_next, axis=0)
        sums = _sums_before(jnp.exp(log_next - largest), inclusive=True)
        drawn = jnp.sum(sums <= uniform * sums[-1], axis=0)
        drawn = jnp.minimum(drawn, jnp.max(jnp.where(may_be_next, index, 0), axis=0))
        item = jnp.concatenate([follow, drawn[num_rows:]])
        item = jnp.where(place < lengths, item, place)
        log_sum = log_sum + jnp.where(place < lengths, largest + jnp.log(sums[-1]), 0.0)
        waits = waits - above[jnp.arange(2 * num_rows), item].T
        return (is_left & (index != item), waits, log_sum), item

    is_left = jnp.broadcast_to(index < lengths, (num_places, 2 * num_rows))
    waits = above.sum(1, dtype=jnp.int32).T
    stages = (
        jnp.arange(num_places),
        random.uniform(key, (num_places, 2 * num_rows)),
        followed.T,
    )
    start = is_left, waits, jnp.zeros(2 * num_rows)
    (_, _, log_sum), items = jax.lax.scan(choose, start, stages)
    return items, log_sum


def _draw_place(uniform: Array, log_weights: Array, low: Array, high: Array) -> Array:
    """Draw a place from ``low`` to ``high``, (rows,), by the inverse of its distribution."""
    place = _places(log_weights)
    is_allowed = (place >= low) & (place <= high)
    log_weights = jnp.where(is_allowed, log_weights, -jnp.inf)
    weights = jnp.exp(log_weights - jnp.max(log_weights, axis=0))
    sums = _sums_before(weights, inclusive=True)
    new = jnp.sum(sums <= uniform * sums[-1], axis=0, dtype=low.dtype)
    return jnp.clip(new, low, high)


def _places(x: Array) -> Array:
    """The index of each place, (T, 1)."""
    return jnp.arange(len(x), dtype=jnp.int32)[:, None]


def _by_place(of_items: Array, place: Array) -> Array:
    """Sort values of items, (T, rows), by their places."""
    is_there = place[:, None] == _places(place)[None]
    return jnp.sum(jnp.where(is_there, of_items[:, None], 0), axis=0, dtype=of_items.dtype)


def _without(x: Array, place: Array) -> Array:
    """Take out one place, (rows,), of each column; the last entry is then arbitrary."""
    return jnp.where(_places(x) < place, x, jnp.roll(x, -1, axis=0)).at[-1].set(0)


def _put_back(x: Array, place: Array, value: Array) -> Array:
    """Put a value into each column at a place; the reverse of :func:`_without`."""
    index = _places(x)
    return jnp.where(index < place, x, jnp.where(index == place, value, jnp.roll(x, 1, axis=0)))


def _sums_before(x: Array, inclusive: bool = False) -> Array:
    """Sums over the places before each, (T, rows), and the place itself if ``inclusive``."""
    if len(x) > _UNROLLED:
        sums = jax.lax.cumsum(x, axis=0)
    else:
        rows = [x[0]]
        for row in x[1:]:
            rows.append(rows[-1] + row)
        sums = jnp.stack(rows)
    return sums if inclusive else jnp.roll(sums, 1, axis=0).at[0].set(0)


def _sums_after(x: Array) -> Array:
    """Sums over each place and those after it, (T, rows)."""
    return _sums_before(x[::-1], inclusive=True)[::-1]
