"""What a run says of itself: when it suffices, stands still, diverges, and what memory it keeps."""

import gc
import math

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.toy_kernel import DATA, Autoregressive, Wide, toy_run
from jax import random
from numpyro.infer import (
    AIES,
    HMC,
    HMCECS,
    NUTS,
    SA,
    BarkerMH,
    CustomGibbs,
    DiscreteHMCGibbs,
    Gibbs,
    HMCGibbs,
    MixedHMC,
)

from numpyro_rankings import Rankings, Run
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs
from numpyro_rankings.run import loop
from numpyro_rankings.run.kernels import KernelTraits
from numpyro_rankings.run.monitor import Facts, Monitor

pytestmark = pytest.mark.usefixtures("programs")

LEVELS = {"good": "The chains agree", "care": "Usable with care", "bad": "Do not rely"}


# ---------------------------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------------------------


def arrays_in(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [x for one in value for x in arrays_in(one)] if isinstance(value, list) else []


def held_bytes(monitor):
    """Bytes of all memory that the arrays of a monitor keep alive, and of the arrays themselves."""
    kept = [x for value in vars(monitor).values() for x in arrays_in(value)]
    bases = {}
    for x in kept:
        while x.base is not None:
            x = x.base
        bases[id(x)] = x.nbytes
    return sum(bases.values()), sum(x.nbytes for x in kept)


@pytest.mark.parametrize("width", [1, 200, 2000])
def test_memory_of_the_diagnostics_is_flat(width, monkeypatch):
    """What is held is what is needed, and no more for a run that is longer."""
    monkeypatch.setattr(Monitor, "LEAST_KEPT", 64)
    monkeypatch.setattr(loop, "_MOST_DRAWS", 100)  # draws of a chunk
    run = toy_run(Wide(width), num_chains=2)
    a_draw = 2 * 4 * (width + 3)
    for sweeps in (30, 100, 700, 5, 800):
        run.extend(sweeps)
        gc.collect()
        held, needed = held_bytes(run._monitor)
        assert held == needed
        assert held <= (2 * 64 + 2) * a_draw + 5_000
    # what is looked at is not kept either
    run.diagnostics()
    held, needed = held_bytes(run._monitor)
    assert held == needed <= (2 * 64 + 2) * a_draw + 5_000


# ---------------------------------------------------------------------------------------------
# Chains that stand still
# ---------------------------------------------------------------------------------------------


class Still(Autoregressive):
    """Never moves the chains that start above a threshold.

    :param start: where all chains start; by default each has a start of its own.
    """

    def __init__(self, threshold, start=None):
        super().__init__()
        self.threshold, self.start = threshold, start

    def init(self, *args, **kwargs):
        state = super().init(*args, **kwargs)
        mu = state.z["mu"] if self.start is None else jnp.full((), self.start)
        return state._replace(z={"mu": mu}, energy=mu)

    def sample(self, state, model_args, model_kwargs):
        new = super().sample(state, model_args, model_kwargs)
        mu = jnp.where(state.energy > self.threshold, state.z["mu"], new.z["mu"])
        return new._replace(z={"mu": mu}, energy=state.energy)


def test_a_chain_that_stands_still_is_no_success(clock):
    run = toy_run(Still(threshold=1.0), key=random.key(2))
    starts = np.asarray(run._state.energy)
    still = [i for i, x in enumerate(starts) if x > 1.0]
    assert 0 < len(still) < 4
    # by these goals alone it would be one
    assert not run.until(rhat=100, ess=1, minutes=1, after_chunk=lambda _: clock.step(10))
    assert run.last_check.ess > 1 and run.last_check.rhat < 100
    assert run.verdict.level == "bad"
    names = " and ".join(str(i + 1) for i in still)
    assert run.verdict.reasons[0].startswith(f"Chain{'s' * (len(still) > 1)} {names} do")
    assert "all draws of mu are equal within a chain" in run.verdict.reasons[0]


def test_a_chain_that_stands_still_is_told_whatever_is_diagnosed(clock):
    """Also if the user's quantities do not show it."""
    rng = np.random.default_rng(0)
    own = {"quantities": lambda samples: {"noise": rng.normal(size=samples["mu"].shape)}}
    run = toy_run(Still(threshold=1.0), key=random.key(2), **own)
    assert not run.until(rhat=1.5, ess=10, minutes=1, after_chunk=lambda _: clock.step(10))
    assert "do not move" in run.verdict.reasons[0] or "does not move" in run.verdict.reasons[0]


@pytest.mark.parametrize("start", [None, 2.0])
def test_a_kernel_that_never_moves_is_given_up(start, clock):
    """Whether its chains start at one point or at several."""
    run = toy_run(Still(threshold=-math.inf, start=start))
    run.extend(20)
    assert run.verdict.level == "bad"
    with pytest.raises(RuntimeError, match="Still does not move: mu had the same value in all"):
        run.until(rhat=100, ess=1, minutes=1, after_chunk=lambda _: clock.step(1))
    assert run.num_draws >= 1000  # they are kept
    assert run.get_samples()["mu"].shape == (4 * run.num_draws,)


def monitor_of(kernel, *data):
    return Monitor(Facts.of(KernelTraits(kernel), data, {}), None, None)


def test_what_the_model_has_constant_may_be_constant():
    """Deterministic sites, integers, and fixed scales of the kernels of this package."""
    monitor = monitor_of(Autoregressive())
    rng = np.random.default_rng(0)
    mu, ones = rng.normal(size=(4, 50)), np.ones((4, 50))
    monitor.watch({"mu": mu[:, 0], "label": ones[:, 0].astype(int), "none": np.zeros((4, 0))})
    monitor.add(monitor.take({"mu": mu, "label": ones.astype(int), "fixed": ones}, {}))
    assert monitor.still(0.5) == {} and monitor.never_moved() == []
    monitor = monitor_of(PlackettLuceGibbs(), Rankings.from_orderings([[0, 1, 2]], num_items=3))
    monitor.watch({"alpha": mu[:, 0], "log_joint": mu[:, 0], "weights": mu[:, :3]})
    assert monitor._watched == ("weights",)


def test_a_chain_that_moved_in_the_burn_in_alone():
    monitor = monitor_of(Autoregressive())
    monitor.watch({"mu": np.zeros(2)})
    rng = np.random.default_rng(0)
    for start in range(0, 60, 20):  # the second chain stops at draw 30
        mu = rng.normal(size=(2, 20))
        mu[1] = np.where(np.arange(start, start + 20) < 30, mu[1], 7.0)
        monitor.add(monitor.take({"mu": mu}, {}))
    assert monitor.still(0.4) == {}  # from draw 24 on
    assert monitor.still(0.5) == {"mu": [1]}
    assert monitor.never_moved() == []


# ---------------------------------------------------------------------------------------------
# No finite start
# ---------------------------------------------------------------------------------------------


def impossible():
    numpyro.sample("x", dist.Normal())
    numpyro.factor("never", -jnp.inf)


def missing_datum():
    x = numpyro.sample("x", dist.Normal())
    numpyro.sample("y", dist.Normal(x), obs=jnp.nan)


NO_START = {
    "hmc": lambda: HMC(impossible, num_steps=2, trajectory_length=None),
    "nuts": lambda: NUTS(missing_datum),
    "sa": lambda: SA(impossible),
    "barker": lambda: BarkerMH(impossible),
    "aies": lambda: AIES(impossible),
    "gibbs": lambda: Gibbs([(NUTS(impossible), None)]),
}


@pytest.mark.parametrize("name", NO_START)
def test_no_finite_start_is_an_error_at_once(name):
    with (
        pytest.warns(Warning) if name == "nuts" else np.errstate(),
        pytest.raises(RuntimeError, match="Cannot find valid initial parameters"),
    ):
        Run(NO_START[name](), key=random.key(0))


def half_line(z):
    return jnp.where(z > 0, z, jnp.inf)


def test_starting_values_of_no_density_are_told():
    kernel = HMC(potential_fn=half_line, num_steps=2, trajectory_length=None)
    starts = np.array([1.0, -1.0, 2.0, -3.0])
    with pytest.raises(RuntimeError, match=r"not finite where chain 2, 4 of 4 starts"):
        Run(kernel, key=random.key(0), init_params=starts)
    Run(kernel, key=random.key(0), init_params=np.abs(starts))
    superchains = {"num_chains": 6, "superchains": 3, "init_params": np.array([1.0, -1.0, 1.0])}
    with pytest.raises(RuntimeError, match=r"where chain 3, 4 of 6 starts"):
        Run(kernel, key=random.key(0), **superchains)


# ---------------------------------------------------------------------------------------------
# When it suffices
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def slow_checks(clock, monkeypatch):
    """Let a check take 100 seconds, and return the numbers of draws that were checked."""
    checked, real = [], Monitor.table

    def table(monitor, burn_in, step=1):
        clock.step(100)
        checked.append(monitor.num_draws)
        return real(monitor, burn_in, step)

    monkeypatch.setattr(Monitor, "table", table)
    return checked


def test_the_second_check_comes_soon(clock, slow_checks):
    run, lengths = toy_run(), []

    def after_chunk(run):
        lengths.append(run.num_draws)
        clock.step(60)

    assert run.until(rhat=2.0, ess=5, minutes=15, after_chunk=after_chunk)
    assert slow_checks == lengths[-2:]


def test_goals_that_hold_when_the_time_is_over(clock, slow_checks):
    """Though no check was due in the last chunks."""
    run = toy_run()
    run.extend(4)
    run.check()  # it fails, and a next one would be due after 1,000 seconds
    assert run.last_check.ess < 50
    assert run.until(rhat=1.2, ess=50, minutes=5, after_chunk=lambda _: clock.step(60))
    assert len(slow_checks) <= 3 and slow_checks[-1] == run.num_draws > 50


def test_a_run_that_suffices_is_left_alone(tmp_path):
    goals = {"rhat": 1.1, "ess": 100, "minutes": 5}
    run = toy_run(store=tmp_path / "a.run")
    assert run.until(**goals)
    before = run.num_draws
    assert run.until(**goals) and run.num_draws == before
    assert run.until(**goals | {"minutes": 0})
    run.close()
    run = Run.resume(tmp_path / "a.run", Autoregressive(), DATA, burn_in=0.0)
    assert run.until(**goals) and run.num_draws == before
    assert run.until(**goals | {"ess": 500}) and run.num_draws > before
    run.close()


# ---------------------------------------------------------------------------------------------
# Transitions of HMC and NUTS
# ---------------------------------------------------------------------------------------------


def normal():
    numpyro.sample("x", dist.Normal())


def mixed():
    c = numpyro.sample("c", dist.Bernoulli(0.4))
    numpyro.sample("x", dist.Normal(1.0 * c))


FIELDS = {
    "nuts": (NUTS(normal), ("diverging", "num_steps", "energy")),
    "hmc": (HMC(normal), ("diverging", "energy")),
    "gibbs": (
        Gibbs([(CustomGibbs(lambda **_: {}), ["c"]), (NUTS(mixed), None)]),
        ("block_states.1.diverging", "block_states.1.num_steps"),
    ),
    "hmc-gibbs": (
        HMCGibbs(HMC(mixed), lambda **_: {}, ["c"]),
        ("block_states.1.diverging",),
    ),
    "discrete": (
        DiscreteHMCGibbs(NUTS(mixed)),
        ("block_states.1.diverging", "block_states.1.num_steps"),
    ),
    "mixed": (MixedHMC(HMC(mixed)), ("hmc_state.diverging",)),
    "ecs": (HMCECS(NUTS(normal)), ("hmc_state.diverging", "hmc_state.num_steps")),
    "sa": (SA(normal), ()),
    "own": (SliceGibbs(), ()),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_that_the_verdict_needs(name):
    kernel, expected = FIELDS[name]
    assert KernelTraits(kernel).fields_of_transitions == expected


def verdict_of(kernel, stats, burn_in=0.0, cuts=(100,)):
    """The verdict of draws of which R-hat and ESS are good, with given fields of the state."""
    monitor = monitor_of(kernel)
    x = np.random.default_rng(0).normal(size=(4, 1000))
    for part in np.split(np.arange(1000), cuts):
        arrays = {name: values[:, part] for name, values in stats.items()}
        monitor.add(monitor.take({"x": x[:, part]}, arrays))
    return monitor.verdict(burn_in, monitor.table(burn_in))


def happens(number, first=0):
    """Whether each of 4 × 1,000 draws has an event: a number of the first chain's."""
    found = np.zeros((4, 1000), bool)
    found[0, first : first + number] = True
    return found


@pytest.mark.parametrize(
    ("number", "level", "words"),
    [
        (0, "good", None),
        (1, "care", "Less than 0.1% of the draws come from divergent transitions"),
        (30, "care", "0.8% of the draws come from divergent transitions"),
        (148, "bad", "3.7% of the draws come from divergent transitions"),
    ],
)
def test_divergent_transitions_are_in_the_verdict(number, level, words):
    for kernel, field in (
        (NUTS(normal), "diverging"),
        (HMC(normal), "diverging"),
        (FIELDS["gibbs"][0], "block_states.1.diverging"),
        (FIELDS["mixed"][0], "hmc_state.diverging"),
    ):
        found = verdict_of(kernel, {field: happens(number)})
        assert found.level == level and found.headline.startswith(LEVELS[level])
        assert [x for x in found.reasons if "divergent" in x] == (
            [] if words is None else [f"{words}, {found.reasons[0].partition(', ')[2]}"]
        )


def test_divergent_transitions_of_the_burn_in_do_not_count():
    stats = {"diverging": happens(100, first=400)}
    assert verdict_of(NUTS(normal), stats, 0.5).level == "good"
    assert verdict_of(NUTS(normal), stats, 0.45).level == "bad"


def test_each_divergent_transition_of_a_long_run_is_counted(monkeypatch):
    """Though only every eighth draw is kept."""
    monkeypatch.setattr(Monitor, "LEAST_KEPT", 64)
    for cuts in ((), (1, 500, 503), range(7, 1000, 7)):
        found = verdict_of(NUTS(normal), {"diverging": happens(1, first=901)}, 0.5, cuts)
        assert any("divergent" in reason for reason in found.reasons)


@pytest.mark.parametrize(("number", "level"), [(0, None), (30, "good"), (60, "care")])
@pytest.mark.parametrize(("depth", "steps"), [(10, 1023), ((4, 5), 31)])
def test_the_maximum_tree_depth_is_in_the_verdict(number, level, depth, steps):
    kernel = NUTS(normal, max_tree_depth=depth)
    found = verdict_of(kernel, {"num_steps": np.where(happens(number), steps, steps - 1)})
    shown = [reason for reason in found.reasons if "maximum tree depth" in reason]
    assert len(shown) == (level is not None)
    assert found.level == (level or "good")


def test_the_energy_is_in_the_verdict():
    rng = np.random.default_rng(0)
    energy = rng.normal(size=(4, 1000))
    assert verdict_of(NUTS(normal), {"energy": energy}).level == "good"
    energy[2] = np.cumsum(energy[2])  # a random walk
    for cuts in ((), (1, 500, 503)):
        found = verdict_of(NUTS(normal), {"energy": energy.astype(np.float32)}, cuts=cuts)
        assert found.level == "care"
        assert found.reasons[0].startswith("The energy changes little from draw to draw in chain 3")
        expected = (np.diff(energy[2]) ** 2).mean() / energy[2].var()
        assert f"E-BFMI {expected:.2f}" in found.reasons[0]


def test_a_run_keeps_what_the_verdict_needs(tmp_path):
    kernel = HMC(normal, num_steps=2, trajectory_length=None)
    run = Run(kernel, key=random.key(0), num_warmup=5, store=tmp_path / "a.run")
    run.extend(20)
    assert set(run.as_mcmc().get_extra_fields()) == {"diverging", "energy"}
    run.close()
    run = Run.resume(tmp_path / "a.run", HMC(normal, num_steps=2, trajectory_length=None))
    run.extend(5)
    assert set(run.as_mcmc().get_extra_fields()) == {"diverging", "energy"}
    assert run._monitor._totals.keys() == {"diverging", "energy_steps"}
    run.close()


@pytest.mark.slow
def test_eight_schools_that_are_centred():
    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def centred():
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([8]))
        numpyro.sample("effects", dist.Normal(theta, errors), obs=effects)

    run = Run(NUTS(centred), key=random.key(0))
    run.extend(2000)
    share = np.asarray(run.as_mcmc().get_extra_fields()["diverging"]).mean()
    assert share > 0
    assert any("divergent transitions" in reason for reason in run.verdict.reasons)
    assert run.verdict.level == "bad" if share > 0.01 else "care"
