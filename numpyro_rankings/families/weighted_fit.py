"""How components are fitted to weighted rankings, which is the M-step of a mixture.

It is in NumPy: to compile it would take longer than a few components of a few choices do. Starts of
chains, which go through all rankings some thousand times, compile theirs, see ``fit_lists`` of
``MALLOWS`` and ``times_with_prior`` of ``PLACKETT_LUCE``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.families.choice_cells import ChoiceCells

Parameters = tuple[np.ndarray, ...]


class FittedComponent(NamedTuple):
    """What one component says.

    - **ordering** - the items, best first, int32 (n,).
    - **agreement** - 0 if rankings are at random, 1 if all are alike.
    - **sites** - its parameters, by the names of the sites.
    """

    ordering: np.ndarray
    agreement: float
    sites: Mapping[str, Any]


class Groups(ABC):
    """Groups of rankings, each with a component, which are merged two by two.

    - **parameters** - of the components.
    - **sizes** - rankings of each group, (C,).
    - **candidates** - whether group c may be added to d, bool (C, C).
    """

    parameters: Parameters
    sizes: np.ndarray
    candidates: np.ndarray

    @abstractmethod
    def losses(self, c: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return the log likelihood that is lost if groups c are added to d, (pairs,)."""

    @abstractmethod
    def join(self, c: int, d: int, turn: int) -> None:
        """Add group c to d, and fit the component of d."""

    def merge(self) -> Iterator[tuple[Parameters, np.ndarray]]:
        """Merge two groups after the other, each time the pair whose union costs least.

        :return: the parameters and the sizes of C groups, C - 1, and so on down to 1.
        """
        number = len(self.sizes)
        alive, losses = np.ones(number, bool), np.full((number, number), np.inf)
        changed = alive
        for left in range(number, 0, -1):
            pairs = self.candidates & alive & alive[:, None] & (changed | changed[:, None])
            losses[pairs] = self.losses(*np.nonzero(pairs))
            yield tuple(x[alive] for x in self.parameters), self.sizes[alive]
            if left > 1:
                c, d = np.unravel_index(np.argmin(losses), losses.shape)
                self.join(int(c), int(d), left)
                alive[c] = False
                losses[c], losses[:, c] = np.inf, np.inf
                changed = np.arange(number) == d


class WeightedFit(ABC):
    """Components of a likelihood, and how they are fitted to weighted rankings.

    A component has one pseudo-ranking besides, so that its parameters are finite.

    - **cells** - the choices that the rankings make.
    """

    cells: ChoiceCells

    @abstractmethod
    def parameters_of(self, sites: Mapping[str, np.ndarray]) -> Parameters:
        """Return the parameters of components, each with a leading axis K, from sites."""

    @abstractmethod
    def log_choices(self, parameters: Parameters) -> np.ndarray:
        """Return the log probability of each cell in each component, (cells, K)."""

    @abstractmethod
    def log_prior(self, parameters: Parameters) -> float:
        """Return the log of what the pseudo-rankings add to the likelihood of the components."""

    @abstractmethod
    def fit(
        self, parameters: Parameters, amounts: np.ndarray, turn: int, thorough: bool = False
    ) -> Parameters:
        """Improve the parameters, given how often each component makes each choice, (cells, K).

        :param turn: number of the round, which says what is tried.
        :param thorough: whether more may be tried, which takes longer.
        """

    @abstractmethod
    def groups(self, parameters: Parameters, amounts: np.ndarray, sizes: np.ndarray) -> Groups:
        """Return groups to merge.

        :param amounts: how often each group makes each choice, (cells, C).
        :param sizes: rankings of each group, (C,).
        """

    @abstractmethod
    def describe(self, parameters: Parameters) -> list[FittedComponent]:
        """Return what each component says."""
