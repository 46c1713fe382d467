"""What devices tell one another in a compiled program, and how much memory each of them needs."""

import math
import re
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from numpyro_rankings import Rankings

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8}
_OPERATIONS = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
_PATTERN = re.compile(rf"= (.*?) ({_OPERATIONS})(-start)?\(")


class Collective(NamedTuple):
    """An operation in which all devices take part, and the bytes of its result."""

    operation: str
    shapes: str
    num_bytes: int


def collectives_of(compiled) -> list[Collective]:
    """List the collectives of a compiled program, those in loops once."""
    found = []
    for line in compiled.as_text().splitlines():
        match = _PATTERN.search(line)
        if match:
            shapes = re.findall(r"(\w+)\[([\d,]*)\]", match[1])
            sizes = [_BYTES[t] * math.prod(int(k) for k in d.split(",") if k) for t, d in shapes]
            found.append(Collective(match[2], " ".join(f"{t}[{d}]" for t, d in shapes), sum(sizes)))
    return found


def compile_sweep(kernel, num_rankings, num_devices, lists, num_items, num_chains=1):
    """Compile a sweep of that many rankings split over devices, without making them.

    :param lists: some rankings, whose shapes but for their number are those of all.
    """
    mesh = Mesh(np.array(jax.devices()[:num_devices]), ("rankings",))
    few = Rankings.from_orderings(lists, num_items=num_items)
    keys = jax.random.split(jax.random.key(0), num_chains)
    state = jax.eval_shape(
        lambda keys: kernel.init(keys, 0, None, model_args=(few,), model_kwargs={}), keys
    )

    def like(x, spec, shape):
        return jax.ShapeDtypeStruct(shape, x.dtype, sharding=NamedSharding(mesh, spec))

    def of_state(path, x):
        if jax.tree_util.keystr(path, simple=True, separator=".") == "z.assignments":
            return like(x, PartitionSpec(None, "rankings"), (num_chains, num_rankings))
        return like(x, PartitionSpec(), x.shape)

    state = jax.tree_util.tree_map_with_path(of_state, state)
    leaves, (num_items, items, _) = few.tree_flatten()
    rows = [
        None if x is None else like(x, PartitionSpec("rankings"), (num_rankings, *x.shape[1:]))
        for x in leaves
    ]
    rankings = Rankings._make(rows, (num_items, items, num_rankings))
    sweep = jax.jit(
        lambda state, rankings: kernel.sample(state, (rankings,), {}),
        out_shardings=jax.tree.map(lambda x: x.sharding, state),
        donate_argnums=0,
    )
    return sweep.lower(state, rankings).compile()
