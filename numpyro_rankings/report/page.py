"""The parts that pages are made of: the frame with its style, tables and embedded figures."""

import base64
import html
import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpyro_rankings.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Status(NamedTuple):
    """Why a page is not the last word on its run.

    - **headline** - in a few words.
    - **text** - a sentence or two.
    - **command** - that goes on with the run, None if there is none.
    """

    headline: str
    text: str
    command: str | None = None


def write_page(path: str | Path, title: str, parts: Sequence[str]) -> None:
    """Write a page of the given parts, with the style sheet inside it."""
    Path(path).write_text(page_of(title, parts), encoding="utf-8")


def page_of(title: str, parts: Sequence[str], head: str = "") -> str:
    """Return a page of the given parts, with the style sheet inside it.

    :param head: further elements of the head, as HTML.
    """
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}"
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(parts)}</main>\n</body>\n</html>\n"
    )


def heading(title: str, what: str) -> str:
    """Return the title of the page, and what was clustered."""
    return f"<h1>{html.escape(title)}</h1>\n<p>In {html.escape(what)}.</p>\n"


def status_box(status: Status | None) -> str:
    """Return the box that says why the page is not the last word; nothing for None."""
    if status is None:
        return ""
    go_on = ""
    if status.command is not None:
        go_on = f"<p>To go on: <code>{html.escape(status.command)}</code></p>"
    return (
        f'<section class="status"><strong>{html.escape(_sentence(status.headline))}</strong>'
        f"<p>{html.escape(status.text)}</p>{go_on}</section>\n"
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def with_status(page: str, status: Status) -> str:
    """Return a page with another status."""
    box = re.compile(r'<section class="status">.*?</section>\n', re.DOTALL)
    return box.sub(lambda _: status_box(status), page, count=1)


def details_of_run(details: Mapping[str, str]) -> str:
    """Return the section that describes how the run was made."""
    rows = "".join(
        f"<dt>{html.escape(term)}</dt><dd>"
        + (f"<code>{html.escape(text)}</code>" if term == "command" else html.escape(text))
        + "</dd>"
        for term, text in details.items()
    )
    return f"<h2>How this was made</h2>\n<dl>{rows}</dl>\n" if rows else ""


def section(title: str, text: str) -> str:
    """Return the heading of a section, and a paragraph of HTML below it."""
    return f'<h2>{html.escape(title)}</h2>\n<p class="soft">{text}</p>\n'


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table.

    :param columns: headings, as text.
    :param rows: cells, as HTML.
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def cell_with_interval(mean: float, interval: Iterable[float]) -> str:
    """Return the cell of a mean and its interval."""
    low, high = interval
    return f'{mean:.3f} <span class="soft">({low:.3f}–{high:.3f})</span>'


def not_shown(number: int, noun: str) -> str:
    """Return a remark on what was left out, or nothing if nothing was."""
    verb = "is" if number == 1 else "are"
    return f'<p class="soft">{plural(number, noun)} {verb} not shown.</p>\n' if number > 0 else ""


def grid(figures: Iterable[str]) -> str:
    """Return figures side by side."""
    return f'<div class="grid">{"".join(figures)}</div>\n'


def embedded_figure(ax: "Axes", caption: str = "") -> str:
    """Return the figure of ``ax`` as an image inside the page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure: Any = ax.figure
    canvas, dpi = figure.canvas, figure.dpi
    engine, stream = figure.get_layout_engine(), io.StringIO()
    # With a fixed salt and no date, the same fit gives the same page. Text stays text, because the
    # browser has fonts for characters that matplotlib has not.
    settings: Any = {"svg.hashsalt": "numpyro_rankings", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        try:
            if engine is not None:
                # The first layout sets the ticks, and the second one makes room for them.
                engine.execute(figure)
                engine.execute(figure)
            of_page = FigureCanvasSVG(figure)
            if engine is not None:
                # The third one has the sizes of the texts in this format. To draw the figure each
                # time, as savefig does for a figure with an engine, would take twice the time.
                figure.dpi = of_page.fixed_dpi
                engine.execute(figure)
                figure.dpi = dpi
                figure.set_layout_engine("none")
            of_page.print_svg(stream, metadata={"Date": None})
        finally:  # the figure may be the caller's
            figure.dpi = dpi
            figure.set_canvas(canvas)
            if engine is not None:
                figure.set_layout_engine(engine)
    encoded = base64.b64encode(stream.getvalue().encode()).decode()
    alt = caption or ax.get_title(loc="left")
    note = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure><img alt="{html.escape(alt, quote=True)}" '
        f'src="data:image/svg+xml;base64,{encoded}">{note}</figure>\n'
    )
