"""``--components auto``: how many components to fit, from the evidence of 1, 2, … of them."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numpyro_rankings.cli.arguments import HopelessError, UserError, as_user_errors
from numpyro_rankings.cli.models import AUTO, MODELS, MOST_JUDGES, MOST_TRIED, ModelOptions
from numpyro_rankings.cli.options import Goals
from numpyro_rankings.words import in_minutes, number, plural

if TYPE_CHECKING:
    from numpyro_rankings.cli.session import RunSession
    from numpyro_rankings.rankings import Orders, Rankings

PATH = "path.csv"
LADDERS = 2  # of each number
_APART = 2**20  # its random numbers are not those of a chain


def choose_components(
    session: "RunSession", options: ModelOptions, rankings: "Rankings | Orders"
) -> tuple[ModelOptions, Any]:
    """Return the options with the number of components to fit, and the path that it is of.

    The path of a run that is resumed is the one that it was begun with. There is none if a number
    is asked for.
    """
    if options.components != AUTO:
        return options, None
    from numpyro_rankings.cli.session import check_ess
    from numpyro_rankings.report.group_path import choose_number

    check_ess(session.plan)
    path = session.kept()
    if path is None and session.resumes:
        raise UserError(
            "the run was not begun with --components auto: give the number that it was begun with"
        )
    ladders = dict[int, Any]()
    if path is None:
        path, ladders = _find(session, options, cast("Rankings", rankings))  # others were refused
        session.keep(path)
    choice = choose_number(path)
    if choice.effective_size is None:
        session.ladders = ladders.get(choice.num_components)
    chosen = replace(
        options, components=choice.num_components, effective_size=choice.effective_size
    )
    return chosen, path


def _find(
    session: "RunSession", options: ModelOptions, rankings: "Rankings"
) -> tuple[Any, dict[int, Any]]:
    """Return the path, and the ladders of each number."""
    import jax

    from numpyro_rankings.cli.session import TooFewDrawsError, devices_for, more_minutes
    from numpyro_rankings.infer.not_finite import NotFiniteError
    from numpyro_rankings.report.group_path import TooLittleTimeError, group_path

    until, model = session.plan.until, MODELS[options.model]
    most = options.max_clusters or MOST_TRIED
    session.start_clock()
    session.say("trying numbers of components")

    ladders = dict[int, Any]()
    goals = until if isinstance(until, Goals) else None

    def tell(tried: int, mcmc: Any) -> None:
        ladders[tried] = mcmc
        session.say(f"{tried} of at most {plural(most, 'component')} tried")
        session.show_tried(ladders, most)

    try:
        with as_user_errors(NotFiniteError, told_as=HopelessError):
            path = group_path(
                model.family.described(rankings),
                model.components(options),
                most,
                key=jax.random.fold_in(jax.random.key(session.plan.seed), _APART),
                minutes=None if goals is None else goals.minutes,
                num_ladders=LADDERS,
                chains_after=session.plan.chains,
                devices=devices_for(LADDERS),
                after_number=tell,
            )
        return path, ladders
    except TooLittleTimeError:
        assert goals is not None
        session.minutes = more_minutes(goals)
        takes_process = model.takes_process and rankings.weights is None
        process = ", or a Dirichlet process, --components dp" if takes_process else ""
        fewer = max(2, min(MOST_JUDGES, rankings.num_rankings // 2))
        raise TooFewDrawsError(
            f"{in_minutes(goals.minutes)} did not suffice for one component: raise --minutes, "
            f"or fit fewer judges, such as --sample {fewer}{process}"
        ) from None


def write_path(file: Path, path: Any) -> None:
    """Write ``path.csv``, one row for each effective size and number of components."""
    columns = "probability", "log_evidence", "standard_error"
    of_number = "num_groups", "agreed_size"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["effective_size", "num_components", *columns, *of_number])
        for i, size in enumerate(path["effective_size"].values):
            for k, components in enumerate(path["num_components"].values):
                values = [path[name].values[i, k] for name in columns]
                values += [path[name].values[k] for name in of_number]
                formats = ".6g", ".2f", ".3f", ".0f", ".6g"
                texts = (number(float(x), f) for x, f in zip(values, formats, strict=True))
                writer.writerow([f"{size:.6g}", int(components), *texts])
