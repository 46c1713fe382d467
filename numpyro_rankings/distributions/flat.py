"""The improper prior that is flat in the logarithm."""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array


class FlatLog(dist.ImproperUniform):
    r"""
    The improper prior :math:`p(x) \propto 1/x` of a positive number.

    It is what [1] puts on α, φ and γ. Then only α has a proper posterior, and that only if two or
    more items are listed: one single cluster with γ → 0, or clusters all alike with φ → ∞, have
    infinite mass. A chain far from there does not show it; one that ends there does not come back.

    There are no draws of it. Kernels start at 1.

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes", Section 6.1.

    .. doctest::

       >>> float(FlatLog().log_prob(1.0))
       -0.0
    """

    def __init__(self) -> None:
        super().__init__(dist.constraints.positive, (), ())

    def log_prob(self, value: Array) -> Array:
        return -jnp.log(value)
