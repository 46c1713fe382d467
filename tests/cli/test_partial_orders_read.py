"""What the commands take tables of ties, pairs and items offered for, and what they refuse."""

import csv

import numpy as np
import pytest
from helpers.command_line import run

from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.arguments import UserError

TIED = "id,a,b,c,d\nr1,1,2,2,4\nr2,1,2,3,4\nr3,4,3,1,1\nr4,2,1,3,4\nr5,1,1,1,4\n"
PAIRS = "user,model_a,model_b,winner\nu1,x,y,x\nu1,y,z,y\nu2,x,z,tie\nu2,z,w,w\nu3,x,y,tie\n"


@pytest.fixture
def reads(folder, monkeypatch):
    """The rankings that ``fit`` is about to sample, of a file with this text."""
    taken = []

    def sample(session, model, rankings, *_):
        taken.append(rankings)
        raise UserError("nothing is sampled here")

    monkeypatch.setattr(fit, "_sample", sample)

    def read(text, *options):
        (folder / "table.csv").write_text(text)
        assert run("fit", "table.csv", *options, "--model", "plackett-luce") == 2
        return taken.pop()

    return read


def in_words(rankings):
    """What each judge said, sorted, such as a > b = c, and what was offered if not all was."""
    if isinstance(rankings, Rankings):
        rankings = PartialOrders.from_rankings(rankings)
    levels, counts = np.asarray(rankings.levels_of_items()), np.asarray(rankings.counts)
    offered = rankings.offered()
    offered = np.ones(levels.shape, bool) if offered is None else np.asarray(offered)
    found = []
    for row, some, count in zip(levels, offered, counts, strict=True):
        places = [np.flatnonzero(row == k) for k in range(row.max() + 1)]
        text = " > ".join(" = ".join(rankings.items[x] for x in place) for place in places)
        if not some.all():
            text += " of " + "".join(rankings.items[x] for x in np.flatnonzero(some))
        found += [text] * int(count)
    return sorted(found)


def test_what_becomes_of_ties(reads, capsys):
    """They are taken as they are by default; ``drop`` leaves judges out, ``order`` draws by lot."""
    read = "--layout", "ranks", "--judge", "id"
    said = [f"{x} > d" for x in ("a = b = c", "a > b = c", "a > b > c", "b > a > c")]
    said += ["c = d > b > a"]
    for ties in ([], ["--ties", "exact"]):
        orders = reads(TIED, *read, *ties)
        assert isinstance(orders, PartialOrders) and in_words(orders) == said
        assert "3 of 5 judges tie items, which is read as no opinion" in capsys.readouterr().err
    left = reads(TIED, *read, "--ties", "drop")
    assert isinstance(left, Rankings) and in_words(left) == said[2:4]
    drawn = reads(TIED, *read, "--ties", "order")
    assert isinstance(drawn, Rankings) and drawn.num_rankings == 5
    found = [x.replace(" > ", "") for x in in_words(drawn)]
    for ways in ({"abcd"}, {"bacd"}, {"cdba", "dcba"}, {"abcd", "acbd"}):
        found.remove(next(x for x in found if x in ways))
    assert found[0].endswith("d")


def test_what_becomes_of_ties_in_pairs(reads, capsys):
    """A tie is a comparison without a preference; ``drop`` leaves the line out."""
    said = [[("x", "y"), ("y", "z"), ("x", "z")], [("w", "z")], []]
    for ties, number in (("exact", 3), ("drop", 2)):
        orders = reads(PAIRS, "--judge", "user", "--ties", ties)
        assert isinstance(orders, PartialOrders) and orders.num_rankings == number
        found = []
        for listed, above in zip(np.asarray(orders.listed), np.asarray(orders.above), strict=True):
            names = [orders.items[k] for k in listed]
            pairs = zip(*np.nonzero(above), strict=True)
            found.append({(names[i], names[j]) for i, j in pairs})
        assert sorted(map(sorted, found)) == sorted(map(sorted, said[:number]))
    said = "2 of 5 comparisons are ties, and are left out, with 1 judge who has no others"
    assert said in capsys.readouterr().err


WORDS = "race,a,b,c,d\nr1,1,DNF,2,\nr2,DNF,1,2,\nr3,1,2,,3\n"
COLUMN = "1st,2nd,saw\na,c,a;b;c\nb,c,a;b;c\nd,b,\n"
# what is read, and the same if the third judge ties two items
OF_WORDS = "a > c", "b > c", "a > b > d", "a > b = d"
OF_COLUMN = "a > c", "b > c", "d > b", "b = d"
OFFERED = [
    (WORDS, ["--offered", "DNF"], "below", ["", "", ""]),
    (WORDS, ["--offered", "DNF"], "not-offered", ["abc", "abc", "abd"]),
    (WORDS, ["--missing", "DNF"], "below", ["", "", ""]),
    (WORDS, ["--missing", "DNF"], "not-offered", ["ac", "bc", "abd"]),
    (COLUMN, ["--offered", "saw"], "below", ["abc", "abc", ""]),
    (COLUMN, ["--offered", "saw"], "not-offered", ["abc", "abc", "bd"]),
    (COLUMN, ["--about", "saw"], "below", ["", "", ""]),
    (COLUMN, ["--about", "saw"], "not-offered", ["ac", "bc", "bd"]),
]


@pytest.mark.parametrize("with_ties", [False, True])
@pytest.mark.parametrize("text, options, unranked, offered", OFFERED)
def test_what_was_offered(reads, with_ties, text, options, unranked, offered):
    """Each meaning of what is not ranked, with and without what was offered."""
    said = [*(OF_WORDS if text is WORDS else OF_COLUMN)]
    said = [*said[:2], said[3] if with_ties else said[2]]
    if text is WORDS:
        text = text.replace("1,2,,3", "1,2,,2") if with_ties else text
        options = [*options, "--layout", "ranks", "--judge", "race"]
    else:
        text = text.replace("d,b,", "b=d,,") if with_ties else text
        options = [*options, "--layout", "orders", *(["--separator", "="] * with_ties)]
    rankings = reads(text, *options, "--items", "a,b,c,d", "--unranked", unranked)
    assert isinstance(rankings, PartialOrders if with_ties else Rankings)
    expected = [x + (f" of {y}" if y else "") for x, y in zip(said, offered, strict=True)]
    assert in_words(rankings) == sorted(expected)


def test_what_no_text_says(capsys, folder):
    """It is told only where there is something that no text says."""
    options = "--layout ranks --judge race --offered DNF --not-offered DNS".split()
    for last, said in (("DNS", False), ("", True)):
        (folder / "races.csv").write_text(f"race,a,b,c\n1,1,2,3\n2,2,1,DNF\n3,2,1,{last}\n")
        assert main(["describe", "races.csv", *options]) == 0
        note = "items that a judge does not rank, and of which no text says whether they were"
        assert (note in capsys.readouterr().err) == said


PREFLIB = (
    "# FILE NAME: t.toc\n# DATA TYPE: toc\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 3\n"
    "# NUMBER UNIQUE ORDERS: 2\n" + "".join(f"# ALTERNATIVE NAME {k}: i{k}\n" for k in (1, 2, 3))
)
RANKS, CELL = ["--layout", "ranks", "--judge", "id"], ["--layout", "cell", "--judge", "id"]
BAD = {
    "a cycle": (
        "who,winner,loser\nu1,a,b\nu1,b,c\nu1,c,a\nu2,a,b\n",
        ["--judge", "who"],
        ["judge 'u1': the preferences contradict one another: a > b > c > a", "--cycles drop"],
    ),
    "a cycle of two lines apart": (
        "who,model_a,model_b,winner\nu1,a,b,a\nu2,a,b,b\nu1,b,a,b\nu2,b,c,c\n",
        ["--judge", "who"],
        ["judge 'u1': the preferences contradict one another: a > b > a", "--cycles mistakes"],
    ),
    "pairs of the same only": (
        "who,winner,loser\nu1,a,a\nu2,b,b\n",
        ["--judge", "who"],
        ["table.csv:2: compares item 'a' with itself, as in 1 other line: 3"],
    ),
    "not offered": (
        "1st,2nd,saw\na,b,b;c\nc,a,\nb,d,b;d;e\n",
        ["--layout", "orders", "--offered", "saw"],
        ["table.csv:2: 'a' is ranked, but is not among the items that the column 'saw' says"],
    ),
    "not offered, tied": (
        "id,list,saw\n1,a = b > c,a|c\n2,c > b = a,\n",
        [*CELL, "--columns", "list", "--offered", "saw"],
        ["table.csv:2: 'b' is ranked, but is not among the items that the column 'saw' says"],
    ),
    "an empty bucket": (
        "id,list\n1,a > {} > b\n2,b > {a = c}\n",
        CELL,
        ["table.csv:2: column 'list': place 2 is empty in 'a; ; b'; --gaps close"],
    ),
    "nothing beside a mark": (
        "id,list\n1,a > b =  > c\n2,b > a = c\n",
        CELL,
        ["table.csv:2: column 'list': 'b =' has an empty name beside a mark of ties"],
    ),
    "an empty bucket of PrefLib": (
        PREFLIB + "2: 1,{},{2,3}\n1: 1,2,3\n",
        [],
        ["table.toc:9: an empty tie '{}' in '1,{},{2,3}'"],
    ),
    "twice in a bucket": (
        "id,list\n1,a = a > b\n2,b > a = c\n",
        CELL,
        ["table.csv:2: column 'list': 'a' is listed twice"],
    ),
    "nobody says anything": ("id,a,b,c\nr1,,,\nr2,,,\n", RANKS, ["table.csv"]),
    "a row of a judge apart": (
        "id,a,b,c\nx,1,,\ny,1,2,3\nx,,1,2\n",
        RANKS,
        ["table.csv:4: judge 'x' has a row already, table.csv:2; --duplicates first or"],
    ),
    "an item of a judge twice, apart": (
        "judge,item,rank\nx,a,1\ny,b,1\nx,a,2\ny,a,1\nz,b,1\nz,a,2\n",
        [],
        ["table.csv:4: judge 'x' ranks 'a' twice, also in table.csv:2; if these are two answers,"],
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input(what, folder, capsys):
    """One line says what is wrong, and where; a command may follow that reads the file."""
    text, options, fragments = BAD[what]
    name = "table.toc" if text.startswith("#") else "table.csv"
    (folder / name).write_text(text)
    before = sorted(folder.iterdir())
    assert run("fit", name, *options) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    errors = [x for x in lines if x.startswith("numpyro-rankings: error: ")]
    assert len(errors) == 1
    for fragment in fragments:
        assert fragment in errors[0]
    after = lines[lines.index(errors[0]) + 1 :]
    assert not after or (len(after) == 2 and after[0].startswith("This command reads the file"))
    assert sorted(folder.iterdir()) == before


LEFT_OUT = [
    ("id,a,b,c\nr1,1,2,3\nr2,,,\nr3,2,1,1\nr4,3,2,1\n", RANKS, "1 judge ranks nothing and is left"),
    ("id,list\n1,a > {b; c}\n2,\n3,c > a\n4,{}\n", CELL, "2 judges rank nothing and are left out"),
    ("judge,item,rank\nx,a,1\ny,b,\nx,b,1\nz,b,1\nz,a,2\n", [], "1 judge ranks nothing"),
    (
        "user,winner,loser\nu1,a,b\nu2,,\nu3,b,c\n",
        ["--judge", "user"],
        "1 line with an empty cell left out: table.csv:3",
    ),
    (
        "user,winner,loser\nu1,a,b\nu3,b,c\nu3,c,c\n",
        ["--judge", "user", "--cycles", "drop"],
        "1 line with an item against itself left out: table.csv:4",
    ),
]  # fmt: skip


@pytest.mark.parametrize("text, options, said", LEFT_OUT)
def test_what_is_left_out(reads, capsys, text, options, said):
    """A judge who says nothing, and a line that compares an item with itself, with a note."""
    orders = reads(text, *options)
    assert orders.num_rankings == 3 if "r4" in text else 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("apart", [False, True])
def test_rows_of_a_judge_may_be_apart(reads, apart):
    """Lines of a judge belong together wherever they are, in long tables and of pairs."""
    long = ["x,a,1", "x,b,1", "y,b,1", "y,a,2", "x,c,2"]
    pairs = ["x,a,b", "x,b,c", "y,b,c", "y,c,a"]
    order = [0, 2, 4, 1, 3] if apart else range(5)
    orders = reads("\n".join(["judge,item,rank", *(long[k] for k in order)]))
    assert in_words(orders) == ["a = b > c", "b > a"]
    pairs = [pairs[k] for k in order if k < 4]
    orders = reads("\n".join(["judge,winner,loser", *pairs]), "--judge", "judge")
    assert in_words(orders) == ["a > b > c", "b > c > a"]


@pytest.mark.slow
@pytest.mark.parametrize("text, options", [(TIED, RANKS), (PAIRS, ["--judge", "user"])])
def test_compare(folder, capsys, text, options):
    """Models of one and two groups are compared by how probable they make what was said."""
    (folder / "table.csv").write_text(text)
    quick = "--components 1,2 --no-process --chains 2 --minutes 0.3 --no-progress --out out"
    assert run("compare", "table.csv", *options, *quick.split()) == 0
    with open("out/comparison.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 and all(np.isfinite(float(row["elpd"])) for row in rows)
    assert "To fit" in capsys.readouterr().out
