"""Plackett–Luce models of an unlimited pool of items."""

from numpyro_rankings.families.base import register_family
from numpyro_rankings.families.plackett_luce import PlackettLuce


class ItemPool(PlackettLuce):
    """Weights of the items that occur, and one of all others together."""

    name = "gamma-process"
    parameters = ("weights", "unseen_weight")

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


ITEM_POOL = ItemPool()
register_family(ITEM_POOL)
