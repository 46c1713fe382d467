"""Prediction of the items in further lists, from draws of a fitted pool of items."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from scipy.special import gammaln as gammaln_np
from scipy.special import logsumexp as logsumexp_np

from numpyro_rankings.families import ITEM_POOL
from numpyro_rankings.ops.checks import check_positive, check_whole
from numpyro_rankings.ops.item_pool import Pool, seat_tokens
from numpyro_rankings.posterior.draws import Draws


class PredictedItems(NamedTuple):
    """Numbers of items in further lists, one row for each draw.

    - **distinct** - number of distinct items in the first 1, 2, …, L lists, int (D, L).
    - **new** - how many of these items occur in no fitted list, int (D, L).
    """

    distinct: np.ndarray
    new: np.ndarray


def predict_items(
    key: Array,
    samples: Any,
    num_lists: int,
    length: int,
    sigma: float = 0.0,
    tau: float = 1.0,
) -> PredictedItems:
    """Draw further lists from a fitted pool of items, and count the items in them.

    The means over the draws are the expected numbers. To simulate the processes without data, see
    :func:`~numpyro_rankings.datasets.simulate_gamma_process` and
    :func:`~numpyro_rankings.datasets.simulate_dp_plackett_luce`. (The probabilities that each item,
    or a new one, comes next are the means of ``weights`` and of ``unseen_weight``; in a mixture
    they are those of a list of the cluster.)

    :param key: a JAX random key.
    :param samples: draws of :class:`~numpyro_rankings.infer.GammaProcessPlackettLuceGibbs` or
        :class:`~numpyro_rankings.infer.DPPlackettLuceGibbs`. Each draw takes about 30 µs for each
        list, and 0.1 ms or more in a mixture, so thin them.
    :param num_lists: L.
    :param length: m, number of items in each list.
    :param sigma: the ``sigma`` of ``GammaProcessPlackettLuceGibbs``, which the samples do not hold.
    :param tau: the ``tau`` of ``DPPlackettLuceGibbs``, which the samples do not hold.
    """
    draws = Draws.of(samples)
    check_whole("num_lists", num_lists)
    check_whole("length", length)
    check_positive("tau", tau)
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,), "uint32")))
    is_mixture = draws.family is ITEM_POOL and draws.is_mixture
    if not draws.is_by_itself:
        raise ValueError("the samples must be those of a kernel by itself, not of a block of Gibbs")
    if is_mixture and sigma != 0.0:
        raise ValueError("sigma is for samples of GammaProcessPlackettLuceGibbs only")
    if not is_mixture and tau != 1.0:
        raise ValueError("tau is for samples of DPPlackettLuceGibbs only")
    if draws.family is not ITEM_POOL:
        raise ValueError(
            "the samples must be those of GammaProcessPlackettLuceGibbs or DPPlackettLuceGibbs"
        )
    flat, number = draws.flat(), ITEM_POOL.num_items(draws.samples)
    if is_mixture:
        further: Iterator[Any] = _further_lists_of_mixture(rng, flat, num_lists, length, tau)
    elif ITEM_POOL.takes_new_items(flat) != (sigma == 0):
        raise ValueError("sigma must be the one that the kernel was given")
    else:
        further = _further_lists_of_pool(rng, flat, num_lists, length, sigma)
    every = list(further)
    distinct = [_growth(lists, 0) for lists in every]
    return PredictedItems(np.array(distinct), np.array([_growth(one, number) for one in every]))


def _growth(lists: list[list[int]], first: int) -> list[int]:
    """Number of distinct items with index ``first`` or higher in the first 1, 2, … lists."""
    seen: set[int] = set()
    numbers = []
    for one in lists:
        seen.update(item for item in one if item >= first)
        numbers.append(len(seen))
    return numbers


def _further_lists_of_pool(
    rng: np.random.Generator,
    samples: Mapping[str, Any],
    num_lists: int,
    length: int,
    sigma: float,
) -> Iterator[list[list[int]]]:
    """Lists of each draw; new items have indices from K on."""
    draws = {name: np.asarray(value, float) for name, value in samples.items()}
    weights, alpha, rate = draws["weights"], draws["alpha"], draws["unseen_rate"]
    if sigma > 0:
        # in units of the normalised weights
        alpha = alpha * draws["total_weight"] ** -sigma
    for d in range(len(weights)):
        pool = Pool(np.log(weights[d]), alpha[d], np.log(rate[d]), sigma)
        yield [pool.draw_list(rng, length) for _ in range(num_lists)]


def _further_lists_of_mixture(
    rng: np.random.Generator,
    samples: Mapping[str, Any],
    num_lists: int,
    length: int,
    tau: float,
) -> Iterator[list[list[int]]]:
    """Lists of each draw of a mixture; a list joins a cluster or opens a new one.

    Given the unseen weights of the root and of the clusters, the unseen items are independent of
    the data: the normalised unseen root is a Dirichlet process of concentration α, and the tokens
    :math:`u_{j*}` of the clusters are draws from it.
    """
    draws = {name: np.asarray(value, float) for name, value in samples.items()}
    for d in range(len(draws["log_joint"])):
        one = {name: value[d] for name, value in draws.items()}
        alpha, phi, rate = one["alpha"], one["phi"], tau + one["phi"]
        tables: list[int] = []
        own = itertools.count(1, 2)
        sizes = [n for n in one["cluster_sizes"].astype(int) if n > 0]
        clusters: dict[int, _UnseenPool] = {}
        lists = []
        for _ in range(num_lists):
            bounds = np.cumsum([*sizes, one["gamma"]])
            j = int(np.searchsorted(bounds, rng.uniform() * bounds[-1], side="right"))
            if j == len(sizes):
                # a new cluster, eq. (19)
                counts = rng.poisson(phi * one["root_weights"])
                atoms = np.where(counts > 0, rng.gamma(np.maximum(counts, 1)), 0.0) / rate
                tokens = rng.poisson(phi * one["root_unseen_weight"])
                unseen = rng.gamma(alpha + tokens) / rate
                clusters[j] = _UnseenPool(rng, atoms, unseen, tokens, alpha, tables, own)
                sizes.append(0)
            elif j not in clusters:
                total, share = one["total_weight"][j], one["unseen_weight"][j]
                mean = phi * one["root_unseen_weight"] * rate * total * share
                tokens = _draw_tokens(rng, mean, alpha)
                atoms, unseen = total * one["weights"][j], total * share
                clusters[j] = _UnseenPool(rng, atoms, unseen, tokens, alpha, tables, own)
            sizes[j] += 1
            lists.append(clusters[j].draw_list(rng, length))
        yield lists


def _draw_tokens(rng: np.random.Generator, x: float, alpha: float) -> int:
    """Draw u with probability ∝ x^u / (u! Γ(α + u))."""
    # the mode is about √x, and the probability beyond this range is negligible
    u = np.arange(int(np.sqrt(x) + 12.0 * x**0.25 + 40.0))
    log_p = u * np.log(max(x, 1e-300)) - gammaln_np(u + 1.0) - gammaln_np(u + alpha)
    return int(np.searchsorted(np.cumsum(np.exp(log_p - logsumexp_np(log_p))), rng.uniform()))


class _UnseenPool:
    """The items of a cluster: listed items, atoms of the unseen root, and items of its own.

    Its own items appear in size-biased order, each taking a Beta(1, α) share of the rest.

    :param atoms: weights of the listed items, (K,); **unseen** is that of all others.
    :param tokens: number of tokens of the cluster on atoms of the unseen root.
    :param tables: that of all clusters on each atom, which is updated in place.
    :param own: unused odd numbers, for items of one cluster; atoms of the root have even numbers.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        atoms: np.ndarray,
        unseen: float,
        tokens: int,
        alpha: float,
        tables: list[int],
        own: Iterator[int],
    ) -> None:
        counts = seat_tokens(rng, tables, tokens, alpha)
        there = np.flatnonzero(counts)
        shares = rng.gamma(np.append(counts[there], alpha).astype(float))
        shares *= unseen / max(shares.sum(), 1e-300)
        self.items = [*range(len(atoms)), *(len(atoms) + 2 * int(k) for k in there)]
        self.weights = [*atoms, *shares[:-1]]
        self.rest, self.alpha = float(shares[-1]), float(alpha)
        self.number, self.own = len(atoms), own

    def draw_list(self, rng: np.random.Generator, length: int) -> list[int]:
        """Draw a list: choose items in turn, in proportion to the weights still in play."""
        in_play = np.array(self.weights)
        chosen: list[int] = []
        while len(chosen) < length:
            bounds = np.cumsum(np.append(in_play, self.rest))
            k = int(np.searchsorted(bounds, rng.uniform() * bounds[-1], side="right"))
            if k >= len(in_play):
                k = len(in_play)
                weight = self.rest * rng.beta(1.0, self.alpha)
                self.rest -= weight
                self.items.append(self.number + next(self.own))
                self.weights.append(weight)
                in_play = np.append(in_play, 0.0)
            else:
                in_play[k] = 0.0
            chosen.append(self.items[k])
        return chosen
