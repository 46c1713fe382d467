"""``fit --calibrate``: posterior SBC of a fit, on the page and in a table."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import QUICK_FIT, expect_error, rows_of

from numpyro_rankings.cli import main

FIT = ["fit", "lists.csv", "--layout", "orders", *QUICK_FIT, "--out", "out", "--calibrate", "20"]


@pytest.fixture(autouse=True)
def lists():
    rng = np.random.default_rng(0)
    rows = [",".join(rng.permutation(["ann", "bob", "cid", "dee"])) for _ in range(30)]
    Path("lists.csv").write_text("\n".join(["1,2,3,4", *rows]) + "\n")


def test_table_page_and_screen_tell_it(capsys):
    assert main([*FIT, "--model", "plackett-luce", "--components", "1"]) == 0
    shown = capsys.readouterr()
    found = re.search(r"Posterior SBC, (\d+) refits of 30 further rankings simulated", shown.out)
    number = int(found[1])
    # no more than the few draws are worth
    assert 2 <= number <= 20 and (number < 20) == ("--calibrate takes" in shown.err)
    assert "calibration.csv" in shown.out
    rows = rows_of("out/calibration.csv")
    assert {row["quantity"] for row in rows} >= {"log_joint", "population_entropy"}
    for row in rows:
        assert sum(int(row[f"rank_{k}"]) for k in range(20)) == number
        assert 0.0 < float(row["p_value"]) <= 1.0
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "Does the sampler recover what it simulates?" in page


def test_what_it_does_not_go_with_is_refused_before_the_run(capsys):
    expect_error(
        capsys, [*FIT, "--components", "2", "--effective-size", "9"], ["without --effective-size"]
    )
    lists = [x for x in FIT if x not in ("--max-clusters", "16")]
    expect_error(capsys, [*lists, "--model", "gamma-process"], ["its lists may have further items"])
    Path("lists.csv").write_text("a,b,c\n1,2,2\n1,1,2\n2,1,3\n")
    tied = [x if x != "orders" else "ranks" for x in FIT]
    expect_error(capsys, tied, ["is for rankings without ties, open orders and mistakes"])
    assert not Path("out").exists()
