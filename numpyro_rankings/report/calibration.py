"""What the page shows of posterior SBC: the ranks of each quantity, and their band."""

from typing import NamedTuple

from numpyro_rankings import plots
from numpyro_rankings.posterior.calibration import PosteriorSBC
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.page import Figure, embedded_figure
from numpyro_rankings.words import plural


class CalibrationShown(NamedTuple):
    """The section on calibration."""

    in_words: str
    figure: Figure


def calibration_in_words(found: PosteriorSBC) -> str:
    """Return how the fit was checked, and what came out."""
    refits = plural(len(next(iter(found.ranks.values()))), "refit")
    assert found.num_further is not None
    further = plural(found.num_further, "further ranking")
    return f"Posterior SBC, {refits} of {further} simulated from the fit: {found.in_words}"


def calibration_shown(findings: Findings) -> CalibrationShown | None:
    """Return what the page shows of it; None if it was not asked for."""
    found = findings.calibration
    if found is None:
        return None
    figure = embedded_figure(plots.plot_posterior_sbc(found))
    return CalibrationShown(calibration_in_words(found), figure)
