"""The steps with the labels integrated out, by themselves."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.enumeration import MallowsPosterior, discrepancies, lah, log_partition, partitions
from scipy import special, stats

from numpyro_rankings import Rankings
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.infer import SliceGibbs
from numpyro_rankings.infer.mallows.concentrations import Conjugate, PerStage, Tied
from numpyro_rankings.infer.mallows.data import as_mallows_data
from numpyro_rankings.infer.mallows.label_free import (
    MallowsClusters,
    MallowsParameters,
    draw_steps,
    move_mallows_without_labels,
)
from numpyro_rankings.infer.mixture import label_free
from numpyro_rankings.infer.mixture import trajectory as trajectories
from numpyro_rankings.infer.mixture.label_free import Effort, between, choose_large_clusters
from numpyro_rankings.infer.mixture.labels import canonical_order
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.mixture.steps import Block, choose_block, propose_shares, step_in_block
from numpyro_rankings.infer.mixture.target import (
    DrawnKind,
    Kind,
    LargeClusters,
    Mixture,
    Path,
    Proposal,
    StepDraw,
    Target,
)
from numpyro_rankings.infer.mixture.trajectory import move_along_trajectories, move_along_trajectory
from numpyro_rankings.infer.plackett_luce.data import as_data
from numpyro_rankings.infer.plackett_luce.fitted_splits import (
    Around,
    Fit,
    draw_around,
    fit,
    log_density_around,
    log_density_of_proportion,
)
from numpyro_rankings.infer.plackett_luce.label_free import (
    WeightedLabels,
    move_weights_without_labels,
)
from numpyro_rankings.infer.plackett_luce.label_free import draw_steps as draw_weight_steps
from numpyro_rankings.infer.plackett_luce.measures import Scales, draw_clusters
from numpyro_rankings.infer.plackett_luce.target import (
    GammaWeights,
    PittWalkerWeights,
    WeightsClusters,
)
from numpyro_rankings.ops.choices import (
    cells_if_tabled,
    design_if_small,
    log_choice_row_likelihoods,
    log_designed_likelihoods,
)

RANKINGS = [[0, 1, 2], [0], [3, 1], [3, 2, 0, 1]]
GAMMA = dist.Gamma(2.0, 1.5)
CHAINS, DRAWS = 100, 200
LISTS = [0, 0, 1, 0]  # of one item each
ROOT, UNSEEN = np.array([0.9, 0.4]), 0.3
SCALES = Scales(jnp.array(0.7), jnp.array(1.6), jnp.array(1.3))
TAU = 0.8


def conjugate(theta, left):
    log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
    return -0.8 * (0.9 * theta + log_psi)


def gamma_prior(theta, left):
    return stats.gamma(2.0, scale=1 / 1.5).logpdf(theta)


CASES = {
    "process": (Conjugate(jnp.full(3, 0.8), jnp.full(3, 0.9)), conjugate, 1.3, None, False),
    "process, tied": (Tied(GAMMA), gamma_prior, 0.7, None, True),
    "finite": (PerStage(GAMMA), gamma_prior, 1.5, 3, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("num_tries, most_moving", [(1, 16), (3, 2), (32, 16)])
@pytest.mark.parametrize("name", CASES)
def test_posterior_by_enumeration(name, num_tries, most_moving, monkeypatch):
    """No other update: splits, merges, shares and parameters alone, m = 1 or 2."""
    monkeypatch.setattr("numpyro_rankings.infer.mixture.label_free._MOST_TRIES", num_tries)
    monkeypatch.setattr(trajectories, "_MOST_MOVING", most_moving)
    prior, log_prior, alpha, num_components, tied = CASES[name]
    rankings = Rankings.from_orderings(RANKINGS, num_items=4)
    data, effort = as_mallows_data(rankings), Effort(20, has_trajectories=True)
    slots = num_components or 9
    partition = PartitionPrior(jnp.float32(alpha), num_components)

    def draw(now, key):
        now = move_mallows_without_labels(key, now, partition, prior, data, effort, 2)
        labels, order = canonical_order(now[0], slots)
        center, theta = (x[order] for x in now[1])
        one = {"assignments": labels, "center": center, "concentration": theta}
        return now, {**one, "alpha": partition.alpha}

    def chain(key):
        key_start, key_center, key_warmup, key_steps = jax.random.split(key, 4)
        center = jnp.argsort(jax.random.uniform(key_center, (slots, 4))).astype(jnp.int32)
        parameters = MallowsParameters(center, prior.draw(key_start, slots, data.limits))
        now = jnp.arange(4, dtype=jnp.int32) % min(slots, 4), parameters
        now, _ = jax.lax.scan(draw, now, jax.random.split(key_warmup, 100))
        return jax.lax.scan(draw, now, jax.random.split(key_steps, DRAWS))[1]

    samples = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), CHAINS))
    twin = MallowsPosterior(RANKINGS, 4, log_prior, tied)
    found = discrepancies(twin.indicators(samples), twin.expectations(alpha, num_components))
    # fewer than 50 quantities with 99 degrees of freedom: P(any |t| > 6) is about 2e-6
    assert max(found.values()) < 6.0, found


@pytest.mark.slow
def test_more_clusters_than_seats(monkeypatch):
    """The labels' own update leads to three and four clusters, where these moves end."""
    monkeypatch.setattr("numpyro_rankings.infer.mixture.label_free._MOST_CLUSTERS", 2)
    rankings = Rankings.from_orderings(RANKINGS, num_items=4)
    kernel = SliceGibbs(1.3, 0.8, 0.9, max_clusters=9, num_marginal_steps=20)

    def sweep(state, _):
        state = kernel.sample(state, (rankings,), {})
        return state, state.z

    @jax.vmap
    def chain(state):
        state, _ = jax.lax.scan(sweep, state, None, 50)
        return jax.lax.scan(sweep, state, None, 2 * DRAWS)[1]

    start = kernel.init(jax.random.split(jax.random.key(1), CHAINS), 0, None, (rankings,), {})
    samples = jax.jit(chain)(start)
    twin = MallowsPosterior(RANKINGS, 4, conjugate, False)
    found = discrepancies(twin.indicators(samples), twin.expectations(1.3, None))
    assert max(found.values()) < 6.0, found


@jax.jit
def family_draws(key, kinds):
    return draw_steps(key, 20_000, (3, 1), kinds, False).family


@pytest.mark.parametrize("kind", [0, 4], ids=["change", "split"])
def test_rearrangements_have_the_density_that_is_used(kind):
    draws = family_draws(jax.random.key(0), np.array([kind]))
    orders = np.asarray(draws.rearrangement)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(3), (20_000, 1)))
    every = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    inversions = np.array([0, 1, 1, 2, 2, 3])
    dispersal = np.asarray(draws.dispersal, np.float64)[:, None]
    assert np.any(dispersal == 0.0)  # uniform centers
    probs = np.exp(-dispersal * inversions - np.asarray(draws.log_constant)[:, None])
    np.testing.assert_allclose(probs.sum(1), 1.0, rtol=1e-5)
    found = (orders[:, None] == every).all(-1).mean(0)
    error = np.sqrt((probs * (1 - probs)).mean(0) / len(orders))
    assert np.all(np.abs(found - probs.mean(0)) < 5 * error)


def kind_of(name):
    return Kind(*(jnp.array(name == one) for one in ("split", "merge", "trade")))


def proposals_of(clusters, parent, draws):
    """Proposals of splits of a cluster, and of mergers with what the splits proposed."""

    def merge(draw, offspring):
        return clusters.propose(parent, offspring, kind_of("merge"), draw)

    split = jax.vmap(lambda draw: clusters.propose(parent, parent, kind_of("split"), draw))
    proposals = split(draws)
    return proposals, jax.vmap(merge)(draws, proposals.parameters)


def test_new_mallows_clusters_have_the_density_that_is_used():
    """θ is log-normal around that of the parent, and the center a Mallows draw around it."""
    rankings = Rankings.from_orderings([[0, 1, 2, 3]], num_items=4)
    center, theta = np.array([2, 0, 3, 1]), np.array([0.5, 1.0, 2.0])
    parameters = MallowsParameters(jnp.asarray(center, jnp.int32), jnp.asarray(theta, jnp.float32))

    @jax.jit
    def propose(key):
        clusters = MallowsClusters(as_mallows_data(rankings), PerStage(GAMMA), jnp.zeros(()))
        draws = draw_steps(key, 5000, (4, 3), np.array([4]), False)
        return draws, *proposals_of(clusters, parameters, draws)

    draws, proposals, mergers = propose(jax.random.key(1))
    centers, thetas = (np.asarray(x, np.float64) for x in proposals.parameters)
    scale = np.asarray(draws.scale, np.float64)[:, None]
    z = np.log(thetas / theta) / scale
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-5
    expected = stats.lognorm(scale, scale=theta).logpdf(thetas).sum(1)
    places = np.argsort(center)[centers.astype(int)]
    inversions = sum(places[:, i] > places[:, j] for i in range(4) for j in range(i + 1, 4))
    d = np.asarray(draws.family.dispersal, np.float64)
    constant = sum(np.log(np.exp(-np.outer(d, np.arange(m + 1))).sum(1)) for m in (1, 2, 3))
    expected -= d * inversions + constant
    np.testing.assert_allclose(proposals.log_density, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(mergers.log_density, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("tied", (False, True))
def test_trajectories_of_mallows_clusters_have_the_likelihood_of_the_steps(tied):
    """Of lists of several lengths, and as the distribution of the rankings has it."""
    lists = [[0, 1, 2, 3], [3], [2, 0], [1, 3, 0]]
    rankings = Rankings.from_orderings(lists, num_items=5)
    prior = (Tied if tied else PerStage)(GAMMA)
    centers = np.array([[0, 1, 2, 3, 4], [4, 2, 3, 0, 1], [1, 0, 4, 3, 2]], np.int32)
    theta = np.array([[0.3, 1.0, 2.0, 0.1], [1.5, 0.7, 0.2, 3.0], [1.0, 1.0, 1.0, 1.0]], np.float32)
    theta = np.broadcast_to(theta[:, :1], theta.shape) if tied else theta
    start = np.array([-3.0, -1.0, -2.0, 0.5], np.float32)

    @jax.jit
    def three_forms(centers, theta):
        data, parameters = as_mallows_data(rankings), MallowsParameters(centers, theta)
        clusters = MallowsClusters(data, prior, jnp.zeros(()))
        path = clusters.path(parameters, jnp.arange(3), jnp.ones(3, bool), jnp.asarray(start))
        of_steps = jax.vmap(clusters.log_row)(parameters, jnp.arange(3))
        model = GeneralizedMallows(centers[:, None], theta[:, None], validate_args=False)
        return path.rows(path.position), of_steps, model.log_prob(data.orderings)

    of_path, of_steps, of_model = three_forms(centers, theta)
    found = np.log(of_path) + start
    np.testing.assert_allclose(found, of_steps, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, of_model, rtol=1e-5, atol=1e-5)


def test_new_weights_have_the_density_that_is_used():
    """An atom stays and moves, or disappears; an item that is no atom may become one."""
    rate, size = TAU + float(SCALES.phi), 20_000

    @jax.jit
    def propose(key):
        prior = PittWalkerWeights(jnp.asarray(ROOT), SCALES.phi, TAU)
        clusters = WeightsClusters(jnp.ones(2), prior, 0.0, None, None, None)
        draws = draw_weight_steps(key, size, 2, np.array([2]), prior)
        return draws, *proposals_of(clusters, jnp.array([0.4, -jnp.inf]), draws)

    draws, proposals, mergers = propose(jax.random.key(2))
    assert np.all(draws.kind.resizes)
    log_weights = np.asarray(proposals.parameters, np.float64)
    scale = np.asarray(draws.scale, np.float64)
    flip = np.asarray(draws.family.flip_chance, np.float64)
    is_atom = log_weights > -np.inf
    chance = np.stack([1 - flip, flip], axis=1)
    error = np.sqrt((chance * (1 - chance)).mean(0) / size)
    assert np.all(np.abs(is_atom.mean(0) - chance.mean(0)) < 5 * error)
    stayed, appeared = is_atom.T
    moved = (log_weights[stayed, 0] - 0.4) / scale[stayed]
    assert stats.kstest(moved, "norm").pvalue > 1e-5
    weights = np.exp(log_weights[appeared, 1])
    assert stats.kstest(weights, stats.expon(scale=1 / rate).cdf).pvalue > 1e-5
    expected = np.log(np.where(is_atom, chance, 1 - chance)).sum(1)
    expected[stayed] += stats.norm(0.4, scale[stayed]).logpdf(log_weights[stayed, 0])
    # of the log weight: the density of the weight times the weight
    expected[appeared] += stats.expon(scale=1 / rate).logpdf(weights) + np.log(weights)
    np.testing.assert_allclose(proposals.log_density, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(mergers.log_density, expected, rtol=1e-3, atol=1e-3)


def marginal_of_cluster(block, lacking=None):
    """p(lists of one cluster | root), its measure integrated out, by one integral over Z.

    :param lacking: an item; the same times the chance that it is no atom of the cluster.
    """
    alpha, phi, _ = map(float, SCALES)
    rate, log_z = TAU + phi, np.linspace(-16, 12, 4000)
    z = np.exp(log_z)
    rho = rate / (rate + z)
    value = rho**alpha * np.exp(-phi * UNSEEN * (1 - rho)) * z ** len(block)
    for item, weight in enumerate(ROOT):
        n, x = sum(LISTS[i] == item for i in block), phi * weight
        terms = sum(lah(n, k) * (x * rho) ** k for k in range(n + 1))
        if item == lacking:
            value *= np.exp(-x) * (n == 0)
            continue
        value *= np.exp(-x * (1 - rho)) * terms / (rate + z) ** n
    return value.sum() * (log_z[1] - log_z[0]) / math.factorial(len(block) - 1)


@pytest.mark.slow
def test_partition_of_lists_given_the_root(monkeypatch):
    """No other update of weights or labels: splits, merges, shares, weights, trajectories."""
    monkeypatch.setattr("numpyro_rankings.infer.plackett_luce.label_free._STEPS_A_FITTED_SPLIT", 4)
    # narrower than is good for them, so that their densities differ from what is there
    monkeypatch.setattr("numpyro_rankings.infer.plackett_luce.fitted_splits._SPREAD", 0.6)
    rankings = Rankings.from_orderings([[item] for item in LISTS], num_items=2)
    data = as_data(rankings, pool=True)
    root, slots, size = jnp.asarray(ROOT), 9, len(LISTS)
    partition = PartitionPrior(SCALES.gamma, None)
    prior = PittWalkerWeights(root, SCALES.phi, TAU)

    def draw(now, key):
        labels, weights, unseen = now
        key_new, key = jax.random.split(key)
        fresh, fresh_unseen = draw_clusters(key_new, root, UNSEEN, SCALES, TAU, slots)
        empty = jnp.zeros(slots, jnp.int32).at[labels].add(1) == 0
        weights = jnp.where(empty[:, None], fresh, weights)
        unseen = jnp.where(empty, fresh_unseen, unseen)
        clusters = WeightedLabels(labels, jnp.log(weights), unseen)
        labels, log_weights, _ = move_weights_without_labels(
            key, clusters, partition, prior, data, Effort(20, True), largest_minimum=2
        )
        weights = jnp.exp(log_weights)
        lacks = weights[labels[0], 1] == 0  # whether the cluster of the first list has item 1
        return (labels, weights, unseen), (canonical_order(labels, slots)[0], lacks)

    def chain(key):
        key_start, key_warmup, key_steps = jax.random.split(key, 3)
        _, unseen = draw_clusters(key_start, root, UNSEEN, SCALES, TAU, slots)
        now = jnp.arange(size, dtype=jnp.int32), jnp.ones((slots, 2)), unseen
        now, _ = jax.lax.scan(draw, now, jax.random.split(key_warmup, 100))
        return jax.lax.scan(draw, now, jax.random.split(key_steps, 4 * DRAWS))[1]

    labels, lacks = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), CHAINS))
    log_joint, chance = [], []
    for one in partitions(size):
        blocks = [np.flatnonzero(np.equal(one, c)) for c in range(max(one) + 1)]
        log_p = log_partition([len(block) for block in blocks], float(SCALES.gamma), None)
        log_joint.append(log_p + sum(np.log(marginal_of_cluster(block)) for block in blocks))
        chance.append(marginal_of_cluster(blocks[0], 1) / marginal_of_cluster(blocks[0]))
    probs = special.softmax(log_joint)
    powers = size ** np.arange(size)
    table = np.array(list(partitions(size))) @ powers
    found = {"partition": (np.asarray(labels, int) @ powers)[..., None] == table}
    found["lacks"] = np.asarray(lacks)[..., None]
    z = discrepancies(found, {"partition": probs, "lacks": np.array([probs @ chance])})
    assert max(z.values()) < 6.0, z


def test_forms_of_the_likelihood_agree_and_have_its_slope():
    lists = [[0, 1, 2], [0], [3, 1], [3, 2, 0, 1], [2, 4, 1, 0]]
    rankings = Rankings.from_orderings(lists, num_items=5)
    repeated = Rankings.from_orderings(lists * 8, num_items=5)
    weights, pool = np.array([0.3, 0.1, 0.25, 0.1, 0.15], np.float32), jnp.array(0.1)
    probs = np.asarray(weights, float)
    expected = []
    for one in lists:
        left = 1.0 - np.cumsum(np.append(0.0, probs[one[:-1]]))
        expected.append(np.log(probs[one] / left).sum())

    def designed(w):
        design = design_if_small(as_data(rankings, pool=True).choices, 5, w.dtype)
        assert design is not None
        return log_designed_likelihoods(design, w, pool)

    def staged(w):
        return log_choice_row_likelihoods(as_data(rankings, pool=True).choices, w, pool, None)

    def tabled(w):
        choices = as_data(repeated, pool=True).choices
        cells = cells_if_tabled(choices, 5)
        assert cells is not None
        return log_choice_row_likelihoods(choices, w, pool, cells)[: len(lists)]

    @jax.jit
    def values_and_slopes(w):
        forms = designed, staged, tabled
        without = w.at[1].set(0.0)
        return [(form(w), jax.jacobian(form)(w), form(without)) for form in forms]

    plain = np.array([[w == i for w in range(5)] for i in range(5)], float)
    slopes = []  # of sums of logarithms, w_* as it is
    for one in lists:
        slope = np.zeros(5)
        for stage, item in enumerate(one):
            mass = 1.0 - probs[one[:stage]].sum()
            in_play = 1.0 - plain[one[:stage]].sum(0)
            slope += plain[item] / probs[item] - in_play / mass
        slopes.append(slope)
    for log_probs, found_slopes, without in values_and_slopes(weights):
        np.testing.assert_allclose(log_probs, expected, rtol=1e-5)
        np.testing.assert_allclose(found_slopes, slopes, rtol=1e-4, atol=1e-4)
        assert np.all((np.asarray(without) < -1e20) == [1 in one for one in lists])


@partial(jax.jit, static_argnums=(1, 3))
def a_block(log_shares, num_free, uniforms, num_components=None):
    """The block that is chosen where clusters have these shares, and as many slots are free."""
    labels = jnp.arange(len(log_shares), dtype=jnp.int32)
    partition = PartitionPrior(jnp.float32(1.3), num_components)
    slots = len(log_shares) + num_free
    key = jax.random.key(3)
    large = choose_large_clusters(0.5, key, labels, partition, None, len(labels), slots, 0)
    target = Target(large, partition, None, jnp.zeros(len(labels)))
    log_shares = jnp.append(log_shares, jnp.full(num_free, -jnp.inf))
    table = jnp.zeros((slots, len(labels)))
    now = Mixture(None, jnp.zeros(slots), log_shares, table, jnp.ones(len(labels)))
    return choose_block(target, now, uniforms)


def test_blocks_take_two_clusters_or_one_and_a_free_slot():
    log_shares = np.log([0.5, 0.3, 0.2])
    first, last, third = np.array([[0.4, 0.9, 0.8], [0.4, 0.9, 0.2], [0.4, 0.1, 0.2]])
    assert a_block(log_shares, 2, first).slots.tolist() == [1, 2]
    block = a_block(log_shares, 2, last)  # 0.9 is in the upper half of two free slots
    assert block.slots.tolist() == [1, 4] and block.usable and block.num_others == 2
    assert a_block(log_shares, 2, third).slots.tolist() == [1, 3]
    assert not a_block(log_shares, 0, last).usable
    assert not a_block(log_shares[:1], 2, first).usable
    # a finite mixture has no free slots
    assert a_block(log_shares, 0, last, 3).slots.tolist() == [1, 2]


def test_shares_of_a_pair():
    """What becomes of the shares, and by how much a volume of them changes."""
    block = a_block(np.log([0.5, 0.3, 0.2]), 2, np.array([0.4, 0.9, 0.8]))
    shares = np.array([0.3, 0.2])

    @jax.jit
    def shares_after(log_shares, kind, second, log_odds, step):
        draw = StepDraw(None, None, log_odds, None, 1.0, step[None], None)
        return propose_shares(block, log_shares, kind, second, draw)

    def propose(name, step=0.0, log_odds=0.0, now=shares, second=True):
        kind = Kind(*(name == one for one in ("split", "merge", "trade")))
        with np.errstate(divide="ignore"):
            log_shares = np.log(now, dtype=np.float32)
        return shares_after(log_shares, kind, second, np.float32(log_odds), jnp.float32(step))

    traded = propose("trade", 0.7)
    new = np.exp(traded.log_shares)
    assert traded.possible and new.sum() == pytest.approx(0.5, rel=1e-5)
    assert np.log(new[0] / new[1]) - np.log(1.5) == pytest.approx(0.7, rel=1e-4)
    # the step is uniform in the log odds: by how much more share there is to one of these
    share = jax.jit(jax.vmap(jax.grad(lambda step: jnp.exp(propose("trade", step).log_shares[0]))))
    after, before = share(np.array([0.7, 0.0], np.float32))
    assert traded.log_jacobian == pytest.approx(float(np.log(after / before)), rel=1e-4)
    split = propose("split", log_odds=np.log(0.7 / 0.3), now=[0.5, 0.0], second=False)
    np.testing.assert_allclose(np.exp(split.log_shares), [0.35, 0.15], rtol=1e-4)
    merged = propose("merge")
    np.testing.assert_allclose(np.exp(merged.log_shares), [0.0, 0.5], rtol=1e-4)
    # with the cluster outside of the block there are three while these two are separate
    for one in (split, merged):
        assert one.possible and one.log_jacobian == 0.0
        assert one.log_split == pytest.approx(np.log(0.5 / 3), rel=1e-4)
    assert not propose("trade", now=[0.5, 0.0], second=False).possible


class NormalClusters:
    """Rows around a mean, which a step moves by ``draw.family``; the Jacobian is made up."""

    rows = np.array([-1.0, 0.4, 1.5])

    def log_row(self, mean, slot):
        return -0.5 * (self.rows - mean) ** 2

    def log_prior(self, mean):
        return -0.2 * mean**2 - 1.1

    def propose(self, parent, other, kind, draw):
        step = jnp.where(kind.merges, other - parent, draw.family)
        log_density = -0.5 * (step / draw.scale) ** 2 - jnp.log(draw.scale * math.sqrt(math.tau))
        stays = kind.merges | kind.trades
        jacobian = jnp.where(stays | kind.splits, 0.0, 0.25)
        return Proposal(jnp.where(stays, parent, parent + step), log_density, jacobian)


def test_steps_are_accepted_by_their_ratio():
    """With a uniform just below the Metropolis-Hastings ratio, and not with one just above."""
    clusters, others, counts = NormalClusters(), np.array([0.1, 0.2, 0.05]), np.array([3.0, 2, 4])
    scale, discount = 1.3, 0.2
    # with two more clusters outside of the block, and a step of 0.8 of the mean
    split = np.log(0.6 / 4) - stats.norm(0.0, scale).logpdf(0.8)
    trade = np.log(0.4 * 0.2 / 0.3**2)
    # whether it resizes and trades, whether c is the second, shares and means before and after, and
    # the log ratio of the proposals with the Jacobian; a slot of share 0 is free
    cases = [
        (1, 0, 0, [0.6, 0.0], [0.3, 0.0], [0.4, 0.2], [0.3, 1.1], split),
        (1, 0, 0, [0.0, 0.6], [0.0, 0.3], [0.4, 0.2], [1.1, 0.3], split),
        (1, 0, 0, [0.4, 0.2], [0.3, 1.1], [0.6, 0.0], [0.3, 1.1], -split),
        (1, 0, 1, [0.4, 0.2], [1.1, 0.3], [0.0, 0.6], [1.1, 0.3], -split),
        (0, 0, 1, [0.4, 0.2], [0.3, 0.1], [0.4, 0.2], [0.3, 0.9], 0.25),
        (0, 1, 0, [0.3, 0.3], [0.3, 0.1], [0.4, 0.2], [0.3, 0.1], trade),
    ]
    resizes, trades, second, *states, proposals = map(np.array, zip(*cases, strict=True))

    def log_target(shares, means):
        shares, means = shares[shares > 0], means[shares > 0]
        density = others + shares @ np.exp([clusters.log_row(mean, None) for mean in means])
        prior = clusters.log_prior(means) - (discount + 1) * np.log(shares)
        return counts @ np.log(density) + prior.sum()

    before, after = (list(map(log_target, *states[i : i + 2])) for i in (0, 2))
    log_accept = np.array(after) - before + proposals

    @jax.jit
    @jax.vmap
    def step(resizes, trades, second, shares, means, log_uniform):
        both, slots, log_shares = jnp.ones(2, bool), jnp.arange(2), jnp.log(shares)
        of_rows = log_shares, -9.0, jnp.ones(9, bool), jnp.asarray(counts)
        large = LargeClusters(0, both, slots, both, ~both, *of_rows)
        partition = PartitionPrior(jnp.float32(1.7), discount=discount)
        target = Target(large, partition, clusters, jnp.zeros(3))
        block = Block(slots, jnp.array(True), jnp.asarray(others), jnp.array(2))
        table = jnp.exp(jax.vmap(clusters.log_row)(means, slots))
        density = others + shares @ table
        now = Mixture(means, clusters.log_prior(means), log_shares, table, density)
        # shares are divided by 2 : 1
        odds, normals = jnp.log(2.0), jnp.log(2.0)[None] / scale
        kind = DrawnKind(resizes, trades)
        draw = StepDraw(kind, second, odds, log_uniform, scale, normals, 0.8)
        new = step_in_block(target, block, now, draw)
        return jnp.exp(new.log_shares), new.parameters

    # 1e-3 from the ratio, of which float32 has 1e-5
    for margin, expected in ((-1e-3, states[2:]), (1e-3, states[:2])):
        inputs = (x.astype(np.float32) for x in (*states[:2], log_accept + margin))
        found = step(resizes == 1, trades == 1, second == 1, *inputs)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)


def test_a_move_counts_only_if_it_can_be_undone():
    """A, the clusters of at least m, must be found again."""
    labels, rows = jnp.array([0] * 6 + [1] * 5 + [2]), jnp.asarray(np.arange(12))
    key = jax.random.key(0)

    @jax.jit
    def choose():
        partition = PartitionPrior(jnp.float32(1.3), None)
        return choose_large_clusters(0.9, key, labels, partition, rows, 12, 4, 4)

    large = choose()
    assert large.minimum > 1 and large.is_large.tolist() == [True, True, False, False]

    @jax.jit
    def draw_from(table):
        return large.draw_labels(key, labels, rows, table, large.log_shares)

    def draw(of_first, of_second):
        """Where the rankings of A can be in slots 0 and 1."""
        return draw_from(np.stack([of_first, of_second, 0 * of_first, 0 * of_first], dtype="f4"))

    first = np.arange(12) < 6
    new, valid = draw(first, ~first)
    assert valid and new.tolist() == labels.tolist()
    new, valid = draw(np.ones(12), np.zeros(12))  # the second one lost all it had
    assert not valid and new.tolist() == [0] * 11 + [2]


def test_a_move_from_shares_out_of_bounds_is_refused(monkeypatch):
    """The way back would end where the density is 0."""
    rankings = Rankings.from_orderings([[0, 1, 2]] * 6 + [[2, 1, 0]] * 5, num_items=3)
    rankings, labels = rankings.expand(), np.array([0] * 6 + [1] * 5, np.int32)
    center = np.tile(np.array([[0, 1, 2], [2, 1, 0]], np.int32), (2, 1))
    start = labels, MallowsParameters(center, np.ones((4, 2), np.float32))
    prior, partition = PerStage(GAMMA), PartitionPrior(np.float32(1.3), None)
    real = label_free.choose_large_clusters

    @jax.jit
    def moves(lowest, keys, start):
        data = as_mallows_data(rankings)
        clusters = MallowsClusters(data, prior, jnp.zeros(()))

        def change(key, target, mixture):  # parameters only, so that the labels stay valid
            parameters = mixture.parameters._replace(concentration=mixture.parameters[1] + 0.5)
            return mixture._replace(parameters=parameters)

        def choose(*args):
            return real(*args)._replace(lowest_log_share=lowest)

        monkeypatch.setattr(label_free, "choose_large_clusters", choose)
        move = jax.vmap(
            lambda key: label_free.move_without_labels(
                key, start, [change], lambda _: clusters, partition, data, 1
            )
        )
        return move(keys)[1].concentration[:, 0, 0] > 1.0

    keys = jax.random.split(jax.random.key(0), 20)
    assert np.mean(moves(-20.0, keys, start)) > 0.9
    assert not np.any(moves(-0.1, keys, start))


def test_chance_of_enough_rankings():
    """It need not be exact, but near the Poisson probability, and 1 outside A or where m is 0."""
    active, counts = np.ones(3, bool), np.array([30.0, 20.0], np.float32)
    log_shares = np.append(np.log([0.2, 0.01]), -np.inf).astype(np.float32)

    @jax.jit
    def log_chance(minimum, log_shares, counts):
        slots = np.arange(3)
        of_clusters = active, slots, active, ~active, log_shares, -9.0, active, counts
        return LargeClusters(minimum, *of_clusters).log_chance(log_shares)

    chance = np.exp(log_chance(4, log_shares, counts))
    exact = stats.poisson(np.array([10.0, 0.5])).sf(3)
    np.testing.assert_allclose(chance, [*exact, 1.0], atol=0.05)
    assert not np.any(log_chance(0, log_shares, counts))


def test_a_move_between_two_others_reads_the_same_backwards():
    """With a key of its own for each part."""

    def part(factor, key, target, now):
        return now._replace(
            log_priors=factor * now.log_priors + 1.0,
            density=jnp.roll(now.density, 1).at[0].set(jax.random.uniform(key)),
        )

    zeros = jnp.zeros(1)
    start = Mixture(zeros, zeros, zeros, zeros, jnp.zeros(3))
    move = between(partial(part, 2.0), partial(part, 3.0))
    end = move(jax.random.key(0), None, start)
    assert end.log_priors.tolist() == [2 * (3 * (2 * 0 + 1) + 1) + 1]
    assert len(set(end.density.tolist())) == 3


def moved_along_trajectories(setup, found):
    """Of 200 trajectories: whether A is the first cluster, whether anything moved, and what is
    then the last in ``found``.

    :param setup: returns the data, labels and parameters, and the clusters of some slots.
    """

    def once(key):
        data, labels, parameters, clusters_of = setup()
        partition, num_rows = PartitionPrior(jnp.float32(1.0), None), len(data.counts)
        key_minimum, key_shares, key = jax.random.split(key, 3)
        large = choose_large_clusters(
            jax.random.uniform(key_minimum),
            key_shares,
            labels,
            partition,
            data.row_index,
            num_rows,
            4,
            20,
        )
        clusters = clusters_of(large.slots)
        there = jax.tree.map(lambda x: x[large.slots], parameters)
        start, table = large.start(jax.vmap(clusters.log_row)(there, jnp.arange(4)))
        target = Target(large, partition, clusters, start)
        now = Mixture(there, clusters.log_prior(there), large.log_shares, table, jnp.ones(num_rows))
        moved = move_along_trajectory(key, target, now)
        is_first = jnp.all(large.is_large == (jnp.arange(4) == 0))
        changed = jax.tree.map(lambda x, y: jnp.any(x != y), moved.parameters, now.parameters)
        return is_first, jnp.any(jnp.stack(jax.tree.leaves(changed))), found[-1]

    return map(np.asarray, jax.jit(jax.vmap(once))(jax.random.split(jax.random.key(0), 200)))


class FlatClusters:
    """Clusters in which every ranking is as probable, so that shares have their prior."""

    def log_prior(self, parameters):
        return jnp.zeros(len(parameters))

    def path(self, parameters, slots, active, start):
        return Path(
            position=parameters,
            moving=jnp.zeros(parameters.shape, bool),
            parameters=lambda x: x,
            rows=lambda x: jnp.ones((len(x), 1)),
            log_jacobian=lambda x: jnp.zeros(()),
            information=1.0,
        )


def flat_target(log_shares, lowest, partition):
    """All clusters are large, and one row has all 2,000 rankings."""
    every, inside, counts = jnp.ones(len(log_shares), bool), jnp.ones(50, bool), jnp.array([2000.0])
    slots = jnp.arange(len(log_shares))
    of_clusters = every, slots, every, ~every, log_shares, math.log(lowest), inside, counts
    return Target(LargeClusters(0, *of_clusters), partition, FlatClusters(), jnp.zeros(1))


def test_shares_along_trajectories_keep_their_prior():
    """Which shares vary, and how far, depends on nominal shares drawn at the start."""
    size, lowest, law = 20_000, 0.01, stats.beta(1.0, 1.0)
    least, range_of = law.cdf(lowest), law.cdf(1.0 - lowest) - law.cdf(lowest)
    first = law.ppf(least + range_of * np.random.default_rng(0).uniform(size=size))
    partition = PartitionPrior(jnp.float32(2.0), 2)

    def move(share, key):
        log_shares = jnp.log(jnp.stack([share, 1.0 - share]))
        target = flat_target(log_shares, lowest, partition)
        now = Mixture(jnp.zeros((2, 1)), jnp.zeros(2), log_shares, jnp.ones((2, 1)), jnp.ones(1))
        return jnp.exp(move_along_trajectories(key, target, now).log_shares[0])

    keys = jax.random.split(jax.random.key(0), size)
    last = np.asarray(jax.jit(jax.vmap(move))(jnp.asarray(first, jnp.float32), keys))
    assert np.mean(np.abs(last - first) > 0.01) > 0.3
    assert stats.kstest((law.cdf(last) - least) / range_of, "uniform").pvalue > 1e-5


@pytest.mark.parametrize("most_moving", [1, 2, 3])
def test_shares_of_some_of_the_clusters_keep_their_prior(most_moving):
    """Each trajectory moves random clusters, while the shares of the others stay."""
    lowest, rng, partition = 0.01, np.random.default_rng(0), PartitionPrior(jnp.float32(4.0), 4)
    shares = rng.dirichlet(np.ones(4), 45_000)
    first, others = np.split(shares[np.all(shares > lowest, axis=1)][:36_000], 2)

    def move(shares, key):
        target = flat_target(jnp.log(shares), lowest, partition)
        table = jnp.ones((4, 1))
        now = Mixture(jnp.zeros((4, 1)), jnp.zeros(4), jnp.log(shares), table, jnp.ones(1))
        moved = move_along_trajectories(key, target, now, most_moving)
        return jnp.exp(moved.log_shares), moved.density

    keys = jax.random.split(jax.random.key(0), len(first))
    last, density = map(np.asarray, jax.jit(jax.vmap(move))(jnp.asarray(first, jnp.float32), keys))
    np.testing.assert_allclose(last.sum(1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(density, 1.0, rtol=1e-5)
    moved = np.mean(np.abs(last - first) > 0.01)
    assert moved == 0.0 if most_moving == 1 else moved > 0.2
    for of_last, of_others in ((last.max(1), others.max(1)), (last[:, 0], others[:, 0])):
        assert stats.ks_2samp(of_last, of_others).pvalue > 1e-5


def trajectories_of_weights(num_items):
    """24 lists in A and one of an item that A lacks."""
    own = num_items - 1
    lists = [[0, 1, 2], [1, 0], [2, 0, 1], [0], [1, 2], [2]] * 4 + [[own, 0]]
    rankings = Rankings.from_orderings(lists, num_items=num_items)
    data, labels = as_data(rankings, pool=True), jnp.array([0] * 24 + [1], jnp.int32)
    log_weights, unseen = jnp.zeros((4, num_items)).at[0, own].set(-jnp.inf), jnp.full(4, 0.3)
    prior = PittWalkerWeights(jnp.full(num_items, 0.5), jnp.array(1.3), TAU)
    cells = cells_if_tabled(data.choices, num_items)
    assert (cells is None) == (num_items > 4)
    clusters = WeightsClusters(unseen, prior, 0.0, data.choices, cells, None)
    return data, labels, log_weights, lambda slots: clusters._replace(unseen=unseen[slots])


def trajectories_of_concentrations():
    """24 lists in A, all alike, and the reverse of them."""
    rankings = Rankings.from_orderings([[0, 1, 2, 3, 4]] * 24 + [[4, 3, 2, 1, 0]], num_items=6)
    data, labels = as_mallows_data(rankings), jnp.array([0] * 24 + [1], jnp.int32)
    center = jnp.tile(jnp.arange(6, dtype=jnp.int32), (4, 1))
    parameters = MallowsParameters(center, jnp.ones((4, 5)))
    clusters = MallowsClusters(data, PerStage(GAMMA), jnp.zeros(()))
    return data, labels, parameters, lambda _: clusters


TRAJECTORIES = {
    "weights, tabled": lambda: trajectories_of_weights(4),
    "weights": lambda: trajectories_of_weights(14),
    "concentrations": trajectories_of_concentrations,
}


@pytest.mark.parametrize(
    "name",
    [
        "weights, tabled",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("weights", "concentrations")),
    ],
)
def test_trajectories_beside_a_row_that_is_impossible_there(name, monkeypatch):
    """A row outside A says nothing, and its logarithm of 0 has no part in the slope."""
    real, found = trajectories.trajectory, []

    def with_slopes(uniform, position, momentum, moving, log_density, steps):
        """Find out too whether the slope is finite where the trajectory starts, and far away."""

        def is_finite(step):
            # concentrations far away: there the reverse is beyond float32
            there = jax.tree.map(lambda x, m: jnp.where(m, x + step, x), position, moving)
            slope = jax.grad(log_density, has_aux=True)(there)[0]
            slope = jax.tree.map(lambda g, m: jnp.where(m, g, 0.0), slope, moving)
            return jnp.all(jnp.array([jnp.isfinite(g).all() for g in jax.tree.leaves(slope)]))

        found.append(jnp.all(jax.vmap(is_finite)(jnp.array([0.0, 3.0]))))
        return real(uniform, position, momentum, moving, log_density, steps)

    monkeypatch.setattr(trajectories, "trajectory", with_slopes)
    is_first, moved, finite = moved_along_trajectories(TRAJECTORIES[name], found)
    assert is_first.sum() > 50
    assert np.mean(moved[is_first]) > 0.7, np.mean(moved[is_first])
    assert np.all(finite[is_first])


def test_weights_around_a_fit_have_the_density_that_is_used():
    center, variance = np.array([0.3, -1.0, 2.0]), np.array([0.5, 0.01, 0.2])
    law = Around(center, variance, 0.7, np.array([0.8, 1.0, 0.4]))

    @jax.jit
    def draw(key, law):
        keys = jax.random.split(key)
        normals, uniforms = (
            jax.random.normal(keys[0], (20_000, 4)),
            jax.random.uniform(keys[1], (20_000, 3)),
        )
        draws = jax.vmap(draw_around, (0, 0, None))(normals, uniforms, law)
        return draws, jax.vmap(log_density_around, (0, None))(draws[:50], law)

    draws, found = draw(jax.random.key(0), law)
    is_atom = np.asarray(draws) > -np.inf
    np.testing.assert_allclose(is_atom.mean(0), law.is_atom, atol=0.02)
    full = np.asarray(draws)[is_atom.all(1)]
    covariance = np.diag(variance) + 0.7
    np.testing.assert_allclose(np.cov(full.T), covariance, atol=0.05)
    for log_density, one, atom in zip(found, np.asarray(draws), is_atom, strict=False):
        normal = stats.multivariate_normal(center[atom], covariance[np.ix_(atom, atom)])
        chances = np.where(atom, law.is_atom, 1.0 - law.is_atom)
        expected = normal.logpdf(one[atom]) + np.log(chances).sum()
        assert log_density == pytest.approx(expected, rel=1e-4, abs=1e-4)
    # the proportions of two have a density that adds up to 1
    log_odds = np.linspace(-9.0, 9.0, 20_001, dtype=np.float32)
    two = Fit(np.zeros((2, 3)), np.zeros((2, 3)), np.ones(2), np.array([30.0, 4.0]))
    density = np.exp(jax.jit(jax.vmap(log_density_of_proportion, (0, None)))(log_odds, two))
    proportion = special.expit(log_odds)
    assert np.trapezoid(density, proportion) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("form", ["design", "cells", "thinned", None])
def test_fit_climbs_to_the_maximum(form):
    """Of one component: Hunter's steps with Gamma weights, by plain loops."""
    lists, counts = [[0, 1, 2], [2, 1], [3], [1, 3, 0, 2]] * 8, np.linspace(0.5, 3.0, 32)
    # so many that the first steps see every fourth one, of which there are as many as before
    copies = 64 if form == "thinned" else 1
    rows = [one for one in lists for _ in range(copies)]
    rankings = Rankings.from_orderings(rows, num_items=4)
    shape, unseen = np.array([0.5, 1.0, 1.5, 2.0]), np.array([0.3, 0.2])
    start = np.array([[0.0, 0.5, -0.5, 0.2], [1.0, 1.0, 1.0, 1.0]], np.float32)
    chances = np.repeat(counts, copies) / copies

    @jax.jit
    def run(start, unseen, chances):
        choices = as_data(rankings, pool=True).choices
        design = design_if_small(choices, 4, jnp.float32) if form == "design" else None
        cells = cells_if_tabled(choices, 4) if form in ("cells", "thinned") else None
        assert (design is None, cells is None) == (form != "design", form in ("design", None))
        prior = GammaWeights(jnp.asarray(shape))
        clusters = WeightsClusters(None, prior, 0.0, choices, cells, design)
        return fit(clusters, start, jnp.array([0.0, -jnp.inf]), unseen, chances)

    found = run(start, unseen, chances)
    weights = np.exp(np.asarray(start[0], float))
    for _ in range(12):
        chosen, in_play = np.zeros(4), np.zeros(4)
        for one, count in zip(lists, counts, strict=True):
            for stage, item in enumerate(one):
                there = np.setdiff1d(np.arange(4), one[:stage])
                chosen[item] += count
                in_play[there] += count / (weights[there].sum() + unseen[0])
        information = shape.sum() + chosen.sum() - weights @ in_play
        weights = (chosen + shape) / (1.0 + in_play)
    np.testing.assert_allclose(np.exp(found.log_weights[0]), weights, rtol=1e-4)
    np.testing.assert_allclose(found.chosen[0], chosen, rtol=1e-5)
    assert found.information[0] == pytest.approx(information, rel=1e-4)
    np.testing.assert_allclose(found.sizes, [counts.sum(), 0.0], rtol=1e-5)
