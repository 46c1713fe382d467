"""Draw the labels of a mixture given its clusters, and put them in canonical order."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.ops.sampling import sample_log_gamma


def update_labels_at_once(
    key: Array,
    labels: Array,
    sizes: Array,
    prior: PartitionPrior,
    row_index: Array | None,
    log_table: Callable[[Array, Array], Array],
    log_judges: Array | None = None,
) -> tuple[Array, Array]:
    """Draw the shares of the clusters given the labels, then all labels given the shares.

    For a Dirichlet process this is slice sampling [1, 2]: empty slots must hold independent draws
    from the prior.

    :param log_table: maps an order of the slots, (C,), and the number of leading slots that are
        needed, to the log likelihoods of the rows in that order, (C, rows).
    :return: labels (N,), and whether more slots would have been needed.

    **References**

    1. *Sampling the Dirichlet mixture model with slices*, S. Walker (2007).
    2. *Slice sampling mixture models*, M. Kalli, J. Griffin, S. Walker (2011).
    """

    def log_likelihoods(order: Array, num_active: Array) -> Array:
        table = log_table(order, num_active)
        return table if log_judges is None else at_rows(table, row_index, 1) + log_judges[order]

    # with judge_sites, equal rankings have different weights: each gets a row of its own
    rows = row_index if log_judges is None else None
    key_shares, key_labels = random.split(key)
    num_slots = sizes.shape[0]
    is_padding = labels >= num_slots
    if prior.num_components is not None:
        log_shares = draw_dirichlet_shares(key_shares, sizes, prior)
        table = log_likelihoods(jnp.arange(num_slots), jnp.array(num_slots))
        new_labels = draw_labels(key_labels, table + log_shares[:, None], rows)
        return jnp.where(is_padding, num_slots, new_labels), jnp.array(False)
    occupied_first = jnp.argsort(sizes == 0, stable=True).astype(jnp.int32)
    first_labels = jnp.where(is_padding, num_slots, inverse_ordering(occupied_first)[labels])
    log_shares, log_slices, overflow = draw_slices(
        key_shares, sizes[occupied_first], first_labels, prior.alpha
    )
    # with the largest shares first, the clusters open to a ranking are the leading ones
    order = jnp.argsort(-log_shares)
    sorted_shares = log_shares[order]
    num_allowed = _num_leading(lambda c: sorted_shares[c] >= log_slices, num_slots, labels.shape)
    order = occupied_first[order]
    table = log_likelihoods(order, num_allowed.max())
    new_labels = order[draw_labels(key_labels, table, rows, num_allowed)]
    return jnp.where(is_padding, num_slots, new_labels).astype(jnp.int32), overflow


def draw_labels(
    key: Array, log_weights: Array, row_index: Array | None, num_allowed: Array | None = None
) -> Array:
    """Draw a label for each ranking with probability ∝ exp(log weight) at its row, (N,) int32."""
    # Weights are (C, rows); the first ``num_allowed`` clusters are open to each ranking, (N,).
    num_clusters, num_rows = log_weights.shape

    def add(log_sum: Array, log_weight: Array) -> tuple[Array, Array]:
        log_sum = jnp.logaddexp(log_sum, log_weight)
        return log_sum, log_sum

    # unlike jnp.cumsum, these sums never decrease, and stay equal where a weight is 0
    _, log_sums = jax.lax.scan(add, jnp.full(num_rows, -jnp.inf), log_weights - log_weights.max(0))
    last = num_clusters - 1 if num_allowed is None else num_allowed - 1
    num_rankings = num_rows if row_index is None else len(row_index)

    if row_index is not None:  # from one axis is far faster than from two
        flat_sums, start_of_row = log_sums.T.ravel(), row_index * num_clusters

    def sums_at(clusters: Array | int) -> Array:
        if row_index is not None:
            return flat_sums.at[start_of_row + clusters].get(mode="promise_in_bounds")
        clusters = jnp.broadcast_to(clusters, (1, num_rankings))
        return jnp.take_along_axis(log_sums, clusters, axis=0, mode="clip")[0]

    # 1 - uniform is in (0, 1]
    target = sums_at(last) + jnp.log1p(-random.uniform(key, (num_rankings,)))
    # the first cluster whose sum reaches the target
    return _num_leading(lambda c: sums_at(c) < target, num_clusters, target.shape)


def _num_leading(holds: Callable[[Array], Array], num: int, shape: tuple[int, ...]) -> Array:
    """Return how many of the numbers from 0 to ``num - 1`` have a property, by bisection, int32."""
    steps = num.bit_length()

    def step(i: Array, number: Array) -> Array:
        further = number + (1 << (steps - 1 - i))
        return jnp.where((further <= num) & holds(jnp.minimum(further, num) - 1), further, number)

    return jax.lax.fori_loop(0, steps, step, jnp.zeros(shape, jnp.int32))


def draw_dirichlet_shares(key: Array, sizes: Array, prior: PartitionPrior) -> Array:
    """Draw the log shares of a finite mixture given the labels: Dirichlet(N_c + α/K), (K,)."""
    gammas = prior.among_used(sample_log_gamma(key, sizes + prior.kappa), -jnp.inf)
    return gammas - jax.nn.logsumexp(gammas)


def draw_slices(
    key: Array, sizes: Array, labels: Array, alpha: Array
) -> tuple[Array, Array, Array]:
    """Draw the shares of a Dirichlet process given the labels, and the slice variables.

    The occupied shares and the rest are jointly Dirichlet(N_1, …, N_K, α) (Caron, Teh & Murphy
    2014, Appendix D, step 6), and u_i ~ Uniform(0, w_{c_i}) (Walker 2007). The rest is broken into
    sticks until the remaining mass is below every u_i (Kalli, Griffin & Walker 2011).

    :param sizes: (C,), positive ones first; labels of padding are C and get infinite slices.
    :return: log shares (C,), log slices (N,), and whether more slots would have been needed.
    """
    num_slots = sizes.shape[0]
    key_gamma, key_stick, key_slice = random.split(key, 3)
    occupied = sizes > 0
    gammas = sample_log_gamma(key_gamma, jnp.append(jnp.where(occupied, sizes, 1.0), alpha))
    log_rest = gammas[-1]
    gammas = jnp.where(occupied, gammas[:-1], -jnp.inf)
    log_total = jnp.logaddexp(jax.nn.logsumexp(gammas), log_rest)
    log_shares, log_rest = gammas - log_total, log_rest - log_total
    # slice variables; 1 - uniform is in (0, 1]
    uniform = 1.0 - random.uniform(key_slice, labels.shape)
    log_slices = jnp.log(uniform) + log_shares.at[labels].get(mode="fill", fill_value=jnp.inf)
    # sticks v ~ Beta(1, α): -log(1 - v) ~ Exponential(α), kept in logs
    log_left = -random.exponential(key_stick, (num_slots,)) / alpha
    log_left = jnp.where(occupied, 0.0, log_left)
    log_after = log_rest + jnp.cumsum(log_left)
    log_before = log_after - log_left
    log_stick = log_before + jnp.log(-jnp.expm1(log_left))
    log_shares = jnp.where(occupied, log_shares, log_stick)
    return log_shares, log_slices, log_after[-1] > log_slices.min()


def canonical_order(assignments: Array, num_slots: int) -> tuple[Array, Array]:
    """Rename the slots in order of first use: new labels, (N,), and the old slot of each, (C,)."""
    index = jnp.arange(assignments.shape[0], dtype=jnp.int32)
    first = jnp.full(num_slots, assignments.shape[0], jnp.int32).at[assignments].min(index)
    order = jnp.argsort(first, stable=True)
    rename = jnp.zeros(num_slots, jnp.int32).at[order].set(jnp.arange(num_slots, dtype=jnp.int32))
    return rename.at[assignments].get(mode="fill", fill_value=num_slots), order
