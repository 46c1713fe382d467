"""Settings of the Mallows kernels, as their constructors take them."""

from typing import Any, NamedTuple

import numpy as np
import numpyro.distributions as dist

from numpyro_rankings.infer.checks import (
    check_positive_array,
    check_prior,
    check_scale,
    check_whole_or_none,
)
from numpyro_rankings.ops.checks import check_whole

STARTS = ("search", "nearest", "random", "given")


class MallowsSettings(NamedTuple):
    """Arguments of the constructors of the kernels, whose docstrings say what each means."""

    alpha: float | dist.Distribution = 1.0
    nu: Any = 1.0
    r: Any = 1.0
    concentration_prior: dist.Distribution | None = None
    tied: bool = False
    num_components: int | None = None
    max_clusters: int = 64
    init: str | None = None
    num_center_updates: int = 1
    num_reinsertions: int | None = None
    num_marginal_steps: int | None = None
    exact: bool = True  # False for Beta-Gibbs as the paper prints it

    @property
    def num_slots(self) -> int:
        """C, the number of cluster slots."""
        return self.max_clusters if self.num_components is None else self.num_components

    def changed_priors(self) -> dict[str, bool]:
        """Return which priors differ from their defaults."""
        return {
            "alpha": isinstance(self.alpha, dist.Distribution) or self.alpha != 1.0,
            "nu": bool(np.any(np.asarray(self.nu) != 1.0)),
            "r": bool(np.any(np.asarray(self.r) != 1.0)),
            "concentration_prior": self.concentration_prior is not None,
        }


def check_settings(settings: MallowsSettings) -> None:
    """Raise ValueError if a setting is invalid."""
    check_scale("alpha", settings.alpha)
    for name, value in (("nu", settings.nu), ("r", settings.r)):
        check_positive_array(name, value, "a positive number or one for each stage")
    check_whole("max_clusters", settings.max_clusters, 1)
    check_whole("num_center_updates", settings.num_center_updates, 1)
    check_whole_or_none("num_components", settings.num_components, 1)
    check_whole_or_none("num_reinsertions", settings.num_reinsertions, 0)
    check_whole_or_none("num_marginal_steps", settings.num_marginal_steps, 0)
    _check_start(settings.init, settings.num_components)
    _check_concentration_prior(settings.concentration_prior, settings.tied)


def _check_start(init: str | None, num_components: int | None) -> None:
    if init is not None and not (isinstance(init, str) and init in STARTS):
        raise ValueError(f"init is one of {STARTS}, not {init!r}")
    if init == "search" and (num_components is None or num_components == 1):
        raise ValueError("init='search' is for finite mixtures: set num_components to 2 or more")


def _check_concentration_prior(prior: dist.Distribution | None, tied: bool) -> None:
    if prior is None:
        if tied:
            raise ValueError("tied=True needs a concentration_prior, for instance dist.Gamma(1, 1)")
        return
    check_prior("concentration_prior", prior)
    if tied and prior.batch_shape + prior.event_shape != ():
        raise ValueError("with tied=True, concentration_prior must be a scalar distribution")
