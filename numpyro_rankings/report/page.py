"""The page of a report: its frame, its style, its figures."""

import base64
import html
import io
import warnings
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_page(path: str | Path, title: str, parts: Sequence[str]) -> None:
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(parts)}</main>\n</body>\n</html>\n"
    )
    Path(path).write_text(page, encoding="utf-8")


def heading(title: str, what: str) -> str:
    return f"<h1>{html.escape(title)}</h1>\n<p>In {html.escape(what)}.</p>\n"


def details_of_run(details: Mapping[str, str]) -> str:
    rows = "".join(
        f"<dt>{html.escape(term)}</dt><dd>"
        + (f"<code>{html.escape(text)}</code>" if term == "command" else html.escape(text))
        + "</dd>"
        for term, text in details.items()
    )
    return f"<h2>How this was made</h2>\n<dl>{rows}</dl>\n" if rows else ""


def embedded_figure(ax: "Axes", caption: str = "") -> str:
    """The figure of ``ax`` as an image inside the page."""
    import matplotlib

    figure: Any = ax.figure
    stream = io.StringIO()
    # A fixed salt and no date: the same fit gives the same page. Text stays text, which the browser
    # has fonts for where matplotlib has not.
    settings: Any = {"svg.hashsalt": "numpyro_rankings", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        for _ in range(
            2
        ):  # ticks, and with them the room for them, are settled by the layout before
            figure.draw_without_rendering()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    encoded = base64.b64encode(stream.getvalue().encode()).decode()
    alt = caption or ax.get_title(loc="left")
    note = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure><img alt="{html.escape(alt, quote=True)}" '
        f'src="data:image/svg+xml;base64,{encoded}">{note}</figure>\n'
    )
