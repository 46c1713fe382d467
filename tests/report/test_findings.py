"""An answer is packed once: what screen, page and tables say of one fit, wherever it comes from."""

import base64
import csv
import html
import re

import arviz as az
import jax
import numpy as np
import pytest
from helpers.command_line import QUICK_FIT, SOI
from helpers.fabricated import (
    apart,
    fabricated_mcmc,
    fabricated_partition_mcmc,
    fabricated_weights_mcmc,
    with_groups,
)

from numpyro_rankings import read_rankings, to_inference_data, words
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.results import print_diagnostics
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.posterior import PartitionProfile, diagnostics, holds
from numpyro_rankings.posterior.diagnostics import posterior_of
from numpyro_rankings.report import Findings, findings_of, write_report
from numpyro_rankings.report import findings as module
from numpyro_rankings.report.answers import short_answers
from numpyro_rankings.report.figures import traces
from numpyro_rankings.report.glossary import how_found
from numpyro_rankings.report.judgements import r_star_in_words
from numpyro_rankings.report.next_steps import next_steps
from numpyro_rankings.report.page import page_of

DETAILS = re.compile(
    '<dt class="on-screen">How was it made[?].*?</dd>\n|<section class="details">.*?</section>\n'
    '|<span class="on-screen">\nThe group of each ranking, and how surely it belongs there, is in '
    "assignments.csv[.].*?</span>\n"
    '|<span class="line of-files">.*?</span>\n'
    "|([.]|: <code>[^<]*</code>)(?=</span>\n)",  # commands of what to do next
    re.DOTALL,
)


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.soi").write_text(SOI)
    monkeypatch.setattr("numpyro_rankings.cli.session.use_compilation_cache", lambda: None)
    return read_rankings("small.soi")


def fit_these(mcmc, monkeypatch, out="out"):
    """Let the command write results of these draws."""
    monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
    assert main(["fit", "small.soi", *QUICK_FIT, "--out", out]) == 0


def weighted(rankings):
    return fabricated_weights_mcmc(rankings, 4)


@pytest.mark.parametrize(
    ("make", "chains"),
    [
        (fabricated_mcmc, "disagree"),
        (weighted, "agree"),
        pytest.param(fabricated_mcmc, "agree", marks=pytest.mark.slow),
        pytest.param(weighted, "disagree", marks=pytest.mark.slow),
    ],
)
def test_a_report_from_python_is_that_of_the_command(small, monkeypatch, make, chains):
    """From the file of the draws, from new draws for ArviZ, and from the run."""
    mcmc = make(small) if chains == "agree" else apart(make(small))
    fit_these(mcmc, monkeypatch)
    expected = DETAILS.sub("", open("out/report.html", encoding="utf-8").read())
    assert "not how probable their groups are" in expected or chains == "agree"
    fresh = to_inference_data(mcmc, small, log_likelihood=False)
    for data in (az.from_netcdf("out/posterior.nc"), fresh, mcmc):
        write_report("mine.html", data, small, title="Groups in small.soi")
        assert DETAILS.sub("", open("mine.html", encoding="utf-8").read()) == expected
    assert diagnostics.STACKING_WEIGHTS not in fresh["posterior"].attrs  # nothing is changed


def test_what_is_computed_is_computed_once(small, monkeypatch, capsys):
    calls = []

    def counted(name):
        original = getattr(module, name)

        def call(*arguments, **keywords):
            calls.append(name)
            return original(*arguments, **keywords)

        monkeypatch.setattr(module, name, call)
        return original

    names = ("diagnostics_table", "verdict", "cluster_profiles", "membership_probability")
    for name in names:
        counted(name)
    for name in ("diagnostics_table", "verdict"):
        monkeypatch.setattr(diagnostics, name, lambda *_: pytest.fail("once more"))
    fit_these(fabricated_mcmc(small), monkeypatch)
    assert sorted(calls) == sorted(names)


@pytest.mark.parametrize("with_intervals", [True, False])
def test_numbers_are_the_same_on_screen_page_and_in_files(
    small, monkeypatch, capsys, with_intervals
):
    """Sizes have intervals if the ESS is not too small, and in the files they always have."""
    monkeypatch.setattr(diagnostics, "ESS_BAD", 0 if with_intervals else 10**6)
    mcmc = with_labels(fabricated_mcmc(small), lambda draw: TWO if draw % 3 else 0 * TWO)
    fit_these(mcmc, monkeypatch)
    shown = capsys.readouterr().out
    page = open("out/report.html", encoding="utf-8").read()
    with open("out/clusters.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["holds"] for row in rows] == ["yes", "yes"]
    for row in rows:
        numbers = {name: float(x) for name, x in row.items() if re.fullmatch(r"[\d.e-]+", x)}
        size, share = words.size(numbers["size"]), words.share(numbers["share"])
        bounds = words.interval((numbers["size_low"], numbers["size_high"]), 40)
        of_all = f" (90% interval {bounds})" if with_intervals else ""
        assert f"group {row['cluster']}: {size}, {share} of all{of_all}</span>" in page
        found, together, agreement = (
            words.percent(numbers[name]) for name in ("presence", "cohesion", "agreement")
        )
        of_size = [f"({bounds})"] if with_intervals else []
        line = [row["cluster"], size, share, *of_size, found, together, agreement]
        assert line in [x.split() for x in shown.splitlines()]
        card = page.partition(f"<h3>Group {row['cluster']}</h3>")[2].partition("</section>")[0]
        assert f"together in {together} of the draws<" in card and f"agreement {agreement}<" in card
        assert (f"found in {found} of the draws" in card) == (numbers["presence"] < 1)
        assert row["wants"] in " ".join(shown.split()) and html.escape(row["wants"]) in card
        theta, *interval = (numbers[f"theta_1{x}"] for x in ("", "_low", "_high"))
        of_theta = ' <span class="soft">({:.3f}–{:.3f})</span>'.format(*interval)
        of_theta = of_theta if with_intervals else ""
        cell = f"<td>{theta:.3f}{of_theta}</td>"
        assert f"<td>group {row['cluster']}</td>{cell}" in page
    for p in findings_of(mcmc, small, checks=None).profiles:
        certain = " > ".join(x[0] if len(x) == 1 else f"{{{', '.join(x)}}}" for x in p.certain)
        assert f". {html.escape(certain)}. The most frequent order" in page
    assert "<th>members</th>" not in page
    assert "it can list more or fewer members than the size says" in " ".join(page.split())
    assert ("too small for them" in " ".join(shown.split())) != with_intervals
    assert ("too small for them" in page) != with_intervals
    assert ("mean and 90% interval" in figures(page)) == with_intervals
    for text in (page, " ".join(shown.split())):
        numbers = ("A draw has 1 to 2 groups in all (90%", "A draw has about 2 groups in all.")
        assert numbers[0 if with_intervals else 1] in text
        assert numbers[1 if with_intervals else 0] not in text
    total = sum(float(row["share"]) for row in rows)
    assert total == pytest.approx(1) and "are in groups that do not hold" not in page + shown
    found = findings_of(az.from_netcdf("out/posterior.nc"), small, checks=None)
    for text in (how_found(found), *(step.text for step in next_steps(found))):
        assert text in html.unescape(page) and text in " ".join(shown.split())
    assert "What to do next?" in shown and "What to do next?" in page
    table = found.table
    for name, of_quantity in table[table["note"] != "constant"].iterrows():
        texts = [words.value(of_quantity[x]) for x in ("mean", "sd")]
        texts += [words.number(of_quantity[x], ",.0f") for x in ("ess_bulk", "ess_tail")]
        texts.append(words.number(of_quantity["r_hat"], ".3f"))
        quantity = words.quantity_name(str(name))
        cells = "".join(f"<td>{text}</td>" for text in (quantity, *texts, ""))
        assert f"<tr>{cells}</tr>" in page
        assert any(x.startswith(quantity) and x.split()[-5:] == texts for x in shown.splitlines())


def figures(page):
    """Return the figures of a page as texts."""
    return "".join(
        base64.b64decode(x).decode() for x in re.findall(r"svg[+]xml;base64,([^\"]+)", page)
    )


def with_labels(mcmc, of_draw):
    """Return the run with other labels: those that a function returns for each draw."""
    z = {name: np.array(x) for name, x in mcmc._states["z"].items()}
    for draw in range(z["assignments"].shape[1]):
        labels = of_draw(draw)
        z["assignments"][:, draw] = labels
        z["cluster_sizes"][:, draw] = np.bincount(labels, minlength=z["cluster_sizes"].shape[-1])
        z["num_clusters"][:, draw] = labels.max() + 1
    mcmc._states["z"] = z
    return mcmc


TWO = np.repeat([0, 1], 20)
THREE = np.repeat([0, 2, 1], [14, 6, 20])  # six of the first group are a group of their own


def test_what_is_left_counts_all_draws(small, monkeypatch, capsys):
    """In a third of the draws six of the first group are in no group that holds."""
    mcmc = with_labels(fabricated_mcmc(small), lambda draw: TWO if draw % 3 else THREE)
    found = findings_of(mcmc, small, checks=None)
    first, second = found.profiles
    assert sorted([first.mean_size, second.mean_size]) == pytest.approx([18, 20])
    assert found.left == pytest.approx(6 / 40 / 3)
    fit_these(mcmc, monkeypatch)
    line, page = "5.0% are in groups that do not hold", open("out/report.html", encoding="utf-8")
    for text in (capsys.readouterr().out, page.read()):
        assert line in text
        shares = ["45.0%", "50.0%"]  # those that are shown, with which it is 100%
        assert sorted(set(re.findall(r"[45][05]\.0%", text))) == shares


def point_profile(label, presence, size, members, interval_over_all):
    return PartitionProfile(
        label=label,
        presence=presence,
        matched=presence,
        size=size,
        size_interval=(size, size),
        members=members,
        cohesion=1.0,
        interval_over_all=interval_over_all,
    )


def test_what_is_left_counts_zeros_of_a_group_that_holds():
    """Of 100, a group has 40, and another one 50 in three of five draws, which is 30 on average."""
    members = np.arange(40)
    all_draws = point_profile(0, 1.0, 40.0, members, (40, 40))
    some = point_profile(1, 0.6, 50.0, members + 40, (0, 50))
    found = Findings(None, None, [all_draws, some], 100, None, None, None, None, None, {})
    assert len(found.held) == 2 and some.mean_size == pytest.approx(30)
    assert found.left == pytest.approx(0.3)


def test_shares_add_up_where_a_group_is_missing_in_some_draws(small):
    """The mean over the draws that have a group is larger than the mean over all draws."""
    mcmc = with_labels(fabricated_mcmc(small), lambda draw: TWO if draw % 3 else 0 * TWO)
    found = findings_of(mcmc, small, checks=None)
    assert found.left == pytest.approx(0) and len(found.held) == 2
    assert sum(p.size for p in found.profiles) > 40
    first = found.profiles[0]
    with pytest.warns(DeprecationWarning, match="Findings.together is now cohesion"):
        assert found.together(first) == found.cohesion(first) > 0.5


def test_groups_that_come_and_go_are_in_a_table_at_the_end(small, monkeypatch, capsys):
    """The third group is in every fourth draw only, but in the partition that is given."""
    monkeypatch.setattr(diagnostics, "ESS_BAD", 0)
    mcmc = with_labels(fabricated_mcmc(small), lambda draw: TWO if draw % 4 else THREE)
    found = findings_of(mcmc, small, reference=THREE, checks=None)
    assert [holds(p) for p in found.profiles] == [True, True, False]
    assert [len(found.held), len(found.passing)] == [2, 1]
    write_report("page.html", mcmc, small, reference=THREE, checks=None)
    page = open("page.html", encoding="utf-8").read()
    assert "2 groups hold" in page and "All others come and go from draw to draw" in page
    assert "<h3>Group 2</h3>" in page and "<h3>Group 3</h3>" not in page
    last = page.rpartition("Groups that come and go")[2]
    passing = found.passing[0]
    row = ["3", words.size(passing.mean_size), words.share(passing.mean_size / found.total)]
    row += [words.interval(passing.interval_over_all, found.total), words.percent(passing.presence)]
    assert "".join(f"<td>{cell}</td>" for cell in row) in last
    assert f"<td>{words.percent(8 / 30)}</td>" in last and "Do the chains agree" not in last


def test_members_that_are_rarely_together_are_in_doubt(small):
    """The page says at its top if two of a group are together in less than half of the draws."""
    mcmc = fabricated_mcmc(small)
    found = findings_of(mcmc, small, checks=None)
    found = found._replace(verdict=diagnostics.Verdict("good", "A headline.", []))
    for level, said in ((0.49, "together in 49% of the draws"), (0.5, "Yes: ")):
        sure = found._replace(membership=np.full(found.total, level))
        assert said in short_answers(sure, []).trust


def test_no_group_holds(small):
    mcmc = fabricated_mcmc(small)
    found = findings_of(mcmc, small, checks=None)
    rare = [p._replace(presence=0.2) for p in found.profiles]
    write_report("page.html", mcmc, small, rare, found.reference, checks=None)
    page = open("page.html", encoding="utf-8").read()
    assert "No group holds" in page and "are in groups that do not hold" in page
    assert "What do they want?" not in page and "<h3>" not in page.partition("come and go</h2>")[0]


@pytest.mark.parametrize("ess", [99, 100])
def test_weights_have_intervals_if_the_ess_suffices(small, monkeypatch, ess):
    def with_ess(data):
        return diagnostics.diagnostics_table(data).assign(ess_bulk=float(ess), ess_tail=1000.0)

    monkeypatch.setattr(module, "diagnostics_table", with_ess)
    mcmc = fabricated_weights_mcmc(small, 4)
    write_report("page.html", mcmc, small, checks=None)
    page = open("page.html", encoding="utf-8").read()
    first = findings_of(mcmc, small, checks=None).held[0]
    (low, high), mean = first.weights_interval[0], first.weights[0]
    cell = f"<td>{small.items[0]}</td><td>{mean:.3f} <span".replace("<A>", "&lt;A&gt;")
    assert (cell in page) == (f"({low:.3f}–{high:.3f})" in page) == (ess == 100)
    assert ("weight, mean and 90% interval" in figures(page)) == (ess == 100)
    assert ("Means and 90% intervals of the weights" in " ".join(page.split())) == (ess == 100)


def test_blocs_of_other_rankings_are_refused(tmp_path):
    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 6, 1.5)
    rankings = data.rankings
    mcmc = with_groups(fabricated_mcmc(rankings, num_slots=8), data)
    blocs = findings_of(mcmc, rankings, checks=None, blocs=2).blocs
    assert findings_of(mcmc, rankings, checks=None, blocs=blocs).blocs is blocs
    some = blocs.level._replace(labels=blocs.labels[:-1])
    fewer = blocs._replace(levels=(blocs.levels[0], some, *blocs.levels[2:]))
    first = blocs.blocs[0]
    other = first._replace(consensus=("another", *first.consensus[1:]))
    level = blocs.level._replace(blocs=(other, *blocs.blocs[1:]))
    named = blocs._replace(levels=(blocs.levels[0], level, *blocs.levels[2:]))
    for bad, text in (
        (fewer, "the blocs are of 199 rankings; these are 200"),
        (named, "the blocs are of rankings of other items"),
    ):
        with pytest.raises(ValueError, match=text):
            write_report(tmp_path / "page.html", mcmc, rankings, checks=None, blocs=bad)


@pytest.mark.parametrize("asked", [{"blocs": "x"}, {"checks": "all"}, {"checks": 3}])
def test_what_cannot_be_asked_for_is_refused(small, asked):
    (name, value), *_ = asked.items()
    text = f'{name} must be "auto", None.*, got {value!r}'
    with pytest.raises(ValueError, match=text) as error:
        findings_of(fabricated_mcmc(small), small, **asked)
    assert "\n" not in str(error.value)


def test_columns_about_the_judges(small):
    mcmc = fabricated_mcmc(small)
    with pytest.raises(ValueError, match="'region' about the judges has 39 entries"):
        write_report("page.html", mcmc, small, checks=None, about={"region": ["N"] * 39})
    about = {"region": ["N", float("nan"), None, "S"] * 10}
    write_report("page.html", mcmc, small, checks=None, about=about)
    assert "(no answer)" in open("page.html", encoding="utf-8").read()


@pytest.mark.parametrize("differs", [False, True])
def test_chains_that_only_r_star_tells_apart(differs):
    """It is of as many draws as are about independent."""
    groups = np.arange(20) % 2
    data = to_inference_data(
        fabricated_partition_mcmc(groups, chains=4, draws=1000), log_likelihood=False
    )
    posterior = posterior_of(data)
    if differs:
        # correlated in one chain, with the same margins
        ranks = np.argsort(np.argsort(posterior["alpha"][-1].values))
        posterior["log_joint"][-1] = np.sort(posterior["log_joint"][-1].values)[ranks]
    found = findings_of(data, reference=groups)
    assert found.table["r_hat"].max() < 1.01
    independent = int(found.table[["ess_bulk", "ess_tail"]].min(axis=None) / 4)
    assert independent < 1000
    assert found.r_star.value == diagnostics.r_star(data, max_draws=independent).value
    words = r_star_in_words(found.r_star)
    assert f"{found.r_star.value:.2f} (90% interval" in words
    assert ("can be told apart" in words) == differs
    assert ("cannot be told apart" in words) != differs
    assert r_star_in_words(found.r_star) == traces(found, 0).r_star


def test_r_star_is_on_the_page_and_on_the_screen(tmp_path, capsys):
    groups = np.arange(20) % 2
    mcmc = fabricated_partition_mcmc(groups, chains=4, draws=200)
    found = findings_of(to_inference_data(mcmc, log_likelihood=False), reference=groups)
    words = r_star_in_words(found.r_star)
    view = {"chains": traces(found, 0), "findings": found, "overall": None}
    assert words in html.unescape(page_of("sections/chains.html", view))
    print_diagnostics(found, tmp_path)
    assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("chains", "draws"), [(1, 1000), (4, 15)])
def test_there_is_no_r_star_of_one_chain_and_of_few_draws(chains, draws):
    groups = np.arange(20) % 2
    mcmc = fabricated_partition_mcmc(groups, chains=chains, draws=draws)
    found = findings_of(to_inference_data(mcmc, log_likelihood=False), reference=groups)
    assert found.r_star is None and traces(found, 0).r_star == ""
