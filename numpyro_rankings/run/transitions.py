"""What the kernels of Hamiltonian Monte Carlo tell of their transitions."""

from collections.abc import Mapping

import numpy as np
from numpyro.infer import HMC, NUTS, Gibbs
from numpyro.infer.mcmc import MCMCKernel

DIVERGING, MAX_DEPTH = "diverging", "max_depth"
ENERGY, _STEPS = "energy", "num_steps"


# By the place of the state of HMC in that of the kernel: the steps of a tree of maximum depth, or
# None without trees.
Transitions = Mapping[str, int | None]


def transitions_of(kernel: MCMCKernel) -> Transitions:
    """Return where a kernel has HMC, in types of JSON; empty of kernels without it."""
    parts = _parts(kernel).items()
    return {name: _most_steps(x) if isinstance(x, NUTS) else None for name, x in parts}


def fields_of_transitions(kernel: MCMCKernel) -> tuple[str, ...]:
    """Return the fields of the state that the verdict needs, none of kernels without HMC."""
    found: list[str] = []
    for prefix, most_steps in transitions_of(kernel).items():
        found.append(prefix + DIVERGING)
        found += [] if most_steps is None else [prefix + _STEPS]
        found += [] if prefix else [ENERGY]
    return tuple(found)


def events(of: Transitions, stats: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return which draws come from divergent transitions, and which from trees of maximum depth.

    :param stats: fields of the state, (chains, draws, …) by name; those that are missing are not
        judged.
    """
    found: dict[str, np.ndarray] = {}

    def add(name: str, happened: np.ndarray) -> None:
        found[name] = found.get(name, False) | happened

    for prefix, most_steps in of.items():
        if prefix + DIVERGING in stats:
            add(DIVERGING, stats[prefix + DIVERGING])
        if most_steps is not None and prefix + _STEPS in stats:
            add(MAX_DEPTH, stats[prefix + _STEPS] >= most_steps)
    return found


def energy_of(of: Transitions, stats: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the Hamiltonian of each draw, (chains, draws); None of other kernels than HMC."""
    return stats.get(ENERGY) if "" in of else None


def _parts(kernel: MCMCKernel, prefix: str = "") -> dict[str, HMC]:
    """Return the kernels of HMC in a kernel, by the place of their state in its own."""
    if isinstance(kernel, HMC):
        return {prefix: kernel}
    if isinstance(kernel, Gibbs):
        found: dict[str, HMC] = {}
        for i, (block, _) in enumerate(kernel.blocks):
            found |= _parts(block, f"{prefix}block_states.{i}.")
        return found
    inner = getattr(kernel, "inner_kernel", None)  # of MixedHMC and HMCECS
    return _parts(inner, f"{prefix}hmc_state.") if isinstance(inner, HMC) else {}


def _most_steps(kernel: NUTS) -> int:
    depth = kernel._max_tree_depth
    return 2 ** (depth[1] if isinstance(depth, tuple) else depth) - 1  # of warm-up, of draws
