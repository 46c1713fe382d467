"""The quantities of a run that its diagnostics need, and nothing else of its draws."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings.diagnostics import RunFacts, Verdict, judge, scalars_of, table_of_scalars
from numpyro_rankings.infer.base import GibbsKernel, find_rankings
from numpyro_rankings.infer.ddcrp.base import LinkGibbs
from numpyro_rankings.infer.partition.base import PartitionKernel
from numpyro_rankings.quantities import as_shown, label_free_quantities
from numpyro_rankings.rankings import Rankings

if TYPE_CHECKING:
    import pandas as pd

Quantities = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


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
        self._kernel, self._superchains = kernel, superchains
        self.rankings: Rankings | None = None
        is_of_package = isinstance(kernel, GibbsKernel)
        if is_of_package and not isinstance(kernel, PartitionKernel | LinkGibbs):
            self.rankings = find_rankings(args, kwargs)
        self._of = quantities or (self._label_free if is_of_package else self._of_any_kernel)
        self._quantities: list[dict[str, np.ndarray]] = []
        self._stats: list[dict[str, np.ndarray]] = []
        self._num_draws, self._stride = 0, 1

    def add(self, samples: dict[str, np.ndarray], stats: dict[str, np.ndarray]) -> None:
        """Add draws, (chains, draws, …) by name."""
        num_new = next(iter(samples.values())).shape[1]
        first = -self._num_draws % self._stride  # those whose index is a multiple of the stride
        self._num_draws += num_new
        if first < num_new:
            samples = {name: x[:, first :: self._stride] for name, x in samples.items()}
            self._quantities.append(self._of(samples))
            shown = {name: stats[name] for name in ("overflow", "accept_prob") if name in stats}
            self._stats.append({k: x[:, first :: self._stride] for k, x in shown.items()})
        while self._num_draws > 2 * self.LEAST_KEPT * self._stride:
            self._stride *= 2
            for parts in (self._quantities, self._stats):
                parts[:] = [{k: x[:, ::2] for k, x in _joined(parts).items()}]

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
        return table_of_scalars(scalars, self._superchains)

    def verdict(self, burn_in: float, table: "pd.DataFrame") -> Verdict:
        """Judge the draws.

        :param burn_in: share of the draws that is left out at their beginning.
        :param table: the diagnostics of these draws.
        """
        stats = self._last(self._stats, burn_in)
        overflow = stats.get("overflow")
        shows_rate = hasattr(self._kernel, "search_iterations") and "accept_prob" in stats
        facts = RunFacts(
            next(iter(self._quantities[0].values())).shape[0],
            None if overflow is None else float(overflow.mean()),
            float(stats["accept_prob"].mean()) if shows_rate else None,
            "num_clusters" in self._quantities[0],
        )
        return judge(table, facts)

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
        num_components = getattr(self._kernel, "num_components", None)
        return label_free_quantities(samples, self.rankings, num_components)

    def _of_any_kernel(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the real sites; beside blocks that draw labels, those of one number alone."""
        blocks = [block for block, _ in getattr(self._kernel, "blocks", ())]
        names = {block.label_site for block in blocks if isinstance(block, GibbsKernel)}
        labels = [name for name in names if name in samples]
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
