"""Kernels of partitions that take turns."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Family
from numpyro_rankings.components.points import DataPoints
from numpyro_rankings.distributions import ChineseRestaurantProcess
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import Move, PartitionKernel


def _is_like(value: Any, other: Any) -> bool:
    """Whether two settings are equal; families and priors are if their parameters are."""
    if value is other:
        return True
    if isinstance(value, dist.Distribution) and type(value) is type(other):
        leaves, structure = jax.tree.flatten(value)
        others, other_structure = jax.tree.flatten(other)
        same = structure == other_structure  # type: ignore[operator]
        return bool(same) and all(map(np.array_equal, leaves, others))
    if isinstance(value, Family) and type(value) is type(other):
        mine, its = vars(value), vars(other)
        return mine.keys() == its.keys() and all(np.array_equal(mine[k], its[k]) for k in mine)
    return bool(value == other)


class Cycle(PartitionKernel):
    """
    Kernels of the same posterior that take turns: a sweep is one move of each, in order.

    ``Cycle([CollapsedGibbs(f, a), SplitMerge(f, a), PermutationGibbs(f, a)])`` is Gibbs sampling
    with split-merge and permutation moves. The initial partition and the draw of alpha are those of
    the first kernel; ``accept_prob`` is the mean over the kernels that accept or reject.

    :param kernels: kernels of partitions with the same family, ``alpha``, ``discount`` and
        ``max_clusters``; as a block, with the same ``model`` and ``sites``.
    """

    def __init__(self, kernels: Sequence[PartitionKernel]) -> None:
        kernels = [kernels] if isinstance(kernels, PartitionKernel) else list(kernels)
        if not kernels or not all(isinstance(kernel, PartitionKernel) for kernel in kernels):
            raise ValueError(f"Cycle takes a list of kernels of partitions, got {kernels!r}")
        first = kernels[0]
        settings = [kernel._shared_settings() for kernel in kernels]
        for name, expected in settings[0].items():
            values = [one[name] for one in settings]
            if not all(_is_like(value, expected) for value in values):
                raise ValueError(f"the kernels of a Cycle must have the same {name}: {values}")
        if len({kernel._is_block for kernel in kernels}) > 1 or (
            first._is_block and any(kernel.model != first.model for kernel in kernels)
        ):
            raise ValueError("the kernels of a Cycle must have the same model")
        self._kernels = kernels
        self.has_decisions = any(kernel.has_decisions for kernel in kernels)
        super().__init__(
            first._family,
            first._alpha,
            discount=first._discount,
            max_clusters=first._max_clusters,
            init=first._start,
            model=first.model if first._is_block else None,
            sites=first._sites,
        )

    @property
    def kernels(self) -> list[PartitionKernel]:
        """The kernels that take turns."""
        return list(self._kernels)

    def wrap_model(self, wrapper: Callable[[Callable], Callable]) -> "Cycle":
        """A copy on ``wrapper(model)``, as :class:`numpyro.infer.Gibbs` asks for."""
        kernel = super().wrap_model(wrapper)
        kernel._kernels = [one.wrap_model(wrapper) for one in self._kernels]
        return kernel

    def _check_prior(self, prior: ChineseRestaurantProcess) -> None:
        for kernel in self._kernels:
            kernel._check_prior(prior)

    def _check_warmup(self, num_warmup: int) -> None:
        for kernel in self._kernels:
            kernel._check_warmup(num_warmup)

    def _move(
        self, key: Array, labels: Array, prior: PartitionPrior, points: DataPoints, state: Any
    ) -> Move:
        moves: list[Move] = []
        for kernel, one in zip(self._kernels, random.split(key, len(self._kernels)), strict=True):
            moves.append(kernel._move(one, labels, prior, points, state))
            labels = moves[-1].labels
        deciding = zip(self._kernels, moves, strict=True)
        accept_probs = [move.accept_prob for kernel, move in deciding if kernel.has_decisions]
        accept_prob = jnp.stack(accept_probs).mean() if accept_probs else jnp.ones(())
        return Move(labels, accept_prob, jnp.stack([move.overflow for move in moves]).any())
