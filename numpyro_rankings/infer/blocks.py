"""Reads a user's model for a kernel that is a block of :class:`numpyro.infer.Gibbs`."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro import handlers
from numpyro.infer.gibbs import GIBBS_SITES_KWARG
from numpyro.ops.provenance import eval_provenance

from numpyro_rankings.components.family import AugmentedFamily, Family
from numpyro_rankings.infer.priors import base_of


class ModelReader:
    """Reads priors and likelihoods from the model of a kernel."""

    _model: Callable
    _in_gibbs = False
    _is_block = False  # whether the model is a user's
    _judge_sites: tuple[str, ...] = ()
    _takes_judge_sites = False
    _sites: Mapping[str, str] = MappingProxyType({})  # set by the constructors of subclasses

    @property
    def label_site(self) -> str | None:
        """The name of the site of the labels, if the kernel has one."""
        return self.sites.get("assignments")

    @property
    def sites(self) -> dict[str, str]:
        """The names of the kernel's sites in the model, by its own names for them."""
        return dict(self._sites)

    def _own(self, z: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the sites of a state that the kernel owns in its model."""
        return {name: z[name] for name in self.sites.values()}

    @property
    def is_block(self) -> bool:
        """Whether the kernel is a block of a user's model."""
        return self._is_block

    @property
    def judge_sites(self) -> tuple[str, ...]:
        """The observed sites of a user's model that depend on the label of each judge."""
        return self._judge_sites

    def _check_use_as_block(self) -> None:
        if self._is_block and not self._in_gibbs:
            name = type(self).__name__
            raise ValueError(
                f"with model= this kernel is a block of numpyro.infer.Gibbs: "
                f"Gibbs([({name}(model=model), [its sites]), (NUTS(model), None)])"
            )

    def _trace_model(self, values: dict, args: tuple, kwargs: dict) -> dict[str, Any]:
        """Trace the model at the kernel's own values and the current values of all other sites."""
        kwargs = dict(kwargs)
        kwargs[GIBBS_SITES_KWARG] = {**kwargs.get(GIBBS_SITES_KWARG, {}), **values}
        with handlers.block(), handlers.trace() as trace, handlers.seed(rng_seed=0):
            self._model(*args, **kwargs)
        for name in values:
            if name not in trace:
                sites = sorted(k for k, site in trace.items() if site["type"] == "sample")
                raise ValueError(f"the model has no site {name!r}; its sites are {sites}")
        return trace

    def _check_dependents(
        self,
        own: dict[str, Array],
        args: tuple,
        kwargs: dict,
        is_known: Callable[[str, Any], bool],
        most: int = 1,
    ) -> None:
        """Refuse a model in which more sites depend on those of the kernel than it knows."""
        # These are at most ``most`` sites, of the likelihood, for which ``is_known`` holds.
        sites: dict[str, Any] = {}

        def log_probs(**own: Array) -> dict[str, Array]:
            trace = self._trace_model(own, args, kwargs)
            sites.update({k: x for k, x in trace.items() if x["type"] == "sample" and k not in own})
            return {name: site["fn"].log_prob(site["value"]) for name, site in sites.items()}

        known = []
        for name, depends_on in eval_provenance(log_probs, **own).items():
            site, which = sites[name], " and ".join(map(repr, sorted(depends_on)))
            if depends_on and is_known(name, base_of(site["fn"])):
                known.append(name)
                if name in self._judge_sites:
                    raise ValueError(
                        f"site {name!r} is the likelihood of the rankings, so it cannot be one of "
                        "judge_sites"
                    )
                if isinstance(site["fn"], dist.MaskedDistribution) or site["scale"] is not None:
                    raise ValueError(f"site {name!r} must not be masked, scaled or subsampled")
            elif name in self._judge_sites:
                if depends_on - {self.label_site}:
                    raise ValueError(f"site {name!r} of judge_sites depends on {which}")
            elif depends_on:
                hint = ": name it in judge_sites" if self._takes_judge_sites else ""
                raise ValueError(
                    f"site {name!r} depends on {which}, but the kernel's update of {which} would "
                    f"ignore it{hint}"
                )
        if not 0 < len(known) <= most:
            raise ValueError(
                f"one site of the model must have the likelihood of {type(self).__name__}; these "
                f"have it: {known}"
            )

    def _log_judge_sites(
        self, z: Mapping[str, Array], num_slots: int, args: tuple, kwargs: dict
    ) -> Array | None:
        """Log probability of each judge's ``judge_sites`` in each slot, (C, N), or None."""
        if not self._judge_sites:
            return None
        site = self.sites["assignments"]
        size = z[site].shape[-1]

        def in_slot(slot: Array) -> Array:
            values = {**self._own(z), site: jnp.full(size, slot, jnp.int32)}
            trace = self._trace_model(values, args, kwargs)
            return sum_of_judge_sites(trace, self._judge_sites, size)

        return jax.vmap(in_slot)(jnp.arange(num_slots))


def sum_of_judge_sites(trace: Mapping[str, Any], sites: Sequence[str], size: int) -> Array:
    """Sum the log probabilities of the sites for each judge, (N,), in a trace of the model."""
    total = jnp.zeros(size)
    for name in sites:
        site = trace.get(name)
        if site is None or site["type"] != "sample" or not site["is_observed"]:
            observed = sorted(
                k for k, v in trace.items() if v["type"] == "sample" and v["is_observed"]
            )
            raise ValueError(f"judge_sites has {name!r}; the observed sites are {observed}")
        log_prob = site["fn"].log_prob(site["value"])
        if jnp.shape(log_prob) != (size,):
            raise ValueError(
                f"site {name!r} must have one log probability for each of the {size} judges, in a "
                f"plate; it has shape {jnp.shape(log_prob)}"
            )
        scale = site.get("scale")
        total += log_prob if scale is None else scale * log_prob
    return total


def log_judges_of(labels: Array, log_judges: Array | None) -> Array:
    """Sum the log probabilities of the judges' sites, (C, N) or None, in the judges' clusters."""
    if log_judges is None:
        return jnp.zeros(())
    return jnp.sum(log_judges[labels, jnp.arange(labels.shape[0])])


def check_judge_sites(sites: Sequence[str], is_block: bool) -> tuple[str, ...]:
    """Return the names of the sites, or raise ValueError."""
    if isinstance(sites, str) or not all(isinstance(name, str) for name in sites):
        raise ValueError(f"judge_sites must be a list of names of sites, got {sites!r}")
    if sites and not is_block:
        raise ValueError("judge_sites are sites of your own model: give model= too")
    return tuple(sites)


def check_prior_of_slots(partition: Any, site: str) -> None:
    """Refuse a prior of the labels that validates an order of first use: slots keep their names."""
    if partition._validate_args:
        raise ValueError(
            f"with judge_sites the labels name slots and are not in order of first use: give the "
            f"prior of site {site!r} validate_args=False"
        )


def check_block_family(family: Family, is_block: bool) -> None:
    """Refuse a family with auxiliary variables in a block."""
    if is_block and isinstance(family, AugmentedFamily):
        raise ValueError(
            f"{type(family).__name__} has auxiliary variables, which a kernel cannot draw as a "
            "block of a model"
        )
