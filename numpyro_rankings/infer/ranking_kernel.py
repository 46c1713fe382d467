"""Base class of the kernels whose data are rankings and nothing else."""

import copy
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.base import GibbsKernel, GibbsState, find_rankings
from numpyro_rankings.infer.checks import (
    check_only_rankings,
    check_positive_array,
    check_start_values,
    leave_to_model,
)
from numpyro_rankings.infer.latent_orders import (
    LatentOrderState,
    Lists,
    Partition,
    check_memory,
    draw_labels_and_orderings,
    draw_orderings,
    draw_orderings_of_comparisons,
    find_orders,
    with_orderings,
)
from numpyro_rankings.infer.priors import draw_start
from numpyro_rankings.models import of_latent_orders
from numpyro_rankings.ops.mistakes import LARGEST, MISTAKE, MistakePrior
from numpyro_rankings.ops.pairs import add_pairs
from numpyro_rankings.rankings import Comparisons, Orders, Rankings, refuse_weights

_START = 0.1  # of that probability


class RankingKernel(GibbsKernel):
    """Base of the kernels whose data are rankings and nothing else."""

    takes_weights = False  # whether judges may have survey weights
    _is_padded = False  # whether the run says how many components are in use
    _alpha: float | dist.Distribution
    _mistake_prior: tuple[float, float] = (1.0, 3.0)  # as of MistakePrior()

    def __init__(
        self, model: Callable, mistake_prior: tuple[float, float] = _mistake_prior
    ) -> None:
        prior = check_mistake_prior(mistake_prior)
        leave_to_model(self._is_block, mistake_prior=prior != MistakePrior())
        if prior != MistakePrior():
            # the default is no setting, so that runs which began before there was one can go on
            self._mistake_prior = (prior.a, prior.b)  # whose fields would be settings by name
        if self.takes_partial_orders:
            model = partial(of_latent_orders, model, self._prepare_orders, prior)
        super().__init__(model)

    @property
    def takes_partial_orders(self) -> bool:
        """Whether the data may be :class:`~numpyro_rankings.PartialOrders`."""
        return not self._is_block and type(self)._lists is not RankingKernel._lists

    @staticmethod
    def _prepare_orders(orders: Any) -> Any:
        """Return partial orders, or comparisons, as the model takes them, or raise an error."""
        return orders

    def _lists(self, z: dict, args: tuple, kwargs: dict, orders: Orders) -> Lists:
        """Return the likelihood of the orderings behind partial orders, a judge in each row.

        :param args: with rankings of the same judges in place of the partial orders.
        """
        raise NotImplementedError

    def _partition(self, z: dict, args: tuple, kwargs: dict) -> Partition | None:
        """Return the labels of the judges, or None if there is one population."""
        return None

    def _check_size(self, args: tuple, kwargs: dict, num_chains: int) -> None:
        if self.takes_partial_orders and (orders := find_orders(args, kwargs)) is not None:
            check_memory(orders, num_chains)

    def _as_rankings(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        orders = self._find_orders(args, kwargs)
        return (args, kwargs) if orders is None else with_orderings(args, kwargs, orders)

    def _find_orders(self, args: tuple, kwargs: dict) -> Orders | None:
        """Return the partial orders, or comparisons, among the arguments, a judge in each row."""
        orders = find_orders(args, kwargs)
        if orders is None:
            return None
        if not self.takes_partial_orders:
            name = "a kernel with model=" if self._is_block else type(self).__name__
            raise TypeError(
                f"{name} takes Rankings, and no {type(orders).__name__}; {orders.taken_by}"
            )
        return self._prepare_orders(orders).expand()

    def _begin(self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict) -> Any:
        orders = self._find_orders(args, kwargs)
        if orders is None:
            return self._init(rng_key, init_params, args, kwargs)
        given = with_orderings(args, kwargs, orders)
        key_orders, rng_key = random.split(rng_key)
        state = self._init(rng_key, init_params, *given)
        start = jnp.asarray((init_params or {}).get(MISTAKE, _START), float)
        lists = self._lists(state.z, *given, orders)
        orderings, mistake = self._draw_orderings(key_orders, orders, orders.listed, lists, start)
        return self._with_orderings(state, orders, orderings, mistake)

    def _advance(self, state: Any, args: tuple, kwargs: dict) -> Any:
        orders = self._find_orders(args, kwargs)
        if orders is None:
            return self._sweep(state, args, kwargs)
        rng_key, key_orders = random.split(state.rng_key)
        given = with_orderings(args, kwargs, orders, state.orderings)
        lists = self._lists(state.z, *given, orders)
        orderings, mistake = self._draw_orderings(
            key_orders, orders, state.orderings, lists, state.z.get(MISTAKE)
        )
        key_labels = random.fold_in(key_orders, 2)
        z, orderings = self._move_labels(key_labels, state.z, orderings, given, orders)
        key_items = random.fold_in(key_orders, 3)
        z, orderings = self._move_items(key_items, z, orderings, given, orders)
        given = with_orderings(args, kwargs, orders, orderings)
        fields = {name: getattr(state, name) for name in GibbsState._fields}
        state = self._sweep(GibbsState(**fields | {"rng_key": rng_key, "z": z}), *given)
        return self._with_orderings(state, orders, orderings, mistake)

    def _draw_orderings(
        self, key: Array, orders: Orders, orderings: Array, lists: Lists, mistake: Array | None
    ) -> tuple[Array, Array | None]:
        """Draw the orderings, and of comparisons the probability of a mistake given them."""
        if not isinstance(orders, Comparisons):
            return draw_orderings(key, orders, orderings, lists), None
        assert mistake is not None
        orderings = draw_orderings_of_comparisons(key, orders, orderings, lists, mistake)
        prior, key = MistakePrior(*self._mistake_prior), random.fold_in(key, 1)
        return orderings, prior.draw(key, mistake, *_numbers_of(orders, orderings))

    def _move_labels(
        self, key: Array, z: dict, orderings: Array, given: tuple[tuple, dict], orders: Orders
    ) -> tuple[dict, Array]:
        """Draw the labels of some judges together with their orderings."""
        args, kwargs = given
        partition = self._partition(z, args, kwargs)
        if partition is None or isinstance(orders, Comparisons):
            return z, orderings
        site = self._sites["assignments"]

        def likelihood(labels: Array) -> Lists:
            return self._lists(z | {site: labels}, args, kwargs, orders)

        labels, orderings = draw_labels_and_orderings(key, orders, orderings, partition, likelihood)
        return z | {site: labels.astype(z[site].dtype)}, orderings

    def _move_items(
        self, key: Array, z: dict, orderings: Array, given: tuple[tuple, dict], orders: Orders
    ) -> tuple[dict, Array]:
        """Move items of the parameters and of the orderings together; not at all by default."""
        return z, orderings

    def _with_orderings(
        self, state: Any, orders: Orders, orderings: Array, mistake: Array | None
    ) -> LatentOrderState:
        """Return a state of rankings with the orderings, and the log joint of comparisons."""
        if isinstance(orders, Comparisons):
            assert mistake is not None
            prior, z = MistakePrior(*self._mistake_prior), state.z
            own = prior.log_joint(mistake, *_numbers_of(orders, orderings))
            log_joint, rest = add_pairs((z["log_joint"], z["log_joint_rest"]), own)
            z = z | {MISTAKE: mistake, "log_joint": log_joint, "log_joint_rest": rest}
            state = state._replace(z=z, potential_energy=-log_joint)
        return LatentOrderState(**state._asdict(), orderings=orderings)

    def _check_start(
        self, start: dict | None, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        check_start_values(start)
        value = (start or {}).get(MISTAKE)
        if value is None or isinstance(value, jax.core.Tracer):
            return
        array = np.asarray(value)
        if array.shape != chains or not np.all((array > 0) & (array < LARGEST)):
            raise ValueError(
                f"init_params[{MISTAKE!r}] must be one number between 0 and {LARGEST:g} for each "
                f"chain, got {value!r}"
            )

    @property
    def can_split_rankings(self) -> bool:
        return not self._is_block

    @property
    def can_pad_rankings(self) -> bool:
        return not self._is_block

    def _with_number_of_run(self) -> Any:
        """Return a copy that reads the number of components from the arguments of the run."""
        kernel = copy.copy(self)
        kernel._is_padded, kernel._init_jit = True, None
        kernel._model = partial(_of_rankings, self._model)
        return kernel

    def _num_used(self, kwargs: dict) -> Array | None:
        """Return the number of components in use, None if all are."""
        return kwargs["num_used"] if self._is_padded else None

    def _scale_arguments(self) -> dict[str, Any]:
        return {"alpha": self._alpha}

    def _checked_rankings(self, args: tuple, kwargs: dict) -> Rankings:
        """Return the rankings, after a check that the kernel does not ignore other arguments."""
        self._check_use_as_block()
        rankings = find_rankings(args, kwargs)
        if not self.takes_weights:
            refuse_weights(rankings, type(self).__name__)
        if not self._is_block:
            number = {"num_used"} if self._is_padded else set()
            check_only_rankings(args, {name: kwargs[name] for name in kwargs.keys() - number})
        return rankings

    def _start_alpha(self, key: Array, start_values: dict) -> dict[str, Array]:
        """Return where α starts, by the name of its site; nothing if it is fixed."""
        if "alpha" in start_values:
            return {"alpha": start_values["alpha"]}
        if isinstance(self._alpha, dist.Distribution):
            return {"alpha": draw_start(key, self._alpha)}
        return {}


def _of_rankings(model: Callable, *args: Any, num_used: Any = None, **kwargs: Any) -> Any:
    return model(*args, **kwargs)


def _numbers_of(comparisons: Comparisons, orderings: Array) -> tuple[Array, Array]:
    """Return how many comparisons contradict the orderings, and how many agree with them."""
    mistakes = comparisons.count_mistakes(orderings).sum(dtype=jnp.int32)
    return mistakes, comparisons.wins.sum(dtype=jnp.int32) - mistakes


def check_mistake_prior(prior: Any) -> MistakePrior:
    """Return the prior of the probability of a mistake, or raise ValueError."""
    check_positive_array("mistake_prior", prior, "two positive numbers, a and b of Beta(a, b)")
    if np.shape(prior) != (2,):
        raise ValueError(f"mistake_prior must be two numbers, a and b of Beta(a, b), got {prior!r}")
    checked = MistakePrior(*map(float, prior))
    if not np.isfinite(checked.log_mass):
        raise ValueError(f"mistake_prior {tuple(checked)} leaves no mass below {LARGEST:g}")
    return checked


class MixtureKernel(RankingKernel):
    """Base of those that draw the labels of a process or of a finite mixture."""

    @abstractmethod
    def _read(self, z: dict, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        """Return the state and the inputs of a sweep.

        :return: a mixture with its ``partition``, and inputs with ``log_judges``.
        """

    def _partition(self, z: dict, args: tuple, kwargs: dict) -> Partition | None:
        mixture, _ = self._read(z, args, kwargs)
        if mixture.partition.num_components == 1:
            return None
        return Partition(mixture.labels, len(z["cluster_sizes"]), mixture.partition.kappa)

    def read_prior(self, z: dict, args: tuple, kwargs: dict) -> tuple[dict[str, Any], Array | None]:
        mixture, inputs = self._read(z, args, kwargs)
        partition = mixture.partition
        number = partition.num_components
        scales = {} if number is None else {"num_components": number}
        return {"alpha": partition.alpha, **scales}, inputs.log_judges
