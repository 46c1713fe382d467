"""The texts of numbers and of orders, and the words of the code."""

import ast
import re
from pathlib import Path

import pytest

from numpyro_rankings import words


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        (["E", "D", "B", "ACFG"], "E before D before B; the rest close"),
        (["E", "D", "B", "AC"], "E before D before B before A and C, both close"),
        (["E", "D", "B"], "E before D before B"),
        (["E", "DB", "ACF"], "E before D and B, both close, before A, C and F, all close"),
        (["E", "DB", "ACFG"], "E before D and B, both close; the rest close"),
        (["E", "ACFG"], "E first; the rest close"),
        (["DBAC", "E"], "D, B, A and C, all close, before E"),
        (["DBACFG", "E"], "D, B, A, C, F and G, all close, before E"),
        (["DBACFGH", "E"], "D, B, A and 4 more, all close, before E"),
        (["DBAC"], "all close: on average D, then B, then A, then C"),
        (["DB"], "all close: on average D, then B"),
        (["DBACEFG"], "all close: on average D, then B, then A and 4 more"),
        (["A"], "A"),
        ([*"ABCDEFGH", "IJ"], "A before B before C before D before E before F; then 4 more"),
        (
            [*"ABCDEFG", "HI"],
            "A before B before C before D before E before F before G before H and I, both close",
        ),
    ],
)
def test_orders_in_words(levels, text):
    assert words.order_in_words([tuple(level) for level in levels]) == text


@pytest.mark.parametrize("levels", [[*"ABCDEFGHI"], ["ABCDEF", "GHI"], ["ABC", *"DEFGHI"]])
def test_no_more_than_three_items_are_left_without_a_name(levels):
    """Of any number of items: either all have their names, or more than three have not."""
    for k in range(1, len(levels) + 1):
        text = words.order_in_words([tuple(level) for level in levels[:k]])
        named = sum(name in text for name in "".join(levels[:k]))
        left = len("".join(levels[:k])) - named
        assert left == 0 or (left > 3 and f"{left} more" in text)


@pytest.mark.parametrize(
    ("levels", "pairs", "text"),
    [
        (["E", "BACD"], ["BC"], "E first; the rest nearly all close (but B before C is clear)"),
        (["E", "BAC"], ["BC"], "E before B, A and C, nearly all close (but B before C is clear)"),
        (["DBA", "E"], ["BA"], "D, B and A, nearly all close (but B before A is clear), before E"),
        (
            ["DBAC", "E"],
            ["BC", "BA"],
            "D, B, A and C, nearly all close (but B before C and B before A are clear), before E",
        ),
        (
            ["DBAC"],
            ["DC"],
            "nearly all close: on average D, then B, then A, then C (but D before C is clear)",
        ),
        (
            ["DBACF", "E"],
            ["DF", "DC", "BF", "DA"],
            "D, B, A, C and F, mostly close (D before F, D before C and 2 more pairs are clear), "
            "before E",
        ),
        (
            ["E", "DBACF"],
            ["DF", "DC", "BF"],
            "E first; the rest mostly close (D before F, D before C and 1 more pair are clear)",
        ),
        # half of the pairs: an order that none of them is against
        (["DEBA", "C"], ["DA", "DB", "EA"], "D, E, B and A, roughly in this order, before C"),
        (["CBA"], ["AB", "BC"], "roughly in this order: A, B, C"),
        (["X", "CBA"], ["AB", "BC"], "X before A, B and C, roughly in this order"),
        # pairs that form a circle
        (["ABC", "D"], ["AB", "BC", "CA"], "A, B and C, in no one order, before D"),
        (["ABC"], ["AB", "BC", "CA"], "in no one order: A, B, C"),
        (
            ["ABCDE"],
            ["AB", "BC", "CA"],
            "mostly close: on average A, then B, then C, then D, then E (A before B, B before C "
            "and 1 more pair are clear)",
        ),
    ],
)
def test_clear_pairs_are_told_where_items_are_close(levels, pairs, text):
    levels, pairs = [tuple(level) for level in levels], [tuple(pair) for pair in pairs]
    assert words.order_in_words(levels, pairs) == text
    others = [("x", "y"), (levels[0][0], "z")]  # of no level, or of two
    assert words.order_in_words(levels, [*pairs, *others]) == text


def test_numbers_of_groups():
    assert words.size(1228.4) == "1,228" and words.share(0.2726) == "27.3%"
    assert words.interval((1465.2, 3108.0), 10_000) == "14.7–31.1%"
    shares = [0.0, 0.001, 0.06, 0.996, 1.0, float("nan")]
    assert [words.percent(x) for x in shares] == ["0%", "<1%", "6%", ">99%", "100%", "–"]
    assert words.value(-70766.2) == "-70,766" and words.value(1228.0) == "1,228"


def test_characters_that_turn_a_line_round_are_seen():
    turning = "".join(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
    shown = words.with_visible_directions(f"Ann{turning}Bob")
    assert shown.startswith(r"Ann\u202a\u202b") and shown.endswith(r"\u2069Bob")
    assert not set(turning) & set(shown)
    assert words.with_visible_directions("דן, Zoë") == "דן, Zoë"  # has a direction of its own


def test_cells_that_are_no_formulas():
    for text in ("=1+1", "+SUM(A1)", "-x", "@SUM(A1)", "\t=1", "\r=1", "=", "-2+3", "+49 30"):
        assert words.for_spreadsheets(text) == f"'{text}"
    for cell in ("-1", "+2.5", "-1e-3", "-inf", "a=b", "", "1-2", "'=1", -1, None, 2.5):
        assert words.for_spreadsheets(cell) is cell


def test_characters_that_command_a_terminal_are_seen():
    name = "Ann\x1b]0;title\x07\x9b31m\x00\x7f\r\nnote:\tgood"
    shown = r"Ann\u001b]0;title\u0007\u009b31m\u0000\u007f"
    assert words.with_visible_directions(name) == f"{shown}\r\nnote:\tgood"
    assert words.in_one_line(name) == shown + r"\u000d\u000anote:\u0009good"


# ---------------------------------------------------------------------------------------------
# The words of the code
# ---------------------------------------------------------------------------------------------

PACKAGE = Path(__file__).parents[2] / "numpyro_rankings"
# CONTRIBUTING.md says which word is used instead
NO_NAMES = re.compile(r"now|Words|Taken|(.*_)?[uU]nfitted(_.*)?")
HEADLESS = re.compile(r"#:? (?:of|that|which|whose) (?!.*\?)")


def names_in(path):
    """Yield the names that a file defines: variables, arguments, functions and classes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def test_names_are_those_of_the_vocabulary():
    others = [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, line in names_in(path)
        if NO_NAMES.fullmatch(name) and path.name != "clock.py"  # which tells the time
    ]
    assert others == []


def test_comments_are_sentences():
    """A comment above a line does not begin in the middle of a sentence."""
    headless = [
        f"{path.relative_to(PACKAGE)}:{row} {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for row, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if HEADLESS.match(line.strip())
    ]
    assert headless == []
