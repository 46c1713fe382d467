"""The models of the notebooks on composing: 90% intervals hold the truth nine times out of ten.

The models are those of the notebooks themselves, the cells that begin with "# model".
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.kernel_tests import rank_of
from jax import random
from numpyro import handlers
from numpyro.infer import MCMC, NUTS, Gibbs
from scipy import stats

import numpyro_rankings.distributions as rd
from numpyro_rankings import Rankings
from numpyro_rankings.components import MallowsCenter
from numpyro_rankings.distributions import DistanceDependentCRP, links_to_partition
from numpyro_rankings.infer import DDCRPGibbs, SliceGibbs, exponential_decay

pytestmark = pytest.mark.slow

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
# 240, so that intervals that hold 80% instead of 90% are found out three times out of four
REPLICATES, KEPT = 240, 19  # of 20 ranks the outer two are outside of 90% intervals


def model_of(name):
    """What the model cell of a notebook defines."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    imports = "import jax\nimport jax.numpy as jnp\nimport numpyro\n"
    (source,) = [source for source in sources if source.startswith("# model")]
    known = {
        "dist": dist,
        "rd": rd,
        "NUTS": NUTS,
        "Gibbs": Gibbs,
        "SliceGibbs": SliceGibbs,
        "DDCRPGibbs": DDCRPGibbs,
        "exponential_decay": exponential_decay,
    }
    exec(imports + source, known)
    return known


def from_prior(model, key, *args, **kwargs):
    """A draw of all sites of a model, those observed too."""
    with handlers.block(), handlers.trace() as trace, handlers.seed(rng_seed=key):
        handlers.uncondition(model)(*args, **kwargs)
    return {name: site["value"] for name, site in trace.items() if "value" in site}


def with_lists(template, lists):
    """Rankings of the form of others, inside a traced function."""
    leaves, structure = jax.tree.flatten(template)
    return jax.tree.unflatten(structure, [lists.astype(jnp.int32), *leaves[1:]])


def any_lists(number, num_items, length):
    return Rankings.from_orderings(np.tile(np.arange(length), (number, 1)), num_items=num_items)


def covariates():
    model = model_of("compose_covariates")["choices"]
    features = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    settings = {"features": features, "group": np.arange(24) % 3, "num_groups": 3, "length": 3}

    def simulate(key):
        truth = from_prior(model, key, None, **settings)
        return truth, (truth["list"],), settings

    def quantities(z):
        columns = [z["mean"][..., 0], z["spread"][..., 1], z["taste"][..., 2, 0]]
        return jnp.stack([*columns, z["quality"][..., 0]], axis=-1)

    return simulate, lambda: NUTS(model), quantities, 300, 5


def hierarchical_mallows():
    notebook = model_of("compose_hierarchical_mallows")
    template = any_lists(24, 4, 3)

    def simulate(key):
        truth = from_prior(notebook["mixture"], key, template, 2)
        return truth, (with_lists(template, truth["list"]), 2), {}

    def quantities(z):
        first = of_first_judge(z["theta"], z["label"])
        pair = z["label"][..., 0] == z["label"][..., 1]
        columns = [z["location"], z["spread"], first[..., 0], pair.astype(float)]
        return jnp.stack(columns, axis=-1)

    return simulate, lambda: notebook["make_kernel"](2), quantities, 200, 10


def outcome():
    notebook = model_of("compose_outcome")
    template, x = any_lists(24, 4, 2), np.linspace(-1.0, 1.0, 24, dtype=np.float32)

    def simulate(key):
        truth = from_prior(notebook["rankings_and_outcome"], key, template, x, jnp.zeros(24), 2)
        return truth, (with_lists(template, truth["list"]), x, truth["outcome"], 2), {}

    def quantities(z):
        level = of_first_judge(z["level"], z["label"])
        theta = of_first_judge(z["theta"], z["label"])[..., 0]
        pair = (z["label"][..., 0] == z["label"][..., 1]).astype(float)
        return jnp.stack([z["slope"], z["noise"], level, theta, pair], axis=-1)

    return simulate, lambda: notebook["make_kernel"](2), quantities, 200, 10


def ddcrp_of_judges():
    notebook = model_of("compose_ddcrp_of_judges")
    thetas = jnp.array(notebook["THETAS"])
    template, size = any_lists(16, 4, 2), 16
    places = np.random.default_rng(1).uniform(0, 3, size=(size, 2))
    distances = np.linalg.norm(places[:, None] - places, axis=-1)

    def simulate(key):
        keys = random.split(key, 6)
        kernel = notebook["make_kernel"](MallowsCenter(notebook["THETAS"]))
        alpha = kernel._alpha.sample(keys[0])
        scale = kernel._decay.scale.sample(keys[1])
        links = DistanceDependentCRP(alpha, kernel._decay(distances, scale)).sample(keys[2])
        labels = links_to_partition(links)
        centers = rd.RandomPermutation(4).sample(keys[3], (size,))
        theta = random.choice(keys[4], thetas, (size, 1)) * jnp.ones(2)
        lists = rd.GeneralizedMallows(centers[labels], theta[labels]).sample(keys[5])
        truth = {
            "alpha": alpha,
            "decay_scale": scale,
            "assignments": labels,
            "num_clusters": labels.max() + 1,
        }
        return truth, (with_lists(template, lists), distances), {}

    def quantities(z):
        pair = z["assignments"][..., 0] == z["assignments"][..., 1]
        columns = [z["alpha"], z["decay_scale"], z["num_clusters"], pair]
        return jnp.stack([jnp.asarray(column, float) for column in columns], axis=-1)

    family = MallowsCenter(notebook["THETAS"])
    return simulate, lambda: notebook["make_kernel"](family), quantities, 50, 5


def of_first_judge(values, labels):
    """What the cluster of the first judge has."""
    first = labels[..., :1].astype(int)
    first = first.reshape(*first.shape, *[1] * (values.ndim - first.ndim))
    return jnp.take_along_axis(values, first, axis=labels.ndim - 1).squeeze(labels.ndim - 1)


@pytest.mark.parametrize(
    "problem",
    [covariates, hierarchical_mallows, outcome, ddcrp_of_judges],
    ids=lambda f: f.__name__,
)
def test_intervals_hold_the_truth_at_the_nominal_rate(problem):
    simulate, make_kernel, quantities, num_warmup, thin = problem()

    @jax.jit
    @jax.vmap
    def replicate(key):
        key_truth, key_chain, key_ties = random.split(key, 3)
        truth, args, kwargs = simulate(key_truth)
        mcmc = MCMC(
            make_kernel(),
            num_warmup=num_warmup,
            num_samples=KEPT * thin,
            thinning=thin,
            progress_bar=False,
        )
        mcmc.run(key_chain, *args, **kwargs)
        draws, truth = quantities(mcmc.get_samples()), quantities(truth)
        return rank_of(key_ties, truth, draws)

    ranks = np.asarray(replicate(random.split(random.key(1), REPLICATES)))
    assert ranks.min() >= 0 and ranks.max() <= KEPT
    inside = np.sum((ranks > 0) & (ranks < KEPT), axis=0)
    for k, number in enumerate(inside):
        # some 40 tails in all: a false alarm is less likely than 1e-4
        tails = (
            stats.binom.cdf(number, REPLICATES, 0.9),
            stats.binom.sf(number - 1, REPLICATES, 0.9),
        )
        assert min(tails) > 2e-6, (k, inside)
        counts = np.bincount(ranks[:, k] // 4, minlength=5)
        assert stats.chisquare(counts).pvalue > 2e-6, (k, counts)
