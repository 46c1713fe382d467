"""Repair ``numpyro.infer`` after it was imported through ArviZ's lazy loader.

ArviZ 1.x puts a lazy ``numpyro`` into ``sys.modules``. If ``from numpyro.infer import MCMC`` is the
first use of it, Python executes ``numpyro.infer`` twice. The second module lacks, as attributes,
the submodules that the first one loaded, and ``arviz.from_numpyro`` fails.
"""

import sys


def mend_numpyro_infer() -> None:
    """Set the loaded submodules of ``numpyro.infer`` as its attributes."""
    parent = "numpyro.infer"
    for name, module in list(sys.modules.items()):
        head, _, tail = name.rpartition(".")
        if head == parent and not hasattr(sys.modules[parent], tail):
            setattr(sys.modules[parent], tail, module)
