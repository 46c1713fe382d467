"""Runs of finite mixtures with different numbers of components that have one compiled program."""

from collections.abc import Iterable, Mapping
from typing import Any

from numpyro.infer import MCMC

from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.posterior.draws import num_components_of
from numpyro_rankings.run.fingerprint import Fingerprint

_TOGETHER = 4  # numbers of components that have one program
_OF_LABELS = {"assignments", "cluster_sizes", "num_clusters", "alpha"}


def common_width(number: int, most: int) -> int:
    """Return how many components the program of a number of them has, of at most so many."""
    return max(2, min(-(-number // _TOGETHER) * _TOGETHER, most))  # so that there are labels


def in_one_program(kernels: Mapping[str, GibbsKernel]) -> dict[str, GibbsKernel]:
    """Return a kernel of more components for those that differ in their number only, by name."""
    numbers = [k for k in map(num_components_of, kernels.values()) if k is not None]
    alike: list[tuple[GibbsKernel, dict[str, str], list[str]]] = []
    for name, kernel in kernels.items():
        number = num_components_of(kernel)
        wide = None if number is None else kernel.padded(common_width(number, max(numbers)))
        if type(wide) is not type(kernel):  # None, or a subclass may have other sweeps
            continue
        settings = Fingerprint().of_kernel(wide)
        for _, known, names in alike:
            if known == settings:
                names.append(name)
                break
        else:
            alike.append((wide, settings, [name]))
    return {name: wide for wide, _, names in alike if len(names) > 1 for name in names}


def sites_of_used(
    sites: Mapping[str, Any], parameters: Iterable[str], number: int
) -> dict[str, Any]:
    """Return the sites of the components in use, (chains, draws, …)."""
    by_component = {"shares", "cluster_sizes", *parameters}
    return {name: x[:, :, :number] if name in by_component else x for name, x in sites.items()}


def as_used(wide: MCMC, kernel: GibbsKernel, num_warmup: int = 0) -> MCMC:
    """Return the draws of a program with more components as those of the kernel that was meant."""
    number, likelihood = kernel.num_components, kernel.ranking_family
    assert number is not None and likelihood is not None
    mcmc = MCMC(
        kernel,
        num_warmup=num_warmup,
        num_samples=wide.num_samples,
        num_chains=wide.num_chains,
        thinning=wide.thinning,
        chain_method="vectorized",
        progress_bar=False,
    )
    sites = sites_of_used(wide._states[kernel.sample_field], likelihood.parameters, number)
    if number == 1 and not likelihood.has_labels:  # then the sites have no axis of components
        parameters = {name: sites[name][:, :, 0] for name in likelihood.parameters}
        sites = {name: x for name, x in sites.items() if name not in _OF_LABELS} | parameters
    mcmc._states = {**wide._states, kernel.sample_field: sites}
    mcmc._args, mcmc._kwargs = wide._args, {}
    return mcmc
