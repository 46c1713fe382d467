"""What ``assignments.csv`` says: the group of each judge, also of those who were not fitted."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from numpyro_rankings.cli.kept import numbers_of_groups

if TYPE_CHECKING:
    import numpy as np

    from numpyro_rankings.predict import GroupsOfJudges
    from numpyro_rankings.rankings import PartialOrders, Rankings
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.report.findings import Findings


class Assigned(NamedTuple):
    """Where judges belong, in the order of the file.

    - **survey** - the judges.
    - **columns** - of tables: cluster, bloc and their probabilities, and who was fitted, if not all
      were.
    - **in_words** - how many were fitted, and who is in the tables; nothing if all were fitted.
    """

    survey: "Survey"
    columns: dict[str, list[Any]]
    in_words: str = ""


def assigned(findings: "Findings", survey: "Survey", whole: "Survey | None" = None) -> Assigned:
    """Return where the judges of a file belong.

    :param survey: of the judges who were fitted.
    :param whole: of all judges of the file, if a sample of them was fitted.
    """
    if whole is None:
        return Assigned(survey, _of_fitted(findings, survey))
    total = whole.rankings.num_rankings
    fitted = f"fitted to {findings.total:,} of {total:,} judges drawn at random"
    if findings.reference is None or findings.num_components == 1:
        columns: dict[str, list[Any]] = {"cluster": [1] * total, "probability": [1.0] * total}
        columns |= _who_was_fitted(total, findings.total)
        return Assigned(whole, columns, f"{fitted}; assignments.csv has all, in one group")
    if whole.rankings.kind == "comparisons":
        why = "comparisons that may be mistakes have no probability of a group"
    else:
        try:
            columns = _of_all(_groups_of(findings, whole), whole, findings.total)
            average = ", who count there as average in the columns of --shares-by"
            words = f"{fitted}; assignments.csv has the groups of all"
            return Assigned(whole, columns, words + average * (findings.shares_by is not None))
        except ValueError as error:
            why = str(error)
    alone = f"assignments.csv has these alone, because {why}"
    return Assigned(survey, _of_fitted(findings, survey), f"{fitted}; {alone}")


def write_assigned(path: Path, judges: Assigned) -> None:
    """Write one row for each judge in the order of the file."""
    import numpy as np

    from numpyro_rankings.cli.tables import rows_in_words, write_assignments

    survey, found = judges.survey, judges.columns
    rankings = survey.rankings
    rows, lists = np.asarray(rankings.row_index)[survey.label_index], rows_in_words(rankings)
    columns: dict[str, Any] = {}
    if survey.judges is not None:
        columns["judge"] = survey.judges
    elif survey.rows is not None:  # by which a survey without names can be joined
        columns["row"] = survey.rows.tolist()
    columns |= {"ranking": range(1, len(rows) + 1), "ordering": (lists[row] for row in rows)}
    taken = {*columns, *found, "bloc", "bloc_probability"}
    for name, values in survey.about.items():
        columns[f"{name} (in the file)" if name in taken else name] = values
    blocs = (found["bloc"], found["bloc_probability"]) if "bloc" in found else None
    further = {"fitted": found["fitted"]} if "fitted" in found else None
    write_assignments(path, columns, found["cluster"], found["probability"], blocs, further)


def _of_fitted(findings: "Findings", survey: "Survey") -> dict[str, list[Any]]:
    """Return the cluster, and if there are blocs the bloc, of each ranking.

    Identical ones can be in different clusters.
    """
    import numpy as np

    rankings, place = survey.rankings, survey.label_index
    clusters, probability = np.ones(len(place), int), np.ones(len(place))
    if findings.reference is not None and findings.membership is not None:
        clusters = numbers_of_groups(findings.profiles, findings.reference)[place]
        probability = findings.membership[place]
    columns: dict[str, list[Any]] = {"cluster": clusters.tolist()}
    blocs = findings.blocs
    if blocs is None:
        return columns | {"probability": _rounded(probability).tolist()}
    of_each = blocs.labels[place]
    certainty = blocs.membership[np.asarray(rankings.row_index)[place], of_each]
    columns |= {"bloc": (of_each + 1).tolist(), "probability": _rounded(probability).tolist()}
    return columns | {"bloc_probability": _rounded(certainty).tolist()}


def _groups_of(findings: "Findings", whole: "Survey") -> "GroupsOfJudges":
    """Return the groups of each row of all judges, as ``assign`` finds them from the results."""
    from numpyro_rankings.predict import groups
    from numpyro_rankings.rankings import WeightedRankings

    assert findings.reference is not None  # asked before
    labels = numbers_of_groups(findings.profiles, findings.reference) - 1
    said = cast("Rankings | PartialOrders", whole.rankings)  # comparisons have no groups
    if isinstance(said, WeightedRankings):  # the group of a judge does not depend on its weight
        said = said.unweighted()
    return groups(findings.described, None, said, labels, blocs=findings.blocs)


def _of_all(found: "GroupsOfJudges", whole: "Survey", num_fitted: int) -> dict[str, list[Any]]:
    """Return the columns of all judges, given the groups of their rows."""
    import numpy as np

    rows = np.asarray(whole.rankings.row_index)[whole.label_index]
    names = [*range(1, found.groups.shape[1] + 1), "none"]
    columns: dict[str, list[Any]] = {"cluster": [names[k] for k in found.labels[rows].tolist()]}
    if found.blocs is not None:
        columns["bloc"] = (found.blocs.argmax(1) + 1)[rows].tolist()
    columns["probability"] = _rounded(found.probability)[rows].tolist()
    if found.blocs is not None:
        columns["bloc_probability"] = _rounded(found.blocs.max(1))[rows].tolist()
    return columns | _who_was_fitted(len(rows), num_fitted)


def _who_was_fitted(total: int, number: int) -> dict[str, list[Any]]:
    """Return a column that says it of each judge."""
    from numpyro_rankings.readers.surveys import judges_drawn

    drawn = {*judges_drawn(total, number).tolist()}
    return {"fitted": ["yes" if k in drawn else "no" for k in range(total)]}


def _rounded(probability: "np.ndarray") -> "np.ndarray":
    import numpy as np

    return np.array([float(f"{p:.4g}") for p in probability])
