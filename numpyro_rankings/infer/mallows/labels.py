"""Cluster labels given the parameters of the clusters, one ranking at a time or all at once.

The partition prior is that of a Dirichlet process or of a finite mixture with symmetric
Dirichlet(α/K) weights. In both, ranking i joins an occupied cluster with prior weight
``N_{-i,c} + κ`` and an unoccupied one with total weight ``new``: κ = 0, new = α for the process
(Figure 1 of Meilă & Chen 2010), κ = α/K, new = κ (K - occupied) for the finite mixture. A
ranking alone in a new cluster has the marginal probability (n-t)!/n! (Lemma 1), and that holds
for any prior on θ, since a uniform center makes every list equally likely whatever θ is. Hence
θ | π is the prior, and given θ the codes are truncated geometric: the exact draw of a new
cluster's parameters needs no special function.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mallows.data import MallowsData, log_likelihoods
from numpyro_rankings.infer.mixture.labels import draw_labels_in_slices
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.codes import center_from_codes, codes_from_places, max_codes
from numpyro_rankings.ops.sampling import sample_truncated_geometric
from numpyro_rankings.ops.special import log_beta_ratio, log_beta_tilde_ratio, log_psi


def update_assignments_parallel(
    key: Array,
    assignments: Array,
    sizes: Array,
    places: Array,
    concentration: Array,
    prior: PartitionPrior,
    data: MallowsData,
    log_outcomes: Array | None = None,
) -> tuple[Array, Array]:
    """All labels at once given explicit weights; no loop over rankings.

    Unoccupied slots must hold independent draws from the prior.

    :param log_outcomes: what else is known of each ranking's judge in each cluster, (C, N).
    :return: labels (N,) and the overflow flag.
    """
    num_items = places.shape[1]
    row_index = data.row_index
    if log_outcomes is not None:  # equal rankings are no longer alike
        row_index = jnp.arange(data.num_rankings, dtype=jnp.int32)

    def log_table(order: Array, num_active: Array) -> Array:
        table = log_likelihoods(data, places[order], concentration[order], num_active, num_items)
        return table if log_outcomes is None else table[:, data.row_index] + log_outcomes[order]

    return draw_labels_in_slices(key, assignments, sizes, prior, row_index, log_table)


class Seats(NamedTuple):
    """What changes while rankings are reseated one by one.

    - **assignments** - (N,) int32.
    - **sizes** - (C,) int32.
    - **places** - place of each item in each center, (C, n) int32.
    - **concentration** - (C, T), and its **log_psis**; read by Slice-Gibbs.
    - **sums**, **counts** - S_cj and N_cj, (C, T) int32; read by Beta-Gibbs.
    - **overflow** - whether a ranking wanted a slot and found none.
    - **accept_prob** - sum of the acceptance probabilities of the Metropolis steps.
    """

    assignments: Array
    sizes: Array
    places: Array
    concentration: Array
    log_psis: Array
    sums: Array
    counts: Array
    overflow: Array
    accept_prob: Array


class NewClusters(NamedTuple):
    """Parameters that each visited ranking would give to a cluster of its own.

    - **concentration** - (visits, T).
    - **codes** - stage codes of the ranking under the new center, (visits, T).
    - **keys** - keys for the order of the unlisted items, (visits,).
    """

    concentration: Array
    codes: Array
    keys: Array


def new_clusters(key: Array, concentration: Array, num_items: int) -> NewClusters:
    """Draw (σ, θ) | π for one ranking each: θ from its prior, the codes from the model."""
    num_visits, num_stages = concentration.shape
    key_codes, key_fill = random.split(key)
    limits = max_codes(num_items, num_stages)
    codes = sample_truncated_geometric(key_codes, concentration, limits)
    return NewClusters(concentration, codes, random.split(key_fill, num_visits))


def slice_predictive(seats: Seats, codes: Array, listed: Array) -> Array:
    """log GM(π | σ_c, θ_c) for all clusters, (C,)."""
    stages = -seats.concentration * codes - seats.log_psis
    return jnp.sum(jnp.where(listed, stages, 0.0), axis=1)


class CollapsedPrior(NamedTuple):
    """ν r_j and ν of the conjugate prior, (T,) each, and the largest codes n - j."""

    nu_r: Array
    nu: Array
    limits: Array


def beta_predictive(prior: CollapsedPrior) -> Callable[[Seats, Array, Array], Array]:
    """The probabilities of Figure 5: θ integrated out as if n were infinite."""

    def predictive(seats: Seats, codes: Array, listed: Array) -> Array:
        stages = log_beta_ratio(prior.nu_r + seats.sums, prior.nu + seats.counts + 1.0, codes)
        return jnp.sum(jnp.where(listed, stages, 0.0), axis=1)

    return predictive


def beta_correction(prior: CollapsedPrior) -> Callable[[Seats, Array, Array, Array], Array]:
    """log of B̃eta over Beta weights (Lemma 6 over Figure 5) for a few clusters, (k,)."""

    def correction(seats: Seats, clusters: Array, codes: Array, listed: Array) -> Array:
        a = prior.nu_r + seats.sums[clusters]
        b = prior.nu + seats.counts[clusters] + 1.0
        exact = log_beta_tilde_ratio(a, b, prior.limits, codes)
        return jnp.sum(jnp.where(listed, exact - log_beta_ratio(a, b, codes), 0.0), axis=1)

    return correction


def update_assignments_sequential(
    key: Array,
    visits: Array,
    seats: Seats,
    new: NewClusters,
    prior: PartitionPrior,
    data: MallowsData,
    predictive: Callable[[Seats, Array, Array], Array],
    correction: Callable[[Seats, Array, Array, Array], Array] | None = None,
) -> Seats:
    """Step 1 of Figures 1 and 5: reseat the visited rankings one after the other.

    :param visits: indices of rankings, (visits,).
    :param new: parameters for the clusters that the visits may open.
    :param predictive: log predictive probability of a ranking in each cluster.
    :param correction: if given, the draw is a proposal, and the log of the true over the proposed
        weight of a cluster decides by Metropolis-Hastings.
    """
    num_slots, num_items = seats.places.shape
    before = jnp.tri(num_slots + 1, k=-1, dtype=bool)

    def visit(seats: Seats, inputs: tuple) -> tuple[Seats, None]:
        i, fresh, uniform, uniform_accept = inputs
        row = data.row_index[i]
        ordering = data.orderings[row]
        listed = ordering >= 0
        codes = codes_from_places(seats.places[:, jnp.maximum(ordering, 0)], listed)

        old = seats.assignments[i]
        sizes = seats.sizes.at[old].add(-1)
        seats = seats._replace(
            sizes=sizes,
            sums=seats.sums.at[old].add(-codes[old]),
            counts=seats.counts.at[old].add(-listed.astype(jnp.int32)),
        )
        occupied = sizes > 0
        log_sizes = jnp.log(jnp.maximum(sizes, 1) + prior.kappa)
        logits = jnp.where(occupied, log_sizes + predictive(seats, codes, listed), -jnp.inf)
        log_new = prior.log_new(occupied.sum()) + data.log_marginal[row]
        weights = jnp.append(logits, log_new)
        weights = jnp.exp(weights - weights.max())
        passed = jnp.sum(jnp.where(before, weights, 0.0), axis=1)
        reached = (weights > 0) & (passed <= uniform * weights.sum())
        choice = jnp.max(jnp.where(reached, jnp.arange(num_slots + 1), 0))

        opens = choice == num_slots
        empty = jnp.argmin(occupied)  # the first slot without members
        full = opens & jnp.all(occupied)
        # a ranking that finds no slot stays where it was, and the sweep says so
        opens = opens & ~full
        target = jnp.where(full, old, jnp.where(opens, empty, choice))

        if correction is not None:
            was_alone = sizes[old] == 0
            moves = ~full & (target != old) & ~(opens & was_alone)

            def log_accept() -> Array:
                pair = jnp.stack([jnp.where(opens, old, target), old])
                both = correction(seats, pair, codes[pair], listed)
                # the weight of a new cluster is exact, nothing to correct
                return jnp.where(opens, 0.0, both[0]) - jnp.where(was_alone, 0.0, both[1])

            log_ratio = jax.lax.cond(moves, log_accept, lambda: jnp.zeros(()))
            accept_prob = jnp.exp(jnp.minimum(log_ratio, 0.0))
            accepted = uniform_accept < accept_prob
            target = jnp.where(accepted, target, old)
            opens = opens & accepted
            seats = seats._replace(accept_prob=seats.accept_prob + accept_prob)

        def open_cluster() -> Array:
            fill = random.permutation(fresh.keys, num_items)
            return center_from_codes(fresh.codes, ordering, fill)

        center = jax.lax.cond(opens, open_cluster, lambda: seats.places[0])
        slot = jnp.where(opens, target, num_slots)  # out of range, hence dropped, if none opens
        codes_there = jnp.where(opens, fresh.codes * listed, codes[target])
        log_psis = log_psi(fresh.concentration, max_codes(num_items, len(ordering)))
        seats = seats._replace(
            assignments=seats.assignments.at[i].set(target.astype(jnp.int32)),
            sizes=seats.sizes.at[target].add(1),
            places=seats.places.at[slot].set(center, mode="drop"),
            concentration=seats.concentration.at[slot].set(fresh.concentration, mode="drop"),
            log_psis=seats.log_psis.at[slot].set(log_psis, mode="drop"),
            sums=seats.sums.at[target].add(codes_there),
            counts=seats.counts.at[target].add(listed.astype(jnp.int32)),
            overflow=seats.overflow | full,
        )
        return seats, None

    key_choice, key_accept = random.split(key)
    uniforms = random.uniform(key_choice, visits.shape)
    uniforms_accept = random.uniform(key_accept, visits.shape)
    seats, _ = jax.lax.scan(visit, seats, (visits, new, uniforms, uniforms_accept))
    return seats
