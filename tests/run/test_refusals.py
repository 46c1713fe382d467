"""What cannot be run is refused in one line, and what only looks odd is run."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
from helpers.toy_kernel import DATA, Autoregressive, toy_run
from jax import random
from jax.sharding import Mesh
from numpyro.infer import AIES, HMC, MCMC, NUTS, SA, BarkerMH, DiscreteGibbs, Gibbs

from numpyro_rankings import Run, StoreError
from numpyro_rankings.infer import SliceGibbs

pytestmark = pytest.mark.usefixtures("programs")

FIRST = jax.devices()[0]


def normal():
    numpyro.sample("x", dist.Normal())


def nothing():
    numpyro.sample("x", dist.Normal(), obs=0.0)


def integer():
    numpyro.sample("c", dist.Categorical(jnp.ones(3) / 3))


def short_steps(model=None, **settings):
    """A kernel that compiles faster than NUTS."""
    return HMC(model, num_steps=2, trajectory_length=None, **settings)


def refused(make, match, error=ValueError):
    with pytest.raises(error, match=match) as found:
        make()
    assert "\n" not in str(found.value)


# ---------------------------------------------------------------------------------------------
# Kernels, keys, devices
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (NUTS, r"got the class NUTS; write NUTS\(…\)"),
        (SliceGibbs, r"got the class SliceGibbs; write SliceGibbs\(…\)"),
        (normal, r"got the function normal; if it is a model, write NUTS\(normal\)"),
        (MCMC(NUTS(normal), num_warmup=1, num_samples=1), "whose kernel is its attribute sampler"),
        (np.zeros((3, 3)), "got an object of ndarray"),
        (None, "got an object of NoneType"),
    ],
)
def test_what_is_no_kernel(kernel, words, tmp_path):
    refused(lambda: Run(kernel, DATA, key=random.key(0)), words)
    refused(lambda: Run.resume(tmp_path, kernel, DATA), words)


@pytest.mark.parametrize("key", [0, None, "x", np.zeros(5), random.split(random.key(0), 3)])
def test_what_is_no_key(key):
    refused(lambda: toy_run(key=key), r"key must be one random key, such as jax.random.key\(0\)")


def test_a_device_that_is_given_twice():
    refused(lambda: toy_run(devices=[FIRST, FIRST]), f"devices must not have .* twice: {FIRST}")
    mesh = Mesh(np.array([FIRST, FIRST]), ("chains",))
    refused(lambda: toy_run(mesh=mesh), f"mesh must not have a device twice: {FIRST}")
    refused(lambda: toy_run(devices=[]), "devices must be a list of devices")


def test_chains_of_ensembles():
    def make(**settings):
        return lambda: Run(AIES(normal), key=random.key(0), **settings)

    refused(make(num_chains=8, superchains=4), "superchains cannot be given with AIES: the chains")
    refused(make(num_chains=3), "num_chains must be even with AIES, got 3")
    refused(make(num_chains=1), "num_chains must be even with AIES, got 1")
    make(num_chains=4)()


# ---------------------------------------------------------------------------------------------
# Sites
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [SA, AIES, short_steps, lambda model: Gibbs([(NUTS(model), None)])]
)
def test_models_without_sites(make):
    refused(lambda: Run(make(nothing), key=random.key(0)), "the model has no site to sample")


@pytest.mark.parametrize("make", [SA, AIES, short_steps, BarkerMH])
def test_models_without_continuous_sites(make):
    words = "the model has no continuous site to sample, only discrete ones: c"
    refused(lambda: Run(make(integer), key=random.key(0), num_warmup=0), words)


def test_a_block_that_cannot_sample_integers():
    blocks = Gibbs([(NUTS(integer), None)])
    refused(lambda: Run(blocks, key=random.key(0)), r"Discrete latent sites \['c'\] cannot be")


def test_other_errors_of_init_remain():
    def broken():
        numpyro.sample("x", dist.Normal())
        raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own"):
        Run(SA(broken), key=random.key(0))


def test_models_of_integers(clock):
    """They are sampled; a goal that cannot be checked is refused before any sweep."""
    run = Run(Gibbs([(DiscreteGibbs(integer), None)]), key=random.key(0), num_warmup=0)
    words = "nothing to diagnose, because the model has no site of real numbers: give quantities="
    refused(lambda: run.until(minutes=1, after_chunk=lambda _: clock.step(20)), words)
    assert run.num_sweeps == 0
    run.extend(20)
    for ask in (run.diagnostics, run.check, lambda: run.verdict):
        refused(ask, words)
    assert run.get_samples()["c"].shape == (40,)
    own = {"quantities": lambda samples: {"is_first": samples["c"] == 0}}
    run = Run(Gibbs([(DiscreteGibbs(integer), None)]), key=random.key(0), num_warmup=0, **own)
    assert run.until(rhat=1.5, ess=10, minutes=1, after_chunk=lambda _: clock.step(1))


def test_a_run_that_cannot_begin_leaves_no_store(tmp_path):
    """It says how to begin, which can be done at once, and not only after close()."""
    kernel, settings = Gibbs([(DiscreteGibbs(integer), None)]), {"key": random.key(0)}
    settings |= {"num_warmup": 0, "store": tmp_path / "a.run"}
    run = Run(kernel, **settings)
    refused(run.until, "nothing to diagnose, because the model has no site of real numbers: give q")
    assert not any(tmp_path.iterdir())
    words = r"a\.run was removed, because its run could not begin: make it anew"
    for do in (run.until, lambda: run.extend(4)):
        refused(do, words, StoreError)
    again = Run(kernel, **settings, quantities=lambda samples: {"is_first": samples["c"] == 0})
    again.extend(4)
    refused(run.until, words, StoreError)
    again.close()
    run = Run(kernel, **settings, overwrite=True)
    run.extend(4)
    refused(run.until, "nothing to diagnose")  # there are draws, which stay
    run.extend(4)
    assert run.num_draws == 8
    run.close()


class WithBfloat16(Autoregressive):
    def _rounded(self, state):
        return state._replace(z=state.z | {"rounded": state.z["mu"].astype(jnp.bfloat16)})

    def init(self, *args, **kwargs):
        return self._rounded(super().init(*args, **kwargs))

    def sample(self, state, model_args, model_kwargs):
        return self._rounded(super().sample(state, model_args, model_kwargs))


def test_sites_of_bfloat16(tmp_path):
    run = toy_run(WithBfloat16(), store=tmp_path / "a.run")
    run.extend(10)
    run.close()
    run = Run.resume(tmp_path / "a.run", WithBfloat16(), DATA, burn_in=0.0)
    assert run._state.z["rounded"].dtype == jnp.bfloat16
    run.extend(10)
    samples = run.get_samples()
    assert samples["rounded"].dtype == np.float32  # which has them exactly
    expected = np.asarray(jnp.asarray(samples["mu"]).astype(jnp.bfloat16).astype(jnp.float32))
    np.testing.assert_array_equal(samples["rounded"], expected)
    assert "rounded" in run.diagnostics().index
    with xr.open_datatree(tmp_path / "a.run", engine="zarr") as tree:
        np.testing.assert_array_equal(tree["posterior"]["rounded"].values.ravel(), expected)
    run.close()


def scoped():
    def inside():
        x = numpyro.sample("x", dist.Normal())
        with numpyro.plate("places", 2):
            numpyro.sample("y", dist.Normal(x), obs=jnp.ones(2))

    numpyro.handlers.scope(inside, "a")()
    numpyro.sample("zarr.json", dist.Normal())
    numpyro.sample("..", dist.Normal())


def test_names_that_files_and_xarray_do_not_take(tmp_path):
    path = tmp_path / "a.run"
    run = Run(short_steps(scoped), key=random.key(0), num_warmup=2, store=path)
    run.extend(8)
    assert set(run.get_samples()) == {"a/x", "zarr.json", ".."}
    with xr.open_datatree(path, engine="zarr") as tree:
        names = {str(x.attrs.get("long_name", k)): k for k, x in tree["posterior"].items()}
    assert names == {"a/x": "a%2Fx", "zarr.json": "zarr%2Ejson", "..": "%2E%2E"}
    with pytest.warns(UserWarning, match="ArviZ has a/x as a%2Fx, because xarray has no names"):
        data = run.to_inference_data()
    assert set(data["posterior"].data_vars) == {"a%2Fx", "zarr.json", ".."}
    np.testing.assert_array_equal(
        data["posterior"]["a%2Fx"], run.get_samples(group_by_chain=True)["a/x"]
    )
    assert data["observed_data"]["a%2Fy"].dims == ("a%2Fplaces",)
    data.to_netcdf(str(tmp_path / "a.nc"))
    run.close()
    Run.resume(path, short_steps(scoped)).close()


@pytest.mark.parametrize("is_sampled", [True, False])
@pytest.mark.parametrize("name", ["chain", "draw", "x_dim_0"])
def test_names_of_axes(name, is_sampled, tmp_path):
    """Xarray takes them for these, and the draws are gone."""

    def model():
        x = numpyro.sample("x", dist.Normal().expand([3]).to_event(1))
        numpyro.sample(name, dist.Normal()) if is_sampled else numpyro.deterministic(name, x)

    with pytest.raises(ValueError, match=f"the name '{name}' is that of an axis"):
        Run(short_steps(model), key=random.key(0), num_warmup=2, store=tmp_path / "a.run")
    assert not any(tmp_path.iterdir())


def test_plates_with_the_names_of_axes():
    def model():
        with numpyro.plate("draw", 3), numpyro.plate("chain", 2):
            numpyro.sample("x", dist.Normal())

    run = Run(short_steps(model), key=random.key(0), num_warmup=2)
    run.extend(8)
    x = run.to_inference_data()["posterior"]["x"]
    assert x.dims == ("chain", "draw", "chain_", "draw_")
    np.testing.assert_array_equal(x, run.get_samples(group_by_chain=True)["x"])


@pytest.mark.parametrize("name", ["toy", "superchains", "ensemble"])
def test_more_chains_than_there_is_memory_for(name, tmp_path):
    """XLA would abort the process."""
    options = {"num_chains": 10**12, "store": tmp_path / "a.run"}
    with pytest.raises(ValueError, match=r"1,000,000,000,000 chains need about .* GB of memory"):
        if name == "ensemble":
            Run(AIES(scoped), key=random.key(0), **options)
        else:
            toy_run(superchains=4 if name == "superchains" else None, **options)
    assert not any(tmp_path.iterdir())


def test_many_chains_and_a_thinning_that_no_program_counts():
    run = toy_run(num_chains=12_000)
    run.extend(1)
    assert run.get_samples(group_by_chain=True)["mu"].shape == (12_000, 1)
    with pytest.raises(ValueError, match=r"thinning must be at most 2,147,483,647, got 2147483648"):
        toy_run(thinning=2**31)


# ---------------------------------------------------------------------------------------------
# Kernels made of a potential
# ---------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def _potential(z):
    return sum(0.5 * jnp.sum(x**2) for x in jax.tree.leaves(z))


LONG, SHORT = np.zeros((4, 2)), np.zeros(4)


@pytest.mark.parametrize(
    ("start", "names"),
    [
        (LONG, ["z"]),
        ({0: LONG, 1: SHORT}, ["0", "1"]),
        ({"a": {"c": LONG}, "b": SHORT}, ["a.c", "b"]),
        ([LONG, LONG], ["z.0", "z.1"]),
        (Pair(LONG, SHORT), ["z.first", "z.second"]),
    ],
    ids=["array", "keys", "nested", "list", "fields"],
)
def test_values_of_a_potential_may_have_any_form(start, names, tmp_path):
    settings = {"num_warmup": 3, "burn_in": 0.0, "store": tmp_path / "a.run"}
    run = Run(
        short_steps(potential_fn=_potential), key=random.key(0), init_params=start, **settings
    )
    run.extend(10)
    samples = run.get_samples(group_by_chain=True)
    assert list(samples) == names
    run.close()
    start = {"init_params": jax.tree.map(np.ones_like, start)}
    run = Run.resume(tmp_path / "a.run", short_steps(potential_fn=_potential), burn_in=0.0, **start)
    for name, x in run.get_samples(group_by_chain=True).items():
        np.testing.assert_array_equal(x, samples[name])
    run.extend(3)
    assert {name.partition("[")[0] for name in run.diagnostics().index} == set(names)
    as_mcmc = run.as_mcmc().get_samples(group_by_chain=True)
    assert jax.tree.structure(as_mcmc) == jax.tree.structure(start["init_params"])
    assert set(run.to_inference_data()["posterior"].data_vars) == set(names)
    run.close()
    refused(
        lambda: Run.resume(tmp_path / "a.run", short_steps(potential_fn=_potential)),
        "Valid value of `init_params` must be provided",
    )


# ---------------------------------------------------------------------------------------------
# Fields of the state
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("zzz", "the state of the kernel has no field 'zzz'; it has i, z, z_grad, potential"),
        ("adapt_state.zzz", "has no field 'adapt_state.zzz'"),
        ("~z.x", "has no field '~z.x'"),
        ("z.y", "has no field 'z.y'"),
        ("", "has no field ''"),
        ("__class__", "has no field '__class__'"),
        ("count", "has no field 'count'"),
        ("i.dtype", "has no field 'i.dtype'"),
        ("_fields", "has no field '_fields'"),
        ("adapt_state", "has several arrays: name one of them, such as 'adapt_state.step_size'"),
        ("rng_key", "'rng_key' cannot be kept with the draws: it is a random key"),
    ],
)
def test_fields_that_are_none(field, words):
    refused(lambda: Run(short_steps(normal), key=random.key(0), extra_fields=(field,)), words)


def test_fields_within_fields():
    fields = ("adapt_state.step_size", "z.x")
    run = Run(short_steps(normal), key=random.key(0), num_warmup=2, extra_fields=fields)
    run.extend(4)
    assert set(fields) < set(run.as_mcmc().get_extra_fields())


# ---------------------------------------------------------------------------------------------
# Functions of the user's
# ---------------------------------------------------------------------------------------------


def changing(make):
    calls = []

    def quantities(samples):
        calls.append(None)
        return make(samples["mu"], len(calls))

    return quantities


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda mu, _: {"a": np.full(mu.shape, "x")}, "arrays of real numbers; a is of <U1"),
        (lambda mu, _: {"a": mu + 1j}, "arrays of real numbers; a is of complex64"),
        (lambda mu, k: {"ab"[k % 2]: mu}, r"were {'b': \(\)}, and are {'a': \(\)}"),
        (lambda mu, k: {"a": np.stack([mu] * k, -1)}, r"were {'a': \(1,\)}, and are {'a': \(2,\)}"),
        (lambda mu, _: {"a": np.add(mu, 1, out=mu)}, "read-only"),
    ],
)
def test_quantities_that_cannot_be_diagnosed(make, words):
    run = toy_run(quantities=changing(make))
    refused(lambda: run.extend(20), words)
    alone = toy_run()
    alone.extend(20)
    found = run.get_samples().get("mu", np.zeros(0)) if run.num_draws else np.zeros(0)
    np.testing.assert_array_equal(
        found, alone.get_samples(group_by_chain=True)["mu"][:, : run.num_draws].ravel()
    )


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_diagnostics_have_all_draws_after_an_error(error, monkeypatch, tmp_path):
    """Even one between the storing of a chunk and its diagnosis."""
    run, alone = toy_run(store=tmp_path / "a.run"), toy_run()
    run.extend(20)

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(run._monitor, "add", fail)
        with pytest.raises(error):
            run.extend(20)
    assert run.num_draws > 20
    alone.extend(run.num_draws)
    assert run.diagnostics().equals(alone.diagnostics())
    run.extend(20)
    alone.extend(20)
    assert run.diagnostics().equals(alone.diagnostics())
    run.close()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_after_a_chunk_was_stored(error, monkeypatch, tmp_path):
    """The state goes on from the draws that are stored, and none is made twice."""
    run, alone = toy_run(store=tmp_path / "a.run"), toy_run()
    run.extend(20)
    append = type(run._draws).append

    def append_and_fail(*args):
        append(*args)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(type(run._draws), "append", append_and_fail)
        with pytest.raises(error):
            run.extend(20)
    run.extend(10)
    alone.extend(run.num_draws)
    np.testing.assert_array_equal(run.get_samples()["mu"], alone.get_samples()["mu"])
    assert run.diagnostics().equals(alone.diagnostics())
    run.close()


# ---------------------------------------------------------------------------------------------
# Going on with NumPyro's MCMC
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "num_chains"), [("toy", 1), ("toy", 3), ("hmc", 3)])
def test_mcmc_goes_on_where_a_run_is(num_chains, name):
    kernel, data = {"toy": (Autoregressive(), (DATA,)), "hmc": (short_steps(normal), ())}[name]
    run = Run(kernel, *data, key=random.key(0), num_warmup=3, num_chains=num_chains, burn_in=0.0)
    run.extend(12)
    mcmc = run.as_mcmc()
    mcmc.post_warmup_state = mcmc.last_state
    mcmc.run(mcmc.post_warmup_state.rng_key, *data)
    run.extend(12)
    for site, x in mcmc.get_samples(group_by_chain=True).items():
        expected = run.get_samples(group_by_chain=True)[site][:, 12:]
        np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)
