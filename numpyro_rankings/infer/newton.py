"""Newton's method where the steps are directions of ascent."""

import warnings
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

_MOST_STEPS = 500
_TOLERANCE = 1e-9  # of the last step
_LONGEST = 5.0  # step of a variable

Evaluated = tuple[float, np.ndarray, np.ndarray]


def climb(evaluate: Callable[[np.ndarray], Evaluated], x: np.ndarray) -> tuple[np.ndarray, int]:
    """Return where a function is highest, and the number of steps; it takes one step at least.

    :param evaluate: returns the value, the gradient, and a positive definite matrix, which is minus
        the matrix of second derivatives or near to it.
    :param x: where to start.
    """
    value, gradient, curvature = evaluate(x)
    for number in range(1, _MOST_STEPS + 1):
        step = cho_solve(cho_factor(curvature), gradient)
        step *= min(1.0, _LONGEST / max(np.abs(step).max(), 1e-300))
        # near the top, values differ by rounding only
        least = value - 1e-12 * (1 + abs(value))
        following = evaluate(x + step)
        while not following[0] >= least and np.abs(step).max() > _TOLERANCE:
            step /= 2
            following = evaluate(x + step)
        x, (value, gradient, curvature) = x + step, following
        if np.abs(step).max() <= _TOLERANCE:
            return x, number
    warnings.warn(
        f"the last of {_MOST_STEPS} steps is still {np.abs(step).max():.1e}: some items are hardly "
        "compared with the others",
        UserWarning,
        stacklevel=2,
    )
    return x, _MOST_STEPS
