"""Gibbs kernels for models of rankings."""

from numpyro_rankings.infer.mallows import BetaGibbs, SliceGibbs

__all__ = ["BetaGibbs", "SliceGibbs"]
