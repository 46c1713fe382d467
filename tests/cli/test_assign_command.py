"""The command that puts new judges into the groups of a fit."""

import argparse
import contextlib
import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from helpers.command_line import QUICK_FIT, expect_error, rows_of, run, without_page

from numpyro_rankings.cli.assign import _as_fitted, _named, _print_summary, _wants
from numpyro_rankings.cli.kept import Kept, read_kept
from numpyro_rankings.cli.options import TableOptions
from numpyro_rankings.predict import BlocMixture, GroupsOfJudges

pytestmark = pytest.mark.usefixtures("one_program")

ITEMS = ["Ann", "Bob", "Cid", "Dee", "Eva"]
CENTERS = [[0, 1, 2, 3, 4], [4, 2, 3, 0, 1]]  # best first
READING = ["--layout", "ranks", "--columns", "Q5_*", "--judge", "id", "--about", "region"]
MODELS = {
    "mallows": ["--blocs", "2"],
    "plackett-luce": ["--model", "plackett-luce", "--components", "2"],
}


def write_wave(path, number, seed, columns=None):
    """Write judges of two groups, each of whom exchanges two neighbours of the center at most."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=number)
    rows = []
    for k, group in enumerate(truth.tolist()):
        order = list(CENTERS[group])
        place = rng.integers(8)
        if place < 4:
            order[place : place + 2] = order[place : place + 2][::-1]
        ranks = {f"Q5_{ITEMS[item]}": rank for rank, item in enumerate(order, 1)}
        rows.append({"id": f"p{k}", "region": "NS"[k % 2], **ranks, "other": k})
    names = columns or list(rows[0])
    with open(path, "w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, names, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    return truth


@pytest.fixture(scope="module", params=list(MODELS))
def results(request, tmp_path_factory, one_program):
    """The folder of a fit of 60 judges, beside its file."""
    folder = tmp_path_factory.mktemp("fitted")
    options = [
        x for x in QUICK_FIT if request.param == "mallows" or x not in ("--max-clusters", "16")
    ]
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        without_page(patch)
        write_wave("wave1.csv", 60, 0)
        command = ["fit", "wave1.csv", *READING, *MODELS[request.param], *options]
        assert run(*command, "--out", "out") == 0
    return folder / "out"


def truth_of_groups(results):
    """Return the number that the fit has given to each of the two groups."""
    wave = rows_of(results.parent / "wave1.csv")
    first = next(k for k, row in enumerate(wave) if row["Q5_Eva"] == "5")
    last = next(k for k, row in enumerate(wave) if row["Q5_Eva"] == "1")
    found = rows_of(results / "assignments.csv")
    return [found[first]["cluster"], found[last]["cluster"]]


def test_fitted_judges_get_their_groups_again(results, folder, capsys):
    assert run("assign", results, results.parent / "wave1.csv") == 0
    found, fitted = rows_of(folder / "wave1-groups.csv"), rows_of(results / "assignments.csv")
    assert [row["judge"] for row in found] == [row["judge"] for row in fitted]
    same = [a["cluster"] == b["cluster"] for a, b in zip(found, fitted, strict=True)]
    assert np.mean(same) > 0.95
    groups = [name for name in found[0] if name.startswith(("group ", "none of"))]
    for row in found:
        assert sum(float(row[name]) for name in groups) == pytest.approx(1.0, abs=2e-3)
        assert float(row["probability"]) == max(float(row[name]) for name in groups)
    if "bloc" in fitted[0]:
        assert "none of the groups" in groups  # of a process
        same = [a["bloc"] == b["bloc"] for a, b in zip(found, fitted, strict=True)]
        assert np.mean(same) > 0.95
    out = capsys.readouterr().out
    assert "60 judges of " in out and "Results: wave1-groups.csv" in out


def test_a_new_wave_with_other_columns(results, folder, capsys):
    """In another order, one item less, no region: the columns of the fit are known all the same."""
    columns = ["Q5_Eva", "other", "Q5_Bob", "Q5_Ann", "Q5_Dee", "id"]
    truth = write_wave("wave2.csv", 200, 1, columns)
    assert run("assign", results, "wave2.csv", "--gaps", "close", "--table", "with.csv") == 0
    assert (
        "wave2.csv has no column region, which the file of the fit had" in capsys.readouterr().err
    )
    found, names = rows_of("wave2-groups.csv"), truth_of_groups(results)
    right = [row["cluster"] == names[k] for row, k in zip(found, truth.tolist(), strict=True)]
    assert np.mean(right) > 0.95
    table = rows_of("with.csv")
    assert list(table[0])[: len(columns) + 1] == [*columns, "cluster"]
    assert [row["cluster"] for row in table] == [row["cluster"] for row in found]
    assert [row["id"] for row in table] == [row["judge"] for row in found]


def test_its_own_table_is_read_again(results, folder, capsys):
    """The columns that were added are no items, and are those of the last time."""
    write_wave("wave2.csv", 8, 1, ["id", *(f"Q5_{x}" for x in ITEMS)])
    assert run("assign", results, "wave2.csv", "--table", "once.csv", "--next", "1") == 0
    assert run("assign", results, "once.csv", "--table", "twice.csv") == 0
    assert "twice.csv: cluster, " in capsys.readouterr().err
    once, twice = rows_of("once.csv"), rows_of("twice.csv")
    assert list(once[0])[:-2] == list(twice[0])  # but for those of --next
    assert [row["cluster"] for row in once] == [row["cluster"] for row in twice]
    assert run("describe", "once.csv", "--judge", "id", "--layout", "ranks") == 0
    told = capsys.readouterr()
    assert "has added are left out: cluster" in told.err and "5 items" in told.out


def test_names_of_groups_are_the_same_everywhere(results, folder, capsys):
    """Columns and numbers of the tables are those of the results, whose page says group 1."""
    write_wave("wave2.csv", 40, 2)
    assert run("assign", results, "wave2.csv", "--table", "with.csv") == 0
    shown = capsys.readouterr().out
    fitted, groups = rows_of(results / "assignments.csv"), rows_of(results / "clusters.csv")
    numbers, found = [row["cluster"] for row in groups], rows_of("wave2-groups.csv")
    assert {row["cluster"] for row in fitted} <= set(numbers)
    assert {row["cluster"] for row in found} <= {*numbers, "none"}
    of_groups = [x.split()[1] for x in found[0] if x.startswith("group ")]
    assert of_groups == numbers
    common = ["cluster", "bloc", "probability", "bloc_probability"]
    assert [x for x in found[0] if x in common] == [x for x in fitted[0] if x in common]
    table = rows_of("with.csv")
    assert list(table[0])[-len(found[0]) + 1 :] == list(found[0])[1:]
    # each group has a line with its size and what it wants, as the results say it
    lines = {x.split()[0]: x for x in shown.splitlines() if x.split()[:1] and "before" in x}
    for row in groups[:2]:
        size = sum(x["cluster"] == row["cluster"] for x in found)
        assert lines[row["cluster"]].split()[1] == str(size)
        assert lines[row["cluster"]].endswith(row["wants"][:50])
    assert "group   judges  share put  share expected" in shown


def test_blocs_are_told_where_the_page_is_about_them(results, folder, capsys):
    kept = read_kept(results)
    if kept.blocs is None:
        pytest.skip("without blocs there are groups alone")
    assert not kept.blocs_first
    shutil.copytree(results, "of_blocs")
    with xr.load_dataset("of_blocs/posterior.nc", group="constant_data", engine="h5netcdf") as x:
        changed = x.assign_attrs(blocs_first=1)
    changed.to_netcdf("of_blocs/posterior.nc", mode="a", group="constant_data", engine="h5netcdf")
    write_wave("wave2.csv", 40, 2)
    assert run("assign", "of_blocs", "wave2.csv") == 0
    shown, found = capsys.readouterr().out, rows_of("wave2-groups.csv")
    assert "40 judges of wave2.csv in the blocs of of_blocs" in shown
    lines = {x.split()[0]: x.split() for x in shown.splitlines() if "before" in x}
    for row in rows_of("of_blocs/blocs.csv"):
        if row["chosen"] == "yes":
            assert lines[row["bloc"]][1] == str(sum(x["bloc"] == row["bloc"] for x in found))
    sizes = kept.blocs.sizes
    assert lines["1"][3] == f"{(sizes[0] + 1) / (sizes.sum() + len(sizes)):.1%}"


@pytest.mark.parametrize(("blocs_first", "little"), [(True, 2), (False, 1)])
def test_what_is_too_short_is_counted_as_the_table_counts(capsys, blocs_first, little):
    """Two judges tell no bloc from the other; of the three groups, one of them says something."""
    blocs = np.array([[0.6, 0.4], [0.55, 0.45], [0.9, 0.1]])
    groups = np.array([[0.3, 0.3, 0.4], [0.05, 0.5, 0.45], [0.45, 0.45, 0.1]])
    shares = np.array([0.3, 0.3, 0.4, 0.0])
    found = GroupsOfJudges(groups.argmax(1), groups.max(1), groups, np.zeros(3), shares, blocs, 9)
    kept = Kept(None, None, BlocMixture({}, np.array([59.0, 39.0])), TableOptions(), blocs_first)
    args = argparse.Namespace(file="new.csv", results=Path("out"))
    _print_summary(args, kept, found, ["new-groups.csv"])
    text = f"Too short to tell, or like any list: {little} ({little / 3:.1%})"
    assert text in capsys.readouterr().out


def test_names_with_commas_quotes_and_ends_of_lines(results, folder, capsys):
    """They are what they are in tables, and in one line on the screen."""
    odd = ['Ann, "A"', "Bob's; B", "Cid\nD", "$Dee `x`", "=Eva"]
    assert _named(odd) == "'Ann, \"A\"', Bob's; B, Cid\\u000aD, $Dee `x`, =Eva"
    (folder / "clusters.csv").write_text('cluster,wants\n1,"\'=Eva before Cid\nD"\n2,Ann\n')
    assert _wants(folder, "group") == {"1": "=Eva before Cid\\u000aD", "2": "Ann"}
    judges = ["p, 1", 'q "2"', "r\n3", "s;4"]
    columns = [f"Q5_{x}" for x in ITEMS]
    with open("it's odd.csv", "w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", 'a, "note"', *columns])
        rows.writerows([judge, "x,\ny", 1, 2, 3, 4, 5] for judge in judges)
    assert run("assign", results, "it's odd.csv", "--table", "with.csv") == 0
    assert [row["judge"] for row in rows_of("it's odd-groups.csv")] == judges
    table = rows_of("with.csv")
    assert [row["id"] for row in table] == judges
    assert {row['a, "note"'] for row in table} == {"x,\ny"}


def test_the_items_that_come_next(results, folder, capsys):
    """Who has Eva first is of the second group, who goes on with Cid, or with Dee."""
    with open("begun.csv", "w", encoding="utf-8") as stream:
        stream.write(",".join(["id", *(f"Q5_{x}" for x in ITEMS)]) + "\na,,,,,1\nb,1,2,3,4,5\n")
    assert run("assign", results, "begun.csv", "--next", "2") == 0
    begun, whole = rows_of("begun-groups.csv")
    assert begun["next 1"] == "Cid" and float(begun["probability of next 1"]) > 0.5
    assert 0 < float(begun["probability of next 2"]) < float(begun["probability of next 1"])
    assert {whole[name] for name in whole if "next" in name} == {""}
    with open("tied.csv", "w", encoding="utf-8") as stream:
        stream.write(",".join(["id", *(f"Q5_{x}" for x in ITEMS)]) + "\na,1,1,3,4,5\n")
    command = ["assign", results, "tied.csv", "--next", "2"]
    expect_error(capsys, command, ["--next is for lists without ties"])


def test_items_in_cells_that_nobody_names_were_offered(results, folder):
    """The first two places of all items, as a table of ranks and as one of orders."""
    pairs = [("Ann", "Bob"), ("Eva", "Cid"), ("Bob", "Ann")]
    with open("ranks.csv", "w", encoding="utf-8") as stream:
        stream.write(",".join(["id", *(f"Q5_{x}" for x in ITEMS)]) + "\n")
        for k, pair in enumerate(pairs):
            ranks = [str(pair.index(x) + 1) if x in pair else "" for x in ITEMS]
            stream.write(",".join([f"p{k}", *ranks]) + "\n")
    with open("orders.csv", "w", encoding="utf-8") as stream:
        stream.write("email,1st,2nd\n")
        stream.writelines(f"p{k},{a},{b}\n" for k, (a, b) in enumerate(pairs))
    assert run("assign", results, "ranks.csv") == 0
    other = ["--layout", "orders", "--columns", "1st,2nd", "--judge", "email"]
    assert run("assign", results, "orders.csv", *other) == 0
    assert rows_of("ranks-groups.csv") == rows_of("orders-groups.csv")


def test_options_of_the_fit_that_a_new_file_needs_in_part(folder):
    """Columns of items and of judges that are not there are left out; those of cells stay."""
    remembered = TableOptions(
        layout="ranks",
        judge="id",
        about=("region", "age"),
        items=("Ann", "Bob", "Cid"),
        gaps="fill",
    )
    (folder / "new.csv").write_text("email,Cid,Ann,age\na,1,2,40\n")
    (folder / "cells.csv").write_text("email,1st,2nd\na,Ann,Cid\n")
    table = _as_fitted("new.csv", remembered, TableOptions(judge="email", gaps="close"))
    assert table == replace(
        remembered, judge="email", about=("age",), items=("Ann", "Cid"), gaps="close"
    )
    table = _as_fitted("cells.csv", remembered, TableOptions(layout="orders"))
    assert table == replace(remembered, layout="orders", judge=None, about=())


def test_refused(results, folder, capsys):
    write_wave("wave2.csv", 5, 1)
    names = ["id", *(f"Q5_{x}" for x in ITEMS[:4]), "Q5_Zed"]
    with open("zed.csv", "w", encoding="utf-8") as stream:
        stream.write(",".join(names) + "\np1,1,2,3,4,5\n")
    (folder / "empty.csv").write_text(",".join(names) + "\n")
    (folder / "mine.csv").write_text("a\n")
    (folder / "taken-groups.csv").write_text("mine\n")
    shutil.copy("wave2.csv", "taken.csv")
    (folder / "nothing").mkdir()
    store = folder / "begun.run"
    store.mkdir()
    (store / "zarr.json").write_text("{}")
    (folder / "begun").mkdir()
    for arguments, fragments in (
        ([results, "zed.csv"], ["'Zed' is no item of the fit", "Ann, Bob", "--aliases"]),
        ([results, "empty.csv"], ["empty.csv"]),
        ([results, "taken.csv"], ["taken-groups.csv was not written by this command"]),
        ([results, "wave2.csv", "--table", "mine.csv"], ["mine.csv exists"]),
        ([results, "wave2.csv", "--out", "groups.txt"], ["--out is the name of a table"]),
        ([results, "wave2.csv", "--table", "x.xlsx"], ["x.xlsx: with columns added"]),
        (["none", "wave2.csv"], ["none: there is no such folder"]),
        (["wave2.csv", "wave2.csv"], ["wave2.csv: is a file"]),
        (["nothing", "wave2.csv"], ["there is no posterior.nc"]),
        (["begun", "wave2.csv"], ["its run is unfinished", "--resume begun"]),
        (["begun.run", "wave2.csv"], ["is an unfinished run", "--resume begun"]),
    ):
        expect_error(capsys, ["assign", *arguments], fragments)


def test_only_tables_of_the_command_are_replaced(results, folder, capsys):
    write_wave("wave2.csv", 5, 1)
    assert run("assign", results, "wave2.csv") == 0
    capsys.readouterr()
    expect_error(capsys, ["assign", results, "wave2.csv"], ["use --force"])
    assert run("assign", results, "wave2.csv", "--force") == 0


def test_short_form(results, capsys):
    assert run("assign", results, "--short-form", "3") == 0
    out = capsys.readouterr().out
    assert out.startswith("\nAsk for the order of ") and "put right" in out
    shares = [float(line.split()[1][:-1]) for line in out.splitlines() if "%  " in line]
    assert len(shares) == 3 and min(shares[:2]) > 80 and shares[2] < 80
    expect_error(capsys, ["assign", results, "--short-form", "6"], ["has 5 items"])
    expect_error(capsys, ["assign", results], ["FILE is missing"])


def test_one_population_has_no_groups(undisturbed, small, capsys):
    expect_error(capsys, ["assign", undisturbed, "small.soi"], ["one population"])
