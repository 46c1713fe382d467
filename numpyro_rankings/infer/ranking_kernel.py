"""Base class of the kernels whose data are rankings and nothing else."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.base import GibbsKernel, GibbsState, find_rankings
from numpyro_rankings.infer.checks import check_only_rankings
from numpyro_rankings.infer.latent_orders import (
    LatentOrderState,
    Lists,
    check_memory,
    draw_orderings,
    find_orders,
    with_orderings,
)
from numpyro_rankings.infer.priors import draw_start
from numpyro_rankings.models import of_partial_orders
from numpyro_rankings.rankings import PartialOrders, Rankings


class RankingKernel(GibbsKernel):
    """Base of the kernels whose data are rankings and nothing else."""

    _alpha: float | dist.Distribution

    def __init__(self, model: Callable) -> None:
        if self.takes_partial_orders:
            model = partial(of_partial_orders, model, self._prepare_orders)
        super().__init__(model)

    @property
    def takes_partial_orders(self) -> bool:
        """Whether the data may be :class:`~numpyro_rankings.PartialOrders`."""
        return not self._is_block and type(self)._lists is not RankingKernel._lists

    @staticmethod
    def _prepare_orders(orders: PartialOrders) -> PartialOrders:
        """Return partial orders as the model takes them, or raise ValueError."""
        return orders

    def _lists(self, z: dict, args: tuple, kwargs: dict, orders: PartialOrders) -> Lists:
        """Return the likelihood of the orderings behind partial orders, a judge in each row.

        :param args: with rankings of the same judges in place of the partial orders.
        """
        raise NotImplementedError

    def _check_size(self, args: tuple, kwargs: dict, num_chains: int) -> None:
        if self.takes_partial_orders and (orders := find_orders(args, kwargs)) is not None:
            check_memory(orders, num_chains)

    def _as_rankings(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        orders = self._find_orders(args, kwargs)
        return (args, kwargs) if orders is None else with_orderings(args, kwargs, orders)

    def _find_orders(self, args: tuple, kwargs: dict) -> PartialOrders | None:
        """Return the partial orders among the arguments, a judge in each row; None if none."""
        orders = find_orders(args, kwargs)
        if orders is None:
            return None
        if not self.takes_partial_orders:
            name = "a kernel with model=" if self._is_block else type(self).__name__
            raise TypeError(
                f"{name} takes Rankings, and no PartialOrders; SliceGibbs, BetaGibbs and the "
                "Gibbs samplers of Plackett–Luce models without model= take both"
            )
        return self._prepare_orders(orders).expand()

    def _begin(self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict) -> Any:
        orders = self._find_orders(args, kwargs)
        if orders is None:
            return self._init(rng_key, init_params, args, kwargs)
        given = with_orderings(args, kwargs, orders)
        key_orders, rng_key = random.split(rng_key)
        state = self._init(rng_key, init_params, *given)
        orderings = draw_orderings(
            key_orders, orders, orders.listed, self._lists(state.z, *given, orders)
        )
        return LatentOrderState(**state._asdict(), orderings=orderings)

    def _advance(self, state: Any, args: tuple, kwargs: dict) -> Any:
        orders = self._find_orders(args, kwargs)
        if orders is None:
            return self._sweep(state, args, kwargs)
        rng_key, key_orders = random.split(state.rng_key)
        given = with_orderings(args, kwargs, orders, state.orderings)
        lists = self._lists(state.z, *given, orders)
        orderings = draw_orderings(key_orders, orders, state.orderings, lists)
        given = with_orderings(args, kwargs, orders, orderings)
        fields = {name: getattr(state, name) for name in GibbsState._fields}
        state = self._sweep(GibbsState(**fields | {"rng_key": rng_key}), *given)
        return LatentOrderState(**state._asdict(), orderings=orderings)

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
