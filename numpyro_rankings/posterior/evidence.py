"""Marginal likelihoods and Bayes factors of distance dependent processes."""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.diagnostics import effective_sample_size

from numpyro_rankings.components import Atom
from numpyro_rankings.infer.checks import check_scale
from numpyro_rankings.infer.ddcrp.language import check_sequential, log_next_symbols
from numpyro_rankings.infer.ddcrp.reach import (
    LinkPrior,
    LinkWeights,
    as_link_weights,
    log_totals,
    log_weight_of_links,
)
from numpyro_rankings.links.decays import Decay, identity_decay
from numpyro_rankings.links.distances import as_neighbors, check_distances
from numpyro_rankings.ops.checks import is_traced

__all__ = ["BayesFactor", "log_bayes_factor", "log_language_evidence"]

_FEW = 100  # with fewer effective draws an estimate comes with a warning
_LEAST_DRAWS = 4


def log_language_evidence(
    symbols: Any,
    distances: Any,
    probs: ArrayLike,
    alpha: ArrayLike,
    decay: Decay,
    *,
    scale: ArrayLike | None = None,
) -> Array:
    r"""
    Log marginal likelihood of the fully observed model of symbols [1], summed over the links.

    .. math:: \log p(w) = \sum_i \log \frac{α\, G_0(w_i) + \sum_{j<i} f(d_{ij}) 1[w_j = w_i]}
        {α + \sum_{j<i} f(d_{ij})},

    for sequential distances: a link of a point to itself opens a table with a symbol from
    :math:`G_0`, a link to j copies the symbol of j, and each symbol depends on earlier ones only.
    With the identity decay it is the likelihood of the traditional process, where α is a
    pseudo-count. It can be differentiated with respect to ``probs``, ``alpha`` and ``scale``. The
    values of several documents, at distance ∞ from each other, add up.

    :param symbols: (N,), from 0 to V - 1.
    :param distances: (N, N), ∞ to all later points, or
        :class:`~numpyro_rankings.links.distances.SparseDistances`.
    :param probs: :math:`G_0`, (V,).
    :param alpha: weight of a link of a point to itself.
    :param decay: f.
    :param scale: scale of the decay, if not its own.
    :return: a scalar.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.

    .. doctest::

       >>> from numpyro_rankings import log_language_evidence
       >>> from numpyro_rankings.links.decays import exponential_decay, identity_decay
       >>> words = jnp.array([0, 0, 1, 1, 0])
       >>> lag = jnp.arange(5.0)[:, None] - jnp.arange(5.0)
       >>> distances = jnp.where(lag > 0, lag, jnp.inf)
       >>> near = log_language_evidence(words, distances, [0.5, 0.5], 1.0, exponential_decay(1.0))
       >>> whole = log_language_evidence(words, distances, [0.5, 0.5], 1.0, identity_decay())
       >>> round(float(jnp.exp(whole)), 5)  # 1/2 · 3/4 · 1/6 · 3/8 · 5/10
       0.01172
       >>> bool(near > whole)
       True
    """
    if not is_traced(probs):
        atom = Atom(probs)
        if not is_traced(symbols):
            atom.check(symbols)
    if not is_traced(alpha):
        check_scale("alpha", alpha, learned=False)
    if not is_traced((symbols, distances)):
        check_distances(distances, len(symbols))
        check_sequential(distances)
    symbols = jnp.asarray(symbols, jnp.int32)
    log_base = jnp.log(jnp.asarray(probs, float)[symbols])
    reach = _reach(distances, decay, scale)
    hyper = LinkPrior(jnp.asarray(alpha, float), None, reach)
    return jnp.sum(log_next_symbols(symbols, log_base, hyper))


class BayesFactor(NamedTuple):
    """An estimate of a log Bayes factor.

    - **log_ratio** - the estimate.
    - **error** - its Monte Carlo standard error.
    - **num_effective** - number of independent draws of equal weight with the same precision.
    """

    log_ratio: float
    error: float
    num_effective: float


def log_bayes_factor(
    links: Any,
    distances: Any,
    alpha: ArrayLike,
    decay: Decay,
    *,
    drawn_alpha: ArrayLike | None = None,
    drawn_decay: Decay | None = None,
    drawn_distances: Any = None,
) -> BayesFactor:
    r"""
    Log Bayes factor of one decay f, or α, against another, g, from draws under g [1, eq. 10; 2].

    .. math:: \log \frac{p(x \mid f)}{p(x \mid g)}
        = \log \mathrm{E}\Big[ \frac{p(c \mid f)}{p(c \mid g)} \,\Big|\, x, g \Big],

    estimated by the mean over draws c of the links given the data. The estimate depends on the data
    through the draws only, so it holds for any model of the data. Every link that f allows must be
    allowed by g. With sequential distances g = 1 is the traditional process.

    If f is far from g, a few draws have all the weight, and there is a warning. The remedy is to go
    in steps, with draws of each: from ``decay.power(t)`` to ``decay.power(u)``, 0 = t < u < … up to
    1, adding up the logarithms.

    :param links: draws of :class:`~numpyro_rankings.infer.DDCRPGibbs` or
        :class:`~numpyro_rankings.infer.DDCRPLanguageGibbs`, (D, N), or (chains, D, N) as from
        ``mcmc.get_samples(group_by_chain=True)``.
    :param distances: as given to the kernel.
    :param alpha: α under f, a number; or draws, (D,) or (chains, D), if α has the same prior under
        both models and was drawn together with the links.
    :param decay: f.
    :param drawn_alpha: α under g, the same if None.
    :param drawn_decay: g, under which the draws were made, the identity decay if None.
    :param drawn_distances: distances under g, the same if None.
    :raises ValueError: if f allows a link that g does not, or if a draw is impossible under g.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.
    2. Geyer, C. J., Thompson, E. A. (1992), "Constrained Monte Carlo maximum likelihood for
       dependent data", JRSS B.

    .. doctest::

       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import log_bayes_factor, log_language_evidence
       >>> from numpyro_rankings.infer import DDCRPLanguageGibbs, exponential_decay, identity_decay
       >>> words = jnp.array([0, 0, 1, 1, 0])
       >>> lag = jnp.arange(5.0)[:, None] - jnp.arange(5.0)
       >>> distances = jnp.where(lag > 0, lag, jnp.inf)
       >>> kernel = DDCRPLanguageGibbs([0.5, 0.5], 1.0, identity_decay())  # the traditional one
       >>> mcmc = MCMC(kernel, num_warmup=0, num_samples=2000, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), words, distances)
       >>> links = mcmc.get_samples()["links"]
       >>> found = log_bayes_factor(links, distances, 1.0, exponential_decay(1.0))
       >>> data = words, distances, [0.5, 0.5], 1.0
       >>> exact = log_language_evidence(*data, exponential_decay(1.0))
       >>> exact -= log_language_evidence(*data, identity_decay())
       >>> bool(abs(found.log_ratio - exact) < 5 * found.error < 0.4)
       True
    """
    links = _by_chain(links)
    size = links.shape[2]
    drawn_distances = distances if drawn_distances is None else drawn_distances
    for given in (distances, drawn_distances):
        check_distances(given, size)
    reach = _reach(distances, decay)
    drawn_reach = _reach(drawn_distances, drawn_decay or identity_decay())
    _check_support(reach, drawn_reach)
    alphas = _of_draws(alpha, links.shape[:2])
    drawn_alphas = alphas if drawn_alpha is None else _of_draws(drawn_alpha, links.shape[:2])
    flat = links.reshape(-1, size), alphas.ravel(), drawn_alphas.ravel()
    log_weights, possible = map(np.asarray, _log_weights(*flat, reach, drawn_reach))
    if not possible.all():
        raise ValueError(
            f"draw {np.argmin(possible)} has a link to which drawn_decay gives no weight: the "
            "draws must have been made with drawn_decay and drawn_distances"
        )
    factor = _mean_of_weights(log_weights.astype(np.float64).reshape(links.shape[:2]))
    if factor.num_effective < _FEW:
        warnings.warn(
            f"the {alphas.size} draws are worth {factor.num_effective:.3g} of equal weight, so the "
            "log Bayes factor may be far off: go in steps, from decay.power(t) to decay.power(u), "
            "with draws of each",
            stacklevel=2,
        )
    return factor


def _reach(distances: Any, decay: Decay, scale: Any = None) -> LinkWeights:
    if not isinstance(decay, Decay):
        raise ValueError(f"decay must be a decay, such as exponential_decay(2.0), got {decay!r}")
    if scale is not None and not is_traced(scale):
        check_scale("scale", scale, learned=False)
    neighbors, distances = as_neighbors(distances)
    return as_link_weights(neighbors, decay.log(distances, scale))


def _by_chain(links: Any) -> np.ndarray:
    """Links as draws by chain, (chains, D, N)."""
    links = np.asarray(links)
    if links.ndim == 2:
        links = links[None]
    if links.ndim != 3 or links.dtype.kind not in "iu" or links.shape[1] < _LEAST_DRAWS:
        raise ValueError(
            f"links must be integers (D, N) or (chains, D, N), {_LEAST_DRAWS} draws or more, got "
            f"shape {links.shape} of {links.dtype}"
        )
    if links.size == 0 or links.min() < 0 or links.max() >= links.shape[2]:
        raise ValueError(f"links must be from 0 to {links.shape[2] - 1}")
    return links


def _of_draws(alpha: Any, shape: tuple[int, ...]) -> np.ndarray:
    """One α for each draw, (chains, D)."""
    alpha = np.asarray(alpha)
    if alpha.dtype.kind not in "iuf" or alpha.shape not in ((), shape, (shape[0] * shape[1],)):
        raise ValueError(f"alpha must be a number or one for each draw, {shape}, got {alpha!r}")
    if not np.all((alpha > 0) & (alpha < np.inf)):
        raise ValueError("alpha must be positive")
    return np.broadcast_to(alpha, shape) if alpha.ndim == 0 else alpha.reshape(shape)


@jax.jit
def _log_weights(
    links: Array, alphas: Array, drawn_alphas: Array, reach: LinkWeights, drawn_reach: LinkWeights
) -> tuple[Array, Array]:
    """log p(c | f)/p(c | g) of each draw, (D,), and whether c is possible under g."""
    totals, drawn_totals = log_totals(reach), log_totals(drawn_reach)

    def of_one(draw: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        links, *both = draw
        log_alpha, drawn_log_alpha = (jnp.log(jnp.asarray(alpha, float)) for alpha in both)
        weight = log_weight_of_links(links, log_alpha, reach)
        drawn_weight = log_weight_of_links(links, drawn_log_alpha, drawn_reach)
        norm = jnp.logaddexp(log_alpha, totals) - jnp.logaddexp(drawn_log_alpha, drawn_totals)
        # differences link by link, because the sums are large
        return jnp.sum(weight - drawn_weight - norm), jnp.all(drawn_weight > -jnp.inf)

    return jax.lax.map(of_one, (links, alphas, drawn_alphas), batch_size=16)


@jax.jit
def _forbidden(reach: LinkWeights, drawn_reach: LinkWeights) -> Array:
    """Whether f allows a link that g does not, column by column of f: (L, N)."""

    def of_column(column: Array) -> Array:
        index = jnp.arange(reach.size)
        others = reach.neighbors
        links = jnp.full_like(index, column) if others is None else others[:, column]
        drawn = log_weight_of_links(links, jnp.zeros(()), drawn_reach)
        return (reach.log_decay[:, column] > -jnp.inf) & (drawn == -jnp.inf)

    return jax.lax.map(of_column, jnp.arange(reach.log_decay.shape[1]))


def _check_support(reach: LinkWeights, drawn_reach: LinkWeights) -> None:
    forbidden = np.asarray(_forbidden(reach, drawn_reach)).T
    if forbidden.any():
        row, column = np.argwhere(forbidden)[0]
        other = column if reach.neighbors is None else int(reach.neighbors[row, column])
        raise ValueError(
            f"decay allows a link of point {row} to {other} but drawn_decay does not, so its draws "
            "never have this link: draw under a decay that allows more, such as identity_decay()"
        )


def _mean_of_weights(log_weights: np.ndarray) -> BayesFactor:
    """Log of the mean of the weights over the draws of all chains, (chains, D)."""
    highest = log_weights.max()
    if highest == -np.inf:
        return BayesFactor(-np.inf, np.inf, 0.0)
    weights = np.exp(log_weights - highest)
    total, mean = weights.size, weights.mean()
    spread = weights.std(ddof=1) / mean
    if spread == 0.0:  # the two models are the same, or all draws are
        return BayesFactor(float(highest), 0.0, float(total) if highest == 0.0 else 1.0)
    # at most the number of draws, although antithetic chains can exceed it
    independent = np.clip(float(effective_sample_size(weights)), 1.0, total)
    equal = weights.sum() ** 2 / np.sum(weights**2)
    return BayesFactor(
        float(highest + np.log(mean)),
        float(spread / np.sqrt(independent)),
        float(equal * independent / total),
    )
