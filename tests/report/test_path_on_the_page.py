"""How the number of groups was chosen, on the page: the words, the picture and the tree."""

import re

import jax
import numpy as np
import pytest
import xarray as xr
from helpers.fabricated import fabricated_mcmc, with_groups

from numpyro_rankings import plots
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.posterior.diagnostics import Verdict
from numpyro_rankings.posterior.partitions import canonical_labels
from numpyro_rankings.report import findings_of, tree
from numpyro_rankings.report.answers import NO_ORDER_IN_WORDS, wants
from numpyro_rankings.report.judgements import least_agreement
from numpyro_rankings.report.next_steps import next_steps
from numpyro_rankings.report.overall import overall
from numpyro_rankings.report.path import path_shown
from numpyro_rankings.report.path_in_words import path_in_words
from numpyro_rankings.report.write import write_findings

SIZES = [2.0, 20.0, 200.0]


def path_of(labels):
    """A path whose numbers of components have these labels, and of which three last."""
    number = len(labels)
    table = np.full((3, number), 0.1 / (number - 1))
    table[0, 0] = table[1, 2] = table[2, 2] = 0.9
    components = np.arange(1, number + 1)
    return xr.Dataset(
        {
            "probability": (("effective_size", "num_components"), table),
            "num_groups": ("num_components", components),
            "agreed_size": ("num_components", [200.0] * number),
            "labels": (("num_components", "ranking"), np.array(labels, np.uint8)),
        },
        {"effective_size": SIZES, "num_components": components},
        {"ended": "enough"},
    )


@pytest.fixture(scope="module")
def fitted():
    """Rankings of three groups, what is found in draws that have them, and a path to them."""
    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 3, 1.5)
    mcmc = with_groups(fabricated_mcmc(data.rankings, num_components=3), data)
    truth = np.asarray(data.assignments)
    two = canonical_labels((truth == 1).astype(int)[None])[0]
    split = np.where((truth == 0) & (np.arange(200) % 3 == 0), 3, truth)
    labels = [0 * truth, two, canonical_labels(truth[None])[0], canonical_labels(split[None])[0]]
    found = findings_of(mcmc, data.rankings, checks=None)
    return data.rankings, found._replace(path=path_of(labels))


def page_of(rankings, findings, folder):
    write_findings(folder / "report.html", findings, rankings, title="Groups")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_section(fitted, tmp_path):
    rankings, found = fitted
    page = page_of(rankings, found, tmp_path)
    section = page.partition("<h2>How many groups, and at which resolution</h2>")[2]
    section = section.partition("</section>")[0]
    assert f"<p>{path_in_words(found.path)}</p>" in section
    assert "3 groups last longest" in section and "as if there were fewer rankings" in section
    assert section.count("<img") + section.count("<svg") == 2  # the picture and the tree
    for text in ("2 components", "3 components", "4 components", "group 1", "group 3"):
        assert text in section
    # nothing of it was asked for, so that the answer is that of the path
    answers = page.partition('<section class="answers">')[2].partition("</section>")[0]
    assert "3 groups last longest" in answers and "You asked for" not in answers
    without = page_of(rankings, found._replace(path=None), tmp_path)
    assert "at which resolution" not in without and "You asked for 3 groups" in without


def test_the_tree(fitted):
    """Bands are as large as the groups that they lead from and to."""
    shown = path_shown(fitted[1]).tree
    assert [head.text for head in shown.heads] == [f"{k} components" for k in (2, 3, 4)]
    assert [head.is_chosen for head in shown.heads] == [False, True, False]
    columns = [[n for n in shown.nodes if n.x == head.x] for head in shown.heads]
    assert [len(nodes) for nodes in columns] == [2, 3, 4]
    for nodes in columns:
        assert sum(node.share for node in nodes) == pytest.approx(1)
        assert sum(node.height for node in nodes) == pytest.approx(tree._FLOW)
    leaving, arriving = {}, {}
    for band in shown.bands:
        x = [float(n) for n in re.findall(r"[\d.]+", band.path)]
        for found, at, y in ((leaving, x[0] - tree._BAR, x[1]), (arriving, x[6], x[7])):
            (node,) = (
                n
                for n in shown.nodes
                if abs(n.x - at) < 0.2 and n.y - 0.2 <= y < n.y + n.height - 0.2
            )
            found[node.x, node.y] = found.get((node.x, node.y), 0) + x[8] - x[7]
    for k, nodes in enumerate(columns):
        for node in nodes:
            if k < 2:
                assert leaving[node.x, node.y] == pytest.approx(node.height, abs=0.5)
            if k > 0:
                assert arriving[node.x, node.y] == pytest.approx(node.height, abs=0.5)


def test_the_groups_of_the_tree_are_those_of_the_page(fitted):
    """By numbers, colours and sizes; the others have the colour of one that they go with."""
    found = fitted[1]
    shown = path_shown(found).tree
    fewer, chosen, more = ([n for n in shown.nodes if n.x == head.x] for head in shown.heads)
    assert [n.name for n in chosen] == ["group 1", "group 2", "group 3"]
    assert [n.color for n in chosen] == list(plots.COLORS[:3])
    np.testing.assert_allclose(
        [n.share * 200 for n in chosen], [len(p.members) for p in found.held]
    )
    assert len({n.color for n in fewer}) == 2 and {n.color for n in more} == set(plots.COLORS[:3])
    # the larger part of a group that divides, and the smaller one, have its colour
    (twice,) = (c for c in plots.COLORS[:3] if [n.color for n in more].count(c) == 2)
    (whole,) = (n for n in chosen if n.color == twice)
    parts = [n.share for n in more if n.color == twice]
    assert sum(parts) == pytest.approx(whole.share)
    assert not any(n.name for n in (*fewer, *more))


def test_a_number_whose_components_are_not_all_used_is_left_out(fitted):
    found = fitted[1]
    labels = found.path["labels"].values.copy()
    labels[1] = 0  # two components, of which the grouping has one
    shown = path_shown(found._replace(path=path_of(labels))).tree
    assert [head.text for head in shown.heads] == ["1 component", "3 components", "4 components"]
    alone = found._replace(path=path_of([*labels[[0, 0, 2]] * 0]))
    assert [h.text for h in path_shown(alone).tree.heads] == ["1 component", "3 components"]
    assert path_shown(found._replace(reference=None)).tree is None


def said(findings):
    """Return the verdict on everything."""
    judged = overall(findings)
    return " ".join([judged.headline, *judged.reasons])


def test_the_least_agreement_depends_on_the_size():
    np.testing.assert_allclose(
        least_agreement([1, 100, 150, 300, 5000]), [0.03, 0.03, 0.02, 0.01, 0.01]
    )


def test_a_group_without_order_is_not_counted(fitted, tmp_path):
    """It is said so in the words of the page, instead of an order that means nothing."""
    rankings, found = fitted
    table = found.table.assign(note="", r_hat=1.001, ess_bulk=1000, ess_tail=1000)
    found = found._replace(table=table, verdict=Verdict("good", "The chains agree.", []))
    limit = least_agreement(found.profiles[2].mean_size)
    profiles = [*found.profiles[:2], found.profiles[2]._replace(agreement=limit - 0.001)]
    good = found._replace(profiles=profiles)
    assert wants(good)[2] == NO_ORDER_IN_WORDS and NO_ORDER_IN_WORDS not in wants(good)[:2]
    at_limit = good._replace(profiles=[*profiles[:2], profiles[2]._replace(agreement=limit)])
    assert NO_ORDER_IN_WORDS not in wants(at_limit)
    texts = said(good)
    sizes = [p.mean_size / 200 for p in profiles]
    assert f"Report 2 groups: they have {sum(sizes[:2]):.1%} of the rankings." in texts
    assert f"{sizes[2]:.1%} follow none of these." in texts
    assert "Report the 2 groups with a common order." in [step.text for step in next_steps(good)]
    assert NO_ORDER_IN_WORDS in page_of(rankings, good, tmp_path)
    whole = said(found)
    assert "Report 3 groups" in whole and "follow none" not in whole


@pytest.mark.parametrize(
    ("ended", "number", "given", "minutes"),
    [
        ("time", 3, "", 40),
        ("time", 3, "--minutes 5", 20),
        ("enough", 3, "", None),
        ("time", 4, "", None),
    ],
)
def test_more_time_is_proposed_if_the_largest_number_tried_is_shown(
    fitted, ended, number, given, minutes
):
    found = fitted[1]
    path = found.path.isel(num_components=slice(number))
    path.attrs["ended"] = ended
    command = f"numpyro-rankings fit ballots.soi {given}".strip()
    steps = next_steps(found._replace(path=path, details={"command": command}))
    longer = [step for step in steps if "time to try" in step.text]
    assert len(longer) == (minutes is not None)
    if longer:
        assert f"(--minutes {minutes})" in longer[0].text
        assert f"fit ballots.soi --minutes {minutes} --out " in longer[0].command
