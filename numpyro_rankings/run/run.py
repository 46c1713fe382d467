"""A run of any NumPyro kernel, until its answer is good enough."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh
from numpyro.infer import MCMC
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings.diagnostics import Verdict
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.infer.not_finite import check_not_stopped
from numpyro_rankings.run.convert import (
    SITES,
    STATS,
    Groups,
    as_arrays,
    as_groups,
    as_sites,
    as_state,
    is_key,
)
from numpyro_rankings.run.description import check_same, describe
from numpyro_rankings.run.interrupts import postponed_interrupts
from numpyro_rankings.run.loop import Chunk, SweepLoop
from numpyro_rankings.run.memory import Memory
from numpyro_rankings.run.monitor import Monitor, Quantities
from numpyro_rankings.run.placement import CHAINS, Placement, agree
from numpyro_rankings.run.store import Store, StoreError

if TYPE_CHECKING:
    import pandas as pd

_ADAPTATION = 1000  # sweeps, of kernels of other packages
_READ_AT_ONCE = 500  # draws, when a run is resumed
_SHARE_OF_CHECKS = 0.1  # of the time
_LEAST_DRAWS = 4  # of each chain, for R-hat


class _Settings(NamedTuple):
    """What the draws depend on besides data and kernel. All of the types of JSON."""

    num_chains: int
    superchains: int | None
    num_warmup: int
    thinning: int
    extra_fields: tuple[str, ...]
    key: list[int]
    key_type: str


class Check(NamedTuple):
    """The result of a check whether the draws suffice.

    :param rhat: largest R-hat; NaN for one chain.
    :param ess: least effective sample size.
    """

    rhat: float
    ess: float


class Run:
    """A run of several chains that goes on until its answer is good enough.

    ::

        run = Run(SliceGibbs(), rankings, key=jax.random.key(0), store="ballots.run")
        run.until(rhat=1.01, ess=400, minutes=10)
        print(run.verdict.headline)
        data = run.to_inference_data()

    A run consists of chunks of some seconds, each one call of a compiled program. After each the
    draws and the states of the chains are stored, and Ctrl-C is heeded. The draws do not depend on
    how the run is cut into chunks: a run that is killed and resumed has the same draws, to the last
    bit, as one that was left alone on the same machine with the same versions.

    No number of warm-up sweeps is needed: diagnostics and results are those of the last part of the
    draws, by default the second half. Kernels that adapt have their own warm-up before, whose
    sweeps are not kept.

    :param kernel: a kernel of this package, or any other of NumPyro.
    :param data: the arguments of its model.
    :param key: a random key.
    :param num_chains: number of chains, all in one program.
    :param superchains: number of points at which they start, each with as many chains; R-hat is
        then nested R-hat, which can tell that many short chains agree. By default every chain has a
        starting point of its own.
    :param store: a folder for the draws, in Zarr's format, which must not exist yet; ``None`` keeps
        them in memory.
    :param devices: the chains are spread over these devices, whose number must divide theirs; by
        default all are on one. For several CPU devices, set ``jax_num_cpu_devices`` first.
    :param mesh: instead of ``devices``, a mesh of devices with an axis ``"chains"``, an axis
        ``"rankings"``, or both. Along the latter the rows of the data and their labels are split,
        each identical ranking having a row of its own; :class:`~numpyro_rankings.infer.SliceGibbs`
        with ``assignment="parallel"`` and the Plackett–Luce kernels allow this.
    :param num_warmup: sweeps in which the kernel adapts; by default 0 for the kernels of this
        package, which do not adapt, and 1,000 for others.
    :param thinning: sweeps from one draw that is kept to the next.
    :param burn_in: share of the draws that is left out at their beginning.
    :param quantities: a function of the samples, (chains, draws, …) by name, that returns the
        quantities to diagnose in the same form. The default is those that
        :func:`~numpyro_rankings.to_inference_data` names for the kernels of this package, and for
        others all sites of real numbers. Where a block of ``numpyro.infer.Gibbs`` draws labels,
        only sites of one number are diagnosed, and the sizes of the clusters.
    :param init_params: starting values of the chains, as for :meth:`numpyro.infer.MCMC.run`.
    :param extra_fields: further fields of the kernel's state to keep.
    :param model_kwargs: keyword arguments of the model.
    :raises ValueError: if an argument is out of range, or the data do not fit the kernel.
    :raises StoreError: if the store exists, or cannot be written.
    """

    def __init__(
        self,
        kernel: MCMCKernel,
        *data: Any,
        key: Array,
        num_chains: int = 4,
        superchains: int | None = None,
        store: str | os.PathLike | None = None,
        devices: Sequence[jax.Device] | None = None,
        mesh: Mesh | None = None,
        num_warmup: int | None = None,
        thinning: int = 1,
        burn_in: float = 0.5,
        quantities: Quantities | None = None,
        init_params: Any = None,
        extra_fields: tuple[str, ...] = (),
        model_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if num_warmup is None:
            num_warmup = 0 if isinstance(kernel, GibbsKernel) else _ADAPTATION
        key = key if is_key(key) else jax.random.wrap_key_data(jnp.asarray(key))
        settings = _Settings(
            _at_least("num_chains", num_chains, 1),
            _check_superchains(superchains, num_chains),
            _at_least("num_warmup", num_warmup, 0),
            _at_least("thinning", thinning, 1),
            tuple(extra_fields),
            np.asarray(jax.random.key_data(key)).tolist(),
            str(jax.random.key_impl(key)),
        )
        kwargs = dict(model_kwargs or {})
        about = describe(kernel, data, kwargs)  # before init, in which some kernels change
        placement = Placement(kernel, data, kwargs, _mesh_of(devices, mesh))
        self._set_up(SweepLoop(kernel, data, kwargs, placement), settings)
        self._show(burn_in, quantities)
        self._state = self._init(init_params)
        self._draws: Store | Memory = Memory()
        self._is_stored = store is not None
        if store is not None and jax.process_index() == 0:
            self._draws = Store.create(store, {**about, "settings": settings._asdict()})
            self._commit({SITES: {}, STATS: {}})

    @classmethod
    def resume(
        cls,
        store: str | os.PathLike,
        kernel: MCMCKernel,
        *data: Any,
        devices: Sequence[jax.Device] | None = None,
        mesh: Mesh | None = None,
        burn_in: float = 0.5,
        quantities: Quantities | None = None,
        model_kwargs: Mapping[str, Any] | None = None,
    ) -> "Run":
        """Continue a run in its store, in this or another process.

        A note is given if the versions of the packages are not those of the run; its further draws
        are then right, but not to the last bit those that it would have had.

        :param store: the folder.
        :param kernel: a kernel with the settings of the first.
        :param data: the same data.
        :param devices: as in the constructor; may be others.
        :param mesh: as in the constructor; may be another.
        :param burn_in: as in the constructor; may be another.
        :param quantities: as in the constructor; may be another.
        :param model_kwargs: as in the constructor.
        :raises StoreError: if the store is damaged or in use by another process, or if the data,
            the kernel or its settings are not those of the run; the message says which.
        """
        if jax.process_count() > 1:
            raise StoreError("a run is resumed by one process, not by several together")
        run, kwargs = cls.__new__(cls), dict(model_kwargs or {})
        draws = Store.open(store)
        try:
            check_same(draws.path, draws.about, describe(kernel, data, kwargs))
            run._draws, run._is_stored = draws, True
            placement = Placement(kernel, data, kwargs, _mesh_of(devices, mesh))
            run._set_up(SweepLoop(kernel, data, kwargs, placement), _settings_of(draws))
            run._show(burn_in, quantities)
            run._load()
        except BaseException:
            draws.close()
            raise
        return run

    # -----------------------------------------------------------------------------------------
    # Sampling
    # -----------------------------------------------------------------------------------------

    def extend(self, sweeps: int, after_chunk: "Callable[[Run], None] | None" = None) -> None:
        """Make further sweeps of each chain, and first those of the warm-up that are missing.

        :param sweeps: a multiple of ``thinning``.
        :param after_chunk: called with the run after each chunk.
        :raises KeyboardInterrupt: after the chunk in which Ctrl-C was pressed; the run can go on.
        :raises StoreError: if the draws cannot be stored. Those of earlier chunks are.
        :raises ValueError: if the state of a chain is not finite.
        """
        thinning = self._settings.thinning
        if _at_least("sweeps", sweeps, 0) % thinning:
            raise ValueError(f"sweeps must be a multiple of the thinning, {thinning}: got {sweeps}")
        stop = self.num_draws + sweeps // thinning
        with postponed_interrupts() as check_interrupted:
            while self.num_draws < stop:
                self._make_chunk(stop - self.num_draws)
                if after_chunk is not None:
                    after_chunk(self)
                check_interrupted()

    def until(
        self,
        rhat: float = 1.01,
        ess: float = 400,
        minutes: float = 10,
        after_chunk: "Callable[[Run], None] | None" = None,
    ) -> bool:
        """Make sweeps until the chains agree and their draws suffice, or the time is over.

        The run stops when in two successive checks R-hat (rank-normalised, split) of all quantities
        is at most ``rhat``, and their bulk and tail ESS at least ``ess``. Draws that are made until
        they look good enough are a little less good than they look; the documentation has figures.

        :param rhat: largest R-hat, of several chains.
        :param ess: least effective sample size of all chains together.
        :param minutes: time after which no further chunk begins.
        :param after_chunk: called with the run after each chunk.
        :return: whether both hold; False if the time was over before.
        :raises KeyboardInterrupt, StoreError, ValueError: as :meth:`extend`.
        """
        if not rhat > 1 or not ess > 0 or not minutes >= 0:
            raise ValueError("rhat must be greater than 1, ess positive and minutes not negative")
        most = self._monitor.LEAST_KEPT * self._settings.num_chains * (1 - self._burn_in)
        if ess > most:
            raise ValueError(
                f"ess must be at most {most:.0f}, because diagnostics use some of the draws: use "
                "more chains, or extend()"
            )
        import arviz  # noqa: F401 - takes a second, which is not the time of a check

        start = time.monotonic()
        in_a_row, checked, took = 0, start, 0.0
        with postponed_interrupts() as check_interrupted:
            while agree(time.monotonic() - start < 60 * minutes):
                self._make_chunk(math.inf)
                now = time.monotonic()
                is_due = agree(now - checked >= took / _SHARE_OF_CHECKS)
                if is_due and self._may_suffice(ess):
                    in_a_row = in_a_row + 1 if self._suffices(rhat, ess) else 0
                    checked, took = time.monotonic(), time.monotonic() - now
                if after_chunk is not None:
                    after_chunk(self)
                check_interrupted()
                if in_a_row == 2:
                    return True
        return False

    def close(self) -> None:
        """Give the store back, so that another process can resume the run."""
        self._draws.close()

    # -----------------------------------------------------------------------------------------
    # Results
    # -----------------------------------------------------------------------------------------

    @property
    def num_sweeps(self) -> int:
        """Number of sweeps of each chain, those of the warm-up included."""
        return self._num_sweeps

    @property
    def num_draws(self) -> int:
        """Number of draws of each chain, those of the burn-in included."""
        return self._draws.num_draws

    @property
    def first_draw(self) -> int:
        """Index of the first draw that is not in the burn-in."""
        return int(self._burn_in * self.num_draws)

    @property
    def seconds(self) -> float:
        """Seconds that the sweeps took, without compilation."""
        return self._seconds

    @property
    def last_check(self) -> Check | None:
        """The latest check of :meth:`until`, None before the first."""
        return self._last_check

    @property
    def num_clusters(self) -> np.ndarray | None:
        """The number of clusters of each chain in its last draw, None of other kernels."""
        return self._monitor.latest("num_clusters")

    @property
    def verdict(self) -> Verdict:
        """Whether the draws after the burn-in can be relied on, as the reports say it."""
        return self._monitor.verdict(self._burn_in, self.diagnostics())

    def diagnostics(self) -> "pd.DataFrame":
        """Tabulate R-hat and ESS of the draws after the burn-in.

        From 16,384 draws of a chain on, only every second is used, then every fourth, and so on.

        :return: as :func:`~numpyro_rankings.diagnostics_table`.
        :raises ValueError: if there are too few draws.
        """
        self._check_draws()
        return self._monitor.table(self._burn_in)

    def get_samples(
        self, group_by_chain: bool = False, max_draws: int | None = None
    ) -> dict[str, np.ndarray]:
        """Return the draws after the burn-in, by site.

        :param group_by_chain: whether they are (chains, draws, …) or (chains · draws, …).
        :param max_draws: of each chain: if there are more, only every second, third, … is returned.
        """
        samples = as_sites(self._draws.read(SITES, self.first_draw, step=self._step(max_draws)))
        if group_by_chain:
            return samples
        return {name: x.reshape(-1, *x.shape[2:]) for name, x in samples.items()}

    def as_mcmc(self, max_draws: int | None = None) -> MCMC:
        """Return the draws after the burn-in as an :class:`numpyro.infer.MCMC` that has run.

        Everything that takes such an object then takes the run.

        :param max_draws: as for :meth:`get_samples`.
        :raises ValueError: if there are no draws.
        """
        self._check_draws(1)
        kernel, settings, step = self._loop.kernel, self._settings, self._step(max_draws)
        sites = self.get_samples(group_by_chain=True, max_draws=max_draws)
        stats = as_sites(self._draws.read(STATS, self.first_draw, step=step))
        thinning = settings.thinning * step
        mcmc = MCMC(
            kernel,
            num_warmup=0,
            num_samples=next(iter(sites.values())).shape[1] * thinning,
            num_chains=settings.num_chains,
            thinning=thinning,
            chain_method="vectorized",
            progress_bar=False,
        )
        is_named = set(sites) != {kernel.sample_field}
        mcmc._states = {kernel.sample_field: sites if is_named else sites[kernel.sample_field]}
        mcmc._states |= stats
        mcmc._last_state = self._loop.placement.to_host(self._state)
        mcmc._args, mcmc._kwargs = self._loop.args, self._loop.kwargs
        return mcmc

    def to_inference_data(self, max_draws: int | None = None, **options: Any) -> Any:
        """Convert the draws after the burn-in to ArviZ.

        :param max_draws: as for :meth:`get_samples`.
        :param options: of :func:`~numpyro_rankings.to_inference_data` for the kernels of this
            package, where the rankings need not be given, and otherwise of
            :func:`arviz.from_numpyro`.
        :raises ValueError: if there are no draws.
        """
        mcmc = self.as_mcmc(max_draws)
        if not isinstance(self._loop.kernel, GibbsKernel):
            import arviz as az

            return az.from_numpyro(mcmc, **options)
        from numpyro_rankings.inference_data import to_inference_data

        if self._monitor.rankings is not None:
            options = {"rankings": self._monitor.rankings, **options}
        return to_inference_data(mcmc, **options)

    # -----------------------------------------------------------------------------------------
    # Parts
    # -----------------------------------------------------------------------------------------

    def _set_up(self, loop: SweepLoop, settings: _Settings) -> None:
        self._loop, self._settings = loop, settings
        loop.prepare(settings.num_chains, settings.thinning, settings.extra_fields)
        self._num_sweeps, self._seconds = 0, 0.0
        self._last_check: Check | None = None

    def _show(self, burn_in: float, quantities: Quantities | None) -> None:
        if not 0 <= burn_in < 1:
            raise ValueError(f"burn_in must be a share from 0 to less than 1, got {burn_in!r}")
        self._burn_in = burn_in
        loop = self._loop
        superchains = self._settings.superchains
        self._monitor = Monitor(loop.kernel, loop.args, loop.kwargs, quantities, superchains)

    def _init(self, init_params: Any) -> Any:
        settings = self._settings
        data = jnp.asarray(settings.key, jnp.uint32)
        key = jax.random.wrap_key_data(data, impl=settings.key_type)
        starts = settings.superchains or settings.num_chains
        copies = settings.num_chains // starts
        keys = jax.random.split(key, starts)
        return self._loop.init(keys, settings.num_warmup, init_params, copies)

    def _load(self) -> None:
        """Take the newest state of the store, and the quantities of its draws."""
        draws = self._draws
        assert isinstance(draws, Store)
        arrays, counts = draws.read_state()
        # kernels learn of their data in init, whose state shows what the stored one must be like
        like = self._init(None)
        try:
            self._state = as_state(arrays, like)
            self._num_sweeps, self._seconds = counts["num_sweeps"], counts["seconds"]
        except (KeyError, ValueError) as error:
            raise StoreError(f"{draws.path}: the state of the chains is damaged: {error}") from None
        for start in range(0, draws.num_draws, _READ_AT_ONCE):
            stop = min(start + _READ_AT_ONCE, draws.num_draws)
            sites, stats = draws.read(SITES, start, stop), draws.read(STATS, start, stop)
            self._monitor.add(as_sites(sites), as_sites(stats))

    def _make_chunk(self, at_most: float) -> None:
        """Make a chunk: of the warm-up while it lasts, then of draws."""
        missing = self._settings.num_warmup - self._num_sweeps
        if missing > 0:
            self._take(self._loop.warm_up(self._state, missing), {SITES: {}, STATS: {}})
            return
        chunk = self._loop.draw(self._state, self.num_draws, at_most)
        groups = as_groups(chunk.draws, self._loop.kernel.sample_field)
        check_not_stopped(self._loop.kernel, groups[SITES])
        self._take(chunk, groups)
        self._monitor.add(as_sites(groups[SITES]), as_sites(groups[STATS]))

    def _take(self, chunk: Chunk, groups: Groups) -> None:
        before = self._state, self._num_sweeps, self._seconds
        self._state = chunk.state
        self._num_sweeps += chunk.num_sweeps
        self._seconds += chunk.seconds
        try:
            self._commit(groups)
        except BaseException:
            self._state, self._num_sweeps, self._seconds = before
            raise

    def _commit(self, groups: Groups) -> None:
        # all processes take part, of which only the first one stores
        state = as_arrays(self._loop.placement.to_host(self._state)) if self._is_stored else {}
        counts = {"num_sweeps": self._num_sweeps, "seconds": self._seconds}
        self._draws.append(groups, state, counts)

    def _step(self, max_draws: int | None) -> int:
        """Return the distance of the draws that are returned."""
        kept = self.num_draws - self.first_draw
        return 1 if max_draws is None else max(1, -(-kept // _at_least("max_draws", max_draws, 1)))

    def _check_draws(self, least: int = _LEAST_DRAWS) -> None:
        kept = self.num_draws - self.first_draw
        if kept < least:
            raise ValueError(
                f"there are {kept} draws of each chain after the burn-in, but at least {least} are "
                "needed: use extend() or until() first"
            )

    def _may_suffice(self, ess: float) -> bool:
        kept = self.num_draws - self.first_draw
        return kept >= _LEAST_DRAWS and kept * self._settings.num_chains >= ess

    def _suffices(self, rhat: float, ess: float) -> bool:
        table = self.diagnostics()
        moving = table[table["note"] != "constant"]
        self._last_check = Check(
            float(moving["r_hat"].max(skipna=False)),
            float(moving[["ess_bulk", "ess_tail"]].min(axis=None, skipna=False)),
        )
        if len(moving) == 0:
            return True
        one_chain = self._settings.num_chains == 1
        return self._last_check.ess >= ess and (one_chain or self._last_check.rhat <= rhat)


def _mesh_of(devices: Sequence[jax.Device] | None, mesh: Mesh | None) -> Mesh | None:
    if devices is None:
        return mesh
    if mesh is not None:
        raise ValueError("devices and mesh cannot both be given")
    return Mesh(np.array(devices), (CHAINS,))


def _settings_of(store: Store) -> _Settings:
    try:
        found = _Settings(**store.about["settings"])
        return found._replace(extra_fields=tuple(found.extra_fields))
    except (KeyError, TypeError) as error:
        raise StoreError(f"{store.path}: the settings of the run are damaged: {error}") from None


def _check_superchains(superchains: int | None, num_chains: int) -> int | None:
    if superchains is None:
        return None
    if _at_least("superchains", superchains, 2) > num_chains or num_chains % superchains:
        raise ValueError(
            f"num_chains must be a multiple of superchains, got {num_chains} and {superchains}"
        )
    return int(superchains)


def _at_least(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)
