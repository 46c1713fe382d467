"""The fingerprint of what a run computes: words and hashes that are the same in every process.

A model is traced once, which compiles and computes nothing. Each site has a hash of the operations
that lead to its log density, of the constants in them, and of its data. Of a kernel the settings
count.

Byte code stands for a function only where there is no trace: for the class of a user's kernel,
whose state is not known before it starts, for functions among the settings, and for models that
need the values of their sites. It also tells whether a model is the same that another version of
JAX traces to other operations.
"""

import contextlib
import dis
import enum
import functools
import hashlib
import inspect
import platform
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Primitive
from jax.sharding import Mesh
from numpyro import handlers, validation_enabled
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import compute_log_probs

from numpyro_rankings._version import __version__
from numpyro_rankings.rankings.rows import Rows
from numpyro_rankings.run.convert import is_key
from numpyro_rankings.run.kernels import (
    is_installed,
    models_of,
    package_of,
    settings_of_kernel,
    updates_of,
)

Description = dict[str, dict[str, Any]]
Sites = dict[str, dict[str, str]]  # words for each aspect, by site

MODEL, CODE = "model", "code"
# These aspects of a site are hashes of what is computed, where the others are words.
DATA, VALUE, SCALE, MASK, BOUNDS = "data", "value", "scale", "mask", "bounds of the support"
UPDATE, DENSITY, ENERGY = "update", "log density", "potential energy"
COMPUTED = (DATA, BOUNDS, SCALE, MASK, VALUE, UPDATE, DENSITY, ENERGY)

_VERSIONS = ("jax", "jaxlib", "numpy", "numpyro")
_PACKAGE = "numpyro_rankings"
_HAS_CONST, _HAS_NAME = frozenset(dis.hasconst), frozenset(dis.hasname)
_PLAIN = bool | int | float | complex | str | bytes | range
_LONG = 100  # letters from which on a description is hashed
_SHORT = 20  # numbers up to which an array is written out
# These calls may as well be replaced by their operations; rules of derivatives do not matter.
_CALLS = (
    *("jit", "pjit", "closed_call", "core_call", "core_closed_call"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    *("checkpoint", "remat", "remat2"),
)
# The value of a latent site is an unknown that has a name and no operations before it.
_LATENT = "latent"
_unknown = Primitive("site")
_unknown.def_abstract_eval(lambda *, name, shape, dtype: ShapedArray(shape, dtype))

_version_of = functools.cache(version)  # it reads a file each time


def describe(
    kernel: MCMCKernel, args: tuple, kwargs: dict, mesh: Mesh | None, init_params: Any = None
) -> Description:
    """Describe the data, the kernel, its model and the versions of a run, in words, by name.

    The devices are among the versions, since sums depend on them.
    """
    devices = (
        "1" if mesh is None else " × ".join(f"{k} of {name}" for name, k in mesh.shape.items())
    )
    fingerprint = Fingerprint()
    sites, code, is_traced = _describe_models(kernel, args, kwargs, init_params, fingerprint)
    named = {f"argument {i}": x for i, x in enumerate(args, 1)} | kwargs
    of_data = Fingerprint(only_data=is_traced)
    return {
        "data": {name: of_data.of_argument(x) for name, x in named.items()},
        "kernel": fingerprint.of_kernel(kernel),
        MODEL: sites,
        CODE: code,
        "precision": {"jax_enable_x64": str(jax.config.read("jax_enable_x64"))},
        "versions": {**describe_versions(), "devices": devices},
    }


def describe_versions() -> dict[str, str]:
    """Return the versions on which the draws depend, by name."""
    return {
        "numpyro-rankings": __version__,
        **{name: _version_of(name) for name in _VERSIONS},
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {jax.default_backend()}",
    }


def _describe_models(
    kernel: MCMCKernel, args: tuple, kwargs: dict, init_params: Any, fingerprint: "Fingerprint"
) -> tuple[Sites, dict[str, str], bool]:
    """Describe what the models of a kernel compute, and their code, and whether all were traced.

    A kernel of this package that has no user's model is described by its settings.
    """
    all_sites: Sites = {}
    code: dict[str, str] = {}
    is_traced = True
    for number, (model, has_sites) in enumerate(models_of(kernel), 1):
        mark = f" of model {number}" if number > 1 else ""
        code[f"model{mark}"] = fingerprint.of(model)
        latents: Mapping[str, Any] = {}
        try:
            if has_sites:
                sites, latents = trace_model(model, args, kwargs)
            else:
                sites = _describe_potential(model, jax.tree.map(lambda x: x[0], init_params))
        except Exception:  # it cannot be traced, or needs starting values
            sites, is_traced = {"": {CODE: code[f"model{mark}"]}}, False
        for update, own in updates_of(kernel):
            of_update = code[f"update of {', '.join(own)}"] = fingerprint.of(update)
            try:
                sites[own[0]][UPDATE] = _describe_update(update, own, latents)
            except Exception:
                sites.setdefault("", {})[f"{CODE} of the {UPDATE} of {own}"] = of_update
        all_sites |= {f"{name}{mark}": aspects for name, aspects in sites.items()}
    return all_sites, code, is_traced and bool(all_sites)


def class_of(kernel: type[MCMCKernel]) -> str:
    """Return the class of a kernel, as a store has it."""
    return f"{kernel.__module__}.{kernel.__qualname__}"


def digest(*parts: Any) -> str:
    """Return a hash of texts and arrays in their order."""
    content = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            content.update(part.encode() + b"\0")
        else:
            array = np.asarray(jax.random.key_data(part) if is_key(part) else part)
            content.update(f"{array.dtype} {array.shape}".encode())
            # no copy is made if the numbers lie side by side
            content.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return content.hexdigest()[:16]


def _is_array(x: Any) -> bool:
    """Whether it is an array of numbers or of random keys."""
    return isinstance(x, np.ndarray | np.generic | jax.Array) and x.dtype != object


def _is_table(x: Any) -> bool:
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return False
    return isinstance(x, pandas.DataFrame | pandas.Series | pandas.Index)


# ---------------------------------------------------------------------------------------------
# Values, functions and programs
# ---------------------------------------------------------------------------------------------


class Fingerprint:
    """Describes values by their content, functions by their code, programs by their operations.

    Functions and classes of installed packages are described by their names. Of other functions
    docstrings and names of local variables do not matter, and global variables do. Of programs
    names of variables, the order of independent operations, functions that are compiled on their
    own, and what has no influence on the result do not matter.

    It keeps what it is describing, since a model often refers to its kernel. With ``only_data``
    functions and objects are described by their types alone: what is computed with them is known.
    """

    def __init__(self, only_data: bool = False) -> None:
        self._only_data = only_data
        self._within: list[int] = []
        # Each entry keeps the object whose address is in its key.
        self._known: dict[tuple, tuple[Any, Any]] = {}

    def of_kernel(self, kernel: MCMCKernel) -> dict[str, str]:
        """Return the class of a kernel and its settings, by name."""
        settings = {name: self.of(x) for name, x in settings_of_kernel(kernel).items()}
        of_class = class_of(type(kernel))
        code = {} if is_installed(type(kernel)) else {CODE: self.of(type(kernel))}
        return {"class": of_class, **code, **dict(sorted(settings.items()))}

    def of_argument(self, value: Any) -> str:
        """Describe an argument of a model, of an array its content."""
        if _is_array(value) or isinstance(value, Rows):
            return self._of_tree(value)
        text = self.of(value)
        return text if len(text) < _LONG else f"{type(value).__name__}, content {digest(text)}"

    def of(self, value: Any) -> str:
        """Describe a value."""
        if id(value) in self._within:
            return "itself"
        self._within.append(id(value))
        try:
            return self._of(value)
        finally:
            self._within.pop()

    def of_results(self, function: Callable, *args: Any) -> Any:
        """Trace a function that was not traced before, and return it with hashes for arrays."""
        program, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        hashes = self._of_program(program, _places(program.jaxpr))
        return jax.tree.unflatten(jax.tree.structure(shapes), hashes)

    def _of(self, value: Any) -> str:
        if isinstance(value, enum.Enum):
            return f"{type(value).__qualname__}.{value.name}"
        if value is None or value is Ellipsis or isinstance(value, _PLAIN):
            return repr(value)
        if isinstance(value, type):
            return value.__name__ if self._only_data else self._once(value, self._of_class)
        if _is_array(value):
            is_short = np.size(value) <= _SHORT and not is_key(value)
            return str(np.asarray(value).tolist()) if is_short else self._of_tree(value)
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
        if _is_table(value):
            return self._of_table(value)
        return self._of_leaves(value) if self._only_data else self._of_other(value)

    def _of_other(self, value: Any) -> str:
        """Describe a function, a program, or any other object."""
        if isinstance(value, Jaxpr | ClosedJaxpr):
            return digest(*self._of_program(value, _places(_jaxpr_of(value))))
        if isinstance(value, types.ModuleType | types.BuiltinFunctionType):
            return value.__name__
        if isinstance(value, types.MethodType):
            return f"{self.of(value.__func__)} of {self.of(value.__self__)}"
        if isinstance(value, functools.partial):
            return f"{self.of(value.func)} with {self.of(value.args)} {self.of(value.keywords)}"
        if isinstance(value, types.FunctionType):
            return self._once(value, self._of_function)
        if hasattr(value, "__wrapped__"):  # jax.jit makes such functions
            return self.of(value.__wrapped__)
        return self._of_object(value)

    def _once(self, value: Any, describe: Callable[[Any], str]) -> str:
        if (id(value),) not in self._known:
            try:
                words = describe(value)
            except Exception:  # code may refer to any object
                words = value.__name__
            self._known[id(value),] = words, value
        return self._known[id(value),][0]

    def _of_tree(self, value: Any) -> str:
        """Describe a pytree of arrays by its type and a hash of its leaves and structure."""
        leaves, structure = jax.tree.flatten(value)
        name = type(value).__name__
        if isinstance(value, np.ndarray | jax.Array):  # kernels take those of NumPy and JAX alike
            name = f"Array of {value.dtype} of shape {value.shape}"
        return f"{name}, content {digest(str(structure), *leaves)}"

    def _of_leaves(self, value: Any) -> str:
        """Describe the arrays in an object that is a pytree."""
        leaves = [x for x in jax.tree.leaves(value) if x is not value]
        name = "function" if callable(value) and not leaves else type(value).__qualname__
        return f"{name}({', '.join(self.of(x) for x in leaves)})" if leaves else name

    def _of_entries(self, name: str, entries: Mapping[Any, Any]) -> str:
        parts = sorted(f"{key}={self.of(x)}" for key, x in entries.items())
        return f"{name}({', '.join(parts)})"

    def _of_table(self, value: Any) -> str:
        """Describe a data frame, series or index of pandas by its content."""
        frame = value if value.ndim == 2 else value.to_frame()
        columns = [(name, str(x.dtype), np.asarray(x)) for name, x in frame.items()]
        index = frame.index.names, str(frame.index.dtype), np.asarray(frame.index)
        return self._of_entries(type(value).__name__, {"index": index, "columns": columns})

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

    def _of_object(self, value: Any) -> str:
        """Describe an object by what its pickle would have, which need not be possible."""
        name = type(value).__qualname__
        if isinstance(value, np.ndarray):  # its entries are objects
            return f"{value.shape} {self.of(value.ravel().tolist())}"
        try:
            made = value.__reduce_ex__(2)
        except Exception:  # it cannot be pickled, like a lock or an open file
            return name
        if isinstance(made, str):
            return made
        _, args, state, *items = (*made, None, None, None)[:5]
        entries: dict[str, Any] = {}
        for part in state if isinstance(state, tuple) else (state,):
            entries |= part if isinstance(part, dict) else {}
        # attributes of this package's own objects that are private are not their settings
        is_own = package_of(type(value)) == _PACKAGE
        entries = {
            k: x
            for k, x in entries.items()
            if not isinstance(getattr(type(value), k, None), functools.cached_property)
            and not (is_own and k[0] == "_")
        }
        words = self._of_entries(name, entries)
        if state is not None and not isinstance(state, dict | tuple):
            words += f" {self.of(state)}"
        args = args[1:] if args and args[0] is type(value) else args
        for part in (args, *(list(x) for x in items if x is not None)):
            words += f" {self.of(part)}" if part and not is_own else ""
        return words if is_installed(type(value)) else f"{words}, {self.of(type(value))}"

    # -- byte code -----------------------------------------------------------------------------

    def _of_class(self, value: type) -> str:
        if is_installed(value):
            return value.__name__
        parts = [self.of(base) for base in value.__bases__]
        for name, x in sorted(vars(value).items()):
            if isinstance(x, property):
                x = x.fget, x.fset
            elif isinstance(x, classmethod | staticmethod):
                x = x.__func__
            if isinstance(x, types.FunctionType | tuple) or not name.startswith(("__", "_abc")):
                parts.append(f"{name}={self.of(x)}")
        return f"{value.__name__}, code {digest(*parts)}"

    def _of_function(self, function: types.FunctionType) -> str:
        """Return the name of a function, and a hash of its code and of what it refers to."""
        inside: list[Any] = [function.__defaults__, function.__kwdefaults__]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # a cell that is still empty
                inside.append(cell.cell_contents)
        if is_installed(function):
            name = function.__qualname__
            if package_of(function) != _PACKAGE:
                name = f"{function.__module__}.{name}"
            return f"{name} with {self.of(inside)}" if function.__closure__ else name
        names = _global_names(function.__code__) & function.__globals__.keys()
        inside += [(name, function.__globals__[name]) for name in sorted(names)]
        return f"function, code {digest(self._of_code(function.__code__), self.of(inside))}"

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

    # -- programs ------------------------------------------------------------------------------

    def _of_program(self, program: Jaxpr | ClosedJaxpr, inputs: Sequence[str]) -> list[str]:
        """Return the hash of each result, from a hash of each argument."""
        key = id(program), *inputs
        if key not in self._known:
            self._known[key] = self._follow(program, inputs), program
        return self._known[key][0]

    def _follow(self, program: Jaxpr | ClosedJaxpr, inputs: Sequence[str]) -> list[str]:
        """Follow the operations of a program from its arguments to its results."""
        jaxpr = _jaxpr_of(program)
        consts = [digest(x) for x in getattr(program, "consts", ())]
        hashes = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True))

        def hash_of(atom: Any) -> str:
            if not isinstance(atom, Literal):
                return hashes[atom]
            is_plain, dtype = isinstance(atom.val, _PLAIN), getattr(atom.aval, "dtype", None)
            return digest(np.asarray(atom.val, dtype) if is_plain else atom.val)

        for operation in jaxpr.eqns:
            results = self._of_operation(operation, [hash_of(x) for x in operation.invars])
            hashes.update(zip(operation.outvars, results, strict=True))
        return [hash_of(x) for x in jaxpr.outvars]

    def _of_operation(self, operation: Any, inputs: list[str]) -> list[str]:
        name = operation.primitive.name
        inner = [x for x in operation.params.values() if isinstance(x, Jaxpr | ClosedJaxpr)]
        if name in _CALLS and len(inner) == 1:
            return self._of_program(inner[0], inputs)
        params = [f"{k}={self.of(x)}" for k, x in sorted(operation.params.items())]
        joint = digest(name, *params, *inputs)
        return [f"{joint} {k}" for k in range(len(operation.outvars))]


def _global_names(code: types.CodeType) -> set[str]:
    """Return the names that a function uses, those in its inner functions included."""
    inner = (_global_names(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return set(code.co_names).union(*inner)


def _jaxpr_of(program: Any) -> Jaxpr:
    # newer versions of JAX have one class for both
    return getattr(program, "jaxpr", program)


def _places(jaxpr: Jaxpr) -> list[str]:
    return [f"argument {i} {_form_of(x.aval)}" for i, x in enumerate(jaxpr.invars)]


def _form_of(x: Any) -> str:
    return f"{getattr(x, 'dtype', '')} {getattr(x, 'shape', '')}"


# ---------------------------------------------------------------------------------------------
# Models
# ---------------------------------------------------------------------------------------------


def trace_model(
    model: Callable, args: tuple, kwargs: dict
) -> tuple[Sites, dict[str, jax.ShapeDtypeStruct]]:
    """Trace a model, and describe each of its sites."""
    try:
        return _describe_sites(model, args, kwargs, _is_array)
    except Exception:  # it needs the values of its arguments
        return _describe_sites(model, args, kwargs, lambda _: False)


def _describe_sites(
    model: Callable, args: tuple, kwargs: dict, is_input: Callable[[Any], bool]
) -> tuple[Sites, dict[str, jax.ShapeDtypeStruct]]:
    leaves, structure = jax.tree.flatten((args, kwargs))
    places = [k for k, x in enumerate(leaves) if is_input(x)]
    sites: Sites = {}
    latents: dict[str, jax.ShapeDtypeStruct] = {}

    def compute(arrays: list) -> dict[str, dict[str, Any]]:
        given = list(leaves)
        for k, x in zip(places, arrays, strict=True):
            given[k] = x
        log_probs, trace = _trace(model, *jax.tree.unflatten(structure, given))
        computed = {}
        for name, site in trace.items():
            if site["type"] in ("sample", "deterministic", "param"):
                sites[name], computed[name] = _describe_site(site, log_probs.get(name))
                if sites[name]["kind"] == _LATENT:
                    x = jnp.asarray(site["value"])
                    latents[name] = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return computed

    # the kernel says the same when it starts, and validation is no part of a density
    with warnings.catch_warnings(), validation_enabled(False):
        warnings.simplefilter("ignore")
        computed = Fingerprint().of_results(compute, [leaves[k] for k in places])
    for name, aspects in computed.items():
        sites[name] |= {aspect: _joint(x) for aspect, x in aspects.items()}
    return sites, latents


def _describe_potential(potential_fn: Callable, params: Any) -> Sites:
    """Trace a potential energy, and describe it like a site."""
    traced = Fingerprint().of_results(lambda params: potential_fn(params), params)
    return {"": {ENERGY: _joint(traced)}}


def _describe_update(update: Callable, own: Sequence[str], values: Mapping[str, Any]) -> str:
    """Trace the function of a :class:`~numpyro.infer.CustomGibbs`, and return a hash of it."""

    def compute(key: Any, own: Any, others: Any) -> Any:
        return update(rng_key=key, gibbs_sites=own, hmc_sites=others)

    key = jax.eval_shape(lambda: jax.random.key(0))
    mine = {name: values[name] for name in own}
    others = {name: x for name, x in values.items() if name not in mine}
    return _joint(Fingerprint().of_results(compute, key, mine, others))


def _trace(model: Callable, args: tuple, kwargs: dict) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the log density of each site, and the sites, where latent ones are unknown."""
    model = handlers.seed(model, jax.random.key(0))
    model = handlers.substitute(model, substitute_fn=_value_of)
    return compute_log_probs(model, args, kwargs, {})


def _value_of(site: dict[str, Any]) -> Any:
    """Return an unknown for a latent site, None for another."""
    if site["type"] != "sample" or site["is_observed"] or site["value"] is not None:
        return None
    shape = (*site["kwargs"].get("sample_shape", ()), *site["fn"].shape())
    dtype = jnp.result_type(int if _is_discrete(site["fn"]) else float)
    return _unknown.bind(name=site["name"], shape=shape, dtype=dtype)


def _is_discrete(distribution: Any) -> bool:
    try:
        return bool(distribution.support.is_discrete)
    except NotImplementedError:  # it depends on other sites
        return False


def _describe_site(site: dict[str, Any], log_prob: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Return words for a site, and what it computes."""
    leaves = jax.tree.leaves(site["value"])
    arrays = [jnp.asarray(x) for x in leaves if _is_array(x) or isinstance(x, Tracer | int | float)]
    words = {"shape": ", ".join(map(_form_of, arrays))}
    if site["type"] != "sample":
        return {"kind": site["type"], **words}, {VALUE: arrays}
    fn, is_observed = site["fn"], site["is_observed"]
    is_summed_out = site["infer"].get("enumerate") == "parallel"
    words["kind"] = "observed" if is_observed else "summed out" if is_summed_out else _LATENT
    aspects = {DATA if is_observed else VALUE: arrays, DENSITY: [log_prob]}
    if site["scale"] is not None:
        aspects[SCALE] = [jnp.asarray(site["scale"])]
    if getattr(fn, "_mask", None) is not None:
        aspects[MASK] = [jnp.asarray(fn._mask)]
    if not is_observed:
        aspects[BOUNDS] = []
        words["support"] = _describe_support(fn.support, aspects[BOUNDS])
    return words, aspects


def _describe_support(support: Any, bounds: list[Any]) -> str:
    """Return the kind of a support, and append its bounds."""
    settings = {}
    for name, x in sorted(vars(support).items()):
        if isinstance(x, Tracer | float) or _is_array(x):
            bounds.append(jnp.asarray(x))
        elif hasattr(x, "is_discrete"):
            settings[name] = _describe_support(x, bounds)
        else:
            settings[name] = Fingerprint().of(x)
    inside = ", ".join(f"{name} {x}" for name, x in settings.items())
    return f"{type(support).__name__.lstrip('_')}{f' ({inside})' if inside else ''}"


def _joint(hashes: Any) -> str:
    named, _ = jax.tree_util.tree_flatten_with_path(hashes)
    return digest(*(f"{jax.tree_util.keystr(path)} {x}" for path, x in named))
