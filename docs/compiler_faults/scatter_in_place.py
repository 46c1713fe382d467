"""XLA on CPUs: a scatter writes over its own indices where they equal its operand.

Needs jax and nothing else: ``python scatter_in_place.py``. Ends with status 1 if the fault shows.
"""

import jax
import jax.numpy as jnp
import jaxlib

index = jnp.zeros(4, int)  # all entries go to the first place
values = jnp.arange(16).reshape(4, 4)


@jax.vmap
def sums(row):
    return jnp.zeros(1, int).at[index].add(row)


print(f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, {jax.devices()[0]}")
expected, got = sums(values)[:, 0].tolist(), jax.jit(sums)(values)[:, 0].tolist()
print(f"expected {expected}, got {got}")
for line in jax.jit(sums).lower(values).compile().as_text().splitlines():
    if " scatter(" in line:
        print(line.split(", update_window_dims")[0].strip())
is_wrong = expected != got
print("WRONG" if is_wrong else "right")
raise SystemExit(is_wrong)
