"""Draws of kernels of other packages to ArviZ."""

import copy
import warnings
from typing import Any

from numpyro.infer import MCMC
from numpyro.primitives import Messenger

from numpyro_rankings.run.convert import by_name

# Functions import zarr and ArviZ, which take long to load and which not every run needs.


def from_numpyro(mcmc: MCMC, **options: Any) -> Any:
    """Convert draws as :func:`arviz.from_numpyro` does, with names that xarray takes.

    Sites of a potential, which have no names, are named as in the samples. A slash, as
    :class:`numpyro.handlers.scope` makes, becomes ``%2F``, as in a store.
    """
    import arviz as az

    kernel: Any = mcmc.sampler
    sites = by_name(mcmc._states[kernel.sample_field], kernel.sample_field)
    renamed = [name for name in sites if name != without_slash(name)]
    if renamed:
        shown = ", ".join(f"{name} as {without_slash(name)}" for name in renamed[:3])
        warnings.warn(
            f"ArviZ has {shown}{', …' if len(renamed) > 3 else ''}, because xarray has no names "
            "with a slash",
            UserWarning,
            stacklevel=3,
        )
    mcmc._states[kernel.sample_field] = {without_slash(name): x for name, x in sites.items()}
    if not hasattr(kernel, "model"):  # a kernel need not have one, which ArviZ does not know
        mcmc.sampler = kernel = copy.copy(kernel)
        kernel.model = None
    if kernel.model is not None:  # ArviZ asks it for what is observed
        mcmc.sampler = kernel = copy.copy(kernel)
        kernel._model = _WithoutSlashes(kernel.model)
    return az.from_numpyro(mcmc, **options)


def without_slash(name: str) -> str:
    """Return a name that xarray takes."""
    return name.replace("/", "%2F")


class _WithoutSlashes(Messenger):
    """Changes the names of the sites and plates of a model."""

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg.get("name"):
            msg["name"] = without_slash(msg["name"])
        frames = msg.get("cond_indep_stack", ())
        msg["cond_indep_stack"] = [
            x._replace(name=without_slash(x.name) + "_" * (x.name in ("chain", "draw")))
            for x in frames
        ]
