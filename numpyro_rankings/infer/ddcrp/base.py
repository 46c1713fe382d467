"""What the samplers of links share: distances, decay, α, state."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random
from numpyro.util import is_prng_key

from numpyro_rankings.decays import Decay
from numpyro_rankings.distances import as_neighbors, check_distances, num_distances
from numpyro_rankings.distributions import DistanceDependentCRP, links_to_partition
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.infer.checks import (
    check_arguments,
    check_possible,
    check_scale,
    check_start_values,
    is_traced,
)
from numpyro_rankings.infer.ddcrp.reach import Hyper, Reach, as_reach, log_links
from numpyro_rankings.infer.ddcrp.scales import start_scale, update_decay
from numpyro_rankings.infer.mixture.membership import label_dtype
from numpyro_rankings.infer.priors import draw_start, log_prior


class DDCRPState(NamedTuple):
    """
    - **z** - ``links`` (N,), ``assignments`` (N,), ``num_clusters``, ``alpha``, ``decay_scale`` if
      it is learned, ``base`` (V,) of a language model if it is unknown, and ``log_joint``.
    - **potential_energy** - minus the log joint.
    - **accept_prob** - 1: there is nothing to be accepted.
    - **overflow** - False: there is room for as many clusters as points.
    - **rng_key** - key of the next sweep.
    """

    z: dict[str, Array]
    potential_energy: Array
    accept_prob: Array
    overflow: Array
    rng_key: Array


class LinkGibbs(GibbsKernel):
    """What samplers of links share: distances, decay, α, state.

    A subclass gives the sweep, the start of its sites, and the likelihood of the data given them.
    """

    _arguments_named = ("data", "distances")
    _own_sites: tuple[str, ...] = ("links",)
    _starts: tuple[str, ...] = ("singletons", "prior")
    _awaits = False  # whether there may be points whose values are not known
    _takes_labels = False  # whether it can start from labels instead of links

    def __init__(
        self,
        generative: Callable,
        alpha: float | dist.Distribution,
        decay: Decay | None,
        init: str,
        model: Callable | None,
        sites: Mapping[str, str] | None,
    ) -> None:
        check_scale("alpha", alpha)
        self._is_block = model is not None
        if not self._is_block and not isinstance(decay, Decay):
            raise ValueError(
                f"decay must be a decay, such as exponential_decay(2.0), got {decay!r}"
            )
        if isinstance(decay, Decay) and isinstance(decay.scale, dist.Distribution):
            check_scale("the scale of the decay", decay.scale)
        if init not in self._starts:
            raise ValueError(f"init is one of {self._starts}, got {init!r}")
        own = {name: name for name in self._own_sites}
        self._sites = {**own, **(sites or {})}
        if set(self._sites) != set(own):
            raise ValueError(f"sites can name {sorted(own)}, got {sorted(self._sites)}")
        self._alpha, self._decay, self._start = alpha, decay, init
        super().__init__(model or partial(generative, alpha=alpha, decay=decay))

    @abstractmethod
    def _check_data(self, data: Any) -> int:
        """Raise ValueError if the data do not fit the kernel; else how many points there are."""

    @abstractmethod
    def _points(self, data: Any, distances: Any, own: dict) -> Any:
        """The data as sweeps use them.

        :param own: the kernel's sites, of which auxiliary variables of the data are read.
        """

    def _start_auxiliary(
        self, key: Array, args: tuple, kwargs: dict, given: dict
    ) -> dict[str, Array]:
        """Those of the kernel's sites that are auxiliary variables of the data, at the start."""
        return {}

    @abstractmethod
    def _blank(self, points: Any) -> dict[str, Array]:
        """Some value of each of the kernel's sites."""

    @abstractmethod
    def _start_sites(
        self, key: Array, given: dict, hyper: Hyper, points: Any, priors: dict
    ) -> dict[str, Array]:
        """The kernel's sites before the first sweep."""

    @abstractmethod
    def _log_data(self, own: dict, labels: Array, points: Any, priors: dict) -> Array:
        """log p(data and the kernel's sites other than links | links)."""

    # -- data ------------------------------------------------------------------------------------

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        names = self._arguments_named[: 1 if self._is_block else 2]
        if not self._is_block and (len(args) > len(names) or set(kwargs) - set(names)):
            raise TypeError(f"the kernel takes mcmc.run(key, {', '.join(names)}) and nothing else")
        given = [*args[: len(names)], *(kwargs[n] for n in names[len(args) :] if n in kwargs)]
        if len(given) < len(names) or given[-1] is None:
            raise TypeError(f"the kernel needs mcmc.run(key, {', '.join(names)})")
        return given[0], given[1] if len(names) > 1 else None

    def _check(self, args: tuple, kwargs: dict) -> None:
        self._check_use_as_block()
        data, distances = self._arguments(args, kwargs)
        if is_traced((data, distances)):
            return
        size = self._check_data(data)
        if size == 0:
            raise ValueError("there are no points")
        if distances is not None:
            check_distances(distances, size, awaits=self._awaits)
            awaited = num_distances(distances) - size
            if awaited > 0:
                warnings.warn(
                    f"the distances are of {size + awaited} points and the data of {size}: the "
                    f"values of the last {awaited} are taken as not known",
                    stacklevel=4,
                )

    def _check_start(
        self, name: str, value: np.ndarray, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        data, distances = self._arguments(args, kwargs)
        size = self._check_data(data) if distances is None else num_distances(distances)
        shape = (*chains, size)
        if value.dtype.kind not in "iu" or value.shape != shape or value.max() >= size:
            what = "a point" if name == "links" else "a label"
            raise ValueError(
                f"init_params[{name!r}] must be {what} for each of the {size}, from 0 to "
                f"{size - 1}, an integer array of shape {shape}, got {value.shape} of {value.dtype}"
            )

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        """Initial state; a batch of keys gives a batch of chains."""
        check_arguments(model_args, dict(model_kwargs or {}))
        if not self._is_block:
            check_start_values(init_params)
        given = {} if self._is_block else init_params or {}
        if "assignments" in given and "links" not in given and not self._takes_labels:
            raise ValueError("the kernel starts from links: give init_params={'links': links}")
        for name in ("links", "assignments"):
            value = given.get(name)
            if value is not None and not is_traced((value, model_args, model_kwargs)):
                self._check(model_args, dict(model_kwargs or {}))
                chains = () if is_prng_key(rng_key) else rng_key.shape[:1]
                self._check_start(
                    name, np.asarray(value), chains, model_args, dict(model_kwargs or {})
                )
        state = super().init(rng_key, num_warmup, init_params, model_args, model_kwargs)
        if not self._is_block:
            check_possible(state.potential_energy)
        return state

    def _has_prior(self, value: Any) -> bool:
        return isinstance(value, dist.Distribution) and not self._is_block

    def _prior_of(self, scale: str) -> Any:
        if scale == "decay_scale":
            return None if self._decay is None else self._decay.scale
        return super()._prior_of(scale)

    # -- what the links are drawn given ----------------------------------------------------------

    def _priors(self, own: dict, args: tuple, kwargs: dict) -> dict[str, Any]:
        """Of the kernel's sites in a user's model, given the sibling sites; else there is none."""
        if not self._is_block:
            return {}
        own = {self._sites[name]: value for name, value in own.items()}
        trace = self._sites_of_model(own, args, kwargs)
        priors = {name: trace[site]["fn"] for name, site in self._sites.items()}
        links = priors["links"]
        if not isinstance(links, DistanceDependentCRP) or links.batch_shape:
            raise ValueError(
                f"site {self._sites['links']!r} must have one DistanceDependentCRP as its prior, "
                f"not {links!r}"
            )
        return priors

    def _hyper(self, z: dict, priors: dict, args: tuple, kwargs: dict) -> Hyper:
        """α and the decays; as a block, those of the user's model."""
        if self._is_block:
            prior = priors["links"]
            log_decay = jnp.log(jnp.asarray(prior.decay_matrix, float))
            neighbors = None if prior.neighbors is None else jnp.asarray(prior.neighbors)
            return Hyper(jnp.asarray(prior.alpha, float), None, as_reach(neighbors, log_decay))
        assert self._decay is not None
        scale = z.get("decay_scale", self._decay.scale)
        return Hyper(jnp.asarray(z["alpha"], float), scale, self._reach_of(args, kwargs)(scale))

    def _reach_of(self, args: tuple, kwargs: dict) -> Callable[[Any], Reach]:
        """Whom each can link to, given the scale of the decay."""
        neighbors, distances = as_neighbors(self._arguments(args, kwargs)[1])
        decay = self._decay
        assert decay is not None
        return lambda scale: as_reach(neighbors, decay.log(distances, scale))

    def _update_hyper(
        self,
        key: Array,
        hyper: Hyper,
        draw_alpha: Callable[[Array, Hyper, dist.Distribution], Array],
        log_terms: Callable[[Hyper], Array],
        args: tuple,
        kwargs: dict,
    ) -> Hyper:
        """Draw what has a prior: α by the function, the scale by the density, a sum of terms."""
        key_alpha, key_scale = random.split(key)
        if self._has_prior(self._alpha):
            assert isinstance(self._alpha, dist.Distribution)
            hyper = hyper._replace(alpha=draw_alpha(key_alpha, hyper, self._alpha))
        if self._decay is not None and self._has_prior(self._decay.scale):
            reach_of = self._reach_of(args, kwargs)
            hyper = update_decay(key_scale, log_terms, hyper, self._decay.scale, reach_of)
        return hyper

    # -- state -----------------------------------------------------------------------------------

    def _own(self, z: dict) -> dict[str, Array]:
        return {name: z[site] for name, site in self._sites.items()}

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> DDCRPState:
        key_alpha, key_scale, key_sites, rng_key, key_auxiliary = random.split(rng_key, 5)
        given = {} if self._is_block else dict(init_params or {})
        auxiliary = self._start_auxiliary(key_auxiliary, args, kwargs, given)
        points = self._points(*self._arguments(args, kwargs), auxiliary)
        z = {}
        if not self._is_block:
            assert self._decay is not None
            z["alpha"] = draw_start(key_alpha, given.get("alpha", self._alpha))
            if self._has_prior(self._decay.scale):
                z["decay_scale"] = (
                    draw_start(key_scale, given["decay_scale"])
                    if "decay_scale" in given
                    else start_scale(key_scale, self._decay.scale, self._reach_of(args, kwargs))
                )
        priors = self._priors(self._blank(points), args, kwargs)
        hyper = self._hyper(z, priors, args, kwargs)
        own = self._start_sites(key_sites, given, hyper, points, priors) | auxiliary
        if self._is_block:
            values = {site: own[name] for name, site in self._sites.items()}
            self._check_dependents(
                values, "", args, kwargs, lambda _, fn: isinstance(fn, dist.Unit)
            )
        one = jnp.ones(())
        state = DDCRPState(z, one, one, jnp.array(False), rng_key)
        return self._with_sites(state, own, hyper, points, priors)

    def _with_sites(
        self, state: DDCRPState, own: dict, hyper: Hyper, points: Any, priors: dict
    ) -> DDCRPState:
        labels = links_to_partition(own["links"])
        log_joint = self._log_joint(own, labels, hyper, points, priors)
        z = {self._sites[name]: value for name, value in own.items()}
        if not self._is_block:
            z |= {
                "assignments": labels.astype(label_dtype(labels.shape[0])),
                "num_clusters": jnp.max(labels) + 1,
                "alpha": hyper.alpha,
                "log_joint": log_joint,
            }
            if hyper.scale is not None and "decay_scale" in state.z:
                z["decay_scale"] = hyper.scale
        return state._replace(z=z, potential_energy=-log_joint)

    def _log_joint(
        self, own: dict, labels: Array, hyper: Hyper, points: Any, priors: dict
    ) -> Array:
        """log p(data, the kernel's sites, α, scale)."""
        log_joint = self._log_data(own, labels, points, priors)
        log_joint += jnp.sum(log_links(own["links"], hyper))
        if self._has_prior(self._alpha):
            assert isinstance(self._alpha, dist.Distribution)
            log_joint += log_prior(self._alpha, hyper.alpha)
        if self._decay is not None and self._has_prior(self._decay.scale):
            log_joint += log_prior(self._decay.scale, hyper.scale)
        return log_joint

    def _potential(self, state: DDCRPState, args: tuple, kwargs: dict) -> Array:
        own = self._own(state.z)
        points = self._points(*self._arguments(args, kwargs), own)
        priors = self._priors(own, args, kwargs)
        hyper = self._hyper(state.z, priors, args, kwargs)
        return -self._log_joint(own, links_to_partition(own["links"]), hyper, points, priors)
