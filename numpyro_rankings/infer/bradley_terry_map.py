"""Maximum likelihood of the Bradley–Terry model, with ties and an advantage at home."""

from collections.abc import Sequence
from typing import Any

from numpyro_rankings.infer.paired_stages import PairStages
from numpyro_rankings.infer.plackett_luce_map import PlackettLuceFit, check_shape, fit_stages
from numpyro_rankings.rankings import Games, PartialOrders, RankingsError


def bradley_terry_map(
    games: Any,
    winner: str = "winner",
    loser: str = "loser",
    pair: tuple[str, str] | None = None,
    home: str | None = None,
    count: str | None = None,
    items: Sequence[Any] | None = None,
    shape: float = 1.0,
) -> PlackettLuceFit:
    r"""
    Bradley–Terry weights of highest likelihood, or of highest posterior density.

    Item i, at home, wins against item j, ties, or loses with probabilities proportional to

    .. math:: γ w_i, \quad δ \sqrt{γ w_i w_j}, \quad w_j,

    with γ = 1 on neutral ground, and δ = 0 if there are no ties at all. So the advantage at home is
    a factor of the weight [2], and a tie is that of [1], and of
    :class:`~numpyro_rankings.distributions.PlackettLuceTies`, for these weights. If each game has
    an item at home, this is the model of [2] with the order effect 1/γ of the item that is away,
    and the tie parameter :math:`δ / \sqrt γ`; on neutral ground it does not matter here which of
    the two items is called the first. Without home it is that of
    :func:`~numpyro_rankings.plackett_luce_map` for rows of two items.

    The log likelihood is concave in log w, log δ and log γ. Newton's method finds its maximum.

    :param games: a data frame with a line for each game, whose columns are named by the further
        arguments as in :meth:`Games.from_pairs`; or :class:`~numpyro_rankings.Games`; or partial
        orders of two items each.
    :param winner: the column with the winner, or with the result of ``pair``.
    :param loser: the column with the other item.
    :param pair: two columns with the items, instead of ``loser``.
    :param home: the column with the item that was at home, empty on neutral ground; it may be one
        of ``pair``. By default nobody has an advantage. :class:`~numpyro_rankings.Games` know it.
    :param count: the column with numbers of games.
    :param items: names of all items.
    :param shape: a >= 1 of a prior Gamma(a, b) of each weight, as in
        :func:`~numpyro_rankings.plackett_luce_map`. There is no prior of γ and δ.
    :return: ``weights`` (n,), normalised, ``home_advantage`` γ and ``tie_strengths`` (δ,), each
        None if it is not in the model, and more; ``summary()`` tabulates log weights, log δ
        (``tie2``) and log γ (``home``) with their standard errors.
    :raises RankingsError: if the table is wrong, naming the line; and if the likelihood has no
        maximum: because of some items, which are named, or because the results do not tell γ, for
        instance if all who were at home won.

    **References:**

    1. Davidson, R. R. (1970), "On extending the Bradley–Terry model to accommodate ties in paired
       comparison experiments", JASA 65.
    2. Davidson, R. R., Beaver, R. J. (1977), "On extending the Bradley–Terry model to incorporate
       within-pair order effects", Biometrics 33.

    .. doctest::

       >>> import pandas as pd
       >>> from numpyro_rankings import bradley_terry_map
       >>> table = pd.DataFrame(
       ...     {
       ...         "home": ["x", "x", "y", "y"],
       ...         "away": ["y", "y", "x", "x"],
       ...         "winner": ["x", "y", "x", "y"],
       ...         "games": [6, 2, 3, 3],
       ...     }
       ... )
       >>> fit = bradley_terry_map(table, pair=("home", "away"), home="home", count="games")
       >>> round(fit.home_advantage, 3), fit.weights.round(3).tolist()  # odds of 3 and of 1
       (1.732, [0.634, 0.366])
       >>> table = fit.summary(reference="y")
       >>> table.loc["home", ["log_weight", "standard_error"]].round(3).tolist()
       [0.549, 0.577]
    """
    check_shape(shape)
    if isinstance(games, PartialOrders | Games):
        if any(x is not None for x in (pair, home, count, items)):
            raise RankingsError("pair, home, count and items are of a table of games: a data frame")
        found = Games.from_orders(games) if isinstance(games, PartialOrders) else games
    else:
        found = Games.from_pairs(games, winner, loser, pair, home, count, items)
    return fit_stages(PairStages(found), found.items, shape)
