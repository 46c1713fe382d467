"""What stopping when the draws look good enough does to intervals."""

import jax.numpy as jnp
import numpy as np
import pytest
from helpers.toy_kernel import Autoregressive, posterior
from jax import random

import numpyro_rankings.run.loop as loop
from numpyro_rankings import Run

REPLICATES, PERSISTENCE = 500, 0.9


def covered(replicate, kernel):
    """Whether the 90% interval of a stopped run has the truth, and the rank of the truth."""
    rng = np.random.default_rng(replicate)
    truth = rng.normal()
    data = jnp.asarray(truth + rng.normal(size=3), jnp.float32)
    run = Run(kernel, data, key=random.key(replicate), num_warmup=0)
    assert run.until(minutes=5)
    draws = run.get_samples()["mu"]
    low, high = np.quantile(draws, [0.05, 0.95])
    mean, sd = posterior(data)
    error = (draws.mean() - float(mean)) / float(sd)
    return low < truth < high, error * np.sqrt(run.last_check.ess), run.num_draws


@pytest.mark.slow
def test_intervals_of_stopped_runs(monkeypatch):
    """500 runs that stop as early as they can, with the default goals and truths from the prior."""
    monkeypatch.setattr(loop, "_MOST_DRAWS", 100)  # a check after each
    kernel = Autoregressive(PERSISTENCE)
    found = np.array([covered(replicate, kernel) for replicate in range(REPLICATES)])
    coverage, errors, lengths = found.T
    print(f"coverage {coverage.mean():.3f}, standardised errors of the mean: sd {errors.std():.2f}")
    print(f"draws of a chain: median {np.median(lengths):.0f}, {lengths.min()} to {lengths.max()}")
    assert 0.88 <= coverage.mean() <= 0.92
    # the mean of a stopped run is no worse than its ESS says, by more than a quarter
    assert errors.std() < 1.25
