"""What covariates of the items do to their weights: effects, the share explained, new items.

They are of draws of :class:`~numpyro_rankings.infer.PlackettLuceRegressionGibbs`, in which the
weight of an item is :math:`e^{x'β}` times a residual, Gamma(a, 1).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from numpyro_rankings.families.base import interval_of
from numpyro_rankings.ops.sampling import draw_log_gamma
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.rankings import ItemCovariates

if TYPE_CHECKING:
    import pandas as pd

# Functions import pandas, which takes long to load and is not always needed.


_LOG_RANGE = -700.0, 700.0  # of odds that are not 0 or infinite as numbers


class ItemEffects(NamedTuple):
    """Effects of p covariates of the items. Intervals hold 90%.

    - **names** - of the effects, and **steps**, what each is of, in words.
    - **effect** - the change of the log weight, (p,), and **effect_interval**, (p, 2).
    - **odds** - the factor :math:`e^β` of the odds of being chosen over an item that is otherwise
      equal, (p,): of the mean effect; and **odds_interval**, (p, 2).
    - **probability** - that the effect is positive, (p,).
    - **explained** - share of the variance of the log weights of the items that the covariates
      explain, and **explained_interval**.
    """

    names: tuple[str, ...]
    steps: tuple[str, ...]
    effect: np.ndarray
    effect_interval: np.ndarray
    probability: np.ndarray
    explained: float
    explained_interval: tuple[float, float]

    @property
    def odds(self) -> np.ndarray:
        """The factors of the odds, (p,)."""
        return np.exp(self.effect)

    @property
    def odds_interval(self) -> np.ndarray:
        """Their intervals, (p, 2)."""
        return np.exp(self.effect_interval)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with a row for each covariate."""
        import pandas as pd

        low, high = self.effect_interval.T
        return pd.DataFrame(
            {
                "covariate": self.names,
                "step": self.steps,
                "effect": self.effect,
                "effect_low": low,
                "effect_high": high,
                "odds": self.odds,
                "odds_low": np.exp(low),
                "odds_high": np.exp(high),
                "probability_positive": self.probability,
            }
        )


def item_effects(source: Any, covariates: ItemCovariates) -> ItemEffects:
    """
    Effects of covariates of the items on their weights, and how much they explain.

    The share that is explained is, in each draw, the variance of x'β over the items beside the sum
    of this and that of the residuals [1].

    :param source: a run, an ``MCMC``, ArviZ data or samples, as in
        :meth:`~numpyro_rankings.Draws.of`, of
        :class:`~numpyro_rankings.infer.PlackettLuceRegressionGibbs`.
    :param covariates: those that were fitted, made by :func:`~numpyro_rankings.item_covariates`.
    :raises ValueError: for draws of another model, or of other covariates.

    **References:**

    1. Gelman, A., Goodrich, B., Gabry, J., Vehtari, A. (2019), "R-squared for Bayesian regression
       models", The American Statistician 73.
    """
    weights, effects, _ = _samples_of(source, covariates)
    eta = effects @ covariates.values.T.astype(float)
    fitted = eta.var(1)
    explained = fitted / (fitted + (np.log(weights) - eta).var(1))
    return ItemEffects(
        tuple(covariates.names),
        tuple(covariates.steps),
        effects.mean(0),
        np.array([interval_of(x) for x in effects.T]),
        (effects > 0).mean(0),
        float(explained.mean()),
        interval_of(explained),
    )


def worths_of_new_items(
    source: Any, covariates: ItemCovariates, df: Any, item: str | None = None, *, seed: int = 0
) -> "pd.DataFrame":
    r"""
    What is to be expected of items that nobody has ranked, by their covariates.

    In each draw a new item has a residual of its own, so that the intervals hold what the
    covariates do not tell too.

    :param source: as in :func:`item_effects`.
    :param covariates: those that were fitted.
    :param df: a data frame with a row for each new item, and the columns of the fitted table.
    :param item: the column with the names, as in :func:`~numpyro_rankings.item_covariates`.
    :param seed: of the residuals.
    :return: a row for each new item: ``odds``, of being chosen over a fitted item of average log
        weight, as the median with an interval of 90% (``odds_low``, ``odds_high``), and
        ``first_choice``, the probability that it is chosen first if it alone is added to the fitted
        items, with its interval.
    :raises RankingsError: as :meth:`~numpyro_rankings.ItemCovariates.of_others` does.
    :raises ValueError: for draws of another model, or of other covariates.
    """
    import pandas as pd

    values, names = covariates.of_others(df, item)
    weights, effects, shape = _samples_of(source, covariates)
    rng, fitted = np.random.default_rng(seed), covariates.values.astype(float)
    eta = effects @ fitted.T
    # w = s p on the scale of the residuals: s | p ~ Gamma(n a, Σ p exp(-η))
    rate = np.sum(weights * np.exp(-eta), axis=1)
    log_total = draw_log_gamma(rng, len(fitted) * shape) - np.log(rate)
    log_new = effects @ values.T.astype(float)
    log_new += draw_log_gamma(rng, np.broadcast_to(shape[:, None], log_new.shape))
    log_odds = log_new - (log_total + np.log(weights).mean(1))[:, None]
    first = expit(log_new - log_total[:, None])
    rows = []
    for k, name in enumerate(names):
        of_odds = np.median(log_odds[:, k]), *interval_of(log_odds[:, k])
        odds = np.exp(np.clip(of_odds, *_LOG_RANGE))
        rows.append((name, *odds, first[:, k].mean(), *interval_of(first[:, k])))
    columns = ["item", "odds", "odds_low", "odds_high"]
    columns += ["first_choice", "first_choice_low", "first_choice_high"]
    return pd.DataFrame(rows, columns=columns)


def _samples_of(
    source: Any, covariates: ItemCovariates
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights (D, n), the effects (D, p) and the shape of the residuals (D,)."""
    samples = Draws.of(source).samples
    found = samples.get("item_effects")
    if found is None:
        raise ValueError("the draws have no effects of covariates of the items")
    weights, effects = (
        np.asarray(x, float).reshape(-1, x.shape[-1]) for x in (samples["weights"], found)
    )
    fitted = weights.shape[1], effects.shape[1]
    if fitted != covariates.values.shape:
        raise ValueError(
            f"the draws are of {fitted[0]} items and {fitted[1]} covariates, and not of "
            f"{covariates.values.shape[0]} and {covariates.values.shape[1]}"
        )
    return weights, effects, np.asarray(samples["residual_shape"], float).ravel()
