"""The improper prior that is flat in the logarithm."""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array


class FlatLog(dist.ImproperUniform):
    r"""
    The improper prior :math:`p(x) \propto 1/x` of a positive number.

    It is the prior that [1] uses for α, φ and γ. Under it only α has a proper posterior, and only
    if at least two items are listed: a single cluster with γ → 0 and identical clusters with φ → ∞
    have infinite posterior mass. A chain far from these regions does not show it; a chain that
    reaches one does not return.

    The prior cannot be sampled. Kernels start at 1.

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
