"""What ``fit --save`` writes beside the usual results."""

import csv
import re
import zipfile
from pathlib import Path

import jax
import numpy as np
import openpyxl
import pytest
from helpers.command_line import QUICK_FIT, rows_of
from helpers.fabricated import fabricated_mcmc, with_groups

from numpyro_rankings import read_survey
from numpyro_rankings.cli import fit, fit_options, main, saved
from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.cli.results import check_replaceable
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.posterior import predictive_checks

FIT = ["fit", "lists.csv", "--layout", "orders", "--judge", "id", *QUICK_FIT, "--out", "out"]
NAMES = ["=1+1", "Bob", "Cid", "Dee", "Eve"]


@pytest.fixture
def run_of(monkeypatch):
    """Lets the command write results of draws with so many groups, without a sampler."""
    monkeypatch.setattr(predictive_checks, "posterior_predictive_checks", lambda *_: None)

    def make(number):
        data = simulate_mallows_mixture(jax.random.key(1), 60, 5, 5, number, 2.0, items=NAMES)
        rows = np.asarray(data.rankings.expand().orderings)
        lines = ["id,1st,2nd,3rd,4th,5th"]
        lines += [f"{k:03},{','.join(NAMES[i] for i in row)}" for k, row in enumerate(rows)]
        Path("lists.csv").write_text("\n".join(lines) + "\n")
        survey = read_survey("lists.csv", "orders", judge="id")
        rankings, by_label = survey.rankings, np.argsort(survey.label_index)
        mcmc = fabricated_mcmc(rankings, chains=2, draws=20)
        if number > 4:
            places = np.array([rankings.items.index(name) for name in NAMES])
            labels = np.asarray(data.assignments)[by_label]
            centers = places[np.asarray(data.centers)]
            mcmc = with_groups(mcmc, data._replace(centers=centers, assignments=labels))
        monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))

    return make


def test_all_is_saved_and_is_what_the_results_say(run_of, capsys):
    run_of(6)
    assert main([*FIT, "--save", "figures,xlsx", "--save", "summary,table"]) == 0
    shown = capsys.readouterr().out
    for name in ("figures", "results.xlsx", "summary.html", "table.csv"):
        assert Path("out", name).exists() and name in shown.partition("Results:")[2]
    of_csv = rows_of("out/assignments.csv")
    own = rows_of("out/table.csv")
    assert list(own[0])[:6] == ["id", "1st", "2nd", "3rd", "4th", "5th"]
    columns = ["cluster", "bloc", "probability", "bloc_probability"]
    assert list(own[0])[6:] == columns
    by_judge = {row["judge"]: row for row in of_csv}
    for row in own:
        said = by_judge[row["id"]]
        assert [float(row[x]) for x in columns] == [float(said[x]) for x in columns]
    book = openpyxl.load_workbook("out/results.xlsx")
    assert book.sheetnames == ["clusters", "assignments", "blocs"]
    header, *rows = book["assignments"].values
    assert [[str(x) for x in row] for row in rows] != [] and len(rows) == 60
    judge, place = header.index("judge"), header.index("cluster")
    assert rows[7][judge] == "007"  # a name, and no number
    assert all(row[place] == int(x["cluster"]) for row, x in zip(rows, of_csv, strict=True))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    texts = [cell for cell in cells if isinstance(cell.value, str) and cell.value[0] in "=+-@"]
    assert texts and {cell.data_type for cell in texts} == {"s"}
    assert not any(str(cell.value).startswith("'") for cell in cells)


def test_the_summary_can_be_printed_anywhere(run_of):
    """It has all that it shows in itself, and rules for paper; a slow test counts its sheets."""
    run_of(3)
    assert main([*FIT, "--save", "summary"]) == 0
    text = Path("out/summary.html").read_text(encoding="utf-8")
    assert re.search(r"@media print \{.*?@page \{ size: A4", text, re.DOTALL)
    sources = re.findall(r"\b(?:src|href|srcset|data|action)=[\"']?([^\"'\s>]*)", text)
    assert any(x.startswith("data:image/svg+xml") for x in sources)
    own = {f"#{x}" for x in re.findall(r'\bid="([^"]*)"', text)}
    assert all(x.startswith("data:image/") or x in own for x in sources)
    assert not re.search(r"@import|<script|url\(", text)
    shown = re.sub(r"<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL).split()
    assert len(shown) < 500  # a sheet of paper
    parts = [text.index(x) for x in ("<h2>What the ", "<figcaption>", "<h2>Can I trust it?</h2>")]
    assert parts == sorted(parts)


def test_figures_have_the_size_of_a_slide(run_of):
    run_of(6)
    assert main([*FIT, "--save", "figures"]) == 0
    pictures = sorted(Path("out/figures").glob("*.png"))
    names = {x.stem for x in pictures}
    assert {"places-mean", "places-first", "places-top", "orders-groups-1"} <= names
    assert names == {x.stem for x in Path("out/figures").glob("*.svg")}
    for path in pictures:
        content = path.read_bytes()
        assert [int.from_bytes(content[k : k + 4], "big") for k in (16, 20)] == [1920, 1080]
        svg = path.with_suffix(".svg").read_text(encoding="utf-8")
        head = re.search('<svg .*?width="(.*?)pt" height="(.*?)pt" viewBox="0 0 (.*?) (.*?)"', svg)
        width, height, inner, _ = map(float, head.groups())
        assert (width, height) == (960, 540)
        sizes = [float(x) for x in re.findall(r"font(?:-size)?: ([\d.]+)px", svg)]
        assert min(sizes) * width / inner >= 10  # points on the slide
    assert "bloc 1" in Path("out/figures/places-mean.svg").read_text(encoding="utf-8")


def test_without_blocs_the_slides_are_of_the_groups(run_of):
    run_of(3)
    assert main([*FIT, "--save", "figures"]) == 0
    assert not Path("out/blocs.csv").exists()
    for what in ("mean", "first", "top"):
        text = Path(f"out/figures/places-{what}.svg").read_text(encoding="utf-8")
        assert "group 1" in text and "bloc 1" not in text
        names = re.findall(r'<text [^>]*?y="([\d.]+)"[^>]*>group \d</text>', text)
        assert len(names) == 3 and len(set(names)) == 1  # the names are in one line


def test_saved_files_of_earlier_results_go_and_those_of_others_stay(run_of, capsys):
    run_of(3)
    assert main([*FIT, "--save", "figures,xlsx,summary,table"]) == 0
    assert "group 1" in Path("out/summary.html").read_text(encoding="utf-8")
    assert main([*FIT, "--force", "--save", "summary"]) == 0
    there = {x.name for x in Path("out").iterdir()}
    assert "summary.html" in there and not there & {"figures", "results.xlsx", "table.csv"}
    Path("out/figures").mkdir()
    Path("out/figures/mine.png").write_bytes(b"mine")
    book = openpyxl.Workbook()
    book.save("out/results.xlsx")
    assert main([*FIT, "--force"]) == 0
    assert Path("out/figures/mine.png").exists() and zipfile.is_zipfile("out/results.xlsx")
    for word, name in (("figures", "figures"), ("xlsx", "results.xlsx")):
        capsys.readouterr()
        assert main([*FIT, "--force", "--save", word]) == 2
        message = f"out/{name} was not written by numpyro-rankings"
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "header", ["id,A,cluster,probability", '"a, b";"A";"cluster (fitted)";"probability"']
)
def test_tables_of_earlier_results_are_known(folder, header):
    """Also those with quotes around all cells."""
    Path("table.csv").write_text(f"{header}\n")
    check_replaceable(folder, ["table.csv"])
    Path("table.csv").write_text("id,A,clusters\n")
    with pytest.raises(UserError, match=r"table\.csv was not written by"):
        check_replaceable(folder, ["table.csv"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--save", "pdf"], "--save takes figures, xlsx, summary and table"),
        (["--save", "table"], "--save table goes with a table that has a row for each judge"),
    ],
)
def test_refused_at_once(capsys, arguments, message):
    assert main(["fit", *arguments]) == 2
    assert message in capsys.readouterr().err and not list(Path().iterdir())


def test_refused_with_counts_and_without_the_package(capsys, monkeypatch):
    Path("t.csv").write_text("n,1st,2nd\n3,A,B\n2,B,A\n")
    table = ["fit", "t.csv", "--layout", "orders", "--count", "n", "--save"]
    assert main([*table, "table"]) == 2
    assert "--save table goes without --count" in capsys.readouterr().err
    monkeypatch.setattr(fit_options, "find_spec", lambda _: None)
    assert main([*table, "xlsx"]) == 2
    assert "pip install 'numpyro-rankings[tables]'" in capsys.readouterr().err


def test_cells_of_the_workbook(folder):
    """Numbers are numbers, but for those that are names; texts that begin like formulas are not."""
    rows = [["n", "id", "what"], ["1.5", "007", "'=A1"], ["", "8", "-5"], ["1e-05", "9", "'-x"]]
    with Path("t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    saved.write_workbook(folder, ["t.csv"])
    cells = list(openpyxl.load_workbook("results.xlsx")["t"].iter_rows())
    assert [[x.value for x in row] for row in cells] == [
        ["n", "id", "what"],
        [1.5, "007", "=A1"],
        [None, "8", "-5"],
        [1e-5, "9", "-x"],
    ]
    assert {row[2].data_type for row in cells} == {"s"}
