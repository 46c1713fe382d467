"""What a ladder needs of the components of a mixture, for any likelihood of rankings."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.infer.mixture.label_free import RankingData
from numpyro_rankings.infer.mixture.target import Clusters
from numpyro_rankings.rankings import Rankings


class Rows(NamedTuple):
    """Rankings as the steps read them."""

    data: RankingData
    clusters: Clusters  # likelihood, prior and proposals, the same in all slots
    num_items: int
    tables: Any = None  # what ``ComponentModel.log_rows`` reads of them
    covariates: Any = None  # of the judges, on which the shares depend
    weights: Array | None = None  # of each judge of a row, (rows,); None if all have 1
    num_used: Array | None = None  # components, from the first on; None if all are used

    @property
    def amounts(self) -> Array:
        """Sum of the weights of the judges of each row, (rows,) float."""
        counts = self.data.counts.astype(float)
        return counts if self.weights is None else counts * self.weights

    def among_used(self, values: Array, otherwise: float) -> Array:
        """Return values by component, (…, K), with another one for those that are not used."""
        if self.num_used is None:
            return values
        return jnp.where(jnp.arange(values.shape[-1]) < self.num_used, values, otherwise)


class ComponentModel(ABC):
    """Likelihood and prior of the components of a :class:`~numpyro_rankings.infer.TemperedMixture`.

    A new likelihood defines a subclass. Parameters are a pytree with a leading axis of the K
    components, in which the steps are made; the sites of the model follow from them.
    """

    @property
    @abstractmethod
    def ranking_family(self) -> RankingFamily:
        """The likelihood of the rankings."""

    @abstractmethod
    def check(self, rankings: Rankings) -> None:
        """Raise ValueError if the rankings do not fit the likelihood or the priors."""

    @abstractmethod
    def read(self, rankings: Rankings) -> Rows:
        """Return the rankings as the steps read them."""

    def log_rows(self, parameters: Any, rows: Rows) -> Array:
        """Return the log probability of each row in several components, (rows, C).

        A faster form looks up the values of all components at once.
        """
        slot = jnp.zeros((), jnp.int32)  # components are the same in all slots
        return jax.vmap(lambda x: rows.clusters.log_row(x, slot), out_axes=1)(parameters)

    @abstractmethod
    def num_parameters(self, rankings: Rankings) -> int:
        """Return the number of continuous parameters of a component."""

    @abstractmethod
    def draw_prior(self, key: Array, num_components: int, rows: Rows) -> Any:
        """Draw the parameters of K components from the prior."""

    @abstractmethod
    def draw_steps(self, key: Array, num_steps: int, rows: Rows, worth: Array) -> tuple[Array, Any]:
        """Draw random numbers of steps that each change one component.

        :param worth: rankings' worth of a component in each of R replicas: how much its data tell,
            (R,), from 0 on.
        :return: normal numbers, (steps, R, …), which the kernel scales, and those of the family, as
            the proposals of ``rows.clusters`` read them.
        """

    @abstractmethod
    def sites(self, parameters: Any) -> dict[str, Array]:
        """Return the sites of the model by name, each (K, …).

        One component is without that axis if the family has no labels then.
        """

    @abstractmethod
    def parameters(self, key: Array, sites: Mapping[str, Array], rows: Rows) -> Any:
        """Return parameters that have these sites; what the sites leave open is drawn."""

    @abstractmethod
    def log_prior(self, sites: Mapping[str, Array], rows: Rows) -> Array:
        """Return the log density of the sites of each component, (K,)."""

    @abstractmethod
    def sample(self, rankings: Rankings) -> dist.Distribution:
        """Sample the sites in a NumPyro model; return the distribution of each ranking.

        It is called in a plate of the K components, and the batch shape is (K,) or (N, K); or
        without a plate for one component, if the family has no labels then.
        """
