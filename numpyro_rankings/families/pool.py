"""Plackett–Luce models of an unlimited pool of items."""

from numpyro_rankings.families._plackett_luce_fit import WeightsFit
from numpyro_rankings.families.base import register_family
from numpyro_rankings.families.plackett_luce import PlackettLuce
from numpyro_rankings.rankings import Rankings


class ItemPool(PlackettLuce):
    """Weights of the items that occur, and one of all others together."""

    name = "gamma-process"
    parameters = ("weights", "unseen_weight")

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    scalars = ("unseen_weight",)

    def fitter(self, rankings: Rankings) -> WeightsFit:
        return WeightsFit(rankings, has_pool=True)

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


ITEM_POOL = ItemPool()
register_family(ITEM_POOL)
