"""Commands as text, with other options."""

import pytest

from numpyro_rankings.words.commands import answered, beside, with_options, without


def test_options_are_taken_off_with_their_values():
    command = "numpyro-rankings fit 'my file.csv' --out a --minutes=2 --force --seed 3"
    kept = ["numpyro-rankings", "fit", "my file.csv", "--seed", "3"]
    assert without(command, {"--out", "--minutes"}) == kept


def test_other_values():
    command = "numpyro-rankings fit 'my file.csv' --blocs=3 --resume west"
    expected = "numpyro-rankings fit 'my file.csv' --resume west --blocs 2"
    assert with_options(command, {"--blocs": 2}) == expected


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
