"""The bundled table, and simulators of all models."""

from numpyro_rankings.datasets.pools import (
    DPPlackettLuceSample,
    GammaProcessSample,
    simulate_dp_plackett_luce,
    simulate_gamma_process,
)
from numpyro_rankings.datasets.simulate import (
    MallowsMixtureSample,
    PlackettLuceMixtureSample,
    simulate_mallows,
    simulate_mallows_mixture,
    simulate_plackett_luce,
    simulate_plackett_luce_mixture,
)
from numpyro_rankings.datasets.tables import list_datasets, load_dataset

__all__ = [
    "DPPlackettLuceSample",
    "GammaProcessSample",
    "MallowsMixtureSample",
    "PlackettLuceMixtureSample",
    "list_datasets",
    "load_dataset",
    "simulate_dp_plackett_luce",
    "simulate_gamma_process",
    "simulate_mallows",
    "simulate_mallows_mixture",
    "simulate_plackett_luce",
    "simulate_plackett_luce_mixture",
]
