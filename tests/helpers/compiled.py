"""The same computation op by op, compiled, batched, traced, on several devices, in float64."""

import inspect
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from numpyro_rankings.self_check import difference_of


def functions_of(*modules: ModuleType) -> dict[str, object]:
    """Public functions that the modules define, by name."""
    return {
        name: one
        for module in modules
        for name, one in vars(module).items()
        if callable(one)
        and not inspect.isclass(one)
        and not name.startswith("_")
        and one.__module__ == module.__name__
    }


def is_key(x):
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


# by NumPy: JAX would compile each slice and each stack, and the quick tests are mostly compiled


def entry(tree, c):
    """Entry c of each array."""
    return jax.tree.map(lambda x: x[c] if is_key(x) else jnp.asarray(np.asarray(x)[c]), tree)


def stacked(parts):
    def stack(*leaves):
        return jnp.stack(leaves) if is_key(leaves[0]) else np.stack(jax.device_get(leaves))

    return jax.tree.map(stack, *parts)


def forms_of(function, batched, shared, num_chains):
    """Results of a function of one chain's arguments and of the data, for all chains.

    :param batched: arguments with a leading axis of chains, each of them.
    :param shared: arguments that all chains have in common.
    :return: pairs of the form's name and a function without arguments, the plain form first.
    """
    batched, shared = jax.tree.map(jnp.asarray, (batched, shared))

    chain = partial(entry, batched)

    def plainly():
        with jax.disable_jit():
            return stacked([function(*chain(c), *shared) for c in range(num_chains)])

    def with_constants(*own):
        return function(*own, *shared)

    axes = (*(0 for _ in batched), *(None for _ in shared))
    one = jax.jit(with_constants)
    yield "plain", plainly
    yield "one chain", lambda: stacked([one(*chain(c)) for c in range(num_chains)])
    yield "vectorized", lambda: jax.jit(jax.vmap(with_constants))(*batched)
    traced = jax.jit(jax.vmap(function, in_axes=axes))
    yield "data traced", lambda: traced(*batched, *shared)
    devices = jax.devices()
    if 1 < num_chains <= len(devices):
        yield "parallel", lambda: jax.pmap(with_constants, devices=devices[:num_chains])(*batched)
    mesh = jax.sharding.Mesh(np.array(devices), ("rows",))

    def over_rows(x):
        splits = np.ndim(x) > 0 and np.shape(x)[0] % len(devices) == 0
        spec = jax.sharding.PartitionSpec("rows") if splits else jax.sharding.PartitionSpec()
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))

    if any(np.ndim(x) > 0 and np.shape(x)[0] % len(devices) == 0 for x in jax.tree.leaves(shared)):
        yield "sharded", lambda: traced(*batched, *jax.tree.map(over_rows, shared))


def differences_between_forms(function, batched, shared, num_chains, forms=None):
    """By form: where it differs from the plain one."""
    found, plain = {}, None
    for form, compute in forms_of(function, batched, shared, num_chains):
        if form == "plain":
            plain = compute()
        elif forms is None or form in forms:
            # differences of large numbers lose digits; a fault is larger than that
            difference = difference_of(plain, jax.device_get(compute()), rtol=1e-3, atol=1e-5)
            if difference.site is not None:
                found[form] = difference
    return found


def assert_agrees(comparison):
    assert not comparison.differences
    # else the rule for last digits would pass what it should not
    assert comparison.num_nudged <= 0.1 * comparison.num_compared


# -- the same random numbers in both precisions ----------------------------------------------------


def _in_single(draw):
    """A draw whose random bits are those of float32, in the precision in force."""
    is_whole = draw is random.randint

    def drawn(*args, **settings):
        signature = inspect.signature(draw).bind(*args, **settings)
        signature.apply_defaults()
        values = signature.arguments
        given = [x for k, x in values.items() if k not in ("key", "shape", "dtype", "axis")]
        double = any(getattr(x, "dtype", None) == jnp.float64 for x in given)
        for name, x in values.items():
            if name not in ("key", "shape", "dtype") and getattr(x, "dtype", None) == jnp.float64:
                values[name] = x.astype(jnp.float32)
        if "dtype" in values:
            double |= not is_whole and values["dtype"] in (None, float, jnp.float64)
            values["dtype"] = jnp.int32 if is_whole else jnp.float32
        x = draw(*signature.args, **signature.kwargs)
        if jnp.issubdtype(x.dtype, jnp.floating):
            return x.astype(jnp.float64 if double else jnp.float32)
        return x

    return drawn


def _categorical(key, logits, axis=-1, shape=None, **_):
    shape = tuple(np.delete(np.shape(logits), axis)) if shape is None else shape
    whole = (*shape, np.shape(logits)[-1])
    return jnp.argmax(random.gumbel(key, whole, jnp.float32) + logits, axis=axis)


@contextmanager
def double_precision():
    """float64, with the random numbers that float32 would have."""
    names = ("uniform", "normal", "exponential", "gumbel", "loggamma", "gamma", "beta", "randint")
    patches = {name: _in_single(getattr(random, name)) for name in names}
    with jax.enable_x64(True), mock.patch.multiple(random, categorical=_categorical, **patches):
        yield


def as_doubles(tree):
    """Floats as float64; to be called within :func:`double_precision`."""

    def double(x):
        is_float = hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
        return jnp.asarray(np.asarray(x), jnp.float64) if is_float else x

    return jax.tree.map(double, tree)
