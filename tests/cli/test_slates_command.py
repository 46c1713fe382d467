"""``fit --slates``: cohesion and crossover of groups, on the page and in files."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import QUICK_FIT, rows_of
from helpers.fabricated import fabricated_weights_mcmc
from helpers.simulated_slates import ITEMS, SLATES, slate_ballots

from numpyro_rankings import read_survey
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.posterior import predictive_checks
from numpyro_rankings.posterior.slates import slates_of

FIT = ["fit", "lists.csv", "--layout", "orders", *QUICK_FIT, "--model", "plackett-luce"]
FIT += ["--components", "3", "--out", "out"]
TABLE = "item,slate\n" + "".join(f"{item},{slate}\n" for item, slate in SLATES.items())


@pytest.fixture
def lists():
    """A file of ballots, and what is read of it."""
    ballots, _ = slate_ballots(np.random.default_rng(0), 120)
    lines = ["1,2,3,4,5,6", *(",".join(ITEMS[i] for i in row) for row in ballots)]
    Path("lists.csv").write_text("\n".join(lines) + "\n")
    Path("mine.csv").write_text(TABLE)
    return read_survey("lists.csv", "orders").rankings


@pytest.fixture
def drawn(lists, monkeypatch):
    """Lets the command write results of fabricated draws, without a sampler."""
    monkeypatch.setattr(predictive_checks, "posterior_predictive_checks", lambda *_: None)
    mcmc = fabricated_weights_mcmc(lists, 3, draws=20)
    monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
    return mcmc, lists


def test_tables_and_page_say_what_python_says(drawn, capsys):
    assert main([*FIT, "--slates", "mine.csv", "--save", "xlsx"]) == 0
    assert "slates.csv, votekit.json" in capsys.readouterr().out
    rows = rows_of("out/slates.csv")
    found = slates_of(*drawn, SLATES)
    by_size = np.argsort(-found.share)
    groups = rows_of("out/clusters.csv")
    assert len(rows) == sum(x["holds"] == "yes" for x in groups) > 1
    for row, group, k in zip(rows, groups, by_size, strict=False):
        assert row["cluster"] == group["cluster"] and row["share"] == group["share"]
        assert row["slate"] == found.slates[found.own[k]]
        assert float(row["cohesion"]) == pytest.approx(found.cohesion[k], abs=0.02)
        assert float(row["cohesion"]) + float(row["crossover"]) == pytest.approx(1, abs=1e-5)
        assert {"first_low", "support of A_high", "share_low"} <= {*row}
    config = json.loads(Path("out/votekit.json").read_text(encoding="utf-8"))
    names = {"n_voters", "bloc_proportions", "slate_to_candidates"}
    assert {*config} == names | {"preference_mapping", "cohesion_mapping"}
    assert config["slate_to_candidates"] == {
        s: [x for x in drawn[1].items if SLATES[x] == s] for s in found.slates
    }
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "<h2>Slates</h2>" in page and "A: a" in page and "crossover" in page
    assert main([*FIT, "--force"]) == 0  # without slates, the files of the earlier results go
    there = {x.name for x in Path("out").iterdir()}
    assert not there & {"slates.csv", "votekit.json", "results.xlsx"}
    assert "<h2>Slates</h2>" not in Path("out/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE + "zed,A\n", "--slates mine.csv: 'zed' is no item of the rankings"),
        (TABLE.replace("b2,B\n", ""), "--slates mine.csv: 'b2' has no slate"),
        (TABLE + "b2,A\n", "--slates mine.csv:8: 'b2' is in two slates, 'B' and 'A'"),
        (TABLE.replace("slate", "party", 1), "must have the columns item and slate, not 'item'"),
        (None, "--slates mine.csv: there is no such file"),
    ],
)
def test_refused_before_anything_is_written(lists, capsys, table, message):
    Path("mine.csv").unlink()
    if table is not None:
        Path("mine.csv").write_text(table)
    assert main([*FIT, "--slates", "mine.csv"]) == 2
    assert message in capsys.readouterr().err and not Path("out").exists()


def test_slates_are_the_parties_that_a_file_says(capsys):
    """A .csv of a Scottish council names the party of each candidate."""
    from numpyro_rankings.cli.slates import read_slates
    from numpyro_rankings.rankings import Rankings
    from numpyro_rankings.readers import Survey

    rankings = Rankings.from_orderings([[0], [1]], items=["Ann", "Bob"])
    fields = dict.fromkeys(Survey._fields) | {"rankings": rankings}
    survey = Survey(**(fields | {"items_about": {"party": ["Green", "Lab"]}}))
    assert read_slates("party", survey) == {"Ann": "Green", "Bob": "Lab"}


def test_pairs_are_refused_at_once(capsys):
    rows = ["judge,winner,loser", *(f"{k},{x}1,{x}2" for k in range(3) for x in "ab")]
    Path("pairs.csv").write_text("\n".join(rows) + "\n")
    slates = "item,slate\na1,A\na2,A\nb1,B\nb2,B\n"
    Path("mine.csv").write_text(slates)
    command = ["fit", "pairs.csv", "--layout", "pairs", "--judge", "judge", "--out", "out"]
    assert main([*command, "--slates", "mine.csv"]) == 2
    assert "pairs that were compared have no places" in capsys.readouterr().err
    assert not Path("out").exists()
