"""Games of two items under the Bradley–Terry model, with ties and an advantage at home."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, bellman_ford

from numpyro_rankings.infer.newton import climb
from numpyro_rankings.rankings import Games, RankingsError

# Item i, at home if any is, and item j have the scores a = x_i + h and b = x_j, where x are log
# weights and h is log γ; the score of a tie is log δ + (a + b) / 2. Each result has a probability
# proportional to exp(score). So the log likelihood is concave in x, log δ and h. There is a table
# for each result: its rows are the coefficients of x, log δ and h in the score, game by game. The
# information of a game is the covariance of its row over the results.


class PairStages:
    """Games, and what :mod:`plackett_luce_map` asks of stages.

    **tie_sizes** has 2 if there are ties, **ties** is their strength δ, and **home** is γ, or None
    if no item was at home; :meth:`best` sets them.
    """

    def __init__(self, games: Games) -> None:
        self.num_items = n = games.num_items
        self.pairs, self.results = np.asarray(games.pairs), np.asarray(games.results, float)
        self.counts = self.results.sum(1)
        is_home = games.at_home is not None
        self.at_home = np.asarray(games.at_home, float) if is_home else np.zeros(len(self.pairs))
        self.tie_sizes = np.array([2] if games.has_ties else [], int)
        self.ties = np.ones(len(self.tie_sizes))
        self.home: float | None = 1.0 if is_home else None
        if games.has_ties and not self.results[:, :2].any():
            raise RankingsError("the likelihood has no maximum: all games are ties")
        rows, size = np.arange(len(self.pairs)), n + len(self.tie_sizes) + is_home

        def table(items: np.ndarray, amount: float, at_home: np.ndarray) -> csr_array:
            row, column = np.repeat(rows, items.shape[1]), items.ravel()
            entries = np.full(len(row), amount)
            if is_home:
                row, column = np.append(row, rows), np.append(column, np.full(len(rows), size - 1))
                entries = np.append(entries, at_home)
            return csr_array((entries, (row, column)), (len(rows), size))

        first, second = self.pairs[:, :1], self.pairs[:, 1:]
        self._tables = [table(first, 1.0, self.at_home), table(second, 1.0, 0 * self.at_home)]
        if games.has_ties:
            strength = csr_array(
                (np.ones(len(rows)), (rows, np.full(len(rows), n))), (len(rows), size)
            )
            self._tables.append(table(self.pairs, 0.5, self.at_home / 2) + strength)

    def _at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log probabilities and probabilities of the results, (rows, results)."""
        scores = np.column_stack([part @ x for part in self._tables])
        scores -= scores.max(1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        return log_p, np.exp(log_p)

    def _information(self, p: np.ndarray) -> np.ndarray:
        expected = p * self.counts[:, None]
        means = sum(part.multiply(p[:, k, None]).tocsr() for k, part in enumerate(self._tables))
        found = sum(
            part.T @ part.multiply(expected[:, k, None]).tocsr()
            for k, part in enumerate(self._tables)
        )
        return (found - means.T @ means.multiply(self.counts[:, None]).tocsr()).toarray()

    def best(self, times: float) -> tuple[np.ndarray, int]:
        """Return the weights of highest density, (n,), and the number of iterations.

        :param times: how often each item is chosen once more, from all items.
        """
        n = self.num_items

        def evaluate(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
            log_p, p = self._at(x)
            shares = np.exp(x[:n] - x[:n].max())
            log_total, shares = np.log(shares.sum()) + x[:n].max(), shares / shares.sum()
            value = (self.results * log_p).sum() + times * (x[:n].sum() - n * log_total)
            missing = self.results - p * self.counts[:, None]
            slopes = [part.T @ missing[:, k] for k, part in enumerate(self._tables)]
            gradient = np.sum(slopes, axis=0)
            gradient[:n] += times * (1 - n * shares)
            curvature = self._information(p)
            curvature[:n, :n] += n * times * (np.diag(shares) - np.outer(shares, shares))
            # the scale, which does not matter, stays where it is
            curvature[:n, :n] += np.trace(curvature[:n, :n]) / n**2
            return value, gradient, curvature

        x, number = climb(evaluate, np.zeros(self._tables[0].shape[1]))
        self.ties = np.exp(x[n : n + len(self.tie_sizes)])
        if self.home is not None:
            self.home = float(np.exp(x[-1]))
        weights = np.exp(x[:n] - x[:n].max())
        return weights / weights.sum(), number

    def _parameters(self, weights: np.ndarray) -> np.ndarray:
        home = [] if self.home is None else [np.log(self.home)]
        return np.concatenate([np.log(weights), np.log(self.ties), home])

    def log_likelihood(self, weights: np.ndarray) -> float:
        """Log likelihood of all games."""
        return float((self.results * self._at(self._parameters(weights))[0]).sum())

    def information(self, weights: np.ndarray) -> np.ndarray:
        """Observed information of log weights, log δ and log γ."""
        return self._information(self._at(self._parameters(weights))[1])

    def beats(self) -> np.ndarray:
        """Whether the item of the row once won against that of the column, (n, n)."""
        found = np.zeros((self.num_items, self.num_items), bool)
        for k, pairs in enumerate((self.pairs, self.pairs[:, ::-1])):
            winner, loser = pairs[self.results[:, k] > 0].T
            found[winner, loser] = True
        return found

    def check_home(self, has_prior: bool) -> None:
        """Refuse games that do not tell γ: they bound it from no side, or from one side only.

        Along a direction in which γ grows, no result may become less probable, so that each winner
        must gain at least as much as the loser, less one if the winner was at home, and one more
        if the loser was. That is impossible if in a cycle of wins more were away than at home. For
        γ that decreases it is the reverse. Ties, which also help, are left out. A prior of the
        weights holds these, so that a win at home and one away are enough.
        """
        if self.home is None:
            return
        wins = [self.results[:, k] > 0 for k in (0, 1)]
        if has_prior:
            is_bounded = [bool((won & (self.at_home > 0)).any()) for won in wins]
        else:
            is_bounded = [self._has_cycle(-1.0), self._has_cycle(1.0)]
        if all(is_bounded):
            return
        if not any(is_bounded):
            what = "the results do not tell the advantage at home from the weights of the items"
        else:
            what = (
                "where it matters only those at home won"
                if is_bounded[0]
                else ("where it matters only those away won")
            )
        has = "may have no maximum" if len(self.tie_sizes) else "has no maximum"
        raise RankingsError(f"the likelihood {has}: {what}. Leave out home")

    def _has_cycle(self, sign: float) -> bool:
        """Whether in some cycle of wins the sum of ``sign`` (1 at home, -1 away) is below zero."""
        n = self.num_items
        length = np.full((n, n), np.inf)
        for k, pairs in enumerate((self.pairs, self.pairs[:, ::-1])):
            won = self.results[:, k] > 0
            own = (sign * (1 - 2 * k) * self.at_home)[won]
            # a cycle has n wins at most, so that these add less than 1; no length is 0
            np.minimum.at(length, tuple(pairs[won].T), own + 0.5 / (n + 1))
        winner, loser = np.nonzero(np.isfinite(length))
        graph = csr_array((length[winner, loser], (winner, loser)), (n, n))
        try:
            bellman_ford(graph, indices=0)
        except NegativeCycleError:
            return True
        return False
