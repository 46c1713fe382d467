"""Stores that are read without their kernel and data, also where they are damaged."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers.fabricated import (
    fabricated_links_mcmc,
    fabricated_mcmc,
    fabricated_partition_mcmc,
    fabricated_pool_mcmc,
    fabricated_weights_mcmc,
)
from helpers.no_warnings import no_warnings
from helpers.toy_kernel import Autoregressive
from jax import random
from numpyro.infer import Gibbs

from numpyro_rankings import (
    Rankings,
    Run,
    StoreError,
    diagnostics_table,
    open_run,
    to_inference_data,
)
from numpyro_rankings.infer import SliceGibbs
from numpyro_rankings.posterior.diagnostics import as_dataset, verdict
from numpyro_rankings.run import store as store_module
from numpyro_rankings.run.convert import SITES, STATS, as_groups
from numpyro_rankings.run.fingerprint import Fingerprint
from numpyro_rankings.run.kernels import KernelTraits
from numpyro_rankings.run.monitor import Facts, Monitor
from numpyro_rankings.run.store import Store

pytestmark = pytest.mark.usefixtures("programs")

DATA = np.array([0.3, -1.0, 2.0], np.float32)
LENGTH = 40
NAMES = list("abcdefg")  # of which g is never listed
LISTS = Rankings.from_orderings(
    [[0, 1, 2], [2, 1], [1, 0, 2, 4], [2, 0], [5, 3]] * 3, num_items=7, items=NAMES
)
_NOBODY = 65534  # the user without rights, by custom


def toy_run(path, **settings):
    settings = {"num_warmup": 0, "store": path, **settings}
    return Run(Autoregressive(), DATA, key=random.key(1), **settings)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store in chunks of a few draws, and the draws of its run. Tests copy it."""
    path = tmp_path_factory.mktemp("stored") / "a.run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_CHUNK_BYTES", 320)  # 20 draws of mu, 10 of pair
        run = toy_run(path, burn_in=0.0)
        run.extend(LENGTH)
    draws = run.get_samples(group_by_chain=True)
    run.close()
    return path, draws


@pytest.fixture
def store(stored, tmp_path):
    return Path(shutil.copytree(stored[0], tmp_path / "a.run"))


def damage(file):
    """Change a byte in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def assert_same(first, second):
    assert set(first) == set(second)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_a_run_that_goes_on(tmp_path):
    """What is read is as it was when the store was opened, and what the run itself returns."""
    run = toy_run(tmp_path / "a.run", thinning=2, num_chains=6, superchains=3)
    run.extend(2 * 30)
    before = run.get_samples(group_by_chain=True), run.diagnostics(), run.verdict
    opened, first = open_run(tmp_path / "a.run"), run.first_draw
    run.extend(2 * 50)
    assert (opened.num_chains, opened.num_draws, opened.num_sweeps) == (6, 30, 60)
    assert (opened.first_draw, opened.seconds) == (first, 0.0)
    assert_same(opened.get_samples(group_by_chain=True), before[0])
    assert opened.get_samples()["pair"].shape == (6 * (30 - first), 2)
    assert opened.get_samples(max_draws=5)["mu"].shape == (6 * 5,)
    assert opened.diagnostics().equals(before[1]) and opened.verdict == before[2]
    assert opened.find_damage() == []
    again, expected = open_run(tmp_path / "a.run"), run.to_inference_data()
    found = again.to_inference_data()
    for group in ("posterior", "sample_stats"):
        assert as_dataset(found[group]).equals(as_dataset(expected[group]))
    assert again.num_draws == 80
    run.close()


def test_long_runs_are_diagnosed_by_the_same_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(Monitor, "LEAST_KEPT", 64)
    run = toy_run(tmp_path / "a.run")
    run.extend(638)
    assert open_run(tmp_path / "a.run").diagnostics().equals(run.diagnostics())
    run.close()


def test_quantities_of_the_user(tmp_path):
    def square(samples):
        return {"square": samples["mu"] ** 2}

    run = toy_run(tmp_path / "a.run", quantities=square)
    run.extend(20)
    found = open_run(tmp_path / "a.run", quantities=square).diagnostics()
    assert list(found.index) == ["square"] and found.equals(run.diagnostics())
    run.close()


def test_what_a_run_stores_of_its_data(tmp_path):
    kernel, data = Autoregressive(), DATA
    run = Run(kernel, data, key=random.key(1), num_warmup=0, store=tmp_path / "a.run")
    assert run._draws.about["diagnosed"] == Facts.of(
        KernelTraits(kernel), (data,), {}
    )._asdict() | {"label_sites": ()}
    run.close()


def test_stored_items_named_by_numbers():
    """The order in the store is one of indices, which are never taken for names."""
    rankings = Rankings.from_orderings([["1", "2"], ["1"]], items=["3", "2", "1"])
    facts = Facts.of(KernelTraits(SliceGibbs()), (rankings,), {})
    found = Facts.from_json(facts.as_json(["center", "concentration"])).rankings
    assert found.items == rankings.items and found.orderings.tolist() == [[2, 1]]


def store_of(mcmc, path, **about):
    """Store a run that was made without a sampler."""
    draws = {"z": mcmc.get_samples(group_by_chain=True)}
    draws |= mcmc.get_extra_fields(group_by_chain=True)
    draws = jax.device_get(draws)
    facts = Facts.of(KernelTraits(mcmc.sampler), mcmc._args, {}).as_json(draws["z"])
    facts = json.loads(json.dumps(facts))
    kernel = {"class": Fingerprint().of_kernel(mcmc.sampler)["class"]}
    store = Store.create(path, {"kernel": kernel, "diagnosed": facts, **about})
    length = next(iter(draws["z"].values())).shape[1]
    store.append(as_groups(draws, "z"), {}, {"num_sweeps": length, "seconds": 1.0})
    store.close()
    return path


CASES = {
    "mallows": (lambda: fabricated_mcmc(LISTS), True),
    "population": (lambda: fabricated_mcmc(LISTS, num_components=1), True),
    "weights": (lambda: fabricated_weights_mcmc(LISTS, 3), True),
    "pool": (lambda: fabricated_pool_mcmc(LISTS), True),
    "partition": (lambda: fabricated_partition_mcmc([0, 0, 1, 2, 2]), False),
    "links": (lambda: fabricated_links_mcmc(np.zeros((5, 1)), np.ones((5, 5))), False),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_this_package(name, tmp_path):
    """The posterior and the diagnostics are those of the run with its data."""
    make, has_rankings = CASES[name]
    mcmc = make()
    path = store_of(mcmc, tmp_path / "a.run")
    expected = to_inference_data(mcmc, *([LISTS] if has_rankings else []), log_likelihood="auto")
    run = open_run(path, burn_in=0.0)
    found = run.to_inference_data()
    for group in ("posterior", "sample_stats"):
        assert as_dataset(found[group]).equals(as_dataset(expected[group]))
    attrs = {"kernel", "num_components"} & set(as_dataset(expected["posterior"]).attrs)
    for key in attrs:
        assert as_dataset(found["posterior"]).attrs[key] == expected["posterior"].attrs[key]
    table = diagnostics_table(expected)
    found = run.diagnostics().loc[table.index]
    numbers = found.drop(columns="note").to_numpy(), table.drop(columns="note").to_numpy()
    np.testing.assert_allclose(*numbers, rtol=1e-6)
    assert run.verdict == verdict(expected)


def as_block(mcmc, names, judge_sites=()):
    """Turn a run of a kernel into one of a model with it as a block, whose sites have names."""
    kernel, z = mcmc.sampler, mcmc._states["z"]
    own = [name for name in ("assignments", "links", "center", "concentration") if name in z]
    own += [name for name in ("weights", "unseen_weight") if name in z]
    sites = {name: names.get(name, name) for name in own}
    kernel._sites, kernel._judge_sites = sites, tuple(judge_sites)
    kernel._model = lambda *_, **__: None
    mcmc.sampler = Gibbs([(kernel, list(sites.values()))])
    mcmc._states = {"z": {sites[name]: z[name] for name in own} | {"scale": z["log_joint"]}}
    return mcmc


@pytest.mark.parametrize("name", CASES)
def test_models_of_which_a_kernel_is_a_block(name, tmp_path):
    make, has_rankings = CASES[name]
    mcmc = as_block(make(), {"assignments": "group", "center": "sigma"})
    run = open_run(store_of(mcmc, tmp_path / "a.run"), burn_in=0.0)
    rankings = [LISTS] if has_rankings else []
    expected = to_inference_data(mcmc, *rankings, log_likelihood=False)
    found = run.to_inference_data()
    assert as_dataset(found["posterior"]).equals(as_dataset(expected["posterior"]))
    for key in ("kernel", "sites", "num_components"):
        found_there = [as_dataset(x["posterior"]).attrs.get(key) for x in (found, expected)]
        assert found_there[0] == found_there[1]
    assert "scale" in found["posterior"] and len(found["posterior"]) > len(run.get_samples())


def test_blocks_of_which_a_part_is_not_known(tmp_path):
    """Of several blocks, with a slash, or with damage: the sites alone."""
    mcmc = as_block(fabricated_mcmc(LISTS), {"center": "sigma"})
    sites = set(mcmc.get_samples())
    path = store_of(mcmc, tmp_path / "damaged.run")
    damage(next(x for x in (path / SITES / "sigma" / "c").rglob("*") if x.is_file()))
    with pytest.warns(UserWarning, match="sigma left out"):
        posterior = as_dataset(open_run(path, burn_in=0.0).to_inference_data()["posterior"])
    assert set(posterior) == sites - {"sigma"}
    mcmc.sampler = Gibbs([*mcmc.sampler.blocks, *mcmc.sampler.blocks])
    assert Facts.of(KernelTraits(mcmc.sampler), mcmc._args, {}).block is None


@pytest.mark.parametrize("burn_in", ["auto", 0.5])
def test_events_of_the_burn_in_are_not_in_the_verdict(burn_in, tmp_path):
    """And all those after it are, whether the draws before it were read or not."""
    mcmc = fabricated_mcmc(LISTS, draws=30)
    overflow = np.zeros((2, 30), bool)
    overflow[:, :9] = overflow[:, 16:19] = True
    mcmc._states["overflow"] = overflow
    run = open_run(store_of(mcmc, tmp_path / "a.run"), burn_in=burn_in)
    assert run.first_draw == 15
    expected = "20.0% of the draws needed more clusters"
    assert any(reason.startswith(expected) for reason in run.verdict.reasons), run.verdict.reasons


@pytest.mark.parametrize("name", ["mallows", "weights"])
def test_stores_whose_root_is_damaged(name, tmp_path):
    """The items are not known: what needs them is left out."""
    path = store_of(CASES[name][0](), tmp_path / "a.run")
    (path / "zarr.json").write_text("{")
    run = open_run(path)
    quantities = {name.split("[")[0] for name in run.diagnostics().index}
    assert {"log_joint", "num_clusters", "largest_sizes", "partition_entropy"} <= quantities
    assert "kendall_to_reference" not in quantities and "top_weights" not in quantities
    posterior = as_dataset(run.to_inference_data()["posterior"])
    assert posterior["assignments"].sizes["draw"] == 15


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no such rights on Windows")
def test_a_folder_that_cannot_be_written(stored):
    folder = Path(tempfile.mkdtemp())
    path = Path(shutil.copytree(stored[0], folder / "a.run"))
    everything = [folder, path, *path.rglob("*")]
    for one in everything:
        one.chmod(0o555 if one.is_dir() else 0o444)
    is_root = os.geteuid() == 0
    try:
        if is_root:  # who may write anywhere
            os.seteuid(_NOBODY)
        try:
            with pytest.raises(PermissionError):
                (path / "file").write_text("")
            run = open_run(path, burn_in=0.0)
            assert_same(run.get_samples(group_by_chain=True), stored[1])
            assert run.find_damage() == []
        finally:
            if is_root:
                os.seteuid(0)
    finally:
        for one in everything:
            one.chmod(0o700)
        shutil.rmtree(folder)


def test_damage_is_told_and_the_rest_read(stored, tmp_path):
    """Each file is cut, or missing: sites are whole and right, or left out with a warning."""
    source, draws = stored
    files = sorted(file.relative_to(source) for file in source.rglob("*") if file.is_file())
    for i, name in enumerate(files):
        path = Path(shutil.copytree(source, tmp_path / str(i)))
        whole = (path / name).read_bytes()
        for content in (None, b"", whole[: len(whole) // 2], whole[:-1]):
            (path / name).unlink(missing_ok=True)
            if content is not None:
                (path / name).write_bytes(content)
            run = open_run(path, burn_in=0.0)
            is_chunk = name.name != "zarr.json" and name.parts[0] == SITES
            if not is_chunk:
                with no_warnings():
                    found = run.get_samples(group_by_chain=True)
                assert_same(found, draws)
            else:
                site, other = name.parts[1], {"mu": "pair", "pair": "mu"}[name.parts[1]]
                with pytest.warns(UserWarning, match=f"is damaged: {site} left out") as warned:
                    found = run.get_samples(group_by_chain=True)
                assert __file__ in [warning.filename for warning in warned]
                assert_same(found, {other: draws[other]})
                with pytest.warns(UserWarning, match=r"is damaged: \d+ of 40 draws of \w+ are"):
                    part = run.get_samples(group_by_chain=True, sites=[site])[site]
                length = {"mu": 20, "pair": 10}[site]
                first = length * int(name.parts[4])
                expected = np.delete(draws[site], np.s_[first : first + length], axis=1)
                np.testing.assert_array_equal(part, expected)
                if content is None:
                    with pytest.warns(UserWarning, match=f"{site} left out"):
                        assert {x.split("[")[0] for x in run.diagnostics().index} == {other}
                    with pytest.warns(UserWarning, match=f"{site} left out"):
                        posterior = run.to_inference_data()["posterior"]
                    assert set(as_dataset(posterior)) == {other}
            # the root has the metadata of all, and nothing of the older state is read
            is_harmless = name.name == "zarr.json" and len(name.parts) > 1
            is_harmless |= name.parts[:2] == ("states", str(1 - run._draws._turn))
            told = run.find_damage()
            assert bool(told) == (not is_harmless), (name, told)
            place = "/".join(name.parts[: 2 if name.parts[0] in (SITES, STATS) else 1])
            assert all(place.partition(".")[0] in line for line in told)


def test_what_is_damaged_is_named(store):
    damage(store / SITES / "pair" / "c" / "0" / "2" / "0")
    damage(next(x for x in (store / STATS / "energy" / "c").rglob("*") if x.is_file()))
    root = store / "zarr.json"
    root.write_text(root.read_text().replace('"thinning": 1', '"thinning": 3'))
    run = open_run(store)
    assert run.find_damage() == [
        "zarr.json is damaged: how the run was made is not known",
        "posterior/pair: draws 21 to 30 of 40 are damaged",
        "sample_stats/energy: draws 1 to 20 of 40 are damaged",
    ]
    assert run.num_chains == 4
    (store / SITES / "mu" / "zarr.json").write_text("{")
    run = open_run(store)
    assert "posterior/mu: its metadata are damaged" in run.find_damage()
    with pytest.warns(UserWarning, match="pair left out"), pytest.raises(StoreError) as error:
        run.get_samples()
    assert str(error.value).endswith("is damaged: of no site all draws are whole")


def test_uncommitted_draws_are_not_read_where_the_root_is_lost(store, stored):
    """Arrays that a killed process has made longer, and not yet written."""
    import zarr

    zarr.open_array(store / SITES / "mu", mode="r+").resize((4, LENGTH + 7))
    (store / "zarr.json").unlink()
    run = open_run(store, burn_in=0.0)
    assert run.num_draws == LENGTH
    assert_same(run.get_samples(group_by_chain=True), stored[1])


@pytest.mark.parametrize("part", ["posterior/pair/c/0/0/0", "sample_stats/energy"])
def test_damage_before_the_half_makes_the_burn_in_half(part, store):
    """No site is left out then, and the rest is that of a run with such a burn-in."""
    damage(next(x for x in (store / part, *(store / part).rglob("0")) if x.is_file()))
    run, half = open_run(store), open_run(store, burn_in=0.5)
    name = part.split("/")[1]
    expected = f"is damaged: draws of {name} in the first half; the burn-in is all of it"
    with pytest.warns(UserWarning, match=expected) as warned:
        table = run.diagnostics()
    assert len(warned) == 1
    with no_warnings():
        assert table.equals(half.diagnostics()) and run.verdict == half.verdict
        assert run.first_draw == LENGTH // 2
        samples = run.get_samples(group_by_chain=True)
        assert_same(samples, half.get_samples(group_by_chain=True))
    assert set(samples) == {"mu", "pair"}


def test_damage_before_and_after_the_half(store):
    damage(store / SITES / "pair" / "c" / "0" / "0" / "0")
    damage(store / SITES / "mu" / "c" / "0" / "1")
    run = open_run(store)
    with pytest.warns(UserWarning) as warned:
        table = run.diagnostics()
    assert [str(x.message).split(": ")[1].split(";")[0] for x in warned] == [
        "draws of pair in the first half",
        "mu left out",
    ]
    assert {x.split("[")[0] for x in table.index} == {"pair"}
    damage(store / SITES / "pair" / "c" / "0" / "3" / "0")
    with pytest.warns(UserWarning, match="mu, pair left out"), pytest.raises(StoreError):
        open_run(store).diagnostics()


def test_labels_that_are_damaged(tmp_path):
    """What labels index is then not diagnosed."""
    path = store_of(CASES["weights"][0](), tmp_path / "a.run")
    damage(next(x for x in (path / SITES / "assignments" / "c").rglob("*") if x.is_file()))
    run = open_run(path)
    with pytest.warns(UserWarning, match="assignments left out"):
        quantities = {name.split("[")[0] for name in run.diagnostics().index}
    assert "log_joint" in quantities and "top_weights" not in quantities
    with pytest.warns(UserWarning, match="assignments left out"):
        assert "weights" in run.to_inference_data()["posterior"]


@pytest.mark.parametrize(
    ("name", "damaged", "words", "lost"),
    [
        ("mallows", "concentration", "center left", {"kendall_to_reference"}),
        ("mallows", "cluster_sizes", "center left", {"kendall_to_reference"}),
        ("population", "center", "concentration left", {"population_concentration"}),
        ("weights", "assignments", "weights left", {"top_weights"}),
    ],
)
def test_what_is_not_diagnosed_without_a_damaged_site_is_told(name, damaged, words, lost, tmp_path):
    path = store_of(CASES[name][0](), tmp_path / "a.run")
    whole = {name.split("[")[0] for name in open_run(path).diagnostics().index}
    damage(next(x for x in (path / SITES / damaged / "c").rglob("*") if x.is_file()))
    with pytest.warns(UserWarning) as warned:
        quantities = {name.split("[")[0] for name in open_run(path).diagnostics().index}
    assert lost <= whole - quantities and "log_joint" in quantities
    told = [str(x.message) for x in warned if "is damaged" in str(x.message)]
    assert [text.split(": ")[1].split(";")[0] for text in told] == [
        f"{damaged} left out",
        f"{words} out of the diagnostics, without {damaged}",
    ]


def test_refusals(store, tmp_path):
    with pytest.raises(StoreError, match="is not a folder"):
        open_run(tmp_path / "none")
    (tmp_path / "other").mkdir()
    with pytest.raises(StoreError, match=r"is not the store of a run: zarr\.json cannot be read"):
        open_run(tmp_path / "other")
    with pytest.raises(ValueError, match='burn_in must be "auto" or a share from'):
        open_run(store, burn_in=1)
    with pytest.raises(ValueError, match="quantities must be a function"):
        open_run(store, quantities=3)
    with pytest.raises(ValueError, match="sites must be some of mu, pair, got tau"):
        open_run(store).get_samples(sites=["tau"])
    toy_run(tmp_path / "b.run").close()
    empty = open_run(tmp_path / "b.run")
    assert empty.get_samples() == {} and empty.num_draws == 0
    with pytest.raises(ValueError, match="there are 0 draws"):
        empty.diagnostics()
    with pytest.raises(ValueError, match="there are 0 draws"):
        empty.to_inference_data()
    root = store / "zarr.json"
    root.write_text(root.read_text().replace('"format": 2', '"format": 99'))
    with pytest.raises(StoreError, match="its format is 99"):
        open_run(store)
