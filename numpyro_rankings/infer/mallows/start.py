r"""Where the chains of the Mallows kernels start.

A finite mixture starts near a good mode of the likelihood.

Expectation-maximization from random seeds ends in optima that lie thousands of nats apart on real
ballots, and no chain gets from one to the other. So the best parameters found so far are changed in
ways that EM would not: a component moves to a random ranking [1], a window of places of its center
is shuffled, or a few iterations see only part of the rankings [2]. EM continues from there while it
may still exceed the best.

**References**

1. *Random swap EM algorithm for Gaussian mixture models*, Q. Zhao, V. Hautamäki, I. Kärkkäinen,
   P. Fränti (Pattern Recognition Letters, 2012).
2. *Data perturbation for escaping local maxima in learning*, G. Elidan, M. Ninio, N. Friedman,
   D. Schuurmans (AAAI, 2002).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.families import MALLOWS
from numpyro_rankings.infer.mallows.centers import propose_rearrangement
from numpyro_rankings.infer.mallows.data import MallowsData, log_likelihoods
from numpyro_rankings.infer.mallows.settings import MallowsSettings
from numpyro_rankings.infer.mixture.labels import draw_labels
from numpyro_rankings.infer.mixture.membership import membership_of, rows_of
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.ops.sums import count_by_label, scatter_add, sum_by_label
from numpyro_rankings.rankings import Rankings, num_stages
from numpyro_rankings.rankings.rows import Rows

LEAST_SEARCH = 100  # by default a search of fewer iterations is skipped
_MOST_CELLS = 40_000_000_000  # that the search of one chain may touch, a minute or two of a core
_HORIZON = 20  # a change is dropped if its present gain, times this, does not reach the best
_SLOW_GAIN = 1e-4  # gain per ranking and iteration below which EM counts as converged
_PARTIAL_ITERATIONS = 4
_MOST_SEEDS = 20  # clusters at the start of a chain without a search
_AT_RANKING, _SHUFFLED, _PARTIAL = range(3)


class Start(NamedTuple):
    """Where a chain starts: **labels** (N,), **center** (C, n), **concentration** (C, T)."""

    labels: Array
    center: Array
    concentration: Array


class Components(NamedTuple):
    """**center** (K, n), **concentration** (K, T) and **log_share** (K,) of a finite mixture."""

    center: Array
    concentration: Array
    log_share: Array


class Search(NamedTuple):
    """State of a search."""

    best: Components
    best_log_likelihood: Array
    trial: Components  # current components of EM
    log_likelihood: Array  # of the trial one iteration ago
    kept: Array  # whether a partial iteration sees the row, (rows,) bool
    partial: Array  # number of partial iterations left
    age: Array  # iterations on all rankings since the change


def num_iterations(num_rows: int, num_stages: int, num_components: int, num_items: int) -> int:
    """Return 1,000 iterations per component, or fewer for large data."""
    cells = num_components * num_stages * (num_rows * num_stages + 1000 * num_items**2)
    return min(1000 * num_components, _MOST_CELLS // cells)


def search_mixture(
    key: Array, data: MallowsData, num_components: int, num_items: int, iterations: int
) -> Components:
    """Search for components of a finite mixture with a high likelihood."""
    num_rows, num_stages = data.orderings.shape
    counts = data.counts.astype(float)
    key_start, key_search = random.split(key)
    start = Components(
        centers_at_rankings(key_start, data, num_components, num_items),
        jnp.full((num_components, num_stages), 0.5, float),
        jnp.full(num_components, -np.log(num_components)),
    )

    def iterate(search: Search, key: Array) -> tuple[Search, None]:
        key_change, key_kept, key_lengths = random.split(key, 3)
        table = log_table(search.trial, data)
        log_density = jax.nn.logsumexp(table, axis=0)
        log_likelihood = jnp.sum(counts * log_density)
        better = log_likelihood > search.best_log_likelihood + 1.0
        best, best_log_likelihood = jax.tree.map(
            lambda a, b: jnp.where(better, a, b),
            (search.trial, log_likelihood),
            (search.best, search.best_log_likelihood),
        )
        # stop a change that cannot reach the best, or gains slowly
        gain = log_likelihood - search.log_likelihood
        out_of_reach = _HORIZON * gain < best_log_likelihood - log_likelihood + 1.0
        slow = better & (gain < _SLOW_GAIN * counts.sum())
        renew = (out_of_reach | slow) & (search.age > 0)

        kept = search.kept | (search.partial == 0)
        weights = jnp.exp(table - log_density) * counts * kept
        lengths = random.randint(key_lengths, (3,), 1, num_items // 2 + 1).at[0].set(1)
        improved = improve(search.trial, weights, data, lengths)
        changed, partial, share = change(key_change, best, data)
        trial = jax.tree.map(lambda a, b: jnp.where(renew, a, b), changed, improved)
        new_kept = random.uniform(key_kept, (num_rows,)) < share
        age = jnp.where(search.partial == 0, search.age + 1, 0)
        search = Search(
            best,
            best_log_likelihood,
            trial,
            log_likelihood,
            jnp.where(renew, new_kept, search.kept),
            jnp.where(renew, partial, jnp.maximum(search.partial - 1, 0)),
            jnp.where(renew, 0, age),
        )
        return search, None

    none, zero = jnp.array(-jnp.inf), jnp.array(0)
    search = Search(start, none, start, none, jnp.ones(num_rows, bool), zero, zero)
    search, _ = jax.lax.scan(iterate, search, random.split(key_search, iterations))
    return search.best


def change(
    key: Array, components: Components, data: MallowsData
) -> tuple[Components, Array, Array]:
    """Move a component to a random ranking, shuffle places of its center, or choose rankings."""
    # It returns also how many partial iterations follow, and their share of rows.
    num_components, num_items = components.center.shape
    key_kind, key_which, key_ranking, key_deal, key_share = random.split(key, 5)
    kind = random.randint(key_kind, (), 0, 3)
    c = random.randint(key_which, (), 0, num_components)
    at_ranking = centers_at_rankings(key_ranking, data, 1, num_items)[0]
    shuffled = propose_rearrangement(key_deal, components.center[c][None])[0]
    places = jnp.stack([at_ranking, shuffled, components.center[c]])
    moved = kind == _AT_RANKING
    log_share = jnp.where(moved, -np.log(num_components), components.log_share[c])
    changed = Components(
        components.center.at[c].set(places[kind]),
        components.concentration.at[c].set(jnp.where(moved, 0.5, components.concentration[c])),
        jax.nn.log_softmax(components.log_share.at[c].set(log_share)),
    )
    share = jnp.exp(random.uniform(key_share, minval=np.log(0.01)))
    return changed, jnp.where(kind == _PARTIAL, _PARTIAL_ITERATIONS, 0), share


def centers_at_rankings(key: Array, data: MallowsData, num_centers: int, num_items: int) -> Array:
    """Draw rankings, each completed by the other items in random order, (num_centers, n)."""
    key_rows, key_rest = random.split(key)
    visits = random.randint(key_rows, (num_centers,), 0, data.num_rankings)
    orderings = data.orderings[rows_of(visits, data.row_index)]
    items = jnp.where(orderings >= 0, orderings, num_items)
    sort_key = num_items + random.uniform(key_rest, (num_centers, num_items))
    stages = jnp.arange(orderings.shape[1], dtype=sort_key.dtype)
    sort_key = sort_key.at[jnp.arange(num_centers)[:, None], items].set(stages, mode="drop")
    return jnp.argsort(sort_key, axis=1).astype(jnp.int32)


def log_table(components: Components, data: MallowsData) -> Array:
    """Return log share plus log likelihood of every row in every component, (K, rows)."""
    num_components = len(components.center)
    places = inverse_ordering(components.center)
    rows = log_likelihoods(data, places, components.concentration, jnp.array(num_components))
    return components.log_share[:, None] + rows


def improve(
    components: Components, weights: Array, data: MallowsData, lengths: Array
) -> Components:
    """Make the M-step, given the weights of the rows in each component, (K, rows)."""
    center, theta = MALLOWS.fit_lists(components.center, data.orderings, weights, lengths)
    sizes = weights.sum(1) + 1.0
    return Components(center, theta, jnp.log(sizes) - jnp.log(sizes.sum()))


def draw_start_of_mixture(
    key: Array,
    settings: MallowsSettings,
    rankings: Rankings,
    data: MallowsData,
    num_used: Array | None = None,
) -> Start:
    """Draw where a chain starts; by default a finite mixture is searched for if affordable."""
    num_slots, n, stages = settings.num_slots, rankings.num_items, data.orderings.shape[1]
    iterations = search_iterations(settings, rankings)
    if iterations > 0:
        return start_searched(key, data, num_slots, n, settings.tied, iterations)
    if settings.init == "random":
        return start_random(key, data, num_slots, n, stages)
    return start_nearest(key, data, num_slots, n, stages, num_used=num_used)


def search_iterations(settings: MallowsSettings, rankings: Rows) -> int:
    """Return the number of iterations of the search for a start, 0 without a search."""
    num_components = settings.num_components or 1
    if settings.init not in (None, "search") or num_components == 1:
        return 0
    rows, stages = rankings.table.shape[0], num_stages(rankings)
    number = num_iterations(rows, stages, num_components, rankings.num_items)
    if settings.init == "search":
        return max(number, LEAST_SEARCH)
    return number if number >= LEAST_SEARCH else 0


def search_bytes(num_items: int, num_stages: int) -> int:
    """Return about how much memory the search of one chain needs."""
    # costs by stage, in the order of the center, and their cumulative sums
    return 6 * 4 * num_stages * num_items**2


def start_random(key: Array, data: MallowsData, slots: int, n: int, stages: int) -> Start:
    """Draw uniform labels of up to 20 clusters and uniform centers; every θ is 1."""
    key_labels, key_centers = random.split(key)
    labels = random.randint(key_labels, (data.num_labels,), 0, min(slots, _MOST_SEEDS))
    centers = jnp.argsort(random.uniform(key_centers, (slots, n)), axis=1).astype(jnp.int32)
    theta = jnp.ones((slots, stages))
    return Start(labels, centers, theta)


def start_searched(
    key: Array, data: MallowsData, slots: int, n: int, tied: bool, iterations: int
) -> Start:
    """Search for a good mode by EM with random changes, and draw labels given it."""
    key_search, key_labels = random.split(key)
    searched = search_mixture(key_search, data, slots, n, iterations)
    labels = draw_labels(key_labels, log_table(searched, data), data.row_index)
    theta = jnp.maximum(searched.concentration, 1e-3)  # 0 has no logarithm
    if tied:
        # the search does not tie the stages
        theta = jnp.tile(theta.mean(1, keepdims=True), (1, theta.shape[1]))
    return Start(labels, searched.center, theta)


def start_nearest(
    key: Array,
    data: MallowsData,
    slots: int,
    n: int,
    stages: int,
    rounds: int = 5,
    num_used: Array | None = None,
) -> Start:
    """Cluster around the nearest of up to 20 seeds, with Borda orders as centers."""
    key_seeds, key_ties = random.split(key)
    seeds = min(slots, _MOST_SEEDS, data.num_labels)
    used = jnp.array(seeds) if num_used is None else jnp.minimum(seeds, num_used)
    theta = jnp.ones((slots, stages))
    shuffled = jnp.where(data.is_padding, 2.0, random.uniform(key_seeds, (data.num_labels,)))
    rows = rows_of(jnp.argsort(shuffled)[:seeds], data.row_index)
    jitter = random.uniform(key_ties, (slots, n)) * 1e-3
    labels = jnp.where(data.is_padding, slots, 0)
    scores = _borda_scores(labels, data, slots, n)[:1] / data.num_rankings
    # each seed is its list, then the other items in the Borda order of all rankings
    own = jnp.tile(scores, (slots, 1)) + jitter
    if slots > 1:
        stage = jnp.where(data.listed[rows], jnp.arange(stages) - 10.0 * n, 0.0)
        items = jnp.where(data.listed[rows], data.orderings[rows], n)
        own = own.at[jnp.arange(seeds)[:, None], items].set(stage, mode="drop")
    centers = jnp.argsort(own, axis=1).astype(jnp.int32)

    def one_round(_: int, last: tuple[Array, Array]) -> tuple[Array, Array]:
        table = log_likelihoods(data, inverse_ordering(last[1]), theta, used)
        labels = at_rows(jnp.argmax(table, axis=0).astype(jnp.int32), data.row_index)
        labels = jnp.where(data.is_padding, slots, labels)
        sizes = count_by_label(labels, slots)
        scores = _borda_scores(labels, data, slots, n) / jnp.maximum(sizes, 1)[:, None]
        return labels, jnp.argsort(scores + jitter, axis=1).astype(jnp.int32)

    if slots > 1:
        start = labels.astype(jnp.int32), centers
        labels, centers = jax.lax.fori_loop(0, rounds, one_round, start)
    return Start(labels, centers, theta)


def _borda_scores(labels: Array, data: MallowsData, slots: int, n: int) -> Array:
    """Sum the places of each item, the mean of those left if unlisted, in each cluster, (C, n)."""
    rows, clusters, weights = membership_of(labels, data.row_index, data.counts, slots)
    listed = at_rows(data.listed, rows)
    weights = weights.astype(float)
    mean_left = (n - 1 + listed.sum(1)) / 2.0
    base = sum_by_label(weights * mean_left, clusters, slots)
    items = jnp.where(listed, at_rows(data.orderings, rows), n)
    gain = (jnp.arange(listed.shape[1]) - mean_left[:, None]) * weights[:, None]
    scores = scatter_add(jnp.zeros((slots, n)), (clusters[:, None], items), gain)
    return scores + base[:, None]
