"""Commands as text, with other options."""

import pytest

from numpyro_rankings.words.commands import beside, with_options, without


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
