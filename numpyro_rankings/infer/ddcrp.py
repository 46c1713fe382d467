"""Gibbs sampling of the distance dependent Chinese restaurant process by links."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random
from numpyro.util import is_prng_key

from numpyro_rankings.components.family import AugmentedFamily, Family, with_auxiliary
from numpyro_rankings.decays import Decay
from numpyro_rankings.distances import as_neighbors, check_distances, num_distances
from numpyro_rankings.distributions import DistanceDependentCRP, links_to_partition
from numpyro_rankings.infer.alpha import positive
from numpyro_rankings.infer.base import (
    GibbsKernel,
    check_arguments,
    check_possible,
    check_scale,
    check_start_values,
    draw_start,
    keep_possible,
    log_prior,
    log_prior_ratio,
)
from numpyro_rankings.infer.links import Reach, as_reach, relink
from numpyro_rankings.infer.members import label_dtype
from numpyro_rankings.infer.partition import (
    Points,
    as_points,
    check_block_family,
    start_auxiliary,
    update_auxiliary,
)
from numpyro_rankings.models import ddcrp_mixture
from numpyro_rankings.ops.sampling import slice_sample

_STARTS, _LOG_TOTAL = 16, np.log(0.1)  # draws of a scale; of Σ_j f_ij where a point can link


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


class Hyper(NamedTuple):
    """What links are drawn given: **alpha**, **scale** of the decay, and the **reach**."""

    alpha: Array
    scale: Array | None
    reach: Reach


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


class DDCRPGibbs(LinkGibbs):
    r"""
    Gibbs sampler of a distance dependent Chinese restaurant process mixture, by links.

    Each sweep draws the link of every point given all others [1, eq. 5],

    .. math:: p(c_i = j) \propto f(d_{ij}) \, \frac{p(x_A \cup x_B)}{p(x_A)\, p(x_B)}
        \text{ where that joins } A \text{ and } B, \; f(d_{ij}) \text{ or } α \text{ where not},

    so that one draw may move whole groups. α is drawn by an auxiliary variable,
    :math:`V_i \sim \mathrm{Exp}(α + \sum_j f_{ij})`, given which it is Gamma if its prior is, else
    by slice sampling, as is the scale of the decay: where links go back in time only, given the
    partition, with all links summed over that make it, and these are drawn after it.

    Samples: ``links`` (D, N), ``assignments`` (D, N), canonical, ``num_clusters``, ``alpha``,
    ``decay_scale`` if it is learned, ``log_joint``.

    Run as ``mcmc.run(key, data, distances)``, with distances (N, N), of the row's point to the
    column's, ∞ where there can be no link; sequential if all to later points are. For many points
    with few in reach of each, :class:`~numpyro_rankings.distances.SparseDistances`; that module
    makes distances of times, places and graphs. Distances of more points than there are data are
    those of points whose values are not known, the last of them: they have links and a cluster
    too, see :func:`~numpyro_rankings.log_predictive_of_points`.
    Statistics are kept for as many clusters as points: N V numbers of documents of V words.

    :param family: component family, see :mod:`numpyro_rankings.components`.
    :param alpha: weight of a link to oneself, a number or a distribution.
    :param decay: of the distances, for instance ``exponential_decay(2.0)``; its scale may be a
        distribution.
    :param init: ``"singletons"``, after which the first sweep seats one point after the other;
        ``"one"``, all in one cluster, as far as links to points before can have it; ``"prior"`` for
        links drawn from it; or give ``init_params={"links": links}``, or
        ``{"assignments": labels}``, whose clusters are linked as all are by ``"one"``.
    :param model: a user's model, of which the kernel is then a block in
        :class:`numpyro.infer.Gibbs`: its site ``links`` must be a
        :class:`~numpyro_rankings.distributions.DistanceDependentCRP`, its first argument the data,
        and its likelihood that of :func:`~numpyro_rankings.models.ddcrp_mixture`.
    :param sites: another name for that site, ``{"links": "c"}``.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.

    .. doctest::

       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings.components import GaussianMean
       >>> from numpyro_rankings.infer import DDCRPGibbs, exponential_decay
       >>> x = jnp.array([[0.1], [0.0], [0.2], [3.1], [2.9], [0.1]])  # in time
       >>> distances = jnp.abs(jnp.arange(6.0)[:, None] - jnp.arange(6.0))
       >>> kernel = DDCRPGibbs(GaussianMean(3.0, 0.3), 0.5, exponential_decay(1.0))
       >>> mcmc = MCMC(kernel, num_warmup=100, num_samples=1000, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), x, distances)
       >>> labels = mcmc.get_samples()["assignments"]
       >>> bool(jnp.mean(labels[:, 3] == labels[:, 4]) > 0.5)
       True
    """

    _starts = ("singletons", "one", "prior")
    _awaits = _takes_labels = True

    def __init__(
        self,
        family: Family,
        alpha: float | dist.Distribution = 1.0,
        decay: Decay | None = None,
        *,
        init: str = "singletons",
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(family, Family):
            raise ValueError(f"family must be a component family, got {family!r}")
        self._family = family
        check_block_family(family, model is not None)
        if isinstance(family, AugmentedFamily):
            self._own_sites = (*self._own_sites, family.site)
        super().__init__(partial(ddcrp_mixture, family=family), alpha, decay, init, model, sites)

    @property
    def family(self) -> Family:
        """Of the components."""
        return self._family

    def _check_data(self, data: Any) -> int:
        self._family.check(data)
        return self._family.size(data)

    def _points(self, data: Any, distances: Any, own: dict) -> Points:
        number = None if distances is None else num_distances(distances)
        return as_points(self._family, with_auxiliary(self._family, data, own), number)

    def _start_auxiliary(
        self, key: Array, args: tuple, kwargs: dict, given: dict
    ) -> dict[str, Array]:
        return start_auxiliary(key, self._family, self._arguments(args, kwargs)[0], given)

    def _blank(self, points: Points) -> dict[str, Array]:
        return {"links": jnp.arange(points.size, dtype=jnp.int32)}

    def _start_sites(
        self, key: Array, given: dict, hyper: Hyper, points: Points, priors: dict
    ) -> dict[str, Array]:
        if "links" in given:
            return {"links": jnp.asarray(given["links"], jnp.int32)}
        if "assignments" in given:
            labels = jnp.asarray(given["assignments"], jnp.int32)
            return {"links": link_backward(among_equals(labels, hyper.reach))}
        if self._start == "prior":
            return {"links": draw_links(key, jnp.log(hyper.alpha), hyper.reach)}
        if self._start == "one":
            return {"links": link_backward(hyper.reach)}
        return self._blank(points)

    def _log_data(self, own: dict, labels: Array, points: Points, priors: dict) -> Array:
        clusters = self._family.of_clusters(points.statistics, labels, points.size)
        return self._family.log_marginal(clusters).sum() + points.log_base

    def _sweep(self, state: DDCRPState, args: tuple, kwargs: dict) -> DDCRPState:
        rng_key, key_links, key_hyper, key_auxiliary, key_within = random.split(state.rng_key, 5)
        data, distances = self._arguments(args, kwargs)
        own = self._own(state.z)
        points = self._points(data, distances, own)
        priors = self._priors(own, args, kwargs)
        hyper = self._hyper(state.z, priors, args, kwargs)
        log_alpha = jnp.log(hyper.alpha)
        links = relink(key_links, own["links"], log_alpha, hyper.reach, points, self._family)
        labels = links_to_partition(links)
        draw_alpha, log_terms = partial(update_alpha, links=links), partial(log_links, links)
        if hyper.scale is not None and "decay_scale" in state.z:
            goes_back = links_go_back(*as_neighbors(distances))
            log_terms = partial(log_terms_of_scale, goes_back, links, labels)
            hyper = self._update_hyper(key_hyper, hyper, draw_alpha, log_terms, args, kwargs)
            links = update_links_within(key_within, goes_back, links, labels, hyper.reach)
        else:
            hyper = self._update_hyper(key_hyper, hyper, draw_alpha, log_terms, args, kwargs)
        state = state._replace(rng_key=rng_key)
        auxiliary = update_auxiliary(key_auxiliary, self._family, data, own, labels, points.size)
        if auxiliary:
            points = self._points(data, distances, auxiliary)
        return self._with_sites(state, {"links": links, **auxiliary}, hyper, points, priors)


def is_traced(values: Any) -> bool:
    """Whether any array in there is known to a trace only."""
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(values))


def log_totals(reach: Reach) -> Array:
    """log Σ_j f_ij of each point, (N,), -inf where nobody is in reach."""
    some = jnp.any(reach.log_decay > -jnp.inf, axis=1)
    # of a row of nothing else the slope would be no number
    log_decay = jnp.where(some[:, None], reach.log_decay, 0.0)
    return jnp.where(some, jax.nn.logsumexp(log_decay, axis=1), -jnp.inf)


def start_scale(key: Array, prior: dist.Distribution, reach_of: Callable[[Array], Reach]) -> Array:
    """A draw of the scale from its prior, of several one at which points can link.

    With nobody in reach all links are to oneself, and given those no scale is likelier.
    """
    draws = jax.vmap(draw_start, (0, None))(random.split(key, _STARTS), prior)
    linking = jax.lax.map(lambda a: jnp.sum(log_totals(reach_of(a)) > _LOG_TOTAL), draws)
    return draws[jnp.argmax(2 * linking >= linking.max())]


def log_links(links: Array, hyper: Hyper) -> Array:
    """Log probability of each link, (N,), eq. (2)."""
    log_alpha = jnp.log(hyper.alpha)
    log_weight = log_weight_of_links(links, log_alpha, hyper.reach)
    return log_weight - jnp.logaddexp(log_alpha, log_totals(hyper.reach))


def log_weight_of_links(links: Array, log_alpha: Array, reach: Reach) -> Array:
    """log f_ij of each link, log α of those to oneself, (N,)."""
    index = jnp.arange(links.shape[0])
    if reach.neighbors is None:
        log_decay = reach.log_decay[index, links]
    else:
        chosen = reach.neighbors == links[:, None]
        log_decay = jnp.max(jnp.where(chosen, reach.log_decay, -jnp.inf), axis=1)
    return jnp.where(links == index, log_alpha, log_decay)


def links_go_back(neighbors: Array | None, distances: Array) -> Array:
    """Whether links, in whatever direction, never come back to where they started.

    They do not if all go to earlier points in the order of the points, or in that of how many
    others each can link to, as in time. There are more such distances, which are not recognised.
    """
    reach = as_reach(neighbors, jnp.where(distances < jnp.inf, 0.0, -jnp.inf))
    can_link = reach.log_decay > -jnp.inf
    columns = jnp.arange(reach.size) if neighbors is None else neighbors

    def all_earlier(place: Array) -> Array:
        return jnp.all(~can_link | (place[columns] < place[:, None]))

    return all_earlier(jnp.arange(reach.size)) | all_earlier(jnp.sum(can_link, axis=1))


def among_equals(labels: Array, reach: Reach) -> Reach:
    """Links to points of the same label only, all others of weight 0."""
    others = labels if reach.neighbors is None else labels[reach.neighbors]
    same = others == labels[:, None]
    return reach._replace(log_decay=jnp.where(same, reach.log_decay, -jnp.inf))


def log_terms_of_scale(goes_back: Array, links: Array, labels: Array, hyper: Hyper) -> Array:
    r"""Terms whose sum is the log likelihood of the scale: given the partition if links go back.

    Then each cluster has one link to itself, of the point that can link to none of the others, and
    the rest of them are free: the sum over all links that make the partition is a product of
    :math:`\sum_{j: z_j = z_i} f_{ij}`. Given the links, a window could not get below the longest.
    """

    def given_partition() -> Array:
        log_alpha = jnp.log(hyper.alpha)
        log_within = log_totals(among_equals(labels, hyper.reach))
        opens = log_within == -jnp.inf
        log_prob = jnp.where(opens, log_alpha, log_within)
        log_prob -= jnp.logaddexp(log_alpha, log_totals(hyper.reach))
        return jnp.where(jnp.sum(opens) == labels.max() + 1, log_prob, -jnp.inf)

    return jax.lax.cond(goes_back, given_partition, lambda: log_links(links, hyper))


def update_links_within(
    key: Array, goes_back: Array, links: Array, labels: Array, reach: Reach
) -> Array:
    """Draw all links given the partition, as the scale was drawn, if links go back."""

    def draw() -> Array:
        within = among_equals(labels, reach)
        opens = log_totals(within) == -jnp.inf
        return draw_links(key, jnp.where(opens, 0.0, -jnp.inf), within)

    return jax.lax.cond(goes_back, draw, lambda: links)


def link_backward(reach: Reach) -> Array:
    """Each to its likeliest point before it, to itself if it has none in reach: (N,)."""
    index = jnp.arange(reach.size)
    columns = index if reach.neighbors is None else reach.neighbors
    before = jnp.where(columns < index[:, None], reach.log_decay, -jnp.inf)
    best = jnp.argmax(before, axis=1)
    other = best if reach.neighbors is None else reach.neighbors[index, best]
    return jnp.where(before.max(axis=1) > -jnp.inf, other, index).astype(jnp.int32)


def draw_links(key: Array, log_itself: Array, reach: Reach) -> Array:
    """Each link for itself, (N,).

    :param log_itself: log weight of the link to oneself, () or (N,).
    """
    index = jnp.arange(reach.size)
    log_itself = jnp.broadcast_to(log_itself, (reach.size,))
    log_weights = jnp.concatenate([reach.log_decay, log_itself[:, None]], axis=1)
    column = random.categorical(key, log_weights)
    last = column == reach.log_decay.shape[1]
    column = jnp.where(last, 0, column)
    other = column if reach.neighbors is None else reach.neighbors[index, column]
    return jnp.where(last, index, other).astype(jnp.int32)


def update_alpha(key: Array, hyper: Hyper, alpha_prior: dist.Distribution, links: Array) -> Array:
    """Draw α given the links: of a Gamma prior exactly, with V_i ~ Exp(α + Σ_j f_ij)."""
    size = links.shape[0]
    itself = jnp.sum(links == jnp.arange(size)).astype(float)
    totals = jnp.exp(log_totals(hyper.reach))
    if isinstance(alpha_prior, dist.Gamma):
        key_times, key_alpha = random.split(key)
        times = random.exponential(key_times, (size,)) / (hyper.alpha + totals)
        log_gamma = random.loggamma(key_alpha, alpha_prior.concentration + itself)
        return positive(jnp.exp(log_gamma) / (alpha_prior.rate + times.sum()))

    def difference(log_alpha: Array, delta: Array) -> Array:
        alpha = jnp.exp(log_alpha)
        step = alpha * jnp.expm1(delta)
        change = itself * delta - jnp.sum(jnp.log1p(step / (alpha + totals)))
        return change + log_prior_ratio(alpha_prior, alpha + step, hyper.alpha) + delta

    log_alpha = slice_sample(key, jnp.log(hyper.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, positive(jnp.exp(log_alpha)), hyper.alpha)


def update_decay(
    key: Array,
    log_terms: Callable[[Hyper], Array],
    hyper: Hyper,
    prior: dist.Distribution,
    reach_of: Callable[[Array], Reach],
) -> Hyper:
    """Draw the scale of the decay by slice sampling of its logarithm.

    :param log_terms: whose sum is the log likelihood of α and the scale, (N,).
    """
    now = log_terms(hyper)

    def difference(log_scale: Array, delta: Array) -> Array:
        scale = jnp.exp(log_scale + delta)
        other = log_terms(hyper._replace(scale=scale, reach=reach_of(scale)))
        change = jnp.sum(other - now) + delta
        return change + log_prior_ratio(prior, scale, hyper.scale)

    assert hyper.scale is not None
    log_scale = slice_sample(key, jnp.log(hyper.scale), difference, 1.0, lower=-jnp.inf)
    scale = keep_possible(prior, jnp.exp(log_scale), hyper.scale)
    return hyper._replace(scale=scale, reach=reach_of(scale))
