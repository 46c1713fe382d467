"""How the shares of the groups depend on covariates of the judges."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from numpyro_rankings.families.base import INTERVAL
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.predict.groups import belonging_of
from numpyro_rankings.rankings import JudgeCovariates
from numpyro_rankings.words import value

_DRAWS = 500  # that means and intervals are over
_FROM, _TO = 0.1, 0.9  # quantiles of a column of numbers that are shown


class SharesBy(NamedTuple):
    """The shares of K groups at V values of covariates. Intervals hold 90%.

    - **covariate** and **value** - name of the column, and what all judges are taken to have there.
    - **num_judges** - how many judges have this value, int (V,).
    - **share** - share of each group if all judges had this value, (V, K), the mean over the draws,
      and **share_interval**, (V, K, 2).
    - **difference** - how much that is above the share with their own values, (V, K), and
      **difference_interval**, (V, K, 2).
    - **average** - share of each group with their own values, (K,), and **average_interval**.
    """

    covariate: tuple[str, ...]
    value: tuple[str, ...]
    num_judges: np.ndarray
    share: np.ndarray
    share_interval: np.ndarray
    difference: np.ndarray
    difference_interval: np.ndarray
    average: np.ndarray
    average_interval: np.ndarray

    def take(self, groups: Any) -> "SharesBy":
        """Return that of some of the groups, in some order."""
        names = "share", "share_interval", "difference", "difference_interval"
        of_values = {name: getattr(self, name)[:, groups] for name in names}
        average, interval = self.average[groups], self.average_interval[groups]
        return self._replace(**of_values, average=average, average_interval=interval)


def shares_by(
    draws: Any, covariates: JudgeCovariates | None = None, reference: Any = None
) -> SharesBy:
    """Return the share of each group at values of covariates, with intervals.

    For each level of a column of text, and for the values that a tenth of the judges are below and
    above in a column of numbers, it is the share if all judges had that value and kept their other
    ones: the mean over the judges, in each draw. Differences between judges are described, not
    explained: another value may come with much else that no column has.

    :param draws: of :class:`~numpyro_rankings.infer.TemperedMixture` with covariates: a
        :class:`~numpyro_rankings.Run` or :class:`numpyro.infer.MCMC` that has run, or
        ``mcmc.get_samples()``.
    :param covariates: those that were fitted; a run and an MCMC know them.
    :param reference: the partition whose clusters are the groups, as for
        :func:`~numpyro_rankings.predict.groups`, which says how the components of each draw stand
        for them. The groups are in the order of its labels.
    :raises ValueError: if the draws have no effects of covariates, or those of others.
    """
    fitted = Draws.of(draws)
    covariates = fitted.covariates if covariates is None else covariates
    effects = fitted.samples.get("share_effects")
    if effects is None:
        raise ValueError(
            "the draws have no effects of covariates: fit TemperedMixture as mcmc.run(key, "
            "rankings, covariates), with those of judge_covariates"
        )
    if covariates is None:
        raise ValueError("the draws do not know the covariates: give those that were fitted")
    cells, design = np.asarray(covariates.cells), np.asarray(covariates.design, float)
    if (fitted.num_points, effects.shape[-1]) != (len(cells), design.shape[1]):
        raise ValueError(
            f"the covariates are {design.shape[1]} columns of {len(cells)} judges, and those that "
            f"were fitted {effects.shape[-1]} of {fitted.num_points}"
        )
    if fitted.lacks_empty and fitted.samples["shares"].sum(-1).min() < 1.0 - 1e-3:
        raise ValueError(
            "the posterior has no shares of components that are empty in all draws: pass the run, "
            "or mcmc.get_samples()"
        )
    if fitted.labels is None:
        raise ValueError("the draws have no labels, which tell what the components stand for")
    chosen = reference_partition(fitted.labels, reference).labels
    some = fitted.take(evenly(fitted.num_draws, max(1, _DRAWS // fitted.num_chains)))
    by_draw = some.flat()
    belonging = belonging_of(some, effects.shape[2], chosen)[:, :-1, :-1]
    values = [x for term in covariates.terms for x in _values_of(term, design, cells)]
    weights = np.bincount(cells, minlength=len(design)) / len(cells)
    designs = [design, *(_with(design, term, x) for term, x, _ in values)]
    # equal rows of a design are evaluated once
    parts = [np.unique(x, axis=0, return_inverse=True) for x in designs]
    summed = [(x, np.bincount(index.ravel(), weights, len(x))) for x, index in parts]
    log_shares = np.log(by_draw["shares"].astype(float))
    shares = np.array(
        [
            [weight @ np.exp(log_softmax(log_share + x @ effect.T, axis=1)) for x, weight in summed]
            for log_share, effect in zip(
                log_shares, by_draw["share_effects"].astype(float), strict=True
            )
        ]
    )  # (D, 1 + V, C)
    of_groups = np.einsum("dvc,dcg->dvg", shares, belonging)
    average, share = of_groups[:, 0], of_groups[:, 1:]
    difference = share - average[:, None]
    return SharesBy(
        tuple(term.name for term, _, _ in values),
        tuple(x if isinstance(x, str) else value(x) for _, x, _ in values),
        np.array([number for _, _, number in values]),
        share.mean(0),
        _intervals(share),
        difference.mean(0),
        _intervals(difference),
        average.mean(0),
        _intervals(average),
    )


def _intervals(values: np.ndarray) -> np.ndarray:
    """Return the interval of each entry over the first axis, (…, 2)."""
    return np.moveaxis(np.quantile(values, INTERVAL, axis=0), 0, -1)


def _values_of(term: Any, design: np.ndarray, cells: np.ndarray) -> list[tuple[Any, Any, int]]:
    """Return the values of a covariate that are shown, with the number of judges who have each."""
    own = design[:, term.place][cells]
    if term.levels:
        coded = term.code(term.levels)
        counts = [int(np.isclose(own, x, atol=1e-4).all(1).sum()) for x in coded]
        return [(term, level, n) for level, n in zip(term.levels, counts, strict=True)]
    numbers = own[:, 0]
    low, high = np.quantile(numbers, (_FROM, _TO), method="inverted_cdf")
    if low == high:
        low, high = numbers.min(), numbers.max()
    plain = [float(f"{x * term.scale + term.center[0]:.4g}") for x in (low, high)]
    return [(term, x, int((numbers == y).sum())) for x, y in zip(plain, (low, high), strict=True)]


def _with(design: np.ndarray, term: Any, common: Any) -> np.ndarray:
    """Return the design in which all judges have a value."""
    changed = design.copy()
    changed[:, term.place] = term.code([common])
    return changed
