"""The distributions against brute force: every ranking of a few items, every partition of a few."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.densities import draw, log_prob
from helpers.lists import FALSE_ALARM, assert_frequencies, top_lists
from jax import random
from scipy import integrate, stats
from scipy.special import logsumexp

import numpyro_rankings.distributions as rd
from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.distributions import constraints

# --- twins: the definitions, written to be obviously right --------------------------------


def mallows_twin(ranking, center, theta):
    """log P of one padded list, item by item."""
    left, total = list(center), 0.0
    for stage, item in enumerate(ranking):
        if item < 0:
            break
        codes = np.arange(len(left))
        total += -theta[stage] * left.index(item) - logsumexp(-theta[stage] * codes)
        left.remove(item)
    return total


def partitions(size):
    """All partitions as canonical labels."""
    found = [[0]]
    for _ in range(size - 1):
        found = [p + [label] for p in found for label in range(max(p) + 2)]
    return np.array(found, np.int32)


def canonical(labels):
    names = {}
    return tuple(names.setdefault(label, len(names)) for label in labels)


def eppf_twin(labels, theta, discount):
    """Two-parameter formula of the whole partition, in float64."""
    sizes = np.unique(labels, return_counts=True)[1]
    num_blocks, size = len(sizes), len(labels)
    return (
        sum(math.log(theta + i * discount) for i in range(1, num_blocks))
        - sum(math.log(theta + i) for i in range(1, size))
        + sum(math.lgamma(n - discount) - math.lgamma(1 - discount) for n in sizes)
    )


# --- generalized Mallows ------------------------------------------------------------------


CENTER = np.array([2, 0, 4, 1, 3], np.int32)
THETA = np.array([1.3, 0.2, 0.0, 2.5, 0.7], np.float32)


@pytest.mark.parametrize("num_stages", [1, 3, 5])
def test_mallows_sums_to_one_at_every_length(num_stages):
    d = rd.GeneralizedMallows(CENTER, THETA[:num_stages])
    for length in range(1, num_stages + 1):
        lists = top_lists(5, length, num_stages)
        log_probs = np.asarray(log_prob(d, lists), float)
        assert abs(np.exp(log_probs).sum() - 1) < 1e-5
        twin = [mallows_twin(x, CENTER, THETA) for x in lists]
        np.testing.assert_allclose(log_probs, twin, rtol=1e-5, atol=1e-5)


def test_mallows_short_list_is_the_marginal_of_longer_ones():
    d = rd.GeneralizedMallows(CENTER, THETA[:4])
    full = top_lists(5, 4)
    probs = np.exp(np.asarray(log_prob(d, full), float))
    shorts = np.concatenate([top_lists(5, length, 4) for length in (1, 2, 3)])
    begins = ((full == shorts[:, None]) | (shorts[:, None] < 0)).all(axis=-1)
    of_short = np.exp(np.asarray(log_prob(d, shorts), float))
    np.testing.assert_allclose(begins @ probs, of_short, rtol=0, atol=1e-6)


def test_mallows_last_stage_says_nothing():
    full, short = top_lists(5, 5), top_lists(5, 5)[:, :4]
    a = log_prob(rd.GeneralizedMallows(CENTER, THETA), full)
    b = log_prob(rd.GeneralizedMallows(CENTER, THETA[:4]), short)
    np.testing.assert_allclose(a, b, atol=1e-6)
    assert log_prob(rd.GeneralizedMallows(np.array([0]), 1.0), np.array([0])) == 0


def test_mallows_kendall_counts_discordant_pairs():
    d = rd.GeneralizedMallows(CENTER, 0.6)
    assert d.event_shape == (5,)
    lists = top_lists(5, 5)
    places = np.argsort(CENTER)[lists]
    distance = sum(places[:, i] > places[:, j] for i, j in itertools.combinations(range(5), 2))
    log_probs = -0.6 * distance
    np.testing.assert_allclose(log_prob(d, lists), log_probs - logsumexp(log_probs), atol=1e-5)
    top = rd.GeneralizedMallows(CENTER, 0.6, length=2)
    vector = rd.GeneralizedMallows(CENTER, np.full(2, 0.6))
    of_top = log_prob(top, top_lists(5, 2))
    np.testing.assert_allclose(of_top, log_prob(vector, top_lists(5, 2)), rtol=1e-6)
    batch = rd.GeneralizedMallows.kendall(CENTER, np.array([0.6, 2.0]), length=2)
    assert (batch.batch_shape, batch.event_shape) == ((2,), (2,))
    of_batch = np.asarray(log_prob(batch, top_lists(5, 2)[:, None]))
    np.testing.assert_allclose(of_batch[:, 0], of_top, rtol=1e-6)


@pytest.mark.parametrize("num_stages", [1, 3, 5])
def test_mallows_samples(num_stages):
    d = rd.GeneralizedMallows(CENTER, THETA[:num_stages])
    lists = top_lists(5, num_stages)
    samples = draw(d, random.key(num_stages), (20_000,))
    assert samples.dtype == jnp.int32
    assert_frequencies(samples, lists, log_prob(d, lists))


def test_mallows_mode_entropy_and_expected_codes():
    d = rd.GeneralizedMallows(CENTER, THETA[:3])
    lists = top_lists(5, 3)
    log_probs = np.asarray(log_prob(d, lists), float)
    mode, of_mode, entropy, codes = jax.jit(
        lambda d: (d.mode, d.log_prob(d.mode), d.entropy(), d.expected_codes)
    )(d)
    np.testing.assert_array_equal(mode, CENTER[:3])
    assert log_probs.max() == pytest.approx(float(of_mode), abs=1e-6)
    assert float(entropy) == pytest.approx(-(np.exp(log_probs) * log_probs).sum(), rel=1e-5)
    first_code = np.argsort(CENTER)[lists[:, 0]]
    expected = (np.exp(log_probs) * first_code).sum()
    assert np.asarray(codes)[0] == pytest.approx(expected, rel=1e-4)


def test_mallows_gradient_is_observed_minus_expected_codes():
    ranking = np.array([0, 2, 3], np.int32)

    def log_density(theta, ranking):
        return rd.GeneralizedMallows(CENTER, theta).log_prob(ranking)

    @jax.jit
    def gradient_and_codes(theta, ranking):
        expected = rd.GeneralizedMallows(CENTER, theta).expected_codes
        return jax.grad(log_density)(theta, ranking), expected

    for theta in (THETA[:3], np.zeros(3, np.float32)):
        gradient, expected = map(np.asarray, gradient_and_codes(theta, ranking))
        np.testing.assert_allclose(gradient, expected - np.array([1.0, 0.0, 2.0]), atol=1e-4)
    padded, _ = gradient_and_codes(THETA[:3], np.array([0, -1, -1], np.int32))
    np.testing.assert_array_equal(np.asarray(padded)[1:], 0)


def test_mallows_kl():
    p = rd.GeneralizedMallows(CENTER, THETA[:3])
    q = rd.GeneralizedMallows(CENTER, np.array([0.1, 3.0, 1.0]))
    lists = top_lists(5, 3)
    log_p, log_q = (np.asarray(log_prob(d, lists), float) for d in (p, q))
    expected = (np.exp(log_p) * (log_p - log_q)).sum()
    assert float(dist.kl_divergence(p, q)) == pytest.approx(expected, rel=1e-4)
    assert abs(float(dist.kl_divergence(p, p))) < 1e-6
    assert dist.kl_divergence(p.expand((2,)), q).shape == (2,)
    batch = rd.GeneralizedMallows(CENTER, np.stack([THETA[:3], THETA[2:]]))
    assert dist.kl_divergence(batch, q).shape == (2,)

    other = rd.GeneralizedMallows(CENTER[::-1], np.ones(3))
    with pytest.raises(NotImplementedError, match="different centers"):
        dist.kl_divergence(p, other)
    with pytest.raises(ValueError, match="3 of 5 and 5 of 5"):
        dist.kl_divergence(p, rd.GeneralizedMallows(CENTER, THETA))
    # traced centers cannot be compared beforehand
    traced = jax.jit(
        lambda center: dist.kl_divergence(p, rd.GeneralizedMallows(center, q.concentration))
    )
    assert float(traced(CENTER)) == pytest.approx(expected, rel=1e-4)
    assert np.isnan(traced(CENTER[::-1]))


def test_mallows_batches_broadcast():
    centers = np.stack([CENTER, CENTER[::-1], np.arange(5)])
    theta = np.stack([THETA[:3], np.ones(3)])[:, None]
    d = rd.GeneralizedMallows(centers, theta)
    assert (d.batch_shape, d.event_shape) == ((2, 3), (3,))
    assert rd.GeneralizedMallows.infer_shapes((3, 5), (2, 1, 3)) == ((2, 3), (3,))
    assert rd.GeneralizedMallows.infer_shapes((3, 5), ()) == ((3,), (5,))
    samples = np.asarray(draw(d, random.key(0), (4,)))
    assert samples.shape == (4, 2, 3, 3) == d.shape((4,))
    assert d.mode.shape == (2, 3, 3)
    log_probs = np.asarray(log_prob(d, samples))
    for s, i, j in itertools.product(range(4), range(2), range(3)):
        expected = mallows_twin(samples[s, i, j].tolist(), centers[j], theta[i, 0])
        assert log_probs[s, i, j] == pytest.approx(expected, abs=1e-4)
    # one center, and a value for each of a batch of concentrations
    d = rd.GeneralizedMallows(CENTER, theta[:, 0])
    assert log_prob(d, top_lists(5, 3)[:, None]).shape == (60, 2)


def test_mixture_of_mallows():
    centers = np.stack([CENTER, CENTER[::-1]])
    theta = np.stack([THETA[:2], np.array([0.5, 0.5], np.float32)])
    weights = np.array([0.3, 0.7])
    components = rd.GeneralizedMallows(centers, theta)
    mixture = dist.MixtureSameFamily(dist.Categorical(probs=weights), components)
    lists = top_lists(5, 2)
    twins = [[mallows_twin(x, centers[c], theta[c]) for c in (0, 1)] for x in lists.tolist()]
    twin = logsumexp(twins, b=weights, axis=1)
    np.testing.assert_allclose(log_prob(mixture, lists), twin, atol=1e-5)
    assert_frequencies(draw(mixture, random.key(0), (20_000,)), lists, twin)


@pytest.mark.parametrize(
    "center, theta, message",
    [
        (np.array([0, 0, 1]), np.ones(2), "invalid center"),
        (np.array([1, 2, 3]), np.ones(2), "invalid center"),
        (np.array([0, 1, 2]), np.array([1.0, -0.1]), "invalid concentration"),
        (np.array([0, 1, 2]), np.array([1.0, np.nan]), "invalid concentration"),
        (np.array([0, 1, 2]), np.ones(4), "4 stages, but center orders 3 items"),
        (np.array(0), np.ones(1), "center must be an ordering"),
    ],
)
def test_mallows_bad_arguments(center, theta, message):
    with pytest.raises(ValueError, match=message):
        rd.GeneralizedMallows(center, theta, validate_args=True)
    with pytest.raises(ValueError, match=message):  # constants are checked while tracing, too
        jax.jit(lambda: rd.GeneralizedMallows(center, theta, validate_args=True))()


def test_mallows_length_must_agree():
    with pytest.raises(ValueError, match=r"length is 3.*kendall"):
        rd.GeneralizedMallows(CENTER, np.ones(2), length=3)
    with pytest.raises(ValueError, match="6 stages"):
        rd.GeneralizedMallows(CENTER, 1.0, length=6)
    with pytest.raises(ValueError, match="3 entries along the last axis"):
        rd.GeneralizedMallows(CENTER, np.ones(3)).log_prob(np.array([0, 1]))


@pytest.mark.parametrize(
    "ranking", [[0, 0, 1], [0, -1, 1], [-1, -1, -1], [5, 0, 1], [-2, 0, 1], [0, 1, -2]]
)
def test_mallows_outside_of_the_support(ranking):
    d = rd.GeneralizedMallows(CENTER, np.ones(3), validate_args=True)
    with pytest.warns(UserWarning, match="Out-of-support"):
        assert d.log_prob(np.array(ranking)) == -jnp.inf
    assert jax.jit(d.log_prob)(jnp.array(ranking)) == -jnp.inf


# --- prior of the concentrations ----------------------------------------------------------


# of four stages each, which share a program
PRIORS = [(2.0, 0.5, 5), (0.3, 1.5, 5), (30.0, np.array([0.2, 2.0, 0.9, 1.4]), 6)]


def prior_density(nu, r, m):
    codes = np.arange(m + 1)

    def density(theta):
        log_psi = np.log(np.exp(-np.multiply.outer(theta, codes)).sum(axis=-1))
        return np.exp(-nu * (r * theta + log_psi))

    return density


@pytest.mark.parametrize("nu, r, num_items", PRIORS)
def test_concentration_prior_is_normalised(nu, r, num_items):
    d = rd.MallowsConcentrationPrior(nu, r, num_items)
    num_stages = np.size(r) if np.ndim(r) else num_items - 1
    assert d.event_shape == (num_stages,)
    theta = np.linspace(0.0, 4.0, num_stages)
    expected = 0.0
    for stage in range(num_stages):
        density = prior_density(nu, np.broadcast_to(r, num_stages)[stage], num_items - 1 - stage)
        constant = integrate.quad(density, 0, np.inf, limit=200)[0]
        expected += math.log(density(theta[stage]) / constant)
    assert float(d.log_prob(theta)) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("nu, r, num_items", PRIORS)
def test_concentration_prior_samples(nu, r, num_items):
    d = rd.MallowsConcentrationPrior(nu, r, num_items)
    samples = np.asarray(d.sample(random.key(3), (4000,)), float)
    assert samples.shape == (4000, *d.event_shape)
    for stage in range(d.event_shape[0]):
        density = prior_density(nu, np.broadcast_to(r, d.event_shape)[stage], num_items - 1 - stage)
        grid = np.linspace(0, max(2 * samples[:, stage].max(), 1), 20_001)
        cdf = integrate.cumulative_simpson(density(grid), x=grid, initial=0)
        p = stats.kstest(samples[:, stage], lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue  # noqa: B023
        assert p > FALSE_ALARM


def test_concentration_prior_is_conjugate():
    """Prior times likelihood is the prior with counts and sums of codes added."""
    rankings = top_lists(4, 2)[[0, 5, 7]]
    center = np.arange(4)
    prior = rd.MallowsConcentrationPrior(2.0, 0.5, 4, num_stages=2)
    codes = np.array([rankings[:, 0], rankings[:, 1] - (rankings[:, 0] < rankings[:, 1])])
    sums = codes.sum(axis=1)
    posterior = rd.MallowsConcentrationPrior(5.0, (2.0 * 0.5 + sums) / 5.0, 4)
    theta = jnp.array([[0.1, 2.0], [1.5, 0.3], [3.0, 4.0]])
    likelihood = jax.vmap(lambda t: rd.GeneralizedMallows(center, t).log_prob(rankings).sum())
    evidence = np.asarray(
        jax.jit(
            lambda theta: prior.log_prob(theta) + likelihood(theta) - posterior.log_prob(theta)
        )(theta)
    )
    np.testing.assert_allclose(evidence, evidence[0], atol=1e-4)


def test_concentration_prior_shapes_and_errors():
    assert rd.MallowsConcentrationPrior(1.0, 1.0, 5, num_stages=2).event_shape == (2,)
    d = rd.MallowsConcentrationPrior(np.array([[1.0], [2.0]]), np.ones(3), 5)
    assert (d.batch_shape, d.event_shape) == ((2,), (3,))
    assert d.log_prob(np.ones(3)).shape == (2,)
    assert not d.has_rsample
    with pytest.raises(ValueError, match="5 items cannot have 6 stages"):
        rd.MallowsConcentrationPrior(1.0, np.ones(6), 5)
    with pytest.raises(ValueError, match="cannot have 0 stages"):
        rd.MallowsConcentrationPrior(1.0, 1.0, 1)
    with pytest.raises(ValueError, match="invalid r"):
        rd.MallowsConcentrationPrior(1.0, 0.0, 5)
    with pytest.warns(UserWarning, match="Out-of-support"):
        assert (d.log_prob(np.array([0.1, 2.0, -1.0])) == -jnp.inf).all()


# --- orderings ----------------------------------------------------------------------------


def test_random_permutation():
    d = rd.RandomPermutation(4)
    orderings = rd.all_permutations(4)
    assert orderings.shape == (24, 4)
    assert orderings.dtype == jnp.int32
    log_probs = np.asarray(log_prob(d, orderings))
    assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)
    assert float(d.entropy()) == pytest.approx(math.log(24))
    samples = draw(d.expand((2,)), random.key(0), (5_000,))
    assert samples.dtype == jnp.int32
    assert_frequencies(samples, orderings, log_probs)
    with pytest.warns(UserWarning, match="Out-of-support"):
        assert d.log_prob(np.array([0, 0, 1, 2])) == -jnp.inf
    with pytest.raises(ValueError, match="4 entries"):
        d.log_prob(np.array([0, 1, 2]))
    for number in (0, 2.7):
        with pytest.raises(ValueError, match="num_items must be a positive whole number"):
            rd.RandomPermutation(number)
    with pytest.raises(ValueError, match="not of 12"):
        rd.all_permutations(12)


# --- partitions ---------------------------------------------------------------------------


RESTAURANTS = [(1.0, 0.0), (0.3, 0.6), (-0.2, 0.5), (7.0, 0.1)]


@pytest.mark.parametrize("theta, discount", RESTAURANTS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_restaurant_sums_to_one(theta, discount, size):
    d = rd.ChineseRestaurantProcess(theta, size, discount)
    all_labels = partitions(size)
    log_probs = np.asarray(log_prob(d, all_labels), float)
    assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)
    twin = [eppf_twin(labels, theta, discount) for labels in all_labels]
    np.testing.assert_allclose(log_probs, twin, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("theta, discount", RESTAURANTS)
def test_restaurant_samples(theta, discount):
    d = rd.ChineseRestaurantProcess(theta, 5, discount)
    samples = draw(d, random.key(1), (20_000,))
    assert samples.dtype == jnp.int32
    assert_frequencies(samples, partitions(5), log_prob(d, partitions(5)))


@pytest.mark.parametrize("alpha, num_components", [(1.0, 1), (0.7, 2), (2.0, 3), (5.0, 8)])
def test_finite_dirichlet_partition(alpha, num_components):
    d = rd.FiniteDirichletPartition(alpha, num_components, 5)
    kappa = alpha / num_components
    mass = {}
    for labels in itertools.product(range(min(num_components, 5)), repeat=5):
        sizes = np.bincount(labels, minlength=num_components)
        log_mass = math.lgamma(alpha) - math.lgamma(alpha + 5)
        log_mass += sum(math.lgamma(kappa + n) - math.lgamma(kappa) for n in sizes)
        key = canonical(labels)
        mass[key] = mass.get(key, 0.0) + math.exp(log_mass)
    if num_components > 5:  # components past the fifth are exchangeable with the first five
        blocks = {key: max(key) + 1 for key in mass}
        for key, k in blocks.items():
            mass[key] *= math.perm(num_components, k) / math.perm(5, k)
    all_labels = partitions(5)
    # op by op, for the number of components is a constant of a program, and there are four
    log_probs = np.asarray(d.log_prob(all_labels))
    expected = [mass.get(tuple(labels), 0.0) for labels in all_labels.tolist()]
    np.testing.assert_allclose(np.exp(log_probs), expected, atol=1e-6)
    assert sum(expected) == pytest.approx(1)
    possible = np.array(expected) > 0
    samples = d.sample(random.key(2), (20_000,))
    assert_frequencies(samples, all_labels[possible], log_probs[possible])


def test_finite_partition_tends_to_the_restaurant():
    labels = partitions(4)
    finite = log_prob(rd.FiniteDirichletPartition(1.5, 10**6, 4), labels)
    infinite = log_prob(rd.ChineseRestaurantProcess(1.5, 4), labels)
    np.testing.assert_allclose(finite, infinite, atol=1e-4)


def test_partition_gradient_and_batches():
    labels = np.array([0, 0, 1, 2, 1])

    def finite_difference(f, x, eps=1e-3):
        return (f(x + eps) - f(x - eps)) / (2 * eps)

    def restaurant(theta, discount):
        return rd.ChineseRestaurantProcess(theta, 5, discount).log_prob(labels)

    gradients = jax.jit(jax.grad(restaurant, (0, 1)))(1.2, 0.3)
    twin = finite_difference(lambda x: eppf_twin(labels, x, 0.3), 1.2)
    assert float(gradients[0]) == pytest.approx(twin, abs=1e-4)
    twin = finite_difference(lambda x: eppf_twin(labels, 1.2, x), 0.3)
    assert float(gradients[1]) == pytest.approx(twin, abs=1e-4)
    finite = jax.jit(jax.grad(lambda a: rd.FiniteDirichletPartition(a, 2, 5).log_prob(labels)))
    assert np.isfinite(finite(1.0))  # -inf everywhere, but not a NaN in the chain rule

    d = rd.ChineseRestaurantProcess(np.array([[0.5], [2.0]]), 5, np.array([0.0, 0.2, 0.4]))
    assert (d.batch_shape, d.event_shape) == ((2, 3), (5,))
    samples = np.asarray(draw(d, random.key(0), (7,)))
    assert samples.shape == (7, 2, 3, 5)
    assert constraints.canonical_labels(samples).all()
    log_probs = np.asarray(log_prob(d, samples))
    expected = eppf_twin(samples[4, 1, 2], 2.0, 0.4)
    assert log_probs[4, 1, 2] == pytest.approx(expected, abs=1e-4)


def test_labels_in_another_numbering_are_the_same_partition():
    d = rd.ChineseRestaurantProcess(0.7, 5, 0.2, validate_args=False)
    other, usual = log_prob(d, np.array([[3, 1, 3, 0, 1], [0, 1, 0, 2, 1]]))
    np.testing.assert_allclose(other, usual, rtol=1e-6)
    strict = rd.ChineseRestaurantProcess(0.7, 5, 0.2, validate_args=True)
    for labels in ([1, 0, 0, 0, 0], [0, 2, 1, 0, 0], [0, 1, -1, 0, 0]):
        with pytest.warns(UserWarning, match="Out-of-support"):
            assert strict.log_prob(np.array(labels)) == -jnp.inf


def test_max_clusters_is_a_capacity():
    labels = partitions(4)
    full = log_prob(rd.ChineseRestaurantProcess(1.0, 4), labels)
    capped = log_prob(rd.ChineseRestaurantProcess(1.0, 4, max_clusters=2), labels)
    np.testing.assert_array_equal(capped, np.where(labels.max(axis=1) < 2, full, -np.inf))


@pytest.mark.parametrize("num_blocks", [1, 30, 50_000])
def test_partition_of_many_in_float32(num_blocks):
    size, theta = 100_000, 0.8
    labels = np.arange(size, dtype=np.int32) % num_blocks
    twin = eppf_twin(labels, theta, 0.0)
    actual = log_prob(rd.ChineseRestaurantProcess(theta, size), labels)
    assert actual.dtype == jnp.float32
    assert float(actual) == pytest.approx(twin, rel=1e-6, abs=1e-3)


def test_partition_bad_arguments():
    with pytest.raises(ValueError, match="more than -discount"):
        rd.ChineseRestaurantProcess(-0.4, 5, 0.3)
    with pytest.raises(ValueError, match="invalid concentration"):
        rd.ChineseRestaurantProcess(0.0, 5)
    with pytest.raises(ValueError, match="invalid concentration"):
        jax.jit(lambda: rd.ChineseRestaurantProcess(0.0, 5))()
    # arrays that are known while something else is traced, as in a model of one's own
    for bad in (jnp.float32(0.0), jnp.array([1.0, -1.0])):
        with pytest.raises(ValueError, match="invalid concentration"):
            jax.eval_shape(
                lambda bad=bad: rd.ChineseRestaurantProcess(bad, 5).log_prob(jnp.zeros(5, int))
            )
    known = jnp.array([1.0, 2.0])
    of_known = jax.eval_shape(
        lambda: rd.ChineseRestaurantProcess(known, 5).log_prob(jnp.zeros(5, int))
    )
    assert of_known.shape == (2,)
    with pytest.raises(ValueError, match="invalid discount"):
        rd.ChineseRestaurantProcess(1.0, 5, 1.0)
    for size in (0, 2.5):
        with pytest.raises(ValueError, match="size must be a positive whole number"):
            rd.ChineseRestaurantProcess(1.0, size)
    with pytest.raises(ValueError, match="num_components must be a positive whole number"):
        rd.FiniteDirichletPartition(1.0, 2.9, 3)
    with pytest.raises(ValueError, match="invalid concentration"):
        rd.FiniteDirichletPartition(-1.0, 2, 5)
    with pytest.raises(ValueError, match="num_components must be a positive whole number"):
        rd.FiniteDirichletPartition(1.0, 0, 5)


# --- what NumPyro and JAX do with all of them ---------------------------------------------


CASES = {
    "mallows": lambda: rd.GeneralizedMallows(
        np.stack([CENTER, np.arange(5)]), np.stack([THETA[:3], np.ones(3, np.float32)])
    ),
    "prior": lambda: rd.MallowsConcentrationPrior(np.array([[1.0], [3.0]]), 0.5, 4, num_stages=2),
    "permutation": lambda: rd.RandomPermutation(4),
    "crp": lambda: rd.ChineseRestaurantProcess(np.array([0.5, 2.0]), 6, 0.2, max_clusters=9),
    "finite": lambda: rd.FiniteDirichletPartition(1.5, 3, 6),
    "plackett-luce": lambda: rd.TopTPlackettLuce(np.log(THETA + 0.1), 3),
    "plackett-luce-unseen": lambda: rd.TopTPlackettLuce(
        np.log(THETA + 0.1),
        3,
        np.array([-1.0, 1.0], np.float32),
        np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]], bool),
    ),
    "plackett-luce-ties": lambda: rd.PlackettLuceTies(
        np.log(THETA + 0.1),
        np.array([[-1.0, 0.5], [0.2, -0.3]], np.float32),
        np.array([1, 1, 0, 1, 1], bool),
    ),
}


@pytest.fixture(params=CASES)
def distribution(request):
    return CASES[request.param]()


def test_expand_mask_and_plate(distribution):
    d = distribution
    expanded = d.expand((3, *d.batch_shape))
    value = draw(expanded, random.key(0))
    assert value.shape == (3, *d.batch_shape, *d.event_shape)
    mask = np.zeros((3, *d.batch_shape), bool)
    mask.flat[0] = True

    @jax.jit
    def densities(value):
        total = numpyro.infer.util.log_density(model, (value,), {}, {})[0]
        masked, event = expanded.mask(mask), d.expand((3, *d.batch_shape)).to_event(1)
        return total, *(each.log_prob(value) for each in (expanded, d, masked, event))

    def model(value=None):
        with numpyro.plate("outer", 3, dim=-1 - len(d.batch_shape)):
            numpyro.sample("x", d, obs=value)

    total, each, plain, masked, event = densities(value)
    np.testing.assert_allclose(each, plain, rtol=1e-6)
    np.testing.assert_allclose(masked, np.where(mask, each, 0), rtol=1e-6)
    assert event.shape == each.shape[:-1]
    assert float(total) == pytest.approx(np.asarray(each).sum(), rel=1e-5)
    trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace
    assert jax.eval_shape(lambda: trace()["x"]["value"]).shape == value.shape


@jax.jit
def all_of(d, key):
    """What a distribution does as an argument of a compiled function."""
    values = d.sample(key, (3,))
    return {
        "value": values[0],
        "vmap": jax.vmap(d.log_prob)(values),
        "batch": d.log_prob(values),
        "inside": jnp.all(d.support(values)),
        "feasible": jnp.all(d.support(d.support.feasible_like(values))),
    }


def test_pytree_jit_and_vmap(distribution):
    d = distribution
    found = all_of(d, random.key(0))
    value, expected = found["value"], jax.jit(lambda x: d.log_prob(x))(found["value"])
    leaves, structure = jax.tree.flatten(d)
    again = jax.tree.unflatten(structure, leaves)
    assert (again.batch_shape, again.event_shape) == (d.batch_shape, d.event_shape)
    assert type(again.support) is type(d.support)
    assert again.support == d.support
    jax.tree.map(np.testing.assert_array_equal, all_of(again, random.key(0)), found)
    through_jit = jax.jit(lambda d: d)(d)
    for one in (d, again, through_jit):
        np.testing.assert_allclose(log_prob(one, value), expected, rtol=1e-5)
    np.testing.assert_allclose(found["vmap"], found["batch"], rtol=1e-5)
    np.testing.assert_allclose(found["batch"][0], expected, rtol=1e-5)
    assert expected.dtype == jnp.float32
    assert not d.has_rsample
    assert not d.has_enumerate_support
    assert found["inside"] and found["feasible"]


def test_vmapped_constructors():
    thetas = np.stack([THETA[:3], np.ones(3, np.float32)])
    batch = jax.jit(jax.vmap(lambda t: rd.GeneralizedMallows(CENTER, t)))(thetas)
    x = CENTER[:3]
    each = jax.jit(jax.vmap(lambda d, x: d.log_prob(x), in_axes=(0, None)))
    expected = log_prob(rd.GeneralizedMallows(CENTER, thetas), x)
    np.testing.assert_allclose(each(batch, x), expected, rtol=1e-6)
    batch = jax.jit(jax.vmap(lambda t: rd.TopTPlackettLuce(t, 2, t[0])))(thetas)
    x = np.array([2, 3])
    expected = log_prob(rd.TopTPlackettLuce(thetas, 2, thetas[:, 0]), x)
    np.testing.assert_allclose(each(batch, x), expected, rtol=1e-6)
    per_theta = jax.vmap(lambda t: rd.ChineseRestaurantProcess(t, 4).log_prob(np.zeros(4, int)))
    twin = [eppf_twin(np.zeros(4), t, 0.0) for t in (0.5, 2.0)]
    found = jax.jit(per_theta)(np.array([0.5, 2.0], np.float32))
    np.testing.assert_allclose(found, twin, rtol=1e-5)


def test_supports_are_static():
    """Equal when their sizes are, without leaves: mixtures of them can be made and jitted."""
    assert constraints.top_list(4) == constraints.top_list(4)
    assert constraints.top_list(4) != constraints.top_list(5)
    assert constraints.top_list(4) != constraints.top_list(4, unseen=True)
    for constraint in (
        constraints.top_list(4),
        constraints.top_list(4, unseen=True),
        constraints.bucket_order,
        constraints.permutation,
        constraints.canonical_labels,
        constraints.unit_interval_without_one,
    ):
        assert isinstance(constraint, dist.constraints.ParameterFreeConstraint)
        leaves, structure = jax.tree.flatten(constraint)
        assert leaves == []
        assert jax.tree.unflatten(structure, leaves) == constraint
        assert repr(constraint).endswith(")")


def test_conversions():
    theta = jnp.array([0.0, 0.5, 3.0])
    phi = rd.concentration_to_dispersion(theta)
    np.testing.assert_allclose(phi, np.exp(-theta))
    np.testing.assert_allclose(rd.dispersion_to_concentration(phi), theta, rtol=1e-5)
    alpha = rd.concentration_to_bayesmallows_alpha(theta, 12)
    np.testing.assert_allclose(alpha, 12 * theta)
    np.testing.assert_allclose(rd.bayesmallows_alpha_to_concentration(alpha, 12), theta, rtol=1e-6)


def test_rankings_are_refused_with_what_to_give():
    """Once "got shape ()", because the axes of an object are none."""
    rankings = Rankings.from_orderings([[0, 2, 1], [1, 0, 2]], num_items=3)
    orders = PartialOrders.from_rankings(rankings)
    for d in (
        rd.TopTPlackettLuce(np.zeros(3), 3),
        rd.GeneralizedMallows(np.arange(3), np.ones(2)),
        rd.RandomPermutation(3),
    ):
        with pytest.raises(TypeError, match=r"takes arrays, not Rankings: give .*\.orderings"):
            d.log_prob(rankings)
    with pytest.raises(TypeError, match=r"give PartialOrders\.from_rankings\(rankings\)\.levels"):
        rd.PlackettLuceTies(np.zeros(3), np.zeros(1)).log_prob(rankings)
    with pytest.raises(TypeError, match="scores orderings, not PartialOrders"):
        rd.RandomPermutation(3).log_prob(orders)
