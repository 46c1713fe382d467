"""Values, objects and functions in words that are the same in every process."""

import contextlib
import dis
import enum
import functools
import hashlib
import inspect
import sys
import sysconfig
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
from numpyro.infer import AIES, ESS, CustomGibbs, HMCGibbs, MixedHMC
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.run.convert import is_key

# of a kernel, described by what they compute, or compiled while it runs
_NO_SETTINGS = {"_model", "model", "_potential_fn", "potential_fn", "_init_jit"}
_HAS_CONST, _HAS_NAME = frozenset(dis.hasconst), frozenset(dis.hasname)
_MISSING = object()
_PACKAGE = "numpyro_rankings"
# also where they are not among the other packages
_PACKAGES = {_PACKAGE, "jax", "jaxlib", "numpy", "numpyro", "pandas", "scipy"}
_PACKAGES |= sys.stdlib_module_names
_FOLDERS = {Path(sysconfig.get_paths()[name]) for name in ("purelib", "platlib")}


def is_array(x: Any) -> bool:
    """Whether it is an array of numbers or of random keys."""
    return isinstance(x, np.ndarray | np.generic | jax.Array) and x.dtype != object


def digest_of_array(x: Any) -> str:
    """Return a hash of the content of an array."""
    array = np.asarray(jax.random.key_data(x) if is_key(x) else x)
    found = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    found.update(_bytes_of(array))
    return found.hexdigest()


def _bytes_of(array: np.ndarray) -> memoryview:
    """Return the bytes of an array, without a copy if they lie side by side."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def digest_of_tree(value: Any) -> str:
    """Return words for a pytree of arrays, with a hash of its leaves and structure."""
    leaves, structure = jax.tree.flatten(value)
    arrays = [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in leaves]
    found = hashlib.sha256(str(structure).encode())
    for array in arrays:
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(_bytes_of(array))
    name = type(value).__name__
    if isinstance(value, np.ndarray | jax.Array):  # kernels take those of NumPy and JAX alike
        name = f"Array of {arrays[0].dtype}"
    shape = f" of shape {arrays[0].shape}" if len(arrays) == 1 else ""
    return f"{name}{shape}, content {found.hexdigest()[:16]}"


def content_of(text: str) -> str:
    """Return a hash of a text, in words."""
    return f"content {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def settings_of_kernel(kernel: MCMCKernel) -> dict[str, Any]:
    """Return what was given to the constructor of a kernel, by name, but for its model.

    What a kernel learns when it starts is no setting.
    """
    if isinstance(kernel, GibbsKernel):  # they keep nothing else
        return _attributes_of(kernel)
    found: dict[str, Any] = {}
    for name in inspect.signature(type(kernel)).parameters:
        of_name = [x for x in (f"_{name}", name) if x in vars(kernel)] or [name]
        found[name] = getattr(kernel, of_name[0], _MISSING)
    if isinstance(kernel, AIES | ESS):
        found["moves"] = [*map(_move, kernel._moves)], kernel._weights
    if isinstance(kernel, MixedHMC):  # its first run replaces None by the number of sites
        sizes = getattr(kernel, "_support_sizes_flat", None)
        if sizes is not None and kernel._num_discrete_updates == len(sizes):
            found["num_discrete_updates"] = None
    if isinstance(kernel, CustomGibbs | HMCGibbs):
        del found["gibbs_fn"]  # described by what it computes
    if any(x is _MISSING for x in found.values()):
        return _attributes_of(kernel)
    return {name: x for name, x in found.items() if name not in _NO_SETTINGS}


def _attributes_of(kernel: MCMCKernel) -> dict[str, Any]:
    """Return the attributes of a kernel."""
    # what is compiled while a kernel runs is left out of its pickle, and of this
    found = dict(kernel.__getstate__())
    for x in list(found.values()):
        found |= x._asdict() if hasattr(x, "_asdict") else {}
    return {
        name.lstrip("_"): x
        for name, x in found.items()
        if not hasattr(x, "_asdict") and name not in _NO_SETTINGS
    }


def _move(move: Any) -> Any:
    """Return the name and the settings of a move of an ensemble kernel.

    Its first run replaces some moves by others, which know the number of chains.
    """
    cells = zip(move.__code__.co_freevars, move.__closure__ or (), strict=True)
    settings = {name: cell.cell_contents for name, cell in cells if name != "PAIRS"}
    return move.__qualname__.split(".<locals>")[0], settings


class Words:
    """Describes values by their content, and functions by their code.

    Functions and classes of installed packages are described by their names. Of other functions
    docstrings and names of local variables do not matter, and global variables do.

    It keeps what it is describing, since a model often refers to its kernel.

    :param only_data: whether functions and objects are described by their types alone, because what
        a model computes with them is known.
    """

    def __init__(self, only_data: bool = False) -> None:
        self._only_data = only_data
        self._within: list[int] = []
        self._known: dict[int, tuple[Any, str]] = {}

    def of_kernel(self, kernel: MCMCKernel) -> dict[str, str]:
        """Return the class of a kernel and its settings, by name."""
        found = {name: self.of(x) for name, x in settings_of_kernel(kernel).items()}
        of_class = f"{type(kernel).__module__}.{type(kernel).__qualname__}"
        code = {} if is_installed(type(kernel)) else {"code": self.of(type(kernel))}
        return {"class": of_class, **code, **dict(sorted(found.items()))}

    def of_argument(self, value: Any) -> str:
        """Describe an argument of a model, of an array its content."""
        if is_array(value) or isinstance(value, Rankings):
            return digest_of_tree(value)
        return self.of(value)

    def of(self, value: Any) -> str:
        """Describe a value."""
        if id(value) in self._within:
            return "itself"
        self._within.append(id(value))
        try:
            return self._of(value)
        finally:
            self._within.pop()

    def _of(self, value: Any) -> str:
        if isinstance(value, type):
            return value.__name__ if self._only_data else self._once(value, self._of_class)
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name}"
        plain = bool | int | float | complex | str | bytes | range
        if value is None or value is Ellipsis or isinstance(value, plain):
            return repr(value)
        if is_array(value):
            is_short = np.size(value) <= 20 and not is_key(value)
            return str(np.asarray(value).tolist()) if is_short else digest_of_tree(value)
        if isinstance(value, MCMCKernel):
            return self._of_entries(type(value).__name__, self.of_kernel(value))
        if isinstance(value, dist.Distribution):
            return self._of_distribution(value)
        if isinstance(value, Mapping):
            return self._of_entries("", value)
        if hasattr(value, "_asdict"):
            return self._of_entries(type(value).__name__, value._asdict())
        if isinstance(value, list | tuple):
            return f"({', '.join(self.of(x) for x in value)})"
        if isinstance(value, set | frozenset):
            return f"({', '.join(sorted(self.of(x) for x in value))})"
        if table := self._of_table(value):
            return table
        if self._only_data:
            return self._of_leaves(value)
        if isinstance(value, types.ModuleType | types.BuiltinFunctionType):
            return value.__name__
        if isinstance(value, types.MethodType):
            return f"{self.of(value.__func__)} of {self.of(value.__self__)}"
        if isinstance(value, functools.partial):
            return f"{self.of(value.func)} with {self.of(value.args)} {self.of(value.keywords)}"
        if isinstance(value, types.FunctionType):
            return self._once(value, self._of_function)
        if hasattr(value, "__wrapped__"):  # such as jax.jit makes
            return self.of(value.__wrapped__)
        return self._of_object(value)

    def _once(self, value: Any, describe: Callable[[Any], str]) -> str:
        if id(value) not in self._known:
            try:
                words = describe(value)
            except Exception:  # of any object that code refers to
                words = value.__name__
            self._known[id(value)] = value, words
        return self._known[id(value)][1]

    def _of_leaves(self, value: Any) -> str:
        """Describe the arrays in an object that is a pytree."""
        leaves = [x for x in jax.tree.leaves(value) if x is not value]
        name = "function" if callable(value) and not leaves else type(value).__qualname__
        return f"{name}({', '.join(self.of(x) for x in leaves)})" if leaves else name

    def _of_entries(self, name: str, entries: Mapping[Any, Any]) -> str:
        parts = sorted(f"{key}={self.of(x)}" for key, x in entries.items())
        return f"{name}({', '.join(parts)})"

    def _of_distribution(self, value: dist.Distribution) -> str:
        settings = {name: getattr(value, name, None) for name in value.arg_constraints}
        of_class = type(value)
        if not {*inspect.signature(of_class).parameters} - {"validate_args"} <= settings.keys():
            # it is made of others, or has a size; what is computed on demand is no setting
            names = {*of_class.gather_pytree_data_fields(), *of_class.gather_pytree_aux_fields()}
            names -= {"_validate_args", "_batch_shape", "_event_shape"} | settings.keys()
            settings |= {name: x for name in names if (x := vars(value).get(name)) is not None}
            settings["shape"] = value.batch_shape, value.event_shape
        return self._of_entries(of_class.__name__, settings)

    def _of_table(self, value: Any) -> str | None:
        """Describe a data frame, series or index of pandas by its content; None for others."""
        pandas = sys.modules.get("pandas")
        if pandas is None:
            return None
        if isinstance(value, pandas.Index):
            return f"Index({self.of(value.names)}, {self.of(np.asarray(value))}, {value.dtype})"
        if isinstance(value, pandas.Series):
            content = self.of(value.index), self.of(np.asarray(value))
            return f"Series({value.name!r}, {value.dtype}, {', '.join(content)})"
        if isinstance(value, pandas.DataFrame):
            columns = [self.of(value.iloc[:, k]) for k in range(value.shape[1])]
            return f"DataFrame({self.of(value.columns)}, {', '.join(columns)})"
        return None

    def _of_object(self, value: Any) -> str:
        """Describe an object by what its pickle would have, which need not be possible."""
        name = type(value).__qualname__
        if isinstance(value, np.ndarray):  # of objects
            return f"{value.shape} {self.of(value.ravel().tolist())}"
        try:
            made = value.__reduce_ex__(2)
        except Exception:  # such as a lock or an open file
            return name
        if isinstance(made, str):
            return made
        _, args, state, *items = (*made, None, None, None)[:5]
        args = args[1:] if args and args[0] is type(value) else args
        entries: dict[str, Any] = {}
        for part in state if isinstance(state, tuple) else (state,):
            entries |= part if isinstance(part, dict) else {}
        # attributes of this package's own objects that are private are not their settings
        is_own = _package_of(type(value)) == _PACKAGE
        entries = {
            k: x
            for k, x in entries.items()
            if not isinstance(getattr(type(value), k, None), functools.cached_property)
            and not (is_own and k[0] == "_")
        }
        found = self._of_entries(name, entries)
        if state is not None and not isinstance(state, dict | tuple):
            found += f" {self.of(state)}"
        for part in (args, *(list(x) for x in items if x is not None)):
            found += f" {self.of(part)}" if part and not is_own else ""
        return found if is_installed(type(value)) else f"{found}, {self.of(type(value))}"

    # -----------------------------------------------------------------------------------------
    # Code
    # -----------------------------------------------------------------------------------------

    def _of_class(self, value: type) -> str:
        if is_installed(value):
            return value.__name__
        found = [self.of(base) for base in value.__bases__]
        for name, x in sorted(vars(value).items()):
            if isinstance(x, property):
                x = x.fget, x.fset
            elif isinstance(x, classmethod | staticmethod):
                x = x.__func__
            if isinstance(x, types.FunctionType | tuple) or not name.startswith(("__", "_abc")):
                found.append(f"{name}={self.of(x)}")
        return f"{value.__name__}, code {hashlib.sha256(str(found).encode()).hexdigest()[:16]}"

    def _of_function(self, function: types.FunctionType) -> str:
        """Return the name of a function, and a hash of its code and of what it refers to."""
        inside: list[Any] = [function.__defaults__, function.__kwdefaults__]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # a cell that is still empty
                inside.append(cell.cell_contents)
        if is_installed(function):
            name = function.__qualname__
            if _package_of(function) != _PACKAGE:
                name = f"{function.__module__}.{name}"
            is_plain = not function.__closure__
            return name if is_plain else f"{name} with {self.of(inside)}"
        names = _global_names(function.__code__) & function.__globals__.keys()
        inside += [(name, function.__globals__[name]) for name in sorted(names)]
        found = hashlib.sha256(self._of_code(function.__code__).encode())
        found.update(self.of(inside).encode())
        return f"function, code {found.hexdigest()[:16]}"

    def _of_code(self, code: types.CodeType) -> str:
        parts = [str((code.co_argcount, code.co_kwonlyargcount, code.co_flags & 0x2F))]
        parts.append(code.co_exceptiontable.hex())
        for step in dis.get_instructions(code):
            if step.opcode in _HAS_CONST:
                is_code = isinstance(step.argval, types.CodeType)
                argument = self._of_code(step.argval) if is_code else self.of(step.argval)
            else:  # local variables by number
                argument = str(step.argval if step.opcode in _HAS_NAME else step.arg)
            parts.append(f"{step.opname} {argument}")
        return "\n".join(parts)


def _global_names(code: types.CodeType) -> set[str]:
    """Names that a function uses, those in its inner functions included."""
    inner = (_global_names(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return set(code.co_names).union(*inner)


def _package_of(value: Any) -> str:
    return str(getattr(value, "__module__", None) or "").partition(".")[0]


def is_installed(value: Any) -> bool:
    """Whether a function or class is of Python, of this package or of another installed one."""
    package = _package_of(value)
    if package in _PACKAGES:
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and not _FOLDERS.isdisjoint(Path(file).parents)
