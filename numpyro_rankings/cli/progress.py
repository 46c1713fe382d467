"""The line that shows how far a run is."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from numpyro_rankings._system import clock
from numpyro_rankings.cli.arguments import PROGRAM, for_screen, screen_width
from numpyro_rankings.cli.options import Length, Plan
from numpyro_rankings.words import shorten

if TYPE_CHECKING:
    from numpyro_rankings.run import Run

# Functions import what loads JAX, which takes long.

_SECONDS_BETWEEN_LINES = 10.0  # without a terminal


def say(what: str, is_shown: bool = True) -> None:
    """Say on stderr what is being done."""
    if is_shown:
        print(for_screen(f"{PROGRAM}: {what}", sys.stderr), file=sys.stderr, flush=True)


class Progress:
    """Shows the state of a run on stderr: a live line, or a line every ten seconds elsewhere."""

    def __init__(self, plan: Plan, is_shown: bool, began: float | None = None) -> None:
        # began: when the time of the run began, if before its chains
        self._until, self._is_shown = plan.until, is_shown
        self._is_live = sys.stderr.isatty()
        self._last = clock.now()
        self._start = self._last if began is None else began
        self._before = self._last - self._start
        self._width = 0

    def say(self, what: str) -> None:
        """Show what is being done."""
        if self._is_shown and self._is_live:
            self._replace(f"{PROGRAM}: {what} …")
        else:
            say(what, self._is_shown)

    def tell(self, lines: Iterable[str]) -> None:
        """Print lines that stay."""
        self.end()
        say("\n".join(lines), self._is_shown)

    def minutes(self) -> float:
        """Return the time since the start of the run, that of its chains included."""
        return (clock.now() - self._start) / 60

    def show(self, run: "Run") -> None:
        """Show how far the run is."""
        if not self._is_shown:
            return
        run.check_if_due()  # until() has just made one, but not extend()
        time = clock.now()
        if self._is_live:
            self._replace(self._describe(run, screen_width() - 1))
        elif time - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time
            say(self._describe(run))

    def state(self, run: "Run") -> str:
        """Return R-hat, ESS and the time that is left in words, as far as they are known."""
        from numpyro_rankings.run.progress import in_words

        return in_words(run.last_check, self._seconds_left(run))

    def end(self) -> None:
        """Remove the live line."""
        if self._width:
            self._replace("")
            self._width = 0

    def _replace(self, line: str) -> None:
        line = shorten(line, screen_width() - 1)  # a longer one would stay
        print(f"\r{line:<{self._width}}", end="\r", file=sys.stderr, flush=True)
        self._width = len(line)

    def _describe(self, run: "Run", width: int = 1000) -> str:
        from numpyro_rankings.run.progress import Figures

        total = self._until.num_sweeps if isinstance(self._until, Length) else None
        return Figures.of(run, total, self._seconds_left(run)).line(width)

    def _seconds_left(self, run: "Run") -> float | None:
        """Guess it from the last check, and of a run of a fixed length from its sweeps."""
        from numpyro_rankings.run.progress import seconds_to_goals

        until, elapsed = self._until, clock.now() - self._start
        if isinstance(until, Length):
            return (until.num_sweeps - run.num_sweeps) * run.seconds / run.num_sweeps
        left, goals = 60 * until.minutes - elapsed, (until.rhat, until.ess)
        return seconds_to_goals(run.last_check, goals, elapsed - self._before, left)
