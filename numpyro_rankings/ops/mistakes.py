"""The probability of a mistake: its prior, Beta(a, b) truncated to (0, 1/2), and its conditional.

A comparison contradicts what the judge prefers with probability e, independently of all others. So
m mistakes among k + m comparisons have the probability e^m (1 - e)^k, and e given them is
Beta(a + m, b + k), truncated as the prior is.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, random
from scipy.special import betainc, betaln

from numpyro_rankings.ops.pairs import Pair, add_number, sum_as_pair, times_log, two_sum

MISTAKE = "mistake_probability"  # its name among the sites
LARGEST = 0.5  # a judge who is more often wrong than right would have the reverse preferences
_TRIES = 16


class MistakePrior(NamedTuple):
    """Beta(a, b), truncated to (0, 1/2); by default that of BayesMallows."""

    a: float = 1.0
    b: float = 3.0

    @property
    def log_mass(self) -> float:
        """The log of the integral of the density without its constant; -inf if it underflows."""
        with np.errstate(divide="ignore"):
            return float(betaln(self.a, self.b) + np.log(betainc(self.a, self.b, LARGEST)))

    def log_joint(self, probability: Array, mistakes: Array, others: Array) -> Pair:
        """Return the log density of the probability and of the comparisons given the orderings.

        :param mistakes: the number of comparisons that contradict the orderings, and **others** of
            those that agree with them, whole numbers.
        """
        terms = times_log(mistakes, probability)
        terms += times_log(others, *two_sum(jnp.ones_like(probability), -probability))
        log_prior = (self.a - 1.0) * jnp.log(probability) + (self.b - 1.0) * jnp.log1p(-probability)
        return add_number(sum_as_pair(terms), log_prior - self.log_mass)

    def draw(self, key: Array, probability: Array, mistakes: Array, others: Array) -> Array:
        """Draw the probability of a mistake given the orderings.

        :param probability: the current one.
        """
        # The first of some draws of the beta distribution that is below 1/2 has the truncated one
        # exactly. Where none is below, the current value stays. Whether one is below does not
        # depend on the current value, so that the conditional is left invariant. All fail only
        # while there are about as many mistakes as others: with fewer mistakes each draw succeeds
        # with probability 1/2 at least.
        drawn = random.beta(key, self.a + mistakes, self.b + others, (_TRIES,))
        is_possible = drawn < LARGEST
        first = jnp.maximum(drawn[jnp.argmax(is_possible)], jnp.finfo(drawn.dtype).tiny)
        return jnp.where(is_possible.any(), first, probability)
