"""Where the chains of a Plackett–Luce mixture start: near a good optimum of the likelihood.

**References**

1. *Random swap EM algorithm for Gaussian mixture models*, Q. Zhao, V. Hautamäki, I. Kärkkäinen,
   P. Fränti (Pattern Recognition Letters, 2012).
"""

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.families import PLACKETT_LUCE
from numpyro_rankings.infer.mixture.labels import draw_labels
from numpyro_rankings.infer.mixture.membership import Membership, rows_of
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData
from numpyro_rankings.infer.plackett_luce.waiting_times import normalise, sum_times_in_play
from numpyro_rankings.ops.choices import log_choice_likelihoods, times_chosen

_SHORT, _LONG, _ON_ALL = 20, 200, 30  # iterations of EM: after a swap, after a search, on all data
_SEARCHES, _MOST_SWAPS = 4, 100
_MOST_CELLS = 1_000_000_000  # choices times components that the searches see, and all data
_SOME = 2500  # rankings that a search sees
_SEED_BOOST = 1.0  # log weight for each place of a seed ranking
_MOST_BOOST = 40.0  # of all places, so that no weight is 0 in float32

Mixture = tuple[Array, Array]  # weights (K, n) and log shares (K,)


def start_mixture(
    key: Array, data: PlackettLuceData, slots: int, num_items: int, num_used: Array | None = None
) -> tuple[Array, Array]:
    """Return labels and weights near the best of some optima, found by searches."""
    # Of many rankings, a search sees a sample, and some iterations of EM on all follow.
    key_labels, key = random.split(key)
    number = _SEARCHES if slots > 1 else 1
    on_all = max(1, min(_MOST_CELLS // (number * _cells(data, slots)), _ON_ALL))

    def find(key: Array) -> tuple[Array, Mixture]:
        key_some, key = random.split(key)
        some = _draw_rankings(key_some, data)
        mixture = _search(key, some, slots, num_items, num_used)
        return _climb(mixture, data, 0 if some is data else on_all)

    def keep_better(best: tuple[Array, Mixture], key: Array) -> tuple[tuple[Array, Mixture], None]:
        return _better(find(key), best), None

    keys = random.split(key, number)
    if slots == 1:
        return jnp.zeros(data.num_labels, jnp.int32), find(keys[0])[1][0]
    # one that is worse than all, so that a search is traced and compiled once
    worst = jnp.array(-jnp.inf), (jnp.zeros((slots, num_items)), jnp.zeros(slots))
    (_, mixture), _ = jax.lax.scan(keep_better, worst, keys)
    return draw_labels(key_labels, _log_table(mixture, data), data.row_index), mixture[0]


def _search(
    key: Array, data: PlackettLuceData, slots: int, num_items: int, num_used: Array | None
) -> Mixture:
    """Search for an optimum by random swaps [1]: a component moves to a random ranking."""
    # Some iterations of EM follow, and the result is kept if the likelihood has grown.
    cells = _SEARCHES * _SHORT * _cells(data, slots)
    swaps = max(1, min(_MOST_CELLS // cells, _MOST_SWAPS))
    number = slots if num_used is None else num_used

    key_seeds, key = random.split(key)
    seeds = normalise(_around_rankings(key_seeds, data, slots, num_items))
    # components that are not in use have no share, and EM gives them none
    start = seeds, jnp.where(jnp.arange(slots) < number, -jnp.log(number), -jnp.inf)
    if slots == 1:
        return _climb(start, data, _SHORT + _LONG)[1]

    def climb(
        best: tuple[Array, Mixture], part: tuple[Array, Array]
    ) -> tuple[tuple[Array, Mixture], None]:
        key, swaps = part
        key_which, key_seed = random.split(key)
        weights, log_shares = best[1]
        c = random.randint(key_which, (), 0, number)
        seed = normalise(_around_rankings(key_seed, data, 1, num_items))[0]
        log_shares = jax.nn.log_softmax(log_shares.at[c].set(-jnp.log(number)))
        swapped = weights.at[c].set(seed), log_shares
        mixture = jax.tree.map(lambda a, b: jnp.where(swaps, a, b), swapped, best[1])
        return _better(_climb(mixture, data, _SHORT), best), None

    # the start, the swaps and the end are one loop, so that EM is compiled once
    step = jnp.arange(1 + swaps + _LONG // _SHORT)
    parts = random.split(key, len(step)), (step > 0) & (step <= swaps)
    (_, mixture), _ = jax.lax.scan(climb, (jnp.array(-jnp.inf), start), parts)
    return mixture


def _draw_rankings(key: Array, data: PlackettLuceData) -> PlackettLuceData:
    """Draw a sample of the rankings, with replacement, unless the distinct ones are few."""
    if len(data.counts) <= _SOME:
        return data
    rows = rows_of(random.randint(key, (_SOME,), 0, data.num_rankings), data.row_index)
    choices = jax.tree.map(lambda x: x[rows], data.choices)
    return PlackettLuceData(choices, jnp.ones(_SOME, jnp.int32), None)


def _cells(data: PlackettLuceData, slots: int) -> int:
    return slots * data.choices.orderings.size


def _climb(mixture: Mixture, data: PlackettLuceData, iterations: int) -> tuple[Array, Mixture]:
    """Make iterations of EM; return the log likelihood, and the mixture."""

    def step(mixture: Mixture, _: None) -> tuple[Mixture, None]:
        return _expectation_maximization(*mixture, data), None

    if iterations > 0:
        mixture, _ = jax.lax.scan(step, mixture, None, length=iterations)
    return jnp.sum(data.counts * jax.nn.logsumexp(_log_table(mixture, data), axis=0)), mixture


def _better(a: tuple[Array, Mixture], b: tuple[Array, Mixture]) -> tuple[Array, Mixture]:
    return jax.tree.map(lambda x, y: jnp.where(a[0] > b[0], x, y), a, b)


def _log_table(mixture: Mixture, data: PlackettLuceData) -> Array:
    """Return log share plus log likelihood of every row in every component, (K, rows)."""
    weights, log_shares = mixture
    table = log_choice_likelihoods(data.choices, weights, None, jnp.array(len(weights)))
    return table + log_shares[:, None]


def _expectation_maximization(weights: Array, log_shares: Array, data: PlackettLuceData) -> Mixture:
    """Make one step of EM, whose M-step is one of Hunter's MM steps."""
    # Every item and component counts once more than it occurs, so that no weight is 0.
    num_items = weights.shape[1]
    chances = jax.nn.softmax(_log_table((weights, log_shares), data), axis=0) * data.counts

    def one(component: tuple[Array, Array]) -> Array:
        chances, weights = component
        membership = Membership(None, jnp.zeros(len(chances), jnp.int32), chances)
        in_play, _ = sum_times_in_play(None, data, membership, weights[None], None)
        chosen = times_chosen(data.choices, *membership, 1, num_items)
        of_items, times = PLACKETT_LUCE.times_with_prior(chosen[0], in_play[0], 1.0)
        return normalise(jnp.log(of_items) - jnp.log(times))

    in_use = log_shares > -jnp.inf
    weights = jnp.where(in_use[:, None], jax.lax.map(one, (chances, weights)), weights)
    sizes = jnp.where(in_use, chances.sum(1) + 1.0, 0.0)
    return weights, jnp.log(sizes / sizes.sum())


def _around_rankings(key: Array, data: PlackettLuceData, slots: int, num_items: int) -> Array:
    """Return log weights of K components around random rankings, (K, n)."""
    orderings = data.choices.orderings
    rows = rows_of(random.randint(key, (slots,), 0, data.num_rankings), data.row_index)
    seeds, stages = orderings[rows], orderings.shape[1]
    boost = min(_SEED_BOOST, _MOST_BOOST / stages) * (stages - jnp.arange(stages))
    columns = jnp.where(seeds >= 0, seeds, num_items)
    log_weights = jnp.zeros((slots, num_items))
    return log_weights.at[jnp.arange(slots)[:, None], columns].set(boost, mode="drop")
