"""Every kernel of the tests by enumeration: compiled sweeps against the same ones op by op.

With as many chains as rankings or points; ``test_compiled_kernels.py`` has other shapes.
"""

import jax
import pytest
from helpers.compiled import assert_agrees
from helpers.registry import OF_ORDERS, REGISTRY
from jax import random

from numpyro_rankings import Rankings
from numpyro_rankings.self_check import compare_sweeps


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTRY)
def test_sweeps_of_the_registry(name):
    make, *args = REGISTRY[name]
    is_ranked = isinstance(args[0], Rankings)
    size = len(args[0]) if is_ranked else jax.tree.leaves(args[0])[0].shape[0]
    forms = ("one chain", "vectorized")
    assert_agrees(compare_sweeps(make(), tuple(args), size, forms=forms, most_plain=1))


def products_of(jaxpr):
    """Yield the matrix products, also those of loops and branches."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation
        for value in jax.tree.leaves(list(equation.params.values())):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from products_of(inner)


@pytest.mark.parametrize("name", REGISTRY | OF_ORDERS)
def test_sweeps_keep_the_types_of_the_state_in_float64(name):
    """Sums and indices are int64 there; a label that becomes one ends a loop with a TypeError.

    Nor is a product left to JAX's default precision, which is less on some devices.
    """
    make, *args = (REGISTRY | OF_ORDERS)[name]
    with jax.enable_x64(True):
        kernel = make()
        args, kwargs = kernel._prepare(tuple(args), {})
        state = jax.eval_shape(lambda key: kernel._begin(key, None, args, kwargs), random.key(0))
        sweep, after = jax.make_jaxpr(
            lambda state: kernel.sample(state, args, kwargs), return_shape=True
        )(state)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype), state
    )
    assert state.z["log_joint"].dtype == "float64"
    for product in products_of(sweep.jaxpr):
        precision = product.params["precision"]
        assert precision is not None and set(precision) == {jax.lax.Precision.HIGHEST}, product
