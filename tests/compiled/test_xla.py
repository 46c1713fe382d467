"""Programs that jaxlib compiles wrongly on CPUs, and how the package stays clear of them.

``docs/compiler_faults.rst`` has two of them, with scripts. The third:

**A gather whose indices are a transposed constant.** Seen in jaxlib 0.7.0 to 0.8.1 on x86-64, which
the package therefore does not allow; 0.8.2 is right::

    lists = jnp.array([[0, 1], [1, 0], [0, 0], [2, 0]])
    w = jnp.array([0.5, 0.3, 0.2])
    f = lambda w: w[lists.T[:, jnp.arange(4)]]
    f(w)            # [[.5 .3 .5 .2] [.3 .5 .5 .5]]
    jax.jit(f)(w)   # [[.5 .5 .3 .5] [.3 .2 .5 .5]]: the entries in the order of the untransposed
"""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC
from scipy.special import gammaln, softmax

from numpyro_rankings import Rankings
from numpyro_rankings._system import xla as _xla
from numpyro_rankings.components import DirichletMultinomial
from numpyro_rankings.infer import GammaProcessPlackettLuceGibbs, PlackettLuceGibbs
from numpyro_rankings.ops.special import log_gamma_ratio
from numpyro_rankings.ops.sums import count_by_label, scatter_add, sum_by_label

SCRIPT = """
import warnings
import jax.numpy as jnp
from numpyro_rankings import Rankings
from numpyro_rankings._system import xla as _xla
from numpyro_rankings.infer import PlackettLuceGibbs
import jax

x = jnp.full((100, 64, 3), 0.5)
sums = jax.jit(lambda x: (jnp.log1p(2.0 * x) + jnp.log1p(3.0 * x)).sum(-1))(x)
right = abs(float(sums[0, 0]) - 4.8283137) < 1e-3
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    lists = Rankings.from_orderings([[0, 1]], num_items=2)
    kernel = PlackettLuceGibbs()  # which warns while it is traced
    jax.eval_shape(lambda key: kernel.init(key, 0, None, (lists,), {}), jax.random.key(0))
told = any("wrong sums" in str(w.message) for w in caught)
assert right != told, (right, told)
print("right" if right else "told")
"""


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ("fused_constants", "scatter_in_place"))
def test_the_scripts_show_what_the_page_says(name):
    """With versions of which the page says nothing, either is right."""
    page = (DOCS / "compiler_faults.rst").read_text(encoding="utf-8")
    table = page[page.index(".. list-table::") : page.index("A constant is taken")]
    versions, *rows = (re.findall(r"- (\S.*)", row) for row in table.split("   * ")[1:])
    seen = next(row for row in rows if row[0] == f"``{name}.py``")
    told = dict(zip(versions[1:], seen[1:], strict=True)).get(jaxlib.__version__)
    done = subprocess.run(
        [sys.executable, str(DOCS / "compiler_faults" / f"{name}.py")],
        env={k: x for k, x in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    *shown, found = done.stdout.splitlines()
    assert done.returncode == (found == "WRONG"), done.stderr[-2000:]
    assert found in ("right", "WRONG")
    if told is not None and platform.machine() == "x86_64":
        assert found.lower() == told
    if jaxlib.__version__ == "0.10.2" and platform.machine() == "x86_64":
        assert "\n   ".join(shown[1:]) in page


def test_sums_over_large_arrays():
    x = np.random.default_rng(0).integers(0, 9, (100, 64, 3)).astype(np.float32)
    found = jax.jit(lambda x: log_gamma_ratio(2.1, x.sum(-1)).sum(-1))(x)
    expected = (gammaln(2.1 + x.sum(-1)) - gammaln(2.1)).sum(-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    family = DirichletMultinomial(0.7)
    rising = (gammaln(0.7 + x) - gammaln(0.7)).sum((1, 2))
    points = family.statistics(jnp.asarray(x.reshape(-1, 3)))
    found = jax.jit(lambda p: family.log_marginal(p).reshape(100, 64).sum(1))(points)
    np.testing.assert_allclose(found, rising - expected, rtol=1e-4)


def run(flags):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_the_flag_is_set_or_the_user_told():
    if "ynn" not in os.environ.get("XLA_FLAGS", ""):
        return  # a jaxlib that has no such flag
    assert run("") == "right"
    # a user's own setting stays, and where it leads to wrong sums that is told
    assert run("--xla_cpu_experimental_ynn_fusion_type=+reduce") in ("right", "told")


FLAG = "--xla_cpu_experimental_ynn_fusion_type=-reduce"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", FLAG),
        ("--xla_dump_to=d", f"{FLAG} --xla_dump_to=d"),
        # XLA reads no flag after a word that is none
        (" --xla_dump_to=d word --xla_x=1", f"{FLAG} --xla_dump_to=d word --xla_x=1"),
        ("--xla_cpu_experimental_ynn_fusion_type=dot", None),
        # the name of a file of flags, which XLA reads if there is nothing else
        ("flags.txt", None),
    ],
)
def test_the_flag_is_put_where_it_is_read(flags, expected, monkeypatch):
    monkeypatch.setattr(_xla, "version", lambda _: "0.10.2")
    monkeypatch.setenv("XLA_FLAGS", flags)
    _xla.set_flag()
    assert os.environ["XLA_FLAGS"] == (flags if expected is None else expected)
    monkeypatch.setattr(_xla, "version", lambda _: "0.13.0")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=d")
    _xla.set_flag()
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=d"


@pytest.mark.parametrize("chains", (1, 2, 3, 4, 8))
def test_sums_over_labels_that_the_compiler_knows(chains):
    """As many chains as entries, all of label 0."""
    labels = np.zeros(chains, np.int32)
    values = np.arange(chains**2, dtype=np.int32).reshape(chains, chains)

    def sums(values):
        table = jnp.zeros((chains, 2), jnp.int32)
        return (
            sum_by_label(values, labels, 1),
            sum_by_label(values[:, None], labels, 1)[:, 0],
            scatter_add(jnp.zeros(1, jnp.int32), labels, values),
            scatter_add(table, (labels, labels), values)[0, :1],
            count_by_label(labels, 1) * jnp.sum(values) // chains,
        )

    for found in jax.jit(jax.vmap(sums))(values):
        np.testing.assert_array_equal(found, values.sum(1, keepdims=True))
    assert sum_by_label(values[0].astype(np.int8), labels, 1).dtype == jnp.int8


def test_gather_of_a_transposed_constant():
    lists = np.array([[0, 1], [1, 0], [0, 0], [2, 0]])
    w = np.array([0.5, 0.3, 0.2], np.float32)
    found = jax.jit(lambda w: w[jnp.asarray(lists).T[:, jnp.arange(4)]])(w)
    np.testing.assert_array_equal(found, w[lists.T])


LISTS = [(0, 1), (1, 0), (0,), (2, 0)]


def expected_weights(of_pool):
    """Posterior means of the weights of three items, by the trapezoidal rule in their logits.

    :param of_pool: whether there is a fourth weight, that of a gamma process with α = 1; else the
        prior is Dirichlet(1, 1, 1).
    """
    logits = np.arange(-24.0, 24.0, 0.25)
    axes = np.meshgrid(*[logits] * (3 if of_pool else 2), indexing="ij")
    weights = softmax(np.stack([*axes, np.zeros_like(axes[0])]), axis=0)
    # the Jacobian is the product of all weights; the atoms of a gamma process have density 1/w
    density = weights[3] if of_pool else weights.prod(axis=0)
    for one in LISTS:
        left = np.ones_like(density)
        for item in one:
            density = density * weights[item] / left
            left = left - weights[item]
    return (weights[:3] * density).reshape(3, -1).sum(1) / density.sum()


@pytest.mark.parametrize(
    "kernel",
    [
        # of which a quick test in test_compiled_kernels.py compares sweeps with 4 chains on 4 lists
        pytest.param(PlackettLuceGibbs, marks=pytest.mark.slow),
        GammaProcessPlackettLuceGibbs,
    ],
)
def test_as_many_chains_as_rankings(kernel):
    """4 chains on 4 lists drew from another posterior, where 3 or 5 chains did not."""
    rankings = Rankings.from_orderings(LISTS, num_items=3)
    mcmc = MCMC(
        kernel(),
        num_warmup=50,
        num_samples=4000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), rankings)
    draws = np.asarray(mcmc.get_samples(group_by_chain=True)["weights"])
    expected = expected_weights(kernel is GammaProcessPlackettLuceGibbs)
    error = draws.std((0, 1)) / np.sqrt(effective_sample_size(draws))
    # 5 standard errors: a false alarm of 1e-6 for each of three items
    assert np.all(np.abs(draws.mean((0, 1)) - expected) < 5.0 * error), (
        draws.mean((0, 1)),
        expected,
    )
