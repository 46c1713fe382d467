"""Many items: pair costs in parts, sizes of what a sweep holds, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from numpyro_rankings import Rankings
from numpyro_rankings._system import memory as _memory
from numpyro_rankings.infer import BetaGibbs, SliceGibbs
from numpyro_rankings.infer.mallows import centers, label_free
from numpyro_rankings.infer.mallows.data import as_mallows_data, code_sums, occupancy_of
from numpyro_rankings.ops.codes import inverse_ordering


def lists(num_lists, num_items, longest, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, longest + 1, num_lists)
    orderings = [rng.permutation(num_items)[:length].tolist() for length in lengths]
    return Rankings.from_orderings(orderings, num_items=num_items)


def updated(data, num_items, exact=True):
    """The centers of four clusters, the last one empty, after an update."""
    rng = np.random.default_rng(1)
    labels = np.arange(data.num_labels, dtype=np.int32) % 3
    theta = rng.gamma(1.0, size=(4, data.orderings.shape[1])).astype(np.float32)
    center = np.array([rng.permutation(num_items) for _ in range(4)], np.int32)

    @jax.jit
    def update(data, labels, theta, center):
        occupancy = occupancy_of(data, labels, 4)
        sums = code_sums(occupancy.membership, data, inverse_ordering(center))
        now = centers.CenterSums(center, sums)
        return centers.update_centers(random.key(2), now, theta, occupancy, data, 20, exact)

    (center, sums), accept = jax.device_get(update(data, labels, theta, center))
    assert (np.sort(center) == np.arange(num_items)).all()
    return center, sums, accept


@pytest.mark.parametrize("slots_at_a_time", [4, 2, 1])
@pytest.mark.parametrize(
    ("num_items", "longest", "exact"),
    [(80, 3, True), (80, 12, True), (20, 6, True), (80, 3, False)],
    ids=["many items, few listed", "many items, all may be listed", "few items", "not exact"],
)
def test_costs_in_parts_give_the_same_draws(
    monkeypatch, num_items, longest, exact, slots_at_a_time
):
    """By listed items and some slots at a time, or by all items and all slots."""
    data = as_mallows_data(lists(11, num_items, longest))
    monkeypatch.setattr(centers, "_BATCH_ITEMS", slots_at_a_time * num_items)
    expected = updated(data, num_items, exact)
    monkeypatch.setattr(centers, "_MOST_BYTES", 0)
    for found, whole in zip(updated(data, num_items, exact), expected, strict=True):
        np.testing.assert_array_equal(found, whole)


def test_listed_items_have_indices_of_their_own():
    rankings = Rankings.from_orderings([[7, 70], [3], [70, 7, 99]], num_items=100)
    data = as_mallows_data(rankings)
    index = np.asarray(jax.jit(centers._listed_index, static_argnums=1)(data, 100))
    assert index[[3, 7, 70, 99]].tolist() == [0, 1, 2, 3]
    most = centers.most_listed(rankings.orderings.size, 100) - 1
    assert (np.delete(index, [3, 7, 70, 99]) == most).all() and most > 3


def sizes_of(jaxpr):
    """The bytes of every value that a program computes, those of inner programs included."""
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            shape, dtype = variable.aval.shape, variable.aval.dtype
            size = np.prod(shape, dtype=float) * getattr(dtype, "itemsize", 4)
            yield size, (equation.primitive.name, shape, dtype)
        for parameter in equation.params.values():
            for inner in parameter if isinstance(parameter, tuple | list) else [parameter]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from sizes_of(inner)


@pytest.mark.parametrize("kernel", [SliceGibbs(), BetaGibbs()], ids=["slice", "beta"])
def test_a_sweep_holds_nothing_large(kernel):
    """6,000 items: the costs of all pairs in 64 slots would be 9 GB, a matrix of items 144 MB."""
    data = lists(20, 6000, 10)
    state = jax.eval_shape(lambda key, x: kernel._init(key, None, (x,), {}), random.key(0), data)
    for program in (
        jax.make_jaxpr(lambda key, x: kernel._init(key, None, (x,), {}))(random.key(0), data),
        jax.make_jaxpr(lambda state, x: kernel.sample(state, (x,), {}))(state, data),
    ):
        size, what = max(sizes_of(program.jaxpr), key=lambda x: x[0])
        assert size < centers._MOST_BYTES / 8, what


def test_inversions_in_blocks(monkeypatch):
    order = np.random.default_rng(0).permutation(50)
    expected = sum(int((order[:k] > order[k]).sum()) for k in range(50))
    assert int(label_free._num_inversions(jnp.asarray(order))) == expected
    monkeypatch.setattr(label_free, "_MANY_ITEMS", 10)
    for block in (7, 50, 64):
        monkeypatch.setattr(label_free, "_BLOCK", block)
        assert int(label_free._num_inversions(jnp.asarray(order))) == expected


def test_what_will_not_fit_is_refused(monkeypatch):
    """Before anything is computed, with the number, and with what to change."""
    monkeypatch.setattr(_memory, "device_memory", lambda: 10**9)
    data, keys = lists(3000, 40_000, 11), random.split(random.key(0), 4)

    def refusal(kernel, key):
        with pytest.raises(ValueError, match=r"but only 1\.0 GB is free") as error:
            kernel.init(key, 0, None, (data,), {})
        return str(error.value)

    needed = 3 * 4 * (data.orderings.size + 1) ** 2
    message = refusal(SliceGibbs(), random.key(0))
    assert f"64 clusters of 40,000 items (at most {data.orderings.size:,} are listed)" in message
    assert f"in 1 chain need about {needed:,} bytes ({needed / 1e9:.1f} GB)" in message
    assert message.endswith(": leave out items that few rankings list")
    message = refusal(BetaGibbs(), keys)
    assert f"in 4 chains need about {4 * needed:,} bytes" in message
    assert "run fewer chains at a time" in message
    data = lists(100, 1000, 10)
    message = refusal(SliceGibbs(), keys)
    assert "64 clusters of 1,000 items" in message and "lower max_clusters" in message
    assert "lower num_components" in refusal(SliceGibbs(num_components=50), keys)
    message = refusal(SliceGibbs(num_components=3, init="search"), keys)
    assert "the search for a start" in message and "init='nearest'" in message
    monkeypatch.setattr(_memory, "device_memory", lambda: None)
    SliceGibbs()._check_memory((data,), {}, 4)


def test_free_memory(monkeypatch):
    assert _memory.device_memory() > 0

    class Device:
        def memory_stats(self):
            return {"bytes_limit": 123}

    monkeypatch.setattr(jax, "devices", lambda: [Device()])
    assert _memory.device_memory() == 123
