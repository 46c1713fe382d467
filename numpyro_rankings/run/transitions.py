"""What the kernels of Hamiltonian Monte Carlo tell of their transitions."""

from collections.abc import Mapping

import numpy as np
from numpyro.infer import HMC, NUTS, Gibbs
from numpyro.infer.mcmc import MCMCKernel

DIVERGING, MAX_DEPTH = "diverging", "max_depth"
_STEPS, _ENERGY = "num_steps", "energy"


def fields_of_transitions(kernel: MCMCKernel) -> tuple[str, ...]:
    """Return the fields of the state that the verdict needs, none of kernels without HMC."""
    found: list[str] = []
    for prefix, part in _parts(kernel).items():
        found.append(prefix + DIVERGING)
        found += [prefix + _STEPS] if isinstance(part, NUTS) else []
        found += [_ENERGY] if not prefix else []
    return tuple(found)


def events(kernel: MCMCKernel, stats: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return which draws come from divergent transitions, and which from trees of maximum depth.

    :param stats: fields of the state, (chains, draws, …) by name; those that are missing are not
        judged.
    """
    found: dict[str, np.ndarray] = {}

    def add(name: str, happened: np.ndarray) -> None:
        found[name] = found.get(name, False) | happened

    for prefix, part in _parts(kernel).items():
        if prefix + DIVERGING in stats:
            add(DIVERGING, stats[prefix + DIVERGING])
        if isinstance(part, NUTS) and prefix + _STEPS in stats:
            add(MAX_DEPTH, stats[prefix + _STEPS] >= _most_steps(part))
    return found


def energy_of(kernel: MCMCKernel, stats: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return the Hamiltonian of each draw, (chains, draws); None of other kernels than HMC."""
    return stats.get(_ENERGY) if isinstance(kernel, HMC) else None


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
