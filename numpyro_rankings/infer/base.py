"""Base class and state of the kernels."""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpyro.infer.mcmc import MCMCKernel
from numpyro.util import is_prng_key

from numpyro_rankings._system.lazy_numpyro import mend_numpyro
from numpyro_rankings._system.xla import warn_of_wrong_sums
from numpyro_rankings.families import RankingFamily
from numpyro_rankings.infer.blocks import ModelReader
from numpyro_rankings.infer.checks import check_arguments, check_start_scale, check_start_values
from numpyro_rankings.infer.mixture.prior import PartitionPrior, update_alpha
from numpyro_rankings.infer.not_finite import (
    check_not_stopped,
    check_start_not_stopped,
    is_stopped,
    stop_if_not_finite,
    sweep_unless_stopped,
)
from numpyro_rankings.infer.priors import log_prior
from numpyro_rankings.rankings import Games, Orders, Rankings, check_rankings

mend_numpyro()

_SCALES = ("alpha", "phi", "gamma", "decay_scale", "residual_shape")


class GibbsState(NamedTuple):
    """State of one chain."""

    z: dict[str, Array]  # sites by name; add log_joint_rest to log_joint in float64
    potential_energy: Array  # minus the log joint
    accept_prob: Array  # mean of the Metropolis-Hastings steps that the kernel documents, or 1
    overflow: Array  # whether the sweep needed more cluster slots than there are
    rng_key: Array  # key of the next sweep


_told_of_state: ContextVar[Callable[[Any], None] | None] = ContextVar("told", default=None)


@contextmanager
def telling_of_state(told: Callable[[Any], None]) -> Iterator[None]:
    """Let ``init`` call **told** with the shapes of the state before it computes it."""
    token = _told_of_state.set(told)
    try:
        yield
    finally:
        _told_of_state.reset(token)


class GibbsKernel(ModelReader, MCMCKernel):
    """Base of the hand-written Gibbs kernels.

    A subclass has a NumPyro model and defines :meth:`_init`, :meth:`_sweep` and :meth:`_potential`
    for one chain. Its state is a :class:`GibbsState`, or a NamedTuple with the same fields and
    more. Static settings belong to the constructor, arrays to ``mcmc.run(key, data)``.
    """

    sample_field = "z"
    default_fields: tuple[str, ...] = ("z", "potential_energy", "accept_prob", "overflow")
    num_adaptation = 0  # sweeps of warm-up in which a run adapts by default
    _sample_fn = True  # tells MCMC.run that a given state needs no second init

    def __init__(self, model: Callable) -> None:
        self._model = model
        self._in_gibbs = False
        self._init_jit: Callable | None = None

    @property
    def model(self) -> Callable:
        """The NumPyro model whose posterior the kernel draws from."""
        return self._model

    @property
    def ranking_family(self) -> RankingFamily | None:
        """The likelihood of rankings in the clusters, None if the data are no rankings."""
        return None

    @property
    def num_components(self) -> int | None:
        """K of a finite mixture, 1 for a single population, None for processes and partitions."""
        return None

    @property
    def can_split_rankings(self) -> bool:
        """Whether a sweep takes rankings whose rows are split over several devices."""
        return False

    @property
    def can_pad_rankings(self) -> bool:
        """Whether a sweep takes rankings with rows of count 0 at their end."""
        return False

    def read_prior(self, z: dict, args: tuple, kwargs: dict) -> tuple[dict[str, Any], Array | None]:
        """Return what the probability of a label depends on: the scales, and the judges' sites.

        :param z: values of the sites that the kernel owns.
        :return: the scales by name, with ``num_components`` if the mixture is finite, and the log
            probabilities of ``judge_sites`` in each slot, (C, N), None without them.
        """
        raise NotImplementedError(f"{type(self).__name__} has no clusters of rankings")

    def padded(self, num_components: int) -> "GibbsKernel | None":
        """Return a kernel whose number of components is an argument of the run.

        The argument is an array ``num_used``, so that another number is no other program, and takes
        no time to compile. Components beyond it have no judges, shares of 0, and parameters that
        mean nothing. The judges have no covariates.

        :param num_components: the largest number.
        :return: None if there is no such kernel.
        """
        return None

    def with_prior_of(self, rankings: Rankings) -> "GibbsKernel":
        """Return the kernel whose prior, with more rankings, is that with these."""
        return self

    @abstractmethod
    def _init(self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict) -> Any:
        """Return the state of one chain before the first sweep."""

    @abstractmethod
    def _sweep(self, state: Any, args: tuple, kwargs: dict) -> Any:
        """Make one sweep of one chain."""

    @abstractmethod
    def _potential(self, state: Any, args: tuple, kwargs: dict) -> Array:
        """Return minus the log joint at ``state.z``."""

    def _check(self, args: tuple, kwargs: dict) -> None:
        """Raise ValueError if the data do not fit the kernel."""

    def _check_start(
        self, start: dict | None, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        """Raise ValueError if the start values do not fit the data, which are checked."""

    def _check_warmup(self, num_warmup: int) -> None:
        """Raise ValueError if the kernel cannot adapt in that many warm-up sweeps."""

    def _finish_start(self, state: Any, num_warmup: int) -> Any:
        """Return the initial state, after a last look at it."""
        return state

    @property
    def takes_partial_orders(self) -> bool:
        """Whether the data may be :class:`~numpyro_rankings.PartialOrders`."""
        return False

    def _check_size(self, args: tuple, kwargs: dict, num_chains: int) -> None:
        """Raise ValueError if the data as they are given need more memory than there is."""

    def _check_memory(self, args: tuple, kwargs: dict, num_chains: int) -> None:
        """Raise ValueError if so many chains at a time need more memory than there is."""

    def _scale_arguments(self) -> dict[str, Any]:
        """Return what the constructor was given for each scale: a number or a distribution."""
        return {}

    def _learned_prior(self, scale: str) -> dist.Distribution | None:
        """Return the prior of a scale, None if the scale is fixed or the kernel is a block."""
        prior = self._scale_arguments().get(scale)
        return prior if isinstance(prior, dist.Distribution) and not self._is_block else None

    def _add_log_priors(self, log_joint: Array, **scales: Any) -> Array:
        """Add the log priors of those scales that are learned."""
        for name, value in scales.items():
            prior = self._learned_prior(name)
            if prior is not None:
                log_joint += log_prior(prior, value)
        return log_joint

    def _update_alpha(self, key: Array, prior: PartitionPrior, sizes: Array) -> PartitionPrior:
        """Draw α given the sizes of the clusters, (C,), if it is learned [Escobar & West 1995]."""
        alpha_prior = self._learned_prior("alpha")
        if alpha_prior is None:
            return prior
        return prior._replace(alpha=update_alpha(key, prior, alpha_prior, sizes))

    def _as_rankings(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the arguments with rankings of the same shape in place of partial orders."""
        return args, kwargs

    def _begin(self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict) -> Any:
        """Return the state of one chain before the first sweep, of any data that are taken."""
        return self._init(rng_key, init_params, args, kwargs)

    def _advance(self, state: Any, args: tuple, kwargs: dict) -> Any:
        """Make one sweep of one chain, of any data that are taken."""
        return self._sweep(state, args, kwargs)

    def _prepare(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Prepare the arguments before they are traced, where their values are known."""
        return args, kwargs

    def init(
        self,
        rng_key: Array,
        num_warmup: int,
        init_params: dict | None,
        model_args: tuple,
        model_kwargs: dict | None,
    ) -> Any:
        """Return the initial state; a batch of keys gives a batch of chains."""
        if jax.default_backend() == "cpu":
            warn_of_wrong_sums()
        kwargs, chains = dict(model_kwargs or {}), rng_key.shape[:1]
        if is_prng_key(rng_key):
            chains = ()
        check_arguments(model_args, kwargs)
        self._check_warmup(num_warmup)
        self._check_size(model_args, kwargs, math.prod(chains))
        args_seen = self._as_rankings(model_args, kwargs)
        self._check(*args_seen)
        if not self._is_block:
            self._check_start(init_params, chains, *args_seen)
        self._check_memory(*args_seen, math.prod(chains))
        model_args, kwargs = self._prepare(model_args, kwargs)
        if self._init_jit is None:
            self._init_jit = jax.jit(self._init_from_leaves, static_argnums=(3, 4))
        init_jit = self._init_jit
        leaves, structure = jax.tree.flatten((model_args, kwargs))
        # numbers such as the number of components stay static: a model may need their values
        static = tuple(x if isinstance(x, int | str) else None for x in leaves)
        arrays = [x if one is None else None for x, one in zip(leaves, static, strict=True)]

        def init(key: Array, params: dict | None) -> Any:
            return init_jit(key, params, arrays, static, structure)

        params = init_params if self._is_block else self._checked_start(init_params, chains)
        start = init if is_prng_key(rng_key) else jax.vmap(init)
        told = _told_of_state.get()
        if told is not None:
            told(jax.eval_shape(start, rng_key, params))
        state = start(rng_key, params)
        check_start_not_stopped(self, state.z, params)
        check_not_stopped(self, state.z)
        unknown = set(init_params or {}) - set(state.z)
        if unknown and not self._is_block:
            raise ValueError(f"init_params has {sorted(unknown)}, the sites are {sorted(state.z)}")
        return self._finish_start(state, num_warmup)

    def _checked_start(self, params: Any, chains: tuple[int, ...]) -> dict | None:
        """Return the start values that the kernel uses, or raise ValueError."""
        check_start_values(params)
        # a fixed scale ignores the value in init_params, which may be a whole draw
        scales = self._scale_arguments()
        params = {
            name: value
            for name, value in (params or {}).items()
            if name not in _SCALES or isinstance(scales.get(name), dist.Distribution)
        }
        for name in set(params) & set(_SCALES):
            check_start_scale(name, params[name], scales[name], chains)
        return params or None

    def _init_from_leaves(
        self, key: Array, params: dict | None, arrays: list, static: tuple, structure: Any
    ) -> Any:
        leaves = [x if one is None else one for x, one in zip(arrays, static, strict=True)]
        state = self._begin(key, params, *jax.tree.unflatten(structure, leaves))
        if self._is_block:  # other blocks may still make the log joint finite
            return state
        return stop_if_not_finite(state, False, state.z, allows_zero=True)

    def sample(self, state: Any, model_args: tuple, model_kwargs: dict | None) -> Any:
        """Make one sweep of one chain, or of a batch of chains."""
        kwargs = dict(model_kwargs or {})

        # fields of the state report overflow and numbers that are not finite: callbacks would
        # disable the compilation cache
        def sweep(one: Any) -> Any:
            return sweep_unless_stopped(
                lambda state: self._advance(state, model_args, kwargs), one, self._is_block
            )

        return sweep(state) if is_prng_key(state.rng_key) else jax.vmap(sweep)(state)

    def refresh(self, state: Any, model_args: tuple, model_kwargs: dict | None) -> Any:
        """Recompute the potential energy under new values of the sites of other blocks."""
        potential = self._potential(state, *self._as_rankings(model_args, dict(model_kwargs or {})))
        potential = jnp.where(is_stopped(state.z), jnp.nan, potential)
        return state._replace(potential_energy=potential)

    def wrap_model(self, wrapper: Callable[[Callable], Callable]) -> "GibbsKernel":
        """Return a copy with ``wrapper(model)``, which :class:`numpyro.infer.Gibbs` asks for."""
        kernel = copy.copy(self)
        kernel._model = wrapper(self._model)
        kernel._in_gibbs = True
        kernel._init_jit = None
        return kernel

    def get_diagnostics_str(self, state: Any) -> str:
        """Return the number of clusters and the log joint, for the progress bar."""
        z = state.z
        check_not_stopped(self, z)
        if "log_joint" not in z:
            return ""
        number = z.get("num_clusters")
        clusters = "" if number is None else f"{int(number)} clusters, "
        return f"{clusters}log joint {float(log_joint_of(z)):.1f}"

    def get_constrain_fn(self, model_args: tuple, model_kwargs: dict | None) -> Callable:
        """Return the identity: values are kept constrained."""
        return lambda z: z

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_init_jit": None}


def log_joint_of(z: Mapping[str, Any]) -> np.ndarray:
    """Return the log joint of a state or of draws in float64: ``log_joint`` and its remainder."""
    return np.asarray(z["log_joint"], np.float64) + np.asarray(z.get("log_joint_rest", 0.0))


def find_rankings(args: tuple, kwargs: dict) -> Rankings:
    """Return the :class:`Rankings` among the arguments of a model."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Rankings):
            return value
        if isinstance(value, Orders | Games):
            check_rankings(value)
    for value in (*args, *kwargs.values()):
        check_rankings(value)
    raise TypeError("the kernel needs rankings: mcmc.run(key, rankings)")
