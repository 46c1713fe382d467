"""Component families: marginals against SciPy, and clusters that points join and leave."""

import itertools
from functools import lru_cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.enumeration import codes_of
from scipy import integrate, special, stats

from numpyro_rankings import Rankings, components
from numpyro_rankings.components import (
    Atom,
    Augmented,
    AugmentedFamily,
    DirichletMultinomial,
    Family,
    GaussianMean,
    MallowsCenter,
    NormalGamma,
    NormalInverseWishart,
    PlackettLuceWeights,
    SparseCounts,
)
from numpyro_rankings.components.family import put, take

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(7, 2)) + [1.0, -0.5]
COUNTS = RNG.poisson(1.0, size=(7, 5))
COUNTS[3] = 0  # an empty document
WORDS = SparseCounts(
    np.array([np.append(np.flatnonzero(x), [-1] * (5 - np.count_nonzero(x))) for x in COUNTS], int),
    np.array([np.append(x[x > 0], [0] * (5 - np.count_nonzero(x))) for x in COUNTS], int),
)
SCALE = np.array([[2.0, 0.5], [0.5, 1.0]])
CONCENTRATION = np.array([0.3, 1.0, 2.0, 0.5, 0.7])


def mean_marginal(x):
    """N(m_0, s_0² + s² on the diagonal), dimension by dimension."""
    covariance = 1.5**2 * np.ones((len(x), len(x))) + 0.8**2 * np.eye(len(x))
    return sum(
        stats.multivariate_normal(np.full(len(x), m), covariance).logpdf(x[:, k])
        for k, m in enumerate([0.3, -1.0])
    )


def gamma_marginal(x):
    """A multivariate t in each dimension: x = m + noise of covariance (b/a) (I + 1/κ)."""
    covariance = np.eye(len(x)) + np.ones((len(x), len(x))) / 0.7
    return sum(
        stats.multivariate_t(
            np.full(len(x), 0.2), covariance * rate / 1.3, df=2 * 1.3, allow_singular=False
        ).logpdf(x[:, k])
        for k, rate in enumerate([0.9, 2.0])
    )


def wishart_marginal(x):
    """One point after the other, each a multivariate t."""
    mean, kappa, df, scale, total = np.array([0.3, -1.0]), 0.6, 3.5, SCALE, 0.0
    for point in x:
        v = df - 1.0
        shape = scale * (kappa + 1) / (kappa * v)
        total += stats.multivariate_t(mean, shape, df=v).logpdf(point)
        step = point - mean
        scale = scale + kappa / (kappa + 1) * np.outer(step, step)
        mean, kappa, df = mean + step / (kappa + 1), kappa + 1, df + 1
    return total


def counts_marginal(x):
    total, a = x.sum(0), CONCENTRATION
    log_beta = special.gammaln(a + total).sum() - special.gammaln((a + total).sum())
    return log_beta - special.gammaln(a).sum() + special.gammaln(a.sum())


def symbol_marginal(x):
    return np.log([0.2, 0.5, 0.3])[x[0]] if np.ptp(x) == 0 else -np.inf


ORDERINGS = [[0, 1, 2, 3], [1, 0], [3], [0, 2, 1], [2, 3, 0], [3, 2], [1, 3, 2, 0]]
LISTS = Rankings.from_orderings(ORDERINGS, num_items=4)
THETAS = np.array([[0.3, 0.3, 0.3], [1.5, 0.7, 0.2]])
TIMES = RNG.exponential(size=(7, 4))
TIMED = np.empty(7, object)
TIMED[:] = list(zip(ORDERINGS, TIMES, strict=True))


def center_marginal(lists):
    """Over all centers and both θ, stage by stage."""
    total = []
    for share, theta in zip([0.4, 0.6], THETAS, strict=True):
        for center in itertools.permutations(range(4)):
            log_prob = np.log(share / 24)
            for ranking in lists:
                for j, code in enumerate(codes_of(ranking, center)[:3]):
                    psi = np.sum(np.exp(-theta[j] * np.arange(4 - j)))
                    log_prob += -theta[j] * code - np.log(psi)
            total.append(log_prob)
    return np.logaddexp.reduce(total)


def weights_marginal(timed):
    """Of choices and waiting times, Π w exp(-Z W): an integral for each item."""
    chosen, in_play = np.zeros(4), np.zeros(4)
    for ranking, times in timed:
        left = [0, 1, 2, 3]
        for item, time in zip(ranking, times, strict=False):
            if len(left) > 1:
                chosen[item] += 1
                in_play[left] += time
            left.remove(item)
    total = 0.0
    for n, time, a in zip(chosen, in_play, [0.7, 1.0, 2.0, 1.3], strict=True):
        log_norm = special.gammaln(a)
        value, _ = integrate.quad(
            lambda w, n=n, time=time, a=a, log_norm=log_norm: (
                w ** (a - 1 + n) * np.exp(-w * (1 + time) - log_norm)
            ),
            0,
            np.inf,
        )
        total += np.log(value)
    return total


SYMBOLS = np.array([1, 1, 2, 1, 0, 0, 2])
# name: family, data, log marginal of some of them by SciPy
CASES = {
    "gaussian mean": (GaussianMean(1.5, 0.8, [0.3, -1.0]), POINTS, mean_marginal),
    "normal-gamma": (NormalGamma(0.2, 0.7, 1.3, [0.9, 2.0]), POINTS, gamma_marginal),
    "normal-inverse-Wishart": (
        NormalInverseWishart([0.3, -1.0], 0.6, 3.5, SCALE),
        POINTS,
        wishart_marginal,
    ),
    "counts": (DirichletMultinomial(CONCENTRATION), COUNTS, counts_marginal),
    "sparse counts": (DirichletMultinomial(CONCENTRATION), WORDS, counts_marginal),
    "symbols": (Atom([0.2, 0.5, 0.3]), SYMBOLS, symbol_marginal),
    "Mallows center": (MallowsCenter(THETAS, [0.4, 0.6]), LISTS, center_marginal),
    "Plackett–Luce weights": (
        PlackettLuceWeights([0.7, 1.0, 2.0, 1.3]),
        Augmented(LISTS, TIMES),
        weights_marginal,
    ),
}
# the data one by one, where they are no array
PLAIN = {
    "sparse counts": COUNTS,
    "Mallows center": np.array(ORDERINGS, object),
    "Plackett–Luce weights": TIMED,
}
each_family = pytest.mark.parametrize("name", CASES)


def pick(points, which):
    return jax.tree.map(lambda x: np.asarray(x)[which], points)


@lru_cache
def compiled(family):
    """The functions of a family, each compiled once for a shape instead of op by op."""
    names = ("add", "subtract", "log_marginal", "log_predictive", "for_union", "log_union")
    functions = {name: jax.jit(getattr(family, name)) for name in names}
    of_clusters = jax.jit(family.of_clusters, static_argnums=2)
    return SimpleNamespace(statistics=family.statistics, of_clusters=of_clusters, **functions)


@each_family
def test_marginals_by_scipy(name):
    family, data, expected = CASES[name]
    family.check(data.data if isinstance(data, Augmented) else data)
    points = family.statistics(data)
    labels = np.array([0, 0, 1, 0, 3, 3, 1])
    clusters = compiled(family).of_clusters(points, labels, 8)
    found = np.asarray(compiled(family).log_marginal(clusters))
    plain = PLAIN.get(name, data)
    for c in range(8):
        members = plain[labels == c]
        log_marginal = expected(members) if len(members) else 0.0
        assert found[c] == pytest.approx(log_marginal, rel=1e-5, abs=1e-5), c


@each_family
def test_points_join_and_leave(name):
    """Predictive probabilities add up to the marginal; statistics are those made afresh."""
    family, data = compiled(CASES[name][0]), CASES[name][1]
    points = family.statistics(data)
    members = [0, 1, 3]  # symbols that are equal
    clusters = family.of_clusters(points, np.arange(7), 8)  # 7 is empty
    cluster, total = pick(clusters, 7), 0.0
    for i in members:
        total += float(family.log_predictive(cluster, pick(points, i)))
        cluster = family.add(cluster, pick(points, i))
    fresh = pick(family.of_clusters(points, np.array([0, 0, 1, 0, 1, 1, 1]), 8), 0)
    assert jax.tree.structure(fresh) == jax.tree.structure(cluster)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), cluster, fresh)
    assert total == pytest.approx(float(family.log_marginal(fresh)), rel=1e-5, abs=1e-5)
    # out again, and to nothing
    fewer = family.subtract(fresh, pick(points, 1))
    two = family.add(family.add(pick(clusters, 7), pick(points, 0)), pick(points, 3))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), fewer, two)
    none = family.subtract(family.subtract(fewer, pick(points, 0)), pick(points, 3))
    assert family.log_marginal(none) == pytest.approx(0.0, abs=1e-5)
    # all clusters at once, and each by itself
    both = np.asarray(family.log_predictive(clusters, pick(points, 2)))
    alone = [family.log_predictive(pick(clusters, c), pick(points, 2)) for c in range(8)]
    np.testing.assert_allclose(both, alone, rtol=1e-4)


@each_family
def test_unions(name):
    """What two clusters gain by being one, each with each at once."""
    family, data = compiled(CASES[name][0]), CASES[name][1]
    points = family.statistics(data)
    labels = np.array([0, 0, 1, 0, 2, 2, 1])
    clusters = family.of_clusters(points, labels, 8)  # 3 is empty
    other = family.for_union(pick(clusters, [[0], [2]]))
    found = np.asarray(family.log_union(pick(clusters, [[0, 1, 3]]), other))
    for row, second in enumerate((0, 2)):
        for column, first in enumerate((0, 1, 3)):
            both = family.add(pick(clusters, first), pick(clusters, second))
            expected = float(family.log_marginal(both))
            for one in (first, second):
                expected -= float(family.log_marginal(pick(clusters, one)))
            # of symbols that differ, and of a cluster with itself, too
            assert found[row, column] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", [k for k, (f, *_) in CASES.items() if f.has_parameters])
def test_draws_of_parameters(name):
    """Averaged over draws, the likelihood of two points is their predictive probability."""
    family, data, _ = CASES[name]
    points, number = family.statistics(data), 40_000
    clusters = compiled(family).of_clusters(points, np.array([0, 0, 0, 1, 1, 1, 1]), 3)
    one, other = (pick(points, i) for i in (4, 5))

    @jax.jit
    def of_draws(key, before):
        many = jax.tree.map(lambda x: jnp.broadcast_to(x, (number, *x.shape)), before)
        parameters = family.draw_parameters(key, many)
        values = family.log_likelihood(parameters, one) + family.log_likelihood(parameters, other)
        expected = family.log_predictive(before, one)
        expected += family.log_predictive(family.add(before, one), other)
        # parameters of one cluster, all points
        one_cluster = jax.tree.map(lambda x: x[7], parameters)
        together = family.log_likelihood(one_cluster, points)
        each = jax.lax.map(lambda point: family.log_likelihood(one_cluster, point), points)
        return values, expected, together, each

    for cluster in (0, 2):  # one with three points, and an empty one
        found = of_draws(jax.random.key(cluster), pick(clusters, cluster))
        values, expected, together, each = (np.asarray(x, float) for x in found)
        values = np.exp(values)
        error = values.std(ddof=1) / np.sqrt(number)
        assert abs(values.mean() - np.exp(expected)) < 5 * error
        np.testing.assert_allclose(together, each, rtol=1e-5)


def test_parameters_in_many_dimensions():
    """Beyond eight dimensions products are not written out."""
    d = 9
    family = NormalInverseWishart(np.zeros(d), 0.5, d + 2.0, np.eye(d))
    points = family.statistics(RNG.normal(size=(20, d)))

    @jax.jit
    def drawn(key, points):
        cluster = family.of_clusters(points, np.zeros(20, int), 2)
        parameters = jax.tree.map(lambda x: x[0], family.draw_parameters(key, cluster))
        return parameters, family.log_likelihood(parameters, points)

    (mean, root, _), found = jax.device_get(drawn(jax.random.key(0), points))
    covariance = np.linalg.inv(root.astype(float).T @ root.astype(float))
    expected = stats.multivariate_normal(mean.astype(float), covariance)
    np.testing.assert_allclose(found, expected.logpdf(points.mean), rtol=1e-3)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8])
def test_wishart_clusters_in_any_dimension(d):
    """Up to four dimensions the factors of matrices are written out: against float64."""
    rng = np.random.default_rng(d)
    x = 20.0 + rng.normal(size=(12, d)) @ rng.normal(size=(d, d))
    labels, scale = np.repeat([0, 1, 2], [2, 4, 6]), np.eye(d) + 0.3
    family = NormalInverseWishart(np.full(d, 19.0), 0.4, d + 1.5, scale)
    points = family.statistics(x)

    @jax.jit
    def scores(points):
        clusters = family.of_clusters(points, labels, 4)  # the last is empty
        one = jax.tree.map(lambda x: x[:, None], points)
        table = family.log_predictive(jax.tree.map(lambda x: x[None], clusters), one)
        return table, family.log_marginal(clusters)

    def log_predictive(before, new):
        n = len(before)
        number, df = 0.4 + n, d + 1.5 + n
        mean = before.mean(0) if n else np.zeros(d)
        center, step = (0.4 * 19.0 + n * mean) / number, mean - 19.0
        matrix = (
            scale + (before - mean).T @ (before - mean) + 0.4 * n / number * np.outer(step, step)
        )
        v = df - d + 1
        return stats.multivariate_t(center, matrix * (number + 1) / (number * v), df=v).logpdf(new)

    parts = [x[labels == c] for c in range(4)]
    table, log_marginal = jax.device_get(scores(points))
    for c, part in enumerate(parts):
        np.testing.assert_allclose(table[:, c], log_predictive(part, x), rtol=2e-4, atol=2e-4)
        expected = sum(float(log_predictive(part[:i], part[i])) for i in range(len(part)))
        assert log_marginal[c] == pytest.approx(expected, rel=2e-4, abs=2e-4)


def test_wishart_clusters_of_many_degrees_of_freedom():
    d, df = 8, 1e10
    family = NormalInverseWishart(np.zeros(d), 1.0, df, df * np.eye(d))
    points = family.statistics(np.ones((1, d)))
    clusters = family.of_clusters(points, np.zeros(1, int), 2)  # the second is empty
    expected = stats.multivariate_normal(np.zeros(d), 2.0 * np.eye(d)).logpdf(np.ones(d))
    assert family.log_predictive(clusters, points)[1] == pytest.approx(expected, rel=1e-4)


def test_statistics_after_many_moves():
    """A thousand points a thousand from the origin, each moved once: no digits are lost."""
    rng = np.random.default_rng(0)
    size, slots = 1000, 4
    first, last = rng.integers(slots, size=(2, size))
    x = 1000.0 + 4.0 * rng.normal(size=(slots, 2))[first] + rng.normal(size=(size, 2))
    family = NormalInverseWishart([1000.0, 1000.0], 0.1, 4.0, np.eye(2))

    @jax.jit
    def scores(points):
        def move(clusters, inputs):
            old, new, point = inputs
            clusters = put(clusters, old, family.subtract(take(clusters, old), point))
            return put(clusters, new, family.add(take(clusters, new), point)), None

        clusters = family.of_clusters(points, first, slots)
        clusters, _ = jax.lax.scan(move, clusters, (first, last, points))
        one = jax.tree.map(lambda x: x[:, None], points)
        tables = [
            family.log_predictive(jax.tree.map(lambda x: x[None], some), one)
            for some in (clusters, family.of_clusters(points, last, slots))
        ]
        return jnp.stack(tables)

    moved, summed = jax.device_get(scores(family.statistics(x)))
    assert np.isfinite(summed).all()
    np.testing.assert_allclose(moved, summed, rtol=0, atol=5e-3)


def test_families_without_draws():
    family = Atom([0.2, 0.5, 0.3])
    points = family.statistics(SYMBOLS)
    assert not family.has_parameters
    with pytest.raises(ValueError, match="Atom has no draws of its parameters"):
        family.draw_parameters(jax.random.key(0), points)
    with pytest.raises(ValueError, match="Atom has no likelihood given its parameters"):
        family.log_likelihood(None, points)


def test_unions_of_large_clusters():
    """Two halves of 10^5 points in float32: the change of the marginal, -2,000, to 0.2."""
    size, d = 100_000, 2
    x = (RNG.normal(size=(size, d)) + [30.0, -20.0]).astype(np.float32)
    labels = (x[:, 0] + 3.0 * RNG.normal(size=size) > 30.0).astype(int)
    wishart = NormalInverseWishart(np.zeros(d), 0.1, 4.0, np.eye(d))

    def moments(x):
        mean = x.mean(0)
        return len(x), mean, (x - mean).T @ (x - mean)

    def of_wishart(x):
        n, mean, scatter = moments(x)
        number, df = 0.1 + n, 4.0 + n
        matrix = np.eye(d) + scatter + 0.1 * n / number * np.outer(mean, mean)
        gammas = special.multigammaln(0.5 * df, d) - 0.5 * n * d * np.log(np.pi)
        log_det = np.linalg.slogdet(matrix)[1]
        rest = special.multigammaln(2.0, d) + 0.5 * d * np.log(number / 0.1)
        return gammas - 0.5 * df * log_det - rest

    def of_gamma(x):
        n, mean, scatter = moments(x)
        number, shape = 0.1 + n, 1.0 + 0.5 * n
        rate = 1.0 + 0.5 * np.diag(scatter) + 0.05 * n / number * mean**2
        each = special.gammaln(shape) - shape * np.log(rate) - 0.5 * np.log(number / 0.1)
        return np.sum(each - 0.5 * n * np.log(2.0 * np.pi))

    for family, log_marginal in ((wishart, of_wishart), (NormalGamma(0.0, 0.1, 1.0), of_gamma)):
        parts = [x[labels == c].astype(float) for c in (0, 1)]
        expected = log_marginal(np.concatenate(parts)) - sum(map(log_marginal, parts))
        points = family.statistics(x)
        clusters = compiled(family).of_clusters(points, labels, 2)
        found = compiled(family).log_union(pick(clusters, 0), pick(clusters, 1))
        assert float(found) == pytest.approx(expected, abs=0.2)


def test_what_is_left_of_a_pair():
    """Far apart, and one of them leaves: the other is a single point again, at the prior mean."""
    center = np.array([1.1, -0.7])
    for family in (
        NormalInverseWishart(center, 0.5, 4.0, 0.01 * np.eye(2)),
        NormalGamma(center, 0.5, 1.0, 0.01 * np.ones(2)),
    ):
        far = family.statistics(RNG.normal(scale=300.0, size=(500, 2)))
        near = family.statistics(np.tile(center, (500, 1)))
        family = compiled(family)
        left = family.subtract(family.add(far, near), far)  # rounding shows in few pairs only
        np.testing.assert_allclose(
            family.log_marginal(left), family.log_marginal(near), rtol=0, atol=1e-3
        )


def test_union_of_many_words():
    """More words than are looked at at once."""
    family = DirichletMultinomial(0.5, vocabulary_size=1000)
    counts = RNG.poisson(1.0, size=(2, 1000))
    first, second = counts.astype(float)
    points = family.statistics(counts)
    family = compiled(family)
    found = family.log_union(pick(points, 0), family.for_union(pick(points, 1)))

    def marginal(x):
        rising = special.gammaln(0.5 + x).sum() - 1000 * special.gammaln(0.5)
        return rising - special.gammaln(500.0 + x.sum()) + special.gammaln(500.0)

    expected = marginal(first + second) - marginal(first) - marginal(second)
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_predictive_that_is_not_given():
    """By default it is the difference of two marginals."""
    family, data, _ = CASES["gaussian mean"]
    points = family.statistics(data)
    cluster = pick(compiled(family).of_clusters(points, np.array([0, 0, 0, 0, 1, 1, 1]), 2), 0)
    inherited = jax.jit(lambda cluster, point: Family.log_predictive(family, cluster, point))
    by_difference = inherited(cluster, pick(points, 5))
    given = compiled(family).log_predictive(cluster, pick(points, 5))
    assert by_difference == pytest.approx(float(given), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_large_clusters_in_float32(offset):
    """10^5 points, far from the prior mean: log weights to 1e-3 of those in float64."""
    size, d = 100_000, 3
    x = RNG.normal(size=(size, d)).astype(np.float32) + np.float32(offset)
    exact, new = x.astype(float), np.full((1, d), offset + 1.5)
    mean, scatter = exact.mean(0), (exact - exact.mean(0)).T @ (exact - exact.mean(0))
    labels = jnp.zeros(size, jnp.int32)

    def found(family, other=new):
        points = family.statistics(x)
        cluster = family.of_clusters(points, labels, 1)
        # a thousand leave one by one, and come back
        thousand = pick(points, np.arange(1000))
        for change in (family.subtract, family.add):
            cluster = jax.lax.scan(
                lambda c, p, change=change: (change(c, jax.tree.map(lambda x: x[None], p)), None),
                cluster,
                thousand,
            )[0]
        return float(family.log_predictive(cluster, family.statistics(other))[0])

    ratio = 100.0**2
    variance = 1.0 + ratio / (1 + size * ratio)
    center = size * ratio / (1 + size * ratio) * mean
    expected = stats.multivariate_normal(center, variance * np.eye(d)).logpdf(new[0])
    assert found(GaussianMean(100.0, 1.0)) == pytest.approx(expected, abs=1e-3)

    number, center = 0.1 + size, size / (0.1 + size) * mean
    rate = 1.0 + 0.5 * np.diag(scatter) + 0.05 * size / number * mean**2
    shape = 1.0 + 0.5 * size
    scale = np.sqrt(rate * (number + 1) / (number * shape))
    expected = stats.t(2 * shape, center, scale).logpdf(new[0]).sum()
    assert found(NormalGamma(0.0, 0.1, 1.0, 1.0)) == pytest.approx(expected, abs=1e-3)

    df = 5.0 + size
    matrix = np.eye(d) + scatter + 0.1 * size / number * np.outer(mean, mean)
    v = df - d + 1
    expected = stats.multivariate_t(center, matrix * (number + 1) / (number * v), df=v)
    wishart = NormalInverseWishart(np.zeros(d), 0.1, 5.0, np.eye(d))
    assert found(wishart) == pytest.approx(expected.logpdf(new[0]), abs=1e-3)


@pytest.mark.slow
def test_large_vocabulary_in_float32():
    """10^5 documents of a vocabulary of 10^4 words, against float64."""
    size, vocabulary, length = 100_000, 10_000, 20
    words = np.sort(RNG.integers(0, vocabulary, (size, length)), axis=1).astype(np.int32)
    words[:, 1:][words[:, 1:] == words[:, :-1]] = -1
    data = SparseCounts(words, np.where(words >= 0, 2, 0))
    family = DirichletMultinomial(0.01, vocabulary)
    family.check(data)
    points = family.statistics(data)
    cluster = jax.jit(family.of_clusters, static_argnums=2)(points, jnp.zeros(size, jnp.int32), 1)
    totals = np.zeros(vocabulary)
    np.add.at(totals, words[words >= 0], 2)
    np.testing.assert_array_equal(cluster.counts[0], totals)
    here, a = words[0][words[0] >= 0], 0.01
    expected = np.log((a + totals[here]) * (a + totals[here] + 1)).sum()
    grand = a * vocabulary + totals.sum() + np.arange(2 * len(here))
    expected -= np.log(grand).sum()
    found = family.log_predictive(cluster, pick(points, [0]))[0]
    assert found == pytest.approx(expected, abs=1e-3)


# name: the family made of its numbers, and the numbers
TRACED = {
    "gaussian mean": (GaussianMean, (1.5, 0.8, [0.3, -1.0])),
    "normal-gamma": (NormalGamma, (0.2, 0.7, 1.3, [0.9, 2.0])),
    "normal-inverse-Wishart": (NormalInverseWishart, ([0.3, -1.0], 0.6, 3.5, SCALE.tolist())),
    "counts": (DirichletMultinomial, (CONCENTRATION.tolist(),)),
    "sparse counts": (lambda a: DirichletMultinomial(a, vocabulary_size=5), (0.7,)),
    "symbols": (Atom, ([0.2, 0.5, 0.3],)),
    "Mallows center": (MallowsCenter, (THETAS.tolist(), [0.4, 0.6])),
    "Plackett–Luce weights": (PlackettLuceWeights, ([0.7, 1.0, 2.0, 1.3],)),
}


@each_family
def test_numbers_that_are_sampled(name):
    """Numbers may be traced, one by one and in lists: values and gradients are as they should."""
    (make, arguments), (_, data, _) = TRACED[name], CASES[name]
    known, labels = make(*arguments), np.array([0, 0, 1, 0, 3, 3, 2])
    clusters = known.of_clusters(known.statistics(data), labels, 4)
    drawn = None
    if known.has_parameters:
        drawn = jax.jit(known.draw_parameters)(jax.random.key(0), clusters)

    def log_prob(family):
        family.check(data.data if isinstance(data, Augmented) else data)
        points = family.statistics(data)
        clusters = family.of_clusters(points, labels, 4)
        pairs = family.log_predictive(clusters, take(points, np.array([1, 2, 6, 4])))
        total = family.log_marginal(clusters)[0] + pairs[0]
        if drawn is None:
            return total, None
        again = jax.lax.stop_gradient(family.draw_parameters(jax.random.key(0), clusters))
        return total + family.log_likelihood(take(drawn, 0), take(points, 3)), again

    of_numbers = jax.jit(jax.value_and_grad(lambda x: log_prob(make(*x)), has_aux=True))
    (value, again), slopes = of_numbers(arguments)
    assert float(value) == pytest.approx(float(jax.jit(lambda: log_prob(known)[0])()), rel=1e-4)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3), again, drawn)
    numbers, structure = jax.tree.flatten(arguments)
    if name == "normal-inverse-Wishart":  # its matrix stays symmetric
        numbers, slopes = numbers[:4], jax.tree.leaves(slopes)[:4]
    rest = jax.tree.leaves(arguments)[len(numbers) :]
    for k, slope in enumerate(jax.tree.leaves(slopes)):
        ends = []
        for step in (1e-2, -1e-2):
            moved = [x + step * (i == k) for i, x in enumerate(numbers)] + rest
            ends.append(float(of_numbers(jax.tree.unflatten(structure, moved))[0][0]))
        difference = (ends[0] - ends[1]) / 2e-2
        assert float(slope) == pytest.approx(difference, rel=2e-2, abs=2e-2), k


def test_every_family_may_have_sampled_numbers():
    families = {type(family) for family, *_ in CASES.values()}
    exported = [getattr(components, name) for name in components.__all__]
    bases = (Family, AugmentedFamily)
    every = {x for x in exported if isinstance(x, type) and issubclass(x, Family)} - set(bases)
    assert every == families and TRACED.keys() == CASES.keys()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: GaussianMean(x[:2], 1.0), "prior_scale must be a positive number"),
        (lambda x: NormalGamma(rate=x[None, None]), "rate must be a number or an array"),
        (lambda x: NormalInverseWishart(x[:2], 1.0, x[:2], np.eye(2)), "df must be more than"),
        (lambda x: NormalInverseWishart(x[:2], 1.0, 3.0, x[:2]), "scale must be a symmetric"),
        (lambda x: Atom(x[0]), "probs must be an array"),
        (lambda x: DirichletMultinomial(x[None]), "concentration must be positive numbers"),
        (lambda x: MallowsCenter(x, x[:1]), "probs must be 3 positive numbers"),
        (lambda x: PlackettLuceWeights(x[None]), "shape must be positive"),
    ],
)
def test_shapes_of_sampled_numbers_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda x: make(x).statistics(COUNTS), jnp.ones(3))


BAD = {
    "no scale": (lambda: GaussianMean(0.0, 1.0), "prior_scale must be a positive number"),
    "a negative scale": (lambda: GaussianMean(1.0, -1.0), "noise_scale must be a positive number"),
    "mean of NaN": (lambda: GaussianMean(1.0, 1.0, [np.nan]), "prior_mean must be a number or"),
    "rate of 0": (lambda: NormalGamma(rate=[1.0, 0.0]), "rate must be positive"),
    "two lengths": (lambda: NormalGamma([0.0, 1.0], rate=[1.0] * 3), "different lengths"),
    "few degrees": (lambda: NormalInverseWishart([0, 0], 1, 1.0, np.eye(2)), "more than d - 1 = 1"),
    "no matrix": (lambda: NormalInverseWishart([0, 0], 1, 3, np.eye(3)), r"symmetric matrix \(2"),
    "indefinite": (
        lambda: NormalInverseWishart([0, 0], 1, 3, np.diag([1.0, -1.0])),
        "positive definite",
    ),
    "concentration of 0": (lambda: DirichletMultinomial(0.0), "concentration must be positive"),
    "two sizes": (lambda: DirichletMultinomial([1.0, 1.0], 3), "2 entries, the vocabulary 3"),
    "no probabilities": (lambda: Atom([0.5, 0.4]), "add up to 1, not to 0.9"),
    "points in a line": (
        lambda: GaussianMean(1, 1).check([1.0, 2.0]),
        r"array \(N, d\), got shape",
    ),
    "points of NaN": (
        lambda: NormalGamma().check([[1.0], [np.nan]]),
        "row 1 of the points has an entry that is not finite",
    ),
    "three dimensions": (
        lambda: GaussianMean(1, 1, [0.0, 0.0]).check(np.ones((4, 3))),
        "has 2 dimensions, the points have 3",
    ),
    "half a word": (lambda: DirichletMultinomial(1.0).check([[1, 0.5]]), "row 0 has an entry that"),
    "other vocabulary": (lambda: DirichletMultinomial(1.0, 3).check([[1, 2]]), "has 3 words"),
    "no vocabulary": (lambda: DirichletMultinomial(1.0).check(WORDS), "need vocabulary_size="),
    "a word too far": (lambda: DirichletMultinomial(1.0, 3).check(WORDS), "is not from 0 to 2"),
    "a word twice": (
        lambda: DirichletMultinomial(1.0, 3).check(SparseCounts([[0, 1, 0]], [[1, 1, 1]])),
        "row 0 has a word twice",
    ),
    "a count of no word": (
        lambda: DirichletMultinomial(1.0, 3).check(SparseCounts([[0, -1]], [[1, 2]])),
        "row 0 has a count where there is no word",
    ),
    "a count too large": (
        lambda: DirichletMultinomial(1.0).check([[1, 0], [0, 2**25]]),
        "row 1 has a count above 16,777,216",
    ),
    "a symbol of no chance": (lambda: Atom([1.0, 0.0]).check(np.array([0, 1])), "row 1 has the"),
    "symbols as floats": (lambda: Atom([1.0]).check([0.0]), "symbols must be integers"),
    "a concentration in words": (lambda: DirichletMultinomial("a"), "positive numbers, got 'a'"),
    "degrees of freedom in words": (
        lambda: NormalInverseWishart(np.zeros(1), 1.0, "3", np.eye(1)),
        "df must be more than d - 1 = 0, got '3'",
    ),
    "a negative concentration": (lambda: MallowsCenter([1.0, -1.0]), "non-negative numbers"),
    "two of three shares": (lambda: MallowsCenter([1.0, 2.0, 3.0], [0.5, 0.5]), "must be 3 posit"),
    "shares of 2": (lambda: MallowsCenter([1.0, 2.0], [1.0, 1.0]), "add up to 1"),
    "lists as arrays": (lambda: MallowsCenter(1.0).check([[0, 1]]), "must be a Rankings, got list"),
    "other stages": (lambda: MallowsCenter([[1.0, 2.0]]).check(LISTS), "2 stages, the rankings"),
    "values or stages": (
        lambda: MallowsCenter([2.0, 1.0, 0.1]).check(LISTS),
        r"has 3 numbers, as many as there are stages: give \[\[a, b, ...\]\] for one at each stage",
    ),
    "ten items": (
        lambda: MallowsCenter(1.0).check(Rankings.from_orderings([[0]], num_items=10)),
        "at most 7 items, but these rankings have 10",
    ),
    "choice sets": (
        lambda: MallowsCenter(1.0).check(
            Rankings.from_orderings([[0]], num_items=3, choice_sets=np.ones((1, 3), bool))
        ),
        "not of choice sets",
    ),
    "shape of 0": (lambda: PlackettLuceWeights(0.0), "shape must be positive"),
    "shapes of others": (lambda: PlackettLuceWeights([1.0, 1.0]).check(LISTS), "each of the 4"),
}


@pytest.mark.parametrize("length", [2, 4])
def test_values_of_a_center_are_told_from_its_stages(length):
    """Of as many numbers as there are stages it has to be said what they are."""
    orders = [[0, 1, 2, 3], [0, 1, 3, 2]]
    lists = Rankings.from_orderings([order[:length] for order in orders], num_items=4)
    stages = min(length, 3)
    numbers = [2.0, 1.0, 0.1][:stages]

    def log_marginal(family):
        points = family.statistics(lists)
        return float(family.log_marginal(family.of_clusters(points, np.zeros(2, int), 1))[0])

    def by_hand(theta):
        total = []
        for center in itertools.permutations(range(4)):
            codes = [codes_of(order, center)[:stages] for order in orders]
            log_psi = [np.log(np.sum(np.exp(-t * np.arange(4 - j)))) for j, t in enumerate(theta)]
            total.append(-np.sum(np.array(codes) @ theta) - 2 * np.sum(log_psi))
        return np.logaddexp.reduce(total) - np.log(24)

    with pytest.raises(ValueError, match=f"has {stages} numbers, as many as there are stages"):
        log_marginal(MallowsCenter(numbers))
    assert log_marginal(MallowsCenter([numbers])) == pytest.approx(by_hand(numbers), rel=1e-5)
    of_each = np.logaddexp.reduce([by_hand([x] * stages) for x in numbers]) - np.log(stages)
    column = [[x] for x in numbers]
    assert log_marginal(MallowsCenter(column)) == pytest.approx(of_each, rel=1e-5)
    shares = np.full(stages, 1 / stages)  # which only values have
    assert log_marginal(MallowsCenter(numbers, shares)) == pytest.approx(of_each, rel=1e-5)


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    call, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()
