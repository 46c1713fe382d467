"""Beta-Gibbs for mixtures of generalized Mallows models (Meilă & Chen 2010)."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.mallows.concentrations import Conjugate, InfiniteConjugate
from numpyro_rankings.infer.mallows.data import MallowsData
from numpyro_rankings.infer.mallows.kernel import Hyper, _MallowsGibbs
from numpyro_rankings.infer.mallows.labels import (
    CollapsedPrior,
    beta_correction,
    beta_predictive,
    new_clusters,
)
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.special import log_beta_ratio


class BetaGibbs(_MallowsGibbs):
    r"""
    Beta-Gibbs: like :class:`SliceGibbs`, with θ integrated out while the labels are drawn.

    The predictive probability of code s at stage j of a cluster is B̃eta(νr_j + S_j + s,
    ν + N_j + 2, n - j) / B̃eta(νr_j + S_j, ν + N_j + 1, n - j) (Lemma 6). With ``exact=True`` the
    Beta weights of Figure 5 only propose a label, and a Metropolis-Hastings step that evaluates
    B̃eta for the two clusters concerned makes the draw exact.

    With ``exact=False`` it is the algorithm as Figures 4 and 5 print it: Beta for B̃eta in the
    labels, in the concentrations (eq. 12) and in the center of a new cluster, and the stagewise
    draw of a center taken as it is. Its bias is large where θ·(n-j) is small: for a cluster of 100
    rankings at a stage with codes 0..9 and θ = 0.1, the log weight of code 0 is off by +0.34 and
    that of code 9 by -0.92.

    Samples, arguments and the use as a block are those of :class:`SliceGibbs`; the prior of θ is
    the conjugate one.

    :param exact: whether to correct the paper's approximations.

    **References:**

    1. Meilă, M., Chen, H. (2010), "Dirichlet process mixtures of generalized Mallows models", UAI.
    """

    def __init__(
        self,
        alpha: float | dist.Distribution = 1.0,
        nu: Any = 1.0,
        r: Any = 1.0,
        num_components: int | None = None,
        max_clusters: int = 64,
        exact: bool = True,
        *,
        init: str | None = None,
        num_center_updates: int = 1,
        num_reinsertions: int | None = None,
        num_marginal_steps: int | None = None,
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
    ) -> None:
        self._exact = bool(exact)
        super().__init__(
            alpha=alpha,
            nu=nu,
            r=r,
            concentration_prior=None,
            tied=False,
            num_components=num_components,
            max_clusters=max_clusters,
            init=init,
            num_center_updates=num_center_updates,
            num_reinsertions=num_reinsertions,
            num_marginal_steps=num_marginal_steps,
            model=model,
            sites=sites,
        )

    def _conjugate(self, nu: Any, r: Any, stages: int) -> Conjugate:
        prior = super()._conjugate(nu, r, stages)
        return prior if self._exact else InfiniteConjugate(*prior)

    def _update_assignments(
        self,
        key: Array,
        now: dict[str, Array],
        sizes: Array,
        hyper: Hyper,
        data: MallowsData,
        limits: Array,
    ) -> tuple[dict[str, Array], Array, Array]:
        key_prior, key_new, key_codes, key_scan, key_theta = random.split(key, 5)
        num_rankings, n = data.num_rankings, now["center"].shape[1]
        conjugate = hyper.concentration
        assert isinstance(conjugate, Conjugate)
        prior = CollapsedPrior(conjugate.nu * conjugate.r, conjugate.nu, limits)
        theta = conjugate.draw(key_prior, num_rankings, limits)
        new = new_clusters(key_new, theta, n)
        if not self._exact:
            new = new._replace(codes=_sample_sigma_n1(key_codes, prior, num_rankings, n))
        seats = self._reseat(
            key_scan,
            jnp.arange(num_rankings, dtype=jnp.int32),
            now,
            sizes,
            hyper,
            data,
            limits,
            new,
            beta_predictive(prior),
            beta_correction(prior) if self._exact else None,
        )
        # θ was integrated out: draw it anew before the centers are drawn given it
        theta = conjugate.update(key_theta, seats.concentration, seats.sums, seats.counts, limits)
        now = {
            "assignments": seats.assignments,
            "center": inverse_ordering(seats.places),
            "concentration": theta,
        }
        accept = seats.accept_prob / num_rankings if self._exact else jnp.ones(())
        return now, seats.overflow, accept


def _sample_sigma_n1(key: Array, prior: CollapsedPrior, num_draws: int, num_items: int) -> Array:
    """Codes of Sample-σ-N1 (Figure 4): P(V_j = k) ∝ Beta(ν r_j + k, ν + 2), k = 0..n-j."""
    codes = jnp.arange(num_items)
    log_weights = log_beta_ratio(prior.nu_r[:, None], prior.nu[:, None] + 1.0, codes)
    log_weights = jnp.where(codes <= prior.limits[:, None], log_weights, -jnp.inf)
    reached = jnp.cumsum(jax.nn.softmax(log_weights, axis=1), axis=1)
    uniforms = random.uniform(key, (num_draws, len(prior.limits)))
    draw = jax.vmap(jnp.searchsorted, in_axes=(0, 1), out_axes=1)(reached, uniforms)
    return jnp.minimum(draw, prior.limits).astype(jnp.int32)
