"""Sums that jaxlib gets wrong unless it is told (see ``numpyro_rankings/_xla.py``)."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from numpyro_rankings.components import DirichletMultinomial
from numpyro_rankings.ops.special import log_gamma_ratio

SCRIPT = """
import warnings
import jax.numpy as jnp
from numpyro_rankings import Rankings, _xla
from numpyro_rankings.infer import PlackettLuceGibbs
import jax

x = jnp.full((100, 64, 3), 0.5)
sums = jax.jit(lambda x: (jnp.log1p(2.0 * x) + jnp.log1p(3.0 * x)).sum(-1))(x)
right = abs(float(sums[0, 0]) - 4.8283137) < 1e-3
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    lists = Rankings.from_orderings([[0, 1]], num_items=2)
    PlackettLuceGibbs().init(jax.random.key(0), 0, None, (lists,), {})
told = any("wrong sums" in str(w.message) for w in caught)
assert right != told, (right, told)
print("right" if right else "told")
"""


def test_sums_over_large_arrays():
    x = np.random.default_rng(0).integers(0, 9, (100, 64, 3)).astype(np.float32)
    found = jax.jit(lambda x: log_gamma_ratio(2.1, x.sum(-1)).sum(-1))(x)
    expected = (gammaln(2.1 + x.sum(-1)) - gammaln(2.1)).sum(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    family = DirichletMultinomial(0.7)
    rising = (gammaln(0.7 + x) - gammaln(0.7)).sum((1, 2))
    points = family.statistics(jnp.asarray(x.reshape(-1, 3)))
    found = jax.jit(lambda p: family.log_marginal(p).reshape(100, 64).sum(1))(points)
    np.testing.assert_allclose(found, rising - expected, rtol=1e-4)


def run(flags):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_the_flag_is_set_or_the_user_told():
    if "ynn" not in os.environ.get("XLA_FLAGS", ""):
        return  # a jaxlib that has no such flag
    assert run("") == "right"
    # a user's own setting stays, and where it leads to wrong sums that is told
    assert run("--xla_cpu_experimental_ynn_fusion_type=+reduce") in ("right", "told")
