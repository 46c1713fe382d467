"""Share, cohesion and crossover of groups: by hand, and of simulated elections."""

import json

import numpy as np
import pytest
from helpers.simulated_slates import ITEMS, OWN, PREFERENCE, SLATES, slate_ballots
from scipy.stats import beta

from numpyro_rankings.posterior.blocs import Blocs
from numpyro_rankings.posterior.slates import names_for_votekit, slates_of
from numpyro_rankings.rankings import PartialOrders, Rankings, RankingsError

FOUR = {"a": "X", "b": "X", "c": "Y", "d": "Y"}


def of_one(rankings, slates=FOUR, **settings):
    """The numbers of all judges together."""
    n = rankings.num_items
    return slates_of({"weights": np.full((1, n), 1 / n)}, rankings, slates, **settings)


def of_labels(rankings, labels, slates, reference=None):
    """The numbers of groups, from draws of labels, (D, N)."""
    labels, n = np.asarray(labels), rankings.num_items
    slots = labels.max() + 1
    draws = {
        "assignments": labels,
        "weights": np.full((len(labels), slots, n), 1 / n),
        "cluster_sizes": (labels[..., None] == np.arange(slots)).sum(1),
    }
    return slates_of(draws, rankings, slates, reference)


def test_places_are_counted_until_a_slate_is_used_up():
    """The third place of a > b > c says nothing: no other slate is left."""
    lists = [[0, 1, 2], [2, 0, 3, 1]]
    rankings = Rankings.from_orderings(lists, items=list("abcd"), counts=[4000, 4000])
    found = of_one(rankings)
    np.testing.assert_allclose(found.support, [[3 / 5, 2 / 5]], atol=2e-3)  # XX and YXY
    np.testing.assert_allclose(found.first, [[1 / 2, 1 / 2]], atol=2e-3)
    assert found.slates == ("X", "Y") and found.own.tolist() == [0]
    np.testing.assert_allclose(found.cohesion + found.crossover, 1)
    np.testing.assert_allclose(found.crossover_interval, 1 - found.cohesion_interval[:, ::-1])


def test_first_places_have_the_posterior_of_jeffreys():
    rankings = Rankings.from_orderings([[0], [3]], items=list("abcd"), counts=[30, 10])
    found = of_one(rankings)
    exact = beta.ppf([0.05, 0.95], 30.5, 10.5)
    np.testing.assert_allclose(found.first_interval[0, 0], exact, atol=0.025)
    np.testing.assert_allclose(found.support_interval[0, 0], exact, atol=0.025)
    assert found.share.tolist() == [1] and found.share_interval.tolist() == [[1, 1]]


def test_ties_share_their_places_and_items_not_offered_do_not_count():
    orders = PartialOrders.from_buckets([[["a", "c"], "b"]], items=list("abcd"), counts=[4000])
    found = of_one(orders)  # the first two places are of X and Y, the third of X
    np.testing.assert_allclose(found.first, [[0.5, 0.5]], atol=2e-3)
    np.testing.assert_allclose(found.support, [[2 / 3, 1 / 3]], atol=2e-3)
    offered = np.array([[1, 1, 0, 0], [1, 1, 1, 0]], bool)
    rankings = Rankings.from_orderings(
        [[0, 1], [2]], items=list("abcd"), counts=[4000, 4000], choice_sets=offered
    )
    np.testing.assert_allclose(of_one(rankings).support, [[0, 1]], atol=2e-3)


def test_groups_are_aligned_over_draws():
    """Labels that switch, and a draw without the second group, change nothing of the first."""
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"), counts=[300, 100])
    one = np.repeat([0, 1], [300, 100])
    found = of_labels(rankings, [one, 1 - one, one, 0 * one], FOUR, one)
    np.testing.assert_allclose(found.share, [(3 * 0.75 + 1) / 4, 0.75 / 4])
    assert found.own.tolist() == [0, 1] and (found.cohesion_interval[1] > 0.97).all()
    assert found.first[0, 0] == pytest.approx((3 + 0.75) / 4, abs=0.02)
    turned = found.take([1, 0])
    assert turned.own.tolist() == [1, 0] and turned.slate_of_items.tolist() == [0, 0, 1, 1]


def test_of_blocs():
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"), counts=[300, 100])
    labels = np.repeat([0, 1], [300, 100])

    class Two(Blocs):
        membership = np.array([[0.9, 0.1], [0.0, 1.0]])
        blocs = tuple(type("Bloc", (), {"size": x}) for x in (270.0, 130.0))

    blocs = Two(2, (), labels, labels, labels, 0.0)
    found = of_one(rankings, blocs=blocs)
    np.testing.assert_allclose(found.share, [0.675, 0.325])
    assert found.first[1, 1] == pytest.approx(100 / 130, abs=0.02)
    assert found.first[0, 0] == pytest.approx(1, abs=0.01)


def test_an_election_with_known_blocs():
    """Of sixteen elections like those of VoteKit's slate-Plackett–Luce, most intervals hold."""
    inside = []
    for seed in range(16):
        ballots, blocs = slate_ballots(np.random.default_rng(seed), 600)
        rankings = Rankings.from_orderings(ballots, items=ITEMS)
        found = of_labels(rankings, [blocs] * 200, SLATES, blocs)
        truth = np.array(OWN)
        for bounds, value in (
            (found.share_interval[0], 0.65),
            (found.share_interval[1], 0.35),
            *zip(found.cohesion_interval, truth, strict=True),
            *zip(found.crossover_interval, 1 - truth, strict=True),
        ):
            inside.append(bounds[0] <= value <= bounds[1])
    np.testing.assert_allclose(found.preference, PREFERENCE, atol=0.1)
    assert 0.8 <= np.mean(inside) < 1


def test_what_votekit_reads():
    ballots, blocs = slate_ballots(np.random.default_rng(0), 600)
    rankings = Rankings.from_orderings(ballots, items=ITEMS)
    found = of_labels(rankings, [blocs] * 50, SLATES, blocs)
    config = json.loads(json.dumps(found.to_votekit()))
    assert config["n_voters"] == 600 and list(config["bloc_proportions"]) == ["A", "B"]
    assert config["slate_to_candidates"] == {"A": ITEMS[:3], "B": ITEMS[3:]}
    parts = [config["bloc_proportions"], *config["cohesion_mapping"].values()]
    parts += [x for of_bloc in config["preference_mapping"].values() for x in of_bloc.values()]
    assert all(sum(x.values()) == pytest.approx(1, abs=1e-9) for x in parts) and len(parts) == 7
    assert config["cohesion_mapping"]["B"]["B"] == pytest.approx(found.cohesion[1])
    same = found.take([0, 0]).to_votekit("bloc")
    assert list(same["cohesion_mapping"]) == ["bloc 1", "bloc 2"]


def test_candidates_have_names_that_votekit_allows():
    """Without : and blanks at the ends, no name twice; slates and blocs may have any names."""
    items = ["A:B", "A-B", "~", "Ranking_1", " x ", "Ranking_x"]
    names = ["A-B (2)", "A-B", "(~)", "(Ranking_1)", "x", "Ranking_x"]
    assert names_for_votekit(items) == names
    assert names_for_votekit(["a:", "a-", "a- (2)"]) == ["a- (3)", "a-", "a- (2)"]
    rankings = Rankings.from_orderings([[0], [2]], items=["a:1", "b", "~", "d"], counts=[9, 9])
    config = of_one(rankings, {"a:1": "X:", "b": "X:", "~": "~", "d": "~"}).to_votekit()
    assert config["slate_to_candidates"] == {"X:": ["a-1", "b"], "~": ["(~)", "d"]}
    (of_bloc,) = config["preference_mapping"].values()
    assert {x: [*y] for x, y in of_bloc.items()} == config["slate_to_candidates"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"e": "X"}, "'e' is no item of the rankings"),
        ({"a": ""}, "'a' has no slate; the items are a, b, c, d"),
        ({"a": "", "b": ""}, "'a' and 'b' have no slate"),
        ({"c": "X", "d": "X"}, "all items are in one slate"),
    ],
)
def test_refused(change, message):
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"))
    with pytest.raises(RankingsError, match=message):
        of_one(rankings, FOUR | change)


def test_pairs_are_refused():
    import pandas as pd

    table = pd.DataFrame({"judge": [1, 1], "winner": ["a", "c"], "loser": ["b", "d"]})
    pairs = PartialOrders.from_pairs(table, judge="judge", winner="winner", loser="loser")
    with pytest.raises(RankingsError, match="slates need lists"):
        of_one(pairs)


def test_items_that_are_left_over_together_are_no_places():
    """First a, and the rest tied: as the list of a alone."""
    tied = PartialOrders.from_ranks([[1, 2, 2, 2]], items=list("abcd"), counts=[100])
    top = Rankings.from_orderings([[0]], items=list("abcd"), counts=[100])
    np.testing.assert_allclose(of_one(tied).support, of_one(top).support, atol=0.01)
    np.testing.assert_allclose(of_one(tied).first, of_one(top).first, atol=0.01)
    assert of_one(top).support[0, 0] > 0.98


def test_a_group_that_no_draw_has():
    """It has its judges of the reference partition."""
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"), counts=[300, 100])
    found = of_labels(rankings, [[0] * 400], FOUR, np.repeat([0, 1], [300, 100]))
    np.testing.assert_allclose(found.share, [0.75, 0.25])
    assert found.own.tolist() == [0, 1] and (found.cohesion > 0.98).all()
