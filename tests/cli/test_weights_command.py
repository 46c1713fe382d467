"""``--weight``: what a weighted fit says, and what is refused in one line."""

import csv

import numpy as np
import pytest

from numpyro_rankings.cli import main
from numpyro_rankings.report import group_path

SHORT = ["--draws", "60", "--warmup", "60", "--chains", "2", "--thin", "1", "--no-progress"]


@pytest.fixture
def survey(tmp_path, monkeypatch):
    """Two opposite groups; the smaller one in the file is the larger one in the population."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = ["id,region,w,a,b,c,d"]
    for k in range(60):
        is_first = k < 40
        ranks = np.array([1, 2, 3, 4] if is_first else [4, 3, 2, 1])
        if rng.random() < 0.2:
            ranks = np.where(ranks == 2, 3, np.where(ranks == 3, 2, ranks))
        weight = 0.5 if is_first else 3.0
        rows.append(f"j{k},{'north' if k % 2 else 'south'},{weight},{','.join(map(str, ranks))}")
    (tmp_path / "survey.csv").write_text("\n".join(rows) + "\n")
    return ["survey.csv", "--layout", "ranks", "--judge", "id"]


def test_a_weighted_fit_is_of_the_population(survey, capsys, tmp_path):
    weighted = [*survey, "--weight", "w", "--about", "region", "--components", "2"]
    assert main(["fit", *weighted, *SHORT, "--out", "out"]) == 0
    text = capsys.readouterr()
    effective = (20 + 60) ** 2 / (40 * 0.25 + 20 * 9)
    said = f"60 judges count as {effective:.0f} (design effect {60 / effective:.2f})"
    assert f"note: weighted by 'w': {said}" in text.err
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"Weighted, {said}. Shares, their intervals, and sizes" in page
    assert f"column w: {said}" in page
    with (tmp_path / "out" / "clusters.csv").open(newline="") as stream:
        groups = list(csv.DictReader(stream))
    shares = {row["consensus"][0]: float(row["share"]) for row in groups}
    members = {row["consensus"][0]: int(row["members"]) for row in groups}
    assert members == {"a": 40, "d": 20}
    # 60 of 80 in the population; the prior draws it a little towards a half
    assert 0.65 < shares["d"] < 0.8
    assert shares["a"] + shares["d"] == pytest.approx(1, abs=1e-3)
    assert float(groups[0]["size_high"]) - float(groups[0]["size_low"]) > 8  # of 32 worth, not 60
    # the new wave needs no weights
    lines = (tmp_path / "survey.csv").read_text().splitlines()
    (tmp_path / "wave.csv").write_text("\n".join(lines[:3]) + "\n")
    assert main(["assign", "out", "wave.csv"]) == 0
    assert (tmp_path / "wave-groups.csv").exists()
    assert main(["assign", "out", "wave.csv", "--weight", "w", "--force"]) == 2
    assert "assign takes no survey weights: leave out --weight" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--count", "region"], "--weight goes without --count"),
        (["--model", "gamma-process"], "--weight goes with --model mallows or plackett-luce"),
        (["--sampler", "slice"], "--weight goes with --sampler tempered, not with slice"),
        (["--components", "dp"], "--weight goes with --components K or auto, not with dp"),
        (["--blocs", "2"], "--blocs goes without --weight"),
        (["--slates", "x.csv"], "--slates goes without --weight"),
        (
            ["--components", "2", "--effective-size", "50"],
            "--effective-size must be at most 33.6842105, the effective number of judges",
        ),
        (["--alpha", "2"], "--alpha goes with a number of --components, not with auto"),
    ],
)
def test_what_does_not_go_with_weights_is_refused(options, message, survey, capsys, tmp_path):
    assert main(["fit", *survey, "--weight", "w", "--about", "region", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "numpyro-rankings-results").exists()


def test_compare_takes_no_weights_and_misspelt_options_find_them(survey, capsys):
    assert main(["compare", *survey, "--weight", "w"]) == 2
    error = capsys.readouterr().err
    assert "compare takes no survey weights: leave out --weight" in error
    for misspelt in ("--weights", "--wt"):
        assert main(["fit", *survey, misspelt, "w"]) == 2
        assert "did you mean --weight?" in capsys.readouterr().err
    assert main(["fit", *survey, "--count", "w"]) == 2
    assert "survey weights are not counts: name the column in --weight" in capsys.readouterr().err


def test_too_little_time_proposes_no_process(survey, capsys, monkeypatch):
    def too_late(*_, **__):
        raise group_path.TooLittleTimeError

    monkeypatch.setattr(group_path, "group_path", too_late)
    assert main(["fit", *survey, "--weight", "w", "--about", "region", "--minutes", "0.5"]) == 2
    error = capsys.readouterr().err
    assert "0.5 minutes did not suffice" in error
    assert "--components dp" not in error


def test_bad_weights_are_told_with_their_row(survey, capsys, tmp_path):
    text = (tmp_path / "survey.csv").read_text().replace("j3,north,0.5", "j3,north,-0.5")
    (tmp_path / "survey.csv").write_text(text)
    for command in ("describe", "fit"):
        assert main([command, *survey, "--weight", "w", "--about", "region"]) == 2
        assert "survey.csv:5: column 'w': expected a weight, a number from 0 on, got '-0.5'" in (
            capsys.readouterr().err
        )
