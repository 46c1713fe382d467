"""XLA on CPUs: a reduction takes one constant for another in what is fused with it.

Needs jax and nothing else: ``python fused_constants.py``. Ends with status 1 if the fault shows.
"""

import jax
import jax.numpy as jnp
import jaxlib


def sums(x):
    return (jnp.log1p(2.0 * x) + jnp.log1p(3.0 * x)).sum(-1)


print(f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, {jax.devices()[0]}")
is_wrong = False
for rows in (1024, 2048):
    x = jnp.full((rows, 3), 0.5)
    expected, got = float(sums(x)[0]), float(jax.jit(sums)(x)[0])
    both_are_two = 2 * float(jnp.log1p(2.0 * x).sum(-1)[0])
    is_wrong |= abs(got - expected) > 1e-3
    print(f"{rows} rows: expected {expected:.6f}, got {got:.6f}", end="")
    print(", which is 2 log1p(2 x)" if abs(got - both_are_two) < 1e-5 else "")
print("WRONG" if is_wrong else "right")
raise SystemExit(is_wrong)
