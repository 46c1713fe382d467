"""What commands never do: lose draws, or remove what is not theirs. A hostile user's tests."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
from helpers.command_line import (
    GAUSSIAN,
    POINTS,
    SOI,
    interrupting_after,
    weights_of_results,
    weights_of_store,
)

from numpyro_rankings import Rankings
from numpyro_rankings.cli import cluster, fit, interim, main, program, results, run_program
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.cli.session import RunSession
from numpyro_rankings.infer import PlackettLuceGibbs
from numpyro_rankings.run import Run, StoreError
from numpyro_rankings.run.lock import lock_of
from numpyro_rankings.run.loop import SweepLoop
from numpyro_rankings.run.store import Store

pytestmark = pytest.mark.usefixtures("usual_signals", "one_program", "plain_page")

TWO = ["--chains", "2", "--warmup", "8", "--draws"]
MODEL = ["fit", "small.soi", "--model", "plackett-luce"]
FIT = [*MODEL, *TWO, "60"]
TABLE = '{\n "format": 1, "files": []}'
FORCE = ["--out", "out", "--force"]
SEVERAL = ["fit", "a.soi", "b.soi", "--model", "plackett-luce", *TWO, "60"]


@pytest.fixture(autouse=True)
def folder(folder):
    for name in ("small.soi", "a.soi", "b.soi"):
        (folder / name).write_text(SOI)
    (folder / "points.csv").write_text(POINTS)
    return folder


@pytest.fixture
def finished(undisturbed, folder):
    """The results of a run, in the folder out."""
    shutil.copytree(undisturbed, folder / "out")


@pytest.fixture
def stored():
    """An interrupted run in out.run, and its draws."""
    with pytest.MonkeyPatch.context() as patch:
        interrupting_after(4, patch)
        assert main([*FIT, "--out", "out"]) == 130
    for name in os.listdir("out"):
        os.remove(f"out/{name}")
    os.rmdir("out")
    return weights_of_store()


def outputs():
    """What there is of the commands, rests of what they write included."""
    return sorted(name for name in os.listdir() if "out" in name)


def pressing(patch, place, name, number, times):
    """Send a signal as often when a function is called, the third time when the run is closed."""
    function, close, pressed = getattr(place, name), Run.close, 0

    def press(*arguments, **options):
        nonlocal pressed
        while pressed < min(times, 2):
            pressed += 1
            signal.raise_signal(number)
        return function(*arguments, **options)

    def press_again(run):
        nonlocal pressed
        if 2 <= pressed < times:
            pressed += 1
            signal.raise_signal(number)
        close(run)

    patch.setattr(place, name, press)
    patch.setattr(Run, "close", press_again)


# when the signals come: in a chunk, or when the run has ended
CHUNK, REPORT, END = (Store, "append"), (fit, "_summarise"), (fit, "write_assigned")


# the others are slow tests: one handler heeds both signals, see ended_by_signals
QUICK = {(CHUNK, 1, signal.SIGHUP), (REPORT, 2, signal.SIGTERM), (END, 3, signal.SIGHUP)}
INTERRUPTS = [
    pytest.param(
        when,
        times,
        number,
        id=f"{name}-{times}-{number}",
        marks=[] if number == signal.SIGINT or (when, times, number) in QUICK else pytest.mark.slow,
    )
    for name, when in {"chunk": CHUNK, "report": REPORT, "end": END}.items()
    for times in (1, 2, 3)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
]


@pytest.mark.parametrize(("when", "times", "number"), INTERRUPTS)
def test_interrupts(alone, capfd, monkeypatch, when, times, number):
    """The first writes the report; only Ctrl-C after that leaves it unwritten. Nothing is lost."""
    with monkeypatch.context() as patch:
        if when is CHUNK:
            # when there are draws enough for a report
            show, is_on = Progress.show, []

            def show_and_press(progress, run):
                show(progress, run)
                if run.num_draws >= 16 and not is_on:
                    is_on.append(True)
                    pressing(patch, *when, number, times)

            patch.setattr(Progress, "show", show_and_press)
        else:
            pressing(patch, *when, number, times)
        assert main([*FIT, "--out", "out"]) == 128 + number
    message = capfd.readouterr().err
    assert "Traceback" not in message
    if number == signal.SIGINT and times > 1:
        assert outputs() == ["out.run"]
        assert "interrupted, no results were written; out.run keeps" in message
    elif when is CHUNK:
        assert outputs() == ["out", "out.run"]
        np.testing.assert_array_equal(weights_of_results("out"), weights_of_store())
        assert re.search(r"interrupted, after \d+ sweeps of each chain\. To go on:", message)
    else:
        assert outputs() == ["out"]
        assert "interrupted after the end of the run: the results are complete" in message
        np.testing.assert_array_equal(weights_of_results("out"), alone)
        return
    again = shlex.split(message.strip().splitlines()[-1])
    assert again[-2:] == ["--resume", "out"]
    assert main(again[1:]) == 0
    np.testing.assert_array_equal(weights_of_results("out"), alone)
    assert outputs() == ["out"]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_interrupts_of_cluster(capfd, monkeypatch, times):
    command = [*GAUSSIAN, *TWO, "20"]
    with monkeypatch.context() as patch:
        pressing(patch, cluster, "_summarise", signal.SIGINT, times)
        assert main([*command, "--out", "out"]) == 130
    message = capfd.readouterr().err
    assert "Ctrl-C: the report is being written; Ctrl-C again stops at once\n" in message
    assert outputs() == (["out"] if times == 1 else ["out.run"])
    if times > 1:
        assert main([*command, "--resume", "out"]) == 0


@pytest.mark.parametrize("times", [1, 2, 3])
def test_interrupts_of_several(capfd, monkeypatch, times):
    """In the report of the first file: the second is not begun."""
    with monkeypatch.context() as patch:
        pressing(patch, fit, "_summarise", signal.SIGINT, times)
        assert main([*SEVERAL, "--out", "out"]) == 130
    printed = capfd.readouterr()
    ended = {
        fit["file"]: fit["ended"] for fit in json.loads(Path("out/fits.json").read_text())["files"]
    }
    assert ended == {"a.soi": "length" if times == 1 else "interrupted", "b.soi": "waiting"}
    assert ("out/a.run keeps 68 sweeps" in printed.err) == (times > 1)
    assert "how it ended" in printed.out and printed.err.count("To go on") == 1
    assert sorted(os.listdir("out")) == [
        "a" if times == 1 else "a.run", "fits.csv", "fits.json"
    ]  # fmt: skip
    assert main([*SEVERAL, "--resume", "out"]) == 0
    assert sorted(os.listdir("out")) == ["a", "b", "fits.csv", "fits.json"]


def test_an_interrupt_when_all_files_are_fitted(capfd, monkeypatch):
    """Nothing is left to go on with."""
    assert main([*SEVERAL, "--out", "out"]) == 0
    os.rename("out/b", "b")
    capfd.readouterr()
    pressing(monkeypatch, fit, "_summarise", signal.SIGINT, 1)
    assert main([*SEVERAL, "--resume", "out"]) == 130
    assert "To go on" not in capfd.readouterr().err


def test_an_interrupt_when_a_run_is_resumed(stored, capsys, monkeypatch):
    """Before its first sweep: its store is as it was."""
    with monkeypatch.context() as patch:
        pressing(patch, Run, "_load", signal.SIGINT, 1)
        assert main([*FIT, "--resume", "out"]) == 130
    message = capsys.readouterr().err
    assert "interrupted, nothing was written; out.run keeps its draws. To go on:" in message
    assert message.strip().endswith("--resume out")
    np.testing.assert_array_equal(weights_of_store(), stored)


def test_an_interrupt_that_python_drops_leaves_the_report_unwritten(capfd, monkeypatch):
    """As in a callback of the garbage collector; or a library makes another error of it."""

    def drop(*_):
        for _ in range(2):
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    def fail(*_):
        drop()
        raise ImportError("initialization failed")

    for act in (drop, fail):
        with monkeypatch.context() as patch:
            patch.setattr(fit, "_write", lambda *_, act=act: act())
            assert main([*FIT, "--out", "out", "--force"]) == 130
        message = capfd.readouterr().err
        assert "no results were written; out.run keeps 68 sweeps" in message
        assert outputs() == ["out.run"]


def test_an_unexpected_error_says_what_is_kept(monkeypatch):
    monkeypatch.setattr(fit, "_summarise", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        main([*FIT, "--out", "out"])
    (said,) = raised.value.__notes__
    assert "out.run keeps 68 sweeps of each chain. To go on:" in said
    assert weights_of_store().shape[1] == 60


@pytest.mark.parametrize("status", [0, 2, 130, 143])
def test_the_end_of_the_process(monkeypatch, status):
    """After an interrupt it does not wait for what is being compiled, nor does it complain."""
    ended = []
    monkeypatch.setattr(program, "main", lambda: status)
    monkeypatch.setattr(os, "_exit", ended.append)
    with pytest.raises(SystemExit) as raised:
        run_program()
    assert raised.value.code == status and ended == [status] * (status > 128)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


# ---------------------------------------------------------------------------------------------
# Two commands
# ---------------------------------------------------------------------------------------------


def content(folder):
    """The files of a folder and what they hold."""
    return {x: x.read_bytes() for x in sorted(Path(folder).rglob("*")) if x.is_file()}


def test_results_of_a_command_that_ended_meanwhile_stay(capsys, monkeypatch):
    """It began and ended while this one read its file."""
    choose, texts = fit._choose_thinning, []

    def other_command(*arguments):
        monkeypatch.setattr(fit, "_choose_thinning", choose)
        assert main([*FIT, "--out", "out"]) == 0
        texts.append(content("out"))
        return choose(*arguments)

    monkeypatch.setattr(fit, "_choose_thinning", other_command)
    assert main([*FIT, "--seed", "1", "--out", "out"]) == 2
    assert "the folder out exists: use --force" in capsys.readouterr().err
    assert content("out") == texts[0] and outputs() == ["out"]


@pytest.mark.parametrize("option", [["--out", "out"], FORCE, ["--resume", "out"]])
def test_the_folder_of_several_is_of_one_command(capsys, option):
    os.mkdir("out")
    Path("out/fits.json").write_text(TABLE)
    before = content("out")
    with lock_of(Path("out")):
        assert main([*SEVERAL, *option]) == 2
    assert "error: out is in use by another command\n" in capsys.readouterr().err
    assert content("out") == before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_command_has_the_folder_of_several_to_itself(monkeypatch, is_there):
    """From the time at which it reads what is there, or from the first that it writes."""
    if is_there:
        os.mkdir("out")
    place, name = (fit, "read_file") if is_there else (fit, "_choose_thinning")

    def look(*arguments):
        with pytest.raises(StoreError, match="in use"), lock_of(Path("out")):
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr(place, name, look)
    assert main([*SEVERAL, *FORCE]) == 130
    with lock_of(Path("out")):
        pass


def test_a_folder_of_several_that_comes_meanwhile(capsys, monkeypatch):
    read = fit.read_file

    def other_command(*arguments):
        monkeypatch.setattr(fit, "read_file", read)
        os.mkdir("out")
        return read(*arguments)

    monkeypatch.setattr(fit, "read_file", other_command)
    assert main([*SEVERAL, "--out", "out"]) == 2
    assert "cannot write to out: File exists" in capsys.readouterr().err
    assert os.listdir("out") == []


# ---------------------------------------------------------------------------------------------
# --force
# ---------------------------------------------------------------------------------------------

# what is wrong with a command that would begin again
WRONG = {
    "file": (["fit", "smal.soi", *TWO, "60"], "smal.soi: no such file"),
    "option": ([*FIT, "--shape", "x"], "--shape must be a number"),
    "model": ([*FIT, "--sigma", "0.5"], "--sigma goes with"),
    "length": ([*FIT, "--minutes", "1"], "--minutes goes without"),
    "draws": ([*MODEL, "--draws", "4", "--thin", "2"], "keeps 2 draws"),
    "points": (["cluster", "point.csv", "--family", "gaussian"], "point.csv: no such file"),
    "column": ([*GAUSSIAN, "--names", "z"], "no column 'z' for --names"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_a_command_that_begins_again_loses_nothing(stored, capsys, name):
    arguments, words = WRONG[name]
    assert main([*arguments, *FORCE]) == 2
    assert words in capsys.readouterr().err
    np.testing.assert_array_equal(weights_of_store(), stored)


STARTS = {
    "error": (RuntimeError("RESOURCE_EXHAUSTED: out of memory"), 2, "out of memory"),
    "Ctrl-C": (KeyboardInterrupt(), 130, "interrupted, nothing was written"),
}


@pytest.mark.parametrize("name", STARTS)
def test_chains_that_do_not_start_lose_nothing(stored, capsys, monkeypatch, name):
    error, status, words = STARTS[name]

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(SweepLoop, "init", fail)
        assert main([*FIT, *FORCE]) == status
    assert words in capsys.readouterr().err
    np.testing.assert_array_equal(weights_of_store(), stored)
    assert main([*FIT, *FORCE]) == 0
    assert outputs() == ["out"]


def test_chains_that_make_no_sweep_lose_nothing(stored, capsys, monkeypatch):
    """The store is only replaced once the new chains have a sweep."""
    with monkeypatch.context() as patch:
        patch.setattr(Run, "_make_chunk", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main([*FIT, *FORCE])
    np.testing.assert_array_equal(weights_of_store(), stored)
    begun(monkeypatch, *TWO, "60", "--force")  # and killed
    assert main([*FIT, "--out", "out"]) == 2
    assert "out.run has an unfinished run: go on with --resume out" in capsys.readouterr().err
    np.testing.assert_array_equal(weights_of_store(), stored)


def test_other_folders_with_the_name_of_the_store_stay(capsys):
    os.mkdir("out.run")
    Path("out.run/thesis.tex").write_text("years")
    for options in (["--out", "out"], FORCE, ["--resume", "out"]):
        assert main([*FIT, *options]) == 2
        assert "out.run is not the store of a run" in capsys.readouterr().err
    assert os.listdir("out.run") == ["thesis.tex"] and outputs() == ["out.run"]


def test_a_store_that_is_not_recognised_stays(stored, capsys):
    root = Path("out.run/zarr.json")
    root.write_text(root.read_text()[:100])
    before = content("out.run")
    assert main([*FIT, *FORCE]) == 2
    assert "out.run cannot be recognised as the store of a run" in capsys.readouterr().err
    assert content("out.run") == before


def test_files_of_others_in_a_store_stay(stored):
    Path("out.run/notes.txt").write_text("mine")
    assert main([*FIT, *FORCE]) == 0
    assert outputs() == ["out", "out.run"]
    assert os.listdir("out.run") == ["notes.txt"]


@pytest.mark.parametrize("name", results.FILES)
def test_results_of_others_stay(finished, capsys, name):
    for text in ("mine", ""):
        Path("out", name).write_text(text)
        before = content("out")
        capsys.readouterr()
        assert main([*FIT, *FORCE]) == 2
        words = f"out/{name} was not written by numpyro-rankings: move it, or choose another --out"
        assert words in capsys.readouterr().err
        assert content("out") == before and outputs() == ["out"]


def test_own_results_are_replaced(finished):
    assert main([*FIT, *FORCE]) == 0


def test_results_are_not_written_into_a_store(stored, capsys):
    before = content("out.run")
    assert main([*FIT, "--out", "out.run", "--force"]) == 2
    assert "out.run is the store of a run: choose another --out" in capsys.readouterr().err
    assert content("out.run") == before


@pytest.mark.parametrize("name", ["fits.csv", "fits.json"])
def test_tables_of_others_stay(capsys, name):
    os.mkdir("out")
    Path("out", name).write_text("mine")
    assert main([*SEVERAL, *FORCE]) == 2
    assert f"out/{name} was not written by numpyro-rankings" in capsys.readouterr().err
    assert Path("out", name).read_text() == "mine" and os.listdir("out") == [name]


def test_a_misspelt_file_among_several_replaces_nothing(capsys):
    os.mkdir("out")
    Path("out/fits.json").write_text(TABLE)
    before = content("out")
    misspelt = [*SEVERAL[:2], "bb.soi", *SEVERAL[3:]]
    assert main([*misspelt, *FORCE]) == 2
    message = capsys.readouterr().err
    assert "bb.soi: no such file" in message
    assert "1 file cannot be fitted: nothing in out was replaced" in message
    assert content("out") == before


# ---------------------------------------------------------------------------------------------
# --resume
# ---------------------------------------------------------------------------------------------


def begun(monkeypatch, *options):
    """Leave a run without a sweep, as a process that was killed does."""
    with monkeypatch.context() as patch:
        patch.setattr(RunSession, "_advance", lambda *_: 1 / 0)
        patch.setattr("numpyro_rankings.run.folder.discard", lambda _: None)
        with pytest.raises(ZeroDivisionError):
            main([*MODEL, *options, "--out", "out"])


def test_a_run_without_a_sweep_has_its_settings_too(capsys, monkeypatch):
    own = ["--chains", "2", "--seed", "3", "--thin", "2", "--warmup", "8", "--draws", "80"]
    assert main([*MODEL, *own, "--out", "alone"]) == 0
    begun(monkeypatch, *own)
    assert not Store.has_sweeps("out.run")
    assert main([*MODEL, "--resume", "out"]) == 2
    assert "out.run is a run of a fixed length: give its --draws again" in capsys.readouterr().err
    assert main([*MODEL, "--draws", "80", "--resume", "out"]) == 0
    assert "out.run has no sweep yet: the run begins again" in capsys.readouterr().err
    np.testing.assert_array_equal(weights_of_results("out"), weights_of_results("alone"))
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "<dt>seed</dt><dd>3</dd>" in page and "2 chains, each of 8 warm-up sweeps" in page


def test_what_is_given_counts_for_a_run_without_a_sweep(alone, monkeypatch):
    begun(
        monkeypatch, "--chains", "4", "--seed", "3", "--thin", "2", "--warmup", "9", "--draws", "80"
    )
    assert main([*FIT, "--seed", "0", "--thin", "1", "--resume", "out"]) == 0
    np.testing.assert_array_equal(weights_of_results("out"), alone)


def test_fewer_draws_than_there_are(stored, capsys):
    for draws in (4, 16):
        assert main([*MODEL, *TWO, str(draws), "--resume", "out"]) == 2
        message = capsys.readouterr().err
        assert "--draws must be at least that, got" in message and message.count("\n") == 1
    np.testing.assert_array_equal(weights_of_store(), stored)
    assert main([*MODEL, *TWO, str(stored.shape[1]), "--resume", "out"]) == 0
    np.testing.assert_array_equal(weights_of_results("out"), stored)


# ---------------------------------------------------------------------------------------------
# A full disk
# ---------------------------------------------------------------------------------------------


# a command whose files can have so many bytes, without a page in between, which only a slow one
# has; on as many devices as the test, because the last bits of draws depend on their number
LIMITED = """
import resource, sys
import jax
from numpyro_rankings.cli import interim, run_program
jax.config.update("jax_num_cpu_devices", int(sys.argv[2]))
jax.devices()
interim.InterimPage.show_if_due = lambda *_: None
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
del sys.argv[1:3]
run_program()
"""


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 500, 3000, 6000, 10_000, 20_000, 30_000, 100_000])
def test_files_cannot_grow(alone, size):
    """Which is an error like that of a full disk."""
    devices = str(jax.device_count())
    command = [sys.executable, "-c", LIMITED, str(size), devices, *FIT, "--out", "out"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert len(re.findall(r"error: cannot write to (?:\S*/)?out", done.stderr)) == 1
    assert outputs() == (["out.run"] if "out.run keeps" in done.stderr else [])
    if outputs():
        again = shlex.split(done.stderr.strip().splitlines()[-1])
        assert main(again[1:]) == 0
        np.testing.assert_array_equal(weights_of_results("out"), alone)
        assert outputs() == ["out"]


def test_an_interim_page_is_of_this_program(monkeypatch, clock):
    """It is replaced by a command that begins again."""
    monkeypatch.setattr(interim, "_RHAT", 2.0)
    monkeypatch.setattr(Run, "_make_chunk", stepping(Run._make_chunk, clock))
    monkeypatch.setattr(interim.InterimPage, "end", lambda *_: None)  # as when it is killed
    with monkeypatch.context() as patch:
        patch.setattr(fit, "_summarise", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main([*FIT, "--out", "out"])
    assert os.listdir("out") == ["report.html"]
    assert main([*FIT, *FORCE]) == 0


def stepping(function, clock):
    """A function after which a minute has passed."""

    def step(*arguments):
        function(*arguments)
        clock.step(60)

    return step


# ---------------------------------------------------------------------------------------------
# A command that is killed while it writes
# ---------------------------------------------------------------------------------------------

# a command that ends without a word while it writes its results
KILLED = """
import os
from pathlib import Path
from numpyro_rankings.cli.results import write_at_once
def write(folder):
    (folder / "report.html").write_text("half")
    os.kill(os.getpid(), 9)
write_at_once(Path("out"), write)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_what_a_killed_command_has_written_is_removed_by_the_next():
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    (rest,) = outputs()
    assert rest.startswith(".out-") and rest.endswith(".unfinished")
    os.makedirs(f".outer{rest[4:]}/results")  # of another folder
    os.makedirs(".out-mine.unfinished/thesis")
    os.mkdir(".out-old")
    Path(".out-link.unfinished").symlink_to(".out-old")
    others = sorted(set(outputs()) - {rest})

    def write(folder):
        (folder / "report.html").write_text("")
        assert outputs() == sorted([*others, folder.parent.name])
        (folder / "clusters.csv").write_text("")
        results.write_at_once(Path("out"), write_page, ["report.html"])

    def write_page(folder):
        assert (outer := set(outputs()) - {*others, folder.parent.name})
        assert len(os.listdir(f"{outer.pop()}/results")) == 2
        (folder / "report.html").write_text("page")

    results.write_at_once(Path("out"), write, ["clusters.csv", "report.html"])
    assert outputs() == sorted([*others, "out"])
    assert sorted(os.listdir("out")) == ["clusters.csv", "report.html"]


def test_a_kill_while_results_are_replaced(finished, monkeypatch):
    """The report is the last, and the run is still there."""
    before, new, replace = content("out"), [*FIT, "--seed", "1"], os.replace

    class Killed(BaseException):
        pass

    def replace_or_end(source, place):
        if Path(place).parent.name == "out":
            if len(replaced) == 3:
                raise Killed
            replaced.append(Path(place).name)
        replace(source, place)

    replaced = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_or_end)
        with pytest.raises(Killed):
            main([*new, *FORCE])
    assert outputs() == ["out", "out.run"]
    assert sorted([*replaced, "report.html"]) == sorted(results.FILES)
    report = Path("out/report.html")
    assert content("out").keys() == before.keys() and content("out")[report] == before[report]
    assert main([*new, "--resume", "out"]) == 0
    assert outputs() == ["out"] and content("out")[report] != before[report]


def test_results_in_a_new_folder_come_at_once(monkeypatch):
    monkeypatch.delattr(os, "replace")
    seen, rename = [], os.rename

    def look(source, place):
        assert sorted(os.listdir(source)) == sorted(results.FILES) and not Path("out").exists()
        rename(source, place)
        seen.append(place)

    monkeypatch.setattr(os, "rename", look)
    results.write_at_once(Path("out"), lambda x: [(x / name).touch() for name in results.FILES])
    assert seen == [Path("out").absolute()]


# ---------------------------------------------------------------------------------------------
# Folders and streams that are not there
# ---------------------------------------------------------------------------------------------


def test_a_store_that_was_moved_meanwhile(alone, capsys, monkeypatch):
    """It is not said to be where it was; moved back, the run goes on."""
    append = Store.append

    def append_and_move(store, *arguments):
        append(store, *arguments)
        if store.num_draws:
            os.rename("out.run", "moved.run")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", append_and_move)
        assert main([*FIT, "--out", "out"]) == 2
    told = capsys.readouterr().err
    assert "was moved or removed while a run had it" in told
    assert "keeps" not in told and "To go on" not in told
    os.rename("moved.run", "out.run")
    assert main([*FIT, "--resume", "out"]) == 0
    np.testing.assert_array_equal(weights_of_results("out"), alone)


def test_a_run_that_python_code_changed(stored, capsys):
    """The verdict of its results says so, as that of the run does."""
    rankings = Rankings.from_preflib("small.soi").unique()
    with pytest.warns(UserWarning, match="it goes on"):
        run = Run.resume("out.run", PlackettLuceGibbs(shape=2.0), rankings, check=False)
    run.extend(4)
    (change,) = run.changes
    run.close()
    assert main([*FIT, "--shape", "2", "--resume", "out"]) == 0
    shown = capsys.readouterr()
    assert change in " ".join(shown.out.split()) and change in shown.err
    assert "\nThe chains agree.\n" not in shown.out
    with xr.open_dataset("out/posterior.nc", group="posterior", engine="h5netcdf") as posterior:
        assert posterior.attrs["changes"] == change


def test_no_folder_beside_the_results(capsys):
    assert main([*FIT, "--out", "/"]) == 2
    assert "error: / has no room for a run beside it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_was_closed_before(monkeypatch, name):
    """As by >&- of a shell, or by a program without a console."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, name, None)
        assert main([*FIT, "--out", "out"]) == 0
        assert getattr(sys, name) is None
    assert outputs() == ["out"]
