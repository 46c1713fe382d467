"""What every kernel of the package shares: chains, blocks, resume, pickling."""

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from numpyro.infer.mcmc import MCMCKernel
from numpyro.util import is_prng_key

from numpyro_rankings.rankings import Rankings


class GibbsKernel(MCMCKernel):
    """Base of the hand-written Gibbs kernels.

    A subclass holds a NumPyro model, gives :meth:`_init` and :meth:`_sweep` for one chain, and a
    ``NamedTuple`` state with fields ``z``, ``potential_energy``, ``accept_prob``, ``overflow`` and
    ``rng_key``. Static settings belong to the constructor, arrays to ``mcmc.run(key, data)``.
    """

    sample_field = "z"
    default_fields = ("z", "potential_energy", "accept_prob", "overflow")
    _sample_fn = True  # tells MCMC.run that a state in hand needs no second init

    def __init__(self, model: Callable) -> None:
        self._model = model
        self._in_gibbs = False
        self._init_jit: Callable | None = None

    @property
    def model(self) -> Callable:
        """The NumPyro model whose posterior the kernel draws from."""
        return self._model

    @abstractmethod
    def _init(self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict) -> Any:
        """State of one chain before the first sweep."""

    @abstractmethod
    def _sweep(self, state: Any, args: tuple, kwargs: dict) -> Any:
        """One sweep of one chain."""

    @abstractmethod
    def _potential(self, state: Any, args: tuple, kwargs: dict) -> Array:
        """Minus the log joint at ``state.z``."""

    def _check(self, args: tuple, kwargs: dict) -> None:
        """Raise ValueError if the data do not fit the kernel."""

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        """Initial state; a batch of keys gives a batch of chains."""
        del num_warmup
        kwargs = dict(model_kwargs or {})
        self._check(model_args, kwargs)
        if self._init_jit is None:
            self._init_jit = jax.jit(self._init)
        init = self._init_jit
        if is_prng_key(rng_key):
            return init(rng_key, init_params, model_args, kwargs)
        return jax.vmap(lambda key, params: init(key, params, model_args, kwargs))(
            rng_key, init_params
        )

    def sample(self, state, model_args, model_kwargs):
        """One sweep, of one chain or of a batch of chains."""
        kwargs = dict(model_kwargs or {})
        # overflow is told by a field, not by a callback: that would bar the compilation cache
        if is_prng_key(state.rng_key):
            return self._sweep(state, model_args, kwargs)
        return jax.vmap(lambda one: self._sweep(one, model_args, kwargs))(state)

    def refresh(self, state, model_args, model_kwargs):
        """Recompute the potential energy under new values of the sibling sites."""
        potential = self._potential(state, model_args, dict(model_kwargs or {}))
        return state._replace(potential_energy=potential)

    def wrap_model(self, wrapper):
        """A copy on ``wrapper(model)``, as :class:`numpyro.infer.Gibbs` asks for."""
        kernel = copy.copy(self)
        kernel._model = wrapper(self._model)
        kernel._in_gibbs = True
        kernel._init_jit = None
        return kernel

    def get_constrain_fn(self, model_args, model_kwargs):
        """Values are kept constrained: the identity."""
        return lambda z: z

    def __getstate__(self):
        return {**self.__dict__, "_init_jit": None}


def find_rankings(args: tuple, kwargs: dict) -> Rankings:
    """The :class:`Rankings` among the arguments of a model."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Rankings):
            return value
    raise TypeError("the kernel needs a Rankings among the arguments of mcmc.run(key, …)")
