"""Encodings of text files: what is read, and what is refused instead of misread."""

import pytest
from helpers.readers import refusal, write

from numpyro_rankings import RankingsError, read_survey
from numpyro_rankings.cli import main
from numpyro_rankings.readers.text import read_lines

TABLE = "id,thé,“café”,maté\nr1,1,2,3\nr2,2,1,\n"
ITEMS = ("thé", "“café”", "maté")
BYTES = {
    "UTF-8": TABLE.encode(),
    "UTF-8 with mark": TABLE.encode("utf-8-sig"),
    "UTF-16": TABLE.encode("utf-16"),
    "UTF-16, the other way around": b"\xfe\xff" + TABLE.encode("utf-16-be"),
    "UTF-32": TABLE.encode("utf-32"),
    "tabs in UTF-16, as Unicode text of Excel": TABLE.replace(",", "\t").encode("utf-16"),
    "ends of lines of Windows": TABLE.replace("\n", "\r\n").encode("utf-16"),
    "ends of lines of old Macs": TABLE.replace("\n", "\r").encode(),
    "separator named": ("sep=;\r\n" + TABLE.replace(",", ";")).encode("utf-16"),
    "decimal commas": TABLE.replace(",", ";").replace(";2", ";2,0").encode(),
    "quoted names": TABLE.replace("thé", '"thé"').encode(),
    "empty last column": TABLE.replace("\n", ",\n").encode("utf-16"),
}


@pytest.mark.parametrize("how", BYTES)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".tsv"])
def test_files_that_say_their_encoding(tmp_path, how, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(BYTES[how])
    survey = read_survey(path, "ranks", judge="id")
    assert survey.rankings.items == ITEMS and survey.judges == ["r1", "r2"]
    assert survey.rankings.orderings.tolist() == [[0, 1, 2], [1, 0, -1]]


GIVEN = {
    "windows-1252": TABLE.encode("windows-1252"),
    "mac-roman": TABLE.encode("mac-roman"),
    "utf-16-le": TABLE.encode("utf-16-le"),
    "utf-16": TABLE.encode("utf-16"),
    "UTF8": TABLE.encode("utf-8-sig"),
    "utf-8-sig": TABLE.encode("utf-8-sig"),
    "gb18030": TABLE.encode("gb18030"),
}


@pytest.mark.parametrize("encoding", GIVEN)
def test_encodings_that_are_given(tmp_path, encoding):
    path = tmp_path / "x.csv"
    path.write_bytes(GIVEN[encoding])
    survey = read_survey(path, "ranks", judge="id", encoding=encoding)
    assert survey.rankings.items == ITEMS


REFUSED = {
    "Windows": (TABLE.encode("cp1252"), None, "x.csv:1: ", ["'thé' with encoding='windows-1252'"]),
    "Mac": (TABLE.encode("mac-roman"), None, "x.csv:1: ", ["'thé' with encoding='mac-roman'"]),
    "in a row": (b"id,a,b\r\r\nMat\xe9,1,2\r\n", None, "x.csv:3: ", ["'Maté' with"]),
    "no text": (b"\x89PNG\r\n\x1a\n\x00", None, "x.csv:1: ", ["not a text file in UTF-8, which"]),
    "UTF-16 without mark": (TABLE.encode("utf-16-le"), None, "x.csv:1: ", ["not a text file"]),
    "half a letter": (TABLE.encode("utf-16")[:-1], None, "x.csv:", ["not text in UTF-16"]),
    "UTF-8 read as Windows": (TABLE.encode(), "cp1252", "x.csv: ", ["'é' as 'Ã©'", "leave it out"]),
    "a mark read as Windows": (
        b"\xef\xbb\xbfa,b\n1,2\n",
        "cp1252",
        "x.csv: ",
        ["the mark of UTF-8", "leave out encoding='cp1252'"],
    ),
    "UTF-16 read as UTF-8": (TABLE.encode("utf-16"), "utf-8", "x.csv: ", ["the mark of UTF-16"]),
    "Windows read as Latin-1": (TABLE.encode("cp1252"), "latin-1", "x.csv:1: ", [r"'\x93'"]),
    "Windows read as ASCII": (TABLE.encode("cp1252"), "ascii", "x.csv:1: ", ["not text in ASCII"]),
    "no such encoding": (TABLE.encode(), "ansi-2", "x.csv: ", ["no encoding 'ansi-2'"]),
    "no encoding of text": (TABLE.encode(), "base64", "x.csv: ", ["no encoding 'base64'"]),
    "only a mark": (b"\xff\xfe", None, "x.csv:1: ", ["empty"]),
    "blank lines": ("\n \n".encode("utf-16"), None, "x.csv:1: ", ["empty"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_not_what_they_should_be(tmp_path, monkeypatch, name):
    content, encoding, start, parts = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, content, "x.csv")
    with refusal(*parts, start=start):
        read_survey("x.csv", "ranks", encoding=encoding)


def test_the_command_line_asks_for_the_encoding(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_bytes(GIVEN["windows-1252"])
    command = ["describe", "x.csv", "--layout", "ranks", "--judge", "id"]
    assert main(command) == 2
    shown = capsys.readouterr()
    assert "'thé' with --encoding windows-1252" in shown.err and not shown.out
    assert main([*command, "--encoding", "windows-1252"]) == 0
    assert "“café”" in capsys.readouterr().out


def test_an_encoding_goes_with_text_only(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"a": [1], "b": [2]})
    frame.to_excel(tmp_path / "x.xlsx", index=False)
    for source in (frame, tmp_path / "x.xlsx"):
        with pytest.raises(RankingsError, match="encoding is that of a text file"):
            read_survey(source, "ranks", encoding="cp1252")
    (tmp_path / "x.soi").write_text("")
    with pytest.raises(RankingsError, match="encoding does not go with a PrefLib file"):
        read_survey(tmp_path / "x.soi", encoding="cp1252")


def test_where_no_encoding_can_be_given_none_is_named(tmp_path):
    (tmp_path / "x.ldac").write_bytes("maté".encode("cp1252"))
    with pytest.raises(RankingsError) as error:
        read_lines(tmp_path / "x.ldac")
    assert "encoding=" not in str(error.value)
