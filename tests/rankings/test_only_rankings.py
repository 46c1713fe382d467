"""Public functions that take rankings take partial orders too, or say in one line why not."""

import importlib
import inspect
import re
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from helpers.fabricated import fabricated_mcmc
from numpyro import handlers
from numpyro.infer.mcmc import MCMCKernel

import numpyro_rankings.infer as infer
from numpyro_rankings import (
    Draws,
    PartialOrders,
    Run,
    WeightedRankings,
    bradley_terry_map,
    cluster_profiles,
    compare,
    group_path,
    judge_covariates,
    models,
    plackett_luce_map,
    posterior,
    posterior_sbc,
    predict,
)
from numpyro_rankings.components import MallowsCenter, PlackettLuceWeights, check_family
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.readers import write_blt, write_preflib, write_survey, write_table
from numpyro_rankings.readers.surveys import survey_of
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
INSTEAD = {
    "survey": (survey_of(DATA.rankings, "orders"), "got Survey: it has them, pass its .rankings"),
    "frame": (pd.DataFrame({"x": [1, 2], "y": [2, 1]}), "Rankings.from_ranks(frame) makes it of"),
    "array": (np.array([[1, 2], [2, 1]]), "got ndarray: Rankings.from_ranks(array) makes it of"),
    "path": ("lists.soi", "got str: read the file with read_rankings(path)"),
}
FUNCTIONS = {
    "partial orders": PartialOrders.from_rankings,
    "evidence": lambda p: default_models(p, evidence=True),
    "PrefLib": lambda p: write_preflib(p, "lists.soi"),
    "blt": lambda p: write_blt(p, "lists.blt"),
    "table": lambda p: write_table(p, "lists.csv"),
    "survey": lambda p: write_survey(p, "lists.csv"),
    "weights of judges": lambda p: WeightedRankings.of(p, np.ones(20)),
    "covariates of judges": lambda p: judge_covariates(p, pd.DataFrame({"x": np.ones(20)}), "x"),
    "weights of a family": PlackettLuceWeights(1.0).check,
    "center of a family": MallowsCenter([1.0]).check,
}


@pytest.mark.parametrize("name", INSTEAD)
def test_what_is_given_instead_of_rankings_is_told_how_to_make_them(name):
    given, remedy = INSTEAD[name]
    for call in (
        lambda: infer.SliceGibbs().init(KEY, 0, None, (given,), {}),
        lambda: infer.TemperedMixture("plackett-luce", 2).init(KEY, 0, None, (), {"x": given}),
        lambda: Run(infer.PlackettLuceGibbs(), given, key=KEY),
        lambda: compare(given),
    ):
        with pytest.raises(TypeError) as error:
            call()
        text = str(error.value)
        if name == "frame":
            assert "Rankings.from_ranks(frame)" in text and "from_dataframe(frame, judge=…" in text
        else:
            assert text.startswith("rankings must be a Rankings, ") and remedy in text
        assert "\n" not in text
    with pytest.raises(TypeError, match=r"needs rankings: mcmc.run\(key, rankings\)$"):
        infer.SliceGibbs().init(KEY, 0, None, (), {})


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


# -- all of the public API ------------------------------------------------------------------------

ROOMS = (
    "", ".components", ".distributions", ".families", ".infer", ".models", ".plots", ".posterior",
    ".posterior.item_effects", ".posterior.slates", ".posterior.slates_by", ".predict", ".rankings",
    ".readers", ".report", ".report.comparison",
)  # fmt: skip
PARAMETERS = {"rankings", "new_rankings", "new", "partial_lists", "orders", "games"}
TIED = PartialOrders.from_buckets(
    [["a", ["b", "c"], "d"], [["c", "d"], "b"], ["b"], ["c", "b", "a"]],
    items=[*"abcd"],
    counts=[3, 2, 2, 1],
)
OTHERS = simulate_mallows_mixture(KEY, 8, 4, 3, num_clusters=2, concentration=1.0).rankings
OF_TIED, OF_OTHERS = fabricated_mcmc(TIED), fabricated_mcmc(OTHERS)


# of the models whose priors cannot be drawn from
OF_POOL = {"weights": np.full(4, 0.2), "unseen_weight": 0.2}
OF_POOLS = {
    "root_weights": np.ones(4),
    "root_unseen_weight": 1.0,
    "weights": np.full((2, 4), 0.2),
    "unseen_weight": np.full(2, 0.2),
    "total_weight": np.ones(2),
}


def traced(model, *args, sites=None, **kwargs):
    """Run a model once, where sites have these values."""
    model = handlers.substitute(handlers.seed(model, KEY), data=sites or {})
    return lambda: handlers.trace(model).get_trace(*args, **kwargs)


def started(kernel, *further, data=TIED):
    return lambda: kernel.init(KEY, 0, None, (data, *further), {})


def component(rankings):
    return GeneralizedMallows(np.arange(4), np.full(rankings.orderings.shape[1], 1.0))


TAKES = {
    "groups": partial(predict.groups, OF_TIED, TIED, TIED),
    "plackett_luce_map": partial(plackett_luce_map, TIED, 2.0),
    "plackett_luce_ties": traced(models.plackett_luce_ties, TIED),
    "short_form": partial(predict.short_form, OF_TIED, TIED),
}
# files whose tests are of partial orders
ELSEWHERE = {
    "compare": "posterior/test_of_partial_orders.py",
    "comparable_models": "posterior/test_of_partial_orders.py",
    "default_models": "posterior/test_of_partial_orders.py",
    "cluster_profiles": "posterior/test_of_partial_orders.py",
    "find_blocs": "posterior/test_of_partial_orders.py",
    "findings_of": "report/test_page_of_partial_orders.py",
    "log_predictive_density": "posterior/test_of_partial_orders.py",
    "posterior_predictive_checks": "posterior/test_of_partial_orders.py",
    "slates_by": "posterior/test_slates_by.py",
    "slates_of": "posterior/test_slates.py",
    "to_inference_data": "posterior/test_of_partial_orders.py",
    "write_report": "report/test_page_of_partial_orders.py",
    "SliceGibbs": "infer/test_latent_orders.py",
    "BetaGibbs": "infer/test_latent_orders.py",
    "PlackettLuceGibbs": "infer/test_latent_orders.py",
    "PlackettLuceRegressionGibbs": "infer/plackett_luce/test_regression.py",
    "GammaProcessPlackettLuceGibbs": "infer/test_latent_orders.py",
    "DPPlackettLuceGibbs": "infer/test_latent_orders.py",
}
RANKINGS = "rankings must be a Rankings here, not PartialOrders: if no row has ties or gaps, give"
KERNEL = r"takes Rankings, and no PartialOrders; SliceGibbs, BetaGibbs and the Gibbs samplers"
FAMILY = MallowsCenter([1.0])
REFUSES = {
    "CollapsedGibbs": (started(infer.CollapsedGibbs(FAMILY)), RANKINGS),
    "Cycle": (started(infer.Cycle([infer.SplitMerge(FAMILY)])), RANKINGS),
    "DDCRPGibbs": (
        started(infer.DDCRPGibbs(FAMILY, 1.0, infer.window_decay(1.0)), np.zeros((8, 8))),
        RANKINGS,
    ),
    "PermutationGibbs": (started(infer.PermutationGibbs(FAMILY)), RANKINGS),
    "SplitMerge": (started(infer.SplitMerge(PlackettLuceWeights(1.0))), RANKINGS),
    "TemperedMixture": (started(infer.TemperedMixture("mallows", 2)), KERNEL),
    "SliceGibbs(model=)": (started(infer.SliceGibbs(model=models.mallows_mixture)), KERNEL),
    "WeightedRankings": (lambda: WeightedRankings.of(TIED, np.ones(8)), RANKINGS),
    "borda_ordering": (partial(posterior.borda_ordering, TIED), RANKINGS),
    "bradley_terry": (traced(models.bradley_terry, TIED), "Games.from_orders those of partial"),
    "bradley_terry_map": (partial(bradley_terry_map, TIED), "make the partial orders by from_"),
    "check_family": (partial(check_family, FAMILY, TIED), RANKINGS),
    "conjugate_mixture": (traced(models.conjugate_mixture, TIED, family=FAMILY), RANKINGS),
    "of Plackett–Luce": (
        traced(models.conjugate_mixture, TIED, family=PlackettLuceWeights(1.0)),
        RANKINGS,
    ),
    "dp_plackett_luce": (
        traced(models.dp_plackett_luce, TIED, sites=OF_POOLS, max_clusters=2),
        RANKINGS,
    ),
    "gamma_process_plackett_luce": (
        traced(models.gamma_process_plackett_luce, TIED, sites=OF_POOL),
        RANKINGS,
    ),
    "group_path": (partial(group_path, TIED), "takes Rankings, and no PartialOrders; compare"),
    "judge_covariates": (
        partial(judge_covariates, TIED, pd.DataFrame({"x": np.ones(8)}), "x"),
        RANKINGS,
    ),
    "mallows_mixture": (traced(models.mallows_mixture, TIED), RANKINGS),
    "next_items": (
        partial(predict.next_items, OF_OTHERS, TIED),
        "partial_lists must be Rankings, of which the first places are known",
    ),
    "plackett_luce": (traced(models.plackett_luce, TIED), RANKINGS),
    "plackett_luce_regression": (
        traced(models.plackett_luce_regression, TIED, np.ones((4, 1))),
        RANKINGS,
    ),
    "posterior_sbc": (
        lambda: posterior_sbc(KEY, OF_TIED.sampler, OF_TIED, TIED),
        "the judges must be without ties, comparisons and covariates",
    ),
    "tempered_mixture": (
        traced(models.tempered_mixture, TIED, sample_component=component, num_components=2),
        RANKINGS,
    ),
    "write_blt": (partial(write_blt, TIED, "x.blt"), RANKINGS),
    "write_preflib": (partial(write_preflib, TIED, "x.soi"), RANKINGS),
    "write_survey": (partial(write_survey, TIED, "x.csv"), RANKINGS),
    "write_table": (partial(write_table, TIED, "x.csv"), RANKINGS),
}  # fmt: skip


def public():
    """Names of the functions that take rankings, and of all kernels."""
    found, tests = set(), Path(__file__).parent.parent
    texts = [path.read_text(encoding="utf-8") for path in tests.parent.glob("docs/reference/*.rst")]
    names = set(re.findall(r"auto(?:function|class):: (?:[\w.]+\.)?(\w+)", "".join(texts)))
    for room in ROOMS:
        module = importlib.import_module(f"numpyro_rankings{room}")
        for name in names.intersection(dir(module)):
            one = getattr(module, name)
            if inspect.isclass(one):
                takes = issubclass(one, MCMCKernel)
            else:  # or a file of this name
                takes = callable(one) and PARAMETERS & {*inspect.signature(one).parameters}
            if takes:
                found.add(name)
    return found


def test_each_public_function_is_tried():
    """Whoever adds one says here whether it takes partial orders."""
    # kernels of other data, and helpers of the package
    others = {"DDCRPLanguageGibbs", "SubclusterGibbs", "num_stages", "refuse_weights"}
    others |= {"check_rankings", "check_rows"}
    tried = {*TAKES, *ELSEWHERE, *REFUSES, *others}
    assert len(public()) > 40 and public() - tried == set()
    tests = Path(__file__).parent.parent
    for name, file in ELSEWHERE.items():
        assert re.search(rf"\b{name}\(", (tests / file).read_text(encoding="utf-8")), name


@pytest.mark.parametrize("name", TAKES)
def test_what_takes_partial_orders(name):
    assert TAKES[name]() is not None


@pytest.mark.parametrize("name", REFUSES)
def test_what_refuses_partial_orders(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, message = REFUSES[name]
    with pytest.raises((TypeError, ValueError), match=message) as error:
        call()
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())
