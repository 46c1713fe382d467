"""Plackett–Luce models of an unlimited pool of items."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numpyro_rankings.families.base import (
    Parameters,
    RankingProfile,
    interval_of,
    register_family,
)
from numpyro_rankings.families.plackett_luce import PlackettLuce, WeightsProfile


class ItemPool(PlackettLuce):
    """Weights of the items that occur, and one of all others together."""

    name = "gamma-process"
    parameters = ("weights", "unseen_weight")

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    def profile(self, common: RankingProfile, parameters: Parameters) -> WeightsProfile:
        unseen = parameters["unseen_weight"]
        return (
            super()
            .profile(common, parameters)
            ._replace(
                unseen_weight=float(unseen.mean(dtype=np.float64)),
                unseen_interval=interval_of(unseen),
            )
        )

    def columns_of_bloc(self, bloc: Mapping[str, Any], items: Sequence[str]) -> dict[str, str]:
        unseen = {"unseen_weight": f"{bloc['unseen_weight']:.6g}"}
        return unseen | super().columns_of_bloc(bloc, items)


ITEM_POOL = ItemPool()
register_family(ITEM_POOL)
