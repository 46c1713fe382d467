"""Files of SPSS and Stata: labels of values and columns, and values that the user calls missing."""

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from helpers.readers import by_name

from numpyro_rankings import RankingsError, read_survey
from numpyro_rankings.cli import main

CODES = {1.0: "tea", 2.0: "coffee", 3.0: "cocoa", 99.0: "no answer"}
ORDERS = pd.DataFrame(
    {
        "id": ["r1", "r2", "r3"],
        "region": [1.0, 2.0, 1.0],
        "Q5_1": [2.0, 1.0, 3.0],
        "Q5_2": [1.0, 3.0, 99.0],
        "Q5_3": [3.0, np.nan, 99.0],
    }
)
RANKS = pd.DataFrame(
    {
        "id": [1.0, 2.0, 3.0],
        "Q5_1": [2.0, 1.0, -9.0],
        "Q5_2": [1.0, 3.0, 2.0],
        "Q5_3": [3.0, 2.0, 1.0],
        "age": [30.0, 40.5, np.nan],
    }
)
LABELS = {
    "id": "",
    "Q5_1": "Q5: Please rank. - Tea",
    "Q5_2": "Q5: Please rank. - Coffee & milk",
    "Q5_3": "Q5: Please rank. - Maté",
    "age": "How old are you?",
}


def write(frame, path, **how):
    pyreadstat.write_sav(frame, str(path), **how)
    return path


def test_labels_of_values_are_the_items(tmp_path):
    path = write(
        ORDERS,
        tmp_path / "survey.sav",
        variable_value_labels={
            **{f"Q5_{k}": CODES for k in (1, 2, 3)},
            "region": {1.0: "North", 2.0: "South"},
        },
        missing_ranges={f"Q5_{k}": [99.0] for k in (1, 2, 3)},
    )
    survey = read_survey(path, "orders", judge="id", about="region", columns="Q5_*")
    assert by_name(survey) == [["coffee", "tea", "cocoa"], ["tea", "cocoa"], ["cocoa"]]
    assert survey.judges == ["r1", "r2", "r3"]
    assert survey.about == {"region": ["North", "South", "North"]}
    # without the user's word they are told with --missing
    path = write(ORDERS, path, variable_value_labels={f"Q5_{k}": CODES for k in (1, 2, 3)})
    again = read_survey(path, "orders", judge="id", columns="Q5_*", missing="no answer")
    assert by_name(again) == by_name(survey)


def test_files_of_stata(tmp_path):
    codes = {int(value): label for value, label in CODES.items()}
    frame = ORDERS.astype({f"Q5_{k}": "Int64" for k in (1, 2, 3)})
    pyreadstat.write_dta(
        frame,
        str(tmp_path / "survey.DTA"),
        variable_value_labels={f"Q5_{k}": codes for k in (1, 2, 3)},
    )
    read = {"judge": "id", "columns": "Q5_*", "missing": "no answer"}
    survey = read_survey(tmp_path / "survey.DTA", "orders", **read)
    assert by_name(survey) == [["coffee", "tea", "cocoa"], ["tea", "cocoa"], ["cocoa"]]
    assert survey.judges == ["r1", "r2", "r3"]
    ranks = RANKS.astype(object).replace(-9.0, "a")  # the missing value .a
    pyreadstat.write_dta(
        ranks,
        str(tmp_path / "ranks.dta"),
        column_labels=LABELS,
        missing_user_values={"Q5_1": ["a"]},
    )
    survey = read_survey(tmp_path / "ranks.dta", "ranks", judge="id", about="age", columns="Q5_*")
    assert survey.rankings.items == ("Tea", "Coffee & milk", "Maté")
    assert by_name(survey)[2] == ["Maté", "Coffee & milk"] and survey.judges == ["1", "2", "3"]
    (tmp_path / "bad.dta").write_bytes(b"<stata_dta> and no more")
    with pytest.raises(RankingsError, match=r"bad\.dta: cannot be read as a \.dta file"):
        read_survey(tmp_path / "bad.dta", "ranks")


@pytest.mark.parametrize("suffix", [".sav", ".zsav"])
def test_labels_of_columns_are_the_items_of_a_question(tmp_path, suffix):
    path = write(
        RANKS,
        tmp_path / f"survey{suffix}",
        column_labels=LABELS,
        missing_ranges={"Q5_1": [{"lo": -10.0, "hi": -1.0}]},
        compress=suffix == ".zsav",
    )
    survey = read_survey(path, "ranks", judge="id", about="age", columns="Q5_*")
    assert survey.rankings.items == ("Tea", "Coffee & milk", "Maté")
    assert by_name(survey)[2] == ["Maté", "Coffee & milk"]
    assert survey.judges == ["1", "2", "3"] and survey.about["age"] == ["30", "40.5", ""]
    named = RANKS[["Q5_1", "Q5_2", "Q5_3"]].iloc[:1]
    survey = read_survey(write(named, path, column_labels=LABELS), "ranks")
    assert survey.rankings.items == ("Q5_1", "Q5_2", "Q5_3")


def test_a_scale_whose_ends_have_labels_is_read_as_numbers(tmp_path):
    ends = {1.0: "most important", 3.0: "least important"}
    frame = RANKS.iloc[1:].assign(Q5_1=[1.0, 3.0])
    path = write(
        frame, tmp_path / "survey.sav", variable_value_labels={f"Q5_{k}": ends for k in (1, 2, 3)}
    )
    survey = read_survey(path, "ranks", columns="Q5_*")
    assert by_name(survey) == [["Q5_1", "Q5_3", "Q5_2"], ["Q5_3", "Q5_2", "Q5_1"]]
    (note,) = (x for x in survey.notes if "read as numbers" in x)
    assert note.startswith("Q5_1, Q5_2, Q5_3") and "1 = most important" in note


def test_labels_that_are_the_same_are_not_joined(tmp_path):
    codes = {1.0: "tea", 2.0: "other", 3.0: "other"}
    path = write(
        ORDERS.iloc[:1],
        tmp_path / "survey.sav",
        variable_value_labels={f"Q5_{k}": codes for k in (1, 2, 3)},
    )
    survey = read_survey(path, "orders", judge="id", columns="Q5_*")
    assert by_name(survey) == [["2", "1", "3"]]
    assert any("read as numbers" in note for note in survey.notes)


def test_files_that_are_not_of_spss(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.sav").write_bytes(b"$FL2 and no more")
    with pytest.raises(RankingsError, match=r"bad\.sav: cannot be read as a \.sav file"):
        read_survey("bad.sav", "ranks")
    with pytest.raises(RankingsError, match=r"no\.sav: no such file"):
        read_survey("no.sav", "ranks")
    write(RANKS, tmp_path / "survey.sav", column_labels=LABELS)
    assert main(["describe", "survey.sav", "--layout", "ranks", "--columns", "Q5_*"]) == 2
    assert "survey.sav: row 3: column 'Tea'" in capsys.readouterr().err
