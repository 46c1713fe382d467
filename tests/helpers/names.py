"""Names that mean something in HTML, in style sheets, in templates or in Python."""

import numpy as np

from numpyro_rankings import Rankings
from numpyro_rankings.report import write_report
from numpyro_rankings.report.page import Status

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><h1>",
    "&amp; &lt;",
    "{{ 7*7 }}",
    "{% raw %}",
    "\"quoted\" and 'quoted'",
    "<!-- {# comment",
    'x" onerror="alert(2)',
]


def of_four_items(names):
    """Forty rankings of four items."""
    orderings = (
        [[0, 1, 2, 3]] * 14 + [[0, 1, -1, -1]] * 4 + [[3, 2, 1, 0]] * 18 + [[1, 0, 2, 3]] * 4
    )
    return Rankings.from_orderings(np.array(orderings), num_items=4, items=names)


def hostile_report(path, names, make, checks=None):
    """Write a report on draws that a function makes, with eight names wherever a name can be.

    :param names: of the four items first.
    """
    rankings = of_four_items(names[:4])
    write_report(
        path,
        make(rankings),
        rankings,
        title=names[4],
        checks=checks,
        about={names[5]: [names[6], names[7]] * 20},
        details={"command": names[6], "versions": names[5], names[7]: names[4]},
        status=Status(names[4], names[5], names[6]),
    )
