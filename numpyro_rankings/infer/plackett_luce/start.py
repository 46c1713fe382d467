"""Where the chains of a Plackett–Luce mixture start: the best of some optima of EM."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.infer.mixture.labels import draw_labels
from numpyro_rankings.infer.mixture.membership import Membership, rows_of
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData
from numpyro_rankings.infer.plackett_luce.waiting_times import normalise, sum_times_in_play
from numpyro_rankings.ops.choices import log_choice_likelihoods, times_chosen

_START_ITERATIONS = 200  # of EM, before the first sweep
_MOST_STARTS, _MOST_CELLS = 20, 4_000_000_000  # limits: starts; cells evaluated by all starts
_SEED_BOOST = 1.0  # log weight for each place of a seed ranking


def start_mixture(
    key: Array, data: PlackettLuceData, slots: int, num_items: int
) -> tuple[Array, Array]:
    """Return labels and weights at the best of several optima that EM finds."""
    num_rows, num_stages = data.choices.orderings.shape
    cells = slots * num_rows * num_stages * _START_ITERATIONS
    starts = 1 if slots == 1 else min(max(_MOST_CELLS // cells, 1), _MOST_STARTS)

    def climb(key: Array) -> tuple[Array, Array]:
        seeds = normalise(_around_rankings(key, data, slots, num_items))
        mixture = seeds, jnp.full(slots, -np.log(slots))

        def step(mixture: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            return _expectation_maximization(*mixture, data), None

        return jax.lax.scan(step, mixture, None, length=_START_ITERATIONS)[0]

    def log_table(weights: Array, log_shares: Array) -> Array:
        table = log_choice_likelihoods(data.choices, weights, None, jnp.array(slots))
        return table + log_shares[:, None]

    def keep_better(best: tuple, key: Array) -> tuple[tuple, None]:
        mixture = climb(key)
        score = jnp.sum(data.counts * jax.nn.logsumexp(log_table(*mixture), axis=0))
        better = score > best[0]
        return jax.tree.map(lambda a, b: jnp.where(better, a, b), (score, *mixture), best), None

    key_labels, key = random.split(key)
    nothing = jnp.array(-jnp.inf), jnp.full((slots, num_items), 1.0 / num_items), jnp.zeros(slots)
    (_, *mixture), _ = jax.lax.scan(keep_better, nothing, random.split(key, starts))
    return draw_labels(key_labels, log_table(*mixture), data.row_index), mixture[0]


def _expectation_maximization(
    weights: Array, log_shares: Array, data: PlackettLuceData
) -> tuple[Array, Array]:
    """Make one step of EM, whose M-step is one of Hunter's MM steps.

    Every item and component counts once more than it occurs, so that no weight is 0.
    """
    num_components, num_items = weights.shape
    table = log_choice_likelihoods(data.choices, weights, None, jnp.array(num_components))
    chances = jax.nn.softmax(table + log_shares[:, None], axis=0) * data.counts

    def one(component: tuple[Array, Array]) -> Array:
        chances, weights = component
        membership = Membership(None, jnp.zeros(len(chances), jnp.int32), chances)
        in_play, _ = sum_times_in_play(None, data, membership, weights[None], None)
        chosen = times_chosen(data.choices, *membership, 1, num_items)
        return normalise(jnp.log(1.0 + chosen[0]) - jnp.log(in_play[0] + num_items))

    weights = jax.lax.map(one, (chances, weights))
    sizes = chances.sum(1) + 1.0
    return weights, jnp.log(sizes / sizes.sum())


def _around_rankings(key: Array, data: PlackettLuceData, slots: int, num_items: int) -> Array:
    """Return log weights of K components around random rankings, (K, n)."""
    orderings = data.choices.orderings
    rows = rows_of(random.randint(key, (slots,), 0, data.num_rankings), data.row_index)
    seeds, stages = orderings[rows], orderings.shape[1]
    boost = _SEED_BOOST * (stages - jnp.arange(stages))
    columns = jnp.where(seeds >= 0, seeds, num_items)
    log_weights = jnp.zeros((slots, num_items))
    return log_weights.at[jnp.arange(slots)[:, None], columns].set(boost, mode="drop")
