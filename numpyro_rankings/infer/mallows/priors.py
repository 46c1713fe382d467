"""Priors of the Mallows kernels: from their settings, or read from a user's model."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.distributions import (
    ChineseRestaurantProcess,
    FiniteDirichletPartition,
    MallowsConcentrationPrior,
    RandomPermutation,
)
from numpyro_rankings.infer.blocks import check_prior_of_slots
from numpyro_rankings.infer.mallows.concentrations import (
    ConcentrationPrior,
    PerStage,
    Tied,
    conjugate_prior,
    per_stage_prior,
)
from numpyro_rankings.infer.mallows.settings import MallowsSettings
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.priors import base_of


def concentration_prior_of(
    settings: MallowsSettings, num_items: int, num_stages: int
) -> ConcentrationPrior:
    """Return the prior of θ that the settings describe."""
    if settings.tied:
        return Tied(settings.concentration_prior)
    if settings.concentration_prior is not None:
        return PerStage(per_stage_prior(settings.concentration_prior, num_stages))
    return conjugate_prior(settings.nu, settings.r, num_items, num_stages, settings.exact)


def partition_prior_of_model(
    trace: Mapping[str, Any], site: str, keeps_slots: bool
) -> PartitionPrior:
    """Read the prior of labels, which name slots if ``keeps_slots``, from a user's model."""
    partition = trace[site]["fn"]
    num_components: int | None = None
    if isinstance(partition, FiniteDirichletPartition):
        num_components = partition.num_components
    elif not isinstance(partition, ChineseRestaurantProcess):
        raise ValueError(
            f"site {site!r} must have a ChineseRestaurantProcess or a FiniteDirichletPartition as "
            f"its prior, not {type(partition).__name__}"
        )
    if keeps_slots:
        check_prior_of_slots(partition, site)
    if num_components is None and not _is_known_zero(partition.discount):
        raise ValueError(
            f"the prior of site {site!r} has a discount; the kernel is for the Dirichlet process, "
            "which has none"
        )
    return PartitionPrior(jnp.asarray(partition.concentration, float), num_components)


def check_center_prior_of_model(trace: Mapping[str, Any], site: str) -> None:
    """Refuse a prior of the centers that is not uniform."""
    center = base_of(trace[site]["fn"])
    if not isinstance(center, RandomPermutation):
        raise ValueError(
            f"site {site!r} must have a RandomPermutation as its prior, not {type(center).__name__}"
        )


def concentration_prior_of_model(
    trace: Mapping[str, Any], site: str, num_slots: int, num_stages: int, exact: bool
) -> ConcentrationPrior:
    """Read the prior of θ from the trace of a user's model."""
    prior = trace[site]["fn"]
    if prior.event_shape != (num_stages,):
        raise ValueError(
            f"site {site!r} must have event shape ({num_stages},), one value per stage, as of "
            f".expand(({num_stages},)).to_event(1); it has {prior.event_shape}"
        )
    if prior.batch_shape not in ((), (num_slots,)):
        raise ValueError(
            f"site {site!r} has batch shape {prior.batch_shape}; the kernel has {num_slots} "
            "cluster slots (max_clusters or num_components)"
        )
    prior = base_of(prior)
    per_slot = prior.batch_shape[: -1 if prior.event_shape == () else None]
    if any(size != 1 for size in per_slot):
        raise ValueError(
            f"the prior of site {site!r} must be the same in all slots, because the kernel "
            f"renumbers the clusters; its parameters have shape {prior.batch_shape}"
        )
    if isinstance(prior, MallowsConcentrationPrior):
        return conjugate_prior(prior.nu, prior.r, prior.num_items, num_stages, exact)
    return PerStage(per_stage_prior(prior, num_stages))


def _is_known_zero(discount: Array | float) -> bool:
    """Whether the discount is 0; False if it is traced."""
    return not isinstance(discount, jax.core.Tracer) and bool(np.all(np.asarray(discount) == 0.0))
