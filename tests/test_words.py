"""The texts of numbers and of orders."""

import pytest

from numpyro_rankings import words


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        (["E", "D", "B", "AC"], "E before D before B; the rest close"),
        (["E", "D", "B"], "E before D before B"),
        (["E", "DB", "AC"], "E before D and B, both close; the rest close"),
        (["DBAC", "E"], "D, B, A and C, all close, before E"),
        (["DBACF", "E"], "D, B, A and 2 more, all close, before E"),
        (["DBAC"], "all close: on average D, then B, then A, then C"),
        (["DB"], "all close: on average D, then B"),
        (["DBACE"], "all close: on average D, then B, then A and 2 more"),
        (["A"], "A"),
        ([*"ABCDEFGH", "IJ"], "A before B before C before D before E before F; then 4 more"),
    ],
)
def test_orders_in_words(levels, text):
    assert words.order_in_words([tuple(level) for level in levels]) == text


@pytest.mark.parametrize(
    ("levels", "pairs", "text"),
    [
        (["E", "BAC"], ["BC"], "E first; the rest close (but B before C is clear)"),
        (["DBA", "E"], ["BA"], "D, B and A, all close (but B before A is clear), before E"),
        (
            ["DBAC", "E"],
            ["BC", "BA"],
            "D, B, A and C, all close (but B before C and B before A are clear), before E",
        ),
        (
            ["DBAC"],
            ["DC"],
            "all close: on average D, then B, then A, then C (but D before C is clear)",
        ),
        (
            ["DBACF", "E"],
            ["DF", "DC", "BF", "DA"],
            "D, B, A and 2 more, all close (but D before F, D before C and 2 more pairs are "
            "clear), before E",
        ),
    ],
)
def test_clear_pairs_are_named_where_items_are_close(levels, pairs, text):
    levels, pairs = [tuple(level) for level in levels], [tuple(pair) for pair in pairs]
    assert words.order_in_words(levels, pairs) == text
    others = [("x", "y"), (levels[0][0], "z")]  # of no level, or of two
    assert words.order_in_words(levels, [*pairs, *others]) == text


def test_numbers_of_groups():
    assert words.size(1228.4) == "1,228" and words.share(0.2726) == "27.3%"
    assert words.interval((1465.2, 3108.0)) == "1,465–3,108"
    shares = [0.0, 0.001, 0.06, 0.996, 1.0]
    assert [words.percent(x) for x in shares] == ["0%", "<1%", "6%", ">99%", "100%"]
    assert words.value(-70766.2) == "-70,766" and words.value(1228.0) == "1,228"
