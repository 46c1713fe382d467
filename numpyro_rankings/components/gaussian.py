"""Gaussian families: with known noise, unknown covariance, or unknown variance per dimension."""

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jax.scipy.linalg import solve_triangular

from numpyro_rankings.components.family import Family, check_points
from numpyro_rankings.ops.checks import as_array, is_real, is_traced, positive_number, refuse_masked
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.ops.special import log_gamma_ratio, log_gamma_rest
from numpyro_rankings.ops.sums import sum_by_label, sum_by_label_in_blocks

_MANY = 2**14  # points whose sums are taken in blocks
_FEW_DIMENSIONS = 8  # dimensions that are written out one by one, which is faster on CPUs
_SMALL_MATRIX = 4  # dimensions up to which matrices are factorised by sums that are written out
_LOG_2PI = math.log(2.0 * math.pi)


class Moments(NamedTuple):
    """Moments of points about their own mean, so that nothing cancels in float32."""

    size: Array  # number of points, (…)
    mean: Array  # (…, d), 0 if there are no points
    scatter: Array  # Σ of the squares of x - mean: (…), (…, d) or (…, d, d)


class MeanOnly(NamedTuple):
    """Parameters of :class:`GaussianMean`: the **mean**, (…, d)."""

    mean: Array


class MeanAndPrecision(NamedTuple):
    """Parameters of :class:`NormalGamma`: the **mean** and the **log_precision**, (…, d)."""

    mean: Array
    log_precision: Array


class MeanAndRoot(NamedTuple):
    """Parameters of :class:`NormalInverseWishart`."""

    mean: Array  # (…, d)
    root: Array  # R, lower triangular, with Σ⁻¹ = Rᵀ R, (…, d, d)
    log_density: Array  # log density of a point at the mean, (…)


class _Gaussian(Family):
    """Base of the Gaussian families, which differ in the squares they sum and in the marginals."""

    _dimension: int | None = None

    @staticmethod
    @abstractmethod
    def _squares(x: Array) -> Array:
        """Squares of differences x, (…, d): their sum, each of them, or all pairwise products."""

    def statistics(self, data: Any) -> Moments:
        refuse_masked("points", data)
        points = jnp.asarray(data, float)
        return Moments(jnp.ones(len(points)), points, jnp.zeros_like(self._squares(points)))

    def add(self, cluster: Moments, other: Moments) -> Moments:
        size = cluster.size + other.size
        share = other.size / jnp.maximum(size, 1.0)
        step = other.mean - cluster.mean
        mean = cluster.mean + share[..., None] * step
        between = self._times(cluster.size * share, self._squares(step))
        return Moments(size, mean, cluster.scatter + other.scatter + between)

    def subtract(self, cluster: Moments, other: Moments) -> Moments:
        size = cluster.size - other.size
        some, share = size > 0.5, other.size / jnp.maximum(size, 1.0)
        step = other.mean - cluster.mean
        mean = jnp.where(some[..., None], cluster.mean - share[..., None] * step, 0.0)
        between = self._times(cluster.size * share, self._squares(step))
        scatter = cluster.scatter - other.scatter - between
        # a single point has no scatter, whatever rounding leaves
        is_more = (size > 1.5).astype(float)
        return Moments(jnp.where(some, size, 0.0), mean, self._times(is_more, scatter))

    def of_clusters(self, points: Moments, labels: Array, num_clusters: int) -> Moments:
        if len(labels) >= _MANY:
            return self._sum_large_clusters(points, labels, num_clusters)
        size = sum_by_label(points.size, labels, num_clusters)
        some = jnp.maximum(size, 1.0)[:, None]
        mean = sum_by_label(points.size[:, None] * points.mean, labels, num_clusters) / some
        # once more about that mean, because a sum of 10^5 numbers of one sign has lost digits
        rest = points.size[:, None] * (points.mean - mean[labels])
        mean += sum_by_label(rest, labels, num_clusters) / some
        squares = self._times(points.size, self._squares(points.mean - mean[labels]))
        return Moments(size, mean, sum_by_label(points.scatter + squares, labels, num_clusters))

    def _sum_large_clusters(self, points: Moments, labels: Array, num_clusters: int) -> Moments:
        """The same in two passes over the points, summed in blocks."""
        number, d = len(labels), points.mean.shape[-1]
        size = points.size[:, None]
        first = jnp.concatenate([size, size * points.mean], axis=1)
        first = sum_by_label_in_blocks(first, labels, num_clusters)
        total, some = first[:, 0], jnp.maximum(first[:, :1], 1.0)
        mean = first[:, 1:] / some
        # about that mean, which a sum of 10^5 numbers of one sign does not give to all digits
        step = points.mean - mean[labels]
        squares = points.scatter + self._times(points.size, self._squares(step))
        second = jnp.concatenate([size * step, squares.reshape(number, -1)], axis=1)
        second = sum_by_label_in_blocks(second, labels, num_clusters)
        rest = second[:, :d] / some
        scatter = second[:, d:].reshape(num_clusters, *squares.shape[1:])
        return Moments(total, mean + rest, scatter - self._times(total, self._squares(rest)))

    def project(self, key: Array, points: Moments) -> Array:
        direction = random.normal(key, points.mean.shape[-1:])
        return jnp.dot(points.mean, direction, precision="highest")

    def _times(self, factor: Array, squares: Array) -> Array:
        """Multiply squares by a factor that has only their leading axes."""
        return factor.reshape(factor.shape + (1,) * (squares.ndim - factor.ndim)) * squares

    def check(self, data: Any) -> None:
        check_points(data, self._dimension)


class GaussianMean(_Gaussian):
    r"""
    Points in d dimensions with Gaussian noise of known size about an unknown mean.

    .. math:: μ \sim \mathrm{N}(m_0, s_0^2 I), \quad x_i \mid μ \sim \mathrm{N}(μ, s^2 I).

    :param prior_scale: :math:`s_0`, standard deviation of the means of clusters.
    :param noise_scale: :math:`s`, standard deviation of points about the mean of their cluster.
    :param prior_mean: :math:`m_0`, a number or (d,).

    .. doctest::

       >>> from numpyro_rankings.components import GaussianMean
       >>> family = GaussianMean(prior_scale=2.0, noise_scale=1.0)
       >>> point = family.statistics([[0.5]])
       >>> round(float(family.log_marginal(point)[0]), 4)  # N(0, 5)
       -1.7487
    """

    def __init__(self, prior_scale: float, noise_scale: float, prior_mean: Any = 0.0) -> None:
        self.prior_scale = positive_number("prior_scale", prior_scale)
        self.noise_scale = positive_number("noise_scale", noise_scale)
        self.prior_mean = _vector("prior_mean", prior_mean)
        self._dimension = len(self.prior_mean) if self.prior_mean.ndim else None

    @staticmethod
    def _squares(x: Array) -> Array:
        return jnp.sum(x * x, axis=-1)

    def log_marginal(self, cluster: Moments) -> Array:
        d, variance = cluster.mean.shape[-1], self.noise_scale**2
        spread = 1.0 + cluster.size * (self.prior_scale**2 / variance)
        off = self._squares(cluster.mean - self.prior_mean)
        squares = (cluster.scatter + cluster.size / spread * off) / variance
        log_noise = cluster.size * _log(2.0 * math.pi * variance)
        return -0.5 * (d * (log_noise + jnp.log(spread)) + squares)

    def log_union(self, cluster: Moments, other: Moments) -> Array:
        d, variance = cluster.mean.shape[-1], self.noise_scale**2
        ratio = self.prior_scale**2 / variance

        def off(moments: Moments) -> tuple[Array, Array]:
            spread = 1.0 + moments.size * ratio
            return jnp.log(spread), moments.size / spread * self._squares(
                moments.mean - self.prior_mean
            )

        both = self.add(cluster, other)
        share = cluster.size * other.size / jnp.maximum(both.size, 1.0)
        between = share * self._squares(other.mean - cluster.mean)
        (log_both, of_both), (log_one, of_one), (log_two, of_two) = map(off, (both, cluster, other))
        squares = between + of_both - of_one - of_two
        return -0.5 * (d * (log_both - log_one - log_two) + squares / variance)

    def log_predictive(self, cluster: Moments, point: Moments) -> Array:
        d, variance = point.mean.shape[-1], self.noise_scale**2
        ratio = self.prior_scale**2 / variance
        spread = 1.0 + cluster.size * ratio
        weight = (cluster.size * ratio / spread)[..., None]
        center = self.prior_mean + weight * (cluster.mean - self.prior_mean)
        spread = variance * (1.0 + ratio / spread)
        squares = self._squares(point.mean - center) / spread
        return -0.5 * (d * jnp.log(2.0 * math.pi * spread) + squares)

    def draw_parameters(self, key: Array, cluster: Moments) -> MeanOnly:
        ratio = self.prior_scale**2 / self.noise_scale**2
        spread = (1.0 + cluster.size * ratio)[..., None]
        weight = cluster.size[..., None] * ratio / spread
        center = self.prior_mean + weight * (cluster.mean - self.prior_mean)
        scale = self.prior_scale / jnp.sqrt(spread)
        return MeanOnly(center + scale * random.normal(key, cluster.mean.shape))

    def log_likelihood(self, parameters: MeanOnly, point: Moments) -> Array:
        d, variance = point.mean.shape[-1], self.noise_scale**2
        squares = jnp.zeros(())
        for step in _steps(point.mean, parameters.mean):
            squares = squares + step * step
        return -0.5 * (d * _log(2.0 * math.pi * variance) + squares / variance)


class NormalGamma(_Gaussian):
    r"""
    Points whose dimensions are independent, each with an unknown mean and variance.

    .. math:: λ_k \sim \mathrm{Gamma}(a, b), \quad μ_k \mid λ_k \sim \mathrm{N}(m_k, 1/(κ λ_k)),
        \quad x_{ik} \mid μ, λ \sim \mathrm{N}(μ_k, 1/λ_k).

    :param prior_mean: m, a number or (d,).
    :param prior_size: κ, how many points the prior mean counts for.
    :param shape: a.
    :param rate: b, a number or (d,).
    """

    def __init__(
        self, prior_mean: Any = 0.0, prior_size: float = 1.0, shape: float = 1.0, rate: Any = 1.0
    ) -> None:
        self.prior_size = positive_number("prior_size", prior_size)
        self.shape = positive_number("shape", shape)
        self.prior_mean, self.rate = _vector("prior_mean", prior_mean), _vector("rate", rate)
        if not is_traced(self.rate) and not np.all(self.rate > 0):
            raise ValueError(f"rate must be positive, got {rate!r}")
        lengths = {len(x) for x in (self.prior_mean, self.rate) if x.ndim}
        if len(lengths) > 1:
            raise ValueError(f"prior_mean and rate have different lengths: {sorted(lengths)}")
        self._dimension = lengths.pop() if lengths else None

    @staticmethod
    def _squares(x: Array) -> Array:
        return x * x

    def _posterior(self, cluster: Moments) -> tuple[Array, Array, Array, Array]:
        """κ_n, a_n, b_n and the mean, for each cluster; b_n and the mean also by dimension."""
        size = cluster.size[..., None]
        number = self.prior_size + size
        step = cluster.mean - self.prior_mean
        rate = self.rate + 0.5 * cluster.scatter
        rate = rate + 0.5 * self.prior_size * size / number * step**2
        return number, self.shape + 0.5 * size, rate, self.prior_mean + size / number * step

    def log_marginal(self, cluster: Moments) -> Array:
        number, _, rate, _ = self._posterior(cluster)
        size = cluster.size[..., None]
        each = log_gamma_ratio(self.shape, 0.5 * size) - 0.5 * size * math.log(2.0 * math.pi)
        each = each - self.shape * jnp.log(rate / self.rate) - 0.5 * size * jnp.log(rate)
        each = each - 0.5 * jnp.log(number / self.prior_size)
        return jnp.sum(jnp.broadcast_to(each, cluster.mean.shape), axis=-1)

    def log_predictive(self, cluster: Moments, point: Moments) -> Array:
        number, shape, rate, center = self._posterior(cluster)
        scale = 2.0 * rate * (number + 1.0) / number
        each = log_gamma_ratio(shape, 0.5) - 0.5 * jnp.log(math.pi * scale)
        each = each - (shape + 0.5) * jnp.log1p((point.mean - center) ** 2 / scale)
        return jnp.sum(each, axis=-1)

    def log_union(self, cluster: Moments, other: Moments) -> Array:
        both = self.add(cluster, other)
        mine, its, ours = (self._log_curve(moments) for moments in (cluster, other, both))
        rates = [self._log_mean_rate(moments) for moments in (cluster, other, both)]
        # terms that grow with the size are differences of the log variances
        sizes = (0.5 * moments.size[..., None] for moments in (cluster, other))
        near, far = (n * (rate - rates[2]) for n, rate in zip(sizes, rates[:2], strict=True))
        each = ours - mine - its + near + far
        return jnp.sum(jnp.broadcast_to(each, both.mean.shape), axis=-1)

    def _log_mean_rate(self, cluster: Moments) -> Array:
        """log b_n / a_n, by dimension."""
        _, shape, rate, _ = self._posterior(cluster)
        return jnp.log(rate / shape)

    def _log_curve(self, cluster: Moments) -> Array:
        """The log marginal by dimension, less what is linear in the size and -n/2 log(b_n/a_n)."""
        number, shape, rate, _ = self._posterior(cluster)
        half = 0.5 * cluster.size[..., None]
        each = log_gamma_rest(self.shape, half) + half * jnp.log1p(4.0 / shape)
        each = each - self.shape * jnp.log(rate / self.rate)
        return each - 0.5 * jnp.log(number / self.prior_size)

    def draw_parameters(self, key: Array, cluster: Moments) -> MeanAndPrecision:
        number, shape, rate, center = self._posterior(cluster)
        key_precision, key_mean = random.split(key)
        shapes = jnp.broadcast_to(shape, cluster.mean.shape)
        log_precision = sample_log_gamma(key_precision, shapes) - jnp.log(rate)
        scale = jnp.exp(-0.5 * log_precision) / jnp.sqrt(number)
        mean = center + scale * random.normal(key_mean, cluster.mean.shape)
        return MeanAndPrecision(mean, log_precision)

    def log_likelihood(self, parameters: MeanAndPrecision, point: Moments) -> Array:
        log_precision = parameters.log_precision
        total = 0.5 * jnp.sum(log_precision - _LOG_2PI, axis=-1)
        for j, step in enumerate(_steps(point.mean, parameters.mean)):
            total = total - 0.5 * jnp.exp(log_precision[..., j]) * step * step
        return total


class NormalInverseWishart(_Gaussian):
    r"""
    Points in d dimensions with an unknown mean and covariance.

    .. math:: Σ \sim \mathrm{IW}(ν, Ψ), \quad μ \mid Σ \sim \mathrm{N}(m_0, Σ/κ),
        \quad x_i \mid μ, Σ \sim \mathrm{N}(μ, Σ).

    :param prior_mean: :math:`m_0`, (d,).
    :param prior_size: κ, how many points the prior mean counts for.
    :param df: ν, degrees of freedom, more than d - 1.
    :param scale: Ψ, (d, d), symmetric and positive definite; the mean of Σ is Ψ/(ν - d - 1).

    **References:**

    1. Murphy, K. P. (2007), "Conjugate Bayesian analysis of the Gaussian distribution", Section 9.
    """

    def __init__(self, prior_mean: Any, prior_size: float, df: float, scale: Any) -> None:
        self.prior_size = positive_number("prior_size", prior_size)
        self.prior_mean = _vector("prior_mean", prior_mean)
        refuse_masked("scale", scale)
        self.scale: Any = as_array(scale).astype(float)
        if self.prior_mean.ndim != 1:
            raise ValueError(f"prior_mean must be an array (d,), got {prior_mean!r}")
        d = self._dimension = len(self.prior_mean)
        self._log_det = _log_det_of(self.scale, d)
        number = as_array(df)
        is_number = number.shape == () and is_real(number)
        if not is_number or not (is_traced(number) or d - 1 < float(number) < np.inf):
            raise ValueError(f"df must be more than d - 1 = {d - 1}, got {df!r}")
        self.df = number.astype(float) if is_traced(number) else float(number)

    @staticmethod
    def _squares(x: Array) -> Array:
        return x[..., :, None] * x[..., None, :]

    def _posterior(self, cluster: Moments) -> tuple[Array, Array, Array, Array]:
        """κ_n, ν_n, the mean, and Ψ_n/ν_n."""
        number, df = self.prior_size + cluster.size, self.df + cluster.size
        step = cluster.mean - self.prior_mean
        share = cluster.size / number
        matrix = self.scale + cluster.scatter
        matrix = matrix + self._times(self.prior_size * share, self._squares(step))
        return number, df, self.prior_mean + share[..., None] * step, self._times(1.0 / df, matrix)

    def log_marginal(self, cluster: Moments) -> Array:
        d, half = len(self.prior_mean), 0.5 * cluster.size
        number, df, _, matrix = self._posterior(cluster)
        log_det = _log_det_and_square(matrix)[0]
        # ln Γ_d(ν_n/2) / Γ_d(ν/2), without the part that cancels against |Ψ_n|
        start = 0.5 * (self.df - jnp.arange(d, dtype=float))
        gammas = jnp.sum(log_gamma_ratio(start, half[..., None]), axis=-1)
        log_marginal = gammas - half * d * (math.log(math.pi) + jnp.log(df))
        log_marginal -= half * log_det
        # Ψ_n is ν_n times the matrix that was factorised
        log_marginal -= 0.5 * self.df * (log_det + d * jnp.log(df) - self._log_det)
        return log_marginal - 0.5 * d * jnp.log(number / self.prior_size)

    def log_predictive(self, cluster: Moments, point: Moments) -> Array:
        d = len(self.prior_mean)
        number, df, center, matrix = self._posterior(cluster)
        log_det, square = _log_det_and_square(matrix, point.mean - center)
        weight = number / (number + 1.0)
        log_predictive = _log_gamma_step(0.5 * (df + 1.0 - d), d) - 0.5 * log_det
        log_predictive -= 0.5 * d * jnp.log(math.pi * df / weight)
        return log_predictive - 0.5 * (df + 1.0) * jnp.log1p(weight / df * square)

    def log_union(self, cluster: Moments, other: Moments) -> Array:
        both = self.add(cluster, other)
        (mine, mine_det), (its, its_det), (ours, det) = map(self._log_curve, (cluster, other, both))
        # terms that grow with the size are differences of the log determinants
        near, far = cluster.size * (mine_det - det), other.size * (its_det - det)
        return ours - mine - its + 0.5 * (near + far)

    def _log_curve(self, cluster: Moments) -> tuple[Array, Array]:
        """The log marginal, less what is linear in the size and -n/2 l, and l = log |Ψ_n/ν_n|."""
        d, half = len(self.prior_mean), 0.5 * cluster.size
        number, df, _, matrix = self._posterior(cluster)
        log_det = _log_det_and_square(matrix)[0]
        index = jnp.arange(d, dtype=float)
        gammas = log_gamma_rest(0.5 * (self.df - index), half[..., None])
        gammas += half[..., None] * jnp.log1p((8.0 - index) / df[..., None])
        log_curve = jnp.sum(gammas, axis=-1) - 0.5 * d * jnp.log(number / self.prior_size)
        return log_curve - 0.5 * self.df * (log_det + d * jnp.log(df) - self._log_det), log_det

    def draw_parameters(self, key: Array, cluster: Moments) -> MeanAndRoot:
        # Ψ_n = ν_n F Fᵀ; with B Bᵀ from a Wishart distribution with scale I, B upper triangular,
        # R = Bᵀ F⁻¹ / √ν_n is lower triangular and Rᵀ R has the distribution of Σ⁻¹
        d = len(self.prior_mean)
        number, df, center, matrix = self._posterior(cluster)
        factor = jnp.linalg.cholesky(matrix)
        key_diagonal, key_rest, key_mean = random.split(key, 3)
        shapes = 0.5 * (df[..., None] - jnp.arange(d - 1, -1, -1, dtype=float))
        log_diagonal = 0.5 * (math.log(2.0) + sample_log_gamma(key_diagonal, shapes))
        lower = jnp.tril(random.normal(key_rest, factor.shape), -1)
        lower += jnp.exp(log_diagonal)[..., None] * jnp.eye(d)
        inverse = solve_triangular(factor, jnp.broadcast_to(jnp.eye(d), factor.shape), lower=True)
        product = jnp.matmul(lower, inverse, precision="highest")
        root = self._times(1.0 / jnp.sqrt(df), product)
        noise = random.normal(key_mean, (*factor.shape[:-1], 1))
        step = solve_triangular(root, noise, lower=True)[..., 0]
        mean = center + step / jnp.sqrt(number)[..., None]
        log_roots = jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1))
        return MeanAndRoot(mean, root, jnp.sum(log_roots - 0.5 * _LOG_2PI, axis=-1))

    def log_likelihood(self, parameters: MeanAndRoot, point: Moments) -> Array:
        mean, root, log_density = parameters
        d = len(self.prior_mean)
        if d > _FEW_DIMENSIONS:
            step = point.mean - mean
            whitened = jnp.einsum("...ij,...j->...i", root, step, precision="highest")
            return log_density - 0.5 * jnp.sum(whitened * whitened, axis=-1)
        steps = _steps(point.mean, mean)
        for j in range(d):
            whitened = root[..., j, j] * steps[j]
            for k in range(j):
                whitened = whitened + root[..., j, k] * steps[k]
            log_density = log_density - 0.5 * whitened * whitened
        return log_density


def _steps(points: Array, mean: Array) -> list[Array]:
    """Differences of points and a mean, (…, d), for each of the dimensions an array (…)."""
    return [points[..., j] - mean[..., j] for j in range(points.shape[-1])]


def _log_det_and_square(matrix: Array, step: Array | float = 0.0) -> tuple[Array, Array | float]:
    """Log determinant of symmetric matrices M, (…, d, d), and sᵀ M⁻¹ s for steps s, (…, d)."""
    d = matrix.shape[-1]
    if d > _SMALL_MATRIX:
        factor = jnp.linalg.cholesky(matrix)
        log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        if isinstance(step, float):
            return log_det, step
        # one inverse for each matrix, however many steps there are for it
        inverse = solve_triangular(factor, jnp.broadcast_to(jnp.eye(d), factor.shape), lower=True)
        whitened = jnp.einsum("...ij,...j->...i", inverse, step, precision="highest")
        return log_det, jnp.sum(whitened * whitened, axis=-1)
    # M = L D Lᵀ written out, so that a compiler makes one loop of it
    log_det, square = jnp.zeros(()), jnp.zeros(())
    rows: list[list[Array]] = []
    pivots: list[Array] = []
    rests: list[Array] = []
    for j in range(d):
        row: list[Array] = []  # row j of L D
        for k in range(j):
            entry = matrix[..., j, k]
            for i in range(k):
                entry = entry - row[i] * rows[k][i]
            row.append(entry)
        shares = [entry / pivot for entry, pivot in zip(row, pivots, strict=True)]  # row j of L
        pivot = matrix[..., j, j]
        for entry, share in zip(row, shares, strict=True):
            pivot = pivot - entry * share
        rows.append(shares)
        pivots.append(pivot)
        log_det = log_det + jnp.log(pivot)
        if not isinstance(step, float):
            rest = step[..., j]
            for share, before in zip(shares, rests, strict=True):
                rest = rest - share * before
            rests.append(rest)
            square = square + rest * rest / pivot
    return log_det, square


def _log_gamma_step(x: Array, d: int) -> Array:
    """The ratio lnΓ(x + d/2) - lnΓ(x)."""
    if d > _FEW_DIMENSIONS:
        return log_gamma_ratio(x, 0.5 * d)
    # the factors x, x + 1, …, two by a logarithm, and a step of 1/2 if d is odd
    ratio = jnp.zeros(())
    for i in range(0, d // 2, 2):
        ratio = ratio + jnp.log((x + i) * (x + i + 1) if i + 1 < d // 2 else x + i)
    return ratio + log_gamma_ratio(x + d // 2, 0.5) if d % 2 else ratio


def _log(x: Any) -> Any:
    """The logarithm of a number, in double precision unless it is traced."""
    return jnp.log(x) if is_traced(x) else math.log(x)


def _log_det_of(scale: Any, d: int) -> Any:
    """The log determinant of a matrix, after a check of what is known of it."""
    if scale.shape != (d, d) or not (is_traced(scale) or np.allclose(scale, scale.T)):
        raise ValueError(f"scale must be a symmetric matrix ({d}, {d})")
    if is_traced(scale):
        return jnp.linalg.slogdet(scale)[1]
    eigenvalues = np.linalg.eigvalsh(scale)
    if not np.all(eigenvalues > 0):
        raise ValueError(f"scale must be positive definite; its eigenvalues are {eigenvalues}")
    return float(np.linalg.slogdet(scale)[1])


def _vector(name: str, value: Any) -> Any:
    refuse_masked(name, value)
    vector = as_array(value)
    is_numbers = vector.ndim <= 1 and is_real(vector)
    if not is_numbers or not (is_traced(vector) or np.all(np.isfinite(vector))):
        raise ValueError(f"{name} must be a number or an array (d,) of numbers, got {value!r}")
    return vector.astype(float)
