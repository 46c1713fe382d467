"""Several files that are fitted one after another, and gone on with."""

import gc
import json
import os
import re
import shlex
import signal
import weakref
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers.command_line import SOI, interrupting_after, rows_of
from helpers.command_line import weights_of_results as draws_of
from helpers.shared_programs import shared_programs

import numpyro_rankings.run
from numpyro_rankings.cli import fit, main, several
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.cli.several import command_of_one, folder_names
from numpyro_rankings.run import Run
from numpyro_rankings.run.loop import SweepLoop
from numpyro_rankings.words.commands import resumed

pytestmark = pytest.mark.usefixtures("usual_signals", "plain_page")

MODEL = ["--model", "plackett-luce"]
FIXED = ["--warmup", "8", "--draws", "60", "--chains", "2"]
# of the shapes of SOI, for which programs are compiled
OTHER = SOI.replace("14: 1,2,3,4", "13: 4,3,1,2").replace("12: 4,3,2", "13: 4,1,2")


@pytest.fixture
def each_its_program():
    """For tests of what is compiled."""


@pytest.fixture(scope="module")
def kept():
    """What tests but those share."""
    return {}


@pytest.fixture(autouse=True)
def _shared(request, kept):
    if "each_its_program" in request.fixturenames:
        yield
        return
    with shared_programs(kept):
        yield


@pytest.fixture(autouse=True)
def folder(folder):
    for name, text in (("a", SOI), ("b", OTHER), ("c", SOI)):
        (folder / f"{name}.soi").write_text(text)
    return folder


def run_fit(*arguments):
    return main(["fit", *map(str, arguments)])


def table(out="out"):
    return {row["file"]: row for row in rows_of(f"{out}/fits.csv")}


def endings(out="out"):
    return {file: row["ended"] for file, row in table(out).items()}


def last_command(message):
    return shlex.split(message.strip().splitlines()[-1])[2:]


@pytest.mark.parametrize(
    ("paths", "taken", "names"),
    [
        (["/x/a.soi", "/x/b.csv"], [], ["a", "b"]),
        (["/x/a.soi", "/x/a.csv", "/x/b.csv"], [], ["a.soi", "a.csv", "b"]),
        (["/x/a.soi", "/y/A.soi"], [], ["x-a.soi", "y-A.soi"]),
        (["/p/x/a.soi", "/q/x/a.soi"], [], ["p-x-a.soi", "q-x-a.soi"]),
        (["/x-y/a.csv", "/x/y-a.csv", "/z/a.csv"], [], ["x-y-a.csv", "y-a", "z-a.csv"]),
        (["/a.csv"], ["a"], ["a.csv"]),
        (["/a.csv"], ["a", "a.csv"], ["a.csv-2"]),
        (["/a.csv", "/a.run.csv"], [], ["a.csv", "a.run.csv"]),  # a.run is the store of a
        (["/fits.csv.csv", "/..csv"], [], ["fits.csv.csv", "..csv"]),
    ],
)
def test_names_of_folders(paths, taken, names):
    assert folder_names(paths, taken) == names


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("n fit a b --seed 1 --out o --force", "a b", "n fit b --seed 1 --out o/b"),
        ("n fit --judge a a b --resume o", "a b", "n fit --judge a b --out o/b"),
        ("n fit 'my data' --out=o", "'my data'", "n fit b --out o/b"),
    ],
)
def test_the_command_of_one(command, given, expected):
    assert command_of_one(command, shlex.split(given), "b", Path("o/b")) == expected


def test_files_are_fitted_as_each_alone(folder, capsys):
    """Those that cannot be read are told, and the others are fitted."""
    (folder / "more").mkdir()
    (folder / "more" / "a.soi").write_text(OTHER)
    (folder / "bad.soi").write_text(SOI.replace("4: 2,1,3", "4: 2,2"))
    files = ["a.soi", "none.soi", "more/a.soi", "bad.soi"]
    assert run_fit(*files, *MODEL, *FIXED, "--seed", 3, "--out", "out") == 2
    printed = capsys.readouterr()
    folders = ["fits.csv", "fits.json", "more-a.soi", f"{folder.name}-a.soi"]
    assert sorted(os.listdir("out")) == sorted(folders)
    rows = table()
    assert list(rows) == files
    reasons = {"none.soi": "failed: no such file", "bad.soi": "failed: bad.soi:15: "}
    for file, row in rows.items():
        if file in reasons:
            assert row["ended"].startswith(reasons[file])
            assert (row["rankings"], row["r_hat"]) == ("", "")
            errors = [x for x in printed.err.splitlines() if f"error: {file}" in x]
            assert len(errors) == 1
            continue
        sizes = row["rankings"], row["items"], row["groups"], row["ended"], row["seconds"]
        assert sizes == ("40", "4", "1", "full length", "0.0")
        assert 0.9 < float(row["r_hat"]) < 2 and float(row["ess"]) > 4
        assert run_fit(file, *MODEL, *FIXED, "--seed", 3, "--out", f"{file}-alone") == 0
        np.testing.assert_array_equal(draws_of(f"out/{row['folder']}"), draws_of(f"{file}-alone"))
        page = Path("out", row["folder"], "report.html").read_text(encoding="utf-8")
        command = f"fit {file} --model plackett-luce --warmup 8 --draws 60 --chains 2 --seed 3"
        assert f"{command} --out out/{row['folder']}" in page
    # what is wrong is told before the first is fitted, and all are in the table at the end
    assert printed.err.index("bad.soi:15") < printed.err.index("starting the chains")
    end = printed.out[printed.out.index("how it ended") :]
    for file in files:
        assert re.search(rf"^{file} .*{re.escape(rows[file]['ended'])}$", end, re.MULTILINE)
    assert last_command(printed.err)[-2:] == ["--resume", "out"]


SIGNALS = {"Ctrl-C": (signal.SIGINT, 130), "SIGTERM": (signal.SIGTERM, 143)}


@pytest.mark.parametrize("name", ["Ctrl-C", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_an_interrupt_stops_all_and_resume_goes_on(capsys, monkeypatch, name):
    files, (number, status) = ["a.soi", "b.soi", "c.soi"], SIGNALS[name]
    assert run_fit(*files, *MODEL, *FIXED, "--out", "alone") == 0
    chunks = 0

    def count(*_):
        nonlocal chunks
        chunks += 1

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "show", count)
        assert run_fit("a.soi", *MODEL, *FIXED, "--out", "one") == 0
    capsys.readouterr()
    with monkeypatch.context() as patch:
        interrupting_after(chunks + 4, patch, number)
        assert run_fit(*files, *MODEL, *FIXED, "--out", "out") == status
    printed = capsys.readouterr()
    expected = {"a.soi": "full length", "b.soi": "interrupted", "c.soi": "not begun"}
    assert endings() == expected
    assert "how it ended" in printed.out
    assert printed.err.count("To go on") == 1
    part = draws_of("out/b")
    assert 4 <= part.shape[1] < 60 and not os.path.exists("out/c")
    first = os.stat("out/a/posterior.nc").st_mtime_ns

    assert run_fit(*last_command(printed.err)) == 0
    printed = capsys.readouterr()
    assert "note: finished already: 1 of 3 files" in printed.err and "To go on" not in printed.err
    assert set(endings().values()) == {"full length"}
    assert os.stat("out/a/posterior.nc").st_mtime_ns == first
    for one in "abc":
        np.testing.assert_array_equal(draws_of(f"out/{one}"), draws_of(f"alone/{one}"))
    np.testing.assert_array_equal(draws_of("out/b")[:, : part.shape[1]], part)
    assert sorted(os.listdir("out")) == ["a", "b", "c", "fits.csv", "fits.json"]
    assert run_fit(*files, *MODEL, *FIXED, "--resume", "out") == 0  # nothing is left to do


def test_an_interrupt_in_the_warm_up(capsys, monkeypatch):
    with monkeypatch.context() as patch:
        interrupting_after(1, patch)
        assert run_fit("a.soi", "b.soi", *MODEL, *FIXED, "--out", "out") == 130
    message = capsys.readouterr().err
    words = "interrupted, no results were written; out/a.run keeps 1 sweep of each chain. To go on:"
    assert words in message
    assert endings() == {"a.soi": "interrupted", "b.soi": "not begun"}
    assert run_fit(*last_command(message)) == 0
    assert set(endings().values()) == {"full length"}


def test_a_process_that_was_killed_is_gone_on_with(monkeypatch, capsys):
    """The table says what is known while the files are fitted, as of one that is killed."""
    seen, choose = [], fit._choose_thinning

    def look(*arguments):
        seen.append(endings())
        return choose(*arguments)

    monkeypatch.setattr(fit, "_choose_thinning", look)
    assert run_fit("a.soi", "b.soi", *MODEL, *FIXED, "--out", "out") == 0
    assert seen == [
        {"a.soi": "interrupted", "b.soi": "not begun"},
        {"a.soi": "full length", "b.soi": "interrupted"},
    ]


def test_a_run_out_of_time_is_gone_on_with(capsys, monkeypatch):
    goals = ["--rhat", "1.0000001", "--chains", "2"]
    monkeypatch.setattr(numpyro_rankings.run.Run, "until", lambda run, *_, **__: run.extend(30))
    assert run_fit("a.soi", "b.soi", *MODEL, *goals, "--minutes", 2, "--out", "out") == 0
    message = capsys.readouterr().err
    assert message.count("stopped after 2 minutes; the draws do not suffice") == 2
    assert message.count("To go on") == 1
    assert set(endings().values()) == {"out of time"}
    assert run_fit(*last_command(message), "--minutes", 3) == 0
    assert draws_of("out/a").shape[1] == draws_of("out/b").shape[1] == 30  # the second half of 60


def test_a_run_with_too_few_draws_is_out_of_time_too(capsys, monkeypatch):
    """Its time is doubled in the command that goes on, as that of one file is."""
    two = ["a.soi", "b.soi", *MODEL, "--chains", 2]
    monkeypatch.setattr(Run, "until", lambda run, *_, **__: run.extend(1))
    assert run_fit(*two, "--minutes", 0.02, "--out", "out") == 2
    assert set(endings().values()) == {"out of time"}
    command = last_command(capsys.readouterr().err)
    assert command[command.index("--minutes") + 1] == "1"
    monkeypatch.setattr(Run, "until", lambda run, *_, **__: run.extend(30) or True)
    assert main(["fit", *command]) == 0
    assert set(endings().values()) == {"the draws suffice"}


def test_one_file_is_not_mixed_with_several(capsys):
    assert run_fit("a.soi", "b.soi", *MODEL, *FIXED, "--out", "out") == 0
    capsys.readouterr()
    for option in (["--out", "out", "--force"], ["--resume", "out"]):
        assert run_fit("a.soi", *MODEL, *FIXED, *option) == 2
        assert "out has the fits of several files" in capsys.readouterr().err


def test_a_fit_that_fails_stops_no_other(capsys, monkeypatch):
    original, count = fit._summarise, 0

    def fail(*arguments):
        nonlocal count
        count += 1
        if count == 1:
            raise ValueError("of\nno user")
        if count == 2:
            raise MemoryError
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fit, "_summarise", fail)
        assert run_fit("a.soi", "b.soi", "c.soi", *MODEL, *FIXED, "--out", "out") == 2
    message = capsys.readouterr().err
    ended = endings()
    assert ended["a.soi"] == "failed: ValueError: of no user" and ended["c.soi"] == "full length"
    assert ended["b.soi"].startswith("failed: out of memory")
    assert "error: a.soi: ValueError: of no user\n" in message and "Traceback" in message
    assert "error: b.soi: out of memory" in message and "out/b.run keeps 68 sweeps" in message
    assert run_fit(*last_command(message)) == 0
    assert set(endings().values()) == {"full length"}


def test_a_folder_of_files(folder, capsys):
    data = folder / "data"
    (data / "sub").mkdir(parents=True)
    for name in (".hidden.soi", "~$x.xlsx", "notes.md", "graph.wmd"):
        (data / name).write_text("")
    (data / "README.txt").write_text("The ballots, of 1980.\n\nSee the paper.\nOr the page.\n")
    (data / "one.SOI").write_text(SOI)
    assert run_fit("data", *MODEL, *FIXED, "--out", "out") == 0
    message = capsys.readouterr().err
    left_out = ".hidden.soi, README.txt, graph.wmd, notes.md, sub and 1 more"
    assert f"data: left out, because hidden or not a file of rankings: {left_out}\n" in message
    assert endings() == {"data/one.SOI": "full length"}
    # a new file is fitted, and the one that is finished keeps its folder
    (data / "one.soi").write_text(OTHER)
    assert run_fit("data", *MODEL, *FIXED, "--resume", "out") == 0
    assert {file: row["folder"] for file, row in table().items()} == {
        "data/one.SOI": "one",
        "data/one.soi": "one.soi",
    } or len(table()) == 1  # file systems without case


AT_ONCE = {
    "empty folder": (
        ["empty"],
        "empty: has no files of rankings (.soc, .soi, .toc, .toi, .cat, .blt, .json, .csv",
    ),
    "twice": (["a.soi", "b.soi", "./a.soi"], "./a.soi is given twice"),
    "out": (["a.soi", "b.soi", "--out", "empty"], "the folder empty exists: use --force"),
    "out of files": ([".", "--out", ".", "--force"], ". has the files, and cannot be the folder"),
    "no folder": (["a.soi", "b.soi", "--out", "a.soi"], "a.soi exists and is not a folder"),
    "lengths": (["a.soi", "b.soi", "--draws", "9", "--minutes", "1"], "--minutes goes without"),
    "model": (["a.soi", "b.soi", "--sigma", "0.5"], "--sigma goes with --model gamma-process"),
    "ess": (["a.soi", "b.soi", "--ess", "1e6"], "--ess must be at most 15,604 with 4 chains"),
    "resume": (["a.soi", "b.soi", "--resume", "x"], "there are no fits to resume: no file x/fits"),
    "two": (["a.soi", "b.soi", "--resume", "x", "--out", "y"], "--out goes without --resume"),
    "forced": (["a.soi", "b.soi", "--resume", "x", "--force"], "--force goes without --resume"),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_refused_at_once(folder, capsys, name):
    (folder / "empty").mkdir()
    before = sorted(os.listdir())
    arguments, words = AT_ONCE[name]
    assert run_fit(*arguments, *MODEL) == 2
    message = capsys.readouterr().err
    assert words in message and message.count("\n") == 1 + message.count("note: ")
    assert sorted(os.listdir()) == before


def test_what_is_resumed_has_the_same_model(folder, capsys):
    files = ["a.soi", "b.soi"]
    assert run_fit(*files, *MODEL, *FIXED, "--seed", 3, "--out", "out") == 0
    capsys.readouterr()
    before = Path("out/fits.json").read_text()
    for options, words in (
        ([*FIXED], "out was begun with another --model"),
        ([*MODEL, "--shape", "2", *FIXED], "out was begun with another --shape"),
        ([*MODEL, *FIXED, "--seed", "4"], "out was begun with --seed 3, not --seed 4"),
        ([*MODEL, *FIXED, "--thin", "2"], "out was begun without --thin, not --thin 2"),
        ([*MODEL, "--draws", "60", "--warmup", "9"], "begun with --warmup 8, not --warmup 9"),
        ([*MODEL], "out has runs of a fixed length: give their --draws again"),
    ):
        assert run_fit(*files, *options, "--resume", "out") == 2
        message = capsys.readouterr().err
        assert words in message and message.count("\n") == 1
    assert run_fit(*files, *MODEL, "--out", "out") == 2
    assert "out has the results of several files: go on with --resume" in capsys.readouterr().err
    # first what is wrong with the files and the options
    (folder / "b.soi").write_text("14: 1,2")
    assert run_fit(*files, *MODEL, "--out", "out") == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "b.soi:1: expected a header line" in first and "has the results of" in second
    assert run_fit(*files, *MODEL, "--gaps", "close", "--out", "out") == 2
    assert "a.soi: gaps does not go with a PrefLib file" in capsys.readouterr().err
    (folder / "b.soi").write_text(SOI)
    assert run_fit(*files, *MODEL, *FIXED, "--resume", "out") == 2
    assert "b.soi has changed since it was fitted: remove out/b" in capsys.readouterr().err
    (folder / "b.soi").unlink()  # of what is finished, no file is needed
    assert run_fit(*files, *MODEL, "--draws", "60", "--resume", "out") == 0
    assert Path("out/fits.json").read_text() == before
    Path("out/fits.json").write_text(json.dumps({"format": 1}))
    capsys.readouterr()
    assert run_fit(*files, *MODEL, *FIXED, "--resume", "out") == 2
    assert "out/fits.json is damaged" in capsys.readouterr().err
    assert run_fit("a.soi", "c.soi", *MODEL, *FIXED, "--out", "out", "--force") == 0
    assert set(endings()) == {"a.soi", "c.soi"}


@pytest.mark.parametrize("name", ["../victim", "{here}/victim", "..", ".", "", "a/b"])
def test_folders_of_earlier_fits_are_in_the_output_folder(folder, capsys, name):
    """Their names are read from a file that somebody else may have written."""
    assert run_fit("a.soi", "b.soi", *MODEL, *FIXED, "--out", "out") == 0
    state = Path("out/fits.json")
    stored = json.loads(state.read_text())
    stored["files"][1] |= {"folder": name.format(here=folder), "ended": "waiting"}
    state.write_text(json.dumps(stored))
    before = sorted(folder.rglob("*"))
    capsys.readouterr()
    assert run_fit("a.soi", "b.soi", *MODEL, *FIXED, "--resume", "out") == 2
    assert "out/fits.json is damaged" in capsys.readouterr().err
    assert sorted(folder.rglob("*")) == before


def test_programs_are_shared_and_memory_is_given_back(folder, monkeypatch, each_its_program):
    """Of 40, 40, 39 and 60 rankings; the kernel has one program of the sweep at a time."""
    for name, first in (("d", 13), ("e", 34)):
        lines = SOI.replace("14: 1,2", f"{first}: 1,2").replace("RS: 40", f"RS: {26 + first}")
        (folder / f"{name}.soi").write_text(lines)
    runs, alive, lowered, cleared = [], [], [], []
    choose, set_up, lower, clear = (
        fit._choose_thinning,
        Run.__init__,
        SweepLoop._lower,
        jax.clear_caches,
    )

    def look(*arguments):
        alive.append(sum(run() is not None for run in runs))
        return choose(*arguments)

    def remember(self, *arguments, **options):
        runs.append(weakref.ref(self))
        set_up(self, *arguments, **options)

    def count(self, state):
        lowered.append(self.kernel)
        return lower(self, state)

    def forget():
        cleared.append(len(lowered))
        clear()

    gc.collect()
    monkeypatch.setattr(fit, "_choose_thinning", look)
    monkeypatch.setattr(Run, "__init__", remember)
    monkeypatch.setattr(SweepLoop, "_lower", count)
    monkeypatch.setattr(jax, "clear_caches", forget)
    files = ["a.soi", "b.soi", "d.soi", "e.soi"]
    assert run_fit(*files, *MODEL, *FIXED, "--out", "out") == 0
    assert alive == [0, 0, 0, 0]
    assert len(runs) == 4 and len(lowered) == 2 and lowered[0] is lowered[1]
    assert cleared == [2]
    assert run_fit("b.soi", *MODEL, *FIXED, "--out", "alone") == 0
    np.testing.assert_array_equal(draws_of("out/b"), draws_of("alone"))


def test_the_help_says_it(capsys):
    assert run_fit("--help") == 0
    assert several.SEVERAL_IN_WORDS in capsys.readouterr().out
    assert resumed("n fit a --out b", Path("c")) == "n fit a --resume c"


def test_the_cores_are_taken_before_a_file_is_read(monkeypatch):
    """Rankings are JAX's arrays: the first one fixes how many devices the chains can have."""
    done = []
    monkeypatch.setattr(several, "use_devices", lambda chains: done.append(chains))
    monkeypatch.setattr(several, "_check_readable", lambda fit, *_: done.append(fit.file))
    monkeypatch.setattr(several._Fits, "fit_all", lambda _: 0)
    assert main(["fit", "a.soi", "b.soi", "--chains", "3", "--out", "out"]) == 0
    assert done == [3, "a.soi", "b.soi"]
