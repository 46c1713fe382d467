"""When a run checks its draws, and whether they suffice."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from numpyro_rankings._system import clock
from numpyro_rankings.run.settings import check_number

if TYPE_CHECKING:
    import pandas as pd

_TIMES = 9.0  # sweeps take as many times as long as checks, which are a tenth of the time
_GROWTH = 1.5  # from the draws of one check to those of the next, if it cannot be of all


class Check(NamedTuple):
    """The result of a check whether the draws suffice.

    :param rhat: largest R-hat; NaN for one chain.
    :param ess: least effective sample size.
    :param num_moving: number of quantities that are not constant, which alone count.
    """

    rhat: float
    ess: float
    num_moving: int

    @classmethod
    def of(cls, table: "pd.DataFrame") -> "Check":
        """Return the result of a check of these diagnostics."""
        moving = table[table["note"] != "constant"]
        return cls(
            float(moving["r_hat"].max(skipna=False)),
            float(moving[["ess_bulk", "ess_tail"]].min(axis=None, skipna=False)),
            len(moving),
        )

    def suffices(self, rhat: float, ess: float, num_chains: int) -> bool:
        """Whether the goals are reached."""
        if self.num_moving == 0:
            return True
        return self.ess >= ess and (num_chains == 1 or self.rhat <= rhat)


class Diagnosed(NamedTuple):
    """Diagnostics of so many draws: the share of them that was left out, and the table."""

    num_draws: int
    burn_in: float
    table: "pd.DataFrame"


class CheckSchedule:
    """The checks of a run, for which at most a tenth of the time is taken.

    How long the next one takes is guessed from the latest. Where that is too long for all draws,
    it is of every second, third, …, if these are half as many again as those of the latest.

    - **last** - the latest, None before the first.
    - **burn_in**, **latest_step** - the share of the draws that it has left out, and the distance
      of those that it has used.
    """

    def __init__(self) -> None:
        self.last: Check | None = None
        self.burn_in, self._took = 0.0, 0.0
        self._num_draws, self._num_used, self.latest_step = 0, 0, 1
        self._paid = 0.0  # so many seconds of sweeps have paid for checks

    def step(self, num_draws: int, seconds: float) -> int:
        """Return the distance of the draws of which a check is due, 0 if none is.

        :param num_draws: number of all draws of each chain.
        :param seconds: that all sweeps have taken.
        """
        if self.last is not None and num_draws == self._num_draws:
            return 0
        left = max(0.0, seconds - self._paid) / _TIMES
        if self._took * num_draws <= left * self._num_used:
            return 1  # also where it takes no time, and the first one
        if left == 0:
            return 0
        step = math.ceil(self._took * num_draws / (left * self._num_used))
        return step if num_draws // step >= _GROWTH * self._num_used else 0

    def is_of(self, num_draws: int) -> bool:
        """Whether the latest is of all draws that there are."""
        return self.last is not None and num_draws == self._num_draws and self.latest_step == 1

    def make(
        self,
        diagnose: "Callable[[], Diagnosed]",
        num_draws: int,
        seconds: float,
        step: int = 1,
        is_known: bool = False,
    ) -> Check:
        """Check the draws that there are, or every second, third, … of them.

        What was known before, which takes no time, says nothing of the time of the next one.
        """
        start = clock.now()
        diagnosed = diagnose()
        self.last, self.burn_in = Check.of(diagnosed.table), diagnosed.burn_in
        self._num_draws, self.latest_step = num_draws, step
        if is_known:
            return self.last
        self._took, self._num_used = clock.now() - start, num_draws // step
        # what is not taken is not saved up: it would be spent on checks in a row
        self._paid = max(seconds, self._paid + _TIMES * self._took)
        return self.last


def times_as_long(r_hat: float, ess: float, rhat_goal: float, ess_goal: float) -> float:
    """Guess how many times as long as so far a run has to be until its goals are reached.

    In a run whose chains visit the same places, ESS and the reciprocal of R-hat - 1 grow like the
    number of draws. So it has to be as many times as long as so far as the ESS has to grow, or
    R-hat - 1 has to shrink, whichever is more. While a run goes on this is the guess, and at most
    the minutes that it still has; at its end a report tells it only where it can be relied
    on, because somebody decides by it whether to go on. It is NaN if it cannot be said.
    """
    times = ess_goal / ess if ess > 0 else math.nan
    return times if math.isnan(r_hat) else max(times, (r_hat - 1) / (rhat_goal - 1))


def check_goals(rhat: float, ess: float, minutes: float, most: float) -> None:
    """Refuse goals that are out of range."""
    for name, value in (("rhat", rhat), ("ess", ess), ("minutes", minutes)):
        check_number(name, value)
    if not rhat > 1 or not ess > 0 or not minutes >= 0:
        raise ValueError("rhat must be greater than 1, ess positive and minutes not negative")
    if ess > most:
        raise ValueError(
            f"ess must be at most {most:.0f}, because diagnostics use some of the draws: use "
            "more chains, or extend()"
        )
