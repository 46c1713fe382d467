"""Getting it right (Geweke 2004): α and the decay keep their prior while data are drawn anew.

Chains start at draws from the prior. Each round draws data given the state and moves the state by
a sweep given the data, which leaves their joint distribution as it is; so at the end α, the scale
of the decay and the number of clusters still have their prior.

Mixtures of judges who leave preferences open keep their parameters and orderings from one round to
the next. Each round asks other questions, and the sweeps draw all else given the answers.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.kernel_tests import simulate
from jax import random
from scipy import stats

from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.components import GaussianMean
from numpyro_rankings.distributions import (
    ChineseRestaurantProcess,
    DistanceDependentCRP,
    links_to_partition,
)
from numpyro_rankings.infer import (
    BetaGibbs,
    CollapsedGibbs,
    DDCRPGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
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


# -- mixtures of judges who leave preferences open -------------------------------------------------

NUM_ITEMS, SWEEPS = 4, 2
# The items offered, their buckets from best to worst by place, how many of these places are listed,
# and the pairs asked about: all, or some.
QUESTIONS = [
    ([0, 1, 2, 3], [0, 1, 2, 3], 4, None),  # all
    ([0, 1, 2, 3], [0, 0, 0, 0], 4, None),  # nothing
    ([0, 1, 2, 3], [0, 0, 1, 2], 4, None),  # ties
    ([0, 1, 2, 3], [0, 1, 1, 1], 1, None),  # the top
    ([0, 1, 2, 3], [0, 0, 1, 1], 2, None),  # the top, tied
    ([0, 1, 2, 3], [0, 0, 0, 1], 4, None),  # the bottom
    ([0, 1, 3], [0, 1, 2], 3, None),  # some items offered
    ([0, 2, 3], [0, 0, 1], 3, None),  # the same, with ties
    ([1, 2, 3], [0, 1, 1], 1, None),  # the top of some items
    ([1, 3], [0, 1], 2, [(1, 3)]),  # a pair
    ([0, 1, 2, 3], [0, 1, 2, 3], 4, [(0, 2), (1, 2), (1, 3)]),  # pairs, of which no buckets follow
]
IS_OFFERED = np.array([np.isin(range(NUM_ITEMS), x[0]) for x in QUESTIONS])
BUCKETS = np.array([[*x[1], *[9] * (NUM_ITEMS - len(x[1]))] for x in QUESTIONS])
NUM_LISTED = np.array([x[2] for x in QUESTIONS])
IS_ASKED = np.ones((len(QUESTIONS), NUM_ITEMS, NUM_ITEMS), bool)
for question, (*_, pairs) in zip(IS_ASKED, QUESTIONS, strict=True):
    if pairs is not None:
        question[:] = [
            [(a, b) in pairs or (b, a) in pairs for b in range(NUM_ITEMS)] for a in range(NUM_ITEMS)
        ]
OF_TWO = dist.Gamma(8.0, 2.0)  # so that both have judges
TWO = {"num_components": 2, "num_marginal_steps": 0}
MIXTURES = {
    "slice": SliceGibbs(OF_TWO, 2.0, 0.4, **TWO),
    "beta": BetaGibbs(GAMMA, 2.0, 0.4, max_clusters=SIZE, num_marginal_steps=0),
    "plackett-luce": PlackettLuceGibbs([0.3, 0.5, 0.7, 1.0], alpha=OF_TWO, **TWO),
}


def ask(key, orderings, is_mallows):
    """What judges with these orderings say, each asked a question by lot.

    :return: the partial orders, and the orderings of the items that they list.
    """
    question = random.randint(key, (SIZE,), 0, len(QUESTIONS))
    place = jnp.argsort(orderings, axis=1)
    offered = jnp.asarray(IS_OFFERED)[question]
    among = jnp.sum(offered[:, None] & (place[:, None] < place[:, :, None]), axis=2)
    bucket = jnp.take_along_axis(jnp.asarray(BUCKETS)[question], among, axis=1)
    above = jnp.asarray(IS_ASKED)[question] & (bucket[:, :, None] < bucket[:, None, :])
    above &= offered[:, :, None] & offered[:, None, :]
    for _ in range(2):  # A path has three steps at most.
        above |= (above[:, :, :, None] & above[:, None]).any(2)
    listed = offered & (among < jnp.asarray(NUM_LISTED)[question, None])
    listed |= is_mallows  # whose orderings are of all items
    # The order in which items are listed, and moved, depends on what was said alone.
    order = jnp.argsort(jnp.where(listed, above.sum(1), NUM_ITEMS), axis=1, stable=True)
    above &= listed[:, :, None] & listed[:, None, :]
    above = jnp.take_along_axis(above, order[:, :, None], axis=1)
    above = jnp.take_along_axis(above, order[:, None, :], axis=2)
    lengths, ones = listed.sum(1, dtype=jnp.int32), jnp.ones(SIZE, jnp.int32)
    is_there = jnp.arange(NUM_ITEMS) < lengths[:, None]
    static = "below", NUM_ITEMS, tuple("abcd"), SIZE
    leaves = padded(order, is_there), above, lengths, ones, None if is_mallows else offered
    own = jnp.argsort(jnp.where(listed, place, NUM_ITEMS), axis=1)
    return PartialOrders.tree_unflatten(static, leaves), padded(own, is_there)


def padded(items, is_there):
    return jnp.where(is_there, items, -1).astype(jnp.int32)


def of_all(key, orders, orderings, weights):
    """Orderings of all items, those not listed drawn given the others: exponential times."""
    gaps, times = random.exponential(key, (2, SIZE, NUM_ITEMS))
    rows, is_there = jnp.arange(SIZE)[:, None], orderings >= 0
    items = jnp.where(is_there, orderings, 0)
    offered = jnp.where(orders.offered(), weights, 0.0)
    chosen = jnp.where(is_there, weights[rows, items], 0.0)
    left = offered.sum(1, keepdims=True) - jnp.cumsum(chosen, axis=1) + chosen
    listed = jnp.cumsum(jnp.where(is_there, gaps / left, 0.0), axis=1)
    times = times / weights + jnp.where(orders.rest(), listed[:, -1:], 0.0)
    columns = jnp.where(is_there, orderings, NUM_ITEMS)
    times = jnp.pad(times, ((0, 0), (0, 1))).at[rows, columns].set(listed)[:, :-1]
    return jnp.argsort(times, axis=1).astype(jnp.int32)


def quantities_of_judges(z, orderings):
    """Free of labels: of the cluster of judge 0, and how orderings go with those of clusters."""
    labels, judges = z["assignments"].astype(int), jnp.arange(SIZE)
    found = {"alpha": z["alpha"], "num_clusters": labels.max() + 1}
    if "weights" in z:
        worths = z["weights"][labels]
        found["weight"] = worths[0, 0]
    else:
        worths = jnp.argsort(z["center"], axis=1)[labels]
        theta = z["concentration"][labels[0]]
        code = worths[0, orderings[0, 0]]
        found |= {"theta": theta[0], "theta of the last": theta[-1], "both": theta[0] * (1 + code)}
    is_pair = judges[:, None] < judges
    alike = labels[:, None] == labels
    found["pairs of judges in a cluster"] = jnp.sum(is_pair & alike)
    for name, k in (("first", 0), ("second", 1), ("last", -1)):
        found[name] = worths[judges, orderings[:, k]].sum()
        agree = is_pair & (orderings[:, None, k] == orderings[:, k])
        found[f"pairs in a cluster with the same {name}"] = jnp.sum(agree & alike)
        found[f"other pairs with the same {name}"] = jnp.sum(agree & ~alike)
    return found


@pytest.mark.parametrize("name", MIXTURES)
def test_prior_is_kept_with_preferences_left_open(name):
    """Orderings are drawn by the kernel alone; means over all rounds are those of the prior."""
    kernel, is_mallows = MIXTURES[name], name != "plackett-luce"
    lists = np.tile(np.arange(NUM_ITEMS - is_mallows), (SIZE, 1))
    template = Rankings.from_orderings(lists, num_items=NUM_ITEMS)

    def from_prior(key):
        start, said = simulate(kernel, template, key)
        last = NUM_ITEMS * (NUM_ITEMS - 1) // 2 - said.orderings.sum(1, keepdims=True)
        first = jnp.concatenate([said.orderings, last], axis=1)[:, :NUM_ITEMS]
        return start, first, quantities_of_judges(start, first)

    @jax.jit
    @jax.vmap
    def chain(key):
        key_prior, key_start, key_ask, *keys = random.split(key, 3 + ROUNDS)
        start, first, _ = from_prior(key_prior)
        orders, _ = ask(key_ask, first, is_mallows)
        state = kernel.init(key_start, 0, start, (orders,), {})

        def one_round(carry, key):
            state, orderings = carry
            key_ask, key_rest = random.split(key)
            orders, own = ask(key_ask, orderings, is_mallows)
            state = jax.lax.fori_loop(
                0,
                SWEEPS,
                lambda _, state: kernel.sample(state, (orders,), {}),
                state._replace(orderings=own),
            )
            orderings, is_right = state.orderings, orders.agree(state.orderings).all()
            if not is_mallows:
                worths = state.z["weights"][state.z["assignments"].astype(int)]
                orderings = of_all(key_rest, orders, orderings, worths)
            found = quantities_of_judges(state.z, orderings)
            return (state, orderings), (found, is_right & ~state.overflow)

        (_, orderings), (found, is_right) = jax.lax.scan(one_round, (state, first), jnp.stack(keys))
        means = {quantity: x.astype(float).mean() for quantity, x in found.items()}
        return means, is_right.all(), jnp.mean(orderings != first)

    means, is_right, moved = chain(random.split(random.key(0), CHAINS))
    assert np.all(is_right) and np.mean(moved) > 0.3
    prior = jax.jit(jax.vmap(lambda key: from_prior(key)[2]))
    exact = prior(random.split(random.key(1), 25 * CHAINS))
    z = {}
    for quantity, values in means.items():
        a, b = np.asarray(values, float), np.asarray(exact[quantity], float)
        z[quantity] = (a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert max(map(abs, z.values())) < 5.5, z
