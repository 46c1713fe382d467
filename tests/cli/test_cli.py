"""The command line end to end on a small file, and every kind of bad input."""

import html
import os
import subprocess
import sys

import arviz as az
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.command_line import FEW_DRAWS, QUICK_FIT, SOI, expect_error, rows_of, run
from helpers.fabricated import fabricated_mcmc

from numpyro_rankings import diagnostics_table, read_rankings, reference_partition
from numpyro_rankings.cli import capacity, fit, results
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.posterior import diagnostics, membership_probability
from numpyro_rankings.posterior.diagnostics import STACKING_WEIGHTS
from numpyro_rankings.posterior.partitions import canonical_labels, evenly


@pytest.fixture
def no_sampling(monkeypatch):
    """Everything but the sampling, which takes long to compile.

    :return: further arguments of the fabricated draws, to be changed before the command.
    """
    further = {}

    def sample(session, model, rankings, _, thin, __):
        length = session.plan.length
        sizes = model.components, model.max_clusters, session.plan.chains, length.draws // thin
        mcmc = fabricated_mcmc(rankings, *sizes, **further)
        return Sampled(mcmc, "length", (length.num_sweeps, length.draws))

    monkeypatch.setattr(fit, "_sample", sample)
    return further


def _needs_blocs(rows, data):
    """Whether there are blocs, as docs/reading.rst says of an unknown number of groups."""
    return len(rows) > 4 or bool(diagnostics_table(data)["r_hat"].max() > 1.05)


def _questions(with_blocs):
    """Those at the top of the page about trust."""
    if with_blocs:
        return "How many blocs?", "Can I trust the blocs?", "Can I trust the groups?"
    return ("Can I trust it?",)


@pytest.mark.parametrize("is_real", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_fit_writes_its_files(small, capsys, request, is_real):
    """Of a real run too, which takes long to compile; quick ones are those of Plackett–Luce.

    The chains of so short a real run may disagree: then there are blocs.
    """
    if not is_real:
        request.getfixturevalue("no_sampling")
    assert run("fit", "small.soi", *QUICK_FIT, "--out", "out", "--seed", 3) == 0
    printed = capsys.readouterr().out
    rows, data = rows_of("out/clusters.csv"), az.from_netcdf("out/posterior.nc")
    with_blocs = _needs_blocs(rows, data)
    files = ["assignments.csv", "clusters.csv", "posterior.nc", "report.html"]
    assert sorted(os.listdir("out")) == sorted([*files, *["blocs.csv"] * with_blocs])
    assert sorted(os.listdir()) == ["out", "small.soi"]
    assert "40 rankings of 4 items" in printed
    assert "R-hat" in printed and "report.html" in printed
    assert "in all, are those of the grouping that agrees best" in " ".join(printed.split())

    assert rows[0]["cluster"] == "1"
    assert sorted(rows[0]["consensus"].split(" > ")) == ["Ann <A>", "Bob", "Cid", "Dee"]
    for row in rows:
        assert float(row["size_low"]) <= float(row["size_high"]) <= 40
        for stage in (1, 2, 3):
            low, high = float(row[f"theta_{stage}_low"]), float(row[f"theta_{stage}_high"])
            assert 0 <= low <= high

    assert data["posterior"]["assignments"].shape == (2, 40, 40)
    people = rows_of("out/assignments.csv")
    by_chain = data["posterior"]["assignments"].values
    # chains that disagree, as those of so short a run may, are weighted
    weights = data["posterior"].attrs.get(STACKING_WEIGHTS, np.ones(2))
    chosen = [x[evenly(40, round(40 * w))] for x, w in zip(by_chain, weights, strict=True)]
    draws = np.concatenate(chosen)
    expected = reference_partition(draws).labels
    number = np.array([int(person["cluster"]) for person in people])
    np.testing.assert_array_equal(canonical_labels(number), canonical_labels(expected))
    probability = [float(person["probability"]) for person in people]
    np.testing.assert_allclose(probability, membership_probability(draws, expected), rtol=1e-3)
    assert [person["ranking"] for person in people] == [str(k) for k in range(1, 41)]
    rankings = read_rankings("small.soi")
    last = np.asarray(rankings.orderings)[rankings.row_index[-1]]
    assert people[-1]["ordering"] == " > ".join(rankings.items[i] for i in last[last >= 0])
    assert list(data["posterior"]["item"].values) == ["Ann <A>", "Bob", "Cid", "Dee"]
    assert "small.soi" in data.attrs["command"]
    if with_blocs:
        chosen = [row for row in rows_of("out/blocs.csv") if row["chosen"] == "yes"]
        bloc = [int(person["bloc"]) for person in people]
        assert [int(row["bloc"]) for row in chosen] == list(range(1, len(chosen) + 1))
        assert [int(row["members"]) for row in chosen] == [
            bloc.count(int(row["bloc"])) for row in chosen
        ]
    else:
        assert "bloc" not in people[0]

    page = open("out/report.html", encoding="utf-8").read()
    for expected in (
        *_questions(with_blocs),
        "Who is in the groups",
        "Does the model fit",
        "Ann &lt;A&gt;",
        "R-hat",
        "--seed 3",
        "the grouping that agrees best with all draws",
        "That of 95% of the draws is at most",
    ):
        assert expected in page
    assert page.count("data:image/svg+xml;base64,") >= 6
    assert page.count("<table") >= 2
    for forbidden in ("http://", "https://", "<script", "<link", "Ann <A>"):
        assert forbidden not in page


SURVEY = "id;region;age;Tea;Coffee;Cocoa\n" + "".join(
    f"r{i:02};{'NS'[i % 2]};{20 + i};{';'.join(ranks)}\n"
    for i, ranks in enumerate(
        [("1", "2", "3"), ("2", "1", ""), ("", "2", "1"), ("1", "2", "3")] * 5
    )
)


# as many rankings, distinct ones, items and places as SOI has, for which programs are compiled
LIKE_SOI = "id;region;age;Tea;Coffee;Cocoa;Water\n" + "".join(
    f"r{i:02};{'NS'[i % 2]};{20 + i};{ranks}\n"
    for i, ranks in enumerate(["1;2;3;4", "2;1;;", ";2;1;", "4;3;2;1", ";;;1"] * 8)
)


def test_fit_keeps_the_judges_of_a_survey(tmp_path, monkeypatch, capsys, no_sampling):
    (tmp_path / "survey.csv").write_text(LIKE_SOI)
    monkeypatch.setattr(diagnostics, "ESS_BAD", 0)
    no_sampling["merge_every"] = 4  # in a quarter of the draws one of three groups is missing
    read = ["survey.csv", "--layout", "ranks", "--judge", "id", "--about", "region,age"]
    assert run("fit", *read, *QUICK_FIT, "--out", "out") == 0
    shown = capsys.readouterr()
    people = rows_of("out/assignments.csv")
    assert [x["judge"] for x in people] == [f"r{i:02}" for i in range(40)]
    assert [x["age"] for x in people] == [str(20 + i) for i in range(40)]
    assert [x["ordering"] for x in people[:3]] == [
        "Tea > Coffee > Cocoa > Water",
        "Coffee > Tea",
        "Cocoa > Coffee",
    ]
    # the fabricated draws put equal rankings together
    of_list = {x["ordering"]: x["cluster"] for x in people}
    assert all(of_list[x["ordering"]] == x["cluster"] for x in people) and len(of_list) == 5

    # sizes are the same in both files, on the screen and on the page
    clusters = rows_of("out/clusters.csv")
    assert [float(row["presence"]) for row in clusters] == [1.0, 1.0, 0.75]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for row in clusters:
        members = sum(x["cluster"] == row["cluster"] for x in people)
        assert int(row["members"]) == members
        size, share = float(row["size"]), float(row["share"])
        assert share == pytest.approx(size / 40, rel=1e-4)
        bounds = float(row["size_low"]), float(row["size_high"])
        low, high = (f"{100 * x / 40:.1f}" for x in bounds)
        assert bounds[0] == 0 if row["presence"] != "1" else bounds[0] > 0
        words = f"{size:,.0f}, {share:.1%} of all (90% interval {low}–{high}%)"
        assert f"group {row['cluster']}: {words}" in page and f"<span>{words}</span>" in page
        together = np.mean(
            [float(x["probability"]) for x in people if x["cluster"] == row["cluster"]]
        )
        assert float(row["cohesion"]) == pytest.approx(together, rel=1e-3)
        lines = shown.out.partition("group     size")[2].splitlines()
        place = next(i for i, x in enumerate(lines) if x.split()[:1] == [row["cluster"]])
        assert lines[place].split()[1:] == [
            f"{size:,.0f}",
            f"{share:.1%}",
            f"({low}–{high}%)",
            f"{float(row['presence']):.0%}",
            f"{float(row['cohesion']):.0%}",
            f"{float(row['agreement']):.0%}",
        ]
        assert f"found in {float(row['presence']):.0%}" in page or row["presence"] == "1"
        assert f"agreement {float(row['agreement']):.0%}" in page
        said = " ".join(" ".join(lines[place + 1 :]).split())
        assert said.startswith(row["wants"]) and row["holds"] == "yes"
        assert html.escape(row["wants"]) in page
    left = 1 - sum(float(row["share"]) for row in clusters)
    line = f"{left:.1%} are in groups that do not hold"
    for text in (page, shown.out):
        assert (line in text) == (left >= 0.005)
    for part in ("Who the judges are", "<h3>region</h3>", "<h3>age</h3>", "median"):
        assert part in page


def test_describe(tmp_path, capsys):
    (tmp_path / "survey.csv").write_text(SURVEY.replace("Cocoa", "tea "))
    read = ["survey.csv", "--layout", "ranks", "--judge", "id", "--about", "region,age"]
    assert run("describe", *read) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in (
        "20 rankings of 3 items, 3 of them different",
        "10 rank all items (50%)",
        "2: 10, 3: 10",
        "Tea 15 75% 10 50% 1.33",
        "1 Tea – 50 75",  # 10 of 20 above coffee, 15 of 20 above cocoa
        "2 Coffee 50 – 75",
        "region: N 10, S 10",
        "age: 20 to 39, median 29.5",
        "these names may mean the same item: 'Tea', 'tea'; --aliases joins them",
        "10 judges rank the items in the order of the columns: r00, r03, r04, r07, r08 and 5 more",
    ):
        assert line in lines
    assert run("describe", "survey.csv") == 2
    assert "the layout is needed" in capsys.readouterr().err
    assert run("describe", "--layout", "ranks") == 2
    assert "--layout goes with a FILE" in capsys.readouterr().err
    for names in ("x,x,y", "x,,y", ""):
        assert run("describe", "survey.csv", "--layout", "ranks", "--items", names) == 2
        assert "the list of names" in capsys.readouterr().err
    (tmp_path / "long.csv").write_text("judge,item,rank\na,x,1\na,y,2\nb,z,1\n")
    assert run("describe", "long.csv") == 0
    notes = capsys.readouterr().err
    assert "note: read as --layout long" in notes and "read as ranked below the others" in notes
    assert run("describe") == 0
    assert "15,449 rankings of 5 items, 205 of them different" in capsys.readouterr().out


# as many rankings, distinct ones, items and places as SOI has, for which programs are compiled
EXPORT = (
    "Timestamp,Rank [Tea],Rank [Coffee],Rank [Cocoa],Rank [Water],Rate [Tea]\n"
    "3/1/2024,,,,,5\n"
    + "".join(
        f"3/1/2024,{','.join(ranks.split(';'))},5\n"
        for ranks in ["1st;2nd;3rd;4th", "2nd;1st;;N/A", ";2nd;1st;", "4th;3rd;2nd;1st", ";;;1st"]
        * 8
    )
)


def test_fit_an_export_of_a_survey_tool(tmp_path, capsys, no_sampling):
    (tmp_path / "export.csv").write_text(EXPORT)
    read = ["export.csv", "--layout", "ranks", "--columns", "Rank*"]
    assert run("fit", *read, *QUICK_FIT, "--out", "out") == 2
    shown = capsys.readouterr().err
    assert "export.csv:4: column 'Water'" in shown and "--missing N/A" in shown
    assert not (tmp_path / "out").exists()
    assert run("fit", *read, "--missing", "N/A", *QUICK_FIT, "--out", "out") == 0
    notes = capsys.readouterr().err
    for part in (
        "are the items Tea, Coffee, Cocoa, Water; 2 other columns are left out",
        "ranks in words: '1st' is 1",
        "'N/A' in 8 cells",
        "1 judge ranks nothing and is left out: export.csv:2",
    ):
        assert part in notes
    people = rows_of("out/assignments.csv")
    assert [x["row"] for x in people] == [str(line) for line in range(3, 43)]
    assert people[1]["ordering"] == "Coffee > Tea"


# as many rankings, distinct ones, items and places as SOI has, for which programs are compiled
COUNCIL = """\
4,2,
14,1,2,3,4,
4,1,2,
12,4,3,2,
6,4,
4,2,1,3,
"Candidate 1","Ann","Green Party (Gr)",
"Candidate 2","Bob","",
"Candidate 3","Cid","Labour",
"Candidate 4","Dee","Green Party (Gr)",
"A ward",
"""


def test_parties_of_the_items_are_in_the_results(tmp_path, capsys, no_sampling):
    (tmp_path / "ward.csv").write_text(COUNCIL)
    party = {"Ann": "Green Party (Gr)", "Bob": "", "Cid": "Labour", "Dee": "Green Party (Gr)"}
    shown = {"Ann": "Ann (Gr)", "Bob": "Bob", "Cid": "Cid (Labour)", "Dee": "Dee (Gr)"}
    assert run("fit", "ward.csv", *QUICK_FIT, "--out", "out") == 0
    first = rows_of("out/clusters.csv")[0]
    order = first["consensus"].split(" > ")
    assert first["consensus_party"].split(" > ") == [party[name] for name in order]
    assert rows_of("out/assignments.csv")[0]["ordering"] == "Ann > Bob > Cid > Dee"
    data = az.from_netcdf("out/posterior.nc")
    assert list(data["posterior"]["item"].values) == list(party)
    page = html.unescape(open("out/report.html", encoding="utf-8").read())
    center = first["most_frequent_center"].split(" > ")
    assert " > ".join(map(shown.get, center)) in page and " > ".join(center) not in page
    printed = capsys.readouterr().out
    assert "Ann (Gr)" in printed and "Cid (Labour)" in printed


def test_describe_an_order_in_one_cell(tmp_path, capsys):
    (tmp_path / "forms.csv").write_text('ID,Order\n1,"A, x;B;C;"\n2,"C;B;A, x;"\n')
    assert run("describe", "forms.csv", "--layout", "cell", "--columns", "Order") == 0
    shown = capsys.readouterr()
    assert "2 rankings of 3 items" in shown.out and "separated by ';'" in shown.err
    assert run("describe", "forms.csv", "--columns", "Order", "--separator", ">") == 2
    assert "forms.csv:2: column 'Order': the separator '>' is in no cell" in capsys.readouterr().err
    assert run("describe", "--no-highest-first") == 2
    assert "--highest-first goes with a FILE" in capsys.readouterr().err


@pytest.mark.slow
def test_same_seed_same_results(small):
    for out in ("first", "again"):
        command = ["fit", "small.soi", *PLACKETT_LUCE["gamma-process"], *FEW_DRAWS]
        assert run(*command, "--no-progress", "--out", out, "--seed", 3) == 0
    first, again = small / "first", small / "again"
    assert (first / "clusters.csv").read_text() == (again / "clusters.csv").read_text()
    one, two = (az.from_netcdf(out / "posterior.nc")["posterior"] for out in (first, again))
    np.testing.assert_array_equal(one["weights"], two["weights"])
    assert len(np.unique(one["weights"])) > 40


def test_force_replaces_the_four_files_only(small, no_sampling, plain_page, monkeypatch):
    os.mkdir("out")
    (small / "out" / "mine.txt").write_text("mine")
    (small / "out" / "report.html").write_text("old, of numpyro-rankings")
    assert run("fit", "small.soi", *QUICK_FIT, "--out", "out") == 2
    assert (small / "out" / "report.html").read_text().startswith("old")
    assert run("fit", "small.soi", *QUICK_FIT, "--out", "out", "--force") == 0
    assert (small / "out" / "mine.txt").read_text() == "mine"
    assert "How this was made" in (small / "out" / "report.html").read_text()
    assert sorted(os.listdir("out")) == sorted([*results.FILES, "mine.txt"])


def test_draws_that_cannot_be_written(small, no_sampling, plain_page, monkeypatch, capsys):
    """They are written beside the report, whose error would be told."""

    def fails(data, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpyro_rankings.posterior.inference_data.save_inference_data", fails)
    assert run("fit", "small.soi", *QUICK_FIT, "--out", "out") == 2
    assert "cannot write to out: No space left on device" in capsys.readouterr().err
    assert not (small / "out").exists()


@pytest.mark.slow
def test_nested_output_folder_and_bundled_data(small, no_sampling):
    assert run("fit", *QUICK_FIT, "--draws", "8", "--out", "a/b/c") == 0
    assert sorted(os.listdir("a/b")) == ["c"]
    page = (small / "a/b/c/report.html").read_text()
    assert "15,449 rankings" in page
    assert "Diaconis" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["--components", "1", "--nu", "1,2,0.5", "--r", "1,1,1"],
        ["--sampler", "beta", "--approximate", "--init", "random", "--chains", "1"],
        ["--assignment", "sequential", "--alpha", "2.5", "--thin", "4"],
    ],
    ids=lambda options: " ".join(options),
)
def test_options(small, options, capsys):
    assert run("fit", "small.soi", *QUICK_FIT, *options, "--out", "out") == 0
    no_effect = "--max-clusters has no effect with --components 1"
    assert (no_effect in capsys.readouterr().err) == ("--components" in options)
    posterior = az.from_netcdf("out/posterior.nc")["posterior"]
    assert posterior.sizes["draw"] == (10 if "--thin" in options else 40)


SETTINGS = {
    "": {"alpha": 1, "num_components": None, "nu": 1, "assignment": "parallel"},
    "--components 3 --alpha 2.5": {"num_components": 3, "alpha": 2.5, "init": None},
    "--components 2 --init search": {"num_components": 2, "init": "search"},
    "--nu 1,2,0.5 --r 2 --max-clusters 7": {"nu": [1, 2, 0.5], "r": 2, "max_clusters": 7},
    "--alpha gamma(2,.5) --assignment sequential --init random": {
        "alpha": ("Gamma", 2, 0.5),
        "assignment": "sequential",
        "init": "random",
    },
    "--sampler beta": {"class": "BetaGibbs", "exact": True},
    "--model plackett-luce --shape 2": {
        "class": "PlackettLuceGibbs",
        "shape": 2,
        "num_components": 1,
    },
    "--model plackett-luce --components 3 --alpha 4": {
        "class": "PlackettLuceGibbs",
        "num_components": 3,
        "alpha": 4,
    },
    "--model gamma-process --sigma 0.5 --alpha flat": {
        "class": "GammaProcessPlackettLuceGibbs",
        "sigma": 0.5,
        "alpha": "FlatLog",
    },
    "--model dp-plackett-luce": {
        "class": "DPPlackettLuceGibbs",
        "alpha": ("Gamma", 1, 0.1),
        "phi": ("Gamma", 1, 0.01),
        "gamma": ("Gamma", 1, 1),
        "max_clusters": 64,
    },
    "--model dp-plackett-luce --alpha 3 --phi flat --gamma gamma(2,3) --max-clusters 9": {
        "class": "DPPlackettLuceGibbs",
        "alpha": 3,
        "phi": "FlatLog",
        "gamma": ("Gamma", 2, 3),
        "max_clusters": 9,
    },
    "--sampler beta --approximate": {"class": "BetaGibbs", "exact": False},
}


@pytest.mark.parametrize("options", list(SETTINGS))
def test_options_reach_the_kernel(small, monkeypatch, options):
    """Up to the first sweep: what the kernel and NumPyro are given."""
    made: dict = {}

    class Stop(Exception):
        pass

    def recorder(name):
        def init(self, **settings):
            made.update({"class": name, **settings})
            raise Stop

        return type(name, (), {"__init__": init})

    for name in {"SliceGibbs"} | {value.get("class", "SliceGibbs") for value in SETTINGS.values()}:
        monkeypatch.setattr(f"numpyro_rankings.infer.{name}", recorder(name))
    with pytest.raises(Stop):
        run("fit", "small.soi", *options.split())
    for name, prior in made.items():
        if hasattr(prior, "rate"):
            made[name] = (type(prior).__name__, prior.concentration, prior.rate)
        elif hasattr(prior, "log_prob"):
            made[name] = type(prior).__name__
    for name, value in {"class": "SliceGibbs", **SETTINGS[options]}.items():
        got = made[name]
        assert (got.tolist() if hasattr(got, "tolist") else got) == value


PLACKETT_LUCE = {
    "gamma-process": ["--model", "gamma-process", "--sigma", "0.5"],
    "plackett-luce": ["--model", "plackett-luce", "--components", "2"],
    "dp-plackett-luce": ["--model", "dp-plackett-luce", "--max-clusters", "32"],
}


@pytest.mark.slow
@pytest.mark.parametrize("model", PLACKETT_LUCE)
def test_plackett_luce(small, capsys, model):
    quick = [*FEW_DRAWS, "--no-progress", "--out", "out"]
    assert run("fit", "small.soi", *PLACKETT_LUCE[model], *quick) == 0
    assert "40 rankings of 4 items" in capsys.readouterr().out
    rows = rows_of("out/clusters.csv")
    for row in rows:
        assert sorted(row["consensus"].split(" > ")) == ["Ann <A>", "Bob", "Cid", "Dee"]
        weights = {name: float(row[f"weight of {name}"]) for name in ("Ann <A>", "Bob", "Cid")}
        names = [*weights, "Dee"]
        total = sum(float(row[f"weight of {name}"]) for name in names)
        total += float(row.get("unseen_weight", 0.0))
        assert total == pytest.approx(1.0, abs=1e-4)
        for name in names:
            low, high = (float(row[f"weight of {name}_{end}"]) for end in ("low", "high"))
            assert 0 <= low <= high <= 1
    data = az.from_netcdf("out/posterior.nc")
    posterior = data["posterior"]
    assert ("unseen_weight" in posterior) == (model != "plackett-luce")
    # neither one population nor so few components have blocs
    with_blocs = model == "dp-plackett-luce" and _needs_blocs(rows, data)
    assert os.path.exists("out/blocs.csv") == with_blocs
    page = open("out/report.html", encoding="utf-8").read()
    for expected in (
        *_questions(with_blocs),
        "Does the model fit",
        "What each item weighs",
        "Ann &lt;A&gt;",
        "R-hat",
    ):
        assert expected in page
    assert ("Who goes with whom" in page) == ("cluster_sizes" in posterior)
    assert "Metropolis" not in page and "Ann <A>" not in page


BAD_FILES = {
    "duplicate": (SOI.replace("4: 2,1,3", "4: 2,1,2"), ["bad.soi:15", "Bob"]),
    "unknown item": (SOI.replace("4: 2,1,3", "4: 2,1,7"), ["bad.soi:15", "7"]),
    "empty file": ("", ["bad.soi", "empty"]),
    "empty ranking": (SOI.replace("4: 2,1,3", "4: "), ["bad.soi"]),
    "header": (SOI.replace("NUMBER VOTERS: 40", "NUMBER VOTERS: 41"), ["bad.soi", "41", "40"]),
    "negative count": (SOI.replace("4: 2,1,3", "-4: 2,1,3"), ["bad.soi", "-4"]),
    "fractional count": (SOI.replace("4: 2,1,3", "4.5: 2,1,3"), ["bad.soi", "4.5"]),
    "nan": (SOI.replace("4: 2,1,3", "4: 2,nan"), ["bad.soi", "nan"]),
    "one item": (
        "# NUMBER ALTERNATIVES: 1\n# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 1\n"
        "# ALTERNATIVE NAME 1: Ann\n3: 1\n",
        ["bad.soi"],
    ),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\x00\x00", ["bad.soi", "not a text file"]),
    "latin-1": ("# ALTERNATIVE NAME 1: Zoë\n".encode("latin-1"), ["bad.soi"]),
}


@pytest.mark.parametrize("name", list(BAD_FILES))
def test_bad_files_end_in_one_line(small, capsys, name):
    content, fragments = BAD_FILES[name]
    (small / "bad.soi").write_bytes(content if isinstance(content, bytes) else content.encode())
    expect_error(capsys, ["fit", "bad.soi", *QUICK_FIT, "--out", "out"], fragments)


BAD_ARGUMENTS = {
    "missing file": (["nothing.soi"], ["nothing.soi", "no such file"]),
    "no name": ([""], ["the name of the file is empty"]),
    "alpha of one": (["--components", "1", "--alpha", "2"], ["--alpha has no effect"]),
    "alpha 0": (["--alpha", "0"], ["--alpha must be a positive number, got 0"]),
    "alpha negative": (["--alpha=-1"], ["--alpha must be a positive number, got -1"]),
    "alpha nan": (["--alpha", "nan"], ["--alpha", "nan"]),
    "alpha word": (["--alpha", "lots"], ["--alpha must be a number, got 'lots'"]),
    "alpha prior": (["--alpha", "gamma(1,0)"], ["--alpha must be a positive number, got 0"]),
    "alpha other prior": (["--alpha", "beta(1,1)"], ["gamma(shape,rate)"]),
    "nu": (["--nu", "1,-2"], ["--nu must be a positive number, got -2"]),
    "r": (["--r", "inf"], ["--r must be a positive number, got inf"]),
    "nu for other stages": (["small.soi", "--nu", "1,2"], ["--nu has 2 numbers", "3 stages"]),
    "components": (["--components", "0"], ["--components must be from 1", "got 0"]),
    "draws": (["--draws", "0"], ["--draws must be at least 1, got 0"]),
    "few draws": (["--draws", "10", "--thin", "5"], ["--draws 10 with --thin 5 keeps 2 draws"]),
    "warmup": (["--warmup", "-1"], ["--warmup must be at least 0"]),
    "chains": (["--chains", "two"], ["--chains must be a whole number, got 'two'"]),
    "approximate": (["--approximate"], ["--approximate goes with --sampler beta"]),
    "assignment": (["--sampler", "beta", "--assignment", "parallel"], ["--assignment goes with"]),
    "search": (["--init", "search"], ["--init search goes with --components K"]),
    "other model": (["--model", "plackett-luce", "--nu", "2"], ["--nu goes with --model mallows"]),
    "other models": (
        ["--model", "gamma-process", "--max-clusters", "9"],
        ["--max-clusters goes with --model mallows or plackett-luce or dp-plackett-luce"],
    ),
    "process of weights": (
        ["--model", "plackett-luce", "--components", "dp"],
        ["--components dp goes with mallows", "dp-plackett-luce"],
    ),
    "sigma": (["--model", "gamma-process", "--sigma", "1"], ["--sigma must be", "got '1'"]),
    "small sigma": (["--model", "gamma-process", "--sigma", "1e-5"], ["or a number from 0.001"]),
    "phi": (["--model", "dp-plackett-luce", "--phi", "-1"], ["--phi"]),
    "flat": (["--alpha", "flat"], ["--alpha flat goes with --model gamma-process or"]),
    "model": (["--model", "plackett"], ["--model", "plackett"]),
    "choice": (["--sampler", "nuts"], ["--sampler", "nuts"]),
    "other sampler": (["--sampler", "gibbs"], ["--sampler gibbs goes with --model plackett-luce"]),
    "sampler of Mallows": (
        ["--model", "plackett-luce", "--sampler", "slice"],
        ["--sampler slice goes with --model mallows"],
    ),
    "ladders of a pool": (
        ["--model", "gamma-process", "--sampler", "tempered"],
        ["--sampler goes with --model mallows or plackett-luce"],
    ),
    "ladders of a process": (
        ["--sampler", "tempered"],
        ["--sampler tempered goes with --components K or auto, not with dp"],
    ),
    "alpha of ladders": (
        ["--components", "2", "--sampler", "tempered", "--alpha", "gamma(1,1)"],
        ["--alpha must be a number with --sampler tempered"],
    ),
    "start of ladders": (
        ["--components", "2", "--sampler", "tempered", "--init", "random"],
        ["--init goes with --sampler slice or beta"],
    ),
    "labels of ladders": (
        ["--components", "auto", "--assignment", "parallel"],
        ["--assignment goes with --sampler slice or beta"],
    ),
    "approximate ladders": (["--components", "auto", "--approximate"], ["with --sampler beta"]),
    "auto and slice": (
        ["--components", "auto", "--sampler", "slice"],
        ["--components auto goes with --sampler tempered"],
    ),
    "auto of a pool": (
        ["--model", "dp-plackett-luce", "--components", "auto"],
        ["--components goes with --model mallows or plackett-luce"],
    ),
    "size of auto": (
        ["--components", "auto", "--effective-size", "9"],
        ["--effective-size goes with a number of --components, not with auto"],
    ),
    "size of a chain": (
        ["--components", "2", "--effective-size", "9"],
        ["--effective-size goes with --sampler tempered"],
    ),
    "size 0": (["--effective-size", "0"], ["--effective-size must be a positive number, got 0"]),
    "size of more": (
        ["small.soi", "--components", "2", "--sampler", "tempered", "--effective-size", "41"],
        ["--effective-size must be at most 40, the rankings of small.soi, got 41"],
    ),
    "unknown option": (["--bogus"], ["--bogus"]),
    "memory": (["small.soi", "--draws", "10000000000", "--thin", "1"], ["memory", "--thin"]),
    "output is a file": (["small.soi", "--out", "small.soi"], ["exists and is not a folder"]),
    "output in a file": (["small.soi", "--out", "small.soi/x"], ["cannot write to small.soi/x"]),
    "output exists": (["small.soi", "--out", "."], ["--force"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD_ARGUMENTS))
def test_bad_arguments_end_in_one_line(small, capsys, name):
    arguments, fragments = BAD_ARGUMENTS[name]
    expect_error(capsys, ["fit", *arguments], fragments)


STARTED = ("note:", "starting", "compiling")  # of a command that gets so far


def test_too_few_slots_write_nothing(small, capsys, monkeypatch):
    monkeypatch.setattr(
        fit,
        "_sample",
        lambda *_: Sampled(
            fabricated_mcmc(read_rankings("small.soi"), overflow=0.5), "length", (9, 9)
        ),
    )
    expect_error(
        capsys, ["fit", "small.soi", *QUICK_FIT], ["% of the draws", "use --max-clusters 32"]
    )


def test_a_fit_that_needs_too_much_memory(small, capsys, monkeypatch):
    from numpyro_rankings._system import memory as _memory
    from numpyro_rankings.infer.mallows import memory

    monkeypatch.setattr(_memory, "device_memory", lambda: 100)
    monkeypatch.setattr(memory, "_WORTH_A_LOOK", 0)
    fragments = ["of 16 clusters of 4 items in 2 chains need", "bytes", "lower max_clusters"]
    expect_error(capsys, ["fit", "small.soi", *QUICK_FIT], fragments, STARTED)


def test_a_chain_that_is_not_finite_writes_nothing(small, capsys, monkeypatch):
    """It is told by the first sweep, whether a progress bar is shown or not."""
    from numpyro_rankings.infer import PlackettLuceGibbs

    def overflows(kernel, state, *arguments):
        return state._replace(z={**state.z, "weights": state.z["weights"] * jnp.inf})

    monkeypatch.setattr(PlackettLuceGibbs, "_sweep", overflows)
    arguments = ["fit", "small.soi", "--model", "plackett-luce", "--draws", 10, "--warmup", 2]
    fragments = ["PlackettLuceGibbs has stopped: site 'weights' is not finite", "jax_enable_x64"]
    expect_error(capsys, arguments, fragments, STARTED)


def test_choice_sets_are_for_some_models(small, capsys, monkeypatch):
    from numpyro_rankings import readers
    from numpyro_rankings.rankings import Rankings
    from numpyro_rankings.readers.surveys import survey_of

    offered = np.array([[True, True, False], [True, True, True]])
    rankings = Rankings.from_orderings([[0, 1], [2, 0]], num_items=3, choice_sets=offered)
    monkeypatch.setattr(readers, "read_survey", lambda *_: survey_of(rankings, "test"))
    expect_error(
        capsys,
        ["fit", "small.soi", "--model", "gamma-process"],
        ["small.soi", "choice sets", "was not offered in row 1"],
    )


def test_an_interruption_writes_nothing(small, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "_sample", interrupt)
    assert run("fit", "small.soi", *QUICK_FIT, "--out", "out") == 130
    assert capsys.readouterr().err.strip() == "numpyro-rankings: interrupted, nothing was written"
    assert os.listdir() == ["small.soi"]


def test_many_rankings_are_thinned_and_said_so(small, capsys, monkeypatch):
    """Up to the first sweep."""
    kept = []

    def sample(session, model, rankings, _, thin, __):
        kept.append(session.plan.length.draws // thin)
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "_sample", sample)
    for size in (2**18, 2**20):
        monkeypatch.setattr(capacity, "DRAWS_BYTES", size)
        assert run("fit", "small.soi", *QUICK_FIT, "--draws", "400") == 130
        is_noted = "note: keeping one draw every" in capsys.readouterr().err
        assert is_noted == (size == 2**18)
    assert 100 <= kept[0] < kept[1] == 400


RUN = (
    "--chains --rhat --ess --minutes --resume --warmup --draws --thin --seed --out --force "
    "--no-progress"
)
OPTIONS = {
    "fit": "FILE --model --components --alpha --nu --r --shape --sigma --phi --gamma --sampler "
    "--effective-size --approximate --assignment --init --max-clusters auto path.csv",
    "cluster": "FILE --names --family --noise --spread --concentration --vocab --alpha --discount "
    "--distances --time --graph --hops --decay --sampler --max-clusters",
}


@pytest.mark.parametrize("command", OPTIONS)
def test_help_names_every_option(capsys, command):
    assert run(command, "--help") == 0
    text = capsys.readouterr().out
    for part in (*f"{OPTIONS[command]} {RUN}".split(), *results.FILES, "examples:", "Exit status"):
        assert part in text
    assert run() == 0
    assert command in capsys.readouterr().out


def test_version_and_module():
    done = subprocess.run(
        [sys.executable, "-m", "numpyro_rankings", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("numpyro-rankings ")


def test_arguments_are_parsed_before_anything_heavy_is_loaded():
    code = (
        "import sys; from numpyro_rankings.cli import main; main(['fit', '--help']);"
        "main(['cluster', '--help']); main('cluster x --family gaussian --noise 1'.split());"
        "heavy = 'numpy', 'pandas', 'jax', 'numpyro', 'arviz', 'matplotlib';"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_the_compilation_cache_may_be_missing(tmp_path):
    """An unwritable place for it is no error: nothing is cached."""
    (tmp_path / "file").write_text("")
    code = "from numpyro_rankings.cli.compilation import use_compilation_cache as f; f()"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
