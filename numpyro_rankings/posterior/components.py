"""Parameters of clusters of rankings, for the kernels of partitions, which integrate them out."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.components.family import AugmentedFamily, Family, with_auxiliary
from numpyro_rankings.posterior.draws import Draws, with_sizes
from numpyro_rankings.rankings import Rankings


def with_drawn_parameters(
    draws: Draws, rankings: Rankings, family: Family, key: Array | None
) -> Draws:
    """Return draws of a kernel of partitions with the parameters of the clusters.

    They are drawn from their posterior given the members, and have the names that the kernels of
    rankings give them. Points with unknown values, which come last, are left out.

    :param draws: of the kernel.
    :param family: of components of rankings.
    """
    samples = draws.samples
    if family.ranking_family is None:
        raise ValueError(
            f"{type(family).__name__} is no family of rankings, whose clusters have profiles: use "
            'partition_profiles(samples["assignments"])'
        )
    needed = ["assignments", *([family.site] if isinstance(family, AugmentedFamily) else [])]
    missing = [name for name in needed if name not in samples]
    if missing:
        raise ValueError(f"the samples have no {missing[0]!r}, which {type(family).__name__} needs")
    family.check(rankings)
    labels, size = samples["assignments"], rankings.num_rankings
    fitted = labels.shape[-1]
    if fitted < size or (fitted > size and draws.partition != "links"):
        raise ValueError(f"the run was of {fitted} rankings; these are {size}")
    labels = labels[..., :size]
    lead, slots = labels.shape[:-1], int(labels.max()) + 1
    by_draw = {"labels": labels.reshape(-1, size).astype(np.int32)}
    for name in needed[1:]:
        x = samples[name]
        if x.shape[:-1] != labels.shape:
            raise ValueError(f"the run was of {x.shape[-2]} rankings; these are {size}")
        by_draw[name] = x.reshape(-1, *x.shape[-2:])
    keys = jax.random.split(jax.random.key(0) if key is None else key, len(by_draw["labels"]))

    @jax.jit
    def each(keys: Array, draws: dict[str, Array], rankings: Rankings) -> dict[str, Array]:
        def one(inputs: tuple[Array, dict[str, Array]]) -> dict[str, Array]:
            key, draw = inputs
            points = family.statistics(with_auxiliary(family, rankings, draw))
            clusters = family.of_clusters(points, draw["labels"], slots)
            return family.draw_ranking_parameters(key, clusters)

        return jax.lax.map(one, (keys, draws))

    drawn = each(keys, {k: jnp.asarray(x) for k, x in by_draw.items()}, rankings)
    found = {name: np.asarray(x).reshape(*lead, *x.shape[1:]) for name, x in drawn.items()}
    return Draws.of_kernel(with_sizes({"assignments": labels, **found}), None, rankings)
