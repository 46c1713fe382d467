"""Mallows kernels against answers known otherwise."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.kernel_tests import run_chains
from numpyro.diagnostics import effective_sample_size
from scipy import integrate, stats
from scipy.special import betaln

from numpyro_rankings import Rankings, load_dataset
from numpyro_rankings.infer import BetaGibbs, SliceGibbs
from numpyro_rankings.infer.mallows.concentrations import Conjugate

DRAWS_OF_ONE = 20_000


@pytest.mark.slow
def test_real_ballots_by_quadrature():
    """APA 1980, one population, θ_j ~ Exponential(0.1): known by enumeration and quadrature."""
    kernel = SliceGibbs(num_components=1, concentration_prior=dist.Exponential(0.1), init="random")
    sizes = {"num_warmup": 1000, "num_samples": 2000, "num_chains": 4}
    mcmc = run_chains(kernel, load_dataset("apa1980"), seed=0, **sizes)
    samples = mcmc.get_samples(group_by_chain=True)
    theta = np.asarray(samples["concentration"], np.float64)[:, :, 0]
    first = np.all(np.asarray(samples["center"])[:, :, 0] == [0, 1, 4, 3, 2], axis=-1)
    second = np.all(np.asarray(samples["center"])[:, :, 0] == [0, 4, 1, 3, 2], axis=-1)
    assert np.all(first | second)
    for draws, known, digits in zip(
        (*np.moveaxis(theta, -1, 0), first.astype(float)),
        (0.00034, 0.1261, 0.2328, 0.1673, 0.671),
        (5, 4, 4, 4, 3),
        strict=True,
    ):
        ess = effective_sample_size(draws)
        assert ess > 100
        error = draws.std() / np.sqrt(ess)
        assert abs(draws.mean() - known) < 5 * error + 0.5 * 10.0**-digits, known


def test_concentrations_have_their_conditional():
    """Under the conjugate prior, by quadrature; the third cluster is empty."""
    nu, r, limits, size = 1.5, np.array([0.8, 0.5, 0.3]), np.array([3, 2, 1]), 4000
    sums = np.array([[4.0, 9.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    counts = np.array([[5.0, 5.0, 4.0], [3.0, 2.0, 2.0], [0.0, 0.0, 0.0]])

    @jax.jit
    def draw(key, sums, counts, nu, r):
        copies = jnp.repeat(sums, size, axis=0), jnp.repeat(counts, size, axis=0)
        return Conjugate(nu, r).update(key, jnp.ones((3 * size, 3)), *copies, jnp.asarray(limits))

    inputs = (np.asarray(x, np.float32) for x in (sums, counts, np.full(3, nu), r))
    draws = np.asarray(draw(jax.random.key(0), *inputs), float).reshape(3, size, 3)
    theta = np.linspace(0.0, 60.0, 20_001)  # the longest tail is e^(-0.45 θ)
    for c, j in itertools.product(range(3), range(3)):
        log_psi = np.log(np.exp(-np.outer(theta, np.arange(limits[j] + 1))).sum(1))
        density = np.exp(-(nu * r[j] + sums[c, j]) * theta - (nu + counts[c, j]) * log_psi)
        mass = integrate.cumulative_simpson(density, x=theta, initial=0.0)
        levels = np.interp(draws[c, :, j], theta, mass / mass[-1])
        # of nine p-values one is below 1e-6 with probability 1e-5
        assert stats.kstest(levels, "uniform").pvalue > 1e-6, (c, j)


def log_beta_weight(sums, codes, nu, nu_r):
    """Figure 5's log weight of joining a cluster that one full ranking has, code sums ``sums``."""
    sums, codes = np.asarray(sums), np.asarray(codes)
    return np.sum(betaln(nu_r + sums + codes, nu + 3.0) - betaln(nu_r + sums, nu + 2.0))


def stage_codes(ordering, center):
    left, codes = list(center), []
    for item in ordering[:-1]:
        codes.append(left.index(item))
        left.remove(item)
    return codes


def probability_of_one_cluster(first, second, center, nu, r, alpha):
    """Of two full rankings together at first, after Figure 5 has visited one, then the other."""
    n, nu_r = len(first), nu * np.asarray(r)

    def joins(one, other, center):
        log_weight = log_beta_weight(stage_codes(other, center), stage_codes(one, center), nu, nu_r)
        return np.exp(log_weight) / (np.exp(log_weight) + alpha / math.factorial(n))

    # Sample-σ-N1 (Figure 4): the codes of a new center are independent
    by_code = [np.exp(betaln(nu_r[j] + np.arange(n - j), nu + 2.0)) for j in range(n - 1)]
    joins_new = 0.0
    for new in itertools.permutations(range(n)):
        codes = stage_codes(first, new)
        p = np.prod([w[c] / w.sum() for w, c in zip(by_code, codes, strict=True)])
        joins_new += p * joins(second, first, new)
    stays = joins(first, second, center)
    return stays * joins(second, first, center) + (1 - stays) * joins_new


@pytest.mark.slow
def test_beta_gibbs_as_printed():
    """One sweep of Figures 4 and 5 on two rankings; the exact kernel differs."""
    first, second, center, nu, r, alpha = [0, 1, 2], [2, 0, 1], [0, 2, 1], 1.5, [0.5, 1.0], 8.0
    rankings = Rankings.from_orderings([first, second], num_items=3)
    start = {"assignments": jnp.zeros((DRAWS_OF_ONE, 2), jnp.int32)}
    start["center"] = jnp.tile(jnp.array(center), (DRAWS_OF_ONE, 3, 1))
    start["concentration"] = jnp.ones((DRAWS_OF_ONE, 3, 2))
    keys = jax.random.split(jax.random.key(0), DRAWS_OF_ONE)
    shares = []
    for exact in (False, True):
        kernel = BetaGibbs(
            alpha, nu, r, max_clusters=3, exact=exact, init="given", num_marginal_steps=0
        )
        state = kernel.init(keys, 0, start, (rankings,), {})
        state = jax.jit(lambda state, kernel=kernel: kernel.sample(state, (rankings,), {}))(state)
        shares.append(float(np.mean(np.asarray(state.z["num_clusters"]) == 1)))
    known = probability_of_one_cluster(first, second, center, nu, r, alpha)
    tolerance = 5 * np.sqrt(known * (1 - known) / DRAWS_OF_ONE)
    assert abs(shares[0] - known) < tolerance, (shares, known)
    assert abs(shares[1] - known) > 2 * tolerance, (shares, known)


def test_parameters_follow_their_labels():
    """Labels are put in order of first use, and centers and θ of the clusters after them."""
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]], num_items=3)
    given = {
        "assignments": np.array([2, 0, 2, 1], np.int32),
        "center": np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]], np.int32),
        "concentration": np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], np.float32),
    }
    kernel = SliceGibbs(max_clusters=3, init="given")
    z = kernel.init(jax.random.key(0), 0, given, (rankings,), {}).z
    np.testing.assert_array_equal(z["assignments"], [0, 1, 0, 2])
    for name in ("center", "concentration"):
        np.testing.assert_array_equal(z[name], given[name][[2, 0, 1]])
