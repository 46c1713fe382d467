"""Whether the program of a run is compiled, or read from the cache of compiled programs."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

_LOGGER = "jax._src.compiler"  # which says at the level DEBUG that a program is not in the cache
_MISS, _PROGRAM = "cache miss", "_loop"  # words of the message, and the name of that of a run


def is_cache_on() -> bool:
    """Return whether JAX keeps compiled programs."""
    import jax

    settings: Any = jax.config
    return bool(settings.jax_enable_compilation_cache and settings.jax_compilation_cache_dir)


@contextlib.contextmanager
def telling_of_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function as soon as the program of a run is found not to be in the cache.

    JAX has an event for a program that was read, but none for one that is about to be compiled.

    :param tell: is called once, in the thread that compiles.
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
