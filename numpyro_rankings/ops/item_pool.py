"""An endless pool of items: lists drawn from it, and tokens seated on its atoms, in NumPy.

The simulators draw from a pool before any data are seen, and the predictions after the fit.
"""

import numpy as np


class Pool:
    """Known items with their weights, and an endless pool of other items.

    The others are the atoms of a (generalised) gamma process with inverse scale e^``log_rate``.
    Each race adds its duration to the inverse scale.
    """

    def __init__(
        self, log_weights: np.ndarray, alpha: float, log_rate: float, sigma: float
    ) -> None:
        self.log_weights = np.asarray(log_weights, float)
        self.alpha, self.log_rate, self.sigma = float(alpha), float(log_rate), float(sigma)

    def draw_list(self, rng: np.random.Generator, length: int) -> list[int]:
        """Run one race and return the first ``length`` items; new items get the next indices."""
        # Times are logarithms: with a small α weights span hundreds of orders of magnitude.
        log_times = np.log(rng.exponential(size=len(self.log_weights))) - self.log_weights
        first = np.sort(log_times)[:length]
        new_times: list[float] = []
        start = self.log_rate
        while True:
            arrived = self._log_rate_at_next(rng)
            # the time since the start of this race
            log_time = arrived + np.log(-np.expm1(start - arrived))
            if len(first) == length and log_time >= first[-1]:
                break
            self.log_rate = arrived
            log_weight = np.log(rng.gamma(2.0 - self.sigma)) + np.log(rng.uniform()) / (
                1.0 - self.sigma
            )
            self.log_weights = np.append(self.log_weights, log_weight - arrived)
            new_times.append(log_time)
            first = np.sort(np.append(first, log_time))[:length]
        self.log_rate = np.logaddexp(start, first[-1])
        return np.argsort(np.concatenate([log_times, new_times]), kind="stable")[:length].tolist()

    def _log_rate_at_next(self, rng: np.random.Generator) -> float:
        """log(τ + S) at the arrival of the next item of the pool."""
        waited = rng.exponential() / self.alpha
        if self.sigma == 0:
            return self.log_rate + waited
        # ((τ + S)^σ + σ E/α)^(1/σ)
        return np.logaddexp(self.sigma * self.log_rate, np.log(self.sigma * waited)) / self.sigma


def seat_tokens(
    rng: np.random.Generator, tables: list[int], number: int, alpha: float
) -> np.ndarray:
    """Seat more tokens as in a Chinese restaurant, in place; return the new ones by table."""
    table_of = np.repeat(np.arange(len(tables)), tables).tolist()
    there = np.arange(len(table_of), len(table_of) + number)
    # each joins the table of a token already seated, or with weight α opens a new one
    beside = np.floor(rng.uniform(size=number) * (there + alpha)).astype(int).tolist()
    for one in beside:
        if one >= len(table_of):
            table_of.append(len(tables))
            tables.append(0)
        else:
            table_of.append(table_of[one])
        tables[table_of[-1]] += 1
    return np.bincount(table_of[len(table_of) - number :], minlength=len(tables))
