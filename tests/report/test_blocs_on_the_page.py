"""The section about blocs: what it says, and where it is on the page."""

import itertools
import re

import jax
import numpy as np
import pytest
from helpers.fabricated import fabricated_mcmc, with_groups

from numpyro_rankings import plots, words
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.report import blocs, blocs_in_words, findings_of
from numpyro_rankings.report import findings as module
from numpyro_rankings.report import tree as tree_module
from numpyro_rankings.report.write import write_findings

NAMES = ["<b>Ann</b>", "Bob & co", "Cid", "Dee", "Eve"]
ABOUT = {"region <x>": ["north", "south"] * 100}


@pytest.fixture(scope="module")
def fitted():
    """Rankings of six groups, and what is found in draws that have them."""
    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 6, 1.5, items=NAMES)
    mcmc = with_groups(fabricated_mcmc(data.rankings), data)
    return data.rankings, findings_of(mcmc, data.rankings, checks=None, blocs=3)


@pytest.fixture(scope="module")
def page_of(fitted, tmp_path_factory):
    def write(findings):
        path = tmp_path_factory.mktemp("page") / "report.html"
        write_findings(path, findings, fitted[0], title="Blocs", about=ABOUT)
        return path.read_text(encoding="utf-8")

    return write


@pytest.fixture(scope="module")
def page(page_of, fitted):
    return page_of(fitted[1])


def headings(page):
    return re.findall("<h2[^>]*>(.*?)</h2>", page)


def row(cells):
    return "".join(f"<td>{cell}</td>" for cell in cells)


def test_blocs_come_first_and_groups_are_in_an_appendix(page, fitted):
    findings = fitted[1]
    assert findings.blocs_first and len(findings.held) == 6
    names = headings(page)
    assert names[0] == "The blocs"
    diagnostics = names.index("Do the chains agree")
    assert names[diagnostics + 1 : diagnostics + 3] == [
        "Appendix: the groups",
        "Who is in the groups",
    ]
    # what the blocs put where is shown before
    assert page.count("in each bloc.</figcaption>") == 1
    assert page.index("Where they rank the items") < page.index("Appendix: the groups")
    assert "<h3>Group " not in page and "What do they want?" in page
    for k, p in enumerate(findings.held, 1):
        assert f"<tr>{row([k, words.size(p.mean_size)])}" in page
    answers = page.partition('<section class="answers">')[2].partition("</section>")[0]
    questions = re.findall("<dt>(.*?)</dt>", answers)
    assert questions == [
        "How many blocs?",
        "What do they want?",
        "Can I trust the blocs?",
        "How many groups?",
        "Can I trust the groups?",
        "What to do next?",
    ]


@pytest.mark.parametrize("ess", [99, 100])
def test_what_is_said_of_blocs(page_of, fitted, ess):
    """Sizes have intervals if the ESS is at least 100, and what they keep always has."""
    page = page_of(
        fitted[1]._replace(table=fitted[1].table.assign(ess_bulk=1000.0, ess_tail=float(ess)))
    )
    assert page.count("<th>90% interval</th>") == (2 if ess == 100 else 0)
    assert page.count("(ESS) is below 100, too small for them") == (ess == 99)
    found, total = fitted[1].blocs, fitted[0].num_rankings
    judged = blocs_in_words.verdict_of_blocs(found)
    assert f"<dt>Can I trust the blocs?</dt>\n<dd>{judged.headline}</dd>" in page
    assert page.count(judged.headline) == 1
    for reason in judged.reasons:
        assert f"<li>{reason}</li>" in page
    for k, bloc in enumerate(found.blocs, 1):
        wants = blocs_in_words.wants_of_bloc(bloc)
        wants = wants.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        color = plots.COLORS[k - 1]  # that of the tree
        swatch = f'<span class="swatch" style="background:{color}"></span>{k}'
        texts = [swatch, words.size(bloc.size), words.share(bloc.size / total)]
        texts += [words.interval(bloc.size_interval, total)] if ess == 100 else []
        texts += [words.percent(bloc.certainty), words.percent(bloc.agreement), wants]
        assert row(texts) in page
        assert f"bloc {k} ({words.share(bloc.size / total)}): {wants}" in page
    for level in found.levels:
        shown = words.plural(level.number, "bloc")
        kept = blocs_in_words.share_kept(level)
        chosen = ' class="chosen"' if level.number == 3 else ""
        assert f"<span{chosen}>{shown}</span>" in page and f"<span{chosen}>{kept}</span>" in page
    assert "<h4>region &lt;x&gt;</h4>" in page
    south = np.arange(200) % 2 == 1
    for k in range(3):
        members = found.labels == k
        counts = (~south)[members].sum(), south[members].sum()
        cells = [f"{x / members.sum():.0%} ({x})" for x in counts]
        assert any(row([f"bloc {k + 1}", *y]) in page for y in (cells, cells[::-1]))
    assert row(["all", "50% (100)", "50% (100)"]) in page


def test_blocs_that_were_asked_for_come_after_few_groups(page_of, fitted, monkeypatch):
    monkeypatch.setattr(module, "FEW_GROUPS", 6)
    page = page_of(fitted[1])
    assert headings(page)[:2] == ["Who is in the groups", "The blocs"]
    assert page.count("<h3>Group ") == 6 and "How many blocs?" not in page
    judged = blocs_in_words.verdict_of_blocs(fitted[1].blocs)
    assert f'<div class="verdict"><strong>{judged.headline}</strong>' in page
    page = page_of(fitted[1]._replace(blocs=None))
    assert "The blocs" not in page


@pytest.mark.parametrize(("number", "levels"), [(1, 3), (2, 3), (3, 4), (6, 6), (3, 2)])
def test_tree(fitted, number, levels):
    """Bars are as high as blocs are large, and bands lead from all of a bloc to all of another."""
    found, total = fitted[1].blocs, fitted[0].num_rankings
    number = min(number, levels)
    tree = blocs._tree(found._replace(number=number, levels=found.levels[:levels]), total)
    assert all(re.fullmatch(r"\d blocs?, [\d.]+% kept", head.text) for head in tree.heads)
    shown = [int(head.text[0]) for head in tree.heads]
    assert number in shown and shown == list(range(shown[0], shown[0] + min(3, levels)))
    assert len(tree.nodes) == sum(shown)
    by_column = {head.x: [node for node in tree.nodes if node.x == head.x] for head in tree.heads}
    for head in tree.heads:
        nodes = by_column[head.x]
        heights = [node.height for node in nodes]
        assert sum(heights) == pytest.approx(tree_module._FLOW, abs=0.1 * len(nodes))
        words_end = [
            tree_module._FIRST_LINE + tree_module._LINE * len(node.lines) for node in nodes
        ]
        ends = [node.y + max(node.height, end) for node, end in zip(nodes, words_end, strict=True)]
        assert (np.array(ends[:-1]) < [node.y for node in nodes[1:]]).all()
        assert max(ends) <= tree.height
    for band in tree.bands:
        numbers = [float(x) for x in re.findall(r"[\d.]+", band.path)]
        left, right, thick = numbers[1], numbers[7], numbers[8] - numbers[7]
        assert thick >= 0.9 * tree_module._LEAST_FLOW * tree_module._FLOW
        starts, ends = (
            [n for x in by_column for n in by_column[x] if abs(n.x - at) < 0.1]
            for at in (numbers[0] - tree_module._BAR, numbers[6])
        )
        assert any(_holds(node, left, thick) for node in starts)
        assert any(_holds(node, right, thick) for node in ends)


def test_words_in_the_tree_do_not_touch(fitted, monkeypatch):
    """Of small blocs neither, whose words are higher than they are."""
    monkeypatch.setattr(tree_module, "_FLOW", 20.0)
    tree = blocs._tree(fitted[1].blocs._replace(number=3), fitted[0].num_rankings)
    for head in tree.heads:
        nodes = [node for node in tree.nodes if node.x == head.x]
        starts = [*(node.y for node in nodes[1:]), tree.height]
        for node, start in zip(nodes, starts, strict=True):
            last = 13 + 15 * len(node.lines)  # where the template has the last line
            assert node.y + last + 4 < start


def test_a_bloc_has_the_color_of_the_level_shown(fitted):
    """That with which it has most in common; fewer blocs have different ones."""
    found, total = fitted[1].blocs, fitted[0].num_rankings
    tree = blocs._tree(found._replace(number=3), total)
    by_level = [[n.color for n in tree.nodes if n.x == head.x] for head in tree.heads]
    fewer, shown, more = by_level
    assert shown == list(plots.COLORS[:3]) and len(set(fewer)) == 2
    flow = found.levels[2].flow
    kept = sum(flow[a, shown.index(color)] for a, color in enumerate(fewer))
    others = (sum(flow[a, b] for a, b in enumerate(x)) for x in _choices(3, 2))
    assert kept == pytest.approx(max(others))
    flow = found.levels[3].flow
    assert [shown.index(color) for color in more] == flow.argmax(0).tolist()
    # bands have the colours of their ends in the level shown
    middle = {node.y: node for node in tree.nodes if node.x == tree.heads[1].x}
    x = tree.heads[1].x
    for band in tree.bands:
        numbers = [float(n) for n in re.findall(r"[\d.]+", band.path)]
        at = numbers[7] if abs(numbers[6] - x) < 0.1 else numbers[1]
        thick = numbers[8] - numbers[7]
        (node,) = (n for n in middle.values() if _holds(n, at, thick))
        assert band.color == node.color


def test_only_the_blocs_of_the_level_shown_have_numbers(fitted):
    """For a ``bloc 2`` of another level would seem to be the same."""
    found, total = fitted[1].blocs, fitted[0].num_rankings
    tree = blocs._tree(found._replace(number=3), total)
    names = [[n.name for n in tree.nodes if n.x == head.x] for head in tree.heads]
    assert names == [[""] * 2, ["bloc 1", "bloc 2", "bloc 3"], [""] * 4]
    assert [head.is_chosen for head in tree.heads] == [False, True, False]


LONG = [f"{k}. Improve what is there before anything else is built" for k in range(7)]


def test_the_picture_says_what_the_table_says(fitted):
    """Of one level too, whose pairs are clear, and of members who have no common order."""
    found, total = fitted[1].blocs, fitted[0].num_rankings
    pairs = (("Bob", "Ann"), ("Ann", "Cid"), ("Bob", "Cid"))
    one_level = found.blocs[0]._replace(levels=(("Ann", "Bob", "Cid"),), clear_pairs=pairs)
    at_random = found.blocs[1]._replace(agreement=0.009)
    level = found.level._replace(blocs=(one_level, at_random, found.blocs[2]))
    found = found._replace(levels=(*found.levels[:2], level, *found.levels[3:]))
    tree = blocs._tree(found, total)
    shown = [" ".join(node.lines) for node in tree.nodes if node.name]
    assert shown == [blocs_in_words.wants_of_bloc(bloc) for bloc in found.blocs]
    assert shown[0] == "roughly in this order: Bob, Ann, Cid"
    assert shown[1].startswith("no common order")
    others = [bloc for level in found.levels[1:4:2] for bloc in level.blocs]
    shown = [" ".join(node.lines) for node in tree.nodes if not node.name]
    assert shown == [blocs_in_words.wants_of_bloc(bloc) for bloc in others]


def test_what_a_bloc_wants_is_said_in_full():
    """Long names have as many lines as they need, and no line is longer than there is room."""
    text = words.order_in_words([LONG[:6], ["C"]])
    one = tree_module.Level(1, "all", [9], np.zeros((1, 1)), [text])
    (node,) = tree_module.tree_of([one], 1, [""], 9).nodes
    room = (tree_module._WIDTH - tree_module._LABEL) / tree_module._LETTER
    assert " ".join(node.lines) == text and max(map(len, node.lines)) <= room


def test_shares_outside_0_to_100_percent_are_not_shown(fitted, page_of):
    """Not even where the draws say hardly more than one population, as early ones do."""
    found = fitted[1].blocs
    levels = [
        x._replace(kept=1.426, kept_interval=(-32.949, 23.624), chain_kept=x.chain_kept - 3)
        for x in found.levels
    ]
    odd = fitted[1]._replace(
        blocs=found._replace(levels=(levels[0]._replace(kept=-2), *levels[1:]))
    )
    page = page_of(odd)
    shares = [
        float(x)
        for x in re.findall(r"(-?[\d.,]+)(?:\u2013-?[\d.]+)?%", page.partition("</style>")[2])
    ]
    assert shares and min(shares) >= 0 and max(shares) <= 100
    assert "100.0% (0.0–100.0%)" in page and "it is shown as 100%" in page


def _choices(number, size):
    return itertools.permutations(range(number), size)


def _holds(node, top, height):
    """Whether a bar has the end of a band beside it."""
    first = node.y
    return first - 0.2 <= top and top + height <= first + node.height + 0.4


def test_names_in_the_tree_are_shown_as_they_are(page):
    tree = page.partition('<svg class="tree"')[2].partition("</svg>")[0]
    assert "&lt;b&gt;Ann" in tree and "<b>" not in tree
