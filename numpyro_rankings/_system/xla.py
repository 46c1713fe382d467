"""Keep XLA from computing wrong sums on CPUs.

From version 0.10.2 on, jaxlib computes reductions on CPUs with YNNPACK, and confuses constants in
the operations that it fuses with them: in a compiled sum over rows of log1p(2 x) + log1p(3 x) both
factors are equal if the array is large. ``docs/compiler_faults.rst`` has a script and versions.
"""

import os
import re
import warnings
from functools import lru_cache
from importlib.metadata import version
from typing import Any

_FIRST, _LAST = (0, 10, 2), (0, 12)  # versions of jaxlib known to have the flag
_FLAG = "--xla_cpu_experimental_ynn_fusion_type=-reduce"


def set_flag() -> None:
    """Tell XLA not to use YNNPACK for reductions; has no effect once JAX has computed anything."""
    jaxlib = tuple(int(part) for part in re.findall(r"\d+", version("jaxlib"))[:3])
    flags = os.environ.get("XLA_FLAGS", "").strip()
    # XLA reads no flags if the variable has the name of a file
    is_file = flags and not flags.startswith("-")
    # XLA ends the process if it does not know a flag
    if _FIRST <= jaxlib and jaxlib[:2] <= _LAST and "ynn_fusion_type" not in flags and not is_file:
        # our flag comes first, because XLA stops reading at the first word that is no flag
        os.environ["XLA_FLAGS"] = f"{_FLAG} {flags}".strip()


@lru_cache
def warn_of_wrong_sums() -> None:
    """Warn once if compiled sums are wrong, for example because JAX was used before the import."""
    # imported here, because set_flag() has to run before JAX is loaded
    import jax
    import jax.numpy as jnp
    import numpy as np

    def logs(x: Any) -> Any:
        return jnp.log1p(2.0 * x) + jnp.log1p(3.0 * x)

    x = np.linspace(0.5, 1.0, 19200, dtype=np.float32).reshape(100, 64, 3)
    with jax.ensure_compile_time_eval():
        compiled = jax.jit(lambda x: logs(x).sum(-1))(x)
    if not np.allclose(compiled, (np.log1p(2.0 * x) + np.log1p(3.0 * x)).sum(-1), rtol=1e-4):
        warnings.warn(
            "this jaxlib computes wrong sums (it confuses constants in fused operations): import "
            f"numpyro_rankings before JAX is first used, or set XLA_FLAGS={_FLAG}",
            RuntimeWarning,
            stacklevel=3,
        )
