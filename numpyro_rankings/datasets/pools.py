"""Simulators of Plackett–Luce models with an unlimited pool of items."""

from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from numpyro_rankings.ops.item_pool import Pool, seat_tokens
from numpyro_rankings.rankings import Rankings, RankingsError


class GammaProcessSample(NamedTuple):
    """Rankings of a simulated pool of items.

    - **rankings** - one row for each ranking; the items are those that occur, in the order in which
      they arrived.
    - **weights** - weights of these items, (K,), in units in which the pool has inverse scale τ.
    """

    rankings: Rankings
    weights: np.ndarray


def simulate_gamma_process(
    key: Array, num_rankings: int, length: int, alpha: float, tau: float = 1.0, sigma: float = 0.0
) -> GammaProcessSample:
    r"""Simulate rankings of items whose weights are a (generalised) gamma process [3].

    The pool is not truncated: an item gets its weight when it first arrives in the race of a list.
    After a total time S of races, new items arrive at the rate :math:`α (τ + S)^{σ-1}`, each with a
    weight Gamma(1 - σ, τ + S), by Theorem 2' of [3].

    :param key: a JAX random key.
    :param num_rankings: N.
    :param length: m, the number of items in each list.
    :param alpha: concentration α > 0.
    :param tau: inverse scale τ > 0.
    :param sigma: index, 0 <= σ < 1; 0 is the gamma process.
    :return: the rankings, and the weights of the items in them.
    """
    _check_arguments(num_rankings, length, alpha=alpha, tau=tau)
    if not 0 <= sigma < 1:
        raise RankingsError(f"sigma must be at least 0 and less than 1, got {sigma}")
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,), "uint32")))
    pool = Pool(np.zeros(0), alpha, np.log(tau), sigma)
    orderings = [pool.draw_list(rng, length) for _ in range(num_rankings)]
    weights = np.exp(pool.log_weights)
    return GammaProcessSample(_rankings_of(orderings, len(weights)), weights)


class DPPlackettLuceSample(NamedTuple):
    """Rankings of a simulated mixture over an unlimited pool of items, and their clusters.

    - **rankings** - one row for each of the N rankings; the items are those that occur.
    - **assignments** - cluster of each ranking, int32 (N,), in order of first use.
    - **in_root** - whether an item is an atom of the root, (K,) bool. The other items belong to one
      cluster only. :class:`~numpyro_rankings.infer.DPPlackettLuceGibbs` treats all items as atoms.
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
    r"""Simulate rankings from the Dirichlet process mixture of Section 5 of [3], not truncated.

    Of the root only the total mass :math:`G_0(\mathbb X) \sim \mathrm{Gamma}(α, τ)` is drawn. A
    cluster has Poisson(:math:`φ G_0(\mathbb X)`) tokens, each on an atom of the root. Because the
    normalised root is a Dirichlet process, the atoms of the tokens of all clusters are drawn by a
    Chinese restaurant process. In a cluster, an atom with u tokens has a weight Gamma(u, τ + φ),
    and the items that belong to this cluster only are a gamma process with inverse scale τ + φ.

    :param key: a JAX random key.
    :param num_rankings: N.
    :param length: m, the number of items in each list.
    :param alpha: concentration α > 0 of the root, and of the items that belong to one cluster only.
    :param phi: φ > 0, the similarity of the clusters to the root.
    :param gamma: concentration γ > 0 of the Dirichlet process.
    :param tau: inverse scale τ > 0.
    :return: the rankings, their clusters, and which items are atoms of the root.
    """
    _check_arguments(num_rankings, length, alpha=alpha, phi=phi, gamma=gamma, tau=tau)
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,), "uint32")))
    labels, lists = draw_dp_lists(rng, num_rankings, length, alpha, phi, gamma, tau)
    items = {name: k for k, name in enumerate(dict.fromkeys(x for one in lists for x in one))}
    in_root = np.array([cluster < 0 for cluster, _ in items])
    orderings = [[items[name] for name in one] for one in lists]
    rankings = _rankings_of(orderings, len(items))
    return DPPlackettLuceSample(rankings, np.array(labels, np.int32), in_root)


def _check_arguments(num_rankings: int, length: int, **scales: float) -> None:
    for name, number in scales.items():
        if not 0 < number < np.inf:
            raise RankingsError(f"{name} must be a positive number, got {number}")
    if num_rankings < 1 or length < 1:
        raise RankingsError("num_rankings and length must be at least 1")


def _rankings_of(orderings: list[list[int]], num_items: int) -> Rankings:
    if num_items < 2:  # lists of one item can all have the same one, but rankings need two items
        return Rankings.from_orderings(orderings, items=["item 1", "unseen item"])
    return Rankings.from_orderings(orderings, num_items)


def draw_dp_lists(
    rng: np.random.Generator,
    num_rankings: int,
    length: int,
    alpha: float,
    phi: float,
    gamma: float,
    tau: float,
) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """Draw labels and lists; item (-1, k) is an atom of the root, (j, k) belongs to cluster j."""
    root_total = rng.gamma(alpha) / tau
    tokens: list[int] = []  # at each atom of the root that has any
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
