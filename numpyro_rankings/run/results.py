"""What a run that goes on and one that is read from its store have in common."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from numpyro_rankings.diagnostics import CHANGES, Verdict, with_care
from numpyro_rankings.run.monitor import Monitor
from numpyro_rankings.run.settings import at_least

if TYPE_CHECKING:
    import pandas as pd

LEAST_DRAWS = 4  # of each chain, for R-hat
READ_AT_ONCE = 500  # draws of each chain, for the diagnostics


class Results(ABC):
    """The draws of a run after its burn-in, and what is said of them."""

    _burn_in: float
    _monitor: Monitor
    _unmonitored = 0.0  # share of the draws that the monitor has, and leaves out
    _remedy = ""  # where there are too few draws

    @property
    @abstractmethod
    def num_draws(self) -> int:
        """Number of draws of each chain, those of the burn-in included."""

    @property
    @abstractmethod
    def changes(self) -> list[str]:
        """What was changed in a run that was resumed with ``check=False``, in sentences."""

    @abstractmethod
    def diagnostics(self) -> "pd.DataFrame":
        """Tabulate R-hat and ESS of the draws after the burn-in."""

    @property
    def first_draw(self) -> int:
        """Index of the first draw that is not in the burn-in."""
        return int(self._burn_in * self.num_draws)

    @property
    def verdict(self) -> Verdict:
        """Whether the draws after the burn-in can be relied on, as the reports say it."""
        found = self._monitor.verdict(self._unmonitored, self.diagnostics())
        return with_care(found, self.changes)

    @property
    def _num_kept(self) -> int:
        """Number of draws of each chain after the burn-in."""
        return self.num_draws - self.first_draw

    def _step(self, max_draws: int | None) -> int:
        """Return the distance of the draws that are returned."""
        if max_draws is None:
            return 1
        return max(1, -(-self._num_kept // at_least("max_draws", max_draws, 1)))

    def _check_draws(self, least: int = LEAST_DRAWS) -> None:
        if self._num_kept < least:
            raise ValueError(
                f"there are {self._num_kept} draws of each chain after the burn-in, but at least "
                f"{least} are needed{self._remedy}"
            )

    def _with_changes(self, data: Any) -> Any:
        """Note what was changed in the draws for ArviZ."""
        if self.changes:
            data["posterior"].attrs[CHANGES] = self.changes
        return data


def by_chain_or_not(samples: dict[str, np.ndarray], group_by_chain: bool) -> dict[str, np.ndarray]:
    """Return samples (chains, draws, …), or (chains · draws, …)."""
    if group_by_chain:
        return samples
    return {name: x.reshape(-1, *x.shape[2:]) for name, x in samples.items()}
