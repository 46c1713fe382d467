"""What a run needs to know of a kernel, of this package or of another one."""

import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpyro.infer import AIES, ESS, HMC, NUTS, SA, BarkerMH, CustomGibbs, Gibbs, HMCGibbs, MixedHMC
from numpyro.infer.ensemble import EnsembleSampler
from numpyro.infer.mcmc import MCMC, MCMCKernel

from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.posterior.draws import blocks_of, num_components_of

DIVERGING, MAX_DEPTH = "diverging", "max_depth"
ENERGY, _STEPS = "energy", "num_steps"
_ADAPTATION = 1000  # sweeps of warm-up for kernels of other packages
_POTENTIALS = ("potential_fn", "_potential_fn")  # attributes of kernels that have no model
# What these attributes compute is described, or they are compiled while the kernel runs.
_NO_SETTINGS = {"_model", "model", *_POTENTIALS, "_init_jit"}
_MISSING = object()
# These count as installed also where they are not among the other packages.
_PACKAGES = {"numpyro_rankings", "jax", "jaxlib", "numpy", "numpyro", "pandas", "scipy"}
_PACKAGES |= sys.stdlib_module_names
_FOLDERS = {Path(sysconfig.get_paths()[name]) for name in ("purelib", "platlib")}

# By the place of the state of HMC in that of the kernel: the steps of a tree of maximum depth, or
# None without trees.
Transitions = Mapping[str, int | None]


class KernelTraits:
    """What a run needs to know of a kernel, asked here and nowhere else.

    - **name** - the name of its class.
    - **is_own** - whether it is of this package: it tells of its state before it is computed, and
      its quantities are known.
    - **takes_chains** - whether it is sure to take a batch of chains.
    - **blocks** - the kernels of this package in a :class:`numpyro.infer.Gibbs`.
    - **fitted** - the one kernel of this package, by itself or as a block, if any.
    - **num_components** - the number for a finite mixture of this package, otherwise None.
    - **label_site**, **can_pad_rankings**, **can_split_rankings** - as of the kernels of this
      package.
    - **transitions** - where it has HMC, in types of JSON; empty without it.
    """

    def __init__(self, kernel: MCMCKernel) -> None:
        self.kernel, self.name = kernel, type(kernel).__name__
        self.sample_field = kernel.sample_field
        self.is_own = isinstance(kernel, GibbsKernel)
        self.is_ensemble = kernel.is_ensemble_kernel
        self.takes_chains = self.is_own or self.is_ensemble
        self.blocks = list(blocks_of(kernel))
        self.block = self.blocks[0] if len(self.blocks) == 1 else None
        self.fitted = kernel if isinstance(kernel, GibbsKernel) else self.block
        self.num_components = num_components_of(kernel)
        self.label_site = getattr(kernel, "label_site", None) or "assignments"
        self.can_pad_rankings = bool(getattr(kernel, "can_pad_rankings", False))
        self.can_split_rankings = bool(getattr(kernel, "can_split_rankings", False))
        self.transitions: Transitions = {
            place: _most_steps(part) if isinstance(part, NUTS) else None
            for place, part in _parts_with_hmc(kernel).items()
        }

    @property
    def num_warmup(self) -> int:
        """Number of sweeps in which it adapts by default."""
        kernel = self.kernel
        return kernel.num_adaptation if isinstance(kernel, GibbsKernel) else _ADAPTATION

    @property
    def fields_of_transitions(self) -> tuple[str, ...]:
        """The fields of the state that the verdict needs, none without HMC."""
        fields: list[str] = []
        for place, most_steps in self.transitions.items():
            fields.append(place + DIVERGING)
            fields += [] if most_steps is None else [place + _STEPS]
            fields += [] if place else [ENERGY]
        return tuple(fields)

    @property
    def needs_continuous_sites(self) -> bool:
        """Whether it cannot sample a model of integers alone."""
        return isinstance(self.kernel, HMC | SA | BarkerMH | EnsembleSampler)

    def check_chains(self, num_chains: int, superchains: int | None) -> None:
        """Raise ValueError unless the chains can be those of the kernel, if it is an ensemble."""
        if self.is_ensemble and superchains is not None:
            raise ValueError(
                f"superchains cannot be given with {self.name}: the chains of an ensemble depend "
                "on one another, and each starts at a point of its own"
            )
        if isinstance(self.kernel, EnsembleSampler) and num_chains % 2:
            raise ValueError(f"num_chains must be even with {self.name}, got {num_chains}")

    def check_has_start(self, init_params: Any) -> None:
        """Refuse a kernel with ``potential_fn=`` without starting values, in NumPyro's words.

        Kernels of others may start by themselves.
        """
        if package_of(type(self.kernel)) != "numpyro":
            return
        if init_params is None and not all(has_sites for _, has_sites in models_of(self.kernel)):
            raise ValueError("Valid value of `init_params` must be provided with `potential_fn`.")


def check_kernel(kernel: Any) -> None:
    """Raise ValueError unless it is a kernel."""
    if isinstance(kernel, MCMCKernel):
        return
    got = f"an object of {type(kernel).__name__}"
    if isinstance(kernel, type):
        got = f"the class {kernel.__name__}; write {kernel.__name__}(…)"
    elif isinstance(kernel, MCMC):
        got = "an MCMC, whose kernel is its attribute sampler"
    elif callable(kernel):
        name = getattr(kernel, "__name__", type(kernel).__name__)
        got = f"the function {name}; if it is a model, write NUTS({name})"
    raise ValueError(f"a kernel is needed, such as SliceGibbs() or NUTS(model): got {got}")


# ---------------------------------------------------------------------------------------------
# Settings
# ---------------------------------------------------------------------------------------------


def settings_of_kernel(kernel: MCMCKernel) -> dict[str, Any]:
    """Return what was given to the constructor of a kernel, by name, but for its model.

    What a kernel learns when it starts is no setting.
    """
    if isinstance(kernel, GibbsKernel):  # they keep nothing else
        return _attributes_of(kernel)
    settings: dict[str, Any] = {}
    for name in inspect.signature(type(kernel)).parameters:
        attribute = f"_{name}" if f"_{name}" in vars(kernel) else name
        settings[name] = getattr(kernel, attribute, _MISSING)
    if isinstance(kernel, AIES | ESS):
        settings["moves"] = [*map(_move, kernel._moves)], kernel._weights
    if isinstance(kernel, MixedHMC):  # its first run replaces None by the number of sites
        sizes = getattr(kernel, "_support_sizes_flat", None)
        if sizes is not None and kernel._num_discrete_updates == len(sizes):
            settings["num_discrete_updates"] = None
    if isinstance(kernel, CustomGibbs | HMCGibbs):
        del settings["gibbs_fn"]  # described by what it computes
    if any(x is _MISSING for x in settings.values()):
        return _attributes_of(kernel)
    return {name: x for name, x in settings.items() if name not in _NO_SETTINGS}


def _attributes_of(kernel: MCMCKernel) -> dict[str, Any]:
    """Return the attributes of a kernel."""
    # what is compiled while a kernel runs is left out of its pickle, and of this
    attributes = dict(kernel.__getstate__())
    for x in list(attributes.values()):
        attributes |= x._asdict() if hasattr(x, "_asdict") else {}
    return {
        name.lstrip("_"): x
        for name, x in attributes.items()
        if not hasattr(x, "_asdict") and name not in _NO_SETTINGS
    }


def _move(move: Any) -> Any:
    """Return the name and the settings of a move of an ensemble kernel.

    Its first run replaces some moves by others, which know the number of chains.
    """
    cells = zip(move.__code__.co_freevars, move.__closure__ or (), strict=True)
    settings = {name: cell.cell_contents for name, cell in cells if name != "PAIRS"}
    return move.__qualname__.split(".<locals>")[0], settings


# ---------------------------------------------------------------------------------------------
# Parts
# ---------------------------------------------------------------------------------------------


def models_of(kernel: MCMCKernel) -> Iterator[tuple[Callable, bool]]:
    """Yield each user's model of a kernel or its parts, and True; a potential energy, and False.

    The model of a kernel of this package follows from its settings.
    """
    if isinstance(kernel, GibbsKernel) and is_installed(type(kernel)) and not kernel.is_block:
        return
    if callable(model := getattr(kernel, "model", None)):
        yield model, True
    elif potentials := [x for name in _POTENTIALS if callable(x := getattr(kernel, name, None))]:
        yield potentials[0], False
    else:
        for x in settings_of_kernel(kernel).values():
            for part in x if isinstance(x, list | tuple) else (x,):
                if isinstance(part, MCMCKernel):
                    yield from models_of(part)


def updates_of(kernel: MCMCKernel) -> Iterator[tuple[Callable, Sequence[str]]]:
    """Yield the functions by which a user draws sites, with the names of the sites."""
    for block, names in kernel.blocks if isinstance(kernel, Gibbs) else ():
        if isinstance(block, CustomGibbs):
            yield block._gibbs_fn, () if callable(names) else names
        yield from updates_of(block)


def energies_of(kernel: MCMCKernel, state: Any) -> Iterator[Any]:
    """Yield the potential energies and gradients in a state that have to be finite."""
    if isinstance(kernel, Gibbs):
        for (block, _), part in zip(kernel.blocks, state.block_states, strict=True):
            yield from energies_of(block, part)
    elif isinstance(getattr(kernel, "inner_kernel", None), HMC):  # MixedHMC and HMCECS
        yield from energies_of(kernel.inner_kernel, state.hmc_state)
    elif isinstance(kernel, HMC | SA | BarkerMH):
        yield state.potential_energy
        yield from jax.tree.leaves(getattr(state, "z_grad", None))


def _parts_with_hmc(kernel: MCMCKernel, place: str = "") -> dict[str, HMC]:
    """Return the kernels of HMC in a kernel, by the place of their state in its own."""
    if isinstance(kernel, HMC):
        return {place: kernel}
    if isinstance(kernel, Gibbs):
        parts: dict[str, HMC] = {}
        for i, (block, _) in enumerate(kernel.blocks):
            parts |= _parts_with_hmc(block, f"{place}block_states.{i}.")
        return parts
    inner = getattr(kernel, "inner_kernel", None)  # MixedHMC and HMCECS have one
    return _parts_with_hmc(inner, f"{place}hmc_state.") if isinstance(inner, HMC) else {}


def _most_steps(kernel: NUTS) -> int:
    depth = kernel._max_tree_depth  # a pair has one for the warm-up, and one for the draws
    return 2 ** (depth[1] if isinstance(depth, tuple) else depth) - 1


def package_of(value: Any) -> str:
    """Return the name of the package of a function, a class or an object."""
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


def is_installed(value: Any) -> bool:
    """Whether a function or class is of Python, of this package or of another installed one."""
    package = package_of(value)
    if package in _PACKAGES:
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and not _FOLDERS.isdisjoint(Path(file).parents)


# ---------------------------------------------------------------------------------------------
# Transitions of HMC
# ---------------------------------------------------------------------------------------------


def events(transitions: Transitions, stats: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return which draws come from divergent transitions, and which from trees of maximum depth."""
    happened: dict[str, np.ndarray] = {}
    for place, most_steps in transitions.items():
        if (diverging := stats.get(place + DIVERGING)) is not None:
            happened[DIVERGING] = happened.get(DIVERGING, False) | diverging
        if most_steps is not None and (steps := stats.get(place + _STEPS)) is not None:
            happened[MAX_DEPTH] = happened.get(MAX_DEPTH, False) | (steps >= most_steps)
    return happened


def energy_of(transitions: Transitions, stats: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the Hamiltonian of each draw, (chains, draws); None of other kernels than HMC."""
    return stats.get(ENERGY) if "" in transitions else None
