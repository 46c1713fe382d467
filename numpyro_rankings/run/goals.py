"""When a run checks its draws, and whether they suffice."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from numpyro_rankings._system import clock
from numpyro_rankings.run.settings import check_number

if TYPE_CHECKING:
    import pandas as pd

_SHARE = 0.1  # checks take at most this share of the time


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


class CheckSchedule:
    """The checks of a run, for which at most a tenth of the time is taken.

    - **last** - the latest, None before the first.
    """

    def __init__(self) -> None:
        self.last: Check | None = None
        self._num_draws = 0
        self._at, self._took = clock.now(), 0.0

    def is_due(self) -> bool:
        """Whether it is time for the next."""
        return clock.now() - self._at >= self._took / _SHARE

    def is_of(self, num_draws: int) -> bool:
        """Whether the latest is of all draws that there are."""
        return self.last is not None and self._num_draws == num_draws

    def make(self, tabulate: "Callable[[], pd.DataFrame]", num_draws: int) -> Check:
        """Check all draws that there are."""
        start = clock.now()
        self.last = Check.of(tabulate())
        self._at, self._num_draws = clock.now(), num_draws
        self._took = self._at - start
        return self.last


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
