"""Columns beside a question that name the judges, or have one number in all rows."""

import pandas as pd
import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import RankingsError, read_survey

MAILS = "ann@x.org bob@x.org cid@x.org dee@x.org ann@x.org eve@x.org".split()
RANKS = ["1,2,3", "2,1,3", "3,1,2", "1,3,2", "2,1,3", "3,2,1"]
ORDERS = ["t,c,m", "c,t,m", "c,m,t", "t,m,c", "c,t,m", "m,c,t"]
FIRST = ["t c m", "c t m", "c m t", "t m c", "m c t"]
LAST = ["c t m", "c m t", "t m c", "c t m", "m c t"]


def form(header, answers, who="Email", quote=""):
    """An export of a form: when, who, and the answers of six people, one of them twice."""
    lines = [f"Timestamp,{who},{header}"]
    lines += [
        f"2024/01/0{k} 10:00:00,{mail},{quote}{x}{quote}"
        for k, (mail, x) in enumerate(zip(MAILS, answers, strict=True), 1)
    ]
    return "\n".join(lines) + "\n"


FORMS = {
    "ranks": (form("Q1 [t],Q1 [c],Q1 [m]", RANKS), "Q1*"),
    "orders": (form("1st choice,2nd choice,3rd choice", ORDERS, "E-Mail-Adresse"), "*choice"),
    "cell": (form("list", [x.replace(",", ";") for x in ORDERS], "respondent_id"), "list"),
    "votes": (form("Choice 1,Choice 2,Choice 3", ORDERS, "User ID"), "Choice*"),
}


@pytest.mark.parametrize("layout", FORMS)
def test_a_judge_who_is_there_twice_in_a_column_that_is_left_out(tmp_path, layout):
    text, columns = FORMS[layout]
    path, who = write(tmp_path, text, "t.csv"), text.split(",")[1]
    with pytest.raises(RankingsError) as error:
        read_survey(path, layout, columns=columns)
    assert f"t.csv:6: {who!r} is 'ann@x.org', as in {path}:2" in str(error.value)
    found = error.value.questions
    assert found.is_read and found.options == {"judge": who, "duplicates": "first"}
    settings = {"layout": layout, "columns": columns}
    assert joined(read_survey(path, **settings, **found.options)) == FIRST
    assert joined(read_survey(path, **settings, judge=who, duplicates="last")) == LAST
    assert len(joined(read_survey(path, **settings, about=who))) == 6


def test_what_is_often_the_same_names_no_judges(tmp_path):
    text = form("Q1 [t],Q1 [c],Q1 [m]", RANKS, "house_id")
    for old, new in zip(MAILS[1:4], MAILS[:1] * 3, strict=True):
        text = text.replace(old, new)
    read = read_survey(write(tmp_path, text, "t.csv"), "ranks", columns="Q1*")
    assert read.rankings.num_rankings == 6 and read.judges is None


ROWS = [(1, 2, 3, 4), (2, 1, 4, 3), (4, 3, 2, 1), (3, 1, 2, 4), (1, 3, 2, 4)]


@pytest.mark.parametrize("name", ["n", "N", "votes", "num_judges"])
@pytest.mark.parametrize("number", [20, 4])
def test_one_number_in_all_rows_is_no_count_without_being_asked(name, number):
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    frame.insert(0, name, number)
    with pytest.raises(RankingsError) as error:
        read_survey(frame, "ranks")
    assert f"is {name!r} part of the ranking?" in str(error.value)
    assert f"count={name!r} if it counts them" in str(error.value)
    assert not error.value.questions.is_read and not error.value.questions.options
    assert read_survey(frame, "ranks", count=name).rankings.num_rankings == 5 * number
    assert read_survey(frame, "ranks", about=name).rankings.num_rankings == 5


@pytest.mark.parametrize("values", [[1] * 5, [3, 1, 1, 2, 1]])
def test_ones_are_harmless_and_other_counts_are_offered(values):
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    for name in ("n", "num_judges"):
        with pytest.raises(RankingsError) as error:
            read_survey(frame.assign(**{name: values}), "ranks")
        found = error.value.questions
        assert found.is_read and found.options == {"count": name}
    # a column that is called count has counts
    with pytest.raises(RankingsError) as error:
        read_survey(frame.assign(count=20), "ranks")
    assert error.value.questions.options == {"count": "count"}


def test_one_number_beside_pairs():
    frame = pd.DataFrame({"winner": list("aab"), "loser": list("bcc"), "n": [20] * 3})
    with pytest.raises(RankingsError) as error:
        read_survey(frame)
    assert "does the column 'n' say how often" in str(error.value)
    assert not error.value.questions.is_read
    assert read_survey(frame.assign(n=1)).rankings.num_rankings == 3
    with refusal("add count='n'"):
        read_survey(frame.assign(n=[1, 2, 1]))
