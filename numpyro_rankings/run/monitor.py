"""The quantities of a run that its diagnostics need, and nothing else of its draws."""

import math
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpyro_rankings.families import family_of
from numpyro_rankings.posterior import borda_ordering
from numpyro_rankings.posterior.diagnostics import (
    RunFacts,
    Verdict,
    judge,
    largest_of,
    scalars_of,
    table_of_scalars,
)
from numpyro_rankings.posterior.draws import BlockFacts, Draws, fitted_rankings
from numpyro_rankings.posterior.quantities import (
    as_shown,
    label_free_quantities,
    quantities_of_labels,
)
from numpyro_rankings.rankings import Orders, Rankings
from numpyro_rankings.run.convert import in_numpy_types, is_real
from numpyro_rankings.run.kernels import (
    DIVERGING,
    ENERGY,
    MAX_DEPTH,
    KernelTraits,
    Transitions,
    energy_of,
    events,
)

if TYPE_CHECKING:
    import pandas as pd

Quantities = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
Arrays = dict[str, np.ndarray]

_NOTHING = (
    "there is nothing to diagnose, because the model has no site of real numbers: give "
    "quantities=, a function of the samples"
)
_OVERFLOW, _ENERGY_STEPS = "overflow", "energy_steps"


class QuantityBatch(NamedTuple):
    """What is kept of some draws of each chain.

    - **num_draws** - their number.
    - **quantities** - the quantities of those draws among them that are kept.
    - **sums** - at the same draws, the numbers of events and the like before them.
    - **totals** - the same after the last draw.
    - **last** - the last draw, of what is compared with the next one.
    - **moved** - by site, the index of the last draw of each chain that differs from its
      predecessor.
    """

    num_draws: int
    quantities: Arrays
    sums: Arrays
    totals: Arrays
    last: Arrays
    moved: Arrays


class Facts(NamedTuple):
    """What diagnostics need to know of the kernel and the data of a run.

    - **is_label_free** - whether the kernel is of this package, whose quantities are known.
    - **num_components** - the number of a finite mixture, otherwise None.
    - **label_sites** - sites of the blocks that draw labels, in a kernel of NumPyro.
    - **rankings** - those that were fitted, None for a kernel that has none.
    - **transitions** - where the kernel has HMC.
    - **block** - the one block of a kernel of NumPyro that is of this package, whose rankings
      **rankings** then are; None without one.
    - **data** - what was fitted, as in :class:`~numpyro_rankings.Draws`; of partial orders and
      comparisons **rankings** are some orderings. None without any, or if an older store does not
      tell.
    """

    is_label_free: bool
    num_components: int | None = None
    label_sites: tuple[str, ...] = ()
    rankings: Rankings | None = None
    transitions: Transitions = MappingProxyType({})
    block: BlockFacts | None = None
    data: str | None = None

    @classmethod
    def of(cls, traits: KernelTraits, args: tuple, kwargs: dict) -> "Facts":
        """Return those of a kernel on its data."""
        fitted, block = traits.fitted, traits.block
        rankings = None if fitted is None else fitted_rankings(fitted, args, kwargs)
        data = None if rankings is None else rankings.kind
        if isinstance(rankings, Orders):
            rankings = rankings.with_orderings(rankings.listed)
        return cls(
            traits.is_own,
            traits.num_components,
            tuple(sorted({str(x.label_site) for x in traits.blocks})),
            rankings,
            traits.transitions,
            None if block is None else BlockFacts.of(block),
            data,
        )

    def as_json(self, sites: Collection[str]) -> dict[str, Any]:
        """Return them for the store, where one ranking of all items stands for the data."""
        facts = self._asdict()
        if self.block is not None:
            facts["block"], sites = self.block._asdict(), self.block.sites
        if (rankings := self.rankings) is None:
            return facts
        listed = np.unique(rankings.orderings)
        listed = listed[listed >= 0]
        family = family_of(sites)
        if family is not None and family.needs_reference:
            listed = borda_ordering(rankings)[: len(listed)]
        about = {
            "items": [str(name) for name in rankings.items],
            "ordering": listed.tolist(),
            "count": rankings.num_rankings,
        }
        return {**facts, "rankings": about}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Facts":
        """Return those of a store, with rankings of the same items, Borda order and number."""
        rankings = None
        if (about := stored["rankings"]) is not None:
            items, count = about["items"], [about["count"]]
            rankings = Rankings.from_orderings(
                [about["ordering"]], len(items), items, count, entries="indices"
            )
        label_sites, transitions = tuple(stored["label_sites"]), dict(stored["transitions"])
        block = stored["block"]
        return cls(
            stored["is_label_free"],
            stored["num_components"],
            label_sites,
            rankings,
            transitions,
            None if block is None else BlockFacts(**block),
            stored.get("data"),
        )


class Monitor:
    """Keeps the quantities of the draws: of all, or of every second, fourth, … of a long run.

    Events, such as divergent transitions, are counted in all draws.
    """

    LEAST_KEPT = 2**13  # so many draws of each chain stay of a long run

    def __init__(
        self, facts: Facts, quantities: Quantities | None, superchains: int | None
    ) -> None:
        self.facts, self._superchains = facts, superchains
        if quantities is not None and not callable(quantities):
            raise ValueError(f"quantities must be a function of the samples, got {quantities!r}")
        self._of = quantities or (self._label_free if facts.is_label_free else self._of_any_kernel)
        self._is_own = quantities is not None
        self._quantities: list[Arrays] = []
        self._sums: list[Arrays] = []
        self._totals: Arrays = {}
        self._last_draw: Arrays = {}
        self._moved: Arrays = {}
        self._watched: tuple[str, ...] = ()
        self.num_draws, self._stride, self._num_chains = 0, 1, 0

    def watch(self, sites: Mapping[str, Any]) -> None:
        """Set which sites each chain must change: those of real numbers, which are not constant."""
        if self.facts.is_label_free:  # its other sites may be discrete or fixed
            family = family_of(sites)
            parameters = () if family is None else family.parameters
            self._watched = tuple(name for name in parameters if is_real(sites[name]))
        else:
            self._watched = tuple(k for k, x in sites.items() if is_real(x) and x.size)

    def check_any(self, samples: Arrays) -> None:
        """Refuse to diagnose a model of integers, of which it cannot be told what they mean."""
        if self._of == self._of_any_kernel and not _num_scalars(self._of(samples)):
            raise ValueError(_NOTHING)

    def take(self, samples: Arrays, stats: Arrays) -> QuantityBatch:
        """Return what is kept of draws, (chains, draws, …) by name. They are not changed."""
        shape = next(iter(samples.values())).shape[:2]
        first = -self.num_draws % self._stride  # those whose index is a multiple of the stride
        counted = self._count(samples, stats, shape[1])
        kept = {name: x[:, first :: self._stride] for name, x in samples.items()}
        quantities: Arrays = {}
        if first < shape[1]:
            for x in kept.values():  # a function of the user's cannot change the draws
                x.flags.writeable = False
            quantities = self._of(kept)
            if self._is_own:
                self._check(quantities, next(iter(kept.values())).shape[:2])
        sums = {name: x[:, first :: self._stride] for name, x in counted.sums.items()}
        # copies, since views would keep all draws in memory
        return counted._replace(quantities=_copied(quantities), sums=_copied(sums))

    def _count(self, samples: Arrays, stats: Arrays, num_draws: int) -> QuantityBatch:
        """Count events and moves, with the sums at each draw."""
        sums: Arrays = {}
        totals, last, moved = dict(self._totals), dict(self._last_draw), dict(self._moved)

        def add(name: str, x: np.ndarray, includes_own: bool) -> None:
            whole = self._totals.get(name, np.zeros(len(x)))[:, None] + np.cumsum(x, axis=1)
            sums[name] = whole if includes_own else whole - x
            totals[name] = whole[:, -1].copy()

        own = {_OVERFLOW: stats[_OVERFLOW]} if _OVERFLOW in stats else {}
        for name, happened in (own | events(self.facts.transitions, stats)).items():
            if happened.ndim == 2:
                add(name, happened, False)
        energy = energy_of(self.facts.transitions, stats)
        if energy is not None:
            energy = energy.astype(np.float64)
            before = self._last_draw.get(ENERGY, energy[:, :1])
            steps = np.diff(energy, axis=1, prepend=before)
            add(_ENERGY_STEPS, steps**2, True)  # the step belongs to the draw that it leads to
            sums[ENERGY], last[ENERGY] = energy, energy[:, -1:].copy()
        for name in self._watched:
            x = samples[name].reshape(*samples[name].shape[:2], -1)
            before = self._last_draw.get(name, x[:, :1])
            changed = np.zeros(x.shape[:2], bool)
            changed[:, 0] = (x[:, 0] != before[:, 0]).any(-1)
            changed[:, 1:] = (x[:, 1:] != x[:, :-1]).any(-1)
            latest = self.num_draws + num_draws - 1 - changed[:, ::-1].argmax(1)
            previous = self._moved.get(name, np.zeros(len(x), np.int64))
            moved[name] = np.where(changed.any(1), latest, previous)
            last[name] = x[:, -1:].copy()
        return QuantityBatch(num_draws, {}, sums, totals, last, moved)

    def _check(self, quantities: Any, shape: tuple[int, ...]) -> None:
        """Refuse what a function of the user's returns unless it has the form of samples."""
        if not isinstance(quantities, dict) or not quantities:
            raise ValueError(f"quantities must return arrays by name, got {quantities!r}")
        for name, x in quantities.items():
            if np.shape(x)[:2] != shape:
                raise ValueError(
                    f"quantities must return arrays (chains, draws, …), here {shape} and more; "
                    f"{name} has the shape {np.shape(x)}"
                )
            dtype = in_numpy_types(np.asarray(x)).dtype
            if dtype.kind not in "biuf":
                raise ValueError(
                    f"quantities must return arrays of real numbers; {name} is of {dtype}"
                )
        before = self._quantities[0] if self._quantities else quantities
        if _forms(quantities) != _forms(before):
            raise ValueError(
                "quantities must return the same arrays for all draws: they were "
                f"{_forms(before)}, and are {_forms(quantities)} (the axes after chains and draws)"
            )

    def add(self, batch: QuantityBatch) -> None:
        """Add what :meth:`take` has returned of the next draws."""
        self.num_draws += batch.num_draws
        self._totals, self._last_draw, self._moved = batch.totals, batch.last, batch.moved
        if batch.quantities:
            self._num_chains = len(next(iter(batch.quantities.values())))
            self._quantities.append(batch.quantities)
            self._sums.append(batch.sums)
        while self._stride < self.stride_of(self.num_draws):
            self._stride *= 2
            for parts in (self._quantities, self._sums):
                parts[:] = [_copied({k: x[:, ::2] for k, x in _joined(parts).items()})]

    @classmethod
    def stride_of(cls, num_draws: int) -> int:
        """Return the distance of the draws of a run that are kept."""
        stride = 1
        while num_draws > 2 * cls.LEAST_KEPT * stride:
            stride *= 2
        return stride

    def table(self, burn_in: float, step: int = 1) -> "pd.DataFrame":
        """Return the diagnostics of the draws that are kept, or of every second, third, …"""
        return table_of_scalars(self._scalars(burn_in, step), self._superchains)

    def largest_r_hat(self, burn_in: float, limit: float, step: int = 1) -> float:
        """Return the largest R-hat of the diagnostics, or the first above a limit."""
        return largest_of(self._scalars(burn_in, step), self._superchains, limit)

    def _scalars(self, burn_in: float, step: int) -> Arrays:
        quantities, labels = self._last(self._quantities, burn_in), list[str]()
        quantities = {name: x[:, ::step] for name, x in quantities.items()}
        if self._of == self._label_free:
            items = [] if self.facts.rankings is None else self._items(quantities)
            quantities, labels = as_shown(quantities, items)
        scalars: dict[str, np.ndarray] = {}
        for name, values in quantities.items():
            values = np.asarray(values, np.float64)
            scalars |= scalars_of(name, values, labels if name == "top_weights" else None)
        if not scalars:
            raise ValueError(_NOTHING)
        return scalars

    def verdict(self, burn_in: float, table: "pd.DataFrame") -> Verdict:
        """Judge the draws."""
        facts = RunFacts(
            self._num_chains,
            self.overflow(burn_in),
            diverging=self._share(DIVERGING, burn_in),
            max_depth=self._share(MAX_DEPTH, burn_in),
            energy_fractions=self._energy_fractions(burn_in),
            still=self.still(burn_in),
        )
        return judge(table, facts)

    def overflow(self, burn_in: float) -> float | None:
        """Return the share of the draws that needed more slots; None of other kernels."""
        return self._share(_OVERFLOW, burn_in)

    def still(self, burn_in: float) -> dict[str, list[int]]:
        """Return the chains of which all draws of a site are equal, though it is continuous."""
        first = int(burn_in * self.num_draws)
        if self.num_draws - first < 2:
            return {}
        chains_by_site = {name: np.flatnonzero(last <= first) for name, last in self._moved.items()}
        return {name: chains.tolist() for name, chains in chains_by_site.items() if len(chains)}

    def never_moved(self) -> list[str]:
        """Return the sites that no chain has ever changed."""
        return [name for name, last in self._moved.items() if not last.any()]

    def _share(self, event: str, burn_in: float) -> float | None:
        """Return the share of the draws after the burn-in with an event, None of an unknown one."""
        if event not in self._totals:
            return None
        before = self._last(self._sums, burn_in)[event]
        num_draws = self.num_draws - self._first_kept(burn_in) * self._stride
        return float((self._totals[event] - before[:, 0]).mean()) / num_draws

    def _energy_fractions(self, burn_in: float) -> list[float]:
        """Return the energy Bayesian fraction of missing information of each chain, (E-BFMI)."""
        if _ENERGY_STEPS not in self._totals:
            return []
        after = self._last(self._sums, burn_in)
        num_steps = self.num_draws - self._first_kept(burn_in) * self._stride - 1
        steps = (self._totals[_ENERGY_STEPS] - after[_ENERGY_STEPS][:, 0]) / max(1, num_steps)
        with np.errstate(invalid="ignore", divide="ignore"):
            return (steps / after[ENERGY].var(axis=1)).tolist()

    @property
    def num_divergent(self) -> np.ndarray | None:
        """Number of divergent transitions of each chain, None of kernels that tell of none."""
        return self._totals.get(DIVERGING)

    def latest(self, name: str) -> np.ndarray | None:
        """Return a quantity of the last draw of each chain, (chains, …), or None."""
        last = self._quantities[-1] if self._quantities else {}
        return last[name][:, -1] if name in last else None

    def _items(self, quantities: dict[str, np.ndarray]) -> list[str]:
        rankings = self.facts.rankings
        assert rankings is not None
        listed = "population_weights" in quantities and (
            quantities["population_weights"].shape[-1] != rankings.num_items
        )
        return list((rankings.of_listed_items() if listed else rankings).items)

    def _label_free(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        draws = Draws.of_kernel(samples, self.facts.num_components, self.facts.rankings)
        return label_free_quantities(draws)

    def _of_any_kernel(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the real sites; beside blocks that draw labels, those of one number alone."""
        labels = [name for name in self.facts.label_sites if name in samples]
        real = {name: x for name, x in samples.items() if is_real(x)}
        if not labels:
            return real
        diagnosed = {name: x for name, x in real.items() if x.ndim == 2}
        for name in labels:  # other arrays may be indexed by the labels, which switch
            of_labels = quantities_of_labels(samples[name])
            diagnosed |= (
                of_labels
                if len(labels) == 1
                else {f"{k} of {name}": x for k, x in of_labels.items()}
            )
        return diagnosed

    def _first_kept(self, burn_in: float) -> int:
        """Return the index, among the draws that are kept, of the first after the burn-in."""
        return -(-int(burn_in * self.num_draws) // self._stride)

    def _last(self, parts: list[Arrays], burn_in: float) -> Arrays:
        """Return the draws after the burn-in."""
        parts[:] = [_joined(parts)] if parts else []
        first = self._first_kept(burn_in)
        return {name: x[:, first:] for part in parts for name, x in part.items()}


def _joined(parts: list[Arrays]) -> Arrays:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}


def _copied(arrays: Mapping[str, Any]) -> Arrays:
    return {name: in_numpy_types(np.array(x)) for name, x in arrays.items()}


def _forms(arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(x)[2:] for name, x in arrays.items()}


def _num_scalars(arrays: Mapping[str, Any]) -> int:
    return sum(math.prod(form) for form in _forms(arrays).values())
