"""The draws of a run that has no store."""

import numpy as np

from numpyro_rankings.run.convert import Groups


class Memory:
    """Keeps draws in memory, with methods of :class:`~numpyro_rankings.run.store.Store`."""

    def __init__(self, keeps: bool = True) -> None:
        self._keeps = keeps
        self._chunks: dict[str, list[dict[str, np.ndarray]]] = {}
        self.num_draws, self._is_closed = 0, False

    def append(self, draws: Groups) -> None:
        """Append draws, for each group arrays (chains, draws, …) by name."""
        for group, arrays in draws.items():
            if arrays and self._keeps:  # there are none in the warm-up
                self._chunks.setdefault(group, []).append(arrays)
        self.num_draws += next((x.shape[1] for a in draws.values() for x in a.values()), 0)

    def read(
        self, group: str, start: int = 0, stop: int | None = None, step: int = 1
    ) -> dict[str, np.ndarray]:
        """Return draws ``start:stop:step`` of all arrays of a group, by name."""
        if not self._keeps:
            raise ValueError("the draws are in the store of the first process alone")
        chunks = self._chunks.get(group, [])
        if len(chunks) > 1:  # once, and not again at the next call
            whole = {k: np.concatenate([c[k] for c in chunks], axis=1) for k in chunks[0]}
            self._chunks[group] = chunks = [whole]
        return {k: x[:, start:stop:step] for k, x in chunks[0].items()} if chunks else {}

    def check_writable(self) -> None:
        """Raise ValueError if the run was closed."""
        if self._is_closed:
            raise ValueError("this run was closed: its draws can be read, but not extended")

    def close(self) -> None:
        """Take no further draws."""
        self._is_closed = True
