"""Functions of ``ops`` and distributions: compiled, batched and sharded as op by op.

On shapes that coincide, where compilers and authors confuse axes: as many chains as rows, items,
stages and clusters. ``test_compiled_kernels.py`` does the same with sweeps.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.compiled import as_doubles, differences_between_forms, double_precision, functions_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import random

import numpyro_rankings.distributions as rd
from numpyro_rankings import PartialOrders
from numpyro_rankings.ops import (
    checks,
    choices,
    codes,
    links,
    loops,
    pairs,
    sampling,
    special,
    stable,
    sums,
)
from numpyro_rankings.self_check import difference_of

MODULES = (checks, choices, codes, links, loops, pairs, sampling, special, stable, sums)
# these look at numbers that are known before anything is compiled
OF_THE_HOST = {
    "draw_log_gamma",
    "refuse_masked",
    "is_traced",
    "as_array",
    "is_real",
    "positive_number",
    "check_whole",
    "check_positive",
    "check_neighbors",
    "can_be_tabled",
    "can_be_designed",
}


class Shape(NamedTuple):
    """Numbers of chains, rows, items, stages and clusters; and how the rows are made."""

    chains: int
    rows: int
    items: int
    stages: int
    clusters: int
    equal: bool = False
    count: int = 1


def same(k, **others):
    """All of them k, but for two items at least."""
    return Shape(k, k, max(k, 2), k, k, **others)


SHAPES = {
    "1": same(1),
    "2": same(2),
    "3": same(3),
    "4": same(4),
    "8": same(8),
    "mixed": Shape(3, 8, 4, 2, 3),
    "rows are chains": Shape(4, 4, 3, 2, 1),
    "items are chains": Shape(4, 3, 4, 3, 2),
    "one row": Shape(4, 1, 3, 2, 2),
    "two items": Shape(4, 4, 2, 1, 4),
    "one stage": Shape(2, 4, 3, 1, 4),
    "one cluster": Shape(8, 8, 4, 4, 1),
    "all rows equal": same(4, equal=True),
    "all rows equal, one cluster": Shape(4, 4, 3, 1, 1, equal=True),
    "rows of a million": Shape(4, 4, 4, 3, 2, count=10**6),
}
QUICK = ("all rows equal, one cluster",)


class Inputs:
    """Arrays of a shape: those of the data, and those of all chains, which differ."""

    def __init__(self, shape):
        self.shape = shape
        rng = np.random.default_rng(sum(shape))
        chains, rows, n, stages, clusters = shape[:5]
        stages = min(stages, n)

        def lists(*batch):
            orderings = rng.permuted(np.broadcast_to(np.arange(n), (*batch, rows, n)), axis=-1)
            orderings = orderings[..., :stages].astype(np.int32)
            lengths = rng.integers(1, stages + 1, (*batch, rows, 1))
            orderings = np.where(np.arange(stages) < lengths, orderings, -1)
            return 0 * orderings[..., :1, :1] + orderings[..., :1, :] if shape.equal else orderings

        self.orderings = np.broadcast_to(lists(), (rows, stages))
        self.of_chains = np.broadcast_to(lists(chains), (chains, rows, stages))
        self.listed = self.of_chains >= 0
        offered = rng.random((rows, n)) < 0.5
        np.put_along_axis(offered, np.maximum(self.orderings, 0), True, axis=1)
        as_choices = jax.jit(choices.as_choices, static_argnums=(2, 3))
        self.data = as_choices(self.orderings, None, n, False)
        self.subsets = as_choices(self.orderings, offered, n, False)
        self.offered = offered
        self.rows = np.arange(rows, dtype=np.int32)
        self.labels = np.arange(rows, dtype=np.int32) % clusters
        self.counts = np.full(rows, shape.count, np.int32)
        self.keys = random.split(random.key(1), chains)
        self.weights = rng.dirichlet(np.ones(n + 1), (chains, clusters)).astype(np.float32)
        self.times = rng.exponential(size=(chains, stages, rows)).astype(np.float32)
        self.own_labels = rng.integers(0, clusters, (chains, rows)).astype(np.int32)
        self.values = rng.integers(0, 10, (chains, rows)).astype(np.int32) * shape.count
        everything = np.broadcast_to(np.arange(n, dtype=np.int32), (chains, clusters, n))
        self.centers = rng.permuted(everything, axis=-1)
        self.links = rng.integers(0, rows, (chains, rows)).astype(np.int32)
        self.limits = np.maximum(n - 1 - np.arange(stages), 1)
        self.own_codes = rng.integers(0, n - np.arange(stages), (chains, clusters, stages))
        self.theta = rng.gamma(1.0, size=(chains, clusters, stages)).astype(np.float32)
        self.delta = (self.theta * rng.uniform(-0.5, 2.0, self.theta.shape)).astype(np.float32)
        sizes = rng.integers(1, 9, self.theta.shape) * float(shape.count)
        self.b = (1.5 + sizes).astype(np.float32)
        self.a = (0.5 + sizes * rng.uniform(0.1, 0.9, sizes.shape) * self.limits).astype(np.float32)


@lru_cache
def inputs_of(shape):
    return Inputs(SHAPES[shape])


def cases(x):
    """Each function: by name, it, arguments of the chains, arguments that these have in common."""
    s, n, clusters = x.shape, x.shape.items, x.shape.clusters
    who, pool, weights = (x.rows, x.labels, x.counts), x.weights[..., -1], x.weights[..., :-1]
    theta, m = x.theta, x.limits

    def of_row(lists):
        return choices.as_choices(lists, None, n, True)

    def summed(labels, values):
        return sums.sum_by_label(values, labels, clusters)

    yield "as_choices", of_row, (x.of_chains,), ()
    yield (
        "as_choices",
        lambda _, o: choices.as_choices(*o, n, True),
        (x.keys,),
        ((x.orderings, x.offered),),
    )
    yield (
        "times_chosen",
        lambda k, *who: choices.times_chosen(x.data, *who, clusters, n),
        (x.keys,),
        who,
    )
    yield (
        "times_chosen",
        lambda own, data, rows, counts: choices.times_chosen(data, rows, own, counts, clusters, n),
        (x.own_labels,),
        (x.data, x.rows, x.counts),
    )
    for data in (x.data, x.subsets):
        yield (
            "stage_masses",
            lambda w, p, data, *who: choices.stage_masses(data, *who, w, p),
            (weights, pool),
            (data, *who[:2]),
        )
        yield (
            "stage_mass_pairs",
            lambda w, p, data, *who: sum(choices.stage_mass_pairs(data, *who, w, p)),
            (weights, pool),
            (data, *who[:2]),
        )
        yield (
            "times_in_play",
            lambda times, data, *who: choices.times_in_play(times, data, *who, clusters, n),
            (x.times,),
            (data, *who[:2]),
        )
        yield "set_codes", lambda _, data: choices.set_codes(data, n), (x.keys,), (data,)
        yield (
            "log_choice_likelihoods",
            lambda w, p, data: choices.log_choice_likelihoods(data, w, p, jnp.array(clusters)),
            (weights, pool),
            (data,),
        )
        for tabled in (True, False):
            yield (
                "log_choice_row_likelihoods",
                lambda w, p, data, tabled=tabled: choices.log_choice_row_likelihoods(
                    data, w[0], p[0], choices.cells_if_tabled(data, n) if tabled else None
                ),
                (weights, pool),
                (data,),
            )
    yield "in_sets", lambda w: w @ choices.in_sets(n, w.dtype).T, (weights,), ()
    yield (
        "set_counts",
        lambda own, data, rows, counts: choices.set_counts(data, rows, own, counts, clusters, n),
        (x.own_labels,),
        (x.data, x.rows, x.counts),
    )
    yield (
        "set_counts",
        lambda _, data, *who: choices.set_counts(data, *who, clusters, n),
        (x.keys,),
        (x.data, *who),
    )
    yield "set_masses", choices.set_masses, (weights, pool), ()
    yield "set_mass_pairs", lambda w, p: sum(choices.set_mass_pairs(w, p)), (weights, pool), ()
    yield "cells_if_tabled", lambda _, data: choices.cells_if_tabled(data, n), (x.keys,), (x.data,)
    cells = jnp.asarray(x.orderings.T * 0 + 1)
    yield (
        "counts_of_cells",
        lambda amounts, cells: choices.counts_of_cells(cells, amounts, n),
        (x.values,),
        (cells,),
    )
    design = choices.design_if_small(x.data, n, jnp.float32)
    yield (
        "design_if_small",
        lambda lists: choices.design_if_small(of_row(lists), n, jnp.float32),
        (x.of_chains,),
        (),
    )
    yield (
        "log_designed_likelihoods",
        lambda w, p, design: choices.log_designed_likelihoods(design, w[0], p[0]),
        (weights, pool),
        (design,),
    )

    places = np.argsort(x.centers, axis=-1).astype(np.int32)
    yield "inverse_ordering", codes.inverse_ordering, (x.centers,), ()
    yield "max_codes", lambda c: c + codes.max_codes(n, c.shape[-1]), (x.own_codes,), ()
    yield "stage_codes", lambda p, o: codes.stage_codes(o, p[:, None]), (places,), (x.orderings,)
    yield (
        "codes_from_places",
        lambda o, listed: codes.codes_from_places(jnp.maximum(o, 0), listed),
        (x.of_chains, x.listed),
        (),
    )
    yield "ordering_from_codes", codes.ordering_from_codes, (x.own_codes, x.centers), ()
    yield (
        "center_from_codes",
        codes.center_from_codes,
        (x.own_codes[:, 0], x.of_chains[:, 0], x.centers[:, 0]),
        (),
    )
    yield "representatives", links.representatives, (x.links,), ()
    yield (
        "shared_bound",
        lambda own: jax.lax.fori_loop(0, loops.shared_bound(own[0] % 3), lambda i, k: k, own),
        (x.own_labels,),
        (),
    )

    yield (
        "computed_if",
        lambda own: loops.computed_if(
            own[0] % 2 == 0, lambda x, k: jnp.sort(x) + k, (own, own[0]), own
        ),
        (x.own_labels,),
        (),
    )

    yield "sum_by_label", summed, (x.own_labels, x.values), ()

    def summed_in_blocks(labels, values):
        many = 16 * clusters  # so that there are blocks
        labels, values = jnp.tile(labels, many), jnp.tile(values, many).astype(float)
        return sums.sum_by_label_in_blocks(values, labels, clusters)

    yield "sum_by_label_in_blocks", summed_in_blocks, (x.own_labels, x.values), ()
    yield "sum_by_label", lambda v, labels: summed(labels, v), (x.values,), (x.labels,)
    yield (
        "sum_by_label",
        lambda v, labels: sums.sum_by_label(v.T, labels, clusters),
        (x.times,),
        (x.labels,),
    )
    yield "count_by_label", lambda own: sums.count_by_label(own, clusters), (x.own_labels,), ()
    yield (
        "scatter_add",
        lambda v, labels: sums.scatter_add(
            jnp.zeros((clusters, 2), v.dtype), (labels, 0 * labels), v
        ),
        (x.values,),
        (x.labels,),
    )

    yield "as_floats", special.as_floats, (x.own_codes, theta), ()
    for name in ("log_psi", "mean_code", "var_code"):
        yield name, getattr(special, name), (theta,), (m,)
    yield (
        "log_density_difference",
        special.log_density_difference,
        (theta, x.delta, x.a, x.b),
        (m,),
    )
    for name in ("concentration_mode", "log_beta_tilde"):
        yield name, getattr(special, name), (x.a, x.b), (m,)
    yield (
        "mode_and_variance",
        lambda a, b, m: special.mode_and_variance(a, b, jnp.broadcast_to(m, a.shape)),
        (x.a, x.b),
        (m,),
    )

    def ends(a, b, m):
        m = jnp.broadcast_to(m, a.shape)
        mode, variance = special.mode_and_variance(a, b, m)
        # where they are; how far the density has fallen there is that times the counts
        return special.points_of_fall(mode, variance, a, b, m, 20.0, 5).distance

    flat = (x.a.reshape(s.chains, -1), x.b.reshape(s.chains, -1))
    yield "points_of_fall", ends, flat, (np.float32(n),)
    for name in ("log_beta_tilde_ratio", "log_beta_tilde_change"):
        yield (
            name,
            lambda a, b, c, m, name=name: getattr(special, name)(a, b, m, c),
            (x.a, x.b, np.minimum(x.own_codes, m)),
            (m,),
        )
    yield "log_beta_ratio", special.log_beta_ratio, (x.a, x.b, x.own_codes), ()
    yield "log_gamma_ratio", special.log_gamma_ratio, (x.a, x.b), ()
    yield "log_gamma_rest", special.log_gamma_rest, (x.a, x.b), ()
    yield "log_beta", lambda a, b: special.log_beta(1.0 + a, b), (x.a, x.b), ()
    yield "log_bessel_ie", special.log_bessel_ie, (x.delta * 0 + 0.3, theta * 10 + 0.1), ()
    yield "log_stable_density", lambda x: stable.log_stable_density(x, 0.4), (x.delta,), ()

    # the two numbers of a pair may round otherwise; together they hold
    own = (theta * 1e4, x.delta)
    yield "rounded", pairs.rounded, (theta,), ()
    yield "two_sum", lambda a, b: sum(pairs.two_sum(a, b)), own, ()
    yield "add_number", lambda a, b: sum(pairs.add_number((a, b * 1e-6), a)), own, ()
    for name in ("add_pairs", "subtract_pair"):
        yield (
            name,
            lambda a, b, name=name: sum(getattr(pairs, name)((a, b * 1e-6), (b, a * 1e-9))),
            (own),
            (),
        )
    yield "sum_pairs", lambda a, b: sum(pairs.sum_pairs((a, b * 1e-6))), own, ()
    yield "split_exponent", lambda a: jnp.stack(choices.split_exponent(a)), (theta + 1e-3,), ()
    yield "log_as_pair", lambda a: sum(pairs.log_as_pair(a)), (theta + 1e-3,), ()
    for name, arguments in {"sum_as_pair": (), "exact_products": (theta,)}.items():
        yield (
            name,
            lambda count, *t, name=name: sum(
                pairs.sum_as_pair(pairs.exact_products(count, *t) if t else [count * 1.5])
            ),
            (x.own_codes, *arguments),
            (),
        )
    yield (
        "times_log",
        lambda count, t: sum(pairs.sum_as_pair(pairs.times_log(count, t))),
        (x.own_codes, theta + 1e-3),
        (),
    )
    yield (
        "times_log_psi",
        lambda count, t, m: sum(pairs.sum_as_pair(pairs.times_log_psi(count, t, m))),
        (x.own_codes, theta),
        (m,),
    )

    yield "sample_concentration", sampling.sample_concentration, (x.keys, x.a, x.b), (m,)

    def envelope(a, b):
        distances, slopes = jnp.stack([b, jnp.minimum(a, b)]), jnp.stack([1.0 + a, b])
        point = special.Fall(distances, jnp.ones_like(distances), slopes)
        return tuple(sampling.envelope_through(a, point))

    def of_exponential(key, a):
        a, zeros, ones = a.ravel(), jnp.zeros(a.size), jnp.ones(a.size)
        one = sampling.Envelope(zeros, zeros, zeros, 1.0 / a, zeros)
        return sampling.draw_in_envelope(key, one, a, ones, zeros)

    yield "envelope_through", envelope, (x.a, x.b), ()
    yield "draw_in_envelope", of_exponential, (x.keys, x.a), ()
    yield "sample_log_gamma", sampling.sample_log_gamma, (x.keys, x.a), ()
    for sampler in (random.uniform, random.normal):
        draw = partial(sampling.draw_together, sampler)
        yield "draw_together", lambda key, f=draw: f(key, (s.rows,), (), (2, 3)), (x.keys,), ()
    for number in (1, s.rows):
        keys = partial(loops.keys_of_loop, number=number)
        yield "keys_of_loop", lambda key, f=keys: random.key_data(f(key)), (x.keys,), ()
    yield "sample_uniform", lambda key: sampling.sample_uniform(key, (s.rows,)), (x.keys,), ()
    yield "sample_atom_counts", sampling.sample_atom_counts, (x.keys, theta, x.own_codes), ()
    yield "sample_truncated_geometric", sampling.sample_truncated_geometric, (x.keys, theta), (m,)
    yield (
        "slice_sample",
        lambda key, x: sampling.slice_sample(
            key, x, lambda x, d: -0.5 * d * (2.0 * x + d), 1.0, lower=-jnp.inf
        ),
        (x.keys, x.delta),
        (),
    )
    yield (
        "sample_tilted_stable",
        lambda key, x: stable.sample_tilted_stable(key, 0.4, x),
        (x.keys, theta[:, 0, 0]),
        (),
    )


def test_every_public_function_has_a_case():
    named = {name for name, *_ in cases(inputs_of(*QUICK))}
    assert named == set(functions_of(*MODULES)) - OF_THE_HOST


def each_shape(quick):
    marks = {name: [] if name in quick else [pytest.mark.slow] for name in SHAPES}
    return pytest.mark.parametrize("shape", [pytest.param(n, marks=m) for n, m in marks.items()])


@each_shape(QUICK)
def test_functions_compiled_as_op_by_op(shape):
    inputs, found = inputs_of(shape), {}
    names, forms = functions_of(*MODULES), None
    if shape in QUICK:  # sums over indices, which is where compilers have erred
        names, forms = functions_of(choices, codes, links, sums), ("vectorized",)
    for number, (name, function, batched, shared) in enumerate(cases(inputs)):
        # a step of a few codes in 10^7 is rounded by about a thousandth of it
        if name not in names or (name == "log_beta_tilde_change" and inputs.shape.count > 1):
            continue
        off = differences_between_forms(function, batched, shared, inputs.shape.chains, forms)
        found |= {f"{name}, case {number}, {form}": one for form, one in off.items()}
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["3"])
def test_functions_in_both_precisions(shape):
    """Where float32 is too coarse for its own formula: fewer digits than these agree."""
    inputs, found = Inputs(SHAPES[shape]), {}
    for number, (name, function, batched, shared) in enumerate(cases(inputs)):
        if name == "draw_together":
            continue  # random numbers of 64 bits are others
        batched, shared = jax.tree.map(jnp.asarray, (batched, shared))
        single = jax.vmap(lambda *own, f=function, s=shared: f(*own, *s))(*batched)
        with double_precision():
            own, data = as_doubles((batched, shared))
            double = jax.vmap(lambda *own, f=function, s=data: f(*own, *s))(*own)
        # numbers of a million rankings have seven digits before the point
        off = difference_of(double, single, rtol=2e-4, atol=2e-5)
        if off.site is not None:
            found[f"{name}, case {number}"] = off
    assert not found, sorted(found)


@pytest.mark.slow
@settings(max_examples=8)
@given(
    chains=st.integers(1, 5),
    rows=st.integers(1, 5),
    items=st.integers(2, 5),
    stages=st.integers(1, 5),
    clusters=st.integers(1, 5),
    equal=st.booleans(),
    count=st.sampled_from([1, 7, 10**6]),
)
def test_sums_of_any_shape(**shape):
    """The sums, where indices and accumulators may be taken for one another."""
    inputs = Inputs(Shape(**shape))
    for name, function, batched, shared in cases(inputs):
        if name in ("times_chosen", "times_in_play", "set_counts", "sum_by_label", "scatter_add"):
            found = differences_between_forms(
                function, batched, shared, inputs.shape.chains, ("one chain", "vectorized")
            )
            assert not found, name


# -- distributions ---------------------------------------------------------------------------------


def distributions(x):
    """Each distribution of the shape: a function of arrays of each chain, and these."""
    s, n = x.shape, x.shape.items
    stages = x.orderings.shape[1]
    weights, alpha = x.weights[:, 0, :-1] + 0.1, x.theta[:, 0, 0] + 0.5
    decay = np.exp(-np.abs(np.subtract.outer(np.arange(s.rows), np.arange(s.rows))))
    yield (
        "GeneralizedMallows",
        lambda c, t: rd.GeneralizedMallows(c, t),
        (x.centers[:, 0], x.theta[:, 0]),
    )
    yield (
        "MallowsConcentrationPrior",
        lambda a: rd.MallowsConcentrationPrior(a, 0.5, n, num_stages=min(stages, n - 1)),
        (alpha,),
    )
    yield "RandomPermutation", lambda _: rd.RandomPermutation(n), (alpha,)
    yield "TopTPlackettLuce", lambda w: rd.TopTPlackettLuce(jnp.log(w), stages), (weights,)
    yield (
        "TopTPlackettLuce",
        lambda w, a: rd.TopTPlackettLuce(jnp.log(w), stages, a),
        (weights, alpha),
    )
    yield (
        "PlackettLuceTies",
        lambda w, a: rd.PlackettLuceTies(jnp.log(w), jnp.log(a)[None]),
        (weights, alpha),
    )
    yield "ScaledDirichlet", lambda w, a: rd.ScaledDirichlet(a, w), (weights, alpha)
    yield (
        "ChineseRestaurantProcess",
        lambda a: rd.ChineseRestaurantProcess(a, s.rows, 0.3),
        (alpha,),
    )
    yield (
        "FiniteDirichletPartition",
        lambda a: rd.FiniteDirichletPartition(a, s.clusters, s.rows),
        (alpha,),
    )
    yield (
        "DistanceDependentCRP",
        lambda a: rd.DistanceDependentCRP(a, jnp.asarray(decay, float)),
        (alpha,),
    )
    yield "FlatLog", lambda _: rd.FlatLog(), (alpha,)


def test_every_distribution_has_a_case():
    named = {name for name, *_ in distributions(inputs_of(*QUICK))}
    classes = {name for name in rd.__all__ if isinstance(getattr(rd, name), type)}
    assert named == classes


@each_shape(())
def test_distributions_compiled_as_op_by_op(shape):
    inputs, found = Inputs(SHAPES[shape]), {}
    for number, (name, make, parameters) in enumerate(distributions(inputs)):

        def draw_and_score(key, *parameters, make=make):
            one = make(*parameters)
            value = jnp.ones(()) if isinstance(one, rd.FlatLog) else one.sample(key, (2,))
            return value, one.log_prob(value)

        off = differences_between_forms(
            draw_and_score, (inputs.keys, *parameters), (), inputs.shape.chains
        )
        found |= {f"{name}, case {number}, {form}": one for form, one in off.items()}
    assert not found


@each_shape(())
def test_partial_orders_compiled_as_op_by_op(shape):
    inputs, found = Inputs(SHAPES[shape]), {}
    rows = [[x for x in row if x >= 0] for row in inputs.orderings.tolist()]
    tied_in_twos = [[row[k : k + 2] for k in range(0, len(row), 2)] for row in rows]
    orders = PartialOrders.from_buckets(tied_in_twos, num_items=inputs.shape.items)
    for number, (name, make, parameters) in enumerate(distributions(inputs)):
        if name in ("GeneralizedMallows", "TopTPlackettLuce"):
            off = differences_between_forms(
                lambda *parameters, make=make: make(*parameters).log_prob(orders),
                parameters,
                (),
                inputs.shape.chains,
            )
            found |= {f"{name}, case {number}, {form}": one for form, one in off.items()}
    assert not found
