"""The bundled table, the project's text format, and simulators with the right codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.readers import refusal, write

from numpyro_rankings.datasets import (
    list_datasets,
    load_dataset,
    simulate_mallows,
    simulate_mallows_mixture,
)
from numpyro_rankings.ops.codes import inverse_ordering, ordering_from_codes, stage_codes
from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers import read_rankings, read_table, write_preflib, write_table

TABLE = """\
# title: A small election
# item A: Ann: the first
# item B: Bob, Jr
# item c3: Cid

count,ordering
14,A>B>c3
6, B
4,c3 > A
"""


def test_bundled_table():
    assert list_datasets() == ["apa1980"]
    r = load_dataset()
    assert r == load_dataset("apa1980")
    assert len(r) == 15449 and r.num_rows == r.unique().num_rows == 205
    by_length = np.bincount(np.asarray(r.lengths), np.asarray(r.counts))
    assert by_length.tolist() == [0, 5141, 2462, 2108, 0, 5738]
    assert r.items == (
        "A (research)",
        "B (community)",
        "C (research)",
        "D (clinical)",
        "E (clinical)",
    )
    first = np.bincount(np.asarray(r.orderings)[:, 0], np.asarray(r.counts))
    assert first.tolist() == [2903, 2289, 4016, 3239, 3002]
    count = dict(zip(map(tuple, r.to_ranks().tolist()), r.counts.tolist(), strict=True))
    for ranks, ballots in (("23154", 186), ("23145", 172), ("34512", 133), ("54321", 29)):
        assert count[tuple(map(float, ranks))] == ballots
    complete = r.lengths == 5
    ranks = np.average(r.to_ranks()[complete], axis=0, weights=r.counts[complete])
    np.testing.assert_allclose(ranks, [2.8395, 3.1567, 2.9170, 3.0924, 2.9944], atol=5e-5)
    with pytest.raises(RankingsError, match="no data set 'apa'; the bundled data are apa1980"):
        load_dataset("apa")


def test_read_table(tmp_path):
    path = write(tmp_path, TABLE, "small.csv")
    r = read_table(path)
    assert r == read_table(str(path)) == read_rankings(path)
    assert r.items == ("Ann: the first", "Bob, Jr", "Cid")
    assert r.orderings.tolist() == [[0, 1, 2], [1, -1, -1], [2, 0, -1]]
    assert r.counts.tolist() == [14, 6, 4]


@pytest.mark.parametrize("choice_sets", [False, True])
def test_table_round_trip(tmp_path, choice_sets):
    rng = np.random.default_rng(0)
    orderings = np.argsort(rng.random((200, 12)))[:, :2]
    orderings[::3, 1] = -1
    offered = None
    if choice_sets:
        offered = rng.random((200, 12)) < 0.9
        offered[np.arange(200)[:, None], orderings] = True
    names = [f"{i}, > # item é: {i}" for i in range(12)]
    counts = rng.integers(1, 9, 200)
    r = Rankings.from_orderings(orderings, items=names, counts=counts, choice_sets=offered)
    path = tmp_path / "r.csv"
    write_table(r, path, title="Two\nlines")
    assert read_table(path) == r.unique()
    assert path.read_text().startswith('# title: Two lines\n"# item 1: 0, >')
    with pytest.raises(RankingsError, match="item name"):
        write_table(Rankings.from_orderings([[0]], items=["a\nb", "c"]), tmp_path / "bad.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv"]


OFFERED = TABLE.replace("ordering\n", "ordering,offered\n")
OFFERED = OFFERED.replace("c3\n6, B\n4,c3 > A", "c3,A B c3\n6,B,c3 B\n4,c3>A,A c3")


def test_read_choice_sets(tmp_path):
    path = write(tmp_path, OFFERED, "small.csv")
    expected = [[True, True, True], [False, True, True], [True, False, True]]
    assert read_table(path).choice_sets.tolist() == expected


def edit(old, new, text=TABLE):
    assert old in text
    return text.replace(old, new)


BAD = {
    "empty": ("", 1, ["empty"]),
    "binary": (b"\x89PNG\0", 1, ["not a text file"]),
    "other table": ("shade,red,blue\n1,A,B\n", 2, ["layout=", "'A' is at place 'red'"]),
    "no columns": (edit("count,ordering\n", ""), 6, ["'count,ordering'", "14,A>B>c3"]),
    "no items": ("count,ordering\n1,A\n", 1, ["at least 2 items", "# item A", "got 0"]),
    "one item": ("# item A: Ann\ncount,ordering\n1,A\n", 2, ["at least 2 items", "got 1"]),
    "no rows": (TABLE[: TABLE.index("14,")], 6, ["no rankings"]),
    "duplicate": (edit("c3 > A", "c3>A>c3"), 9, ["'Cid'", "twice"]),
    "unknown item": (edit("c3 > A", "c3>X"), 9, ["'X'", "A, B, c3"]),
    "half a tie": (edit("c3 > A", "c3="), 9, ["there is no item ''"]),
    "tie in braces": (edit("c3 > A", "{c3>A}"), 9, ["ties are written as A=B"]),
    "empty ranking": (edit("4,c3 > A", "4,"), 9, ["empty ranking"]),
    "hole": (edit("c3 > A", "c3>>A"), 9, ["no item ''"]),
    "count 0": (edit("4,c3", "0,c3"), 9, ["count '0'", "positive"]),
    "negative count": (edit("4,c3", "-4,c3"), 9, ["count '-4'"]),
    "fractional count": (edit("4,c3", "4.5,c3"), 9, ["count '4.5'", "whole"]),
    "nan count": (edit("4,c3", "nan,c3"), 9, ["count 'nan'"]),
    "too many": (edit("6, B", f"{2**31}, B"), 8, ["2147483648", "2147483647"]),
    "columns": (edit("4,c3 > A", "4,c3,A"), 9, ["2 columns", "got 3"]),
    "same codes": (edit("item c3", "item B"), 4, ["code 'B'"]),
    "same names": (edit("Cid", "Bob, Jr"), 4, ["name 'Bob, Jr'"]),
    "empty name": (edit(" Cid", ""), 4, ["'c3'", "empty"]),
    "not offered": (edit("4,c3>A,A c3", "4,c3>A,B c3", OFFERED), 9, ["'Ann: the first'", "choice"]),
    "unknown offer": (edit("4,c3>A,A c3", "4,c3>A,A c3 X", OFFERED), 9, ["'X'"]),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_tables(tmp_path, monkeypatch, name):
    text, line, fragments = BAD[name]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, text, "bad.csv")
    with refusal(*fragments, start=f"bad.csv:{line}: "):
        read_rankings("bad.csv")


def test_read_rankings_goes_by_the_extension(tmp_path):
    r = load_dataset()
    write_preflib(r, tmp_path / "apa.soi")
    write_table(r, tmp_path / "apa.CSV")
    assert read_rankings(tmp_path / "apa.soi") == read_rankings(tmp_path / "apa.CSV") == r
    for name in ("apa.toi", "apa.toc"):
        (tmp_path / name).write_text("# NUMBER ALTERNATIVES: 5\n")
        with pytest.raises(RankingsError, match=f"{name}:1: the file has no line '# NUMBER VOTERS"):
            read_rankings(tmp_path / name)
    for name, extension in (("apa.doc", "'.doc'"), ("apa", "''")):
        (tmp_path / name).write_text("1,2")
        with pytest.raises(RankingsError, match=f"{name}: the extension {extension}"):
            read_rankings(tmp_path / name)
    for name in ("no.csv", "no.soi", "no.txt"):
        with pytest.raises(RankingsError, match=f"{name}: no such file"):
            read_rankings(tmp_path / name)


# each compiled once for a shape instead of op by op
codes_of = jax.jit(lambda orderings, centers: stage_codes(orderings, inverse_ordering(centers)))
decode = jax.jit(ordering_from_codes)


# -- simulators --------------------------------------------------------------------------------


def assert_codes_are_truncated_geometric(codes, theta, num_items):
    """Counts of the codes (N, T) within 5 standard errors of their expectations."""
    for stage, angle in enumerate(theta):
        values = np.arange(num_items - stage)
        shares = np.exp(-angle * values)
        shares /= shares.sum()
        counts = np.bincount(codes[:, stage], minlength=len(values))
        assert len(counts) == len(values)
        error = np.sqrt(len(codes) * shares * (1 - shares))
        assert (np.abs(counts - len(codes) * shares) <= 5 * error + 1e-6).all()


@pytest.mark.parametrize("theta", [[0.0, 1.5, 0.2], [0.5, 0.5, 0.5, 0.5, 0.0], [3.0]])
def test_mallows_codes(theta):
    center = np.array([3, 0, 5, 1, 4, 2])
    r = simulate_mallows(jax.random.key(0), 4000, center, theta)
    assert r.num_rows == len(r) == 4000 and r.num_items == 6
    assert np.asarray(r.lengths == len(theta)).all()
    codes = np.asarray(codes_of(r.orderings, center))
    assert_codes_are_truncated_geometric(codes, theta, 6)
    centred = (codes - codes.mean(0)) / np.maximum(codes.std(0), 1e-9)
    correlation = np.triu(centred.T @ centred / len(codes), k=1)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(codes))
    decoded = decode(codes, center)
    np.testing.assert_array_equal(decoded, r.orderings)


def test_mallows_lengths_and_forms():
    key, center = jax.random.key(1), np.arange(6)[::-1]
    full = simulate_mallows(key, 50, center, 0.7, items=list("abcdef"))
    assert full.orderings.shape == (50, 6) and full.items == tuple("abcdef")
    assert simulate_mallows(key, 50, center, [0.7] * 5, lengths=6, items=list("abcdef")) == full
    assert simulate_mallows(key, 50, jnp.asarray(center), 0.7, items=list("abcdef")) == full
    lengths = np.arange(50) % 3 + 1
    ragged = simulate_mallows(key, 50, center, 0.7, lengths=lengths)
    np.testing.assert_array_equal(ragged.lengths, lengths)
    assert ragged.orderings.shape == (50, 3)
    sharp = simulate_mallows(key, 20, center, 50.0)
    assert sharp.unique().orderings.tolist() == [center.tolist()]
    assert simulate_mallows(jax.random.key(2), 50, center, 0.7) != full


def test_mixture():
    theta = np.array([[1.0, 0.5, 0.2], [0.1, 2.0, 0.0]])
    sample = simulate_mallows_mixture(
        jax.random.key(3), 6000, 6, 3, 2, theta, weights=[3, 1], items=list("abcdef")
    )
    assert sample.rankings.num_rows == len(sample.rankings) == 6000
    assert sample.centers.shape == (2, 6) and sample.concentrations.shape == (2, 3)
    np.testing.assert_array_equal(sample.concentrations, theta)
    counts = np.bincount(sample.assignments)
    assert abs(counts[0] - 4500) < 4 * np.sqrt(6000 * 0.75 * 0.25)
    centers = sample.centers[sample.assignments]
    codes = np.asarray(codes_of(sample.rankings.orderings, centers))
    for cluster in range(2):
        assert_codes_are_truncated_geometric(
            codes[sample.assignments == cluster], theta[cluster], 6
        )
    decoded = decode(codes, centers)
    np.testing.assert_array_equal(decoded, sample.rankings.orderings)


def test_mixture_with_given_centers_and_lengths():
    centers = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]])
    lengths = np.arange(90) % 4 + 1
    sample = simulate_mallows_mixture(
        jax.random.key(4), 90, 4, lengths, 3, 60.0, weights=[1, 0, 1], centers=centers
    )
    assert set(sample.assignments.tolist()) == {0, 2}
    expected = np.where(np.arange(4) < lengths[:, None], centers[sample.assignments], -1)
    np.testing.assert_array_equal(sample.rankings.orderings, expected)


def test_mixture_of_the_size_of_the_college_data():
    sample = simulate_mallows_mixture(jax.random.key(5), 53_757, 533, 10, 26, 0.05)
    assert sample.rankings.orderings.shape == (53_757, 10)
    assert len(np.unique(sample.assignments)) == 26
    places = np.argsort(sample.centers, axis=1)
    first = places[sample.assignments, np.asarray(sample.rankings.orderings)[:, 0]]
    k = np.arange(533)
    shares = np.exp(-0.05 * k) / np.exp(-0.05 * k).sum()
    mean = (k * shares).sum()
    error = np.sqrt(((k - mean) ** 2 * shares).sum() / 53_757)
    assert abs(first.mean() - mean) < 5 * error


BAD_SIMULATIONS = {
    "center": ({"center": [0, 0, 2]}, "each once"),
    "short lists": ({"concentration": [1.0], "lengths": 2}, "1 stages.*lists of 2"),
    "length 0": ({"lengths": 0}, "from 1 to 3, got 0"),
    "length 4": ({"lengths": 4}, "from 1 to 3, got 4"),
    "lengths": ({"lengths": [1, 2]}, "one for each of 5"),
    "half a length": ({"lengths": 1.5}, "whole number"),
    "negative": ({"concentration": -1.0}, "at least 0"),
    "nan": ({"concentration": float("nan")}, "finite"),
    "table": ({"concentration": [[1.0]]}, r"shape \(\) or \(T,\)"),
    "no rankings": ({"num_rankings": 0}, "num_rankings"),
}


@pytest.mark.parametrize("name", list(BAD_SIMULATIONS))
def test_bad_simulations(name):
    changes, message = BAD_SIMULATIONS[name]
    arguments = {"num_rankings": 5, "center": [0, 1, 2], "concentration": 1.0}
    with pytest.raises(RankingsError, match=message):
        simulate_mallows(jax.random.key(0), **{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": [1.0]}, "2 numbers"),
        ({"weights": [0.0, 0.0]}, "not all 0"),
        ({"weights": [1.0, -1.0]}, "at least 0"),
        ({"centers": [[0, 1, 2]]}, r"\(2, 3\), got \(1, 3\)"),
        ({"concentration": [[1.0, 1.0, 1.0]]}, r"\(2, T\)"),
    ],
)
def test_bad_mixtures(changes, message):
    arguments = {"num_items": 3, "length": 2, "num_clusters": 2, "concentration": 1.0}
    with pytest.raises(RankingsError, match=message):
        simulate_mallows_mixture(jax.random.key(0), 5, **{**arguments, **changes})
