"""How long the programs of the sweeps are: the time that they take to compile grows with it."""

from contextlib import suppress

import jax
import pytest

from numpyro_rankings import PartialOrders, load_dataset
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    TemperedMixture,
)
from numpyro_rankings.infer.base import telling_of_state

THREE = {"num_components": 3}
NONE = {"num_marginal_steps": 0}
# Lines of StableHLO of a sweep of one chain on the bundled table, with the versions of
# constraints/; others may differ by a few percent. Lower a number when a program gets shorter.
LINES = {
    "SliceGibbs, sequential": (SliceGibbs, {}, 12_717),
    "SliceGibbs, parallel": (SliceGibbs, {"assignment": "parallel"}, 14_129),
    "BetaGibbs": (BetaGibbs, {}, 15_254),
    "PlackettLuceGibbs": (PlackettLuceGibbs, {"num_components": 26}, 7_900),
    "DPPlackettLuceGibbs": (DPPlackettLuceGibbs, {}, 13_807),
    "TemperedMixture": (TemperedMixture, {"family": "mallows", **THREE}, 5_295),
    "TemperedMixture, weights": (TemperedMixture, {"family": "plackett-luce", **THREE}, 4_437),
}
# The bundled table's rankings are partial orders, too.
LINES_OF_ORDERS = {
    "SliceGibbs": (SliceGibbs, THREE | NONE, 9_380),
    "PlackettLuceGibbs": (PlackettLuceGibbs, THREE | NONE, 4_554),
    "DPPlackettLuceGibbs": (DPPlackettLuceGibbs, NONE, 8_125),
}


class _Known(Exception):
    """Ends ``init`` when the shapes of the state are known."""


def shapes_of_state(kernel, rankings):
    found = []

    def told(state):
        found.append(state)
        raise _Known

    with telling_of_state(told), suppress(_Known):
        kernel.init(jax.random.key(0), 0, None, (rankings,), {})
    return found[0]


def length_of_sweep(kernel, data):
    sweep = jax.jit(lambda state: kernel.sample(state, (data,), {}))
    return len(sweep.lower(shapes_of_state(kernel, data)).as_text().splitlines())


@pytest.mark.parametrize("name", LINES)
def test_a_sweep_is_a_short_program(name):
    kind, settings, lines = LINES[name]
    assert length_of_sweep(kind(**settings), load_dataset("apa1980")) < 1.1 * lines


@pytest.mark.parametrize("name", LINES_OF_ORDERS)
def test_a_sweep_of_partial_orders_is_a_short_program(name):
    kind, settings, lines = LINES_OF_ORDERS[name]
    orders = PartialOrders.from_rankings(load_dataset("apa1980"))
    assert length_of_sweep(kind(**settings), orders) < 1.1 * lines
