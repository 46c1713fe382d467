"""Moves of Plackett–Luce clusters with the labels integrated out, see ``mixture/label_free.py``.

Clusters are split in two ways: a step proposes random weights around those of the cluster
(:func:`draw_steps`; ``target.py`` has their density), and a fitted split proposes weights around
those that EM fits (``fitted_splits.py``).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.infer.mixture.label_free import (
    Effort,
    between,
    choose_effort,
    move_without_labels,
)
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.mixture.steps import (
    choose_kinds,
    log_uniform,
    metropolis_steps,
    transform_uniforms,
)
from numpyro_rankings.infer.mixture.target import DrawnKind, Mixture, StepDraw, Target
from numpyro_rankings.infer.mixture.trajectory import move_along_trajectories
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData
from numpyro_rankings.infer.plackett_luce.fitted_splits import (
    draw_fitted_splits,
    fitted_split_or_merge,
)
from numpyro_rankings.infer.plackett_luce.target import WeightsClusters, WeightsDraw, WeightsPrior
from numpyro_rankings.ops.choices import Choices, can_be_designed, cells_if_tabled, design_if_small
from numpyro_rankings.ops.sampling import draw_together

_WEIGHTS, _SHARE, _RESIZE = range(3)  # kinds of steps
_KINDS = np.array([_WEIGHTS] * 2 + [_SHARE] * 2 + [_RESIZE] * 3)
_KINDS_OF_FIXED_NUMBER = _KINDS[:4]
# Limits of the work of a sweep, with and without a table of rows and sets of items: for a
# trajectory, rows times slots times stages; for all steps of a sweep, rows.
_MOST_IN_TRAJECTORY, _MOST_ROWS = (2**18, 2**15), (2**19, 2**18)
# A fitted split evaluates up to four dozen rows with their slopes, a step evaluates one.
_STEPS_A_FITTED_SPLIT, _MOST_FITTED_SPLITS = 50, 8
_MOST_MOVING = (
    8  # clusters that a trajectory moves; the cost of a slot is that of all sets of items
)
_MOST_NORMALS = 2**22  # most normal numbers that the steps of a sweep may need
_LEAST_FLIPS, _MOST_FLIPS = 0.02, 0.5  # range of the chance that a split adds or removes an atom


def draw_steps(
    key: Array, num_steps: int, num_items: int, kinds: np.ndarray, prior: WeightsPrior
) -> StepDraw:
    """Draw the random numbers of steps; of new clusters ``log_offspring`` is the density."""
    # Step sizes are drawn log-uniformly, because the right scale is unknown.
    key_uniforms, key_normals = random.split(key)
    # few calls of the generator, each of which takes long to compile
    (uniforms,) = draw_together(random.uniform, key_uniforms, (num_steps, 8 + 2 * num_items))
    for_choices, for_step, for_flips, for_atoms = jnp.split(uniforms, [5, 8, 8 + num_items], axis=1)
    for_kind, for_item, for_moves, for_chance, for_scale = for_choices.T
    kind = choose_kinds(for_kind, kinds)
    # a new cluster is tried further away; a merge is the reverse of a split
    splits_or_merges = kind == _RESIZE
    item = jnp.minimum((for_item * num_items).astype(jnp.int32), num_items - 1)
    is_one = item[:, None] == jnp.arange(num_items)
    moves_all = for_moves < 0.5
    chance = jnp.zeros(num_steps)
    if prior.has_zeros:
        chance = log_uniform(for_chance, _LEAST_FLIPS, _MOST_FLIPS)
    weights_draw = WeightsDraw(
        moves=is_one | moves_all[:, None],
        flip_chance=chance,
        flips=for_flips < chance[:, None],
        # log of Exponential(rate); log_offspring in target.py has this density
        log_atoms=jnp.log(-jnp.log1p(-for_atoms) / prior.rate),
    )
    return StepDraw(
        DrawnKind(splits_or_merges, kind == _SHARE),
        *transform_uniforms(for_step),
        scale=log_uniform(for_scale, jnp.where(splits_or_merges, 0.3, 0.02), 2.0),
        normals=draw_together(random.normal, key_normals, (num_steps, num_items + 1))[0],
        family=weights_draw,
    )


def choose_effort_for(
    requested: int | None, choices: Choices, num_rankings: int, num_slots: int, num_items: int
) -> Effort:
    """Choose how many moves without labels a sweep makes."""
    rows, stages = choices.orderings.shape
    k = 0 if can_be_designed(rows, num_items) else 1
    most = _MOST_IN_TRAJECTORY[k], _MOST_ROWS[k]
    return choose_effort(requested, num_rankings, num_slots, (rows, stages), *most)


class WeightedLabels(NamedTuple):
    """State of the moves, and the weights of the unseen items, which stay."""

    labels: Array  # (N,)
    log_weights: Array  # (C, K), not normalised, -inf where there is no atom
    unseen: Array  # (C,)


def move_weights_without_labels(
    key: Array,
    current: WeightedLabels,
    partition: PartitionPrior,
    prior: WeightsPrior,
    data: PlackettLuceData,
    effort: Effort,
    largest_minimum: int | None = None,
) -> WeightedLabels:
    """Move the larger clusters with the labels integrated out, then draw their labels."""
    # Empty slots must hold draws from the prior. Slots that become empty are left with arbitrary
    # values, which the caller must replace.
    num_items, choices = current.log_weights.shape[1], data.choices
    is_process = partition.num_components is None
    num_steps = min(effort.num_steps, max(_MOST_NORMALS // num_items, 1))

    def steps(key: Array, target: Target, mixture: Mixture) -> Mixture:
        kinds = _KINDS if is_process else _KINDS_OF_FIXED_NUMBER
        key_draws, key_blocks = random.split(key)
        draws = draw_steps(key_draws, num_steps, num_items, kinds, prior)
        return metropolis_steps(key_blocks, target, mixture, draws)

    def fitted_splits(key: Array, target: Target, mixture: Mixture) -> Mixture:
        number = min(max(num_steps // _STEPS_A_FITTED_SPLIT, 1), _MOST_FITTED_SPLITS)
        draws = draw_fitted_splits(key, number, data, num_items)
        return jax.lax.scan(
            lambda m, draw: (fitted_split_or_merge(target, m, draw), None), mixture, draws
        )[0]

    trajectories = partial(move_along_trajectories, most_moving=_MOST_MOVING)
    moves = [between(trajectories, steps) if effort.has_trajectories else steps]
    if is_process:
        moves.append(fitted_splits)
    log_beta = jnp.log(partition.alpha) if is_process else 0.0
    cells = cells_if_tabled(choices, num_items)
    design = design_if_small(choices, num_items, current.log_weights.dtype)
    clusters = WeightsClusters(current.unseen, prior, log_beta, choices, cells, design)
    labels, log_weights = move_without_labels(
        key,
        (current.labels, current.log_weights),
        moves,
        lambda slots: clusters._replace(unseen=current.unseen[slots]),
        partition,
        data,
        largest_minimum,
    )
    return current._replace(labels=labels, log_weights=log_weights)
