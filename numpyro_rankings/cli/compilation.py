"""The devices of a run, its caches, and whether its program is compiled or read from one."""

import atexit
import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numpyro_rankings._system.cores import num_cores
from numpyro_rankings.cli.arguments import PROGRAM, UserError

_LOGGER = "jax._src.compiler"  # It says at the level DEBUG that a program is not in the cache.
_MISS, _PROGRAM = "cache miss", "_loop"  # in the message, and the name of the program of a run


def is_cache_on() -> bool:
    """Return whether JAX keeps compiled programs."""
    import jax

    settings: Any = jax.config
    return bool(settings.jax_enable_compilation_cache and settings.jax_compilation_cache_dir)


@contextlib.contextmanager
def telling_of_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function, once, as soon as the program of a run is found not to be in the cache.

    JAX has an event for a program that was read, but none for one that is about to be compiled.
    """
    logger = logging.getLogger(_LOGGER)
    level, least, is_told = logger.level, logger.getEffectiveLevel(), False

    def look(record: logging.LogRecord) -> bool:
        nonlocal is_told
        words = record.getMessage().lower()
        if not is_told and _MISS in words and _PROGRAM in words:
            is_told = True
            tell()
        return record.levelno >= least  # as without this

    logger.addFilter(look)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeFilter(look)


def use_compilation_cache(shortest: float = 0.2) -> None:
    """Keep programs whose compilation takes so many seconds, if there is a folder for them."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    if (folder := _cache("numpyro_rankings/jax")) is not None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", shortest)


def use_writable_cache() -> None:
    """Give libraries a temporary cache if the user's cannot be written, where ArviZ would fail."""
    if _cache("arviz") is None:
        folder = tempfile.mkdtemp(prefix=f"{PROGRAM}-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["XDG_CACHE_HOME"] = folder
        os.environ.setdefault("MPLCONFIGDIR", folder)


def _cache(name: str) -> Path | None:
    """Return a folder of the user's cache, or None if it cannot be written."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    with contextlib.suppress(OSError):
        if home.is_absolute():
            (home / name).mkdir(parents=True, exist_ok=True)
            if os.access(home / name, os.W_OK):
                return home / name
    return None


def check_devices() -> None:
    """Refuse a JAX_PLATFORMS that does not exist, or of which the machine has nothing."""
    import jax

    settings: Any = jax.config
    try:
        jax.devices()
    except RuntimeError as error:
        raise UserError(" ".join(str(error).split())) from None
    except AssertionError:  # JAX skips cuda without a GPU, and asserts that something is left
        raise UserError(
            f"JAX_PLATFORMS is {settings.jax_platforms}, and this machine has no such device "
            "(set JAX_PLATFORMS='' to automatically choose one that it has)"
        ) from None


def check_backends() -> None:
    """Refuse a JAX_PLATFORMS or MPLBACKEND that does not exist before the work, not after it."""
    check_devices()
    if "MPLBACKEND" in os.environ:
        try:
            import matplotlib  # noqa: F401
        except ValueError as error:
            raise UserError(f"MPLBACKEND: {' '.join(str(error).split())}") from None


def use_devices(chains: int) -> None:
    """Give JAX one CPU device for each core that can have chains, before it is first used."""
    import jax

    with contextlib.suppress(RuntimeError):  # JAX was used already
        jax.config.update("jax_num_cpu_devices", largest_divisor(chains, num_cores()))


def largest_divisor(number: int, at_most: int) -> int:
    """Return the largest divisor of a number that is not above another number."""
    return max(k for k in range(1, min(number, at_most) + 1) if number % k == 0)
