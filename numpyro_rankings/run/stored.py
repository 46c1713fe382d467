"""The draws of a store, without the kernel and the data of its run."""

import contextlib
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpyro.infer import MCMC
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings.families import family_of
from numpyro_rankings.posterior.draws import LADDER_FIELDS, Draws
from numpyro_rankings.run.convert import SITES, STATS
from numpyro_rankings.run.errors import StoreError
from numpyro_rankings.run.folder import folder_of
from numpyro_rankings.run.goals import Diagnosed
from numpyro_rankings.run.kernels import ENERGY
from numpyro_rankings.run.monitor import Facts, Monitor, Quantities
from numpyro_rankings.run.read_only import ReadOnlyStore
from numpyro_rankings.run.results import (
    BURN_IN,
    READ_AT_ONCE,
    BurnIn,
    Results,
    by_chain_or_not,
    check_burn_in,
)
from numpyro_rankings.run.same_run import changes_of
from numpyro_rankings.run.settings import settings_of

# Functions import zarr and ArviZ, which take long to load and which not every run needs.


def open_run(
    store: str | os.PathLike, burn_in: BurnIn = "auto", quantities: Quantities | None = None
) -> "StoredRun":
    """Read a store of a :class:`Run`, without its kernel and its data.

    ::

        run = open_run("ballots.run")
        print(run.verdict.headline)
        print(run.diagnostics())
        data = run.to_inference_data()

    The run may be finished or still going on, in this or another process; what is read is as it was
    when the store was opened. Nothing is written, so that the folder may be on a medium that allows
    reading alone. Of a store that is damaged in part, what is whole can be read.

    :param store: the folder.
    :param burn_in: share of the draws that is left out at their beginning; by default chosen as by
        :class:`Run`, or half of them if some before are damaged, with a warning.
    :param quantities: as for :class:`Run`; by default those that the run diagnoses by itself.
    :raises StoreError: if it is not a store, or nothing in it can be read.
    :raises ValueError: if an argument is out of range.
    """
    return StoredRun(store, burn_in, quantities)


class StoredRun(Results):
    """What :func:`~numpyro_rankings.open_run` returns: a run that can be read, but not continued.

    A site of which a part after the burn-in is damaged is left out of the results, with a warning.
    :meth:`find_damage` tells all that is damaged, and ``get_samples(sites=…)`` returns those draws
    of a damaged site that are whole.
    """

    _draws: ReadOnlyStore
    _monitors_all = False

    def __init__(
        self, store: str | os.PathLike, burn_in: BurnIn, quantities: Quantities | None
    ) -> None:
        self._burn_in = check_burn_in(burn_in)
        self._draws = ReadOnlyStore(folder_of(store))
        if damage := self._draws.damage:
            text = f"{self._draws.path}: {'; '.join(damage)}"
            warnings.warn(text, UserWarning, stacklevel=3)
        self._sites, self._stats = self._draws.arrays_of(SITES), self._draws.arrays_of(STATS)
        about = self._draws.about
        superchains = None
        if "settings" in about:
            settings = settings_of(self._draws.path, about)
            self._num_chains, superchains = settings.num_chains, settings.superchains
        else:
            shapes = [self._draws.shape_of(where) for where in self._sites.values()]
            self._num_chains = shapes[0][0] if shapes else 0
        self._num_sweeps, self._seconds = self._draws.num_sweeps, self._draws.seconds
        self._kernel = str(about.get("kernel", {}).get("class", "")).rpartition(".")[2]
        self._facts = self._facts_of(about)
        self._monitor = Monitor(self._facts, quantities, superchains)
        self._has_monitored = False

    def find_damage(self) -> list[str]:
        """Read all draws, and return what is damaged of them, one line each; none if all are whole.

        Files of metadata that ``Run.resume`` mends by others, and states of the chains that are
        not the newest, are not looked at.
        """
        return [*self._draws.damage, *self._draws.find_damage()]

    # -- results -------------------------------------------------------------------------------

    def get_samples(
        self,
        group_by_chain: bool = False,
        max_draws: int | None = None,
        sites: Iterable[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Return the draws after the burn-in, by site.

        :param group_by_chain: whether they are (chains, draws, …) or (chains · draws, …).
        :param max_draws: of each chain: if there are more, only every second, third, … is returned.
        :param sites: names of those to return, with the draws that are whole in all of them; by
            default all sites all of whose draws are whole.
        :raises ValueError: if there is no such site.
        :raises StoreError: if no draw of them is whole.
        """
        draws = self._selected(max_draws)
        if sites is None:
            samples = self._read(self._sites, draws)
        else:
            samples = self._read_whole_draws(list(sites), draws)
        return by_chain_or_not(samples, group_by_chain)

    def to_inference_data(self, max_draws: int | None = None) -> Any:
        """Convert the draws after the burn-in to ArviZ.

        It has the groups ``posterior`` and ``sample_stats``, for the kernels of this package those
        of :meth:`~numpyro_rankings.Run.to_inference_data`. What needs the data is not there: what
        was observed, and the log likelihood.

        :param max_draws: as for :meth:`get_samples`.
        :raises ValueError: if there are no draws.
        """
        return self._with_changes(self._to_inference_data(max_draws))

    def _to_inference_data(self, max_draws: int | None) -> Any:
        self._check_draws(1)
        draws = self._selected(max_draws)
        sites, stats = self._read(self._sites, draws), self._read(self._stats, draws)
        kernel = _NoKernel(self._facts.num_components)
        mcmc = MCMC(
            kernel,
            num_warmup=0,
            num_samples=len(draws),
            num_chains=self.num_chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        rankings = self._facts.rankings
        mcmc._states = {kernel.sample_field: sites, **stats}
        mcmc._args, mcmc._kwargs = (rankings,), {}
        family = family_of(sites)
        is_whole = len(sites) == len(self._sites) and (family is None or rankings is not None)
        own = None
        if self._facts.is_label_free and is_whole:
            own = self._draws_of(sites)
        if (block := self._facts.block) is not None and not any("/" in name for name in sites):
            if set(block.sites.values()) <= set(sites):
                own = self._draws_of(sites)
        if own is not None:
            from numpyro_rankings.posterior.inference_data import convert

            return convert(mcmc, own)
        import arviz as az

        return az.from_numpyro(mcmc, coords={}, dims={}, log_likelihood=False)

    def as_draws(self) -> Draws:
        """Return the draws after the burn-in, which :meth:`Draws.of` takes.

        :raises ValueError: if there are no draws.
        """
        self._check_draws(1)
        draws = self._draws_of(self.get_samples(group_by_chain=True))
        of_ladder = {name: x for name, x in self._stats.items() if name in LADDER_FIELDS}
        with contextlib.suppress(StoreError):  # all of it is damaged: an evidence will say so
            draws = replace(draws, ladder=self._read(of_ladder, self._selected(None)))
        return draws

    # -- parts ---------------------------------------------------------------------------------

    def _draws_of(self, samples: Mapping[str, Any]) -> Draws:
        block, rankings = self._facts.block, self._facts.rankings
        family = family_of(samples if block is None else block.sites)
        if rankings is not None and family is not None:
            rankings = family.described(rankings)
        number = self._facts.num_components if block is None else block.num_components
        draws = Draws.of_kernel(samples, number, rankings, block, self._kernel)
        return replace(draws, data=self._facts.data)

    def _recorded_changes(self) -> list[dict[str, Any]]:
        return changes_of(self._draws.path, self._draws.about)

    def _facts_of(self, about: Mapping[str, Any]) -> Facts:
        """Return what the store knows of kernel and data, or as much as the sites show."""
        try:
            return Facts.from_json(about["diagnosed"])
        except (LookupError, TypeError, ValueError):
            return Facts(is_label_free="log_joint" in self._sites)

    def _selected(self, max_draws: int | None) -> range:
        return range(self.first_draw, self.num_draws, self._step(max_draws))

    def _read(self, arrays: Mapping[str, str], draws: range) -> dict[str, np.ndarray]:
        """Return the arrays that are whole in these draws, and warn of the others."""
        whole, damaged = {}, []
        for name, where in arrays.items():
            values, is_whole = self._draws.read(where, draws)
            if is_whole.all():
                whole[name] = values
            else:
                damaged.append(name)
        self._warn_of(damaged)
        if arrays and not whole:
            raise StoreError(f"{self._draws.path} is damaged: of no site all draws are whole")
        return whole

    def _read_whole_draws(self, sites: list[str], draws: range) -> dict[str, np.ndarray]:
        unknown = [name for name in sites if name not in self._sites]
        if unknown or not sites:
            known = ", ".join(self._sites)
            raise ValueError(f"sites must be some of {known}, got {', '.join(unknown) or 'none'}")
        read = {name: self._draws.read(self._sites[name], draws) for name in sites}
        is_whole = np.logical_and.reduce([whole for _, whole in read.values()])
        if len(draws) and not is_whole.any():
            raise StoreError(
                f"{self._draws.path} is damaged: no draw is whole in {', '.join(sites)}"
            )
        if not is_whole.all():
            warnings.warn(
                f"{self._draws.path} is damaged: {(~is_whole).sum()} of {len(draws)} draws of "
                f"{', '.join(sites)} are left out",
                UserWarning,
                stacklevel=3,
            )
        return {name: values[:, is_whole] for name, (values, _) in read.items()}

    def _diagnose_anew(self, step: int = 1) -> Diagnosed:
        if not self._has_monitored:
            self._let_monitor()
            self._has_monitored = True
        return super()._diagnose_anew(step)

    def _let_monitor(self) -> None:
        """Give the monitor the draws that it would keep, of all arrays that are whole.

        The burn-in is half of them if more arrays are then whole.
        """
        stride = Monitor.stride_of(self.num_draws)

        def draws_after(burn_in: float) -> range:
            first = -(-int(burn_in * self.num_draws) // stride) * stride
            return range(first, self.num_draws, stride)

        draws = draws_after(0.0 if self._burn_in == "auto" else self._burn_in)
        damaged = self._damaged_in(draws)
        if damaged and self._burn_in == "auto":
            of_half = self._damaged_in(draws_after(BURN_IN))
            if of_half != damaged:
                self._burn_in, draws = BURN_IN, draws_after(BURN_IN)
                names = ", ".join(sorted({name for _, name in damaged - of_half}))
                self._warn(f"draws of {names} in the first half; the burn-in is all of it")
            damaged = of_half
        self._warn_of(sorted({name for _, name in damaged}))
        sites = self._diagnosable({name for name in self._sites if (SITES, name) not in damaged})
        stats = {name for name in self._stats if (STATS, name) not in damaged}
        if stride > 1:  # what it is used for needs successive draws
            stats -= {ENERGY}
        if not sites:
            raise StoreError(f"{self._draws.path} is damaged: of no site all draws are whole")
        one = draws[:1]
        self._monitor.watch({name: self._draws.read(self._sites[name], one)[0] for name in sites})
        for start in range(0, len(draws), READ_AT_ONCE):
            part = draws[start : start + READ_AT_ONCE]
            samples = {name: self._draws.read(self._sites[name], part)[0] for name in sites}
            extra = {name: self._draws.read(self._stats[name], part)[0] for name in stats}
            self._monitor.add(self._monitor.take(samples, extra))

    def _damaged_in(self, draws: range) -> set[tuple[str, str]]:
        """Return group and name of the arrays of which not all of these draws can be read."""
        return {
            (group, name)
            for group, arrays in ((SITES, self._sites), (STATS, self._stats))
            for name, where in arrays.items()
            if not self._draws.is_whole(where, draws)
        }

    def _diagnosable(self, sites: set[str]) -> list[str]:
        """Drop the sites that say nothing without rankings, or without others, with a warning."""
        if not self._facts.is_label_free:
            return sorted(sites)
        needed = {"center": {"cluster_sizes", "concentration"}, "weights": set[str]()}
        if "assignments" in self._sites:
            needed["weights"] = {"assignments", "cluster_sizes"}
        if self._facts.num_components == 1:  # whose concentration is diagnosed too
            needed["concentration"] = {"center"}
        if self._facts.rankings is None:
            return sorted(sites - needed.keys())
        dropped = {name for name in sites & needed.keys() if not needed[name] <= sites}
        for name in sorted(dropped):
            if damaged := sorted((needed[name] - sites) & self._sites.keys()):
                self._warn(f"{name} left out of the diagnostics, without {', '.join(damaged)}")
        return sorted(sites - dropped)

    def _warn_of(self, damaged: list[str]) -> None:
        if damaged:
            self._warn(f"{', '.join(damaged)} left out")

    def _warn(self, words: str) -> None:
        text = f"{self._draws.path} is damaged: {words}; find_damage() tells more"
        warnings.warn(text, UserWarning, stacklevel=5)


class _NoKernel(MCMCKernel):
    """Stands for the kernel in what is handed to ArviZ."""

    sample_field = "z"
    model = None

    def __init__(self, num_components: int | None) -> None:
        self.num_components = num_components

    def init(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("the kernel of the run is not known")

    sample = init
