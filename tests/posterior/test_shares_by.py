"""Shares of groups at values of covariates, from draws that are made up."""

from dataclasses import replace

import numpy as np
import numpy.testing as npt
import pytest
from helpers.refusals import assert_refused
from scipy.special import softmax

from numpyro_rankings import Draws, Rankings, judge_covariates, relabel_samples, shares_by
from numpyro_rankings.predict import groups
from numpyro_rankings.rankings import RankingsError

NUM, DRAWS = 40, 25
REGION = ["north"] * 12 + ["south"] * 28
AGE = [20.0, 30.0, 40.0, 50.0] * 10


def made(formula="region + age"):
    rng = np.random.default_rng(0)
    lists = [rng.permutation(4).tolist() for _ in range(NUM)]
    rankings = Rankings.from_orderings(lists, num_items=4)
    return rankings, judge_covariates(rankings, {"region": REGION, "age": AGE}, formula)


def draws_of(covariates, labels):
    """Draws whose labels are switched in every second one, with what is switched with them."""
    rng, width = np.random.default_rng(1), covariates.design.shape[1]
    shares = rng.dirichlet([6.0, 3.0], DRAWS)
    effects = rng.normal(size=(DRAWS, 2, width))
    switched = np.arange(DRAWS) % 2 == 1
    of_labels = np.where(switched[:, None], 1 - labels, labels)
    sizes = np.stack([np.bincount(x, minlength=2) for x in of_labels])
    in_slots = np.where(switched[:, None], [1, 0], [0, 1])
    return (
        shares,
        effects,
        {
            "assignments": of_labels,
            "cluster_sizes": sizes,
            "weights": np.full((DRAWS, 2, 4), 0.25),
            "shares": np.take_along_axis(shares, in_slots, 1),
            "share_effects": np.take_along_axis(effects, in_slots[..., None], 1),
            "log_joint": np.zeros(DRAWS),
        },
    )


def test_each_value_stands_for_all_judges():
    _, given = made()
    labels = np.arange(NUM) % 3 % 2
    shares, effects, draws = draws_of(given.covariates, labels)
    found = shares_by(draws, given.covariates, labels)
    assert found.covariate == ("region", "region", "age", "age")
    assert found.value == ("north", "south", "20", "50")
    npt.assert_array_equal(found.num_judges, [12, 28, 10, 10])
    # by the plain values of all judges
    is_north, age = np.array(REGION) == "north", np.array(AGE)

    def of_judges(north, age):
        x = np.stack([north - 0.3, (age - np.mean(AGE)) / np.std(AGE)], axis=1)
        logits = np.log(shares)[:, None] + np.einsum("ij,dcj->dic", x, effects)
        return softmax(logits, axis=2).mean(1)

    average, ones = of_judges(is_north, age), np.ones(NUM)
    for v, by_draw in enumerate(
        [of_judges(ones, age), of_judges(0 * ones, age)]
        + [of_judges(is_north, x * ones) for x in (20.0, 50.0)]
    ):
        npt.assert_allclose(found.share[v], by_draw.mean(0), atol=1e-5)
        bounds = np.quantile(by_draw - average, [0.05, 0.95], axis=0).T
        npt.assert_allclose(found.difference_interval[v], bounds, atol=1e-5)
    npt.assert_allclose(found.average, average.mean(0), atol=1e-5)
    npt.assert_allclose(found.difference, found.share - found.average, atol=1e-6)
    other = shares_by(draws, given.covariates, 1 - labels)
    npt.assert_allclose(other.take([1, 0]).share, found.share)


def test_a_new_judge_is_drawn_from_all():
    """What is expected of one of whom nothing is known are the shares with the values of all."""
    _, given = made()
    labels = np.arange(NUM) % 3 % 2
    *_, samples = draws_of(given.covariates, labels)
    draws = replace(Draws.of(samples, given.rankings), covariates=given.covariates)
    expected = shares_by(draws, reference=labels).average
    found = groups(draws, None, given.rankings, labels)
    npt.assert_allclose(found.shares[:2], expected, rtol=1e-5)
    npt.assert_allclose(found.groups, np.broadcast_to(expected, found.groups.shape), rtol=1e-4)
    assert np.abs(samples["shares"].mean(0) - expected).max() > 0.01


def test_relabelled_draws_have_their_effects():
    _, given = made("region")
    labels = np.arange(NUM) % 3 % 2
    shares, effects, draws = draws_of(given.covariates, labels)
    relabelled = relabel_samples(draws, labels).samples
    npt.assert_allclose(relabelled["shares"], shares)
    npt.assert_allclose(relabelled["share_effects"], effects)


def test_what_is_refused_of_draws():
    _, given = made()
    _, _, draws = draws_of(given.covariates, np.arange(NUM) % 2)
    without = {name: x for name, x in draws.items() if name != "share_effects"}
    assert_refused(
        shares_by,
        ("no effects of covariates: fit TemperedMixture as", without),
        ("do not know the covariates", draws),
        ("are 1 columns of 40 judges, and those that were fitted 2", draws,
         made("age")[1].covariates),
    )  # fmt: skip


def test_rows_have_one_ranking_and_one_value_each():
    lists = [[0, 1, 2], [1, 0, 2], [0, 1, 2], [0, 1, 2], [1, 0, 2]]
    rankings = Rankings.from_orderings(lists, num_items=3)
    region = ["s", "n", "n", "s", "n"]
    made = judge_covariates(rankings, {"region": region, "other": [1] * 5}, "region")
    new, covariates = made.rankings, made.covariates
    assert new.num_rows == 3 and new.num_rankings == 5
    orderings, cells = np.asarray(new.expand().orderings), np.asarray(covariates.cells)
    npt.assert_array_equal(orderings[made.judges], lists)
    assert covariates.columns == ("region: s",)  # n is the commonest
    design = np.asarray(covariates.design)[cells[made.judges], 0]
    npt.assert_allclose(design, [0.6, -0.4, -0.4, 0.6, -0.4], atol=1e-6)
    # rows that stand for several judges have values of these, in order
    merged = rankings.unique()
    again = judge_covariates(merged, {"region": ["s", "n", "s", "n", "n"]}, ["region"])
    assert again.rankings == new
    # yes and no beside numbers are text
    mixed = judge_covariates(rankings, {"x": [True, 2.0, 2.0, True, 2.0]}, "x")
    assert mixed.covariates.columns == ("x: True",)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("regoin", "no column 'regoin' of the judges, only .*; did you mean 'region'"),
        (
            "region*age",
            "interaction, which covariates cannot have: add a column with the values of",
        ),
        ("region:age", "'region:age' is an interaction"),
        ("log(age)", 'names of columns joined by ., such as "region . age"'),
        ("region +", "covariates are names of columns"),
        ("gap", "'gap' has no value in row 3 .2 of 40 rows.: fill it in"),
        ("same", "'same' is 'x' in all rows"),
        ("constant", "'constant' is 3.5 in all rows"),
        ("many", "text with 40 levels, and at most 20"),
        ("short", "'short' has 39 values, but there are 40 rankings"),
    ],
)
def test_what_is_refused_of_columns(formula, message):
    rankings = made()[0]
    gap = ["a", "b", None, *["a"] * 36, " "]
    many = [f"v{k}" for k in range(NUM)]
    frame = {"region": REGION, "age": AGE, "gap": gap, "same": ["x"] * NUM, "many": many}
    frame |= {"constant": [3.5] * NUM, "short": AGE[1:]}
    with pytest.raises(RankingsError, match=message):
        judge_covariates(rankings, frame, formula)
