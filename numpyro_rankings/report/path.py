"""What the page shows of the path to the number of groups: a picture, and a tree."""

from typing import NamedTuple

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.page import Figure, embedded_figure
from numpyro_rankings.report.path_in_words import path_in_words
from numpyro_rankings.report.tree import Level, Tree, around, tree_of
from numpyro_rankings.words import plural


class PathShown(NamedTuple):
    """The section on the number of groups; there is no tree of a single one."""

    in_words: str
    figure: Figure
    tree: Tree | None


def path_shown(findings: Findings) -> PathShown | None:
    """Return what the page shows of the path; None if there is none."""
    path = findings.path
    if path is None:
        return None
    figure = embedded_figure(plots.plot_group_path(path))
    return PathShown(path_in_words(path), figure, _tree(findings))


def _tree(findings: Findings) -> Tree | None:
    """Lay out the number of components that was chosen and its neighbours."""
    if findings.reference is None:
        return None
    # the chosen number by the partition of the page, the others by that of their ladders
    profiles, place = findings.profiles, findings.path["labels"].values.astype(int)
    chosen = len(profiles)
    numbers = {p.label: k for k, p in enumerate(profiles)}
    labels = {k + 1: x for k, x in enumerate(place) if x.max() == k}
    labels[chosen] = np.array([numbers[x] for x in findings.reference.labels.tolist()])
    shown = sorted(labels)
    levels = []
    for number in around(shown, shown.index(chosen)):
        sizes = np.bincount(labels[number], minlength=number)
        before = shown[max(shown.index(number) - 1, 0)]
        flow = np.zeros((before, number))
        np.add.at(flow, (labels[before], labels[number]), 1)
        heading = plural(number, "component")
        levels.append(Level(number, heading, sizes.tolist(), flow, [""] * number))
    names = [f"group {k + 1}" for k in range(chosen)]
    return tree_of(levels, chosen, names, findings.total) if len(levels) > 1 else None
