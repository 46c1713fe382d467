"""``fit --slates``: cohesion and crossover of groups, on the page and in files."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.command_line import QUICK_FIT, rows_of
from helpers.fabricated import fabricated_weights_mcmc
from helpers.simulated_slates import ITEMS, SLATES, slate_ballots

from numpyro_rankings import read_survey
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.cli.slates import names_of_tables, read_slates, tell_of_sample
from numpyro_rankings.posterior import predictive_checks
from numpyro_rankings.posterior.slates import slates_of
from numpyro_rankings.posterior.slates_by import slates_by

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
        (TABLE.replace("b2", "zed"), "--slates mine.csv: 'zed' is no item of the rankings"),
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


def test_items_that_nobody_ranks_may_have_a_slate(lists):
    survey = read_survey("lists.csv", "orders")
    Path("mine.csv").write_text(f"{TABLE}zed,C\n")
    assert read_slates("mine.csv", survey) == SLATES


def test_slates_are_the_parties_that_a_file_says():
    Path("ward.blt").write_text('2 1\n1 1 2 0\n1 2 0\n0\n"Ann" "Green"\n"Bob" "Lab"\n"Ward"\n')
    survey = read_survey("ward.blt")
    assert read_slates("party", survey) == {"Ann": "Green", "Bob": "Lab"}
    with pytest.raises(UserError, match="nor party, which FILE says of its items"):
        read_slates("parties", survey)


@pytest.fixture
def with_columns(lists, monkeypatch):
    """A file with what is known of the judges: a precinct for the first choices of each slate."""
    lines = Path("lists.csv").read_text().splitlines()
    header = f"{lines[0]},precinct,Ward/Seat,age,judges,name"
    rows = []
    for k, line in enumerate(lines[1:]):
        hill = "Hill" if line[0] == "a" else "Dale"
        precinct = "" if k < 3 else hill if k % 9 else "Tiny" if k == 9 else "=Moor"
        rows.append(f"{line},{precinct},{k % 2 + 1},{20 + k % 50},{'xy'[k % 2]},n{k}")
    Path("lists.csv").write_text("\n".join([header, *rows]) + "\n")
    survey = read_survey("lists.csv", "orders", about=ABOUT)
    mcmc = fabricated_weights_mcmc(survey.rankings, 3, draws=20)
    monkeypatch.setattr(predictive_checks, "posterior_predictive_checks", lambda *_: None)
    monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
    return mcmc, survey


ABOUT = ("precinct", "Ward/Seat", "age", "judges", "name")
BY = [*FIT, "--slates", "mine.csv", "--about", ",".join(ABOUT)]


def test_tables_by_what_is_known_of_the_judges(with_columns, capsys):
    import openpyxl

    assert main([*BY, "--save", "xlsx"]) == 0
    said = capsys.readouterr()
    assert "slates.csv, slates_by, votekit.json" in said.out
    assert "slates_by: 3 judges without 'precinct' are left out there" in said.err
    assert "no table by 'age', because it has numbers" in said.err
    assert "no table by 'name', because it has 120 different values, of 120 judges" in said.err
    tables = {x.name for x in Path("out/slates_by").iterdir()}
    assert tables == {"precinct.csv", "Ward_Seat.csv", "judges.csv"}
    rows = {x["precinct"]: x for x in rows_of("out/slates_by/precinct.csv")}
    mcmc, survey = with_columns
    counts = Counter(x for x in survey.about["precinct"] if isinstance(x, str) and x)
    assert {x.lstrip("'"): int(row["judges"]) for x, row in rows.items()} == counts
    assert "'=Moor" in rows  # no formula
    assert float(rows["Hill"]["first_A_low"]) > 0.9 > 0.1 > float(rows["Dale"]["first_A_high"])
    assert float(rows["Tiny"]["first_A_low"]) < 0.5  # of one judge
    by_label = np.argsort(survey.label_index)
    texts = [survey.about["precinct"][i] for i in by_label]
    found = slates_by(mcmc, survey.rankings, SLATES, texts)
    by_size = np.argsort(-slates_of(mcmc, survey.rankings, SLATES).share)
    hill = found.values.index("Hill")
    for k, label in enumerate(by_size[: len(rows_of("out/slates.csv"))], 1):
        shares = [float(rows["Hill"][f"group_{k}_{x}"]) for x in ("share", "low", "high")]
        expected = [found.share[hill, label], *found.share_interval[hill, label]]
        np.testing.assert_allclose(shares, expected, atol=0.08)  # over other draws
    assert list(rows_of("out/slates_by/judges.csv")[0])[:2] == ["judges (in the file)", "judges"]
    sheets = openpyxl.load_workbook("out/results.xlsx").sheetnames
    assert {"precinct", "Ward_Seat"} <= {*sheets}
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "has the shares by precinct, Ward/Seat and judges" in page


def test_tables_by_precinct_are_replaced_and_what_others_wrote_is_not(with_columns, capsys):
    assert main(BY) == 0
    assert main([*FIT, "--about", ",".join(ABOUT), "--force"]) == 0
    assert not Path("out/slates_by").exists()
    Path("out/slates_by").mkdir()
    Path("out/slates_by/precinct.csv").write_text("precinct,area\nHill,3\n")
    assert main([*BY, "--force"]) == 2
    assert "slates_by was not written by numpyro-rankings" in capsys.readouterr().err
    assert Path("out/slates_by/precinct.csv").read_text().endswith("Hill,3\n")


def test_of_a_sample_it_is_said_which_precincts_have_nobody(capsys):
    def tell(drawn, *precincts):
        table = SimpleNamespace(values=("Dale", "Hill"), judges=np.array(drawn))
        about = SimpleNamespace(num_rankings=2500), {"precinct": list(precincts)}
        whole = SimpleNamespace(rankings=about[0], about=about[1])
        tell_of_sample(SimpleNamespace(slates_by={"precinct": table}), whole)
        return capsys.readouterr().err.strip()

    said = tell([900, 1100], "Hill", "Dale", "", "Hill")
    assert said.endswith("table by 'precinct' is of 2,000 judges who were drawn, of 2,500")
    said = tell([1, 2], "Hill", "Dale", "Moor", "Fen", "")
    assert said.endswith("of 2,500, and 2 of 4 have none of them: draw more, --sample N")


def test_names_of_tables():
    names = names_of_tables(["a/b", "A:B", "..", "Stimmbezirk", "a_b"])
    stems = ["a_b", "A_B 2", "column", "Stimmbezirk", "a_b 3"]
    assert names == [f"slates_by/{x}.csv" for x in stems]


def test_several_files_share_a_table_of_slates(lists, monkeypatch, capsys):
    """Each has some of the candidates only; one without a slate is refused by itself."""
    monkeypatch.setattr(predictive_checks, "posterior_predictive_checks", lambda *_: None)

    def sample(session, options, rankings, *_):
        mcmc = fabricated_weights_mcmc(rankings, 3, draws=20)
        return Sampled(mcmc, "length", (60, 60))

    monkeypatch.setattr(fit, "_sample", sample)
    ballots = Path("lists.csv").read_text()
    Path("other.csv").write_text(ballots.replace("b3", "x:9"))
    Path("third.csv").write_text(ballots.replace("b3", "zed"))
    Path("mine.csv").write_text(f"{TABLE}x:9,B\n")
    command = [*FIT, "--slates", "mine.csv"]
    command[2:2] = ["other.csv", "third.csv"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "mine.csv: 'zed' has no slate" in said
    assert "votekit.json: VoteKit does not allow some names: 'x:9' as 'x-9'" in said
    for name, last in (("lists", "b3"), ("other", "x-9")):
        config = json.loads(Path(f"out/{name}/votekit.json").read_text(encoding="utf-8"))
        assert sorted(config["slate_to_candidates"]["B"]) == ["b1", "b2", last]
    assert not Path("out/third").exists()


def test_pairs_are_refused_at_once(capsys):
    rows = ["judge,winner,loser", *(f"{k},{x}1,{x}2" for k in range(3) for x in "ab")]
    Path("pairs.csv").write_text("\n".join(rows) + "\n")
    slates = "item,slate\na1,A\na2,A\nb1,B\nb2,B\n"
    Path("mine.csv").write_text(slates)
    command = ["fit", "pairs.csv", "--layout", "pairs", "--judge", "judge", "--out", "out"]
    assert main([*command, "--slates", "mine.csv"]) == 2
    assert "pairs that were compared have no places" in capsys.readouterr().err
    assert not Path("out").exists()
