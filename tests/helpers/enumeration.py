"""The slow, obvious twin: exact posteriors of tiny Mallows mixtures, in NumPy and float64."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import scipy.stats
from scipy.special import gammaln

_RARE = 0.005


def partitions(size: int) -> Iterator[tuple[int, ...]]:
    """All canonical label vectors (restricted growth strings)."""

    def grow(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(labels) == size:
            yield labels
            return
        for label in range(max(labels) + 2):
            yield from grow((*labels, label))

    return grow((0,))


def binder_loss(a: np.ndarray, b: np.ndarray) -> float:
    """Return the share of the pairs that one partition joins and the other separates."""
    upper = np.triu_indices(len(a), 1)
    together = [np.equal.outer(x, x)[upper] for x in map(np.asarray, (a, b))]
    return float(np.mean(together[0] != together[1]))


def codes_of(ranking: list[int], center: tuple[int, ...]) -> list[int]:
    """Stage codes, by striking items out of the center one after the other."""
    left = list(center)
    codes = []
    for item in ranking:
        codes.append(left.index(item))
        left.remove(item)
    return codes


def log_partition(sizes: list[int], alpha: np.ndarray, num_components: int | None) -> np.ndarray:
    """Log prior probability of a partition with these block sizes, for each alpha."""
    total, blocks = sum(sizes), len(sizes)
    log_prob = gammaln(alpha) - gammaln(alpha + total)
    if num_components is None:
        return log_prob + blocks * np.log(alpha) + sum(gammaln(n) for n in sizes)
    if blocks > num_components:
        return np.full_like(log_prob, -np.inf)
    kappa = alpha / num_components
    log_prob = log_prob + sum(gammaln(kappa + n) - gammaln(kappa) for n in sizes)
    return log_prob + gammaln(num_components + 1) - gammaln(num_components - blocks + 1)


class MallowsPosterior:
    """Posterior over partitions, centers and concentrations by enumeration and quadrature.

    :param log_prior: log density of one θ on a grid, for a stage with n - j left over; may be
        unnormalised.
    :param tied: one θ for all stages.
    """

    def __init__(
        self,
        rankings: list[list[int]],
        num_items: int,
        log_prior: Callable[[np.ndarray, int], np.ndarray],
        tied: bool = False,
    ) -> None:
        self.num_items, self.tied = num_items, tied
        self.stages = min(max(map(len, rankings)), num_items - 1)
        self.rankings = [ranking[: self.stages] for ranking in rankings]
        # substitution θ = x³ puts nodes where θ is small
        x, dx = np.linspace(1e-4, 4.2, 3001, retstep=True)
        self.theta = x**3
        self.log_width = np.log(3 * x**2 * dx)
        self.log_priors, self.log_psis = [], []
        for j in range(self.stages):
            left = num_items - 1 - j
            log_density = log_prior(self.theta, left)
            total = np.logaddexp.reduce(log_density + self.log_width)
            self.log_priors.append(log_density - total)
            self.log_psis.append(np.log(np.exp(-np.outer(range(left + 1), self.theta)).sum(0)))
        self.centers = list(itertools.permutations(range(num_items)))

    def cluster(self, members: tuple[int, ...]) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Log marginal, P(σ | members), and E[θ_j | members] and E[θ_j S_j(σ) | members], (T,)."""
        log_centers, means, energies = [], [], []
        for center in self.centers:
            sums, counts = np.zeros(self.stages), np.zeros(self.stages)
            for i in members:
                codes = codes_of(self.rankings[i], center)
                sums[: len(codes)] += codes
                counts[: len(codes)] += 1
            stage = [
                -self.theta * sums[j] - counts[j] * self.log_psis[j] for j in range(self.stages)
            ]
            if self.tied:
                joint = self.log_priors[0] + sum(stage)
                stage_joints = [joint] * self.stages
            else:
                stage_joints = [self.log_priors[j] + stage[j] for j in range(self.stages)]
            logs = [np.logaddexp.reduce(q + self.log_width) for q in stage_joints]
            mean = [
                np.sum(np.exp(q + self.log_width - log) * self.theta)
                for q, log in zip(stage_joints, logs, strict=True)
            ]
            log_centers.append(logs[0] if self.tied else sum(logs))
            means.append(mean)
            energies.append(mean * sums)
        log_centers = np.array(log_centers) - gammaln(self.num_items + 1)
        total = np.logaddexp.reduce(log_centers)
        posterior = np.exp(log_centers - total)
        return total, posterior, posterior @ np.array(means), posterior @ np.array(energies)

    @cached_property
    def codes(self) -> np.ndarray:
        """Codes of all rankings under all centers, 0 where nothing is listed, (N, n!, T)."""
        codes = np.zeros((len(self.rankings), len(self.centers), self.stages))
        for i, ranking in enumerate(self.rankings):
            for c, center in enumerate(self.centers):
                codes[i, c, : len(ranking)] = codes_of(ranking, center)
        return codes

    @cached_property
    def clusters(self) -> dict[tuple[int, ...], tuple]:
        every = range(len(self.rankings))
        subsets = (s for k in every for s in itertools.combinations(every, k + 1))
        return {subset: self.cluster(subset) for subset in subsets}

    def expectations(
        self,
        alpha: float | tuple[float, float] | Callable[[np.ndarray], np.ndarray],
        num_components: int | None,
        max_clusters: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Label-free posterior expectations.

        ``partition`` probabilities, ``center`` P(σ of the cluster of ranking 0), ``theta`` means
        of the concentrations of that cluster, ``energy`` means of θ_j S_j, its concentrations times
        the sums of its codes, which are wrong where θ does not go with σ; ``alpha`` its mean.

        :param alpha: fixed, or shape and rate of a Gamma prior, or the log density of another one.
        :param max_clusters: partitions of more have probability 0.
        """
        if isinstance(alpha, tuple):
            grid = np.exp(np.linspace(-12, 5, 4001))
            log_weight = alpha[0] * np.log(grid) - alpha[1] * grid
        elif callable(alpha):
            grid = np.exp(np.linspace(-12, 5, 4001))
            log_weight = alpha(grid) + np.log(grid)
        else:
            grid, log_weight = np.array([alpha]), np.zeros(1)
        log_weight = log_weight - np.logaddexp.reduce(log_weight)
        table = list(partitions(len(self.rankings)))
        logs, centers, thetas, energies, alphas = [], [], [], [], []
        for labels in table:
            blocks = [
                tuple(i for i, label in enumerate(labels) if label == c)
                for c in range(max(labels) + 1)
            ]
            prior = log_partition([len(b) for b in blocks], grid, num_components) + log_weight
            if num_components == 1:
                prior = log_weight if len(blocks) == 1 else np.full_like(prior, -np.inf)
            if len(blocks) > (max_clusters or len(labels)):
                prior = np.full_like(prior, -np.inf)
            log_prior = np.logaddexp.reduce(prior)
            logs.append(log_prior + sum(self.clusters[b][0] for b in blocks))
            _, center, theta, energy = self.clusters[blocks[0]]
            centers.append(center)
            thetas.append(theta)
            energies.append(energy)
            alphas.append(
                np.sum(np.exp(prior - log_prior) * grid) if np.isfinite(log_prior) else 0.0
            )
        weights = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
        return {
            "partition": weights,
            "center": weights @ np.array(centers),
            "theta": weights @ np.array(thetas),
            "energy": weights @ np.array(energies),
            "alpha": np.array([weights @ np.array(alphas)]),
        }

    def indicators(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The same quantities of each draw, with leading axes (chains, draws)."""
        labels = np.asarray(samples["assignments"])
        size = len(self.rankings)
        code = labels @ (size ** np.arange(size))
        table = np.array([np.dot(p, size ** np.arange(size)) for p in partitions(size)])
        first = np.asarray(samples["center"])[..., 0, :]
        powers = self.num_items ** np.arange(self.num_items)
        centers = np.array(self.centers) @ powers
        theta = np.asarray(samples["concentration"])[..., 0, :]
        order = np.argsort(centers)
        which = order[np.searchsorted(centers[order], first @ powers)]
        together = labels == labels[..., :1]  # with ranking 0
        sums = sum(together[..., i, None] * self.codes[i, which] for i in range(size))
        return {
            "partition": code[..., None] == table,
            "center": (first @ powers)[..., None] == centers,
            "theta": theta,
            "energy": theta * sums,
            "alpha": np.asarray(samples["alpha"])[..., None],
        }


def discrepancies(
    indicators: dict[str, np.ndarray], expectations: dict[str, np.ndarray]
) -> dict[str, float]:
    """Largest |z| of each quantity; the chains, being independent, give the standard error.

    Events too rare for that, of which many chains see none, are counted together.
    """
    largest = {}
    for name, expected in expectations.items():
        means = indicators[name].mean(axis=1)
        if indicators[name].dtype == bool:
            rare = expected < _RARE
            together = means[:, rare].sum(axis=1, keepdims=True)
            means = np.append(means[:, ~rare], together, axis=1)
            expected = np.append(expected[~rare], expected[rare].sum())
        error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        # a quantity that never varied must be right as it stands
        gap = np.abs(means.mean(axis=0) - expected)
        draws = np.prod(indicators[name].shape[:2])
        z = gap / np.maximum(error, 1e-6 + 0.5 / draws)
        largest[name] = float(z.max()) if np.isfinite(z).all() else np.inf
    return largest


def lah(n, k):
    """Ways to split n into k ordered lists."""
    if k == 0:
        return float(n == 0)
    return math.comb(n - 1, k - 1) * math.factorial(n) / math.factorial(k)


# -- what else is known of the judges of a cluster ------------------------------------------------

OUTCOME_SPREAD, OUTCOME_NOISE = 1.5, 0.5


def outcome_of(y):
    """Log marginal of the outcomes of a cluster, with a mean of their own, and the mean of that."""
    noise, spread = OUTCOME_NOISE**2, OUTCOME_SPREAD**2
    covariance = noise * np.eye(len(y)) + spread
    log_marginal = scipy.stats.multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    return log_marginal, y.sum() * spread / (noise + len(y) * spread)
