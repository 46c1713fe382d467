"""The generalized Mallows model."""

from numpyro_rankings.families.base import RankingFamily, register_family


class Mallows(RankingFamily):
    """Generalized Mallows models: a center, and a concentration for each stage."""

    name = "mallows"
    parameters = ("center", "concentration")

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


MALLOWS = Mallows()
register_family(MALLOWS)
