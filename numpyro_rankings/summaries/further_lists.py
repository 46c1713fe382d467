"""How many new items further lists would bring."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from scipy.special import gammaln as gammaln_np
from scipy.special import logsumexp as logsumexp_np

from numpyro_rankings.item_pool import Pool, seat_tokens
from numpyro_rankings.ops.checks import check_positive, check_whole
from numpyro_rankings.summaries.samples import check_draws


class PredictedItems(NamedTuple):
    """What further lists will show, one row for each draw.

    - **distinct** - items in the first 1, 2, …, L of them, int (D, L).
    - **new** - how many of these were in no list before, int (D, L).
    """

    distinct: np.ndarray
    new: np.ndarray


def predict_items(
    key: Array,
    samples: Mapping[str, Any],
    num_lists: int,
    length: int,
    sigma: float = 0.0,
    tau: float = 1.0,
) -> PredictedItems:
    """Draw further lists from a fitted pool of items, and count the items in them.

    The means over the draws are the expected numbers. For the processes before any data see
    :func:`~numpyro_rankings.datasets.simulate_gamma_process` and
    :func:`~numpyro_rankings.datasets.simulate_dp_plackett_luce`. (The probability of each item, or
    of a new one, to come next is the mean of ``weights`` and of ``unseen_weight``; in a mixture,
    of a list of the cluster.)

    :param key: a JAX random key.
    :param samples: of :class:`~numpyro_rankings.infer.GammaProcessPlackettLuceGibbs` or
        :class:`~numpyro_rankings.infer.DPPlackettLuceGibbs`; each draw takes some 30 µs for each
        list, in a mixture 0.1 ms and more, so thin them.
    :param num_lists: L.
    :param length: m, items in each list.
    :param sigma: what ``GammaProcessPlackettLuceGibbs`` was given; the samples do not tell.
    :param tau: what ``DPPlackettLuceGibbs`` was given; the samples do not tell.
    """
    check_draws(samples)
    check_whole("num_lists", num_lists)
    check_whole("length", length)
    check_positive("tau", tau)
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    number = np.shape(samples["weights"])[-1] if "weights" in samples else 0
    if "log_joint" not in samples:
        raise ValueError("the samples must be those of a kernel by itself, not of a block of Gibbs")
    if "phi" in samples and sigma != 0.0:
        raise ValueError("sigma is for GammaProcessPlackettLuceGibbs; these samples are others")
    if "phi" not in samples and tau != 1.0:
        raise ValueError("tau is for DPPlackettLuceGibbs; these samples are others")
    if "phi" in samples:
        further: Iterator[Any] = _further_lists_of_mixture(rng, samples, num_lists, length, tau)
    elif "unseen_rate" not in samples:
        raise ValueError(
            "the samples must be those of GammaProcessPlackettLuceGibbs or DPPlackettLuceGibbs"
        )
    elif ("total_weight" in samples) != (sigma > 0):
        raise ValueError("sigma must be what the kernel was given")
    else:
        further = _further_lists_of_pool(rng, samples, num_lists, length, sigma)
    every = list(further)
    distinct = [_growth(lists, 0) for lists in every]
    return PredictedItems(np.array(distinct), np.array([_growth(one, number) for one in every]))


def _growth(lists: list[list[int]], first: int) -> list[int]:
    """How many items there are in the first 1, 2, … lists, of those with index ``first`` on."""
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
    """Lists of each draw; new items have the indices from K on."""
    draws = {name: np.asarray(value, float) for name, value in samples.items()}
    weights = draws["weights"].reshape(-1, draws["weights"].shape[-1])
    alpha, rate = draws["alpha"].ravel(), draws["unseen_rate"].ravel()
    if sigma > 0:
        # in units of the normalised weights
        alpha = alpha * draws["total_weight"].ravel() ** -sigma
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
    """The same of a mixture; lists join clusters or open new ones.

    Given the weights of what is unseen, in the root and in the clusters, who its items are does
    not depend on the data: the normalised unseen root is a Dirichlet process of concentration α,
    on whose atoms the tokens :math:`u_{j*}` of the clusters sit.
    """
    lead = np.ndim(samples["log_joint"])
    draws = {
        name: np.reshape(np.asarray(value, float), (-1, *np.shape(value)[lead:]))
        for name, value in samples.items()
    }
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
    """u with probability ∝ x^u / (u! Γ(α + u))."""
    # nothing of note is further than this from the mode, some √x
    u = np.arange(int(np.sqrt(x) + 12.0 * x**0.25 + 40.0))
    log_p = u * np.log(max(x, 1e-300)) - gammaln_np(u + 1.0) - gammaln_np(u + alpha)
    return int(np.searchsorted(np.cumsum(np.exp(log_p - logsumexp_np(log_p))), rng.uniform()))


class _UnseenPool:
    """A cluster: the listed items, the atoms of the unseen root that it has, and items of its own.

    The latter come up in size-biased order, each taking a Beta(1, α) share of what is left.

    :param tables: tokens on each atom of the unseen root, of all clusters.
    :param own: odd numbers not used yet, for items of one cluster; the atoms of the root are even.
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
        """One choice after the other, each in proportion to the weights still in play."""
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
