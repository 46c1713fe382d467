"""Sweeps of every kernel: compiled, batched, traced, over devices and in float64, as op by op.

Enumeration tests show that an update is right as it is compiled for one shape. A compiler may err
for another: with as many chains as rankings, say (``test_xla.py``). So a sweep is compared
with itself, from the same state and key, on shapes that coincide; ``self_check`` says how a fault
is told from a decision that hangs on a last digit.
"""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.compiled import as_doubles, assert_agrees, double_precision
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import random

from numpyro_rankings import Rankings, check
from numpyro_rankings.cli.program import main
from numpyro_rankings.components import GaussianMean
from numpyro_rankings.infer import (
    BetaGibbs,
    CollapsedGibbs,
    DDCRPGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PermutationGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    SplitMerge,
    SubclusterGibbs,
    TemperedMixture,
    exponential_decay,
)
from numpyro_rankings.self_check import (
    choose_kernels,
    compare_sweeps,
    compiled_forms,
    difference_of,
)

GAMMA = dist.Gamma(2.0, 1.0)
GAUSS = GaussianMean(1.5, 0.6)


def lists_of(rows, items, stages, equal=False):
    rng = np.random.default_rng(rows + 10 * items + 100 * stages)
    one = rng.permutation(items)[:stages].tolist()
    if equal:
        return [one] * rows
    some = [rng.permutation(items)[: rng.integers(1, stages + 1)].tolist() for _ in range(rows)]
    return [one, *some[1:]]


LISTS = [[0, 1], [1, 0, 2], [2], [1, 2]]
# chains, slots, rankings
SHAPES = {
    "1": (1, 1, Rankings.from_orderings([[1, 0]], num_items=2)),
    "2": (2, 2, Rankings.from_orderings(lists_of(2, 2, 2), num_items=2)),
    "3": (3, 3, Rankings.from_orderings(lists_of(3, 3, 3), num_items=3)),
    "4": (4, 4, Rankings.from_orderings(lists_of(4, 4, 4), num_items=4)),
    "8": (8, 8, Rankings.from_orderings(lists_of(8, 8, 8), num_items=8)),
    "mixed": (3, 2, Rankings.from_orderings(lists_of(8, 4, 2), num_items=4)),
    "rows are chains": (4, 1, Rankings.from_orderings(LISTS, num_items=3)),
    "one row": (4, 2, Rankings.from_orderings([[1, 0]], num_items=3, counts=[4])),
    "two items": (4, 4, Rankings.from_orderings(lists_of(4, 2, 1), num_items=2)),
    "one stage": (3, 4, Rankings.from_orderings([[0], [1], [2]], num_items=3, counts=[2, 1, 1])),
    "all rows equal": (4, 4, Rankings.from_orderings(lists_of(4, 4, 3, True), num_items=4)),
    "subsets": (
        4,
        4,
        Rankings.from_orderings(
            [[0], [1, 0], [2], [2, 1]],
            num_items=3,
            choice_sets=np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 1, 1]], bool),
        ),
    ),
    "rows of a million": (
        2,
        2,
        Rankings.from_orderings(lists_of(2, 3, 2), num_items=3, counts=[10**6, 10**6]),
    ),
}
NONE = {"num_marginal_steps": 0}
CHEAP = {
    "plackett-luce": lambda _: PlackettLuceGibbs(),
    "gamma-process": lambda _: GammaProcessPlackettLuceGibbs(GAMMA),
    "generalised-gamma-process": lambda _: GammaProcessPlackettLuceGibbs(GAMMA, 1.0, 0.3),
    "plackett-luce-mixture": lambda slots: PlackettLuceGibbs(
        num_components=max(slots, 2), alpha=GAMMA, **NONE
    ),
}
# these compile for long, or go from ranking to ranking
COSTLY = {
    "slice": lambda slots: SliceGibbs(GAMMA, max_clusters=slots, **NONE),
    "slice-parallel": lambda slots: SliceGibbs(
        1.0, assignment="parallel", num_births=1, max_clusters=slots, num_marginal_steps=1
    ),
    "slice-one-population": lambda _: SliceGibbs(num_components=1),
    "beta": lambda slots: BetaGibbs(GAMMA, max_clusters=slots, **NONE),
    "dp-plackett-luce": lambda slots: DPPlackettLuceGibbs(
        GAMMA, GAMMA, GAMMA, max_clusters=slots, num_marginal_steps=1
    ),
    "tempered": lambda slots: TemperedMixture("mallows", slots, num_temperatures=2, num_steps=2),
    "tempered-plackett-luce": lambda slots: TemperedMixture(
        "plackett-luce", slots, num_temperatures=2, num_steps=2
    ),
}
QUICK = ("plackett-luce",)
SHAPES_OF_COSTLY = ("4", "mixed", "one row", "all rows equal")
POINTS = {
    "collapsed": lambda slots: CollapsedGibbs(GAUSS, GAMMA, max_clusters=slots),
    "batches": lambda slots: CollapsedGibbs(GAUSS, GAMMA, max_clusters=slots, batch_size=2),
    "split-merge": lambda slots: SplitMerge(GAUSS, GAMMA, num_moves=2, max_clusters=slots),
    "subclusters": lambda slots: SubclusterGibbs(
        GAUSS, GAMMA, num_scans=1, max_clusters=slots, init="one"
    ),
    "permutation": lambda slots: PermutationGibbs(GAUSS, GAMMA, max_clusters=slots),
    "ddcrp": lambda _: DDCRPGibbs(GAUSS, GAMMA, exponential_decay(GAMMA)),
}


def refuses(name, rankings):
    """Whether a kernel takes no choice sets, or goes through a million rankings one by one."""
    if rankings.choice_sets is not None:
        return "plackett-luce" not in name or "dp" in name
    return len(rankings) > 1000 and name != "plackett-luce" and "process" not in name


def pairs():
    for name in CHEAP | COSTLY:
        for shape, (_, _, rankings) in SHAPES.items():
            if (name in CHEAP or shape in SHAPES_OF_COSTLY) and not refuses(name, rankings):
                quick = shape == "rows are chains" and name in QUICK
                yield pytest.param(name, shape, marks=[] if quick else [pytest.mark.slow])


@lru_cache
def quick_kernel():
    """One for all quick tests, so that its initial states are compiled once."""
    return PlackettLuceGibbs()


@pytest.mark.parametrize(("name", "shape"), list(pairs()))
def test_sweeps_of_rankings(name, shape):
    chains, slots, rankings = SHAPES[shape]
    if name in QUICK and shape == "rows are chains":
        # the quick test has all forms, also those on four devices
        forms = tuple(compiled_forms(quick_kernel(), (rankings,), chains))
        assert {"one chain", "vectorized", "data traced", "parallel", "sharded"} == set(forms)
        assert_agrees(compare_sweeps(quick_kernel(), (rankings,), chains, most_plain=2))
        return
    if "process" in name or "dp" in name:  # traced data do not say which items are listed
        rankings = rankings.of_listed_items()
    forms = ("one chain", "vectorized", "data traced")
    kernel = (CHEAP | COSTLY)[name](slots)
    assert_agrees(compare_sweeps(kernel, (rankings,), chains, forms=forms, most_plain=2))


@pytest.mark.slow
@pytest.mark.parametrize("size", (2, 4, 8))
@pytest.mark.parametrize("name", POINTS)
def test_sweeps_of_points(name, size):
    points = np.random.default_rng(size).normal(size=(size, 1)).astype(np.float32)
    distances = (np.abs(points - points.T),) if name == "ddcrp" else ()
    forms = ("one chain", "vectorized", "data traced")
    kernel = POINTS[name](size)
    assert_agrees(compare_sweeps(kernel, (points, *distances), size, forms=forms, most_plain=2))


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP | COSTLY)
def test_sweeps_on_four_devices(name):
    """Chains on devices of their own, and rows of the data on several."""
    chains, slots, rankings = SHAPES["4"]
    forms = ("one chain", "parallel", "sharded")
    kernel = (CHEAP | COSTLY)[name](slots)
    assert set(forms) <= set(compiled_forms(kernel, (rankings,), chains))
    assert_agrees(compare_sweeps(kernel, (rankings,), chains, forms=forms, most_plain=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP | COSTLY)
def test_sweeps_in_float64(name):
    """With the same random numbers: single precision loses digits, and nothing else."""
    chains, slots, rankings = SHAPES["mixed"]
    chains = 64
    kernel = (CHEAP | COSTLY)[name](slots)
    states = kernel.init(random.split(random.key(3), chains), 0, None, (rankings,), {})
    single = jax.jit(lambda states: kernel.sample(states, (rankings,), {}))(states)
    with double_precision():
        kernel = (CHEAP | COSTLY)[name](slots)
        double = jax.jit(lambda states: kernel.sample(states, (rankings,), {}))(as_doubles(states))
        assert double.z["log_joint"].dtype == jnp.float64
        double = jax.device_get(double._replace(rng_key=None))
    single = jax.device_get(single._replace(rng_key=None))
    agree = [
        difference_of(
            *(jax.tree.map(lambda x, c=c: x[c], all_of) for all_of in (double, single)), 1e-3, 1e-4
        )
        for c in range(chains)
    ]
    # a decision of few chains may hang on the digits that float32 lacks: 0 of 256 at last count
    assert sum(one.site is not None for one in agree) <= 2, agree


@pytest.mark.slow
@settings(max_examples=5)
@given(
    name=st.sampled_from(sorted(CHEAP)),
    chains=st.integers(1, 5),
    rows=st.integers(1, 5),
    items=st.integers(2, 5),
    stages=st.integers(1, 5),
    slots=st.integers(1, 5),
    equal=st.booleans(),
)
def test_sweeps_of_any_shape(name, chains, rows, items, stages, slots, equal):
    lists = lists_of(rows, items, min(stages, items), equal)
    rankings = Rankings.from_orderings(lists, num_items=items)
    forms = ("one chain", "vectorized")
    kernel = CHEAP[name](slots)
    assert_agrees(compare_sweeps(kernel, (rankings,), chains, forms=forms, most_plain=1))


# -- faults that are put in ------------------------------------------------------------------------


def is_traced(x):
    return isinstance(x, jax.core.Tracer)


def wrong_axis(monkeypatch):
    """The chains of a batch mapped over the wrong axis of the weights."""
    sweep = PlackettLuceGibbs._sweep

    def sample(self, states, args, kwargs):
        if states.rng_key.ndim == 0:
            return sweep(self, states, args, kwargs)
        z = {name: 0 if x.ndim == 1 else 1 for name, x in states.z.items()}
        axes = type(states)(z, 0, 0, 0, 0)
        return jax.vmap(lambda one: sweep(self, one, args, kwargs), in_axes=(axes,))(states)

    monkeypatch.setattr(PlackettLuceGibbs, "sample", sample)


def dropped_mask(monkeypatch):
    """Stages with one item left, which say nothing, counted like the others."""
    from numpyro_rankings.infer.plackett_luce import data

    as_choices = data.as_choices

    def unmasked(*args):
        made = as_choices(*args)
        return made._replace(informative=made.orderings >= 0) if is_traced(made[1]) else made

    monkeypatch.setattr(data, "as_choices", unmasked)


def forgotten_entry(monkeypatch):
    """Sums of all but one of the entries."""
    from numpyro_rankings.ops import choices

    sum_by_label = choices.sum_by_label

    def without_the_last(values, labels, num_labels):
        if is_traced(values):
            values = values.at[-1].set(0)
        return sum_by_label(values, labels, num_labels)

    monkeypatch.setattr(choices, "sum_by_label", without_the_last)


# with as many items as the fault needs: as chains; one that a list ends with; too many to tabulate
FAULTS = {wrong_axis: 4, dropped_mask: 3, forgotten_entry: 13}


@pytest.mark.parametrize(
    "fault",
    [pytest.param(one, marks=[] if one is dropped_mask else [pytest.mark.slow]) for one in FAULTS],
)
def test_faults_of_the_compiled_form_are_found(fault, monkeypatch):
    rankings = Rankings.from_orderings(LISTS, num_items=FAULTS[fault])
    is_quick = rankings == SHAPES["rows are chains"][2]
    forms = ("one chain",) if is_quick else ("one chain", "vectorized")
    compare = partial(compare_sweeps, quick_kernel(), (rankings,), forms=forms, most_plain=1)
    if not is_quick:  # else a test above has found that they agree
        assert_agrees(compare())
    fault(monkeypatch)
    found = compare().differences
    assert found and {one.form for one in found} <= set(forms)


# -- what users run --------------------------------------------------------------------------------


@pytest.mark.slow
def test_check_says_who_disagrees(monkeypatch, capsys):
    assert main(["check", "--kernel", "PlackettLuceGibbs", "--kernel", "Nobody"]) == 2
    assert "the kernels are SliceGibbs, BetaGibbs" in capsys.readouterr().err
    name = "GammaProcessPlackettLuceGibbs"
    assert main(["check", "--kernel", name]) == 0
    shown = capsys.readouterr().out
    assert f"jaxlib: {jax.lib.__version__}" in shown and "x cpu" in shown
    assert f"{name}, sigma" in shown and "All of these kernels draw the same" in shown
    forgotten_entry(monkeypatch)
    assert main(["check", "--kernel", name]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "DISAGREES (one chain, vectorized" in shown
    assert f"Do not use draws of these kernels on this machine: {name}; {name}, sigma" in shown
    found = check([name])
    assert not found.agrees and str(found.kernels[0]) in str(found)


def test_what_cannot_be_compared_is_refused():
    kernel, (chains, _, rankings) = PlackettLuceGibbs(), SHAPES["2"]
    for odd, message in (
        ({"most_plain": 0}, "most_plain must be a positive whole number"),
        ({"num_sweeps": 0}, "num_sweeps must be a positive whole number"),
        ({"num_chains": 0}, "num_chains must be a positive whole number"),
        ({"forms": "vectorized"}, "forms must be some of"),
        ({"forms": ["backwards"]}, "forms must be some of"),
        ({"forms": []}, "too few devices for any of the forms"),
        ({"args": rankings}, "args must be a tuple"),
    ):
        given = {"args": (rankings,), "num_chains": chains} | odd
        with pytest.raises(ValueError, match=message):
            compare_sweeps(kernel, **given)
    with pytest.raises(ValueError, match="the kernels are SliceGibbs, BetaGibbs"):
        check(["nothing"])
    assert choose_kernels("BetaGibbs") == ["BetaGibbs"] and choose_kernels([]) == []
    assert len(choose_kernels(["SliceGibbs"])) == 3
    assert set(choose_kernels(None)) < set(choose_kernels(None, variants=True))


@pytest.mark.slow
def test_a_last_digit_is_no_fault():
    """Coarser data than float32: a nudge of the state finds the same draw, another key does not."""
    from numpyro_rankings import self_check

    kernel, rankings = PlackettLuceGibbs(num_components=2, **NONE), SHAPES["4"][2]
    state = kernel.init(random.key(0), 0, None, (rankings,), {})
    plain = self_check.sweep_plainly(kernel, state, (rankings,))
    assert self_check._agrees_after_a_nudge(kernel, state, (rankings,), plain)
    other = self_check.sweep_plainly(kernel, state._replace(rng_key=random.key(7)), (rankings,))
    assert not self_check._agrees_after_a_nudge(kernel, state, (rankings,), other)
