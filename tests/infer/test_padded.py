"""Mixtures whose number of components is an argument of the run, against sums over partitions."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.enumeration import MallowsPosterior, discrepancies, log_partition, partitions
from helpers.ranking_kernels import assert_same_draws
from jax import random
from scipy.special import betaln

from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    TemperedMixture,
)
from numpyro_rankings.models import plackett_luce

ALPHA, WIDTH, CHAINS, DRAWS = 1.4, 3, 200, 100
LISTS = [[0, 1, 2], [0], [3, 1], [3, 2, 0, 1]]
NU, R = np.array([0.5, 1.0, 2.0]), np.array([1.2, 0.8, 0.4])
SHAPE, FIRSTS = np.array([0.6, 1.3]), np.array([0, 0, 1, 0])
DATA = {
    "mallows": Rankings.from_orderings(LISTS, num_items=4),
    "plackett-luce": Rankings.from_orderings([[0, 1], [1, 0], [0]], num_items=2, counts=[2, 1, 1]),
}


def kernel_of(family, number):
    if family == "plackett-luce":
        return PlackettLuceGibbs(jnp.asarray(SHAPE), num_components=number, alpha=ALPHA)
    return SliceGibbs(
        ALPHA, nu=NU, r=R, num_components=number, assignment="parallel", init="nearest"
    )


def sweeps_of(kernel, data, num_draws):
    """Draws of all chains, (draws, chains, …), as a function of the further arguments."""

    def sweeps(state, given):
        def sweep(state, _):
            state = kernel.sample(state, (data,), given)
            return state, state.z

        return jax.lax.scan(sweep, state, length=num_draws)[1]

    compiled = jax.jit(sweeps)

    def draw(**given):
        state = kernel.init(random.split(random.key(2), CHAINS), 0, None, (data,), given)
        return jax.tree.map(np.asarray, compiled(state, given))

    return draw, compiled


@lru_cache
def wide(family):
    """Draws of a number of components, all by one program; the number of its programs."""
    draw, compiled = sweeps_of(kernel_of(family, 2).padded(WIDTH), DATA[family], 30 + DRAWS)

    @lru_cache
    def of_number(number):
        return draw(num_used=jnp.array(number, jnp.int32))

    return of_number, compiled._cache_size


@lru_cache
def twin():
    def log_prior(theta, left):
        log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
        return -NU[3 - left] * (R[3 - left] * theta + log_psi)

    return MallowsPosterior(LISTS, 4, log_prior)


def expected_of(family, number):
    if family == "mallows":
        return twin().expectations(ALPHA, number)
    table, logs, means = list(partitions(4)), [], []
    for labels in table:
        chosen = [np.bincount(FIRSTS[np.equal(labels, c)], minlength=2) for c in range(4)]
        sizes = [int(n.sum()) for n in chosen if n.sum()]
        log_p = log_partition(sizes, np.array([ALPHA]), number)[0]
        logs.append(log_p + sum(betaln(*(SHAPE + n)) - betaln(*SHAPE) for n in chosen))
        means.append((SHAPE + chosen[0])[0] / (SHAPE + chosen[0]).sum())
    probs = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    return {"partition": probs, "weight": np.array([probs @ means])}


def found_of(family, draws):
    samples = {name: np.swapaxes(x[30:], 0, 1) for name, x in draws.items()}
    if family == "mallows":
        return twin().indicators(samples)
    powers = 4 ** np.arange(4)
    code = samples["assignments"].astype(int) @ powers
    table = np.array(list(partitions(4))) @ powers
    return {"partition": code[..., None] == table, "weight": samples["weights"][:, :, 0, :1]}


@pytest.mark.parametrize("family", DATA)
def test_posteriors_of_several_numbers_by_one_program(family):
    draws, num_programs = wide(family)
    for number in (1, 2, WIDTH):
        found = found_of(family, draws(number))
        assert draws(number)["assignments"].max() == number - 1
        assert not draws(number)["cluster_sizes"][..., number:].any()
        gaps = discrepancies(found, expected_of(family, number))
        # fewer than 100 quantities with 199 degrees of freedom: P(any |t| > 5.5) is below 2e-5
        assert max(gaps.values()) < 5.5, (number, gaps)
        # the posterior of another number would be noticed
        others = discrepancies(found, expected_of(family, 4))
        assert others["partition"] > 8, (number, others)
    assert num_programs() == 1


@pytest.mark.slow
@pytest.mark.parametrize("family", DATA)
def test_all_components_in_use_have_the_draws_of_the_plain_kernel(family):
    draws, _ = wide(family)
    plain, _ = sweeps_of(kernel_of(family, WIDTH), DATA[family], 5)
    first = {name: x[:5] for name, x in draws(WIDTH).items()}
    as_rows = [
        {name: x.reshape(-1, *x.shape[2:]) for name, x in z.items()} for z in (first, plain())
    ]
    assert_same_draws(*as_rows, least=0.99)


def test_partial_orders_and_the_kernels_that_have_no_such_form():
    orders = PartialOrders.from_buckets([[[0], [1, 2]], [[2, 1], [0]]], num_items=3)
    kernel = PlackettLuceGibbs().padded(2)
    state = kernel.init(random.key(0), 0, None, (orders,), {"num_used": jnp.array(1)})
    assert not np.any(state.z["assignments"]) and state.z["weights"].shape == (2, 3)
    with pytest.raises(TypeError, match="and nothing else"):
        kernel_of("plackett-luce", 2).init(
            random.key(0), 0, None, (DATA["plackett-luce"],), {"num_used": jnp.array(1)}
        )
    without = [
        BetaGibbs(num_components=2),
        SliceGibbs(init="nearest"),
        SliceGibbs(num_components=2),  # starts by a search
        PlackettLuceGibbs(num_components=2, model=plackett_luce),
        DPPlackettLuceGibbs(1.0, 1.0, 1.0),
    ]
    assert [kernel.padded(4) for kernel in without] == [None] * len(without)
    assert TemperedMixture("mallows", 1).padded(4).num_components == 4
