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

from numpyro_rankings.infer.centers import MallowsData
from numpyro_rankings.ops.codes import center_from_codes, codes_from_places, max_codes
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sampling import sample_truncated_geometric
from numpyro_rankings.ops.special import log_beta_ratio, log_beta_tilde_ratio, log_psi

_UNROLLED_STAGES = 16  # up to here the pairs of stages are written out, which XLA fuses best


class PartitionPrior(NamedTuple):
    """Prior of the labels: α, and K for a finite mixture (None for the Dirichlet process)."""

    alpha: Array
    num_components: int | None

    @property
    def kappa(self) -> Array:
        """Prior weight of an occupied cluster beyond its size."""
        if self.num_components is None:
            return jnp.zeros_like(self.alpha)
        return self.alpha / self.num_components

    def log_new(self, occupied: Array) -> Array:
        """Log of the total prior weight of the clusters that hold nobody yet."""
        if self.num_components is None:
            return jnp.log(self.alpha)
        left = (self.num_components - occupied).astype(float)
        return jnp.where(left > 0, jnp.log(self.kappa) + jnp.log(jnp.maximum(left, 1)), -jnp.inf)


def codes_by_stage(listed_places: Array) -> Array:
    """Stage codes of rows whose items stand at the given places of a center, both (T, rows).

    Stages come first, which computes far faster than (rows, T). Padding, at the end of a row, is
    to be ignored.
    """
    num_stages = len(listed_places)
    if num_stages <= _UNROLLED_STAGES:
        return jnp.stack(_unrolled_codes(list(listed_places)))

    def one_stage(j: Array) -> Array:
        ahead = (listed_places < listed_places[j]) & (jnp.arange(num_stages) < j)[:, None]
        return listed_places[j] - ahead.sum(0)

    return jax.lax.map(one_stage, jnp.arange(num_stages))


def _unrolled_codes(listed_places: list[Array]) -> list[Array]:
    return [
        here - sum(before < here for before in listed_places[:j])
        for j, here in enumerate(listed_places)
    ]


def log_row_likelihoods(
    items: Array, listed: Array, places: Array, concentration: Array, log_psis: Array
) -> Array:
    """Log probability of every row in one cluster, (rows,), eq. (2).

    :param items: at each stage, stages first, (T, rows), any where **listed** says there is none.
    :param places: place of each item in the center, (n,).
    :param concentration: (T,), and **log_psis**, the logarithms of their normalisers.
    """
    if len(items) > _UNROLLED_STAGES:
        return log_row_of_codes(codes_by_stage(places[items]), listed, concentration, log_psis)
    codes = _unrolled_codes([places[stage] for stage in items])
    return log_row_of_codes(codes, listed, concentration, log_psis)


def log_row_of_codes(
    codes: Array | list[Array], listed: Array, concentration: Array, log_psis: Array
) -> Array:
    """The same, given the codes of the rows.

    Stage by stage where they are few: of a sum over an axis XLA on CPUs computes the terms one
    number at a time.
    """
    num_stages = len(codes)
    if num_stages > _UNROLLED_STAGES:
        stages = -concentration[:, None] * jnp.asarray(codes) - log_psis[:, None]
        return jnp.sum(jnp.where(listed, stages, 0.0), axis=0)
    total = jnp.zeros(listed.shape[1], concentration.dtype)
    for j in range(num_stages):
        total += jnp.where(listed[j], -concentration[j] * codes[j] - log_psis[j], 0.0)
    return total


def log_likelihoods(
    data: MallowsData, places: Array, concentration: Array, num_active: Array, num_items: int
) -> Array:
    """Log probability of every distinct row in every active cluster, eq. (2).

    :param places: place of each item in each center, (C, n).
    :param concentration: (C, T).
    :param num_active: clusters from this one on are passed over, and get -inf.
    :return: (C, rows).
    """
    num_stages = concentration.shape[1]
    items = jnp.maximum(data.orderings, 0).T
    listed = data.listed.T
    log_psis = log_psi(concentration, max_codes(num_items, num_stages))

    def one_cluster(c: Array, table: Array) -> Array:
        row = log_row_likelihoods(items, listed, places[c], concentration[c], log_psis[c])
        return table.at[c].set(jnp.where(c < num_active, row, -jnp.inf))

    table = jnp.full((places.shape[0], data.orderings.shape[0]), -jnp.inf)
    return jax.lax.fori_loop(0, shared_bound(num_active), one_cluster, table)


def draw_labels(
    key: Array, log_weights: Array, row_index: Array, num_allowed: Array | None = None
) -> Array:
    """One label per ranking, with probability ∝ exp(log weight) at its row; -inf excludes.

    :param log_weights: (C, rows).
    :param row_index: row of each ranking, (N,).
    :param num_allowed: how many of the clusters, from the first on, are open to each ranking, (N,).
    :return: (N,) int32.
    """
    num_clusters, num_rows = log_weights.shape

    def add(log_sum: Array, log_weight: Array) -> tuple[Array, Array]:
        log_sum = jnp.logaddexp(log_sum, log_weight)
        return log_sum, log_sum

    # never falling, unlike jnp.cumsum, and equal where a weight is 0
    _, log_sums = jax.lax.scan(add, jnp.full(num_rows, -jnp.inf), log_weights - log_weights.max(0))
    last = num_clusters - 1 if num_allowed is None else num_allowed - 1
    # 1 - uniform is in (0, 1]
    target = log_sums[last, row_index] + jnp.log1p(-random.uniform(key, row_index.shape))
    # the first cluster whose sum reaches the target, by bisection
    labels = jnp.zeros(row_index.shape, jnp.int32)
    for bit in reversed(range(num_clusters.bit_length())):
        further = labels + 2**bit
        short = log_sums[jnp.minimum(further, num_clusters) - 1, row_index] < target
        labels = jnp.where(short & (further <= num_clusters), further, labels)
    return labels


def draw_weights(
    key: Array, sizes: Array, assignments: Array, prior: PartitionPrior
) -> tuple[Array, Array, Array]:
    """Mixture weights given the labels, and the slice variables of the rankings.

    Slots are in order of first use, so the occupied ones come first. Dirichlet process: the
    occupied weights and the rest are jointly Dirichlet(N_1, …, N_K, α) (Caron, Teh & Murphy
    2014, Appendix D, step 6), u_i ~ Uniform(0, w_{c_i}) (Walker 2007), and the rest is broken
    into sticks until what is left is below every u_i (Kalli, Griffin & Walker 2011).

    :param sizes: (C,), positive ones first.
    :return: log weights (C,), log slices (N,), and whether more slots would have been needed.
    """
    num_slots = sizes.shape[0]
    key_gamma, key_rest, key_stick, key_slice = random.split(key, 4)
    num_rankings = assignments.shape[0]
    if prior.num_components is not None:
        gammas = random.loggamma(key_gamma, sizes + prior.kappa)
        log_weights = gammas - jax.nn.logsumexp(gammas)
        no_slice = jnp.full(num_rankings, -jnp.inf)
        return log_weights, no_slice, jnp.array(False)
    occupied = sizes > 0
    gammas = random.loggamma(key_gamma, jnp.where(occupied, sizes, 1).astype(float))
    gammas = jnp.where(occupied, gammas, -jnp.inf)
    log_rest = random.loggamma(key_rest, prior.alpha)
    log_total = jnp.logaddexp(jax.nn.logsumexp(gammas), log_rest)
    log_weights, log_rest = gammas - log_total, log_rest - log_total
    # slice variables; 1 - uniform is in (0, 1]
    uniform = 1.0 - random.uniform(key_slice, (num_rankings,))
    log_slices = jnp.log(uniform) + log_weights[assignments]
    lowest = log_slices.min()
    # sticks v ~ Beta(1, α): -log(1 - v) ~ Exponential(α), kept in logs
    log_left = -random.exponential(key_stick, (num_slots,)) / prior.alpha
    log_left = jnp.where(occupied, 0.0, log_left)
    log_after = log_rest + jnp.cumsum(log_left)
    log_before = log_after - log_left
    log_stick = log_before + jnp.log(-jnp.expm1(log_left))
    log_weights = jnp.where(occupied, log_weights, log_stick)
    return log_weights, log_slices, log_after[-1] > lowest


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


def draw_labels_in_slices(
    key: Array,
    assignments: Array,
    sizes: Array,
    prior: PartitionPrior,
    row_index: Array,
    log_table: Callable[[Array, Array], Array],
) -> tuple[Array, Array]:
    """All labels at once, given the log likelihood of the rows in the clusters.

    :param log_table: maps an order of the clusters, (C,), and how many of the first are active, to
        the log likelihoods of the rows in that order, (C, rows).
    :return: labels (N,) and the overflow flag.
    """
    key_weights, key_labels = random.split(key)
    log_weights, log_slices, overflow = draw_weights(key_weights, sizes, assignments, prior)
    num_slots = sizes.shape[0]
    if prior.num_components is not None:
        table = log_table(jnp.arange(num_slots), jnp.array(num_slots))
        return draw_labels(key_labels, table + log_weights[:, None], row_index), overflow
    # with the heaviest first, the clusters open to a ranking are the first ones
    order = jnp.argsort(-log_weights)
    log_weights = log_weights[order]
    num_allowed = jnp.searchsorted(-log_weights, -log_slices, side="right").astype(jnp.int32)
    table = log_table(order, num_allowed.max())
    labels = draw_labels(key_labels, table, row_index, num_allowed)
    return order[labels].astype(jnp.int32), overflow


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


def canonical_order(assignments: Array, num_slots: int) -> tuple[Array, Array]:
    """Rename slots in order of first use.

    :return: the new labels (N,), and for each new slot the old one, (C,).
    """
    index = jnp.arange(assignments.shape[0], dtype=jnp.int32)
    first = jnp.full(num_slots, assignments.shape[0], jnp.int32).at[assignments].min(index)
    order = jnp.argsort(first, stable=True)
    rename = jnp.zeros(num_slots, jnp.int32).at[order].set(jnp.arange(num_slots, dtype=jnp.int32))
    return rename[assignments], order
