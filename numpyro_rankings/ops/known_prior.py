r"""The conjugate prior of a concentration whose parameters are known before a program is compiled.

What a sweep needs of it, its normaliser and the envelope of its draws, are constants then. They are
computed by NumPy in double precision, and take no part in the program. The density is
:math:`\propto e^{-a\theta}\psi_m(\theta)^{1-b}`, as in ``special.py``.
"""

from collections.abc import Callable

import numpy as np

from numpyro_rankings.ops.sampling import DROP_OF_ENVELOPE, Envelope, envelope_through
from numpyro_rankings.ops.special import QUADRATURE_NODES, QUADRATURE_WEIGHTS, Fall

_DROP_OF_QUADRATURE = 30.0  # the density beyond is e^-30 of its maximum
_HALVINGS = 60


class KnownPrior:
    """The density of each entry, for positive a, b of at least 1 and the largest codes m."""

    def __init__(self, a: np.ndarray, b: np.ndarray, m: np.ndarray) -> None:
        self._a, self._b, self._m = np.broadcast_arrays(*(np.asarray(x, float) for x in (a, b, m)))
        zeros = np.zeros(self._a.shape)
        # from 50 on the slope is -a
        self.mode = _least(lambda theta: self._slope(theta) <= 0.0, zeros, zeros + 50.0)

    def log_normaliser(self) -> np.ndarray:
        """Return the log integral of the density, like ``log_beta_tilde`` of ``special.py``."""
        right, left = self._points_of_fall(_DROP_OF_QUADRATURE).distance
        nodes = QUADRATURE_NODES.reshape((-1,) + (1,) * self.mode.ndim)
        weights = QUADRATURE_WEIGHTS.reshape(nodes.shape)
        theta = self.mode + np.concatenate([right * nodes, -left * nodes])
        masses = np.concatenate([right * weights, left * weights])
        integral = np.sum(masses * np.exp(-self._fall(theta)), 0)
        return (
            np.log(integral) - self._a * self.mode - (self._b - 1.0) * _log_psi(self.mode, self._m)
        )

    def envelope(self) -> Envelope:
        """Return the envelope of :func:`~numpyro_rankings.ops.sampling.draw_in_envelope`."""
        return envelope_through(self.mode, self._points_of_fall(DROP_OF_ENVELOPE), np)

    def _slope(self, theta: np.ndarray) -> np.ndarray:
        return (self._b - 1.0) * _mean_code(theta, self._m) - self._a

    def _fall(self, theta: np.ndarray) -> np.ndarray:
        """How far the log density is below its value at the mode; θ may have a leading axis."""
        change = _log_psi(theta, self._m) - _log_psi(self.mode, self._m)
        return self._a * (theta - self.mode) + (self._b - 1.0) * change

    def _points_of_fall(self, drop: float) -> Fall:
        """Like ``points_of_fall`` of ``special.py``, but exact, and no further left than 0."""
        furthest = (drop + (self._b - 1.0) * np.log1p(self._m)) / self._a
        zeros = np.zeros(self.mode.shape)
        right = _least(lambda x: self._fall(self.mode + x) >= drop, zeros, furthest)
        left = _least(lambda x: self._fall(self.mode - x) >= drop, zeros, self.mode)
        distance = np.stack([right, left])
        there = self.mode + np.stack([right, -left])
        slope = self._slope(there) * np.array([-1.0, 1.0]).reshape((2,) + (1,) * self.mode.ndim)
        return Fall(distance, self._fall(there), slope)


def _least(
    holds: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return where something begins to hold between two ends, or the upper end."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (np.where(holds(middle), *ends) for ends in ((low, middle), (middle, high)))
    return high


def _log_psi(theta: np.ndarray, m: np.ndarray) -> np.ndarray:
    theta = np.maximum(theta, 1e-300)
    return np.log1p(np.exp(-theta) * np.expm1(-m * theta) / np.expm1(-theta))


def _mean_code(theta: np.ndarray, m: np.ndarray) -> np.ndarray:
    size = m + 1.0
    near = size * theta < 1e-4
    far = np.where(near, 1.0, theta)
    odds = [np.exp(-x) / -np.expm1(-x) for x in (far, size * far)]
    return np.where(near, 0.5 * m - theta * m * (m + 2.0) / 12.0, odds[0] - size * odds[1])
