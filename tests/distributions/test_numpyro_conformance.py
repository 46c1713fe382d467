"""NumPyro's own generic distribution tests, run on the distributions of this package.

They are in the source distribution of the installed NumPyro, ``test/test_distributions.py``:
from the unpacked folder that the environment variable ``NUMPYRO_SDIST`` names, or from the package
index, once, into pytest's cache. Each generic test is a function of one case, a class with its
parameters; here it gets our cases in place of NumPyro's table.
"""

import importlib.util
import inspect
import itertools
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro.distributions import Distribution
from numpyro.distributions.batch_util import vmap_over

import numpyro_rankings.distributions as rd
from numpyro_rankings.distributions.constraints import (
    _BucketOrder,
    _CanonicalLabels,
    _Permutation,
    _TopList,
)

pytestmark = pytest.mark.slow


# The generic tests hand over arrays by position, within and outside of their constraints, and
# static sizes have none: these wrappers fix them.
class ConcentrationPriorOfFive(rd.MallowsConcentrationPrior):
    def __init__(self, nu, r, *, validate_args=None):
        super().__init__(nu, r, num_items=5, validate_args=validate_args)


class RestaurantOfSix(rd.ChineseRestaurantProcess):
    def __init__(self, concentration, discount=0.0, *, validate_args=None):
        super().__init__(concentration, 6, discount, validate_args=validate_args)


class DirichletPartitionOfSix(rd.FiniteDirichletPartition):
    def __init__(self, concentration, *, validate_args=None):
        super().__init__(concentration, 3, 6, validate_args=validate_args)


class TopTwoPlackettLuce(rd.TopTPlackettLuce):
    def __init__(self, log_weights, log_unseen_weight=None, *, validate_args=None):
        super().__init__(log_weights, 2, log_unseen_weight, validate_args=validate_args)

    @staticmethod
    def infer_shapes(log_weights, log_unseen_weight=None):
        return rd.TopTPlackettLuce.infer_shapes(log_weights, 2, log_unseen_weight)


@vmap_over.register
def _(dist: TopTwoPlackettLuce, log_weights=None, log_unseen_weight=None):
    return vmap_over.dispatch(Distribution)(
        dist, log_weights=log_weights, log_unseen_weight=log_unseen_weight
    )


@vmap_over.register
def _(dist: ConcentrationPriorOfFive, nu=None, r=None):
    return vmap_over.dispatch(Distribution)(dist, nu=nu, r=r)


CENTER = np.array([2, 0, 3, 1])
CENTERS = np.array([[2, 0, 3, 1], [0, 1, 2, 3]])
CASES = {
    "mallows-kendall": (rd.GeneralizedMallows, CENTER, 0.7),
    "mallows-top": (rd.GeneralizedMallows, CENTER, np.array([1.2, 0.4])),
    "mallows-batch": (rd.GeneralizedMallows, CENTERS, np.array([[1.2, 0.4, 0.1], [0.3, 2.0, 1.0]])),
    "prior": (ConcentrationPriorOfFive, 2.0, 0.5),
    "prior-batch": (ConcentrationPriorOfFive, np.array([[1.0], [3.0]]), np.array([0.5, 1.0])),
    "permutation": (rd.RandomPermutation, 5),
    "crp-discount": (RestaurantOfSix, np.array([1.5, 0.3]), 0.4),
    "plackett-luce": (TopTwoPlackettLuce, np.array([0.5, -1.0, 0.2, 0.0])),
    "plackett-luce-unseen": (
        TopTwoPlackettLuce,
        np.array([[0.5, -1.0, 0.2], [0.0, 0.1, 0.7]]),
        np.array([-0.5, 1.0]),
    ),
    "plackett-luce-ties": (rd.PlackettLuceTies, np.array([0.5, -1.0, 0.2]), np.array([-0.5])),
    "plackett-luce-ties-batch": (
        rd.PlackettLuceTies,
        np.array([[0.5, -1.0, 0.2, 0.0], [0.0, 0.1, 0.7, -0.3]]),
        np.array([[-0.5, -2.0], [0.3, 0.1]]),
    ),
    "scaled-dirichlet": (
        rd.ScaledDirichlet,
        np.array([[0.7, 1.5, 2.0], [1.0, 1.0, 3.0]]),
        np.array([0.5, -1.0, 0.2]),
    ),
    "ddcrp": (
        rd.DistanceDependentCRP,
        0.7,
        np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 2.0], [0.3, 1.5, 1.0]]),
    ),
    "dirichlet-partition-batch": (DirichletPartitionOfSix, np.array([0.5, 3.0])),
}
GENERIC_TESTS = [
    "test_args_attributes",
    "test_dist_pytree",
    "test_dist_shape",
    "test_distribution_constraints",
    "test_entropy_samples",
    "test_expand",
    "test_has_rsample",
    "test_independent_shape",
    "test_infer_shapes",
    "test_jit_log_likelihood",
    "test_log_prob_gradient",
    "test_output_is_array",
    "test_vmap_dist",
]
# A number of items is static, and so cannot be an argument of a jitted function; and it is checked
# without validation too, as NumPyro does with `num_steps`, which the second test leaves out.
NOT_APPLICABLE = {
    ("test_jit_log_likelihood", "permutation"),
    ("test_distribution_constraints", "permutation"),
}
CASE_ARGUMENTS = {"jax_dist", "jax_dist_cls", "sp_dist", "params"}
IN_ONE_PART = True  # the last test sees what the others did
passed_on: dict[tuple[str, str], int] = {}


def find_source(cache_folder: Path) -> Path:
    """The sdist's test module, downloaded unless it is there already."""
    name = f"numpyro-{numpyro.__version__}"
    given = os.environ.get("NUMPYRO_SDIST")
    root = Path(given) if given else cache_folder / name
    source = root / "test" / "test_distributions.py"
    if not source.exists() and not given:
        requirement = f"numpyro=={numpyro.__version__}"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
        command += ["--dest", str(cache_folder), requirement]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            pytest.skip(f"downloading the source of {name} took too long")
        archive = cache_folder / f"{name}.tar.gz"
        if not archive.exists():
            reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
            pytest.skip(f"no source of {name}: {' '.join(reason)}; or set NUMPYRO_SDIST")
        with tarfile.open(archive) as tar:
            tar.extractall(cache_folder, filter="data")
    if not source.exists():
        pytest.fail(f"{source} does not exist")
    return source


@pytest.fixture(scope="module")
def generic(request):
    """NumPyro's test module, told how to make values within and outside of our constraints."""
    source = find_source(request.config.cache.mkdir("numpyro_sdist"))
    spec = importlib.util.spec_from_file_location("numpyro_test_distributions", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    within, outside = module.gen_values_within_bounds, module.gen_values_outside_bounds
    ours = (_Permutation, _TopList, _CanonicalLabels, _BucketOrder)

    def within_bounds(constraint, size, key=None):
        if isinstance(constraint, ours):
            return constraint.feasible_like(jnp.zeros(size, int))
        return within(constraint, size, key)

    def outside_bounds(constraint, size, key=None):
        if isinstance(constraint, ours):
            return jnp.full(size, 1)
        return outside(constraint, size, key)

    module.gen_values_within_bounds = within_bounds
    module.gen_values_outside_bounds = outside_bounds
    return module


def other_parameters(test) -> list[dict]:
    """Every combination of what a generic test is parametrised by besides the case."""
    axes = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = [name.strip() for name in mark.args[0].split(",")]
            if not CASE_ARGUMENTS & set(names):
                assert len(names) == 1
                axes.append([(names[0], value) for value in mark.args[1]])
    return [dict(choice) for choice in itertools.product(*axes)]


@pytest.mark.parametrize(
    "name, case",
    [pair for pair in itertools.product(GENERIC_TESTS, CASES) if pair not in NOT_APPLICABLE],
)
def test_generic(generic, name, case, request):
    distribution, *params = CASES[case]
    test = getattr(generic, name)
    arguments = inspect.signature(test).parameters
    given = {
        "jax_dist": distribution,
        "jax_dist_cls": distribution,
        "sp_dist": None,
        "params": tuple(params),
        "request": request,
    }
    passed, reasons = 0, set()
    for others in other_parameters(test):
        values = {**given, **others}
        try:
            test(**{argument: values[argument] for argument in arguments})
            passed += 1
        except pytest.skip.Exception as skip:
            reasons.add(str(skip))
    passed_on[name, case] = passed
    if not passed:
        pytest.skip("; ".join(sorted(reasons)))


def test_each_of_them_ran(generic):
    """None was skipped on all cases. Last in the file, so that it sees what the others did."""
    if len(passed_on) < len(GENERIC_TESTS) * len(CASES) - len(NOT_APPLICABLE):
        pytest.skip("only some of the tests before this one were selected, or one failed")
    for name in GENERIC_TESTS:
        assert sum(passed_on.get((name, case), 0) for case in CASES) > 0, name
