"""The line that shows how far a run is."""

import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from numpyro_rankings._system import clock
from numpyro_rankings.cli.arguments import PROGRAM, for_screen, screen_width
from numpyro_rankings.cli.options import Length, Plan
from numpyro_rankings.words import duration, shorten, span

if TYPE_CHECKING:
    from numpyro_rankings.run import Run
    from numpyro_rankings.run.goals import Check

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
        parts = [] if run.last_check is None else [_check_in_words(run.last_check)]
        seconds = self._seconds_left(run)
        if seconds is not None:
            parts.append(f"about {duration(seconds)} left")
        return ", ".join(parts)

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
        """Return how far the run is; where the line is narrow, the clusters are told as a range."""
        total = f" of {self._until.num_sweeps:,}" if isinstance(self._until, Length) else ""
        parts = [f"{run.num_sweeps:,}{total} sweep{'' if run.num_sweeps == 1 else 's'}"]
        state = self.state(run)
        clusters = []
        if run.num_clusters is not None:
            numbers = [int(k) for k in run.num_clusters]
            span_of_all = span(min(numbers), max(numbers))
            clusters = [f"clusters {x}" for x in ("/".join(map(str, numbers)), span_of_all)]
        lines = [", ".join(filter(None, [*parts, x, state])) for x in (*clusters, "")]
        return next((line for line in lines if len(line) <= width), lines[-1])

    def _seconds_left(self, run: "Run") -> float | None:
        """Guess it from the last check, and of a run of a fixed length from its sweeps."""
        from numpyro_rankings.report.judgements import times_as_long  # loads JAX

        until, elapsed = self._until, clock.now() - self._start
        if isinstance(until, Length):
            return (until.num_sweeps - run.num_sweeps) * run.seconds / run.num_sweeps
        left, check = 60 * until.minutes - elapsed, run.last_check
        if check is None or not math.isfinite(check.ess):
            return None
        r_hat = check.rhat if math.isfinite(check.rhat) else math.nan
        times = max(1.0, times_as_long(r_hat, check.ess, until.rhat, until.ess))
        return max(0.0, min(left, (elapsed - self._before) * (times - 1)))


def _check_in_words(check: "Check") -> str:
    if not math.isfinite(check.ess):
        return "R-hat unknown yet"
    r_hat = f"R-hat {check.rhat:.3f}, " if math.isfinite(check.rhat) else ""
    return f"{r_hat}ESS {check.ess:,.0f}"
