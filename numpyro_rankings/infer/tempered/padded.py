"""Tempered mixtures of any number of components by one program."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numpyro_rankings.infer.mixture.component_model import Rows
from numpyro_rankings.infer.tempered.kernel import TemperedMixture
from numpyro_rankings.rankings import Rankings

__all__ = ["PaddedMixture"]


class PaddedMixture(TemperedMixture):
    """Mixture of as many components as an argument of the run says, up to ``num_components``.

    The argument is an array ``num_used``, so that another number is no other program, and takes no
    time to compile. Components beyond it have shares of 0, and parameters that mean nothing. The
    judges have no covariates.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._model = partial(_of_rankings, self._model)

    def _check(self, args: tuple, kwargs: dict) -> None:
        super()._check(*_without_number(args, kwargs))

    def _read(self, args: tuple, kwargs: dict) -> tuple[Rankings, Rows]:
        rankings, rows = super()._read(*_without_number(args, kwargs))
        return rankings, rows._replace(num_used=kwargs["num_used"])


def _of_rankings(model: Callable, *args: Any, num_used: Any = None, **kwargs: Any) -> Any:
    return model(*args, **kwargs)


def _without_number(args: tuple, kwargs: dict) -> tuple[tuple, dict[str, Any]]:
    return args, {name: x for name, x in kwargs.items() if name != "num_used"}
