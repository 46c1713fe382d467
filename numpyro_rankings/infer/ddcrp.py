"""Gibbs sampling of the distance dependent Chinese restaurant process by links."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Family, num_points
from numpyro_rankings.decays import Decay, as_neighbors, check_distances
from numpyro_rankings.distributions import DistanceDependentCRP, links_to_partition
from numpyro_rankings.infer.base import GibbsKernel, check_prior, check_scale, draw_start
from numpyro_rankings.infer.links import Reach, as_reach, relink
from numpyro_rankings.infer.members import label_dtype
from numpyro_rankings.infer.partition import Points, as_points
from numpyro_rankings.models import ddcrp_mixture
from numpyro_rankings.ops.sampling import slice_sample

STARTS = ("singletons", "prior")


class DDCRPState(NamedTuple):
    """
    - **z** - ``links`` (N,), ``assignments`` (N,), ``num_clusters``, ``alpha``, ``decay_scale`` if
      it is learned, and ``log_joint``.
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


class _Hyper(NamedTuple):
    """What links are drawn given: **alpha**, **scale** of the decay, and the **reach**."""

    alpha: Array
    scale: Array | None
    reach: Reach


class DDCRPGibbs(GibbsKernel):
    r"""
    Gibbs sampler of a distance dependent Chinese restaurant process mixture, by links.

    Each sweep draws the link of every point given all others [1, eq. 5],

    .. math:: p(c_i = j) \propto f(d_{ij}) \, \frac{p(x_A \cup x_B)}{p(x_A)\, p(x_B)}
        \text{ where that joins } A \text{ and } B, \; f(d_{ij}) \text{ or } α \text{ where not},

    so that one draw may move whole groups. α is drawn by an auxiliary variable,
    :math:`V_i \sim \mathrm{Exp}(α + \sum_j f_{ij})`, given which it is Gamma if its prior is, else
    by slice sampling, as is the scale of the decay.

    Samples: ``links`` (D, N), ``assignments`` (D, N), canonical, ``num_clusters``, ``alpha``,
    ``decay_scale`` if it is learned, ``log_joint``.

    Run as ``mcmc.run(key, data, distances)``, with distances (N, N), of the row's point to the
    column's, ∞ where there can be no link; sequential if all to later points are. For many points
    with few in reach of each, :class:`~numpyro_rankings.decays.SparseDistances`.

    :param family: component family, see :mod:`numpyro_rankings.components`.
    :param alpha: weight of a link to oneself, a number or a distribution.
    :param decay: of the distances, for instance ``exponential_decay(2.0)``; its scale may be a
        distribution.
    :param init: ``"singletons"``, or ``"prior"`` for links drawn from it; or give
        ``init_params={"links": links}``.
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
        check_scale("alpha", alpha)
        self._is_block = model is not None
        if not self._is_block and not isinstance(decay, Decay):
            raise ValueError(
                f"decay must be a decay, such as exponential_decay(2.0), got {decay!r}"
            )
        if isinstance(decay, Decay) and isinstance(decay.scale, dist.Distribution):
            check_prior("the scale of the decay", decay.scale)
        if init not in STARTS:
            raise ValueError(f"init is one of {STARTS}, got {init!r}")
        self._sites = {"links": "links", **(sites or {})}
        if set(self._sites) != {"links"}:
            raise ValueError(f"sites can name ['links'], got {sorted(self._sites)}")
        self._family, self._alpha, self._decay, self._start = family, alpha, decay, init
        if model is None:
            assert decay is not None
            model = partial(ddcrp_mixture, family=family, alpha=alpha, decay=decay)
        super().__init__(model)

    @property
    def family(self) -> Family:
        """Of the components."""
        return self._family

    # -- data ------------------------------------------------------------------------------------

    def _arguments(self, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        names = ("data",) if self._is_block else ("data", "distances")
        given = [*args[: len(names)], *(kwargs[n] for n in names[len(args) :] if n in kwargs)]
        if len(given) < len(names):
            raise TypeError(f"the kernel needs mcmc.run(key, {', '.join(names)})")
        return given[0], given[1] if len(names) > 1 else None

    def _check(self, args: tuple, kwargs: dict) -> None:
        self._check_use_as_block()
        data, distances = self._arguments(args, kwargs)
        if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((data, distances))):
            return
        self._family.check(data)
        size = num_points(self._family.statistics(data))
        if size == 0:
            raise ValueError("there are no points")
        if distances is not None:
            check_distances(distances, size)

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        """Initial state; a batch of keys gives a batch of chains."""
        links = None if self._is_block else (init_params or {}).get("links")
        if links is not None and not isinstance(links, jax.core.Tracer):
            data, _ = self._arguments(model_args, dict(model_kwargs or {}))
            size, links = num_points(self._family.statistics(data)), np.asarray(links)
            if links.dtype.kind not in "iu" or links.shape[-1:] != (size,) or links.max() >= size:
                raise ValueError(
                    f"init_params['links'] must be a point for each of the {size}, from 0 to "
                    f"{size - 1}"
                )
        return super().init(rng_key, num_warmup, init_params, model_args, model_kwargs)

    def _has_prior(self, value: Any) -> bool:
        return isinstance(value, dist.Distribution) and not self._is_block

    def _hyper(self, z: dict, args: tuple, kwargs: dict) -> _Hyper:
        """α and the decays; as a block, those of the user's model given the sibling sites."""
        if self._is_block:
            site = self._sites["links"]
            prior = self._sites_of_model({site: z[site]}, args, kwargs)[site]["fn"]
            if not isinstance(prior, DistanceDependentCRP) or prior.batch_shape:
                raise ValueError(
                    f"site {site!r} must have one DistanceDependentCRP as its prior, not {prior!r}"
                )
            log_decay = jnp.log(jnp.asarray(prior.decay_matrix, float))
            neighbors = None if prior.neighbors is None else jnp.asarray(prior.neighbors)
            return _Hyper(jnp.asarray(prior.alpha, float), None, as_reach(neighbors, log_decay))
        neighbors, distances = as_neighbors(self._arguments(args, kwargs)[1])
        assert self._decay is not None
        scale = z.get("decay_scale", self._decay.scale)
        reach = as_reach(neighbors, self._decay.log(distances, scale))
        return _Hyper(jnp.asarray(z["alpha"], float), scale, reach)

    # -- state -----------------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> DDCRPState:
        key_alpha, key_scale, key_links, rng_key = random.split(rng_key, 4)
        points = as_points(self._family, self._arguments(args, kwargs)[0])
        given = {} if self._is_block else dict(init_params or {})
        site = self._sites["links"]
        z = {site: jnp.arange(points.size, dtype=jnp.int32)}
        if not self._is_block:
            assert self._decay is not None
            z["alpha"] = draw_start(key_alpha, given.get("alpha", self._alpha))
            if self._has_prior(self._decay.scale):
                start = given.get("decay_scale", self._decay.scale)
                z["decay_scale"] = draw_start(key_scale, start)
        hyper = self._hyper(z, args, kwargs)
        if "links" in given:
            z[site] = jnp.asarray(given["links"], jnp.int32)
        elif self._start == "prior":
            z[site] = draw_links(key_links, hyper)
        one = jnp.ones(())
        state = DDCRPState(z, one, one, jnp.array(False), rng_key)
        return self._with_links(state, z[site], hyper, points)

    def _sweep(self, state: DDCRPState, args: tuple, kwargs: dict) -> DDCRPState:
        rng_key, key_links, key_alpha, key_scale = random.split(state.rng_key, 4)
        points = as_points(self._family, self._arguments(args, kwargs)[0])
        hyper = self._hyper(state.z, args, kwargs)
        links = state.z[self._sites["links"]]
        log_alpha = jnp.log(hyper.alpha)
        links = relink(key_links, links, log_alpha, hyper.reach, points, self._family)
        if self._has_prior(self._alpha):
            hyper = hyper._replace(alpha=update_alpha(key_alpha, links, hyper, self._alpha))
        decay = self._decay
        if decay is not None and self._has_prior(decay.scale):
            neighbors, distances = as_neighbors(self._arguments(args, kwargs)[1])

            def reach_of(scale: Array) -> Reach:
                return as_reach(neighbors, decay.log(distances, scale))

            hyper = update_decay(key_scale, links, hyper, decay.scale, reach_of)
        return self._with_links(state._replace(rng_key=rng_key), links, hyper, points)

    def _with_links(
        self, state: DDCRPState, links: Array, hyper: _Hyper, points: Points
    ) -> DDCRPState:
        labels = links_to_partition(links)
        log_joint = self._log_joint(links, labels, hyper, points)
        z = {self._sites["links"]: links}
        if not self._is_block:
            z |= {
                "assignments": labels.astype(label_dtype(points.size)),
                "num_clusters": jnp.max(labels) + 1,
                "alpha": hyper.alpha,
                "log_joint": log_joint,
            }
            if hyper.scale is not None and "decay_scale" in state.z:
                z["decay_scale"] = hyper.scale
        return state._replace(z=z, potential_energy=-log_joint)

    def _log_joint(self, links: Array, labels: Array, hyper: _Hyper, points: Points) -> Array:
        """log p(data, links, α, scale)."""
        clusters = self._family.of_clusters(points.statistics, labels, points.size)
        log_joint = self._family.log_marginal(clusters).sum()
        log_joint += jnp.sum(log_links(links, hyper))
        if self._has_prior(self._alpha):
            assert isinstance(self._alpha, dist.Distribution)
            log_joint += self._alpha.log_prob(hyper.alpha)
        if self._decay is not None and self._has_prior(self._decay.scale):
            log_joint += self._decay.scale.log_prob(hyper.scale)
        return log_joint

    def _potential(self, state: DDCRPState, args: tuple, kwargs: dict) -> Array:
        links = state.z[self._sites["links"]]
        points = as_points(self._family, self._arguments(args, kwargs)[0])
        hyper = self._hyper(state.z, args, kwargs)
        return -self._log_joint(links, links_to_partition(links), hyper, points)


def log_totals(hyper: _Hyper) -> Array:
    """log Σ_j f_ij of each point, (N,), -inf where nobody is in reach."""
    return jax.nn.logsumexp(hyper.reach.log_decay, axis=1)


def log_links(links: Array, hyper: _Hyper) -> Array:
    """Log probability of each link, (N,), eq. (2)."""
    index = jnp.arange(links.shape[0])
    log_alpha = jnp.log(hyper.alpha)
    if hyper.reach.neighbors is None:
        log_decay = hyper.reach.log_decay[index, links]
    else:
        chosen = hyper.reach.neighbors == links[:, None]
        log_decay = jnp.max(jnp.where(chosen, hyper.reach.log_decay, -jnp.inf), axis=1)
    log_weight = jnp.where(links == index, log_alpha, log_decay)
    return log_weight - jnp.logaddexp(log_alpha, log_totals(hyper))


def draw_links(key: Array, hyper: _Hyper) -> Array:
    """Links from their prior, (N,)."""
    size = hyper.reach.size
    index = jnp.arange(size)
    log_alpha = jnp.full((size, 1), jnp.log(hyper.alpha))
    log_weights = jnp.concatenate([hyper.reach.log_decay, log_alpha], axis=1)
    column = random.categorical(key, log_weights)
    last = column == hyper.reach.log_decay.shape[1]
    column = jnp.where(last, 0, column)
    other = column if hyper.reach.neighbors is None else hyper.reach.neighbors[index, column]
    return jnp.where(last, index, other).astype(jnp.int32)


def update_alpha(key: Array, links: Array, hyper: _Hyper, alpha_prior: dist.Distribution) -> Array:
    """Draw α given the links: of a Gamma prior exactly, with V_i ~ Exp(α + Σ_j f_ij)."""
    size = links.shape[0]
    itself = jnp.sum(links == jnp.arange(size)).astype(float)
    totals = jnp.exp(log_totals(hyper))
    if isinstance(alpha_prior, dist.Gamma):
        key_times, key_alpha = random.split(key)
        times = random.exponential(key_times, (size,)) / (hyper.alpha + totals)
        log_gamma = random.loggamma(key_alpha, alpha_prior.concentration + itself)
        return jnp.exp(log_gamma) / (alpha_prior.rate + times.sum())

    def difference(log_alpha: Array, delta: Array) -> Array:
        alpha = jnp.exp(log_alpha)
        step = alpha * jnp.expm1(delta)
        change = itself * delta - jnp.sum(jnp.log1p(step / (alpha + totals)))
        return change + alpha_prior.log_prob(alpha + step) - alpha_prior.log_prob(alpha) + delta

    log_alpha = slice_sample(key, jnp.log(hyper.alpha), difference, 2.0, lower=-jnp.inf)
    return jnp.exp(log_alpha)


def update_decay(
    key: Array,
    links: Array,
    hyper: _Hyper,
    prior: dist.Distribution,
    reach_of: Callable[[Array], Reach],
) -> _Hyper:
    """Draw the scale of the decay given the links, by slice sampling of its logarithm."""
    now = log_links(links, hyper)

    def difference(log_scale: Array, delta: Array) -> Array:
        scale = jnp.exp(log_scale + delta)
        other = log_links(links, hyper._replace(scale=scale, reach=reach_of(scale)))
        change = jnp.sum(other - now) + delta
        return change + prior.log_prob(scale) - prior.log_prob(jnp.exp(log_scale))

    assert hyper.scale is not None
    log_scale = slice_sample(key, jnp.log(hyper.scale), difference, 1.0, lower=-jnp.inf)
    scale = jnp.exp(log_scale)
    return hyper._replace(scale=scale, reach=reach_of(scale))
