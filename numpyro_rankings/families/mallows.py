"""The generalized Mallows model."""

from collections.abc import Mapping

import numpy as np

from numpyro_rankings.families._mallows_fit import MallowsFit, fit_lists
from numpyro_rankings.families.base import (
    RankingFamily,
    check_not_negative,
    num_sets,
    register_family,
)
from numpyro_rankings.families.weighted_fit import WeightedFit
from numpyro_rankings.rankings import Rankings, num_stages


class Mallows(RankingFamily):
    """Generalized Mallows models: a center, and a concentration for each stage."""

    name = "mallows"
    parameters = ("center", "concentration")

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    fit_cost = 1.0

    def fitter(self, rankings: Rankings) -> WeightedFit:
        return MallowsFit(rankings)

    def fit_bytes(self, rankings: Rankings, num_components: int) -> float:
        # what choices are left with, and how often components make them
        items, places = rankings.num_items, float(rankings.orderings.size)
        return 8.0 * min(places, items * num_sets(items)) * (items + 3 * num_components)

    def check_parameters(self, sites: Mapping[str, np.ndarray], rankings: Rankings) -> None:
        center, items = sites["center"], np.arange(rankings.num_items)
        bad = (np.sort(center, axis=-1) != items).any(-1)
        if bad.any():
            raise ValueError(f"center must be an order of all items, got {center[bad][0].tolist()}")
        fitted, stages = sites["concentration"].shape[-1], num_stages(rankings)
        if fitted != stages:
            raise ValueError(f"the run was of {fitted} stages; these rankings have {stages}")
        check_not_negative(sites, "concentration")

    fit_lists = staticmethod(fit_lists)  # in JAX

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


MALLOWS = Mallows()
register_family(MALLOWS)
