r"""What fitted groups say of judges who were not fitted.

**The probability of a group.** Let draw d have clusters c with parameters and with weights: under
the Dirichlet process :math:`w_c = N_c/(N + α)` and, of a new cluster, :math:`α/(N + α)`; in a
finite mixture :math:`(N_c + α/K)/(N + α)`, or the shares of a tempered one. Given the draw, a new
judge is in cluster c and says x with probability :math:`w_c\,p(x \mid c, d)`; in a new cluster,
:math:`p(x \mid \text{new}, d)` is the mean over the prior. What x says of the draws themselves is
taken into account by Bayes' rule, which gives for any event about the label

.. math:: p(c \in A \mid x, \text{data})
    = \frac{\sum_d \sum_{c \in A} w_c\,p(x \mid c, d)}{\sum_d \sum_c w_c\,p(x \mid c, d)}:

draws under which x is more probable count more. It is the posterior of a fit with the new judge as
one more row, whose label is averaged over; where the likelihood has a power below 1, the new judge
counts in full.

**The groups that are reported** are those of a reference partition, and not the clusters of a draw.
With :math:`N_{cg}` judges of cluster c in group g, a cluster stands for the group of which it has
most; a group for which no cluster stands shares the cluster that has most of it. If :math:`G_c`
are the groups of cluster c,

.. math:: p(g \mid x, \text{data}) \propto \sum_d \sum_{c:\, g \in G_c} w_c\,p(x \mid c, d)\,
    \frac{N_{cg}}{\sum_{h \in G_c} N_{ch}}.

Of a cluster and a group that are the same but for judges who may be in either, these are left out:
whether the new judge is like them is in :math:`p(x \mid c, d)` already. A new cluster is *none of
the groups*.
"""

from numpyro_rankings.predict.groups import BlocMixture, GroupsOfJudges, groups
from numpyro_rankings.predict.next_items import NextItems, next_items
from numpyro_rankings.predict.shares import SharesBy, shares_by
from numpyro_rankings.predict.short_form import ShortForm, short_form

__all__ = [
    "BlocMixture",
    "GroupsOfJudges",
    "NextItems",
    "SharesBy",
    "ShortForm",
    "groups",
    "next_items",
    "shares_by",
    "short_form",
]
