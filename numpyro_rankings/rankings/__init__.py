"""The data container, what users give it, and how often items are listed."""

from numpyro_rankings.rankings.comparisons import Comparisons, Orders
from numpyro_rankings.rankings.container import (
    Rankings,
    build_rankings,
    check_rankings,
    check_rows,
    check_unranked,
    num_stages,
    refuse_weights,
)
from numpyro_rankings.rankings.covariates_of_items import ItemCovariates, item_covariates
from numpyro_rankings.rankings.covariates_of_judges import (
    JudgeCovariates,
    RankingsBy,
    find_covariates,
    judge_covariates,
)
from numpyro_rankings.rankings.games import Games
from numpyro_rankings.rankings.names import RankingsError
from numpyro_rankings.rankings.partial_orders import PartialOrders
from numpyro_rankings.rankings.weights import SurveyWeights, WeightedRankings, survey_weights

__all__ = [
    "Comparisons",
    "Games",
    "ItemCovariates",
    "JudgeCovariates",
    "Orders",
    "PartialOrders",
    "Rankings",
    "RankingsBy",
    "RankingsError",
    "SurveyWeights",
    "WeightedRankings",
    "build_rankings",
    "check_rankings",
    "check_rows",
    "check_unranked",
    "find_covariates",
    "item_covariates",
    "judge_covariates",
    "num_stages",
    "refuse_weights",
    "survey_weights",
]
