"""Samplers of distance dependent Chinese restaurant processes (Blei & Frazier 2011)."""

from numpyro_rankings.infer.ddcrp.language import DDCRPLanguageGibbs
from numpyro_rankings.infer.ddcrp.mixture import DDCRPGibbs

__all__ = ["DDCRPGibbs", "DDCRPLanguageGibbs"]
