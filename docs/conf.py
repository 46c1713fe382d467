"""How Sphinx builds these pages."""

import os

from numpyro_rankings import __version__

project = "numpyro_rankings"
author = copyright = "The numpyro_rankings developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"numpyro_rankings {__version__}"
html_copy_source = False

# docstrings say what an argument may be; what a subclass does not describe is NumPyro's
autodoc_typehints = "none"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
add_module_names = False

# Names of other packages are links where the pages are published; a build elsewhere needs no
# network.
if "READTHEDOCS" in os.environ:
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "jax": ("https://docs.jax.dev/en/latest", None),
        "numpyro": ("https://num.pyro.ai/en/stable", None),
        "arviz": ("https://python.arviz.org/en/stable", None),
        "xarray": ("https://docs.xarray.dev/en/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
    }
linkcheck_timeout, linkcheck_retries = 20, 2

# a link to a name of this package that is not documented is an error
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(numpyro|jax|numpy|pandas|arviz|xarray|matplotlib)\..*")]
