"""How messages write options, in Python and in commands."""

import pytest

from numpyro_rankings import RankingsError, read_rankings
from numpyro_rankings.cli import main
from numpyro_rankings.words.options import option, options_of_commands


@pytest.mark.parametrize(
    ("name", "value", "in_python", "in_commands"),
    [
        ("columns", None, "columns=", "--columns"),
        ("gaps", "close", "gaps='close'", "--gaps close"),
        ("highest_first", True, "highest_first=True", "--highest-first"),
        ("highest_first", False, "highest_first=False", "--no-highest-first"),
        ("header_rows", 2, "header_rows=2", "--header-rows 2"),
        ("missing", "-99,N/A", "missing='-99,N/A'", "--missing '-99,N/A'"),
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
    assert str(error.value) == f"{said}; {meant} missing='n/a'"
    assert main(["describe", "x.csv", "--layout", "ranks"]) == 2
    assert f"{said}; {meant} --missing n/a\n" in capsys.readouterr().err
