"""What a run that goes on and one that is read from its store have in common."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np

from numpyro_rankings.posterior.diagnostics import CHANGES, Verdict, with_care
from numpyro_rankings.run.goals import Check, Diagnosed
from numpyro_rankings.run.monitor import Monitor
from numpyro_rankings.run.same_run import sentences_of
from numpyro_rankings.run.settings import at_least, is_number
from numpyro_rankings.words import plural

if TYPE_CHECKING:
    import pandas as pd

LEAST_DRAWS = 4  # R-hat needs so many of each chain
READ_AT_ONCE = 500  # diagnostics read so many draws of each chain at a time
BURN_IN = 0.5  # largest share of the draws that is left out by default
_SHORTER = 0.125, 0.25  # shares that suffice where the chains then agree
_AGREE, _ENOUGH = 1.01, 50  # R-hat up to which they do, if there is so large an ESS of each

BurnIn = float | Literal["auto"]
P = ParamSpec("P")
T = TypeVar("T")


def at_one_moment(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Let a method see the draws as they are at one moment, while another thread makes more."""

    @wraps(method)
    def locked(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._look:
            return method(self, *args, **kwargs)

    return locked


class Results(ABC):
    """The draws of a run after its burn-in, and what is said of them."""

    _burn_in: BurnIn
    _monitor: Monitor
    _draws: Any  # in memory or in a store
    _doing = ""  # what it does meanwhile
    _kernel: str  # the name of its class, empty if it is not known
    _num_chains: int
    _num_sweeps: int
    _seconds: float
    _remedy = ""  # what to do if there are too few draws
    _look: AbstractContextManager = nullcontext()
    _monitors_all = True  # or no draws of a burn-in that is given
    _diagnosed: Diagnosed | None = None

    @abstractmethod
    def _recorded_changes(self) -> list[dict[str, Any]]:
        """Return what was changed in a run that was resumed with ``check=False``."""

    def __repr__(self) -> str:
        """Say how far it is, with R-hat and ESS if they are known; nothing is computed."""
        parts = [self._kernel] if self._kernel else []
        known, number = self._diagnosed, self.num_draws
        parts += [plural(self.num_chains, "chain"), f"{plural(number, 'draw')} each"]
        if number == 0 and self.num_sweeps:
            parts[-1] = f"{plural(self.num_sweeps, 'sweep')} of warm-up"
        elif self._burn_in == "auto" and (known is None or known.num_draws != number):
            parts[-1] += " with the burn-in" if number else ""
        elif (first := self.first_draw) > 0:
            parts[-1] = f"{plural(number - first, 'draw')} each after a burn-in of {first:,}"
        if known is not None:
            check = Check.of(known.table)
            at = "" if known.num_draws == number else f" at draw {known.num_draws:,}"
            figures = {"R-hat": (check.rhat, ".3f"), "ESS": (check.ess, ",.0f")}
            found = {k: format(x, spec) for k, (x, spec) in figures.items() if math.isfinite(x)}
            parts += [f"{k} {x}{at}" for k, x in found.items()]
        if (divergent := self._monitor.num_divergent) is not None and divergent.any():
            parts.append(plural(int(divergent.sum()), "divergent transition"))
        parts += [self._doing] if self._doing else []
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def num_sweeps(self) -> int:
        """Number of sweeps of each chain, those of the warm-up included."""
        return self._num_sweeps

    @property
    def num_draws(self) -> int:
        """Number of draws of each chain, those of the burn-in included."""
        return self._draws.num_draws

    @property
    def seconds(self) -> float:
        """Seconds that the sweeps took, without compilation."""
        return self._seconds

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return self._num_chains

    @property
    def changes(self) -> list[str]:
        """What was changed in a run that was resumed with ``check=False``, in sentences.

        The draws before and after a change are of different models, or of different kernels.

        :raises StoreError: if the store has this, and it is damaged.
        """
        return sentences_of(self._recorded_changes())

    @at_one_moment
    def diagnostics(self) -> "pd.DataFrame":
        """Tabulate R-hat and ESS of the draws after the burn-in.

        From 16,384 draws of a chain on, only every second is used, then every fourth, and so on.

        :return: as :func:`~numpyro_rankings.diagnostics_table`.
        :raises ValueError: if there are too few draws.
        """
        self._check_draws()
        return self._diagnose().table.copy()

    @property
    @at_one_moment
    def first_draw(self) -> int:
        """Index of the first draw that is not in the burn-in."""
        return int(self._share_left_out() * self.num_draws)

    @property
    @at_one_moment
    def verdict(self) -> Verdict:
        """Whether the draws after the burn-in can be relied on, as the reports say it."""
        table = self.diagnostics()
        return with_care(self._monitor.verdict(self._share_monitored(), table), self.changes)

    def _share_left_out(self) -> float:
        """Return the share of the draws that is the burn-in."""
        if self._burn_in != "auto":
            return self._burn_in
        if self.num_draws * (1 - BURN_IN) < LEAST_DRAWS:
            return BURN_IN
        try:
            return self._diagnose().burn_in
        except ValueError:  # there is nothing to be diagnosed
            return BURN_IN

    def _share_monitored(self) -> float:
        """Return the share of the draws of the monitor that is the burn-in."""
        return self._share_left_out() if self._monitors_all or self._burn_in == "auto" else 0.0

    def _diagnose(self) -> Diagnosed:
        """Tabulate R-hat and ESS of the draws after the burn-in.

        A burn-in that is not given is an eighth or a quarter of the draws if R-hat of what is then
        kept shows that the chains agree, and its ESS is large enough to tell; otherwise half of
        them. R-hat is split: it also tells whether the first of these draws are like the last.
        """
        diagnosed = self._diagnosed
        if diagnosed is None or diagnosed.num_draws != self.num_draws:
            diagnosed = self._diagnosed = self._diagnose_anew()
        return diagnosed

    def _diagnose_anew(self, step: int = 1) -> Diagnosed:
        monitor, num_draws = self._monitor, self.num_draws
        if self._burn_in != "auto":
            return Diagnosed(num_draws, self._burn_in, monitor.table(self._share_monitored(), step))
        for share in _SHORTER:
            if monitor.largest_r_hat(share, _AGREE, step) <= _AGREE:
                table = monitor.table(share, step)
                if Check.of(table).ess >= _ENOUGH * self.num_chains:
                    return Diagnosed(num_draws, share, table)
        return Diagnosed(num_draws, BURN_IN, monitor.table(BURN_IN, step))

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


def check_burn_in(value: Any) -> BurnIn:
    """Return the burn-in as it is asked for, or raise ValueError."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    if not (is_number(value) and 0 <= value < 1):
        raise ValueError(f'burn_in must be "auto" or a share from 0 to less than 1, got {value!r}')
    return float(value)


def largest_burn_in(burn_in: BurnIn) -> float:
    """Return the largest share that may be left out."""
    return BURN_IN if burn_in == "auto" else burn_in
