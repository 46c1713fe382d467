"""Bayesian models of rankings for NumPyro."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpyro_rankings._moved import find_old_modules
from numpyro_rankings._system import xla
from numpyro_rankings._system.lazy_numpyro import mend_numpyro
from numpyro_rankings._version import __version__ as __version__

if TYPE_CHECKING:
    from numpyro_rankings.datasets import list_datasets, load_dataset
    from numpyro_rankings.infer.bradley_terry_map import bradley_terry_map
    from numpyro_rankings.infer.plackett_luce_map import plackett_luce_map
    from numpyro_rankings.posterior import (
        Draws,
        cluster_profiles,
        cp_consensus,
        find_blocs,
        log_evidence,
        log_predictive_density,
        map_consensus,
        predict_items,
    )
    from numpyro_rankings.posterior.calibration import posterior_sbc
    from numpyro_rankings.posterior.diagnostics import diagnostics_table, r_star
    from numpyro_rankings.posterior.evidence import log_bayes_factor, log_language_evidence
    from numpyro_rankings.posterior.inference_data import to_inference_data
    from numpyro_rankings.posterior.partitions import (
        adjusted_rand_index,
        coclustering,
        coclustering_blocks,
        medoid_partition,
        variation_of_information,
    )
    from numpyro_rankings.posterior.point_estimates import (
        credible_ball,
        point_estimate,
        reference_partition,
    )
    from numpyro_rankings.posterior.prediction import log_predictive_of_points
    from numpyro_rankings.posterior.predictive_checks import posterior_predictive_checks
    from numpyro_rankings.posterior.relabeling import relabel_samples
    from numpyro_rankings.posterior.stacking import stack_chains
    from numpyro_rankings.predict import shares_by
    from numpyro_rankings.rankings import (
        Comparisons,
        Games,
        ItemCovariates,
        JudgeCovariates,
        PartialOrders,
        Rankings,
        RankingsError,
        WeightedRankings,
        item_covariates,
        judge_covariates,
        survey_weights,
    )
    from numpyro_rankings.readers import Survey, read_rankings, read_survey
    from numpyro_rankings.report.comparison import compare
    from numpyro_rankings.report.group_path import group_path, lasting_number
    from numpyro_rankings.run import Run, StoreError, open_run
    from numpyro_rankings.self_check import check

xla.set_flag()
mend_numpyro()
find_old_modules()

# Names are imported when first used, so that the command line answers --help quickly.
_HOMES = {
    "Comparisons": "rankings",
    "Draws": "posterior",
    "Games": "rankings",
    "ItemCovariates": "rankings",
    "JudgeCovariates": "rankings",
    "PartialOrders": "rankings",
    "Rankings": "rankings",
    "RankingsError": "rankings",
    "Run": "run",
    "StoreError": "run",
    "Survey": "readers",
    "WeightedRankings": "rankings",
    "adjusted_rand_index": "posterior.partitions",
    "bradley_terry_map": "infer.bradley_terry_map",
    "check": "self_check",
    "cluster_profiles": "posterior",
    "coclustering": "posterior.partitions",
    "coclustering_blocks": "posterior.partitions",
    "compare": "report.comparison",
    "cp_consensus": "posterior",
    "credible_ball": "posterior.point_estimates",
    "diagnostics_table": "posterior.diagnostics",
    "find_blocs": "posterior",
    "group_path": "report.group_path",
    "item_covariates": "rankings",
    "judge_covariates": "rankings",
    "lasting_number": "report.group_path",
    "list_datasets": "datasets",
    "load_dataset": "datasets",
    "log_bayes_factor": "posterior.evidence",
    "log_evidence": "posterior",
    "log_language_evidence": "posterior.evidence",
    "log_predictive_density": "posterior",
    "log_predictive_of_points": "posterior.prediction",
    "map_consensus": "posterior",
    "medoid_partition": "posterior.partitions",
    "open_run": "run",
    "plackett_luce_map": "infer.plackett_luce_map",
    "point_estimate": "posterior.point_estimates",
    "posterior_predictive_checks": "posterior.predictive_checks",
    "posterior_sbc": "posterior.calibration",
    "predict_items": "posterior",
    "r_star": "posterior.diagnostics",
    "read_rankings": "readers",
    "read_survey": "readers",
    "reference_partition": "posterior.point_estimates",
    "relabel_samples": "posterior.relabeling",
    "shares_by": "predict",
    "stack_chains": "posterior.stacking",
    "survey_weights": "rankings",
    "to_inference_data": "posterior.inference_data",
    "variation_of_information": "posterior.partitions",
}

__all__ = [
    "Comparisons",
    "Draws",
    "Games",
    "ItemCovariates",
    "JudgeCovariates",
    "PartialOrders",
    "Rankings",
    "RankingsError",
    "Run",
    "StoreError",
    "Survey",
    "WeightedRankings",
    "adjusted_rand_index",
    "bradley_terry_map",
    "check",
    "cluster_profiles",
    "coclustering",
    "coclustering_blocks",
    "compare",
    "cp_consensus",
    "credible_ball",
    "diagnostics_table",
    "find_blocs",
    "group_path",
    "item_covariates",
    "judge_covariates",
    "lasting_number",
    "list_datasets",
    "load_dataset",
    "log_bayes_factor",
    "log_evidence",
    "log_language_evidence",
    "log_predictive_density",
    "log_predictive_of_points",
    "map_consensus",
    "medoid_partition",
    "open_run",
    "plackett_luce_map",
    "point_estimate",
    "posterior_predictive_checks",
    "posterior_sbc",
    "predict_items",
    "r_star",
    "read_rankings",
    "read_survey",
    "reference_partition",
    "relabel_samples",
    "shares_by",
    "stack_chains",
    "survey_weights",
    "to_inference_data",
    "variation_of_information",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'numpyro_rankings' has no attribute {name!r}")
    return getattr(import_module(f"numpyro_rankings.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
