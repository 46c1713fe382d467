"""How messages write options, in Python and in commands."""

import shlex

import pytest

from numpyro_rankings import RankingsError, read_rankings, read_survey
from numpyro_rankings.cli import main
from numpyro_rankings.readers import read_blt, read_cast_votes, read_council
from numpyro_rankings.words.options import option, options_of_commands


@pytest.mark.parametrize(
    ("name", "value", "in_python", "in_commands"),
    [
        ("columns", None, "columns=", "--columns"),
        ("gaps", "close", "gaps='close'", "--gaps close"),
        ("highest_first", True, "highest_first=True", "--highest-first"),
        ("highest_first", False, "highest_first=False", "--no-highest-first"),
        ("header_rows", 2, "header_rows=2", "--header-rows 2"),
        ("missing", "-99,N/A", "missing='-99,N/A'", "--missing=-99,N/A"),
        ("separator", ";", "separator=';'", "--separator ';'"),
        ("missing", "no answer", "missing='no answer'", "--missing 'no answer'"),
        ("missing", ["n/a"], "missing='n/a'", "--missing n/a"),
        ("missing", ["n/a", "0"], "missing=['n/a', '0']", "--missing n/a,0"),
        ("columns", ("a, b", "c"), "columns=['a, b', 'c']", "--columns '\"a, b\",c'"),
    ],
)
def test_an_option_is_written_as_the_caller_gives_it(name, value, in_python, in_commands):
    assert option(name, value) == in_python
    with options_of_commands():
        assert option(name, value) == in_commands
    assert option(name, value) == in_python


def test_readers_and_commands_say_the_same_in_their_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("x,y\n1,2\n1,n/a\n")
    said = "x.csv:3: column 'y': expected a rank, a whole number from 1, or nothing, got 'n/a'"
    with pytest.raises(RankingsError) as error:
        read_rankings("x.csv", "ranks")
    meant = "if it means that the item is not ranked, add"
    whether = "if it says whether the item was offered"
    ways = "or offered='n/a' or not_offered='n/a'"
    assert str(error.value) == f"{said}; {meant} missing='n/a', {ways} {whether}"
    assert main(["describe", "x.csv", "--layout", "ranks"]) == 2
    ways = "or --offered n/a or --not-offered n/a"
    assert f"{said}; {meant} --missing n/a, {ways} {whether}\n" in capsys.readouterr().err


@pytest.mark.parametrize("code", ["-", "–", "—", ".", "n/a", "-9", "?"])
@pytest.mark.parametrize("name", ["missing", "offered", "not_offered"])
def test_codes_are_taken_as_messages_write_them(tmp_path, monkeypatch, capsys, code, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(f"x,y,z\n1,2,{code}\n2,1,3\n", encoding="utf-8")
    assert main(["describe", "x.csv", "--layout", "ranks"]) == 2
    with options_of_commands():
        text = option(name, code)
    assert text in capsys.readouterr().err
    assert main(["describe", "x.csv", "--layout", "ranks", *shlex.split(text)]) == 0
    assert "2 rankings of 3 items" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("read", "name", "hint"),
    [
        (read_rankings, "groups", "; did you mean num_components= of a kernel?"),
        (read_rankings, "juge", "; did you mean judge=?"),
        (read_rankings, "sep", "; did you mean separator=?"),
        (read_survey, "na_values", "; did you mean missing=?"),
        (read_survey, "highestfirst", "; did you mean highest_first=?"),
        (read_survey, "zzz", ""),
        (read_blt, "max_rank", "; did you mean max_ranks=?"),
        (read_council, "judge", ""),
        (read_cast_votes, "alias", "; did you mean aliases=?"),
    ],
)
def test_an_option_that_does_not_exist(read, name, hint):
    """Named with the function that was called, before the file is read."""
    with pytest.raises(TypeError) as error:
        read("no such file.csv", **{name: 2})
    assert str(error.value) == f"{read.__name__}() has no option {name!r}{hint}"
