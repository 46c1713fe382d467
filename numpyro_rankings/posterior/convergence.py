"""R-hat and ESS of many quantities at once, as ArviZ computes them of one after the other."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy import fft, special

_BLOCK = 2**20  # so many draws are looked at at a time
_TAILS = 0.05, 0.95


Draws = np.ndarray | Sequence[np.ndarray]


def blocks(draws: Draws) -> Iterator[np.ndarray]:
    """Yield some of the quantities at a time, (quantities, chains, draws)."""
    size = max(1, _BLOCK // max(1, draws[0].size)) if len(draws) else 1
    for i in range(0, len(draws), size):
        yield np.asarray(draws[i : i + size], np.float64)


def r_hats(draws: np.ndarray, superchains: int | None = None) -> np.ndarray:
    """Return the rank-normalised split R-hat of quantities, (quantities, chains, draws).

    With **superchains**, groups of successive chains with one start, it is nested R-hat. It is NaN
    where a draw is not finite.

    **References:** Vehtari, Gelman, Simpson, Carpenter, Bürkner, "Rank-normalization, folding, and
    localization: an improved R-hat", Bayesian Analysis (2021); Margossian, Hoffman, Sountsov,
    Riou-Durand, Vehtari, Gelman, "Nested R-hat", Bayesian Analysis (2024).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return _r_hat(draws, _rank_scores(_split(draws)), superchains)


def convergence(draws: np.ndarray, superchains: int | None = None) -> np.ndarray:
    """Return bulk ESS, tail ESS and R-hat of quantities, (quantities, chains, draws).

    R-hat, as :func:`r_hats`, is NaN of a single chain, and all three are where there are fewer than
    4 draws of each chain. No quantity may be constant.

    :return: (quantities, 3).
    """
    if draws.shape[2] < 4 or not len(draws):
        return np.full((len(draws), 3), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = _rank_scores(_split(draws))
        tails = np.quantile(draws, _TAILS, axis=(1, 2))[..., None, None]
        tail = np.minimum(*(_ess(_split(draws <= q)) for q in tails))
        r_hat = np.full(len(draws), np.nan)
        if draws.shape[1] > 1:
            r_hat = _r_hat(draws, scores, superchains)
        found = np.stack([_ess(scores), tail, r_hat], axis=1)
    return np.where(_is_finite(draws)[:, None], found, np.nan)


def _is_finite(x: np.ndarray) -> np.ndarray:
    return np.isfinite(x).all(axis=(1, 2))


def _split(x: np.ndarray) -> np.ndarray:
    """Return the halves of each chain, one after the other, without a draw in the middle."""
    half = x.shape[2] // 2
    return np.stack([x[..., :half], x[..., -half:]], axis=2).reshape(len(x), -1, half)


def _rank_scores(x: np.ndarray) -> np.ndarray:
    """Return Blom's normal scores of the ranks among all draws of a quantity; ties share a rank."""
    flat = x.reshape(len(x), -1)
    size = flat.shape[1]
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    is_first = np.ones(flat.shape, bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.flatnonzero(is_first)
    lengths = np.diff(first, append=flat.size)
    # twice the mean rank of each run of equal draws is a whole number
    twice = np.repeat(2 * (first % size) + lengths + 1, lengths).reshape(flat.shape)
    table = special.ndtri((np.arange(2 * size + 1) / 2 - 0.375) / (size + 0.25))
    scores = np.empty_like(flat)
    np.put_along_axis(scores, order, table[twice], axis=1)
    return scores.reshape(x.shape)


def _r_hat(x: np.ndarray, scores: np.ndarray, superchains: int | None) -> np.ndarray:
    """Return R-hat, the larger one of location and of spread, given the scores of the former."""
    halves = _split(x)
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    of = _ratio if superchains is None else _nested_ratio(superchains)
    found = np.maximum(of(scores), of(_rank_scores(folded)))
    return np.where(_is_finite(x), found, np.nan)


def _ratio(z: np.ndarray) -> np.ndarray:
    length = z.shape[2]
    between, within = z.mean(2).var(1, ddof=1), z.var(2, ddof=1).mean(1)
    return np.sqrt(between / within + (length - 1) / length)


def _nested_ratio(superchains: int) -> Callable[[np.ndarray], np.ndarray]:
    def of(z: np.ndarray) -> np.ndarray:
        z = z.reshape(len(z), superchains, -1, z.shape[2])
        means = z.mean(3)
        within = z.var(3, ddof=1).mean(2) + means.var(2, ddof=1)  # W_k and B_k, equation 7
        between = means.mean(2).var(1, ddof=1)  # equation 6
        return np.sqrt(1 + between / within.mean(1))  # equation 8

    return of


def _ess(x: np.ndarray) -> np.ndarray:
    """Return the ESS of chains, with Geyer's initial monotone sequence; the size if constant."""
    x = x.astype(np.float64)
    _, chains, n = x.shape
    means = x.mean(2)
    length = fft.next_fast_len(2 * n, real=True)
    spectrum = fft.rfft(x - means[..., None], length, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(1)
    covariance = fft.irfft(power, length, axis=1)[:, :n] / n
    variance = covariance[:, :1] * n / (n - 1)
    total = covariance[:, :1] + (means.var(1, ddof=1)[:, None] if chains > 1 else 0)
    rho = 1 - (variance - covariance) / total
    rho[:, 0] = 1
    pairs = rho[:, : n // 2 * 2].reshape(len(x), -1, 2).sum(2)
    most = max(0, -(-(n - 4) // 2))  # the pairs before it are added up at most
    is_over = pairs[:, : most + 1] <= 0
    is_over[:, most] = True
    stop = is_over.argmax(1)
    monotone = np.minimum.accumulate(pairs, axis=1)
    summed = np.where(np.arange(pairs.shape[1]) < stop[:, None], monotone, 0).sum(1)
    row = np.arange(len(x))
    last = np.where(pairs[row, stop] >= 0, rho[row, 2 * stop], np.maximum(rho[row, 2 * stop], 0))
    size = chains * n
    found = size / np.maximum(2 * summed - 1 + last, 1 / np.log10(size))
    return np.where(np.ptp(x, axis=(1, 2)) < 1e-15, size, found)
