"""What the results of ``fit`` keep for ``assign``: its groups and blocs, and how its file was read.

It is the group ``constant_data`` of ``posterior.nc``: ``cluster``, the number of the group of each
ranking, in the order of the labels of the draws; ``bloc_size`` and the parameters of the blocs; and
the options of the table, and whether the page is about the blocs.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpyro_rankings.cli.arguments import UserError, file_errors, note
from numpyro_rankings.cli.options import TableOptions
from numpyro_rankings.cli.session import FITS, store_of

if TYPE_CHECKING:
    import numpy as np

    from numpyro_rankings.posterior import Draws, Profile
    from numpyro_rankings.posterior.point_estimates import ReferencePartition
    from numpyro_rankings.predict import BlocMixture
    from numpyro_rankings.report.findings import Findings

_GROUP, _READING, _BLOCS_FIRST = "constant_data", "reading", "blocs_first"
OF_RANKS = "ranks", "long"  # layouts that --highest-first goes with
_BLOC = "bloc_"  # of the names of what is kept of blocs


class Kept(NamedTuple):
    """What the results of a fit say of its groups.

    - **labels** - the group of each ranking, numbered from 0 as in the results, in the order of the
      draws.
    - **table** - how the file was read.
    - **blocs_first** - whether the page is about the blocs.
    """

    draws: "Draws"
    labels: "np.ndarray"
    blocs: "BlocMixture | None"
    table: TableOptions
    blocs_first: bool = False


def keep_groups(findings: "Findings", table: TableOptions, layout: str) -> None:
    """Add to the draws of a fit what ``assign`` needs besides."""
    import numpy as np
    import xarray as xr

    from numpyro_rankings.posterior.inference_data import with_groups
    from numpyro_rankings.predict import BlocMixture

    ones = np.ones(findings.total, np.int32)  # of a single population
    variables: dict[str, Any] = {"cluster": ("ranking", ones)}
    if findings.reference is not None:
        variables["cluster"] = "ranking", numbers_of_groups(findings.profiles, findings.reference)
    if findings.blocs is not None and findings.family is not None:
        mixture = BlocMixture.of(findings.blocs, findings.family)
        for name, values in {**mixture.parameters, "size": mixture.sizes}.items():
            axes = [f"{_BLOC}{name}_axis_{k}" for k in range(1, np.ndim(values))]
            variables[f"{_BLOC}{name}"] = ["bloc", *axes], values
    given = {name: x for name, x in asdict(table).items() if x not in (None, ())}
    if layout in OF_RANKS:  # without the option, 1 is the first choice
        given.setdefault("highest_first", False)
    else:  # of pairs it says something else
        given.pop("highest_first", None)
    if table.aliases is not None:
        given["aliases"] = str(Path(table.aliases).absolute())
    attrs = {_READING: json.dumps(given), _BLOCS_FIRST: int(findings.blocs_first)}
    kept = xr.Dataset(variables, attrs=attrs)
    with_groups(findings.data, {_GROUP: kept}, {})


def numbers_of_groups(
    profiles: "Sequence[Profile]", reference: "ReferencePartition"
) -> "np.ndarray":
    """Return the number of the group of each fitted label, from 1 as in the results, int32 (N,)."""
    import numpy as np

    number = np.zeros(int(reference.labels.max()) + 1, np.int32)
    number[[p.label for p in profiles]] = np.arange(1, len(profiles) + 1)
    return number[reference.labels]


def read_kept(folder: Path) -> Kept:
    """Read the results of a fit, of draws whose chains have weights those that these choose.

    :raises UserError: if they are none, or have no groups.
    """
    _check_folder(folder)
    import numpy as np
    import xarray as xr

    from numpyro_rankings.posterior import Draws
    from numpyro_rankings.posterior.stacking import posterior_by_weight
    from numpyro_rankings.predict import BlocMixture

    path = folder / "posterior.nc"
    with file_errors(f"cannot read {path}"):
        try:
            kept = xr.load_dataset(path, group=_GROUP, engine="h5netcdf")
            reading: dict[str, Any] = json.loads(kept.attrs[_READING])
            posterior = xr.load_dataset(path, group="posterior", engine="h5netcdf")
        except (KeyError, ValueError, OSError):
            raise UserError(
                f"{path} does not say which groups were reported: it is not of "
                "'numpyro-rankings fit', or of an earlier version; fit the file again"
            ) from None
    draws = Draws.of({"posterior": posterior_by_weight(posterior)})
    if draws.labels is None or draws.partition == "population":
        raise UserError(f"{folder} has the results of one population: there are no groups")
    if store_of(folder).is_dir():
        note(f"the run of {folder} did not end by itself: its groups are those so far")
    sites = {str(x).removeprefix(_BLOC): kept[x].values for x in kept if str(x).startswith(_BLOC)}
    sizes = sites.pop("size", None)
    options: Any = {k: tuple(x) if isinstance(x, list) else x for k, x in reading.items()}
    return Kept(
        draws,
        kept["cluster"].values.astype(np.int32) - 1,
        None if sizes is None else BlocMixture(sites, sizes),
        TableOptions(**options),
        sizes is not None and bool(kept.attrs.get(_BLOCS_FIRST, False)),
    )


def _check_folder(folder: Path) -> None:
    """Refuse what is no folder of results, and say which may be meant."""
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "there is no such folder"
        raise UserError(f"{folder}: {problem}; RESULTS is the --out of 'numpyro-rankings fit'")
    if (folder / "posterior.nc").is_file():
        return
    if (folder / FITS).exists():
        some = next((x.parent for x in sorted(folder.glob("*/posterior.nc"))), folder / "FILE")
        raise UserError(f"{folder} has the fits of several files: name one of them, such as {some}")
    if (folder / "zarr.json").exists():
        raise UserError(
            f"{folder} is an unfinished run, which has no results yet: go on with its command "
            f"and --resume {folder.with_name(folder.name.removesuffix('.run'))}"
        )
    if store_of(folder).is_dir():
        raise UserError(
            f"{folder} has no results yet, since its run is unfinished: go on with its command "
            f"and --resume {folder}"
        )
    raise UserError(f"{folder} has no results of 'numpyro-rankings fit': there is no posterior.nc")
