"""Mend what ArviZ's lazy import leaves of NumPyro.

ArviZ 1.x puts a lazy ``numpyro`` into ``sys.modules``. If ``from numpyro.infer import MCMC`` is
the first use of it, Python runs ``numpyro.infer`` twice; the second module lacks the submodules
that the first one has loaded as its attributes, and ``arviz.from_numpyro`` fails.
"""

import sys


def mend_numpyro_infer() -> None:
    """Give the loaded module ``numpyro.infer`` its loaded submodules as attributes."""
    parent = "numpyro.infer"
    for name, module in list(sys.modules.items()):
        head, _, tail = name.rpartition(".")
        if head == parent and not hasattr(sys.modules[parent], tail):
            setattr(sys.modules[parent], tail, module)
