"""What a kernel reads of a user's model, as a block of :class:`numpyro.infer.Gibbs`."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from numpyro_rankings.components.family import AugmentedFamily, Family


def check_judge_sites(sites: Sequence[str], is_block: bool) -> tuple[str, ...]:
    """Names of such sites, or ValueError."""
    if isinstance(sites, str) or not all(isinstance(name, str) for name in sites):
        raise ValueError(f"judge_sites must be a list of names of sites, got {sites!r}")
    if sites and not is_block:
        raise ValueError("judge_sites are those of a model of one's own: give model= too")
    return tuple(sites)


def check_prior_of_slots(partition: Any, site: str) -> None:
    """That the prior of the labels does not ask for an order of first use, which they are not in.

    :param partition: the prior, and **site** its name.
    """
    if partition._validate_args:
        raise ValueError(
            f"with judge_sites labels are names of slots, not in order of first use: give the "
            f"prior of site {site!r} validate_args=False"
        )


def sum_of_judges(trace: Mapping[str, Any], sites: Sequence[str], size: int) -> Array:
    """Log probability of the sites by judge, (N,).

    :param trace: of the model, at the labels in question.
    """
    total = jnp.zeros(size)
    for name in sites:
        site = trace.get(name)
        if site is None or site["type"] != "sample" or not site["is_observed"]:
            observed = sorted(
                k for k, v in trace.items() if v["type"] == "sample" and v["is_observed"]
            )
            raise ValueError(f"judge_sites has {name!r}; the sites with a value are {observed}")
        log_prob = site["fn"].log_prob(site["value"])
        if jnp.shape(log_prob) != (size,):
            raise ValueError(
                f"site {name!r} must have one log probability for each of the {size} judges, in a "
                f"plate; it has shape {jnp.shape(log_prob)}"
            )
        scale = site.get("scale")
        total += log_prob if scale is None else scale * log_prob
    return total


def log_of_own(labels: Array, log_outcomes: Array | None) -> Array:
    """Log probability of all outcomes, each judge's in the cluster that the label names.

    :param log_outcomes: (C, N), or None if there are no outcomes.
    """
    if log_outcomes is None:
        return jnp.zeros(())
    return jnp.sum(log_outcomes[labels, jnp.arange(labels.shape[0])])


def check_block_family(family: Family, is_block: bool) -> None:
    if is_block and isinstance(family, AugmentedFamily):
        raise ValueError(
            f"{type(family).__name__} has auxiliary variables, which a kernel draws only if it is "
            "no block of a model"
        )
