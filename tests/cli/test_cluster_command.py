"""The command for points and documents, end to end on small files, and every kind of bad input."""

import contextlib
import io
import os
import signal
from types import SimpleNamespace

import arviz as az
import numpy as np
import pytest
from helpers.command_line import (
    FEW,
    GAUSSIAN,
    PLANE,
    POINTS,
    QUICK_CLUSTER,
    expect_error,
    rows_of,
    run,
)
from helpers.fabricated import fabricated_partition_mcmc

from numpyro_rankings._system.interrupts import HeldInterrupts
from numpyro_rankings.cli import capacity, results
from numpyro_rankings.cli import cluster as cluster_command
from numpyro_rankings.cli import files as cluster_data
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.infer import CollapsedGibbs, DDCRPGibbs, window_decay
from numpyro_rankings.links import distances

pytestmark = pytest.mark.usefixtures("one_program")

# documents of the words 0 to 2 and of 3 to 5, by turns; the last one is empty
LDAC = (
    "3 0:9 1:7 2:5\n3 3:9 4:7 5:5\n3 0:8 1:6 2:7\n3 3:8 4:9 5:4\n3 0:6 1:9 2:9\n3 3:6 4:9 5:7\n0\n"
)
VOCAB = "cat\ndog\n<owl>\nbond\nloan\nrate\n"
# a chain of the documents of each kind
GRAPH = "0\t2\n2\t4\n1 3\n# the other kind\n3,5\n"
TEXTS = ["cluster", "texts.ldac", "--family", "multinomial"]


def _write_files(folder):
    files = {"points.csv": POINTS, "texts.ldac": LDAC, "vocab.txt": VOCAB, "graph.tsv": GRAPH}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def small(folder):
    _write_files(folder)
    return folder


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    """A real run: its folder, and what it printed."""
    folder = tmp_path_factory.mktemp("clustered")
    _write_files(folder)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.chdir(folder)
        assert run(*GAUSSIAN, *FEW, *QUICK_CLUSTER, "--seed", 3) == 0
    return folder, out.getvalue()


def test_cluster_finds_the_groups_and_writes_its_four_files(clustered, monkeypatch):
    folder, printed = clustered
    monkeypatch.chdir(folder)
    assert sorted(os.listdir("out")) == sorted(results.FILES)
    assert len(os.listdir()) == 5  # and nothing else
    assert "Groups in 20 points of 2 columns: x, y" in printed and "2 groups hold" in printed
    assert "R-hat" in printed and "report.html" in printed and "assignments.csv" in printed

    people = rows_of("out/assignments.csv")
    assert [row["point"] for row in people] == [f"<p{i}>" for i in range(20)]
    assert {row["cluster"] for row in people[::2]} != {row["cluster"] for row in people[1::2]}
    assert len({row["cluster"] for row in people[::2]}) == 1
    assert all(0.5 < float(row["probability"]) <= 1 for row in people)

    clusters = rows_of("out/clusters.csv")
    assert [row["cluster"] for row in clusters] == ["1", "2"]
    posterior = az.from_netcdf("out/posterior.nc")["posterior"]
    labels = np.asarray(posterior["assignments"]).reshape(-1, 20)
    for row in clusters:
        members = [i for i, person in enumerate(people) if person["cluster"] == row["cluster"]]
        assert int(row["members"]) == len(members) == 10
        for k, name in enumerate("xy"):
            mean = PLANE[members, k].mean()
            assert float(row[f"mean of {name}"]) == pytest.approx(mean, abs=1e-3)
        assert 0 < float(row["size_low"]) <= float(row["size_high"]) <= 20
        assert float(row["share"]) == pytest.approx(float(row["size"]) / 20, rel=1e-4)
        assert row["presence"] == "1"
        together = labels[:, members][:, :, None] == labels[:, members][:, None, :]
        pairs = together.mean(0)[~np.eye(10, dtype=bool)]
        assert float(row["cohesion"]) == pytest.approx(pairs.mean(), abs=1e-4)
        first = together.mean(0)[0, 1:].mean()
        assert float(people[members[0]]["probability"]) == pytest.approx(first, abs=1e-3)

    data = az.from_netcdf("out/posterior.nc")
    assert data["posterior"]["assignments"].shape == (2, 40, 20)
    assert list(data["posterior"]["point"].values[:2]) == ["<p0>", "<p1>"]
    assert data.attrs["kernel"] == "Cycle" and "points.csv" in data.attrs["command"]

    page = open("out/report.html", encoding="utf-8").read()
    for expected in (
        "Can I trust it?",
        "What the groups are",
        "mean of x",
        "two points are in one group",
        "the grouping that agrees best with all draws",
        "That of 95% of the draws is at most",
    ):
        assert expected in page
    assert page.count("data:image/svg+xml;base64,") >= 4
    for forbidden in ("http://", "https://", "<script", "<link", "rankings</p>"):
        assert forbidden not in page


def test_same_seed_same_results(clustered, small, plain_page):
    assert run(*GAUSSIAN, *FEW, *QUICK_CLUSTER, "--seed", 3) == 0
    for name in ("clusters.csv", "assignments.csv"):
        assert (clustered[0] / "out" / name).read_text() == (small / "out" / name).read_text()


@pytest.mark.slow
def test_documents_on_a_graph(small, capsys):
    options = ["--vocab", "vocab.txt", "--graph", "graph.tsv", "--alpha", "gamma(1,1)"]
    assert run(*TEXTS, *options, *QUICK_CLUSTER) == 0
    printed = capsys.readouterr()
    assert "7 documents of 130 words, 6 in the vocabulary" in printed.out
    assert "note: 1 document without words" in printed.err
    found = [row["cluster"] for row in rows_of("out/assignments.csv")]
    assert found[0] == found[2] == found[4] != found[1] == found[3] == found[5] != found[6]
    by_cluster = {row["cluster"]: row for row in rows_of("out/clusters.csv")}
    animals, money = by_cluster[found[0]], by_cluster[found[1]]
    # 66 words, of which the cat has 23
    assert [animals[f"word_{k}"] for k in (1, 2, 3, 4)] == ["cat", "dog", "<owl>", ""]
    assert float(animals["share_1"]) == pytest.approx(23 / 66, abs=1e-3)
    assert {money[f"word_{k}"] for k in (1, 2, 3)} == {"bond", "loan", "rate"}
    assert by_cluster[found[6]]["word_1"] == ""
    posterior = az.from_netcdf("out/posterior.nc")["posterior"]
    links = np.asarray(posterior["links"])
    for i, allowed in enumerate([{0, 2}, {1, 3}, {0, 2, 4}, {1, 3, 5}, {2, 4}, {3, 5}, {6}]):
        assert set(np.unique(links[..., i]).tolist()) <= allowed
    page = open("out/report.html", encoding="utf-8").read()
    assert "&lt;owl&gt;" in page and "<owl>" not in page


@pytest.mark.slow
def test_points_in_time(small):
    """Links go back in time only, and not past the window."""
    times = np.random.default_rng(1).permutation(20) / 2
    table = POINTS.splitlines()
    table = [f"{table[0]},day", *(f"{a},{b}" for a, b in zip(table[1:], times, strict=True))]
    (small / "days.csv").write_text("\n".join(table))
    options = ["--noise", 2, "--spread", 50, "--time", "day", "--decay", "window:gamma(20,10)"]
    assert run("cluster", "days.csv", "--family", "gaussian", *options, *QUICK_CLUSTER) == 0
    posterior = az.from_netcdf("out/posterior.nc")["posterior"]
    links, scale = np.asarray(posterior["links"]), np.asarray(posterior["decay_scale"])
    back = times - times[links]
    linked = links != np.arange(20)
    assert linked.any()
    assert (back[linked] > 0).all() and (back < scale[..., None]).all()
    rows = rows_of("out/clusters.csv")
    assert "mean of day" not in rows[0]
    labels = [row["cluster"] for row in rows_of("out/assignments.csv")]
    assert not set(labels[::2]) & set(labels[1::2])
    page = open("out/report.html", encoding="utf-8").read()
    assert "When each cluster has its points" in page and "as learned" in page


@pytest.mark.slow
def test_documents_without_distances(small):
    options = ["--sampler", "collapsed", "--concentration", "0.5", "--discount", "0.1"]
    assert run(*TEXTS, "--vocab", "vocab.txt", *options, *QUICK_CLUSTER) == 0
    found = [row["cluster"] for row in rows_of("out/assignments.csv")]
    assert found[0] == found[2] == found[4] != found[1] == found[3] == found[5]


class Stop(Exception):
    pass


@pytest.fixture
def sampled(monkeypatch):
    """What the kernel and the model are given, up to the first sweep."""
    made: dict = {}

    def stop(kernel, *data, **_):
        made.update(kernel=kernel, data=data)
        raise Stop

    monkeypatch.setattr("numpyro_rankings.run.Run", stop)

    def record(*arguments):
        with pytest.raises(Stop):
            run(*arguments, *QUICK_CLUSTER)
        return SimpleNamespace(**made)

    return record


def test_options_reach_the_kernel(small, sampled):
    made = sampled(*GAUSSIAN, "--alpha", "gamma(2,3)", "--discount", "0.2", "--max-clusters", "9")
    assert [type(k).__name__ for k in made.kernel.kernels] == ["CollapsedGibbs", "SplitMerge"]
    assert (made.kernel._alpha.concentration, made.kernel._alpha.rate) == (2, 3)
    assert (made.kernel._discount, made.kernel.num_slots) == (0.2, 9)
    family = made.kernel.family
    # the prior is that of the data, in whatever units
    (data,) = made.data
    np.testing.assert_allclose(data, (PLANE - PLANE.mean(0)) / PLANE.std(0, ddof=1), atol=1e-3)
    np.testing.assert_allclose(family.scale, 0.1 * np.corrcoef(PLANE.T), atol=1e-5)
    assert (family.prior_size, family.df) == (0.1, 4)

    made = sampled(*GAUSSIAN, "--sampler", "collapsed", "--noise", "0.5", "--spread", "7")
    assert isinstance(made.kernel, CollapsedGibbs) and made.kernel.num_slots == 20
    assert (made.kernel.family.noise_scale, made.kernel.family.prior_scale) == (0.5, 7)
    np.testing.assert_allclose(made.data[0], PLANE - PLANE.mean(0), atol=1e-3)

    made = sampled(*TEXTS, "--concentration", "0.3")
    assert made.kernel.family.concentration == 0.3
    counts = np.zeros((7, 6))
    counts[0, :3], counts[1, 3:], counts[2, :3] = (9, 7, 5), (9, 7, 5), (8, 6, 7)
    np.testing.assert_array_equal(made.data[0][:3], counts[:3])
    assert made.data[0].sum() == 130


def test_wide_tables_of_counts_are_kept_sparse(small, sampled):
    header = ",".join(f"w{k}" for k in range(40))
    rows = [[2 if k in (i, 39) else 0 for k in range(40)] for i in range(5)]
    (small / "wide.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    made = sampled("cluster", "wide.csv", "--family", "multinomial")
    words, counts = made.data[0]
    assert words.tolist() == [[i, 39] for i in range(5)]
    assert counts.tolist() == [[2, 2]] * 5
    assert made.kernel.family.vocabulary_size == 40


def test_distances_reach_the_kernel(small, sampled):
    matrix = np.abs(np.arange(20.0)[:, None] - np.arange(20.0))
    matrix[3, 4] = np.inf
    np.savetxt("d.csv", matrix, delimiter=",")
    made = sampled(*GAUSSIAN, "--distances", "d.csv", "--decay", "exponential:gamma(3,2)")
    assert isinstance(made.kernel, DDCRPGibbs)
    np.testing.assert_array_equal(made.data[1], matrix)
    decay = made.kernel._decay
    assert (decay.name, decay.scale.concentration, decay.scale.rate) == ("exponential", 3, 2)
    made = sampled(*GAUSSIAN, "--distances", "d.csv", "--decay", "identity")
    assert made.kernel._decay.name == "identity" and made.kernel._decay.scale is None


def test_time_goes_back_and_among_equals_up_the_file(small, sampled):
    (small / "times.txt").write_text("5\n1\n5\n1\n0\n9\n2.5\n")
    made = sampled(*TEXTS, "--time", "times.txt", "--decay", "logistic:2")
    found = np.asarray(made.data[1])
    times = [5, 1, 5, 1, 0, 9, 2.5]
    for i, j in np.ndindex(7, 7):
        is_before = times[j] < times[i] or (times[j] == times[i] and j < i)
        assert found[i, j] == (times[i] - times[j] if is_before else np.inf)


def test_dates_are_days(small, sampled, capsys):
    texts = ["2024-02-28", "2024-03-01", "2024-02-29 12:00", "2023-02-28", "2024-03-01T06:00:00"]
    texts += ["2024-02-28", "2024-03-02"]
    (small / "times.txt").write_text("\n".join(texts) + "\n")
    times = [365.0, 367.0, 366.5, 0.0, 367.25, 365.0, 368.0]
    made = sampled(*TEXTS, "--time", "times.txt", "--decay", "logistic:2")
    expected = distances.sequential_distances(np.array(times))
    np.testing.assert_array_equal(np.asarray(made.data[1]), expected)
    assert "times.txt: dates are read as days since 2023-02-28" in capsys.readouterr().err
    stamps = np.array(texts, dtype="datetime64[s]")
    np.testing.assert_array_equal(distances.sequential_distances(stamps), expected)
    with pytest.raises(ValueError, match="finite"):
        distances.sequential_distances(np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"))
    rows = "\n".join(["a,b,day", *(f"{k},1,{text}" for k, text in enumerate(texts))])
    (small / "table.csv").write_text(rows + "\n")
    options = ["--family", "multinomial", "--time", "day", "--decay", "exponential:30"]
    made = sampled("cluster", "table.csv", *options)
    np.testing.assert_array_equal(np.asarray(made.data[1]), expected)


OTHER_DATES = ["31.3.2024", "3/31/2024", "2024-13-01", "2024-03-31T10:00Z", "31 Mar 2024", ""]
OTHER_DATES += ["3/31/2024 1:30 PM", "31.03.24 13:30", "2024/03/31", "2024-03", "13:30"]


@pytest.mark.parametrize("date", OTHER_DATES)
def test_other_dates_are_refused(small, capsys, date):
    options = ["--family", "multinomial", "--time", "day", "--decay", "exponential:30"]
    for first, line in (("2024-03-30", 3), (date, 2), ("1", 3)):
        (small / "table.csv").write_text(f"a,b,day\n1,2,{first}\n1,1,{date}\n")
        if date == "2024-03-31T10:00Z" and first == date:
            continue  # all have a zone
        assert run("cluster", "table.csv", *options) == 2
        said = capsys.readouterr().err
        line = 2 if first == "1" and date.startswith(("2024-13", "2024-03-31")) else line
        assert f"table.csv:{line}: column 'day'" in said and "are written 2024-03-31" in said


def test_times_with_zones_and_dates_without_hyphens(small, sampled, capsys):
    texts = ["2024-03-30T10:00Z", "2024-03-31T12:00+02:00", "2024-03-30 13:00:00+01:00"]
    rows = "\n".join(["a,b,day", *(f"{k},1,{text}" for k, text in enumerate(texts))])
    (small / "table.csv").write_text(rows + "\n")
    options = ["--family", "multinomial", "--time", "day", "--decay", "exponential:30"]
    found = np.asarray(sampled("cluster", "table.csv", *options).data[1])
    np.testing.assert_allclose([found[1, 0], found[2, 0]], [1, 2 / 24])
    (small / "table.csv").write_text("a,b,day\n1,2,20240331\n1,1,20240401\n")
    assert run("cluster", "table.csv", *options) == 2
    assert "table.csv:2: column 'day': 20240331 may be a date;" in capsys.readouterr().err


def _reached(sparse):
    neighbors, hops = (np.asarray(x) for x in sparse)
    return [
        {int(j): int(h) for j, h in zip(a, b, strict=True) if j >= 0}
        for a, b in zip(neighbors, hops, strict=True)
    ]


def test_hops_of_a_graph(small, sampled):
    made = sampled(*TEXTS, "--graph", "graph.tsv")
    near = [{2: 1}, {3: 1}, {0: 1, 4: 1}, {1: 1, 5: 1}, {2: 1}, {3: 1}, {}]
    assert _reached(made.data[1]) == near
    decay = made.kernel._decay
    assert (decay.name, decay.scale) == ("window", window_decay(1.5).scale)
    made = sampled(*TEXTS, "--graph", "graph.tsv", "--hops", "2")
    assert _reached(made.data[1])[0] == {2: 1, 4: 2}
    assert made.kernel._decay.scale == 2.5
    (small / "by_name.txt").write_text("<p3> <p0>\n<p0> <p3>\n<p7> <p7>\n")
    made = sampled(*GAUSSIAN, "--graph", "by_name.txt", "--decay", "exponential:1")
    assert _reached(made.data[1]) == [{3: 1}, {}, {}, {0: 1}] + [{}] * 16


def test_names_and_the_form_of_a_file(small, sampled, capsys):
    (small / "ids.csv").write_text("id,x,who\n1,0.5,a\n2,3,b\n3,0.1,c\n")
    assert sampled("cluster", "ids.csv", "--family", "gaussian", "--names", "who").data[
        0
    ].shape == (3, 2)
    assert "--names" not in capsys.readouterr().err
    (small / "ids.csv").write_text("id,x\n1,0.5\n2,3\n3,0.1\n")
    sampled("cluster", "ids.csv", "--family", "gaussian")
    assert "note: column 'id' numbers the points but is used as data" in capsys.readouterr().err
    # what each column was taken for
    (small / "ids.csv").write_text("code,x,day\n1a,0.5,1\n2b,3,2\n3c,0.1,4\n")
    times = ["--time", "day", "--decay", "window:2"]
    sampled("cluster", "ids.csv", "--family", "gaussian", *times)
    columns = (
        "ids.csv: column 'code' names the points, column 'day' has the times; data: 1 column, x"
    )
    assert f"note: {columns}\n" in capsys.readouterr().err
    (small / "ids.csv").write_text("x,y\n1,0.5\n3,3\n3,0.1\n")
    sampled("cluster", "ids.csv", "--family", "gaussian")
    columns = "ids.csv: points are numbered from 0; data: 2 columns, x, y"
    assert f"note: {columns}\n" in capsys.readouterr().err
    # as pandas writes a table: its index has no name
    (small / "frame.csv").write_text(",x\n0,0.5\n1,3\n2,0.1\n")
    assert sampled("cluster", "frame.csv", "--family", "gaussian").data[0].shape == (3, 1)
    (small / "plain").write_text(LDAC)
    assert sampled("cluster", "plain", "--family", "multinomial").data[0].shape == (7, 6)


def _edit(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


ROW = POINTS.splitlines()[5]  # line 6
_X = ROW.split(",")[1]
BAD_FILES = {
    "blank": ("points.csv", _edit(POINTS, _X, ""), ["points.csv:6", "'x'", "got nothing"]),
    "nan": ("points.csv", _edit(POINTS, _X, "nan"), ["points.csv:6", "'x'", "got 'nan'"]),
    "word": ("points.csv", _edit(POINTS, _X, "1.2.3"), ["points.csv:6", "'x'", "got '1.2.3'"]),
    "large": ("points.csv", _edit(POINTS, _X, "1e30"), ["points.csv:6", "too large"]),
    "short": ("points.csv", _edit(POINTS, _X + ",", ""), ["points.csv:6", "has 2 values", "3"]),
    "no header": ("points.csv", "1,2\n3,4\n", ["points.csv:1", "must name the columns"]),
    "nothing below": ("points.csv", "x,y\n", ["points.csv", "no points"]),
    "same name": ("points.csv", "x,x\n1,2\n", ["points.csv:1", "two columns", "'x'"]),
    "nameless": ("points.csv", "x,\n1,2\n", ["points.csv:1", "column 2 has no name"]),
    "one point": ("points.csv", "x\n1\n", ["points.csv", "one point"]),
    "constant": ("points.csv", "x,y\n1,2\n1,3\n1,5\n", ["points.csv", "'x'", "same number"]),
    "collinear": ("points.csv", "x,y\n1,2\n2,4\n5,10\n", ["points.csv", "singular", "--noise"]),
    "no numbers": ("points.csv", "x;y\n1;2\n", ["points.csv", "separated by commas"]),
    "text column": ("points.csv", "x,kind\n1,a\n2,b\n", [":2", "'kind'", "--names kind"]),
    "percentages": (
        "points.csv",
        "share,x\n10%,1\n12.5 %,3\n7,4\n",
        ["points.csv:2: column 'share'", "'10%'", "3 of the 3 cells", "10 or 0.1", "--names sh"],
    ),
    "some percentages": (
        "points.csv",
        "who,share\na,10\nb,12\nc,7%\n",
        ["points.csv:4: column 'share'", "got '7%'", "some with signs. Write them without"],
    ),
    "prices": ("points.csv", "x,cost\n1,$5\n2,4\n", [":2: column 'cost'", "got '$5'", "signs"]),
    "thousands": ("points.csv", 'x,y\n"1,234.5",2\n"2,100",3\n', [":2", "'1,234.5'", "1234.5"]),
    "nearly numbers": (
        "points.csv",
        "x,y\n1,1\n2,3\nN/A,5\n4,6\n5,9\n",
        [":4: column 'x'", "got 'N/A'", "4 of the 5 cells of this column are numbers", "--names x"],
    ),
    "empty": ("points.csv", "", ["points.csv", "is empty"]),
    "binary": ("points.csv", b"\x89PNG\r\n\x00\xff", ["points.csv", "not a text file"]),
    "latin-1": ("points.csv", "zoë\n1\n".encode("latin-1"), ["points.csv", "not a text file"]),
    "ldac": ("texts.ldac", "2 0:1 1-2\n", ["texts.ldac:1", "got '1-2'"]),
    "ldac negative": ("texts.ldac", "1 0:-1\n", ["texts.ldac:1", "got '0:-1'"]),
    "ldac length": ("texts.ldac", "1 0:1\n3 0:1 1:2\n", [":2", "announces 3 words but lists 2"]),
    "ldac twice": ("texts.ldac", "2 1:1 1:2\n", ["texts.ldac:1", "word 1 twice"]),
    "ldac blank": ("texts.ldac", "1 0:1\n\n1 1:1\n", ["texts.ldac:2", "empty document is 0"]),
    "ldac one": ("texts.ldac", "2 0:1 1:1\n", ["one document"]),
    "ldac one word": ("texts.ldac", "1 0:1\n1 0:2\n", ["at least two are needed"]),
    "ldac count": ("texts.ldac", "1 0:1\n1 1:99999999\n", [":2", "word 1 has a count above"]),
    "ldac word": ("texts.ldac", "1 0:1\n1 9999999999:1\n", [":2", "word 9999999999 is above"]),
    "ldac nothing": ("texts.ldac", "0\n2 5:0 6:0\n0\n", ["texts.ldac: has 0 different words"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD_FILES))
def test_bad_files_end_in_one_line(small, capsys, name):
    file, content, fragments = BAD_FILES[name]
    (small / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    command = GAUSSIAN if file == "points.csv" else TEXTS
    expect_error(capsys, [*command, *QUICK_CLUSTER], fragments)


LINK = ["--decay", "window:2"]
BAD_ARGUMENTS = {
    "no family": (["cluster", "points.csv"], ["--family"]),
    "no file": (["cluster", "--family", "gaussian"], ["FILE", "cluster --help"]),
    "family": (["cluster", "points.csv", "--family", "poisson"], ["--family", "poisson"]),
    "missing": (["cluster", "no.csv", "--family", "gaussian"], ["no.csv", "no such file"]),
    "folder": (["cluster", ".", "--family", "gaussian"], ["is a folder, not a file of points"]),
    "unknown option": ([*GAUSSIAN, "--bogus"], ["--bogus", "cluster --help"]),
    "ldac of gaussian": (["cluster", "texts.ldac", "--family", "gaussian"], ["LDA-C", "multinomi"]),
    "noise alone": ([*GAUSSIAN, "--noise", "1"], ["--noise goes with --spread"]),
    "spread alone": ([*GAUSSIAN, "--spread", "1"], ["--spread goes with --noise"]),
    "noise": ([*GAUSSIAN, "--noise", "0", "--spread", "1"], ["--noise must be a positive"]),
    "concentration": ([*GAUSSIAN, "--concentration", "1"], ["goes with --family multinomial"]),
    "noise of words": ([*TEXTS, "--noise", "1"], ["--noise goes with --family gaussian"]),
    "vocab of table": (
        ["cluster", "points.csv", "--family", "multinomial", "--vocab", "vocab.txt"],
        ["--vocab goes with an LDA-C file"],
    ),
    "vocab missing": ([*TEXTS, "--vocab", "no.txt"], ["no.txt: no such file"]),
    "vocab short": ([*TEXTS, "--vocab", "graph.tsv"], ["word 5 is not in graph.tsv", "0 to 4"]),
    "counts": (
        ["cluster", "points.csv", "--family", "multinomial"],
        ["points.csv:2", "column 'x'", "expected a count"],
    ),
    "no counts": (
        ["cluster", "zeros.csv", "--family", "multinomial"],
        ["zeros.csv: all documents are empty"],
    ),
    "names": ([*GAUSSIAN, "--names", "z"], ["no column 'z' for --names", "who, x, y"]),
    "names of ldac": ([*TEXTS, "--names", "z"], ["--names goes with a table"]),
    "alpha": ([*GAUSSIAN, "--alpha", "0"], ["--alpha must be a positive number, got 0"]),
    "alpha flat": ([*GAUSSIAN, "--alpha", "flat"], ["--alpha must be a number, got 'flat'"]),
    "alpha prior": ([*GAUSSIAN, "--alpha", "beta(1,1)"], ['or "gamma(shape,rate)"']),
    "discount": ([*GAUSSIAN, "--discount", "1"], ["--discount must be", "less than 1, got '1'"]),
    "two kinds": ([*GAUSSIAN, "--time", "x", "--graph", "graph.tsv"], ["not allowed with"]),
    "no decay": ([*GAUSSIAN, "--time", "x"], ["--time needs --decay: window:A, exponential:A"]),
    "no decay 2": ([*GAUSSIAN, "--distances", "d.csv"], ["--distances needs --decay"]),
    "decay alone": ([*GAUSSIAN, *LINK], ["--decay goes with --distances, --time or --graph"]),
    "decay kind": ([*GAUSSIAN, "--decay", "linear:1"], ["--decay must be window:A", "linear:1"]),
    "decay scale": ([*GAUSSIAN, "--decay", "window"], ["--decay window needs a scale"]),
    "decay number": ([*GAUSSIAN, "--decay", "window:-1"], ["--decay window must be a positive"]),
    "identity": ([*GAUSSIAN, "--decay", "identity:1"], ["identity takes no scale"]),
    "hops": ([*GAUSSIAN, "--time", "x", "--hops", "2", *LINK], ["--hops goes with --graph"]),
    "discount of links": (
        [*GAUSSIAN, "--time", "x", "--discount", "0.1", *LINK],
        ["--discount does not go with --time"],
    ),
    "slots of links": (
        [*GAUSSIAN, "--graph", "graph.tsv", "--max-clusters", "3"],
        ["--max-clusters does not go with --graph"],
    ),
    "time column": ([*GAUSSIAN, "--time", "z", *LINK], ["no column 'z' for --time", "who, x, y"]),
    "time words": ([*GAUSSIAN, "--time", "who", *LINK], [":2", "'who'", "got '<p0>'"]),
    "time file": ([*TEXTS, "--time", "no.txt", *LINK], ["no.txt: no such file"]),
    "time length": ([*TEXTS, "--time", "three.txt", *LINK], ["has 3 numbers", "7 documents"]),
    "time number": ([*TEXTS, "--time", "vocab.txt", *LINK], ["vocab.txt:1", "got 'cat'"]),
    "matrix rows": ([*GAUSSIAN, "--distances", "three.txt", *LINK], ["has 3 rows, expected 20"]),
    "matrix columns": ([*TEXTS, "--distances", "seven.txt", *LINK], [":1", "has 1 distances"]),
    "matrix entry": ([*TEXTS, "--distances", "bad.csv", *LINK], ["bad.csv:3", "column 2", "'-1'"]),
    "graph line": ([*TEXTS, "--graph", "vocab.txt"], ["vocab.txt:1", "expected two points"]),
    "graph point": ([*TEXTS, "--graph", "far.txt"], ["far.txt:2", "no point '7'", "0 to 6"]),
    "graph name": ([*GAUSSIAN, "--graph", "who.txt"], ["who.txt:1", "no point 'ann'", "'<p0>'"]),
    "few draws": ([*GAUSSIAN, "--draws", "10", "--thin", "5"], ["keeps 2 draws"]),
    "output": ([*GAUSSIAN, "--out", "."], ["--force"]),
    "memory": ([*GAUSSIAN, "--draws", "100000000000", "--thin", "1"], ["20 points", "--thin"]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD_ARGUMENTS))
def test_bad_arguments_end_in_one_line(small, capsys, name):
    (small / "three.txt").write_text("1\n2\n3\n")
    (small / "seven.txt").write_text("1\n2\n3\n4\n5\n6\n7\n")
    matrix = [["1"] * 7 for _ in range(7)]
    matrix[2][1] = "-1"
    (small / "bad.csv").write_text("\n".join(",".join(row) for row in matrix))
    (small / "zeros.csv").write_text("cat,dog\n0,0\n0,0\n")
    (small / "far.txt").write_text("0 1\n2 7\n")
    (small / "who.txt").write_text("ann <p1>\n")
    arguments, fragments = BAD_ARGUMENTS[name]
    expect_error(capsys, arguments, fragments)


def test_too_many_points_for_all_distances(small, capsys, monkeypatch):
    monkeypatch.setattr(cluster_data, "MOST_POINTS", 19)
    command = [*GAUSSIAN, "--time", "x", *LINK]
    expect_error(capsys, command, ["at most 19 points, not 20", "--graph"])
    monkeypatch.setattr(cluster_data, "MOST_POINTS", 20)
    monkeypatch.setattr(capacity, "available_memory", lambda: 1000)
    expect_error(capsys, command, ["links of 20 points", "lower --chains"])


def test_a_graph_that_reaches_too_many(small, capsys, monkeypatch):
    monkeypatch.setattr(distances, "_MOST_NEIGHBORS", 13)
    fragments = ["graph.tsv", "reaches 2 others within 1 hops", "7 points: lower --hops"]
    expect_error(capsys, [*TEXTS, "--graph", "graph.tsv"], fragments)


def test_two_points_of_one_name_have_numbers(small, capsys):
    (small / "points.csv").write_text(POINTS.replace("<p1>", "<p0>"))
    (small / "graph.txt").write_text("<p0> <p2>\n")
    fragments = ["two points have the name '<p0>'", "numbers from 0"]
    expect_error(capsys, [*GAUSSIAN, "--graph", "graph.txt"], fragments)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interruption_writes_nothing(small, usual_signals, capsys, monkeypatch, number, status):
    def interrupt(*_, **__):
        signal.raise_signal(number)

    before = sorted(os.listdir())
    monkeypatch.setattr("numpyro_rankings.run.Run._init", interrupt)
    assert run(*GAUSSIAN, *FEW, *QUICK_CLUSTER) == status
    *notes, last = capsys.readouterr().err.strip().splitlines()
    assert last == "numpyro-rankings: interrupted, nothing was written"
    assert all(line.startswith("numpyro-rankings: note: ") for line in notes if line)
    assert sorted(os.listdir()) == before


def test_the_report_of_an_interrupted_run_says_so(small, plain_page, monkeypatch):
    made = Sampled(fabricated_partition_mcmc(np.arange(20) % 2), "interrupted", (60, 60))

    def sample(session, *_):
        session._held = HeldInterrupts()
        session._held.came = signal.SIGINT
        return made

    monkeypatch.setattr(cluster_command, "_sample", sample)
    assert run(*GAUSSIAN, *FEW, *QUICK_CLUSTER) == 130
    page = open("out/report.html", encoding="utf-8").read()
    assert "<strong>Interrupted, after 60 sweeps of each chain.</strong>" in page
    assert "--resume out</code>" in page
