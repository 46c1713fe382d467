"""Tables and files that the container reads and writes, by name as in a package's entry points.

They are built on the container, which therefore imports none of them. A new one is a line here.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_FUNCTIONS = {
    "read long table": "numpyro_rankings.readers.frames:read_long",
    "write table": "numpyro_rankings.readers.writing:write_frame",
    "read .soc, .soi": "numpyro_rankings.readers.preflib:read_preflib",
    "write .blt": "numpyro_rankings.readers.blt:write_blt",
}


def load(name: str) -> Callable[..., Any]:
    """Return the function that reads or writes a format."""
    module, _, function = _FUNCTIONS[name].partition(":")
    return getattr(import_module(module), function)
