"""Centers and concentrations of Mallows clusters given the labels (step 2 of Figures 1 and 5)."""

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mallows.centers import CenterSums, propose_rearrangement, update_centers
from numpyro_rankings.infer.mallows.concentrations import ConcentrationPrior
from numpyro_rankings.infer.mallows.data import (
    ClusterSums,
    MallowsData,
    Occupancy,
    code_sums,
    occupancy_of,
)
from numpyro_rankings.infer.mallows.settings import MallowsSettings
from numpyro_rankings.infer.mallows.state import MallowsInputs, MallowsMixture
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.loops import keys_of_loop
from numpyro_rankings.ops.sampling import draw_together, sample_concentration
from numpyro_rankings.ops.special import log_beta_tilde_change

# Moves of σ and θ together in an update of a single population, and the number of entries of its
# membership up to which there are so many; otherwise there is one.
_MOVES_OF_ONE_POPULATION, _MOST_ENTRIES = 8, 2**14
_MOST_REARRANGED = 16  # clusters


def update_parameters(
    key: Array, mixture: MallowsMixture, inputs: MallowsInputs, settings: MallowsSettings
) -> tuple[MallowsMixture, ClusterSums, Array]:
    """Draw centers and concentrations given labels; return the mean acceptance of centers too."""
    data, num_slots, num_items = inputs.data, *mixture.center.shape
    occupancy = occupancy_of(data, mixture.labels, num_slots)
    sums = code_sums(occupancy.membership, data, inverse_ordering(mixture.center))
    num_moves, exact = settings.num_reinsertions, settings.exact
    if num_moves is None:
        num_moves = min(2 * num_items, 100)
    occupied = occupancy.sizes > 0

    def update(
        carry: tuple[CenterSums, Array], key: Array
    ) -> tuple[tuple[CenterSums, Array], Array]:
        centers, theta = carry
        key_center, key_theta, key_both = random.split(key, 3)
        centers, accept = update_centers(
            key_center, centers, theta, occupancy, data, num_moves, exact
        )
        if exact and inputs.prior.is_conjugate:  # θ is integrated out, and drawn thereafter
            centers, _ = rearrange(key_both, centers, theta, occupancy, inputs.prior, data)
        theta = inputs.prior.update(key_theta, theta, centers.sums, occupancy.counts, data.limits)
        if exact and not inputs.prior.is_conjugate:
            centers, theta = rearrange(key_both, centers, theta, occupancy, inputs.prior, data)
        mean_accept = jnp.sum(accept * occupied) / jnp.maximum(occupied.sum(), 1)
        return (centers, theta), mean_accept

    keys = keys_of_loop(key, settings.num_center_updates)
    start = CenterSums(mixture.center, sums), mixture.concentration
    (centers, theta), accept = jax.lax.scan(update, start, keys)
    mixture = mixture._replace(center=centers.center, concentration=theta)
    return mixture, ClusterSums(occupancy.sizes, occupancy.counts, centers.sums), accept.mean()


def rearrange(
    key: Array,
    centers: CenterSums,
    theta: Array,
    occupancy: Occupancy,
    prior: ConcentrationPrior,
    data: MallowsData,
) -> tuple[CenterSums, Array]:
    """Move σ and θ together, between modes that updates of σ given θ do not leave."""
    # σ' rearranges a window of places, and θ' is drawn from its conditional given σ' under the
    # conjugate part of the prior. The Metropolis-Hastings ratio is then one of costly
    # B̃eta functions, so that of many clusters random ones take part. Under a conjugate prior the
    # ratio does not depend on θ, nor on θ'. Then θ' is not drawn: σ moves with θ integrated out,
    # and the caller must draw θ from its conditional.
    conjugate = prior.conjugate_part(data.limits)
    num_slots, num_items = centers.center.shape
    if conjugate is None or num_items < 2:
        return centers, theta
    nu_r, nu = conjugate
    # with one population, label updates cannot leave a mode: try several times
    membership = occupancy.membership
    is_small = len(membership.clusters) <= _MOST_ENTRIES
    num_moves = _MOVES_OF_ONE_POPULATION if num_slots == 1 and is_small else 1
    num_chosen = min(num_slots, _MOST_REARRANGED)

    def move(carry: tuple[CenterSums, Array], key: Array) -> tuple[tuple[CenterSums, Array], None]:
        (center, sums), theta = carry
        key_own, key_center, key_theta = random.split(key, 3)
        for_slots, uniforms = draw_together(random.uniform, key_own, (num_slots,), (num_chosen,))
        order = jnp.where(occupancy.sizes > 0, for_slots, 1.0)
        slots = jnp.argsort(order)[:num_chosen]
        _, old_sums, old_theta = old = center[slots], sums[slots], theta[slots]
        a, b = (nu_r + sums)[slots], (nu + occupancy.counts + 1.0)[slots]
        proposal = propose_rearrangement(key_center, center[slots])
        new_places = inverse_ordering(center.at[slots].set(proposal))
        new_sums = code_sums(membership, data, new_places)[slots]
        change = (new_sums - old_sums).astype(float)
        log_accept, new_theta = log_beta_tilde_change(a, b, data.limits, change), old_theta
        if not prior.is_conjugate:
            new_theta = sample_concentration(key_theta, a + change, b, data.limits)
            log_accept += prior.log_rest(new_theta, data.limits)
            log_accept -= prior.log_rest(old_theta, data.limits)
        accept_prob = jnp.exp(jnp.minimum(log_accept.sum(1), 0.0))
        accepted = (uniforms < accept_prob)[:, None]
        new = (
            x.at[slots].set(jnp.where(accepted, y, z))
            for x, y, z in zip(
                (center, sums, theta), (proposal, new_sums, new_theta), old, strict=True
            )
        )
        center, sums, theta = new
        return (CenterSums(center, sums), theta), None

    keys = keys_of_loop(key, num_moves)
    return jax.lax.scan(move, (centers, theta), keys)[0]
