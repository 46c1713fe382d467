"""Every kernel of the tests: name, constructor and the data that it runs on."""

from helpers import link_kernels, partition_kernels, ranking_kernels, symbol_kernels
from helpers.latent_orders import BOTTOM, GAP, LONE_PAIR, N_SHAPE, of_pairs

_RANKINGS = ranking_kernels.table()
# A pool of items takes preferences among all of them alone.
_ORDERS = of_pairs(N_SHAPE, LONE_PAIR, BOTTOM, GAP, num_items=4)
OF_ORDERS = {
    f"orders, {k}": (ranking_kernels.KERNELS[k], data)
    for k, data in {
        "slice-finite-parallel": _ORDERS,
        "plackett-luce-mixture": _ORDERS,
        "dp-plackett-luce": _ORDERS.of_all_items(),
    }.items()
}
REGISTRY = {
    **{f"rankings, {k}": (make, _RANKINGS) for k, make in ranking_kernels.KERNELS.items()},
    **{f"partitions, {k}": case for k, case in partition_kernels.KERNELS.items()},
    **{f"links, {k}": case for k, case in link_kernels.KERNELS.items()},
    **{f"symbols, {k}": case for k, case in symbol_kernels.KERNELS.items()},
}
