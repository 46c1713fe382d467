"""Simulators of mixtures of Mallows and Plackett–Luce models."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from numpyro_rankings.ops.checks import refuse_masked
from numpyro_rankings.ops.codes import max_codes
from numpyro_rankings.ops.sampling import sample_truncated_geometric
from numpyro_rankings.rankings import Rankings, RankingsError

_draw_codes = jax.jit(sample_truncated_geometric)  # compiled as a whole


class MallowsMixtureSample(NamedTuple):
    """Rankings of a simulated mixture, and the parameters that they were drawn with.

    - **rankings** - one row for each of the N rankings, in the order of the assignments.
    - **assignments** - cluster of each ranking, int32 (N,), 0-based.
    - **centers** - an ordering per cluster, int32 (C, n).
    - **concentrations** - per cluster and stage, (C, T).
    """

    rankings: Rankings
    assignments: np.ndarray
    centers: np.ndarray
    concentrations: np.ndarray


def simulate_mallows(
    key: Array,
    num_rankings: int,
    center: Any,
    concentration: Any,
    lengths: Any = None,
    items: Sequence[str] | None = None,
) -> Rankings:
    r"""Simulate rankings from one generalized Mallows model [2].

    The code of stage j is the number of items that precede the j-th item in the center and are not
    listed before it. It is :math:`k = 0, 1, …, n-j` with probability proportional to
    :math:`e^{-k\theta_j}`, independently of the other stages.

    :param key: a JAX random key.
    :param num_rankings: N.
    :param center: the center, an ordering of all n items, best first.
    :param concentration: :math:`\theta \ge 0`, a number or one per stage.
    :param lengths: the number of items that are listed, one number or one per ranking; by default
        one item for each stage of ``concentration``, or all n if that is a number.
    :param items: names of the items.
    :return: the rankings, one row for each; ``unique()`` merges identical rows.
    """
    centers = _check_centers([center])
    num_items = centers.shape[1]
    theta = _array("concentration", concentration, float)
    if theta.ndim > 1:
        raise RankingsError(f"concentration must have shape () or (T,), got {theta.shape}")
    if lengths is None:
        lengths = theta.shape[0] if theta.ndim else num_items
    lengths = _check_lengths(lengths, num_rankings, num_items)
    theta = _check_concentrations(theta, 1, int(lengths.max()), num_items)
    assignments = np.zeros(num_rankings, np.int32)
    return _simulate(key, assignments, centers, theta, lengths, items)


def simulate_mallows_mixture(
    key: Array,
    num_rankings: int,
    num_items: int,
    length: Any,
    num_clusters: int,
    concentration: Any,
    weights: Any = None,
    centers: Any = None,
    items: Sequence[str] | None = None,
) -> MallowsMixtureSample:
    """Simulate rankings from a mixture of generalized Mallows models [2].

    :param key: a JAX random key.
    :param num_rankings: N.
    :param num_items: n.
    :param length: the number of items that are listed, one number or one per ranking.
    :param num_clusters: C.
    :param concentration: a number, one per stage (T,), or one per cluster and stage (C, T);
        for example draws of
        :class:`~numpyro_rankings.distributions.MallowsConcentrationPrior`.
    :param weights: shares of the clusters, (C,); equal by default.
    :param centers: orderings of all items, (C, n); by default uniformly random.
    :param items: names of the items.
    :return: the rankings, their clusters, and the parameters of the clusters.
    """
    key_centers, key_clusters, key_codes = jax.random.split(key, 3)
    if centers is None:
        keys = jax.random.split(key_centers, num_clusters)
        centers = jax.vmap(lambda k: jax.random.permutation(k, num_items))(keys)
    centers = _check_centers(centers)
    if centers.shape != (num_clusters, num_items):
        raise RankingsError(
            f"centers must have shape {(num_clusters, num_items)}, got {centers.shape}"
        )
    lengths = _check_lengths(length, num_rankings, num_items)
    theta = _check_concentrations(concentration, num_clusters, int(lengths.max()), num_items)
    assignments = _draw_clusters(key_clusters, num_rankings, num_clusters, weights, "weights")
    rankings = _simulate(key_codes, assignments, centers, theta, lengths, items)
    return MallowsMixtureSample(rankings, assignments, centers, theta)


class PlackettLuceMixtureSample(NamedTuple):
    """Rankings of a simulated mixture, and the parameters that they were drawn with.

    - **rankings** - one row for each of the N rankings, in the order of the assignments.
    - **assignments** - cluster of each ranking, int32 (N,), 0-based.
    - **weights** - normalised, per cluster, (C, n).
    """

    rankings: Rankings
    assignments: np.ndarray
    weights: np.ndarray


def simulate_plackett_luce(
    key: Array,
    num_rankings: int,
    weights: Any,
    lengths: Any = None,
    choice_sets: Any = None,
    items: Sequence[str] | None = None,
) -> Rankings:
    """Simulate rankings from one Plackett–Luce model [3].

    Items are ranked by their arrival in a race; item k arrives after a time Exponential(w_k).

    :param key: a JAX random key.
    :param num_rankings: N.
    :param weights: positive, (n,).
    :param lengths: the number of items that are listed, one number or one per ranking; by default
        all. If fewer items are offered, all of those are listed.
    :param choice_sets: the items that each judge is offered, booleans (N, n) or (n,); by default
        all.
    :param items: names of the items.
    :return: the rankings, one row for each; ``unique()`` merges identical rows.
    """
    weights = _check_weights([weights])
    num_items = weights.shape[1]
    lengths = num_items if lengths is None else lengths
    lengths = _check_lengths(lengths, num_rankings, num_items)
    if choice_sets is not None:
        offered = _array("choice_sets", choice_sets)
        if offered.dtype != bool or offered.shape not in ((num_items,), (num_rankings, num_items)):
            raise RankingsError(
                f"choice_sets must be booleans of shape ({num_rankings}, {num_items}) or "
                f"({num_items},), got {offered.dtype} of shape {offered.shape}"
            )
        choice_sets = np.broadcast_to(offered, (num_rankings, num_items))
        if not choice_sets.any(1).all():
            raise RankingsError(f"row {np.argmin(choice_sets.any(1)) + 1} offers no item")
    return _race(key, weights[np.zeros(num_rankings, int)], lengths, choice_sets, items)


def simulate_plackett_luce_mixture(
    key: Array,
    num_rankings: int,
    weights: Any,
    lengths: Any = None,
    shares: Any = None,
    items: Sequence[str] | None = None,
) -> PlackettLuceMixtureSample:
    """Simulate rankings from a mixture of Plackett–Luce models.

    :param key: a JAX random key.
    :param num_rankings: N.
    :param weights: positive, for each cluster, (C, n).
    :param lengths: the number of items that are listed, one number or one per ranking; by default
        all.
    :param shares: shares of the clusters, (C,); equal by default.
    :param items: names of the items.
    :return: the rankings, their clusters, and the normalised weights.
    """
    key_clusters, key_race = jax.random.split(key)
    weights = _check_weights(weights)
    lengths = weights.shape[1] if lengths is None else lengths
    lengths = _check_lengths(lengths, num_rankings, weights.shape[1])
    assignments = _draw_clusters(key_clusters, num_rankings, len(weights), shares, "shares")
    rankings = _race(key_race, weights[assignments], lengths, None, items)
    return PlackettLuceMixtureSample(rankings, assignments, weights)


def _race(
    key: Array,
    weights: np.ndarray,
    lengths: np.ndarray,
    choice_sets: np.ndarray | None,
    items: Sequence[str] | None,
) -> Rankings:
    """Rank the offered items by exponential arrival times."""
    num_items = weights.shape[1]
    times = np.asarray(jax.random.exponential(key, weights.shape), float) / weights
    if choice_sets is not None:
        times = np.where(choice_sets, times, np.inf)
        lengths = np.minimum(lengths, choice_sets.sum(1))
    orderings = np.argsort(times, axis=1)[:, : lengths.max()].astype(np.int32)
    orderings[np.arange(lengths.max()) >= lengths[:, None]] = -1
    return Rankings.from_orderings(
        orderings, num_items, items, choice_sets=choice_sets, entries="indices"
    )


def _array(name: str, values: Any, dtype: Any = None) -> np.ndarray:
    refuse_masked(name, values)
    return np.asarray(values, dtype)


def _check_weights(weights: Any) -> np.ndarray:
    weights = _array("weights", weights, float)
    if weights.ndim != 2 or not ((weights > 0) & (weights < np.inf)).all():
        raise RankingsError("weights must be a table of finite positive numbers")
    return weights / weights.sum(1, keepdims=True)


def _draw_clusters(
    key: Array, num_rankings: int, num_clusters: int, shares: Any, name: str
) -> np.ndarray:
    """Draw the cluster of each ranking by inversion, which needs no (N, C) table."""
    shares = _array(name, np.ones(num_clusters) if shares is None else shares, float)
    if shares.shape != (num_clusters,) or not (shares >= 0).all() or not 0 < shares.sum() < np.inf:
        raise RankingsError(f"{name} must be {num_clusters} numbers of at least 0, but not all 0")
    bounds = np.cumsum(shares / shares.sum())[:-1]
    uniform = np.asarray(jax.random.uniform(key, (num_rankings,)))
    return np.searchsorted(bounds, uniform, side="right").astype(np.int32)


def _simulate(
    key: Array,
    assignments: np.ndarray,
    centers: np.ndarray,
    theta: np.ndarray,
    lengths: np.ndarray,
    items: Sequence[str] | None,
) -> Rankings:
    """Draw the codes of all rankings, and convert them to orderings."""
    num_items, stages = centers.shape[1], theta.shape[1]
    codes = _draw_codes(key, theta[assignments], max_codes(num_items, stages))
    # Convert codes to places in the center, from the last stage back: the places of later stages
    # skip that of this stage. This is ordering_from_codes without a table of all n items for each
    # ranking.
    places = np.array(codes)
    for stage in reversed(range(stages - 1)):
        later = places[:, stage + 1 :]
        later += later >= places[:, stage, None]
    orderings = centers[assignments[:, None], places]
    orderings[np.arange(stages) >= lengths[:, None]] = -1
    return Rankings.from_orderings(orderings, num_items, items, entries="indices")


def _check_centers(centers: Any) -> np.ndarray:
    centers = _array("centers", centers)
    if centers.ndim != 2 or not (np.sort(centers) == np.arange(centers.shape[1])).all():
        raise RankingsError("a center must list all items 0..n-1, each once")
    return centers.astype(np.int32)


def _check_lengths(lengths: Any, num_rankings: int, num_items: int) -> np.ndarray:
    if num_rankings < 1:
        raise RankingsError(f"num_rankings must be at least 1, got {num_rankings}")
    array = _array("lengths", lengths)
    if array.dtype.kind not in "iu" or array.shape not in ((), (num_rankings,)):
        raise RankingsError(
            f"lengths must be a whole number, or one for each of {num_rankings} rankings"
        )
    if array.min() < 1 or array.max() > num_items:
        raise RankingsError(
            f"lengths must be from 1 to {num_items}, got {array.min()} to {array.max()}"
        )
    return np.broadcast_to(array, (num_rankings,))


def _check_concentrations(
    concentration: Any, num_clusters: int, stages: int, num_items: int
) -> np.ndarray:
    """Return concentrations (C, stages), from a number, (T,) or (C, T) with T >= stages."""
    theta = _array("concentration", concentration, float)
    if theta.ndim > 2 or (theta.ndim == 2 and theta.shape[0] != num_clusters):
        raise RankingsError(
            f"concentration must have shape (), (T,) or ({num_clusters}, T), got {theta.shape}"
        )
    if not (theta >= 0).all() or not np.isfinite(theta).all():
        raise RankingsError("concentrations must be finite numbers of at least 0")
    if theta.ndim == 0:
        return np.full((num_clusters, stages), float(theta))
    if theta.shape[-1] == num_items - 1:
        # the last of all items is forced, and its concentration has no effect
        theta = np.concatenate([theta, theta[..., -1:]], axis=-1)
    if theta.shape[-1] < stages:
        raise RankingsError(
            f"concentration has {theta.shape[-1]} stages, too few for lists of {stages} items"
        )
    return np.broadcast_to(theta[..., :stages], (num_clusters, stages)).copy()
