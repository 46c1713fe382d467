"""Moves of Mallows clusters with the labels integrated out, see ``mixture/label_free.py``."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.infer.mallows.concentrations import ConcentrationPrior
from numpyro_rankings.infer.mallows.data import (
    MallowsData,
    codes_by_stage,
    design_if_small,
    log_designed_rows,
    log_row_likelihoods,
)
from numpyro_rankings.infer.mixture.label_free import Effort, between, move_without_labels
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.mixture.steps import (
    choose_kinds,
    log_uniform,
    metropolis_steps,
    transform_uniforms,
)
from numpyro_rankings.infer.mixture.target import (
    DrawnKind,
    Kind,
    Mixture,
    Path,
    Proposal,
    StepDraw,
    Target,
    relative,
)
from numpyro_rankings.infer.mixture.trajectory import move_along_trajectories
from numpyro_rankings.ops.codes import inverse_ordering, ordering_from_codes
from numpyro_rankings.ops.sampling import draw_together, sample_truncated_geometric
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.ops.sums import count_by_label

_CONCENTRATION, _CENTER, _BOTH, _SHARE, _RESIZE = range(5)  # kinds of steps
_KINDS = np.array([_CONCENTRATION] * 2 + [_CENTER, _BOTH] + [_SHARE] * 2 + [_RESIZE] * 3)
_KINDS_OF_FIXED_NUMBER = _KINDS[:6]
# Of more items than these, the pairs are looked at in blocks of their first items.
_MANY_ITEMS, _BLOCK = 4096, 1024


class MallowsParameters(NamedTuple):
    """**center** (C, n) and **concentration** (C, T) of some clusters, or of one."""

    center: Array
    concentration: Array


class MallowsDraw(NamedTuple):
    """Random numbers of a step besides those of every family.

    The rearrangement is drawn around the identity with probability ∝ exp(-dispersal · inversions),
    for a dispersal of 0 uniformly. ``MallowsClusters.propose`` takes its density from these two.
    """

    moves_concentration: Array  # whether the step changes θ
    moves_center: Array  # whether it changes σ
    log_scale: Array  # log normaliser of a normal step of one θ
    rearrangement: Array  # new places of the items of a center, (n,)
    dispersal: Array
    log_constant: Array  # log normaliser of the rearrangement


class MallowsClusters(NamedTuple):
    """Likelihood, prior and proposals of Mallows clusters."""

    data: MallowsData
    prior: ConcentrationPrior  # of θ
    log_prior_constant: Array  # log of β p(σ) times the normalising constant of p(θ), ()
    design: Array | None = None  # design of the rows, as design_if_small returns it

    @property
    def free_stages(self) -> Array:
        """Stages with a θ of their own, (T,) bool: all or, if they are tied, only the first."""
        stages = jnp.arange(len(self.data.limits))
        return stages < (1 if self.prior.tied else len(self.data.limits))

    @property
    def items(self) -> Array:
        """Items of the rows, stages first, (T, rows); arbitrary on padding."""
        return jnp.maximum(self.data.orderings, 0).T

    def log_row(self, parameters: MallowsParameters, slot: Array) -> Array:
        center, theta = parameters
        places, log_psis = inverse_ordering(center), log_psi(theta, self.data.limits)
        if self.design is not None:
            return log_designed_rows(self.design, places, theta, log_psis)
        return log_row_likelihoods(self.items, self.data.listed.T, places, theta, log_psis)

    def log_prior(self, parameters: MallowsParameters) -> Array:
        log_kernel = self.prior.log_kernel(parameters.concentration, self.data.limits)
        return self.log_prior_constant + log_kernel

    def propose(
        self, parent: MallowsParameters, other: MallowsParameters, kind: Kind, draw: StepDraw
    ) -> Proposal:
        """Propose parameters around those of c; in a merge, evaluate those of d around c."""
        family: MallowsDraw = draw.family
        (center_c, theta_c), merges = parent, kind.merges
        change = draw.scale * draw.normals[:-1]
        change = jnp.where(merges, jnp.log(other.concentration / theta_c), change)
        order = inverse_ordering(center_c)[other.center]
        order = jnp.where(merges, order, family.rearrangement)
        moves_theta = family.moves_concentration | kind.splits
        moves_center = family.moves_center | kind.splits
        theta = jnp.where(moves_theta, theta_c * jnp.exp(change), theta_c)
        center = jnp.where(moves_center, center_c[order], center_c)
        # steps are normal in log θ: convert to a density of θ
        log_density = -0.5 * (change / draw.scale) ** 2 - jnp.log(theta_c) - change
        log_density = jnp.where(self.free_stages, log_density - family.log_scale, 0.0).sum()
        # the density of the rearrangement that `draw_steps` draws
        log_density -= family.dispersal * _num_inversions(order) + family.log_constant
        jacobian = jnp.sum(jnp.where(self.free_stages, change, 0.0))
        jacobian = jnp.where(family.moves_concentration, jacobian, 0.0)
        return Proposal(MallowsParameters(center, theta), log_density, jacobian)

    def path(
        self, parameters: MallowsParameters, slots: Array, active: Array, start: Array
    ) -> Path:
        """Vary the logarithms of all θ; the centers stay."""
        center, theta = parameters
        moving = active[:, None] & self.free_stages
        listed = self.data.listed.T
        codes = jax.lax.map(lambda c: codes_by_stage(inverse_ordering(c)[self.items]), center)
        # log probabilities are linear in θ and log ψ, and a product has a far faster gradient than
        # a sum over stages
        codes = jnp.where(listed, codes, 0).astype(float)
        design = jnp.concatenate([codes, jnp.broadcast_to(listed, codes.shape)], axis=1)

        def concentration(log_theta: Array) -> Array:
            theta = jnp.exp(log_theta[:, :1] if self.prior.tied else log_theta)
            return jnp.broadcast_to(theta, log_theta.shape)

        def rows(theta: Array) -> Array:
            costs = jnp.concatenate([theta, log_psi(theta, self.data.limits)], axis=1)
            log_rows = -jnp.einsum("wt,wtr->wr", costs, design, precision="highest")
            return relative(log_rows, start)

        return Path(
            position=jnp.log(theta),
            moving=moving,
            parameters=lambda x: MallowsParameters(center, concentration(x)),
            rows=lambda x: rows(concentration(x)),
            log_jacobian=lambda x: jnp.sum(jnp.where(moving, x, 0.0)),
            information=0.5,
        )


def _num_inversions(places: Array) -> Array:
    """Return the number of pairs out of order: the Kendall distance to the identity."""
    num_items, here = len(places), jnp.arange(len(places))
    if num_items <= _MANY_ITEMS:
        return jnp.sum(jnp.triu(places[:, None] > places, k=1))

    def count_in_block(block: tuple[Array, Array]) -> Array:
        place, first = (x[:, None] for x in block)
        return jnp.sum((place > places) & (first < here))

    # a block of items at a time, the last one filled up by items without inversions
    blocks = [
        jnp.pad(x, (0, -num_items % _BLOCK), constant_values=fill).reshape(-1, _BLOCK)
        for x, fill in ((places, -1), (here, num_items))
    ]
    return jnp.sum(jax.lax.map(count_in_block, tuple(blocks)))


def draw_steps(
    key: Array, num_steps: int, shape: tuple[int, int], kinds: np.ndarray, tied: bool
) -> StepDraw:
    """Draw the random numbers of steps, whose densities ``MallowsClusters.propose`` has."""
    # Step sizes are log-uniform, because the right scale is unknown. A dispersal of 0 makes the
    # proposed center uniform. The shape is (n, T).
    num_items, num_stages = shape
    key_uniforms, key_normals, key_codes = random.split(key, 3)
    # few calls of the generator, each of which takes long to compile
    (uniforms,) = draw_together(random.uniform, key_uniforms, (num_steps, 6))
    for_kinds, for_scale, for_dispersal, for_step = jnp.split(uniforms, [1, 2, 3], axis=1)
    kind = choose_kinds(for_kinds[:, 0], kinds)
    # a new cluster is tried further away; a merge is the reverse of a split
    splits_or_merges = kind == _RESIZE
    scale = log_uniform(for_scale[:, 0], jnp.where(splits_or_merges, 0.3, 0.02), 2.0)
    (normals,) = draw_together(random.normal, key_normals, (num_steps, num_stages + 1))
    if tied:
        normals = normals.at[:, :-1].set(normals[:, :1])
    # about num_moved of the n - 1 stages of a rearrangement have a positive code
    low, high = (
        jnp.where(splits_or_merges, 0.5, 0.1),
        jnp.where(splits_or_merges, 4.0 * num_items, 3.0),
    )
    num_moved = log_uniform(for_dispersal[:, 0], low, high)
    dispersal = jnp.maximum(math.log(num_items - 1) - jnp.log(num_moved), 0.0)
    limits = jnp.arange(num_items - 1, 0, -1)
    codes = sample_truncated_geometric(key_codes, dispersal[:, None], limits)
    identity = jnp.arange(num_items)
    family = MallowsDraw(
        moves_concentration=(kind == _CONCENTRATION) | (kind == _BOTH),
        moves_center=(kind == _CENTER) | (kind == _BOTH),
        log_scale=jnp.log(scale * math.sqrt(2 * math.pi)),
        rearrangement=ordering_from_codes(jnp.pad(codes, ((0, 0), (0, 1))), identity),
        dispersal=dispersal,
        log_constant=log_psi(dispersal[:, None], limits).sum(1),
    )
    drawn_kind = DrawnKind(splits_or_merges, kind == _SHARE)
    return StepDraw(drawn_kind, *transform_uniforms(for_step), scale, normals, family)


def move_mallows_without_labels(
    key: Array,
    current: tuple[Array, MallowsParameters],
    partition: PartitionPrior,
    prior: ConcentrationPrior,
    data: MallowsData,
    effort: Effort,
    largest_minimum: int | None = None,
) -> tuple[Array, MallowsParameters]:
    """Move the larger clusters with the labels integrated out, then draw their labels."""
    # Slots that become empty are left with arbitrary values, which the caller must replace.
    labels, parameters = current
    key_empty, key_moves = random.split(key)
    num_items, num_stages = parameters.center.shape[1], parameters.concentration.shape[1]
    fixed_number = partition.num_components is not None
    log_prior_constant = prior.log_constant(1, num_items, data.limits)[0]
    log_prior_constant -= math.lgamma(num_items + 1.0)
    if fixed_number:
        # empty components belong to A, and may hold arbitrary values
        parameters = _with_new_empty_clusters(key_empty, labels, parameters, prior, data)
    else:
        log_prior_constant += jnp.log(partition.alpha)
    design = design_if_small(data, num_items)
    clusters = MallowsClusters(data, prior, log_prior_constant, design)

    def steps(key: Array, target: Target, mixture: Mixture) -> Mixture:
        kinds = _KINDS_OF_FIXED_NUMBER if fixed_number else _KINDS
        shape = num_items, num_stages
        key_draws, key_blocks = random.split(key)
        draws = draw_steps(key_draws, effort.num_steps, shape, kinds, prior.tied)
        return metropolis_steps(key_blocks, target, mixture, draws)

    moves = [between(move_along_trajectories, steps) if effort.has_trajectories else steps]
    move = partial(move_without_labels, largest_minimum=largest_minimum)
    return move(key_moves, (labels, parameters), moves, lambda _: clusters, partition, data)


def _with_new_empty_clusters(
    key: Array,
    labels: Array,
    parameters: MallowsParameters,
    prior: ConcentrationPrior,
    data: MallowsData,
) -> MallowsParameters:
    """Draw the parameters of empty clusters from the prior."""
    key_center, key_theta = random.split(key)
    center, theta = parameters
    occupied = count_by_label(labels, len(center))[:, None] > 0
    (for_center,) = draw_together(random.uniform, key_center, center.shape)
    new_center = jnp.argsort(for_center, axis=1)
    new_theta = prior.draw(key_theta, len(center), data.limits)
    return MallowsParameters(
        jnp.where(occupied, center, new_center.astype(center.dtype)),
        jnp.where(occupied, theta, new_theta.astype(theta.dtype)),
    )
