"""A run of any NumPyro kernel, until its answer is good enough."""

import math
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Self

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh
from numpyro.infer import MCMC
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings._system import clock
from numpyro_rankings._system.interrupts import postponed_interrupts
from numpyro_rankings.infer.not_finite import NotFiniteError, check_not_stopped
from numpyro_rankings.posterior.diagnostics import CHANGES
from numpyro_rankings.posterior.draws import fitted_rankings
from numpyro_rankings.run.background import Background
from numpyro_rankings.run.convert import SITES, STATS, Groups, as_arrays, as_sites, as_state
from numpyro_rankings.run.errors import StoreError
from numpyro_rankings.run.fingerprint import describe
from numpyro_rankings.run.folder import folder_of
from numpyro_rankings.run.goals import Check, CheckSchedule, Diagnosed, check_goals
from numpyro_rankings.run.kernels import KernelTraits, check_kernel
from numpyro_rankings.run.loop import Chunk, SweepLoop
from numpyro_rankings.run.memory import Memory
from numpyro_rankings.run.monitor import Facts, Monitor, Quantities
from numpyro_rankings.run.placement import Placement, mesh_of
from numpyro_rankings.run.processes import agree, raise_in_all_processes
from numpyro_rankings.run.progress import Display, Figures, seconds_to_goals
from numpyro_rankings.run.results import (
    LEAST_DRAWS,
    READ_AT_ONCE,
    BurnIn,
    Results,
    at_one_moment,
    by_chain_or_not,
    check_burn_in,
    largest_burn_in,
)
from numpyro_rankings.run.same_run import changes_of, check_same
from numpyro_rankings.run.settings import (
    Settings,
    at_least,
    check_names,
    check_precision,
    settings_of,
)
from numpyro_rankings.run.store import Store
from numpyro_rankings.run.to_arviz import from_numpyro

# Functions import zarr and ArviZ, which take long to load and which not every run needs.

_DRAWS_TO_MOVE = 1000  # a kernel that has not moved in so many draws is given up


class Run(Results):
    """A run of several chains that goes on until its answer is good enough.

    ::

        with Run(SliceGibbs(), rankings, key=jax.random.key(0), store="ballots.run") as run:
            run.until(rhat=1.01, ess=400, minutes=10)
        print(run, run.verdict.headline)
        data = run.to_inference_data()

    A run consists of chunks of some seconds, each one call of a compiled program. After each the
    draws and the states of the chains are stored, and Ctrl-C is heeded. The draws do not depend on
    how the run is cut into chunks: a run that is killed and resumed has the same draws, to the last
    bit, as one that was left alone on the same machine with the same versions.

    No number of warm-up sweeps is needed: diagnostics and results are those of the last part of the
    draws, by default the second half, or more of them if the chains then agree. Kernels that adapt
    have their own warm-up before, whose sweeps are not kept.

    :param kernel: a kernel of this package, or any other of NumPyro.
    :param data: the arguments of its model.
    :param key: a random key.
    :param num_chains: number of chains, all in one program.
    :param superchains: number of points at which they start, each with as many chains; R-hat is
        then nested R-hat, which can tell that many short chains agree. By default every chain has a
        starting point of its own.
    :param store: a folder for the draws, in Zarr's format, which must not exist yet; ``None`` keeps
        them in memory. :func:`~numpyro_rankings.open_run` reads it without kernel and data.
    :param devices: the chains are spread over these devices, whose number must divide theirs; by
        default all are on one. For several CPU devices, set ``jax_num_cpu_devices`` first.
    :param mesh: instead of ``devices``, a mesh of devices with an axis ``"chains"``, an axis
        ``"rankings"``, or both. Along the latter the rows of the data and their labels are split,
        each identical ranking having a row of its own; :class:`~numpyro_rankings.infer.SliceGibbs`
        with ``assignment="parallel"`` and the Plackett–Luce kernels allow this.
    :param num_warmup: sweeps in which the kernel adapts; by default 0 for the kernels of this
        package, 200 for :class:`~numpyro_rankings.infer.TemperedMixture`, which alone of them
        adapts, and 1,000 for others.
    :param thinning: sweeps from one draw that is kept to the next.
    :param burn_in: share of the draws that is left out at their beginning. By default it is an
        eighth, or else a quarter, if all draws after it have an R-hat of at most 1.01 and an ESS of
        at least 50 for each chain, and half of them otherwise.
    :param quantities: a function of the samples, (chains, draws, …) by name, that returns the
        quantities to diagnose in the same form. The default is those that
        :func:`~numpyro_rankings.to_inference_data` names for the kernels of this package, and for
        others all sites of real numbers. Where a block of ``numpyro.infer.Gibbs`` draws labels,
        only sites of one number are diagnosed, and the sizes of the clusters.
    :param init_params: starting values, as for :meth:`numpyro.infer.MCMC.run` of several chains:
        arrays whose first axis is that of the starting points, also if there is one.
    :param extra_fields: further fields of the kernel's state to keep. Those that the verdict needs
        of HMC and NUTS (divergent transitions, number of steps, energy) are always kept.
    :param model_kwargs: keyword arguments of the model.
    :param overwrite: whether to replace a run that is in the store, once the first chunk of this
        one is stored.
    :param progress: whether it is shown how far the run is: in a notebook by a table that is
        renewed, in a terminal by a line.
    :raises ValueError: if an argument is out of range, or the data do not fit the kernel.
    :raises RuntimeError: if a chain of HMC, NUTS or the like finds no start of finite density.
    :raises StoreError: if the store exists, or cannot be written.
    """

    _draws: Store | Memory
    _remedy = ": use extend() or until() first"

    @raise_in_all_processes()
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
        burn_in: BurnIn = "auto",
        quantities: Quantities | None = None,
        init_params: Any = None,
        extra_fields: tuple[str, ...] = (),
        model_kwargs: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        progress: bool = True,
    ) -> None:
        check_kernel(kernel)
        traits = KernelTraits(kernel)
        folder = None if store is None else folder_of(store)
        fields = check_names("extra_fields", extra_fields)
        settings = Settings.of(
            key,
            num_chains=num_chains,
            superchains=superchains,
            num_warmup=traits.num_warmup if num_warmup is None else num_warmup,
            thinning=thinning,
            extra_fields=(*fields, *traits.fields_of_transitions),
        )
        traits.check_chains(num_chains, superchains)
        kwargs, mesh = dict(model_kwargs or {}), mesh_of(devices, mesh)
        about: dict[str, Any] = describe(kernel, data, kwargs, mesh, init_params)
        placement = Placement(traits, data, kwargs, mesh)
        loop = SweepLoop(traits, data, kwargs, placement, settings)
        self._set_up(loop, settings, burn_in, quantities, progress)
        is_first = jax.process_index() == 0
        if folder is not None and is_first:
            Store.check_new(folder, overwrite)  # before the chains start, which may take long
        self._start_chains(init_params)
        self._is_stored = folder is not None
        self._draws = Memory(keeps=folder is None)
        if folder is not None and is_first:
            self._draws = self._new_store(folder, about, overwrite)

    @classmethod
    def resume(
        cls,
        store: str | os.PathLike,
        kernel: MCMCKernel,
        *data: Any,
        devices: Sequence[jax.Device] | None = None,
        mesh: Mesh | None = None,
        burn_in: BurnIn = "auto",
        quantities: Quantities | None = None,
        init_params: Any = None,
        model_kwargs: Mapping[str, Any] | None = None,
        check: bool = True,
        progress: bool = True,
    ) -> "Run":
        """Continue a run in its store, in this or another process.

        What counts of a model is what it computes: its sites, their shapes and supports, the data
        in them and their log densities. How it is written, and what else the kernel was used for,
        does not matter.

        A note is given if the versions of the packages or the devices are not those of the run; its
        further draws are then right, but not to the last bit those that it would have had.

        :param store: the folder.
        :param kernel: a kernel with the settings of the first.
        :param data: the same data.
        :param devices: as in the constructor; may be others.
        :param mesh: as in the constructor; may be another.
        :param burn_in: as in the constructor; may be another.
        :param quantities: as in the constructor; may be another.
        :param init_params: as in the constructor, for kernels that cannot start without; the
            chains go on where they were.
        :param model_kwargs: as in the constructor.
        :param check: whether other data, another model and another kernel are refused. If not,
            there is a warning, and the store keeps what differs from the next draw on, as
            ``changes`` says.
        :param progress: as in the constructor.
        :raises StoreError: if the store is damaged or in use by another process, or if the data,
            the kernel, its settings or the precision of JAX are not those of the run; the message
            says which.
        """
        if jax.process_count() > 1:
            raise StoreError("a run is resumed by one process, not by several together")
        check_kernel(kernel)
        traits, kwargs = KernelTraits(kernel), dict(model_kwargs or {})
        traits.check_has_start(init_params)
        run, draws = cls.__new__(cls), Store.open(store)
        try:
            settings = settings_of(draws.path, draws.about)
            check_precision(draws.path, settings)
            mesh = mesh_of(devices, mesh)
            about = describe(kernel, data, kwargs, mesh, init_params)
            differences = check_same(draws.path, draws.about, about, check)
            run._draws, run._is_stored = draws, True
            placement = Placement(traits, data, kwargs, mesh)
            loop = SweepLoop(traits, data, kwargs, placement, settings)
            run._set_up(loop, settings, burn_in, quantities, progress)
            run._load(init_params)
            run._note(differences, about)
        except BaseException:
            draws.close()
            raise
        return run

    # -----------------------------------------------------------------------------------------
    # Sampling
    # -----------------------------------------------------------------------------------------

    @raise_in_all_processes()
    def extend(self, sweeps: int, after_chunk: "Callable[[Run], None] | None" = None) -> None:
        """Make further sweeps of each chain, and first those of the warm-up that are missing.

        :param sweeps: a multiple of ``thinning``.
        :param after_chunk: called with the run after each chunk.
        :raises KeyboardInterrupt: after the chunk in which Ctrl-C was pressed; the run can go on.
        :raises StoreError: if the draws cannot be stored, because the disk is full, or the folder
            was moved or removed. Those of earlier chunks are. Or if the run was closed.
        :raises ValueError: if the state of a chain is not finite, or a run in memory was closed.
        :raises RuntimeError: if there was an error in another of several processes, or another
            thread makes sweeps of this run.
        """
        with raise_in_all_processes():
            self._check_sweeps(sweeps)
        stop = self.num_draws + sweeps // self._settings.thinning
        with (
            postponed_interrupts() as check_interrupted,
            self._in_turn(),
            self._shown(lambda: self._figures_to(stop)) as show,
        ):
            while self.num_draws < stop:
                self._background.heed()
                self._make_chunk(stop - self.num_draws)
                with raise_in_all_processes():
                    show()
                    if after_chunk is not None:
                        after_chunk(self)
                    check_interrupted()

    @raise_in_all_processes()
    def until(
        self,
        rhat: float = 1.01,
        ess: float = 400,
        minutes: float = 10,
        after_chunk: "Callable[[Run], None] | None" = None,
    ) -> bool:
        """Make sweeps until the chains agree and their draws suffice, or the time is over.

        The run stops when in two successive checks R-hat (rank-normalised, split) of all quantities
        is at most ``rhat``, and their bulk and tail ESS at least ``ess``. The second check comes
        after the next chunk. A run whose draws suffice already is left as it is. Draws that are
        made until they look good enough are a little less good than they look; the documentation
        has figures.

        :param rhat: largest R-hat, of several chains.
        :param ess: least effective sample size of all chains together.
        :param minutes: time after which no further chunk begins.
        :param after_chunk: called with the run after each chunk.
        :return: whether both hold when the run stops, and no chain stands still.
        :raises KeyboardInterrupt, StoreError, ValueError: as :meth:`extend`. Also ValueError if a
            goal is out of range, or nothing can be diagnosed; then a store without a sweep goes.
        :raises RuntimeError: as :meth:`extend`, and if no chain has moved in 1,000 draws, which are
            kept.
        """
        with raise_in_all_processes():
            self._check_goals(rhat, ess, minutes)
        import pandas  # noqa: F401 - takes a second, which is not the time of a check

        start, in_a_row = clock.now(), 0

        def figures() -> Figures:
            left = 60 * minutes - (clock.now() - start)
            seconds = seconds_to_goals(self.last_check, (rhat, ess), self.seconds, left)
            return Figures.of(self, None, seconds)

        with (
            postponed_interrupts() as check_interrupted,
            self._in_turn(),
            self._shown(figures) as show,
        ):
            if self._holds(rhat, ess):
                return True
            while agree(clock.now() - start < 60 * minutes):
                start += self._background.heed()
                self._make_chunk(math.inf)
                if step := agree(self._step_due(in_a_row == 1)):
                    in_a_row = in_a_row + 1 if self._holds(rhat, ess, step) else 0
                with raise_in_all_processes():
                    show()
                    if after_chunk is not None:
                        after_chunk(self)
                    check_interrupted()
                if in_a_row == 2:
                    return True
                self._check_moves()
            return self._holds(rhat, ess)

    def start(
        self,
        sweeps: int | None = None,
        *,
        rhat: float | None = None,
        ess: float | None = None,
        minutes: float | None = None,
        after_chunk: "Callable[[Run], None] | None" = None,
    ) -> None:
        """Begin to make sweeps in a thread of its own, and return at once.

        ::

            run.start(rhat=1.01, ess=400, minutes=60)
            run.diagnostics(), run.to_inference_data()  # of the draws so far, at any time
            run.pause()
            run.proceed()
            run.wait()

        The draws are those of :meth:`extend` or :meth:`until`, to the last bit. What the run has is
        always that of complete chunks. The end of the program ends the run after its chunk: call
        :meth:`wait` before.

        :param sweeps: as :meth:`extend`; by default the run goes on as :meth:`until`, with its
            goals **rhat**, **ess** and **minutes**, which do not go with a number of sweeps.
        :param after_chunk: called in the thread.
        :raises StoreError, ValueError: as :meth:`extend` and :meth:`until`, of the arguments and
            before the first sweep. Other errors come out in :meth:`wait`.
        :raises RuntimeError: if sweeps are made already, or by several processes.
        """
        if jax.process_count() > 1:
            raise RuntimeError("start() is for one process: use until() or extend()")
        given = {"rhat": rhat, "ess": ess, "minutes": minutes}
        goals = {name: goal for name, goal in given.items() if goal is not None}
        if sweeps is not None and goals:
            raise ValueError(
                f"{sweeps} sweeps are made whatever R-hat, ESS and time are: leave out "
                f"{' and '.join(goals)}, or the number of sweeps"
            )
        with self._in_turn():
            if sweeps is None:
                self._check_goals(**goals)
            else:
                self._check_sweeps(sweeps)
            self._loop.prepare(self._state)
        self._display.begin(lambda: Figures.of(self))  # in the cell that is executed

        def work() -> bool | None:
            if sweeps is None:
                return self.until(**goals, after_chunk=after_chunk)
            return self.extend(sweeps, after_chunk)

        self._background.start(work)

    def pause(self) -> None:
        """Let a run that was started rest, and return once its chunk is complete.

        The time of the pause does not count for ``minutes``.
        """
        self._background.pause()

    def proceed(self) -> None:
        """Let a run go on that rests."""
        self._background.proceed()

    def wait(self, timeout: float | None = None) -> bool | None:
        """Wait until a run that was started has ended. Ctrl-C ends the waiting, but not the run.

        :param timeout: seconds after which the waiting ends.
        :return: what :meth:`until` returns; None of a number of sweeps, and of a run that was never
            started; False of one that was aborted.
        :raises TimeoutError: if it has not ended by then; it goes on.
        :raises RuntimeError: if it rests, so that it would never end.

        It raises what was raised in the thread, such as StoreError and what :meth:`until` raises.
        """
        return self._background.wait(timeout)

    def abort(self) -> None:
        """End a run that was started, and return once its chunk is complete; its draws are kept.

        An error in the thread is raised, unless :meth:`wait` has raised it.
        """
        self._background.abort()

    @property
    def is_running(self) -> bool:
        """Whether a run that was started has not ended yet, also while it rests."""
        return self._background.is_running

    @at_one_moment
    def check(self) -> Check:
        """Compute the largest R-hat and the least ESS of the draws after the burn-in.

        :raises ValueError: if there are too few draws.
        """
        self._check_draws()
        num_draws, known = self.num_draws, self._diagnosed
        is_known = known is not None and known.num_draws == num_draws
        return self._checks.make(self._diagnose, num_draws, self.seconds, is_known=is_known)

    def check_if_due(self) -> None:
        """Call :meth:`check` if there are draws enough, for at most a tenth of the time.

        Where it would take longer, it is a check of every second, third, … of the draws.
        """
        if step := self._step_due(False):
            self._check(step)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled: of two, each would make the same draws."""
        raise TypeError(
            "a Run cannot be copied or pickled: copy or pickle its draws, get_samples() or "
            "to_inference_data(), or give it a store, which open_run reads and Run.resume goes on "
            "with"
        )

    def close(self) -> None:
        """Give the store back, so that another process can resume the run.

        The draws can still be read, but there are no further ones. It is also what ends
        ``with Run(…) as run:``, whether or not there was an error. A run that was started is
        aborted.
        """
        try:
            self._background.abort()
        finally:
            self._draws.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -----------------------------------------------------------------------------------------
    # Results
    # -----------------------------------------------------------------------------------------

    @property
    def last_check(self) -> Check | None:
        """The latest :meth:`check`, of which :meth:`until` makes many; None before the first."""
        return self._checks.last

    @property
    @at_one_moment
    def num_clusters(self) -> np.ndarray | None:
        """The number of clusters of each chain in its last draw, None of other kernels."""
        return self._monitor.latest("num_clusters")

    @property
    @at_one_moment
    def num_divergent(self) -> np.ndarray | None:
        """Number of divergent transitions of each chain in all draws, None of other kernels."""
        return self._monitor.num_divergent

    @property
    @at_one_moment
    def overflow(self) -> float | None:
        """Share of the draws after the burn-in that needed more clusters than there are slots.

        None of kernels without slots, and of those of other packages.
        """
        if not self._monitor.overflow(0.0):
            return self._monitor.overflow(0.0)
        return self._monitor.overflow(self._share_left_out())

    @at_one_moment
    def get_samples(
        self, group_by_chain: bool = False, max_draws: int | None = None
    ) -> dict[str, np.ndarray]:
        """Return the draws after the burn-in, by site.

        :param group_by_chain: whether they are (chains, draws, …) or (chains · draws, …).
        :param max_draws: of each chain: if there are more, only every second, third, … is returned.
        """
        samples = as_sites(self._draws.read(SITES, self.first_draw, step=self._step(max_draws)))
        return by_chain_or_not(samples, group_by_chain)

    @at_one_moment
    def as_mcmc(self, max_draws: int | None = None) -> MCMC:
        """Return the draws after the burn-in as an :class:`numpyro.infer.MCMC` that has run.

        Everything that takes such an object then takes the run.

        :param max_draws: as for :meth:`get_samples`.
        :raises ValueError: if there are no draws.
        """
        self._check_draws(1)
        loop, settings, step = self._loop, self._settings, self._step(max_draws)
        sites = self.get_samples(group_by_chain=True, max_draws=max_draws)
        stats = as_sites(self._draws.read(STATS, self.first_draw, step=step))
        thinning = settings.thinning * step
        # MCMC maps over chains those kernels that this run maps over them, as their states are
        is_mapped = settings.num_chains > 1 and not loop.traits.takes_chains
        mcmc = MCMC(
            loop.kernel,
            num_warmup=0,
            num_samples=next(iter(sites.values())).shape[1] * thinning,
            num_chains=settings.num_chains,
            thinning=thinning,
            chain_method=jax.vmap if is_mapped else "vectorized",
            progress_bar=False,
        )
        sites_in_form = loop.in_form(sites, self._state)
        mcmc._states = {loop.kernel.sample_field: sites_in_form, **stats}
        state = loop.placement.to_host(self._state)
        is_one = settings.num_chains == 1  # MCMC has no axis for a single chain
        mcmc._last_state = jax.tree.map(lambda x: x[0], state) if is_one else state
        mcmc._args, mcmc._kwargs = loop.args, loop.kwargs
        return mcmc

    def to_inference_data(self, max_draws: int | None = None, **options: Any) -> Any:
        """Convert the draws after the burn-in to ArviZ.

        :param max_draws: as for :meth:`get_samples`.
        :param options: of :func:`~numpyro_rankings.to_inference_data` for the kernels of this
            package, by themselves or as the one block of :class:`numpyro.infer.Gibbs`, where the
            rankings need not be given, and otherwise of :func:`arviz.from_numpyro`. xarray has no
            names with a slash: a site ``a/b`` of a model of the user's is ``a%2Fb``, with a
            warning, and beside such a site a block is converted as a kernel of another package.
        :raises ValueError: if there are no draws.
        """
        return self._with_changes(self._to_inference_data(max_draws, options))

    def _to_inference_data(self, max_draws: int | None, options: dict[str, Any]) -> Any:
        mcmc, traits = self.as_mcmc(max_draws), self._loop.traits
        fitted = traits.fitted
        if traits.block is not None and any("/" in x for x in mcmc._states[traits.sample_field]):
            fitted = None  # to_inference_data cannot change the names of a user's sites
        if fitted is None:
            return from_numpyro(mcmc, **options)
        from numpyro_rankings.posterior.inference_data import to_inference_data

        if (rankings := fitted_rankings(fitted, mcmc._args, mcmc._kwargs)) is not None:
            options = {"rankings": rankings, **options}
        return to_inference_data(mcmc, **options)

    # -----------------------------------------------------------------------------------------
    # Beginning, or going on
    # -----------------------------------------------------------------------------------------

    def _set_up(
        self,
        loop: SweepLoop,
        settings: Settings,
        burn_in: BurnIn,
        quantities: Quantities | None,
        progress: bool,
    ) -> None:
        self._loop, self._settings = loop, settings
        self._burn_in = check_burn_in(burn_in)
        facts = Facts.of(loop.traits, loop.args, loop.kwargs)
        self._monitor = Monitor(facts, quantities, settings.superchains)
        self._num_chains, self._num_sweeps, self._seconds = settings.num_chains, 0, 0.0
        self._kernel = loop.traits.name
        self._turn, self._look = threading.RLock(), threading.RLock()
        self._background, self._display = Background(), Display(progress)
        self._changes: list[dict[str, Any]] = []
        self._checks = CheckSchedule()

    def _start_chains(self, init_params: Any) -> None:
        """Let the chains start, and refuse a state without sites, or without fields asked for."""
        self._state = self._init(init_params)
        try:
            has_sites = bool(jax.tree.leaves(self._loop.sites_of(self._state)))
        except AttributeError:
            has_sites = True  # it has no such field, which is told below
        if not has_sites:
            raise ValueError(self._loop.lacks_site() or "the kernel has no site to sample")
        for arrays in self._loop.empty_groups(self._state).values():
            _check_axes(arrays)
        self._monitor.watch(self._loop.named_sites(self._state))
        self._loop.check_start(self._state, init_params)

    def _init(self, init_params: Any, compiles: bool = True) -> Any:
        starts = self._settings.num_starts
        for x in jax.tree.leaves(init_params):
            if np.shape(x)[:1] != (starts,):
                raise ValueError(
                    f"init_params must have an axis of {starts} starting points first: got an "
                    f"array of shape {np.shape(x)}"
                )
        try:
            return self._loop.init(init_params, compiles)
        except Exception:
            if words := self._loop.lacks_site():  # some kernels then fail in words of JAX
                raise ValueError(words) from None
            raise

    def _new_store(self, folder: Path, about: dict[str, Any], overwrite: bool) -> Store:
        """Make a store with the state of the chains before the first sweep."""
        sites = self._loop.sites_of(self._state)
        names = list(sites) if isinstance(sites, dict) else []
        diagnosed = self._monitor.facts.as_json(names)
        about = {**about, "settings": self._settings._asdict(), "diagnosed": diagnosed}
        about["id"] = uuid.uuid4().hex  # what reads the store sees by it whether it is replaced
        store = Store.create(folder, about, overwrite)
        try:
            state = as_arrays(self._loop.placement.to_host(self._state))
            store.append({}, state, {"num_sweeps": 0, "seconds": 0.0})
        except BaseException:  # nothing is lost with it
            store.discard()
            raise
        return store

    def _load(self, init_params: Any) -> None:
        """Take the newest state of the store, and the quantities of its draws."""
        draws = self._draws
        assert isinstance(draws, Store)
        arrays, counts = draws.read_state()
        try:
            self._settings.random_key()
        except ValueError as error:
            raise StoreError(
                f"{draws.path}: the settings of the run are damaged: {error}"
            ) from None
        # kernels learn of their data in init, whose state shows what the stored one must be like
        # nothing is compiled, because many only read the draws
        like = self._init(init_params, compiles=False)
        try:
            self._state = as_state(arrays, like)
        except ValueError as error:
            raise StoreError(f"{draws.path}: the state of the chains is damaged: {error}") from None
        if name := self._loop.site_with_nan(self._state):
            raise StoreError(f"{draws.path}: the state of the chains is not finite ({name})")
        self._num_sweeps, self._seconds = counts["num_sweeps"], counts["seconds"]
        self._check_stored(draws, like)
        self._monitor.watch(self._loop.named_sites(self._state))
        self._catch_up()

    def _check_stored(self, draws: Store, state: Any) -> None:
        """Refuse draws that are not such as the kernel makes."""
        try:
            expected = self._loop.empty_groups(state)
        except ValueError as error:
            raise StoreError(f"{draws.path}: {error}") from None
        for group, arrays in expected.items() if self.num_draws else ():
            stored, made = _shapes(draws.read(group, 0, 0)), _shapes(arrays)
            if stored != made:
                raise StoreError(f"{draws.path}: {group} is damaged: it has {stored}, not {made}")

    def _note(self, differences: list[str], about: dict[str, Any]) -> None:
        """Take the changes of the store, and keep those that are new for its next draws."""
        draws = self._draws
        assert isinstance(draws, Store)
        self._changes = changes_of(draws.path, draws.about)
        if differences:
            self._changes.append({"num_draws": self.num_draws, "differences": differences})
            draws.set_about({**draws.about, **about, CHANGES: self._changes})

    # -----------------------------------------------------------------------------------------
    # Chunks
    # -----------------------------------------------------------------------------------------

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Refuse to make sweeps while another thread does, whose draws would come twice."""
        if self._background.is_running and not self._background.is_here:
            raise RuntimeError("this run goes on already: wait() for it, or abort() it")
        if not self._turn.acquire(blocking=False):
            raise RuntimeError("another thread makes sweeps of this run: wait for it")
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def _shown(self, figures: Callable[[], Figures]) -> Iterator[Callable[[], None]]:
        """Show how far the run is, at most twice a second, and at the end."""
        self._display.begin(figures)

        def show() -> None:
            if self._display.is_due():
                self.check_if_due()
                self._display.show(figures())

        try:
            yield show
        finally:
            self._display.end(figures)

    def _figures_to(self, stop: int) -> Figures:
        """Return the figures of a run that will have so many draws."""
        total = self._settings.num_warmup + stop * self._settings.thinning
        if self.num_sweeps == 0:
            return Figures.of(self, total)
        left = (total - self.num_sweeps) * self.seconds / self.num_sweeps
        return Figures.of(self, total, left)

    def _make_chunk(self, at_most: float) -> None:
        """Make a chunk: of the warm-up while it lasts, then of draws."""
        missing = self._settings.num_warmup - self._num_sweeps
        if missing > 0:
            chunk = self._loop.warm_up(self._state, missing)
        else:
            chunk = self._loop.draw(self._state, self.num_draws, at_most)
        # all processes take part, of which only the first one stores
        state = self._loop.placement.to_host(chunk.state) if self._is_stored else None
        with raise_in_all_processes(), self._look:
            if missing > 0:
                self._advance_to(chunk, {SITES: {}, STATS: {}}, state)
                return
            groups = self._loop.groups_of(chunk.draws)
            self._catch_up()  # if the user has interrupted the last chunk after it was stored
            check_not_stopped(self._loop.kernel, groups[SITES])
            if name := self._loop.site_with_nan(chunk.state if state is None else state):
                kernel = self._loop.traits.name
                raise NotFiniteError(f"{kernel} has stopped: site {name!r} is not finite")
            # before the draws are stored, because a function of the user's may fail
            batch = self._monitor.take(as_sites(groups[SITES]), as_sites(groups[STATS]))
            self._advance_to(chunk, groups, state)
            self._monitor.add(batch)

    def _advance_to(self, chunk: Chunk, groups: Groups, state: Any) -> None:
        """Keep a chunk, with its state on the host for a store, or leave all as it was."""
        before, num_draws = (self._state, self._num_sweeps, self._seconds), self.num_draws
        self._state = chunk.state
        self._num_sweeps += chunk.num_sweeps
        self._seconds += chunk.seconds
        try:
            if isinstance(self._draws, Memory):
                self._draws.append(groups)
            else:
                counts = {"num_sweeps": self._num_sweeps, "seconds": self._seconds}
                self._draws.append(groups, as_arrays(state), counts)
        except BaseException:
            if self.num_draws == num_draws:  # nothing was stored
                self._state, self._num_sweeps, self._seconds = before
            raise

    def _catch_up(self) -> None:
        """Give the monitor the draws that it does not have."""
        draws = self._draws
        for start in range(self._monitor.num_draws, draws.num_draws, READ_AT_ONCE):
            stop = min(start + READ_AT_ONCE, draws.num_draws)
            sites, stats = draws.read(SITES, start, stop), draws.read(STATS, start, stop)
            self._monitor.add(self._monitor.take(as_sites(sites), as_sites(stats)))

    # -----------------------------------------------------------------------------------------
    # Checks
    # -----------------------------------------------------------------------------------------

    @property
    def _doing(self) -> str:  # type: ignore[override]
        return self._background.state

    def _recorded_changes(self) -> list[dict[str, Any]]:
        return self._changes

    def _diagnose_anew(self, step: int = 1) -> Diagnosed:
        self._catch_up()
        return super()._diagnose_anew(step)

    def _check_sweeps(self, sweeps: int) -> None:
        self._draws.check_writable()
        thinning = self._settings.thinning
        if at_least("sweeps", sweeps, 0) % thinning:
            raise ValueError(f"sweeps must be a multiple of the thinning, {thinning}: got {sweeps}")

    def _check_goals(self, rhat: float = 1.01, ess: float = 400, minutes: float = 10) -> None:
        self._draws.check_writable()
        kept = self._monitor.LEAST_KEPT * (1 - largest_burn_in(self._burn_in))
        check_goals(rhat, ess, minutes, kept * self._settings.num_chains)
        self._check_diagnosable()

    def _check_diagnosable(self) -> None:
        """Refuse a model of which nothing can be diagnosed, and leave no store without a sweep."""
        try:
            empty = self._loop.empty_groups(self._state)
            self._monitor.check_any(as_sites(empty[SITES]))
        except ValueError:
            if self._num_sweeps == 0 and isinstance(self._draws, Store):
                self._draws.discard()
            raise

    def _has_draws_to_check(self) -> bool:
        return self.num_draws - int(largest_burn_in(self._burn_in) * self.num_draws) >= LEAST_DRAWS

    def _step_due(self, again: bool) -> int:
        """Return the distance of the draws of which a check is due, 0 if none is."""
        if not self._has_draws_to_check():
            return 0
        if again:  # like the latest, at once
            return self._checks.latest_step
        return self._checks.step(self.num_draws, self.seconds)

    @at_one_moment
    def _check(self, step: int) -> None:
        if step == 1:
            self.check()
        else:
            num_draws, seconds = self.num_draws, self.seconds
            self._checks.make(lambda: self._diagnose_anew(step), num_draws, seconds, step)

    def _holds(self, rhat: float, ess: float, step: int = 1) -> bool:
        """Whether a check of the draws is good enough, in the first process."""
        if not self._has_draws_to_check():
            return False
        if not self._checks.is_of(self.num_draws):
            with raise_in_all_processes():
                self._check(step)
        return bool(agree(self._suffices(rhat, ess)))

    def _check_moves(self) -> None:
        """Give up if no chain has ever changed a site that is continuous."""
        sites = self._monitor.never_moved()
        if sites and self.num_draws >= _DRAWS_TO_MOVE:
            raise RuntimeError(
                f"{self._loop.traits.name} does not move: {' and '.join(sites[:3])} had "
                f"the same value in all {self.num_draws} draws of each chain. Start elsewhere, or "
                "use another kernel"
            )

    def _suffices(self, rhat: float, ess: float) -> bool:
        """Whether the latest check is good enough."""
        check, num_chains = self._checks.last, self._settings.num_chains
        assert check is not None
        burn_in = self._checks.burn_in
        num_kept = self.num_draws - int(burn_in * self.num_draws)
        if self._monitor.still(burn_in) or num_kept * num_chains < ess:
            return False
        return check.suffices(rhat, ess, num_chains)


def _check_axes(arrays: dict[str, np.ndarray]) -> None:
    """Refuse sites with the names of axes, whose draws xarray would take for these and drop."""
    axes = {f"{name}_dim_{k}" for name, x in arrays.items() for k in range(x.ndim - 2)}
    if taken := sorted(({"chain", "draw"} | axes) & arrays.keys()):
        raise ValueError(
            f"the name {taken[0]!r} is that of an axis of the draws in ArviZ and xarray: give the "
            "site another one"
        )


def _shapes(arrays: dict[str, np.ndarray]) -> dict[str, str]:
    return {name: f"{x.dtype} {x.shape}" for name, x in sorted(arrays.items())}
