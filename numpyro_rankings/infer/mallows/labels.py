"""Labels given the parameters of the Mallows clusters (step 1 of Figures 1 and 5).

They are drawn one ranking at a time, or all at once. A ranking that is alone in a new cluster has
marginal probability (n-t)!/n! (Lemma 1) under any prior of θ, because a uniform center makes all
lists equally likely whatever θ is. Hence θ | π is its prior, and given θ the codes are truncated
geometric: a new cluster's parameters are drawn exactly without any special function.

**References**

1. *Dirichlet process mixtures of generalized Mallows models*, M. Meilă, H. Chen (UAI, 2010).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mallows.concentrations import ConcentrationPrior
from numpyro_rankings.infer.mallows.data import MallowsData, cluster_sums, log_likelihoods
from numpyro_rankings.infer.mallows.state import MallowsInputs, MallowsMixture
from numpyro_rankings.infer.mixture.labels import update_labels_at_once
from numpyro_rankings.infer.mixture.membership import rows_of
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.codes import center_from_codes, codes_from_places, inverse_ordering
from numpyro_rankings.ops.loops import computed_if
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.ops.sampling import sample_truncated_geometric
from numpyro_rankings.ops.special import log_beta_ratio, log_beta_tilde_ratio, log_psi
from numpyro_rankings.ops.sums import count_by_label


def update_labels_in_parallel(
    key: Array, mixture: MallowsMixture, inputs: MallowsInputs
) -> tuple[MallowsMixture, Array]:
    """Draw all labels at once given shares; return whether more slots would have been needed."""
    # Empty slots must hold independent draws from the prior.
    places = inverse_ordering(mixture.center)
    sizes = count_by_label(mixture.labels, len(places))

    def log_table(order: Array, num_active: Array) -> Array:
        return log_likelihoods(inputs.data, places[order], mixture.concentration[order], num_active)

    labels, overflow = update_labels_at_once(
        key,
        mixture.labels,
        sizes,
        mixture.partition,
        inputs.data.row_index,
        log_table,
        inputs.log_judges,
    )
    return mixture._replace(labels=labels), overflow


class Seats(NamedTuple):
    """The values that change while rankings are seated again one by one.

    Slice-Gibbs reads ``log_psis``, Beta-Gibbs ``sums`` and ``counts``, which are None otherwise.
    """

    labels: Array  # labels of the visited rankings, each at its first visit, (visits,) int32
    sizes: Array  # (C,) int32
    places: Array  # place of each item in each center, (C, n) int32
    concentration: Array  # (C, T), as are the three below
    log_psis: Array
    sums: Any  # S_cj, int32
    counts: Any  # N_cj, int32
    overflow: Array  # whether a ranking needed a slot and all were taken
    accept_prob: Array  # sum of the acceptance probabilities of the Metropolis steps


def seats_of(
    mixture: MallowsMixture, visits: "Visits", data: MallowsData, with_sums: bool = False
) -> Seats:
    """Return the seats before the visits, with the sums of the clusters where they are read."""
    sums = cluster_sums(data, mixture.labels, mixture.center) if with_sums else None
    return Seats(
        labels=at_rows(mixture.labels, visits.rankings),
        sizes=count_by_label(mixture.labels, len(mixture.center)) if sums is None else sums.sizes,
        places=inverse_ordering(mixture.center),
        concentration=mixture.concentration,
        log_psis=log_psi(mixture.concentration, data.limits),
        sums=None if sums is None else sums.codes,
        counts=None if sums is None else sums.counts,
        overflow=jnp.array(False),
        accept_prob=jnp.zeros(()),
    )


def after_seating(mixture: MallowsMixture, visits: "Visits", seats: Seats) -> MallowsMixture:
    """Return the mixture after the visits."""
    labels, center = seats.labels, inverse_ordering(seats.places)
    if visits.rankings is not None:
        labels = mixture.labels.at[visits.rankings].set(labels[visits.first])
    return mixture._replace(labels=labels, center=center, concentration=seats.concentration)


class Visits(NamedTuple):
    """Rankings to seat again, with the parameters of the clusters that they may open."""

    rankings: Array | None  # which, (visits,), or None for all in order
    first: Array  # the first visit to the same ranking, (visits,)
    orderings: Array  # (visits, T)
    log_new: Array  # log marginal probability of the ranking in a new cluster, (visits,)
    concentration: Array  # (visits, T)
    codes: Array  # stage codes of the ranking under the new center, (visits, T)
    keys: Array  # keys for the order of the unlisted items, (visits,)


def draw_visits(
    keys: tuple[Array, Array], rankings: Array | None, prior: ConcentrationPrior, data: MallowsData
) -> Visits:
    """Draw (σ, θ) | π for each ranking: θ from its prior, the codes given θ."""
    if rankings is None:
        number, rows = data.num_labels, data.row_index
        first = jnp.arange(number, dtype=jnp.int32)
    else:
        number, rows = len(rankings), rows_of(rankings, data.row_index)
        first = jnp.argmax(rankings[:, None] == rankings, axis=1).astype(jnp.int32)
    key_theta, (key_codes, key_fill) = keys[0], random.split(keys[1])
    theta = prior.draw(key_theta, number, data.limits)
    return Visits(
        rankings=rankings,
        first=first,
        orderings=at_rows(data.orderings, rows),
        log_new=at_rows(data.log_marginal, rows),
        concentration=theta,
        codes=sample_truncated_geometric(key_codes, theta, data.limits),
        keys=random.split(key_fill, number),
    )


class LabelWeights(NamedTuple):
    """Weights with which a ranking joins the clusters.

    ``predictive`` maps seats, and the codes (C, T) and listed stages (T,) of a ranking, to its log
    predictive probabilities in all clusters, (C,). With a ``prior`` they only propose a label, and
    a Metropolis-Hastings step corrects them by the exact ones under this prior.
    """

    predictive: Callable[[Seats, Array, Array], Array]
    prior: "CollapsedPrior | None" = None


def _slice_predictive(seats: Seats, codes: Array, listed: Array) -> Array:
    """Return log GM(π | σ_c, θ_c) for all clusters, (C,)."""
    stages = -seats.concentration * codes - seats.log_psis
    return jnp.sum(jnp.where(listed, stages, 0.0), axis=1)


SLICE_WEIGHTS = LabelWeights(_slice_predictive)  # Figure 1, step 1


class CollapsedPrior(NamedTuple):
    """ν r_j and ν of the conjugate prior, (T,) each, and the largest codes n - j."""

    nu_r: Array
    nu: Array
    limits: Array


def beta_weights(prior: CollapsedPrior, exact: bool) -> LabelWeights:
    """Return the weights of Figure 5, as if n were infinite; Lemma 6 makes them exact."""

    def predictive(seats: Seats, codes: Array, listed: Array) -> Array:
        stages = log_beta_ratio(prior.nu_r + seats.sums, prior.nu + seats.counts + 1.0, codes)
        return jnp.sum(jnp.where(listed, stages, 0.0), axis=1)

    return LabelWeights(predictive, prior if exact else None)


def _exact_over_proposed(
    prior: CollapsedPrior, sums: Array, counts: Array, codes: Array, listed: Array
) -> Array:
    """Return the log of the weights of Lemma 6 over those of Figure 5, in k clusters, (k,)."""
    a, b = prior.nu_r + sums, prior.nu + counts + 1.0
    exact = log_beta_tilde_ratio(a, b, prior.limits, codes)
    return jnp.sum(jnp.where(listed, exact - log_beta_ratio(a, b, codes), 0.0), axis=1)


def seat_one_by_one(
    key: Array,
    seats: Seats,
    visits: Visits,
    weights: LabelWeights,
    prior: PartitionPrior,
    data: MallowsData,
) -> Seats:
    """Seat the visited rankings again, one after another (step 1 of Figures 1 and 5)."""
    uniforms = random.uniform(key, (len(visits.first), 2))
    # padding comes last and is not seated
    number = data.num_rankings if visits.rankings is None else len(visits.rankings)

    def visit(i: Array, seats: Seats) -> Seats:
        new = jax.tree.map(lambda x: x[i], visits)
        ranking = _find(seats, new)
        seats = _take_out(seats, ranking)
        choice = _draw_seat(seats, ranking, weights, prior, new.log_new, uniforms[i, 0])
        if weights.prior is not None:
            choice, accept_prob = _correct(seats, ranking, choice, weights.prior, uniforms[i, 1])
            seats = seats._replace(accept_prob=seats.accept_prob + accept_prob)
        return _put_in(seats, ranking, choice, new, data.limits)

    return jax.lax.fori_loop(0, number, visit, seats)


class _Ranking(NamedTuple):
    """A ranking that is seated again."""

    visit: Array  # the first one to it, ()
    ordering: Array  # (T,)
    listed: Array  # whether a stage holds an item, (T,)
    codes: Array  # its stage codes in all clusters, (C, T)
    old: Array  # the cluster that it leaves, ()


class _Choice(NamedTuple):
    """The slot of a ranking."""

    target: Array
    opens: Array  # whether the ranking opens a cluster there
    full: Array  # whether the ranking needs a new slot and there is none


def _find(seats: Seats, visit: Visits) -> _Ranking:
    ordering, listed = visit.orderings, visit.orderings >= 0
    codes = codes_from_places(seats.places[:, jnp.maximum(ordering, 0)], listed)
    return _Ranking(visit.first, ordering, listed, codes, seats.labels[visit.first])


def _take_out(seats: Seats, ranking: _Ranking) -> Seats:
    """Take a ranking out of its cluster; its label stays until it is put in again."""
    old = ranking.old
    seats = seats._replace(sizes=seats.sizes.at[old].add(-1))
    return _add_to_sums(seats, old, -ranking.codes[old], -ranking.listed.astype(jnp.int32))


def _add_to_sums(seats: Seats, slot: Array, codes: Array, listed: Array) -> Seats:
    """Add the codes and the listed stages of a ranking, (T,), if there are sums."""
    if seats.sums is None:
        return seats
    sums, counts = seats.sums.at[slot].add(codes), seats.counts.at[slot].add(listed)
    return seats._replace(sums=sums, counts=counts)


def _draw_seat(
    seats: Seats,
    ranking: _Ranking,
    weights: LabelWeights,
    prior: PartitionPrior,
    log_new: Array,
    uniform: Array,
) -> _Choice:
    """Draw a cluster for a ranking that has none."""
    num_slots, sizes = len(seats.places), seats.sizes
    before = jnp.tri(num_slots + 1, k=-1, dtype=bool)
    log_join = prior.log_join(sizes) + weights.predictive(seats, ranking.codes, ranking.listed)
    logits = jnp.where(sizes > 0, log_join, -jnp.inf)
    log_open = prior.log_open(jnp.sum(sizes > 0)) + log_new
    all_weights = jnp.append(logits, log_open)
    all_weights = jnp.exp(all_weights - all_weights.max())
    passed = jnp.sum(jnp.where(before, all_weights, 0.0), axis=1)
    reached = (all_weights > 0) & (passed <= uniform * all_weights.sum())
    seat = jnp.max(jnp.where(reached, jnp.arange(num_slots + 1), 0))  # C stands for a new cluster
    opens = seat == num_slots
    empty = jnp.argmin(sizes > 0)  # the first slot without members
    full = opens & jnp.all(sizes > 0)
    # a ranking that finds no slot stays where it was, and the sweep reports it
    opens = opens & ~full
    target = jnp.where(full, ranking.old, jnp.where(opens, empty, seat))
    return _Choice(target, opens, full)


def _correct(
    seats: Seats, ranking: _Ranking, choice: _Choice, prior: CollapsedPrior, uniform: Array
) -> tuple[_Choice, Array]:
    """Accept the proposed cluster, or keep the old one; also return the acceptance probability."""
    (target, opens, full), old = choice, ranking.old
    was_alone = seats.sizes[old] == 0
    moves = ~full & (target != old) & ~(opens & was_alone)

    pair = jnp.stack([jnp.where(opens, old, target), old])

    args = prior, seats.sums[pair], seats.counts[pair], ranking.codes[pair], ranking.listed
    both = computed_if(moves, _exact_over_proposed, args, jnp.zeros(2))
    # the weight of a new cluster is exact and needs no correction
    log_ratio = jnp.where(opens, 0.0, both[0]) - jnp.where(was_alone, 0.0, both[1])
    accept_prob = jnp.exp(jnp.minimum(log_ratio, 0.0))
    accepted = uniform < accept_prob
    return _Choice(jnp.where(accepted, target, old), opens & accepted, full), accept_prob


def _put_in(seats: Seats, ranking: _Ranking, choice: _Choice, new: Visits, limits: Array) -> Seats:
    """Put a ranking into its cluster, with the parameters of **new** if that is a new one."""
    num_slots, num_items = seats.places.shape
    target, opens, full = choice

    def open_cluster(key: Array, codes: Array, ordering: Array) -> Array:
        unlisted = jnp.argsort(random.bits(key, (num_items,), jnp.uint32))
        return center_from_codes(codes, ordering, unlisted)

    args = new.keys, new.codes, ranking.ordering
    center = computed_if(opens, open_cluster, args, seats.places[0])
    slot = jnp.where(opens, target, num_slots)  # out of range, hence dropped, if none opens
    codes_there = jnp.where(opens, new.codes * ranking.listed, ranking.codes[target])
    log_psis = log_psi(new.concentration, limits)
    seats = _add_to_sums(seats, target, codes_there, ranking.listed.astype(jnp.int32))
    return seats._replace(
        labels=seats.labels.at[ranking.visit].set(target.astype(jnp.int32)),
        sizes=seats.sizes.at[target].add(1),
        places=seats.places.at[slot].set(center, mode="drop"),
        concentration=seats.concentration.at[slot].set(new.concentration, mode="drop"),
        log_psis=seats.log_psis.at[slot].set(log_psis, mode="drop"),
        overflow=seats.overflow | full,
    )
