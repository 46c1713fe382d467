"""Shared settings: what tests do must not depend on the machine, and compiled programs are kept."""

import os
import signal
import tempfile
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import jax
import numpyro  # noqa: F401 - before ArviZ 1.x, which would leave a lazy one in its place
import pytest
from hypothesis import HealthCheck, settings

import numpyro_rankings  # noqa: F401 - sets what XLA has to be told before it is used

pytest.register_assert_rewrite("helpers")

_cache = Path(os.environ.get("NUMPYRO_RANKINGS_TEST_CACHE", tempfile.gettempdir()))
_cache = _cache / "numpyro_rankings_test_cache"
jax.config.update("jax_compilation_cache_dir", str(_cache))
# the same for processes that tests start, which would else have the cache of the user
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(_cache)
# small programs too: they are most of them, and other files and workers compile the same ones
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
# for chains and rows of data on several devices, as tests/compiled/ has them
jax.config.update("jax_num_cpu_devices", 4)
jax.devices()  # from now on their number is fixed; commands would else have one for each core

# the same examples in each run, however long they take
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--part", metavar="K/N", help="of the tests the Kth of N parts, such as 1/3")
    parser.addoption("--seconds-of-files", action="store_true", help="how long each file took")


def pytest_terminal_summary(terminalreporter):
    """Print one line for each file, the longest first."""
    if not terminalreporter.config.getoption("--seconds-of-files"):
        return
    seconds, outcomes = Counter(), defaultdict(Counter)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            file = report.nodeid.partition("::")[0]
            seconds[file] += report.duration
            if report.when == "call" or report.outcome != "passed":
                outcomes[file][report.outcome] += 1
    terminalreporter.section("seconds of each file")
    for file, length in seconds.most_common():
        found = ", ".join(f"{count} {outcome}" for outcome, count in outcomes[file].items())
        terminalreporter.line(f"{length:8.1f} s  {file}: {found}")


def pytest_collection_modifyitems(config, items):
    """Keep one part of the tests.

    Those of one kernel, which share a run, stay together, and all of a file with IN_ONE_PART.
    """
    if not config.getoption("--part"):
        return
    part, parts = map(int, config.getoption("--part").split("/"))

    def is_in(item):
        name = item.callspec.id if hasattr(item, "callspec") else item.name
        if getattr(item.module, "IN_ONE_PART", False):
            name = ""
        return zlib.crc32(f"{item.path.name} {name}".encode()) % parts == part - 1

    config.hook.pytest_deselected(items=[item for item in items if not is_in(item)])
    items[:] = [item for item in items if is_in(item)]


# XLA compiles in two thirds of the time without most of its optimizations. The quick tests of the
# mathematics, of files, words and figures do without; those that compare compiled programs with the
# same steps op by op are of what users run, and so are all slow tests.
_OPTIMIZED = ("compiled",)

_IS_OFF, _NUM_SLOW = pytest.StashKey[bool](), pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Switch XLA's optimizations off and on, and let go of programs that are not needed again."""
    is_slow = item.get_closest_marker("slow") is not None
    # those of a slow test take 100 MB in the mean, and all slow tests would fill the memory
    num_slow = item.config.stash.get(_NUM_SLOW, 0) + is_slow
    item.config.stash[_NUM_SLOW] = num_slow
    if is_slow and num_slow % 8 == 0:
        jax.clear_caches()
    is_off = not is_slow and not _is_among(item, _OPTIMIZED)
    if item.config.stash.get(_IS_OFF, False) != is_off:
        jax.clear_caches()  # what other tests have compiled
        jax.config.update("jax_disable_most_optimizations", is_off)
        item.config.stash[_IS_OFF] = is_off
    return (yield)


def _set_usual_signals():
    """Set signals, also of new processes, as a terminal has them, if pytest was started without.

    A background job of a script ignores Ctrl-C, and ``nohup`` hang-ups.
    """
    usual = {signal.SIGINT: signal.default_int_handler}
    usual |= {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


usual_signals = pytest.fixture(_set_usual_signals, name="usual_signals")
usual_signals_of_module = pytest.fixture(
    _set_usual_signals, scope="module", name="usual_signals_of_module"
)


class Clock:
    """Stands still, but where a test steps it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def step(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture(scope="session", autouse=True)
def clock():
    """Runs and commands do the same on each machine: no time goes by, but what a test says.

    For the whole session, because fixtures of modules make runs too.
    """
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numpyro_rankings._system.clock.now", lambda: clock.seconds)
        yield clock


@pytest.fixture(autouse=True)
def _float32():
    """The library is written for JAX's default precision, and tested in it."""
    assert not jax.config.jax_enable_x64


# Where the code under test is this package's alone, JAX converts no types silently. It does
# elsewhere, for NumPyro's inference relies on it, and so do our products of counts and floats.
_STRICT_TYPES = (
    "ops",
    "components",
    "datasets/test_datasets.py",
    "distributions/test_ddcrp.py",
    "distributions/test_distributions.py",
    "test_partitions.py",
    "test_predictive_checks.py",
    "test_rankings.py",
)
# Nor does it add axes in ``ops``. NumPyro's distributions rely on that, and the rest of the package
# means it: (…, n) and (n,) broadcast.
_STRICT_RANKS = ("ops",)


def _is_among(item, paths):
    """Whether a test, or the request of its fixture, is in one of these files or folders."""
    path = item.path.relative_to(Path(__file__).parent)
    return any(path.is_relative_to(one) for one in paths)


@pytest.fixture(autouse=True)
def _strict_promotion(request):
    """Refuse silent conversions of types and ranks, but in tests marked ``loose``."""
    is_loose = request.node.get_closest_marker("loose") is not None
    types = "strict" if _is_among(request, _STRICT_TYPES) and not is_loose else "standard"
    ranks = "raise" if _is_among(request, _STRICT_RANKS) and not is_loose else "allow"
    with jax.numpy_dtype_promotion(types), jax.numpy_rank_promotion(ranks):
        yield


_MOST_MAPS = 30_000


def _num_maps() -> int:
    """Memory maps of this process, where the system tells."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps)
    except OSError:
        return 0


@pytest.fixture(autouse=True, scope="module")
def _release_programs():
    """Let go of compiled programs after each file."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _release_programs_in_time():
    """Also within a file: each program keeps a few dozen memory maps open.

    Linux allows a process 65,530, and beyond them it crashes.
    """
    yield
    if _num_maps() > _MOST_MAPS:
        jax.clear_caches()


@pytest.fixture(scope="module")
def programs():
    from helpers.shared_programs import shared_programs

    with shared_programs():
        yield
