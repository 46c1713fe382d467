"""Gibbs kernel of a distance dependent Chinese restaurant process mixture (Blei & Frazier 2011)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.checks import check_family_in_kernel
from numpyro_rankings.components.family import AugmentedFamily, Family, with_auxiliary
from numpyro_rankings.components.points import (
    DataPoints,
    as_points,
    start_auxiliary,
    update_auxiliary,
)
from numpyro_rankings.distributions import links_to_partition
from numpyro_rankings.families import RankingFamily
from numpyro_rankings.infer.base import GibbsState
from numpyro_rankings.infer.blocks import check_block_family
from numpyro_rankings.infer.ddcrp.base import CurrentLinks, LinkGibbs, LinkInputs
from numpyro_rankings.infer.ddcrp.reach import (
    draw_links,
    link_backward,
    links_go_back,
    log_links,
    weights_within,
)
from numpyro_rankings.infer.ddcrp.relink import update_links_in_turn
from numpyro_rankings.infer.ddcrp.scales import (
    log_terms_of_scale,
    update_link_alpha,
    update_links_given_partition,
)
from numpyro_rankings.links.decays import Decay
from numpyro_rankings.links.distances import as_neighbors, num_distances
from numpyro_rankings.models import ddcrp_mixture


class DDCRPGibbs(LinkGibbs):
    r"""
    Gibbs sampler of a distance dependent Chinese restaurant process mixture, by links.

    Each sweep draws the link of every point given all others [1, eq. 5],

    .. math:: p(c_i = j) \propto f(d_{ij}) \, \frac{p(x_A \cup x_B)}{p(x_A)\, p(x_B)}
        \text{ where that joins } A \text{ and } B, \; f(d_{ij}) \text{ or } α \text{ where not},

    so that one draw may move whole groups. A Gamma prior of α has an exact draw given auxiliary
    variables :math:`V_i \sim \mathrm{Exp}(α + \sum_j f_{ij})`; with any other prior α is drawn by
    slice sampling, as is the scale of the decay. Where links only go back in time, the scale is
    drawn given the partition, with all links that make it summed over, and then the links given the
    partition and the scale.

    Samples: ``links`` (D, N), ``assignments`` (D, N), canonical, ``num_clusters``, ``alpha``,
    ``decay_scale`` if it is learned, ``log_joint``.

    Run as ``mcmc.run(key, data, distances)``, with distances (N, N), of the row's point to the
    column's, ∞ where there can be no link; they are sequential if all to later points are ∞. For
    many points, each of which can link to a few, use
    :class:`~numpyro_rankings.links.distances.SparseDistances`; that module makes distances from
    times, places and graphs. If there are distances of more points than data, the last points are
    those whose values are unknown: they have links and a cluster too, see
    :func:`~numpyro_rankings.log_predictive_of_points`. Memory is needed for the statistics of as
    many clusters as points: N V numbers for documents of V words.

    :param family: component family, see :mod:`numpyro_rankings.components`.
    :param alpha: weight of the link of a point to itself, a number or a distribution.
    :param decay: decay of the distances, for instance ``exponential_decay(2.0)``; its scale may be
        a distribution.
    :param init: initial links. ``"singletons"``, each point to itself, so that the first sweep
        seats one point after the other; ``"one"``, all in one cluster, as far as links to earlier
        points allow it; ``"prior"``, links drawn from it; or give ``init_params={"links": links}``,
        or ``{"assignments": labels}``, in which case each cluster is linked as ``"one"`` links all
        points.
    :param model: your own model, in which the kernel is a block of
        :class:`numpyro.infer.Gibbs`: its site ``links`` must be a
        :class:`~numpyro_rankings.distributions.DistanceDependentCRP`, its first argument the data,
        and its likelihood that of :func:`~numpyro_rankings.models.ddcrp_mixture`.
    :param sites: another name for that site, ``{"links": "c"}``.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings.components import GaussianMean
       >>> from numpyro_rankings.infer import DDCRPGibbs, exponential_decay
       >>> x = jnp.array([[0.1], [0.0], [0.2], [3.1], [2.9], [0.1]])  # ordered in time
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
        """The component family."""
        return self._family

    @property
    def ranking_family(self) -> RankingFamily | None:
        """The likelihood of rankings in the clusters, None if the data are no rankings."""
        return self._family.ranking_family

    def _check_data(self, data: Any) -> int:
        self._family.check(data)
        check_family_in_kernel(self._family, data)
        return self._family.size(data)

    def _points(self, data: Any, distances: Any, others: Mapping[str, Array]) -> DataPoints:
        number = None if distances is None else num_distances(distances)
        return as_points(self._family, with_auxiliary(self._family, data, others), number)

    def _start_auxiliary(self, key: Array, data: Any, start: dict) -> dict[str, Array]:
        return start_auxiliary(key, self._family, data, start)

    def _blank(self, points: DataPoints) -> dict[str, Array]:
        return {"links": jnp.arange(points.size, dtype=jnp.int32)}

    def _start_sites(
        self, key: Array, start: dict, current: CurrentLinks, given: LinkInputs
    ) -> CurrentLinks:
        prior = current.prior
        if "links" in start:
            links = jnp.asarray(start["links"], jnp.int32)
        elif "assignments" in start:
            labels = jnp.asarray(start["assignments"], jnp.int32)
            links = link_backward(weights_within(labels, prior.weights))
        elif self._start == "prior":
            links = draw_links(key, jnp.log(prior.alpha), prior.weights)
        elif self._start == "one":
            links = link_backward(prior.weights)
        else:
            links = current.links
        return current._replace(links=links)

    def _log_data(self, current: CurrentLinks, labels: Array, given: LinkInputs) -> Array:
        points = current.points
        clusters = self._family.of_clusters(points.statistics, labels, points.size)
        return self._family.log_marginal(clusters).sum() + points.log_base

    def _sweep(self, state: GibbsState, args: tuple, kwargs: dict) -> GibbsState:
        rng_key, key_links, key_prior, key_auxiliary, key_within = random.split(state.rng_key, 5)
        current, given = self._read(state, args, kwargs)
        # each link given all others, eq. (5)
        links = update_links_in_turn(
            key_links, current.links, current.prior, current.points, self._family
        )
        labels = links_to_partition(links)
        # α and the scale of the decay, Appendix B, eq. (17) and (20)
        current = current._replace(links=links)
        current = self._update_scales(key_prior, key_within, current, labels, given)
        # auxiliary variables of the family given the partition
        current = self._update_auxiliary(key_auxiliary, current, labels, given)
        return self._write(state._replace(rng_key=rng_key), current, given)

    def _update_scales(
        self,
        key_prior: Array,
        key_within: Array,
        current: CurrentLinks,
        labels: Array,
        given: LinkInputs,
    ) -> CurrentLinks:
        """Draw α given the links, and the scale given the partition, then the links given both."""
        links, distances = current.links, given.distances
        draw_alpha = partial(update_link_alpha, links=links)
        if not self._learns_scale:
            log_terms = partial(log_links, links)
            prior = self._update_prior(key_prior, current.prior, draw_alpha, log_terms, distances)
            return current._replace(prior=prior)
        goes_back = links_go_back(*as_neighbors(distances))
        log_terms = partial(log_terms_of_scale, goes_back, links, labels)
        prior = self._update_prior(key_prior, current.prior, draw_alpha, log_terms, distances)
        links = update_links_given_partition(key_within, goes_back, links, labels, prior.weights)
        return current._replace(prior=prior, links=links)

    def _update_auxiliary(
        self, key: Array, current: CurrentLinks, labels: Array, given: LinkInputs
    ) -> CurrentLinks:
        """Draw the auxiliary variables of the family given the partition, if it has any."""
        size = current.points.size
        auxiliary = update_auxiliary(key, self._family, given.data, current.others, labels, size)
        if not auxiliary:
            return current
        points = self._points(given.data, given.distances, auxiliary)
        return current._replace(others=auxiliary, points=points)
