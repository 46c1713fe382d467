"""Base of the samplers of links: distances, decay, α, state."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.distributions import DistanceDependentCRP, links_to_partition
from numpyro_rankings.infer.base import GibbsKernel, GibbsState
from numpyro_rankings.infer.checks import check_possible, check_scale, check_start_values
from numpyro_rankings.infer.ddcrp.reach import LinkPrior, LinkWeights, as_link_weights, log_links
from numpyro_rankings.infer.ddcrp.scales import start_scale, update_decay_scale
from numpyro_rankings.infer.mixture.membership import label_dtype
from numpyro_rankings.infer.priors import draw_start
from numpyro_rankings.links.decays import Decay
from numpyro_rankings.links.distances import as_neighbors, check_distances, num_distances
from numpyro_rankings.ops.checks import is_traced


class CurrentLinks(NamedTuple):
    """The values that a sweep changes; others are a base, or auxiliary variables of a family."""

    links: Array  # the point that each point links to, (N,) int32
    prior: LinkPrior  # prior of the links, with the current α and scale of the decay
    points: Any  # the data as the updates use them, given the auxiliary variables
    others: dict[str, Array]


class LinkInputs(NamedTuple):
    """The values that a sweep conditions on."""

    data: Any
    distances: Any  # as the data an argument of mcmc.run; a block has none
    site_priors: dict[str, Any]  # priors of the kernel's sites in a user's model, by name


class LinkGibbs(GibbsKernel):
    """Base of the samplers of links: a subclass gives sweep, initial values and likelihood."""

    _arguments_named = ("data", "distances")
    _own_sites: tuple[str, ...] = ("links",)
    _starts: tuple[str, ...] = ("singletons", "prior")
    _awaits = False  # whether there may be points whose values are unknown
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

    @property
    def decay(self) -> Decay | None:
        """The decay of the distances, as given to the constructor."""
        return self._decay

    @abstractmethod
    def _check_data(self, data: Any) -> int:
        """Return the number of points, or raise ValueError if the data do not fit the kernel."""

    @abstractmethod
    def _points(self, data: Any, distances: Any, others: Mapping[str, Array]) -> Any:
        """The data as the updates use them, given the sites of the kernel."""

    def _start_auxiliary(self, key: Array, data: Any, start: dict) -> dict[str, Array]:
        """Initial auxiliary variables of the data, by site."""
        return {}

    @abstractmethod
    def _blank(self, points: Any) -> dict[str, Array]:
        """Any value of each of the kernel's sites."""

    @abstractmethod
    def _start_sites(
        self, key: Array, start: dict, current: CurrentLinks, given: LinkInputs
    ) -> CurrentLinks:
        """The kernel's sites before the first sweep, from blank ones and those of the user."""

    @abstractmethod
    def _log_data(self, current: CurrentLinks, labels: Array, given: LinkInputs) -> Array:
        """log p(data and the kernel's sites other than links | links), which make the partition."""

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
                    stacklevel=3,
                )

    def _check_start(
        self, start: dict | None, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        check_start_values(start)
        given = start or {}
        if "assignments" in given and "links" not in given and not self._takes_labels:
            raise ValueError("the kernel starts from links: give init_params={'links': links}")
        data, distances = self._arguments(args, kwargs)
        for name in ("links", "assignments"):
            value = given.get(name)
            if value is not None and not is_traced((value, args, kwargs)):
                size = self._check_data(data) if distances is None else num_distances(distances)
                self._check_labels(name, np.asarray(value), (*chains, size))

    def _check_labels(self, name: str, value: np.ndarray, shape: tuple[int, ...]) -> None:
        size = shape[-1]
        if value.dtype.kind not in "iu" or value.shape != shape or value.max() >= size:
            what = "a point" if name == "links" else "a label"
            raise ValueError(
                f"init_params[{name!r}] must be {what} for each of the {size}, from 0 to "
                f"{size - 1}, an integer array of shape {shape}, got {value.shape} of {value.dtype}"
            )

    def _finish_start(self, state: Any, num_warmup: int) -> Any:
        if not self._is_block:
            check_possible(state.potential_energy)
        return state

    def _scale_arguments(self) -> dict[str, Any]:
        decay_scale = None if self._decay is None else self._decay.scale
        return {"alpha": self._alpha, "decay_scale": decay_scale}

    # -- prior of the links ----------------------------------------------------------------------

    @property
    def _learns_scale(self) -> bool:
        return self._learned_prior("decay_scale") is not None

    def _site_priors(self, own: Mapping[str, Array], args: tuple, kwargs: dict) -> dict[str, Any]:
        """Priors of the kernel's sites in a user's model, given its other sites."""
        if not self._is_block:
            return {}
        values = {self._sites[name]: value for name, value in own.items()}
        trace = self._trace_model(values, args, kwargs)
        priors = {name: trace[site]["fn"] for name, site in self._sites.items()}
        links = priors["links"]
        if not isinstance(links, DistanceDependentCRP) or links.batch_shape:
            raise ValueError(
                f"site {self._sites['links']!r} must have one DistanceDependentCRP as its prior, "
                f"not {links!r}"
            )
        return priors

    def _link_prior(self, z: Mapping[str, Any], given: LinkInputs) -> LinkPrior:
        """α and the weights of links; as a block, those of the user's model."""
        if self._is_block:
            prior = given.site_priors["links"]
            log_decay = jnp.log(jnp.asarray(prior.decay_matrix, float))
            neighbors = None if prior.neighbors is None else jnp.asarray(prior.neighbors)
            weights = as_link_weights(neighbors, log_decay)
            return LinkPrior(jnp.asarray(prior.alpha, float), None, weights)
        assert self._decay is not None
        scale = z.get("decay_scale", self._decay.scale)
        weights = self._weights_of(given.distances)(scale)
        return LinkPrior(jnp.asarray(z["alpha"], float), scale, weights)

    def _weights_of(self, distances: Any) -> Callable[[Any], LinkWeights]:
        """The weights of links, as a function of the scale of the decay."""
        neighbors, values = as_neighbors(distances)
        decay = self._decay
        assert decay is not None
        return lambda scale: as_link_weights(neighbors, decay.log(values, scale))

    def _update_prior(
        self,
        key: Array,
        prior: LinkPrior,
        draw_alpha: Callable[[Array, LinkPrior, dist.Distribution], Array],
        log_terms: Callable[[LinkPrior], Array],
        distances: Any,
    ) -> LinkPrior:
        """Draw α, then the scale of the decay, if they are unknown."""
        key_alpha, key_scale = random.split(key)
        alpha_prior, scale_prior = map(self._learned_prior, ("alpha", "decay_scale"))
        if alpha_prior is not None:
            prior = prior._replace(alpha=draw_alpha(key_alpha, prior, alpha_prior))
        if scale_prior is not None:
            weights_of = self._weights_of(distances)
            prior = update_decay_scale(key_scale, log_terms, prior, scale_prior, weights_of)
        return prior

    # -- state -----------------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> GibbsState:
        key_alpha, key_scale, key_sites, rng_key, key_auxiliary = random.split(rng_key, 5)
        start = {} if self._is_block else dict(init_params or {})
        data, distances = self._arguments(args, kwargs)
        auxiliary = self._start_auxiliary(key_auxiliary, data, start)
        points = self._points(data, distances, auxiliary)
        z = self._start_scales(key_alpha, key_scale, start, distances)
        own = self._blank(points)
        given = LinkInputs(data, distances, self._site_priors(own, args, kwargs))
        current = self._as_current({**own, **auxiliary}, self._link_prior(z, given), points)
        current = self._start_sites(key_sites, start, current, given)
        if self._is_block:
            values = self._sites_of(current)
            self._check_dependents(values, args, kwargs, lambda _, fn: isinstance(fn, dist.Unit))
        one = jnp.ones(())
        state = GibbsState(z, one, one, jnp.array(False), rng_key)
        return self._write(state, current, given)

    def _start_scales(
        self, key_alpha: Array, key_scale: Array, start: dict, distances: Any
    ) -> dict[str, Array]:
        """Initial α, and scale of the decay if it is unknown."""
        if self._is_block:
            return {}
        alpha = draw_start(key_alpha, start.get("alpha", self._alpha))
        scale_prior = self._learned_prior("decay_scale")
        if scale_prior is None:
            return {"alpha": alpha}
        if "decay_scale" in start:
            scale = draw_start(key_scale, start["decay_scale"])
        else:
            scale = start_scale(key_scale, scale_prior, self._weights_of(distances))
        return {"alpha": alpha, "decay_scale": scale}

    @staticmethod
    def _as_current(own: Mapping[str, Array], prior: LinkPrior, points: Any) -> CurrentLinks:
        others = {name: value for name, value in own.items() if name != "links"}
        return CurrentLinks(own["links"], prior, points, others)

    def _sites_of(self, current: CurrentLinks) -> dict[str, Array]:
        """Values of the kernel's sites, by their names in the model."""
        own = {"links": current.links, **current.others}
        return {self._sites[name]: value for name, value in own.items()}

    def _read(
        self, state: GibbsState, args: tuple, kwargs: dict
    ) -> tuple[CurrentLinks, LinkInputs]:
        own = {name: state.z[site] for name, site in self._sites.items()}
        data, distances = self._arguments(args, kwargs)
        points = self._points(data, distances, own)
        given = LinkInputs(data, distances, self._site_priors(own, args, kwargs))
        return self._as_current(own, self._link_prior(state.z, given), points), given

    def _write(self, state: GibbsState, current: CurrentLinks, given: LinkInputs) -> GibbsState:
        """The state with these sites, their partition and the log joint."""
        labels = links_to_partition(current.links)
        log_joint = self._log_joint(current, labels, given)
        scale = {"decay_scale": current.prior.scale} if self._learns_scale else {}
        scalars: dict[str, Any] = {
            "assignments": labels.astype(label_dtype(labels.shape[0])),
            "num_clusters": jnp.max(labels) + 1,
            "alpha": current.prior.alpha,
            "log_joint": log_joint,
            **scale,
        }
        z = {**self._sites_of(current), **({} if self._is_block else scalars)}
        return state._replace(z=z, potential_energy=-log_joint)

    def _log_joint(self, current: CurrentLinks, labels: Array, given: LinkInputs) -> Array:
        """log p(data, the kernel's sites, α, scale)."""
        prior, log_joint = current.prior, self._log_data(current, labels, given)
        log_joint += jnp.sum(log_links(current.links, prior))
        return self._add_log_priors(log_joint, alpha=prior.alpha, decay_scale=prior.scale)

    def _potential(self, state: GibbsState, args: tuple, kwargs: dict) -> Array:
        current, given = self._read(state, args, kwargs)
        return -self._log_joint(current, links_to_partition(current.links), given)
