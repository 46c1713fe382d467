"""Runs of one process that share what they compile."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import numpy as np
import pytest

from numpyro_rankings.posterior import inference_data
from numpyro_rankings.run.fingerprint import describe
from numpyro_rankings.run.kernels import KernelTraits
from numpyro_rankings.run.loop import SweepLoop


@contextmanager
def shared_programs(kept: dict[str, dict] | None = None) -> Iterator[None]:
    """Compile the sweeps of equal kernels, of the same data, once for all runs in this context.

    What other runs do with their stores, and when they stop, then costs no compilation, nor does
    what the conversion to ArviZ asks the model of a kernel. That a run compiles the right program
    when it is resumed is tested without it.

    :param kept: what was shared in an earlier context, which is shared here too.
    """
    kept = {} if kept is None else kept
    kernels, programs = kept.setdefault("kernels", {}), kept.setdefault("programs", {})
    answers = kept.setdefault("answers", {})
    set_up, jitted, observed = SweepLoop.__init__, SweepLoop._jitted, inference_data._observed

    def share_kernel(loop, traits, args, kwargs, placement, settings):
        # with a kernel, the program of its init
        described = str(describe(traits.kernel, args, kwargs, None))
        if traits.is_own:
            traits = KernelTraits(kernels.setdefault(described, traits.kernel))
        set_up(loop, traits, args, kwargs, placement, settings)
        loop.described = described

    def share_program(loop, state):
        return Program(loop, state)

    class Program:
        """Instead of a jitted function: lowered, and compiled, if there is none like it."""

        def __init__(self, loop, state):
            mesh = loop.placement.mesh
            # slow tests are optimized, see conftest.py
            is_plain = jax.config.read("jax_disable_most_optimizations")
            self.key = loop.described, str(mesh), is_plain, loop._fields, loop._capacity
            self.lower_anew = lambda *args: jitted(loop, state).lower(*args)

        def lower(self, *args):
            leaves, structure = jax.tree.flatten(args)
            self.key += str(structure), str([(x.shape, x.dtype) for x in leaves])
            if self.key not in programs:
                self.lowered = self.lower_anew(*args)
            return self

        def compile(self):
            if self.key not in programs:
                programs[self.key] = self.lowered.compile()
            return programs[self.key]

    def share_observed(model, sites, args, kwargs):
        if all(model is not kernel.model for kernel in kernels.values()):
            return observed(model, sites, args, kwargs)
        leaves, structure = jax.tree.flatten((args, kwargs))
        # shared kernels are kept, so that no other model gets the id of theirs
        key = id(model), str(structure), *(np.asarray(x).tobytes() for x in leaves)
        if key not in answers:
            answers[key] = observed(model, sites, args, kwargs)
        return dict(answers[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference_data, "_observed", share_observed)
        patch.setattr(SweepLoop, "__init__", share_kernel)
        patch.setattr(SweepLoop, "_jitted", share_program)
        yield
