"""Memory that the Mallows kernels need; data that would not fit are refused."""

from numpyro_rankings._system import memory as _memory
from numpyro_rankings.infer.mallows.centers import center_bytes, most_listed
from numpyro_rankings.infer.mallows.settings import MallowsSettings
from numpyro_rankings.infer.mallows.start import search_bytes, search_iterations
from numpyro_rankings.rankings import Rankings, num_stages
from numpyro_rankings.words import plural

_WORTH_A_LOOK = 2**28  # bytes; less is never refused


def check_memory(settings: MallowsSettings, rankings: Rankings, num_chains: int) -> None:
    """Refuse rankings if there is too little memory for the centers of chains that run together."""
    slots, n, stages = settings.num_slots, rankings.num_items, num_stages(rankings)
    rows = rankings.orderings.shape[0]
    sweep, search = center_bytes(slots, n, rows * stages), 0
    if search_iterations(settings, rankings) > 0:
        search = search_bytes(n, stages)
    needed = num_chains * max(sweep, search)
    free = None if needed < _WORTH_A_LOOK else _memory.device_memory()
    if free is None or needed <= _memory.USABLE * free:
        return
    remedies = ["leave out items that few rankings list"]
    if search > sweep:
        remedies.append("start without a search (init='nearest')")
    elif center_bytes(1, n, rows * stages) < sweep:
        name = "max_clusters" if settings.num_components is None else "num_components"
        remedies.append(f"lower {name}")
    if num_chains > 1:
        remedies.append("run fewer chains at a time")
    remedy = ", or ".join(remedies)
    listed = f"{n:,} items"
    if most_listed(rows * stages, n) < n:
        listed += f" (at most {rows * stages:,} are listed)"
    raise _memory.TooLittleMemoryError(
        f"{'the search for a start' if search > sweep else 'the moves of the centers'} of "
        f"{plural(slots, 'cluster')} of {listed} in {plural(num_chains, 'chain')} need about "
        f"{needed:,} bytes ({needed / 1e9:.1f} GB) of memory, but only {free / 1e9:.1f} GB is "
        f"free: {remedy}"
    )
