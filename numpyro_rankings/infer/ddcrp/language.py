"""Gibbs sampling of the fully observed model of symbols: a language model by links."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components import Atom
from numpyro_rankings.decays import Decay
from numpyro_rankings.distances import SparseDistances
from numpyro_rankings.infer.checks import is_traced
from numpyro_rankings.infer.ddcrp.base import DDCRPState, LinkGibbs
from numpyro_rankings.infer.ddcrp.reach import Hyper, among_equals, draw_links, log_totals
from numpyro_rankings.infer.priors import keep_possible, log_prior_ratio
from numpyro_rankings.models import ddcrp_language_model
from numpyro_rankings.ops.sampling import slice_sample


class DDCRPLanguageGibbs(LinkGibbs):
    r"""
    Gibbs sampler of symbols under a distance dependent process, each table with one symbol
    [1, Section 2, "Language modeling"], for sequential distances.

    Nobody links forward, so that the table of a point is opened by a link to oneself, with a symbol
    from :math:`G_0`, and a link to j copies the symbol of j. The links are then independent given
    the symbols, and summed over

    .. math:: p(w_i \mid w_{<i}) = \frac{α\, G_0(w_i) + \sum_{j<i} f_{ij} 1[w_j = w_i]}
        {α + \sum_{j<i} f_{ij}},

    of which the numerator holds the weights of the links. A sweep draws

    1. α, then the scale of the decay, given :math:`G_0` with the links summed over, by slice
       sampling;
    2. all links at once given these, which with step 1 is a draw of the three together;
    3. :math:`G_0` given the links, where it is unknown: the tables are draws from it, so that
       it is Dirichlet(a + tables of each symbol).

    With α, scale and :math:`G_0` known the draws are exact and independent.

    Samples: ``links`` (D, N), ``assignments`` (D, N), canonical, ``num_clusters``, ``alpha``,
    ``decay_scale`` if it is learned, ``base`` (D, V) if it is unknown, ``log_joint``.

    Run as ``mcmc.run(key, symbols, distances)``, with symbols (N,), from 0 to V - 1, and distances
    (N, N), ∞ to all later points and between documents if there are several, or
    :class:`~numpyro_rankings.distances.SparseDistances`. For other distances there is
    ``DDCRPGibbs(Atom(probs), …)``.

    :param base: :math:`G_0`, probabilities (V,), or ``dist.Dirichlet(a)`` where it is unknown.
    :param alpha: weight of a link to oneself, a number or a distribution.
    :param decay: of the distances, for instance ``exponential_decay(2.0)``; its scale may be a
        distribution.
    :param init: what an unknown :math:`G_0` starts from, ``"singletons"``, a table for each point,
        or its ``"prior"``; the links do not matter.
    :param model: a user's model, of which the kernel is then a block in
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
       >>> bool((samples["links"][:, 0] == 0).all())  # there is nobody to link to
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

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        """Initial state; a batch of keys gives a batch of chains."""
        base = None if self._is_block or not self._is_unknown else (init_params or {}).get("base")
        if base is not None and not is_traced(base):
            size, base = self._concentration({}).shape[0], np.asarray(base)
            is_one = base.shape[-1:] == (size,) and base.dtype.kind in "iuf"
            if not is_one or not np.all(base > 0) or not np.allclose(base.sum(-1), 1.0, atol=1e-4):
                raise ValueError(
                    f"init_params['base'] must be {size} positive probabilities whose sum is 1"
                )
        return super().init(rng_key, num_warmup, init_params, model_args, model_kwargs)

    def _check_start(
        self, name: str, value: np.ndarray, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        super()._check_start(name, value, chains, args, kwargs)
        if name != "links":
            return
        links = value
        symbols = np.asarray(self._arguments(args, kwargs)[0])
        bad = (symbols[links] != symbols) | (links > np.arange(len(symbols))) | (links < 0)
        if bad.any():
            row = int(np.argmax(bad.reshape(-1, len(symbols)).any(axis=0)))
            raise ValueError(
                f"init_params['links'] must lead to the same symbol, and not forward: that of row "
                f"{row} does not"
            )

    def _points(self, data: Any, distances: Any, own: dict) -> Array:
        return jnp.asarray(data, jnp.int32)

    # -- state -----------------------------------------------------------------------------------

    def _blank(self, points: Array) -> dict[str, Array]:
        links = jnp.arange(points.shape[0], dtype=jnp.int32)
        if not self._is_unknown:
            return {"links": links}
        return {"links": links, "base": jnp.asarray(self._base.mean, float)}

    def _concentration(self, priors: dict) -> Array:
        """Of the prior of an unknown G_0, (V,)."""
        prior = priors.get("base", self._base)
        if not isinstance(prior, dist.Dirichlet) or prior.batch_shape:
            raise ValueError(
                f"site {self._sites['base']!r} must have one Dirichlet distribution as its prior, "
                f"not {prior!r}"
            )
        return jnp.asarray(prior.concentration, float)

    def _log_base(self, own: dict) -> Array:
        return jnp.log(jnp.asarray(own.get("base", self._base), float))

    def _start_sites(
        self, key: Array, given: dict, hyper: Hyper, points: Array, priors: dict
    ) -> dict[str, Array]:
        key_base, key_links = random.split(key)
        own = self._blank(points)
        if "links" in given:
            own["links"] = jnp.asarray(given["links"], jnp.int32)
        if self._is_unknown:
            concentration = self._concentration(priors)
            if "base" in given:
                own["base"] = jnp.asarray(given["base"], float)
            elif self._start == "prior" and "links" not in given:
                own["base"] = draw_base(key_base, concentration)
            else:
                own["base"] = update_base(key_base, own["links"], points, concentration)
        if "links" not in given:
            log_base = self._log_base(own)[points]
            own["links"] = update_links(key_links, points, log_base, hyper)
        return own

    def _log_data(self, own: dict, labels: Array, points: Array, priors: dict) -> Array:
        links, log_base = own["links"], self._log_base(own)[points]
        copied = jnp.where(points[links] == points, 0.0, -jnp.inf)
        opens = links == jnp.arange(points.shape[0])
        log_prob = jnp.sum(jnp.where(opens, log_base, copied))
        if self._is_unknown:
            concentration = self._concentration(priors)
            prior = dist.Dirichlet(concentration, validate_args=False)
            log_prob += prior.log_prob(own["base"])
        return log_prob

    def _sweep(self, state: DDCRPState, args: tuple, kwargs: dict) -> DDCRPState:
        rng_key, key_hyper, key_links, key_base = random.split(state.rng_key, 4)
        points = self._points(*self._arguments(args, kwargs), {})
        own = self._own(state.z)
        priors = self._priors(own, args, kwargs)
        hyper = self._hyper(state.z, priors, args, kwargs)
        log_base = self._log_base(own)[points]
        draw_alpha = partial(update_alpha_without_links, symbols=points, log_base=log_base)
        log_terms = partial(log_next_symbols, points, log_base)
        hyper = self._update_hyper(key_hyper, hyper, draw_alpha, log_terms, args, kwargs)
        own["links"] = update_links(key_links, points, log_base, hyper)
        if self._is_unknown:
            concentration = self._concentration(priors)
            own["base"] = update_base(key_base, own["links"], points, concentration)
        return self._with_sites(state._replace(rng_key=rng_key), own, hyper, points, priors)


def check_sequential(distances: Any) -> None:
    """Refuse distances at which a point can link to a later one."""
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


def log_next_symbols(symbols: Array, log_base: Array, hyper: Hyper) -> Array:
    """log p(w_i | w_<i) of each symbol, the links summed over, (N,).

    :param log_base: log G_0(w_i), (N,).
    """
    log_alpha = jnp.log(hyper.alpha)
    log_copied = log_totals(among_equals(symbols, hyper.reach))
    log_weight = jnp.logaddexp(log_alpha + log_base, log_copied)
    return log_weight - jnp.logaddexp(log_alpha, log_totals(hyper.reach))


def update_links(key: Array, symbols: Array, log_base: Array, hyper: Hyper) -> Array:
    """Draw all links: to j of weight f_ij 1[w_j = w_i], to oneself α G_0(w_i)."""
    log_itself = jnp.log(hyper.alpha) + log_base
    return draw_links(key, log_itself, among_equals(symbols, hyper.reach))


def log_growth(log_odds: Array, delta: Array) -> Array:
    """log(p e^δ + 1 - p), p of these log odds: by terms of one sign, for either sign of δ."""
    log_up = jnp.log1p(jax.nn.sigmoid(log_odds) * jnp.expm1(jnp.maximum(delta, 0.0)))
    log_down = jnp.log1p(jax.nn.sigmoid(-log_odds) * jnp.expm1(jnp.maximum(-delta, 0.0)))
    return jnp.where(delta > 0, log_up, delta + log_down)


def update_alpha_without_links(
    key: Array, hyper: Hyper, alpha_prior: dist.Distribution, symbols: Array, log_base: Array
) -> Array:
    """Draw α with the links summed over, by slice sampling of its logarithm.

    Where log α grows by δ, a sum of α and of weights that stay grows by log(p e^δ + 1 - p), with p
    the share of α in it: in the numerator that of a link to oneself a posteriori, in the
    denominator a priori.
    """
    log_copied = log_totals(among_equals(symbols, hyper.reach))
    log_total = log_totals(hyper.reach)

    def difference(log_alpha: Array, delta: Array) -> Array:
        posterior = log_growth(log_alpha + log_base - log_copied, delta)
        prior = log_growth(log_alpha - log_total, delta)
        change = jnp.sum(posterior - prior) + delta
        alpha = jnp.exp(log_alpha)
        return change + log_prior_ratio(alpha_prior, alpha * jnp.exp(delta), hyper.alpha)

    log_alpha = slice_sample(key, jnp.log(hyper.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, jnp.exp(log_alpha), hyper.alpha)


def draw_base(key: Array, concentration: Array) -> Array:
    """Probabilities from a Dirichlet distribution, (V,), none of them 0."""
    base = jax.nn.softmax(random.loggamma(key, concentration))
    return jnp.maximum(base, jnp.finfo(base.dtype).tiny)


def update_base(key: Array, links: Array, symbols: Array, concentration: Array) -> Array:
    """Draw G_0 given the links: each of those to oneself opens a table, with a draw from it."""
    opens = links == jnp.arange(symbols.shape[0])
    return draw_base(key, concentration.at[symbols].add(opens.astype(concentration.dtype)))
