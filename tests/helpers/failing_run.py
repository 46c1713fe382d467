"""One of two processes that make a run together, of which one fails in the way of a case."""

import signal
import sys

import jax

# by name: the process that fails, and what is said in it and in the other one
CASES = {
    "store": (0, "StoreError: cannot write to", "the run stopped in process 0: StoreError: cannot"),
    "exists": (0, "StoreError: ", "the run stopped in process 0: StoreError: "),
    "quantities": (1, "OverflowError: too much", "stopped in process 1: OverflowError: too much"),
    "after": (1, "OSError: [Errno 28] full", "stopped in process 1: OSError: [Errno 28] full"),
    "sweeps": (1, "ValueError: sweeps must be", "stopped in process 1: ValueError: sweeps must"),
    "goals": (1, "ValueError: ess must be", "stopped in process 1: ValueError: ess must be"),
    "ctrl-c": (1, "KeyboardInterrupt", "KeyboardInterrupt: the run was interrupted in process 1"),
    "last": (1, "KeyboardInterrupt", "KeyboardInterrupt: the run was interrupted in process 1"),
}


def main():
    """Run with: port, case, number of this process, folder of the store."""
    port, case, number, store = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    fails = number == CASES[case][0]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jax.config.update("jax_num_cpu_devices", 1)
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, number)

    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh

    from helpers.toy_kernel import Autoregressive
    from numpyro_rankings import Run
    from numpyro_rankings.run.store import Store

    def quantities(samples):
        if fails and case == "quantities" and samples["mu"].shape[1] > 1:
            raise OverflowError("too much")
        return {"mu": samples["mu"]}

    def after_chunk(run):
        if fails and case == "after" and run.num_draws > 1:
            raise OSError(28, "full")
        if (fails and case == "ctrl-c") or (case == "last" and fails and run.num_draws == 40):
            signal.raise_signal(signal.SIGINT)

    def append(store, *_):
        raise OSError(28, "No space left on device")

    run = Run(
        Autoregressive(),
        jnp.array([0.3, -1.0, 2.0]),
        key=jax.random.key(1),
        num_warmup=0,
        mesh=Mesh(np.array(jax.devices()), ("chains",)),
        store=store,
        quantities=quantities,
    )
    if case == "store" and fails:
        Store._write_root = append
    if case == "goals":
        run.until(ess=1e9 if fails else 1e4, minutes=0.1)
    run.extend(-1 if fails and case == "sweeps" else 40, after_chunk=after_chunk)
    if case == "last":
        run.extend(40)


if __name__ == "__main__":
    main()
