"""JAX's default generator of random numbers in a form that compiles fast on CPUs.

The numbers are the same, bit by bit. On CPUs JAX computes the hash, Threefry-2x32, in a loop, which
XLA compiles into some ten kernels at each place where random numbers are drawn; in the sweep of a
kernel that is a third of all. Here the hash is one expression over a flat array.

**References**

1. *Parallel random numbers: as easy as 1, 2, 3*, J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw
   (SC 2011)
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jax.custom_batching import custom_vmap
from jax.extend.random import define_prng_impl

_NAME = "fry"  # of JAX's implementation, as its type of keys shows it
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


@custom_vmap
def _hash(key_0: Array, key_1: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds [1]; keys and counters are uint32, keys scalars or like x."""
    keys = key_0, key_1, key_0 ^ key_1 ^ _PARITY
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    # The divisors are 1. XLA takes divisions of integers for costly, and so it computes the hash
    # once, not anew for each reader; the code that it generates has no division.
    return x // ((y >> 16 >> 16) + 1), y // ((x >> 16 >> 16) + 1)


@_hash.def_vmap
def _(axis_size: int, in_batched: list[bool], *args: Array) -> tuple:
    # flat: code for arrays with a short last axis is long
    shape = jnp.broadcast_shapes(
        *(x.shape[batched:] for x, batched in zip(args, in_batched, strict=True))
    )

    def flat(x: Array, batched: bool) -> Array:
        if batched and x.ndim == 1:  # a number for each
            x = x.reshape(axis_size, *(1 for _ in shape))
        return jnp.broadcast_to(x, (axis_size, *shape)).reshape(-1)

    out = _hash(*(flat(x, batched) for x, batched in zip(args, in_batched, strict=True)))
    return tuple(x.reshape(axis_size, *shape) for x in out), (True, True)


def _at_places(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    size = math.prod(shape)
    counters = lax.iota(np.uint32, size)
    x, y = _hash(key[0], key[1], jnp.zeros_like(counters), counters)
    return x.reshape(shape), y.reshape(shape)


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return jnp.stack(_at_places(key, shape), axis=-1)


def _fold_in(key: Array, number: Array) -> Array:
    number = jnp.asarray(number).astype(np.uint32)
    return jnp.stack(_hash(key[0], key[1], jnp.zeros_like(number), number))


def _random_bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    x, y = _at_places(key, shape)
    if width == 64:
        return (x.astype(jnp.uint64) << 32) | y.astype(jnp.uint64)
    return (x ^ y).astype(f"uint{width}")


def _seed(seed: Array) -> Array:
    return random.key_data(random.key(seed, impl="threefry2x32"))


_FAST = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="numpyro_rankings_threefry",
    tag=_NAME,
)


def as_fast_key(key: Array) -> Array:
    """The same key, of the generator that compiles fast; keys of other generators stay."""
    is_typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    default = str(random.key_impl(key)) if is_typed else jax.config.jax_default_prng_impl
    if default != "threefry2x32" or not jax.config.jax_threefry_partitionable:
        return key  # other numbers, or the same ones in another order
    if jax.config.jax_disable_jit or jax.default_backend() != "cpu":
        return key
    return random.wrap_key_data(random.key_data(key), impl=_FAST)


def like_key(fast: Array, key: Array) -> Array:
    """A key of the generator and type that **key** has."""
    if fast.dtype == key.dtype:
        return fast
    data = random.key_data(fast)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return data
    return random.wrap_key_data(data, impl=random.key_impl(key))
