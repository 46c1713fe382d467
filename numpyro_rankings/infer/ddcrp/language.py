"""Gibbs sampling of the fully observed model of symbols: a language model by links.

Equations and sections are those of Blei & Frazier (2011).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components import Atom
from numpyro_rankings.infer.base import GibbsState
from numpyro_rankings.infer.ddcrp.base import CurrentLinks, LinkGibbs, LinkInputs
from numpyro_rankings.infer.ddcrp.reach import LinkPrior, draw_links, log_totals, weights_within
from numpyro_rankings.infer.priors import keep_possible, log_prior_ratio
from numpyro_rankings.links.decays import Decay
from numpyro_rankings.links.distances import SparseDistances
from numpyro_rankings.models import ddcrp_language_model
from numpyro_rankings.ops.checks import is_traced
from numpyro_rankings.ops.sampling import slice_sample


class DDCRPLanguageGibbs(LinkGibbs):
    r"""
    Gibbs sampler of symbols under a distance dependent process, each table with one symbol
    [1, Section 2, "Language modeling"], for sequential distances.

    No point links forward, so that a point which links to itself opens a table, with a symbol drawn
    from :math:`G_0`, and a link to j copies the symbol of j. The links are then independent given
    the symbols, and with the links summed over,

    .. math:: p(w_i \mid w_{<i}) = \frac{α\, G_0(w_i) + \sum_{j<i} f_{ij} 1[w_j = w_i]}
        {α + \sum_{j<i} f_{ij}},

    where the terms of the numerator are the weights of the links. A sweep draws

    1. α, then the scale of the decay, given :math:`G_0` with the links summed over, by slice
       sampling;
    2. all links at once given these: steps 1 and 2 together draw α, scale and links jointly;
    3. :math:`G_0` given the links, where it is unknown: the symbols of the tables are draws from
       it, so that it is Dirichlet(a + number of tables of each symbol).

    If α, scale and :math:`G_0` are known, the draws are exact and independent.

    Samples: ``links`` (D, N), ``assignments`` (D, N), canonical, ``num_clusters``, ``alpha``,
    ``decay_scale`` if it is learned, ``base`` (D, V) if it is unknown, ``log_joint``.

    Run as ``mcmc.run(key, symbols, distances)``, with symbols (N,), from 0 to V - 1, and distances
    (N, N), ∞ to all later points and between documents if there are several, or
    :class:`~numpyro_rankings.links.distances.SparseDistances`. For other distances there is
    ``DDCRPGibbs(Atom(probs), …)``.

    :param base: :math:`G_0`, probabilities (V,), or ``dist.Dirichlet(a)`` where it is unknown.
    :param alpha: weight of the link of a point to itself, a number or a distribution.
    :param decay: decay of the distances, for instance ``exponential_decay(2.0)``; its scale may be
        a distribution.
    :param init: initial value of an unknown :math:`G_0`: ``"singletons"``, a draw given a table for
        each point, or ``"prior"``, a draw from its prior. Initial links do not matter.
    :param model: your own model, in which the kernel is a block of
        :class:`numpyro.infer.Gibbs`: its site ``links`` must be a
        :class:`~numpyro_rankings.distributions.DistanceDependentCRP`, its first argument the
        symbols, and its likelihood that of
        :func:`~numpyro_rankings.models.ddcrp_language_model`. Where ``base`` is a Dirichlet
        distribution, the block has a site ``base`` too, whose Dirichlet prior is the model's.
    :param sites: other names for the sites, ``{"links": "c"}``.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.

    .. doctest::

       >>> import numpyro.distributions as dist
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings.infer import DDCRPLanguageGibbs, exponential_decay
       >>> words = jnp.array([0, 1, 0, 0, 2, 2, 1, 2])
       >>> time = jnp.arange(8.0)
       >>> lag = time[:, None] - time
       >>> distances = jnp.where(lag > 0, lag, jnp.inf)
       >>> kernel = DDCRPLanguageGibbs(dist.Dirichlet(jnp.ones(4)), 1.0, exponential_decay(2.0))
       >>> mcmc = MCMC(kernel, num_warmup=100, num_samples=1000, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), words, distances)
       >>> samples = mcmc.get_samples()
       >>> bool((samples["links"][:, 0] == 0).all())  # no point is reachable
       True
       >>> bool(samples["base"][:, 3].mean() < samples["base"][:, 2].mean())
       True
    """

    _arguments_named = ("symbols", "distances")

    def __init__(
        self,
        base: Any,
        alpha: float | dist.Distribution = 1.0,
        decay: Decay | None = None,
        *,
        init: str = "singletons",
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
    ) -> None:
        self._base = base
        if isinstance(base, dist.Distribution):
            if not isinstance(base, dist.Dirichlet) or base.batch_shape:
                raise ValueError(
                    f"base must be probabilities (V,) or one Dirichlet distribution, got {base!r}"
                )
            size = base.event_shape[0]
            self._own_sites = ("links", "base")
            self._atom = Atom(np.full(size, 1.0 / size))
        else:
            self._atom = Atom(base)
        generative = partial(ddcrp_language_model, base=base)
        super().__init__(generative, alpha, decay, init, model, sites)

    @property
    def _is_unknown(self) -> bool:
        return "base" in self._own_sites

    # -- data ------------------------------------------------------------------------------------

    def _check_data(self, data: Any) -> int:
        self._atom.check(data)
        return len(data)

    def _check(self, args: tuple, kwargs: dict) -> None:
        super()._check(args, kwargs)
        distances = self._arguments(args, kwargs)[1]
        if distances is not None and not is_traced(distances):
            check_sequential(distances)

    def _check_start(
        self, start: dict | None, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        base = None
        if self._is_unknown and isinstance(start, Mapping):  # what is no mapping is refused below
            base = start.get("base")
        if base is not None and not is_traced(base):
            size, base = self._concentration({}).shape[0], np.asarray(base)
            is_one = base.shape[-1:] == (size,) and base.dtype.kind in "iuf"
            if not is_one or not np.all(base > 0) or not np.allclose(base.sum(-1), 1.0, atol=1e-4):
                raise ValueError(
                    f"init_params['base'] must be {size} positive probabilities whose sum is 1"
                )
        super()._check_start(start, chains, args, kwargs)
        links = (start or {}).get("links")
        if links is not None and not is_traced((links, args, kwargs)):
            check_links(np.asarray(links), np.asarray(self._arguments(args, kwargs)[0]))

    def _points(self, data: Any, distances: Any, others: Mapping[str, Array]) -> Array:
        return jnp.asarray(data, jnp.int32)

    # -- state -----------------------------------------------------------------------------------

    def _blank(self, points: Array) -> dict[str, Array]:
        links = jnp.arange(points.shape[0], dtype=jnp.int32)
        if not self._is_unknown:
            return {"links": links}
        return {"links": links, "base": jnp.asarray(self._base.mean, float)}

    def _concentration(self, site_priors: Mapping[str, Any]) -> Array:
        """Concentration a of the Dirichlet prior of an unknown G_0, (V,)."""
        prior = site_priors.get("base", self._base)
        if not isinstance(prior, dist.Dirichlet) or prior.batch_shape:
            raise ValueError(
                f"site {self._sites['base']!r} must have one Dirichlet distribution as its prior, "
                f"not {prior!r}"
            )
        return jnp.asarray(prior.concentration, float)

    def _log_base(self, current: CurrentLinks) -> Array:
        """log G_0(w_i) of each symbol, (N,)."""
        base = current.others.get("base", self._base)
        return jnp.log(jnp.asarray(base, float))[current.points]

    def _start_sites(
        self, key: Array, start: dict, current: CurrentLinks, given: LinkInputs
    ) -> CurrentLinks:
        key_base, key_links = random.split(key)
        if "links" in start:
            current = current._replace(links=jnp.asarray(start["links"], jnp.int32))
        if self._is_unknown:
            concentration = self._concentration(given.site_priors)
            if "base" in start:
                base = jnp.asarray(start["base"], float)
            elif self._start == "prior" and "links" not in start:
                base = draw_base(key_base, concentration)
            else:
                base = update_base(key_base, current.links, current.points, concentration)
            current = current._replace(others={"base": base})
        return current if "links" in start else self._update_links(key_links, current)

    def _log_data(self, current: CurrentLinks, labels: Array, given: LinkInputs) -> Array:
        links, symbols, log_base = current.links, current.points, self._log_base(current)
        copied = jnp.where(symbols[links] == symbols, 0.0, -jnp.inf)
        opens = links == jnp.arange(symbols.shape[0])
        log_prob = jnp.sum(jnp.where(opens, log_base, copied))
        if self._is_unknown:
            prior = dist.Dirichlet(self._concentration(given.site_priors), validate_args=False)
            log_prob += prior.log_prob(current.others["base"])
        return log_prob

    def _sweep(self, state: GibbsState, args: tuple, kwargs: dict) -> GibbsState:
        rng_key, key_prior, key_links, key_base = random.split(state.rng_key, 4)
        current, given = self._read(state, args, kwargs)
        # 1. α and the scale of the decay given G_0, links summed over
        current = self._update_scales(key_prior, current, given)
        # 2. all links given these, eq. (5) and (6)
        current = self._update_links(key_links, current)
        # 3. G_0 given the links
        current = self._update_base(key_base, current, given)
        return self._write(state._replace(rng_key=rng_key), current, given)

    def _update_scales(self, key: Array, current: CurrentLinks, given: LinkInputs) -> CurrentLinks:
        symbols, log_base = current.points, self._log_base(current)
        draw_alpha = partial(update_alpha_without_links, symbols=symbols, log_base=log_base)
        log_terms = partial(log_next_symbols, symbols, log_base)
        prior = self._update_prior(key, current.prior, draw_alpha, log_terms, given.distances)
        return current._replace(prior=prior)

    def _update_links(self, key: Array, current: CurrentLinks) -> CurrentLinks:
        log_base = self._log_base(current)
        links = draw_links_given_symbols(key, current.points, log_base, current.prior)
        return current._replace(links=links)

    def _update_base(self, key: Array, current: CurrentLinks, given: LinkInputs) -> CurrentLinks:
        if not self._is_unknown:
            return current
        concentration = self._concentration(given.site_priors)
        base = update_base(key, current.links, current.points, concentration)
        return current._replace(others={"base": base})


def check_links(links: np.ndarray, symbols: np.ndarray) -> None:
    """Raise ValueError if a link leads to another symbol, or forward."""
    bad = (symbols[links] != symbols) | (links > np.arange(len(symbols))) | (links < 0)
    if bad.any():
        row = int(np.argmax(bad.reshape(-1, len(symbols)).any(axis=0)))
        raise ValueError(
            f"init_params['links'] must lead to the same symbol, and not forward: that of row "
            f"{row} does not"
        )


def check_sequential(distances: Any) -> None:
    """Raise ValueError if a point can link to a later one."""
    sparse = isinstance(distances, SparseDistances)
    values = np.asarray(distances.distances if sparse else distances)
    index = np.arange(len(values))[:, None]
    later = (np.asarray(distances.neighbors) if sparse else np.arange(len(values))) > index
    bad = (later & (values < np.inf)).any(axis=1)
    if bad.any():
        raise ValueError(
            f"the distances must be sequential, ∞ to all later points, and row {np.argmax(bad)} "
            "has another one; for such distances there is DDCRPGibbs(Atom(probs), …)"
        )


def log_next_symbols(symbols: Array, log_base: Array, prior: LinkPrior) -> Array:
    """log p(w_i | w_<i) of each symbol, with the links summed over, (N,), from log G_0(w_i)."""
    log_alpha = jnp.log(prior.alpha)
    log_copied = log_totals(weights_within(symbols, prior.weights))
    log_weight = jnp.logaddexp(log_alpha + log_base, log_copied)
    return log_weight - jnp.logaddexp(log_alpha, log_totals(prior.weights))


def draw_links_given_symbols(
    key: Array, symbols: Array, log_base: Array, prior: LinkPrior
) -> Array:
    """Draw all links, eq. (5) and (6): to j with weight f_ij 1[w_j = w_i], to itself α G_0(w_i)."""
    log_itself = jnp.log(prior.alpha) + log_base
    return draw_links(key, log_itself, weights_within(symbols, prior.weights))


def log_growth(log_odds: Array, delta: Array) -> Array:
    """log(p e^δ + 1 - p) for p with these log odds, as a sum of terms of one sign."""
    log_up = jnp.log1p(jax.nn.sigmoid(log_odds) * jnp.expm1(jnp.maximum(delta, 0.0)))
    log_down = jnp.log1p(jax.nn.sigmoid(-log_odds) * jnp.expm1(jnp.maximum(-delta, 0.0)))
    return jnp.where(delta > 0, log_up, delta + log_down)


def update_alpha_without_links(
    key: Array, prior: LinkPrior, alpha_prior: dist.Distribution, symbols: Array, log_base: Array
) -> Array:
    """Draw α with the links summed over, by slice sampling of its logarithm."""
    # If log α grows by δ, the log of a sum of α and other weights grows by log(p e^δ + 1 - p),
    # where p is the share of α in the sum: in the numerator the posterior probability of a link to
    # itself, in the denominator the prior probability.
    log_copied = log_totals(weights_within(symbols, prior.weights))
    log_total = log_totals(prior.weights)

    def difference(log_alpha: Array, delta: Array) -> Array:
        numerator = log_growth(log_alpha + log_base - log_copied, delta)
        normalizer = log_growth(log_alpha - log_total, delta)
        change = jnp.sum(numerator - normalizer) + delta
        alpha = jnp.exp(log_alpha)
        return change + log_prior_ratio(alpha_prior, alpha * jnp.exp(delta), prior.alpha)

    log_alpha = slice_sample(key, jnp.log(prior.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, jnp.exp(log_alpha), prior.alpha)


def draw_base(key: Array, concentration: Array) -> Array:
    """Draw probabilities from a Dirichlet distribution, (V,), none of them 0."""
    base = jax.nn.softmax(random.loggamma(key, concentration))
    return jnp.maximum(base, jnp.finfo(base.dtype).tiny)


def update_base(key: Array, links: Array, symbols: Array, concentration: Array) -> Array:
    """Draw G_0 given the links: each point that links to itself is a draw from it."""
    opens = links == jnp.arange(symbols.shape[0])
    return draw_base(key, concentration.at[symbols].add(opens.astype(concentration.dtype)))
