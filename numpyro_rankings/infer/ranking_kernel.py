"""Base class of the kernels whose data are rankings and nothing else."""

from abc import abstractmethod
from typing import Any

import numpyro.distributions as dist
from jax import Array

from numpyro_rankings.infer.base import GibbsKernel, find_rankings
from numpyro_rankings.infer.checks import check_only_rankings
from numpyro_rankings.infer.priors import draw_start
from numpyro_rankings.rankings import Rankings


class RankingKernel(GibbsKernel):
    """Base of the kernels whose data are rankings and nothing else."""

    _alpha: float | dist.Distribution

    @property
    def can_split_rankings(self) -> bool:
        return not self._is_block

    @property
    def can_pad_rankings(self) -> bool:
        return not self._is_block

    def _scale_arguments(self) -> dict[str, Any]:
        return {"alpha": self._alpha}

    def _checked_rankings(self, args: tuple, kwargs: dict) -> Rankings:
        """Return the rankings, after a check that the kernel does not ignore other arguments."""
        self._check_use_as_block()
        rankings = find_rankings(args, kwargs)
        if not self._is_block:
            check_only_rankings(args, kwargs)
        return rankings

    def _start_alpha(self, key: Array, start_values: dict) -> dict[str, Array]:
        """Return where α starts, by the name of its site; nothing if it is fixed."""
        if "alpha" in start_values:
            return {"alpha": start_values["alpha"]}
        if isinstance(self._alpha, dist.Distribution):
            return {"alpha": draw_start(key, self._alpha)}
        return {}


class MixtureKernel(RankingKernel):
    """Base of those that draw the labels of a process or of a finite mixture."""

    @abstractmethod
    def _read(self, z: dict, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        """Return the state and the inputs of a sweep.

        :return: a mixture with its ``partition``, and inputs with ``log_judges``.
        """

    def read_prior(self, z: dict, args: tuple, kwargs: dict) -> tuple[dict[str, Any], Array | None]:
        mixture, inputs = self._read(z, args, kwargs)
        partition = mixture.partition
        number = partition.num_components
        scales = {} if number is None else {"num_components": number}
        return {"alpha": partition.alpha, **scales}, inputs.log_judges
