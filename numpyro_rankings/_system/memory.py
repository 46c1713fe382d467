"""How much memory there is: computations that need more are refused before they start."""

import contextlib
import os
from pathlib import Path

USABLE = 0.8  # share of the free memory


class TooLittleMemoryError(ValueError):
    """A computation needs more memory than there is."""


def available_memory() -> int | None:
    """Return the number of bytes of free memory, or None if the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def device_memory() -> int | None:
    """Return the number of bytes of the device that JAX uses by default, or None if unknown."""
    import jax  # most of the time that the start of a command takes

    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("bytes_limit") or available_memory()
