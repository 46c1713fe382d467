"""``describe --plot``: the page, and the counts that it shows."""

import re

import numpy as np
import pytest

from numpyro_rankings import Rankings
from numpyro_rankings.cli import main
from numpyro_rankings.cli.describe_rankings import (
    _alike,
    _column,
    description,
    often_first,
)
from numpyro_rankings.datasets import load_dataset
from numpyro_rankings.rankings.counts import item_counts, judges_by_length, shares_above
from numpyro_rankings.readers.surveys import survey_of
from numpyro_rankings.report import description as report_of_file

TABLE = "id;region;<b>Tea</b>;Cream & coffee;Cocoa\n" + "".join(
    f"r{i};{'NS'[i % 2]};{ranks}\n"
    for i, ranks in enumerate(["1;2;3", "2;1;", ";2;1", "1;2;3"] * 5)
)
READ = ["survey.csv", "--layout", "ranks", "--judge", "id", "--about", "region"]


@pytest.fixture
def folder(folder):
    (folder / "survey.csv").write_text(TABLE)
    return folder


def test_page(folder, capsys):
    assert main(["describe", *READ, "--plot", "pages/survey.html"]) == 0
    printed = capsys.readouterr().out
    page = (folder / "pages" / "survey.html").read_text(encoding="utf-8")
    for part in (
        "<h1>survey.csv</h1>",
        "20 rankings (3 distinct) of 3 items",
        "<li>10 judges rank the items in the order of the columns: r0, r3, r4,",
        "&lt;b&gt;Tea&lt;/b&gt;",
        "Cream &amp; coffee",
        "numpyro-rankings describe survey.csv",
    ):
        assert part in page
    assert page.count("data:image/svg+xml;base64,") == 3
    for forbidden in ("http://", "https://", "<script", "<link", "<b>Tea"):
        assert forbidden not in page
    shown = re.search("<pre>(.*)</pre>", page, re.DOTALL)[1]
    assert "region: N 10, S 10" in shown and "region: N 10, S 10" in printed
    assert "Page: pages/survey.html" in printed

    # its own page is replaced, and nothing is left beside it
    assert main(["describe", "--plot", "pages/survey.html"]) == 0
    assert "15,449 rankings" in (folder / "pages" / "survey.html").read_text(encoding="utf-8")
    assert sorted(x.name for x in folder.rglob("*")) == ["pages", "survey.csv", "survey.html"]


def test_a_page_replaces_no_other_file(folder, capsys):
    (folder / "mine.html").write_text("<h1>Mine</h1>")
    for name, part in (
        ("survey.csv", "--plot is the name of a page, such as survey.html"),
        ("mine.html", "mine.html was not written by numpyro-rankings"),
    ):
        before = (folder / name).read_text()
        assert main(["describe", *READ, "--plot", name]) == 2
        shown = capsys.readouterr()
        assert part in shown.err and not shown.out
        assert (folder / name).read_text() == before


def test_a_page_that_cannot_be_written(folder, monkeypatch, capsys):
    made = []

    def write(page, *_):
        made.append(page)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_of_file, "write_description", write)
    assert main(["describe", *READ, "--plot", "survey.html"]) == 2
    assert "cannot write survey.html: No space left on device" in capsys.readouterr().err
    (page,) = made
    assert page.parent.parent == folder  # on the same disk, where the user may write
    assert [x.name for x in folder.iterdir()] == ["survey.csv"]


def test_files_that_no_model_takes_have_no_page(folder, capsys):
    header = "# NUMBER ALTERNATIVES: 2\n# NUMBER EDGES: 1\n"
    names = "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n"
    (folder / "x.wmd").write_text(f"{header}{names}1,2,1.0\n")
    assert main(["describe", "x.wmd"]) == 0
    assert main(["describe", "x.wmd", "--plot", "x.html"]) == 2
    assert "--plot has no page" in capsys.readouterr().err and not (folder / "x.html").exists()


@pytest.mark.parametrize("with_choice_sets", [False, True])
def test_counts(with_choice_sets):
    rng = np.random.default_rng(0)
    orders = np.argsort(rng.random((50, 20)))[:, :6].astype(int)
    for row, length in zip(orders, rng.integers(1, 7, 50), strict=True):
        row[length:] = -1
    offered = None
    if with_choice_sets:
        offered = rng.random((50, 20)) < 0.5
        np.put_along_axis(offered, np.where(orders >= 0, orders, orders[:, :1]), True, axis=1)
    r = Rankings.from_orderings(
        orders, num_items=20, counts=rng.integers(1, 9, 50), choice_sets=offered
    )
    ranks, counts = r.to_ranks(), np.asarray(r.counts)
    found = item_counts(r)
    np.testing.assert_array_equal(found.ranked, counts @ ~np.isnan(ranks))
    np.testing.assert_array_equal(found.first, counts @ (ranks == 1))
    weights = ~np.isnan(ranks) * counts[:, None]
    with np.errstate(invalid="ignore"):
        mean = (np.nan_to_num(ranks) * weights).sum(0) / weights.sum(0)
    np.testing.assert_allclose(found.mean_rank, mean)
    assert (np.diff(found.first[found.order]) <= 0).all()
    lengths, judges = judges_by_length(r)
    np.testing.assert_array_equal(
        judges, [counts[np.asarray(r.lengths) == length].sum() for length in lengths]
    )
    items = often_first(r)
    assert len(items) == 12 and (np.diff(found.first[items]) <= 0).all()
    shares = shares_above(r, items)
    last = np.where(np.isnan(ranks), np.inf, ranks)
    for k, i in ((0, 1), (3, 2), (11, 5)):
        a, b = items[k], items[i]
        both = np.ones(50, bool) if offered is None else offered[:, a] & offered[:, b]
        above, below = (counts[both & (last[:, x] < last[:, y])].sum() for x, y in ((a, b), (b, a)))
        assert shares[k, i] == pytest.approx(above / (above + below))


def test_columns_about_the_judges():
    assert list(_column("age", [str(k) for k in range(20, 40)] + [""])) == [
        "age: 20 to 39, median 29.5, 1 without"
    ]
    assert list(_column("age", ["20"] * 3 + ["30", ""])) == ["age: 20 3, 30 1, (no answer) 1"]
    (line,) = _column("x", [*map(str, range(100, 120)), "many"])
    assert line.startswith("x: 100 1, 101 1")


def test_names_that_are_nearly_the_same():
    assert _alike(["ann", "bob", "ann", "cid\nb", "b c"]) == []
    assert _alike(["ann", "Ann", "bob", "b  c", "b c"]) == [["Ann", "ann"], ["b  c", "b c"]]
    assert _alike(["b\nc", "b c", "x"]) == [["b\nc", "b c"]]


def test_no_dense_table_is_made(monkeypatch):
    """A million rows by thousands of items would fill the memory."""
    survey = survey_of(load_dataset(), "bundled")
    monkeypatch.delattr(Rankings, "to_ranks")
    assert any("C (research)" in line for line in description(survey))
