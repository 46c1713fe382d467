"""The column of survey weights: what is read, what is refused, and what keeps them."""

import numpy as np
import pandas as pd
import pytest

from numpyro_rankings import RankingsError, WeightedRankings, read_rankings, read_survey
from numpyro_rankings.readers.surveys import with_sample

WEIGHTS = ["1.5", "0", "0,25", "2e0", ".75", "1"]
RANKS = ["1,2,3", "2,1,3", "1,2,3", "3,2,1", "2,1,3", "1,2,3"]


def table(tmp_path, weights=WEIGHTS, separator=";"):
    path = tmp_path / "survey.csv"
    rows = [
        ";".join([f"j{k}", w, *r.split(",")])
        for k, (w, r) in enumerate(zip(weights, RANKS, strict=True))
    ]
    path.write_text("id;w;x;y;z\n" + "\n".join(rows) + "\n")
    return path


def kish(values):
    return sum(values) ** 2 / sum(x * x for x in values)


def test_each_judge_has_a_weight_and_equal_rankings_share_a_row(tmp_path):
    survey = read_survey(table(tmp_path), "ranks", judge="id", weight="w")
    values = [1.5, 0, 0.25, 2, 0.75, 1]
    assert survey.weights.tolist() == values
    rankings = survey.rankings
    assert isinstance(rankings, WeightedRankings)
    assert rankings.items == ("x", "y", "z")
    assert rankings.effective_number == pytest.approx(kish(values))
    by_list = {"xyz": 2.75, "yxz": 0.75, "zyx": 2.0}
    scale = kish(values) / sum(values)
    sums = np.asarray(rankings.weights) * np.asarray(rankings.counts)
    for row, total in zip(rankings.orderings.tolist(), sums, strict=True):
        name = "".join("xyz"[k] for k in row if k >= 0)
        assert total == pytest.approx(by_list[name[:3]] * scale, rel=1e-6)
    assert rankings.unweighted() == read_rankings(table(tmp_path), "ranks", judge="id", about="w")


def test_a_long_table_has_the_weight_in_each_row_of_a_judge():
    rows = [("a", "x", 1, 2.0), ("a", "y", 2, 2.0), ("b", "y", 1, 0.5), ("b", "x", 2, 0.5)]
    frame = pd.DataFrame(rows, columns=["judge", "item", "rank", "w"])
    survey = read_survey(frame, "long", judge="judge", weight="w")
    assert survey.weights.tolist() == [2.0, 0.5]
    assert survey.rankings.design_effect == pytest.approx(2 / kish([2.0, 0.5]))
    frame.loc[1, "w"] = 3.0
    with pytest.raises(RankingsError, match="'3', but '2' in an earlier row of judge 'a'"):
        read_survey(frame, "long", judge="judge", weight="w")


@pytest.mark.parametrize("cell", ["-1", "", "n/a", "nan", "inf", "1,000.5", "2 %"])
def test_what_is_no_weight_is_refused_with_its_row(cell, tmp_path):
    weights = [*WEIGHTS[:2], cell, *WEIGHTS[3:5], cell]
    got = "an empty cell" if cell in ("", "nan") else repr(cell)
    with pytest.raises(RankingsError) as error:
        read_survey(table(tmp_path, weights), "ranks", judge="id", weight="w")
    message = str(error.value)
    assert f"survey.csv:4: column 'w': expected a weight, a number from 0 on, got {got}" in message
    assert message.endswith("as in 1 other line: 7; write 0 to leave a judge out")


def test_what_does_not_go_with_weights_is_refused(tmp_path):
    path = table(tmp_path)
    with pytest.raises(RankingsError, match="weight= goes without count="):
        read_survey(path, "ranks", judge="id", weight="w", count="x")
    with pytest.raises(RankingsError, match="no column 'v'"):
        read_survey(path, "ranks", judge="id", weight="v")
    with pytest.raises(RankingsError, match="all weights in the column 'w' are 0"):
        read_survey(table(tmp_path, ["0"] * 6), "ranks", judge="id", weight="w")
    tied = pd.DataFrame({"w": [1, 2], "x": [1, 1], "y": [1, 2], "z": [3, 3]})
    with pytest.raises(
        RankingsError, match=r"lists without ties.*ties='drop', or ties='order', or overvote"
    ):
        read_survey(tied, "ranks", weight="w")
    assert read_survey(tied, "ranks", weight="w", ties="drop").weights.tolist() == [2]
    (tmp_path / "a.soi").write_text("")
    with pytest.raises(RankingsError, match="weight does not go with"):
        read_survey(tmp_path / "a.soi", weight="w")


def test_shorter_lists_and_samples_keep_the_weights(tmp_path):
    path = table(tmp_path)
    survey = read_survey(path, "ranks", judge="id", weight="w", top=1)
    assert survey.rankings.num_rows == 3
    assert survey.rankings.effective_number == pytest.approx(kish(survey.weights))
    assert float((survey.rankings.weights * survey.rankings.counts).sum()) == pytest.approx(
        survey.rankings.effective_number, rel=1e-6
    )
    sample = with_sample(survey, 4)
    kept = [int(name[1:]) for name in sample.judges]
    assert sample.weights.tolist() == survey.weights[kept].tolist()
    assert sample.rankings.effective_number == pytest.approx(kish(sample.weights))
    assert "keep their weights" in sample.notes[-1]


@pytest.mark.parametrize(
    ("weights", "values"),
    [
        (["950", "1,200", "800", "700", "1", "2"], None),
        (["1,250", "2,000", "1,000", "1", "1", "1"], None),
        (["0,950", "1,200", "0,8", "1", "1", "1"], [0.95, 1.2, 0.8, 1, 1, 1]),
        (["950", "1200", "0.5", "1", "1", "1"], [950, 1200, 0.5, 1, 1, 1]),
    ],
)
def test_a_comma_may_stand_for_thousands(tmp_path, weights, values):
    path = table(tmp_path, weights)
    if values is not None:
        assert read_survey(path, "ranks", judge="id", weight="w").weights.tolist() == values
        return
    with pytest.raises(RankingsError, match=r"column .w..*may be a thousand and more: write"):
        read_survey(path, "ranks", judge="id", weight="w")


LISTS = ["abc", "bac", "cab", "abc", "bca", "acb"]


@pytest.mark.parametrize("layout", ["ranks", "orders", "cell"])
def test_a_column_of_decimals_may_have_weights(layout):
    """It is asked about, names no judges, and the option that is named reads it."""
    columns = {
        "ranks": {x: [order.index(x) + 1 for order in LISTS] for x in "abc"},
        "orders": {place: [order[k] for order in LISTS] for k, place in enumerate(["1st", "2nd"])},
        "cell": {"order": [">".join(order) for order in LISTS]},
    }[layout]
    frame = pd.DataFrame({**columns, "size": [1.5, 0.25, 2.0, 0.75, 1.0, 0.8]}).astype(str)
    with pytest.raises(RankingsError, match="weight='size' if it has survey weights") as error:
        read_survey(frame, layout)
    # in a table of ranks it may be a tie, so that no option is proposed for it
    answer = None if layout == "ranks" else ("size",)
    assert error.value.questions.options.get("about") == answer
    survey = read_survey(frame, layout, weight="size")
    assert survey.weights.sum() == pytest.approx(6.3)
    assert survey.rankings.num_rankings == 6
