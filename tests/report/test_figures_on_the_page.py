"""What the page shows in figures and in small tables, and what it leaves out."""

import html
import re

import numpy as np
import pytest
from helpers.fabricated import fabricated_mcmc, fabricated_partition_mcmc

from numpyro_rankings import Rankings, to_inference_data
from numpyro_rankings.posterior.partitions import canonical_labels, coclustering
from numpyro_rankings.report import findings_of
from numpyro_rankings.report.answers import concentrations
from numpyro_rankings.report.figures import partition_figures, traces
from numpyro_rankings.report.glossary import glossary
from numpyro_rankings.report.page import page_of
from numpyro_rankings.words import quantity_name


def of_points(sizes, stray, seed=0):
    """Findings on points in groups, a share of whose labels in each draw is of small groups."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    mcmc, rng = fabricated_partition_mcmc(groups), np.random.default_rng(seed)
    z = {name: np.array(x) for name, x in mcmc._states["z"].items()}
    shape = z["assignments"].shape
    others = len(sizes) + rng.integers(0, 12, shape)
    labels = canonical_labels(np.where(rng.random(shape) < stray, others, groups))
    mcmc._states["z"] = z | {"assignments": labels, "num_clusters": labels.max(-1) + 1}
    data = to_inference_data(mcmc, log_likelihood=False)
    return findings_of(data, reference=groups), labels.reshape(-1, len(groups)), groups


def section(partition):
    page = page_of("sections/partition.html", {"partition": partition})
    return " ".join(page.split())


def test_who_goes_with_whom_in_numbers():
    findings, labels, groups = of_points([30, 20], 0.1)
    partition = partition_figures(findings)
    table, pairs = partition.together, coclustering(labels)
    np.fill_diagonal(pairs, np.nan)
    assert table.headings == ["1", "2"] and table.not_shown == 0
    shown = section(partition)
    for a, (heading, shares) in enumerate(table.rows):
        assert heading == f"group {a + 1}"
        row = shown.partition(f"<tr><td>{heading}</td>")[2].partition("</tr>")[0]
        cells = re.findall(r'<td style="background:rgb[(]0 114 178/(.*?)[)]">(.*?)</td>', row)
        assert len(cells) == len(shares) == 2
        for b, (opacity, text) in enumerate(cells):
            mean = np.nanmean(pairs[np.ix_(groups == a, groups == b)])
            assert shares[b] == pytest.approx(mean)
            assert html.unescape(text) == (f"{mean:.0%}" if mean >= 0.005 else "<1%")
            assert float(opacity) == pytest.approx(0.6 * mean, abs=0.01)
    assert partition.any_two == pytest.approx(np.nanmean(pairs))
    assert f"in one group in {partition.any_two:.0%} of the draws" in shown


@pytest.mark.parametrize(("stray", "is_shown"), [(0.2, True), (0.4, False)])
def test_a_map_that_would_show_nothing_is_left_out(stray, is_shown):
    """Because members of each group are together in less than half of the draws."""
    findings, _, _ = of_points([30, 20], stray)
    assert len(findings.held) == 2
    partition = partition_figures(findings)
    assert (partition.firmest >= 0.5) == is_shown
    assert (partition.coclustering is not None) == is_shown
    shown = section(partition)
    assert ("Sharp blocks" in shown) == is_shown
    because = f"two members are together in {partition.firmest:.0%} of the draws only"
    assert (because in shown) == (not is_shown)
    # on paper the table, which says the same, is enough
    assert ('<div class="on-screen"> <figure><img alt="Probability' in shown) == is_shown


def test_no_map_without_groups_that_hold():
    """Nor a table."""
    rng = np.random.default_rng(0)
    mcmc = fabricated_partition_mcmc(np.arange(40) % 4)
    z = {name: np.array(x) for name, x in mcmc._states["z"].items()}
    labels = canonical_labels(rng.integers(0, 8, z["assignments"].shape))
    mcmc._states["z"] = z | {"assignments": labels, "num_clusters": labels.max(-1) + 1}
    findings = findings_of(to_inference_data(mcmc, log_likelihood=False))
    assert findings.held == []
    partition = partition_figures(findings)
    assert partition.coclustering is None and partition.together is None
    assert "would show nothing: no group holds." in section(partition)


def test_many_groups_in_the_table_of_who_goes_with_whom():
    findings, _, _ = of_points([12] * 10, 0.02)
    table = partition_figures(findings).together
    assert table.headings == [*"12345678", "others"] and table.not_shown == 2
    assert [len(cells) for _, cells in table.rows] == [9] * 9
    assert table.rows[-1][0] == "others"


@pytest.mark.parametrize(("num_items", "is_by_group"), [(10, True), (11, False)])
def test_many_stages_of_theta_are_rows(num_items, is_by_group):
    """So that the table is as wide as the screen, whatever the number of stages."""
    rng = np.random.default_rng(0)
    orderings = rng.permuted(np.tile(np.arange(num_items), (60, 1)), axis=1)
    rankings = Rankings.from_orderings(orderings, num_items)
    findings = findings_of(fabricated_mcmc(rankings), rankings, checks=None)
    findings = findings._replace(table=findings.table.assign(ess_bulk=1000.0, ess_tail=1000.0))
    held = findings.held
    assert len(held) == 3 and findings.with_intervals
    stages = [f"stage {j}" for j in range(1, num_items)]
    groups = [f"group {i}" for i in range(1, 4)]
    ((headings, rows),) = concentrations(findings).tables
    assert headings == (stages if is_by_group else groups)
    assert [row[0] for row in rows] == (groups if is_by_group else stages)
    cells = (
        [row[1:] for row in rows] if is_by_group else list(zip(*[r[1:] for r in rows], strict=True))
    )
    for p, of_group in zip(held, cells, strict=True):
        assert [cell.mean for cell in of_group] == [f"{x:.3f}" for x in p.concentration]
    many = concentrations(findings._replace(profiles=held * 4)).tables  # twelve groups
    if is_by_group:
        assert len(many) == 1 and len(many[0][1]) == 12
    else:
        assert [len(headings) for headings, _ in many] == [8, 4]
        assert [len(rows) for _, rows in many] == [len(stages)] * 2
        assert many[1][0][-1] == "group 12" and len(many[1][1][0]) == 5
    view = {"concentrations": concentrations(findings), "findings": findings}
    page = page_of("sections/concentrations.html", view)
    assert all(f"<td>{stage}</td>" in page for stage in stages) != is_by_group
    assert all(f"<th>{stage}</th>" in page for stage in stages) == is_by_group


def test_all_quantities_are_explained():
    """By their names on the page; of those that others have, nothing is said."""
    orderings = np.random.default_rng(0).permuted(np.tile(np.arange(4), (40, 1)), axis=1)
    rankings = Rankings.from_orderings(orderings, 4)
    findings = findings_of(fabricated_mcmc(rankings), rankings, checks=None)
    terms = {term.name for term in glossary(findings)}
    of_sizes = "size of the k-th largest group"
    for name in ("log_joint", "partition_entropy", "kendall_to_reference"):
        assert name in findings.table.index and quantity_name(name) in terms
    assert "largest_sizes[1]" in findings.table.index and of_sizes in terms
    others = {term.name for term in glossary(of_points([30, 20], 0.1)[0])}
    assert quantity_name("kendall_to_reference") not in others and of_sizes in others


def test_traces_have_few_draws_of_each_chain(monkeypatch):
    """However many there are, for more would be a block of colour."""
    from numpyro_rankings import plots

    lengths, plot = [], plots.plot_trace

    def record(*arguments):
        ax = plot(*arguments)
        lengths.append([len(line.get_xdata()) for line in ax.lines])
        return ax

    monkeypatch.setattr(plots, "plot_trace", record)
    groups = np.arange(20) % 2
    mcmc = fabricated_partition_mcmc(groups, chains=4, draws=400)
    data = to_inference_data(mcmc, log_likelihood=False)
    shown = traces(findings_of(data, reference=groups))
    assert len(shown.traces) == len(lengths) > 0
    assert all(numbers == [150] * 4 for numbers in lengths)
