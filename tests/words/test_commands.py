"""Commands as text, with other options."""

import argparse

import pytest

from numpyro_rankings.cli.program import make_parser
from numpyro_rankings.words import commands
from numpyro_rankings.words.commands import (
    answered,
    beside,
    compare_command,
    fit_command,
    options_of,
    with_options,
    without,
)


def test_options_are_taken_off_with_their_values():
    command = "numpyro-rankings fit 'my file.csv' --out a --minutes=2 --force --seed 3"
    kept = ["numpyro-rankings", "fit", "my file.csv", "--seed", "3"]
    assert without(command, {"--out", "--minutes"}) == kept


def test_other_values():
    command = "numpyro-rankings fit 'my file.csv' --blocs=3 --resume west"
    expected = "numpyro-rankings fit 'my file.csv' --resume west --blocs 2"
    assert with_options(command, {"--blocs": 2}) == expected
    before = with_options("numpyro-rankings fit --seed 1 -- -t.csv", {"--components": "auto"})
    assert before == "numpyro-rankings fit --seed 1 --components auto -- -t.csv"


def test_commands_for_the_same_file():
    fit = "numpyro-rankings fit 'my file.csv' --judge id --model plackett-luce --components dp"
    fit += " --approximate --minutes 3 --seed 3 --out=here --force --ess=50"
    assert compare_command(fit) == "numpyro-rankings compare 'my file.csv' --judge id --seed 3"
    compare = "numpyro-rankings compare x.soi --evidence --components 1-6 --kfold=5 --chains 2"
    compare += " --models mallows --no-process --no-progress"
    expected = "numpyro-rankings fit x.soi --chains 2 --no-progress --components 3"
    assert fit_command(compare, {"--components": 3}) == expected


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ("--shares-by region,age", "--about region,age"),
        ("--about age --shares-by=region,age", "--about age,region"),
        ("""--shares-by '"a, b",age' --about=wt""", """--about 'wt,"a, b",age'"""),
        ("--about age", "--about age"),
    ],
)
def test_columns_of_shares_stay_columns_about_the_judges(given, about):
    fit = f"numpyro-rankings fit x.csv --components 2 {given}"
    assert compare_command(fit) == f"numpyro-rankings compare x.csv {about}"
    alone = f"numpyro-rankings fit x.csv {about} --components 1 --out numpyro-rankings-results-a"
    assert beside(fit, "a", {"--components": 1}, ["--shares-by"]) == alone


def test_options_that_only_one_of_two_commands_has():
    (found,) = (x for x in make_parser()._actions if isinstance(x, argparse._SubParsersAction))
    fit, compare = (found.choices[name]._actions for name in ("fit", "compare"))
    fit, compare = ({x for a in y for x in a.option_strings if len(x) > 2} for y in (fit, compare))
    assert {*commands._OF_FIT} == fit - compare
    assert {*commands._OF_COMPARE} == compare - fit
    assert {*commands._OF_RUN} < fit & compare
    flags = {
        text
        for name in ("fit", "compare", "cluster")
        for x in found.choices[name]._actions
        for text in x.option_strings
        if x.nargs == 0 and text.startswith("--")
    }
    assert {*commands._FLAGS} == flags - {"--help"}


def test_options_of_a_command():
    command = "numpyro-rankings fit --force 'my file.csv' --top=2 --columns a,b --columns 'c d'"
    expected = {"": ["fit", "my file.csv"], "--force": [], "--top": ["2"]}
    assert options_of(command) == {**expected, "--columns": ["a,b", "c d"]}


@pytest.mark.parametrize(
    ("options", "out"),
    [
        ("", "numpyro-rankings-results-2-blocs"),
        ("--out a/west", "a/west-2-blocs"),
        ("--out=west/ --force", "west-2-blocs"),
        ("--resume west", "west-2-blocs"),
        ("--out ..", "../2-blocs"),
        ("--out 'a b'", "'a b-2-blocs'"),
    ],
)
def test_results_are_beside_those_of_the_command(options, out):
    command = f"numpyro-rankings fit x.soi --seed 1 {options}"
    expected = f"numpyro-rankings fit x.soi --seed 1 --blocs 2 --out {out}"
    assert beside(command, "2-blocs", {"--blocs": 2}) == expected


@pytest.mark.parametrize(
    ("command", "answers", "expected"),
    [
        ("describe 'my file.csv'", {"gaps": "close"}, "describe 'my file.csv' --gaps close"),
        ("fit t.csv --gaps refuse --force", {"gaps": "fill"}, "fit t.csv --force --gaps fill"),
        ("fit --missing=0 t.csv", {"missing": ("0", "-9")}, "fit t.csv --missing 0,-9"),
        ("fit t.csv", {"missing": ("-9", "n/a")}, "fit t.csv --missing=-9,n/a"),
        ("fit t.csv --no-transpose", {"transpose": True}, "fit t.csv --transpose"),
        ("fit t.csv --transpose", {"transpose": False}, "fit t.csv --no-transpose"),
        ("fit -- -t.csv", {"header_rows": 2}, "fit --header-rows 2 -- -t.csv"),
        ("fit t.csv --columns 'a*'", {"columns": ["x y", "z"]}, "fit t.csv --columns 'x y,z'"),
        ("fit t.csv", {"separator": "'"}, """fit t.csv --separator ''"'"''"""),
    ],
)
def test_answers_in_a_command(command, answers, expected):
    assert answered(f"numpyro-rankings {command}", answers) == f"numpyro-rankings {expected}"
