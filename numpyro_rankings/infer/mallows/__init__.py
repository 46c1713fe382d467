"""Gibbs kernels for mixtures of generalized Mallows models (Meilă & Chen 2010)."""

from numpyro_rankings.infer.mallows.beta_gibbs import BetaGibbs
from numpyro_rankings.infer.mallows.slice_gibbs import SliceGibbs
from numpyro_rankings.infer.mallows.tempered import MallowsComponents

__all__ = ["BetaGibbs", "MallowsComponents", "SliceGibbs"]
