"""Generalized Mallows components of a tempered mixture."""

import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.families import MALLOWS, RankingFamily
from numpyro_rankings.infer.mallows.data import as_mallows_data
from numpyro_rankings.infer.mallows.kernel import check_rankings_for
from numpyro_rankings.infer.mallows.label_free import (
    MallowsClusters,
    MallowsDraw,
    MallowsParameters,
)
from numpyro_rankings.infer.mallows.log_rows import log_rows_by_bits, remaining_items
from numpyro_rankings.infer.mallows.priors import concentration_prior_of
from numpyro_rankings.infer.mallows.settings import MallowsSettings, check_settings
from numpyro_rankings.infer.mixture.component_model import ComponentModel, Rows
from numpyro_rankings.infer.mixture.steps import log_uniform
from numpyro_rankings.models import sample_mallows_component
from numpyro_rankings.ops.codes import ordering_from_codes
from numpyro_rankings.ops.sampling import draw_together, sample_truncated_geometric
from numpyro_rankings.rankings import Rankings, num_stages

# stages that a new center moves about, times the rankings' worth of a component
_MOVED = 10.0, 200.0
_MOST_ITEMS = 128  # of which the pairs are compared for each component


class MallowsComponents(ComponentModel):
    """Generalized Mallows components of a :class:`TemperedMixture`, with uniform centers.

    :param nu: prior sample size of the conjugate prior of θ, a scalar or one per stage.
    :param r: prior mean code, a scalar or one per stage.
    :param concentration_prior: a univariate distribution for θ, scalar or one per stage, instead of
        the conjugate prior.
    :param tied: one θ for all stages of a component; needs ``concentration_prior``.
    """

    def __init__(
        self,
        nu: Any = 1.0,
        r: Any = 1.0,
        concentration_prior: dist.Distribution | None = None,
        *,
        tied: bool = False,
    ) -> None:
        self._priors = nu, r, concentration_prior, tied
        self._settings = MallowsSettings(
            nu=nu, r=r, concentration_prior=concentration_prior, tied=tied
        )
        check_settings(self._settings)

    @property
    def ranking_family(self) -> RankingFamily:
        """Generalized Mallows models."""
        return MALLOWS

    def check(self, rankings: Rankings) -> None:
        check_rankings_for(self._settings, rankings)

    def read(self, rankings: Rankings) -> Rows:
        data, n = as_mallows_data(rankings), rankings.num_items
        prior = concentration_prior_of(self._settings, n, len(data.limits))
        log_constant = prior.log_constant(1, n, data.limits)[0] - math.lgamma(n + 1.0)
        tables = remaining_items(data, n) if n <= _MOST_ITEMS else None
        return Rows(data, MallowsClusters(data, prior, log_constant), n, tables)

    def log_rows(self, parameters: MallowsParameters, rows: Rows) -> Array:
        if rows.tables is None:
            return super().log_rows(parameters, rows)
        clusters: Any = rows.clusters
        return log_rows_by_bits(rows.tables, parameters, clusters.data.limits)

    def num_parameters(self, rankings: Rankings) -> int:
        return 1 if self._settings.tied else num_stages(rankings)

    def draw_prior(self, key: Array, num_components: int, rows: Rows) -> MallowsParameters:
        key_center, key_theta = random.split(key)
        (uniforms,) = draw_together(random.uniform, key_center, (num_components, rows.num_items))
        center = jnp.argsort(uniforms, axis=1).astype(jnp.int32)
        clusters: Any = rows.clusters
        theta = clusters.prior.draw(key_theta, num_components, clusters.data.limits)
        return MallowsParameters(center, jnp.asarray(theta, float))

    def draw_steps(
        self, key: Array, num_steps: int, rows: Rows, worth: Array
    ) -> tuple[Array, MallowsDraw]:
        clusters: Any = rows.clusters
        num_stages, shape = len(clusters.data.limits), (num_steps, len(worth))
        key_normals, key_centers = random.split(key)
        width = 1 if clusters.prior.tied else num_stages
        (normals,) = draw_together(random.normal, key_normals, (*shape, width))
        # every second step changes the center, and every fourth θ as well
        moves_center = jnp.arange(num_steps) % 2 == 0
        moves_both = jnp.arange(num_steps) % 4 == 0
        half = -(-num_steps // 2)
        dispersal, moved = _draw_rearrangements(key_centers, half, rows.num_items, worth)
        identity = jnp.broadcast_to(jnp.arange(rows.num_items), moved.shape)
        order = jnp.stack([moved, identity], axis=1).reshape(-1, *moved.shape[1:])[:num_steps]
        family = MallowsDraw(
            moves_concentration=jnp.broadcast_to((~moves_center | moves_both)[:, None], shape),
            moves_center=jnp.broadcast_to(moves_center[:, None], shape),
            log_scale=jnp.zeros(shape),
            rearrangement=order,
            dispersal=jnp.repeat(dispersal, 2, axis=0)[:num_steps],
            log_constant=jnp.zeros(shape),  # these steps are symmetric
        )
        return jnp.broadcast_to(normals, (*shape, num_stages)), family

    def sites(self, parameters: MallowsParameters) -> dict[str, Array]:
        sites = parameters._asdict()
        if self._settings.tied:
            sites["shared_concentration"] = parameters.concentration[..., 0]
        return sites

    def parameters(self, key: Array, sites: Mapping[str, Array], rows: Rows) -> MallowsParameters:
        theta = jnp.asarray(sites["concentration"], float)
        if self._settings.tied:
            theta = jnp.broadcast_to(theta[..., :1], theta.shape)
        return MallowsParameters(sites["center"].astype(jnp.int32), theta)

    def log_prior(self, sites: Mapping[str, Array], rows: Rows) -> Array:
        return rows.clusters.log_prior(MallowsParameters(sites["center"], sites["concentration"]))

    def sample(self, rankings: Rankings) -> dist.Distribution:
        nu, r, prior, tied = self._priors
        stages = num_stages(rankings)
        center, theta = sample_mallows_component(nu, r, prior, tied, rankings.num_items, stages)
        return GeneralizedMallows(center, theta)


def _draw_rearrangements(
    key: Array, number: int, num_items: int, worth: Array
) -> tuple[Array, Array]:
    """Draw dispersals and new places of the items of a center, (number, R) and (number, R, n)."""
    key_uniforms, key_codes = random.split(key)
    # About num_moved of the n - 1 stages have a positive code; where the data tell little, the new
    # center is nearly uniform.
    low, high = (jnp.clip(x / (worth + 1e-6), 0.3, 2.0 * num_items) for x in _MOVED)
    (uniforms,) = draw_together(random.uniform, key_uniforms, (number, len(worth)))
    num_moved = log_uniform(uniforms, low, high)
    dispersal = jnp.maximum(math.log(num_items - 1) - jnp.log(num_moved), 0.0)
    codes = sample_truncated_geometric(
        key_codes, dispersal[..., None], jnp.arange(num_items - 1, 0, -1)
    )
    codes = jnp.pad(codes, ((0, 0), (0, 0), (0, 1)))
    return dispersal, ordering_from_codes(codes, jnp.arange(num_items))
