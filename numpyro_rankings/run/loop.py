"""The compiled loop over sweeps of all chains."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import PartitionSpec
from numpyro.infer.gibbs import latent_sample_sites, prototype_trace
from numpyro.util import nested_attrgetter

from numpyro_rankings._system import clock
from numpyro_rankings._system.memory import USABLE, TooLittleMemoryError, device_memory
from numpyro_rankings.infer.base import telling_of_state
from numpyro_rankings.run.convert import Groups, as_groups, by_name, is_key, is_real
from numpyro_rankings.run.kernels import KernelTraits, energies_of
from numpyro_rankings.run.placement import Placement
from numpyro_rankings.run.processes import agree
from numpyro_rankings.run.settings import Settings

_BUFFER_BYTES = 2**26  # the draws of one chunk take at most this
_MOST_DRAWS = 2**16  # one chunk has at most so many
_FIRST_DRAWS = 16  # at most at first, then as many as there are already
_SECONDS = 2.0  # a chunk aims at this length
_MANY_CHAINS = 10_000  # more of them are tried for their memory before they start
_COPIES, _LEAST_BYTES = 3, 16  # of the state of a chain: before and after a sweep, and a draw of it
_LEAST_SECONDS = 1e-9  # a draw counts as this where the clock shows nothing
_ARRAYS = jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct


class Chunk(NamedTuple):
    """Some successive draws.

    - **draws** - for each field of the state, arrays that begin with (chains, draws).
    - **state** - the state of the kernel after them; every array begins with the chains.
    - **num_sweeps** - the number of sweeps of each chain.
    - **seconds** - the time that they took, without compilation.
    """

    draws: dict[str, Any]
    state: Any
    num_sweeps: int
    seconds: float


class LastProgram:
    """The program of the last run, for a next one of the same kernel and of data of its shapes.

    No more than one is kept, because each takes tens of megabytes.

    - **num_compiled** - number of programs that were compiled.
    """

    def __init__(self) -> None:
        self._key: Any = None
        self._compiling: _Compiling | None = None
        self.num_compiled = 0

    def find(self, key: Any, compile_it: Callable[[], "_Compiling"]) -> "_Compiling":
        """Return the program of this key; one that failed to compile is compiled again."""
        if self._compiling is None or self._compiling.has_failed or key != self._key:
            self._key = self._compiling = None  # before there are two
            self._compiling, self._key = compile_it(), key
            self.num_compiled += 1
        return self._compiling


_last_program: ContextVar[LastProgram | None] = ContextVar("last_program", default=None)


@contextmanager
def sharing_programs() -> Iterator[LastProgram]:
    """Let a run use the program of the one before it, if kernel, shapes and devices are the same.

    The kernel has to be the same object. What it learns of its data must be in the arguments of the
    model, as it is for the kernels of this package.
    """
    last = LastProgram()
    token = _last_program.set(last)
    try:
        yield last
    finally:
        _last_program.reset(token)


class SweepLoop:
    """Makes any number of sweeps of all chains with one compiled program.

    The number of sweeps is an argument of the program, so chunks of all lengths share it, and a
    draw does not depend on how the run is cut into chunks.
    """

    def __init__(
        self,
        traits: KernelTraits,
        args: tuple,
        kwargs: dict,
        placement: Placement,
        settings: Settings,
    ) -> None:
        self.traits, self.kernel = traits, traits.kernel
        self.args, self.kwargs = args, kwargs
        self.placement, self._settings = placement, settings
        placement.check_chains(settings.num_chains)
        leaves, self._structure = jax.tree.flatten(placement.round_data(args, kwargs))
        # numbers and words stay static, since a model may need their values
        self._static = [None if _is_array(x) else (x,) for x in leaves]
        self._arrays = _arrays_of(leaves)
        fields = self.kernel.sample_field, *self.kernel.default_fields, *settings.extra_fields
        self._fields = tuple(dict.fromkeys(fields))
        self._program: Callable | None = None
        self._compiling: _Compiling | None = None
        self._capacity = 1
        self._sweep_seconds: float | None = None

    def init(self, init_params: Any, compiles: bool) -> Any:
        """Return the state of all chains before the first sweep.

        The program of the sweeps may be compiled meanwhile, of a kernel that tells of its state.
        """
        self._check_memory(init_params)
        keys = self._settings.starting_keys()
        copies = self._settings.num_chains // len(keys)

        def repeat(state: Any) -> Any:
            return state if copies == 1 else jax.tree.map(lambda x: _repeat(x, copies), state)

        def compile_ahead(state: Any) -> None:
            self.prepare(jax.eval_shape(repeat, state))

        # a kernel of another package may have kernels of this one as parts, which tell of theirs
        compiles = compiles and self.traits.is_own
        with telling_of_state(compile_ahead) if compiles else nullcontext():
            state = repeat(self._start_all(keys, self.placement.round_start(init_params)))
            return self.placement.to_host(state)

    def _check_memory(self, init_params: Any) -> None:
        """Refuse more chains than there is memory for, with which XLA would abort the process."""
        num_chains = self._settings.num_chains
        if num_chains <= _MANY_CHAINS:
            return
        size = _LEAST_BYTES
        if not self.traits.is_ensemble:  # which would learn another number of chains
            keys = self._settings._replace(num_chains=2, superchains=None).starting_keys()
            state = self._start_all(keys, jax.tree.map(lambda x: x[:2], init_params))
            size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state)) // 2
        needed, free = _COPIES * size * num_chains, device_memory()
        if free is not None and needed > USABLE * free:
            raise TooLittleMemoryError(
                f"{num_chains:,} chains need about {needed / 1e9:,.1f} GB of memory, but only "
                f"{free / 1e9:,.1f} GB is free: lower num_chains"
            )

    def _start_all(self, keys: Array, params: Any) -> Any:
        start = self._start if self.traits.takes_chains else jax.vmap(self._start)
        return start(keys, params)

    def _start(self, key: Array, params: Any) -> Any:
        args, kwargs = self._arguments(self._arrays)
        return self.kernel.init(
            key, self._settings.num_warmup, params, model_args=args, model_kwargs=kwargs
        )

    def check_start(self, state: Any, init_params: Any) -> None:
        """Refuse chains that start where the density or its gradient is not finite.

        A kernel that is mapped over the chains cannot tell, so it starts once more, alone.
        """
        energies = energies_of(self.kernel, state)
        is_finite = [jnp.isfinite(x).reshape(len(x), -1).all(1) for x in energies]
        chains = np.flatnonzero(~np.all(is_finite, axis=0)) if is_finite else np.zeros(0, int)
        if not len(chains):
            return
        if init_params is None:
            keys = self._settings.starting_keys()
            self._start(keys[chains[0] * len(keys) // len(is_finite[0])], None)
        names = ", ".join(str(chain + 1) for chain in chains)
        raise RuntimeError(
            "Cannot find valid initial parameters. Please check your model again: the density or "
            f"its gradient is not finite where chain {names} of {len(is_finite[0])} starts"
        )

    def lacks_site(self) -> str | None:
        """Say that the model has nothing that the kernel could sample; None if it has."""
        model = getattr(self.kernel, "model", None)
        if model is None:
            return None
        trace = prototype_trace(model, jax.random.key(0), *self._arguments(self._arrays))
        sites = latent_sample_sites(trace)
        if not sites:
            return "the model has no site to sample"
        if not self.traits.needs_continuous_sites:
            return None
        if not all(trace[name]["fn"].support.is_discrete for name in sites):
            return None
        return f"the model has no continuous site to sample, only discrete ones: {', '.join(sites)}"

    def sites_of(self, state: Any) -> Any:
        """Return the sites of a state, in the form that the kernel has them."""
        return nested_attrgetter(self.kernel.sample_field)(state)

    def named_sites(self, state: Any) -> dict[str, Any]:
        """Return the sites of a state by name."""
        return by_name(self.sites_of(state), self.kernel.sample_field)

    def in_form(self, sites: dict[str, np.ndarray], state: Any) -> Any:
        """Return draws in the form that the sites have in the state, where they have no names."""
        names = list(self.named_sites(state))
        if set(names) != set(sites):  # there are deterministic sites of a model too
            return sites
        structure = jax.tree.structure(self.sites_of(state))
        return jax.tree.unflatten(structure, [sites[name] for name in names])

    def site_with_nan(self, state: Any) -> str | None:
        """Return the name of a site of a state that has a NaN, which kernels do not recover from.

        Sites that are split over processes are not looked at: those of this package mark them.
        """
        for name, x in self.named_sites(state).items():
            if getattr(x, "is_fully_addressable", True) and is_real(x) and np.isnan(x).any():
                return name
        return None

    def groups_of(self, draws: dict[str, Any]) -> Groups:
        """Return draws as arrays by name, by group of the store."""
        return as_groups(draws, self.kernel.sample_field)

    def empty_groups(self, state: Any) -> Groups:
        """Return arrays like those of draws, with none in them."""
        one = self._shapes_of_draw(state)
        none = jax.tree.map(lambda x: np.empty((x.shape[0], 0, *x.shape[1:]), x.dtype), one)
        return self.groups_of(none)

    def prepare(self, state: Any) -> None:
        """Begin to compile the sweeps, which are traced here: with the settings of this thread."""
        if self._program is None and self._compiling is None:
            self._compiling = self._compile(self.placement.shapes_of(state))

    def warm_up(self, state: Any, num_sweeps: int) -> Chunk:
        """Make a chunk of sweeps without keeping any, as long as time allows, at most this many."""
        return self._advance(state, num_sweeps, 1)

    def draw(self, state: Any, num_before: int, at_most: float) -> Chunk:
        """Make a chunk of draws, as many as time allows, and at most twice as many as there are."""
        at_most = min(at_most, max(_FIRST_DRAWS, num_before))
        return self._advance(state, int(at_most), self._settings.thinning)

    def _advance(self, state: Any, at_most: int, thinning: int) -> Chunk:
        put = self.placement
        state = put.put_state(state)
        program = self._compiled(state)
        num_draws = agree(min(self._num_draws(thinning), at_most))
        start = clock.now()
        numbers = put.put_number(num_draws), put.put_number(thinning)
        state, buffers = program(state, *numbers, self._arrays)
        jax.block_until_ready(state)
        seconds = clock.now() - start
        self._sweep_seconds = seconds / (num_draws * thinning)
        # copies, since views would keep the buffers in memory
        buffers = put.to_host(buffers, num_draws)
        draws = jax.tree.map(lambda x: np.moveaxis(np.asarray(x)[:num_draws], 0, 1).copy(), buffers)
        return Chunk(draws, state, num_draws * thinning, seconds)

    def _num_draws(self, thinning: int) -> int:
        if self._sweep_seconds is None:
            return 1  # to learn how long a sweep takes
        seconds = max(self._sweep_seconds * thinning, _LEAST_SECONDS)
        return int(np.clip(_SECONDS / seconds, 1, self._capacity))

    def _compiled(self, state: Any) -> Callable:
        if self._program is None:
            ahead, self._compiling = self._compiling, None
            self._program = (ahead or self._compile(state)).result()
        return self._program

    def _compile(self, state: Any) -> "_Compiling":
        self._place(state)
        last = _last_program.get()
        if last is None:
            return _Compiling(self._lower(state))
        return last.find(self._key_of_program(state), lambda: _Compiling(self._lower(state)))

    def _key_of_program(self, state: Any) -> tuple:
        """Return all that the program depends on."""
        leaves, structure = jax.tree.flatten((state, self._arrays))
        shapes = [(x.shape, x.dtype, getattr(x, "weak_type", False)) for x in leaves]
        static = [None if one is None else (type(one[0]), *one) for one in self._static]
        put = self.placement
        places = put.mesh, put.splits_rankings
        own = self.kernel, self._structure, static, self._fields, self._capacity
        return *own, *places, structure, shapes

    def _place(self, state: Any) -> None:
        """Put the data on the devices, and choose the size of the buffers."""
        example = self._shapes_of_draw(state)
        size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(example))
        self._capacity = int(np.clip(_BUFFER_BYTES // max(1, size), 1, _MOST_DRAWS))
        put = self.placement
        data = put.put_data(self.args, self.kwargs)
        self._arrays = _arrays_of(jax.tree.leaves(data))

    def _lower(self, state: Any) -> Any:
        put = self.placement
        numbers = put.put_number(1), put.put_number(1)
        return self._jitted(state).lower(state, *numbers, self._arrays)

    def _jitted(self, state: Any) -> Any:
        put = self.placement
        if put.mesh is None:
            return jax.jit(self._loop)
        if put.splits_rankings:
            # sums over rankings become sums over devices
            draws = jax.eval_shape(self._collect, state, self._arrays)
            shardings = put.shardings_of(state), put.shardings_of(draws, (None,))
            return jax.jit(self._loop, out_shardings=shardings)
        everywhere = PartitionSpec()
        return jax.jit(
            jax.shard_map(
                self._loop,
                mesh=put.mesh,
                in_specs=(put.chains, everywhere, everywhere, everywhere),
                out_specs=(put.chains, PartitionSpec(None, *put.chains)),
                check_vma=False,
            )
        )

    def _loop(self, state: Any, num_draws: Array, thinning: Array, arrays: list) -> tuple[Any, Any]:
        """Return the last state, and the draws in the first rows of buffers."""
        one = jax.eval_shape(self._collect, state, arrays)
        buffers = jax.tree.map(lambda x: jnp.zeros((self._capacity, *x.shape), x.dtype), one)

        def draw(i: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            state, buffers = carry
            state = lax.fori_loop(0, thinning, lambda _, s: self._sweep(s, arrays), state)
            values = self._collect(state, arrays)
            return state, jax.tree.map(lambda b, x: b.at[i].set(x), buffers, values)

        return lax.fori_loop(0, num_draws, draw, (state, buffers))

    def _sweep(self, state: Any, arrays: list) -> Any:
        args, kwargs = self._arguments(arrays)
        if self.traits.takes_chains:
            return self.kernel.sample(state, args, kwargs)
        return jax.vmap(lambda one: self.kernel.sample(one, args, kwargs))(state)

    def _collect(self, state: Any, arrays: list) -> dict[str, Any]:
        args, kwargs = self._arguments(arrays)
        collected = {field: nested_attrgetter(field)(state) for field in self._fields}
        sites = self.kernel.sample_field
        postprocess = self.kernel.postprocess_fn(args, kwargs)
        collected[sites] = jax.vmap(postprocess)(collected[sites])
        return collected

    def _shapes_of_draw(self, state: Any) -> dict[str, Any]:
        for field in self._fields:
            try:
                value = nested_attrgetter(field)(state)
            except (AttributeError, KeyError, TypeError, IndexError):
                value = None
            if field != self.kernel.sample_field:
                _check_field(field, value, state)
            elif value is None:
                raise ValueError(f"the state of the kernel has no field {field!r}")
        return jax.eval_shape(self._collect, state, self._arrays)

    def _arguments(self, arrays: list) -> tuple[tuple, dict]:
        leaves = [x if one is None else one[0] for x, one in zip(arrays, self._static, strict=True)]
        return jax.tree.unflatten(self._structure, leaves)


class _Compiling:
    """A program that is compiled in a thread.

    The end of the process awaits it, because to end the thread within XLA would abort the process.
    Tracing is left to the caller's thread, whose settings it needs.
    """

    def __init__(self, lowered: Any) -> None:
        self._lowered: Any = lowered
        self._program: Callable | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._compile)
        self._thread.start()

    def _compile(self) -> None:
        try:
            self._program = self._lowered.compile()
        except BaseException as error:  # for the caller, who awaits the result
            self._error = error
        finally:
            self._lowered = None  # and the data that it was traced with

    @property
    def has_failed(self) -> bool:
        """Whether there was an error."""
        return self._error is not None

    def result(self) -> Callable:
        """Return the compiled program."""
        self._thread.join()
        if self._program is None:
            raise self._error or RuntimeError("the program was not compiled")
        return self._program


def _check_field(field: str, value: Any, state: Any) -> None:
    """Raise ValueError unless a field of the state is an array of numbers."""
    if isinstance(value, _ARRAYS):
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            raise ValueError(f"{field!r} cannot be kept with the draws: it is a random key")
        return
    if any(isinstance(x, _ARRAYS) for x in jax.tree.leaves(value)):
        parts = getattr(value, "_fields", None) or list(value)
        raise ValueError(
            f"field {field!r} has several arrays: name one of them, such as '{field}.{parts[0]}'"
        )
    names = getattr(state, "_fields", None)
    has = f"; it has {', '.join(names)}" if names else ""
    raise ValueError(f"the state of the kernel has no field {field!r}{has}")


def _repeat(x: Array, copies: int) -> Array:
    """Repeat each chain; the copies of its keys differ."""
    x = jnp.repeat(x, copies, axis=0)
    if not is_key(x):
        return x
    return jax.vmap(jax.random.fold_in)(x, jnp.arange(len(x)) % copies)


def _arrays_of(leaves: list) -> list:
    return [x if _is_array(x) else None for x in leaves]


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array | np.ndarray | np.generic)
