"""Tempered mixtures: settings, data and start values that are refused, and the model's density."""

import jax
import jax.numpy as jnp
import numpy as np
import numpy.testing as npt
import numpyro.distributions as dist
import pytest
from helpers.ranking_kernels import PER_STAGE, table
from helpers.refusals import assert_refused
from jax import random
from numpyro.infer.util import log_density

from numpyro_rankings import Rankings
from numpyro_rankings._system import memory
from numpyro_rankings.families import ITEM_POOL
from numpyro_rankings.infer import MallowsComponents, PlackettLuceComponents, TemperedMixture

FEW = {"num_temperatures": 2, "num_steps": 1}
OFFERED = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]], bool)
SUBSETS = Rankings.from_orderings(
    [[0, 1], [0], [3, 1], [2]], num_items=4, counts=[2, 1, 1, 3], choice_sets=OFFERED
)
TOPS = Rankings.from_orderings([[0], [1], [3, 2]], num_items=4, counts=[2, 1, 3])
LOG_NORMAL = dist.LogNormal(0.0, 1.0)


def start(kernel, rankings=None, params=None, chains=None):
    key = random.key(0) if chains is None else random.split(random.key(0), chains)
    rankings = table() if rankings is None else rankings
    return kernel.init(key, 0, params, (rankings,), {})


def test_bad_settings():
    def make(family="mallows", num_components=2, *args, **settings):
        return TemperedMixture(family, num_components, *args, **settings)

    assert_refused(
        make,
        ("family is one of 'mallows', 'plackett-luce'", "kemeny"),
        ("family is one of", ITEM_POOL),
        ("family is one of", MallowsComponents),
        ("num_components must be a positive whole number", "mallows", 0),
        ("num_components must be", "mallows", None),
        ("share_concentration must be a positive number", "mallows", 2, 0.0),
        ("share_concentration must be a positive number", "mallows", 2, dist.Gamma(1.0, 1.0)),
        *(("power must be", "mallows", 2, None, x) for x in (0, 2, -1, float("nan"), "1", True)),
    )
    for message, settings in [
        ("power and effective_size say the same", {"power": 0.5, "effective_size": 3.0}),
        ("effective_size must be a positive number", {"effective_size": float("inf")}),
        ("num_temperatures must be at least 2", {"num_temperatures": 1}),
        ("num_temperatures must be a positive whole", {"num_temperatures": 0}),
        ("num_steps must be", {"num_steps": 0}),
    ]:
        assert_refused(lambda settings=settings: make(**settings), (message,))
    assert_refused(
        PlackettLuceComponents, ("shape must be", [1.0, 0.0]), ("shape", np.ones((2, 2)))
    )
    assert_refused(MallowsComponents, ("nu must be a positive number", 0.0))


def test_bad_data():
    mallows, weights = TemperedMixture("mallows", 2), TemperedMixture("plackett-luce", 2)
    assert_refused(
        start,
        ("choice sets", mallows, SUBSETS),
        (
            "effective_size is 6, but there are only 5",
            TemperedMixture("mallows", 2, effective_size=6),
        ),
        ("3 stages", TemperedMixture(MallowsComponents([1.0, 2.0]), 2)),
        ("each of the 4 items", TemperedMixture(PlackettLuceComponents([1.0, 2.0]), 2)),
        ("must have shape", mallows, None, {"center": np.tile(np.arange(4), (3, 1))}),
        ("orderings of the items", mallows, None, {"center": np.zeros((2, 4), int)}),
        ("must have shape", mallows, None, {"concentration": 1.0}),
        ("non-negative", mallows, None, {"concentration": -np.ones((2, 3))}),
        ("'shares'. must be positive", mallows, None, {"shares": np.array([1.0, 0.0])}),
        ("shape .3, 2., got .2, 2.", mallows, None, {"shares": np.ones((2, 2))}, 3),
        ("'weights'. must be positive", weights, None, {"weights": np.eye(2, 4)}),
        ("must have shape .4,.", TemperedMixture("plackett-luce", 1), None, {"weights": [[1.0]]}),
        (
            r"only \['alpha', 'assignments'\], but .* \['center', 'concentration', 'shares'\]",
            mallows,
            None,
            {"assignments": np.zeros(5, int), "alpha": 1.0},
        ),
        (r"only \['alpha'\], but .* only \['shares', 'weights'\]", weights, None, {"alpha": 1.0}),
        ("only .'centre'., but", mallows, None, {"centre": np.tile(np.arange(4), (2, 1))}),
    )


def test_a_whole_draw_is_a_start():
    kernel = TemperedMixture("mallows", 2, **FEW)
    drawn = start(kernel).z
    again = kernel.init(random.key(1), 0, drawn, (table(),), {}).z
    for name in ("center", "concentration", "shares"):
        npt.assert_allclose(np.sort(again[name], 0), np.sort(drawn[name], 0), rtol=1e-6)


def test_too_little_memory_is_told_before_the_start(monkeypatch):
    monkeypatch.setattr(memory, "device_memory", lambda: 10**8)
    kernel = TemperedMixture("mallows", 2, num_temperatures=10**6)
    with pytest.raises(memory.TooLittleMemoryError, match=r"ladder.* of 1000000 temperatures"):
        start(kernel)


COMPONENTS = {
    "weights, subsets": (PlackettLuceComponents([0.5, 1.0, 2.0, 1.0]), SUBSETS),
    "weights, top": (PlackettLuceComponents(2.0), TOPS),
    "conjugate": (MallowsComponents(0.7, [0.5, 1.0, 1.5]), table()),
    "per stage": (MallowsComponents(concentration_prior=PER_STAGE), table()),
    "tied": (MallowsComponents(concentration_prior=LOG_NORMAL, tied=True), TOPS),
}
POWERS = {1: {}, 2: {"power": 0.3, "share_concentration": 0.4}, 3: {"effective_size": 2.0}}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(
            name, k, marks=[] if (name, k) == ("weights, subsets", 1) else [pytest.mark.slow]
        )
        for name in COMPONENTS
        for k in POWERS
    ],
)
def test_log_joint_is_the_density_of_the_model(name, number):
    components, rankings = COMPONENTS[name]
    kernel = TemperedMixture(components, number, **POWERS[number], **FEW)
    state = start(kernel, rankings, chains=4)
    density = jax.jit(jax.vmap(lambda z: log_density(kernel.model, (rankings,), {}, z)[0]))
    npt.assert_allclose(state.z["log_joint"], density(state.z), rtol=1e-4, atol=1e-4)
    one = jax.tree.map(lambda x: x[0], state)
    again = kernel.refresh(one._replace(potential_energy=jnp.nan), (rankings,), {})
    npt.assert_allclose(-again.potential_energy, one.z["log_joint"], rtol=1e-5, atol=1e-5)


def test_another_power_is_no_other_program():
    """The sweeps of two powers have one program, which is compiled once."""
    programs = []
    for power in (1.0, 0.5):
        kernel = TemperedMixture("mallows", 2, power=power, **FEW)
        state = start(kernel)
        sweep = jax.jit(lambda x, kernel=kernel: kernel.sample(x, (table(),), {}))
        programs.append(sweep.lower(state).as_text())
        assert float(state.rung_power[-1]) == power
    assert programs[0] == programs[1]
