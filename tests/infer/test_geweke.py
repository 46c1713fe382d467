"""Getting it right (Geweke 2004): α and the decay keep their prior while data are drawn anew.

Chains start at draws from the prior. Each round draws data given the state and moves the state by
a sweep given the data, which leaves their joint distribution as it is; so at the end α, the scale
of the decay and the number of clusters still have their prior.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import random
from scipy import stats

from numpyro_rankings.components import GaussianMean
from numpyro_rankings.distributions import (
    ChineseRestaurantProcess,
    DistanceDependentCRP,
    links_to_partition,
)
from numpyro_rankings.infer import (
    CollapsedGibbs,
    DDCRPGibbs,
    exponential_decay,
    logistic_decay,
    window_decay,
)

pytestmark = pytest.mark.slow

SIZE, CHAINS, ROUNDS = 6, 4000, 15
FAMILY = GaussianMean(prior_scale=1.5, noise_scale=0.7)
TIMES = np.array([0.0, 0.4, 1.3, 2.1, 2.5, 4.0])
GENERAL = np.abs(TIMES[:, None] - TIMES).astype(np.float32)
SEQUENTIAL = np.where(np.tri(SIZE, k=-1, dtype=bool), GENERAL, np.inf).astype(np.float32)
GAMMA, LOG_NORMAL = dist.Gamma(2.0, 2.0), dist.LogNormal(0.0, 0.5)
KERNELS = {
    "restaurant": (CollapsedGibbs(FAMILY, GAMMA, max_clusters=SIZE), None),
    "restaurant-discount": (
        CollapsedGibbs(FAMILY, LOG_NORMAL, discount=0.3, max_clusters=SIZE),
        None,
    ),
    "exponential": (DDCRPGibbs(FAMILY, GAMMA, exponential_decay(LOG_NORMAL)), GENERAL),
    "logistic": (DDCRPGibbs(FAMILY, LOG_NORMAL, logistic_decay(GAMMA)), GENERAL),
    "window": (DDCRPGibbs(FAMILY, GAMMA, window_decay(dist.Gamma(3.0, 2.0))), SEQUENTIAL),
}


def from_prior(kernel, distances, key):
    key_alpha, key_scale, key_partition = random.split(key, 3)
    alpha = kernel._alpha.sample(key_alpha)
    if distances is None:
        prior = ChineseRestaurantProcess(alpha, SIZE, kernel._discount)
        return {"alpha": alpha, "assignments": prior.sample(key_partition)}
    scale = kernel._decay.scale.sample(key_scale)
    prior = DistanceDependentCRP(alpha, kernel._decay(distances, scale))
    return {"alpha": alpha, "decay_scale": scale, "links": prior.sample(key_partition)}


def draw_data(key, labels):
    key_means, key_noise = random.split(key)
    means = FAMILY.prior_scale * random.normal(key_means, (SIZE, 1))
    return means[labels] + FAMILY.noise_scale * random.normal(key_noise, (SIZE, 1))


def quantities(z):
    labels = z["assignments"] if "assignments" in z else links_to_partition(z["links"])
    return {name: z[name] for name in ("alpha", "decay_scale") if name in z} | {
        "num_clusters": labels.max() + 1
    }


@pytest.mark.parametrize("name", KERNELS)
def test_priors_are_kept(name):
    kernel, distances = KERNELS[name]
    given = () if distances is None else (distances,)

    @jax.jit
    @jax.vmap
    def chain(key):
        key_prior, key_start, *keys = random.split(key, 2 + ROUNDS)
        start = from_prior(kernel, distances, key_prior)
        labels = start.get("assignments")
        labels = links_to_partition(start["links"]) if labels is None else labels
        state = kernel.init(key_start, 0, start, (draw_data(key_start, labels), *given), {})

        def one_round(state, key):
            data = draw_data(key, state.z["assignments"].astype(int))
            return kernel.sample(state, (data, *given), {}), None

        state, _ = jax.lax.scan(one_round, state, jnp.stack(keys))
        return quantities(start), quantities(state.z)

    before, after = chain(random.split(random.key(0), CHAINS))
    priors = {"alpha": kernel._alpha}
    if distances is not None:
        priors["decay_scale"] = kernel._decay.scale
    fresh = jax.vmap(lambda key: quantities(from_prior(kernel, distances, key)))
    others = fresh(random.split(random.key(1), CHAINS))
    for quantity, values in after.items():
        moved = np.mean(np.asarray(values) != np.asarray(before[quantity]))
        assert moved > 0.3, (quantity, moved)
        if quantity in priors:
            exact = np.asarray(priors[quantity].sample(random.key(2), (20 * CHAINS,)))
            result = stats.ks_2samp(np.asarray(values), exact)
        else:
            counts = [np.bincount(x, minlength=SIZE + 1)[1:] for x in (values, others[quantity])]
            kept = sum(counts) > 10
            result = stats.chi2_contingency(np.stack(counts)[:, kept])
        assert result.pvalue > 1e-5, (quantity, result.pvalue)
