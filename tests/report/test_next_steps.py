"""What the page and the screen say is to be done next, and how long it is guessed to take."""

import math
import re
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from helpers.fabricated import fabricated_mcmc, fabricated_partition_mcmc, with_groups

from numpyro_rankings import Rankings, words
from numpyro_rankings.cli.run import Kept, Sampled
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.diagnostics import Verdict, table_of_scalars
from numpyro_rankings.report import findings_of, write_report
from numpyro_rankings.report import next_steps as module
from numpyro_rankings.report.next_steps import Outlook, next_steps, outlook, outlook_of, worst_of
from numpyro_rankings.report.page import Status

COMMAND = "numpyro-rankings fit ballots.soi --resume out"


@pytest.fixture(scope="module")
def rankings():
    rng = np.random.default_rng(0)
    orders = [rng.permutation(4).tolist() for _ in range(40)]
    return Rankings.from_orderings(orders, num_items=4, items=["A", "B", "C", "D"])


@pytest.fixture(scope="module")
def found(rankings):
    return findings_of(fabricated_mcmc(rankings), rankings, checks=None)


def with_worst(found, r_hat, ess, level="bad"):
    """Return the findings with another worst R-hat and ESS."""
    table = found.table.copy()
    table["note"] = ""
    table["r_hat"], table["ess_bulk"], table["ess_tail"] = r_hat, ess, ess
    return found._replace(table=table, verdict=Verdict(level, "A headline.", []))


@pytest.fixture
def growing(monkeypatch):
    """The ESS of half the draws is half of that of all."""
    monkeypatch.setattr(module, "diagnostics_table", lambda _: None)
    worst = worst_of

    def of(table):
        return worst(table) if table is not None else (1.0, 1.0)

    monkeypatch.setattr(module, "worst_of", of)


def texts(found, status=None):
    return [step.text for step in next_steps(found, status)]


@pytest.mark.parametrize(
    ("r_hat", "ess", "of_half", "times", "reason"),
    [
        (1.005, 200, 100, 2, ""),
        (1.005, 200, 159, 2, ""),
        (1.005, 200, 161, math.nan, "hardly grown"),
        (1.05, 200, 100, 5, ""),
        (1.008, 500, 490, 0.8, ""),
        (math.nan, 100, 50, 4, ""),
        (1.21, 500, 250, math.nan, "different places"),
        (math.inf, 500, 250, math.nan, "different places"),
        (1.01, 13, 6, math.nan, "more than 30 times"),
        (1.1, math.nan, 6, math.nan, "too few draws"),
    ],
)
def test_the_rule_of_how_long_a_run_has_to_be(r_hat, ess, of_half, times, reason):
    said = outlook(r_hat, ess, lambda: of_half)
    assert said.times == pytest.approx(times, nan_ok=True)
    assert (reason in said.reason) and bool(reason) == bool(said.reason)


def test_goals_of_ones_own():
    assert outlook(1.05, 200, lambda: 100, 1.05, 1000).times == pytest.approx(5)


def walks(rng, draws, memory=0.9):
    """Four chains of an autoregressive process."""
    x = np.empty((4, draws))
    x[:, 0] = rng.normal(size=4)
    for t in range(1, draws):
        x[:, t] = memory * x[:, t - 1] + math.sqrt(1 - memory**2) * rng.normal(size=4)
    return x


def test_the_guess_is_about_right_where_chains_mix():
    """At the length that is guessed from 150 draws the goals are nearly reached, as a rule."""
    ess = []
    for seed in range(12):
        x = walks(np.random.default_rng(seed), 4500)
        of = [worst_of(table_of_scalars({"alpha": x[:, :n]})) for n in (75, 150)]
        said = outlook(*of[1], lambda of=of: of[0][1], rhat_goal=1.05)
        if math.isnan(said.times):
            continue
        ess.append(worst_of(table_of_scalars({"alpha": x[:, : int(150 * said.times)]}))[1])
    assert len(ess) >= 8
    assert 300 <= np.median(ess) <= 800 and min(ess) >= 150


def test_chains_apart_are_not_waited_for(found):
    said = texts(with_worst(found, 2.18, 5), Status("", "", COMMAND, 240.0))
    assert "Do not wait for the chains: with R-hat 2.18" in said[0]
    assert "may never agree" in said[0] and "--components" in said[0]
    assert said[1:] == ["Do not report the groups: the chains do not agree on them."]
    assert not any(step.command for step in next_steps(with_worst(found, 2.18, 5)))


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (5, "Try fewer groups: --components 4. Or leave --components out"),
        (2, "Try one group: --components 1. Or leave --components out"),
    ],
)
def test_another_number_of_groups_is_proposed(found, rankings, number, hint):
    mcmc = fabricated_mcmc(rankings, num_components=number)
    fixed = findings_of(mcmc, rankings, checks=None)
    assert hint in texts(with_worst(fixed, 2.0, 5))[0]


def test_the_command_that_goes_on_and_for_how_long(found, growing):
    status = Status("", "", COMMAND, 240.0)
    first = next_steps(with_worst(found, 1.008, 100), status)[0]
    assert first.text.startswith("Go on for about 12 min") and first.text.endswith(":")
    assert first.command == COMMAND
    alone = texts(with_worst(found, 1.008, 100), status._replace(command=None))
    assert alone[0].endswith("possible).")
    without = texts(with_worst(found, 1.008, 100))
    assert "about 4.0 times as long" in without[0]


def test_that_it_cannot_be_said(found, growing):
    first, *others = next_steps(with_worst(found, 1.1, 10), Status("", "", COMMAND, 60.0))
    assert "cannot be said" in first.text and "more than 30 times" in first.text
    assert first.command == COMMAND
    assert [step.text for step in others] == ["Do not report the groups yet."]


def test_a_run_of_a_fixed_length_goes_on_to_its_end(found, growing):
    status = Status("", "", COMMAND, 60.0, 200.0)
    first = next_steps(with_worst(found, 1.1, 10), status)[0]
    assert first.text == "Go on to the end of its length, for about 3 min:"
    assert module.seconds_needed(found, status) == 200


def test_the_seconds_that_a_run_needs(found, growing):
    needs = module.seconds_needed
    status = Status("", "", None, 60.0)
    assert needs(with_worst(found, 1.008, 100), status) == pytest.approx(180)
    assert needs(with_worst(found, 1.005, 1000), status) == 0
    assert math.isnan(needs(with_worst(found, 2.0, 100), status))
    assert math.isnan(needs(found, status._replace(seconds=None)))


def test_half_of_the_draws_are_compared(found, monkeypatch):
    seen = []
    monkeypatch.setattr(
        module, "diagnostics_table", lambda data: seen.append(data["posterior"]) or found.table
    )
    outlook_of(with_worst(found, 1.05, 200))
    assert [x.sizes["draw"] for x in seen] == [15] and seen[0].sizes["chain"] == 2


def test_what_can_be_used(found):
    good = with_worst(found, 1.001, 1000, "good")._replace(membership=np.full(40, 0.9))
    held = len(found.held)
    assert texts(good) == [f"Report the {words.plural(held, 'group')} that hold."]
    rough = texts(good._replace(membership=np.full(40, 0.2)))
    assert "as rough types" in rough[0]
    rare = [p._replace(presence=0.2) for p in found.profiles]
    assert texts(good._replace(profiles=rare))[0].startswith("No group can be reported.")
    assert texts(good._replace(reference=None)) == ["Report what all want: there is one group."]


def test_one_chain(rankings):
    one = findings_of(fabricated_mcmc(rankings, chains=1), rankings, checks=None)
    assert "--chains 4" in texts(one)[0]


def test_points_have_no_components():
    points = findings_of(fabricated_partition_mcmc(np.arange(20) % 2))
    said = texts(with_worst(points, 2.0, 5))
    assert "another --seed" in said[0] and "--components" not in " ".join(said)


@pytest.fixture(scope="module")
def many():
    """A fit of six groups, with three blocs."""
    import jax

    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 6, 1.5)
    mcmc = with_groups(fabricated_mcmc(data.rankings, num_slots=8), data)
    return findings_of(mcmc, data.rankings, checks=None, blocs=3)


@pytest.mark.parametrize(
    ("agree", "of_two", "expected"),
    [
        ([True, True, True], True, "Report the 3 blocs."),
        ([True, True, False], True, "with care, or the 2 blocs that all chains find (--blocs 2)."),
        ([True, True, False], False, "Report the 3 blocs with care."),
        ([True, False, False], True, "Report the 2 blocs that all chains find (--blocs 2)."),
        ([True, False, False], False, "Report neither blocs nor groups yet."),
    ],
)
def test_which_blocs_can_be_used(many, agree, of_two, expected):
    blocs = many.blocs
    levels = list(blocs.levels)
    levels[1] = levels[1]._replace(chains_agree=np.full(3, of_two))
    levels[2] = levels[2]._replace(
        chains_agree=np.array(agree), chain_kept=np.full(3, levels[2].kept)
    )
    found = with_worst(many._replace(blocs=blocs._replace(levels=tuple(levels))), 1.0, 999, "good")
    assert found.blocs_first and texts(found)[-1].endswith(expected)


def test_steps_on_the_page(rankings, tmp_path):
    mcmc = fabricated_mcmc(rankings)
    log_joint = np.array(mcmc._states["z"]["log_joint"])
    log_joint[1] -= 50
    mcmc._states["z"] |= {"log_joint": log_joint}
    status = Status("Stopped", "It was.", COMMAND, 60.0, 30.0)
    write_report(tmp_path / "a.html", mcmc, rankings, checks=None, status=status, blocs=None)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    answer = page.partition("<dt>What to do next?</dt>")[2].partition("</dd>")[0]
    assert "Do not wait for the chains" in answer and "assignments.csv" not in answer
    assert page.index("Can I trust it?") < page.index("What to do next?")
    for term in ("chain", "draw", "sweep", "posterior", "R-hat", "ESS", "90% interval"):
        assert f"<dt>{term}</dt>" in page.partition('id="words"')[2]
    assert "Two independent runs of the sampler (the chains)" in page
    assert re.search(r"over \d+ of these groupings [(]the draws[)]", page)


def test_both_commands_of_a_run_that_was_resumed(rankings, tmp_path):
    details = {"command": "fit --resume out", "begun with": "fit --out out", "versions": "1"}
    mcmc = fabricated_mcmc(rankings)
    write_report(tmp_path / "a.html", mcmc, rankings, checks=None, details=details)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    answer = page.partition("How was it made?</dt>")[2].partition("</dd>")[0]
    assert [x.partition("</code>")[0] for x in answer.split("<code>")[1:]] == [
        "fit --out out",
        "fit --resume out",
    ]
    assert page.count("<code>fit --out out</code>") == 2
    assert "The group of each ranking is in assignments.csv." in page


@pytest.mark.parametrize(("times", "minutes"), [(1.1, "2"), (4.0, "9"), (math.nan, "2")])
def test_the_command_has_the_minutes_that_are_guessed(found, monkeypatch, times, minutes):
    """And half as many more, but not fewer than its own."""
    command = "numpyro-rankings fit ballots.soi --minutes 2"
    goals = []

    def guess(_, status):
        goals.append((status.rhat_goal, status.ess_goal))
        return Outlook(1.1, 100, times)

    monkeypatch.setattr(module, "outlook_of", guess)
    args = Namespace(draws=None, minutes=2.0, rhat=1.02, ess=300, out=Path("out"))
    kept = Kept(args, command)
    status = kept.status_of(Sampled(None, "time", (100, 50), (), 120.0), found)
    assert status.command.endswith(f"--minutes {minutes} --resume out")
    assert status.seconds == 120 and goals == [(1.02, 300)]
    assert kept.status_of(Sampled(None, "good", (100, 50)), found) is None


def test_what_is_left_of_a_fixed_length(found):
    args = Namespace(draws=300, warmup=100, out=Path("out"))
    kept = Kept(args, "numpyro-rankings fit ballots.soi --draws 300")
    status = kept.status_of(Sampled(None, "interrupted", (100, 50), (), 20.0), found)
    assert status.seconds_left == pytest.approx(60)
