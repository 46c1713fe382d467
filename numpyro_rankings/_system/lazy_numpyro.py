"""Repair NumPyro after it was imported through ArviZ's lazy loader.

ArviZ 1.x puts a lazy ``numpyro`` into ``sys.modules``. If an import of a package in it, such as
``from numpyro.infer import MCMC`` or ``import numpyro.distributions as dist``, is the first use of
it, Python executes that package twice. The second module lacks, as attributes, the submodules that
the first one loaded: ``arviz.from_numpyro`` fails, and so does ``numpyro.factor``.
"""

import sys


def mend_numpyro() -> None:
    """Load a lazy NumPyro, and set the loaded submodules of its packages as their attributes."""
    if "numpyro" not in sys.modules:
        return
    getattr(sys.modules["numpyro"], "__version__")  # noqa: B009 - loads it
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if parent.split(".")[0] == "numpyro" and not hasattr(sys.modules[parent], child):
            setattr(sys.modules[parent], child, module)
