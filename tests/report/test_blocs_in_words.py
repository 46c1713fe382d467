"""What is said of blocs, and when there are any."""

import jax
import numpy as np
import pytest
from helpers.fabricated import apart, fabricated_mcmc, with_groups

from numpyro_rankings import Rankings, find_blocs, words
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.families.choice_cells import count_cells
from numpyro_rankings.ops.orderings import wants_of_members
from numpyro_rankings.posterior import blocs as module
from numpyro_rankings.posterior.bloc_levels import BlocData, suggested_number
from numpyro_rankings.posterior.blocs import NoBlocsError, read_draws
from numpyro_rankings.report import blocs_in_words, findings_of
from numpyro_rankings.report import findings as findings_module
from numpyro_rankings.report.answers import how_many


@pytest.fixture(scope="module")
def grouped():
    """Rankings of five groups, and two chains of three draws that have them."""
    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 5, 1.5)
    shape = 2, 3
    draws = {
        "assignments": np.broadcast_to(data.assignments, (*shape, 200)).astype(np.int8),
        "center": np.broadcast_to(data.centers, (*shape, 5, 5)),
        "concentration": np.broadcast_to(data.concentrations[:, :4], (*shape, 5, 4)),
        "cluster_sizes": np.broadcast_to(np.bincount(data.assignments), (*shape, 5)),
    }
    return draws, data.rankings


@pytest.fixture(scope="module")
def blocs(grouped):
    return find_blocs(*grouped, 3)


def fitted(number, theta=2.0, components=None, **simulated):
    """A short run, of which each draw has the simulated groups, and its rankings."""
    data = simulate_mallows_mixture(jax.random.key(1), 60, 5, 5, number, theta, **simulated)
    mcmc = fabricated_mcmc(data.rankings, components, chains=2, draws=10)
    return with_groups(mcmc, data), data.rankings


def with_chains(blocs, agree, kept=None):
    """Return the blocs with other chains: whether each agrees, and what its blocs keep."""
    agree = np.asarray(agree)
    kept = np.where(agree, blocs.level.kept, blocs.level.kept - 0.03) if kept is None else kept
    level = blocs.level._replace(chains_agree=agree, chain_kept=np.asarray(kept))
    levels = list(blocs.levels)
    levels[blocs.number - 1] = level
    few = levels[1]
    levels[1] = few._replace(chains_agree=np.ones(len(agree), bool))
    return blocs._replace(levels=tuple(levels))


def test_verdict_of_blocs_by_how_many_chains_agree(blocs):
    """It answers with yes, partly or no first, and says what fewer blocs keep."""
    number = len(blocs.level.arrived)
    arrived = blocs.level._replace(arrived=np.arange(number) < 2)
    blocs = blocs._replace(levels=(*blocs.levels[:2], arrived, *blocs.levels[3:]))
    said = blocs_in_words.verdict_of_blocs(with_chains(blocs, [True] * 4))
    assert said.level == "good" and said.headline == "Yes: all 4 runs lead to the same 3 blocs."
    starts = f"The search has {number} starts and keeps the best blocs: 2 starts lead to them."
    assert said.reasons == [starts]
    lost = blocs.level._replace(arrived=np.zeros(number, bool))
    lost = blocs._replace(levels=(*blocs.levels[:2], lost, *blocs.levels[3:]))
    assert "no start leads to them directly" in blocs_in_words.verdict_of_blocs(lost).reasons[-1]
    both = blocs_in_words.verdict_of_blocs(with_chains(blocs, [True] * 2))
    assert both.headline == "Yes: both runs lead to the same 3 blocs."

    few, level = blocs.levels[1], blocs.level
    kept = f"which keep {words.percent(few.kept)} instead of {words.percent(level.kept)}"
    same = f"; all 4 lead to the same 2 blocs (--blocs 2), {kept}."
    said = blocs_in_words.verdict_of_blocs(with_chains(blocs, [True, False, True, True]))
    assert said.level == "care"
    assert said.headline == f"Partly: 3 of 4 runs lead to these 3 blocs{same}"
    assert said.reasons == ["Chain 2 leads to other blocs, which keep 3% less.", starts]

    said = blocs_in_words.verdict_of_blocs(with_chains(blocs, [True, False, False, True]))
    assert said.level == "bad"
    assert said.headline == f"No: only 2 of 4 runs lead to these 3 blocs{same}"
    assert said.reasons[0] == "Chains 2 and 3 lead to other blocs, which keep 3% less."

    kept = [blocs.level.kept, np.nan, blocs.level.kept - 0.001, blocs.level.kept]
    said = blocs_in_words.verdict_of_blocs(with_chains(blocs, [True, False, False, True], kept))
    assert said.reasons == [
        "Chain 2 has fewer than 3 groups to merge.",
        "Chain 3 leads to other blocs, which keep as much.",
        starts,
    ]

    one = with_chains(blocs, [True])
    said = blocs_in_words.verdict_of_blocs(one)
    assert said.level == "care" and said.headline.startswith("Partly: one run leads to these 3")
    assert blocs_in_words.fewer_blocs(one) == ""


def test_one_bloc_is_everybody(grouped):
    said = blocs_in_words.verdict_of_blocs(find_blocs(*grouped, 1))
    assert (said.level, said.headline, said.reasons) == (
        "good",
        "Yes: there is only one bloc, with everybody in it.",
        [],
    )


def test_what_one_more_bloc_would_keep(blocs):
    level, more = blocs.level, blocs.levels[3]
    assert blocs_in_words.how_many_blocs(blocs) == (
        f"3 blocs explain the rankings {words.percent(level.kept)} as well as all groups together; "
        f"4 would explain them {words.percent(more.kept)} as well."
    )
    last = blocs._replace(levels=blocs.levels[:3])
    assert blocs_in_words.how_many_blocs(last).endswith("as all groups together.")


def test_blocs_in_words(blocs):
    low, high = blocs.level.kept_interval
    said = f"{blocs.level.kept:.1%} ({100 * low:.1f}–{100 * high:.1f}%)"
    assert blocs_in_words.share_kept(blocs.level) == said
    assert f", 3 {said}, 4 " in blocs_in_words.what_each_keeps(blocs)
    assert blocs_in_words.as_well(0.784) == "78% as well"
    # no more than all: 122% is a fit, and no more agreement
    assert blocs_in_words.as_well(0.996) == blocs_in_words.as_well(1.22) == "as well"


def test_what_a_bloc_wants_is_what_its_members_say():
    """Counted by hand: levels are cut where every pair has at least 60% of those who order it."""
    above = np.zeros((4, 4))
    for better, worse, share in ((0, 1, 90), (0, 2, 60), (0, 3, 70), (1, 2, 55), (1, 3, 95)):
        above[better, worse], above[worse, better] = share, 100 - share
    above[2, 3], above[3, 2] = 80, 20
    found = wants_of_members(above, np.arange(4))
    assert [x.tolist() for x in found.levels] == [[0, 1, 2], [3]]
    assert found.clear_pairs == [(0, 1)]  # 60 of 100, of which two more are added to both sides
    above[0, 2] += 3
    found = wants_of_members(above, np.arange(4))
    assert [x.tolist() for x in found.levels] == [[0], [1, 2], [3]]


def test_clear_pairs_are_said_of_a_bloc(blocs):
    bloc = blocs.blocs[0]._replace(levels=(("A", "B", "C"), ("D",)), clear_pairs=(("A", "C"),))
    said = "A, B and C, nearly all close (but A before C is clear), before D"
    assert blocs_in_words.wants_of_bloc(bloc) == said


def test_items_above_others_are_counted_over_members(grouped, blocs):
    draws, rankings = grouped
    data = BlocData(read_draws(draws, rankings))
    belonging = np.random.default_rng(0).random((len(data.counts), 2))
    found = np.stack(module._times_above(data, belonging, [np.arange(5)] * 2))
    expected = np.zeros((2, 5, 5))
    distinct, _ = rankings.merged()
    for row, amount in zip(np.asarray(distinct.orderings), belonging, strict=True):
        for place, better in enumerate(row):
            for worse in row[place + 1 :]:
                expected[:, better, worse] += amount
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(found[:, off], expected[:, off], rtol=1e-6)


@pytest.mark.parametrize(
    ("number", "asked", "expected"),
    [
        (5, "auto", True),
        (4, "auto", False),
        (4, 3, True),
        (5, None, False),
        (1, "auto", False),
    ],
)
def test_blocs_are_found_for_many_groups_or_if_asked(number, asked, expected):
    """More than four groups, those that come and go included."""
    mcmc, rankings = fitted(number)
    found = findings_of(mcmc, rankings, checks=None, blocs=asked)
    assert (found.blocs is not None) == expected
    assert found.blocs_first == (expected and number > 4)
    if asked == 3:
        assert found.blocs.number == 3
        given = findings_of(mcmc, rankings, checks=None, blocs=found.blocs)
        assert given.blocs is found.blocs


def test_the_work_of_blocs_with_more_items_than_a_float_has_powers_of_two():
    rankings = Rankings.from_orderings([[0, 1, 2]], num_items=1100)
    assert module.search_work({"weights": 0}, rankings) == 3 + 2.5 * 3 * 1100
    draws = {
        "weights": np.ones((1, 1, 1, 1100)),
        "cluster_sizes": np.ones((1, 1, 1)),
        "assignments": np.zeros((1, 1, 1), int),
    }
    module._check_fit(read_draws(draws, rankings))


def test_blocs_of_a_large_table_are_found_only_if_asked(monkeypatch):
    """The work grows with choices times items; the page says why there are none."""
    mcmc, rankings = fitted(5)
    work = module.search_work({"center": 0, "concentration": 0}, rankings)
    choices = count_cells(rankings)
    assert choices <= 5 * 2**4
    assert work == 60 * 5 + choices * 5 < module.MOST_WORK
    assert module.search_work({"weights": 0}, rankings) == 60 * 5 + 2.5 * choices * 5

    monkeypatch.setattr(findings_module, "MOST_WORK", work - 1)
    found = findings_of(mcmc, rankings, checks=None)
    assert found.blocs is None and not found.blocs_first
    assert "ask for them by --blocs" in how_many(found)
    asked = findings_of(mcmc, rankings, checks=None, blocs=2)
    assert asked.blocs.number == 2 and "--blocs" not in how_many(asked)

    monkeypatch.setattr(module, "available_memory", lambda: 1000)
    with pytest.raises(NoBlocsError, match="to find blocs of 5 items takes about"):
        find_blocs(mcmc.get_samples(group_by_chain=True), rankings)


def test_no_blocs_where_one_population_says_as_much():
    mcmc, rankings = fitted(5, 0.5, centers=np.tile(np.arange(5), (5, 1)))
    assert findings_of(mcmc, rankings, checks=None).blocs is None
    with pytest.raises(NoBlocsError, match="one population describes the rankings as well"):
        find_blocs(mcmc.get_samples(group_by_chain=True), rankings)


def test_blocs_that_keep_more_than_all_groups(grouped, blocs, monkeypatch):
    """What exceeds 100% chooses no number, is explained, and is left out of the report."""
    assert suggested_number(np.array([0.0, 0.95, 1.2, 1.6]), 0.1) == 2
    assert suggested_number(np.array([0.0, 0.7, 0.85, 1.6]), 0.1) == 4
    assert "More than 100%" not in blocs_in_words.kept_explained(blocs)
    more = [level._replace(kept=level.kept + 1.0) for level in blocs.levels]
    more = blocs._replace(levels=tuple(more))
    assert "More than 100%" in blocs_in_words.kept_explained(more)

    mcmc, rankings = fitted(5)
    monkeypatch.setattr(findings_module, "find_blocs", lambda *_: more)
    assert findings_of(mcmc, rankings, checks=None).blocs is more
    # where one population says nearly as much, they are no coarse view
    little = np.full_like(more.log_density, more.log_density_of_one + 0.09 * 60)
    more = more._replace(log_density=little)
    assert findings_of(mcmc, rankings, checks=None).blocs is None
    alike = blocs._replace(levels=tuple(x._replace(kept=1.4) for x in blocs.levels))
    assert "instead" not in blocs_in_words.fewer_blocs(with_chains(alike, [1, 0]))


def test_draws_that_say_less_than_one_population_lose_nothing_to_blocs(grouped, blocs):
    """What blocs keep of them is no negative share, and the others set the lower end."""
    draws, rankings = grouped
    theta = np.array(draws["concentration"])
    theta[:, 0] = 0.0  # a draw of each chain: lists at random
    found = find_blocs({**draws, "concentration": theta}, rankings, 3)
    gains = found.log_density - found.log_density_of_one
    assert (gains < 0).any() and gains.mean() > 0
    low, high = found.level.kept_interval
    of_others = np.max(found.log_density) - found.log_density_of_one
    expected = found.level.kept * gains.mean() / of_others
    assert low == pytest.approx(expected, rel=1e-6) and 0.5 < low < 1 < high
    assert found.levels[0].kept_interval == (0, 0)


@pytest.mark.parametrize("components", [None, 3, 5])
def test_blocs_are_found_if_chains_disagree(components):
    """Not of a mixture of few components, whose groups are as few as blocs."""
    mcmc, rankings = fitted(3, components=components)
    found = findings_of(apart(mcmc), rankings, checks=None)
    assert found.chains_disagree
    assert found.blocs_first == (components != 3)
    if components == 3:
        assert found.blocs is None
        return
    # the blocs are those of all chains, not only of those that the weights choose
    assert sorted(set(found.blocs.start_chain)) == [0, 1]
