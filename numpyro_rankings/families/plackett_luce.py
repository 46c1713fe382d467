"""The Plackett–Luce model."""

from numpyro_rankings.families.base import RankingFamily, register_family


class PlackettLuce(RankingFamily):
    """Plackett–Luce models: a weight for each item."""

    name = "plackett-luce"
    parameters = ("weights",)

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


PLACKETT_LUCE = PlackettLuce()
register_family(PLACKETT_LUCE)
