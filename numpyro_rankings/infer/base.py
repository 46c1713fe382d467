"""What every kernel of the package shares: chains, blocks, resume, pickling."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpyro import handlers
from numpyro.infer.gibbs import GIBBS_SITES_KWARG
from numpyro.infer.mcmc import MCMCKernel
from numpyro.ops.provenance import eval_provenance
from numpyro.util import is_prng_key

from numpyro_rankings._lazy import mend_numpyro_infer
from numpyro_rankings._xla import warn_of_wrong_sums
from numpyro_rankings.infer.blocks import sum_of_judges
from numpyro_rankings.infer.checks import check_arguments, check_start_scale, check_start_values
from numpyro_rankings.infer.not_finite import (
    check_not_stopped,
    is_stopped,
    stop_if_not_finite,
    sweep_unless_stopped,
)
from numpyro_rankings.infer.priors import base_of
from numpyro_rankings.ops.threefry import as_fast_key, like_key
from numpyro_rankings.rankings import Rankings

mend_numpyro_infer()


_SCALES = ("alpha", "phi", "gamma", "decay_scale")


class GibbsKernel(MCMCKernel):
    """Base of the hand-written Gibbs kernels.

    A subclass holds a NumPyro model, gives :meth:`_init` and :meth:`_sweep` for one chain, and a
    ``NamedTuple`` state with fields ``z``, ``potential_energy``, ``accept_prob``, ``overflow`` and
    ``rng_key``. Static settings belong to the constructor, arrays to ``mcmc.run(key, data)``.
    """

    sample_field = "z"
    default_fields = ("z", "potential_energy", "accept_prob", "overflow")
    _sample_fn = True  # tells MCMC.run that a state in hand needs no second init

    _is_block = False  # whether the model is a user's
    _judge_sites: tuple[str, ...] = ()  # of that model, see ``outcomes``
    _takes_judge_sites = False

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

    def _prior_of(self, scale: str) -> Any:
        """What the constructor was given for a scale."""
        return getattr(self, f"_{scale}", None)

    def _prepare(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """What can be said of the data only before they are traced."""
        return args, kwargs

    def _check_use_as_block(self) -> None:
        if self._is_block and not self._in_gibbs:
            name = type(self).__name__
            raise ValueError(
                f"with model= this kernel is a block of numpyro.infer.Gibbs: "
                f"Gibbs([({name}(model=model), [its sites]), (NUTS(model), None)])"
            )

    def _sites_of_model(self, values: dict, args: tuple, kwargs: dict) -> dict[str, Any]:
        """The sites of a user's model, given the kernel's own and the sibling sites."""
        kwargs = dict(kwargs)
        kwargs[GIBBS_SITES_KWARG] = {**kwargs.get(GIBBS_SITES_KWARG, {}), **values}
        with handlers.block(), handlers.trace() as trace, handlers.seed(rng_seed=0):
            self._model(*args, **kwargs)
        for name in values:
            if name not in trace:
                sites = sorted(k for k, site in trace.items() if site["type"] == "sample")
                raise ValueError(f"the model has no site {name!r}; its sites are {sites}")
        return trace

    def _check_dependents(
        self,
        own: dict[str, Array],
        labels: str,
        args: tuple,
        kwargs: dict,
        is_known: Callable[[str, Any], bool],
        most: int = 1,
    ) -> None:
        """Refuse a user's model where more depends on the kernel's sites than the kernel sees.

        :param own: values of the sites that it owns; **labels** is the name of one.
        :param is_known: whether a site, of that name and distribution, is what the kernel takes for
            the likelihood, and **most** how many of these there may be.
        """
        sites: dict[str, Any] = {}

        def log_probs(**own: Array) -> dict[str, Array]:
            trace = self._sites_of_model(own, args, kwargs)
            sites.update({k: x for k, x in trace.items() if x["type"] == "sample" and k not in own})
            return {name: site["fn"].log_prob(site["value"]) for name, site in sites.items()}

        known = []
        for name, depends_on in eval_provenance(log_probs, **own).items():
            site, which = sites[name], " and ".join(map(repr, sorted(depends_on)))
            if depends_on and is_known(name, base_of(site["fn"])):
                known.append(name)
                if name in self._judge_sites:
                    raise ValueError(f"site {name!r} is of the rankings, not one of judge_sites")
                if isinstance(site["fn"], dist.MaskedDistribution) or site["scale"] is not None:
                    raise ValueError(f"site {name!r} must not be masked, scaled or subsampled")
            elif name in self._judge_sites:
                if depends_on - {labels}:
                    raise ValueError(f"site {name!r} of judge_sites depends on {which}")
            elif depends_on:
                hint = ": name it in judge_sites" if self._takes_judge_sites else ""
                raise ValueError(
                    f"site {name!r} depends on {which}, which the kernel would draw without regard "
                    f"to it{hint}"
                )
        if not 0 < len(known) <= most:
            raise ValueError(
                f"one site of the model must have the likelihood of {type(self).__name__}; these "
                f"have it: {known}"
            )

    def _log_outcomes(
        self, own: dict[str, Array], site: str, num_slots: int, args: tuple, kwargs: dict
    ) -> Array | None:
        """Log likelihood of each judge's outcomes in each slot, (C, N), if there are any.

        :param own: values of the sites that the kernel owns; those of **site** are the labels.
        """
        if not self._judge_sites:
            return None
        size = own[site].shape[-1]

        def in_slot(slot: Array) -> Array:
            values = {**own, site: jnp.full(size, slot, jnp.int32)}
            trace = self._sites_of_model(values, args, kwargs)
            return sum_of_judges(trace, self._judge_sites, size)

        return jax.vmap(in_slot)(jnp.arange(num_slots))

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        """Initial state; a batch of keys gives a batch of chains."""
        del num_warmup
        if jax.default_backend() == "cpu":
            warn_of_wrong_sums()
        kwargs = dict(model_kwargs or {})
        check_arguments(model_args, kwargs)
        self._check(model_args, kwargs)
        model_args, kwargs = self._prepare(model_args, kwargs)
        if self._init_jit is None:
            self._init_jit = jax.jit(self._init_of_leaves, static_argnums=(3, 4))
        of_leaves = self._init_jit
        leaves, structure = jax.tree.flatten((model_args, kwargs))
        # a model may need the value of a number of components, say: such are not traced
        static = tuple(x if isinstance(x, int | str) else None for x in leaves)
        arrays = [x if one is None else None for x, one in zip(leaves, static, strict=True)]

        def init(key: Array, params: dict | None) -> Any:
            return of_leaves(key, params, arrays, static, structure)

        params = init_params
        if not self._is_block:
            check_start_values(params)
            # scales that are fixed stay so, whatever a draw that is given says
            params = {
                name: value
                for name, value in (params or {}).items()
                if name not in _SCALES or isinstance(self._prior_of(name), dist.Distribution)
            }
            for name in set(params) & set(_SCALES):
                chains = () if is_prng_key(rng_key) else rng_key.shape[:1]
                check_start_scale(name, params[name], self._prior_of(name), chains)
            params = params or None
        if is_prng_key(rng_key):
            state = init(rng_key, params)
        else:
            state = jax.vmap(init)(rng_key, params)
        check_not_stopped(self, state.z)
        unknown = set(init_params or {}) - set(state.z)
        if unknown and not self._is_block:
            raise ValueError(f"init_params has {sorted(unknown)}, the sites are {sorted(state.z)}")
        return state

    def _init_of_leaves(
        self, key: Array, params: dict | None, arrays: list, static: tuple, structure: Any
    ) -> Any:
        leaves = [x if one is None else one for x, one in zip(arrays, static, strict=True)]
        state = self._init(as_fast_key(key), params, *jax.tree.unflatten(structure, leaves))
        state = state._replace(rng_key=like_key(state.rng_key, key))
        if self._is_block:  # other blocks may still move from where the log joint is no number
            return state
        return stop_if_not_finite(state, False, state.z, allows_zero=True)

    def sample(self, state, model_args, model_kwargs):
        """One sweep, of one chain or of a batch of chains."""
        kwargs = dict(model_kwargs or {})

        # overflow and numbers that are not finite are told by fields, not by callbacks: those would
        # bar the compilation cache
        def sweep(one: Any) -> Any:
            fast = one._replace(rng_key=as_fast_key(one.rng_key))
            new = sweep_unless_stopped(
                lambda state: self._sweep(state, model_args, kwargs), fast, self._is_block
            )
            return new._replace(rng_key=like_key(new.rng_key, one.rng_key))

        return sweep(state) if is_prng_key(state.rng_key) else jax.vmap(sweep)(state)

    def refresh(self, state, model_args, model_kwargs):
        """Recompute the potential energy under new values of the sibling sites."""
        potential = self._potential(state, model_args, dict(model_kwargs or {}))
        potential = jnp.where(is_stopped(state.z), jnp.nan, potential)
        return state._replace(potential_energy=potential)

    def wrap_model(self, wrapper):
        """A copy on ``wrapper(model)``, as :class:`numpyro.infer.Gibbs` asks for."""
        kernel = copy.copy(self)
        kernel._model = wrapper(self._model)
        kernel._in_gibbs = True
        kernel._init_jit = None
        return kernel

    def get_diagnostics_str(self, state):
        """Clusters and log joint, for the progress bar.

        :raises NotFiniteError: if the chain has stopped.
        """
        z = state.z
        check_not_stopped(self, z)
        if "log_joint" not in z:
            return ""
        clusters = f"{int(z['num_clusters'])} clusters, " if "num_clusters" in z else ""
        return f"{clusters}log joint {float(log_joint_of(z)):.1f}"

    def get_constrain_fn(self, model_args, model_kwargs):
        """Values are kept constrained: the identity."""
        return lambda z: z

    def __getstate__(self):
        return {**self.__dict__, "_init_jit": None}


def log_joint_of(z: Mapping[str, Any]) -> np.ndarray:
    """The log joint of a state, or of draws, with what float32 leaves of it: in float64."""
    return np.asarray(z["log_joint"], np.float64) + np.asarray(z.get("log_joint_rest", 0.0))


def find_rankings(args: tuple, kwargs: dict) -> Rankings:
    """The :class:`Rankings` among the arguments of a model."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Rankings):
            return value
    raise TypeError("the kernel needs a Rankings among the arguments of mcmc.run(key, …)")
