"""A page from its template: the frame with its style, and embedded figures."""

import base64
import functools
import io
import re
import warnings
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpyro_rankings import words
from numpyro_rankings.posterior.diagnostics import ESS_GOOD, R_HAT_GOOD
from numpyro_rankings.rankings import Orders, Rankings
from numpyro_rankings.rankings.counts import said_in_words
from numpyro_rankings.words import plural, with_visible_directions

if TYPE_CHECKING:
    import jinja2
    from matplotlib.axes import Axes

# Functions import pandas, Jinja and xarray, which take long to load and are not always needed.

# With a fixed salt and no date, the same fit gives the same page. Text stays text, because the
# browser has fonts for characters that matplotlib has not.
SVG_SETTINGS: Any = {"svg.hashsalt": "numpyro_rankings", "svg.fonttype": "none"}


class Status(NamedTuple):
    """Why a page is not the last word on its run: a headline, and a sentence or two.

    - **command** - that goes on with the run, and **better**, one that may help more.
    - **seconds** - that the sweeps took so far, if it is known; **seconds_left** - to the end of a
      run of a fixed length, of others None.
    - **rhat_goal**, **ess_goal** - at which the run ends by itself.
    """

    headline: str
    text: str
    command: str | None = None
    seconds: float | None = None
    seconds_left: float | None = None
    rhat_goal: float = R_HAT_GOOD
    ess_goal: float = ESS_GOOD
    better: str = ""


class Figure(NamedTuple):
    """An image as a data URI, what it shows, if the page does not say it, and what it is made of.

    The **ax** is that of an image made here, so that it can be saved in other formats.
    """

    source: str
    title: str
    ax: Any = None


def rankings_in_words(rankings: Rankings | Orders) -> str:
    """Say how many rankings a page is about, of how many items, and how many have ties."""
    text = (
        f"{plural(rankings.num_rankings, 'ranking')} ({rankings.unique().num_rows:,} distinct) of "
        f"{plural(rankings.num_items, 'item')}"
    )
    ties = said_in_words(rankings)
    return f"{text}; {ties}" if ties else text


def write_page(path: str | Path, template: str, view: Mapping[str, Any]) -> None:
    """Write a page, as :func:`page_of` returns it."""
    Path(path).write_text(page_of(template, view), encoding="utf-8")


def page_of(template: str, view: Mapping[str, Any], head: str = "") -> str:
    """Return a page, with the style sheet inside it.

    :param template: the name of a file in the folder ``templates``, which escapes all texts.
    :param head: further elements of the head, as HTML.
    """
    from markupsafe import Markup

    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return _render(template, {**view, "head": Markup(head), "style": Markup(style)})


def with_status(page: str, status: Status) -> str:
    """Return a page with another status."""
    box = re.compile(r'<section class="status">.*?</section>\n', re.DOTALL)
    shown = _render("sections/status.html", {"status": status})
    return box.sub(lambda _: shown, page, count=1)


def _render(template: str, view: Mapping[str, Any]) -> str:
    return with_visible_directions(_environment().get_template(template).render(view))


@functools.cache
def _environment() -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        plural=plural,
        size=words.size,
        share=words.share,
        percent=words.percent,
        interval=words.interval,
        sentence=sentence,
        stop=_stop,
    )
    return environment


def _stop(text: str) -> str:
    """Return the text with a full stop at its end, which a name may have."""
    return text if text.endswith(".") else f"{text}."


def sentence(text: str) -> str:
    """Return the text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def embedded_figure(ax: "Axes") -> Figure:
    """Return the figure of ``ax`` as an image inside the page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure: Any = ax.figure
    canvas, dpi = figure.canvas, figure.dpi
    engine, stream = figure.get_layout_engine(), io.StringIO()
    with matplotlib.rc_context(SVG_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        try:
            of_page = FigureCanvasSVG(figure)
            if engine is not None:
                # The first layout sets the ticks, and the second one makes room for them, with the
                # sizes of the texts in this format. To draw the figure each time, as savefig does
                # for a figure with an engine, would take twice the time.
                figure.dpi = of_page.fixed_dpi
                engine.execute(figure)
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
    return Figure(f"data:image/svg+xml;base64,{encoded}", ax.get_title(loc="left"), ax)
