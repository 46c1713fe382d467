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
        named = by_name(values, field) if field == sample_field else {field: values}
        arrays = {_quote(name): in_numpy_types(np.asarray(x)) for name, x in named.items()}
        groups[SITES if field == sample_field else STATS] |= arrays
    return groups


def by_name(sites: Any, sample_field: str) -> dict[str, Any]:
    """Return the sites of a state or of draws by name, which a potential may have in any form.

    Those of dictionaries have their keys, others the name of the field and their place in it.
    """
    named, _ = jax.tree_util.tree_flatten_with_path(sites)
    if not isinstance(sites, dict):
        named = [((jax.tree_util.GetAttrKey(sample_field), *path), x) for path, x in named]
    return {_path_name(path): x for path, x in named}


def as_sites(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays under the names of the sites or fields that they were."""
    return {unquote(name): x for name, x in arrays.items()}


def as_arrays(state: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a state by name; keys as their numbers."""
    named, _ = jax.tree_util.tree_flatten_with_path(state)
    arrays = {_name(path): jax.random.key_data(x) if is_key(x) else x for path, x in named}
    return {name: in_numpy_types(np.asarray(x)) for name, x in arrays.items()}


def as_state(arrays: dict[str, np.ndarray], like: Any) -> Any:
    """Return a state of arrays that :func:`as_arrays` made."""
    named, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [_name(path) for path, _ in named]
    if sorted(names) != sorted(arrays):
        raise ValueError(f"it has the arrays {sorted(arrays)}, not {sorted(names)}")
    leaves = []
    for name, (_, template) in zip(names, named, strict=True):
        stored = arrays[name]
        like_it = jax.random.key_data(template) if is_key(template) else jnp.asarray(template)
        expected = in_numpy_types(np.asarray(like_it))
        if (stored.shape, stored.dtype) != (expected.shape, expected.dtype):
            raise ValueError(
                f"{name} is {stored.dtype} {stored.shape}, not {expected.dtype} {expected.shape}"
            )
        array = jnp.asarray(stored, like_it.dtype)
        if is_key(template):
            array = jax.random.wrap_key_data(array, impl=jax.random.key_impl(template))
        leaves.append(array)
    return jax.tree.unflatten(structure, leaves)


def in_numpy_types(x: np.ndarray) -> np.ndarray:
    """Return an array in a type of NumPy's own, as files need it; bfloat16 is exact in float32."""
    if x.dtype.kind != "V":
        return x
    return x.astype(np.float32 if is_real(x) else np.int32)


def is_quoted(name: str) -> bool:
    """Whether it is a name that :func:`as_groups` gives, which is that of a file in one folder."""
    return _quote(unquote(name)) == name


def is_real(x: Any) -> bool:
    """Whether an array is of floating-point numbers, those of JAX's further types included."""
    return jnp.issubdtype(x.dtype, jnp.floating)


def _name(path: tuple) -> str:
    return _quote(_path_name(path))


def _path_name(path: tuple) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def is_key(x: Any) -> bool:
    """Whether an array holds random keys."""
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _quote(name: str) -> str:
    """Return a name for the file system; ``numpyro.handlers.scope`` puts slashes into names."""
    if not name.strip(".") or name == "zarr.json":  # names that have a meaning there
        return name.replace(".", "%2E")
    return quote(name, safe=" ()[],:=+σαθφγ")
