"""Gibbs kernel of a distance dependent Chinese restaurant process mixture (Blei & Frazier 2011)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import AugmentedFamily, Family, with_auxiliary
from numpyro_rankings.components.points import Points, as_points, start_auxiliary, update_auxiliary
from numpyro_rankings.decays import Decay
from numpyro_rankings.distances import as_neighbors, num_distances
from numpyro_rankings.distributions import links_to_partition
from numpyro_rankings.infer.blocks import check_block_family
from numpyro_rankings.infer.ddcrp.base import DDCRPState, LinkGibbs
from numpyro_rankings.infer.ddcrp.reach import (
    Hyper,
    among_equals,
    draw_links,
    link_backward,
    links_go_back,
    log_links,
)
from numpyro_rankings.infer.ddcrp.relink import relink
from numpyro_rankings.infer.ddcrp.scales import (
    log_terms_of_scale,
    update_alpha,
    update_links_within,
)
from numpyro_rankings.models import ddcrp_mixture


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
