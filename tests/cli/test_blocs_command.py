"""Blocs in what the command ``fit`` prints and writes."""

import os
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from helpers.command_line import QUICK_FIT, rows_of
from helpers.fabricated import fabricated_mcmc, with_groups

from numpyro_rankings import find_blocs, read_survey, words
from numpyro_rankings.cli import fit, fit_options, item_names, main, results
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.posterior import blocs as blocs_module
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report import blocs_in_words, findings_of
from numpyro_rankings.report import findings as module

FIT = ["fit", "lists.csv", "--layout", "orders", *QUICK_FIT, "--out", "out"]


@pytest.fixture
def run_of(plain_page, monkeypatch):
    """Lets the command write results of draws with so many groups."""

    def make(number):
        data = simulate_mallows_mixture(jax.random.key(1), 80, 5, 5, number, 2.0)
        names = [str(x) for x in data.rankings.items]
        rows = np.asarray(data.rankings.orderings)[np.asarray(data.rankings.row_index)]
        lines = ["1st,2nd,3rd,4th,5th", *(",".join(names[i] for i in row) for row in rows)]
        Path("lists.csv").write_text("\n".join(lines) + "\n")
        survey = read_survey("lists.csv", layout="orders")
        rankings, by_label = survey.rankings, np.argsort(survey.label_index)
        labels = np.asarray(data.assignments)[by_label]
        data = data._replace(centers=_renumbered(data, rankings), assignments=labels)
        mcmc = with_groups(fabricated_mcmc(rankings, chains=2, draws=20), data)
        monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
        return mcmc, survey

    return make


def _renumbered(data, rankings):
    """Return the centers in the order of the items of the file."""
    place = {str(name): i for i, name in enumerate(rankings.items)}
    new = np.array([place[str(name)] for name in data.rankings.items])
    return new[np.asarray(data.centers)]


def table(name):
    return rows_of(f"out/{name}")


def content(folder="out"):
    return {x.name: x.read_bytes() for x in Path(folder).iterdir()}


def test_parties_are_beside_the_names_in_blocs(run_of, monkeypatch, capsys):
    _, survey = run_of(6)
    party = dict.fromkeys(survey.rankings.items, "Red Party (Red)")
    survey = survey._replace(items_about={"party": list(party.values())})
    monkeypatch.setattr(fit, "read_file", lambda *_: survey)
    assert main(FIT) == 0
    shown = " ".join(capsys.readouterr().out.split())
    rows = table("blocs.csv")
    assert {row["consensus_party"] for row in rows} == {" > ".join(party.values())}
    for row in rows:
        if row["chosen"] == "yes":
            first = row["consensus"].split(" > ")[0]
            assert f"{first} (Red) before" in shown and row["wants"] not in shown


@pytest.mark.parametrize("ess", [99, 100])
def test_numbers_of_blocs_are_the_same_on_the_screen_and_in_files(run_of, capsys, monkeypatch, ess):
    """Sizes have intervals on the screen if the ESS is at least 100, and in the files always."""
    mcmc, survey = run_of(6)
    made = module.diagnostics_table

    def with_ess(data):
        return made(data).assign(ess_bulk=float(ess), ess_tail=1000.0)

    monkeypatch.setattr(module, "diagnostics_table", with_ess)
    assert main(FIT) == 0
    shown = capsys.readouterr().out
    blocs = findings_of(mcmc, survey.rankings, checks=None).blocs
    rows = table("blocs.csv")
    assert [(int(row["level"]), int(row["bloc"])) for row in rows] == [
        (level, k) for level in range(2, 7) for k in range(1, level + 1)
    ]
    chosen = [row for row in rows if row["chosen"] == "yes"]
    total = survey.rankings.num_rankings
    assert {int(row["level"]) for row in chosen} == {blocs.number}
    for row, bloc in zip(chosen, blocs.blocs, strict=True):
        numbers = {name: float(row[name]) for name in ("size", "share", "certainty", "agreement")}
        bounds = words.interval([float(row["size_low"]), float(row["size_high"])], total)
        line = [row["bloc"], words.size(numbers["size"]), words.share(numbers["share"])]
        line += [f"({bounds})"] if ess == 100 else []
        line += [words.percent(numbers[x]) for x in ("certainty", "agreement")]
        assert line in [x.split() for x in shown.splitlines()]
        assert row["wants"] in shown and row["consensus"] == " > ".join(bloc.consensus)
        assert row["wants"] == blocs_in_words.wants_of_bloc(bloc)
        assert float(row["theta_1"]) == pytest.approx(bloc.concentration[0], rel=1e-5)
    one_line = " ".join(shown.split())
    assert blocs_in_words.what_each_keeps(blocs) in one_line
    for level in blocs.levels[1:]:
        row = next(x for x in rows if int(x["level"]) == level.number)
        assert float(row["kept"]) == pytest.approx(level.kept, rel=1e-5)
        parents = [int(x["parent"]) - 1 for x in rows if int(x["level"]) == level.number]
        np.testing.assert_array_equal(parents, level.parent)
    said = blocs_in_words.verdict_of_blocs(blocs)
    assert said.headline in shown and all(x in one_line for x in said.reasons)
    # they come before the six groups
    assert shown.index(said.headline) < shown.index("found in") < shown.index("Results:")
    assert "assignments.csv, blocs.csv" in shown

    labels = table("assignments.csv")
    names = list(labels[0])
    assert names[names.index("cluster") + 1] == "bloc"
    assert [int(row["bloc"]) - 1 for row in labels] == blocs.labels[survey.label_index].tolist()
    assert names[-2:] == ["probability", "bloc_probability"]
    certainty = np.array([float(row["bloc_probability"]) for row in labels])
    of_each = np.array([int(row["bloc"]) - 1 for row in labels])
    for k, row in enumerate(chosen):  # the mean over the members is the certainty of the bloc
        expected = pytest.approx(float(row["certainty"]), abs=1e-3)
        assert certainty[of_each == k].mean() == expected
    assert (certainty >= 1 / blocs.number).all() and (certainty <= 1).all()
    by_order = {}  # equal rankings are in the same bloc, as surely
    for row in labels:
        said = by_order.setdefault(row["ordering"], (row["bloc"], row["bloc_probability"]))
        assert said == (row["bloc"], row["bloc_probability"])
    members = np.bincount(blocs.labels, minlength=blocs.number)
    assert [int(row["members"]) for row in chosen] == members.tolist()


def test_few_groups_have_blocs_only_if_asked(run_of, capsys):
    run_of(3)
    assert main(FIT) == 0
    assert sorted(os.listdir("out")) == sorted(results.FILES)
    assert "bloc" not in capsys.readouterr().out and "bloc" not in table("assignments.csv")[0]
    assert main([*FIT, "--force", "--blocs", "2"]) == 0
    shown = capsys.readouterr().out
    assert sorted(os.listdir("out")) == sorted([*results.FILES, "blocs.csv"])
    assert {row["level"] for row in table("blocs.csv") if row["chosen"] == "yes"} == {"2"}
    # after the groups, which are few
    assert shown.index("found in") < shown.index("2 blocs keep") < shown.index("Results:")
    # the same draws give the same bytes
    before = content()
    assert main([*FIT, "--force", "--blocs", "2"]) == 0
    after = content()
    for name in ("blocs.csv", "assignments.csv", "clusters.csv"):
        assert after[name] == before[name]
    # and results without blocs leave none of earlier ones
    assert main([*FIT, "--force"]) == 0
    assert sorted(os.listdir("out")) == sorted(results.FILES)


def test_more_blocs_than_groups_do_not_end_the_command(run_of, capsys):
    run_of(3)
    assert main([*FIT, "--blocs", "5"]) == 0
    told = capsys.readouterr()
    words_ = "no blocs are described: --blocs is 5, but the draws have at most 3 groups"
    assert words_ in told.err and "bloc" not in told.out
    assert sorted(os.listdir("out")) == sorted(results.FILES)


def test_blocs_of_others_stay(run_of, capsys):
    run_of(3)
    assert main(FIT) == 0
    Path("out/blocs.csv").write_text("name,bloc\nBob,1\n")
    before = content()
    assert main([*FIT, "--force"]) == 2
    assert "out/blocs.csv was not written by numpyro-rankings" in capsys.readouterr().err
    assert content() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--blocs", "1"], "--blocs must be from 2 to 8, got 1"),
        (["--blocs", "9"], "--blocs must be from 2 to 8, got 9"),
        (["--blocs", "two"], "--blocs must be a whole number, got 'two'"),
        (["--blocs", "2", "--components", "1"], "a single population has no blocs"),
        (["--blocs", "2", "--model", "plackett-luce"], "a single population has no blocs"),
        (["--blocs", "2", "--model", "gamma-process"], "a single population has no blocs"),
        (["--blocs", "4", "--components", "3"], "--blocs must be at most --components 3"),
    ],
)
def test_refused_at_once(capsys, arguments, message):
    assert main(["fit", *arguments]) == 2
    assert message in capsys.readouterr().err and not os.listdir(".")


def test_the_command_cluster_has_no_blocs(capsys):
    assert main(["cluster", "points.csv", "--family", "gaussian", "--blocs", "2"]) == 2
    assert "--blocs" in capsys.readouterr().err


def test_the_most_blocs_are_those_of_the_search():
    assert fit_options.MOST_BLOCS == blocs_module.MOST_BLOCS


def test_several_files_each_have_their_blocs(run_of):
    run_of(3)
    Path("more.csv").write_text(Path("lists.csv").read_text())
    assert main(["fit", "more.csv", *FIT[1:], "--blocs", "2"]) == 0
    for folder in ("lists", "more"):
        assert sorted(os.listdir(f"out/{folder}")) == sorted([*results.FILES, "blocs.csv"])


def test_blocs_are_found_once(run_of, monkeypatch):
    run_of(6)
    calls = []

    def counted(*arguments):
        calls.append(arguments[2:])
        return find_blocs(*arguments)

    monkeypatch.setattr(module, "find_blocs", counted)
    monkeypatch.setattr(blocs_module, "find_blocs", counted)
    assert main(FIT) == 0
    assert main([*FIT, "--force", "--blocs", "3"]) == 0
    assert calls == [(), (3,)]


def test_items_of_blocs_have_the_names_of_the_page():
    """Such as ``Ann (Gr)``; the blocs of the tables keep theirs."""
    data = simulate_mallows_mixture(jax.random.key(1), 60, 5, 5, 5, 2.0)
    mcmc = with_groups(fabricated_mcmc(data.rankings, chains=2, draws=10), data)
    found = findings_of(mcmc, data.rankings, checks=None)
    names = [f"{item} (party)" for item in data.rankings.items]
    renamed = item_names.rename_findings(found, data.rankings.items, names)
    for level, new in zip(found.blocs.levels, renamed.blocs.levels, strict=True):
        for bloc, other in zip(level.blocs, new.blocs, strict=True):
            assert other.consensus == tuple(names[k] for k in bloc.consensus_ordering)
            assert [x for level in other.levels for x in level] == list(other.consensus)
            pairs = [tuple(f"{item} (party)" for item in pair) for pair in bloc.clear_pairs]
            assert list(other.clear_pairs) == pairs
            assert other.size == bloc.size


def test_names_do_not_turn_what_follows_them_on_the_screen():
    rankings = Rankings.from_orderings([["Ann\u202e", "Bob"]], items=["Ann\u202e", "Bob"])
    survey = SimpleNamespace(rankings=rankings, items_about={"party": ["\u2066Gr", ""]})
    assert item_names.shown_names(survey) == [r"Ann\u202e (\u2066Gr)", "Bob"]
