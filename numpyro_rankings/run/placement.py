"""Where a run is computed, and in which shapes: on one device, or split over several."""

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from numpyro_rankings.infer.base import find_rankings
from numpyro_rankings.infer.latent_orders import find_orders
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.run.convert import is_key
from numpyro_rankings.run.kernels import KernelTraits
from numpyro_rankings.run.rounding import round_rows, rounded_for, rounded_up, split_rows

# Functions import zarr and ArviZ, which take long to load and which not every run needs.

CHAINS, RANKINGS = "chains", "rankings"  # axes of a mesh


class Placement:
    """Rounds up the number of rankings, and splits chains, rankings, or both over devices.

    Rows of count 0, which change nothing, round up the numbers of rows and labels (see
    ``rounding.py``), so that data of about the same size share compiled programs.

    Chains alone need no communication: each device computes its own with the same data. Where the
    rankings are split, each device has as many rows of the data and as many labels, and JAX adds
    up what a sweep sums over rankings. Identical rankings have rows of their own then, and rows of
    count 0 at the end make the number of rows a multiple of that of devices.

    The processes of :mod:`jax.distributed` must all make the same run.
    """

    def __init__(
        self, traits: KernelTraits, args: tuple, kwargs: dict, mesh: Mesh | None = None
    ) -> None:
        self.mesh = mesh
        self._sizes = {} if mesh is None else dict(mesh.shape)
        self._label_site, self._sample_field = traits.label_site, traits.sample_field
        self._num_labels = self._num_padded = 0
        has_orders = find_orders(args, kwargs) is not None
        self._rounds = traits.can_pad_rankings and not has_orders
        if self._rounds:
            self._num_labels = find_rankings(args, kwargs).num_rankings
            self._num_padded = rounded_up(self._num_labels)
        if mesh is None:
            return
        if not set(mesh.axis_names) <= {CHAINS, RANKINGS}:
            raise ValueError(
                f'the axes of the mesh must be "{CHAINS}" and "{RANKINGS}", not {mesh.axis_names}'
            )
        if traits.is_ensemble:
            raise ValueError("the chains of an ensemble depend on one another: no devices")
        if self.splits_rankings and has_orders:
            raise ValueError(
                "partial orders and comparisons cannot be split over devices; chains can"
            )
        if self.splits_rankings and not traits.can_split_rankings:
            raise ValueError(
                f"{traits.name} with these settings cannot split rankings over devices; "
                'SliceGibbs(assignment="parallel") and the Plackett–Luce kernels can'
            )
        if self.splits_rankings:
            self._num_padded = rounded_for(self._num_labels, self._sizes[RANKINGS])

    @property
    def splits_rankings(self) -> bool:
        """Whether the rankings are split."""
        return RANKINGS in self._sizes

    @property
    def chains(self) -> PartitionSpec:
        """How an array that begins with the chains is split."""
        return PartitionSpec(CHAINS if CHAINS in self._sizes else None)

    def check_chains(self, num_chains: int) -> None:
        """Raise ValueError unless the devices divide the chains."""
        number = self._sizes.get(CHAINS, 1)
        if num_chains % number:
            raise ValueError(
                f"{num_chains} chains cannot be spread over {number} devices: their number must "
                "be a multiple"
            )

    # -- rounded sizes -------------------------------------------------------------------------

    def round_data(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the arguments of the model, with rows of count 0 in their rankings."""
        if not self._rounds:
            return args, kwargs

        def rounded(x: Any) -> Any:
            return round_rows(x) if isinstance(x, Rankings) else x

        return jax.tree.map(rounded, (args, kwargs), is_leaf=lambda x: isinstance(x, Rankings))

    def round_start(self, params: Any) -> Any:
        """Return starting values with labels for these rows, which the kernel replaces."""
        if not self._rounds or self._label_site not in (params or {}):
            return params
        labels = np.asarray(params[self._label_site])
        if labels.shape[-1:] != (self._num_labels,):
            raise ValueError(
                f"init_params[{self._label_site!r}] must have a label for each of the "
                f"{self._num_labels} rankings: got shape {labels.shape}"
            )
        number = rounded_up(self._num_labels) - self._num_labels
        missing = (*((0, 0),) * (labels.ndim - 1), (0, number))
        return {**params, self._label_site: np.pad(labels, missing)}

    # -- to the devices ------------------------------------------------------------------------

    def put_data(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Return the arguments of the model, rounded, with their arrays on the devices."""
        if not self.splits_rankings:
            args, kwargs = self.round_data(args, kwargs)
        if self.mesh is None:
            return args, kwargs
        if not self.splits_rankings:
            return jax.tree.map(lambda x: self._put(x, PartitionSpec()), (args, kwargs))

        def put(x: Any) -> Any:
            if not isinstance(x, Rankings):
                return self._put(x, PartitionSpec())
            split = split_rows(x, self._sizes[RANKINGS])
            return jax.tree.map(lambda leaf: self._put(leaf, PartitionSpec(RANKINGS)), split)

        return jax.tree.map(put, (args, kwargs), is_leaf=lambda x: isinstance(x, Rankings))

    def put_state(self, state: Any) -> Any:
        """Return the state of all chains on the devices, with labels for the rows of count 0."""
        if self._num_padded == self._num_labels and self.mesh is None:
            return state

        def put(x: Any, is_label: bool) -> Any:
            missing = self._num_padded - x.shape[1] if is_label else 0
            if missing:
                slots = state.z["cluster_sizes"].shape[1]
                x = np.pad(np.asarray(x), ((0, 0), (0, missing)), constant_values=slots)
            return self._put(x, self._spec(is_label))

        return jax.tree.map(put, state, self._labels_in(state))

    def shapes_of(self, state: Any) -> Any:
        """Return what :meth:`put_state` makes of the state, as shapes."""
        if self.mesh is None:
            return state

        def shape(x: Any, sharding: NamedSharding, is_label: bool) -> Any:
            rest = (self._num_padded,) if is_label else x.shape[1:]
            return jax.ShapeDtypeStruct((x.shape[0], *rest), x.dtype, sharding=sharding)

        return jax.tree.map(shape, state, self.shardings_of(state), self._labels_in(state))

    def put_number(self, number: int) -> Array:
        """Return a number on all devices."""
        return self._put(jnp.int32(number), PartitionSpec())

    def _put(self, x: Any, spec: PartitionSpec) -> Any:
        if self.mesh is None or not hasattr(x, "shape"):
            return x
        sharding: Any = NamedSharding(self.mesh, spec)
        if jax.process_count() == 1:
            return jax.device_put(x, sharding)
        if isinstance(x, Array) and x.sharding == sharding:
            return x
        if is_key(x):
            data = self._put(jax.random.key_data(x), spec)
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
        whole = np.asarray(x)
        return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])

    # -- of a state and of draws -----------------------------------------------------------------

    def shardings_of(self, state: Any, prefix: tuple = ()) -> Any:
        """Return how the arrays of a state are split, or of draws with a ``prefix`` of axes."""
        mesh = self.mesh
        assert mesh is not None
        return jax.tree.map(
            lambda is_label: NamedSharding(mesh, self._spec(is_label, prefix)),
            self._labels_in(state),
        )

    def _spec(self, is_label: bool, prefix: tuple = ()) -> PartitionSpec:
        spec = PartitionSpec(*prefix, *self.chains)
        return PartitionSpec(*spec, RANKINGS) if is_label and self.splits_rankings else spec

    def _labels_in(self, state: Any) -> Any:
        """Return for each array of a state, or of draws, whether it is labels, with padding."""

        def is_label(path: tuple, _: Any) -> bool:
            names = jax.tree_util.keystr(path, simple=True, separator=".")
            return self._num_labels > 0 and names == f"{self._sample_field}.{self._label_site}"

        return jax.tree_util.tree_map_with_path(is_label, state)

    # -- from the devices ------------------------------------------------------------------------

    def to_host(self, state: Any, length: int | None = None) -> Any:
        """Return a state or draws as on one device, in every process."""
        if self._num_padded == self._num_labels and self.mesh is None:
            return state

        def get(x: Array, is_label: bool) -> Any:
            if self.mesh is None:
                return x[..., : self._num_labels] if is_label else x
            if is_key(x):
                data = _whole(jax.random.key_data(x))
                return jax.random.wrap_key_data(jnp.asarray(data), impl=jax.random.key_impl(x))
            whole = _whole(x, length)
            return whole[..., : self._num_labels] if is_label else whole

        return jax.tree.map(get, state, self._labels_in(state))


def _whole(x: Array, length: int | None = None) -> np.ndarray:
    """Return an array that may be split over processes, or a part that has its first rows."""
    if isinstance(x, np.ndarray) or x.is_fully_addressable:
        return np.asarray(x)
    if x.is_fully_replicated:
        return np.asarray(x.addressable_data(0))
    from jax.experimental import multihost_utils

    if length is not None:  # a power of two, so that few programs are compiled
        x = _first(x, min(len(x), 1 << (length - 1).bit_length()))
    return np.asarray(multihost_utils.process_allgather(x, tiled=True))


_first = jax.jit(lambda x, size: x[:size], static_argnums=1)


def mesh_of(devices: Sequence[jax.Device] | None, mesh: Mesh | None) -> Mesh | None:
    """Return the mesh of a run, or None for one device."""
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ValueError(f"mesh must be a jax.sharding.Mesh, got {mesh!r}")
    if devices is None:
        return mesh if mesh is None else _without_repeats("mesh", mesh)
    if mesh is not None:
        raise ValueError("devices and mesh cannot both be given")
    given = list(devices) if isinstance(devices, Iterable) else []
    if not given or not all(isinstance(x, jax.Device) for x in given):
        raise ValueError(f"devices must be a list of devices, as of jax.devices(), got {devices!r}")
    return _without_repeats("devices", Mesh(np.array(given), (CHAINS,)))


def _without_repeats(name: str, mesh: Mesh) -> Mesh:
    given = mesh.devices.ravel().tolist()
    if repeated := {device for device in given if given.count(device) > 1}:
        names = " and ".join(sorted(str(device) for device in repeated))
        raise ValueError(f"{name} must not have a device twice: {names}")
    return mesh
