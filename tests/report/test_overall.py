"""The verdict at the top of the page and of the screen, which counts everything."""

import html
import itertools

import arviz as az
import jax
import numpy as np
import pytest
from helpers.command_line import QUICK_FIT, SOI
from helpers.fabricated import (
    fabricated_mcmc,
    fabricated_partition_mcmc,
    fabricated_weights_mcmc,
    with_groups,
)

from numpyro_rankings import Rankings, read_rankings, read_survey, words
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.item_names import rename_findings
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.posterior.diagnostics import Verdict
from numpyro_rankings.posterior.predictive_checks import PredictiveCheck, PredictiveChecks
from numpyro_rankings.report import findings_of
from numpyro_rankings.report.answers import short_answers, wants
from numpyro_rankings.report.blocs_in_words import wants_of_bloc
from numpyro_rankings.report.judgements import (
    HARDLY_AGREE,
    MANY_OUTSIDE,
    MOST_LEFT,
    judge_fit,
    judgements_of,
)
from numpyro_rankings.report.next_steps import next_steps
from numpyro_rankings.report.overall import overall, trust
from numpyro_rankings.report.write import write_findings


@pytest.fixture(scope="module")
def many():
    """A fit of six groups, with three blocs."""
    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 6, 1.5)
    mcmc = with_groups(fabricated_mcmc(data.rankings, num_slots=8), data)
    found = findings_of(mcmc, data.rankings, checks=None, blocs=3)
    return with_worst(found, 1.004, 900, "good")._replace(checks=checks_of(2)), data.rankings


@pytest.fixture(scope="module")
def blocs(many):
    return with_blocs(many[0], [0.3, 0.2, 0.4], [True] * 4)


@pytest.fixture(scope="module")
def groups(many):
    """Its groups, which hold and agree."""
    found = many[0]._replace(blocs=None, membership=np.full(200, 0.9))
    return with_groups_of(found, [0.3, 0.4, 0.5, 0.3, 0.3, 0.3])


def with_worst(found, r_hat, ess, level):
    table = found.table.copy()
    table["note"] = ""
    table["r_hat"], table["ess_bulk"], table["ess_tail"] = r_hat, ess, ess
    return found._replace(table=table, verdict=Verdict(level, "A headline.", ["A reason."]))


def with_blocs(found, agreement, agree, of_two=True):
    """Return the findings with other blocs: how alike members rank, and which chains agree."""
    levels = list(found.blocs.levels)
    levels[1] = levels[1]._replace(chains_agree=np.full(len(agree), of_two), kept=0.5)
    some = [x._replace(agreement=a) for x, a in zip(levels[2].blocs, agreement, strict=True)]
    levels[2] = levels[2]._replace(
        blocs=tuple(some),
        chains_agree=np.array(agree),
        kept=0.72,
        chain_kept=np.full(len(agree), 0.72),
    )
    return found._replace(blocs=found.blocs._replace(levels=tuple(levels)))


def with_groups_of(found, agreement, presence=1.0):
    profiles = [
        p._replace(agreement=a, presence=presence)
        for p, a in zip(found.profiles, agreement, strict=True)
    ]
    return found._replace(profiles=profiles)


def checks_of(outside):
    """Checks of 10 shares, of which so many are outside their intervals."""
    seen = np.where(np.arange(10) < outside, 0.9, 0.5)
    interval = np.tile([0.4, 0.6], (10, 1))
    top = PredictiveCheck(seen, np.full(10, 0.5), interval, np.full(10, 0.5))
    none = np.full((10, 10), np.nan)
    pairs = PredictiveCheck(none, none, np.full((10, 10, 2), np.nan), none)
    return PredictiveChecks(top, pairs, tuple("abcdefghij"))


def test_it_is_green_only_if_chains_agreement_and_fit_are_good(blocs):
    good = overall(blocs)
    assert good == Verdict(
        "good",
        "Report 3 blocs: they explain the rankings 72% as well as all groups do.",
        [
            "The runs agree on the blocs and on the groups.",
            "Agreement within the blocs: 20% to 40%.",
            "The model fits.",
        ],
    )
    unlike = overall(with_blocs(blocs, [0.04, 0.2, 0.4], [True] * 4))
    assert (unlike.level, unlike.headline) == ("care", good.headline)
    assert unlike.reasons[0] == "Members of bloc 1 hardly agree (4%, where 0% is chance)."
    misfit = overall(blocs._replace(checks=checks_of(3)))
    assert (misfit.level, misfit.headline) == ("care", good.headline)
    text = "The model misses something: 3 of 10 checked numbers are outside their intervals."
    assert misfit.reasons[0] == text
    apart = overall(with_worst(blocs, 2.18, 5, "bad"))
    assert (apart.level, apart.headline) == ("care", good.headline)
    assert apart.reasons[0] == "Do not rely on the groups: the runs do not agree (R-hat 2.18)."
    near = overall(with_worst(blocs, 1.03, 900, "care"))
    assert near.level == "care"
    assert near.reasons[0] == "Use the groups with care: the runs nearly agree (R-hat 1.030)."
    assert overall(blocs._replace(checks=None)).reasons == good.reasons[:2]


def test_one_bloc(blocs):
    one = blocs.blocs._replace(number=1)
    said = overall(blocs._replace(blocs=one))
    assert said.headline == "Report what all together want: there is one bloc."


@pytest.mark.parametrize(
    ("agree", "of_two", "level", "headline", "reason"),
    [
        (
            [1, 1, 1, 0],
            True,
            "care",
            "Report 3 blocs with care: they explain the rankings 72% as well",
            "Only 3 of 4 runs",
        ),
        ([1, 1, 0, 0], True, "bad", "Report 2 blocs (--blocs 2), which keep 50% instead", "Only 2"),
        (
            [1, 0, 0, 0],
            False,
            "bad",
            "Report neither blocs nor groups:",
            "Only 1 of 4 runs leads",
        ),
        ([1], True, "care", "Report 3 blocs with care", "There is one run"),
    ],
)
def test_blocs_on_which_chains_do_not_agree(many, agree, of_two, level, headline, reason):
    agree = np.array(agree, bool)
    said = overall(with_blocs(many[0], [0.04, 0.2, 0.4], agree, of_two))
    assert said.level == level and said.headline.startswith(headline)
    assert said.reasons[0].startswith(reason) or said.reasons[1].startswith(reason)
    # what is not to be reported needs no more words
    assert any("hardly agree" in x for x in said.reasons) == (level == "care")


def test_groups_that_hold(groups):
    said = overall(groups)
    assert (
        said.level == "good" and said.headline == "Report 6 groups: they have all of the rankings."
    )
    assert said.reasons[0] == "The runs agree (R-hat 1.004)."
    assert trust(groups) == "Yes: the runs agree (R-hat 1.004)."
    rough = groups._replace(membership=np.full(200, 0.2))
    assert overall(rough).level == "care" and "as rough types" in overall(rough).headline
    assert trust(rough).startswith(
        "Partly: the runs agree, but two members of a group are together"
    )
    few = with_worst(groups, 1.004, 200, "care")
    assert overall(few).level == "care" and trust(few) == "Partly: the draws are few (ESS 200)."
    other = with_worst(groups, 1.004, 900, "care")
    assert trust(other) == "Partly: a reason."


@pytest.mark.parametrize("trips, said", [([3, 1], ""), ([3, 0], ", but not every one")])
def test_ladders_that_agree_without_round_trips_are_called_that(groups, trips, said):
    """One of the two chains has none."""
    sizes = groups.data["posterior"].sizes
    column = np.zeros((sizes["chain"], sizes["draw"]))
    column[:, -1] = np.resize(trips, sizes["chain"])
    stats = groups.data["sample_stats"].assign(round_trips=(("chain", "draw"), column))
    ladders = groups._replace(data={"posterior": groups.data["posterior"], "sample_stats": stats})
    expected = f"The runs agree (R-hat 1.004){said}"
    assert overall(ladders).reasons[0].startswith(expected)
    assert ("no proof" in trust(ladders)) == bool(said)


def test_doubt_is_told_where_the_draws_need_care(groups):
    """Few members belong to a group for sure, and the chains nearly agree."""
    rough = with_worst(groups._replace(membership=np.full(200, 0.2)), 1.03, 900, "care")
    said = trust(rough)
    assert said.startswith("Partly: the runs nearly agree (R-hat 1.030).")
    assert "wo members of a group are together in 20% of the draws" in said


def test_a_few_hundred_draws_are_not_why_a_run_is_bad(groups):
    """It may be so because there were too few slots, with an ESS of 100 to 400."""
    for ess, why in ((99, "the draws are too few (ESS 99)"), (100, "a reason"), (399, "a reason")):
        assert trust(with_worst(groups, 1.004, ess, "bad")) == f"No: {why}."


def test_groups_that_cannot_be_reported(groups):
    apart = with_worst(groups, 2.18, 5, "bad")
    said = overall(apart)
    assert said.level == "bad"
    assert said.headline == "Do not report the groups: the runs do not agree (R-hat 2.18)."
    assert trust(apart) == "No: the runs do not agree (R-hat 2.18)."
    few = with_worst(groups, 1.004, 50, "bad")
    assert overall(few).headline == "Do not report the groups yet: the draws are too few (ESS 50)."


def test_there_are_no_clear_groups(groups):
    """None holds, most belong to none, or the members of all that hold hardly agree."""
    rare = with_groups_of(groups, [0.3] * 6, 0.2)
    said = overall(rare)
    assert said.level == "care"
    assert said.headline == (
        "There are no clear groups: none is found again in more than half of the draws."
    )
    assert trust(rare) == "No: no group holds."
    assert trust(with_worst(rare, 1.03, 900, "care")) == "No: no group holds."
    loose = with_groups_of(groups, [0.04, 0.05, 0.06, 0.07, 0.08, 0.09])
    assert (
        "the 6 that hold have members who hardly agree (4% to 9%, where 0% is chance)"
        in overall(loose).headline
    )
    assert trust(loose) == "Yes: the runs agree that there are no clear groups."
    largest, *others = loose.profiles
    one = loose._replace(profiles=[largest, *(p._replace(presence=0.2) for p in others)])
    one = one._replace(total=int(largest.mean_size / 0.6))
    of_all = words.share(1 - one.left)
    assert (
        f"the only one that holds has {of_all} of all, and its members hardly agree (4%, where"
        in (overall(one).headline)
    )
    for total, unclear in ((1.9, False), (2.1, True)):
        left = groups._replace(total=int(total * sum(p.mean_size for p in groups.profiles)))
        assert judgements_of(left).unclear == ("few belong" if unclear else "")
        assert ("are in groups that do not hold" in overall(left).headline) == unclear
    assert MOST_LEFT == 0.5


def test_what_is_shown_as_a_tenth_is_no_less(groups):
    """As in the table: 10% is not said to be below it."""
    for agreement, hardly in ((0.094, True), (0.0951, False), (0.1, False)):
        said = overall(with_groups_of(groups, [agreement, *[0.3] * 5]))
        assert (
            any(
                "Members of group 1 hardly agree (9%, where 0% is chance)" in x
                for x in said.reasons
            )
            == hardly
        )
    several = overall(with_groups_of(groups, [0.04, 0.05, 0.3, 0.3, 0.3, 0.3]))
    assert (
        several.reasons[0]
        == "Members of groups 1 and 2 hardly agree (4% to 5%, where 0% is chance)."
    )
    more = overall(with_groups_of(groups, [0.04, 0.05, 0.06, 0.07, 0.3, 0.3]))
    assert more.reasons[0] == "Members of 4 groups hardly agree (4% to 7%, where 0% is chance)."
    assert HARDLY_AGREE == 0.1


def test_a_fifth_of_the_checks_may_fail():
    assert MANY_OUTSIDE == 0.2
    assert [judge_fit(checks_of(k)).misses_something for k in (2, 3)] == [False, True]


def test_one_population(groups):
    one = groups._replace(reference=None, profiles=groups.profiles[:1])
    assert overall(one).headline == "Report what all together want: there is one group."
    bad = overall(with_worst(one, 1.004, 50, "bad"))
    assert bad.headline == "Report nothing yet: the draws are too few (ESS 50)."


@pytest.mark.parametrize("is_mixture", [True, False])
def test_one_group_without_a_common_order_is_called_that(groups, is_mixture):
    """By the limit of a component of a ladder, with the interval of its concentration."""
    one = groups.profiles[0]._replace(
        agreement=0.004,
        size=480.0,
        concentration=np.array([0.03, 0.02]),
        concentration_interval=np.array([[0.001, 0.074], [0.0, 0.1]]),
    )
    found = groups._replace(profiles=[one], total=480)
    found = found if is_mixture else found._replace(reference=None)
    said = overall(found)
    assert said.level == "care"
    assert said.headline == (
        f"There {'are no clear groups, and' if is_mixture else 'is'} no common order: all together "
        "agree hardly more than by chance (agreement <1%, where 0% is chance; θ of stage 1 is "
        "0.03, 90% interval 0.00–0.07)."
    )
    assert not any("Agreement" in text or "alike" in text for text in said.reasons)
    assert trust(found) == "Yes: the runs agree that there is no common order."
    assert [step.text for step in next_steps(found)] == ["Report that there is no common order."]
    assert wants(found) == ["no common order: these judges agree hardly more than by chance"]
    few_draws = overall(with_worst(found, 1.004, 99, "care"))
    assert "θ" not in few_draws.headline and "no common order" in few_draws.headline
    bad = overall(with_worst(found, 2.18, 5, "bad"))
    assert "common order" not in bad.headline and bad.level == "bad"

    has_order = found._replace(profiles=[one._replace(agreement=0.01)])
    assert overall(has_order).headline.startswith("Report ")
    assert "common order" not in wants(has_order)[0]


def test_weights_without_a_common_order():
    """Those of a Plackett–Luce model, all 24 orders of four items 20 times."""
    orders = list(itertools.permutations(range(4)))
    rankings = Rankings.from_orderings(orders, num_items=4, counts=[20] * 24)
    mcmc = fabricated_weights_mcmc(rankings, 2, draws=200)  # of which the second one is empty
    mcmc._states["z"] |= {
        "weights": np.random.default_rng(0).dirichlet([2000.0] * 4, (2, 200, 2)),
        "assignments": np.zeros((2, 200, 480), np.int8),
        "cluster_sizes": np.broadcast_to([480, 0], (2, 200, 2)),
        "num_clusters": np.ones((2, 200), int),
    }
    said = overall(findings_of(mcmc, rankings, checks=None))
    assert "no common order" in said.headline and "(agreement <1%, where" in said.headline
    assert "the weights of all items are within 0.24–0.26, their 90% intervals" in said.headline


def test_leagues_that_never_meet_are_told_before_the_fit(groups):
    rankings = Rankings.from_orderings(
        [[0, 1], [2, 3], [1, 0], [3, 2]],
        items=list("ABCD"),
        counts=[20] * 4,
        choice_sets=np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 2, 0)[[0, 2, 1, 3]].astype(bool),
    )
    found = findings_of(fabricated_weights_mcmc(rankings, 2), rankings, checks=None)
    assert found.apart == [["A", "B"], ["C", "D"]]
    said = "No judge compares items of different sets, which are {A and B} and {C and D}: how one"
    with_reason = overall(found)
    assert any(reason.startswith(said) for reason in with_reason.reasons)
    assert with_reason.level != "good"
    renamed = rename_findings(found, list("ABCD"), ["Ann", "B", "C", "D"])
    assert "{Ann and B}" in " ".join(overall(renamed).reasons)
    assert not any("sets" in reason for reason in overall(groups).reasons)


def test_one_bloc_without_a_common_order(blocs):
    one = blocs.blocs._replace(number=1)
    levels = list(one.levels)
    levels[0] = levels[0]._replace(blocs=(levels[0].blocs[0]._replace(agreement=0.002),))
    found = blocs._replace(blocs=one._replace(levels=tuple(levels)))
    said = overall(found)
    assert said.level == "care" and said.headline.startswith("There is no common order")
    assert [step.text for step in next_steps(found)] == ["Report that there is no common order."]


def test_blocs_without_a_common_order(blocs):
    """All of them, on which the chains may agree; of one it is said beside it."""
    none = with_blocs(blocs, [0.002, -1e-9, 0.01], [True] * 4)
    said = overall(none)
    assert said.level == "care"
    assert said.headline == (
        "There are no clear blocs: their members agree hardly more than by chance."
    )
    assert any("(0% to 1%, where 0% is chance)" in reason for reason in said.reasons)
    assert [step.text for step in next_steps(none)] == ["Report that there is no common order."]
    one = with_blocs(blocs, [0.3, 0.2, 0.01], [True] * 4)
    assert overall(one).headline.startswith("Report 3 blocs: they explain")
    assert wants_of_bloc(one.blocs.blocs[2]).startswith("no common order")
    assert overall(with_blocs(none, [0.01] * 3, [True, False, False, False], False)).level == "bad"


def test_points_have_no_agreement():
    points = findings_of(fabricated_partition_mcmc(np.arange(20) % 2))
    said = overall(with_worst(points, 1.004, 900, "good"))
    assert said.headline.startswith("Report 2 groups: they have") and "points." in said.headline
    assert said.reasons == ["The runs agree (R-hat 1.004)."]


def test_it_is_first_on_the_page_and_the_only_color(many, blocs, tmp_path):
    write_findings(tmp_path / "a.html", blocs, many[1], title="Blocs")
    page = html.unescape((tmp_path / "a.html").read_text(encoding="utf-8"))
    said = overall(blocs)
    body = page.partition("</h1>")[2]
    assert body.lstrip().startswith(
        f'<section class="verdict good overall"><strong>{said.headline}'
    )
    assert " ".join(said.reasons) in " ".join(body.partition("</section>")[0].split())
    assert body.count('class="verdict good') == 1 and 'class="verdict"' in body
    assert body.index("overall") < body.index("Independent" if "Independent" in body else "Two")
    for text in (said.headline, *said.reasons):
        assert body.count(text) == 1
    assert f"<dd>{short_answers(blocs, []).trust}</dd>" in body


def test_screen_and_page_have_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.soi").write_text(SOI)
    monkeypatch.setattr("numpyro_rankings.cli.session.use_compilation_cache", lambda: None)
    mcmc = fabricated_mcmc(read_rankings("small.soi"))
    monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
    assert main(["fit", "small.soi", *QUICK_FIT, "--out", "out"]) == 0
    page = html.unescape(open("out/report.html", encoding="utf-8").read())
    box = page.partition(' overall"><strong>')[2].partition("</section>")[0]
    said = " ".join(box.replace("</strong>", "").split())
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith(f"Groups in 40 rankings of 4 items {said} Two independent runs")


def test_what_the_options_did_is_on_the_page(tmp_path, monkeypatch):
    """Who was left out, which gaps were closed, and which codes are no ranks."""
    monkeypatch.chdir(tmp_path)
    rows = ["1,2,3", "2,,1", "-9,1,2", "3,,1", ",,"]
    text = "".join(f"{k},{row}\n" for k, row in enumerate(rows * 4))
    (tmp_path / "x.csv").write_text(f"who,<Ann>,Bob,Cid\n{text}")
    options = ["--layout", "ranks", "--judge", "who", "--gaps", "close", "--missing", "-9"]
    survey = read_survey("x.csv", "ranks", judge="who", gaps="close", missing="-9")
    mcmc = fabricated_mcmc(survey.rankings)
    monkeypatch.setattr("numpyro_rankings.cli.session.use_compilation_cache", lambda: None)
    monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
    assert main(["fit", "x.csv", *options, *QUICK_FIT, "--out", "out"]) == 0
    page = html.unescape(open("out/report.html", encoding="utf-8").read())
    read = page.partition("<dt>how the file was read</dt><dd>")[2].partition("</dd>")[0]
    for text in (
        "4 judges rank nothing and are left out: x.csv:6",
        "gaps were closed in 4 lists",
        "read as not ranked: '-9' in 4 cells",
    ):
        assert text in read
    attributes = az.from_netcdf("out/posterior.nc").attrs
    assert html.unescape(read) == attributes["how_the_file_was_read"]
