"""Runs on several devices: chains and rankings split over them, in one process or several."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers import distributed_run, failing_run
from helpers.collectives import collectives_of, compile_sweep
from helpers.enumeration import MallowsPosterior, discrepancies
from helpers.ranking_kernels import KERNELS, LISTS, NU, R, assert_same_draws
from helpers.shared_programs import shared_programs
from helpers.toy_kernel import Autoregressive
from jax.sharding import Mesh

from numpyro_rankings import Rankings, Run
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
)
from numpyro_rankings.run.processes import raise_in_all_processes

AXES = ("chains", "rankings")
DATA = np.array([0.3, -1.0, 2.0], np.float32)
FIVE = Rankings.from_orderings([*LISTS, LISTS[0]], num_items=4)
EIGHT = Rankings.from_orderings(LISTS * 2, num_items=4)
SPLIT = [
    "slice-parallel",
    "slice-parallel-births",
    "slice-finite-parallel",
    "slice-one-population",
    "plackett-luce",
    "plackett-luce-mixture",
    "plackett-luce-mixture-marginal",
    "gamma-process",
    "generalised-gamma-process",
    "dp-plackett-luce",
    "tempered-mallows",
    "tempered-plackett-luce",
]


def mesh_of(*shape, axes=("rankings",)):
    return Mesh(np.array(jax.devices()[: np.prod(shape)]).reshape(shape), axes)


def draws_of(kernel, rankings, mesh=None, sweeps=6, **settings):
    settings = {"num_chains": 2, "burn_in": 0.0, **settings}
    run = Run(kernel, rankings, key=jax.random.key(5), mesh=mesh, **settings)
    run.extend(sweeps)
    return run, run.get_samples(group_by_chain=True)


def test_rankings_over_devices(tmp_path):
    """Five rankings on two devices, with rows of count 0, and chains on two others."""
    kernel = PlackettLuceGibbs(num_components=2, alpha=1.0, num_marginal_steps=0)
    rng = np.random.default_rng(0)  # to search for a start takes long to compile
    labels, weights = rng.integers(0, 2, (2, 5)), rng.dirichlet(np.ones(4), (2, 2))
    start = {"init_params": {"assignments": labels, "weights": weights}}
    mesh = mesh_of(2, 2, axes=("chains", "rankings"))
    with shared_programs():  # on one device at first and in the end
        check_rankings_over_devices(kernel, mesh, tmp_path / "a.run", start)


def check_rankings_over_devices(kernel, mesh, store, start):
    _, expected = draws_of(kernel, FIVE, sweeps=1, **start)
    run, found = draws_of(kernel, FIVE, mesh, sweeps=1, store=store, **start)
    assert run._state.z["assignments"].shape == (2, 16)
    assert {x.data.shape for x in run._state.z["assignments"].addressable_shards} == {(1, 8)}
    np.testing.assert_array_equal(found["assignments"], expected["assignments"])
    np.testing.assert_array_equal(found["cluster_sizes"], expected["cluster_sizes"])
    run.close()
    resumed = Run.resume(store, kernel, FIVE, burn_in=0.0, **start)
    resumed.extend(1)
    last = resumed.get_samples(group_by_chain=True)
    np.testing.assert_array_equal(last["assignments"][:, 0], found["assignments"][:, 0])
    assert last["cluster_sizes"].sum(-1).tolist() == [[5, 5], [5, 5]]


@pytest.mark.parametrize(
    "kernel, settings, words",
    [
        (SliceGibbs, {}, "cannot split rankings"),
        (lambda: BetaGibbs(num_components=1), {}, "cannot split rankings"),
        (PlackettLuceGibbs, {"mesh": mesh_of(2, axes=("rows",))}, "axes of the mesh"),
        (PlackettLuceGibbs, {"devices": jax.devices()[:2]}, "cannot both be given"),
    ],
    ids=["one by one", "beta", "axis", "devices"],
)
def test_refusals(kernel, settings, words):
    with pytest.raises(ValueError, match=words):
        draws_of(kernel(), FIVE, **{"mesh": mesh_of(2), **settings})


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLIT)
def test_draws_are_those_of_one_device(name):
    _, expected = draws_of(KERNELS[name](), EIGHT)
    for mesh in (mesh_of(4), mesh_of(2, 2, axes=("chains", "rankings"))):
        run, found = draws_of(KERNELS[name](), EIGHT, mesh)
        for field in expected:
            assert_same_draws(
                {field: found[field].swapaxes(0, 1)}, {field: expected[field].swapaxes(0, 1)}
            )
        assert run.as_mcmc().last_state.z["log_joint"].shape == (2,)


def conjugate(theta, left):
    stage = 3 - left
    log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
    return -NU * (R[stage] * theta + log_psi)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["births", "moves", "finite"])
def test_posterior_with_rows_of_count_0(name):
    """Five rankings on four devices, with eleven rows of count 0, against enumeration."""
    settings = {
        "births": {"num_births": 2, "max_clusters": 24, "num_marginal_steps": 0},
        "moves": {"num_births": 1, "max_clusters": 40, "num_marginal_steps": 3},
        "finite": {"num_components": 3, "num_births": 0, "num_marginal_steps": 0},
    }[name]
    kernel = SliceGibbs(1.5, NU, list(R), assignment="parallel", **settings)
    _, draws = draws_of(kernel, FIVE, mesh_of(4), sweeps=3000, num_chains=32)
    exact = MallowsPosterior([*LISTS, LISTS[0]], 4, conjugate)
    kept = {name: x[:, 200:] for name, x in draws.items()}
    expected = exact.expectations(1.5, settings.get("num_components"))
    z = discrepancies(exact.indicators(kept), expected)
    assert max(z.values()) < 6.0, z


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plackett-luce-mixture", "dp-plackett-luce", "plackett-luce"])
def test_rows_of_count_0_change_no_posterior(name):
    """Five rankings on four devices and on one, whose posterior is enumerated elsewhere."""
    means, errors = [], []
    for mesh in (None, mesh_of(4)):
        _, draws = draws_of(KERNELS[name](), FIVE, mesh, sweeps=3000, num_chains=32)
        quantities = [draws["log_joint"], draws["log_joint"] ** 2]
        if "assignments" in draws:
            labels = draws["assignments"]
            together = labels[..., :, None] == labels[..., None, :]
            quantities += list(np.moveaxis(together[..., *np.triu_indices(5, 1)], -1, 0))
        else:
            quantities += list(np.moveaxis(draws["weights"], -1, 0))
        by_chain = np.stack([x[:, 200:].mean(1) for x in quantities])
        means.append(by_chain.mean(1))
        errors.append(by_chain.std(1, ddof=1) / np.sqrt(32))
    z = np.abs(means[0] - means[1]) / np.hypot(*errors)
    assert z.max() < 5.0, z


# -- what the devices tell one another -----------------------------------------------------------

LONG = [np.roll(np.arange(20), 6 * i)[:6].tolist() for i in range(10)]
# kernel: collectives of a sweep, and the most bytes that they may sum up
TABLE = {
    "PlackettLuceGibbs": (PlackettLuceGibbs, 5, 500),
    "PlackettLuceGibbs, 26": (lambda: PlackettLuceGibbs(num_components=26), 7, 10_000),
    "GammaProcessPlackettLuceGibbs": (GammaProcessPlackettLuceGibbs, 5, 500),
    "DPPlackettLuceGibbs": (lambda: DPPlackettLuceGibbs(max_clusters=64), 9, 25_000),
    "SliceGibbs, one population": (lambda: SliceGibbs(num_components=1), 5, 2_000),
    "SliceGibbs, parallel": (lambda: SliceGibbs(assignment="parallel"), 11, 150_000),
}


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=pytest.mark.slow if i else ()) for i, k in enumerate(TABLE)]
)
def test_collectives(name):
    """Ten million rankings: a sweep sends a few sums, never labels or data."""
    make, most, most_bytes = TABLE[name]
    kernel = make()
    by_devices = {d: compile_sweep(kernel, 10**7, d, LONG, 20) for d in (2, 4)}
    collectives = collectives_of(by_devices[4])
    assert 0 < len(collectives) <= most, collectives
    assert sum(x.num_bytes for x in collectives) <= most_bytes, collectives
    # gathered are the partial sums of the devices only
    assert all(x.num_bytes <= 16 for x in collectives if x.operation != "all-reduce"), collectives
    memory = {d: x.memory_analysis() for d, x in by_devices.items()}
    for kind in ("argument_size_in_bytes", "temp_size_in_bytes"):
        half, quarter = (getattr(memory[d], kind) for d in (2, 4))
        assert quarter < 0.51 * half, (kind, half, quarter)


def test_gathered_labels_are_seen():
    """What the test before asks is not met where labels are gathered."""
    mesh = mesh_of(4)
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rankings"))
    labels = jax.ShapeDtypeStruct((10**6,), np.int32, sharding=sharding)
    compiled = jax.jit(lambda x: x[x], out_shardings=sharding).lower(labels).compile()
    assert sum(x.num_bytes for x in collectives_of(compiled)) >= 10**6


# -- several processes ---------------------------------------------------------------------------


def lengths_of(found):
    return tuple(int(found[f"{axis} until, num_draws"]) for axis in AXES)


def start_processes(module, arguments):
    """Start a script of the helpers once for each of these lists of arguments, after a port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(module.__file__)
    path = f"{script.parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return [
        subprocess.Popen(
            [sys.executable, str(script), str(port), *map(str, own)],
            env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for own in arguments
    ]


@pytest.mark.parametrize(
    "mine, words, raised, message",
    [
        (None, "", None, ""),
        (OSError(28, "full"), "", OSError, "full"),
        (None, "OSError: [Errno 28] full", RuntimeError, "stopped in process 1: OSError: .*full$"),
        (None, "KeyboardInterrupt", KeyboardInterrupt, "was interrupted in process 1$"),
        (ValueError("mine"), "OSError: full", ValueError, "mine"),
    ],
)
def test_what_one_process_raises(monkeypatch, mine, words, raised, message):
    """All others raise it too, with its words; an error of their own is theirs."""
    sent = []

    def gather(row):
        sent.append(row.tobytes().rstrip(b"\0").decode())
        other = np.frombuffer(words.encode().ljust(len(row), b"\0"), np.uint8)
        return np.stack([row, other])

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr("jax.experimental.multihost_utils.process_allgather", gather)

    @raise_in_all_processes()
    def work():
        if mine is not None:
            raise mine

    if raised is None:
        work()
    else:
        with pytest.raises(raised, match=message):
            work()
    name = type(mine).__name__
    assert sent == ["" if mine is None else f"{name}: {mine}"]


@pytest.mark.slow
@pytest.mark.parametrize("case", failing_run.CASES)
def test_one_process_fails(case, tmp_path):
    """The other one ends too, and each says why."""
    failing, mine, others = failing_run.CASES[case]
    if case == "exists":
        run = Run(Autoregressive(), DATA, key=jax.random.key(1), store=tmp_path / "a.run")
        run.extend(1)
        run.close()
    started = start_processes(failing_run, [(case, i, tmp_path / "a.run") for i in (0, 1)])
    try:
        for i, process in enumerate(started):
            _, errors = process.communicate()
            assert process.returncode not in (0, None)
            assert (mine if i == failing else others) in errors.strip().splitlines()[-1]
    finally:
        for process in started:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_processes(processes, tmp_path):
    """Four devices in several processes: all draw what one alone draws; the first one stores it."""
    started = start_processes(distributed_run, [(i, processes, tmp_path) for i in range(processes)])
    try:
        for process in started:
            _, errors = process.communicate()
            assert process.returncode == 0, errors[-3000:]
    finally:  # the others would wait for one that failed
        for process in started:
            process.kill()
    expected = distributed_run.runs(lambda axes: mesh_of(4, axes=axes))
    alone = distributed_run.runs(lambda axes: None)["chains"]
    lengths = set()
    for i in range(processes):
        with np.load(tmp_path / f"{i}.npz") as found:
            for name in alone:
                # sums of one device are the same bits; those of several are added in any order
                chains = found[f"chains, {name}"]
                np.testing.assert_array_equal(chains, expected["chains"][name])
                np.testing.assert_allclose(chains, alone[name], rtol=1e-5, atol=1e-5)
                if i == 0:
                    np.testing.assert_allclose(
                        found[f"rankings, {name}"],
                        expected["rankings"][name],
                        rtol=1e-3,
                        atol=1e-4,
                    )
            for axis in AXES:
                table = expected[f"{axis} table"]["mean"]
                np.testing.assert_allclose(found[f"{axis} table, mean"], table, rtol=1e-3)
            assert 10 <= found["gathered, longest"] < 4 * max(lengths_of(found))  # not the buffers
            lengths.add(lengths_of(found))
    assert len(lengths) == 1  # all of them stopped at the same draw
    assert not (tmp_path / "chains.run").exists()
    rankings = Rankings.from_orderings(LISTS * 2, num_items=4)
    run = Run.resume(tmp_path / "rankings.run", KERNELS["plackett-luce-mixture"](), rankings)
    assert run.num_draws == lengths.pop()[1]
    run.close()
