"""A run of a kernel that adapts in its own warm-up: tempered mixtures."""

import signal

import numpy as np
import pytest
from helpers.ranking_kernels import TEMPERED, table
from jax import random

from numpyro_rankings import Run, open_run
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs, TemperedMixture
from numpyro_rankings.run.kernels import KernelTraits


def test_default_warm_up():
    kernels = TemperedMixture("mallows", 2), SliceGibbs(), PlackettLuceGibbs()
    assert [KernelTraits(kernel).num_warmup for kernel in kernels] == [200, 0, 0]


@pytest.mark.slow
def test_resumed_in_the_warm_up_and_after_it(tmp_path):
    """To the last bit, with the fields of the ladder in the sample statistics."""
    make, settings = TEMPERED["tempered-plackett-luce"], {"num_chains": 2, "thinning": 2}
    settings |= {"num_warmup": 30, "key": random.key(0), "burn_in": 0.0}
    settings["extra_fields"] = ("rung_power", "rejection", "round_trips")
    alone = Run(make(), table(), **settings)
    alone.extend(20)
    run = Run(make(), table(), store=tmp_path / "a.run", **settings)
    with pytest.raises(KeyboardInterrupt):
        run.extend(20, after_chunk=lambda run: signal.raise_signal(signal.SIGINT))
    assert run.num_draws == 0 < run.num_sweeps < 30
    run.close()
    for sweeps in (4, 16):
        run = Run.resume(tmp_path / "a.run", make(), table(), burn_in=0.0)
        run.extend(sweeps)
        run.close()
    assert run.num_sweeps == 50
    expected = alone.to_inference_data()
    stored = open_run(tmp_path / "a.run", burn_in=0.0)
    for found in (run.to_inference_data(), stored.to_inference_data()):
        for name in ("shares", "weights", "assignments", "log_joint"):
            np.testing.assert_array_equal(found["posterior"][name], expected["posterior"][name])
        stats = found["sample_stats"]
        assert stats["rung_power"].shape == (2, 10, 4) and stats["rejection"].shape == (2, 10, 3)
        for name in stats.data_vars:
            np.testing.assert_array_equal(stats[name], expected["sample_stats"][name])
        assert (np.ptp(stats["rung_power"].values, axis=1) == 0).all()  # placed before
