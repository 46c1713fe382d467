"""Blocs on fabricated draws, and on short runs of simulated rankings."""

import jax
import numpy as np
import pytest
from helpers.fabricated import fabricated_mcmc
from helpers.simulated_blocs import LEAST_SHARE, least_share, simulate_blocs
from numpyro.infer import MCMC
from scipy.optimize import linear_sum_assignment

from numpyro_rankings import find_blocs, to_inference_data
from numpyro_rankings.datasets import simulate_mallows_mixture, simulate_plackett_luce_mixture
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.families import ITEM_POOL, MALLOWS, PLACKETT_LUCE, _mallows_fit
from numpyro_rankings.families._mallows_fit import MallowsFit
from numpyro_rankings.families.choice_cells import choice_cells, count_cells
from numpyro_rankings.families.mallows import log_cluster_likelihood, stage_orderings
from numpyro_rankings.infer import DPPlackettLuceGibbs
from numpyro_rankings.infer.mallows.data import as_mallows_data
from numpyro_rankings.infer.mallows.start import Components as SearchedComponents
from numpyro_rankings.infer.mallows.start import improve
from numpyro_rankings.posterior import bloc_levels, bloc_search
from numpyro_rankings.posterior import blocs as module
from numpyro_rankings.posterior.bloc_levels import (
    Arrival,
    BlocData,
    SearchedLevels,
    agreed,
    arrival,
)
from numpyro_rankings.posterior.bloc_search import BlocComponents, BlocSearch, Candidates
from numpyro_rankings.posterior.blocs import read_draws
from numpyro_rankings.rankings import Rankings

LISTS = [[0, 1, 2, 3], [1], [3, 0], [2, 1, 0, 4, 3], [2, 1, 0, 4], [1, 0, 2]]


def _orderings(rng, *shape):
    return np.argsort(rng.random(shape)).astype(np.int32)


def _fabricated(num_groups=3, shape=(2, 2), seed=0, num_rankings=200, noise=0.0):
    """Rankings of groups, and draws that have these groups in slots of random order."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, num_rankings)
    data = simulate_mallows_mixture(jax.random.key(seed), num_rankings, 5, lengths, num_groups, 1.5)
    slots = num_groups + 1
    slot_of = np.argsort(rng.random((*shape, slots)))  # of each group
    labels = np.broadcast_to(data.assignments, (*shape, num_rankings))
    stray = rng.random(labels.shape) < noise
    labels = np.where(stray, rng.integers(0, num_groups, labels.shape), labels)
    assignments = np.take_along_axis(slot_of, labels, axis=-1)
    center, theta = _orderings(rng, *shape, slots, 5), rng.gamma(1.0, 1.0, (*shape, slots, 4))
    chain, draw = np.indices(shape)[..., None]
    group = np.arange(num_groups)
    center[chain, draw, slot_of[..., :num_groups]] = data.centers[group]
    theta[chain, draw, slot_of[..., :num_groups]] = data.concentrations[:, :4]
    sizes = (assignments[..., None] == np.arange(slots)).sum(-2)
    draws = {
        "assignments": assignments.astype(np.int8),
        "center": center,
        "concentration": theta.astype(np.float32),
        "cluster_sizes": sizes.astype(np.int32),
    }
    return draws, data


@pytest.fixture(scope="module")
def three():
    """Draws of three groups, the rankings, and the blocs that these are."""
    draws, data = _fabricated(3)
    return draws, data.rankings, find_blocs(draws, data.rankings, 3)


def _weighted(num_groups=3, shape=(2, 2), seed=0, pool=None, choice_sets=False):
    """The same with weights, and with a pool of this weight."""
    rng = np.random.default_rng(seed)
    data = simulate_plackett_luce_mixture(
        jax.random.key(seed), 300, rng.dirichlet(np.ones(5), num_groups), 3
    )
    rankings = data.rankings
    if choice_sets:
        orderings, rows = np.asarray(rankings.orderings), np.arange(300)[:, None]
        offered = rng.random((300, 5)) < 0.5
        offered[rows, orderings] = True
        rankings = Rankings.from_orderings(orderings, num_items=5, choice_sets=offered)
    weights = np.broadcast_to(data.weights, (*shape, *data.weights.shape))
    draws = {
        "assignments": np.broadcast_to(data.assignments, (*shape, 300)),
        "weights": weights if pool is None else weights * (1 - pool),
        "cluster_sizes": np.broadcast_to(
            np.bincount(data.assignments, minlength=num_groups), (*shape, num_groups)
        ),
    }
    if pool is not None:
        draws["unseen_weight"] = np.full((*shape, num_groups), pool)
    return draws, rankings, data


# -- likelihoods and fits ------------------------------------------------------------------------


def test_log_likelihood_of_mallows_cells():
    rng, rankings = np.random.default_rng(0), Rankings.from_orderings(LISTS, num_items=5)
    model = MALLOWS.fitter(rankings)
    center, theta = _orderings(rng, 3, 5), rng.gamma(1.0, 1.0, (3, 4))
    found = model.cells.of_rows @ model.log_choices((center, theta))
    lists = stage_orderings(rankings.orderings, 4)
    np.testing.assert_allclose(found, log_cluster_likelihood(lists, center, theta), rtol=2e-5)
    expected = GeneralizedMallows(center, theta).entropy()
    np.testing.assert_allclose(model.entropy((center, theta)), expected, rtol=2e-5)


@pytest.mark.parametrize("pool", [None, 0.2])
@pytest.mark.parametrize("with_sets", [False, True])
def test_log_likelihood_of_plackett_luce_cells(pool, with_sets):
    rng, offered = np.random.default_rng(0), None
    if with_sets:
        offered = rng.random((len(LISTS), 5)) < 0.5
        for row, items in enumerate(LISTS):
            offered[row, items] = True
    rankings = Rankings.from_orderings(LISTS, num_items=5, choice_sets=offered)
    weights = rng.dirichlet(np.ones(5), 3)
    draw, parameters = {"weights": weights}, weights
    if pool is not None:
        draw = {"weights": weights * (1 - pool), "unseen_weight": np.full(3, pool)}
        parameters = np.append(draw["weights"], draw["unseen_weight"][:, None], axis=1)
    family = PLACKETT_LUCE if pool is None else ITEM_POOL
    model = family.fitter(rankings)
    found = model.cells.of_rows @ model.log_choices((parameters,))
    expected = family.log_rows(draw, rankings.orderings, offered)
    np.testing.assert_allclose(found.T, expected, rtol=2e-5)


def test_equal_choices_are_one_cell():
    lists = [[0, 1, 2], [1, 0, 2], [0, 2]]
    rankings = Rankings.from_orderings(lists, num_items=4)
    cells = choice_cells(rankings, 3)
    assert count_cells(rankings) == 6
    # 0 and 1 of all, 1 without 0, 0 without 1, 2 without both (of two lists), 2 without 0
    assert cells.of_rows.shape == (3, 6)
    assert cells.items.tolist() == [0, 0, 1, 1, 2, 2]
    left = {tuple(np.flatnonzero(x)) for x in cells.sets}
    assert left == {(0, 1, 2, 3), (1, 2, 3), (0, 2, 3), (2, 3)}


def test_a_round_is_that_of_the_search_for_a_start():
    data = simulate_mallows_mixture(jax.random.key(3), 150, 6, 4, 2, 1.0)
    rankings = data.rankings.unique()
    rng = np.random.default_rng(0)
    center, theta = _orderings(rng, 2, 6), rng.gamma(1.0, 1.0, (2, 4))
    model, rows = MALLOWS.fitter(rankings), rankings.num_rows
    belonging = rng.dirichlet(np.ones(2), rows) * np.asarray(rankings.counts)[:, None]
    turn = 1  # blocks of 1 and of 2 items
    found = model.fit((center, theta), model.cells.of_cells @ belonging, turn)
    now = SearchedComponents(center, theta, np.zeros(2))
    expected = improve(now, belonging.T, as_mallows_data(rankings), np.array([1, 2]))
    np.testing.assert_array_equal(found[0], expected.center)
    np.testing.assert_allclose(found[1], expected.concentration, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_round_decreases_the_objective(weighted):
    rng = np.random.default_rng(1)
    data = simulate_mallows_mixture(jax.random.key(1), 300, 6, rng.integers(1, 7, 300), 4, 1.0)
    search = BlocSearch(data.rankings.unique(), PLACKETT_LUCE if weighted else MALLOWS)
    if weighted:
        parameters = (rng.dirichlet(np.ones(6), 3),)
    else:
        parameters = _orderings(rng, 3, 6), rng.gamma(1.0, 1.0, (3, 5))
    _assert_climbs(search, BlocComponents(np.log([0.2, 0.3, 0.5]), parameters))


def _assert_climbs(search, start, **options):
    """No round decreases the objective."""
    for fit in search.rounds(start, **options):
        if len(fit.trace) == 40:
            break
    assert np.diff(fit.trace).min() > -1e-6
    assert fit.trace[-1] > fit.trace[0] + 50


@pytest.mark.parametrize("thorough", [False, True])
def test_no_round_with_many_items_decreases_the_objective(thorough, monkeypatch):
    """Thorough rounds get as far at least; quick ones need no costs of each stage."""
    data = simulate_mallows_mixture(jax.random.key(2), 200, 20, 8, 3, 0.5)
    search = BlocSearch(data.rankings.unique(), MALLOWS)
    rng = np.random.default_rng(1)
    start = BlocComponents(np.log([0.5, 0.5]), (_orderings(rng, 2, 20), np.full((2, 8), 0.1)))
    if not thorough:
        monkeypatch.setattr(MallowsFit, "_costs", None)
    _assert_climbs(search, start, thorough=thorough)


def test_quick_moves_with_equal_concentrations_are_the_best_ones():
    """A slow twin: each move of one item, its codes told one by one."""
    data = simulate_mallows_mixture(jax.random.key(2), 60, 7, 4, 1, 0.7)
    rankings = data.rankings.unique()
    model = MALLOWS.fitter(rankings)
    center = _orderings(np.random.default_rng(0), 1, 7)
    of_rows = np.asarray(rankings.counts, float)[:, None]
    amounts, theta = model.cells.of_cells @ of_rows, np.ones((1, 4))
    costs = model._weighted_costs(amounts, theta)
    found = model._moved(center, costs, 1)
    totals = {}
    for start in range(7):
        for new_start in range(7):
            rest = np.delete(center[0], start)
            option = np.insert(rest, new_start, center[0, start])
            totals[tuple(option)] = model._sums(option[None], amounts).sum()
    assert totals[tuple(found[0])] == min(totals.values())
    assert min(totals.values()) < totals[tuple(center[0])]


def test_quick_moves_take_the_better_of_two_centers(monkeypatch):
    """One component begins with the best center, and is moved away from it; the other to it."""
    data = simulate_mallows_mixture(jax.random.key(2), 60, 7, 4, 1, 0.7)
    rankings = data.rankings.unique()
    model = MALLOWS.fitter(rankings)
    of_rows = np.asarray(rankings.counts, float)[:, None]
    amounts = model.cells.of_cells @ of_rows
    worst = np.arange(7)[None]
    best, theta = model.fit((worst, np.ones((1, 4))), amounts, 0, thorough=True)
    assert not np.array_equal(best, worst)
    monkeypatch.setattr(_mallows_fit, "_FEW_COSTS", 0)
    monkeypatch.setattr(MallowsFit, "_moved", lambda *_: moved)
    start, moved = np.concatenate([best, worst]), np.concatenate([worst, best])
    found = model.fit((start, np.ones((2, 4))), np.tile(amounts, 2), 0)
    np.testing.assert_array_equal(found[0], np.concatenate([best, best]))
    np.testing.assert_allclose(found[1], np.concatenate([theta, theta]), rtol=1e-5)


def test_weights_of_zero_have_a_finite_prior_and_are_improved():
    """Weights of draws in float32 may be 0; the prior is that of each item chosen once more."""
    rankings = Rankings.from_orderings([[0, 1, 2], [1, 0, 2], [2, 1, 0]], num_items=3)
    search = BlocSearch(rankings, PLACKETT_LUCE)
    weights = np.array([[0.5, 0.3, 0.2], [1.0, 1e-30, 0.0]], np.float32)
    tiny = float(np.finfo(np.float32).tiny)
    by_hand = np.log([0.5, 0.3, 0.2]).sum() + np.log(1e-30) + np.log(tiny)
    assert search.model.log_prior((weights,)) == pytest.approx(by_hand, rel=1e-6)
    parts = search.model.log_prior((weights[:1],)), search.model.log_prior((weights[1:],))
    assert sum(parts) == pytest.approx(by_hand, rel=1e-6)
    rounds = search.rounds(BlocComponents(np.log([0.5, 0.5]), (weights,)))
    fits = [next(rounds) for _ in range(4)]
    assert np.isfinite(fits[0].objective)
    assert np.diff(fits[-1].trace).min() > 0
    assert np.isfinite(fits[-1].components.parameters[0]).all()
    assert fits[-1].components.parameters[0].min() > 0


def test_gains_are_finite_where_neither_candidate_nor_rest_has_density():
    """The density of a row is then 0 under both, and its share 0 / 0."""
    search = BlocSearch(Rankings.from_orderings([[0, 1, 2], [2, 1, 0]], num_items=3), MALLOWS)
    weights = np.array([0.5, 0.5], np.float32)
    further = Candidates((np.arange(3)[None],), np.arange(2), weights, np.zeros((2, 1)))
    rest = ratios = np.array([[0.0], [1.0]], np.float32)
    with np.errstate(invalid="raise", divide="raise"):
        gains, shares = search._gains(further, rest, ratios, 0.5)
    assert np.isfinite(gains).all() and np.isfinite(shares).all()
    assert 0 < shares[0] < 1


@pytest.mark.parametrize("weighted", [False, True])
def test_similar_groups_are_merged_first(weighted):
    rng = np.random.default_rng(0)
    if weighted:
        draws, rankings, data = _weighted(2)
        labels = data.assignments + 2 * rng.integers(0, 2, 300)  # two halves of each group
        draws["weights"] = np.tile(draws["weights"], (1, 1, 2, 1))
    else:
        draws, data = _fabricated(2)
        rankings, labels = data.rankings, data.assignments + 2 * rng.integers(0, 2, 200)
        draws["center"] = np.tile(data.centers, (2, 2, 2, 1))
        draws["concentration"] = np.tile(data.concentrations[:, :4], (2, 2, 2, 1))
    draws["assignments"] = np.broadcast_to(labels, (2, 2, len(labels)))
    draws["cluster_sizes"] = np.broadcast_to(np.bincount(labels), (2, 2, 4))
    merged = BlocData(read_draws(draws, rankings)).merge(0, 0, 8)
    assert sorted(merged) == [1, 2, 3, 4]
    sizes = np.bincount(data.assignments)
    np.testing.assert_allclose(
        sorted(np.exp(merged[2].log_shares)), sorted((sizes + 1) / (sizes.sum() + 2))
    )


# -- blocs of draws -------------------------------------------------------------------------------


def test_blocs_that_are_the_groups_keep_everything():
    draws, data = _fabricated(3)
    found = find_blocs(draws, data.rankings, num_blocs=3)
    assert found.number == 3 and len(found.levels) == 3
    assert found.kept[0] == 0
    assert 1.0 <= found.kept[2] < 1.2  # the parameters of the draws are not the best ones
    low, high = found.level.kept_interval
    assert low <= found.kept[2] <= high
    centers = {tuple(bloc.consensus_ordering) for bloc in found.blocs}
    assert centers == set(map(tuple, data.centers))
    sizes = [bloc.size for bloc in found.blocs]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == pytest.approx(200)
    for bloc in found.blocs:
        assert bloc.size_interval[0] <= bloc.size_interval[1]
        assert 0.5 < bloc.certainty <= 1
        assert bloc.weights is None and bloc.concentration.shape == (4,)
        assert bloc.consensus[0] == f"item {bloc.consensus_ordering[0] + 1}"
        assert 0 < bloc.agreement < 1


def test_shapes_and_the_tree():
    draws, data = _fabricated(4, noise=0.1)
    rankings = data.rankings.unique()
    order = np.argsort(data.rankings.merged()[1], kind="stable")  # judges of equal rows together
    draws["assignments"] = draws["assignments"][..., order]
    found = find_blocs(draws, rankings)
    for number, level in enumerate(found.levels, start=1):
        assert level.number == number
        assert level.membership.shape == (rankings.num_rows, number)
        np.testing.assert_allclose(level.membership.sum(1), 1)
        np.testing.assert_array_equal(
            level.labels, level.membership.argmax(1)[np.asarray(rankings.row_index)]
        )
        assert level.arrived.shape == found.start_chain.shape == found.start_draw.shape
        assert level.chains_agree.shape == (2,)
        assert level.chain_kept.shape == level.chain_distance.shape == (2,)
        agree = (level.chain_kept >= level.kept - 0.01) & (level.chain_distance <= 0.1)
        np.testing.assert_array_equal(level.chains_agree, agree)
        for chain in range(2) if number > 1 else ():
            of_chain = level.start_kept[found.start_chain == chain]
            if np.isfinite(of_chain).any():  # the search does not lose
                assert level.chain_kept[chain] >= np.nanmax(of_chain) - 1e-3
        if number > 1:
            above = [bloc.size for bloc in found.levels[number - 2].blocs]
            np.testing.assert_allclose(level.flow.sum(1), above)
            np.testing.assert_allclose(level.flow.sum(0), [bloc.size for bloc in level.blocs])
            np.testing.assert_array_equal(level.parent, level.flow.argmax(0))
    assert np.diff(found.kept).min() > 0
    assert found.blocs is found.level.blocs is found.levels[found.number - 1].blocs
    assert found.log_density.shape == (4,)


def _in_pieces(weighted, seed):
    """Two groups, which the draws divide at random into eight: more blocs have little to add."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, 150)
    data = simulate_mallows_mixture(jax.random.key(seed), 150, 5, lengths, 2, 1.0)
    labels, shape = 4 * np.asarray(data.assignments) + rng.integers(0, 4, (2, 3, 150)), (2, 3, 8)
    centers = np.broadcast_to(np.repeat(data.centers, 4, 0), (*shape, 5))
    draws = {"assignments": labels, "cluster_sizes": (labels[..., None] == np.arange(8)).sum(2)}
    if weighted:
        weights = np.exp(-np.argsort(centers, -1)) * rng.gamma(20, 1 / 20, (*shape, 5))
        draws["weights"] = weights / weights.sum(-1, keepdims=True)
    else:
        theta = np.repeat(data.concentrations[:, :4], 4, 0) * rng.gamma(20, 1 / 20, (*shape, 4))
        draws |= {"center": centers, "concentration": theta}
    return draws, data


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_more_blocs_never_keep_less(monkeypatch, weighted, seed):
    draws, data = _in_pieces(weighted, seed)
    assert np.diff(find_blocs(draws, data.rankings, 8).kept).min() >= -1e-9
    for level in find_blocs(draws, data.rankings).levels:  # which end before a bloc of nobody
        assert np.isfinite([bloc.certainty for bloc in level.blocs]).all()
    monkeypatch.setattr(bloc_levels, "never_less", lambda *_: None)
    assert np.diff(find_blocs(draws, data.rankings, 8).kept).min() < -1e-3


@pytest.mark.parametrize("num_blocs", [None, 4])
def test_levels_end_before_two_equal_blocs(monkeypatch, num_blocs):
    """Unless so many are asked for. Here the search finds nothing that keeps more than three."""
    draws, data = _in_pieces(False, 1)
    never_less = bloc_levels.never_less

    def divide(search, best, pool):
        never_less(search, best, pool)
        best[3] = next(search.rounds(search.divided(best[2])))

    monkeypatch.setattr(bloc_levels, "never_less", divide)
    found = find_blocs(draws, data.rankings, num_blocs)
    assert len(found.levels) == (num_blocs or 3)
    for level in found.levels[:3]:
        assert np.isfinite([bloc.certainty for bloc in level.blocs]).all()
    if num_blocs is not None:
        assert found.kept[3] == pytest.approx(found.kept[2])
        assert np.isnan([bloc.certainty for bloc in found.blocs]).sum() == 1


def test_two_equal_blocs_are_none(monkeypatch):
    draws, data = _in_pieces(False, 1)

    def divide(search, best, pool):
        best[1] = next(search.rounds(search.divided(best[0])))

    monkeypatch.setattr(bloc_levels, "never_less", divide)
    with pytest.raises(module.NoBlocsError, match="one population describes the rankings as well"):
        find_blocs(draws, data.rankings)
    for asked in (1, 2):  # two are compared with one in any case
        assert len(find_blocs(draws, data.rankings, asked).levels) == 2


def test_number_of_blocs_by_what_the_last_one_adds():
    draws, data = _fabricated(4)
    kept = find_blocs(draws, data.rankings).kept
    added = np.diff(kept)
    for least in (0.0, 0.5 * (added[1] + added[2]), 1.0):
        expected = max([2, *(k + 2 for k in range(len(added)) if added[k] >= least)])
        assert find_blocs(draws, data.rankings, least_gain=least).number == expected
    assert find_blocs(draws, data.rankings, num_blocs=1).number == 1


def test_order_of_clusters_and_chains_does_not_matter():
    draws, data = _fabricated(3, noise=0.1)
    found = find_blocs(draws, data.rankings, 3)
    new = np.array([2, 0, 3, 1])  # the new slot of each slot
    changed = {name: np.empty_like(x) for name, x in draws.items()}
    for name in ("center", "concentration", "cluster_sizes"):
        changed[name][:, :, new] = draws[name]
    changed["assignments"] = new[draws["assignments"]]
    changed = {name: x[::-1] for name, x in changed.items()}
    again = find_blocs(changed, data.rankings, 3)
    np.testing.assert_array_equal(again.labels, found.labels)
    np.testing.assert_allclose(again.kept, found.kept, rtol=1e-3)
    np.testing.assert_array_equal(again.level.chains_agree, found.level.chains_agree[::-1])


def test_rows_of_any_form_give_the_same_blocs(three):
    draws, rankings, found = three
    order = np.argsort(rankings.merged()[1], kind="stable")
    sorted_draws = {**draws, "assignments": draws["assignments"][..., order]}
    merged = find_blocs(sorted_draws, rankings.unique(), 3)
    np.testing.assert_array_equal(merged.labels, found.labels[order])
    np.testing.assert_allclose(merged.kept, found.kept, rtol=1e-6)


def test_chains_that_have_other_groups_do_not_arrive(monkeypatch):
    # EM makes two rounds only, so that each start stays near the groups of its draw
    monkeypatch.setattr(bloc_search, "_BLURRED_ROUNDS", 0)
    monkeypatch.setattr(bloc_search, "_MOST_ROUNDS", 2)
    draws, data = _fabricated(3)
    labels = draws["assignments"].copy()
    labels[1] = np.random.default_rng(0).integers(0, 3, labels[1].shape)
    level = find_blocs({**draws, "assignments": labels}, data.rankings, 3).level
    assert level.start_kept[:2].min() > level.start_kept[2:].max() + 0.01
    assert level.start_distance[:2].max() < level.start_distance[2:].min()
    close = level.start_kept >= level.kept - 0.01
    np.testing.assert_array_equal(level.arrived, close & (level.start_distance <= 0.1))
    # the search leads from there to the same blocs
    assert level.num_arrived <= 2 and level.chains_agree.all()
    np.testing.assert_allclose(level.chain_kept, level.kept, atol=0.01)


def test_chains_that_lead_elsewhere_do_not_agree(monkeypatch):
    """The last chain has other groups, from which no search goes on; and once too few of them."""
    monkeypatch.setattr(bloc_search, "_BLURRED_ROUNDS", 0)
    monkeypatch.setattr(bloc_search, "_MOST_ROUNDS", 2)
    monkeypatch.setattr(bloc_levels, "search_further", lambda *_: None)
    monkeypatch.setattr(BlocSearch, "shake", lambda search, fit: fit)
    monkeypatch.setattr(BlocSearch, "settle", lambda search, fit: fit)
    draws, data = _fabricated(3, shape=(4, 2))
    labels = draws["assignments"].copy()
    labels[3] = np.random.default_rng(0).integers(0, 3, labels[3].shape)
    level = find_blocs({**draws, "assignments": labels}, data.rankings, 3).level
    assert level.chains_agree.tolist() == [True, True, True, False]
    best = level.start_kept.reshape(4, -1).max(1)
    np.testing.assert_allclose(level.chain_kept, best, rtol=1e-6)
    labels[3] = draws["assignments"][3]
    for of_draw in labels[3]:
        first, *_, last = np.unique(of_draw)
        of_draw[of_draw == last] = first
    level = find_blocs({**draws, "assignments": labels}, data.rankings, 3).level
    assert level.chains_agree.tolist() == [True, True, True, False]
    assert np.isnan(level.chain_kept[3])


@pytest.fixture(scope="module")
def two(three):
    """The draws of three groups, and the two blocs into which those of a draw are merged."""
    draws, rankings, _ = three
    of_draws = BlocData(read_draws(draws, rankings))
    return of_draws, next(of_draws.search.rounds(of_draws.merge(0, 0, 8)[2]))


def test_of_blocs_that_keep_as_much_those_of_most_chains_are_taken(two):
    of_draws, best = two
    other = next(of_draws.search.rounds(of_draws.merge(0, 0, 8)[3]))
    labels = np.arange(len(of_draws.counts)) % 2
    elsewhere = Arrival(best.log_likelihood - 0.1, labels, other.components)
    same = arrival(best)
    for chains, is_best in (([elsewhere, elsewhere], False), ([elsewhere, same], True)):
        found = agreed(of_draws, best, [*chains, None], 100.0)
        assert (found is best) == is_best
    assert len(agreed(of_draws, best, [elsewhere] * 2, 100.0).membership.T) == 3
    assert agreed(of_draws, best, [elsewhere] * 2, 1.0) is best  # which keeps 10% less


def test_blocs_may_keep_half_a_percent_less_if_most_chains_lead_to_them(two):
    of_draws, best = two
    labels = np.arange(len(of_draws.counts)) % 2
    for less, is_best in ((0.45, False), (0.55, True)):
        other = Arrival(best.log_likelihood - less, labels, best.components)
        assert (agreed(of_draws, best, [other, other], 100.0) is best) == is_best


def test_blocs_are_the_same_up_to_a_tenth_of_the_largest_distance(two):
    """Labels of ever more rows are changed, the rarest first, until the distance is just above."""
    of_draws, best = two
    fits = [of_draws.best_of_one([of_draws.merge(0, 0, 8)]), best]
    said = of_draws.sizes([(0, 0)], fits)
    labels = best.membership.argmax(1)
    near, distance = labels.copy(), 0.0
    for row in np.argsort(of_draws.counts, kind="stable"):
        before, distance_before = near.copy(), distance
        near[row] = 1 - near[row]
        distance = of_draws.distance(near, labels) / (2 * np.log(2))
        if distance > 0.1:
            break
    assert 0.07 < distance_before <= 0.1 < distance < 0.13
    for changed, is_same in ((before, True), (near, False)):
        other = Arrival(best.log_likelihood - 0.1, changed, best.components)
        assert (agreed(of_draws, best, [other, other], 100.0) is best) == is_same
        levels = SearchedLevels(fits, [[], [other]], [[], [other]])
        level = module._level(of_draws, said, levels, 2)
        assert level.arrived.tolist() == level.chains_agree.tolist() == [is_same]


def test_intervals_hold_nine_of_ten_draws(monkeypatch):
    draws, data = _fabricated(3, shape=(2, 10), noise=0.2)
    sizes, asked = BlocData.sizes, []

    def recorded(of_draws, *arguments):
        asked.append(sizes(of_draws, *arguments))
        return asked[-1]

    monkeypatch.setattr(BlocData, "sizes", recorded)
    found = find_blocs(draws, data.rankings, 2)
    gains = found.log_density - found.log_density_of_one
    kept = found.kept[1] * gains.mean() / gains
    np.testing.assert_allclose(found.level.kept_interval, np.quantile(kept, [0.05, 0.95]))
    sizes = asked[-1].sizes[:, 1:3]
    expected = np.quantile(sizes, [0.05, 0.95], axis=0).T
    intervals = [bloc.size_interval for bloc in found.blocs]
    np.testing.assert_allclose(sorted(intervals), sorted(expected.tolist()))
    assert min(np.ptp(sizes, axis=0)) > 0 and np.ptp(kept) > 0


@pytest.mark.parametrize("pool", [None, 0.001])
@pytest.mark.parametrize("choice_sets", [False, True])
def test_blocs_of_weights(pool, choice_sets):
    draws, rankings, data = _weighted(3, pool=pool, choice_sets=choice_sets)
    found = find_blocs(draws, rankings, 3)
    assert found.kept[2] > 0.95
    weights = np.array([bloc.weights for bloc in found.blocs])
    distance = np.abs(weights[:, None] - data.weights).sum(-1)
    np.testing.assert_array_less(distance[linear_sum_assignment(distance)], 0.5)
    for bloc in found.blocs:
        total = bloc.weights.sum() + (bloc.unseen_weight or 0.0)
        assert total == pytest.approx(1)
        assert (bloc.unseen_weight is None) == (pool is None)
        assert bloc.concentration is None
        assert bloc.consensus_ordering[0] == bloc.weights.argmax()


def test_sizes_are_those_of_the_groups_of_a_draw():
    """A slow twin. The rankings of a group stand for its size, whatever its density expects."""
    draws, data = _fabricated(3)
    for labels in draws["assignments"].reshape(4, -1):  # the first group lends half of it
        first, second, *_ = np.unique(labels)
        of_first = np.flatnonzero(labels == first)
        labels[of_first[::2]] = second
    of_draws = BlocData(read_draws(draws, data.rankings))
    merged = of_draws.merge(0, 0, 8)
    fits = [of_draws.best_of_one([merged]), next(of_draws.search.rounds(merged[2]))]
    said = of_draws.sizes([(0, 0), (1, 1)], fits)
    lists = stage_orderings(np.asarray(data.rankings.orderings), 4)
    for d, (chain, draw) in enumerate([(0, 0), (1, 1)]):
        labels = draws["assignments"][chain, draw]
        used, sizes = np.unique(labels, return_counts=True)
        log_p = log_cluster_likelihood(
            lists, draws["center"][chain, draw][used], draws["concentration"][chain, draw][used]
        )
        joint = np.exp(log_p) * (sizes / sizes.sum())
        belonging = joint / joint.sum(1, keepdims=True)
        membership = fits[1].membership[of_draws.row_of_given]
        expected = np.zeros(2)
        for group, size in enumerate(sizes):  # of those that it would have, as many as it has
            mean = np.average(membership, axis=0, weights=belonging[:, group])
            expected += size * mean
        assert not np.allclose(belonging.sum(0), sizes, rtol=0.05)
        np.testing.assert_allclose(said.sizes[d, 0], sizes.sum())
        np.testing.assert_allclose(said.sizes[d, 1:], expected, rtol=1e-4)
        assert said.log_density[d] == pytest.approx(np.log(joint.sum(1)).sum(), rel=1e-5)


def test_blocs_of_a_run_of_the_dirichlet_process_of_weights():
    """Draws of the kernel itself, whose pool is a part of each group."""
    rng = np.random.default_rng(2)
    weights = np.array([[0.8, 0.1, 0.05, 0.03, 0.02], [0.02, 0.03, 0.05, 0.1, 0.8]])
    truth = rng.integers(0, 2, 120)
    lists = [rng.choice(5, 2, replace=False, p=weights[k]).tolist() for k in truth]
    rankings = Rankings.from_orderings(lists, num_items=5)
    mcmc = MCMC(
        DPPlackettLuceGibbs(max_clusters=16), num_warmup=60, num_samples=40, progress_bar=False
    )
    mcmc.run(jax.random.key(0), rankings)
    found = find_blocs(mcmc.get_samples(), rankings, 2)
    assert {bloc.consensus[0] for bloc in found.blocs} == {"item 1", "item 5"}
    assert max(np.mean(found.labels == truth), np.mean(found.labels != truth)) > 0.85
    for bloc in found.blocs:
        assert 0 < bloc.unseen_weight < 0.5
        assert bloc.weights.sum() + bloc.unseen_weight == pytest.approx(1)


def test_takes_draws_of_one_chain(three):
    draws, rankings, found = three
    flat = {name: x.reshape(4, *x.shape[2:]) for name, x in draws.items()}
    single = find_blocs(flat, rankings, 3)
    assert single.level.chains_agree.shape == (1,)
    np.testing.assert_array_equal(single.labels, found.labels)


def test_bad_input_is_refused_in_one_line():
    draws, data = _fabricated(3)
    rankings = data.rankings
    for bad, words in (
        ({"num_blocs": 0}, "num_blocs must be a positive whole number, got 0"),
        ({"num_blocs": 4}, "num_blocs is 4, but the draws have at most 3 groups"),
        ({"least_gain": 1.5}, "least_gain must be a share between 0 and 1, got 1.5"),
    ):
        with pytest.raises(ValueError, match=words):
            find_blocs(draws, rankings, **bad)
    with pytest.raises(TypeError, match="must be a Rankings"):
        find_blocs(draws, np.asarray(rankings.orderings))
    with pytest.raises(ValueError, match="the run was of 200 rankings"):
        find_blocs(draws, rankings.split(jax.random.key(0), 0.5)[0])
    with pytest.raises(TypeError, match="samples must be a dictionary"):
        find_blocs([1, 2], rankings)
    with pytest.raises(ValueError, match="one population, which has no blocs"):
        find_blocs({"weights": np.full((2, 4, 5), 0.2)}, rankings)
    same = {**draws, "assignments": np.zeros_like(draws["assignments"])}
    with pytest.raises(ValueError, match="each draw has one group only"):
        find_blocs(same, rankings)
    poor = {**draws, "concentration": np.full_like(draws["concentration"], 8.0)}
    poor["center"] = _orderings(np.random.default_rng(0), 2, 2, 4, 5)
    with pytest.raises(ValueError, match="one population describes the rankings as well"):
        find_blocs(poor, rankings)


def _with(draws, name, value):
    """Return the draws with another value in each cluster of the first draw."""
    changed = np.array(draws[name], float if isinstance(value, float) else None)
    changed[0, 0] = value
    return {**draws, name: changed}


def test_bad_draws_are_refused_in_one_line():
    draws, data = _fabricated(3)
    weighted, of_weights, _ = _weighted(3, pool=0.1)
    swapped = draws["center"].copy()
    swapped[1, 1, :, 0] = swapped[1, 1, :, 1]
    for bad, words in (
        (_with(draws, "concentration", np.nan), "concentration must be finite .*, got nan"),
        (_with(draws, "concentration", np.inf), "concentration must be finite .*, got inf"),
        (_with(draws, "concentration", -1.0), "concentration must be .* not negative, got -1.0"),
        ({**draws, "center": swapped}, "center must be an order of all items, got "),
        (_with(draws, "assignments", -1), "assignments must be from 0 to 3, got -1"),
        (_with(draws, "assignments", 77), "assignments must be from 0 to 3, got 77"),
        (_with(draws, "assignments", np.nan), "assignments must be from 0 to 3, got nan"),
        ({**draws, "center": draws["center"][:, :1]}, r"center .* draws .* shape is \(2, 1, 4, 5"),
        ({**draws, "center": draws["center"][:, :, :3]}, "must be of as many .* clusters"),
        ({**draws, "concentration": draws["concentration"][..., 0]}, "concentration must be of as"),
        ({**draws, "assignments": draws["assignments"][0, 0]}, "assignments must be of as many"),
    ):
        with pytest.raises(ValueError, match=words) as error:
            find_blocs(bad, data.rankings)
        assert "\n" not in str(error.value)
    for bad, words in (
        (_with(weighted, "weights", np.nan), "weights must be finite .*, got nan"),
        (_with(weighted, "weights", np.inf), "weights must be finite .*, got inf"),
        (_with(weighted, "weights", 0.0), "weights must not all be 0 in a cluster"),
        (_with(weighted, "unseen_weight", np.nan), "unseen_weight must be finite .*, got nan"),
        ({k: x for k, x in weighted.items() if k != "cluster_sizes"}, "have no cluster_sizes"),
    ):
        with pytest.raises(ValueError, match=words):
            find_blocs(bad, of_weights)
    first = np.asarray(data.rankings.expand().orderings)[:, :3]
    with pytest.raises(ValueError, match="the run was of 4 stages; these rankings have 3"):
        find_blocs(draws, Rankings.from_orderings(first, num_items=5))


def test_empty_slots_may_hold_anything(three):
    draws, rankings, expected = three
    empty = draws["cluster_sizes"] == 0
    assert empty.any()
    other = {name: draws[name].copy() for name in ("center", "concentration")}
    other["center"][empty], other["concentration"][empty] = -1, np.nan
    found = find_blocs({**draws, **other}, rankings, 3)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.kept, expected.kept)


def test_blocs_found_are_matched_with_the_true_ones():
    truth = np.repeat([0, 1, 2, -1], 10)
    assert least_share(truth, np.repeat([2, 0, 1, 1], 10)) == 1
    mixed = np.repeat([2, 0, 1, 1], 10)
    mixed[:3] = 1
    assert least_share(truth, mixed) == 0.7
    assert least_share(truth, np.repeat([0, 0, 1, 1], 10)) == 0  # two blocs for three
    assert least_share(truth, np.repeat([0, 1, 2, 3], 10)) == 1
    data, bloc_of = simulate_blocs(0, 2000)
    assert bloc_of.tolist() == sorted(bloc_of[:-1]) + [-1] and set(bloc_of) == {-1, 0, 1, 2}
    assert all(2 <= count <= 4 for count in np.bincount(bloc_of[:-1]))
    assert np.mean(bloc_of[data.assignments] < 0) == pytest.approx(0.1, abs=0.02)


@pytest.mark.slow
def test_blocs_of_simulated_groups_are_found():
    """By draws that know the groups; each bloc keeps at least 80% of its rankings."""
    found = 0
    for seed in range(20):
        data, bloc_of = simulate_blocs(seed)
        rng, labels = np.random.default_rng(seed), np.asarray(data.assignments)
        theta = np.asarray(data.concentrations)[:, : data.rankings.num_items - 1]
        draws = {
            "assignments": np.tile(labels, (2, 6, 1)),
            "center": np.tile(data.centers, (2, 6, 1, 1)),
            "concentration": theta * rng.lognormal(0.0, 0.1, (2, 6, *theta.shape)),
            "cluster_sizes": np.tile(np.bincount(labels, minlength=len(theta)), (2, 6, 1)),
        }
        truth, blocs = bloc_of[labels], find_blocs(draws, data.rankings, 3).labels
        found += least_share(truth, blocs) >= LEAST_SHARE
    assert found >= 19


def test_takes_arviz_data():
    rankings = Rankings.from_orderings(_orderings(np.random.default_rng(0), 40, 4), num_items=4)
    mcmc = fabricated_mcmc(rankings, chains=2, draws=4)
    data = to_inference_data(mcmc, rankings, log_likelihood=False)
    assert read_draws(data, rankings).labels.shape == (2, 4, 40)
    without = to_inference_data(mcmc, rankings, log_likelihood=False, include_assignments=False)
    with pytest.raises(ValueError, match="no assignments: use include_assignments=True"):
        find_blocs(without, rankings)
