"""Functions that take rankings, and no partial orders, say so in one line."""

import jax
import numpy as np
import pytest

from numpyro_rankings import (
    Draws,
    PartialOrders,
    cluster_profiles,
)
from numpyro_rankings.components import MallowsCenter, PlackettLuceWeights
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.readers import write_blt, write_preflib, write_table
from numpyro_rankings.report.comparison import default_models

KEY = jax.random.key(0)
DATA = simulate_mallows_mixture(KEY, 20, 4, 3, num_clusters=2, concentration=1.0)
DRAWS = {
    "assignments": DATA.assignments[None],
    "center": DATA.centers[None],
    "concentration": DATA.concentrations[None],
    "cluster_sizes": np.bincount(DATA.assignments)[None],
}
GIVEN = PartialOrders.from_rankings(DATA.rankings)
FUNCTIONS = {
    "partial orders": PartialOrders.from_rankings,
    "evidence": lambda p: default_models(p, evidence=True),
    "PrefLib": lambda p: write_preflib(p, "lists.soi"),
    "blt": lambda p: write_blt(p, "lists.blt"),
    "table": lambda p: write_table(p, "lists.csv"),
    "weights of a family": PlackettLuceWeights(1.0).check,
    "center of a family": MallowsCenter([1.0]).check,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_partial_orders_are_refused_in_one_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError) as error:
        FUNCTIONS[name](GIVEN)
    assert str(error.value) == (
        "rankings must be a Rankings here, not PartialOrders: if no row has ties or gaps, give "
        "their to_rankings()"
    )
    assert not list(tmp_path.iterdir())


def test_draws_of_partial_orders():
    """Their clusters are described as of rankings; the judges' rankings are not known."""
    draws = Draws.of(DRAWS, GIVEN)
    assert draws.orders is GIVEN and draws.items == GIVEN.items
    for found, known in zip(
        cluster_profiles(draws, GIVEN), cluster_profiles(DRAWS, DATA.rankings), strict=True
    ):
        assert (found.consensus, found.levels) == (known.consensus, known.levels)
        assert found.size == known.size and found.agreement == known.agreement
    with pytest.raises(TypeError, match="the draws are of partial orders"):
        _ = draws.fitted
