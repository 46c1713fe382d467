"""Finite mixtures with the labels summed out, on a ladder of powers of the likelihood."""

from numpyro_rankings.infer.tempered.kernel import TemperedMixture

__all__ = ["TemperedMixture"]
