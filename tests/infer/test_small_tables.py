"""Posteriors by enumeration in settings of their own: two items, few slots, a prior by stage."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.enumeration import MallowsPosterior, discrepancies, log_partition, partitions
from jax import random
from numpyro.infer import MCMC
from scipy import stats
from scipy.special import betaln

from numpyro_rankings import Rankings
from numpyro_rankings.infer import BetaGibbs, PlackettLuceGibbs, SliceGibbs

pytestmark = pytest.mark.slow

LOG_NORMAL, GAMMA = dist.LogNormal(0.0, 0.5), dist.Gamma(2.0, 1.0)
PAIRS = [[0, 1], [1, 0], [0, 1], [0]]  # of two items the last list says the same as the first
LISTS = [[0, 1, 2], [0], [3, 1], [3, 2, 0, 1]]
NU, R = np.array([0.5, 1.0, 2.0]), np.array([1.2, 0.8, 0.4])


def log_normal(alpha):
    return stats.lognorm(0.5).logpdf(alpha)


def by_stage(theta, left):
    log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
    return -NU[3 - left] * (R[3 - left] * theta + log_psi)


def one_stage(theta, left):
    return -0.8 * (0.7 * theta + np.log1p(np.exp(-theta)))


def gamma_prior(theta, left):
    return stats.gamma(2.0).logpdf(theta)


# kernel, lists, items, log prior of θ, that of α, components, slots
CASES = {
    "pairs": (
        lambda: SliceGibbs(LOG_NORMAL, nu=0.8, r=0.7, max_clusters=8),
        (PAIRS, 2, one_stage, log_normal, None, None),
    ),
    "pairs, parallel": (
        lambda: SliceGibbs(
            dist.Gamma(6.0, 6.0),
            concentration_prior=GAMMA,
            assignment="parallel",
            num_births=2,
            max_clusters=80,
            num_marginal_steps=0,
        ),
        (PAIRS, 2, gamma_prior, (6.0, 6.0), None, None),
    ),
    "pairs, beta": (
        lambda: BetaGibbs(1.4, nu=0.8, r=0.7, num_components=3),
        (PAIRS, 2, one_stage, 1.4, 3, None),
    ),
    "beta, two slots": (
        lambda: BetaGibbs(LOG_NORMAL, nu=NU, r=R, max_clusters=2),
        (LISTS, 4, by_stage, log_normal, None, 2),
    ),
}


def run(kernel, rankings, draws=100):
    mcmc = MCMC(
        kernel,
        num_warmup=50,
        num_samples=draws,
        num_chains=200,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(2), rankings)
    return mcmc


@pytest.mark.parametrize("name", CASES)
def test_mallows_by_enumeration(name):
    kernel, (lists, num_items, log_prior, alpha, num_components, slots) = CASES[name]
    rankings = Rankings.from_orderings(lists, num_items=num_items)
    mcmc = run(kernel(), rankings, 60 if name == "beta, two slots" else 100)
    assert np.any(mcmc.get_extra_fields()["overflow"]) == (slots is not None)
    twin = MallowsPosterior(lists, num_items, log_prior)
    found = discrepancies(
        twin.indicators(mcmc.get_samples(group_by_chain=True)),
        twin.expectations(alpha, num_components, slots),
    )
    # fewer than 50 quantities with 199 degrees of freedom: P(any |t| > 5.5) is about 5e-6
    assert max(found.values()) < 5.5, found


@pytest.mark.parametrize("written_out", [False, True])
def test_weights_of_two_items_by_enumeration(written_out):
    """Blocks of lists have Beta functions for marginal likelihoods; rows with counts or without."""
    shape, alpha, firsts = np.array([0.6, 1.3]), 1.2, np.array([0, 0, 1, 0])
    counts = [1, 1, 1, 1] if written_out else [2, 1, 1]
    lists = [[0, 1]] * (2 if written_out else 1) + [[1, 0], [0]]
    data = Rankings.from_orderings(lists, num_items=2, counts=counts)
    assert len(data.counts) == len(counts)
    table, logs, means = list(partitions(4)), [], []
    for labels in table:
        chosen = [np.bincount(firsts[np.equal(labels, c)], minlength=2) for c in range(4)]
        sizes = [int(n.sum()) for n in chosen if n.sum()]
        log_p = log_partition(sizes, np.array([alpha]), 3)[0]
        logs.append(log_p + sum(betaln(*(shape + n)) - betaln(*shape) for n in chosen))
        means.append((shape + chosen[0])[0] / (shape + chosen[0]).sum())
    probs = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    kernel = PlackettLuceGibbs(jnp.asarray(shape), num_components=3, alpha=alpha)
    samples = run(kernel, data).get_samples(group_by_chain=True)
    powers = 4 ** np.arange(4)
    code = np.asarray(samples["assignments"], int) @ powers
    found = {
        "partition": code[..., None] == np.array(table) @ powers,
        "weight": np.asarray(samples["weights"])[:, :, 0, :1],
    }
    gaps = discrepancies(found, {"partition": probs, "weight": np.array([probs @ means])})
    assert max(gaps.values()) < 5.5, gaps
