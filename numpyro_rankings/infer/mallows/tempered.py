"""Generalized Mallows components of a tempered mixture."""

import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.families import MALLOWS, RankingFamily
from numpyro_rankings.infer.mallows.data import as_mallows_data, design_if_small
from numpyro_rankings.infer.mallows.kernel import check_rankings_for
from numpyro_rankings.infer.mallows.label_free import (
    KINDS_OF_PARAMETERS,
    MallowsClusters,
    MallowsParameters,
    draw_steps,
)
from numpyro_rankings.infer.mallows.priors import concentration_prior_of
from numpyro_rankings.infer.mallows.settings import MallowsSettings, check_settings
from numpyro_rankings.infer.mixture.component_model import ComponentModel, Rows
from numpyro_rankings.infer.mixture.target import StepDraw
from numpyro_rankings.models import sample_mallows_component
from numpyro_rankings.rankings import Rankings, num_stages


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
        clusters = MallowsClusters(data, prior, log_constant, design_if_small(data, n))
        return Rows(data, clusters, n)

    def num_parameters(self, rankings: Rankings) -> int:
        return 1 if self._settings.tied else num_stages(rankings)

    def draw_prior(self, key: Array, num_components: int, rows: Rows) -> MallowsParameters:
        key_center, key_theta = random.split(key)
        uniforms = random.uniform(key_center, (num_components, rows.num_items))
        center = jnp.argsort(uniforms, axis=1).astype(jnp.int32)
        clusters: Any = rows.clusters
        theta = clusters.prior.draw(key_theta, num_components, clusters.data.limits)
        return MallowsParameters(center, jnp.asarray(theta, float))

    def draw_steps(self, key: Array, num_steps: int, rows: Rows) -> StepDraw:
        clusters: Any = rows.clusters
        shape = rows.num_items, len(clusters.data.limits)
        return draw_steps(key, num_steps, shape, KINDS_OF_PARAMETERS, clusters.prior.tied)

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
