"""One of several processes that make a run together, for the tests of devices."""

import sys

import jax
import pytest
from jax.experimental import multihost_utils


def runs(make_mesh, store=None):
    """Make the runs whose draws are compared, by name; only that of split rankings is stored."""
    from helpers.ranking_kernels import KERNELS, LISTS
    from numpyro_rankings import Rankings, Run

    rankings = Rankings.from_orderings(LISTS * 2, num_items=4)
    found = {}
    for name, axes in (("chains", ("chains",)), ("rankings", ("rankings",))):
        kernel = KERNELS["plackett-luce-mixture"]()
        run = Run(
            kernel,
            rankings,
            key=jax.random.key(3),
            mesh=make_mesh(axes),
            burn_in=0.0,
            store=f"{store}/{name}.run" if store is not None and name == "rankings" else None,
        )
        run.extend(10)
        found[f"{name} table"] = {"mean": run.diagnostics()["mean"].to_numpy()}
        if name == "chains" or jax.process_index() == 0:
            found[name] = run.get_samples(group_by_chain=True)
        else:
            with pytest.raises(ValueError, match="store of the first process alone"):
                run.get_samples()
        run.until(rhat=10.0, ess=8, minutes=100)
        run.close()
        found[f"{name} until"] = {"num_draws": run.num_draws}
    return found


def main():
    """Run with: port, number of this process, of all processes, folder of the results."""
    port, number, processes, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    jax.config.update("jax_num_cpu_devices", 4 // processes)
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, number)

    import numpy as np
    from jax.sharding import Mesh

    assert jax.device_count() == 4 and jax.local_device_count() == 4 // processes
    gather, lengths = multihost_utils.process_allgather, [0]

    def recorded(x, **options):
        if options.get("tiled"):  # draws and states, not what processes tell one another
            lengths.append(len(x))
        return gather(x, **options)

    multihost_utils.process_allgather = recorded
    found = runs(lambda axes: Mesh(np.array(jax.devices()), axes), folder)
    found["gathered"] = {"longest": max(lengths)}
    values = {f"{run}, {name}": x for run, draws in found.items() for name, x in draws.items()}
    np.savez(f"{folder}/{number}.npz", **values)


if __name__ == "__main__":
    main()
