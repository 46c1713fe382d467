"""Check on the user's machine that compiled sweeps draw the same as sweeps executed op by op.

The tests prove that the updates are exact as they are written. The draws, however, come from the
program that a compiler makes of them for one backend and one shape, and compilers have errors:
jaxlib 0.10.2 drew from a wrong posterior if there were as many chains as rankings. Here every
kernel makes a sweep op by op, and compiled in the forms in which users run it, from the same state
and key, on data with as many rankings as chains.

The results agree if discrete sites are equal and the others are equal up to rounding. The last
digit of a number can decide a label or the acceptance of a step, so that results differ although
nothing is wrong. To tell this from a fault, the last digits are changed: a compiled sweep agrees if
the plain sweep draws the same from a state whose numbers differ by a few units in the last place.
"""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings.components import DirichletMultinomial, GaussianMean
from numpyro_rankings.infer import (
    BetaGibbs,
    CollapsedGibbs,
    DDCRPGibbs,
    DDCRPLanguageGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PermutationGibbs,
    PlackettLuceGibbs,
    PlackettLuceRegressionGibbs,
    SliceGibbs,
    SplitMerge,
    SubclusterGibbs,
    TemperedMixture,
    exponential_decay,
    window_decay,
)
from numpyro_rankings.infer.base import log_joint_of
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.rankings import Rankings

__all__ = [
    "Comparison",
    "Difference",
    "KernelCheck",
    "SelfCheck",
    "check",
    "compare_sweeps",
    "compiled_forms",
]

RTOL, ATOL = 1e-4, 1e-6  # rounding of a few hundred operations in single precision
_NUDGE = 2.0**-21  # relative change of numbers: a few units in the last place
_MOST_NUDGES = 16
_FORMS = ("one chain", "vectorized", "data traced", "parallel", "sharded")
_FORMS_OF_CHECK = ("one chain", "vectorized", "parallel", "sharded")


class Difference(NamedTuple):
    """A difference between a compiled sweep and the plain one.

    - **form** - how the sweep was compiled, a name of :func:`compiled_forms`.
    - **chain** - the number of the chain.
    - **site** - the first site that differs.
    - **expected**, **found** - the values of the site, op by op and compiled.
    """

    form: str
    chain: int
    site: str
    expected: np.ndarray
    found: np.ndarray


class Comparison(NamedTuple):
    """The result of comparing sweeps of one kernel.

    - **differences** - the faults, at most one for each chain and form.
    - **num_compared** - the number of sweeps compared.
    - **num_nudged** - how many of them agree only after the last digits were changed.
    - **largest** - the largest difference between sweeps that agree, as a share of the tolerance.
    """

    differences: list[Difference]
    num_compared: int
    num_nudged: int
    largest: float


# -- one kernel ------------------------------------------------------------------------------------


def sweep_plainly(kernel: MCMCKernel, state: Any, args: tuple) -> Any:
    """Make one sweep of one chain op by op, on a CPU if JAX has one."""
    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        device = jax.local_devices()[0]
    state, args = jax.device_put((state, args), device)
    with jax.disable_jit(), jax.default_device(device):
        return kernel.sample(state, args, {})


def compiled_forms(kernel: MCMCKernel, args: tuple, num_chains: int) -> dict[str, Callable]:
    """Return functions that make a sweep of a batch of chains, compiled as users can run them.

    - ``"one chain"`` - one chain after the other; the data are constants of the program.
    - ``"vectorized"`` - all chains in one program; the data are constants.
    - ``"data traced"`` - all chains; the data are arguments of the program, as with
      ``jit_model_args=True``.
    - ``"parallel"`` - each chain on a device of its own, if there are enough devices.
    - ``"sharded"`` - all chains, with the rows of the data distributed over several devices.
    """
    devices = jax.local_devices()
    one = jax.jit(lambda state: kernel.sample(state, args, {}))
    traced = jax.jit(lambda states, args: kernel.sample(states, args, {}))

    def one_by_one(states: Any) -> Any:
        return _stacked([one(_chain(states, c)) for c in range(num_chains)])

    def sharded(states: Any) -> Any:
        mesh = jax.sharding.Mesh(np.array(devices[:num_shards]), ("rows",))
        return traced(states, jax.tree.map(lambda x: _over_rows(x, mesh), args))

    forms: dict[str, Callable] = {
        "one chain": one_by_one,
        "vectorized": jax.jit(lambda states: kernel.sample(states, args, {})),
        "data traced": lambda states: traced(states, args),
    }
    if 1 < num_chains <= len(devices):
        forms["parallel"] = jax.pmap(
            lambda state: kernel.sample(state, args, {}), devices=devices[:num_chains]
        )
    num_shards = max((k for k in (2, 4, 8) if k <= len(devices)), default=1)
    if num_shards > 1:
        forms["sharded"] = sharded
    return forms


def _over_rows(x: Any, mesh: jax.sharding.Mesh) -> Any:
    """Distribute the first axis of an array over the devices, or copy the array to each of them."""
    splits = np.ndim(x) > 0 and np.shape(x)[0] % mesh.size == 0
    spec = jax.sharding.PartitionSpec("rows") if splits else jax.sharding.PartitionSpec()
    return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))


# Batches are taken apart and put together by NumPy: JAX would compile a program for each array.


def _chain(states: Any, c: int) -> Any:
    return jax.tree.map(lambda x: x[c] if _is_key(x) else jnp.asarray(np.asarray(x)[c]), states)


def _stacked(states: Sequence[Any]) -> Any:
    def stack(*leaves: Array) -> Array:
        return jnp.stack(leaves) if _is_key(leaves[0]) else jnp.asarray(np.stack(leaves))

    return jax.tree.map(stack, *states)


def _is_key(x: Any) -> bool:
    return isinstance(x, Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def compare_sweeps(
    kernel: MCMCKernel,
    args: tuple,
    num_chains: int = 4,
    *,
    key: Array | None = None,
    num_sweeps: int = 1,
    forms: Sequence[str] | None = None,
    most_plain: int | None = None,
) -> Comparison:
    """Compare compiled sweeps of a kernel with sweeps executed op by op.

    :param kernel: a kernel of this package.
    :param args: the arguments of ``mcmc.run`` after the key; data so small that a sweep can be
        executed op by op.
    :param num_chains: the number of chains.
    :param key: a JAX random key, for the initial states.
    :param num_sweeps: the number of sweeps; each starts where the plain one ended.
    :param forms: names of :func:`compiled_forms`; by default all. Forms for which there are not
        enough devices are left out.
    :param most_plain: the number of chains whose sweeps are executed op by op; by default all. The
        other chains are compared with the form ``"one chain"``.
    """
    for name, number in (("num_chains", num_chains), ("num_sweeps", num_sweeps)):
        check_whole(name, number)
    num_plain = num_chains if most_plain is None else most_plain
    check_whole("most_plain", num_plain)
    num_plain = min(num_plain, num_chains)
    if isinstance(args, Rankings) or not isinstance(args, tuple):
        raise ValueError("args must be a tuple, such as (rankings,)")
    if isinstance(forms, str) or set(forms or ()) - set(_FORMS):
        raise ValueError(f"forms must be some of {_FORMS}, got {forms!r}")
    compiled = compiled_forms(kernel, args, num_chains)
    needed = {"one chain"} if num_plain < num_chains else set()
    wanted = set(compiled if forms is None else forms)
    compiled = {name: sweep for name, sweep in compiled.items() if name in wanted | needed}
    if not compiled:
        raise ValueError(f"there are too few devices for any of the forms {forms!r}")
    keys = random.split(random.key(0) if key is None else key, num_chains)
    # one warm-up sweep, because some kernels have orderings that only the warm-up uses
    states = kernel.init(keys, 1, None, args, {})
    differences: list[Difference] = []
    compared, nudged, largest = 0, 0, 0.0
    for _ in range(num_sweeps):
        expected = [
            jax.tree.map(_whole, sweep_plainly(kernel, _chain(states, c), args))
            for c in range(num_plain)
        ]
        drawn = {form: jax.tree.map(_whole, sweep(states)) for form, sweep in compiled.items()}
        expected += [_chain(drawn["one chain"], c) for c in range(num_plain, num_chains)]
        for form, batch in drawn.items():
            # the form "one chain" is not compared with itself
            for c, plain in enumerate(expected[:num_plain] if form == "one chain" else expected):
                mine = _chain(batch, c)
                difference = difference_of(plain, mine)
                compared += 1
                if difference.site is None:
                    largest = max(largest, difference.share)
                elif _agrees_after_a_nudge(kernel, _chain(states, c), args, mine):
                    nudged += 1
                else:
                    values = difference.expected, difference.found
                    differences.append(Difference(form, c, difference.site, *values))
        if differences:
            break
        states = _stacked(expected)
    return Comparison(differences, compared, nudged, largest)


def _whole(x: Array) -> Array:
    """Move an array from any devices to the first one."""
    return jax.device_put(x, jax.local_devices()[0])


class SiteDifference(NamedTuple):
    """The first site of two states that differs, or None if all agree.

    **share** is its difference as a share of the tolerance; if all agree, the largest of them.
    """

    site: str | None
    share: float
    expected: Any = None
    found: Any = None


def difference_of(
    expected: Any, found: Any, rtol: float = RTOL, atol: float = ATOL
) -> SiteDifference:
    """Compare two states, or any other two trees of arrays, leaf by leaf.

    Floats agree if they differ by at most ``atol + rtol * |expected|``. Everything else must be
    equal.
    """
    expected, found = _with_whole_log_joint(expected), _with_whole_log_joint(found)
    share = 0.0
    leaves, _ = jax.tree_util.tree_flatten_with_path(expected)
    for (path, x), y in zip(leaves, jax.tree.leaves(found), strict=True):
        x, y = _numbers(x), _numbers(y)
        site = jax.tree_util.keystr(path, simple=True, separator=".").removeprefix("z.")
        if x.shape != y.shape or x.dtype.kind != y.dtype.kind:
            return SiteDifference(site, np.inf, x, y)
        if x.dtype.kind != "f":
            if not np.array_equal(x, y):
                return SiteDifference(site, np.inf, x, y)
            continue
        with np.errstate(invalid="ignore"):
            off = np.abs(x - y) / (atol + rtol * np.abs(x))
        off = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, off)
        worst = float(np.max(off, initial=0.0))
        if not worst <= 1.0:
            return SiteDifference(site, worst, x, y)
        share = max(share, worst)
    return SiteDifference(None, share)


def _with_whole_log_joint(state: Any) -> Any:
    """Add up the log joint and its remainder, because rounding can divide them differently."""
    z = getattr(state, "z", None)
    if not isinstance(z, Mapping) or "log_joint_rest" not in z:
        return state
    others = {name: x for name, x in z.items() if name != "log_joint_rest"}
    return state._replace(z={**others, "log_joint": log_joint_of(z)})


def _numbers(x: Any) -> np.ndarray:
    if _is_key(x):
        x = random.key_data(x)
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def _agrees_after_a_nudge(kernel: MCMCKernel, state: Any, args: tuple, found: Any) -> bool:
    """Return whether the plain sweep draws the same after its last digits are changed."""

    def nudge(x: Any, rng: np.random.Generator) -> Any:
        if not (hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)):
            return x
        return x * (1.0 + _NUDGE * rng.integers(-1, 2, np.shape(x))).astype(x.dtype)

    for seed in range(_MOST_NUDGES):
        rng = np.random.default_rng(seed)
        nudged = jax.tree.map(lambda x: nudge(x, rng), state)  # noqa: B023
        data = jax.tree.map(lambda x: nudge(x, rng), args)  # noqa: B023
        plain = sweep_plainly(kernel, nudged, data)
        if difference_of(plain, found).site is None:
            return True
    return False


# -- all kernels -----------------------------------------------------------------------------------

_LISTS = [[0, 1], [1, 0], [0], [2, 0]]
_GAMMA = dist.Gamma(2.0, 1.0)
_LINE = np.array([[-1.0], [-0.7], [0.9], [1.1]], np.float32)
_COUNTS = np.array([[2, 0, 1], [3, 1, 0], [0, 2, 2], [0, 3, 1]])
_SYMBOLS = np.array([0, 1, 0, 1])
_APART = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))).astype(np.float32)


def _cases() -> dict[str, tuple[Callable[[], MCMCKernel], tuple]]:
    """Return each kernel on four rankings or points: a constructor, and arguments of the run."""
    rankings = (Rankings.from_orderings(_LISTS, num_items=3),)
    gauss, text = GaussianMean(prior_scale=1.5, noise_scale=0.6), DirichletMultinomial(0.7)
    back = np.where(np.tri(4, dtype=bool), _APART, np.inf).astype(np.float32)
    # The moves with the labels integrated out take longest, so one variant of each family has them.
    few: dict[str, Any] = {"num_marginal_steps": 1}
    none: dict[str, Any] = {"max_clusters": 4, "num_marginal_steps": 0}
    ladder = {"num_temperatures": 2, "num_steps": 2}
    return {
        "SliceGibbs": (lambda: SliceGibbs(_GAMMA, **none), rankings),
        "SliceGibbs, parallel": (
            lambda: SliceGibbs(1.0, assignment="parallel", num_births=1, max_clusters=4, **few),
            rankings,
        ),
        "SliceGibbs, one population": (lambda: SliceGibbs(num_components=1), rankings),
        "BetaGibbs": (lambda: BetaGibbs(1.0, **none), rankings),
        "PlackettLuceGibbs": (lambda: PlackettLuceGibbs(), rankings),
        "PlackettLuceGibbs, mixture": (
            lambda: PlackettLuceGibbs(num_components=2, alpha=_GAMMA, **few),
            rankings,
        ),
        "PlackettLuceRegressionGibbs": (
            lambda: PlackettLuceRegressionGibbs(_GAMMA),
            (*rankings, _LINE[:3]),
        ),
        "GammaProcessPlackettLuceGibbs": (
            lambda: GammaProcessPlackettLuceGibbs(_GAMMA),
            rankings,
        ),
        "GammaProcessPlackettLuceGibbs, sigma": (
            lambda: GammaProcessPlackettLuceGibbs(_GAMMA, 1.0, 0.3),
            rankings,
        ),
        "DPPlackettLuceGibbs": (
            lambda: DPPlackettLuceGibbs(_GAMMA, _GAMMA, _GAMMA, **none),
            rankings,
        ),
        "TemperedMixture": (lambda: TemperedMixture("mallows", 2, **ladder), rankings),
        "TemperedMixture, plackett-luce": (
            lambda: TemperedMixture("plackett-luce", 2, **ladder),
            rankings,
        ),
        "CollapsedGibbs": (lambda: CollapsedGibbs(gauss, _GAMMA), (_LINE,)),
        "SplitMerge": (lambda: SplitMerge(text, 1.0, num_moves=2), (_COUNTS,)),
        "SubclusterGibbs": (lambda: SubclusterGibbs(gauss, _GAMMA, num_scans=1), (_LINE,)),
        "PermutationGibbs": (lambda: PermutationGibbs(gauss, _GAMMA), (_LINE,)),
        "DDCRPGibbs": (
            lambda: DDCRPGibbs(gauss, _GAMMA, exponential_decay(_GAMMA)),
            (_LINE, _APART),
        ),
        "DDCRPLanguageGibbs": (
            lambda: DDCRPLanguageGibbs([0.4, 0.6], _GAMMA, window_decay(2.0)),
            (_SYMBOLS, back),
        ),
    }


class KernelCheck(NamedTuple):
    """The **name** of a kernel, and the result of the **comparison** of its sweeps."""

    name: str
    comparison: Comparison

    @property
    def agrees(self) -> bool:
        """Whether all compiled sweeps draw the same as the plain ones."""
        return not self.comparison.differences

    def __str__(self) -> str:
        comparison = self.comparison
        if self.agrees:
            text = f"agrees in {comparison.num_compared} sweeps"
            if comparison.num_nudged:
                text += f", {comparison.num_nudged} of them up to the last digits"
            return f"{self.name:38s} {text}"
        forms = ", ".join(dict.fromkeys(one.form for one in comparison.differences))
        first = comparison.differences[0]
        return (
            f"{self.name:38s} DISAGREES ({forms})\n    {first.site} of chain {first.chain}: "
            f"{_shown(first.expected)} op by op, {_shown(first.found)} compiled"
        )


def _shown(x: np.ndarray) -> str:
    return np.array2string(x, precision=4, threshold=8, edgeitems=3).replace("\n", "")


class SelfCheck(NamedTuple):
    """The result of :func:`numpyro_rankings.check`.

    - **machine** - versions and devices, by name.
    - **kernels** - a :class:`KernelCheck` for each kernel.
    """

    machine: Mapping[str, str]
    kernels: Sequence[KernelCheck]

    @property
    def agrees(self) -> bool:
        """Whether all kernels agree."""
        return all(one.agrees for one in self.kernels)

    def __str__(self) -> str:
        lines = [f"{name}: {value}" for name, value in self.machine.items()]
        return "\n".join([*lines, "", *map(str, self.kernels), "", self.advice])

    @property
    def advice(self) -> str:
        """What the result means for the user, in a few sentences."""
        if self.agrees:
            return "All of these kernels draw the same when compiled as when executed op by op."
        names = "; ".join(one.name for one in self.kernels if not one.agrees)
        return (
            f"Do not use draws of these kernels on this machine: {names}. This version of JAX "
            "compiles them incorrectly for this device. Install another version of jaxlib (on "
            "CPUs, 0.8.2, 0.10.2 and 0.12.0 agree) or use another device (JAX_PLATFORMS=cpu), and "
            "run the check again. Please report the lines above to the developers."
        )


def machine() -> dict[str, str]:
    """Return versions and devices, by name."""
    devices = jax.local_devices()
    kinds = sorted({device.device_kind for device in devices})
    packages = ("numpyro-rankings", "numpyro", "jax", "jaxlib", "numpy")
    return {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "device": f"{len(devices)} x {jax.default_backend()} ({', '.join(kinds)})",
        "platform": f"{platform.system()} {platform.machine()}",
    }


def kernel_names(variants: bool = False) -> list[str]:
    """Return the kernels that :func:`check` knows, with variants such as "SliceGibbs, parallel"."""
    return [name for name in _cases() if variants or "," not in name]


def choose_kernels(kernels: Sequence[str] | None, variants: bool = False) -> list[str]:
    """Return the named kernels, each with its variants, or by default all."""
    names = kernel_names(variants)
    if kernels is None:
        return names
    known = kernel_names()
    for kernel in [kernels] if isinstance(kernels, str) else kernels:
        if kernel not in known:
            raise ValueError(f"there is no kernel {kernel!r}; the kernels are {', '.join(known)}")
    return [name for name in kernel_names(True) if name.split(",")[0] in kernels]


def check_kernels(names: Sequence[str]) -> Iterator[KernelCheck]:
    """Check the kernels named by :func:`choose_kernels`, and yield each result."""
    cases = _cases()
    for name in names:
        make_kernel, args = cases[name]
        yield KernelCheck(
            name, compare_sweeps(make_kernel(), args, forms=_FORMS_OF_CHECK, most_plain=1)
        )


def check(kernels: Sequence[str] | None = None, variants: bool = False) -> SelfCheck:
    """Check that JAX compiles the kernels correctly on this device.

    Each kernel makes one sweep of four chains on four rankings or points, compiled in each form in
    which it can be run. The sweep of the first chain is compared with the same sweep executed op by
    op, from the same state and key; those of the other chains are compared between the compiled
    forms. The command ``numpyro-rankings check`` does the same, and keeps the compiled programs for
    the next time; from Python, set ``jax_compilation_cache_dir`` for this.

    :param kernels: names of classes, each of which is checked with its variants; by default all,
        without variants.
    :param variants: whether to check the variants too, such as
        ``SliceGibbs(assignment="parallel")``; takes twice as long.
    :return: a :class:`~numpyro_rankings.self_check.SelfCheck`. Its ``agrees`` says whether all
        kernels agree; as a string it is a report.

    .. doctest::

       >>> from numpyro_rankings import check
       >>> check(["SplitMerge"]).agrees
       True
    """
    return SelfCheck(machine(), list(check_kernels(choose_kernels(kernels, variants))))
