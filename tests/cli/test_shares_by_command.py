"""``fit --shares-by``: shares of groups at values of columns of the judges."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.command_line import QUICK_FIT, expect_error, rows_of
from helpers.fabricated import as_run, labels_by_first_item
from jax import random

from numpyro_rankings import WeightedRankings, judge_covariates, read_survey, shares_by
from numpyro_rankings.cli import assignments, fit, main
from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.cli.fit_options import naming_options, parse_options
from numpyro_rankings.cli.kept import read_kept
from numpyro_rankings.cli.program import make_parser
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.cli.shares import by_covariates
from numpyro_rankings.infer import TemperedMixture
from numpyro_rankings.posterior import predictive_checks
from numpyro_rankings.run.fingerprint import Fingerprint
from numpyro_rankings.run.same_run import _data_differences
from numpyro_rankings.words.commands import compare_command

FIT = ["fit", "lists.csv", "--layout", "orders", *QUICK_FIT, "--out", "out"]
BY = [*FIT, "--model", "plackett-luce", "--components", "2", "--shares-by", "region,age"]
ITEMS = ["ann", "bob", "cid"]


@pytest.fixture
def survey():
    """A file of lists, of whose judges there are a region and an age."""
    rng = np.random.default_rng(0)
    lines = ["1,2,3,region,age"]
    for k in range(60):
        order = [ITEMS[i] for i in rng.permutation(3)]
        lines.append(",".join([*order, "north" if k % 3 else "south", str(20 + k % 40)]))
    Path("lists.csv").write_text("\n".join(lines) + "\n")
    return read_survey("lists.csv", "orders", about=("region", "age"))


def test_the_judges_keep_what_is_known_of_them(survey):
    made, covariates = by_covariates("lists.csv", survey, ("region",))
    rows = np.asarray(made.rankings.row_index)[made.label_index]
    before = np.asarray(survey.rankings.row_index)[survey.label_index]
    lists = np.asarray(made.rankings.orderings)[rows]
    np.testing.assert_array_equal(lists, np.asarray(survey.rankings.orderings)[before])
    own = np.asarray(covariates.design)[np.asarray(covariates.cells)[made.label_index], 0]
    np.testing.assert_array_equal(own > 0, np.array(survey.about["region"]) == "south")


def test_a_note_names_numbers_that_may_be_codes(survey, capsys):
    coded = survey._replace(about=survey.about | {"ward": ["1", "2", "3"] * 20})
    _, covariates = by_covariates("lists.csv", coded, ("ward", "age"), tells=True)
    assert covariates.columns == ("ward", "age")
    assert "takes ward as numbers with a linear effect: if these" in capsys.readouterr().err


def test_table_and_page_say_what_python_says(survey, monkeypatch, capsys):
    monkeypatch.setattr(predictive_checks, "posterior_predictive_checks", lambda *_: None)
    made, covariates = by_covariates("lists.csv", survey, ("region", "age"))
    rng, shape = np.random.default_rng(1), (2, 20)
    labels, sizes = labels_by_first_item(rng, made.rankings, 2, shape)
    z = {
        "assignments": labels.astype(np.int8),
        "cluster_sizes": sizes,
        "num_clusters": (sizes > 0).sum(-1),
        "weights": rng.dirichlet([1.0, 2.0, 3.0], (*shape, 2)),
        "shares": rng.dirichlet([20.0, 30.0], shape),
        "share_effects": rng.normal(size=(*shape, 2, 2)),
        "alpha": np.ones(shape),
        "log_joint": rng.normal(-100, 1, shape),
    }
    kernel, data = TemperedMixture("plackett-luce", 2), (made.rankings, covariates)
    mcmc = as_run(kernel, z, data, np.ones(shape), np.zeros(shape, bool))
    given = []

    def sample(*arguments):
        given.append(arguments[3])
        return Sampled(mcmc, "length", (60, 60))

    monkeypatch.setattr(fit, "_sample", sample)
    assert main(BY) == 0
    assert given[0].columns == covariates.columns == ("region: south", "age")
    shown = capsys.readouterr().out
    assert "shares_by.csv" in shown and "region: north" in shown
    groups = [row for row in rows_of("out/clusters.csv") if row["holds"] == "yes"]
    # the draws of chains that disagree have weights, also in the results
    kept = read_kept(Path("out"))
    rows, found = rows_of("out/shares_by.csv"), shares_by(kept.draws, None, kept.labels)
    assert len(rows) == len(found.value) * len(groups) == 4 * len(groups) > 4
    for k, group in enumerate(groups):
        own = [row for row in rows if row["cluster"] == group["cluster"]]
        assert [float(row["share"]) for row in own] == pytest.approx(found.share[:, k], abs=1e-4)
        low = [float(row["difference_low"]) for row in own]
        assert low == pytest.approx(found.difference_interval[:, k, 0], abs=1e-4)
    assert {row["judges"] for row in rows if row["value"] == "south"} == {"20"}
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "<h2>Shares by region and age</h2>" in page and "region: south" in page
    assert "shares that depend on region and age" in page
    # the judges of the file are where they were
    assigned = rows_of("out/assignments.csv")
    assert [row["region"] for row in assigned] == survey.about["region"]
    assert [row["ordering"] for row in assigned[:2]] == [
        " > ".join(line.split(",")[:3]) for line in Path("lists.csv").read_text().split("\n")[1:3]
    ]
    # new judges count as average, which is said
    assert main(["assign", "out", "lists.csv", "--out", "new.csv"]) == 0
    assert "all judges count as average in these columns" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shares-by", "region"], "number of groups from 2 on: give --components K"),
        (["--shares-by", "region", "--components", "auto"], "that --components auto found"),
        (["--shares-by", "region", "--components", "1"], "from 2 on"),
        (["--shares-by", "region", "--components", "2", "--sampler", "beta"], "leave --sampler"),
        (
            ["--shares-by", "region", "--model", "gamma-process"],
            "--shares-by goes with --model mallows or plackett-luce",
        ),
        (["--shares-by", "party", "--components", "2"], "party"),
        (["--shares-by", "gap", "--components", "2"], "row 3 has nothing in the column 'gap'"),
        (["--shares-by", "same", "--components", "2"], "'same' is 'x' in all rows"),
    ],
)
def test_what_is_refused(survey, capsys, options, message):
    lines = Path("lists.csv").read_text().splitlines()
    gaps = ["gap,same", "a,x", ",x", *("b,x" for _ in lines[3:])]
    Path("lists.csv").write_text("".join(f"{a},{b}\n" for a, b in zip(lines, gaps, strict=True)))
    expect_error(capsys, [*FIT, "--about", "age,region,gap,same", *options], [message])


def test_it_goes_with_a_file_of_rankings_alone(capsys):
    expect_error(capsys, ["fit", "--shares-by", "region", "--components", "2"], ["with a FILE"])
    rows = ["a,b,c,region", *("1,1,2,n" if k % 2 else "1,2,3,s" for k in range(10))]
    Path("ties.csv").write_text("\n".join(rows) + "\n")
    command = ["fit", "ties.csv", "--layout", "ranks", "--shares-by", "region", "--out", "out"]
    expect_error(
        capsys,
        [*command, "--components", "2"],
        ["--shares-by is for rankings alone: leave it out, or read the file with --ties drop"],
    )


def test_another_command_goes_without_it():
    command = "numpyro-rankings fit lists.csv --shares-by region --components 2 --about region"
    assert compare_command(command) == "numpyro-rankings compare lists.csv --about region"


def test_data_that_differ_on_resume_are_named(survey):
    """What a store says of the arguments of its kernel is said of the options that give them."""

    def message(options, *data):
        options = parse_options(make_parser().parse_args(["fit", "l.csv", *options.split()]))
        options = replace(options, file="l.csv")
        described = [
            {f"argument {i}": Fingerprint(True).of_argument(x) for i, x in enumerate(one, 1)}
            for one in data
        ]
        with pytest.raises(UserError) as error, naming_options(options):
            raise UserError(f"out.run: {'; '.join(_data_differences(*described))}")
        return str(error.value).removeprefix("out.run: ")

    lists, frame = survey.rankings, {"x": np.arange(60) % 7, "y": ["a", "b", "c"] * 20}
    x, y = (judge_covariates(lists, frame, name)[:2] for name in "xy")
    shares = "--components 2 --shares-by x"
    assert message(shares, x, y) == "the data of --shares-by differ"
    one, two = (WeightedRankings.of(lists, 1 + np.arange(lists.num_rows) % k) for k in (3, 4))
    weight = "--components 2 --weight w"
    assert message(weight, (one,), (two,)) == "the data of l.csv --weight w differ"
    assert message("", (lists,), (lists.unique().split(random.key(0), 0.5)[0],)) == (
        "the data of l.csv differ"
    )
    worths = "--model plackett-luce --worths-by items.csv"
    table, other = (lists, np.zeros((3, 9))), (lists, np.ones((3, 9)))
    assert message(worths, table, other) == "the data of --worths-by differ"


def test_the_package_has_it(survey):
    frame = {"region": [survey.about["region"][k] for k in np.argsort(survey.label_index)]}
    made = judge_covariates(survey.rankings, frame, "region")
    assert made.covariates.terms[0].levels == ("north", "south")


def test_all_judges_of_a_sample_count_as_average_and_it_is_said(monkeypatch):
    monkeypatch.setattr(assignments, "_groups_of", lambda *_: None)
    monkeypatch.setattr(assignments, "_of_all", lambda *_: {})
    whole = SimpleNamespace(rankings=SimpleNamespace(num_rankings=90, kind="rankings"))
    for shares, said in (
        (None, "groups of all"),
        ("shares", "who count there as average in the columns"),
    ):
        found = SimpleNamespace(total=60, reference="some", num_components=2, shares_by=shares)
        in_words = assignments.assigned(found, None, whole).in_words
        assert said in in_words
        assert ("average" in in_words) == (shares is not None)
