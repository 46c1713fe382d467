"""The check of families: it passes those of the package, and finds every broken promise."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.refusals import assert_refused
from jax.scipy.special import gammaln

from numpyro_rankings import Rankings
from numpyro_rankings.components import (
    DirichletMultinomial,
    Family,
    GaussianMean,
    MallowsCenter,
    NormalGamma,
    NormalInverseWishart,
    PlackettLuceWeights,
    check_family,
)
from numpyro_rankings.components.checks import check_family_in_kernel
from numpyro_rankings.infer import CollapsedGibbs, DDCRPGibbs, window_decay

COUNTS = np.array([3, 4, 11, 0, 4, 2])


class PoissonGamma(Family):
    """Counts, Poisson(rate), rate ~ Gamma(a, b)."""

    def __init__(self, a=2.0, b=1.0):
        self.a, self.b = a, b

    def statistics(self, data):
        data = jnp.asarray(data, float)
        return {"size": jnp.ones(len(data)), "sum": data, "base": gammaln(data + 1.0)}

    def log_marginal(self, cluster):
        a, b = self.a + cluster["sum"], self.b + cluster["size"]
        ratio = gammaln(a) - math.lgamma(self.a)
        return ratio + self.a * math.log(self.b) - a * jnp.log(b) - cluster["base"]

    def draw_parameters(self, key, cluster):
        shape = self.a + cluster["sum"]
        return jax.random.gamma(key, shape) / (self.b + cluster["size"])

    def log_likelihood(self, parameters, point):
        return point["sum"] * jnp.log(parameters) - parameters - point["base"]


PLANE = np.random.default_rng(0).normal(size=(8, 2))
LINE = np.linspace(-40.0, 40.0, 4001)[:, None]
WIDTHS = np.full(4001, 80.0 / 4000)
ORDERS = Rankings.from_orderings(list(itertools.permutations(range(3))), num_items=3)
FEW = Rankings.from_orderings([[0, 1, 2], [0, 2, 1], [0, 1, 2], [2, 1, 0], [1, 2, 0]], num_items=3)
WORDS = np.array([[2, 0, 1], [1, 1, 0], [2, 0, 1], [0, 0, 3], [0, 1, 1]])
FAMILIES = {
    "counts": (PoissonGamma(), COUNTS, np.arange(400), None),
    "gaussian": (GaussianMean(2.0, 0.5), PLANE[:, :1], LINE, WIDTHS),
    "normal-gamma": (NormalGamma(0.2, 0.7, 1.3, [0.9, 2.0]), PLANE, None, None),
    "normal-inverse-Wishart": (
        NormalInverseWishart([0.3, -1.0], 0.6, 3.5, [[2.0, 0.5], [0.5, 1.0]]),
        PLANE,
        None,
        None,
    ),
    "multinomial": (DirichletMultinomial(np.array([0.5, 1.0, 2.0])), WORDS, None, None),
    "Mallows": (MallowsCenter([[0.8, 0.3], [1.5, 0.1]], [0.4, 0.6]), FEW, ORDERS, None),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_of_the_package_pass(name):
    family, data, support, weights = FAMILIES[name]
    check_family(family, data, support, weights)


def broken(**methods):
    return type("Broken", (PoissonGamma,), methods)()


BROKEN = {
    "no arrays": ({"statistics": lambda self, data: {}}, "returns no arrays|num_points|list index"),
    "an axis missing": (
        {
            "statistics": lambda self, data: {
                **PoissonGamma.statistics(self, data),
                "total": jnp.asarray(data).sum(),
            }
        },
        "axis of the 6 points first",
    ),
    "empty clusters": (
        {"log_marginal": lambda self, c: PoissonGamma.log_marginal(self, c) + 1.0},
        "empty cluster is 0",
    ),
    "not a number": (
        {"log_marginal": lambda self, c: jnp.log(-1.0 - c["sum"])},
        "log_marginal of a cluster of 3 points is nan",
    ),
    "infinite": (
        {"log_marginal": lambda self, c: jnp.where(c["size"] > 0, jnp.inf, 0.0)},
        "log_marginal of a cluster of 3 points is inf",
    ),
    "one number for all clusters": (
        {"log_marginal": lambda self, c: PoissonGamma.log_marginal(self, c).sum()},
        r"must be \(3,\)",
    ),
    "predictive": (
        {"log_predictive": lambda self, c, p: Family.log_predictive(self, c, p) - 0.05},
        "product of predictives",
    ),
    "member": (
        {"log_predictive_of_member": lambda self, c, p: self.log_predictive(c, p)},
        "without the member",
    ),
    "subtract": (
        {"subtract": lambda self, one, two: jax.tree.map(lambda x, y: x - 0.5 * y, one, two)},
        "log_predictive is the change|undoes subtract",
    ),
    "union": (
        {"log_union": lambda self, one, two: Family.log_union(self, one, two) + 0.5},
        "log_union is the change",
    ),
    "add": (
        {"add": lambda self, one, two: jax.tree.map(lambda x, y: jnp.maximum(x, y), one, two)},
        "add|product",
    ),
    "parameters": (
        {"log_likelihood": lambda self, p, x: PoissonGamma.log_likelihood(self, 1.2 * p, x)},
        "mean likelihood over drawn parameters",
    ),
    "shape of parameters": (
        {"draw_parameters": lambda self, key, c: jnp.ones(())},
        "draw_parameters",
    ),
    "not normalised": (
        {
            "log_marginal": lambda self, c: PoissonGamma.log_marginal(self, c) + 0.3 * c["size"],
            "log_likelihood": lambda self, p, x: PoissonGamma.log_likelihood(self, p, x) + 0.3,
        },
        "sum to 1",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_promises_are_found(name):
    methods, message = BROKEN[name]
    with pytest.raises((ValueError, IndexError), match=message):
        check_family(broken(**methods), COUNTS, np.arange(400))


def test_what_cannot_be_checked():
    with pytest.raises(TypeError, match="a Family is checked, not str"):
        check_family("gaussian", COUNTS)
    assert_refused(
        check_family,
        ("auxiliary variables", PlackettLuceWeights(), FEW),
        ("at least 4 points", PoissonGamma(), COUNTS[:3]),
        (r"weights must be \(5,\)", PoissonGamma(), COUNTS, np.arange(5), np.ones(4)),
        ("sum to 1", PoissonGamma(), COUNTS, np.arange(5)),  # not all values
    )


# a kernel does not try parameters nor sums of probabilities, and tolerates rounding errors
QUICK = set(BROKEN) - {"parameters", "shape of parameters", "not normalised", "predictive"}


@pytest.mark.parametrize("name", sorted(QUICK))
def test_kernels_refuse_families_that_break_a_promise(name):
    methods, _ = BROKEN[name]
    family = broken(**methods)
    kernel = CollapsedGibbs(family, max_clusters=3)
    data = COUNTS.astype(float)
    with pytest.raises(ValueError, match=r"Broken is no family .*check_family\(Broken"):
        kernel.init(jax.random.key(0), 0, None, (data,), {})


def test_kernels_take_families_of_ones_own():
    kernel = CollapsedGibbs(PoissonGamma(), max_clusters=3)
    check_family_in_kernel(kernel.family, COUNTS)
    check_family_in_kernel(kernel.family, COUNTS[:1])
    far = 1e3 + np.random.default_rng(0).normal(size=(5, 1))  # sums of squares lose digits
    check_family_in_kernel(type("Other", (NormalGamma,), {})(1.0, 1.0, 1.0, [1.0]), far)
    linked = DDCRPGibbs(broken(log_marginal=lambda self, c: c["sum"] + 1.0), 1.0, window_decay(2.0))
    with pytest.raises(ValueError, match="Broken is no family of components: the log marginal of"):
        linked.init(jax.random.key(0), 0, None, (COUNTS, np.ones((6, 6))), {})
