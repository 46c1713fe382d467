"""The quantities of a run that its diagnostics need, and nothing else of its draws."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings.diagnostics import RunFacts, Verdict, judge, scalars_of, table_of_scalars
from numpyro_rankings.infer.base import GibbsKernel, find_rankings
from numpyro_rankings.infer.ddcrp.base import LinkGibbs
from numpyro_rankings.infer.partition.base import PartitionKernel
from numpyro_rankings.quantities import as_shown, label_free_quantities
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.summaries import borda_ordering

if TYPE_CHECKING:
    import pandas as pd

Quantities = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


class Taken(NamedTuple):
    """Of some draws of each chain, their number, and what is kept of them."""

    num_draws: int
    quantities: dict[str, np.ndarray] | None = None
    stats: dict[str, np.ndarray] | None = None


class Facts(NamedTuple):
    """What diagnostics need to know of the kernel and the data of a run.

    - **is_label_free** - whether the kernel is of this package, whose quantities are known.
    - **num_components** - of the kernel.
    - **label_sites** - of the blocks that draw labels, in a kernel of NumPyro.
    - **rankings** - that were fitted, None for a kernel that has none.
    """

    is_label_free: bool
    num_components: int | None = None
    label_sites: tuple[str, ...] = ()
    rankings: Rankings | None = None

    @classmethod
    def of(cls, kernel: MCMCKernel, args: tuple, kwargs: dict) -> "Facts":
        """Return those of a kernel on its data."""
        is_of_package = isinstance(kernel, GibbsKernel)
        has_rankings = is_of_package and not isinstance(kernel, PartitionKernel | LinkGibbs)
        blocks = [block for block, _ in getattr(kernel, "blocks", ())]
        num_components = getattr(kernel, "num_components", None)
        return cls(
            is_of_package,
            None if num_components is None else int(num_components),
            tuple(sorted({str(x.label_site) for x in blocks if isinstance(x, GibbsKernel)})),
            find_rankings(args, kwargs) if has_rankings else None,
        )

    def as_json(self, sites: Collection[str]) -> dict[str, Any]:
        """Return them for the store, where one ranking of all items stands for the data.

        :param sites: names of the sites of the kernel.
        """
        if (rankings := self.rankings) is None:
            return self._asdict()
        listed = np.unique(rankings.orderings)
        listed = listed[listed >= 0]
        if "center" in sites:  # whose distance from the Borda order is diagnosed
            listed = borda_ordering(rankings)[: len(listed)]
        about = {
            "items": [str(name) for name in rankings.items],
            "ordering": listed.tolist(),
            "count": rankings.num_rankings,
        }
        return {**self._asdict(), "rankings": about}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Facts":
        """Return those that a store has, with rankings of the same items, Borda order and number.

        :raises KeyError, TypeError, ValueError: if there are none.
        """
        rankings = None
        if (about := found["rankings"]) is not None:
            items, count = about["items"], [about["count"]]
            rankings = Rankings.from_orderings(
                [about["ordering"]], num_items=len(items), items=items, counts=count
            )
        label_sites = tuple(found["label_sites"])
        return cls(found["is_label_free"], found["num_components"], label_sites, rankings)


class Monitor:
    """Keeps the quantities of the draws: of all, or of every second, fourth, … of a long run.

    :param kernel: of the run.
    :param args: arguments of its model.
    :param kwargs: keyword arguments of its model.
    :param quantities: of the samples; None for the default of the kernel.
    :param superchains: number of points at which the chains start; None for one each.

    ``rankings`` are those among the arguments, None for a kernel that has none.
    """

    LEAST_KEPT = 2**13  # of a long run, for each chain

    def __init__(
        self,
        kernel: MCMCKernel,
        args: tuple,
        kwargs: dict,
        quantities: Quantities | None,
        superchains: int | None,
    ) -> None:
        self._set_up(Facts.of(kernel, args, kwargs), quantities, superchains)

    @classmethod
    def of(cls, facts: Facts, quantities: Quantities | None, superchains: int | None) -> "Monitor":
        """Return one of a kernel and data of which no more is known than these facts."""
        monitor = cls.__new__(cls)
        monitor._set_up(facts, quantities, superchains)
        return monitor

    def _set_up(self, facts: Facts, quantities: Quantities | None, superchains: int | None) -> None:
        self.facts, self.rankings, self._superchains = facts, facts.rankings, superchains
        if quantities is not None and not callable(quantities):
            raise ValueError(f"quantities must be a function of the samples, got {quantities!r}")
        self._of = quantities or (self._label_free if facts.is_label_free else self._of_any_kernel)
        self._is_own = quantities is not None
        self._quantities: list[dict[str, np.ndarray]] = []
        self._stats: list[dict[str, np.ndarray]] = []
        self._num_draws, self._stride = 0, 1

    def take(self, samples: dict[str, np.ndarray], stats: dict[str, np.ndarray]) -> Taken:
        """Return what is kept of draws, (chains, draws, …) by name.

        :raises ValueError: if the quantities have another form.
        """
        shape = next(iter(samples.values())).shape[:2]
        first = -self._num_draws % self._stride  # those whose index is a multiple of the stride
        if first >= shape[1]:
            return Taken(shape[1])
        samples = {name: x[:, first :: self._stride] for name, x in samples.items()}
        quantities = self._of(samples)
        if self._is_own:
            self._check(quantities, next(iter(samples.values())).shape[:2])
        shown: dict[str, np.ndarray] = {
            name: stats[name][:, first :: self._stride] for name in ("overflow",) if name in stats
        }
        return Taken(shape[1], quantities, shown)

    @staticmethod
    def _check(quantities: Any, shape: tuple[int, ...]) -> None:
        """Refuse what a function of the user's returns unless it has the form of samples."""
        if not isinstance(quantities, dict) or not quantities:
            raise ValueError(f"quantities must return arrays by name, got {quantities!r}")
        for name, x in quantities.items():
            if np.shape(x)[:2] != shape:
                raise ValueError(
                    f"quantities must return arrays (chains, draws, …), here {shape} and more; "
                    f"{name} has the shape {np.shape(x)}"
                )

    def add(self, taken: Taken) -> None:
        """Add what :meth:`take` has returned of the next draws."""
        self._num_draws += taken.num_draws
        if taken.quantities is not None:
            self._quantities.append(taken.quantities)
            self._stats.append(taken.stats or {})
        while self._stride < self.stride_of(self._num_draws):
            self._stride *= 2
            for parts in (self._quantities, self._stats):
                parts[:] = [{k: x[:, ::2] for k, x in _joined(parts).items()}]

    @classmethod
    def stride_of(cls, num_draws: int) -> int:
        """Return the distance of the draws of a run that are kept."""
        stride = 1
        while num_draws > 2 * cls.LEAST_KEPT * stride:
            stride *= 2
        return stride

    def table(self, burn_in: float) -> "pd.DataFrame":
        """Return the diagnostics.

        :param burn_in: share of the draws that is left out at their beginning.
        """
        quantities, labels = self._last(self._quantities, burn_in), list[str]()
        if self._of == self._label_free:
            items = [] if self.rankings is None else self._items(quantities)
            quantities, labels = as_shown(quantities, items)
        scalars: dict[str, np.ndarray] = {}
        for name, values in quantities.items():
            values = np.asarray(values, np.float64)
            scalars |= scalars_of(name, values, labels if name == "top_weights" else None)
        if not scalars:
            raise ValueError(
                "there is nothing to diagnose: no site of real numbers. Give quantities="
            )
        return table_of_scalars(scalars, self._superchains)

    def verdict(self, burn_in: float, table: "pd.DataFrame") -> Verdict:
        """Judge the draws.

        :param burn_in: share of the draws that is left out at their beginning.
        :param table: the diagnostics of these draws.
        """
        overflow = self.overflow(burn_in)
        facts = RunFacts(
            next(iter(self._quantities[0].values())).shape[0],
            overflow,
        )
        return judge(table, facts)

    def overflow(self, burn_in: float) -> float | None:
        """Return the share of the draws that needed more slots; None of other kernels.

        :param burn_in: share of the draws that is left out at their beginning.
        """
        if not self._stats:
            return None
        overflow = self._last(self._stats, burn_in).get("overflow")
        return None if overflow is None else float(overflow.mean())

    def latest(self, name: str) -> np.ndarray | None:
        """Return a quantity of the last draw of each chain, (chains, …), or None."""
        last = self._quantities[-1] if self._quantities else {}
        return last[name][:, -1] if name in last else None

    def _items(self, quantities: dict[str, np.ndarray]) -> list[str]:
        rankings = self.rankings
        assert rankings is not None
        listed = "population_weights" in quantities and (
            quantities["population_weights"].shape[-1] != rankings.num_items
        )
        return list((rankings.of_listed_items() if listed else rankings).items)

    def _label_free(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return label_free_quantities(samples, self.rankings, self.facts.num_components)

    def _of_any_kernel(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the real sites; beside blocks that draw labels, those of one number alone."""
        labels = [name for name in self.facts.label_sites if name in samples]
        real = {name: x for name, x in samples.items() if np.issubdtype(x.dtype, np.floating)}
        if not labels:
            return real
        found = {name: x for name, x in real.items() if x.ndim == 2}
        for name in labels:  # other arrays may be indexed by the labels, which switch
            of_labels = label_free_quantities({"assignments": samples[name]}, None)
            found |= (
                of_labels
                if len(labels) == 1
                else {f"{k} of {name}": x for k, x in of_labels.items()}
            )
        return found

    def _last(self, parts: list[dict[str, np.ndarray]], burn_in: float) -> dict[str, np.ndarray]:
        """Return the draws after the burn-in."""
        parts[:] = [_joined(parts)]
        first = -(-int(burn_in * self._num_draws) // self._stride)
        return {name: x[:, first:] for name, x in parts[0].items()}


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
