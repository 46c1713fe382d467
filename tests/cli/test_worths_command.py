"""``fit --worths-by``: what covariates of the items do to their weights."""

from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import FEW_DRAWS, expect_error, rows_of, run, without_page

from numpyro_rankings import item_covariates, read_survey
from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.cli.results import _BEGINNINGS, OPTIONAL, check_replaceable
from numpyro_rankings.cli.worths import read_covariates
from numpyro_rankings.posterior.item_effects import ItemEffects, item_effects, worths_of_new_items
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.item_effects import effects_shown
from numpyro_rankings.words.commands import compare_command

NAMES = ["Ann", "Bob", "Cid", "Dee", "Eve", "Flo"]
FIT = ["fit", "lists.csv", "--layout", "orders", *FEW_DRAWS, "--no-progress", "--out", "out"]
FIT += ["--model", "plackett-luce"]
ITEMS = "item,price,brand\nBob,2,X\nAnn,1.5,X\nCid,4,Y\nDee,3,Y\nEve,2.5,Y\nFlo,1,X\n"
WORTHS = ["--worths-by", "items.csv"]


@pytest.fixture
def files():
    rng = np.random.default_rng(0)
    log_weights = np.array([0.5, 0.0, -2.0, -1.0, -0.5, 1.0])
    lists = [np.argsort(-(log_weights + rng.gumbel(size=6)))[:3] for _ in range(60)]
    lines = ["1,2,3", *(",".join(NAMES[i] for i in one) for one in lists)]
    Path("lists.csv").write_text("\n".join(lines) + "\n")
    Path("items.csv").write_text(ITEMS)


def test_a_fit_writes_the_effects(files, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        without_page(patch)
        assert run(*FIT, *WORTHS) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "price, 0.9860 more: odds × 0." in shown.replace("0.986 more", "0.9860 more")
    assert "brand: Y, Y instead of X: odds ×" in shown and "item_effects.csv" in shown
    assert "The covariates explain" in shown
    price, brand = rows_of("out/item_effects.csv")
    assert (price["covariate"], brand["covariate"]) == ("price", "brand: Y")
    for row in (price, brand):
        assert float(row["odds"]) == pytest.approx(np.exp(float(row["effect"])), rel=1e-4)
        assert float(row["effect_low"]) < float(row["effect"]) < float(row["effect_high"])
    assert float(price["effect"]) < 0 and float(price["probability_positive"]) < 0.5
    check_replaceable(Path("out"))  # by --force
    Path("out/item_effects.csv").write_text("price,brand\n")
    with pytest.raises(UserError, match=r"item_effects\.csv"):
        check_replaceable(Path("out"))


def test_what_it_refuses(files, capsys):
    for arguments, fragments in (
        ([*WORTHS, "--components", "2"], ["single population: leave out --components"]),
        ([*WORTHS, "--components", "auto"], ["single population: leave out --components"]),
        ([*WORTHS, "--sampler", "tempered"], ["leave out --sampler tempered"]),
        ([*WORTHS, "--model", "mallows"], ["--worths-by goes with --model plackett-luce"]),
        ([*WORTHS, "--model", "gamma-process"], ["--worths-by goes with --model plackett-luce"]),
        ([*WORTHS, "--model", "dp-plackett-luce"], ["--worths-by goes with --model plackett-luce"]),
        (["--worths-by", "none.csv"], ["--worths-by none.csv: there is no such file"]),
        (["--worths-by", "items.pdf"], ["there is no such file"]),
    ):
        expect_error(capsys, [*FIT, *arguments], fragments)
    for table, fragment in (
        (ITEMS.replace("Flo,1,X\n", ""), "has no row for 'Flo'"),
        (
            ITEMS.replace("Eve", "Evi"),
            "'Evi' is none of the items that are ranked; did you mean 'Eve'",
        ),
        (ITEMS.replace("2.5", ""), "'price' has no value in the row of 'Eve'"),
        (ITEMS.replace("Y", "X"), "'brand' is 'X' in all rows"),
    ):
        Path("items.csv").write_text(table)
        expect_error(capsys, [*FIT, *WORTHS], ["--worths-by items.csv: ", fragment])


def test_a_table_of_several_files_may_have_items_of_others(files):
    survey = read_survey("lists.csv", "orders")
    expected = read_covariates("items.csv", survey)
    Path("items.csv").write_text(f"{ITEMS} Gus ,9,Z\n")
    for is_of_several in (False, True):  # also of one: commands that a page proposes are of one
        found = read_covariates("items.csv", survey, is_of_several)
        assert found.names == expected.names
        assert found.values.tolist() == expected.values.tolist()
    Path("items.csv").write_text(ITEMS.replace("Flo", "Gus"))
    with pytest.raises(UserError, match="has no row for 'Flo'"):
        read_covariates("items.csv", survey, is_of_several=True)
    with pytest.raises(UserError, match="'Gus' is none of the items"):
        read_covariates("items.csv", survey)


def fabricated(files):
    """Draws in which β and the residuals are known, and their covariates."""
    rng, rankings = np.random.default_rng(1), read_survey("lists.csv", "orders").rankings
    import pandas as pd

    covariates = item_covariates(pd.read_csv("items.csv"), items=rankings.items)
    effects = np.array([-1.0, 0.5]) + 0.1 * rng.normal(size=(2, 4000, 2))
    residual = np.log(rng.gamma(8.0, size=(2, 4000, 6)))
    weights = np.exp(effects @ covariates.values.T.astype(float) + residual)
    weights /= weights.sum(-1, keepdims=True)
    shape = np.full((2, 4000), 8.0)
    return {"weights": weights, "item_effects": effects, "residual_shape": shape}, covariates


def test_effects_and_new_items_are_those_of_the_draws(files):
    import pandas as pd

    draws, covariates = fabricated(files)
    found = item_effects(draws, covariates)
    assert found.names == ("price", "brand: Y") and found.probability.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(found.effect, [-1.0, 0.5], atol=0.01)
    np.testing.assert_allclose(found.effect_interval[0], [-1.164, -0.836], atol=0.02)
    np.testing.assert_allclose(found.odds, np.exp(found.effect))
    assert found.to_frame()["odds"].tolist() == found.odds.tolist()
    # x'β varies by about 0.6, and the residuals by ψ'(8) = 0.13 times 5/6
    assert 0.7 < found.explained < 0.95
    # a new item with the covariates of Flo is as often better than Flo as not
    new = pd.DataFrame({"item": ["Gil", "Hal"], "price": [1.0, 4.0], "brand": ["X", "Y"]})
    table = worths_of_new_items(draws, covariates, new)
    assert table["item"].tolist() == ["Gil", "Hal"]
    flo = covariates.values[covariates.items.index("Flo")].astype(float)
    eta = (draws["item_effects"] @ (flo - covariates.values.mean(0))).mean()
    assert np.log(table["odds"][0]) == pytest.approx(eta, abs=0.1)
    assert np.all(table["odds_low"] < table["odds"]) and table["odds"][0] > table["odds"][1]
    assert table["first_choice"][0] > 1 / 7 > table["first_choice"][1]
    # residuals of so small a shape are 0 as numbers, and one of the seven items is still the first
    tiny = worths_of_new_items(
        draws | {"residual_shape": np.full((2, 4000), 1e-5)}, covariates, new
    )
    assert tiny["first_choice"].to_numpy() == pytest.approx(1 / 7, abs=0.03)
    with pytest.raises(ValueError, match="of 6 items and 2 covariates, and not of 6 and 1"):
        item_effects(
            draws, item_covariates(pd.read_csv("items.csv"), "price", items=covariates.items)
        )
    del draws["item_effects"]
    with pytest.raises(ValueError, match="no effects of covariates"):
        item_effects(draws, covariates)


def test_the_page_says_the_same(files):
    found = item_effects(*fabricated(files))
    assert isinstance(found, ItemEffects)
    shown = effects_shown(Findings(*[None] * 10, item_effects=found))
    assert [row[0] for row in shown.rows] == ["price", "brand: Y"]
    assert shown.rows[1][1] == "Y instead of X"
    assert shown.lines[1].startswith("brand: Y, Y instead of X: odds × 1.6")
    assert shown.explained.startswith("The covariates explain 8")


def test_other_commands_go_without_it():
    command = "numpyro-rankings fit a.csv --model plackett-luce --worths-by items.csv --about x"
    assert compare_command(command) == "numpyro-rankings compare a.csv --about x"


def test_each_table_of_results_is_known_by_its_beginning():
    """Else --force would refuse the results of this program."""
    assert {*OPTIONAL} <= {*_BEGINNINGS}
