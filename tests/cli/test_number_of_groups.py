"""``fit`` on ladders: its kernels, and the number of groups that ``--components auto`` chooses."""

import contextlib
import functools
import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr
from helpers.command_line import SOI, interrupting_after, rows_of, run, without_page

from numpyro_rankings import Rankings, read_rankings
from numpyro_rankings.cli import fit
from numpyro_rankings.cli.fit_options import parse_options
from numpyro_rankings.cli.interim import InterimPage, TriedNumber
from numpyro_rankings.cli.models import AUTO, MODELS
from numpyro_rankings.cli.options import RunOptions
from numpyro_rankings.cli.program import make_parser
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.cli.session import RunSession, TooFewDrawsError
from numpyro_rankings.infer import TemperedMixture
from numpyro_rankings.report import group_path as module
from numpyro_rankings.report.group_path import GroupChoice, TooLittleTimeError, choose_number

pytestmark = pytest.mark.usefixtures("usual_signals_of_module")


def model_of(options):
    return parse_options(make_parser().parse_args(["fit", *shlex.split(options)])).model


WEIGHTS = "--model plackett-luce --sampler tempered"


@pytest.mark.parametrize(
    ("options", "family", "number", "kappa", "size"),
    [
        ("--components 3 --sampler tempered", "mallows", 3, None, None),
        ("--components 1 --sampler tempered", "mallows", 1, None, None),
        ("--components 4 --sampler tempered --alpha 2", "mallows", 4, 0.5, None),
        ("--components 2 --sampler tempered --effective-size 9.5", "mallows", 2, None, 9.5),
        (WEIGHTS, "plackett-luce", 1, None, None),
        (f"{WEIGHTS} --components 2 --alpha 3 --shape 2", "plackett-luce", 2, 1.5, None),
        (f"{WEIGHTS} --components 2 --effective-size 20", "plackett-luce", 2, None, 20),
    ],
)
def test_kernels_of_ladders(options, family, number, kappa, size):
    model = model_of(options)
    kernel = MODELS[model.model].kernel(model)
    assert isinstance(kernel, TemperedMixture) and kernel.ranking_family.name == family
    assert kernel.num_components == number
    assert (kernel._share_concentration, kernel._effective_size) == (kappa, size)
    words = MODELS[model.model].in_words(model)
    assert ("as if there were" in words) == (size is not None)


def test_auto_is_on_ladders():
    for options in ("--components auto", "--model plackett-luce --components AUTO"):
        model = model_of(options)
        assert (model.components, model.sampler) == (AUTO, "tempered")
        # neither those of a chain: α is that of the ladder, and 8 numbers are tried
        assert model.alpha is None and model.max_clusters is None
    assert model_of("--components auto --max-clusters 3").max_clusters == 3
    assert model_of("--components 2").sampler == "slice"
    assert model_of("--model plackett-luce").sampler is None


def test_the_number_that_is_asked_for_has_no_path():
    session = RunSession(RunOptions(), "command")
    model = model_of("--components 3 --sampler tempered")
    assert fit.choose_components(session, model, None) == (model, None)


# ---------------------------------------------------------------------------------------------
# Whole runs
# ---------------------------------------------------------------------------------------------

AUTO_FIT = ["fit", "small.soi", "--components", "auto", "--max-clusters", "2", "--no-progress"]
SHORT = ["--chains", "2", "--warmup", "10", "--draws", "40", "--thin", "1"]
QUICK = functools.partial(module.group_path, num_warmup=30, num_samples=30)
COLUMNS = "effective_size num_components probability log_evidence standard_error num_groups"


def raising(*_, **__):
    raise AssertionError("the path is run again")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory, one_program, usual_signals_of_module):
    """A folder with a run that was interrupted after its path was found, and its results."""
    folder = tmp_path_factory.mktemp("interrupted")
    (folder / "small.soi").write_text(SOI)
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        without_page(patch)
        patch.setattr(module, "group_path", QUICK)
        interrupting_after(4, patch)
        assert run(*AUTO_FIT, *SHORT, "--out", "out") == 130
    return folder


@pytest.fixture
def there(interrupted, folder, plain_page):
    """A copy of that folder, in which the test works."""
    shutil.copytree(interrupted, folder, dirs_exist_ok=True)
    return folder


def components_of(out="out"):
    with xr.open_dataset(f"{out}/posterior.nc", group="posterior", engine="h5netcdf") as data:
        return int(data.attrs["num_components"])


def test_path_csv(there):
    rows = rows_of("out/path.csv")
    assert list(rows[0]) == [*COLUMNS.split(), "agreed_size"]
    sizes = [row["effective_size"] for row in rows]
    assert len(rows) == 120 and len(set(sizes)) == 60
    assert [row["num_components"] for row in rows[:2]] == ["1", "2"]
    assert (float(sizes[0]), float(sizes[-1])) == (2, 40)
    table = np.array([float(row["probability"]) for row in rows]).reshape(60, 2)
    np.testing.assert_allclose(table.sum(1), 1, atol=1e-5)
    # the kept path says the same, and is what the number of components was chosen by
    path = xr.load_dataset("out.run/path.nc", engine="h5netcdf")
    np.testing.assert_allclose(path["probability"].values, table, rtol=1e-5)
    assert components_of() == choose_number(path).num_components


def test_a_resumed_run_has_the_path_that_it_began_with(there, monkeypatch, capsys):
    before, number = Path("out/path.csv").read_bytes(), components_of()
    monkeypatch.setattr(module, "group_path", raising)
    monkeypatch.setattr(InterimPage, "show_tried", raising)
    assert run(*AUTO_FIT, *SHORT, "--resume", "out") == 0
    assert Path("out/path.csv").read_bytes() == before and components_of() == number
    assert sorted(os.listdir()) == ["out", "small.soi"]
    assert "path.csv" in capsys.readouterr().out


@pytest.mark.parametrize("ends", ["by itself", "interrupted"])
def test_another_run_instead_leaves_no_path(there, monkeypatch, ends):
    number = components_of()
    monkeypatch.setattr(module, "group_path", raising)
    command = ["fit", "small.soi", "--components", number, "--sampler", "tempered", *SHORT]
    command += ["--out", "out", "--no-progress"]
    assert run(*command) == 2 and Path("out.run/path.nc").exists()
    if ends == "interrupted":
        interrupting_after(4, monkeypatch)
    assert run(*command, "--force") == (0 if ends == "by itself" else 130)
    assert not Path("out/path.csv").exists() and components_of() == number
    assert not Path("out.run/path.nc").exists()
    assert Path("out.run").exists() == (ends == "interrupted")
    assert Path("out.run/command.json").exists() == (ends == "interrupted")


def test_a_run_that_fails_before_its_first_sweep_keeps_the_path_of_the_other(there, monkeypatch):
    """What it was to replace is still there, and goes on."""
    kept = Path("out.run/path.nc").read_bytes()
    monkeypatch.setattr(module, "group_path", raising)
    with monkeypatch.context() as patch:
        patch.setattr(RunSession, "_advance", raising)
        with pytest.raises(AssertionError):
            run("fit", "small.soi", "--components", "2", *SHORT, "--out", "out", "--force")
    assert Path("out.run/path.nc").read_bytes() == kept
    assert run(*AUTO_FIT, *SHORT, "--resume", "out") == 0
    assert sorted(os.listdir()) == ["out", "small.soi"]


def test_the_path_of_another_run_is_not_taken(there, monkeypatch, capsys):
    """As if --force was killed when the first sweep of new data was stored, before their path."""
    old = Path("out.run/path.nc").read_bytes()
    Path("small.soi").write_text(SOI.replace("14: 1,2,3,4", "14: 4,1,3,2"))
    number = ["--components", components_of(), "--sampler", "tempered"]
    with monkeypatch.context() as patch:
        interrupting_after(4, patch)
        command = ["fit", "small.soi", *number, *SHORT, "--out", "out", "--no-progress", "--force"]
        assert run(*command) == 130
    Path("out.run/path.nc").write_bytes(old)
    monkeypatch.setattr(module, "group_path", raising)
    assert run(*AUTO_FIT, *SHORT, "--resume", "out") == 2
    assert "was not begun with --components auto" in capsys.readouterr().err


def test_a_run_without_a_path_is_resumed_by_its_number(there, monkeypatch, capsys):
    """As one that was begun so, or was killed when its first sweep was stored."""
    os.remove("out.run/path.nc")
    monkeypatch.setattr(module, "group_path", raising)
    assert run(*AUTO_FIT, *SHORT, "--resume", "out") == 2
    assert "was not begun with --components auto" in capsys.readouterr().err
    number = ["--components", components_of(), "--sampler", "tempered"]
    assert run("fit", "small.soi", *number, *SHORT, "--resume", "out", "--no-progress") == 0
    assert sorted(os.listdir()) == ["out", "small.soi"]


def test_a_run_on_ladders_that_ends_by_itself_is_resumed(folder, monkeypatch, one_program):
    """Its warm-up is that of the ladder, and no length that was asked for."""
    without_page(monkeypatch)
    (folder / "small.soi").write_text(SOI)
    command = ["fit", "small.soi", "--components", "2", "--sampler", "tempered", "--chains", "2"]
    command += ["--no-progress"]
    with monkeypatch.context() as patch:
        interrupting_after(8, patch)
        assert run(*command, "--out", "out") == 130
    assert run(*command, "--resume", "out", "--rhat", "9", "--ess", "10") == 0
    assert sorted(os.listdir()) == ["out", "small.soi"]


def test_a_fit_without_time_for_its_chains_shows_the_ladders(
    folder, monkeypatch, clock, capsys, one_program
):
    """Those that found the number have more draws; with further time there are the chains."""
    without_page(monkeypatch)
    (folder / "small.soi").write_text(SOI)
    monkeypatch.setattr(module, "group_path", QUICK)
    show = Progress.show

    def show_and_wait(self, run):
        show(self, run)
        clock.step(400)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "show", show_and_wait)
        assert run(*AUTO_FIT, "--minutes", "5", "--chains", "3", "--out", "out") == 0
    said = capsys.readouterr().err
    assert "stopped after 5 minutes; the draws do not suffice: they are of the 2 chains" in said
    assert "by which the number was found, after 60 sweeps of each chain. To go on" in said
    with xr.open_dataset("out/posterior.nc", group="posterior", engine="h5netcdf") as data:
        assert (data.sizes["chain"], data.sizes["draw"]) == (2, 30)
        assert data["assignments"].shape == (2, 30, 40)
    with xr.open_dataset("out/posterior.nc", engine="h5netcdf") as data:
        assert data.attrs["run"] == "2 chains, each of 60 sweeps, of which the last 30 are used"
    assert sum(float(row["size"]) for row in rows_of("out/clusters.csv")) == pytest.approx(40)
    command = shlex.split(said.strip().splitlines()[-1])[1:]
    assert "--resume" in command and command[command.index("--minutes") + 1] == "10"
    monkeypatch.setattr(module, "group_path", raising)
    assert run(*command, "--rhat", "9", "--ess", "10") == 0
    with xr.open_dataset("out/posterior.nc", group="posterior", engine="h5netcdf") as data:
        assert data.sizes["chain"] == 3
    assert sorted(os.listdir()) == ["out", "small.soi"]


def test_the_ladders_are_spread_over_devices(folder, monkeypatch):
    """And leave time for the chains, of which there are four."""
    (folder / "small.soi").write_text(SOI)
    seen = {}

    def note(*_, **settings):
        seen.update(settings)
        raise TooLittleTimeError

    monkeypatch.setattr(module, "group_path", note)
    assert run(*AUTO_FIT, "--minutes", "3") == 2
    assert (seen["minutes"], seen["chains_after"], seen["num_ladders"]) == (3, 4, 2)
    assert seen["devices"] == jax.devices()[:2]
    of_chains = jax.random.key(RunOptions().plan().seed)  # has random numbers of its own
    assert seen["key"] != of_chains


def test_ladders_as_if_there_were_fewer_rankings_are_not_shown_instead(monkeypatch):
    """Nor those of another number: the chains are of something else."""
    session = RunSession(RunOptions(), "command")
    monkeypatch.setattr("numpyro_rankings.cli.number._find", lambda *_: ("path", {2: "ladders"}))
    for number, size, shown in ((2, None, "ladders"), (2, 9.0, None), (3, None, None)):
        choice = GroupChoice(number, number, None, size)
        monkeypatch.setattr(module, "choose_number", lambda _, choice=choice: choice)
        session.ladders = None
        options, _ = fit.choose_components(session, model_of("--components auto"), None)
        assert (options.components, session.ladders) == (number, shown)


def test_what_is_refused_is_refused_before_the_path(folder, monkeypatch, capsys):
    (folder / "small.soi").write_text(SOI)
    monkeypatch.setattr(module, "group_path", raising)
    assert run(*AUTO_FIT, "--ess", "1e6") == 2
    assert "--ess must be at most" in capsys.readouterr().err
    assert run(*AUTO_FIT, "--alpha", "2") == 2
    assert "--alpha goes with a number of --components" in capsys.readouterr().err

    def too_late(*_, **__):
        raise TooLittleTimeError

    monkeypatch.setattr(module, "group_path", too_late)
    assert run(*AUTO_FIT, "--minutes", "0.5") == 2
    said = capsys.readouterr().err
    assert " 0.5 minutes did not suffice for one component" in said
    fewer, process = re.search(r"such as --sample (\d+)(.*)", said).groups()
    number = read_rankings("small.soi").num_rankings
    assert 2 <= int(fewer) < number
    assert process == ", or a Dirichlet process, --components dp"
    # survey weights are not for a process
    rows = "\n".join(f"{k},{'a,b,c' if k % 3 else 'c,b,a'},{1 + k % 2}" for k in range(number))
    (folder / "t.csv").write_text(f"id,choice1,choice2,choice3,w\n{rows}\n")
    weighted = ["fit", "t.csv", "--judge", "id", "--weight", "w", "--minutes", "0.5"]
    assert run(*weighted) == 2
    said = capsys.readouterr().err
    assert said.strip().endswith(f"or fit fewer judges, such as --sample {number // 2}")


@pytest.mark.parametrize(("number", "fewer"), [(3, 2), (40, 20), (9000, 2000)])
def test_fewer_judges_are_proposed_where_there_is_little_time(monkeypatch, number, fewer):
    def too_late(*_, **__):
        raise TooLittleTimeError

    monkeypatch.setattr(module, "group_path", too_late)
    session = RunSession(RunOptions(), "command")
    rankings = Rankings.from_orderings([[0, 1, 2]], num_items=3, counts=[number])
    with pytest.raises(TooFewDrawsError, match=rf"such as --sample {fewer}, or a Dirichlet"):
        fit.choose_components(session, model_of("--components auto"), rankings)


def test_the_page_shows_the_most_probable_number_so_far(monkeypatch):
    def found(*_, after_number, **__):
        for tried, evidence in enumerate((-30.0, -10.0, -20.0), 1):
            after_number(tried, evidence)
        raise TooLittleTimeError

    monkeypatch.setattr(module, "group_path", found)
    monkeypatch.setattr(
        "numpyro_rankings.posterior.ladders.log_evidence", lambda x: SimpleNamespace(value=x)
    )
    shown = []

    def show(_, ladders, most):
        shown.append((*TriedNumber.of(ladders), len(ladders), most))

    monkeypatch.setattr(RunSession, "show_tried", show)
    session = RunSession(RunOptions(), "command")
    rankings = Rankings.from_orderings([[0, 1, 2]], num_items=3)
    with pytest.raises(TooFewDrawsError):
        fit.choose_components(session, model_of("--components auto"), rankings)
    assert shown == [(1, -30.0, 1, 8), (2, -10.0, 2, 8), (2, -10.0, 3, 8)]


def test_an_interrupt_during_the_path_leaves_nothing(folder, monkeypatch, capsys, one_program):
    (folder / "small.soi").write_text(SOI)
    say = RunSession.say

    def say_and_press(self, what):
        say(self, what)
        if what.startswith("1 of at most 2 components"):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(RunSession, "say", say_and_press)
    monkeypatch.setattr(module, "group_path", QUICK)
    assert run(*AUTO_FIT, *SHORT, "--out", "out") == 130
    shown = capsys.readouterr().err
    assert "interrupted, nothing was written" in shown and "Traceback" not in shown
    assert os.listdir() == ["small.soi"]


@pytest.mark.slow
def test_the_number_of_groups_of_weights(folder, monkeypatch, one_program):
    """The whole of it, with its page."""
    (folder / "small.soi").write_text(SOI)
    monkeypatch.setattr(module, "group_path", QUICK)
    assert run(*AUTO_FIT, *SHORT, "--model", "plackett-luce", "--out", "out") == 0
    files = ["assignments.csv", "clusters.csv", "path.csv", "posterior.nc", "report.html"]
    assert set(files) <= set(os.listdir("out")) and not Path("out.run").exists()
    assert len(rows_of("out/path.csv")) == 120
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "How many groups, and at which resolution" in page and "Plackett" in page


@pytest.mark.slow
def test_each_of_several_files_has_its_path(folder, monkeypatch, plain_page, one_program):
    """Also those that are resumed."""
    (folder / "a.soi").write_text(SOI)
    (folder / "b.soi").write_text(SOI.replace("12: 4,3,2", "12: 1,2,4"))
    command = ["fit", "a.soi", "b.soi", "--components", "auto", "--max-clusters", "1"]
    command += [*SHORT, "--no-progress"]
    show = Progress.show

    def show_and_press(self, run):
        show(self, run)
        if Path("out/b.run/path.nc").exists():
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(module, "group_path", QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "show", show_and_press)
        assert run(*command, "--out", "out") == 130
    monkeypatch.setattr(module, "group_path", raising)
    assert run(*command, "--resume", "out") == 0
    paths = [rows_of(f"out/{name}/path.csv") for name in "ab"]
    assert [len(path) for path in paths] == [60, 60] and paths[0] != paths[1]
    assert [row["ended"] for row in rows_of("out/fits.csv")] == ["full length"] * 2
    assert sorted(os.listdir("out")) == ["a", "b", "fits.csv", "fits.json"]


@pytest.mark.slow
def test_a_run_as_if_there_were_fewer_rankings(folder, monkeypatch, one_program):
    (folder / "small.soi").write_text(SOI)
    command = ["fit", "small.soi", "--components", "2", "--sampler", "tempered", "--no-progress"]
    assert run(*command, *SHORT, "--effective-size", "10", "--out", "out") == 0
    with xr.open_dataset("out/posterior.nc", group="sample_stats", engine="h5netcdf") as stats:
        sizes = stats["rung_effective_size"]
        assert sizes.dims == ("chain", "draw", "rung")
        np.testing.assert_allclose(sizes[..., -1], 10, rtol=1e-5)
        np.testing.assert_allclose(stats["rung_power"][..., -1], 0.25, rtol=1e-5)
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "as if there were 10 rankings" in page
    # the sizes are those of all rankings
    assert sum(float(row["size"]) for row in rows_of("out/clusters.csv")) == pytest.approx(40)


@pytest.mark.slow
def test_the_evidence_from_the_shell(folder, monkeypatch, capsys, one_program):
    (folder / "small.soi").write_text(SOI)
    monkeypatch.setattr("numpyro_rankings.cli.compare.use_compilation_cache", lambda: None)
    options = ["--components", "1-2", "--models", "mallows", "--chains", "2", "--no-progress"]
    assert run("compare", "small.soi", "--evidence", *options, "--out", "out") == 0
    two, one = rows_of("out/comparison.csv")  # the best first
    assert float(one["se_evidence"]) < 1 and float(two["se_evidence"]) < 1
    assert float(one["log_evidence"]) < float(two["log_evidence"]) < 0
    shown = capsys.readouterr().out
    assert f"{float(two['log_evidence']):.1f} ±" in shown
    assert "Mallows (2 groups) has the largest evidence." in shown


def test_one_group_has_no_blocs(capsys):
    """Blocs that are asked for do not spoil a run that finds a single population."""
    findings = SimpleNamespace(reference=None)
    assert fit._with_blocs(findings, None, 2) is findings
    assert "note: no blocs are described: there is one group" in capsys.readouterr().err
