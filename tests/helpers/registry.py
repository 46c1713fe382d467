"""Every kernel of the tests: name, constructor and the data that it runs on."""

from helpers import link_kernels, partition_kernels, ranking_kernels, symbol_kernels

_RANKINGS = ranking_kernels.table()
REGISTRY = {
    **{f"rankings, {k}": (make, _RANKINGS) for k, make in ranking_kernels.KERNELS.items()},
    **{f"partitions, {k}": case for k, case in partition_kernels.KERNELS.items()},
    **{f"links, {k}": case for k, case in link_kernels.KERNELS.items()},
    **{f"symbols, {k}": case for k, case in symbol_kernels.KERNELS.items()},
}
