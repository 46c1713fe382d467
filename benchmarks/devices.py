"""What a backend can do: the kernels on whatever devices JAX finds, printed as tables.

``python benchmarks/devices.py``; ``--quick`` is a small version. On CPUs, ``--cpu-devices K``
splits the machine into K devices. Chains are spread over all devices whose number divides theirs.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import numpyro_rankings
from numpyro_rankings import Rankings, Run, load_dataset
from numpyro_rankings.components import GaussianMean
from numpyro_rankings.datasets import simulate_mallows_mixture, simulate_plackett_luce_mixture
from numpyro_rankings.infer import (
    BetaGibbs,
    CollapsedGibbs,
    DDCRPGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    exponential_decay,
)
from numpyro_rankings.links.distances import nearest_distances

COLLEGE, SMALL = (53757, 533, 10), (2000, 50, 10)  # rankings, items, length of the lists
PART = 200_000  # lists simulated at a time
CHAINS = (1, 4, 16, 64, 256)


def of_devices(num_chains):
    """As many devices as divide the chains, or None for one."""
    number = max(k for k in range(1, jax.device_count() + 1) if num_chains % k == 0)
    return jax.devices()[:number] if number > 1 else None


def seconds_per_sweep(run, sweeps):
    """Of all chains, after the first chunk, which compiles; best of three."""
    run.extend(2)
    best = np.inf
    for _ in range(3):
        before = run.seconds
        run.extend(sweeps)
        best = min(best, (run.seconds - before) / sweeps)
    return best


def extend_for(run, seconds, sweep):
    """Make sweeps for a time, in slices of about two seconds.

    :param sweep: seconds of one.
    """
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        run.extend(max(1, round(2 / sweep)))


def bytes_of(data):
    """Bytes of the arrays of a pytree."""
    return sum(np.asarray(x).nbytes for x in jax.tree.leaves(data) if hasattr(x, "nbytes"))


def seconds_to_read(data):
    """Seconds to read all arrays once on one device: the floor of any sweep."""
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(data) if getattr(x, "ndim", 0) > 0]
    add = jax.jit(lambda leaves: [jnp.sum(x.astype(jnp.float32)) for x in leaves])
    jax.block_until_ready(add(leaves))
    start = time.perf_counter()
    for _ in range(10):
        jax.block_until_ready(add(leaves))
    return (time.perf_counter() - start) / 10


def bytes_of_device(run):
    """Bytes of data and state on each device, by how their arrays are split."""
    arrays = [x for x in jax.tree.leaves((run._loop._arrays, run._state)) if x is not None]
    return sum(np.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in arrays)


def peak_gib():
    """Peak memory of the first device, or of the process where devices do not tell."""
    stats = jax.devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return stats["peak_bytes_in_use"] / 2**30
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def kernels(quick):
    """Name, kernel and arguments of each, at the size of the paper's college data."""
    size, items, length = SMALL if quick else COLLEGE
    key, slots = jax.random.key(0), 16 if quick else 64
    mallows = simulate_mallows_mixture(key, size, items, length, 8, 0.5).rankings
    of_clusters = jnp.exp(jax.random.normal(key, (8, items)))
    weights = simulate_plackett_luce_mixture(key, size, of_clusters, length).rankings
    points = np.random.default_rng(0).normal(size=(size, 10)).astype(np.float32)
    fixed = dict(alpha=1.0, phi=10.0, gamma=1.0, max_clusters=slots)
    listed = weights.of_listed_items()
    for assignment in ("parallel", "sequential"):
        kernel = SliceGibbs(assignment=assignment, max_clusters=slots)
        yield f"SliceGibbs({assignment})", kernel, (mallows,)
    yield "BetaGibbs", BetaGibbs(max_clusters=slots), (mallows,)
    yield "PlackettLuceGibbs", PlackettLuceGibbs(), (weights,)
    of_26 = PlackettLuceGibbs(num_components=26)
    yield "PlackettLuceGibbs(num_components=26)", of_26, (weights,)
    yield "GammaProcessPlackettLuceGibbs", GammaProcessPlackettLuceGibbs(), (listed,)
    yield "DPPlackettLuceGibbs", DPPlackettLuceGibbs(**fixed), (listed,)
    family = GaussianMean(prior_scale=1.0, noise_scale=1.0)
    batches = CollapsedGibbs(family, alpha=1.0, batch_size=256, max_clusters=slots)
    yield "CollapsedGibbs(batch_size=256)", batches, (points,)
    points = points[:10_000]
    near = nearest_distances(points[:, :2], 20)
    yield "DDCRPGibbs", DDCRPGibbs(family, 1.0, exponential_decay(0.1)), (points, near)


def speed(quick):
    print("\n## Seconds per sweep of one chain, and the time to read the data once\n")
    print("| kernel | data, MB | read once, s | sweep, s | ratio | peak memory, GiB |")
    print("|---|---|---|---|---|---|")
    for name, kernel, data in kernels(quick):
        run = Run(kernel, *data, key=jax.random.key(1), num_chains=1)
        sweep, once = seconds_per_sweep(run, 3), seconds_to_read(data)
        print(
            f"| `{name}` | {bytes_of(data) / 1e6:.1f} | {once:.2g} | {sweep:.3g} | "
            f"{sweep / once:,.0f} | {peak_gib():.2f} |",
            flush=True,
        )


def chains(quick):
    print("\n## Chains: the bundled ballots, a Dirichlet process mixture of Mallows models\n")
    columns = "chains", "superchains", "devices", "sweep of all, ms", "of one, ms"
    print("|", " | ".join([*columns, "sweeps of a chain", "R-hat", "ESS", "ESS/s"]), "|")
    print("|---|---|---|---|---|---|---|---|---|")
    rankings = load_dataset("apa1980")
    several = [(8, 4)] if quick else [(64, 8)]
    for number, superchains in [(k, None) for k in CHAINS[: 3 if quick else None]] + several:
        devices = of_devices(number)
        kernel = SliceGibbs(assignment="parallel")
        settings = dict(num_chains=number, superchains=superchains, devices=devices)
        run = Run(kernel, rankings, key=jax.random.key(2), **settings)
        sweep = seconds_per_sweep(run, 5)
        extend_for(run, 5 if quick else 45, sweep)
        table = run.diagnostics()
        table = table[table["note"] != "constant"]
        ess = table[["ess_bulk", "ess_tail"]].min(axis=None)
        print(
            f"| {number} | {superchains or ''} | {len(devices or [0])} | {1e3 * sweep:.3g} | "
            f"{1e3 * sweep / number:.3g} | {run.num_sweeps} | {table['r_hat'].max():.3f} | "
            f"{ess:.0f} | {ess / run.seconds:.2f} |",
            flush=True,
        )


def rankings_over_devices(size):
    print(f"\n## {size:,} lists of 10 of 533 items, split over devices, one chain\n")
    print("| kernel | devices | data and state of a device, MB | first sweep, s | sweep, s |")
    print("|---|---|---|---|---|")
    parts = [
        simulate_mallows_mixture(jax.random.key(i), min(size, PART), 533, 10, 8, 0.5).rankings
        for i in range(-(-size // PART))
    ]
    orderings = np.concatenate([np.asarray(x.orderings) for x in parts])
    rankings = Rankings.from_orderings(orderings, num_items=533)
    del parts, orderings
    for name, kernel in (
        ("PlackettLuceGibbs()", PlackettLuceGibbs()),
        ("PlackettLuceGibbs(num_components=3)", PlackettLuceGibbs(num_components=3)),
        ("SliceGibbs(num_components=1)", SliceGibbs(num_components=1)),
    ):
        for number in (k for k in (1, 2, 4, 8) if k <= jax.device_count()):
            mesh = Mesh(np.array(jax.devices()[:number]), ("rankings",))
            start = time.perf_counter()
            run = Run(kernel, rankings, key=jax.random.key(1), num_chains=1, mesh=mesh)
            run.extend(1)
            first = time.perf_counter() - start
            before = run.seconds
            run.extend(2)
            print(
                f"| `{name}` | {number} | {bytes_of_device(run) / 1e6:.3g} | {first:.1f} | "
                f"{(run.seconds - before) / 2:.3g} |",
                flush=True,
            )
            del run


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cpu-devices", type=int, default=1)
    parser.add_argument("--rankings", type=int, metavar="N", help="only split N lists over devices")
    parser.add_argument("--no-check", action="store_true", help="skip the check of the compiler")
    args = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", args.cpu_devices)
    device = jax.devices()[0]
    print(f"{device.device_kind} ({jax.default_backend()}), {jax.device_count()} devices; ", end="")
    print(f"jax {jax.__version__}, numpyro_rankings {numpyro_rankings.__version__}")
    if args.rankings:
        rankings_over_devices(args.rankings)
        return
    if not args.no_check:
        result = numpyro_rankings.check()
        print("check:", "agrees" if result.agrees else "DISAGREES", flush=True)
    speed(args.quick)
    chains(args.quick)


if __name__ == "__main__":
    main()
