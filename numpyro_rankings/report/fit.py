"""Whether the model fits: how many observed numbers the replications of it do not reproduce."""

import numpy as np

from numpyro_rankings.posterior.predictive_checks import PredictiveCheck, PredictiveChecks

MANY_OUTSIDE = 0.2  # share of the intervals of 90% that the observed numbers are outside of


def counts_outside(checks: PredictiveChecks) -> tuple[tuple[int, int], tuple[int, int]]:
    """Count the shares and the pairs that are compared, and those outside their intervals."""
    above = np.triu(np.ones(checks.pairs.observed.shape, bool), 1)
    pairs = PredictiveCheck(*(x[above] for x in checks.pairs))
    return _outside(checks.top), _outside(pairs)


def misses_something(checks: PredictiveChecks) -> bool:
    """Whether more numbers are outside their intervals than by chance."""
    number, outside = np.sum(counts_outside(checks), axis=0)
    return bool(outside > MANY_OUTSIDE * number)


def _outside(check: PredictiveCheck) -> tuple[int, int]:
    """Return how many quantities are compared, and how many are outside their interval."""
    known = ~np.isnan(check.mean) & ~np.isnan(check.observed)
    low, high = check.interval[known].T
    seen = check.observed[known]
    return int(known.sum()), int(((seen < low) | (seen > high)).sum())
