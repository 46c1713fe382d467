"""Runs: chunks of sweeps, a store that survives a kill, and stopping when the answer is good."""

from numpyro_rankings.run.errors import StoreError as StoreError
from numpyro_rankings.run.run import Run as Run
from numpyro_rankings.run.stored import open_run as open_run
