"""Labels and shares of the clusters of a mixture, and the canonical order of labels."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.prior import PartitionPrior


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


def canonical_order(assignments: Array, num_slots: int) -> tuple[Array, Array]:
    """Rename slots in order of first use.

    :return: the new labels (N,), and for each new slot the old one, (C,).
    """
    index = jnp.arange(assignments.shape[0], dtype=jnp.int32)
    first = jnp.full(num_slots, assignments.shape[0], jnp.int32).at[assignments].min(index)
    order = jnp.argsort(first, stable=True)
    rename = jnp.zeros(num_slots, jnp.int32).at[order].set(jnp.arange(num_slots, dtype=jnp.int32))
    return rename[assignments], order
