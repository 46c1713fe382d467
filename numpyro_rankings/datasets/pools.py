"""Simulators of Plackett–Luce models with an endless pool of items."""

from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from numpyro_rankings.item_pool import Pool, seat_tokens
from numpyro_rankings.rankings import Rankings, RankingsError


class GammaProcessSample(NamedTuple):
    """Rankings of a simulated pool of items.

    - **rankings** - one row for each; the items are those that occur, as they did one by one.
    - **weights** - of these items, (K,), in units in which the pool has inverse scale τ.
    """

    rankings: Rankings
    weights: np.ndarray


def simulate_gamma_process(
    key: Array,
    num_rankings: int,
    length: int,
    alpha: float,
    tau: float = 1.0,
    sigma: float = 0.0,
) -> GammaProcessSample:
    r"""Rankings of items from an endless pool, whose weights are a (generalised) gamma process [3].

    Nothing is cut off: items join when they arrive in a race for the first time. While the pool
    has been raced for a time S, new items arrive at a rate :math:`α (τ + S)^{σ-1}`, each with a
    weight Gamma(1 - σ, τ + S), by Theorem 2' of [3].

    :param key: a JAX random key.
    :param num_rankings: N.
    :param length: m, items in each list.
    :param alpha: concentration α > 0.
    :param tau: inverse scale τ > 0.
    :param sigma: index, 0 <= σ < 1; 0 is the gamma process.
    :return: the rankings, and the weights of the items in them.
    """
    for name, number in (("alpha", alpha), ("tau", tau)):
        if not 0 < number < np.inf:
            raise RankingsError(f"{name} must be a positive number, got {number}")
    if not 0 <= sigma < 1:
        raise RankingsError(f"sigma must be at least 0 and less than 1, got {sigma}")
    if num_rankings < 1 or length < 1:
        raise RankingsError("num_rankings and length must be at least 1")
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    pool = Pool(np.zeros(0), alpha, np.log(tau), sigma)
    orderings = [pool.draw_list(rng, length) for _ in range(num_rankings)]
    weights = np.exp(pool.log_weights)
    if len(weights) < 2:
        # the same item in every list of one
        names: list[str] = ["item 1", "unseen item"]
        return GammaProcessSample(Rankings.from_orderings(orderings, items=names), weights)
    return GammaProcessSample(Rankings.from_orderings(orderings, len(weights)), weights)


class DPPlackettLuceSample(NamedTuple):
    """Rankings of a simulated mixture over an endless pool of items, and the truth behind them.

    - **rankings** - one row for each of the N rankings; the items are those that occur.
    - **assignments** - cluster of each ranking, int32 (N,), in order of first use.
    - **in_root** - whether an item is an atom of the root, (K,) bool. The others belong to one
      cluster only. :class:`~numpyro_rankings.infer.DPPlackettLuceGibbs` takes all for atoms.
    """

    rankings: Rankings
    assignments: np.ndarray
    in_root: np.ndarray


def simulate_dp_plackett_luce(
    key: Array,
    num_rankings: int,
    length: int,
    alpha: float,
    phi: float,
    gamma: float,
    tau: float = 1.0,
) -> DPPlackettLuceSample:
    r"""Rankings from the Dirichlet process mixture of Section 5 of [3], nothing cut off.

    Of the root only its total mass :math:`G_0(\mathbb X) \sim \mathrm{Gamma}(α, τ)` is drawn. A
    cluster has Poisson(:math:`φ G_0(\mathbb X)`) tokens, each on an atom of the root. As the
    normalised root is a Dirichlet process, the tokens of all clusters seat themselves as in a
    Chinese restaurant. An atom with u tokens weighs Gamma(u, τ + φ), and the items of the cluster's
    own are a gamma process with inverse scale τ + φ.

    :param key: a JAX random key.
    :param num_rankings: N.
    :param length: m, items in each list.
    :param alpha: concentration α > 0 of the root and of what is the clusters' own.
    :param phi: φ > 0, how much the clusters resemble the root.
    :param gamma: concentration γ > 0 of the Dirichlet process.
    :param tau: inverse scale τ > 0.
    """
    for name, number in (("alpha", alpha), ("phi", phi), ("gamma", gamma), ("tau", tau)):
        if not 0 < number < np.inf:
            raise RankingsError(f"{name} must be a positive number, got {number}")
    if num_rankings < 1 or length < 1:
        raise RankingsError("num_rankings and length must be at least 1")
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    labels, lists = draw_dp_lists(rng, num_rankings, length, alpha, phi, gamma, tau)
    items = {name: k for k, name in enumerate(dict.fromkeys(x for one in lists for x in one))}
    in_root = np.array([cluster < 0 for cluster, _ in items])
    orderings = [[items[name] for name in one] for one in lists]
    names_of_one = ["item 1", "unseen item"]  # the same item in every list of one
    rankings = (
        Rankings.from_orderings(orderings, items=names_of_one)
        if len(items) < 2
        else Rankings.from_orderings(orderings, len(items))
    )
    return DPPlackettLuceSample(rankings, np.array(labels, np.int32), in_root)


def draw_dp_lists(
    rng: np.random.Generator,
    num_rankings: int,
    length: int,
    alpha: float,
    phi: float,
    gamma: float,
    tau: float,
) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """Labels, and lists of items: (-1, k) are atoms of the root, (j, k) of cluster j only."""
    root_total = rng.gamma(alpha) / tau
    tokens: list[int] = []  # on each atom of the root that has some
    clusters: list[tuple[Pool, list[tuple[int, int]]]] = []
    sizes: list[int] = []
    labels, lists = [], []
    for i in range(num_rankings):
        label = int(np.searchsorted(np.cumsum(sizes), rng.uniform() * (i + gamma), side="right"))
        if label == len(sizes):
            counts = seat_tokens(rng, tokens, rng.poisson(phi * root_total), alpha)
            atoms = np.flatnonzero(counts)
            log_weights = np.log(rng.gamma(counts[atoms])) - np.log(tau + phi)
            names = [(-1, int(k)) for k in atoms]
            clusters.append((Pool(log_weights, alpha, np.log(tau + phi), 0.0), names))
            sizes.append(0)
        sizes[label] += 1
        pool, names = clusters[label]
        ordering = pool.draw_list(rng, length)
        names += [(label, k) for k in range(len(names), len(pool.log_weights))]
        labels.append(label)
        lists.append([names[k] for k in ordering])
    return labels, lists
