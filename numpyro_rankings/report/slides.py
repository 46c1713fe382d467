"""The figures of a page as files, each in the size of a slide."""

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numpyro_rankings.report.page import SVG_SETTINGS, Figure

_WIDTH, _HEIGHT = 13 + 1 / 3, 7.5  # inches, of a wide slide
_DPI = 144  # of the PNG, 1920 by 1080
_AS_DRAWN = _HEIGHT / 2  # inches that a low figure is drawn in: texts of 10 points become 20
PROGRAM = "numpyro-rankings"  # in the files, by which they are recognised
_HEADINGS = {
    "places-mean": "Mean rank of each item",
    "places-first": "Share of first places",
    "places-top": "Share of the first three places",
    "weights-groups": "Weights of the items, group {}",
    "concentrations": "Concentrations",
    "orders-groups": "Ranks of the items, group {}",
    "partition-coclustering": "Who is in a group with whom",
    "partition-num_groups": "Number of groups",
    "checks": "First places, observed and replicated",
    "chains-traces": "",  # it says itself what it shows
    "path": "Number of components",
}
_FIELDS_WITHOUT_NAME = ("image", "figure")


def save_figures(view: Mapping[str, Any], folder: Path) -> None:
    """Save each figure of a page as SVG and PNG, 13.33 by 7.5 inches.

    :param view: what the page shows; its figures are named by where they are in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in view.items():
        for name, figure in _within(key, value):
            _save(figure.ax, _heading(name), folder / name)


def _within(name: str, value: Any) -> Iterator[tuple[str, Figure]]:
    """Yield the figures in a part of the view, and their names."""
    if isinstance(value, Figure):
        yield name, value
    elif hasattr(value, "_fields"):
        for field, part in zip(value._fields, value, strict=True):
            hides = field in _FIELDS_WITHOUT_NAME
            yield from _within(name if hides else f"{name}-{field}", part)
    elif isinstance(value, list):
        for number, part in enumerate(value, 1):
            yield from _within(f"{name}-{number}", part)
    elif isinstance(value, tuple):  # a figure, and what is said of it
        for part in value:
            yield from _within(name, part)


def _heading(name: str) -> str:
    base, _, number = name.rpartition("-")
    return _HEADINGS.get(name, _HEADINGS.get(base, "").format(number))


def _save(ax: Any, heading: str, path: Path) -> None:
    """Save the figure of **ax** as SVG and as PNG; both show the same."""
    import matplotlib  # takes long to load
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = ax.figure
    height = max(_AS_DRAWN, figure.get_size_inches()[1])
    figure.set_size_inches(height * _WIDTH / _HEIGHT, height)
    if path.name.startswith("places") and (legend := ax.get_legend()):  # there is room for more
        names = [text.get_text() for text in legend.get_texts()]
        place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "frameon": False}
        ax.legend(legend.legend_handles, names, **place, ncols=min(4, len(names)))
    if heading:
        ax.set_title(heading, loc="left", fontsize="large", pad=24 if ax.get_legend() else 8)
    with matplotlib.rc_context(SVG_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        size = {"dpi": (_DPI, _DPI)}
        canvas = FigureCanvasAgg(figure)
        figure.dpi = _DPI * _HEIGHT / height
        canvas.print_png(path.with_suffix(".png"), metadata={"Software": PROGRAM}, pil_kwargs=size)
        stream = io.StringIO()
        metadata = {"Date": None, "Creator": PROGRAM}
        FigureCanvasSVG(figure).print_svg(stream, metadata=metadata)
    # the box is as it was drawn, so that all is larger with it
    width, height = (f"{72 * x:.6g}pt" for x in (_WIDTH, _HEIGHT))
    text = re.sub(
        r'(<svg [^>]*?)width="[^"]*" height="[^"]*"',
        rf'\1width="{width}" height="{height}"',
        stream.getvalue(),
        count=1,
    )
    path.with_suffix(".svg").write_text(text, encoding="utf-8")
