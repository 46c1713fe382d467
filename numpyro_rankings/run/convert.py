"""States and draws of kernels as named arrays, and back."""

from typing import Any
from urllib.parse import quote, unquote

import jax
import jax.numpy as jnp
import numpy as np

SITES, STATS = "posterior", "sample_stats"
Groups = dict[str, dict[str, np.ndarray]]  # arrays by name, by group


def as_groups(draws: dict[str, Any], sample_field: str) -> Groups:
    """Return the sites and the other fields of draws, as arrays by name."""
    groups: Groups = {SITES: {}, STATS: {}}
    for field, values in draws.items():
        if field == sample_field:
            named = values if isinstance(values, dict) else {field: values}
            groups[SITES] = {_quote(name): np.asarray(x) for name, x in named.items()}
        else:
            groups[STATS][_quote(field)] = np.asarray(values)
    return groups


def as_sites(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays under the names of the sites or fields that they were."""
    return {unquote(name): x for name, x in arrays.items()}


def as_arrays(state: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a state by name; keys as their numbers."""
    named, _ = jax.tree_util.tree_flatten_with_path(state)
    return {
        _name(path): np.asarray(jax.random.key_data(x) if is_key(x) else x) for path, x in named
    }


def as_state(arrays: dict[str, np.ndarray], like: Any) -> Any:
    """Return a state of arrays that :func:`as_arrays` made.

    :param like: a state of the same kernel on the same data.
    :raises ValueError: if the arrays are not those of such a state.
    """
    named, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [_name(path) for path, _ in named]
    if sorted(names) != sorted(arrays):
        raise ValueError(f"it has the arrays {sorted(arrays)}, not {sorted(names)}")
    leaves = []
    for name, (_, template) in zip(names, named, strict=True):
        found = arrays[name]
        expected = jax.random.key_data(template) if is_key(template) else jnp.asarray(template)
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"{name} is {found.dtype} {found.shape}, not {expected.dtype} {expected.shape}"
            )
        array = jnp.asarray(found)
        if is_key(template):
            array = jax.random.wrap_key_data(array, impl=jax.random.key_impl(template))
        leaves.append(array)
    return jax.tree.unflatten(structure, leaves)


def _name(path: tuple) -> str:
    return _quote(jax.tree_util.keystr(path, simple=True, separator="."))


def is_key(x: Any) -> bool:
    """Whether an array holds random keys."""
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _quote(name: str) -> str:
    """Return a name for the file system; ``numpyro.handlers.scope`` puts slashes into names."""
    return quote(name, safe=" ()[],:=+σαθφγ")
