"""Mallows kernels as blocks of ``numpyro.infer.Gibbs``."""

from collections import namedtuple
from contextlib import nullcontext
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.enumeration import (
    OUTCOME_NOISE,
    OUTCOME_SPREAD,
    MallowsPosterior,
    discrepancies,
    log_partition,
    outcome_of,
    partitions,
)
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs
from numpyro.infer.gibbs import GIBBS_SITES_KWARG
from numpyro.infer.util import log_density

import numpyro_rankings.distributions as rd
from numpyro_rankings import Rankings
from numpyro_rankings.infer import (
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
)
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.posterior.partitions import canonical_labels

BLOCK_LISTS = [[0, 1], [0, 2], [2, 1]]
OUTCOME = np.array([0.9, -1.1, 0.6])


def block_model(rankings, num_components=None, slots=4, outcome=None):
    """α, the rate of θ and means of an outcome for NUTS, the rest for the kernel."""
    alpha = numpyro.sample("mass", dist.Gamma(3.0, 2.0))
    rate = numpyro.sample("rate", dist.LogNormal(0.0, 0.6))
    size, n = len(rankings), rankings.num_items
    validate = outcome is None  # else labels are names of slots
    partition = rd.ChineseRestaurantProcess(alpha, size, max_clusters=slots, validate_args=validate)
    if num_components is not None:
        partition = rd.FiniteDirichletPartition(alpha, num_components, size, validate_args=validate)
    labels = numpyro.sample("z", partition)
    with numpyro.plate("cluster", slots, dim=-1):
        center = numpyro.sample("sigma", rd.RandomPermutation(n))
        theta = numpyro.sample("theta", dist.Exponential(rate).expand((2,)).to_event(1))
        mean = 0.0 if outcome is None else numpyro.sample("mean", dist.Normal(0.0, OUTCOME_SPREAD))
    lists = jnp.asarray(rankings.orderings)
    with numpyro.plate("ranking", size, dim=-1):
        numpyro.sample("pi", rd.GeneralizedMallows(center[labels], theta[labels]), obs=lists)
        if outcome is not None:
            numpyro.sample("y", dist.Normal(mean[labels], OUTCOME_NOISE), obs=outcome)


SITES = {"assignments": "z", "center": "sigma", "concentration": "theta"}


def block_expectations(num_components, with_outcome=False):
    """By enumeration, and quadrature over α and log rate."""
    table = list(partitions(3))
    alpha = np.exp(np.linspace(-9, 4, 1500))
    prior_alpha = alpha**3 * np.exp(-2 * alpha)
    by_partition = np.array(
        [log_partition(list(np.bincount(labels)), alpha, num_components) for labels in table]
    )
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(15)
    joint, theta = np.zeros((15, len(table))), np.zeros((15, len(table), 2))
    mean = np.zeros(len(table))
    for k, rate in enumerate(np.exp(0.6 * nodes)):
        twin = MallowsPosterior(BLOCK_LISTS, 3, lambda x, left, rate=rate: -rate * x)
        for p, labels in enumerate(table):
            blocks = [tuple(np.flatnonzero(np.equal(labels, c))) for c in range(max(labels) + 1)]
            joint[k, p] = sum(twin.clusters[block][0] for block in blocks)
            theta[k, p] = twin.clusters[blocks[0]][2]
            if with_outcome:
                joint[k, p] += sum(outcome_of(OUTCOME[list(block)])[0] for block in blocks)
                mean[p] = outcome_of(OUTCOME[list(blocks[0])])[1]
    weight = node_weights[:, None] * np.exp(joint - joint.max())
    weight = weight * (np.exp(by_partition) @ prior_alpha)
    weight /= weight.sum()
    mean_alpha = (np.exp(by_partition) * prior_alpha) @ alpha / (np.exp(by_partition) @ prior_alpha)
    return {
        "partition": weight.sum(0),
        "theta": np.einsum("kp,kpj->j", weight, theta),
        "mass": np.array([weight.sum(0) @ mean_alpha]),
        "rate": np.array([weight.sum(1) @ np.exp(0.6 * nodes)]),
        **({"mean": np.array([weight.sum(0) @ mean])} if with_outcome else {}),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_components, with_outcome", [(None, False), (4, False), (None, True), (3, True)]
)
def test_block_of_gibbs_by_enumeration(num_components, with_outcome):
    slots = num_components or (32 if with_outcome else 4)  # sticks that hold nobody
    outcome = OUTCOME if with_outcome else None
    model = partial(block_model, num_components=num_components, slots=slots, outcome=outcome)
    settings = {"max_clusters": slots, "init": "given"}
    if num_components is not None:
        settings = {"num_components": num_components, "init": "nearest"}
    if with_outcome:
        settings |= {"assignment": "parallel", "judge_sites": ["y"]}
    block = SliceGibbs(model=model, sites=SITES, **settings)
    kernel = Gibbs([(block, ["z", "sigma", "theta"]), (NUTS(model), None)])
    data = Rankings.from_orderings(BLOCK_LISTS, num_items=3)
    mcmc = MCMC(
        kernel,
        num_warmup=100,
        num_samples=500,
        num_chains=24,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(10), data)
    samples = {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items()}
    labels = samples["z"].astype(int)
    code = canonical_labels(labels) @ 3 ** np.arange(3)

    def of_first(values):
        """What the cluster of the first judge has."""
        first = labels[:, :, :1].reshape(*labels.shape[:2], *[1] * (values.ndim - 2))
        return np.take_along_axis(values, first, axis=2)[:, :, 0]

    found = {
        "partition": code[..., None] == np.array(list(partitions(3))) @ 3 ** np.arange(3),
        "theta": of_first(samples["theta"]),
        "mass": samples["mass"][..., None],
        "rate": samples["rate"][..., None],
    }
    if with_outcome:
        found["mean"] = of_first(samples["mean"])[..., None]
    else:
        np.testing.assert_array_equal(labels, canonical_labels(labels))
    z = discrepancies(found, block_expectations(num_components, with_outcome))
    assert max(z.values()) < 6.0, z  # at most 10 quantities, 23 degrees of freedom: about 4e-5


@pytest.mark.parametrize("num_components", [None, 4])
def test_potential_of_a_block_with_outcomes(num_components):
    """Differences of it between labels are those of the log density of the user's model."""

    def wrap(model):
        def given_siblings(*args, **kwargs):
            with numpyro.handlers.condition(data=kwargs.pop(GIBBS_SITES_KWARG)):
                model(*args, **kwargs)

        return given_siblings

    model = partial(block_model, num_components=num_components, outcome=OUTCOME)
    settings = {"max_clusters": 4} if num_components is None else {"num_components": 4}
    settings |= {"assignment": "parallel", "judge_sites": ["y"], "sites": SITES}
    block = SliceGibbs(model=model, **settings).wrap_model(wrap)
    data = Rankings.from_orderings(BLOCK_LISTS, num_items=3)
    siblings = {"mass": 1.3, "rate": 0.8, "mean": jnp.array([0.4, -1.0, 2.0, 0.1])}
    centers = jnp.array([[0, 1, 2], [2, 0, 1], [1, 0, 2], [0, 2, 1]])
    theta = jnp.array([[0.5, 1.0], [0.2, 0.3], [1.5, 0.1], [0.7, 0.9]])

    @jax.jit
    def both(labels):
        own = {"z": labels, "sigma": centers, "theta": theta}
        state = namedtuple("SimpleState", "z")(own)
        potential = block._potential(state, (data,), {GIBBS_SITES_KWARG: siblings})
        return potential, log_density(model, (data,), {}, {**own, **siblings})[0]

    same_slots = ([0, 1, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0])
    potentials, densities = np.array([both(np.array(labels)) for labels in same_slots]).T
    np.testing.assert_allclose(potentials - potentials[0], densities[0] - densities, atol=1e-4)


def test_numbers_among_the_arguments_are_known_at_the_start():
    """A model may be called with its number of components; arrays are traced as ever."""

    class Counter(GibbsKernel):
        def _init(self, rng_key, init_params, args, kwargs):
            number, values = args
            assert not isinstance(number, jax.core.Tracer) and kwargs["name"] == "x"
            assert isinstance(values, jax.core.Tracer)
            return SimpleState({"x": jnp.ones(number) * values.sum()}, jnp.zeros(()))

        def _sweep(self, state, args, kwargs):
            return state

        def _potential(self, state, args, kwargs):
            return jnp.zeros(())

    SimpleState = namedtuple("SimpleState", "z potential_energy")
    kernel, key = Counter(block_model), random.key(0)
    for number in (3, 2):
        state = kernel.init(key, 0, None, (number, np.ones(4)), {"name": "x"})
        np.testing.assert_array_equal(state.z["x"], np.full(number, 4.0))


def altered(rankings, slots=4, **changes):
    """A model for a block, but for one change."""
    settings = {"concentration": 1.0, "size": len(rankings), "max_clusters": slots}
    prior = changes.get("prior", rd.ChineseRestaurantProcess)(**settings)
    labels = numpyro.sample("z", prior)
    with numpyro.plate("cluster", slots):
        centers = changes.get("centers", rd.RandomPermutation(3))
        center = numpyro.sample("sigma", centers)
        rate = 1.0
        if "rate" in changes:
            rate = numpyro.sample("rate", dist.LogNormal(0.0, 1.0))[:, None]
        theta = dist.Exponential(rate).expand((slots, 2) if "rate" in changes else (2,))
        theta = numpyro.sample("theta", changes.get("theta", theta.to_event(1)))
        level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    theta = jnp.broadcast_to(jnp.reshape(theta, (slots, -1)), (slots, 2))
    lists = jnp.asarray(rankings.orderings)
    if "likelihood" in changes:
        numpyro.sample("pi", changes["likelihood"](center[labels], theta[labels]), obs=lists)
    else:
        with numpyro.plate("ranking", len(lists)), changes.get("handler", nullcontext)():
            numpyro.sample("pi", rd.GeneralizedMallows(center[labels], theta[labels]), obs=lists)
    if "more" in changes:
        changes["more"](labels, center, theta, level)


def outcome_site(name, at):
    """A further site of which the labels, say, shift the mean."""

    def more(labels, center, theta, level):
        where = {"labels": level[labels], "theta": theta[labels, 0], "none": level[:3]}[at]
        numpyro.sample(name, dist.Normal(where, 1.0), obs=jnp.array([0.5, 0.1, 0.3]))

    return more


def of_occupied(labels, center, theta, level):
    """A latent site of those clusters only that hold somebody."""
    occupied = jnp.zeros(4).at[labels].set(1.0) > 0
    with numpyro.plate("cluster", 4), numpyro.handlers.mask(mask=occupied):
        numpyro.sample("latent", dist.Normal(0.0, 1.0))


def plackett_luce(center, theta):
    return rd.TopTPlackettLuce(-jnp.argsort(center) * theta[:, :1], 2)


of_slots = partial(rd.ChineseRestaurantProcess, validate_args=False)
with_discount = partial(rd.ChineseRestaurantProcess, discount=0.6)
mask_all = partial(numpyro.handlers.mask, mask=jnp.array([True, True, False]))
REFUSED = {
    "a discount": ({"prior": with_discount}, {}, "has a discount"),
    "other centers": (
        {"centers": dist.Delta(jnp.arange(3), event_dim=1)},
        {},
        "'sigma' must have a RandomPermutation as its prior, not Delta",
    ),
    "a rate for each slot": ({"rate": True}, {}, "'theta' must be the same in all slots"),
    "one concentration": ({"theta": dist.Exponential(1.0)}, {}, r"must have event shape \(2,\)"),
    "masked rankings": ({"handler": mask_all}, {}, "'pi' must not be masked"),
    "scaled rankings": (
        {"handler": partial(numpyro.handlers.scale, scale=2.0)},
        {},
        "'pi' must not be masked, scaled",
    ),
    "other rankings": ({"likelihood": plackett_luce}, {}, "'pi' depends on 'sigma' and 'theta'"),
    "a forgotten outcome": ({"more": outcome_site("y", "labels")}, {}, "name it in judge_sites"),
    "an outcome of the concentrations": (
        {"more": outcome_site("y", "theta"), "prior": of_slots},
        {"judge_sites": ["y"], "assignment": "parallel"},
        "'y' of judge_sites depends on 'theta' and 'z'",
    ),
    "the rankings as an outcome": (
        {"prior": of_slots},
        {"judge_sites": ["pi"], "assignment": "parallel"},
        "'pi' is the likelihood of the rankings",
    ),
    "a site of the occupied": ({"more": of_occupied}, {}, "'latent' depends on 'z'"),
    "no such site": ({}, {"sites": {**SITES, "center": "middle"}}, "no site 'middle'"),
}


def trace_init(kernel):
    """Trace the start of a chain: models are refused for what they are, not for their values."""
    data = Rankings.from_orderings(BLOCK_LISTS, num_items=3)
    jax.eval_shape(lambda key: kernel.init(key, 0, None, (data,), {}), random.key(0))


def start_block(model, **settings):
    settings = {"max_clusters": 4, "sites": SITES} | settings
    block = SliceGibbs(model=model, **settings)
    trace_init(Gibbs([(block, list(SITES.values())), (NUTS(model), None)]))


@pytest.mark.parametrize("case", REFUSED)
def test_models_that_would_be_sampled_wrongly_are_refused(case):
    changes, settings, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        start_block(partial(altered, **changes), **settings)


def test_further_sites_that_do_not_matter_are_not():
    def others(labels, center, theta, level):
        """Rankings of other judges, of which the kernel owns nothing."""
        outcome_site("y", "none")(labels, center, theta, level)
        strength = numpyro.sample("strength", dist.Exponential(1.0))
        other = rd.GeneralizedMallows(jnp.arange(3), strength * jnp.ones(2))
        numpyro.sample("others", other, obs=jnp.array([1, 0]))

    start_block(partial(altered, more=others))


def test_priors_besides_a_model():
    for kernel, given in (
        (SliceGibbs, {"alpha": 2.0}),
        (SliceGibbs, {"nu": 2.0}),
        (SliceGibbs, {"concentration_prior": dist.Gamma(1.0, 1.0)}),
        (PlackettLuceGibbs, {"shape": 0.5}),
        (GammaProcessPlackettLuceGibbs, {"alpha": dist.Gamma(1.0, 1.0)}),
        (DPPlackettLuceGibbs, {"phi": 2.0}),
    ):
        with pytest.raises(ValueError, match=f"omit {next(iter(given))}"):
            kernel(model=block_model, **given)


def test_further_arguments_without_a_model():
    rankings = Rankings.from_orderings(BLOCK_LISTS, num_items=3)
    for kernel in (SliceGibbs(), PlackettLuceGibbs(), GammaProcessPlackettLuceGibbs()):
        with pytest.raises(TypeError, match=r"takes mcmc.run\(key, rankings\) and nothing else"):
            kernel.init(random.key(0), 0, None, (rankings, np.ones(3)), {})


def test_blocks_refuse_what_they_cannot_own():
    def other_partition(rankings):
        numpyro.sample("assignments", dist.Categorical(jnp.ones(3) / 3).expand((len(rankings),)))
        with numpyro.plate("cluster", 4):
            numpyro.sample("center", rd.RandomPermutation(rankings.num_items))
            numpyro.sample("concentration", dist.Exponential(1.0).expand((2,)).to_event(1))

    def run(model, others, **settings):
        blocks = [(SliceGibbs(model=model, **settings), settings.get("sites", sites).values())]
        trace_init(Gibbs([*((k, list(names)) for k, names in blocks), *others]))

    small = Rankings.from_orderings(BLOCK_LISTS, num_items=3)
    sites = {name: name for name in SITES}
    with pytest.raises(ValueError, match="is a block of"):
        MCMC(SliceGibbs(model=block_model), num_warmup=1, num_samples=1).run(random.key(0), small)
    with pytest.raises(ValueError, match="ChineseRestaurantProcess"):
        run(other_partition, [], max_clusters=4)
    others = [(NUTS(block_model), ["mass", "rate"])]
    with pytest.raises(ValueError, match="9 cluster slots"):
        run(block_model, others, max_clusters=9, sites=SITES)

    def shared_outcome(rankings, validate=False):
        block_model(rankings, outcome=None if validate else OUTCOME)
        numpyro.sample("all", dist.Normal(0.0, 1.0), obs=0.3)

    parallel = {"max_clusters": 4, "assignment": "parallel", "sites": SITES}
    with pytest.raises(ValueError, match="'other'; the observed sites are"):
        run(shared_outcome, [(NUTS(shared_outcome), None)], judge_sites=["other"], **parallel)
    with pytest.raises(ValueError, match="each of the 3 judges"):
        run(shared_outcome, [(NUTS(shared_outcome), None)], judge_sites=["all"], **parallel)
    validated = partial(shared_outcome, validate=True)
    with pytest.raises(ValueError, match="prior of site 'z' validate_args=False"):
        run(validated, [(NUTS(validated), None)], judge_sites=["pi"], **parallel)
    with pytest.raises(ValueError, match='needs assignment="parallel"'):
        SliceGibbs(model=block_model, sites=SITES, judge_sites=["y"])
    with pytest.raises(ValueError, match="give model= too"):
        SliceGibbs(assignment="parallel", judge_sites=["y"])
    with pytest.raises(ValueError, match="a list of names"):
        SliceGibbs(assignment="parallel", judge_sites="y", model=block_model)
    for kernel in (DPPlackettLuceGibbs, partial(PlackettLuceGibbs, num_components=2)):
        with pytest.raises(ValueError, match="give model= too"):
            kernel(judge_sites=["y"])
    with pytest.raises(ValueError, match="need a mixture"):
        PlackettLuceGibbs(judge_sites=["y"], model=block_model)
