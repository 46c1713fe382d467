"""The page about a file of rankings, before any model is fitted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpyro_rankings.plots import _WIDTH, COLORS, _axes, _rows, _tidy, _whole_numbers
from numpyro_rankings.rankings import Orders, Rankings
from numpyro_rankings.rankings.counts import ItemCounts, item_counts, judges_by_length
from numpyro_rankings.report.page import embedded_figure, rankings_in_words, write_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ITEMS_SHOWN = 30


class Pairs(NamedTuple):
    """What share of those who order two of m items put that of the row first, (m, m), or NaN."""

    items: np.ndarray
    shares: np.ndarray


def write_description(
    path: str | Path,
    rankings: Rankings | Orders,
    pairs: Pairs,
    odd: Sequence[str],
    printed: Sequence[str],
    details: Mapping[str, str],
    title: str,
) -> None:
    """Write the page: what is odd, in sentences, pictures of the lists, and lines as printed."""
    counted = item_counts(rankings)
    write_page(
        path,
        "description.html",
        {
            "title": title,
            "what": rankings_in_words(rankings),
            "status": None,
            "how_found": "",
            "glossary": [],
            "details": details,
            "odd": odd,
            "items": embedded_figure(_plot_items(rankings, counted)),
            "items_left": rankings.num_items - _ITEMS_SHOWN,
            "pairs": embedded_figure(_plot_pairs(rankings, pairs)),
            "lengths": embedded_figure(_plot_lengths(rankings)),
            "printed": "\n".join(printed),
        },
    )


def _plot_items(rankings: Rankings | Orders, counted: ItemCounts) -> "Axes":
    shown, total = counted.order[:_ITEMS_SHOWN], rankings.num_rankings
    ax = _axes(None, _WIDTH, 1.2 + 0.26 * len(shown))
    rows = _rows([rankings.items[k] for k in shown], ax)
    ax.barh(rows, counted.ranked[shown] / total, color=COLORS[4], height=0.75, label="ranked")
    ax.barh(rows, counted.first[shown] / total, color=COLORS[0], height=0.4, label="first")
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the judges", loc="right")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=2)
    return _tidy(ax, "x")


def _plot_pairs(rankings: Rankings | Orders, pairs: Pairs) -> "Axes":
    size = len(pairs.items)
    shares = np.where(np.eye(size, dtype=bool), np.nan, pairs.shares)
    ax = _axes(None, 2.6 + 0.26 * size, 1.6 + 0.26 * size)
    image = ax.imshow(shares, cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
    _rows([f"{k} {rankings.items[item]}" for k, item in enumerate(pairs.items, 1)], ax)
    ax.set_xticks(np.arange(size), [str(k) for k in range(1, size + 1)])
    ax.figure.colorbar(image, ax=ax, label="share", shrink=0.85)
    return ax


def _plot_lengths(rankings: Rankings | Orders) -> "Axes":
    lengths, judges = judges_by_length(rankings)
    ax = _axes(None, _WIDTH, 2.8)
    ax.bar(lengths, judges, color=COLORS[0], width=0.8)
    ax.set_xlim(lengths[0] - 1.5, lengths[-1] + 1.5)
    ax.set_ylim(bottom=0)
    _whole_numbers(ax.xaxis)
    ax.set_xlabel("length of the list")
    ax.set_ylabel("judges")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    return _tidy(ax, "y")
