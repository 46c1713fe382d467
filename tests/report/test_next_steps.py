"""What the page and the screen say is to be done next, and how long it is guessed to take."""

import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from helpers.fabricated import (
    fabricated_mcmc,
    fabricated_partition_mcmc,
    fabricated_weights_mcmc,
    with_groups,
)

from numpyro_rankings import Rankings, words
from numpyro_rankings.cli.fit import parse_options
from numpyro_rankings.cli.options import RunOptions
from numpyro_rankings.cli.program import make_parser
from numpyro_rankings.cli.session import RunSession, Sampled
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.posterior.diagnostics import Verdict
from numpyro_rankings.report import findings_of, write_report
from numpyro_rankings.report import judgements as module
from numpyro_rankings.report.glossary import how_found
from numpyro_rankings.report.judgements import Outlook, outlook_of, worst_of
from numpyro_rankings.report.next_steps import next_steps
from numpyro_rankings.report.page import Status
from numpyro_rankings.report.write import write_findings

LADDERS = "Chains on ladders may find the same groups from every start"
TWO_MINUTES = RunOptions(minutes=2.0, rhat=1.02, ess=300, out=Path("out"))
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


def test_chains_apart_are_not_waited_for(found):
    said = texts(with_worst(found, 2.18, 5), Status("", "", COMMAND, 240.0))
    assert "Do not wait for the chains: with R-hat 2.18" in said[1]
    assert "they have found different groups, and may never agree" in said[1]
    alone = texts(with_worst(found, 2.18, 5)._replace(reference=None))
    assert "they are in different places, and may never agree" in " ".join(alone)
    # what can be used, before what may help
    assert [said[0], *said[2:]] == [
        "Do not report the groups: the chains do not agree on them.",
        f"{LADDERS} (--sampler tempered).",
    ]
    assert not any(step.command for step in next_steps(with_worst(found, 2.18, 5)))


@pytest.mark.parametrize("outside", [1, 9])
def test_a_model_that_misses_something_is_compared(found, monkeypatch, outside):
    monkeypatch.setattr(module, "judge_fit", lambda _: module.Fit(5, 0, 15, outside))
    fit = "numpyro-rankings fit ballots.soi --seed 2 --sample 500 --out here --minutes 3"
    steps = next_steps(found._replace(checks=(), details={"command": fit}))
    expected = "numpyro-rankings compare ballots.soi --seed 2 --sample 500"
    assert_accepted(expected)
    assert [x.command for x in steps if "predict better" in x.text] == [expected] * (outside > 1)
    # a page that is written from Python has no command
    steps = next_steps(found._replace(checks=()))
    assert [x.command for x in steps if "predict better" in x.text] == [""] * (outside > 1)


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (5, "Try fewer groups (--components 4)."),
        (2, "Try one group (--components 1)."),
    ],
)
def test_another_number_of_groups_is_proposed(found, rankings, number, hint):
    mcmc = fabricated_mcmc(rankings, num_components=number)
    fixed = findings_of(mcmc, rankings, checks=None)
    said = texts(with_worst(fixed, 2.0, 5))
    assert said[2:] == [f"{LADDERS} (--sampler tempered).", hint]


def test_one_component_has_no_fewer_groups(rankings):
    """Ladders of one component have labels, too."""
    found = findings_of(fabricated_mcmc(rankings, num_components=1), rankings, checks=None)
    said = texts(with_worst(found, 2.0, 5))
    assert found.num_components == 1 and found.reference is not None
    assert said[2:] == ["Run it again with another --seed."]


@pytest.mark.parametrize(("total", "sample"), [(2000, ""), (2001, " --sample 2000")])
def test_ladders_of_many_rankings_are_of_some_of_them(found, total, sample):
    given = {"command": "numpyro-rankings fit ballots.soi --sample 5000"}
    apart = with_worst(found, 2.0, 5)._replace(details=given, total=total)
    (step,) = [x for x in next_steps(apart) if "ladders" in x.text]
    kept = "numpyro-rankings fit ballots.soi" + ("" if sample else " --sample 5000")
    options = "--components auto --sampler tempered"
    assert step.command == f"{kept} {options}{sample} --out numpyro-rankings-results-tempered"
    assert ("2,000" in step.text) == bool(sample)
    assert_accepted(step.command)


OPTIONS = "--seed 3 --out my.out --force"


@pytest.mark.parametrize(
    ("number", "begins", "options", "expected"),
    [
        (None, "", "--blocs 4 --max-clusters 32", ["auto"]),
        (None, "", "--alpha gamma(1,1) --assignment sequential", ["auto"]),
        (None, "", "--sampler beta --approximate", ["auto"]),
        (5, "", "--components 5", [5, 4]),
        (2, "", "--components 2 --alpha 3", [2, 1]),
        (2, "", "--components 2 --init search", [2, 1]),
        (None, "--minutes 2", "--resume my.out", ["auto"]),
    ],
)
def test_what_may_do_better_is_a_whole_command(found, rankings, number, begins, options, expected):
    """It has the other options of the command that began the run, and the program accepts it."""
    mcmc = fabricated_mcmc(rankings, num_components=number)
    fixed = findings_of(mcmc, rankings, checks=None) if number else found
    command = f"numpyro-rankings fit ballots.soi {options} {OPTIONS}"
    details = {"command": command, "seed": "3"}
    if begins:
        details = {
            "command": "numpyro-rankings fit ballots.soi --resume my.out",
            "begun with": f"numpyro-rankings fit ballots.soi {begins} {OPTIONS}",
        }
    steps = next_steps(with_worst(fixed._replace(details=details), 2.0, 5))
    kept = f"numpyro-rankings fit ballots.soi {begins} --seed 3".replace("  ", " ")
    first, *fewer = expected
    commands = [f"{kept} --components {first} --sampler tempered --out my.out-tempered"]
    for k in fewer:
        folder = f"my.out-{words.plural(k, 'group').replace(' ', '-')}"
        commands.append(f"{kept} --components {k} --out {folder}")
    assert [step.command for step in steps[2:]] == commands
    for command in commands:
        assert_accepted(command)


@pytest.mark.parametrize(
    ("options", "size", "kept"),
    [
        ("--components auto --max-clusters 4 --blocs 2", 40, ""),
        # at the size that the path chose, or that was asked for
        ("--components auto", 31.25, ""),
        ("--components 3 --sampler tempered --alpha 2 --effective-size 31", 31, "--alpha 2 "),
        (
            "--model plackett-luce --components auto --shape 2",
            40,
            "--model plackett-luce --shape 2 ",
        ),
    ],
)
def test_ladders_that_are_apart(rankings, options, size, kept):
    """Fewer groups, or the answer to an easier question; not the same sampler again."""
    ofs = (fabricated_weights_mcmc if "--model" in options else fabricated_mcmc)(rankings, 3)
    found = findings_of(ofs, rankings, checks=None)
    sizes = np.full((2, 30, 2), [0.0, size])
    stats = found.data["sample_stats"].assign(
        round_trips=(("chain", "draw"), np.ones((2, 30))),
        rung_effective_size=(("chain", "draw", "rung"), sizes),
        rung_power=(("chain", "draw", "rung"), sizes / 40),
    )
    command = f"numpyro-rankings fit ballots.soi {options} --out my.out"
    found = found._replace(
        details={"command": command},
        data={"posterior": found.data["posterior"], "sample_stats": stats},
    )
    fewer, less = next_steps(with_worst(found, 2.0, 5))[2:]
    begin = f"numpyro-rankings fit ballots.soi {kept}"
    at_size = "" if size == 40 else f" --effective-size {size}"
    assert fewer.text.startswith("Try fewer groups (")
    fewer_groups = f"--components 2 --sampler tempered{at_size}"
    assert fewer.command.endswith(f" {fewer_groups} --out my.out-2-groups")
    half = round(size / 2)
    assert less.text == f"Or ask what fewer rankings would tell (--effective-size {half}):"
    as_half = f"--components 3 --sampler tempered --effective-size {half}"
    assert less.command == f"{begin}{as_half} --out my.out-as-{half}"
    for step in (fewer, less):
        assert_accepted(step.command)
        assert "--blocs" not in step.command and "--max-clusters" not in step.command


def assert_accepted(command):
    """The program takes the options of the command."""
    args = make_parser().parse_args(shlex.split(command)[1:])
    if args.command == "fit":
        parse_options(args)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("plackett-luce", "--components 3 --alpha 2"),
        ("dp-plackett-luce", "--alpha flat --phi 10 --gamma 2 --max-clusters 64"),
    ],
)
def test_another_number_of_groups_of_weights(rankings, model, options):
    number = 3 if model == "plackett-luce" else None
    fixed = findings_of(fabricated_weights_mcmc(rankings, 3), rankings, checks=None)
    if number is None:
        described = fixed.described["posterior"].assign_attrs(num_components=None)
        fixed = fixed._replace(described={"posterior": described})
        assert fixed.num_components is None
    command = f"numpyro-rankings fit ballots.soi --model {model} {options}"
    steps = next_steps(with_worst(fixed._replace(details={"command": command}), 2.0, 5))
    assert "--model plackett-luce --components" in steps[2].command
    assert "flat" not in steps[2].command and steps[2].command.count("--model") == 1
    assert_accepted(steps[2].command)


@pytest.mark.parametrize(
    "command", ["python my.py", "fit 'unbalanced", 'numpyro-rankings "fit', "numpyro-rankings"]
)
def test_what_is_no_command_of_the_program_is_not_changed(found, command):
    steps = next_steps(with_worst(found._replace(details={"command": command}), 2.0, 5))
    assert not any(step.command for step in steps)


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
    rare = good._replace(profiles=[p._replace(presence=0.2) for p in found.profiles])
    command = "numpyro-rankings fit ballots.soi"
    none, one = next_steps(rare._replace(details={"command": command}))
    assert none.text == "Report no groups." and "(--components 1)" in one.text
    out = "--out numpyro-rankings-results"
    assert one.command == f"{command} --components 1 {out}-1-group"
    assert texts(good._replace(reference=None)) == [
        "Report what all together want: there is one group."
    ]


def test_one_chain(rankings):
    one = findings_of(fabricated_mcmc(rankings, chains=1), rankings, checks=None)
    assert texts(one)[0].endswith("Run it again with several (--chains 4).")
    command = "numpyro-rankings fit ballots.soi --chains 1 --out one"
    first = next_steps(one._replace(details={"command": command}))[0]
    assert first.command == "numpyro-rankings fit ballots.soi --chains 4 --out one-4-chains"


def test_points_have_no_components():
    points = findings_of(fabricated_partition_mcmc(np.arange(20) % 2))
    said = texts(with_worst(points, 2.0, 5))
    assert "another --seed" in said[2] and "--components" not in " ".join(said)
    details = {"command": "numpyro-rankings cluster points.csv --family gaussian", "seed": "7"}
    step = next_steps(with_worst(points._replace(details=details), 2.0, 5))[2]
    out = "--out numpyro-rankings-results-another-seed"
    assert step.command == f"{details['command']} --seed 8 {out}"


@pytest.fixture(scope="module")
def many():
    """A fit of six groups, with three blocs."""
    import jax

    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 6, 1.5)
    mcmc = with_groups(fabricated_mcmc(data.rankings, num_slots=8), data)
    return findings_of(mcmc, data.rankings, checks=None, blocs=3)


def with_chains(found, agree, of_two):
    """Return the findings with other chains that lead to the three blocs, and to two."""
    blocs = found.blocs
    levels = list(blocs.levels)
    levels[1] = levels[1]._replace(chains_agree=np.full(len(agree), of_two), kept=0.5)
    levels[2] = levels[2]._replace(
        chains_agree=np.array(agree), chain_kept=np.full(len(agree), 0.72), kept=0.72
    )
    return found._replace(blocs=blocs._replace(levels=tuple(levels)))


FEWER = "eport the 2 blocs that all runs find (--blocs 2), which keep 50% instead of 72%."


@pytest.mark.parametrize(
    ("agree", "of_two", "expected"),
    [
        ([True, True, True], True, ["Report the 3 blocs."]),
        ([True, True, False], True, ["Report the 3 blocs with care.", f"Or r{FEWER}"]),
        ([True, True, False], False, ["Report the 3 blocs with care."]),
        ([True, False, False], True, [f"R{FEWER}"]),
        ([True, False, False], False, ["Report neither blocs nor groups."]),
    ],
)
def test_which_blocs_can_be_used(many, agree, of_two, expected):
    """Fewer blocs are recommended with what they keep."""
    found = with_worst(with_chains(many, agree, of_two), 1.0, 999, "good")
    assert found.blocs_first and texts(found) == expected


def test_the_command_that_describes_fewer_blocs(many):
    found = with_worst(with_chains(many, [True, True, False], True), 1.0, 999, "good")
    command = "numpyro-rankings fit ballots.soi --blocs 3 --out west"
    found = found._replace(details={"command": command})
    again = "numpyro-rankings fit ballots.soi --blocs 2 --out west-2-blocs"
    assert next_steps(found)[-1].command == again
    # a run that has not ended is gone on with
    status = Status("", "", "numpyro-rankings fit ballots.soi --minutes 2 --resume west")
    assert next_steps(found, status)[-1].command == f"{status.command} --blocs 2"
    apart = with_worst(with_chains(found, [True, False, False], True), 2.0, 5)
    first = next_steps(apart)[0]
    assert first.text == f"R{FEWER} Do not report the groups. To see the blocs:"
    assert first.command == again


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
        return Outlook(times)

    monkeypatch.setattr(module, "outlook_of", guess)
    session = RunSession(TWO_MINUTES, command)
    sampled = Sampled(None, "time", (100, 50), (), 120.0)
    status = session.status_of(sampled, found)
    assert status.command.endswith(f"--minutes {minutes} --resume out")
    assert status.seconds == 120 and goals == [(1.02, 300)]
    assert session.status_of(Sampled(None, "good", (100, 50)), found) is None


def test_what_is_left_of_a_fixed_length(found):
    command = "numpyro-rankings fit ballots.soi --draws 300"
    session = RunSession(RunOptions(draws=300, warmup=100, out=Path("out")), command)
    status = session.status_of(Sampled(None, "interrupted", (100, 50), (), 20.0), found)
    assert status.seconds_left == pytest.approx(60)


@pytest.mark.parametrize("ended", ["time", "interrupted"])
def test_what_may_help_is_said_before_how_to_go_on(found, ended, tmp_path, rankings, capsys):
    """In the box and on the screen, if the chains are in different places."""
    command = "numpyro-rankings fit ballots.soi --minutes 2 --out out"
    sampled = Sampled(None, ended, (100, 50), (), 120.0)
    found = found._replace(details={"command": command})
    near = RunSession(TWO_MINUTES, command).status_of(sampled, with_worst(found, 1.2, 100))
    assert "not help" not in near.text and not near.better
    session, apart = RunSession(TWO_MINUTES, command), with_worst(found, 1.21, 100)
    status = session.status_of(sampled, apart)
    assert status.text.endswith("Going on will probably not help.")
    better = "numpyro-rankings fit ballots.soi --minutes 2 --components auto --sampler tempered"
    better += " --out out-tempered"
    assert status.better == better and status.better in [x.command for x in next_steps(apart)]
    write_findings(tmp_path / "a.html", apart, rankings, title="Groups", status=status)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    box = page.partition('<section class="status">')[2].partition("</section>")[0]
    assert f'<p class="better">This may help: <code>{better}</code></p>' in box
    assert f"<p>To go on all the same: <code>{status.command}</code></p>" in box
    assert box.index("This may help") < box.index("To go on")
    session._end(sampled)
    shown = capsys.readouterr().err
    if ended == "time":
        assert f"Going on will probably not help. This may:\n  {better}\nTo go on all the" in shown
    else:
        assert better not in shown and f"To go on:\n  {status.command}" in shown


def test_that_the_chains_are_weighted(found):
    """The top of the page says how many draws are of each, and which blocs are of."""
    assert "The results are over 60 of these groupings (the draws)." in how_found(found)
    posterior = found.data["posterior"].assign_attrs(stacking_weights=[0.75, 0.25])
    weighted = found._replace(data={"posterior": posterior})
    assert how_found(weighted).endswith(
        "The results are over 60 of these groupings (the draws): the runs have 75% and 25% of "
        "them, because they do not agree, and those that predict better have more weight. R-hat "
        "is over all 60."
    )


def test_that_blocs_are_of_all_draws(many):
    posterior = many.data["posterior"].assign_attrs(stacking_weights=[0.75, 0.25])
    said = how_found(many._replace(data={"posterior": posterior}))
    assert said.endswith("more weight. Blocs and R-hat are over all 60.")
