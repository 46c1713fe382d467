"""What a function computes, as hashes that are the same in every process.

A function is traced, which compiles and computes nothing. Each result has a hash of the operations
that lead to it, of the constants in them, by their content, and of the arguments, by their places.
Names of variables, the order of independent operations, functions that are compiled on their own,
and what has no influence on the result do not matter.
"""

import dataclasses
import enum
import hashlib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from numpyro_rankings.run.contents import Words, digest_of_array

# calls whose operations are as good in their place, and the rules of their derivatives aside
_CALLS = (
    *("jit", "pjit", "closed_call", "core_call", "core_closed_call"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    *("checkpoint", "remat", "remat2"),
)
_DIGITS = 16


def computed_by(function: Callable, *args: Any) -> Any:
    """Trace a function, and return what it returns, with a hash in place of each array.

    :param function: traced anew, unless it was traced before: then it has to be a new object.
    :param args: arrays, or their shapes, in pytrees.
    """
    jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
    found = _Hasher().of_program(jaxpr, _places(jaxpr.jaxpr))
    return jax.tree.unflatten(jax.tree.structure(shapes), found)


def joint_hash(*parts: str) -> str:
    """Return a hash of some texts in their order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]


def _places(jaxpr: Jaxpr) -> list[str]:
    return [f"argument {i} {_shape_of(x)}" for i, x in enumerate(jaxpr.invars)]


def _jaxpr_of(program: Any) -> Jaxpr:
    # newer versions of JAX have one class for both
    return getattr(program, "jaxpr", program)


def _shape_of(atom: Any) -> str:
    return f"{getattr(atom.aval, 'dtype', '')} {getattr(atom.aval, 'shape', '')}"


class _Hasher:
    """Follows the operations of programs from their arguments to their results."""

    def __init__(self) -> None:
        self._known: dict[tuple, list[str]] = {}
        self._kept: list[Any] = []  # whose addresses are known
        self._words = Words()

    def of_program(self, program: Jaxpr | ClosedJaxpr, inputs: Sequence[str]) -> list[str]:
        """Return the hash of each result.

        :param inputs: a hash of each argument.
        """
        key = id(program), *inputs
        if key not in self._known:
            self._kept.append(program)
            self._known[key] = self._of_program(program, inputs)
        return self._known[key]

    def _of_program(self, program: Jaxpr | ClosedJaxpr, inputs: Sequence[str]) -> list[str]:
        jaxpr = _jaxpr_of(program)
        consts = [self._of_constant(x) for x in getattr(program, "consts", ())]
        found = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True))

        def of(atom: Any) -> str:
            return self._of_literal(atom) if isinstance(atom, Literal) else found[atom]

        for operation in jaxpr.eqns:
            results = self._of_operation(operation, [of(x) for x in operation.invars])
            found.update(zip(operation.outvars, results, strict=True))
        return [of(x) for x in jaxpr.outvars]

    def _of_operation(self, operation: Any, inputs: list[str]) -> list[str]:
        name = operation.primitive.name
        inner = [x for x in operation.params.values() if isinstance(x, Jaxpr | ClosedJaxpr)]
        if name in _CALLS and len(inner) == 1:
            return self.of_program(inner[0], inputs)
        params = [f"{k}={self._of_parameter(x)}" for k, x in sorted(operation.params.items())]
        found = joint_hash(name, *params, *inputs)
        return [f"{found} {k}" for k in range(len(operation.outvars))]

    def _of_constant(self, x: Any) -> str:
        self._kept.append(x)
        return digest_of_array(x)

    def _of_literal(self, x: Any) -> str:
        value = x.val
        if isinstance(value, bool | int | float | complex):
            value = np.asarray(value, x.aval.dtype)
        return self._of_constant(value)

    def _of_parameter(self, x: Any) -> str:
        """Return words for a parameter of an operation; of what has none, its type."""
        if isinstance(x, Jaxpr | ClosedJaxpr):
            inputs = _places(_jaxpr_of(x))
            return joint_hash("program", *self.of_program(x, inputs))
        if x is None or isinstance(x, bool | int | float | complex | str | bytes | np.dtype):
            return repr(x)
        if isinstance(x, np.ndarray | np.generic | jax.Array):
            return self._of_constant(x)
        if isinstance(x, enum.Enum):
            return f"{type(x).__name__}.{x.name}"
        if isinstance(x, Mapping):
            return f"({', '.join(sorted(f'{k}={self._of_parameter(y)}' for k, y in x.items()))})"
        if isinstance(x, list | tuple):
            return f"({', '.join(self._of_parameter(y) for y in x)})"
        if isinstance(x, set | frozenset):
            return f"({', '.join(sorted(self._of_parameter(y) for y in x))})"
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
            return f"{type(x).__name__}{self._of_parameter(fields)}"
        if isinstance(x, types.FunctionType | type):
            return self._words.of(x)
        return type(x).__name__
