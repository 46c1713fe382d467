"""Keep XLA from computing wrong sums on CPUs.

From version 0.10.2 on jaxlib hands reductions on CPUs to YNNPACK, and in what it fuses with them
mixes up constants: jitted, the sum over rows of log1p(2 x) + log1p(3 x) takes both factors for the
same where the array is large. Seen in jaxlib 0.10.2 and 0.12.0; jax-ml/jax#39103 is of its kind.
"""

import os
import re
import warnings
from functools import lru_cache
from importlib.metadata import version

_FIRST, _LAST = (0, 10, 2), (0, 12)  # versions of jaxlib that know the flag, tried
_FLAG = "--xla_cpu_experimental_ynn_fusion_type=-reduce"


def set_flag() -> None:
    """Tell XLA to compute reductions itself; of no effect if JAX has computed anything before."""
    jaxlib = tuple(int(part) for part in re.findall(r"\d+", version("jaxlib"))[:3])
    flags = os.environ.get("XLA_FLAGS", "")
    # an XLA that does not know a flag ends the process
    if _FIRST <= jaxlib and jaxlib[:2] <= _LAST and "ynn_fusion_type" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_FLAG}".strip()


@lru_cache
def warn_of_wrong_sums() -> None:
    """Warn, once, if sums are wrong all the same."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def logs(x):
        return jnp.log1p(2.0 * x) + jnp.log1p(3.0 * x)

    x = np.linspace(0.5, 1.0, 19200, dtype=np.float32).reshape(100, 64, 3)
    with jax.ensure_compile_time_eval():
        found = jax.jit(lambda x: logs(x).sum(-1))(x)
    if not np.allclose(found, (np.log1p(2.0 * x) + np.log1p(3.0 * x)).sum(-1), rtol=1e-4):
        warnings.warn(
            "this jaxlib computes wrong sums (it mixes up constants in what it fuses with them): "
            f"set XLA_FLAGS={_FLAG} before JAX is used, or import numpyro_rankings before",
            RuntimeWarning,
            stacklevel=3,
        )
