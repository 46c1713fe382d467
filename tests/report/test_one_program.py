"""Models that differ in their number of groups only have one program, and the same answers."""

from contextlib import contextmanager

import numpy as np

from numpyro_rankings import Rankings, compare
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs
from numpyro_rankings.report import comparison
from numpyro_rankings.report.comparison import default_models
from numpyro_rankings.report.one_program import common_width, in_one_program
from numpyro_rankings.run.loop import sharing_programs

TWO = Rankings.from_orderings([[0], [1]], num_items=2, counts=[14, 6])


def test_predictions_of_two_numbers_of_groups_by_one_program(monkeypatch):
    """Of two items the share of those who prefer the first is all that a model tells."""
    programs = []

    @contextmanager
    def counting():
        with sharing_programs() as last:
            yield
            programs.append(last.num_compiled)

    monkeypatch.setattr(comparison, "sharing_programs", counting)
    models = [PlackettLuceGibbs(), PlackettLuceGibbs(num_components=2)]
    found = compare(TWO, models, num_chains=4, ess=1500, minutes=30, max_draws=10_000)
    assert programs == [1]
    rng = np.random.default_rng(0)
    first, second = rng.uniform(size=(2, 10**6))
    share = rng.beta(0.5, 0.5, 10**6)
    one, two = "Plackett–Luce (1 group)", "Plackett–Luce (2 groups)"
    for name, p in ((one, first), (two, share * first + (1 - share) * second)):
        likelihood = np.log(p) * np.array([[14], [6]]) + np.log1p(-p) * np.array([[6], [14]])
        weights = np.exp(likelihood - np.log(p))  # without one of those who prefer the item
        exact = np.log(np.sum(weights * p, axis=1) / weights.sum(1))
        np.testing.assert_allclose(found.pointwise[name], np.repeat(exact, [14, 6]), atol=0.03)
    # the draws are those of the models that were asked for
    posteriors = {name: found.data[name]["posterior"] for name in (one, two)}
    assert posteriors[one]["weights"].dims == ("chain", "draw", "item")
    assert "cluster_sizes" not in posteriors[one] and found.table.loc[one, "groups"] == 1
    assert posteriors[two].sizes["cluster"] == 2
    assert [posteriors[name].attrs["num_components"] for name in (one, two)] == [1, 2]


def test_which_models_have_one_program():
    models = default_models(TWO)
    wide = in_one_program(models)
    assert set(models) - set(wide) == {"Mallows (any number of groups)"}
    assert len(set(wide.values())) == 2
    assert {kernel.num_components for kernel in wide.values()} == {4}
    others = {
        "one": PlackettLuceGibbs(),
        "other prior": PlackettLuceGibbs(2.0, num_components=2),
        "other start": SliceGibbs(num_components=2),
    }
    assert in_one_program(others) == {}

    class Own(PlackettLuceGibbs):
        """A sampler with sweeps of its own, of which there is no other program."""

    assert in_one_program({"own": Own(num_components=2), "plain": PlackettLuceGibbs()}) == {}
    assert [common_width(k, 6) for k in (1, 4, 5, 6)] == [4, 4, 6, 6]
    assert common_width(1, 1) == 2
