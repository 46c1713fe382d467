"""What a model computes: its sites, and their log densities."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from numpyro import handlers, validation_enabled
from numpyro.infer.util import compute_log_probs

from numpyro_rankings.run.computation import computed_by, joint_hash
from numpyro_rankings.run.contents import Words, is_array

Sites = dict[str, dict[str, str]]  # words for each aspect, by site

# aspects that are hashes of what is computed, where the others are words
DATA, VALUE, SCALE, MASK, BOUNDS = "data", "value", "scale", "mask", "bounds of the support"
UPDATE, DENSITY, ENERGY = "update", "log density", "potential energy"
COMPUTED = (DATA, BOUNDS, SCALE, MASK, VALUE, UPDATE, DENSITY, ENERGY)

# the value of a latent site, an unknown that has a name and no operations before it
_LATENT = "latent"
_unknown = Primitive("site")
_unknown.def_abstract_eval(lambda *, name, shape, dtype: ShapedArray(shape, dtype))


class Traced(NamedTuple):
    """What is known of a model that was traced.

    - **sites** - words for each.
    - **latents** - shapes of the latent ones.
    """

    sites: Sites
    latents: dict[str, jax.ShapeDtypeStruct]


def trace_model(model: Callable, args: tuple, kwargs: dict) -> Traced:
    """Trace a model, and describe each of its sites.

    :param model: of NumPyro.
    :param args: its arguments. The content of those that are arrays does not matter, unless it
        decides what the model does.
    :param kwargs: its keyword arguments.
    :raises Exception: if the model cannot be traced.
    """
    try:
        return _describe(model, args, kwargs, is_array)
    except Exception:  # it needs the values of its arguments
        return _describe(model, args, kwargs, lambda _: False)


def describe_potential(potential_fn: Callable, params: Any) -> Sites:
    """Trace a potential energy, and describe it like a site.

    :param params: what it takes, or anything of the same shapes.
    """

    def compute(params: Any) -> Any:
        return potential_fn(params)

    return {"": {ENERGY: _joint(computed_by(compute, params))}}


def describe_update(update: Callable, own: Sequence[str], values: Mapping[str, Any]) -> str:
    """Trace the function of a :class:`~numpyro.infer.CustomGibbs`, and return a hash of it.

    :param own: names of the sites that it draws.
    :param values: of all latent sites, or their shapes.
    """

    def compute(key: Any, own: Any, others: Any) -> Any:
        return update(rng_key=key, gibbs_sites=own, hmc_sites=others)

    key = jax.eval_shape(lambda: jax.random.key(0))
    mine = {name: values[name] for name in own}
    others = {name: x for name, x in values.items() if name not in mine}
    return _joint(computed_by(compute, key, mine, others))


def _describe(model: Callable, args: tuple, kwargs: dict, is_input: Callable) -> Traced:
    leaves, structure = jax.tree.flatten((args, kwargs))
    places = [k for k, x in enumerate(leaves) if is_input(x)]
    found: Sites = {}
    latents: dict[str, jax.ShapeDtypeStruct] = {}

    def compute(arrays: list) -> dict[str, dict[str, Any]]:
        here = list(leaves)
        for k, x in zip(places, arrays, strict=True):
            here[k] = x
        log_probs, trace = _trace(model, *jax.tree.unflatten(structure, here))
        computed = {}
        for name, site in trace.items():
            if site["type"] in ("sample", "deterministic", "param"):
                found[name], computed[name] = _describe_site(site, log_probs.get(name))
                if found[name]["kind"] == _LATENT:
                    x = jnp.asarray(site["value"])
                    latents[name] = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return computed

    # the kernel says the same when it starts, and validation is no part of a density
    with warnings.catch_warnings(), validation_enabled(False):
        warnings.simplefilter("ignore")
        computed = computed_by(compute, [leaves[k] for k in places])
    for name, aspects in computed.items():
        found[name] |= {aspect: _joint(x) for aspect, x in aspects.items()}
    return Traced(found, latents)


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
    arrays = [jnp.asarray(x) for x in leaves if is_array(x) or isinstance(x, Tracer | int | float)]
    words = {"shape": ", ".join(f"{x.dtype} {x.shape}" for x in arrays)}
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
        if isinstance(x, Tracer | float) or is_array(x):
            bounds.append(jnp.asarray(x))
        elif hasattr(x, "is_discrete"):
            settings[name] = _describe_support(x, bounds)
        else:
            settings[name] = Words().of(x)
    inside = ", ".join(f"{name} {x}" for name, x in settings.items())
    return f"{type(support).__name__.lstrip('_')}{f' ({inside})' if inside else ''}"


def _joint(found: Any) -> str:
    named, _ = jax.tree_util.tree_flatten_with_path(found)
    return joint_hash(*(f"{jax.tree_util.keystr(path)} {x}" for path, x in named))
