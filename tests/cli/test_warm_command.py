"""``numpyro-rankings warm``: what it compiles is what ``fit`` runs, for other sizes too."""

import jax
import numpy as np
import pytest
from helpers.command_line import run
from jax.experimental.compilation_cache import compilation_cache

from numpyro_rankings import Rankings
from numpyro_rankings.cli.warm import _covered

PROGRAMS = "jit__loop", "jit__init_from_leaves"  # of a run: its sweeps and its start


@pytest.fixture
def programs(tmp_path):
    """Return the compiled programs of runs that are kept, in a folder of this test."""
    usual, folder = jax.config.jax_compilation_cache_dir, tmp_path / "programs"
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.clear_caches()

    def kept():
        jax.clear_caches()  # the next command finds only what is kept
        files = {path.name for path in folder.iterdir()}
        return {name for name in files if name.startswith(PROGRAMS) and name.endswith("-cache")}

    yield kept
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", usual)


def write_table(number, num_items=4, seed=1):
    """Write a table of so many judges, who rank all items."""
    orders = np.tile(np.arange(1, num_items + 1), (number, 1))
    ranks = np.random.default_rng(seed).permuted(orders, axis=1)
    lines = [",".join(f"item {k}" for k in range(num_items))]
    lines += [",".join(map(str, row)) for row in ranks]
    with open("votes.csv", "w") as file:
        file.write("\n".join(lines) + "\n")


MODEL = "--model", "plackett-luce", "--chains", "2"
FIT = "fit", "votes.csv", "--layout", "ranks", "--force"
SHORT = "--warmup", "4", "--draws", "8"


def test_a_second_table_of_another_size_compiles_nothing(programs, plain_page, capsys):
    assert run("warm", "--size", "17x4", *MODEL) == 0
    told, compiled = capsys.readouterr().out, programs()
    assert len(compiled) == 2 and ": compiled, " in told
    assert "no sampler for 17 to 18 judges with 1 to 15 different rankings of 4 items" in told
    assert "the longest of 4, in 2 chains" in told
    assert run("warm", "--size", "18x4", *MODEL) == 0
    assert ": was there, " in capsys.readouterr().out and programs() == compiled
    write_table(18)
    assert run(*FIT, *MODEL, *SHORT) == 0
    assert programs() == compiled and "compiling the sampler" not in capsys.readouterr().err
    write_table(19)  # which needs other programs
    assert run("warm", "votes.csv", "--layout", "ranks", *MODEL) == 0
    assert "19 to 20 judges" in capsys.readouterr().out and len(programs() - compiled) == 2


def test_what_is_said_of_a_sample():
    data = Rankings.from_orderings([[0, 1, 2], [1]], num_items=4, counts=[40, 1])
    said = _covered(data, 2, is_sample=True)
    assert "41 to 44 judges, a sample of those of the table, with 1 to 15 different" in said
    assert "of 4 items, the longest of 3, in 2 chains" in said


@pytest.mark.parametrize(("number", "sampled"), [(2000, False), (2100, True)])
def test_a_sample_is_taken_of_many_judges(monkeypatch, capsys, number, sampled):
    """Of more than 2,000, whose programs are not those of all judges."""
    monkeypatch.setattr("numpyro_rankings.cli.warm._compile", lambda *_: None)
    write_table(number, 6)
    assert run("warm", *FIT[1:4]) == 0
    said = capsys.readouterr().out
    of_sample = ", a sample of those of the table," if sampled else ""
    assert f"for 1,921 to 2,048 judges{of_sample} with " in said
    assert "of 6 items, the longest of 6, in 4 chains" in said


@pytest.mark.parametrize(
    ("options", "most"),
    [((), 4), (("--groups", "6"), 6), (("--components", "auto", "--max-clusters", "2"), 2)],
)
def test_programs_of_each_number_of_groups(monkeypatch, options, most):
    compiled = []
    monkeypatch.setattr("numpyro_rankings.cli.warm._compile", lambda name, _: compiled.append(name))
    assert run("warm", "--size", "600x6", *options) == 0
    of_chains = [name for name in compiled if not name.startswith("numbers of groups, up to ")]
    mixtures = [f"{number}-component mixture" for number in range(2, most + 1)]
    assert of_chains == ["single population", *mixtures]


@pytest.mark.slow
def test_where_the_number_of_groups_is_chosen(programs, capsys):
    auto = "--components", "auto", "--max-clusters", "2", "--chains", "2"
    write_table(36)
    assert run("warm", *FIT[1:4], *auto, "--groups", "2") == 0
    told, compiled = capsys.readouterr().out.splitlines(), programs()
    assert [line.partition(":")[0] for line in told[:-1]] == [
        "numbers of groups, up to 2",
        "single population",
        "2-component mixture",
    ]
    assert len(compiled) == 6
    assert run(*FIT, *auto, *SHORT) == 0
    assert programs() == compiled


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--size", "17"), "--size is the judges and the items, such as 100x10, got '17'"),
        (("--size", ",x5"), "--size is the judges and the items, such as 100x10, got ',x5'"),
        (("--size", "1,100"), "--size is the judges and the items"),
        (
            ("--size", "17x4", "--components", "2", "--groups", "3"),
            "--groups is for tables of which",
        ),
        (("--size", "100000000000x1000"), "memory"),
        (("--size", "0x4"), "--size must be of at least 1 judge and 2 items"),
        (("--size", "17x1"), "--size must be of at least 1 judge and 2 items"),
        (("votes.csv", "--size", "17x4"), "--size goes without FILE"),
        (("--layout", "ranks", "--size", "17x4"), "--size goes without FILE"),
        (("--model", "plackett-luce", "--worths-by", "x.csv"), "--worths-by goes with fit only"),
        (("none.csv",), "none.csv"),
    ],
)
def test_refused(words, error, capsys, folder):
    assert run("warm", *words) == 2
    assert error in capsys.readouterr().err
