"""Every kernel of the tests by enumeration: compiled sweeps against the same ones op by op.

With as many chains as rankings or points; ``test_compiled_kernels.py`` has other shapes.
"""

import jax
import pytest
from helpers.compiled import assert_agrees
from helpers.registry import REGISTRY

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
