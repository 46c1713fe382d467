"""How far a run is: its figures, and where they are shown while it goes on."""

import math
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpyro_rankings._system import clock
from numpyro_rankings.run.goals import Check, times_as_long
from numpyro_rankings.words import duration, plural, shorten, span, value

_SECONDS_BETWEEN = 0.5  # at least, from one showing to the next
_ROWS = 16  # chains that have a row of their own


@dataclass(frozen=True)
class Figures:
    """How far a run is. A notebook shows it as a table, anything else as a line.

    - **num_sweeps**, **num_draws**, **num_chains** - of each chain, and of the run.
    - **check** - the latest, None before the first.
    - **clusters**, **divergent** - the numbers of clusters in the last draws, and of divergent
      transitions, of each chain; None of kernels that have none.
    - **speed** - sweeps of each chain per second, NaN before the first.
    - **total** - number of sweeps that it will have; None if that is not known.
    - **seconds_left** - a guess; None without one.
    """

    num_sweeps: int
    num_draws: int
    num_chains: int
    check: Check | None
    clusters: Sequence[int] | None
    divergent: Sequence[int] | None
    speed: float
    total: int | None = None
    seconds_left: float | None = None

    @classmethod
    def of(cls, run: Any, total: int | None = None, seconds_left: float | None = None) -> "Figures":
        """Return those of a :class:`Run` so far."""
        clusters, divergent = run.num_clusters, run.num_divergent
        return cls(
            run.num_sweeps,
            run.num_draws,
            run.num_chains,
            run.last_check,
            None if clusters is None else [int(k) for k in clusters],
            None if divergent is None else [int(k) for k in divergent],
            run.num_sweeps / run.seconds if run.seconds > 0 else math.nan,
            total,
            seconds_left,
        )

    def state(self) -> str:
        """Return R-hat, ESS and the time that is left in words, as far as they are known."""
        return in_words(self.check, self.seconds_left)

    def line(self, width: int = 1000) -> str:
        """Return them in a line; where it is narrow, the clusters are told as a range."""
        sweeps = plural(self.num_sweeps, "sweep")
        parts = [sweeps if self.total is None else f"{self.num_sweeps:,} of {self.total:,} sweeps"]
        clusters = []
        if self.clusters is not None:
            span_of_all = span(min(self.clusters), max(self.clusters))
            clusters = [f"clusters {x}" for x in ("/".join(map(str, self.clusters)), span_of_all)]
        divergent = sum(self.divergent or ())
        end = [f"{divergent:,} divergent"] if divergent else []
        lines = [", ".join(filter(None, [*parts, x, self.state(), *end])) for x in (*clusters, "")]
        return next((line for line in lines if len(line) <= width), lines[-1])

    def _repr_html_(self) -> str:
        """Return the table: a row for each chain, and one for all of them together."""
        names = ["chain", "draws", "clusters", "divergent", "R-hat", "ESS", "sweeps/s", "left"]
        nothing: list[Any] = [None] * self.num_chains
        clusters, divergent = self.clusters or nothing, self.divergent or nothing
        numbers = range(1, self.num_chains + 1)
        rows: list[list[Any]] = [
            [k, f"{self.num_draws:,}", c, d, None, None, None, None]
            for k, c, d in zip(numbers, clusters, divergent, strict=True)
        ]
        check = self.check or Check(math.nan, math.nan, 0)
        left = None if self.seconds_left is None else duration(self.seconds_left)
        r_hat, ess = (
            format(x, how) if math.isfinite(x) else None
            for x, how in ((check.rhat, ".3f"), (check.ess, ",.0f"))
        )
        speed = value(self.speed) if math.isfinite(self.speed) else None
        of_all = span(min(self.clusters), max(self.clusters)) if self.clusters else None
        sum_of_all = f"{sum(self.divergent):,}" if self.divergent else None
        draws = f"{self.num_draws * self.num_chains:,}"
        rows = [*rows[:_ROWS], ["all", draws, of_all, sum_of_all, r_hat, ess, speed, left]]
        shown = [k for k in range(len(names)) if any(row[k] is not None for row in rows)]

        def row_of(cells: Sequence[Any], tag: str) -> str:
            words = ("" if cells[k] is None else cells[k] for k in shown)
            return "<tr>" + "".join(f"<{tag}>{x}</{tag}>" for x in words) + "</tr>"

        return "\n".join(
            ["<table>", row_of(names, "th"), *(row_of(row, "td") for row in rows), "</table>"]
        )

    def __repr__(self) -> str:
        return self.line()


def in_words(check: Check | None, seconds_left: float | None) -> str:
    """Return R-hat, ESS and the time that is left in words, as far as they are known."""
    parts = []
    if check is not None and math.isfinite(check.rhat) and math.isfinite(check.ess):
        parts.append(f"R-hat {check.rhat:.3f}")
    if check is not None:
        known = math.isfinite(check.ess)
        parts.append(f"ESS {check.ess:,.0f}" if known else "R-hat unknown yet")
    if seconds_left is not None:
        parts.append(f"about {duration(seconds_left)} left")
    return ", ".join(parts)


class Display:
    """Shows the figures of a run where somebody looks: a table in a notebook, a line in a terminal.

    Both are renewed, and stay with the last figures. Anywhere else nothing is shown.

    :param is_wanted: whether they are to be shown at all.
    """

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._handle: Any = None
        self._last, self._width = -math.inf, 0

    def begin(self, figures: Callable[[], Figures]) -> None:
        """Begin a table in the cell of a notebook that is executed, if there is none yet."""
        if self._is_wanted and self._handle is None and _is_notebook():
            from IPython.display import display  # which is loaded, but is no dependency

            self._handle = display(figures(), display_id=True)

    def is_due(self) -> bool:
        """Whether to show new figures."""
        return self._is_on() and clock.now() - self._last >= _SECONDS_BETWEEN

    def show(self, figures: Figures) -> None:
        """Show figures in the place of those before."""
        self._last = clock.now()
        if self._handle is not None:
            self._handle.update(figures)
            return
        width = shutil.get_terminal_size().columns - 1
        line = shorten(figures.line(width), width)
        print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def end(self, figures: Callable[[], Figures]) -> None:
        """Leave the last figures where they are, without the time that is left."""
        if self._is_on():
            self.show(replace(figures(), seconds_left=None))
            if self._handle is None:
                print(file=sys.stderr, flush=True)
        self._handle, self._last, self._width = None, -math.inf, 0

    def _is_on(self) -> bool:
        if not self._is_wanted or self._handle is not None:
            return self._is_wanted
        # at a prompt, a line of another thread would get into what is typed
        is_main = threading.current_thread() is threading.main_thread()
        return sys.stderr.isatty() and (is_main or not hasattr(sys, "ps1"))


def _is_notebook() -> bool:
    """Whether this is a kernel of IPython, which shows what is displayed as HTML."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def seconds_to_goals(
    check: Check | None, goals: tuple[float, float], took: float, left: float
) -> float | None:
    """Guess how long a run goes on until R-hat and ESS reach its goals, None if it cannot be said.

    :param took: seconds that the draws of the latest check took.
    :param left: seconds that the run has at most.
    """
    if check is None or not math.isfinite(check.ess):
        return None
    r_hat = check.rhat if math.isfinite(check.rhat) else math.nan
    return max(0.0, min(left, took * (max(1.0, times_as_long(r_hat, check.ess, *goals)) - 1)))
