"""The Plackett–Luce model."""

from collections.abc import Mapping

import numpy as np

from numpyro_rankings.families._plackett_luce_fit import WeightsFit, times_with_prior
from numpyro_rankings.families.base import (
    RankingFamily,
    check_not_negative,
    num_sets,
    register_family,
)
from numpyro_rankings.rankings import Rankings


class PlackettLuce(RankingFamily):
    """Plackett–Luce models: a weight for each item."""

    name = "plackett-luce"
    parameters = ("weights",)

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    fit_cost = 2.5

    def fitter(self, rankings: Rankings) -> WeightsFit:
        return WeightsFit(rankings, has_pool=False)

    def fit_bytes(self, rankings: Rankings, num_components: int) -> float:
        items = rankings.num_items
        return 8.0 * min(float(rankings.orderings.size), num_sets(items)) * items

    def check_parameters(self, sites: Mapping[str, np.ndarray], rankings: Rankings) -> None:
        check_not_negative(sites, *self.parameters)
        if not sites["weights"].any(-1).all():
            raise ValueError("weights must not all be 0 in a cluster")

    times_with_prior = staticmethod(times_with_prior)  # in NumPy or in JAX

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


PLACKETT_LUCE = PlackettLuce()
register_family(PLACKETT_LUCE)
