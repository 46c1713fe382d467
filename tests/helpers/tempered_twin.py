"""The slow, obvious twin of a tempered mixture: sums over the labels of copies of the rankings.

A ranking with count c and power z counts as c z rankings. Where that is a whole number m, the power
of the mixture is the sum over the ways to give its m copies to the components.
"""

import itertools
import math

import numpy as np
from scipy.special import gammaln, logsumexp

from helpers.enumeration import codes_of


class Multiplicities:
    """Ways to put **copies** of each of several rows into K components, with their weights."""

    def __init__(self, num_rows, copies, num_components, kappa):
        self.number = num_components
        of_row = [
            ways
            for ways in itertools.product(range(copies + 1), repeat=num_components)
            if sum(ways) == copies
        ]
        log_ways = [gammaln(copies + 1) - sum(gammaln(k + 1) for k in ways) for ways in of_row]
        index = np.array(list(itertools.product(range(len(of_row)), repeat=num_rows)))
        self.parts = np.array(of_row)[index]  # (ways, rows, K)
        log_weights = np.array(log_ways)[index].sum(1)
        sizes = self.parts.sum(1)
        self.log_weights = log_weights + log_dirichlet(sizes, kappa)

    def log_evidence(self, log_marginal):
        """Sum over all ways; the log marginal is of a component with such copies, (…, rows)."""
        parts = np.moveaxis(self.parts, 2, 1)
        table, index = np.unique(parts.reshape(-1, parts.shape[2]), axis=0, return_inverse=True)
        each = log_marginal(table)[index].reshape(parts.shape[:2])
        return logsumexp(self.log_weights + each.sum(1))


def log_dirichlet(sizes, kappa):
    """Log probability of labels with these sizes, (…, K), under shares of Dirichlet(κ)."""
    number, total = sizes.shape[-1], sizes.sum(-1)
    log_prob = gammaln(number * kappa) - gammaln(number * kappa + total)
    return log_prob + (gammaln(kappa + sizes) - gammaln(kappa)).sum(-1)


def log_together(rows, copies, number, kappa, log_marginal, pair):
    """Log of the integral that is P(two rankings in one component) times the evidence.

    Their labels are drawn given the parameters, whose density has their rows to the power copies.
    """
    # w_c² f_i f_j / (mix_i mix_j) times the density: one copy of each of both rows less to be
    # summed over, and one of each that is in component 0; times K by symmetry
    per_row = [copies - pair.count(i) for i in range(rows)]
    of_rows = [
        [ways for ways in itertools.product(range(m + 1), repeat=number) if sum(ways) == m]
        for m in per_row
    ]
    fixed = np.zeros((rows, number), int)
    for i in pair:
        fixed[i, 0] += 1
    terms, tables = [], []
    for ways in itertools.product(*of_rows):
        part = np.array(ways)
        log_ways = sum(
            gammaln(m + 1) - gammaln(w + 1).sum() for m, w in zip(per_row, part, strict=True)
        )
        tables.append((part + fixed).T)
        terms.append(log_ways + log_dirichlet((part + fixed).sum(0), kappa))
    tables = np.array(tables)
    table, index = np.unique(tables.reshape(-1, rows), axis=0, return_inverse=True)
    each = log_marginal(table)[index].reshape(tables.shape[:2]).sum(1)
    total = logsumexp(np.array(terms) + each)
    return total + math.log(number)


class MallowsMarginal:
    """Log marginal likelihood of copies of rows in one Mallows component, by quadrature."""

    def __init__(self, rankings, num_items, log_prior):
        stages = min(max(map(len, rankings)), num_items - 1)
        centers = list(itertools.permutations(range(num_items)))
        codes = np.zeros((len(rankings), len(centers), stages), int)
        for i, ranking in enumerate(rankings):
            for c, center in enumerate(centers):
                own = codes_of(ranking[:stages], center)
                codes[i, c, : len(own)] = own
        self.codes, self.stages, self.num_items = codes, stages, num_items
        self.listed = np.array([[j < len(r) for j in range(stages)] for r in rankings])
        x, dx = np.linspace(1e-4, 4.2, 3001, retstep=True)
        self.theta, self.log_width = x**3, np.log(3 * x**2 * dx)
        self.log_prior = log_prior

    def __call__(self, copies):
        """Of copies (M, rows)."""
        total = 0.0
        for j in range(self.stages):
            left = self.num_items - 1 - j
            log_psi = np.log(np.exp(-np.outer(range(left + 1), self.theta)).sum(0))
            log_density = self.log_prior(self.theta, left) + self.log_width
            log_density -= logsumexp(log_density)
            sums, numbers = copies @ self.codes[..., j], copies @ self.listed[:, j]
            grid = np.arange(sums.max() + 1), np.arange(numbers.max() + 1)
            table = np.array(
                [
                    [logsumexp(log_density - s * self.theta - n * log_psi) for n in grid[1]]
                    for s in grid[0]
                ]
            )
            total = total + table[sums, numbers[:, None]]
        return logsumexp(total, axis=1) - gammaln(self.num_items + 1)


class PlackettLuceMarginal:
    """Log marginal likelihood of copies of rows of three items in one Plackett–Luce component."""

    def __init__(self, rankings, shape, num_nodes=60):
        nodes, widths = np.polynomial.legendre.leggauss(num_nodes)
        nodes, widths = (nodes + 1) / 2, widths / 2
        x, y = (a.ravel() for a in np.meshgrid(nodes, nodes, indexing="ij"))
        weights = np.stack([x, (1 - x) * y, (1 - x) * (1 - y)], axis=1)
        log_width = np.log(np.outer(widths, widths).ravel() * (1 - x))
        a = np.asarray(shape)
        log_prior = gammaln(a.sum()) - gammaln(a).sum() + ((a - 1) * np.log(weights)).sum(1)
        self.log_measure = log_prior + log_width
        self.log_rows = []
        for ranking in rankings:
            left, log_row = weights.sum(1), 0.0
            for item in ranking:
                log_row = log_row + np.log(weights[:, item] / left)
                left = np.maximum(left - weights[:, item], 1e-300)
            # the last item of all is certain
            self.log_rows.append(log_row if len(ranking) < 3 else self._full(weights, ranking))

    @staticmethod
    def _full(weights, ranking):
        first, second, third = (weights[:, i] for i in ranking)
        return np.log(first) + np.log(second / (second + third))

    def __call__(self, copies):
        return logsumexp(copies @ np.array(self.log_rows) + self.log_measure, axis=1)
