"""The data container, what users give it, and how often items are listed."""

from numpyro_rankings.rankings.comparisons import Comparisons, Orders
from numpyro_rankings.rankings.container import (
    Rankings,
    build_rankings,
    check_rankings,
    check_rows,
    check_unranked,
    num_stages,
)
from numpyro_rankings.rankings.games import Games
from numpyro_rankings.rankings.names import RankingsError
from numpyro_rankings.rankings.partial_orders import PartialOrders

__all__ = [
    "Comparisons",
    "Games",
    "Orders",
    "PartialOrders",
    "Rankings",
    "RankingsError",
    "build_rankings",
    "check_rankings",
    "check_rows",
    "check_unranked",
    "num_stages",
]
