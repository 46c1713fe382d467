"""Evidence of tempered mixtures, from the log likelihoods along their ladders."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from numpyro_rankings.posterior.draws import LADDER_FIELDS, Draws

__all__ = ["LogEvidence", "log_evidence"]

_BATCHES = 5  # of a ladder, for the standard error
LEAST_DRAWS = 20
_BISECTIONS = 160  # a log likelihood may be as low as -1e30


class LogEvidence(NamedTuple):
    """The log evidence of a model, and its Monte Carlo standard error."""

    value: float
    standard_error: float


class Ladder(NamedTuple):
    """What one chain of a :class:`~numpyro_rankings.infer.TemperedMixture` says of its rungs."""

    num_components: int  # K
    powers: np.ndarray  # z, (R,)
    effective_sizes: np.ndarray  # z N, (R,)
    share_concentrations: np.ndarray  # κ, (R,)
    log_likelihoods: np.ndarray  # (draws, R)
    log_shares: np.ndarray  # sums of the log shares, (draws, R)

    def take(self, draws: slice) -> "Ladder":
        """Return some of the draws."""
        return self._replace(
            log_likelihoods=self.log_likelihoods[draws], log_shares=self.log_shares[draws]
        )

    def log_density(self, power: Any, kappa: Any, rung: Any) -> np.ndarray:
        """Return the log density at z and κ of the draws of a rung, but for the other priors."""
        number = self.num_components
        log_constant = gammaln(number * kappa) - number * gammaln(kappa)
        likelihood = power * self.log_likelihoods[:, rung]
        return likelihood + kappa * self.log_shares[:, rung] + log_constant


def log_evidence(draws: Any, effective_size: float | None = None) -> LogEvidence:
    r"""
    Log evidence of a tempered mixture, :math:`\log \int p(π_{1:N} | w, η)^z p(w, η)`.

    Each rung of a ladder is compared with the next one, whose normalising constants differ by a
    factor that the draws of both tell best [1]. The ladder begins at the prior, whose constant is
    known. All Z(z) on the way come from one ladder.

    :param draws: those of a :class:`~numpyro_rankings.infer.TemperedMixture`, as
        :meth:`Draws.of <numpyro_rankings.Draws.of>` takes them, but for samples, which lack the
        rungs: an MCMC, a :class:`~numpyro_rankings.Run`, a stored one, what
        :func:`~numpyro_rankings.to_inference_data` makes of it, or draws.
    :param effective_size: z times the number of rankings, at most that of the model. With it, the
        shares have the concentration κ of the ladder, also at its end. By default z and κ are those
        of the model.
    :return: the value, of the rankings in their given order, without the number of ways to order
        them; and its standard error, from batches of the draws and, with several ladders, from
        their differences. With few round trips draws depend on one another over more than a batch,
        and the error may be too small.
    :raises TypeError: if the draws are of another kernel.
    :raises ValueError: if there are fewer than 20 draws, if some are of the warm-up, or if the
        ladders do not reach that far.

    **References**

    1. Bennett, C. H. (1976), "Efficient estimation of free energy differences from Monte Carlo
       data", Journal of Computational Physics.

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import Rankings
       >>> from numpyro_rankings.infer import TemperedMixture
       >>> from numpyro_rankings.posterior import log_evidence
       >>> rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0]], num_items=3, counts=[9, 8])
       >>> evidence = []
       >>> for number in 1, 2:
       ...     kernel = TemperedMixture("mallows", number)
       ...     mcmc = MCMC(kernel, num_warmup=100, num_samples=200, progress_bar=False)
       ...     mcmc.run(jax.random.key(0), rankings)
       ...     evidence.append(log_evidence(mcmc).value)
       >>> evidence[0] < evidence[1]
       True
    """
    sizes = None if effective_size is None else [effective_size]
    values, errors = log_evidences(ladders_of(draws), sizes)
    return LogEvidence(float(values[0]), float(errors[0]))


def log_evidences(
    ladders: Sequence["Ladder"], effective_sizes: Sequence[float] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log evidence for each of some effective sizes, and their standard errors."""
    num_draws = len(ladders[0].log_likelihoods)
    if num_draws < LEAST_DRAWS:
        raise ValueError(f"an evidence needs at least {LEAST_DRAWS} draws, got {num_draws}")
    for ladder in ladders:
        _check_reaches(ladder, effective_sizes)
    values = np.array([_values(ladder, effective_sizes) for ladder in ladders])
    cuts = np.linspace(0, num_draws, _BATCHES + 1).astype(int)
    batches = np.array(
        [
            _values(ladder.take(slice(a, b)), effective_sizes)
            for a, b in pairwise(cuts)
            for ladder in ladders
        ]
    )
    errors = batches.std(0, ddof=1) / np.sqrt(len(batches))
    if len(values) > 1:
        # ladders that have not mixed differ by more than their batches
        errors = np.maximum(errors, values.std(0, ddof=1) / np.sqrt(len(values)))
    return values.mean(0), errors


def ladders_of(source: Any) -> list[Ladder]:
    """Return the ladder of each chain of draws of a tempered mixture."""
    draws = Draws.of(source)
    missing = [name for name in LADDER_FIELDS if name not in draws.ladder]
    if missing:
        raise TypeError(
            "an evidence needs the draws of a TemperedMixture with its extra fields, and not only "
            f"the samples: these have no {missing[0]}"
        )
    number = draws.num_components
    assert number is not None
    arrays = [np.asarray(draws.ladder[name], np.float64) for name in LADDER_FIELDS]
    if any(np.ptp(x, axis=1).any() for x in arrays[:3]):
        raise ValueError("an evidence needs draws after the warm-up, in which the rungs move")
    return [
        Ladder(number, power[-1], size[-1], kappa[-1], *scores)
        for power, size, kappa, *scores in zip(*arrays, strict=True)
    ]


def _check_reaches(ladder: Ladder, effective_sizes: Sequence[float] | None) -> None:
    most = ladder.effective_sizes[-1]
    for size in effective_sizes or ():
        if not 0 < size <= most * (1 + 1e-6):
            raise ValueError(
                f"effective_size must be positive and at most {most:g}, where the ladder ends, got "
                f"{size!r}"
            )


def _values(ladder: Ladder, effective_sizes: Sequence[float] | None) -> np.ndarray:
    """Return the log evidence for each size of one ladder, or only that of the model."""
    log_constants = np.append(0.0, np.cumsum(_log_ratios(ladder)))
    if effective_sizes is None:
        return log_constants[-1:]
    return np.array([_value_on_the_way(ladder, log_constants, size) for size in effective_sizes])


def _value_on_the_way(ladder: Ladder, log_constants: np.ndarray, effective_size: float) -> float:
    sizes, kappas = ladder.effective_sizes, ladder.share_concentrations
    last = int(np.argmax(sizes >= sizes[-1] * (1 - 1e-6)))  # of the first leg
    right = min(max(int(np.searchsorted(sizes, effective_size)), 1), last)
    pair = [right - 1, right]
    power = effective_size * ladder.powers[right] / sizes[right]
    # draws of both rungs are draws of the mixture of both, whose constants are known
    asked = np.stack([ladder.log_density(power, kappas[0], rung) for rung in pair])
    each = [
        [ladder.log_density(ladder.powers[r], kappas[r], rung) - log_constants[r] for r in pair]
        for rung in pair
    ]
    log_weights = asked - logsumexp(np.array(each), axis=1, b=0.5)
    return float(logsumexp(log_weights) - np.log(log_weights.size))


def _log_ratios(ladder: Ladder) -> np.ndarray:
    """Return the log ratios of the normalising constants of neighbours, (R - 1,) [1]."""
    rungs = np.arange(len(ladder.powers))
    z, kappa, lower, upper = ladder.powers, ladder.share_concentrations, rungs[:-1], rungs[1:]

    def gain(rung: np.ndarray) -> np.ndarray:
        new = ladder.log_density(z[upper], kappa[upper], rung)
        return new - ladder.log_density(z[lower], kappa[lower], rung)

    of_lower, of_upper = gain(lower), gain(upper)
    low = np.minimum(of_lower.min(0), of_upper.min(0)) - 1.0
    high = np.maximum(of_lower.max(0), of_upper.max(0)) + 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_low = expit(of_lower - middle).sum(0) > expit(middle - of_upper).sum(0)
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return (low + high) / 2
