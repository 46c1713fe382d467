"""Priors of bounded support, or with a gap, that NumPyro does not validate."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.enumeration import MallowsPosterior, discrepancies
from helpers.kernel_tests import each_of
from helpers.no_warnings import no_warnings
from jax import random
from numpyro.infer import MCMC
from scipy import stats
from scipy.special import gammaln

from numpyro_rankings import Rankings
from numpyro_rankings.distributions import FlatLog
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs, exponential_decay
from numpyro_rankings.infer.checks import check_start_scale
from numpyro_rankings.infer.ddcrp import language, reach, scales
from numpyro_rankings.infer.ddcrp.reach import as_link_weights
from numpyro_rankings.infer.mixture import prior as alpha
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.plackett_luce.measures import (
    Measures,
    Scales,
    update_common_scale,
    update_concentration,
    update_phi,
)
from numpyro_rankings.infer.priors import draw_start, keep_possible, log_prior, log_prior_ratio
from numpyro_rankings.ops.random_measures import log_atoms, log_unseen

Uniform = partial(dist.Uniform, validate_args=False)
HALVES = dist.Categorical(jnp.array([0.3, 0.7]))
BOUNDED = Uniform(0.2, 1.0)
# between 0.5 and 0.9 is a gap; of its own support NumPyro knows nothing, or that it is positive
PIECES = [Uniform(0.2, 0.5), Uniform(0.9, 1.5)]
GAP = dist.MixtureGeneral(HALVES, PIECES, validate_args=False)
GAP_OF_POSITIVE = dist.MixtureGeneral(
    HALVES, PIECES, support=dist.constraints.positive, validate_args=False
)


def log_bounded(x):
    return np.where((x >= 0.2) & (x <= 1.0), 0.0, -np.inf)


def log_gap(x):
    inside = ((x > 0.2) & (x < 0.5)) * 0.3 / 0.3 + ((x > 0.9) & (x < 1.5)) * 0.7 / 0.6
    return np.log(np.maximum(inside, 1e-300)) + np.where(inside > 0, 0.0, -np.inf)


TRANSFORMED = dist.TransformedDistribution(
    Uniform(-1.0, 0.0), dist.transforms.ExpTransform(), validate_args=False
)
FLAT = FlatLog()
# prior, where its density is positive, and where it is not
SUPPORTS = {
    "bounded": (BOUNDED, [0.2, 0.5, 1.0], [0.1, 1.1, 1e30]),
    "an array": (Uniform(jnp.array([0.2, 0.3]), 1.0), [[0.2, 0.3]], [[0.1, 0.29], [2.0, 3.0]]),
    "expanded": (BOUNDED.expand([2]), [[0.2, 0.3]], [[0.1, 0.1]]),
    "a gap": (GAP, [0.3, 1.0], [0.1, 0.7, 2.0]),
    "a gap in what is positive": (GAP_OF_POSITIVE, [0.3, 1.0], [0.1, 0.7, 2.0]),
    "transformed": (TRANSFORMED, [0.4, 0.9], [0.3, 1.1]),
    "truncated": (dist.TruncatedNormal(0.5, low=0.2, high=1.0), [0.3, 0.9], [0.1, 1.1]),
    "masked": (dist.Gamma(2.0, 1.0).mask(True), [0.3, 9.0], []),
    "Gamma": (dist.Gamma(2.0, 1.0, validate_args=False), [1e-3, 9.0], []),
    "flat": (FLAT, [1e-3, 9.0], []),
    "improper": (dist.ImproperUniform(dist.constraints.interval(2.0, 5.0), (), ()), [3.0], [1.0]),
}


@pytest.mark.parametrize("name", SUPPORTS)
def test_densities_outside_the_support(name):
    prior, inside, outside = SUPPORTS[name]
    shape = (-1, *prior.batch_shape)
    anywhere = [-1.0, np.inf, np.nan]
    outside = [*outside, *(np.full(prior.batch_shape, x) for x in anywhere)]
    inside = np.reshape(np.array(inside, np.float32), shape)
    outside = np.reshape(np.array(outside, np.float32), shape)
    if name in ("bounded", "a gap"):  # op by op, where NumPyro sees the values
        with no_warnings():
            assert np.all(log_prior(prior, outside) == -np.inf)
    every = np.concatenate([inside, outside])

    @jax.jit
    def compiled(every):
        inside, outside = jnp.split(every, [number])
        ratio = log_prior_ratio(prior, every[:, None], every)
        return log_prior(prior, every), ratio, keep_possible(prior, outside, inside[:1])

    number = len(inside)
    log_prob, ratio, kept = map(np.asarray, compiled(every))
    assert np.isfinite(log_prob[:number]).all() and np.all(log_prob[number:] == -np.inf)
    if "gap" not in name:
        expected = jax.jit(prior.log_prob)(inside)
        np.testing.assert_allclose(log_prob[:number], expected, rtol=1e-6)
    # ratios, of all pairs, are never NaN either
    assert not np.isnan(ratio).any() and np.all(ratio[number:] == -np.inf)
    np.testing.assert_array_equal(kept, np.broadcast_to(inside[:1], outside.shape))


def test_starts_are_in_the_support():
    keys = random.split(random.key(0), 100)
    small = Uniform(1e-9, 1e-8)
    starts = np.asarray(jax.jit(jax.vmap(lambda key: draw_start(key, small)))(keys))
    assert np.all((starts >= 1e-9) & (starts <= 1e-8))
    improper = jax.jit(lambda: (draw_start(None, SUPPORTS["improper"][0]), draw_start(None, FLAT)))
    assert 2.0 < improper()[0] < 5.0 and improper()[1] == 1.0
    check_start_scale("alpha", 0.3, GAP, ())
    for value, chains in ((0.7, ()), (np.array([0.3, 0.7]), (2,))):
        with pytest.raises(ValueError, match="outside the support"):
            check_start_scale("alpha", value, GAP, chains)


# -- conditionals of scales -----------------------------------------------------------------------

SIZES = jnp.array([4, 2, 1, 0, 0])
LINKS = jnp.array([0, 0, 1, 3, 1])
DISTANCES = np.abs(np.arange(5.0)[:, None] - np.arange(5.0) ** 1.2)
DECAYS = np.exp(-DISTANCES) * (1 - np.eye(5))
SYMBOLS, LOG_BASE = jnp.array([0, 1, 0, 0, 1]), jnp.log(jnp.array([0.3, 0.7, 0.3, 0.3, 0.7]))
MEASURES = Measures(
    jnp.array([0.9, 0.4]),
    jnp.array(0.7),
    jnp.array([[0.5, 0.2], [1.1, 0.0], [0.3, 0.3]]),
    jnp.array([0.6, 0.4, 0.2]),
)
OCCUPIED, TAU = jnp.array([True, True, False]), 0.8


def reach_of(scale):
    return as_link_weights(None, exponential_decay(1.0).log(DISTANCES, scale))


def log_process(a):
    return 3 * np.log(a) + gammaln(a) - gammaln(a + 7)


def log_finite(a):
    blocks = sum(gammaln(a / 5 + n) - gammaln(a / 5) for n in (4, 2, 1))
    return blocks + gammaln(a) - gammaln(a + 7)


def log_discount(a):
    return np.log(a + 0.3) + np.log(a + 0.6) + gammaln(a + 1) - gammaln(a + 7)


def log_links(a):
    return 2 * np.log(a) - np.log(a[:, None] + DECAYS.sum(1)).sum(1)


def log_scale(a):
    decays = np.exp(-DISTANCES / a[:, None, None]) * (1 - np.eye(5))
    chosen = sum(DISTANCES[i, j] for i, j in ((1, 0), (2, 1), (4, 1)))
    return -chosen / a - np.log(0.6 + decays.sum(2)).sum(1)


def log_symbols(a):
    same = np.equal.outer(np.asarray(SYMBOLS), np.asarray(SYMBOLS))
    opened = a[:, None] * np.exp(np.asarray(LOG_BASE, float))
    copied = np.log(opened + (DECAYS * same).sum(1))
    return (copied - np.log(a[:, None] + DECAYS.sum(1))).sum(1)


def log_dependence(phi):
    def one(phi):
        each = log_atoms(MEASURES.atoms, MEASURES.root, phi, TAU).sum(1)
        each += log_unseen(MEASURES.unseen, MEASURES.root_unseen, 1.3, phi, TAU)
        return jnp.sum(jnp.where(OCCUPIED, each, 0.0))

    return np.asarray(jax.lax.map(one, jnp.asarray(phi, jnp.float32)), float)


def log_common_scale(phi):
    """Along the measures times 0.6/φ; as many logarithms move as there are atoms and scales."""

    def one(phi):
        root, root_unseen, atoms, unseen = jax.tree.map(lambda x: x * 0.6 / phi, MEASURES)
        each = log_atoms(atoms, root, phi, TAU).sum(1) + jnp.sum(atoms > 0, 1) * jnp.log(1 / phi)
        each += log_unseen(unseen, root_unseen, 1.3, phi, TAU) + jnp.log(1 / phi)
        log_root = 1.3 * jnp.log(root_unseen) - TAU * (root.sum() + root_unseen)
        return log_root + jnp.sum(jnp.where(OCCUPIED, each, 0.0))

    return np.asarray(jax.lax.map(one, jnp.asarray(phi, jnp.float32)), float)


def along_measures(key, phi, prior):
    now = jax.tree.map(lambda x: x * 0.6 / phi, MEASURES)
    scales = Scales(jnp.array(1.3), phi, jnp.array(1.0))
    return update_common_scale(key, now, scales, prior, OCCUPIED, TAU)[1].phi


# one update of a scale, and the log likelihood of it, to which log prior is added
UPDATES = {
    "alpha": (
        lambda key, x, prior: alpha.update_alpha(key, PartitionPrior(x, None), prior, SIZES),
        log_process,
    ),
    "alpha, finite": (
        lambda key, x, prior: alpha.update_alpha(key, PartitionPrior(x, 5), prior, SIZES),
        log_finite,
    ),
    "alpha, discount": (
        lambda key, x, prior: alpha.update_alpha(
            key, PartitionPrior(x, discount=jnp.array(0.3)), prior, SIZES
        ),
        log_discount,
    ),
    "alpha, links": (
        lambda key, x, prior: scales.update_link_alpha(
            key, reach.LinkPrior(x, None, reach_of(1.0)), prior, LINKS
        ),
        log_links,
    ),
    "decay scale": (
        lambda key, x, prior: (
            scales.update_decay_scale(
                key,
                partial(reach.log_links, LINKS),
                reach.LinkPrior(jnp.array(0.6), x, reach_of(x)),
                prior,
                reach_of,
            ).scale
        ),
        log_scale,
    ),
    "alpha, symbols": (
        lambda key, x, prior: language.update_alpha_without_links(
            key, reach.LinkPrior(x, None, reach_of(1.0)), prior, SYMBOLS, LOG_BASE
        ),
        log_symbols,
    ),
    "alpha, gamma process": (
        lambda key, x, prior: update_concentration(key, x, prior, 3, jnp.array(2.0)),
        lambda x: 3 * np.log(x) - 2 * x,
    ),
    "phi": (
        lambda key, x, prior: update_phi(
            key, MEASURES, Scales(jnp.array(1.3), x, jnp.array(1.0)), prior, OCCUPIED, TAU
        ),
        log_dependence,
    ),
    "phi, common scale": (along_measures, log_common_scale),
}


@each_of(UPDATES, quick=("alpha", "decay scale"))
def test_scales_have_their_conditional(name):
    """By quadrature: chains that start at draws of the conditional end at such."""
    update, log_likelihood = UPDATES[name]
    grid = np.linspace(0.19, 1.52, 6001)
    log_joint = log_likelihood(grid) + log_gap(grid)
    mass = np.cumsum(np.exp(log_joint - log_joint.max()))
    mass /= mass[-1]
    starts = np.interp(np.random.default_rng(0).uniform(size=4000), mass, grid)
    starts = starts[np.isfinite(log_gap(starts))]

    @jax.jit
    @jax.vmap
    def chain(start, keys):
        return jax.lax.scan(lambda x, key: (update(key, x, GAP), None), start, keys)[0]

    keys = random.split(random.key(0), (len(starts), 20))
    found = np.asarray(chain(starts.astype(np.float32), keys), float)
    assert np.all(np.isfinite(log_gap(found)))
    assert np.mean(np.abs(found - starts) > 1e-3) > 0.9
    result = stats.kstest(found, lambda x: np.interp(x, grid, mass))
    assert result.pvalue > 1e-6, result


# -- posteriors of Mallows mixtures ---------------------------------------------------------------

LISTS = [[0, 1, 2], [0], [3, 1], [3, 2, 0, 1], [0, 1, 2]]
KERNELS = {
    "bounded": (
        lambda: SliceGibbs(GAP, concentration_prior=BOUNDED, max_clusters=6),
        log_bounded,
        (log_gap, None, False),
    ),
    "a gap, tied": (
        lambda: SliceGibbs(
            BOUNDED,
            concentration_prior=GAP_OF_POSITIVE,
            tied=True,
            assignment="parallel",
            max_clusters=40,
        ),
        log_gap,
        (log_bounded, None, True),
    ),
    "a gap, finite": (
        lambda: SliceGibbs(1.5, concentration_prior=GAP, num_components=3, num_marginal_steps=0),
        log_gap,
        (1.5, 3, False),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_posterior_by_enumeration(name):
    kernel, log_density, (of_alpha, num_components, tied) = KERNELS[name]
    with numpyro.validation_enabled(False):
        mcmc = MCMC(
            kernel(),
            num_warmup=50,
            num_samples=100,
            num_chains=100,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(random.key(1), Rankings.from_orderings(LISTS, num_items=4))
    samples = mcmc.get_samples(group_by_chain=True)
    assert not np.any(mcmc.get_extra_fields()["overflow"])
    assert np.isfinite(samples["log_joint"]).all()
    twin = MallowsPosterior(LISTS, 4, lambda x, left: log_density(x), tied)
    found = discrepancies(twin.indicators(samples), twin.expectations(of_alpha, num_components))
    # 80 quantities with 99 degrees of freedom: P(any |t| > 6) is about 3e-6
    assert max(found.values()) < 6.0, found


def test_a_density_that_is_no_number_is_refused():
    """It would count as 0, and cut the prior off where it is."""

    class Broken(dist.Exponential):
        def log_prob(self, value, intermediates=None):
            return jnp.where(value > 0.5, jnp.nan, super().log_prob(value))

    for make in (
        lambda prior: PlackettLuceGibbs(num_components=2, alpha=prior),
        lambda prior: SliceGibbs(concentration_prior=prior),
    ):
        with pytest.raises(ValueError, match="a log density of NaN"):
            make(Broken(1.0))
        make(dist.Uniform(0.2, 1.0, validate_args=False))
