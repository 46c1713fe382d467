"""Whether two kernels on their data are the same run: what counts is what they compute.

Each case is a program, a change of it, and what is said of it, or None if the run is the same.
"""

import json
import logging
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import jax
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.no_warnings import no_warnings
from helpers.toy_kernel import DATA, Autoregressive, change_root
from jax import random

from numpyro_rankings import Run, StoreError, open_run
from numpyro_rankings.run.fingerprint import describe
from numpyro_rankings.run.same_run import check_same, differences

BEGIN = """
import enum, functools
import jax, jax.numpy as jnp, numpy as np, numpyro, numpyro.distributions as dist, pandas as pd
from jax import random
from numpyro import handlers
from numpyro.infer import *
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.reparam import LocScaleReparam

args, kwargs, start = (), {}, None
"""
# all parts of a model that may be changed, as a user writes them
MODEL = """
Y = np.array([0.3, -1.0, 2.0])
import settings
TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0], "who": ["a", "b", "c"]})
SCALE = 2.0
RATES = [1.0, 2.0]
PRIORS = {"rate": 3.0}
UNUSED = 1

class Prior:
    wide = 5.0
    def __init__(self):
        self._narrow = 0.5
PRIOR = Prior()

def inner(x):
    return x * 2.0

def link(x):
    return inner(x) + 1.0

def model():
    "A model."
    mu = numpyro.sample("mu", dist.Normal(0, SCALE))
    tau = numpyro.sample("tau", dist.Gamma(RATES[0], PRIORS["rate"]))
    wide = numpyro.sample("wide", dist.Normal(0, Prior.wide))
    narrow = numpyro.sample("narrow", dist.Normal(0, PRIOR._narrow))
    far = numpyro.sample("far", dist.Normal(0, settings.FAR))
    total = numpyro.deterministic("total", mu + tau)
    slope = numpyro.sample("slope", dist.Uniform(-1, 1))
    with numpyro.plate("rows", 3):
        loc = link(mu) + slope * jnp.asarray(TABLE["x"].values)
        numpyro.sample("y", dist.Normal(loc, tau), obs=Y)

kernel = NUTS(model)
"""
GLOBALS = [
    ("data", "2.0])", "2.5])", "the data of site y differ"),
    ("a table", "2.0, 3.0]", "2.0, 4.0]", "the log density of site y differs"),
    ("a number", "SCALE = 2.0", "SCALE = 3.0", "the log density of site mu differs"),
    ("a list", "RATES = [1.0", "RATES = [1.5", "the log density of site tau differs"),
    ("a dictionary", '"rate": 3.0', '"rate": 4.0', "the log density of site tau differs"),
    ("an attribute", "wide = 5.0", "wide = 6.0", "the log density of site wide differs"),
    ("a private one", "_narrow = 0.5", "_narrow = 0.6", "the log density of site narrow differs"),
    ("a function", "+ 1.0", "+ 1.5", "the log density of site y differs"),
    ("one within it", "x * 2.0", "x * 2.5", "the log density of site y differs"),
    ("another module", "import settings", "import other as settings", "the log .* of site far "),
]
SITES = [
    (
        "a new site",
        "    slope",
        '    numpyro.sample("new", dist.Normal())\n    slope',
        "new is new",
    ),
    (
        "a site less",
        '    far = numpyro.sample("far", dist.Normal(0, settings.FAR))',
        "",
        "far is miss",
    ),
    ("a name", '"slope"', '"steep"', "site slope is missing; site steep is new"),
    ("a shape", "Normal(0, SCALE)", "Normal(0, SCALE).expand([1])", r"mu: shape was .* \(1,\)$"),
    ("a support", "dist.Gamma(", "dist.Beta(", "tau: support was Positive, is UnitInterval"),
    (
        "a bound",
        "Uniform(-1, 1)",
        "Uniform(-1, 2)",
        r"support was Interval \(.*1\), is Interval \(.*2\)",
    ),
    ("an observed site", "Prior.wide)", "Prior.wide), obs=1.0", "wide was latent, is observed"),
    ("a latent site", ", obs=Y", "", "site y was observed, is latent"),
    ("a value", "mu + tau", "mu - tau", "the value of site total differs"),
    ("a factor", "    slope", '    numpyro.factor("f", -(mu**2))\n    slope', "site f is new"),
    ("a plate", "    with", "    with numpyro.plate('a', 2, dim=-2), ", "log density of site y"),
    ("a density", "dist.Normal(loc, tau)", "dist.Laplace(loc, tau)", "the log density of site y "),
]
HANDLERS = [
    (name, "NUTS(model)", f"NUTS(handlers.{call})", words)
    for name, call, words in [
        ("condition", 'condition(model, data={"mu": 1.0})', "site mu was latent, is observed"),
        ("substitute", 'substitute(model, data={"mu": 1.0})', "the value of site mu differs"),
        ("reparam", 'reparam(model, config={"mu": LocScaleReparam(0)})', "mu_decentered is new"),
        ("scale", "scale(model, scale=2.0)", "the scale of site mu differs"),
        ("mask", "mask(model, mask=False)", "the mask of site mu differs"),
        ("scope", 'scope(model, prefix="a")', "site a/mu is new"),
        ("do", 'do(model, data={"mu": 1.0})', "the log density of site y differs"),
        ("block", 'block(model, hide=["total"])', "site total is missing"),
    ]
]
SAME = [
    ("a docstring", "A model.", "The model of the paper.", None),
    ("no docstring", '    "A model."\n', "", None),
    ("a comment", "    slope", "    # of the line\n    slope", None),
    ("a local name", "loc", "place", None),
    ("the name of the model", "model", "eight_schools", None),
    ("the name of a function", "link", "connect", None),
    ("a function that is compiled", "def link", "@jax.jit\ndef link", None),
    ("a function in its place", "link(mu)", "(mu * 2.0 + 1.0)", None),
    ("a lambda", "NUTS(model)", "NUTS(lambda: model())", None),
    ("a partial", "NUTS(model)", "NUTS(functools.partial(model))", None),
    ("a handler that does nothing", "NUTS(model)", "NUTS(handlers.block(model, hide=[]))", None),
    ("a global that is not used", "UNUSED = 1", "UNUSED = 2", None),
    ("an array of JAX", "obs=Y", "obs=jnp.asarray(Y)", None),
    ("the order of operations", "mu + tau", "(tau, mu)[1] + tau", None),
    ("a constant by another name", "SCALE)", "RATES[1])", None),
]
# what a model or a potential energy refers to in a closure: each value is another model
CLOSURE = """
ZEROS = jnp.zeros(2)
Y = np.array([0.3, -1.0, 2.0])
class Side(enum.Enum):
    LEFT = -1.0
    RIGHT = 1.0
class Holder:
    def __init__(self, x):
        self._x = x
def make(value):
    def model():
        x = numpyro.sample("x", CODE)
        numpyro.sample("y", dist.Normal(jnp.sum(x), 1.0), obs=Y.sum())
    return model
kernel = NUTS(make(VALUE))
"""
NORMAL, MIXTURE = "dist.Normal()", "dist.MixtureSameFamily(dist.Categorical(jnp.ones(2) / 2), "
MOVED = "dist.TransformedDistribution(dist.Normal(), dist.transforms.AffineTransform"
IMPROPER, LARGE = "dist.ImproperUniform(dist.constraints.", "np.zeros((999, 9))"
CLOSURES = [
    ("expand", "value", f"{NORMAL}.expand([2])", f"{NORMAL}.expand([3])", "x: shape was"),
    ("to_event", "value", f"{NORMAL}.expand([2]).to_event()", f"{NORMAL}.expand([2])", "x: supp"),
    ("mask", "value", f"{NORMAL}.mask(True)", f"{NORMAL}.mask(False)", "the mask of site x"),
    ("scale", "value", NORMAL, "dist.Normal(0, 2)", "the log density of site x"),
    (
        "bound",
        "value",
        "dist.TruncatedNormal(low=0)",
        "dist.TruncatedNormal(low=1)",
        "x: support was",
    ),
    ("truncated", "value", "dist.TruncatedCauchy(0)", "dist.TruncatedCauchy(1)", "log density"),
    ("transformed", "value", f"{MOVED}(0, 1))", f"{MOVED}(0, 2))", "the log density of site x"),
    ("mixture", "value", f"{MIXTURE}dist.Normal(ZEROS))", f"{MIXTURE}dist.Laplace(ZEROS))", "x"),
    ("LKJ size", "value", "dist.LKJCholesky(2)", "dist.LKJCholesky(3)", "site x: shape was"),
    (
        "LKJ",
        "value",
        "dist.LKJCholesky(2)",
        "dist.LKJCholesky(2, 2.0)",
        "the log density of site x",
    ),
    ("improper", "value", f"{IMPROPER}real, (), ())", f"{IMPROPER}positive, (), ())", "x: supp"),
    ("table", "value.a[1]", "pd.DataFrame({'a': [1, 2]})", "pd.DataFrame({'a': [1, 3]})", "site x"),
    ("range", "value[-1]", "range(3)", "range(4)", "the log density of site x differs"),
    ("enum", "value.value", "Side.LEFT", "Side.RIGHT", "the log density of site x differs"),
    ("slice", "Y[value].sum()", "slice(0, 2)", "slice(1, 3)", "the log density of site x differs"),
    ("complex number", "abs(value)", "1 + 1j", "1 + 2j", "the log density of site x differs"),
    ("private attribute", "value._x", "Holder(1)", "Holder(2)", "the log density of site x"),
    ("word", "len(value)", "'a'", "'ab'", "the log density of site x differs"),
    ("set", "sum(value)", "{1, 2}", "{1, 3}", "the log density of site x differs"),
    ("large array", "value[1, 1]", LARGE, f"{LARGE} + np.eye(999, 9)", "the log density of site x"),
    ("function", "value(1.0)", "jnp.sin", "jnp.cos", "the log density of site x differs"),
    ("equal sets", "sum(value)", "{1, 2, 3}", "{3, 2, 1}", None),
    ("equal functions", "value(1.0)", "lambda x: x", "lambda z: z", None),
    ("equal slices", "Y[value].sum()", "slice(0, 2)", "slice(0, 2, 1)", None),
]
ARGUMENT = """
Y = np.array([0.3, -1.0, 2.0])
def model(value):
    x = numpyro.sample("x", dist.Normal())
    numpyro.sample("y", dist.Normal(x, 1.0), obs=CODE)
class Side(enum.Enum):
    LEFT = -1.0
    RIGHT = 1.0
class Holder:
    def __init__(self, x):
        self._x = x
kernel, args = NUTS(model), (VALUE,)
"""
ARGUMENTS = [
    ("array", "value", "Y", "Y + 1", "the data of argument 1 differ"),
    ("shape", "value", "Y", "Y[:2]", r"argument 1 was .*\(3,\), is .*\(2,\)"),
    ("number", "value", "1.0", "2.0", r"argument 1 was 1\.0, is 2\.0"),
    ("word", "len(value)", "'a'", "'b'", "argument 1 was 'a', is 'b'"),
    (
        "enum",
        "value.value",
        "Side.LEFT",
        "Side.RIGHT",
        r"argument 1 was Side\.LEFT, is Side\.RIGHT",
    ),
    ("dictionary", "value['a']", "{'a': 1.0, 'b': Y}", "{'a': 1.0, 'b': -Y}", "argument 1 was"),
    ("table", "value.a.values", "pd.DataFrame({'a': Y})", "pd.DataFrame({'a': -Y})", "argument 1"),
    ("distribution", "value.mean", "dist.Normal(1.0)", "dist.Normal(2.0)", "argument 1 was Normal"),
    ("set", "sum(value)", "{1, 2}", "{1, 3}", r"argument 1 was \(1, 2\), is \(1, 3\)"),
    ("function", "value(2.0)", "lambda x: x", "lambda x: x + 1", "the data of site y differ"),
    ("object", "value._x", "Holder(1.0)", "Holder(2.0)", "the data of site y differ"),
    ("equal function", "value(2.0)", "lambda x: x", "lambda y: y", None),
    ("equal object", "value._x", "Holder(1.0)", "Holder(1.0)", None),
    ("equal set", "len(value)", "{'x', 'y', 'z'}", "{'z', 'y', 'x'}", None),
    ("equal table", "value.a.values", "pd.DataFrame({'a': Y})", "pd.DataFrame({'a': Y})", None),
    ("array of JAX", "value", "jnp.asarray(Y)", "np.asarray(jnp.asarray(Y))", None),
]
# settings of kernels, and what they compute besides the model
KERNEL = """
Y = np.array([0.3, -1.0, 2.0])
ADDED, RHO, STEP = 1.0, 0.5, 1.0
class Walk(MCMCKernel):
    sample_field = "z"
    def __init__(self, width, potential_fn):
        self._width, self.potential_fn = width, potential_fn
    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        return self
    def sample(self, state, model_args, model_kwargs):
        "Stay."
        moved = state + self._width * STEP
        return moved
def smooth():
    x = numpyro.sample("x", dist.Normal().expand([2]))
def mixed():
    x = numpyro.sample("x", dist.Normal())
    c = numpyro.sample("c", dist.Bernoulli(0.5))
    numpyro.sample("y", dist.Normal(x + c, 1.0), obs=0.3)
def pair():
    x = numpyro.sample("x", dist.Normal())
    numpyro.sample("y", dist.Normal(x, 1.0))
def rows():
    x = numpyro.sample("x", dist.Normal())
    with numpyro.plate("rows", 3, subsample_size=2):
        numpyro.sample("y", dist.Normal(x, 1.0), obs=numpyro.subsample(jnp.asarray(Y), 0))
def potential(z):
    return jnp.sum(z**2) + ADDED
def draw(rng_key, gibbs_sites, hmc_sites):
    new = dist.Normal(hmc_sites["x"] * RHO, 0.5)
    return {"y": new.sample(rng_key)}
kernel, start = VALUE, np.zeros((4, 3))
"""
AT = "NUTS(smooth, init_strategy=init_to_value(values={'x': "
PROXY = "HMCECS(NUTS(rows), proxy=HMCECS.taylor_proxy({'x': "
MOVE = "AIES(smooth, moves={AIES.StretchMove("
BLOCKS = "Gibbs([(DiscreteGibbs(mixed), ['c']), (NUTS(mixed), None)])"
WALK, HMCGIBBS = "Walk(1.0, potential)", "HMCGibbs(NUTS(pair), draw, ['y'])"
KERNELS = [
    ("setting", "NUTS(smooth)", "NUTS(smooth, max_tree_depth=5)", "max_tree_depth was 10, is 5"),
    ("step size", "HMC(smooth)", "HMC(smooth, step_size=0.1)", r"step_size was 1\.0, is 0\.1"),
    ("class", "NUTS(smooth)", "HMC(smooth)", "class was numpyro.infer.hmc.NUTS, is .*hmc.HMC"),
    ("strategy", "NUTS(smooth)", "NUTS(smooth, init_strategy=init_to_mean())", "init_strategy"),
    ("start", f"{AT}1.0}}))", f"{AT}2.0}}))", "init_strategy"),
    ("moves", "AIES(smooth)", f"{MOVE}2.0): 1.0}})", "moves"),
    ("move", f"{MOVE}2.0): 1.0}})", f"{MOVE}3.0): 1.0}})", "moves"),
    ("sites", BLOCKS, BLOCKS.replace("None", "['x']"), "blocks"),
    ("block", BLOCKS, BLOCKS.replace("NUTS", "HMC"), "blocks"),
    ("updates", "DiscreteHMCGibbs(NUTS(mixed))", "DiscreteHMCGibbs(HMC(mixed))", "inner_kernel"),
    (
        "subsamples",
        "HMCECS(NUTS(rows))",
        "HMCECS(NUTS(rows), num_blocks=2)",
        "num_blocks was 1, is",
    ),
    ("proxy", f"{PROXY}1.0}}))", f"{PROXY}2.0}}))", "proxy"),
    ("own setting", WALK, "Walk(2.0, potential)", r"width was 1\.0, is 2\.0"),
]
POTENTIAL = "NUTS(potential_fn=potential)"
PARTS = [
    ("potential", POTENTIAL, "z**2", "z**2 / 2", "the potential energy of the model differs"),
    ("its constant", POTENTIAL, "= 1.0, 0.5", "= 2.0, 0.5", "the potential energy of the model"),
    (
        "own potential",
        WALK,
        "= 1.0, 0.5",
        "= 2.0, 0.5",
        "the potential energy of the model differs",
    ),
    ("own code", WALK, "state + self", "state - self", "code is not the same"),
    ("own constant", WALK, "0.5, 1.0", "0.5, 2.0", "code is not the same"),
    ("own docstring", WALK, "Stay.", "Go.", None),
    ("own local name", WALK, "moved", "gone", None),
    ("update", HMCGIBBS, "* RHO", "/ RHO", "the update of site y differs"),
    ("its constant", HMCGIBBS, "1.0, 0.5", "1.0, 0.6", "the update of site y differs"),
    ("its local name", HMCGIBBS, "new", "next_one", None),
]
USED = [
    *("NUTS(smooth)", "HMC(smooth)", "SA(smooth)", "BarkerMH(smooth)", "AIES(smooth)"),
    *("ESS(smooth)", "AIES(smooth, moves={AIES.DEMove(g0=0.5): 1.0})", HMCGIBBS, BLOCKS),
    *("NUTS(potential_fn=potential)", "DiscreteHMCGibbs(NUTS(mixed))", "MixedHMC(HMC(mixed))"),
    *("Gibbs([(DiscreteHMCGibbs(NUTS(mixed)), None)])", "HMCECS(NUTS(rows))"),
    pytest.param(f"{PROXY}1.0}}))", marks=pytest.mark.slow),
]


def program(text, code="", value=""):
    return text.replace("CODE", code).replace("VALUE", value)


def change(text, before, after):
    assert before in text
    return text.replace(before, after)


def of_values(text, kind, cases, wrapped=str):
    for name, code, one, other, words in cases:
        programs = [program(text, wrapped(code), value) for value in (one, other)]
        yield pytest.param(*programs, words, id=f"{kind}: {name}")


def as_location(code):
    return code if code == "value" else f"dist.Normal({code}, 1)"


def of_changes(kind, cases):
    for i, (name, text, before, after, words) in enumerate(cases):
        yield pytest.param(text, change(text, before, after), words, id=f"{kind}: {name} {i}")


CASES = [
    *of_changes("global", [(name, MODEL, *rest) for name, *rest in GLOBALS]),
    *of_changes("site", [(name, MODEL, *rest) for name, *rest in SITES]),
    *of_changes("handler", [(name, MODEL, *rest) for name, *rest in HANDLERS]),
    *of_changes("same", [(name, MODEL, *rest) for name, *rest in SAME]),
    *of_values(CLOSURE, "closure", CLOSURES, as_location),
    *of_values(ARGUMENT, "argument", ARGUMENTS),
    *of_values(KERNEL, "kernel", [(name, "", *rest) for name, *rest in KERNELS]),
    *of_changes("part", [(name, program(KERNEL, "", x), *rest) for name, x, *rest in PARTS]),
]


def run_program(text):
    """Return the names of a program, as those of a module of the user's."""
    for name, far in {"settings": 2.0, "other": 3.0}.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].FAR = far
    module = types.ModuleType("mine")
    exec(BEGIN + text, vars(module))
    return module


def describe_program(text):
    mine = run_program(text)
    found = describe(mine.kernel, mine.args, mine.kwargs, None, mine.start)
    return json.loads(json.dumps(found))


@pytest.mark.parametrize(("one", "other", "words"), CASES)
def test_what_is_refused_and_what_is_not(one, other, words):
    found = "; ".join(differences(describe_program(one), describe_program(other)))
    assert not found if words is None else re.search(words, found), found


def test_the_table_is_whole():
    assert len(CASES) + len(USED) > 61


@pytest.mark.parametrize("kernel", USED)
def test_a_kernel_that_was_used_before(kernel):
    """What its first run has taught it is no setting."""
    mine = run_program(program(KERNEL, "", kernel))
    start = mine.start if "potential" in kernel else None
    before = describe(mine.kernel, (), {}, None, start)
    keys = random.split(random.key(0), 4)
    one = None if start is None else start[0]
    mine.kernel.init(keys if mine.kernel.is_ensemble_kernel else keys[0], 5, one, (), {})
    assert describe(mine.kernel, (), {}, None, start) == before


OTHER_PROCESS = """
import sys; sys.path.insert(0, {tests!r})
import json
from run.test_fingerprint import *
print(json.dumps([describe_program(case.values[1]) for case in CASES]))
"""


def test_it_is_the_same_in_another_process():
    """Where addresses and the order of sets are others."""
    code = OTHER_PROCESS.format(tests=str(Path(__file__).parent.parent))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
    )
    for case, found in zip(CASES, json.loads(done.stdout), strict=True):
        assert found == describe_program(case.values[1]), case.id


def test_nothing_is_compiled(caplog):
    mine = run_program(MODEL)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        describe(mine.kernel, (), {}, None)
        assert not [x for x in caplog.records if "ompil" in x.getMessage()]
        jax.jit(lambda x: x + 7.25)(1.0)
        assert [x for x in caplog.records if "ompil" in x.getMessage()]


NEEDS_VALUES = """
def model(x, rows):
    mu = numpyro.sample("mu", dist.Normal(0, 2.0 if x.sum() > 0 else 1.0))
    numpyro.sample("y", dist.Normal(mu, 1.0).expand([int(rows[0])]))
kernel, args = NUTS(model), (np.array([1.0]), np.array([VALUE]))
"""
NOT_TRACED = """
def halved(x):
    return x / 2
def model():
    "A model."
    loc = float(numpyro.sample("mu", dist.Normal()))
    numpyro.sample("y", dist.Normal(halved(loc), 1.0), obs=VALUE)
kernel = NUTS(model)
"""


def test_models_that_are_hard_to_trace():
    """Some need the values of their arguments; others are compared by their code."""
    one, other = (describe_program(program(NEEDS_VALUES, "", x)) for x in "23")
    assert one["model"]["y"]["shape"] == "float32 (2,)"
    assert differences(one, other) == ["the data of argument 2 differ"]
    text = program(NOT_TRACED, "", "1.0")
    one = describe_program(text)
    assert list(one["model"]) == [""]
    for before, after in {"A model.": "The model.", "loc": "place"}.items():
        assert not differences(one, describe_program(change(text, before, after)))
    other = describe_program(change(text, "x / 2", "x / 3"))
    assert differences(one, other) == ["the model: code is not the same"]


def test_other_versions_may_compute_otherwise(tmp_path):
    """Of a model whose code is the same that does not count, of another it is refused."""
    one = describe_program(MODEL)
    computed = json.loads(json.dumps(one))
    computed["versions"]["jax"] = "0.1"
    computed["model"]["mu"]["log density"] = "of JAX 0.1"
    with pytest.warns(UserWarning, match=r"jax was 0\.1"):
        assert check_same(tmp_path, computed, one) == []
    other = describe_program(change(MODEL, "SCALE = 2.0", "SCALE = 3.0"))
    match = r"density of site mu differs; which may be due to other versions \(jax was 0\.1, is"
    with pytest.raises(StoreError, match=match):
        check_same(tmp_path, computed, other)
    computed["model"]["mu"]["shape"] = "float32 (2,)"
    with pytest.raises(StoreError, match=r"site mu: shape was float32 \(2,\), is float32 \(\)"):
        check_same(tmp_path, computed, one)


def test_another_precision():
    one = describe_program(MODEL)
    with jax.enable_x64(True):
        other = describe_program(MODEL)
    assert differences(one, other) == ["jax_enable_x64 was False, is True"]


class OfModel(Autoregressive):
    """A kernel that has a model, and compiles at once."""

    def __init__(self, model):
        super().__init__()
        self._model = model

    @property
    def model(self):
        return self._model


def normal(data):
    mu = numpyro.sample("mu", dist.Normal())
    numpyro.sample("y", dist.Normal(mu, 1.0), obs=data)


def student(data):
    mu = numpyro.sample("mu", dist.StudentT(3.0))
    numpyro.sample("y", dist.Normal(mu, 1.0), obs=data)


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "a.run"
    run = Run(OfModel(normal), DATA, key=random.key(1), num_warmup=0, burn_in=0.0, store=path)
    run.extend(5)
    run.close()
    return path


def resumed(path, model, **settings):
    return Run.resume(path, OfModel(model), DATA, burn_in=0.0, **settings)


def test_a_changed_model_is_refused_or_noted(stored):
    refused = r"site mu differs; Run\.resume\(…, check=False\) goes on$"
    with pytest.raises(StoreError, match=refused):
        resumed(stored, student)
    with pytest.warns(UserWarning, match="the log density of site mu differs; it goes on"):
        resumed(stored, student, check=False).close()
    with no_warnings():  # it has no further draws
        resumed(stored, normal).close()
    with pytest.warns(UserWarning, match="site mu differs") as warned:
        run = resumed(stored, student, check=False)
    assert __file__ in [warning.filename for warning in warned]
    run.extend(20)
    (change,) = run.changes
    assert change.startswith("From draw 6 of each chain on, the run is one of other data, another")
    assert change.endswith("the log density of site mu differs.")
    assert change in run.verdict.reasons and run.verdict.level != "good"
    assert run.to_inference_data().posterior.attrs["changes"] == [change]
    run.close()
    opened = open_run(stored, burn_in=0.0)
    assert opened.changes == [change] and opened.verdict == run.verdict
    assert opened.to_inference_data().posterior.attrs["changes"] == [change]
    with pytest.raises(StoreError, match=refused):
        resumed(stored, normal)
    with pytest.warns(UserWarning, match="From draw 6 of each chain on"):
        again = resumed(stored, student)
    again.extend(5)
    assert again.num_draws == 30 and again.changes == run.changes
    again.close()


def test_damaged_changes(stored):
    damaged = {"changes": [{"num_draws": "x"}]}
    change_root(stored, lambda root: root["attributes"]["run"].update(damaged))
    with pytest.raises(StoreError, match="the changes of the run are damaged"):
        resumed(stored, normal)


def test_a_run_whose_changes_cannot_be_stored(stored, monkeypatch):
    """It goes on where it was, when it can."""
    with pytest.warns(UserWarning, match="it goes on"):
        run = resumed(stored, student, check=False)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
        with pytest.raises(StoreError, match=r"cannot write to .*: No space"):
            run.extend(5)
    assert run.num_draws == 5
    run.extend(5)
    run.close()
    with pytest.warns(UserWarning, match="From draw 6"):
        resumed(stored, student).close()
